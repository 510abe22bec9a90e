/* From ids to text.  Byte pieces make runs, which are text only when valid UTF-8. */
#include "text/tokenizer.h"

#include "base/utf8.h"
#include "text/tokenizer_impl.h"

#include <inttypes.h>

#define REPLACEMENT "\xef\xbf\xbd"

static ct_status check_id(const ct_tokenizer *t, uint32_t id, ct_error *err)
{
    if (id < t->vocab.n)
        return CT_OK;
    return ct_fail(err, CT_EINVAL, "token id %" PRIu32 " is not in the vocabulary of %" PRIu32, id,
                   t->vocab.n);
}

static ct_status check_buf(const ct_buf *out, ct_error *err)
{
    if (out->failed)
        return ct_fail(err, CT_ELIMIT, "decoded text exceeds %zu bytes or the memory",
                       out->cap_bytes);
    return CT_OK;
}

/* The piece with its space marks turned into spaces. */
static void put_piece(ct_str piece, ct_buf *out)
{
    const char *mark;

    while ((mark = piece.n ? memmem(piece.p, piece.n, CT_SPACE_MARK_BYTES, 3) : NULL)) {
        size_t n = (size_t)(mark - piece.p);

        ct_buf_add(out, piece.p, n);
        ct_buf_addc(out, ' ');
        piece = (ct_str){mark + 3, piece.n - n - 3};
    }
    ct_buf_add(out, piece.p, piece.n);
}

static void put_replacements(ct_buf *out, size_t n)
{
    while (n--)
        ct_buf_addz(out, REPLACEMENT);
}

/* Ends the run of bytes that begins at out->p[begin]. */
static void end_run(ct_buf *out, size_t begin)
{
    size_t n = out->n - begin;

    if (n == 0 || ct_utf8_valid_prefix((ct_str){out->p + begin, n}) == n)
        return;
    out->n = begin;
    put_replacements(out, n);
}

ct_status ct_tokenizer_decode(const ct_tokenizer *t, const uint32_t *ids, size_t n,
                              bool skip_special, ct_buf *out, ct_error *err)
{
    size_t run = out->n; /* where the run of bytes at the end of out begins */

    for (size_t i = 0; i < n; i++) {
        ct_status st = check_id(t, ids[i], err);

        if (st)
            return st;
    }
    for (size_t i = 0; i < n; i++) {
        ct_str piece;
        int byte;

        if (skip_special && ct_tokenizer_is_special(t, ids[i]))
            continue;
        piece = ct_vocab_piece(&t->vocab, ids[i]);
        byte = ct_piece_byte(piece);
        if (byte >= 0) {
            ct_buf_addc(out, (char)byte);
            continue;
        }
        end_run(out, run);
        put_piece(piece, out);
        run = out->n;
    }
    end_run(out, run);
    return check_buf(out, err);
}

void ct_detok_init(ct_detok *d, const ct_tokenizer *t, bool skip_special)
{
    *d = (ct_detok){.t = t, .skip_special = skip_special};
}

/* Whether p[0 … n), n from 1 to 3, can still become a character (RFC 3629, section 4). */
static bool is_open_char(const unsigned char *p, unsigned n)
{
    unsigned len = p[0] < 0xc2 ? 0 : p[0] < 0xe0 ? 2 : p[0] < 0xf0 ? 3 : p[0] < 0xf5 ? 4 : 0;
    unsigned low = p[0] == 0xe0 ? 0xa0 : p[0] == 0xf0 ? 0x90 : 0x80;
    unsigned high = p[0] == 0xed ? 0x9f : p[0] == 0xf4 ? 0x8f : 0xbf;

    if (n >= len || (n > 1 && (p[1] < low || p[1] > high)))
        return false;
    return n < 3 || (p[2] & 0xc0) == 0x80;
}

/* Takes n bytes from the front of pending. */
static void drop_pending(ct_detok *d, unsigned n)
{
    d->n_pending -= n;
    memmove(d->pending, d->pending + n, d->n_pending);
}

static void add_byte(ct_detok *d, unsigned char byte, ct_buf *out)
{
    d->pending[d->n_pending++] = byte;
    while (d->n_pending && !is_open_char(d->pending, d->n_pending)) {
        ct_str s = {(const char *)d->pending, d->n_pending};
        unsigned len;

        if (ct_utf8_next(s, 0, &len) == CT_UTF8_INVALID)
            put_replacements(out, 1);
        else
            ct_buf_add(out, s.p, len);
        drop_pending(d, len);
    }
}

void ct_detok_finish(ct_detok *d, ct_buf *out)
{
    put_replacements(out, d->n_pending);
    d->n_pending = 0;
}

ct_status ct_detok_add(ct_detok *d, uint32_t id, ct_buf *out, ct_error *err)
{
    ct_status st = check_id(d->t, id, err);
    ct_str piece;
    int byte;

    if (st)
        return st;
    if (d->skip_special && ct_tokenizer_is_special(d->t, id))
        return CT_OK;
    piece = ct_vocab_piece(&d->t->vocab, id);
    byte = ct_piece_byte(piece);
    if (byte >= 0) {
        add_byte(d, (unsigned char)byte, out);
    } else {
        ct_detok_finish(d, out);
        put_piece(piece, out);
    }
    return check_buf(out, err);
}
