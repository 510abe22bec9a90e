/* What an engine takes, before anything is taken: found by running its set-up on a
 * backend that only counts. */
#ifndef CT_ENGINE_PLAN_H
#define CT_ENGINE_PLAN_H

#include "engine/engine.h"
#include "model/weight_sizes.h"

typedef struct ct_plan {
    uint32_t ctx, slots, step_rows; /* with defaults filled in */
    ct_weight_sizes weights;
    ct_kv_bytes kv;
    uint64_t workspace; /* activations of a step, the backend's scratch */
    uint64_t sampling;  /* logits at hand, samplers */
    /* A token in all global layers, as stored and if keys were stored too. */
    uint64_t global_token, global_token_unfolded;
    /* A sequence's window in all sliding layers: keys and values. */
    uint64_t sliding_token, sliding_window;
    uint64_t total;
} ct_plan;

/* Without the memory that is no store or buffer: tables, requests, tokenizer, code. */
ct_status ct_plan_make(ct_plan *out, const ct_config *config, ct_storage storage,
                       const ct_engine_options *how, ct_error *err);

/* Most slots at this context that keep the total within bytes; 0: not even one.  Other
 * options as in how. */
ct_status ct_plan_fit(uint32_t *slots, const ct_config *config, ct_storage storage,
                      const ct_engine_options *how, uint32_t ctx, uint64_t bytes, ct_error *err);

/* Refuses, with the figures, a plan that exceeds the bytes. */
ct_status ct_plan_check(const ct_plan *p, uint64_t bytes, ct_error *err);

#endif
