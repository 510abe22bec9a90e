/* Counts the allocations of the whole program, libc's own among them, for tests that a
 * stretch of code makes none.  Include it in the one source file of a test. */
#ifndef CT_TESTS_ALLOC_COUNT_H
#define CT_TESTS_ALLOC_COUNT_H

#include <stddef.h>

static volatile size_t alloc_count;

#ifdef __SANITIZE_ADDRESS__
/* Of sanitizer/allocator_interface.h, which gcc does not install. */
int __sanitizer_install_malloc_and_free_hooks(void (*on_malloc)(const volatile void *, size_t),
                                              void (*on_free)(const volatile void *));

static void count_alloc(const volatile void *p, size_t n)
{
    (void)p;
    (void)n;
    alloc_count = alloc_count + 1;
}

static void count_free(const volatile void *p)
{
    (void)p;
}

static inline void alloc_count_start(void)
{
    static int installed;

    if (!installed)
        installed = __sanitizer_install_malloc_and_free_hooks(count_alloc, count_free);
    alloc_count = 0;
}
#else
/* glibc calls a malloc that the program defines; these names are the ones behind it. */
void *__libc_malloc(size_t n);
void *__libc_calloc(size_t n, size_t elem_bytes);
void *__libc_realloc(void *p, size_t n);
void *malloc(size_t n);
void *calloc(size_t n, size_t elem_bytes);
void *realloc(void *p, size_t n);

void *malloc(size_t n)
{
    alloc_count = alloc_count + 1;
    return __libc_malloc(n);
}

void *calloc(size_t n, size_t elem_bytes)
{
    alloc_count = alloc_count + 1;
    return __libc_calloc(n, elem_bytes);
}

void *realloc(void *p, size_t n)
{
    alloc_count = alloc_count + 1;
    return __libc_realloc(p, n);
}

static inline void alloc_count_start(void)
{
    alloc_count = 0;
}
#endif

#endif
