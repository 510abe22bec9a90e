/* Status codes and the error object.
 *
 * A function that can meet wrong input or a failing system returns ct_status and
 * fills its ct_error once, at the place that knows the path, the name and the
 * numbers that disagree.  Callers pass the error on; they may prefix it.
 * Thread-safe: an error object belongs to its caller. */
#ifndef CT_BASE_STATUS_H
#define CT_BASE_STATUS_H

#include <stdarg.h>
#include <stddef.h>

typedef enum ct_status {
    CT_OK = 0,
    CT_EIO,          /* the system refused: open, read, map, write */
    CT_EFORMAT,      /* a file or message is malformed or contradicts itself */
    CT_EUNSUPPORTED, /* well-formed, but not something carat serves */
    CT_EINVAL,       /* an argument of the caller (flag, request field) is wrong */
    CT_ELIMIT,       /* a named bound or the memory plan is exceeded */
    CT_ECANCELLED,   /* the caller asked to stop */
} ct_status;

#ifdef __cplusplus /* nvcc compiles C++ */
extern "C" {
#endif

/* Long enough for a manifest report that lists dozens of tensors. */
#define CT_ERROR_BYTES 8192

typedef struct ct_error {
    ct_status status;
    char text[CT_ERROR_BYTES]; /* NUL-terminated; truncated with "..." when too long */
} ct_error;

/* Fills err (which may be NULL) and returns status, so that callers can write
 * `return ct_fail(err, CT_EIO, "%s: %s", path, strerror(errno));`. */
ct_status ct_fail(ct_error *err, ct_status status, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
ct_status ct_failv(ct_error *err, ct_status status, const char *fmt, va_list ap)
    __attribute__((format(printf, 3, 0)));

/* Puts text before the message that err already holds: "layer 3: " + old. */
void ct_error_prefix(ct_error *err, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

#ifdef __cplusplus
}
#endif

#endif
