#include "ops/ref/internal.h"

#include <assert.h>
#include <math.h>
#include <string.h>

/* Partial sums.  Their number is part of the definition: it fixes the order of every
 * sum, and it lets a compiler keep them in vector registers without reordering. */
#define LANES 8

double ct_ref_dot(const double *a, const float *b, size_t n)
{
    double sum[LANES] = {0};
    size_t i = 0;

    for (; i + LANES <= n; i += LANES)
        for (unsigned j = 0; j < LANES; j++)
            sum[j] += a[i + j] * (double)b[i + j];
    for (unsigned j = 0; i + j < n; j++)
        sum[j] += a[i + j] * (double)b[i + j];
    return ((sum[0] + sum[4]) + (sum[2] + sum[6])) + ((sum[1] + sum[5]) + (sum[3] + sum[7]));
}

void ct_ref_mix(double *acc, const double *p, const float *x, size_t stride, size_t n_rows,
                size_t n)
{
    size_t i = 0;

    for (; i + LANES <= n; i += LANES) {
        double sum[LANES];

        for (unsigned j = 0; j < LANES; j++)
            sum[j] = acc[i + j];
        for (size_t r = 0; r < n_rows; r++)
            for (unsigned j = 0; j < LANES; j++)
                sum[j] += p[r] * (double)x[r * stride + i + j];
        for (unsigned j = 0; j < LANES; j++)
            acc[i + j] = sum[j];
    }
    for (; i < n; i++)
        for (size_t r = 0; r < n_rows; r++)
            acc[i] += p[r] * (double)x[r * stride + i];
}

double ct_ref_gelu(double z)
{
    const double sqrt_2_over_pi = 0.79788456080286535588;

    return 0.5 * z * (1.0 + tanh(sqrt_2_over_pi * (z + 0.044715 * z * z * z)));
}

void ct_ref_load(const ct_ref *r, float *out, const void *x, ct_elem elem, size_t first, size_t n)
{
    assert(elem != CT_ELEM_U32);
    if (elem == CT_ELEM_BF16)
        for (size_t i = 0; i < n; i++)
            out[i] = ct_ref_bf16(x, first + i);
    else if (elem == CT_ELEM_FP8)
        for (size_t i = 0; i < n; i++)
            out[i] = r->e4m3[((const uint8_t *)x)[first + i]];
    else
        memcpy(out, (const float *)x + first, n * sizeof *out);
}

void ct_ref_store(void *x, ct_elem elem, size_t first, const float *in, size_t n)
{
    assert(elem != CT_ELEM_U32);
    if (elem == CT_ELEM_BF16)
        for (size_t i = 0; i < n; i++)
            ((uint16_t *)x)[first + i] = ct_f32_bf16(in[i]);
    else if (elem == CT_ELEM_FP8)
        for (size_t i = 0; i < n; i++)
            ((uint8_t *)x)[first + i] = ct_f32_e4m3(in[i]);
    else
        memcpy((float *)x + first, in, n * sizeof *in);
}
