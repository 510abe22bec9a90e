#include "model/weights.h"

#include "base/checked.h"
#include "model/layout.h"

typedef struct binder {
    const ct_config *config;
    const ct_checkpoint *ckpt;
    ct_layout layout;
    ct_arena *a;
    ct_error *err;
    ct_status st; /* of the first name that was not there */
    uint32_t layer;
} binder;

/* Name inside the current layer. */
static ct_str layer_name(binder *b, char buf[CT_NAME_BYTES], const char *path, const char *name)
{
    return ct_layout_name(&b->layout, buf, "layers.%u.%s%s", b->layer, path, name);
}

/* The manifest has seen to it that every name is there: a miss is a caller who skipped it. */
static void miss(binder *b, ct_str name)
{
    if (!b->st)
        b->st = ct_fail(b->err, CT_EFORMAT, "%s: tensor %.*s is missing",
                        ct_checkpoint_path(b->ckpt), CT_STR_ARG(name));
}

static const ct_tensor *find(binder *b, ct_str name)
{
    const ct_tensor *t = ct_checkpoint_find(b->ckpt, name);

    if (!t)
        miss(b, name);
    return t;
}

static const void *bind_vector(binder *b, const char *name)
{
    char buf[CT_NAME_BYTES];
    const ct_tensor *t = find(b, layer_name(b, buf, "", name));

    return t ? t->data : NULL;
}

static ct_weight plain(const void *data, uint32_t rows, uint32_t cols)
{
    return (ct_weight){.type = CT_WEIGHT_BF16, .rows = rows, .cols = cols, .data = data};
}

static float read_f32(const ct_tensor *t)
{
    float v;

    /* The format does not align a scalar in its file. */
    memcpy(&v, t->data, sizeof v);
    return v;
}

/* Parts that the scheme needs and the manifest has found. */
static ct_weight bind_nvfp4(binder *b, const ct_linear_parts *p, ct_str module, uint32_t rows,
                            uint32_t cols)
{
    const ct_tensor *data = p->packed ? p->packed : p->weight;
    ct_weight w = {.type = CT_WEIGHT_NVFP4, .rows = rows, .cols = cols};

    if (!data || !p->scale || (!p->multiplier && !p->divisor)) {
        miss(b, module);
        return w;
    }
    w.data = data->data;
    w.scale = p->scale->data;
    w.global = p->multiplier ? read_f32(p->multiplier) : 1 / read_f32(p->divisor);
    return w;
}

static ct_weight bind_named(binder *b, ct_str module, uint32_t rows, uint32_t cols)
{
    ct_linear_parts p;

    switch (ct_linear_find(&p, b->ckpt, module)) {
    case CT_SCHEME_NONE:
        miss(b, module);
        break;
    case CT_SCHEME_BF16:
        return plain(p.weight->data, rows, cols);
    case CT_SCHEME_NVFP4:
        return bind_nvfp4(b, &p, module, rows, cols);
    case CT_SCHEME_FP8:
        if (p.scale)
            return (ct_weight){.type = CT_WEIGHT_FP8,
                               .rows = rows,
                               .cols = cols,
                               .data = p.weight->data,
                               .scale = p.scale->data};
        miss(b, module);
        break;
    }
    return (ct_weight){0};
}

static ct_weight bind_linear(binder *b, const char *name, uint32_t rows, uint32_t cols)
{
    char buf[CT_NAME_BYTES];

    return bind_named(b, layer_name(b, buf, "", name), rows, cols);
}

static void bind_attention(binder *b, ct_layer_weights *w)
{
    const ct_config *c = b->config;
    uint32_t D = ct_config_head_dim(c, b->layer), H = c->hidden;
    uint32_t q = c->n_heads * D, kv = ct_config_kv_heads(c, b->layer) * D;

    w->q = bind_linear(b, "self_attn.q_proj", q, H);
    w->k = bind_linear(b, "self_attn.k_proj", kv, H);
    if (!c->is_global[b->layer])
        w->v = bind_linear(b, "self_attn.v_proj", kv, H);
    w->o = bind_linear(b, "self_attn.o_proj", H, q);
    w->q_norm = bind_vector(b, "self_attn.q_norm.weight");
    w->k_norm = bind_vector(b, "self_attn.k_norm.weight");
}

static void bind_mlp(binder *b, ct_layer_weights *w)
{
    uint32_t I = b->config->intermediate, H = b->config->hidden;

    w->gate = bind_linear(b, "mlp.gate_proj", I, H);
    w->up = bind_linear(b, "mlp.up_proj", I, H);
    w->down = bind_linear(b, "mlp.down_proj", H, I);
}

static void bind_norms(binder *b, ct_layer_weights *w)
{
    w->input_norm = bind_vector(b, "input_layernorm.weight");
    w->post_attn_norm = bind_vector(b, "post_attention_layernorm.weight");
    w->pre_ffn_norm = bind_vector(b, "pre_feedforward_layernorm.weight");
    w->post_ffn_norm = bind_vector(b, "post_feedforward_layernorm.weight");
    w->layer_scalar = bind_vector(b, "layer_scalar");
}

static const uint16_t *bf16_at(const ct_tensor *t, size_t index)
{
    return (const uint16_t *)t->data + index;
}

/* Fused tensors: gate_up_proj [E,2M,H] holds an expert's M gate rows, then its M up rows;
 * down_proj is [E,H,M].  Experts become views of their rows. */
static void bind_fused(binder *b, ct_weight *gate, ct_weight *up, ct_weight *down)
{
    const char *path = b->layout.expert_path;
    const size_t M = b->config->moe_intermediate, H = b->config->hidden;
    char buf[CT_NAME_BYTES];
    const ct_tensor *gu = find(b, layer_name(b, buf, path, "gate_up_proj"));
    const ct_tensor *d = find(b, layer_name(b, buf, path, "down_proj"));

    if (b->st)
        return;
    for (size_t e = 0; e < b->config->n_experts; e++) {
        gate[e] = plain(bf16_at(gu, e * 2 * M * H), (uint32_t)M, (uint32_t)H);
        up[e] = plain(bf16_at(gu, (e * 2 + 1) * M * H), (uint32_t)M, (uint32_t)H);
        down[e] = plain(bf16_at(d, e * H * M), (uint32_t)H, (uint32_t)M);
    }
}

static ct_weight bind_expert(binder *b, uint32_t e, const char *name, uint32_t rows, uint32_t cols)
{
    char buf[CT_NAME_BYTES];

    return bind_named(b,
                      ct_layout_name(&b->layout, buf, "layers.%u.%s%u.%s", b->layer,
                                     b->layout.expert_path, e, name),
                      rows, cols);
}

static void bind_split(binder *b, ct_weight *gate, ct_weight *up, ct_weight *down)
{
    uint32_t M = b->config->moe_intermediate, H = b->config->hidden;

    for (uint32_t e = 0; e < b->config->n_experts; e++) {
        gate[e] = bind_expert(b, e, "gate_proj", M, H);
        up[e] = bind_expert(b, e, "up_proj", M, H);
        down[e] = bind_expert(b, e, "down_proj", H, M);
    }
}

static void bind_moe(binder *b, ct_layer_weights *w)
{
    const ct_config *c = b->config;
    ct_weight *table = ct_arena_zalloc(b->a, (size_t)3 * c->n_experts, sizeof *table);
    ct_weight *up = table + c->n_experts, *down = up + c->n_experts;

    if (!table) {
        b->st = ct_fail(b->err, CT_ELIMIT, "%s: %u experts exceed the model's arena",
                        ct_checkpoint_path(b->ckpt), c->n_experts);
        return;
    }
    w->post_ffn_norm_1 = bind_vector(b, "post_feedforward_layernorm_1.weight");
    w->pre_ffn_norm_2 = bind_vector(b, "pre_feedforward_layernorm_2.weight");
    w->post_ffn_norm_2 = bind_vector(b, "post_feedforward_layernorm_2.weight");
    w->router = (ct_router){
        .proj = bind_linear(b, "router.proj", c->n_experts, c->hidden),
        .scale = bind_vector(b, "router.scale"),
        .per_expert_scale = bind_vector(b, "router.per_expert_scale"),
        .n_experts = c->n_experts,
        .top_k = c->top_k,
    };
    if (b->layout.split_experts)
        bind_split(b, table, up, down);
    else
        bind_fused(b, table, up, down);
    w->experts = (ct_expert_weights){
        .gate = table, .up = up, .down = down, .n_experts = c->n_experts, .top_k = c->top_k};
}

static void bind_top(binder *b, ct_weights *out)
{
    char buf[CT_NAME_BYTES];
    const ct_tensor *embed = find(b, ct_layout_name(&b->layout, buf, "embed_tokens.weight"));
    const ct_tensor *norm = find(b, ct_layout_name(&b->layout, buf, "norm.weight"));

    if (b->st)
        return;
    out->embed = plain(embed->data, b->config->vocab, b->config->hidden);
    out->final_norm = norm->data;
}

ct_status ct_weights_bind(ct_weights *out, const ct_config *config, const ct_checkpoint *ckpt,
                          ct_arena *a, ct_error *err)
{
    binder b = {.config = config, .ckpt = ckpt, .a = a, .err = err};
    ct_weights w = {0};

    b.st = ct_layout_detect(&b.layout, ckpt, err);
    if (b.st)
        return b.st;
    w.layer = ct_arena_zalloc(a, config->n_layers, sizeof *w.layer);
    if (!w.layer)
        return ct_fail(err, CT_ELIMIT, "%s: %u layers exceed the model's arena",
                       ct_checkpoint_path(ckpt), config->n_layers);
    bind_top(&b, &w);
    for (b.layer = 0; b.layer < config->n_layers && !b.st; b.layer++) {
        ct_layer_weights *layer = &w.layer[b.layer];

        bind_norms(&b, layer);
        bind_attention(&b, layer);
        bind_mlp(&b, layer);
        if (config->moe)
            bind_moe(&b, layer);
    }
    if (!b.st)
        *out = w;
    return b.st;
}
