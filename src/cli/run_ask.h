/* A plain question as the chat template gets it. */
#ifndef CT_CLI_RUN_ASK_H
#define CT_CLI_RUN_ASK_H

#include "text/chat.h"

#define CT_RUN_MAX_PROMPT_BYTES ((size_t)64 << 20)

typedef struct ct_run_ask {
    ct_str prompt, system; /* system.p NULL: none */
    bool think;
} ct_run_ask;

/* Appends the rendered prompt. */
ct_status ct_run_ask_render(ct_buf *out, const ct_run_ask *ask, const ct_chat_template *t,
                            ct_arena *a, ct_error *err);

#endif
