/* The closed set of model operations: the seam between forward.c and the hardware.
 *
 * A backend is a table of these functions plus its own state.  Every operation works
 * on a ragged batch of T rows (tokens of any number of sequences) and gives each row
 * the same bits whatever the other rows are.  Activations are backend buffers,
 * row-major, made by `alloc` before the first step; weights are views into the
 * checkpoint; page tables and row descriptions are plain host arrays.  Operations on
 * rows allocate nothing, print nothing and cannot fail: shapes were checked when the
 * weights were bound, ids and page tables by whoever filled them (asserted here).
 * One thread drives a backend.
 *
 * Formulae, shapes and roundings: docs/ops.md. */
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
    CT_WEIGHT_Q4_0,  /* GGUF: blocks of 32 columns, an f16 scale and 16 bytes of nibbles */
    CT_WEIGHT_Q8_0,  /* GGUF: blocks of 32 columns, an f16 scale and 32 signed bytes */
} ct_weight_type;

/* Matrix [rows, cols] used as y = W x: rows are outputs, cols inputs. */
typedef struct ct_weight {
    ct_weight_type type;
    uint32_t rows, cols;
    const void *data;  /* borrowed: checkpoint, or backend once placed.  NVFP4: low nibble is the
                        * even column; Q4_0: low nibbles are columns 0-15 of the block */
    const void *scale; /* NVFP4: e4m3 [rows, cols/16]; FP8: bf16 [rows] */
    float global;      /* NVFP4: multiplier (already inverted for files that store a divisor) */
} ct_weight;

#define CT_NVFP4_BLOCK 16 /* columns that share a scale */
#define CT_Q_BLOCK     32 /* the same, of Q4_0 and Q8_0 */
#define CT_Q4_0_BYTES  18 /* of a block */
#define CT_Q8_0_BYTES  34

#define CT_PAGE_NONE UINT32_MAX

/* Storage of keys and values.  FP8 is e4m3 without a scale: values have unit root mean
 * square, keys that times their norm's weight; what exceeds 448 saturates. */
typedef enum ct_kv_type {
    CT_KV_F32, /* host backends only */
    CT_KV_BF16,
    CT_KV_FP8,
} ct_kv_type;

/* One key/value store of one layer, as attention sees it.  Page tables are indexed
 * by sequence and by block (position / page_tokens): page = pages[seq * max_blocks + block]. */
typedef struct ct_kv_layer {
    /* [n_pages, page_tokens, kv_heads, head_dim].  k is NULL in a folded store: its keys
     * are rope(k_norm * v), rebuilt from the values as stored. */
    void *k, *v;
    ct_kv_type type;
    uint32_t page_tokens, n_pages;
    uint32_t kv_heads, head_dim;
    const uint32_t *pages; /* CT_PAGE_NONE where nothing is resident */
    uint32_t max_blocks;
    uint32_t window; /* keys visible, itself included; 0: all (global layer) */
} ct_kv_layer;

typedef struct ct_rows {
    uint32_t n;          /* T */
    const uint32_t *ids; /* [T] token ids, below the vocabulary */
    const uint32_t *pos; /* [T] absolute positions, from 0 */
    const uint32_t *seq; /* [T] row of the page table */
} ct_rows;

/* What a buffer holds. */
typedef enum ct_elem {
    CT_ELEM_ACT,  /* activations, in the backend's own type */
    CT_ELEM_F32,  /* logits, routing weights, keys and values */
    CT_ELEM_BF16, /* keys and values */
    CT_ELEM_FP8,  /* keys and values: e4m3 */
    CT_ELEM_U32,  /* routing picks */
} ct_elem;

static inline ct_elem ct_kv_elem(ct_kv_type type)
{
    switch (type) {
    case CT_KV_BF16:
        return CT_ELEM_BF16;
    case CT_KV_FP8:
        return CT_ELEM_FP8;
    case CT_KV_F32:
        break;
    }
    return CT_ELEM_F32;
}

/* Bytes of an element on a host backend. */
static inline size_t ct_host_elem_bytes(ct_elem elem)
{
    switch (elem) {
    case CT_ELEM_BF16:
        return sizeof(uint16_t);
    case CT_ELEM_FP8:
        return sizeof(uint8_t);
    case CT_ELEM_ACT:
    case CT_ELEM_F32:
    case CT_ELEM_U32:
        break;
    }
    return sizeof(float);
}

/* The largest step that a backend will be asked for. */
typedef struct ct_limits {
    uint32_t rows;     /* T */
    uint32_t keys;     /* visible to one row: positions of the longest sequence */
    uint32_t cols;     /* widest input of a product or a norm */
    uint32_t group;    /* most query heads that share a key head */
    uint32_t head_dim; /* widest head */
    uint32_t pairs;    /* most turning pairs of a head whose keys are folded; 0: none is */
    /* 0 in dense models. */
    uint32_t n_experts, top_k;
    uint32_t expert_width; /* M */
    uint32_t hidden;       /* H */
} ct_limits;

typedef struct ct_rope {
    double theta;
    uint32_t n_pairs; /* turning pairs, from pair 0; the other pairs have frequency 0 */
} ct_rope;

typedef struct ct_qkv_args {
    void *q;                     /* [T, heads*D], normed and rotated in place */
    const void *k;               /* [T, KVH*D], raw k_proj output */
    const void *v;               /* raw v_proj output; equal to k in global layers */
    const void *q_norm, *k_norm; /* bf16 [D] */
    uint32_t n_heads;
    float eps;
    ct_rope rope;
    const ct_kv_layer *kv; /* written at (seq, pos); k_norm is not applied when it is folded */
} ct_qkv_args;

typedef struct ct_attend_args {
    void *out;     /* [T, heads*D] */
    const void *q; /* [T, heads*D], normed and rotated */
    uint32_t n_heads;
    const ct_kv_layer *kv;
    /* For folded stores; the same as in qkv_finish. */
    const void *k_norm; /* bf16 [D] */
    ct_rope rope;
} ct_attend_args;

typedef struct ct_add_norm_args {
    void *x;            /* [T,H] residual stream, updated: (x + rms(y; post)) * scalar */
    const void *y;      /* [T,H] branch output */
    const void *post;   /* bf16 [H] */
    const void *scalar; /* bf16 [1], or NULL for none */
    const void *next;   /* bf16 [H]: out = rms(x; next) */
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

    /* From now on nothing is taken, only counted, and buffers are NULL: for plans.  Before
     * anything else. */
    void (*meter)(ct_backend *b);
    uint64_t (*bytes)(const ct_backend *b); /* taken or counted by reserve and alloc */
    /* Before the first step: working memory for steps up to these limits. */
    ct_status (*reserve)(ct_backend *b, const ct_limits *limits, ct_error *err);
    /* Zeroed buffer of n elements, freed with the backend. */
    ct_status (*alloc)(ct_backend *b, void **out, ct_elem elem, size_t n, ct_error *err);
    /* Before the first step, of every matrix and every bf16 vector [n] once: brings it to
     * where and how the operations want it (repacked, on the device) and changes the view,
     * which the backend owns from then on.  The checkpoint's pages may be dropped from
     * memory behind it.  Both NULL: checkpoints are read as they are. */
    ct_status (*place)(ct_backend *b, ct_weight *w, ct_error *err);
    ct_status (*place_vector)(ct_backend *b, const void **v, size_t n, ct_error *err);
    /* Copies n elements of any but a U32 buffer, from `first` on, to host floats.
     * The one operation that waits for the others. */
    ct_status (*read)(ct_backend *b, float *out, const void *x, ct_elem elem, size_t first,
                      size_t n, ct_error *err);

    /* x[T,H] = table[id] * scale; scale is bf16(sqrt(H)). */
    void (*embed)(ct_backend *b, void *x, const ct_rows *rows, const ct_weight *table, float scale);
    /* y = x / sqrt(mean(x^2) + eps) * w; w bf16 [width].  y may be x. */
    void (*rms_norm)(ct_backend *b, void *y, const void *x, const void *w, uint32_t T,
                     uint32_t width, float eps);
    /* y[T, w.rows] = x[T, w.cols] W^T. */
    void (*linear)(ct_backend *b, void *y, const void *x, const ct_weight *w, uint32_t T);
    /* Head norms, RoPE, and the cache write. */
    void (*qkv_finish)(ct_backend *b, const ct_rows *rows, const ct_qkv_args *a);
    /* out = causal softmax(q k) v over the resident keys; no 1/sqrt(D). */
    void (*attend)(ct_backend *b, const ct_rows *rows, const ct_attend_args *a);
    void (*add_norm)(ct_backend *b, const ct_add_norm_args *a, uint32_t T);
    /* y = gelu_tanh(gate) * up, elementwise over T*width.  y may be gate. */
    void (*geglu)(ct_backend *b, void *y, const void *gate, const void *up, uint32_t T,
                  uint32_t width);
    /* y = x + z elementwise: joins the dense and the routed branch.  y may be x. */
    void (*add)(ct_backend *b, void *y, const void *x, const void *z, uint32_t T, uint32_t width);
    /* picks U32 [T,top_k] ascending by expert id, weights F32 [T,top_k]; x[T,H] is the
     * residual stream itself, not a normed copy. */
    void (*route)(ct_backend *b, void *picks, void *weights, const void *x, const ct_router *r,
                  uint32_t T, float eps);
    /* y[T,H] = sum over picks of weight * down(gelu(gate x) * (up x)). */
    void (*experts)(ct_backend *b, void *y, const void *x, const void *picks, const void *weights,
                    const ct_expert_weights *e, uint32_t T);
    /* y[i] = x[index[i]] for whole rows; index is a host array. */
    void (*gather)(ct_backend *b, void *y, const void *x, const uint32_t *index, uint32_t n,
                   uint32_t width);
    /* logits F32 [n,V] = softcap * tanh(table x / softcap); x[n,H] is final-normed. */
    void (*head)(ct_backend *b, void *logits, const void *x, const ct_weight *table, uint32_t n,
                 float softcap);
    void (*destroy)(ct_backend *b);
} ct_ops;

/* First member of every backend's own struct. */
struct ct_backend {
    const ct_ops *ops;
};

#endif
