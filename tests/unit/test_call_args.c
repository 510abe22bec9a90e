/* Arguments of tool calls: what is read from which text, for every way of cutting it.
 * In the texts below '~' stands for the quote token. */
#include "support.h"

#include "base/checked.h"
#include "base/map.h"
#include "text/call_args.h"

#define ROWS          "tests/data/call_args.jsonl"
#define QUOTE_NAME    "<|\"|>"
#define QUOTE         '~'
#define CAP_BYTES     ((size_t)64 << 20)
#define HOSTILE_BYTES ((size_t)64 << 10)

/* How a text is cut: at one place, or after every character. */
#define CUT_EVERY SIZE_MAX

typedef struct fixture {
    ct_call_args *c;
    ct_arena arena;
    ct_buf json, rest;
    ct_call_args_state where; /* of the last reading */
    size_t used;              /* bytes that belonged to the call, quotes counting one */
} fixture;

static int setup(void **state)
{
    static fixture f;

    f = (fixture){0};
    ct_buf_init(&f.json, CAP_BYTES);
    ct_buf_init(&f.rest, CAP_BYTES);
    *state = &f;
    return ct_call_args_create(&f.c, NULL) || ct_arena_init(&f.arena, CAP_BYTES, NULL);
}

static int teardown(void **state)
{
    fixture *f = *state;

    ct_call_args_destroy(f->c);
    ct_arena_deinit(&f->arena);
    ct_buf_deinit(&f->json);
    ct_buf_deinit(&f->rest);
    return 0;
}

static size_t char_bytes(ct_str s, size_t at)
{
    size_t n = 1;

    while (at + n < s.n && ((unsigned char)s.p[at + n] & 0xc0) == 0x80)
        n++;
    return n;
}

/* End of the piece that begins at `at`: before the next quote token, the cut or the end. */
static size_t piece_end(ct_str s, size_t at, size_t cut)
{
    size_t end = at + char_bytes(s, at);

    if (cut == CUT_EVERY)
        return end;
    while (end < s.n && s.p[end] != QUOTE && end != cut)
        end++;
    return end;
}

static void read_text(fixture *f, const ct_value *schema, ct_str s, size_t cut, bool stopped)
{
    ct_error err;
    size_t at = 0;

    ct_buf_clear(&f->json);
    ct_buf_clear(&f->rest);
    ct_call_args_start(f->c, schema);
    while (at < s.n && ct_call_args_where(f->c) == CT_CALL_ARGS_OPEN) {
        size_t used, end = piece_end(s, at, cut);

        if (s.p[at] == QUOTE) {
            test_ok(ct_call_args_quote(f->c, &f->json, &err), &err);
            at++;
            continue;
        }
        test_ok(ct_call_args_text(f->c, (ct_str){s.p + at, end - at}, &used, &f->json, &err), &err);
        assert_true(used <= end - at);
        assert_true(used == end - at || ct_call_args_where(f->c) == CT_CALL_ARGS_CLOSED);
        at += used;
    }
    test_ok(ct_call_args_end(f->c, stopped, &f->json, &err), &err);
    f->where = ct_call_args_where(f->c);
    f->used = at;
    if (f->where == CT_CALL_ARGS_CLOSED) {
        ct_str rest = ct_call_args_rest(f->c);

        ct_buf_add(&f->rest, rest.p, rest.n);
        ct_buf_add(&f->rest, s.p + at, s.n - at);
    }
}

/* One row of the table: text -> json (null: not a call), under a schema, where declared;
 * rest: what follows the call; stopped: the output ended without the closing token. */
typedef struct row {
    size_t line;
    ct_str text, json, rest; /* text with QUOTE for the token; json.p NULL: not a call */
    const ct_value *schema;
    bool stopped;
} row;

static ct_str member_text(const ct_value *v, const char *key)
{
    const ct_value *m = ct_value_get(v, key);

    return m && m->kind == CT_VALUE_STRING ? ct_value_text(m) : (ct_str){0};
}

/* Replaces the token's name by QUOTE. */
static ct_str with_quotes(ct_str s, ct_arena *a)
{
    char *out = ct_arena_alloc(a, s.n + 1, 1);
    size_t n = 0;

    assert_non_null(out);
    for (size_t i = 0; i < s.n; i++) {
        bool token = ct_str_starts((ct_str){s.p + i, s.n - i}, QUOTE_NAME);

        assert_int_not_equal(s.p[i], QUOTE);
        out[n++] = token ? QUOTE : s.p[i];
        i += token ? strlen(QUOTE_NAME) - 1 : 0;
    }
    return (ct_str){out, n};
}

static void check_row(fixture *f, const row *r, size_t cut)
{
    ct_str got = {0};

    read_text(f, r->schema, r->text, cut, r->stopped);
    if (f->where == CT_CALL_ARGS_OPEN)
        fail_msg(ROWS ":%zu: still open at its end", r->line);
    if (f->where == CT_CALL_ARGS_CLOSED)
        got = ct_buf_str(&f->json);
    if (!got.p != !r->json.p || !ct_str_eq(got, r->json))
        fail_msg(ROWS ":%zu: %.*s\n  cut at %zd: got  %.*s\n  want %.*s", r->line,
                 CT_STR_ARG(r->text), (ssize_t)cut, CT_STR_ARG(got.p ? got : CT_STR("no call")),
                 CT_STR_ARG(r->json.p ? r->json : CT_STR("no call")));
    if (got.p && !ct_str_eq(ct_buf_str(&f->rest), r->rest))
        fail_msg(ROWS ":%zu: %.*s\n  cut at %zd: rest %.*s", r->line, CT_STR_ARG(r->text),
                 (ssize_t)cut, CT_STR_ARG(ct_buf_str(&f->rest)));
}

static void check_all_cuts(fixture *f, const row *r)
{
    check_row(f, r, CUT_EVERY);
    for (size_t cut = 0; cut <= r->text.n; cut++)
        if (cut == r->text.n || ((unsigned char)r->text.p[cut] & 0xc0) != 0x80)
            check_row(f, r, cut);
}

static void test_readings_do_not_depend_on_cuts(void **state)
{
    fixture *f = *state;
    ct_map file;
    ct_error err;
    size_t line = 0, n = 0;

    test_ok(ct_map_open(&file, ROWS, &err), &err);
    for (size_t at = 0, end; at < file.size; at = end + 1) {
        const char *p = (const char *)file.base + at, *stop = memchr(p, '\n', file.size - at);
        const ct_value *v;
        row r = {.line = ++line};

        assert_non_null(stop);
        end = at + (size_t)(stop - p);
        test_ok(ct_value_parse(&v, ROWS, (ct_str){p, end - at}, &f->arena, &err), &err);
        r.text = with_quotes(member_text(v, "text"), &f->arena);
        r.json = member_text(v, "json");
        r.rest = member_text(v, "rest");
        r.schema = ct_value_get(v, "schema");
        r.stopped = ct_value_get(v, "stopped");
        check_all_cuts(f, &r);
        n++;
    }
    ct_map_close(&file);
    assert_true(n >= 100);
}

/* --- Random arguments, printed as the chat template prints them and as JSON --- */

#define N_RANDOM   500
#define LONG_BYTES 100000

typedef struct maker {
    uint64_t random;
    ct_buf call, json; /* the same value in both */
} maker;

static uint32_t below(maker *m, uint32_t n)
{
    m->random = m->random * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(m->random >> 33) % n;
}

static void put_both(maker *m, const char *z)
{
    ct_buf_addz(&m->call, z);
    ct_buf_addz(&m->json, z);
}

static void make_string(maker *m, size_t n_parts)
{
    static const char *const parts[] = {
        "a",    " ",    "\n",   "\t",     "\"",        "'",    "\"q\"",   "\\",    "\\n",
        "{",    "}",    "[",    "]",      "},",        "\"}",  ", b:",    ", b1:", ":",
        "null", "-1.5", "42",   "é",      "你好",      "🙂", "call:f{", "</p>",  "<|",
        "|>",   "a, b", "it's", "(x)",    "key:\"v\"", "\x01", "b1:{}",   "]}",    "true",
        ",",    "\r\n", "=",    "\u00a0", "e\u0301",
    };
    ct_buf text;

    ct_buf_init(&text, CAP_BYTES);
    for (size_t i = 0; i < n_parts; i++)
        ct_buf_addz(&text, parts[below(m, CT_LEN(parts))]);
    ct_buf_addc(&m->call, QUOTE);
    ct_buf_add(&m->call, text.p, text.n);
    ct_buf_addc(&m->call, QUOTE);
    ct_json_put_str(&m->json, ct_buf_str(&text));
    ct_buf_deinit(&text);
}

static void make_scalar(maker *m)
{
    static const char *const words[] = {"true",
                                        "false",
                                        "null",
                                        "0",
                                        "-7",
                                        "3.5",
                                        "1e-07",
                                        "6.02e+23",
                                        "100.0",
                                        "-0.0",
                                        "12345678901234567890"};
    uint32_t what = below(m, 16);

    if (what < 8)
        make_string(m, what);
    else
        put_both(m, words[below(m, CT_LEN(words))]);
}

static void make_key(maker *m, unsigned i)
{
    static const char *const names[] = {"a",         "b",     "größe", "$gt",
                                        "file_path", "x.y-z", "@id",   "名"};
    ct_buf key;

    ct_buf_init(&key, 64);
    ct_buf_addf(&key, "%s%u", names[below(m, CT_LEN(names))], i);
    ct_buf_addf(&m->call, "%s:", key.p);
    ct_json_put_str(&m->json, ct_buf_str(&key));
    ct_buf_addc(&m->json, ':');
    ct_buf_deinit(&key);
}

/* Recursion is bounded by levels. */
static void make_value(maker *m, unsigned levels, bool list);

static void make_container(maker *m, unsigned levels, bool list)
{
    unsigned n = below(m, 4);

    put_both(m, list ? "[" : "{");
    for (unsigned i = 0; i < n; i++) {
        if (i)
            put_both(m, ",");
        if (!list)
            make_key(m, i);
        make_value(m, levels - 1, below(m, 2));
    }
    put_both(m, list ? "]" : "}");
}

static void make_value(maker *m, unsigned levels, bool list)
{
    if (levels && below(m, 3))
        make_container(m, levels, list);
    else
        make_scalar(m);
}

/* A chain of `levels` containers around one string. */
static void make_deep(maker *m, unsigned levels)
{
    uint64_t kinds = m->random;

    for (unsigned i = 0; i < levels; i++) {
        bool list = i && (kinds >> i % 64 & 1);

        put_both(m, list ? "[" : "{");
        if (!list)
            make_key(m, i);
    }
    make_string(m, 5);
    for (unsigned i = levels; i-- > 0;)
        put_both(m, i && (kinds >> i % 64 & 1) ? "]" : "}");
}

static void make_long(maker *m)
{
    put_both(m, "{");
    make_key(m, 0);
    make_string(m, LONG_BYTES);
    put_both(m, ",");
    make_key(m, 1);
    make_string(m, LONG_BYTES);
    put_both(m, "}");
}

static void check_made(fixture *f, const maker *m, const ct_value *schema, unsigned seed,
                       size_t cut)
{
    read_text(f, schema, ct_buf_str(&m->call), cut, false);
    if (f->where != CT_CALL_ARGS_CLOSED || !ct_str_eq(ct_buf_str(&f->json), ct_buf_str(&m->json)))
        fail_msg("seed %u, cut at %zd: %.2000s\n  got  %.2000s\n  want %.2000s", seed, (ssize_t)cut,
                 m->call.p, f->json.p ? f->json.p : "nothing", m->json.p);
    assert_int_equal(f->used, m->call.n);
    assert_int_equal(f->rest.n, 0);
}

static void test_random_arguments_come_back(void **state)
{
    fixture *f = *state;
    const ct_value *schema;
    ct_error err;

    /* Declares keys that the texts mention, at every level. */
    test_ok(ct_value_parse(&schema, "schema",
                           CT_STR("{\"properties\":{\"b\":{\"$ref\":\"#\"},\"a0\":{},"
                                  "\"b1\":{\"$ref\":\"#\"},\"a1\":{\"items\":{\"$ref\":\"#\"}}}}"),
                           &f->arena, &err),
            &err);
    for (unsigned seed = 0; seed < N_RANDOM; seed++) {
        maker m = {.random = seed * 2654435761u + 1};
        size_t cut;

        ct_buf_init(&m.call, CAP_BYTES);
        ct_buf_init(&m.json, CAP_BYTES);
        below(&m, 2);
        if (seed % 100 == 99)
            make_long(&m);
        else if (seed % 10 == 9)
            make_deep(&m, seed % 20 == 9 ? 64 : CT_CALL_ARGS_MAX_DEPTH);
        else
            make_container(&m, 1 + seed % 6, false);
        check_made(f, &m, NULL, seed, SIZE_MAX - 1);
        check_made(f, &m, schema, seed, SIZE_MAX - 1);
        check_made(f, &m, schema, seed, CUT_EVERY);
        cut = below(&m, (uint32_t)m.call.n);
        while (((unsigned char)m.call.p[cut] & 0xc0) == 0x80)
            cut--;
        check_made(f, &m, NULL, seed, cut);
        ct_buf_deinit(&m.call);
        ct_buf_deinit(&m.json);
    }
}

/* --- Long and hostile texts --- */

/* A string's text goes out while it comes, and is not kept. */
static void test_string_is_given_out_as_it_comes(void **state)
{
    fixture *f = *state;
    size_t used;
    ct_error err;

    ct_call_args_start(f->c, NULL);
    test_ok(ct_call_args_text(f->c, CT_STR("{a:"), &used, &f->json, &err), &err);
    test_ok(ct_call_args_quote(f->c, &f->json, &err), &err);
    for (unsigned i = 0; i < 1000; i++) {
        ct_buf_clear(&f->json);
        test_ok(ct_call_args_text(f->c, CT_STR("some text"), &used, &f->json, &err), &err);
        assert_true(i == 0 || f->json.n == strlen("some text"));
    }
}

/* Each of these repeated to 64 KiB, whole and in small pieces; a reader whose time
 * grows with the square would not come to the end of this test. */
static void test_no_text_takes_quadratic_time(void **state)
{
    static const char *const parts[] = {
        "a:{",  "{a:",  "~",    ",",  "~,",  "~~,",  "~}", "}",   " ",    "~ ",  "\"",
        "~\"}", "a:~,", "~,a:", "[",  "[~",  "~a,b", "a=", "\\",  "\"\\", "',",  "a:1,",
        "1,",   "~,~",  "~a~:", "\n", "a\n", "~,a ", "~{", "a:(", "x,y ", "}\"", ", a",
    };
    static const char *const heads[] = {"{a:~", "{a:", "{", "{a:[", "{a:\"", "{a:{b:[~"};
    fixture *f = *state;
    const ct_value *schema;
    ct_buf text;
    ct_error err;

    test_ok(ct_value_parse(&schema, "schema",
                           CT_STR("{\"properties\":{\"a\":{\"type\":\"string\"}}}"), &f->arena,
                           &err),
            &err);
    ct_buf_init(&text, CAP_BYTES);
    for (size_t h = 0; h < CT_LEN(heads); h++)
        for (size_t i = 0; i < CT_LEN(parts); i++) {
            ct_buf_clear(&text);
            ct_buf_addz(&text, heads[h]);
            while (text.n < HOSTILE_BYTES)
                ct_buf_addz(&text, parts[i]);
            read_text(f, schema, ct_buf_str(&text), SIZE_MAX - 1, false);
            assert_int_not_equal(f->where, CT_CALL_ARGS_OPEN);
            read_text(f, NULL, ct_buf_str(&text), CUT_EVERY, false);
            assert_int_not_equal(f->where, CT_CALL_ARGS_OPEN);
        }
    ct_buf_deinit(&text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_readings_do_not_depend_on_cuts, setup, teardown),
        cmocka_unit_test_setup_teardown(test_random_arguments_come_back, setup, teardown),
        cmocka_unit_test_setup_teardown(test_string_is_given_out_as_it_comes, setup, teardown),
        cmocka_unit_test_setup_teardown(test_no_text_takes_quadratic_time, setup, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
