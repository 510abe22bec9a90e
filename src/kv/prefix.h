/* Prefix cache: which full blocks of tokens have pages that another sequence can use.
 *
 * A block is page_tokens tokens in their context: itself, its parent (the block before)
 * and the salt.  Keys and values at a position depend on the tokens up to it and on
 * nothing else, so equal blocks have equal pages.  A known block is named by its global
 * page, which it holds.  A snapshot is a block after which a sequence can resume: its
 * window, the last window_blocks blocks up to it, hold sliding pages too.  Blocks form a
 * tree whose leaves are all snapshots; snapshots are evicted least recently used first,
 * with all that only they need.  Engine thread only. */
#ifndef CT_KV_PREFIX_H
#define CT_KV_PREFIX_H

#include "base/status.h"
#include "kv/pages.h"

typedef struct ct_prefix_block {
    uint64_t serial; /* of its publication; 0: the page is no known block */
    uint64_t hash, salt;
    uint32_t parent; /* CT_PAGE_NONE at the start */
    uint32_t n_children;
    uint32_t next;      /* of the same bucket */
    uint32_t sliding;   /* page held, or CT_PAGE_NONE */
    uint32_t n_windows; /* of snapshots, that include this block */
    bool is_snapshot;   /* then in the list of snapshots: */
    uint32_t newer, older;
} ct_prefix_block;

typedef struct ct_prefix {
    ct_pages *global, *sliding; /* borrowed */
    uint32_t page_tokens, window_blocks;
    uint32_t *ids;          /* [global pages, page_tokens] what each page holds; owned */
    ct_prefix_block *block; /* [global pages]; owned */
    uint32_t *bucket;       /* [n_buckets] first block; owned */
    uint32_t n_buckets;     /* power of two */
    uint32_t newest, oldest;
    uint32_t n_blocks, n_snapshots;
    uint64_t n_evicted, last_serial;
    uint64_t seed; /* of the hash */
} ct_prefix;

ct_status ct_prefix_init(ct_prefix *p, ct_pages *global, ct_pages *sliding, uint32_t page_tokens,
                         uint32_t window_blocks, ct_error *err);
void ct_prefix_deinit(ct_prefix *p); /* fine on an all-zero one */

/* The ids of a global page, for its writer to fill. */
uint32_t *ct_prefix_ids(const ct_prefix *p, uint32_t page);

typedef struct ct_prefix_match {
    uint32_t tip;      /* the snapshot, CT_PAGE_NONE without */
    uint32_t n_blocks; /* up to it */
    uint32_t n_known;  /* blocks known, with or without a snapshot after them */
} ct_prefix_match;

/* ids: [n_blocks * page_tokens].  The last snapshot on their path. */
ct_prefix_match ct_prefix_find(const ct_prefix *p, uint64_t salt, const uint32_t *ids,
                               uint32_t n_blocks);

/* The known block that has the tokens of `page` after parent (CT_PAGE_NONE at the start);
 * page itself when there was none.  Until it gets a descendant snapshot, the caller owes it
 * one. */
uint32_t ct_prefix_add(ct_prefix *p, uint32_t parent, uint64_t salt, uint32_t page);
/* Makes tip, the n-th block of its path, a snapshot, now the newest.  sliding[n]: the
 * pages of the path, of which those of the window must be there. */
void ct_prefix_snapshot(ct_prefix *p, uint32_t tip, const uint32_t *sliding, uint32_t n);
/* Makes a snapshot the newest. */
void ct_prefix_touch(ct_prefix *p, uint32_t tip);
/* Lets the oldest snapshot go; false when there is none. */
bool ct_prefix_evict(ct_prefix *p);

/* seen: working memory, [2 * global pages + sliding pages]. */
bool ct_prefix_consistent(const ct_prefix *p, uint32_t *seen);

#endif
