#include "base/checked.h"
#include "ops/cpu/internal.h"

#include <assert.h>
#include <math.h>

/* --- RoPE -------------------------------------------------------------------- */

static bool same_rope(const cpu_turns *t, const ct_rope *rope, uint32_t head_dim)
{
    return t->head_dim == head_dim && t->rope.theta == rope->theta &&
           t->rope.n_pairs == rope->n_pairs;
}

static void turns_restart(cpu_turns *t, const ct_rope *rope, uint32_t head_dim)
{
    t->rope = *rope;
    t->head_dim = head_dim;
    t->n = 0;
}

/* Fills the turns from t->n to n.  As in the model, frequencies and angles are rounded to
 * f32; the sine and cosine of an angle are accurate whatever its size. */
static void turns_fill(ct_cpu *c, cpu_turns *t, uint32_t n)
{
    const uint32_t n_pairs = t->rope.n_pairs;

    for (uint32_t i = 0; i < n_pairs; i++) {
        /* The exponent's denominator is the whole head, also when few pairs turn. */
        float exponent = (float)(2 * i) / (float)t->head_dim;

        c->inv[i] = 1.0f / (float)pow(t->rope.theta, exponent);
    }
    for (; t->n < n; t->n++) {
        const float pos = (float)(t->pos ? t->pos[t->n] : t->n);
        float *turn = t->at + (size_t)t->n * 2 * n_pairs;

        for (uint32_t i = 0; i < n_pairs; i++) {
            float angle = pos * c->inv[i];

            turn[i] = (float)cos(angle);
            turn[n_pairs + i] = (float)sin(angle);
        }
    }
}

/* The turns of a step's rows, kept for the other layers of the kind. */
static const float *row_turns(ct_cpu *c, const ct_rows *rows, const ct_rope *rope,
                              uint32_t head_dim)
{
    const unsigned kind = 2 * rope->n_pairs < head_dim;
    cpu_turns *t = &c->row_turns[kind];
    uint32_t *pos = c->row_pos[kind];

    assert(rows->n <= c->limits.rows && rope->n_pairs <= c->limits.head_dim / 2);
    if (same_rope(t, rope, head_dim) && t->n == rows->n &&
        memcmp(pos, rows->pos, rows->n * sizeof *pos) == 0)
        return t->at;
    turns_restart(t, rope, head_dim);
    memcpy(pos, rows->pos, rows->n * sizeof *pos);
    t->pos = pos;
    turns_fill(c, t, rows->n);
    return t->at;
}

/* The turns of positions below n. */
static const float *key_turns(ct_cpu *c, const ct_rope *rope, uint32_t head_dim, uint32_t n)
{
    cpu_turns *t = &c->key_turns;

    assert(n <= c->limits.keys && rope->n_pairs <= c->limits.pairs);
    if (!same_rope(t, rope, head_dim))
        turns_restart(t, rope, head_dim);
    if (t->n < n)
        turns_fill(c, t, n);
    return t->at;
}

/* Rotates x[head_dim] in place; the other pairs have frequency 0. */
static void rotate(float *x, const float *turn, uint32_t n_pairs, uint32_t head_dim)
{
    const uint32_t half = head_dim / 2;

    for (uint32_t i = 0; i < n_pairs; i++) {
        float c = turn[i], s = turn[n_pairs + i], a = x[i], b = x[i + half];

        x[i] = a * c - b * s;
        x[i + half] = b * c + a * s;
    }
}

/* --- stores ------------------------------------------------------------------ */

/* Index of one token's first number in a key or value store. */
static size_t slot_of(const ct_kv_layer *kv, uint32_t seq, uint32_t pos)
{
    uint32_t block = pos / kv->page_tokens, page;

    assert(block < kv->max_blocks);
    page = kv->pages[(size_t)seq * kv->max_blocks + block];
    assert(page < kv->n_pages);
    return ((size_t)page * kv->page_tokens + pos % kv->page_tokens) * kv->kv_heads * kv->head_dim;
}

static void store(void *to, ct_kv_type type, size_t at, const float *x, size_t n)
{
    switch (type) {
    case CT_KV_F32:
        memcpy((float *)to + at, x, n * sizeof *x);
        return;
    case CT_KV_BF16:
        for (size_t i = 0; i < n; i++)
            ((uint16_t *)to)[at + i] = ct_f32_bf16(x[i]);
        return;
    case CT_KV_FP8:
        for (size_t i = 0; i < n; i++)
            ((uint8_t *)to)[at + i] = ct_f32_e4m3(x[i]);
        return;
    }
}

static void load(const ct_cpu *c, float *x, const void *from, ct_kv_type type, size_t at, size_t n)
{
    switch (type) {
    case CT_KV_F32:
        memcpy(x, (const float *)from + at, n * sizeof *x);
        return;
    case CT_KV_BF16:
        c->kernels->widen(x, (const uint16_t *)from + at, n);
        return;
    case CT_KV_FP8:
        for (size_t i = 0; i < n; i++)
            x[i] = c->e4m3[((const uint8_t *)from)[at + i]];
        return;
    }
}

/* --- norms of heads, cache write ---------------------------------------------- */

typedef struct qkv_finish {
    ct_cpu *c;
    const ct_rows *rows;
    const ct_qkv_args *a;
    const float *turns;
} qkv_finish;

static void qkv_row(void *ctx, size_t t, unsigned thread)
{
    const qkv_finish *f = ctx;
    const ct_qkv_args *a = f->a;
    const ct_kv_layer *kv = a->kv;
    const uint32_t D = kv->head_dim, n_pairs = a->rope.n_pairs;
    const size_t slot = slot_of(kv, f->rows->seq[t], f->rows->pos[t]);
    const float *turn = f->turns + t * 2 * n_pairs;
    float *q = (float *)a->q + t * a->n_heads * D, *x = f->c->scratch[thread].tile;

    for (size_t h = 0; h < a->n_heads; h++) {
        ct_cpu_norm(q + h * D, q + h * D, a->q_norm, D, a->eps);
        rotate(q + h * D, turn, n_pairs, D);
    }
    for (size_t h = 0; h < kv->kv_heads; h++) {
        const float *k = (const float *)a->k + (t * kv->kv_heads + h) * D;
        const float *v = (const float *)a->v + (t * kv->kv_heads + h) * D;

        if (kv->k) {
            ct_cpu_norm(x, k, a->k_norm, D, a->eps);
            rotate(x, turn, n_pairs, D);
            store(kv->k, kv->type, slot + h * D, x, D);
        }
        ct_cpu_norm(x, v, NULL, D, a->eps);
        store(kv->v, kv->type, slot + h * D, x, D);
    }
}

void ct_cpu_qkv_finish(ct_backend *b, const ct_rows *rows, const ct_qkv_args *a)
{
    ct_cpu *c = ct_cpu_of(b);
    const uint32_t D = a->kv->head_dim;
    qkv_finish f = {.c = c, .rows = rows, .a = a, .turns = row_turns(c, rows, &a->rope, D)};
    size_t heads = (size_t)a->n_heads + 2 * a->kv->kv_heads;

    assert(D <= c->limits.cols);
    ct_cpu_run(c, rows->n, 8.0 * rows->n * D * (double)heads, qkv_row, &f);
}

/* --- attention ----------------------------------------------------------------- */

typedef struct attend {
    ct_cpu *c;
    const ct_rows *rows;
    const ct_attend_args *a;
    uint32_t group;     /* query heads that share a key head */
    const float *turns; /* of keys; folded stores only */
} attend;

/* Keys of one head at positions that lie together in a page. */
typedef struct span {
    size_t at; /* of the first, in the store; the next is kv_heads * head_dim further */
    uint32_t pos, n;
} span;

static span span_at(const ct_kv_layer *kv, size_t head, uint32_t seq, uint32_t first, uint32_t last)
{
    uint32_t in_page = kv->page_tokens - first % kv->page_tokens;

    if (in_page > last - first + 1)
        in_page = last - first + 1;
    return (span){
        .at = slot_of(kv, seq, first) + head * kv->head_dim,
        .pos = first,
        .n = in_page < CT_CPU_KEYS ? in_page : CT_CPU_KEYS,
    };
}

/* The rows of a span as floats: in place where the store holds floats, else in room. */
static ct_cpu_rows span_load(const attend *f, const span *s, const void *from, float *room)
{
    const ct_kv_layer *kv = f->a->kv;
    const size_t stride = (size_t)kv->kv_heads * kv->head_dim;

    if (kv->type == CT_KV_F32)
        return (ct_cpu_rows){(const float *)from + s->at, stride, s->n};
    for (uint32_t j = 0; j < s->n; j++)
        load(f->c, room + (size_t)j * kv->head_dim, from, kv->type, s->at + j * stride,
             kv->head_dim);
    return (ct_cpu_rows){room, kv->head_dim, s->n};
}

/* Keys of a folded store: rope(k_norm * v). */
static ct_cpu_rows span_unfold(const attend *f, const span *s, float *room)
{
    const ct_kv_layer *kv = f->a->kv;
    const uint32_t D = kv->head_dim, n_pairs = f->a->rope.n_pairs;
    const ct_cpu_rows v = span_load(f, s, kv->v, room);
    const float *weight = f->c->k_weight;

    for (uint32_t j = 0; j < s->n; j++) {
        const float *from = (const float *)v.p + j * v.ld;
        float *key = room + (size_t)j * D;

        for (uint32_t i = 0; i < D; i++)
            key[i] = from[i] * weight[i];
        rotate(key, f->turns + (size_t)(s->pos + j) * 2 * n_pairs, n_pairs, D);
    }
    return (ct_cpu_rows){room, D, s->n};
}

/* p[g, i]: scores of the group's query heads with the keys from `first` to `last`. */
static void score_keys(const attend *f, float *p, const float *q, size_t head, uint32_t seq,
                       uint32_t first, uint32_t last, float *room)
{
    const ct_kv_layer *kv = f->a->kv;
    const ct_cpu_rows heads = {q, kv->head_dim, f->group};
    const size_t n_keys = (size_t)last - first + 1;
    span s;

    for (uint32_t pos = first; pos <= last; pos += s.n) {
        ct_cpu_rows keys;

        s = span_at(kv, head, seq, pos, last);
        keys = kv->k ? span_load(f, &s, kv->k, room) : span_unfold(f, &s, room);
        f->c->kernels->dot_f32(p + (pos - first), n_keys, keys, heads, kv->head_dim);
    }
}

/* p: probabilities from scores.  The sum runs in double, ascending. */
static void softmax(const ct_cpu *c, float *p, size_t n)
{
    float max = p[0], scale;
    double sum = 0.0;

    for (size_t i = 1; i < n; i++)
        max = p[i] > max ? p[i] : max;
    c->kernels->exp_minus(p, max, n);
    for (size_t i = 0; i < n; i++)
        sum += p[i];
    scale = (float)(1.0 / sum);
    for (size_t i = 0; i < n; i++)
        p[i] *= scale;
}

/* out[g] = sum of p[g, i] * value i, ascending by position. */
static void mix_values(const attend *f, float *out, const float *p, size_t head, uint32_t seq,
                       uint32_t first, uint32_t last, float *room)
{
    const ct_kv_layer *kv = f->a->kv;
    const size_t D = kv->head_dim, n_keys = (size_t)last - first + 1;
    span s;

    memset(out, 0, f->group * D * sizeof *out);
    for (uint32_t pos = first; pos <= last; pos += s.n) {
        ct_cpu_rows values;

        s = span_at(kv, head, seq, pos, last);
        values = span_load(f, &s, kv->v, room);
        for (size_t g = 0; g < f->group; g++)
            f->c->kernels->mix(out + g * D, p + g * n_keys + (pos - first), values, D);
    }
}

/* The query heads of one row that read one key head, together: its keys are decoded
 * once. */
static void attend_item(void *ctx, size_t item, unsigned thread)
{
    const attend *f = ctx;
    const ct_kv_layer *kv = f->a->kv;
    const size_t t = item / kv->kv_heads, head = item % kv->kv_heads;
    const size_t n = (size_t)f->group * kv->head_dim;
    const uint32_t seq = f->rows->seq[t], last = f->rows->pos[t];
    const uint32_t first = kv->window && last >= kv->window ? last - kv->window + 1 : 0;
    const cpu_scratch *scratch = &f->c->scratch[thread];
    float *p = scratch->scores;

    assert((size_t)last - first < f->c->limits.keys);
    score_keys(f, p, (const float *)f->a->q + item * n, head, seq, first, last, scratch->tile);
    for (size_t g = 0; g < f->group; g++)
        softmax(f->c, p + g * (last - first + 1), (size_t)last - first + 1);
    mix_values(f, (float *)f->a->out + item * n, p, head, seq, first, last, scratch->values);
}

static double visible_keys(const ct_rows *rows, uint32_t window)
{
    double n = 0.0;

    for (uint32_t t = 0; t < rows->n; t++)
        n += window && rows->pos[t] >= window ? window : rows->pos[t] + 1.0;
    return n;
}

void ct_cpu_attend(ct_backend *b, const ct_rows *rows, const ct_attend_args *a)
{
    const ct_kv_layer *kv = a->kv;
    attend f = {.c = ct_cpu_of(b), .rows = rows, .a = a, .group = a->n_heads / kv->kv_heads};
    uint32_t n = 0;

    assert(f.group <= f.c->limits.group && kv->head_dim <= f.c->limits.head_dim);
    for (uint32_t t = 0; t < rows->n; t++)
        n = rows->pos[t] >= n ? rows->pos[t] + 1 : n;
    if (!kv->k) {
        f.turns = key_turns(f.c, &a->rope, kv->head_dim, n);
        f.c->kernels->widen(f.c->k_weight, a->k_norm, kv->head_dim);
    }
    ct_cpu_run(f.c, (size_t)rows->n * kv->kv_heads,
               visible_keys(rows, kv->window) * a->n_heads * (2.0 * kv->head_dim + 20.0),
               attend_item, &f);
}
