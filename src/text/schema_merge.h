/* JSON Schemas without references and combinations: $ref, allOf, anyOf and oneOf become
 * one flat mapping, and what it cannot say becomes notes.  Part of tool_schema.c. */
#ifndef CT_TEXT_SCHEMA_MERGE_H
#define CT_TEXT_SCHEMA_MERGE_H

#include "text/value.h"

#define CT_SCHEMA_MAX_REFS 64 /* references open at one place */

/* The work on the schemas of one request.  `full` is set once the arena is. */
typedef struct ct_schemas {
    ct_arena *a;
    const ct_value *root; /* what a reference's path starts from */
    const ct_value *open[CT_SCHEMA_MAX_REFS];
    unsigned n_open;
    unsigned depth;
    size_t n_nodes;
    bool full;
} ct_schemas;

/* Entries on their way to a mapping; of equal keys the last wins. */
typedef struct ct_fields {
    ct_map_entry *entry;
    size_t n, room;
} ct_fields;

void ct_fields_put(ct_schemas *s, ct_fields *f, ct_str key, const ct_value *value);
ct_value ct_fields_map(ct_schemas *s, ct_fields *f);

/* The notes that flattening leaves behind: an entry of this key, known by its address,
 * so that no client can write one. */
ct_str ct_schema_note_key(void);
const ct_value *ct_schema_note(const ct_value *schema);
/* One more note of a schema's fields. */
void ct_schema_add_note(ct_schemas *s, ct_fields *f, ct_str note);

/* A mapping without $ref, allOf, anyOf, oneOf and $defs.  References that were followed
 * stay open, for the schemas within; the caller sets n_open back. */
ct_value ct_schema_flatten(ct_schemas *s, const ct_value *schema);

/* The compact notation of a schema, at most CT_SCHEMA_MAX_NOTE_BYTES. */
void ct_schema_put_note(ct_schemas *s, ct_buf *out, const ct_value *schema);

/* The forms of a flat schema whose `type` is a list, with or without null; gives how many. */
size_t ct_schema_put_types(ct_schemas *s, ct_buf *out, const ct_value *flat, bool null);

/* The one type of a flat schema, said or to be seen from its other keywords; an empty
 * string when anything may come. */
ct_str ct_schema_type(const ct_value *flat);

#endif
