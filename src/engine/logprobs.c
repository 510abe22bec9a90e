/* Log-softmax of a raw row. */
#include "engine/sampler_impl.h"

#include <math.h>

/* How many usable logits rank above (l, id).  NaN is above nothing. */
static uint32_t n_above(const float *row, uint32_t vocab, float l, uint32_t id)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < id; i++)
        n += row[i] >= l && row[i] > -INFINITY;
    for (uint32_t i = id; i < vocab; i++)
        n += row[i] > l && l < FLT_MAX;
    return n;
}

typedef struct log_softmax {
    float max;
    double log_sum; /* of exp(l - max) */
} log_softmax;

/* Any values do when nothing is usable. */
static log_softmax measure(const float *row, uint32_t vocab)
{
    uint64_t best = ct_rank_best(row, vocab);
    float max;

    if (best == CT_RANK_NONE)
        return (log_softmax){0};
    max = ct_rank_logit(best);
    return (log_softmax){max, log(ct_exp_sum(row, vocab, max, 1))};
}

static float logprob_of(const log_softmax *m, float l)
{
    return (float)((double)l - m->max - m->log_sum);
}

void ct_sampler_logprobs(ct_sampler *s, const float *logits, uint32_t id, uint32_t n_top,
                         ct_logprobs *out)
{
    log_softmax m = measure(logits, s->vocab);
    /* A NaN counts as -inf. */
    float l = logits[id] > -INFINITY ? ct_logit_finite(logits[id]) : -INFINITY;
    size_t n = ct_rank_top(s->key, n_top, logits, s->vocab);

    *out = (ct_logprobs){
        .logprob = logprob_of(&m, l),
        .rank = 1 + n_above(logits, s->vocab, l, id),
        .n_top = (uint32_t)n,
    };
    for (size_t i = 0; i < n; i++)
        out->top[i] = (ct_logprob){ct_rank_id(s->key[i]), logprob_of(&m, ct_rank_logit(s->key[i]))};
}
