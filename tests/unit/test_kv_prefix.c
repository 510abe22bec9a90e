/* Reuse of pages between sequences.  Numbers are the sentences of docs/kv.md. */
#include "kv_rig.h"

#include "kv/prefix.h"

#define P 4 /* page_tokens; a window of 10 needs 3 pages before a boundary */

static ct_error err;

static rig *open_cache(uint64_t cache_bytes)
{
    return rig_open((ct_kv_shape){.n_seqs = 6,
                                  .seq_tokens = 80,
                                  .step_tokens = 80,
                                  .page_tokens = P,
                                  .cache_bytes = cache_bytes},
                    10);
}

/* ids[i] = first + i. */
static const uint32_t *count_from(uint32_t first, uint32_t n)
{
    static uint32_t ids[4][RIG_TOKENS];
    static unsigned turn;
    uint32_t *out = ids[turn++ % 4];

    for (uint32_t i = 0; i < n; i++)
        out[i] = first + i;
    return out;
}

static uint32_t admit_salted(rig *r, uint32_t seq, const uint32_t *ids, uint32_t n, uint64_t salt)
{
    uint32_t n_cached;
    const ct_kv_claim claim = {.ids = ids, .n_ids = n, .n_tokens = n + 8, .salt = salt};

    assert_int_equal(rig_admit(r, seq, &claim, &n_cached), CT_KV_ADMITTED);
    assert_true(ct_kv_consistent(r->kv));
    return n_cached;
}

static uint32_t admit(rig *r, uint32_t seq, const uint32_t *ids, uint32_t n)
{
    return admit_salted(r, seq, ids, n, 0);
}

/* Admitted, computed, kept and gone; how much was found. */
static uint32_t serve(rig *r, uint32_t seq, const uint32_t *ids, uint32_t n)
{
    uint32_t n_cached = admit(r, seq, ids, n);

    rig_run(r, seq, n, true);
    rig_check(r, seq);
    rig_release(r, seq);
    assert_true(ct_kv_consistent(r->kv));
    return n_cached;
}

/* 22, 23, 24, 25, 28 */
static void the_same_prompt_again_leaves_the_last_page_to_compute(void **state)
{
    (void)state;
    for (uint32_t n = 1; n <= 40; n++) {
        rig *r = open_cache(1 << 20);
        const uint32_t *ids = count_from(0, n);

        assert_int_equal(serve(r, 0, ids, n), 0);
        assert_int_equal(serve(r, 1, ids, n), (n - 1) / P * P);
        assert_int_equal(serve(r, 0, ids, n), (n - 1) / P * P);
        rig_close(r);
    }
}

/* 23: the window's sliding pages and no more. */
static void a_hit_attaches_the_window_before_it(void **state)
{
    rig *r = open_cache(1 << 20);
    const uint32_t *ids = count_from(0, 42);

    (void)state;
    serve(r, 0, ids, 42);
    assert_int_equal(admit(r, 1, ids, 42), 40);
    for (uint32_t pos = 0; pos < 40; pos += P) {
        assert_true(rig_page(r, RIG_GLOBAL, 1, pos) != CT_PAGE_NONE);
        assert_int_equal(rig_page(r, RIG_SLIDING, 1, pos) != CT_PAGE_NONE, pos >= 28);
    }
    rig_run(r, 1, 50, false);
    rig_check(r, 1);
    rig_close(r);
}

/* 25, 11, 13: kept while it lives, shared at once, and only in whole pages. */
static void live_sequences_share_full_pages(void **state)
{
    rig *r = open_cache(1 << 20);
    const uint32_t *ids = count_from(0, 22);
    ct_kv_usage u;

    (void)state;
    admit(r, 0, ids, 22);
    assert_int_equal(admit(r, 1, ids, 22), 0); /* nothing is found before it is kept */
    rig_run(r, 0, 22, true);
    assert_int_equal(admit(r, 2, ids, 22), 20);
    for (uint32_t pos = 0; pos < 20; pos += P)
        assert_int_equal(rig_page(r, RIG_GLOBAL, 2, pos), rig_page(r, RIG_GLOBAL, 0, pos));
    rig_run(r, 2, 30, false);
    assert_true(rig_page(r, RIG_GLOBAL, 2, 20) != rig_page(r, RIG_GLOBAL, 0, 20));
    rig_run(r, 0, 30, false);
    rig_check(r, 0);
    rig_check(r, 2);
    u = ct_kv_used(r->kv);
    assert_int_equal(u.global_kept, 0); /* 30: all in use */
    rig_release(r, 0);
    rig_check(r, 2);
    rig_close(r);
}

/* 26 */
static void a_block_computed_twice_is_held_once(void **state)
{
    rig *r = open_cache(1 << 20);
    const uint32_t *ids = count_from(0, 22);
    ct_kv_usage u;

    (void)state;
    admit(r, 0, ids, 22);
    admit(r, 1, ids, 22);
    rig_run(r, 0, 22, true);
    rig_run(r, 1, 22, true);
    assert_true(rig_page(r, RIG_GLOBAL, 0, 0) != rig_page(r, RIG_GLOBAL, 1, 0));
    rig_release(r, 0);
    rig_release(r, 1);
    u = ct_kv_used(r->kv);
    assert_int_equal(u.global_kept, 5);
    assert_int_equal(u.sliding_kept, 3);
    assert_int_equal(u.snapshots, 1);
    rig_close(r);
}

/* 27: a shared beginning of 24 tokens, then each its own. */
static void the_second_prompt_marks_the_branch_and_the_third_uses_it(void **state)
{
    rig *r = open_cache(1 << 20);
    uint32_t ids[3][60];

    (void)state;
    for (uint32_t i = 0; i < 3; i++)
        for (uint32_t j = 0; j < 60; j++)
            ids[i][j] = j < 26 ? j : 1000 * (i + 1) + j;
    assert_int_equal(serve(r, 0, ids[0], 60), 0);
    assert_int_equal(admit(r, 1, ids[1], 60), 0);
    assert_int_equal(ct_kv_next_boundary(r->kv, 1, 0), 24);
    assert_int_equal(ct_kv_next_boundary(r->kv, 1, 24), 56); /* 60 ends a page */
    assert_int_equal(ct_kv_next_boundary(r->kv, 1, 56), 60);
    rig_run(r, 1, 60, true);
    rig_release(r, 1);
    assert_int_equal(serve(r, 2, ids[2], 60), 24);
    rig_close(r);
}

/* 28 */
static void a_hint_asks_for_a_snapshot(void **state)
{
    rig *r = open_cache(1 << 20);
    const uint32_t *ids = count_from(0, 50);
    ct_kv_claim claim = {.ids = ids, .n_ids = 50, .n_tokens = 60, .hint = 27};
    uint32_t n_cached, other[50];

    (void)state;
    memcpy(other, ids, sizeof other);
    other[30] = 999;
    assert_int_equal(rig_admit(r, 0, &claim, &n_cached), CT_KV_ADMITTED);
    assert_int_equal(ct_kv_next_boundary(r->kv, 0, 0), 24);
    assert_int_equal(ct_kv_next_boundary(r->kv, 0, 24), 50);
    rig_run(r, 0, 50, true);
    assert_int_equal(admit(r, 1, other, 50), 24);
    rig_close(r);
}

/* 22, 29 */
static void salts_and_single_tokens_keep_prompts_apart(void **state)
{
    rig *r = open_cache(1 << 20);
    const uint32_t *ids = count_from(0, 22);
    uint32_t other[22];

    (void)state;
    serve(r, 0, ids, 22);
    assert_int_equal(admit_salted(r, 1, ids, 22, 1), 0);
    rig_run(r, 1, 22, true);
    assert_int_equal(admit_salted(r, 2, ids, 22, 1), 20);
    for (uint32_t i = 0; i < 21; i++) {
        memcpy(other, ids, sizeof other);
        other[i] = 999;
        assert_int_equal(admit(r, 3, other, 22), i < 20 ? 0 : 20);
        rig_release(r, 3);
    }
    rig_close(r);
}

/* 22: blocks whose hashes are equal and whose tokens, parent or salt are not. */
static void equal_hashes_do_not_make_equal_blocks(void **state)
{
    const uint32_t ids[2] = {7, 8};
    ct_pages global, sliding;
    ct_prefix p;
    uint32_t a, b;

    (void)state;
    test_ok(ct_pages_init(&global, 4, &err), &err);
    test_ok(ct_pages_init(&sliding, 4, &err), &err);
    test_ok(ct_prefix_init(&p, &global, &sliding, 1, 0, &err), &err);
    a = ct_pages_take(&global);
    b = ct_pages_take(&global);
    *ct_prefix_ids(&p, a) = ids[0];
    *ct_prefix_ids(&p, b) = ids[1];
    assert_int_equal(ct_prefix_add(&p, CT_PAGE_NONE, 5, a), a);
    assert_int_equal(ct_prefix_add(&p, a, 5, b), b);
    assert_int_equal(ct_prefix_find(&p, 5, ids, 2).n_known, 2);
    *ct_prefix_ids(&p, b) = 9;
    assert_int_equal(ct_prefix_find(&p, 5, ids, 2).n_known, 1);
    *ct_prefix_ids(&p, b) = ids[1];
    p.block[b].parent = CT_PAGE_NONE;
    assert_int_equal(ct_prefix_find(&p, 5, ids, 2).n_known, 1);
    p.block[b].parent = a;
    p.block[b].salt = 6;
    assert_int_equal(ct_prefix_find(&p, 5, ids, 2).n_known, 1);
    ct_prefix_deinit(&p);
    ct_pages_deinit(&global);
    ct_pages_deinit(&sliding);
}

/* 29 */
static void no_cache_neither_uses_nor_leaves(void **state)
{
    rig *r = open_cache(1 << 20);
    const uint32_t *ids = count_from(0, 22);
    ct_kv_claim claim = {.ids = ids, .n_ids = 22, .n_tokens = 22, .no_cache = true};
    uint32_t n_cached;

    (void)state;
    for (unsigned round = 0; round < 2; round++) {
        assert_int_equal(rig_admit(r, 0, &claim, &n_cached), CT_KV_ADMITTED);
        assert_int_equal(n_cached, 0);
        assert_int_equal(ct_kv_next_boundary(r->kv, 0, 0), 22);
        rig_run(r, 0, 22, true);
        rig_release(r, 0);
        assert_int_equal(ct_kv_used(r->kv).snapshots, round);
        assert_int_equal(ct_kv_used(r->kv).queries, round);
        if (round == 0)
            serve(r, 1, ids, 22);
    }
    rig_close(r);
}

/* 29, 30: a budget of nothing. */
static void without_a_budget_nothing_is_kept(void **state)
{
    rig *r = open_cache(0);
    const uint32_t *ids = count_from(0, 22);
    ct_kv_usage u;

    (void)state;
    assert_int_equal(serve(r, 0, ids, 22), 0);
    assert_int_equal(serve(r, 0, ids, 22), 0);
    ct_kv_forget(r->kv);
    u = ct_kv_used(r->kv);
    assert_int_equal(u.global_free, u.n_global);
    assert_int_equal(u.sliding_free, u.n_sliding);
    rig_close(r);
}

static uint64_t kept_bytes(const rig *r, const ct_kv_bytes *b)
{
    ct_kv_usage u = ct_kv_used(r->kv);

    return u.global_kept * b->global_page + u.sliding_kept * b->sliding_page;
}

/* 30, 31: room for two paths of 5 global and 3 sliding pages. */
static void the_least_recently_used_snapshot_goes_first(void **state)
{
    rig *r = open_cache(1 << 20);
    const uint32_t *a = count_from(0, 22), *b = count_from(100, 22), *c = count_from(200, 22);
    ct_kv_bytes bytes;
    uint64_t path;

    (void)state;
    test_ok(ct_kv_measure(&bytes, &r->config, &r->shape, &err), &err);
    path = 5 * bytes.global_page + 3 * bytes.sliding_page;
    rig_close(r);
    r = open_cache(2 * path);
    serve(r, 0, a, 22);
    serve(r, 0, b, 22);
    assert_int_equal(kept_bytes(r, &bytes), 2 * path);
    assert_int_equal(admit(r, 0, a, 22), 20); /* a lookup is a use */
    rig_release(r, 0);
    assert_int_equal(serve(r, 0, c, 22), 0); /* in the place of b */
    assert_int_equal(kept_bytes(r, &bytes), 2 * path);
    assert_int_equal(ct_kv_used(r->kv).evictions, 1);
    assert_int_equal(admit(r, 1, b, 22), 0);
    assert_int_equal(admit(r, 2, a, 22), 20);
    assert_int_equal(kept_bytes(r, &bytes), path); /* a is in use */
    rig_close(r);
}

/* 31: to keep what is known already is a use, too. */
static void keeping_again_makes_a_snapshot_the_newest(void **state)
{
    rig *r = open_cache(2 * (5 * 64 + 3 * 128));
    const uint32_t *a = count_from(0, 22), *b = count_from(100, 22), *c = count_from(200, 22);

    (void)state;
    admit(r, 1, a, 22);
    serve(r, 0, a, 22);
    serve(r, 0, b, 22);
    rig_run(r, 1, 22, true); /* computed in parallel, known by now */
    rig_release(r, 1);
    serve(r, 0, c, 22);
    assert_int_equal(admit(r, 0, b, 22), 0);
    assert_int_equal(admit(r, 1, a, 22), 20);
    rig_close(r);
}

/* 31: two paths with a common beginning, and a budget of just that: what is evicted for a
 * third is the snapshot at the branch, not the blocks before it. */
static void eviction_leaves_what_others_need(void **state)
{
    rig *r = open_cache(15 * 64 + 9 * 128);
    const uint32_t *a = count_from(0, 42), *c = count_from(900, 5);
    uint32_t b[42];
    ct_kv_usage u;

    (void)state;
    memcpy(b, a, sizeof b);
    for (uint32_t i = 20; i < 42; i++)
        b[i] = 500 + i;
    serve(r, 0, a, 42);
    serve(r, 0, b, 42); /* leaves snapshots at 20 and at 40 */
    u = ct_kv_used(r->kv);
    assert_int_equal(u.snapshots, 3);
    assert_int_equal(u.global_kept, 15);
    assert_int_equal(u.sliding_kept, 9);
    assert_int_equal(serve(r, 0, a, 42), 40); /* the branch is the oldest now */
    serve(r, 0, c, 5);
    u = ct_kv_used(r->kv);
    assert_int_equal(u.evictions, 1);
    assert_int_equal(u.global_kept, 15 + 1);
    assert_int_equal(u.sliding_kept, 6 + 1);
    assert_int_equal(admit(r, 0, a, 42), 40);
    assert_int_equal(admit(r, 1, b, 42), 40);
    rig_close(r);
}

/* 31, 15: kept pages give way to what was admitted. */
static void a_full_pool_takes_from_the_cache(void **state)
{
    rig *r = rig_open((ct_kv_shape){.n_seqs = 2,
                                    .seq_tokens = 80,
                                    .step_tokens = 80,
                                    .page_tokens = P,
                                    .n_global = 20,
                                    .n_sliding = 20,
                                    .cache_bytes = 1 << 20},
                      10);
    const uint32_t *a = count_from(0, 30), *b = count_from(100, 30), *c = count_from(200, 72);

    (void)state;
    serve(r, 0, a, 30);
    serve(r, 0, b, 30);
    assert_int_equal(ct_kv_used(r->kv).global_kept, 14);
    admit(r, 0, c, 72); /* 20 pages: all */
    rig_run(r, 0, 72, false);
    assert_int_equal(ct_kv_used(r->kv).global_kept, 0);
    rig_check(r, 0);
    rig_release(r, 0);
    assert_int_equal(serve(r, 0, a, 30), 0);
    rig_close(r);
}

/* 16, 17: pages of the prefix are not counted twice, nor taken from under it. */
static void shared_global_pages_are_not_reserved_again(void **state)
{
    rig *r = rig_open((ct_kv_shape){.n_seqs = 2,
                                    .seq_tokens = 40,
                                    .step_tokens = 40,
                                    .page_tokens = P,
                                    .n_global = 15,
                                    .n_sliding = 30,
                                    .cache_bytes = 1 << 20},
                      10);
    const uint32_t *ids = count_from(0, 30);
    ct_kv_claim stranger = {.ids = count_from(100, 30), .n_ids = 30, .n_tokens = 38};
    ct_kv_usage u;
    uint32_t n_cached;

    (void)state;
    admit(r, 0, ids, 30);
    rig_run(r, 0, 30, true);
    assert_int_equal(rig_admit(r, 1, &stranger, &n_cached), CT_KV_WAIT); /* 10 + 10 */
    assert_int_equal(admit(r, 1, ids, 30), 28);                          /* 10 + 3 */
    u = ct_kv_used(r->kv);
    assert_int_equal(u.global_reserved, 2 + 3);
    assert_int_equal(u.sliding_reserved, 2 + 3);
    rig_run(r, 0, 38, false);
    rig_run(r, 1, 38, false);
    rig_release(r, 0);
    rig_check(r, 1);
    rig_close(r);
}

static rig *open_narrow(uint32_t n_sliding)
{
    return rig_open((ct_kv_shape){.n_seqs = 2,
                                  .seq_tokens = 40,
                                  .step_tokens = 1,
                                  .page_tokens = P,
                                  .n_global = 30,
                                  .n_sliding = n_sliding,
                                  .cache_bytes = 1 << 20},
                    10);
}

/* 17: the first sequence moves on while the second still needs the pages they share; each
 * comes to hold 4. */
static void shared_sliding_pages_are_reserved(void **state)
{
    const uint32_t *ids = count_from(0, 18);
    const ct_kv_claim claim = {.ids = ids, .n_ids = 18, .n_tokens = 40};

    (void)state;
    for (uint32_t n_sliding = 7; n_sliding <= 8; n_sliding++) {
        rig *r = open_narrow(n_sliding);
        uint32_t n_cached;

        assert_int_equal(rig_admit(r, 0, &claim, &n_cached), CT_KV_ADMITTED);
        rig_run(r, 0, 18, true);
        assert_int_equal(rig_admit(r, 1, &claim, &n_cached),
                         n_sliding == 7 ? CT_KV_WAIT : CT_KV_ADMITTED);
        rig_run(r, 0, 40, false);
        if (n_sliding == 8) {
            assert_int_equal(n_cached, 16);
            rig_check(r, 1);
            rig_run(r, 1, 40, false);
            rig_check(r, 1);
        }
        rig_close(r);
    }
}

/* 32 */
static void a_path_larger_than_the_budget_drives_nothing_out(void **state)
{
    rig *r = open_cache(1400); /* the paths come to 704 and to 1472 bytes */
    const uint32_t *a = count_from(0, 22), *b = count_from(100, 70);

    (void)state;
    serve(r, 0, a, 22);
    assert_int_equal(ct_kv_used(r->kv).snapshots, 1);
    serve(r, 0, b, 70);
    assert_int_equal(ct_kv_used(r->kv).evictions, 0);
    assert_int_equal(serve(r, 0, a, 22), 20);
    rig_close(r);
}

/* 25: a conversation whose cache entries were evicted under it is published anew. */
static void a_sequence_keeps_again_after_its_snapshot_was_evicted(void **state)
{
    rig *r = open_cache(1 << 20);
    const uint32_t *ids = count_from(0, 22);

    (void)state;
    admit(r, 0, ids, 22);
    rig_run(r, 0, 22, true);
    ct_kv_forget(r->kv);
    assert_int_equal(admit(r, 1, ids, 22), 0);
    rig_release(r, 1);
    for (uint32_t i = 22; i < 30; i++)
        r->ids[0][i] = i;
    rig_run(r, 0, 30, true);
    assert_true(ct_kv_consistent(r->kv));
    assert_int_equal(admit(r, 1, count_from(0, 30), 30), 28);
    rig_check(r, 1);
    rig_close(r);
}

/* 34 */
static void forgetting_frees_all_but_what_is_in_use(void **state)
{
    rig *r = open_cache(1 << 20);
    const uint32_t *a = count_from(0, 22), *b = count_from(100, 22);
    ct_kv_usage u;

    (void)state;
    serve(r, 0, a, 22);
    admit(r, 1, b, 22);
    rig_run(r, 1, 22, true);
    ct_kv_forget(r->kv);
    assert_true(ct_kv_consistent(r->kv));
    u = ct_kv_used(r->kv);
    assert_int_equal(u.global_free, u.n_global - 6);
    assert_int_equal(u.global_kept + u.sliding_kept + u.snapshots, 0);
    rig_check(r, 1);
    rig_close(r);
}

static void lookups_are_counted(void **state)
{
    rig *r = open_cache(1 << 20);
    const uint32_t *a = count_from(0, 22);
    ct_kv_usage u;

    (void)state;
    serve(r, 0, a, 22);
    serve(r, 0, a, 22);
    u = ct_kv_used(r->kv);
    assert_int_equal(u.queries, 2);
    assert_int_equal(u.query_tokens, 44);
    assert_int_equal(u.hits, 1);
    assert_int_equal(u.hit_tokens, 20);
    rig_close(r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_same_prompt_again_leaves_the_last_page_to_compute),
        cmocka_unit_test(a_hit_attaches_the_window_before_it),
        cmocka_unit_test(live_sequences_share_full_pages),
        cmocka_unit_test(a_block_computed_twice_is_held_once),
        cmocka_unit_test(the_second_prompt_marks_the_branch_and_the_third_uses_it),
        cmocka_unit_test(a_hint_asks_for_a_snapshot),
        cmocka_unit_test(salts_and_single_tokens_keep_prompts_apart),
        cmocka_unit_test(equal_hashes_do_not_make_equal_blocks),
        cmocka_unit_test(no_cache_neither_uses_nor_leaves),
        cmocka_unit_test(without_a_budget_nothing_is_kept),
        cmocka_unit_test(the_least_recently_used_snapshot_goes_first),
        cmocka_unit_test(keeping_again_makes_a_snapshot_the_newest),
        cmocka_unit_test(eviction_leaves_what_others_need),
        cmocka_unit_test(a_full_pool_takes_from_the_cache),
        cmocka_unit_test(shared_global_pages_are_not_reserved_again),
        cmocka_unit_test(shared_sliding_pages_are_reserved),
        cmocka_unit_test(a_path_larger_than_the_budget_drives_nothing_out),
        cmocka_unit_test(a_sequence_keeps_again_after_its_snapshot_was_evicted),
        cmocka_unit_test(forgetting_frees_all_but_what_is_in_use),
        cmocka_unit_test(lookups_are_counted),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
