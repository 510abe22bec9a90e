/* Pages of keys and values: bounded windows, release, reuse, tables. */
#include "support.h"

#include "base/checked.h"
#include "base/pool.h"
#include "kv/kv.h"
#include "kv/pages.h"
#include "ops/ref/ref.h"

#include <string.h>

static ct_error err;

/* One sliding layer with a window of 10, then a global one. */
static const ct_config config = {
    .n_layers = 2,
    .n_heads = 2,
    .n_kv_sliding = 2,
    .n_kv_global = 1,
    .hd_sliding = 2,
    .hd_global = 4,
    .window = 10,
    .is_global = {false, true},
};

typedef struct rig {
    ct_pool *pool;
    ct_backend *b;
    ct_kv *kv;
} rig;

static rig open_rig(ct_kv_shape shape)
{
    rig r;

    test_ok(ct_pool_create(&r.pool, 1, &err), &err);
    test_ok(ct_ref_create(&r.b, CT_REF_F32, r.pool, &err), &err);
    test_ok(ct_kv_create(&r.kv, &config, &shape, r.b, &err), &err);
    return r;
}

static void close_rig(rig *r)
{
    ct_kv_destroy(r->kv);
    r->b->ops->destroy(r->b);
    ct_pool_destroy(r->pool);
}

static void admit(const rig *r, uint32_t seq, uint32_t n_tokens)
{
    uint32_t n_cached;

    assert_int_equal(
        ct_kv_admit(r->kv, seq, &(ct_kv_claim){.n_tokens = n_tokens, .no_cache = true}, &n_cached),
        CT_KV_ADMITTED);
}

static ct_status extend(const rig *r, uint32_t seq, uint32_t n)
{
    static const uint32_t ids[1024];

    return ct_kv_extend(r->kv, seq, ids, n, &err);
}

static uint32_t page_at(const rig *r, uint32_t layer, uint32_t seq, uint32_t pos)
{
    const ct_kv_layer *kv = &ct_kv_layers(r->kv)[layer];

    return kv->pages[seq * kv->max_blocks + pos / kv->page_tokens];
}

/* Every position that a row from `first` to `last` may read is resident, in both layers. */
static void assert_readable(const rig *r, uint32_t seq, uint32_t first, uint32_t last)
{
    for (uint32_t pos = 0; pos <= last; pos++) {
        assert_true(page_at(r, 1, seq, pos) < ct_kv_layers(r->kv)[1].n_pages);
        if (pos + config.window > first)
            assert_true(page_at(r, 0, seq, pos) < ct_kv_layers(r->kv)[0].n_pages);
    }
}

static void pages_are_taken_once_and_put_back(void **state)
{
    ct_pages p;

    (void)state;
    test_ok(ct_pages_init(&p, 3, &err), &err);
    assert_int_equal(ct_pages_take(&p), 0);
    assert_int_equal(ct_pages_take(&p), 1);
    assert_int_equal(ct_pages_take(&p), 2);
    assert_int_equal(ct_pages_take(&p), CT_PAGE_NONE);
    ct_pages_put(&p, 1);
    assert_int_equal(p.n_free, 1);
    assert_int_equal(ct_pages_take(&p), 1);
    ct_pages_deinit(&p);
}

static void layers_have_the_geometry_of_their_kind(void **state)
{
    rig r =
        open_rig((ct_kv_shape){.n_seqs = 3, .seq_tokens = 100, .step_tokens = 5, .page_tokens = 4});
    const ct_kv_layer *kv = ct_kv_layers(r.kv);

    (void)state;
    assert_int_equal(kv[0].window, 10);
    assert_int_equal(kv[0].kv_heads, 2);
    assert_int_equal(kv[0].head_dim, 2);
    assert_int_equal(kv[1].window, 0);
    assert_int_equal(kv[1].kv_heads, 1);
    assert_int_equal(kv[1].head_dim, 4);
    assert_int_equal(kv[1].max_blocks, 25);
    assert_int_equal(kv[1].n_pages, 75);
    /* 9 keys before a page: 3 pages of 4.  5 of a step that begins anywhere in one: 2. */
    assert_int_equal(kv[0].n_pages, 3 * 5);
    close_rig(&r);
}

/* Walks a sequence to its end in steps of `step`; the most sliding pages ever held. */
static uint32_t walk(const rig *r, uint32_t seq, uint32_t step, uint32_t end)
{
    uint32_t most = 0;

    for (uint32_t at = 0; at < end; at += step) {
        ct_kv_usage u;

        step = step < end - at ? step : end - at;
        test_ok(extend(r, seq, step), &err);
        assert_int_equal(ct_kv_length(r->kv, seq), at + step);
        assert_readable(r, seq, at, at + step - 1);
        assert_true(ct_kv_consistent(r->kv));
        u = ct_kv_used(r->kv);
        most = u.n_sliding - u.sliding_free > most ? u.n_sliding - u.sliding_free : most;
    }
    return most;
}

static void sliding_pages_are_bounded_by_window_and_step(void **state)
{
    (void)state;
    for (uint32_t page_tokens = 1; page_tokens <= 12; page_tokens++)
        for (uint32_t step = 1; step <= 13; step++) {
            rig r = open_rig((ct_kv_shape){
                .n_seqs = 1, .seq_tokens = 97, .step_tokens = step, .page_tokens = page_tokens});
            uint32_t most;

            admit(&r, 0, 97);
            most = walk(&r, 0, step, 97);

            assert_true(most <= ct_kv_used(r.kv).n_sliding);
            assert_true(most <= (9 + page_tokens - 1) / page_tokens +
                                    (step + 2 * (page_tokens - 1)) / page_tokens);
            close_rig(&r);
        }
}

static void blocks_behind_the_window_leave_the_table(void **state)
{
    rig r =
        open_rig((ct_kv_shape){.n_seqs = 1, .seq_tokens = 64, .step_tokens = 1, .page_tokens = 4});

    (void)state;
    admit(&r, 0, 64);
    /* Rows at 12 … 15 see 3 … 15: the block of 0 … 3 is still read. */
    walk(&r, 0, 1, 16);
    assert_true(page_at(&r, 0, 0, 0) != CT_PAGE_NONE);
    test_ok(extend(&r, 0, 1), &err); /* the row at 16 sees 7 … 16 */
    assert_int_equal(page_at(&r, 0, 0, 0), CT_PAGE_NONE);
    assert_true(page_at(&r, 0, 0, 4) != CT_PAGE_NONE);
    assert_true(page_at(&r, 1, 0, 0) != CT_PAGE_NONE); /* global layers let nothing go */
    close_rig(&r);
}

static void sequences_share_no_page_and_reset_frees_them(void **state)
{
    rig r =
        open_rig((ct_kv_shape){.n_seqs = 2, .seq_tokens = 40, .step_tokens = 40, .page_tokens = 4});
    ct_kv_usage u;

    (void)state;
    for (unsigned round = 0; round < 3; round++) {
        admit(&r, 0, 40);
        admit(&r, 1, 40);
        walk(&r, 0, 7, 40);
        walk(&r, 1, 3, 40);
        ct_kv_release(r.kv, 0);
        assert_true(ct_kv_consistent(r.kv));
        assert_int_equal(ct_kv_length(r.kv, 0), 0);
        assert_readable(&r, 1, 39, 39);
        ct_kv_release(r.kv, 1);
        u = ct_kv_used(r.kv);
        assert_int_equal(u.sliding_free, u.n_sliding);
        assert_int_equal(u.global_free, u.n_global);
    }
    close_rig(&r);
}

static void what_does_not_fit_is_refused_with_both_numbers(void **state)
{
    rig r =
        open_rig((ct_kv_shape){.n_seqs = 1, .seq_tokens = 20, .step_tokens = 8, .page_tokens = 4});

    (void)state;
    admit(&r, 0, 20);
    assert_int_equal(extend(&r, 0, 9), CT_EINVAL);
    assert_non_null(strstr(err.text, "9"));
    assert_non_null(strstr(err.text, "8"));
    walk(&r, 0, 8, 16);
    assert_int_equal(extend(&r, 0, 5), CT_ELIMIT);
    assert_non_null(strstr(err.text, "20"));
    assert_int_equal(ct_kv_length(r.kv, 0), 16);
    test_ok(extend(&r, 0, 4), &err);
    close_rig(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pages_are_taken_once_and_put_back),
        cmocka_unit_test(layers_have_the_geometry_of_their_kind),
        cmocka_unit_test(sliding_pages_are_bounded_by_window_and_step),
        cmocka_unit_test(blocks_behind_the_window_leave_the_table),
        cmocka_unit_test(sequences_share_no_page_and_reset_frees_them),
        cmocka_unit_test(what_does_not_fit_is_refused_with_both_numbers),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
