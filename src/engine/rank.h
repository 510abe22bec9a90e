/* The best ids of a row, in order: higher logit first, then lower id.
 *
 * A key is the logit and the id in one integer, made so that a smaller key ranks better:
 * order is one comparison and never has ties.  NaN and -inf have no key. */
#ifndef CT_ENGINE_RANK_H
#define CT_ENGINE_RANK_H

#include "base/num.h"

#include <float.h>
#include <stddef.h>
#include <stdint.h>

/* +inf counts as the largest finite logit; adding 0 makes -0 and 0 equal. */
static inline uint64_t ct_rank_key(float logit, uint32_t id)
{
    uint32_t u = ct_f32_bits((logit < FLT_MAX ? logit : FLT_MAX) + 0.0f);

    u = u >> 31 ? u : u ^ 0x7fffffff; /* larger logit, smaller u */
    return (uint64_t)u << 32 | id;
}

static inline uint32_t ct_rank_id(uint64_t key)
{
    return (uint32_t)key;
}

static inline float ct_rank_logit(uint64_t key)
{
    uint32_t u = (uint32_t)(key >> 32);

    return ct_bits_f32(u >> 31 ? u : u ^ 0x7fffffff);
}

#define CT_RANK_NONE UINT64_MAX

/* Key of the best id, in one scan; CT_RANK_NONE when no logit is usable. */
uint64_t ct_rank_best(const float *row, uint32_t vocab);

/* The k best, in order, into out[k]; returns how many there are.  For small k: time is one
 * scan and k log k for what gets into the heap. */
size_t ct_rank_top(uint64_t *out, size_t k, const float *row, uint32_t vocab);

/* The same for many: at least the k best, and no more than come with them (all, when k is
 * vocab), in order into out[vocab]; spare[vocab] is scratch.  Linear. */
size_t ct_rank_many(uint64_t *out, uint64_t *spare, size_t k, const float *row, uint32_t vocab);

#endif
