#include "text/specials.h"

#include "base/checked.h"

#include <assert.h>

typedef struct ct_special_node {
    uint32_t child, sibling; /* first child, next child of the same parent; 0 is none */
    uint32_t id;             /* of the token that ends here, or CT_TOKEN_NONE */
    unsigned char byte;
} special_node;

ct_status ct_specials_init(ct_specials *s, ct_arena *a, size_t text_bytes, ct_error *err)
{
    size_t n_nodes, n_bytes;

    *s = (ct_specials){0};
    if (ct_add_size(&n_nodes, text_bytes, 1) && n_nodes < UINT32_MAX &&
        ct_mul_size(&n_bytes, n_nodes, sizeof *s->node))
        s->node = ct_arena_alloc(a, n_bytes, CT_ALIGN);
    if (!s->node)
        return ct_fail(err, CT_ELIMIT, "no memory for added tokens of %zu bytes", text_bytes);
    s->room = (uint32_t)n_nodes;
    s->node[s->n_nodes++] = (special_node){.id = CT_TOKEN_NONE};
    return CT_OK;
}

static uint32_t find_child(const ct_specials *s, uint32_t parent, unsigned char byte)
{
    uint32_t at = s->node[parent].child;

    while (at && s->node[at].byte != byte)
        at = s->node[at].sibling;
    return at;
}

static uint32_t add_child(ct_specials *s, uint32_t parent, unsigned char byte)
{
    uint32_t at = s->n_nodes++;

    assert(at < s->room);
    s->node[at] =
        (special_node){.sibling = s->node[parent].child, .id = CT_TOKEN_NONE, .byte = byte};
    s->node[parent].child = at;
    return at;
}

bool ct_specials_add(ct_specials *s, ct_str text, uint32_t id)
{
    uint32_t at = 0;

    for (size_t i = 0; i < text.n; i++) {
        unsigned char byte = (unsigned char)text.p[i];
        uint32_t child = find_child(s, at, byte);

        at = child ? child : add_child(s, at, byte);
    }
    if (s->node[at].id != CT_TOKEN_NONE)
        return false;
    s->node[at].id = id;
    s->begins[(unsigned char)text.p[0]] = true;
    return true;
}

uint32_t ct_specials_match(const ct_specials *s, ct_str text, size_t *n_bytes)
{
    uint32_t at = 0, id = CT_TOKEN_NONE;

    for (size_t i = 0; i < text.n; i++) {
        at = find_child(s, at, (unsigned char)text.p[i]);
        if (!at)
            break;
        if (s->node[at].id != CT_TOKEN_NONE) {
            id = s->node[at].id;
            *n_bytes = i + 1;
        }
    }
    return id;
}
