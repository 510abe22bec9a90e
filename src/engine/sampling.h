/* What a request says about sampling: parameters, their neutral values, the defaults of a
 * checkpoint, and the check of all of them.
 *
 * The order in which they act, with formulas, sources and ranges, is docs/sampling.md.  In
 * short, on a row of logits l:
 *
 *    1. logit_bias          l[id] += bias
 *    2. repetition_penalty  l / r where l > 0, else l * r: ids of the prompt and the answer
 *    3. frequency_penalty   l -= f * count: ids of the answer
 *       presence_penalty    l -= p where count > 0
 *    4. DRY                 l -= multiplier * base^(length - allowed) for an id that would
 *                           extend a repetition of `length` >= allowed tokens
 *    5. never picked        suppressed ids; eos and stop ids before min_tokens; ids outside
 *                           the grammar's mask
 *    6. temperature         l / T; 0: the best id is taken and 7 to 10 do not matter
 *    7. top_k  8. top_p  9. min_p  10. typical_p: each on what the one before left
 *   11. draw                by the random number of (seed, position)
 *
 * That is the order of Hugging Face's generate().  Equal logits rank by the lower id,
 * everywhere. */
#ifndef CT_ENGINE_SAMPLING_H
#define CT_ENGINE_SAMPLING_H

#include "base/status.h"
#include "format/config.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CT_MAX_TOP_LOGPROBS 20
#define CT_MAX_LOGIT_BIAS   1024
#define CT_MAX_REQUEST_IDS  1024 /* of each of the lists of ids of a request */

typedef struct ct_logit_bias {
    uint32_t id;
    float bias; /* -100 to 100; biases of one id add up */
} ct_logit_bias;

/* All-zero is not neutral: start from ct_sampling_neutral or ct_sampling_defaults.
 * The lists are borrowed; ct_sample_state_create copies them. */
typedef struct ct_sampling {
    double temperature; /* 0 (greedy) to 100 */
    uint32_t top_k;     /* 0: off */
    double top_p;       /* 0 (the best id alone) to 1 (off) */
    double min_p;       /* 0 (off) to 1 */
    double typical_p;   /* above 0, to 1 (off) */

    double repetition_penalty; /* above 0, to 100; 1: off */
    double presence_penalty;   /* -2 to 2; 0: off */
    double frequency_penalty;  /* -2 to 2; 0: off */

    double dry_multiplier;       /* 0 (off) to 100 */
    double dry_base;             /* 1 to 100 */
    uint32_t dry_allowed_length; /* 1 to 65,536 */
    uint32_t dry_last_n;         /* tokens looked at; 0: the whole sequence */
    /* Bitmask of a vocabulary (CT_MASK_WORDS): ids over which no repetition reaches.
     * Borrowed for the life of the sample state, so that requests share one; NULL: none. */
    const uint32_t *dry_breakers;

    const ct_logit_bias *logit_bias;
    size_t n_logit_bias;
    const uint32_t *suppress_ids; /* never picked */
    size_t n_suppress_ids;
    const uint32_t *eos_ids; /* of the model: end the answer unless ignore_eos */
    size_t n_eos_ids;
    const uint32_t *stop_ids; /* of the request: always end the answer */
    size_t n_stop_ids;
    bool ignore_eos;     /* eos ids are ordinary tokens: picked, and not the end */
    uint32_t min_tokens; /* no eos or stop id before so many tokens of the answer */

    uint64_t seed;
    bool logprobs;         /* of the chosen id */
    uint32_t top_logprobs; /* and of the best, 0 to 20; above 0 needs logprobs */
} ct_sampling;

/* Greedy, every transform off. */
ct_sampling ct_sampling_neutral(void);

/* What the checkpoint's generation_config.json asks for; borrows its lists of ids.  An
 * absent field has its neutral value; do_sample false is temperature 0. */
ct_sampling ct_sampling_defaults(const ct_generation_config *g);

/* Refuses a value that is not a number, is out of range, or is an id outside the
 * vocabulary: "top_p: 1.5 is not from 0 to 1".  CT_EINVAL. */
ct_status ct_sampling_check(const ct_sampling *p, uint32_t vocab, ct_error *err);

/* Seed of choice number `choice` of a request with n > 1.  Choice 0 has the seed itself. */
uint64_t ct_sampling_choice_seed(uint64_t seed, uint32_t choice);

/* Sets of ids as bitmasks: id is in mask[id / 32], bit id % 32. */
#define CT_MASK_WORDS(vocab) (((size_t)(vocab) + 31) / 32)

static inline bool ct_mask_has(const uint32_t *mask, uint32_t id)
{
    return mask[id / 32] >> id % 32 & 1;
}

static inline void ct_mask_add(uint32_t *mask, uint32_t id)
{
    mask[id / 32] |= (uint32_t)1 << id % 32;
}

#endif
