/* The tokenizer on a vocabulary of its own, small enough to follow by hand. */
#include "support.h"

#include "base/checked.h"
#include "base/utf8.h"
#include "text/tokenizer.h"

#define MARK "\xe2\x96\x81" /* U+2581 */

/* Ids: these in order, then "<0x00>" … "<0xFF>". */
static const char *const pieces[] = {
    "<unk>", "<turn|>", "<|turn>", "<x>",    "a",
    "b",     "c",       "d",       "e",      MARK,
    "<",     ">",       "|",       "\\n",    "\xe6\x9c\xac",
    "ab",    "bc",      "abc",     MARK "a", "aa",
    "aaa",   "\\n\\n",  "de",      "cde",    ("e" MARK),
    "<|",    "a<",
};
#define FIRST_BYTE CT_LEN(pieces)
#define N_VOCAB    (FIRST_BYTE + 256)

/* In the order of their ranks. */
static const char *const merges[][2] = {
    {"a", "b"}, {"b", "c"},  {"ab", "c"}, {MARK, "a"}, {"a", "a"}, {"aa", "a"}, {"\\n", "\\n"},
    {"d", "e"}, {"c", "de"}, {"e", MARK}, {"<", "|"},  {"a", "<"}, {"a", "bc"},
};
#define N_SPECIAL 4

static void put_added(ct_buf *b)
{
    for (unsigned i = 0; i < N_SPECIAL; i++)
        ct_buf_addf(b,
                    "%s{\"id\": %u, \"content\": \"%s\", \"single_word\": false, "
                    "\"lstrip\": false, \"rstrip\": false, \"normalized\": false, "
                    "\"special\": true}",
                    i ? ", " : "", i, pieces[i]);
}

static void put_vocab(ct_buf *b)
{
    for (size_t i = 0; i < FIRST_BYTE; i++)
        ct_buf_addf(b, "\"%s\": %zu, ", pieces[i], i);
    for (unsigned i = 0; i < 256; i++)
        ct_buf_addf(b, "%s\"<0x%02X>\": %zu", i ? ", " : "", i, FIRST_BYTE + i);
}

static void put_merges(ct_buf *b, bool as_pairs)
{
    for (size_t i = 0; i < CT_LEN(merges); i++)
        ct_buf_addf(b, as_pairs ? "%s[\"%s\", \"%s\"]" : "%s\"%s %s\"", i ? ", " : "", merges[i][0],
                    merges[i][1]);
}

static void put_file(ct_buf *b, bool as_pairs)
{
    ct_buf_init(b, 1 << 20);
    ct_buf_addz(b, "{\"version\": \"1.0\", \"truncation\": null, \"padding\": null, "
                   "\"added_tokens\": [");
    put_added(b);
    ct_buf_addz(b, "], \"normalizer\": {\"type\": \"Replace\", \"pattern\": {\"String\": \" \"}, "
                   "\"content\": \"" MARK "\"}, "
                   "\"pre_tokenizer\": {\"type\": \"Split\", \"pattern\": {\"String\": \" \"}, "
                   "\"behavior\": \"MergedWithPrevious\", \"invert\": false}, "
                   "\"post_processor\": {\"type\": \"TemplateProcessing\", \"single\": "
                   "[{\"Sequence\": {\"id\": \"A\", \"type_id\": 0}}], \"pair\": "
                   "[{\"Sequence\": {\"id\": \"A\", \"type_id\": 0}}, "
                   "{\"Sequence\": {\"id\": \"B\", \"type_id\": 1}}], \"special_tokens\": {}}, "
                   "\"decoder\": {\"type\": \"Sequence\", \"decoders\": [{\"type\": \"Replace\", "
                   "\"pattern\": {\"String\": \"" MARK "\"}, \"content\": \" \"}, "
                   "{\"type\": \"ByteFallback\"}, {\"type\": \"Fuse\"}]}, "
                   "\"model\": {\"type\": \"BPE\", \"dropout\": null, \"unk_token\": \"<unk>\", "
                   "\"continuing_subword_prefix\": null, \"end_of_word_suffix\": null, "
                   "\"fuse_unk\": true, \"byte_fallback\": true, \"ignore_merges\": false, "
                   "\"vocab\": {");
    put_vocab(b);
    ct_buf_addz(b, "}, \"merges\": [");
    put_merges(b, as_pairs);
    ct_buf_addz(b, "]}}");
}

/* The same with the first occurrence of `from` replaced. */
static void put_edited(ct_buf *b, const char *from, const char *to)
{
    ct_buf whole;
    const char *at;

    put_file(&whole, true);
    at = strstr(whole.p, from);
    if (!at)
        fail_msg("test: \"%s\" is not in the file", from);
    ct_buf_init(b, 1 << 20);
    ct_buf_add(b, whole.p, (size_t)(at - whole.p));
    ct_buf_addz(b, to);
    ct_buf_addz(b, at + strlen(from));
    ct_buf_deinit(&whole);
}

static ct_error err;

static int setup(void **ctx)
{
    ct_tokenizer *t = NULL;
    ct_buf b;

    put_file(&b, true);
    if (ct_tokenizer_parse(&t, "test", ct_buf_str(&b), &err))
        print_message("%s\n", err.text);
    ct_buf_deinit(&b);
    *ctx = t;
    return t ? 0 : -1;
}

static int teardown(void **ctx)
{
    ct_tokenizer_destroy(*ctx);
    return 0;
}

/* Ids as pieces between bars: "ab|c|<0xC3>". */
static void put_pieces(const ct_tokenizer *t, const ct_ids *ids, ct_buf *out)
{
    for (size_t i = 0; i < ids->n; i++) {
        ct_str piece = ct_tokenizer_piece(t, ids->id[i]);

        ct_buf_addz(out, i ? "," : "");
        ct_buf_add(out, piece.p, piece.n);
    }
}

static void check_encode(const ct_tokenizer *t, ct_str text, ct_special_mode mode, const char *want)
{
    ct_ids ids = {0};
    ct_buf got;

    ct_buf_init(&got, 1 << 20);
    test_ok(ct_tokenizer_encode(t, text, mode, &ids, &err), &err);
    put_pieces(t, &ids, &got);
    if (!ct_str_is(ct_buf_str(&got), want))
        fail_msg("\"%.*s\" gives %.*s, should be %s", CT_STR_ARG(text),
                 CT_STR_ARG(ct_buf_str(&got)), want);
    ct_buf_deinit(&got);
    ct_ids_deinit(&ids);
}

static void merges_by_rank_then_leftmost(void **ctx)
{
    static const struct {
        const char *text, *want;
    } cases[] = {
        {"", ""},
        {"a", "a"},
        {"ab", "ab"},
        {"abc", "abc"},
        {"bcde", "bc,de"},
        {"cde", "cde"},
        {"abcde", "abc,de"},
        {"aaa", "aaa"},
        {"aaaa", "aa,aa"},
        {"aaaaa", "aa,aaa"},
        {"aab", "a,ab"},
        {" a", MARK "a"},
        {"e a", "e," MARK "a"},
        {"e d", "e" MARK ",d"},
        {"a  a", "a," MARK "," MARK "a"},
        {MARK "a", MARK "a"},
        {"\n\n\n", "\n\n,\n"},
        {"a\nb", "a,\n,b"},
        {"a<", "a<"},
        {"\xe6\x9c\xac"
         "ab",
         "\xe6\x9c\xac,ab"},
    };

    for (size_t i = 0; i < CT_LEN(cases); i++)
        check_encode(*ctx, ct_str_of(cases[i].text), CT_SPECIAL_MATCH, cases[i].want);
}

static void falls_back_to_bytes(void **ctx)
{
    check_encode(*ctx,
                 CT_STR("a\xc3\xa9"
                        "b"),
                 CT_SPECIAL_MATCH, "a,<0xC3>,<0xA9>,b");
    check_encode(*ctx, CT_STR("\r\n"), CT_SPECIAL_MATCH, "<0x0D>,\n");
    check_encode(*ctx, CT_STR("\0a"), CT_SPECIAL_MATCH, "<0x00>,a");
    check_encode(*ctx, CT_STR("\xf0\x9f\x98\x80"), CT_SPECIAL_MATCH, "<0xF0>,<0x9F>,<0x98>,<0x80>");
    /* Written in text it is no byte piece. */
    check_encode(*ctx, CT_STR("<0x0a>"), CT_SPECIAL_MATCH, "<,<0x30>,<0x78>,<0x30>,a,>");
}

/* A vocabulary without a piece for the space: it is still the mark whose bytes come out. */
static void spaces_without_a_piece_are_the_bytes_of_the_mark(void **ctx)
{
    ct_tokenizer *t = NULL;
    const char *model;
    ct_buf whole, b;

    (void)ctx;
    put_file(&whole, true);
    model = strstr(whole.p, "\"vocab\"");
    ct_buf_init(&b, 1 << 20);
    ct_buf_add(&b, whole.p, (size_t)(model - whole.p));
    for (const char *p = model; *p; p++) {
        bool is_mark = !strncmp(p, MARK, 3);

        ct_buf_addc(&b, is_mark ? '_' : *p);
        p += is_mark ? 2 : 0;
    }
    test_ok(ct_tokenizer_parse(&t, "test", ct_buf_str(&b), &err), &err);
    check_encode(t, CT_STR("a b"), CT_SPECIAL_MATCH, "a,<0xE2>,<0x96>,<0x81>,b");
    check_encode(t, CT_STR("a" MARK "b"), CT_SPECIAL_MATCH, "a,<0xE2>,<0x96>,<0x81>,b");
    ct_tokenizer_destroy(t);
    ct_buf_deinit(&whole);
    ct_buf_deinit(&b);
}

static void finds_specials_anywhere(void **ctx)
{
    check_encode(*ctx, CT_STR("a<turn|>b"), CT_SPECIAL_MATCH, "a,<turn|>,b");
    check_encode(*ctx, CT_STR("<|turn><turn|><x>"), CT_SPECIAL_MATCH, "<|turn>,<turn|>,<x>");
    check_encode(*ctx, CT_STR("a <x> a"), CT_SPECIAL_MATCH, "a," MARK ",<x>," MARK "a");
    check_encode(*ctx, CT_STR("<<x>"), CT_SPECIAL_MATCH, "<,<x>");
    check_encode(*ctx, CT_STR("<|<x"), CT_SPECIAL_MATCH, "<|,<,<0x78>");
    /* A special cuts the word: "ab" is not joined over it. */
    check_encode(*ctx, CT_STR("ab<x>ab"), CT_SPECIAL_MATCH, "ab,<x>,ab");
}

static void plain_mode_sees_only_text(void **ctx)
{
    check_encode(*ctx, CT_STR("a<x>"), CT_SPECIAL_PLAIN, "a<,<0x78>,>");
    check_encode(*ctx, CT_STR("<unk>"), CT_SPECIAL_PLAIN, "<,<0x75>,<0x6E>,<0x6B>,>");
}

/* The definition, written to be read: scan all pairs for the best, again and again. */
static size_t naive_merge(const uint32_t rank[N_VOCAB][N_VOCAB], const uint32_t *result,
                          uint32_t *id, size_t n)
{
    for (;;) {
        size_t best = n;

        for (size_t i = 0; i + 1 < n; i++)
            if (rank[id[i]][id[i + 1]] != UINT32_MAX &&
                (best == n || rank[id[i]][id[i + 1]] < rank[id[best]][id[best + 1]]))
                best = i;
        if (best == n)
            return n;
        id[best] = result[rank[id[best]][id[best + 1]]];
        n--;
        memmove(id + best + 1, id + best + 2, (n - best - 1) * sizeof *id);
    }
}

static uint32_t id_of(const ct_tokenizer *t, const char *escaped, const char *more)
{
    char z[32], plain[32];
    size_t n = 0;

    snprintf(z, sizeof z, "%s%s", escaped, more);
    for (const char *p = z; *p; p++)
        plain[n++] = *p == '\\' ? (p++, '\n') : *p;
    for (uint32_t id = 0; id < ct_tokenizer_vocab(t); id++)
        if (ct_str_eq(ct_tokenizer_piece(t, id), (ct_str){plain, n}))
            return id;
    fail_msg("test: no piece %s", z);
    return 0;
}

static void equals_the_definition_on_random_text(void **ctx)
{
    static const char *const chars[] = {"a", "b", "c", "d", "e", " ", "<", "|", "\n", ">"};
    static uint32_t rank[N_VOCAB][N_VOCAB];
    uint32_t result[CT_LEN(merges)], want[400];
    uint32_t seed = 12345;
    ct_ids got = {0};

    memset(rank, 0xff, sizeof rank);
    for (uint32_t i = 0; i < CT_LEN(merges); i++) {
        rank[id_of(*ctx, merges[i][0], "")][id_of(*ctx, merges[i][1], "")] = i;
        result[i] = id_of(*ctx, merges[i][0], merges[i][1]);
    }
    for (unsigned round = 0; round < 3000; round++) {
        /* Few letters make long stretches without a cut, past what is merged by scanning. */
        unsigned n_chars = 1 + round % CT_LEN(chars);
        size_t n = round % 400;
        ct_buf text;

        ct_buf_init(&text, 4096);
        for (size_t i = 0; i < n; i++) {
            const char *c;

            seed = seed * 1664525 + 1013904223;
            c = chars[(seed >> 16) % n_chars];
            ct_buf_addz(&text, c);
            want[i] = id_of(*ctx, *c == ' ' ? MARK : *c == '\n' ? "\\n" : c, "");
        }
        got.n = 0;
        test_ok(ct_tokenizer_encode(*ctx, ct_buf_str(&text), CT_SPECIAL_PLAIN, &got, &err), &err);
        n = naive_merge(rank, result, want, n);
        if (n != got.n || (n && memcmp(got.id, want, n * sizeof *want) != 0))
            fail_msg("round %u: \"%.*s\" is not merged as defined", round,
                     CT_STR_ARG(ct_buf_str(&text)));
        ct_buf_deinit(&text);
    }
    ct_ids_deinit(&got);
}

static void put_random_words(ct_buf *b, size_t n_words, size_t most)
{
    uint32_t seed = 99;

    ct_buf_init(b, (size_t)16 << 20);
    for (size_t i = 0; i < n_words; i++) {
        size_t n = 1 + i % most;

        for (size_t k = 0; k < n; k++) {
            seed = seed * 1664525 + 1013904223;
            ct_buf_addc(b, "abcde"[(seed >> 16) % 5]);
        }
        ct_buf_addc(b, i % 3 ? ' ' : '|');
    }
}

static void check_same_ids(const ct_ids *a, const ct_ids *b)
{
    assert_int_equal(a->n, b->n);
    assert_memory_equal(a->id, b->id, a->n * sizeof *a->id);
}

/* More words than are kept, of lengths on both sides of what is kept: first merged, then
 * partly found, and one by one in a tokenizer that knows none of them. */
static void words_seen_before_change_nothing(void **ctx)
{
    ct_tokenizer *fresh = NULL;
    ct_ids first = {0}, second = {0}, apart = {0};
    ct_buf text, file;

    put_random_words(&text, 100000, 40);
    put_file(&file, true);
    test_ok(ct_tokenizer_parse(&fresh, "test", ct_buf_str(&file), &err), &err);
    test_ok(ct_tokenizer_encode(*ctx, ct_buf_str(&text), CT_SPECIAL_PLAIN, &first, &err), &err);
    test_ok(ct_tokenizer_encode(*ctx, ct_buf_str(&text), CT_SPECIAL_PLAIN, &second, &err), &err);
    check_same_ids(&first, &second);
    /* No merge reaches over a bar but "<|". */
    for (size_t at = 0, n; at < text.n; at += n) {
        n = (size_t)((const char *)memchr(text.p + at, '|', text.n - at) - text.p) + 1 - at;
        if (!memchr(text.p + at + n, '|', text.n - at - n))
            n = text.n - at;
        test_ok(
            ct_tokenizer_encode(fresh, (ct_str){text.p + at, n}, CT_SPECIAL_PLAIN, &apart, &err),
            &err);
    }
    check_same_ids(&first, &apart);
    ct_ids_deinit(&first);
    ct_ids_deinit(&second);
    ct_ids_deinit(&apart);
    ct_buf_deinit(&text);
    ct_buf_deinit(&file);
    ct_tokenizer_destroy(fresh);
}

/* One stretch of half a million symbols: quadratic work would take minutes. */
static void long_stretches_take_one_pass(void **ctx)
{
    const size_t n = 500001;
    char *text = malloc(n);
    ct_ids ids = {0};

    memset(text, 'a', n);
    test_ok(ct_tokenizer_encode(*ctx, (ct_str){text, n}, CT_SPECIAL_MATCH, &ids, &err), &err);
    assert_int_equal(ids.n, n / 2);
    assert_true(ct_str_is(ct_tokenizer_piece(*ctx, ids.id[0]), "aa"));
    assert_true(ct_str_is(ct_tokenizer_piece(*ctx, ids.id[ids.n - 1]), "aaa"));
    ct_ids_deinit(&ids);
    free(text);
}

static void refuses_malformed_text(void **ctx)
{
    static const ct_str cases[] = {
        CT_STR("ab\xff"),     CT_STR("ab\xc3"),         CT_STR("ab\xed\xa0\x80"),
        CT_STR("ab\xc0\x80"), CT_STR("ab\xe2\x82"),     CT_STR("ab\xf4\x90\x80\x80"),
        CT_STR("ab\x80"),     CT_STR("ab\xe0\x80\x80"),
    };
    ct_ids ids = {0};

    test_ok(ct_ids_add(&ids, 7, &err), &err);
    for (size_t i = 0; i < CT_LEN(cases); i++) {
        assert_int_equal(ct_tokenizer_encode(*ctx, cases[i], CT_SPECIAL_MATCH, &ids, &err),
                         CT_EINVAL);
        assert_non_null(strstr(err.text, "byte 2"));
        assert_int_equal(ids.n, 1);
    }
    ct_ids_deinit(&ids);
}

static void answers_about_its_vocabulary(void **ctx)
{
    const ct_tokenizer *t = *ctx;

    assert_int_equal(ct_tokenizer_vocab(t), N_VOCAB);
    assert_int_equal(ct_tokenizer_special(t, CT_STR("<turn|>")), 1);
    assert_int_equal(ct_tokenizer_special(t, CT_STR("<turn|")), CT_TOKEN_NONE);
    assert_int_equal(ct_tokenizer_special(t, CT_STR("<turn|>a")), CT_TOKEN_NONE);
    assert_int_equal(ct_tokenizer_special(t, CT_STR("ab")), CT_TOKEN_NONE);
    assert_int_equal(ct_tokenizer_special(t, CT_STR("")), CT_TOKEN_NONE);
    assert_true(ct_tokenizer_is_special(t, 2));
    assert_false(ct_tokenizer_is_special(t, 4));
    assert_false(ct_tokenizer_is_special(t, CT_TOKEN_NONE));
    assert_true(ct_str_is(ct_tokenizer_piece(t, 18), MARK "a"));
    assert_null(ct_tokenizer_piece(t, N_VOCAB).p);
}

/* Id lists as text: b41 is the byte piece <0x41>, a number is an id. */
static void parse_ids(const char *z, ct_ids *out)
{
    out->n = 0;
    while (*z) {
        bool is_byte = *z == 'b';
        char *end;
        uint32_t id = (uint32_t)strtoul(z + is_byte, &end, is_byte ? 16 : 10);

        test_ok(ct_ids_add(out, is_byte ? (uint32_t)FIRST_BYTE + id : id, &err), &err);
        z = end + (*end == ' ');
    }
}

#define BAD "\xef\xbf\xbd"

static const struct {
    const char *ids, *whole, *skipped;
    bool streams_otherwise; /* a run that mixes valid and invalid */
} decodings[] = {
    {"", "", "", false},
    {"18 4", " aa", " aa", false},
    {"9 9 9", "   ", "   ", false},
    {"be2 b82 bac", "\xe2\x82\xac", "\xe2\x82\xac", false},
    {"be2 b82", BAD BAD, BAD BAD, false},
    {"be2 b82 4", BAD BAD "a", BAD BAD "a", false},
    {"b82 b82 4 b41", BAD BAD "aA", BAD BAD "aA", false},
    {"bf0 b9f b98 b80", "\xf0\x9f\x98\x80", "\xf0\x9f\x98\x80", false},
    {"bed ba0 b80", BAD BAD BAD, BAD BAD BAD, false},
    {"bf4 b90 b80 b80", BAD BAD BAD BAD, BAD BAD BAD BAD, false},
    {"bc0 b80", BAD BAD, BAD BAD, false},
    {"be4 1 bbd ba0", BAD "<turn|>" BAD BAD, "\xe4\xbd\xa0", false},
    {"4 1 5", "a<turn|>b", "ab", false},
    {"be2 b82 be2 b82 bac", BAD BAD BAD BAD BAD, BAD BAD BAD BAD BAD, true},
    {"b41 bff", BAD BAD, BAD BAD, true},
};

static void decodes_runs_of_bytes_as_a_whole(void **ctx)
{
    ct_ids ids = {0};
    ct_buf got;

    ct_buf_init(&got, 1 << 16);
    for (size_t i = 0; i < CT_LEN(decodings); i++) {
        parse_ids(decodings[i].ids, &ids);
        for (int skip = 0; skip < 2; skip++) {
            ct_buf_clear(&got);
            ct_buf_addz(&got, "\xc3"); /* what was there before is no part of a run */
            test_ok(ct_tokenizer_decode(*ctx, ids.id, ids.n, skip, &got, &err), &err);
            assert_string_equal(got.p + 1, skip ? decodings[i].skipped : decodings[i].whole);
        }
    }
    ct_buf_deinit(&got);
    ct_ids_deinit(&ids);
}

static void stream(const ct_tokenizer *t, const ct_ids *ids, bool skip, ct_buf *got)
{
    ct_detok d;

    ct_buf_clear(got);
    ct_buf_addz(got, "");
    ct_detok_init(&d, t, skip);
    for (size_t k = 0; k < ids->n; k++) {
        test_ok(ct_detok_add(&d, ids->id[k], got, &err), &err);
        assert_int_equal(ct_utf8_valid_prefix(ct_buf_str(got)), got->n);
    }
    ct_detok_finish(&d, got);
}

static void streams_what_it_decodes(void **ctx)
{
    ct_ids ids = {0};
    ct_buf got;

    ct_buf_init(&got, 1 << 16);
    for (size_t i = 0; i < CT_LEN(decodings); i++) {
        parse_ids(decodings[i].ids, &ids);
        if (decodings[i].streams_otherwise)
            continue;
        stream(*ctx, &ids, false, &got);
        assert_string_equal(got.p, decodings[i].whole);
        stream(*ctx, &ids, true, &got);
        assert_string_equal(got.p, decodings[i].skipped);
    }
    parse_ids("be2 b82 be2 b82 bac", &ids);
    stream(*ctx, &ids, false, &got);
    assert_string_equal(got.p, BAD BAD "\xe2\x82\xac");
    ct_buf_deinit(&got);
    ct_ids_deinit(&ids);
}

static void refuses_ids_out_of_range(void **ctx)
{
    const uint32_t ids[] = {4, N_VOCAB};
    ct_detok d;
    ct_buf got;

    ct_buf_init(&got, 1 << 16);
    assert_int_equal(ct_tokenizer_decode(*ctx, ids, 2, false, &got, &err), CT_EINVAL);
    assert_int_equal(got.n, 0);
    assert_non_null(strstr(err.text, "283"));
    ct_detok_init(&d, *ctx, false);
    assert_int_equal(ct_detok_add(&d, UINT32_MAX, &got, &err), CT_EINVAL);
    ct_buf_deinit(&got);
}

static void check_loads(const ct_buf *file)
{
    ct_tokenizer *t = NULL;

    test_ok(ct_tokenizer_parse(&t, "test", ct_buf_str(file), &err), &err);
    check_encode(t, CT_STR("abcde a<x>"), CT_SPECIAL_MATCH, "abc,de," MARK "a,<x>");
    ct_tokenizer_destroy(t);
}

static void accepts_what_means_the_same(void **ctx)
{
    static const char *const edits[][2] = {
        {"\"truncation\": null",
         "\"truncation\": {\"direction\": \"Right\", \"max_length\": 3, \"stride\": [0]}"},
        {"\"padding\": null", "\"padding\": {\"strategy\": \"BatchLongest\"}"},
        {"\"version\": \"1.0\", ", ""},
        {"\"dropout\": null, ", ""},
        {"\"unk_token\": \"<unk>\"", "\"unk_token\": null"},
        {"\"fuse_unk\": true", "\"fuse_unk\": false"},
        {"\"continuing_subword_prefix\": null", "\"continuing_subword_prefix\": \"\""},
        {"\"ignore_merges\": false, ", ""},
        {"\"id\": 0, \"content\": \"<unk>\"", "\"content\": \"<unk\\u003e\", \"id\": 0"},
        {"\"invert\": false", "\"invert\" : false"},
        {"\"abc\": 17", "\"\\u0061bc\": 17"},
        {"\"merges\"", "\"mer\\u0067es\""},
    };
    ct_buf b;

    (void)ctx;
    for (size_t i = 0; i < CT_LEN(edits); i++) {
        put_edited(&b, edits[i][0], edits[i][1]);
        check_loads(&b);
        ct_buf_deinit(&b);
    }
    put_file(&b, false);
    check_loads(&b);
    ct_buf_deinit(&b);
}

/* Moves the list of merges in front of the vocabulary. */
static void accepts_any_order_of_keys(void **ctx)
{
    ct_buf b, whole;
    const char *vocab, *list;

    (void)ctx;
    put_file(&whole, true);
    vocab = strstr(whole.p, "\"vocab\": {");
    list = strstr(whole.p, "\"merges\": [");
    ct_buf_init(&b, 1 << 20);
    ct_buf_add(&b, whole.p, (size_t)(vocab - whole.p));
    ct_buf_add(&b, list, strlen(list) - 2);
    ct_buf_addz(&b, ", ");
    ct_buf_add(&b, vocab, (size_t)(list - vocab) - 2);
    ct_buf_addz(&b, "}}");
    check_loads(&b);
    ct_buf_deinit(&b);
    ct_buf_deinit(&whole);
}

static const struct {
    const char *from, *to, *says;
} refused[] = {
    /* The file. */
    {"{\"version\"", "[{\"version\"", "the whole file must be an object"},
    {"]}}", "]}", "JSON"},
    {"]}}", "]}} x", "text after the value"},
    {"\"1.0\"", "\"2.0\"", "version is 2.0, must be \"1.0\""},
    {"\"version\"", "\"verson\"", "unknown field \"verson\" in the file"},
    {"\"padding\": null", "\"truncation\": null", "\"truncation\" stands twice"},
    {"\"padding\": null", "\"padding\": 3", "padding is 3, must be null or an object"},
    {"\"added_tokens\": [", "\"added_tokens\": {}, \"x\": [", "added_tokens is an object"},
    {"\"model\": {", "\"model\": 5, \"x\": {", "model is 5, must be an object"},
    /* Normalizer, pre-tokenizer, post-processor, decoder. */
    {"{\"type\": \"Replace\"", "{\"type\": \"NFKC\"",
     "normalizer.type is \"NFKC\", must be \"Replace\""},
    {"{\"String\": \" \"}", "{\"Regex\": \" \"}", "normalizer.pattern.Regex"},
    {"{\"String\": \" \"}", "{\"String\": \"_\"}", "normalizer.pattern.String is \"_\""},
    {", \"content\": \"" MARK "\"}, \"pre", "}, \"pre", "normalizer.content is missing"},
    {"\"content\": \"" MARK "\"}", "\"content\": \"" MARK "\", \"prepend\": true}",
     "normalizer.prepend is true"},
    {"\"normalizer\": {\"type\"", "\"normalizer\": null, \"x\": {\"type\"",
     "normalizer is null, must be an object"},
    {"\"Split\"", "\"Whitespace\"", "pre_tokenizer.type is \"Whitespace\""},
    {"MergedWithPrevious", "Isolated", "pre_tokenizer.behavior is \"Isolated\""},
    {"\"invert\": false", "\"invert\": true", "pre_tokenizer.invert is true"},
    {"[{\"Sequence\"", "[{\"SpecialToken\": {\"id\": \"<x>\", \"type_id\": 0}}, {\"Sequence\"",
     "post_processor.single[0].SpecialToken.id"},
    {"\"special_tokens\": {}", "\"special_tokens\": {\"<x>\": 3}",
     "post_processor.special_tokens.<x>"},
    {"\"type_id\": 1", "\"type_id\": 0", "post_processor.pair[1].Sequence.type_id"},
    {"{\"type\": \"ByteFallback\"}, ", "", "decoder.decoders[1].type is \"Fuse\""},
    {"{\"type\": \"Fuse\"}", "{\"type\": \"Fuse\"}, {\"type\": \"Strip\"}",
     "decoder.decoders[3].type is \"Strip\""},
    {", {\"type\": \"Fuse\"}", "", "decoder.decoders[2].type is missing"},
    {"\"type\": \"Fuse\"", "\"type\": [[[[[[[[]]]]]]]]", "decoder.decoders[2].type"},
    {"\"type\": \"Fuse\"", "\"type\": \"Fuse\", \"type\": \"Fuse\"", "for the second time"},
    {"\"pattern\": {\"String\": \" \"}, \"content\"", "\"pattern.String\": \" \", \"content\"",
     "not a known field"},
    /* Added tokens. */
    {"\"special\": true", "\"special\": false", "special is false, must be true"},
    {"\"lstrip\": false", "\"lstrip\": true", "lstrip is true, must be false"},
    {"\"rstrip\": false", "\"rstrip\": true", "rstrip is true, must be false"},
    {"\"single_word\": false", "\"single_word\": true", "single_word is true, must be false"},
    {"\"normalized\": false", "\"normalized\": true", "normalized is true, must be false"},
    {"\"special\": true}", "\"special\": true, \"extra\": 1}", "unknown field \"extra\""},
    {"\"lstrip\": false, ", "", "field \"lstrip\" is missing in an added token"},
    {"\"id\": 1, \"content\"", "\"id\": 2, \"content\"",
     "\"<turn|>\" has id 2, in the vocabulary 1"},
    {"\"id\": 1, \"content\"", "\"id\": -1, \"content\"", "id of an added token is -1"},
    {"\"content\": \"<turn|>\"", "\"content\": \"<gone>\"",
     "\"<gone>\" (id 1) is not in the vocabulary"},
    {"\"content\": \"<turn|>\"", "\"content\": \"\"", "is not in the vocabulary"},
    {"\"id\": 1, \"content\": \"<turn|>\"", "\"id\": 2, \"content\": \"<|turn>\"",
     "\"<|turn>\" stands twice"},
    {"\"id\": 1, \"content\": \"<turn|>\"", "\"id\": 27, \"content\": \"<0x00>\"",
     "is a byte piece"},
    /* The model. */
    {"\"BPE\"", "\"Unigram\"", "type is Unigram, must be \"BPE\""},
    {"\"dropout\": null", "\"dropout\": 0.1", "dropout is 0.1, must be null"},
    {"\"unk_token\": \"<unk>\"", "\"unk_token\": \"<none>\"",
     "unk_token \"<none>\" is not in the vocabulary"},
    {"\"unk_token\": \"<unk>\"", "\"unk_token\": 0", "unk_token is 0"},
    {"\"continuing_subword_prefix\": null", "\"continuing_subword_prefix\": \"##\"",
     "continuing_subword_prefix is ##"},
    {"\"end_of_word_suffix\": null", "\"end_of_word_suffix\": \"</w>\"",
     "end_of_word_suffix is </w>"},
    {"\"fuse_unk\": true", "\"fuse_unk\": 1", "fuse_unk is 1"},
    {"\"byte_fallback\": true", "\"byte_fallback\": false", "byte_fallback is false, must be true"},
    {"\"byte_fallback\": true, ", "", "field \"byte_fallback\" is missing in model"},
    {"\"ignore_merges\": false", "\"ignore_merges\": true", "ignore_merges is true, must be false"},
    {"\"ignore_merges\": false", "\"vocab_size\": 3", "unknown field \"vocab_size\" in model"},
    {"\"vocab\": {", "\"vocab\": [], \"x\": {", "vocab is an array, must be an object"},
    /* The vocabulary. */
    {"\"a\": 4", "\"a\": 5", "id 5 is given to two pieces"},
    {"\"a\": 4, ", "", "ids are not dense: 282 pieces, but the largest id is 282"},
    {"\"a\": 4", "\"b\": 4", "ids 4 and 5 are the same piece"},
    {"\"a\": 4", "\"\": 4", "empty piece"},
    {"\"a\": 4", "\"a\": 4.0", "an id of the vocabulary is 4.0"},
    {"\"a\": 4", "\"a\": -4", "an id of the vocabulary is -4"},
    {"\"a\": 4", "\"a\": \"4\"", "an id of the vocabulary is a string"},
    {"\"a\": 4", "\"a\": 1048576", "an id of the vocabulary is 1048576"},
    {"\"a\": 4", "\"a\": 1048575", "cannot be dense"},
    {"\"a\": 4", "\"a\": 18446744073709551620", "an id of the vocabulary is 18446744073709551620"},
    {"\"<0x7F>\"", "\"<0x7f>\"", "byte piece <0x7F> is missing"},
    {"\"a\": 4", "\"\xff\": 4", "not valid UTF-8"},
    /* The merges. */
    {"[\"a\", \"b\"], [\"b\", \"c\"]", "[\"a\", \"z\"], [\"b\" \"c\"]",
     "merges[0]: the right half is not in the vocabulary"},
    {"[\"a\", \"b\"]", "[\"z\", \"b\"]", "merges[0]: the left half is not in the vocabulary"},
    {"[\"a\", \"b\"]", "[\"a\", \"z\"]", "merges[0]: the right half is not in the vocabulary"},
    {"[\"b\", \"c\"]", "[\"c\", \"b\"]", "merges[1]: the join is not in the vocabulary"},
    {"[\"b\", \"c\"]", "[\"\", \"c\"]", "merges[1]: the left half is not in the vocabulary"},
    {"[\"b\", \"c\"]", "[\"a\", \"b\"]", "merges 0 and 1 are the same pair"},
    {"[\"b\", \"c\"]", "[\"b\"]", "a half of a merge must be a string"},
    {"[\"b\", \"c\"]", "[\"b\", \"c\", \"d\"]", "the end of a merge must be"},
    {"[\"b\", \"c\"]", "\"b c d\"", "merges[1] is \"b c d\", must be two pieces and one space"},
    {"[\"b\", \"c\"]", "\"bc\"", "merges[1] is \"bc\""},
    {"[\"b\", \"c\"]", "7", "a merge is 7, must be a pair of strings"},
    {"[\"b\", \"c\"]", "[\"<0x41>\", \"c\"]", "merges[1]: the left half is a byte piece"},
    {"\"merges\": [", "\"merges\": {}, \"x\": [", "merges is an object, must be an array"},
};

static void refuses_other_tokenizers_by_name(void **ctx)
{
    (void)ctx;
    for (size_t i = 0; i < CT_LEN(refused); i++) {
        ct_tokenizer *t = NULL;
        ct_buf b;

        put_edited(&b, refused[i].from, refused[i].to);
        if (!ct_tokenizer_parse(&t, "test", ct_buf_str(&b), &err))
            fail_msg("%s -> %s: accepted", refused[i].from, refused[i].to);
        if (!strstr(err.text, refused[i].says) || strncmp(err.text, "test: ", 6) != 0 ||
            strchr(err.text, '\n'))
            fail_msg("%s -> %s: \"%s\", should say \"%s\"", refused[i].from, refused[i].to,
                     err.text, refused[i].says);
        assert_null(t);
        ct_buf_deinit(&b);
    }
}

/* Every prefix of a file is refused, and read no further than it goes. */
static void refuses_every_truncation(void **ctx)
{
    ct_buf whole;

    (void)ctx;
    put_file(&whole, true);
    for (size_t n = 0; n < whole.n; n += n < 2000 ? 1 : 37) {
        ct_tokenizer *t = NULL;
        char *copy = malloc(n + !n);

        memcpy(copy, whole.p, n);
        assert_int_not_equal(ct_tokenizer_parse(&t, "test", (ct_str){copy, n}, &err), CT_OK);
        free(copy);
    }
    ct_buf_deinit(&whole);
}

static void refuses_pieces_past_the_limit(void **ctx)
{
    char *key = malloc(1100);
    ct_tokenizer *t = NULL;
    ct_buf b;

    (void)ctx;
    memset(key, 'z', 1100);
    memcpy(key, "\"", 1);
    memcpy(key + 1025, "\": 4", 5);
    put_edited(&b, "\"a\": 4", key);
    assert_int_equal(ct_tokenizer_parse(&t, "test", ct_buf_str(&b), &err), CT_ELIMIT);
    assert_non_null(strstr(err.text, "1024 bytes, at most 1023"));
    ct_buf_deinit(&b);
    free(key);
}

static void names_a_missing_file(void **ctx)
{
    ct_tokenizer *t = NULL;

    (void)ctx;
    assert_int_equal(ct_tokenizer_open(&t, "/nowhere/tokenizer.json", &err), CT_EIO);
    assert_non_null(strstr(err.text, "/nowhere/tokenizer.json"));
    ct_tokenizer_destroy(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(merges_by_rank_then_leftmost),
        cmocka_unit_test(falls_back_to_bytes),
        cmocka_unit_test(spaces_without_a_piece_are_the_bytes_of_the_mark),
        cmocka_unit_test(finds_specials_anywhere),
        cmocka_unit_test(plain_mode_sees_only_text),
        cmocka_unit_test(equals_the_definition_on_random_text),
        cmocka_unit_test(words_seen_before_change_nothing),
        cmocka_unit_test(long_stretches_take_one_pass),
        cmocka_unit_test(refuses_malformed_text),
        cmocka_unit_test(answers_about_its_vocabulary),
        cmocka_unit_test(decodes_runs_of_bytes_as_a_whole),
        cmocka_unit_test(streams_what_it_decodes),
        cmocka_unit_test(refuses_ids_out_of_range),
        cmocka_unit_test(accepts_what_means_the_same),
        cmocka_unit_test(accepts_any_order_of_keys),
        cmocka_unit_test(refuses_other_tokenizers_by_name),
        cmocka_unit_test(refuses_every_truncation),
        cmocka_unit_test(refuses_pieces_past_the_limit),
        cmocka_unit_test(names_a_missing_file),
    };

    return cmocka_run_group_tests(tests, setup, teardown);
}
