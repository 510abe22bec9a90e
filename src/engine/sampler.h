/* From logits to the next token.
 *
 * Order of the transforms, as Hugging Face applies them: suppressed ids, temperature,
 * top_k, top_p.  Temperature 0 is greedy; equal logits go to the lower id.  The random
 * number of a token depends on (seed, position) only, so a request gives the same
 * tokens whatever is computed beside it.  One thread at a time. */
#ifndef CT_ENGINE_SAMPLER_H
#define CT_ENGINE_SAMPLER_H

#include "base/status.h"

#include <stddef.h>
#include <stdint.h>

typedef struct ct_sampling {
    double temperature; /* 0: greedy */
    double top_p;       /* in (0, 1]; 1: off */
    uint32_t top_k;     /* 0: off */
    uint64_t seed;
} ct_sampling;

typedef struct ct_sampler ct_sampler;

/* Scratch for a vocabulary of n ids.  suppress (may be NULL) lists ids that are never
 * picked; it is copied, and ids outside the vocabulary are refused. */
ct_status ct_sampler_create(ct_sampler **out, uint32_t vocab, const uint32_t *suppress,
                            size_t n_suppress, ct_error *err);
void ct_sampler_destroy(ct_sampler *s);

/* logits[vocab]; position: of the token that is being chosen.  NaN counts as -inf. */
uint32_t ct_sampler_pick(ct_sampler *s, const float *logits, const ct_sampling *how,
                         uint64_t position);

/* Uniform in [0, 1), a function of its two arguments alone. */
double ct_sampler_uniform(uint64_t seed, uint64_t position);

#endif
