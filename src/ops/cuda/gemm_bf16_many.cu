/* The kernels for more than 64 rows, bound by the tensor cores and by what the L2 can
 * deliver: see gemm_kernel.cuh. */
#include "ops/cuda/gemm_kernels.h"

#include "ops/cuda/gemm_kernel.cuh"

const void *ct_gemm_kernel_many(ct_gemm_kernel kernel)
{
    switch (kernel) {
    case CT_GEMM_MID128:
        return (const void *)ct_gemm_kernel_bf16<128, 1, 2, 1, 1, false>;
    case CT_GEMM_PAIR128:
        return (const void *)ct_gemm_kernel_bf16<128, 2, 1, 2, 1, false>;
    case CT_GEMM_QUAD128:
        return (const void *)ct_gemm_kernel_bf16<128, 2, 1, 2, 2, false>;
    case CT_GEMM_PAIR176:
        return (const void *)ct_gemm_kernel_bf16<176, 2, 1, 2, 1, false>;
    case CT_GEMM_PAIR232:
        return (const void *)ct_gemm_kernel_bf16<232, 2, 1, 2, 1, false>;
    case CT_GEMM_PAIR256:
        return (const void *)ct_gemm_kernel_bf16<256, 2, 1, 2, 1, false>;
    case CT_GEMM_QUAD256:
        return (const void *)ct_gemm_kernel_bf16<256, 2, 1, 2, 2, false>;
    default:
        return NULL;
    }
}
