/* config.json and generation_config.json of Gemma 4 text checkpoints, in both
 * published dialects (global_head_dim / num_global_key_value_heads, and
 * per_layer_config).  Everything that would change the mathematics is read or
 * refused by name; nothing is guessed. */
#ifndef CT_FORMAT_CONFIG_H
#define CT_FORMAT_CONFIG_H

#include "base/arena.h"
#include "base/status.h"
#include "base/str.h"

#define CT_MAX_CONFIG_BYTES ((size_t)1 << 20)
#define CT_MAX_VOCAB        (1u << 22)
#define CT_MAX_HIDDEN       (1u << 16)
#define CT_MAX_INTERMEDIATE (1u << 18)
#define CT_MAX_LAYERS       256
#define CT_MAX_HEADS        512
#define CT_MAX_HEAD_DIM     2048
#define CT_MAX_POSITIONS    (1u << 24)
#define CT_MAX_EXPERTS      1024
#define CT_MAX_STOP_IDS     16
#define CT_MAX_SUPPRESS     64
/* Of a quantisation config. */
#define CT_MAX_QUANT_GROUPS   16
#define CT_MAX_QUANT_PATTERNS 4096

typedef enum ct_arch { CT_ARCH_GEMMA4, CT_ARCH_GEMMA4_UNIFIED } ct_arch;

typedef enum ct_quant_method {
    CT_QUANT_NONE,
    CT_QUANT_MODELOPT,
    CT_QUANT_COMPRESSED_TENSORS,
} ct_quant_method;

typedef enum ct_quant_scheme {
    CT_QUANT_NVFP4, /* e2m1, one e4m3 scale for 16 columns, one scale a matrix */
    CT_QUANT_FP8,   /* e4m3, one scale a row */
} ct_quant_scheme;

/* Patterns of module names: see format/pattern.h. */
typedef struct ct_quant_group {
    ct_quant_scheme scheme;
    ct_str *target;
    size_t n_targets;
} ct_quant_group;

typedef struct ct_quant_config {
    ct_quant_method method;
    ct_str *ignore; /* left in BF16, whatever the groups say */
    size_t n_ignore;
    ct_quant_group *group;
    size_t n_groups;
} ct_quant_config;

typedef struct ct_config {
    ct_arch arch;
    uint32_t vocab, hidden, intermediate, n_layers;
    uint32_t n_heads;
    uint32_t n_kv_sliding, n_kv_global; /* key/value heads by layer kind */
    uint32_t hd_sliding, hd_global;     /* head dimension by layer kind */
    uint32_t window;                    /* keys a sliding layer sees, itself included */
    uint32_t max_positions;
    float eps;     /* of every RMSNorm */
    float softcap; /* final logits: softcap * tanh(z / softcap) */
    double rope_theta_sliding, rope_theta_global;
    double rope_partial_global; /* share of the pairs that turn in global layers */
    bool moe;
    uint32_t n_experts, top_k, moe_intermediate; /* 0 unless moe */
    bool is_global[CT_MAX_LAYERS];
    ct_quant_config quant;
} ct_config;

static inline uint32_t ct_config_head_dim(const ct_config *c, uint32_t layer)
{
    return c->is_global[layer] ? c->hd_global : c->hd_sliding;
}

static inline uint32_t ct_config_kv_heads(const ct_config *c, uint32_t layer)
{
    return c->is_global[layer] ? c->n_kv_global : c->n_kv_sliding;
}

/* path names the text in messages.  Strings of the result live in the arena. */
ct_status ct_config_parse(ct_config *out, const char *path, ct_str text, ct_arena *a,
                          ct_error *err);
ct_status ct_config_load(ct_config *out, const char *dir, ct_arena *a, ct_error *err);

/* Sampling defaults and stop ids.  Ids are what the file says; an absent file is an
 * error, because there is no safe guess of the stop set. */
typedef struct ct_generation_config {
    uint32_t stop_ids[CT_MAX_STOP_IDS];
    size_t n_stop_ids;
    uint32_t suppress_ids[CT_MAX_SUPPRESS];
    size_t n_suppress_ids;
    uint32_t bos_id, pad_id;
    bool do_sample;
    double temperature, top_p, min_p, typical_p, repetition_penalty;
    uint32_t top_k; /* 0: off */
} ct_generation_config;

ct_status ct_generation_config_parse(ct_generation_config *out, const char *path, ct_str text,
                                     ct_error *err);
ct_status ct_generation_config_load(ct_generation_config *out, const char *dir, ct_error *err);

#endif
