/* State of a request: one allocation, cut into the copies of its lists and the tables that
 * its parameters need. */
#include "engine/sampler_impl.h"

#include "base/checked.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

typedef struct plan {
    size_t max_entries, room; /* 0: not kept */
    unsigned slot_bits;
    size_t bytes;
} plan;

static size_t list_bytes(const ct_sampling *how)
{
    return how->n_logit_bias * sizeof *how->logit_bias +
           (how->n_suppress_ids + how->n_eos_ids + how->n_stop_ids) * sizeof(uint32_t);
}

static bool needs_counts(const ct_sampling *how)
{
    return how->repetition_penalty != 1 || how->presence_penalty != 0 ||
           how->frequency_penalty != 0;
}

/* Sizes stay below 2^40: counts are 32-bit numbers and the lists are bounded. */
static plan make_plan(const ct_sampling *how, uint32_t vocab, uint32_t max_tokens)
{
    plan p = {.bytes = sizeof(ct_sample_state) + list_bytes(how)};

    if (needs_counts(how)) {
        p.max_entries = ct_min_size(vocab, max_tokens);
        p.slot_bits = 1;
        while (((size_t)1 << p.slot_bits) < 2 * p.max_entries)
            p.slot_bits++;
        p.bytes += p.max_entries * sizeof(ct_token_count);
        p.bytes += ((size_t)1 << p.slot_bits) * sizeof(uint32_t);
    }
    if (how->dry_multiplier > 0) {
        p.room = how->dry_last_n ? ct_min_size(how->dry_last_n, max_tokens) : max_tokens;
        p.bytes += 2 * p.room * sizeof(uint32_t);
    }
    return p;
}

size_t ct_sample_state_bytes(const ct_sampling *how, uint32_t vocab, uint32_t max_tokens)
{
    return make_plan(how, vocab, max_tokens).bytes;
}

/* Takes n bytes from the tail of the allocation; everything in it is made of 4-byte words. */
static void *carve(unsigned char **tail, size_t n_bytes)
{
    void *p = *tail;

    *tail += n_bytes;
    return p;
}

static const uint32_t *copy_ids(unsigned char **tail, const uint32_t *ids, size_t n)
{
    uint32_t *copy = carve(tail, n * sizeof *ids);

    if (n)
        memcpy(copy, ids, n * sizeof *ids);
    return copy;
}

static void copy_lists(ct_sampling *how, unsigned char **tail)
{
    ct_logit_bias *bias = carve(tail, how->n_logit_bias * sizeof *bias);

    if (how->n_logit_bias)
        memcpy(bias, how->logit_bias, how->n_logit_bias * sizeof *bias);
    how->logit_bias = bias;
    how->suppress_ids = copy_ids(tail, how->suppress_ids, how->n_suppress_ids);
    how->eos_ids = copy_ids(tail, how->eos_ids, how->n_eos_ids);
    how->stop_ids = copy_ids(tail, how->stop_ids, how->n_stop_ids);
}

static void place_tables(ct_sample_state *st, const plan *p, unsigned char *tail)
{
    if (p->max_entries) {
        st->counts.max_entries = (uint32_t)p->max_entries;
        st->counts.slot_bits = p->slot_bits;
        st->counts.entry = carve(&tail, p->max_entries * sizeof *st->counts.entry);
        st->counts.slot = carve(&tail, ((size_t)1 << p->slot_bits) * sizeof *st->counts.slot);
    }
    if (p->room) {
        st->history.room = (uint32_t)p->room;
        st->history.id = carve(&tail, p->room * sizeof *st->history.id);
        st->history.length = carve(&tail, p->room * sizeof *st->history.length);
    }
}

ct_status ct_sample_state_create(ct_sample_state **out, const ct_sampling *how, uint32_t vocab,
                                 uint32_t max_tokens, ct_error *err)
{
    ct_status status = ct_sampling_check(how, vocab, err);
    ct_sample_state *st;
    unsigned char *tail;
    plan p;

    if (status)
        return status;
    if (how->min_tokens > max_tokens)
        return ct_fail(err, CT_EINVAL, "min_tokens: %u, the sequence has at most %u tokens",
                       how->min_tokens, max_tokens);
    p = make_plan(how, vocab, max_tokens);
    st = calloc(1, p.bytes);
    if (!st)
        return ct_fail(err, CT_ELIMIT, "out of memory: %zu bytes for the state of a request",
                       p.bytes);
    st->how = *how;
    st->vocab = vocab;
    st->max_tokens = max_tokens;
    tail = (unsigned char *)(st + 1);
    copy_lists(&st->how, &tail);
    place_tables(st, &p, tail);
    *out = st;
    return CT_OK;
}

void ct_sample_state_destroy(ct_sample_state *st)
{
    free(st);
}

static void append(ct_sample_state *st, uint32_t id, bool in_answer)
{
    assert(id < st->vocab && st->n_tokens < st->max_tokens);
    st->n_tokens++;
    if (st->counts.entry && (in_answer || st->how.repetition_penalty != 1))
        ct_token_counts_add(&st->counts, id, in_answer);
    if (st->history.id)
        ct_dry_history_add(&st->history, id);
}

void ct_sample_state_prompt(ct_sample_state *st, const uint32_t *ids, size_t n)
{
    assert(st->n_answer == 0);
    for (size_t i = 0; i < n; i++)
        append(st, ids[i], false);
}

void ct_sample_state_accept(ct_sample_state *st, uint32_t id)
{
    append(st, id, true);
    st->n_answer++;
}

uint32_t ct_sample_state_n_answer(const ct_sample_state *st)
{
    return st->n_answer;
}

const ct_sampling *ct_sample_state_params(const ct_sample_state *st)
{
    return &st->how;
}
