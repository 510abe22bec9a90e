/* One answer of `carat run`: what the engine's replies make of it, and its JSON. */
#ifndef CT_CLI_RUN_ANSWER_H
#define CT_CLI_RUN_ANSWER_H

#include "engine/answer.h"
#include "text/message.h"

typedef struct ct_run_answer {
    ct_ids ids;
    ct_buf text; /* so far, control tokens left out */
    ct_detok detok;
    ct_answer *reader;
    ct_message *message; /* with the chat template: what the answer is made of */
    size_t n_prompt;
    uint64_t seed;
    ct_finish finish;
    ct_usage usage;
    bool done;
} ct_run_answer;

/* how is used during the call, but for what ct_answer_create borrows. */
ct_status ct_run_answer_init(ct_run_answer *a, const ct_answer_options *how, uint64_t seed,
                             ct_error *err);
void ct_run_answer_deinit(ct_run_answer *a); /* fine on an all-zero one */

/* Takes a reply of the request; show (may be NULL) sees the events.  The error of a
 * request that failed is passed on. */
ct_status ct_run_answer_take(ct_run_answer *a, const ct_reply *reply, ct_event_fn *show, void *ctx,
                             ct_error *err);

/* Appends `"text": …, "ids": …, …, "timings": {…`, the last one open. */
void ct_run_answer_put(const ct_run_answer *a, ct_buf *json);

#endif
