/* The ring of stages in shared memory: its layout, its barriers between the blocks of a
 * cluster, and the thread that fills it. */
#ifndef CT_OPS_CUDA_GEMM_RING_CUH
#define CT_OPS_CUDA_GEMM_RING_CUH

#include "ops/cuda/gemm_order.cuh"

#include <cuda.h>

#if CT_PTX_SM90A
/* Addresses in a block's shared memory: barriers, store buffers, ring. */
typedef struct gemm_shared {
    uint32_t full, empty, out, ring;
    int atom_bytes, stage_bytes;
} gemm_shared;

template <int N, int G, int A>
static __device__ __forceinline__ gemm_shared gemm_shared_at(const ct_gemm_args *a,
                                                             const uint8_t *raw)
{
    gemm_shared sh;

    sh.full = (ptx_shared(raw) + 1023) & ~1023u;
    sh.empty = sh.full + 8 * CT_GEMM_MAX_STAGES;
    sh.out = sh.full + CT_GEMM_HEAD_BYTES;
    sh.ring = sh.out + (N >= 128 ? G * 2 * CT_GEMM_STAGING : 0);
    sh.atom_bytes = a->slot + N * 128;
    sh.stage_bytes = A * sh.atom_bytes;
    return sh;
}

/* Place in the ring: stage, and parity of its current lap. */
typedef struct gemm_ring {
    uint32_t stage, lap;
} gemm_ring;

static __device__ __forceinline__ void gemm_advance(gemm_ring *r, int stages)
{
    if (++r->stage == (uint32_t)stages) {
        r->stage = 0;
        r->lap ^= 1;
    }
}

/* A block's place in its cluster of CW blocks along W, which share rows of X, times CX
 * along X, which share rows of W.  Each loads its part of both for all who share, so
 * CW + CX - 1 blocks write into each one. */
typedef struct gemm_rank {
    uint32_t w, x;
} gemm_rank;

template <int CW, int CX> static __device__ __forceinline__ gemm_rank gemm_rank_get(void)
{
    const uint32_t rank = CW * CX > 1 ? ptx_cluster_rank() : 0;

    return {rank % CW, rank / CW};
}

/* The blocks that share this one's rows of X, and of W, as multicast wants them. */
template <int CW> static __device__ __forceinline__ uint16_t gemm_mask_x(gemm_rank r)
{
    return (uint16_t)(((1 << CW) - 1) << (r.x * CW));
}

template <int CW, int CX> static __device__ __forceinline__ uint16_t gemm_mask_w(gemm_rank r)
{
    static_assert(CX <= 2, "the mask holds two blocks");
    return (uint16_t)((CX == 2 ? 1 | 1 << CW : 1) << r.w);
}

/* Tells the producers that write here that a stage has been read. */
template <int CW, int CX>
static __device__ __forceinline__ void gemm_free(gemm_rank rank, uint32_t bar)
{
    const uint32_t lane = threadIdx.x % 32;

    if (CW * CX == 1 && lane == 0)
        ptx_mbar_arrive(bar);
    if (CW * CX > 1 && lane < CW * CX && (lane % CW == rank.w || lane / CW == rank.x))
        ptx_mbar_arrive_at(bar, lane);
}

/* ---- producer: one thread ------------------------------------------------- */

template <int CX>
static __device__ __forceinline__ void gemm_load_w(const ct_gemm_args *a, const CUtensorMap *map,
                                                   uint32_t dst, int k, int row, uint32_t bar,
                                                   uint16_t mask, uint64_t policy)
{
    if (CX == 1 && a->gate_up)
        ptx_tma_load_4d(dst, map, k, 0, 0, row / 16, bar, policy);
    else if (CX == 1)
        ptx_tma_load_2d(dst, map, k, row, bar, policy);
    else if (a->gate_up)
        ptx_tma_multicast_4d(dst, map, k, 0, 0, row / 16, bar, mask, policy);
    else
        ptx_tma_multicast_2d(dst, map, k, row, bar, mask, policy);
}

template <int N, int G, int A, int CW, int CX>
static __device__ __forceinline__ void gemm_produce(const ct_gemm_args *a, const gemm_shared *sh,
                                                    const CUtensorMap *map_w,
                                                    const CUtensorMap *map_x)
{
    const gemm_rank rank = gemm_rank_get<CW, CX>();
    const uint64_t pol_w = a->hints ? ptx_policy_evict_first() : ptx_policy_normal();
    const uint64_t pol_x = a->hints ? ptx_policy_evict_last() : ptx_policy_normal();
    /* Boxes count whole, also where they hang over the edge and arrive as zeros. */
    const uint32_t bytes = A * (a->r + N) * 128;
    /* Blocks that share W divide a stage by atoms, or one atom by rows. */
    constexpr bool BY_ATOM = A >= CX;
    const int part_x = N / CW * (int)rank.w, part_w = BY_ATOM ? 0 : a->r / CX * (int)rank.x;
    const int n_ids = gridDim.x / (CW * CX);
    bool fresh = true; /* nothing of an earlier grid may be read yet */
    gemm_ring at = {0, 0};
    gemm_work w;

    gemm_work_begin(&w, a, blockIdx.x / (CW * CX), n_ids);
    while (gemm_work_next(&w, a, n_ids)) {
        int tw, tx, ahead = 0;

        gemm_place(a, w.tile, &tw, &tx);
        const int w0 = (tw * CW + (int)rank.w) * a->r + part_w;
        const int x0 = (tx * CX + (int)rank.x) * N + part_x;

        if (fresh) {
            /* W does not depend on the grid before this one: fill the ring with it, and
             * only then wait for that grid and load X. */
            ahead = w.kb1 - w.kb0 < a->stages ? w.kb1 - w.kb0 : a->stages;
            for (int i = 0; i < ahead; i++) {
                ptx_mbar_expect(sh->full + 8 * i, bytes);
                for (int j = 0; j < A; j++)
                    if (!BY_ATOM || j % CX == (int)rank.x)
                        gemm_load_w<CX>(a, map_w,
                                        sh->ring + i * sh->stage_bytes + j * sh->atom_bytes +
                                            part_w * 128,
                                        ((w.kb0 + i) * A + j) * CT_GEMM_ATOM_K, w0,
                                        sh->full + 8 * i, gemm_mask_w<CW, CX>(rank), pol_w);
            }
            ptx_grid_wait();
            fresh = false;
        }
        for (int kb = w.kb0; kb < w.kb1; kb++) {
            const uint32_t base = sh->ring + at.stage * sh->stage_bytes;
            const uint32_t full = sh->full + 8 * at.stage;
            const bool have_w = kb - w.kb0 < ahead;

            if (!have_w) {
                ptx_mbar_wait_thread(sh->empty + 8 * at.stage, at.lap ^ 1);
                ptx_mbar_expect(full, bytes);
            }
            for (int j = 0; j < A; j++) {
                const int k = (kb * A + j) * CT_GEMM_ATOM_K;
                const uint32_t atom = base + j * sh->atom_bytes;
                const uint32_t xs = atom + a->slot + part_x * 128;

                if (CW == 1)
                    ptx_tma_load_2d(xs, map_x, k, x0, full, pol_x);
                else
                    ptx_tma_multicast_2d(xs, map_x, k, x0, full, gemm_mask_x<CW>(rank), pol_x);
                if (!have_w && (!BY_ATOM || j % CX == (int)rank.x))
                    gemm_load_w<CX>(a, map_w, atom + part_w * 128, k, w0, full,
                                    gemm_mask_w<CW, CX>(rank), pol_w);
            }
            gemm_advance(&at, a->stages);
        }
    }
    /* Every block must wait, also one without work: a grid that skips it could end before
     * its predecessor, and whoever comes next would trust it. */
    if (fresh)
        ptx_grid_wait();
}
#endif /* CT_PTX_SM90A */

#endif
