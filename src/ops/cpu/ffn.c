#include "base/checked.h"
#include "ops/cpu/internal.h"

#include <assert.h>
#include <math.h>

/* A gelu costs about as much as this many multiply-adds. */
#define GELU_WORK 12.0

/* --- dense ------------------------------------------------------------------- */

#define GELU_ITEM 4096 /* numbers of one work item */

typedef struct geglu_args {
    const ct_cpu *c;
    float *y;
    const float *gate, *up;
    size_t n;
} geglu_args;

static void geglu_item(void *ctx, size_t item, unsigned thread)
{
    const geglu_args *a = ctx;
    const size_t first = item * GELU_ITEM;

    (void)thread;
    a->c->kernels->gelu_mul(a->y + first, a->gate + first, a->up + first,
                            ct_min_size(GELU_ITEM, a->n - first));
}

void ct_cpu_geglu(ct_backend *b, void *y, const void *gate, const void *up, uint32_t T,
                  uint32_t width)
{
    ct_cpu *c = ct_cpu_of(b);
    geglu_args a = {.c = c, .y = y, .gate = gate, .up = up, .n = (size_t)T * width};

    ct_cpu_run(c, (a.n + GELU_ITEM - 1) / GELU_ITEM, GELU_WORK * (double)a.n, geglu_item, &a);
}

/* --- router ------------------------------------------------------------------- */

typedef struct route {
    ct_cpu *c;
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
    const size_t H = a->router->proj.cols;
    float *out = a->c->route_in + t * H;
    const float shrink = (float)(1.0 / sqrt((double)H));

    (void)thread;
    ct_cpu_norm(out, a->x + t * H, NULL, H, a->eps);
    for (size_t i = 0; i < H; i++)
        out[i] = out[i] * ct_cpu_bf16(a->router->scale, i) * shrink;
}

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

/* Puts a pick in its place among the i before it, which ascend. */
static void insert_pick(uint32_t *picks, float *weights, uint32_t i, uint32_t pick, float weight)
{
    for (; i > 0 && picks[i - 1] > pick; i--) {
        picks[i] = picks[i - 1];
        weights[i] = weights[i - 1];
    }
    picks[i] = pick;
    weights[i] = weight;
}

static void route_row(void *ctx, size_t t, unsigned thread)
{
    const route *a = ctx;
    const uint32_t E = a->router->n_experts, top_k = a->router->top_k;
    float *p = a->c->route_logits + t * E, *weights = a->weights + t * top_k;
    uint32_t *picks = a->picks + t * top_k;
    double sum = 0.0;

    (void)thread;
    expert_softmax(p, E);
    for (uint32_t i = 0; i < top_k; i++) {
        float weight;
        uint32_t pick = take_best(p, E, &weight);

        sum += weight;
        insert_pick(picks, weights, i, pick, weight);
    }
    /* Normalised first, scaled after: the scaled weights need not sum to 1. */
    for (uint32_t i = 0; i < top_k; i++)
        weights[i] = (float)(weights[i] / sum) * ct_cpu_bf16(a->router->per_expert_scale, picks[i]);
}

void ct_cpu_route(ct_backend *b, void *picks, void *weights, const void *x, const ct_router *router,
                  uint32_t T, float eps)
{
    ct_cpu *c = ct_cpu_of(b);
    route a = {.c = c, .picks = picks, .weights = weights, .x = x, .router = router, .eps = eps};
    const uint32_t H = router->proj.cols, E = router->n_experts;

    assert(T <= c->limits.rows && H <= c->limits.hidden && E <= c->limits.n_experts);
    assert(router->top_k <= E && router->proj.rows == E);
    ct_cpu_run(c, T, 4.0 * T * H, route_in_row, &a);
    ct_cpu_linear(b, c->route_logits, c->route_in, &router->proj, T);
    ct_cpu_run(c, T, 40.0 * T * E, route_row, &a);
}

/* --- experts ------------------------------------------------------------------- */

typedef struct experts {
    ct_cpu *c;
    float *y;
    const float *x;
    const uint32_t *picks;
    const float *weights;
    const ct_expert_weights *e;
    size_t H, M, n_pairs;
} experts;

/* Gives the pairs (row, slot) places by expert, ascending within one, and brings their
 * rows together. */
static void group_pairs(const experts *a)
{
    ct_cpu *c = a->c;
    uint32_t *start = c->expert_start, sum = 0;
    const uint32_t E = a->e->n_experts;

    memset(start, 0, ((size_t)E + 1) * sizeof *start);
    for (size_t i = 0; i < a->n_pairs; i++)
        start[a->picks[i]]++;
    for (uint32_t e = 0; e <= E; e++) {
        uint32_t n = start[e];

        start[e] = sum;
        sum += n;
    }
    for (size_t i = 0; i < a->n_pairs; i++) {
        uint32_t place = start[a->picks[i]]++;

        c->pair_place[i] = place;
        c->pair_row[place] = (uint32_t)(i / a->e->top_k);
    }
    /* Each start has moved to its end, which is the next one's start. */
    memmove(start + 1, start, E * sizeof *start);
    start[0] = 0;
}

static void gather_pair(void *ctx, size_t place, unsigned thread)
{
    const experts *a = ctx;

    (void)thread;
    memcpy(a->c->pair_in + place * a->H, a->x + a->c->pair_row[place] * a->H, a->H * sizeof(float));
}

/* One tile of an expert's inner width: gelu(gate x) * (up x) for its pairs. */
static void expert_in_tile(void *ctx, size_t item, unsigned thread)
{
    const experts *a = ctx;
    ct_cpu *c = a->c;
    const size_t n_tiles = (a->M + CT_CPU_TILE - 1) / CT_CPU_TILE, e = item / n_tiles;
    const size_t first = item % n_tiles * CT_CPU_TILE, n = ct_min_size(CT_CPU_TILE, a->M - first);
    const uint32_t start = c->expert_start[e], end = c->expert_start[e + 1];
    const ct_cpu_rows x = {c->pair_in + start * a->H, a->H, end - start};
    float *gate = c->pair_gate + start * a->M + first, *up = c->pair_up + start * a->M + first;

    if (start == end)
        return;
    ct_cpu_product(c, gate, a->M, &a->e->gate[e], first, n, x, c->scratch[thread].tile);
    ct_cpu_product(c, up, a->M, &a->e->up[e], first, n, x, c->scratch[thread].tile);
    for (size_t i = 0; i < x.n; i++)
        c->kernels->gelu_mul(gate + i * a->M, gate + i * a->M, up + i * a->M, n);
}

/* One tile of an expert's outputs for its pairs. */
static void expert_out_tile(void *ctx, size_t item, unsigned thread)
{
    const experts *a = ctx;
    ct_cpu *c = a->c;
    const size_t n_tiles = (a->H + CT_CPU_TILE - 1) / CT_CPU_TILE, e = item / n_tiles;
    const size_t first = item % n_tiles * CT_CPU_TILE, n = ct_min_size(CT_CPU_TILE, a->H - first);
    const uint32_t start = c->expert_start[e], end = c->expert_start[e + 1];
    const ct_cpu_rows act = {c->pair_gate + start * a->M, a->M, end - start};

    if (start != end)
        ct_cpu_product(c, c->pair_out + start * a->H + first, a->H, &a->e->down[e], first, n, act,
                       c->scratch[thread].tile);
}

/* The weighted sum of a row's experts, ascending by id. */
static void combine_row(void *ctx, size_t t, unsigned thread)
{
    const experts *a = ctx;
    const size_t top_k = a->e->top_k;
    float *y = a->y + t * a->H;

    (void)thread;
    memset(y, 0, a->H * sizeof *y);
    for (size_t pair = t * top_k; pair < (t + 1) * top_k; pair++) {
        const float *out = a->c->pair_out + a->c->pair_place[pair] * a->H;
        const float weight = a->weights[pair];

        for (size_t i = 0; i < a->H; i++)
            y[i] += out[i] * weight;
    }
}

void ct_cpu_experts(ct_backend *b, void *y, const void *x, const void *picks, const void *weights,
                    const ct_expert_weights *e, uint32_t T)
{
    experts a = {.c = ct_cpu_of(b),
                 .y = y,
                 .x = x,
                 .picks = picks,
                 .weights = weights,
                 .e = e,
                 .H = e->gate[0].cols,
                 .M = e->gate[0].rows,
                 .n_pairs = (size_t)T * e->top_k};
    const size_t in_tiles = (a.M + CT_CPU_TILE - 1) / CT_CPU_TILE;
    const size_t out_tiles = (a.H + CT_CPU_TILE - 1) / CT_CPU_TILE;
    const double work = (double)a.n_pairs * (double)a.H * (double)a.M;

    assert(T <= a.c->limits.rows && e->top_k <= a.c->limits.top_k);
    assert(a.H <= a.c->limits.hidden && a.M <= a.c->limits.expert_width);
    group_pairs(&a);
    ct_cpu_run(a.c, a.n_pairs, (double)a.n_pairs * (double)a.H, gather_pair, &a);
    ct_cpu_run(a.c, e->n_experts * in_tiles, 2.0 * work, expert_in_tile, &a);
    ct_cpu_run(a.c, e->n_experts * out_tiles, work, expert_out_tile, &a);
    ct_cpu_run(a.c, T, 2.0 * (double)a.n_pairs * (double)a.H, combine_row, &a);
}
