#include "text/tool_schema.h"

#include "base/checked.h"
#include "text/schema_merge.h"
#include "text/value_ops.h"

#include <strings.h>

/* Where the template prints a schema decides what it can show. */
typedef enum place {
    PLACE_ROOT,     /* `parameters`: properties, required and type */
    PLACE_PROPERTY, /* the parts of tool_schema.h, others dropped */
    PLACE_ITEMS,    /* every keyword, by the value printer */
    PLACE_DUMP,     /* within one of those: everything, as JSON */
} place;

static place properties_place(place p)
{
    return p == PLACE_DUMP ? PLACE_DUMP : PLACE_PROPERTY;
}

static place items_place(place p)
{
    return p == PLACE_ITEMS || p == PLACE_DUMP ? PLACE_DUMP : PLACE_ITEMS;
}

static bool prints_all(place p)
{
    return p == PLACE_ITEMS || p == PLACE_DUMP;
}

static bool is_word(const ct_value *v, const char *word)
{
    return v && v->kind == CT_VALUE_STRING && v->u.text.n == strlen(word) &&
           strncasecmp(v->u.text.p, word, v->u.text.n) == 0;
}

static bool strings_only(const ct_value *list)
{
    for (size_t i = 0; i < list->u.list.n; i++)
        if (list->u.list.item[i].kind != CT_VALUE_STRING)
            return false;
    return true;
}

static bool is_one_of(ct_str key, const char *const *names, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (ct_str_is(key, names[i]))
            return true;
    return false;
}

/* ---- is a schema beyond the template's reach? ---- */

/* An object without properties has its other keywords printed as properties. */
static bool bare_object_is_odd(const ct_value *schema)
{
    static const char *const fine[] = {"description", "type", "required", "nullable"};

    for (size_t i = 0; i < schema->u.map->n; i++) {
        const ct_map_entry *e = &schema->u.map->entry[i];
        bool open = ct_str_is(e->key, "additionalProperties") && e->value.kind == CT_VALUE_BOOL;

        if (!open && !is_one_of(e->key, fine, CT_LEN(fine)))
            return true;
    }
    return false;
}

static bool beyond(const ct_value *schema, place p);

static bool properties_beyond(const ct_value *properties, place p)
{
    if (properties->kind != CT_VALUE_MAP)
        return true;
    for (size_t i = 0; i < properties->u.map->n; i++)
        if (beyond(&properties->u.map->entry[i].value, properties_place(p)))
            return true;
    return false;
}

static bool enum_beyond(const ct_value *schema, const ct_value *values, place p)
{
    if (prints_all(p))
        return false;
    return values->kind != CT_VALUE_LIST || !strings_only(values) ||
           !is_word(ct_value_get(schema, "type"), "string");
}

static bool type_beyond(const ct_value *schema, place p)
{
    const ct_value *type = ct_value_get(schema, "type");

    if (!type)
        return !prints_all(p);
    if (type->kind == CT_VALUE_LIST && prints_all(p))
        return !strings_only(type) || !type->u.list.n;
    return type->kind != CT_VALUE_STRING || !type->u.text.n;
}

static bool keyword_beyond(const ct_value *schema, const ct_map_entry *e, place p)
{
    static const char *const always[] = {"$ref",  "allOf",       "anyOf",
                                         "oneOf", "prefixItems", "patternProperties"};

    if (is_one_of(e->key, always, CT_LEN(always)))
        return true;
    if (ct_str_is(e->key, "$defs") || ct_str_is(e->key, "definitions"))
        return p != PLACE_ROOT;
    if (ct_str_is(e->key, "const"))
        return !prints_all(p);
    if (ct_str_is(e->key, "enum"))
        return enum_beyond(schema, &e->value, p);
    if (ct_str_is(e->key, "items"))
        return e->value.kind != CT_VALUE_MAP || beyond(&e->value, items_place(p));
    if (ct_str_is(e->key, "properties"))
        return properties_beyond(&e->value, p);
    if (ct_str_is(e->key, "additionalProperties"))
        return e->value.kind == CT_VALUE_MAP && e->value.u.map->n;
    if (ct_str_is(e->key, "required"))
        return e->value.kind != CT_VALUE_LIST || !strings_only(&e->value);
    if (ct_str_is(e->key, "description"))
        return e->value.kind != CT_VALUE_STRING;
    return ct_str_is(e->key, "nullable") && e->value.kind != CT_VALUE_BOOL;
}

/* Recursion is bounded by the depth of the request's JSON. */
static bool beyond(const ct_value *schema, place p)
{
    if (schema->kind != CT_VALUE_MAP)
        return true;
    if (!schema->u.map->n && prints_all(p))
        return false;
    if (type_beyond(schema, p))
        return true;
    for (size_t i = 0; i < schema->u.map->n; i++)
        if (keyword_beyond(schema, &schema->u.map->entry[i], p))
            return true;
    return p == PLACE_PROPERTY && is_word(ct_value_get(schema, "type"), "object") &&
           !ct_value_get(schema, "properties") && bare_object_is_odd(schema);
}

/* ---- simplifying ---- */

static ct_value simplify(ct_schemas *s, const ct_value *schema, place p);

static void put_text(ct_schemas *s, ct_fields *f, const char *key, ct_str text)
{
    ct_value v = ct_value_str(text);

    ct_fields_put(s, f, ct_str_of(key), &v);
}

static void put_flag(ct_schemas *s, ct_fields *f, const char *key)
{
    ct_value v = ct_value_bool(true);

    ct_fields_put(s, f, ct_str_of(key), &v);
}

/* A note that begins with a label and goes on with a schema's compact form. */
static void note_schema(ct_schemas *s, ct_fields *f, const char *label, ct_str name,
                        const ct_value *schema)
{
    ct_buf b;

    ct_buf_init(&b, (size_t)4 * CT_SCHEMA_MAX_NOTE_BYTES);
    ct_buf_addz(&b, label);
    ct_buf_add(&b, name.p, ct_min_size(name.n, 200));
    ct_buf_addz(&b, name.n ? ": " : "");
    ct_schema_put_note(s, &b, schema);
    ct_schema_add_note(s, f, ct_buf_str(&b));
    ct_buf_deinit(&b);
}

static void note_values(ct_schemas *s, ct_fields *f, const char *label, const ct_value *v, size_t n)
{
    ct_op_error e = {{0}};
    ct_buf b;

    ct_buf_init(&b, (size_t)4 * CT_SCHEMA_MAX_NOTE_BYTES);
    ct_buf_addz(&b, label);
    for (size_t i = 0; i < n; i++) {
        if (b.n >= CT_SCHEMA_MAX_NOTE_BYTES) {
            ct_buf_addf(&b, ", … (%zu in all)", n);
            break;
        }
        ct_buf_addz(&b, i ? ", " : "");
        if (!ct_value_put_json(&b, &v[i], -1, &e))
            ct_buf_addz(&b, "…");
    }
    ct_schema_add_note(s, f, ct_buf_str(&b));
    ct_buf_deinit(&b);
}

/* The strings of a list without its nulls; *null says whether there were any. */
static ct_value without_null(ct_schemas *s, const ct_value *list, bool *null)
{
    ct_value *item = ct_arena_zalloc(s->a, list->u.list.n, sizeof *item);
    size_t n = 0;

    *null = false;
    s->full = s->full || !item;
    for (size_t i = 0; item && i < list->u.list.n; i++) {
        if (list->u.list.item[i].kind == CT_VALUE_NONE)
            *null = true;
        else
            item[n++] = list->u.list.item[i];
    }
    return ct_value_list(item, n, CT_LIST_LIST);
}

/* `enum` and `const`. */
static void put_values(ct_schemas *s, ct_fields *f, const ct_value *flat, place p)
{
    const ct_value *values = ct_value_get(flat, "enum"), *only = ct_value_get(flat, "const");
    ct_str type = ct_schema_type(flat);
    ct_value list;
    bool null = false;

    if (values && prints_all(p))
        ct_fields_put(s, f, CT_STR("enum"), values);
    if (only && prints_all(p))
        ct_fields_put(s, f, CT_STR("const"), only);
    if (prints_all(p) || (!only && (!values || values->kind != CT_VALUE_LIST)))
        return;
    list = only ? ct_value_list(only, 1, CT_LIST_LIST) : without_null(s, values, &null);
    if (null)
        put_flag(s, f, "nullable");
    if (!list.u.list.n)
        return;
    if (strings_only(&list) && ct_str_is(type, "string"))
        ct_fields_put(s, f, CT_STR("enum"), &list);
    else
        note_values(s, f, only ? "Always " : "Allowed: ", list.u.list.item, list.u.list.n);
}

static bool all_null(const ct_value *list)
{
    for (size_t i = 0; i < list->u.list.n; i++)
        if (!is_word(&list->u.list.item[i], "null"))
            return false;
    return true;
}

/* Several types: the first is printed, all are noted. */
static void note_types(ct_schemas *s, ct_fields *f, const ct_value *flat)
{
    ct_buf b;

    ct_buf_init(&b, (size_t)4 * CT_SCHEMA_MAX_NOTE_BYTES);
    ct_buf_addz(&b, "Type: ");
    if (ct_schema_put_types(s, &b, flat, false) > 1)
        ct_schema_add_note(s, f, ct_buf_str(&b));
    ct_buf_deinit(&b);
}

static void put_type(ct_schemas *s, ct_fields *f, const ct_value *flat, place p)
{
    const ct_value *type = ct_value_get(flat, "type");
    ct_str t = ct_schema_type(flat);
    bool list = type && type->kind == CT_VALUE_LIST && type->u.list.n;

    if (list && prints_all(p) && strings_only(type)) {
        ct_fields_put(s, f, CT_STR("type"), type);
        return;
    }
    if (list && all_null(type)) {
        put_text(s, f, "type", CT_STR("null"));
        return;
    }
    if (t.n)
        put_text(s, f, "type", t);
    else if (!prints_all(p))
        put_text(s, f, "type", CT_STR("any"));
    for (size_t i = 0; list && i < type->u.list.n; i++)
        if (is_word(&type->u.list.item[i], "null"))
            put_flag(s, f, "nullable");
    if (list)
        note_types(s, f, flat);
}

static bool is_array(const ct_value *flat)
{
    ct_value type = ct_value_str(ct_schema_type(flat));

    return is_word(&type, "array");
}

static void put_items(ct_schemas *s, ct_fields *f, const ct_value *flat, place p)
{
    const ct_value *items = ct_value_get(flat, "items");
    const ct_value *tuple = ct_value_get(flat, "prefixItems");
    ct_value v;

    if (items && items->kind == CT_VALUE_LIST)
        tuple = items;
    if (tuple && tuple->kind == CT_VALUE_LIST && is_array(flat)) {
        note_schema(s, f, "Items in order: ", CT_STR(""), flat);
        return;
    }
    /* Elsewhere it is no part of the form, and an object would have it for a property. */
    if (!items || items->kind != CT_VALUE_MAP || !(is_array(flat) || prints_all(p)))
        return;
    v = simplify(s, items, items_place(p));
    ct_fields_put(s, f, CT_STR("items"), &v);
}

static void put_properties(ct_schemas *s, ct_fields *f, const ct_value *flat, place p)
{
    const ct_value *properties = ct_value_get(flat, "properties");
    ct_fields out = {0};
    ct_value v;

    if (!properties || properties->kind != CT_VALUE_MAP)
        return;
    for (size_t i = 0; i < properties->u.map->n && !s->full; i++) {
        v = simplify(s, &properties->u.map->entry[i].value, properties_place(p));
        ct_fields_put(s, &out, properties->u.map->entry[i].key, &v);
    }
    v = ct_fields_map(s, &out);
    ct_fields_put(s, f, CT_STR("properties"), &v);
}

/* Properties whose names the schema leaves open. */
static void note_open_properties(ct_schemas *s, ct_fields *f, const ct_value *flat)
{
    const ct_value *more = ct_value_get(flat, "additionalProperties");
    const ct_value *patterns = ct_value_get(flat, "patternProperties");

    if (more && more->kind == CT_VALUE_MAP && more->u.map->n)
        note_schema(
            s, f, ct_value_get(flat, "properties") ? "Other keys: " : "Values: ", CT_STR(""), more);
    for (size_t i = 0; patterns && patterns->kind == CT_VALUE_MAP && i < patterns->u.map->n; i++)
        note_schema(s, f, "Keys like ", patterns->u.map->entry[i].key,
                    &patterns->u.map->entry[i].value);
}

static void put_required(ct_schemas *s, ct_fields *f, const ct_value *flat)
{
    const ct_value *required = ct_value_get(flat, "required");
    ct_value *item;
    size_t n = 0;

    if (required && required->kind == CT_VALUE_BOOL && required->u.boolean)
        ct_schema_add_note(s, f, CT_STR("Required"));
    if (!required || required->kind != CT_VALUE_LIST)
        return;
    item = ct_arena_zalloc(s->a, required->u.list.n, sizeof *item);
    s->full = s->full || !item;
    for (size_t i = 0; item && i < required->u.list.n; i++)
        if (required->u.list.item[i].kind == CT_VALUE_STRING)
            item[n++] = required->u.list.item[i];
    if (n) {
        ct_value v = ct_value_list(item, n, CT_LIST_LIST);

        ct_fields_put(s, f, CT_STR("required"), &v);
    }
}

/* Keywords of which nothing is made here: kept where the template prints them, and
 * where it drops them; not where it would take them for properties. */
static void put_others(ct_schemas *s, ct_fields *f, const ct_value *flat, place p)
{
    static const char *const handled[] = {
        "description", "type",       "enum",     "const",    "items",
        "prefixItems", "properties", "required", "nullable", "patternProperties",
    };
    ct_value type = ct_value_str(ct_schema_type(flat));
    bool bare = p == PLACE_PROPERTY && is_word(&type, "object") &&
                (!ct_value_get(flat, "properties") ||
                 ct_value_get(flat, "properties")->kind != CT_VALUE_MAP);

    for (size_t i = 0; i < flat->u.map->n; i++) {
        const ct_map_entry *e = &flat->u.map->entry[i];
        bool more = ct_str_is(e->key, "additionalProperties");

        if (e->key.p == ct_schema_note_key().p || is_one_of(e->key, handled, CT_LEN(handled)) ||
            (more && e->value.kind != CT_VALUE_BOOL) || (bare && !more))
            continue;
        ct_fields_put(s, f, e->key, &e->value);
    }
}

/* `text` and then the notes, as sentences. */
static ct_str with_notes(ct_schemas *s, const ct_value *text, ct_str notes)
{
    const char *p;
    ct_buf b;

    if (!notes.n)
        return text ? ct_value_text(text) : CT_STR("");
    ct_buf_init(&b, SIZE_MAX);
    if (text && text->u.text.n) {
        ct_str t = ct_value_text(text);

        ct_buf_add(&b, t.p, t.n);
        ct_buf_addz(&b, memchr(".!?:;", t.p[t.n - 1], 5) ? " " : ". ");
    }
    ct_buf_add(&b, notes.p, notes.n);
    ct_buf_addc(&b, '.');
    p = b.failed ? NULL : ct_arena_copy(s->a, b.p, b.n);
    s->full = s->full || !p;
    notes = (ct_str){p, p ? b.n : 0};
    ct_buf_deinit(&b);
    return notes;
}

/* Takes the note out of f and gives its text. */
static ct_str take_note(ct_fields *f)
{
    for (size_t i = 0; i < f->n; i++)
        if (f->entry[i].key.p == ct_schema_note_key().p) {
            ct_str note = ct_value_text(&f->entry[i].value);

            memmove(&f->entry[i], &f->entry[i + 1], (--f->n - i) * sizeof *f->entry);
            return note;
        }
    return CT_STR("");
}

static void put_description(ct_schemas *s, ct_fields *f, const ct_value *flat)
{
    const ct_value *text = ct_value_get(flat, "description");
    ct_str out;

    if (text && text->kind != CT_VALUE_STRING) {
        if (text->kind != CT_VALUE_NONE)
            note_values(s, f, "", text, 1);
        text = NULL;
    }
    out = with_notes(s, text, take_note(f));
    if (out.n)
        put_text(s, f, "description", out);
}

static ct_value print_flat(ct_schemas *s, const ct_value *flat, place p)
{
    const ct_value *nullable = ct_value_get(flat, "nullable"), *note = ct_schema_note(flat);
    ct_fields f = {0};

    if (note)
        ct_schema_add_note(s, &f, ct_value_text(note));
    put_others(s, &f, flat, p);
    put_type(s, &f, flat, p);
    put_values(s, &f, flat, p);
    put_items(s, &f, flat, p);
    put_properties(s, &f, flat, p);
    note_open_properties(s, &f, flat);
    put_required(s, &f, flat);
    if (nullable && ct_value_truth(nullable))
        put_flag(s, &f, "nullable");
    put_description(s, &f, flat);
    return ct_fields_map(s, &f);
}

/* Depth is bounded: flattening gives an empty mapping below CT_SCHEMA_MAX_DEPTH. */
static ct_value simplify(ct_schemas *s, const ct_value *schema, place p)
{
    unsigned open = s->n_open;
    ct_value flat = ct_schema_flatten(s, schema), out;

    s->depth++;
    out = print_flat(s, &flat, p);
    s->depth--;
    s->n_open = open;
    return out;
}

/* ---- tools ---- */

static ct_status check_root(const ct_value *parameters, ct_error *err)
{
    const ct_value *type = ct_value_get(parameters, "type");

    if (parameters->kind == CT_VALUE_BOOL)
        return CT_OK;
    if (parameters->kind != CT_VALUE_MAP)
        return ct_fail(err, CT_EINVAL, "parameters: must be an object, not %s",
                       ct_value_kind_name(parameters));
    if (type && type->kind == CT_VALUE_STRING && !is_word(type, "object"))
        return ct_fail(err, CT_EINVAL, "parameters.type: must be \"object\", not \"%.*s\"",
                       CT_STR_ARG(ct_value_text(type)));
    return CT_OK;
}

/* In the function's description a form must say whose it is. */
static void add_root_note(ct_schemas *s, ct_fields *f, ct_str note)
{
    ct_buf b;

    ct_buf_init(&b, SIZE_MAX);
    if (ct_str_starts(note, "Type: ")) {
        ct_buf_addz(&b, "Arguments");
        note = (ct_str){note.p + 4, note.n - 4};
    }
    ct_buf_add(&b, note.p, note.n);
    ct_schema_add_note(s, f, ct_buf_str(&b));
    ct_buf_deinit(&b);
}

/* `parameters`, simplified; *note gets what only the function's description can hold. */
static ct_value simplify_root(ct_schemas *s, const ct_value *parameters, ct_str *note)
{
    unsigned open = s->n_open;
    ct_value object = ct_value_str(CT_STR("object")), flat, out;
    ct_fields f = {0};

    s->root = parameters;
    flat = ct_schema_flatten(s, parameters);
    s->depth++;
    if (ct_schema_note(&flat))
        add_root_note(s, &f, ct_value_text(ct_schema_note(&flat)));
    put_properties(s, &f, &flat, PLACE_ROOT);
    put_required(s, &f, &flat);
    note_open_properties(s, &f, &flat);
    s->depth--;
    s->n_open = open;
    *note = take_note(&f);
    ct_fields_put(s, &f, CT_STR("type"), &object);
    out = ct_fields_map(s, &f);
    return out;
}

/* The template closes a response's brace only for type object. */
static bool response_fits(const ct_value *response)
{
    const ct_value *d = ct_value_get(response, "description");

    return is_word(ct_value_get(response, "type"), "object") && (!d || d->kind == CT_VALUE_STRING);
}

static ct_str join_notes(ct_schemas *s, ct_str x, ct_str y)
{
    ct_fields f = {0};

    if (x.n)
        ct_schema_add_note(s, &f, x);
    if (y.n)
        ct_schema_add_note(s, &f, y);
    return take_note(&f);
}

static ct_str note_response(ct_schemas *s, const ct_value *response)
{
    ct_fields f = {0};

    s->root = response;
    note_schema(s, &f, "Returns: ", CT_STR(""), response);
    return take_note(&f);
}

static void replace(ct_schemas *s, ct_value *map, const char *key, const ct_value *v)
{
    if (!ct_value_with(map, map, ct_str_of(key), v, s->a))
        s->full = true;
}

static void drop(ct_schemas *s, ct_value *map, const char *key)
{
    ct_fields f = {0};

    for (size_t i = 0; i < map->u.map->n; i++)
        if (!ct_str_is(map->u.map->entry[i].key, key))
            ct_fields_put(s, &f, map->u.map->entry[i].key, &map->u.map->entry[i].value);
    *map = ct_fields_map(s, &f);
}

static ct_status fit_function(ct_schemas *s, ct_value *f, ct_error *err)
{
    const ct_value *parameters = ct_value_get(f, "parameters"), *text;
    const ct_value *response = ct_value_get(f, "response");
    ct_str note = CT_STR(""), more = CT_STR("");
    ct_value v;

    if (parameters && parameters->kind != CT_VALUE_NONE) {
        ct_status st = check_root(parameters, err);

        if (st)
            return st;
        if (parameters->kind == CT_VALUE_MAP && parameters->u.map->n &&
            beyond(parameters, PLACE_ROOT)) {
            v = simplify_root(s, parameters, &note);
            replace(s, f, "parameters", &v);
        } else if (parameters->kind == CT_VALUE_BOOL) {
            drop(s, f, "parameters");
        }
    }
    if (response && !response_fits(response)) {
        if (response->kind == CT_VALUE_MAP && response->u.map->n)
            more = note_response(s, response);
        drop(s, f, "response");
    }
    text = ct_value_get(f, "description");
    if (text && text->kind == CT_VALUE_NONE) {
        drop(s, f, "description");
        text = NULL;
    }
    if (note.n || more.n) {
        v = ct_value_str(with_notes(s, text, join_notes(s, note, more)));
        replace(s, f, "description", &v);
    }
    return CT_OK;
}

ct_status ct_tools_for_template(ct_value *out, const ct_value *tools, ct_arena *a, ct_error *err)
{
    ct_value *item = ct_arena_zalloc(a, tools->u.list.n, sizeof *item);
    ct_schemas s = {.a = a};

    for (size_t i = 0; item && i < tools->u.list.n; i++) {
        const ct_value *old = ct_value_get(&tools->u.list.item[i], "function");
        ct_value f = *old;
        ct_status st = fit_function(&s, &f, err);

        if (st) {
            ct_error_prefix(err, "tools[%zu].function.", i);
            return st;
        }
        item[i] = tools->u.list.item[i];
        if (f.u.map != old->u.map)
            replace(&s, &item[i], "function", &f);
        if (s.full)
            return ct_fail(err, CT_ELIMIT, "tools[%zu]: the schema exceeds the memory bound", i);
    }
    if (!item)
        return ct_fail(err, CT_ELIMIT, "tools: %zu tools exceed the memory bound", tools->u.list.n);
    *out = ct_value_list(item, tools->u.list.n, CT_LIST_LIST);
    return CT_OK;
}
