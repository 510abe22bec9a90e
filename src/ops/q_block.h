/* Blocks of GGUF's 4- and 8-bit weights, as its files hold them (ggml's q4_0 and q8_0). */
#ifndef CT_OPS_Q_BLOCK_H
#define CT_OPS_Q_BLOCK_H

#include "base/num.h"
#include "ops/ops.h"

static inline float ct_q_scale(const uint8_t *block)
{
    return ct_f16_f32((uint16_t)(block[0] | block[1] << 8));
}

/* out[i] = scale * (nibble - 8): the product is exact in f32. */
static inline void ct_q4_0_decode(float *out, const uint8_t *block)
{
    const float scale = ct_q_scale(block);

    for (unsigned i = 0; i < CT_Q_BLOCK / 2; i++) {
        out[i] = scale * (float)((block[2 + i] & 15) - 8);
        out[i + CT_Q_BLOCK / 2] = scale * (float)((block[2 + i] >> 4) - 8);
    }
}

/* out[i] = scale * byte: exact too. */
static inline void ct_q8_0_decode(float *out, const uint8_t *block)
{
    const float scale = ct_q_scale(block);

    for (unsigned i = 0; i < CT_Q_BLOCK; i++)
        out[i] = scale * (float)(int8_t)block[2 + i];
}

static inline size_t ct_q_block_bytes(ct_weight_type type)
{
    return type == CT_WEIGHT_Q4_0 ? CT_Q4_0_BYTES : CT_Q8_0_BYTES;
}

static inline void ct_q_decode(float *out, ct_weight_type type, const uint8_t *block)
{
    if (type == CT_WEIGHT_Q4_0)
        ct_q4_0_decode(out, block);
    else
        ct_q8_0_decode(out, block);
}

/* The first block of a row of a Q4_0 or Q8_0 matrix. */
static inline const uint8_t *ct_q_row(const ct_weight *w, size_t row)
{
    return (const uint8_t *)w->data + row * (w->cols / CT_Q_BLOCK) * ct_q_block_bytes(w->type);
}

#endif
