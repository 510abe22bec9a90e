/* text/jinja, text/value: the table of cases made with Jinja2, and the limits. */
#include "support.h"

#include <string.h>

#include "base/clock.h"
#include "base/map.h"
#include "text/jinja.h"
#include "text/unicode.h"
#include "text/value.h"

#define CASES       "tests/data/jinja_cases.jsonl"
#define ARENA_BYTES ((size_t)1 << 30)

static ct_status run(const char *name, ct_str source, const ct_value *vars, ct_jinja_limits limits,
                     ct_arena *a, ct_buf *out, ct_error *err)
{
    ct_jinja *j = NULL;
    ct_status st = ct_jinja_compile(&j, name, source, err);

    if (!st)
        st = ct_jinja_render_limited(j, vars, limits, a, out, err);
    ct_jinja_destroy(j);
    return st;
}

static const ct_jinja_limits usual = {
    .steps = CT_JINJA_MAX_STEPS, .output_bytes = 1 << 20, .depth = CT_JINJA_MAX_DEPTH};

/* Number of the case's line is in the message: sed -n Np tests/data/jinja_cases.jsonl. */
static int check_case(const ct_value *c, const ct_value *vars, size_t line, ct_arena *a)
{
    const ct_value *template = ct_value_get(c, "template"), *text = ct_value_get(c, "text");
    ct_jinja *j = NULL;
    ct_error err;
    ct_buf out;
    ct_status st;
    int wrong = 0;

    ct_buf_init(&out, 1 << 20);
    st = run("case", ct_value_text(template), vars, usual, a, &out, &err);
    if (st && text)
        wrong = 1;
    else if (!st && !text)
        wrong = 1;
    else if (text && !ct_str_eq(ct_buf_str(&out), ct_value_text(text)))
        wrong = 1;
    if (ct_value_get(c, "refused")) {
        wrong = ct_jinja_compile(&j, "case", ct_value_text(template), &err) == CT_OK;
        ct_jinja_destroy(j);
    }
    if (wrong)
        print_error("%s:%zu: %.*s\n  gave %s\n  want %.*s\n", CASES, line,
                    CT_STR_ARG(ct_value_text(template)),
                    st      ? err.text
                    : out.p ? out.p
                            : "",
                    CT_STR_ARG(text ? ct_value_text(text) : CT_STR("an error")));
    ct_buf_deinit(&out);
    return wrong;
}

static void same_as_jinja2(void **state)
{
    const ct_value *vars = NULL;
    size_t line = 0, wrong = 0;
    ct_arena a = {0};
    ct_error err;
    ct_str rest;
    ct_map map;

    (void)state;
    test_ok(ct_map_open(&map, CASES, &err), &err);
    test_ok(ct_arena_init(&a, ARENA_BYTES, &err), &err);
    for (rest = ct_map_str(&map); rest.n;) {
        const char *end = memchr(rest.p, '\n', rest.n);
        size_t n = end ? (size_t)(end - rest.p) : rest.n;
        const ct_value *c;

        line++;
        test_ok(ct_value_parse(&c, CASES, (ct_str){rest.p, n}, &a, &err), &err);
        if (line == 1)
            vars = ct_value_get(c, "vars");
        else
            wrong += (size_t)check_case(c, vars, line, &a);
        n += end != NULL;
        rest = (ct_str){rest.p + n, rest.n - n};
    }
    ct_map_close(&map);
    ct_arena_deinit(&a);
    assert_true(line > 150);
    assert_int_equal(wrong, 0);
}

/* Renders with {} as input and expects a clear error, soon and within 64 MiB. */
static void expect_error(const char *source, const char *part)
{
    const ct_value *vars;
    ct_arena a = {0};
    ct_error err;
    ct_buf out;
    double begin = ct_now_s();

    test_ok(ct_arena_init(&a, 64 << 20, &err), &err);
    test_ok(ct_value_parse(&vars, "vars", CT_STR("{}"), &a, &err), &err);
    ct_buf_init(&out, 2 << 20);
    ct_buf_addz(&out, "before");
    if (!run("limit", ct_str_of(source), vars, usual, &a, &out, &err))
        fail_msg("%.200s: no error", source);
    if (!strstr(err.text, part))
        fail_msg("%.200s: the error is '%s', not about '%s'", source, err.text, part);
    assert_string_equal(out.p, "before");
    if (ct_now_s() - begin > 20)
        fail_msg("%.200s: took %.1f s", source, ct_now_s() - begin);
    ct_buf_deinit(&out);
    ct_arena_deinit(&a);
}

static void limits_end_runaway_templates(void **state)
{
    (void)state;
    expect_error("{% for i in range(10**9) %}{% endfor %}", "'**' is not supported");
    expect_error("{% for i in range(1000000000) %}{% endfor %}", "Range too big");
    expect_error("{% for i in range(99999) %}{% for j in range(99999) %}{% endfor %}{% endfor %}",
                 "steps");
    expect_error("{% set ns = namespace(s='x') %}{% for i in range(99) %}"
                 "{% set ns.s = ns.s + ns.s %}{% endfor %}",
                 "limit");
    expect_error("{% set ns = namespace(s=[1]) %}{% for i in range(99) %}"
                 "{% set ns.s = ns.s + ns.s %}{% endfor %}",
                 "memory bound");
    expect_error("{% for i in range(99999) %}{{ 'xxxxxxxxxxxxxxxxxxxxxxxxxxx' }}{% endfor %}",
                 "output exceeds");
    expect_error("{{ 'x' * 1000000000 }}", "exceeds the limit");
    expect_error("{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}", "nested deeper");
    expect_error("{% macro f() %}{% for i in [1, 2] %}{% if i %}{{ f() }}{% endif %}{% endfor %}"
                 "{% endmacro %}{{ f() }}",
                 "nested deeper");
    expect_error("{% macro f(n) %}{% if n %}{{ f(n - 1) }}{{ f(n - 1) }}{% endif %}{% endmacro %}"
                 "{{ f(60) }}",
                 "steps");
    expect_error("{% set ns = namespace(x=1) %}{% set ns.x = ns %}{{ ns }}", "nested deeper");
    expect_error("{% set ns = namespace(x=[]) %}{% for i in range(500) %}"
                 "{% set ns.x = [ns.x] %}{% endfor %}{{ ns.x == [] or ns.x }}",
                 "nested deeper");
}

/* head repeated n times, then tail repeated n times. */
static void expect_deep_error(const char *head, const char *tail, size_t n, const char *around)
{
    ct_buf b;

    ct_buf_init(&b, 2 << 20);
    ct_buf_addz(&b, around);
    for (size_t i = 0; i < n; i++)
        ct_buf_addz(&b, head);
    ct_buf_addz(&b, "1");
    for (size_t i = 0; i < n; i++)
        ct_buf_addz(&b, tail);
    if (*around)
        ct_buf_addz(&b, "}}");
    expect_error(b.p, "nested deeper");
    ct_buf_deinit(&b);
}

static void deep_sources_are_refused(void **state)
{
    (void)state;
    expect_deep_error("[", "]", 240, "{{ ");
    expect_deep_error("(", ")", 240, "{{ ");
    expect_deep_error("-", "", 100000, "{{ ");
    expect_deep_error("not ", "", 100000, "{{ ");
    expect_deep_error("1+", "", 100000, "{{ ");
    expect_deep_error("", ".a", 100000, "{{ ");
    expect_deep_error("", "|upper", 100000, "{{ ");
    expect_deep_error("1 if 1 else ", "", 10000, "{{ ");
    expect_deep_error("{% if 1 %}", "{% endif %}", 10000, "");
    expect_deep_error("{% for i in a %}", "{% endfor %}", 10000, "");
}

static void errors_name_the_line(void **state)
{
    (void)state;
    expect_error("a\n{% if x %}\n{{ x | nope }}{% endif %}", "limit:3: unknown filter 'nope'");
    expect_error("\n\n{{ x.y }}", "limit:3: 'x' is undefined");
    expect_error("{{ [][0].x }}", "list object has no element 0");
    expect_error("{{ {}.a.x }}", "'dict object' has no attribute 'a'");
    expect_error("{{ none.a.x }}", "'None' has no attribute 'a'");
    expect_error("{% macro f(a) %}{{ a.x }}{% endmacro %}{{ f() }}", "'a' is undefined");
    expect_error("{{ nofunction() }}", "unknown function 'nofunction'");
    expect_error("{{ x.nomethod() }}", "unknown method 'nomethod'");
    expect_error("{{ raise_exception('exactly ' ~ 'this') }}", "exactly this");
    expect_error("\xff", "UTF-8");
}

/* O(1) amortised: a document split into many parts must not be copied for each. */
static void appending_in_a_loop_is_linear(void **state)
{
    static const char source[] =
        "{% set ns = namespace(s='') %}{% for i in range(90000) %}"
        "{% set ns.s = ns.s + 'xxxxxxxxxx' %}{% endfor %}{{ ns.s | length }}";
    const ct_value *vars;
    ct_arena a = {0};
    ct_error err;
    ct_buf out;

    (void)state;
    test_ok(ct_arena_init(&a, 32 << 20, &err), &err);
    test_ok(ct_value_parse(&vars, "vars", CT_STR("{}"), &a, &err), &err);
    ct_buf_init(&out, 1 << 20);
    test_ok(run("append", CT_STR(source), vars, usual, &a, &out, &err), &err);
    assert_string_equal(out.p, "900000");
    ct_buf_deinit(&out);
    ct_arena_deinit(&a);
}

static void mapping_keeps_order_and_last_value(void **state)
{
    const ct_value *v;
    ct_arena a = {0};
    ct_error err;
    ct_buf text;

    (void)state;
    test_ok(ct_arena_init(&a, 1 << 24, &err), &err);
    test_ok(ct_value_parse(&v, "t", CT_STR("{\"b\":1,\"a\":2,\"b\":3}"), &a, &err), &err);
    assert_int_equal(v->u.map->n, 2);
    assert_true(ct_str_is(v->u.map->entry[0].key, "b"));
    assert_int_equal(ct_value_get(v, "b")->u.integer, 3);
    assert_null(ct_value_get(v, "c"));

    ct_buf_init(&text, 1 << 20);
    for (int i = 0; i < 5000; i++)
        ct_buf_addf(&text, "%s\"k%d\":%d", i ? "," : "{", i % 2500, i);
    ct_buf_addc(&text, '}');
    test_ok(ct_value_parse(&v, "t", ct_buf_str(&text), &a, &err), &err);
    assert_int_equal(v->u.map->n, 2500);
    for (int i = 0; i < 2500; i++) {
        char key[16];

        snprintf(key, sizeof key, "k%d", i);
        assert_int_equal(ct_value_get(v, key)->u.integer, 2500 + i);
        assert_true(ct_str_is(v->u.map->entry[i].key, key));
    }
    ct_buf_deinit(&text);
    ct_arena_deinit(&a);
}

static void check_upper(const char *from, const char *upper, const char *lower)
{
    ct_buf b;

    ct_buf_init(&b, 100);
    ct_str_upper(&b, ct_str_of(from));
    assert_string_equal(b.p, upper);
    ct_buf_clear(&b);
    ct_str_lower(&b, ct_str_of(from));
    assert_string_equal(b.p, lower);
    ct_buf_deinit(&b);
}

static void case_mapping(void **state)
{
    (void)state;
    check_upper("aZ9", "AZ9", "az9");
    check_upper("straße", "STRASSE", "straße");
    check_upper("ΑΣ ΣΑ", "ΑΣ ΣΑ", "ας σα");
    check_upper("жЖıİ", "ЖЖIİ", "жжıi̇");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(same_as_jinja2),
        cmocka_unit_test(limits_end_runaway_templates),
        cmocka_unit_test(deep_sources_are_refused),
        cmocka_unit_test(errors_name_the_line),
        cmocka_unit_test(appending_in_a_loop_is_linear),
        cmocka_unit_test(mapping_keeps_order_and_last_value),
        cmocka_unit_test(case_mapping),
    };

    return cmocka_run_group_tests_name("jinja", tests, NULL, NULL);
}
