/* Arguments of one tool call, from Gemma's own syntax to JSON, while they are written.
 *
 * Fed with decoded text and with the quote token, in pieces of any size; gives out JSON
 * as soon as no later input can change it.  The JSON given out, joined, does not depend
 * on how the input was cut.  Near-misses that models write are repaired; the rules are in
 * docs/tool-calls.md.  One call at a time, one thread; memory is bounded by
 * CT_CALL_ARGS_MAX_DEPTH and the longest single key or bare word, never by the length of
 * a string value. */
#ifndef CT_TEXT_CALL_ARGS_H
#define CT_TEXT_CALL_ARGS_H

#include "text/value.h"

typedef struct ct_call_args ct_call_args;

#define CT_CALL_ARGS_MAX_DEPTH 128

typedef enum ct_call_args_state {
    CT_CALL_ARGS_OPEN,   /* more can come */
    CT_CALL_ARGS_CLOSED, /* the outermost brace was closed: further text is not of the call */
    CT_CALL_ARGS_FAILED, /* not a call and not repairable; what was given out is void */
} ct_call_args_state;

ct_status ct_call_args_create(ct_call_args **out, ct_error *err);
void ct_call_args_destroy(ct_call_args *c);

/* Starts on a call, just behind the name.  schema: JSON Schema of the arguments object,
 * borrowed until the next start; NULL when unknown. */
void ct_call_args_start(ct_call_args *c, const ct_value *schema);
/* Decoded text, whole UTF-8 characters; appends JSON to json.  Returns in *used how many
 * bytes belong to the call (less than text.n only when it closed within). */
ct_status ct_call_args_text(ct_call_args *c, ct_str text, size_t *used, ct_buf *json,
                            ct_error *err);
/* The quote token, <|"|>. */
ct_status ct_call_args_quote(ct_call_args *c, ct_buf *json, ct_error *err);
/* The call's closing token came (or the model stopped: cut).  Appends what completes the
 * JSON, so that it is one valid object unless the state becomes FAILED.  A cut call is
 * FAILED unless only closers at its very end are missing. */
ct_status ct_call_args_end(ct_call_args *c, bool cut, ct_buf *json, ct_error *err);
ct_call_args_state ct_call_args_where(const ct_call_args *c);
/* Once CLOSED: text of earlier pieces that turned out to follow the closing brace, while
 * the end of a string was being decided.  It stands before the unused rest of the last
 * piece; mostly empty.  Borrowed until the next start. */
ct_str ct_call_args_rest(const ct_call_args *c);

#endif
