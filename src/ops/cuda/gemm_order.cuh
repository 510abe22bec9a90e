/* What a bf16 product on sm_90a is asked to do, and in which order its tiles come. */
#ifndef CT_OPS_CUDA_GEMM_ORDER_CUH
#define CT_OPS_CUDA_GEMM_ORDER_CUH

#include "ops/cuda/gemm_plan.h"
#include "ops/cuda/gemm_store.cuh"
#include "ops/cuda/ptx.cuh"

typedef struct ct_gemm_args {
    ct_gemm_output out;
    float *carry;    /* chained grid: accumulators handed to the next cluster */
    uint32_t *flags; /* chained grid: one a block and warpgroup, 0 at rest */
    int r, slot, n_kb, stages, tiles_w, tiles_x, group_x; /* of the plan */
    bool chain;
    bool bulk;    /* the copy engine stores Y */
    bool gate_up; /* rows of W come in alternating groups of eight */
    bool hints;   /* few rows: W is read once and need not stay in the L2, X should */
} ct_gemm_args;

#if CT_PTX_SM90A
/* The tiles of one cluster of n_ids, in order.  Plain: every n_ids-th tile, whole K.
 * Chained: whole waves first, except that the last one to two waves' tiles are cut into
 * n_ids equal shares of (tile, stage) pairs.  A tile that two clusters share is begun by
 * the first of them before anything else and ended by the second after everything else;
 * the accumulators travel through memory as they are, so the sum is still one chain.
 * Clusters wait only for lower numbers, which start earlier. */
typedef struct gemm_work {
    int tile, kb0, kb1;
    int next;       /* next tile of the whole waves */
    int whole;      /* tiles in whole waves */
    int cut;        /* next tile of the share, downwards; below cut_end: none */
    int cut_end;    /* lowest tile of the share */
    int64_t u0, u1; /* the share, counted from tile `whole` */
    bool head;      /* the share ends inside a tile, still to be done */
} gemm_work;

static __device__ __forceinline__ void gemm_work_begin(gemm_work *w, const ct_gemm_args *a, int id,
                                                       int n_ids)
{
    const int tiles = a->tiles_w * a->tiles_x;

    w->next = id;
    w->whole = tiles;
    w->cut = -1;
    w->cut_end = 0;
    w->head = false;
    if (a->chain) {
        w->whole = tiles >= 2 * n_ids ? (tiles / n_ids - 1) * n_ids : 0;
        const int64_t total = (int64_t)(tiles - w->whole) * a->n_kb;

        w->u0 = total * id / n_ids;
        w->u1 = total * (id + 1) / n_ids;
        w->cut = (int)((w->u1 - 1) / a->n_kb);
        w->cut_end = (int)(w->u0 / a->n_kb);
        w->head = w->u1 % a->n_kb != 0;
    }
}

static __device__ __forceinline__ bool gemm_work_next(gemm_work *w, const ct_gemm_args *a,
                                                      int n_ids)
{
    if (!w->head && w->next < w->whole) {
        w->tile = w->next;
        w->kb0 = 0;
        w->kb1 = a->n_kb;
        w->next += n_ids;
        return true;
    }
    if (w->cut < w->cut_end)
        return false;
    const int64_t t0 = (int64_t)w->cut * a->n_kb;

    w->tile = w->whole + w->cut;
    w->kb0 = w->u0 > t0 ? (int)(w->u0 - t0) : 0;
    w->kb1 = w->u1 < t0 + a->n_kb ? (int)(w->u1 - t0) : a->n_kb;
    w->cut--;
    w->head = false;
    return true;
}

/* Groups of group_x tiles of X are swept across all of W before the next group: one
 * group's X and the wave's W stay in the L2. */
static __device__ __forceinline__ void gemm_place(const ct_gemm_args *a, int tile, int *tw, int *tx)
{
    const int per = a->group_x * a->tiles_w;
    const int g = tile / per, in = tile - g * per;
    const int left = a->tiles_x - g * a->group_x;
    const int gx = left < a->group_x ? left : a->group_x;

    *tw = in / gx;
    *tx = g * a->group_x + in - *tw * gx;
}
#endif /* CT_PTX_SM90A */

#endif
