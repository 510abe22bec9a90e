#include "kv/pages.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

ct_status ct_pages_init(ct_pages *p, uint32_t n, ct_error *err)
{
    *p = (ct_pages){.n = n, .n_free = n};
    p->free = calloc((size_t)n + 1, sizeof *p->free);
    p->users = calloc((size_t)n + 1, sizeof *p->users);
    p->held = calloc((size_t)n + 1, sizeof *p->held);
    if (!p->free || !p->users || !p->held) {
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
    free(p->users);
    free(p->held);
    *p = (ct_pages){0};
}

static bool is_free(const ct_pages *p, uint32_t page)
{
    assert(page < p->n);
    return p->users[page] == 0 && !p->held[page];
}

static void give_back(ct_pages *p, uint32_t page)
{
    assert(is_free(p, page) && p->n_free < p->n);
    p->free[p->n_free++] = page;
}

uint32_t ct_pages_take(ct_pages *p)
{
    uint32_t page;

    if (p->n_free == 0)
        return CT_PAGE_NONE;
    page = p->free[--p->n_free];
    assert(is_free(p, page));
    p->users[page] = 1;
    return page;
}

void ct_pages_share(ct_pages *p, uint32_t page)
{
    assert(!is_free(p, page));
    if (p->users[page]++ == 0)
        p->n_kept--;
}

void ct_pages_put(ct_pages *p, uint32_t page)
{
    assert(page < p->n && p->users[page]);
    if (--p->users[page])
        return;
    if (p->held[page])
        p->n_kept++;
    else
        give_back(p, page);
}

void ct_pages_hold(ct_pages *p, uint32_t page)
{
    assert(page < p->n && p->users[page] && !p->held[page]);
    p->held[page] = true;
}

void ct_pages_drop(ct_pages *p, uint32_t page)
{
    assert(page < p->n && p->held[page]);
    p->held[page] = false;
    if (p->users[page])
        return;
    p->n_kept--;
    give_back(p, page);
}

bool ct_pages_consistent(const ct_pages *p, const uint32_t *users, uint32_t *seen)
{
    uint32_t n_free = 0, n_kept = 0;

    memset(seen, 0, p->n * sizeof *seen);
    for (uint32_t i = 0; i < p->n_free; i++)
        if (p->free[i] >= p->n || seen[p->free[i]]++ || !is_free(p, p->free[i]))
            return false;
    for (uint32_t i = 0; i < p->n; i++) {
        n_free += is_free(p, i);
        n_kept += p->held[i] && p->users[i] == 0;
        if (p->users[i] != users[i])
            return false;
    }
    return n_free == p->n_free && n_kept == p->n_kept;
}
