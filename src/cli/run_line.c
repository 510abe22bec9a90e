#include "cli/run_line.h"

#include "base/checked.h"
#include "cli/run_ask.h"
#include "text/openai_messages.h"

#include <inttypes.h>

#define ARENA_BYTES ((size_t)1 << 30) /* address space for one line's values */

/* What a line being read goes through. */
typedef struct reader {
    ct_run_line *out;
    const ct_run_line_context *context;
    const ct_value *line;
    ct_error *err;
} reader;

static const ct_value *member(const reader *r, const char *key)
{
    const ct_value *v = ct_value_get(r->line, key);

    return ct_chat_is_null(v) ? NULL : v;
}

static ct_status must_be(const reader *r, const char *key, const char *what, const ct_value *v)
{
    return ct_fail(r->err, CT_EINVAL, "%s: must be %s, not %s", key, what, ct_value_kind_name(v));
}

/* --- members -------------------------------------------------------------------- */

static ct_status read_bool(const reader *r, const char *key, bool *out)
{
    const ct_value *v = member(r, key);

    if (v && v->kind != CT_VALUE_BOOL)
        return must_be(r, key, "true or false", v);
    if (v)
        *out = v->u.boolean;
    return CT_OK;
}

static ct_status read_str(const reader *r, const char *key, ct_str *out)
{
    const ct_value *v = member(r, key);

    if (v && v->kind != CT_VALUE_STRING)
        return must_be(r, key, "a string", v);
    if (v)
        *out = ct_value_text(v);
    return CT_OK;
}

static ct_status read_double(const reader *r, const char *key, double *out)
{
    const ct_value *v = member(r, key);

    if (v && v->kind != CT_VALUE_INT && v->kind != CT_VALUE_FLOAT)
        return must_be(r, key, "a number", v);
    if (v)
        *out = v->kind == CT_VALUE_INT ? (double)v->u.integer : v->u.number;
    return CT_OK;
}

static ct_status read_u32(const reader *r, const char *key, uint32_t least, uint32_t *out)
{
    const ct_value *v = member(r, key);

    if (!v)
        return CT_OK;
    if (v->kind != CT_VALUE_INT)
        return must_be(r, key, "a whole number", v);
    if (v->u.integer < least || v->u.integer > INT32_MAX)
        return ct_fail(r->err, CT_EINVAL, "%s: %" PRId64 " is not from %" PRIu32 " to %d", key,
                       v->u.integer, least, INT32_MAX);
    *out = (uint32_t)v->u.integer;
    return CT_OK;
}

static ct_status read_seed(const reader *r, uint64_t *out)
{
    const ct_value *v = member(r, "seed");

    if (!v)
        return CT_OK;
    if (v->kind != CT_VALUE_INT || v->u.integer < 0)
        return ct_fail(r->err, CT_EINVAL,
                       "seed: must be a whole number from 0 to %" PRId64 ", not %s", INT64_MAX,
                       v->kind == CT_VALUE_INT ? "a negative one" : ct_value_kind_name(v));
    *out = (uint64_t)v->u.integer;
    return CT_OK;
}

static ct_status add_stop(const reader *r, const ct_value *v)
{
    ct_run_line *l = r->out;

    if (v->kind != CT_VALUE_STRING)
        return must_be(r, "stop", "a string or an array of strings", v);
    if (l->n_stop == CT_LEN(l->stop))
        return ct_fail(r->err, CT_EINVAL, "stop: more than %zu texts", CT_LEN(l->stop));
    l->stop[l->n_stop++] = ct_value_text(v);
    return CT_OK;
}

static ct_status read_stop(const reader *r)
{
    const ct_option_list *given = &r->context->opt->sampling.stop;
    const ct_value *v = member(r, "stop");
    ct_status st = CT_OK;

    if (!v) {
        for (size_t i = 0; i < given->n; i++)
            r->out->stop[r->out->n_stop++] = ct_str_of(given->item[i]);
        return CT_OK;
    }
    if (v->kind != CT_VALUE_LIST)
        return add_stop(r, v);
    for (size_t i = 0; !st && i < v->u.list.n; i++)
        st = add_stop(r, &v->u.list.item[i]);
    return st;
}

/* Ranges are the engine's to check, with the rest. */
static ct_status read_sampling(const reader *r)
{
    ct_sampling *p = &r->out->sampling;
    const struct {
        const char *key;
        double *out;
    } numbers[] = {
        {"temperature", &p->temperature},
        {"top_p", &p->top_p},
        {"min_p", &p->min_p},
        {"typical_p", &p->typical_p},
        {"repetition_penalty", &p->repetition_penalty},
        {"presence_penalty", &p->presence_penalty},
        {"frequency_penalty", &p->frequency_penalty},
    };
    ct_status st = CT_OK;

    for (size_t i = 0; !st && i < CT_LEN(numbers); i++)
        st = read_double(r, numbers[i].key, numbers[i].out);
    if (!st)
        st = read_u32(r, "top_k", 0, &p->top_k);
    if (!st)
        st = read_u32(r, "min_tokens", 0, &p->min_tokens);
    if (!st)
        st = read_bool(r, "ignore_eos", &p->ignore_eos);
    if (!st)
        st = read_seed(r, &p->seed);
    return st ? st : read_stop(r);
}

/* --- prompts -------------------------------------------------------------------- */

static ct_status encode(const reader *r, ct_str text)
{
    return ct_tokenizer_encode(r->context->tokenizer, text, CT_SPECIAL_MATCH, &r->out->prompt,
                               r->err);
}

static ct_status read_ids(const reader *r, const ct_value *ids)
{
    const uint32_t vocab = ct_tokenizer_vocab(r->context->tokenizer);
    ct_status st = CT_OK;

    if (ids->kind != CT_VALUE_LIST)
        return must_be(r, "ids", "an array of token ids", ids);
    for (size_t i = 0; !st && i < ids->u.list.n; i++) {
        const ct_value *v = &ids->u.list.item[i];

        if (v->kind != CT_VALUE_INT)
            return ct_fail(r->err, CT_EINVAL, "ids[%zu]: must be a token id, not %s", i,
                           ct_value_kind_name(v));
        if (v->u.integer < 0 || v->u.integer >= vocab)
            return ct_fail(r->err, CT_EINVAL,
                           "ids[%zu]: %" PRId64 " is not in the vocabulary of %" PRIu32, i,
                           v->u.integer, vocab);
        st = ct_ids_add(&r->out->prompt, (uint32_t)v->u.integer, r->err);
    }
    return st;
}

static ct_status read_question(const reader *r)
{
    const ct_chat_template *t = r->context->chat;
    ct_run_ask ask = {0};
    bool raw = false;
    ct_buf text;
    ct_status st = read_bool(r, "raw", &raw);

    if (!st)
        st = read_str(r, "prompt", &ask.prompt);
    if (!st)
        st = read_str(r, "system", &ask.system);
    if (!st)
        st = read_bool(r, "think", &ask.think);
    if (st)
        return st;
    if (raw && (ask.system.p || ask.think))
        return ct_fail(r->err, CT_EINVAL, "%s: needs the chat template, which raw leaves out",
                       ask.system.p ? "system" : "think");
    if (raw)
        return encode(r, ask.prompt);
    r->out->chat = true;
    ct_buf_init(&text, CT_JINJA_MAX_OUTPUT_BYTES);
    st = ct_run_ask_render(&text, &ask, t, &r->out->arena, r->err);
    if (!st)
        st = encode(r, ct_buf_str(&text));
    ct_buf_deinit(&text);
    return st;
}

static ct_status read_messages(const reader *r)
{
    const ct_chat_template *t = r->context->chat;
    ct_arena *a = &r->out->arena;
    ct_chat_request request;
    ct_buf text;
    ct_status st = ct_openai_request(&request, r->line, a, r->err);

    if (!st)
        st = ct_tools_from(&r->out->tools, request.tools, a, r->err);
    if (st)
        return st;
    r->out->chat = true;
    ct_buf_init(&text, CT_JINJA_MAX_OUTPUT_BYTES);
    st = ct_chat_render(t->jinja, ct_buf_str(&t->bos), &request.render, a, &text, r->err);
    if (!st)
        st = encode(r, ct_buf_str(&text));
    ct_buf_deinit(&text);
    return st;
}

/* Members that belong to another way of asking. */
static ct_status refuse_members(const reader *r, const char *with, const char *const *keys,
                                size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (member(r, keys[i]))
            return ct_fail(r->err, CT_EINVAL, "%s: does not go with %s", keys[i], with);
    return CT_OK;
}

static ct_status read_prompt(const reader *r)
{
    static const char *const of_messages[] = {"tools", "chat_template_kwargs"};
    static const char *const of_prompt[] = {"raw", "system", "think"};
    static const char *const of_neither[] = {"raw", "system", "think", "tools",
                                             "chat_template_kwargs"};
    const ct_value *prompt = member(r, "prompt"), *messages = member(r, "messages"),
                   *ids = member(r, "ids");
    ct_status st;

    if (!prompt + !messages + !ids != 2)
        return ct_fail(r->err, CT_EINVAL, "a line has one of prompt, messages and ids; this has %s",
                       prompt || messages || ids ? "several" : "none");
    if (prompt) {
        st = refuse_members(r, "prompt", of_messages, CT_LEN(of_messages));
        return st ? st : read_question(r);
    }
    if (messages) {
        st = refuse_members(r, "messages", of_prompt, CT_LEN(of_prompt));
        return st ? st : read_messages(r);
    }
    st = refuse_members(r, "ids", of_neither, CT_LEN(of_neither));
    return st ? st : read_ids(r, ids);
}

/* --- the line ------------------------------------------------------------------- */

static ct_status check_line(const reader *r)
{
    static const char *const keys[] = {"id",
                                       "prompt",
                                       "messages",
                                       "ids",
                                       "system",
                                       "tools",
                                       "chat_template_kwargs",
                                       "raw",
                                       "think",
                                       "max_tokens",
                                       "temperature",
                                       "top_k",
                                       "top_p",
                                       "min_p",
                                       "typical_p",
                                       "repetition_penalty",
                                       "presence_penalty",
                                       "frequency_penalty",
                                       "seed",
                                       "stop",
                                       "min_tokens",
                                       "ignore_eos"};

    if (r->line->kind != CT_VALUE_MAP)
        return ct_fail(r->err, CT_EINVAL, "a line must be an object, not %s",
                       ct_value_kind_name(r->line));
    return ct_chat_check_keys(r->line, keys, CT_LEN(keys), r->err);
}

static ct_status read_line(const reader *r)
{
    ct_status st = r->line->kind == CT_VALUE_MAP ? read_str(r, "id", &r->out->id) : CT_OK;

    if (!st)
        st = check_line(r);
    if (!st)
        st = read_u32(r, "max_tokens", 1, &r->out->max_new);
    if (!st)
        st = read_sampling(r);
    return st ? st : read_prompt(r);
}

ct_status ct_run_line_read(ct_run_line *out, const ct_run_line_context *context, ct_str text,
                           ct_error *err)
{
    reader r = {.out = out, .context = context, .err = err};
    ct_status st;

    *out = (ct_run_line){.sampling = context->opt->sampling.p, .max_new = context->opt->max_new};
    out->sampling.seed += context->index;
    st = ct_arena_init(&out->arena, ARENA_BYTES, err);
    if (!st)
        st = ct_value_parse(&r.line, "line", text, &out->arena, err);
    return st ? st : read_line(&r);
}

void ct_run_line_deinit(ct_run_line *l)
{
    ct_ids_deinit(&l->prompt);
    ct_arena_deinit(&l->arena);
    *l = (ct_run_line){0};
}
