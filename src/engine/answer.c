#include "engine/answer.h"

#include "base/checked.h"

#include <stdlib.h>

/* Content is held back for stop strings, never more than one of them. */
#define MAX_TEXT_BYTES ((size_t)1 << 30)

struct ct_answer {
    bool chat;
    uint32_t min_tokens, n_tokens;
    ct_finish finish;
    bool stopped;

    ct_output *output; /* chat */
    ct_detok detok;    /* otherwise */
    bool engine_stops; /* otherwise, with stop strings: the engine says what is safe */

    ct_stop *stop;  /* chat with stop strings */
    ct_buf held;    /* content not yet given out */
    uint64_t given; /* bytes of content given out */

    /* Of the token or end under way. */
    ct_event_fn *fn;
    void *ctx;
};

ct_status ct_answer_create(ct_answer **out, const ct_answer_options *how, ct_error *err)
{
    ct_answer *a = calloc(1, sizeof *a);
    ct_status st = CT_OK;

    if (!a)
        return ct_fail(err, CT_ELIMIT, "out of memory for an answer");
    a->chat = how->chat;
    a->min_tokens = how->min_tokens;
    a->engine_stops = !how->chat && how->n_stop;
    ct_buf_init(&a->held, MAX_TEXT_BYTES);
    ct_detok_init(&a->detok, how->tokenizer, true);
    if (how->chat)
        st = ct_output_create(&a->output, how->tokenizer, how->tools, how->prompt, how->n_prompt,
                              err);
    if (!st && ct_answer_owns_stop(how))
        st = ct_stop_create(&a->stop, how->stop, how->n_stop, how->stop_include, err);
    if (st) {
        ct_answer_destroy(a);
        return st;
    }
    *out = a;
    return CT_OK;
}

void ct_answer_destroy(ct_answer *a)
{
    if (!a)
        return;
    ct_output_destroy(a->output);
    ct_stop_destroy(a->stop);
    ct_buf_deinit(&a->held);
    free(a);
}

/* Gives out content up to byte n of all content. */
static ct_status give(ct_answer *a, uint64_t n, ct_error *err)
{
    const size_t fresh = n > a->given ? (size_t)(n - a->given) : 0;
    const ct_event e = {.kind = CT_EVENT_CONTENT, .text = {a->held.p, fresh}};
    ct_status st;

    if (fresh == 0)
        return CT_OK;
    st = a->fn(a->ctx, &e, err);
    a->given = n;
    memmove(a->held.p, a->held.p + fresh, a->held.n - fresh);
    a->held.n -= fresh;
    return st;
}

static ct_status hold(ct_answer *a, ct_str text, ct_error *err)
{
    ct_buf_add(&a->held, text.p, text.n);
    if (a->held.failed)
        return ct_fail(err, CT_ELIMIT, "out of memory for %zu bytes of an answer", text.n);
    return CT_OK;
}

/* Content looks for stop strings; everything else passes, after the content before it. */
static ct_status on_event(void *ctx, const ct_event *e, ct_error *err)
{
    ct_answer *a = ctx;
    ct_stop_progress progress;
    ct_status st;

    if (a->stopped)
        return CT_OK;
    if (!a->stop)
        return a->fn(a->ctx, e, err);
    if (e->kind != CT_EVENT_CONTENT) {
        st = give(a, a->given + a->held.n, err);
        return st ? st : a->fn(a->ctx, e, err);
    }
    st = hold(a, e->text, err);
    if (st)
        return st;
    progress = ct_stop_feed(a->stop, e->text, a->n_tokens > a->min_tokens);
    a->stopped = progress.found;
    return give(a, progress.safe, err);
}

/* A plain answer's text, as far as the engine says that it is safe. */
static ct_status plain_token(ct_answer *a, const ct_reply *reply, ct_error *err)
{
    ct_status st = ct_detok_add(&a->detok, reply->u.token.id, &a->held, err);
    uint64_t n = a->given + a->held.n;

    if (a->engine_stops && reply->u.token.safe_bytes < n)
        n = reply->u.token.safe_bytes;
    return st ? st : give(a, n, err);
}

ct_status ct_answer_token(ct_answer *a, const ct_reply *reply, ct_event_fn *fn, void *ctx,
                          ct_error *err)
{
    if (a->stopped)
        return CT_OK;
    a->n_tokens++;
    a->fn = fn;
    a->ctx = ctx;
    if (a->chat)
        return ct_output_add(a->output, &reply->u.token.id, 1, on_event, a, err);
    return plain_token(a, reply, err);
}

ct_status ct_answer_end(ct_answer *a, const ct_reply *reply, ct_event_fn *fn, void *ctx,
                        ct_error *err)
{
    ct_status st;

    a->fn = fn;
    a->ctx = ctx;
    a->finish = a->stopped ? CT_FINISH_STOP : reply->u.end.finish;
    if (!a->chat) {
        ct_detok_finish(&a->detok, &a->held);
        return give(a, reply->u.end.by_string ? reply->u.end.text_bytes : a->given + a->held.n,
                    err);
    }
    st =
        ct_output_finish(a->output, a->finish == CT_FINISH_STOP ? CT_OUTPUT_STOP : CT_OUTPUT_LENGTH,
                         on_event, a, err);
    if (!st && !a->stopped)
        st = give(a, a->given + a->held.n, err);
    return st;
}

bool ct_answer_stopped(const ct_answer *a)
{
    return a->stopped;
}

size_t ct_answer_cut_bytes(const ct_answer *a)
{
    return a->stopped ? a->held.n : 0;
}

const char *ct_answer_finish_reason(const ct_answer *a)
{
    if (a->chat && a->finish == CT_FINISH_STOP)
        return ct_output_finish_reason(a->output);
    return ct_finish_name(a->finish);
}

uint32_t ct_answer_n_tokens(const ct_answer *a)
{
    return a->n_tokens;
}

uint64_t ct_answer_reasoning_tokens(const ct_answer *a)
{
    return a->chat ? ct_output_reasoning_tokens(a->output) : 0;
}
