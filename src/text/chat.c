#include "text/chat.h"

#include "base/checked.h"

typedef struct option {
    const char *name;
    ct_value_kind kind;
    bool required;
} option;

static const option options[] = {
    {"messages", CT_VALUE_LIST, true},
    {"tools", CT_VALUE_LIST, false},
    {"add_generation_prompt", CT_VALUE_BOOL, false},
    {"enable_thinking", CT_VALUE_BOOL, false},
    {"preserve_thinking", CT_VALUE_BOOL, false},
};

static ct_status must_be(const char *path, const char *what, const ct_value *v, ct_error *err)
{
    return ct_fail(err, CT_EINVAL, "%s: must be %s, not %s", path, what, ct_value_kind_name(v));
}

static ct_status check_keys(const ct_value *request, ct_error *err)
{
    for (size_t i = 0; i < request->u.map->n; i++) {
        ct_str key = request->u.map->entry[i].key;
        size_t k = 0;

        while (k < CT_LEN(options) && !ct_str_is(key, options[k].name))
            k++;
        if (k == CT_LEN(options))
            return ct_fail(err, CT_EINVAL, "unknown request key '%.*s'",
                           CT_STR_ARG(((ct_str){key.p, ct_min_size(key.n, 100)})));
    }
    return CT_OK;
}

static bool is_null(const ct_value *v)
{
    return !v || v->kind == CT_VALUE_NONE;
}

static ct_status check_options(const ct_value *request, ct_error *err)
{
    for (size_t k = 0; k < CT_LEN(options); k++) {
        const ct_value *v = ct_value_get(request, options[k].name);
        const char *what = options[k].kind == CT_VALUE_BOOL ? "a boolean" : "an array";

        if (!v && options[k].required)
            return ct_fail(err, CT_EINVAL, "%s: is missing", options[k].name);
        if (is_null(v) && !options[k].required)
            continue;
        if (v->kind != options[k].kind)
            return must_be(options[k].name, what, v, err);
    }
    return CT_OK;
}

static ct_status check_optional(const ct_value *message, size_t i, const char *name,
                                ct_value_kind kind, const char *what, ct_error *err)
{
    const ct_value *v = ct_value_get(message, name);
    ct_status st;

    if (is_null(v) || v->kind == kind)
        return CT_OK;
    st = must_be(name, what, v, err);
    ct_error_prefix(err, "messages[%zu].", i);
    return st;
}

static ct_status check_messages(const ct_value *messages, ct_error *err)
{
    ct_status st = CT_OK;

    for (size_t i = 0; i < messages->u.list.n && !st; i++) {
        const ct_value *m = &messages->u.list.item[i], *role = ct_value_get(m, "role");

        if (m->kind != CT_VALUE_MAP)
            return ct_fail(err, CT_EINVAL, "messages[%zu]: must be an object, not %s", i,
                           ct_value_kind_name(m));
        if (!role)
            return ct_fail(err, CT_EINVAL, "messages[%zu].role: is missing", i);
        if (role->kind != CT_VALUE_STRING)
            return ct_fail(err, CT_EINVAL, "messages[%zu].role: must be a string, not %s", i,
                           ct_value_kind_name(role));
        st = check_optional(m, i, "tool_calls", CT_VALUE_LIST, "an array", err);
        if (!st)
            st = check_optional(m, i, "tool_call_id", CT_VALUE_STRING, "a string", err);
    }
    return st;
}

static ct_status check_tools(const ct_value *tools, ct_error *err)
{
    if (is_null(tools))
        return CT_OK;
    for (size_t i = 0; i < tools->u.list.n; i++)
        if (tools->u.list.item[i].kind != CT_VALUE_MAP)
            return ct_fail(err, CT_EINVAL, "tools[%zu]: must be an object, not %s", i,
                           ct_value_kind_name(&tools->u.list.item[i]));
    return CT_OK;
}

static ct_status check(const ct_value *request, ct_error *err)
{
    ct_status st;

    if (request->kind != CT_VALUE_MAP)
        return must_be("request", "an object", request, err);
    st = check_keys(request, err);
    if (!st)
        st = check_options(request, err);
    if (!st)
        st = check_messages(ct_value_get(request, "messages"), err);
    return st ? st : check_tools(ct_value_get(request, "tools"), err);
}

ct_status ct_chat_render(const ct_jinja *template, ct_str bos_text, const ct_value *request,
                         ct_arena *a, ct_buf *out, ct_error *err)
{
    ct_map_entry *var;
    ct_value vars;
    size_t n = 0;
    ct_status st = check(request, err);

    if (st)
        return st;
    var = ct_arena_zalloc(a, CT_LEN(options) + 2, sizeof *var);
    if (!var)
        return ct_fail(err, CT_ELIMIT, "the request exceeds the memory bound");
    var[n++] = (ct_map_entry){CT_STR("bos_token"), ct_value_str(bos_text)};
    /* Overwritten below when the request has it. */
    var[n++] = (ct_map_entry){CT_STR("add_generation_prompt"), ct_value_bool(false)};
    for (size_t k = 0; k < CT_LEN(options); k++) {
        const ct_value *v = ct_value_get(request, options[k].name);

        if (!is_null(v))
            var[n++] = (ct_map_entry){ct_str_of(options[k].name), *v};
    }
    if (!ct_value_build_map(&vars, var, n, a))
        return ct_fail(err, CT_ELIMIT, "the request exceeds the memory bound");
    return ct_jinja_render(template, &vars, a, out, err);
}
