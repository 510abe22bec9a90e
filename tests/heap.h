/* The heap as the library sees it: counted, and made to fail at will.  A test that includes
 * this is linked with the linker's --wrap of the four functions (see the Makefile). */
#ifndef CT_TESTS_HEAP_H
#define CT_TESTS_HEAP_H

#include <limits.h>
#include <stdatomic.h>
#include <stddef.h>

void *__real_malloc(size_t n);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *p, size_t n);
void __real_free(void *p);
void *__wrap_malloc(size_t n);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *p, size_t n);
void __wrap_free(void *p);

static atomic_long heap_live;                /* allocations not freed */
static atomic_long heap_calls;               /* that asked for memory */
static atomic_long heap_good_for = LONG_MAX; /* so many more succeed */

static int heap_refuses(void)
{
    atomic_fetch_add(&heap_calls, 1);
    return atomic_fetch_sub(&heap_good_for, 1) <= 0;
}

void *__wrap_malloc(size_t n)
{
    void *p = heap_refuses() ? NULL : __real_malloc(n);

    heap_live += p != NULL;
    return p;
}

void *__wrap_calloc(size_t n, size_t size)
{
    void *p = heap_refuses() ? NULL : __real_calloc(n, size);

    heap_live += p != NULL;
    return p;
}

void *__wrap_realloc(void *p, size_t n)
{
    void *q = heap_refuses() ? NULL : __real_realloc(p, n);

    heap_live += !p && q;
    return q;
}

void __wrap_free(void *p)
{
    heap_live -= p != NULL;
    __real_free(p);
}

static inline void heap_fail_after(long n)
{
    heap_good_for = n;
}

static inline void heap_never_fails(void)
{
    heap_good_for = LONG_MAX;
}

#endif
