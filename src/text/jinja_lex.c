#include "text/jinja_lex.h"

#include "base/utf8.h"
#include "text/jinja_ast.h"
#include "text/unicode.h"

#define MAX_BRACKETS 256

typedef struct lexer {
    ct_str name, src;
    size_t at;
    uint32_t line;
    bool line_starting; /* the last match ended in a newline */
    jinja_token *token;
    size_t n;
    ct_arena *keep;
    ct_error *err;
    char open[MAX_BRACKETS];
    unsigned n_open;
} lexer;

static ct_status lex_fail(const lexer *x, const char *what)
{
    return jinja_fail(x->name, x->line, CT_EFORMAT, x->err, "%s", what);
}

static char at(const lexer *x, size_t i)
{
    return i < x->src.n ? x->src.p[i] : '\0';
}

static void advance(lexer *x, size_t to)
{
    for (; x->at < to; x->at++)
        x->line += x->src.p[x->at] == '\n';
}

static void add(lexer *x, jinja_token_kind kind, unsigned op, ct_str text)
{
    x->token[x->n++] = (jinja_token){(unsigned short)kind, (unsigned short)op, x->line, text};
}

static void skip_space(lexer *x)
{
    while (x->at < x->src.n) {
        unsigned len;

        if (!ct_cp_is_space(ct_utf8_next(x->src, x->at, &len)))
            return;
        advance(x, x->at + len);
    }
}

/* Newlines become "\n" and one at the end is dropped. */
static ct_status normalise(lexer *x, ct_str source)
{
    char *p = ct_arena_alloc(x->keep, source.n + 1, 1);
    size_t n = 0;

    if (!p)
        return lex_fail(x, "the source exceeds the memory bound");
    if (ct_utf8_valid_prefix(source) < source.n)
        return lex_fail(x, "the source is not valid UTF-8");
    for (size_t i = 0; i < source.n; i++) {
        if (source.p[i] == '\r') {
            p[n++] = '\n';
            i += i + 1 < source.n && source.p[i + 1] == '\n';
        } else {
            p[n++] = source.p[i];
        }
    }
    if (n && p[n - 1] == '\n')
        n--;
    x->src = (ct_str){p, n};
    return CT_OK;
}

static int hex_value(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c |= 0x20;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* \xHH, \uHHHH, \UHHHHHHHH behind the letter at *i. */
static bool hex_escape(ct_str s, size_t *i, unsigned digits, uint32_t *cp)
{
    *cp = 0;
    for (unsigned k = 0; k < digits; k++) {
        if (*i >= s.n || hex_value(s.p[*i]) < 0)
            return false;
        *cp = *cp << 4 | (uint32_t)hex_value(s.p[(*i)++]);
    }
    return *cp < 0x110000 && (*cp < 0xd800 || *cp >= 0xe000);
}

/* One escape of Python's string syntax; *i is behind the backslash.  False: malformed. */
static bool unescape_one(ct_str s, size_t *i, char *out, size_t *n)
{
    static const char from[] = "\\'\"abfnrtv", to[] = "\\'\"\a\b\f\n\r\t\v";
    char c = s.p[(*i)++];
    const char *simple = c ? strchr(from, c) : NULL;
    uint32_t cp = 0;

    if (c == '\n')
        return true;
    if (simple) {
        out[(*n)++] = to[simple - from];
        return true;
    }
    if (c == 'N')
        return false;
    if (c >= '0' && c <= '7') {
        cp = (uint32_t)(c - '0');
        for (int k = 0; k < 2 && *i < s.n && s.p[*i] >= '0' && s.p[*i] <= '7'; k++)
            cp = cp * 8 + (uint32_t)(s.p[(*i)++] - '0');
    } else if (c == 'x' || c == 'u' || c == 'U') {
        if (!hex_escape(s, i, c == 'x' ? 2 : c == 'u' ? 4 : 8, &cp))
            return false;
    } else {
        out[(*n)++] = '\\';
        (*i)--;
        return true;
    }
    *n += ct_utf8_put(out + *n, cp);
    return true;
}

/* Unescaped text is never longer than the escaped one. */
static ct_status lex_string(lexer *x)
{
    char quote = at(x, x->at), *out;
    size_t end = x->at + 1, n = 0;
    ct_str raw;

    while (end < x->src.n && x->src.p[end] != quote)
        end += x->src.p[end] == '\\' ? 2 : 1;
    if (end >= x->src.n)
        return lex_fail(x, "unterminated string");
    raw = (ct_str){x->src.p + x->at + 1, end - x->at - 1};
    out = ct_arena_alloc(x->keep, raw.n + 1, 1);
    if (!out)
        return lex_fail(x, "the source exceeds the memory bound");
    for (size_t i = 0; i < raw.n;) {
        if (raw.p[i] != '\\')
            out[n++] = raw.p[i++];
        else if (i++, !unescape_one(raw, &i, out, &n))
            return lex_fail(x, "malformed or unsupported escape in a string");
    }
    add(x, TOKEN_STRING, 0, (ct_str){out, n});
    advance(x, end + 1);
    return CT_OK;
}

static bool digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool name_char(char c)
{
    return digit(c) || c == '_' || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/* An integer is 0, 00, … or starts with another digit; a float has a point or an
 * exponent with digits behind it, and no point before it. */
static void lex_number(lexer *x)
{
    size_t end = x->at, frac;
    bool after_point = x->at && x->src.p[x->at - 1] == '.', is_float = false;

    while (digit(at(x, end)))
        end++;
    frac = end;
    if (!after_point && at(x, frac) == '.' && digit(at(x, frac + 1))) {
        is_float = true;
        for (frac++; digit(at(x, frac));)
            frac++;
    }
    if (!after_point && (at(x, frac) | 0x20) == 'e') {
        size_t exp = frac + 1;

        if (at(x, exp) == '+' || at(x, exp) == '-')
            exp++;
        if (digit(at(x, exp))) {
            is_float = true;
            for (frac = exp; digit(at(x, frac));)
                frac++;
        }
    }
    if (!is_float && at(x, x->at) == '0')
        for (end = x->at; at(x, end) == '0';)
            end++;
    if (is_float)
        end = frac;
    add(x, is_float ? TOKEN_FLOAT : TOKEN_INT, 0, (ct_str){x->src.p + x->at, end - x->at});
    advance(x, end);
}

static ct_status lex_operator(lexer *x)
{
    static const char pairs[] = "==!=>=<=//**";
    char c = at(x, x->at), next = at(x, x->at + 1);

    for (size_t i = 0; i + 1 < sizeof pairs; i += 2)
        if (c == pairs[i] && next == pairs[i + 1]) {
            add(x, TOKEN_OP, OP2(c, next), (ct_str){x->src.p + x->at, 2});
            advance(x, x->at + 2);
            return CT_OK;
        }
    if (!c || !strchr("+-/*%~[](){}><=.:|,;", c))
        return lex_fail(x, "unexpected character in an expression");
    if (strchr("([{", c)) {
        if (x->n_open == MAX_BRACKETS)
            return lex_fail(x, "brackets nested too deep");
        x->open[x->n_open++] = c == '(' ? ')' : c == '[' ? ']' : '}';
    } else if (strchr(")]}", c)) {
        if (!x->n_open || x->open[--x->n_open] != c)
            return lex_fail(x, "unbalanced bracket");
    }
    add(x, TOKEN_OP, OP1(c), (ct_str){x->src.p + x->at, 1});
    advance(x, x->at + 1);
    return CT_OK;
}

/* The end of a tag, with what it takes of the text behind it. */
static bool lex_tag_end(lexer *x, bool block)
{
    char c = at(x, x->at), mark = block ? '%' : '}';
    bool sign = c == '-' || (block && c == '+');
    size_t p = x->at + sign;

    if (x->n_open || at(x, p) != mark || at(x, p + 1) != '}')
        return false;
    add(x, block ? TOKEN_BLOCK_END : TOKEN_VAR_END, 0, (ct_str){x->src.p + x->at, 2});
    advance(x, p + 2);
    if (sign && c == '-')
        skip_space(x);
    else if (!sign && block && at(x, x->at) == '\n')
        advance(x, x->at + 1);
    x->line_starting = x->src.p[x->at - 1] == '\n';
    return true;
}

static ct_status lex_tag(lexer *x, bool block)
{
    ct_status st = CT_OK;

    x->n_open = 0;
    while (!st) {
        char c;
        size_t end;

        skip_space(x);
        if (x->at >= x->src.n)
            return lex_fail(x, "the source ends inside a tag");
        if (lex_tag_end(x, block))
            return CT_OK;
        c = at(x, x->at);
        if (c == '"' || c == '\'') {
            st = lex_string(x);
        } else if (digit(c)) {
            lex_number(x);
        } else if (name_char(c)) {
            for (end = x->at; name_char(at(x, end));)
                end++;
            add(x, TOKEN_NAME, 0, (ct_str){x->src.p + x->at, end - x->at});
            advance(x, end);
        } else {
            st = lex_operator(x);
        }
    }
    return st;
}

static ct_status lex_comment(lexer *x)
{
    size_t begin = x->at, end = x->at;

    while (at(x, end) != '#' || at(x, end + 1) != '}')
        if (++end >= x->src.n)
            return lex_fail(x, "missing end of comment");
    advance(x, end + 2);
    if (end > begin && x->src.p[end - 1] == '-')
        skip_space(x);
    else if (!(end > begin && x->src.p[end - 1] == '+') && at(x, x->at) == '\n')
        advance(x, x->at + 1);
    x->line_starting = x->src.p[x->at - 1] == '\n';
    return CT_OK;
}

static size_t find_tag(const lexer *x)
{
    size_t i = x->at;

    for (; i < x->src.n; i++)
        if (x->src.p[i] == '{' &&
            (at(x, i + 1) == '%' || at(x, i + 1) == '{' || at(x, i + 1) == '#'))
            break;
    return i;
}

/* Text before a tag, without what the tag's sign or lstrip_blocks takes off it. */
static ct_str text_before(const lexer *x, size_t tag)
{
    ct_str text = {x->src.p + x->at, tag - x->at};
    char sign = at(x, tag + 2);
    size_t line = text.n;

    if (sign == '-')
        return ct_str_rstrip(text);
    if (sign == '+' || at(x, tag + 1) == '{')
        return text;
    while (line && text.p[line - 1] != '\n')
        line--;
    if ((line || x->line_starting) && ct_str_lstrip((ct_str){text.p + line, text.n - line}).n == 0)
        text.n = line;
    return text;
}

static ct_status lex_all(lexer *x)
{
    ct_status st = CT_OK;

    while (!st && x->at < x->src.n) {
        size_t tag = find_tag(x);
        ct_str text =
            tag < x->src.n ? text_before(x, tag) : (ct_str){x->src.p + x->at, x->src.n - x->at};
        char kind = at(x, tag + 1), sign = at(x, tag + 2);

        if (text.n)
            add(x, TOKEN_DATA, 0, text);
        advance(x, tag);
        if (tag == x->src.n)
            break;
        advance(x, tag + 2 + (sign == '-' || sign == '+'));
        if (kind == '#') {
            st = lex_comment(x);
            continue;
        }
        add(x, kind == '%' ? TOKEN_BLOCK_BEGIN : TOKEN_VAR_BEGIN, 0, (ct_str){0});
        st = lex_tag(x, kind == '%');
    }
    return st;
}

ct_status jinja_lex(jinja_token **out, ct_str name, ct_str source, ct_arena *keep,
                    ct_arena *scratch, ct_error *err)
{
    lexer x = {.name = name, .line = 1, .line_starting = true, .keep = keep, .err = err};
    ct_status st;

    /* No token is shorter than a byte; a tag adds no more than its own bytes. */
    x.token = ct_arena_alloc(scratch, (source.n + 2) * sizeof *x.token, _Alignof(jinja_token));
    if (!x.token)
        return lex_fail(&x, "the source exceeds the memory bound");
    st = normalise(&x, source);
    if (!st)
        st = lex_all(&x);
    if (st)
        return st;
    add(&x, TOKEN_END, 0, (ct_str){0});
    *out = x.token;
    return CT_OK;
}
