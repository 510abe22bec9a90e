/* Python's rules for values: printing, truth, equality, order, membership. */
#ifndef CT_TEXT_VALUE_OPS_H
#define CT_TEXT_VALUE_OPS_H

#include "text/value.h"

#define CT_VALUE_MAX_DEPTH 200 /* nesting that is printed or compared */

/* Why an operation gave no result; the text is for "NAME:LINE: …".  All-zero: it did. */
typedef struct ct_op_error {
    char text[200];
} ct_op_error;

bool ct_op_fail(ct_op_error *e, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* The functions that return bool give false, with e filled, on an error. */

/* str(v), repr(v), json.dumps(v, ensure_ascii=False).  Appended to out, whose cap the
 * caller checks. */
bool ct_value_put_str(ct_buf *out, const ct_value *v, ct_op_error *e);
bool ct_value_put_repr(ct_buf *out, const ct_value *v, ct_op_error *e);
/* indent < 0: on one line. */
bool ct_value_put_json(ct_buf *out, const ct_value *v, int indent, ct_op_error *e);
void ct_value_put_float(ct_buf *out, double f);
void ct_value_put_str_repr(ct_buf *out, ct_str s);

bool ct_value_truth(const ct_value *v);
bool ct_value_equal(bool *out, const ct_value *a, const ct_value *b, ct_op_error *e);
/* -1, 0 or 1; op names the operator in the message. */
bool ct_value_compare(int *out, const ct_value *a, const ct_value *b, const char *op,
                      ct_op_error *e);
bool ct_value_in(bool *out, const ct_value *item, const ct_value *container, ct_op_error *e);
/* False for what has no len(). */
bool ct_value_len(size_t *out, const ct_value *v);

/* Message of an undefined value that was used. */
void ct_value_undefined_text(const ct_value *v, ct_op_error *e);

static inline bool ct_value_is_number(const ct_value *v)
{
    return v->kind == CT_VALUE_BOOL || v->kind == CT_VALUE_INT || v->kind == CT_VALUE_BIGINT ||
           v->kind == CT_VALUE_FLOAT;
}

/* BOOL and INT as int64_t. */
static inline bool ct_value_as_int(const ct_value *v, int64_t *out)
{
    if (v->kind != CT_VALUE_INT && v->kind != CT_VALUE_BOOL)
        return false;
    *out = v->kind == CT_VALUE_BOOL ? v->u.boolean : v->u.integer;
    return true;
}

static inline int64_t ct_range_at(const ct_value *range, size_t i)
{
    return range->u.range.start + (int64_t)i * (int32_t)range->step;
}

#endif
