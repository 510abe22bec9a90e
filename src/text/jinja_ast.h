/* The compiled form of a template: one kind of node for expressions and statements, in
 * the template's arena.  Private to the jinja_*.c files. */
#ifndef CT_TEXT_JINJA_AST_H
#define CT_TEXT_JINJA_AST_H

#include "text/jinja.h"
#include "text/value.h"

#define JINJA_MAX_HEIGHT 200  /* nesting of expressions and statements */
#define JINJA_MAX_NAMES  1000 /* distinct names in one template */

#define JINJA_NAME_LOOP 0 /* the name `loop` is always the first */

typedef enum jinja_kind {
    /* Expressions. */
    JINJA_CONST,    /* value */
    JINJA_NAME,     /* text, name, ref */
    JINJA_LIST,     /* list */
    JINJA_TUPLE,    /* list */
    JINJA_DICT,     /* list: key, value, key, value, … */
    JINJA_ATTR,     /* a.text */
    JINJA_LOOPATTR, /* loop.text: a is the name, id a jinja_loop_attr */
    JINJA_ITEM,     /* a[b] */
    JINJA_SLICE,    /* a[b:c:d] */
    JINJA_CALL,     /* a: the name; list: arguments, JINJA_KEYWORD last */
    JINJA_KEYWORD,  /* text = a */
    JINJA_METHOD,   /* a.text(list); id */
    JINJA_FILTER,   /* a | id(b, c, d); a is NULL in the filter of a block set */
    JINJA_TEST,     /* a is id b */
    JINJA_NOT,      /* a */
    JINJA_NEGATE,   /* a */
    JINJA_PLUS,     /* a */
    JINJA_AND,      /* a, b */
    JINJA_OR,       /* a, b */
    JINJA_COND,     /* b if a else c (NULL) */
    JINJA_COMPARE,  /* a, then list of JINJA_OPERAND */
    JINJA_OPERAND,  /* op, a */
    JINJA_BINARY,   /* a op b */
    JINJA_CONCAT,   /* list */
    /* Statements. */
    JINJA_TEXT,     /* text */
    JINJA_OUTPUT,   /* a */
    JINJA_IF,       /* list of JINJA_BRANCH */
    JINJA_BRANCH,   /* a (NULL: else), list */
    JINJA_FOR,      /* for a in b if c: list, else list2; scope of each */
    JINJA_SET,      /* a = b */
    JINJA_SETBLOCK, /* a = list, through filter b; op: at the top level */
    JINJA_NSREF,    /* a (a name) . text, as a target */
    JINJA_MACRO,    /* text, a: the name; list2: parameters (b: default), list: body */
    JINJA_PARAM,    /* name, b */
    JINJA_BREAK,
    JINJA_CONTINUE,
} jinja_kind;

typedef enum jinja_op {
    JINJA_EQ,
    JINJA_NE,
    JINJA_LT,
    JINJA_LE,
    JINJA_GT,
    JINJA_GE,
    JINJA_IN,
    JINJA_NOT_IN,
    JINJA_ADD,
    JINJA_SUB,
    JINJA_MUL,
    JINJA_DIV,
    JINJA_FLOORDIV,
    JINJA_MOD,
} jinja_op;

typedef enum jinja_loop_attr {
    JINJA_LOOP_INDEX,
    JINJA_LOOP_INDEX0,
    JINJA_LOOP_FIRST,
    JINJA_LOOP_LAST,
    JINJA_LOOP_LENGTH,
    JINJA_LOOP_REVINDEX,
    JINJA_LOOP_REVINDEX0,
    JINJA_LOOP_PREVITEM,
    JINJA_LOOP_NEXTITEM,
} jinja_loop_attr;

/* A variable's place: in the current macro call, or in the template's top level. */
typedef struct jinja_ref {
    uint32_t slot;
    bool top;
} jinja_ref;

typedef enum jinja_load {
    JINJA_LOAD_PARAM,     /* set by whoever enters */
    JINJA_LOAD_UNDEFINED, /* empty until stored */
    JINJA_LOAD_CONTEXT,   /* from the inputs, else a function */
    JINJA_LOAD_ALIAS,     /* from an outer variable */
} jinja_load;

typedef struct jinja_var {
    jinja_load load;
    uint32_t slot;
    jinja_ref from; /* ALIAS */
    ct_str name;
} jinja_var;

/* Variables to set when a body is entered (each iteration of a loop anew). */
typedef struct jinja_scope {
    const jinja_var *var;
    uint32_t n;
} jinja_scope;

typedef struct jinja_node jinja_node;
struct jinja_node {
    unsigned char kind, op;
    unsigned short id, height;
    uint32_t line, name;
    jinja_node *next; /* in the list it stands in */
    jinja_node *a, *b, *c, *d, *list, *list2;
    ct_str text;
    ct_value value;
    jinja_ref ref;           /* NAME, PARAM */
    jinja_scope scope;       /* FOR body, MACRO, SETBLOCK */
    jinja_scope test, other; /* FOR: test, else */
    jinja_ref loop;          /* FOR: the variable `loop` */
    uint32_t n_slots;        /* MACRO */
};

struct ct_jinja {
    ct_arena arena;
    ct_str name; /* begins messages */
    jinja_node *body;
    jinja_scope scope;
    uint32_t n_slots;
};

/* Error at a line of the template. */
ct_status jinja_fail(ct_str name, uint32_t line, ct_status st, ct_error *err, const char *fmt, ...)
    __attribute__((format(printf, 5, 6)));

/* jinja_parse.c and jinja_scope.c: the two steps of compiling. */
ct_status jinja_parse(ct_jinja *j, ct_str source, ct_arena *scratch, uint32_t *n_names,
                      ct_error *err);
ct_status jinja_resolve(ct_jinja *j, uint32_t n_names, ct_arena *scratch, ct_error *err);

#endif
