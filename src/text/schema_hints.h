/* What a JSON Schema says about a value, as far as reading a model's arguments needs it:
 * which types are allowed, and the schemas of members and items.  $ref within the same
 * document is followed; allOf, anyOf and oneOf count as one schema that allows what any
 * branch allows.  Hints, not validation: what a schema does not say is unknown. */
#ifndef CT_TEXT_SCHEMA_HINTS_H
#define CT_TEXT_SCHEMA_HINTS_H

#include "text/value.h"

enum {
    CT_HINT_STRING = 1 << 0,
    CT_HINT_NUMBER = 1 << 1, /* integers too */
    CT_HINT_BOOL = 1 << 2,
    CT_HINT_NULL = 1 << 3,
    CT_HINT_ARRAY = 1 << 4,
    CT_HINT_OBJECT = 1 << 5,
};

/* root: the document that $ref points into.  s may be NULL: nothing is known. */
unsigned ct_hint_types(const ct_value *root, const ct_value *s); /* bits; 0: unknown */
const ct_value *ct_hint_items(const ct_value *root, const ct_value *s);
/* Schema of a member: a declared one, else that of additionalProperties, else NULL. */
const ct_value *ct_hint_member(const ct_value *root, const ct_value *s, ct_str key);
bool ct_hint_declares(const ct_value *root, const ct_value *s, ct_str key);
/* Whether members are declared and no others announced. */
bool ct_hint_closed(const ct_value *root, const ct_value *s);

#endif
