/* safetensors: what is read, and that every lie in a header is refused by name. */
#include "maker.h"

#include "format/safetensors.h"

/* Opens header text followed by n_data zero bytes.  length < 0: the true one. */
static ct_status open_text(ct_checkpoint **out, const char *header, size_t n_data, int64_t length,
                           ct_error *err)
{
    static char bytes[8192];
    size_t n = strlen(header);
    uint64_t len = length < 0 ? n : (uint64_t)length;

    assert_true(8 + n + n_data <= sizeof bytes);
    memset(bytes, 0, sizeof bytes);
    for (int i = 0; i < 8; i++)
        bytes[i] = (char)(len >> 8 * i);
    memcpy(bytes + 8, header, n);
    return ct_checkpoint_open_memory(out, "mem", (ct_str){bytes, 8 + n + n_data}, err);
}

static void reads_names_types_shapes_and_bytes(void **state)
{
    ct_checkpoint *c;
    ct_error err;
    const ct_tensor *t;

    (void)state;
    test_ok(open_text(&c,
                      "{\"b\":{\"dtype\":\"BF16\",\"shape\":[2,3],\"data_offsets\":[4,16]},"
                      "\"__metadata__\":{\"k\":\"v\"},\"zero\":{\"data_offsets\":[16,16],"
                      "\"shape\":[0,5],\"dtype\":\"F32\"},"
                      "\"a\\u0041\":{\"dtype\":\"F32\",\"shape\":[],\"data_offsets\":[0,4]}}  \n ",
                      16, -1, &err),
            &err);
    assert_int_equal(ct_checkpoint_count(c), 3);
    t = ct_checkpoint_find(c, CT_STR("aA"));
    assert_ptr_equal(t, ct_checkpoint_at(c, 0));
    assert_int_equal(t->n_dims, 0);
    assert_int_equal(t->n_bytes, 4);
    t = ct_checkpoint_find(c, CT_STR("b"));
    assert_int_equal(t->dtype, CT_DTYPE_BF16);
    assert_int_equal(t->dim[1], 3);
    assert_ptr_equal(t->data, (const char *)ct_checkpoint_at(c, 0)->data + 4);
    assert_int_equal(ct_checkpoint_find(c, CT_STR("zero"))->n_bytes, 0);
    assert_null(ct_checkpoint_find(c, CT_STR("c")));
    ct_checkpoint_close(c);
}

static void an_empty_file_list_is_allowed(void **state)
{
    ct_checkpoint *c;
    ct_error err;

    (void)state;
    test_ok(open_text(&c, "{}", 0, -1, &err), &err);
    assert_int_equal(ct_checkpoint_count(c), 0);
    assert_null(ct_checkpoint_find(c, CT_STR("a")));
    ct_checkpoint_close(c);
}

#define BYTE_A "\"a\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[0,4]}"

static void refuses_lying_headers(void **state)
{
    static const struct {
        const char *header;
        size_t n_data;
        int64_t length;
        ct_status st;
        const char *words;
    } row[] = {
        {"", 0, 0, CT_EFORMAT, "mem|length 0|'{'"},
        {"{", 0, -1, CT_EFORMAT, "mem|length 1"},
        {"{}", 0, 3, CT_EFORMAT, "mem|length 3|2 bytes"},
        {"{}", 0, INT64_MAX, CT_EFORMAT, "9223372036854775807|100000000"},
        {"{}", 0, 100000001, CT_EFORMAT, "100000001|100000000"},
        {"{}", 0, 100000000, CT_EFORMAT, "100000000|2 bytes"},
        {" {}", 0, -1, CT_EFORMAT, "'{'"},
        {"[]", 0, -1, CT_EFORMAT, "'{'"},
        {"{" BYTE_A, 4, -1, CT_EFORMAT, "JSON"},
        {"{" BYTE_A "}x", 4, -1, CT_EFORMAT, "text after"},
        {"{" BYTE_A "," BYTE_A "}", 4, -1, CT_EFORMAT, "tensor a"},
        {"{\"a\":3}", 4, -1, CT_EFORMAT, "an object|a number"},
        {"{\"a\":{\"dtype\":\"U8\",\"shape\":[4]}}", 4, -1, CT_EFORMAT,
         "tensor a|data_offsets are missing"},
        {"{\"a\":{\"dtype\":\"U8\",\"data_offsets\":[0,4]}}", 4, -1, CT_EFORMAT, "tensor a|shape"},
        {"{\"a\":{\"shape\":[4],\"data_offsets\":[0,4]}}", 4, -1, CT_EFORMAT, "tensor a|dtype"},
        {"{\"a\":{\"dtype\":\"U8\",\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[0,4]}}", 4, -1,
         CT_EFORMAT, "tensor a|repeated|dtype"},
        {"{\"a\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[0,4],\"q\":1}}", 4, -1,
         CT_EFORMAT, "tensor a|unknown|q"},
        {"{\"a\":{\"dtype\":\"U4\",\"shape\":[4],\"data_offsets\":[0,4]}}", 4, -1, CT_EUNSUPPORTED,
         "tensor a|dtype U4"},
        {"{\"a\":{\"dtype\":8,\"shape\":[4],\"data_offsets\":[0,4]}}", 4, -1, CT_EFORMAT,
         "tensor a|dtype|a number"},
        {"{\"a\":{\"dtype\":\"U8\",\"shape\":4,\"data_offsets\":[0,4]}}", 4, -1, CT_EFORMAT,
         "tensor a|shape|a number"},
        {"{\"a\":{\"dtype\":\"U8\",\"shape\":[-4],\"data_offsets\":[0,4]}}", 4, -1, CT_EFORMAT,
         "tensor a|-4"},
        {"{\"a\":{\"dtype\":\"U8\",\"shape\":[4.0],\"data_offsets\":[0,4]}}", 4, -1, CT_EFORMAT,
         "tensor a|4.0"},
        {"{\"a\":{\"dtype\":\"U8\",\"shape\":[1,1,1,1,1,1,1,1,4],\"data_offsets\":[0,4]}}", 4, -1,
         CT_ELIMIT, "tensor a|8 dimensions"},
        {"{\"a\":{\"dtype\":\"U8\",\"shape\":[4294967296,4294967296],\"data_offsets\":[0,0]}}", 0,
         -1, CT_EFORMAT, "tensor a|overflows"},
        {"{\"a\":{\"dtype\":\"F64\",\"shape\":[2305843009213693952],\"data_offsets\":[0,0]}}", 0,
         -1, CT_EFORMAT, "tensor a|overflows"},
        {"{\"a\":{\"dtype\":\"U8\",\"shape\":[18446744073709551616],\"data_offsets\":[0,0]}}", 0,
         -1, CT_EFORMAT, "tensor a|18446744073709551616"},
        {"{\"a\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[0]}}", 4, -1, CT_EFORMAT,
         "tensor a"},
        {"{\"a\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[0,4,8]}}", 4, -1, CT_EFORMAT,
         "tensor a|more than two"},
        {"{\"a\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[4,0]}}", 4, -1, CT_EFORMAT,
         "tensor a|at 4|at 0"},
        {"{\"a\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[0,5]}}", 5, -1, CT_EFORMAT,
         "tensor a|5 bytes|need 4"},
        {"{\"a\":{\"dtype\":\"BF16\",\"shape\":[4],\"data_offsets\":[0,4]}}", 4, -1, CT_EFORMAT,
         "tensor a|4 bytes|need 8"},
        {"{" BYTE_A "}", 3, -1, CT_EFORMAT, "tensor a|byte 4|3 bytes"},
        {"{" BYTE_A "}", 5, -1, CT_EFORMAT, "byte 4|5 bytes|no tensor"},
        {"{\"a\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[1,5]}}", 5, -1, CT_EFORMAT,
         "tensor a|0 to 1"},
        {"{" BYTE_A ",\"b\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[6,8]}}", 8, -1,
         CT_EFORMAT, "tensor b|4 to 6"},
        {"{" BYTE_A ",\"b\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[2,6]}}", 6, -1,
         CT_EFORMAT, "tensor b|byte 2|tensor a|at 4"},
        {"{" BYTE_A ",\"b\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[0,4]}}", 4, -1,
         CT_EFORMAT, "tensor a|tensor b"},
        {"{" BYTE_A ",\"__metadata__\":{\"k\":1}}", 4, -1, CT_EFORMAT, "__metadata__|a number"},
        {"{" BYTE_A ",\"__metadata__\":[]}", 4, -1, CT_EFORMAT, "__metadata__|an array"},
        {"{\"__metadata__\":{},\"__metadata__\":{}}", 0, -1, CT_EFORMAT, "__metadata__|twice"},
        {"{\"\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[0,4]}}", 4, -1, CT_EFORMAT,
         "name of 0 bytes"},
        {"{\"a\\nb\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[0,4]}}", 4, -1, CT_EFORMAT,
         "control character"},
        {"{\"a\xff\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[0,4]}}", 4, -1, CT_EFORMAT,
         "UTF-8"},
    };
    ct_checkpoint *c = NULL;
    ct_error err;

    (void)state;
    for (size_t i = 0; i < CT_LEN(row); i++) {
        ct_status st = open_text(&c, row[i].header, row[i].n_data, row[i].length, &err);

        if (st != row[i].st)
            fail_msg("row %zu, %s: status %d: %s", i, row[i].header, st, st ? err.text : "opened");
        assert_message(&err, row[i].words);
        assert_null(c);
    }
}

static void refuses_every_truncation(void **state)
{
    maker m = {0};
    ct_checkpoint *c = NULL;
    ct_error err;
    ct_buf all;

    (void)state;
    maker_add(&m, CT_DTYPE_F32, 0, 0, 0, "scalar");
    maker_add(&m, CT_DTYPE_BF16, 3, 2, 0, "matrix");
    maker_bytes(&m, &all);
    test_ok(ct_checkpoint_open_memory(&c, "whole", ct_buf_str(&all), &err), &err);
    ct_checkpoint_close(c);
    for (size_t n = 0; n < all.n; n++) {
        /* A copy of exactly n bytes, so that the sanitizer sees a read past them. */
        char *part = malloc(n ? n : 1);

        assert_non_null(part);
        memcpy(part, all.p, n);
        assert_int_equal(ct_checkpoint_open_memory(&c, "cut", (ct_str){part, n}, &err), CT_EFORMAT);
        free(part);
    }
    ct_buf_deinit(&all);
    maker_deinit(&m);
}

/* Two shards a and b with one tensor each, and the index text. */
static ct_status open_sharded(ct_checkpoint **out, const char *index, ct_error *err)
{
    maker m = {0};

    maker_add(&m, CT_DTYPE_BF16, 4, 0, 0, "x.first");
    maker_file(&m, maker_path("a.safetensors"));
    m.n = 0;
    maker_add(&m, CT_DTYPE_BF16, 2, 0, 0, "x.second");
    maker_file(&m, maker_path("b.safetensors"));
    maker_deinit(&m);
    maker_write_text(maker_path("model.safetensors.index.json"), index);
    return ct_checkpoint_open(out, maker_dir, err);
}

#define MAP "\"weight_map\":{\"x.first\":\"a.safetensors\",\"x.second\":\"b.safetensors\"}"

static void joins_shards(void **state)
{
    ct_checkpoint *c;
    ct_error err;
    const ct_tensor *t;

    (void)state;
    test_ok(open_sharded(&c, "{\"metadata\":{\"total_size\":12,\"x\":[{}]}," MAP "}", &err), &err);
    assert_int_equal(ct_checkpoint_count(c), 2);
    assert_int_equal(ct_checkpoint_n_files(c), 2);
    t = ct_checkpoint_find(c, CT_STR("x.second"));
    assert_string_equal(ct_checkpoint_file(c, t->file), maker_path("b.safetensors"));
    ct_checkpoint_close(c);
}

static void takes_the_single_file_before_an_index(void **state)
{
    ct_checkpoint *c;
    maker m = {0};
    ct_error err;

    (void)state;
    maker_add(&m, CT_DTYPE_U8, 1, 0, 0, "only");
    maker_file(&m, maker_path("model.safetensors"));
    maker_deinit(&m);
    test_ok(open_sharded(&c, "not even JSON", &err), &err);
    assert_non_null(ct_checkpoint_find(c, CT_STR("only")));
    ct_checkpoint_close(c);
}

static void refuses_lying_indexes(void **state)
{
    static const struct {
        const char *index, *words;
        ct_status st;
    } row[] = {
        {"", "index.json|expected a value", CT_EFORMAT},
        {"[]", "the index|an array", CT_EFORMAT},
        {"{}", "weight_map is missing", CT_EFORMAT},
        {"{\"weight_map\":{}}", "weight_map is empty", CT_EFORMAT},
        {"{\"weight_map\":{\"x.first\":1}}", "weight_map|a number", CT_EFORMAT},
        {"{" MAP "," MAP "}", "repeated|weight_map", CT_EFORMAT},
        {"{" MAP ",\"other\":1}", "unknown|other", CT_EFORMAT},
        {"{\"metadata\":{\"total_size\":13}," MAP "}", "total_size|13|12", CT_EFORMAT},
        {"{\"metadata\":{\"total_size\":-1}," MAP "}", "total_size|-1", CT_EFORMAT},
        {"{\"metadata\":{\"total_size\":12,\"total_size\":12}," MAP "}", "total_size|twice",
         CT_EFORMAT},
        {"{\"weight_map\":{\"x.first\":\"a.safetensors\"}}", "", CT_OK},
        {"{\"weight_map\":{\"x.first\":\"a.safetensors\",\"x.third\":\"a.safetensors\"}}",
         "x.third|a.safetensors", CT_EFORMAT},
        {"{\"weight_map\":{\"x.third\":\"a.safetensors\"}}",
         "x.first|a.safetensors|not in the index", CT_EFORMAT},
        {"{\"weight_map\":{\"x.first\":\"b.safetensors\",\"x.second\":\"a.safetensors\"}}",
         "x.first|a.safetensors|b.safetensors", CT_EFORMAT},
        {"{\"weight_map\":{\"x.first\":\"a.safetensors\",\"x.first\":\"a.safetensors\"}}",
         "x.first|twice", CT_EFORMAT},
        {"{\"weight_map\":{\"x.first\":\"gone.safetensors\"}}", "gone.safetensors|No such file",
         CT_EIO},
        {"{\"weight_map\":{\"x.first\":\"../a.safetensors\"}}", "x.first|../a.safetensors",
         CT_EFORMAT},
        {"{\"weight_map\":{\"x.first\":\"/tmp/a.safetensors\"}}", "x.first|/tmp/a.safetensors",
         CT_EFORMAT},
        {"{\"weight_map\":{\"x.first\":\"sub/a.safetensors\"}}", "x.first|sub/a.safetensors",
         CT_EFORMAT},
        {"{\"weight_map\":{\"x.first\":\"..\"}}", "x.first|'..'", CT_EFORMAT},
        {"{\"weight_map\":{\"x.first\":\"\"}}", "x.first|''", CT_EFORMAT},
        {"{\"weight_map\":{\"x.first\":\"config.json\"}}", "x.first|config.json", CT_EFORMAT},
        {"{\"weight_map\":{\"x.first\":\"a\\u0000b.safetensors\"}}", "x.first|\\u0000", CT_EFORMAT},
        {"{\"weight_map\":{\"x\\n\":\"a.safetensors\"}}", "control characters", CT_EFORMAT},
    };
    ct_checkpoint *c = NULL;
    ct_error err;

    (void)state;
    for (size_t i = 0; i < CT_LEN(row); i++) {
        ct_status st = open_sharded(&c, row[i].index, &err);

        if (st != row[i].st)
            fail_msg("row %zu, %s: status %d: %s", i, row[i].index, st, st ? err.text : "opened");
        if (st)
            assert_message(&err, row[i].words);
        else
            ct_checkpoint_close(c);
    }
}

static void refuses_a_tensor_in_two_shards(void **state)
{
    maker m = {0};
    ct_checkpoint *c = NULL;
    ct_error err;

    (void)state;
    maker_add(&m, CT_DTYPE_U8, 1, 0, 0, "twin");
    maker_file(&m, maker_path("a.safetensors"));
    maker_add(&m, CT_DTYPE_U8, 1, 0, 0, "other");
    maker_file(&m, maker_path("b.safetensors"));
    maker_deinit(&m);
    maker_write_text(maker_path("model.safetensors.index.json"),
                     "{\"weight_map\":{\"twin\":\"a.safetensors\",\"other\":\"b.safetensors\"}}");
    assert_int_equal(ct_checkpoint_open(&c, maker_dir, &err), CT_EFORMAT);
    assert_message(&err, "twin|a.safetensors|b.safetensors");
}

static void refuses_an_empty_folder_and_odd_files(void **state)
{
    ct_checkpoint *c = NULL;
    ct_error err;

    (void)state;
    assert_int_equal(ct_checkpoint_open(&c, maker_dir, &err), CT_EIO);
    assert_message(&err, "model.safetensors|model.safetensors.index.json");
    assert_int_equal(ct_checkpoint_open_file(&c, maker_dir, &err), CT_EIO);
    assert_message(&err, "not a regular file");
    maker_write_text(maker_path("model.safetensors"), "");
    assert_int_equal(ct_checkpoint_open(&c, maker_dir, &err), CT_EFORMAT);
    assert_message(&err, "0 bytes");
    assert_int_equal(mkfifo(maker_path("pipe.safetensors"), 0600), 0);
    assert_int_equal(ct_checkpoint_open_file(&c, maker_path("pipe.safetensors"), &err), CT_EIO);
    ct_checkpoint_close(NULL);
}

#define IN_DIR(f) cmocka_unit_test_setup_teardown(f, maker_setup, maker_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_names_types_shapes_and_bytes),
        cmocka_unit_test(an_empty_file_list_is_allowed),
        cmocka_unit_test(refuses_lying_headers),
        cmocka_unit_test(refuses_every_truncation),
        IN_DIR(joins_shards),
        cmocka_unit_test_setup_teardown(takes_the_single_file_before_an_index, maker_setup,
                                        maker_teardown),
        IN_DIR(refuses_lying_indexes),
        cmocka_unit_test_setup_teardown(refuses_a_tensor_in_two_shards, maker_setup,
                                        maker_teardown),
        cmocka_unit_test_setup_teardown(refuses_an_empty_folder_and_odd_files, maker_setup,
                                        maker_teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
