#include "base/checked.h"
#include "ops/ref/internal.h"

#include <assert.h>
#include <math.h>
#include <string.h>

/* --- RoPE -------------------------------------------------------------------- */

void ct_ref_rope_inv(float *inv, const ct_rope *rope, uint32_t head_dim)
{
    for (uint32_t i = 0; i < head_dim / 2; i++) {
        /* The exponent's denominator is the whole head, also when few pairs turn. */
        float exponent = (float)(2 * i) / (float)head_dim;

        inv[i] = i < rope->n_pairs ? 1.0f / (float)pow(rope->theta, exponent) : 0.0f;
    }
}

void ct_ref_rope_turn(const ct_ref *r, float *turn, const float *inv, uint32_t pos,
                      uint32_t n_pairs)
{
    for (uint32_t i = 0; i < n_pairs; i++) {
        /* The product is rounded to f32, as in the model; the sine and cosine of that
         * angle are accurate, whatever its size. */
        float angle = (float)pos * inv[i];

        turn[i] = ct_ref_round(r, cos(angle));
        turn[n_pairs + i] = ct_ref_round(r, sin(angle));
    }
}

void ct_ref_rope(const ct_ref *r, float *x, const float *turn, uint32_t n_pairs, uint32_t head_dim)
{
    const uint32_t half = head_dim / 2;

    for (uint32_t i = 0; i < n_pairs; i++) {
        double c = turn[i], s = turn[n_pairs + i], a = x[i], b = x[i + half];

        x[i] = ct_ref_round(r, (double)ct_ref_round(r, a * c) - ct_ref_round(r, b * s));
        x[i + half] = ct_ref_round(r, (double)ct_ref_round(r, b * c) + ct_ref_round(r, a * s));
    }
}

/* Fills the turns of positions below n, for keys of this shape. */
static void turns_extend(ct_ref *r, const ct_rope *rope, uint32_t head_dim, uint32_t n)
{
    ref_turns *t = &r->turns;

    assert(rope->n_pairs <= r->limits.pairs && n <= r->limits.keys);
    if (t->head_dim != head_dim || t->rope.theta != rope->theta ||
        t->rope.n_pairs != rope->n_pairs) {
        t->n = 0;
        t->rope = *rope;
        t->head_dim = head_dim;
    }
    if (t->n >= n)
        return;
    ct_ref_rope_inv(r->rope_inv, rope, head_dim);
    for (; t->n < n; t->n++)
        ct_ref_rope_turn(r, t->at + (size_t)t->n * 2 * rope->n_pairs, r->rope_inv, t->n,
                         rope->n_pairs);
}

/* --- norms of heads, cache write ---------------------------------------------- */

/* Index of one token's first number in a key or value store. */
static size_t slot_of(const ct_kv_layer *kv, uint32_t seq, uint32_t pos)
{
    uint32_t block = pos / kv->page_tokens, page;

    assert(block < kv->max_blocks);
    page = kv->pages[(size_t)seq * kv->max_blocks + block];
    assert(page < kv->n_pages);
    return ((size_t)page * kv->page_tokens + pos % kv->page_tokens) * kv->kv_heads * kv->head_dim;
}

typedef struct qkv_finish {
    ct_ref *r;
    const ct_rows *rows;
    const ct_qkv_args *a;
} qkv_finish;

/* Key and value of one head into the stores, at `slot`. */
static void cache_head(const qkv_finish *f, size_t slot, const float *k, const float *v,
                       const float *turn, ref_scratch *scratch)
{
    const ct_qkv_args *a = f->a;
    const ct_kv_layer *kv = a->kv;
    const ct_elem elem = ct_kv_elem(kv->type);
    const uint32_t D = kv->head_dim;
    float *x = scratch->span;

    if (kv->k) {
        ct_ref_norm(f->r, x, k, a->k_norm, D, a->eps, scratch->rows);
        ct_ref_rope(f->r, x, turn, a->rope.n_pairs, D);
        ct_ref_store(kv->k, elem, slot, x, D);
    }
    ct_ref_norm(f->r, x, v, NULL, D, a->eps, scratch->rows);
    ct_ref_store(kv->v, elem, slot, x, D);
}

static void qkv_row(void *ctx, size_t t, unsigned thread)
{
    const qkv_finish *f = ctx;
    const ct_qkv_args *a = f->a;
    const ct_kv_layer *kv = a->kv;
    const size_t D = kv->head_dim, slot = slot_of(kv, f->rows->seq[t], f->rows->pos[t]);
    ref_scratch *scratch = &f->r->scratch[thread];
    float *q = (float *)a->q + t * a->n_heads * D;
    const float *k = (const float *)a->k + t * kv->kv_heads * D;
    const float *v = (const float *)a->v + t * kv->kv_heads * D;

    ct_ref_rope_turn(f->r, scratch->turn, f->r->rope_inv, f->rows->pos[t], a->rope.n_pairs);
    for (size_t h = 0; h < a->n_heads; h++) {
        ct_ref_norm(f->r, q + h * D, q + h * D, a->q_norm, D, a->eps, scratch->rows);
        ct_ref_rope(f->r, q + h * D, scratch->turn, a->rope.n_pairs, kv->head_dim);
    }
    for (size_t h = 0; h < kv->kv_heads; h++)
        cache_head(f, slot + h * D, k + h * D, v + h * D, scratch->turn, scratch);
}

void ct_ref_qkv_finish(ct_backend *b, const ct_rows *rows, const ct_qkv_args *a)
{
    qkv_finish f = {.r = ct_ref_of(b), .rows = rows, .a = a};
    size_t heads = (size_t)a->n_heads + 2 * a->kv->kv_heads;

    assert(a->kv->head_dim <= f.r->limits.cols && a->rope.n_pairs <= a->kv->head_dim / 2);
    ct_ref_rope_inv(f.r->rope_inv, &a->rope, a->kv->head_dim);
    /* A sine and a cosine cost some fifty multiply-adds. */
    ct_ref_run(f.r, rows->n, (double)rows->n * a->kv->head_dim * (8.0 * (double)heads + 50.0),
               qkv_row, &f);
}

/* --- attention ----------------------------------------------------------------- */

typedef struct attend {
    ct_ref *r;
    const ct_attend_args *a;
    const ct_rows *rows;
    size_t group; /* query heads that share a key head */
} attend;

/* The positions that one row sees, with one of its key heads. */
typedef struct view {
    const ct_kv_layer *kv;
    uint32_t seq, first, last;
    size_t head;
    float *room; /* [CT_REF_SPAN, D] */
} view;

static size_t view_keys(const view *v)
{
    return (size_t)v->last - v->first + 1;
}

/* Keys or values of one head at positions that lie together in a page. */
typedef struct span {
    const float *at; /* of the first */
    size_t stride;   /* to the next */
    uint32_t n;
} span;

static span span_at(const ct_ref *r, const view *v, const void *store, uint32_t pos)
{
    const ct_kv_layer *kv = v->kv;
    const size_t D = kv->head_dim, stride = kv->kv_heads * D;
    const size_t slot = slot_of(kv, v->seq, pos) + v->head * D;
    size_t n = ct_min_size(kv->page_tokens - pos % kv->page_tokens, (size_t)v->last - pos + 1);

    if (kv->type == CT_KV_F32)
        return (span){(const float *)store + slot, stride, (uint32_t)n};
    n = ct_min_size(n, CT_REF_SPAN);
    for (size_t i = 0; i < n; i++)
        ct_ref_load(r, v->room + i * D, store, ct_kv_elem(kv->type), slot + i * stride, D);
    return (span){v->room, D, (uint32_t)n};
}

/* Keys of a folded store from its values: rope(k_norm * v). */
static span rebuilt_keys_at(const attend *a, const view *v, uint32_t pos)
{
    const size_t D = v->kv->head_dim;
    const uint32_t n_pairs = a->a->rope.n_pairs;
    span s = span_at(a->r, v, v->kv->v, pos);

    s.n = (uint32_t)ct_min_size(s.n, CT_REF_SPAN);
    for (size_t i = 0; i < s.n; i++) {
        const float *value = s.at + i * s.stride; /* may be this very row */
        float *key = v->room + i * D;

        for (size_t j = 0; j < D; j++)
            key[j] = ct_ref_round(a->r, (double)value[j] * ct_ref_bf16(a->a->k_norm, j));
        ct_ref_rope(a->r, key, a->r->turns.at + (pos + i) * 2 * n_pairs, n_pairs, v->kv->head_dim);
    }
    return (span){v->room, D, s.n};
}

static span keys_at(const attend *a, const view *v, uint32_t pos)
{
    return v->kv->k ? span_at(a->r, v, v->kv->k, pos) : rebuilt_keys_at(a, v, pos);
}

/* p[i]: probability of the key at position first + i, from its score. */
static void softmax(const ct_ref *r, double *p, size_t n)
{
    double max = p[0], sum = 0.0;

    for (size_t i = 1; i < n; i++)
        max = p[i] > max ? p[i] : max;
    for (size_t i = 0; i < n; i++) {
        p[i] = exp(p[i] - max);
        sum += p[i];
    }
    for (size_t i = 0; i < n; i++)
        p[i] = ct_ref_round(r, p[i] / sum);
}

/* p[g, i]: scores of the group's query heads with the keys of the view. */
static void score_keys(const attend *a, double *p, const double *q, const view *v)
{
    const size_t D = v->kv->head_dim, n_keys = view_keys(v);
    span run;

    for (uint32_t s = v->first; s <= v->last; s += run.n) {
        run = keys_at(a, v, s);
        for (size_t j = 0; j < run.n; j++)
            for (size_t g = 0; g < a->group; g++)
                p[g * n_keys + s - v->first + j] =
                    ct_ref_round(a->r, ct_ref_dot(q + g * D, run.at + j * run.stride, D));
    }
}

/* out[g] = sum of p[g, i] * value i, ascending by position. */
static void mix_values(const attend *a, double *out, const double *p, const view *v)
{
    const size_t D = v->kv->head_dim, n_keys = view_keys(v);
    span run;

    memset(out, 0, a->group * D * sizeof *out);
    for (uint32_t s = v->first; s <= v->last; s += run.n) {
        run = span_at(a->r, v, v->kv->v, s);
        for (size_t g = 0; g < a->group; g++)
            ct_ref_mix(out + g * D, p + g * n_keys + (s - v->first), run.at, run.stride, run.n, D);
    }
}

/* The query heads of one row that read one key head, together: its keys pass through
 * the cache once. */
static void attend_item(void *ctx, size_t item, unsigned thread)
{
    const attend *a = ctx;
    const ct_kv_layer *kv = a->a->kv;
    const ref_scratch *scratch = &a->r->scratch[thread];
    const size_t t = item / kv->kv_heads, n = a->group * kv->head_dim;
    const uint32_t last = a->rows->pos[t];
    const view v = {
        .kv = kv,
        .seq = a->rows->seq[t],
        .first = kv->window && last >= kv->window ? last - kv->window + 1 : 0,
        .last = last,
        .head = item % kv->kv_heads,
        .room = scratch->span,
    };
    double *p = scratch->keys, *wide = scratch->rows;

    assert(view_keys(&v) <= a->r->limits.keys);
    for (size_t i = 0; i < n; i++)
        wide[i] = ((const float *)a->a->q)[item * n + i];
    score_keys(a, p, wide, &v);
    for (size_t g = 0; g < a->group; g++)
        softmax(a->r, p + g * view_keys(&v), view_keys(&v));
    mix_values(a, wide, p, &v);
    for (size_t i = 0; i < n; i++)
        ((float *)a->a->out)[item * n + i] = ct_ref_round(a->r, wide[i]);
}

static double visible_keys(const ct_rows *rows, uint32_t window)
{
    double n = 0.0;

    for (uint32_t t = 0; t < rows->n; t++)
        n += window && rows->pos[t] >= window ? window : rows->pos[t] + 1.0;
    return n;
}

/* A folded store's keys are of one shape in all layers, so their turns are kept. */
static void prepare_turns(ct_ref *r, const ct_rows *rows, const ct_attend_args *a)
{
    uint32_t n = 0;

    for (uint32_t t = 0; t < rows->n; t++)
        n = rows->pos[t] >= n ? rows->pos[t] + 1 : n;
    turns_extend(r, &a->rope, a->kv->head_dim, n);
}

void ct_ref_attend(ct_backend *b, const ct_rows *rows, const ct_attend_args *args)
{
    const ct_kv_layer *kv = args->kv;
    attend a = {.r = ct_ref_of(b), .a = args, .rows = rows, .group = args->n_heads / kv->kv_heads};
    double keys = visible_keys(rows, kv->window);

    assert(a.group <= a.r->limits.group && a.group * kv->head_dim <= a.r->limits.cols);
    if (!kv->k)
        prepare_turns(a.r, rows, args);
    ct_ref_run(a.r, (size_t)rows->n * kv->kv_heads,
               keys * args->n_heads * (2.0 * kv->head_dim + 20.0), attend_item, &a);
}
