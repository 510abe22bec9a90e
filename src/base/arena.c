#include "base/arena.h"

#include "base/checked.h"

#include <assert.h>
#include <errno.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>

ct_status ct_arena_init(ct_arena *a, size_t cap_bytes, ct_error *err)
{
    void *base = mmap(NULL, cap_bytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

    if (base == MAP_FAILED)
        return ct_fail(err, CT_ELIMIT, "arena of %zu bytes: %s", cap_bytes, strerror(errno));
    *a = (ct_arena){.base = base, .cap_bytes = cap_bytes};
    return CT_OK;
}

void ct_arena_deinit(ct_arena *a)
{
    if (a->base)
        munmap(a->base, a->cap_bytes);
    *a = (ct_arena){0};
}

void ct_arena_prefer_huge(ct_arena *a)
{
    if (a->base)
        (void)madvise(a->base, a->cap_bytes, MADV_HUGEPAGE);
}

void *ct_arena_alloc(ct_arena *a, size_t n_bytes, size_t align)
{
    size_t start, end;

    assert(align && !(align & (align - 1)));
    if (!ct_add_size(&start, a->used_bytes, align - 1))
        return NULL;
    start &= ~(align - 1);
    if (!ct_add_size(&end, start, n_bytes) || end > a->cap_bytes)
        return NULL;
    a->used_bytes = end;
    return a->base + start;
}

void *ct_arena_zalloc(ct_arena *a, size_t n, size_t elem_bytes)
{
    size_t n_bytes;
    void *p;

    if (!ct_mul_size(&n_bytes, n, elem_bytes))
        return NULL;
    p = ct_arena_alloc(a, n_bytes, _Alignof(max_align_t));
    /* Rewound memory is dirty, so fresh pages being zero is not enough. */
    return p ? memset(p, 0, n_bytes) : NULL;
}

char *ct_arena_copy(ct_arena *a, const void *bytes, size_t n)
{
    size_t n_bytes;
    char *p;

    if (!ct_add_size(&n_bytes, n, 1))
        return NULL;
    p = ct_arena_alloc(a, n_bytes, 1);
    if (!p)
        return NULL;
    if (n)
        memcpy(p, bytes, n);
    p[n] = '\0';
    return p;
}

ct_arena_mark ct_arena_save(const ct_arena *a)
{
    return a->used_bytes;
}

void ct_arena_rewind(ct_arena *a, ct_arena_mark mark)
{
    assert(mark <= a->used_bytes);
    a->used_bytes = mark;
}
