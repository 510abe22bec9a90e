/* What the files of the tokenizer share. */
#ifndef CT_TEXT_TOKENIZER_IMPL_H
#define CT_TEXT_TOKENIZER_IMPL_H

#include "base/json.h"
#include "text/merges.h"
#include "text/specials.h"
#include "text/tokenizer.h"
#include "text/vocab.h"
#include "text/words.h"

struct ct_tokenizer {
    ct_arena arena; /* everything below but the words */
    ct_vocab vocab;
    ct_merges merges;
    ct_specials specials;
    uint64_t *is_special; /* bit set by id */
    ct_words words;       /* the one part that changes after the load */
};

#define CT_SHOWN_BYTES 40

/* Start of a string for a message: short, and cut between characters. */
static inline ct_str ct_tokenizer_shown(ct_str s)
{
    if (s.n <= CT_SHOWN_BYTES)
        return s;
    s.n = CT_SHOWN_BYTES;
    while (s.n && ((unsigned char)s.p[s.n] & 0xc0) == 0x80)
        s.n--;
    return s;
}

/* The fields of tokenizer.json that say how text becomes symbols and back have one
 * accepted setting each.  first: first token of the value; section: its key. */
ct_status ct_tokenizer_check_section(const char *section, ct_json *j, const ct_json_token *first,
                                     ct_error *err);

#endif
