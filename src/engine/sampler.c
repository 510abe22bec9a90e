#include "engine/sampler_impl.h"

#include "engine/lanes.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

ct_status ct_sampler_create(ct_sampler **out, uint32_t vocab, ct_error *err)
{
    ct_sampler *s = calloc(1, sizeof *s);

    if (!s)
        return ct_fail(err, CT_ELIMIT, "out of memory for the sampler");
    s->vocab = vocab;
    s->row = calloc(vocab, sizeof *s->row);
    s->key = calloc(vocab, sizeof *s->key);
    s->spare = calloc(vocab, sizeof *s->spare);
    s->weight = calloc(vocab, sizeof *s->weight);
    s->surprise = calloc(vocab, sizeof *s->surprise);
    s->longest = calloc(vocab, sizeof *s->longest);
    if (!s->row || !s->key || !s->spare || !s->weight || !s->surprise || !s->longest) {
        ct_sampler_destroy(s);
        return ct_fail(err, CT_ELIMIT, "out of memory for a sampler over %u ids", vocab);
    }
    *out = s;
    return CT_OK;
}

void ct_sampler_destroy(ct_sampler *s)
{
    if (!s)
        return;
    free(s->row);
    free(s->key);
    free(s->spare);
    free(s->weight);
    free(s->surprise);
    free(s->longest);
    free(s);
}

size_t ct_sampler_bytes(uint32_t vocab)
{
    const ct_sampler *s = NULL;

    return sizeof *s + vocab * (sizeof *s->row + sizeof *s->key + sizeof *s->spare +
                                sizeof *s->weight + sizeof *s->surprise + sizeof *s->longest);
}

/* --- steps 1 to 5 ---------------------------------------------------------------- */

static bool hides_stops(const ct_sample_state *st)
{
    return st->n_answer < st->how.min_tokens;
}

static bool changes_row(const ct_sample_state *st, const uint32_t *allowed)
{
    return allowed || hides_stops(st) || st->how.n_logit_bias || st->how.n_suppress_ids ||
           st->counts.n || st->history.n;
}

static void add_bias(float *row, const ct_sampling *how)
{
    for (size_t i = 0; i < how->n_logit_bias; i++) {
        float *l = &row[how->logit_bias[i].id];

        if (*l > -INFINITY)
            *l = ct_logit_of((double)ct_logit_finite(*l) + how->logit_bias[i].bias);
    }
}

static void hide(float *row, const uint32_t *ids, size_t n)
{
    for (size_t i = 0; i < n; i++)
        row[ids[i]] = -INFINITY;
}

/* Eight times four ids: a mask with holes must not cost a branch for each id. */
static void mask_word(float *l, uint32_t word)
{
    const ct_u4 bit = {1, 2, 4, 8};

    for (int i = 0; i < 32; i += 4) {
        ct_u4 bits = {word >> i, word >> i, word >> i, word >> i};
        ct_f4 v = ct_f4_select((bits & bit) == bit, ct_f4_load(l + i), ct_f4_all(-INFINITY));

        memcpy(l + i, &v, sizeof v);
    }
}

static void apply_mask(float *row, uint32_t vocab, const uint32_t *allowed)
{
    uint32_t id = 0;

    for (; id + 32 <= vocab; id += 32)
        if (allowed[id / 32] != UINT32_MAX)
            mask_word(row + id, allowed[id / 32]);
    for (; id < vocab; id++)
        if (!ct_mask_has(allowed, id))
            row[id] = -INFINITY;
}

static void transform(ct_sampler *s, const float *logits, const ct_sample_state *st,
                      const uint32_t *allowed)
{
    const ct_sampling *how = &st->how;

    memcpy(s->row, logits, s->vocab * sizeof *logits);
    add_bias(s->row, how);
    ct_penalties_apply(s->row, how, &st->counts);
    if (st->history.n)
        ct_dry_apply(s->row, how, &st->history, s->longest);
    hide(s->row, how->suppress_ids, how->n_suppress_ids);
    if (hides_stops(st)) {
        hide(s->row, how->stop_ids, how->n_stop_ids);
        if (!how->ignore_eos)
            hide(s->row, how->eos_ids, how->n_eos_ids);
    }
    if (allowed)
        apply_mask(s->row, s->vocab, allowed);
}

/* --- picking --------------------------------------------------------------------- */

static ct_status fail_empty(const ct_sampler *s, const float *logits, const ct_sample_state *st,
                            const uint32_t *allowed, ct_error *err)
{
    uint32_t n_usable = 0, n_allowed = 0;

    for (uint32_t id = 0; id < s->vocab; id++) {
        n_usable += logits[id] > -INFINITY;
        n_allowed += !allowed || ct_mask_has(allowed, id);
    }
    return ct_fail(err, CT_EINVAL,
                   "token %" PRIu32 ": no id can be picked: of %" PRIu32 ", %" PRIu32
                   " have a logit, the grammar allows %" PRIu32
                   ", %zu are suppressed, and min_tokens %" PRIu32 " %s the stop ids",
                   st->n_tokens, s->vocab, n_usable, n_allowed, st->how.n_suppress_ids,
                   st->how.min_tokens, hides_stops(st) ? "hides" : "does not hide");
}

static bool is_in(const uint32_t *ids, size_t n, uint32_t id)
{
    for (size_t i = 0; i < n; i++)
        if (ids[i] == id)
            return true;
    return false;
}

static bool ends_answer(const ct_sampling *how, uint32_t id)
{
    return is_in(how->stop_ids, how->n_stop_ids, id) ||
           (!how->ignore_eos && is_in(how->eos_ids, how->n_eos_ids, id));
}

static bool is_greedy(const ct_sampling *how)
{
    return how->temperature == 0 || how->top_k == 1;
}

ct_status ct_sampler_pick(ct_sampler *s, const float *logits, const ct_sample_state *st,
                          const uint32_t *allowed, ct_sample *out, ct_error *err)
{
    const ct_sampling *how = &st->how;
    const float *row = logits;
    uint64_t best;

    if (changes_row(st, allowed)) {
        transform(s, logits, st, allowed);
        row = s->row;
    }
    best = ct_rank_best(row, s->vocab);
    if (best == CT_RANK_NONE)
        return fail_empty(s, logits, st, allowed, err);
    out->id = is_greedy(how)
                  ? ct_rank_id(best)
                  : ct_truncate_draw(s, row, how, ct_sampler_uniform(how->seed, st->n_tokens));
    out->stop = ends_answer(how, out->id);
    out->logprobs = (ct_logprobs){0};
    if (how->logprobs)
        ct_sampler_logprobs(s, logits, out->id, how->top_logprobs, &out->logprobs);
    return CT_OK;
}
