/* From generated ids to what a client sees: reasoning, content and tool calls.
 *
 * The reader is fed ids, in steps of any size, and gives out events; joined, they do not
 * depend on how the ids were cut.  Control tokens are recognised by id alone, so their
 * look-alikes in text are text; they never reach the client, and no text is ever lost: a
 * call that cannot be read comes back as content.  Rules: docs/tool-calls.md.
 * One reader for one answer; one thread. */
#ifndef CT_TEXT_OUTPUT_H
#define CT_TEXT_OUTPUT_H

#include "text/tokenizer.h"
#include "text/tools.h"

typedef struct ct_output ct_output;

typedef enum ct_event_kind {
    CT_EVENT_REASONING, /* text */
    CT_EVENT_CONTENT,   /* text */
    CT_EVENT_CALL,      /* a call begins; text: its name */
    CT_EVENT_ARGUMENTS, /* more of its arguments; text: JSON, joined one object */
    CT_EVENT_CALL_END,  /* the call is complete */
    CT_EVENT_CALL_VOID, /* the call just begun came to nothing: whoever shows a whole message
                         * leaves it out; its raw text follows as content */
} ct_event_kind;

typedef struct ct_event {
    ct_event_kind kind;
    uint32_t call; /* calls: counts from 0; the number of a void call is used again */
    ct_str text;   /* borrowed: valid during the callback */
} ct_event;

typedef ct_status ct_event_fn(void *ctx, const ct_event *event, ct_error *err);

typedef enum ct_output_end {
    CT_OUTPUT_STOP,   /* a stop id or a stop string */
    CT_OUTPUT_LENGTH, /* the limit of tokens */
} ct_output_end;

/* t and tools are borrowed until destroy.  prompt: the ids that the answer follows (only
 * the tail matters); it says whether the answer starts inside a thought. */
ct_status ct_output_create(ct_output **out, const ct_tokenizer *t, const ct_tools *tools,
                           const uint32_t *prompt, size_t n_prompt, ct_error *err);
void ct_output_destroy(ct_output *o);

ct_status ct_output_add(ct_output *o, const uint32_t *ids, size_t n, ct_event_fn *fn, void *ctx,
                        ct_error *err);
ct_status ct_output_finish(ct_output *o, ct_output_end how, ct_event_fn *fn, void *ctx,
                           ct_error *err);
/* After finish: "tool_calls" when at least one call is complete and the end was a stop,
 * else "stop" or "length". */
const char *ct_output_finish_reason(const ct_output *o);
/* Ids inside thoughts, markers included: usage's reasoning_tokens. */
uint64_t ct_output_reasoning_tokens(const ct_output *o);

#endif
