/* text/openai_messages: what becomes of each form, and what is refused with which path. */
#include "requests.h"

#include "text/openai_messages.h"

#define USER        "{\"role\":\"user\",\"content\":\"q\"}"
#define CALL(i)     "{\"id\":\"" i "\",\"type\":\"function\",\"function\":{\"name\":\"f\"}}"
#define CALLED      USER ",{\"role\":\"assistant\",\"tool_calls\":[" CALL("c") "]},"
#define MESSAGES(m) "{\"messages\":[" m "]}"
#define TOOLS(t)    "{\"messages\":[],\"tools\":[" t "]}"

static void maps(const char *messages, const char *part)
{
    char request[4096];

    snprintf(request, sizeof request, MESSAGES("%s"), messages);
    test_maps(ct_openai_request, request, part);
}

static void refuses(const char *messages, const char *error)
{
    char request[4096];

    snprintf(request, sizeof request, MESSAGES("%s"), messages);
    test_refuses(ct_openai_request, request, error);
}

static void content_forms(void **state)
{
    (void)state;
    maps(USER, "\"messages\": [{\"role\": \"user\", \"content\": \"q\"}], "
               "\"add_generation_prompt\": true}");
    /* One text part is that string, for every role. */
    maps("{\"role\":\"system\",\"content\":[{\"type\":\"text\",\"text\":\" x \"}]}",
         "{\"role\": \"system\", \"content\": \" x \"}");
    maps("{\"role\":\"user\",\"content\":[{\"type\":\"text\",\"text\":\"x\"}]}",
         "{\"role\": \"user\", \"content\": \"x\"}");
    maps("{\"role\":\"assistant\",\"content\":[{\"type\":\"text\",\"text\":\"x\"}]}",
         "{\"role\": \"assistant\", \"content\": \"x\"}");
    maps(CALLED "{\"role\":\"tool\",\"tool_call_id\":\"c\",\"content\":"
                "[{\"type\":\"text\",\"text\":\"x\"}]}",
         "\"tool_call_id\": \"c\", \"content\": \"x\"}");
    maps("{\"role\":\"user\",\"content\":[]}", "\"content\": \"\"");
    maps("{\"role\":\"user\",\"content\":[{\"type\":\"text\",\"text\":\"a\",\"cache_control\":{}},"
         "{\"type\":\"text\",\"text\":\"b\"}]}",
         "\"content\": [{\"type\": \"text\", \"text\": \"a\"}, "
         "{\"type\": \"text\", \"text\": \"b\"}]");
    maps("{\"role\":\"developer\",\"content\":\"d\"}", "\"role\": \"system\", \"content\": \"d\"");
    maps("{\"role\":\"user\",\"content\":\"\\ud800\"}", "\"content\": \"\xef\xbf\xbd\"");
    maps("{\"role\":\"user\",\"name\":\"Ann\",\"content\":\"q\"}", "\"content\": \"q\"}");
}

static void assistant_forms(void **state)
{
    (void)state;
    maps("{\"role\":\"assistant\",\"content\":null,\"refusal\":\"No.\",\"audio\":null,"
         "\"function_call\":null,\"annotations\":[]}",
         "{\"role\": \"assistant\", \"content\": \"No.\"}");
    maps("{\"role\":\"assistant\",\"content\":[{\"type\":\"refusal\",\"refusal\":\"No.\"}]}",
         "\"content\": \"No.\"");
    maps("{\"role\":\"assistant\",\"reasoning\":\"r\",\"reasoning_content\":\"r\"}",
         "{\"role\": \"assistant\", \"reasoning_content\": \"r\"}");
    maps("{\"role\":\"assistant\",\"reasoning\":\"\",\"reasoning_content\":null}",
         "[{\"role\": \"assistant\"}]");
    maps("{\"role\":\"assistant\",\"tool_calls\":[]}", "[{\"role\": \"assistant\"}]");
    refuses("{\"role\":\"assistant\",\"reasoning\":\"r\",\"reasoning_content\":\"s\"}",
            "messages[0].reasoning_content: differs from reasoning");
    refuses("{\"role\":\"assistant\",\"content\":\"a\",\"refusal\":\"b\"}",
            "messages[0].refusal: beside content, only one of them can be sent");
    refuses("{\"role\":\"assistant\",\"audio\":{\"id\":\"x\"}}",
            "messages[0].audio: only text is supported");
    refuses("{\"role\":\"assistant\",\"function_call\":{}}",
            "messages[0].function_call: not supported, send tool_calls");
    refuses("{\"role\":\"assistant\",\"prefix\":true}", "messages[0].prefix: unknown field");
}

static void call_arguments(const char *arguments, const char *part)
{
    char message[1024];

    snprintf(message, sizeof message,
             USER ",{\"role\":\"assistant\",\"tool_calls\":[{\"id\":\"c\",\"type\":\"function\","
                  "\"function\":{\"name\":\"f\",\"arguments\":%s}}]}",
             arguments);
    maps(message, part);
}

static void arguments_are_parsed(void **state)
{
    (void)state;
    call_arguments("\"{\\\"a\\\":1,\\\"b\\\":1.0,\\\"c\\\":123456789012345678901234567890}\"",
                   "\"arguments\": {\"a\": 1, \"b\": 1.0, \"c\": 123456789012345678901234567890}");
    call_arguments("{\"a\":[1,{\"b\":null}]}", "\"arguments\": {\"a\": [1, {\"b\": null}]}");
    call_arguments("\"\"", "\"arguments\": {}");
    call_arguments("\" \\n\"", "\"arguments\": {}");
    call_arguments("null", "\"arguments\": {}");
    call_arguments("\"null\"", "\"arguments\": {}");
    call_arguments("\"{\\\"a\\\":\\\"\\\\ud800\\\"}\"", "{\"a\": \"\xef\xbf\xbd\"}");
}

static void wrong_calls(const char *calls, const char *error)
{
    char message[1024], text[1024];

    snprintf(message, sizeof message, USER ",{\"role\":\"assistant\",\"tool_calls\":%s}", calls);
    snprintf(text, sizeof text, "messages[1].%s", error);
    refuses(message, text);
}

static void wrong_calls_name_the_path(void **state)
{
    (void)state;
    wrong_calls("[{\"function\":{\"name\":\"f\",\"arguments\":\"{\\\"a\\\":}\"}}]",
                "tool_calls[0].function.arguments: not a JSON object: arguments: JSON, byte 5: "
                "expected a value");
    wrong_calls("[{\"function\":{\"name\":\"f\",\"arguments\":\"[1]\"}}]",
                "tool_calls[0].function.arguments: not a JSON object: an array");
    wrong_calls("[{\"function\":{\"name\":\"f\",\"arguments\":7}}]",
                "tool_calls[0].function.arguments: not a JSON object: a number");
    wrong_calls("{}", "tool_calls: must be an array, not an object");
    wrong_calls("[1]", "tool_calls[0]: must be an object, not a number");
    wrong_calls("[{\"type\":\"custom\"}]",
                "tool_calls[0].type: 'custom' is not supported, only 'function'");
    wrong_calls("[{}]", "tool_calls[0].function: is missing");
    wrong_calls("[{\"function\":{}}]", "tool_calls[0].function.name: is missing");
    wrong_calls("[{\"function\":{\"name\":\"\"}}]",
                "tool_calls[0].function.name: has 0 bytes, must have 1 to 256");
    wrong_calls("[{\"function\":{\"name\":\"a{\"}}]",
                "tool_calls[0].function.name: byte 1: a name has no blanks, brackets, quotes or "
                "commas");
    wrong_calls("[{\"id\":3,\"function\":{\"name\":\"f\"}}]",
                "tool_calls[0].id: must be a string, not a number");
    wrong_calls("[" CALL("c") "," CALL("d") "," CALL("c") "]",
                "tool_calls[2].id: 'c' is tool_calls[0]'s too");
}

/* The template prints results only behind their calls; others would vanish. */
static void tool_results_are_not_lost(void **state)
{
    (void)state;
    maps(CALLED "{\"role\":\"tool\",\"tool_call_id\":\"c\",\"content\":\"r\"}",
         "{\"role\": \"tool\", \"tool_call_id\": \"c\", \"content\": \"r\"}");
    maps(CALLED "{\"role\":\"tool\",\"name\":\"f\",\"content\":null}",
         "{\"role\": \"tool\", \"name\": \"f\", \"content\": null}");
    maps(CALLED "{\"role\":\"tool\",\"tool_call_id\":\"c\",\"content\":3.5}", "\"content\": 3.5");
    refuses(USER ",{\"role\":\"tool\",\"tool_call_id\":\"c\",\"content\":\"r\"}",
            "messages[1].tool_call_id: a tool result must follow an assistant message with tool "
            "calls");
    refuses(CALLED USER ",{\"role\":\"tool\",\"tool_call_id\":\"c\",\"content\":\"r\"}",
            "messages[3].tool_call_id: a tool result must follow an assistant message with tool "
            "calls");
    refuses(CALLED "{\"role\":\"tool\",\"content\":\"r\"}",
            "messages[2].tool_call_id: has neither tool_call_id nor name");
    refuses(CALLED "{\"role\":\"tool\",\"tool_call_id\":\"d\",\"content\":\"r\"}",
            "messages[2].tool_call_id: 'd' is the id of none of the 1 calls before it, and there "
            "is no name");
    refuses(CALLED "{\"role\":\"tool\",\"tool_call_id\":\"c\"}", "messages[2].content: is missing");
    refuses(CALLED "{\"role\":\"tool\",\"tool_call_id\":\"c\",\"content\":{}}",
            "messages[2].content: must be a string (of JSON, if so wanted) or text parts, not an "
            "object");
    refuses(CALLED "{\"role\":\"tool\",\"tool_call_id\":7,\"content\":\"r\"}",
            "messages[2].tool_call_id: must be a string, not a number");
}

static void wrong_messages_name_the_path(void **state)
{
    (void)state;
    test_refuses(ct_openai_request, "[]", "request: must be an object, not an array");
    test_refuses(ct_openai_request, "{}", "messages: is missing");
    test_refuses(ct_openai_request, "{\"messages\":{}}",
                 "messages: must be an array, not an object");
    refuses("1", "messages[0]: must be an object, not a number");
    refuses("{}", "messages[0].role: is missing");
    refuses("{\"role\":\"critic\",\"content\":\"x\"}",
            "messages[0].role: 'critic' is not system, developer, user, assistant or tool");
    refuses("{\"role\":\"user\"}", "messages[0].content: is missing");
    refuses("{\"role\":\"user\",\"content\":null}",
            "messages[0].content: must be a string or an array of text parts, not null");
    refuses("{\"role\":\"user\",\"content\":[\"x\"]}",
            "messages[0].content[0]: must be an object, not a string");
    refuses("{\"role\":\"user\",\"content\":[{}]}", "messages[0].content[0].type: is missing");
    refuses("{\"role\":\"user\",\"content\":[{\"type\":\"text\"}]}",
            "messages[0].content[0].text: is missing");
    refuses(USER ",{\"role\":\"user\",\"content\":[{\"type\":\"text\",\"text\":\"a\"},"
                 "{\"type\":\"input_audio\"}]}",
            "messages[1].content[1].type: 'input_audio' is not supported, only text");
    refuses("{\"role\":\"user\",\"content\":\"ab<|image|>\"}",
            "messages[0].content: byte 2: the control token <|image|> belongs to images, audio or "
            "video; only text is supported");
    refuses(USER ",{\"role\":\"assistant\",\"tool_calls\":[{\"function\":{\"name\":\"f\","
                 "\"arguments\":\"{\\\"a\\\":[\\\"<audio|>\\\"]}\"}}]}",
            "messages[1].tool_calls[0].function.arguments: byte 0: the control token <audio|> "
            "belongs to images, audio or video; only text is supported");
    maps("{\"role\":\"user\",\"content\":\"<image> <|turn> <\"}", "<image> <|turn> <");
}

static void options_are_typed(void **state)
{
    (void)state;
    test_maps(ct_openai_request,
              "{\"messages\":[],\"chat_template_kwargs\":{\"enable_thinking\":true,"
              "\"preserve_thinking\":false},\"add_generation_prompt\":false,\"model\":\"m\"}",
              "{\"messages\": [], \"add_generation_prompt\": false, \"enable_thinking\": true, "
              "\"preserve_thinking\": false}");
    test_refuses(ct_openai_request,
                 "{\"messages\":[],\"chat_template_kwargs\":{\"tokenize\":true}}",
                 "chat_template_kwargs.tokenize: unknown field");
    test_refuses(ct_openai_request,
                 "{\"messages\":[],\"chat_template_kwargs\":{\"enable_thinking\":\"no\"}}",
                 "chat_template_kwargs.enable_thinking: must be a boolean, not a string");
    test_refuses(ct_openai_request, "{\"messages\":[],\"chat_template_kwargs\":[]}",
                 "chat_template_kwargs: must be an object, not an array");
    test_refuses(ct_openai_request, "{\"messages\":[],\"enable_thinking\":1}",
                 "enable_thinking: must be a boolean, not a number");
}

#define TOOL(name) "{\"type\":\"function\",\"function\":{\"name\":\"" name "\"}}"

static void tools_are_checked(void **state)
{
    (void)state;
    test_maps(ct_openai_request, TOOLS(TOOL("a:b-c.d")), "\"name\": \"a:b-c.d\"");
    test_refuses(ct_openai_request, TOOLS("{\"type\":\"web_search\"}"),
                 "tools[0].type: 'web_search' is not supported, only 'function'");
    test_refuses(ct_openai_request, TOOLS(TOOL("a") ",1"),
                 "tools[1]: must be an object, not a number");
    test_refuses(ct_openai_request, TOOLS("{\"type\":\"function\",\"name\":\"a\"}"),
                 "tools[0].function: is missing");
    test_refuses(ct_openai_request, TOOLS("{\"function\":{}}"),
                 "tools[0].function.name: is missing");
    test_refuses(ct_openai_request, TOOLS("{\"function\":{\"name\":\"a\",\"description\":1}}"),
                 "tools[0].function.description: must be a string, not a number");
    test_refuses(ct_openai_request, TOOLS(TOOL("a") "," TOOL("b") "," TOOL("a")),
                 "tools[2].function.name: 'a' is the name of tools[0] too");
    test_refuses(ct_openai_request, "{\"messages\":[],\"tools\":{}}",
                 "tools: must be an array, not an object");
    test_refuses(ct_openai_request, "{\"messages\":[],\"functions\":[]}",
                 "functions: not supported, send tools");
}

static void tool_choice_is_checked(void **state)
{
    (void)state;
    test_maps(ct_openai_request,
              "{\"messages\":[],\"tools\":[" TOOL("a") "],\"tool_choice\":{\"type\":\"function\","
                                                       "\"function\":{\"name\":\"a\"}}}",
              "\"a\"");
    test_refuses(ct_openai_request,
                 "{\"messages\":[],\"tools\":[" TOOL("a") "],\"tool_choice\":{\"type\":"
                                                          "\"function\",\"function\":{\"name\":"
                                                          "\"b\"}}}",
                 "tool_choice.function.name: no tool 'b' is declared");
    test_refuses(ct_openai_request, "{\"messages\":[],\"tool_choice\":\"any\"}",
                 "tool_choice: 'any' is not none, auto or required");
    test_refuses(ct_openai_request, "{\"messages\":[],\"tool_choice\":1}",
                 "tool_choice: must be a string or an object, not a number");
}

/* A request of n messages, or of one message of n parts. */
static ct_status many(size_t n, const char *before, const char *item, const char *after,
                      ct_error *err)
{
    ct_buf request, json;
    ct_status st;

    ct_buf_init(&request, 64 << 20);
    ct_buf_init(&json, 64 << 20);
    ct_buf_addz(&request, before);
    for (size_t i = 0; i < n; i++) {
        ct_buf_addz(&request, i ? "," : "");
        ct_buf_addz(&request, item);
    }
    ct_buf_addz(&request, after);
    assert_false(request.failed);
    st = test_map(ct_openai_request, ct_buf_str(&request), &json, err);
    ct_buf_deinit(&request);
    ct_buf_deinit(&json);
    return st;
}

static void counts_are_bounded(void **state)
{
    ct_error err;

    (void)state;
    assert_int_equal(many(CT_CHAT_MAX_MESSAGES, "{\"messages\":[", USER, "]}", &err), CT_OK);
    assert_int_equal(many(CT_CHAT_MAX_MESSAGES + 1, "{\"messages\":[", USER, "]}", &err),
                     CT_ELIMIT);
    assert_string_equal(err.text, "messages: 16385 messages, at most 16384");
    assert_int_equal(many(CT_CHAT_MAX_PARTS + 1, "{\"messages\":[{\"role\":\"user\",\"content\":[",
                          "{\"type\":\"text\",\"text\":\"\"}", "]}]}", &err),
                     CT_ELIMIT);
    assert_string_equal(err.text, "messages[0].content: 4097 parts, at most 4096");
    assert_int_equal(
        many(CT_CHAT_MAX_TOOLS + 1, "{\"messages\":[],\"tools\":[", TOOL("a"), "]}", &err),
        CT_ELIMIT);
    assert_int_equal(many(CT_CHAT_MAX_CALLS + 1,
                          "{\"messages\":[{\"role\":\"assistant\",\"tool_calls\":[", CALL("a"),
                          "]}]}", &err),
                     CT_ELIMIT);
}

static void texts_are_bounded_together(void **state)
{
    ct_chat_builder b = {0};
    ct_error err;
    char *text = calloc(1, CT_CHAT_MAX_TEXT_BYTES);

    (void)state;
    assert_non_null(text);
    test_ok(ct_chat_check_text(&b, (ct_str){text, CT_CHAT_MAX_TEXT_BYTES}, &err), &err);
    assert_int_equal(ct_chat_check_text(&b, CT_STR("x"), &err), CT_ELIMIT);
    assert_string_equal(err.text, "the request's texts exceed 33554432 bytes");
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(content_forms),
        cmocka_unit_test(assistant_forms),
        cmocka_unit_test(arguments_are_parsed),
        cmocka_unit_test(wrong_calls_name_the_path),
        cmocka_unit_test(tool_results_are_not_lost),
        cmocka_unit_test(wrong_messages_name_the_path),
        cmocka_unit_test(options_are_typed),
        cmocka_unit_test(tools_are_checked),
        cmocka_unit_test(tool_choice_is_checked),
        cmocka_unit_test(counts_are_bounded),
        cmocka_unit_test(texts_are_bounded_together),
    };

    return cmocka_run_group_tests_name("openai messages", tests, NULL, NULL);
}
