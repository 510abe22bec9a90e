/* base: status, checked arithmetic, arena, strings, file mapping, log. */
#include "support.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "base/arena.h"
#include "base/checked.h"
#include "base/log.h"
#include "base/map.h"
#include "base/path.h"
#include "base/str.h"

static void an_error_names_what_was_said(void **state)
{
    ct_error err;

    (void)state;
    assert_int_equal(ct_fail(&err, CT_EIO, "%s: %d of %d", "file", 3, 4), CT_EIO);
    assert_string_equal(err.text, "file: 3 of 4");
    ct_error_prefix(&err, "layer %d: ", 7);
    assert_string_equal(err.text, "layer 7: file: 3 of 4");
    assert_int_equal(ct_fail(NULL, CT_ELIMIT, "nobody listens"), CT_ELIMIT);
}

static void a_message_that_is_too_long_is_marked_as_cut(void **state)
{
    static char long_text[2 * CT_ERROR_BYTES];
    ct_error err;

    (void)state;
    memset(long_text, 'x', sizeof long_text - 1);
    ct_fail(&err, CT_EFORMAT, "%s", long_text);
    assert_int_equal(strlen(err.text), CT_ERROR_BYTES - 1);
    assert_string_equal(err.text + CT_ERROR_BYTES - 4, "...");
    ct_error_prefix(&err, "head: ");
    assert_int_equal(strlen(err.text), CT_ERROR_BYTES - 1);
    assert_memory_equal(err.text, "head: xxx", 9);
}

static void checked_arithmetic_refuses_what_does_not_fit(void **state)
{
    size_t out = 7;

    (void)state;
    assert_false(ct_add_size(&out, SIZE_MAX, 1));
    assert_false(ct_mul_size(&out, SIZE_MAX / 2 + 1, 2));
    assert_int_equal(out, 7);
    assert_true(ct_add_size(&out, SIZE_MAX - 1, 1));
    assert_true(out == SIZE_MAX);
    assert_true(ct_mul_size(&out, 3, 5));
    assert_int_equal(out, 15);
}

static void an_arena_ends_at_its_cap(void **state)
{
    ct_arena a = {0};
    ct_error err;
    ct_arena_mark mark;
    unsigned char *p;

    (void)state;
    test_ok(ct_arena_init(&a, 4096, &err), &err);
    assert_non_null(ct_arena_alloc(&a, 1, 1));
    p = ct_arena_alloc(&a, 100, CT_ALIGN);
    assert_int_equal((uintptr_t)p % CT_ALIGN, 0);
    mark = ct_arena_save(&a);
    p = ct_arena_alloc(&a, 3000, 1);
    assert_non_null(p);
    memset(p, 0xff, 3000);
    assert_null(ct_arena_alloc(&a, 3000, 1));
    assert_null(ct_arena_alloc(&a, SIZE_MAX, CT_ALIGN));
    assert_null(ct_arena_zalloc(&a, SIZE_MAX / 2, 3));
    assert_null(ct_arena_copy(&a, "x", SIZE_MAX));
    ct_arena_rewind(&a, mark);
    p = ct_arena_zalloc(&a, 750, 4);
    for (size_t i = 0; i < 3000; i++)
        assert_int_equal(p[i], 0);
    ct_arena_deinit(&a);
    assert_null(a.base);
    ct_arena_deinit(&a);
}

static void a_copy_ends_with_nul(void **state)
{
    ct_arena a = {0};
    ct_error err;

    (void)state;
    test_ok(ct_arena_init(&a, 4096, &err), &err);
    assert_string_equal(ct_arena_copy(&a, "carat", 3), "car");
    assert_string_equal(ct_arena_copy(&a, NULL, 0), "");
    ct_arena_deinit(&a);
}

static void strings_compare_as_bytes(void **state)
{
    (void)state;
    assert_true(ct_str_eq((ct_str){NULL, 0}, CT_STR("")));
    assert_true(ct_str_is(CT_STR("turn"), "turn"));
    assert_false(ct_str_is(CT_STR("turn"), "tur"));
    assert_true(ct_str_starts(CT_STR("turn"), "tu"));
    assert_false(ct_str_starts(CT_STR("t"), "tu"));
    assert_true(ct_str_cmp(CT_STR("a"), CT_STR("ab")) < 0);
    assert_true(ct_str_cmp(CT_STR("\xff"), CT_STR("a")) > 0);
    assert_int_equal(ct_str_cmp(CT_STR("a"), CT_STR("a")), 0);
}

static void a_buffer_stops_at_its_cap_and_says_so(void **state)
{
    ct_buf b;

    (void)state;
    ct_buf_init(&b, 1000);
    for (int i = 0; i < 100; i++)
        ct_buf_addf(&b, "%09d,", i);
    assert_int_equal(b.n, 1000);
    assert_false(b.failed);
    ct_buf_addc(&b, 'x');
    assert_true(b.failed);
    assert_int_equal(b.n, 1000);
    ct_buf_clear(&b);
    ct_buf_addz(&b, "again");
    assert_false(b.failed);
    assert_string_equal(b.p, "again");
    ct_buf_add(&b, "x", SIZE_MAX);
    assert_true(b.failed);
    ct_buf_deinit(&b);
}

static void a_file_is_mapped_whole(void **state)
{
    char path[] = "/tmp/carat-test-XXXXXX";
    int fd = mkstemp(path);
    ct_error err;
    ct_map m;

    (void)state;
    assert_true(fd >= 0);
    test_ok(ct_map_open(&m, path, &err), &err);
    assert_int_equal(m.size, 0);
    ct_map_close(&m);
    assert_int_equal(write(fd, "carat", 5), 5);
    close(fd);
    test_ok(ct_map_open(&m, path, &err), &err);
    assert_true(ct_str_is(ct_map_str(&m), "carat"));
    ct_map_close(&m);
    assert_null(m.base);
    unlink(path);
}

static void only_regular_files_are_mapped(void **state)
{
    char path[] = "/tmp/carat-fifo-XXXXXX";
    ct_error err;
    ct_map m;

    (void)state;
    assert_int_equal(ct_map_open(&m, "/tmp/no/such/file", &err), CT_EIO);
    assert_string_equal(err.text, "/tmp/no/such/file: No such file or directory");
    assert_int_equal(ct_map_open(&m, "/tmp", &err), CT_EIO);
    assert_string_equal(err.text, "/tmp: not a regular file");
    close(mkstemp(path));
    unlink(path);
    assert_int_equal(mkfifo(path, 0600), 0);
    assert_int_equal(ct_map_open(&m, path, &err), CT_EIO); /* and does not hang */
    unlink(path);
}

static void a_path_that_is_too_long_is_refused(void **state)
{
    static char dir[2 * CT_PATH_BYTES], out[CT_PATH_BYTES];
    ct_error err;

    (void)state;
    test_ok(ct_path_join(out, "models/demo", "config.json", &err), &err);
    assert_string_equal(out, "models/demo/config.json");
    memset(dir, 'd', CT_PATH_BYTES - 3);
    test_ok(ct_path_join(out, dir, "x", &err), &err);
    assert_int_equal(ct_path_join(out, dir, "xy", &err), CT_ELIMIT);
}

static void keep_line(void *ctx, ct_log_level level, const char *line)
{
    (void)level;
    ct_buf_addz(ctx, line);
    ct_buf_addc(ctx, ';');
}

static void log_lines_reach_the_sink_from_a_level_up(void **state)
{
    ct_buf b;

    (void)state;
    ct_buf_init(&b, 1000);
    ct_log(CT_LOG_WARN, "nobody listens");
    ct_log_set_sink(keep_line, &b, CT_LOG_INFO);
    ct_log(CT_LOG_DEBUG, "quiet");
    ct_log(CT_LOG_INFO, "%d layers", 6);
    ct_log(CT_LOG_WARN, "hot");
    ct_log_set_sink(NULL, NULL, CT_LOG_INFO);
    assert_string_equal(b.p, "6 layers;hot;");
    ct_buf_deinit(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_error_names_what_was_said),
        cmocka_unit_test(a_message_that_is_too_long_is_marked_as_cut),
        cmocka_unit_test(checked_arithmetic_refuses_what_does_not_fit),
        cmocka_unit_test(an_arena_ends_at_its_cap),
        cmocka_unit_test(a_copy_ends_with_nul),
        cmocka_unit_test(strings_compare_as_bytes),
        cmocka_unit_test(a_buffer_stops_at_its_cap_and_says_so),
        cmocka_unit_test(a_file_is_mapped_whole),
        cmocka_unit_test(only_regular_files_are_mapped),
        cmocka_unit_test(a_path_that_is_too_long_is_refused),
        cmocka_unit_test(log_lines_reach_the_sink_from_a_level_up),
    };

    return cmocka_run_group_tests_name("base", tests, NULL, NULL);
}
