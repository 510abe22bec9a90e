/* How accumulators leave the registers, for every bf16 product.
 *
 * Fragment: d[4j + 2h + e] of a lane is row `lane / 4 + 8h` of sixteen rows of W and
 * column `8j + 2 (lane % 4) + e`, a row of X.  Y wants the transpose.
 *
 * Gate and up: the sixteen rows are eight of gate and the eight of up with the same
 * numbers, so h = 0 and h = 1 of one lane are the two factors of one output. */
#ifndef CT_OPS_CUDA_GEMM_STORE_CUH
#define CT_OPS_CUDA_GEMM_STORE_CUH

#include "ops/cuda/gelu.cuh"
#include "ops/cuda/ptx.cuh"

#include <cuda_bf16.h>
#include <stdint.h>
#include <string.h>

typedef enum ct_gemm_epilogue {
    CT_GEMM_STORE_BF16,
    CT_GEMM_STORE_F32,
    CT_GEMM_STORE_GATE_UP, /* bf16 of round(gelu(round(gate))) * round(up) */
} ct_gemm_epilogue;

typedef struct ct_gemm_output {
    void *y;
    size_t ldy;
    int n_out, m; /* columns and rows of Y */
    ct_gemm_epilogue epilogue;
} ct_gemm_output;

static __device__ __forceinline__ void gemm_store_one(const ct_gemm_output *out, int row, int col,
                                                      float v)
{
    const size_t at = (size_t)row * out->ldy + col;

    if (out->epilogue == CT_GEMM_STORE_F32)
        ((float *)out->y)[at] = v;
    else
        ((__nv_bfloat16 *)out->y)[at] = __float2bfloat16_rn(v);
}

/* A lane's part of sixteen rows of W by N rows of X, straight from the registers.
 * row0: the sixteen rows' place in their tile, of whose rows `left` are the matrix's;
 * o0: first output of the tile; x0: first row of X. */
template <int N>
static __device__ __forceinline__ void gemm_store_direct(const ct_gemm_output *out, const float *d,
                                                         int o0, int row0, int left, int x0)
{
    const int lane = threadIdx.x % 32;
    const bool gated = out->epilogue == CT_GEMM_STORE_GATE_UP;

#pragma unroll
    for (int h = 0; h < 2; h++) {
        const int row = row0 + lane / 4 + 8 * h;
        const int o = o0 + (gated ? row0 / 2 + lane / 4 : row);

        if (row >= left || o >= out->n_out || (gated && h))
            continue;
#pragma unroll
        for (int j = 0; j < N / 8; j++)
#pragma unroll
            for (int e = 0; e < 2; e++) {
                const int m = x0 + 8 * j + 2 * (lane % 4) + e;
                const float v = d[4 * j + 2 * h + e];

                if (m < out->m)
                    gemm_store_one(out, m, o, gated ? ct_gelu_gate(v, d[4 * j + 2 + e]) : v);
            }
    }
}

#if CT_PTX_SM90A
static __device__ __forceinline__ uint32_t gemm_pair(float lo, float hi)
{
    const __nv_bfloat162 pair = __floats2bfloat162_rn(lo, hi);
    uint32_t bits;

    memcpy(&bits, &pair, sizeof bits);
    return bits;
}

/* Rows of Y in one bulk store: the most that divides a tile. */
template <int N> struct gemm_box {
    static const int rows = N % 64 == 0 ? 64 : N % 16 == 0 ? 16 : 8;
};

/* One store buffer's worth: `rows` rows of Y from the copy engine, by one thread. */
template <int N>
static __device__ __forceinline__ void gemm_bulk_send(const CUtensorMap *map, int o0, int x0,
                                                      uint32_t from, int row_bytes, int rows)
{
    for (int i = 0; i < rows; i += gemm_box<N>::rows)
        ptx_tma_store_2d(map, o0, x0 + i, from + i * row_bytes);
    ptx_tma_store_commit();
}

/* Sixty-four rows of W by ROWS rows of X as rows of Y, 128 bytes each, in the swizzle
 * that the store map expects: stmatrix.trans turns the fragment. */
template <int ROWS>
static __device__ __forceinline__ void gemm_stage_plain(uint32_t to, const float *d)
{
    const int lane = threadIdx.x % 32, warp = threadIdx.x % 128 / 32;

#pragma unroll
    for (int p = 0; p < ROWS / 16; p++) {
        const float *v = d + p * 8;
        const int row = p * 16 + lane / 16 * 8 + lane % 8, chunk = warp * 2 + lane / 8 % 2;
        const uint32_t q[4] = {gemm_pair(v[0], v[1]), gemm_pair(v[2], v[3]), gemm_pair(v[4], v[5]),
                               gemm_pair(v[6], v[7])};

        ptx_stmatrix_x4_trans(to + row * 128 + ((chunk ^ (row & 7)) << 4), q);
    }
    if (ROWS % 16 != 0) {
        const float *v = d + ROWS / 16 * 8;
        const int row = ROWS - 8 + lane % 8, chunk = warp * 2 + lane / 8 % 2;
        const uint32_t q[2] = {gemm_pair(v[0], v[1]), gemm_pair(v[2], v[3])};

        ptx_stmatrix_x2_trans(to + row * 128 + ((chunk ^ (row & 7)) << 4), q);
    }
}

/* Sixty-four rows of gate and up by 64 rows of X: 32 outputs, 64 bytes a row, in the
 * 64-byte swizzle. */
static __device__ __forceinline__ void gemm_stage_gated(uint32_t to, const float *d)
{
    const int lane = threadIdx.x % 32, warp = threadIdx.x % 128 / 32;

#pragma unroll
    for (int p = 0; p < 2; p++) {
        const int row = p * 32 + lane;
        uint32_t q[4];

#pragma unroll
        for (int i = 0; i < 4; i++) {
            const float *v = d + p * 16 + i * 4;

            q[i] = gemm_pair(ct_gelu_gate(v[0], v[2]), ct_gelu_gate(v[1], v[3]));
        }
        ptx_stmatrix_x4_trans(to + row * 64 + ((warp ^ (row >> 1 & 3)) << 4), q);
    }
}

/* A warpgroup's 64 rows of W by N rows of X through its two buffers of 8,192 bytes. */
template <int N>
static __device__ __forceinline__ void gemm_store_bulk(const ct_gemm_output *out,
                                                       const CUtensorMap *map, uint32_t buffers,
                                                       const float *d, int row0, int x0)
{
    const int t = threadIdx.x % 128, bar = 1 + threadIdx.x / 128;
    const bool gated = out->epilogue == CT_GEMM_STORE_GATE_UP;

#pragma unroll
    for (int c = 0; c < N; c += 64) {
        constexpr int LAST = N % 64;
        const uint32_t at = buffers + c / 64 % 2 * 8192;

        /* The buffer's last reader must be through; the first buffer of a tile may
         * follow itself when N / 64 is odd. */
        if (t == 0 && c == 0)
            ptx_tma_store_wait_read<0>();
        else if (t == 0)
            ptx_tma_store_wait_read<1>();
        ptx_bar_sync(bar, 128);
        if (N - c < 64)
            gemm_stage_plain<LAST>(at, d + c / 2);
        else if (gated)
            gemm_stage_gated(at, d + c / 2);
        else
            gemm_stage_plain<64>(at, d + c / 2);
        ptx_fence_async_proxy();
        ptx_bar_sync(bar, 128);
        if (t == 0)
            gemm_bulk_send<N>(map, gated ? row0 / 2 : row0, x0 + c, at, gated ? 64 : 128,
                              N - c < 64 ? LAST : 64);
    }
}
#endif /* CT_PTX_SM90A */

#endif
