/* Figures of the KV stores, and whether they agree with the tables. */
#include "kv/kv_impl.h"

#include <string.h>

ct_kv_usage ct_kv_used(const ct_kv *kv)
{
    ct_kv_usage u = {
        .n_global = kv->global.n,
        .n_sliding = kv->sliding.n,
        .global_free = kv->global.n_free,
        .sliding_free = kv->sliding.n_free,
        .global_kept = kv->global.n_kept,
        .sliding_kept = kv->sliding.n_kept,
        .global_reserved = kv->global_due,
        .sliding_reserved = kv->sliding_claim,
        .queries = kv->n_queries,
        .query_tokens = kv->n_query_tokens,
        .hits = kv->n_hits,
        .hit_tokens = kv->n_hit_tokens,
        .snapshots = kv->prefix.n_snapshots,
        .evictions = kv->prefix.n_evicted,
    };

    for (uint32_t i = 0; i < kv->n_seqs; i++)
        u.sliding_reserved -= ct_kv_seq_blocks(kv, &kv->seq[i]) - kv->seq[i].first_sliding;
    return u;
}

/* Counts a table row's pages into users; entries outside [first, end) must be empty. */
static bool count_row(const uint32_t *row, uint32_t first, uint32_t end, uint32_t max_blocks,
                      const ct_pages *pool, uint32_t *users)
{
    for (uint32_t i = 0; i < max_blocks; i++) {
        const bool resident = i >= first && i < end;

        if (resident ? row[i] >= pool->n : row[i] != CT_PAGE_NONE)
            return false;
        if (resident)
            users[row[i]]++;
    }
    return true;
}

static bool check_seq(const ct_kv *kv, uint32_t seq, uint32_t *global_users,
                      uint32_t *sliding_users)
{
    const kv_seq *s = &kv->seq[seq];
    const uint32_t n = ct_kv_seq_blocks(kv, s);

    return s->length <= s->limit && s->limit <= kv->seq_tokens && s->first_sliding <= n &&
           s->global_due == ct_kv_blocks(s->limit, kv->plan.page_tokens) - n &&
           s->sliding_claim == ct_kv_sliding_claim(kv, s) &&
           n - s->first_sliding <= s->sliding_claim &&
           count_row(ct_kv_row(kv, kv->global_table, seq), 0, n, kv->plan.max_blocks, &kv->global,
                     global_users) &&
           count_row(ct_kv_row(kv, kv->sliding_table, seq), s->first_sliding, n,
                     kv->plan.max_blocks, &kv->sliding, sliding_users);
}

/* What was promised can be had. */
static bool check_promises(const ct_kv *kv)
{
    uint64_t due = 0, claim = 0;

    for (uint32_t i = 0; i < kv->n_seqs; i++) {
        due += kv->seq[i].global_due;
        claim += kv->seq[i].sliding_claim;
    }
    return due == kv->global_due && claim == kv->sliding_claim &&
           due <= (uint64_t)kv->global.n_free + kv->global.n_kept && claim <= kv->sliding.n;
}

static bool check_budget(const ct_kv *kv)
{
    const ct_kv_bytes *b = &kv->plan.bytes;

    return kv->global.n_kept * b->global_page + kv->sliding.n_kept * b->sliding_page <=
           kv->cache_bytes;
}

bool ct_kv_consistent(const ct_kv *kv)
{
    uint32_t *global_users = kv->audit, *sliding_users = global_users + kv->global.n;
    uint32_t *seen = sliding_users + kv->sliding.n;

    memset(kv->audit, 0, ((size_t)kv->global.n + kv->sliding.n) * sizeof *kv->audit);
    for (uint32_t i = 0; i < kv->n_seqs; i++)
        if (!check_seq(kv, i, global_users, sliding_users))
            return false;
    return ct_pages_consistent(&kv->global, global_users, seen) &&
           ct_pages_consistent(&kv->sliding, sliding_users, seen) && check_promises(kv) &&
           check_budget(kv) && (!kv->cache_bytes || ct_prefix_consistent(&kv->prefix, seen));
}
