/* UTF-8 as RFC 3629 defines it: no overlong forms, no surrogates, at most U+10FFFF. */
#ifndef CT_BASE_UTF8_H
#define CT_BASE_UTF8_H

#include "base/str.h"

#define CT_UTF8_INVALID UINT32_MAX

/* Code point at s.p[at] (at < s.n); *len gets its length, 1 to 4 bytes.  For a
 * malformed sequence: CT_UTF8_INVALID and *len 1. */
uint32_t ct_utf8_next(ct_str s, size_t at, unsigned *len);

/* The same for text that is known to be valid, of which p is the start of a character. */
static inline uint32_t ct_utf8_known(const char *p, unsigned *len)
{
    const unsigned char *c = (const unsigned char *)p;

    *len = c[0] < 0x80 ? 1 : c[0] < 0xe0 ? 2 : c[0] < 0xf0 ? 3 : 4;
    switch (*len) {
    case 1:
        return c[0];
    case 2:
        return (c[0] & 0x1fu) << 6 | (c[1] & 0x3fu);
    case 3:
        return (c[0] & 0xfu) << 12 | (c[1] & 0x3fu) << 6 | (c[2] & 0x3fu);
    default:
        return (c[0] & 7u) << 18 | (c[1] & 0x3fu) << 12 | (c[2] & 0x3fu) << 6 | (c[3] & 0x3fu);
    }
}

/* Writes 1 to 4 bytes and returns how many.  cp must be a Unicode scalar value. */
unsigned ct_utf8_put(char out[4], uint32_t cp);

/* Offset of the first malformed byte, or s.n when s is valid. */
size_t ct_utf8_valid_prefix(ct_str s);

#endif
