#include "text/tokenizer.h"

#include "base/utf8.h"
#include "text/bpe.h"
#include "text/ids.h"
#include "text/tokenizer_impl.h"

#include <stdlib.h>

/* A place in a segment is a 31-bit number; this leaves room, and bounds memory. */
#define MAX_TEXT_BYTES ((size_t)256 << 20)

/* One call of encode.  A segment is the text between two places where it may be cut: a
 * word, mostly.  Its symbols are collected, merged and given out. */
typedef struct encoder {
    const ct_tokenizer *t;
    ct_ids *out;
    ct_error *err;
    uint32_t *seg; /* small, or in the arena */
    size_t n, room;
    size_t text_bytes;
    ct_arena arena; /* made when a segment outgrows `small` */
    uint32_t small[CT_BPE_SHORT];
} encoder;

void ct_tokenizer_destroy(ct_tokenizer *t)
{
    if (!t)
        return;
    ct_words_deinit(&t->words);
    ct_arena_deinit(&t->arena);
    free(t);
}

uint32_t ct_tokenizer_vocab(const ct_tokenizer *t)
{
    return t->vocab.n;
}

uint32_t ct_tokenizer_special(const ct_tokenizer *t, ct_str text)
{
    size_t n = 0;
    uint32_t id = ct_specials_match(&t->specials, text, &n);

    return n == text.n ? id : CT_TOKEN_NONE;
}

bool ct_tokenizer_is_special(const ct_tokenizer *t, uint32_t id)
{
    return id < t->vocab.n && t->is_special[id / 64] >> (id % 64) & 1;
}

ct_str ct_tokenizer_piece(const ct_tokenizer *t, uint32_t id)
{
    return id < t->vocab.n ? ct_vocab_piece(&t->vocab, id) : (ct_str){0};
}

/* Moves the segment to an arena that holds whatever the text can need: a code point or
 * fallback byte takes at least a byte of it. */
static ct_status enlarge(encoder *e)
{
    size_t n = e->text_bytes;
    ct_status st =
        ct_arena_init(&e->arena, n * sizeof *e->seg + CT_BPE_SCRATCH_BYTES(n) + CT_ALIGN, e->err);

    if (st)
        return st;
    e->seg = ct_arena_alloc(&e->arena, n * sizeof *e->seg, CT_ALIGN);
    memcpy(e->seg, e->small, sizeof e->small);
    e->room = n;
    return CT_OK;
}

static ct_status flush(encoder *e)
{
    size_t n = ct_bpe_merge(&e->t->merges, e->seg, e->n, &e->arena);

    e->n = 0;
    return ct_ids_append(e->out, e->seg, n, e->err);
}

/* A code point without a piece: its bytes, which no merge touches. */
static ct_status add_bytes(encoder *e, uint32_t cp)
{
    char byte[4];
    unsigned n = ct_utf8_put(byte, cp);
    ct_status st = flush(e);

    for (unsigned i = 0; !st && i < n; i++)
        st = ct_ids_add(e->out, e->t->vocab.byte_id[(unsigned char)byte[i]], e->err);
    return st;
}

static ct_status add_char(encoder *e, uint32_t id)
{
    ct_status st = CT_OK;

    if (e->n == e->room)
        st = enlarge(e);
    if (!st)
        e->seg[e->n++] = id;
    return st;
}

/* Merges the text between two cuts. */
static ct_status merge_segment(encoder *e, ct_str s)
{
    const ct_tokenizer *t = e->t;
    unsigned len;
    ct_status st = CT_OK;

    for (size_t at = 0; !st && at < s.n; at += len) {
        uint32_t cp = ct_utf8_known(s.p + at, &len), id;

        if (cp == ' ')
            cp = CT_SPACE_MARK;
        id = ct_vocab_char(&t->vocab, cp);
        st = id == CT_TOKEN_NONE ? add_bytes(e, cp) : add_char(e, id);
    }
    return st ? st : flush(e);
}

/* The segment's ids, from the words seen before where it can be.  room: bytes that may be
 * read from s.p on. */
static ct_status encode_segment(encoder *e, ct_str s, size_t room)
{
    const ct_words *words = &e->t->words;
    ct_ids *out = e->out;
    ct_word word;
    size_t n_before = out->n;
    unsigned n;
    ct_status st;

    if (s.n > CT_WORD_BYTES)
        return merge_segment(e, s);
    if (out->room - out->n < CT_WORD_IDS) {
        st = ct_ids_reserve(out, CT_WORD_IDS, e->err);
        if (st)
            return st;
    }
    ct_word_init(&word, s.p, s.n, room);
    n = ct_words_find(words, &word, out->id + out->n);
    out->n += n;
    if (n)
        return CT_OK;
    st = merge_segment(e, s);
    if (!st && out->n - n_before <= CT_WORD_IDS)
        ct_words_put(words, &word, out->id + n_before, (unsigned)(out->n - n_before));
    return st;
}

/* End of the segment that begins at `at`: the first place where no merge reaches across. */
static size_t find_cut(const ct_merges *m, ct_str s, size_t at)
{
    unsigned len;
    uint32_t last = ct_utf8_known(s.p + at, &len);

    for (at += len; at < s.n; at += len) {
        uint32_t cp = ct_utf8_known(s.p + at, &len);

        if (!ct_merges_joins(m, last, cp))
            break;
        last = cp;
    }
    return at;
}

/* Text between special tokens. */
static ct_status encode_plain(encoder *e, ct_str s)
{
    ct_status st = CT_OK;

    for (size_t at = 0, end; !st && at < s.n; at = end) {
        end = find_cut(&e->t->merges, s, at);
        st = encode_segment(e, (ct_str){s.p + at, end - at}, s.n - at);
    }
    return st;
}

/* Offset of the first special token at or behind `at`; the end when there is none. */
static size_t find_special(const ct_tokenizer *t, ct_str s, size_t at, uint32_t *id, size_t *n)
{
    for (; at < s.n; at++) {
        if (!t->specials.begins[(unsigned char)s.p[at]])
            continue;
        *id = ct_specials_match(&t->specials, (ct_str){s.p + at, s.n - at}, n);
        if (*id != CT_TOKEN_NONE)
            return at;
    }
    return s.n;
}

static ct_status encode_matching(encoder *e, ct_str s)
{
    size_t at = 0;
    ct_status st = CT_OK;

    while (!st && at < s.n) {
        uint32_t id;
        size_t n, found = find_special(e->t, s, at, &id, &n);

        st = encode_plain(e, (ct_str){s.p + at, found - at});
        if (st || found == s.n)
            break;
        st = ct_ids_add(e->out, id, e->err);
        at = found + n;
    }
    return st;
}

ct_status ct_tokenizer_encode(const ct_tokenizer *t, ct_str text, ct_special_mode mode, ct_ids *out,
                              ct_error *err)
{
    encoder e = {.t = t, .out = out, .err = err, .room = CT_BPE_SHORT, .text_bytes = text.n};
    size_t n_before = out->n, valid;
    ct_status st;

    if (text.n > MAX_TEXT_BYTES)
        return ct_fail(err, CT_ELIMIT, "a text of %zu bytes, at most %zu are encoded", text.n,
                       MAX_TEXT_BYTES);
    valid = ct_utf8_valid_prefix(text);
    if (valid < text.n)
        return ct_fail(err, CT_EINVAL, "text is not valid UTF-8 at byte %zu (0x%02x)", valid,
                       (unsigned char)text.p[valid]);
    e.seg = e.small;
    st = mode == CT_SPECIAL_MATCH ? encode_matching(&e, text) : encode_plain(&e, text);
    ct_arena_deinit(&e.arena);
    if (st)
        out->n = n_before;
    return st;
}
