/* Byte strings: a borrowed view, and a growing buffer with a cap.
 * Views are not NUL-terminated; text is UTF-8 unless a comment says otherwise. */
#ifndef CT_BASE_STR_H
#define CT_BASE_STR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

typedef struct ct_str {
    const char *p; /* borrowed; may be NULL when n is 0 */
    size_t n;      /* bytes */
} ct_str;

/* For printf: "%.*s" with CT_STR_ARG(s). */
#define CT_STR_ARG(s)   (int)((s).n > INT32_MAX ? INT32_MAX : (s).n), (s).n ? (s).p : ""
#define CT_STR(literal) ((ct_str){(literal), sizeof(literal) - 1})

static inline ct_str ct_str_of(const char *z)
{
    return (ct_str){z, strlen(z)};
}

static inline bool ct_str_eq(ct_str a, ct_str b)
{
    return a.n == b.n && (a.n == 0 || memcmp(a.p, b.p, a.n) == 0);
}

static inline bool ct_str_is(ct_str a, const char *z)
{
    return ct_str_eq(a, ct_str_of(z));
}

static inline bool ct_str_starts(ct_str a, const char *prefix)
{
    size_t n = strlen(prefix);

    return a.n >= n && memcmp(a.p, prefix, n) == 0;
}

/* Value of a hexadecimal digit of either case, or -1. */
static inline int ct_hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c |= 0x20;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Byte order, shorter first when one is a prefix of the other. */
int ct_str_cmp(ct_str a, ct_str b);

/* Growing byte buffer on the heap.  Appending past the cap, or when memory runs
 * out, sets `failed`, appends nothing, and every later append is ignored: write a
 * whole piece, then test once. */
typedef struct ct_buf {
    char *p; /* owned; NUL-terminated whenever not NULL */
    size_t n, room, cap_bytes;
    bool failed;
} ct_buf;

void ct_buf_init(ct_buf *b, size_t cap_bytes); /* takes no memory yet */
void ct_buf_deinit(ct_buf *b);
void ct_buf_clear(ct_buf *b); /* keeps the memory; clears `failed` */
void ct_buf_add(ct_buf *b, const void *bytes, size_t n);
void ct_buf_addz(ct_buf *b, const char *z);
void ct_buf_addc(ct_buf *b, char c);
void ct_buf_addf(ct_buf *b, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

static inline ct_str ct_buf_str(const ct_buf *b)
{
    return (ct_str){b->p, b->n};
}

#endif
