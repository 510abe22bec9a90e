#include "text/vocab.h"

#include "base/checked.h"
#include "base/utf8.h"

#include <inttypes.h>
#include <stdio.h>

#define TAG_SHIFT 21 /* ids + 1 reach 2^20 */
#define ID_MASK   ((1u << TAG_SHIFT) - 1)

ct_status ct_vocab_init(ct_vocab *v, ct_arena *a, uint32_t room, ct_error *err)
{
    *v = (ct_vocab){.text = (const char *)a->base, .room = room};
    v->at = ct_arena_alloc(a, room * sizeof *v->at, CT_ALIGN);
    v->n_bytes = ct_arena_zalloc(a, room, sizeof *v->n_bytes);
    if (!v->at || !v->n_bytes)
        return ct_fail(err, CT_ELIMIT, "no memory for %" PRIu32 " pieces", room);
    return CT_OK;
}

ct_status ct_vocab_add(ct_vocab *v, ct_str piece, uint32_t id, ct_error *err)
{
    if (id >= v->room)
        return ct_fail(err, CT_EFORMAT,
                       "id %" PRIu32 " cannot be dense: at most %" PRIu32 " pieces fit here", id,
                       v->room);
    if (piece.n == 0)
        return ct_fail(err, CT_EFORMAT, "id %" PRIu32 " is an empty piece", id);
    if (piece.n > CT_VOCAB_MAX_PIECE_BYTES)
        return ct_fail(err, CT_ELIMIT,
                       "id %" PRIu32 " is a piece of %zu bytes, at most %d are read", id, piece.n,
                       CT_VOCAB_MAX_PIECE_BYTES);
    if (v->n_bytes[id])
        return ct_fail(err, CT_EFORMAT, "id %" PRIu32 " is given to two pieces", id);
    v->at[id] = (uint32_t)(piece.p - v->text);
    v->n_bytes[id] = (uint16_t)piece.n;
    v->n++;
    if (id >= v->end)
        v->end = id + 1;
    return CT_OK;
}

/* FNV-1a, which may be continued over a second string: a merge's result is looked up
 * without joining its halves. */
static uint64_t hash_bytes(uint64_t h, ct_str s)
{
    for (size_t i = 0; i < s.n; i++)
        h = (h ^ (unsigned char)s.p[i]) * 0x100000001b3u;
    return h;
}

static uint64_t hash_joined(ct_str head, ct_str tail)
{
    return hash_bytes(hash_bytes(0xcbf29ce484222325u, head), tail) * 0x9e3779b97f4a7c15u;
}

static bool is_joined(ct_str piece, ct_str head, ct_str tail)
{
    return piece.n == head.n + tail.n && !memcmp(piece.p, head.p, head.n) &&
           (!tail.n || !memcmp(piece.p + head.n, tail.p, tail.n));
}

/* Slot that holds the text, or the free one where its walk ends. */
static uint32_t *find_slot(const ct_vocab *v, ct_str head, ct_str tail, unsigned *n_probes)
{
    uint64_t h = hash_joined(head, tail);
    size_t mask = ((size_t)1 << v->slot_bits) - 1;
    uint32_t tag = (uint32_t)h >> TAG_SHIFT;
    size_t i = h >> (64 - v->slot_bits);

    for (*n_probes = 0;; ++*n_probes, i = (i + 1) & mask) {
        uint32_t slot = v->slot[i];

        if (!slot)
            return &v->slot[i];
        if (slot >> TAG_SHIFT == tag &&
            is_joined(ct_vocab_piece(v, (slot & ID_MASK) - 1), head, tail))
            return &v->slot[i];
    }
}

uint32_t ct_vocab_find(const ct_vocab *v, ct_str head, ct_str tail)
{
    unsigned n_probes;
    uint32_t slot;

    if (head.n + tail.n == 0)
        return CT_TOKEN_NONE;
    slot = *find_slot(v, head, tail, &n_probes);
    return slot ? (slot & ID_MASK) - 1 : CT_TOKEN_NONE;
}

static ct_status build_index(ct_vocab *v, ct_arena *scratch, ct_error *err)
{
    v->slot_bits = 1;
    while ((size_t)1 << v->slot_bits < (size_t)2 * v->n)
        v->slot_bits++;
    v->slot = ct_arena_zalloc(scratch, (size_t)1 << v->slot_bits, sizeof *v->slot);
    if (!v->slot)
        return ct_fail(err, CT_ELIMIT, "no memory for an index of %" PRIu32 " pieces", v->n);
    for (uint32_t id = 0; id < v->n; id++) {
        ct_str piece = ct_vocab_piece(v, id);
        unsigned n_probes;
        uint32_t *slot = find_slot(v, piece, CT_STR(""), &n_probes);

        if (*slot)
            return ct_fail(err, CT_EFORMAT, "ids %" PRIu32 " and %" PRIu32 " are the same piece",
                           (*slot & ID_MASK) - 1, id);
        if (n_probes > CT_VOCAB_MAX_PROBES)
            return ct_fail(err, CT_ELIMIT, "pieces chosen to collide: %u in one place, at most %d",
                           n_probes, CT_VOCAB_MAX_PROBES);
        *slot = (uint32_t)hash_joined(piece, CT_STR("")) >> TAG_SHIFT << TAG_SHIFT | (id + 1);
    }
    return CT_OK;
}

static ct_status find_bytes(ct_vocab *v, ct_error *err)
{
    for (unsigned b = 0; b < 256; b++) {
        char z[8];

        snprintf(z, sizeof z, "<0x%02X>", b);
        v->byte_id[b] = ct_vocab_find(v, ct_str_of(z), CT_STR(""));
        if (v->byte_id[b] == CT_TOKEN_NONE)
            return ct_fail(err, CT_EUNSUPPORTED, "byte piece %s is missing", z);
    }
    return CT_OK;
}

/* The code point that is the whole piece, or CT_UTF8_INVALID. */
static uint32_t single_char(ct_str piece)
{
    unsigned len;
    uint32_t cp = ct_utf8_next(piece, 0, &len);

    return len == piece.n ? cp : CT_UTF8_INVALID;
}

static ct_status map_chars(ct_vocab *v, ct_arena *a, ct_error *err)
{
    uint16_t n_pages = 1;

    v->page_of = ct_arena_zalloc(a, CT_VOCAB_N_PAGES, sizeof *v->page_of);
    if (!v->page_of)
        goto full;
    for (uint32_t id = 0; id < v->n; id++) {
        uint32_t cp = single_char(ct_vocab_piece(v, id));

        if (cp != CT_UTF8_INVALID && !v->page_of[cp >> 8])
            v->page_of[cp >> 8] = n_pages++;
    }
    v->page = ct_arena_alloc(a, n_pages * 256 * sizeof *v->page, CT_ALIGN);
    if (!v->page)
        goto full;
    memset(v->page, 0xff, n_pages * 256 * sizeof *v->page); /* CT_TOKEN_NONE */
    for (uint32_t id = 0; id < v->n; id++) {
        uint32_t cp = single_char(ct_vocab_piece(v, id));

        if (cp != CT_UTF8_INVALID)
            v->page[(size_t)v->page_of[cp >> 8] << 8 | (cp & 0xff)] = id;
    }
    return CT_OK;
full:
    return ct_fail(err, CT_ELIMIT, "no memory for %u pages of characters", n_pages);
}

ct_status ct_vocab_seal(ct_vocab *v, ct_arena *a, ct_arena *scratch, ct_error *err)
{
    ct_status st;

    if (v->n != v->end)
        return ct_fail(err, CT_EFORMAT,
                       "ids are not dense: %" PRIu32 " pieces, but the largest id is %" PRIu32,
                       v->n, v->end - 1);
    st = build_index(v, scratch, err);
    if (!st)
        st = find_bytes(v, err);
    if (!st)
        st = map_chars(v, a, err);
    return st;
}

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c |= 0x20;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

int ct_piece_byte(ct_str piece)
{
    int high, low;

    if (piece.n != 6 || memcmp(piece.p, "<0x", 3) != 0 || piece.p[5] != '>')
        return -1;
    high = piece.p[3] == '+' ? 0 : hex_digit(piece.p[3]);
    low = hex_digit(piece.p[4]);
    return high < 0 || low < 0 ? -1 : high << 4 | low;
}
