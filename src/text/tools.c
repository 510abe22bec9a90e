#include "text/tools.h"

/* What stands where something else is wanted, for messages. */
static const char *kind_of(const ct_value *v)
{
    return v ? ct_value_kind_name(v) : "absent";
}

static ct_status tool_from(ct_tool *out, const ct_value *v, size_t i, ct_error *err)
{
    const ct_value *type = ct_value_get(v, "type"), *function = ct_value_get(v, "function");
    const ct_value *name = ct_value_get(function, "name");
    const ct_value *parameters = ct_value_get(function, "parameters");

    if (v->kind != CT_VALUE_MAP)
        return ct_fail(err, CT_EINVAL, "tools[%zu]: must be an object, not %s", i,
                       ct_value_kind_name(v));
    if (type && type->kind != CT_VALUE_STRING)
        return ct_fail(err, CT_EINVAL, "tools[%zu].type: must be a string, not %s", i,
                       ct_value_kind_name(type));
    if (type && !ct_str_is(ct_value_text(type), "function"))
        return ct_fail(err, CT_EINVAL, "tools[%zu].type: \"%.*s\" is not served, only \"function\"",
                       i, CT_STR_ARG(ct_value_text(type)));
    if (!function || function->kind != CT_VALUE_MAP)
        return ct_fail(err, CT_EINVAL, "tools[%zu].function: must be an object, not %s", i,
                       kind_of(function));
    if (!name || name->kind != CT_VALUE_STRING)
        return ct_fail(err, CT_EINVAL, "tools[%zu].function.name: must be a string, not %s", i,
                       kind_of(name));
    if (!name->u.text.n)
        return ct_fail(err, CT_EINVAL, "tools[%zu].function.name: must not be empty", i);
    if (parameters && parameters->kind == CT_VALUE_NONE)
        parameters = NULL;
    if (parameters && parameters->kind != CT_VALUE_MAP)
        return ct_fail(err, CT_EINVAL, "tools[%zu].function.parameters: must be an object, not %s",
                       i, ct_value_kind_name(parameters));
    *out = (ct_tool){ct_value_text(name), parameters};
    return CT_OK;
}

ct_status ct_tools_from(ct_tools *out, const ct_value *list, ct_arena *a, ct_error *err)
{
    ct_tool *tool;
    ct_status st;
    size_t n;

    if (!list || list->kind == CT_VALUE_NONE) {
        *out = (ct_tools){0};
        return CT_OK;
    }
    if (list->kind != CT_VALUE_LIST)
        return ct_fail(err, CT_EINVAL, "tools: must be an array, not %s", ct_value_kind_name(list));
    n = list->u.list.n;
    tool = ct_arena_zalloc(a, n, sizeof *tool);
    if (!tool)
        return ct_fail(err, CT_ELIMIT, "tools: %zu tools exceed the memory of the request", n);
    for (size_t i = 0; i < n; i++) {
        st = tool_from(&tool[i], &list->u.list.item[i], i, err);
        if (st)
            return st;
    }
    *out = (ct_tools){tool, n};
    return CT_OK;
}

const ct_tool *ct_tools_find(const ct_tools *tools, ct_str name)
{
    for (size_t i = 0; tools && i < tools->n; i++)
        if (ct_str_eq(tools->tool[i].name, name))
            return &tools->tool[i];
    return NULL;
}

/* Letters, digits, '_', the signs that occur between the parts of names, and everything
 * beyond ASCII. */
static bool is_name_char(unsigned char c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
           c >= 0x80 || (c && strchr("_-.:/$", c));
}

static bool matches(ct_str name, ct_str text)
{
    return text.n >= name.n && memcmp(text.p, name.p, name.n) == 0 &&
           (text.n == name.n || !is_name_char((unsigned char)text.p[name.n]));
}

const ct_tool *ct_tools_match(const ct_tools *tools, ct_str text)
{
    const ct_tool *best = NULL;

    for (size_t i = 0; tools && i < tools->n; i++) {
        const ct_tool *t = &tools->tool[i];

        if (matches(t->name, text) && (!best || t->name.n > best->name.n))
            best = t;
    }
    return best;
}
