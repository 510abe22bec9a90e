/* Sizes of the published models, against the figures that are published or that follow
 * from the published lists of tensors. */
#include "format/geometry.h"
#include "model/weight_sizes.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static ct_weight_sizes sizes(const char *name, ct_storage storage)
{
    ct_config c;
    ct_weight_sizes s;
    ct_error err;

    assert_int_equal(ct_geometry_config(&c, ct_str_of(name), &err), CT_OK);
    assert_int_equal(ct_weight_sizes_of(&s, &c, storage, &err), CT_OK);
    return s;
}

static void test_bf16_totals_are_the_published_ones(void **state)
{
    static const struct {
        const char *name;
        uint64_t params, bytes;
    } want[] = {
        {"12b", 11907350320, 23814700640},
        {"26b-a4b", 25233141790, 50466283580},
        {"31b", 30697345340, 61394690680},
    };

    (void)state;
    for (size_t i = 0; i < sizeof want / sizeof *want; i++) {
        ct_weight_sizes s = sizes(want[i].name, CT_STORAGE_BF16);

        assert_int_equal(ct_weight_sizes_params(&s), want[i].params);
        assert_int_equal(ct_weight_sizes_bytes(&s), want[i].bytes);
        s = sizes(want[i].name, CT_STORAGE_CONFIG);
        assert_int_equal(ct_weight_sizes_bytes(&s), want[i].bytes);
    }
}

static void test_parts_follow_from_the_shapes(void **state)
{
    ct_weight_sizes s = sizes("26b-a4b", CT_STORAGE_NVFP4);
    const uint64_t expert = 3ull * 704 * 2816;

    (void)state;
    assert_int_equal(s.params[CT_PART_EMBEDDING], 262144ull * 2816);
    assert_int_equal(s.params[CT_PART_MLP], 30ull * 3 * 2112 * 2816);
    assert_int_equal(s.params[CT_PART_EXPERTS], 30 * 128 * expert);
    /* Half a byte a number, a scale for 16, a multiplier a matrix. */
    assert_int_equal(s.bytes[CT_PART_EXPERTS], 30 * 128 * (expert / 2 + expert / 16 + 3 * 4));
    assert_int_equal(s.bytes[CT_PART_MLP], 2 * s.params[CT_PART_MLP]);
    /* 25 sliding layers with q, k, v, o and 5 global ones without v. */
    assert_int_equal(s.params[CT_PART_ATTENTION], 25ull * 2816 * (4096 + 2048 + 2048 + 4096) +
                                                      5ull * 2816 * (8192 + 1024 + 8192));
}

static void test_gguf_types_weigh_by_block(void **state)
{
    ct_weight_sizes q4 = sizes("31b", CT_STORAGE_Q4_0), q8 = sizes("31b", CT_STORAGE_Q8_0);
    uint64_t matrices = ct_weight_sizes_params(&q4) - q4.params[CT_PART_OTHER];

    (void)state;
    assert_int_equal(ct_weight_sizes_bytes(&q4), matrices / 32 * 18 + 4 * q4.params[CT_PART_OTHER]);
    assert_int_equal(ct_weight_sizes_bytes(&q8), matrices / 32 * 34 + 4 * q8.params[CT_PART_OTHER]);
}

static void test_rows_that_are_no_whole_blocks_are_refused(void **state)
{
    ct_config c;
    ct_weight_sizes s;
    ct_error err;

    (void)state;
    assert_int_equal(ct_geometry_config(&c, CT_STR("12b"), &err), CT_OK);
    c.hidden = 3848;
    assert_int_equal(ct_weight_sizes_of(&s, &c, CT_STORAGE_Q4_0, &err), CT_EUNSUPPORTED);
    assert_non_null(strstr(err.text, "3848"));
    assert_non_null(strstr(err.text, "32"));
}

static void test_an_unknown_geometry_is_named(void **state)
{
    ct_config c;
    ct_error err;

    (void)state;
    assert_int_equal(ct_geometry_config(&c, CT_STR("27b"), &err), CT_EINVAL);
    assert_non_null(strstr(err.text, "27b"));
    assert_non_null(strstr(err.text, "26b-a4b"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bf16_totals_are_the_published_ones),
        cmocka_unit_test(test_parts_follow_from_the_shapes),
        cmocka_unit_test(test_gguf_types_weigh_by_block),
        cmocka_unit_test(test_rows_that_are_no_whole_blocks_are_refused),
        cmocka_unit_test(test_an_unknown_geometry_is_named),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
