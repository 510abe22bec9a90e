/* Which linear modules the config's quantization_config quantises, and how. */
#ifndef CT_MODEL_QUANT_RULES_H
#define CT_MODEL_QUANT_RULES_H

#include "base/arena.h"
#include "format/config.h"
#include "model/layout.h"

typedef struct ct_quant_rules ct_quant_rules;

/* Room that ct_quant_rules_make may take from its arena. */
size_t ct_quant_rules_bytes(const ct_quant_config *q);
const ct_quant_rules *ct_quant_rules_make(const ct_quant_config *q, ct_arena *a);

/* module: its name behind the checkpoint's prefix, e.g. "layers.0.mlp.gate_proj". */
ct_scheme ct_quant_rules_scheme(const ct_quant_rules *r, ct_str module);

#endif
