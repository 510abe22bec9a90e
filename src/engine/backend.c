#include "engine/backend.h"

#include "ops/cpu/cpu.h"
#include "ops/ref/ref.h"

#include <string.h>

ct_status ct_backend_open(ct_backend **out, const ct_backend_options *how, ct_pool *pool,
                          ct_error *err)
{
    const char *name = how->name ? how->name : how->round_bf16 ? "ref" : "cpu";

    if (!strcmp(name, "ref"))
        return ct_ref_create(out, how->round_bf16 ? CT_REF_BF16 : CT_REF_F32, pool, err);
    if (strcmp(name, "cpu") != 0)
        return ct_fail(err, CT_EUNSUPPORTED, "backend '%s' is not in this build; it has: ref, cpu",
                       name);
    if (how->round_bf16)
        return ct_fail(err, CT_EUNSUPPORTED,
                       "backend 'cpu' has no bf16 mode; --mode bf16 goes with --backend ref");
    return ct_cpu_create(out, ct_cpu_level_best(), pool, err);
}
