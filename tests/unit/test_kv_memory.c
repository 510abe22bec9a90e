/* Memory of the KV stores: nothing after creation, nothing left by a creation that fails.
 * Sentence 21 of docs/kv.md. */
#include "kv_rig.h"

/* The allocator of the whole program, so that it can be counted and made to fail. */
#if defined(__SANITIZE_ADDRESS__)
#define REAL(name) __interceptor_##name
#else
#define REAL(name) __libc_##name
#endif
void *REAL(malloc)(size_t n);
void *REAL(calloc)(size_t n, size_t size);
void *REAL(realloc)(void *p, size_t n);

static unsigned long n_calls;
static unsigned long fails_from; /* the call that fails, and all after it; 0: none */

static bool fails(void)
{
    n_calls++;
    return fails_from && n_calls >= fails_from;
}

void *malloc(size_t n)
{
    return fails() ? NULL : REAL(malloc)(n);
}

void *calloc(size_t n, size_t size)
{
    return fails() ? NULL : REAL(calloc)(n, size);
}

void *realloc(void *p, size_t n)
{
    return fails() ? NULL : REAL(realloc)(p, n);
}

static const ct_kv_shape shape = {
    .n_seqs = 2, .seq_tokens = 80, .step_tokens = 9, .page_tokens = 4, .cache_bytes = 2000};

/* Leaks show in the sanitized run. */
static void creation_survives_the_failure_of_any_allocation(void **state)
{
    unsigned long n_failures = 0;
    ct_status st = CT_ELIMIT;
    ct_backend *b;
    ct_pool *pool;
    ct_error err;

    (void)state;
    test_ok(ct_pool_create(&pool, 1, &err), &err);
    for (unsigned long k = 1; st; k++) {
        ct_kv *kv = NULL;

        test_ok(ct_ref_create(&b, CT_REF_F32, pool, &err), &err);
        n_calls = 0;
        fails_from = k;
        st = ct_kv_create(&kv, &rig_config, &shape, b, &err);
        fails_from = 0;
        if (st) {
            n_failures++;
            assert_int_equal(st, CT_ELIMIT);
            assert_non_null(strstr(err.text, "memory"));
            assert_null(kv);
        }
        ct_kv_destroy(kv);
        b->ops->destroy(b);
    }
    ct_pool_destroy(pool);
    assert_true(n_failures > 10); /* tables, pools, cache and stores all allocate */
}

static void a_sequence_s_life_allocates_nothing(void **state)
{
    rig *r = rig_open(shape, 10);
    uint32_t ids[60], n_cached;
    ct_kv_claim claim = {.ids = ids, .n_ids = 50, .n_tokens = 60};

    (void)state;
    n_calls = 0;
    for (unsigned round = 0; round < 20; round++) {
        for (uint32_t i = 0; i < 60; i++)
            ids[i] = i < 30 ? i : round * 100 + i;
        assert_int_equal(rig_admit(r, 0, &claim, &n_cached), CT_KV_ADMITTED);
        rig_run(r, 0, 60, true);
        ct_kv_keep(r->kv, 0);
        rig_release(r, 0);
        assert_true(ct_kv_consistent(r->kv));
    }
    ct_kv_forget(r->kv);
    assert_int_equal(n_calls, 0);
    rig_close(r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(creation_survives_the_failure_of_any_allocation),
        cmocka_unit_test(a_sequence_s_life_allocates_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
