/* Log-softmax of a raw row. */
#include "engine/sampler_impl.h"

#include <math.h>

/* How many usable logits rank above (l, id). */
static uint32_t n_above(const float *row, uint32_t vocab, float l, uint32_t id)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < id; i++)
        n += row[i] >= l && row[i] > -INFINITY;
    for (uint32_t i = id; i < vocab; i++)
        n += row[i] > l;
    return n;
}

/* log of the sum of exp over the row; 0 when nothing is usable. */
static double log_sum(const float *row, uint32_t vocab)
{
    uint64_t best = ct_rank_best(row, vocab);
    double max;

    if (best == CT_RANK_NONE)
        return 0;
    max = ct_rank_logit(best);
    return max + log(ct_exp_sum(row, vocab, max, 1));
}

void ct_sampler_logprobs(ct_sampler *s, const float *logits, uint32_t id, uint32_t n_top,
                         ct_logprobs *out)
{
    double sum = log_sum(logits, s->vocab);
    float l = logits[id] > -INFINITY ? logits[id] : -INFINITY; /* a NaN too */
    size_t n = ct_rank_top(s->key, n_top, logits, s->vocab);

    l = l < FLT_MAX ? l : FLT_MAX;
    *out = (ct_logprobs){
        .logprob = (float)(l - sum),
        .rank = 1 + n_above(logits, s->vocab, l, id),
        .n_top = (uint32_t)n,
    };
    for (size_t i = 0; i < n; i++)
        out->top[i] = (ct_logprob){ct_rank_id(s->key[i]), (float)(ct_rank_logit(s->key[i]) - sum)};
}
