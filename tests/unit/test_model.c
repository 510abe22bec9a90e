/* A model directory opened whole, and `carat inspect` of it. */
#include "gemma_maker.h"

#include "base/json.h"
#include "model/model.h"

#include <sys/wait.h>

static char g_carat[1024];

static const char config[] =
    "{\"architectures\":[\"Gemma4ForCausalLM\"],\"model_type\":\"gemma4_text\","
    "\"vocab_size\":48,\"hidden_size\":32,\"intermediate_size\":48,\"num_hidden_layers\":6,"
    "\"num_attention_heads\":4,\"num_key_value_heads\":2,\"head_dim\":8,\"sliding_window\":8,"
    "\"max_position_embeddings\":512,\"rms_norm_eps\":1e-06,\"final_logit_softcapping\":30.0,"
    "\"attention_k_eq_v\":true,\"hidden_size_per_layer_input\":0,"
    "\"per_layer_config\":{\"5\":{\"head_dim\":16,\"num_key_value_heads\":1}}}";

static int setup(void **state)
{
    gemma g = gemma_tiny;
    maker m = {0};

    if (maker_setup(state))
        return -1;
    g.prefix = "model.";
    gemma_make(&m, &g);
    maker_file(&m, maker_path("model.safetensors"));
    maker_deinit(&m);
    maker_write_text(maker_path("config.json"), config);
    maker_write_text(maker_path("generation_config.json"), "{\"eos_token_id\":[1,7]}");
    return 0;
}

static void opens_and_closes(void **state)
{
    ct_model *m;
    ct_error err;

    (void)state;
    test_ok(ct_model_open(&m, maker_dir, &err), &err);
    assert_int_equal(m->report.n_text, 85);
    assert_string_equal(m->report.prefix, "model.");
    assert_int_equal(m->generation.stop_ids[1], 7);
    assert_non_null(m->weights.layer[5].layer_scalar);
    ct_model_close(m);
    ct_model_close(NULL);
}

static void every_missing_or_wrong_file_is_named(void **state)
{
    static const struct {
        const char *file, *text; /* NULL: removed */
        ct_status st;
        const char *words;
    } row[] = {
        {"config.json", NULL, CT_EIO, "config.json|No such file"},
        {"config.json", "{", CT_EFORMAT, "config.json|JSON"},
        {"generation_config.json", NULL, CT_EIO, "generation_config.json|No such file"},
        {"generation_config.json", "{\"eos_token_id\":1,\"suppress_tokens\":[47,48]}", CT_EFORMAT,
         "generation_config.json|suppress_tokens|48|vocab_size is 48"},
        {"generation_config.json", "{\"eos_token_id\":[1,48]}", CT_EFORMAT,
         "generation_config.json|eos_token_id|48|vocab_size is 48"},
        {"model.safetensors", NULL, CT_EIO, "neither|model.safetensors"},
        {"model.safetensors", "short", CT_EFORMAT, "model.safetensors|5 bytes"},
    };

    (void)state;
    maker_teardown(NULL);
    for (size_t i = 0; i < CT_LEN(row); i++) {
        ct_model *m = NULL;
        ct_error err;

        setup(NULL);
        if (row[i].text)
            maker_write_text(maker_path(row[i].file), row[i].text);
        else
            unlink(maker_path(row[i].file));
        assert_int_equal(ct_model_open(&m, maker_dir, &err), row[i].st);
        assert_message(&err, row[i].words);
        assert_null(m);
        maker_teardown(NULL);
    }
    setup(NULL);
}

/* Output and exit status of `carat inspect -m DIR` with more options. */
static int inspect(ct_buf *out, const char *options)
{
    char command[2048];
    FILE *f;
    int c, status;

    snprintf(command, sizeof command, "%s inspect -m %s %s 2>&1", g_carat, maker_dir, options);
    f = popen(command, "r");
    assert_non_null(f);
    ct_buf_init(out, (size_t)1 << 24);
    while ((c = getc(f)) != EOF)
        ct_buf_addc(out, (char)c);
    status = pclose(f);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static void inspect_prints_one_json_object(void **state)
{
    ct_json j;
    ct_json_token t;
    ct_buf out;
    ct_error err;

    (void)state;
    assert_int_equal(inspect(&out, "--json"), 0);
    ct_json_init(&j, "inspect", ct_buf_str(&out));
    do
        test_ok(ct_json_next(&j, &t, &err), &err);
    while (t.kind != CT_JSON_END);
    assert_non_null(strstr(out.p, "\"text\": {\"tensors\": 85,"));
    assert_non_null(strstr(out.p, "\"name\": \"model.layers.0.self_attn.v_proj.weight\""));
    assert_non_null(strstr(out.p, "\"stop_ids\": [1, 7]"));
    ct_buf_deinit(&out);
    assert_int_equal(inspect(&out, "--tensors"), 0);
    assert_non_null(strstr(out.p, "model.embed_tokens.weight [48, 32]"));
    ct_buf_deinit(&out);
}

static void inspect_gives_the_manifests_message_in_one_line(void **state)
{
    gemma g = gemma_tiny;
    maker m = {0};
    ct_buf out;

    (void)state;
    g.prefix = "model.";
    gemma_make(&m, &g);
    maker_drop(&m, "model.norm.weight");
    maker_file(&m, maker_path("model.safetensors"));
    maker_deinit(&m);
    assert_int_equal(inspect(&out, ""), 1);
    assert_true(ct_str_starts(ct_buf_str(&out), "carat: "));
    assert_non_null(strstr(out.p, "1 missing: model.norm.weight\n"));
    assert_ptr_equal(strchr(out.p, '\n'), out.p + out.n - 1);
    ct_buf_deinit(&out);
    assert_int_equal(inspect(&out, "--nonsense"), 2);
    ct_buf_deinit(&out);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, maker_teardown)

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        TEST(opens_and_closes),
        TEST(every_missing_or_wrong_file_is_named),
        TEST(inspect_prints_one_json_object),
        TEST(inspect_gives_the_manifests_message_in_one_line),
    };
    const char *below = strstr(argv[0], "tests/unit/");

    /* The binary of the same build. */
    (void)argc;
    snprintf(g_carat, sizeof g_carat, "%.*scarat", below ? (int)(below - argv[0]) : 0, argv[0]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
