/* Expressions, by Jinja2's grammar. */
#include "base/checked.h"
#include "text/jinja_names.h"
#include "text/jinja_parse.h"

#include <stdlib.h>

#define MAX_FLOAT_TEXT 64

static jinja_node *parse_unary(jinja_parser *p, bool with_filter);

/* Appends to a list that the caller keeps the end of. */
static void append(jinja_node ***end, jinja_node *n)
{
    **end = n;
    *end = &n->next;
}

static jinja_node *binary(jinja_parser *p, jinja_kind kind, jinja_op op, jinja_node *a,
                          jinja_node *b)
{
    jinja_node *n = a && b ? jinja_new(p, kind) : NULL;

    if (!n)
        return NULL;
    n->op = (unsigned char)op;
    n->line = a->line;
    n->a = a;
    n->b = b;
    return jinja_close(p, n);
}

static jinja_node *constant(jinja_parser *p, ct_value v)
{
    jinja_node *n = jinja_new(p, JINJA_CONST);

    if (n)
        n->value = v;
    return n;
}

static jinja_node *parse_float(jinja_parser *p)
{
    char z[MAX_FLOAT_TEXT];
    ct_str s = p->t->text;

    if (s.n >= sizeof z)
        return jinja_parse_fail(p, "number of %zu characters", s.n);
    memcpy(z, s.p, s.n);
    z[s.n] = '\0';
    p->t++;
    return constant(p, ct_value_float(strtod(z, NULL)));
}

static jinja_node *parse_strings(jinja_parser *p)
{
    const jinja_token *first = p->t;
    size_t n = 0, at = 0;
    char *joined;

    for (; p->t->kind == TOKEN_STRING; p->t++)
        n += p->t->text.n;
    if (p->t == first + 1)
        return constant(p, ct_value_str(first->text));
    joined = ct_arena_alloc(p->arena, n + 1, 1);
    if (!joined)
        return jinja_parse_fail(p, "the template exceeds the memory bound");
    for (const jinja_token *t = first; t < p->t; t++) {
        if (t->text.n)
            memcpy(joined + at, t->text.p, t->text.n);
        at += t->text.n;
    }
    return constant(p, ct_value_str((ct_str){joined, n}));
}

static jinja_node *parse_list(jinja_parser *p)
{
    jinja_node *n = jinja_new(p, JINJA_LIST), **end = n ? &n->list : NULL, *item;

    p->t++;
    while (n && !jinja_at_op(p, OP1(']'))) {
        if (n->list && !jinja_expect_op(p, OP1(',')))
            return NULL;
        if (jinja_at_op(p, OP1(']')))
            break;
        item = jinja_parse_expr(p, true);
        if (!item)
            return NULL;
        append(&end, item);
    }
    p->t += n != NULL;
    return n ? jinja_close(p, n) : NULL;
}

static jinja_node *parse_dict(jinja_parser *p)
{
    jinja_node *n = jinja_new(p, JINJA_DICT), **end = n ? &n->list : NULL, *key, *value;

    p->t++;
    while (n && !jinja_at_op(p, OP1('}'))) {
        if (n->list && !jinja_expect_op(p, OP1(',')))
            return NULL;
        if (jinja_at_op(p, OP1('}')))
            break;
        key = jinja_parse_expr(p, true);
        if (!key || !jinja_expect_op(p, OP1(':')))
            return NULL;
        value = jinja_parse_expr(p, true);
        if (!value)
            return NULL;
        append(&end, key);
        append(&end, value);
    }
    p->t += n != NULL;
    return n ? jinja_close(p, n) : NULL;
}

static bool refused_name(ct_str s)
{
    static const char *const names[] = {"self",   "caller", "varargs", "kwargs",      "dict",
                                        "lipsum", "cycler", "joiner",  "strftime_now"};

    for (size_t i = 0; i < CT_LEN(names); i++)
        if (ct_str_is(s, names[i]))
            return true;
    return false;
}

static jinja_node *parse_name(jinja_parser *p)
{
    ct_str s = p->t->text;

    if (refused_name(s))
        return jinja_parse_fail(p, "'%.*s' is not supported", CT_STR_ARG(s));
    p->t++;
    if (ct_str_is(s, "true") || ct_str_is(s, "True"))
        return constant(p, ct_value_bool(true));
    if (ct_str_is(s, "false") || ct_str_is(s, "False"))
        return constant(p, ct_value_bool(false));
    if (ct_str_is(s, "none") || ct_str_is(s, "None"))
        return constant(p, ct_value_none());
    return jinja_name_node(p, s);
}

static jinja_node *parse_primary(jinja_parser *p)
{
    jinja_node *n;

    switch ((jinja_token_kind)p->t->kind) {
    case TOKEN_NAME:
        return parse_name(p);
    case TOKEN_STRING:
        return parse_strings(p);
    case TOKEN_INT:
        n = constant(p, ct_value_int_text(p->t->text));
        p->t++;
        return n;
    case TOKEN_FLOAT:
        return parse_float(p);
    case TOKEN_OP:
        if (jinja_at_op(p, OP1('[')))
            return parse_list(p);
        if (jinja_at_op(p, OP1('{')))
            return parse_dict(p);
        if (!jinja_skip_op(p, OP1('(')))
            break;
        n = jinja_parse_tuple(p, true, true);
        return n && jinja_expect_op(p, OP1(')')) ? n : NULL;
    case TOKEN_END:
    case TOKEN_DATA:
    case TOKEN_VAR_BEGIN:
    case TOKEN_VAR_END:
    case TOKEN_BLOCK_BEGIN:
    case TOKEN_BLOCK_END:
        break;
    }
    return jinja_parse_fail(p, "expected an expression, found '%.*s'", CT_STR_ARG(p->t->text));
}

/* Arguments behind "(": positional ones, then name=value. */
static bool parse_args(jinja_parser *p, jinja_node *call)
{
    jinja_node **end = &call->list, *arg;
    bool keywords = false;

    p->t++;
    while (!jinja_at_op(p, OP1(')'))) {
        ct_str key = {0};

        if (call->list && !jinja_expect_op(p, OP1(',')))
            return false;
        if (jinja_at_op(p, OP1(')')))
            break;
        if (p->t->kind == TOKEN_NAME && p->t[1].kind == TOKEN_OP && p->t[1].op == OP1('=')) {
            key = p->t->text;
            p->t += 2;
        } else if (keywords) {
            return jinja_parse_fail(p, "positional argument after a keyword") != NULL;
        }
        arg = jinja_parse_expr(p, true);
        if (!arg)
            return false;
        if (key.p) {
            jinja_node *value = arg;

            for (const jinja_node *k = call->list; k; k = k->next)
                if (k->kind == JINJA_KEYWORD && ct_str_eq(k->text, key))
                    return jinja_parse_fail(p, "keyword argument repeated: %.*s",
                                            CT_STR_ARG(key)) != NULL;
            arg = jinja_new(p, JINJA_KEYWORD);
            if (!arg)
                return false;
            arg->a = value;
            arg->text = key;
            keywords = true;
            if (!jinja_close(p, arg))
                return false;
        }
        append(&end, arg);
    }
    p->t++;
    return true;
}

static size_t count_args(const jinja_node *list)
{
    size_t n = 0;

    for (; list; list = list->next)
        n++;
    return n;
}

static const struct {
    const char *name;
    unsigned char id, min, max;
} methods[] = {
    {"endswith", METHOD_ENDSWITH, 1, 1}, {"get", METHOD_GET, 1, 2},
    {"items", METHOD_ITEMS, 0, 0},       {"keys", METHOD_KEYS, 0, 0},
    {"lower", METHOD_LOWER, 0, 0},       {"lstrip", METHOD_LSTRIP, 0, 1},
    {"replace", METHOD_REPLACE, 2, 2},   {"rstrip", METHOD_RSTRIP, 0, 1},
    {"split", METHOD_SPLIT, 0, 2},       {"startswith", METHOD_STARTSWITH, 1, 1},
    {"strip", METHOD_STRIP, 0, 1},       {"upper", METHOD_UPPER, 0, 0},
    {"values", METHOD_VALUES, 0, 0},
};

static jinja_node *method_call(jinja_parser *p, jinja_node *n)
{
    size_t n_args = count_args(n->list);

    for (size_t i = 0; i < CT_LEN(methods); i++) {
        if (!ct_str_is(n->text, methods[i].name))
            continue;
        for (const jinja_node *k = n->list; k; k = k->next)
            if (k->kind == JINJA_KEYWORD)
                return jinja_parse_fail(p, "method %s takes no keyword arguments here",
                                        methods[i].name);
        if (n_args < methods[i].min || n_args > methods[i].max)
            return jinja_parse_fail(p, "method %s takes %u to %u arguments, not %zu",
                                    methods[i].name, methods[i].min, methods[i].max, n_args);
        n->id = methods[i].id;
        return jinja_close(p, n);
    }
    return jinja_parse_fail(p, "unknown method '%.*s'", CT_STR_ARG(n->text));
}

static jinja_node *parse_call(jinja_parser *p, jinja_node *callee)
{
    jinja_node *n = jinja_new(p, callee->kind == JINJA_ATTR ? JINJA_METHOD : JINJA_CALL);

    if (!n)
        return NULL;
    if (callee->kind != JINJA_ATTR && callee->kind != JINJA_NAME)
        return jinja_parse_fail(p, "only a name or a method can be called");
    n->line = callee->line;
    n->a = callee->kind == JINJA_ATTR ? callee->a : callee;
    n->text = callee->text;
    if (!parse_args(p, n))
        return NULL;
    return n->kind == JINJA_METHOD ? method_call(p, n) : jinja_close(p, n);
}

static bool slice_end(const jinja_parser *p)
{
    return jinja_at_op(p, OP1(']')) || jinja_at_op(p, OP1(':'));
}

/* Behind "[": an index or a slice. */
static jinja_node *parse_index(jinja_parser *p, jinja_node *object)
{
    jinja_node *n = jinja_new(p, JINJA_ITEM), **part;

    if (!n)
        return NULL;
    n->a = object;
    n->line = object->line;
    if (!slice_end(p)) {
        n->b = jinja_parse_expr(p, true);
        if (!n->b)
            return NULL;
    }
    for (part = &n->c; jinja_skip_op(p, OP1(':')); part = &n->d) {
        if (n->kind == JINJA_SLICE && part == &n->c)
            return jinja_parse_fail(p, "a slice has at most three parts");
        n->kind = JINJA_SLICE;
        if (!slice_end(p)) {
            *part = jinja_parse_expr(p, true);
            if (!*part)
                return NULL;
        }
        if (part == &n->d)
            break;
    }
    if (n->kind == JINJA_ITEM && !n->b)
        return jinja_parse_fail(p, "expected an index");
    return jinja_expect_op(p, OP1(']')) ? jinja_close(p, n) : NULL;
}

static jinja_node *parse_attr(jinja_parser *p, jinja_node *object)
{
    jinja_node *n = jinja_new(p, JINJA_ATTR);

    if (!n)
        return NULL;
    n->a = object;
    if (p->t->kind == TOKEN_INT) {
        n->kind = JINJA_ITEM;
        n->b = parse_primary(p);
        return n->b ? jinja_close(p, n) : NULL;
    }
    if (p->t->kind != TOKEN_NAME)
        return jinja_parse_fail(p, "expected a name or a number after '.'");
    n->text = p->t->text;
    if (ct_str_starts(n->text, "__"))
        return jinja_parse_fail(p, "access to attribute '%.*s' is refused", CT_STR_ARG(n->text));
    p->t++;
    return jinja_close(p, n);
}

static jinja_node *parse_postfix(jinja_parser *p, jinja_node *n)
{
    while (n) {
        if (jinja_skip_op(p, OP1('.')))
            n = parse_attr(p, n);
        else if (jinja_skip_op(p, OP1('[')))
            n = parse_index(p, n);
        else if (jinja_at_op(p, OP1('(')))
            n = parse_call(p, n);
        else
            break;
    }
    return n;
}

/* param: names of the arguments, in order, separated by blanks; required ones first. */
static const struct {
    const char *name;
    unsigned char id, required;
    const char *param[3];
} filters[] = {
    {"count", FILTER_LENGTH, 0, {0}},
    {"d", FILTER_DEFAULT, 0, {"default_value", "boolean"}},
    {"default", FILTER_DEFAULT, 0, {"default_value", "boolean"}},
    {"dictsort", FILTER_DICTSORT, 0, {0}},
    {"first", FILTER_FIRST, 0, {0}},
    {"items", FILTER_ITEMS, 0, {0}},
    {"join", FILTER_JOIN, 0, {"d"}},
    {"last", FILTER_LAST, 0, {0}},
    {"length", FILTER_LENGTH, 0, {0}},
    {"list", FILTER_LIST, 0, {0}},
    {"lower", FILTER_LOWER, 0, {0}},
    {"map", FILTER_MAP, 1, {"filter", "attribute"}},
    {"replace", FILTER_REPLACE, 2, {"old", "new"}},
    {"string", FILTER_STRING, 0, {0}},
    {"tojson", FILTER_TOJSON, 0, {"", "indent"}},
    {"trim", FILTER_TRIM, 0, {0}},
    {"upper", FILTER_UPPER, 0, {0}},
};

/* Puts the arguments into b, c, d by position or name. */
static bool bind_args(jinja_parser *p, size_t f, jinja_node *n)
{
    jinja_node **place[] = {&n->b, &n->c, &n->d};
    size_t i = 0;

    for (jinja_node *arg = n->list, *next; arg; arg = next, i++) {
        size_t k = i;

        next = arg->next;
        arg->next = NULL;
        if (arg->kind == JINJA_KEYWORD) {
            for (k = 0; k < CT_LEN(filters[f].param) && filters[f].param[k]; k++)
                if (ct_str_is(arg->text, filters[f].param[k]))
                    break;
            if (k == CT_LEN(filters[f].param) || !filters[f].param[k] || *place[k])
                return jinja_parse_fail(p, "filter %s: argument '%.*s' is not supported",
                                        filters[f].name, CT_STR_ARG(arg->text)) != NULL;
            arg = arg->a;
        } else if (k >= CT_LEN(filters[f].param) || !filters[f].param[k] || !*filters[f].param[k]) {
            return jinja_parse_fail(p, "filter %s: argument %zu is not supported", filters[f].name,
                                    k + 1) != NULL;
        }
        *place[k] = arg;
    }
    n->list = NULL;
    for (size_t k = 0; k < filters[f].required; k++)
        if (!*place[k] && !(n->id == FILTER_MAP && n->c))
            return jinja_parse_fail(p, "filter %s: argument '%s' is missing", filters[f].name,
                                    filters[f].param[k]) != NULL;
    return true;
}

static bool const_text(const jinja_node *n)
{
    return n && n->kind == JINJA_CONST && n->value.kind == CT_VALUE_STRING;
}

/* map('filter') or map(attribute='name'), both known at compile time. */
static bool bind_map(jinja_parser *p, jinja_node *n)
{
    static const unsigned char allowed[] = {FILTER_UPPER,  FILTER_LOWER,  FILTER_TRIM,
                                            FILTER_STRING, FILTER_LENGTH, FILTER_TOJSON};
    ct_str s;

    if ((n->b && n->c) || !const_text(n->b ? n->b : n->c))
        return jinja_parse_fail(p, "filter map: one filter or one attribute, as a string") != NULL;
    s = ct_value_text(n->b ? &n->b->value : &n->c->value);
    if (n->c) {
        if (!s.n || memchr(s.p, '.', s.n) || (s.p[0] >= '0' && s.p[0] <= '9'))
            return jinja_parse_fail(p, "filter map: attribute '%.*s' is not supported",
                                    CT_STR_ARG(s)) != NULL;
        n->text = s;
        return true;
    }
    for (size_t i = 0; i < CT_LEN(filters); i++)
        for (size_t k = 0; k < CT_LEN(allowed); k++)
            if (ct_str_is(s, filters[i].name) && filters[i].id == allowed[k]) {
                n->op = allowed[k];
                return true;
            }
    return jinja_parse_fail(p, "filter map: filter '%.*s' is not supported", CT_STR_ARG(s)) != NULL;
}

/* A generator can be used only once and prints as an address: it must be consumed on
 * the spot. */
static bool generator_consumed(jinja_parser *p)
{
    static const char *const consumers[] = {"list", "join", "map", "first"};

    if (jinja_at_op(p, OP1('|')) && p->t[1].kind == TOKEN_NAME)
        for (size_t i = 0; i < CT_LEN(consumers); i++)
            if (ct_str_is(p->t[1].text, consumers[i]))
                return true;
    return p->in_iter && (p->t->kind == TOKEN_BLOCK_END || jinja_at_name(p, "if"));
}

/* Behind "|": one filter around the value. */
static jinja_node *parse_filter(jinja_parser *p, jinja_node *value)
{
    jinja_node *n = jinja_new(p, JINJA_FILTER);
    bool in_iter = p->in_iter, ok = true;
    ct_str name = p->t->text;
    size_t f = 0;

    if (!n)
        return NULL;
    if (p->t->kind != TOKEN_NAME)
        return jinja_parse_fail(p, "expected the name of a filter");
    while (f < CT_LEN(filters) && !ct_str_is(name, filters[f].name))
        f++;
    if (f == CT_LEN(filters))
        return jinja_parse_fail(p, "unknown filter '%.*s'", CT_STR_ARG(name));
    p->t++;
    n->a = value;
    n->id = filters[f].id;
    p->in_iter = false;
    if (jinja_at_op(p, OP1('(')))
        ok = parse_args(p, n);
    p->in_iter = in_iter;
    if (!ok || !bind_args(p, f, n) || (n->id == FILTER_MAP && !bind_map(p, n)))
        return NULL;
    if ((n->id == FILTER_MAP || n->id == FILTER_ITEMS) && !generator_consumed(p))
        return jinja_parse_fail(p, "filter %s must be followed by list, join or the end of a for",
                                filters[f].name);
    return jinja_close(p, n);
}

jinja_node *jinja_parse_set_filter(jinja_parser *p)
{
    jinja_node *n = NULL;

    while (jinja_skip_op(p, OP1('|'))) {
        n = parse_filter(p, n);
        if (!n)
            return NULL;
    }
    return n;
}

static const struct {
    const char *name;
    unsigned char id, n_args;
} tests[] = {
    {"boolean", TEST_BOOLEAN, 0},
    {"defined", TEST_DEFINED, 0},
    {"eq", TEST_EQ, 1},
    {"equalto", TEST_EQ, 1},
    {"false", TEST_FALSE, 0},
    {"float", TEST_FLOAT, 0},
    {"in", TEST_IN, 1},
    {"integer", TEST_INTEGER, 0},
    {"iterable", TEST_ITERABLE, 0},
    {"mapping", TEST_MAPPING, 0},
    {"ne", TEST_NE, 1},
    {"none", TEST_NONE, 0},
    {"number", TEST_NUMBER, 0},
    {"sequence", TEST_SEQUENCE, 0},
    {"string", TEST_STRING, 0},
    {"true", TEST_TRUE, 0},
    {"undefined", TEST_UNDEFINED, 0},
};

/* Whether an argument without parentheses follows the name of a test. */
static bool test_argument(const jinja_parser *p)
{
    if (p->t->kind == TOKEN_NAME)
        return !jinja_at_name(p, "else") && !jinja_at_name(p, "or") && !jinja_at_name(p, "and");
    return p->t->kind == TOKEN_STRING || p->t->kind == TOKEN_INT || p->t->kind == TOKEN_FLOAT ||
           jinja_at_op(p, OP1('[')) || jinja_at_op(p, OP1('{'));
}

static bool parse_test_args(jinja_parser *p, jinja_node *n)
{
    if (jinja_at_op(p, OP1('(')))
        return parse_args(p, n);
    if (!test_argument(p))
        return true;
    if (jinja_at_name(p, "is"))
        return jinja_parse_fail(p, "tests cannot be chained with is") != NULL;
    n->list = parse_postfix(p, parse_primary(p));
    return n->list != NULL;
}

/* Behind "is". */
static jinja_node *parse_test(jinja_parser *p, jinja_node *value)
{
    bool negated = jinja_skip_name(p, "not");
    jinja_node *n = jinja_new(p, JINJA_TEST), *outer;
    ct_str name = p->t->text;
    size_t i = 0;

    if (!n)
        return NULL;
    if (p->t->kind != TOKEN_NAME)
        return jinja_parse_fail(p, "expected the name of a test");
    while (i < CT_LEN(tests) && !ct_str_is(name, tests[i].name))
        i++;
    if (i == CT_LEN(tests))
        return jinja_parse_fail(p, "unknown test '%.*s'", CT_STR_ARG(name));
    p->t++;
    n->a = value;
    n->id = tests[i].id;
    n->line = value->line;
    if (!parse_test_args(p, n))
        return NULL;
    if (count_args(n->list) != tests[i].n_args || (n->list && n->list->kind == JINJA_KEYWORD))
        return jinja_parse_fail(p, "test %s with other than %u arguments is not supported",
                                tests[i].name, tests[i].n_args);
    n->b = n->list;
    n->list = NULL;
    if (!jinja_close(p, n) || !negated)
        return p->st ? NULL : n;
    outer = jinja_new(p, JINJA_NOT);
    if (!outer)
        return NULL;
    outer->a = n;
    return jinja_close(p, outer);
}

static jinja_node *parse_filters(jinja_parser *p, jinja_node *n)
{
    while (n) {
        if (jinja_skip_op(p, OP1('|')))
            n = parse_filter(p, n);
        else if (jinja_skip_name(p, "is"))
            n = parse_test(p, n);
        else if (jinja_at_op(p, OP1('(')))
            n = parse_call(p, n);
        else
            break;
    }
    return n;
}

static jinja_node *parse_unary(jinja_parser *p, bool with_filter)
{
    bool minus = jinja_at_op(p, OP1('-'));
    jinja_node *n = NULL, *inner;

    if (p->depth++ > JINJA_MAX_HEIGHT)
        return jinja_parse_fail(p, "nested deeper than %d levels", JINJA_MAX_HEIGHT);
    if (minus || jinja_at_op(p, OP1('+'))) {
        p->t++;
        inner = parse_unary(p, false);
        n = inner ? jinja_new(p, minus ? JINJA_NEGATE : JINJA_PLUS) : NULL;
        if (n) {
            n->a = inner;
            n = jinja_close(p, n);
        }
    } else {
        n = parse_primary(p);
    }
    n = parse_postfix(p, n);
    if (with_filter)
        n = parse_filters(p, n);
    p->depth--;
    return n;
}

static jinja_node *parse_product(jinja_parser *p)
{
    static const struct {
        unsigned token;
        jinja_op op;
    } ops[] = {{OP1('*'), JINJA_MUL},
               {OP1('/'), JINJA_DIV},
               {OP2('/', '/'), JINJA_FLOORDIV},
               {OP1('%'), JINJA_MOD}};
    jinja_node *n = parse_unary(p, true);

    while (n) {
        size_t i = 0;

        if (jinja_at_op(p, OP2('*', '*')))
            return jinja_parse_fail(p, "operator '**' is not supported");
        while (i < CT_LEN(ops) && !jinja_at_op(p, ops[i].token))
            i++;
        if (i == CT_LEN(ops))
            break;
        p->t++;
        n = binary(p, JINJA_BINARY, ops[i].op, n, parse_unary(p, true));
    }
    return n;
}

static jinja_node *parse_concat(jinja_parser *p)
{
    jinja_node *first = parse_product(p), *n, **end, *item;

    if (!first || !jinja_at_op(p, OP1('~')))
        return first;
    n = jinja_new(p, JINJA_CONCAT);
    if (!n)
        return NULL;
    n->line = first->line;
    end = &n->list;
    append(&end, first);
    while (jinja_skip_op(p, OP1('~'))) {
        item = parse_product(p);
        if (!item)
            return NULL;
        append(&end, item);
    }
    return jinja_close(p, n);
}

static jinja_node *parse_sum(jinja_parser *p)
{
    jinja_node *n = parse_concat(p);

    while (n && (jinja_at_op(p, OP1('+')) || jinja_at_op(p, OP1('-')))) {
        jinja_op op = jinja_at_op(p, OP1('+')) ? JINJA_ADD : JINJA_SUB;

        p->t++;
        n = binary(p, JINJA_BINARY, op, n, parse_concat(p));
    }
    return n;
}

static bool skip_compare(jinja_parser *p, jinja_op *op)
{
    static const struct {
        unsigned token;
        jinja_op op;
    } ops[] = {{OP2('=', '='), JINJA_EQ}, {OP2('!', '='), JINJA_NE}, {OP1('<'), JINJA_LT},
               {OP2('<', '='), JINJA_LE}, {OP1('>'), JINJA_GT},      {OP2('>', '='), JINJA_GE}};

    for (size_t i = 0; i < CT_LEN(ops); i++)
        if (jinja_skip_op(p, ops[i].token)) {
            *op = ops[i].op;
            return true;
        }
    if (jinja_skip_name(p, "in")) {
        *op = JINJA_IN;
        return true;
    }
    if (jinja_at_name(p, "not") && p->t[1].kind == TOKEN_NAME && ct_str_is(p->t[1].text, "in")) {
        p->t += 2;
        *op = JINJA_NOT_IN;
        return true;
    }
    return false;
}

static jinja_node *parse_compare(jinja_parser *p)
{
    jinja_node *first = parse_sum(p), *n = NULL, **end = NULL, *operand;
    jinja_op op;

    while (first && skip_compare(p, &op)) {
        if (!n) {
            n = jinja_new(p, JINJA_COMPARE);
            if (!n)
                return NULL;
            n->a = first;
            n->line = first->line;
            end = &n->list;
        }
        operand = jinja_new(p, JINJA_OPERAND);
        if (!operand)
            return NULL;
        operand->op = (unsigned char)op;
        operand->a = parse_sum(p);
        if (!operand->a || !jinja_close(p, operand))
            return NULL;
        append(&end, operand);
    }
    return n ? jinja_close(p, n) : first;
}

static jinja_node *parse_not(jinja_parser *p)
{
    jinja_node *n, *inner;

    if (!jinja_at_name(p, "not"))
        return parse_compare(p);
    if (p->depth++ > JINJA_MAX_HEIGHT)
        return jinja_parse_fail(p, "nested deeper than %d levels", JINJA_MAX_HEIGHT);
    p->t++;
    n = jinja_new(p, JINJA_NOT);
    inner = n ? parse_not(p) : NULL;
    p->depth--;
    if (!inner)
        return NULL;
    n->a = inner;
    return jinja_close(p, n);
}

static jinja_node *parse_and(jinja_parser *p)
{
    jinja_node *n = parse_not(p);

    while (n && jinja_skip_name(p, "and"))
        n = binary(p, JINJA_AND, 0, n, parse_not(p));
    return n;
}

static jinja_node *parse_or(jinja_parser *p)
{
    jinja_node *n = parse_and(p);

    while (n && jinja_skip_name(p, "or"))
        n = binary(p, JINJA_OR, 0, n, parse_and(p));
    return n;
}

jinja_node *jinja_parse_expr(jinja_parser *p, bool with_condexpr)
{
    bool in_iter = p->in_iter;
    jinja_node *n, *cond;

    if (p->depth++ > JINJA_MAX_HEIGHT)
        return jinja_parse_fail(p, "nested deeper than %d levels", JINJA_MAX_HEIGHT);
    if (with_condexpr)
        p->in_iter = false;
    n = parse_or(p);
    while (n && with_condexpr && jinja_skip_name(p, "if")) {
        cond = jinja_new(p, JINJA_COND);
        if (!cond)
            return NULL;
        cond->line = n->line;
        cond->b = n;
        cond->a = parse_or(p);
        if (!cond->a)
            return NULL;
        if (jinja_skip_name(p, "else")) {
            cond->c = jinja_parse_expr(p, true);
            if (!cond->c)
                return NULL;
        }
        n = jinja_close(p, cond);
    }
    p->in_iter = in_iter;
    p->depth--;
    return n;
}

static bool tuple_end(const jinja_parser *p)
{
    return p->t->kind == TOKEN_VAR_END || p->t->kind == TOKEN_BLOCK_END ||
           jinja_at_op(p, OP1(')')) || jinja_at_name(p, "recursive");
}

jinja_node *jinja_parse_tuple(jinja_parser *p, bool with_condexpr, bool parens)
{
    jinja_node *n, **end, *item;

    if (tuple_end(p) && !parens)
        return jinja_parse_fail(p, "expected an expression");
    n = jinja_new(p, JINJA_TUPLE);
    if (!n || tuple_end(p))
        return n;
    end = &n->list;
    item = jinja_parse_expr(p, with_condexpr);
    if (!item || !jinja_at_op(p, OP1(',')))
        return item;
    append(&end, item);
    while (jinja_skip_op(p, OP1(',')) && !tuple_end(p)) {
        item = jinja_parse_expr(p, with_condexpr);
        if (!item)
            return NULL;
        append(&end, item);
    }
    return jinja_close(p, n);
}
