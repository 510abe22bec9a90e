/* The output reader: ids to text, delimiters, thoughts and content. */
#include "text/output.h"

#include "base/checked.h"
#include "text/output_impl.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>

static const char label[] = "thought\n";
#define LABEL      ((ct_str){label, sizeof label - 1})
#define LABEL_WORD ((ct_str){label, sizeof label - 2})

/* Text joined into one event, at most. */
#define MAX_EVENT_BYTES ((size_t)1 << 16)
/* More than 262,144 pieces of the longest kind, 48 bytes: no answer that a model can give
 * has a longer call.  One that has is text from there on. */
#define MAX_CALL_BYTES ((size_t)16 << 20)
#define MAX_JSON_BYTES ((size_t)256 << 20)
#define MAX_HELD_BYTES ((size_t)1 << 20)

/* --- events -------------------------------------------------------------------- */

static ct_status flush_out(ct_output *o)
{
    ct_event e = {.kind = o->out_kind, .call = o->n_calls, .text = ct_buf_str(&o->out)};
    ct_status st = CT_OK;

    if (o->out.failed || o->held.failed || o->piece.failed)
        return ct_fail(o->err, CT_ELIMIT, "no memory for %zu bytes of the answer",
                       o->out.n + o->held.n + o->piece.n);
    if (o->out.n)
        st = o->fn(o->ctx, &e, o->err);
    ct_buf_clear(&o->out);
    return st;
}

ct_status ct_output_event(ct_output *o, ct_event_kind kind, ct_str text)
{
    ct_event e = {.kind = kind, .call = o->n_calls, .text = text};
    ct_status st = flush_out(o);

    return st ? st : o->fn(o->ctx, &e, o->err);
}

ct_status ct_output_text(ct_output *o, ct_event_kind kind, ct_str text)
{
    ct_status st = CT_OK;

    if (o->out.n && (o->out_kind != kind || o->out.n > MAX_EVENT_BYTES))
        st = flush_out(o);
    o->out_kind = kind;
    ct_buf_add(&o->out, text.p, text.n);
    return st;
}

ct_status ct_output_content(ct_output *o, ct_str text)
{
    return ct_output_text(o, CT_EVENT_CONTENT, text);
}

/* --- thoughts ------------------------------------------------------------------ */

/* The template prints one newline behind the label and one before the closer; neither is
 * of the thought.  The last newline waits, therefore, for what follows. */
static ct_status thought_text(ct_output *o, ct_str text)
{
    ct_status st = CT_OK;

    if (text.n == 0)
        return CT_OK;
    if (o->newline)
        st = ct_output_text(o, CT_EVENT_REASONING, CT_STR("\n"));
    o->reasoned |= o->newline || text.n > 1 || text.p[0] != '\n';
    o->newline = text.p[text.n - 1] == '\n';
    text.n -= o->newline;
    return st ? st : ct_output_text(o, CT_EVENT_REASONING, text);
}

/* Takes what was held as text of the thought, from byte `at` on. */
static ct_status thought_held(ct_output *o, size_t at)
{
    ct_status st;

    o->state = CT_IN_THOUGHT;
    st = thought_text(o, (ct_str){o->held.n ? o->held.p + at : NULL, o->held.n - at});
    ct_buf_clear(&o->held);
    return st;
}

static ct_status label_text(ct_output *o, ct_str text)
{
    ct_str want = {label + o->label_at, LABEL.n - o->label_at};
    size_t n;

    ct_buf_add(&o->held, text.p, text.n);
    n = ct_min_size(o->held.n, want.n);
    if (memcmp(o->held.p, want.p, n) != 0)
        return thought_held(o, 0);
    return n == want.n ? thought_held(o, n) : CT_OK;
}

/* The thought ends before its label was read: the word alone is the label too. */
static ct_status end_label(ct_output *o)
{
    bool is_label = o->label_at + o->held.n == LABEL_WORD.n;

    return thought_held(o, is_label ? o->held.n : 0);
}

/* --- content ------------------------------------------------------------------- */

static bool may_become(ct_str text, ct_str whole)
{
    return text.n == 0 || (text.n <= whole.n && memcmp(text.p, whole.p, text.n) == 0);
}

static ct_status content_held(ct_output *o)
{
    ct_status st = ct_output_content(o, ct_buf_str(&o->held));

    o->may_label = o->may_call = false;
    ct_buf_clear(&o->held);
    return st;
}

/* The call goes on as if its opener had come. */
static ct_status take_call(ct_output *o)
{
    o->may_label = o->may_call = false;
    ct_output_call_open(o);
    /* Taken over before anything uses `held` again. */
    ct_buf_add(&o->raw, o->held.p, o->held.n);
    ct_buf_clear(&o->held);
    return ct_output_name_text(o, (ct_str){0});
}

static ct_status content_text(ct_output *o, ct_str text)
{
    ct_str held;
    int call;

    if (!o->may_label && !o->may_call)
        return ct_output_content(o, text);
    ct_buf_add(&o->held, text.p, text.n);
    held = ct_buf_str(&o->held);
    if (o->may_label && ct_str_starts(held, label)) {
        o->may_label = o->may_call = false;
        o->n_reasoning += o->n_ids;
        return thought_held(o, LABEL.n);
    }
    call = o->may_call ? ct_output_opens_call(o->tools, held) : -1;
    if (call == 1)
        return take_call(o);
    if (call == 0 || (o->may_label && may_become(held, LABEL)))
        return CT_OK;
    return content_held(o);
}

/* --- ids ----------------------------------------------------------------------- */

static ct_status add_text(ct_output *o, ct_str text)
{
    if (text.n == 0)
        return CT_OK;
    switch (o->state) {
    case CT_IN_CONTENT:
        return content_text(o, text);
    case CT_IN_LABEL:
        return label_text(o, text);
    case CT_IN_THOUGHT:
        return thought_text(o, text);
    case CT_IN_NAME:
        return ct_output_name_text(o, text);
    case CT_IN_ARGS:
        return ct_output_args_text(o, text);
    case CT_IN_TAIL:
        return ct_output_tail_text(o, text);
    }
    return CT_OK;
}

static ct_status add_piece(ct_output *o, uint32_t id)
{
    ct_status st;

    ct_buf_clear(&o->piece);
    st = ct_detok_add(&o->detok, id, &o->piece, o->err);
    return st ? st : add_text(o, ct_buf_str(&o->piece));
}

/* Half a character does not reach over a delimiter. */
static ct_status end_piece(ct_output *o)
{
    ct_buf_clear(&o->piece);
    ct_detok_finish(&o->detok, &o->piece);
    return add_text(o, ct_buf_str(&o->piece));
}

/* Ends what is open, as something else begins. */
static ct_status leave(ct_output *o)
{
    ct_status st = end_piece(o);

    if (st)
        return st;
    switch (o->state) {
    case CT_IN_CONTENT:
        st = content_held(o);
        break;
    case CT_IN_LABEL:
        st = end_label(o);
        break;
    case CT_IN_THOUGHT:
        o->newline &= o->reasoned; /* nothing that it could part from what follows */
        break;
    case CT_IN_NAME:
    case CT_IN_ARGS:
    case CT_IN_TAIL:
        st = ct_output_call_close(o, true);
        break;
    }
    o->state = CT_IN_CONTENT;
    return st;
}

static ct_status open_channel(ct_output *o)
{
    ct_status st = leave(o);

    o->state = CT_IN_LABEL;
    o->label_at = 0;
    return st;
}

static ct_status close_channel(ct_output *o)
{
    ct_status st;

    if (o->state > CT_IN_THOUGHT)
        return CT_OK; /* of a thought that the call has ended */
    st = end_piece(o);
    if (st)
        return st;
    if (o->may_label && ct_str_eq(ct_buf_str(&o->held), LABEL_WORD)) {
        o->n_reasoning += o->n_ids;
        ct_buf_clear(&o->held);
    }
    st = leave(o);
    o->may_call = true;
    return st;
}

static ct_status open_call(ct_output *o)
{
    ct_status st = leave(o);

    ct_output_call_open(o);
    return st;
}

static ct_status close_call(ct_output *o)
{
    ct_status st;

    if (o->state <= CT_IN_THOUGHT)
        return CT_OK;
    st = end_piece(o);
    if (st || o->state <= CT_IN_THOUGHT)
        return st;
    st = ct_output_call_close(o, false);
    o->may_call = true;
    return st;
}

static ct_status add_quote(ct_output *o)
{
    ct_status st = end_piece(o);

    if (st)
        return st;
    return o->state == CT_IN_ARGS ? ct_output_args_quote(o) : add_text(o, CT_STR("\""));
}

static ct_status add_special(ct_output *o, uint32_t id)
{
    const ct_output_marks *m = &o->mark;

    if (id == m->call_open)
        return open_call(o);
    if (id == m->call_close)
        return close_call(o);
    if (id == m->channel_open)
        return open_channel(o);
    if (id == m->channel_close)
        return close_channel(o);
    if (id == m->quote)
        return add_quote(o);
    for (size_t i = 0; i < CT_LEN(m->stop); i++)
        if (id == m->stop[i])
            return leave(o);
    return CT_OK;
}

static bool in_thought(const ct_output *o)
{
    return o->state == CT_IN_LABEL || o->state == CT_IN_THOUGHT;
}

static ct_status add_id(ct_output *o, uint32_t id)
{
    bool before = in_thought(o);
    ct_status st;

    if (id >= ct_tokenizer_vocab(o->t))
        return ct_fail(o->err, CT_EINVAL,
                       "token id %" PRIu32 " is not in the vocabulary of %" PRIu32, id,
                       ct_tokenizer_vocab(o->t));
    o->n_ids++;
    st = ct_tokenizer_is_special(o->t, id) ? add_special(o, id) : add_piece(o, id);
    /* A thought's ids, its opener and its closer; not the call or stop that ended it. */
    o->n_reasoning += (before && (in_thought(o) || id == o->mark.channel_close)) ||
                      (!before && id == o->mark.channel_open);
    return st;
}

/* --- interface ----------------------------------------------------------------- */

static void find_marks(ct_output *o)
{
    const ct_tokenizer *t = o->t;

    o->mark = (ct_output_marks){
        .call_open = ct_tokenizer_special(t, CT_STR("<|tool_call>")),
        .call_close = ct_tokenizer_special(t, CT_STR("<tool_call|>")),
        .channel_open = ct_tokenizer_special(t, CT_STR("<|channel>")),
        .channel_close = ct_tokenizer_special(t, CT_STR("<channel|>")),
        .quote = ct_tokenizer_special(t, CT_STR("<|\"|>")),
        .stop = {ct_tokenizer_special(t, CT_STR("<turn|>")),
                 ct_tokenizer_special(t, CT_STR("<|tool_response>")),
                 ct_tokenizer_special(t, CT_STR("<eos>"))},
    };
}

/* The last control token of the prompt says whether it ends inside a thought. */
static ct_status read_prompt(ct_output *o, const uint32_t *prompt, size_t n, ct_error *err)
{
    size_t at = n;
    ct_detok d;
    ct_status st = CT_OK;

    while (at && !ct_tokenizer_is_special(o->t, prompt[at - 1]))
        at--;
    if (at == 0 || prompt[at - 1] != o->mark.channel_open)
        return CT_OK;
    o->state = CT_IN_THOUGHT;
    o->may_label = o->may_call = false;
    ct_detok_init(&d, o->t, false);
    for (; !st && at < n && o->piece.n <= LABEL.n; at++)
        st = ct_detok_add(&d, prompt[at], &o->piece, err);
    if (!st && o->piece.n < LABEL.n && may_become(ct_buf_str(&o->piece), LABEL)) {
        o->state = CT_IN_LABEL;
        o->label_at = o->piece.n;
    }
    ct_buf_clear(&o->piece);
    return st;
}

ct_status ct_output_create(ct_output **out, const ct_tokenizer *t, const ct_tools *tools,
                           const uint32_t *prompt, size_t n_prompt, ct_error *err)
{
    ct_output *o = calloc(1, sizeof *o);
    ct_status st;

    if (!o)
        return ct_fail(err, CT_ELIMIT, "no memory for %zu bytes", sizeof *o);
    o->t = t;
    o->tools = tools;
    o->may_label = o->may_call = true;
    ct_detok_init(&o->detok, t, false);
    ct_buf_init(&o->piece, MAX_HELD_BYTES);
    ct_buf_init(&o->held, MAX_HELD_BYTES);
    ct_buf_init(&o->raw, MAX_CALL_BYTES);
    ct_buf_init(&o->json, MAX_JSON_BYTES);
    ct_buf_init(&o->out, MAX_JSON_BYTES);
    find_marks(o);
    st = ct_call_args_create(&o->args, err);
    if (!st)
        st = read_prompt(o, prompt, n_prompt, err);
    if (st) {
        ct_output_destroy(o);
        return st;
    }
    *out = o;
    return CT_OK;
}

void ct_output_destroy(ct_output *o)
{
    if (!o)
        return;
    ct_call_args_destroy(o->args);
    ct_buf_deinit(&o->piece);
    ct_buf_deinit(&o->held);
    ct_buf_deinit(&o->raw);
    ct_buf_deinit(&o->json);
    ct_buf_deinit(&o->out);
    free(o);
}

static void begin(ct_output *o, ct_event_fn *fn, void *ctx, ct_error *err)
{
    assert(!o->finished);
    o->fn = fn;
    o->ctx = ctx;
    o->err = err;
}

ct_status ct_output_add(ct_output *o, const uint32_t *ids, size_t n, ct_event_fn *fn, void *ctx,
                        ct_error *err)
{
    ct_status st = CT_OK;

    begin(o, fn, ctx, err);
    for (size_t i = 0; !st && i < n; i++)
        st = add_id(o, ids[i]);
    return st ? st : flush_out(o);
}

ct_status ct_output_finish(ct_output *o, ct_output_end how, ct_event_fn *fn, void *ctx,
                           ct_error *err)
{
    ct_status st;

    begin(o, fn, ctx, err);
    st = end_piece(o);
    /* No closer came, so the newline is of the thought. */
    if (!st && o->state == CT_IN_THOUGHT && o->newline)
        st = ct_output_text(o, CT_EVENT_REASONING, CT_STR("\n"));
    if (!st && how == CT_OUTPUT_LENGTH)
        st = ct_output_call_drop(o);
    if (!st)
        st = leave(o);
    o->how = how;
    o->finished = true;
    return st ? st : flush_out(o);
}

const char *ct_output_finish_reason(const ct_output *o)
{
    if (o->how == CT_OUTPUT_LENGTH)
        return "length";
    return o->n_calls ? "tool_calls" : "stop";
}

uint64_t ct_output_reasoning_tokens(const ct_output *o)
{
    return o->n_reasoning;
}
