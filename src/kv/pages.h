/* Fixed pool of KV pages.  Sized once at start and never grown.  A page is named by
 * its index, which means the same page in every layer of a family.  It is used by the
 * tables of live sequences, held by the prefix cache, both, or free.  Engine thread
 * only. */
#ifndef CT_KV_PAGES_H
#define CT_KV_PAGES_H

#include "base/status.h"
#include "ops/ops.h"

typedef struct ct_pages {
    uint32_t n, n_free;
    uint32_t n_kept; /* held and in no table */
    uint32_t *free;  /* stack of free pages; owned */
    uint32_t *users; /* [n] tables that name the page; owned */
    bool *held;      /* [n] by the prefix cache; owned */
} ct_pages;

ct_status ct_pages_init(ct_pages *p, uint32_t n, ct_error *err);
void ct_pages_deinit(ct_pages *p);

/* Takes a free page for one table, or CT_PAGE_NONE: an empty pool is ordinary, hence no
 * error. */
uint32_t ct_pages_take(ct_pages *p);
/* One more table names a page that is not free. */
void ct_pages_share(ct_pages *p, uint32_t page);
/* One table less. */
void ct_pages_put(ct_pages *p, uint32_t page);
/* The cache holds a page that a table names. */
void ct_pages_hold(ct_pages *p, uint32_t page);
/* And lets it go. */
void ct_pages_drop(ct_pages *p, uint32_t page);

/* Whether the counts agree with each other and with users[n], counted elsewhere.
 * seen[n] is working memory. */
bool ct_pages_consistent(const ct_pages *p, const uint32_t *users, uint32_t *seen);

#endif
