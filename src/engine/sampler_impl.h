/* Inside of the sampler: what its files share. */
#ifndef CT_ENGINE_SAMPLER_IMPL_H
#define CT_ENGINE_SAMPLER_IMPL_H

#include "engine/rank.h"
#include "engine/sampler.h"

/* So many ids are ranked at first, then so many times more; only a request whose choice can
 * reach further pays for it. */
#define CT_RANK_FIRST  1024
#define CT_RANK_GROWTH 16

/* How often ids came up: an open-addressing table over a dense list. */
typedef struct ct_token_count {
    uint32_t id, n_answer; /* n_answer 0: in the prompt only */
} ct_token_count;

typedef struct ct_token_counts {
    ct_token_count *entry; /* [max_entries], in order of first appearance; NULL: not kept */
    uint32_t *slot;        /* [1 << slot_bits]: index in entry + 1, or 0 */
    uint32_t n, max_entries;
    unsigned slot_bits;
} ct_token_counts;

/* The last tokens of the sequence. */
typedef struct ct_dry_history {
    uint32_t *id;     /* ring of `room`; NULL: not kept */
    uint32_t *length; /* [room]: scratch of ct_dry_apply */
    uint32_t room, n; /* n <= room tokens are held */
    uint32_t next;    /* where the next goes */
} ct_dry_history;

struct ct_sample_state {
    ct_sampling how; /* lists: copies in this allocation */
    uint32_t vocab, max_tokens;
    uint32_t n_tokens, n_answer; /* of the sequence; of them, of the answer */
    ct_token_counts counts;
    ct_dry_history history;
};

struct ct_sampler {
    uint32_t vocab;
    float *row;        /* [vocab]: the transformed logits */
    uint64_t *key;     /* [vocab]: ranking */
    uint64_t *spare;   /* [vocab]: for sorting it */
    double *weight;    /* [vocab]: by rank, the probability over that of the best */
    double *surprise;  /* [vocab]: by rank, for typical_p */
    uint32_t *longest; /* [vocab]: all 0 outside ct_dry_apply */
};

/* The value of a usable logit: +inf counts as FLT_MAX. */
static inline float ct_logit_finite(float l)
{
    return l < FLT_MAX ? l : FLT_MAX;
}

/* A logit that a transform gave v, as float.  One that can be picked stays finite, so that
 * no amount of penalty takes the last id away. */
static inline float ct_logit_of(double v)
{
    return (float)(v > FLT_MAX ? FLT_MAX : v < -FLT_MAX ? -FLT_MAX : v);
}

/* penalties.c.  Add needs room for the id: see max_entries. */
void ct_token_counts_add(ct_token_counts *c, uint32_t id, bool in_answer);
void ct_penalties_apply(float *row, const ct_sampling *how, const ct_token_counts *c);

/* dry.c */
void ct_dry_history_add(ct_dry_history *h, uint32_t id);
void ct_dry_apply(float *row, const ct_sampling *how, const ct_dry_history *h, uint32_t *longest);

/* truncate.c: steps 6 to 11 on a row that has at least one usable logit. */
uint32_t ct_truncate_draw(ct_sampler *s, const float *row, const ct_sampling *how, double u);

/* exp_sum.c: sum over the usable ids of exp((l - max) / temperature); max: of the row. */
double ct_exp_sum(const float *row, uint32_t vocab, float max, double temperature);

#endif
