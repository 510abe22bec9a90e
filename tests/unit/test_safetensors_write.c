/* The writer's file as the reader sees it, and what is left when it is not finished. */
#include "support.h"

#include "base/map.h"
#include "format/safetensors.h"
#include "format/safetensors_write.h"

#include <dirent.h>
#include <string.h>
#include <sys/stat.h>

static ct_error err;
static char dir[64], path[128];

static int make_dir(void **state)
{
    (void)state;
    snprintf(dir, sizeof dir, "/tmp/carat-write-XXXXXX");
    assert_non_null(mkdtemp(dir));
    snprintf(path, sizeof path, "%s/out.safetensors", dir);
    return 0;
}

static unsigned count_files(void)
{
    DIR *d = opendir(dir);
    unsigned n = 0;

    assert_non_null(d);
    for (struct dirent *e = readdir(d); e; e = readdir(d))
        n += e->d_name[0] != '.';
    closedir(d);
    return n;
}

static int remove_dir(void **state)
{
    (void)state;
    unlink(path);
    return rmdir(dir);
}

static const ct_tensor shapes[] = {
    {.name = {"b\"é", 4}, .dtype = CT_DTYPE_U8, .n_dims = 1, .dim = {3}},
    {.name = {"z", 1}, .dtype = CT_DTYPE_F32, .n_dims = 2, .dim = {2, 3}},
    {.name = {"a", 1}, .dtype = CT_DTYPE_F32},
    {.name = {"e", 1}, .dtype = CT_DTYPE_I64, .n_dims = 1, .dim = {0}},
};

static void written_tensors_are_read_back(void **state)
{
    const float z[6] = {1, 2, 3, 4, 5, 6}, a = -1.5f;
    const ct_tensor *t;
    ct_tensor_writer *w;
    ct_checkpoint *c;

    (void)state;
    test_ok(ct_tensor_writer_create(&w, path, shapes, 4, &err), &err);
    /* Any order, in pieces. */
    test_ok(ct_tensor_writer_put(w, 1, 3 * sizeof *z, z + 3, 3 * sizeof *z, &err), &err);
    test_ok(ct_tensor_writer_put(w, 0, 0, "xyz", 3, &err), &err);
    test_ok(ct_tensor_writer_put(w, 1, 0, z, 3 * sizeof *z, &err), &err);
    test_ok(ct_tensor_writer_put(w, 2, 0, &a, sizeof a, &err), &err);
    assert_true(access(path, F_OK) != 0); /* not under its name yet */
    test_ok(ct_tensor_writer_finish(w, &err), &err);
    ct_tensor_writer_destroy(w);
    assert_int_equal(count_files(), 1);

    test_ok(ct_checkpoint_open_file(&c, path, &err), &err);
    assert_int_equal(ct_checkpoint_count(c), 4);
    t = ct_checkpoint_find(c, CT_STR("z"));
    assert_int_equal(t->dtype, CT_DTYPE_F32);
    assert_int_equal(t->n_dims, 2);
    assert_int_equal(t->dim[1], 3);
    assert_memory_equal(t->data, z, sizeof z);
    t = ct_checkpoint_find(c, CT_STR("a"));
    assert_int_equal(t->n_dims, 0);
    assert_memory_equal(t->data, &a, sizeof a);
    t = ct_checkpoint_find(c, CT_STR("b\"é"));
    assert_memory_equal(t->data, "xyz", 3);
    assert_int_equal(ct_checkpoint_find(c, CT_STR("e"))->n_bytes, 0);
    ct_checkpoint_close(c);
}

static void the_layout_is_the_official_one(void **state)
{
    static const char header[] = "{\"a\":{\"dtype\":\"F32\",\"shape\":[],\"data_offsets\":[0,4]},"
                                 "\"b\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[4,6]}}";
    const ct_tensor tensor[] = {
        {.name = {"b", 1}, .dtype = CT_DTYPE_U8, .n_dims = 1, .dim = {2}},
        {.name = {"a", 1}, .dtype = CT_DTYPE_F32},
    };
    const size_t n = sizeof header - 1, padded = (n + 7) / 8 * 8;
    ct_tensor_writer *w;
    ct_map map;

    (void)state;
    test_ok(ct_tensor_writer_create(&w, path, tensor, 2, &err), &err);
    test_ok(ct_tensor_writer_finish(w, &err), &err);
    ct_tensor_writer_destroy(w);
    test_ok(ct_map_open(&map, path, &err), &err);
    assert_int_equal(map.size, 8 + padded + 6);
    assert_int_equal(map.base[0] | map.base[1] << 8, padded);
    assert_memory_equal(map.base + 8, header, n);
    for (size_t i = n; i < padded; i++)
        assert_int_equal(map.base[8 + i], ' ');
    ct_map_close(&map);
}

static void an_unfinished_file_leaves_nothing(void **state)
{
    ct_tensor_writer *w;

    (void)state;
    test_ok(ct_tensor_writer_create(&w, path, shapes, 4, &err), &err);
    assert_int_equal(count_files(), 1);
    ct_tensor_writer_destroy(w);
    assert_int_equal(count_files(), 0);
}

static void mistakes_are_refused(void **state)
{
    const ct_tensor twice[2] = {shapes[2], shapes[2]};
    const ct_tensor huge = {
        .name = {"h", 1}, .dtype = CT_DTYPE_F32, .n_dims = 2, .dim = {1ull << 40, 1ull << 40}};
    ct_tensor_writer *w;

    (void)state;
    assert_int_equal(ct_tensor_writer_create(&w, path, twice, 2, &err), CT_EINVAL);
    assert_non_null(strstr(err.text, "'a'"));
    assert_int_equal(ct_tensor_writer_create(&w, path, &huge, 1, &err), CT_ELIMIT);
    assert_int_equal(ct_tensor_writer_create(&w, dir, shapes, 1, &err), CT_EINVAL);
    assert_int_equal(ct_tensor_writer_create(&w, "/nowhere/x", shapes, 1, &err), CT_EIO);
    assert_int_equal(count_files(), 0);
}

#define IN_DIR(test) cmocka_unit_test_setup_teardown(test, make_dir, remove_dir)

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_DIR(written_tensors_are_read_back),
        IN_DIR(the_layout_is_the_official_one),
        IN_DIR(an_unfinished_file_leaves_nothing),
        IN_DIR(mistakes_are_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
