/* The golden conversations as clients send them: OpenAI's and Anthropic's forms give the
 * renderings that the template gives for its own. */
#include "support.h"

#include <string.h>

#include "base/checked.h"
#include "base/map.h"
#include "text/anthropic_messages.h"
#include "text/chat.h"
#include "text/openai_messages.h"
#include "text/value_ops.h"

#define ARENA_BYTES ((size_t)256 << 20)
#define MAX_LINES   200

static ct_arena arena;
static ct_jinja *template;
static const ct_value *line[MAX_LINES];
static size_t n_lines;

static ct_value object(const ct_map_entry *entry, size_t n)
{
    ct_map_entry *e = ct_arena_zalloc(&arena, n, sizeof *e);
    ct_value v;

    assert_non_null(e);
    if (n)
        memcpy(e, entry, n * sizeof *e);
    assert_true(ct_value_build_map(&v, e, n, &arena));
    return v;
}
#define OBJECT(...)                                                                                \
    object((ct_map_entry[]){__VA_ARGS__},                                                          \
           sizeof((ct_map_entry[]){__VA_ARGS__}) / sizeof(ct_map_entry))

static ct_value string(const char *z)
{
    return ct_value_str(ct_str_of(z));
}

static void with(ct_value *map, const char *key, ct_value v)
{
    assert_true(ct_value_with(map, map, ct_str_of(key), &v, &arena));
}

static ct_value *items(size_t n)
{
    ct_value *item = ct_arena_zalloc(&arena, n, sizeof *item);

    assert_non_null(item);
    return item;
}

static bool named(const ct_value *l, const char *name)
{
    return ct_str_is(ct_value_text(ct_value_get(l, "name")), name);
}

static bool is_role(const ct_value *m, const char *role)
{
    return ct_str_is(ct_value_text(ct_value_get(m, "role")), role);
}

static ct_value options_of(const ct_value *l)
{
    static const char *const keys[] = {"add_generation_prompt", "enable_thinking",
                                       "preserve_thinking"};
    ct_value out = object(NULL, 0);

    for (size_t i = 0; i < CT_LEN(keys); i++)
        if (ct_value_get(l, keys[i]))
            with(&out, keys[i], *ct_value_get(l, keys[i]));
    return out;
}

/* ---- OpenAI ---- */

static ct_value json_string(const ct_value *v)
{
    ct_op_error e;
    ct_buf b;
    ct_value out;

    ct_buf_init(&b, 1 << 20);
    assert_true(ct_value_put_json(&b, v, -1, &e));
    out = ct_value_str((ct_str){ct_arena_copy(&arena, b.p, b.n), b.n});
    ct_buf_deinit(&b);
    return out;
}

static ct_value openai_calls(const ct_value *calls)
{
    ct_value *item = items(calls->u.list.n);

    for (size_t i = 0; i < calls->u.list.n; i++) {
        ct_value f = *ct_value_get(&calls->u.list.item[i], "function");
        const ct_value *args = ct_value_get(&f, "arguments");

        if (args && args->kind == CT_VALUE_MAP)
            with(&f, "arguments", json_string(args));
        item[i] = calls->u.list.item[i];
        with(&item[i], "function", f);
    }
    return ct_value_list(item, calls->u.list.n, CT_LIST_LIST);
}

static ct_value openai_body(const ct_value *l)
{
    const ct_value *messages = ct_value_get(l, "messages"), *tools = ct_value_get(l, "tools");
    ct_value *item = items(messages->u.list.n), body = options_of(l);

    for (size_t i = 0; i < messages->u.list.n; i++) {
        const ct_value *calls = ct_value_get(&messages->u.list.item[i], "tool_calls");

        item[i] = messages->u.list.item[i];
        if (calls)
            with(&item[i], "tool_calls", openai_calls(calls));
    }
    with(&body, "messages", ct_value_list(item, messages->u.list.n, CT_LIST_LIST));
    if (tools)
        with(&body, "tools", *tools);
    return body;
}

/* What the request layer changes on purpose: where the template drops or misprints. */
static const struct {
    const char *name, *from, *to;
} changed[] = {
    {"tool_missing_type_anyof", "x:{description:<|\"|>opt<|\"|>,type:<|\"|><|\"|>}",
     "x:{description:<|\"|>opt<|\"|>,nullable:true,type:<|\"|>STRING<|\"|>}"},
    {"tool_types_all", "ie:{type:<|\"|>INTEGER<|\"|>}",
     "ie:{description:<|\"|>Allowed: 1, 2.<|\"|>,type:<|\"|>INTEGER<|\"|>}"},
};

static const struct {
    const char *name, *error;
} refused[] = {
    {"user_parts_image", "messages[0].content[0].type: 'image' is not supported, only text"},
    {"user_parts_openai_mm", "' is not supported, only text"},
    {"tool_resp_parts", "messages[2].content[2].type: 'image_url' is not supported, only text"},
    {"orphan_tool_message", "messages[1].tool_call_id: a tool result must follow an assistant "
                            "message with tool calls"},
    {"args_string_error", NULL}, /* a string is what OpenAI's clients send */
};

/* Text with one part replaced, when this case is in the table. */
static ct_str expected(const ct_value *l, ct_buf *b)
{
    const ct_value *want = ct_value_get(l, "expected_text");
    ct_str text = want ? ct_value_text(want) : CT_STR("");

    for (size_t i = 0; i < CT_LEN(changed); i++) {
        const char *at;

        if (!named(l, changed[i].name))
            continue;
        at = memmem(text.p, text.n, changed[i].from, strlen(changed[i].from));
        assert_non_null(at);
        ct_buf_add(b, text.p, (size_t)(at - text.p));
        ct_buf_addz(b, changed[i].to);
        at += strlen(changed[i].from);
        ct_buf_add(b, at, text.n - (size_t)(at - text.p));
        return ct_buf_str(b);
    }
    return text;
}

static int check_text(const char *what, const ct_value *l, const ct_chat_request *r)
{
    ct_buf out, b;
    ct_error err = {0};
    ct_str want;
    ct_status st;
    int wrong;

    ct_buf_init(&out, 1 << 24);
    ct_buf_init(&b, 1 << 24);
    want = expected(l, &b);
    st = ct_chat_render(template, CT_STR("<bos>"), &r->render, &arena, &out, &err);
    wrong = st || !ct_str_eq(ct_buf_str(&out), want);
    if (wrong)
        print_error("%s, case %.*s:\n  gave %s\n  want %.*s\n", what,
                    CT_STR_ARG(ct_value_text(ct_value_get(l, "name"))), st ? err.text : out.p,
                    CT_STR_ARG(want));
    ct_buf_deinit(&out);
    ct_buf_deinit(&b);
    return wrong;
}

static int check_openai(const ct_value *l)
{
    ct_value body = openai_body(l);
    ct_chat_request r;
    ct_error err = {0};
    ct_status st = ct_openai_request(&r, &body, &arena, &err);

    for (size_t i = 0; i < CT_LEN(refused); i++)
        if (named(l, refused[i].name)) {
            bool right = refused[i].error ? st && strstr(err.text, refused[i].error)
                                          : st == CT_EINVAL || !st;

            if (!right)
                print_error("OpenAI, case %s: %s\n", refused[i].name, st ? err.text : "accepted");
            return !right;
        }
    if (st) {
        print_error("OpenAI, case %.*s: %s\n", CT_STR_ARG(ct_value_text(ct_value_get(l, "name"))),
                    err.text);
        return 1;
    }
    return check_text("OpenAI", l, &r);
}

static void openai_form_renders_alike(void **state)
{
    int wrong = 0;

    (void)state;
    for (size_t i = 0; i < n_lines; i++)
        wrong += check_openai(line[i]);
    assert_true(n_lines >= 85);
    assert_int_equal(wrong, 0);
}

/* ---- Anthropic ---- */

static bool is_string(const ct_value *v)
{
    return v && v->kind == CT_VALUE_STRING;
}

static bool calls_fit(const ct_value *calls)
{
    for (size_t i = 0; calls && i < calls->u.list.n; i++) {
        const ct_value *c = &calls->u.list.item[i];
        const ct_value *args = ct_value_get(ct_value_get(c, "function"), "arguments");

        if (!is_string(ct_value_get(c, "id")) || !args || args->kind != CT_VALUE_MAP)
            return false;
    }
    return true;
}

static bool message_fits(const ct_value *m, size_t i)
{
    const ct_value *content = ct_value_get(m, "content");

    if (is_role(m, "system") || is_role(m, "developer"))
        return i == 0;
    if (ct_value_get(m, "tool_responses") || ct_value_get(m, "name"))
        return false;
    if (is_role(m, "assistant"))
        return calls_fit(ct_value_get(m, "tool_calls"));
    return is_string(content) || (content && content->kind == CT_VALUE_LIST);
}

/* Whether Anthropic's API can say this conversation. */
static bool fits(const ct_value *l)
{
    const ct_value *messages = ct_value_get(l, "messages"), *tools = ct_value_get(l, "tools");

    for (size_t i = 0; i < CT_LEN(refused); i++)
        if (named(l, refused[i].name))
            return false;
    for (size_t i = 0; i < messages->u.list.n; i++)
        if (!message_fits(&messages->u.list.item[i], i))
            return false;
    for (size_t i = 0; tools && tools->kind == CT_VALUE_LIST && i < tools->u.list.n; i++) {
        const ct_value *f = ct_value_get(&tools->u.list.item[i], "function");

        if (!ct_value_get(f, "parameters") || ct_value_get(f, "response"))
            return false;
    }
    return true;
}

static ct_value anthropic_tools(const ct_value *tools)
{
    ct_value *item = items(tools->u.list.n);

    for (size_t i = 0; i < tools->u.list.n; i++) {
        const ct_value *f = ct_value_get(&tools->u.list.item[i], "function");

        item[i] = OBJECT({CT_STR("name"), *ct_value_get(f, "name")},
                         {CT_STR("input_schema"), *ct_value_get(f, "parameters")});
        if (ct_value_get(f, "description"))
            with(&item[i], "description", *ct_value_get(f, "description"));
    }
    return ct_value_list(item, tools->u.list.n, CT_LIST_LIST);
}

static ct_value text_block(const ct_value *text)
{
    return OBJECT({CT_STR("type"), string("text")}, {CT_STR("text"), *text});
}

static ct_value assistant_blocks(const ct_value *m)
{
    const ct_value *content = ct_value_get(m, "content"), *calls = ct_value_get(m, "tool_calls");
    const ct_value *thought = ct_value_get(m, "reasoning_content");
    ct_value *item = items(100);
    size_t n = 0;

    thought = thought ? thought : ct_value_get(m, "reasoning");
    if (thought)
        item[n++] = OBJECT({CT_STR("type"), string("thinking")}, {CT_STR("thinking"), *thought},
                           {CT_STR("signature"), string("s")});
    if (is_string(content))
        item[n++] = text_block(content);
    for (size_t i = 0; content && content->kind == CT_VALUE_LIST && i < content->u.list.n; i++)
        item[n++] = content->u.list.item[i];
    for (size_t i = 0; calls && i < calls->u.list.n; i++) {
        const ct_value *f = ct_value_get(&calls->u.list.item[i], "function");

        item[n++] = OBJECT({CT_STR("type"), string("tool_use")},
                           {CT_STR("id"), *ct_value_get(&calls->u.list.item[i], "id")},
                           {CT_STR("name"), *ct_value_get(f, "name")},
                           {CT_STR("input"), *ct_value_get(f, "arguments")});
    }
    return ct_value_list(item, n, CT_LIST_LIST);
}

static ct_value anthropic_message(const ct_value *m)
{
    if (is_role(m, "assistant"))
        return OBJECT({CT_STR("role"), string("assistant")},
                      {CT_STR("content"), assistant_blocks(m)});
    if (is_role(m, "tool")) {
        ct_value *block = items(1);

        block[0] = OBJECT({CT_STR("type"), string("tool_result")},
                          {CT_STR("tool_use_id"), *ct_value_get(m, "tool_call_id")},
                          {CT_STR("content"), *ct_value_get(m, "content")});
        return OBJECT({CT_STR("role"), string("user")},
                      {CT_STR("content"), ct_value_list(block, 1, CT_LIST_LIST)});
    }
    return *m;
}

static int check_anthropic(const ct_value *l)
{
    const ct_value *messages = ct_value_get(l, "messages"), *tools = ct_value_get(l, "tools");
    ct_value *item = items(messages->u.list.n), body = options_of(l);
    ct_chat_request r;
    ct_error err = {0};
    size_t n = 0;

    for (size_t i = 0; i < messages->u.list.n; i++) {
        const ct_value *m = &messages->u.list.item[i];

        if (is_role(m, "system") || is_role(m, "developer"))
            with(&body, "system", *ct_value_get(m, "content"));
        else
            item[n++] = anthropic_message(m);
    }
    with(&body, "messages", ct_value_list(item, n, CT_LIST_LIST));
    if (tools && tools->kind == CT_VALUE_LIST)
        with(&body, "tools", anthropic_tools(tools));
    if (ct_anthropic_request(&r, &body, &arena, &err)) {
        print_error("Anthropic, case %.*s: %s\n",
                    CT_STR_ARG(ct_value_text(ct_value_get(l, "name"))), err.text);
        return 1;
    }
    return check_text("Anthropic", l, &r);
}

static void anthropic_form_renders_alike(void **state)
{
    int wrong = 0, n = 0;

    (void)state;
    for (size_t i = 0; i < n_lines; i++)
        if (fits(line[i])) {
            wrong += check_anthropic(line[i]);
            n++;
        }
    assert_true(n >= 55);
    assert_int_equal(wrong, 0);
}

/* ---- set up ---- */

static void read_lines(const char *path)
{
    ct_error err;
    ct_map map;
    ct_str rest;

    test_ok(ct_map_open(&map, path, &err), &err);
    for (rest = ct_map_str(&map); rest.n && n_lines < MAX_LINES;) {
        const char *end = memchr(rest.p, '\n', rest.n);
        size_t n = end ? (size_t)(end - rest.p) : rest.n;

        test_ok(ct_value_parse(&line[n_lines++], path, (ct_str){rest.p, n}, &arena, &err), &err);
        n += end != NULL;
        rest = (ct_str){rest.p + n, rest.n - n};
    }
    ct_map_close(&map);
}

/* Within a test, because only tests can be skipped. */
static void reference_data_is_read(void **state)
{
    const char *golden = test_shared("data/chat-golden.jsonl");
    const char *file = test_shared("data/templates/chat_template.large.r5-2026-07-09.jinja");
    ct_chat_template t;
    ct_error err;

    (void)state;
    test_ok(ct_arena_init(&arena, ARENA_BYTES, &err), &err);
    test_ok(ct_chat_template_open(&t, NULL, file, &err), &err);
    ct_buf_deinit(&t.bos);
    template = t.jinja;
    read_lines(golden);
}

static void need_lines(void **state, void (*test)(void **))
{
    if (!template)
        skip();
    test(state);
}

static void openai(void **state)
{
    need_lines(state, openai_form_renders_alike);
}

static void anthropic(void **state)
{
    need_lines(state, anthropic_form_renders_alike);
}

static int free_all(void **state)
{
    (void)state;
    ct_jinja_destroy(template);
    ct_arena_deinit(&arena);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reference_data_is_read),
        cmocka_unit_test(openai),
        cmocka_unit_test(anthropic),
    };

    return cmocka_run_group_tests_name("requests golden", tests, NULL, free_all);
}
