#include "engine/session.h"

#include "base/checked.h"
#include "base/pool.h"
#include "engine/backend.h"
#include "kv/kv.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>

struct ct_session {
    const ct_model *model; /* borrowed */
    ct_session_options how;
    ct_pool *pool;
    ct_backend *backend;
    ct_kv *kv;
    ct_forward *forward;
    uint32_t *pos, *seq, *index; /* [chunk] */
};

static ct_status session_alloc_rows(ct_session *s, ct_error *err)
{
    size_t n = s->how.chunk;

    s->pos = calloc(n, sizeof *s->pos);
    s->seq = calloc(n, sizeof *s->seq); /* one sequence: stays 0 */
    s->index = calloc(n, sizeof *s->index);
    if (!s->pos || !s->seq || !s->index)
        return ct_fail(err, CT_ELIMIT, "out of memory for a step of %zu rows", n);
    return CT_OK;
}

/* The only sequence: the stores were made to hold it. */
static void session_admit(ct_session *s)
{
    const ct_kv_claim claim = {.n_tokens = s->how.max_tokens, .no_cache = true};
    uint32_t n_cached;
    ct_kv_admission admitted = ct_kv_admit(s->kv, 0, &claim, &n_cached);

    (void)admitted;
    assert(admitted == CT_KV_ADMITTED && n_cached == 0);
}

static ct_status session_start(ct_session *s, ct_error *err)
{
    const ct_session_options *how = &s->how;
    ct_kv_shape shape = {.n_seqs = 1, .seq_tokens = how->max_tokens, .step_tokens = how->chunk};
    ct_forward_limits limits = {
        .rows = how->chunk, .keys = how->max_tokens, .logits_rows = how->logits_rows};
    const ct_backend_options backend = {how->backend, how->round_bf16};
    ct_status st;

    st = ct_pool_create(&s->pool, how->n_threads, err);
    if (!st)
        st = ct_backend_open(&s->backend, &backend, s->pool, err);
    if (!st)
        st = ct_kv_create(&s->kv, &s->model->config, &shape, s->backend, err);
    if (st)
        return st;
    session_admit(s);
    st = ct_forward_create(&s->forward, &s->model->config, &s->model->weights, s->backend, &limits,
                           err);
    return st ? st : session_alloc_rows(s, err);
}

/* The options with their defaults filled in. */
static ct_session_options complete(const ct_session_options *how, uint32_t vocab)
{
    ct_session_options o = *how;
    size_t fit = ct_max_size(1, CT_SESSION_LOGITS_BYTES / sizeof(float) / vocab);

    o.chunk = (uint32_t)ct_min_size(o.chunk ? o.chunk : CT_SESSION_CHUNK, o.max_tokens);
    o.logits_rows = (uint32_t)ct_min_size(o.logits_rows ? o.logits_rows : fit, o.chunk);
    return o;
}

ct_status ct_session_open(ct_session **out, const ct_model *model, const ct_session_options *how,
                          ct_error *err)
{
    uint32_t limit = model->config.max_positions;
    ct_session *s;
    ct_status st;

    if (how->max_tokens == 0 || how->max_tokens > limit)
        return ct_fail(err, CT_EINVAL, "%u tokens asked for, the model serves 1 to %u",
                       how->max_tokens, limit);
    s = calloc(1, sizeof *s);
    if (!s)
        return ct_fail(err, CT_ELIMIT, "out of memory for a session");
    s->model = model;
    s->how = complete(how, model->config.vocab);
    st = session_start(s, err);
    if (st) {
        ct_session_close(s);
        return st;
    }
    *out = s;
    return CT_OK;
}

void ct_session_close(ct_session *s)
{
    if (!s)
        return;
    free(s->pos);
    free(s->seq);
    free(s->index);
    ct_forward_destroy(s->forward);
    ct_kv_destroy(s->kv);
    if (s->backend)
        s->backend->ops->destroy(s->backend);
    ct_pool_destroy(s->pool);
    free(s);
}

ct_status ct_session_step(ct_session *s, const uint32_t *ids, uint32_t n,
                          const ct_hidden_sink *sink, ct_error *err)
{
    ct_rows rows = {.n = n, .ids = ids, .pos = s->pos, .seq = s->seq};
    uint32_t start = ct_kv_length(s->kv, 0);
    ct_status st;

    for (uint32_t i = 0; i < n; i++)
        if (ids[i] >= s->model->config.vocab)
            return ct_fail(err, CT_EINVAL, "token id %u at position %u, the vocabulary has %u",
                           ids[i], start + i, s->model->config.vocab);
    st = ct_kv_extend(s->kv, 0, ids, n, err);
    if (st)
        return st;
    for (uint32_t i = 0; i < n; i++)
        s->pos[i] = start + i;
    return ct_forward_step(s->forward, &rows, ct_kv_layers(s->kv), sink, err);
}

/* The softcap bounds every logit, so anything else is a weight that is not a number. */
static ct_status check_finite(const ct_session *s, const float *logits, uint32_t n, ct_error *err)
{
    const size_t vocab = s->model->config.vocab;

    for (size_t i = 0; i < n * vocab; i++)
        if (!isfinite(logits[i]))
            return ct_fail(err, CT_EFORMAT,
                           "%s: logits are not finite (%g for id %zu): the weights are damaged",
                           ct_checkpoint_path(s->model->ckpt), (double)logits[i], i % vocab);
    return CT_OK;
}

ct_status ct_session_logits(ct_session *s, uint32_t first, uint32_t n, float *out, ct_error *err)
{
    ct_status st;

    assert(n <= s->how.logits_rows);
    for (uint32_t i = 0; i < n; i++)
        s->index[i] = first + i;
    st = ct_forward_logits(s->forward, s->index, n, out, err);
    return st ? st : check_finite(s, out, n, err);
}

uint32_t ct_session_length(const ct_session *s)
{
    return ct_kv_length(s->kv, 0);
}

uint32_t ct_session_chunk(const ct_session *s)
{
    return s->how.chunk;
}

uint32_t ct_session_logits_rows(const ct_session *s)
{
    return s->how.logits_rows;
}

ct_backend *ct_session_backend(ct_session *s)
{
    return s->backend;
}

void ct_session_reset(ct_session *s)
{
    ct_kv_release(s->kv, 0);
    session_admit(s);
}
