/* The published checkpoints, opened whole from sparse files: same tensors, no weights. */
#include "gemma_maker.h"

#include "base/clock.h"
#include "base/map.h"
#include "model/model.h"

#define CONFIGS "data/config/"

static void read_shared(ct_buf *out, const char *relative)
{
    ct_map map;
    ct_error err;

    test_ok(ct_map_open(&map, test_shared(relative), &err), &err);
    ct_buf_init(out, (size_t)1 << 26);
    ct_buf_add(out, map.base, map.size);
    assert_false(out->failed);
    ct_map_close(&map);
}

static void copy_shared(const char *relative, const char *name)
{
    ct_buf text;

    read_shared(&text, relative);
    maker_write_text(maker_path(name), text.p);
    ct_buf_deinit(&text);
}

/* config.json with a quantization_config put before its last brace. */
static void write_config(const char *relative, const char *quant)
{
    ct_buf text, all;
    size_t end;

    read_shared(&text, relative);
    for (end = text.n; text.p[end - 1] != '}'; end--)
        ;
    ct_buf_init(&all, (size_t)1 << 26);
    ct_buf_add(&all, text.p, end - 1);
    ct_buf_addf(&all, ",\"quantization_config\":%s}", quant);
    maker_write_text(maker_path("config.json"), all.p);
    ct_buf_deinit(&all);
    ct_buf_deinit(&text);
}

/* Adds the listed tensors of one shard (0: of all), the text model's only on demand. */
static void add_listed(maker *m, const char *relative, unsigned shard, bool text)
{
    char line[512], name[256], dtype[16], shape[64];
    FILE *f = fopen(test_shared(relative), "r");

    assert_non_null(f);
    while (fgets(line, sizeof line, f)) {
        uint64_t dim[3] = {0};
        unsigned in;
        ct_dtype type;

        if (line[0] == '#')
            continue;
        assert_int_equal(sscanf(line, "%255[^\t]\t%15[^\t]\t%63[^\t]\t%u", name, dtype, shape, &in),
                         4);
        assert_true(sscanf(shape, "%" SCNu64 "x%" SCNu64 "x%" SCNu64, &dim[0], &dim[1], &dim[2]) >=
                    1);
        assert_true(ct_dtype_parse(ct_str_of(dtype), &type));
        if ((!shard || in == shard) &&
            (text || !ct_str_starts(ct_str_of(name), "model.language_model.")))
            maker_add(m, type, dim[0], dim[1], dim[2], "%s", name);
    }
    fclose(f);
}

/* Opens maker_dir and reports how long that took. */
static ct_model *open_dir(const char *what)
{
    double t = ct_now_s();
    ct_model *m;
    ct_error err;

    test_ok(ct_model_open(&m, maker_dir, &err), &err);
    print_message("%s: %zu tensors opened in %.3f s\n", what, ct_checkpoint_count(m->ckpt),
                  ct_now_s() - t);
    return m;
}

static void check_counts(const ct_model *m, size_t text, uint64_t text_bytes, size_t skipped,
                         const char *dialect)
{
    assert_int_equal(m->report.n_text, text);
    assert_int_equal(m->report.n_skipped, skipped);
    assert_string_equal(m->report.dialect, dialect);
    if (text_bytes)
        assert_int_equal(m->report.text_bytes, text_bytes);
}

/* The published pair of shards under the published index. */
static ct_model *open_listed(const char *model)
{
    char path[128], shard[64];

    for (unsigned s = 1; s <= 2; s++) {
        maker m = {0};

        snprintf(path, sizeof path, CONFIGS "%s/tensors.tsv", model);
        add_listed(&m, path, s, true);
        snprintf(shard, sizeof shard, "model-0000%u-of-00002.safetensors", s);
        maker_file(&m, maker_path(shard));
        maker_deinit(&m);
    }
    snprintf(path, sizeof path, CONFIGS "%s/model.safetensors.index.json", model);
    copy_shared(path, "model.safetensors.index.json");
    snprintf(path, sizeof path, CONFIGS "%s/config.json", model);
    copy_shared(path, "config.json");
    snprintf(path, sizeof path, CONFIGS "%s/generation_config.json", model);
    copy_shared(path, "generation_config.json");
    return open_dir(model);
}

static void published_26b(void **state)
{
    ct_model *m = open_listed("gemma-4-26B-A4B-it");

    (void)state;
    check_counts(m, 657, 50466283580, 356, "bf16");
    assert_int_equal(ct_checkpoint_count(m->ckpt), 1013);
    assert_int_equal(m->report.text_bytes + m->report.skipped_bytes, 51611872412);
    assert_int_equal(m->report.skipped_bytes, 1145588832);
    assert_int_equal(m->weights.layer[29].experts.gate[127].rows, 704);
    ct_model_close(m);
}

static void published_31b(void **state)
{
    ct_model *m = open_listed("gemma-4-31B-it");

    (void)state;
    check_counts(m, 832, 61394690680, 356, "bf16");
    assert_int_equal(ct_checkpoint_count(m->ckpt), 1188);
    assert_int_equal(m->report.text_bytes + m->report.skipped_bytes, 62546177752);
    ct_model_close(m);
}

/* One tensor less, more or elsewhere than published. */
static void published_31b_with_a_fault(void **state)
{
    static const char tsv[] = CONFIGS "gemma-4-31B-it/tensors.tsv";
    ct_model *out = NULL;
    maker m = {0};
    ct_error err;

    (void)state;
    copy_shared(CONFIGS "gemma-4-31B-it/config.json", "config.json");
    copy_shared(CONFIGS "gemma-4-31B-it/generation_config.json", "generation_config.json");
    add_listed(&m, tsv, 0, true);
    maker_drop(&m, "model.language_model.layers.59.self_attn.o_proj.weight");
    maker_find(&m, "model.language_model.layers.58.layer_scalar")->dtype = CT_DTYPE_F32;
    maker_add(&m, CT_DTYPE_BF16, 2048, 5376, 0,
              "model.language_model.layers.59.self_attn.v_proj.weight");
    maker_file(&m, maker_path("model.safetensors"));
    maker_deinit(&m);
    assert_int_equal(ct_model_open(&out, maker_dir, &err), CT_EFORMAT);
    assert_message(&err, "1 missing: model.language_model.layers.59.self_attn.o_proj.weight|"
                         "1 unknown: model.language_model.layers.59.self_attn.v_proj.weight|"
                         "1 mis-typed: model.language_model.layers.58.layer_scalar is F32");
    assert_null(out);
}

/* The embedders of 12B: eleven tensors whose shapes do not matter here. */
static void add_embedders(maker *m)
{
    for (int i = 0; i < 11; i++)
        maker_add(m, CT_DTYPE_BF16, 64, 3840, 0, "model.%s.part_%d",
                  i < 9 ? "vision_embedder" : "embed_audio", i);
}

static void published_12b(void **state)
{
    maker m = {0};
    ct_model *model;

    (void)state;
    copy_shared(CONFIGS "gemma-4-12B-it/config.json", "config.json");
    copy_shared(CONFIGS "gemma-4-12B-it/generation_config.json", "generation_config.json");
    gemma_make(&m, &gemma_12b);
    add_embedders(&m);
    maker_file(&m, maker_path("model.safetensors"));
    maker_deinit(&m);
    model = open_dir("12B");
    assert_int_equal(ct_checkpoint_count(model->ckpt), 677);
    check_counts(model, 666, 23814700640, 11, "bf16");
    assert_int_equal(model->generation.n_suppress_ids, 2);
    ct_model_close(model);
}

/* The tower of a model of another size serves as well: it is passed over. */
static void add_tower(maker *m, const char *model)
{
    char path[128];

    snprintf(path, sizeof path, CONFIGS "%s/tensors.tsv", model);
    add_listed(m, path, 0, false);
}

static ct_model *open_quantised(const gemma *g, const char *tower, const char *generation)
{
    char path[128];
    maker m = {0};

    gemma_make(&m, g);
    if (tower)
        add_tower(&m, tower);
    else
        add_embedders(&m);
    maker_file(&m, maker_path("model.safetensors"));
    maker_deinit(&m);
    snprintf(path, sizeof path, CONFIGS "%s/generation_config.json", generation);
    copy_shared(path, "generation_config.json");
    return open_dir("quantised");
}

static void nvidia_31b_nvfp4(void **state)
{
    gemma g = gemma_31b;
    ct_model *m;

    (void)state;
    g.mlp = FORM_MODELOPT;
    copy_shared(CONFIGS "nvidia-Gemma-4-31B-IT-NVFP4/config.transcribed.json", "config.json");
    m = open_quantised(&g, "gemma-4-31B-it", "gemma-4-31B-it");
    check_counts(m, 832 + 3 * 180, 0, 356, "nvfp4 (modelopt)");
    assert_int_equal(m->report.text_bytes + m->report.skipped_bytes, 32633255032);
    ct_model_close(m);
}

static void write_modelopt_26b_config(void)
{
    ct_buf quant;

    ct_buf_init(&quant, (size_t)1 << 20);
    ct_buf_addz(&quant, "{\"quant_method\":\"modelopt\",\"quant_algo\":\"NVFP4\",\"config_groups\":"
                        "{\"group_0\":{\"weights\":{\"num_bits\":4,\"type\":\"float\","
                        "\"group_size\":16,\"dynamic\":false},\"targets\":[\"Linear\"]}},"
                        "\"kv_cache_scheme\":{\"num_bits\":8,\"type\":\"float\",\"dynamic\":false},"
                        "\"ignore\":[\"lm_head\",\"model.embed_vision*\",\"model.vision_tower*\"");
    for (int l = 0; l < 30; l++)
        ct_buf_addf(&quant,
                    ",\"model.language_model.layers.%d.mlp*\","
                    "\"model.language_model.layers.%d.router*\","
                    "\"model.language_model.layers.%d.self_attn*\"",
                    l, l, l);
    ct_buf_addz(&quant, "]}");
    write_config(CONFIGS "gemma-4-26B-A4B-it/config.json", quant.p);
    ct_buf_deinit(&quant);
}

static void nvidia_26b_nvfp4(void **state)
{
    gemma g = gemma_26b;
    ct_model *m;

    (void)state;
    g.split = true;
    g.experts = FORM_MODELOPT;
    write_modelopt_26b_config();
    m = open_quantised(&g, "gemma-4-26B-A4B-it", "gemma-4-26B-A4B-it");
    assert_int_equal(ct_checkpoint_count(m->ckpt), 47033);
    check_counts(m, 47033 - 356, 0, 356, "nvfp4 (modelopt)");
    assert_int_equal(m->report.text_bytes + m->report.skipped_bytes, 18782360732);
    ct_model_close(m);
}

static void bg_digitalservices_26b_nvfp4(void **state)
{
    gemma g = gemma_26b;
    ct_model *m;

    (void)state;
    g.split = g.no_input_scale = true;
    g.attention = g.mlp = g.experts = FORM_MODELOPT;
    g.expert_path = "moe.experts.";
    copy_shared(CONFIGS "bg-digitalservices-Gemma-4-26B-A4B-it-NVFP4A16/config.transcribed.json",
                "config.json");
    m = open_quantised(&g, "gemma-4-26B-A4B-it", "gemma-4-26B-A4B-it");
    check_counts(m, 657 - 60 + 2 * (115 + 90) + 3 * 11520, 0, 356, "nvfp4 (modelopt)");
    ct_model_close(m);
}

static const char compressed_quant[] =
    "{\"quant_method\":\"compressed-tensors\",\"format\":\"mixed-precision\",\"config_groups\":{"
    "\"group_0\":{\"targets\":[\"re:.*self_attn\\\\.(q|k|v|o)_proj$\"],\"weights\":{\"num_bits\":8,"
    "\"type\":\"float\",\"strategy\":\"channel\",\"symmetric\":true}},"
    "\"group_1\":{\"targets\":[\"re:.*(gate|up|down)_proj$\"],\"weights\":{\"num_bits\":4,"
    "\"type\":\"float\",\"strategy\":\"tensor_group\",\"group_size\":16,\"symmetric\":true}}},"
    "\"ignore\":[\"lm_head\",\"re:.*router.*\",\"re:.*vision_tower.*\",\"re:.*embed_vision.*\"]}";

static void unsloth_26b_nvfp4(void **state)
{
    gemma g = gemma_26b;
    ct_model *m;

    (void)state;
    g.split = g.kv_scale = true;
    g.attention = FORM_FP8;
    g.mlp = g.experts = FORM_COMPRESSED;
    write_config(CONFIGS "gemma-4-26B-A4B-it/config.json", compressed_quant);
    m = open_quantised(&g, "gemma-4-26B-A4B-it", "gemma-4-26B-A4B-it");
    assert_int_equal(ct_checkpoint_count(m->ckpt), 47478);
    check_counts(m, 47478 - 356, 0, 356, "nvfp4 + fp8 (compressed-tensors)");
    ct_model_close(m);
}

static void unsloth_12b_nvfp4(void **state)
{
    gemma g = gemma_12b;
    ct_model *m;

    (void)state;
    g.kv_scale = true;
    g.attention = FORM_FP8;
    g.mlp = FORM_COMPRESSED;
    write_config(CONFIGS "gemma-4-12B-it/config.json", compressed_quant);
    m = open_quantised(&g, NULL, "gemma-4-12B-it");
    assert_int_equal(ct_checkpoint_count(m->ckpt), 1389);
    check_counts(m, 1378, 0, 11, "nvfp4 + fp8 (compressed-tensors)");
    ct_model_close(m);
}

/* Everything linear in compressed-tensors' NVFP4, attention included. */
static void redhat_12b_nvfp4(void **state)
{
    gemma g = gemma_12b;
    ct_model *m;

    (void)state;
    g.attention = g.mlp = FORM_COMPRESSED;
    write_config(
        CONFIGS "gemma-4-12B-it/config.json",
        "{\"quant_method\":\"compressed-tensors\",\"format\":\"nvfp4-pack-quantized\","
        "\"config_groups\":{\"group_0\":{\"targets\":[\"Linear\"],\"weights\":{"
        "\"num_bits\":4,\"type\":\"float\",\"group_size\":16}}},\"ignore\":[\"lm_head\"]}");
    m = open_quantised(&g, NULL, "gemma-4-12B-it");
    check_counts(m, 666 + 3 * (184 + 144), 0, 11, "nvfp4 (compressed-tensors)");
    ct_model_close(m);
}

static void all_fixtures(void **state)
{
    static const struct {
        const char *name, *dialect;
        size_t n;
    } row[] = {
        {"dense", "bf16", 85},
        {"unified", "bf16", 85},
        {"realheads", "bf16", 85},
        {"moe", "bf16", 133},
        {"moe128", "bf16", 133},
        {"moe-nvfp4", "nvfp4 (modelopt)", 697},
        {"moe128-nvfp4", "nvfp4 (modelopt)", 9337},
    };
    char path[128];
    ct_model *m;
    ct_error err;

    (void)state;
    for (size_t i = 0; i < CT_LEN(row); i++) {
        snprintf(path, sizeof path, "data/fixtures/%s", row[i].name);
        test_ok(ct_model_open(&m, test_shared(path), &err), &err);
        check_counts(m, row[i].n, 0, 0, row[i].dialect);
        ct_model_close(m);
    }
}

/* What E2B differs in, over a published config. */
static void e_series_config_is_refused_by_name(void **state)
{
    static const struct {
        const char *from, *to, *words;
    } row[] = {
        {"\"hidden_size_per_layer_input\": 0", "\"hidden_size_per_layer_input\": 256",
         "hidden_size_per_layer_input|256|E2B"},
        {"\"num_kv_shared_layers\": 0", "\"num_kv_shared_layers\": 20",
         "num_kv_shared_layers|20|E2B"},
        {"\"attention_k_eq_v\": true", "\"attention_k_eq_v\": false", "attention_k_eq_v|false"},
    };
    ct_buf text, changed;
    ct_config c;
    ct_arena a;
    ct_error err;

    (void)state;
    read_shared(&text, CONFIGS "gemma-4-31B-it/config.json");
    test_ok(ct_arena_init(&a, (size_t)1 << 20, &err), &err);
    for (size_t i = 0; i < CT_LEN(row); i++) {
        const char *at = strstr(text.p, row[i].from);

        assert_non_null(at);
        ct_buf_init(&changed, (size_t)1 << 20);
        ct_buf_add(&changed, text.p, (size_t)(at - text.p));
        ct_buf_addz(&changed, row[i].to);
        ct_buf_addz(&changed, at + strlen(row[i].from));
        assert_int_equal(ct_config_parse(&c, "e2b", ct_buf_str(&changed), &a, &err),
                         CT_EUNSUPPORTED);
        assert_message(&err, row[i].words);
        ct_buf_deinit(&changed);
    }
    ct_arena_deinit(&a);
    ct_buf_deinit(&text);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, maker_setup, maker_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(published_26b),
        TEST(published_31b),
        TEST(published_31b_with_a_fault),
        TEST(published_12b),
        TEST(nvidia_31b_nvfp4),
        TEST(nvidia_26b_nvfp4),
        TEST(bg_digitalservices_26b_nvfp4),
        TEST(unsloth_26b_nvfp4),
        TEST(unsloth_12b_nvfp4),
        TEST(redhat_12b_nvfp4),
        cmocka_unit_test(all_fixtures),
        cmocka_unit_test(e_series_config_is_refused_by_name),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
