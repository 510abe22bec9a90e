#include "text/call_args.h"

#include "base/checked.h"
#include "text/call_args_impl.h"
#include "text/schema_hints.h"

#include <stdlib.h>

/* Input is taken in parts of this size, so that a long piece is not held whole. */
#define PART_BYTES 4096

ct_status ct_call_args_create(ct_call_args **out, ct_error *err)
{
    ct_call_args *c = calloc(1, sizeof *c);

    if (!c)
        return ct_fail(err, CT_ELIMIT, "tool call: no memory for %zu bytes", sizeof *c);
    ct_buf_init(&c->held, SIZE_MAX / 2);
    ct_buf_init(&c->key, SIZE_MAX / 2);
    ct_buf_init(&c->word, SIZE_MAX / 2);
    ct_call_args_start(c, NULL);
    *out = c;
    return CT_OK;
}

void ct_call_args_destroy(ct_call_args *c)
{
    if (!c)
        return;
    ct_buf_deinit(&c->held);
    ct_buf_deinit(&c->key);
    ct_buf_deinit(&c->word);
    free(c);
}

void ct_call_args_start(ct_call_args *c, const ct_value *schema)
{
    ct_buf_clear(&c->held);
    ct_buf_clear(&c->key);
    ct_buf_clear(&c->word);
    c->where = CT_CALL_ARGS_OPEN;
    c->state = CT_AT_BEGIN;
    c->ended = c->cut = c->wrapped = c->equals = c->key_pending = false;
    c->at = c->run_end = 0;
    c->depth = 0;
    c->root = schema;
}

ct_call_args_state ct_call_args_where(const ct_call_args *c)
{
    return c->where;
}

bool ct_call_fail(ct_call_args *c)
{
    c->where = CT_CALL_ARGS_FAILED;
    return false;
}

static ct_call_frame *top(ct_call_args *c)
{
    return &c->frame[c->depth - 1];
}

/* Schema of the value at hand. */
static const ct_value *value_schema(const ct_call_args *c)
{
    const ct_call_frame *f;

    if (!c->depth)
        return c->root;
    f = &c->frame[c->depth - 1];
    if (f->open == '[')
        return ct_hint_items(c->root, f->schema);
    return ct_hint_member(c->root, f->schema, ct_buf_str(&c->key));
}

unsigned ct_call_types(const ct_call_args *c)
{
    return ct_hint_types(c->root, value_schema(c));
}

void ct_call_put_key(ct_call_args *c, ct_buf *json)
{
    if (!c->depth)
        return;
    if (top(c)->filled)
        ct_buf_addc(json, ',');
    top(c)->filled = true;
    if (!c->key_pending)
        return;
    ct_buf_addc(json, '"');
    ct_buf_add(json, c->key.p, c->key.n);
    ct_buf_addz(json, "\":");
    c->key_pending = false;
}

static bool open_frame(ct_call_args *c, char open, ct_buf *json)
{
    const ct_value *schema = value_schema(c);

    if (c->depth == CT_CALL_ARGS_MAX_DEPTH)
        return ct_call_fail(c);
    ct_call_put_key(c, json);
    ct_buf_addc(json, open == '[' ? '[' : '{');
    c->frame[c->depth++] = (ct_call_frame){
        .open = open,
        .schema = schema,
        .closed_schema = open != '[' && ct_hint_closed(c->root, schema),
    };
    c->at++;
    c->state = open == '[' ? CT_AT_VALUE : CT_AT_KEY;
    return true;
}

static void close_frame(ct_call_args *c, ct_buf *json)
{
    ct_buf_addc(json, top(c)->open == '[' ? ']' : '}');
    c->depth--;
    c->state = CT_AT_AFTER;
    if (c->depth)
        return;
    if (c->wrapped)
        c->state = CT_AT_WRAPPED;
    else
        c->where = CT_CALL_ARGS_CLOSED;
}

static bool close_all(ct_call_args *c, ct_buf *json)
{
    while (c->depth)
        close_frame(c, json);
    return true;
}

/* A closer that does not fit the innermost frame stands for the right one, or the right
 * one is missing; that is said by what follows. */
static bool closer_step(ct_call_args *c, int s, ct_buf *json)
{
    unsigned keep = c->depth;
    size_t i = 1;
    int after = ct_call_skip_blanks(c, &i);

    if (ct_call_closes(top(c), s)) {
        c->at++;
        close_frame(c, json);
        return true;
    }
    if (after == CT_SYM_MORE)
        return false;
    c->at++;
    while (keep && !ct_call_closes(&c->frame[keep - 1], s))
        keep--;
    if (!keep)
        return true; /* nothing like that is open */
    if (after != CT_SYM_END)
        keep = c->depth;
    while (c->depth >= keep && c->depth)
        close_frame(c, json);
    return true;
}

static bool begin_step(ct_call_args *c, int s, ct_buf *json)
{
    size_t i = 1;
    int after = ct_call_skip_blanks(c, &i);

    if (s == CT_SYM_END && !c->cut) {
        ct_buf_addz(json, "{}");
        c->where = CT_CALL_ARGS_CLOSED;
        return false;
    }
    if (s != '{' && s != '(')
        return ct_call_fail(c);
    if (after == CT_SYM_MORE)
        return false;
    if (after != '{' || c->wrapped)
        return open_frame(c, (char)s, json);
    c->wrapped = true;
    c->at++;
    return true;
}

static bool key_step(ct_call_args *c, int s, ct_buf *json)
{
    if (s == CT_SYM_END)
        return c->cut ? ct_call_fail(c) : close_all(c, json);
    if (ct_sym_is_closer(s))
        return closer_step(c, s, json);
    if (s == ',') {
        c->at++;
        return true;
    }
    ct_buf_clear(&c->key);
    ct_buf_clear(&c->word);
    c->key_pending = true;
    c->state = CT_AT_BARE_KEY;
    if (ct_sym_is_quote(s)) {
        top(c)->quoted_keys = true;
        c->quote = s;
        c->state = CT_AT_QUOTED_KEY;
        c->at++;
    }
    return true;
}

/* Consumes the separator. */
static bool end_key(ct_call_args *c, int separator)
{
    c->equals = c->equals || separator == '=';
    c->at++;
    c->state = CT_AT_VALUE;
    return true;
}

static bool colon_step(ct_call_args *c, int s)
{
    return s == ':' || s == '=' ? end_key(c, s) : ct_call_fail(c);
}

/* At a ':' behind a word that is not a declared key: whether the declared key goes on, up
 * to a later ':'. */
static ct_look look_longer_key(ct_call_args *c)
{
    size_t n = c->word.n;
    ct_look r = CT_LOOK_NO;
    int s = ':';

    if (!top(c)->closed_schema || ct_hint_declares(c->root, top(c)->schema, ct_buf_str(&c->word)))
        return CT_LOOK_NO;
    for (size_t i = 0; i < CT_LOOK_KEY_MAX && r == CT_LOOK_NO; i++) {
        if (s == ':' && i && ct_hint_declares(c->root, top(c)->schema, ct_buf_str(&c->word)))
            r = CT_LOOK_YES;
        ct_buf_addc(&c->word, (char)s);
        s = ct_call_sym(c, i + 1);
        if (s == CT_SYM_MORE)
            r = CT_LOOK_MORE;
        else if (s < 0 || s == CT_SYM_QUOTE || strchr(" \t\r\n,{}[]()\"'=", s))
            break;
    }
    c->word.n = n;
    return r;
}

static bool bare_key_step(ct_call_args *c, int s)
{
    ct_look longer = s == ':' ? look_longer_key(c) : CT_LOOK_NO;
    size_t i = 1;
    int after;

    if (longer == CT_LOOK_MORE)
        return false;
    if ((s == ':' && longer == CT_LOOK_NO) || s == '=') {
        while (c->word.n && ct_sym_is_blank(c->word.p[c->word.n - 1]))
            c->word.n--;
        if (!c->word.n)
            return ct_call_fail(c);
        ct_json_put_chars(&c->key, ct_buf_str(&c->word));
        return end_key(c, s);
    }
    if (ct_sym_is_quote(s)) {
        /* Only a closing quote whose opening one is missing. */
        after = ct_call_skip_blanks(c, &i);
        if (after == CT_SYM_MORE)
            return false;
        c->at++;
        return after == ':' || after == '=' ? true : ct_call_fail(c);
    }
    if (s == CT_SYM_END || strchr(",{}[]()", s) || c->word.n >= CT_CALL_WORD_MAX)
        return ct_call_fail(c);
    ct_buf_addc(&c->word, (char)s);
    c->at++;
    return true;
}

/* "a:,": nothing stands where a value should. */
static bool put_missing(ct_call_args *c, ct_buf *json)
{
    const char *nothing = ct_call_types(c) == CT_HINT_STRING ? "\"\"" : "null";

    ct_call_put_key(c, json);
    ct_buf_addz(json, nothing);
    c->state = CT_AT_AFTER;
    return true;
}

static bool empty_value_step(ct_call_args *c, int s, ct_buf *json)
{
    bool list = top(c)->open == '[';

    if (s == CT_SYM_END)
        return list && !c->cut ? close_all(c, json) : ct_call_fail(c);
    if (!list)
        return put_missing(c, json);
    if (s != ',')
        return closer_step(c, s, json);
    c->at++;
    return true;
}

/* Whether a declared string is written with brackets but no quotes. */
static bool is_raw(const ct_call_args *c)
{
    unsigned types = ct_call_types(c);

    return types & CT_HINT_STRING && !(types & (CT_HINT_OBJECT | CT_HINT_ARRAY));
}

static bool value_step(ct_call_args *c, int s, ct_buf *json)
{
    ct_look r;

    if (s == CT_SYM_END || s == ',' || ct_sym_is_closer(s))
        return empty_value_step(c, s, json);
    if (ct_sym_is_quote(s)) {
        ct_call_open_string(c, s, json);
        c->at++;
        return true;
    }
    if ((s == '{' || s == '[') && is_raw(c)) {
        ct_call_open_raw(c, json);
        /* Its first symbol opens a bracket, so the value does not end before it. */
        c->raw_nest = 1;
        ct_buf_addc(json, (char)s);
        c->at++;
        return true;
    }
    if (s == '{' || s == '[')
        return open_frame(c, (char)s, json);
    if (s == '(') {
        r = ct_look_key(c, 1, top(c), CT_TRUST_WORD);
        if (r != CT_LOOK_NO)
            return r == CT_LOOK_YES && open_frame(c, '(', json);
    }
    ct_call_open_bare(c);
    return true;
}

/* No comma stands before what looks like the next item. */
static bool missing_comma_step(ct_call_args *c, int s)
{
    ct_look r = CT_LOOK_YES;

    if (top(c)->open != '[') {
        r = ct_look_key(c, 0, top(c), CT_TRUST_WORD);
        c->state = r == CT_LOOK_YES ? CT_AT_KEY : c->state;
    } else if (s == '{' || s == '[' || ct_sym_is_quote(s)) {
        c->state = CT_AT_VALUE;
    } else {
        r = CT_LOOK_NO;
    }
    return r == CT_LOOK_NO ? ct_call_fail(c) : r == CT_LOOK_YES;
}

static bool after_step(ct_call_args *c, int s, ct_buf *json)
{
    if (s == CT_SYM_END)
        return close_all(c, json);
    if (ct_sym_is_closer(s))
        return closer_step(c, s, json);
    if (s != ',')
        return missing_comma_step(c, s);
    c->at++;
    c->state = top(c)->open == '[' ? CT_AT_VALUE : CT_AT_KEY;
    return true;
}

static bool wrapped_step(ct_call_args *c, int s)
{
    c->at += s == ')' || s == '}';
    c->where = CT_CALL_ARGS_CLOSED;
    return false;
}

/* Between tokens, where blanks mean nothing. */
static bool token_step(ct_call_args *c, ct_buf *json)
{
    int s = ct_call_sym(c, 0);

    while (ct_sym_is_blank(s)) {
        c->at++;
        s = ct_call_sym(c, 0);
    }
    if (s == CT_SYM_MORE)
        return false;
    switch (c->state) {
    case CT_AT_BEGIN:
        return begin_step(c, s, json);
    case CT_AT_KEY:
        return key_step(c, s, json);
    case CT_AT_COLON:
        return colon_step(c, s);
    case CT_AT_VALUE:
        return value_step(c, s, json);
    case CT_AT_AFTER:
        return after_step(c, s, json);
    case CT_AT_WRAPPED:
        return wrapped_step(c, s);
    case CT_AT_BARE_KEY:
    case CT_AT_QUOTED_KEY:
    case CT_AT_STRING_LEAD:
    case CT_AT_STRING:
    case CT_AT_RAW:
    case CT_AT_BARE:
        break;
    }
    return false;
}

static bool step(ct_call_args *c, ct_buf *json)
{
    int s;

    switch (c->state) {
    case CT_AT_BARE_KEY:
        s = ct_call_sym(c, 0);
        return s != CT_SYM_MORE && bare_key_step(c, s);
    case CT_AT_QUOTED_KEY:
        return ct_call_quoted_key_step(c);
    case CT_AT_STRING_LEAD:
        return ct_call_string_lead_step(c);
    case CT_AT_STRING:
        return ct_call_string_step(c, json);
    case CT_AT_RAW:
        return ct_call_raw_step(c, json);
    case CT_AT_BARE:
        return ct_call_bare_step(c, json);
    case CT_AT_BEGIN:
    case CT_AT_KEY:
    case CT_AT_COLON:
    case CT_AT_VALUE:
    case CT_AT_AFTER:
    case CT_AT_WRAPPED:
        break;
    }
    return token_step(c, json);
}

/* Drops consumed text once it is more than what is left, so that each byte moves once. */
static void compact(ct_call_args *c)
{
    if (!c->at || c->at < c->held.n - c->at)
        return;
    memmove(c->held.p, c->held.p + c->at, c->held.n - c->at);
    c->held.n -= c->at;
    c->run_end = c->run_end > c->at ? c->run_end - c->at : 0;
    c->at = 0;
}

/* What follows the call is text: a stray quote token has no part in it. */
static void drop_quotes(ct_call_args *c)
{
    size_t n = c->at;

    for (size_t i = c->at; i < c->held.n; i++)
        if ((unsigned char)c->held.p[i] != CT_SYM_QUOTE)
            c->held.p[n++] = c->held.p[i];
    c->held.n = n;
}

static ct_status run(ct_call_args *c, ct_buf *json, ct_error *err)
{
    while (c->where == CT_CALL_ARGS_OPEN && step(c, json))
        continue;
    if (c->where == CT_CALL_ARGS_CLOSED)
        drop_quotes(c);
    compact(c);
    if (c->held.failed || c->key.failed || c->word.failed || json->failed)
        return ct_fail(err, CT_ELIMIT, "tool call: arguments of %zu bytes exceed the memory",
                       json->n);
    return CT_OK;
}

/* Length of the next part of text: whole characters. */
static size_t part_bytes(ct_str text)
{
    size_t n = ct_min_size(text.n, PART_BYTES);

    while (n > 1 && n < text.n && ((unsigned char)text.p[n] & 0xc0) == 0x80)
        n--;
    return n;
}

ct_status ct_call_args_text(ct_call_args *c, ct_str text, size_t *used, ct_buf *json, ct_error *err)
{
    ct_status st = CT_OK;
    size_t fed = 0, rest;

    while (!st && fed < text.n && c->where == CT_CALL_ARGS_OPEN) {
        ct_str left = {text.p + fed, text.n - fed};
        size_t n = part_bytes(left);

        ct_buf_add(&c->held, left.p, n);
        fed += n;
        st = run(c, json, err);
    }
    if (c->where != CT_CALL_ARGS_CLOSED) {
        *used = text.n;
        return st;
    }
    rest = ct_min_size(fed, c->held.n - c->at);
    c->held.n -= rest;
    *used = fed - rest;
    return st;
}

ct_status ct_call_args_quote(ct_call_args *c, ct_buf *json, ct_error *err)
{
    if (c->where != CT_CALL_ARGS_OPEN)
        return CT_OK;
    ct_buf_addc(&c->held, (char)CT_SYM_QUOTE);
    return run(c, json, err);
}

ct_status ct_call_args_end(ct_call_args *c, bool cut, ct_buf *json, ct_error *err)
{
    if (c->where != CT_CALL_ARGS_OPEN)
        return CT_OK;
    c->ended = true;
    c->cut = cut;
    return run(c, json, err);
}

ct_str ct_call_args_rest(const ct_call_args *c)
{
    if (c->where != CT_CALL_ARGS_CLOSED || c->at >= c->held.n)
        return (ct_str){0};
    return (ct_str){c->held.p + c->at, c->held.n - c->at};
}
