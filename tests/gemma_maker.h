/* Tensors of a Gemma 4 text model, written down a second time and apart from the code
 * under test, for BF16 and for the quantised forms. */
#ifndef CT_TESTS_GEMMA_MAKER_H
#define CT_TESTS_GEMMA_MAKER_H

#include "maker.h"

typedef enum form { FORM_BF16, FORM_MODELOPT, FORM_COMPRESSED, FORM_FP8 } form;

typedef struct gemma {
    const char *prefix;
    uint64_t V, H, I;
    unsigned L, heads, kv_sliding, kv_global;
    uint64_t hd_sliding, hd_global;
    unsigned E; /* 0: dense */
    uint64_t M;
    form attention, mlp, experts;
    const char *expert_path; /* NULL: "experts." */
    bool split;              /* experts as modules of their own */
    bool no_input_scale, kv_scale;
} gemma;

static const gemma gemma_12b = {.prefix = "model.language_model.",
                                .V = 262144,
                                .H = 3840,
                                .I = 15360,
                                .L = 48,
                                .heads = 16,
                                .kv_sliding = 8,
                                .kv_global = 1,
                                .hd_sliding = 256,
                                .hd_global = 512};
static const gemma gemma_26b = {.prefix = "model.language_model.",
                                .V = 262144,
                                .H = 2816,
                                .I = 2112,
                                .L = 30,
                                .heads = 16,
                                .kv_sliding = 8,
                                .kv_global = 2,
                                .hd_sliding = 256,
                                .hd_global = 512,
                                .E = 128,
                                .M = 704};
static const gemma gemma_31b = {.prefix = "model.language_model.",
                                .V = 262144,
                                .H = 5376,
                                .I = 21504,
                                .L = 60,
                                .heads = 32,
                                .kv_sliding = 16,
                                .kv_global = 4,
                                .hd_sliding = 256,
                                .hd_global = 512};
/* Small enough to hold in memory; every quantised side a multiple of 16. */
static const gemma gemma_tiny = {.prefix = "model.language_model.",
                                 .V = 48,
                                 .H = 32,
                                 .I = 48,
                                 .L = 6,
                                 .heads = 4,
                                 .kv_sliding = 2,
                                 .kv_global = 1,
                                 .hd_sliding = 8,
                                 .hd_global = 16,
                                 .M = 16};

static inline void gemma_linear(maker *m, const gemma *g, form f, uint64_t rows, uint64_t cols,
                                const char *module)
{
    switch (f) {
    case FORM_BF16:
        maker_add(m, CT_DTYPE_BF16, rows, cols, 0, "%s.weight", module);
        break;
    case FORM_MODELOPT:
        maker_add(m, CT_DTYPE_U8, rows, cols / 2, 0, "%s.weight", module);
        maker_add(m, CT_DTYPE_F8_E4M3, rows, cols / 16, 0, "%s.weight_scale", module);
        maker_add(m, CT_DTYPE_F32, 0, 0, 0, "%s.weight_scale_2", module);
        if (!g->no_input_scale)
            maker_add(m, CT_DTYPE_F32, 0, 0, 0, "%s.input_scale", module);
        break;
    case FORM_COMPRESSED:
        maker_add(m, CT_DTYPE_U8, rows, cols / 2, 0, "%s.weight_packed", module);
        maker_add(m, CT_DTYPE_F8_E4M3, rows, cols / 16, 0, "%s.weight_scale", module);
        maker_add(m, CT_DTYPE_F32, 1, 0, 0, "%s.weight_global_scale", module);
        if (!g->no_input_scale)
            maker_add(m, CT_DTYPE_F32, 1, 0, 0, "%s.input_global_scale", module);
        break;
    case FORM_FP8:
        maker_add(m, CT_DTYPE_F8_E4M3, rows, cols, 0, "%s.weight", module);
        maker_add(m, CT_DTYPE_BF16, rows, 1, 0, "%s.weight_scale", module);
        break;
    }
}

static inline void gemma_projection(maker *m, const gemma *g, form f, unsigned layer,
                                    const char *name, uint64_t rows, uint64_t cols)
{
    char module[MAKER_NAME - 32];

    snprintf(module, sizeof module, "%slayers.%u.%s", g->prefix, layer, name);
    gemma_linear(m, g, f, rows, cols, module);
}

static inline void gemma_moe(maker *m, const gemma *g, unsigned l)
{
    const char *path = g->expert_path ? g->expert_path : "experts.";
    const char *p = g->prefix;
    char name[64];

    maker_add(m, CT_DTYPE_BF16, g->E, g->H, 0, "%slayers.%u.router.proj.weight", p, l);
    maker_add(m, CT_DTYPE_BF16, g->H, 0, 0, "%slayers.%u.router.scale", p, l);
    maker_add(m, CT_DTYPE_BF16, g->E, 0, 0, "%slayers.%u.router.per_expert_scale", p, l);
    maker_add(m, CT_DTYPE_BF16, g->H, 0, 0, "%slayers.%u.pre_feedforward_layernorm_2.weight", p, l);
    maker_add(m, CT_DTYPE_BF16, g->H, 0, 0, "%slayers.%u.post_feedforward_layernorm_1.weight", p,
              l);
    maker_add(m, CT_DTYPE_BF16, g->H, 0, 0, "%slayers.%u.post_feedforward_layernorm_2.weight", p,
              l);
    if (!g->split) {
        maker_add(m, CT_DTYPE_BF16, g->E, 2 * g->M, g->H, "%slayers.%u.%sgate_up_proj", p, l, path);
        maker_add(m, CT_DTYPE_BF16, g->E, g->H, g->M, "%slayers.%u.%sdown_proj", p, l, path);
    }
    for (unsigned e = 0; g->split && e < g->E; e++) {
        snprintf(name, sizeof name, "%s%u.gate_proj", path, e);
        gemma_projection(m, g, g->experts, l, name, g->M, g->H);
        snprintf(name, sizeof name, "%s%u.up_proj", path, e);
        gemma_projection(m, g, g->experts, l, name, g->M, g->H);
        snprintf(name, sizeof name, "%s%u.down_proj", path, e);
        gemma_projection(m, g, g->experts, l, name, g->H, g->M);
    }
}

static inline void gemma_layer(maker *m, const gemma *g, unsigned l)
{
    static const char *const norms[] = {"input_layernorm.weight", "post_attention_layernorm.weight",
                                        "pre_feedforward_layernorm.weight",
                                        "post_feedforward_layernorm.weight"};
    bool global = (l + 1) % 6 == 0;
    uint64_t hd = global ? g->hd_global : g->hd_sliding;
    uint64_t kv = (global ? g->kv_global : g->kv_sliding) * hd, q = g->heads * hd;

    for (size_t i = 0; i < CT_LEN(norms); i++)
        maker_add(m, CT_DTYPE_BF16, g->H, 0, 0, "%slayers.%u.%s", g->prefix, l, norms[i]);
    maker_add(m, CT_DTYPE_BF16, 1, 0, 0, "%slayers.%u.layer_scalar", g->prefix, l);
    maker_add(m, CT_DTYPE_BF16, hd, 0, 0, "%slayers.%u.self_attn.q_norm.weight", g->prefix, l);
    maker_add(m, CT_DTYPE_BF16, hd, 0, 0, "%slayers.%u.self_attn.k_norm.weight", g->prefix, l);
    gemma_projection(m, g, g->attention, l, "self_attn.q_proj", q, g->H);
    gemma_projection(m, g, g->attention, l, "self_attn.k_proj", kv, g->H);
    if (!global)
        gemma_projection(m, g, g->attention, l, "self_attn.v_proj", kv, g->H);
    gemma_projection(m, g, g->attention, l, "self_attn.o_proj", g->H, q);
    gemma_projection(m, g, g->mlp, l, "mlp.gate_proj", g->I, g->H);
    gemma_projection(m, g, g->mlp, l, "mlp.up_proj", g->I, g->H);
    gemma_projection(m, g, g->mlp, l, "mlp.down_proj", g->H, g->I);
    if (g->kv_scale) {
        maker_add(m, CT_DTYPE_BF16, 1, 0, 0, "%slayers.%u.self_attn.k_scale", g->prefix, l);
        maker_add(m, CT_DTYPE_BF16, 1, 0, 0, "%slayers.%u.self_attn.v_scale", g->prefix, l);
    }
    if (g->E)
        gemma_moe(m, g, l);
}

static inline void gemma_make(maker *m, const gemma *g)
{
    maker_add(m, CT_DTYPE_BF16, g->V, g->H, 0, "%sembed_tokens.weight", g->prefix);
    maker_add(m, CT_DTYPE_BF16, g->H, 0, 0, "%snorm.weight", g->prefix);
    for (unsigned l = 0; l < g->L; l++)
        gemma_layer(m, g, l);
}

#endif
