/* bf16 products by mma.sync and cp.async, for sm_80 and later.
 *
 * The chains of gemm_kernel.cuh, k16 steps from k = 0 upwards in one fp32 accumulator, so
 * the same bits where both run (an H200 test compares them).  Plain on purpose: it is the
 * path of GPUs that the tuned family does not know.
 *
 * A block computes TW rows of W by TX rows of X.  Stages of 64 k lie in shared memory as
 * rows of 128 bytes whose 16-byte chunk c sits at c ^ (row % 8): neither the copies nor
 * ldmatrix meet a bank conflict.
 *
 *            TW x TX     threads  stages  shared bytes
 *   few       64 x 16       64      4        40,960
 *   many     128 x 128     256      3        98,304 (sm_86 has 101,376) */
#include "ops/cuda/gemm_kernels.h"

#include "ops/cuda/gemm_store.cuh"
#include "ops/cuda/ptx.cuh"

#include <cuda_runtime.h>

typedef struct mma_args {
    ct_gemm_output out;
    const uint8_t *w, *x;
    size_t w_bytes, x_bytes; /* of a row */
    int rows, cols;          /* of W */
} mma_args;

/* Warps of MT x NT fragments (16 x 8), MW along W and NW along X. */
template <int MT, int NT, int MW, int NW, int STAGES> struct mma_tile {
    static const int w_rows = 16 * MT * MW, x_rows = 8 * NT * NW;
    static const int threads = 32 * MW * NW;
    static const int stage_bytes = (w_rows + x_rows) * 128;
    static const int stages = STAGES;
    static const int bytes = STAGES * stage_bytes;
};
typedef mma_tile<2, 2, 2, 1, 4> tile_few;
typedef mma_tile<4, 4, 2, 4, 3> tile_many;

/* Row i of a tile of W: with gate and up, groups of eight of each in turn. */
static __device__ __forceinline__ int weight_row(const mma_args *a, int row0, int i)
{
    if (a->out.epilogue != CT_GEMM_STORE_GATE_UP)
        return row0 + i;
    return i / 8 % 2 * (a->rows / 2) + row0 / 2 + i / 16 * 8 + i % 8;
}

/* Whether that row exists. */
static __device__ __forceinline__ bool weight_has(const mma_args *a, int row0, int i)
{
    return row0 + (a->out.epilogue == CT_GEMM_STORE_GATE_UP ? i / 16 * 16 : i) < a->rows;
}

/* Starts the copy of atom kb of the tile; what lies outside becomes zero. */
template <class T>
static __device__ __forceinline__ void load_stage(const mma_args *a, uint32_t at, int row0, int x0,
                                                  int kb)
{
    const int chunk = threadIdx.x % 8, k = kb * 64 + chunk * 8;

    for (int i = threadIdx.x / 8; i < T::w_rows + T::x_rows; i += T::threads / 8) {
        const bool is_x = i >= T::w_rows;
        const int m = x0 + i - T::w_rows;
        const bool has = k < a->cols && (is_x ? m < a->out.m : weight_has(a, row0, i));
        const uint8_t *row = is_x ? a->x + (size_t)m * a->x_bytes
                                  : a->w + (size_t)weight_row(a, row0, i) * a->w_bytes;

        ptx_cp_async16(at + i * 128 + ((chunk ^ (i & 7)) << 4), has ? row + k * 2 : a->x,
                       has ? 16 : 0);
    }
}

/* One atom: four k16 steps. */
template <int MT, int NT>
static __device__ __forceinline__ void compute_stage(float d[MT][NT * 4], uint32_t w, uint32_t x)
{
    const int lane = threadIdx.x % 32;

#pragma unroll
    for (int k = 0; k < 4; k++) {
        uint32_t a[MT][4], b[NT / 2][4];

#pragma unroll
        for (int i = 0; i < MT; i++)
            ptx_ldmatrix_x4(a[i], w + (i * 16 + lane % 16) * 128 +
                                      (((k * 2 + lane / 16) ^ (lane & 7)) << 4));
#pragma unroll
        for (int j = 0; j < NT / 2; j++)
            ptx_ldmatrix_x4(b[j], x + (j * 16 + lane / 16 * 8 + lane % 8) * 128 +
                                      (((k * 2 + lane / 8 % 2) ^ (lane & 7)) << 4));
#pragma unroll
        for (int i = 0; i < MT; i++)
#pragma unroll
            for (int j = 0; j < NT; j++)
                ptx_mma(d[i] + 4 * j, a[i], b[j / 2][j % 2 * 2], b[j / 2][j % 2 * 2 + 1]);
    }
}

template <int MT, int NT, int MW, int NW, int STAGES>
__global__ void __launch_bounds__(32 * MW * NW) gemm_mma(const mma_args a)
{
    typedef mma_tile<MT, NT, MW, NW, STAGES> T;
    extern __shared__ __align__(128) uint8_t raw[];
    const uint32_t smem = ptx_shared(raw);
    const int warp = threadIdx.x / 32, mw = warp % MW, nw = warp / MW;
    const int row0 = blockIdx.y * T::w_rows, x0 = blockIdx.x * T::x_rows;
    const int n_kb = (a.cols + 63) / 64;
    float d[MT][NT * 4] = {};

    for (int s = 0; s < STAGES - 1; s++) {
        if (s < n_kb)
            load_stage<T>(&a, smem + s * T::stage_bytes, row0, x0, s);
        ptx_cp_async_commit();
    }
    for (int kb = 0; kb < n_kb; kb++) {
        const int ahead = kb + STAGES - 1;
        const uint32_t at = smem + kb % STAGES * T::stage_bytes;

        ptx_cp_async_wait<STAGES - 2>();
        __syncthreads(); /* the atom is here, and the one before it has been read */
        if (ahead < n_kb)
            load_stage<T>(&a, smem + ahead % STAGES * T::stage_bytes, row0, x0, ahead);
        ptx_cp_async_commit();
        compute_stage<MT, NT>(d, at + mw * (MT * 2048), at + T::w_rows * 128 + nw * (NT * 1024));
    }
#pragma unroll
    for (int i = 0; i < MT; i++)
        gemm_store_direct<NT * 8>(&a.out, d[i],
                                  a.out.epilogue == CT_GEMM_STORE_GATE_UP ? row0 / 2 : row0,
                                  (mw * MT + i) * 16, a.rows - row0, x0 + nw * NT * 8);
}

static const void *fn_few(void)
{
    return (const void *)gemm_mma<2, 2, 2, 1, 4>;
}

static const void *fn_many(void)
{
    return (const void *)gemm_mma<4, 4, 2, 4, 3>;
}

ct_status ct_gemm_mma_prepare(ct_error *err)
{
    cudaError_t e = cudaFuncSetAttribute(fn_few(), cudaFuncAttributeMaxDynamicSharedMemorySize,
                                         tile_few::bytes);

    if (e == cudaSuccess)
        e = cudaFuncSetAttribute(fn_many(), cudaFuncAttributeMaxDynamicSharedMemorySize,
                                 tile_many::bytes);
    if (e != cudaSuccess)
        return ct_fail(err, CT_EIO, "mma.sync kernels: CUDA: %s", cudaGetErrorString(e));
    return CT_OK;
}

static mma_args make_args(const ct_gemm_matrix *w, const ct_gemm_call *c)
{
    const bool gate_up = w->kind == CT_GEMM_GATE_UP;
    mma_args a = {};

    a.out.y = c->y;
    a.out.ldy = c->ldy;
    a.out.n_out = (int)(gate_up ? w->rows / 2 : w->rows);
    a.out.m = (int)c->rows;
    a.out.epilogue = gate_up                  ? CT_GEMM_STORE_GATE_UP
                     : c->elem == CT_GEMM_F32 ? CT_GEMM_STORE_F32
                                              : CT_GEMM_STORE_BF16;
    a.w = (const uint8_t *)w->data;
    a.x = (const uint8_t *)c->x;
    a.w_bytes = (size_t)w->cols * 2;
    a.x_bytes = c->ldx * 2;
    a.rows = (int)w->rows;
    a.cols = (int)w->cols;
    return a;
}

ct_status ct_gemm_mma_run(const ct_gemm_matrix *w, const ct_gemm_call *c,
                          struct CUstream_st *stream, ct_error *err)
{
    /* Up to here three small tiles along X still beat one large one. */
    const bool few = c->rows <= 48;
    const unsigned tw = few ? tile_few::w_rows : tile_many::w_rows;
    const unsigned tx = few ? tile_few::x_rows : tile_many::x_rows;
    mma_args a = make_args(w, c);
    void *args[] = {&a};
    /* Neighbours share a tile of W, which then leaves memory once. */
    const cudaError_t e = cudaLaunchKernel(few ? fn_few() : fn_many(),
                                           dim3((c->rows + tx - 1) / tx, (w->rows + tw - 1) / tw),
                                           dim3(few ? tile_few::threads : tile_many::threads), args,
                                           few ? tile_few::bytes : tile_many::bytes, stream);

    if (e != cudaSuccess)
        return ct_fail(err, CT_EIO, "%s: CUDA: %s", w->name, cudaGetErrorString(e));
    return CT_OK;
}
