/* Models, plans and engines of the library. */
#include "api/api.h"

#include "base/checked.h"
#include "engine/plan.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *carat_version(void)
{
    return CT_VERSION;
}

/* --- errors and structs --------------------------------------------------------------- */

carat_status ct_api_fail_as(carat_error *out, carat_status status, const ct_error *err)
{
    if (!out)
        return status;
    out->status = status;
    snprintf(out->text, sizeof out->text, "%.*s", CARAT_ERROR_BYTES - 1, err->text);
    return status;
}

carat_status ct_api_status(ct_status status)
{
    static const carat_status as[] = {
        [CT_OK] = CARAT_OK,
        [CT_EIO] = CARAT_EIO,
        [CT_EFORMAT] = CARAT_EFORMAT,
        [CT_EUNSUPPORTED] = CARAT_EUNSUPPORTED,
        [CT_EINVAL] = CARAT_EINVAL,
        [CT_ELIMIT] = CARAT_ELIMIT,
        [CT_ECANCELLED] = CARAT_ECANCELLED,
    };

    return as[status];
}

carat_status ct_api_fail(carat_error *out, const ct_error *err)
{
    return ct_api_fail_as(out, ct_api_status(err->status), err);
}

ct_status ct_api_adopt(void *to, size_t to_bytes, const void *from, const char *what, ct_error *err)
{
    size_t n;

    if (!from)
        return ct_fail(err, CT_EINVAL, "%s is NULL", what);
    memcpy(&n, from, sizeof n);
    if (n < to_bytes)
        return ct_fail(err, CT_EINVAL, "%s: size is %zu, at least %zu; its init sets it", what, n,
                       to_bytes);
    for (size_t i = to_bytes; i < n; i++)
        if (((const unsigned char *)from)[i])
            return ct_fail(err, CT_EUNSUPPORTED,
                           "%s of %zu bytes has fields that this library, of %zu, does not know",
                           what, n, to_bytes);
    memcpy(to, from, to_bytes);
    return CT_OK;
}

/* --- model ---------------------------------------------------------------------------- */

static ct_status open_parts(carat_model *m, const char *dir, ct_error *err)
{
    ct_status st = ct_model_open(&m->model, dir, err);

    if (!st)
        st = ct_tokenizer_open(&m->tokenizer, dir, err);
    if (st)
        return st;
    if (ct_tokenizer_vocab(m->tokenizer) > m->model->config.vocab)
        return ct_fail(err, CT_EFORMAT, "%s: the tokenizer has %u ids, the model %u", dir,
                       ct_tokenizer_vocab(m->tokenizer), m->model->config.vocab);
    m->chat_status = ct_chat_template_open(&m->chat, dir, NULL, &m->chat_err);
    return CT_OK;
}

carat_status carat_model_open(carat_model **out, const char *dir, carat_error *err)
{
    carat_model *m = calloc(1, sizeof *m);
    ct_error why;
    ct_status st;

    if (!dir)
        st = ct_fail(&why, CT_EINVAL, "the model's directory is NULL");
    else if (!m)
        st = ct_fail(&why, CT_ELIMIT, "%s: out of memory", dir);
    else
        st = open_parts(m, dir, &why);
    if (st) {
        carat_model_close(m);
        return ct_api_fail(err, &why);
    }
    *out = m;
    return CARAT_OK;
}

void carat_model_close(carat_model *model)
{
    if (!model)
        return;
    ct_chat_template_close(&model->chat);
    ct_tokenizer_destroy(model->tokenizer);
    ct_model_close(model->model);
    free(model);
}

/* --- engine --------------------------------------------------------------------------- */

void carat_engine_options_init(carat_engine_options *o)
{
    *o = (carat_engine_options){.size = sizeof *o};
}

static ct_status read_kv(ct_kv_type *out, const char *name, ct_error *err)
{
    static const char *const names[] = {
        [CT_KV_F32] = "f32", [CT_KV_BF16] = "bf16", [CT_KV_FP8] = "fp8"};

    for (int t = 0; t <= CT_KV_FP8; t++)
        if (!strcmp(name ? name : "bf16", names[t])) {
            *out = (ct_kv_type)t;
            return CT_OK;
        }
    return ct_fail(err, CT_EINVAL, "kv '%s' is none of bf16, fp8, f32", name);
}

static ct_status read_options(ct_engine_options *out, const carat_engine_options *from,
                              const carat_model *model, ct_error *err)
{
    carat_engine_options o;
    ct_kv_type kv = CT_KV_BF16;
    ct_status st = CT_OK;

    carat_engine_options_init(&o);
    if (from)
        st = ct_api_adopt(&o, sizeof o, from, "carat_engine_options", err);
    if (!st && !model)
        st = ct_fail(err, CT_EINVAL, "the model is NULL");
    if (!st)
        st = read_kv(&kv, o.kv, err);
    if (st)
        return st;
    *out = (ct_engine_options){
        .backend = o.backend,
        .n_threads = o.threads,
        .ctx = o.ctx,
        .slots = o.slots,
        .queue = o.queue,
        .step_rows = o.step_rows,
        .global_type = kv,
        .sliding_type = kv,
        .cache_bytes = o.cache_bytes,
        .no_cache = o.no_cache,
        .tokenizer = model->tokenizer,
    };
    return CT_OK;
}

static ct_status make_plan(carat_plan *out, const carat_model *model, const carat_engine_options *o,
                           ct_error *err)
{
    ct_engine_options how;
    carat_plan own = {0};
    ct_plan p;
    ct_status st = ct_api_adopt(&own, sizeof own, out, "carat_plan", err);

    if (!st)
        st = read_options(&how, o, model, err);
    if (!st)
        st = ct_plan_make(&p, &model->model->config, CT_STORAGE_CONFIG, &how, err);
    if (st)
        return st;
    own.ctx = p.ctx;
    own.slots = p.slots;
    own.weights = ct_weight_sizes_bytes(&p.weights);
    own.kv_global = p.kv.global;
    own.kv_sliding = p.kv.sliding;
    own.workspace = p.workspace;
    own.sampling = p.sampling;
    own.total = p.total;
    memcpy(out, &own, sizeof own);
    return CT_OK;
}

carat_status carat_plan_make(const carat_model *model, const carat_engine_options *o,
                             carat_plan *plan, carat_error *err)
{
    ct_error why;

    return make_plan(plan, model, o, &why) ? ct_api_fail(err, &why) : CARAT_OK;
}

static ct_status create_parts(carat_engine *e, const ct_engine_options *how, ct_error *err)
{
    ct_engine_stats stats;
    ct_status st = ct_engine_create(&e->engine, e->model->model, how, err);

    if (st)
        return st;
    stats = ct_engine_stats_get(e->engine);
    /* As many may be over and not polled as may be open. */
    e->n_requests = 2 * (stats.slots + stats.queue);
    e->request = calloc(e->n_requests, sizeof *e->request);
    if (!e->request)
        return ct_fail(err, CT_ELIMIT, "out of memory for %u requests", e->n_requests);
    return ct_engine_start(e->engine, err);
}

carat_status carat_engine_create(carat_engine **out, const carat_model *model,
                                 const carat_engine_options *o, carat_error *err)
{
    ct_engine_options how;
    ct_error why;
    carat_engine *e;
    ct_status st = read_options(&how, o, model, &why);

    if (st)
        return ct_api_fail(err, &why);
    e = calloc(1, sizeof *e);
    if (!e) {
        ct_fail(&why, CT_ELIMIT, "out of memory for an engine");
        return ct_api_fail(err, &why);
    }
    e->model = model;
    pthread_mutex_init(&e->lock, NULL);
    ct_buf_init(&e->text, CT_REQUEST_MAX_BYTES);
    st = create_parts(e, &how, &why);
    if (st) {
        carat_engine_destroy(e);
        return ct_api_fail(err, &why);
    }
    *out = e;
    return CARAT_OK;
}

void carat_engine_destroy(carat_engine *engine)
{
    if (!engine)
        return;
    ct_engine_destroy(engine->engine);
    for (uint32_t i = 0; engine->request && i < engine->n_requests; i++)
        if (engine->request[i].used)
            ct_api_request_deinit(&engine->request[i]);
    free(engine->request);
    free(engine->event);
    ct_buf_deinit(&engine->text);
    pthread_mutex_destroy(&engine->lock);
    free(engine);
}

carat_status carat_health(carat_engine *engine, carat_error *err)
{
    ct_error why;

    if (!engine) {
        ct_fail(&why, CT_EINVAL, "the engine is NULL");
        return ct_api_fail(err, &why);
    }
    if (ct_engine_health(engine->engine, &why))
        return ct_api_fail_as(err, CARAT_EDOWN, &why);
    return CARAT_OK;
}

void carat_cancel(carat_engine *engine, carat_request request)
{
    if (engine)
        ct_engine_cancel(engine->engine, request);
}
