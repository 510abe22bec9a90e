/* Template source to tokens, with Jinja2's rules for whitespace around tags under
 * trim_blocks and lstrip_blocks. */
#ifndef CT_TEXT_JINJA_LEX_H
#define CT_TEXT_JINJA_LEX_H

#include "base/arena.h"
#include "base/status.h"
#include "base/str.h"

typedef enum jinja_token_kind {
    TOKEN_END,
    TOKEN_DATA,
    TOKEN_VAR_BEGIN,
    TOKEN_VAR_END,
    TOKEN_BLOCK_BEGIN,
    TOKEN_BLOCK_END,
    TOKEN_NAME,
    TOKEN_STRING,
    TOKEN_INT,
    TOKEN_FLOAT,
    TOKEN_OP, /* op: its characters, the first in the low byte */
} jinja_token_kind;

#define OP1(a)    ((unsigned)(a))
#define OP2(a, b) ((unsigned)(a) | (unsigned)(b) << 8)

typedef struct jinja_token {
    unsigned short kind, op;
    uint32_t line;
    ct_str text; /* in the arena; STRING: unescaped */
} jinja_token;

/* Tokens end with TOKEN_END.  Both outlive nothing but their arenas: text goes to
 * keep, the array to scratch. */
ct_status jinja_lex(jinja_token **out, ct_str name, ct_str source, ct_arena *keep,
                    ct_arena *scratch, ct_error *err);

#endif
