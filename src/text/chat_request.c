#include "text/chat_request.h"

#include "base/checked.h"
#include "text/tool_schema.h"

#define MAX_SHOWN 100 /* bytes of a client's name in a message */

static ct_status no_memory(ct_error *err)
{
    return ct_fail(err, CT_ELIMIT, "the request exceeds the memory bound");
}

static ct_str shown(ct_str s)
{
    return (ct_str){s.p, ct_min_size(s.n, MAX_SHOWN)};
}

ct_status ct_chat_must_be(const ct_value *v, const char *what, ct_error *err)
{
    if (!v)
        return ct_fail(err, CT_EINVAL, "is missing");
    return ct_fail(err, CT_EINVAL, "must be %s, not %s", what, ct_value_kind_name(v));
}

ct_status ct_chat_check_object(const ct_value *v, const char *list, size_t i, ct_error *err)
{
    ct_status st;

    if (v->kind == CT_VALUE_MAP)
        return CT_OK;
    st = ct_chat_must_be(v, "an object", err);
    ct_error_prefix(err, "%s[%zu]: ", list, i);
    return st;
}

ct_status ct_chat_check_keys(const ct_value *object, const char *const *names, size_t n,
                             ct_error *err)
{
    for (size_t i = 0; i < object->u.map->n; i++) {
        ct_str key = object->u.map->entry[i].key;
        size_t k = 0;

        while (k < n && !ct_str_is(key, names[k]))
            k++;
        if (k == n && object->u.map->entry[i].value.kind != CT_VALUE_NONE)
            return ct_fail(err, CT_EINVAL, "%.*s: unknown field", CT_STR_ARG(shown(key)));
    }
    return CT_OK;
}

ct_status ct_chat_begin(ct_chat_builder *b, size_t n_messages, ct_arena *a, ct_error *err)
{
    *b = (ct_chat_builder){.a = a, .room = n_messages};
    b->message = ct_arena_zalloc(a, n_messages, sizeof *b->message);
    return b->message ? CT_OK : no_memory(err);
}

static bool is_role(const ct_value *message, const char *role)
{
    return ct_str_is(ct_value_text(ct_value_get(message, "role")), role);
}

ct_status ct_chat_add(ct_chat_builder *b, const ct_map_entry *entry, size_t n, ct_error *err)
{
    ct_map_entry *copy = ct_arena_zalloc(b->a, n, sizeof *copy);

    if (b->n == b->room)
        return ct_fail(err, CT_ELIMIT, "more than %zu messages", b->room);
    if (!copy)
        return no_memory(err);
    memcpy(copy, entry, n * sizeof *copy);
    if (!ct_value_build_map(&b->message[b->n], copy, n, b->a))
        return no_memory(err);
    b->n++;
    if (!is_role(&b->message[b->n - 1], "tool"))
        b->n_turns = b->n;
    return CT_OK;
}

/* The control tokens of other media that text begins with, or NULL. */
static const char *media_token(const char *p, size_t n)
{
    static const char *const tokens[] = {"<|image>", "<image|>",  "<|image|>", "<|audio>",
                                         "<audio|>", "<|audio|>", "<|video|>"};

    for (size_t i = 0; i < CT_LEN(tokens); i++)
        if (ct_str_starts((ct_str){p, n}, tokens[i]))
            return tokens[i];
    return NULL;
}

ct_status ct_chat_check_text(ct_chat_builder *b, ct_str text, ct_error *err)
{
    const char *p = text.p, *end = text.p + text.n;

    if (text.n > CT_CHAT_MAX_TEXT_BYTES - b->text_bytes)
        return ct_fail(err, CT_ELIMIT, "the request's texts exceed %zu bytes",
                       CT_CHAT_MAX_TEXT_BYTES);
    b->text_bytes += text.n;
    while (text.n && (p = memchr(p, '<', (size_t)(end - p)))) {
        const char *token = media_token(p, (size_t)(end - p));

        if (token)
            return ct_fail(err, CT_EUNSUPPORTED,
                           "byte %zu: the control token %s belongs to images, audio or video; "
                           "only text is supported",
                           (size_t)(p - text.p), token);
        p++;
    }
    return CT_OK;
}

/* Depth is bounded by the JSON reader's. */
ct_status ct_chat_check_value(ct_chat_builder *b, const ct_value *v, ct_error *err)
{
    ct_status st = CT_OK;

    if (v->kind == CT_VALUE_STRING)
        return ct_chat_check_text(b, ct_value_text(v), err);
    for (size_t i = 0; v->kind == CT_VALUE_LIST && i < v->u.list.n && !st; i++)
        st = ct_chat_check_value(b, &v->u.list.item[i], err);
    for (size_t i = 0; v->kind == CT_VALUE_MAP && i < v->u.map->n && !st; i++) {
        st = ct_chat_check_text(b, v->u.map->entry[i].key, err);
        if (!st)
            st = ct_chat_check_value(b, &v->u.map->entry[i].value, err);
    }
    return st;
}

ct_status ct_chat_check_name(const ct_value *v, ct_error *err)
{
    if (!v || v->kind != CT_VALUE_STRING)
        return ct_chat_must_be(v, "a string", err);
    if (!v->u.text.n || v->u.text.n > CT_CHAT_MAX_NAME_BYTES)
        return ct_fail(err, CT_EINVAL, "has %zu bytes, must have 1 to %d", v->u.text.n,
                       CT_CHAT_MAX_NAME_BYTES);
    for (size_t i = 0; i < v->u.text.n; i++) {
        unsigned char c = (unsigned char)v->u.text.p[i];

        if (c <= ' ' || c == 0x7f || memchr("{}<>()[]\"',", c, 11))
            return ct_fail(err, CT_EINVAL,
                           "byte %zu: a name has no blanks, brackets, quotes or commas", i);
    }
    return CT_OK;
}

/* ---- tools ---- */

static ct_status check_function(ct_chat_builder *b, const ct_value *f, ct_error *err)
{
    const ct_value *text = ct_value_get(f, "description");
    ct_status st;

    if (!f || f->kind != CT_VALUE_MAP) {
        st = ct_chat_must_be(f, "an object", err);
        ct_error_prefix(err, "function: ");
        return st;
    }
    st = ct_chat_check_name(ct_value_get(f, "name"), err);
    if (st) {
        ct_error_prefix(err, "function.name: ");
        return st;
    }
    if (!ct_chat_is_null(text) && text->kind != CT_VALUE_STRING) {
        st = ct_chat_must_be(text, "a string", err);
        ct_error_prefix(err, "function.description: ");
        return st;
    }
    st = ct_chat_check_value(b, f, err);
    if (st)
        ct_error_prefix(err, "function: ");
    return st;
}

static ct_status check_tool(ct_chat_builder *b, const ct_value *tool, ct_error *err)
{
    const ct_value *type = ct_value_get(tool, "type");
    ct_status st;

    if (tool->kind != CT_VALUE_MAP) {
        st = ct_chat_must_be(tool, "an object", err);
        ct_error_prefix(err, ": ");
        return st;
    }
    if (type && (type->kind != CT_VALUE_STRING || !ct_str_is(ct_value_text(type), "function"))) {
        ct_str t = type->kind == CT_VALUE_STRING ? ct_value_text(type) : CT_STR("?");

        return ct_fail(err, CT_EUNSUPPORTED, ".type: '%.*s' is not supported, only 'function'",
                       CT_STR_ARG(shown(t)));
    }
    st = check_function(b, ct_value_get(tool, "function"), err);
    if (st)
        ct_error_prefix(err, ".");
    return st;
}

static const ct_value *tool_name(const ct_value *tool)
{
    return ct_value_get(ct_value_get(tool, "function"), "name");
}

/* Two tools of one name could not be told apart in a call. */
static ct_status check_unique(const ct_value *tools, ct_arena *a, ct_error *err)
{
    size_t n = tools->u.list.n;
    ct_map_entry *e = ct_arena_zalloc(a, n, sizeof *e);
    ct_value names;

    for (size_t i = 0; e && i < n; i++)
        e[i] = (ct_map_entry){ct_value_text(tool_name(&tools->u.list.item[i])),
                              ct_value_int((int64_t)i)};
    if (!e || !ct_value_build_map(&names, e, n, a))
        return no_memory(err);
    /* Of equal names the mapping keeps the last index. */
    for (size_t i = 0; i < n; i++) {
        ct_str name = ct_value_text(tool_name(&tools->u.list.item[i]));
        const ct_value *last = ct_map_find(names.u.map, name);

        if (last->u.integer != (int64_t)i)
            return ct_fail(err, CT_EINVAL,
                           "tools[%jd].function.name: '%.*s' is the name of tools[%zu] too",
                           (intmax_t)last->u.integer, CT_STR_ARG(shown(name)), i);
    }
    return CT_OK;
}

ct_status ct_chat_check_tools(ct_chat_builder *b, const ct_value *tools, ct_error *err)
{
    ct_status st = CT_OK;

    if (tools->kind != CT_VALUE_LIST) {
        st = ct_chat_must_be(tools, "an array", err);
        ct_error_prefix(err, "tools: ");
        return st;
    }
    if (tools->u.list.n > CT_CHAT_MAX_TOOLS)
        return ct_fail(err, CT_ELIMIT, "tools: %zu tools, at most %d", tools->u.list.n,
                       CT_CHAT_MAX_TOOLS);
    for (size_t i = 0; i < tools->u.list.n && !st; i++) {
        st = check_tool(b, &tools->u.list.item[i], err);
        if (st)
            ct_error_prefix(err, "tools[%zu]", i);
    }
    return st ? st : check_unique(tools, b->a, err);
}

/* ---- tool results ---- */

/* The calls that a result added now would answer, or NULL. */
static const ct_value *open_calls(const ct_chat_builder *b)
{
    const ct_value *turn = b->n_turns ? &b->message[b->n_turns - 1] : NULL, *calls;

    if (!turn || !is_role(turn, "assistant"))
        return NULL;
    calls = ct_value_get(turn, "tool_calls");
    /* The template looks at no tool messages when it has responses already. */
    if (!calls || !calls->u.list.n || ct_value_get(turn, "tool_responses"))
        return NULL;
    return calls;
}

ct_status ct_chat_check_result(const ct_chat_builder *b, const ct_value *id, const ct_value *name,
                               ct_error *err)
{
    const ct_value *calls = open_calls(b);

    if (!calls)
        return ct_fail(err, CT_EINVAL,
                       "a tool result must follow an assistant message with tool calls");
    for (size_t i = 0; id && i < calls->u.list.n; i++) {
        const ct_value *other = ct_value_get(&calls->u.list.item[i], "id");

        if (other && ct_str_eq(ct_value_text(other), ct_value_text(id)))
            return CT_OK;
    }
    if (name)
        return CT_OK;
    if (!id)
        return ct_fail(err, CT_EINVAL, "has neither tool_call_id nor name");
    return ct_fail(err, CT_EINVAL,
                   "'%.*s' is the id of none of the %zu calls before it, and there is no name",
                   CT_STR_ARG(shown(ct_value_text(id))), calls->u.list.n);
}

/* ---- the whole ---- */

static void put(ct_map_entry *e, size_t *n, const char *key, const ct_value *v)
{
    if (!ct_chat_is_null(v))
        e[(*n)++] = (ct_map_entry){ct_str_of(key), *v};
}

ct_status ct_chat_finish(ct_chat_request *out, ct_chat_builder *b, const ct_value *tools,
                         const ct_chat_options *options, ct_error *err)
{
    ct_value messages = ct_value_list(b->message, b->n, CT_LIST_LIST), fitted;
    ct_value yes = ct_value_bool(true);
    ct_map_entry *e = ct_arena_zalloc(b->a, 5, sizeof *e);
    size_t n = 0;
    ct_status st;

    if (!e)
        return no_memory(err);
    put(e, &n, "messages", &messages);
    if (tools) {
        st = ct_tools_for_template(&fitted, tools, b->a, err);
        if (st)
            return st;
        put(e, &n, "tools", &fitted);
    }
    put(e, &n, "add_generation_prompt",
        options->add_generation_prompt ? options->add_generation_prompt : &yes);
    put(e, &n, "enable_thinking", options->enable_thinking);
    put(e, &n, "preserve_thinking", options->preserve_thinking);
    if (!ct_value_build_map(&out->render, e, n, b->a))
        return no_memory(err);
    out->tools = tools;
    return CT_OK;
}
