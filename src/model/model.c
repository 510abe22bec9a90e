#include "model/model.h"

#include <stdlib.h>

/* Tables of the weights, at the config's limits, and its quantisation patterns.  Address
 * space: what is not used is never resident. */
#define ARENA_BYTES ((size_t)256 << 20)

void ct_model_close(ct_model *m)
{
    if (!m)
        return;
    ct_checkpoint_close(m->ckpt);
    ct_arena_deinit(&m->arena);
    free(m);
}

static ct_status check_list(const ct_model *m, const char *dir, const char *key, const uint32_t *id,
                            size_t n, ct_error *err)
{
    for (size_t i = 0; i < n; i++)
        if (id[i] >= m->config.vocab)
            return ct_fail(err, CT_EFORMAT,
                           "%s/generation_config.json: %s holds %u, vocab_size is %u", dir, key,
                           id[i], m->config.vocab);
    return CT_OK;
}

/* A suppressed logit is set by index; a stop id that no token has never stops. */
static ct_status check_ids(const ct_model *m, const char *dir, ct_error *err)
{
    const ct_generation_config *g = &m->generation;
    ct_status st = check_list(m, dir, "eos_token_id", g->stop_ids, g->n_stop_ids, err);

    if (!st)
        st = check_list(m, dir, "suppress_tokens", g->suppress_ids, g->n_suppress_ids, err);
    return st;
}

static ct_status open_parts(ct_model *m, const char *dir, ct_error *err)
{
    ct_status st = ct_arena_init(&m->arena, ARENA_BYTES, err);

    if (!st)
        st = ct_config_load(&m->config, dir, &m->arena, err);
    if (!st)
        st = ct_generation_config_load(&m->generation, dir, err);
    if (!st)
        st = check_ids(m, dir, err);
    if (!st)
        st = ct_checkpoint_open(&m->ckpt, dir, err);
    if (!st)
        st = ct_manifest_check(&m->config, m->ckpt, &m->report, err);
    if (!st)
        st = ct_weights_bind(&m->weights, &m->config, m->ckpt, &m->arena, err);
    return st;
}

ct_status ct_model_open(ct_model **out, const char *dir, ct_error *err)
{
    ct_model *m = calloc(1, sizeof *m);
    ct_status st;

    if (!m)
        return ct_fail(err, CT_ELIMIT, "%s: out of memory", dir);
    st = open_parts(m, dir, err);
    if (st)
        ct_model_close(m);
    else
        *out = m;
    return st;
}
