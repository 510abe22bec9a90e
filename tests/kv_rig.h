/* For the tests of src/kv: stores over the reference backend, and sequences that write at
 * each position a fingerprint of the tokens up to it, as a decoder would. */
#ifndef CT_TESTS_KV_RIG_H
#define CT_TESTS_KV_RIG_H

#include "support.h"

#include "base/checked.h"
#include "base/pool.h"
#include "kv/kv.h"
#include "ops/ref/ref.h"

#include <string.h>

#define RIG_TOKENS 512 /* longest sequence */
#define RIG_SEQS   16

/* One sliding layer, then a global one. */
static const ct_config rig_config = {
    .n_layers = 2,
    .n_heads = 2,
    .n_kv_sliding = 2,
    .n_kv_global = 1,
    .hd_sliding = 2,
    .hd_global = 4,
    .window = 10,
    .is_global = {false, true},
};
enum { RIG_SLIDING, RIG_GLOBAL };

typedef struct rig {
    ct_config config;
    ct_kv_shape shape;
    ct_pool *pool;
    ct_backend *b;
    ct_kv *kv;
    uint32_t ids[RIG_SEQS][RIG_TOKENS]; /* what each sequence holds, or will */
    uint32_t limit[RIG_SEQS];           /* admitted; 0: empty */
    uint32_t n_prompt[RIG_SEQS];
    uint64_t salt[RIG_SEQS];
} rig;

static inline rig *rig_open(ct_kv_shape shape, uint32_t window)
{
    rig *r = calloc(1, sizeof *r);
    ct_error err;

    r->config = rig_config;
    r->config.window = window;
    r->shape = shape;
    assert_true(shape.n_seqs <= RIG_SEQS && shape.seq_tokens <= RIG_TOKENS);
    test_ok(ct_pool_create(&r->pool, 1, &err), &err);
    test_ok(ct_ref_create(&r->b, CT_REF_F32, r->pool, &err), &err);
    test_ok(ct_kv_create(&r->kv, &r->config, &r->shape, r->b, &err), &err);
    return r;
}

static inline void rig_close(rig *r)
{
    ct_kv_destroy(r->kv);
    r->b->ops->destroy(r->b);
    ct_pool_destroy(r->pool);
    free(r);
}

static inline uint32_t rig_page(const rig *r, unsigned layer, uint32_t seq, uint32_t pos)
{
    const ct_kv_layer *kv = &ct_kv_layers(r->kv)[layer];

    return kv->pages[seq * kv->max_blocks + pos / kv->page_tokens];
}

/* The value stored for a position: two numbers at least. */
static inline float *rig_value(const rig *r, unsigned layer, uint32_t seq, uint32_t pos)
{
    const ct_kv_layer *kv = &ct_kv_layers(r->kv)[layer];
    uint32_t page = rig_page(r, layer, seq, pos);

    if (page >= kv->n_pages)
        fail_msg("layer %u, sequence %u: position %u is not resident", layer, seq, pos);
    return (float *)kv->v +
           ((size_t)page * kv->page_tokens + pos % kv->page_tokens) * kv->kv_heads * kv->head_dim;
}

/* Fingerprint of the tokens up to a position from that of the position before; below
 * 2^24, so that a float holds it. */
static inline uint32_t rig_print(uint32_t before, uint32_t id)
{
    return ((before ^ id) * 2654435761u + 12345u) >> 8;
}

/* Every resident position holds the fingerprint of its own sequence. */
static inline void rig_check(const rig *r, uint32_t seq)
{
    const uint32_t P = ct_kv_layers(r->kv)->page_tokens, n = ct_kv_length(r->kv, seq);
    uint32_t print = (uint32_t)r->salt[seq];

    for (uint32_t pos = 0; pos < n; pos++) {
        print = rig_print(print, r->ids[seq][pos]);
        for (unsigned layer = 0; layer < 2; layer++) {
            const float *v;

            if (layer == RIG_SLIDING && pos + r->config.window <= n / P * P)
                continue; /* behind the window of any row to come */
            v = rig_value(r, layer, seq, pos);
            if (v[0] != (float)print || v[1] != (float)pos)
                fail_msg("layer %u, sequence %u: position %u holds what is another's", layer, seq,
                         pos);
        }
    }
}

static inline ct_kv_admission rig_admit(rig *r, uint32_t seq, const ct_kv_claim *claim,
                                        uint32_t *n_cached)
{
    ct_kv_admission a = ct_kv_admit(r->kv, seq, claim, n_cached);

    if (a != CT_KV_ADMITTED)
        return a;
    r->limit[seq] = claim->n_tokens;
    r->n_prompt[seq] = claim->n_ids;
    r->salt[seq] = claim->salt;
    if (claim->n_ids)
        memcpy(r->ids[seq], claim->ids, claim->n_ids * sizeof *claim->ids);
    assert_int_equal(*n_cached, ct_kv_length(r->kv, seq));
    rig_check(r, seq);
    return a;
}

static inline void rig_write(rig *r, uint32_t seq, uint32_t from, uint32_t end)
{
    uint32_t print = (uint32_t)r->salt[seq];

    for (uint32_t pos = 0; pos < end; pos++) {
        print = rig_print(print, r->ids[seq][pos]);
        for (unsigned layer = 0; layer < 2 && pos >= from; layer++) {
            float *v = rig_value(r, layer, seq, pos);

            v[0] = (float)print;
            v[1] = (float)pos;
        }
    }
}

/* A step of n tokens of r->ids. */
static inline void rig_step(rig *r, uint32_t seq, uint32_t n)
{
    const uint32_t at = ct_kv_length(r->kv, seq);
    ct_error err;

    test_ok(ct_kv_extend(r->kv, seq, r->ids[seq] + at, n, &err), &err);
    rig_write(r, seq, at, at + n);
}

static inline uint32_t rig_most(const rig *r, uint32_t seq)
{
    const uint32_t n = r->n_prompt[seq], most = r->shape.decode_tokens;

    if (n && ct_kv_length(r->kv, seq) >= n && most)
        return (uint32_t)ct_min_size(most, r->shape.step_tokens);
    return r->shape.step_tokens;
}

/* As many steps as it takes, stopping where the stores want a snapshot when `keeps`. */
static inline void rig_run(rig *r, uint32_t seq, uint32_t end, bool keeps)
{
    for (uint32_t at = ct_kv_length(r->kv, seq); at < end;) {
        uint32_t stop = keeps ? ct_kv_next_boundary(r->kv, seq, at) : end;
        uint32_t n =
            (uint32_t)ct_min_size(stop > at && stop < end ? stop - at : end - at, rig_most(r, seq));

        rig_step(r, seq, n);
        at += n;
        if (keeps && (at == stop || at == end))
            ct_kv_keep(r->kv, seq);
    }
}

static inline void rig_release(rig *r, uint32_t seq)
{
    ct_kv_release(r->kv, seq);
    r->limit[seq] = 0;
}

#endif
