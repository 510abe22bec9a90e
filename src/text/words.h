/* Ids of short stretches of text that were encoded before.  A stretch between two cuts
 * always gives the same ids, whatever stands around it, so that most of any text is
 * found here instead of merged.
 *
 * One table a tokenizer, of fixed size, shared by all threads without a lock: a line is
 * read and then checked not to have changed meanwhile, as in a sequence lock.  A lost
 * race or a displaced line costs a merge, never an answer. */
#ifndef CT_TEXT_WORDS_H
#define CT_TEXT_WORDS_H

#include "base/arena.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#define CT_WORD_BYTES   32
#define CT_WORD_IDS     6
#define CT_WORDS_2LINES 15 /* log2 of the pairs of lines: 4 MB */

/* One cache line.  The head counts changes; 0 is an empty line.  Bits from below: bytes of
 * the text, ids, a writer is at work, count. */
typedef struct ct_word_line {
    _Atomic uint64_t head;
    _Atomic uint64_t text[CT_WORD_BYTES / 8]; /* zero behind its end */
    _Atomic uint64_t id[CT_WORD_IDS / 2];
} ct_word_line;

typedef struct ct_words {
    ct_arena arena;
    ct_word_line *line; /* two neighbours a place */
} ct_words;

/* A text and where it belongs. */
typedef struct ct_word {
    uint64_t text[CT_WORD_BYTES / 8];
    uint64_t hash;
    unsigned n_bytes;
} ct_word;

#define CT_WORD_ID_SHIFT 8
#define CT_WORD_BUSY     ((uint64_t)1 << 16)
#define CT_WORD_ONCE     ((uint64_t)1 << 17)

ct_status ct_words_init(ct_words *w, bool huge, ct_error *err);
void ct_words_deinit(ct_words *w);
/* n_ids: 1 … CT_WORD_IDS. */
void ct_words_put(const ct_words *w, const ct_word *word, const uint32_t *id, unsigned n_ids);

static inline uint64_t ct_word_mix(uint64_t a, uint64_t b)
{
    unsigned __int128 product = (unsigned __int128)a * b;

    return (uint64_t)product ^ (uint64_t)(product >> 64);
}

/* n: 1 … CT_WORD_BYTES; room: bytes from p on that may be read. */
static inline void ct_word_init(ct_word *word, const char *p, size_t n, size_t room)
{
    static const unsigned char ones[2 * CT_WORD_BYTES] = {
        255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255,
        255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255};
    uint64_t mask[CT_WORD_BYTES / 8];

    if (room >= CT_WORD_BYTES) {
        memcpy(word->text, p, CT_WORD_BYTES);
        memcpy(mask, ones + CT_WORD_BYTES - n, CT_WORD_BYTES);
        for (int i = 0; i < CT_WORD_BYTES / 8; i++)
            word->text[i] &= mask[i];
    } else {
        memset(word->text, 0, CT_WORD_BYTES);
        memcpy(word->text, p, n);
    }
    word->n_bytes = (unsigned)n;
    word->hash = ct_word_mix(word->text[0] ^ 0x9e3779b97f4a7c15u,
                             word->text[1] ^ 0xd6e8feb86659fd93u ^ (uint64_t)n << 56);
    if (n > 16)
        word->hash ^=
            ct_word_mix(word->text[2] ^ 0xa0761d6478bd642fu, word->text[3] ^ 0xe7037ed1a0b428dbu);
}

static inline ct_word_line *ct_words_line(const ct_words *w, const ct_word *word)
{
    return w->line + 2 * (word->hash >> (64 - CT_WORDS_2LINES));
}

/* Ids in the line when it holds the word, else 0.  id has room for CT_WORD_IDS. */
static inline unsigned ct_word_read(ct_word_line *line, const ct_word *word, uint32_t *id)
{
    uint64_t head = atomic_load_explicit(&line->head, memory_order_acquire), differs = 0;
    uint64_t pair[CT_WORD_IDS / 2];

    if ((head & 0xff) != word->n_bytes || head & CT_WORD_BUSY)
        return 0;
    for (int i = 0; i < CT_WORD_BYTES / 8; i++)
        differs |= word->text[i] ^ atomic_load_explicit(&line->text[i], memory_order_relaxed);
    if (differs)
        return 0;
    for (int i = 0; i < CT_WORD_IDS / 2; i++)
        pair[i] = atomic_load_explicit(&line->id[i], memory_order_relaxed);
    /* Pairs with the fence of the writer: values of a later writer show its head too. */
    atomic_thread_fence(memory_order_acquire);
    if (atomic_load_explicit(&line->head, memory_order_relaxed) != head)
        return 0;
    memcpy(id, pair, sizeof pair);
    return (unsigned)(head >> CT_WORD_ID_SHIFT) & 0xff;
}

/* How many ids the word has, or 0 when it is not here. */
static inline unsigned ct_words_find(const ct_words *w, const ct_word *word, uint32_t *id)
{
    ct_word_line *line = ct_words_line(w, word);
    unsigned n = ct_word_read(line, word, id);

    return n ? n : ct_word_read(line + 1, word, id);
}

#endif
