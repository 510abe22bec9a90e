#include "base/checked.h"
#include "ops/cpu/internal.h"
#include "ops/q_block.h"

#include <assert.h>

/* --- weights ----------------------------------------------------------------- */

/* An element is e2m1 * (e4m3 * multiplier), both products in f32. */
static void decode_nvfp4(const ct_cpu *c, float *out, const ct_weight *w, size_t row)
{
    const uint8_t *p = (const uint8_t *)w->data + row * (w->cols / 2);
    const uint8_t *scale = (const uint8_t *)w->scale + row * (w->cols / CT_NVFP4_BLOCK);

    for (size_t i = 0; i < w->cols; i += 2) {
        float s = c->e4m3[scale[i / CT_NVFP4_BLOCK]] * w->global;

        out[i] = ct_e2m1_f32(p[i / 2]) * s;
        out[i + 1] = ct_e2m1_f32(p[i / 2] >> 4) * s;
    }
}

static void decode_fp8(const ct_cpu *c, float *out, const ct_weight *w, size_t row)
{
    const uint8_t *p = (const uint8_t *)w->data + row * w->cols;
    float s = ct_cpu_bf16(w->scale, row);

    for (size_t i = 0; i < w->cols; i++)
        out[i] = c->e4m3[p[i]] * s;
}

static void decode_q(float *out, const ct_weight *w, size_t row)
{
    const uint8_t *block = ct_q_row(w, row);

    for (size_t i = 0; i < w->cols; i += CT_Q_BLOCK, block += ct_q_block_bytes(w->type))
        ct_q_decode(out + i, w->type, block);
}

static void decode_row(const ct_cpu *c, float *out, const ct_weight *w, size_t row)
{
    assert(row < w->rows);
    switch (w->type) {
    case CT_WEIGHT_BF16:
        c->kernels->widen(out, (const uint16_t *)w->data + row * w->cols, w->cols);
        return;
    case CT_WEIGHT_NVFP4:
        decode_nvfp4(c, out, w, row);
        return;
    case CT_WEIGHT_FP8:
        decode_fp8(c, out, w, row);
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

void ct_cpu_decode(const ct_cpu *c, float *out, const ct_weight *w, size_t first, size_t n)
{
    for (size_t i = 0; i < n; i++)
        decode_row(c, out + i * w->cols, w, first + i);
}

/* --- products ---------------------------------------------------------------- */

void ct_cpu_product(const ct_cpu *c, float *y, size_t ldy, const ct_weight *w, size_t first,
                    size_t n, ct_cpu_rows x, float *tile)
{
    ct_cpu_rows rows = {tile, w->cols, n};

    assert(n <= CT_CPU_TILE && first + n <= w->rows);
    if (w->type == CT_WEIGHT_BF16) {
        rows.p = (const uint16_t *)w->data + first * w->cols;
        c->kernels->dot_bf16(y, ldy, rows, x, w->cols);
        return;
    }
    ct_cpu_decode(c, tile, w, first, n);
    c->kernels->dot_f32(y, ldy, rows, x, w->cols);
}

typedef struct product {
    ct_cpu *c;
    float *y;
    ct_cpu_rows x;
    const ct_weight *w;
} product;

static void product_tile(void *ctx, size_t item, unsigned thread)
{
    const product *p = ctx;
    const size_t first = item * CT_CPU_TILE, n = ct_min_size(CT_CPU_TILE, p->w->rows - first);

    ct_cpu_product(p->c, p->y + first, p->w->rows, p->w, first, n, p->x,
                   p->c->scratch[thread].tile);
}

void ct_cpu_linear(ct_backend *b, void *y, const void *x, const ct_weight *w, uint32_t T)
{
    product p = {.c = ct_cpu_of(b), .y = y, .x = {x, w->cols, T}, .w = w};
    size_t n_tiles = ((size_t)w->rows + CT_CPU_TILE - 1) / CT_CPU_TILE;

    assert(w->cols <= p.c->limits.cols);
    ct_cpu_run(p.c, n_tiles, (double)T * w->rows * w->cols, product_tile, &p);
}

/* --- head -------------------------------------------------------------------- */

#define CAP_ITEM 8192 /* logits of one work item */

typedef struct cap_args {
    ct_cpu *c;
    float *logits;
    size_t n;
    float cap;
} cap_args;

static void cap_item(void *ctx, size_t item, unsigned thread)
{
    const cap_args *a = ctx;
    const size_t first = item * CAP_ITEM;

    (void)thread;
    a->c->kernels->softcap(a->logits + first, a->cap, ct_min_size(CAP_ITEM, a->n - first));
}

void ct_cpu_head(ct_backend *b, void *logits, const void *x, const ct_weight *table, uint32_t n,
                 float softcap)
{
    cap_args a = {
        .c = ct_cpu_of(b), .logits = logits, .n = (size_t)n * table->rows, .cap = softcap};

    ct_cpu_linear(b, logits, x, table, n);
    ct_cpu_run(a.c, (a.n + CAP_ITEM - 1) / CAP_ITEM, 16.0 * (double)a.n, cap_item, &a);
}

/* --- rows -------------------------------------------------------------------- */

void ct_cpu_embed(ct_backend *b, void *x, const ct_rows *rows, const ct_weight *table, float scale)
{
    const ct_cpu *c = ct_cpu_of(b);
    float *out = x;

    for (uint32_t t = 0; t < rows->n; t++, out += table->cols) {
        decode_row(c, out, table, rows->ids[t]);
        for (uint32_t i = 0; i < table->cols; i++)
            out[i] *= scale;
    }
}

void ct_cpu_gather(ct_backend *b, void *y, const void *x, const uint32_t *index, uint32_t n,
                   uint32_t width)
{
    (void)b;
    for (size_t i = 0; i < n; i++)
        memcpy((float *)y + i * width, (const float *)x + (size_t)index[i] * width,
               width * sizeof(float));
}
