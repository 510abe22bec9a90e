#include "text/anthropic_messages.h"

#include "base/checked.h"

#define MAX_FIELDS 6
#define MAX_SHOWN  100

/* One message of the client, which may become several: a turn's tool results stand
 * before its text. */
typedef struct work {
    ct_chat_builder *b;
    ct_value *part; /* text parts so far, room for all */
    size_t n_parts;
    ct_value *call;
    size_t n_calls;
    ct_buf thought; /* joined thinking blocks */
    bool thinking;
} work;

static ct_status no_memory(ct_error *err)
{
    return ct_fail(err, CT_ELIMIT, "the request exceeds the memory bound");
}

static ct_status in(ct_status st, const char *field, ct_error *err)
{
    if (st)
        ct_error_prefix(err, "%s: ", field);
    return st;
}

static ct_str shown(const ct_value *v)
{
    if (v->kind != CT_VALUE_STRING)
        return ct_str_of(ct_value_kind_name(v));
    return (ct_str){v->u.text.p, ct_min_size(v->u.text.n, MAX_SHOWN)};
}

static bool is_word(const ct_value *v, const char *word)
{
    return v && v->kind == CT_VALUE_STRING && ct_str_is(ct_value_text(v), word);
}

/* A field that must be a string and goes to the model. */
static ct_status need_text(ct_chat_builder *b, const ct_value *from, const char *key,
                           const ct_value **out, ct_error *err)
{
    const ct_value *v = ct_value_get(from, key);
    ct_status st = v && v->kind == CT_VALUE_STRING ? ct_chat_check_text(b, ct_value_text(v), err)
                                                   : ct_chat_must_be(v, "a string", err);

    *out = v;
    return in(st, key, err);
}

static ct_status build(ct_chat_builder *b, ct_value *out, const ct_map_entry *entry, size_t n,
                       ct_error *err)
{
    ct_map_entry *e = ct_arena_zalloc(b->a, n, sizeof *e);

    if (!e)
        return no_memory(err);
    memcpy(e, entry, n * sizeof *e);
    return ct_value_build_map(out, e, n, b->a) ? CT_OK : no_memory(err);
}

static ct_status add_part(work *w, const ct_value *text, ct_error *err)
{
    ct_map_entry e[2] = {{CT_STR("type"), ct_value_str(CT_STR("text"))}, {CT_STR("text"), *text}};

    return build(w->b, &w->part[w->n_parts++], e, 2, err);
}

static ct_status refuse_block(const ct_value *type, const char *expected, ct_error *err)
{
    return ct_fail(err, CT_EUNSUPPORTED, "type: '%.*s' is not supported here, only %s",
                   CT_STR_ARG(shown(type)), expected);
}

static ct_status block_type(const ct_value *block, const ct_value **type, ct_error *err)
{
    *type = ct_value_get(block, "type");
    if (!*type || (*type)->kind != CT_VALUE_STRING)
        return in(ct_chat_must_be(*type, "a string", err), "type", err);
    return CT_OK;
}

/* Text parts as content: none is empty, one is the string, more are the list. */
static ct_value content_of(const ct_value *part, size_t n)
{
    if (!n)
        return ct_value_str(CT_STR(""));
    return n == 1 ? *ct_value_get(&part[0], "text") : ct_value_list(part, n, CT_LIST_LIST);
}

/* ---- blocks ---- */

static ct_status read_text(work *w, const ct_value *block, ct_error *err)
{
    const ct_value *text = NULL;
    ct_status st = need_text(w->b, block, "text", &text, err);

    return st ? st : add_part(w, text, err);
}

static ct_status read_tool_use(work *w, const ct_value *block, ct_error *err)
{
    const ct_value *id = ct_value_get(block, "id"), *name = ct_value_get(block, "name");
    const ct_value *input = ct_value_get(block, "input");
    ct_value function, empty = ct_value_none();
    ct_status st = in(ct_chat_check_name(name, err), "name", err);

    if (st)
        return st;
    if (!id || id->kind != CT_VALUE_STRING)
        return in(ct_chat_must_be(id, "a string", err), "id", err);
    if (!ct_value_build_map(&empty, NULL, 0, w->b->a))
        return no_memory(err);
    input = ct_chat_is_null(input) ? &empty : input;
    if (input->kind != CT_VALUE_MAP)
        return in(ct_chat_must_be(input, "an object", err), "input", err);
    st = in(ct_chat_check_value(w->b, input, err), "input", err);
    for (size_t i = 0; i < w->n_calls && !st; i++)
        if (ct_str_eq(ct_value_text(ct_value_get(&w->call[i], "id")), ct_value_text(id)))
            st = ct_fail(err, CT_EINVAL, "id: '%.*s' is another call's too", CT_STR_ARG(shown(id)));
    if (!st && w->n_calls == CT_CHAT_MAX_CALLS)
        st = ct_fail(err, CT_ELIMIT, "more than %d calls in one message", CT_CHAT_MAX_CALLS);
    if (!st)
        st =
            build(w->b, &function,
                  (ct_map_entry[]){{CT_STR("name"), *name}, {CT_STR("arguments"), *input}}, 2, err);
    if (st)
        return st;
    return build(w->b, &w->call[w->n_calls++],
                 (ct_map_entry[]){{CT_STR("type"), ct_value_str(CT_STR("function"))},
                                  {CT_STR("function"), function},
                                  {CT_STR("id"), *id}},
                 3, err);
}

static ct_status read_thinking(work *w, const ct_value *block, ct_error *err)
{
    const ct_value *text = NULL;
    ct_status st = need_text(w->b, block, "thinking", &text, err);

    if (st)
        return st;
    if (w->thinking)
        ct_buf_addc(&w->thought, '\n');
    ct_buf_add(&w->thought, text->u.text.p, text->u.text.n);
    w->thinking = true;
    return w->thought.failed ? no_memory(err) : CT_OK;
}

static ct_status read_assistant_block(work *w, const ct_value *block, ct_error *err)
{
    const ct_value *type = NULL;
    ct_status st = block_type(block, &type, err);

    if (st)
        return st;
    if (is_word(type, "text"))
        return read_text(w, block, err);
    if (is_word(type, "tool_use"))
        return read_tool_use(w, block, err);
    if (is_word(type, "thinking"))
        return read_thinking(w, block, err);
    /* Sealed by another provider: there is no text in it to show. */
    if (is_word(type, "redacted_thinking"))
        return CT_OK;
    return refuse_block(type, "text, tool_use, thinking and redacted_thinking", err);
}

/* The text of a result: parts joined, as the template joins them. */
static ct_status result_parts(ct_chat_builder *b, const ct_value *list, ct_buf *out, ct_error *err)
{
    if (list->u.list.n > CT_CHAT_MAX_PARTS)
        return ct_fail(err, CT_ELIMIT, "content: %zu blocks, at most %d", list->u.list.n,
                       CT_CHAT_MAX_PARTS);
    for (size_t i = 0; i < list->u.list.n; i++) {
        const ct_value *type = NULL, *text = NULL;
        ct_status st = ct_chat_check_object(&list->u.list.item[i], "content", i, err);

        if (st)
            return st;
        st = block_type(&list->u.list.item[i], &type, err);
        if (!st && !is_word(type, "text"))
            st = refuse_block(type, "text", err);
        if (!st)
            st = need_text(b, &list->u.list.item[i], "text", &text, err);
        if (st) {
            ct_error_prefix(err, "content[%zu].", i);
            return st;
        }
        ct_buf_add(out, text->u.text.p, text->u.text.n);
    }
    return CT_OK;
}

static ct_status result_text(ct_chat_builder *b, const ct_value *block, ct_value *out,
                             ct_error *err)
{
    const ct_value *content = ct_value_get(block, "content");
    const ct_value *failed = ct_value_get(block, "is_error");
    ct_status st = CT_OK;
    const char *p;
    ct_buf text;

    if (!ct_chat_is_null(failed) && failed->kind != CT_VALUE_BOOL)
        return in(ct_chat_must_be(failed, "a boolean", err), "is_error", err);
    ct_buf_init(&text, CT_CHAT_MAX_TEXT_BYTES + 16);
    /* Results have no place for the flag; models read the word. */
    if (!ct_chat_is_null(failed) && failed->u.boolean)
        ct_buf_addz(&text, "Error: ");
    if (ct_chat_is_null(content))
        st = CT_OK;
    else if (content->kind == CT_VALUE_LIST)
        st = result_parts(b, content, &text, err);
    else {
        st = need_text(b, block, "content", &content, err);
        if (!st)
            ct_buf_add(&text, content->u.text.p, content->u.text.n);
    }
    p = st || text.failed ? NULL : ct_arena_copy(b->a, text.n ? text.p : "", text.n);
    if (!st && !p)
        st = no_memory(err);
    if (!st)
        *out = ct_value_str((ct_str){p, text.n});
    ct_buf_deinit(&text);
    return st;
}

static ct_status read_result(ct_chat_builder *b, const ct_value *block, ct_error *err)
{
    const ct_value *id = ct_value_get(block, "tool_use_id");
    ct_value text;
    ct_status st;

    if (!id || id->kind != CT_VALUE_STRING)
        return in(ct_chat_must_be(id, "a string", err), "tool_use_id", err);
    st = in(ct_chat_check_result(b, id, NULL, err), "tool_use_id", err);
    if (!st)
        st = result_text(b, block, &text, err);
    if (st)
        return st;
    return ct_chat_add(b,
                       (ct_map_entry[]){{CT_STR("role"), ct_value_str(CT_STR("tool"))},
                                        {CT_STR("tool_call_id"), *id},
                                        {CT_STR("content"), text}},
                       3, err);
}

static ct_status read_user_block(work *w, const ct_value *block, ct_error *err)
{
    const ct_value *type = NULL;
    ct_status st = block_type(block, &type, err);

    if (st)
        return st;
    if (is_word(type, "text"))
        return read_text(w, block, err);
    if (is_word(type, "tool_result"))
        return read_result(w->b, block, err);
    return refuse_block(type, "text and tool_result", err);
}

/* ---- messages ---- */

static ct_status finish_user(work *w, const ct_value *content, ct_error *err)
{
    ct_map_entry e[2] = {{CT_STR("role"), ct_value_str(CT_STR("user"))},
                         {CT_STR("content"), content_of(w->part, w->n_parts)}};

    /* A turn that has only results is no turn of the user. */
    if (content->kind == CT_VALUE_LIST && content->u.list.n && !w->n_parts)
        return CT_OK;
    return ct_chat_add(w->b, e, 2, err);
}

static ct_status thought_of(work *w, ct_value *out, ct_error *err)
{
    const char *p = ct_arena_copy(w->b->a, w->thought.n ? w->thought.p : "", w->thought.n);

    if (!p)
        return no_memory(err);
    *out = ct_value_str((ct_str){p, w->thought.n});
    return CT_OK;
}

static ct_status finish_assistant(work *w, ct_error *err)
{
    ct_map_entry e[MAX_FIELDS] = {{CT_STR("role"), ct_value_str(CT_STR("assistant"))}};
    ct_status st = CT_OK;
    size_t n = 1;

    if (w->n_parts)
        e[n++] = (ct_map_entry){CT_STR("content"), content_of(w->part, w->n_parts)};
    if (w->thought.n) {
        e[n].key = CT_STR("reasoning_content");
        st = thought_of(w, &e[n++].value, err);
    }
    if (w->n_calls)
        e[n++] =
            (ct_map_entry){CT_STR("tool_calls"), ct_value_list(w->call, w->n_calls, CT_LIST_LIST)};
    return st ? st : ct_chat_add(w->b, e, n, err);
}

static ct_status read_blocks(work *w, const ct_value *list, bool assistant, ct_error *err)
{
    ct_status st = CT_OK;

    if (list->u.list.n > CT_CHAT_MAX_PARTS)
        return ct_fail(err, CT_ELIMIT, "content: %zu blocks, at most %d", list->u.list.n,
                       CT_CHAT_MAX_PARTS);
    w->part = ct_arena_zalloc(w->b->a, list->u.list.n, sizeof *w->part);
    w->call = ct_arena_zalloc(w->b->a, list->u.list.n, sizeof *w->call);
    if (!w->part || !w->call)
        return no_memory(err);
    for (size_t i = 0; i < list->u.list.n && !st; i++) {
        const ct_value *block = &list->u.list.item[i];

        st = ct_chat_check_object(block, "content", i, err);
        if (st)
            return st;
        st = assistant ? read_assistant_block(w, block, err) : read_user_block(w, block, err);
        if (st)
            ct_error_prefix(err, "content[%zu].", i);
    }
    return st;
}

static ct_status read_string(work *w, const ct_value *message, ct_error *err)
{
    const ct_value *text = NULL;
    ct_status st = need_text(w->b, message, "content", &text, err);

    w->part = ct_arena_zalloc(w->b->a, 1, sizeof *w->part);
    if (!st && !w->part)
        st = no_memory(err);
    return st ? st : add_part(w, text, err);
}

static ct_status read_message(ct_chat_builder *b, const ct_value *message, ct_error *err)
{
    static const char *const known[] = {"role",        "content",       "id",   "type", "model",
                                        "stop_reason", "stop_sequence", "usage"};
    const ct_value *role = ct_value_get(message, "role");
    const ct_value *content = ct_value_get(message, "content");
    bool assistant = is_word(role, "assistant");
    work w = {.b = b};
    ct_status st;

    if (!role || role->kind != CT_VALUE_STRING)
        return in(ct_chat_must_be(role, "a string", err), "role", err);
    if (!assistant && !is_word(role, "user"))
        return ct_fail(err, CT_EINVAL, "role: '%.*s' is not user or assistant",
                       CT_STR_ARG(shown(role)));
    st = ct_chat_check_keys(message, known, CT_LEN(known), err);
    if (st)
        return st;
    if (!content || (content->kind != CT_VALUE_LIST && content->kind != CT_VALUE_STRING))
        return in(ct_chat_must_be(content, "a string or an array of blocks", err), "content", err);
    ct_buf_init(&w.thought, CT_CHAT_MAX_TEXT_BYTES);
    st = content->kind == CT_VALUE_LIST ? read_blocks(&w, content, assistant, err)
                                        : read_string(&w, message, err);
    if (!st)
        st = assistant ? finish_assistant(&w, err) : finish_user(&w, content, err);
    ct_buf_deinit(&w.thought);
    return st;
}

static ct_status read_messages(ct_chat_builder *b, const ct_value *messages, ct_error *err)
{
    for (size_t i = 0; i < messages->u.list.n; i++) {
        const ct_value *m = &messages->u.list.item[i];
        ct_status st;

        st = ct_chat_check_object(m, "messages", i, err);
        if (st)
            return st;
        st = read_message(b, m, err);
        if (st) {
            ct_error_prefix(err, "messages[%zu].", i);
            return st;
        }
    }
    return CT_OK;
}

static ct_status read_system(ct_chat_builder *b, const ct_value *system, ct_error *err)
{
    ct_map_entry e[2] = {{CT_STR("role"), ct_value_str(CT_STR("system"))},
                         {.key = CT_STR("content")}};
    work w = {.b = b};
    ct_status st = CT_OK;

    if (system->kind == CT_VALUE_STRING) {
        e[1].value = *system;
        st = in(ct_chat_check_text(b, ct_value_text(system), err), "system", err);
        return st ? st : ct_chat_add(b, e, 2, err);
    }
    if (system->kind != CT_VALUE_LIST)
        return in(ct_chat_must_be(system, "a string or an array of text blocks", err), "system",
                  err);
    if (system->u.list.n > CT_CHAT_MAX_PARTS)
        return ct_fail(err, CT_ELIMIT, "system: %zu blocks, at most %d", system->u.list.n,
                       CT_CHAT_MAX_PARTS);
    w.part = ct_arena_zalloc(b->a, system->u.list.n, sizeof *w.part);
    if (!w.part)
        return no_memory(err);
    for (size_t i = 0; i < system->u.list.n; i++) {
        const ct_value *type = NULL;

        st = ct_chat_check_object(&system->u.list.item[i], "system", i, err);
        if (st)
            return st;
        st = block_type(&system->u.list.item[i], &type, err);
        if (!st)
            st = is_word(type, "text") ? read_text(&w, &system->u.list.item[i], err)
                                       : refuse_block(type, "text", err);
        if (st) {
            ct_error_prefix(err, "system[%zu].", i);
            return st;
        }
    }
    e[1].value = content_of(w.part, w.n_parts);
    return w.n_parts ? ct_chat_add(b, e, 2, err) : CT_OK;
}

/* ---- tools and options ---- */

/* {name, description, input_schema} as OpenAI has it. */
static ct_status read_tool(ct_chat_builder *b, const ct_value *tool, ct_value *out, ct_error *err)
{
    const ct_value *type = ct_value_get(tool, "type"), *name = ct_value_get(tool, "name");
    const ct_value *text = ct_value_get(tool, "description");
    const ct_value *schema = ct_value_get(tool, "input_schema");
    ct_map_entry e[3];
    ct_value function;
    size_t n = 0;
    ct_status st;

    if (!ct_chat_is_null(type) && !is_word(type, "custom"))
        return refuse_block(type, "'custom'", err);
    st = in(ct_chat_check_name(name, err), "name", err);
    if (st)
        return st;
    e[n++] = (ct_map_entry){CT_STR("name"), *name};
    if (!ct_chat_is_null(text)) {
        if (text->kind != CT_VALUE_STRING)
            return in(ct_chat_must_be(text, "a string", err), "description", err);
        e[n++] = (ct_map_entry){CT_STR("description"), *text};
    }
    if (!schema || schema->kind != CT_VALUE_MAP)
        return in(ct_chat_must_be(schema, "an object", err), "input_schema", err);
    type = ct_value_get(schema, "type");
    if (type && type->kind == CT_VALUE_STRING && !is_word(type, "object"))
        return ct_fail(err, CT_EINVAL, "input_schema.type: must be \"object\", not \"%.*s\"",
                       CT_STR_ARG(shown(type)));
    e[n++] = (ct_map_entry){CT_STR("parameters"), *schema};
    st = build(b, &function, e, n, err);
    if (st)
        return st;
    return build(b, out,
                 (ct_map_entry[]){{CT_STR("type"), ct_value_str(CT_STR("function"))},
                                  {CT_STR("function"), function}},
                 2, err);
}

static ct_status read_tools(ct_chat_builder *b, const ct_value *list, const ct_value **out,
                            ct_error *err)
{
    ct_value *item, *tools;

    if (list->kind != CT_VALUE_LIST)
        return in(ct_chat_must_be(list, "an array", err), "tools", err);
    if (list->u.list.n > CT_CHAT_MAX_TOOLS)
        return ct_fail(err, CT_ELIMIT, "tools: %zu tools, at most %d", list->u.list.n,
                       CT_CHAT_MAX_TOOLS);
    item = ct_arena_zalloc(b->a, list->u.list.n, sizeof *item);
    tools = ct_arena_zalloc(b->a, 1, sizeof *tools);
    if (!item || !tools)
        return no_memory(err);
    for (size_t i = 0; i < list->u.list.n; i++) {
        ct_status st = ct_chat_check_object(&list->u.list.item[i], "tools", i, err);

        if (st)
            return st;
        st = read_tool(b, &list->u.list.item[i], &item[i], err);
        if (st) {
            ct_error_prefix(err, "tools[%zu].", i);
            return st;
        }
    }
    *tools = ct_value_list(item, list->u.list.n, CT_LIST_LIST);
    *out = tools;
    return ct_chat_check_tools(b, tools, err);
}

static bool is_declared(const ct_value *tools, const ct_value *name)
{
    for (size_t i = 0; tools && i < tools->u.list.n; i++) {
        const ct_value *n = ct_value_get(ct_value_get(&tools->u.list.item[i], "function"), "name");

        if (ct_str_eq(ct_value_text(n), ct_value_text(name)))
            return true;
    }
    return false;
}

/* {type: auto | any | none | tool, name} as OpenAI has it. */
static ct_status read_choice(ct_chat_builder *b, const ct_value *choice, const ct_value *tools,
                             const ct_value **out, ct_error *err)
{
    const ct_value *type = ct_value_get(choice, "type"), *name = ct_value_get(choice, "name");
    ct_value *v = ct_arena_zalloc(b->a, 1, sizeof *v), function;
    ct_status st;

    if (!v)
        return no_memory(err);
    *out = v;
    if (is_word(type, "auto") || is_word(type, "none") || is_word(type, "any")) {
        *v = is_word(type, "any") ? ct_value_str(CT_STR("required")) : *type;
        return CT_OK;
    }
    if (!is_word(type, "tool"))
        return ct_fail(err, CT_EINVAL, "tool_choice.type: must be auto, any, tool or none");
    if (!name || name->kind != CT_VALUE_STRING)
        return in(ct_chat_must_be(name, "a string", err), "tool_choice.name", err);
    if (!is_declared(tools, name))
        return ct_fail(err, CT_EINVAL, "tool_choice.name: no tool '%.*s' is declared",
                       CT_STR_ARG(shown(name)));
    st = build(b, &function, (ct_map_entry[]){{CT_STR("name"), *name}}, 1, err);
    if (st)
        return st;
    return build(b, v,
                 (ct_map_entry[]){{CT_STR("type"), ct_value_str(CT_STR("function"))},
                                  {CT_STR("function"), function}},
                 2, err);
}

static ct_status read_option(const ct_value *body, const char *key, const ct_value **out,
                             ct_error *err)
{
    const ct_value *v = ct_value_get(body, key);

    if (ct_chat_is_null(v))
        return CT_OK;
    if (v->kind != CT_VALUE_BOOL)
        return in(ct_chat_must_be(v, "a boolean", err), key, err);
    *out = v;
    return CT_OK;
}

/* thinking: {type: enabled | adaptive | disabled}; its budget is the server's. */
static ct_status read_thinking_option(ct_chat_builder *b, const ct_value *body, ct_chat_options *o,
                                      ct_error *err)
{
    const ct_value *thinking = ct_value_get(body, "thinking");
    const ct_value *type = ct_value_get(thinking, "type");
    bool on = is_word(type, "enabled") || is_word(type, "adaptive");
    ct_value *v;

    if (ct_chat_is_null(thinking))
        return CT_OK;
    if (!on && !is_word(type, "disabled"))
        return ct_fail(err, CT_EINVAL, "thinking.type: must be enabled, adaptive or disabled");
    v = ct_arena_zalloc(b->a, 1, sizeof *v);
    if (!v)
        return no_memory(err);
    *v = ct_value_bool(on);
    o->enable_thinking = v;
    return CT_OK;
}

static ct_status read_options(ct_chat_builder *b, const ct_value *body, ct_chat_options *o,
                              ct_error *err)
{
    ct_status st = read_option(body, "add_generation_prompt", &o->add_generation_prompt, err);

    if (!st)
        st = read_option(body, "enable_thinking", &o->enable_thinking, err);
    if (!st)
        st = read_option(body, "preserve_thinking", &o->preserve_thinking, err);
    return st ? st : read_thinking_option(b, body, o, err);
}

/* Messages that the client's may become, with one for the system. */
static size_t count_messages(const ct_value *messages)
{
    size_t n = 1;

    for (size_t i = 0; i < messages->u.list.n; i++) {
        const ct_value *content = ct_value_get(&messages->u.list.item[i], "content");

        n += content && content->kind == CT_VALUE_LIST ? content->u.list.n + 1 : 1;
    }
    return n;
}

ct_status ct_anthropic_request(ct_chat_request *out, const ct_value *body, ct_arena *a,
                               ct_error *err)
{
    const ct_value *messages = ct_value_get(body, "messages"), *tools = NULL, *v;
    ct_chat_request r = {0};
    ct_chat_options options = {0};
    ct_chat_builder b;
    ct_status st;

    if (body->kind != CT_VALUE_MAP)
        return in(ct_chat_must_be(body, "an object", err), "request", err);
    if (!messages || messages->kind != CT_VALUE_LIST)
        return in(ct_chat_must_be(messages, "an array", err), "messages", err);
    if (messages->u.list.n > CT_CHAT_MAX_MESSAGES)
        return ct_fail(err, CT_ELIMIT, "messages: %zu messages, at most %d", messages->u.list.n,
                       CT_CHAT_MAX_MESSAGES);
    st = ct_chat_begin(&b, count_messages(messages), a, err);
    if (!st)
        st = read_options(&b, body, &options, err);
    v = ct_value_get(body, "system");
    if (!st && !ct_chat_is_null(v))
        st = read_system(&b, v, err);
    if (!st)
        st = read_messages(&b, messages, err);
    v = ct_value_get(body, "tools");
    if (!st && !ct_chat_is_null(v))
        st = read_tools(&b, v, &tools, err);
    v = ct_value_get(body, "tool_choice");
    if (!st && !ct_chat_is_null(v))
        st = read_choice(&b, v, tools, &r.tool_choice, err);
    if (!st)
        st = ct_chat_finish(&r, &b, tools, &options, err);
    if (!st)
        *out = r;
    return st;
}

ct_status ct_anthropic_assistant(ct_value *out, const ct_value *message, ct_arena *a, ct_error *err)
{
    ct_chat_builder b;
    ct_status st = ct_chat_begin(&b, 1, a, err);

    if (!st && message->kind != CT_VALUE_MAP)
        return in(ct_chat_must_be(message, "an object", err), "message", err);
    if (!st && !is_word(ct_value_get(message, "role"), "assistant"))
        return ct_fail(err, CT_EINVAL, "message.role: must be assistant");
    if (!st)
        st = read_message(&b, message, err);
    if (!st)
        *out = b.message[0];
    return st;
}
