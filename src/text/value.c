#include "text/value.h"

#include "base/checked.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>

#define SMALL_MAP     8
#define FIRST_ROOM    4
#define VALUE_ALIGN   _Alignof(ct_value)
#define FLOAT_BYTES   1024 /* longer lexemes are cut: no double depends on the rest */
#define INT64_MAX_LEN 20   /* with the sign */

ct_value ct_value_int_text(ct_str text)
{
    bool negative = text.n && text.p[0] == '-';
    char z[INT64_MAX_LEN + 1];
    long long v;

    if (text.n && (negative || text.p[0] == '+'))
        text = (ct_str){text.p + 1, text.n - 1};
    while (text.n > 1 && text.p[0] == '0')
        text = (ct_str){text.p + 1, text.n - 1};
    if (text.n < INT64_MAX_LEN) {
        z[0] = negative ? '-' : '+';
        memcpy(z + 1, text.p, text.n);
        z[text.n + 1] = '\0';
        errno = 0;
        v = strtoll(z, NULL, 10);
        if (!errno)
            return ct_value_int(v);
    }
    /* Callers hand in text whose sign stands directly before the first digit. */
    if (negative)
        text = (ct_str){text.p - 1, text.n + 1};
    return (ct_value){.kind = CT_VALUE_BIGINT, .u.text = {text.p, text.n}};
}

void ct_stable_sort(uint32_t *order, uint32_t *tmp, size_t n, ct_less_fn *less, void *ctx)
{
    for (size_t width = 1; width < n; width *= 2) {
        for (size_t low = 0; low < n; low += 2 * width) {
            size_t mid = ct_min_size(low + width, n), high = ct_min_size(low + 2 * width, n);
            size_t i = low, j = mid, k = low;

            while (i < mid && j < high)
                tmp[k++] = less(ctx, order[j], order[i]) ? order[j++] : order[i++];
            while (i < mid)
                tmp[k++] = order[i++];
            while (j < high)
                tmp[k++] = order[j++];
        }
        memcpy(order, tmp, n * sizeof *order);
    }
}

static bool key_less(void *ctx, uint32_t i, uint32_t j)
{
    const ct_map_entry *entry = ctx;

    return ct_str_cmp(entry[i].key, entry[j].key) < 0;
}

/* Sorted order of the keys, or NULL when the arena is full. */
static uint32_t *sort_keys(ct_map_entry *entry, size_t n, ct_arena *a)
{
    uint32_t *order = ct_arena_alloc(a, 2 * n * sizeof *order, _Alignof(uint32_t));

    if (!order)
        return NULL;
    for (size_t i = 0; i < n; i++)
        order[i] = (uint32_t)i;
    ct_stable_sort(order, order + n, n, key_less, entry);
    return order;
}

/* Entry i is superseded when key.p is NULL afterwards. */
static size_t drop_duplicates(ct_map_entry *entry, const uint32_t *order, size_t n)
{
    size_t kept = 0, first = 0;

    for (size_t i = 1; i < n; i++) {
        if (!ct_str_eq(entry[order[i]].key, entry[order[first]].key)) {
            first = i;
            continue;
        }
        entry[order[first]].value = entry[order[i]].value;
        entry[order[i]].key = (ct_str){NULL, SIZE_MAX};
    }
    for (size_t i = 0; i < n; i++)
        if (entry[i].key.n != SIZE_MAX)
            entry[kept++] = entry[i];
    return kept;
}

bool ct_value_build_map(ct_value *out, ct_map_entry *entry, size_t n, ct_arena *a)
{
    ct_map_body *m = ct_arena_alloc(a, sizeof *m, _Alignof(ct_map_body));
    uint32_t *order = NULL;
    size_t kept;

    if (!m || n > UINT32_MAX / 4)
        return false;
    if (n > 1) {
        order = sort_keys(entry, n, a);
        if (!order)
            return false;
        kept = drop_duplicates(entry, order, n);
        if (kept < n && kept > SMALL_MAP)
            order = sort_keys(entry, kept, a);
        if (!order)
            return false;
        n = kept;
    }
    *m = (ct_map_body){.entry = entry, .by_key = n > SMALL_MAP ? order : NULL, .n = n};
    *out = ct_value_map(m);
    return true;
}

bool ct_value_with(ct_value *out, const ct_value *mapping, ct_str key, const ct_value *value,
                   ct_arena *a)
{
    size_t n = mapping->u.map->n;
    ct_map_entry *entry = ct_arena_alloc(a, (n + 1) * sizeof *entry, _Alignof(ct_map_entry));

    if (!entry)
        return false;
    memcpy(entry, mapping->u.map->entry, n * sizeof *entry);
    entry[n] = (ct_map_entry){key, *value};
    return ct_value_build_map(out, entry, n + 1, a);
}

const ct_value *ct_map_find(const ct_map_body *m, ct_str key)
{
    size_t low = 0, high = m->n;

    if (!m->by_key) {
        for (size_t i = 0; i < m->n; i++)
            if (ct_str_eq(m->entry[i].key, key))
                return &m->entry[i].value;
        return NULL;
    }
    while (low < high) {
        size_t mid = low + (high - low) / 2;
        const ct_map_entry *e = &m->entry[m->by_key[mid]];
        int c = ct_str_cmp(key, e->key);

        if (!c)
            return &e->value;
        if (c < 0)
            high = mid;
        else
            low = mid + 1;
    }
    return NULL;
}

const ct_value *ct_value_get(const ct_value *mapping, const char *key)
{
    if (!mapping || mapping->kind != CT_VALUE_MAP)
        return NULL;
    return ct_map_find(mapping->u.map, ct_str_of(key));
}

static ct_status full(const ct_json *j, ct_error *err)
{
    return ct_fail(err, CT_ELIMIT, "%s: JSON, byte %zu: the values exceed the memory bound",
                   j->name, j->at);
}

/* Array of elem_bytes-sized items in the arena that doubles when it is full. */
static bool grow(void **items, size_t n, size_t *room, size_t elem_bytes, ct_arena *a)
{
    size_t n_bytes, more = *room ? *room * 2 : FIRST_ROOM;
    void *p;

    if (n < *room)
        return true;
    if (!ct_mul_size(&n_bytes, more, elem_bytes))
        return false;
    p = ct_arena_alloc(a, n_bytes, VALUE_ALIGN);
    if (!p)
        return false;
    if (n)
        memcpy(p, *items, n * elem_bytes);
    *items = p;
    *room = more;
    return true;
}

static ct_status read_text(const ct_json *j, const ct_json_token *t, ct_arena *a, ct_str *out,
                           ct_error *err)
{
    ct_str s = {0};
    ct_status st = ct_json_str(j, t, a, &s, err);

    if (st)
        return st;
    if (!t->escaped) {
        s.p = ct_arena_copy(a, s.p, s.n);
        if (!s.p)
            return full(j, err);
    }
    *out = s;
    return CT_OK;
}

static ct_status read_number(ct_value *out, const ct_json *j, const ct_json_token *t, ct_arena *a,
                             ct_error *err)
{
    char z[FLOAT_BYTES];
    size_t n = ct_min_size(t->raw.n, sizeof z - 1);
    ct_str copy = t->raw;

    if (!memchr(t->raw.p, '.', t->raw.n) && !memchr(t->raw.p, 'e', t->raw.n) &&
        !memchr(t->raw.p, 'E', t->raw.n)) {
        copy.p = ct_arena_copy(a, t->raw.p, t->raw.n);
        if (!copy.p)
            return full(j, err);
        *out = ct_value_int_text(copy);
        return CT_OK;
    }
    if (t->raw.n >= sizeof z)
        return ct_fail(err, CT_ELIMIT,
                       "%s: JSON, byte %zu: a number of %zu characters, at most %zu are read",
                       j->name, j->at, t->raw.n, sizeof z - 1);
    memcpy(z, t->raw.p, n);
    z[n] = '\0';
    *out = ct_value_float(strtod(z, NULL));
    return CT_OK;
}

static ct_status read_any(ct_value *out, ct_json *j, const ct_json_token *t, ct_arena *a,
                          ct_error *err);

static ct_status read_array(ct_value *out, ct_json *j, ct_arena *a, ct_error *err)
{
    size_t n = 0, room = 0;
    void *items = NULL;
    ct_json_token t;
    ct_status st;

    for (;;) {
        st = ct_json_next(j, &t, err);
        if (st)
            return st;
        if (t.kind == CT_JSON_ARRAY_END)
            break;
        if (!grow(&items, n, &room, sizeof(ct_value), a))
            return full(j, err);
        st = read_any((ct_value *)items + n++, j, &t, a, err);
        if (st)
            return st;
    }
    *out = ct_value_list(items, n, CT_LIST_LIST);
    return CT_OK;
}

static ct_status read_object(ct_value *out, ct_json *j, ct_arena *a, ct_error *err)
{
    size_t n = 0, room = 0;
    void *items = NULL;
    ct_json_token t;
    ct_status st;

    for (;;) {
        ct_map_entry *e;

        st = ct_json_next(j, &t, err);
        if (st)
            return st;
        if (t.kind == CT_JSON_OBJECT_END)
            break;
        if (!grow(&items, n, &room, sizeof(ct_map_entry), a))
            return full(j, err);
        e = (ct_map_entry *)items + n++;
        st = read_text(j, &t, a, &e->key, err);
        if (!st)
            st = ct_json_next(j, &t, err);
        if (!st)
            st = read_any(&e->value, j, &t, a, err);
        if (st)
            return st;
    }
    return ct_value_build_map(out, items, n, a) ? CT_OK : full(j, err);
}

/* Recursion is bounded by the reader's CT_JSON_MAX_DEPTH. */
static ct_status read_any(ct_value *out, ct_json *j, const ct_json_token *t, ct_arena *a,
                          ct_error *err)
{
    ct_str s = {0};
    ct_status st;

    switch (t->kind) {
    case CT_JSON_OBJECT:
        return read_object(out, j, a, err);
    case CT_JSON_ARRAY:
        return read_array(out, j, a, err);
    case CT_JSON_STRING:
        st = read_text(j, t, a, &s, err);
        if (!st)
            *out = ct_value_str(s);
        return st;
    case CT_JSON_NUMBER:
        return read_number(out, j, t, a, err);
    case CT_JSON_TRUE:
    case CT_JSON_FALSE:
        *out = ct_value_bool(t->kind == CT_JSON_TRUE);
        return CT_OK;
    case CT_JSON_NULL:
        *out = ct_value_none();
        return CT_OK;
    case CT_JSON_END:
    case CT_JSON_OBJECT_END:
    case CT_JSON_ARRAY_END:
    case CT_JSON_KEY:
        break;
    }
    return ct_fail(err, CT_EFORMAT, "%s: JSON, byte %zu: expected a value", j->name, j->at);
}

ct_status ct_value_from_json(const ct_value **out, ct_json *j, const ct_json_token *t, ct_arena *a,
                             ct_error *err)
{
    ct_value *v = ct_arena_alloc(a, sizeof *v, VALUE_ALIGN);
    ct_status st;

    if (!v)
        return full(j, err);
    st = read_any(v, j, t, a, err);
    if (!st)
        *out = v;
    return st;
}

ct_status ct_value_parse(const ct_value **out, const char *name, ct_str text, ct_arena *a,
                         ct_error *err)
{
    const ct_value *v = NULL;
    ct_json_token t;
    ct_json j;
    ct_status st;

    ct_json_init(&j, name, text);
    st = ct_json_next(&j, &t, err);
    if (!st)
        st = ct_value_from_json(&v, &j, &t, a, err);
    if (!st)
        st = ct_json_expect(&j, CT_JSON_END, "the text", &t, err);
    if (!st)
        *out = v;
    return st;
}

const char *ct_value_kind_name(const ct_value *v)
{
    static const char *const names[] = {
        [CT_VALUE_UNDEFINED] = "undefined",   [CT_VALUE_NONE] = "null",
        [CT_VALUE_BOOL] = "a boolean",        [CT_VALUE_INT] = "a number",
        [CT_VALUE_BIGINT] = "a number",       [CT_VALUE_FLOAT] = "a number",
        [CT_VALUE_STRING] = "a string",       [CT_VALUE_LIST] = "an array",
        [CT_VALUE_MAP] = "an object",         [CT_VALUE_RANGE] = "a range",
        [CT_VALUE_NAMESPACE] = "a namespace", [CT_VALUE_CALLABLE] = "a function",
        [CT_VALUE_METHOD] = "a method",       [CT_VALUE_LOOP] = "a loop",
    };

    return names[v->kind];
}

const char *ct_value_type_name(unsigned kind, unsigned sub)
{
    static const char *const lists[] = {
        [CT_LIST_LIST] = "list",        [CT_LIST_TUPLE] = "tuple",
        [CT_LIST_KEYS] = "dict_keys",   [CT_LIST_VALUES] = "dict_values",
        [CT_LIST_ITEMS] = "dict_items", [CT_LIST_GENERATOR] = "generator",
    };
    static const char *const names[] = {
        [CT_VALUE_UNDEFINED] = "Undefined",
        [CT_VALUE_NONE] = "NoneType",
        [CT_VALUE_BOOL] = "bool",
        [CT_VALUE_INT] = "int",
        [CT_VALUE_BIGINT] = "int",
        [CT_VALUE_FLOAT] = "float",
        [CT_VALUE_STRING] = "str",
        [CT_VALUE_LIST] = "list",
        [CT_VALUE_MAP] = "dict",
        [CT_VALUE_RANGE] = "range",
        [CT_VALUE_NAMESPACE] = "Namespace",
        [CT_VALUE_CALLABLE] = "Macro",
        [CT_VALUE_METHOD] = "builtin_function_or_method",
        [CT_VALUE_LOOP] = "LoopContext",
    };

    return kind == CT_VALUE_LIST ? lists[sub] : names[kind];
}
