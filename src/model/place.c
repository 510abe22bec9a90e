#include "model/place.h"

#include "base/checked.h"

#include <stdlib.h>
#include <string.h>

typedef struct placer {
    const ct_config *config;
    ct_backend *backend;
    ct_layer_weights *layer; /* [n_layers], and behind it: */
    ct_weight *experts;      /* gate, up and down of every layer, n_experts each */
    ct_status st;            /* the first error; later calls do nothing */
    ct_error *err;
} placer;

static void matrix(placer *p, ct_weight *w)
{
    if (!p->st && w->type != CT_WEIGHT_NONE)
        p->st = p->backend->ops->place(p->backend, w, p->err);
}

static void vector(placer *p, const void **v, uint32_t n)
{
    if (!p->st && *v)
        p->st = p->backend->ops->place_vector(p->backend, v, n, p->err);
}

static void place_layer(placer *p, uint32_t l)
{
    const uint32_t hidden = p->config->hidden, head = ct_config_head_dim(p->config, l);
    ct_layer_weights *w = &p->layer[l];
    const void **wide[] = {&w->input_norm,      &w->post_attn_norm,  &w->pre_ffn_norm,
                           &w->post_ffn_norm,   &w->post_ffn_norm_1, &w->pre_ffn_norm_2,
                           &w->post_ffn_norm_2, &w->router.scale};
    ct_weight *dense[] = {&w->q, &w->k, &w->v, &w->o, &w->gate, &w->up, &w->down, &w->router.proj};

    for (size_t i = 0; i < CT_LEN(wide); i++)
        vector(p, wide[i], hidden);
    vector(p, &w->q_norm, head);
    vector(p, &w->k_norm, head);
    vector(p, &w->layer_scalar, 1);
    vector(p, &w->router.per_expert_scale, w->router.n_experts);
    for (size_t i = 0; i < CT_LEN(dense); i++)
        matrix(p, dense[i]);
}

static void copy_experts(placer *p, uint32_t l, size_t n)
{
    ct_expert_weights *e = &p->layer[l].experts;
    const ct_weight **part[] = {&e->gate, &e->up, &e->down};

    for (size_t i = 0; i < CT_LEN(part); i++) {
        ct_weight *copy = p->experts + (l * CT_LEN(part) + i) * n;

        memcpy(copy, *part[i], n * sizeof *copy);
        *part[i] = copy;
    }
}

static ct_status copy_tables(placer *p, const ct_weights *weights, size_t n_experts)
{
    const uint32_t n = p->config->n_layers;
    size_t layers, tables, n_bytes;

    if (!ct_mul_size(&layers, n, sizeof *p->layer) ||
        !ct_mul_size(&tables, n * n_experts, 3 * sizeof *p->experts) ||
        !ct_add_size(&n_bytes, layers, tables) || !(p->layer = malloc(n_bytes)))
        return ct_fail(p->err, CT_ELIMIT, "out of memory for the tables of %u layers", n);
    memcpy(p->layer, weights->layer, layers);
    p->experts = (ct_weight *)(p->layer + n);
    for (uint32_t l = 0; l < n && n_experts; l++)
        copy_experts(p, l, n_experts);
    return CT_OK;
}

ct_status ct_weights_place(ct_weights *out, void **block, const ct_weights *weights,
                           const ct_config *config, ct_backend *backend, ct_error *err)
{
    placer p = {.config = config, .backend = backend, .err = err};
    const size_t n_experts = config->moe ? config->n_experts : 0;

    p.st = copy_tables(&p, weights, n_experts);
    if (p.st)
        return p.st;
    *out = *weights;
    out->layer = p.layer;
    *block = p.layer;
    if (!backend->ops->place)
        return CT_OK;
    matrix(&p, &out->embed);
    vector(&p, &out->final_norm, config->hidden);
    for (uint32_t l = 0; l < config->n_layers; l++)
        place_layer(&p, l);
    for (size_t i = 0; i < 3 * config->n_layers * n_experts; i++)
        matrix(&p, &p.experts[i]);
    return p.st;
}
