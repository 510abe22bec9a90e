/* Keys and values of a number of sequences, in two families of pages, shared by
 * content.
 *
 * Sliding layers need a window of positions, global layers all of them; so each kind
 * has its own pool and its own page table, shared by the layers of the kind.  Sliding
 * pages that fall behind the window are let go.  A page is written by one sequence and
 * only at positions that nobody else can see; once full it may be shared, and is never
 * written again while a reference to it lives.  Everything is allocated at creation.
 * A position is absolute; it is found through the block it lies in (position /
 * page_tokens).  Engine thread only.  The contract, sentence by sentence: docs/kv.md. */
#ifndef CT_KV_KV_H
#define CT_KV_KV_H

#include "base/status.h"
#include "format/config.h"
#include "ops/ops.h"

typedef struct ct_kv ct_kv;

#define CT_KV_PAGE_TOKENS 64

typedef struct ct_kv_shape {
    uint32_t n_seqs;
    uint32_t seq_tokens;          /* longest sequence */
    uint32_t step_tokens;         /* most rows of one sequence in one step */
    uint32_t decode_tokens;       /* and past its prompt; 0: step_tokens */
    uint32_t page_tokens;         /* 0: CT_KV_PAGE_TOKENS */
    uint32_t n_global, n_sliding; /* pages of each pool; 0: enough for n_seqs at their longest */
    ct_kv_type global_type, sliding_type;
    bool unfolded;        /* global layers keep keys too: for comparisons */
    uint64_t cache_bytes; /* most bytes of pages that no live sequence uses but finished ones
                           * left for reuse; 0: nothing is kept and nothing is shared */
} ct_kv_shape;

/* backend is borrowed, and owns the stores.  Refuses pools that cannot hold one sequence
 * at its longest, with the figures. */
ct_status ct_kv_create(ct_kv **out, const ct_config *config, const ct_kv_shape *shape,
                       ct_backend *backend, ct_error *err);
void ct_kv_destroy(ct_kv *kv);

/* Bytes that ct_kv_create would take from the backend, by family, and for one page. */
typedef struct ct_kv_bytes {
    uint64_t global, sliding;           /* whole pools */
    uint64_t global_page, sliding_page; /* of all layers of the family */
    uint32_t n_global, n_sliding;       /* pages */
} ct_kv_bytes;

ct_status ct_kv_measure(ct_kv_bytes *out, const ct_config *config, const ct_kv_shape *shape,
                        ct_error *err);

/* [n_layers], as attention sees them; valid until ct_kv_destroy. */
const ct_kv_layer *ct_kv_layers(const ct_kv *kv);

/* --- a sequence's life ------------------------------------------------------------ */

typedef struct ct_kv_claim {
    const uint32_t *ids; /* [n_ids] the prompt; borrowed for the call */
    uint32_t n_ids;
    uint32_t n_tokens; /* most that the sequence can come to, prompt included */
    uint32_t hint;     /* a position likely to be reused, such as the end of the system
                        * prompt; 0: none */
    uint64_t salt;     /* only sequences of the same salt share pages */
    bool no_cache;     /* neither uses nor leaves shared pages */
} ct_kv_claim;

typedef enum ct_kv_admission {
    CT_KV_ADMITTED,
    CT_KV_WAIT,  /* not now: nothing was changed */
    CT_KV_NEVER, /* not even with every page free */
} ct_kv_admission;

/* Pages that a sequence of n tokens can need at once. */
typedef struct ct_kv_need {
    uint32_t n_global, n_sliding;
} ct_kv_need;

ct_kv_need ct_kv_needs(const ct_kv *kv, uint32_t n_tokens);

/* Reserves, in both pools or in neither, all that the sequence can come to need, and
 * attaches the longest reusable prefix: *n_cached positions (whole pages, and always
 * fewer than n_ids, since the last token's logits must be computed) are resident on
 * return and ct_kv_length is *n_cached.  Finished sequences' pages are given up, least
 * recently used first, where the reservation needs them.  seq must be empty. */
ct_kv_admission ct_kv_admit(ct_kv *kv, uint32_t seq, const ct_kv_claim *claim, uint32_t *n_cached);

/* Makes positions [length, length + n) of a sequence resident, which the next step
 * then writes, and lets go of what their windows no longer reach.  ids[n]: their tokens,
 * kept for sharing.  Cannot fail within what was admitted; fails with nothing changed
 * beyond it, or when n exceeds a step. */
ct_status ct_kv_extend(ct_kv *kv, uint32_t seq, const uint32_t *ids, uint32_t n, ct_error *err);
uint32_t ct_kv_length(const ct_kv *kv, uint32_t seq);

/* Where a prompt should be cut so that the pages up to there become reusable: the next
 * position after `from` at which a snapshot of the window is wanted (the point where the
 * last lookup left a known prefix, a hinted boundary, or the prompt's last whole page),
 * or the prompt's length.  A prefill chunk that ends there, followed by ct_kv_keep,
 * makes it one. */
uint32_t ct_kv_next_boundary(const ct_kv *kv, uint32_t seq, uint32_t from);
/* Leaves the sequence's state at its present length, rounded down to whole pages, for
 * reuse: global pages from the start, window pages before that point.  All positions up
 * to it must have been written by a finished step.  Never fails: what does not fit the
 * budget is not kept. */
void ct_kv_keep(ct_kv *kv, uint32_t seq);
/* Empties a sequence and gives its reservation back.  Fine on an empty one. */
void ct_kv_release(ct_kv *kv, uint32_t seq);
/* Forgets everything that finished sequences left. */
void ct_kv_forget(ct_kv *kv);

/* --- figures ---------------------------------------------------------------------- */

typedef struct ct_kv_usage {
    uint32_t n_global, n_sliding;               /* pages in all */
    uint32_t global_free, sliding_free;         /* in no table and not kept */
    uint32_t global_kept, sliding_kept;         /* only kept for reuse */
    uint32_t global_reserved, sliding_reserved; /* promised to live sequences, not yet taken */
    uint64_t queries, query_tokens;             /* lookups, and their prompts' tokens */
    uint64_t hits, hit_tokens;                  /* lookups that found something, and how much */
    uint64_t snapshots, evictions;
} ct_kv_usage;

ct_kv_usage ct_kv_used(const ct_kv *kv);
/* Whether every count, reference and reservation agrees with every table: for tests and
 * for asserts.  Linear in pages and table entries. */
bool ct_kv_consistent(const ct_kv *kv);

#endif
