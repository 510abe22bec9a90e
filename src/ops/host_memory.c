#include "ops/host_memory.h"

#include "base/checked.h"

#include <stdlib.h>
#include <string.h>

#define ALIGN 64 /* a cache line, and the widest vector */

struct ct_host_block {
    ct_host_block *next;
    void *room; /* from calloc */
};

/* Large blocks come from calloc as untouched zero pages: room that is never used costs
 * address space only. */
static void *block_take(ct_host_memory *m, size_t n_bytes)
{
    ct_host_block *block = malloc(sizeof *block);
    size_t total;

    if (!block)
        return NULL;
    block->room = ct_add_size(&total, n_bytes, ALIGN) ? calloc(1, total) : NULL;
    if (!block->room) {
        free(block);
        return NULL;
    }
    block->next = m->blocks;
    m->blocks = block;
    return (char *)block->room + (ALIGN - (uintptr_t)block->room % ALIGN);
}

ct_status ct_host_take(ct_host_memory *m, void *out, size_t n, size_t elem_bytes, ct_error *err)
{
    size_t n_bytes;
    void *room = NULL;

    if (ct_mul_size(&n_bytes, n, elem_bytes) && !m->metered)
        room = block_take(m, n_bytes);
    if (n > SIZE_MAX / elem_bytes || (!room && !m->metered))
        return ct_fail(err, CT_ELIMIT, "out of memory for a buffer of %zu elements of %zu bytes", n,
                       elem_bytes);
    m->bytes += n_bytes;
    memcpy(out, &room, sizeof room);
    return CT_OK;
}

void ct_host_free_all(ct_host_memory *m)
{
    while (m->blocks) {
        ct_host_block *block = m->blocks;

        m->blocks = block->next;
        free(block->room);
        free(block);
    }
}
