/* text/chat: what a request may hold, and where the template comes from. */
#include "support.h"

#include <string.h>
#include <sys/stat.h>

#include "text/chat.h"

#define TEMPLATE                                                                                   \
    "{{ bos_token }}{{ messages | length }}{{ tools is defined }}{{ add_generation_prompt }}"      \
    "{{ enable_thinking | default('unset') }}"

static ct_status render(const char *request, ct_buf *out, ct_error *err)
{
    const ct_value *v;
    ct_jinja *j;
    ct_arena a = {0};
    ct_status st;

    test_ok(ct_jinja_compile(&j, "t", CT_STR(TEMPLATE), err), err);
    test_ok(ct_arena_init(&a, 1 << 20, err), err);
    test_ok(ct_value_parse(&v, "request", ct_str_of(request), &a, err), err);
    st = ct_chat_render(j, CT_STR("<B>"), v, &a, out, err);
    ct_arena_deinit(&a);
    ct_jinja_destroy(j);
    return st;
}

static void expect(const char *request, const char *text)
{
    ct_error err;
    ct_buf out;

    ct_buf_init(&out, 1000);
    test_ok(render(request, &out, &err), &err);
    assert_string_equal(out.p, text);
    ct_buf_deinit(&out);
}

static void refuse(const char *request, const char *message)
{
    ct_error err;
    ct_buf out;

    ct_buf_init(&out, 1000);
    assert_int_not_equal(render(request, &out, &err), CT_OK);
    assert_string_equal(err.text, message);
    ct_buf_deinit(&out);
}

static void null_options_are_not_passed(void **state)
{
    (void)state;
    expect("{\"messages\":[]}", "<B>0FalseFalseunset");
    expect("{\"messages\":[],\"tools\":null,\"add_generation_prompt\":null,"
           "\"enable_thinking\":null,\"preserve_thinking\":null}",
           "<B>0FalseFalseunset");
    expect("{\"messages\":[{\"role\":\"user\"}],\"tools\":[],\"add_generation_prompt\":true,"
           "\"enable_thinking\":false}",
           "<B>1TrueTrueFalse");
}

static void wrong_requests_name_the_path(void **state)
{
    (void)state;
    refuse("[]", "request: must be an object, not an array");
    refuse("{}", "messages: is missing");
    refuse("{\"messages\":null}", "messages: must be an array, not null");
    refuse("{\"messages\":[],\"tools\":{}}", "tools: must be an array, not an object");
    refuse("{\"messages\":[],\"enable_thinking\":1}",
           "enable_thinking: must be a boolean, not a number");
    refuse("{\"messages\":[],\"tokenize\":true}", "unknown request key 'tokenize'");
    refuse("{\"messages\":[{\"role\":\"user\"},1]}",
           "messages[1]: must be an object, not a number");
    refuse("{\"messages\":[{\"role\":\"user\"},{\"role\":4}]}",
           "messages[1].role: must be a string, not a number");
    refuse("{\"messages\":[{}]}", "messages[0].role: is missing");
    refuse("{\"messages\":[{\"role\":\"a\",\"tool_calls\":\"x\"}]}",
           "messages[0].tool_calls: must be an array, not a string");
    refuse("{\"messages\":[],\"tools\":[\"x\"]}", "tools[0]: must be an object, not a string");
}

static void write_file(const char *dir, const char *name, const char *text)
{
    char path[256];
    FILE *f;

    snprintf(path, sizeof path, "%s/%s", dir, name);
    f = fopen(path, "w");
    assert_non_null(f);
    fputs(text, f);
    fclose(f);
}

static void expect_open(const char *dir, const char *bos)
{
    ct_chat_template t;
    ct_error err;

    test_ok(ct_chat_template_open(&t, dir, NULL, &err), &err);
    assert_string_equal(t.bos.p, bos);
    ct_chat_template_close(&t);
}

static void template_of_a_directory(void **state)
{
    char dir[] = "/tmp/carat-test-XXXXXX", path[64];
    ct_chat_template t;
    ct_error err;

    (void)state;
    assert_non_null(mkdtemp(dir));
    assert_int_not_equal(ct_chat_template_open(&t, dir, NULL, &err), CT_OK);
    write_file(dir, "tokenizer_config.json",
               "{\"bos_token\":{\"content\":\"<s>\"},\"chat_template\":\"x\"}");
    expect_open(dir, "<s>");
    write_file(dir, "tokenizer_config.json", "{\"bos_token\":\"<b>\"}");
    assert_int_not_equal(ct_chat_template_open(&t, dir, NULL, &err), CT_OK);
    write_file(dir, "chat_template.jinja", "{{ nope() }}");
    assert_int_not_equal(ct_chat_template_open(&t, dir, NULL, &err), CT_OK);
    assert_string_equal(err.text, "chat_template.jinja:1: unknown function 'nope'");
    write_file(dir, "chat_template.jinja", "{{ bos_token }}");
    expect_open(dir, "<b>");
    snprintf(path, sizeof path, "%s/tokenizer_config.json", dir);
    unlink(path);
    expect_open(dir, "<bos>");
    snprintf(path, sizeof path, "%s/chat_template.jinja", dir);
    unlink(path);
    rmdir(dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(null_options_are_not_passed),
        cmocka_unit_test(wrong_requests_name_the_path),
        cmocka_unit_test(template_of_a_directory),
    };

    return cmocka_run_group_tests_name("chat", tests, NULL, NULL);
}
