#include "base/checked.h"
#include "ops/ref/internal.h"

#include <assert.h>
#include <math.h>

/* A tanh costs about as much as this many multiply-adds. */
#define GELU_WORK 16.0

static float gated(const ct_ref *r, float gate, float up)
{
    return ct_ref_round(r, (double)ct_ref_round(r, ct_ref_gelu(gate)) * up);
}

/* --- dense ------------------------------------------------------------------- */

typedef struct geglu_args {
    ct_ref *r;
    float *y;
    const float *gate, *up;
    size_t width;
} geglu_args;

static void geglu_row(void *ctx, size_t t, unsigned thread)
{
    const geglu_args *a = ctx;

    (void)thread;
    for (size_t i = t * a->width; i < (t + 1) * a->width; i++)
        a->y[i] = gated(a->r, a->gate[i], a->up[i]);
}

void ct_ref_geglu(ct_backend *b, void *y, const void *gate, const void *up, uint32_t T,
                  uint32_t width)
{
    geglu_args a = {.r = ct_ref_of(b), .y = y, .gate = gate, .up = up, .width = width};

    ct_ref_run(a.r, T, GELU_WORK * T * width, geglu_row, &a);
}

/* --- router ------------------------------------------------------------------- */

typedef struct route {
    ct_ref *r;
    uint32_t *picks;
    float *weights;
    const float *x;
    const ct_router *router;
    float eps;
} route;

/* What the router's matrix multiplies: a weightless norm, scaled twice. */
static void route_in_row(void *ctx, size_t t, unsigned thread)
{
    const route *a = ctx;
    const ct_ref *r = a->r;
    const size_t H = a->router->proj.cols;
    float *out = r->route_in + t * H;
    const float shrink = (float)(1.0 / sqrt((double)H));

    ct_ref_norm(r, out, a->x + t * H, NULL, H, a->eps, r->scratch[thread].rows);
    for (size_t i = 0; i < H; i++) {
        float y = ct_ref_round(r, (double)out[i] * ct_ref_bf16(a->router->scale, i));

        out[i] = ct_ref_round(r, (double)y * shrink);
    }
}

/* Probabilities in f32 in both modes. */
static void expert_softmax(float *z, size_t n)
{
    double max = z[0], sum = 0.0;

    for (size_t e = 1; e < n; e++)
        max = z[e] > max ? z[e] : max;
    for (size_t e = 0; e < n; e++)
        sum += exp(z[e] - max);
    for (size_t e = 0; e < n; e++)
        z[e] = (float)(exp(z[e] - max) / sum);
}

/* Takes the most probable expert out of p, the lower id of equals; any id is in range
 * even if p holds NaN. */
static uint32_t take_best(float *p, uint32_t n, float *weight)
{
    const float taken = -1.0f;
    uint32_t best = n;

    for (uint32_t e = 0; e < n; e++)
        if (p[e] != taken && (best == n || p[e] > p[best]))
            best = e;
    assert(best < n);
    *weight = p[best];
    p[best] = taken;
    return best;
}

/* Puts the pick at i in its place among those before it, which ascend. */
static void settle_pick(uint32_t *picks, float *weights, uint32_t i)
{
    for (; i > 0 && picks[i - 1] > picks[i]; i--) {
        uint32_t pick = picks[i];
        float weight = weights[i];

        picks[i] = picks[i - 1];
        weights[i] = weights[i - 1];
        picks[i - 1] = pick;
        weights[i - 1] = weight;
    }
}

static void route_row(void *ctx, size_t t, unsigned thread)
{
    const route *a = ctx;
    const uint32_t E = a->router->n_experts, top_k = a->router->top_k;
    float *p = a->r->route_logits + t * E, *weights = a->weights + t * top_k;
    uint32_t *picks = a->picks + t * top_k;
    double sum = 0.0;

    (void)thread;
    expert_softmax(p, E);
    for (uint32_t i = 0; i < top_k; i++) {
        picks[i] = take_best(p, E, &weights[i]);
        sum += weights[i];
    }
    for (uint32_t i = 1; i < top_k; i++)
        settle_pick(picks, weights, i);
    /* Normalised first, scaled after: the scaled weights need not sum to 1. */
    for (uint32_t i = 0; i < top_k; i++)
        weights[i] = (float)(weights[i] / sum) * ct_ref_bf16(a->router->per_expert_scale, picks[i]);
}

void ct_ref_route(ct_backend *b, void *picks, void *weights, const void *x, const ct_router *router,
                  uint32_t T, float eps)
{
    ct_ref *r = ct_ref_of(b);
    route a = {.r = r, .picks = picks, .weights = weights, .x = x, .router = router, .eps = eps};
    const uint32_t H = router->proj.cols, E = router->n_experts;

    assert(T <= r->limits.rows && H <= r->limits.hidden && E <= r->limits.n_experts);
    assert(router->top_k <= E && router->proj.rows == E);
    ct_ref_run(r, T, 4.0 * T * H, route_in_row, &a);
    ct_ref_linear(b, r->route_logits, r->route_in, &router->proj, T);
    ct_ref_run(r, T, 40.0 * T * E, route_row, &a);
}

/* --- experts ------------------------------------------------------------------- */

typedef struct experts {
    ct_ref *r;
    float *y;
    const float *x;
    const uint32_t *picks;
    const float *weights;
    const ct_expert_weights *e;
    size_t H, M, n_pairs;
} experts;

/* Sorts the pairs (row, slot) by expert; within one expert they stay ascending. */
static void group_pairs(const experts *a)
{
    uint32_t *start = a->r->expert_start, *order = a->r->pair_order, sum = 0;
    const uint32_t E = a->e->n_experts;

    memset(start, 0, ((size_t)E + 1) * sizeof *start);
    for (size_t i = 0; i < a->n_pairs; i++)
        start[a->picks[i]]++;
    for (uint32_t e = 0; e <= E; e++) {
        uint32_t n = start[e];

        start[e] = sum;
        sum += n;
    }
    for (size_t i = 0; i < a->n_pairs; i++)
        order[start[a->picks[i]]++] = (uint32_t)i;
    /* Each start has moved to its end, which is the next one's start. */
    memmove(start + 1, start, E * sizeof *start);
    start[0] = 0;
}

/* One tile of an expert's inner width: gelu(gate x) * (up x) for its pairs. */
static void expert_in_tile(void *ctx, size_t item, unsigned thread)
{
    const experts *a = ctx;
    ct_ref *r = a->r;
    const size_t n_tiles = (a->M + CT_REF_TILE - 1) / CT_REF_TILE, e = item / n_tiles;
    const size_t first = item % n_tiles * CT_REF_TILE;
    const size_t n = ct_min_size(CT_REF_TILE, a->M - first);
    double *gate = r->scratch[thread].rows, *up = gate + CT_REF_TILE * a->H;

    if (r->expert_start[e] == r->expert_start[e + 1])
        return;
    for (size_t i = 0; i < n; i++) {
        ct_ref_decode_row(r, gate + i * a->H, &a->e->gate[e], first + i);
        ct_ref_decode_row(r, up + i * a->H, &a->e->up[e], first + i);
    }
    for (uint32_t j = r->expert_start[e]; j < r->expert_start[e + 1]; j++) {
        size_t pair = r->pair_order[j];
        const float *x = a->x + pair / a->e->top_k * a->H;

        for (size_t i = 0; i < n; i++) {
            float g = ct_ref_round(r, ct_ref_dot(gate + i * a->H, x, a->H));
            float u = ct_ref_round(r, ct_ref_dot(up + i * a->H, x, a->H));

            r->pair_act[pair * a->M + first + i] = gated(r, g, u);
        }
    }
}

/* One tile of an expert's outputs for its pairs. */
static void expert_out_tile(void *ctx, size_t item, unsigned thread)
{
    const experts *a = ctx;
    ct_ref *r = a->r;
    const size_t n_tiles = (a->H + CT_REF_TILE - 1) / CT_REF_TILE, e = item / n_tiles;
    const size_t first = item % n_tiles * CT_REF_TILE;
    const size_t n = ct_min_size(CT_REF_TILE, a->H - first);
    double *down = r->scratch[thread].rows;

    if (r->expert_start[e] == r->expert_start[e + 1])
        return;
    for (size_t i = 0; i < n; i++)
        ct_ref_decode_row(r, down + i * a->M, &a->e->down[e], first + i);
    for (uint32_t j = r->expert_start[e]; j < r->expert_start[e + 1]; j++) {
        size_t pair = r->pair_order[j];
        const float *act = r->pair_act + pair * a->M;

        for (size_t i = 0; i < n; i++)
            r->pair_out[pair * a->H + first + i] =
                ct_ref_round(r, ct_ref_dot(down + i * a->M, act, a->M));
    }
}

/* The weighted sum of a row's experts, ascending by id, rounded at every step. */
static void combine_row(void *ctx, size_t t, unsigned thread)
{
    const experts *a = ctx;
    const size_t top_k = a->e->top_k;
    float *y = a->y + t * a->H;

    (void)thread;
    memset(y, 0, a->H * sizeof *y);
    for (size_t pair = t * top_k; pair < (t + 1) * top_k; pair++) {
        const float *out = a->r->pair_out + pair * a->H;

        for (size_t i = 0; i < a->H; i++) {
            float term = ct_ref_round(a->r, (double)out[i] * a->weights[pair]);

            y[i] = ct_ref_round(a->r, (double)y[i] + term);
        }
    }
}

void ct_ref_experts(ct_backend *b, void *y, const void *x, const void *picks, const void *weights,
                    const ct_expert_weights *e, uint32_t T)
{
    experts a = {.r = ct_ref_of(b),
                 .y = y,
                 .x = x,
                 .picks = picks,
                 .weights = weights,
                 .e = e,
                 .H = e->gate[0].cols,
                 .M = e->gate[0].rows,
                 .n_pairs = (size_t)T * e->top_k};
    const double work = (double)a.n_pairs * (double)a.H * (double)a.M;

    assert(T <= a.r->limits.rows && e->top_k <= a.r->limits.top_k);
    assert(a.H <= a.r->limits.hidden && a.M <= a.r->limits.expert_width);
    group_pairs(&a);
    ct_ref_run(a.r, e->n_experts * ((a.M + CT_REF_TILE - 1) / CT_REF_TILE), 2.0 * work,
               expert_in_tile, &a);
    ct_ref_run(a.r, e->n_experts * ((a.H + CT_REF_TILE - 1) / CT_REF_TILE), work, expert_out_tile,
               &a);
    ct_ref_run(a.r, T, 2.0 * (double)a.n_pairs * (double)a.H, combine_row, &a);
}
