/* Sum of exp over a vocabulary, the only transcendental work that every id costs. */
#include "engine/sampler_impl.h"

#include "engine/lanes.h"

#define LOWEST -87.0f /* exp of it, 1.6e-38, is still a normal float */
#define BLOCK  64

/* Cody and Waite: y = k ln 2 + r with |r| <= ln 2 / 2, exp(y) = 2^k exp(r), the latter by
 * its Taylor polynomial of degree 7 (remainder r^8 / 8! < 6e-9).  y is clamped to
 * [LOWEST, 0]; NaN goes to LOWEST, which no sum that holds a 1 can feel. */
static ct_f4 exp4(ct_f4 y)
{
    const ct_f4 shift = ct_f4_all(0x1.8p23f); /* adding it rounds to an integer, in the low bits */
    ct_f4 t, k, r, p;

    y = ct_f4_select(y > LOWEST, y, ct_f4_all(LOWEST));
    y = ct_f4_select(y < 0, y, ct_f4_all(0));
    t = y * 0x1.715476p0f + shift;
    k = t - shift;
    r = (y - k * 0x1.62e4p-1f) - k * 0x1.7f7d1cp-20f;
    p = r * (1.0f / 5040) + 1.0f / 720;
    p = p * r + 1.0f / 120;
    p = p * r + 1.0f / 24;
    p = p * r + 1.0f / 6;
    p = p * r + 0.5f;
    p = p * r + 1.0f;
    p = p * r + 1.0f;
    return p * (ct_f4)(((ct_u4)t + 127) << 23);
}

static double sum_of(ct_f4 v)
{
    return ((double)v[0] + v[1]) + ((double)v[2] + v[3]);
}

/* Blocks are summed in float, 16 terms in a chain, and blocks in double: the relative error
 * stays below 2e-6. */
double ct_exp_sum(const float *row, uint32_t vocab, float max, double temperature)
{
    const float scale = (float)(1 / temperature < FLT_MAX ? 1 / temperature : FLT_MAX);
    float tail[BLOCK];
    double sum = 0;

    for (uint32_t i = 0; i < vocab; i += BLOCK) {
        const float *l = row + i;
        ct_f4 part = ct_f4_all(0);

        if (vocab - i < BLOCK) {
            for (uint32_t j = 0; j < BLOCK; j++)
                tail[j] = j < vocab - i ? l[j] : -INFINITY;
            l = tail;
        }
        for (uint32_t j = 0; j < BLOCK; j += 4)
            part += exp4((ct_f4_load(l + j) - max) * scale);
        sum += sum_of(part);
    }
    return sum;
}
