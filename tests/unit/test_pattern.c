/* Module-name patterns: the two writers' meanings, and bounded work. */
#include "support.h"

#include "base/checked.h"
#include "format/pattern.h"

static ct_arena g_arena;

static bool match(const char *pattern, const char *name)
{
    const ct_pattern *p;
    const char *why = ct_pattern_check(ct_str_of(pattern));

    g_arena.used_bytes = 0;
    if (why)
        fail_msg("%s: %s", pattern, why);
    p = ct_pattern_compile(ct_str_of(pattern), &g_arena);
    assert_non_null(p);
    return ct_pattern_match(p, ct_str_of(name));
}

static void matches_as_the_writers_mean(void **state)
{
    static const struct {
        const char *pattern, *name;
        bool want;
    } row[] = {
        {"lm_head", "lm_head", true},
        {"lm_head", "lm_head2", false},
        {"a.b*", "a.b", true},
        {"a.b*", "a.b.c", true},
        {"a.b*", "xa.b", false},
        {"*router*", "layers.0.router.proj", true},
        {"a?c", "abc", true},
        {"a?c", "ac", false},
        {"*a*b", "aXbXab", true},
        {"*a*b", "aXbXa", false},
        {"a+b", "a+b", true},
        {"re:lm_head", "lm_head.tail", true}, /* bound at the start only */
        {"re:lm_head", "x.lm_head", false},
        {"re:lm_head$", "lm_head.tail", false},
        {"re:.*mlp\\.(gate|up)_proj$", "layers.1.mlp.up_proj", true},
        {"re:.*mlp\\.(gate|up)_proj$", "layers.1.mlp.down_proj", false},
        {"re:.*mlp\\.(?:gate|up|down)_proj$", "layers.1.mlp.down_proj", true},
        {"re:^layers\\.[0-9]+\\.x", "layers.123.x", true},
        {"re:^layers\\.[0-9]+\\.x", "layers..x", false},
        {"re:layers\\.\\d+\\.", "layers.7.", true},
        {"re:[^a]b", "ab", false},
        {"re:[^a]b", "cb", true},
        {"re:[]a]+$", "]a]", true},
        {"re:[a-]+$", "a-a", true},
        {"re:ab?c", "ac", true},
        {"re:(ab)*c", "ababc", true},
        {"re:(ab)+c", "c", false},
        {"re:(a|b|)c", "c", true},
        {"re:a.*?b", "axxb", true},
        {"re:()*", "", true},
        {"re:(a*)*b", "aaab", true},
        {"re:a\\.b", "axb", false},
        {"re:\\w+\\s", "ab_1 ", true},
        {"re:", "anything", true},
    };

    (void)state;
    for (size_t i = 0; i < CT_LEN(row); i++)
        if (match(row[i].pattern, row[i].name) != row[i].want)
            fail_msg("%s on %s: must be %d", row[i].pattern, row[i].name, row[i].want);
}

static void refuses_what_it_cannot_mean(void **state)
{
    static const char *const row[] = {
        "",         "re:(",    "re:)",
        "re:a)",    "re:[a",   "re:*a",
        "re:a**",   "re:a{2}", "re:(?=a)",
        "re:(?!a)", "re:\\b",  "re:\\1",
        "re:[z-a]", "re:a|*",  "re:\\",
        "re:[\\",   "re:a+*",  "re:{",
        "re:(?:",   "re:(?",   "re:(((((((((((((((((a)))))))))))))))))",
    };

    (void)state;
    for (size_t i = 0; i < CT_LEN(row); i++)
        if (!ct_pattern_check(ct_str_of(row[i])))
            fail_msg("accepted: %s", row[i]);
}

/* Exponential in a backtracking matcher. */
static void takes_linear_time(void **state)
{
    char name[4001];

    (void)state;
    memset(name, 'a', 4000);
    name[4000] = '\0';
    assert_false(match("re:(a|a)*(a|a)*(a*)*(a+a+)+b", name));
    assert_false(match("*a*a*a*a*a*a*a*a*a*a*b", name));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(matches_as_the_writers_mean),
        cmocka_unit_test(refuses_what_it_cannot_mean),
        cmocka_unit_test(takes_linear_time),
    };
    ct_error err;
    int failed;

    if (ct_arena_init(&g_arena, (size_t)1 << 20, &err))
        return 1;
    failed = cmocka_run_group_tests(tests, NULL, NULL);
    ct_arena_deinit(&g_arena);
    return failed;
}
