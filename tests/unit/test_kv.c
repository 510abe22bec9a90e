/* Pages of keys and values: families, windows, admission, creation.  Numbers are the
 * sentences of docs/kv.md. */
#include "kv_rig.h"

#include "kv/pages.h"

static ct_error err;

static ct_kv_admission admit_n(rig *r, uint32_t seq, uint32_t n_tokens)
{
    uint32_t n_cached;

    return rig_admit(r, seq, &(ct_kv_claim){.n_tokens = n_tokens, .no_cache = true}, &n_cached);
}

static void must_admit(rig *r, uint32_t seq, uint32_t n_tokens)
{
    assert_int_equal(admit_n(r, seq, n_tokens), CT_KV_ADMITTED);
}

static void pages_are_taken_shared_held_and_put_back(void **state)
{
    uint32_t seen[3];
    ct_pages p;

    (void)state;
    test_ok(ct_pages_init(&p, 3, &err), &err);
    assert_int_equal(ct_pages_take(&p), 0);
    assert_int_equal(ct_pages_take(&p), 1);
    assert_int_equal(ct_pages_take(&p), 2);
    assert_int_equal(ct_pages_take(&p), CT_PAGE_NONE);
    ct_pages_share(&p, 1);
    ct_pages_put(&p, 1);
    assert_int_equal(p.n_free, 0); /* the other table still names it */
    ct_pages_hold(&p, 2);
    ct_pages_put(&p, 2);
    assert_int_equal(p.n_free, 0);
    assert_int_equal(p.n_kept, 1);
    assert_true(ct_pages_consistent(&p, (uint32_t[]){1, 1, 0}, seen));
    assert_false(ct_pages_consistent(&p, (uint32_t[]){1, 2, 0}, seen));
    ct_pages_drop(&p, 2);
    assert_int_equal(ct_pages_take(&p), 2);
    ct_pages_put(&p, 1);
    assert_int_equal(ct_pages_take(&p), 1);
    ct_pages_deinit(&p);
}

/* 1, 6 */
static void layers_have_the_geometry_of_their_kind(void **state)
{
    rig *r = rig_open(
        (ct_kv_shape){.n_seqs = 3, .seq_tokens = 100, .step_tokens = 5, .page_tokens = 4}, 10);
    const ct_kv_layer *kv = ct_kv_layers(r->kv);

    (void)state;
    assert_int_equal(kv[0].window, 10);
    assert_int_equal(kv[0].kv_heads, 2);
    assert_int_equal(kv[0].head_dim, 2);
    assert_non_null(kv[0].k);
    assert_int_equal(kv[1].window, 0);
    assert_int_equal(kv[1].kv_heads, 1);
    assert_int_equal(kv[1].head_dim, 4);
    assert_int_equal(kv[1].max_blocks, 25);
    assert_int_equal(kv[1].n_pages, 75);
    assert_null(kv[1].k);
    assert_true(kv[0].pages != kv[1].pages);
    /* 9 keys before a page: 3 pages of 4.  5 of a step that begins anywhere in one: 2. */
    assert_int_equal(kv[0].n_pages, 3 * 5);
    rig_close(r);
    r = rig_open((ct_kv_shape){.n_seqs = 1, .seq_tokens = 9, .step_tokens = 9, .unfolded = true},
                 10);
    assert_non_null(ct_kv_layers(r->kv)[1].k);
    rig_close(r);
}

/* 6: bytes a token and bytes of a window of the published geometries. */
static void bytes_are_those_of_the_published_models(void **state)
{
    static const struct {
        uint32_t layers, kv_sliding, kv_global;
        uint64_t folded, unfolded, window;
    } models[] = {
        {48, 8, 1, 8192, 16384, 320ull << 20},
        {30, 8, 2, 10240, 20480, 200ull << 20},
        {60, 16, 4, 40960, 81920, 800ull << 20},
    };

    (void)state;
    for (size_t i = 0; i < CT_LEN(models); i++)
        for (unsigned fp8 = 0; fp8 < 2; fp8++) {
            ct_config c = {.n_layers = models[i].layers,
                           .n_kv_sliding = models[i].kv_sliding,
                           .n_kv_global = models[i].kv_global,
                           .hd_sliding = 256,
                           .hd_global = 512,
                           .window = 1024};
            ct_kv_type type = fp8 ? CT_KV_FP8 : CT_KV_BF16;
            ct_kv_shape s = {.n_seqs = 1,
                             .seq_tokens = 262144,
                             .step_tokens = 1,
                             .global_type = type,
                             .sliding_type = type};
            ct_kv_bytes b;

            for (uint32_t l = 5; l < c.n_layers; l += 6)
                c.is_global[l] = true;
            test_ok(ct_kv_measure(&b, &c, &s, &err), &err);
            assert_int_equal(b.global_page, 64 * models[i].folded >> fp8);
            assert_int_equal(b.global, 262144 * models[i].folded >> fp8);
            assert_int_equal(b.n_sliding, 16 + 1);
            assert_int_equal(16 * b.sliding_page, models[i].window >> fp8);
            s.unfolded = true;
            test_ok(ct_kv_measure(&b, &c, &s, &err), &err);
            assert_int_equal(b.global_page, 64 * models[i].unfolded >> fp8);
        }
}

/* Every position that a row from `first` to `last` may read is where its writer put it. */
static void assert_readable(const rig *r, uint32_t seq, uint32_t first, uint32_t last)
{
    for (uint32_t pos = 0; pos <= last; pos++) {
        assert_true(rig_value(r, RIG_GLOBAL, seq, pos)[1] == (float)pos);
        if (pos + r->config.window > first)
            assert_true(rig_value(r, RIG_SLIDING, seq, pos)[1] == (float)pos);
    }
}

/* Walks a sequence to its end in steps of `step`; the most sliding pages ever held. */
static uint32_t walk(rig *r, uint32_t seq, uint32_t step, uint32_t end)
{
    uint32_t most = 0;

    for (uint32_t at = 0; at < end; at += step) {
        ct_kv_usage u;

        step = step < end - at ? step : end - at;
        rig_step(r, seq, step);
        assert_int_equal(ct_kv_length(r->kv, seq), at + step);
        assert_readable(r, seq, at, at + step - 1);
        assert_true(ct_kv_consistent(r->kv));
        u = ct_kv_used(r->kv);
        most = u.n_sliding - u.sliding_free > most ? u.n_sliding - u.sliding_free : most;
    }
    return most;
}

/* 2, 3, 5, 7, 15 */
static void sliding_pages_are_bounded_by_window_and_step(void **state)
{
    (void)state;
    for (uint32_t page_tokens = 1; page_tokens <= 12; page_tokens++)
        for (uint32_t step = 1; step <= 13; step++) {
            rig *r = rig_open(
                (ct_kv_shape){
                    .n_seqs = 1, .seq_tokens = 97, .step_tokens = step, .page_tokens = page_tokens},
                10);
            uint32_t most;

            must_admit(r, 0, 97);
            most = walk(r, 0, step, 97);
            assert_true(most <= (9 + page_tokens - 1) / page_tokens +
                                    (step + 2 * (page_tokens - 1)) / page_tokens);
            rig_close(r);
        }
}

/* 2, 4, 9 */
static void blocks_behind_the_window_leave_the_table(void **state)
{
    rig *r = rig_open(
        (ct_kv_shape){.n_seqs = 1, .seq_tokens = 64, .step_tokens = 1, .page_tokens = 4}, 10);

    (void)state;
    must_admit(r, 0, 64);
    /* Rows at 12 … 15 see 3 … 15: the block of 0 … 3 is still read. */
    walk(r, 0, 1, 16);
    assert_true(rig_page(r, RIG_SLIDING, 0, 0) != CT_PAGE_NONE);
    rig_step(r, 0, 1); /* the row at 16 sees 7 … 16 */
    assert_int_equal(rig_page(r, RIG_SLIDING, 0, 0), CT_PAGE_NONE);
    assert_true(rig_page(r, RIG_SLIDING, 0, 4) != CT_PAGE_NONE);
    assert_true(rig_page(r, RIG_GLOBAL, 0, 0) != CT_PAGE_NONE);
    assert_int_equal(rig_page(r, RIG_GLOBAL, 0, 20), CT_PAGE_NONE);
    rig_close(r);
}

/* 10, 11, 18 */
static void sequences_share_no_page_and_release_frees_them(void **state)
{
    rig *r = rig_open(
        (ct_kv_shape){.n_seqs = 2, .seq_tokens = 40, .step_tokens = 40, .page_tokens = 4}, 10);
    ct_kv_usage u;

    (void)state;
    for (unsigned round = 0; round < 3; round++) {
        must_admit(r, 0, 40);
        must_admit(r, 1, 40);
        walk(r, 0, 7, 40);
        walk(r, 1, 3, 40);
        for (uint32_t i = 0; i < 40; i += 4)
            for (uint32_t j = 0; j < 40; j += 4)
                assert_true(rig_page(r, RIG_GLOBAL, 0, i) != rig_page(r, RIG_GLOBAL, 1, j));
        ct_kv_release(r->kv, 0);
        assert_true(ct_kv_consistent(r->kv));
        assert_int_equal(ct_kv_length(r->kv, 0), 0);
        assert_readable(r, 1, 39, 39);
        ct_kv_release(r->kv, 1);
        ct_kv_release(r->kv, 1); /* empty already */
        u = ct_kv_used(r->kv);
        assert_int_equal(u.sliding_free, u.n_sliding);
        assert_int_equal(u.global_free, u.n_global);
        assert_int_equal(u.sliding_reserved + u.global_reserved, 0);
    }
    rig_close(r);
}

/* 8: pages come back in any order, and a table does not care. */
static void page_ids_carry_no_order(void **state)
{
    rig *r = rig_open(
        (ct_kv_shape){.n_seqs = 3, .seq_tokens = 40, .step_tokens = 40, .page_tokens = 4}, 10);

    (void)state;
    for (uint32_t seq = 0; seq < 3; seq++)
        must_admit(r, seq, 40);
    for (uint32_t at = 0; at < 16; at += 4)
        for (uint32_t seq = 0; seq < 2; seq++)
            rig_step(r, seq, 4);
    ct_kv_release(r->kv, 0);
    for (uint32_t i = 0; i < 40; i++)
        r->ids[2][i] = i;
    rig_step(r, 2, 40);
    assert_true(rig_page(r, RIG_GLOBAL, 2, 0) > rig_page(r, RIG_GLOBAL, 2, 4));
    rig_check(r, 1);
    rig_check(r, 2);
    rig_close(r);
}

/* 14, 16, 18 */
static void admission_counts_both_pools_or_changes_nothing(void **state)
{
    rig *r = rig_open((ct_kv_shape){.n_seqs = 3,
                                    .seq_tokens = 40,
                                    .step_tokens = 4,
                                    .page_tokens = 4,
                                    .n_global = 12,
                                    .n_sliding = 12},
                      10);
    ct_kv_usage u, v;

    (void)state;
    assert_int_equal(ct_kv_needs(r->kv, 40).n_global, 10);
    assert_int_equal(ct_kv_needs(r->kv, 40).n_sliding, 5);
    assert_int_equal(ct_kv_needs(r->kv, 9).n_sliding, 3);
    assert_int_equal(admit_n(r, 0, 41), CT_KV_NEVER);
    must_admit(r, 0, 40);
    u = ct_kv_used(r->kv);
    assert_int_equal(u.global_reserved, 10);
    assert_int_equal(u.sliding_reserved, 5);
    assert_int_equal(admit_n(r, 1, 9), CT_KV_WAIT); /* 3 global pages, 2 are left */
    v = ct_kv_used(r->kv);
    assert_memory_equal(&u, &v, sizeof u);
    must_admit(r, 1, 8);
    walk(r, 0, 4, 40);
    u = ct_kv_used(r->kv);
    assert_int_equal(u.global_reserved, 2);
    assert_int_equal(u.sliding_reserved, 2); /* at its end a sequence needs nothing more */
    walk(r, 1, 3, 8);
    ct_kv_release(r->kv, 0);
    must_admit(r, 0, 40);
    rig_close(r);
}

/* 18, 19: past its prompt a sequence takes small steps, and needs less for them. */
static void a_decoding_sequence_claims_less(void **state)
{
    static const uint32_t ids[20];
    rig *r = rig_open((ct_kv_shape){.n_seqs = 2,
                                    .seq_tokens = 80,
                                    .step_tokens = 20,
                                    .decode_tokens = 1,
                                    .page_tokens = 4,
                                    .n_global = 40,
                                    .n_sliding = 13},
                      10);
    const ct_kv_claim claim = {.ids = ids, .n_ids = 20, .n_tokens = 80, .no_cache = true};
    uint32_t n_cached;

    (void)state;
    assert_int_equal(rig_admit(r, 0, &claim, &n_cached), CT_KV_ADMITTED);
    assert_int_equal(ct_kv_used(r->kv).sliding_reserved, 3 + 6);
    rig_step(r, 0, 20);
    assert_int_equal(rig_admit(r, 1, &claim, &n_cached), CT_KV_WAIT);
    assert_int_equal(ct_kv_extend(r->kv, 0, ids, 2, &err), CT_EINVAL);
    assert_int_equal(ct_kv_length(r->kv, 0), 20);
    rig_step(r, 0, 1);
    assert_true(ct_kv_consistent(r->kv));
    assert_int_equal(rig_admit(r, 1, &claim, &n_cached), CT_KV_ADMITTED); /* 4 and 9 */
    rig_run(r, 0, 80, false);
    rig_run(r, 1, 80, false);
    rig_check(r, 0);
    rig_check(r, 1);
    rig_close(r);
}

/* 14, 16: the sliding pool can be the one that is short. */
static void sliding_pages_can_be_what_is_waited_for(void **state)
{
    rig *r = rig_open((ct_kv_shape){.n_seqs = 3,
                                    .seq_tokens = 40,
                                    .step_tokens = 4,
                                    .page_tokens = 4,
                                    .n_global = 30,
                                    .n_sliding = 9},
                      10);

    (void)state;
    must_admit(r, 0, 40);
    assert_int_equal(admit_n(r, 1, 40), CT_KV_WAIT);
    assert_int_equal(ct_kv_used(r->kv).global_reserved, 10);
    must_admit(r, 1, 16);
    walk(r, 0, 4, 40); /* near its end it needs fewer */
    must_admit(r, 2, 4);
    rig_close(r);
}

/* 19 */
static void what_does_not_fit_is_refused_with_both_numbers(void **state)
{
    static const uint32_t ids[9];
    rig *r = rig_open(
        (ct_kv_shape){.n_seqs = 1, .seq_tokens = 24, .step_tokens = 8, .page_tokens = 4}, 10);

    (void)state;
    assert_int_equal(ct_kv_extend(r->kv, 0, ids, 1, &err), CT_ELIMIT); /* not admitted */
    must_admit(r, 0, 20);
    assert_int_equal(ct_kv_extend(r->kv, 0, ids, 9, &err), CT_EINVAL);
    assert_non_null(strstr(err.text, "9"));
    assert_non_null(strstr(err.text, "8"));
    walk(r, 0, 8, 16);
    assert_int_equal(ct_kv_extend(r->kv, 0, ids, 5, &err), CT_ELIMIT);
    assert_non_null(strstr(err.text, "20"));
    assert_int_equal(ct_kv_length(r->kv, 0), 16);
    rig_step(r, 0, 4);
    rig_close(r);
}

/* 20 */
static void stores_too_small_for_one_sequence_are_refused(void **state)
{
    ct_kv_shape s = {.n_seqs = 4, .seq_tokens = 100, .step_tokens = 4, .page_tokens = 4};
    ct_kv_bytes b;

    (void)state;
    s.n_global = 24;
    assert_int_equal(ct_kv_measure(&b, &rig_config, &s, &err), CT_ELIMIT);
    assert_string_equal(err.text,
                        "24 global KV pages cannot hold one sequence of 100 tokens: it needs 25");
    s.n_global = 25;
    s.n_sliding = 4;
    assert_int_equal(ct_kv_measure(&b, &rig_config, &s, &err), CT_ELIMIT);
    assert_string_equal(err.text,
                        "4 sliding KV pages cannot hold one sequence of 100 tokens: it needs 5");
    s.n_sliding = 5;
    test_ok(ct_kv_measure(&b, &rig_config, &s, &err), &err);
    assert_int_equal(b.global, 25 * b.global_page);
    s.step_tokens = 0;
    assert_int_equal(ct_kv_measure(&b, &rig_config, &s, &err), CT_EINVAL);
    s = (ct_kv_shape){.n_seqs = UINT32_MAX, .seq_tokens = UINT32_MAX, .step_tokens = 1};
    assert_int_equal(ct_kv_measure(&b, &rig_config, &s, &err), CT_ELIMIT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pages_are_taken_shared_held_and_put_back),
        cmocka_unit_test(layers_have_the_geometry_of_their_kind),
        cmocka_unit_test(bytes_are_those_of_the_published_models),
        cmocka_unit_test(sliding_pages_are_bounded_by_window_and_step),
        cmocka_unit_test(blocks_behind_the_window_leave_the_table),
        cmocka_unit_test(sequences_share_no_page_and_release_frees_them),
        cmocka_unit_test(page_ids_carry_no_order),
        cmocka_unit_test(admission_counts_both_pools_or_changes_nothing),
        cmocka_unit_test(a_decoding_sequence_claims_less),
        cmocka_unit_test(sliding_pages_can_be_what_is_waited_for),
        cmocka_unit_test(what_does_not_fit_is_refused_with_both_numbers),
        cmocka_unit_test(stores_too_small_for_one_sequence_are_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
