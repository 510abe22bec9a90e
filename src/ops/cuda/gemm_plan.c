#include "ops/cuda/gemm_plan.h"

#include <assert.h>
#include <math.h>

enum {
    GROUP_ROWS = 64,   /* rows of W a warpgroup's instruction covers */
    GROUP_SLOT = 8192, /* bytes of them in one atom */
    SWEEP_ROWS = 2048, /* of X, swept across all of W before the next ones */
};

/* n, groups, atoms, cluster_w, cluster_x, bulk */
// clang-format off
static const ct_gemm_traits traits[CT_GEMM_N_KERNELS] = {
    [CT_GEMM_WARP8] = {8, 1, 4, 1, 1, false},
    [CT_GEMM_WARP16] = {16, 1, 4, 1, 1, false},
    [CT_GEMM_WARP32] = {32, 1, 4, 1, 1, false},
    [CT_GEMM_WIDE8] = {8, 2, 2, 1, 1, false},
    [CT_GEMM_WIDE16] = {16, 2, 2, 1, 1, false},
    [CT_GEMM_WIDE32] = {32, 2, 2, 1, 1, false},
    [CT_GEMM_WIDE64] = {64, 2, 2, 1, 1, false},
    [CT_GEMM_QUAD64] = {64, 1, 2, 4, 1, false},
    [CT_GEMM_SPLIT64] = {32, 1, 2, 1, 2, false},
    [CT_GEMM_MID128] = {128, 1, 2, 1, 1, true},
    [CT_GEMM_PAIR128] = {128, 2, 1, 2, 1, true},
    [CT_GEMM_QUAD128] = {128, 2, 1, 2, 2, true},
    [CT_GEMM_PAIR176] = {176, 2, 1, 2, 1, true},
    [CT_GEMM_PAIR232] = {232, 2, 1, 2, 1, true},
    [CT_GEMM_PAIR256] = {256, 2, 1, 2, 1, true},
    [CT_GEMM_QUAD256] = {256, 2, 1, 2, 2, true},
};
// clang-format on

static int div_up(int64_t a, int64_t b)
{
    return (int)((a + b - 1) / b);
}

static int min_int(int a, int b)
{
    return a < b ? a : b;
}

const ct_gemm_traits *ct_gemm_traits_get(ct_gemm_kernel kernel)
{
    assert(kernel < CT_GEMM_N_KERNELS);
    return &traits[kernel];
}

/* Blocks of this kernel that are resident at once, one a multiprocessor. */
static int resident_for(const ct_gemm_device *dev, const ct_gemm_traits *t)
{
    const int cluster = t->cluster_w * t->cluster_x;

    return cluster == 1 ? dev->n_sms : cluster == 2 ? dev->n_pairs * 2 : dev->n_quads * 4;
}

int ct_gemm_tile_rows(const ct_gemm_device *dev, const ct_gemm_shape *w, ct_gemm_kernel kernel)
{
    const ct_gemm_traits *t = &traits[kernel];
    const int full = GROUP_ROWS * t->groups, blocks = resident_for(dev, t) / t->cluster_x;
    int waves, r;

    if (t->bulk)
        return full;
    /* As many whole waves as full tiles would take, all tiles alike: every
     * multiprocessor then reads the same number of bytes. */
    waves = div_up(w->rows, (int64_t)blocks * full);
    r = div_up(w->rows, (int64_t)blocks * waves);
    /* Gate and up alternate in groups of eight rows. */
    return w->gate_up ? div_up(r, 16) * 16 : r;
}

static void ring_for(ct_gemm_plan *p, const ct_gemm_traits *t, int smem_bytes)
{
    const int atom = p->slot + t->n * 128, stage = t->atoms * atom;
    /* A warpgroup reads 64 rows whatever was loaded; behind the last atom, too. */
    const int beyond = GROUP_SLOT * t->groups - atom;
    const int fixed = 1024 + CT_GEMM_HEAD_BYTES + (beyond > 0 ? beyond : 0) +
                      (t->bulk ? t->groups * 2 * CT_GEMM_STAGING : 0);

    p->stages = min_int((smem_bytes - fixed) / stage, CT_GEMM_MAX_STAGES);
    p->smem_bytes = fixed + p->stages * stage;
    assert(p->stages >= 2);
}

/* Not for a chained grid, whose flags must be at rest.  And where a grid leaves some
 * multiprocessors idle but not enough for the whole next one, part of that settles there
 * and the rest comes late: 13 % slower at [5376, 21504] and 84 blocks. */
static bool overlap_pays(const ct_gemm_plan *p, const ct_gemm_device *dev)
{
    return !p->chain && (p->grid * 2 <= dev->n_sms || p->grid * 10 >= dev->n_sms * 9);
}

void ct_gemm_plan_make(ct_gemm_plan *p, const ct_gemm_device *dev, const ct_gemm_shape *w,
                       ct_gemm_kernel kernel, int m, unsigned wishes)
{
    const ct_gemm_traits *t = &traits[kernel];
    const bool share = wishes & CT_GEMM_SHARE && t->n <= 64;
    int tiles;

    assert(m > 0);
    *p = (ct_gemm_plan){.kernel = kernel};
    p->r = ct_gemm_tile_rows(dev, w, kernel);
    p->slot = div_up(p->r, 8) * 1024;
    p->n_kb = div_up(w->cols, (int64_t)CT_GEMM_ATOM_K * t->atoms);
    p->tiles_w = div_up(w->rows, (int64_t)p->r * t->cluster_w);
    p->tiles_x = div_up(m, (int64_t)t->n * t->cluster_x);
    p->group_x = div_up(SWEEP_ROWS, (int64_t)t->n * t->cluster_x);
    tiles = p->tiles_w * p->tiles_x;
    p->grid = min_int(tiles * t->cluster_w * t->cluster_x, resident_for(dev, t));
    /* Below one wave a tile would be waited for longer than it takes. */
    p->chain =
        wishes & CT_GEMM_CHAIN && t->bulk && tiles % (p->grid / (t->cluster_w * t->cluster_x)) != 0;
    p->overlap = overlap_pays(p, dev);
    /* A kilobyte of each block belongs to the system. */
    ring_for(p, t, share ? dev->smem_sm_bytes / 2 - 1024 : dev->smem_bytes);
}

/* Clocks of one k16 step of a tile: the slowest of four units, with what each reached in
 * measurements on an H200, and a little for the L2, which is never quite hidden. */
static double step_clocks(const ct_gemm_device *dev, const ct_gemm_plan *p)
{
    const ct_gemm_traits *t = &traits[p->kernel];
    const int rows = GROUP_ROWS * t->groups;
    /* The tensor cores do 64 rows by two columns a clock. */
    const double tensor = 1.06 * t->groups * t->n / 2;
    /* Shared memory moves 128 bytes a clock: every group reads its rows of W and all of X,
     * and the copy engine writes both. */
    const double shared = 1.1 * (t->groups * (2048 + t->n * 32) + (rows + t->n) * 32) / 128;
    /* The L2 feeds all multiprocessors together with about 9 TB/s. */
    const double l2 =
        (rows / t->cluster_x + t->n / t->cluster_w) * 32 / 38.0 * p->grid / dev->n_sms;
    /* One group alone waits for its own last step. */
    const double latency = t->groups == 1 ? 95 : 0;

    return fmax(fmax(tensor, shared), fmax(l2, latency)) + 0.08 * l2;
}

/* Clocks of a product of more than 64 rows.  The choice by it is within 0.2 % of the best
 * on average, and 2 % at worst, over the weights of both dense models and 128 to 8,192
 * rows. */
static double cost_of(const ct_gemm_device *dev, const ct_gemm_shape *w, const ct_gemm_plan *p)
{
    const ct_gemm_traits *t = &traits[p->kernel];
    const double waves = (double)p->tiles_w * p->tiles_x * t->cluster_w * t->cluster_x / p->grid;
    const double tile = div_up(w->cols, 16) * step_clocks(dev, p);
    const double between = 3000 + 11 * t->n; /* epilogue, and filling the ring again */

    if (!p->chain)
        return ceil(waves) * (tile + between);
    /* Two parts of a tile more to begin and to hand over; and shares are at different k at
     * one time, so they do not meet in the L2: worse the longer K is. */
    return 1.06 * waves * (tile + between) + 3 * between +
           0.4 * fmax(0, w->cols / 5376.0 - 0.7) * tile;
}

static void pick_many(ct_gemm_plan *p, const ct_gemm_device *dev, const ct_gemm_shape *w, int m)
{
    double best = 0;

    for (int k = CT_GEMM_MID128; k < CT_GEMM_N_KERNELS; k++)
        for (unsigned wish = 0; wish <= CT_GEMM_CHAIN; wish++) {
            ct_gemm_plan q;
            double cost;

            /* Stores of gate and up want whole buffers of 64 rows. */
            if (w->gate_up && traits[k].n % 64 != 0)
                continue;
            ct_gemm_plan_make(&q, dev, w, (ct_gemm_kernel)k, m, wish);
            cost = cost_of(dev, w, &q);
            if (best == 0 || cost < best) {
                best = cost;
                *p = q;
            }
        }
}

/* Up to 64 rows reading W decides, unless W has few rows: then the length of a chain does
 * (blocks < 0.5), or X, which every multiprocessor reads (64 rows). */
static void pick_few(ct_gemm_plan *p, const ct_gemm_device *dev, const ct_gemm_shape *w, int m)
{
    /* Of 64 rows of W, for each multiprocessor. */
    const double blocks = w->rows / ((double)GROUP_ROWS * dev->n_sms);
    const bool narrow = blocks < 0.5;
    /* So little that the next launch had better begin before this one ends. */
    const bool small = narrow && (double)w->rows * w->cols < 20e6;
    ct_gemm_kernel kernel;

    if (m <= 8)
        kernel = narrow ? CT_GEMM_WARP8 : CT_GEMM_WIDE8;
    else if (m <= 16)
        kernel = narrow ? CT_GEMM_WARP16 : CT_GEMM_WIDE16;
    else if (m <= 32)
        kernel = narrow ? CT_GEMM_WARP32 : CT_GEMM_WIDE32;
    else
        kernel = narrow ? CT_GEMM_SPLIT64 : blocks < 0.8 ? CT_GEMM_QUAD64 : CT_GEMM_WIDE64;
    ct_gemm_plan_make(p, dev, w, kernel, m, small && m <= 16 ? CT_GEMM_SHARE : 0);
}

void ct_gemm_plan_pick(ct_gemm_plan *p, const ct_gemm_device *dev, const ct_gemm_shape *w, int m)
{
    if (m <= 64)
        pick_few(p, dev, w, m);
    else
        pick_many(p, dev, w, m);
}

size_t ct_gemm_plan_carry_bytes(const ct_gemm_device *dev)
{
    size_t most = 0;

    for (int i = 0; i < CT_GEMM_N_KERNELS; i++) {
        /* One accumulator an output of a block's tile. */
        const size_t bytes = (size_t)traits[i].n * GROUP_ROWS * traits[i].groups * sizeof(float);

        if (traits[i].bulk && bytes > most)
            most = bytes;
    }
    return most * (size_t)dev->n_sms;
}

size_t ct_gemm_plan_flag_bytes(const ct_gemm_device *dev)
{
    return (size_t)dev->n_sms * 2 * sizeof(uint32_t);
}
