/* Command lines: each command lists its options in a table. */
#ifndef CT_CLI_OPTIONS_H
#define CT_CLI_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum ct_option_kind {
    CT_OPTION_FLAG,   /* bool *out; takes no value */
    CT_OPTION_TEXT,   /* const char **out */
    CT_OPTION_U32,    /* uint32_t *out, from min to max */
    CT_OPTION_U64,    /* uint64_t *out */
    CT_OPTION_DOUBLE, /* double *out */
    CT_OPTION_LIST,   /* ct_option_list *out: each time one more */
    CT_OPTION_CHOICE, /* bool *out: false for the first of `choices`, true for the second */
} ct_option_kind;

#define CT_OPTION_LIST_MAX 16

typedef struct ct_option_list {
    const char *item[CT_OPTION_LIST_MAX];
    size_t n;
} ct_option_list;

typedef struct ct_option {
    const char *name;  /* "--temp", or "-m" */
    const char *alias; /* other spelling, or NULL */
    ct_option_kind kind;
    void *out;
    double min, max; /* of numbers; U64 takes any value up to UINT64_MAX */
    const char *choices[2];
    bool *given; /* set when the option was there; may be NULL */
    bool required;
} ct_option;

/* Rows shared by the commands that compute; s is a ct_session_options. */
#define CT_SESSION_OPTIONS(s)                                                                      \
    {"--mode", NULL, CT_OPTION_CHOICE, .out = &(s).round_bf16, .choices = {"f32", "bf16"}},        \
        {"--threads", NULL, CT_OPTION_U32, .out = &(s).n_threads, .min = 1, .max = 256},           \
    {                                                                                              \
        "--backend", NULL, CT_OPTION_TEXT, .out = &(s).backend                                     \
    }

/* Reads argv[1] on.  positional (may be NULL) takes the one argument without a dash.
 * Returns -1 to go on, or an exit status: --help printed `help`, or something was wrong
 * and has been said. */
int ct_cli_options(const ct_option *options, size_t n, const char **positional, const char *help,
                   int argc, char **argv);

#endif
