/* Thread pool for data-parallel loops.  Created once; run() is called by one
 * thread at a time and returns when every item is done.
 *
 * Results must not depend on which thread does which item: the pool promises only
 * that each index in [0, n_items) is passed to fn exactly once. */
#ifndef CT_BASE_POOL_H
#define CT_BASE_POOL_H

#include "base/status.h"

#include <stddef.h>

typedef struct ct_pool ct_pool;
/* ctx: the caller's; item: index; thread: 0 … n_threads-1, for per-thread scratch. */
typedef void ct_pool_fn(void *ctx, size_t item, unsigned thread);

/* n_threads counts the calling thread; 0 means one for each CPU this process may use. */
ct_status ct_pool_create(ct_pool **out, unsigned n_threads, ct_error *err);
void ct_pool_destroy(ct_pool *p);
unsigned ct_pool_threads(const ct_pool *p);
void ct_pool_run(ct_pool *p, size_t n_items, ct_pool_fn *fn, void *ctx);

#endif
