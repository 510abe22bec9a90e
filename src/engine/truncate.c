/* Temperature, top_k, top_p, min_p, typical_p and the draw.
 *
 * All four filters keep a run [lo, hi) of the ranking: the first three a beginning of it,
 * typical_p the ids around the entropy.  So nothing is sorted but the ranking, and of that
 * only the first CT_RANK_FIRST ids unless the choice can lie beyond. */
#include "engine/sampler_impl.h"

#include <math.h>

/* A ranking under way.  The weight of an id is exp((l - max) / temperature). */
typedef struct ranking {
    size_t n;      /* ids ranked so far */
    bool complete; /* nothing is left out but what top_k cut */
    double total;  /* weight of all that top_k leaves */
    size_t lo, hi; /* the run that is kept */
    double kept;   /* its weight */
} ranking;

static void weigh(ct_sampler *s, size_t n, double temperature)
{
    double max = ct_rank_logit(s->key[0]);

    for (size_t i = 0; i < n; i++)
        s->weight[i] = exp((ct_rank_logit(s->key[i]) - max) / temperature);
}

static double weight_of(const ct_sampler *s, size_t n)
{
    double sum = 0;

    for (size_t i = 0; i < n; i++)
        sum += s->weight[i];
    return sum;
}

static bool cuts_nothing(const ct_sampling *how)
{
    return how->top_p >= 1 && how->min_p <= 0 && how->typical_p >= 1;
}

/* Ranks at least k ids; top_k bounds what is kept of them. */
static void rank_many(ct_sampler *s, const float *row, const ct_sampling *how, size_t k, ranking *r)
{
    r->n = ct_rank_many(s->key, s->spare, k, row, s->vocab);
    r->complete = k >= s->vocab || r->n < k;
    if (how->top_k && how->top_k <= r->n) {
        r->n = how->top_k;
        r->complete = true;
    }
    weigh(s, r->n, how->temperature);
}

static ranking rank_first(ct_sampler *s, const float *row, const ct_sampling *how)
{
    size_t limit = how->top_k && how->top_k < s->vocab ? how->top_k : s->vocab;
    size_t k = limit < CT_RANK_FIRST ? limit : CT_RANK_FIRST;
    ranking r = {0};

    if (limit > CT_RANK_FIRST && limit < s->vocab) {
        rank_many(s, row, how, limit, &r);
    } else {
        r.n = ct_rank_top(s->key, k, row, s->vocab);
        r.complete = k == limit || r.n < k;
        weigh(s, r.n, how->temperature);
    }
    if (r.complete)
        r.total = weight_of(s, r.n);
    else if (how->top_p < 1 || cuts_nothing(how)) /* else nothing asks for it */
        r.total = ct_exp_sum(row, s->vocab, ct_rank_logit(s->key[0]), how->temperature);
    return r;
}

static void rank_more(ct_sampler *s, const float *row, const ct_sampling *how, ranking *r)
{
    size_t k = r->n <= s->vocab / CT_RANK_GROWTH ? r->n * CT_RANK_GROWTH : s->vocab;

    rank_many(s, row, how, k, r);
}

/* top_p: the fewest best ids whose weight reaches its share of the total; min_p: only ids
 * whose probability is at least that share of the best one's.  Never empty. */
static void cut(const ct_sampler *s, const ct_sampling *how, ranking *r)
{
    double enough = how->top_p < 1 ? how->top_p * r->total : INFINITY;

    r->lo = r->hi = 0;
    r->kept = 0;
    while (r->hi < r->n && (r->hi == 0 || (r->kept < enough && s->weight[r->hi] >= how->min_p)))
        r->kept += s->weight[r->hi++];
}

/* Walks [lo, hi) for the id at `target` of its weight.  false: it lies beyond. */
static bool walk(const ct_sampler *s, size_t lo, size_t hi, double target, uint32_t *id)
{
    for (size_t i = lo; i < hi; i++) {
        if (s->weight[i] > 0)
            *id = ct_rank_id(s->key[i]);
        if (target < s->weight[i])
            return true;
        target -= s->weight[i];
    }
    return false;
}

/* Surprise of an id: -log p among those kept. */
static void find_surprise(ct_sampler *s, const ranking *r, double temperature)
{
    double max = ct_rank_logit(s->key[0]), log_kept = log(r->kept);

    for (size_t i = r->lo; i < r->hi; i++)
        s->surprise[i] = log_kept - (ct_rank_logit(s->key[i]) - max) / temperature;
}

static double entropy(const ct_sampler *s, const ranking *r)
{
    double h = 0;

    for (size_t i = r->lo; i < r->hi; i++)
        if (s->weight[i] > 0)
            h += s->weight[i] / r->kept * s->surprise[i];
    return h;
}

/* typical_p (Meister et al., "Locally typical sampling", 2022): the ids whose surprise is
 * nearest to the entropy, until their probability reaches typical_p; ids as near as the
 * last one stay too.  Surprise grows along the ranking, so these are a run. */
static void keep_typical(ct_sampler *s, const ct_sampling *how, ranking *r)
{
    const double enough = how->typical_p * r->kept;
    const double *surprise = s->surprise;
    double kept = 0, last = -1, h;
    size_t lo = r->lo, hi;

    find_surprise(s, r, how->temperature);
    h = entropy(s, r);
    while (lo < r->hi && surprise[lo] <= h)
        lo++;
    hi = lo;
    for (;;) {
        double below = lo > r->lo ? h - surprise[lo - 1] : INFINITY;
        double above = hi < r->hi ? surprise[hi] - h : INFINITY;
        double nearest = below <= above ? below : above;

        if (nearest == INFINITY || (kept >= enough && nearest > last))
            break;
        kept += s->weight[below <= above ? --lo : hi++];
        last = nearest;
    }
    r->lo = lo;
    r->hi = hi;
    r->kept = kept;
}

/* No filter: the id is usually among the first, and only else are the others ranked. */
static uint32_t draw_uncut(ct_sampler *s, const float *row, const ct_sampling *how, ranking *r,
                           double u)
{
    uint32_t id = ct_rank_id(s->key[0]);

    while (!walk(s, 0, r->n, u * r->total, &id) && !r->complete)
        rank_more(s, row, how, r);
    return id;
}

uint32_t ct_truncate_draw(ct_sampler *s, const float *row, const ct_sampling *how, double u)
{
    ranking r = rank_first(s, row, how);
    uint32_t id;

    if (cuts_nothing(how))
        return draw_uncut(s, row, how, &r, u);
    cut(s, how, &r);
    while (r.hi == r.n && !r.complete) {
        rank_more(s, row, how, &r);
        cut(s, how, &r);
    }
    if (how->typical_p < 1)
        keep_typical(s, how, &r);
    id = ct_rank_id(s->key[r.lo]);
    walk(s, r.lo, r.hi, u * r.kept, &id);
    return id;
}
