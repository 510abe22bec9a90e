#include "kv/pages.h"

#include <assert.h>
#include <stdlib.h>

ct_status ct_pages_init(ct_pages *p, uint32_t n, ct_error *err)
{
    *p = (ct_pages){.n = n, .n_free = n};
    p->free = calloc((size_t)n + 1, sizeof *p->free);
    p->taken = calloc((size_t)n + 1, sizeof *p->taken);
    if (!p->free || !p->taken) {
        ct_pages_deinit(p);
        return ct_fail(err, CT_ELIMIT, "out of memory for a pool of %u pages", n);
    }
    /* Page 0 lies on top, so that pages are first taken in ascending order. */
    for (uint32_t i = 0; i < n; i++)
        p->free[i] = n - 1 - i;
    return CT_OK;
}

void ct_pages_deinit(ct_pages *p)
{
    free(p->free);
    free(p->taken);
    *p = (ct_pages){0};
}

uint32_t ct_pages_take(ct_pages *p)
{
    uint32_t page;

    if (p->n_free == 0)
        return CT_PAGE_NONE;
    page = p->free[--p->n_free];
    assert(page < p->n && !p->taken[page]);
    p->taken[page] = true;
    return page;
}

void ct_pages_put(ct_pages *p, uint32_t page)
{
    assert(page < p->n && p->taken[page]);
    p->taken[page] = false;
    p->free[p->n_free++] = page;
}
