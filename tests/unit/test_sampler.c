/* engine/sampler: order of the transforms, ties, and randomness by position alone. */
#include "support.h"

#include <math.h>
#include <string.h>

#include "engine/sampler.h"

#define V 8

static ct_sampler *make(const uint32_t *suppress, size_t n)
{
    ct_sampler *s = NULL;
    ct_error err;

    test_ok(ct_sampler_create(&s, V, suppress, n, &err), &err);
    return s;
}

static void greedy_takes_the_lowest_id_of_equals(void **state)
{
    const float logits[V] = {1, 3, 3, 2, NAN, -INFINITY, 3, 0};
    const ct_sampling greedy = {.temperature = 0, .top_p = 1};
    ct_sampler *s = make(NULL, 0);

    (void)state;
    assert_int_equal(ct_sampler_pick(s, logits, &greedy, 5), 1);
    ct_sampler_destroy(s);
    s = make((const uint32_t[]){1, 2}, 2);
    assert_int_equal(ct_sampler_pick(s, logits, &greedy, 5), 6);
    ct_sampler_destroy(s);
}

static void top_k_1_is_greedy_at_any_temperature(void **state)
{
    const float logits[V] = {1, 3, 3, 2, NAN, -INFINITY, 3, 0};
    ct_sampler *s = make(NULL, 0);

    (void)state;
    for (uint64_t at = 0; at < 100; at++) {
        ct_sampling how = {.temperature = 5, .top_p = 1, .top_k = 1, .seed = at};

        assert_int_equal(ct_sampler_pick(s, logits, &how, at), 1);
        how = (ct_sampling){.temperature = 5, .top_p = 1e-9, .seed = at};
        assert_int_equal(ct_sampler_pick(s, logits, &how, at), 1);
    }
    ct_sampler_destroy(s);
}

/* Counts 40,000 picks and compares them with the exact probabilities. */
static void check_shares(const float *logits, ct_sampling how, const double *want)
{
    const int n = 40000;
    int count[V] = {0};
    ct_sampler *s = make(NULL, 0);

    for (int i = 0; i < n; i++)
        count[ct_sampler_pick(s, logits, &how, (uint64_t)i)]++;
    for (int i = 0; i < V; i++) {
        double sigma = sqrt(n * want[i] * (1 - want[i]));

        if (fabs(count[i] - n * want[i]) > 5 * sigma + 1e-9)
            fail_msg("id %d: %d picks, expected %.0f (seed %lu)", i, count[i], n * want[i],
                     (unsigned long)how.seed);
    }
    ct_sampler_destroy(s);
}

static void shares_follow_the_softmax(void **state)
{
    const float logits[V] = {0, 1, 2, 3, 4, -1, 2.5f, NAN};
    double want[V], sum = 0;

    (void)state;
    for (int i = 0; i < V; i++)
        sum += want[i] = isnan(logits[i]) ? 0 : exp(logits[i] / 1.5);
    for (int i = 0; i < V; i++)
        want[i] /= sum;
    check_shares(logits, (ct_sampling){.temperature = 1.5, .top_p = 1, .seed = 3}, want);
}

static void top_p_cuts_after_temperature_and_top_k(void **state)
{
    /* Probabilities 0.4, 0.3, 0.2, 0.1 of the four best; the rest is cut by top_k. */
    const float logits[V] = {logf(0.4f), logf(0.3f), logf(0.2f), logf(0.1f),
                             logf(0.1f), -9,         -9,         -9};
    const double first_two[V] = {4.0 / 7, 3.0 / 7}, first_three[V] = {4.0 / 9, 3.0 / 9, 2.0 / 9};

    (void)state;
    check_shares(logits, (ct_sampling){.temperature = 1, .top_p = 0.69, .top_k = 4, .seed = 1},
                 first_two);
    check_shares(logits, (ct_sampling){.temperature = 1, .top_p = 0.71, .top_k = 4, .seed = 2},
                 first_three);
}

static void randomness_depends_on_seed_and_position_alone(void **state)
{
    double sum = 0;

    (void)state;
    for (uint64_t i = 0; i < 10000; i++) {
        double u = ct_sampler_uniform(42, i);

        assert_true(u >= 0 && u < 1);
        assert_true(u == ct_sampler_uniform(42, i));
        assert_true(u != ct_sampler_uniform(43, i));
        sum += u;
    }
    assert_true(fabs(sum / 10000 - 0.5) < 0.015);
}

static void a_suppressed_id_must_exist(void **state)
{
    const uint32_t id = V;
    ct_sampler *s;
    ct_error err;

    (void)state;
    assert_int_equal(ct_sampler_create(&s, V, &id, 1, &err), CT_EINVAL);
    assert_string_equal(err.text, "suppressed id 8 is outside the vocabulary of 8");
    ct_sampler_destroy(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(greedy_takes_the_lowest_id_of_equals),
        cmocka_unit_test(top_k_1_is_greedy_at_any_temperature),
        cmocka_unit_test(shares_follow_the_softmax),
        cmocka_unit_test(top_p_cuts_after_temperature_and_top_k),
        cmocka_unit_test(randomness_depends_on_seed_and_position_alone),
        cmocka_unit_test(a_suppressed_id_must_exist),
    };

    return cmocka_run_group_tests_name("sampler", tests, NULL, NULL);
}
