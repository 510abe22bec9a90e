/* config.json and generation_config.json: both dialects are read; everything else that
 * would change the mathematics is refused with its name and both values. */
#include "maker.h"

#include "format/config.h"

#define TEXT_SIZES                                                                                 \
    "\"vocab_size\":256,\"hidden_size\":64,\"intermediate_size\":96,\"num_hidden_layers\":6,"      \
    "\"num_attention_heads\":4,\"num_key_value_heads\":2,\"head_dim\":32,\"sliding_window\":8,"    \
    "\"max_position_embeddings\":512,\"rms_norm_eps\":1e-06,\"final_logit_softcapping\":30.0,"     \
    "\"attention_k_eq_v\":true,\"hidden_size_per_layer_input\":0,\"num_kv_shared_layers\":0,"      \
    "\"use_double_wide_mlp\":false,\"attention_bias\":false,\"tie_word_embeddings\":true,"         \
    "\"hidden_activation\":\"gelu_pytorch_tanh\",\"use_bidirectional_attention\":\"vision\","
#define TEXT_ROPE                                                                                  \
    "\"rope_parameters\":{\"sliding_attention\":{\"rope_type\":\"default\",\"rope_theta\":10000."  \
    "0},"                                                                                          \
    "\"full_attention\":{\"rope_type\":\"proportional\",\"rope_theta\":1000000.0,"                 \
    "\"partial_rotary_factor\":0.25}},"
#define TEXT_TYPES                                                                                 \
    "\"layer_types\":[\"sliding_attention\",\"sliding_attention\",\"sliding_attention\","          \
    "\"sliding_attention\",\"sliding_attention\",\"full_attention\"],"
#define TEXT_MOE                                                                                   \
    "\"enable_moe_block\":true,\"num_experts\":8,\"top_k_experts\":2,\"moe_intermediate_size\":"   \
    "16,"

/* The published dialect, a mixture, ModelOpt. */
static const char base_config[] =
    "{\"architectures\":[\"Gemma4ForConditionalGeneration\"],\"model_type\":\"gemma4\","
    "\"dtype\":\"bfloat16\",\"tie_word_embeddings\":true,\"eos_token_id\":[1,106],"
    "\"text_config\":{" TEXT_SIZES TEXT_ROPE TEXT_TYPES TEXT_MOE
    "\"num_global_key_value_heads\":1,\"global_head_dim\":64,\"dtype\":\"bfloat16\","
    "\"model_type\":\"gemma4_text\"},"
    "\"quantization_config\":{\"quant_method\":\"modelopt\",\"quant_algo\":\"NVFP4\","
    "\"config_groups\":{\"group_0\":{\"weights\":{\"num_bits\":4,\"type\":\"float\","
    "\"group_size\":16},\"targets\":[\"Linear\"]}},\"ignore\":[\"lm_head\","
    "\"model.language_model.layers.0.mlp*\"]},\"vision_config\":null}";

/* As transformers 5.17 saves Gemma4ForCausalLM. */
static const char text_only_config[] =
    "{\"architectures\":[\"Gemma4ForCausalLM\"],\"model_type\":\"gemma4_text\","
    "\"dtype\":\"bfloat16\"," TEXT_SIZES TEXT_ROPE TEXT_TYPES
    "\"enable_moe_block\":false,\"num_experts\":null,\"top_k_experts\":null,"
    "\"moe_intermediate_size\":null,\"per_layer_config\":{\"5\":{\"head_dim\":64,"
    "\"num_key_value_heads\":1}},\"transformers_version\":\"5.17.0\"}";

static ct_arena g_arena;

static ct_status parse(ct_config *out, const char *text, ct_error *err)
{
    g_arena.used_bytes = 0;
    return ct_config_parse(out, "config.json", ct_str_of(text), &g_arena, err);
}

/* text with the first `from` replaced by `to`; from must be there. */
static const char *replaced(const char *text, const char *from, const char *to)
{
    static char out[16384];
    const char *at = strstr(text, from);

    if (!at)
        fail_msg("the test's config has no %s", from);
    snprintf(out, sizeof out, "%.*s%s%s", (int)(at - text), text, to, at + strlen(from));
    return out;
}

static void reads_the_published_dialect(void **state)
{
    ct_config c;
    ct_error err;

    (void)state;
    test_ok(parse(&c, base_config, &err), &err);
    assert_int_equal(c.arch, CT_ARCH_GEMMA4);
    assert_int_equal(c.vocab, 256);
    assert_int_equal(c.hd_sliding, 32);
    assert_int_equal(c.hd_global, 64);
    assert_int_equal(c.n_kv_sliding, 2);
    assert_int_equal(c.n_kv_global, 1);
    assert_true(c.is_global[5] && !c.is_global[4]);
    assert_int_equal(c.n_experts, 8);
    assert_int_equal(c.top_k, 2);
    assert_int_equal(c.moe_intermediate, 16);
    assert_true(c.rope_theta_global == 1e6 && c.rope_theta_sliding == 1e4);
    assert_true(c.softcap == 30.0f && c.eps == 1e-6f);
    assert_int_equal(c.quant.method, CT_QUANT_MODELOPT);
    assert_int_equal(c.quant.n_ignore, 2);
    assert_true(ct_str_is(c.quant.ignore[1], "model.language_model.layers.0.mlp*"));
    assert_int_equal(c.quant.n_groups, 1);
    assert_int_equal(c.quant.group[0].scheme, CT_QUANT_NVFP4);
}

static void reads_text_only_configs_of_newer_transformers(void **state)
{
    ct_config c;
    ct_error err;
    char unified[16384];

    (void)state;
    test_ok(parse(&c, text_only_config, &err), &err);
    assert_int_equal(c.hd_global, 64);
    assert_int_equal(c.n_kv_global, 1);
    assert_false(c.moe);
    assert_int_equal(c.n_experts, 0);
    assert_int_equal(c.quant.method, CT_QUANT_NONE);
    snprintf(unified, sizeof unified, "%s",
             replaced(text_only_config, "Gemma4ForCausalLM", "Gemma4UnifiedForCausalLM"));
    test_ok(parse(&c, replaced(unified, "gemma4_text", "gemma4_unified_text"), &err), &err);
    assert_int_equal(c.arch, CT_ARCH_GEMMA4_UNIFIED);
}

static void absent_fields_have_the_documented_defaults(void **state)
{
    ct_config c;
    ct_error err;
    char a[16384], b[16384];

    (void)state;
    snprintf(a, sizeof a, "%s", replaced(base_config, TEXT_ROPE, ""));
    snprintf(b, sizeof b, "%s", replaced(a, TEXT_TYPES, ""));
    snprintf(a, sizeof a, "%s", replaced(b, "\"global_head_dim\":64,", ""));
    test_ok(parse(&c, replaced(a, "\"num_global_key_value_heads\":1,", ""), &err), &err);
    assert_int_equal(c.hd_global, 512);
    assert_int_equal(c.n_kv_global, 2);
    assert_true(c.rope_theta_global == 1e6 && c.rope_partial_global == 0.25);
    assert_true(c.is_global[5] && !c.is_global[0]);
}

static void the_last_layer_is_global_whatever_the_count(void **state)
{
    static const unsigned counts[] = {1, 5, 6, 7, 12, 48, 256};
    ct_config c;
    ct_error err;
    char a[16384], to[64];

    (void)state;
    snprintf(a, sizeof a, "%s", replaced(base_config, TEXT_TYPES, ""));
    for (size_t i = 0; i < CT_LEN(counts); i++) {
        snprintf(to, sizeof to, "\"num_hidden_layers\":%u", counts[i]);
        test_ok(parse(&c, replaced(a, "\"num_hidden_layers\":6", to), &err), &err);
        for (unsigned l = 0; l < counts[i]; l++)
            assert_int_equal(c.is_global[l], (l + 1) % 6 == 0 || l + 1 == counts[i]);
    }
}

static void the_old_name_of_the_expert_size_is_read(void **state)
{
    ct_config c;
    ct_error err;

    (void)state;
    test_ok(
        parse(&c, replaced(base_config, "moe_intermediate_size", "expert_intermediate_size"), &err),
        &err);
    assert_int_equal(c.moe_intermediate, 16);
    assert_int_equal(parse(&c,
                           replaced(base_config, "\"moe_intermediate_size\":16",
                                    "\"moe_intermediate_size\":16,\"expert_intermediate_size\":32"),
                           &err),
                     CT_EFORMAT);
    assert_message(&err, "expert_intermediate_size|32|16");
}

/* One change to the published config: what it replaces, by what, the status, and what
 * the message must name. */
static void refuses_every_mutation_by_name(void **state)
{
    static const struct {
        const char *from, *to;
        ct_status st;
        const char *words;
    } row[] = {
        {"Gemma4ForConditionalGeneration", "Gemma3ForConditionalGeneration", CT_EUNSUPPORTED,
         "architectures[0]|Gemma3ForConditionalGeneration"},
        {"[\"Gemma4ForConditionalGeneration\"]", "[]", CT_EFORMAT, "architectures"},
        {"[\"Gemma4ForConditionalGeneration\"]", "\"Gemma4\"", CT_EFORMAT,
         "architectures|'Gemma4'"},
        {"Gemma4ForConditionalGeneration", "Gemma4UnifiedForConditionalGeneration", CT_EFORMAT,
         "Gemma4UnifiedForConditionalGeneration|gemma4"},
        {"\"model_type\":\"gemma4\"", "\"model_type\":\"gemma3\"", CT_EUNSUPPORTED,
         "model_type|gemma3"},
        {"\"model_type\":\"gemma4\"", "\"model_type\":\"gemma4_assistant\"", CT_EUNSUPPORTED,
         "model_type|gemma4_assistant"},
        {"\"model_type\":\"gemma4\",", "", CT_EFORMAT, "model_type|absent"},
        {"\"model_type\":\"gemma4\"", "\"model_type\":\"gemma4_text\"", CT_EFORMAT, "text_config"},
        {"\"model_type\":\"gemma4_text\"", "\"model_type\":\"gemma3_text\"", CT_EUNSUPPORTED,
         "text_config.model_type|gemma3_text|gemma4_text"},
        {"\"text_config\"", "\"text_konfig\"", CT_EFORMAT, "text_config|absent"},
        {"\"dtype\":\"bfloat16\"", "\"dtype\":\"float32\"", CT_EUNSUPPORTED,
         "dtype|float32|bfloat16"},
        {"\"dtype\":\"bfloat16\",\"model_type\":\"gemma4_text\"",
         "\"dtype\":\"float16\",\"model_type\":\"gemma4_text\"", CT_EUNSUPPORTED,
         "text_config.dtype|float16"},
        {"\"hidden_size_per_layer_input\":0", "\"hidden_size_per_layer_input\":256",
         CT_EUNSUPPORTED, "text_config.hidden_size_per_layer_input|256|E2B"},
        {"\"hidden_size_per_layer_input\":0,", "", CT_EUNSUPPORTED,
         "hidden_size_per_layer_input|absent"},
        {"\"num_kv_shared_layers\":0", "\"num_kv_shared_layers\":20", CT_EUNSUPPORTED,
         "num_kv_shared_layers|20|E4B"},
        {"\"use_double_wide_mlp\":false", "\"use_double_wide_mlp\":true", CT_EUNSUPPORTED,
         "use_double_wide_mlp|true|false"},
        {"\"attention_k_eq_v\":true", "\"attention_k_eq_v\":false", CT_EUNSUPPORTED,
         "attention_k_eq_v|false|true"},
        {"\"attention_k_eq_v\":true,", "", CT_EUNSUPPORTED, "attention_k_eq_v|absent|true"},
        {"\"attention_bias\":false", "\"attention_bias\":true", CT_EUNSUPPORTED,
         "attention_bias|true|false"},
        {"\"attention_bias\":false", "\"attention_bias\":0", CT_EFORMAT, "attention_bias|0"},
        {"gelu_pytorch_tanh", "silu", CT_EUNSUPPORTED, "hidden_activation|silu|gelu_pytorch_tanh"},
        {"\"tie_word_embeddings\":true,\"eos", "\"tie_word_embeddings\":false,\"eos",
         CT_EUNSUPPORTED, "tie_word_embeddings|false|true"},
        {"\"tie_word_embeddings\":true,\"hidden", "\"tie_word_embeddings\":false,\"hidden",
         CT_EUNSUPPORTED, "text_config.tie_word_embeddings|false|true"},
        {"\"use_bidirectional_attention\":\"vision\"", "\"use_bidirectional_attention\":\"all\"",
         CT_EUNSUPPORTED, "use_bidirectional_attention|'all'|'vision'"},
        {"\"final_logit_softcapping\":30.0,", "", CT_EFORMAT, "final_logit_softcapping|absent"},
        {"\"final_logit_softcapping\":30.0", "\"final_logit_softcapping\":null", CT_EFORMAT,
         "final_logit_softcapping|null"},
        {"\"final_logit_softcapping\":30.0", "\"final_logit_softcapping\":0", CT_EFORMAT,
         "final_logit_softcapping|is 0"},
        {"\"final_logit_softcapping\":30.0", "\"final_logit_softcapping\":-30", CT_EFORMAT,
         "final_logit_softcapping|-30"},
        {"\"rms_norm_eps\":1e-06", "\"rms_norm_eps\":0", CT_EFORMAT, "rms_norm_eps|is 0"},
        {"\"rms_norm_eps\":1e-06", "\"rms_norm_eps\":1e999", CT_EFORMAT, "rms_norm_eps|1e999"},
        {"\"vocab_size\":256", "\"vocab_size\":0", CT_EFORMAT, "text_config.vocab_size|is 0|1"},
        {"\"vocab_size\":256", "\"vocab_size\":-1", CT_EFORMAT, "text_config.vocab_size|-1"},
        {"\"vocab_size\":256", "\"vocab_size\":256.0", CT_EFORMAT, "vocab_size|256.0"},
        {"\"vocab_size\":256", "\"vocab_size\":\"256\"", CT_EFORMAT, "vocab_size|'256'"},
        {"\"vocab_size\":256", "\"vocab_size\":99999999999999999999", CT_EFORMAT,
         "vocab_size|99999999999999999999"},
        {"\"hidden_size\":64", "\"hidden_size\":1000000000", CT_EFORMAT,
         "hidden_size|1000000000|65536"},
        {"\"intermediate_size\":96", "\"intermediate_size\":null", CT_EFORMAT,
         "intermediate_size|null"},
        {"\"num_hidden_layers\":6", "\"num_hidden_layers\":0", CT_EFORMAT, "num_hidden_layers|0"},
        {"\"num_hidden_layers\":6", "\"num_hidden_layers\":257", CT_EFORMAT,
         "num_hidden_layers|257|256"},
        {"\"num_hidden_layers\":6", "\"num_hidden_layers\":12", CT_EFORMAT,
         "layer_types|6 entries|12"},
        {"\"num_attention_heads\":4", "\"num_attention_heads\":3", CT_EFORMAT,
         "num_key_value_heads|2|3"},
        {"\"num_key_value_heads\":2,\"head", "\"num_key_value_heads\":0,\"head", CT_EFORMAT,
         "num_key_value_heads|0"},
        {"\"num_key_value_heads\":2,\"head", "\"head", CT_EFORMAT, "num_key_value_heads|absent"},
        {"\"num_global_key_value_heads\":1", "\"num_global_key_value_heads\":3", CT_EFORMAT,
         "num_global_key_value_heads|3|4"},
        {"\"head_dim\":32", "\"head_dim\":33", CT_EFORMAT, "head_dim|33|even"},
        {"\"global_head_dim\":64", "\"global_head_dim\":63", CT_EFORMAT, "global_head_dim|63|even"},
        {"\"global_head_dim\":64", "\"global_head_dim\":4096", CT_EFORMAT,
         "global_head_dim|4096|2048"},
        {"\"head_dim\":32,", "", CT_EFORMAT, "text_config.head_dim|absent"},
        {"\"sliding_window\":8", "\"sliding_window\":0", CT_EFORMAT, "sliding_window|0"},
        {"\"sliding_window\":8,", "", CT_EFORMAT, "sliding_window|absent"},
        {"\"max_position_embeddings\":512", "\"max_position_embeddings\":true", CT_EFORMAT,
         "max_position_embeddings|true"},
        {"\"sliding_attention\",\"full_attention\"]", "\"full_attention\",\"full_attention\"]",
         CT_EUNSUPPORTED, "layer_types[4]|'full_attention'|'sliding_attention'"},
        {"\"sliding_attention\",\"full_attention\"]",
         "\"sliding_attention\",\"sliding_attention\"]", CT_EUNSUPPORTED,
         "layer_types[5]|'sliding_attention'|'full_attention'|last"},
        {"[\"sliding_attention\",", "[\"chunked_attention\",", CT_EUNSUPPORTED,
         "layer_types[0]|'chunked_attention'"},
        {",\"full_attention\"]", "]", CT_EFORMAT, "layer_types|5|6"},
        {",\"full_attention\"]", ",\"full_attention\",\"full_attention\"]", CT_EFORMAT,
         "layer_types|7|6"},
        {"[\"sliding_attention\",", "[1,", CT_EFORMAT, "layer_types[0]|1|a string"},
        {"\"rope_type\":\"default\"", "\"rope_type\":\"linear\"", CT_EUNSUPPORTED,
         "rope_parameters.sliding_attention.rope_type|linear|default"},
        {"\"rope_type\":\"proportional\"", "\"rope_type\":\"yarn\"", CT_EUNSUPPORTED,
         "rope_parameters.full_attention.rope_type|yarn|proportional"},
        {"\"partial_rotary_factor\":0.25", "\"partial_rotary_factor\":1.25", CT_EFORMAT,
         "partial_rotary_factor|1.25"},
        {"\"partial_rotary_factor\":0.25", "\"partial_rotary_factor\":0", CT_EFORMAT,
         "partial_rotary_factor|is 0"},
        {",\"partial_rotary_factor\":0.25", "", CT_EFORMAT, "partial_rotary_factor|absent"},
        {"\"rope_theta\":10000.0", "\"rope_theta\":10000.0,\"partial_rotary_factor\":0.5",
         CT_EUNSUPPORTED, "sliding_attention.partial_rotary_factor|0.5|1"},
        {"\"rope_theta\":1000000.0", "\"rope_theta\":1000000.0,\"factor\":8.0", CT_EUNSUPPORTED,
         "full_attention.factor|8.0|1"},
        {"\"rope_theta\":1000000.0", "\"rope_theta\":1000000.0,\"beta_fast\":32", CT_EUNSUPPORTED,
         "beta_fast|32"},
        {",\"rope_theta\":10000.0", "", CT_EFORMAT, "sliding_attention.rope_theta|absent"},
        {"\"rope_theta\":1000000.0", "\"rope_theta\":0", CT_EFORMAT, "rope_theta|is 0"},
        {"\"rope_parameters\":{", "\"rope_parameters\":{\"other\":{},", CT_EUNSUPPORTED,
         "rope_parameters.other"},
        {"\"num_experts\":8", "\"num_experts\":null", CT_EFORMAT, "num_experts|null"},
        {"\"num_experts\":8", "\"num_experts\":1025", CT_EFORMAT, "num_experts|1025|1024"},
        {"\"top_k_experts\":2", "\"top_k_experts\":9", CT_EFORMAT, "top_k_experts|9|8"},
        {"\"top_k_experts\":2,", "", CT_EFORMAT, "top_k_experts|absent"},
        {",\"moe_intermediate_size\":16", "", CT_EFORMAT, "moe_intermediate_size|absent"},
        {"\"enable_moe_block\":true", "\"enable_moe_block\":\"yes\"", CT_EFORMAT,
         "enable_moe_block|'yes'"},
        {"\"vocab_size\":256", "\"vocab_size\":256,\"vocab_size\":256", CT_EFORMAT,
         "vocab_size|twice"},
        {"\"rope_theta\":10000.0", "\"rope_theta\":10000.0,\"rope_\\u0074heta\":1", CT_EFORMAT,
         "rope_theta|twice"},
        {"\"vocab_size\":256", "\"vocab_size\":256,\"attn_logit_softcapping\":50.0",
         CT_EUNSUPPORTED, "attn_logit_softcapping|50.0"},
        {"\"vocab_size\":256", "\"vocab_size\":256,\"query_pre_attn_scalar\":256", CT_EUNSUPPORTED,
         "query_pre_attn_scalar|256"},
        {"\"vocab_size\":256", "\"vocab_size\":256,\"rope_scaling\":{\"factor\":8}",
         CT_EUNSUPPORTED, "rope_scaling"},
        {"\"vocab_size\":256", "\"vocab_size\":256,\"per_layer_config\":{\"5\":{\"head_dim\":128}}",
         CT_EFORMAT, "global_head_dim|64|128"},
        {"\"vocab_size\":256",
         "\"vocab_size\":256,\"per_layer_config\":{\"5\":{\"head_dim\":64,"
         "\"num_key_value_heads\":2}}",
         CT_EFORMAT, "num_global_key_value_heads|1|2"},
        {"\"vocab_size\":256", "\"vocab_size\":256,\"per_layer_config\":{\"6\":{\"head_dim\":64}}",
         CT_EFORMAT, "per_layer_config.6|0 to 5"},
        {"\"vocab_size\":256", "\"vocab_size\":256,\"per_layer_config\":{\"05\":{\"head_dim\":64}}",
         CT_EFORMAT, "per_layer_config.05"},
        {"\"vocab_size\":256", "\"vocab_size\":256,\"per_layer_config\":{\"0\":{\"head_dim\":64}}",
         CT_EUNSUPPORTED, "per_layer_config|64|layer 0|32"},
        {"\"vocab_size\":256",
         "\"vocab_size\":256,\"per_layer_config\":{\"5\":{\"sliding_window\":4}}", CT_EUNSUPPORTED,
         "per_layer_config.5.sliding_window|4"},
        {"\"vocab_size\":256", "\"vocab_size\":256,\"per_layer_config\":{\"5\":7}", CT_EFORMAT,
         "per_layer_config.5|7"},
        {"\"quant_method\":\"modelopt\"", "\"quant_method\":\"awq\"", CT_EUNSUPPORTED,
         "quantization_config.quant_method|awq|modelopt"},
        {"\"quant_method\":\"modelopt\",", "", CT_EFORMAT, "quant_method|absent"},
        {"\"quant_algo\":\"NVFP4\"", "\"quant_algo\":\"FP8\"", CT_EUNSUPPORTED,
         "quant_algo|FP8|NVFP4"},
        {"\"num_bits\":4", "\"num_bits\":3", CT_EUNSUPPORTED, "weights.num_bits|3"},
        {"\"num_bits\":4", "\"num_bits\":8", CT_EUNSUPPORTED, "weights.num_bits|8"},
        {"\"type\":\"float\"", "\"type\":\"int\"", CT_EUNSUPPORTED, "weights.type|int|float"},
        {"\"group_size\":16", "\"group_size\":32", CT_EUNSUPPORTED, "group_size|32|16"},
        {"\"group_size\":16", "\"group_size\":16,\"symmetric\":false", CT_EUNSUPPORTED,
         "symmetric|false|true"},
        {",\"targets\":[\"Linear\"]", "", CT_EFORMAT, "group_0.targets|absent"},
        {"[\"Linear\"]", "[\"re:(\"]", CT_EUNSUPPORTED, "targets[0]|re:(|unclosed group"},
        {"\"lm_head\"", "17", CT_EFORMAT, "quantization_config.ignore[0]|17"},
        {"\"vision_config\":null}", "\"vision_config\":null", CT_EFORMAT, "JSON"},
        {"{\"architectures\"", "[{\"architectures\"", CT_EFORMAT, "JSON"},
    };
    static ct_config c, untouched;
    ct_error err;

    (void)state;
    for (size_t i = 0; i < CT_LEN(row); i++) {
        ct_status st = parse(&c, replaced(base_config, row[i].from, row[i].to), &err);

        if (st != row[i].st)
            fail_msg("row %zu, %s -> %s: status %d: %s", i, row[i].from, row[i].to, st,
                     st ? err.text : "accepted");
        assert_message(&err, "config.json");
        assert_message(&err, row[i].words);
        assert_memory_equal(&c, &untouched, sizeof c);
    }
}

static void accepts_harmless_changes(void **state)
{
    static const struct {
        const char *from, *to;
    } row[] = {
        {"\"use_bidirectional_attention\":\"vision\"", "\"use_bidirectional_attention\":null"},
        {"\"architectures\":[\"Gemma4ForConditionalGeneration\"],", ""},
        {"\"hidden_activation\":\"gelu_pytorch_tanh\",", ""},
        {"\"attention_bias\":false,", ""},
        {"\"num_kv_shared_layers\":0,", ""},
        {"\"dtype\":\"bfloat16\",", "\"torch_dtype\":\"bfloat16\","},
        {"\"rope_theta\":1000000.0", "\"rope_theta\":1000000,\"factor\":1.0"},
        {"\"vocab_size\":256", "\"vocab_size\":256,\"some_new_field\":{\"deep\":[1,2,{}]}"},
        {"\"vocab_size\":256", "\"vocab_size\":256,\"per_layer_config\":{\"5\":{\"head_dim\":64,"
                               "\"num_key_value_heads\":1}}"},
        {",\"quant_algo\":\"NVFP4\"", ""},
        {"\"config_groups\":{\"group_0\":{\"weights\":{\"num_bits\":4,\"type\":\"float\","
         "\"group_size\":16},\"targets\":[\"Linear\"]}},",
         ""},
        {"\"ignore\"", "\"exclude_modules\""},
        {"\"lm_head\"", "\"re:.*lm_head\""},
    };
    ct_config c;
    ct_error err;

    (void)state;
    for (size_t i = 0; i < CT_LEN(row); i++)
        if (parse(&c, replaced(base_config, row[i].from, row[i].to), &err))
            fail_msg("row %zu, %s -> %s: %s", i, row[i].from, row[i].to, err.text);
}

static void reads_compressed_tensors_groups(void **state)
{
    static const char quant[] =
        "\"quantization_config\":{\"quant_method\":\"compressed-tensors\",\"format\":"
        "\"mixed-precision\",\"config_groups\":{\"group_0\":{\"targets\":[\"re:.*mlp.*\"],"
        "\"weights\":{\"num_bits\":4,\"type\":\"float\",\"strategy\":\"tensor_group\","
        "\"group_size\":16,\"symmetric\":true}},\"group_1\":{\"targets\":[\"re:.*self_attn.*\"],"
        "\"weights\":{\"num_bits\":8,\"type\":\"float\",\"strategy\":\"channel\","
        "\"group_size\":null}}},\"ignore\":[\"re:.*router.*\"],\"transform_config\":{}},";
    ct_config c;
    ct_error err;
    char text[16384];

    (void)state;
    snprintf(text, sizeof text, "%s", replaced(text_only_config, "\"dtype\":\"bfloat16\",", quant));
    test_ok(parse(&c, text, &err), &err);
    assert_int_equal(c.quant.n_groups, 2);
    assert_int_equal(c.quant.group[1].scheme, CT_QUANT_FP8);
    assert_true(ct_str_is(c.quant.group[1].target[0], "re:.*self_attn.*"));
    assert_int_equal(parse(&c, replaced(text, "\"channel\"", "\"tensor\""), &err), CT_EUNSUPPORTED);
    assert_message(&err, "group_1.weights.strategy|tensor|channel");
    assert_int_equal(
        parse(&c, replaced(text, "\"transform_config\":{}", "\"transform_config\":{\"R1\":{}}"),
              &err),
        CT_EUNSUPPORTED);
    assert_message(&err, "transform_config");
}

static void refuses_an_unbounded_or_broken_text(void **state)
{
    static char big[(1 << 20) + 2];
    ct_config c;
    ct_error err;

    (void)state;
    memset(big, ' ', sizeof big - 1);
    assert_int_equal(parse(&c, big, &err), CT_ELIMIT);
    assert_message(&err, "1048577|1048576");
    assert_int_equal(parse(&c, "", &err), CT_EFORMAT);
    assert_int_equal(parse(&c, "[]", &err), CT_EFORMAT);
    assert_message(&err, "an object|an array");
    assert_int_equal(parse(&c, "{}", &err), CT_EFORMAT);
    assert_message(&err, "model_type|absent");
}

static void reads_generation_configs(void **state)
{
    ct_generation_config g;
    ct_error err;

    (void)state;
    test_ok(ct_generation_config_parse(
                &g, "g",
                CT_STR("{\"bos_token_id\":2,\"do_sample\":true,\"eos_token_id\":[1,106,50],"
                       "\"pad_token_id\":0,\"suppress_tokens\":[258883,258882],"
                       "\"temperature\":1.0,\"top_k\":64,\"top_p\":0.95,\"min_p\":0.02,"
                       "\"typical_p\":0.9,\"repetition_penalty\":1.2,\"new\":[1]}"),
                &err),
            &err);
    assert_int_equal(g.n_stop_ids, 3);
    assert_int_equal(g.stop_ids[2], 50);
    assert_int_equal(g.n_suppress_ids, 2);
    assert_int_equal(g.suppress_ids[0], 258883);
    assert_true(g.do_sample && g.temperature == 1.0 && g.top_p == 0.95 && g.top_k == 64);
    assert_true(g.min_p == 0.02 && g.typical_p == 0.9 && g.repetition_penalty == 1.2);
    test_ok(ct_generation_config_parse(&g, "g", CT_STR("{\"eos_token_id\":7}"), &err), &err);
    assert_int_equal(g.n_stop_ids, 1);
    assert_int_equal(g.stop_ids[0], 7);
    assert_false(g.do_sample);
    assert_true(g.min_p == 0 && g.typical_p == 1 && g.repetition_penalty == 1);
}

static void refuses_wrong_generation_configs(void **state)
{
    static const struct {
        const char *text, *words;
    } row[] = {
        {"{}", "eos_token_id|absent"},
        {"{\"eos_token_id\":null}", "eos_token_id|null"},
        {"{\"eos_token_id\":[]}", "eos_token_id"},
        {"{\"eos_token_id\":\"1\"}", "eos_token_id|'1'"},
        {"{\"eos_token_id\":[1,-1]}", "eos_token_id[1]|-1"},
        {"{\"eos_token_id\":[1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17]}", "eos_token_id|16"},
        {"{\"eos_token_id\":4194304}", "eos_token_id|4194304|4194303"},
        {"{\"eos_token_id\":1,\"eos_token_id\":2}", "eos_token_id|twice"},
        {"{\"eos_token_id\":1,\"top_p\":1.5}", "top_p|1.5"},
        {"{\"eos_token_id\":1,\"min_p\":1.5}", "min_p|1.5"},
        {"{\"eos_token_id\":1,\"typical_p\":0}", "typical_p|0"},
        {"{\"eos_token_id\":1,\"repetition_penalty\":0}", "repetition_penalty|0"},
        {"{\"eos_token_id\":1,\"temperature\":-1}", "temperature|-1"},
        {"{\"eos_token_id\":1,\"temperature\":\"hot\"}", "temperature|'hot'"},
        {"{\"eos_token_id\":1,\"top_k\":1.5}", "top_k|1.5"},
        {"{\"eos_token_id\":1,\"do_sample\":1}", "do_sample|1"},
        {"{\"eos_token_id\":1,\"suppress_tokens\":{}}", "suppress_tokens"},
    };
    ct_generation_config g;
    ct_error err;

    (void)state;
    for (size_t i = 0; i < CT_LEN(row); i++) {
        ct_status st = ct_generation_config_parse(&g, "gen.json", ct_str_of(row[i].text), &err);

        if (!st)
            fail_msg("accepted: %s", row[i].text);
        assert_message(&err, "gen.json");
        assert_message(&err, row[i].words);
    }
    assert_int_equal(ct_generation_config_load(&g, "/nonexistent", &err), CT_EIO);
    assert_message(&err, "/nonexistent/generation_config.json");
}

static int setup(void **state)
{
    ct_error err;

    (void)state;
    test_ok(ct_arena_init(&g_arena, (size_t)1 << 20, &err), &err);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    ct_arena_deinit(&g_arena);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_the_published_dialect),
        cmocka_unit_test(reads_text_only_configs_of_newer_transformers),
        cmocka_unit_test(absent_fields_have_the_documented_defaults),
        cmocka_unit_test(the_last_layer_is_global_whatever_the_count),
        cmocka_unit_test(the_old_name_of_the_expert_size_is_read),
        cmocka_unit_test(refuses_every_mutation_by_name),
        cmocka_unit_test(accepts_harmless_changes),
        cmocka_unit_test(reads_compressed_tensors_groups),
        cmocka_unit_test(refuses_an_unbounded_or_broken_text),
        cmocka_unit_test(reads_generation_configs),
        cmocka_unit_test(refuses_wrong_generation_configs),
    };

    return cmocka_run_group_tests(tests, setup, teardown);
}
