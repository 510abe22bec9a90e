/* The reference backend: the definition that every other backend is tested against.
 * Activations and KV are f32; sums are in double, in one fixed order. */
#ifndef CT_OPS_REF_REF_H
#define CT_OPS_REF_REF_H

#include "base/pool.h"
#include "ops/ops.h"

typedef enum ct_ref_rounding {
    CT_REF_F32,  /* the definition */
    CT_REF_BF16, /* rounds to bf16 wherever Hugging Face's bf16 eager path does */
} ct_ref_rounding;

/* pool is borrowed and must outlive the backend.  Destroy with b->ops->destroy(b). */
ct_status ct_ref_create(ct_backend **out, ct_ref_rounding rounding, ct_pool *pool, ct_error *err);

#endif
