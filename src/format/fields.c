/* Typed reads of a document's members. */
#include "base/checked.h"
#include "format/doc.h"

#include <stdio.h>

#define PLACE_BYTES 256
#define SHOWN_BYTES 64 /* of a key or a value in a message */

static int cut(ct_str s)
{
    return (int)ct_min_size(s.n, SHOWN_BYTES);
}

/* "text_config.layer_types[3]": the node's place, from the root. */
static void write_place(char out[PLACE_BYTES], const ct_node *node)
{
    const ct_node *chain[CT_JSON_MAX_DEPTH + 1];
    size_t n = 0, at = 0;

    out[0] = '\0';
    for (; node && node->parent && n < CT_LEN(chain); node = node->parent)
        chain[n++] = node;
    while (n-- && at < PLACE_BYTES) {
        const ct_node *c = chain[n];

        if (c->parent->kind == CT_JSON_ARRAY)
            at += (size_t)snprintf(out + at, PLACE_BYTES - at, "[%u]", c->index);
        else
            at += (size_t)snprintf(out + at, PLACE_BYTES - at, "%s%.*s", at ? "." : "", cut(c->key),
                                   c->key.n ? c->key.p : "");
    }
}

static void write_value(char out[PLACE_BYTES], const ct_node *node)
{
    if (node->kind == CT_JSON_NUMBER)
        snprintf(out, PLACE_BYTES, "%.*s", cut(node->text), node->text.p);
    else if (node->kind == CT_JSON_STRING)
        snprintf(out, PLACE_BYTES, "'%.*s'", cut(node->text), node->text.n ? node->text.p : "");
    else
        snprintf(out, PLACE_BYTES, "%s", ct_json_kind_name(node->kind));
}

static void refuse(ct_fields *f, ct_status st, const char *place, const char *value,
                   const char *fmt, va_list ap)
{
    char rest[512];

    if (f->st)
        return;
    vsnprintf(rest, sizeof rest, fmt, ap);
    f->st = ct_fail(f->err, st, "%s: %s is %s, %s", f->path, place, value, rest);
}

void ct_fields_refuse_node(ct_fields *f, ct_status st, const ct_node *node, const char *fmt, ...)
{
    char place[PLACE_BYTES], value[PLACE_BYTES];
    va_list ap;

    write_place(place, node);
    write_value(value, node);
    va_start(ap, fmt);
    refuse(f, st, place[0] ? place : "the document", value, fmt, ap);
    va_end(ap);
}

/* Unlike ct_node_get, also sees null. */
static const ct_node *member(const ct_node *object, const char *key)
{
    if (!object || object->kind != CT_JSON_OBJECT)
        return NULL;
    for (const ct_node *c = object->child; c; c = c->next)
        if (ct_str_is(c->key, key))
            return c;
    return NULL;
}

const ct_node *ct_node_get(const ct_node *object, const char *key)
{
    const ct_node *n = member(object, key);

    return n && n->kind != CT_JSON_NULL ? n : NULL;
}

void ct_fields_refuse(ct_fields *f, ct_status st, const ct_node *object, const char *key,
                      const char *fmt, ...)
{
    char place[PLACE_BYTES], value[PLACE_BYTES] = "absent", whole[2 * PLACE_BYTES];
    const ct_node *n = member(object, key);
    va_list ap;

    write_place(place, object);
    if (n)
        write_value(value, n);
    snprintf(whole, sizeof whole, "%s%s%s", place, place[0] ? "." : "", key);
    va_start(ap, fmt);
    refuse(f, st, whole, value, fmt, ap);
    va_end(ap);
}

uint32_t ct_fields_node_u32(ct_fields *f, const ct_node *n, uint32_t min, uint32_t max)
{
    const ct_json_token t = {.kind = n->kind, .raw = n->text};
    const ct_json json = {.name = f->path};
    uint64_t v;

    if (f->st)
        return min;
    if (n->kind != CT_JSON_NUMBER || ct_json_u64(&json, &t, "", max, &v, NULL) || v < min) {
        ct_fields_refuse_node(f, CT_EFORMAT, n, "must be a whole number from %u to %u", min, max);
        return min;
    }
    return (uint32_t)v;
}

uint32_t ct_fields_u32(ct_fields *f, const ct_node *object, const char *key, uint32_t min,
                       uint32_t max)
{
    const ct_node *n = ct_node_get(object, key);

    if (n)
        return ct_fields_node_u32(f, n, min, max);
    ct_fields_refuse(f, CT_EFORMAT, object, key, "must be a whole number from %u to %u", min, max);
    return min;
}

uint32_t ct_fields_u32_or(ct_fields *f, const ct_node *object, const char *key, uint32_t min,
                          uint32_t max, uint32_t absent)
{
    const ct_node *n = ct_node_get(object, key);

    return n ? ct_fields_node_u32(f, n, min, max) : absent;
}

double ct_fields_double(ct_fields *f, const ct_node *object, const char *key)
{
    const ct_node *n = ct_node_get(object, key);
    const ct_json json = {.name = f->path};
    ct_json_token t = {0};
    double v = 0;

    if (n)
        t = (ct_json_token){.kind = n->kind, .raw = n->text};
    if (!n || n->kind != CT_JSON_NUMBER || ct_json_double(&json, &t, "", &v, NULL))
        ct_fields_refuse(f, CT_EFORMAT, object, key, "must be a finite number");
    return v;
}

ct_str ct_fields_node_str(ct_fields *f, const ct_node *n)
{
    if (n->kind != CT_JSON_STRING) {
        ct_fields_refuse_node(f, CT_EFORMAT, n, "must be a string");
        return (ct_str){0};
    }
    return n->text;
}

ct_str ct_fields_str(ct_fields *f, const ct_node *object, const char *key)
{
    const ct_node *n = ct_node_get(object, key);

    if (n)
        return ct_fields_node_str(f, n);
    ct_fields_refuse(f, CT_EFORMAT, object, key, "must be a string");
    return (ct_str){0};
}

const ct_node *ct_fields_container(ct_fields *f, const ct_node *object, const char *key,
                                   ct_json_kind kind)
{
    const ct_node *n = ct_node_get(object, key);

    if (n && n->kind == kind)
        return n;
    ct_fields_refuse(f, CT_EFORMAT, object, key, "must be %s", ct_json_kind_name(kind));
    return NULL;
}

bool ct_fields_bool_or(ct_fields *f, const ct_node *object, const char *key, bool absent)
{
    const ct_node *n = ct_node_get(object, key);

    if (!n)
        return absent;
    if (n->kind != CT_JSON_TRUE && n->kind != CT_JSON_FALSE)
        ct_fields_refuse_node(f, CT_EFORMAT, n, "must be true or false");
    return n->kind == CT_JSON_TRUE;
}
