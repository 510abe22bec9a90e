#include "kv/prefix.h"

#include "base/checked.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

/* --- creation ----------------------------------------------------------------- */

ct_status ct_prefix_init(ct_prefix *p, ct_pages *global, ct_pages *sliding, uint32_t page_tokens,
                         uint32_t window_blocks, ct_error *err)
{
    size_t n_ids;
    uint32_t n_buckets = 1;

    *p = (ct_prefix){
        .global = global,
        .sliding = sliding,
        .page_tokens = page_tokens,
        .window_blocks = window_blocks,
        .newest = CT_PAGE_NONE,
        .oldest = CT_PAGE_NONE,
    };
    /* So that no client can aim at one bucket.  No result depends on it, and without
     * entropy there is only less protection. */
    if (getrandom(&p->seed, sizeof p->seed, GRND_NONBLOCK) != (ssize_t)sizeof p->seed)
        p->seed = 0;
    while (n_buckets < global->n && n_buckets < 1u << 31)
        n_buckets *= 2;
    p->n_buckets = n_buckets;
    if (ct_mul_size(&n_ids, global->n, page_tokens))
        p->ids = calloc(n_ids, sizeof *p->ids);
    p->block = calloc(global->n, sizeof *p->block);
    p->bucket = calloc(n_buckets, sizeof *p->bucket);
    if (!p->ids || !p->block || !p->bucket) {
        ct_prefix_deinit(p);
        return ct_fail(err, CT_ELIMIT, "out of memory for a prefix cache of %u pages", global->n);
    }
    for (uint32_t i = 0; i < n_buckets; i++)
        p->bucket[i] = CT_PAGE_NONE;
    return CT_OK;
}

void ct_prefix_deinit(ct_prefix *p)
{
    free(p->ids);
    free(p->block);
    free(p->bucket);
    *p = (ct_prefix){0};
}

uint32_t *ct_prefix_ids(const ct_prefix *p, uint32_t page)
{
    assert(page < p->global->n);
    return p->ids + (size_t)page * p->page_tokens;
}

/* --- blocks by content -------------------------------------------------------- */

/* Only spreads blocks over buckets: what is found is compared in full.  Multiply and
 * fold, with the constants of MurmurHash3's finaliser. */
static uint64_t block_hash(uint64_t h, const uint32_t *ids, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        h = (h ^ ids[i]) * 0xff51afd7ed558ccdu;
        h ^= h >> 32;
    }
    h *= 0xc4ceb9fe1a85ec53u;
    return h ^ h >> 33;
}

static uint64_t hash_after(const ct_prefix *p, uint32_t parent, uint64_t salt, const uint32_t *ids)
{
    return block_hash(parent == CT_PAGE_NONE ? salt ^ p->seed : p->block[parent].hash, ids,
                      p->page_tokens);
}

static uint32_t *bucket_of(const ct_prefix *p, uint64_t hash)
{
    return &p->bucket[hash & (p->n_buckets - 1)];
}

static uint32_t find_block(const ct_prefix *p, uint32_t parent, uint64_t salt, uint64_t hash,
                           const uint32_t *ids)
{
    uint32_t i = *bucket_of(p, hash);

    while (i != CT_PAGE_NONE) {
        const ct_prefix_block *b = &p->block[i];

        if (b->hash == hash && b->parent == parent && b->salt == salt &&
            memcmp(ct_prefix_ids(p, i), ids, p->page_tokens * sizeof *ids) == 0)
            break;
        i = b->next;
    }
    return i;
}

ct_prefix_match ct_prefix_find(const ct_prefix *p, uint64_t salt, const uint32_t *ids,
                               uint32_t n_blocks)
{
    ct_prefix_match m = {.tip = CT_PAGE_NONE};
    uint32_t parent = CT_PAGE_NONE;

    for (; m.n_known < n_blocks; ids += p->page_tokens) {
        uint64_t hash = hash_after(p, parent, salt, ids);
        uint32_t block = find_block(p, parent, salt, hash, ids);

        if (block == CT_PAGE_NONE)
            break;
        m.n_known++;
        if (p->block[block].is_snapshot) {
            m.tip = block;
            m.n_blocks = m.n_known;
        }
        parent = block;
    }
    return m;
}

uint32_t ct_prefix_add(ct_prefix *p, uint32_t parent, uint64_t salt, uint32_t page)
{
    const uint32_t *ids = ct_prefix_ids(p, page);
    const uint64_t hash = hash_after(p, parent, salt, ids);
    uint32_t known = find_block(p, parent, salt, hash, ids), *bucket = bucket_of(p, hash);

    if (known != CT_PAGE_NONE)
        return known;
    assert(p->block[page].serial == 0);
    p->block[page] = (ct_prefix_block){
        .serial = ++p->last_serial,
        .hash = hash,
        .salt = salt,
        .parent = parent,
        .next = *bucket,
        .sliding = CT_PAGE_NONE,
    };
    *bucket = page;
    p->n_blocks++;
    if (parent != CT_PAGE_NONE)
        p->block[parent].n_children++;
    ct_pages_hold(p->global, page);
    return page;
}

static void block_remove(ct_prefix *p, uint32_t page)
{
    ct_prefix_block *b = &p->block[page];
    uint32_t *link = bucket_of(p, b->hash);

    assert(!b->n_children && !b->is_snapshot && !b->n_windows && b->sliding == CT_PAGE_NONE);
    while (*link != page)
        link = &p->block[*link].next;
    *link = b->next;
    if (b->parent != CT_PAGE_NONE)
        p->block[b->parent].n_children--;
    b->serial = 0;
    p->n_blocks--;
    ct_pages_drop(p->global, page);
}

/* --- snapshots ---------------------------------------------------------------- */

static void list_push(ct_prefix *p, uint32_t tip)
{
    p->block[tip].newer = CT_PAGE_NONE;
    p->block[tip].older = p->newest;
    if (p->newest == CT_PAGE_NONE)
        p->oldest = tip;
    else
        p->block[p->newest].newer = tip;
    p->newest = tip;
}

static void list_remove(ct_prefix *p, uint32_t tip)
{
    const ct_prefix_block *b = &p->block[tip];

    *(b->newer == CT_PAGE_NONE ? &p->newest : &p->block[b->newer].older) = b->older;
    *(b->older == CT_PAGE_NONE ? &p->oldest : &p->block[b->older].newer) = b->newer;
}

void ct_prefix_snapshot(ct_prefix *p, uint32_t tip, const uint32_t *sliding, uint32_t n)
{
    uint32_t block = tip;

    assert(!p->block[tip].is_snapshot);
    for (uint32_t i = 0; i < p->window_blocks && i < n; i++) {
        ct_prefix_block *b = &p->block[block];

        if (b->sliding == CT_PAGE_NONE) {
            b->sliding = sliding[n - 1 - i];
            ct_pages_hold(p->sliding, b->sliding);
        }
        b->n_windows++;
        block = b->parent;
    }
    p->block[tip].is_snapshot = true;
    p->n_snapshots++;
    list_push(p, tip);
}

void ct_prefix_touch(ct_prefix *p, uint32_t tip)
{
    assert(p->block[tip].is_snapshot);
    list_remove(p, tip);
    list_push(p, tip);
}

static void window_drop(ct_prefix *p, uint32_t tip)
{
    uint32_t block = tip;

    for (uint32_t i = 0; i < p->window_blocks && block != CT_PAGE_NONE; i++) {
        ct_prefix_block *b = &p->block[block];

        if (--b->n_windows == 0) {
            ct_pages_drop(p->sliding, b->sliding);
            b->sliding = CT_PAGE_NONE;
        }
        block = b->parent;
    }
}

bool ct_prefix_evict(ct_prefix *p)
{
    uint32_t block = p->oldest;

    if (block == CT_PAGE_NONE)
        return false;
    list_remove(p, block);
    p->block[block].is_snapshot = false;
    p->n_snapshots--;
    p->n_evicted++;
    window_drop(p, block);
    while (block != CT_PAGE_NONE && !p->block[block].n_children && !p->block[block].is_snapshot) {
        uint32_t parent = p->block[block].parent;

        block_remove(p, block);
        block = parent;
    }
    return true;
}

/* --- checking ----------------------------------------------------------------- */

/* Counts children and windows into seen, and looks at one block by itself. */
static bool check_block(const ct_prefix *p, uint32_t page, uint32_t *children, uint32_t *windows)
{
    const ct_prefix_block *b = &p->block[page];
    uint32_t up = page;

    if (!p->global->held[page] ||
        find_block(p, b->parent, b->salt, b->hash, ct_prefix_ids(p, page)) != page ||
        hash_after(p, b->parent, b->salt, ct_prefix_ids(p, page)) != b->hash)
        return false;
    if (b->parent != CT_PAGE_NONE) {
        if (b->parent >= p->global->n || !p->block[b->parent].serial ||
            p->block[b->parent].salt != b->salt)
            return false;
        children[b->parent]++;
    }
    for (uint32_t i = 0; b->is_snapshot && i < p->window_blocks && up != CT_PAGE_NONE; i++) {
        windows[up]++;
        up = p->block[up].parent;
    }
    return true;
}

static bool check_list(const ct_prefix *p)
{
    uint32_t n = 0, newer = CT_PAGE_NONE, at = p->newest;

    for (; at != CT_PAGE_NONE && n <= p->n_snapshots; n++) {
        const ct_prefix_block *b = &p->block[at];

        if (!b->serial || !b->is_snapshot || b->newer != newer)
            return false;
        newer = at;
        at = b->older;
    }
    return n == p->n_snapshots && at == CT_PAGE_NONE && p->oldest == newer;
}

static bool check_counts(const ct_prefix *p, const uint32_t *children, const uint32_t *windows,
                         uint32_t *held)
{
    uint32_t n_blocks = 0, n_snapshots = 0, n_held = 0, n_sliding = 0;

    for (uint32_t i = 0; i < p->global->n; i++) {
        const ct_prefix_block *b = &p->block[i];

        n_held += p->global->held[i];
        if (!b->serial)
            continue;
        n_blocks++;
        n_snapshots += b->is_snapshot;
        if (b->n_children != children[i] || b->n_windows != windows[i] ||
            (!children[i] && !b->is_snapshot) || (b->sliding != CT_PAGE_NONE) != (windows[i] > 0))
            return false;
        n_sliding += windows[i] > 0;
        /* No two blocks hold one page. */
        if (windows[i] && (!p->sliding->held[b->sliding] || held[b->sliding]++))
            return false;
    }
    for (uint32_t i = 0; i < p->sliding->n; i++)
        n_sliding -= p->sliding->held[i];
    return n_blocks == p->n_blocks && n_snapshots == p->n_snapshots && n_held == n_blocks &&
           n_sliding == 0;
}

bool ct_prefix_consistent(const ct_prefix *p, uint32_t *seen)
{
    const uint32_t n = p->global->n;
    uint32_t *children = seen, *windows = seen + n, *held = seen + 2 * (size_t)n;

    memset(seen, 0, (2 * (size_t)n + p->sliding->n) * sizeof *seen);
    for (uint32_t i = 0; i < n; i++)
        if (p->block[i].serial && !check_block(p, i, children, windows))
            return false;
    return check_list(p) && check_counts(p, children, windows, held);
}
