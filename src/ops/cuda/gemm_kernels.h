/* Between the files of the bf16 product: kernels by name, the generic path, and a launch
 * with a plan of the caller's choice, which measurements use. */
#ifndef CT_OPS_CUDA_GEMM_KERNELS_H
#define CT_OPS_CUDA_GEMM_KERNELS_H

#include "ops/cuda/gemm.h"
#include "ops/cuda/gemm_plan.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The __global__ function, or NULL for a kernel of the other file. */
const void *ct_gemm_kernel_few(ct_gemm_kernel kernel);
const void *ct_gemm_kernel_many(ct_gemm_kernel kernel);

/* The mma.sync path.  prepare: once a device, before the first launch. */
ct_status ct_gemm_mma_prepare(ct_error *err);
ct_status ct_gemm_mma_run(const ct_gemm_matrix *w, const ct_gemm_call *call,
                          struct CUstream_st *stream, ct_error *err);

const ct_gemm_device *ct_gemm_device_get(const ct_gemm *g);
const ct_gemm_shape *ct_gemm_shape_get(const ct_gemm_weight *w);
ct_status ct_gemm_run_plan(ct_gemm *g, const ct_gemm_weight *w, const ct_gemm_plan *plan,
                           const ct_gemm_call *call, struct CUstream_st *stream, ct_error *err);

#ifdef __cplusplus
}
#endif

#endif
