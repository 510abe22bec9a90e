#include "cli/cli.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

volatile sig_atomic_t ct_cli_stop;

/* A path, an argument or a template's words may hold anything; a message is one line. */
static void print_line(const char *text)
{
    fputs("carat: ", stderr);
    for (; *text; text++) {
        unsigned char c = (unsigned char)*text;

        if (c == '\n')
            fputs("\\n", stderr);
        else if (c < 0x20 || c == 0x7f)
            fprintf(stderr, "\\x%02x", c);
        else
            fputc(c, stderr);
    }
    fputc('\n', stderr);
}

int ct_cli_fail(const ct_error *err)
{
    print_line(err->text);
    return CT_EXIT_ERROR;
}

int ct_cli_usage(const char *fmt, ...)
{
    char text[CT_ERROR_BYTES];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    print_line(text);
    return CT_EXIT_USAGE;
}

static void on_signal(int signal_number)
{
    (void)signal_number;
    ct_cli_stop = 1;
}

/* Weights are mapped: a file that is cut while in use ends in SIGBUS, which without
 * this would look like a bug of carat's. */
static void on_bus_error(int signal_number)
{
    static const char text[] = "carat: a mapped model file was cut short while in use, or its "
                               "disk failed (SIGBUS)\n";

    (void)signal_number;
    (void)!write(STDERR_FILENO, text, sizeof text - 1);
    _exit(CT_EXIT_ERROR);
}

void ct_cli_catch_signals(void)
{
    /* SA_RESETHAND: a second ^C ends the process at once.  The others may be sent twice in
     * a row, to the process and to its group. */
    struct sigaction interrupt = {.sa_handler = on_signal, .sa_flags = (int)SA_RESETHAND};
    struct sigaction end = {.sa_handler = on_signal}, ignore = {.sa_handler = SIG_IGN};
    struct sigaction bus = {.sa_handler = on_bus_error};

    sigaction(SIGINT, &interrupt, NULL);
    sigaction(SIGTERM, &end, NULL);
    sigaction(SIGHUP, &end, NULL);
    sigaction(SIGXFSZ, &ignore, NULL);
    sigaction(SIGBUS, &bus, NULL);
}

ct_status ct_cli_tokenizer(ct_tokenizer **out, const char *dir, const ct_model *model,
                           ct_error *err)
{
    ct_tokenizer *t;
    ct_status st = ct_tokenizer_open(&t, dir, err);

    if (st)
        return st;
    if (ct_tokenizer_vocab(t) > model->config.vocab) {
        st = ct_fail(err, CT_EFORMAT,
                     "%s: tokenizer.json has %" PRIu32 " ids, the model's vocab_size is %" PRIu32,
                     dir, ct_tokenizer_vocab(t), model->config.vocab);
        ct_tokenizer_destroy(t);
        return st;
    }
    *out = t;
    return CT_OK;
}

bool ct_cli_u64(const char *option, const char *text, uint64_t min, uint64_t max, uint64_t *out)
{
    char *end;
    unsigned long long v;

    errno = 0;
    v = strtoull(text, &end, 10);
    if (text[0] < '0' || text[0] > '9' || *end || errno || v < min || v > max) {
        ct_cli_usage("%s: '%s' is not a whole number from %" PRIu64 " to %" PRIu64, option, text,
                     min, max);
        return false;
    }
    *out = v;
    return true;
}

bool ct_cli_double(const char *option, const char *text, double min, double max, double *out)
{
    char *end;
    double v;

    errno = 0;
    v = strtod(text, &end);
    if (end == text || *end || errno || !(v >= min && v <= max)) {
        ct_cli_usage("%s: '%s' is not a number from %g to %g", option, text, min, max);
        return false;
    }
    *out = v;
    return true;
}

ct_status ct_cli_flush(ct_error *err)
{
    if (fflush(stdout) != 0 || ferror(stdout))
        return ct_fail(err, CT_EIO, "standard output: %s",
                       errno ? strerror(errno) : "write failed");
    return CT_OK;
}

int ct_cli_end(void)
{
    static ct_error err;

    return ct_cli_flush(&err) ? ct_cli_fail(&err) : CT_EXIT_OK;
}
