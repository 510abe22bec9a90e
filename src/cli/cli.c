#include "cli/cli.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MAX_LINE_BYTES ((size_t)1 << 30)

volatile sig_atomic_t ct_cli_stop;

int ct_cli_fail(const ct_error *err)
{
    fprintf(stderr, "carat: %s\n", err->text);
    return CT_EXIT_ERROR;
}

int ct_cli_usage(const char *fmt, ...)
{
    va_list ap;

    fputs("carat: ", stderr);
    va_start(ap, fmt);
    vfprintf(stderr, fmt, ap);
    va_end(ap);
    fputc('\n', stderr);
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
    struct sigaction bus = {.sa_handler = on_bus_error};
    /* SA_RESETHAND: a second ^C ends the process at once. */
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = (int)SA_RESETHAND};

    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    sigaction(SIGBUS, &bus, NULL);
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

bool ct_cli_line(FILE *in, ct_buf *line)
{
    bool any = false;
    int c;

    if (!line->cap_bytes)
        ct_buf_init(line, MAX_LINE_BYTES);
    ct_buf_clear(line);
    while ((c = getc_unlocked(in)) != EOF) {
        any = true;
        if (c == '\n')
            break;
        ct_buf_addc(line, (char)c);
    }
    return any && !line->failed;
}
