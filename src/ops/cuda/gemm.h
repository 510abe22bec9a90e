/* Products of a bf16 weight with any number of bf16 rows on one GPU:
 *
 *     Y[m, o] = sum_k X[m, k] W[o, k]
 *
 * Every output is one chain of fp32 additions over k, ascending, rounded once where it
 * is stored.  A row's bits depend on that row, the weight and the epilogue only: not on
 * the number of rows, their place, the kernel that the plan picks, or the path.
 *
 * Paths: wgmma with the copy engine (compute capability 9.0), and mma.sync with cp.async
 * (8.0 and later).  On one device both give the same bits.
 *
 * A ct_gemm belongs to one stream at a time: its workspace carries accumulators between
 * the blocks of a launch.  Calls on one ct_gemm come from one thread; weights are
 * read-only once bound and may be shared by every ct_gemm of the same device. */
#ifndef CT_OPS_CUDA_GEMM_H
#define CT_OPS_CUDA_GEMM_H

#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus /* nvcc compiles C++ */
extern "C" {
#endif

struct CUstream_st; /* a cudaStream_t points to one */

typedef struct ct_gemm ct_gemm;
typedef struct ct_gemm_weight ct_gemm_weight;

enum {
    CT_GEMM_MAX_ROWS = 1 << 20,  /* rows of X in one call */
    CT_GEMM_MAX_COLS = 1 << 20,  /* columns of W */
    CT_GEMM_MAX_WEIGHT = 1 << 21 /* rows of W */
};

typedef enum ct_gemm_path {
    CT_GEMM_AUTO,  /* the fastest that the device has */
    CT_GEMM_WGMMA, /* compute capability 9.0 */
    CT_GEMM_MMA,   /* 8.0 and later */
} ct_gemm_path;

typedef enum ct_gemm_kind {
    CT_GEMM_PLAIN,   /* Y has as many columns as W has rows */
    CT_GEMM_GATE_UP, /* W holds gate above up, I rows each; Y[m, i] =
                      * round(round(gelu_tanh(round(gate_i))) * round(up_i)), the roundings
                      * of the separate operations */
} ct_gemm_kind;

typedef enum ct_gemm_elem {
    CT_GEMM_BF16, /* round to nearest even */
    CT_GEMM_F32,  /* the accumulator itself; PLAIN only */
} ct_gemm_elem;

/* A weight on the device, row-major without gaps.  Borrowed for the life of the binding. */
typedef struct ct_gemm_matrix {
    const char *name;    /* for messages */
    const void *data;    /* bf16, 16-byte aligned */
    uint32_t rows, cols; /* cols a multiple of 8; rows of GATE_UP = 2 I, I a multiple of 8 */
    ct_gemm_kind kind;
} ct_gemm_matrix;

/* Addresses are aligned to 16 bytes, and so are rows: ldx, and ldy for bf16, are multiples
 * of 8 elements, ldy for f32 of 4. */
typedef struct ct_gemm_call {
    void *y;       /* [rows, ldy] */
    const void *x; /* [rows, ldx] bf16 */
    size_t ldy, ldx;
    uint32_t rows; /* 0 is allowed and launches nothing */
    ct_gemm_elem elem;
    /* The launch may begin before the kernel ahead of it in the stream has ended
     * (programmatic dependent launch): it reads W early and waits before it touches x or
     * y.  So nothing still running may be writing W.  Without effect where it would not
     * pay. */
    bool overlap;
} ct_gemm_call;

/* Device memory for ct_gemm_create to work in, about 17 MB; 0 where the device cannot be
 * asked. */
size_t ct_gemm_workspace_bytes(int device);

/* workspace: device memory, 256-byte aligned, ct_gemm_workspace_bytes of it, borrowed.
 * Makes the device the calling thread's and synchronises once.  CT_EUNSUPPORTED for a path
 * that the device does not have. */
ct_status ct_gemm_create(ct_gemm **out, int device, ct_gemm_path path, void *workspace,
                         ct_error *err);
void ct_gemm_destroy(ct_gemm *g);

/* Makes the descriptors of a weight, once; reads none of it. */
ct_status ct_gemm_bind(ct_gemm_weight **out, const ct_gemm *g, const ct_gemm_matrix *w,
                       ct_error *err);
void ct_gemm_weight_destroy(ct_gemm_weight *w);

/* Launches one kernel.  Allocates nothing, waits for nothing, reads nothing back: a stream
 * that is being captured may be given.  x and y must not overlap. */
ct_status ct_gemm_run(ct_gemm *g, const ct_gemm_weight *w, const ct_gemm_call *call,
                      struct CUstream_st *stream, ct_error *err);

#ifdef __cplusplus
}
#endif

#endif
