/* cuBLASLt as a yardstick: found at run time, so that building needs its header only and
 * the engine never depends on it. */
#ifndef CT_BENCH_CUBLASLT_H
#define CT_BENCH_CUBLASLT_H

#include <cublasLt.h>
#include <cuda_runtime.h>

enum { YARDSTICK_TRIES = 5 }; /* heuristics offered */

typedef struct yardstick yardstick;

/* NULL, with a message, where the library is not installed. */
yardstick *yardstick_open(void);

/* Prepares Y = X W^T in bf16 with fp32 accumulation; returns how many algorithms there are. */
int yardstick_shape(yardstick *y, int n_out, int cols, int rows);
/* 0 when the launch was accepted. */
int yardstick_run(yardstick *y, int algorithm, void *out, const void *w, const void *x,
                  cudaStream_t stream);

#endif
