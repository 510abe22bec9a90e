#include "engine/backend.h"

#include "ops/ref/ref.h"

#include <string.h>

ct_status ct_backend_open(ct_backend **out, const ct_backend_options *how, ct_pool *pool,
                          ct_error *err)
{
    const char *name = how->name ? how->name : "ref";

    if (strcmp(name, "ref") != 0)
        return ct_fail(err, CT_EUNSUPPORTED, "backend '%s' is not in this build; it has: ref",
                       name);
    return ct_ref_create(out, how->round_bf16 ? CT_REF_BF16 : CT_REF_F32, pool, err);
}
