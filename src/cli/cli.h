/* What the subcommands share.  Only this folder prints or exits. */
#ifndef CT_CLI_CLI_H
#define CT_CLI_CLI_H

#include "base/status.h"
#include "base/str.h"

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

enum { CT_EXIT_OK = 0, CT_EXIT_ERROR = 1, CT_EXIT_USAGE = 2 };

/* argv[0] is the subcommand's name.  Returns an exit status. */
typedef int ct_cmd_fn(int argc, char **argv);

ct_cmd_fn ct_cmd_run, ct_cmd_tokenize, ct_cmd_render, ct_cmd_logits, ct_cmd_inspect, ct_cmd_eval;

/* One line on stderr, "carat: …"; returns CT_EXIT_ERROR. */
int ct_cli_fail(const ct_error *err);
/* The same for a wrong command line; returns CT_EXIT_USAGE. */
int ct_cli_usage(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* Set by ^C (SIGINT) and SIGTERM: long work looks at it and stops cleanly. */
extern volatile sig_atomic_t ct_cli_stop;
void ct_cli_catch_signals(void); /* also names the cause of a SIGBUS on a mapped file */

/* Strict parse of an option's value; false after printing a usage error. */
bool ct_cli_u64(const char *option, const char *text, uint64_t min, uint64_t max, uint64_t *out);
bool ct_cli_double(const char *option, const char *text, double min, double max, double *out);

/* Reads the next line of any length, without its newline; false at the end of input. */
bool ct_cli_line(FILE *in, ct_buf *line);

#endif
