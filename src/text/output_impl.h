/* What the files of the output reader share. */
#ifndef CT_TEXT_OUTPUT_IMPL_H
#define CT_TEXT_OUTPUT_IMPL_H

#include "text/call_args.h"
#include "text/output.h"

typedef enum ct_output_state {
    CT_IN_CONTENT,
    CT_IN_LABEL,   /* behind <|channel>: the label is not read yet */
    CT_IN_THOUGHT, /* behind the label */
    CT_IN_NAME,    /* of a call */
    CT_IN_ARGS,
    CT_IN_TAIL, /* between a call's last brace and its closing token */
} ct_output_state;

/* Ids by text; CT_TOKEN_NONE, which no id equals, where a vocabulary has no such token. */
typedef struct ct_output_marks {
    uint32_t call_open, call_close, channel_open, channel_close, quote;
    uint32_t stop[3];
} ct_output_marks;

struct ct_output {
    const ct_tokenizer *t; /* borrowed */
    const ct_tools *tools; /* borrowed; may be NULL */
    ct_output_marks mark;
    ct_output_state state;
    ct_detok detok;
    ct_buf piece; /* text of the id at hand */
    /* Text not given out yet: in CONTENT while it may be a label or a call without their
     * openers, in LABEL while it may be the label, in TAIL while it is only closers. */
    ct_buf held;
    bool may_label, may_call; /* CONTENT: what `held` may become */
    bool newline;             /* the last newline of a thought, given out when more follows */
    bool reasoned;            /* reasoning was given out */
    bool finished;
    size_t label_at; /* bytes of the label that the prompt holds */
    ct_call_args *args;
    ct_buf raw; /* text of the call at hand */
    ct_buf json;
    uint32_t n_calls;
    uint64_t n_ids, n_reasoning;
    ct_output_end how;
    /* Text of equal kind is joined into one event. */
    ct_buf out;
    ct_event_kind out_kind;
    ct_event_fn *fn; /* borrowed: the call of add or finish */
    void *ctx;
    ct_error *err;
};

/* Gives out an event, after the text that waits; text is joined to it where kinds agree. */
ct_status ct_output_event(ct_output *o, ct_event_kind kind, ct_str text);
ct_status ct_output_text(ct_output *o, ct_event_kind kind, ct_str text);
/* Text behind a call, or of one that came to nothing. */
ct_status ct_output_content(ct_output *o, ct_str text);

/* --- output_call.c: states NAME, ARGS and TAIL ---------------------------------- */

/* Whether text begins "call:NAME{" with a declared name: 1 yes, 0 not yet, -1 no. */
int ct_output_opens_call(const ct_tools *tools, ct_str text);
void ct_output_call_open(ct_output *o);
ct_status ct_output_name_text(ct_output *o, ct_str text);
ct_status ct_output_args_text(ct_output *o, ct_str text);
ct_status ct_output_args_quote(ct_output *o);
ct_status ct_output_tail_text(ct_output *o, ct_str text);
/* The closing token; or, with cut, anything else that ends the call. */
ct_status ct_output_call_close(ct_output *o, bool cut);
/* The limit of tokens: a call that is not closed is none. */
ct_status ct_output_call_drop(ct_output *o);

#endif
