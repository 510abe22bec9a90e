#include "base/json.h"

#include "base/utf8.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#define REPLACEMENT 0xfffd
/* Long enough for any number whose value matters as a double. */
#define NUMBER_BYTES 128

void ct_json_init(ct_json *j, const char *name, ct_str text)
{
    *j = (ct_json){.name = name, .text = text};
}

static ct_status json_fail(const ct_json *j, const char *what, ct_error *err)
{
    return ct_fail(err, CT_EFORMAT, "%s: JSON, byte %zu: %s", j->name, j->at, what);
}

static bool at_end(const ct_json *j)
{
    return j->at >= j->text.n;
}

/* The byte at the cursor; 0 at the end (a NUL in the text is never valid either). */
static char peek(const ct_json *j)
{
    return at_end(j) ? '\0' : j->text.p[j->at];
}

static void skip_blanks(ct_json *j)
{
    while (!at_end(j)) {
        char c = j->text.p[j->at];

        if (c != ' ' && c != '\n' && c != '\r' && c != '\t')
            return;
        j->at++;
    }
}

static bool in_object(const ct_json *j)
{
    return j->depth && j->is_object[j->depth - 1];
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* Checks the escape after a backslash at j->at - 1 and passes over it. */
static ct_status read_escape(ct_json *j, ct_error *err)
{
    char c = peek(j);

    if (c == 'u') {
        for (size_t i = 1; i <= 4; i++)
            if (j->at + i >= j->text.n || ct_hex_digit(j->text.p[j->at + i]) < 0)
                return json_fail(j, "\\u needs four hexadecimal digits", err);
        j->at += 5;
        return CT_OK;
    }
    if (!c || !strchr("\"\\/bfnrt", c))
        return json_fail(j, "unknown escape", err);
    j->at++;
    return CT_OK;
}

/* Moves the cursor to the first byte that a string does not take as it stands: a quote, a
 * backslash, a control character, or the end.  True when a byte on the way is not ASCII. */
static bool pass_plain(ct_json *j)
{
    const unsigned char *p = (const unsigned char *)j->text.p;
    size_t at = j->at;
    unsigned char seen = 0;

    while (at < j->text.n && p[at] >= 0x20 && p[at] != '"' && p[at] != '\\')
        seen |= p[at++];
    j->at = at;
    return seen >= 0x80;
}

/* Cursor is just behind the opening quote. */
static ct_status read_string(ct_json *j, ct_json_token *t, ct_error *err)
{
    size_t begin = j->at, bad;
    bool is_ascii = true;
    ct_str body;
    ct_status st;

    t->escaped = false;
    for (;;) {
        is_ascii &= !pass_plain(j);
        if (at_end(j))
            return json_fail(j, "unterminated string", err);
        if (peek(j) == '"')
            break;
        if (peek(j) != '\\')
            return json_fail(j, "control character in a string", err);
        j->at++;
        t->escaped = true;
        st = read_escape(j, err);
        if (st)
            return st;
    }
    body = (ct_str){j->text.p + begin, j->at - begin};
    bad = is_ascii ? body.n : ct_utf8_valid_prefix(body);
    if (bad < body.n) {
        j->at = begin + bad;
        return json_fail(j, "string is not valid UTF-8", err);
    }
    t->raw = body;
    j->at++;
    return CT_OK;
}

static size_t skip_digits(ct_json *j)
{
    size_t begin = j->at;

    while (is_digit(peek(j)))
        j->at++;
    return j->at - begin;
}

static ct_status read_number(ct_json *j, ct_json_token *t, ct_error *err)
{
    size_t begin = j->at;

    if (peek(j) == '-')
        j->at++;
    if (peek(j) == '0')
        j->at++;
    else if (!skip_digits(j))
        return json_fail(j, "expected a value", err);
    if (is_digit(peek(j)))
        return json_fail(j, "number with a leading zero", err);
    if (peek(j) == '.') {
        j->at++;
        if (!skip_digits(j))
            return json_fail(j, "number without digits after the point", err);
    }
    if (peek(j) == 'e' || peek(j) == 'E') {
        j->at++;
        if (peek(j) == '+' || peek(j) == '-')
            j->at++;
        if (!skip_digits(j))
            return json_fail(j, "number without digits in its exponent", err);
    }
    t->kind = CT_JSON_NUMBER;
    t->raw = (ct_str){j->text.p + begin, j->at - begin};
    return CT_OK;
}

static ct_status read_word(ct_json *j, ct_json_token *t, ct_error *err)
{
    static const struct {
        const char *word;
        ct_json_kind kind;
    } words[] = {{"true", CT_JSON_TRUE}, {"false", CT_JSON_FALSE}, {"null", CT_JSON_NULL}};
    ct_str rest = {j->text.p + j->at, j->text.n - j->at};

    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (ct_str_starts(rest, words[i].word)) {
            j->at += strlen(words[i].word);
            t->kind = words[i].kind;
            return CT_OK;
        }
    return json_fail(j, "expected a value", err);
}

static ct_status open_container(ct_json *j, bool is_object, ct_json_token *t, ct_error *err)
{
    if (j->depth == CT_JSON_MAX_DEPTH)
        return ct_fail(err, CT_ELIMIT, "%s: JSON, byte %zu: nested deeper than %d levels", j->name,
                       j->at, CT_JSON_MAX_DEPTH);
    j->at++;
    j->is_object[j->depth++] = is_object;
    j->need_comma = false;
    t->kind = is_object ? CT_JSON_OBJECT : CT_JSON_ARRAY;
    return CT_OK;
}

static ct_status read_value(ct_json *j, ct_json_token *t, ct_error *err)
{
    char c = peek(j);

    if (at_end(j))
        return json_fail(j, "expected a value, found the end", err);
    j->started = true;
    j->after_key = false;
    if (c == '{' || c == '[')
        return open_container(j, c == '{', t, err);
    j->need_comma = true;
    if (c == '"') {
        j->at++;
        t->kind = CT_JSON_STRING;
        return read_string(j, t, err);
    }
    if (c == '-' || is_digit(c))
        return read_number(j, t, err);
    return read_word(j, t, err);
}

static ct_status read_key(ct_json *j, ct_json_token *t, ct_error *err)
{
    ct_status st;

    if (peek(j) != '"')
        return json_fail(j, "expected a key in quotes", err);
    j->at++;
    t->kind = CT_JSON_KEY;
    st = read_string(j, t, err);
    if (st)
        return st;
    skip_blanks(j);
    if (peek(j) != ':')
        return json_fail(j, "expected ':' after a key", err);
    j->at++;
    j->after_key = true;
    return CT_OK;
}

ct_status ct_json_next(ct_json *j, ct_json_token *t, ct_error *err)
{
    *t = (ct_json_token){0};
    skip_blanks(j);
    if (j->depth == 0) {
        if (!j->started)
            return read_value(j, t, err);
        if (!at_end(j))
            return json_fail(j, "text after the value", err);
        t->kind = CT_JSON_END;
        return CT_OK;
    }
    if (j->after_key)
        return read_value(j, t, err);
    if (peek(j) == (in_object(j) ? '}' : ']')) {
        t->kind = in_object(j) ? CT_JSON_OBJECT_END : CT_JSON_ARRAY_END;
        j->at++;
        j->depth--;
        j->need_comma = true;
        return CT_OK;
    }
    if (j->need_comma) {
        if (peek(j) != ',')
            return json_fail(j, in_object(j) ? "expected ',' or '}'" : "expected ',' or ']'", err);
        j->at++;
        j->need_comma = false;
        skip_blanks(j);
    }
    return in_object(j) ? read_key(j, t, err) : read_value(j, t, err);
}

const char *ct_json_kind_name(ct_json_kind kind)
{
    switch (kind) {
    case CT_JSON_END:
        return "the end";
    case CT_JSON_OBJECT:
        return "an object";
    case CT_JSON_OBJECT_END:
        return "'}'";
    case CT_JSON_ARRAY:
        return "an array";
    case CT_JSON_ARRAY_END:
        return "']'";
    case CT_JSON_KEY:
        return "a key";
    case CT_JSON_STRING:
        return "a string";
    case CT_JSON_NUMBER:
        return "a number";
    case CT_JSON_TRUE:
        return "true";
    case CT_JSON_FALSE:
        return "false";
    case CT_JSON_NULL:
        return "null";
    }
    return "?";
}

ct_status ct_json_expect(ct_json *j, ct_json_kind kind, const char *what, ct_json_token *t,
                         ct_error *err)
{
    ct_status st = ct_json_next(j, t, err);

    if (st)
        return st;
    if (t->kind != kind)
        return ct_fail(err, CT_EFORMAT, "%s: %s must be %s, not %s (byte %zu)", j->name, what,
                       ct_json_kind_name(kind), ct_json_kind_name(t->kind), j->at);
    return CT_OK;
}

ct_status ct_json_skip(ct_json *j, const ct_json_token *t, ct_error *err)
{
    unsigned outside = j->depth - 1;
    ct_json_token inner;
    ct_status st;

    if (t->kind != CT_JSON_OBJECT && t->kind != CT_JSON_ARRAY)
        return CT_OK;
    while (j->depth > outside) {
        st = ct_json_next(j, &inner, err);
        if (st)
            return st;
    }
    return CT_OK;
}

static uint32_t hex4(const char *p)
{
    uint32_t v = 0;

    for (int i = 0; i < 4; i++)
        v = v << 4 | (uint32_t)ct_hex_digit(p[i]);
    return v;
}

/* Decodes one escape whose backslash is at raw.p[*at]; moves *at behind it. */
static unsigned decode_escape(ct_str raw, size_t *at, char out[4])
{
    static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
    char c = raw.p[*at + 1];
    uint32_t cp, low;

    if (c != 'u') {
        out[0] = to[strchr(from, c) - from];
        *at += 2;
        return 1;
    }
    cp = hex4(raw.p + *at + 2);
    *at += 6;
    if (cp >= 0xd800 && cp < 0xdc00 && *at + 6 <= raw.n && raw.p[*at] == '\\' &&
        raw.p[*at + 1] == 'u') {
        low = hex4(raw.p + *at + 2);
        if (low >= 0xdc00 && low < 0xe000) {
            *at += 6;
            cp = 0x10000 + ((cp - 0xd800) << 10) + (low - 0xdc00);
        }
    }
    if (cp >= 0xd800 && cp < 0xe000)
        cp = REPLACEMENT;
    return ct_utf8_put(out, cp);
}

ct_status ct_json_str(const ct_json *j, const ct_json_token *t, ct_arena *a, ct_str *out,
                      ct_error *err)
{
    size_t n = 0;
    char *p;

    assert(t->kind == CT_JSON_KEY || t->kind == CT_JSON_STRING);
    if (!t->escaped) {
        *out = t->raw;
        return CT_OK;
    }
    /* No escape is shorter than what it stands for. */
    p = ct_arena_alloc(a, t->raw.n, 1);
    if (!p)
        return ct_fail(err, CT_ELIMIT, "%s: JSON: a string of %zu bytes exceeds the memory bound",
                       j->name, t->raw.n);
    for (size_t at = 0; at < t->raw.n;) {
        char piece[4];
        unsigned len;

        if (t->raw.p[at] != '\\') {
            p[n++] = t->raw.p[at++];
            continue;
        }
        len = decode_escape(t->raw, &at, piece);
        memcpy(p + n, piece, len);
        n += len;
    }
    *out = (ct_str){p, n};
    return CT_OK;
}

bool ct_json_is(const ct_json_token *t, const char *z)
{
    size_t n = strlen(z), done = 0, at = 0;

    if (!t->escaped)
        return ct_str_is(t->raw, z);
    while (at < t->raw.n) {
        char piece[4];
        unsigned len = 1;

        if (t->raw.p[at] == '\\')
            len = decode_escape(t->raw, &at, piece);
        else
            piece[0] = t->raw.p[at++];
        if (n - done < len || memcmp(z + done, piece, len) != 0)
            return false;
        done += len;
    }
    return done == n;
}

ct_status ct_json_u64(const ct_json *j, const ct_json_token *t, const char *what, uint64_t max,
                      uint64_t *out, ct_error *err)
{
    uint64_t v = 0;
    bool ok = t->kind == CT_JSON_NUMBER;

    for (size_t i = 0; ok && i < t->raw.n; i++) {
        ok = is_digit(t->raw.p[i]) && !__builtin_mul_overflow(v, 10u, &v) &&
             !__builtin_add_overflow(v, (uint64_t)(t->raw.p[i] - '0'), &v);
    }
    if (!ok || v > max)
        return ct_fail(err, CT_EFORMAT, "%s: %s is %.*s, must be a whole number up to %" PRIu64,
                       j->name, what,
                       CT_STR_ARG(t->kind == CT_JSON_NUMBER
                                      ? ((ct_str){t->raw.p, t->raw.n < 40 ? t->raw.n : 40})
                                      : ct_str_of(ct_json_kind_name(t->kind))),
                       max);
    *out = v;
    return CT_OK;
}

ct_status ct_json_double(const ct_json *j, const ct_json_token *t, const char *what, double *out,
                         ct_error *err)
{
    char z[NUMBER_BYTES];
    double v;

    if (t->kind != CT_JSON_NUMBER)
        return ct_fail(err, CT_EFORMAT, "%s: %s must be a number, not %s", j->name, what,
                       ct_json_kind_name(t->kind));
    if (t->raw.n >= sizeof z)
        return ct_fail(err, CT_ELIMIT, "%s: %s is a number of %zu characters, at most %zu are read",
                       j->name, what, t->raw.n, sizeof z - 1);
    memcpy(z, t->raw.p, t->raw.n);
    z[t->raw.n] = '\0';
    v = strtod(z, NULL);
    if (!isfinite(v))
        return ct_fail(err, CT_EFORMAT, "%s: %s is %s, too large", j->name, what, z);
    *out = v;
    return CT_OK;
}

void ct_json_put_chars(ct_buf *b, ct_str s)
{
    static const char hex[] = "0123456789abcdef";
    size_t at = 0, plain = 0; /* s[plain, at) is waiting to be copied as it is */

    while (at < s.n) {
        unsigned char c = (unsigned char)s.p[at];
        unsigned len = 1;

        if (c >= 0x20 && c != '"' && c != '\\' && c < 0x7f) {
            at++;
            continue;
        }
        if (c >= 0x80 && ct_utf8_next(s, at, &len) != CT_UTF8_INVALID) {
            at += len;
            continue;
        }
        ct_buf_add(b, s.p + plain, at - plain);
        if (c >= 0x80)
            ct_buf_addz(b, "\xef\xbf\xbd");
        else if (c == '"' || c == '\\')
            ct_buf_add(b, (char[]){'\\', (char)c}, 2);
        else if (c == '\n')
            ct_buf_addz(b, "\\n");
        else
            ct_buf_add(b, (char[]){'\\', 'u', '0', '0', hex[c >> 4], hex[c & 15]}, 6);
        plain = ++at;
    }
    if (at > plain)
        ct_buf_add(b, s.p + plain, at - plain);
}

void ct_json_put_str(ct_buf *b, ct_str s)
{
    ct_buf_addc(b, '"');
    ct_json_put_chars(b, s);
    ct_buf_addc(b, '"');
}
