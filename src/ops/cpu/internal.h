/* What the files of the CPU backend share.  Activations are f32. */
#ifndef CT_OPS_CPU_INTERNAL_H
#define CT_OPS_CPU_INTERNAL_H

#include "base/num.h"
#include "ops/cpu/cpu.h"
#include "ops/cpu/kernels.h"
#include "ops/host_memory.h"

/* Output rows of a matrix that one work item computes for every row of x: eight rows of
 * bf16 weights at a time keep several streams open, and 16 share one decoding. */
#define CT_CPU_TILE 16
/* Keys that attention decodes at a time. */
#define CT_CPU_KEYS 32

/* Working memory of one thread. */
typedef struct cpu_scratch {
    float *tile;   /* [max(CT_CPU_TILE, CT_CPU_KEYS), limits.cols]: decoded weights or keys */
    float *values; /* [CT_CPU_KEYS, limits.cols]: decoded values */
    float *scores; /* [limits.group, limits.keys] */
} cpu_scratch;

/* Cosines, then sines, of positions for one rope. */
typedef struct cpu_turns {
    float *at;           /* [n, 2, rope.n_pairs] */
    const uint32_t *pos; /* what `at` was made for; NULL: 0, 1, 2, … */
    ct_rope rope;
    uint32_t head_dim;
    uint32_t n; /* positions filled */
} cpu_turns;

typedef struct ct_cpu {
    ct_backend base;
    const ct_cpu_kernels *kernels;
    ct_pool *pool; /* borrowed */
    ct_host_memory memory;
    float e4m3[256];      /* decoded once */
    ct_limits limits;     /* of reserve */
    cpu_scratch *scratch; /* [threads] */
    float *inv;           /* [limits.head_dim / 2]: frequencies of a rope */
    float *k_weight;      /* [limits.head_dim]: k_norm of the layer at work */
    cpu_turns key_turns;  /* of the keys of folded stores, by position */
    /* Of the rows of the step, for each kind of layer: computed by its first layer. */
    cpu_turns row_turns[2];
    uint32_t *row_pos[2]; /* [limits.rows] */
    /* Routing and experts, for limits.rows rows.  Pairs (row, slot) are sorted by expert;
     * the arrays over pairs are in that order. */
    float *route_in, *route_logits;                  /* [rows, hidden], [rows, n_experts] */
    float *pair_in, *pair_gate, *pair_up, *pair_out; /* [pairs, hidden or expert_width] */
    uint32_t *pair_row, *pair_place; /* [pairs]: row of a place, place of (row, slot) */
    uint32_t *expert_start;          /* [n_experts + 1] into the places */
} ct_cpu;

static inline ct_cpu *ct_cpu_of(ct_backend *b)
{
    return (ct_cpu *)b;
}

/* Element i of a bf16 vector of the checkpoint. */
static inline float ct_cpu_bf16(const void *v, size_t i)
{
    uint16_t h;

    memcpy(&h, (const unsigned char *)v + i * sizeof h, sizeof h);
    return ct_bf16_f32(h);
}

/* fn over items; on this thread alone when the whole (in multiply-adds) is too small to
 * be worth waking the others. */
void ct_cpu_run(ct_cpu *c, size_t n_items, double work, ct_pool_fn *fn, void *ctx);

/* y = rms(x; w), without weight when w is NULL.  y may be x. */
void ct_cpu_norm(float *y, const float *x, const void *w, size_t n, float eps);
/* n rows of w from `first` on as f32, into out with w->cols to a row. */
void ct_cpu_decode(const ct_cpu *c, float *out, const ct_weight *w, size_t first, size_t n);
/* y[t * ldy + i] = weight row (first + i) . x row t for n rows of w; tile is scratch. */
void ct_cpu_product(const ct_cpu *c, float *y, size_t ldy, const ct_weight *w, size_t first,
                    size_t n, ct_cpu_rows x, float *tile);

/* The operations, by file. */
/* linear.c */
void ct_cpu_embed(ct_backend *b, void *x, const ct_rows *rows, const ct_weight *table, float scale);
void ct_cpu_linear(ct_backend *b, void *y, const void *x, const ct_weight *w, uint32_t T);
void ct_cpu_gather(ct_backend *b, void *y, const void *x, const uint32_t *index, uint32_t n,
                   uint32_t width);
void ct_cpu_head(ct_backend *b, void *logits, const void *x, const ct_weight *table, uint32_t n,
                 float softcap);
/* norm.c */
void ct_cpu_rms_norm(ct_backend *b, void *y, const void *x, const void *w, uint32_t T,
                     uint32_t width, float eps);
void ct_cpu_add_norm(ct_backend *b, const ct_add_norm_args *a, uint32_t T);
void ct_cpu_add(ct_backend *b, void *y, const void *x, const void *z, uint32_t T, uint32_t width);
/* attention.c */
void ct_cpu_qkv_finish(ct_backend *b, const ct_rows *rows, const ct_qkv_args *a);
void ct_cpu_attend(ct_backend *b, const ct_rows *rows, const ct_attend_args *a);
/* ffn.c */
void ct_cpu_geglu(ct_backend *b, void *y, const void *gate, const void *up, uint32_t T,
                  uint32_t width);
void ct_cpu_route(ct_backend *b, void *picks, void *weights, const void *x, const ct_router *router,
                  uint32_t T, float eps);
void ct_cpu_experts(ct_backend *b, void *y, const void *x, const void *picks, const void *weights,
                    const ct_expert_weights *e, uint32_t T);

#endif
