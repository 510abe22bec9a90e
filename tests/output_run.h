/* Runs an output reader over ids in steps of one size, and writes down what came. */
#ifndef CT_TESTS_OUTPUT_RUN_H
#define CT_TESTS_OUTPUT_RUN_H

#include "support.h"

#include "base/checked.h"
#include "text/message.h"

#define RUN_CAP ((size_t)64 << 20)

static const size_t run_steps[] = {1, 2, 7, 20, SIZE_MAX};

typedef struct output_run {
    const ct_tokenizer *t;
    const ct_tools *tools;
    ct_message *message;
    ct_buf whole;  /* the message as JSON */
    ct_buf stream; /* the events, texts of equal kind joined */
    const char *finish;
    uint64_t n_reasoning;
    int last; /* kind of the event before */
    ct_error err;
} output_run;

static inline void run_init(output_run *r, const ct_tokenizer *t, const ct_tools *tools)
{
    *r = (output_run){.t = t, .tools = tools};
    test_ok(ct_message_create(&r->message, RUN_CAP, &r->err), &r->err);
    ct_buf_init(&r->whole, 8 * RUN_CAP);
    ct_buf_init(&r->stream, 8 * RUN_CAP);
}

static inline void run_deinit(output_run *r)
{
    ct_message_destroy(r->message);
    ct_buf_deinit(&r->whole);
    ct_buf_deinit(&r->stream);
}

static inline ct_status run_event(void *ctx, const ct_event *e, ct_error *err)
{
    output_run *r = ctx;

    if (r->last != (int)e->kind || e->kind >= CT_EVENT_CALL_END)
        ct_buf_addf(&r->stream, "%c%u:", "\1\2\3\4\5\6"[e->kind], e -> call);
    r->last = (int)e->kind;
    ct_buf_add(&r->stream, e->text.p, e->text.n);
    return ct_message_add(r->message, e, err);
}

static inline void run_ids(output_run *r, const ct_ids *prompt, const ct_ids *ids, size_t step,
                           ct_output_end end)
{
    ct_output *o;
    size_t n;

    ct_message_clear(r->message);
    ct_buf_clear(&r->whole);
    ct_buf_clear(&r->stream);
    r->last = -1;
    test_ok(ct_output_create(&o, r->t, r->tools, prompt->id, prompt->n, &r->err), &r->err);
    for (size_t i = 0; i < ids->n; i += n) {
        n = ct_min_size(step, ids->n - i);
        test_ok(ct_output_add(o, ids->id + i, n, run_event, r, &r->err), &r->err);
    }
    test_ok(ct_output_finish(o, end, run_event, r, &r->err), &r->err);
    ct_message_put_members(r->message, CT_STR("call_"), &r->whole);
    r->finish = ct_output_finish_reason(o);
    r->n_reasoning = ct_output_reasoning_tokens(o);
    ct_output_destroy(o);
}

/* Whether every way of cutting the ids gives what one step gives. */
static inline bool run_all_steps(output_run *r, output_run *other, const ct_ids *prompt,
                                 const ct_ids *ids, ct_output_end end)
{
    run_ids(r, prompt, ids, SIZE_MAX, end);
    for (size_t i = 0; i + 1 < CT_LEN(run_steps); i++) {
        run_ids(other, prompt, ids, run_steps[i], end);
        if (!ct_str_eq(ct_buf_str(&r->whole), ct_buf_str(&other->whole)) ||
            !ct_str_eq(ct_buf_str(&r->stream), ct_buf_str(&other->stream)) ||
            r->finish != other->finish || r->n_reasoning != other->n_reasoning) {
            print_error("in steps of %zu:\n  %.*s %s\nat once:\n  %.*s %s\n", run_steps[i],
                        CT_STR_ARG(ct_buf_str(&other->whole)), other->finish,
                        CT_STR_ARG(ct_buf_str(&r->whole)), r->finish);
            return false;
        }
    }
    return true;
}

#endif
