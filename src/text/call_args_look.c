/* Deciding by what follows.  Each function reads held text from an offset on, consumes
 * nothing, and answers MORE when the text that is here could still go either way; so the
 * answers, and the JSON, do not depend on how the input was cut. */
#include "text/call_args_impl.h"
#include "text/schema_hints.h"

int ct_call_skip_blanks(const ct_call_args *c, size_t *i)
{
    size_t end = *i + CT_LOOK_MAX;
    int s = ct_call_sym(c, *i);

    while (ct_sym_is_blank(s) && *i < end)
        s = ct_call_sym(c, ++*i);
    return s;
}

bool ct_call_closes(const ct_call_frame *f, int closer)
{
    if (f->open == '[')
        return closer == ']';
    return closer == '}' || (f->open == '(' && closer == ')');
}

static ct_str span(const ct_call_args *c, size_t begin, size_t end)
{
    return (ct_str){c->held.p + c->at + begin, end - begin};
}

static bool is_key_char(int s)
{
    return (s >= '0' && s <= '9') || (s >= 'a' && s <= 'z') || (s >= 'A' && s <= 'Z') ||
           (s >= 0x80 && s != CT_SYM_QUOTE) || (s > 0 && strchr("_$.-@/", s));
}

static bool is_separator(int s)
{
    return s == ':' || s == '=';
}

/* A key that a lookahead has found. */
typedef struct found_key {
    size_t begin, end;          /* its text */
    size_t after;               /* behind its separator */
    bool quoted, equals, plain; /* plain: of the characters of identifiers alone */
} found_key;

static ct_look find_quoted_key(const ct_call_args *c, size_t i, found_key *k)
{
    int quote = ct_call_sym(c, i), s;
    size_t j = i + 1;

    for (;; j++) {
        s = ct_call_sym(c, j);
        if (s == CT_SYM_MORE)
            return CT_LOOK_MORE;
        if (s == CT_SYM_END || s == '\n' || s == CT_SYM_QUOTE || s == quote ||
            j - i > CT_LOOK_KEY_MAX)
            break;
    }
    if (s != quote)
        return CT_LOOK_NO;
    *k = (found_key){.begin = i + 1, .end = j, .quoted = true};
    j++;
    s = ct_call_skip_blanks(c, &j);
    if (s == CT_SYM_MORE)
        return CT_LOOK_MORE;
    k->equals = s == '=';
    k->after = j + 1;
    return is_separator(s) ? CT_LOOK_YES : CT_LOOK_NO;
}

static ct_look find_bare_key(const ct_call_args *c, size_t i, found_key *k)
{
    size_t j = i, end = i;
    int s;

    *k = (found_key){.begin = i, .plain = true};
    for (;; j++) {
        s = ct_call_sym(c, j);
        if (s == CT_SYM_MORE)
            return CT_LOOK_MORE;
        if (s < 0 || is_separator(s) || ct_sym_is_quote(s) || strchr(",{[(}])\n", s) ||
            j - i > CT_LOOK_KEY_MAX)
            break;
        if (ct_sym_is_blank(s))
            continue;
        k->plain = k->plain && is_key_char(s) && j == end;
        end = j + 1;
    }
    k->end = end;
    k->equals = s == '=';
    k->after = j + 1;
    return is_separator(s) && end > i ? CT_LOOK_YES : CT_LOOK_NO;
}

static ct_look find_key(const ct_call_args *c, size_t i, found_key *k)
{
    int s = ct_call_skip_blanks(c, &i);

    if (s == CT_SYM_MORE)
        return CT_LOOK_MORE;
    return ct_sym_is_quote(s) ? find_quoted_key(c, i, k) : find_bare_key(c, i, k);
}

/* Text often looks like a key too: "Note: see below", or {"a": "x", "b": 2} behind a
 * literal quote that waits for its partner.  A declared key is believed, an undeclared one
 * hardly where the schema names the members.  Behind a waiting quote a quoted key, and one
 * with '=', is believed only if the call is written so. */
static bool believe_key(const ct_call_args *c, const ct_call_frame *f, const found_key *k,
                        ct_trust trust)
{
    bool pending = trust == CT_TRUST_PENDING;

    if (pending && k->quoted && !f->quoted_keys)
        return false;
    if (ct_hint_declares(c->root, f->schema, span(c, k->begin, k->end)))
        return true;
    if (trust == CT_TRUST_VALUE)
        return true;
    if (trust == CT_TRUST_LINE || f->closed_schema || (!k->plain && !k->quoted))
        return false;
    return !pending || !k->equals || c->equals;
}

ct_look ct_look_key(const ct_call_args *c, size_t i, const ct_call_frame *f, ct_trust trust)
{
    found_key k;
    ct_look r = find_key(c, i, &k);

    if (r != CT_LOOK_YES)
        return r;
    return believe_key(c, f, &k, trust) ? CT_LOOK_YES : CT_LOOK_NO;
}

ct_look ct_look_next_member(const ct_call_args *c, size_t i)
{
    const ct_call_frame *f = &c->frame[c->depth - 1];
    found_key k;
    ct_look r;
    int s = ct_call_skip_blanks(c, &i);

    if (s == CT_SYM_MORE)
        return CT_LOOK_MORE;
    if (s != ',' || f->open == '[' || c->odd)
        return CT_LOOK_NO;
    r = find_key(c, i + 1, &k);
    if (r != CT_LOOK_YES)
        return r;
    if ((k.quoted && !f->quoted_keys) ||
        !ct_hint_declares(c->root, f->schema, span(c, k.begin, k.end)))
        return CT_LOOK_NO;
    s = ct_call_skip_blanks(c, &k.after);
    if (s == CT_SYM_MORE)
        return CT_LOOK_MORE;
    if (s != CT_SYM_QUOTE)
        return CT_LOOK_NO;
    /* Where that token can close a string, it closes this one. */
    r = ct_look_close(c, k.after + 1, false);
    if (r == CT_LOOK_MORE)
        return CT_LOOK_MORE;
    return r == CT_LOOK_NO ? CT_LOOK_YES : CT_LOOK_NO;
}

/* A bare word that is a value by itself, with the end of an item behind it. */
static ct_look look_scalar(const ct_call_args *c, size_t i)
{
    static const char *const words[] = {"true", "false", "null", "True", "False", "None"};
    size_t begin = i;
    bool known = false;
    int s = ct_call_sym(c, i);

    while (s >= 0 && (is_key_char(s) || s == '+') && i - begin <= CT_LOOK_KEY_MAX)
        s = ct_call_sym(c, ++i);
    if (s == CT_SYM_MORE)
        return CT_LOOK_MORE;
    for (size_t w = 0; w < sizeof words / sizeof *words; w++)
        known = known || ct_str_is(span(c, begin, i), words[w]);
    if (!known && !ct_call_is_number(span(c, begin, i)))
        return CT_LOOK_NO;
    s = ct_call_skip_blanks(c, &i);
    if (s == CT_SYM_MORE)
        return CT_LOOK_MORE;
    return s == CT_SYM_END || s == ',' || ct_sym_is_closer(s) ? CT_LOOK_YES : CT_LOOK_NO;
}

/* Whether the next item of a list stands at i, behind a comma. */
static ct_look look_item(const ct_call_args *c, size_t i, bool odd)
{
    int s = ct_call_skip_blanks(c, &i);

    if (s == CT_SYM_MORE)
        return CT_LOOK_MORE;
    if (s == CT_SYM_END || s == '{' || s == '[' || ct_sym_is_quote(s))
        return CT_LOOK_YES;
    /* A word without quotes is a repair; not where it may continue a quotation. */
    return odd ? look_scalar(c, i) : CT_LOOK_YES;
}

/* Behind the outermost brace.  A quote token further on means that the brace was text,
 * unless that token is the very last thing. */
static ct_look look_trailing(const ct_call_args *c, size_t i)
{
    int s;

    for (size_t j = i; j - i < CT_LOOK_MAX; j++) {
        s = ct_call_sym(c, j);
        if (s == CT_SYM_MORE)
            return CT_LOOK_MORE;
        if (s == CT_SYM_END)
            return CT_LOOK_YES;
        if (s != CT_SYM_QUOTE)
            continue;
        j++;
        s = ct_call_skip_blanks(c, &j);
        if (s == CT_SYM_MORE)
            return CT_LOOK_MORE;
        return s == CT_SYM_END ? CT_LOOK_YES : CT_LOOK_NO;
    }
    return CT_LOOK_YES;
}

static ct_look look_after_comma(const ct_call_args *c, size_t i, unsigned depth, bool odd)
{
    const ct_call_frame *f;
    int s = ct_call_skip_blanks(c, &i);

    if (s == CT_SYM_MORE)
        return CT_LOOK_MORE;
    if (s == CT_SYM_END)
        return CT_LOOK_YES;
    f = &c->frame[depth - 1];
    return f->open == '[' ? look_item(c, i, odd)
                          : ct_look_key(c, i, f, odd ? CT_TRUST_PENDING : CT_TRUST_VALUE);
}

ct_look ct_look_close(const ct_call_args *c, size_t i, bool odd)
{
    unsigned depth = c->depth;
    bool exact = true; /* so far every closer closed the innermost frame */

    for (size_t begin = i;;) {
        int s = ct_call_skip_blanks(c, &i);
        size_t j = i + 1;

        if (s == CT_SYM_MORE)
            return CT_LOOK_MORE;
        if (s == CT_SYM_END)
            return CT_LOOK_YES;
        if (depth && exact && s == ',') {
            int after = ct_call_skip_blanks(c, &j);

            if (!ct_sym_is_closer(after))
                return look_after_comma(c, i + 1, depth, odd);
            i = j; /* a comma before a closer */
            s = after;
        }
        if (!ct_sym_is_closer(s))
            return !depth && exact ? look_trailing(c, i) : CT_LOOK_NO;
        if (i - begin > CT_LOOK_MAX)
            return CT_LOOK_NO;
        if (depth && ct_call_closes(&c->frame[depth - 1], s))
            depth--;
        else
            exact = exact && !depth && c->wrapped;
        i++;
    }
}

ct_look ct_look_tail(ct_call_args *c, size_t i)
{
    size_t begin = c->at + i, j = begin > c->run_end ? begin : c->run_end;
    int s = ct_call_sym(c, j - c->at);

    while ((ct_sym_is_blank(s) || ct_sym_is_closer(s)) && j - begin <= CT_LOOK_MAX)
        s = ct_call_sym(c, ++j - c->at);
    c->run_end = j;
    if (s == CT_SYM_END)
        return CT_LOOK_YES;
    return s == CT_SYM_MORE && j - begin <= CT_LOOK_MAX ? CT_LOOK_MORE : CT_LOOK_NO;
}

ct_look ct_look_doubled(const ct_call_args *c, size_t i)
{
    size_t j = i;
    int s = ct_call_sym(c, j);

    while (s >= 0 && s != CT_SYM_QUOTE && j - i <= CT_LOOK_MAX)
        s = ct_call_sym(c, ++j);
    if (s == CT_SYM_MORE)
        return CT_LOOK_MORE;
    return s == CT_SYM_QUOTE ? ct_look_close(c, j + 1, false) : CT_LOOK_NO;
}
