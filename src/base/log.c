#include "base/log.h"

#include <stdarg.h>
#include <stdio.h>

#define LINE_BYTES 1024

static struct {
    ct_log_sink *fn;
    void *ctx;
    ct_log_level least;
} sink;

void ct_log_set_sink(ct_log_sink *fn, void *ctx, ct_log_level least)
{
    sink.fn = fn;
    sink.ctx = ctx;
    sink.least = least;
}

void ct_log(ct_log_level level, const char *fmt, ...)
{
    char line[LINE_BYTES];
    va_list ap;

    if (!sink.fn || level < sink.least)
        return;
    va_start(ap, fmt);
    vsnprintf(line, sizeof line, fmt, ap);
    va_end(ap);
    sink.fn(sink.ctx, level, line);
}
