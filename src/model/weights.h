/* Weights of one model as views into its checkpoint, one struct a layer.  Valid until
 * the checkpoint is closed; read by all threads. */
#ifndef CT_MODEL_WEIGHTS_H
#define CT_MODEL_WEIGHTS_H

#include "base/arena.h"
#include "format/config.h"
#include "format/safetensors.h"
#include "ops/ops.h"

typedef struct ct_layer_weights {
    /* Norm weights are bf16 vectors, used as stored (no "1 + w"). */
    const void *input_norm, *post_attn_norm, *pre_ffn_norm, *post_ffn_norm; /* [H] */
    const void *q_norm, *k_norm;                                            /* [D] */
    const void *layer_scalar;                                               /* [1] */
    ct_weight q, k, v, o; /* v.type is CT_WEIGHT_NONE in global layers: V is k_proj's output */
    ct_weight gate, up, down;
    /* MoE layers only. */
    const void *post_ffn_norm_1, *pre_ffn_norm_2, *post_ffn_norm_2; /* [H] */
    ct_router router;
    ct_expert_weights experts;
} ct_layer_weights;

typedef struct ct_weights {
    ct_weight embed;         /* [V,H]; also the output head */
    const void *final_norm;  /* bf16 [H] */
    ct_layer_weights *layer; /* [n_layers], in the arena */
} ct_weights;

/* Requires a checkpoint that ct_manifest_check accepted. */
ct_status ct_weights_bind(ct_weights *out, const ct_config *config, const ct_checkpoint *ckpt,
                          ct_arena *a, ct_error *err);

#endif
