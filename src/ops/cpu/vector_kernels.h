/* The kernels of one instruction set, written over the vector type that the including
 * file defines: vec, WIDTH, vec_load, vec_load_bf16, vec_store, vec_set, vec_fma,
 * vec_join, and the tile sizes TILE_X, TILE_W, TALL_W, MAX_W.  Everything is static, so
 * each level's copy is compiled with that level's flags and never shared. */
#ifndef CT_OPS_CPU_VECTOR_KERNELS_H
#define CT_OPS_CPU_VECTOR_KERNELS_H

#define PARTS (CT_CPU_CHAINS / WIDTH) /* registers of a dot's chains */

/* The tile's loops run over constants once these are inlined. */
#define CT_TILE static inline __attribute__((always_inline))

typedef struct tile_rows {
    const unsigned char *w[MAX_W];
    const float *x[TILE_X];
} tile_rows;

CT_TILE vec load_w(const unsigned char *row, size_t i, bool bf16)
{
    return bf16 ? vec_load_bf16((const uint16_t *)(const void *)row + i)
                : vec_load((const float *)(const void *)row + i);
}

CT_TILE void tile_run(vec a[MAX_W][TILE_X][PARTS], const tile_rows *rows, size_t n, size_t n_w,
                      size_t n_x, bool bf16)
{
    for (size_t i = 0; i < n; i += CT_CPU_CHAINS)
        for (size_t h = 0; h < PARTS; h++) {
            vec w[MAX_W];

            for (size_t r = 0; r < n_w; r++)
                w[r] = load_w(rows->w[r], i + h * WIDTH, bf16);
            for (size_t t = 0; t < n_x; t++) {
                vec x = vec_load(rows->x[t] + i + h * WIDTH);

                for (size_t r = 0; r < n_w; r++)
                    a[r][t][h] = vec_fma(w[r], x, a[r][t][h]);
            }
        }
}

/* The columns from `whole` on, padded with zeros to a block. */
CT_TILE void tile_tail(vec a[MAX_W][TILE_X][PARTS], const tile_rows *rows, size_t whole,
                       size_t rest, size_t n_w, size_t n_x, bool bf16)
{
    const size_t elem = bf16 ? sizeof(uint16_t) : sizeof(float);
    _Alignas(64) float w[MAX_W][CT_CPU_CHAINS] = {0};
    _Alignas(64) float x[TILE_X][CT_CPU_CHAINS] = {0};
    tile_rows padded;

    for (size_t r = 0; r < n_w; r++) {
        memcpy(w[r], rows->w[r] + whole * elem, rest * elem);
        padded.w[r] = (const unsigned char *)w[r];
    }
    for (size_t t = 0; t < n_x; t++) {
        memcpy(x[t], rows->x[t] + whole, rest * sizeof(float));
        padded.x[t] = x[t];
    }
    tile_run(a, &padded, CT_CPU_CHAINS, n_w, n_x, bf16);
}

CT_TILE void tile(float *y, size_t ldy, const unsigned char *w, size_t w_bytes, const float *x,
                  size_t ldx, size_t K, size_t n_w, size_t n_x, bool bf16)
{
    const size_t whole = K / CT_CPU_CHAINS * CT_CPU_CHAINS;
    vec a[MAX_W][TILE_X][PARTS];
    tile_rows rows;

    for (size_t r = 0; r < n_w; r++)
        rows.w[r] = w + r * w_bytes;
    for (size_t t = 0; t < n_x; t++)
        rows.x[t] = x + t * ldx;
    for (size_t r = 0; r < n_w; r++)
        for (size_t t = 0; t < n_x; t++)
            for (size_t h = 0; h < PARTS; h++)
                a[r][t][h] = vec_set(0.0f);
    tile_run(a, &rows, whole, n_w, n_x, bf16);
    if (whole < K)
        tile_tail(a, &rows, whole, K - whole, n_w, n_x, bf16);
    for (size_t t = 0; t < n_x; t++)
        for (size_t r = 0; r < n_w; r++)
            y[t * ldy + r] = vec_join(a[r][t]);
}

/* Weight rows in tiles of n_w, then one by one, beside n_x rows of x. */
CT_TILE void strip(float *y, size_t ldy, ct_cpu_rows w, const float *x, size_t ldx, size_t K,
                   size_t n_w, size_t n_x, bool bf16)
{
    const size_t w_bytes = w.ld * (bf16 ? sizeof(uint16_t) : sizeof(float));
    const unsigned char *p = w.p;
    size_t r = 0;

    for (; r + n_w <= w.n; r += n_w)
        tile(y + r, ldy, p + r * w_bytes, w_bytes, x, ldx, K, n_w, n_x, bf16);
    for (; r < w.n; r++)
        tile(y + r, ldy, p + r * w_bytes, w_bytes, x, ldx, K, 1, n_x, bf16);
}

CT_TILE void dot_all(float *y, size_t ldy, ct_cpu_rows w, ct_cpu_rows x, size_t K, bool bf16)
{
    const float *p = x.p;
    size_t t = 0;

    for (; t + TILE_X <= x.n; t += TILE_X)
        strip(y + t * ldy, ldy, w, p + t * x.ld, x.ld, K, TILE_W, TILE_X, bf16);
    for (; t < x.n; t++)
        strip(y + t * ldy, ldy, w, p + t * x.ld, x.ld, K, TALL_W, 1, bf16);
}

static void dot_f32(float *y, size_t ldy, ct_cpu_rows w, ct_cpu_rows x, size_t K)
{
    dot_all(y, ldy, w, x, K, false);
}

static void dot_bf16(float *y, size_t ldy, ct_cpu_rows w, ct_cpu_rows x, size_t K)
{
    dot_all(y, ldy, w, x, K, true);
}

#define MIX_STEP 4 /* registers of outputs that stay while the rows go by */

static void mix(float *acc, const float *p, ct_cpu_rows v, size_t n)
{
    const float *rows = v.p;
    size_t i = 0;

    for (; i + MIX_STEP * WIDTH <= n; i += MIX_STEP * WIDTH) {
        vec a[MIX_STEP];

        for (size_t j = 0; j < MIX_STEP; j++)
            a[j] = vec_load(acc + i + j * WIDTH);
        for (size_t r = 0; r < v.n; r++)
            for (size_t j = 0; j < MIX_STEP; j++)
                a[j] = vec_fma(vec_set(p[r]), vec_load(rows + r * v.ld + i + j * WIDTH), a[j]);
        for (size_t j = 0; j < MIX_STEP; j++)
            vec_store(acc + i + j * WIDTH, a[j]);
    }
    for (size_t r = 0; r < v.n; r++)
        for (size_t k = i; k < n; k++)
            acc[k] = __builtin_fmaf(p[r], rows[r * v.ld + k], acc[k]);
}

static void gelu_mul(float *y, const float *gate, const float *up, size_t n)
{
    ct_vm_gelu_mul(y, gate, up, n);
}

static void exp_minus(float *x, float max, size_t n)
{
    ct_vm_exp_minus(x, max, n);
}

static void softcap(float *x, float cap, size_t n)
{
    ct_vm_softcap(x, cap, n);
}

static void widen(float *y, const void *w, size_t n)
{
    ct_vm_widen(y, w, n);
}

#define CT_VECTOR_KERNELS                                                                          \
    {                                                                                              \
        .dot_f32 = dot_f32, .dot_bf16 = dot_bf16, .mix = mix, .gelu_mul = gelu_mul,                \
        .exp_minus = exp_minus, .softcap = softcap, .widen = widen                                 \
    }

#endif
