/* What the subcommands share.  Only this folder prints or exits. */
#ifndef CT_CLI_CLI_H
#define CT_CLI_CLI_H

#include "base/status.h"
#include "base/str.h"
#include "model/model.h"
#include "text/tokenizer.h"

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

enum { CT_EXIT_OK = 0, CT_EXIT_ERROR = 1, CT_EXIT_USAGE = 2 };

/* argv[0] is the subcommand's name.  Returns an exit status. */
typedef int ct_cmd_fn(int argc, char **argv);

ct_cmd_fn ct_cmd_run, ct_cmd_tokenize, ct_cmd_render, ct_cmd_parse, ct_cmd_logits, ct_cmd_inspect,
    ct_cmd_eval, ct_cmd_plan;

/* One line on stderr, "carat: …", with control characters escaped; returns
 * CT_EXIT_ERROR. */
int ct_cli_fail(const ct_error *err);
/* The same for a wrong command line; returns CT_EXIT_USAGE. */
int ct_cli_usage(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* Set by ^C (SIGINT), SIGTERM and SIGHUP: long work looks at it and stops cleanly. */
extern volatile sig_atomic_t ct_cli_stop;
/* Also makes a file that grows past a limit an error of the write, and names the cause
 * of a SIGBUS on a mapped file.  Called once, by main. */
void ct_cli_catch_signals(void);

/* The tokenizer beside a model that is open.  Refuses one with more ids than the model
 * has embeddings: it belongs to another. */
ct_status ct_cli_tokenizer(ct_tokenizer **out, const char *dir, const ct_model *model,
                           ct_error *err);

/* Strict parse of an option's value; false after printing a usage error. */
bool ct_cli_u64(const char *option, const char *text, uint64_t min, uint64_t max, uint64_t *out);
bool ct_cli_double(const char *option, const char *text, double min, double max, double *out);

/* Whether everything printed has been written: a full disk must not look like success. */
ct_status ct_cli_flush(ct_error *err);
/* The same for a command that ends here: an exit status, after saying what is wrong. */
int ct_cli_end(void);

#endif
