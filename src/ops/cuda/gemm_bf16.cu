/* The kernels for up to 64 rows, bound by reading W: see gemm_kernel.cuh. */
#include "ops/cuda/gemm_kernels.h"

#include "ops/cuda/gemm_kernel.cuh"

const void *ct_gemm_kernel_few(ct_gemm_kernel kernel)
{
    switch (kernel) {
    case CT_GEMM_WARP8:
        return (const void *)ct_gemm_kernel_bf16<8, 1, 4, 1, 1, true>;
    case CT_GEMM_WARP16:
        return (const void *)ct_gemm_kernel_bf16<16, 1, 4, 1, 1, true>;
    case CT_GEMM_WARP32:
        return (const void *)ct_gemm_kernel_bf16<32, 1, 4, 1, 1, true>;
    case CT_GEMM_WIDE8:
        return (const void *)ct_gemm_kernel_bf16<8, 2, 2, 1, 1, false>;
    case CT_GEMM_WIDE16:
        return (const void *)ct_gemm_kernel_bf16<16, 2, 2, 1, 1, false>;
    case CT_GEMM_WIDE32:
        return (const void *)ct_gemm_kernel_bf16<32, 2, 2, 1, 1, false>;
    case CT_GEMM_WIDE64:
        return (const void *)ct_gemm_kernel_bf16<64, 2, 2, 1, 1, false>;
    case CT_GEMM_QUAD64:
        return (const void *)ct_gemm_kernel_bf16<64, 1, 2, 4, 1, false>;
    case CT_GEMM_SPLIT64:
        return (const void *)ct_gemm_kernel_bf16<32, 1, 2, 1, 2, false>;
    default:
        return NULL;
    }
}
