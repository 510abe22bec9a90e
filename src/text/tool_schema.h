/* Tool schemas in the form that the chat template can print.
 *
 * The template knows one `type` a property, `enum` of strings, `items`, `properties`,
 * `required` and `nullable`; unions, references, constants and tuples would be dropped
 * or printed wrongly.  They are resolved here, and what has no native form is said in
 * the description, in a compact notation: docs/tool-schemas.md has the rule.  A schema
 * that the template prints in full passes unchanged.  Any thread. */
#ifndef CT_TEXT_TOOL_SCHEMA_H
#define CT_TEXT_TOOL_SCHEMA_H

#include "text/value.h"

#define CT_SCHEMA_MAX_DEPTH      48   /* levels that are shown; the template nests macros */
#define CT_SCHEMA_MAX_NODES      4096 /* schemas in one request, after which no reference expands */
#define CT_SCHEMA_MAX_NOTE_BYTES 2048 /* one compact form */

/* tools: OpenAI's list, checked (ct_chat_tools); out is a list to render, which shares
 * what needs no change.  The original stays the authority for reading the arguments. */
ct_status ct_tools_for_template(ct_value *out, const ct_value *tools, ct_arena *a, ct_error *err);

#endif
