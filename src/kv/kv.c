#include "kv/kv.h"

#include "base/checked.h"
#include "kv/pages.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

typedef struct family {
    ct_pages pool;
    uint32_t *table; /* [n_seqs, max_blocks]; owned */
    uint32_t window; /* 0: all positions stay */
} family;

struct ct_kv {
    ct_kv_shape shape;
    uint32_t max_blocks; /* of one sequence */
    uint32_t n_layers;
    ct_kv_layer layer[CT_MAX_LAYERS];
    family sliding, global;
    uint32_t *length; /* [n_seqs], resident positions count up to it; owned */
    uint32_t *limit;  /* [n_seqs], tokens admitted; 0: empty; owned */
};

static uint32_t blocks_of(uint32_t tokens, uint32_t page_tokens)
{
    return tokens / page_tokens + (tokens % page_tokens != 0);
}

/* Most pages that one sequence holds in a family: the keys that its oldest new row
 * still sees, the new rows, and what the first page holds before them. */
static uint32_t pages_a_seq(const ct_kv *kv, uint32_t window)
{
    const ct_kv_shape *s = &kv->shape;
    uint64_t tokens = (uint64_t)window - 1 + s->step_tokens + s->page_tokens - 1;

    if (window == 0 || tokens >= s->seq_tokens)
        return kv->max_blocks;
    return blocks_of((uint32_t)tokens, s->page_tokens);
}

static ct_status family_init(ct_kv *kv, family *f, uint32_t window, ct_error *err)
{
    size_t n_pages, n_entries;
    ct_status st;

    f->window = window;
    if (!ct_mul_size(&n_pages, pages_a_seq(kv, window), kv->shape.n_seqs) ||
        !ct_mul_size(&n_entries, kv->max_blocks, kv->shape.n_seqs) || n_pages >= CT_PAGE_NONE)
        return ct_fail(err, CT_ELIMIT, "%u sequences of %u tokens need more than %u KV pages",
                       kv->shape.n_seqs, kv->shape.seq_tokens, CT_PAGE_NONE);
    st = ct_pages_init(&f->pool, (uint32_t)n_pages, err);
    if (st)
        return st;
    f->table = calloc(n_entries, sizeof *f->table);
    if (!f->table)
        return ct_fail(err, CT_ELIMIT, "out of memory for %zu page table entries", n_entries);
    for (size_t i = 0; i < n_entries; i++)
        f->table[i] = CT_PAGE_NONE;
    return CT_OK;
}

static void family_deinit(family *f)
{
    ct_pages_deinit(&f->pool);
    free(f->table);
}

static ct_status layer_init(ct_kv *kv, uint32_t l, const ct_config *c, ct_backend *b, ct_error *err)
{
    const family *f = c->is_global[l] ? &kv->global : &kv->sliding;
    ct_kv_layer *layer = &kv->layer[l];
    size_t n;
    ct_status st;

    *layer = (ct_kv_layer){
        .page_tokens = kv->shape.page_tokens,
        .n_pages = f->pool.n,
        .type = c->is_global[l] ? kv->shape.global_type : kv->shape.sliding_type,
        .kv_heads = ct_config_kv_heads(c, l),
        .head_dim = ct_config_head_dim(c, l),
        .pages = f->table,
        .max_blocks = kv->max_blocks,
        .window = f->window,
    };
    if (!ct_mul_size(&n, layer->n_pages, layer->page_tokens) ||
        !ct_mul_size(&n, n, layer->kv_heads) || !ct_mul_size(&n, n, layer->head_dim))
        return ct_fail(err, CT_ELIMIT, "layer %u: %u KV pages are too many", l, layer->n_pages);
    st = b->ops->alloc(b, &layer->v, ct_kv_elem(layer->type), n, err);
    if (!st && (!c->is_global[l] || kv->shape.unfolded))
        st = b->ops->alloc(b, &layer->k, ct_kv_elem(layer->type), n, err);
    return st;
}

static ct_status kv_init(ct_kv *kv, const ct_config *c, ct_backend *b, ct_error *err)
{
    ct_status st = family_init(kv, &kv->sliding, c->window, err);

    if (!st)
        st = family_init(kv, &kv->global, 0, err);
    if (st)
        return st;
    kv->length = calloc(kv->shape.n_seqs, sizeof *kv->length);
    kv->limit = calloc(kv->shape.n_seqs, sizeof *kv->limit);
    if (!kv->length || !kv->limit)
        return ct_fail(err, CT_ELIMIT, "out of memory for %u sequences", kv->shape.n_seqs);
    for (uint32_t l = 0; l < kv->n_layers && !st; l++)
        st = layer_init(kv, l, c, b, err);
    return st;
}

ct_status ct_kv_create(ct_kv **out, const ct_config *config, const ct_kv_shape *shape,
                       ct_backend *backend, ct_error *err)
{
    ct_kv *kv;
    ct_status st;

    if (!shape->n_seqs || !shape->seq_tokens || !shape->step_tokens)
        return ct_fail(err, CT_EINVAL,
                       "KV for %u sequences of %u tokens, %u a step: none may be zero",
                       shape->n_seqs, shape->seq_tokens, shape->step_tokens);
    assert(config->window && config->n_layers <= CT_MAX_LAYERS);
    kv = calloc(1, sizeof *kv);
    if (!kv)
        return ct_fail(err, CT_ELIMIT, "out of memory for the KV tables");
    kv->shape = *shape;
    if (kv->shape.page_tokens == 0)
        kv->shape.page_tokens = CT_KV_PAGE_TOKENS;
    kv->n_layers = config->n_layers;
    kv->max_blocks = blocks_of(shape->seq_tokens, kv->shape.page_tokens);
    st = kv_init(kv, config, backend, err);
    if (st) {
        ct_kv_destroy(kv);
        return st;
    }
    *out = kv;
    return CT_OK;
}

void ct_kv_destroy(ct_kv *kv)
{
    if (!kv)
        return;
    family_deinit(&kv->sliding);
    family_deinit(&kv->global);
    free(kv->length);
    free(kv->limit);
    free(kv);
}

const ct_kv_layer *ct_kv_layers(const ct_kv *kv)
{
    return kv->layer;
}

uint32_t ct_kv_length(const ct_kv *kv, uint32_t seq)
{
    assert(seq < kv->shape.n_seqs);
    return kv->length[seq];
}

/* Puts back the pages of blocks [first, end) of a sequence that are resident. */
static void family_release(const ct_kv *kv, family *f, uint32_t seq, uint32_t first, uint32_t end)
{
    uint32_t *table = f->table + (size_t)seq * kv->max_blocks;

    for (uint32_t i = first; i < end; i++) {
        if (table[i] != CT_PAGE_NONE)
            ct_pages_put(&f->pool, table[i]);
        table[i] = CT_PAGE_NONE;
    }
}

/* Blocks wholly behind the window of position pos, which is the oldest row to come. */
static uint32_t blocks_behind(const ct_kv *kv, const family *f, uint32_t pos)
{
    if (f->window == 0 || pos < f->window)
        return 0;
    return (pos - f->window + 1) / kv->shape.page_tokens;
}

static void family_extend(ct_kv *kv, family *f, uint32_t seq, uint32_t n)
{
    const uint32_t length = kv->length[seq], page_tokens = kv->shape.page_tokens;
    /* The step before this one began at most step_tokens earlier, and let go of what
     * was behind its window then. */
    const uint32_t before = length > kv->shape.step_tokens ? length - kv->shape.step_tokens : 0;
    uint32_t *table = f->table + (size_t)seq * kv->max_blocks;

    family_release(kv, f, seq, blocks_behind(kv, f, before), blocks_behind(kv, f, length));
    for (uint32_t i = length / page_tokens; i < blocks_of(length + n, page_tokens); i++) {
        if (table[i] == CT_PAGE_NONE)
            table[i] = ct_pages_take(&f->pool);
        /* The pool was sized for every sequence at its longest. */
        assert(table[i] != CT_PAGE_NONE);
    }
}

ct_kv_need ct_kv_needs(const ct_kv *kv, uint32_t n_tokens)
{
    const uint32_t blocks = blocks_of(n_tokens, kv->shape.page_tokens);
    const uint32_t most = pages_a_seq(kv, kv->sliding.window);

    return (ct_kv_need){.n_global = blocks, .n_sliding = blocks < most ? blocks : most};
}

ct_kv_admission ct_kv_admit(ct_kv *kv, uint32_t seq, const ct_kv_claim *claim, uint32_t *n_cached)
{
    assert(seq < kv->shape.n_seqs && kv->limit[seq] == 0);
    if (claim->n_tokens > kv->shape.seq_tokens)
        return CT_KV_NEVER;
    kv->limit[seq] = claim->n_tokens;
    *n_cached = 0;
    return CT_KV_ADMITTED;
}

ct_status ct_kv_extend(ct_kv *kv, uint32_t seq, const uint32_t *ids, uint32_t n, ct_error *err)
{
    assert(seq < kv->shape.n_seqs);
    (void)ids;
    if (n > kv->shape.step_tokens)
        return ct_fail(err, CT_EINVAL, "a step of %u tokens in one sequence, at most %u fit", n,
                       kv->shape.step_tokens);
    if (n > kv->limit[seq] - kv->length[seq])
        return ct_fail(err, CT_ELIMIT, "%u tokens and %u more, but the sequence holds %u",
                       kv->length[seq], n, kv->limit[seq]);
    if (n == 0)
        return CT_OK;
    family_extend(kv, &kv->sliding, seq, n);
    family_extend(kv, &kv->global, seq, n);
    kv->length[seq] += n;
    return CT_OK;
}

uint32_t ct_kv_next_boundary(const ct_kv *kv, uint32_t seq, uint32_t from)
{
    (void)from;
    return kv->limit[seq];
}

void ct_kv_keep(ct_kv *kv, uint32_t seq)
{
    (void)kv;
    (void)seq;
}

void ct_kv_release(ct_kv *kv, uint32_t seq)
{
    assert(seq < kv->shape.n_seqs);
    family_release(kv, &kv->sliding, seq, 0, kv->max_blocks);
    family_release(kv, &kv->global, seq, 0, kv->max_blocks);
    kv->length[seq] = kv->limit[seq] = 0;
}

ct_kv_usage ct_kv_used(const ct_kv *kv)
{
    return (ct_kv_usage){
        .n_sliding = kv->sliding.pool.n,
        .n_global = kv->global.pool.n,
        .sliding_free = kv->sliding.pool.n_free,
        .global_free = kv->global.pool.n_free,
    };
}

static bool family_consistent(const ct_kv *kv, const family *f)
{
    const size_t n = (size_t)kv->shape.n_seqs * kv->max_blocks;
    uint32_t resident = 0;

    for (size_t i = 0; i < n; i++) {
        if (f->table[i] == CT_PAGE_NONE)
            continue;
        if (f->table[i] >= f->pool.n || !f->pool.taken[f->table[i]])
            return false;
        for (size_t j = 0; j < i; j++)
            if (f->table[j] == f->table[i])
                return false;
        resident++;
    }
    return resident + f->pool.n_free == f->pool.n;
}

bool ct_kv_consistent(const ct_kv *kv)
{
    return family_consistent(kv, &kv->sliding) && family_consistent(kv, &kv->global);
}
