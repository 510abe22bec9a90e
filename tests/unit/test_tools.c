/* The declared tools: what is refused by name, and which name a call's text means. */
#include "support.h"

#include "base/checked.h"
#include "text/tools.h"

#define ARENA_BYTES ((size_t)1 << 20)

static int setup(void **state)
{
    static ct_arena a;

    *state = &a;
    return ct_arena_init(&a, ARENA_BYTES, NULL);
}

static int teardown(void **state)
{
    ct_arena_deinit(*state);
    return 0;
}

static ct_tools read_tools(const char *json, ct_arena *a)
{
    const ct_value *list;
    ct_tools tools;
    ct_error err;

    test_ok(ct_value_parse(&list, "request", ct_str_of(json), a, &err), &err);
    test_ok(ct_tools_from(&tools, list, a, &err), &err);
    return tools;
}

static void test_reads_names_and_schemas(void **state)
{
    ct_tools tools = read_tools("[{\"type\":\"function\",\"function\":{\"name\":\"f\","
                                "\"parameters\":{\"type\":\"object\"}}},"
                                "{\"type\":\"function\",\"function\":{\"name\":\"g\"}},"
                                "{\"function\":{\"name\":\"h\",\"parameters\":null}}]",
                                *state);

    assert_int_equal(tools.n, 3);
    assert_true(ct_str_is(tools.tool[0].name, "f"));
    assert_non_null(ct_value_get(tools.tool[0].parameters, "type"));
    assert_null(tools.tool[1].parameters);
    assert_null(tools.tool[2].parameters);
}

static void test_no_tools(void **state)
{
    ct_arena *a = *state;
    ct_tools tools;

    assert_int_equal(ct_tools_from(&tools, NULL, a, NULL), CT_OK);
    assert_int_equal(tools.n, 0);
    assert_int_equal(read_tools("null", a).n, 0);
    assert_int_equal(read_tools("[]", a).n, 0);
    assert_null(ct_tools_find(&tools, CT_STR("f")));
    assert_null(ct_tools_match(NULL, CT_STR("f")));
}

static void test_refuses_with_the_path_of_what_is_wrong(void **state)
{
    static const struct {
        const char *list, *message;
    } rows[] = {
        {"{}", "tools: must be an array, not an object"},
        {"[1]", "tools[0]: must be an object, not a number"},
        {"[{}]", "tools[0].function: must be an object, not absent"},
        {"[{\"function\":[]}]", "tools[0].function: must be an object, not an array"},
        {"[{\"type\":1}]", "tools[0].type: must be a string, not a number"},
        {"[{\"type\":\"web_search\"}]",
         "tools[0].type: \"web_search\" is not served, only \"function\""},
        {"[{\"function\":{\"name\":\"f\"}},{\"function\":{}}]",
         "tools[1].function.name: must be a string, not absent"},
        {"[{\"function\":{\"name\":\"\"}}]", "tools[0].function.name: must not be empty"},
        {"[{\"function\":{\"name\":\"f\",\"parameters\":\"x\"}}]",
         "tools[0].function.parameters: must be an object, not a string"},
    };
    ct_arena *a = *state;

    for (size_t i = 0; i < CT_LEN(rows); i++) {
        const ct_value *list;
        ct_tools tools = {.n = 77};
        ct_error err;

        test_ok(ct_value_parse(&list, "request", ct_str_of(rows[i].list), a, &err), &err);
        assert_int_equal(ct_tools_from(&tools, list, a, &err), CT_EINVAL);
        assert_string_equal(err.text, rows[i].message);
        assert_int_equal(tools.n, 77);
    }
}

static void test_finds_and_matches_names(void **state)
{
    static const struct {
        const char *text, *name; /* NULL: none */
    } rows[] = {
        {"f{a:1}", "f"},
        {"f", "f"},
        {"f ", "f"},
        {"f(a=1)", "f"},
        {"f2{}", NULL},
        {"f:{}", NULL},
        {"f.g{}", NULL},
        {"fä{}", NULL},
        {"", NULL},
        {"get{}", "get"},
        {"get_weather{}", "get_weather"},
        {"get-weather.v2{}", "get-weather.v2"},
        {"google:mcp:x:create-pdf-file{}", "google:mcp:x:create-pdf-file"},
        {"google:mcp{}", NULL},
        {"größe{}", "größe"},
    };
    ct_tools tools =
        read_tools("[{\"function\":{\"name\":\"f\"}},{\"function\":{\"name\":\"get\"}},"
                   "{\"function\":{\"name\":\"get_weather\"}},"
                   "{\"function\":{\"name\":\"get-weather.v2\"}},"
                   "{\"function\":{\"name\":\"google:mcp:x:create-pdf-file\"}},"
                   "{\"function\":{\"name\":\"größe\"}}]",
                   *state);

    for (size_t i = 0; i < CT_LEN(rows); i++) {
        const ct_tool *t = ct_tools_match(&tools, ct_str_of(rows[i].text));

        assert_int_equal(!t, !rows[i].name);
        assert_true(!t || ct_str_is(t->name, rows[i].name));
    }
    assert_ptr_equal(ct_tools_find(&tools, CT_STR("get")), &tools.tool[1]);
    assert_null(ct_tools_find(&tools, CT_STR("get_")));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_reads_names_and_schemas, setup, teardown),
        cmocka_unit_test_setup_teardown(test_no_tools, setup, teardown),
        cmocka_unit_test_setup_teardown(test_refuses_with_the_path_of_what_is_wrong, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_finds_and_matches_names, setup, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
