/* UTF-8 as RFC 3629 defines it: no overlong forms, no surrogates, at most U+10FFFF. */
#ifndef CT_BASE_UTF8_H
#define CT_BASE_UTF8_H

#include "base/str.h"

#define CT_UTF8_INVALID UINT32_MAX

/* Code point at s.p[at] (at < s.n); *len gets its length, 1 to 4 bytes.  For a
 * malformed sequence: CT_UTF8_INVALID and *len 1. */
uint32_t ct_utf8_next(ct_str s, size_t at, unsigned *len);

/* Writes 1 to 4 bytes and returns how many.  cp must be a Unicode scalar value. */
unsigned ct_utf8_put(char out[4], uint32_t cp);

/* Offset of the first malformed byte, or s.n when s is valid. */
size_t ct_utf8_valid_prefix(ct_str s);

#endif
