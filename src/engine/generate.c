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

/* What choosing needs: all memory of the answer is taken before the first token. */
typedef struct chooser {
    ct_sampler *sampler;
    ct_sample_state *state;
    float *logits; /* [vocab] */
} chooser;

static void chooser_deinit(chooser *c)
{
    ct_sampler_destroy(c->sampler);
    ct_sample_state_destroy(c->state);
    free(c->logits);
    *c = (chooser){0};
}

static ct_status chooser_init(chooser *c, uint32_t vocab, const ct_generate_args *args,
                              ct_error *err)
{
    size_t longest = ct_min_size((size_t)args->n_prompt + args->max_new, UINT32_MAX);
    ct_status st;

    *c = (chooser){.logits = calloc(vocab, sizeof *c->logits)};
    if (!c->logits)
        return ct_fail(err, CT_ELIMIT, "out of memory for %u logits", vocab);
    st = ct_sampler_create(&c->sampler, vocab, err);
    if (!st)
        st = ct_sample_state_create(&c->state, &args->sampling, vocab, (uint32_t)longest, err);
    if (st)
        chooser_deinit(c);
    return st;
}

static ct_status decode(ct_session *s, const ct_generate_args *args, chooser *c,
                        ct_generate_result *r, ct_error *err)
{
    ct_sample sample;

    /* Only now are the ids known to be inside the vocabulary: the session has taken them. */
    ct_sample_state_prompt(c->state, args->prompt, args->n_prompt);
    for (;;) {
        ct_status st = ct_sampler_pick(c->sampler, c->logits, c->state, NULL, &sample, err);

        if (st)
            return st;
        ct_sample_state_accept(c->state, sample.id);
        r->n_new++;
        r->finish = CT_FINISH_CANCELLED;
        if (!args->on_token(args->ctx, sample.id) || asked_to_stop(args))
            return CT_OK;
        r->finish = CT_FINISH_STOP;
        if (sample.stop)
            return CT_OK;
        r->finish = CT_FINISH_LENGTH;
        if (r->n_new == args->max_new)
            return CT_OK;
        st = ct_session_step(s, &sample.id, 1, NULL, err);
        if (!st)
            st = ct_session_logits(s, 0, 1, c->logits, err);
        if (st)
            return st;
    }
}

ct_status ct_generate(ct_session *s, const ct_model *model, const ct_generate_args *args,
                      ct_generate_result *out, ct_error *err)
{
    ct_generate_result r = {.finish = CT_FINISH_LENGTH};
    double start = ct_now_s();
    chooser c;
    ct_status st;

    if (args->n_prompt == 0)
        return ct_fail(err, CT_EINVAL, "the prompt is empty");
    if (args->max_new == 0) {
        *out = r;
        return CT_OK;
    }
    st = chooser_init(&c, model->config.vocab, args, err);
    if (st)
        return st;
    st = prefill(s, args, c.logits, err);
    r.prefill_s = ct_now_s() - start;
    if (!st) {
        start = ct_now_s();
        st = decode(s, args, &c, &r, err);
        r.decode_s = ct_now_s() - start;
    }
    if (!st)
        *out = r;
    chooser_deinit(&c);
    return st;
}
