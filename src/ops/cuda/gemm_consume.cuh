/* The groups that empty the ring: wgmma, or mma.sync on the same stages. */
#ifndef CT_OPS_CUDA_GEMM_CONSUME_CUH
#define CT_OPS_CUDA_GEMM_CONSUME_CUH

#include "ops/cuda/gemm_ring.cuh"

#if CT_PTX_SM90A
/* One stage of a warpgroup's 64 rows, by wgmma.  The whole body between fence and commit
 * is straight code: see ptx_wgmma. */
template <int N, int A>
static __device__ __forceinline__ void gemm_stage_group(float *d, uint32_t w, uint32_t x,
                                                        int atom_bytes)
{
    ptx_wgmma_fence();
#pragma unroll
    for (int j = 0; j < A; j++) {
        const uint64_t da = ptx_wgmma_desc(w + j * atom_bytes);
        const uint64_t db = ptx_wgmma_desc(x + j * atom_bytes);

#pragma unroll
        for (int k = 0; k < CT_GEMM_ATOM_K / 16; k++)
            ptx_wgmma<N>(d, da + 2 * k, db + 2 * k);
    }
    ptx_wgmma_commit();
}

/* Four warps of mma.sync: NW side by side along X, MW along W.  Each has MT pieces of 16
 * rows, every MW-th of the tile, times NT of 8 columns. */
template <int N> struct gemm_warps {
    static const int NW = N >= 32 ? 4 : N / 8, MW = 4 / NW, MT = 4 / MW, NT = N / 8 / NW;
};

/* What 32 k of a tile need in registers. */
template <int MT, int NT> struct gemm_fragments {
    uint32_t a[MT][2][4], b[NT][4];
};

template <int M, int N>
static __device__ __forceinline__ void gemm_fragments_load(gemm_fragments<M, gemm_warps<N>::NT> *f,
                                                           uint32_t w, uint32_t x, int half)
{
    const int lane = threadIdx.x % 32;

#pragma unroll
    for (int n = 0; n < gemm_warps<N>::NT; n++)
        ptx_ldmatrix_x4(f->b[n],
                        x + (n * 8 + lane % 8) * 128 + (((half * 4 + lane / 8) ^ (lane & 7)) << 4));
#pragma unroll
    for (int k = 0; k < 2; k++)
#pragma unroll
        for (int m = 0; m < M; m++)
            ptx_ldmatrix_x4(f->a[m][k], w + (m * gemm_warps<N>::MW * 16 + lane % 16) * 128 +
                                            (((half * 4 + k * 2 + lane / 16) ^ (lane & 7)) << 4));
}

template <int M, int N>
static __device__ __forceinline__ void
gemm_fragments_use(float *d, const gemm_fragments<M, gemm_warps<N>::NT> *f)
{
    constexpr int NT = gemm_warps<N>::NT;

#pragma unroll
    for (int k = 0; k < 2; k++)
#pragma unroll
        for (int m = 0; m < M; m++)
#pragma unroll
            for (int n = 0; n < NT; n++)
                ptx_mma(d + (m * NT + n) * 4, f->a[m][k], f->b[n][2 * k], f->b[n][2 * k + 1]);
}

/* All stages of a tile.  do-while: a loop that may run zero times makes the compiler merge
 * accumulators behind it, while the last wgmma is in flight, and serialise them all. */
template <int N, int A, int CW, int CX>
static __device__ __forceinline__ void gemm_consume_group(float *d, const ct_gemm_args *a,
                                                          const gemm_shared *sh, gemm_rank rank,
                                                          gemm_ring *at, int wg, int n_kb)
{
    int prev = -1;

    do {
        const uint32_t base = sh->ring + at->stage * sh->stage_bytes;

        ptx_mbar_wait_warp(sh->full + 8 * at->stage, at->lap);
        gemm_stage_group<N, A>(d, base + wg * 8192, base + a->slot, sh->atom_bytes);
        ptx_wgmma_wait<1>();
        if (prev >= 0)
            gemm_free<CW, CX>(rank, sh->empty + 8 * prev);
        prev = at->stage;
        gemm_advance(at, a->stages);
    } while (--n_kb > 0);
    ptx_wgmma_wait<0>();
    gemm_free<CW, CX>(rank, sh->empty + 8 * prev);
}

/* The same by mma.sync, for a warp with M pieces of rows.  Fragments of the next 32 k are
 * on their way while these are used; across stages too, except for eight rows of X, where
 * it was 8 % slower. */
template <int M, int N, int A, int CW, int CX>
static __device__ __forceinline__ void gemm_consume_pieces(float *d, const ct_gemm_args *a,
                                                           const gemm_shared *sh, gemm_rank rank,
                                                           gemm_ring *at, int warp, int n_kb)
{
    constexpr bool ACROSS = N > 8;
    const uint32_t off_w = warp % gemm_warps<N>::MW * 2048;
    const uint32_t off_x = a->slot + warp / gemm_warps<N>::MW * (gemm_warps<N>::NT * 1024);
    gemm_fragments<M, gemm_warps<N>::NT> f[2];
    bool loaded = false;

    for (; n_kb > 0; n_kb--) {
        const uint32_t base = sh->ring + at->stage * sh->stage_bytes;
        const uint32_t read = sh->empty + 8 * at->stage;

        if (!loaded) {
            ptx_mbar_wait_warp(sh->full + 8 * at->stage, at->lap);
            gemm_fragments_load<M, N>(&f[0], base + off_w, base + off_x, 0);
        }
#pragma unroll
        for (int h = 1; h < 2 * A; h++) {
            const uint32_t atom = base + h / 2 * sh->atom_bytes;

            gemm_fragments_load<M, N>(&f[h % 2], atom + off_w, atom + off_x, h % 2);
            gemm_fragments_use<M, N>(d, &f[(h + 1) % 2]);
        }
        if (!ACROSS)
            gemm_fragments_use<M, N>(d, &f[1]);
        /* The stage has been read once its last fragments are here: an arrival is a
         * release. */
        __syncwarp();
        gemm_free<CW, CX>(rank, read);
        gemm_advance(at, a->stages);
        if (ACROSS && n_kb > 1) {
            const uint32_t next = sh->ring + at->stage * sh->stage_bytes;

            ptx_mbar_wait_warp(sh->full + 8 * at->stage, at->lap);
            gemm_fragments_load<M, N>(&f[0], next + off_w, next + off_x, 0);
            loaded = true;
        }
        if (ACROSS)
            gemm_fragments_use<M, N>(d, &f[1]);
    }
}

template <int N, int A, int CW, int CX>
static __device__ __forceinline__ void gemm_consume_warp(float *d, const ct_gemm_args *a,
                                                         const gemm_shared *sh, gemm_rank rank,
                                                         gemm_ring *at, int n_kb)
{
    const int warp = threadIdx.x / 32, pieces = (a->r + 15) / 16 - warp % gemm_warps<N>::MW;

    switch ((pieces + gemm_warps<N>::MW - 1) / gemm_warps<N>::MW) {
    case 4:
        if (gemm_warps<N>::MT >= 4)
            gemm_consume_pieces<gemm_warps<N>::MT >= 4 ? 4 : 1, N, A, CW, CX>(d, a, sh, rank, at,
                                                                              warp, n_kb);
        break;
    case 3:
        if (gemm_warps<N>::MT >= 4)
            gemm_consume_pieces<gemm_warps<N>::MT >= 4 ? 3 : 1, N, A, CW, CX>(d, a, sh, rank, at,
                                                                              warp, n_kb);
        break;
    case 2:
        if (gemm_warps<N>::MT >= 2)
            gemm_consume_pieces<gemm_warps<N>::MT >= 2 ? 2 : 1, N, A, CW, CX>(d, a, sh, rank, at,
                                                                              warp, n_kb);
        break;
    case 1:
        gemm_consume_pieces<1, N, A, CW, CX>(d, a, sh, rank, at, warp, n_kb);
        break;
    default: /* no rows for this warp, which keeps step with the others */
        for (; n_kb > 0; n_kb--) {
            ptx_mbar_wait_warp(sh->full + 8 * at->stage, at->lap);
            gemm_free<CW, CX>(rank, sh->empty + 8 * at->stage);
            gemm_advance(at, a->stages);
        }
    }
}
#endif /* CT_PTX_SM90A */

#endif
