/* One rendering: what jinja_exec.c, jinja_eval.c, jinja_filters.c and jinja_methods.c
 * share. */
#ifndef CT_TEXT_JINJA_RUN_H
#define CT_TEXT_JINJA_RUN_H

#include "text/jinja_ast.h"
#include "text/value_ops.h"

#define RUN_TAILS 4

/* The end of a string that was built by concatenation, with room behind it: appending
 * to the same string again costs only what is appended. */
typedef struct run_tail {
    char *base;
    size_t used, room;
} run_tail;

typedef enum run_flow { FLOW_NORMAL, FLOW_BREAK, FLOW_CONTINUE } run_flow;

typedef struct jinja_run {
    const ct_jinja *j;
    const ct_value *vars;
    ct_arena *a;     /* values */
    ct_arena frames; /* variables of the calls in progress */
    ct_buf *out;
    size_t out_start;
    ct_buf capture; /* bodies of macros and block sets in progress, one behind another */
    unsigned n_captures;
    ct_value *top, *own; /* variables of the top level and of the current call */
    ct_jinja_limits limits;
    size_t n_steps;
    unsigned depth, calls;
    run_flow flow;
    run_tail tail[RUN_TAILS];
    unsigned next_tail;
    ct_error *err;
} jinja_run;

typedef struct run_iter {
    ct_value over;
    size_t i, at; /* index; byte offset in a string */
} run_iter;

ct_status run_fail(jinja_run *r, const jinja_node *n, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
ct_status run_full(jinja_run *r, const jinja_node *n);
ct_status run_op_fail(jinja_run *r, const jinja_node *n, const ct_op_error *e);
ct_status run_undefined(jinja_run *r, const jinja_node *n, const ct_value *v);
/* Counts work; fails at the limit. */
ct_status run_steps(jinja_run *r, const jinja_node *n, size_t steps);
/* Memory for n values of a list. */
ct_value *run_values(jinja_run *r, size_t n);

ct_status run_eval(jinja_run *r, const jinja_node *n, ct_value *out);
ct_status run_iterate(jinja_run *r, const jinja_node *n, const ct_value *v, run_iter *it);
bool run_next(run_iter *it, ct_value *out);
/* All items as an array. */
ct_status run_collect(jinja_run *r, const jinja_node *n, const ct_value *v, ct_value *out);

/* str(v), in the arena. */
ct_status run_text(jinja_run *r, const jinja_node *n, const ct_value *v, ct_str *out);
/* Scratch at the end of the capture buffer, and its content moved to the arena. */
size_t run_scratch(jinja_run *r);
ct_status run_take(jinja_run *r, const jinja_node *n, size_t mark, ct_str *out);
ct_status run_concat(jinja_run *r, const jinja_node *n, ct_str a, ct_str b, ct_str *out);
ct_status run_replace(jinja_run *r, const jinja_node *n, ct_str s, ct_str from, ct_str to,
                      ct_value *out);

/* Attribute and item as Jinja2's environment finds them. */
void run_attr(const ct_value *object, ct_str name, ct_value *out);
ct_status run_item(jinja_run *r, const jinja_node *n, const ct_value *object, const ct_value *key,
                   ct_value *out);
ct_value run_undefined_hint(const char *text);

/* jinja_ops.c */
ct_status run_binary(jinja_run *r, const jinja_node *n, const ct_value *a, const ct_value *b,
                     ct_value *out);
ct_status run_negate(jinja_run *r, const jinja_node *n, const ct_value *v, ct_value *out);
ct_status run_slice(jinja_run *r, const jinja_node *n, const ct_value *v, const ct_value part[3],
                    ct_value *out);

/* jinja_filters.c, jinja_methods.c, jinja_exec.c */
ct_status run_filter(jinja_run *r, const jinja_node *n, unsigned filter, const ct_value *v,
                     ct_value *out);
ct_status run_test(jinja_run *r, const jinja_node *n, const ct_value *v, const ct_value *arg,
                   bool *out);
ct_status run_method(jinja_run *r, const jinja_node *n, const ct_value *object, ct_value *out);
ct_status run_views(jinja_run *r, const jinja_node *n, const ct_map_body *map, ct_list_kind kind,
                    ct_value *out);
ct_status run_call(jinja_run *r, const jinja_node *n, ct_value *out);
ct_status run_loop_attr(jinja_run *r, const jinja_node *n, ct_value *out);

static inline ct_value *run_slot(jinja_run *r, jinja_ref ref)
{
    return (ref.top ? r->top : r->own) + ref.slot;
}

/* An empty variable: all zero.  Undefined values have a name. */
static inline bool run_missing(const ct_value *v)
{
    return v->kind == CT_VALUE_UNDEFINED && v->sub == CT_UNDEFINED_NAME && !v->u.text.p;
}

#endif
