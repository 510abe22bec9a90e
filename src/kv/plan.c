#include "kv/plan.h"

#include "base/checked.h"

#include <assert.h>

static size_t elem_bytes(ct_kv_type type)
{
    switch (type) {
    case CT_KV_BF16:
        return 2;
    case CT_KV_FP8:
        return 1;
    case CT_KV_F32:
        break;
    }
    return 4;
}

/* Bytes of one page in all layers of a family. */
static bool page_bytes(uint64_t *out, const ct_config *c, const ct_kv_shape *s, uint32_t tokens,
                       bool global)
{
    const size_t vectors = global && !s->unfolded ? 1 : 2;
    size_t elem = elem_bytes(global ? s->global_type : s->sliding_type), sum = 0;

    for (uint32_t l = 0; l < c->n_layers; l++) {
        size_t n;

        if (c->is_global[l] != global)
            continue;
        if (!ct_mul_size(&n, ct_config_kv_heads(c, l), ct_config_head_dim(c, l)) ||
            !ct_mul_size(&n, n, tokens) || !ct_mul_size(&n, n, vectors * elem) ||
            !ct_add_size(&sum, sum, n))
            return false;
    }
    *out = sum;
    return true;
}

/* wanted: pages asked for, 0 for n_seqs times `one`; one: what a sequence at its longest
 * takes. */
static ct_status pool_pages(uint32_t *out, uint32_t wanted, uint32_t one, const ct_kv_shape *s,
                            const char *family, ct_error *err)
{
    size_t n = wanted;

    if (wanted && wanted < one)
        return ct_fail(err, CT_ELIMIT,
                       "%u %s KV pages cannot hold one sequence of %u tokens: it needs %u", wanted,
                       family, s->seq_tokens, one);
    if ((!wanted && !ct_mul_size(&n, one, s->n_seqs)) || n >= CT_PAGE_NONE)
        return ct_fail(err, CT_ELIMIT, "%u sequences of %u tokens need more than %u %s KV pages",
                       s->n_seqs, s->seq_tokens, CT_PAGE_NONE - 1, family);
    *out = (uint32_t)n;
    return CT_OK;
}

/* A row at the start of a page sees the window_blocks pages before it.  A step keeps what
 * its first row's page sees, rounded down so that a snapshot at the last whole page can be
 * made of it, and adds its rows, which may begin anywhere in a page. */
static uint32_t most_sliding(const ct_kv_plan *p, uint32_t step_tokens)
{
    const uint64_t rows = (uint64_t)step_tokens + p->page_tokens - 1;
    const uint64_t most = (uint64_t)p->window_blocks + ct_kv_blocks(rows, p->page_tokens);

    return most < p->max_blocks ? (uint32_t)most : p->max_blocks;
}

static void plan_blocks(ct_kv_plan *p, const ct_config *c, const ct_kv_shape *s)
{
    p->decode_tokens =
        s->decode_tokens && s->decode_tokens < s->step_tokens ? s->decode_tokens : s->step_tokens;
    p->max_blocks = ct_kv_blocks(s->seq_tokens, p->page_tokens);
    p->window_blocks = ct_kv_blocks((uint64_t)c->window - 1, p->page_tokens);
    p->most_sliding = most_sliding(p, s->step_tokens);
    p->most_decoding = most_sliding(p, p->decode_tokens);
}

ct_status ct_kv_plan_make(ct_kv_plan *out, const ct_config *config, const ct_kv_shape *shape,
                          ct_error *err)
{
    ct_kv_plan p = {.page_tokens = shape->page_tokens ? shape->page_tokens : CT_KV_PAGE_TOKENS};
    ct_kv_bytes *b = &p.bytes;
    ct_status st;

    if (!shape->n_seqs || !shape->seq_tokens || !shape->step_tokens)
        return ct_fail(err, CT_EINVAL,
                       "KV for %u sequences of %u tokens, %u a step: none may be zero",
                       shape->n_seqs, shape->seq_tokens, shape->step_tokens);
    assert(config->window && config->n_layers <= CT_MAX_LAYERS);
    plan_blocks(&p, config, shape);
    st = pool_pages(&b->n_global, shape->n_global, p.max_blocks, shape, "global", err);
    if (!st)
        st = pool_pages(&b->n_sliding, shape->n_sliding, p.most_sliding, shape, "sliding", err);
    if (st)
        return st;
    if (!page_bytes(&b->global_page, config, shape, p.page_tokens, true) ||
        !page_bytes(&b->sliding_page, config, shape, p.page_tokens, false) ||
        !ct_mul_size(&b->global, b->global_page, b->n_global) ||
        !ct_mul_size(&b->sliding, b->sliding_page, b->n_sliding))
        return ct_fail(err, CT_ELIMIT,
                       "%u global and %u sliding KV pages of %u tokens are too many", b->n_global,
                       b->n_sliding, p.page_tokens);
    *out = p;
    return CT_OK;
}

ct_status ct_kv_measure(ct_kv_bytes *out, const ct_config *config, const ct_kv_shape *shape,
                        ct_error *err)
{
    ct_kv_plan plan;
    ct_status st = ct_kv_plan_make(&plan, config, shape, err);

    if (!st)
        *out = plan.bytes;
    return st;
}
