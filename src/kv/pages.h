/* Fixed pool of KV pages.  Sized once at start and never grown.  A page is named by
 * its index, which means the same page in every layer of a family.  Engine thread
 * only. */
#ifndef CT_KV_PAGES_H
#define CT_KV_PAGES_H

#include "base/status.h"
#include "ops/ops.h"

typedef struct ct_pages {
    uint32_t n, n_free;
    uint32_t *free; /* stack of free pages; owned */
    bool *taken;    /* [n], so that a page cannot be put back twice; owned */
} ct_pages;

ct_status ct_pages_init(ct_pages *p, uint32_t n, ct_error *err);
void ct_pages_deinit(ct_pages *p);

/* Takes a free page, or CT_PAGE_NONE: an empty pool is ordinary, hence no error. */
uint32_t ct_pages_take(ct_pages *p);
/* page must have been taken. */
void ct_pages_put(ct_pages *p, uint32_t page);

#endif
