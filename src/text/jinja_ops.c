/* Arithmetic and slices, with Python's results for integers of 64 bits and floats. */
#include "text/jinja_run.h"

#include "base/checked.h"
#include "text/unicode.h"

#include <math.h>
#include <stdlib.h>

#define EXACT_DOUBLE ((int64_t)1 << 53) /* integers up to here are doubles too */

static const char *type_of(const ct_value *v)
{
    return ct_value_type_name(v->kind, v->sub);
}

static const char *op_name(unsigned op)
{
    static const char *const names[] = {
        [JINJA_ADD] = "+", [JINJA_SUB] = "-",       [JINJA_MUL] = "*",
        [JINJA_DIV] = "/", [JINJA_FLOORDIV] = "//", [JINJA_MOD] = "%",
    };

    return names[op];
}

static ct_status unsupported(jinja_run *r, const jinja_node *n, const ct_value *a,
                             const ct_value *b)
{
    return run_fail(r, n, "unsupported operand type(s) for %s: '%s' and '%s'", op_name(n->op),
                    type_of(a), type_of(b));
}

static ct_status too_big(jinja_run *r, const jinja_node *n)
{
    return run_fail(r, n, "arithmetic beyond 64-bit integers is not supported");
}

static int64_t floor_div(int64_t a, int64_t b)
{
    return a / b - (a % b != 0 && (a < 0) != (b < 0));
}

static ct_status int_arithmetic(jinja_run *r, const jinja_node *n, int64_t a, int64_t b,
                                ct_value *out)
{
    int64_t v = 0;
    bool overflow = false;

    if ((n->op == JINJA_DIV || n->op == JINJA_FLOORDIV || n->op == JINJA_MOD) && !b)
        return run_fail(
            r, n, n->op == JINJA_DIV ? "division by zero" : "integer division or modulo by zero");
    switch ((jinja_op)n->op) {
    case JINJA_ADD:
        overflow = __builtin_add_overflow(a, b, &v);
        break;
    case JINJA_SUB:
        overflow = __builtin_sub_overflow(a, b, &v);
        break;
    case JINJA_MUL:
        overflow = __builtin_mul_overflow(a, b, &v);
        break;
    case JINJA_DIV:
        if (a > EXACT_DOUBLE || a < -EXACT_DOUBLE || b > EXACT_DOUBLE || b < -EXACT_DOUBLE)
            return too_big(r, n);
        *out = ct_value_float((double)a / (double)b);
        return CT_OK;
    case JINJA_FLOORDIV:
        overflow = a == INT64_MIN && b == -1;
        v = overflow ? 0 : floor_div(a, b);
        break;
    case JINJA_MOD:
        v = b == -1 ? 0 : a - floor_div(a, b) * b;
        break;
    default:
        break;
    }
    if (overflow)
        return too_big(r, n);
    *out = ct_value_int(v);
    return CT_OK;
}

/* As CPython's float_divmod. */
static void float_divmod(double a, double b, double *div, double *mod)
{
    *mod = fmod(a, b);
    *div = (a - *mod) / b;
    if (*mod != 0) {
        if ((b < 0) != (*mod < 0)) {
            *mod += b;
            *div -= 1;
        }
    } else {
        *mod = copysign(0, b);
    }
    if (*div != 0) {
        double whole = floor(*div);

        *div = *div - whole > 0.5 ? whole + 1 : whole;
    } else {
        *div = copysign(0, a / b);
    }
}

static ct_status float_arithmetic(jinja_run *r, const jinja_node *n, double a, double b,
                                  ct_value *out)
{
    double v = 0, rest;

    if ((n->op == JINJA_DIV || n->op == JINJA_FLOORDIV || n->op == JINJA_MOD) && b == 0)
        return run_fail(r, n,
                        n->op == JINJA_MOD        ? "float modulo"
                        : n->op == JINJA_FLOORDIV ? "float floor division by zero"
                                                  : "float division by zero");
    switch ((jinja_op)n->op) {
    case JINJA_ADD:
        v = a + b;
        break;
    case JINJA_SUB:
        v = a - b;
        break;
    case JINJA_MUL:
        v = a * b;
        break;
    case JINJA_DIV:
        v = a / b;
        break;
    case JINJA_FLOORDIV:
        float_divmod(a, b, &v, &rest);
        break;
    case JINJA_MOD:
        float_divmod(a, b, &rest, &v);
        break;
    default:
        break;
    }
    *out = ct_value_float(v);
    return CT_OK;
}

static double as_double(const ct_value *v)
{
    return v->kind == CT_VALUE_FLOAT ? v->u.number
           : v->kind == CT_VALUE_INT ? (double)v->u.integer
                                     : (double)v->u.boolean;
}

/* Text or list times an integer. */
static ct_status repeat(jinja_run *r, const jinja_node *n, const ct_value *v, int64_t times,
                        ct_value *out)
{
    bool text = v->kind == CT_VALUE_STRING;
    size_t one = text ? v->u.text.n : v->u.list.n, all;
    size_t bytes = text ? 1 : sizeof(ct_value), limit = r->limits.output_bytes / bytes;
    const char *from = text ? v->u.text.p : (const char *)v->u.list.item;
    char *p;
    ct_status st;

    if (times < 0 || !one)
        times = 0;
    if (!ct_mul_size(&all, one, (size_t)times) || all > limit)
        return jinja_fail(r->j->name, n->line, CT_ELIMIT, r->err,
                          "a repetition of %zu times %lld exceeds the limit of %zu", one,
                          (long long)times, limit);
    st = run_steps(r, n, all);
    if (st)
        return st;
    p = ct_arena_alloc(r->a, all * bytes, _Alignof(ct_value));
    if (!p)
        return run_full(r, n);
    for (size_t i = 0; i < (size_t)times; i++)
        memcpy(p + i * one * bytes, from, one * bytes);
    *out = text ? ct_value_str((ct_str){p, all})
                : ct_value_list((const ct_value *)(const void *)p, all, v->sub);
    return CT_OK;
}

static ct_status join_lists(jinja_run *r, const jinja_node *n, const ct_value *a, const ct_value *b,
                            ct_value *out)
{
    size_t count = a->u.list.n + b->u.list.n;
    ct_status st = run_steps(r, n, count);
    ct_value *items;

    if (st)
        return st;
    items = run_values(r, count);
    if (!items)
        return run_full(r, n);
    if (a->u.list.n)
        memcpy(items, a->u.list.item, a->u.list.n * sizeof *items);
    if (b->u.list.n)
        memcpy(items + a->u.list.n, b->u.list.item, b->u.list.n * sizeof *items);
    *out = ct_value_list(items, count, a->sub);
    return CT_OK;
}

static bool sequence(const ct_value *v)
{
    return v->kind == CT_VALUE_STRING || (v->kind == CT_VALUE_LIST && v->sub <= CT_LIST_TUPLE);
}

static ct_status add(jinja_run *r, const jinja_node *n, const ct_value *a, const ct_value *b,
                     ct_value *out)
{
    ct_status st;
    ct_str s;

    if (!sequence(a))
        return unsupported(r, n, a, b);
    if (a->kind != b->kind || (a->kind == CT_VALUE_LIST && a->sub != b->sub))
        return run_fail(r, n, "can only concatenate %s (not \"%s\") to %s", type_of(a), type_of(b),
                        type_of(a));
    if (a->kind == CT_VALUE_LIST)
        return join_lists(r, n, a, b, out);
    st = run_concat(r, n, ct_value_text(a), ct_value_text(b), &s);
    if (!st)
        *out = ct_value_str(s);
    return st;
}

ct_status run_binary(jinja_run *r, const jinja_node *n, const ct_value *a, const ct_value *b,
                     ct_value *out)
{
    int64_t i, j;

    if (a->kind == CT_VALUE_UNDEFINED || b->kind == CT_VALUE_UNDEFINED)
        return run_undefined(r, n, a->kind == CT_VALUE_UNDEFINED ? a : b);
    if (ct_value_as_int(a, &i) && ct_value_as_int(b, &j))
        return int_arithmetic(r, n, i, j, out);
    if (ct_value_is_number(a) && ct_value_is_number(b)) {
        if (a->kind == CT_VALUE_BIGINT || b->kind == CT_VALUE_BIGINT)
            return too_big(r, n);
        return float_arithmetic(r, n, as_double(a), as_double(b), out);
    }
    if (n->op == JINJA_ADD)
        return add(r, n, a, b, out);
    if (n->op == JINJA_MUL && sequence(a) && ct_value_as_int(b, &i))
        return repeat(r, n, a, i, out);
    if (n->op == JINJA_MUL && sequence(b) && ct_value_as_int(a, &i))
        return repeat(r, n, b, i, out);
    if (n->op == JINJA_MOD && a->kind == CT_VALUE_STRING)
        return run_fail(r, n, "formatting with %% is not supported");
    return unsupported(r, n, a, b);
}

static ct_status negate_big(jinja_run *r, const jinja_node *n, const ct_value *v, ct_value *out)
{
    ct_str s = ct_value_text(v);
    char *p;

    if (s.p[0] == '-') {
        *out = ct_value_int_text((ct_str){s.p + 1, s.n - 1});
        return CT_OK;
    }
    p = ct_arena_alloc(r->a, s.n + 1, 1);
    if (!p)
        return run_full(r, n);
    p[0] = '-';
    memcpy(p + 1, s.p, s.n);
    *out = ct_value_int_text((ct_str){p, s.n + 1});
    return CT_OK;
}

ct_status run_negate(jinja_run *r, const jinja_node *n, const ct_value *v, ct_value *out)
{
    static const char two_63[] = "9223372036854775808";
    bool minus = n->kind == JINJA_NEGATE;
    int64_t i;

    if (v->kind == CT_VALUE_UNDEFINED)
        return run_undefined(r, n, v);
    if (ct_value_as_int(v, &i)) {
        *out = minus && i == INT64_MIN ? ct_value_int_text(ct_str_of(two_63))
                                       : ct_value_int(minus ? -i : i);
        return CT_OK;
    }
    if (v->kind == CT_VALUE_FLOAT) {
        *out = ct_value_float(minus ? -v->u.number : v->u.number);
        return CT_OK;
    }
    if (v->kind != CT_VALUE_BIGINT)
        return run_fail(r, n, "bad operand type for unary %c: '%s'", minus ? '-' : '+', type_of(v));
    if (minus)
        return negate_big(r, n, v, out);
    *out = *v;
    return CT_OK;
}

/* Python's PySlice_AdjustIndices; step is not 0. */
static size_t slice_bounds(const ct_value part[3], int64_t step, size_t len, int64_t *start)
{
    int64_t n = (int64_t)len, low = step < 0 ? -1 : 0, high = step < 0 ? n - 1 : n;
    int64_t bound[2] = {step < 0 ? high : low, step < 0 ? low : high};

    for (int k = 0; k < 2; k++) {
        int64_t v;

        if (!ct_value_as_int(&part[k], &v))
            continue;
        if (v < 0)
            v += n;
        bound[k] = v < low ? low : v > high ? high : v;
    }
    *start = bound[0];
    if (step < 0)
        return bound[1] < bound[0] ? (size_t)((bound[0] - bound[1] - 1) / -step + 1) : 0;
    return bound[0] < bound[1] ? (size_t)((bound[1] - bound[0] - 1) / step + 1) : 0;
}

static ct_status slice_list(jinja_run *r, const jinja_node *n, const ct_value *v, int64_t start,
                            int64_t step, size_t count, ct_value *out)
{
    ct_value *items;

    if (step == 1 || !count) {
        *out = ct_value_list(count ? v->u.list.item + start : NULL, count, v->sub);
        return CT_OK;
    }
    items = run_values(r, count);
    if (!items)
        return run_full(r, n);
    for (size_t i = 0; i < count; i++)
        items[i] = v->u.list.item[start + (int64_t)i * step];
    *out = ct_value_list(items, count, v->sub);
    return CT_OK;
}

static ct_status slice_text(jinja_run *r, const jinja_node *n, ct_str s, int64_t start,
                            int64_t step, size_t count, ct_value *out)
{
    size_t at = ct_utf8_offset(s, 0, (size_t)(start < 0 ? 0 : start)), used = 0;
    char *p;

    if (step == 1 || !count) {
        *out = ct_value_str((ct_str){s.p + at, count ? ct_utf8_offset(s, at, count) - at : 0});
        return CT_OK;
    }
    p = ct_arena_alloc(r->a, s.n, 1);
    if (!p)
        return run_full(r, n);
    for (size_t i = 0; i < count; i++) {
        size_t end = ct_utf8_offset(s, at, 1);

        memcpy(p + used, s.p + at, end - at);
        used += end - at;
        if (i + 1 == count)
            break;
        if (step > 0)
            at = ct_utf8_offset(s, at, (size_t)step);
        for (int64_t k = step; k < 0; k++)
            for (at--; ((unsigned char)s.p[at] & 0xc0) == 0x80;)
                at--;
    }
    *out = ct_value_str((ct_str){p, used});
    return CT_OK;
}

ct_status run_slice(jinja_run *r, const jinja_node *n, const ct_value *v, const ct_value part[3],
                    ct_value *out)
{
    int64_t start, step = 1, ignored;
    size_t len = 0, count;
    ct_status st;

    if (v->kind == CT_VALUE_UNDEFINED)
        return run_undefined(r, n, v);
    if (v->kind == CT_VALUE_MAP)
        return run_fail(r, n, "unhashable type: 'slice'");
    if (!sequence(v))
        return run_fail(r, n, "slicing '%s' is not supported", type_of(v));
    for (int k = 0; k < 3; k++)
        if (part[k].kind != CT_VALUE_NONE && !ct_value_as_int(&part[k], &ignored))
            return run_fail(r, n,
                            "slice indices must be integers or None or have an __index__ "
                            "method");
    if (ct_value_as_int(&part[2], &step) && !step)
        return run_fail(r, n, "slice step cannot be zero");
    /* Beyond the length one step is as good as another. */
    step = step > INT32_MAX ? INT32_MAX : step < -INT32_MAX ? -INT32_MAX : step;
    ct_value_len(&len, v);
    count = slice_bounds(part, step, len, &start);
    st = run_steps(r, n, v->kind == CT_VALUE_STRING ? len / 64 : step == 1 ? 0 : count);
    if (st)
        return st;
    return v->kind == CT_VALUE_LIST ? slice_list(r, n, v, start, step, count, out)
                                    : slice_text(r, n, ct_value_text(v), start, step, count, out);
}
