#include "engine/sampling.h"

#include "base/checked.h"

ct_sampling ct_sampling_neutral(void)
{
    return (ct_sampling){
        .top_p = 1,
        .typical_p = 1,
        .repetition_penalty = 1,
        .dry_base = 1.75,
        .dry_allowed_length = 2,
    };
}

ct_sampling ct_sampling_defaults(const ct_generation_config *g)
{
    ct_sampling p = ct_sampling_neutral();

    p.temperature = g->do_sample ? g->temperature : 0;
    p.top_k = g->top_k;
    p.top_p = g->top_p;
    p.min_p = g->min_p;
    p.typical_p = g->typical_p;
    p.repetition_penalty = g->repetition_penalty;
    p.suppress_ids = g->suppress_ids;
    p.n_suppress_ids = g->n_suppress_ids;
    p.eos_ids = g->stop_ids;
    p.n_eos_ids = g->n_stop_ids;
    return p;
}

typedef struct range {
    const char *name;
    double value, min, max;
    bool above_min; /* min itself is refused */
} range;

/* NaN fails both comparisons. */
static ct_status check_range(const range *r, ct_error *err)
{
    bool low_enough = r->value <= r->max;

    if (low_enough && (r->above_min ? r->value > r->min : r->value >= r->min))
        return CT_OK;
    return ct_fail(err, CT_EINVAL,
                   r->above_min ? "%s: %g is not above %g and at most %g"
                                : "%s: %g is not from %g to %g",
                   r->name, r->value, r->min, r->max);
}

static ct_status check_numbers(const ct_sampling *p, ct_error *err)
{
    const range ranges[] = {
        {"temperature", p->temperature, 0, 100, false},
        {"top_p", p->top_p, 0, 1, false},
        {"min_p", p->min_p, 0, 1, false},
        {"typical_p", p->typical_p, 0, 1, true},
        {"repetition_penalty", p->repetition_penalty, 0, 100, true},
        {"presence_penalty", p->presence_penalty, -2, 2, false},
        {"frequency_penalty", p->frequency_penalty, -2, 2, false},
        {"dry_multiplier", p->dry_multiplier, 0, 100, false},
        {"dry_base", p->dry_base, 1, 100, false},
        {"dry_allowed_length", p->dry_allowed_length, 1, 65536, false},
        {"top_logprobs", p->top_logprobs, 0, CT_MAX_TOP_LOGPROBS, false},
    };

    for (size_t i = 0; i < CT_LEN(ranges); i++)
        if (check_range(&ranges[i], err))
            return CT_EINVAL;
    if (p->top_logprobs && !p->logprobs)
        return ct_fail(err, CT_EINVAL, "top_logprobs: %u, but logprobs is off", p->top_logprobs);
    return CT_OK;
}

static ct_status check_id(const char *name, size_t i, uint32_t id, uint32_t vocab, ct_error *err)
{
    if (id < vocab)
        return CT_OK;
    return ct_fail(err, CT_EINVAL, "%s[%zu]: id %u is outside the vocabulary of %u", name, i, id,
                   vocab);
}

static ct_status check_ids(const char *name, const uint32_t *ids, size_t n, uint32_t vocab,
                           ct_error *err)
{
    if (n > CT_MAX_REQUEST_IDS)
        return ct_fail(err, CT_ELIMIT, "%s: %zu ids, at most %d", name, n, CT_MAX_REQUEST_IDS);
    for (size_t i = 0; i < n; i++)
        if (check_id(name, i, ids[i], vocab, err))
            return CT_EINVAL;
    return CT_OK;
}

static ct_status check_bias(const ct_sampling *p, uint32_t vocab, ct_error *err)
{
    if (p->n_logit_bias > CT_MAX_LOGIT_BIAS)
        return ct_fail(err, CT_ELIMIT, "logit_bias: %zu ids, at most %d", p->n_logit_bias,
                       CT_MAX_LOGIT_BIAS);
    for (size_t i = 0; i < p->n_logit_bias; i++) {
        ct_logit_bias b = p->logit_bias[i];

        if (check_id("logit_bias", i, b.id, vocab, err))
            return CT_EINVAL;
        if (!(b.bias >= -100 && b.bias <= 100))
            return ct_fail(err, CT_EINVAL, "logit_bias: %g of id %u is not from -100 to 100",
                           b.bias, b.id);
    }
    return CT_OK;
}

ct_status ct_sampling_check(const ct_sampling *p, uint32_t vocab, ct_error *err)
{
    ct_status st = check_numbers(p, err);

    if (!st)
        st = check_bias(p, vocab, err);
    if (!st)
        st = check_ids("suppress_tokens", p->suppress_ids, p->n_suppress_ids, vocab, err);
    if (!st)
        st = check_ids("eos_token_id", p->eos_ids, p->n_eos_ids, vocab, err);
    if (!st)
        st = check_ids("stop_token_ids", p->stop_ids, p->n_stop_ids, vocab, err);
    return st;
}
