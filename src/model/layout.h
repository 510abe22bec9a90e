/* How one checkpoint names its tensors: prefix, quantisation dialect, where the experts
 * are.  Told from the names themselves, so that the manifest and the weights agree. */
#ifndef CT_MODEL_LAYOUT_H
#define CT_MODEL_LAYOUT_H

#include "format/config.h"
#include "format/safetensors.h"

typedef enum ct_dialect {
    CT_DIALECT_BF16,
    CT_DIALECT_MODELOPT,   /* weight, weight_scale, weight_scale_2: a multiplier */
    CT_DIALECT_COMPRESSED, /* weight_packed, weight_scale, weight_global_scale: a divisor */
} ct_dialect;

typedef struct ct_layout {
    const char *prefix; /* "model.language_model." or "model." */
    ct_dialect dialect;
    const char *expert_path; /* "experts." in most; behind "layers.N." */
    bool split_experts;      /* one module an expert and projection, instead of two tensors */
} ct_layout;

/* Refuses a file that mixes dialects. */
ct_status ct_layout_detect(ct_layout *out, const ct_checkpoint *ckpt, ct_error *err);

/* Writes prefix and the formatted rest; the result lies in buf. */
#define CT_NAME_BYTES 256
ct_str ct_layout_name(const ct_layout *l, char buf[CT_NAME_BYTES], const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* The tensors of one linear module, as far as they are there. */
typedef struct ct_linear_parts {
    const ct_tensor *weight, *packed, *scale, *multiplier, *divisor;
} ct_linear_parts;

typedef enum ct_scheme {
    CT_SCHEME_NONE, /* no weight at all */
    CT_SCHEME_BF16,
    CT_SCHEME_NVFP4,
    CT_SCHEME_FP8,
} ct_scheme;

const char *ct_scheme_name(ct_scheme s);

/* Looks up module.weight, module.weight_scale, …; says what they look like. */
ct_scheme ct_linear_find(ct_linear_parts *out, const ct_checkpoint *ckpt, ct_str module);

#endif
