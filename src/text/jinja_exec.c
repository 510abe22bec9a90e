/* Statements, macros and functions; the beginning and end of a rendering. */
#include "text/jinja_names.h"
#include "text/jinja_run.h"

#include "base/checked.h"

#include <stdio.h>

#define FRAMES_BYTES  ((size_t)16 << 20)
#define MAX_RANGE     100000 /* of Jinja2's sandbox */
#define MAX_RECURSION 4000

typedef struct loop_state {
    jinja_run *r;
    const jinja_node *n;
    run_iter it;
    size_t index0;
    bool known_length; /* without a test */
    size_t length;
    bool peeked, has_next, has_previous;
    ct_value current, previous, next;
} loop_state;

static ct_status exec_list(jinja_run *r, const jinja_node *list);

ct_status run_fail(jinja_run *r, const jinja_node *n, const char *fmt, ...)
{
    char text[300];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    return jinja_fail(r->j->name, n->line, CT_EINVAL, r->err, "%s", text);
}

ct_status run_full(jinja_run *r, const jinja_node *n)
{
    return jinja_fail(r->j->name, n->line, CT_ELIMIT, r->err,
                      "the values exceed the memory bound of %zu bytes", r->a->cap_bytes);
}

ct_status run_op_fail(jinja_run *r, const jinja_node *n, const ct_op_error *e)
{
    return run_fail(r, n, "%s", e->text);
}

ct_status run_undefined(jinja_run *r, const jinja_node *n, const ct_value *v)
{
    ct_op_error e;

    ct_value_undefined_text(v, &e);
    return run_op_fail(r, n, &e);
}

ct_status run_steps(jinja_run *r, const jinja_node *n, size_t steps)
{
    if (steps <= r->limits.steps - r->n_steps) {
        r->n_steps += steps;
        return CT_OK;
    }
    return jinja_fail(r->j->name, n->line, CT_ELIMIT, r->err, "more than %zu steps",
                      r->limits.steps);
}

static ct_status too_much(jinja_run *r, const jinja_node *n)
{
    return jinja_fail(r->j->name, n->line, CT_ELIMIT, r->err,
                      "the output exceeds the limit of %zu bytes", r->limits.output_bytes);
}

size_t run_scratch(jinja_run *r)
{
    return r->capture.n;
}

static void rewind_capture(jinja_run *r, size_t mark)
{
    r->capture.failed = false;
    r->capture.n = mark;
    if (r->capture.p)
        r->capture.p[mark] = '\0';
}

ct_status run_take(jinja_run *r, const jinja_node *n, size_t mark, ct_str *out)
{
    size_t len = r->capture.n - mark;
    char *p;
    ct_status st;

    if (r->capture.failed)
        return too_much(r, n);
    st = run_steps(r, n, len / 64);
    if (st)
        return st;
    p = ct_arena_alloc(r->a, len, 1);
    if (!p)
        return run_full(r, n);
    if (len)
        memcpy(p, r->capture.p + mark, len);
    rewind_capture(r, mark);
    *out = (ct_str){p, len};
    return CT_OK;
}

static ct_status emit(jinja_run *r, const jinja_node *n, ct_str s)
{
    size_t used = r->out->n - r->out_start + r->capture.n;
    ct_status st = run_steps(r, n, s.n / 64);

    if (st)
        return st;
    if (s.n > r->limits.output_bytes - ct_min_size(used, r->limits.output_bytes))
        return too_much(r, n);
    ct_buf_add(r->n_captures ? &r->capture : r->out, s.p, s.n);
    return r->capture.failed || r->out->failed ? too_much(r, n) : CT_OK;
}

static const ct_value *function_named(ct_str name)
{
    static const struct {
        const char *name;
        ct_value value;
    } functions[] = {
        {"namespace", {.kind = CT_VALUE_CALLABLE, .step = FUNCTION_NAMESPACE}},
        {"raise_exception", {.kind = CT_VALUE_CALLABLE, .step = FUNCTION_RAISE}},
        {"range", {.kind = CT_VALUE_CALLABLE, .step = FUNCTION_RANGE}},
    };

    for (size_t i = 0; i < CT_LEN(functions); i++)
        if (ct_str_is(name, functions[i].name))
            return &functions[i].value;
    return NULL;
}

static void enter_scope(jinja_run *r, const jinja_scope *scope, bool top)
{
    ct_value *slots = top ? r->top : r->own;

    for (uint32_t i = 0; i < scope->n; i++) {
        const jinja_var *v = &scope->var[i];
        const ct_value *from = NULL;

        if (v->load == JINJA_LOAD_CONTEXT) {
            from = ct_map_find(r->vars->u.map, v->name);
            if (!from)
                from = function_named(v->name);
        } else if (v->load == JINJA_LOAD_ALIAS) {
            from = run_slot(r, v->from);
        }
        slots[v->slot] = from ? *from : (ct_value){0};
    }
}

static ct_status assign(jinja_run *r, const jinja_node *target, const ct_value *v);

static ct_status unpack(jinja_run *r, const jinja_node *target, const ct_value *v)
{
    size_t want = 0, got = 0;
    run_iter it;
    ct_value item;
    ct_status st;

    for (const jinja_node *k = target->list; k; k = k->next)
        want++;
    if (v->kind != CT_VALUE_UNDEFINED && run_iterate(r, target, v, &it))
        return run_fail(r, target, "cannot unpack non-iterable %s object",
                        ct_value_type_name(v->kind, v->sub));
    st = run_iterate(r, target, v, &it);
    for (const jinja_node *k = target->list; k && !st; k = k->next, got++) {
        if (!run_next(&it, &item))
            return run_fail(r, target, "not enough values to unpack (expected %zu, got %zu)", want,
                            got);
        st = assign(r, k, &item);
    }
    if (!st && run_next(&it, &item))
        return run_fail(r, target, "too many values to unpack (expected %zu)", want);
    return st;
}

static ct_status set_attribute(jinja_run *r, const jinja_node *target, const ct_value *v)
{
    ct_namespace *ns = run_slot(r, target->a->ref)->u.ns;
    ct_map_entry *more;

    for (size_t i = 0; i < ns->n; i++)
        if (ct_str_eq(ns->entry[i].key, target->text)) {
            ns->entry[i].value = *v;
            return CT_OK;
        }
    if (ns->n == ns->room) {
        more = ct_arena_alloc(r->a, (2 * ns->room + 4) * sizeof *more, _Alignof(ct_map_entry));
        if (!more)
            return run_full(r, target);
        if (ns->n)
            memcpy(more, ns->entry, ns->n * sizeof *more);
        ns->room = 2 * ns->room + 4;
        ns->entry = more;
    }
    ns->entry[ns->n++] = (ct_map_entry){target->text, *v};
    return CT_OK;
}

static ct_status check_namespaces(jinja_run *r, const jinja_node *target)
{
    ct_status st = CT_OK;

    if (target->kind == JINJA_NSREF && run_slot(r, target->a->ref)->kind != CT_VALUE_NAMESPACE)
        return run_fail(r, target, "cannot assign attribute on non-namespace object");
    if (target->kind == JINJA_TUPLE)
        for (const jinja_node *k = target->list; k && !st; k = k->next)
            st = check_namespaces(r, k);
    return st;
}

static ct_status assign(jinja_run *r, const jinja_node *target, const ct_value *v)
{
    if (target->kind == JINJA_TUPLE)
        return unpack(r, target, v);
    if (target->kind == JINJA_NSREF)
        return set_attribute(r, target, v);
    *run_slot(r, target->ref) = *v;
    return CT_OK;
}

static ct_status exec_set(jinja_run *r, const jinja_node *n)
{
    ct_value v;
    ct_status st = check_namespaces(r, n->a);

    if (!st)
        st = run_eval(r, n->b, &v);
    return st ? st : assign(r, n->a, &v);
}

/* The chain of a block set's filters, innermost first. */
static ct_status apply_filters(jinja_run *r, const jinja_node *n, ct_value *v)
{
    ct_value in;
    ct_status st = CT_OK;

    if (n->a)
        st = apply_filters(r, n->a, v);
    in = *v;
    return st ? st : run_filter(r, n, n->id, &in, v);
}

static ct_status exec_setblock(jinja_run *r, const jinja_node *n, bool top)
{
    size_t mark = run_scratch(r);
    ct_value v;
    ct_str text;
    ct_status st;

    enter_scope(r, &n->scope, top);
    r->n_captures++;
    st = exec_list(r, n->list);
    r->n_captures--;
    if (!st)
        st = run_take(r, n, mark, &text);
    if (st)
        return st;
    v = ct_value_str(text);
    if (n->b)
        st = apply_filters(r, n->b, &v);
    if (!st)
        st = check_namespaces(r, n->a);
    return st ? st : assign(r, n->a, &v);
}

/* The next item that passes the loop's test. */
static ct_status loop_fetch(loop_state *l, ct_value *out, bool *found)
{
    jinja_run *r = l->r;
    const jinja_node *n = l->n;
    ct_value test;
    ct_status st;

    *found = false;
    while (run_next(&l->it, out)) {
        st = run_steps(r, n, 1);
        if (st)
            return st;
        *found = true;
        if (!n->c)
            return CT_OK;
        st = assign(r, n->d, out);
        if (!st)
            st = run_eval(r, n->c, &test);
        if (st || ct_value_truth(&test))
            return st;
        *found = false;
    }
    return CT_OK;
}

static ct_status loop_peek(loop_state *l)
{
    ct_status st = CT_OK;

    if (!l->peeked)
        st = loop_fetch(l, &l->next, &l->has_next);
    l->peeked = true;
    return st;
}

ct_status run_loop_attr(jinja_run *r, const jinja_node *n, ct_value *out)
{
    const ct_value *slot = run_slot(r, n->a->ref);
    loop_state *l;
    ct_status st = CT_OK;

    if (slot->kind != CT_VALUE_LOOP)
        return run_fail(r, n, "'loop' is undefined");
    /* The state lives in exec_for, which is running. */
    memcpy(&l, &slot->u.object, sizeof l);
    switch ((jinja_loop_attr)n->id) {
    case JINJA_LOOP_INDEX:
    case JINJA_LOOP_INDEX0:
        *out = ct_value_int((int64_t)l->index0 + (n->id == JINJA_LOOP_INDEX));
        break;
    case JINJA_LOOP_FIRST:
        *out = ct_value_bool(l->index0 == 0);
        break;
    case JINJA_LOOP_LAST:
        st = loop_peek(l);
        *out = ct_value_bool(!l->has_next);
        break;
    case JINJA_LOOP_LENGTH:
        *out = ct_value_int((int64_t)l->length);
        break;
    case JINJA_LOOP_REVINDEX:
    case JINJA_LOOP_REVINDEX0:
        *out = ct_value_int((int64_t)(l->length - l->index0) - (n->id == JINJA_LOOP_REVINDEX0));
        break;
    case JINJA_LOOP_PREVITEM:
        *out = l->has_previous ? l->previous : run_undefined_hint("there is no previous item");
        break;
    case JINJA_LOOP_NEXTITEM:
        st = loop_peek(l);
        *out = l->has_next ? l->next : run_undefined_hint("there is no next item");
        break;
    }
    return st;
}

static ct_status loop_advance(loop_state *l, bool *found)
{
    ct_status st = CT_OK;

    l->has_previous = l->index0 != SIZE_MAX;
    l->previous = l->current;
    if (l->peeked) {
        l->current = l->next;
        *found = l->has_next;
    } else {
        st = loop_fetch(l, &l->current, found);
    }
    l->peeked = false;
    l->index0++;
    return st;
}

static ct_status exec_for(jinja_run *r, const jinja_node *n)
{
    loop_state l = {.r = r, .n = n, .index0 = SIZE_MAX};
    bool found = false, any = false, top = n->loop.top;
    ct_value over;
    ct_status st = run_eval(r, n->b, &over);

    if (!st)
        st = run_iterate(r, n->b, &over, &l.it);
    if (st)
        return st;
    if (over.kind == CT_VALUE_LIST)
        l.length = over.u.list.n;
    else
        ct_value_len(&l.length, &over);
    if (n->c)
        enter_scope(r, &n->test, top);
    while (!(st = loop_advance(&l, &found)) && found) {
        *run_slot(r, n->loop) = (ct_value){.kind = CT_VALUE_LOOP, .u.object = &l};
        st = assign(r, n->a, &l.current);
        if (st)
            break;
        enter_scope(r, &n->scope, top);
        st = exec_list(r, n->list);
        /* Jinja2 notes an iteration at its end: one that was left by break or continue
         * does not keep `else` from running. */
        any |= r->flow == FLOW_NORMAL;
        if (st || r->flow == FLOW_BREAK)
            break;
        r->flow = FLOW_NORMAL;
    }
    r->flow = FLOW_NORMAL;
    *run_slot(r, n->loop) = (ct_value){0};
    if (st || any || !n->list2)
        return st;
    enter_scope(r, &n->other, top);
    return exec_list(r, n->list2);
}

static ct_status exec_if(jinja_run *r, const jinja_node *n)
{
    for (const jinja_node *b = n->list; b; b = b->next) {
        ct_value test;
        ct_status st;

        if (!b->a)
            return exec_list(r, b->list);
        st = run_eval(r, b->a, &test);
        if (st)
            return st;
        if (ct_value_truth(&test))
            return exec_list(r, b->list);
    }
    return CT_OK;
}

static ct_status exec_output(jinja_run *r, const jinja_node *n)
{
    ct_value v;
    ct_str text;
    ct_status st = run_eval(r, n->a, &v);

    if (!st)
        st = run_text(r, n, &v, &text);
    return st ? st : emit(r, n, text);
}

static ct_status exec_one(jinja_run *r, const jinja_node *n)
{
    switch ((jinja_kind)n->kind) {
    case JINJA_TEXT:
        return emit(r, n, n->text);
    case JINJA_OUTPUT:
        return exec_output(r, n);
    case JINJA_IF:
        return exec_if(r, n);
    case JINJA_FOR:
        return exec_for(r, n);
    case JINJA_SET:
        return exec_set(r, n);
    case JINJA_SETBLOCK:
        return exec_setblock(r, n, n->op);
    case JINJA_MACRO:
        *run_slot(r, n->a->ref) =
            (ct_value){.kind = CT_VALUE_CALLABLE, .step = FUNCTION_MACRO, .u.object = n};
        return CT_OK;
    case JINJA_BREAK:
    case JINJA_CONTINUE:
        r->flow = n->kind == JINJA_BREAK ? FLOW_BREAK : FLOW_CONTINUE;
        return CT_OK;
    default:
        return run_fail(r, n, "not a statement");
    }
}

static ct_status exec_list(jinja_run *r, const jinja_node *list)
{
    ct_status st = CT_OK;

    if (r->depth >= MAX_RECURSION)
        return jinja_fail(r->j->name, list ? list->line : 0, CT_ELIMIT, r->err,
                          "nested deeper than %d levels", MAX_RECURSION);
    r->depth++;
    for (; list && !st && r->flow == FLOW_NORMAL; list = list->next) {
        st = run_steps(r, list, 1);
        if (!st)
            st = exec_one(r, list);
    }
    r->depth--;
    return st;
}

static const jinja_node *param_named(const jinja_node *macro, ct_str name)
{
    for (const jinja_node *p = macro->list2; p; p = p->next)
        if (ct_str_eq(p->text, name))
            return p;
    return NULL;
}

/* Evaluates the arguments in the caller's frame into the new one; given[slot] tells
 * which parameters have a value. */
static ct_status bind_params(jinja_run *r, const jinja_node *call, const jinja_node *macro,
                             ct_value *own, bool *given)
{
    const jinja_node *p = macro->list2, *extra = NULL, *too_many = NULL;
    ct_value v;
    ct_status st = CT_OK;

    for (const jinja_node *arg = call->list; arg && !st; arg = arg->next) {
        const jinja_node *to = p;

        st = run_eval(r, arg->kind == JINJA_KEYWORD ? arg->a : arg, &v);
        if (st)
            return st;
        if (arg->kind == JINJA_KEYWORD) {
            to = param_named(macro, arg->text);
            if ((!to || given[to->ref.slot]) && !extra)
                extra = arg;
        } else if (p) {
            p = p->next;
        } else {
            too_many = arg;
        }
        if (to && !extra) {
            own[to->ref.slot] = v;
            given[to->ref.slot] = true;
        }
    }
    if (extra)
        return run_fail(r, call, "macro '%.*s' takes no keyword argument '%.*s'",
                        CT_STR_ARG(macro->text), CT_STR_ARG(extra->text));
    if (too_many)
        return run_fail(r, call, "macro '%.*s' takes not more than its declared arguments",
                        CT_STR_ARG(macro->text));
    return st;
}

static ct_status run_defaults(jinja_run *r, const jinja_node *macro, const bool *given)
{
    ct_status st = CT_OK;

    for (const jinja_node *p = macro->list2; p && !st; p = p->next) {
        ct_value *slot = run_slot(r, p->ref);

        if (given[p->ref.slot])
            continue;
        if (p->b) {
            ct_value v;

            st = run_eval(r, p->b, &v);
            *slot = v;
        } else {
            *slot = (ct_value){.kind = CT_VALUE_UNDEFINED,
                               .sub = CT_UNDEFINED_NAME,
                               .u.text = {p->text.p, p->text.n}};
        }
    }
    return st;
}

static ct_status call_macro(jinja_run *r, const jinja_node *n, const jinja_node *macro,
                            ct_value *out)
{
    ct_arena_mark frame = ct_arena_save(&r->frames);
    ct_value *caller = r->own, *own = ct_arena_zalloc(&r->frames, macro->n_slots, sizeof *own);
    bool *given = ct_arena_zalloc(&r->frames, macro->n_slots, sizeof *given);
    size_t mark;
    ct_str text;
    ct_status st;

    if (r->calls >= r->limits.depth || !own || !given)
        return jinja_fail(r->j->name, n->line, CT_ELIMIT, r->err,
                          "macro calls nested deeper than %u", r->limits.depth);
    r->calls++;
    st = bind_params(r, n, macro, own, given);
    if (st)
        return st;
    r->own = own;
    enter_scope(r, &macro->scope, false);
    st = run_defaults(r, macro, given);
    mark = run_scratch(r);
    r->n_captures++;
    if (!st)
        st = exec_list(r, macro->list);
    r->n_captures--;
    r->own = caller;
    r->calls--;
    ct_arena_rewind(&r->frames, frame);
    if (!st)
        st = run_take(r, n, mark, &text);
    if (!st)
        *out = ct_value_str(text);
    return st;
}

static ct_status call_namespace(jinja_run *r, const jinja_node *n, ct_value *out)
{
    ct_namespace *ns = ct_arena_zalloc(r->a, 1, sizeof *ns);
    size_t count = 0;
    ct_status st = CT_OK;

    for (const jinja_node *k = n->list; k; k = k->next)
        count++;
    if (ns)
        ns->entry = ct_arena_zalloc(r->a, count, sizeof *ns->entry);
    if (!ns || !ns->entry)
        return run_full(r, n);
    ns->room = count;
    for (const jinja_node *k = n->list; k && !st; k = k->next) {
        if (k->kind != JINJA_KEYWORD)
            return run_fail(r, n, "namespace takes keyword arguments only");
        ns->entry[ns->n].key = k->text;
        st = run_eval(r, k->a, &ns->entry[ns->n++].value);
    }
    if (!st)
        *out = (ct_value){.kind = CT_VALUE_NAMESPACE, .u.ns = ns};
    return st;
}

static ct_status call_range(jinja_run *r, const jinja_node *n, ct_value *out)
{
    int64_t arg[3] = {0, 0, 1}, start, stop, step;
    uint64_t span;
    size_t count = 0, len = 0;
    ct_status st = CT_OK;

    for (const jinja_node *k = n->list; k; k = k->next) {
        ct_value v;

        if (count == 3 || k->kind == JINJA_KEYWORD)
            return run_fail(r, n, "range takes 1 to 3 positional arguments");
        st = run_eval(r, k, &v);
        if (st)
            return st;
        if (!ct_value_as_int(&v, &arg[count++]))
            return run_fail(r, n, "'%s' object cannot be interpreted as an integer",
                            ct_value_type_name(v.kind, v.sub));
    }
    if (!count)
        return run_fail(r, n, "range expected at least 1 argument, got 0");
    start = count == 1 ? 0 : arg[0];
    stop = count == 1 ? arg[0] : arg[1];
    step = arg[2];
    if (!step)
        return run_fail(r, n, "range() arg 3 must not be zero");
    if (step > 0 ? start < stop : start > stop) {
        span = step > 0 ? (uint64_t)stop - (uint64_t)start : (uint64_t)start - (uint64_t)stop;
        len = (span - 1) / (step > 0 ? (uint64_t)step : 0 - (uint64_t)step) + 1;
    }
    if (len > MAX_RANGE)
        return run_fail(r, n,
                        "Range too big. The sandbox blocks ranges larger than MAX_RANGE (%d).",
                        MAX_RANGE);
    if (step > INT32_MAX || step < -INT32_MAX) {
        if (len > 1)
            return run_fail(r, n, "a step of range beyond 32 bits is not supported");
        step = 1;
    }
    *out = (ct_value){
        .kind = CT_VALUE_RANGE, .step = (uint32_t)(int32_t)step, .u.range = {start, len}};
    return CT_OK;
}

static ct_status call_raise(jinja_run *r, const jinja_node *n, ct_value *out)
{
    ct_value v;
    ct_str text;
    ct_status st;

    (void)out;
    if (!n->list || n->list->next || n->list->kind == JINJA_KEYWORD)
        return run_fail(r, n, "raise_exception takes one argument");
    st = run_eval(r, n->list, &v);
    if (!st)
        st = run_text(r, n, &v, &text);
    return st ? st : ct_fail(r->err, CT_EINVAL, "%.*s", CT_STR_ARG(text));
}

ct_status run_call(jinja_run *r, const jinja_node *n, ct_value *out)
{
    ct_value callee = *run_slot(r, n->a->ref);

    if (run_missing(&callee))
        return run_fail(r, n, "'%.*s' is undefined", CT_STR_ARG(n->text));
    if (callee.kind == CT_VALUE_UNDEFINED)
        return run_undefined(r, n, &callee);
    if (callee.kind != CT_VALUE_CALLABLE)
        return run_fail(r, n, "'%s' object is not callable",
                        ct_value_type_name(callee.kind, callee.sub));
    switch ((jinja_function)callee.step) {
    case FUNCTION_MACRO:
        return call_macro(r, n, callee.u.object, out);
    case FUNCTION_NAMESPACE:
        return call_namespace(r, n, out);
    case FUNCTION_RAISE:
        return call_raise(r, n, out);
    case FUNCTION_RANGE:
        return call_range(r, n, out);
    }
    return run_fail(r, n, "not a function");
}

ct_status ct_jinja_render_limited(const ct_jinja *j, const ct_value *vars, ct_jinja_limits limits,
                                  ct_arena *a, ct_buf *out, ct_error *err)
{
    jinja_run r = {.j = j, .vars = vars, .a = a, .out = out, .out_start = out->n, .err = err};
    ct_status st;

    if (vars->kind != CT_VALUE_MAP)
        return ct_fail(err, CT_EINVAL, "%.*s: the inputs must be a mapping", CT_STR_ARG(j->name));
    r.limits = limits;
    ct_buf_init(&r.capture, limits.output_bytes);
    st = ct_arena_init(&r.frames, FRAMES_BYTES, err);
    if (st)
        return st;
    r.top = r.own = ct_arena_zalloc(&r.frames, j->n_slots, sizeof *r.top);
    if (!r.top) {
        st = ct_fail(err, CT_ELIMIT, "%.*s: too many variables", CT_STR_ARG(j->name));
        goto done;
    }
    enter_scope(&r, &j->scope, true);
    st = exec_list(&r, j->body);
done:
    if (st && out->p) {
        out->n = r.out_start;
        out->p[out->n] = '\0';
    }
    ct_buf_deinit(&r.capture);
    ct_arena_deinit(&r.frames);
    return st;
}

ct_status ct_jinja_render(const ct_jinja *j, const ct_value *vars, ct_arena *a, ct_buf *out,
                          ct_error *err)
{
    const ct_jinja_limits limits = {.steps = CT_JINJA_MAX_STEPS,
                                    .output_bytes = CT_JINJA_MAX_OUTPUT_BYTES,
                                    .depth = CT_JINJA_MAX_DEPTH};

    return ct_jinja_render_limited(j, vars, limits, a, out, err);
}
