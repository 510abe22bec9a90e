#include "model/tensor_table.h"

#include "base/checked.h"

#define TOP     CT_WHERE_TOP
#define EVERY   CT_WHERE_EVERY
#define SLIDING CT_WHERE_SLIDING
#define MOE     CT_WHERE_MOE
#define FUSED   CT_WHERE_FUSED
#define SPLIT   CT_WHERE_SPLIT
#define ONE     CT_DIM_ONE
#define V       CT_DIM_V
#define H       CT_DIM_H
#define I       CT_DIM_I
#define Q       CT_DIM_Q
#define KV      CT_DIM_KV
#define D       CT_DIM_D
#define E       CT_DIM_E
#define M       CT_DIM_M
#define M2      CT_DIM_2M

const ct_tensor_row ct_tensor_table[] = {
    {"embed_tokens.weight", TOP, false, {V, H}},
    {"norm.weight", TOP, false, {H}},

    {"input_layernorm.weight", EVERY, false, {H}},
    {"post_attention_layernorm.weight", EVERY, false, {H}},
    {"pre_feedforward_layernorm.weight", EVERY, false, {H}},
    {"post_feedforward_layernorm.weight", EVERY, false, {H}},
    {"layer_scalar", EVERY, false, {ONE}},
    {"self_attn.q_proj", EVERY, true, {Q, H}},
    {"self_attn.k_proj", EVERY, true, {KV, H}},
    /* Global layers use k_proj's output as V. */
    {"self_attn.v_proj", SLIDING, true, {KV, H}},
    {"self_attn.o_proj", EVERY, true, {H, Q}},
    {"self_attn.q_norm.weight", EVERY, false, {D}},
    {"self_attn.k_norm.weight", EVERY, false, {D}},
    {"mlp.gate_proj", EVERY, true, {I, H}},
    {"mlp.up_proj", EVERY, true, {I, H}},
    {"mlp.down_proj", EVERY, true, {H, I}},

    /* The router is a plain matrix: no producer quantises it. */
    {"router.proj.weight", MOE, false, {E, H}},
    {"router.scale", MOE, false, {H}},
    {"router.per_expert_scale", MOE, false, {E}},
    {"pre_feedforward_layernorm_2.weight", MOE, false, {H}},
    {"post_feedforward_layernorm_1.weight", MOE, false, {H}},
    {"post_feedforward_layernorm_2.weight", MOE, false, {H}},
    {"gate_up_proj", FUSED, false, {E, M2, H}},
    {"down_proj", FUSED, false, {E, H, M}},
    {"gate_proj", SPLIT, true, {M, H}},
    {"up_proj", SPLIT, true, {M, H}},
    {"down_proj", SPLIT, true, {H, M}},
};

const size_t ct_n_tensor_rows = CT_LEN(ct_tensor_table);

uint32_t ct_dim_length(ct_dim d, const ct_config *c, uint32_t layer)
{
    switch (d) {
    case CT_DIM_NONE:
        return 0;
    case CT_DIM_ONE:
        return 1;
    case CT_DIM_V:
        return c->vocab;
    case CT_DIM_H:
        return c->hidden;
    case CT_DIM_I:
        return c->intermediate;
    case CT_DIM_Q:
        return c->n_heads * ct_config_head_dim(c, layer);
    case CT_DIM_KV:
        return ct_config_kv_heads(c, layer) * ct_config_head_dim(c, layer);
    case CT_DIM_D:
        return ct_config_head_dim(c, layer);
    case CT_DIM_E:
        return c->n_experts;
    case CT_DIM_M:
        return c->moe_intermediate;
    case CT_DIM_2M:
        return 2 * c->moe_intermediate;
    }
    return 0;
}
