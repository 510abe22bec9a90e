/* Finds the added tokens ("<turn|>") in raw text: leftmost, longest at one place.  A trie
 * over bytes; immutable once all are added. */
#ifndef CT_TEXT_SPECIALS_H
#define CT_TEXT_SPECIALS_H

#include "base/arena.h"
#include "base/status.h"
#include "text/tokenizer.h"

typedef struct ct_specials {
    struct ct_special_node *node; /* node 0 is the root */
    uint32_t n_nodes, room;
    bool begins[256]; /* some token begins with this byte */
} ct_specials;

/* text_bytes: of all tokens together. */
ct_status ct_specials_init(ct_specials *s, ct_arena *a, size_t text_bytes, ct_error *err);
/* text: not empty, within what init was told.  False when it is there already. */
bool ct_specials_add(ct_specials *s, ct_str text, uint32_t id);

/* Longest token that text begins with: its id and *n_bytes, or CT_TOKEN_NONE. */
uint32_t ct_specials_match(const ct_specials *s, ct_str text, size_t *n_bytes);

#endif
