/* Storage formats of weights and caches, to and from float.
 * bf16: upper half of a float.  f16: IEEE 754 binary16.  fp8: E4M3 "fn" (bias 7, no infinity, max
 * 448). e2m1: sign, two exponent bits, one mantissa bit (OCP MX specification v1.0). */
#ifndef CT_BASE_NUM_H
#define CT_BASE_NUM_H

#include <math.h>
#include <stdint.h>
#include <string.h>

static inline float ct_bits_f32(uint32_t bits)
{
    float f;

    memcpy(&f, &bits, sizeof f);
    return f;
}

static inline uint32_t ct_f32_bits(float f)
{
    uint32_t bits;

    memcpy(&bits, &f, sizeof bits);
    return bits;
}

static inline float ct_bf16_f32(uint16_t h)
{
    return ct_bits_f32((uint32_t)h << 16);
}

/* Round to nearest, ties to even; NaN stays NaN. */
static inline uint16_t ct_f32_bf16(float f)
{
    uint32_t u = ct_f32_bits(f);

    if ((u & 0x7fffffff) > 0x7f800000)
        return (uint16_t)(u >> 16 | 0x40);
    return (uint16_t)((u + 0x7fff + (u >> 16 & 1)) >> 16);
}

static inline float ct_round_bf16(float f)
{
    return ct_bf16_f32(ct_f32_bf16(f));
}

/* Exact; NaN stays NaN. */
static inline float ct_f16_f32(uint16_t h)
{
    const uint32_t sign = (uint32_t)(h & 0x8000) << 16, a = h & 0x7fff;

    if (a >= 0x7c00) /* infinity, NaN */
        return ct_bits_f32(sign | 0x7f800000 | (a & 0x3ff) << 13);
    if (a < 0x400) /* subnormal, in steps of 2^-24 */
        return ct_bits_f32(sign | ct_f32_bits((float)a * 0x1p-24f));
    return ct_bits_f32(sign | ((a << 13) + ((127 - 15) << 23)));
}

/* Round to nearest, ties to even; what exceeds 65504 becomes infinity; NaN stays NaN. */
static inline uint16_t ct_f32_f16(float f)
{
    const uint32_t u = ct_f32_bits(f), a = u & 0x7fffffff;
    const uint16_t sign = (uint16_t)(u >> 16 & 0x8000);

    if (a > 0x7f800000)
        return sign | 0x7e00;
    if (a >= 0x477ff000) /* 65520, half a step above the largest */
        return sign | 0x7c00;
    if (a < 0x38800000) /* 2^-14: subnormal, in steps of 2^-24 */
        return sign | (uint16_t)lrintf(ct_bits_f32(a) * 0x1p24f);
    return sign | (uint16_t)(((a + 0xfff + (a >> 13 & 1)) >> 13) - ((127 - 15) << 10));
}

static inline float ct_e4m3_f32(uint8_t b)
{
    int exponent = b >> 3 & 15, mantissa = b & 7;
    float sign = b & 0x80 ? -1.0f : 1.0f;

    if (exponent == 15 && mantissa == 7)
        return NAN;
    if (exponent == 0)
        return sign * ldexpf((float)mantissa, -9);
    return sign * ldexpf((float)(8 + mantissa), exponent - 10);
}

/* Round to nearest, ties to even; what exceeds 448 saturates; NaN stays NaN. */
static inline uint8_t ct_f32_e4m3(float f)
{
    const uint32_t u = ct_f32_bits(f), a = u & 0x7fffffff;
    const uint8_t sign = (uint8_t)(u >> 24 & 0x80);

    if (a > 0x7f800000)
        return sign | 0x7f;
    if (a >= 0x43e00000) /* 448 */
        return sign | 0x7e;
    if (a < 0x3c800000) /* 2^-6: subnormal, in steps of 2^-9 */
        return sign | (uint8_t)lrintf(ct_bits_f32(a) * 512.0f);
    /* Seven bits of exponent and mantissa, rebiased from 127 to 7. */
    return sign | (uint8_t)(((a + 0x7ffff + (a >> 20 & 1)) >> 20) - (120 << 3));
}

/* code: the low four bits; the rest is ignored. */
static inline float ct_e2m1_f32(uint8_t code)
{
    static const float magnitude[8] = {0.0f, 0.5f, 1.0f, 1.5f, 2.0f, 3.0f, 4.0f, 6.0f};

    return code & 8 ? -magnitude[code & 7] : magnitude[code & 7];
}

#endif
