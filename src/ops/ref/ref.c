#include "ops/ref/ref.h"

#include "base/checked.h"
#include "ops/ref/internal.h"

#include <stdlib.h>

/* Waking the threads costs about as much as this many multiply-adds. */
#define MIN_SHARED_WORK 65536.0

struct ref_block {
    ref_block *next;
    _Alignas(max_align_t) unsigned char bytes[];
};

static ct_status block_take(ct_ref *r, void **out, size_t n, size_t elem_bytes, ct_error *err)
{
    size_t n_bytes;
    ref_block *block = NULL;

    /* Large blocks come from calloc as untouched zero pages: room that is never used
     * costs address space only. */
    if (ct_mul_size(&n_bytes, n, elem_bytes) && ct_add_size(&n_bytes, n_bytes, sizeof *block))
        block = calloc(1, n_bytes);
    if (!block)
        return ct_fail(err, CT_ELIMIT, "out of memory for a buffer of %zu elements of %zu bytes", n,
                       elem_bytes);
    block->next = r->blocks;
    r->blocks = block;
    *out = block->bytes;
    return CT_OK;
}

static size_t elem_bytes(ct_elem elem)
{
    switch (elem) {
    case CT_ELEM_BF16:
        return sizeof(uint16_t);
    case CT_ELEM_FP8:
        return sizeof(uint8_t);
    case CT_ELEM_ACT:
    case CT_ELEM_F32:
    case CT_ELEM_U32:
        break;
    }
    return sizeof(float);
}

static ct_status ref_alloc(ct_backend *b, void **out, ct_elem elem, size_t n, ct_error *err)
{
    return block_take(ct_ref_of(b), out, n, elem_bytes(elem), err);
}

static ct_status ref_read(ct_backend *b, float *out, const void *x, ct_elem elem, size_t first,
                          size_t n, ct_error *err)
{
    if (elem == CT_ELEM_U32)
        return ct_fail(err, CT_EINVAL, "whole numbers cannot be read as floats");
    ct_ref_load(ct_ref_of(b), out, x, elem, first, n);
    return CT_OK;
}

static ct_status reserve_threads(ct_ref *r, const ct_limits *l, ct_error *err)
{
    size_t tiles, spans, scores, n = ct_pool_threads(r->pool);
    ct_status st;

    if (!ct_mul_size(&tiles, 2 * CT_REF_TILE, l->cols) ||
        !ct_mul_size(&spans, CT_REF_SPAN, l->cols) || !ct_mul_size(&scores, l->group, l->keys))
        return ct_fail(err, CT_ELIMIT, "%u columns or %u keys are too many", l->cols, l->keys);
    st = block_take(r, (void **)&r->scratch, n, sizeof *r->scratch, err);
    for (size_t i = 0; i < n && !st; i++) {
        ref_scratch *s = &r->scratch[i];

        st = block_take(r, (void **)&s->rows, tiles, sizeof *s->rows, err);
        if (!st)
            st = block_take(r, (void **)&s->keys, scores, sizeof *s->keys, err);
        if (!st)
            st = block_take(r, (void **)&s->turn, l->cols, sizeof *s->turn, err);
        if (!st)
            st = block_take(r, (void **)&s->span, spans, sizeof *s->span, err);
    }
    return st;
}

static ct_status reserve_turns(ct_ref *r, const ct_limits *l, ct_error *err)
{
    size_t n;
    ct_status st = block_take(r, (void **)&r->rope_inv, l->cols, sizeof *r->rope_inv, err);

    if (st)
        return st;
    if (!ct_mul_size(&n, l->keys, 2) || !ct_mul_size(&n, n, l->pairs))
        return ct_fail(err, CT_ELIMIT, "%u keys of %u turning pairs are too many", l->keys,
                       l->pairs);
    return block_take(r, (void **)&r->turns.at, n, sizeof *r->turns.at, err);
}

static ct_status reserve_experts(ct_ref *r, const ct_limits *l, ct_error *err)
{
    size_t rows = l->rows, pairs = rows * l->top_k;
    const struct {
        void *field;
        size_t n, width;
    } wanted[] = {
        {&r->route_in, rows, l->hidden},  {&r->route_logits, rows, l->n_experts},
        {&r->pair_out, pairs, l->hidden}, {&r->pair_act, pairs, l->expert_width},
        {&r->pair_order, pairs, 1},       {&r->expert_start, (size_t)l->n_experts + 1, 1},
    };
    ct_status st = CT_OK;

    for (size_t i = 0; i < CT_LEN(wanted) && !st; i++) {
        size_t n;

        if (!ct_mul_size(&n, wanted[i].n, wanted[i].width))
            return ct_fail(err, CT_ELIMIT, "%zu rows of %zu are too many", wanted[i].n,
                           wanted[i].width);
        /* Floats and 32-bit ids have one size. */
        st = block_take(r, wanted[i].field, n, sizeof(float), err);
    }
    return st;
}

static ct_status ref_reserve(ct_backend *b, const ct_limits *limits, ct_error *err)
{
    ct_ref *r = ct_ref_of(b);
    ct_status st = reserve_threads(r, limits, err);

    if (!st)
        st = reserve_turns(r, limits, err);
    if (!st && limits->n_experts)
        st = reserve_experts(r, limits, err);
    if (!st)
        r->limits = *limits;
    return st;
}

static void ref_destroy(ct_backend *b)
{
    ct_ref *r = ct_ref_of(b);

    while (r->blocks) {
        ref_block *block = r->blocks;

        r->blocks = block->next;
        free(block);
    }
    free(r);
}

void ct_ref_run(ct_ref *r, size_t n_items, double work, ct_pool_fn *fn, void *ctx)
{
    if (work >= MIN_SHARED_WORK) {
        ct_pool_run(r->pool, n_items, fn, ctx);
        return;
    }
    for (size_t i = 0; i < n_items; i++)
        fn(ctx, i, 0);
}

static const ct_ops ref_ops = {
    .name = "ref",
    .reserve = ref_reserve,
    .alloc = ref_alloc,
    .read = ref_read,
    .embed = ct_ref_embed,
    .rms_norm = ct_ref_rms_norm,
    .linear = ct_ref_linear,
    .qkv_finish = ct_ref_qkv_finish,
    .attend = ct_ref_attend,
    .add_norm = ct_ref_add_norm,
    .geglu = ct_ref_geglu,
    .add = ct_ref_add,
    .route = ct_ref_route,
    .experts = ct_ref_experts,
    .gather = ct_ref_gather,
    .head = ct_ref_head,
    .destroy = ref_destroy,
};

ct_status ct_ref_create(ct_backend **out, ct_ref_rounding rounding, ct_pool *pool, ct_error *err)
{
    ct_ref *r = calloc(1, sizeof *r);

    if (!r)
        return ct_fail(err, CT_ELIMIT, "out of memory for the reference backend");
    r->base.ops = &ref_ops;
    r->rounding = rounding;
    r->pool = pool;
    for (unsigned i = 0; i < CT_LEN(r->e4m3); i++)
        r->e4m3[i] = ct_e4m3_f32((uint8_t)i);
    *out = &r->base;
    return CT_OK;
}
