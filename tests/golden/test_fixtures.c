/* The decoder against Hugging Face transformers on the tiny checkpoints of
 * data/fixtures: logits, hidden states, greedy answers, rounding noise; and the promise
 * that a row's bits do not depend on chunks, threads or other sequences.
 *
 * To repeat on other fixtures made by the same recipe, put them under X/data/fixtures:
 * CARAT_SHARED=X build/release/tests/golden/test_fixtures */
#include "support.h"

#include "base/checked.h"
#include "base/clock.h"
#include "base/pool.h"
#include "kv/kv.h"
#include "model/forward.h"
#include "model/model.h"
#include "ops/ref/ref.h"

#include <math.h>
#include <string.h>

#if defined(__SANITIZE_ADDRESS__)
#define SANITIZED 1
#else
#define SANITIZED 0
#endif

#define LOGIT_BOUND  2e-4 /* absolute */
#define HIDDEN_BOUND 1e-4 /* of the tensor's root mean square */
#define NOISE_BOUND  1.5  /* of the reference's own bf16 noise */
/* Longer cases cost seconds a run: checked with fewer variants. */
#define LONG_CASE 256

static ct_error err;

/* --- reference data ------------------------------------------------------------ */

typedef struct fixture {
    const char *name;
    ct_model *model;
    ct_checkpoint *ref;
} fixture;

typedef struct kase {
    char name[64];
    uint32_t T, n_greedy, n_kept;
    const uint32_t *ids, *greedy;   /* NULL without */
    const uint32_t *kept;           /* positions whose logits are recorded */
    const float *logits, *logits16; /* [n_kept, V]; logits16 may be NULL */
} kase;

static fixture fixture_open(const char *name)
{
    fixture f = {.name = name};
    char path[256];

    snprintf(path, sizeof path, "data/fixtures/%s/reference.safetensors", name);
    test_ok(ct_checkpoint_open_file(&f.ref, test_shared(path), &err), &err);
    snprintf(path, sizeof path, "data/fixtures/%s", name);
    test_ok(ct_model_open(&f.model, test_shared(path), &err), &err);
    return f;
}

static void fixture_close(fixture *f)
{
    ct_model_close(f->model);
    ct_checkpoint_close(f->ref);
}

/* Data of "<case>.<field>", NULL when there is none. */
static const void *field(const fixture *f, const char *kase_name, const char *what, uint64_t *n)
{
    char name[128];
    const ct_tensor *t;

    snprintf(name, sizeof name, "%s.%s", kase_name, what);
    t = ct_checkpoint_find(f->ref, ct_str_of(name));
    if (t && n)
        *n = t->n_dims ? t->dim[0] : 1;
    return t ? t->data : NULL;
}

/* The i-th tensor, if it is a case's ids. */
static bool kase_at(const fixture *f, size_t i, kase *k)
{
    ct_str name = ct_checkpoint_at(f->ref, i)->name;
    uint64_t n = 0;

    if (name.n < 5 || name.n >= sizeof k->name || memcmp(name.p + name.n - 4, ".ids", 4))
        return false;
    *k = (kase){0};
    memcpy(k->name, name.p, name.n - 4);
    k->ids = field(f, k->name, "ids", &n);
    k->T = (uint32_t)n;
    k->greedy = field(f, k->name, "greedy", &n);
    k->n_greedy = k->greedy ? (uint32_t)n : 0;
    k->kept = field(f, k->name, "positions", &n);
    k->n_kept = (uint32_t)n;
    k->logits = field(f, k->name, "logits_f32", NULL);
    k->logits16 = field(f, k->name, "logits_bf16", NULL);
    assert_non_null(k->kept);
    assert_non_null(k->logits);
    return true;
}

/* --- running ------------------------------------------------------------------- */

typedef struct rig_options {
    ct_ref_rounding rounding;
    unsigned threads;
    uint32_t n_seqs, tokens, chunk;
    bool all_hidden;
    bool uneven; /* chunks of 1 and 3 tokens in turn */
} rig_options;

/* A backend, its KV and the decoder over one model; and what the last run left. */
typedef struct rig {
    const ct_model *model;
    rig_options how;
    ct_pool *pool;
    ct_backend *b;
    ct_kv *kv;
    ct_forward *f;
    float *hidden; /* [all_hidden ? L+1 : 1, tokens, H]; without all, the final states */
    float *step;   /* [rows, H] */
    uint32_t *pos, *seq;
    uint32_t at, n; /* rows of the step under way */
} rig;

/* Starts sequence s anew. */
static void rig_admit(rig *r, uint32_t s)
{
    const ct_kv_claim claim = {.n_tokens = r->how.tokens, .no_cache = true};
    uint32_t n_cached;

    ct_kv_release(r->kv, s);
    assert_int_equal(ct_kv_admit(r->kv, s, &claim, &n_cached), CT_KV_ADMITTED);
}

static rig rig_open(const ct_model *m, rig_options how)
{
    rig r = {.model = m, .how = how};
    const uint32_t rows = how.chunk * how.n_seqs;
    const size_t n_hidden = how.all_hidden ? m->config.n_layers + 1 : 1;

    test_ok(ct_pool_create(&r.pool, how.threads, &err), &err);
    test_ok(ct_ref_create(&r.b, how.rounding, r.pool, &err), &err);
    test_ok(ct_kv_create(&r.kv, &m->config,
                         &(ct_kv_shape){.n_seqs = how.n_seqs,
                                        .seq_tokens = how.tokens,
                                        .step_tokens = how.chunk,
                                        .page_tokens = 16},
                         r.b, &err),
            &err);
    test_ok(ct_forward_create(
                &r.f, &m->config, &m->weights, r.b,
                &(ct_forward_limits){.rows = rows, .keys = how.tokens, .logits_rows = 1}, &err),
            &err);
    r.hidden = calloc(n_hidden * how.tokens * m->config.hidden, sizeof *r.hidden);
    r.step = calloc((size_t)rows * m->config.hidden, sizeof *r.step);
    r.pos = calloc(rows, sizeof *r.pos);
    r.seq = calloc(rows, sizeof *r.seq);
    return r;
}

static void rig_close(rig *r)
{
    ct_forward_destroy(r->f);
    ct_kv_destroy(r->kv);
    r->b->ops->destroy(r->b);
    ct_pool_destroy(r->pool);
    free(r->hidden);
    free(r->step);
    free(r->pos);
    free(r->seq);
}

static ct_status keep_hidden(void *ctx, uint32_t index, const void *x, ct_error *e)
{
    rig *r = ctx;
    const size_t H = r->model->config.hidden;
    float *out = r->hidden + r->at * H;

    if (r->how.all_hidden)
        out += index * r->how.tokens * H;
    else if (index < r->model->config.n_layers)
        return CT_OK;
    return r->b->ops->read(r->b, out, x, CT_ELEM_ACT, 0, r->n * H, e);
}

/* One step of n tokens of sequence 0. */
static void rig_step(rig *r, const uint32_t *ids, uint32_t n)
{
    r->at = ct_kv_length(r->kv, 0);
    r->n = n;
    test_ok(ct_kv_extend(r->kv, 0, ids, n, &err), &err);
    for (uint32_t i = 0; i < n; i++) {
        r->pos[i] = r->at + i;
        r->seq[i] = 0;
    }
    test_ok(ct_forward_step(r->f, &(ct_rows){n, ids, r->pos, r->seq}, ct_kv_layers(r->kv),
                            &(ct_hidden_sink){keep_hidden, r}, &err),
            &err);
}

/* The whole case in chunks; logits [n_kept, V] of the recorded positions. */
static void rig_run(rig *r, const kase *k, float *logits)
{
    const uint32_t vocab = r->model->config.vocab;

    rig_admit(r, 0);
    for (uint32_t at = 0, turn = 0; at < k->T; at += r->n, turn++) {
        uint32_t chunk = r->how.uneven ? 1 + turn % 2 * 2 : r->how.chunk;

        rig_step(r, k->ids + at, (uint32_t)ct_min_size(chunk, k->T - at));
        for (uint32_t i = 0; i < k->n_kept; i++) {
            uint32_t row = k->kept[i] - at;

            if (k->kept[i] >= at && row < r->n)
                test_ok(ct_forward_logits(r->f, &row, 1, logits + (size_t)i * vocab, &err), &err);
        }
    }
}

static float *new_logits(const fixture *f, const kase *k)
{
    return calloc((size_t)k->n_kept * f->model->config.vocab, sizeof(float));
}

/* --- comparing ----------------------------------------------------------------- */

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

/* Largest difference relative to the reference tensor's root mean square, and to its
 * largest element. */
static void check_hidden(const fixture *f, const rig *r, const kase *k, double *by_rms,
                         double *by_max)
{
    const ct_config *c = &r->model->config;
    const size_t n = (size_t)k->T * c->hidden;

    for (uint32_t l = 0; l <= c->n_layers; l++) {
        char name[32];
        const float *want;
        double square = 0, largest = 0;
        difference d;

        snprintf(name, sizeof name, "hidden_f32.%u", l);
        want = field(f, k->name, name, NULL);
        if (!want)
            return;
        d = differ(r->hidden + (size_t)l * r->how.tokens * c->hidden, want, n);
        for (size_t i = 0; i < n; i++) {
            square += (double)want[i] * want[i] / (double)n;
            largest = fmax(largest, fabs((double)want[i]));
        }
        if (!(d.max <= HIDDEN_BOUND * sqrt(square)))
            fail_msg("%s %s: hidden.%u is off by %g, root mean square %g", f->name, k->name, l,
                     d.max, sqrt(square));
        *by_rms = fmax(*by_rms, d.max / sqrt(square));
        *by_max = fmax(*by_max, d.max / largest);
    }
}

static uint32_t argmax(const float *x, uint32_t n)
{
    uint32_t best = 0;

    for (uint32_t i = 1; i < n; i++)
        if (x[i] > x[best])
            best = i;
    return best;
}

/* Continues the run token by token. */
static void check_greedy(const fixture *f, rig *r, const kase *k)
{
    const uint32_t vocab = f->model->config.vocab;
    float *logits = calloc(vocab, sizeof *logits);

    for (uint32_t i = 0; i < k->n_greedy; i++) {
        uint32_t row = r->n - 1, got;

        test_ok(ct_forward_logits(r->f, &row, 1, logits, &err), &err);
        got = argmax(logits, vocab);
        if (got != k->greedy[i])
            fail_msg("%s %s: greedy token %u is %u, want %u", f->name, k->name, i, got,
                     k->greedy[i]);
        rig_step(r, &got, 1);
    }
    free(logits);
}

/* Fails unless the case gives these logits and final states when run in another way. */
static void check_bits(const fixture *f, const kase *k, const float *logits, const float *hidden,
                       rig_options how)
{
    float *again = new_logits(f, k);
    rig r;

    how.n_seqs = 1;
    how.tokens = k->T;
    r = rig_open(f->model, how);
    rig_run(&r, k, again);
    if (memcmp(again, logits, (size_t)k->n_kept * f->model->config.vocab * sizeof *logits) ||
        memcmp(r.hidden, hidden, (size_t)k->T * f->model->config.hidden * sizeof *hidden))
        fail_msg("%s %s: other bits in %schunks of %u with %u threads than in chunks of 64",
                 f->name, k->name, how.uneven ? "uneven " : "", how.chunk, how.threads);
    rig_close(&r);
    free(again);
}

/* The whole, chunks of 1 and of 3, one thread and two.  Long cases take seconds a run: by
 * default only one that has just crossed the window's edge is run in other ways.
 * CARAT_LONG=1 runs all. */
static void check_ways(const fixture *f, const kase *k, const float *logits, const float *hidden)
{
    const uint32_t window = f->model->config.window;

    if (k->T > LONG_CASE && !getenv("CARAT_LONG")) {
        if (k->T != window + 1)
            return;
        check_bits(f, k, logits, hidden, (rig_options){.threads = 1, .chunk = 3, .uneven = true});
        check_bits(f, k, logits, hidden, (rig_options){.threads = 2, .chunk = k->T});
        return;
    }
    check_bits(f, k, logits, hidden, (rig_options){.threads = 2, .chunk = k->T});
    check_bits(f, k, logits, hidden, (rig_options){.threads = 2, .chunk = 1});
    check_bits(f, k, logits, hidden, (rig_options){.threads = 1, .chunk = 3});
}

/* --- tests --------------------------------------------------------------------- */

static void f32_mode_agrees_with_the_reference_in_every_way_of_running(void **state)
{
    fixture f = fixture_open(*state);
    double worst = 0, by_rms = 0, by_max = 0;
    kase k;

    for (size_t i = 0; i < ct_checkpoint_count(f.ref); i++) {
        difference d;
        float *logits;
        rig r;

        if (!kase_at(&f, i, &k))
            continue;
        if (SANITIZED && k.T > LONG_CASE) {
            print_message("%s %s: left to the release build, %u tokens\n", f.name, k.name, k.T);
            continue;
        }
        logits = new_logits(&f, &k);
        r = rig_open(f.model, (rig_options){.rounding = CT_REF_F32,
                                            .n_seqs = 1,
                                            .tokens = k.T + k.n_greedy,
                                            .chunk = 64,
                                            .all_hidden = true});
        rig_run(&r, &k, logits);
        d = differ(logits, k.logits, (size_t)k.n_kept * f.model->config.vocab);
        if (!(d.max <= LOGIT_BOUND))
            fail_msg("%s %s: logits are off by %g, at most %g is allowed", f.name, k.name, d.max,
                     LOGIT_BOUND);
        worst = fmax(worst, d.max);
        check_hidden(&f, &r, &k, &by_rms, &by_max);
        check_ways(&f, &k, logits,
                   r.hidden +
                       (size_t)f.model->config.n_layers * r.how.tokens * f.model->config.hidden);
        check_greedy(&f, &r, &k);
        assert_true(ct_kv_consistent(r.kv));
        rig_close(&r);
        free(logits);
    }
    print_message("%s: logits within %.2g; hidden states within %.2g of their root mean square, "
                  "%.2g of their largest\n",
                  f.name, worst, by_rms, by_max);
    fixture_close(&f);
}

static void bf16_mode_is_as_near_as_the_reference_s_own(void **state)
{
    fixture f = fixture_open(*state);
    kase k;

    for (size_t i = 0; i < ct_checkpoint_count(f.ref); i++) {
        difference ours, theirs;
        float *logits;
        size_t n;
        rig r;

        if (!kase_at(&f, i, &k) || !k.logits16 || (SANITIZED && k.T > LONG_CASE))
            continue;
        logits = new_logits(&f, &k);
        r = rig_open(
            f.model,
            (rig_options){.rounding = CT_REF_BF16, .n_seqs = 1, .tokens = k.T, .chunk = 64});
        rig_run(&r, &k, logits);
        n = (size_t)k.n_kept * f.model->config.vocab;
        ours = differ(logits, k.logits, n);
        theirs = differ(k.logits16, k.logits, n);
        print_message("%s %s: bf16 noise max %.3g (reference %.3g), mean %.3g (%.3g)\n", f.name,
                      k.name, ours.max, theirs.max, ours.mean, theirs.mean);
        if (!(ours.max <= NOISE_BOUND * theirs.max && ours.mean <= NOISE_BOUND * theirs.mean))
            fail_msg("%s %s: more than %g times the reference's bf16 noise", f.name, k.name,
                     NOISE_BOUND);
        rig_close(&r);
        free(logits);
    }
    fixture_close(&f);
}

/* Two cases share every step, in pieces of different sizes, the rows of one before or
 * after the other's. */
static void run_together(rig *r, const kase *k, float *const hidden[2], uint32_t sizes[2])
{
    const size_t H = r->model->config.hidden;
    uint32_t ids[64], n[2];

    rig_admit(r, 0);
    rig_admit(r, 1);
    for (unsigned turn = 0;; turn++) {
        uint32_t at = 0, first[2];

        for (unsigned j = 0; j < 2; j++) {
            unsigned s = (j + turn) % 2;
            uint32_t length = ct_kv_length(r->kv, s);

            n[s] = (uint32_t)ct_min_size(sizes[s], k[s].T - length);
            first[s] = at;
            test_ok(ct_kv_extend(r->kv, s, k[s].ids + length, n[s], &err), &err);
            for (uint32_t i = 0; i < n[s]; i++, at++) {
                ids[at] = k[s].ids[length + i];
                r->pos[at] = length + i;
                r->seq[at] = s;
            }
        }
        if (at == 0)
            return;
        r->at = 0;
        r->n = at;
        test_ok(ct_forward_step(r->f, &(ct_rows){at, ids, r->pos, r->seq}, ct_kv_layers(r->kv),
                                &(ct_hidden_sink){keep_hidden, r}, &err),
                &err);
        for (unsigned s = 0; s < 2; s++)
            memcpy(hidden[s] + (ct_kv_length(r->kv, s) - n[s]) * H, r->hidden + first[s] * H,
                   n[s] * H * sizeof(float));
    }
}

static void sequences_in_one_batch_do_not_touch(void **state)
{
    fixture f = fixture_open(*state);
    const size_t H = f.model->config.hidden;
    float *together[2], *logits;
    kase k[2] = {0}, any;
    rig r;

    for (size_t i = 0; i < ct_checkpoint_count(f.ref); i++)
        if (kase_at(&f, i, &any) && any.T < LONG_CASE) {
            /* The longest, and any other. */
            if (any.T >= k[0].T) {
                k[1] = k[0];
                k[0] = any;
            } else if (any.T >= k[1].T) {
                k[1] = any;
            }
        }
    if (k[1].T == 0)
        k[1] = k[0]; /* a single case: beside itself, out of step */
    r = rig_open(
        f.model,
        (rig_options){.rounding = CT_REF_F32, .n_seqs = 2, .tokens = k[0].T + 16, .chunk = 8});
    for (unsigned s = 0; s < 2; s++)
        together[s] = calloc(k[s].T * H, sizeof(float));
    run_together(&r, k, together, (uint32_t[]){7, 2});
    rig_close(&r);
    for (unsigned s = 0; s < 2; s++) {
        r = rig_open(
            f.model,
            (rig_options){.rounding = CT_REF_F32, .n_seqs = 1, .tokens = k[s].T, .chunk = 64});
        logits = new_logits(&f, &k[s]);
        rig_run(&r, &k[s], logits);
        if (memcmp(r.hidden, together[s], k[s].T * H * sizeof(float)))
            fail_msg("%s: %s gives other bits beside %s", f.name, k[s].name, k[!s].name);
        rig_close(&r);
        free(logits);
        free(together[s]);
    }
    fixture_close(&f);
}

#define ON(test, fixture_name)                                                                     \
    {                                                                                              \
#test " (" fixture_name ")", test, NULL, NULL, (void *)(uintptr_t)(fixture_name)           \
    }
#define ON_EVERY(test)                                                                             \
    ON(test, "dense"), ON(test, "unified"), ON(test, "moe"), ON(test, "moe128"),                   \
        ON(test, "moe-nvfp4"), ON(test, "moe128-nvfp4"), ON(test, "realheads")

int main(void)
{
    const struct CMUnitTest tests[] = {
        ON_EVERY(f32_mode_agrees_with_the_reference_in_every_way_of_running),
        ON(bf16_mode_is_as_near_as_the_reference_s_own, "dense"),
        ON(bf16_mode_is_as_near_as_the_reference_s_own, "unified"),
        ON(bf16_mode_is_as_near_as_the_reference_s_own, "realheads"),
        ON_EVERY(sequences_in_one_batch_do_not_touch),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
