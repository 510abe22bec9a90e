/* text/replay_store: what is found, what goes first, and how much is kept. */
#include "support.h"

#include <string.h>

#include "text/replay_store.h"
#include "text/value_canon.h"

#define TURN_BYTES 10000

static ct_replay_key key_of(const char *before, const char *message, const char *thought)
{
    return (ct_replay_key){.hash = ct_replay_hash(ct_replay_hash_start(), before, strlen(before)),
                           .before = ct_str_of(before),
                           .message = ct_str_of(message),
                           .thought = ct_str_of(thought)};
}

static void put(ct_replay_store *s, const char *before, const char *message, const char *thought,
                uint32_t id)
{
    static uint32_t ids[TURN_BYTES / 4];
    ct_replay_key key = key_of(before, message, thought);
    ct_replay_turn t = {
        .prompt = ids, .n_prompt = TURN_BYTES / 4 - 1, .generated = &id, .n_generated = 1};

    ct_replay_store_put(s, &key, &t);
}

/* The last id of the turn that is found, or 0. */
static uint32_t find(ct_replay_store *s, const char *before, const char *message,
                     const char *thought)
{
    ct_replay_key key = key_of(before, message, thought);
    ct_ids out = {0};
    size_t n_prompt;
    ct_error err;
    uint32_t id = 0;
    bool found;

    test_ok(ct_replay_store_find(s, &key, &out, &n_prompt, &found, &err), &err);
    if (found) {
        assert_int_equal(n_prompt, out.n - 1);
        id = out.id[out.n - 1];
    }
    ct_ids_deinit(&out);
    return id;
}

static ct_replay_store *create(size_t cap_bytes)
{
    ct_replay_store *s;
    ct_error err;

    test_ok(ct_replay_store_create(&s, cap_bytes, &err), &err);
    return s;
}

static void every_part_of_a_key_counts(void **state)
{
    ct_replay_store *s = create(10 * TURN_BYTES);

    (void)state;
    put(s, "b", "m", "t", 1);
    put(s, "b", "n", "", 2);
    put(s, "c", "m", "", 3);
    assert_int_equal(find(s, "b", "m", "t"), 1);
    assert_int_equal(find(s, "b", "m", ""), 1); /* a thought that is not sent back */
    assert_int_equal(find(s, "b", "m", "u"), 0);
    assert_int_equal(find(s, "b", "n", ""), 2);
    assert_int_equal(find(s, "c", "m", ""), 3);
    assert_int_equal(find(s, "c", "n", ""), 0);
    put(s, "b", "m", "t", 4); /* the same turn once more */
    assert_int_equal(find(s, "b", "m", "t"), 4);
    assert_int_equal(ct_replay_store_stats(s).n_turns, 3);
    ct_replay_store_destroy(s);
}

static void the_least_recently_used_turn_goes_first(void **state)
{
    ct_replay_store *s = create(3 * TURN_BYTES + 1000);

    (void)state;
    put(s, "a", "m", "", 1);
    put(s, "b", "m", "", 2);
    put(s, "c", "m", "", 3);
    assert_int_equal(find(s, "a", "m", ""), 1);
    put(s, "d", "m", "", 4);
    assert_int_equal(find(s, "b", "m", ""), 0);
    assert_int_equal(find(s, "a", "m", ""), 1);
    assert_int_equal(find(s, "c", "m", ""), 3);
    assert_int_equal(find(s, "d", "m", ""), 4);
    assert_int_equal(ct_replay_store_stats(s).n_evicted, 1);
    ct_replay_store_destroy(s);
}

static void bytes_are_bounded(void **state)
{
    ct_replay_store *s = create(5 * TURN_BYTES);
    char before[16];

    (void)state;
    for (int i = 0; i < 1000; i++) {
        snprintf(before, sizeof before, "%d", i);
        put(s, before, "m", "", 1);
        assert_true(ct_replay_store_stats(s).used_bytes <= 5 * TURN_BYTES);
    }
    assert_int_equal(ct_replay_store_stats(s).n_turns, 4);
    ct_replay_store_destroy(s);
    s = create(TURN_BYTES / 2); /* a turn that does not fit is not kept */
    put(s, "a", "m", "", 1);
    assert_int_equal(ct_replay_store_stats(s).n_turns, 0);
    assert_int_equal(ct_replay_store_stats(s).used_bytes, 0);
    ct_replay_store_destroy(s);
    ct_replay_store_destroy(NULL);
}

/* ---- canonical form ---- */

static void canon(ct_buf *out, const char *json, ct_arena *a)
{
    const ct_value *v;
    ct_error err;

    ct_buf_init(out, 10000);
    test_ok(ct_value_parse(&v, "value", ct_str_of(json), a, &err), &err);
    ct_value_put_canon(out, v);
    assert_false(out->failed);
}

static bool alike(const char *x, const char *y)
{
    ct_arena a = {0};
    ct_error err;
    ct_buf p, q;
    bool same;

    test_ok(ct_arena_init(&a, 1 << 20, &err), &err);
    canon(&p, x, &a);
    canon(&q, y, &a);
    same = ct_str_eq(ct_buf_str(&p), ct_buf_str(&q));
    ct_buf_deinit(&p);
    ct_buf_deinit(&q);
    ct_arena_deinit(&a);
    return same;
}

static void equal_values_have_one_form(void **state)
{
    (void)state;
    assert_true(alike("{\"a\":1,\"b\":[true,null]}", "{\"b\":[true,null],\"a\":1}"));
    assert_true(alike("{\"j\":1,\"i\":1,\"h\":1,\"g\":1,\"f\":1,\"e\":1,\"d\":1,\"c\":1,\"b\":1}",
                      "{\"b\":1,\"c\":1,\"d\":1,\"e\":1,\"f\":1,\"g\":1,\"h\":1,\"i\":1,\"j\":1}"));
    assert_false(alike("1", "1.0"));
    assert_false(alike("\"1\"", "1"));
    assert_false(alike("[\"ab\",\"c\"]", "[\"a\",\"bc\"]"));
    assert_false(alike("[[1],2]", "[[1,2]]"));
    assert_false(alike("{\"a\":{}}", "{\"a\":[]}"));
    assert_false(alike("null", "false"));
    assert_false(alike("123456789012345678901", "123456789012345678902"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_part_of_a_key_counts),
        cmocka_unit_test(the_least_recently_used_turn_goes_first),
        cmocka_unit_test(bytes_are_bounded),
        cmocka_unit_test(equal_values_have_one_form),
    };

    return cmocka_run_group_tests_name("replay store", tests, NULL, NULL);
}
