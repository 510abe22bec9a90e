/* The tensors of a Gemma 4 text model by name, and their shapes
 * for one config. */
#ifndef CT_MODEL_TENSOR_TABLE_H
#define CT_MODEL_TENSOR_TABLE_H

#include "format/config.h"

typedef enum ct_where {
    CT_WHERE_TOP,     /* once */
    CT_WHERE_EVERY,   /* in every layer */
    CT_WHERE_SLIDING, /* in sliding layers */
    CT_WHERE_MOE,     /* in every layer of a mixture */
    CT_WHERE_FUSED,   /* the same, where experts are two tensors; behind the expert path */
    CT_WHERE_SPLIT,   /* once an expert, where they are modules of their own; likewise */
} ct_where;

typedef enum ct_dim {
    CT_DIM_NONE,
    CT_DIM_ONE,
    CT_DIM_V,  /* vocabulary */
    CT_DIM_H,  /* hidden */
    CT_DIM_I,  /* dense intermediate */
    CT_DIM_Q,  /* query heads * head size */
    CT_DIM_KV, /* key/value heads * head size */
    CT_DIM_D,  /* head size */
    CT_DIM_E,  /* experts */
    CT_DIM_M,  /* expert intermediate */
    CT_DIM_2M, /* gate rows, then up rows */
} ct_dim;

typedef struct ct_tensor_row {
    const char *name; /* of a linear module: without ".weight" */
    ct_where where;
    bool linear; /* a module that may be quantised */
    ct_dim dim[3];
} ct_tensor_row;

extern const ct_tensor_row ct_tensor_table[];
extern const size_t ct_n_tensor_rows;

/* Length of a dimension in one layer (any layer for CT_WHERE_TOP). */
uint32_t ct_dim_length(ct_dim d, const ct_config *c, uint32_t layer);

#endif
