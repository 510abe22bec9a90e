/* What jinja_parse.c (statements) and jinja_expr.c (expressions) share. */
#ifndef CT_TEXT_JINJA_PARSE_H
#define CT_TEXT_JINJA_PARSE_H

#include "text/jinja_ast.h"
#include "text/jinja_lex.h"

#define NAME_BUCKETS 2048 /* twice JINJA_MAX_NAMES, so that probing ends */

/* A parser function returns NULL after filling err; the first message stays. */
typedef struct jinja_parser {
    ct_str name;
    const jinja_token *t; /* current */
    ct_arena *arena;
    ct_error *err;
    ct_status st;
    unsigned depth;   /* of recursion */
    bool in_iter;     /* directly in a loop's sequence, where a generator may stand */
    unsigned n_loops; /* loops around, for break and continue */
    struct {
        ct_str text;
        uint32_t id;
    } names[NAME_BUCKETS];
    uint32_t n_names;
} jinja_parser;

jinja_node *jinja_parse_fail(jinja_parser *p, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
jinja_node *jinja_new(jinja_parser *p, jinja_kind kind);
/* Fails when the tree grows too high; a list counts as its highest item. */
jinja_node *jinja_close(jinja_parser *p, jinja_node *n);

static inline bool jinja_at_op(const jinja_parser *p, unsigned op)
{
    return p->t->kind == TOKEN_OP && p->t->op == op;
}

static inline bool jinja_at_name(const jinja_parser *p, const char *name)
{
    return p->t->kind == TOKEN_NAME && ct_str_is(p->t->text, name);
}

bool jinja_skip_op(jinja_parser *p, unsigned op);
bool jinja_skip_name(jinja_parser *p, const char *name);
bool jinja_expect_op(jinja_parser *p, unsigned op);

jinja_node *jinja_name_node(jinja_parser *p, ct_str name);
jinja_node *jinja_parse_expr(jinja_parser *p, bool with_condexpr);
jinja_node *jinja_parse_tuple(jinja_parser *p, bool with_condexpr, bool parens);
/* A filter chain that starts without a value: `trim | upper` of `set x | trim | upper`. */
jinja_node *jinja_parse_set_filter(jinja_parser *p);

#endif
