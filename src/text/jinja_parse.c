/* Statements, by Jinja2's grammar. */
#include "text/jinja_parse.h"

#include "base/checked.h"

#include <stdio.h>

static bool parse_body(jinja_parser *p, jinja_node **out, const char *const *ends);

jinja_node *jinja_parse_fail(jinja_parser *p, const char *fmt, ...)
{
    char text[200];
    va_list ap;

    if (p->st)
        return NULL;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    p->st = jinja_fail(p->name, p->t->line, CT_EFORMAT, p->err, "%s", text);
    return NULL;
}

jinja_node *jinja_new(jinja_parser *p, jinja_kind kind)
{
    jinja_node *n = p->st ? NULL : ct_arena_zalloc(p->arena, 1, sizeof *n);

    if (!n)
        return jinja_parse_fail(p, "the template exceeds the memory bound");
    n->kind = (unsigned char)kind;
    n->line = p->t->line;
    n->height = 1;
    return n;
}

static unsigned list_height(const jinja_node *list)
{
    unsigned h = 0;

    for (; list; list = list->next)
        h = list->height > h ? list->height : h;
    return h;
}

jinja_node *jinja_close(jinja_parser *p, jinja_node *n)
{
    const jinja_node *child[] = {n->a, n->b, n->c, n->d};
    unsigned h = list_height(n->list), h2 = list_height(n->list2);

    if (p->st)
        return NULL;
    h = h > h2 ? h : h2;
    for (size_t i = 0; i < CT_LEN(child); i++)
        if (child[i] && child[i]->height > h)
            h = child[i]->height;
    if (h >= JINJA_MAX_HEIGHT)
        return jinja_parse_fail(p, "nested deeper than %d levels", JINJA_MAX_HEIGHT);
    n->height = (unsigned short)(h + 1);
    return n;
}

bool jinja_skip_op(jinja_parser *p, unsigned op)
{
    bool is = jinja_at_op(p, op);

    p->t += is;
    return is;
}

bool jinja_skip_name(jinja_parser *p, const char *name)
{
    bool is = jinja_at_name(p, name);

    p->t += is;
    return is;
}

bool jinja_expect_op(jinja_parser *p, unsigned op)
{
    if (jinja_skip_op(p, op))
        return true;
    jinja_parse_fail(p, "expected '%c', found '%.*s'", (char)op, CT_STR_ARG(p->t->text));
    return false;
}

static bool name_id(jinja_parser *p, ct_str s, uint32_t *id)
{
    uint32_t hash = 2166136261u;

    for (size_t i = 0; i < s.n; i++)
        hash = (hash ^ (unsigned char)s.p[i]) * 16777619u;
    for (hash %= NAME_BUCKETS; p->names[hash].text.p; hash = (hash + 1) % NAME_BUCKETS)
        if (ct_str_eq(p->names[hash].text, s)) {
            *id = p->names[hash].id;
            return true;
        }
    if (p->n_names == JINJA_MAX_NAMES)
        return jinja_parse_fail(p, "more than %d names", JINJA_MAX_NAMES) != NULL;
    p->names[hash].text = s;
    p->names[hash].id = *id = p->n_names++;
    return true;
}

jinja_node *jinja_name_node(jinja_parser *p, ct_str name)
{
    jinja_node *n = jinja_new(p, JINJA_NAME);

    if (!n || !name_id(p, name, &n->name))
        return NULL;
    n->text = name;
    return n;
}

static bool expect_name(jinja_parser *p, const char *name)
{
    if (jinja_skip_name(p, name))
        return true;
    jinja_parse_fail(p, "expected '%s', found '%.*s'", name, CT_STR_ARG(p->t->text));
    return false;
}

static bool expect_block_end(jinja_parser *p)
{
    if (p->t->kind != TOKEN_BLOCK_END) {
        jinja_parse_fail(p, "expected the end of the tag, found '%.*s'", CT_STR_ARG(p->t->text));
        return false;
    }
    p->t++;
    return true;
}

/* A name that is stored to; "loop" is the interpreter's own. */
static jinja_node *parse_store_name(jinja_parser *p)
{
    static const char *const reserved[] = {"true", "false", "none",   "True",    "False", "None",
                                           "loop", "self",  "caller", "varargs", "kwargs"};
    ct_str s = p->t->text;

    if (p->t->kind != TOKEN_NAME)
        return jinja_parse_fail(p, "expected a name, found '%.*s'", CT_STR_ARG(s));
    for (size_t i = 0; i < CT_LEN(reserved); i++)
        if (ct_str_is(s, reserved[i]))
            return jinja_parse_fail(p, "cannot assign to '%.*s'", CT_STR_ARG(s));
    p->t++;
    return jinja_name_node(p, s);
}

static jinja_node *parse_target_item(jinja_parser *p, bool with_namespace)
{
    jinja_node *name, *n;

    if (!with_namespace || p->t[1].kind != TOKEN_OP || p->t[1].op != OP1('.'))
        return parse_store_name(p);
    name = parse_store_name(p);
    n = name ? jinja_new(p, JINJA_NSREF) : NULL;
    if (!n)
        return NULL;
    p->t++;
    if (p->t->kind != TOKEN_NAME)
        return jinja_parse_fail(p, "expected a name after '.'");
    n->a = name;
    n->text = p->t++->text;
    return jinja_close(p, n);
}

/* a, or a, b, …, perhaps in parentheses. */
static jinja_node *parse_target(jinja_parser *p, bool with_namespace)
{
    bool parens = jinja_skip_op(p, OP1('('));
    jinja_node *first = parse_target_item(p, with_namespace), *n = first, *last = first;

    if (first && jinja_at_op(p, OP1(','))) {
        n = jinja_new(p, JINJA_TUPLE);
        if (!n)
            return NULL;
        n->list = first;
        while (jinja_skip_op(p, OP1(','))) {
            if (jinja_at_name(p, "in") || jinja_at_op(p, OP1(')')))
                break;
            last->next = parse_target_item(p, with_namespace);
            last = last->next;
            if (!last)
                return NULL;
        }
        n = jinja_close(p, n);
    }
    if (n && parens && !jinja_expect_op(p, OP1(')')))
        return NULL;
    return n;
}

static jinja_node *parse_for(jinja_parser *p)
{
    static const char *const ends[] = {"endfor", "else", NULL}, *const end[] = {"endfor", NULL};
    jinja_node *n = jinja_new(p, JINJA_FOR);

    if (!n)
        return NULL;
    n->a = parse_target(p, false);
    if (!n->a || !expect_name(p, "in"))
        return NULL;
    p->in_iter = true;
    n->b = jinja_parse_tuple(p, false, false);
    p->in_iter = false;
    if (!n->b)
        return NULL;
    if (jinja_skip_name(p, "if")) {
        n->c = jinja_parse_expr(p, true);
        if (!n->c)
            return NULL;
    }
    if (jinja_at_name(p, "recursive"))
        return jinja_parse_fail(p, "recursive loops are not supported");
    p->n_loops++;
    if (!parse_body(p, &n->list, ends))
        return NULL;
    p->n_loops--;
    if (!jinja_skip_name(p, "endfor")) {
        p->t++;
        if (!parse_body(p, &n->list2, end))
            return NULL;
        p->t++;
    }
    return jinja_close(p, n);
}

static jinja_node *parse_if(jinja_parser *p)
{
    static const char *const ends[] = {"elif", "else", "endif", NULL}, *const end[] = {"endif",
                                                                                       NULL};
    jinja_node *n = jinja_new(p, JINJA_IF), **last = n ? &n->list : NULL;
    bool is_else = false;

    while (n) {
        jinja_node *branch = jinja_new(p, JINJA_BRANCH);

        if (!branch)
            return NULL;
        if (!is_else) {
            branch->a = jinja_parse_tuple(p, false, false);
            if (!branch->a)
                return NULL;
        }
        if (!parse_body(p, &branch->list, is_else ? end : ends) || !jinja_close(p, branch))
            return NULL;
        *last = branch;
        last = &branch->next;
        if (jinja_skip_name(p, "endif"))
            break;
        is_else = jinja_at_name(p, "else");
        p->t++;
    }
    return n ? jinja_close(p, n) : NULL;
}

static jinja_node *parse_set(jinja_parser *p)
{
    static const char *const end[] = {"endset", NULL};
    jinja_node *n = jinja_new(p, JINJA_SET);
    unsigned n_loops = p->n_loops;

    if (!n)
        return NULL;
    n->a = parse_target(p, true);
    if (!n->a)
        return NULL;
    if (jinja_skip_op(p, OP1('='))) {
        n->b = jinja_parse_tuple(p, true, false);
        return n->b ? jinja_close(p, n) : NULL;
    }
    n->kind = JINJA_SETBLOCK;
    if (n->a->kind == JINJA_TUPLE)
        return jinja_parse_fail(p, "a block sets one name");
    n->b = jinja_parse_set_filter(p);
    p->n_loops = 0;
    if (p->st || !parse_body(p, &n->list, end))
        return NULL;
    p->n_loops = n_loops;
    p->t++;
    return jinja_close(p, n);
}

static bool parse_params(jinja_parser *p, jinja_node *macro)
{
    jinja_node **last = &macro->list2;

    if (!jinja_expect_op(p, OP1('(')))
        return false;
    while (!jinja_at_op(p, OP1(')'))) {
        jinja_node *param, *name;

        if (macro->list2 && !jinja_expect_op(p, OP1(',')))
            return false;
        name = parse_store_name(p);
        param = name ? jinja_new(p, JINJA_PARAM) : NULL;
        if (!param)
            return false;
        for (const jinja_node *q = macro->list2; q; q = q->next)
            if (q->name == name->name)
                return jinja_parse_fail(p, "parameter '%.*s' stands twice",
                                        CT_STR_ARG(name->text)) != NULL;
        param->name = name->name;
        param->text = name->text;
        if (jinja_skip_op(p, OP1('='))) {
            param->b = jinja_parse_expr(p, true);
            if (!param->b)
                return false;
        } else if (macro->list2 && macro->op) {
            return jinja_parse_fail(p, "non-default argument follows default argument") != NULL;
        }
        macro->op = param->b != NULL;
        if (!jinja_close(p, param))
            return false;
        *last = param;
        last = &param->next;
    }
    p->t++;
    return true;
}

static jinja_node *parse_macro(jinja_parser *p)
{
    static const char *const end[] = {"endmacro", NULL};
    jinja_node *n = jinja_new(p, JINJA_MACRO);
    unsigned n_loops = p->n_loops;

    if (!n)
        return NULL;
    n->a = parse_store_name(p);
    if (!n->a || !parse_params(p, n))
        return NULL;
    n->text = n->a->text;
    p->n_loops = 0;
    if (!parse_body(p, &n->list, end))
        return NULL;
    p->n_loops = n_loops;
    p->t++;
    return jinja_close(p, n);
}

static jinja_node *parse_statement(jinja_parser *p)
{
    ct_str s = p->t->text;

    if (p->t->kind != TOKEN_NAME)
        return jinja_parse_fail(p, "expected a statement, found '%.*s'", CT_STR_ARG(s));
    if (jinja_skip_name(p, "for"))
        return parse_for(p);
    if (jinja_skip_name(p, "if"))
        return parse_if(p);
    if (jinja_skip_name(p, "set"))
        return parse_set(p);
    if (jinja_skip_name(p, "macro"))
        return parse_macro(p);
    if (jinja_at_name(p, "break") || jinja_at_name(p, "continue")) {
        if (!p->n_loops)
            return jinja_parse_fail(p, "'%.*s' outside a loop", CT_STR_ARG(s));
        p->t++;
        return jinja_new(p, s.p[0] == 'b' ? JINJA_BREAK : JINJA_CONTINUE);
    }
    return jinja_parse_fail(p, "statement '%.*s' is not supported here", CT_STR_ARG(s));
}

static bool at_any(const jinja_parser *p, const char *const *ends)
{
    for (; ends && *ends; ends++)
        if (jinja_at_name(p, *ends))
            return true;
    return false;
}

static jinja_node *parse_output(jinja_parser *p)
{
    jinja_node *n = jinja_new(p, JINJA_OUTPUT);

    if (!n)
        return NULL;
    n->a = jinja_parse_tuple(p, true, false);
    if (!n->a)
        return NULL;
    if (p->t->kind != TOKEN_VAR_END)
        return jinja_parse_fail(p, "expected the end of the print statement, found '%.*s'",
                                CT_STR_ARG(p->t->text));
    p->t++;
    return jinja_close(p, n);
}

static jinja_node *parse_text(jinja_parser *p)
{
    jinja_node *n = jinja_new(p, JINJA_TEXT);

    if (n)
        n->text = p->t++->text;
    return n;
}

/* Statements up to the end, or up to a tag that begins with one of `ends`, whose name
 * is the current token then. */
static bool parse_list(jinja_parser *p, jinja_node **out, const char *const *ends)
{
    jinja_node *n = NULL;

    for (;; *out = n, out = &n->next) {
        if (p->t->kind == TOKEN_END) {
            if (ends)
                jinja_parse_fail(p, "the template ends where '%s' was expected", *ends);
            return !ends;
        }
        if (p->t->kind == TOKEN_DATA) {
            n = parse_text(p);
        } else if (p->t->kind == TOKEN_VAR_BEGIN) {
            p->t++;
            n = parse_output(p);
        } else {
            p->t++;
            if (at_any(p, ends))
                return true;
            n = parse_statement(p);
            if (!n || !expect_block_end(p))
                return false;
        }
        if (!n)
            return false;
    }
}

static bool parse_body(jinja_parser *p, jinja_node **out, const char *const *ends)
{
    bool ok;

    jinja_skip_op(p, OP1(':'));
    if (!expect_block_end(p))
        return false;
    if (p->depth++ > JINJA_MAX_HEIGHT)
        return jinja_parse_fail(p, "nested deeper than %d levels", JINJA_MAX_HEIGHT) != NULL;
    ok = parse_list(p, out, ends);
    p->depth--;
    return ok;
}

ct_status jinja_parse(ct_jinja *j, ct_str source, ct_arena *scratch, uint32_t *n_names,
                      ct_error *err)
{
    jinja_parser *p = ct_arena_zalloc(scratch, 1, sizeof *p);
    jinja_token *token;
    uint32_t loop;
    ct_status st;

    if (!p)
        return ct_fail(err, CT_ELIMIT, "%.*s: the template exceeds the memory bound",
                       CT_STR_ARG(j->name));
    st = jinja_lex(&token, j->name, source, &j->arena, scratch, err);
    if (st)
        return st;
    p->name = j->name;
    p->t = token;
    p->arena = &j->arena;
    p->err = err;
    name_id(p, CT_STR("loop"), &loop);
    if (!parse_list(p, &j->body, NULL) || p->st)
        return p->st;
    *n_names = p->n_names;
    return CT_OK;
}
