/* bf16 products on sm_90a: Y[m, o] = sum_k X[m, k] W[o, k], all row-major.
 *
 * Rows of W are the M side of the instruction, N = 8..256 rows of X its N side.  Every
 * output is ONE chain of k16 steps, from k = 0 upwards, in one fp32 accumulator that
 * starts at 0.  That holds for every kernel, tile and grid below (and for mma.sync, in
 * gemm_mma.cu), so all of them give the same bits and which one runs is a question of
 * speed only.  There is no split-K.
 *
 * A block is one producer warpgroup, of which one thread works, and G consumer
 * warpgroups.  The ring in shared memory has stages of A atoms; an atom is 64 k of the
 * tile's r rows of W and N rows of X, in the 128-byte swizzle.  An instruction reads 64
 * rows of W whatever was loaded: the surplus rows hold whatever lies next in shared
 * memory and are not stored.  That is how small products are balanced over the
 * multiprocessors.
 *
 * G consumers of wgmma, or (WARP) one of mma.sync on the same ring, whose steps follow each
 * other faster: that decides where few rows of W meet a long K ([3840, 15360] at 8 rows:
 * 28.5 us instead of 36).
 *
 * Rows of X, registers a thread, and share of the roof reached on one H200 (docs/SPEED.md):
 *   WARP8..32, WIDE8..64    36 to 128    88 to 99 % of the read roof above 80 MB
 *   MID128, PAIR128..256   127 to 168    780 to 800 TFLOP/s from 2,048 rows */
#ifndef CT_OPS_CUDA_GEMM_KERNEL_CUH
#define CT_OPS_CUDA_GEMM_KERNEL_CUH

#include "ops/cuda/gemm_consume.cuh"

#if CT_PTX_SM90A
/* Takes over the accumulators of a tile that the cluster before this one began. */
template <int N, int G, int CL>
static __device__ __forceinline__ void gemm_carry_take(float *d, const ct_gemm_args *a, int wg)
{
    const int t = threadIdx.x % 128, slot = ((int)blockIdx.x - CL) * G + wg;
    uint32_t *flag = a->flags + slot;
    const float *c = a->carry + (size_t)slot * (N / 2 * 128) + t;

    if (t == 0) {
        while (!ptx_load_acquire(flag))
            ;
        *flag = 0;
    }
    ptx_bar_sync(1 + wg, 128);
#pragma unroll
    for (int j = 0; j < N / 2; j++)
        d[j] = __ldcg(c + j * 128);
}

template <int N, int G>
static __device__ __forceinline__ void gemm_carry_give(const float *d, const ct_gemm_args *a,
                                                       int wg)
{
    const int t = threadIdx.x % 128, slot = (int)blockIdx.x * G + wg;
    float *c = a->carry + (size_t)slot * (N / 2 * 128) + t;

#pragma unroll
    for (int j = 0; j < N / 2; j++)
        __stcg(c + j * 128, d[j]);
    __threadfence();
    ptx_bar_sync(1 + wg, 128);
    if (t == 0)
        ptx_store_release(a->flags + slot, 1);
}

/* A tile's part of this warpgroup: rows of W from row0 on, of X from x0 on. */
template <int N, bool WARP>
static __device__ __forceinline__ void gemm_store(const float *d, const ct_gemm_args *a,
                                                  const CUtensorMap *map_y, uint32_t buffers,
                                                  int wg, int row0, int x0)
{
    const int warp = threadIdx.x % 128 / 32, o0 = a->gate_up ? row0 / 2 : row0;

    if (N >= 128 && a->bulk) {
        gemm_store_bulk<N>(&a->out, map_y, buffers + wg * 2 * CT_GEMM_STAGING, d, row0 + wg * 64,
                           x0);
    } else if (WARP) {
        constexpr int MW = gemm_warps<N>::MW, NT = gemm_warps<N>::NT;

#pragma unroll
        for (int m = 0; m < gemm_warps<N>::MT; m++)
            gemm_store_direct<NT * 8>(&a->out, d + m * NT * 4, o0, (m * MW + warp % MW) * 16, a->r,
                                      x0 + warp / MW * (NT * 8));
    } else {
        gemm_store_direct<N>(&a->out, d, o0, wg * 64 + warp * 16, a->r, x0);
    }
}

template <int N, int G, int A, int CW, int CX, bool WARP>
static __device__ __forceinline__ void gemm_consume(const ct_gemm_args *a, const gemm_shared *sh,
                                                    const CUtensorMap *map_y, int wg)
{
    constexpr bool CHAIN = N >= 128;
    const gemm_rank rank = gemm_rank_get<CW, CX>();
    const int n_ids = gridDim.x / (CW * CX);
    gemm_ring at = {0, 0};
    gemm_work w;
    float d[N / 2];

    gemm_work_begin(&w, a, blockIdx.x / (CW * CX), n_ids);
    while (gemm_work_next(&w, a, n_ids)) {
        int tw, tx;

        gemm_place(a, w.tile, &tw, &tx);
        if (CHAIN && w.kb0 > 0) {
            gemm_carry_take<N, G, CW * CX>(d, a, wg);
        } else {
#pragma unroll
            for (int j = 0; j < N / 2; j++)
                d[j] = 0;
        }
        if constexpr (WARP)
            gemm_consume_warp<N, A, CW, CX>(d, a, sh, rank, &at, w.kb1 - w.kb0);
        else
            gemm_consume_group<N, A, CW, CX>(d, a, sh, rank, &at, wg, w.kb1 - w.kb0);
        if (CHAIN && w.kb1 < a->n_kb)
            gemm_carry_give<N, G>(d, a, wg);
        else
            gemm_store<N, WARP>(d, a, map_y, sh->out, wg, (tw * CW + (int)rank.w) * a->r,
                                (tx * CX + (int)rank.x) * N);
    }
    if (N >= 128 && threadIdx.x % 128 == 0)
        ptx_tma_store_wait();
}
#endif /* CT_PTX_SM90A */

/* N rows of X a tile, G consumer warpgroups along W, A atoms a stage, clusters of CW x CX
 * blocks.  Kernels for up to 16 rows can leave room for a second block on the
 * multiprocessor: that of the next launch, which fills its ring with W while this one ends
 * (CT_GEMM_SHARE). */
template <int N, int G, int A, int CW, int CX, bool WARP>
__global__ void __launch_bounds__((G + 1) * 128, N <= 16 ? 2 : 1)
    ct_gemm_kernel_bf16(const __grid_constant__ CUtensorMap map_w,
                        const __grid_constant__ CUtensorMap map_x,
                        const __grid_constant__ CUtensorMap map_y, const ct_gemm_args a)
{
#if CT_PTX_SM90A
    /* 88 and more accumulators and their epilogue want more than an even share. */
    constexpr bool MOVE_REGS = G > 1 && N > 128;
    extern __shared__ uint8_t raw[];
    const gemm_shared sh = gemm_shared_at<N, G, A>(&a, raw);
    /* The shuffle tells the compiler that wg is the same in the whole warp: descriptors
     * then live in uniform registers, where the instruction wants them. */
    const int wg = __shfl_sync(~0u, threadIdx.x / 128, 0);

    if (threadIdx.x == G * 128) {
        ptx_tma_prefetch(&map_w);
        ptx_tma_prefetch(&map_x);
    }
    if (threadIdx.x == 0) {
        for (int s = 0; s < a.stages; s++) {
            ptx_mbar_init(sh.full + 8 * s, 1);
            ptx_mbar_init(sh.empty + 8 * s, G * 4 * (CW + CX - 1));
        }
        ptx_mbar_init_fence();
    }
    __syncthreads();
    if (CW * CX > 1) {
        ptx_cluster_arrive();
        ptx_cluster_wait();
    }
    /* A chained grid's flags must be back at 0 before another grid reads them. */
    if (!a.chain)
        ptx_grid_launch_dependents();

    if (wg == G) {
        if (MOVE_REGS)
            ptx_regs_shrink<40>();
        if (threadIdx.x == G * 128)
            gemm_produce<N, G, A, CW, CX>(&a, &sh, &map_w, &map_x);
    } else {
        if (MOVE_REGS)
            ptx_regs_grow<232>();
        gemm_consume<N, G, A, CW, CX, WARP>(&a, &sh, &map_y, wg);
    }
    /* A neighbour may still write into this block. */
    if (CW * CX > 1) {
        ptx_cluster_arrive();
        ptx_cluster_wait();
    }
#endif
}

#endif
