/* Values that a template computes with: JSON's, plus undefined.  Integers keep their
 * text when they do not fit 64 bits, and 1.0 stays a float.  Live in an arena;
 * immutable once built, except namespace objects inside one rendering. */
#ifndef CT_TEXT_VALUE_H
#define CT_TEXT_VALUE_H

#include "base/arena.h"
#include "base/json.h"
#include "base/status.h"
#include "base/str.h"

typedef struct ct_value ct_value;

/* Builds the value whose first token t has just been read from j.  Strings are copied
 * into the arena.  Duplicate keys: the last wins, as in Python. */
ct_status ct_value_from_json(const ct_value **out, ct_json *j, const ct_json_token *t, ct_arena *a,
                             ct_error *err);
/* The whole text must be one JSON value. */
ct_status ct_value_parse(const ct_value **out, const char *name, ct_str text, ct_arena *a,
                         ct_error *err);

const ct_value *ct_value_get(const ct_value *mapping,
                             const char *key); /* NULL: absent or no mapping */

#endif
