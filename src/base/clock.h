/* Monotonic seconds, for timings that are reported, never for results. */
#ifndef CT_BASE_CLOCK_H
#define CT_BASE_CLOCK_H

#include <time.h>

static inline double ct_now_s(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

#endif
