/* The reference tokenizer against vectors made with the `tokenizers` package (and, in two
 * third-party files, by others with it): encoding, decoding, streaming. */
#include "support.h"

#include "base/checked.h"
#include "base/json.h"
#include "base/map.h"
#include "base/utf8.h"
#include "text/tokenizer.h"

/* One line or probe of a golden file. */
typedef struct vector {
    ct_str name, text, decoded, decoded_skip;
    ct_ids ids;
} vector;

typedef struct state {
    ct_tokenizer *t;
    ct_arena scratch;
    ct_error err;
} state;

static int setup(void **ctx)
{
    state *s = calloc(1, sizeof *s);

    if (!s || ct_arena_init(&s->scratch, (size_t)64 << 20, &s->err))
        return -1;
    *ctx = s;
    return 0;
}

static int teardown(void **ctx)
{
    state *s = *ctx;

    ct_tokenizer_destroy(s->t);
    ct_arena_deinit(&s->scratch);
    free(s);
    return 0;
}

/* Loaded by the first test that has the file. */
static const ct_tokenizer *real(state *s)
{
    const char *path = test_real_tokenizer();

    if (!s->t)
        test_ok(ct_tokenizer_open(&s->t, path, &s->err), &s->err);
    return s->t;
}

static void read_ids(state *s, ct_json *j, ct_ids *out)
{
    ct_json_token t;
    uint64_t id;

    test_ok(ct_json_expect(j, CT_JSON_ARRAY, "ids", &t, &s->err), &s->err);
    out->n = 0;
    for (;;) {
        test_ok(ct_json_next(j, &t, &s->err), &s->err);
        if (t.kind == CT_JSON_ARRAY_END)
            return;
        test_ok(ct_json_u64(j, &t, "id", UINT32_MAX, &id, &s->err), &s->err);
        test_ok(ct_ids_add(out, (uint32_t)id, &s->err), &s->err);
    }
}

static void read_str(state *s, ct_json *j, ct_str *out)
{
    ct_json_token t;

    test_ok(ct_json_expect(j, CT_JSON_STRING, "text", &t, &s->err), &s->err);
    test_ok(ct_json_str(j, &t, &s->scratch, out, &s->err), &s->err);
}

/* Reads an object that has just been opened. */
static void read_vector(state *s, ct_json *j, vector *v)
{
    ct_json_token key, t;

    v->text = v->decoded = v->decoded_skip = v->name = (ct_str){0};
    for (;;) {
        test_ok(ct_json_next(j, &key, &s->err), &s->err);
        if (key.kind == CT_JSON_OBJECT_END)
            return;
        if (ct_json_is(&key, "name")) {
            read_str(s, j, &v->name);
        } else if (ct_json_is(&key, "text")) {
            read_str(s, j, &v->text);
        } else if (ct_json_is(&key, "decoded")) {
            read_str(s, j, &v->decoded);
        } else if (ct_json_is(&key, "decoded_skip_special")) {
            read_str(s, j, &v->decoded_skip);
        } else if (ct_json_is(&key, "ids") || ct_json_is(&key, "ids_plain")) {
            read_ids(s, j, &v->ids);
        } else {
            test_ok(ct_json_next(j, &t, &s->err), &s->err);
            test_ok(ct_json_skip(j, &t, &s->err), &s->err);
        }
    }
}

static void check_encode(state *s, const char *file, const vector *v)
{
    ct_ids got = {0};

    test_ok(ct_tokenizer_encode(s->t, v->text, CT_SPECIAL_MATCH, &got, &s->err), &s->err);
    for (size_t i = 0; i < got.n && i < v->ids.n; i++)
        if (got.id[i] != v->ids.id[i])
            fail_msg("%s, %.*s: id %zu is %u, should be %u", file, CT_STR_ARG(v->name), i,
                     got.id[i], v->ids.id[i]);
    if (got.n != v->ids.n)
        fail_msg("%s, %.*s: %zu ids, should be %zu", file, CT_STR_ARG(v->name), got.n, v->ids.n);
    ct_ids_deinit(&got);
}

static void check_text(const char *file, const vector *v, const char *how, const ct_buf *got,
                       ct_str want)
{
    if (!ct_str_eq(ct_buf_str(got), want))
        fail_msg("%s, %.*s: %s gives \"%.*s\", should be \"%.*s\"", file, CT_STR_ARG(v->name), how,
                 CT_STR_ARG(ct_buf_str(got)), CT_STR_ARG(want));
}

/* Whether streaming must give the whole decode: no run of byte pieces mixes valid and
 * invalid text, that is, the replacement characters are as many as the bytes of a run. */
static bool streams_alike(const state *s, const vector *v, bool skip)
{
    ct_buf run;
    bool alike = true;

    ct_buf_init(&run, 1 << 20);
    for (size_t i = 0; i <= v->ids.n; i++) {
        ct_str piece = i < v->ids.n ? ct_tokenizer_piece(s->t, v->ids.id[i]) : CT_STR("end");

        if (skip && i < v->ids.n && ct_tokenizer_is_special(s->t, v->ids.id[i]))
            continue;
        if (piece.n == 6 && ct_str_starts(piece, "<0x")) {
            ct_buf_addc(&run, (char)strtoul((char[]){piece.p[3], piece.p[4], 0}, NULL, 16));
            continue;
        }
        /* Some valid character in a run that is not valid as a whole. */
        if (ct_utf8_valid_prefix(ct_buf_str(&run)) < run.n)
            for (size_t at = 0; at < run.n; at++) {
                unsigned len;

                if (ct_utf8_next(ct_buf_str(&run), at, &len) != CT_UTF8_INVALID)
                    alike = false;
            }
        ct_buf_clear(&run);
    }
    ct_buf_deinit(&run);
    return alike;
}

static void check_decode(state *s, const char *file, const vector *v, bool skip, ct_str want)
{
    ct_buf got;
    ct_detok d;

    ct_buf_init(&got, 1 << 24);
    test_ok(ct_tokenizer_decode(s->t, v->ids.id, v->ids.n, skip, &got, &s->err), &s->err);
    check_text(file, v, skip ? "decoding without specials" : "decoding", &got, want);
    ct_buf_clear(&got);
    ct_detok_init(&d, s->t, skip);
    for (size_t i = 0; i < v->ids.n; i++) {
        test_ok(ct_detok_add(&d, v->ids.id[i], &got, &s->err), &s->err);
        assert_int_equal(ct_utf8_valid_prefix(ct_buf_str(&got)), got.n);
    }
    ct_detok_finish(&d, &got);
    if (streams_alike(s, v, skip))
        check_text(file, v, "streaming", &got, want);
    ct_buf_deinit(&got);
}

/* Runs over a file of one object a line. */
static size_t each_line(state *s, const char *file, bool encode)
{
    ct_map map;
    ct_str rest;
    vector v = {0};
    size_t n = 0;

    real(s);
    test_ok(ct_map_open(&map, test_shared(file), &s->err), &s->err);
    for (rest = ct_map_str(&map); rest.n; n++) {
        const char *end = memchr(rest.p, '\n', rest.n);
        ct_str line = {rest.p, end ? (size_t)(end - rest.p) : rest.n};
        ct_json_token t;
        ct_json j;

        rest.p += line.n + (end != NULL);
        rest.n -= line.n + (end != NULL);
        ct_json_init(&j, file, line);
        test_ok(ct_json_expect(&j, CT_JSON_OBJECT, "a line", &t, &s->err), &s->err);
        read_vector(s, &j, &v);
        if (encode)
            check_encode(s, file, &v);
        check_decode(s, file, &v, false, v.decoded.p ? v.decoded : v.text);
        if (!encode || v.decoded_skip.p || !v.decoded.p)
            check_decode(s, file, &v, true, v.decoded_skip.p ? v.decoded_skip : v.text);
        ct_arena_rewind(&s->scratch, 0);
    }
    ct_ids_deinit(&v.ids);
    ct_map_close(&map);
    return n;
}

static void encodes_token_golden(void **ctx)
{
    assert_int_equal(each_line(*ctx, "data/token-golden.jsonl", true), 206);
}

static void decodes_decode_golden(void **ctx)
{
    assert_int_equal(each_line(*ctx, "data/decode-golden.jsonl", false), 30);
}

/* Everything up to the separator line, and moves behind it. */
static ct_str take_text(ct_str *rest)
{
    static const char separator[] = "\n__ggml_vocab_test__\n";
    const size_t n_separator = sizeof separator - 1;
    const char *end = memmem(rest->p, rest->n, separator, n_separator);
    ct_str text = {rest->p, end ? (size_t)(end - rest->p) : rest->n};
    size_t n = text.n + (end ? n_separator : 0);

    *rest = (ct_str){rest->p + n, rest->n - n};
    return text;
}

static void take_ids(state *s, ct_str *rest, ct_ids *out)
{
    out->n = 0;
    while (rest->n && *rest->p != '\n') {
        char *end;

        test_ok(ct_ids_add(out, (uint32_t)strtoul(rest->p, &end, 10), &s->err), &s->err);
        rest->n -= (size_t)(end - rest->p);
        rest->p = end;
    }
    if (rest->n)
        *rest = (ct_str){rest->p + 1, rest->n - 1};
}

static void encodes_llama_cpp_vectors(void **ctx)
{
    state *s = *ctx;
    ct_map in, out;
    vector v = {.name = CT_STR("one of the strings")};
    ct_str texts, lines;
    size_t n = 0;

    real(s);
    test_ok(
        ct_map_open(&in, test_shared("data/third-party/llama.cpp.ggml-vocab-gemma-4.inp"), &s->err),
        &s->err);
    test_ok(ct_map_open(&out, test_shared("data/third-party/llama.cpp.ggml-vocab-gemma-4.out"),
                        &s->err),
            &s->err);
    texts = ct_map_str(&in);
    for (lines = ct_map_str(&out); lines.n; n++) {
        take_ids(s, &lines, &v.ids);
        v.text = take_text(&texts);
        check_encode(s, "llama.cpp .inp", &v);
    }
    assert_int_equal(n, 46);
    ct_ids_deinit(&v.ids);
    ct_map_close(&in);
    ct_map_close(&out);
}

/* {"bos_token": {"token": "<bos>", "id": 2}, …}, just opened. */
static size_t check_specials(state *s, ct_json *j)
{
    ct_json_token t;
    ct_str text = {0};
    uint64_t id = 0;
    size_t n = 0;

    for (unsigned outside = j->depth - 1; j->depth > outside;) {
        test_ok(ct_json_next(j, &t, &s->err), &s->err);
        if (t.kind == CT_JSON_KEY && ct_json_is(&t, "token")) {
            read_str(s, j, &text);
        } else if (t.kind == CT_JSON_NUMBER) {
            test_ok(ct_json_u64(j, &t, "id", UINT32_MAX, &id, &s->err), &s->err);
            assert_int_equal(ct_tokenizer_special(s->t, text), id);
            assert_true(ct_tokenizer_is_special(s->t, (uint32_t)id));
            n++;
        }
    }
    return n;
}

static size_t check_probes(state *s, ct_json *j)
{
    ct_json_token t;
    vector v = {0};
    size_t n = 0;

    for (;; n++) {
        test_ok(ct_json_next(j, &t, &s->err), &s->err);
        if (t.kind == CT_JSON_ARRAY_END)
            break;
        read_vector(s, j, &v);
        check_encode(s, "pegainfer probes", &v);
    }
    ct_ids_deinit(&v.ids);
    return n;
}

static void encodes_pegainfer_vectors(void **ctx)
{
    state *s = *ctx;
    const char *path;
    ct_map map;
    ct_json j;
    ct_json_token key, t;
    size_t n_specials = 0, n_probes = 0;

    real(s);
    path = test_shared("data/third-party/pegainfer.gemma4-tokenizer-golden.json");
    test_ok(ct_map_open(&map, path, &s->err), &s->err);
    ct_json_init(&j, path, ct_map_str(&map));
    test_ok(ct_json_expect(&j, CT_JSON_OBJECT, "the file", &t, &s->err), &s->err);
    for (;;) {
        test_ok(ct_json_next(&j, &key, &s->err), &s->err);
        if (key.kind != CT_JSON_KEY)
            break;
        test_ok(ct_json_next(&j, &t, &s->err), &s->err);
        if (ct_json_is(&key, "special_tokens"))
            n_specials = check_specials(s, &j);
        else if (ct_json_is(&key, "probes"))
            n_probes = check_probes(s, &j);
        else
            test_ok(ct_json_skip(&j, &t, &s->err), &s->err);
    }
    assert_int_equal(n_specials, 14);
    assert_int_equal(n_probes, 11);
    ct_map_close(&map);
}

static void knows_the_reference_vocabulary(void **ctx)
{
    const ct_tokenizer *t = real(*ctx);
    size_t n_special = 0;

    assert_int_equal(ct_tokenizer_vocab(t), 262144);
    for (uint32_t id = 0; id < ct_tokenizer_vocab(t); id++)
        n_special += ct_tokenizer_is_special(t, id);
    assert_int_equal(n_special, 24);
    assert_int_equal(ct_tokenizer_special(t, CT_STR("<turn|>")), 106);
    assert_int_equal(ct_tokenizer_special(t, CT_STR("<turn|")), CT_TOKEN_NONE);
    assert_true(ct_str_is(ct_tokenizer_piece(t, 236743), "\xe2\x96\x81"));
}

/* Places where a text is cut before it is merged, and where it must not be.  The runs:
 * n times the text gives n / 31 full runs and the rest. */
static void cuts_only_where_no_merge_reaches(void **ctx)
{
    static const struct {
        const char *text;
        size_t times, n_ids;
        uint32_t id[3]; /* the first ones */
    } cases[] = {
        {"> </", 1, 1, {107068}},
        {" ", 31, 1, {167}},
        {" ", 32, 2, {167, 236743}},
        {" ", 62, 2, {167, 167}},
        {" ", 64, 3, {167, 167, 138}},
        {"\n", 31, 1, {137}},
        {"\n", 32, 2, {137, 107}},
        {"\n", 33, 2, {137, 108}},
        {"\n", 62, 2, {137, 137}},
        {"\t", 31, 1, {255998}},
        {"\t", 32, 2, {255998, 255968}},
        {"\t", 62, 2, {255998, 255998}},
        {"1", 31, 31, {236770, 236770, 236770}},
        {"1", 32, 32, {236770, 236770, 236770}},
        {"1", 62, 62, {236770, 236770, 236770}},
        {"\r\n", 1, 2, {251, 107}},
        {"a    b", 1, 3, {236746, 140, 236763}},
    };
    state *s = *ctx;

    real(s);
    for (size_t i = 0; i < 2 * CT_LEN(cases); i++) { /* the second time from memory */
        size_t c = i % CT_LEN(cases), n_known = ct_min_size(cases[c].n_ids, 3);
        ct_ids ids = {0};
        ct_buf text;

        ct_buf_init(&text, 1024);
        for (size_t k = 0; k < cases[c].times; k++)
            ct_buf_addz(&text, cases[c].text);
        test_ok(ct_tokenizer_encode(s->t, ct_buf_str(&text), CT_SPECIAL_MATCH, &ids, &s->err),
                &s->err);
        assert_int_equal(ids.n, cases[c].n_ids);
        assert_memory_equal(ids.id, cases[c].id, n_known * sizeof *ids.id);
        ct_ids_deinit(&ids);
        ct_buf_deinit(&text);
    }
}

/* A full run is 31; how many there are tells that a megabyte was merged as one stretch. */
static void merges_a_megabyte_of_one_character(void **ctx)
{
    static const char blank[] = {' ', '\n', '\t'};
    state *s = *ctx;
    const size_t n = 1000000;
    char *text = malloc(n);

    real(s);
    for (size_t i = 0; i < sizeof blank; i++) {
        ct_ids ids = {0};

        memset(text, blank[i], n);
        test_ok(ct_tokenizer_encode(s->t, (ct_str){text, n}, CT_SPECIAL_MATCH, &ids, &s->err),
                &s->err);
        assert_int_equal(ids.n, (n + 30) / 31);
        ct_ids_deinit(&ids);
    }
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(knows_the_reference_vocabulary),
        cmocka_unit_test(encodes_token_golden),
        cmocka_unit_test(decodes_decode_golden),
        cmocka_unit_test(encodes_llama_cpp_vectors),
        cmocka_unit_test(encodes_pegainfer_vectors),
        cmocka_unit_test(cuts_only_where_no_merge_reaches),
        cmocka_unit_test(merges_a_megabyte_of_one_character),
    };

    return cmocka_run_group_tests(tests, setup, teardown);
}
