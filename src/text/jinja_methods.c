/* Methods of strings and mappings. */
#include "text/jinja_names.h"
#include "text/jinja_run.h"

#include "base/utf8.h"
#include "text/unicode.h"

#define MAX_ARGS 2

ct_status run_views(jinja_run *r, const jinja_node *n, const ct_map_body *map, ct_list_kind kind,
                    ct_value *out)
{
    size_t per = kind == CT_LIST_ITEMS ? 3 : 1; /* the tuple and its two items */
    ct_status st = run_steps(r, n, map->n);
    ct_value *v, *pair;

    if (st)
        return st;
    v = run_values(r, per * map->n);
    if (!v)
        return run_full(r, n);
    pair = v + map->n;
    for (size_t i = 0; i < map->n; i++) {
        if (kind == CT_LIST_KEYS) {
            v[i] = ct_value_str(map->entry[i].key);
        } else if (kind == CT_LIST_VALUES) {
            v[i] = map->entry[i].value;
        } else {
            pair[2 * i] = ct_value_str(map->entry[i].key);
            pair[2 * i + 1] = map->entry[i].value;
            v[i] = ct_value_list(&pair[2 * i], 2, CT_LIST_TUPLE);
        }
    }
    *out = ct_value_list(v, map->n, kind);
    return CT_OK;
}

static ct_status map_method(jinja_run *r, const jinja_node *n, const ct_map_body *map,
                            const ct_value *arg, size_t n_args, ct_value *out)
{
    const ct_value *found = NULL;

    if (n->id == METHOD_KEYS || n->id == METHOD_VALUES || n->id == METHOD_ITEMS)
        return run_views(r, n, map,
                         n->id == METHOD_KEYS     ? CT_LIST_KEYS
                         : n->id == METHOD_VALUES ? CT_LIST_VALUES
                                                  : CT_LIST_ITEMS,
                         out);
    if ((arg[0].kind == CT_VALUE_LIST && arg[0].sub != CT_LIST_TUPLE) ||
        arg[0].kind == CT_VALUE_MAP)
        return run_fail(r, n, "unhashable type: '%s'", ct_value_type_name(arg[0].kind, arg[0].sub));
    if (arg[0].kind == CT_VALUE_STRING)
        found = ct_map_find(map, ct_value_text(&arg[0]));
    *out = found ? *found : n_args > 1 ? arg[1] : ct_value_none();
    return CT_OK;
}

typedef struct pieces {
    ct_value *item;
    size_t n, room;
} pieces;

static ct_status add_piece(jinja_run *r, const jinja_node *n, pieces *list, ct_str s)
{
    ct_status st = run_steps(r, n, 1);

    if (st)
        return st;
    if (list->n == list->room) {
        ct_value *more = run_values(r, 2 * list->room + 4);

        if (!more)
            return run_full(r, n);
        if (list->n)
            memcpy(more, list->item, list->n * sizeof *more);
        list->item = more;
        list->room = 2 * list->room + 4;
    }
    list->item[list->n++] = ct_value_str(s);
    return CT_OK;
}

static ct_status split_at(jinja_run *r, const jinja_node *n, ct_str s, ct_str by, int64_t max,
                          pieces *list)
{
    ct_status st = CT_OK;

    while (!st && max-- != 0) {
        const char *hit = s.n ? memmem(s.p, s.n, by.p, by.n) : NULL;

        if (!hit)
            break;
        st = add_piece(r, n, list, (ct_str){s.p, (size_t)(hit - s.p)});
        s = (ct_str){hit + by.n, s.n - (size_t)(hit - s.p) - by.n};
    }
    return st ? st : add_piece(r, n, list, s);
}

static ct_status split_blanks(jinja_run *r, const jinja_node *n, ct_str s, int64_t max,
                              pieces *list)
{
    ct_status st = CT_OK;

    for (s = ct_str_lstrip(s); s.n && !st; s = ct_str_lstrip(s)) {
        size_t end = 0;
        unsigned len;

        if (max-- == 0)
            return add_piece(r, n, list, ct_str_rstrip(s));
        while (end < s.n && !ct_cp_is_space(ct_utf8_next(s, end, &len)))
            end += len;
        st = add_piece(r, n, list, (ct_str){s.p, end});
        s = (ct_str){s.p + end, s.n - end};
    }
    return st;
}

static ct_status split(jinja_run *r, const jinja_node *n, ct_str s, const ct_value *arg,
                       size_t n_args, ct_value *out)
{
    pieces list = {0};
    int64_t max = -1;
    ct_status st = run_steps(r, n, s.n / 64);

    if (st)
        return st;
    if (n_args > 1 && !ct_value_as_int(&arg[1], &max))
        return run_fail(r, n, "split: the maximum must be an integer");
    if (n_args && arg[0].kind == CT_VALUE_STRING) {
        if (!arg[0].u.text.n)
            return run_fail(r, n, "empty separator");
        st = split_at(r, n, s, ct_value_text(&arg[0]), max, &list);
    } else if (n_args && arg[0].kind != CT_VALUE_NONE) {
        return run_fail(r, n, "must be str or None, not %s",
                        ct_value_type_name(arg[0].kind, arg[0].sub));
    } else {
        st = split_blanks(r, n, s, max, &list);
    }
    if (!st)
        *out = ct_value_list(list.item, list.n, CT_LIST_LIST);
    return st;
}

static bool in_set(ct_str set, ct_str one)
{
    return set.n && memmem(set.p, set.n, one.p, one.n);
}

/* Ends of s without the characters of set; NULL set: without blanks. */
static ct_str strip_set(ct_str s, const ct_str *set, bool left, bool right)
{
    if (!set) {
        s = left ? ct_str_lstrip(s) : s;
        return right ? ct_str_rstrip(s) : s;
    }
    while (left && s.n) {
        size_t len = ct_utf8_offset(s, 0, 1);

        if (!in_set(*set, (ct_str){s.p, len}))
            break;
        s = (ct_str){s.p + len, s.n - len};
    }
    while (right && s.n) {
        size_t at = s.n - 1;

        while (at && ((unsigned char)s.p[at] & 0xc0) == 0x80)
            at--;
        if (!in_set(*set, (ct_str){s.p + at, s.n - at}))
            break;
        s.n = at;
    }
    return s;
}

static ct_status strip(jinja_run *r, const jinja_node *n, ct_str s, const ct_value *arg,
                       size_t n_args, ct_value *out)
{
    bool has_set = n_args && arg[0].kind != CT_VALUE_NONE;
    ct_str set = has_set ? ct_value_text(&arg[0]) : (ct_str){0};
    ct_status st = CT_OK;

    if (has_set && arg[0].kind != CT_VALUE_STRING)
        return run_fail(r, n, "strip arg must be None or str");
    if (has_set)
        st = run_steps(r, n, s.n + set.n);
    if (!st)
        *out = ct_value_str(
            strip_set(s, has_set ? &set : NULL, n->id != METHOD_RSTRIP, n->id != METHOD_LSTRIP));
    return st;
}

static ct_status starts_or_ends(jinja_run *r, const jinja_node *n, ct_str s, const ct_value *arg,
                                ct_value *out)
{
    ct_str part = ct_value_text(arg);
    bool start = n->id == METHOD_STARTSWITH;

    if (arg->kind != CT_VALUE_STRING)
        return run_fail(r, n, "%.*s: only a string is supported", CT_STR_ARG(n->text));
    *out = ct_value_bool(part.n <= s.n &&
                         (!part.n || !memcmp(start ? s.p : s.p + s.n - part.n, part.p, part.n)));
    return CT_OK;
}

static ct_status str_method(jinja_run *r, const jinja_node *n, const ct_value *v,
                            const ct_value *arg, size_t n_args, ct_value *out)
{
    ct_str s = ct_value_text(v);

    switch ((jinja_method)n->id) {
    case METHOD_SPLIT:
        return split(r, n, s, arg, n_args, out);
    case METHOD_STRIP:
    case METHOD_LSTRIP:
    case METHOD_RSTRIP:
        return strip(r, n, s, arg, n_args, out);
    case METHOD_STARTSWITH:
    case METHOD_ENDSWITH:
        return starts_or_ends(r, n, s, arg, out);
    case METHOD_UPPER:
        return run_filter(r, n, FILTER_UPPER, v, out);
    case METHOD_LOWER:
        return run_filter(r, n, FILTER_LOWER, v, out);
    case METHOD_REPLACE:
        for (size_t i = 0; i < n_args; i++)
            if (arg[i].kind != CT_VALUE_STRING)
                return run_fail(r, n, "replace() argument %zu must be str, not %s", i + 1,
                                ct_value_type_name(arg[i].kind, arg[i].sub));
        return run_replace(r, n, s, ct_value_text(&arg[0]), ct_value_text(&arg[1]), out);
    case METHOD_GET:
    case METHOD_ITEMS:
    case METHOD_KEYS:
    case METHOD_VALUES:
        break;
    }
    return run_fail(r, n, "unknown method");
}

static bool of_map(unsigned method)
{
    return method == METHOD_GET || method == METHOD_ITEMS || method == METHOD_KEYS ||
           method == METHOD_VALUES;
}

ct_status run_method(jinja_run *r, const jinja_node *n, const ct_value *object, ct_value *out)
{
    ct_value arg[MAX_ARGS], found;
    size_t n_args = 0;
    ct_status st = CT_OK;

    if (object->kind == CT_VALUE_UNDEFINED)
        return run_undefined(r, n, object);
    if (object->kind != (of_map(n->id) ? CT_VALUE_MAP : CT_VALUE_STRING)) {
        run_attr(object, n->text, &found);
        if (found.kind == CT_VALUE_UNDEFINED)
            return run_undefined(r, n, &found);
        return run_fail(r, n, "'%s' object is not callable",
                        ct_value_type_name(found.kind, found.sub));
    }
    for (const jinja_node *k = n->list; k && !st; k = k->next)
        st = run_eval(r, k, &arg[n_args++]);
    if (st)
        return st;
    return of_map(n->id) ? map_method(r, n, object->u.map, arg, n_args, out)
                         : str_method(r, n, object, arg, n_args, out);
}
