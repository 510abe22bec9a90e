/* base/num and base/utf8: conversions, against their definitions. */
#include "support.h"

#include <math.h>

#include "base/num.h"
#include "base/utf8.h"

static void every_bf16_survives_a_round_trip(void **state)
{
    (void)state;
    for (uint32_t h = 0; h < 0x10000; h++) {
        float f = ct_bf16_f32((uint16_t)h);

        if (isnan(f))
            assert_true(isnan(ct_round_bf16(f)));
        else
            assert_int_equal(ct_f32_bf16(f), h);
    }
}

static void bf16_rounds_to_nearest_even(void **state)
{
    (void)state;
    assert_int_equal(ct_f32_bf16(ct_bits_f32(0x3f808000)), 0x3f80); /* tie, down to even */
    assert_int_equal(ct_f32_bf16(ct_bits_f32(0x3f818000)), 0x3f82); /* tie, up to even */
    assert_int_equal(ct_f32_bf16(ct_bits_f32(0x3f808001)), 0x3f81);
    assert_int_equal(ct_f32_bf16(ct_bits_f32(0x7f7fffff)), 0x7f80); /* overflows to infinity */
    assert_true(isnan(ct_bf16_f32(ct_f32_bf16(ct_bits_f32(0x7f800001)))));
}

static void f16_has_its_published_values(void **state)
{
    (void)state;
    assert_true(ct_f16_f32(0x3c00) == 1.0f && ct_f16_f32(0xc000) == -2.0f);
    assert_true(ct_f16_f32(0x7bff) == 65504.0f && ct_f16_f32(0x0400) == 0x1p-14f);
    assert_true(ct_f16_f32(0x0001) == 0x1p-24f && ct_f16_f32(0x03ff) == 1023 * 0x1p-24f);
    assert_true(isinf(ct_f16_f32(0x7c00)) && isnan(ct_f16_f32(0x7e00)));
    assert_true(signbit(ct_f16_f32(0x8000)));
}

/* Every value, and the midpoint to the next: to the even one of the two. */
static void f16_rounds_to_nearest_even(void **state)
{
    (void)state;
    for (unsigned h = 0; h < 0x7c00; h++) {
        const float here = ct_f16_f32((uint16_t)h);
        const float next = h == 0x7bff ? 65536.0f : ct_f16_f32((uint16_t)(h + 1));
        const float middle = here + (next - here) / 2;

        assert_int_equal(ct_f32_f16(here), h);
        assert_int_equal(ct_f32_f16(-here), h | 0x8000);
        assert_int_equal(ct_f32_f16(middle), h & 1 ? h + 1 : h);
        assert_int_equal(ct_f32_f16(nextafterf(middle, 0)), h);
        assert_int_equal(ct_f32_f16(nextafterf(middle, 1e9f)), h + 1);
    }
    assert_int_equal(ct_f32_f16(1e30f), 0x7c00);
    assert_int_equal(ct_f32_f16(INFINITY), 0x7c00);
    assert_true(isnan(ct_f16_f32(ct_f32_f16(NAN))));
}

static void e4m3_has_its_published_values(void **state)
{
    (void)state;
    assert_true(ct_e4m3_f32(0x38) == 1.0f);
    assert_true(ct_e4m3_f32(0x3c) == 1.5f);
    assert_true(ct_e4m3_f32(0x40) == 2.0f);
    assert_true(ct_e4m3_f32(0x7e) == 448.0f);
    assert_true(ct_e4m3_f32(0x08) == ldexpf(1, -6));
    assert_true(ct_e4m3_f32(0x01) == ldexpf(1, -9));
    assert_true(ct_e4m3_f32(0xb8) == -1.0f);
    assert_true(ct_e4m3_f32(0x00) == 0.0f);
    assert_true(isnan(ct_e4m3_f32(0x7f)) && isnan(ct_e4m3_f32(0xff)));
}

/* Nearest of all finite codes; of two as near, the one with an even last bit. */
static uint8_t e4m3_by_search(float f)
{
    uint8_t best = 0;

    for (unsigned code = 0; code < 0x7f; code++) {
        float d = fabsf(ct_e4m3_f32((uint8_t)code) - fabsf(f));
        float least = fabsf(ct_e4m3_f32(best) - fabsf(f));

        if (d < least || (d == least && (code & 1) == 0))
            best = (uint8_t)code;
    }
    return best | (signbit(f) ? 0x80 : 0);
}

static void e4m3_rounds_to_nearest_even_and_saturates(void **state)
{
    (void)state;
    for (unsigned code = 0; code < 256; code++)
        if ((code & 0x7f) != 0x7f)
            assert_int_equal(ct_f32_e4m3(ct_e4m3_f32((uint8_t)code)), code);
    /* Every value with four more bits than e4m3 has, below, within and above its range. */
    for (uint32_t bits = 0x3a000000; bits < 0x44000000; bits += 1u << 16)
        for (int by = -1; by <= 1; by++) {
            float f = ct_bits_f32(bits + (uint32_t)by);

            assert_int_equal(ct_f32_e4m3(f), e4m3_by_search(f));
            assert_int_equal(ct_f32_e4m3(-f), e4m3_by_search(-f));
        }
    assert_int_equal(ct_f32_e4m3(INFINITY), 0x7e);
    assert_int_equal(ct_f32_e4m3(-1e30f), 0xfe);
    assert_int_equal(ct_f32_e4m3(ct_bits_f32(1)), 0);
    assert_true(isnan(ct_e4m3_f32(ct_f32_e4m3(NAN))));
}

static void e2m1_has_its_sixteen_values(void **state)
{
    static const float want[8] = {0, 0.5f, 1, 1.5f, 2, 3, 4, 6};

    (void)state;
    for (uint8_t i = 0; i < 8; i++) {
        assert_true(ct_e2m1_f32(i) == want[i]);
        assert_true(ct_e2m1_f32((uint8_t)(i | 8)) == -want[i]);
        assert_true(ct_e2m1_f32((uint8_t)(i | 0xf0)) == want[i]); /* upper bits are ignored */
    }
}

static void every_code_point_survives_utf8(void **state)
{
    (void)state;
    for (uint32_t cp = 0; cp <= 0x10ffff; cp++) {
        char bytes[4];
        unsigned len, n;

        if (cp == 0xd800)
            cp = 0xe000;
        n = ct_utf8_put(bytes, cp);
        if (ct_utf8_next((ct_str){bytes, n}, 0, &len) != cp || len != n)
            fail_msg("U+%04X", cp);
        for (unsigned cut = 1; cut < n; cut++)
            if (ct_utf8_next((ct_str){bytes, cut}, 0, &len) != CT_UTF8_INVALID)
                fail_msg("U+%04X cut to %u bytes", cp, cut);
    }
}

static void malformed_utf8_is_found_at_its_place(void **state)
{
    static const struct {
        const char *text;
        size_t n, at;
    } cases[] = {
        {"ab\x80", 3, 2},           {"a\xc1\xbf", 3, 1},
        {"\xe0\x9f\xbf", 3, 0},     {"\xed\xa0\x80", 3, 0},
        {"\xf0\x8f\xbf\xbf", 4, 0}, {"\xf4\x90\x80\x80", 4, 0},
        {"\xf5\x80\x80\x80", 4, 0}, {"ok\xe2\x82", 4, 2},
        {"\xc3\xa9\xff", 3, 2},     {"fine \xe2\x82\xac", 8, 8},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_int_equal(ct_utf8_valid_prefix((ct_str){cases[i].text, cases[i].n}), cases[i].at);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_bf16_survives_a_round_trip),
        cmocka_unit_test(bf16_rounds_to_nearest_even),
        cmocka_unit_test(f16_has_its_published_values),
        cmocka_unit_test(f16_rounds_to_nearest_even),
        cmocka_unit_test(e4m3_has_its_published_values),
        cmocka_unit_test(e4m3_rounds_to_nearest_even_and_saturates),
        cmocka_unit_test(e2m1_has_its_sixteen_values),
        cmocka_unit_test(every_code_point_survives_utf8),
        cmocka_unit_test(malformed_utf8_is_found_at_its_place),
    };

    return cmocka_run_group_tests_name("num", tests, NULL, NULL);
}
