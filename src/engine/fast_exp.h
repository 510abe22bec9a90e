/* exp for y <= 0, without branches, so that a loop over a vocabulary becomes vector
 * instructions.  Relative error below 2e-12; the same bits on every machine, because every
 * operation is a rounded IEEE one and nothing is contracted. */
#ifndef CT_ENGINE_FAST_EXP_H
#define CT_ENGINE_FAST_EXP_H

#include <stdint.h>
#include <string.h>

/* Cody and Waite: y = k ln 2 + r with |r| <= ln 2 / 2, exp(y) = 2^k exp(r), the latter by
 * its Taylor polynomial of degree 10 (remainder r^11 / 11! < 3e-13).  NaN and y below -708,
 * where 2^k would be subnormal, give 0. */
static inline double ct_fast_exp(double y)
{
    const double shift = 0x1.8p52; /* adding it rounds to an integer, in the low bits */
    const double ln2_hi = 0x1.62e42fefa0000p-1, ln2_lo = 0x1.cf79abc9e3b3ap-40;
    double in = y > -708 ? y : 0;
    double t = in * 0x1.71547652b82fep0 + shift;
    double k = t - shift;
    double r = (in - k * ln2_hi) - k * ln2_lo;
    double p = 1.0 / 3628800, scale;
    uint64_t bits;

    p = p * r + 1.0 / 362880;
    p = p * r + 1.0 / 40320;
    p = p * r + 1.0 / 5040;
    p = p * r + 1.0 / 720;
    p = p * r + 1.0 / 120;
    p = p * r + 1.0 / 24;
    p = p * r + 1.0 / 6;
    p = p * r + 1.0 / 2;
    p = p * r + 1.0;
    p = p * r + 1.0;
    memcpy(&bits, &t, sizeof bits);
    bits = (bits + 1023) << 52;
    memcpy(&scale, &bits, sizeof scale);
    return y > -708 ? p * scale : 0;
}

#endif
