/* Overflow-safe size arithmetic for every number that comes from a file or a
 * client.  Each returns false, and leaves *out untouched, when the true result
 * does not fit. */
#ifndef CT_BASE_CHECKED_H
#define CT_BASE_CHECKED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CT_LEN(array) (sizeof(array) / sizeof((array)[0]))

static inline bool ct_add_size(size_t *out, size_t a, size_t b)
{
    size_t sum;

    if (__builtin_add_overflow(a, b, &sum))
        return false;
    *out = sum;
    return true;
}

static inline bool ct_mul_size(size_t *out, size_t a, size_t b)
{
    size_t product;

    if (__builtin_mul_overflow(a, b, &product))
        return false;
    *out = product;
    return true;
}

static inline size_t ct_min_size(size_t a, size_t b)
{
    return a < b ? a : b;
}

static inline size_t ct_max_size(size_t a, size_t b)
{
    return a > b ? a : b;
}

#endif
