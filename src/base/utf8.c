#include "base/utf8.h"

#include <assert.h>

static bool is_tail(unsigned char c)
{
    return (c & 0xc0) == 0x80;
}

uint32_t ct_utf8_next(ct_str s, size_t at, unsigned *len)
{
    const unsigned char *p = (const unsigned char *)s.p + at;
    size_t left = s.n - at;
    uint32_t cp;
    unsigned n;

    assert(at < s.n);
    *len = 1;
    if (p[0] < 0x80)
        return p[0];
    if (p[0] < 0xc2 || p[0] > 0xf4)
        return CT_UTF8_INVALID;
    n = p[0] < 0xe0 ? 2 : p[0] < 0xf0 ? 3 : 4;
    if (left < n)
        return CT_UTF8_INVALID;
    cp = p[0] & (0x7fu >> n);
    for (unsigned i = 1; i < n; i++) {
        if (!is_tail(p[i]))
            return CT_UTF8_INVALID;
        cp = cp << 6 | (p[i] & 0x3f);
    }
    if ((n == 3 && cp < 0x800) || (n == 4 && cp < 0x10000) || cp > 0x10ffff ||
        (cp >= 0xd800 && cp < 0xe000))
        return CT_UTF8_INVALID;
    *len = n;
    return cp;
}

unsigned ct_utf8_put(char out[4], uint32_t cp)
{
    if (cp < 0x80) {
        out[0] = (char)cp;
        return 1;
    }
    if (cp < 0x800) {
        out[0] = (char)(0xc0 | cp >> 6);
        out[1] = (char)(0x80 | (cp & 0x3f));
        return 2;
    }
    if (cp < 0x10000) {
        out[0] = (char)(0xe0 | cp >> 12);
        out[1] = (char)(0x80 | (cp >> 6 & 0x3f));
        out[2] = (char)(0x80 | (cp & 0x3f));
        return 3;
    }
    out[0] = (char)(0xf0 | cp >> 18);
    out[1] = (char)(0x80 | (cp >> 12 & 0x3f));
    out[2] = (char)(0x80 | (cp >> 6 & 0x3f));
    out[3] = (char)(0x80 | (cp & 0x3f));
    return 4;
}

/* Passes over ASCII: eight bytes at a time, then one by one. */
static size_t pass_ascii(ct_str s, size_t at)
{
    uint64_t word;

    for (; s.n - at >= sizeof word; at += sizeof word) {
        memcpy(&word, s.p + at, sizeof word);
        if (word & 0x8080808080808080u)
            break;
    }
    while (at < s.n && (unsigned char)s.p[at] < 0x80)
        at++;
    return at;
}

size_t ct_utf8_valid_prefix(ct_str s)
{
    size_t at = 0;
    unsigned len;

    while (at < s.n) {
        at = pass_ascii(s, at);
        if (at == s.n)
            break;
        if (ct_utf8_next(s, at, &len) == CT_UTF8_INVALID)
            return at;
        at += len;
    }
    return at;
}
