/* Four floats at once, by the vector types of gcc and clang: every x86-64 and every arm64
 * has them, lanes never mix, so results do not depend on the machine.  Comparisons give
 * masks; all of them are false for NaN. */
#ifndef CT_ENGINE_LANES_H
#define CT_ENGINE_LANES_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

typedef float ct_f4 __attribute__((vector_size(16)));
typedef int32_t ct_i4 __attribute__((vector_size(16)));
typedef uint32_t ct_u4 __attribute__((vector_size(16)));

static inline ct_f4 ct_f4_load(const float *p)
{
    ct_f4 v;

    memcpy(&v, p, sizeof v);
    return v;
}

static inline ct_f4 ct_f4_all(float x)
{
    return (ct_f4){x, x, x, x};
}

static inline ct_f4 ct_f4_select(ct_i4 mask, ct_f4 yes, ct_f4 no)
{
    return (ct_f4)(((ct_i4)yes & mask) | ((ct_i4)no & ~mask));
}

static inline bool ct_i4_any(ct_i4 mask)
{
    uint64_t half[2];

    memcpy(half, &mask, sizeof half);
    return half[0] | half[1];
}

#endif
