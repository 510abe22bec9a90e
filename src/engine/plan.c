#include "engine/plan.h"

#include <inttypes.h>

static uint64_t elem_bytes(ct_kv_type type)
{
    return ct_host_elem_bytes(ct_kv_elem(type));
}

/* Numbers of one token in the keys (or the values) of all layers of a kind. */
static uint64_t numbers_a_token(const ct_config *c, bool global)
{
    uint64_t n = 0;

    for (uint32_t l = 0; l < c->n_layers; l++)
        if (c->is_global[l] == global)
            n += (uint64_t)ct_config_kv_heads(c, l) * ct_config_head_dim(c, l);
    return n;
}

static void fill_tokens(ct_plan *p, const ct_config *c, const ct_engine_options *how)
{
    p->global_token = numbers_a_token(c, true) * elem_bytes(how->global_type);
    p->global_token_unfolded = 2 * p->global_token;
    p->sliding_token = 2 * numbers_a_token(c, false) * elem_bytes(how->sliding_type);
    p->sliding_window = p->sliding_token * c->window;
}

ct_status ct_plan_make(ct_plan *out, const ct_config *config, ct_storage storage,
                       const ct_engine_options *how, ct_error *err)
{
    ct_engine_bytes engine;
    ct_plan p = {0};
    ct_status st = ct_weight_sizes_of(&p.weights, config, storage, err);

    if (!st)
        st = ct_engine_measure(&engine, config, how, err);
    if (st)
        return st;
    p.ctx = engine.ctx;
    p.slots = engine.slots;
    p.step_rows = engine.step_rows;
    p.kv = engine.kv;
    p.workspace = engine.backend - engine.kv.global - engine.kv.sliding;
    p.sampling = engine.sampling;
    fill_tokens(&p, config, how);
    p.total = ct_weight_sizes_bytes(&p.weights) + engine.backend + engine.sampling;
    *out = p;
    return CT_OK;
}

ct_status ct_plan_fit(uint32_t *slots, const ct_config *config, ct_storage storage,
                      const ct_engine_options *how, uint32_t ctx, uint64_t bytes, ct_error *err)
{
    uint32_t fits = 0, beyond = CT_ENGINE_MAX_SLOTS + 1;
    ct_engine_options o = *how;
    ct_plan p;

    o.ctx = ctx;
    /* The total grows with the slots. */
    for (uint32_t n = 1; fits + 1 < beyond; n = beyond > CT_ENGINE_MAX_SLOTS && fits < beyond / 2
                                                    ? 2 * fits
                                                    : fits + (beyond - fits) / 2) {
        ct_status st;

        o.slots = n;
        st = ct_plan_make(&p, config, storage, &o, err);
        if (st)
            return st;
        if (p.total <= bytes)
            fits = n;
        else
            beyond = n;
    }
    *slots = fits;
    return CT_OK;
}

ct_status ct_plan_check(const ct_plan *p, uint64_t bytes, ct_error *err)
{
    if (p->total <= bytes)
        return CT_OK;
    return ct_fail(err, CT_ELIMIT,
                   "%" PRIu32 " sequences of %" PRIu32 " tokens need %" PRIu64
                   " bytes (weights %" PRIu64 ", global KV %" PRIu64 ", sliding KV %" PRIu64
                   ", workspace %" PRIu64 ", sampling %" PRIu64 "), there are %" PRIu64,
                   p->slots, p->ctx, p->total, ct_weight_sizes_bytes(&p->weights), p->kv.global,
                   p->kv.sliding, p->workspace, p->sampling, bytes);
}
