/* The closed set of model operations: the seam between forward.c and the hardware.
 *
 * A backend is a table of these functions plus its own state.  Every operation works
 * on a ragged batch of T rows (tokens of any number of sequences) and gives each row
 * the same bits whatever the other rows are.  Activations are backend buffers of
 * [rows, width] elements, row-major, made by `alloc` before the first step; weights
 * are views into the checkpoint; page tables and row descriptions are plain arrays.
 * No operation allocates or prints.  One thread drives a backend.
 *
 * Formulae: docs/ops.md restates them beside the names used here. */
#ifndef CT_OPS_OPS_H
#define CT_OPS_OPS_H

#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum ct_weight_type {
    CT_WEIGHT_NONE, /* absent, e.g. v_proj of a global layer */
    CT_WEIGHT_BF16,
    CT_WEIGHT_NVFP4, /* e2m1 pairs, e4m3 scale a 16-column block, one f32 multiplier */
    CT_WEIGHT_FP8,   /* e4m3, one bf16 multiplier a row */
} ct_weight_type;

/* Matrix [rows, cols] used as y = W x: rows are outputs, cols inputs. */
typedef struct ct_weight {
    ct_weight_type type;
    uint32_t rows, cols;
    const void *data;  /* borrowed: checkpoint */
    const void *scale; /* NVFP4: e4m3 [rows, cols/16]; FP8: bf16 [rows] */
    float global;      /* NVFP4: multiplier (already inverted for files that store a divisor) */
} ct_weight;

/* One key/value store of one layer, as attention sees it.  Page tables are indexed
 * by sequence and by block (position / page_tokens): page = pages[seq * max_blocks + block]. */
typedef struct ct_kv_layer {
    void *k, *v; /* [n_pages, page_tokens, kv_heads, head_dim] in the backend's KV type */
    uint32_t page_tokens, n_pages;
    uint32_t kv_heads, head_dim;
    const uint32_t *pages; /* CT_PAGE_NONE where nothing is resident */
    uint32_t max_blocks;
    uint32_t window; /* keys visible, itself included; 0: all (global layer) */
} ct_kv_layer;

#define CT_PAGE_NONE UINT32_MAX

typedef struct ct_rows {
    uint32_t n;          /* T */
    const uint32_t *ids; /* [T] token ids */
    const uint32_t *pos; /* [T] absolute positions, from 0 */
    const uint32_t *seq; /* [T] row of the page table */
} ct_rows;

typedef struct ct_rope {
    double theta;
    uint32_t n_pairs; /* turning pairs, from pair 0; the other pairs have frequency 0 */
} ct_rope;

typedef struct ct_qkv_args {
    void *q;                     /* [T, n_heads*D], normed and rotated in place */
    const void *k;               /* [T, KVH*D], raw k_proj output */
    const void *v;               /* raw v_proj output; equal to k in global layers */
    const void *q_norm, *k_norm; /* bf16 [D] */
    uint32_t n_heads;
    float eps;
    ct_rope rope;
    const ct_kv_layer *kv; /* written at (seq, pos) */
} ct_qkv_args;

typedef struct ct_add_norm_args {
    void *x;            /* [T,H] residual stream, updated: (x + rms(y; post)) * scalar */
    const void *y;      /* [T,H] branch output */
    const void *post;   /* bf16 [H] */
    const void *scalar; /* bf16 [1], or NULL for none */
    const void *next;   /* bf16 [H]: out = rms(x; next); NULL: no output */
    void *out;          /* [T,H] */
    uint32_t width;     /* H */
    float eps;
} ct_add_norm_args;

typedef struct ct_router {
    ct_weight proj;               /* [E,H] */
    const void *scale;            /* bf16 [H] */
    const void *per_expert_scale; /* bf16 [E] */
    uint32_t n_experts, top_k;
} ct_router;

/* Weights of the routed experts; gate, up [M,H] and down [H,M] each, arrays of E. */
typedef struct ct_expert_weights {
    const ct_weight *gate, *up, *down;
    uint32_t n_experts, top_k;
} ct_expert_weights;

typedef struct ct_backend ct_backend;

typedef struct ct_ops {
    const char *name;

    /* Buffer of rows*width activation elements, zeroed; freed with the backend. */
    ct_status (*alloc)(ct_backend *b, void **out, size_t rows, size_t width, ct_error *err);
    /* Storage for one layer's k or v: n elements of the KV type, zeroed; likewise. */
    ct_status (*alloc_kv)(ct_backend *b, void **out, size_t n_elems, ct_error *err);
    /* Copies the first n elements of an activation buffer to host floats. */
    ct_status (*read)(ct_backend *b, float *out, const void *x, size_t n, ct_error *err);

    /* x[T,H] = table[id] * scale, scale = bf16(sqrt(H)). */
    void (*embed)(ct_backend *b, void *x, const ct_rows *rows, const ct_weight *table, float scale);
    /* y = x / sqrt(mean(x^2) + eps) * w; w bf16 [width] or NULL for the weightless form. */
    void (*rms_norm)(ct_backend *b, void *y, const void *x, const void *w, uint32_t T,
                     uint32_t width, float eps);
    /* y[T, w.rows] = x[T, w.cols] W^T. */
    void (*linear)(ct_backend *b, void *y, const void *x, const ct_weight *w, uint32_t T);
    void (*qkv_finish)(ct_backend *b, const ct_rows *rows, const ct_qkv_args *a);
    /* out[T, n_heads*D]: causal softmax(q k) v over the resident keys; no 1/sqrt(D). */
    void (*attend)(ct_backend *b, void *out, const void *q, const ct_rows *rows, uint32_t n_heads,
                   const ct_kv_layer *kv);
    void (*add_norm)(ct_backend *b, const ct_add_norm_args *a, uint32_t T);
    /* y = gelu_tanh(gate) * up, elementwise over T*width. */
    void (*geglu)(ct_backend *b, void *y, const void *gate, const void *up, uint32_t T,
                  uint32_t width);
    /* y = a + b elementwise: joins the dense and the routed branch. */
    void (*add)(ct_backend *b, void *y, const void *a, const void *c, uint32_t T, uint32_t width);
    /* picks[T,top_k] ascending by expert id, weights[T,top_k]; x is the residual stream.
     * Both outputs are backend buffers made by alloc (picks hold whole numbers). */
    void (*route)(ct_backend *b, void *picks, void *weights, const void *x, const ct_router *r,
                  uint32_t T, uint32_t H, float eps);
    /* y[T,H] = sum over picks of weight * down(gelu(gate x) * (up x)). */
    void (*experts)(ct_backend *b, void *y, const void *x, const void *picks, const void *weights,
                    const ct_expert_weights *e, uint32_t T);
    /* logits[n, V] in f32 on the host side of the seam: softcap * tanh(table·x / softcap);
     * x[n,H] is already final-normed. */
    void (*head)(ct_backend *b, void *logits, const void *x, const ct_weight *table, uint32_t n,
                 float softcap);
    /* y[i] = x[index[i]] for whole rows. */
    void (*gather)(ct_backend *b, void *y, const void *x, const uint32_t *index, uint32_t n,
                   uint32_t width);
    void (*destroy)(ct_backend *b);
} ct_ops;

/* First member of every backend's own struct. */
struct ct_backend {
    const ct_ops *ops;
};

#endif
