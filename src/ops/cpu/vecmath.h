/* Elementwise functions as straight-line f32 code that compilers turn into vectors: no
 * branches, no library calls.  Built without contraction at every level, so the bits are
 * the same whatever the width. */
#ifndef CT_OPS_CPU_VECMATH_H
#define CT_OPS_CPU_VECMATH_H

#include <stdint.h>
#include <string.h>

static inline float ct_vm_of_bits(uint32_t u)
{
    float f;

    memcpy(&f, &u, sizeof f);
    return f;
}

static inline uint32_t ct_vm_bits(float f)
{
    uint32_t u;

    memcpy(&u, &f, sizeof u);
    return u;
}

/* e^x with a relative error below 1.1e-7 for x in [-87, 88]; clamped outside.  Reduction by ln 2 in
 * two parts (Cody and Waite), then the Taylor polynomial of degree 7 on |r| <= ln(2)/2, whose
 * remainder is below 2^-27. */
static inline float ct_vm_exp(float x)
{
    /* 1.5 * 2^23: adding it rounds to an integer, which then stands in the low bits. */
    const float to_integer = 12582912.0f;
    float shifted, n, r, p;

    x = x < -87.0f ? -87.0f : x;
    x = x > 88.0f ? 88.0f : x;
    shifted = x * 1.44269504f + to_integer;
    n = shifted - to_integer;
    r = x - n * 0.693359375f;
    r = r + n * 2.12194440e-4f;
    p = 1.0f / 5040.0f;
    p = p * r + 1.0f / 720.0f;
    p = p * r + 1.0f / 120.0f;
    p = p * r + 1.0f / 24.0f;
    p = p * r + 1.0f / 6.0f;
    p = p * r + 0.5f;
    p = p * r + 1.0f;
    p = p * r + 1.0f;
    return p * ct_vm_of_bits((ct_vm_bits(shifted) - ct_vm_bits(to_integer) + 127) << 23);
}

/* tanh with a relative error below 5e-7: the series near zero, where the quotient would
 * cancel. */
static inline float ct_vm_tanh(float y)
{
    float s = y * y;
    float series =
        y * (1.0f + s * (-0.333333333f +
                         s * (0.133333333f +
                              s * (-0.0539682540f + s * (0.0218694885f + s * -0.00886323553f)))));
    float quotient = 1.0f - 2.0f / (ct_vm_exp(2.0f * y) + 1.0f);

    return s < 0.09f ? series : quotient;
}

/* gelu_tanh(z) = z / (1 + e^(-2u)), u = sqrt(2/pi) (z + 0.044715 z^3); absolute error
 * below 6e-7 for |z| < 12, and relative below 1e-6 where z is positive. */
static inline float ct_vm_gelu(float z)
{
    float u = 0.797884561f * (z + 0.044715f * z * z * z);

    return z / (1.0f + ct_vm_exp(-2.0f * u));
}

static inline void ct_vm_gelu_mul(float *y, const float *gate, const float *up, size_t n)
{
    for (size_t i = 0; i < n; i++)
        y[i] = ct_vm_gelu(gate[i]) * up[i];
}

static inline void ct_vm_exp_minus(float *x, float max, size_t n)
{
    for (size_t i = 0; i < n; i++)
        x[i] = ct_vm_exp(x[i] - max);
}

static inline void ct_vm_softcap(float *x, float cap, size_t n)
{
    for (size_t i = 0; i < n; i++)
        x[i] = cap * ct_vm_tanh(x[i] / cap);
}

static inline void ct_vm_widen(float *restrict y, const void *w, size_t n)
{
    const unsigned char *restrict p = w;

    for (size_t i = 0; i < n; i++) {
        uint16_t h;

        memcpy(&h, p + i * sizeof h, sizeof h);
        y[i] = ct_vm_of_bits((uint32_t)h << 16);
    }
}

#endif
