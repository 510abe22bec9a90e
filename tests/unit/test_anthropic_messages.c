/* text/anthropic_messages: blocks on the same structure, and what is refused. */
#include "requests.h"

#include "text/anthropic_messages.h"

#define USER "{\"role\":\"user\",\"content\":\"q\"}"
#define CALLED                                                                                     \
    USER ",{\"role\":\"assistant\",\"content\":[{\"type\":\"tool_use\",\"id\":\"c\",\"name\":"     \
         "\"f\",\"input\":{\"a\":1.0}}]},"
#define RESULT(rest)                                                                               \
    CALLED "{\"role\":\"user\",\"content\":[{\"type\":\"tool_result\",\"tool_use_id\":\"c\"" rest  \
           "]}"

static void maps(const char *messages, const char *part)
{
    char request[4096];

    snprintf(request, sizeof request, "{\"messages\":[%s]}", messages);
    test_maps(ct_anthropic_request, request, part);
}

static void refuses(const char *messages, const char *error)
{
    char request[4096];

    snprintf(request, sizeof request, "{\"messages\":[%s]}", messages);
    test_refuses(ct_anthropic_request, request, error);
}

static void system_text(void **state)
{
    (void)state;
    test_maps(ct_anthropic_request, "{\"system\":\"s\",\"messages\":[" USER "]}",
              "[{\"role\": \"system\", \"content\": \"s\"}, {\"role\": \"user\"");
    test_maps(ct_anthropic_request,
              "{\"system\":[{\"type\":\"text\",\"text\":\"s\",\"cache_control\":{}}],"
              "\"messages\":[]}",
              "[{\"role\": \"system\", \"content\": \"s\"}]");
    test_maps(ct_anthropic_request,
              "{\"system\":[{\"type\":\"text\",\"text\":\"s\"},{\"type\":\"text\",\"text\":\"t\"}],"
              "\"messages\":[]}",
              "\"content\": [{\"type\": \"text\", \"text\": \"s\"}, {\"type\": \"text\", \"text\": "
              "\"t\"}]");
    test_maps(ct_anthropic_request, "{\"system\":[],\"messages\":[]}", "\"messages\": []");
    test_refuses(ct_anthropic_request, "{\"system\":[{\"type\":\"image\"}],\"messages\":[]}",
                 "system[0].type: 'image' is not supported here, only text");
    test_refuses(ct_anthropic_request, "{\"system\":1,\"messages\":[]}",
                 "system: must be a string or an array of text blocks, not a number");
}

static void assistant_blocks(void **state)
{
    (void)state;
    maps("{\"role\":\"assistant\",\"content\":[{\"type\":\"thinking\",\"thinking\":\"t1\","
         "\"signature\":\"x\"},{\"type\":\"redacted_thinking\",\"data\":\"zz\"},"
         "{\"type\":\"thinking\",\"thinking\":\"t2\"},{\"type\":\"text\",\"text\":\"a\"},"
         "{\"type\":\"tool_use\",\"id\":\"c\",\"name\":\"f\",\"input\":{\"k\":[1]}}]}",
         "{\"role\": \"assistant\", \"content\": \"a\", \"reasoning_content\": \"t1\\nt2\", "
         "\"tool_calls\": [{\"type\": \"function\", \"function\": {\"name\": \"f\", "
         "\"arguments\": {\"k\": [1]}}, \"id\": \"c\"}]}");
    maps("{\"role\":\"assistant\",\"content\":\"a\"}",
         "{\"role\": \"assistant\", \"content\": \"a\"}");
    refuses("{\"role\":\"assistant\",\"content\":[{\"type\":\"server_tool_use\"}]}",
            "messages[0].content[0].type: 'server_tool_use' is not supported here, only text, "
            "tool_use, thinking and redacted_thinking");
    refuses("{\"role\":\"assistant\",\"content\":[{\"type\":\"tool_use\",\"id\":\"c\","
            "\"name\":\"f\",\"input\":\"{}\"}]}",
            "messages[0].content[0].input: must be an object, not a string");
    refuses("{\"role\":\"assistant\",\"content\":[{\"type\":\"tool_use\",\"name\":\"f\"}]}",
            "messages[0].content[0].id: is missing");
    refuses("{\"role\":\"assistant\",\"content\":[{\"type\":\"tool_use\",\"id\":\"c\","
            "\"name\":\"f\"},{\"type\":\"tool_use\",\"id\":\"c\",\"name\":\"f\"}]}",
            "messages[0].content[1].id: 'c' is another call's too");
}

static void tool_results(void **state)
{
    (void)state;
    maps(RESULT(",\"content\":\"r\"}"),
         "{\"role\": \"tool\", \"tool_call_id\": \"c\", \"content\": \"r\"}], \"add");
    maps(RESULT("}"), "\"tool_call_id\": \"c\", \"content\": \"\"}]");
    maps(RESULT(",\"content\":[{\"type\":\"text\",\"text\":\"r\"},{\"type\":\"text\",\"text\":"
                "\"s\"}]}"),
         "\"content\": \"rs\"}]");
    maps(RESULT(",\"is_error\":true,\"content\":\"r\"}"), "\"content\": \"Error: r\"}]");
    /* The user's text follows the results, wherever it stood. */
    maps(RESULT(",\"content\":\"r\"},{\"type\":\"text\",\"text\":\"go\"}"),
         "\"content\": \"r\"}, {\"role\": \"user\", \"content\": \"go\"}]");
    refuses(RESULT(",\"content\":[{\"type\":\"image\"}]}"),
            "messages[2].content[0].content[0].type: 'image' is not supported here, only text");
    refuses(RESULT(",\"content\":1}"),
            "messages[2].content[0].content: must be a string, not a number");
    refuses(USER ",{\"role\":\"user\",\"content\":[{\"type\":\"tool_result\",\"tool_use_id\":"
                 "\"c\"}]}",
            "messages[1].content[0].tool_use_id: a tool result must follow an assistant message "
            "with tool calls");
    refuses(CALLED "{\"role\":\"user\",\"content\":[{\"type\":\"tool_result\",\"tool_use_id\":"
                   "\"d\"}]}",
            "messages[2].content[0].tool_use_id: 'd' is the id of none of the 1 calls before it, "
            "and there is no name");
}

static void wrong_messages_name_the_path(void **state)
{
    (void)state;
    test_refuses(ct_anthropic_request, "{}", "messages: is missing");
    refuses("{\"role\":\"system\",\"content\":\"x\"}",
            "messages[0].role: 'system' is not user or assistant");
    refuses("1", "messages[0]: must be an object, not a number");
    refuses("{\"role\":\"user\",\"content\":[1]}",
            "messages[0].content[0]: must be an object, not a number");
    refuses("{\"role\":\"user\"}", "messages[0].content: is missing");
    refuses("{\"role\":\"user\",\"content\":[{\"type\":\"document\"}]}",
            "messages[0].content[0].type: 'document' is not supported here, only text and "
            "tool_result");
    refuses("{\"role\":\"user\",\"content\":\"<|video|>\"}",
            "messages[0].content: byte 0: the control token <|video|> belongs to images, audio or "
            "video; only text is supported");
    refuses("{\"role\":\"user\",\"content\":\"x\",\"tools\":[]}",
            "messages[0].tools: unknown field");
}

static void tools_and_options(void **state)
{
    (void)state;
    test_maps(ct_anthropic_request,
              "{\"messages\":[],\"tools\":[{\"name\":\"f\",\"description\":\"D\",\"input_schema\":"
              "{\"type\":\"object\"}}],\"thinking\":{\"type\":\"enabled\",\"budget_tokens\":1024}}",
              "\"tools\": [{\"type\": \"function\", \"function\": {\"name\": \"f\", "
              "\"description\": \"D\", \"parameters\": {\"type\": \"object\"}}}], "
              "\"add_generation_prompt\": true, \"enable_thinking\": true}");
    test_maps(ct_anthropic_request, "{\"messages\":[],\"thinking\":{\"type\":\"disabled\"}}",
              "\"enable_thinking\": false");
    test_refuses(ct_anthropic_request, "{\"messages\":[],\"tools\":[{\"type\":\"bash_20250124\"}]}",
                 "tools[0].type: 'bash_20250124' is not supported here, only 'custom'");
    test_refuses(ct_anthropic_request, "{\"messages\":[],\"tools\":[{\"name\":\"f\"}]}",
                 "tools[0].input_schema: is missing");
    test_refuses(ct_anthropic_request,
                 "{\"messages\":[],\"tools\":[{\"name\":\"f\",\"input_schema\":{\"type\":"
                 "\"string\"}}]}",
                 "tools[0].input_schema.type: must be \"object\", not \"string\"");
    test_refuses(ct_anthropic_request, "{\"messages\":[],\"thinking\":{\"type\":\"max\"}}",
                 "thinking.type: must be enabled, adaptive or disabled");
    test_refuses(ct_anthropic_request,
                 "{\"messages\":[],\"tool_choice\":{\"type\":\"tool\","
                 "\"name\":\"f\"}}",
                 "tool_choice.name: no tool 'f' is declared");
}

static void choice_is(const char *choice, const char *want)
{
    const ct_value *body;
    ct_chat_request r;
    char request[512];
    ct_arena a = {0};
    ct_error err;
    ct_op_error e;
    ct_buf json;

    snprintf(request, sizeof request,
             "{\"messages\":[],\"tools\":[{\"name\":\"f\",\"input_schema\":{}}],"
             "\"tool_choice\":%s}",
             choice);
    test_ok(ct_arena_init(&a, 1 << 20, &err), &err);
    test_ok(ct_value_parse(&body, "request", ct_str_of(request), &a, &err), &err);
    test_ok(ct_anthropic_request(&r, body, &a, &err), &err);
    ct_buf_init(&json, 1000);
    assert_true(ct_value_put_json(&json, r.tool_choice, -1, &e));
    assert_string_equal(json.p, want);
    ct_buf_deinit(&json);
    ct_arena_deinit(&a);
}

static void tool_choice_has_the_other_api_s_form(void **state)
{
    (void)state;
    choice_is("{\"type\":\"auto\"}", "\"auto\"");
    choice_is("{\"type\":\"any\"}", "\"required\"");
    choice_is("{\"type\":\"none\"}", "\"none\"");
    choice_is("{\"type\":\"tool\",\"name\":\"f\"}",
              "{\"type\": \"function\", \"function\": {\"name\": \"f\"}}");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(system_text),       cmocka_unit_test(assistant_blocks),
        cmocka_unit_test(tool_results),      cmocka_unit_test(wrong_messages_name_the_path),
        cmocka_unit_test(tools_and_options), cmocka_unit_test(tool_choice_has_the_other_api_s_form),
    };

    return cmocka_run_group_tests_name("anthropic messages", tests, NULL, NULL);
}
