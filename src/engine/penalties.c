/* Repetition, frequency and presence penalties, and the counts they need. */
#include "engine/sampler_impl.h"

#include <assert.h>

/* Slot of id, or the empty one where it belongs.  The table is at most half full. */
static uint32_t *find_slot(const ct_token_counts *c, uint32_t id)
{
    uint32_t mask = ((uint32_t)1 << c->slot_bits) - 1;
    uint32_t i = (uint32_t)((uint64_t)id * 0x9e3779b97f4a7c15u >> (64 - c->slot_bits));

    while (c->slot[i] && c->entry[c->slot[i] - 1].id != id)
        i = (i + 1) & mask;
    return &c->slot[i];
}

void ct_token_counts_add(ct_token_counts *c, uint32_t id, bool in_answer)
{
    uint32_t *slot = find_slot(c, id);

    if (!*slot) {
        assert(c->n < c->max_entries);
        c->entry[c->n] = (ct_token_count){.id = id};
        *slot = ++c->n;
    }
    c->entry[*slot - 1].n_answer += in_answer;
}

void ct_penalties_apply(float *row, const ct_sampling *how, const ct_token_counts *c)
{
    for (uint32_t i = 0; i < c->n; i++) {
        ct_token_count t = c->entry[i];
        double l;

        if (!(row[t.id] > -INFINITY))
            continue;
        l = ct_logit_finite(row[t.id]);
        l = l > 0 ? l / how->repetition_penalty : l * how->repetition_penalty;
        l -= how->frequency_penalty * t.n_answer;
        l -= t.n_answer ? how->presence_penalty : 0;
        row[t.id] = ct_logit_of(l);
    }
}
