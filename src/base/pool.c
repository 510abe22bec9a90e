#include "base/pool.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define MAX_THREADS 256

typedef struct worker {
    ct_pool *pool;
    pthread_t thread;
    unsigned index;
} worker;

struct ct_pool {
    unsigned n_threads; /* the caller of run() included */
    worker *workers;    /* [n_threads - 1] */
    pthread_mutex_t lock;
    pthread_cond_t start, done;
    /* Guarded by lock. */
    unsigned long round; /* of run(); workers wait for it to change */
    unsigned busy;       /* workers still in the current round */
    bool quit;
    /* The current loop: written under lock before the round starts. */
    ct_pool_fn *fn;
    void *ctx;
    size_t n_items;
    atomic_size_t next; /* relaxed: the lock orders the results */
};

static void pool_work(ct_pool *p, unsigned thread)
{
    size_t i;

    while ((i = atomic_fetch_add_explicit(&p->next, 1, memory_order_relaxed)) < p->n_items)
        p->fn(p->ctx, i, thread);
}

static void *worker_main(void *arg)
{
    worker *w = arg;
    ct_pool *p = w->pool;
    unsigned long seen = 0;

    pthread_mutex_lock(&p->lock);
    for (;;) {
        while (p->round == seen && !p->quit)
            pthread_cond_wait(&p->start, &p->lock);
        if (p->quit)
            break;
        seen = p->round;
        pthread_mutex_unlock(&p->lock);
        pool_work(p, w->index);
        pthread_mutex_lock(&p->lock);
        if (--p->busy == 0)
            pthread_cond_signal(&p->done);
    }
    pthread_mutex_unlock(&p->lock);
    return NULL;
}

static unsigned cpus_allowed(void)
{
    cpu_set_t set;
    int n = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;

    return n < 1 ? 1 : n > MAX_THREADS ? MAX_THREADS : (unsigned)n;
}

ct_status ct_pool_create(ct_pool **out, unsigned n_threads, ct_error *err)
{
    ct_pool *p;
    int rc;

    if (n_threads == 0)
        n_threads = cpus_allowed();
    if (n_threads > MAX_THREADS)
        return ct_fail(err, CT_EINVAL, "%u threads asked for, at most %d are served", n_threads,
                       MAX_THREADS);
    p = calloc(1, sizeof *p);
    if (!p)
        return ct_fail(err, CT_ELIMIT, "out of memory for the thread pool");
    p->workers = calloc(n_threads, sizeof *p->workers);
    if (!p->workers) {
        free(p);
        return ct_fail(err, CT_ELIMIT, "out of memory for %u threads", n_threads);
    }
    pthread_mutex_init(&p->lock, NULL);
    pthread_cond_init(&p->start, NULL);
    pthread_cond_init(&p->done, NULL);
    for (p->n_threads = 1; p->n_threads < n_threads; p->n_threads++) {
        worker *w = &p->workers[p->n_threads - 1];

        *w = (worker){.pool = p, .index = p->n_threads};
        rc = pthread_create(&w->thread, NULL, worker_main, w);
        if (rc) {
            unsigned made = p->n_threads;

            ct_pool_destroy(p);
            return ct_fail(err, CT_ELIMIT, "thread %u of %u: %s", made + 1, n_threads,
                           strerror(rc));
        }
    }
    *out = p;
    return CT_OK;
}

void ct_pool_destroy(ct_pool *p)
{
    if (!p)
        return;
    pthread_mutex_lock(&p->lock);
    p->quit = true;
    pthread_cond_broadcast(&p->start);
    pthread_mutex_unlock(&p->lock);
    for (unsigned i = 0; i + 1 < p->n_threads; i++)
        pthread_join(p->workers[i].thread, NULL);
    pthread_cond_destroy(&p->done);
    pthread_cond_destroy(&p->start);
    pthread_mutex_destroy(&p->lock);
    free(p->workers);
    free(p);
}

unsigned ct_pool_threads(const ct_pool *p)
{
    return p->n_threads;
}

void ct_pool_run(ct_pool *p, size_t n_items, ct_pool_fn *fn, void *ctx)
{
    if (n_items == 0)
        return;
    if (p->n_threads == 1 || n_items == 1) {
        for (size_t i = 0; i < n_items; i++)
            fn(ctx, i, 0);
        return;
    }
    pthread_mutex_lock(&p->lock);
    p->fn = fn;
    p->ctx = ctx;
    p->n_items = n_items;
    atomic_store_explicit(&p->next, 0, memory_order_relaxed);
    p->busy = p->n_threads - 1;
    p->round++;
    pthread_cond_broadcast(&p->start);
    pthread_mutex_unlock(&p->lock);
    pool_work(p, 0);
    pthread_mutex_lock(&p->lock);
    while (p->busy)
        pthread_cond_wait(&p->done, &p->lock);
    pthread_mutex_unlock(&p->lock);
}
