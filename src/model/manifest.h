/* The manifest: exactly which tensors a checkpoint must hold, derived from its
 * config.  Checking fails closed before any weight is touched, with one message that
 * lists everything missing, unknown, mis-shaped or mis-typed. */
#ifndef CT_MODEL_MANIFEST_H
#define CT_MODEL_MANIFEST_H

#include "format/config.h"
#include "format/safetensors.h"

typedef struct ct_manifest_report {
    size_t n_text, n_skipped; /* tensors of the text model; vision/audio tensors passed over */
    uint64_t text_bytes, skipped_bytes;
    const char *prefix;  /* "model.language_model." or "model." */
    const char *dialect; /* "bf16", "nvfp4 (modelopt)", "nvfp4 (compressed-tensors)" */
} ct_manifest_report;

ct_status ct_manifest_check(const ct_config *config, const ct_checkpoint *ckpt,
                            ct_manifest_report *report, ct_error *err);

#endif
