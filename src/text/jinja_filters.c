/* Filters and tests. */
#include "text/jinja_names.h"
#include "text/jinja_run.h"

#include "base/checked.h"
#include "text/unicode.h"

static const char *type_of(const ct_value *v)
{
    return ct_value_type_name(v->kind, v->sub);
}

/* Argument node `arg` or, without one, `otherwise`. */
static ct_status argument(jinja_run *r, const jinja_node *arg, ct_value otherwise, ct_value *out)
{
    *out = otherwise;
    return arg ? run_eval(r, arg, out) : CT_OK;
}

static ct_status change_case(jinja_run *r, const jinja_node *n, const ct_value *v, bool upper,
                             ct_value *out)
{
    size_t mark;
    ct_str s;
    ct_status st = run_text(r, n, v, &s);

    if (st)
        return st;
    mark = run_scratch(r);
    if (upper)
        ct_str_upper(&r->capture, s);
    else
        ct_str_lower(&r->capture, s);
    st = run_take(r, n, mark, &s);
    if (!st)
        *out = ct_value_str(s);
    return st;
}

static bool folded_less(void *ctx, uint32_t i, uint32_t j)
{
    const ct_value *key = ctx;

    return ct_str_cmp(ct_value_text(&key[i]), ct_value_text(&key[j])) < 0;
}

/* (key, value) tuples in the order of key.lower(), equal ones as they came. */
static ct_status dictsort(jinja_run *r, const jinja_node *n, const ct_value *v, ct_value *out)
{
    const ct_map_body *m = v->u.map;
    ct_value *key, views, *sorted;
    uint32_t *order;
    ct_status st;

    if (v->kind == CT_VALUE_UNDEFINED)
        return run_undefined(r, n, v);
    if (v->kind != CT_VALUE_MAP)
        return run_fail(r, n, "'%s' object has no attribute 'items'", type_of(v));
    st = run_views(r, n, m, CT_LIST_ITEMS, &views);
    if (st)
        return st;
    key = run_values(r, m->n);
    sorted = run_values(r, m->n);
    order = ct_arena_alloc(r->a, 2 * m->n * sizeof *order, _Alignof(uint32_t));
    if (!key || !sorted || !order)
        return run_full(r, n);
    for (size_t i = 0; i < m->n && !st; i++) {
        ct_value name = ct_value_str(m->entry[i].key);

        order[i] = (uint32_t)i;
        st = change_case(r, n, &name, false, &key[i]);
    }
    if (st)
        return st;
    ct_stable_sort(order, order + m->n, m->n, folded_less, key);
    for (size_t i = 0; i < m->n; i++)
        sorted[i] = views.u.list.item[order[i]];
    *out = ct_value_list(sorted, m->n, CT_LIST_LIST);
    return CT_OK;
}

static ct_status first_item(jinja_run *r, const jinja_node *n, const ct_value *v, ct_value *out)
{
    run_iter it;
    ct_status st = run_iterate(r, n, v, &it);

    if (!st && !run_next(&it, out))
        *out = run_undefined_hint("No first item, sequence was empty.");
    return st;
}

static ct_status last_item(jinja_run *r, const jinja_node *n, const ct_value *v, ct_value *out)
{
    ct_value all;
    size_t len = 0;
    ct_status st;

    if (!ct_value_len(&len, v))
        return run_fail(r, n, "'%s' object is not reversible", type_of(v));
    st = run_collect(r, n, v, &all);
    if (st)
        return st;
    *out = all.u.list.n ? all.u.list.item[all.u.list.n - 1]
                        : run_undefined_hint("No last item, sequence was empty.");
    return CT_OK;
}

static ct_status join(jinja_run *r, const jinja_node *n, const ct_value *v, ct_value *out)
{
    ct_str all = {"", 0}, separator, text;
    bool any = false;
    run_iter it;
    ct_value item;
    ct_status st = argument(r, n->b, ct_value_str((ct_str){"", 0}), &item);

    if (!st)
        st = run_text(r, n, &item, &separator);
    if (!st)
        st = run_iterate(r, n, v, &it);
    while (!st && run_next(&it, &item)) {
        st = run_steps(r, n, 1);
        if (!st && any)
            st = run_concat(r, n, all, separator, &all);
        if (!st)
            st = run_text(r, n, &item, &text);
        if (!st)
            st = run_concat(r, n, all, text, &all);
        any = true;
    }
    if (!st)
        *out = ct_value_str(all);
    return st;
}

static ct_status length(jinja_run *r, const jinja_node *n, const ct_value *v, ct_value *out)
{
    size_t len;
    ct_status st = v->kind == CT_VALUE_STRING ? run_steps(r, n, v->u.text.n / 64) : CT_OK;

    if (st)
        return st;
    if (!ct_value_len(&len, v))
        return run_fail(r, n, "object of type '%s' has no len()", type_of(v));
    *out = ct_value_int((int64_t)len);
    return CT_OK;
}

/* map('filter') or map(attribute='name'). */
static ct_status map(jinja_run *r, const jinja_node *n, const ct_value *v, ct_value *out)
{
    static const jinja_node no_arguments = {.kind = JINJA_FILTER};
    jinja_node inner = no_arguments;
    ct_value all = ct_value_list(NULL, 0, CT_LIST_LIST), *items;
    /* Anything false gives nothing, also what cannot be iterated. */
    ct_status st = ct_value_truth(v) ? run_collect(r, n, v, &all) : CT_OK;

    if (st)
        return st;
    inner.line = n->line;
    items = run_values(r, all.u.list.n);
    if (!items)
        return run_full(r, n);
    for (size_t i = 0; i < all.u.list.n && !st; i++) {
        const ct_value *item = &all.u.list.item[i];
        ct_value name = ct_value_str(n->text);

        st = run_steps(r, n, 1);
        if (!st)
            st = n->text.p ? run_item(r, n, item, &name, &items[i])
                           : run_filter(r, &inner, n->op, item, &items[i]);
    }
    if (!st)
        *out = ct_value_list(items, all.u.list.n, CT_LIST_GENERATOR);
    return st;
}

ct_status run_replace(jinja_run *r, const jinja_node *n, ct_str s, ct_str from, ct_str to,
                      ct_value *out)
{
    size_t mark = run_scratch(r), at = 0;
    ct_str text;
    ct_status st = run_steps(r, n, s.n / 16);

    if (st)
        return st;
    while (at < s.n) {
        const char *hit = from.n ? memmem(s.p + at, s.n - at, from.p, from.n) : s.p + at;
        size_t len = from.n ? from.n : ct_utf8_offset(s, at, 1) - at;

        if (!hit || r->capture.failed)
            break;
        ct_buf_add(&r->capture, s.p + at, (size_t)(hit - s.p) - at);
        ct_buf_add(&r->capture, to.p, to.n);
        if (!from.n)
            ct_buf_add(&r->capture, hit, len);
        at = (size_t)(hit - s.p) + len;
    }
    if (at < s.n)
        ct_buf_add(&r->capture, s.p + at, s.n - at);
    if (!from.n)
        ct_buf_add(&r->capture, to.p, to.n);
    st = run_take(r, n, mark, &text);
    if (!st)
        *out = ct_value_str(text);
    return st;
}

static ct_status replace(jinja_run *r, const jinja_node *n, const ct_value *v, ct_value *out)
{
    ct_str text, from, to;
    ct_value a, b;
    ct_status st = run_eval(r, n->b, &a);

    if (!st)
        st = run_eval(r, n->c, &b);
    if (!st)
        st = run_text(r, n, v, &text);
    if (!st)
        st = run_text(r, n, &a, &from);
    if (!st)
        st = run_text(r, n, &b, &to);
    return st ? st : run_replace(r, n, text, from, to, out);
}

static ct_status tojson(jinja_run *r, const jinja_node *n, const ct_value *v, ct_value *out)
{
    size_t mark;
    ct_op_error e;
    ct_value indent;
    int64_t width = -1;
    ct_str text;
    ct_status st = argument(r, n->c, ct_value_none(), &indent);

    if (st)
        return st;
    if (indent.kind != CT_VALUE_NONE &&
        (indent.kind != CT_VALUE_INT || indent.u.integer < 0 || indent.u.integer > 100))
        return run_fail(r, n, "tojson: an indent from 0 to 100 is supported");
    if (indent.kind == CT_VALUE_INT)
        width = indent.u.integer;
    mark = run_scratch(r);
    if (!ct_value_put_json(&r->capture, v, (int)width, &e))
        return run_op_fail(r, n, &e);
    st = run_take(r, n, mark, &text);
    if (!st)
        *out = ct_value_str(text);
    return st;
}

static ct_status items(jinja_run *r, const jinja_node *n, const ct_value *v, ct_value *out)
{
    ct_status st;

    if (v->kind == CT_VALUE_UNDEFINED) {
        *out = ct_value_list(NULL, 0, CT_LIST_GENERATOR);
        return CT_OK;
    }
    if (v->kind != CT_VALUE_MAP)
        return run_fail(r, n, "Can only get item pairs from a mapping.");
    st = run_views(r, n, v->u.map, CT_LIST_ITEMS, out);
    if (!st)
        out->sub = CT_LIST_GENERATOR;
    return st;
}

static ct_status use_default(jinja_run *r, const jinja_node *n, const ct_value *v, ct_value *out)
{
    ct_value otherwise, boolean;
    ct_status st = argument(r, n->b, ct_value_str((ct_str){"", 0}), &otherwise);

    if (!st)
        st = argument(r, n->c, ct_value_bool(false), &boolean);
    if (!st)
        *out = v->kind == CT_VALUE_UNDEFINED || (ct_value_truth(&boolean) && !ct_value_truth(v))
                   ? otherwise
                   : *v;
    return st;
}

ct_status run_filter(jinja_run *r, const jinja_node *n, unsigned filter, const ct_value *v,
                     ct_value *out)
{
    ct_str s;
    ct_status st;

    switch ((jinja_filter)filter) {
    case FILTER_DEFAULT:
        return use_default(r, n, v, out);
    case FILTER_DICTSORT:
        return dictsort(r, n, v, out);
    case FILTER_FIRST:
        return first_item(r, n, v, out);
    case FILTER_ITEMS:
        return items(r, n, v, out);
    case FILTER_JOIN:
        return join(r, n, v, out);
    case FILTER_LAST:
        return last_item(r, n, v, out);
    case FILTER_LENGTH:
        return length(r, n, v, out);
    case FILTER_LIST:
        return run_collect(r, n, v, out);
    case FILTER_LOWER:
    case FILTER_UPPER:
        return change_case(r, n, v, filter == FILTER_UPPER, out);
    case FILTER_MAP:
        return map(r, n, v, out);
    case FILTER_REPLACE:
        return replace(r, n, v, out);
    case FILTER_TOJSON:
        return tojson(r, n, v, out);
    case FILTER_STRING:
    case FILTER_TRIM:
        st = run_text(r, n, v, &s);
        if (!st)
            *out = ct_value_str(filter == FILTER_TRIM ? ct_str_strip(s) : s);
        return st;
    }
    return run_fail(r, n, "unknown filter");
}

static bool is_sequence(const ct_value *v)
{
    return v->kind == CT_VALUE_UNDEFINED || v->kind == CT_VALUE_STRING || v->kind == CT_VALUE_MAP ||
           v->kind == CT_VALUE_RANGE || (v->kind == CT_VALUE_LIST && v->sub <= CT_LIST_TUPLE);
}

static bool is_kind(unsigned test, const ct_value *v)
{
    switch ((jinja_test)test) {
    case TEST_BOOLEAN:
        return v->kind == CT_VALUE_BOOL;
    case TEST_DEFINED:
        return v->kind != CT_VALUE_UNDEFINED;
    case TEST_UNDEFINED:
        return v->kind == CT_VALUE_UNDEFINED;
    case TEST_TRUE:
    case TEST_FALSE:
        return v->kind == CT_VALUE_BOOL && v->u.boolean == (test == TEST_TRUE);
    case TEST_FLOAT:
        return v->kind == CT_VALUE_FLOAT;
    case TEST_INTEGER:
        return v->kind == CT_VALUE_INT || v->kind == CT_VALUE_BIGINT;
    case TEST_ITERABLE:
        return is_sequence(v) || v->kind == CT_VALUE_LIST;
    case TEST_MAPPING:
        return v->kind == CT_VALUE_MAP;
    case TEST_NONE:
        return v->kind == CT_VALUE_NONE;
    case TEST_NUMBER:
        return ct_value_is_number(v);
    case TEST_SEQUENCE:
        return is_sequence(v);
    case TEST_STRING:
        return v->kind == CT_VALUE_STRING;
    case TEST_EQ:
    case TEST_NE:
    case TEST_IN:
        break;
    }
    return false;
}

ct_status run_test(jinja_run *r, const jinja_node *n, const ct_value *v, const ct_value *arg,
                   bool *out)
{
    ct_op_error e;
    bool ok = true;

    if (n->id == TEST_EQ || n->id == TEST_NE) {
        ok = ct_value_equal(out, v, arg, &e);
        *out ^= n->id == TEST_NE;
    } else if (n->id == TEST_IN) {
        ok = ct_value_in(out, v, arg, &e);
    } else {
        *out = is_kind(n->id, v);
    }
    return ok ? CT_OK : run_op_fail(r, n, &e);
}
