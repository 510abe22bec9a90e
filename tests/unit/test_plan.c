/* Plans against the published geometries' figures. */
#include "support.h"

#include "base/checked.h"
#include "engine/plan.h"
#include "format/geometry.h"

#include <string.h>

static ct_error err;

static ct_config geometry(const char *name)
{
    ct_config c;

    test_ok(ct_geometry_config(&c, ct_str_of(name), &err), &err);
    return c;
}

static ct_engine_options options(ct_kv_type type, uint32_t ctx, uint32_t slots)
{
    return (ct_engine_options){
        .ctx = ctx, .slots = slots, .n_threads = 2, .global_type = type, .sliding_type = type};
}

static void the_cache_weighs_what_the_geometry_says(void **state)
{
    /* bf16: a token in the global layers, folded; a window in the sliding ones. */
    static const struct {
        const char *name;
        uint64_t token, window;
    } want[] = {
        {"12b", 8192, 320ull << 20},
        {"26b-a4b", 10240, 200ull << 20},
        {"31b", 40960, 800ull << 20},
    };

    (void)state;
    for (size_t i = 0; i < CT_LEN(want); i++)
        for (int type = CT_KV_F32; type <= CT_KV_FP8; type++) {
            const uint64_t halves = type == CT_KV_F32 ? 4 : type == CT_KV_BF16 ? 2 : 1;
            const ct_config c = geometry(want[i].name);
            const ct_engine_options o = options((ct_kv_type)type, 262144, 1);
            ct_plan p;

            test_ok(ct_plan_make(&p, &c, CT_STORAGE_BF16, &o, &err), &err);
            assert_int_equal(p.global_token, want[i].token * halves / 2);
            assert_int_equal(p.global_token_unfolded, 2 * p.global_token);
            assert_int_equal(p.kv.global, 262144 * p.global_token);
            assert_int_equal(p.sliding_window, want[i].window * halves / 2);
            assert_int_equal(p.total, ct_weight_sizes_bytes(&p.weights) + p.kv.global +
                                          p.kv.sliding + p.workspace + p.sampling);
        }
}

static void the_largest_fit_fits_and_one_more_does_not(void **state)
{
    static const uint64_t memory[] = {20ull << 30, 24ull << 30, 80ull << 30, 141ull << 30};
    const ct_config c = geometry("31b");

    (void)state;
    for (size_t i = 0; i < CT_LEN(memory); i++) {
        ct_engine_options o = options(CT_KV_BF16, 0, 0);
        uint32_t slots;
        ct_plan p;

        test_ok(ct_plan_fit(&slots, &c, CT_STORAGE_Q4_0, &o, 8192, memory[i], &err), &err);
        for (uint32_t more = 0; more < 2; more++) {
            o = options(CT_KV_BF16, 8192, slots + more);
            if (o.slots == 0)
                continue;
            test_ok(ct_plan_make(&p, &c, CT_STORAGE_Q4_0, &o, &err), &err);
            assert_int_equal(p.total <= memory[i], more == 0);
            assert_int_equal(ct_plan_check(&p, memory[i], &err), more ? CT_ELIMIT : CT_OK);
        }
    }
    /* The weights alone are too much. */
    {
        const ct_engine_options o = options(CT_KV_BF16, 0, 0);
        uint32_t slots;

        test_ok(ct_plan_fit(&slots, &c, CT_STORAGE_BF16, &o, 4096, 24ull << 30, &err), &err);
        assert_int_equal(slots, 0);
    }
}

static void what_does_not_fit_is_refused_with_the_figures(void **state)
{
    const ct_config c = geometry("12b");
    const ct_engine_options o = options(CT_KV_BF16, 262144, 4);
    char total[32];
    ct_plan p;

    (void)state;
    test_ok(ct_plan_make(&p, &c, CT_STORAGE_BF16, &o, &err), &err);
    assert_int_equal(ct_plan_check(&p, 12345678, &err), CT_ELIMIT);
    snprintf(total, sizeof total, "%llu", (unsigned long long)p.total);
    assert_non_null(strstr(err.text, total));
    assert_non_null(strstr(err.text, "12345678"));
    assert_non_null(strstr(err.text, "262144"));
    assert_non_null(strstr(err.text, "23814700640"));
}

static void more_than_the_model_serves_is_refused(void **state)
{
    const ct_config c = geometry("12b");
    const ct_engine_options o = options(CT_KV_BF16, 262145, 1);
    ct_plan p;

    (void)state;
    assert_int_equal(ct_plan_make(&p, &c, CT_STORAGE_BF16, &o, &err), CT_EINVAL);
    assert_non_null(strstr(err.text, "262145"));
    assert_non_null(strstr(err.text, "262144"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_cache_weighs_what_the_geometry_says),
        cmocka_unit_test(the_largest_fit_fits_and_one_more_does_not),
        cmocka_unit_test(what_does_not_fit_is_refused_with_the_figures),
        cmocka_unit_test(more_than_the_model_serves_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
