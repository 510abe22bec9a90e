/* The pieces of a vocabulary: by id, by text while loading, and by code point.
 *
 * Pieces are added in any order, then ct_vocab_seal() checks that they are a dense,
 * unambiguous list with all byte pieces.  Memory comes from the caller's arenas.
 * Immutable once sealed, but for the index, which lives in the loader's scratch. */
#ifndef CT_TEXT_VOCAB_H
#define CT_TEXT_VOCAB_H

#include "base/arena.h"
#include "base/status.h"
#include "base/str.h"
#include "text/tokenizer.h"

#define CT_VOCAB_MAX_PIECES      (1u << 20)
#define CT_VOCAB_MAX_PIECE_BYTES 1023
/* Longest walk through a hash table before a vocabulary is refused: about 30 times what
 * a table half full of anything but chosen collisions needs. */
#define CT_VOCAB_MAX_PROBES 1024
/* Pieces lie in the first part of their arena. */
#define CT_VOCAB_MAX_TEXT_BYTES ((size_t)1 << 28)

/* U+2581, which stands for a space inside pieces. */
#define CT_SPACE_MARK       0x2581
#define CT_SPACE_MARK_BYTES "\xe2\x96\x81"

typedef struct ct_vocab {
    const char *text;  /* borrowed: the arena's base; pieces are offsets from it */
    uint32_t *at;      /* [room] */
    uint16_t *n_bytes; /* [room]; 0 while there is no such id, for no piece is empty */
    uint32_t n, room;
    uint32_t end; /* largest id so far + 1; equal to n once sealed */

    uint32_t byte_id[256]; /* of "<0xHH>" */
    /* Id of each code point that is a piece by itself: page_of[cp >> 8] names a page.
     * Page 0 holds no ids. */
    uint16_t *page_of; /* [CT_VOCAB_N_PAGES] */
    uint32_t *page;    /* [n_pages][256] */

    uint64_t *slot; /* the index, by text; scratch */
    unsigned slot_bits;
} ct_vocab;

#define CT_VOCAB_N_PAGES (0x110000u >> 8)

/* a must be fresh: its base becomes the base of all pieces.  room: most pieces. */
ct_status ct_vocab_init(ct_vocab *v, ct_arena *a, uint32_t room, ct_error *err);
/* piece lies in the arena.  Errors do not name the file: callers prefix them. */
ct_status ct_vocab_add(ct_vocab *v, ct_str piece, uint32_t id, ct_error *err);
ct_status ct_vocab_seal(ct_vocab *v, ct_arena *a, ct_arena *scratch, ct_error *err);

static inline ct_str ct_vocab_piece(const ct_vocab *v, uint32_t id)
{
    return (ct_str){v->text + v->at[id], v->n_bytes[id]};
}

/* Id of the piece whose text is head and tail joined, CT_TOKEN_NONE when there is none.
 * Only between sealing and the end of scratch. */
uint32_t ct_vocab_find(const ct_vocab *v, ct_str head, ct_str tail);

/* One look-up among many: head, tail and id as above; hash is scratch. */
typedef struct ct_vocab_query {
    ct_str head, tail;
    uint64_t hash;
    uint32_t id;
} ct_vocab_query;

/* Answers all of them, with their cache misses overlapped. */
void ct_vocab_find_all(const ct_vocab *v, ct_vocab_query *q, size_t n);

static inline uint32_t ct_vocab_char(const ct_vocab *v, uint32_t cp)
{
    return v->page[(size_t)v->page_of[cp >> 8] << 8 | (cp & 0xff)];
}

/* Value of a byte piece, or -1.  As in `tokenizers`, decoding also takes lower case and a
 * plus sign: "<0xe4>", "<0x+a>". */
int ct_piece_byte(ct_str piece);
#define CT_PIECE_BYTE_BYTES 6

#endif
