/* Which variable a name means, by Jinja2's rules (its idtracking.py): every body has its
 * own variables, set anew when it is entered, from the input, from an outer variable or
 * to undefined, as the body's first use of the name says. */
#include "text/jinja_ast.h"
#include "text/jinja_names.h"

#include "base/checked.h"

typedef struct symbol {
    struct symbol *next; /* in order of definition */
    ct_str name;
    jinja_var var;
    bool stored;
    const jinja_node *loop; /* the loop whose `loop` this is */
} symbol;

typedef struct function {
    uint32_t n_slots;
    bool top;
} function;

typedef struct frame {
    const struct frame *parent;
    function *fn;
    symbol **by_name;
    symbol *first, **last;
    uint32_t *journal; /* names in order of their first store */
    uint32_t n_stored;
} frame;

typedef struct resolver {
    ct_jinja *j;
    ct_arena *scratch;
    uint32_t n_names;
    bool *is_macro; /* by name */
    ct_error *err;
} resolver;

static ct_status full(const resolver *r)
{
    return ct_fail(r->err, CT_ELIMIT, "%.*s: the template exceeds the memory bound",
                   CT_STR_ARG(r->j->name));
}

static ct_status frame_init(resolver *r, frame *f, const frame *parent, function *fn)
{
    *f = (frame){.parent = parent, .fn = fn};
    f->last = &f->first;
    f->by_name = ct_arena_zalloc(r->scratch, r->n_names + 1, sizeof(symbol *));
    f->journal = ct_arena_zalloc(r->scratch, r->n_names + 1, sizeof *f->journal);
    return f->by_name && f->journal ? CT_OK : full(r);
}

static symbol *find(const frame *f, uint32_t name, const frame **where)
{
    for (; f; f = f->parent)
        if (f->by_name[name]) {
            *where = f;
            return f->by_name[name];
        }
    return NULL;
}

static jinja_ref ref_of(const symbol *s, const frame *where)
{
    return (jinja_ref){s->var.slot, where->fn->top};
}

static ct_status define(resolver *r, frame *f, const jinja_node *n, jinja_load load)
{
    symbol *s = f->by_name[n->name];

    if (!s) {
        s = ct_arena_zalloc(r->scratch, 1, sizeof *s);
        if (!s)
            return full(r);
        *f->last = s;
        f->last = &s->next;
        f->by_name[n->name] = s;
        s->name = s->var.name = n->text;
        s->var.slot = f->fn->n_slots++;
    }
    s->var.load = load;
    return CT_OK;
}

static void mark_stored(frame *f, uint32_t name)
{
    symbol *s = f->by_name[name];

    if (!s->stored)
        f->journal[f->n_stored++] = name;
    s->stored = true;
}

static ct_status declare(resolver *r, frame *f, const jinja_node *n)
{
    ct_status st = define(r, f, n, JINJA_LOAD_PARAM);

    if (!st)
        mark_stored(f, n->name);
    return st;
}

static ct_status load(resolver *r, frame *f, const jinja_node *n)
{
    const frame *where;

    return find(f, n->name, &where) ? CT_OK : define(r, f, n, JINJA_LOAD_CONTEXT);
}

/* From the outer variable of that name, or else `load`. */
static void set_load(frame *f, uint32_t name, jinja_load otherwise)
{
    const frame *where;
    const symbol *outer = find(f->parent, name, &where);
    symbol *s = f->by_name[name];

    s->var.load = outer ? JINJA_LOAD_ALIAS : otherwise;
    if (outer)
        s->var.from = ref_of(outer, where);
}

static ct_status store(resolver *r, frame *f, const jinja_node *n)
{
    bool known = f->by_name[n->name] != NULL;
    ct_status st;

    if (!known) {
        st = define(r, f, n, JINJA_LOAD_UNDEFINED);
        if (st)
            return st;
        set_load(f, n->name, JINJA_LOAD_UNDEFINED);
    }
    mark_stored(f, n->name);
    return CT_OK;
}

static ct_status analyse(resolver *r, frame *f, const jinja_node *n, bool as_param);

static ct_status analyse_list(resolver *r, frame *f, const jinja_node *list, bool as_param)
{
    ct_status st = CT_OK;

    for (; list && !st; list = list->next)
        st = analyse(r, f, list, as_param);
    return st;
}

/* What only some branch stores comes from outside otherwise. */
static ct_status analyse_if(resolver *r, frame *f, const jinja_node *n)
{
    const jinja_node *first = n->list;
    uint32_t mark;
    ct_status st;

    /* The first test belongs to the frame itself; later ones to the branches. */
    st = analyse(r, f, first->a, false);
    mark = f->n_stored;
    for (const jinja_node *b = first; b && !st; b = b->next) {
        if (b != first && b->a)
            st = analyse(r, f, b->a, false);
        if (!st)
            st = analyse_list(r, f, b->list, false);
    }
    for (uint32_t i = mark; i < f->n_stored && !st; i++)
        set_load(f, f->journal[i], JINJA_LOAD_CONTEXT);
    return st;
}

static ct_status analyse_target(resolver *r, frame *f, const jinja_node *n, bool as_param)
{
    ct_status st = CT_OK;

    if (n->kind == JINJA_NSREF)
        return load(r, f, n->a);
    if (n->kind == JINJA_NAME)
        return as_param ? declare(r, f, n) : store(r, f, n);
    for (n = n->list; n && !st; n = n->next)
        st = analyse_target(r, f, n, as_param);
    return st;
}

/* Collects the names of one frame; the bodies of loops, macros and block sets are
 * frames of their own.  Recursion is bounded by the height of the tree. */
static ct_status analyse(resolver *r, frame *f, const jinja_node *n, bool as_param)
{
    const jinja_node *child[] = {n->a, n->b, n->c, n->d};
    ct_status st = CT_OK;

    switch ((jinja_kind)n->kind) {
    case JINJA_NAME:
        return as_param ? declare(r, f, n) : load(r, f, n);
    case JINJA_IF:
        return analyse_if(r, f, n);
    case JINJA_FOR:
        return analyse(r, f, n->b, false);
    case JINJA_SET:
        st = analyse(r, f, n->b, false);
        return st ? st : analyse_target(r, f, n->a, false);
    case JINJA_SETBLOCK:
        return analyse_target(r, f, n->a, false);
    case JINJA_MACRO:
        return store(r, f, n->a);
    default:
        break;
    }
    for (size_t i = 0; i < CT_LEN(child) && !st; i++)
        if (child[i])
            st = analyse(r, f, child[i], as_param);
    return st ? st : analyse_list(r, f, n->list, as_param);
}

static ct_status keep_scope(resolver *r, const frame *f, jinja_scope *out)
{
    jinja_var *var;
    uint32_t n = 0;

    for (const symbol *s = f->first; s; s = s->next)
        n += s->var.load != JINJA_LOAD_PARAM;
    var = ct_arena_zalloc(&r->j->arena, n, sizeof *var);
    if (!var)
        return full(r);
    *out = (jinja_scope){var, n};
    for (const symbol *s = f->first; s; s = s->next)
        if (s->var.load != JINJA_LOAD_PARAM)
            *var++ = s->var;
    return CT_OK;
}

static ct_status resolve(resolver *r, const frame *f, jinja_node *n);

static ct_status resolve_list(resolver *r, const frame *f, jinja_node *list)
{
    ct_status st = CT_OK;

    for (; list && !st; list = list->next)
        st = resolve(r, f, list);
    return st;
}

static ct_status resolve_name(resolver *r, const frame *f, jinja_node *n, const jinja_node **loop)
{
    const frame *where = NULL;
    const symbol *s = find(f, n->name, &where);

    *loop = NULL;
    if (!s)
        return jinja_fail(r->j->name, n->line, CT_EFORMAT, r->err, "'%.*s' cannot be resolved",
                          CT_STR_ARG(n->text));
    n->ref = ref_of(s, where);
    *loop = s->loop;
    return CT_OK;
}

static ct_status resolve_loop_attr(resolver *r, jinja_node *n, const jinja_node *loop)
{
    static const char *const names[] = {"index",    "index0",    "first",    "last",    "length",
                                        "revindex", "revindex0", "previtem", "nextitem"};

    for (size_t i = 0; i < CT_LEN(names); i++) {
        if (!ct_str_is(n->text, names[i]))
            continue;
        /* Their value needs the whole rest of the sequence, tested ahead of its time. */
        if (loop->c && i >= JINJA_LOOP_LENGTH && i <= JINJA_LOOP_REVINDEX0)
            break;
        n->kind = JINJA_LOOPATTR;
        n->id = (unsigned short)i;
        return CT_OK;
    }
    return jinja_fail(r->j->name, n->line, CT_EUNSUPPORTED, r->err,
                      "'loop.%.*s' is not supported here", CT_STR_ARG(n->text));
}

static ct_status resolve_call(resolver *r, const frame *f, jinja_node *n)
{
    static const char *const functions[] = {"namespace", "raise_exception", "range"};
    const jinja_node *loop;
    bool known = r->is_macro[n->a->name];
    ct_status st;

    for (size_t i = 0; i < CT_LEN(functions); i++)
        known |= ct_str_is(n->a->text, functions[i]);
    if (!known)
        return jinja_fail(r->j->name, n->line, CT_EUNSUPPORTED, r->err, "unknown function '%.*s'",
                          CT_STR_ARG(n->a->text));
    st = resolve_name(r, f, n->a, &loop);
    return st ? st : resolve_list(r, f, n->list);
}

static jinja_node *copy_target(resolver *r, const jinja_node *n)
{
    jinja_node *copy = ct_arena_zalloc(&r->j->arena, 1, sizeof *copy), **last;

    if (!copy)
        return NULL;
    *copy = *n;
    copy->next = NULL;
    last = &copy->list;
    for (const jinja_node *k = n->list; k; k = k->next) {
        *last = copy_target(r, k);
        if (!*last)
            return NULL;
        last = &(*last)->next;
    }
    return copy;
}

/* The body and else of a loop, its test, each with its own variables. */
static ct_status resolve_for_part(resolver *r, const frame *outer, jinja_node *n, int part)
{
    jinja_scope *scope = part == 0 ? &n->scope : part == 1 ? &n->other : &n->test;
    jinja_node *body = part == 0 ? n->list : part == 1 ? n->list2 : n->c;
    ct_arena_mark mark = ct_arena_save(r->scratch);
    jinja_node loop = {.kind = JINJA_NAME, .text = CT_STR("loop"), .name = JINJA_NAME_LOOP};
    frame f;
    ct_status st = frame_init(r, &f, outer, outer->fn);

    if (!st && part == 0)
        st = declare(r, &f, &loop);
    if (!st && part == 0) {
        f.by_name[loop.name]->loop = n;
        n->loop = ref_of(f.by_name[loop.name], &f);
    }
    if (!st && part != 1)
        st = analyse_target(r, &f, n->a, true);
    if (!st)
        st = part == 2 ? analyse(r, &f, body, false) : analyse_list(r, &f, body, false);
    /* The test sees its own copies of the loop's variables. */
    if (!st && part == 2) {
        n->d = copy_target(r, n->a);
        st = n->d ? resolve(r, &f, n->d) : full(r);
    }
    if (!st && part == 0)
        st = resolve(r, &f, n->a);
    if (!st)
        st = part == 2 ? resolve(r, &f, body) : resolve_list(r, &f, body);
    if (!st)
        st = keep_scope(r, &f, scope);
    ct_arena_rewind(r->scratch, mark);
    return st;
}

static ct_status resolve_for(resolver *r, const frame *f, jinja_node *n)
{
    ct_status st = resolve(r, f, n->b);

    if (!st && n->c)
        st = resolve_for_part(r, f, n, 2);
    if (!st)
        st = resolve_for_part(r, f, n, 0);
    if (!st && n->list2)
        st = resolve_for_part(r, f, n, 1);
    return st;
}

static ct_status resolve_setblock(resolver *r, const frame *outer, jinja_node *n)
{
    ct_arena_mark mark = ct_arena_save(r->scratch);
    frame f;
    ct_status st = frame_init(r, &f, outer, outer->fn);

    n->op = outer->fn->top;
    if (!st)
        st = analyse_list(r, &f, n->list, false);
    /* The filter's arguments are seen from inside, but do not define anything there. */
    if (!st && n->b)
        st = analyse(r, &f, n->b, false);
    if (!st && n->b)
        st = resolve(r, &f, n->b);
    if (!st)
        st = resolve_list(r, &f, n->list);
    if (!st)
        st = keep_scope(r, &f, &n->scope);
    ct_arena_rewind(r->scratch, mark);
    return st ? st : resolve(r, outer, n->a);
}

static ct_status resolve_macro(resolver *r, const frame *outer, jinja_node *n)
{
    ct_arena_mark mark = ct_arena_save(r->scratch);
    function fn = {0};
    const jinja_node *loop;
    frame f;
    ct_status st;

    if (outer->parent)
        return jinja_fail(r->j->name, n->line, CT_EUNSUPPORTED, r->err,
                          "macro '%.*s' inside a loop, a macro or a block set is not supported",
                          CT_STR_ARG(n->text));
    st = frame_init(r, &f, outer, &fn);
    for (jinja_node *p = n->list2; p && !st; p = p->next)
        st = declare(r, &f, p);
    for (jinja_node *p = n->list2; p && !st; p = p->next)
        if (p->b)
            st = analyse(r, &f, p->b, false);
    if (!st)
        st = analyse_list(r, &f, n->list, false);
    for (jinja_node *p = n->list2; p && !st; p = p->next) {
        p->ref = ref_of(f.by_name[p->name], &f);
        if (p->b)
            st = resolve(r, &f, p->b);
    }
    if (!st)
        st = resolve_list(r, &f, n->list);
    if (!st)
        st = keep_scope(r, &f, &n->scope);
    n->n_slots = fn.n_slots;
    ct_arena_rewind(r->scratch, mark);
    return st ? st : resolve_name(r, outer, n->a, &loop);
}

static ct_status resolve(resolver *r, const frame *f, jinja_node *n)
{
    jinja_node *child[] = {n->a, n->b, n->c, n->d};
    const jinja_node *loop;
    ct_status st = CT_OK;

    switch ((jinja_kind)n->kind) {
    case JINJA_NAME:
        st = resolve_name(r, f, n, &loop);
        if (!st && loop)
            return jinja_fail(r->j->name, n->line, CT_EUNSUPPORTED, r->err,
                              "'loop' is supported only as 'loop.NAME'");
        return st;
    case JINJA_ATTR:
        if (n->a->kind != JINJA_NAME)
            return resolve(r, f, n->a);
        st = resolve_name(r, f, n->a, &loop);
        return st || !loop ? st : resolve_loop_attr(r, n, loop);
    case JINJA_CALL:
        return resolve_call(r, f, n);
    case JINJA_FOR:
        return resolve_for(r, f, n);
    case JINJA_SETBLOCK:
        return resolve_setblock(r, f, n);
    case JINJA_MACRO:
        return resolve_macro(r, f, n);
    default:
        break;
    }
    for (size_t i = 0; i < CT_LEN(child) && !st; i++)
        if (child[i])
            st = resolve(r, f, child[i]);
    return st ? st : resolve_list(r, f, n->list);
}

static void note_macros(resolver *r, const jinja_node *list)
{
    for (; list; list = list->next) {
        if (list->kind == JINJA_MACRO)
            r->is_macro[list->a->name] = true;
        if (list->kind == JINJA_IF || list->kind == JINJA_BRANCH)
            note_macros(r, list->list);
    }
}

ct_status jinja_resolve(ct_jinja *j, uint32_t n_names, ct_arena *scratch, ct_error *err)
{
    resolver r = {.j = j, .scratch = scratch, .n_names = n_names, .err = err};
    function fn = {.top = true};
    frame top;
    ct_status st;

    r.is_macro = ct_arena_zalloc(scratch, n_names + 1, sizeof *r.is_macro);
    if (!r.is_macro)
        return full(&r);
    note_macros(&r, j->body);
    st = frame_init(&r, &top, NULL, &fn);
    if (!st)
        st = analyse_list(&r, &top, j->body, false);
    if (!st)
        st = resolve_list(&r, &top, j->body);
    if (!st)
        st = keep_scope(&r, &top, &j->scope);
    j->n_slots = fn.n_slots;
    return st;
}
