/* Values without quotes: numbers, literals, and text whose quotes are missing. */
#include "text/call_args_impl.h"
#include "text/schema_hints.h"

static size_t skip_digits(ct_str s, size_t at)
{
    while (at < s.n && s.p[at] >= '0' && s.p[at] <= '9')
        at++;
    return at;
}

/* The parts of a number as people write them; each may be empty. */
typedef struct number {
    bool minus, plus, point;
    ct_str whole, fraction, exponent; /* exponent: with its letter */
} number;

static bool split_number(number *n, ct_str s)
{
    size_t at = 0, begin;

    *n = (number){0};
    if (at < s.n && (s.p[at] == '-' || s.p[at] == '+')) {
        n->minus = s.p[at] == '-';
        n->plus = !n->minus;
        at++;
    }
    begin = at;
    at = skip_digits(s, at);
    n->whole = (ct_str){s.p + begin, at - begin};
    if (at < s.n && s.p[at] == '.') {
        n->point = true;
        begin = ++at;
        at = skip_digits(s, at);
        n->fraction = (ct_str){s.p + begin, at - begin};
    }
    if (!n->whole.n && !n->fraction.n)
        return false;
    if (at < s.n && (s.p[at] | 0x20) == 'e') {
        begin = at++;
        if (at < s.n && (s.p[at] == '-' || s.p[at] == '+'))
            at++;
        if (at == skip_digits(s, at))
            return false;
        at = skip_digits(s, at);
        n->exponent = (ct_str){s.p + begin, at - begin};
    }
    return at == s.n;
}

static bool is_json_number(const number *n)
{
    return !n->plus && n->whole.n && (n->whole.n == 1 || n->whole.p[0] != '0') &&
           n->point == (n->fraction.n > 0);
}

bool ct_call_is_number(ct_str s)
{
    number n;

    return split_number(&n, s) && is_json_number(&n);
}

/* ".5", "+5", "5." and "007" with the digits that JSON wants. */
static void put_number(ct_buf *json, const number *n)
{
    ct_str whole = n->whole;

    while (whole.n > 1 && whole.p[0] == '0')
        whole = (ct_str){whole.p + 1, whole.n - 1};
    if (n->minus)
        ct_buf_addc(json, '-');
    if (!whole.n)
        ct_buf_addc(json, '0');
    ct_buf_add(json, whole.p, whole.n);
    if (n->fraction.n) {
        ct_buf_addc(json, '.');
        ct_buf_add(json, n->fraction.p, n->fraction.n);
    } else if (n->point) {
        ct_buf_addz(json, ".0");
    }
    ct_buf_add(json, n->exponent.p, n->exponent.n);
}

/* JSON's spelling of a literal, or NULL. */
static const char *literal_of(ct_str word, unsigned types)
{
    static const struct {
        const char *word, *json;
        unsigned type;
    } literals[] = {
        {"true", "true", CT_HINT_BOOL}, {"false", "false", CT_HINT_BOOL},
        {"True", "true", CT_HINT_BOOL}, {"False", "false", CT_HINT_BOOL},
        {"None", "null", CT_HINT_NULL},
    };

    /* The chat template prints an absent string as null, too. */
    if (ct_str_is(word, "null"))
        return "null";
    for (size_t i = 0; i < sizeof literals / sizeof *literals; i++)
        if (ct_str_is(word, literals[i].word))
            return types & CT_HINT_STRING && !(types & literals[i].type) ? NULL : literals[i].json;
    return NULL;
}

void ct_call_put_bare(ct_buf *json, ct_str word, unsigned types)
{
    const char *literal = literal_of(word, types);
    bool text = types & CT_HINT_STRING && !(types & CT_HINT_NUMBER);
    number n;

    if (literal)
        ct_buf_addz(json, literal);
    else if (!text && split_number(&n, word) && is_json_number(&n))
        ct_buf_add(json, word.p, word.n);
    else if (types & CT_HINT_NUMBER && !(types & CT_HINT_STRING) && split_number(&n, word))
        put_number(json, &n);
    else
        ct_json_put_str(json, word);
}

void ct_call_open_bare(ct_call_args *c)
{
    ct_buf_clear(&c->word);
    c->word_end = 0;
    memset(c->nest, 0, sizeof c->nest);
    c->state = CT_AT_BARE;
}

/* The word without the blanks behind it. */
static ct_str trimmed(const ct_call_args *c)
{
    return (ct_str){c->word.p, c->word_end};
}

static bool finish_bare(ct_call_args *c, ct_buf *json)
{
    ct_call_put_key(c, json);
    ct_call_put_bare(json, trimmed(c), ct_call_types(c));
    c->state = CT_AT_AFTER;
    return true;
}

/* "ns:name:" before a value: the key goes on where it was taken to end. */
static bool joins_key(ct_call_args *c)
{
    ct_str w = trimmed(c);

    if (!c->key_pending || w.n < 2 || w.n > CT_LOOK_KEY_MAX || w.p[w.n - 1] != ':')
        return false;
    for (size_t i = 0; i < w.n; i++)
        if (ct_sym_is_blank(w.p[i]))
            return false;
    ct_buf_addc(&c->key, ':');
    ct_json_put_chars(&c->key, (ct_str){w.p, w.n - 1});
    c->state = CT_AT_VALUE;
    return true;
}

/* A quote token behind a word: the word is the beginning of a string whose opening quote
 * is missing, or the quote is stray where no string is declared. */
static bool bare_quote_step(ct_call_args *c, ct_buf *json)
{
    unsigned types = ct_call_types(c);
    ct_look r = CT_LOOK_NO;

    if (types && !(types & CT_HINT_STRING))
        r = ct_look_close(c, 1, false);
    if (r == CT_LOOK_MORE)
        return false;
    if (r == CT_LOOK_YES) {
        c->at++;
        return finish_bare(c, json);
    }
    if (joins_key(c))
        return true;
    ct_call_open_string(c, CT_SYM_QUOTE, json);
    ct_json_put_chars(json, ct_buf_str(&c->word));
    c->state = CT_AT_STRING;
    return true;
}

/* Asked at every comma, so of a long word it must not look at all. */
static bool is_scalar(const ct_call_args *c)
{
    ct_str w = trimmed(c);

    return w.n <= CT_LOOK_KEY_MAX && (ct_call_is_number(w) || literal_of(w, 0));
}

/* Whether the word ends at this comma or line break.  *n: symbols that are of the word
 * otherwise; blanks have the same fate, and looking again at each would add up. */
static ct_look look_end_of_word(const ct_call_args *c, int s, size_t *n)
{
    const ct_call_frame *f = &c->frame[c->depth - 1];
    size_t i = 1;
    int after = ct_call_skip_blanks(c, &i);

    *n = i;
    if (after == CT_SYM_MORE)
        return CT_LOOK_MORE;
    if (s == ',' &&
        (f->open == '[' || after == ',' || after == CT_SYM_END || ct_sym_is_closer(after)))
        return CT_LOOK_YES;
    if (f->open == '[')
        return CT_LOOK_NO;
    if (is_scalar(c))
        return ct_look_key(c, i, f, CT_TRUST_VALUE);
    return ct_look_key(c, i, f, s == ',' ? CT_TRUST_WORD : CT_TRUST_LINE);
}

static unsigned *nest_of(ct_call_args *c, int s)
{
    return &c->nest[s == '(' || s == ')' ? 0 : s == '[' || s == ']' ? 1 : 2];
}

/* Whether a closer ends the word: not inside its own brackets, and a parenthesis only
 * where one is open. */
static bool closes_word(ct_call_args *c, int s)
{
    if (*nest_of(c, s))
        return false;
    return s != ')' || c->wrapped || c->frame[c->depth - 1].open == '(';
}

/* Adds n held symbols: one, or blanks too. */
static bool add_to_word(ct_call_args *c, int s, size_t n)
{
    if (s == '(' || s == '[' || s == '{')
        ++*nest_of(c, s);
    else if (ct_sym_is_closer(s) && *nest_of(c, s))
        --*nest_of(c, s);
    if (c->word.n + n > CT_CALL_WORD_MAX)
        return ct_call_fail(c);
    if (!ct_sym_is_blank(s))
        c->word_end = c->word.n + 1;
    ct_buf_add(&c->word, c->held.p + c->at, n);
    c->at += n;
    return true;
}

bool ct_call_bare_step(ct_call_args *c, ct_buf *json)
{
    int s = ct_call_sym(c, 0);
    ct_look r = CT_LOOK_NO;
    size_t n = 1;

    if (s == CT_SYM_MORE)
        return false;
    if (s == CT_SYM_END)
        /* A cut word may be the beginning of another: 10 of 108. */
        return c->cut ? ct_call_fail(c) : finish_bare(c, json);
    if (s == CT_SYM_QUOTE)
        return bare_quote_step(c, json);
    if (ct_sym_is_closer(s) && closes_word(c, s))
        return finish_bare(c, json);
    if ((s == '{' || s == '[' || s == '"') && joins_key(c))
        return true;
    if ((s == ',' || s == '\n') && !c->nest[0] && !c->nest[1] && !c->nest[2])
        r = look_end_of_word(c, s, &n);
    if (r == CT_LOOK_YES)
        return finish_bare(c, json);
    return r == CT_LOOK_MORE ? false : add_to_word(c, s, n);
}
