/* base/pool: every item exactly once, whatever the number of threads. */
#include "support.h"

#include <stdatomic.h>

#include "base/pool.h"

#define N_ITEMS 5000

typedef struct count {
    atomic_int done[N_ITEMS];
    unsigned n_threads;
} count;

static void do_item(void *ctx, size_t item, unsigned thread)
{
    count *c = ctx;

    if (thread >= c->n_threads)
        atomic_fetch_add(&c->done[item], 100);
    atomic_fetch_add(&c->done[item], 1);
}

static void every_item_is_done_once(void **state)
{
    static const unsigned threads[] = {1, 2, 3, 16};
    static const size_t lens[] = {0, 1, 2, 3, 17, N_ITEMS};

    (void)state;
    for (size_t t = 0; t < sizeof threads / sizeof *threads; t++) {
        ct_pool *p;
        ct_error err;

        test_ok(ct_pool_create(&p, threads[t], &err), &err);
        assert_int_equal(ct_pool_threads(p), threads[t]);
        for (size_t l = 0; l < sizeof lens / sizeof *lens; l++)
            for (int again = 0; again < 20; again++) {
                static count c;

                for (size_t i = 0; i < N_ITEMS; i++)
                    atomic_store(&c.done[i], 0);
                c.n_threads = threads[t];
                ct_pool_run(p, lens[l], do_item, &c);
                for (size_t i = 0; i < N_ITEMS; i++)
                    assert_int_equal(atomic_load(&c.done[i]), i < lens[l]);
            }
        ct_pool_destroy(p);
    }
}

static void the_number_of_threads_is_bounded(void **state)
{
    ct_pool *p;
    ct_error err;

    (void)state;
    assert_int_equal(ct_pool_create(&p, 100000, &err), CT_EINVAL);
    assert_string_equal(err.text, "100000 threads asked for, at most 256 are served");
    test_ok(ct_pool_create(&p, 0, &err), &err);
    assert_true(ct_pool_threads(p) >= 1);
    ct_pool_destroy(p);
    ct_pool_destroy(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_item_is_done_once),
        cmocka_unit_test(the_number_of_threads_is_bounded),
    };

    return cmocka_run_group_tests_name("pool", tests, NULL, NULL);
}
