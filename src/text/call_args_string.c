/* Quoted keys and strings.  Text of a string goes out as it comes; only what may be its
 * end, or belong to a repair of its end, waits. */
#include "text/call_args_impl.h"

#include "base/checked.h"

static bool is_plain(const ct_call_args *c, int s)
{
    if (s < 0 || s == CT_SYM_QUOTE || s == c->quote)
        return false;
    return c->quote == CT_SYM_QUOTE ? s != '"' : s != '\\';
}

/* Writes n bytes of held text and consumes them. */
static void put_text(ct_call_args *c, size_t n, ct_buf *out)
{
    if (n)
        ct_json_put_chars(out, (ct_str){c->held.p + c->at, n});
    c->at += n;
}

/* A quote that is text: the token stands for '"'. */
static void put_quote(ct_call_args *c, int s, ct_buf *out)
{
    char text = s == '\'' ? '\'' : '"';

    ct_json_put_chars(out, (ct_str){&text, 1});
    c->at++;
    /* Apostrophes have no partners. */
    if (s != '\'')
        c->odd = !c->odd;
}

static bool is_hex4(const ct_call_args *c, size_t i)
{
    for (size_t k = 0; k < 4; k++) {
        int s = ct_call_sym(c, i + k);

        if (s < 0 || ct_hex_digit((char)s) < 0)
            return false;
    }
    return true;
}

/* In ordinary quotes JSON's escapes are meant; a backslash before anything else is text
 * (a path, a regular expression). */
static bool escape_step(ct_call_args *c, ct_buf *out)
{
    int s = ct_call_sym(c, 1);
    size_t n = s == 'u' ? 6 : 2;

    for (size_t i = 1; i < n; i++)
        if (ct_call_sym(c, i) == CT_SYM_MORE)
            return false;
    if (s == '\'') {
        ct_buf_addc(out, '\'');
        c->at += 2;
    } else if (s > 0 && (strchr("\"\\/bfnrt", s) || (s == 'u' && is_hex4(c, 2)))) {
        ct_buf_add(out, c->held.p + c->at, n);
        c->at += n;
    } else {
        put_text(c, 1, out);
    }
    return true;
}

bool ct_call_quoted_key_step(ct_call_args *c)
{
    size_t n = 0, i = 1;
    int s = ct_call_sym(c, 0);

    while (is_plain(c, s))
        s = ct_call_sym(c, ++n);
    if (c->key.n + n > CT_CALL_WORD_MAX)
        return ct_call_fail(c);
    put_text(c, n, &c->key);
    if (s == CT_SYM_MORE)
        return n > 0;
    if (s == CT_SYM_END)
        return ct_call_fail(c);
    if (s == '\\' && c->quote != CT_SYM_QUOTE)
        return escape_step(c, &c->key);
    if (s == CT_SYM_QUOTE || s == c->quote) {
        int after = ct_call_skip_blanks(c, &i);

        if (after == CT_SYM_MORE)
            return false;
        if (after == ':' || after == '=') {
            c->at++;
            c->state = CT_AT_COLON;
            return true;
        }
    }
    put_quote(c, s, &c->key);
    return true;
}

void ct_call_open_string(ct_call_args *c, int quote, ct_buf *json)
{
    ct_call_put_key(c, json);
    ct_buf_addc(json, '"');
    c->quote = quote;
    c->odd = c->plain_odd = false;
    c->state = CT_AT_STRING_LEAD;
}

/* n: symbols of the closing quote. */
static bool close_string(ct_call_args *c, size_t n, ct_buf *json)
{
    ct_buf_addc(json, '"');
    c->at += n;
    c->state = CT_AT_AFTER;
    return true;
}

bool ct_call_string_lead_step(ct_call_args *c)
{
    int s = ct_call_sym(c, 0);
    ct_look r;

    if (s == CT_SYM_MORE)
        return false;
    c->state = CT_AT_STRING;
    if (s != CT_SYM_QUOTE || c->quote != CT_SYM_QUOTE)
        return true;
    r = ct_look_close(c, 1, false);
    if (r == CT_LOOK_NO) {
        r = ct_look_doubled(c, 1);
        c->at += r == CT_LOOK_YES;
    }
    if (r == CT_LOOK_MORE)
        c->state = CT_AT_STRING_LEAD;
    return r != CT_LOOK_MORE;
}

static bool quote_step(ct_call_args *c, int s, ct_buf *json)
{
    ct_look r = ct_look_close(c, 1, c->odd);

    if (r == CT_LOOK_YES)
        return close_string(c, 1, json);
    /* Twice the closing quote; where a literal one waits for its partner, this is it. */
    if (r == CT_LOOK_NO && !c->odd && ct_call_sym(c, 1) == s) {
        r = ct_look_close(c, 2, c->odd);
        if (r == CT_LOOK_YES)
            return close_string(c, 2, json);
    }
    if (r == CT_LOOK_MORE)
        return false;
    put_quote(c, s, json);
    return true;
}

/* The call is over, and of its closing quote and its closers some or all are missing.
 * Of the closers at its end only as many are not text as there are open objects and
 * lists. */
static bool unclosed_string(ct_call_args *c, ct_buf *json)
{
    size_t end = c->held.n;
    unsigned depth = 0;
    bool wrap = c->wrapped;

    if (c->cut)
        return ct_call_fail(c);
    for (; end > c->at; end--) {
        int s = (unsigned char)c->held.p[end - 1];

        if (wrap && !depth && ct_sym_is_closer(s) && s != ']')
            wrap = false;
        else if (depth < c->depth && ct_call_closes(&c->frame[depth], s))
            depth++;
        else if (!ct_sym_is_blank(s))
            break;
    }
    if (!depth)
        end = c->held.n;
    /* An ordinary quote in the place of the closing token. */
    if (c->quote == CT_SYM_QUOTE && end == c->at + 1 && c->held.p[c->at] == '"' && !c->plain_odd) {
        c->at++;
        return close_string(c, 0, json);
    }
    put_text(c, end - c->at, json);
    return close_string(c, 0, json);
}

/* '"' in a string of quote tokens: text, or the closing quote of a model that mixes
 * both.  That is known only where the string cannot go on behind it. */
static bool plain_quote_step(ct_call_args *c, ct_buf *json)
{
    ct_look r = ct_look_tail(c, 1);

    if (r == CT_LOOK_YES)
        return unclosed_string(c, json);
    if (r == CT_LOOK_NO && !c->plain_odd) {
        r = ct_look_next_member(c, 1);
        if (r == CT_LOOK_YES)
            return close_string(c, 1, json);
    }
    if (r == CT_LOOK_MORE)
        return false;
    put_text(c, 1, json);
    c->plain_odd = !c->plain_odd;
    return true;
}

/* Whether the symbol has no part in any decision about the end of a string. */
static bool is_body(const ct_call_args *c, int s)
{
    return is_plain(c, s) && s != ',' && !ct_sym_is_blank(s) && !ct_sym_is_closer(s);
}

bool ct_call_string_step(ct_call_args *c, ct_buf *json)
{
    ct_look r;
    size_t n = 0;
    int s = ct_call_sym(c, 0);

    while (is_body(c, s) || (ct_sym_is_blank(s) && is_body(c, ct_call_sym(c, n + 1))))
        s = ct_call_sym(c, ++n);
    put_text(c, n, json);
    if (s == CT_SYM_MORE)
        return n > 0;
    if (s == CT_SYM_END)
        return unclosed_string(c, json);
    if (s == CT_SYM_QUOTE || s == c->quote)
        return quote_step(c, s, json);
    if (s == '\\' && c->quote != CT_SYM_QUOTE)
        return escape_step(c, json);
    if (s == '"')
        return plain_quote_step(c, json);
    r = s == ',' ? ct_look_next_member(c, 0) : ct_look_tail(c, 0);
    if (r == CT_LOOK_MORE)
        return false;
    if (r == CT_LOOK_YES)
        return s == ',' ? close_string(c, 0, json) : unclosed_string(c, json);
    put_text(c, 1, json);
    return true;
}

void ct_call_open_raw(ct_call_args *c, ct_buf *json)
{
    ct_call_put_key(c, json);
    ct_buf_addc(json, '"');
    c->raw_nest = 0;
    c->raw_string = false;
    c->state = CT_AT_RAW;
}

/* One symbol inside the brackets of a value that is declared a string: JSON, mostly. */
bool ct_call_raw_step(ct_call_args *c, ct_buf *json)
{
    int s = ct_call_sym(c, 0);
    ct_look r;

    if (s == CT_SYM_MORE)
        return false;
    if (!c->raw_nest) {
        /* Nothing is open: the value ends where another could begin. */
        r = s == CT_SYM_QUOTE ? CT_LOOK_NO : ct_look_close(c, 0, false);
        if (r == CT_LOOK_YES)
            return close_string(c, 0, json);
        if (r == CT_LOOK_MORE)
            return false;
    }
    if (s == CT_SYM_END)
        return ct_call_fail(c);
    if (c->raw_string && s == '\\') {
        if (ct_call_sym(c, 1) == CT_SYM_MORE)
            return false;
        put_text(c, 1, json);
        s = ct_call_sym(c, 0);
        if (s == CT_SYM_END || s == CT_SYM_QUOTE)
            return true;
    } else if (s == '"' || s == CT_SYM_QUOTE) {
        c->raw_string = !c->raw_string;
    }
    if (!c->raw_string && (s == '{' || s == '['))
        c->raw_nest++;
    if (!c->raw_string && (s == '}' || s == ']') && c->raw_nest)
        c->raw_nest--;
    if (s == CT_SYM_QUOTE)
        put_quote(c, s, json);
    else
        put_text(c, ct_call_char_bytes(s), json);
    return true;
}
