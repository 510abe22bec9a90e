/* Gemma 4 tokenizer: BPE by merge rank over code points with byte fallback, read from
 * the checkpoint's tokenizer.json (any vocabulary of that form, not only Google's).
 * Encode and decode may run on many threads at once: nothing changes after the load but a
 * table of words seen before (4 MB at most), which takes no lock and changes no result. */
#ifndef CT_TEXT_TOKENIZER_H
#define CT_TEXT_TOKENIZER_H

#include "base/status.h"
#include "base/str.h"

typedef struct ct_tokenizer ct_tokenizer;

#define CT_TOKEN_NONE UINT32_MAX

/* Growing list of token ids on the heap. */
typedef struct ct_ids {
    uint32_t *id; /* owned */
    size_t n, room;
} ct_ids;

void ct_ids_deinit(ct_ids *ids); /* fine on an all-zero list */
ct_status ct_ids_add(ct_ids *ids, uint32_t id, ct_error *err);

/* path: a tokenizer.json, or the directory that holds it. */
ct_status ct_tokenizer_open(ct_tokenizer **out, const char *path, ct_error *err);
/* text is borrowed for the call only. */
ct_status ct_tokenizer_parse(ct_tokenizer **out, const char *name, ct_str text, ct_error *err);
void ct_tokenizer_destroy(ct_tokenizer *t);

uint32_t ct_tokenizer_vocab(const ct_tokenizer *t); /* ids are 0 … vocab-1 */
/* Id of an added token by its text ("<turn|>"), CT_TOKEN_NONE when there is none. */
uint32_t ct_tokenizer_special(const ct_tokenizer *t, ct_str text);
bool ct_tokenizer_is_special(const ct_tokenizer *t, uint32_t id);
/* The piece as it stands in the vocabulary (▁ not replaced); {NULL, 0} out of range. */
ct_str ct_tokenizer_piece(const ct_tokenizer *t, uint32_t id);

typedef enum ct_special_mode {
    CT_SPECIAL_MATCH, /* "<turn|>" in the text becomes the control token, as in Hugging Face */
    CT_SPECIAL_PLAIN, /* control strings are ordinary text: for untrusted content */
} ct_special_mode;

/* Appends the ids of text (UTF-8; malformed bytes are refused).  Adds no BOS.  Time is
 * near-linear in the length of any input. */
ct_status ct_tokenizer_encode(const ct_tokenizer *t, ct_str text, ct_special_mode mode, ct_ids *out,
                              ct_error *err);

/* Appends the text of ids, as `tokenizers` decodes them: a maximal run of byte pieces is
 * that text if valid as a whole, otherwise one U+FFFD for each byte. */
ct_status ct_tokenizer_decode(const ct_tokenizer *t, const uint32_t *ids, size_t n,
                              bool skip_special, ct_buf *out, ct_error *err);

/* Streaming decode: never half a character.  Complete code points are given out as soon
 * as they are valid; bytes that cannot become valid come out as U+FFFD each.  The pieces
 * joined equal the whole decode unless a byte run mixes valid and invalid text. */
typedef struct ct_detok {
    const ct_tokenizer *t; /* borrowed */
    bool skip_special;
    unsigned char pending[4]; /* bytes of an unfinished character */
    unsigned n_pending;
} ct_detok;

void ct_detok_init(ct_detok *d, const ct_tokenizer *t, bool skip_special);
ct_status ct_detok_add(ct_detok *d, uint32_t id, ct_buf *out, ct_error *err);
void ct_detok_finish(ct_detok *d, ct_buf *out); /* flushes a cut character as U+FFFD */

#endif
