/* The gated activation of the feed-forward block, with the reference's roundings: one
 * definition for the fused product and for the separate operation, so that both give the
 * same bits. */
#ifndef CT_OPS_CUDA_GELU_CUH
#define CT_OPS_CUDA_GELU_CUH

#include "ops/cuda/ptx.cuh"

#include <cuda_bf16.h>

/* gelu_pytorch_tanh: z/2 (1 + tanh(u)), u = sqrt(2/pi) (z + 0.044715 z^3), written as
 * z / (1 + exp(-2u)): no cancellation for negative z, and two units of the last place of
 * f32 from the approximate exponential and reciprocal, far below the rounding that
 * follows.  Infinite exp gives -0. */
static __device__ __forceinline__ float ct_gelu_tanh(float z)
{
    const float c = -2.0f * 0.7978845608028654f * 1.4426950408889634f; /* to base 2 */
    /* Named roundings: contraction must not depend on what the compiler sees around. */
    const float u = __fmaf_rn(__fmul_rn(0.044715f, z), __fmul_rn(z, z), z);

    return __fmul_rn(z, ptx_rcp(__fadd_rn(1.0f, ptx_ex2(__fmul_rn(c, u)))));
}

/* round(round(gelu(round(gate))) * round(up)), the last rounding left to the caller's
 * store. */
static __device__ __forceinline__ float ct_gelu_gate(float gate, float up)
{
    const float g = __bfloat162float(__float2bfloat16_rn(gate));
    const float u = __bfloat162float(__float2bfloat16_rn(up));

    return __fmul_rn(__bfloat162float(__float2bfloat16_rn(ct_gelu_tanh(g))), u);
}

#endif
