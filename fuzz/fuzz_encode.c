/* Encoding and decoding with one small vocabulary: texts, and ids taken from the bytes. */
#include "base/utf8.h"
#include "text/tokenizer.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static const char head[] =
    "{\"added_tokens\":[{\"id\":0,\"content\":\"<t>\",\"single_word\":false,\"lstrip\":false,"
    "\"rstrip\":false,\"normalized\":false,\"special\":true}],\"normalizer\":{\"type\":"
    "\"Replace\",\"pattern\":{\"String\":\" \"},\"content\":\"\\u2581\"},\"decoder\":{\"type\":"
    "\"Sequence\",\"decoders\":[{\"type\":\"Replace\",\"pattern\":{\"String\":\"\\u2581\"},"
    "\"content\":\" \"},{\"type\":\"ByteFallback\"},{\"type\":\"Fuse\"}]},\"model\":{\"type\":"
    "\"BPE\",\"byte_fallback\":true,\"vocab\":{\"<t>\":0,\"a\":1,\"b\":2,\"\\u2581\":3,\"<\":4,"
    "\"ab\":5,\"aa\":6,\"aaaa\":7,\"\\u2581a\":8,\"b\\u2581\":9,\"\\u00e9\":10";
static const char tail[] =
    "},\"merges\":[[\"a\",\"b\"],[\"\\u2581\",\"a\"],[\"a\",\"a\"],[\"aa\",\"aa\"],"
    "[\"b\",\"\\u2581\"]]}}";

static const ct_tokenizer *tokenizer(void)
{
    static ct_tokenizer *t;
    static ct_error err;
    ct_buf b;

    if (t)
        return t;
    ct_buf_init(&b, 1 << 16);
    ct_buf_addz(&b, head);
    for (unsigned i = 0; i < 256; i++)
        ct_buf_addf(&b, ",\"<0x%02X>\":%u", i, 11 + i);
    ct_buf_addz(&b, tail);
    if (ct_tokenizer_parse(&t, "fuzz", ct_buf_str(&b), &err))
        abort();
    ct_buf_deinit(&b);
    return t;
}

static bool is_valid(const ct_buf *b, size_t from)
{
    return b->n == from || ct_utf8_valid_prefix((ct_str){b->p + from, b->n - from}) == b->n - from;
}

/* Bytes as ids, so that runs of byte pieces of all kinds come up: always valid UTF-8,
 * and equal to the stream unless a run was replaced. */
static void check_decode(const uint8_t *data, size_t n)
{
    static ct_error err;
    const ct_tokenizer *t = tokenizer();
    ct_ids ids = {0};
    ct_buf whole, pieces;
    ct_detok d;

    ct_buf_init(&whole, 1 << 24);
    ct_buf_init(&pieces, 1 << 24);
    ct_detok_init(&d, t, n & 1);
    for (size_t i = 0; i < n; i++) {
        size_t before = pieces.n;

        if (ct_ids_add(&ids, data[i] < 11 ? data[i] : data[i] + 11u, &err) ||
            ct_detok_add(&d, ids.id[i], &pieces, &err) || !is_valid(&pieces, before))
            abort();
    }
    ct_detok_finish(&d, &pieces);
    if (ct_tokenizer_decode(t, ids.id, ids.n, n & 1, &whole, &err) || !is_valid(&whole, 0))
        abort();
    if (!(whole.n && memmem(whole.p, whole.n, "\xef\xbf\xbd", 3)) &&
        !ct_str_eq(ct_buf_str(&whole), ct_buf_str(&pieces)))
        abort();
    ct_buf_deinit(&whole);
    ct_buf_deinit(&pieces);
    ct_ids_deinit(&ids);
}

static void check_encode(ct_str text)
{
    static ct_error err;
    ct_ids ids = {0};
    ct_buf out;

    ct_buf_init(&out, 1 << 24);
    if (ct_tokenizer_encode(tokenizer(), text, CT_SPECIAL_MATCH, &ids, &err)) {
        if (ct_utf8_valid_prefix(text) == text.n)
            abort();
    } else {
        if (ct_tokenizer_decode(tokenizer(), ids.id, ids.n, false, &out, &err))
            abort();
        if (!(text.n && memmem(text.p, text.n, "\xe2\x96\x81", 3)) &&
            !ct_str_eq(ct_buf_str(&out), text))
            abort();
    }
    ct_buf_deinit(&out);
    ct_ids_deinit(&ids);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    check_encode((ct_str){(const char *)data, n});
    check_decode(data, n);
    return 0;
}
