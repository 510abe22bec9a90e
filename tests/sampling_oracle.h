/* Sampling written for reading: the definitions of docs/sampling.md, one after the other,
 * with full sorts and quadratic searches, in double. */
#ifndef CT_TESTS_SAMPLING_ORACLE_H
#define CT_TESTS_SAMPLING_ORACLE_H

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine/sampler.h"

typedef struct oracle_id {
    uint32_t id;
    float logit;
    double p; /* of the draw; not kept: not in the list */
    double shift;
} oracle_id;

typedef struct oracle_case {
    const float *logits;
    uint32_t vocab;
    const ct_sampling *how;
    const uint32_t *ids; /* [n_prompt + n_answer] */
    size_t n_prompt, n_answer;
    const uint32_t *allowed;
} oracle_case;

static inline int oracle_by_rank(const void *a, const void *b)
{
    const oracle_id *x = a, *y = b;

    if (x->logit != y->logit)
        return x->logit > y->logit ? -1 : 1;
    return x->id < y->id ? -1 : 1;
}

static inline int oracle_by_shift(const void *a, const void *b)
{
    const oracle_id *x = a, *y = b;

    if (x->shift != y->shift)
        return x->shift < y->shift ? -1 : 1;
    return oracle_by_rank(a, b);
}

static inline float oracle_round(double v)
{
    return (float)fmin(fmax(v, -FLT_MAX), FLT_MAX);
}

static inline bool oracle_usable(float l)
{
    return !isnan(l) && l != -INFINITY;
}

static inline float oracle_bias(const oracle_case *c, uint32_t id, float l)
{
    for (size_t i = 0; i < c->how->n_logit_bias; i++)
        if (c->how->logit_bias[i].id == id)
            l = oracle_round((double)l + c->how->logit_bias[i].bias);
    return l;
}

static inline float oracle_penalties(const oracle_case *c, uint32_t id, float l)
{
    const ct_sampling *how = c->how;
    size_t n_all = 0, n_answer = 0;
    double v = l;

    for (size_t i = 0; i < c->n_prompt + c->n_answer; i++) {
        n_all += c->ids[i] == id;
        n_answer += i >= c->n_prompt && c->ids[i] == id;
    }
    if (n_all)
        v = v > 0 ? v / how->repetition_penalty : v * how->repetition_penalty;
    if (n_answer)
        v = v - how->frequency_penalty * (double)n_answer - how->presence_penalty;
    return oracle_round(v);
}

static inline bool oracle_breaks(const oracle_case *c, uint32_t id)
{
    return c->how->dry_breakers && c->how->dry_breakers[id / 32] >> id % 32 & 1;
}

/* The definition in text-generation-webui: for each earlier place, count back. */
static inline float oracle_dry(const oracle_case *c, uint32_t id, float l)
{
    const ct_sampling *how = c->how;
    size_t n = c->n_prompt + c->n_answer, best = 0, first = 0;

    if (how->dry_multiplier == 0 || n == 0 || oracle_breaks(c, id))
        return l;
    if (how->dry_last_n && n > how->dry_last_n)
        first = n - how->dry_last_n;
    for (size_t next = first + 1; next < n; next++) {
        size_t len = 0;

        if (c->ids[next] != id)
            continue;
        while (len < next - first && c->ids[next - 1 - len] == c->ids[n - 1 - len] &&
               !oracle_breaks(c, c->ids[n - 1 - len]))
            len++;
        best = len > best ? len : best;
    }
    if (best == 0 || best < how->dry_allowed_length)
        return l;
    return oracle_round(l - how->dry_multiplier *
                                pow(how->dry_base, (double)best - how->dry_allowed_length));
}

static inline bool oracle_in(const uint32_t *ids, size_t n, uint32_t id)
{
    for (size_t i = 0; i < n; i++)
        if (ids[i] == id)
            return true;
    return false;
}

static inline bool oracle_hidden(const oracle_case *c, uint32_t id)
{
    const ct_sampling *how = c->how;
    bool early = c->n_answer < how->min_tokens;

    return oracle_in(how->suppress_ids, how->n_suppress_ids, id) ||
           (early && oracle_in(how->stop_ids, how->n_stop_ids, id)) ||
           (early && !how->ignore_eos && oracle_in(how->eos_ids, how->n_eos_ids, id)) ||
           (c->allowed && !(c->allowed[id / 32] >> id % 32 & 1));
}

static inline double oracle_normalise(oracle_id *o, size_t n, double temperature)
{
    double sum = 0;

    for (size_t i = 0; i < n; i++)
        sum += o[i].p = exp(((double)o[i].logit - o[0].logit) / temperature);
    for (size_t i = 0; i < n; i++)
        o[i].p /= sum;
    return sum;
}

static inline size_t oracle_typical(oracle_id *o, size_t n, double mass, double temperature)
{
    double sum = oracle_normalise(o, n, temperature), entropy = 0, kept = 0, last;
    size_t k = 0;

    for (size_t i = 0; i < n; i++) {
        /* log p, also where p underflows. */
        o[i].shift = ((double)o[i].logit - o[0].logit) / temperature - log(sum);
        entropy -= o[i].p > 0 ? o[i].p * o[i].shift : 0;
    }
    for (size_t i = 0; i < n; i++)
        o[i].shift = fabs(-o[i].shift - entropy);
    qsort(o, n, sizeof *o, oracle_by_shift);
    while (k < n && (k == 0 || kept < mass))
        kept += o[k++].p;
    last = o[k - 1].shift;
    while (k < n && o[k].shift == last)
        k++;
    qsort(o, k, sizeof *o, oracle_by_rank);
    return k;
}

/* Fills out[vocab] with what can be picked, best first, with its probability. */
static inline size_t oracle_distribution(const oracle_case *c, oracle_id *out)
{
    const ct_sampling *how = c->how;
    size_t n = 0, k = 0;
    double kept = 0;

    for (uint32_t id = 0; id < c->vocab; id++) {
        float l = c->logits[id];

        if (!oracle_usable(l) || oracle_hidden(c, id))
            continue;
        l = fminf(l, FLT_MAX);
        l = oracle_dry(c, id, oracle_penalties(c, id, oracle_bias(c, id, l)));
        out[n++] = (oracle_id){.id = id, .logit = l};
    }
    if (n == 0)
        return 0;
    qsort(out, n, sizeof *out, oracle_by_rank);
    if (how->temperature == 0) {
        out[0].p = 1;
        return 1;
    }
    if (how->top_k && how->top_k < n)
        n = how->top_k;
    oracle_normalise(out, n, how->temperature);
    if (how->top_p < 1) {
        while (k < n && (k == 0 || kept < how->top_p))
            kept += out[k++].p;
        n = k;
    }
    for (k = 0; k < n && out[k].p >= how->min_p * out[0].p; k++)
        ;
    n = k;
    if (how->typical_p < 1)
        n = oracle_typical(out, n, how->typical_p, how->temperature);
    kept = 0;
    for (k = 0; k < n; k++)
        kept += out[k].p;
    for (k = 0; k < n; k++)
        out[k].p /= kept;
    return n;
}

#endif
