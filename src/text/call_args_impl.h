/* Shared by the files of call_args: the reader's state, and looking ahead. */
#ifndef CT_TEXT_CALL_ARGS_IMPL_H
#define CT_TEXT_CALL_ARGS_IMPL_H

#include "text/call_args.h"

/* How far a decision may look, in bytes: the longest run of blanks, the longest text in
 * which the partner of a doubled quote is searched, and the longest key.  Text is held
 * back for at most a few times this much, so a decision costs the same whatever a
 * string's length. */
#define CT_LOOK_MAX     512
#define CT_LOOK_KEY_MAX 128
/* Longest key and longest bare word; longer ones are no arguments of a call. */
#define CT_CALL_WORD_MAX ((size_t)1 << 20)

/* Symbols beside bytes.  In held text the quote token is the byte 0xff, which UTF-8 never
 * uses. */
enum {
    CT_SYM_QUOTE = 0xff,
    CT_SYM_MORE = -1, /* not here yet */
    CT_SYM_END = -2,  /* the call's closing token, or the end of the output */
};

typedef enum ct_look {
    CT_LOOK_NO,
    CT_LOOK_YES,
    CT_LOOK_MORE, /* what is here does not decide it */
} ct_look;

/* What stands before something that looks like a key, by how much that says. */
typedef enum ct_trust {
    CT_TRUST_LINE,    /* a line of bare words */
    CT_TRUST_WORD,    /* bare words and a comma */
    CT_TRUST_PENDING, /* a quote, while a literal one waits for its partner */
    CT_TRUST_VALUE,   /* a number, a literal, or a quote that hardly opens before a comma */
} ct_trust;

typedef struct ct_call_frame {
    char open;              /* '{', '[', or '(' for an object in parentheses */
    bool filled;            /* an item was written: the next needs a comma */
    bool quoted_keys;       /* a key stood in quotes */
    bool closed_schema;     /* members are declared, and no others are announced */
    const ct_value *schema; /* of this object or list; NULL: unknown */
} ct_call_frame;

typedef enum ct_call_at {
    CT_AT_BEGIN,
    CT_AT_KEY, /* before a key, or the end of an object */
    CT_AT_BARE_KEY,
    CT_AT_QUOTED_KEY,
    CT_AT_COLON,
    CT_AT_VALUE,       /* before a value, or the end of a list */
    CT_AT_STRING_LEAD, /* just behind an opening quote */
    CT_AT_STRING,
    CT_AT_RAW, /* inside brackets of a value that is declared a string */
    CT_AT_BARE,
    CT_AT_AFTER,   /* behind a value */
    CT_AT_WRAPPED, /* behind the brace of call:f({…}) */
} ct_call_at;

struct ct_call_args {
    ct_call_args_state where;
    ct_call_at state;
    bool ended, cut; /* no more input; and it ended without the closing token */

    ct_buf held; /* input that is not consumed yet begins at `at` */
    size_t at;
    size_t run_end; /* in held: closers and blanks up to here were already looked at */

    ct_call_frame frame[CT_CALL_ARGS_MAX_DEPTH];
    unsigned depth;
    const ct_value *root; /* schema of the arguments; borrowed */
    bool wrapped;         /* call:f({…}) */
    bool equals;          /* a key was followed by '=' */

    ct_buf key;       /* of the value at hand, as JSON text without quotes */
    bool key_pending; /* not written yet: its value may still prove to be part of it */
    ct_buf word;      /* bare key or bare value */
    size_t word_end;  /* of a bare value: where its trailing blanks begin */
    unsigned nest[3]; /* open '(', '[', '{' inside a bare value */

    int quote;       /* that opened the string: CT_SYM_QUOTE, '"' or '\'' */
    bool odd;        /* literal quotes of that kind so far: an odd number */
    bool plain_odd;  /* '"' in a string of quote tokens: an odd number */
    bool raw_string; /* CT_AT_RAW: inside a string */
    size_t raw_nest;
};

/* Symbol at offset i of the text that is not consumed yet. */
static inline int ct_call_sym(const ct_call_args *c, size_t i)
{
    if (c->at + i < c->held.n)
        return (unsigned char)c->held.p[c->at + i];
    return c->ended ? CT_SYM_END : CT_SYM_MORE;
}

static inline bool ct_sym_is_blank(int s)
{
    return s == ' ' || s == '\n' || s == '\t' || s == '\r';
}

static inline bool ct_sym_is_closer(int s)
{
    return s == '}' || s == ']' || s == ')';
}

static inline bool ct_sym_is_quote(int s)
{
    return s == CT_SYM_QUOTE || s == '"' || s == '\'';
}

/* Advances *i past blanks, at most CT_LOOK_MAX, and returns the symbol there. */
int ct_call_skip_blanks(const ct_call_args *c, size_t *i);
/* Whether the closer ends that frame. */
bool ct_call_closes(const ct_call_frame *f, int closer);

/* Whether what stands at i can follow a value that has just ended.  odd: its text holds
 * a literal quote without a partner. */
ct_look ct_look_close(const ct_call_args *c, size_t i, bool odd);
/* Whether a key and its separator stand at i, as far as one can know. */
ct_look ct_look_key(const ct_call_args *c, size_t i, const ct_call_frame *f, ct_trust trust);
/* Whether ", key:" stands at i, key declared and followed by an opening quote token: then
 * the string before lacks its closing quote. */
ct_look ct_look_next_member(const ct_call_args *c, size_t i);
/* Whether only blanks and closers stand between i and the end of the call. */
ct_look ct_look_tail(ct_call_args *c, size_t i);
/* Whether the quote at the very beginning of a string is its opening quote once more: the
 * next one closes the string.  i is behind it. */
ct_look ct_look_doubled(const ct_call_args *c, size_t i);

/* A step of the reader consumes something or changes its state, else it returns false:
 * more input is needed, or the call is over. */
bool ct_call_quoted_key_step(ct_call_args *c);
bool ct_call_string_lead_step(ct_call_args *c);
bool ct_call_string_step(ct_call_args *c, ct_buf *json);
bool ct_call_raw_step(ct_call_args *c, ct_buf *json);
bool ct_call_bare_step(ct_call_args *c, ct_buf *json);
void ct_call_open_string(ct_call_args *c, int quote, ct_buf *json);
void ct_call_open_raw(ct_call_args *c, ct_buf *json);
void ct_call_open_bare(ct_call_args *c);
/* Writes what stands before a value: the comma and the key. */
void ct_call_put_key(ct_call_args *c, ct_buf *json);
/* CT_HINT_* of the value at hand. */
unsigned ct_call_types(const ct_call_args *c);
bool ct_call_fail(ct_call_args *c); /* false */

/* Bytes of the character that begins with s, which is not the quote token. */
static inline size_t ct_call_char_bytes(int s)
{
    return s < 0xc0 ? 1 : s < 0xe0 ? 2 : s < 0xf0 ? 3 : 4;
}

bool ct_call_is_number(ct_str s); /* as JSON writes numbers */
/* Appends a bare value as JSON.  types: CT_HINT_*. */
void ct_call_put_bare(ct_buf *json, ct_str word, unsigned types);

#endif
