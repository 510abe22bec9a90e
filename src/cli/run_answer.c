#include "cli/run_answer.h"

#include "base/checked.h"
#include "base/json.h"

#include <inttypes.h>

#define MAX_TEXT_BYTES ((size_t)1 << 30)

ct_status ct_run_answer_init(ct_run_answer *a, const ct_answer_options *how, uint64_t seed,
                             ct_error *err)
{
    ct_status st = CT_OK;

    *a = (ct_run_answer){.n_prompt = how->n_prompt, .seed = seed};
    ct_buf_init(&a->text, MAX_TEXT_BYTES);
    ct_detok_init(&a->detok, how->tokenizer, true);
    if (how->chat)
        st = ct_message_create(&a->message, MAX_TEXT_BYTES, err);
    return st ? st : ct_answer_create(&a->reader, how, err);
}

void ct_run_answer_deinit(ct_run_answer *a)
{
    ct_answer_destroy(a->reader);
    ct_message_destroy(a->message);
    ct_ids_deinit(&a->ids);
    ct_buf_deinit(&a->text);
    *a = (ct_run_answer){0};
}

/* To whom an event goes. */
typedef struct audience {
    ct_message *message;
    ct_event_fn *show;
    void *ctx;
} audience;

static ct_status on_event(void *ctx, const ct_event *e, ct_error *err)
{
    audience *to = ctx;
    ct_status st = to->message ? ct_message_add(to->message, e, err) : CT_OK;

    return st || !to->show ? st : to->show(to->ctx, e, err);
}

static ct_status take_token(ct_run_answer *a, const ct_reply *reply, audience *to, ct_error *err)
{
    ct_status st;

    if (ct_answer_stopped(a->reader))
        return CT_OK; /* computed before the engine heard of it */
    st = ct_ids_add(&a->ids, reply->u.token.id, err);
    if (!st)
        st = ct_detok_add(&a->detok, reply->u.token.id, &a->text, err);
    if (!st)
        st = ct_answer_token(a->reader, reply, on_event, to, err);
    a->text.n -= ct_min_size(ct_answer_cut_bytes(a->reader), a->text.n);
    return st;
}

/* What was held back until here; or the text cut off before a stop string. */
static ct_status take_end(ct_run_answer *a, const ct_reply *reply, audience *to, ct_error *err)
{
    if (reply->u.end.by_string)
        a->text.n = (size_t)reply->u.end.text_bytes;
    else if (!ct_answer_stopped(a->reader))
        ct_detok_finish(&a->detok, &a->text);
    return ct_answer_end(a->reader, reply, on_event, to, err);
}

ct_status ct_run_answer_take(ct_run_answer *a, const ct_reply *reply, ct_event_fn *show, void *ctx,
                             ct_error *err)
{
    audience to = {a->message, show, ctx};

    switch (reply->kind) {
    case CT_REPLY_PROMPT:
        break;
    case CT_REPLY_TOKEN:
        return take_token(a, reply, &to, err);
    case CT_REPLY_CHOICE:
        return take_end(a, reply, &to, err);
    case CT_REPLY_DONE:
        a->done = true;
        a->finish = ct_answer_stopped(a->reader) ? CT_FINISH_STOP : reply->u.done.finish;
        a->usage = reply->u.done.usage;
        if (reply->u.done.status)
            return ct_fail(err, reply->u.done.status, "%s", reply->u.done.error);
    }
    return CT_OK;
}

void ct_run_answer_put(const ct_run_answer *a, ct_buf *json)
{
    ct_buf_addz(json, "\"text\": ");
    ct_json_put_str(json, ct_buf_str(&a->text));
    ct_buf_addz(json, ", \"ids\": [");
    for (size_t i = 0; i < a->ids.n; i++)
        ct_buf_addf(json, "%s%" PRIu32, i ? ", " : "", a->ids.id[i]);
    ct_buf_addz(json, "], ");
    if (a->message) {
        ct_message_put_members(a->message, CT_STR("call_"), json);
        ct_buf_addz(json, ", ");
    }
    ct_buf_addf(json,
                "\"finish_reason\": \"%s\", \"usage\": {\"prompt_tokens\": %zu, "
                "\"completion_tokens\": %zu, \"total_tokens\": %zu}, \"seed\": %" PRIu64
                ", \"timings\": {\"prefill_s\": %.6f, \"decode_s\": %.6f",
                ct_answer_finish_reason(a->reader), a->n_prompt, a->ids.n, a->n_prompt + a->ids.n,
                a->seed, a->usage.prefill_s, a->usage.decode_s);
}
