#include "format/geometry.h"

#include "base/checked.h"

/* Global layers come every sixth, the last one included. */
#define GLOBAL_PERIOD 6

typedef struct geometry {
    const char *name;
    ct_arch arch;
    uint32_t hidden, intermediate, n_layers, n_heads, n_kv_sliding, n_kv_global;
    uint32_t n_experts, top_k, moe_intermediate;
} geometry;

/* The published config.json of google/gemma-4-{12B,26B-A4B,31B}-it. */
static const geometry published[] = {
    {"12b", CT_ARCH_GEMMA4_UNIFIED, 3840, 15360, 48, 16, 8, 1, 0, 0, 0},
    {"26b-a4b", CT_ARCH_GEMMA4, 2816, 2112, 30, 16, 8, 2, 128, 8, 704},
    {"31b", CT_ARCH_GEMMA4, 5376, 21504, 60, 32, 16, 4, 0, 0, 0},
};

static void fill(ct_config *c, const geometry *g)
{
    *c = (ct_config){
        .arch = g->arch,
        .vocab = 262144,
        .hidden = g->hidden,
        .intermediate = g->intermediate,
        .n_layers = g->n_layers,
        .n_heads = g->n_heads,
        .n_kv_sliding = g->n_kv_sliding,
        .n_kv_global = g->n_kv_global,
        .hd_sliding = 256,
        .hd_global = 512,
        .window = 1024,
        .max_positions = 262144,
        .eps = 1e-6f,
        .softcap = 30.0f,
        .rope_theta_sliding = 1e4,
        .rope_theta_global = 1e6,
        .rope_partial_global = 0.25,
        .moe = g->n_experts != 0,
        .n_experts = g->n_experts,
        .top_k = g->top_k,
        .moe_intermediate = g->moe_intermediate,
    };
    for (uint32_t l = 0; l < g->n_layers; l++)
        c->is_global[l] = (l + 1) % GLOBAL_PERIOD == 0;
}

ct_status ct_geometry_config(ct_config *out, ct_str name, ct_error *err)
{
    for (size_t i = 0; i < CT_LEN(published); i++)
        if (ct_str_eq(name, ct_str_of(published[i].name))) {
            fill(out, &published[i]);
            return CT_OK;
        }
    return ct_fail(err, CT_EINVAL, "no model is called '%.*s'; there are 12b, 26b-a4b and 31b",
                   CT_STR_ARG(name));
}
