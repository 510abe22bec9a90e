#include "engine/generate.h"

#include "base/checked.h"
#include "base/clock.h"

#include <stdlib.h>

const char *ct_finish_name(ct_finish f)
{
    switch (f) {
    case CT_FINISH_STOP:
        return "stop";
    case CT_FINISH_LENGTH:
        return "length";
    case CT_FINISH_CANCELLED:
        return "cancelled";
    }
    return "?";
}

static bool asked_to_stop(const ct_generate_args *args)
{
    return args->stop && *args->stop;
}

static bool is_stop_id(const ct_generation_config *g, uint32_t id)
{
    for (size_t i = 0; i < g->n_stop_ids; i++)
        if (g->stop_ids[i] == id)
            return true;
    return false;
}

/* Leaves the logits of the prompt's last token in `logits`. */
static ct_status prefill(ct_session *s, const ct_generate_args *args, float *logits, ct_error *err)
{
    uint32_t n = 0;
    ct_status st;

    for (uint32_t at = 0; at < args->n_prompt; at += n) {
        n = (uint32_t)ct_min_size(ct_session_chunk(s), args->n_prompt - at);
        if (asked_to_stop(args))
            return ct_fail(err, CT_ECANCELLED, "stopped after %u of %u prompt tokens", at,
                           args->n_prompt);
        st = ct_session_step(s, args->prompt + at, n, NULL, err);
        if (st)
            return st;
    }
    return ct_session_logits(s, n - 1, 1, logits, err);
}

static ct_status decode(ct_session *s, const ct_model *model, const ct_generate_args *args,
                        ct_sampler *sampler, float *logits, ct_generate_result *r, ct_error *err)
{
    for (;;) {
        uint32_t id = ct_sampler_pick(sampler, logits, &args->sampling, ct_session_length(s));
        ct_status st;

        r->n_new++;
        r->finish = CT_FINISH_CANCELLED;
        if (!args->on_token(args->ctx, id) || asked_to_stop(args))
            return CT_OK;
        r->finish = CT_FINISH_STOP;
        if (is_stop_id(&model->generation, id))
            return CT_OK;
        r->finish = CT_FINISH_LENGTH;
        if (r->n_new == args->max_new)
            return CT_OK;
        st = ct_session_step(s, &id, 1, NULL, err);
        if (!st)
            st = ct_session_logits(s, 0, 1, logits, err);
        if (st)
            return st;
    }
}

ct_status ct_generate(ct_session *s, const ct_model *model, const ct_generate_args *args,
                      ct_generate_result *out, ct_error *err)
{
    const ct_generation_config *g = &model->generation;
    ct_generate_result r = {.finish = CT_FINISH_LENGTH};
    ct_sampler *sampler = NULL;
    double start = ct_now_s();
    float *logits;
    ct_status st;

    if (args->n_prompt == 0)
        return ct_fail(err, CT_EINVAL, "the prompt is empty");
    if (args->max_new == 0) {
        *out = r;
        return CT_OK;
    }
    logits = calloc(model->config.vocab, sizeof *logits);
    if (!logits)
        return ct_fail(err, CT_ELIMIT, "out of memory for %u logits", model->config.vocab);
    st = ct_sampler_create(&sampler, model->config.vocab, g->suppress_ids, g->n_suppress_ids, err);
    if (!st)
        st = prefill(s, args, logits, err);
    r.prefill_s = ct_now_s() - start;
    if (!st) {
        start = ct_now_s();
        st = decode(s, model, args, sampler, logits, &r, err);
        r.decode_s = ct_now_s() - start;
    }
    if (!st)
        *out = r;
    ct_sampler_destroy(sampler);
    free(logits);
    return st;
}
