/* engine/stop: the first complete match, wherever the pieces cut the text. */
#include "support.h"

#include "alloc_count.h"

#include <string.h>

#include "base/checked.h"
#include "engine/stop.h"

static ct_stop *make(const ct_str *strings, size_t n, bool include)
{
    ct_stop *s = NULL;
    ct_error err;

    test_ok(ct_stop_create(&s, strings, n, include, &err), &err);
    return s;
}

static bool ends_with(const char *text, size_t n, ct_str s)
{
    return n >= s.n && memcmp(text + n - s.n, s.p, s.n) == 0;
}

/* By definition: the state after n bytes of text, armed from byte `armed` on. */
static ct_stop_progress naive(const ct_str *strings, size_t n_strings, bool include,
                              const char *text, size_t n, size_t armed)
{
    size_t held = 0;

    for (size_t at = 1; at <= n; at++) {
        size_t best = n_strings;

        for (size_t i = 0; i < n_strings && at > armed; i++)
            if (ends_with(text, at, strings[i]) &&
                (best == n_strings || strings[i].n > strings[best].n))
                best = i;
        if (best < n_strings)
            return (ct_stop_progress){.found = true,
                                      .which = (uint32_t)best,
                                      .safe = include ? at : at - strings[best].n};
    }
    for (size_t i = 0; i < n_strings; i++)
        for (size_t k = 1; k < strings[i].n; k++)
            if (!include && k > held && ends_with(text, n, (ct_str){strings[i].p, k}))
                held = k;
    return (ct_stop_progress){.safe = n - held};
}

static void check_same(ct_stop_progress got, ct_stop_progress want)
{
    assert_int_equal(got.safe, want.safe);
    assert_int_equal(got.found, want.found);
    assert_int_equal(got.which, want.which);
}

/* --- table ----------------------------------------------------------------------- */

typedef struct row {
    const char *stop[3];
    const char *pieces[6];
    uint64_t safe[6]; /* after each piece */
    bool found;
    uint32_t which;
} row;

static void matches_across_pieces(void **state)
{
    static const row rows[] = {
        {{"END"}, {"abc", "E", "N", "D", "x"}, {3, 3, 3, 3, 3}, true, 0},
        {{"END"}, {"abcE", "Nx"}, {3, 6}, false, 0},
        {{"END"}, {"EEND"}, {1}, true, 0},
        {{"aab"}, {"a", "a", "a", "a", "b"}, {0, 0, 1, 2, 2}, true, 0},
        {{"abab"}, {"aba", "c", "abab"}, {0, 4, 4}, true, 0},
        /* The first to be complete, and the longest of those. */
        {{"b", "abc"}, {"abc"}, {1}, true, 0},
        {{"c", "bc", "abc"}, {"xab", "c"}, {1, 1}, true, 2},
        {{"c", "bc", "xbc"}, {"ab", "c"}, {1, 1}, true, 1},
        {{"x", "x"}, {"x"}, {0}, true, 0},
        /* Empty pieces, and characters of several bytes. */
        {{"\u00e9t\u00e9"}, {"", "l'", "\u00e9", "t", "\u00e9"}, {0, 2, 2, 2, 2}, true, 0},
        {{"\u00e9"}, {"\u00e8", "\u00e9"}, {2, 2}, true, 0},
        {{NULL}, {"any", "thing"}, {3, 8}, false, 0},
    };

    (void)state;
    for (size_t i = 0; i < CT_LEN(rows); i++) {
        ct_str strings[3];
        ct_stop_progress got = {0};
        ct_stop *s;
        size_t n = 0;

        for (; n < 3 && rows[i].stop[n]; n++)
            strings[n] = ct_str_of(rows[i].stop[n]);
        s = make(strings, n, false);
        for (size_t j = 0; j < 6 && rows[i].pieces[j]; j++) {
            got = ct_stop_feed(s, ct_str_of(rows[i].pieces[j]), true);
            if (got.safe != rows[i].safe[j])
                fail_msg("row %zu, piece %zu: %llu safe, want %llu", i, j,
                         (unsigned long long)got.safe, (unsigned long long)rows[i].safe[j]);
        }
        assert_int_equal(got.found, rows[i].found);
        assert_int_equal(got.which, rows[i].which);
        ct_stop_destroy(s);
    }
}

static void an_included_stop_string_holds_nothing_back(void **state)
{
    const ct_str stop = CT_STR("END");
    ct_stop *s = make(&stop, 1, true);

    (void)state;
    check_same(ct_stop_feed(s, CT_STR("aEN"), true), (ct_stop_progress){.safe = 3});
    check_same(ct_stop_feed(s, CT_STR("Dxyz"), true), (ct_stop_progress){.safe = 4, .found = true});
    ct_stop_destroy(s);
}

static void a_match_before_it_is_armed_is_passed_over(void **state)
{
    const ct_str stop = CT_STR("aa");
    ct_stop *s = make(&stop, 1, false);

    (void)state;
    check_same(ct_stop_feed(s, CT_STR("aa"), false), (ct_stop_progress){.safe = 1});
    check_same(ct_stop_feed(s, CT_STR("a"), true), (ct_stop_progress){.safe = 1, .found = true});
    ct_stop_destroy(s);
}

/* --- against naive search -------------------------------------------------------- */

static uint32_t rnd(uint64_t *state, uint32_t n)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)((*state >> 32) * n >> 32);
}

static void random_text(uint64_t *state, char *out, size_t n)
{
    uint32_t letters = 1 + rnd(state, 3);

    for (size_t i = 0; i < n; i++)
        out[i] = (char)('a' + rnd(state, letters));
}

/* Every prefix of the text, and random cuts with them. */
static void random_texts_equal_naive_search(void **state)
{
    uint64_t rng = 4;

    (void)state;
    for (int repeat = 0; repeat < 4000; repeat++) {
        char text[64], words[4][12];
        ct_str strings[4];
        size_t n = rnd(&rng, 5), len = rnd(&rng, sizeof text);
        size_t armed = rnd(&rng, 3) ? 0 : rnd(&rng, 20);
        bool include = rnd(&rng, 4) == 0;
        ct_stop_progress last = {0};
        ct_stop *s;

        random_text(&rng, text, len);
        for (size_t i = 0; i < n; i++) {
            strings[i] = (ct_str){words[i], 1 + rnd(&rng, 8)};
            random_text(&rng, words[i], strings[i].n);
        }
        s = make(strings, n, include);
        for (size_t at = 0; at < len;) {
            size_t piece = 1 + (rnd(&rng, 2) ? 0 : rnd(&rng, 6));
            size_t end = ct_min_size(len, at + piece);
            ct_stop_progress got, want;

            if (at < armed) /* one piece is armed or not as a whole */
                end = ct_min_size(end, armed);
            got = ct_stop_feed(s, (ct_str){text + at, end - at}, at >= armed);
            want = naive(strings, n, include, text, end, armed);
            check_same(got, want);
            assert_true(got.safe >= last.safe);
            last = got;
            at = end;
        }
        ct_stop_destroy(s);
    }
}

/* Held text begins with the first byte of a character. */
static void text_is_held_between_characters(void **state)
{
    const char *text = "na\u00efve \U0001f600\U0001f601 \u65e5\u672c\u8a9e \U0001f600!";
    const ct_str stop = CT_STR("\U0001f600\U0001f603");
    ct_stop *s = make(&stop, 1, false);

    (void)state;
    for (size_t at = 0; text[at];) {
        size_t n = 1;
        ct_stop_progress got;

        while (((unsigned char)text[at + n] & 0xc0) == 0x80)
            n++;
        got = ct_stop_feed(s, (ct_str){text + at, n}, true);
        at += n;
        assert_true(((unsigned char)text[got.safe] & 0xc0) != 0x80);
    }
    ct_stop_destroy(s);
}

/* --- limits ---------------------------------------------------------------------- */

static void check_refusal(const ct_str *strings, size_t n, ct_status want, const char *text)
{
    ct_stop *s;
    ct_error err;

    assert_int_equal(ct_stop_create(&s, strings, n, false, &err), want);
    assert_string_equal(err.text, text);
}

static void limits_are_named(void **state)
{
    static char big[CT_MAX_STOP_BYTES + 1];
    ct_str many[CT_MAX_STOP_STRINGS + 1];
    ct_stop *s;

    (void)state;
    memset(big, 'x', sizeof big);
    for (size_t i = 0; i < CT_LEN(many); i++)
        many[i] = CT_STR("a");
    check_refusal(many, CT_LEN(many), CT_ELIMIT, "stop: 17 strings, at most 16");
    many[1] = (ct_str){0};
    check_refusal(many, 2, CT_EINVAL, "stop[1]: an empty string stops nothing");
    many[1] = (ct_str){big, sizeof big};
    check_refusal(many, 2, CT_ELIMIT, "stop[1]: 1025 bytes, at most 1024");
    many[1] = CT_STR("ab\xff");
    check_refusal(many, 2, CT_EINVAL, "stop[1]: byte 2 of 3 is not UTF-8");
    ct_stop_destroy(NULL);

    many[0] = (ct_str){big, CT_MAX_STOP_BYTES};
    s = make(many, 1, false);
    check_same(ct_stop_feed(s, (ct_str){big, CT_MAX_STOP_BYTES - 1}, true),
               (ct_stop_progress){.safe = 0});
    check_same(ct_stop_feed(s, CT_STR("x"), true), (ct_stop_progress){.found = true});
    ct_stop_destroy(s);
}

static void feeding_does_not_allocate(void **state)
{
    const ct_str strings[] = {CT_STR("stop"), CT_STR("top")};
    ct_stop *s = make(strings, 2, false);
    size_t count;

    (void)state;
    alloc_count_start();
    for (int i = 0; i < 100; i++)
        ct_stop_feed(s, CT_STR("sto"), true);
    ct_stop_feed(s, CT_STR("p"), true);
    count = alloc_count;
    assert_int_equal(count, 0);
    ct_stop_destroy(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(matches_across_pieces),
        cmocka_unit_test(an_included_stop_string_holds_nothing_back),
        cmocka_unit_test(a_match_before_it_is_armed_is_passed_over),
        cmocka_unit_test(random_texts_equal_naive_search),
        cmocka_unit_test(text_is_held_between_characters),
        cmocka_unit_test(limits_are_named),
        cmocka_unit_test(feeding_does_not_allocate),
    };

    return cmocka_run_group_tests_name("stop", tests, NULL, NULL);
}
