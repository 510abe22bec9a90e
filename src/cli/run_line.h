/* One line of input of `carat run --jsonl`: a request, as docs/run-jsonl.md has it. */
#ifndef CT_CLI_RUN_LINE_H
#define CT_CLI_RUN_LINE_H

#include "cli/run.h"
#include "text/chat.h"
#include "text/tools.h"

/* All-zero is fine to deinit; whatever a field points to lives in the arena, or is the
 * options'. */
typedef struct ct_run_line {
    ct_arena arena;
    ct_str id; /* p NULL: none */
    bool chat;
    ct_tools tools;
    ct_ids prompt;
    ct_str stop[CT_OPTION_LIST_MAX];
    size_t n_stop;
    ct_sampling sampling;
    uint32_t max_new;
} ct_run_line;

typedef struct ct_run_line_context {
    const ct_run_options *opt; /* its sampling complete; what a line leaves open */
    const ct_tokenizer *tokenizer;
    const ct_chat_template *chat;
    uint64_t index; /* of the line; added to the options' seed */
} ct_run_line_context;

/* On an error the line's id is still there if it could be read. */
ct_status ct_run_line_read(ct_run_line *out, const ct_run_line_context *context, ct_str text,
                           ct_error *err);
void ct_run_line_deinit(ct_run_line *l);

#endif
