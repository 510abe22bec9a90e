#include "text/bpe.h"

#include "base/checked.h"

#include <assert.h>

/* A symbol of a long segment, named by the place where its text began. */
typedef struct symbol {
    uint32_t id;
    uint32_t rank; /* of the pair with the next symbol; CT_RANK_NONE also once swallowed */
    uint32_t prev, next;
} symbol;

#define NO_SYMBOL UINT32_MAX
/* Children of a heap node: half the levels of a binary heap, and siblings share a line. */
#define FANOUT ((size_t)4)

/* Min-heap of (rank, place).  It holds every pair that comes before both its neighbours,
 * the first of all among them, and little else: a run of one letter has one such pair, not
 * one for each letter.  Entries are not removed when a symbol's pair changes: one whose
 * rank is not its symbol's any more is stale.  A pair never comes back at the same place,
 * for symbols only grow. */
typedef struct heap {
    uint64_t *entry;
    size_t n;
} heap;

static_assert(2 * sizeof(uint64_t) + sizeof(symbol) == 32, "CT_BPE_SCRATCH_BYTES");

static size_t least_child(const heap *h, size_t first)
{
    size_t end = ct_min_size(first + FANOUT, h->n), least = first;

    for (size_t i = first + 1; i < end; i++)
        if (h->entry[i] < h->entry[least])
            least = i;
    return least;
}

static void sift_down(heap *h, size_t at)
{
    uint64_t moved = h->entry[at];

    while (FANOUT * at + 1 < h->n) {
        size_t child = least_child(h, FANOUT * at + 1);

        if (h->entry[child] >= moved)
            break;
        h->entry[at] = h->entry[child];
        at = child;
    }
    h->entry[at] = moved;
}

static void heap_push(heap *h, uint32_t rank, uint32_t at)
{
    uint64_t entry = (uint64_t)rank << 32 | at;
    size_t i = h->n++;

    while (i > 0 && h->entry[(i - 1) / FANOUT] > entry) {
        h->entry[i] = h->entry[(i - 1) / FANOUT];
        i = (i - 1) / FANOUT;
    }
    h->entry[i] = entry;
}

static uint64_t heap_pop(heap *h)
{
    uint64_t least = h->entry[0];

    h->entry[0] = h->entry[--h->n];
    if (h->n)
        sift_down(h, 0);
    return least;
}

/* Whether the pair at this symbol comes before the pairs that share a symbol with it;
 * among equal ranks the left one is first. */
static bool is_before_neighbours(const symbol *s, uint32_t at)
{
    const symbol *here = &s[at];

    if (here->rank == CT_RANK_NONE || s[here->next].rank < here->rank)
        return false;
    return here->prev == NO_SYMBOL || s[here->prev].rank > here->rank;
}

static void rank_pair(const ct_merges *m, symbol *s, uint32_t at)
{
    uint32_t next = s[at].next;

    s[at].rank = next == NO_SYMBOL ? CT_RANK_NONE : ct_merges_rank(m, s[at].id, s[next].id);
}

/* Links the symbols and fills the heap; heapify is linear, where pushing is not. */
static void begin_long(const ct_merges *m, const uint32_t *seg, size_t n, symbol *s, heap *h)
{
    for (size_t i = 0; i < n; i++)
        s[i] = (symbol){seg[i], 0, (uint32_t)(i - 1), (uint32_t)(i + 1)};
    s[0].prev = NO_SYMBOL;
    s[n - 1].next = NO_SYMBOL;
    for (uint32_t i = 0; i < n; i++)
        rank_pair(m, s, i);
    for (uint32_t i = 0; i < n; i++)
        if (is_before_neighbours(s, i))
            h->entry[h->n++] = (uint64_t)s[i].rank << 32 | i;
    for (size_t i = (h->n + FANOUT - 2) / FANOUT; i-- > 0;)
        sift_down(h, i);
}

/* Joins a symbol with its next.  The two pairs around the new symbol change, and with
 * them what the pairs beyond have for neighbours. */
static void merge_pair(const ct_merges *m, symbol *s, uint32_t at, heap *h)
{
    uint32_t prev = s[at].prev, swallowed = s[at].next, next = s[swallowed].next;
    uint32_t around[4] = {prev == NO_SYMBOL ? NO_SYMBOL : s[prev].prev, prev, at, next};

    s[at].id = m->result[s[at].rank];
    s[at].next = next;
    s[swallowed].rank = CT_RANK_NONE;
    if (next != NO_SYMBOL)
        s[next].prev = at;
    rank_pair(m, s, at);
    if (prev != NO_SYMBOL)
        rank_pair(m, s, prev);
    for (int i = 0; i < 4; i++)
        if (around[i] != NO_SYMBOL && is_before_neighbours(s, around[i]))
            heap_push(h, s[around[i]].rank, around[i]);
}

static size_t merge_long(const ct_merges *m, uint32_t *seg, size_t n, ct_arena *scratch)
{
    ct_arena_mark mark = ct_arena_save(scratch);
    symbol *s = ct_arena_alloc(scratch, n * sizeof *s, CT_ALIGN);
    /* Of neighbours at most every other is in front: n / 2 entries at first, and each merge
     * takes one and adds two at most. */
    heap h = {ct_arena_alloc(scratch, 2 * n * sizeof *h.entry, CT_ALIGN), 0};
    size_t n_left = 0;

    assert(s && h.entry);
    begin_long(m, seg, n, s, &h);
    while (h.n) {
        uint64_t entry = heap_pop(&h);
        uint32_t at = (uint32_t)entry;

        if (s[at].rank == entry >> 32)
            merge_pair(m, s, at, &h);
    }
    for (uint32_t at = 0; at != NO_SYMBOL; at = s[at].next)
        seg[n_left++] = s[at].id;
    ct_arena_rewind(scratch, mark);
    return n_left;
}

static size_t merge_short(const ct_merges *m, uint32_t *seg, size_t n)
{
    uint32_t rank[CT_BPE_SHORT]; /* of seg[i] with seg[i + 1] */

    for (size_t i = 0; i + 1 < n; i++)
        rank[i] = ct_merges_rank(m, seg[i], seg[i + 1]);
    while (n > 1) {
        size_t best = 0;

        for (size_t i = 1; i + 1 < n; i++)
            if (rank[i] < rank[best])
                best = i;
        if (rank[best] == CT_RANK_NONE)
            break;
        seg[best] = m->result[rank[best]];
        n--;
        memmove(seg + best + 1, seg + best + 2, (n - best - 1) * sizeof *seg);
        memmove(rank + best, rank + best + 1, (n - best - 1) * sizeof *rank);
        if (best + 1 < n)
            rank[best] = ct_merges_rank(m, seg[best], seg[best + 1]);
        if (best > 0)
            rank[best - 1] = ct_merges_rank(m, seg[best - 1], seg[best]);
    }
    return n;
}

size_t ct_bpe_merge(const ct_merges *m, uint32_t *seg, size_t n, ct_arena *scratch)
{
    assert(n < UINT32_MAX / 2);
    if (n < 2)
        return n;
    return n <= CT_BPE_SHORT ? merge_short(m, seg, n) : merge_long(m, seg, n, scratch);
}
