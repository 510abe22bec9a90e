/* Events of the library: what the engine's replies amount to. */
#include "api/api.h"

#include "base/checked.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The reply under way. */
typedef struct taking {
    carat_engine *e;
    ct_api_request *r;
    const ct_reply *reply;
} taking;

static const carat_event_kind kinds[] = {
    [CT_EVENT_REASONING] = CARAT_REASONING, [CT_EVENT_CONTENT] = CARAT_CONTENT,
    [CT_EVENT_CALL] = CARAT_CALL,           [CT_EVENT_ARGUMENTS] = CARAT_ARGUMENTS,
    [CT_EVENT_CALL_END] = CARAT_CALL_END,   [CT_EVENT_CALL_VOID] = CARAT_CALL_VOID,
};

/* One more event of this reply, or NULL when memory is short. */
static ct_api_event *add_event(taking *t, carat_event_kind kind, ct_str text)
{
    carat_engine *e = t->e;
    ct_api_event *a;

    if (e->n_events == e->room) {
        size_t room = e->room ? 2 * e->room : 64;
        ct_api_event *more = realloc(e->event, room * sizeof *more);

        if (!more)
            return NULL;
        e->event = more;
        e->room = room;
    }
    a = &e->event[e->n_events];
    *a = (ct_api_event){
        .event = {.kind = kind,
                  .request = t->reply->id,
                  .user = t->r->user,
                  .choice = t->reply->choice,
                  .text_bytes = text.n,
                  .logprob = NAN},
        .text_at = e->text.n,
    };
    ct_buf_add(&e->text, text.p, text.n);
    ct_buf_addc(&e->text, '\0');
    if (e->text.failed)
        return NULL;
    e->n_events++;
    return a;
}

static ct_status on_event(void *ctx, const ct_event *event, ct_error *err)
{
    ct_api_event *a = add_event(ctx, kinds[event->kind], event->text);

    if (!a)
        return ct_fail(err, CT_ELIMIT, "out of memory for the events of a token");
    a->event.call = event->call;
    return CT_OK;
}

/* An answer cannot be read on: the request ends with that error. */
static void fail(taking *t, const ct_error *err)
{
    if (!t->r->failed)
        snprintf(t->r->error, sizeof t->r->error, "%.*s", CT_REPLY_ERROR_BYTES - 1, err->text);
    t->r->failed = true;
    ct_engine_cancel(t->e->engine, t->reply->id);
}

/* Once no answer has anything to come but what stop strings cut off. */
static void cancel_if_all_stopped(taking *t)
{
    ct_api_request *r = t->r;

    for (uint32_t i = 0; i < r->n_choices; i++)
        if (!r->ended[i] && !ct_answer_stopped(r->answer[i]))
            return;
    if (!r->cancelled)
        ct_engine_cancel(t->e->engine, t->reply->id);
    r->cancelled = true;
}

static void take_token(taking *t)
{
    ct_answer *answer = t->r->answer[t->reply->choice];
    ct_api_event *a;
    ct_error err;

    if (ct_answer_stopped(answer))
        return;
    a = add_event(t, CARAT_TOKEN, (ct_str){0});
    if (!a) {
        ct_fail(&err, CT_ELIMIT, "out of memory for the events of a token");
        fail(t, &err);
        return;
    }
    a->event.id = t->reply->u.token.id;
    if (t->reply->u.token.has_logprobs)
        a->event.logprob = t->reply->u.token.logprobs.logprob;
    if (ct_answer_token(answer, t->reply, on_event, t, &err))
        fail(t, &err);
    else if (ct_answer_stopped(answer))
        cancel_if_all_stopped(t);
}

static void take_end(taking *t)
{
    ct_answer *answer = t->r->answer[t->reply->choice];
    ct_api_event *a;
    ct_error err;

    if (ct_answer_end(answer, t->reply, on_event, t, &err))
        fail(t, &err);
    t->r->ended[t->reply->choice] = true;
    t->r->n_ended++;
    t->r->reasoning_tokens += ct_answer_reasoning_tokens(answer);
    t->r->finish = ct_answer_finish_reason(answer);
    a = add_event(t, CARAT_END, (ct_str){0});
    if (a)
        a->event.finish = t->r->finish;
}

/* How the request as a whole ended: as its only answer did, or as the engine says. */
static const char *finish_of(const ct_api_request *r, ct_finish finish)
{
    if (r->failed)
        return "error";
    return r->finish && (r->n_choices == 1 || r->cancelled) ? r->finish : ct_finish_name(finish);
}

static void take_done(taking *t)
{
    const ct_usage *u = &t->reply->u.done.usage;
    const char *error = t->r->failed ? t->r->error : t->reply->u.done.error;
    const bool bad = t->r->failed || t->reply->u.done.status;
    ct_api_event *a = add_event(t, CARAT_DONE, bad ? ct_str_of(error) : (ct_str){0});

    if (a) {
        a->event.error = bad ? "" : NULL; /* its text, once its place is settled */
        a->event.finish = finish_of(t->r, t->reply->u.done.finish);
        a->event.usage = (carat_usage){
            .prompt_tokens = u->prompt_tokens,
            .cached_tokens = u->cached_tokens,
            .answer_tokens = u->answer_tokens,
            .reasoning_tokens = t->r->reasoning_tokens,
            .queue_s = u->queue_s,
            .prefill_s = u->prefill_s,
            .decode_s = u->decode_s,
        };
    }
    pthread_mutex_lock(&t->e->lock);
    ct_api_request_deinit(t->r);
    pthread_mutex_unlock(&t->e->lock);
}

static void take_reply(carat_engine *e, const ct_reply *reply)
{
    taking t = {e, &e->request[reply->tag], reply};

    switch (reply->kind) {
    case CT_REPLY_PROMPT:
        break;
    case CT_REPLY_TOKEN:
        take_token(&t);
        break;
    case CT_REPLY_CHOICE:
        take_end(&t);
        break;
    case CT_REPLY_DONE:
        take_done(&t);
        break;
    }
}

/* The next event of the reply taken last. */
static bool give(carat_engine *e, carat_event *event)
{
    const ct_api_event *a;

    if (e->n_given == e->n_events)
        return false;
    a = &e->event[e->n_given++];
    *event = a->event;
    event->text = e->text.p + a->text_at;
    if (event->error) {
        event->error = event->text;
        event->text = "";
        event->text_bytes = 0;
    }
    return true;
}

bool carat_poll(carat_engine *engine, double timeout_s, carat_event *event)
{
    ct_reply reply;

    while (!give(engine, event)) {
        engine->n_events = engine->n_given = 0;
        ct_buf_clear(&engine->text);
        while (ct_engine_poll(engine->engine, &reply, 1) == 0)
            if (!(timeout_s > 0) || !ct_engine_wait(engine->engine, timeout_s))
                return false;
        take_reply(engine, &reply);
    }
    return true;
}
