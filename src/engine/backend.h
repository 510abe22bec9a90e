/* Backends by name. */
#ifndef CT_ENGINE_BACKEND_H
#define CT_ENGINE_BACKEND_H

#include "base/pool.h"
#include "ops/ops.h"

typedef struct ct_backend_options {
    const char *name; /* NULL: the best present */
    bool round_bf16;  /* round activations where the bf16 reference does: ref only */
} ct_backend_options;

/* pool is borrowed.  A name that this build lacks is refused with those it has; NULL with
 * round_bf16 is ref. */
ct_status ct_backend_open(ct_backend **out, const ct_backend_options *how, ct_pool *pool,
                          ct_error *err);

#endif
