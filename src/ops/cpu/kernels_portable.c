/* The definition of the kernels' sums in plain C: what the other levels must equal. */
#include "ops/cpu/kernels.h"
#include "ops/cpu/vecmath.h"

#include <math.h>

static float join(float *s)
{
    for (size_t half = CT_CPU_CHAINS / 2; half; half /= 2)
        for (size_t j = 0; j < half; j++)
            s[j] += s[j + half];
    return s[0];
}

static float dot(const float *w, const float *x, size_t K)
{
    float s[CT_CPU_CHAINS] = {0};
    size_t i = 0;

    for (; i + CT_CPU_CHAINS <= K; i += CT_CPU_CHAINS)
        for (size_t j = 0; j < CT_CPU_CHAINS; j++)
            s[j] = fmaf(w[i + j], x[i + j], s[j]);
    for (size_t j = 0; i < K && j < CT_CPU_CHAINS; j++)
        s[j] = i + j < K ? fmaf(w[i + j], x[i + j], s[j]) : fmaf(0.0f, 0.0f, s[j]);
    return join(s);
}

static void dot_f32(float *y, size_t ldy, ct_cpu_rows w, ct_cpu_rows x, size_t K)
{
    const float *wp = w.p, *xp = x.p;

    for (size_t t = 0; t < x.n; t++)
        for (size_t r = 0; r < w.n; r++)
            y[t * ldy + r] = dot(wp + r * w.ld, xp + t * x.ld, K);
}

static float dot_one_bf16(const unsigned char *w, const float *x, size_t K)
{
    float s[CT_CPU_CHAINS] = {0}, wide[CT_CPU_CHAINS], end[CT_CPU_CHAINS] = {0};

    for (size_t i = 0; i < K; i += CT_CPU_CHAINS) {
        const size_t n = K - i < CT_CPU_CHAINS ? K - i : CT_CPU_CHAINS;
        const float *at = x + i;

        memset(wide, 0, sizeof wide);
        ct_vm_widen(wide, w + 2 * i, n);
        if (n < CT_CPU_CHAINS) {
            memcpy(end, at, n * sizeof *end);
            at = end;
        }
        for (size_t j = 0; j < CT_CPU_CHAINS; j++)
            s[j] = fmaf(wide[j], at[j], s[j]);
    }
    return join(s);
}

static void dot_bf16(float *y, size_t ldy, ct_cpu_rows w, ct_cpu_rows x, size_t K)
{
    const unsigned char *wp = w.p;
    const float *xp = x.p;

    for (size_t t = 0; t < x.n; t++)
        for (size_t r = 0; r < w.n; r++)
            y[t * ldy + r] = dot_one_bf16(wp + 2 * r * w.ld, xp + t * x.ld, K);
}

static void mix(float *acc, const float *p, ct_cpu_rows v, size_t n)
{
    const float *vp = v.p;

    for (size_t r = 0; r < v.n; r++)
        for (size_t i = 0; i < n; i++)
            acc[i] = fmaf(p[r], vp[r * v.ld + i], acc[i]);
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

const ct_cpu_kernels ct_cpu_kernels_portable = {
    .dot_f32 = dot_f32,
    .dot_bf16 = dot_bf16,
    .mix = mix,
    .gelu_mul = gelu_mul,
    .exp_minus = exp_minus,
    .softcap = softcap,
    .widen = widen,
};
