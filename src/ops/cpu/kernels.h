/* The loops that carry the CPU backend's time, one table an instruction set.
 *
 * A dot product of length K runs in 16 chains: chain j takes the elements i with
 * i mod 16 = j, ascending, each step one fused multiply-add; a tail is padded with zeros.
 * The chains join as a tree: j with j + 8, then j + 4, j + 2, j + 1.  The other sums are
 * one chain an output, ascending.  All levels compute exactly that, so they agree in
 * every bit, and results depend on no tile, batch or thread. */
#ifndef CT_OPS_CPU_KERNELS_H
#define CT_OPS_CPU_KERNELS_H

#include "ops/cpu/cpu.h"

#define CT_CPU_CHAINS 16

/* A matrix of R rows, ld elements apart. */
typedef struct ct_cpu_rows {
    const void *p; /* float or bf16, as the kernel says */
    size_t ld, n;
} ct_cpu_rows;

typedef struct ct_cpu_kernels {
    /* y[t * ldy + r] = dot(w row r, x row t); x is float. */
    void (*dot_f32)(float *y, size_t ldy, ct_cpu_rows w, ct_cpu_rows x, size_t K);
    void (*dot_bf16)(float *y, size_t ldy, ct_cpu_rows w, ct_cpu_rows x, size_t K);
    /* acc[i] += sum over rows r of p[r] * v[r][i], i < n, ascending r. */
    void (*mix)(float *acc, const float *p, ct_cpu_rows v, size_t n);
    /* y = gelu(gate) * up; y may be gate. */
    void (*gelu_mul)(float *y, const float *gate, const float *up, size_t n);
    /* x = exp(x - max). */
    void (*exp_minus)(float *x, float max, size_t n);
    /* x = cap * tanh(x / cap). */
    void (*softcap)(float *x, float cap, size_t n);
    /* y[i] = bf16 w[i]; exact. */
    void (*widen)(float *y, const void *w, size_t n);
} ct_cpu_kernels;

/* By level; NULL where the build has none. */
const ct_cpu_kernels *ct_cpu_kernels_of(ct_cpu_level l);

extern const ct_cpu_kernels ct_cpu_kernels_portable;
#if defined(__x86_64__)
extern const ct_cpu_kernels ct_cpu_kernels_avx2, ct_cpu_kernels_avx512;
#endif

#endif
