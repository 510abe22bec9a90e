#include "cli/sampling_options.h"

#include "base/checked.h"
#include "engine/dry_breakers.h"

#include <stdlib.h>
#include <sys/random.h>

void ct_sampling_args_init(ct_sampling_args *a)
{
    *a = (ct_sampling_args){.p = ct_sampling_neutral()};
}

void ct_sampling_args_deinit(ct_sampling_args *a)
{
    free(a->breakers);
    *a = (ct_sampling_args){0};
}

/* The checkpoint's value where the command line has none. */
static void take_defaults(ct_sampling_args *a, const ct_generation_config *g)
{
    const ct_sampling d = ct_sampling_defaults(g);
    ct_sampling *p = &a->p;

    if (!a->temperature)
        p->temperature = d.temperature;
    if (!a->top_k)
        p->top_k = d.top_k;
    if (!a->top_p)
        p->top_p = d.top_p;
    if (!a->min_p)
        p->min_p = d.min_p;
    if (!a->typical_p)
        p->typical_p = d.typical_p;
    if (!a->repetition_penalty)
        p->repetition_penalty = d.repetition_penalty;
    p->suppress_ids = d.suppress_ids;
    p->n_suppress_ids = d.n_suppress_ids;
    p->eos_ids = d.eos_ids;
    p->n_eos_ids = d.n_eos_ids;
}

static ct_status find_breakers(ct_sampling_args *a, const ct_tokenizer *t, uint32_t vocab,
                               ct_error *err)
{
    a->breakers = calloc(CT_MASK_WORDS(vocab), sizeof *a->breakers);
    if (!a->breakers)
        return ct_fail(err, CT_ELIMIT, "out of memory for a mask of %u ids", vocab);
    a->p.dry_breakers = a->breakers;
    return ct_dry_breaker_mask(a->breakers, vocab, t, ct_dry_default_breakers,
                               CT_LEN(ct_dry_default_breakers), err);
}

ct_status ct_sampling_args_complete(ct_sampling_args *a, const ct_generation_config *g,
                                    const ct_tokenizer *t, uint32_t vocab, ct_error *err)
{
    take_defaults(a, g);
    if (!a->seed && getrandom(&a->p.seed, sizeof a->p.seed, 0) != sizeof a->p.seed)
        return ct_fail(err, CT_EIO, "no random seed from the system; give --seed");
    return a->p.dry_multiplier > 0 ? find_breakers(a, t, vocab, err) : CT_OK;
}
