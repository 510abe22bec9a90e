/* What the files of the reference backend share.
 *
 * Every sum of products runs in double through ct_ref_dot or in ascending order of
 * its index; every result is rounded once, by ct_ref_round.  Work is cut so that no
 * result depends on T, on the thread count or on which thread computes it. */
#ifndef CT_OPS_REF_INTERNAL_H
#define CT_OPS_REF_INTERNAL_H

#include "base/num.h"
#include "ops/ref/ref.h"

typedef struct ref_block ref_block;

/* Working memory of one thread. */
typedef struct ref_scratch {
    double *rows; /* [2 * CT_REF_TILE, limits.cols]: decoded weights, or a row of x */
    double *keys; /* [limits.group, limits.keys]: scores, then probabilities */
    float *turn;  /* [limits.cols]: cosines, then sines, of one position */
    float *span;  /* [CT_REF_SPAN, limits.cols]: keys or values as numbers */
} ref_scratch;

/* Most positions whose keys or values are decoded at once. */
#define CT_REF_SPAN 16

/* Output rows of a matrix that one work item decodes and applies to every row of x:
 * the decoding is shared by the rows, and a tile stays in the first-level cache. */
#define CT_REF_TILE 4

/* Cosines and sines for keys that attention rebuilds, by position; filled as far as a
 * step has asked for. */
typedef struct ref_turns {
    float *at; /* [limits.keys, 2 * limits.pairs]: of position p at p * 2 * rope.n_pairs */
    ct_rope rope;
    uint32_t head_dim, n; /* positions filled, for this rope and head */
} ref_turns;

typedef struct ct_ref {
    ct_backend base;
    ct_ref_rounding rounding;
    ct_pool *pool;        /* borrowed */
    ref_block *blocks;    /* everything allocated */
    float e4m3[256];      /* decoded once */
    ct_limits limits;     /* of reserve */
    ref_scratch *scratch; /* [threads] */
    float *rope_inv;      /* [limits.cols / 2] */
    ref_turns turns;
    /* Routing and experts, for limits.rows rows; pair = (row, slot) in row-major order. */
    float *route_in, *route_logits; /* [rows, hidden], [rows, n_experts] */
    float *pair_act, *pair_out;     /* [pairs, expert_width], [pairs, hidden] */
    uint32_t *pair_order;           /* [pairs] grouped by expert, ascending within one */
    uint32_t *expert_start;         /* [n_experts + 1] into pair_order */
} ct_ref;

static inline ct_ref *ct_ref_of(ct_backend *b)
{
    return (ct_ref *)b;
}

/* Rounds to the type of activations. */
static inline float ct_ref_round(const ct_ref *r, double v)
{
    return r->rounding == CT_REF_BF16 ? ct_round_bf16((float)v) : (float)v;
}

/* Element i of a bf16 vector of the checkpoint. */
static inline float ct_ref_bf16(const void *v, size_t i)
{
    uint16_t h;

    memcpy(&h, (const unsigned char *)v + i * sizeof h, sizeof h);
    return ct_bf16_f32(h);
}

/* Sum of a[i]*b[i]: eight partial sums over i mod 8, joined in a fixed order. */
double ct_ref_dot(const double *a, const float *b, size_t n);
/* acc[i] += the sum over rows of p[row] * x[row * stride + i], ascending by row. */
void ct_ref_mix(double *acc, const double *p, const float *x, size_t stride, size_t n_rows,
                size_t n);
/* y = rms(x; w), without weight when w is NULL; rounded once.  y may be x; wide has room
 * for n. */
void ct_ref_norm(const ct_ref *r, float *y, const float *x, const void *w, size_t n, float eps,
                 double *wide);
double ct_ref_gelu(double z);

/* n elements of a buffer, from `first` on, as numbers. */
void ct_ref_load(const ct_ref *r, float *out, const void *x, ct_elem elem, size_t first, size_t n);
/* And back, each rounded to the buffer's type. */
void ct_ref_store(void *x, ct_elem elem, size_t first, const float *in, size_t n);

/* Row `row` of w as doubles. */
void ct_ref_decode_row(const ct_ref *r, double *out, const ct_weight *w, size_t row);

/* fn over items; on this thread alone when the whole (in multiply-adds) is too small to
 * be worth waking the others. */
void ct_ref_run(ct_ref *r, size_t n_items, double work, ct_pool_fn *fn, void *ctx);

/* inv[i] = theta^(-2i/D) in f32 as Hugging Face computes it, 0 from n_pairs to D/2. */
void ct_ref_rope_inv(float *inv, const ct_rope *rope, uint32_t head_dim);
/* turn = cos, then sin, of the angles pos * inv; n_pairs of each. */
void ct_ref_rope_turn(const ct_ref *r, float *turn, const float *inv, uint32_t pos,
                      uint32_t n_pairs);
/* Rotates the first pairs of x[D] in place; the others have an angle of 0. */
void ct_ref_rope(const ct_ref *r, float *x, const float *turn, uint32_t n_pairs, uint32_t head_dim);

/* The operations, by file. */
/* linear.c */
void ct_ref_embed(ct_backend *b, void *x, const ct_rows *rows, const ct_weight *table, float scale);
void ct_ref_linear(ct_backend *b, void *y, const void *x, const ct_weight *w, uint32_t T);
void ct_ref_gather(ct_backend *b, void *y, const void *x, const uint32_t *index, uint32_t n,
                   uint32_t width);
void ct_ref_head(ct_backend *b, void *logits, const void *x, const ct_weight *table, uint32_t n,
                 float softcap);
/* norm.c */
void ct_ref_rms_norm(ct_backend *b, void *y, const void *x, const void *w, uint32_t T,
                     uint32_t width, float eps);
void ct_ref_add_norm(ct_backend *b, const ct_add_norm_args *a, uint32_t T);
void ct_ref_add(ct_backend *b, void *y, const void *x, const void *z, uint32_t T, uint32_t width);
/* attention.c */
void ct_ref_qkv_finish(ct_backend *b, const ct_rows *rows, const ct_qkv_args *a);
void ct_ref_attend(ct_backend *b, const ct_rows *rows, const ct_attend_args *args);
/* ffn.c */
void ct_ref_geglu(ct_backend *b, void *y, const void *gate, const void *up, uint32_t T,
                  uint32_t width);
void ct_ref_route(ct_backend *b, void *picks, void *weights, const void *x, const ct_router *router,
                  uint32_t T, float eps);
void ct_ref_experts(ct_backend *b, void *y, const void *x, const void *picks, const void *weights,
                    const ct_expert_weights *e, uint32_t T);

#endif
