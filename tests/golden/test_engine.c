/* The engine over the reference checkpoints and the demo model: its rows are those of the
 * reference, and do not depend on company, chunks, threads, prefix hits or cancellations. */
#include "exactness.h"

#include "base/checked.h"
#include "format/safetensors.h"

#include <math.h>

#define LOGIT_BOUND 2e-4 /* absolute, as in test_fixtures.c */

/* Under sanitizers shorter prompts, one dense model and one of quantised experts. */
#ifdef CT_TEST_SLOW
#define SLOW    1
#define N_EXACT 33
#define EVERY   3
#else
#define SLOW    0
#define N_EXACT 80 /* tokens of the prompts that are served in every company */
#define EVERY   1
#endif

static const char *const backends[] = {"ref", "cpu"};

static const char *const fixtures[] = {"dense",  "unified",      "moe",      "moe-nvfp4",
                                       "moe128", "moe128-nvfp4", "realheads"};

static ct_error err;

typedef struct fixture {
    ct_model *model;
    ct_checkpoint *ref;
} fixture;

static fixture fixture_open(const char *name)
{
    fixture f = {0};
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

/* --- against the reference ---------------------------------------------------------- */

typedef struct kase {
    char name[64];
    const uint32_t *ids, *kept, *greedy; /* kept: positions whose logits are recorded */
    uint32_t T, n_kept, n_greedy;
    const float *logits; /* [n_kept, V] */
    size_t vocab;
    uint32_t n_seen;
    double worst;
} kase;

static const void *field(const fixture *f, const char *name, const char *what, uint32_t *n)
{
    char full[128];
    const ct_tensor *t;

    snprintf(full, sizeof full, "%s.%s", name, what);
    t = ct_checkpoint_find(f->ref, ct_str_of(full));
    *n = t ? (uint32_t)t->dim[0] : 0;
    return t ? t->data : NULL;
}

/* The i-th tensor, if it is a case's ids. */
static bool kase_at(const fixture *f, size_t i, kase *k)
{
    ct_str name = ct_checkpoint_at(f->ref, i)->name;
    uint32_t n;

    if (name.n < 5 || name.n >= sizeof k->name || memcmp(name.p + name.n - 4, ".ids", 4))
        return false;
    *k = (kase){.vocab = f->model->config.vocab};
    memcpy(k->name, name.p, name.n - 4);
    k->ids = field(f, k->name, "ids", &k->T);
    k->greedy = field(f, k->name, "greedy", &k->n_greedy);
    k->kept = field(f, k->name, "positions", &k->n_kept);
    k->logits = field(f, k->name, "logits_f32", &n);
    assert_non_null(k->kept);
    assert_non_null(k->logits);
    return true;
}

static ct_status compare_row(void *ctx, uint64_t tag, uint32_t choice, uint32_t position,
                             float *logits, ct_error *e)
{
    kase *k = ctx;

    (void)tag;
    (void)choice;
    (void)e;
    for (uint32_t i = 0; i < k->n_kept; i++) {
        if (k->kept[i] != position)
            continue;
        k->n_seen++;
        for (size_t v = 0; v < k->vocab; v++) {
            double d = fabs((double)logits[v] - k->logits[i * k->vocab + v]);

            k->worst = d <= k->worst ? k->worst : d; /* a NaN is not agreement */
        }
    }
    return CT_OK;
}

/* One case through the engine: every row of the prompt, then the greedy answer. */
static void check_case(const fixture *f, const char *backend, kase *k)
{
    const ct_engine_options how = {.backend = backend,
                                   .ctx = k->T + k->n_greedy + 1,
                                   .slots = 1,
                                   .on_logits = compare_row,
                                   .on_logits_ctx = k};
    ct_request q = {.prompt = k->ids,
                    .n_prompt = k->T,
                    .max_new = k->n_greedy ? k->n_greedy : 1,
                    .prompt_logprobs = true,
                    .sampling = ct_sampling_neutral()};
    static ct_reply reply;
    ct_request_id id;
    uint32_t n = 0;
    ct_engine *e;

    test_ok(ct_engine_create(&e, f->model, &how, &err), &err);
    assert_int_equal(ct_engine_submit(e, &q, &id, &err), CT_SUBMIT_TAKEN);
    while (ct_engine_step(e))
        ;
    while (ct_engine_poll(e, &reply, 1))
        if (reply.kind == CT_REPLY_TOKEN && n < k->n_greedy)
            assert_int_equal(reply.u.token.id, k->greedy[n++]);
    ct_engine_destroy(e);
    assert_int_equal(k->n_seen, k->n_kept);
    assert_int_equal(n, k->n_greedy);
    if (!(k->worst <= LOGIT_BOUND))
        fail_msg("%s: logits differ by %g", k->name, k->worst);
}

static void rows_of_the_engine_are_those_of_the_reference(void **state)
{
    (void)state;
    for (size_t i = 0; i < CT_LEN(fixtures) * CT_LEN(backends); i++) {
        fixture f = fixture_open(fixtures[i / CT_LEN(backends)]);
        double worst = 0;
        uint32_t n = 0;
        kase k;

        for (size_t t = 0; t < ct_checkpoint_count(f.ref); t++) {
            if (!kase_at(&f, t, &k) || (SLOW && k.T > 64))
                continue;
            check_case(&f, backends[i % CT_LEN(backends)], &k);
            worst = fmax(worst, k.worst);
            n++;
        }
        print_message("%s on %s: %u cases, logits within %.2g\n", fixtures[i / CT_LEN(backends)],
                      backends[i % CT_LEN(backends)], n, worst);
        assert_true(n > 0 || SLOW);
        fixture_close(&f);
    }
}

/* --- in company --------------------------------------------------------------------- */

/* The longest prompt, cut to size. */
static exact_case exact_of(const fixture *f, const char *backend, uint32_t most)
{
    exact_case best = {
        .model = f->model, .backend = backend, .max_new = 6, .page_tokens = 4, .thorough = !SLOW};
    kase k;

    for (size_t t = 0; t < ct_checkpoint_count(f->ref); t++)
        if (kase_at(f, t, &k) && k.T > best.n_ids) {
            best.ids = k.ids;
            best.n_ids = k.T;
        }
    best.n_ids = (uint32_t)ct_min_size(best.n_ids, most);
    assert_true(best.n_ids > 16);
    return best;
}

static void the_fixtures_answer_alike_in_all_company(void **state)
{
    (void)state;
    for (size_t i = 0; i + EVERY <= CT_LEN(fixtures); i += EVERY)
        for (size_t b = 0; b < CT_LEN(backends); b++) {
            fixture f = fixture_open(fixtures[i]);
            exact_case k = exact_of(&f, backends[b], N_EXACT);

            exact_check(&k, fixtures[i]);
            fixture_close(&f);
        }
}

static void skip_when_slow(void)
{
    if (SLOW) {
        print_message("skipped: too long under sanitizers\n");
        skip();
    }
}

/* A head of 256 and its window of 1,024 as in the real models. */
static void a_hit_of_a_real_window_changes_nothing(void **state)
{
    (void)state;
    skip_when_slow();
    for (size_t b = 0; b < CT_LEN(backends); b++) {
        fixture f = fixture_open("realheads");
        exact_case k = exact_of(&f, backends[b], 1060);

        exact_check_window(&k, "realheads");
        fixture_close(&f);
    }
}

static void the_demo_answers_alike_in_all_company(void **state)
{
    static uint32_t ids[150]; /* more than its window of 128 */

    (void)state;
    skip_when_slow();
    for (size_t b = 0; b < CT_LEN(backends); b++) {
        exact_case k = {.backend = backends[b],
                        .ids = ids,
                        .n_ids = N_EXACT,
                        .max_new = 8,
                        .page_tokens = 16,
                        .thorough = !SLOW};
        ct_model *model;

        test_ok(ct_model_open(&model, "models/demo", &err), &err);
        for (uint32_t i = 0; i < CT_LEN(ids); i++)
            ids[i] = (i * 7919 + 523) % model->config.vocab;
        k.model = model;
        exact_check(&k, "demo");
        k.n_ids = CT_LEN(ids);
        exact_check_window(&k, "demo");
        ct_model_close(model);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_of_the_engine_are_those_of_the_reference),
        cmocka_unit_test(the_fixtures_answer_alike_in_all_company),
        cmocka_unit_test(a_hit_of_a_real_window_changes_nothing),
        cmocka_unit_test(the_demo_answers_alike_in_all_company),
    };

    return cmocka_run_group_tests_name("engine, golden", tests, NULL, NULL);
}
