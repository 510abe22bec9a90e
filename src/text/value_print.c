/* Values as text: Python's str and repr, and JSON. */
#include "base/utf8.h"
#include "text/unicode.h"
#include "text/value_ops.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#define FLOAT_DIGITS 17 /* always enough to name a double */

/* The shortest digits that read back as f; exponent form outside 1e-4 … 1e16, as
 * Python's repr (float_repr_style "short"). */
void ct_value_put_float(ct_buf *out, double f)
{
    char z[40], digits[FLOAT_DIGITS + 1];
    int n = 0, exponent;

    if (isnan(f) || isinf(f)) {
        ct_buf_addz(out, isnan(f) ? "nan" : f > 0 ? "inf" : "-inf");
        return;
    }
    for (int precision = 0; precision < FLOAT_DIGITS; precision++) {
        snprintf(z, sizeof z, "%.*e", precision, f);
        if (strtod(z, NULL) == f)
            break;
    }
    exponent = (int)strtol(strchr(z, 'e') + 1, NULL, 10);
    for (const char *p = z; *p != 'e'; p++)
        if (*p >= '0' && *p <= '9')
            digits[n++] = *p;
    if (signbit(f))
        ct_buf_addc(out, '-');
    if (exponent < -4 || exponent >= 16) {
        ct_buf_addc(out, digits[0]);
        if (n > 1) {
            ct_buf_addc(out, '.');
            ct_buf_add(out, digits + 1, (size_t)n - 1);
        }
        ct_buf_addf(out, "e%c%02d", exponent < 0 ? '-' : '+', abs(exponent));
        return;
    }
    if (exponent < 0) {
        ct_buf_addz(out, "0.");
        for (int i = -1; i > exponent; i--)
            ct_buf_addc(out, '0');
        ct_buf_add(out, digits, (size_t)n);
        return;
    }
    for (int i = 0; i <= exponent || i < n; i++) {
        if (i == exponent + 1)
            ct_buf_addc(out, '.');
        ct_buf_addc(out, i < n ? digits[i] : '0');
    }
    if (n <= exponent + 1)
        ct_buf_addz(out, ".0");
}

static void put_escape(ct_buf *out, uint32_t cp)
{
    if (cp == '\n' || cp == '\r' || cp == '\t')
        ct_buf_addz(out, cp == '\n' ? "\\n" : cp == '\r' ? "\\r" : "\\t");
    else if (cp < 0x100)
        ct_buf_addf(out, "\\x%02" PRIx32, cp);
    else if (cp < 0x10000)
        ct_buf_addf(out, "\\u%04" PRIx32, cp);
    else
        ct_buf_addf(out, "\\U%08" PRIx32, cp);
}

void ct_value_put_str_repr(ct_buf *out, ct_str s)
{
    bool has_single = s.n && memchr(s.p, '\'', s.n), has_double = s.n && memchr(s.p, '"', s.n);
    char quote = has_single && !has_double ? '"' : '\'';
    unsigned len;

    ct_buf_addc(out, quote);
    for (size_t at = 0; at < s.n; at += len) {
        uint32_t cp = ct_utf8_next(s, at, &len);

        if (cp == (unsigned char)quote || cp == '\\') {
            ct_buf_addc(out, '\\');
            ct_buf_addc(out, (char)cp);
        } else if (ct_cp_is_printable(cp)) {
            ct_buf_add(out, s.p + at, len);
        } else {
            put_escape(out, cp);
        }
    }
    ct_buf_addc(out, quote);
}

static bool put_repr(ct_buf *out, const ct_value *v, unsigned depth, ct_op_error *e);

static bool put_items(ct_buf *out, const ct_value *v, unsigned depth, ct_op_error *e)
{
    for (size_t i = 0; i < v->u.list.n; i++) {
        if (i)
            ct_buf_addz(out, ", ");
        if (!put_repr(out, &v->u.list.item[i], depth, e))
            return false;
    }
    return true;
}

static bool put_list(ct_buf *out, const ct_value *v, unsigned depth, ct_op_error *e)
{
    bool tuple = v->sub == CT_LIST_TUPLE;

    if (v->sub == CT_LIST_GENERATOR)
        return ct_op_fail(e, "printing a generator is not supported");
    if (v->sub != CT_LIST_LIST && !tuple)
        ct_buf_addf(out, "%s(", ct_value_type_name(v->kind, v->sub));
    ct_buf_addc(out, tuple ? '(' : '[');
    if (!put_items(out, v, depth, e))
        return false;
    if (tuple && v->u.list.n == 1)
        ct_buf_addc(out, ',');
    ct_buf_addc(out, tuple ? ')' : ']');
    if (v->sub != CT_LIST_LIST && !tuple)
        ct_buf_addc(out, ')');
    return true;
}

static bool put_entries(ct_buf *out, const ct_map_entry *entry, size_t n, unsigned depth,
                        ct_op_error *e)
{
    ct_buf_addc(out, '{');
    for (size_t i = 0; i < n; i++) {
        if (i)
            ct_buf_addz(out, ", ");
        ct_value_put_str_repr(out, entry[i].key);
        ct_buf_addz(out, ": ");
        if (!put_repr(out, &entry[i].value, depth, e))
            return false;
    }
    ct_buf_addc(out, '}');
    return true;
}

static void put_range(ct_buf *out, const ct_value *v)
{
    /* The stop as it was written is not kept: range(a, b) and an equal range print the
     * same only for step 1, so others are refused by the caller. */
    ct_buf_addf(out, "range(%" PRId64 ", %" PRId64 ")", v->u.range.start,
                ct_range_at(v, v->u.range.n));
}

static bool put_repr(ct_buf *out, const ct_value *v, unsigned depth, ct_op_error *e)
{
    if (depth > CT_VALUE_MAX_DEPTH)
        return ct_op_fail(e, "values nested deeper than %d levels", CT_VALUE_MAX_DEPTH);
    if (out->failed)
        return ct_op_fail(e, "the text of a value exceeds the output limit");
    switch ((ct_value_kind)v->kind) {
    case CT_VALUE_UNDEFINED:
        ct_buf_addz(out, "Undefined");
        return true;
    case CT_VALUE_NONE:
        ct_buf_addz(out, "None");
        return true;
    case CT_VALUE_BOOL:
        ct_buf_addz(out, v->u.boolean ? "True" : "False");
        return true;
    case CT_VALUE_INT:
        ct_buf_addf(out, "%" PRId64, v->u.integer);
        return true;
    case CT_VALUE_BIGINT:
        ct_buf_add(out, v->u.text.p, v->u.text.n);
        return true;
    case CT_VALUE_FLOAT:
        ct_value_put_float(out, v->u.number);
        return true;
    case CT_VALUE_STRING:
        ct_value_put_str_repr(out, ct_value_text(v));
        return true;
    case CT_VALUE_LIST:
        return put_list(out, v, depth + 1, e);
    case CT_VALUE_MAP:
        return put_entries(out, v->u.map->entry, v->u.map->n, depth + 1, e);
    case CT_VALUE_RANGE:
        if (v->step != 1 || !v->u.range.n)
            break;
        put_range(out, v);
        return true;
    case CT_VALUE_NAMESPACE:
        ct_buf_addz(out, "<Namespace ");
        if (!put_entries(out, v->u.ns->entry, v->u.ns->n, depth + 1, e))
            return false;
        ct_buf_addc(out, '>');
        return true;
    case CT_VALUE_CALLABLE:
    case CT_VALUE_METHOD:
    case CT_VALUE_LOOP:
        break;
    }
    return ct_op_fail(e, "printing %s is not supported", ct_value_kind_name(v));
}

bool ct_value_put_repr(ct_buf *out, const ct_value *v, ct_op_error *e)
{
    return put_repr(out, v, 0, e);
}

bool ct_value_put_str(ct_buf *out, const ct_value *v, ct_op_error *e)
{
    if (v->kind == CT_VALUE_STRING)
        ct_buf_add(out, v->u.text.p, v->u.text.n);
    else if (v->kind != CT_VALUE_UNDEFINED)
        return put_repr(out, v, 0, e);
    return true;
}

/* As json.dumps: DEL and everything beyond ASCII stay as they are. */
static void put_json_str(ct_buf *out, ct_str s)
{
    static const char from[] = "\"\\\n\r\t\f\b", to[] = "\"\\nrtfb";
    size_t plain = 0;

    ct_buf_addc(out, '"');
    for (size_t at = 0; at < s.n; at++) {
        unsigned char c = (unsigned char)s.p[at];
        const char *escape = c ? strchr(from, c) : NULL;

        if (c >= 0x20 && !escape)
            continue;
        ct_buf_add(out, s.p + plain, at - plain);
        plain = at + 1;
        if (escape)
            ct_buf_add(out, (char[]){'\\', to[escape - from]}, 2);
        else
            ct_buf_addf(out, "\\u%04x", c);
    }
    if (s.n > plain)
        ct_buf_add(out, s.p + plain, s.n - plain);
    ct_buf_addc(out, '"');
}

static void put_break(ct_buf *out, int indent, unsigned depth)
{
    if (indent < 0)
        return;
    ct_buf_addc(out, '\n');
    for (size_t i = 0; i < (size_t)indent * depth && !out->failed; i++)
        ct_buf_addc(out, ' ');
}

static bool put_json(ct_buf *out, const ct_value *v, int indent, unsigned depth, ct_op_error *e);

static bool put_json_container(ct_buf *out, const ct_value *v, int indent, unsigned depth,
                               ct_op_error *e)
{
    bool map = v->kind == CT_VALUE_MAP;
    size_t n = map ? v->u.map->n : v->u.list.n;

    ct_buf_addc(out, map ? '{' : '[');
    for (size_t i = 0; i < n; i++) {
        if (i)
            ct_buf_addz(out, indent < 0 ? ", " : ",");
        put_break(out, indent, depth + 1);
        if (map) {
            put_json_str(out, v->u.map->entry[i].key);
            ct_buf_addz(out, ": ");
        }
        if (!put_json(out, map ? &v->u.map->entry[i].value : &v->u.list.item[i], indent, depth + 1,
                      e))
            return false;
    }
    if (n)
        put_break(out, indent, depth);
    ct_buf_addc(out, map ? '}' : ']');
    return true;
}

static bool put_json(ct_buf *out, const ct_value *v, int indent, unsigned depth, ct_op_error *e)
{
    if (depth > CT_VALUE_MAX_DEPTH)
        return ct_op_fail(e, "values nested deeper than %d levels", CT_VALUE_MAX_DEPTH);
    if (out->failed)
        return ct_op_fail(e, "the text of a value exceeds the output limit");
    if (v->kind == CT_VALUE_STRING)
        put_json_str(out, ct_value_text(v));
    else if (v->kind == CT_VALUE_NONE)
        ct_buf_addz(out, "null");
    else if (v->kind == CT_VALUE_BOOL)
        ct_buf_addz(out, v->u.boolean ? "true" : "false");
    else if (v->kind == CT_VALUE_FLOAT && !isfinite(v->u.number))
        ct_buf_addz(out, isnan(v->u.number) ? "NaN" : v->u.number > 0 ? "Infinity" : "-Infinity");
    else if (ct_value_is_number(v))
        return put_repr(out, v, depth, e);
    else if (v->kind == CT_VALUE_MAP || (v->kind == CT_VALUE_LIST && v->sub <= CT_LIST_TUPLE))
        return put_json_container(out, v, indent, depth, e);
    else
        return ct_op_fail(e, "Object of type %s is not JSON serializable",
                          ct_value_type_name(v->kind, v->sub));
    return true;
}

bool ct_value_put_json(ct_buf *out, const ct_value *v, int indent, ct_op_error *e)
{
    return put_json(out, v, indent, 0, e);
}
