#include "text/schema_hints.h"

#include "base/checked.h"

/* Schemas looked at for one question.  A client's schema may be of any size and its
 * references may run in circles; real ones need a handful. */
#define MAX_VISITS 64
#define MAX_NEST   8

/* One walk over a schema, its references and its branches. */
typedef struct walk {
    const ct_value *root;
    unsigned visits;
} walk;

/* False ends the walk. */
typedef bool visit_fn(void *ctx, const ct_value *schema);

/* "#", "#/$defs/x" or "#/definitions/x/properties/y"; escapes in the pointer ("~1") name
 * nothing here, and what is not found stays unknown. */
static const ct_value *follow(const ct_value *root, ct_str ref)
{
    const ct_value *v = root;
    size_t at = 1;

    if (!ref.n || ref.p[0] != '#')
        return NULL;
    while (v && at < ref.n) {
        size_t end = at + 1;

        if (ref.p[at] != '/' || v->kind != CT_VALUE_MAP)
            return NULL;
        while (end < ref.n && ref.p[end] != '/')
            end++;
        v = ct_map_find(v->u.map, (ct_str){ref.p + at + 1, end - at - 1});
        at = end;
    }
    return v;
}

static bool visit_schema(walk *w, const ct_value *s, unsigned nest, visit_fn *fn, void *ctx);

static bool visit_branches(walk *w, const ct_value *list, unsigned nest, visit_fn *fn, void *ctx)
{
    if (!list || list->kind != CT_VALUE_LIST)
        return true;
    for (size_t i = 0; i < list->u.list.n; i++)
        if (!visit_schema(w, &list->u.list.item[i], nest, fn, ctx))
            return false;
    return true;
}

/* Recursion is bounded by MAX_NEST. */
static bool visit_schema(walk *w, const ct_value *s, unsigned nest, visit_fn *fn, void *ctx)
{
    static const char *const branches[] = {"allOf", "anyOf", "oneOf"};
    const ct_value *ref;

    if (!s || s->kind != CT_VALUE_MAP)
        return true;
    if (w->visits == MAX_VISITS || nest == MAX_NEST)
        return false;
    w->visits++;
    if (!fn(ctx, s))
        return false;
    ref = ct_value_get(s, "$ref");
    if (ref && ref->kind == CT_VALUE_STRING &&
        !visit_schema(w, follow(w->root, ct_value_text(ref)), nest + 1, fn, ctx))
        return false;
    for (size_t i = 0; i < CT_LEN(branches); i++)
        if (!visit_branches(w, ct_value_get(s, branches[i]), nest + 1, fn, ctx))
            return false;
    return true;
}

static void walk_schema(const ct_value *root, const ct_value *s, visit_fn *fn, void *ctx)
{
    walk w = {.root = root};

    (void)visit_schema(&w, s, 0, fn, ctx);
}

/* Names in lower case, as in JSON Schema, or in upper case, as in OpenAPI dialects. */
static unsigned type_of_name(ct_str name)
{
    static const struct {
        const char *lower, *upper;
        unsigned bit;
    } types[] = {
        {"string", "STRING", CT_HINT_STRING},   {"number", "NUMBER", CT_HINT_NUMBER},
        {"integer", "INTEGER", CT_HINT_NUMBER}, {"boolean", "BOOLEAN", CT_HINT_BOOL},
        {"null", "NULL", CT_HINT_NULL},         {"array", "ARRAY", CT_HINT_ARRAY},
        {"object", "OBJECT", CT_HINT_OBJECT},
    };

    for (size_t i = 0; i < CT_LEN(types); i++)
        if (ct_str_is(name, types[i].lower) || ct_str_is(name, types[i].upper))
            return types[i].bit;
    return 0;
}

static unsigned type_of_value(const ct_value *v)
{
    switch ((ct_value_kind)v->kind) {
    case CT_VALUE_STRING:
        return CT_HINT_STRING;
    case CT_VALUE_INT:
    case CT_VALUE_BIGINT:
    case CT_VALUE_FLOAT:
        return CT_HINT_NUMBER;
    case CT_VALUE_BOOL:
        return CT_HINT_BOOL;
    case CT_VALUE_NONE:
        return CT_HINT_NULL;
    case CT_VALUE_LIST:
        return CT_HINT_ARRAY;
    case CT_VALUE_MAP:
        return CT_HINT_OBJECT;
    case CT_VALUE_UNDEFINED:
    case CT_VALUE_RANGE:
    case CT_VALUE_NAMESPACE:
    case CT_VALUE_CALLABLE:
    case CT_VALUE_METHOD:
    case CT_VALUE_LOOP:
        break;
    }
    return 0;
}

static unsigned types_of_names(const ct_value *type)
{
    unsigned bits = 0;

    if (type->kind == CT_VALUE_STRING)
        return type_of_name(ct_value_text(type));
    if (type->kind != CT_VALUE_LIST)
        return 0;
    for (size_t i = 0; i < ct_min_size(type->u.list.n, MAX_VISITS); i++)
        if (type->u.list.item[i].kind == CT_VALUE_STRING)
            bits |= type_of_name(ct_value_text(&type->u.list.item[i]));
    return bits;
}

static bool add_types(void *ctx, const ct_value *s)
{
    unsigned *bits = ctx;
    const ct_value *type = ct_value_get(s, "type"), *values = ct_value_get(s, "enum");
    const ct_value *constant = ct_value_get(s, "const"), *nullable = ct_value_get(s, "nullable");

    if (nullable && nullable->kind == CT_VALUE_BOOL && nullable->u.boolean)
        *bits |= CT_HINT_NULL;
    if (type) {
        *bits |= types_of_names(type);
    } else if (constant) {
        *bits |= type_of_value(constant);
    } else if (values && values->kind == CT_VALUE_LIST) {
        for (size_t i = 0; i < ct_min_size(values->u.list.n, MAX_VISITS); i++)
            *bits |= type_of_value(&values->u.list.item[i]);
    } else if (ct_value_get(s, "properties")) {
        *bits |= CT_HINT_OBJECT;
    }
    return true;
}

unsigned ct_hint_types(const ct_value *root, const ct_value *s)
{
    unsigned bits = 0;

    walk_schema(root, s, add_types, &bits);
    return bits;
}

static bool find_items(void *ctx, const ct_value *s)
{
    const ct_value **out = ctx, *items = ct_value_get(s, "items");

    if (items && items->kind == CT_VALUE_MAP)
        *out = items;
    return !*out;
}

const ct_value *ct_hint_items(const ct_value *root, const ct_value *s)
{
    const ct_value *items = NULL;

    walk_schema(root, s, find_items, &items);
    return items;
}

typedef struct member_search {
    ct_str key;
    const ct_value *declared, *additional;
    bool any, open; /* members are declared; others are announced */
} member_search;

static bool find_member(void *ctx, const ct_value *s)
{
    member_search *m = ctx;
    const ct_value *properties = ct_value_get(s, "properties");
    const ct_value *additional = ct_value_get(s, "additionalProperties");

    if (properties && properties->kind == CT_VALUE_MAP && properties->u.map->n) {
        m->any = true;
        m->declared = ct_map_find(properties->u.map, m->key);
    }
    if (additional && additional->kind == CT_VALUE_MAP && !m->additional)
        m->additional = additional;
    if (additional && (additional->kind != CT_VALUE_BOOL || additional->u.boolean))
        m->open = true;
    return !m->declared;
}

const ct_value *ct_hint_member(const ct_value *root, const ct_value *s, ct_str key)
{
    member_search m = {.key = key};

    walk_schema(root, s, find_member, &m);
    return m.declared ? m.declared : m.additional;
}

bool ct_hint_declares(const ct_value *root, const ct_value *s, ct_str key)
{
    member_search m = {.key = key};

    walk_schema(root, s, find_member, &m);
    return m.declared;
}

bool ct_hint_closed(const ct_value *root, const ct_value *s)
{
    member_search m = {.key = {NULL, 0}};

    walk_schema(root, s, find_member, &m);
    return m.any && !m.open;
}
