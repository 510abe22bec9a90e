#include "model/forward.h"

#include "base/checked.h"
#include "base/num.h"
#include "model/place.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>

struct ct_forward {
    const ct_config *config; /* borrowed */
    ct_weights weights;      /* as the backend holds them */
    void *weight_tables;     /* owned: what weights points to */
    ct_backend *backend;     /* borrowed; owns every buffer below */
    ct_forward_limits limits;
    uint32_t n_rows;           /* of the last step */
    float embed_scale;         /* bf16(sqrt(H)) */
    void *x;                   /* [rows, H] residual stream */
    void *h;                   /* [rows, H] normed input of the next block */
    void *branch;              /* [rows, H] output of the last block */
    void *q, *k, *v;           /* [rows, heads * D], [rows, KVH * D] twice */
    void *heads;               /* [rows, heads * D] output of attention */
    void *gate, *up;           /* [rows, I] */
    void *routed;              /* [rows, H] MoE only, as the next two */
    void *picks, *pick_weight; /* [rows, top_k] */
    void *chosen;              /* [logits_rows, H] */
    void *logits;              /* [logits_rows, V] */
};

/* --- creation ---------------------------------------------------------------- */

static uint32_t max_u32(uint32_t a, uint32_t b)
{
    return a > b ? a : b;
}

/* Gemma 4 turns pairs 0 … share*D/2 - 1 of a global head, and all of a sliding one. */
static ct_rope rope_of(const ct_config *c, uint32_t layer)
{
    const uint32_t half = ct_config_head_dim(c, layer) / 2;

    if (c->is_global[layer])
        return (ct_rope){c->rope_theta_global, (uint32_t)(c->rope_partial_global * half)};
    return (ct_rope){c->rope_theta_sliding, half};
}

/* The largest of both layer kinds: widths of buffers, query heads a key head. */
typedef struct widths {
    uint32_t q, kv, group;
    uint32_t pairs; /* turning pairs of a global head */
} widths;

static ct_status widths_of(const ct_config *c, widths *w, ct_error *err)
{
    *w = (widths){0};
    for (uint32_t l = 0; l < c->n_layers; l++) {
        uint64_t q = (uint64_t)c->n_heads * ct_config_head_dim(c, l);
        uint64_t kv = (uint64_t)ct_config_kv_heads(c, l) * ct_config_head_dim(c, l);

        if (q > INT32_MAX || kv > INT32_MAX)
            return ct_fail(err, CT_ELIMIT, "layer %u: %u heads of %u are too wide", l, c->n_heads,
                           ct_config_head_dim(c, l));
        w->q = max_u32(w->q, (uint32_t)q);
        w->kv = max_u32(w->kv, (uint32_t)kv);
        w->group = max_u32(w->group, c->n_heads / ct_config_kv_heads(c, l));
        if (c->is_global[l])
            w->pairs = max_u32(w->pairs, rope_of(c, l).n_pairs);
    }
    return CT_OK;
}

static ct_status reserve(const ct_forward *f, const widths *w, ct_error *err)
{
    const ct_config *c = f->config;
    ct_limits limits = {
        .rows = f->limits.rows,
        .keys = f->limits.keys,
        .cols = max_u32(max_u32(c->hidden, c->intermediate), max_u32(w->q, w->kv)),
        .group = w->group,
        .head_dim = max_u32(c->hd_sliding, c->hd_global),
        .pairs = w->pairs,
    };

    if (c->moe) {
        limits.n_experts = c->n_experts;
        limits.top_k = c->top_k;
        limits.expert_width = c->moe_intermediate;
        limits.hidden = c->hidden;
        limits.cols = max_u32(limits.cols, c->moe_intermediate);
    }
    return f->backend->ops->reserve(f->backend, &limits, err);
}

static ct_status alloc_workspace(ct_forward *f, const widths *w, ct_error *err)
{
    const ct_config *c = f->config;
    const uint32_t rows = f->limits.rows, logits_rows = f->limits.logits_rows;
    const uint32_t routed = c->moe ? rows : 0;
    const struct {
        void **buffer;
        ct_elem elem;
        uint32_t rows, width;
    } wanted[] = {
        {&f->x, CT_ELEM_ACT, rows, c->hidden},
        {&f->h, CT_ELEM_ACT, rows, c->hidden},
        {&f->branch, CT_ELEM_ACT, rows, c->hidden},
        {&f->q, CT_ELEM_ACT, rows, w->q},
        {&f->k, CT_ELEM_ACT, rows, w->kv},
        {&f->v, CT_ELEM_ACT, rows, w->kv},
        {&f->heads, CT_ELEM_ACT, rows, w->q},
        {&f->gate, CT_ELEM_ACT, rows, c->intermediate},
        {&f->up, CT_ELEM_ACT, rows, c->intermediate},
        {&f->routed, CT_ELEM_ACT, routed, c->hidden},
        {&f->picks, CT_ELEM_U32, routed, c->top_k},
        {&f->pick_weight, CT_ELEM_F32, routed, c->top_k},
        {&f->chosen, CT_ELEM_ACT, logits_rows, c->hidden},
        {&f->logits, CT_ELEM_F32, logits_rows, c->vocab},
    };
    ct_status st = CT_OK;

    for (size_t i = 0; i < CT_LEN(wanted) && !st; i++) {
        size_t n = (size_t)wanted[i].rows * wanted[i].width;

        if (n)
            st = f->backend->ops->alloc(f->backend, wanted[i].buffer, wanted[i].elem, n, err);
    }
    return st;
}

ct_status ct_forward_create(ct_forward **out, const ct_config *config, const ct_weights *weights,
                            ct_backend *backend, const ct_forward_limits *limits, ct_error *err)
{
    ct_forward *f;
    widths w;
    ct_status st = widths_of(config, &w, err);

    if (st)
        return st;
    f = calloc(1, sizeof *f);
    if (!f)
        return ct_fail(err, CT_ELIMIT, "out of memory for the decoder");
    *f = (ct_forward){
        .config = config,
        .backend = backend,
        .limits = *limits,
        .embed_scale = ct_round_bf16((float)sqrt(config->hidden)),
    };
    st = reserve(f, &w, err);
    if (!st)
        st = alloc_workspace(f, &w, err);
    if (!st && weights)
        st = ct_weights_place(&f->weights, &f->weight_tables, weights, config, backend, err);
    if (st) {
        ct_forward_destroy(f);
        return st;
    }
    *out = f;
    return CT_OK;
}

void ct_forward_destroy(ct_forward *f)
{
    if (!f)
        return;
    free(f->weight_tables);
    free(f);
}

/* --- one layer --------------------------------------------------------------- */

/* branch = attention(h) */
static void attention(ct_forward *f, uint32_t layer, const ct_rows *rows, const ct_kv_layer *kv)
{
    const ct_ops *ops = f->backend->ops;
    const ct_layer_weights *w = &f->weights.layer[layer];
    const bool shares_kv = w->v.type == CT_WEIGHT_NONE; /* V is made of k_proj's output */

    ops->linear(f->backend, f->q, f->h, &w->q, rows->n);
    ops->linear(f->backend, f->k, f->h, &w->k, rows->n);
    if (!shares_kv)
        ops->linear(f->backend, f->v, f->h, &w->v, rows->n);
    ops->qkv_finish(f->backend, rows,
                    &(ct_qkv_args){
                        .q = f->q,
                        .k = f->k,
                        .v = shares_kv ? f->k : f->v,
                        .q_norm = w->q_norm,
                        .k_norm = w->k_norm,
                        .n_heads = f->config->n_heads,
                        .eps = f->config->eps,
                        .rope = rope_of(f->config, layer),
                        .kv = kv,
                    });
    ops->attend(f->backend, rows,
                &(ct_attend_args){
                    .out = f->heads,
                    .q = f->q,
                    .n_heads = f->config->n_heads,
                    .kv = kv,
                    .k_norm = w->k_norm,
                    .rope = rope_of(f->config, layer),
                });
    ops->linear(f->backend, f->branch, f->heads, &w->o, rows->n);
}

/* branch = down(gelu(gate h) * (up h)) */
static void dense_ffn(ct_forward *f, const ct_layer_weights *w, uint32_t T)
{
    const ct_ops *ops = f->backend->ops;

    ops->linear(f->backend, f->gate, f->h, &w->gate, T);
    ops->linear(f->backend, f->up, f->h, &w->up, T);
    ops->geglu(f->backend, f->gate, f->gate, f->up, T, f->config->intermediate);
    ops->linear(f->backend, f->branch, f->gate, &w->down, T);
}

/* branch = norm(dense branch) + norm(routed experts); both start from the stream x, the
 * router from x itself. */
static void moe_ffn(ct_forward *f, const ct_layer_weights *w, uint32_t T)
{
    const ct_ops *ops = f->backend->ops;
    const uint32_t H = f->config->hidden;
    const float eps = f->config->eps;

    dense_ffn(f, w, T);
    ops->rms_norm(f->backend, f->branch, f->branch, w->post_ffn_norm_1, T, H, eps);
    ops->route(f->backend, f->picks, f->pick_weight, f->x, &w->router, T, eps);
    ops->rms_norm(f->backend, f->h, f->x, w->pre_ffn_norm_2, T, H, eps);
    ops->experts(f->backend, f->routed, f->h, f->picks, f->pick_weight, &w->experts, T);
    ops->rms_norm(f->backend, f->routed, f->routed, w->post_ffn_norm_2, T, H, eps);
    ops->add(f->backend, f->branch, f->branch, f->routed, T, H);
}

/* x = (x + norm(branch; post)) * scalar, h = norm(x; next) */
static void add_branch(ct_forward *f, const void *post, const void *scalar, const void *next,
                       uint32_t T)
{
    f->backend->ops->add_norm(f->backend,
                              &(ct_add_norm_args){
                                  .x = f->x,
                                  .y = f->branch,
                                  .post = post,
                                  .scalar = scalar,
                                  .next = next,
                                  .out = f->h,
                                  .width = f->config->hidden,
                                  .eps = f->config->eps,
                              },
                              T);
}

/* h holds the normed input of the layer, and then that of the next one. */
static void decoder_layer(ct_forward *f, uint32_t layer, const ct_rows *rows, const ct_kv_layer *kv)
{
    const ct_layer_weights *w = &f->weights.layer[layer];
    const bool is_last = layer + 1 == f->config->n_layers;
    const void *next = is_last ? f->weights.final_norm : f->weights.layer[layer + 1].input_norm;

    attention(f, layer, rows, kv);
    add_branch(f, w->post_attn_norm, NULL, w->pre_ffn_norm, rows->n);
    if (f->config->moe)
        moe_ffn(f, w, rows->n);
    else
        dense_ffn(f, w, rows->n);
    add_branch(f, w->post_ffn_norm, w->layer_scalar, next, rows->n);
}

/* --- steps ------------------------------------------------------------------- */

static ct_status show(const ct_hidden_sink *sink, uint32_t index, const void *x, ct_error *err)
{
    return sink ? sink->fn(sink->ctx, index, x, err) : CT_OK;
}

ct_status ct_forward_step(ct_forward *f, const ct_rows *rows, const ct_kv_layer *kv,
                          const ct_hidden_sink *sink, ct_error *err)
{
    const ct_ops *ops = f->backend->ops;
    const ct_config *c = f->config;
    ct_status st = CT_OK;

    if (rows->n > f->limits.rows)
        return ct_fail(err, CT_ELIMIT, "a step of %u rows, at most %u fit", rows->n,
                       f->limits.rows);
    ops->embed(f->backend, f->x, rows, &f->weights.embed, f->embed_scale);
    ops->rms_norm(f->backend, f->h, f->x, f->weights.layer[0].input_norm, rows->n, c->hidden,
                  c->eps);
    for (uint32_t l = 0; l < c->n_layers; l++) {
        st = show(sink, l, f->x, err);
        if (st)
            return st;
        decoder_layer(f, l, rows, &kv[l]);
    }
    f->n_rows = rows->n;
    return show(sink, c->n_layers, f->h, err);
}

ct_status ct_forward_logits(ct_forward *f, const uint32_t *index, uint32_t n, float *out,
                            ct_error *err)
{
    const ct_ops *ops = f->backend->ops;
    const ct_config *c = f->config;

    if (n > f->limits.logits_rows)
        return ct_fail(err, CT_ELIMIT, "logits of %u rows, at most %u fit", n,
                       f->limits.logits_rows);
    for (uint32_t i = 0; i < n; i++)
        assert(index[i] < f->n_rows);
    ops->gather(f->backend, f->chosen, f->h, index, n, c->hidden);
    ops->head(f->backend, f->logits, f->chosen, &f->weights.embed, n, c->softcap);
    return ops->read(f->backend, out, f->logits, CT_ELEM_F32, 0, (size_t)n * c->vocab, err);
}
