/* DRY ("don't repeat yourself"): an id that would extend a repetition is penalised, the
 * more the longer the repetition.  Definition by p-e-w, text-generation-webui pull request
 * 5677: for every earlier place where the last L tokens occur, none of them a breaker, the
 * token that followed there is penalised by multiplier * base^(L - allowed_length) with the
 * largest L, if L >= allowed_length and it is not itself a breaker. */
#include "engine/sampler_impl.h"

#include <math.h>

void ct_dry_history_add(ct_dry_history *h, uint32_t id)
{
    h->id[h->next] = id;
    h->next = h->next + 1 == h->room ? 0 : h->next + 1;
    h->n += h->n < h->room;
}

/* The i-th token from the end. */
static uint32_t recent(const ct_dry_history *h, uint32_t i)
{
    uint32_t at = h->next + (h->next <= i ? h->room : 0);

    return h->id[at - 1 - i];
}

static bool breaks(const ct_sampling *how, uint32_t id)
{
    return how->dry_breakers && ct_mask_has(how->dry_breakers, id);
}

/* No repetition is longer: the tokens since the last breaker. */
static uint32_t longest_possible(const ct_sampling *how, const ct_dry_history *h)
{
    uint32_t n = 0;

    while (n < h->n && !breaks(how, recent(h, n)))
        n++;
    return n;
}

/* length[i]: how many tokens before the i-th from the end, itself included, equal the last
 * tokens, up to limit.  This is the Z function of the reversed sequence (Gusfield,
 * "Algorithms on strings, trees, and sequences", 1.4): linear time. */
static void match_lengths(const ct_dry_history *h, uint32_t limit)
{
    uint32_t left = 0, right = 0; /* tokens [left, right) equal the first right - left */

    for (uint32_t i = 1; i < h->n; i++) {
        uint32_t k = 0;

        if (i < right) {
            k = h->length[i - left];
            k = k < right - i ? k : right - i;
        }
        while (k < limit && i + k < h->n && recent(h, k) == recent(h, i + k))
            k++;
        h->length[i] = k;
        if (i + k > right) {
            left = i;
            right = i + k;
        }
    }
}

static void penalise(float *l, const ct_sampling *how, uint32_t length)
{
    double excess = (double)length - how->dry_allowed_length;

    if (*l > -INFINITY)
        *l = ct_logit_of(ct_logit_finite(*l) - how->dry_multiplier * pow(how->dry_base, excess));
}

void ct_dry_apply(float *row, const ct_sampling *how, const ct_dry_history *h, uint32_t *longest)
{
    uint32_t limit = longest_possible(how, h);

    if (limit < how->dry_allowed_length)
        return;
    match_lengths(h, limit);
    for (uint32_t i = 1; i < h->n; i++) {
        uint32_t id = recent(h, i - 1);

        if (h->length[i] >= how->dry_allowed_length && h->length[i] > longest[id])
            longest[id] = h->length[i];
    }
    for (uint32_t i = 1; i < h->n; i++) {
        uint32_t id = recent(h, i - 1);

        if (longest[id] && !breaks(how, id))
            penalise(&row[id], how, longest[id]);
        longest[id] = 0;
    }
}
