#include "base/checked.h"
#include "ops/q_block.h"
#include "ops/ref/internal.h"

#include <assert.h>

/* --- weights ----------------------------------------------------------------- */

static void decode_bf16(double *restrict out, const ct_weight *w, size_t row)
{
    const size_t n = w->cols;
    const unsigned char *restrict p = (const unsigned char *)w->data + row * n * sizeof(uint16_t);

    for (size_t i = 0; i < n; i++)
        out[i] = ct_ref_bf16(p, i);
}

/* An element is e2m1 * (e4m3 * multiplier), both products in f32. */
static void decode_nvfp4(const ct_ref *r, double *out, const ct_weight *w, size_t row)
{
    const uint8_t *p = (const uint8_t *)w->data + row * (w->cols / 2);
    const uint8_t *scale = (const uint8_t *)w->scale + row * (w->cols / CT_NVFP4_BLOCK);

    for (size_t i = 0; i < w->cols; i += 2) {
        float s = r->e4m3[scale[i / CT_NVFP4_BLOCK]] * w->global;

        out[i] = ct_e2m1_f32(p[i / 2]) * s;
        out[i + 1] = ct_e2m1_f32(p[i / 2] >> 4) * s;
    }
}

static void decode_fp8(const ct_ref *r, double *out, const ct_weight *w, size_t row)
{
    const uint8_t *p = (const uint8_t *)w->data + row * w->cols;
    float s = ct_ref_bf16(w->scale, row);

    for (size_t i = 0; i < w->cols; i++)
        out[i] = r->e4m3[p[i]] * s;
}

static void decode_q(double *out, const ct_weight *w, size_t row)
{
    const uint8_t *block = ct_q_row(w, row);
    float value[CT_Q_BLOCK];

    for (size_t i = 0; i < w->cols; i += CT_Q_BLOCK, block += ct_q_block_bytes(w->type)) {
        ct_q_decode(value, w->type, block);
        for (size_t j = 0; j < CT_Q_BLOCK; j++)
            out[i + j] = value[j];
    }
}

void ct_ref_decode_row(const ct_ref *r, double *out, const ct_weight *w, size_t row)
{
    assert(row < w->rows);
    switch (w->type) {
    case CT_WEIGHT_BF16:
        decode_bf16(out, w, row);
        return;
    case CT_WEIGHT_NVFP4:
        decode_nvfp4(r, out, w, row);
        return;
    case CT_WEIGHT_FP8:
        decode_fp8(r, out, w, row);
        return;
    case CT_WEIGHT_Q4_0:
    case CT_WEIGHT_Q8_0:
        decode_q(out, w, row);
        return;
    case CT_WEIGHT_NONE:
        break;
    }
    assert(!"a product with an absent weight");
}

/* --- products ---------------------------------------------------------------- */

typedef struct product {
    ct_ref *r;
    float *y;
    const float *x;
    const ct_weight *w;
    uint32_t T;
} product;

/* One tile of output rows for every row of x. */
static void product_tile(void *ctx, size_t item, unsigned thread)
{
    const product *p = ctx;
    const size_t cols = p->w->cols, first = item * CT_REF_TILE;
    const size_t n = ct_min_size(CT_REF_TILE, p->w->rows - first);
    double *tile = p->r->scratch[thread].rows;

    for (size_t i = 0; i < n; i++)
        ct_ref_decode_row(p->r, tile + i * cols, p->w, first + i);
    for (size_t t = 0; t < p->T; t++)
        for (size_t i = 0; i < n; i++)
            p->y[t * p->w->rows + first + i] =
                ct_ref_round(p->r, ct_ref_dot(tile + i * cols, p->x + t * cols, cols));
}

void ct_ref_linear(ct_backend *b, void *y, const void *x, const ct_weight *w, uint32_t T)
{
    product p = {.r = ct_ref_of(b), .y = y, .x = x, .w = w, .T = T};
    size_t n_tiles = ((size_t)w->rows + CT_REF_TILE - 1) / CT_REF_TILE;

    assert(w->cols <= p.r->limits.cols);
    ct_ref_run(p.r, n_tiles, (double)T * w->rows * w->cols, product_tile, &p);
}

/* --- head -------------------------------------------------------------------- */

typedef struct softcap_args {
    ct_ref *r;
    float *logits;
    size_t vocab;
    float cap;
} softcap_args;

static void softcap_row(void *ctx, size_t t, unsigned thread)
{
    const softcap_args *s = ctx;
    float *z = s->logits + t * s->vocab;

    (void)thread;
    for (size_t i = 0; i < s->vocab; i++) {
        float share = ct_ref_round(s->r, (double)z[i] / s->cap);

        z[i] = ct_ref_round(s->r, (double)ct_ref_round(s->r, tanh(share)) * s->cap);
    }
}

void ct_ref_head(ct_backend *b, void *logits, const void *x, const ct_weight *table, uint32_t n,
                 float softcap)
{
    softcap_args s = {.r = ct_ref_of(b), .logits = logits, .vocab = table->rows, .cap = softcap};

    ct_ref_linear(b, logits, x, table, n);
    ct_ref_run(s.r, n, 16.0 * n * table->rows, softcap_row, &s);
}

/* --- rows -------------------------------------------------------------------- */

void ct_ref_embed(ct_backend *b, void *x, const ct_rows *rows, const ct_weight *table, float scale)
{
    ct_ref *r = ct_ref_of(b);
    double *wide = r->scratch[0].rows;
    float *out = x;

    for (uint32_t t = 0; t < rows->n; t++, out += table->cols) {
        ct_ref_decode_row(r, wide, table, rows->ids[t]);
        for (uint32_t i = 0; i < table->cols; i++)
            out[i] = ct_ref_round(r, wide[i] * scale);
    }
}

void ct_ref_gather(ct_backend *b, void *y, const void *x, const uint32_t *index, uint32_t n,
                   uint32_t width)
{
    (void)b;
    for (size_t i = 0; i < n; i++)
        memcpy((float *)y + i * width, (const float *)x + (size_t)index[i] * width,
               width * sizeof(float));
}
