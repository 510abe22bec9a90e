/* The order of service, without a model. */
#include "support.h"

#include "base/checked.h"
#include "engine/scheduler.h"

/* --- admission ---------------------------------------------------------------- */

static ct_sched_waiter waiter(uint64_t arrival, int32_t priority)
{
    return (ct_sched_waiter){.arrival = arrival, .priority = priority, .ready = true};
}

static void the_highest_priority_is_first_and_then_the_oldest(void **state)
{
    ct_sched_waiter w[] = {waiter(3, 0), waiter(2, 5), waiter(1, -1), waiter(0, 0), waiter(4, 5)};
    static const uint32_t order[] = {1, 4, 3, 0, 2};

    (void)state;
    for (size_t i = 0; i < CT_LEN(order); i++) {
        assert_int_equal(ct_sched_next(w, CT_LEN(w)), order[i]);
        w[order[i]].tried = true;
    }
    assert_int_equal(ct_sched_next(w, CT_LEN(w)), CT_SCHED_NONE);
}

static void who_waits_for_its_own_first_choice_is_passed_without_count(void **state)
{
    ct_sched_waiter w[] = {waiter(0, 0), waiter(1, 0)};

    (void)state;
    w[0].ready = false;
    assert_int_equal(ct_sched_next(w, 2), 1);
    ct_sched_admitted(w, 2, 1);
    assert_int_equal(w[0].overtaken, 0);
}

static void passing_is_counted_and_bounded(void **state)
{
    /* An old one of low priority, and a big one at the head that never fits. */
    ct_sched_waiter w[] = {waiter(0, 0), waiter(1, 1), waiter(2, 1)};

    (void)state;
    for (uint32_t i = 0; i < CT_SCHED_OVERTAKES; i++) {
        assert_int_equal(ct_sched_next(w, 3), 1);
        w[1].tried = true;
        assert_int_equal(ct_sched_next(w, 3), 2);
        ct_sched_admitted(w, 3, 2);
        w[2].arrival++;
        w[1].tried = false;
    }
    assert_int_equal(w[0].overtaken, CT_SCHED_OVERTAKES);
    assert_int_equal(w[1].overtaken, CT_SCHED_OVERTAKES);
    /* Both are due: the oldest first, and while it does not fit nobody passes. */
    assert_int_equal(ct_sched_next(w, 3), 0);
    w[0].tried = true;
    assert_int_equal(ct_sched_next(w, 3), CT_SCHED_NONE);
}

/* Random arrivals, sizes and priorities on a pool of units: nobody is passed by more than
 * the bound of later ones. */
static void nobody_is_overtaken_more_often_than_the_bound(void **state)
{
    enum { N = 64, UNITS = 10 };
    ct_sched_waiter w[N];
    uint32_t size[N], later[N] = {0}, n = 0, most = 0;
    uint64_t arrival = 0, seed = 5;

    (void)state;
    for (unsigned round = 0; round < 20000; round++) {
        uint32_t units = UNITS;

        while (n < N && round < 19000) {
            seed = seed * 6364136223846793005u + 1;
            size[n] = 1 + (uint32_t)(seed >> 60) % UNITS;
            later[n] = 0;
            w[n++] = waiter(arrival++, (int32_t)(seed >> 40 & 3));
        }
        for (uint32_t i = 0; i < n; i++)
            w[i].tried = false;
        for (;;) {
            uint32_t i = ct_sched_next(w, n);

            if (i == CT_SCHED_NONE)
                break;
            if (size[i] > units) {
                w[i].tried = true;
                continue;
            }
            units -= size[i];
            ct_sched_admitted(w, n, i);
            for (uint32_t j = 0; j < n; j++)
                later[j] += j != i && w[j].arrival < w[i].arrival;
            most = later[i] > most ? later[i] : most;
            n--;
            w[i] = w[n];
            size[i] = size[n];
            later[i] = later[n];
        }
    }
    assert_int_equal(n, 0);
    assert_true(most <= CT_SCHED_OVERTAKES);
    assert_int_equal(most, CT_SCHED_OVERTAKES); /* the bound is used, so it was tested */
}

/* --- rows ----------------------------------------------------------------------- */

static const ct_sched_limits limits = {
    .step_rows = 64,
    .free_rows = 1,
    .cost = {.row = 100, .head = 20, .global_key = 1, .sliding_key = 1, .window = 16},
};

static ct_sched_seq decode(uint32_t pos)
{
    return (ct_sched_seq){.mode = CT_SCHED_DECODE, .pos = pos};
}

static ct_sched_seq prompt(uint32_t left)
{
    return (ct_sched_seq){.mode = CT_SCHED_PREFILL, .left = left, .cut = left};
}

static void costs_follow_the_geometry(void **state)
{
    ct_config c = {.vocab = 10,
                   .hidden = 4,
                   .intermediate = 6,
                   .n_layers = 2,
                   .n_heads = 2,
                   .n_kv_sliding = 1,
                   .n_kv_global = 1,
                   .hd_sliding = 8,
                   .hd_global = 16,
                   .window = 3,
                   .is_global = {false, true}};
    ct_sched_cost cost = ct_sched_cost_of(&c);

    (void)state;
    /* q and o, k and v; q and o, k; two FFNs of three matrices. */
    assert_true(cost.row == 4 * (2 * 16 + 2 * 8) + 4 * (2 * 32 + 16) + 2 * 3 * 4 * 6);
    assert_true(cost.head == 40);
    assert_true(cost.global_key == 128 && cost.sliding_key == 32);
    assert_true(ct_sched_row_cost(&cost, 0, false) == cost.row + 128 + 32);
    assert_true(ct_sched_row_cost(&cost, 9, true) == cost.row + 40 + 10 * 128 + 3 * 32);
}

static void every_decoding_sequence_has_a_row(void **state)
{
    ct_sched_seq s[64];

    (void)state;
    for (uint32_t i = 0; i < 64; i++)
        s[i] = i == 9 ? (ct_sched_seq){0} : decode(100 * i);
    ct_sched_plan(&limits, s, 64);
    for (uint32_t i = 0; i < 64; i++)
        assert_int_equal(s[i].n, i != 9);
}

static void alone_a_prompt_takes_the_whole_step(void **state)
{
    ct_sched_seq s[] = {prompt(1000), prompt(5), {0}};

    (void)state;
    ct_sched_plan(&limits, s, 3);
    assert_int_equal(s[1].n, 5); /* the short one first */
    assert_int_equal(s[0].n, 59);
    assert_int_equal(s[2].n, 0);
    s[0].cut = 7;
    ct_sched_plan(&limits, s, 3);
    assert_int_equal(s[0].n, 7);
}

static void beside_decoding_prompts_cost_a_share_of_it(void **state)
{
    (void)state;
    for (uint32_t n_decode = 1; n_decode <= 40; n_decode++) {
        ct_sched_seq s[41];
        double decodes = 0, prompts = 0;

        for (uint32_t i = 0; i < n_decode; i++) {
            s[i] = decode(50 * i);
            decodes += ct_sched_row_cost(&limits.cost, s[i].pos, true);
        }
        s[n_decode] = prompt(4000);
        s[n_decode].pos = 100;
        ct_sched_plan(&limits, s, n_decode + 1);
        for (uint32_t i = 0; i < s[n_decode].n; i++)
            prompts += ct_sched_row_cost(&limits.cost, 100 + i, false);
        assert_true(s[n_decode].n >= 1);
        assert_true(s[n_decode].n == 1 || prompts <= CT_SCHED_SHARE * decodes);
        assert_true(s[n_decode].n == 64 - n_decode ||
                    prompts + ct_sched_row_cost(&limits.cost, 100 + s[n_decode].n, false) >
                        CT_SCHED_SHARE * decodes);
    }
}

static void free_rows_are_not_counted(void **state)
{
    ct_sched_limits wide = limits;
    ct_sched_seq s[] = {decode(0), prompt(4000)};

    (void)state;
    wide.free_rows = 32;
    ct_sched_plan(&wide, s, 2);
    assert_true(s[1].n >= 24 && s[1].n <= 32);
}

/* Short prompts keep coming; the long one still has a row within the bound. */
static void no_prompt_starves(void **state)
{
    enum { N = 12 };
    ct_sched_seq s[N + 1];
    uint32_t gap[N] = {0}, most = 0;
    uint64_t seed = 3;

    (void)state;
    for (uint32_t i = 0; i < N; i++)
        s[i] = prompt(i == 0 ? 100000 : 1 + i);
    s[N] = decode(10);
    for (uint32_t step = 0; step < 5000; step++) {
        ct_sched_plan(&limits, s, N + 1);
        for (uint32_t i = 0; i < N; i++) {
            gap[i] = s[i].n ? 0 : gap[i] + 1;
            most = gap[i] > most ? gap[i] : most;
            s[i].left -= s[i].n;
            s[i].pos += s[i].n;
            seed = seed * 6364136223846793005u + 1;
            if (s[i].left == 0) {
                s[i] = prompt(1 + (uint32_t)(seed >> 61));
                gap[i] = 0;
            }
            s[i].cut = s[i].left;
        }
    }
    assert_true(most >= CT_SCHED_PATIENCE);
    assert_true(most <= CT_SCHED_PATIENCE + N);
    assert_true(s[0].left < 100000 - 5000 / (CT_SCHED_PATIENCE + N));
}

static void something_is_always_planned(void **state)
{
    ct_sched_seq s[] = {prompt(4000), prompt(3)};

    (void)state;
    s[0].pos = 1000000; /* dearer than any share */
    s[1] = decode(0);
    ct_sched_plan(&limits, s, 2);
    assert_int_equal(s[0].n, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_highest_priority_is_first_and_then_the_oldest),
        cmocka_unit_test(who_waits_for_its_own_first_choice_is_passed_without_count),
        cmocka_unit_test(passing_is_counted_and_bounded),
        cmocka_unit_test(nobody_is_overtaken_more_often_than_the_bound),
        cmocka_unit_test(costs_follow_the_geometry),
        cmocka_unit_test(every_decoding_sequence_has_a_row),
        cmocka_unit_test(alone_a_prompt_takes_the_whole_step),
        cmocka_unit_test(beside_decoding_prompts_cost_a_share_of_it),
        cmocka_unit_test(free_rows_are_not_counted),
        cmocka_unit_test(no_prompt_starves),
        cmocka_unit_test(something_is_always_planned),
    };

    return cmocka_run_group_tests_name("scheduler", tests, NULL, NULL);
}
