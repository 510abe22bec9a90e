#include "kv/kv.h"

#include "base/checked.h"
#include "kv/kv_impl.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* --- creation ----------------------------------------------------------------- */

static ct_status layer_init(ct_kv *kv, uint32_t l, const ct_config *c, const ct_kv_shape *shape,
                            ct_backend *b, ct_error *err)
{
    const bool global = c->is_global[l];
    ct_kv_layer *layer = &kv->layer[l];
    ct_elem elem;
    size_t n;
    ct_status st;

    *layer = (ct_kv_layer){
        .type = global ? shape->global_type : shape->sliding_type,
        .page_tokens = kv->plan.page_tokens,
        .n_pages = global ? kv->global.n : kv->sliding.n,
        .kv_heads = ct_config_kv_heads(c, l),
        .head_dim = ct_config_head_dim(c, l),
        .pages = global ? kv->global_table : kv->sliding_table,
        .max_blocks = kv->plan.max_blocks,
        .window = global ? 0 : c->window,
    };
    elem = ct_kv_elem(layer->type);
    /* The plan has checked these products. */
    n = (size_t)layer->n_pages * layer->page_tokens * layer->kv_heads * layer->head_dim;
    st = b->ops->alloc(b, &layer->v, elem, n, err);
    if (!st && (!global || shape->unfolded))
        st = b->ops->alloc(b, &layer->k, elem, n, err);
    return st;
}

static ct_status tables_init(ct_kv *kv, ct_error *err)
{
    const size_t audit = 3 * ((size_t)kv->global.n + kv->sliding.n);
    size_t n;

    if (ct_mul_size(&n, kv->plan.max_blocks, kv->n_seqs)) {
        kv->global_table = calloc(n, sizeof *kv->global_table);
        kv->sliding_table = calloc(n, sizeof *kv->sliding_table);
    }
    kv->seq = calloc(kv->n_seqs, sizeof *kv->seq);
    kv->audit = calloc(audit, sizeof *kv->audit);
    if (!kv->global_table || !kv->sliding_table || !kv->seq || !kv->audit)
        return ct_fail(err, CT_ELIMIT, "out of memory for the page tables of %u sequences",
                       kv->n_seqs);
    for (size_t i = 0; i < n; i++)
        kv->global_table[i] = kv->sliding_table[i] = CT_PAGE_NONE;
    return CT_OK;
}

static ct_status kv_init(ct_kv *kv, const ct_config *c, const ct_kv_shape *shape, ct_backend *b,
                         ct_error *err)
{
    const ct_kv_bytes *bytes = &kv->plan.bytes;
    ct_status st = ct_pages_init(&kv->global, bytes->n_global, err);

    if (!st)
        st = ct_pages_init(&kv->sliding, bytes->n_sliding, err);
    if (!st)
        st = tables_init(kv, err);
    if (!st && kv->cache_bytes)
        st = ct_prefix_init(&kv->prefix, &kv->global, &kv->sliding, kv->plan.page_tokens,
                            kv->plan.window_blocks, err);
    for (uint32_t l = 0; l < kv->n_layers && !st; l++)
        st = layer_init(kv, l, c, shape, b, err);
    return st;
}

ct_status ct_kv_create(ct_kv **out, const ct_config *config, const ct_kv_shape *shape,
                       ct_backend *backend, ct_error *err)
{
    ct_kv_plan plan;
    ct_kv *kv;
    ct_status st = ct_kv_plan_make(&plan, config, shape, err);

    if (st)
        return st;
    kv = calloc(1, sizeof *kv);
    if (!kv)
        return ct_fail(err, CT_ELIMIT, "out of memory for the KV tables");
    *kv = (ct_kv){
        .plan = plan,
        .n_seqs = shape->n_seqs,
        .seq_tokens = shape->seq_tokens,
        .step_tokens = shape->step_tokens,
        .cache_bytes = shape->cache_bytes,
        .n_layers = config->n_layers,
    };
    st = kv_init(kv, config, shape, backend, err);
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
    ct_prefix_deinit(&kv->prefix);
    ct_pages_deinit(&kv->sliding);
    ct_pages_deinit(&kv->global);
    free(kv->global_table);
    free(kv->sliding_table);
    free(kv->seq);
    free(kv->audit);
    free(kv);
}

const ct_kv_layer *ct_kv_layers(const ct_kv *kv)
{
    return kv->layer;
}

static kv_seq *seq_at(const ct_kv *kv, uint32_t seq)
{
    assert(seq < kv->n_seqs);
    return &kv->seq[seq];
}

uint32_t ct_kv_length(const ct_kv *kv, uint32_t seq)
{
    return seq_at(kv, seq)->length;
}

/* --- pages given up by the cache ---------------------------------------------- */

static void trim_cache(ct_kv *kv)
{
    const ct_kv_bytes *b = &kv->plan.bytes;

    while (kv->global.n_kept * b->global_page + kv->sliding.n_kept * b->sliding_page >
           kv->cache_bytes)
        if (!ct_prefix_evict(&kv->prefix))
            break;
}

static uint32_t take_page(ct_kv *kv, ct_pages *pool)
{
    uint32_t page;

    while (pool->n_free == 0 && kv->cache_bytes)
        if (!ct_prefix_evict(&kv->prefix))
            break;
    page = ct_pages_take(pool);
    /* Admission saw to it that what is neither free nor kept covers no more than what
     * others were promised. */
    assert(page != CT_PAGE_NONE);
    return page;
}

/* --- admission ---------------------------------------------------------------- */

ct_kv_need ct_kv_needs(const ct_kv *kv, uint32_t n_tokens)
{
    return (ct_kv_need){
        .n_global = ct_kv_blocks(n_tokens, kv->plan.page_tokens),
        .n_sliding = ct_kv_sliding_claim(kv, &(kv_seq){.limit = n_tokens}),
    };
}

static ct_prefix_match look_up(const ct_kv *kv, const ct_kv_claim *claim)
{
    if (!kv->cache_bytes || claim->no_cache || claim->n_ids == 0)
        return (ct_prefix_match){.tip = CT_PAGE_NONE};
    /* The last token is always computed: its logits are wanted. */
    return ct_prefix_find(&kv->prefix, claim->salt, claim->ids,
                          (claim->n_ids - 1) / kv->plan.page_tokens);
}

/* Pages of a path that leave the kept ones when a table takes them up. */
static uint32_t kept_on_path(const ct_kv *kv, const ct_prefix_match *m)
{
    uint32_t n = 0, block = m->tip;

    for (; block != CT_PAGE_NONE; block = kv->prefix.block[block].parent)
        n += kv->global.users[block] == 0;
    return n;
}

static uint32_t first_visible(const ct_kv *kv, uint32_t n_blocks)
{
    return n_blocks > kv->plan.window_blocks ? n_blocks - kv->plan.window_blocks : 0;
}

/* Puts the path's pages into the table. */
static void attach(ct_kv *kv, uint32_t seq, const ct_prefix_match *m)
{
    uint32_t *global = ct_kv_row(kv, kv->global_table, seq);
    uint32_t *sliding = ct_kv_row(kv, kv->sliding_table, seq);
    const uint32_t first = first_visible(kv, m->n_blocks);
    uint32_t block = m->tip;

    for (uint32_t i = m->n_blocks; i-- > 0;) {
        const ct_prefix_block *b = &kv->prefix.block[block];

        global[i] = block;
        ct_pages_share(&kv->global, block);
        if (i >= first) {
            sliding[i] = b->sliding;
            ct_pages_share(&kv->sliding, b->sliding);
        }
        block = b->parent;
    }
    if (m->tip != CT_PAGE_NONE)
        ct_prefix_touch(&kv->prefix, m->tip);
}

static void count_look_up(ct_kv *kv, const ct_kv_claim *claim, uint32_t n_cached)
{
    kv->n_queries++;
    kv->n_query_tokens += claim->n_ids;
    kv->n_hits += n_cached > 0;
    kv->n_hit_tokens += n_cached;
}

static void admit(ct_kv *kv, uint32_t seq, const ct_kv_claim *claim, const ct_prefix_match *m)
{
    const uint32_t page_tokens = kv->plan.page_tokens;
    kv_seq *s = &kv->seq[seq];

    *s = (kv_seq){
        .length = m->n_blocks * page_tokens,
        .limit = claim->n_tokens,
        .first_sliding = first_visible(kv, m->n_blocks),
        .shares = kv->cache_bytes && !claim->no_cache,
        .salt = claim->salt,
        .n_prompt = claim->n_ids,
        .branch = m->n_known > m->n_blocks ? m->n_known * page_tokens : 0,
        .hint = claim->hint / page_tokens * page_tokens,
        .n_published = m->n_blocks,
        .tip = m->tip,
        .tip_serial = m->tip == CT_PAGE_NONE ? 0 : kv->prefix.block[m->tip].serial,
    };
    s->global_due = ct_kv_blocks(s->limit, page_tokens) - m->n_blocks;
    s->sliding_claim = ct_kv_sliding_claim(kv, s);
    kv->global_due += s->global_due;
    kv->sliding_claim += s->sliding_claim;
    attach(kv, seq, m);
    if (s->shares)
        count_look_up(kv, claim, s->length);
}

ct_kv_admission ct_kv_admit(ct_kv *kv, uint32_t seq, const ct_kv_claim *claim, uint32_t *n_cached)
{
    const ct_kv_need need = ct_kv_needs(kv, claim->n_tokens);
    ct_prefix_match m;
    kv_seq s = {.limit = claim->n_tokens};

    assert(seq_at(kv, seq)->limit == 0 && claim->n_tokens && claim->n_ids <= claim->n_tokens);
    if (claim->n_tokens > kv->seq_tokens || need.n_global > kv->global.n ||
        need.n_sliding > kv->sliding.n)
        return CT_KV_NEVER;
    m = look_up(kv, claim);
    s.first_sliding = first_visible(kv, m.n_blocks);
    if ((uint64_t)kv->global_due + need.n_global - m.n_blocks + kept_on_path(kv, &m) >
            (uint64_t)kv->global.n_free + kv->global.n_kept ||
        (uint64_t)kv->sliding_claim + ct_kv_sliding_claim(kv, &s) > kv->sliding.n)
        return CT_KV_WAIT;
    admit(kv, seq, claim, &m);
    *n_cached = m.n_blocks * kv->plan.page_tokens;
    return CT_KV_ADMITTED;
}

/* --- growth ------------------------------------------------------------------- */

static bool past_prompt(const kv_seq *s)
{
    return s->n_prompt && s->length >= s->n_prompt;
}

/* Puts back what is behind the window of the page where the next step begins. */
static void slide(ct_kv *kv, uint32_t seq)
{
    kv_seq *s = &kv->seq[seq];
    uint32_t *table = ct_kv_row(kv, kv->sliding_table, seq);
    const uint32_t first = first_visible(kv, s->length / kv->plan.page_tokens);
    uint32_t claim;

    for (; s->first_sliding < first; s->first_sliding++) {
        ct_pages_put(&kv->sliding, table[s->first_sliding]);
        table[s->first_sliding] = CT_PAGE_NONE;
    }
    s->decoding = past_prompt(s);
    claim = ct_kv_sliding_claim(kv, s);
    kv->sliding_claim -= s->sliding_claim - claim;
    s->sliding_claim = claim;
}

static void take_pages(ct_kv *kv, uint32_t seq, uint32_t n)
{
    kv_seq *s = &kv->seq[seq];
    uint32_t *global = ct_kv_row(kv, kv->global_table, seq);
    uint32_t *sliding = ct_kv_row(kv, kv->sliding_table, seq);
    const uint32_t end = ct_kv_blocks((uint64_t)s->length + n, kv->plan.page_tokens);

    for (uint32_t i = ct_kv_seq_blocks(kv, s); i < end; i++) {
        global[i] = take_page(kv, &kv->global);
        sliding[i] = take_page(kv, &kv->sliding);
        s->global_due--;
        kv->global_due--;
    }
}

/* The pages' tokens, for when they are offered to others. */
static void note_ids(ct_kv *kv, uint32_t seq, const uint32_t *ids, uint32_t n)
{
    const uint32_t *table = ct_kv_row(kv, kv->global_table, seq), P = kv->plan.page_tokens;

    for (uint32_t pos = kv->seq[seq].length, end = pos + n; pos < end;) {
        uint32_t run = (uint32_t)ct_min_size(P - pos % P, end - pos);

        memcpy(ct_prefix_ids(&kv->prefix, table[pos / P]) + pos % P, ids, run * sizeof *ids);
        ids += run;
        pos += run;
    }
}

ct_status ct_kv_extend(ct_kv *kv, uint32_t seq, const uint32_t *ids, uint32_t n, ct_error *err)
{
    kv_seq *s = seq_at(kv, seq);
    const uint32_t most = past_prompt(s) ? kv->plan.decode_tokens : kv->step_tokens;

    if (n > most)
        return ct_fail(err, CT_EINVAL, "a step of %u tokens in one sequence, at most %u fit", n,
                       most);
    if (n > s->limit - s->length)
        return ct_fail(err, CT_ELIMIT, "%u tokens and %u more, but the sequence was given %u",
                       s->length, n, s->limit);
    if (n == 0)
        return CT_OK;
    slide(kv, seq);
    trim_cache(kv);
    take_pages(kv, seq, n);
    if (s->shares)
        note_ids(kv, seq, ids, n);
    s->length += n;
    return CT_OK;
}

void ct_kv_release(ct_kv *kv, uint32_t seq)
{
    kv_seq *s = seq_at(kv, seq);
    uint32_t *global = ct_kv_row(kv, kv->global_table, seq);
    uint32_t *sliding = ct_kv_row(kv, kv->sliding_table, seq);
    const uint32_t n = ct_kv_seq_blocks(kv, s);

    for (uint32_t i = 0; i < n; i++) {
        ct_pages_put(&kv->global, global[i]);
        if (i >= s->first_sliding)
            ct_pages_put(&kv->sliding, sliding[i]);
        global[i] = sliding[i] = CT_PAGE_NONE;
    }
    kv->global_due -= s->global_due;
    kv->sliding_claim -= s->sliding_claim;
    *s = (kv_seq){0};
    trim_cache(kv);
}

/* --- sharing ------------------------------------------------------------------ */

static uint32_t nearer(uint32_t best, uint32_t at, uint32_t from)
{
    return at > from && at < best ? at : best;
}

uint32_t ct_kv_next_boundary(const ct_kv *kv, uint32_t seq, uint32_t from)
{
    const kv_seq *s = seq_at(kv, seq);
    uint32_t at = s->n_prompt;

    if (!s->shares)
        return at;
    at = nearer(at, s->branch, from);
    at = nearer(at, s->hint, from);
    /* The same prompt again may use all but its last token; a prompt that ends inside a
     * page leaves its last whole one anyway. */
    if (s->n_prompt && s->n_prompt % kv->plan.page_tokens == 0)
        at = nearer(at, s->n_prompt - kv->plan.page_tokens, from);
    return at;
}

/* Known block of the sequence's first n blocks. */
static uint32_t publish(ct_kv *kv, uint32_t seq, uint32_t n)
{
    kv_seq *s = &kv->seq[seq];
    const uint32_t *table = ct_kv_row(kv, kv->global_table, seq);

    /* Evicted meanwhile: from the start again. */
    if (s->n_published && kv->prefix.block[s->tip].serial != s->tip_serial) {
        s->n_published = 0;
        s->tip = CT_PAGE_NONE;
    }
    for (; s->n_published < n; s->n_published++)
        s->tip = ct_prefix_add(&kv->prefix, s->tip, s->salt, table[s->n_published]);
    s->tip_serial = kv->prefix.block[s->tip].serial;
    return s->tip;
}

void ct_kv_keep(ct_kv *kv, uint32_t seq)
{
    kv_seq *s = seq_at(kv, seq);
    const ct_kv_bytes *b = &kv->plan.bytes;
    const uint32_t n = s->length / kv->plan.page_tokens;
    const uint32_t window = n - first_visible(kv, n);
    uint32_t tip;

    /* Rather nothing than a path that would drive everything else out, and then itself. */
    if (!s->shares || n == 0 || n * b->global_page + window * b->sliding_page > kv->cache_bytes)
        return;
    tip = publish(kv, seq, n);
    if (kv->prefix.block[tip].is_snapshot)
        ct_prefix_touch(&kv->prefix, tip);
    else
        ct_prefix_snapshot(&kv->prefix, tip, ct_kv_row(kv, kv->sliding_table, seq), n);
}

void ct_kv_forget(ct_kv *kv)
{
    while (kv->cache_bytes && ct_prefix_evict(&kv->prefix))
        ;
}
