/* The merges of a BPE vocabulary: rank and result of a pair of ids, and the places where
 * a text may be cut because no merge reaches across.
 *
 * Pairs are added in the order of their ranks, then sealed.  Immutable afterwards. */
#ifndef CT_TEXT_MERGES_H
#define CT_TEXT_MERGES_H

#include "base/arena.h"
#include "base/status.h"
#include "text/vocab.h"

/* Ranks have 24 bits beside the 40 of a pair. */
#define CT_MERGES_MAX ((1u << 24) - 1)
#define CT_RANK_NONE  UINT32_MAX

typedef struct ct_merges {
    uint64_t *slot; /* left id, right id, rank; UINT64_MAX is free */
    unsigned slot_bits;
    uint32_t *result; /* [n] id made by each rank */
    uint32_t n, room;
    uint64_t *pair; /* [room] while loading; scratch */
    uint64_t *join; /* bit set, see ct_merges_joins() */
} ct_merges;

#define CT_JOIN_BITS   20
#define CT_PAIR_SHIFT  24
#define CT_MERGE_EMPTY UINT64_MAX

/* room: most merges. */
ct_status ct_merges_init(ct_merges *m, ct_arena *a, ct_arena *scratch, uint32_t room,
                         ct_error *err);
/* The next rank: left and right become join, whose text is theirs. */
ct_status ct_merges_add(ct_merges *m, const ct_vocab_query *join, uint32_t left, uint32_t right,
                        ct_error *err);
ct_status ct_merges_seal(ct_merges *m, ct_arena *a, ct_error *err);

static inline uint64_t ct_merges_pair(uint32_t left, uint32_t right)
{
    return (uint64_t)left << 20 | right;
}

static inline uint64_t ct_merges_hash(uint64_t key)
{
    key *= 0x9e3779b97f4a7c15u;
    return (key ^ key >> 32) * 0xd6e8feb86659fd93u;
}

static inline uint32_t ct_merges_rank(const ct_merges *m, uint32_t left, uint32_t right)
{
    uint64_t pair = ct_merges_pair(left, right);
    size_t mask = ((size_t)1 << m->slot_bits) - 1;
    size_t i = ct_merges_hash(pair) >> (64 - m->slot_bits);

    for (; m->slot[i] != CT_MERGE_EMPTY; i = (i + 1) & mask)
        if (m->slot[i] >> CT_PAIR_SHIFT == pair)
            return (uint32_t)(m->slot[i] & (((uint64_t)1 << CT_PAIR_SHIFT) - 1));
    return CT_RANK_NONE;
}

/* Bit of a pair of neighbouring code points: direct for ASCII, hashed above.  A space
 * never stands in normalised text, so the space mark takes its place. */
static inline size_t ct_join_bit(uint32_t last, uint32_t first)
{
    if (last == CT_SPACE_MARK)
        last = ' ';
    if (first == CT_SPACE_MARK)
        first = ' ';
    if ((last | first) < 0x80)
        return last << 7 | first;
    return ct_merges_hash((uint64_t)last << 21 | first) >> (64 - CT_JOIN_BITS);
}

/* Whether some merge may join a piece that ends in `last` with one that begins with
 * `first`.  Where none does, the text can be cut and the parts merged apart with the
 * same result.  Two pairs may share a bit: that costs a cut, never an answer. */
static inline bool ct_merges_joins(const ct_merges *m, uint32_t last, uint32_t first)
{
    size_t bit = ct_join_bit(last, first);

    return m->join[bit >> 6] >> (bit & 63) & 1;
}

#endif
