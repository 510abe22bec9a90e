#include "format/doc.h"

#include "base/checked.h"

#include <stdio.h>
#include <stdlib.h>

typedef struct parser {
    ct_json json;
    ct_arena *a;
    ct_error *err;
    ct_node *open[CT_JSON_MAX_DEPTH]; /* containers being filled, outermost first */
    ct_node *last[CT_JSON_MAX_DEPTH]; /* newest member of each, or NULL */
    unsigned depth;
} parser;

/* Densest text: "[1,1,1]", two bytes a node. */
static size_t max_nodes(size_t text_len)
{
    return text_len / 2 + 1;
}

size_t ct_doc_bytes(size_t text_len)
{
    /* Nodes, one table of keys to sort, decoded strings, alignment. */
    return max_nodes(text_len) * (sizeof(ct_node) + sizeof(ct_node *)) + text_len + 4096;
}

static ct_status full(parser *p)
{
    return ct_fail(p->err, CT_ELIMIT, "%s: exceeds its memory bound", p->json.name);
}

static int by_key(const void *a, const void *b)
{
    const ct_node *const *x = a, *const *y = b;

    return ct_str_cmp((*x)->key, (*y)->key);
}

static ct_status check_unique(parser *p, const ct_node *object)
{
    ct_arena_mark mark = ct_arena_save(p->a);
    const ct_node **sorted;
    size_t n = 0;
    ct_status st = CT_OK;

    for (const ct_node *c = object->child; c; c = c->next)
        n++;
    sorted = ct_arena_zalloc(p->a, n, sizeof *sorted);
    if (!sorted)
        return full(p);
    n = 0;
    for (const ct_node *c = object->child; c; c = c->next)
        sorted[n++] = c;
    if (n > 1)
        qsort(sorted, n, sizeof *sorted, by_key);
    for (size_t i = 1; i < n && !st; i++)
        if (ct_str_eq(sorted[i]->key, sorted[i - 1]->key))
            st = ct_fail(p->err, CT_EFORMAT, "%s: key '%.*s' appears twice in one object",
                         p->json.name, (int)ct_min_size(sorted[i]->key.n, 64), sorted[i]->key.p);
    ct_arena_rewind(p->a, mark);
    return st;
}

/* Fills n from the token; a container stays open. */
static ct_status take_value(parser *p, ct_node *n, const ct_json_token *t)
{
    n->kind = t->kind;
    n->text = t->raw;
    if (t->kind == CT_JSON_STRING)
        return ct_json_str(&p->json, t, p->a, &n->text, p->err);
    if (t->kind == CT_JSON_OBJECT || t->kind == CT_JSON_ARRAY) {
        p->last[p->depth] = NULL;
        p->open[p->depth++] = n;
    }
    return CT_OK;
}

/* t begins a member of the innermost open container: a key or an array's item. */
static ct_status add_member(parser *p, ct_json_token *t)
{
    ct_node *container = p->open[p->depth - 1], *last = p->last[p->depth - 1];
    ct_node *n = ct_arena_zalloc(p->a, 1, sizeof *n);
    ct_status st = CT_OK;

    if (!n)
        return full(p);
    n->parent = container;
    if (last) {
        last->next = n;
        n->index = last->index + 1;
    } else {
        container->child = n;
    }
    p->last[p->depth - 1] = n;
    if (t->kind == CT_JSON_KEY) {
        st = ct_json_str(&p->json, t, p->a, &n->key, p->err);
        if (!st)
            st = ct_json_next(&p->json, t, p->err);
    }
    return st ? st : take_value(p, n, t);
}

static ct_status parse_tree(parser *p, ct_node *root)
{
    ct_json_token t;
    ct_status st = ct_json_next(&p->json, &t, p->err);

    if (!st)
        st = take_value(p, root, &t);
    while (!st && p->depth) {
        st = ct_json_next(&p->json, &t, p->err);
        if (st)
            break;
        if (t.kind == CT_JSON_OBJECT_END)
            st = check_unique(p, p->open[--p->depth]);
        else if (t.kind == CT_JSON_ARRAY_END)
            p->depth--;
        else
            st = add_member(p, &t);
    }
    return st;
}

ct_status ct_doc_parse(const ct_node **root, const char *path, ct_str text, ct_arena *a,
                       ct_error *err)
{
    parser p = {.a = a, .err = err};
    ct_node *top = ct_arena_zalloc(a, 1, sizeof *top);
    ct_json_token end;
    ct_status st;

    ct_json_init(&p.json, path, text);
    if (!top)
        return full(&p);
    st = parse_tree(&p, top);
    if (!st)
        st = ct_json_expect(&p.json, CT_JSON_END, "the document's end", &end, err);
    if (!st)
        *root = top;
    return st;
}
