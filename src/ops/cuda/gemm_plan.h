/* Which kernel computes a product, with which tiles: host arithmetic only, so that it
 * is tested without a GPU.  No choice made here can change a bit of the result (see
 * gemm_kernel.cuh): plans are a question of speed.  Pure functions, any thread. */
#ifndef CT_OPS_CUDA_GEMM_PLAN_H
#define CT_OPS_CUDA_GEMM_PLAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum {
    CT_GEMM_ATOM_K = 64,       /* bf16 in a row of the 128-byte swizzle */
    CT_GEMM_MAX_STAGES = 32,   /* of the ring in shared memory */
    CT_GEMM_HEAD_BYTES = 1024, /* barriers in front of it */
    CT_GEMM_STAGING = 8192,    /* bytes of one store buffer; two a warpgroup */
};

/* The kernels for sm_90a.  The number is rows of X of a tile, or of a cluster's tiles
 * where that is named. */
typedef enum ct_gemm_kernel {
    CT_GEMM_WARP8, /* one consumer group of mma.sync: short chains, for few rows of W */
    CT_GEMM_WARP16,
    CT_GEMM_WARP32,
    CT_GEMM_WIDE8, /* two warpgroups of wgmma along W */
    CT_GEMM_WIDE16,
    CT_GEMM_WIDE32,
    CT_GEMM_WIDE64,
    CT_GEMM_QUAD64,  /* one warpgroup; clusters of four along W share X */
    CT_GEMM_SPLIT64, /* one warpgroup; two blocks share W and divide 64 rows of X */
    CT_GEMM_MID128,  /* one warpgroup */
    CT_GEMM_PAIR128, /* two warpgroups; clusters of two along W share X */
    CT_GEMM_QUAD128, /* two warpgroups; clusters of 2 x 2 share X and W */
    CT_GEMM_PAIR176,
    CT_GEMM_PAIR232,
    CT_GEMM_PAIR256,
    CT_GEMM_QUAD256,
    CT_GEMM_N_KERNELS,
} ct_gemm_kernel;

typedef struct ct_gemm_traits {
    int n;         /* rows of X of a tile */
    int groups;    /* consumer warpgroups, 64 rows of W each */
    int atoms;     /* atoms of 64 k in a stage */
    int cluster_w; /* blocks that share a tile of X */
    int cluster_x; /* blocks that share a tile of W */
    bool bulk;     /* whole tiles of W, stored by the copy engine; may be chained */
} ct_gemm_traits;

typedef struct ct_gemm_device {
    int n_sms;
    int smem_bytes;    /* a block may have */
    int smem_sm_bytes; /* of a multiprocessor */
    int n_pairs;       /* clusters of two blocks resident at once */
    int n_quads;       /* of four */
} ct_gemm_device;

typedef struct ct_gemm_shape {
    int rows, cols; /* of W; rows counts gate and up */
    bool gate_up;
} ct_gemm_shape;

typedef struct ct_gemm_plan {
    ct_gemm_kernel kernel;
    int r;       /* rows of W of a tile */
    int slot;    /* bytes of them in one atom */
    int n_kb;    /* stages' worth of K */
    int stages;  /* of the ring */
    int tiles_w; /* along W, in clusters */
    int tiles_x; /* along X */
    int group_x; /* tiles of X swept across W together */
    int grid;    /* blocks */
    int smem_bytes;
    bool overlap; /* beginning before the launch ahead has ended pays */
    bool chain;   /* the last waves are cut into equal shares, see gemm_kernel.cuh */
} ct_gemm_plan;

const ct_gemm_traits *ct_gemm_traits_get(ct_gemm_kernel kernel);

/* Rows of W in a tile of this kernel: the same for every number of rows of X. */
int ct_gemm_tile_rows(const ct_gemm_device *dev, const ct_gemm_shape *w, ct_gemm_kernel kernel);

/* Wishes, granted where the kernel can. */
enum {
    CT_GEMM_CHAIN = 1, /* cut the last waves into equal shares */
    CT_GEMM_SHARE = 2, /* half the shared memory: the next launch's blocks fit beside */
};

/* A given kernel.  m > 0. */
void ct_gemm_plan_make(ct_gemm_plan *p, const ct_gemm_device *dev, const ct_gemm_shape *w,
                       ct_gemm_kernel kernel, int m, unsigned wishes);

/* The fastest one known for m > 0 rows. */
void ct_gemm_plan_pick(ct_gemm_plan *p, const ct_gemm_device *dev, const ct_gemm_shape *w, int m);

/* Device memory that chained plans need: accumulators on their way, and flags. */
size_t ct_gemm_plan_carry_bytes(const ct_gemm_device *dev);
size_t ct_gemm_plan_flag_bytes(const ct_gemm_device *dev);

#ifdef __cplusplus
}
#endif

#endif
