/* What a model's weights count and weigh, from its config alone. */
#ifndef CT_MODEL_WEIGHT_SIZES_H
#define CT_MODEL_WEIGHT_SIZES_H

#include "format/config.h"

/* How the matrices are stored. */
typedef enum ct_storage {
    CT_STORAGE_CONFIG, /* as the config's quantization_config says, else BF16 */
    CT_STORAGE_BF16,
    /* Safetensors: the routed experts of a mixture, else the dense feed-forward; the rest
     * BF16.  What NVIDIA publishes. */
    CT_STORAGE_NVFP4,
    /* GGUF: every matrix and the embedding; router, norms and scalars F32. */
    CT_STORAGE_Q4_0,
    CT_STORAGE_Q8_0,
} ct_storage;

/* "bf16", "nvfp4", "q4_0", "q8_0"; false for anything else. */
bool ct_storage_of(ct_storage *out, ct_str name);
const char *ct_storage_name(ct_storage s); /* "config" for CT_STORAGE_CONFIG */

typedef enum ct_weight_part {
    CT_PART_EMBEDDING, /* also the output head */
    CT_PART_ATTENTION,
    CT_PART_MLP,
    CT_PART_EXPERTS,
    CT_PART_OTHER, /* norms, scalars, routers */
    CT_N_PARTS,
} ct_weight_part;

const char *ct_weight_part_name(ct_weight_part p);

typedef struct ct_weight_sizes {
    uint64_t params[CT_N_PARTS]; /* numbers; scales of quantisation are not counted */
    uint64_t bytes[CT_N_PARTS];  /* with scales, without padding of files */
} ct_weight_sizes;

/* Refuses a matrix whose rows are not whole blocks of the storage. */
ct_status ct_weight_sizes_of(ct_weight_sizes *out, const ct_config *config, ct_storage storage,
                             ct_error *err);
uint64_t ct_weight_sizes_params(const ct_weight_sizes *s);
uint64_t ct_weight_sizes_bytes(const ct_weight_sizes *s);

#endif
