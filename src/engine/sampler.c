#include "engine/sampler.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

typedef struct candidate {
    float logit;
    uint32_t id;
} candidate;

struct ct_sampler {
    uint32_t vocab;
    bool *suppressed; /* [vocab] */
    candidate *best;  /* [vocab] */
    double *prob;     /* [vocab] */
};

ct_status ct_sampler_create(ct_sampler **out, uint32_t vocab, const uint32_t *suppress,
                            size_t n_suppress, ct_error *err)
{
    ct_sampler *s = calloc(1, sizeof *s);

    if (!s)
        return ct_fail(err, CT_ELIMIT, "out of memory for the sampler");
    s->vocab = vocab;
    s->suppressed = calloc(vocab, sizeof *s->suppressed);
    s->best = calloc(vocab, sizeof *s->best);
    s->prob = calloc(vocab, sizeof *s->prob);
    if (!s->suppressed || !s->best || !s->prob) {
        ct_sampler_destroy(s);
        return ct_fail(err, CT_ELIMIT, "out of memory for a sampler over %u ids", vocab);
    }
    for (size_t i = 0; i < n_suppress; i++) {
        if (suppress[i] >= vocab) {
            ct_sampler_destroy(s);
            return ct_fail(err, CT_EINVAL, "suppressed id %u is outside the vocabulary of %u",
                           suppress[i], vocab);
        }
        s->suppressed[suppress[i]] = true;
    }
    *out = s;
    return CT_OK;
}

void ct_sampler_destroy(ct_sampler *s)
{
    if (!s)
        return;
    free(s->suppressed);
    free(s->best);
    free(s->prob);
    free(s);
}

/* Finalizer of SplitMix64 (Steele, Lea, Flood: "Fast splittable pseudorandom number
 * generators", 2014): every input bit reaches every output bit. */
static uint64_t mix(uint64_t z)
{
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

double ct_sampler_uniform(uint64_t seed, uint64_t position)
{
    uint64_t z = mix(mix(seed + 0x9e3779b97f4a7c15u) + position * 0x9e3779b97f4a7c15u);

    return (double)(z >> 11) * 0x1p-53;
}

/* Whether a comes before b: higher logit, then lower id. */
static bool before(candidate a, candidate b)
{
    return a.logit > b.logit || (a.logit == b.logit && a.id < b.id);
}

static int by_rank(const void *a, const void *b)
{
    const candidate *x = a, *y = b;

    return before(*x, *y) ? -1 : 1;
}

/* Restores the heap whose root is its worst member. */
static void sift_down(candidate *heap, size_t n, size_t i)
{
    for (;;) {
        size_t worst = i, child = 2 * i + 1;
        candidate held;

        for (size_t c = child; c < n && c < child + 2; c++)
            if (before(heap[worst], heap[c]))
                worst = c;
        if (worst == i)
            return;
        held = heap[i];
        heap[i] = heap[worst];
        heap[worst] = held;
        i = worst;
    }
}

static bool usable(const ct_sampler *s, const float *logits, uint32_t id)
{
    return !s->suppressed[id] && logits[id] > -INFINITY; /* false for NaN */
}

/* The k best candidates in order of rank; fewer when fewer are usable. */
static size_t take_best(ct_sampler *s, const float *logits, size_t k)
{
    size_t n = 0;

    for (uint32_t id = 0; id < s->vocab; id++) {
        candidate c = {logits[id], id};

        if (!usable(s, logits, id))
            continue;
        if (n < k) {
            s->best[n++] = c;
            if (n == k)
                for (size_t i = n / 2; i-- > 0;)
                    sift_down(s->best, n, i);
        } else if (before(c, s->best[0])) {
            s->best[0] = c;
            sift_down(s->best, n, 0);
        }
    }
    qsort(s->best, n, sizeof *s->best, by_rank);
    return n;
}

static uint32_t pick_greedy(const ct_sampler *s, const float *logits)
{
    candidate best = {-INFINITY, 0};

    for (uint32_t id = 0; id < s->vocab; id++)
        if (usable(s, logits, id) && logits[id] > best.logit)
            best = (candidate){logits[id], id};
    return best.id;
}

uint32_t ct_sampler_pick(ct_sampler *s, const float *logits, const ct_sampling *how,
                         uint64_t position)
{
    double sum = 0, kept = 0, target;
    size_t n, n_kept = 0;

    if (how->temperature == 0)
        return pick_greedy(s, logits);
    n = take_best(s, logits, how->top_k && how->top_k < s->vocab ? how->top_k : s->vocab);
    if (n == 0)
        return pick_greedy(s, logits);
    for (size_t i = 0; i < n; i++) {
        s->prob[i] = exp(((double)s->best[i].logit - s->best[0].logit) / how->temperature);
        sum += s->prob[i];
    }
    /* The smallest set whose mass reaches top_p; never empty. */
    while (n_kept < n && (n_kept == 0 || kept < how->top_p * sum))
        kept += s->prob[n_kept++];
    target = ct_sampler_uniform(how->seed, position) * kept;
    for (size_t i = 0; i + 1 < n_kept; i++) {
        if (target < s->prob[i])
            return s->best[i].id;
        target -= s->prob[i];
    }
    return s->best[n_kept - 1].id;
}
