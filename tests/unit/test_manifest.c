/* The manifest and the weights on small checkpoints of every served form, and on one
 * change after another to them. */
#include "gemma_maker.h"

#include "base/num.h"
#include "model/manifest.h"
#include "model/weights.h"

static ct_arena g_arena;
static ct_quant_group g_group[2];
static ct_str g_linear[] = {{"Linear", 6}};
static ct_str g_attention[] = {{"re:.*self_attn.*", 16}};
static ct_str g_ignore[8];

/* A config that says what g is. */
static void config_of(ct_config *c, const gemma *g)
{
    *c = (ct_config){
        .arch = CT_ARCH_GEMMA4,
        .vocab = (uint32_t)g->V,
        .hidden = (uint32_t)g->H,
        .intermediate = (uint32_t)g->I,
        .n_layers = g->L,
        .n_heads = g->heads,
        .n_kv_sliding = g->kv_sliding,
        .n_kv_global = g->kv_global,
        .hd_sliding = (uint32_t)g->hd_sliding,
        .hd_global = (uint32_t)g->hd_global,
        .moe = g->E != 0,
        .n_experts = g->E,
        .top_k = g->E ? 2 : 0,
        .moe_intermediate = g->E ? (uint32_t)g->M : 0,
    };
    for (unsigned l = 0; l < g->L; l++)
        c->is_global[l] = (l + 1) % 6 == 0;
}

/* Quantises every linear module but the ignored, NVFP4; attention FP8 when asked. */
static void quantise(ct_config *c, ct_quant_method method, bool fp8, const char *ignore)
{
    c->quant = (ct_quant_config){.method = method, .ignore = g_ignore, .group = g_group};
    g_group[c->quant.n_groups++] = (ct_quant_group){CT_QUANT_NVFP4, g_linear, 1};
    if (fp8)
        g_group[c->quant.n_groups++] = (ct_quant_group){CT_QUANT_FP8, g_attention, 1};
    if (ignore)
        g_ignore[c->quant.n_ignore++] = ct_str_of(ignore);
}

typedef struct opened {
    ct_buf bytes;
    ct_checkpoint *ckpt;
} opened;

static void open_made(opened *o, maker *m)
{
    ct_error err;

    maker_bytes(m, &o->bytes);
    test_ok(ct_checkpoint_open_memory(&o->ckpt, "made", ct_buf_str(&o->bytes), &err), &err);
    maker_deinit(m);
}

static void close_made(opened *o)
{
    ct_checkpoint_close(o->ckpt);
    ct_buf_deinit(&o->bytes);
}

/* Checks g's own checkpoint and binds its weights; o stays open for the caller. */
static void accept(opened *o, ct_weights *w, const ct_config *c, const gemma *g,
                   const char *dialect)
{
    ct_manifest_report report;
    maker m = {0};
    size_t n;
    ct_error err;

    gemma_make(&m, g);
    n = m.n;
    open_made(o, &m);
    test_ok(ct_manifest_check(c, o->ckpt, &report, &err), &err);
    assert_int_equal(report.n_text, n);
    assert_int_equal(report.n_skipped, 0);
    assert_string_equal(report.dialect, dialect);
    assert_string_equal(report.prefix, g->prefix);
    g_arena.used_bytes = 0;
    test_ok(ct_weights_bind(w, c, o->ckpt, &g_arena, &err), &err);
}

static const void *data_of(const opened *o, const char *name)
{
    const ct_tensor *t = ct_checkpoint_find(o->ckpt, ct_str_of(name));

    assert_non_null(t);
    return t->data;
}

static void dense_bf16_under_both_prefixes(void **state)
{
    static const char *const prefixes[] = {"model.language_model.", "model."};
    gemma g = gemma_tiny;
    ct_config c;
    ct_weights w;
    opened o;
    char name[128];

    (void)state;
    for (int i = 0; i < 2; i++) {
        g.prefix = prefixes[i];
        config_of(&c, &g);
        accept(&o, &w, &c, &g, "bf16");
        snprintf(name, sizeof name, "%slayers.3.self_attn.k_proj.weight", g.prefix);
        assert_ptr_equal(w.layer[3].k.data, data_of(&o, name));
        assert_int_equal(w.layer[3].k.rows, 16);
        assert_int_equal(w.layer[5].k.rows, 16);
        assert_int_equal(w.layer[5].q.rows, 64);
        assert_int_equal(w.layer[5].o.cols, 64);
        assert_int_equal(w.layer[5].v.type, CT_WEIGHT_NONE);
        assert_int_equal(w.layer[4].v.type, CT_WEIGHT_BF16);
        assert_int_equal(w.embed.rows, 48);
        close_made(&o);
    }
}

/* The tied table and layer norms bind by name, too. */
static void fused_experts_are_row_views(void **state)
{
    static const char *const paths[] = {NULL, "moe.experts.", "moe."};
    gemma g = gemma_tiny;
    ct_config c;
    ct_weights w;
    opened o;

    (void)state;
    g.E = 4;
    for (size_t i = 0; i < CT_LEN(paths); i++) {
        const ct_expert_weights *x;
        const uint16_t *gu, *down;
        char name[128];

        g.expert_path = paths[i];
        config_of(&c, &g);
        accept(&o, &w, &c, &g, "bf16");
        snprintf(name, sizeof name, "%slayers.2.%sgate_up_proj", g.prefix,
                 paths[i] ? paths[i] : "experts.");
        gu = data_of(&o, name);
        snprintf(name, sizeof name, "%slayers.2.%sdown_proj", g.prefix,
                 paths[i] ? paths[i] : "experts.");
        down = data_of(&o, name);
        x = &w.layer[2].experts;
        assert_ptr_equal(x->gate[3].data, gu + 3 * 2 * 16 * 32);
        assert_ptr_equal(x->up[3].data, gu + (3 * 2 + 1) * 16 * 32);
        assert_ptr_equal(x->down[3].data, down + 3 * 32 * 16);
        assert_int_equal(x->gate[0].rows, 16);
        assert_int_equal(x->gate[0].cols, 32);
        assert_int_equal(x->down[0].rows, 32);
        assert_int_equal(w.layer[2].router.proj.rows, 4);
        close_made(&o);
    }
}

static void split_bf16_experts(void **state)
{
    gemma g = gemma_tiny;
    ct_config c;
    ct_weights w;
    opened o;

    (void)state;
    g.E = 12; /* two digits sort as text */
    g.split = true;
    config_of(&c, &g);
    accept(&o, &w, &c, &g, "bf16");
    assert_ptr_equal(w.layer[1].experts.down[11].data,
                     data_of(&o, "model.language_model.layers.1.experts.11.down_proj.weight"));
    close_made(&o);
}

static void modelopt_experts_only(void **state)
{
    gemma g = gemma_tiny;
    ct_config c;
    ct_weights w;
    opened o;

    (void)state;
    g.E = 4;
    g.split = true;
    g.experts = FORM_MODELOPT;
    config_of(&c, &g);
    quantise(&c, CT_QUANT_MODELOPT, false, "model.language_model.layers.*.self_attn*");
    g_ignore[c.quant.n_ignore++] = ct_str_of("*.mlp*");
    accept(&o, &w, &c, &g, "nvfp4 (modelopt)");
    assert_int_equal(w.layer[0].experts.up[2].type, CT_WEIGHT_NVFP4);
    assert_true(w.layer[0].experts.up[2].global == 1.0f);
    assert_ptr_equal(w.layer[0].experts.up[2].scale,
                     data_of(&o, "model.language_model.layers.0.experts.2.up_proj.weight_scale"));
    assert_int_equal(w.layer[0].gate.type, CT_WEIGHT_BF16);
    close_made(&o);
}

static void modelopt_everything_weight_only_under_moe(void **state)
{
    gemma g = gemma_tiny;
    ct_config c;
    ct_weights w;
    opened o;

    (void)state;
    g.E = 4;
    g.split = g.no_input_scale = true;
    g.expert_path = "moe.experts.";
    g.attention = g.mlp = g.experts = FORM_MODELOPT;
    config_of(&c, &g);
    quantise(&c, CT_QUANT_MODELOPT, false, "model.language_model.layers.0.router*");
    accept(&o, &w, &c, &g, "nvfp4 (modelopt)");
    assert_int_equal(w.layer[5].o.type, CT_WEIGHT_NVFP4);
    close_made(&o);
}

static void compressed_tensors_with_fp8_attention(void **state)
{
    gemma g = gemma_tiny;
    ct_config c;
    ct_weights w;
    opened o;
    float divisor = 8;

    (void)state;
    g.E = 4;
    g.split = g.kv_scale = true;
    g.attention = FORM_FP8;
    g.mlp = g.experts = FORM_COMPRESSED;
    config_of(&c, &g);
    quantise(&c, CT_QUANT_COMPRESSED_TENSORS, true, "re:.*router.*");
    accept(&o, &w, &c, &g, "nvfp4 + fp8 (compressed-tensors)");
    assert_int_equal(w.layer[0].q.type, CT_WEIGHT_FP8);
    assert_ptr_equal(w.layer[0].q.scale,
                     data_of(&o, "model.language_model.layers.0.self_attn.q_proj.weight_scale"));
    assert_int_equal(w.layer[0].down.type, CT_WEIGHT_NVFP4);
    /* A divisor in the file is a multiplier in ct_weight. */
    memcpy((char *)(uintptr_t)data_of(
               &o, "model.language_model.layers.0.mlp.down_proj.weight_global_scale"),
           &divisor, sizeof divisor);
    g_arena.used_bytes = 0;
    assert_int_equal(ct_weights_bind(&w, &c, o.ckpt, &g_arena, NULL), CT_OK);
    assert_true(w.layer[0].down.global == 0.125f);
    close_made(&o);
}

static void other_modalities_are_skipped(void **state)
{
    ct_manifest_report report;
    ct_config c;
    maker m = {0};
    opened o;
    ct_error err;

    (void)state;
    gemma_make(&m, &gemma_tiny);
    maker_add(&m, CT_DTYPE_F16, 3, 0, 0, "model.vision_tower.encoder.layers.0.x");
    maker_add(&m, CT_DTYPE_BF16, 3, 0, 0, "model.embed_vision.embedding_projection.weight");
    maker_add(&m, CT_DTYPE_BF16, 3, 0, 0, "model.audio_tower.x");
    maker_add(&m, CT_DTYPE_BF16, 3, 0, 0, "model.embed_audio.x");
    maker_add(&m, CT_DTYPE_BF16, 3, 0, 0, "model.vision_embedder.x");
    config_of(&c, &gemma_tiny);
    open_made(&o, &m);
    test_ok(ct_manifest_check(&c, o.ckpt, &report, &err), &err);
    assert_int_equal(report.n_skipped, 5);
    assert_int_equal(report.skipped_bytes, 30);
    assert_int_equal(report.n_text, 85);
    close_made(&o);
}

/* The checkpoints that the mutations start from. */
typedef enum base { DENSE, MOE, MODELOPT, COMPRESSED } base;

static gemma base_gemma(base b)
{
    gemma g = gemma_tiny;

    g.E = b == DENSE ? 0 : 2;
    g.split = b == MODELOPT || b == COMPRESSED;
    if (b == MODELOPT)
        g.experts = FORM_MODELOPT;
    if (b == COMPRESSED) {
        g.attention = FORM_FP8;
        g.mlp = g.experts = FORM_COMPRESSED;
        g.kv_scale = true;
    }
    return g;
}

static void base_config(ct_config *c, const gemma *g, base b)
{
    config_of(c, g);
    if (b == MODELOPT) {
        quantise(c, CT_QUANT_MODELOPT, false, "*.self_attn*");
        g_ignore[c->quant.n_ignore++] = ct_str_of("*.mlp*");
    }
    if (b == COMPRESSED)
        quantise(c, CT_QUANT_COMPRESSED_TENSORS, true, NULL);
}

typedef enum change { DROP, RENAME, SHAPE, TYPE, ADD, VALUE } change;

#define P  "model.language_model."
#define L0 P "layers.0."
#define X1 L0 "experts.1."

static void apply(maker *m, change what, const char *name, const char *to, ct_dtype type,
                  uint64_t d0, uint64_t d1, uint64_t d2)
{
    const uint64_t dim[3] = {d0, d1, d2};
    made_tensor *t;

    switch (what) {
    case DROP:
        maker_drop(m, name);
        break;
    case RENAME:
        snprintf(maker_find(m, name)->name, MAKER_NAME, "%s", to);
        break;
    case SHAPE:
        t = maker_find(m, name);
        for (t->n_dims = 0; t->n_dims < 3 && dim[t->n_dims]; t->n_dims++)
            t->dim[t->n_dims] = dim[t->n_dims];
        break;
    case TYPE:
        maker_find(m, name)->dtype = type;
        break;
    case ADD:
        maker_add(m, type, d0, d1, d2, "%s", name);
        break;
    case VALUE:
        maker_find(m, name)->value = strtof(to, NULL);
        break;
    }
}

static void refuses_every_mutation_by_name(void **state)
{
    static const struct {
        base base;
        change what;
        const char *name, *to;
        ct_dtype type;
        uint64_t d0, d1, d2;
        const char *words;
    } row[] = {
        {DENSE, DROP, P "embed_tokens.weight", 0, 0, 0, 0, 0, "1 missing|" P "embed_tokens.weight"},
        {DENSE, DROP, P "norm.weight", 0, 0, 0, 0, 0, "1 missing|" P "norm.weight"},
        {DENSE, DROP, L0 "layer_scalar", 0, 0, 0, 0, 0, "1 missing|" L0 "layer_scalar"},
        {DENSE, DROP, L0 "self_attn.v_proj.weight", 0, 0, 0, 0, 0,
         "missing|layers.0.self_attn.v_proj"},
        {DENSE, DROP, L0 "self_attn.k_norm.weight", 0, 0, 0, 0, 0,
         "missing|layers.0.self_attn.k_norm"},
        {DENSE, DROP, P "layers.5.mlp.down_proj.weight", 0, 0, 0, 0, 0,
         "missing|layers.5.mlp.down_proj"},
        {DENSE, DROP, L0 "post_attention_layernorm.weight", 0, 0, 0, 0, 0,
         "missing|post_attention_layernorm"},
        {DENSE, RENAME, L0 "input_layernorm.weight", L0 "input_norm.weight", 0, 0, 0, 0,
         "1 missing|input_layernorm|1 unknown|input_norm.weight"},
        {DENSE, RENAME, L0 "mlp.up_proj.weight", "model.layers.0.mlp.up_proj.weight", 0, 0, 0, 0,
         "missing|unknown: model.layers.0.mlp.up_proj"},
        {DENSE, RENAME, L0 "layer_scalar", L0 "layer_scalar.weight", 0, 0, 0, 0,
         "missing|unknown|layer_scalar.weight"},
        {DENSE, ADD, P "layers.5.self_attn.v_proj.weight", 0, CT_DTYPE_BF16, 16, 32, 0,
         "1 unknown|layers.5.self_attn.v_proj.weight"},
        {DENSE, ADD, P "layers.6.layer_scalar", 0, CT_DTYPE_BF16, 1, 0, 0,
         "unknown|layers.6.layer_scalar"},
        {DENSE, ADD, "lm_head.weight", 0, CT_DTYPE_BF16, 48, 32, 0, "1 unknown: lm_head.weight"},
        {DENSE, ADD, P "embed_tokens_per_layer.weight", 0, CT_DTYPE_BF16, 48, 32, 0,
         "unknown|embed_tokens_per_layer"},
        {DENSE, ADD, L0 "self_attn.q_proj.bias", 0, CT_DTYPE_BF16, 32, 0, 0, "unknown|q_proj.bias"},
        {DENSE, ADD, L0 "router.scale", 0, CT_DTYPE_BF16, 32, 0, 0, "unknown|router.scale"},
        {DENSE, ADD, "model.vision_tower", 0, CT_DTYPE_BF16, 1, 0, 0,
         "unknown: model.vision_tower"},
        {DENSE, ADD, L0 "self_attn.k_scale", 0, CT_DTYPE_BF16, 1, 0, 0, "unknown|k_scale"},
        {DENSE, SHAPE, P "embed_tokens.weight", 0, 0, 47, 32, 0,
         "1 mis-shaped|embed_tokens.weight is [47, 32], must be [48, 32]"},
        {DENSE, SHAPE, L0 "self_attn.q_proj.weight", 0, 0, 32, 33, 0,
         "q_proj.weight is [32, 33], must be [32, 32]"},
        {DENSE, SHAPE, P "layers.5.self_attn.k_proj.weight", 0, 0, 32, 32, 0,
         "layers.5.self_attn.k_proj.weight is [32, 32], must be [16, 32]"},
        {DENSE, SHAPE, P "layers.5.self_attn.q_norm.weight", 0, 0, 8, 0, 0,
         "q_norm.weight is [8], must be [16]"},
        {DENSE, SHAPE, L0 "mlp.down_proj.weight", 0, 0, 48, 32, 0,
         "down_proj.weight is [48, 32], must be [32, 48]"},
        {DENSE, SHAPE, L0 "layer_scalar", 0, 0, 2, 0, 0, "layer_scalar is [2], must be [1]"},
        {DENSE, SHAPE, L0 "layer_scalar", 0, 0, 0, 0, 0, "layer_scalar is [], must be [1]"},
        {DENSE, SHAPE, L0 "input_layernorm.weight", 0, 0, 1, 32, 0,
         "input_layernorm.weight is [1, 32], must be [32]"},
        {DENSE, TYPE, P "embed_tokens.weight", 0, CT_DTYPE_F32, 0, 0, 0,
         "1 mis-typed|embed_tokens.weight is F32, must be BF16"},
        {DENSE, TYPE, P "norm.weight", 0, CT_DTYPE_F16, 0, 0, 0,
         "norm.weight is F16, must be BF16"},
        {DENSE, TYPE, L0 "mlp.up_proj.weight", 0, CT_DTYPE_F16, 0, 0, 0,
         "up_proj.weight is F16, must be BF16"},
        {DENSE, TYPE, L0 "mlp.up_proj.weight", 0, CT_DTYPE_F8_E4M3, 0, 0, 0,
         "against config|layers.0.mlp.up_proj is FP8|must be BF16"},
        {DENSE, TYPE, L0 "mlp.up_proj.weight", 0, CT_DTYPE_U8, 0, 0, 0,
         "against config|layers.0.mlp.up_proj is NVFP4|must be BF16"},
        {MOE, DROP, L0 "router.proj.weight", 0, 0, 0, 0, 0, "missing|router.proj.weight"},
        {MOE, DROP, L0 "router.per_expert_scale", 0, 0, 0, 0, 0, "missing|per_expert_scale"},
        {MOE, DROP, L0 "post_feedforward_layernorm_1.weight", 0, 0, 0, 0, 0,
         "missing|post_feedforward_layernorm_1"},
        {MOE, DROP, P "layers.3.experts.gate_up_proj", 0, 0, 0, 0, 0,
         "missing|layers.3.experts.gate_up_proj"},
        {MOE, SHAPE, L0 "experts.gate_up_proj", 0, 0, 2, 16, 32,
         "gate_up_proj is [2, 16, 32], must be [2, 32, 32]"},
        {MOE, SHAPE, L0 "experts.down_proj", 0, 0, 2, 16, 32,
         "down_proj is [2, 16, 32], must be [2, 32, 16]"},
        {MOE, SHAPE, L0 "router.proj.weight", 0, 0, 3, 32, 0,
         "router.proj.weight is [3, 32], must be [2, 32]"},
        {MOE, TYPE, L0 "router.scale", 0, CT_DTYPE_F32, 0, 0, 0,
         "router.scale is F32, must be BF16"},
        {MOE, RENAME, L0 "experts.down_proj", L0 "experts.down_proj.weight", 0, 0, 0, 0,
         "missing|unknown|experts.down_proj.weight"},
        {MOE, ADD, X1 "gate_proj.weight", 0, CT_DTYPE_BF16, 16, 32, 0, "unknown|gate_up_proj"},
        {MODELOPT, DROP, X1 "gate_proj.weight", 0, 0, 0, 0, 0,
         "1 missing|experts.1.gate_proj.weight"},
        {MODELOPT, DROP, X1 "gate_proj.weight_scale", 0, 0, 0, 0, 0,
         "missing|gate_proj.weight_scale"},
        {MODELOPT, DROP, X1 "gate_proj.weight_scale_2", 0, 0, 0, 0, 0,
         "missing|gate_proj.weight_scale_2"},
        {MODELOPT, SHAPE, X1 "down_proj.weight", 0, 0, 32, 16, 0,
         "down_proj.weight is [32, 16], must be [32, 8]"},
        {MODELOPT, SHAPE, X1 "down_proj.weight_scale", 0, 0, 32, 2, 0,
         "weight_scale is [32, 2], must be [32, 1]"},
        {MODELOPT, SHAPE, X1 "down_proj.weight_scale_2", 0, 0, 2, 0, 0,
         "weight_scale_2 is [2], must be []"},
        {MODELOPT, SHAPE, X1 "down_proj.input_scale", 0, 0, 2, 0, 0,
         "input_scale is [2], must be []"},
        {MODELOPT, TYPE, X1 "up_proj.weight", 0, CT_DTYPE_I8, 0, 0, 0,
         "up_proj.weight is I8, must be U8"},
        {MODELOPT, TYPE, X1 "up_proj.weight_scale", 0, CT_DTYPE_F8_E5M2, 0, 0, 0,
         "weight_scale is F8_E5M2, must be F8_E4M3"},
        {MODELOPT, TYPE, X1 "up_proj.weight_scale_2", 0, CT_DTYPE_BF16, 0, 0, 0,
         "weight_scale_2 is BF16, must be F32"},
        {MODELOPT, VALUE, X1 "up_proj.weight_scale_2", "0", 0, 0, 0, 0,
         "1 unusable|up_proj.weight_scale_2 is 0"},
        {MODELOPT, VALUE, X1 "up_proj.weight_scale_2", "-1", 0, 0, 0, 0, "weight_scale_2 is -1"},
        {MODELOPT, VALUE, X1 "up_proj.weight_scale_2", "nan", 0, 0, 0, 0, "weight_scale_2 is|nan"},
        {MODELOPT, VALUE, X1 "up_proj.weight_scale_2", "inf", 0, 0, 0, 0, "weight_scale_2 is inf"},
        {MODELOPT, ADD, L0 "mlp.up_proj.weight_packed", 0, CT_DTYPE_U8, 48, 16, 0,
         "mixes|mlp.up_proj.weight_packed|weight_scale_2"},
        {MODELOPT, ADD, L0 "mlp.up_proj.weight_scale_2", 0, CT_DTYPE_F32, 0, 0, 0,
         "against config|layers.0.mlp.up_proj is NVFP4|BF16"},
        {MODELOPT, ADD, X1 "up_proj.pre_quant_scale", 0, CT_DTYPE_BF16, 32, 0, 0,
         "unknown|pre_quant_scale"},
        {MODELOPT, RENAME, X1 "up_proj.weight", P "layers.0.experts.2.up_proj.weight", 0, 0, 0, 0,
         "missing|experts.1.up_proj.weight|unknown|experts.2.up_proj"},
        {COMPRESSED, DROP, X1 "up_proj.weight_packed", 0, 0, 0, 0, 0,
         "missing|up_proj.weight_packed"},
        {COMPRESSED, DROP, X1 "up_proj.weight_global_scale", 0, 0, 0, 0, 0,
         "missing|up_proj.weight_global_scale"},
        {COMPRESSED, DROP, L0 "self_attn.q_proj.weight_scale", 0, 0, 0, 0, 0,
         "missing|q_proj.weight_scale"},
        {COMPRESSED, SHAPE, L0 "self_attn.q_proj.weight_scale", 0, 0, 1, 32, 0,
         "q_proj.weight_scale is [1, 32], must be [32, 1]"},
        {COMPRESSED, TYPE, L0 "self_attn.q_proj.weight_scale", 0, CT_DTYPE_F32, 0, 0, 0,
         "q_proj.weight_scale is F32, must be BF16"},
        {COMPRESSED, TYPE, L0 "self_attn.q_proj.weight", 0, CT_DTYPE_BF16, 0, 0, 0,
         "against config|q_proj is BF16|FP8"},
        {COMPRESSED, VALUE, L0 "mlp.up_proj.weight_global_scale", "0", 0, 0, 0, 0,
         "up_proj.weight_global_scale is 0"},
        {COMPRESSED, VALUE, L0 "mlp.up_proj.weight_global_scale", "1e-45", 0, 0, 0, 0,
         "up_proj.weight_global_scale is 1.4"},
        {COMPRESSED, ADD, L0 "mlp.up_proj.weight", 0, CT_DTYPE_BF16, 48, 32, 0,
         "unknown|mlp.up_proj.weight"},
        {COMPRESSED, ADD, L0 "mlp.up_proj.weight_zero_point", 0, CT_DTYPE_I8, 48, 0, 0,
         "unknown|weight_zero_point"},
        {COMPRESSED, SHAPE, L0 "self_attn.k_scale", 0, 0, 3, 0, 0, "k_scale is [3], must be []"},
        {COMPRESSED, TYPE, L0 "self_attn.v_scale", 0, CT_DTYPE_I8, 0, 0, 0,
         "v_scale is I8, must be F32"},
    };

    (void)state;
    for (size_t i = 0; i < CT_LEN(row); i++) {
        gemma g = base_gemma(row[i].base);
        ct_manifest_report report = {0};
        ct_config c;
        maker m = {0};
        opened o;
        ct_error err;

        base_config(&c, &g, row[i].base);
        gemma_make(&m, &g);
        apply(&m, row[i].what, row[i].name, row[i].to, row[i].type, row[i].d0, row[i].d1,
              row[i].d2);
        open_made(&o, &m);
        if (ct_manifest_check(&c, o.ckpt, &report, &err) != CT_EFORMAT)
            fail_msg("row %zu, %s: accepted", i, row[i].name);
        assert_null(report.prefix);
        assert_message(&err, "made");
        assert_message(&err, row[i].words);
        close_made(&o);
    }
}

/* The same checkpoint under a config that says something else. */
static void the_config_decides_what_is_quantised(void **state)
{
    gemma g = base_gemma(MODELOPT);
    ct_manifest_report report;
    ct_config c;
    maker m = {0};
    opened o;
    ct_error err;

    (void)state;
    gemma_make(&m, &g);
    open_made(&o, &m);
    base_config(&c, &g, MODELOPT);
    c.quant.n_ignore = 1; /* the MLP is no longer left alone */
    assert_int_equal(ct_manifest_check(&c, o.ckpt, &report, &err), CT_EFORMAT);
    assert_message(&err,
                   "18 against config|layers.0.mlp.gate_proj is BF16|makes it NVFP4|and 10 more");
    base_config(&c, &g, MODELOPT);
    g_ignore[c.quant.n_ignore++] = ct_str_of("*.experts.1.*");
    assert_int_equal(ct_manifest_check(&c, o.ckpt, &report, &err), CT_EFORMAT);
    assert_message(&err, "18 against config|experts.1.gate_proj is NVFP4|makes it BF16");
    c.quant = (ct_quant_config){0};
    assert_int_equal(ct_manifest_check(&c, o.ckpt, &report, &err), CT_EFORMAT);
    assert_message(&err, "36 against config|is NVFP4, quantization_config is absent");
    close_made(&o);
}

static void everything_wrong_is_listed_at_once(void **state)
{
    ct_manifest_report report;
    ct_config c;
    maker m = {0};
    opened o;
    ct_error err;

    (void)state;
    gemma_make(&m, &gemma_tiny);
    maker_drop(&m, P "norm.weight");
    maker_find(&m, L0 "layer_scalar")->dim[0] = 5;
    maker_find(&m, L0 "mlp.up_proj.weight")->dtype = CT_DTYPE_F64;
    for (int i = 0; i < 30; i++)
        maker_add(&m, CT_DTYPE_BF16, 1, 0, 0, "stray.%02d", i);
    open_made(&o, &m);
    config_of(&c, &gemma_tiny);
    assert_int_equal(ct_manifest_check(&c, o.ckpt, &report, &err), CT_EFORMAT);
    assert_message(&err, "1 missing: " P "norm.weight|30 unknown: stray.00|and 22 more|"
                         "1 mis-shaped: " L0 "layer_scalar is [5], must be [1]|"
                         "1 mis-typed: " L0 "mlp.up_proj.weight is F64, must be BF16");
    close_made(&o);
}

static void nvfp4_needs_whole_blocks(void **state)
{
    gemma g = base_gemma(MODELOPT);
    ct_manifest_report report;
    ct_config c;
    maker m = {0};
    opened o;
    ct_error err;

    (void)state;
    g.M = 24;
    base_config(&c, &g, MODELOPT);
    gemma_make(&m, &g);
    open_made(&o, &m);
    assert_int_equal(ct_manifest_check(&c, o.ckpt, &report, &err), CT_EFORMAT);
    assert_message(&err, "down_proj has 24 columns|multiple of 16");
    close_made(&o);
}

/* Nothing in the format aligns the data: here the whole file lies at an odd address. */
static void bf16_at_an_odd_address_is_refused(void **state)
{
    ct_manifest_report report;
    ct_checkpoint *ckpt;
    ct_config c;
    maker m = {0};
    ct_buf bytes;
    char *odd;
    ct_error err;

    (void)state;
    gemma_make(&m, &gemma_tiny);
    maker_bytes(&m, &bytes);
    maker_deinit(&m);
    odd = malloc(bytes.n + 1);
    assert_non_null(odd);
    memcpy(odd + 1, bytes.p, bytes.n);
    test_ok(ct_checkpoint_open_memory(&ckpt, "odd", (ct_str){odd + 1, bytes.n}, &err), &err);
    config_of(&c, &gemma_tiny);
    assert_int_equal(ct_manifest_check(&c, ckpt, &report, &err), CT_EFORMAT);
    assert_message(&err, "85 unusable|embed_tokens.weight lies at an odd address|and 77 more");
    ct_checkpoint_close(ckpt);
    free(odd);
    ct_buf_deinit(&bytes);
}

/* A config of 256 layers and 1,024 experts each against nearly nothing. */
static void an_enormous_config_is_answered_quickly(void **state)
{
    gemma g = gemma_tiny;
    ct_manifest_report report;
    ct_config c;
    maker m = {0};
    opened o;
    ct_error err;

    (void)state;
    g.L = CT_MAX_LAYERS;
    g.E = CT_MAX_EXPERTS;
    config_of(&c, &g);
    quantise(&c, CT_QUANT_MODELOPT, false, NULL);
    maker_add(&m, CT_DTYPE_U8, 16, 16, 0, X1 "gate_proj.weight");
    open_made(&o, &m);
    assert_int_equal(ct_manifest_check(&c, o.ckpt, &report, &err), CT_EFORMAT);
    assert_message(&err, "missing|more");
    close_made(&o);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(dense_bf16_under_both_prefixes),
        cmocka_unit_test(fused_experts_are_row_views),
        cmocka_unit_test(split_bf16_experts),
        cmocka_unit_test(modelopt_experts_only),
        cmocka_unit_test(modelopt_everything_weight_only_under_moe),
        cmocka_unit_test(compressed_tensors_with_fp8_attention),
        cmocka_unit_test(other_modalities_are_skipped),
        cmocka_unit_test(refuses_every_mutation_by_name),
        cmocka_unit_test(the_config_decides_what_is_quantised),
        cmocka_unit_test(everything_wrong_is_listed_at_once),
        cmocka_unit_test(nvfp4_needs_whole_blocks),
        cmocka_unit_test(bf16_at_an_odd_address_is_refused),
        cmocka_unit_test(an_enormous_config_is_answered_quickly),
    };
    ct_error err;
    int failed;

    if (ct_arena_init(&g_arena, (size_t)16 << 20, &err))
        return 1;
    failed = cmocka_run_group_tests(tests, NULL, NULL);
    ct_arena_deinit(&g_arena);
    return failed;
}
