#include "cublaslt.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

struct yardstick {
    cublasLtHandle_t handle;
    cublasLtMatmulDesc_t desc;
    cublasLtMatrixLayout_t w, x, y;
    cublasLtMatmulPreference_t preference;
    cublasLtMatmulHeuristicResult_t found[YARDSTICK_TRIES];
    void *workspace;
    size_t workspace_bytes;
    decltype(&cublasLtCreate) create;
    decltype(&cublasLtMatmulDescCreate) desc_create;
    decltype(&cublasLtMatmulDescSetAttribute) desc_set;
    decltype(&cublasLtMatrixLayoutCreate) layout_create;
    decltype(&cublasLtMatrixLayoutDestroy) layout_destroy;
    decltype(&cublasLtMatmulPreferenceCreate) preference_create;
    decltype(&cublasLtMatmulPreferenceSetAttribute) preference_set;
    decltype(&cublasLtMatmulAlgoGetHeuristic) heuristic;
    decltype(&cublasLtMatmul) matmul;
};

#define FIND(field, name) y->field = (decltype(y->field))dlsym(lib, name)

static bool find_all(yardstick *y, void *lib)
{
    FIND(create, "cublasLtCreate");
    FIND(desc_create, "cublasLtMatmulDescCreate");
    FIND(desc_set, "cublasLtMatmulDescSetAttribute");
    FIND(layout_create, "cublasLtMatrixLayoutCreate");
    FIND(layout_destroy, "cublasLtMatrixLayoutDestroy");
    FIND(preference_create, "cublasLtMatmulPreferenceCreate");
    FIND(preference_set, "cublasLtMatmulPreferenceSetAttribute");
    FIND(heuristic, "cublasLtMatmulAlgoGetHeuristic");
    FIND(matmul, "cublasLtMatmul");
    return y->create && y->desc_create && y->desc_set && y->layout_create && y->layout_destroy &&
           y->preference_create && y->preference_set && y->heuristic && y->matmul;
}

static bool start(yardstick *y)
{
    const cublasOperation_t transposed = CUBLAS_OP_T;

    y->workspace_bytes = 64 << 20;
    return y->create(&y->handle) == 0 &&
           cudaMalloc(&y->workspace, y->workspace_bytes) == cudaSuccess &&
           y->desc_create(&y->desc, CUBLAS_COMPUTE_32F, CUDA_R_32F) == 0 &&
           y->desc_set(y->desc, CUBLASLT_MATMUL_DESC_TRANSA, &transposed, sizeof transposed) == 0 &&
           y->preference_create(&y->preference) == 0 &&
           y->preference_set(y->preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
                             &y->workspace_bytes, sizeof y->workspace_bytes) == 0;
}

yardstick *yardstick_open(void)
{
    void *lib = dlopen("libcublasLt.so.13", RTLD_NOW | RTLD_LOCAL);
    yardstick *y;

    if (!lib) {
        fprintf(stderr, "no yardstick: %s\n", dlerror());
        return NULL;
    }
    y = (yardstick *)calloc(1, sizeof *y);
    if (!y || !find_all(y, lib) || !start(y)) {
        fprintf(stderr, "no yardstick: libcublasLt.so.13 did not start\n");
        free(y);
        return NULL;
    }
    return y;
}

int yardstick_shape(yardstick *y, int n_out, int cols, int rows)
{
    int n = 0;

    if (y->w) {
        y->layout_destroy(y->w);
        y->layout_destroy(y->x);
        y->layout_destroy(y->y);
    }
    y->layout_create(&y->w, CUDA_R_16BF, cols, n_out, cols);
    y->layout_create(&y->x, CUDA_R_16BF, cols, rows, cols);
    y->layout_create(&y->y, CUDA_R_16BF, n_out, rows, n_out);
    y->heuristic(y->handle, y->desc, y->w, y->x, y->y, y->y, y->preference, YARDSTICK_TRIES,
                 y->found, &n);
    return n;
}

int yardstick_run(yardstick *y, int algorithm, void *out, const void *w, const void *x,
                  cudaStream_t stream)
{
    const float one = 1, zero = 0;

    return y->matmul(y->handle, y->desc, &one, w, y->w, x, y->x, &zero, out, y->y, out, y->y,
                     &y->found[algorithm].algo, y->workspace, y->workspace_bytes, stream);
}
