/* The tools that a request declares, as far as reading the model's calls needs them. */
#ifndef CT_TEXT_TOOLS_H
#define CT_TEXT_TOOLS_H

#include "text/value.h"

typedef struct ct_tool {
    ct_str name;                /* borrowed: the request */
    const ct_value *parameters; /* JSON Schema of the arguments, NULL when not declared; borrowed */
} ct_tool;

typedef struct ct_tools {
    const ct_tool *tool; /* arena */
    size_t n;
} ct_tools;

/* list: OpenAI's form [{type:"function", function:{name, parameters}}, …], NULL or null
 * for none.  Errors name the path ("tools[2].function.name: …"). */
ct_status ct_tools_from(ct_tools *out, const ct_value *list, ct_arena *a, ct_error *err);

/* The tool of exactly this name, or NULL. */
const ct_tool *ct_tools_find(const ct_tools *tools, ct_str name);
/* The tool with the longest name that text starts with and that is not followed by
 * another character of a name, or NULL: models write names with ':' '.' and '-'. */
const ct_tool *ct_tools_match(const ct_tools *tools, ct_str text);

#endif
