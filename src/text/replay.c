/* Where the remainder starts.
 *
 * The request is rendered once more with the stored message reduced to what the template
 * must see of it: its calls, or a mark in place of its content.  Behind the mark stands
 * exactly what the template prints after the model's own turn: "<turn|>\n" or, after
 * calls, "<|tool_response>…".  The generated ids lose their stop id, which is the first
 * id of that remainder, so prompt + generated is a prefix of the new prompt.  The
 * remainder begins at a control token, where encoding in two parts changes no id. */
#include "text/replay.h"

#include "base/checked.h"
#include "text/ids.h"
#include "text/replay_store.h"
#include "text/value_canon.h"

#include <stdlib.h>

/* Stands for the model's text; found once or not used. */
#define MARK                                                                                       \
    "\xee\x80\x80"                                                                                 \
    "carat-replay"                                                                                 \
    "\xee\x80\x81"
#define MAX_CANDIDATES 64 /* latest answers of a request that are looked up */

struct ct_replay {
    ct_replay_store *store;
};

ct_status ct_replay_create(ct_replay **out, size_t cap_bytes, ct_error *err)
{
    ct_replay *r = calloc(1, sizeof *r);
    ct_status st;

    if (!r)
        return ct_fail(err, CT_ELIMIT, "no memory for the store of turns");
    st = ct_replay_store_create(&r->store, cap_bytes, err);
    if (st) {
        free(r);
        return st;
    }
    *out = r;
    return CT_OK;
}

void ct_replay_destroy(ct_replay *r)
{
    if (!r)
        return;
    ct_replay_store_destroy(r->store);
    free(r);
}

ct_replay_stats ct_replay_get_stats(ct_replay *r)
{
    return ct_replay_store_stats(r->store);
}

static bool is_assistant(const ct_value *m)
{
    const ct_value *role = ct_value_get(m, "role");

    return role && role->kind == CT_VALUE_STRING && ct_str_is(ct_value_text(role), "assistant");
}

static const ct_value *thought_of(const ct_value *m)
{
    const ct_value *v = ct_value_get(m, "reasoning_content");

    return v && v->kind == CT_VALUE_STRING ? v : NULL;
}

/* ---- keys ---- */

/* Content that is absent, null or empty says the same. */
static void put_message(ct_buf *out, const ct_value *m)
{
    static const char *const keys[] = {"content", "tool_calls", "tool_responses"};

    for (size_t i = 0; i < CT_LEN(keys); i++) {
        const ct_value *v = ct_value_get(m, keys[i]);
        bool nothing = !v || (v->kind == CT_VALUE_STRING && !v->u.text.n);

        ct_value_put_canon(out, nothing ? &(ct_value){.kind = CT_VALUE_NONE} : v);
    }
}

/* What a key has before any message. */
static void put_head(ct_buf *out, ct_str salt, const ct_value *request)
{
    static const char *const keys[] = {"tools", "enable_thinking", "preserve_thinking"};
    ct_value none = ct_value_none(), text = ct_value_str(salt);

    ct_value_put_canon(out, &text);
    for (size_t i = 0; i < CT_LEN(keys); i++) {
        const ct_value *v = ct_value_get(request, keys[i]);

        ct_value_put_canon(out, v ? v : &none);
    }
}

static bool has_prompt(const ct_value *request)
{
    const ct_value *v = ct_value_get(request, "add_generation_prompt");

    return v && v->kind == CT_VALUE_BOOL && v->u.boolean;
}

static ct_status no_memory(ct_error *err)
{
    return ct_fail(err, CT_ELIMIT, "no memory for a turn to keep");
}

ct_status ct_replay_put(ct_replay *r, ct_str salt, const ct_replay_turn *turn, ct_error *err)
{
    const ct_value *messages = ct_value_get(turn->request, "messages");
    const ct_value *thought = thought_of(turn->message);
    ct_replay_key key = {.hash = ct_replay_hash_start()};
    ct_buf before, message;
    ct_status st = CT_OK;

    if (!has_prompt(turn->request))
        return CT_OK;
    ct_buf_init(&before, SIZE_MAX);
    ct_buf_init(&message, SIZE_MAX);
    put_head(&before, salt, turn->request);
    key.hash = ct_replay_hash(key.hash, before.p, before.n);
    for (size_t i = 0; i < messages->u.list.n; i++) {
        size_t start = before.n;

        ct_value_put_canon(&before, &messages->u.list.item[i]);
        key.hash = ct_replay_hash(key.hash, before.p + start, before.n - start);
    }
    put_message(&message, turn->message);
    if (before.failed || message.failed) {
        st = no_memory(err);
    } else {
        key.before = ct_buf_str(&before);
        key.message = ct_buf_str(&message);
        if (thought)
            key.thought = ct_value_text(thought);
        ct_replay_store_put(r->store, &key, turn);
    }
    ct_buf_deinit(&before);
    ct_buf_deinit(&message);
    return st;
}

/* ---- the remainder ---- */

static bool has_calls(const ct_value *m)
{
    const ct_value *calls = ct_value_get(m, "tool_calls");

    return calls && calls->kind == CT_VALUE_LIST && calls->u.list.n;
}

/* The calls, the last of which has the mark as its only argument. */
static bool mark_calls(ct_value *out, const ct_value *calls, ct_arena *a)
{
    size_t n = calls->u.list.n;
    ct_value *item = ct_arena_zalloc(a, n, sizeof *item), arguments, function;
    ct_map_entry *e = ct_arena_zalloc(a, 1, sizeof *e);
    const ct_value *last = &calls->u.list.item[n - 1], *f = ct_value_get(last, "function");

    if (!item || !e || !f)
        return false;
    memcpy(item, calls->u.list.item, n * sizeof *item);
    e[0] = (ct_map_entry){CT_STR(MARK), ct_value_bool(true)};
    if (!ct_value_build_map(&arguments, e, 1, a) ||
        !ct_value_with(&function, f, CT_STR("arguments"), &arguments, a) ||
        !ct_value_with(&item[n - 1], last, CT_STR("function"), &function, a))
        return false;
    *out = ct_value_list(item, n, CT_LIST_LIST);
    return true;
}

/* The message with a mark for all that the model wrote. */
static bool mark_message(ct_value *out, const ct_value *m, ct_arena *a)
{
    ct_map_entry *e = ct_arena_zalloc(a, 2, sizeof *e);

    if (!e)
        return false;
    e[0] = (ct_map_entry){CT_STR("role"), ct_value_str(CT_STR("assistant"))};
    if (has_calls(m)) {
        e[1].key = CT_STR("tool_calls");
        if (!mark_calls(&e[1].value, ct_value_get(m, "tool_calls"), a))
            return false;
    } else {
        e[1] = (ct_map_entry){CT_STR("content"), ct_value_str(CT_STR(MARK))};
    }
    return ct_value_build_map(out, e, 2, a);
}

static bool mark_request(ct_value *out, const ct_value *request, size_t k, ct_arena *a)
{
    const ct_value *messages = ct_value_get(request, "messages");
    size_t n = messages->u.list.n;
    ct_value *item = ct_arena_zalloc(a, n, sizeof *item), list;

    if (!item)
        return false;
    memcpy(item, messages->u.list.item, n * sizeof *item);
    if (!mark_message(&item[k], &messages->u.list.item[k], a))
        return false;
    list = ct_value_list(item, n, CT_LIST_LIST);
    return ct_value_with(out, request, CT_STR("messages"), &list, a);
}

/* What stands behind the one mark, or {NULL, 0}. */
static ct_str behind_mark(ct_str text, bool calls)
{
    static const char call_tail[] = ":true}<tool_call|>";
    const char *at = text.n ? memmem(text.p, text.n, MARK, sizeof MARK - 1) : NULL;
    ct_str rest;

    if (!at)
        return (ct_str){0};
    at += sizeof MARK - 1;
    rest = (ct_str){at, text.n - (size_t)(at - text.p)};
    if (rest.n && memmem(rest.p, rest.n, MARK, sizeof MARK - 1))
        return (ct_str){0};
    if (!calls)
        return rest;
    if (!ct_str_starts(rest, call_tail))
        return (ct_str){0};
    return (ct_str){rest.p + sizeof call_tail - 1, rest.n - (sizeof call_tail - 1)};
}

/* ---- the ids that were generated ---- */

typedef struct markers {
    uint32_t eos, turn_end, call, call_end, response, thought, thought_end;
} markers;

static markers find_markers(const ct_tokenizer *t)
{
    return (markers){
        .eos = ct_tokenizer_special(t, CT_STR("<eos>")),
        .turn_end = ct_tokenizer_special(t, CT_STR("<turn|>")),
        .call = ct_tokenizer_special(t, CT_STR("<|tool_call>")),
        .call_end = ct_tokenizer_special(t, CT_STR("<tool_call|>")),
        .response = ct_tokenizer_special(t, CT_STR("<|tool_response>")),
        .thought = ct_tokenizer_special(t, CT_STR("<|channel>")),
        .thought_end = ct_tokenizer_special(t, CT_STR("<channel|>")),
    };
}

/* Whether the last of the two markers is the opening one. */
static bool is_open(const ct_ids *ids, size_t from, uint32_t open, uint32_t close)
{
    for (size_t i = ids->n; i > from; i--)
        if (ids->id[i - 1] == open || ids->id[i - 1] == close)
            return ids->id[i - 1] == open;
    return false;
}

/* Takes the stop id off; false when the answer is no whole turn that the remainder can
 * follow: a thought or a call left open, text behind the calls. */
static bool close_turn(ct_ids *ids, size_t n_prompt, const markers *m, bool calls)
{
    uint32_t last = ids->n > n_prompt ? ids->id[ids->n - 1] : CT_TOKEN_NONE;

    if (last != CT_TOKEN_NONE && (last == m->eos || last == m->turn_end || last == m->response))
        ids->n--;
    /* A prompt may end inside a thought. */
    if (is_open(ids, 0, m->thought, m->thought_end) || is_open(ids, n_prompt, m->call, m->call_end))
        return false;
    if (!calls)
        return ids->n == n_prompt || ids->id[ids->n - 1] != m->call_end;
    return ids->n > n_prompt && ids->id[ids->n - 1] == m->call_end;
}

/* Of the text behind the model's turn only one that begins at a control token can be
 * encoded by itself. */
static bool starts_special(const ct_tokenizer *t, const ct_ids *ids, size_t at)
{
    return at == ids->n || ct_tokenizer_is_special(t, ids->id[at]);
}

static ct_status add_remainder(const ct_chat_template *t, const ct_tokenizer *tokenizer,
                               const ct_value *request, size_t k, ct_arena *a, ct_ids *ids,
                               bool *done, ct_error *err)
{
    const ct_value *messages = ct_value_get(request, "messages");
    bool calls = has_calls(&messages->u.list.item[k]);
    size_t n = ids->n;
    ct_value marked;
    ct_buf text;
    ct_str rest;
    ct_status st;

    *done = false;
    if (!mark_request(&marked, request, k, a))
        return ct_fail(err, CT_ELIMIT, "the request exceeds the memory bound");
    ct_buf_init(&text, CT_JINJA_MAX_OUTPUT_BYTES);
    st = ct_chat_render(t->jinja, ct_buf_str(&t->bos), &marked, a, &text, err);
    if (!st) {
        rest = behind_mark(ct_buf_str(&text), calls);
        if (rest.n)
            st = ct_tokenizer_encode(tokenizer, rest, CT_SPECIAL_MATCH, ids, err);
        *done = !st && rest.n && starts_special(tokenizer, ids, n);
    }
    ct_buf_deinit(&text);
    return st;
}

/* ---- prompts ---- */

static ct_status plain_prompt(const ct_chat_template *t, const ct_tokenizer *tokenizer,
                              const ct_value *request, ct_arena *a, ct_ids *out, ct_error *err)
{
    ct_status st;
    ct_buf text;

    ct_buf_init(&text, CT_JINJA_MAX_OUTPUT_BYTES);
    st = ct_chat_render(t->jinja, ct_buf_str(&t->bos), request, a, &text, err);
    if (!st)
        st = ct_tokenizer_encode(tokenizer, ct_buf_str(&text), CT_SPECIAL_MATCH, out, err);
    ct_buf_deinit(&text);
    return st;
}

/* Answers of the request that may be stored, the latest last. */
typedef struct candidate {
    size_t k, n_before;
    uint64_t hash;
} candidate;

static size_t list_candidates(ct_buf *before, const ct_value *messages, uint64_t hash, candidate *c)
{
    size_t n = 0;

    for (size_t k = 0; k < messages->u.list.n; k++) {
        const ct_value *m = &messages->u.list.item[k];
        size_t start = before->n;

        if (is_assistant(m))
            c[n++ % MAX_CANDIDATES] = (candidate){k, before->n, hash};
        ct_value_put_canon(before, m);
        if (before->failed)
            return 0;
        hash = ct_replay_hash(hash, before->p + start, before->n - start);
    }
    return n;
}

/* Looks one answer up and, if it is stored, tries to go on from it. */
static ct_status try_turn(ct_replay *r, const candidate *c, const ct_buf *before,
                          const ct_chat_template *t, const ct_tokenizer *tokenizer,
                          const ct_value *request, ct_arena *a, ct_ids *ids, size_t *n_kept,
                          bool *done, ct_error *err)
{
    const ct_value *m = &ct_value_get(request, "messages")->u.list.item[c->k];
    const ct_value *thought = thought_of(m);
    ct_replay_key key = {.hash = c->hash, .before = {before->p, c->n_before}};
    markers marks = find_markers(tokenizer);
    size_t n_prompt = 0;
    bool found;
    ct_buf message;
    ct_status st;

    *done = false;
    ct_buf_init(&message, SIZE_MAX);
    put_message(&message, m);
    key.message = ct_buf_str(&message);
    if (thought)
        key.thought = ct_value_text(thought);
    st = message.failed ? no_memory(err)
                        : ct_replay_store_find(r->store, &key, ids, &n_prompt, &found, err);
    ct_buf_deinit(&message);
    if (st || !found || !close_turn(ids, n_prompt, &marks, has_calls(m)))
        return st;
    *n_kept = ids->n;
    return add_remainder(t, tokenizer, request, c->k, a, ids, done, err);
}

static ct_status try_turns(ct_replay *r, ct_str salt, const ct_chat_template *t,
                           const ct_tokenizer *tokenizer, const ct_value *request, ct_arena *a,
                           ct_ids *ids, size_t *n_kept, bool *done, ct_error *err)
{
    const ct_value *messages = ct_value_get(request, "messages");
    candidate c[MAX_CANDIDATES];
    ct_status st = CT_OK;
    size_t n, last;
    ct_buf before;

    ct_buf_init(&before, SIZE_MAX);
    put_head(&before, salt, request);
    n = list_candidates(&before, messages,
                        ct_replay_hash(ct_replay_hash_start(), before.p, before.n), c);
    last = n > MAX_CANDIDATES ? n - MAX_CANDIDATES : 0;
    for (; n > last && !st && !*done; n--) {
        ids->n = 0;
        st = try_turn(r, &c[(n - 1) % MAX_CANDIDATES], &before, t, tokenizer, request, a, ids,
                      n_kept, done, err);
    }
    ct_buf_deinit(&before);
    return st;
}

ct_status ct_replay_prompt(ct_replay *r, ct_str salt, const ct_chat_template *t,
                           const ct_tokenizer *tokenizer, const ct_value *request, ct_arena *a,
                           ct_ids *out, size_t *n_kept, ct_error *err)
{
    const ct_value *messages = ct_value_get(request, "messages");
    bool done = false;
    size_t kept = 0;
    ct_ids ids = {0};
    ct_status st = CT_OK;

    if (r && messages && messages->kind == CT_VALUE_LIST && has_prompt(request)) {
        st = try_turns(r, salt, t, tokenizer, request, a, &ids, &kept, &done, err);
        ct_replay_store_count(r->store, done);
    }
    if (!st)
        st = done ? ct_ids_append(out, ids.id, ids.n, err)
                  : plain_prompt(t, tokenizer, request, a, out, err);
    if (!st)
        *n_kept = done ? kept : 0;
    ct_ids_deinit(&ids);
    return st;
}

size_t ct_replay_common(const ct_ids *prompt, const uint32_t *old_prompt, size_t n_prompt,
                        const uint32_t *generated, size_t n_generated)
{
    size_t n = 0, end = ct_min_size(prompt->n, n_prompt + n_generated);

    while (n < end && prompt->id[n] == (n < n_prompt ? old_prompt[n] : generated[n - n_prompt]))
        n++;
    return n;
}
