#include "text/schema_merge.h"

#include "base/checked.h"
#include "text/tool_schema.h"
#include "text/value_canon.h"

#include <stdio.h>

#define FIRST_ROOM 8
#define MAX_SEEN   16    /* definitions of one property that a further one is compared with */
#define MAX_WORK   65536 /* comparisons of each with each, beyond which lists stay apart */

/* No keyword of JSON Schema; whoever sends it gets nothing from it. */
static const char note_key[] = "\x01note";

ct_str ct_schema_note_key(void)
{
    return (ct_str){note_key, sizeof note_key - 1};
}

const ct_value *ct_schema_note(const ct_value *schema)
{
    for (size_t i = 0; schema->kind == CT_VALUE_MAP && i < schema->u.map->n; i++)
        if (schema->u.map->entry[i].key.p == note_key &&
            schema->u.map->entry[i].value.kind == CT_VALUE_STRING)
            return &schema->u.map->entry[i].value;
    return NULL;
}

void ct_fields_put(ct_schemas *s, ct_fields *f, ct_str key, const ct_value *value)
{
    if (f->n == f->room) {
        size_t room = f->room ? f->room * 2 : FIRST_ROOM;
        ct_map_entry *e = ct_arena_zalloc(s->a, room, sizeof *e);

        if (!e) {
            s->full = true;
            return;
        }
        if (f->n)
            memcpy(e, f->entry, f->n * sizeof *e);
        f->entry = e;
        f->room = room;
    }
    f->entry[f->n++] = (ct_map_entry){key, *value};
}

ct_value ct_fields_map(ct_schemas *s, ct_fields *f)
{
    static const ct_map_body empty;
    ct_value v = ct_value_map(&empty);

    if (!ct_value_build_map(&v, f->entry, f->n, s->a))
        s->full = true;
    return v;
}

static bool is_key(ct_str key, const char *const *names, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (ct_str_is(key, names[i]))
            return true;
    return false;
}

static ct_value string_of(ct_schemas *s, const ct_buf *b)
{
    const char *p = ct_arena_copy(s->a, b->n ? b->p : "", b->n);

    s->full = s->full || !p;
    return ct_value_str((ct_str){p, p ? b->n : 0});
}

static ct_map_entry *find_note(ct_fields *f)
{
    for (size_t i = 0; i < f->n; i++)
        if (f->entry[i].key.p == note_key && f->entry[i].value.kind == CT_VALUE_STRING)
            return &f->entry[i];
    return NULL;
}

void ct_schema_add_note(ct_schemas *s, ct_fields *f, ct_str note)
{
    ct_map_entry *old = find_note(f);
    ct_value v;
    ct_buf b;

    ct_buf_init(&b, (size_t)4 * CT_SCHEMA_MAX_NOTE_BYTES);
    if (old) {
        ct_buf_add(&b, old->value.u.text.p, old->value.u.text.n);
        ct_buf_addz(&b, ". ");
    }
    ct_buf_add(&b, note.p, note.n);
    v = string_of(s, &b);
    ct_buf_deinit(&b);
    if (old)
        old->value = v;
    else
        ct_fields_put(s, f, ct_schema_note_key(), &v);
}

/* ---- references ---- */

/* One step of a JSON pointer, with ~0 and ~1 undone. */
static ct_str pointer_step(ct_schemas *s, ct_str raw)
{
    char *p = memchr(raw.p, '~', raw.n) ? ct_arena_copy(s->a, raw.p, raw.n) : NULL;
    size_t n = 0;

    if (!p)
        return raw;
    for (size_t i = 0; i < raw.n; i++) {
        bool escape = raw.p[i] == '~' && i + 1 < raw.n;

        p[n++] = !escape ? raw.p[i] : raw.p[i + 1] == '1' ? '/' : '~';
        i += escape;
    }
    return (ct_str){p, n};
}

static const ct_value *list_step(const ct_value *list, ct_str step)
{
    size_t i = 0;

    if (!step.n || step.n > 6)
        return NULL;
    for (size_t k = 0; k < step.n; k++) {
        if (step.p[k] < '0' || step.p[k] > '9')
            return NULL;
        i = i * 10 + (size_t)(step.p[k] - '0');
    }
    return i < list->u.list.n ? &list->u.list.item[i] : NULL;
}

/* What "#/a/b" names under the root, or NULL. */
static const ct_value *follow(ct_schemas *s, ct_str ref)
{
    const ct_value *at = s->root;

    if (!ref.n || ref.p[0] != '#')
        return NULL;
    ref = (ct_str){ref.p + 1, ref.n - 1};
    while (at && ref.n) {
        const char *end;
        ct_str step;

        if (ref.p[0] != '/')
            return NULL;
        ref = (ct_str){ref.p + 1, ref.n - 1};
        end = memchr(ref.p, '/', ref.n);
        step = (ct_str){ref.p, end ? (size_t)(end - ref.p) : ref.n};
        ref = (ct_str){ref.p + step.n, ref.n - step.n};
        step = pointer_step(s, step);
        if (at->kind == CT_VALUE_LIST)
            at = list_step(at, step);
        else
            at = at->kind == CT_VALUE_MAP ? ct_map_find(at->u.map, step) : NULL;
    }
    return at;
}

static bool is_open(const ct_schemas *s, const ct_value *target)
{
    for (unsigned i = 0; i < s->n_open; i++)
        if (s->open[i] == target)
            return true;
    return target == s->root;
}

/* In place of a reference that is not followed: its type and its name. */
static ct_value cut_ref(ct_schemas *s, const ct_value *target, ct_str ref)
{
    const char *slash = ref.n ? memrchr(ref.p, '/', ref.n) : NULL;
    ct_fields f = {0};
    char text[256];
    ct_value type;

    if (target && target->kind == CT_VALUE_MAP) {
        type = ct_value_str(ct_schema_type(target));
        if (type.u.text.n)
            ct_fields_put(s, &f, CT_STR("type"), &type);
    }
    if (slash && target)
        ref = (ct_str){slash + 1, ref.n - (size_t)(slash + 1 - ref.p)};
    if (ref.n > 200)
        ref.n = 200;
    if (target == s->root)
        snprintf(text, sizeof text, "Same form as the whole arguments");
    else
        snprintf(text, sizeof text, target ? "Same form as %.*s" : "Form: %.*s", CT_STR_ARG(ref));
    ct_schema_add_note(s, &f, ct_str_of(text));
    return ct_fields_map(s, &f);
}

static ct_value flatten_ref(ct_schemas *s, const ct_value *ref)
{
    ct_str text = ref->kind == CT_VALUE_STRING ? ct_value_text(ref) : CT_STR("?");
    const ct_value *target = follow(s, text);

    if (!target || is_open(s, target) || s->n_open == CT_SCHEMA_MAX_REFS ||
        s->n_nodes > CT_SCHEMA_MAX_NODES)
        return cut_ref(s, target, text);
    s->open[s->n_open++] = target;
    return ct_schema_flatten(s, target);
}

/* ---- two schemas that both hold ---- */

static ct_value both(ct_schemas *s, const ct_value *x, const ct_value *y)
{
    ct_value *pair = ct_arena_zalloc(s->a, 2, sizeof *pair);
    ct_fields f = {0};
    ct_value list;

    if (!pair) {
        s->full = true;
        return *x;
    }
    pair[0] = *x;
    pair[1] = *y;
    list = ct_value_list(pair, 2, CT_LIST_LIST);
    ct_fields_put(s, &f, CT_STR("allOf"), &list);
    return ct_fields_map(s, &f);
}

/* All properties of both; one that both have must fit both. */
static ct_value both_properties(ct_schemas *s, const ct_value *x, const ct_value *y)
{
    ct_fields f = {0};

    if (x->kind != CT_VALUE_MAP || y->kind != CT_VALUE_MAP)
        return x->kind == CT_VALUE_MAP ? *x : *y;
    for (size_t i = 0; i < x->u.map->n; i++)
        ct_fields_put(s, &f, x->u.map->entry[i].key, &x->u.map->entry[i].value);
    for (size_t i = 0; i < y->u.map->n; i++) {
        const ct_map_entry *e = &y->u.map->entry[i];
        const ct_value *old = ct_map_find(x->u.map, e->key);
        ct_value v = old ? both(s, old, &e->value) : e->value;

        ct_fields_put(s, &f, e->key, &v);
    }
    return ct_fields_map(s, &f);
}

/* The strings of all lists, each once, in order of appearance. */
static ct_value union_strings(ct_schemas *s, const ct_value *const *lists, size_t n)
{
    ct_fields f = {0};
    ct_value map, *item;

    for (size_t k = 0; k < n; k++)
        for (size_t i = 0; lists[k]->kind == CT_VALUE_LIST && i < lists[k]->u.list.n; i++)
            if (lists[k]->u.list.item[i].kind == CT_VALUE_STRING)
                ct_fields_put(s, &f, ct_value_text(&lists[k]->u.list.item[i]),
                              &lists[k]->u.list.item[i]);
    map = ct_fields_map(s, &f);
    item = ct_arena_zalloc(s->a, map.u.map->n, sizeof *item);
    if (!item) {
        s->full = true;
        return *lists[0];
    }
    for (size_t i = 0; i < map.u.map->n; i++)
        item[i] = map.u.map->entry[i].value;
    return ct_value_list(item, map.u.map->n, CT_LIST_LIST);
}

static bool same_scalar(const ct_value *x, const ct_value *y)
{
    if (x->kind != y->kind)
        return false;
    if (x->kind == CT_VALUE_STRING || x->kind == CT_VALUE_BIGINT)
        return ct_str_eq(ct_value_text(x), ct_value_text(y));
    if (x->kind == CT_VALUE_BOOL)
        return x->u.boolean == y->u.boolean;
    return x->kind == CT_VALUE_NONE || (x->kind == CT_VALUE_INT && x->u.integer == y->u.integer);
}

/* The values of x that are in y too; x when there are none and it must not be empty. */
static ct_value common_values(ct_schemas *s, const ct_value *x, const ct_value *y, bool some)
{
    ct_value *item;
    size_t n = 0;

    if (x->kind != CT_VALUE_LIST || y->kind != CT_VALUE_LIST ||
        (y->u.list.n && x->u.list.n > MAX_WORK / y->u.list.n))
        return *x;
    item = ct_arena_zalloc(s->a, x->u.list.n, sizeof *item);
    if (!item) {
        s->full = true;
        return *x;
    }
    for (size_t i = 0; i < x->u.list.n; i++)
        for (size_t k = 0; k < y->u.list.n; k++)
            if (same_scalar(&x->u.list.item[i], &y->u.list.item[k])) {
                item[n++] = x->u.list.item[i];
                break;
            }
    return n || !some ? ct_value_list(item, n, CT_LIST_LIST) : *x;
}

/* "integer" within "number" is the narrower of the two. */
static ct_value both_types(const ct_value *x, const ct_value *y)
{
    bool number = x->kind == CT_VALUE_STRING && ct_str_is(ct_value_text(x), "number");

    if (number && y->kind == CT_VALUE_STRING && ct_str_is(ct_value_text(y), "integer"))
        return *y;
    return x->kind == CT_VALUE_LIST && y->kind == CT_VALUE_STRING ? *y : *x;
}

/* What x and y say together; where only one can speak, x does. */
static ct_value merge(ct_schemas *s, const ct_value *x, const ct_value *y)
{
    ct_fields f = {0};

    for (size_t i = 0; i < y->u.map->n; i++)
        if (y->u.map->entry[i].key.p != note_key)
            ct_fields_put(s, &f, y->u.map->entry[i].key, &y->u.map->entry[i].value);
    for (size_t i = 0; i < x->u.map->n; i++) {
        const ct_map_entry *e = &x->u.map->entry[i];
        const ct_value *other = ct_map_find(y->u.map, e->key);
        ct_value v = e->value;

        if (e->key.p == note_key)
            continue;
        if (other && ct_str_is(e->key, "properties"))
            v = both_properties(s, &v, other);
        else if (other && ct_str_is(e->key, "required"))
            v = union_strings(s, (const ct_value *[]){&e->value, other}, 2);
        else if (other && ct_str_is(e->key, "enum"))
            v = common_values(s, &v, other, true);
        else if (other && ct_str_is(e->key, "items"))
            v = both(s, &v, other);
        else if (other && ct_str_is(e->key, "type"))
            v = both_types(&v, other);
        ct_fields_put(s, &f, e->key, &v);
    }
    if (ct_schema_note(x))
        ct_schema_add_note(s, &f, ct_value_text(ct_schema_note(x)));
    if (ct_schema_note(y))
        ct_schema_add_note(s, &f, ct_value_text(ct_schema_note(y)));
    return ct_fields_map(s, &f);
}

/* ---- one of several ---- */

static bool is_null_schema(const ct_value *flat)
{
    const ct_value *type = ct_value_get(flat, "type"), *only = ct_value_get(flat, "const");
    const ct_value *values = ct_value_get(flat, "enum");

    if (type && type->kind == CT_VALUE_STRING)
        return ct_str_is(ct_value_text(type), "null");
    if (only)
        return only->kind == CT_VALUE_NONE;
    return values && values->kind == CT_VALUE_LIST && values->u.list.n == 1 &&
           values->u.list.item[0].kind == CT_VALUE_NONE;
}

/* The values of a schema that allows only these strings, else NULL. */
static const ct_value *string_values(ct_schemas *s, const ct_value *flat)
{
    const ct_value *values = ct_value_get(flat, "enum"), *only = ct_value_get(flat, "const");
    ct_value *list;

    if (only && only->kind == CT_VALUE_STRING) {
        list = ct_arena_zalloc(s->a, 1, sizeof *list);
        s->full = s->full || !list;
        if (list)
            *list = ct_value_list(only, 1, CT_LIST_LIST);
        return list;
    }
    if (!values || values->kind != CT_VALUE_LIST || !values->u.list.n)
        return NULL;
    for (size_t i = 0; i < values->u.list.n; i++)
        if (values->u.list.item[i].kind != CT_VALUE_STRING)
            return NULL;
    return values;
}

/* Alternatives that all are lists of strings: one list.  False when they are not. */
static bool join_values(ct_schemas *s, ct_fields *f, const ct_value *flat, size_t n)
{
    const ct_value **lists = ct_arena_zalloc(s->a, n, sizeof *lists);
    ct_value list, type = ct_value_str(CT_STR("string"));

    s->full = s->full || !lists;
    for (size_t i = 0; lists && i < n; i++) {
        lists[i] = string_values(s, &flat[i]);
        /* A description of one value would be lost in the joined list. */
        if (!lists[i] || ct_value_get(&flat[i], "description") || ct_schema_note(&flat[i]))
            return false;
    }
    if (s->full)
        return false;
    list = union_strings(s, lists, n);
    ct_fields_put(s, f, CT_STR("type"), &type);
    ct_fields_put(s, f, CT_STR("enum"), &list);
    return true;
}

static bool same_schema(const ct_value *x, const ct_value *y)
{
    ct_buf p, q;
    bool same;

    ct_buf_init(&p, CT_SCHEMA_MAX_NOTE_BYTES);
    ct_buf_init(&q, CT_SCHEMA_MAX_NOTE_BYTES);
    ct_value_put_canon(&p, x);
    ct_value_put_canon(&q, y);
    same = !p.failed && !q.failed && ct_str_eq(ct_buf_str(&p), ct_buf_str(&q));
    ct_buf_deinit(&p);
    ct_buf_deinit(&q);
    return same;
}

/* A property of several alternatives: any of its definitions. */
static ct_value any_definition(ct_schemas *s, ct_str name, const ct_value *flat, size_t n)
{
    ct_value *item = ct_arena_zalloc(s->a, n, sizeof *item), list;
    ct_fields f = {0};
    size_t m = 0;

    s->full = s->full || !item;
    for (size_t i = 0; item && i < n; i++) {
        const ct_value *p = ct_value_get(&flat[i], "properties");
        const ct_value *v = p && p->kind == CT_VALUE_MAP ? ct_map_find(p->u.map, name) : NULL;
        size_t k = 0;

        /* Equal ones are seen once, unless there are very many. */
        while (v && k < ct_min_size(m, MAX_SEEN) && !same_schema(&item[k], v))
            k++;
        if (v && k == ct_min_size(m, MAX_SEEN))
            item[m++] = *v;
    }
    if (m == 1)
        return item[0];
    list = ct_value_list(item, m, CT_LIST_LIST);
    ct_fields_put(s, &f, CT_STR("anyOf"), &list);
    return ct_fields_map(s, &f);
}

/* All names of properties, in order of appearance. */
static ct_value property_names(ct_schemas *s, const ct_value *flat, size_t n)
{
    ct_fields all = {0};

    for (size_t i = 0; i < n; i++) {
        const ct_value *p = ct_value_get(&flat[i], "properties");

        for (size_t k = 0; p && p->kind == CT_VALUE_MAP && k < p->u.map->n; k++)
            ct_fields_put(s, &all, p->u.map->entry[k].key, &p->u.map->entry[k].value);
    }
    return ct_fields_map(s, &all);
}

static ct_value common_required(ct_schemas *s, const ct_value *flat, size_t n)
{
    ct_value none = ct_value_list(NULL, 0, CT_LIST_LIST), out = none;

    for (size_t i = 0; i < n; i++) {
        const ct_value *r = ct_value_get(&flat[i], "required");

        if (!r || r->kind != CT_VALUE_LIST)
            return none;
        out = i ? common_values(s, &out, r, false) : *r;
    }
    return out;
}

/* Objects: any of their properties, and what all of them require. */
static void join_objects(ct_schemas *s, ct_fields *f, const ct_value *flat, size_t n)
{
    ct_value names = property_names(s, flat, n), required = common_required(s, flat, n);
    ct_fields all = {0};
    ct_value v;

    for (size_t i = 0; i < names.u.map->n && names.u.map->n <= MAX_WORK / n; i++) {
        v = any_definition(s, names.u.map->entry[i].key, flat, n);
        ct_fields_put(s, &all, names.u.map->entry[i].key, &v);
    }
    v = ct_fields_map(s, &all);
    ct_fields_put(s, f, CT_STR("properties"), &v);
    if (required.u.list.n)
        ct_fields_put(s, f, CT_STR("required"), &required);
}

static void note_alternatives(ct_schemas *s, ct_fields *f, const ct_value *flat, size_t n)
{
    ct_buf b;

    ct_buf_init(&b, CT_SCHEMA_MAX_NOTE_BYTES);
    ct_buf_addz(&b, "Type: ");
    for (size_t i = 0; i < n && b.n < CT_SCHEMA_MAX_NOTE_BYTES / 2; i++) {
        ct_buf_addz(&b, i ? " | " : "");
        ct_schema_put_note(s, &b, &flat[i]);
    }
    if (b.n >= CT_SCHEMA_MAX_NOTE_BYTES / 2)
        ct_buf_addz(&b, " …");
    ct_schema_add_note(s, f, ct_buf_str(&b));
    ct_buf_deinit(&b);
}

/* Several alternatives that are not null, as one schema. */
static ct_value join(ct_schemas *s, const ct_value *flat, size_t n)
{
    ct_value type = ct_value_str(ct_schema_type(&flat[0]));
    bool same = type.u.text.n != 0;
    ct_fields f = {0};

    if (join_values(s, &f, flat, n))
        return ct_fields_map(s, &f);
    for (size_t i = 1; i < n; i++)
        same = same && ct_str_eq(ct_schema_type(&flat[i]), ct_value_text(&type));
    if (same && ct_str_is(ct_value_text(&type), "object"))
        join_objects(s, &f, flat, n);
    /* Of several types the first is the one that the template prints. */
    if (type.u.text.n)
        ct_fields_put(s, &f, CT_STR("type"), &type);
    note_alternatives(s, &f, flat, n);
    return ct_fields_map(s, &f);
}

static void set_nullable(ct_schemas *s, ct_value *flat)
{
    ct_fields f = {0};
    ct_value yes = ct_value_bool(true);

    for (size_t i = 0; i < flat->u.map->n; i++)
        ct_fields_put(s, &f, flat->u.map->entry[i].key, &flat->u.map->entry[i].value);
    ct_fields_put(s, &f, CT_STR("nullable"), &yes);
    *flat = ct_fields_map(s, &f);
}

/* Flattens each of a list into flat, which has room.  References opened in one do not
 * count in its neighbours, but do in what lies within all of them together. */
static void flatten_each(ct_schemas *s, const ct_value *list, ct_value *flat)
{
    const ct_value *open[CT_SCHEMA_MAX_REFS];
    unsigned start = s->n_open, n_open = 0;

    for (size_t i = 0; i < list->u.list.n; i++) {
        flat[i] = ct_schema_flatten(s, &list->u.list.item[i]);
        while (s->n_open > start) {
            s->n_open--;
            if (start + n_open < CT_SCHEMA_MAX_REFS)
                open[n_open++] = s->open[s->n_open];
        }
    }
    for (unsigned i = 0; i < n_open; i++)
        s->open[s->n_open++] = open[i];
}

static ct_value null_schema(ct_schemas *s)
{
    ct_value null = ct_value_str(CT_STR("null"));
    ct_fields f = {0};

    ct_fields_put(s, &f, CT_STR("type"), &null);
    return ct_fields_map(s, &f);
}

static ct_value flatten_union(ct_schemas *s, const ct_value *list)
{
    ct_value *flat = ct_arena_zalloc(s->a, list->u.list.n, sizeof *flat), out;
    bool nullable = false;
    size_t n = 0;

    if (!flat) {
        s->full = true;
        return null_schema(s);
    }
    flatten_each(s, list, flat);
    for (size_t i = 0; i < list->u.list.n; i++) {
        if (is_null_schema(&flat[i]))
            nullable = true;
        else
            flat[n++] = flat[i];
    }
    if (s->full || !n)
        return null_schema(s);
    out = n == 1 ? flat[0] : join(s, flat, n);
    if (nullable)
        set_nullable(s, &out);
    return out;
}

/* ---- all of it ---- */

static ct_value not_a_mapping(ct_schemas *s, const ct_value *schema)
{
    ct_fields f = {0};

    if (schema->kind == CT_VALUE_BOOL && !schema->u.boolean)
        ct_schema_add_note(s, &f, CT_STR("No value is allowed"));
    return ct_fields_map(s, &f);
}

static ct_value too_deep(ct_schemas *s)
{
    ct_fields f = {0};

    ct_schema_add_note(s, &f, CT_STR("Nested too deeply to be shown"));
    return ct_fields_map(s, &f);
}

/* All of n schemas, flat ones, merged in pairs of neighbours: near-linear for any n. */
static ct_value merge_all(ct_schemas *s, ct_value *part, size_t n)
{
    while (n > 1 && !s->full) {
        size_t half = 0;

        for (size_t i = 0; i < n; i += 2)
            part[half++] = i + 1 < n ? merge(s, &part[i], &part[i + 1]) : part[i];
        n = half;
    }
    return part[0];
}

static ct_value flatten_all(ct_schemas *s, const ct_value *out, const ct_value *list)
{
    size_t n = list->u.list.n;
    ct_value *part = ct_arena_zalloc(s->a, n + 1, sizeof *part);

    if (!part) {
        s->full = true;
        return *out;
    }
    part[0] = *out;
    flatten_each(s, list, part + 1);
    return merge_all(s, part, n + 1);
}

static ct_value flatten_map(ct_schemas *s, const ct_value *schema)
{
    static const char *const gone[] = {"$ref",  "allOf", "anyOf",       "oneOf",
                                       "$defs", "$id",   "definitions", "$schema"};
    static const char *const unions[] = {"anyOf", "oneOf"};
    const ct_value *ref = ct_value_get(schema, "$ref"), *all = ct_value_get(schema, "allOf");
    ct_fields f = {0};
    ct_value out, part;

    for (size_t i = 0; i < schema->u.map->n; i++)
        if (!is_key(schema->u.map->entry[i].key, gone, CT_LEN(gone)))
            ct_fields_put(s, &f, schema->u.map->entry[i].key, &schema->u.map->entry[i].value);
    out = ct_fields_map(s, &f);
    if (ref) {
        part = flatten_ref(s, ref);
        out = merge(s, &out, &part);
    }
    if (all && all->kind == CT_VALUE_LIST && !s->full)
        out = flatten_all(s, &out, all);
    for (size_t k = 0; k < CT_LEN(unions); k++) {
        const ct_value *list = ct_value_get(schema, unions[k]);

        if (list && list->kind == CT_VALUE_LIST && list->u.list.n && !s->full) {
            part = flatten_union(s, list);
            out = merge(s, &out, &part);
        }
    }
    return out;
}

ct_value ct_schema_flatten(ct_schemas *s, const ct_value *schema)
{
    ct_value out;

    s->n_nodes++;
    if (schema->kind != CT_VALUE_MAP)
        return not_a_mapping(s, schema);
    if (s->depth >= CT_SCHEMA_MAX_DEPTH)
        return too_deep(s);
    s->depth++;
    out = flatten_map(s, schema);
    s->depth--;
    return out;
}
