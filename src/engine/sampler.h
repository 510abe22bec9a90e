/* From a row of logits to the next token.
 *
 * A ct_sampler is scratch: one for each thread that samples, nothing survives a call.  A
 * ct_sample_state belongs to one request: its parameters and what they need to know of its
 * tokens.  The choice is a function of the row, the state and the mask alone: neither the
 * sampler used, nor the batch, nor the order of requests matters.  After creation nothing
 * allocates.
 *
 * For each request:
 *     ct_sample_state_create   (parameters checked, memory taken)
 *     ct_sample_state_prompt   (its prompt)
 *     for each token: ct_sampler_pick, then ct_sample_state_accept with the id that
 *     became part of the sequence
 * Picking does not change the state: a speculated row may be picked and dropped.  A
 * preempted request keeps its state and goes on. */
#ifndef CT_ENGINE_SAMPLER_H
#define CT_ENGINE_SAMPLER_H

#include "engine/sampling.h"

/* --- state of a request ---------------------------------------------------------- */

typedef struct ct_sample_state ct_sample_state;

/* max_tokens: longest sequence, prompt and answer together.  Refuses what
 * ct_sampling_check refuses.  how is copied with its lists, but for dry_breakers. */
ct_status ct_sample_state_create(ct_sample_state **out, const ct_sampling *how, uint32_t vocab,
                                 uint32_t max_tokens, ct_error *err);
void ct_sample_state_destroy(ct_sample_state *st); /* NULL is fine */

/* Heap that such a state takes, for plans.  Small (under 32 KiB) unless a penalty or DRY
 * is on; those take at most 24 and 8 bytes for each of max_tokens. */
size_t ct_sample_state_bytes(const ct_sampling *how, uint32_t vocab, uint32_t max_tokens);

/* Appends tokens of the prompt; before the first accept, in one call or several.  Ids must
 * be inside the vocabulary, and the sequence within max_tokens. */
void ct_sample_state_prompt(ct_sample_state *st, const uint32_t *ids, size_t n);
/* Appends the token that was chosen. */
void ct_sample_state_accept(ct_sample_state *st, uint32_t id);

uint32_t ct_sample_state_n_answer(const ct_sample_state *st);         /* tokens accepted */
const ct_sampling *ct_sample_state_params(const ct_sample_state *st); /* borrowed */

/* --- picking --------------------------------------------------------------------- */

typedef struct ct_sampler ct_sampler;

typedef struct ct_logprob {
    uint32_t id;
    float logprob; /* natural logarithm; -INFINITY for a probability of 0 */
} ct_logprob;

/* Log-softmax of the row as the model gave it, before any transform: what OpenAI and, by
 * default, vLLM report.  So the chosen id can be of any rank. */
typedef struct ct_logprobs {
    float logprob; /* of the id in question */
    uint32_t rank; /* 1: nothing ranks above it */
    uint32_t n_top;
    ct_logprob top[CT_MAX_TOP_LOGPROBS]; /* best first */
} ct_logprobs;

typedef struct ct_sample {
    uint32_t id;
    bool stop;            /* id ends the answer: a stop id, or an eos id that counts */
    ct_logprobs logprobs; /* set when the request asked for them */
} ct_sample;

ct_status ct_sampler_create(ct_sampler **out, uint32_t vocab, ct_error *err);
void ct_sampler_destroy(ct_sampler *s); /* NULL is fine */
size_t ct_sampler_bytes(uint32_t vocab);

/* logits[vocab], left as they are.  allowed: the ids a grammar lets through, as a mask;
 * NULL: all.  A NaN counts as -inf and neither is ever picked; +inf counts as FLT_MAX.
 * CT_EINVAL when no id is left: the request must end with that error. */
ct_status ct_sampler_pick(ct_sampler *s, const float *logits, const ct_sample_state *st,
                          const uint32_t *allowed, ct_sample *out, ct_error *err);

/* Logprob of a given id (of a prompt, say) and of the n_top best, from the row of the
 * position before it. */
void ct_sampler_logprobs(ct_sampler *s, const float *logits, uint32_t id, uint32_t n_top,
                         ct_logprobs *out);

/* Uniform in [0, 1), a function of its two arguments alone.  The token at `position` of the
 * sequence (prompt included) is drawn with the number of its position. */
double ct_sampler_uniform(uint64_t seed, uint64_t position);

#endif
