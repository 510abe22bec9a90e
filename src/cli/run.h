/* What the two ways of `carat run` share: one prompt, and a prompt a line. */
#ifndef CT_CLI_RUN_H
#define CT_CLI_RUN_H

#include "cli/sampling_options.h"
#include "engine/engine.h"

typedef struct ct_run_options {
    const char *model, *prompt, *system, *ids, *template_file;
    const char *output; /* of --jsonl: -o */
    bool raw, think, json, jsonl;
    uint32_t max_new;
    ct_sampling_args sampling;
    ct_engine_options engine;
} ct_run_options;

/* Standard input to standard output or o->output, a line each; an exit status. */
int ct_run_jsonl(ct_run_options *o);

#endif
