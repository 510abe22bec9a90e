/* The text model's fields of config.json. */
#include "format/config.h"

#include "base/checked.h"
#include "format/config_file.h"
#include "format/doc.h"

#include <math.h>

/* Five sliding layers, then a global one; the last layer is always global. */
#define PATTERN_PERIOD 6

typedef struct dialect {
    const char *model_type;
    ct_arch arch;
    const char *text_model_type; /* NULL: a text-only config, its fields at the top */
} dialect;

static const dialect dialects[] = {
    {"gemma4", CT_ARCH_GEMMA4, "gemma4_text"},
    {"gemma4_unified", CT_ARCH_GEMMA4_UNIFIED, "gemma4_unified_text"},
    {"gemma4_text", CT_ARCH_GEMMA4, NULL},
    {"gemma4_unified_text", CT_ARCH_GEMMA4_UNIFIED, NULL},
};

static const struct {
    const char *name;
    ct_arch arch;
} architectures[] = {
    {"Gemma4ForConditionalGeneration", CT_ARCH_GEMMA4},
    {"Gemma4ForCausalLM", CT_ARCH_GEMMA4},
    {"Gemma4UnifiedForConditionalGeneration", CT_ARCH_GEMMA4_UNIFIED},
    {"Gemma4UnifiedForCausalLM", CT_ARCH_GEMMA4_UNIFIED},
};

static void check_architecture(ct_fields *f, const ct_node *n, const dialect *d)
{
    ct_str name = ct_fields_node_str(f, n);

    for (size_t i = 0; i < CT_LEN(architectures); i++)
        if (ct_str_is(name, architectures[i].name)) {
            if (architectures[i].arch != d->arch)
                ct_fields_refuse_node(f, CT_EFORMAT, n, "but model_type is '%s'", d->model_type);
            return;
        }
    ct_fields_refuse_node(f, CT_EUNSUPPORTED, n,
                          "carat serves Gemma4ForConditionalGeneration, Gemma4ForCausalLM and "
                          "their Gemma4Unified forms");
}

/* transformers leaves architectures out of a config saved without a model. */
static void check_architectures(ct_fields *f, const ct_node *root, const dialect *d)
{
    const ct_node *list;

    if (!ct_node_get(root, "architectures"))
        return;
    list = ct_fields_container(f, root, "architectures", CT_JSON_ARRAY);
    if (list && !list->child)
        ct_fields_refuse_node(f, CT_EFORMAT, list, "must name an architecture");
    for (const ct_node *n = list ? list->child : NULL; n; n = n->next)
        check_architecture(f, n, d);
}

static const dialect *read_dialect(ct_fields *f, const ct_node *root)
{
    ct_str type = ct_fields_str(f, root, "model_type");

    for (size_t i = 0; i < CT_LEN(dialects); i++)
        if (ct_str_is(type, dialects[i].model_type)) {
            check_architectures(f, root, &dialects[i]);
            return &dialects[i];
        }
    ct_fields_refuse(f, CT_EUNSUPPORTED, root, "model_type",
                     "carat serves gemma4, gemma4_unified, gemma4_text and gemma4_unified_text");
    return &dialects[0];
}

/* The object that holds the text model's fields. */
static const ct_node *text_fields(ct_fields *f, const ct_node *root, const dialect *d)
{
    const ct_node *text;

    if (!d->text_model_type) {
        if (ct_node_get(root, "text_config"))
            ct_fields_refuse(f, CT_EFORMAT, root, "text_config",
                             "but model_type '%s' has its fields at the top level", d->model_type);
        return root;
    }
    text = ct_fields_container(f, root, "text_config", CT_JSON_OBJECT);
    if (ct_node_get(text, "model_type") &&
        !ct_str_is(ct_fields_str(f, text, "model_type"), d->text_model_type))
        ct_fields_refuse(f, CT_EUNSUPPORTED, text, "model_type", "must be '%s' under '%s'",
                         d->text_model_type, d->model_type);
    return text;
}

/* What E2B and E4B have and these models have not.  Checked before the sizes, which
 * are odd there and would be reported instead. */
static void refuse_e_series(ct_fields *f, const ct_node *text, ct_arch arch)
{
    static const char why[] = "must be 0 (the E2B and E4B models are not supported)";
    /* transformers' default for this field is 256 in one family; the other lacks it. */
    uint32_t absent = arch == CT_ARCH_GEMMA4 ? 256 : 0;

    if (ct_fields_u32_or(f, text, "hidden_size_per_layer_input", 0, UINT32_MAX, absent))
        ct_fields_refuse(f, CT_EUNSUPPORTED, text, "hidden_size_per_layer_input", "%s", why);
    if (ct_fields_u32_or(f, text, "num_kv_shared_layers", 0, UINT32_MAX, 0))
        ct_fields_refuse(f, CT_EUNSUPPORTED, text, "num_kv_shared_layers", "%s", why);
    if (ct_fields_bool_or(f, text, "use_double_wide_mlp", false))
        ct_fields_refuse(f, CT_EUNSUPPORTED, text, "use_double_wide_mlp",
                         "must be false (the E2B and E4B models are not supported)");
}

/* Fields of other models of the family; Gemma 4 has none of them, and each would
 * change the mathematics. */
static void refuse_foreign(ct_fields *f, const ct_node *text)
{
    static const char *const foreign[] = {
        "attn_logit_softcapping", "query_pre_attn_scalar", "rope_scaling", "sliding_window_pattern",
        "altup_num_inputs",       "laurel_rank",           "lora_rank",
    };

    for (size_t i = 0; i < CT_LEN(foreign); i++)
        if (ct_node_get(text, foreign[i]))
            ct_fields_refuse(f, CT_EUNSUPPORTED, text, foreign[i], "Gemma 4 has no such field");
}

static void require_bool(ct_fields *f, const ct_node *object, const char *key, bool absent,
                         bool want, const char *why)
{
    if (ct_fields_bool_or(f, object, key, absent) != want)
        ct_fields_refuse(f, CT_EUNSUPPORTED, object, key, "must be %s (%s)",
                         want ? "true" : "false", why);
}

static void require_str(ct_fields *f, const ct_node *object, const char *key, const char *want)
{
    if (ct_node_get(object, key) && !ct_str_is(ct_fields_str(f, object, key), want))
        ct_fields_refuse(f, CT_EUNSUPPORTED, object, key, "must be '%s'", want);
}

static void check_switches(ct_fields *f, const ct_node *root, const ct_node *text)
{
    require_bool(f, text, "attention_k_eq_v", false, true,
                 "global layers without v_proj are the only kind served");
    require_bool(f, text, "attention_bias", false, false, "projections have no biases");
    require_bool(f, text, "tie_word_embeddings", true, true, "there is no lm_head tensor");
    require_bool(f, root, "tie_word_embeddings", true, true, "there is no lm_head tensor");
    require_str(f, text, "hidden_activation", "gelu_pytorch_tanh");
    require_str(f, text, "use_bidirectional_attention", "vision");
    require_str(f, root, "dtype", "bfloat16");
    require_str(f, text, "dtype", "bfloat16");
    require_str(f, root, "torch_dtype", "bfloat16");
    require_str(f, text, "torch_dtype", "bfloat16");
}

static void read_sizes(ct_fields *f, const ct_node *text, ct_config *c)
{
    c->vocab = ct_fields_u32(f, text, "vocab_size", 1, CT_MAX_VOCAB);
    c->hidden = ct_fields_u32(f, text, "hidden_size", 1, CT_MAX_HIDDEN);
    c->intermediate = ct_fields_u32(f, text, "intermediate_size", 1, CT_MAX_INTERMEDIATE);
    c->n_layers = ct_fields_u32(f, text, "num_hidden_layers", 1, CT_MAX_LAYERS);
    c->n_heads = ct_fields_u32(f, text, "num_attention_heads", 1, CT_MAX_HEADS);
    c->window = ct_fields_u32(f, text, "sliding_window", 1, CT_MAX_POSITIONS);
    c->max_positions = ct_fields_u32(f, text, "max_position_embeddings", 1, CT_MAX_POSITIONS);
}

static void read_numbers(ct_fields *f, const ct_node *text, ct_config *c)
{
    double eps = ct_fields_double(f, text, "rms_norm_eps");
    double softcap = ct_fields_double(f, text, "final_logit_softcapping");

    if (!(eps >= 1e-12 && eps <= 1e-2))
        ct_fields_refuse(f, CT_EFORMAT, text, "rms_norm_eps", "must be from 1e-12 to 0.01");
    if (!(softcap >= 1e-3 && softcap <= 1e6))
        ct_fields_refuse(f, CT_EFORMAT, text, "final_logit_softcapping",
                         "must be from 0.001 to 1000000");
    c->eps = (float)eps;
    c->softcap = (float)softcap;
}

static void read_layer_types(ct_fields *f, const ct_node *text, ct_config *c)
{
    static const char *const name[2] = {"sliding_attention", "full_attention"};
    const ct_node *list, *n;
    uint32_t i = 0;

    for (uint32_t l = 0; l < c->n_layers; l++)
        c->is_global[l] = (l + 1) % PATTERN_PERIOD == 0 || l + 1 == c->n_layers;
    if (!ct_node_get(text, "layer_types"))
        return;
    list = ct_fields_container(f, text, "layer_types", CT_JSON_ARRAY);
    for (n = list ? list->child : NULL; n; n = n->next, i++) {
        ct_str type = ct_fields_node_str(f, n);

        if (i < c->n_layers && !ct_str_is(type, name[c->is_global[i]]))
            ct_fields_refuse_node(f, CT_EUNSUPPORTED, n,
                                  "must be '%s' (five sliding layers, then a global one; the last "
                                  "of %u layers is global)",
                                  name[c->is_global[i]], c->n_layers);
    }
    if (list && i != c->n_layers)
        ct_fields_refuse_node(f, CT_EFORMAT, list, "of %u entries, but num_hidden_layers is %u", i,
                              c->n_layers);
}

/* Head size and key/value heads of one layer kind. */
typedef struct heads {
    uint32_t hd, n_kv;
} heads;

static uint32_t read_head_dim(ct_fields *f, const ct_node *object, const char *key, uint32_t absent)
{
    uint32_t hd = ct_fields_u32_or(f, object, key, 2, CT_MAX_HEAD_DIM, absent);

    if (hd % 2)
        ct_fields_refuse(f, CT_EFORMAT, object, key, "must be even (RoPE turns pairs)");
    return hd;
}

static uint32_t read_kv_heads(ct_fields *f, const ct_node *object, const char *key, uint32_t absent,
                              uint32_t n_heads)
{
    uint32_t n_kv = ct_fields_u32_or(f, object, key, 1, CT_MAX_HEADS, absent);

    if (n_heads % n_kv)
        ct_fields_refuse(f, CT_EFORMAT, object, key, "must divide num_attention_heads, %u",
                         n_heads);
    return n_kv;
}

/* Layer number of a per_layer_config key: plain decimal, below n_layers. */
static uint32_t read_layer_key(ct_fields *f, const ct_node *entry, uint32_t n_layers)
{
    uint32_t v = 0;
    bool ok = entry->key.n > 0 && entry->key.n <= 4 && (entry->key.n == 1 || *entry->key.p != '0');

    for (size_t i = 0; ok && i < entry->key.n; i++) {
        ok = entry->key.p[i] >= '0' && entry->key.p[i] <= '9';
        v = v * 10 + (uint32_t)(entry->key.p[i] - '0');
    }
    if (ok && v < n_layers)
        return v;
    ct_fields_refuse_node(f, CT_EFORMAT, entry, "but its key must be a layer from 0 to %u",
                          n_layers - 1);
    return 0;
}

static heads read_layer_heads(ct_fields *f, const ct_node *entry, heads absent, uint32_t n_heads)
{
    if (entry->kind != CT_JSON_OBJECT)
        ct_fields_refuse_node(f, CT_EFORMAT, entry, "must be an object");
    for (const ct_node *n = entry->child; n; n = n->next)
        if (!ct_str_is(n->key, "head_dim") && !ct_str_is(n->key, "num_key_value_heads"))
            ct_fields_refuse_node(f, CT_EUNSUPPORTED, n,
                                  "only head_dim and num_key_value_heads may differ by layer");
    return (heads){
        .hd = read_head_dim(f, entry, "head_dim", absent.hd),
        .n_kv = read_kv_heads(f, entry, "num_key_value_heads", absent.n_kv, n_heads),
    };
}

/* The newer dialect: {"5": {"head_dim": 512, "num_key_value_heads": 1}, …} over the
 * sliding layers' values.  All layers of a kind must agree. */
static heads read_per_layer(ct_fields *f, const ct_node *text, const ct_config *c, heads sliding)
{
    const ct_node *map = ct_fields_container(f, text, "per_layer_config", CT_JSON_OBJECT);
    const ct_node *entry_of[CT_MAX_LAYERS] = {0};
    uint32_t first = 0; /* the first global layer */
    heads global = sliding;

    for (const ct_node *n = map ? map->child : NULL; n; n = n->next)
        entry_of[read_layer_key(f, n, c->n_layers)] = n;
    while (!c->is_global[first])
        first++;
    if (entry_of[first])
        global = read_layer_heads(f, entry_of[first], sliding, c->n_heads);
    for (uint32_t l = 0; l < c->n_layers && !f->st; l++) {
        heads want = c->is_global[l] ? global : sliding, got = sliding;

        if (entry_of[l])
            got = read_layer_heads(f, entry_of[l], sliding, c->n_heads);
        if (!f->st && (got.hd != want.hd || got.n_kv != want.n_kv))
            ct_fields_refuse_node(f, CT_EUNSUPPORTED, map,
                                  "with head_dim %u and %u key/value heads in layer %u, must be %u "
                                  "and %u as in the other %s layers",
                                  got.hd, got.n_kv, l, want.hd, want.n_kv,
                                  c->is_global[l] ? "global" : "sliding");
    }
    return global;
}

/* The published dialect; also what remains of it beside a per_layer_config must agree. */
static heads read_global(ct_fields *f, const ct_node *text, const ct_config *c, heads absent)
{
    return (heads){
        .hd = read_head_dim(f, text, "global_head_dim", absent.hd),
        .n_kv = read_kv_heads(f, text, "num_global_key_value_heads", absent.n_kv, c->n_heads),
    };
}

static void read_heads(ct_fields *f, const ct_node *text, ct_config *c)
{
    enum { DEFAULT_GLOBAL_HEAD_DIM = 512 };
    heads sliding, global, plain;

    if (!ct_node_get(text, "head_dim") || !ct_node_get(text, "num_key_value_heads")) {
        ct_fields_u32(f, text, "head_dim", 2, CT_MAX_HEAD_DIM);
        ct_fields_u32(f, text, "num_key_value_heads", 1, CT_MAX_HEADS);
        return;
    }
    sliding.hd = read_head_dim(f, text, "head_dim", 2);
    sliding.n_kv = read_kv_heads(f, text, "num_key_value_heads", 1, c->n_heads);
    if (ct_node_get(text, "per_layer_config")) {
        global = read_per_layer(f, text, c, sliding);
        plain = read_global(f, text, c, global);
    } else {
        plain = read_global(f, text, c, (heads){DEFAULT_GLOBAL_HEAD_DIM, sliding.n_kv});
        global = plain;
    }
    if (plain.hd != global.hd)
        ct_fields_refuse(f, CT_EFORMAT, text, "global_head_dim", "but per_layer_config says %u",
                         global.hd);
    if (plain.n_kv != global.n_kv)
        ct_fields_refuse(f, CT_EFORMAT, text, "num_global_key_value_heads",
                         "but per_layer_config says %u", global.n_kv);
    c->hd_sliding = sliding.hd;
    c->n_kv_sliding = sliding.n_kv;
    c->hd_global = global.hd;
    c->n_kv_global = global.n_kv;
}

static double read_theta(ct_fields *f, const ct_node *rope)
{
    double theta = ct_fields_double(f, rope, "rope_theta");

    if (!(theta > 1 && theta <= 1e12))
        ct_fields_refuse(f, CT_EFORMAT, rope, "rope_theta", "must be above 1 and at most 1e12");
    return theta;
}

/* One layer kind's RoPE.  Only the two published kinds are served, unscaled. */
static double read_rope(ct_fields *f, const ct_node *rope, const char *type)
{
    static const char *const known[] = {"rope_type", "rope_theta", "partial_rotary_factor",
                                        "factor"};

    for (const ct_node *n = rope ? rope->child : NULL; n; n = n->next) {
        bool ok = n->kind == CT_JSON_NULL;

        for (size_t i = 0; i < CT_LEN(known); i++)
            ok = ok || ct_str_is(n->key, known[i]);
        if (!ok)
            ct_fields_refuse_node(f, CT_EUNSUPPORTED, n, "Gemma 4 has no such RoPE field");
    }
    if (!ct_str_is(ct_fields_str(f, rope, "rope_type"), type))
        ct_fields_refuse(f, CT_EUNSUPPORTED, rope, "rope_type", "must be '%s'", type);
    if (ct_node_get(rope, "factor") && ct_fields_double(f, rope, "factor") != 1.0)
        ct_fields_refuse(f, CT_EUNSUPPORTED, rope, "factor", "must be 1");
    return read_theta(f, rope);
}

static void read_ropes(ct_fields *f, const ct_node *text, ct_config *c)
{
    const ct_node *both, *sliding, *full;

    c->rope_theta_sliding = 1e4;
    c->rope_theta_global = 1e6;
    c->rope_partial_global = 0.25;
    if (!ct_node_get(text, "rope_parameters"))
        return;
    both = ct_fields_container(f, text, "rope_parameters", CT_JSON_OBJECT);
    for (const ct_node *n = both ? both->child : NULL; n; n = n->next)
        if (!ct_str_is(n->key, "sliding_attention") && !ct_str_is(n->key, "full_attention"))
            ct_fields_refuse_node(f, CT_EUNSUPPORTED, n,
                                  "only sliding_attention and full_attention have a RoPE");
    sliding = ct_fields_container(f, both, "sliding_attention", CT_JSON_OBJECT);
    full = ct_fields_container(f, both, "full_attention", CT_JSON_OBJECT);
    c->rope_theta_sliding = read_rope(f, sliding, "default");
    c->rope_theta_global = read_rope(f, full, "proportional");
    if (ct_node_get(sliding, "partial_rotary_factor") &&
        ct_fields_double(f, sliding, "partial_rotary_factor") != 1.0)
        ct_fields_refuse(f, CT_EUNSUPPORTED, sliding, "partial_rotary_factor", "must be 1");
    c->rope_partial_global = ct_fields_double(f, full, "partial_rotary_factor");
    if (!(c->rope_partial_global > 0 && c->rope_partial_global <= 1))
        ct_fields_refuse(f, CT_EFORMAT, full, "partial_rotary_factor",
                         "must be above 0 and at most 1");
}

/* The earliest configs call moe_intermediate_size expert_intermediate_size. */
static uint32_t read_moe_intermediate(ct_fields *f, const ct_node *text)
{
    const char *key = "moe_intermediate_size", *old = "expert_intermediate_size";
    const char *given = !ct_node_get(text, key) && ct_node_get(text, old) ? old : key;
    uint32_t m = ct_fields_u32(f, text, given, 1, CT_MAX_INTERMEDIATE);

    if (ct_fields_u32_or(f, text, old, 1, CT_MAX_INTERMEDIATE, m) != m)
        ct_fields_refuse(f, CT_EFORMAT, text, old, "but moe_intermediate_size is %u", m);
    return m;
}

static void read_moe(ct_fields *f, const ct_node *text, ct_config *c)
{
    c->moe = ct_fields_bool_or(f, text, "enable_moe_block", false);
    if (!c->moe)
        return;
    if (c->arch == CT_ARCH_GEMMA4_UNIFIED)
        ct_fields_refuse(f, CT_EUNSUPPORTED, text, "enable_moe_block",
                         "must be false in gemma4_unified");
    c->n_experts = ct_fields_u32(f, text, "num_experts", 1, CT_MAX_EXPERTS);
    c->top_k = ct_fields_u32(f, text, "top_k_experts", 1, CT_MAX_EXPERTS);
    if (c->top_k > c->n_experts)
        ct_fields_refuse(f, CT_EFORMAT, text, "top_k_experts", "but num_experts is %u",
                         c->n_experts);
    c->moe_intermediate = read_moe_intermediate(f, text);
}

static void read_config(ct_fields *f, const ct_node *root, ct_config *c)
{
    const dialect *d = read_dialect(f, root);
    const ct_node *text = text_fields(f, root, d);

    c->arch = d->arch;
    refuse_e_series(f, text, c->arch);
    refuse_foreign(f, text);
    check_switches(f, root, text);
    read_sizes(f, text, c);
    read_numbers(f, text, c);
    /* The rest indexes and divides by the sizes. */
    if (f->st)
        return;
    read_layer_types(f, text, c);
    read_heads(f, text, c);
    read_ropes(f, text, c);
    read_moe(f, text, c);
}

ct_status ct_config_parse(ct_config *out, const char *path, ct_str text, ct_arena *a, ct_error *err)
{
    ct_fields f = {.path = path, .err = err};
    ct_config c = {0};
    ct_arena scratch;
    const ct_node *root;
    ct_status st = ct_config_doc(&root, path, text, &scratch, err);

    if (st)
        return st;
    read_config(&f, root, &c);
    if (!f.st)
        f.st = ct_quant_config_read(&c.quant, path, root, a, err);
    ct_arena_deinit(&scratch);
    if (!f.st)
        *out = c;
    return f.st;
}

ct_status ct_config_load(ct_config *out, const char *dir, ct_arena *a, ct_error *err)
{
    ct_config_file file;
    ct_status st = ct_config_file_open(&file, dir, "config.json", err);

    if (st)
        return st;
    st = ct_config_parse(out, file.path, ct_map_str(&file.map), a, err);
    ct_map_close(&file.map);
    return st;
}
