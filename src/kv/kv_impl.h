/* What kv.c and audit.c share. */
#ifndef CT_KV_KV_IMPL_H
#define CT_KV_KV_IMPL_H

#include "kv/kv.h"
#include "kv/pages.h"
#include "kv/plan.h"
#include "kv/prefix.h"

typedef struct kv_seq {
    uint32_t length;        /* resident positions count up to it */
    uint32_t limit;         /* tokens admitted; 0: empty */
    uint32_t first_sliding; /* sliding blocks before it are not resident */
    bool decoding;          /* steps have been past the prompt: small from now on */
    /* Promises.  Global pages: those still to be taken.  Sliding pages: the most that
     * the table can hold at once from now on, shared ones included, because their other
     * users may let go of them at any time. */
    uint32_t global_due, sliding_claim;
    /* Sharing. */
    bool shares;
    uint64_t salt;
    uint32_t n_prompt;
    uint32_t branch, hint; /* boundaries wanted; 0: none */
    uint32_t n_published;  /* leading blocks that are known, the last of them: */
    uint32_t tip;          /* if it still is the one of */
    uint64_t tip_serial;
} kv_seq;

struct ct_kv {
    ct_kv_plan plan;
    uint32_t n_seqs, seq_tokens, step_tokens;
    uint64_t cache_bytes;
    uint32_t n_layers;
    ct_kv_layer layer[CT_MAX_LAYERS];
    ct_pages global, sliding;
    uint32_t *global_table, *sliding_table; /* [n_seqs, max_blocks]; owned */
    kv_seq *seq;                            /* [n_seqs]; owned */
    uint32_t global_due, sliding_claim;     /* sums over the sequences */
    ct_prefix prefix;                       /* unused without cache_bytes */
    uint64_t n_queries, n_query_tokens, n_hits, n_hit_tokens;
    uint32_t *audit; /* working memory of ct_kv_consistent; owned */
};

static inline uint32_t *ct_kv_row(const ct_kv *kv, uint32_t *table, uint32_t seq)
{
    return table + (size_t)seq * kv->plan.max_blocks;
}

static inline uint32_t ct_kv_seq_blocks(const ct_kv *kv, const kv_seq *s)
{
    return ct_kv_blocks(s->length, kv->plan.page_tokens);
}

/* Sliding pages that a table can still come to hold at once. */
static inline uint32_t ct_kv_sliding_claim(const ct_kv *kv, const kv_seq *s)
{
    const uint32_t left = ct_kv_blocks(s->limit, kv->plan.page_tokens) - s->first_sliding;
    const uint32_t most = s->decoding ? kv->plan.most_decoding : kv->plan.most_sliding;

    return left < most ? left : most;
}

#endif
