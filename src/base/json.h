/* Strict JSON (RFC 8259): a pull reader over text in memory, and a writer.
 *
 * The reader allocates nothing and builds no tree, so a 32 MB tokenizer.json costs
 * no more memory than its mapping, a duplicate key is seen by whoever cares, and a
 * number keeps its text (an integer of any length, or 1.0 against 1).  Depth is
 * bounded; strings must be valid UTF-8.  One thread at a time. */
#ifndef CT_BASE_JSON_H
#define CT_BASE_JSON_H

#include "base/arena.h"
#include "base/status.h"
#include "base/str.h"

#define CT_JSON_MAX_DEPTH 128

typedef enum ct_json_kind {
    CT_JSON_END, /* after the one top-level value */
    CT_JSON_OBJECT,
    CT_JSON_OBJECT_END,
    CT_JSON_ARRAY,
    CT_JSON_ARRAY_END,
    CT_JSON_KEY,
    CT_JSON_STRING,
    CT_JSON_NUMBER,
    CT_JSON_TRUE,
    CT_JSON_FALSE,
    CT_JSON_NULL,
} ct_json_kind;

typedef struct ct_json_token {
    ct_json_kind kind;
    ct_str raw;   /* KEY, STRING: between the quotes, still escaped; NUMBER: its text.
                     Borrowed from the input. */
    bool escaped; /* raw holds at least one backslash */
} ct_json_token;

typedef struct ct_json {
    const char *name; /* borrowed; begins every message: a path or "request" */
    ct_str text;      /* borrowed */
    size_t at;
    unsigned depth;
    bool started, after_key;
    bool need_comma; /* the container's next item must be preceded by a comma */
    unsigned char is_object[CT_JSON_MAX_DEPTH];
} ct_json;

void ct_json_init(ct_json *j, const char *name, ct_str text);

/* Next token.  Fails with the byte offset on anything that is not JSON, also on
 * text after the top-level value. */
ct_status ct_json_next(ct_json *j, ct_json_token *t, ct_error *err);
/* Next token, which must be of this kind; `what` names it in the message. */
ct_status ct_json_expect(ct_json *j, ct_json_kind kind, const char *what, ct_json_token *t,
                         ct_error *err);
/* Passes over the value whose first token t has just been read. */
ct_status ct_json_skip(ct_json *j, const ct_json_token *t, ct_error *err);

const char *ct_json_kind_name(ct_json_kind kind); /* "an object", "a string", … */

/* Decoded bytes of a KEY or STRING.  Borrowed from the input when nothing is
 * escaped, otherwise from the arena; {NULL, 0} with CT_ELIMIT when that is full.
 * A lone surrogate escape becomes U+FFFD. */
ct_status ct_json_str(const ct_json *j, const ct_json_token *t, ct_arena *a, ct_str *out,
                      ct_error *err);
/* Whether a KEY or STRING decodes to exactly z. */
bool ct_json_is(const ct_json_token *t, const char *z);

/* Value of a NUMBER token.  `what` names the field in messages.  u64 refuses signs,
 * fractions, exponents and values above max. */
ct_status ct_json_u64(const ct_json *j, const ct_json_token *t, const char *what, uint64_t max,
                      uint64_t *out, ct_error *err);
ct_status ct_json_double(const ct_json *j, const ct_json_token *t, const char *what, double *out,
                         ct_error *err);

/* Appends s as a quoted JSON string.  Bytes that are not valid UTF-8 become U+FFFD. */
void ct_json_put_str(ct_buf *b, ct_str s);
/* The same without the quotes: for a string that is written in pieces of whole
 * characters. */
void ct_json_put_chars(ct_buf *b, ct_str s);

#endif
