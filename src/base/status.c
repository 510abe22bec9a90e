#include "base/status.h"

#include <stdio.h>
#include <string.h>

/* Marks a message that did not fit, so that nobody takes a cut list for a whole one. */
static void mark_cut(ct_error *err, int n)
{
    if (n >= (int)sizeof err->text)
        memcpy(err->text + sizeof err->text - 4, "...", 4);
}

ct_status ct_failv(ct_error *err, ct_status status, const char *fmt, va_list ap)
{
    if (err) {
        err->status = status;
        mark_cut(err, vsnprintf(err->text, sizeof err->text, fmt, ap));
    }
    return status;
}

ct_status ct_fail(ct_error *err, ct_status status, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    ct_failv(err, status, fmt, ap);
    va_end(ap);
    return status;
}

void ct_error_prefix(ct_error *err, const char *fmt, ...)
{
    char head[512];
    size_t n, len;
    va_list ap;

    if (!err)
        return;
    va_start(ap, fmt);
    vsnprintf(head, sizeof head, fmt, ap);
    va_end(ap);
    n = strlen(head);
    len = strlen(err->text);
    if (n + len >= sizeof err->text)
        len = sizeof err->text - 1 - n;
    memmove(err->text + n, err->text, len);
    memcpy(err->text, head, n);
    err->text[n + len] = '\0';
}
