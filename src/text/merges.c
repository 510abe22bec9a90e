#include "text/merges.h"

#include "base/utf8.h"

#include <inttypes.h>

/* Merges whose slots are fetched before they are needed. */
#define AHEAD 16

ct_status ct_merges_init(ct_merges *m, ct_arena *a, ct_arena *scratch, uint32_t room, ct_error *err)
{
    *m = (ct_merges){.room = room};
    m->pair = ct_arena_alloc(scratch, room * sizeof *m->pair, CT_ALIGN);
    m->result = ct_arena_alloc(a, room * sizeof *m->result, CT_ALIGN);
    m->join = ct_arena_zalloc(a, ((size_t)1 << CT_JOIN_BITS) / 64, sizeof *m->join);
    if (!m->pair || !m->result || !m->join)
        return ct_fail(err, CT_ELIMIT, "no memory for %" PRIu32 " merges", room);
    return CT_OK;
}

static uint32_t first_char(ct_str piece)
{
    unsigned len;

    return ct_utf8_known(piece.p, &len);
}

static uint32_t last_char(ct_str piece)
{
    size_t at = piece.n - 1;
    unsigned len;

    while (at > 0 && ((unsigned char)piece.p[at] & 0xc0) == 0x80)
        at--;
    return ct_utf8_known(piece.p + at, &len);
}

ct_status ct_merges_add(ct_merges *m, const ct_vocab_query *join, uint32_t left, uint32_t right,
                        ct_error *err)
{
    size_t bit = ct_join_bit(last_char(join->head), first_char(join->tail));

    if (m->n == m->room)
        return ct_fail(err, CT_ELIMIT, "more than %" PRIu32 " merges", m->room);
    m->pair[m->n] = ct_merges_pair(left, right);
    m->result[m->n] = join->id;
    m->join[bit >> 6] |= (uint64_t)1 << (bit & 63);
    m->n++;
    return CT_OK;
}

static ct_status insert(ct_merges *m, uint32_t rank, ct_error *err)
{
    uint64_t pair = m->pair[rank];
    size_t mask = ((size_t)1 << m->slot_bits) - 1;
    size_t i = ct_merges_hash(pair) >> (64 - m->slot_bits);

    for (unsigned n_probes = 0; m->slot[i] != CT_MERGE_EMPTY; i = (i + 1) & mask) {
        if (m->slot[i] >> CT_PAIR_SHIFT == pair)
            return ct_fail(err, CT_EFORMAT, "merges %" PRIu64 " and %" PRIu32 " are the same pair",
                           m->slot[i] & CT_MERGES_MAX, rank);
        if (++n_probes > CT_VOCAB_MAX_PROBES)
            return ct_fail(err, CT_ELIMIT, "merges chosen to collide: %u in one place, at most %d",
                           n_probes, CT_VOCAB_MAX_PROBES);
    }
    m->slot[i] = pair << CT_PAIR_SHIFT | rank;
    return CT_OK;
}

ct_status ct_merges_seal(ct_merges *m, ct_arena *a, ct_error *err)
{
    size_t n_bytes;

    m->slot_bits = 1;
    while ((size_t)1 << m->slot_bits < (size_t)2 * m->n)
        m->slot_bits++;
    n_bytes = sizeof *m->slot << m->slot_bits;
    m->slot = ct_arena_alloc(a, n_bytes, CT_ALIGN);
    if (!m->slot)
        return ct_fail(err, CT_ELIMIT, "no memory for a table of %" PRIu32 " merges", m->n);
    memset(m->slot, 0xff, n_bytes); /* CT_MERGE_EMPTY */
    for (uint32_t rank = 0; rank < m->n; rank++) {
        uint32_t later = rank + AHEAD < m->n ? rank + AHEAD : rank;
        ct_status st = insert(m, rank, err);

        __builtin_prefetch(&m->slot[ct_merges_hash(m->pair[later]) >> (64 - m->slot_bits)], 1);

        if (st)
            return st;
    }
    m->pair = NULL;
    return CT_OK;
}
