/* tokenizer.json, and what it then does: the input is the file and, behind the first NUL,
 * a text.  Whatever loads must give the text back through its ids. */
#include "base/utf8.h"
#include "text/tokenizer.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

#define MARK "\xe2\x96\x81" /* U+2581, which decodes to a space */

static void put_marks_as_spaces(ct_buf *b, ct_str s)
{
    for (size_t at = 0; at < s.n; at++) {
        bool is_mark = s.n - at >= 3 && !memcmp(s.p + at, MARK, 3);

        ct_buf_addc(b, is_mark ? ' ' : s.p[at]);
        at += is_mark ? 2 : 0;
    }
}

static void check_same(ct_str text, ct_str decoded)
{
    ct_buf a, b;

    ct_buf_init(&a, 1 << 24);
    ct_buf_init(&b, 1 << 24);
    put_marks_as_spaces(&a, text);
    put_marks_as_spaces(&b, decoded);
    if (!ct_str_eq(ct_buf_str(&a), ct_buf_str(&b)))
        abort();
    ct_buf_deinit(&a);
    ct_buf_deinit(&b);
}

static void check_round_trip(const ct_tokenizer *t, ct_str text, ct_special_mode mode)
{
    static ct_error err;
    ct_ids ids = {0};
    ct_detok d;
    ct_buf out;

    ct_buf_init(&out, 1 << 24);
    if (ct_tokenizer_encode(t, text, mode, &ids, &err)) {
        if (ct_utf8_valid_prefix(text) == text.n)
            abort();
    } else {
        if (ct_tokenizer_decode(t, ids.id, ids.n, false, &out, &err))
            abort();
        check_same(text, ct_buf_str(&out));
        ct_buf_clear(&out);
        ct_detok_init(&d, t, false);
        for (size_t i = 0; i < ids.n; i++)
            if (ct_detok_add(&d, ids.id[i], &out, &err))
                abort();
        ct_detok_finish(&d, &out);
        check_same(text, ct_buf_str(&out));
    }
    ct_buf_deinit(&out);
    ct_ids_deinit(&ids);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    static ct_error err;
    const uint8_t *nul = n ? memchr(data, 0, n) : NULL;
    ct_str file = {(const char *)data, nul ? (size_t)(nul - data) : n};
    ct_tokenizer *t;

    if (ct_tokenizer_parse(&t, "fuzz", file, &err)) {
        if (strchr(err.text, '\n'))
            abort();
        return 0;
    }
    if (nul) {
        ct_str text = {file.p + file.n + 1, n - file.n - 1};

        check_round_trip(t, text, CT_SPECIAL_MATCH);
        check_round_trip(t, text, CT_SPECIAL_PLAIN);
    }
    ct_tokenizer_destroy(t);
    return 0;
}
