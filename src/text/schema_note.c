/* The compact notation of schemas: TypeScript's, which models read well. */
#include "base/checked.h"
#include "text/schema_merge.h"
#include "text/tool_schema.h"
#include "text/value_ops.h"

#include <strings.h>

static bool is_type(const ct_value *v, const char *name)
{
    return v && v->kind == CT_VALUE_STRING && v->u.text.n == strlen(name) &&
           strncasecmp(v->u.text.p, name, v->u.text.n) == 0;
}

static const char *type_of_value(const ct_value *v)
{
    switch ((ct_value_kind)v->kind) {
    case CT_VALUE_STRING:
        return "string";
    case CT_VALUE_BOOL:
        return "boolean";
    case CT_VALUE_INT:
    case CT_VALUE_BIGINT:
        return "integer";
    case CT_VALUE_FLOAT:
        return "number";
    case CT_VALUE_LIST:
        return "array";
    case CT_VALUE_MAP:
        return "object";
    case CT_VALUE_NONE:
        return "null";
    case CT_VALUE_UNDEFINED:
    case CT_VALUE_RANGE:
    case CT_VALUE_NAMESPACE:
    case CT_VALUE_CALLABLE:
    case CT_VALUE_METHOD:
    case CT_VALUE_LOOP:
        break;
    }
    return "";
}

/* The one type of the values that are allowed, null aside. */
static ct_str type_of_values(const ct_value *flat)
{
    const ct_value *only = ct_value_get(flat, "const"), *values = ct_value_get(flat, "enum");
    ct_str type = CT_STR("");

    if (only)
        return ct_str_of(type_of_value(only));
    if (!values || values->kind != CT_VALUE_LIST)
        return CT_STR("");
    for (size_t i = 0; i < values->u.list.n; i++) {
        ct_str t = ct_str_of(type_of_value(&values->u.list.item[i]));

        if (ct_str_is(t, "null") || ct_str_eq(t, type))
            continue;
        if (type.n)
            return CT_STR("");
        type = t;
    }
    return type;
}

/* Keywords that only one type can have. */
static ct_str type_of_keywords(const ct_value *flat)
{
    static const struct {
        const char *keyword, *type;
    } known[] = {
        {"properties", "object"},
        {"additionalProperties", "object"},
        {"required", "object"},
        {"patternProperties", "object"},
        {"items", "array"},
        {"prefixItems", "array"},
        {"minItems", "array"},
        {"maxItems", "array"},
        {"pattern", "string"},
        {"format", "string"},
        {"minLength", "string"},
        {"maxLength", "string"},
        {"minimum", "number"},
        {"maximum", "number"},
        {"multipleOf", "number"},
        {"exclusiveMinimum", "number"},
        {"exclusiveMaximum", "number"},
    };

    for (size_t i = 0; i < CT_LEN(known); i++)
        if (ct_value_get(flat, known[i].keyword))
            return ct_str_of(known[i].type);
    return CT_STR("");
}

ct_str ct_schema_type(const ct_value *flat)
{
    const ct_value *type = ct_value_get(flat, "type");
    ct_str t;

    if (type && type->kind == CT_VALUE_STRING && type->u.text.n)
        return ct_value_text(type);
    for (size_t i = 0; type && type->kind == CT_VALUE_LIST && i < type->u.list.n; i++)
        if (type->u.list.item[i].kind == CT_VALUE_STRING && type->u.list.item[i].u.text.n &&
            !is_type(&type->u.list.item[i], "null"))
            return ct_value_text(&type->u.list.item[i]);
    t = type_of_values(flat);
    return t.n ? t : type_of_keywords(flat);
}

static void put_value(ct_buf *out, const ct_value *v)
{
    ct_op_error e = {{0}};

    if (!ct_value_put_json(out, v, -1, &e))
        ct_buf_addz(out, "…");
}

static void put_values(ct_buf *out, const ct_value *list)
{
    for (size_t i = 0; i < list->u.list.n && !out->failed; i++) {
        ct_buf_addz(out, i ? " | " : "");
        put_value(out, &list->u.list.item[i]);
    }
}

static bool is_required(const ct_value *flat, ct_str name)
{
    const ct_value *r = ct_value_get(flat, "required");

    for (size_t i = 0; r && r->kind == CT_VALUE_LIST && i < r->u.list.n; i++)
        if (r->u.list.item[i].kind == CT_VALUE_STRING &&
            ct_str_eq(ct_value_text(&r->u.list.item[i]), name))
            return true;
    return false;
}

static void put_object(ct_schemas *s, ct_buf *out, const ct_value *flat)
{
    const ct_value *p = ct_value_get(flat, "properties");
    const ct_value *more = ct_value_get(flat, "additionalProperties");
    bool any = false;

    if ((!p || p->kind != CT_VALUE_MAP) && (!more || more->kind != CT_VALUE_MAP)) {
        ct_buf_addz(out, "object");
        return;
    }
    ct_buf_addc(out, '{');
    for (size_t i = 0; p && p->kind == CT_VALUE_MAP && i < p->u.map->n && !out->failed; i++) {
        const ct_map_entry *e = &p->u.map->entry[i];

        ct_buf_addz(out, any ? ", " : "");
        ct_buf_add(out, e->key.p, e->key.n);
        ct_buf_addz(out, is_required(flat, e->key) ? ": " : "?: ");
        ct_schema_put_note(s, out, &e->value);
        any = true;
    }
    if (more && more->kind == CT_VALUE_MAP) {
        ct_buf_addz(out, any ? ", [key]: " : "[key]: ");
        ct_schema_put_note(s, out, more);
    }
    ct_buf_addc(out, '}');
}

static void put_array(ct_schemas *s, ct_buf *out, const ct_value *flat)
{
    const ct_value *items = ct_value_get(flat, "items");
    const ct_value *first = ct_value_get(flat, "prefixItems");

    first = first ? first : items;
    if (first && first->kind == CT_VALUE_LIST) {
        ct_buf_addc(out, '[');
        for (size_t i = 0; i < first->u.list.n && !out->failed; i++) {
            ct_buf_addz(out, i ? ", " : "");
            ct_schema_put_note(s, out, &first->u.list.item[i]);
        }
        ct_buf_addc(out, ']');
    } else if (items && items->kind == CT_VALUE_MAP && items->u.map->n) {
        ct_buf_addz(out, "array of ");
        ct_schema_put_note(s, out, items);
    } else {
        ct_buf_addz(out, "array");
    }
}

static void put_type(ct_schemas *s, ct_buf *out, const ct_value *flat, const ct_value *type)
{
    if (is_type(type, "object"))
        put_object(s, out, flat);
    else if (is_type(type, "array"))
        put_array(s, out, flat);
    else
        ct_buf_add(out, type->u.text.p, type->u.text.n);
}

size_t ct_schema_put_types(ct_schemas *s, ct_buf *out, const ct_value *flat, bool null)
{
    const ct_value *list = ct_value_get(flat, "type");
    size_t n = 0;

    for (size_t i = 0; list && list->kind == CT_VALUE_LIST && i < list->u.list.n; i++) {
        const ct_value *t = &list->u.list.item[i];

        if (t->kind != CT_VALUE_STRING || (!null && is_type(t, "null")))
            continue;
        ct_buf_addz(out, n++ ? " | " : "");
        put_type(s, out, flat, t);
    }
    return n;
}

static void put_body(ct_schemas *s, ct_buf *out, const ct_value *flat)
{
    const ct_value *only = ct_value_get(flat, "const"), *values = ct_value_get(flat, "enum");
    const ct_value *type = ct_value_get(flat, "type");
    ct_str t = ct_schema_type(flat);

    if (only)
        put_value(out, only);
    else if (values && values->kind == CT_VALUE_LIST && values->u.list.n)
        put_values(out, values);
    else if (type && type->kind == CT_VALUE_LIST && type->u.list.n > 1)
        ct_schema_put_types(s, out, flat, true);
    else if (ct_str_is(t, "object"))
        put_object(s, out, flat);
    else if (ct_str_is(t, "array"))
        put_array(s, out, flat);
    else if (t.n)
        ct_buf_add(out, t.p, t.n);
    else
        ct_buf_addz(out, "any");
}

/* The description, and what flattening had to say, behind the form. */
static void put_remarks(ct_buf *out, const ct_value *flat, const ct_value *note)
{
    const ct_value *d = ct_value_get(flat, "description");
    bool has = d && d->kind == CT_VALUE_STRING && d->u.text.n;

    if (!has && !note)
        return;
    ct_buf_addz(out, " (");
    if (has)
        ct_buf_add(out, d->u.text.p, d->u.text.n);
    ct_buf_addz(out, has && note ? "; " : "");
    if (note)
        ct_buf_add(out, note->u.text.p, note->u.text.n);
    ct_buf_addc(out, ')');
}

void ct_schema_put_note(ct_schemas *s, ct_buf *out, const ct_value *schema)
{
    static const char alternatives[] = "Type: ";
    const ct_value *null, *note;
    unsigned open = s->n_open;
    ct_value flat;

    if (out->n >= CT_SCHEMA_MAX_NOTE_BYTES / 2 || s->full) {
        ct_buf_addz(out, "…");
        return;
    }
    flat = ct_schema_flatten(s, schema);
    s->depth++;
    note = ct_schema_note(&flat);
    if (note && ct_str_starts(ct_value_text(note), alternatives)) {
        size_t n = sizeof alternatives - 1;

        /* A union's note is its form. */
        ct_buf_add(out, note->u.text.p + n, note->u.text.n - n);
        note = NULL;
    } else {
        put_body(s, out, &flat);
    }
    null = ct_value_get(&flat, "nullable");
    if (null && null->kind == CT_VALUE_BOOL && null->u.boolean)
        ct_buf_addz(out, " | null");
    put_remarks(out, &flat, note);
    s->depth--;
    s->n_open = open;
}
