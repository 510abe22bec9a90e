/* Shared by the tests: finding the reference data, and lines of JSON. */
#ifndef CT_TESTS_SUPPORT_H
#define CT_TESTS_SUPPORT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h wants the four above first. */
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/status.h"

/* Path of a file of the reference data, which lives beside the project in ../shared or
 * where CARAT_SHARED says.  Skips the test, with a message, when it is not there.  The
 * result is valid until the next-but-seven call. */
static inline const char *test_shared(const char *relative)
{
    static char path[8][1024];
    static unsigned turn;
    char *p = path[turn++ % 8];
    const char *root = getenv("CARAT_SHARED");

    snprintf(p, sizeof path[0], "%s/%s", root ? root : "../shared", relative);
    if (access(p, R_OK) != 0) {
        print_message("skipped: %s is not here\n", p);
        skip();
    }
    return p;
}

/* Google's tokenizer.json, unpacked by the Makefile; skips the test without it. */
static inline const char *test_real_tokenizer(void)
{
    static const char path[] = "build/shared/tokenizer.json";

    if (access(path, R_OK) != 0) {
        print_message("skipped: %s is not here (made from ../shared by make)\n", path);
        skip();
    }
    return path;
}

/* Fails the test with the error's text unless st is CT_OK. */
static inline void test_ok(ct_status st, const ct_error *err)
{
    if (st)
        fail_msg("%s", err->text);
}

#endif
