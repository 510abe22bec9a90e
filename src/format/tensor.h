/* A checkpoint seen as one read-only directory of named tensors, whatever files it
 * is made of.  Views stay valid until the checkpoint is closed. */
#ifndef CT_FORMAT_TENSOR_H
#define CT_FORMAT_TENSOR_H

#include "base/str.h"

#define CT_TENSOR_MAX_DIMS 8
#define CT_TENSOR_MAX_NAME 512 /* bytes; keeps every message about a tensor short */

typedef enum ct_dtype {
    CT_DTYPE_BF16,
    CT_DTYPE_F16,
    CT_DTYPE_F32,
    CT_DTYPE_F64,
    CT_DTYPE_F8_E4M3,
    CT_DTYPE_F8_E5M2,
    CT_DTYPE_U8,
    CT_DTYPE_I8,
    CT_DTYPE_U16,
    CT_DTYPE_I16,
    CT_DTYPE_U32,
    CT_DTYPE_I32,
    CT_DTYPE_U64,
    CT_DTYPE_I64,
    CT_DTYPE_BOOL,
    CT_N_DTYPES,
} ct_dtype;

typedef struct ct_tensor {
    ct_str name;
    ct_dtype dtype;
    unsigned n_dims; /* 0 for a scalar */
    uint64_t dim[CT_TENSOR_MAX_DIMS];
    size_t n_bytes;
    const void *data; /* borrowed: file map; NULL in a headers-only checkpoint */
    unsigned file;    /* index of the file it came from */
} ct_tensor;

const char *ct_dtype_name(ct_dtype t); /* as safetensors spells it: "BF16" */
size_t ct_dtype_bytes(ct_dtype t);
/* 1 to CT_TENSOR_MAX_NAME bytes without control characters. */
bool ct_tensor_name_ok(ct_str name);
bool ct_dtype_parse(ct_str name, ct_dtype *out); /* false when there is none of this name */

#endif
