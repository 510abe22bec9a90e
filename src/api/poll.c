/* Events of the library: what the engine's replies amount to. */
#include "api/api.h"

#include "base/checked.h"
#include "base/clock.h"

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
    if (!t->r->failed) {
        snprintf(t->r->error, sizeof t->r->error, "%.*s", CT_REPLY_ERROR_BYTES - 1, err->text);
        t->r->failed = ct_api_status(err->status);
    }
    ct_engine_cancel(t->e->engine, t->reply->id);
}

static void fail_memory(taking *t)
{
    ct_error err;

    ct_fail(&err, CT_ELIMIT, "out of memory for the events of a token");
    fail(t, &err);
}

/* The answer is over, by the engine's word or by a stop string in its content. */
static void end_answer(taking *t, const ct_reply *end)
{
    ct_api_request *r = t->r;
    ct_answer *answer = r->answer[end->choice];
    ct_api_event *a;
    ct_error err;

    r->ended[end->choice] = true;
    if (ct_answer_end(answer, end, on_event, t, &err))
        fail(t, &err);
    r->answer_tokens += ct_answer_n_tokens(answer);
    r->reasoning_tokens += ct_answer_reasoning_tokens(answer);
    r->finish = ct_answer_finish_reason(answer);
    a = add_event(t, CARAT_END, (ct_str){0});
    if (a)
        a->event.finish = r->finish;
    else
        fail_memory(t);
}

/* Once every answer has ended here, what the engine still computes is for nobody. */
static void cancel_if_all_ended(taking *t)
{
    for (uint32_t i = 0; i < t->r->n_choices; i++)
        if (!t->r->ended[i])
            return;
    t->r->cancelled = true;
    ct_engine_cancel(t->e->engine, t->reply->id);
}

static void take_logprobs(carat_engine *e, carat_event *event, const ct_logprobs *from)
{
    event->logprob = from->logprob;
    event->top = e->top;
    event->n_top = from->n_top;
    for (uint32_t i = 0; i < from->n_top; i++)
        e->top[i] = (carat_logprob){from->top[i].id, from->top[i].logprob};
}

static void take_token(taking *t)
{
    const uint32_t choice = t->reply->choice;
    ct_api_event *a;
    ct_error err;

    if (t->r->ended[choice] || t->r->failed)
        return; /* computed before the engine heard of it */
    a = add_event(t, CARAT_TOKEN, (ct_str){0});
    if (!a) {
        fail_memory(t);
        return;
    }
    a->event.id = t->reply->u.token.id;
    if (t->reply->u.token.has_logprobs)
        take_logprobs(t->e, &a->event, &t->reply->u.token.logprobs);
    if (ct_answer_token(t->r->answer[choice], t->reply, on_event, t, &err)) {
        fail(t, &err);
    } else if (ct_answer_stopped(t->r->answer[choice])) {
        end_answer(t, &(ct_reply){.choice = choice, .u.end.finish = CT_FINISH_STOP});
        cancel_if_all_ended(t);
    }
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
    carat_engine *e = t->e;
    ct_api_request *r = t->r;
    const ct_usage *u = &t->reply->u.done.usage;
    const carat_status status = r->failed ? r->failed : ct_api_status(t->reply->u.done.status);

    snprintf(e->done_error, sizeof e->done_error, "%s",
             r->failed ? r->error : t->reply->u.done.error);
    e->done = (carat_event){
        .kind = CARAT_DONE,
        .request = t->reply->id,
        .user = r->user,
        .text = "",
        .logprob = NAN,
        .finish = finish_of(r, t->reply->u.done.finish),
        .usage = {.prompt_tokens = u->prompt_tokens,
                  .cached_tokens = u->cached_tokens,
                  .answer_tokens = r->answer_tokens,
                  .reasoning_tokens = r->reasoning_tokens,
                  .queue_s = u->queue_s,
                  .prefill_s = u->prefill_s,
                  .decode_s = u->decode_s},
        .status = status,
        .error = status ? e->done_error : NULL,
    };
    e->has_done = true;
    pthread_mutex_lock(&e->lock);
    ct_api_request_deinit(r);
    pthread_mutex_unlock(&e->lock);
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
        if (!t.r->ended[reply->choice])
            end_answer(&t, reply);
        break;
    case CT_REPLY_DONE:
        take_done(&t);
        break;
    }
}

/* The next event of the reply taken last, or NULL. */
static const carat_event *give(carat_engine *e)
{
    ct_api_event *a;

    if (e->n_given == e->n_events) {
        if (!e->has_done)
            return NULL;
        e->has_done = false;
        return &e->done;
    }
    a = &e->event[e->n_given++];
    a->event.text = e->text.p + a->text_at;
    return &a->event;
}

/* Waits for a reply until the clock says end_s. */
static bool next_reply(carat_engine *e, ct_reply *reply, double end_s)
{
    while (ct_engine_poll(e->engine, reply, 1) == 0) {
        double left = end_s - ct_now_s();

        if (!(left > 0) || !ct_engine_wait(e->engine, left))
            return false;
    }
    return true;
}

const carat_event *carat_poll(carat_engine *engine, double timeout_s)
{
    const double end_s = timeout_s > 0 ? ct_now_s() + timeout_s : 0;
    const carat_event *event;
    ct_reply reply;

    if (!engine)
        return NULL;
    for (event = give(engine); !event; event = give(engine)) {
        engine->n_events = engine->n_given = 0;
        ct_buf_clear(&engine->text);
        if (!next_reply(engine, &reply, end_s))
            return NULL;
        take_reply(engine, &reply);
    }
    return event;
}
