/* text/tool_schema: what schemas beyond the template's reach become. */
#include "requests.h"

#include "text/openai_messages.h"
#include "text/tool_schema.h"

/* A property `x` of this schema, with definitions D (a string enum), N (a list node) and
 * M (a pair that name each other). */
#define ROOT                                                                                       \
    "{\"messages\":[],\"tools\":[{\"type\":\"function\",\"function\":{\"name\":\"f\","             \
    "\"description\":\"d\",\"parameters\":{\"type\":\"object\",\"properties\":{\"x\":%s},"         \
    "\"$defs\":{\"D\":{\"type\":\"string\",\"enum\":[\"a\",\"b\"]},\"N\":{\"type\":\"object\","    \
    "\"properties\":{\"v\":{\"type\":\"integer\"},\"next\":{\"anyOf\":[{\"$ref\":\"#/$defs/N\"},"  \
    "{\"type\":\"null\"}]}}},\"M\":{\"type\":\"object\",\"properties\":{\"o\":{\"$ref\":"          \
    "\"#/$defs/O\"}}},\"O\":{\"type\":\"array\",\"items\":{\"$ref\":\"#/$defs/M\"}},"              \
    "\"a/b\":{\"type\":\"boolean\"}}}}}]}"

static void becomes(const char *schema, const char *want)
{
    char request[8192], part[4096];

    snprintf(request, sizeof request, ROOT, schema);
    snprintf(part, sizeof part, "\"properties\": {\"x\": %s}", want);
    test_maps(ct_openai_request, request, part);
}

static void unchanged(const char *schema)
{
    becomes(schema, schema);
}

static void within_reach_is_unchanged(void **state)
{
    (void)state;
    unchanged("{\"type\": \"string\", \"enum\": [\"a\"], \"description\": \"d\"}");
    unchanged("{\"type\": \"INTEGER\", \"minimum\": 1, \"default\": 3, \"title\": \"X\"}");
    unchanged(
        "{\"type\": \"array\", \"items\": {\"type\": [\"string\", \"null\"], \"enum\": [1]}}");
    unchanged("{\"type\": \"array\", \"items\": {}}");
    unchanged("{\"type\": \"array\"}");
    unchanged("{\"type\": \"object\", \"additionalProperties\": false}");
    unchanged("{\"type\": \"object\", \"properties\": {\"$ref\": {\"type\": \"string\"}}, "
              "\"additionalProperties\": true, \"required\": [\"$ref\"]}");
    unchanged("{\"type\": \"null\"}");
}

static void types(void **state)
{
    (void)state;
    becomes("{\"type\":[\"string\",\"null\"]}", "{\"type\": \"string\", \"nullable\": true}");
    becomes("{\"type\":[\"integer\",\"string\"],\"description\":\"Id.\"}",
            "{\"type\": \"integer\", \"description\": \"Id. Type: integer | string.\"}");
    becomes("{\"type\":[\"string\",\"array\",\"null\"],\"items\":{\"type\":\"integer\"}}",
            "{\"type\": \"string\", \"nullable\": true, \"description\": "
            "\"Type: string | array of integer.\"}");
    /* Items of an object would be printed as a property. */
    becomes("{\"type\":\"object\",\"items\":{\"type\":\"string\"}}", "{\"type\": \"object\"}");
    becomes("{\"type\":[\"null\"]}", "{\"type\": \"null\"}");
    becomes("{}", "{\"type\": \"any\"}");
    becomes("true", "{\"type\": \"any\"}");
    becomes("false", "{\"type\": \"any\", \"description\": \"No value is allowed.\"}");
    becomes("7", "{\"type\": \"any\"}");
    becomes("{\"description\":\"d\"}", "{\"type\": \"any\", \"description\": \"d\"}");
    becomes("{\"properties\":{\"y\":{\"type\":\"string\"}}}",
            "{\"type\": \"object\", \"properties\": {\"y\": {\"type\": \"string\"}}}");
    becomes("{\"items\":{\"type\":\"string\"}}",
            "{\"type\": \"array\", \"items\": {\"type\": \"string\"}}");
    becomes("{\"minimum\":1}", "{\"minimum\": 1, \"type\": \"number\"}");
    becomes("{\"type\":7}", "{\"type\": \"any\"}");
    becomes("{\"type\":\"string\",\"nullable\":1,\"description\":null}",
            "{\"type\": \"string\", \"nullable\": true}");
    becomes("{\"type\":\"string\",\"description\":5}",
            "{\"type\": \"string\", \"description\": \"5.\"}");
}

static void values(void **state)
{
    (void)state;
    becomes("{\"const\":\"a\"}", "{\"type\": \"string\", \"enum\": [\"a\"]}");
    becomes("{\"const\":3,\"description\":\"Version\"}",
            "{\"type\": \"integer\", \"description\": \"Version. Always 3.\"}");
    becomes("{\"enum\":[\"a\",\"b\",null]}",
            "{\"type\": \"string\", \"nullable\": true, \"enum\": [\"a\", \"b\"]}");
    becomes("{\"type\":\"integer\",\"enum\":[1,2]}",
            "{\"type\": \"integer\", \"description\": \"Allowed: 1, 2.\"}");
    becomes("{\"enum\":[1,\"a\",true]}",
            "{\"type\": \"any\", \"description\": \"Allowed: 1, \\\"a\\\", true.\"}");
}

static void unions(void **state)
{
    (void)state;
    becomes("{\"anyOf\":[{\"type\":\"string\"},{\"type\":\"null\"}],\"description\":\"d\"}",
            "{\"type\": \"string\", \"nullable\": true, \"description\": \"d\"}");
    becomes("{\"oneOf\":[{\"const\":\"a\"},{\"enum\":[\"b\",\"a\"]}]}",
            "{\"type\": \"string\", \"enum\": [\"a\", \"b\"]}");
    becomes(
        "{\"anyOf\":[{\"type\":\"string\"},{\"type\":\"array\",\"items\":{\"type\":\"integer\"}}]}",
        "{\"type\": \"string\", \"description\": \"Type: string | array of integer.\"}");
    becomes("{\"oneOf\":[{\"type\":\"object\",\"properties\":{\"k\":{\"const\":\"c\"},\"r\":"
            "{\"type\":\"number\"}},\"required\":[\"k\",\"r\"]},{\"type\":\"object\","
            "\"properties\":{\"k\":{\"const\":\"s\"}},\"required\":[\"k\"]}]}",
            "{\"type\": \"object\", \"properties\": {\"k\": {\"type\": \"string\", \"enum\": "
            "[\"c\", \"s\"]}, \"r\": {\"type\": \"number\"}}, \"required\": [\"k\"], "
            "\"description\": \"Type: {k: \\\"c\\\", r: number} | {k: \\\"s\\\"}.\"}");
    becomes("{\"anyOf\":[]}", "{\"type\": \"any\"}");
    becomes("{\"anyOf\":[{\"type\":\"null\"}]}", "{\"type\": \"null\"}");
    becomes(
        "{\"type\":\"array\",\"items\":{\"anyOf\":[{\"type\":\"string\"},{\"type\":\"null\"}]}}",
        "{\"type\": \"array\", \"items\": {\"type\": \"string\", \"nullable\": true}}");
}

static void all_of(void **state)
{
    (void)state;
    becomes("{\"allOf\":[{\"$ref\":\"#/$defs/D\"}],\"description\":\"d\",\"default\":\"a\"}",
            "{\"default\": \"a\", \"type\": \"string\", \"enum\": [\"a\", \"b\"], "
            "\"description\": \"d\"}");
    becomes("{\"allOf\":[{\"properties\":{\"p\":{\"type\":\"number\"}},\"required\":[\"p\"]},"
            "{\"properties\":{\"p\":{\"type\":\"integer\"},\"q\":{\"type\":\"string\"}},"
            "\"required\":[\"p\",\"q\"]}]}",
            "{\"type\": \"object\", \"properties\": {\"p\": {\"type\": \"integer\"}, \"q\": "
            "{\"type\": \"string\"}}, \"required\": [\"p\", \"q\"]}");
    /* One base that two members have in common. */
    becomes("{\"allOf\":[{\"$ref\":\"#/$defs/D\"},{\"allOf\":[{\"$ref\":\"#/$defs/D\"}]}]}",
            "{\"type\": \"string\", \"enum\": [\"a\", \"b\"]}");
    becomes("{\"allOf\":[{\"enum\":[\"a\",\"b\"]},{\"enum\":[\"b\",\"c\"]}]}",
            "{\"type\": \"string\", \"enum\": [\"b\"]}");
}

static void references(void **state)
{
    (void)state;
    becomes("{\"$ref\":\"#/$defs/D\",\"description\":\"d\"}",
            "{\"type\": \"string\", \"enum\": [\"a\", \"b\"], \"description\": \"d\"}");
    becomes("{\"$ref\":\"#/$defs/a~1b\"}", "{\"type\": \"boolean\"}");
    becomes("{\"$ref\":\"#/$defs/N\"}",
            "{\"type\": \"object\", \"properties\": {\"v\": {\"type\": \"integer\"}, \"next\": "
            "{\"type\": \"object\", \"nullable\": true, \"description\": \"Same form as N.\"}}}");
    becomes("{\"$ref\":\"#/$defs/M\"}",
            "{\"type\": \"object\", \"properties\": {\"o\": {\"type\": \"array\", \"items\": "
            "{\"type\": \"object\", \"description\": \"Same form as M.\"}}}}");
    becomes("{\"$ref\":\"#\"}",
            "{\"type\": \"object\", \"description\": \"Same form as the whole arguments.\"}");
    becomes("{\"$ref\":\"#/properties/x\"}",
            "{\"type\": \"any\", \"description\": \"Same form as x.\"}");
    becomes("{\"$ref\":\"https://e.org/s.json\"}",
            "{\"type\": \"any\", \"description\": \"Form: https://e.org/s.json.\"}");
    becomes("{\"$ref\":\"#/$defs/none\"}",
            "{\"type\": \"any\", \"description\": \"Form: #/$defs/none.\"}");
    becomes("{\"$ref\":5}", "{\"type\": \"any\", \"description\": \"Form: ?.\"}");
    becomes("{\"type\":\"array\",\"items\":{\"type\":\"array\",\"items\":{\"$ref\":"
            "\"#/$defs/D\"}}}",
            "{\"type\": \"array\", \"items\": {\"type\": \"array\", \"items\": {\"type\": "
            "\"string\", \"enum\": [\"a\", \"b\"]}}}");
}

static void arrays_and_open_objects(void **state)
{
    (void)state;
    becomes("{\"type\":\"array\",\"prefixItems\":[{\"type\":\"string\"},{\"type\":\"integer\"}]}",
            "{\"type\": \"array\", \"description\": \"Items in order: [string, integer].\"}");
    becomes("{\"type\":\"array\",\"items\":[{\"type\":\"string\"}]}",
            "{\"type\": \"array\", \"description\": \"Items in order: [string].\"}");
    becomes("{\"type\":\"array\",\"items\":true}", "{\"type\": \"array\"}");
    becomes("{\"type\":\"object\",\"additionalProperties\":{\"type\":\"integer\"}}",
            "{\"type\": \"object\", \"description\": \"Values: integer.\"}");
    becomes("{\"type\":\"object\",\"properties\":{\"a\":{\"type\":\"string\"}},"
            "\"patternProperties\":{\"^n_\":{\"type\":\"number\"}}}",
            "{\"type\": \"object\", \"properties\": {\"a\": {\"type\": \"string\"}}, "
            "\"description\": \"Keys like ^n_: number.\"}");
    /* Its title would be printed as a property. */
    becomes("{\"type\":\"object\",\"title\":\"T\"}", "{\"type\": \"object\"}");
    becomes("{\"type\":\"string\",\"required\":true}",
            "{\"type\": \"string\", \"description\": \"Required.\"}");
    becomes("{\"type\":\"array\",\"items\":{\"type\":[\"string\",\"array\"],\"items\":{\"$ref\":"
            "\"#/$defs/D\"}}}",
            "{\"type\": \"array\", \"items\": {\"type\": [\"string\", \"array\"], \"items\": "
            "{\"type\": \"string\", \"enum\": [\"a\", \"b\"]}}}");
}

/* {"tools": [{function: {name, REST}}]} becomes the same with WANT. */
static void function_becomes(const char *rest, const char *want)
{
    char request[2048], part[2048];

    snprintf(request, sizeof request,
             "{\"messages\":[],\"tools\":[{\"function\":{\"name\":\"f\"%s}}]}", rest);
    snprintf(part, sizeof part, "{\"name\": \"f\"%s}}]", want);
    test_maps(ct_openai_request, request, part);
}

static void whole_functions(void **state)
{
    (void)state;
    function_becomes(",\"description\":null", "");
    function_becomes(",\"parameters\":null", ", \"parameters\": null");
    function_becomes(",\"parameters\":{}", ", \"parameters\": {}");
    function_becomes(",\"parameters\":true", "");
    function_becomes(",\"parameters\":{\"properties\":{\"a\":{\"type\":\"string\"}}}",
                     ", \"parameters\": {\"properties\": {\"a\": {\"type\": \"string\"}}, "
                     "\"type\": \"object\"}");
    function_becomes(",\"description\":\"D\",\"parameters\":{\"anyOf\":[{\"type\":\"object\","
                     "\"properties\":{\"a\":{\"type\":\"string\"}}},{\"type\":\"object\"}]}",
                     ", \"description\": \"D. Arguments: {a?: string} | object.\", \"parameters\": "
                     "{\"properties\": {\"a\": {\"type\": \"string\"}}, \"type\": \"object\"}");
    function_becomes(",\"response\":{\"type\":\"string\"}",
                     ", \"description\": \"Returns: string.\"");
    function_becomes(",\"response\":null", "");
    function_becomes(",\"response\":{\"type\":\"object\",\"description\":\"r\"}",
                     ", \"response\": {\"type\": \"object\", \"description\": \"r\"}");
    test_refuses(ct_openai_request,
                 "{\"messages\":[],\"tools\":[{\"function\":{\"name\":\"f\",\"parameters\":{"
                 "\"type\":\"array\"}}}]}",
                 "tools[0].function.parameters.type: must be \"object\", not \"array\"");
    test_refuses(ct_openai_request,
                 "{\"messages\":[],\"tools\":[{\"function\":{\"name\":\"f\",\"parameters\":[]}}]}",
                 "tools[0].function.parameters: must be an object, not an array");
}

static size_t mapped_bytes(const ct_buf *parameters)
{
    ct_buf request, json;
    ct_error err;
    size_t n;

    ct_buf_init(&request, 1 << 20);
    ct_buf_init(&json, 16 << 20);
    ct_buf_addf(&request,
                "{\"messages\":[],\"tools\":[{\"function\":{\"name\":\"f\",\"parameters\":%s}}]}",
                parameters->p);
    test_ok(test_map(ct_openai_request, ct_buf_str(&request), &json, &err), &err);
    n = json.n;
    ct_buf_deinit(&request);
    ct_buf_deinit(&json);
    return n;
}

/* Each definition names the next one twice: 2^30 schemas if all were written out. */
static void doubling_references_are_bounded(void **state)
{
    ct_buf b;

    (void)state;
    ct_buf_init(&b, 1 << 16);
    ct_buf_addz(&b, "{\"type\":\"object\",\"properties\":{\"x\":{\"$ref\":\"#/$defs/D0\"}},"
                    "\"$defs\":{");
    for (int i = 0; i < 30; i++)
        ct_buf_addf(&b,
                    "\"D%d\":{\"type\":\"object\",\"properties\":{\"a\":{\"$ref\":\"#/$defs/D%d\"},"
                    "\"b\":{\"$ref\":\"#/$defs/D%d\"}}},",
                    i, i + 1, i + 1);
    ct_buf_addz(&b, "\"D30\":{\"type\":\"string\"}}}");
    assert_in_range(mapped_bytes(&b), 1000, 2 << 20);
    ct_buf_deinit(&b);
}

/* Unions within unions, whose notes would each hold all the others. */
static void nested_unions_are_bounded(void **state)
{
    ct_buf b;

    (void)state;
    ct_buf_init(&b, 1 << 16);
    ct_buf_addz(&b, "{\"type\":\"object\",\"properties\":{\"x\":");
    for (int i = 0; i < 30; i++)
        ct_buf_addz(&b, "{\"anyOf\":[{\"type\":\"string\"},{\"type\":\"object\",\"properties\":"
                        "{\"y\":");
    ct_buf_addz(&b, "{\"type\":\"integer\"}");
    for (int i = 0; i < 30; i++)
        ct_buf_addz(&b, "}}]}");
    ct_buf_addz(&b, "}}");
    assert_in_range(mapped_bytes(&b), 100, 1 << 20);
    ct_buf_deinit(&b);
}

static void deep_schemas_are_cut(void **state)
{
    ct_buf b;

    (void)state;
    ct_buf_init(&b, 1 << 16);
    ct_buf_addz(&b, "{\"properties\":{\"x\":");
    for (int i = 0; i < 55; i++)
        ct_buf_addz(&b, "{\"type\":\"object\",\"properties\":{\"y\":");
    ct_buf_addz(&b, "{}");
    for (int i = 0; i < 55; i++)
        ct_buf_addz(&b, "}}");
    ct_buf_addz(&b, "}}");
    assert_in_range(mapped_bytes(&b), 1000, 10000);
    ct_buf_deinit(&b);
}

/* The reader of arguments must see what the client declared. */
static void the_original_is_kept(void **state)
{
    const ct_value *body, *f;
    ct_chat_request r;
    ct_arena a = {0};
    ct_error err;

    (void)state;
    test_ok(ct_arena_init(&a, 1 << 20, &err), &err);
    test_ok(ct_value_parse(&body, "request",
                           CT_STR("{\"messages\":[],\"tools\":[{\"function\":{\"name\":\"f\","
                                  "\"parameters\":{\"properties\":{\"x\":{\"const\":1}}}}}]}"),
                           &a, &err),
            &err);
    test_ok(ct_openai_request(&r, body, &a, &err), &err);
    f = ct_value_get(&r.tools->u.list.item[0], "function");
    assert_null(ct_value_get(ct_value_get(f, "parameters"), "type"));
    ct_arena_deinit(&a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(within_reach_is_unchanged),
        cmocka_unit_test(types),
        cmocka_unit_test(values),
        cmocka_unit_test(unions),
        cmocka_unit_test(all_of),
        cmocka_unit_test(references),
        cmocka_unit_test(arrays_and_open_objects),
        cmocka_unit_test(whole_functions),
        cmocka_unit_test(doubling_references_are_bounded),
        cmocka_unit_test(nested_unions_are_bounded),
        cmocka_unit_test(deep_schemas_are_cut),
        cmocka_unit_test(the_original_is_kept),
    };

    return cmocka_run_group_tests_name("tool schema", tests, NULL, NULL);
}
