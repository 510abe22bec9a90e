/* One choice's answer, from the engine's tokens to text: what a command line, the library
 * and a server all do with replies.
 *
 * Answers to chats are read by text/output.h: thought, content and calls; stop strings are
 * looked for in the content alone, here, and whoever reads asks the engine to cancel once
 * ct_answer_stopped says so.  Answers to plain prompts are content; their stop strings are
 * the engine's, whose replies say how much may be shown.  One thread. */
#ifndef CT_ENGINE_ANSWER_H
#define CT_ENGINE_ANSWER_H

#include "engine/request.h"
#include "engine/stop.h"
#include "text/output.h"

typedef struct ct_answer ct_answer;

typedef struct ct_answer_options {
    const ct_tokenizer *tokenizer; /* borrowed */
    bool chat;
    const ct_tools *tools;  /* chat: borrowed; NULL: none are declared */
    const uint32_t *prompt; /* chat: what the answer follows; its tail matters */
    size_t n_prompt;
    const ct_str *stop; /* as the request has them */
    size_t n_stop;
    bool stop_include;
    uint32_t min_tokens;
} ct_answer_options;

ct_status ct_answer_create(ct_answer **out, const ct_answer_options *how, ct_error *err);
void ct_answer_destroy(ct_answer *a); /* NULL is fine */

/* Whether the request has to leave the stop strings to the answer: set n_stop to 0. */
static inline bool ct_answer_owns_stop(const ct_answer_options *how)
{
    return how->chat && how->n_stop;
}

/* Takes one CT_REPLY_TOKEN.  Events are as in text/output.h, and of content only what no
 * stop string can take back.  After ct_answer_stopped tokens are passed over. */
ct_status ct_answer_token(ct_answer *a, const ct_reply *reply, ct_event_fn *fn, void *ctx,
                          ct_error *err);
/* Takes the CT_REPLY_CHOICE: the rest of the events. */
ct_status ct_answer_end(ct_answer *a, const ct_reply *reply, ct_event_fn *fn, void *ctx,
                        ct_error *err);

bool ct_answer_stopped(const ct_answer *a); /* a stop string was found in the content */
/* Bytes of the text taken that a stop string cut off, itself included unless kept. */
size_t ct_answer_cut_bytes(const ct_answer *a);
/* After the end: "stop", "length", "tool_calls", "cancelled", "deadline", "error". */
const char *ct_answer_finish_reason(const ct_answer *a);
uint32_t ct_answer_n_tokens(const ct_answer *a); /* taken, those passed over left out */
uint64_t ct_answer_reasoning_tokens(const ct_answer *a);

#endif
