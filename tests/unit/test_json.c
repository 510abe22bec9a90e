/* base/json: the pull reader and the writer. */
#include "support.h"

#include <string.h>

#include "base/json.h"

/* Reads the whole text and writes its tokens back in a canonical spelling. */
static ct_status canonical(ct_str text, ct_buf *out, ct_error *err)
{
    ct_json_token t;
    ct_arena a = {0};
    ct_status st;
    ct_json j;

    st = ct_arena_init(&a, 1 << 16, err);
    ct_json_init(&j, "test", text);
    while (!st) {
        ct_str s;

        st = ct_json_next(&j, &t, err);
        if (st || t.kind == CT_JSON_END)
            break;
        switch (t.kind) {
        case CT_JSON_KEY:
        case CT_JSON_STRING:
            st = ct_json_str(&j, &t, &a, &s, err);
            if (!st)
                ct_json_put_str(out, s);
            ct_buf_addc(out, t.kind == CT_JSON_KEY ? ':' : ' ');
            break;
        case CT_JSON_NUMBER:
            ct_buf_addf(out, "%.*s ", CT_STR_ARG(t.raw));
            break;
        case CT_JSON_END:
        case CT_JSON_OBJECT:
        case CT_JSON_OBJECT_END:
        case CT_JSON_ARRAY:
        case CT_JSON_ARRAY_END:
        case CT_JSON_TRUE:
        case CT_JSON_FALSE:
        case CT_JSON_NULL:
            ct_buf_addf(out, "%s ", ct_json_kind_name(t.kind));
            break;
        }
    }
    ct_arena_deinit(&a);
    return st;
}

static void valid_texts_give_their_tokens(void **state)
{
    static const struct {
        const char *text, *want;
    } cases[] = {
        {"1", "1 "},
        {" -0.5e+10 ", "-0.5e+10 "},
        {"12345678901234567890123", "12345678901234567890123 "},
        {"[]", "an array ']' "},
        {"{}", "an object '}' "},
        {"[1,[2,{}],null]", "an array 1 an array 2 an object '}' ']' null ']' "},
        {"{\"a\":true,\"b\":false}", "an object \"a\":true \"b\":false '}' "},
        {"{\"a\":{\"b\":[]}}\n", "an object \"a\":an object \"b\":an array ']' '}' '}' "},
        {"\"\\u0041\\n\\\"\\/\\\\\"", "\"A\\n\\\"/\\\\\" "},
        {"\"\\ud83d\\ude00\"", "\"\xf0\x9f\x98\x80\" "},
        {"\"\\ud83d\"", "\"\xef\xbf\xbd\" "},
        {"\"\\ude00x\"", "\"\xef\xbf\xbdx\" "},
        {"\"\\ud83d\\u0041\"", "\"\xef\xbf\xbd"
                               "A\" "},
        {"\"\\u0000\"", "\"\\u0000\" "},
        {"\"h\xc3\xa9\"", "\"h\xc3\xa9\" "},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ct_error err;
        ct_buf out;

        ct_buf_init(&out, 1000);
        test_ok(canonical(ct_str_of(cases[i].text), &out, &err), &err);
        assert_string_equal(out.p, cases[i].want);
        ct_buf_deinit(&out);
    }
}

static void malformed_texts_are_refused_with_their_place(void **state)
{
    static const struct {
        const char *text, *message;
    } cases[] = {
        {"", "byte 0: expected a value, found the end"},
        {"nul", "byte 0: expected a value"},
        {"01", "byte 1: number with a leading zero"},
        {"-", "byte 1: expected a value"},
        {"1.", "byte 2: number without digits after the point"},
        {"1e", "byte 2: number without digits in its exponent"},
        {"+1", "byte 0: expected a value"},
        {"1 2", "byte 2: text after the value"},
        {"[1 2]", "byte 3: expected ',' or ']'"},
        {"[1,]", "byte 3: expected a value"},
        {"[", "byte 1: expected a value, found the end"},
        {"{", "byte 1: expected a key in quotes"},
        {"{\"a\"}", "byte 4: expected ':' after a key"},
        {"{\"a\":1,}", "byte 7: expected a key in quotes"},
        {"{\"a\":}", "byte 5: expected a value"},
        {"{a:1}", "byte 1: expected a key in quotes"},
        {"{\"a\":1]", "byte 6: expected ',' or '}'"},
        {"\"abc", "byte 4: unterminated string"},
        {"\"a\nb\"", "byte 2: control character in a string"},
        {"\"\\x\"", "byte 2: unknown escape"},
        {"\"\\u12g4\"", "byte 2: \\u needs four hexadecimal digits"},
        {"\"\\u12", "byte 2: \\u needs four hexadecimal digits"},
        {"\"\xff\"", "byte 1: string is not valid UTF-8"},
        {"\"\xed\xa0\x80\"", "byte 1: string is not valid UTF-8"},
        {"\"\xc0\xaf\"", "byte 1: string is not valid UTF-8"},
        {"NaN", "byte 0: expected a value"},
        {"// no", "byte 0: expected a value"},
        {"'a'", "byte 0: expected a value"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char want[200];
        ct_error err;
        ct_buf out;

        ct_buf_init(&out, 1000);
        snprintf(want, sizeof want, "test: JSON, %s", cases[i].message);
        assert_int_equal(canonical(ct_str_of(cases[i].text), &out, &err), CT_EFORMAT);
        assert_string_equal(err.text, want);
        ct_buf_deinit(&out);
    }
}

static void depth_is_bounded(void **state)
{
    char text[2 * CT_JSON_MAX_DEPTH + 2];
    ct_error err;
    ct_buf out;

    (void)state;
    ct_buf_init(&out, 1 << 16);
    memset(text, '[', CT_JSON_MAX_DEPTH);
    memset(text + CT_JSON_MAX_DEPTH, ']', CT_JSON_MAX_DEPTH);
    test_ok(canonical((ct_str){text, 2 * CT_JSON_MAX_DEPTH}, &out, &err), &err);
    memset(text, '[', CT_JSON_MAX_DEPTH + 1);
    assert_int_equal(canonical((ct_str){text, CT_JSON_MAX_DEPTH + 1}, &out, &err), CT_ELIMIT);
    ct_buf_deinit(&out);
}

static void a_value_can_be_passed_over(void **state)
{
    ct_json_token t;
    ct_error err;
    ct_json j;

    (void)state;
    ct_json_init(&j, "test", CT_STR("[{\"a\":[1,{}]},7]"));
    test_ok(ct_json_expect(&j, CT_JSON_ARRAY, "it", &t, &err), &err);
    test_ok(ct_json_expect(&j, CT_JSON_OBJECT, "first", &t, &err), &err);
    test_ok(ct_json_skip(&j, &t, &err), &err);
    test_ok(ct_json_expect(&j, CT_JSON_NUMBER, "second", &t, &err), &err);
    test_ok(ct_json_skip(&j, &t, &err), &err);
    assert_int_equal(ct_json_expect(&j, CT_JSON_STRING, "third", &t, &err), CT_EFORMAT);
    assert_string_equal(err.text, "test: third must be a string, not ']' (byte 16)");
}

static void keys_compare_decoded(void **state)
{
    ct_json_token plain = {.kind = CT_JSON_KEY, .raw = CT_STR("dtype")};
    ct_json_token escaped = {.kind = CT_JSON_KEY, .raw = CT_STR("d\\u0074ype"), .escaped = true};

    (void)state;
    assert_true(ct_json_is(&plain, "dtype"));
    assert_false(ct_json_is(&plain, "dtyp"));
    assert_true(ct_json_is(&escaped, "dtype"));
    assert_false(ct_json_is(&escaped, "dtyp"));
    assert_false(ct_json_is(&escaped, "dtypes"));
}

static ct_status number(const char *text, uint64_t max, uint64_t *u, double *d, ct_error *err)
{
    ct_json_token t;
    ct_status st;
    ct_json j;

    ct_json_init(&j, "test", ct_str_of(text));
    test_ok(ct_json_next(&j, &t, err), err);
    st = u ? ct_json_u64(&j, &t, "x", max, u, err) : ct_json_double(&j, &t, "x", d, err);
    return st;
}

static void numbers_are_read_exactly_or_refused(void **state)
{
    ct_error err;
    uint64_t u;
    double d;

    (void)state;
    test_ok(number("18446744073709551615", UINT64_MAX, &u, NULL, &err), &err);
    assert_true(u == UINT64_MAX);
    assert_int_equal(number("18446744073709551616", UINT64_MAX, &u, NULL, &err), CT_EFORMAT);
    assert_int_equal(number("8", 7, &u, NULL, &err), CT_EFORMAT);
    assert_string_equal(err.text, "test: x is 8, must be a whole number up to 7");
    assert_int_equal(number("-1", 7, &u, NULL, &err), CT_EFORMAT);
    assert_int_equal(number("1.0", 7, &u, NULL, &err), CT_EFORMAT);
    assert_int_equal(number("1e0", 7, &u, NULL, &err), CT_EFORMAT);
    assert_int_equal(number("\"1\"", 7, &u, NULL, &err), CT_EFORMAT);
    assert_string_equal(err.text, "test: x is a string, must be a whole number up to 7");
    test_ok(number("-1.5e-3", 0, NULL, &d, &err), &err);
    assert_true(d == -1.5e-3);
    assert_int_equal(number("1e999", 0, NULL, &d, &err), CT_EFORMAT);
    assert_int_equal(number("true", 0, NULL, &d, &err), CT_EFORMAT);
}

static void written_strings_are_escaped(void **state)
{
    ct_buf out;

    (void)state;
    ct_buf_init(&out, 1000);
    ct_json_put_str(&out, (ct_str){NULL, 0});
    ct_json_put_str(&out, (ct_str){"a\"b\\c\n\t\0\x7f", 9});
    ct_json_put_str(&out, CT_STR("\xc3\xa9 \xe2\x96 \xff"));
    assert_string_equal(out.p, "\"\"\"a\\\"b\\\\c\\n\\u0009\\u0000\\u007f\""
                               "\"\xc3\xa9 \xef\xbf\xbd\xef\xbf\xbd \xef\xbf\xbd\"");
    ct_buf_deinit(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(valid_texts_give_their_tokens),
        cmocka_unit_test(malformed_texts_are_refused_with_their_place),
        cmocka_unit_test(depth_is_bounded),
        cmocka_unit_test(a_value_can_be_passed_over),
        cmocka_unit_test(keys_compare_decoded),
        cmocka_unit_test(numbers_are_read_exactly_or_refused),
        cmocka_unit_test(written_strings_are_escaped),
    };

    return cmocka_run_group_tests_name("json", tests, NULL, NULL);
}
