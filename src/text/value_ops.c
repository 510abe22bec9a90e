#include "text/value_ops.h"

#include "base/checked.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#define TWO_63      9223372036854775808.0
#define DOUBLE_TEXT 400 /* "%.0f" of the largest double has 309 digits */

bool ct_op_fail(ct_op_error *e, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(e->text, sizeof e->text, fmt, ap);
    va_end(ap);
    return false;
}

static const char *type_of(const ct_value *v)
{
    return ct_value_type_name(v->kind, v->sub);
}

void ct_value_undefined_text(const ct_value *v, ct_op_error *e)
{
    const char *owner = ct_value_type_name(v->owner, v->owner_sub);
    const char *object = v->owner == CT_VALUE_NONE ? "" : " object";
    const char *module = v->owner == CT_VALUE_NAMESPACE ? "jinja2.utils." : "";
    ct_str text = ct_value_text(v);

    if (v->owner == CT_VALUE_NONE)
        owner = "None";
    if (text.n > 100)
        text.n = 100;
    switch ((ct_undefined_kind)v->sub) {
    case CT_UNDEFINED_NAME:
        ct_op_fail(e, "'%.*s' is undefined", CT_STR_ARG(text));
        return;
    case CT_UNDEFINED_ATTR:
        ct_op_fail(e, "'%s%s%s' has no attribute '%.*s'", module, owner, object, CT_STR_ARG(text));
        return;
    case CT_UNDEFINED_ELEMENT:
        ct_op_fail(e, "%s%s%s has no element %" PRId64, module, owner, object, v->u.integer);
        return;
    case CT_UNDEFINED_HINT:
        ct_op_fail(e, "%.*s", CT_STR_ARG(text));
        return;
    }
}

bool ct_value_truth(const ct_value *v)
{
    switch ((ct_value_kind)v->kind) {
    case CT_VALUE_UNDEFINED:
    case CT_VALUE_NONE:
        return false;
    case CT_VALUE_BOOL:
        return v->u.boolean;
    case CT_VALUE_INT:
        return v->u.integer != 0;
    case CT_VALUE_FLOAT:
        return v->u.number != 0;
    case CT_VALUE_STRING:
        return v->u.text.n != 0;
    case CT_VALUE_LIST:
        return v->u.list.n != 0 || v->sub == CT_LIST_GENERATOR;
    case CT_VALUE_MAP:
        return v->u.map->n != 0;
    case CT_VALUE_RANGE:
        return v->u.range.n != 0;
    case CT_VALUE_BIGINT:
    case CT_VALUE_NAMESPACE:
    case CT_VALUE_CALLABLE:
    case CT_VALUE_METHOD:
    case CT_VALUE_LOOP:
        return true;
    }
    return true;
}

bool ct_value_len(size_t *out, const ct_value *v)
{
    size_t n;

    switch ((ct_value_kind)v->kind) {
    case CT_VALUE_UNDEFINED:
        n = 0;
        break;
    case CT_VALUE_STRING:
        n = 0;
        for (size_t i = 0; i < v->u.text.n; i++)
            n += ((unsigned char)v->u.text.p[i] & 0xc0) != 0x80;
        break;
    case CT_VALUE_LIST:
        if (v->sub == CT_LIST_GENERATOR)
            return false;
        n = v->u.list.n;
        break;
    case CT_VALUE_MAP:
        n = v->u.map->n;
        break;
    case CT_VALUE_RANGE:
        n = v->u.range.n;
        break;
    case CT_VALUE_NONE:
    case CT_VALUE_BOOL:
    case CT_VALUE_INT:
    case CT_VALUE_BIGINT:
    case CT_VALUE_FLOAT:
    case CT_VALUE_NAMESPACE:
    case CT_VALUE_CALLABLE:
    case CT_VALUE_METHOD:
    case CT_VALUE_LOOP:
    default:
        return false;
    }
    *out = n;
    return true;
}

static int sign_of(int64_t a, int64_t b)
{
    return (a > b) - (a < b);
}

/* Decimal texts without leading zeros, possibly with a minus. */
static int compare_decimal(ct_str a, ct_str b)
{
    bool negative = a.p[0] == '-';
    int c;

    if (negative != (b.p[0] == '-'))
        return negative ? -1 : 1;
    c = a.n != b.n ? sign_of((int64_t)a.n, (int64_t)b.n) : memcmp(a.p, b.p, a.n);
    c = (c > 0) - (c < 0);
    return negative ? -c : c;
}

static int compare_int_double(int64_t i, double f)
{
    double whole;

    if (f >= TWO_63)
        return -1;
    if (f < -TWO_63)
        return 1;
    whole = trunc(f);
    if (i != (int64_t)whole)
        return sign_of(i, (int64_t)whole);
    return (whole > f) - (whole < f);
}

static int compare_big_double(const ct_value *big, double f)
{
    char z[DOUBLE_TEXT];
    int n;

    if (fabs(f) < TWO_63 || isinf(f))
        return isinf(f) ? (f > 0 ? -1 : 1) : big->u.text.p[0] == '-' ? -1 : 1;
    n = snprintf(z, sizeof z, "%.0f", f);
    return compare_decimal(ct_value_text(big), (ct_str){z, (size_t)n});
}

/* Numbers that are not NaN; exact, as in Python. */
static int compare_numbers(const ct_value *a, const ct_value *b)
{
    int64_t i, j;

    if (a->kind == CT_VALUE_FLOAT && b->kind == CT_VALUE_FLOAT)
        return (a->u.number > b->u.number) - (a->u.number < b->u.number);
    if (a->kind == CT_VALUE_FLOAT)
        return -compare_numbers(b, a);
    if (ct_value_as_int(a, &i)) {
        if (ct_value_as_int(b, &j))
            return sign_of(i, j);
        return b->kind == CT_VALUE_FLOAT ? compare_int_double(i, b->u.number)
               : b->u.text.p[0] == '-'   ? 1
                                         : -1;
    }
    if (b->kind == CT_VALUE_FLOAT)
        return compare_big_double(a, b->u.number);
    if (b->kind == CT_VALUE_BIGINT)
        return compare_decimal(ct_value_text(a), ct_value_text(b));
    return a->u.text.p[0] == '-' ? -1 : 1;
}

static bool is_nan(const ct_value *v)
{
    return v->kind == CT_VALUE_FLOAT && isnan(v->u.number);
}

static bool equal(bool *out, const ct_value *a, const ct_value *b, unsigned depth, ct_op_error *e);

static bool equal_lists(bool *out, const ct_value *a, const ct_value *b, unsigned depth,
                        ct_op_error *e)
{
    *out = false;
    if (a->sub != b->sub)
        return true;
    if (a->sub != CT_LIST_LIST && a->sub != CT_LIST_TUPLE)
        return ct_op_fail(e, "comparing views of a mapping is not supported");
    if (a->u.list.n != b->u.list.n)
        return true;
    for (size_t i = 0; i < a->u.list.n; i++) {
        if (!equal(out, &a->u.list.item[i], &b->u.list.item[i], depth + 1, e))
            return false;
        if (!*out)
            return true;
    }
    *out = true;
    return true;
}

static bool equal_maps(bool *out, const ct_map_body *a, const ct_map_body *b, unsigned depth,
                       ct_op_error *e)
{
    *out = false;
    if (a->n != b->n)
        return true;
    for (size_t i = 0; i < a->n; i++) {
        const ct_value *other = ct_map_find(b, a->entry[i].key);

        if (!other)
            return true;
        if (!equal(out, &a->entry[i].value, other, depth + 1, e))
            return false;
        if (!*out)
            return true;
    }
    *out = true;
    return true;
}

static bool equal_ranges(const ct_value *a, const ct_value *b)
{
    return a->u.range.n == b->u.range.n &&
           (!a->u.range.n ||
            (a->u.range.start == b->u.range.start && (a->u.range.n == 1 || a->step == b->step)));
}

static bool equal(bool *out, const ct_value *a, const ct_value *b, unsigned depth, ct_op_error *e)
{
    if (depth > CT_VALUE_MAX_DEPTH)
        return ct_op_fail(e, "values nested deeper than %d levels", CT_VALUE_MAX_DEPTH);
    *out = false;
    if (ct_value_is_number(a) && ct_value_is_number(b)) {
        *out = !is_nan(a) && !is_nan(b) && compare_numbers(a, b) == 0;
        return true;
    }
    if (a->kind != b->kind)
        return true;
    switch ((ct_value_kind)a->kind) {
    case CT_VALUE_UNDEFINED:
    case CT_VALUE_NONE:
        *out = true;
        return true;
    case CT_VALUE_STRING:
        *out = ct_str_eq(ct_value_text(a), ct_value_text(b));
        return true;
    case CT_VALUE_LIST:
        return equal_lists(out, a, b, depth, e);
    case CT_VALUE_MAP:
        return equal_maps(out, a->u.map, b->u.map, depth, e);
    case CT_VALUE_RANGE:
        *out = equal_ranges(a, b);
        return true;
    case CT_VALUE_NAMESPACE:
        *out = a->u.ns == b->u.ns;
        return true;
    case CT_VALUE_CALLABLE:
        *out = a->u.object == b->u.object && a->step == b->step;
        return true;
    case CT_VALUE_METHOD:
    case CT_VALUE_LOOP:
    case CT_VALUE_BOOL:
    case CT_VALUE_INT:
    case CT_VALUE_BIGINT:
    case CT_VALUE_FLOAT:
        break;
    }
    return ct_op_fail(e, "comparing methods is not supported");
}

bool ct_value_equal(bool *out, const ct_value *a, const ct_value *b, ct_op_error *e)
{
    return equal(out, a, b, 0, e);
}

static bool compare(int *out, const ct_value *a, const ct_value *b, const char *op, unsigned depth,
                    ct_op_error *e)
{
    size_t n;

    if (depth > CT_VALUE_MAX_DEPTH)
        return ct_op_fail(e, "values nested deeper than %d levels", CT_VALUE_MAX_DEPTH);
    if (a->kind == CT_VALUE_UNDEFINED || b->kind == CT_VALUE_UNDEFINED) {
        ct_value_undefined_text(a->kind == CT_VALUE_UNDEFINED ? a : b, e);
        return false;
    }
    if (ct_value_is_number(a) && ct_value_is_number(b)) {
        if (is_nan(a) || is_nan(b))
            return ct_op_fail(e, "ordering NaN is not supported");
        *out = compare_numbers(a, b);
        return true;
    }
    if (a->kind == CT_VALUE_STRING && b->kind == CT_VALUE_STRING) {
        *out = ct_str_cmp(ct_value_text(a), ct_value_text(b));
        *out = (*out > 0) - (*out < 0);
        return true;
    }
    if (a->kind != CT_VALUE_LIST || b->kind != CT_VALUE_LIST || a->sub != b->sub ||
        a->sub > CT_LIST_TUPLE)
        return ct_op_fail(e, "'%s' not supported between instances of '%s' and '%s'", op,
                          type_of(a), type_of(b));
    n = ct_min_size(a->u.list.n, b->u.list.n);
    for (size_t i = 0; i < n; i++) {
        bool same;

        if (!equal(&same, &a->u.list.item[i], &b->u.list.item[i], depth + 1, e))
            return false;
        if (!same)
            return compare(out, &a->u.list.item[i], &b->u.list.item[i], op, depth + 1, e);
    }
    *out = sign_of((int64_t)a->u.list.n, (int64_t)b->u.list.n);
    return true;
}

bool ct_value_compare(int *out, const ct_value *a, const ct_value *b, const char *op,
                      ct_op_error *e)
{
    return compare(out, a, b, op, 0, e);
}

static bool hashable(const ct_value *v)
{
    if (v->kind == CT_VALUE_LIST && v->sub == CT_LIST_TUPLE) {
        for (size_t i = 0; i < v->u.list.n; i++)
            /* One level: tuples of tuples come from nested literals only. */
            if (v->u.list.item[i].kind == CT_VALUE_LIST || v->u.list.item[i].kind == CT_VALUE_MAP)
                return false;
        return true;
    }
    return v->kind != CT_VALUE_LIST && v->kind != CT_VALUE_MAP;
}

static bool in_range(const ct_value *item, const ct_value *range)
{
    for (size_t i = 0; i < range->u.range.n; i++) {
        ct_value at = ct_value_int(ct_range_at(range, i));

        if (ct_value_is_number(item) && !is_nan(item) && compare_numbers(item, &at) == 0)
            return true;
    }
    return false;
}

bool ct_value_in(bool *out, const ct_value *item, const ct_value *container, ct_op_error *e)
{
    *out = false;
    if (container->kind == CT_VALUE_STRING) {
        if (item->kind != CT_VALUE_STRING)
            return ct_op_fail(e, "'in <string>' requires string as left operand, not %s",
                              type_of(item));
        *out = !item->u.text.n ||
               (container->u.text.n &&
                memmem(container->u.text.p, container->u.text.n, item->u.text.p, item->u.text.n));
        return true;
    }
    if (container->kind == CT_VALUE_MAP) {
        if (!hashable(item))
            return ct_op_fail(e, "unhashable type: '%s'", type_of(item));
        *out = item->kind == CT_VALUE_STRING && ct_map_find(container->u.map, ct_value_text(item));
        return true;
    }
    if (container->kind == CT_VALUE_LIST) {
        for (size_t i = 0; i < container->u.list.n && !*out; i++)
            if (!equal(out, &container->u.list.item[i], item, 1, e))
                return false;
        return true;
    }
    if (container->kind == CT_VALUE_RANGE)
        *out = in_range(item, container);
    else if (container->kind != CT_VALUE_UNDEFINED)
        return ct_op_fail(e, "argument of type '%s' is not iterable", type_of(container));
    return true;
}
