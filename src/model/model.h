/* One model directory opened: configs, checkpoint, what the manifest said, and the
 * weights as views.  Opened by one thread, then read by all; nothing of the weights is
 * read at open.  Everything inside lives until the close. */
#ifndef CT_MODEL_MODEL_H
#define CT_MODEL_MODEL_H

#include "base/arena.h"
#include "format/config.h"
#include "format/safetensors.h"
#include "model/manifest.h"
#include "model/weights.h"

typedef struct ct_model {
    ct_config config;
    ct_generation_config generation;
    ct_checkpoint *ckpt; /* owned */
    ct_manifest_report report;
    ct_weights weights;
    ct_arena arena; /* strings of the config, tables of the weights */
} ct_model;

/* dir holds config.json, generation_config.json and the safetensors. */
ct_status ct_model_open(ct_model **out, const char *dir, ct_error *err);
void ct_model_close(ct_model *m); /* NULL is fine */

#endif
