#include "text/vocab.h"

#include "base/checked.h"
#include "base/utf8.h"

#include <inttypes.h>
#include <stdio.h>

/* A slot of the index holds all that a look-up compares but the text itself, so that it
 * costs two cache misses: 6 bits of hash, 10 of length, 20 of id, 28 of place.  0 is
 * free, since no length is. */
#define KEY_SHIFT 48
#define ID_SHIFT  28
/* Pieces whose slots are fetched together. */
#define AHEAD 32

static uint64_t slot_key(uint64_t hash, size_t n_bytes)
{
    return (hash & 0x3f) << 10 | n_bytes;
}

static uint32_t slot_id(uint64_t slot)
{
    return (uint32_t)(slot >> ID_SHIFT) & (CT_VOCAB_MAX_PIECES - 1);
}

static size_t slot_at(uint64_t slot)
{
    return slot & (CT_VOCAB_MAX_TEXT_BYTES - 1);
}

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
    if ((size_t)(piece.p - v->text) >= CT_VOCAB_MAX_TEXT_BYTES)
        return ct_fail(err, CT_ELIMIT, "id %" PRIu32 " exceeds %zu bytes of pieces", id,
                       CT_VOCAB_MAX_TEXT_BYTES);
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

static bool is_joined(const char *piece, ct_str head, ct_str tail)
{
    return !memcmp(piece, head.p, head.n) && (!tail.n || !memcmp(piece + head.n, tail.p, tail.n));
}

/* Slot that holds the text, or the free one where its walk ends. */
static uint64_t *find_slot(const ct_vocab *v, ct_str head, ct_str tail, uint64_t hash,
                           unsigned *n_probes)
{
    size_t mask = ((size_t)1 << v->slot_bits) - 1;
    size_t i = hash >> (64 - v->slot_bits);
    uint64_t key = slot_key(hash, head.n + tail.n);

    for (*n_probes = 0;; ++*n_probes, i = (i + 1) & mask) {
        uint64_t slot = v->slot[i];

        if (!slot || (slot >> KEY_SHIFT == key && is_joined(v->text + slot_at(slot), head, tail)))
            return &v->slot[i];
    }
}

static uint32_t find_hashed(const ct_vocab *v, ct_str head, ct_str tail, uint64_t hash)
{
    size_t n = head.n + tail.n;
    unsigned n_probes;
    uint64_t slot;

    if (n == 0 || n > CT_VOCAB_MAX_PIECE_BYTES)
        return CT_TOKEN_NONE;
    slot = *find_slot(v, head, tail, hash, &n_probes);
    return slot ? slot_id(slot) : CT_TOKEN_NONE;
}

uint32_t ct_vocab_find(const ct_vocab *v, ct_str head, ct_str tail)
{
    return find_hashed(v, head, tail, hash_joined(head, tail));
}

/* Three passes, each asking for the memory that the next one reads: the slots, then the
 * texts that the slots point to. */
void ct_vocab_find_all(const ct_vocab *v, ct_vocab_query *q, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        q[i].hash = hash_joined(q[i].head, q[i].tail);
        __builtin_prefetch(&v->slot[q[i].hash >> (64 - v->slot_bits)]);
    }
    for (size_t i = 0; i < n; i++)
        __builtin_prefetch(v->text + slot_at(v->slot[q[i].hash >> (64 - v->slot_bits)]));
    for (size_t i = 0; i < n; i++)
        q[i].id = find_hashed(v, q[i].head, q[i].tail, q[i].hash);
}

static ct_status index_piece(ct_vocab *v, uint32_t id, uint64_t hash, ct_error *err)
{
    ct_str piece = ct_vocab_piece(v, id);
    unsigned n_probes;
    uint64_t *slot = find_slot(v, piece, CT_STR(""), hash, &n_probes);

    if (*slot)
        return ct_fail(err, CT_EFORMAT, "ids %" PRIu32 " and %" PRIu32 " are the same piece",
                       slot_id(*slot), id);
    if (n_probes > CT_VOCAB_MAX_PROBES)
        return ct_fail(err, CT_ELIMIT, "pieces chosen to collide: %u in one place, at most %d",
                       n_probes, CT_VOCAB_MAX_PROBES);
    *slot = slot_key(hash, piece.n) << KEY_SHIFT | (uint64_t)id << ID_SHIFT | v->at[id];
    return CT_OK;
}

/* n up to AHEAD pieces from this id on. */
static ct_status index_some(ct_vocab *v, uint32_t first, size_t n, ct_error *err)
{
    uint64_t hash[AHEAD];

    for (size_t i = 0; i < n; i++) {
        hash[i] = hash_joined(ct_vocab_piece(v, first + (uint32_t)i), CT_STR(""));
        __builtin_prefetch(&v->slot[hash[i] >> (64 - v->slot_bits)], 1);
    }
    for (size_t i = 0; i < n; i++) {
        ct_status st = index_piece(v, first + (uint32_t)i, hash[i], err);

        if (st)
            return st;
    }
    return CT_OK;
}

static ct_status build_index(ct_vocab *v, ct_arena *scratch, ct_error *err)
{
    v->slot_bits = 1;
    while ((size_t)1 << v->slot_bits < (size_t)2 * v->n)
        v->slot_bits++;
    v->slot = ct_arena_zalloc(scratch, (size_t)1 << v->slot_bits, sizeof *v->slot);
    if (!v->slot)
        return ct_fail(err, CT_ELIMIT, "no memory for an index of %" PRIu32 " pieces", v->n);
    for (uint32_t id = 0; id < v->n; id += AHEAD) {
        ct_status st = index_some(v, id, ct_min_size(AHEAD, v->n - id), err);

        if (st)
            return st;
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

int ct_piece_byte(ct_str piece)
{
    int high, low;

    if (piece.n != CT_PIECE_BYTE_BYTES || memcmp(piece.p, "<0x", 3) != 0 || piece.p[5] != '>')
        return -1;
    high = piece.p[3] == '+' ? 0 : ct_hex_digit(piece.p[3]);
    low = ct_hex_digit(piece.p[4]);
    return high < 0 || low < 0 ? -1 : high << 4 | low;
}
