/* A small JSON document as a tree, for configuration files: every object's keys are
 * unique, and a node knows its place, so that messages can name it.  Typed reads keep
 * the first error and turn into no-ops after it: read a whole block, test once. */
#ifndef CT_FORMAT_DOC_H
#define CT_FORMAT_DOC_H

#include "base/arena.h"
#include "base/json.h"
#include "base/status.h"

typedef struct ct_node {
    ct_json_kind kind; /* never KEY, END or one of the _END kinds */
    ct_str key;        /* decoded; empty in arrays and at the root */
    ct_str text;       /* STRING: decoded; NUMBER: as written */
    uint32_t index;    /* position in its container */
    const struct ct_node *parent, *child, *next;
} ct_node;

/* Room that ct_doc_parse may take from its arena for a text of this length. */
size_t ct_doc_bytes(size_t text_len);
ct_status ct_doc_parse(const ct_node **root, const char *path, ct_str text, ct_arena *a,
                       ct_error *err);

/* Reads of one document. */
typedef struct ct_fields {
    const char *path; /* borrowed; begins every message */
    ct_status st;     /* of the first read that failed */
    ct_error *err;
} ct_fields;

/* The member, or NULL when it is absent or null.  object may be NULL or no object. */
const ct_node *ct_node_get(const ct_node *object, const char *key);

/* "is absent" when there is no such member; otherwise they must be of their type. */
uint32_t ct_fields_u32(ct_fields *f, const ct_node *object, const char *key, uint32_t min,
                       uint32_t max);
double ct_fields_double(ct_fields *f, const ct_node *object, const char *key);
ct_str ct_fields_str(ct_fields *f, const ct_node *object, const char *key);
/* kind: CT_JSON_OBJECT or CT_JSON_ARRAY. */
const ct_node *ct_fields_container(ct_fields *f, const ct_node *object, const char *key,
                                   ct_json_kind kind);
/* Absent members have a default. */
bool ct_fields_bool_or(ct_fields *f, const ct_node *object, const char *key, bool absent);
uint32_t ct_fields_u32_or(ct_fields *f, const ct_node *object, const char *key, uint32_t min,
                          uint32_t max, uint32_t absent);

/* Value of one node that is known to be there. */
uint32_t ct_fields_node_u32(ct_fields *f, const ct_node *node, uint32_t min, uint32_t max);
ct_str ct_fields_node_str(ct_fields *f, const ct_node *node);

/* "PATH: text_config.rope_theta is 1, must be …": the refusal of a value that is there,
 * or of its absence when node is NULL (then key names it inside object). */
void ct_fields_refuse(ct_fields *f, ct_status st, const ct_node *object, const char *key,
                      const char *fmt, ...) __attribute__((format(printf, 5, 6)));
void ct_fields_refuse_node(ct_fields *f, ct_status st, const ct_node *node, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));

#endif
