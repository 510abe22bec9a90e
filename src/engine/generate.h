/* From a prompt to an answer, one token at a time. */
#ifndef CT_ENGINE_GENERATE_H
#define CT_ENGINE_GENERATE_H

#include "engine/sampler.h"
#include "engine/session.h"

#include <signal.h>

typedef enum ct_finish {
    CT_FINISH_STOP,     /* an eos or stop id */
    CT_FINISH_LENGTH,   /* max_new */
    CT_FINISH_CANCELLED /* the caller's callback or stop flag */
} ct_finish;

const char *ct_finish_name(ct_finish f); /* "stop", "length", "cancelled" */

/* Sees each token as it is chosen, stop id included.  false ends the answer. */
typedef bool ct_token_fn(void *ctx, uint32_t id);

typedef struct ct_generate_args {
    const uint32_t *prompt; /* [n_prompt], at least one id */
    uint32_t n_prompt;
    uint32_t max_new;
    ct_sampling sampling; /* its eos and stop ids end the answer */
    ct_token_fn *on_token;
    void *ctx;
    const volatile sig_atomic_t *stop; /* looked at between steps; may be NULL */
} ct_generate_args;

typedef struct ct_generate_result {
    ct_finish finish;
    uint32_t n_new;             /* stop id included */
    double prefill_s, decode_s; /* wall time */
} ct_generate_result;

/* The session must be empty and long enough for the prompt. */
ct_status ct_generate(ct_session *s, const ct_model *model, const ct_generate_args *args,
                      ct_generate_result *out, ct_error *err);

#endif
