#include "base/checked.h"
#include "ops/ref/internal.h"

#include <assert.h>
#include <math.h>

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
                      uint32_t head_dim)
{
    const uint32_t half = head_dim / 2;

    for (uint32_t i = 0; i < half; i++) {
        /* The product is rounded to f32, as in the model; the sine and cosine of that
         * angle are accurate, whatever its size. */
        float angle = (float)pos * inv[i];

        turn[i] = ct_ref_round(r, cos(angle));
        turn[half + i] = ct_ref_round(r, sin(angle));
    }
}

void ct_ref_rope(const ct_ref *r, float *x, const float *turn, uint32_t head_dim)
{
    const uint32_t half = head_dim / 2;

    for (uint32_t i = 0; i < half; i++) {
        double c = turn[i], s = turn[half + i], a = x[i], b = x[i + half];

        x[i] = ct_ref_round(r, (double)ct_ref_round(r, a * c) - ct_ref_round(r, b * s));
        x[i + half] = ct_ref_round(r, (double)ct_ref_round(r, b * c) + ct_ref_round(r, a * s));
    }
}

/* --- norms of heads, cache write ---------------------------------------------- */

/* Offset of one token's heads in a key or value store. */
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

static void qkv_row(void *ctx, size_t t, unsigned thread)
{
    const qkv_finish *f = ctx;
    const ct_qkv_args *a = f->a;
    const ct_kv_layer *kv = a->kv;
    const ct_ref *r = f->r;
    const size_t D = kv->head_dim, slot = slot_of(kv, f->rows->seq[t], f->rows->pos[t]);
    float *q = (float *)a->q + t * a->n_heads * D, *turn = r->scratch[thread].turn;
    const float *k = (const float *)a->k + t * kv->kv_heads * D;
    const float *v = (const float *)a->v + t * kv->kv_heads * D;
    float *k_out = (float *)kv->k + slot, *v_out = (float *)kv->v + slot;
    double *wide = r->scratch[thread].rows;

    ct_ref_rope_turn(r, turn, r->rope_inv, f->rows->pos[t], kv->head_dim);
    for (size_t h = 0; h < a->n_heads; h++) {
        ct_ref_norm(r, q + h * D, q + h * D, a->q_norm, D, a->eps, wide);
        ct_ref_rope(r, q + h * D, turn, kv->head_dim);
    }
    for (size_t h = 0; h < kv->kv_heads; h++) {
        ct_ref_norm(r, k_out + h * D, k + h * D, a->k_norm, D, a->eps, wide);
        ct_ref_rope(r, k_out + h * D, turn, kv->head_dim);
        ct_ref_norm(r, v_out + h * D, v + h * D, NULL, D, a->eps, wide);
    }
}

void ct_ref_qkv_finish(ct_backend *b, const ct_rows *rows, const ct_qkv_args *a)
{
    qkv_finish f = {.r = ct_ref_of(b), .rows = rows, .a = a};
    size_t heads = (size_t)a->n_heads + 2 * a->kv->kv_heads;

    assert(a->kv->head_dim <= f.r->limits.cols);
    ct_ref_rope_inv(f.r->rope_inv, &a->rope, a->kv->head_dim);
    /* A sine and a cosine cost some fifty multiply-adds. */
    ct_ref_run(f.r, rows->n, (double)rows->n * a->kv->head_dim * (8.0 * (double)heads + 50.0),
               qkv_row, &f);
}

/* --- attention ----------------------------------------------------------------- */

typedef struct attend {
    ct_ref *r;
    float *out;
    const float *q;
    const ct_rows *rows;
    size_t group; /* query heads that share a key head */
    const ct_kv_layer *kv;
} attend;

/* Keys or values of one head at positions that lie together in a page. */
typedef struct span {
    const float *at; /* of the first; the next is kv_heads * head_dim further */
    uint32_t n;
} span;

static span span_at(const ct_kv_layer *kv, const void *store, size_t head, uint32_t seq,
                    uint32_t first, uint32_t last)
{
    size_t in_page = kv->page_tokens - first % kv->page_tokens;

    return (span){
        .at = (const float *)store + slot_of(kv, seq, first) + head * kv->head_dim,
        .n = (uint32_t)ct_min_size(in_page, (size_t)last - first + 1),
    };
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

/* p[g, i]: scores of the group's query heads with the keys from `first` to `last`. */
static void score_keys(const attend *a, double *p, const double *q, size_t kv_head, uint32_t seq,
                       uint32_t first, uint32_t last)
{
    const size_t D = a->kv->head_dim, n_keys = (size_t)last - first + 1;
    span run;

    for (uint32_t s = first; s <= last; s += run.n) {
        run = span_at(a->kv, a->kv->k, kv_head, seq, s, last);
        for (size_t j = 0; j < run.n; j++)
            for (size_t g = 0; g < a->group; g++)
                p[g * n_keys + s - first + j] =
                    ct_ref_round(a->r, ct_ref_dot(q + g * D, run.at + j * a->kv->kv_heads * D, D));
    }
}

/* out[g] = sum of p[g, i] * value i, ascending by position. */
static void mix_values(const attend *a, double *out, const double *p, size_t kv_head, uint32_t seq,
                       uint32_t first, uint32_t last)
{
    const size_t D = a->kv->head_dim, n_keys = (size_t)last - first + 1;
    span run;

    memset(out, 0, a->group * D * sizeof *out);
    for (uint32_t s = first; s <= last; s += run.n) {
        run = span_at(a->kv, a->kv->v, kv_head, seq, s, last);
        for (size_t g = 0; g < a->group; g++)
            ct_ref_mix(out + g * D, p + g * n_keys + (s - first), run.at, a->kv->kv_heads * D,
                       run.n, D);
    }
}

/* The query heads of one row that read one key head, together: its keys pass through
 * the cache once. */
static void attend_item(void *ctx, size_t item, unsigned thread)
{
    const attend *a = ctx;
    const ct_kv_layer *kv = a->kv;
    const size_t t = item / kv->kv_heads, kv_head = item % kv->kv_heads;
    const size_t n = a->group * kv->head_dim;
    const uint32_t seq = a->rows->seq[t], last = a->rows->pos[t];
    const uint32_t first = kv->window && last >= kv->window ? last - kv->window + 1 : 0;
    double *p = a->r->scratch[thread].keys, *wide = a->r->scratch[thread].rows;

    assert((size_t)last - first < a->r->limits.keys);
    for (size_t i = 0; i < n; i++)
        wide[i] = a->q[item * n + i];
    score_keys(a, p, wide, kv_head, seq, first, last);
    for (size_t g = 0; g < a->group; g++)
        softmax(a->r, p + g * (last - first + 1), (size_t)last - first + 1);
    mix_values(a, wide, p, kv_head, seq, first, last);
    for (size_t i = 0; i < n; i++)
        a->out[item * n + i] = ct_ref_round(a->r, wide[i]);
}

static double visible_keys(const ct_rows *rows, uint32_t window)
{
    double n = 0.0;

    for (uint32_t t = 0; t < rows->n; t++)
        n += window && rows->pos[t] >= window ? window : rows->pos[t] + 1.0;
    return n;
}

void ct_ref_attend(ct_backend *b, void *out, const void *q, const ct_rows *rows, uint32_t n_heads,
                   const ct_kv_layer *kv)
{
    attend a = {.r = ct_ref_of(b),
                .out = out,
                .q = q,
                .rows = rows,
                .group = n_heads / kv->kv_heads,
                .kv = kv};
    double keys = visible_keys(rows, kv->window);

    assert(a.group <= a.r->limits.group && a.group * kv->head_dim <= a.r->limits.cols);
    ct_ref_run(a.r, (size_t)rows->n * kv->kv_heads, keys * n_heads * (2.0 * kv->head_dim + 20.0),
               attend_item, &a);
}
