/* What the KV stores do to a model's numbers: folding and storage types against the
 * unfolded form and the reference's own bf16 noise; and that reused pages change no bit.
 *
 * CARAT_LONG=1 runs the longest cases in every way. */
#include "fixture.h"

#include "base/checked.h"
#include "base/pool.h"
#include "kv/kv.h"
#include "model/forward.h"
#include "ops/ref/ref.h"

#include <math.h>

#if defined(__SANITIZE_ADDRESS__)
#define SANITIZED 1
#else
#define SANITIZED 0
#endif

#define NOISE_BOUND                                                                                \
    1.5 /* of a noise that one more rounding of the same kind may double at worst                  \
         */
#define LONG_CASE 256
#define CHUNK     64

static ct_error err;

/* --- a decoder over stores ------------------------------------------------------- */

typedef struct decoder {
    const ct_model *model;
    ct_pool *pool;
    ct_backend *b;
    ct_kv *kv;
    ct_forward *f;
    float *hidden; /* [tokens, H] final states of the sequence under way */
    uint32_t at, n;
} decoder;

static decoder decoder_open(const ct_model *m, ct_ref_rounding rounding, const ct_kv_shape *shape)
{
    decoder d = {.model = m};
    const ct_forward_limits limits = {
        .rows = shape->step_tokens, .keys = shape->seq_tokens, .logits_rows = 1};

    test_ok(ct_pool_create(&d.pool, 2, &err), &err);
    test_ok(ct_ref_create(&d.b, rounding, d.pool, &err), &err);
    test_ok(ct_kv_create(&d.kv, &m->config, shape, d.b, &err), &err);
    test_ok(ct_forward_create(&d.f, &m->config, &m->weights, d.b, &limits, &err), &err);
    d.hidden = calloc((size_t)shape->seq_tokens * m->config.hidden, sizeof *d.hidden);
    return d;
}

static void decoder_close(decoder *d)
{
    ct_forward_destroy(d->f);
    ct_kv_destroy(d->kv);
    d->b->ops->destroy(d->b);
    ct_pool_destroy(d->pool);
    free(d->hidden);
}

static ct_status keep_final(void *ctx, uint32_t index, const void *x, ct_error *e)
{
    decoder *d = ctx;
    const size_t H = d->model->config.hidden;

    if (index < d->model->config.n_layers)
        return CT_OK;
    return d->b->ops->read(d->b, d->hidden + d->at * H, x, CT_ELEM_ACT, 0, d->n * H, e);
}

static void decoder_step(decoder *d, uint32_t seq, const uint32_t *ids, uint32_t n)
{
    uint32_t pos[CHUNK], seqs[CHUNK];

    assert_true(n <= CHUNK);
    d->at = ct_kv_length(d->kv, seq);
    d->n = n;
    test_ok(ct_kv_extend(d->kv, seq, ids, n, &err), &err);
    for (uint32_t i = 0; i < n; i++) {
        pos[i] = d->at + i;
        seqs[i] = seq;
    }
    test_ok(ct_forward_step(d->f, &(ct_rows){n, ids, pos, seqs}, ct_kv_layers(d->kv),
                            &(ct_hidden_sink){keep_final, d}, &err),
            &err);
}

static void admit(decoder *d, uint32_t seq, const ct_kv_claim *claim, uint32_t want_cached)
{
    uint32_t n_cached;

    assert_int_equal(ct_kv_admit(d->kv, seq, claim, &n_cached), CT_KV_ADMITTED);
    assert_int_equal(n_cached, want_cached);
}

/* --- folding and types --------------------------------------------------------- */

typedef struct difference {
    double max, mean;
} difference;

static difference differ(const float *a, const float *b, size_t n)
{
    difference d = {0};

    for (size_t i = 0; i < n; i++) {
        double x = fabs((double)a[i] - b[i]);

        /* A NaN must not look like agreement. */
        d.max = x <= d.max ? d.max : x;
        d.mean += x / (double)n;
    }
    return d;
}

typedef struct outcome {
    float *logits; /* [n_kept, V] */
    uint32_t greedy[256];
} outcome;

static uint32_t greedy_next(decoder *d, float *logits)
{
    const uint32_t vocab = d->model->config.vocab, row = d->n - 1;
    uint32_t best = 0;

    test_ok(ct_forward_logits(d->f, &row, 1, logits, &err), &err);
    for (uint32_t i = 1; i < vocab; i++)
        if (logits[i] > logits[best])
            best = i;
    return best;
}

/* The case, and its greedy continuation. */
static outcome run_case(const fixture *f, const fixture_case *k, ct_ref_rounding rounding,
                        ct_kv_type type, bool unfolded)
{
    const uint32_t vocab = f->model->config.vocab;
    const ct_kv_shape shape = {.n_seqs = 1,
                               .seq_tokens = k->T + k->n_greedy,
                               .step_tokens = CHUNK,
                               .global_type = type,
                               .sliding_type = type,
                               .unfolded = unfolded};
    outcome o = {.logits = calloc((size_t)(k->n_kept + 1) * vocab, sizeof(float))};
    decoder d = decoder_open(f->model, rounding, &shape);

    admit(&d, 0, &(ct_kv_claim){.n_tokens = shape.seq_tokens}, 0);
    for (uint32_t at = 0; at < k->T; at += d.n) {
        decoder_step(&d, 0, k->ids + at, (uint32_t)ct_min_size(CHUNK, k->T - at));
        for (uint32_t i = 0; i < k->n_kept; i++) {
            uint32_t row = k->kept[i] - at;

            if (k->kept[i] >= at && row < d.n)
                test_ok(ct_forward_logits(d.f, &row, 1, o.logits + (size_t)i * vocab, &err), &err);
        }
    }
    assert_true(k->n_greedy <= CT_LEN(o.greedy));
    for (uint32_t i = 0; i < k->n_greedy; i++) {
        o.greedy[i] = greedy_next(&d, o.logits + (size_t)k->n_kept * vocab);
        decoder_step(&d, 0, &o.greedy[i], 1);
    }
    decoder_close(&d);
    return o;
}

static uint32_t n_equal(const uint32_t *a, const uint32_t *b, uint32_t n)
{
    uint32_t same = 0;

    while (same < n && a[same] == b[same])
        same++;
    return same;
}

static const char *const type_names[] = {"f32", "bf16", "fp8"};

/* Folded and unfolded stores of one type, with activations in f32. */
static void check_fold(const fixture *f, const fixture_case *k, ct_kv_type type)
{
    const size_t n = (size_t)k->n_kept * f->model->config.vocab;
    outcome folded = run_case(f, k, CT_REF_F32, type, false);
    outcome unfolded = run_case(f, k, CT_REF_F32, type, true);
    const difference fold = differ(folded.logits, unfolded.logits, n),
                     ours = differ(folded.logits, k->logits, n),
                     whole = differ(unfolded.logits, k->logits, n),
                     theirs = differ(k->logits16, k->logits, n);
    const uint32_t same = n_equal(folded.greedy, unfolded.greedy, k->n_greedy);

    print_message("%s %s, %s: folding max %.2g mean %.2g; from the f32 reference: folded %.2g "
                  "%.2g, unfolded %.2g %.2g, reference in bf16 %.2g %.2g; greedy %u of %u\n",
                  f->name, k->name, type_names[type], fold.max, fold.mean, ours.max, ours.mean,
                  whole.max, whole.mean, theirs.max, theirs.mean, same, k->n_greedy);
    if (type == CT_KV_F32)
        assert_int_equal(n_equal(folded.greedy, k->greedy, k->n_greedy), k->n_greedy);
    if (type != CT_KV_FP8) {
        assert_int_equal(same, k->n_greedy);
        assert_true(fold.max < theirs.max && fold.mean < theirs.mean);
    }
    /* Folding is not what costs precision, in any type. */
    if (type != CT_KV_F32)
        assert_true(ours.mean <= NOISE_BOUND * whole.mean);
    free(folded.logits);
    free(unfolded.logits);
}

static void folding_is_below_the_reference_s_bf16_noise(void **state)
{
    fixture f = fixture_open(*state);
    fixture_case k;

    for (size_t i = 0; i < ct_checkpoint_count(f.ref); i++) {
        if (!fixture_case_at(&f, i, &k) || !k.logits16 || (SANITIZED && k.T > LONG_CASE))
            continue;
        for (unsigned type = CT_KV_F32; type <= CT_KV_FP8; type++)
            if (k.T <= LONG_CASE || (type == CT_KV_BF16 && k.T == f.model->config.window + 1) ||
                getenv("CARAT_LONG"))
                check_fold(&f, &k, (ct_kv_type)type);
    }
    fixture_close(&f);
}

/* Activations and stores as the reference's bf16 has them. */
static void folded_bf16_stores_are_as_near_as_the_reference_s_own(void **state)
{
    fixture f = fixture_open(*state);
    fixture_case k;

    for (size_t i = 0; i < ct_checkpoint_count(f.ref); i++) {
        difference ours, theirs;
        outcome o;
        size_t n;

        if (!fixture_case_at(&f, i, &k) || !k.logits16 || k.T > LONG_CASE)
            continue;
        n = (size_t)k.n_kept * f.model->config.vocab;
        o = run_case(&f, &k, CT_REF_BF16, CT_KV_BF16, false);
        ours = differ(o.logits, k.logits, n);
        theirs = differ(k.logits16, k.logits, n);
        if (!(ours.max <= NOISE_BOUND * theirs.max && ours.mean <= NOISE_BOUND * theirs.mean))
            fail_msg("%s %s: noise %g, mean %g; the reference's own is %g, mean %g", f.name, k.name,
                     ours.max, ours.mean, theirs.max, theirs.mean);
        free(o.logits);
    }
    fixture_close(&f);
}

/* --- reuse --------------------------------------------------------------------- */

/* The whole sequence, from where it stands, in chunks. */
static void finish(decoder *d, uint32_t seq, const uint32_t *ids, uint32_t n, uint32_t chunk)
{
    for (uint32_t at = ct_kv_length(d->kv, seq); at < n; at += d->n)
        decoder_step(d, seq, ids + at, (uint32_t)ct_min_size(chunk, n - at));
}

/* Leaves a snapshot after `shared` tokens of ids: by another prompt, which goes on. */
static void leave_prefix(decoder *d, const uint32_t *ids, uint32_t shared, bool alive)
{
    uint32_t *other = calloc(shared + 1, sizeof *other);

    memcpy(other, ids, shared * sizeof *ids);
    other[shared] = ids[shared] ? 0 : 1;
    ct_kv_release(d->kv, 1);
    ct_kv_forget(d->kv);
    admit(d, 1, &(ct_kv_claim){.ids = other, .n_ids = shared + 1, .n_tokens = shared + 1}, 0);
    finish(d, 1, other, shared + 1, CHUNK);
    ct_kv_keep(d->kv, 1);
    if (!alive)
        ct_kv_release(d->kv, 1);
    free(other);
}

/* 33: ids cold, and after prefixes of several lengths: the window to the token, a part of
 * it, more, and everything but the last page.  Only the first one if `brief`. */
static void check_reuse(const ct_model *m, ct_ref_rounding rounding, const ct_kv_shape *shape,
                        const uint32_t *ids, uint32_t n, bool brief)
{
    const uint32_t P = shape->page_tokens, W = m->config.window / P * P;
    const uint32_t shared[] = {W, P, W / 2 / P * P, W + P, (n - 1) / P * P};
    const size_t H = m->config.hidden;
    decoder d = decoder_open(m, rounding, shape);
    float *cold = calloc(n * H, sizeof *cold);

    admit(&d, 0, &(ct_kv_claim){.n_tokens = n, .no_cache = true}, 0);
    finish(&d, 0, ids, n, CHUNK);
    memcpy(cold, d.hidden, n * H * sizeof *cold);
    ct_kv_release(d.kv, 0);
    for (size_t i = 0; i < (brief ? 1 : CT_LEN(shared)); i++) {
        const uint32_t c = shared[i];

        if (c == 0 || c >= n)
            continue;
        leave_prefix(&d, ids, c, i % 2);
        admit(&d, 0, &(ct_kv_claim){.ids = ids, .n_ids = n, .n_tokens = n}, c);
        finish(&d, 0, ids, n, i % 2 ? 7 : CHUNK);
        if (memcmp(d.hidden + c * H, cold + c * H, (n - c) * H * sizeof *cold))
            fail_msg("other bits after a prefix of %u of %u tokens, pages of %u, %s", c, n, P,
                     type_names[shape->global_type]);
        assert_true(ct_kv_consistent(d.kv));
        ct_kv_release(d.kv, 0);
    }
    free(cold);
    decoder_close(&d);
}

static void pseudo_random_ids(uint32_t *ids, uint32_t n, uint32_t vocab)
{
    uint64_t seed = 1;

    for (uint32_t i = 0; i < n; i++) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        ids[i] = (uint32_t)((seed >> 33) % vocab);
    }
}

static ct_kv_shape reuse_shape(uint32_t n, uint32_t page_tokens, ct_kv_type type)
{
    return (ct_kv_shape){.n_seqs = 2,
                         .seq_tokens = n + 1,
                         .step_tokens = CHUNK,
                         .page_tokens = page_tokens,
                         .global_type = type,
                         .sliding_type = type,
                         .cache_bytes = 1ull << 40};
}

/* Small windows: every store, both roundings, pages smaller and larger than the window. */
static void reused_pages_change_no_bit(void **state)
{
    fixture f = fixture_open(*state);
    uint32_t ids[40];

    pseudo_random_ids(ids, CT_LEN(ids), f.model->config.vocab);
    for (unsigned type = CT_KV_F32; type <= CT_KV_FP8; type++)
        for (unsigned rounding = CT_REF_F32; rounding <= CT_REF_BF16; rounding++)
            for (uint32_t page_tokens = 2; page_tokens <= 8; page_tokens *= 2) {
                ct_kv_shape shape = reuse_shape(CT_LEN(ids), page_tokens, (ct_kv_type)type);

                check_reuse(f.model, (ct_ref_rounding)rounding, &shape, ids, CT_LEN(ids), false);
                shape.unfolded = true;
                check_reuse(f.model, (ct_ref_rounding)rounding, &shape, ids, CT_LEN(ids), false);
            }
    fixture_close(&f);
}

static void reused_pages_change_no_bit_of_the_demo_model(void **state)
{
    enum { N = 300 }; /* the window is 128 */
    const ct_kv_shape shape = reuse_shape(N, 16, CT_KV_BF16);
    uint32_t ids[N];
    ct_model *m;

    (void)state;
    test_ok(ct_model_open(&m, "models/demo", &err), &err);
    pseudo_random_ids(ids, N, m->config.vocab);
    check_reuse(m, CT_REF_F32, &shape, ids, N, SANITIZED);
    ct_model_close(m);
}

/* Heads and window of the published models, pages of the default size. */
static void reused_pages_change_no_bit_at_real_sizes(void **state)
{
    enum { N = 1024 + 64 + 9 };
    fixture f = fixture_open("realheads");
    const ct_kv_shape shape = reuse_shape(N, CT_KV_PAGE_TOKENS, CT_KV_FP8);
    uint32_t ids[N];

    (void)state;
    if (SANITIZED)
        skip();
    pseudo_random_ids(ids, N, f.model->config.vocab);
    check_reuse(f.model, CT_REF_F32, &shape, ids, N, !getenv("CARAT_LONG"));
    fixture_close(&f);
}

#define ON(test, fixture_name)                                                                     \
    {                                                                                              \
#test " (" fixture_name ")", test, NULL, NULL, (void *)(uintptr_t)(fixture_name)           \
    }

int main(void)
{
    const struct CMUnitTest tests[] = {
        ON(folding_is_below_the_reference_s_bf16_noise, "dense"),
        ON(folding_is_below_the_reference_s_bf16_noise, "realheads"),
        ON(folded_bf16_stores_are_as_near_as_the_reference_s_own, "dense"),
        ON(folded_bf16_stores_are_as_near_as_the_reference_s_own, "realheads"),
        ON(reused_pages_change_no_bit, "dense"),
        ON(reused_pages_change_no_bit, "moe"),
        cmocka_unit_test(reused_pages_change_no_bit_of_the_demo_model),
        cmocka_unit_test(reused_pages_change_no_bit_at_real_sizes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
