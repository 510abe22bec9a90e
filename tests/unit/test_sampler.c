/* engine/sampler: every transform against the oracle, ties, extremes, and randomness by
 * seed and position alone. */
#include "support.h"

#include "alloc_count.h"
#include "sampling_oracle.h"

#include "base/checked.h"

#define MAX_V     5000
#define MAX_IDS   200
#define MAX_LISTS 8

static uint64_t rng_state;

static uint32_t rnd(uint32_t n)
{
    rng_state = rng_state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)((rng_state >> 32) * n >> 32);
}

static double rnd01(void)
{
    return rnd(1u << 24) * 0x1p-24;
}

/* --- one random case ------------------------------------------------------------- */

/* Everything that a case borrows. */
typedef struct random_case {
    float logits[MAX_V];
    uint32_t ids[MAX_IDS], breakers[CT_MASK_WORDS(MAX_V)], allowed[CT_MASK_WORDS(MAX_V)];
    uint32_t lists[3][MAX_LISTS];
    ct_logit_bias bias[MAX_LISTS];
    ct_sampling how;
    oracle_case c;
} random_case;

static float random_logit(unsigned kind, uint32_t i)
{
    static const float odd[] = {NAN, -INFINITY, INFINITY, FLT_MAX, -FLT_MAX, 0.0f, -0.0f, 1e-40f};
    float spread = (float)(rnd01() + rnd01() + rnd01() - 1.5);

    switch (kind) {
    case 0:
        return 12 * spread;
    case 1: /* many ties */
        return (float)rnd(6) - 3;
    case 2: /* all equal */
        return 1.5f;
    case 3: /* every id gets into the heap */
        return (float)i * 0.01f;
    case 4:
        return (float)i * -0.01f;
    case 5:
        return rnd(4) ? 5 * spread : odd[rnd(CT_LEN(odd))];
    default:
        return 0.2f * spread; /* nearly flat: the choice reaches far down */
    }
}

static size_t random_list(uint32_t *ids, uint32_t vocab)
{
    size_t n = rnd(2) ? 0 : rnd(MAX_LISTS);

    for (size_t i = 0; i < n; i++)
        ids[i] = rnd(vocab);
    return n;
}

static void random_mask(uint32_t *mask, uint32_t vocab)
{
    unsigned kind = rnd(3);

    memset(mask, 0, CT_MASK_WORDS(MAX_V) * sizeof *mask);
    for (uint32_t id = 0; id < vocab; id++)
        if (kind == 0 || (kind == 1 ? rnd(2) : rnd(20) == 0))
            ct_mask_add(mask, id);
}

static void random_filters(ct_sampling *how, uint32_t vocab)
{
    static const double temperatures[] = {0, 1e-300, 0.01, 0.5, 1, 1, 1.7, 100};

    how->temperature = temperatures[rnd(CT_LEN(temperatures))];
    how->top_k = rnd(2) ? 0 : rnd(vocab + 5);
    how->top_p = rnd(2) ? 1 : rnd(10) ? rnd01() : 0;
    how->min_p = rnd(2) ? 0 : rnd(10) ? rnd01() * rnd01() : 1;
    how->typical_p = rnd(2) ? 1 : 0.01 + 0.98 * rnd01();
}

static void random_penalties(random_case *r, uint32_t vocab)
{
    ct_sampling *how = &r->how;

    how->repetition_penalty = rnd(2) ? 1 : 0.3 + 2 * rnd01();
    how->presence_penalty = rnd(2) ? 0 : 4 * rnd01() - 2;
    how->frequency_penalty = rnd(2) ? 0 : 4 * rnd01() - 2;
    how->dry_multiplier = rnd(2) ? 0 : rnd01() * 2;
    how->dry_base = 1 + rnd01();
    how->dry_allowed_length = 1 + rnd(4);
    how->dry_last_n = rnd(2) ? 0 : 1 + rnd(MAX_IDS);
    if (rnd(2)) {
        memset(r->breakers, 0, sizeof r->breakers);
        ct_mask_add(r->breakers, rnd(vocab));
        how->dry_breakers = r->breakers;
    }
}

static void random_lists(random_case *r, uint32_t vocab)
{
    ct_sampling *how = &r->how;

    how->suppress_ids = r->lists[0];
    how->n_suppress_ids = random_list(r->lists[0], vocab);
    how->eos_ids = r->lists[1];
    how->n_eos_ids = random_list(r->lists[1], vocab);
    how->stop_ids = r->lists[2];
    how->n_stop_ids = random_list(r->lists[2], vocab);
    how->ignore_eos = rnd(2);
    how->min_tokens = rnd(2) ? 0 : rnd(MAX_IDS);
    how->logit_bias = r->bias;
    how->n_logit_bias = rnd(2) ? 0 : rnd(MAX_LISTS);
    for (size_t i = 0; i < how->n_logit_bias; i++)
        r->bias[i] = (ct_logit_bias){rnd(vocab), (float)(200 * rnd01() - 100)};
}

static void random_setup(random_case *r, uint32_t vocab)
{
    unsigned kind = rnd(7), n_distinct = 1 + rnd(vocab < 6 ? vocab : 6);
    size_t n = rnd(MAX_IDS + 1);

    for (uint32_t i = 0; i < vocab; i++)
        r->logits[i] = random_logit(kind, i);
    for (size_t i = 0; i < n; i++)
        r->ids[i] = rnd(10) ? rnd(n_distinct) : rnd(vocab);
    r->how = ct_sampling_neutral();
    r->how.seed = rng_state;
    random_filters(&r->how, vocab);
    random_penalties(r, vocab);
    random_lists(r, vocab);
    random_mask(r->allowed, vocab);
    r->c = (oracle_case){.logits = r->logits,
                         .vocab = vocab,
                         .how = &r->how,
                         .ids = r->ids,
                         .n_prompt = rnd((uint32_t)n + 1),
                         .allowed = rnd(2) ? r->allowed : NULL};
    r->c.n_answer = n - r->c.n_prompt;
}

static ct_sample_state *make_state(const oracle_case *c)
{
    ct_sample_state *st;
    ct_error err;

    test_ok(ct_sample_state_create(&st, c->how, c->vocab, MAX_IDS, &err), &err);
    ct_sample_state_prompt(st, c->ids, c->n_prompt);
    for (size_t i = 0; i < c->n_answer; i++)
        ct_sample_state_accept(st, c->ids[c->n_prompt + i]);
    return st;
}

/* --- comparison ------------------------------------------------------------------ */

/* Id at share u of the distribution; *clear is false when rounding may decide. */
static uint32_t oracle_pick(const oracle_id *o, size_t n, double u, bool *clear)
{
    double at = 0;

    *clear = true;
    for (size_t i = 0; i < n; i++) {
        at += o[i].p;
        if (fabs(at - u) < 1e-5 && i + 1 < n)
            *clear = false;
        if (u < at)
            return o[i].id;
    }
    return o[n - 1].id;
}

static void compare(ct_sampler *s, const random_case *r, oracle_id *o, uint64_t repeat)
{
    const oracle_case *c = &r->c;
    size_t n = oracle_distribution(c, o);
    double u = ct_sampler_uniform(r->how.seed, c->n_prompt + c->n_answer);
    ct_sample_state *st = make_state(c);
    ct_sample got;
    ct_error err;
    ct_status status = ct_sampler_pick(s, c->logits, st, c->allowed, &got, &err);
    uint32_t want;
    bool clear;

    ct_sample_state_destroy(st);
    if (n == 0) {
        assert_int_equal(status, CT_EINVAL);
        return;
    }
    test_ok(status, &err);
    want = oracle_pick(o, n, u, &clear);
    if (clear && got.id != want)
        fail_msg("vocabulary %u, state %llu: id %u, want %u", c->vocab, (unsigned long long)repeat,
                 got.id, want);
    assert_int_equal(
        got.stop, oracle_in(r->how.stop_ids, r->how.n_stop_ids, got.id) ||
                      (!r->how.ignore_eos && oracle_in(r->how.eos_ids, r->how.n_eos_ids, got.id)));
}

static void check_cases(uint32_t vocab, int n_cases, uint64_t seed)
{
    static random_case r;
    static oracle_id o[MAX_V];
    ct_sampler *s;
    ct_error err;

    test_ok(ct_sampler_create(&s, vocab, &err), &err);
    rng_state = seed;
    for (int i = 0; i < n_cases; i++) {
        uint64_t repeat = rng_state;

        random_setup(&r, vocab);
        compare(s, &r, o, repeat);
    }
    ct_sampler_destroy(s);
}

static void random_cases_equal_the_oracle(void **state)
{
    static const uint32_t small[] = {1, 2, 3, 7, 16, 31, 32, 33, 64, 65, 257};

    (void)state;
    for (size_t i = 0; i < CT_LEN(small); i++)
        check_cases(small[i], 1500, 17 + i);
}

/* Around and beyond the ids that are ranked at first. */
static void large_vocabularies_equal_the_oracle(void **state)
{
    static const uint32_t large[] = {1023, 1024, 1025, 1040, 3001, MAX_V};

    (void)state;
    for (size_t i = 0; i < CT_LEN(large); i++)
        check_cases(large[i], 120, 99 + i);
}

/* --- distribution ---------------------------------------------------------------- */

#define V 8

static ct_sampler *make_sampler(uint32_t vocab)
{
    ct_sampler *s = NULL;
    ct_error err;

    test_ok(ct_sampler_create(&s, vocab, &err), &err);
    return s;
}

static ct_sample_state *state_of(const ct_sampling *how, uint32_t vocab)
{
    ct_sample_state *st = NULL;
    ct_error err;

    test_ok(ct_sample_state_create(&st, how, vocab, 64, &err), &err);
    return st;
}

/* One pick at the state's position. */
static ct_sample pick(const float *logits, const ct_sampling *how, uint32_t vocab,
                      const uint32_t *allowed)
{
    ct_sampler *s = make_sampler(vocab);
    ct_sample_state *st = state_of(how, vocab);
    ct_sample out = {0};
    ct_error err;

    test_ok(ct_sampler_pick(s, logits, st, allowed, &out, &err), &err);
    ct_sampler_destroy(s);
    ct_sample_state_destroy(st);
    return out;
}

/* Pearson's statistic has the mean df and the variance 2 df; five deviations above it, and
 * nothing that has no probability. */
static void check_shares(const oracle_case *c)
{
    enum { N = 20000 };
    double expected[V] = {0}, chi2 = 0;
    int count[V] = {0}, df = -1;
    oracle_id o[V];
    size_t n = oracle_distribution(c, o);
    ct_sampler *s = make_sampler(V);
    ct_sampling how = *c->how;
    oracle_case one = *c;
    ct_sample got;
    ct_error err;

    one.how = &how;
    for (int i = 0; i < N; i++) {
        ct_sample_state *st;

        how.seed = c->how->seed + (uint64_t)i;
        st = make_state(&one);
        test_ok(ct_sampler_pick(s, c->logits, st, c->allowed, &got, &err), &err);
        ct_sample_state_destroy(st);
        count[got.id]++;
    }
    ct_sampler_destroy(s);
    for (size_t i = 0; i < n; i++)
        expected[o[i].id] = N * o[i].p;
    for (int i = 0; i < V; i++) {
        if (expected[i] == 0)
            assert_int_equal(count[i], 0);
        else
            chi2 += pow(count[i] - expected[i], 2) / expected[i];
        df += expected[i] > 0;
    }
    if (chi2 > df + 5 * sqrt(2.0 * df) + 1e-9)
        fail_msg("chi-square %.1f with %d degrees of freedom (seed %llu)", chi2, df,
                 (unsigned long long)c->how->seed);
}

static void shares_follow_the_probabilities(void **state)
{
    const float logits[V] = {0, 1, 2, 3, 4, -1, 2.5f, NAN};
    const uint32_t ids[] = {4, 4, 3, 1, 4, 3};
    ct_sampling how = ct_sampling_neutral();
    oracle_case c = {
        .logits = logits, .vocab = V, .how = &how, .ids = ids, .n_prompt = 2, .n_answer = 4};

    (void)state;
    how.temperature = 1.5;
    how.seed = 3;
    check_shares(&c);
    how.repetition_penalty = 1.3;
    how.frequency_penalty = 0.4;
    how.presence_penalty = 0.3;
    check_shares(&c);
    how.top_k = 6;
    how.top_p = 0.9;
    how.min_p = 0.1;
    check_shares(&c);
    how.dry_multiplier = 0.8;
    how.dry_allowed_length = 1;
    how.typical_p = 0.8;
    check_shares(&c);
}

static void top_p_cuts_after_temperature_and_top_k(void **state)
{
    /* Probabilities 0.4, 0.3, 0.2, 0.1 of the four best; the rest is cut by top_k. */
    const float logits[V] = {logf(0.4f), logf(0.3f), logf(0.2f), logf(0.1f),
                             logf(0.1f), -9,         -9,         -9};
    ct_sampling how = ct_sampling_neutral();
    bool seen[V] = {false};

    (void)state;
    how.temperature = 1;
    how.top_k = 4;
    how.top_p = 0.71;
    for (how.seed = 0; how.seed < 200; how.seed++)
        seen[pick(logits, &how, V, NULL).id] = true;
    assert_true(seen[0] && seen[1] && seen[2] && !seen[3] && !seen[4]);
}

static void top_p_is_met_by_equality(void **state)
{
    const float logits[4] = {1, 1, 1, 1};
    ct_sampling how = ct_sampling_neutral();
    bool seen[4] = {false};

    (void)state;
    how.temperature = 1;
    how.top_p = 0.5;
    for (how.seed = 0; how.seed < 100; how.seed++)
        seen[pick(logits, &how, 4, NULL).id] = true;
    assert_true(seen[0] && seen[1] && !seen[2] && !seen[3]);
}

/* --- greedy and extremes --------------------------------------------------------- */

static void greedy_takes_the_lowest_id_of_equals(void **state)
{
    const float logits[V] = {1, 3, 3, 2, NAN, -INFINITY, 3, 0};
    const float zeros[2] = {-0.0f, 0.0f};
    const uint32_t hidden[] = {1, 2};
    ct_sampling how = ct_sampling_neutral();

    (void)state;
    assert_int_equal(pick(logits, &how, V, NULL).id, 1);
    assert_int_equal(pick(zeros, &how, 2, NULL).id, 0);
    how.suppress_ids = hidden;
    how.n_suppress_ids = 2;
    assert_int_equal(pick(logits, &how, V, NULL).id, 6);
}

static void one_candidate_is_greedy_at_any_temperature(void **state)
{
    const float logits[V] = {1, 3, 3, 2, NAN, -INFINITY, 3, 0};

    (void)state;
    for (uint64_t seed = 0; seed < 50; seed++) {
        ct_sampling how = ct_sampling_neutral();

        how.temperature = 5;
        how.seed = seed;
        how.top_k = 1;
        assert_int_equal(pick(logits, &how, V, NULL).id, 1);
        how.top_k = 0;
        how.top_p = 1e-9;
        assert_int_equal(pick(logits, &how, V, NULL).id, 1);
        how.top_p = 0;
        assert_int_equal(pick(logits, &how, V, NULL).id, 1);
    }
}

static void infinite_logits_win_and_tie(void **state)
{
    const float logits[V] = {1, INFINITY, 3, FLT_MAX, INFINITY, 0, 0, 0};
    ct_sampling how = ct_sampling_neutral();
    bool seen[V] = {false};

    (void)state;
    assert_int_equal(pick(logits, &how, V, NULL).id, 1);
    how.temperature = 1;
    for (how.seed = 0; how.seed < 100; how.seed++)
        seen[pick(logits, &how, V, NULL).id] = true;
    assert_true(!seen[0] && seen[1] && !seen[2] && seen[3] && seen[4]);
}

static void no_penalty_takes_the_last_id_away(void **state)
{
    const float logits[2] = {-1e38f, NAN};
    const uint32_t ids[] = {0, 0, 0, 0, 0, 0, 0, 0};
    ct_sampling how = ct_sampling_neutral();
    ct_sampler *s = make_sampler(2);
    ct_sample_state *st;
    ct_sample out;
    ct_error err;

    (void)state;
    how.repetition_penalty = 100;
    how.dry_multiplier = 100;
    how.dry_base = 100;
    how.dry_allowed_length = 1;
    st = state_of(&how, 2);
    ct_sample_state_prompt(st, ids, CT_LEN(ids));
    test_ok(ct_sampler_pick(s, logits, st, NULL, &out, &err), &err);
    assert_int_equal(out.id, 0);
    ct_sample_state_destroy(st);
    ct_sampler_destroy(s);
}

static void nothing_to_pick_is_an_error_with_the_figures(void **state)
{
    const float logits[3] = {0, 1, 2}, none[3] = {NAN, -INFINITY, NAN};
    const uint32_t stop = 2, mask = 4, nothing = 0;
    ct_sampling how = ct_sampling_neutral();
    ct_sampler *s = make_sampler(3);
    ct_sample_state *st;
    ct_sample out;
    ct_error err;

    (void)state;
    how.stop_ids = &stop;
    how.n_stop_ids = 1;
    how.min_tokens = 5;
    st = state_of(&how, 3);
    assert_int_equal(ct_sampler_pick(s, logits, st, &mask, &out, &err), CT_EINVAL);
    assert_string_equal(err.text,
                        "token 0: no id can be picked: of 3, 3 have a logit, the grammar allows "
                        "1, 0 are suppressed, and min_tokens 5 hides the stop ids");
    assert_int_equal(ct_sampler_pick(s, logits, st, &nothing, &out, &err), CT_EINVAL);
    assert_int_equal(ct_sampler_pick(s, none, st, NULL, &out, &err), CT_EINVAL);
    test_ok(ct_sampler_pick(s, logits, st, NULL, &out, &err), &err);
    assert_int_equal(out.id, 1);
    ct_sample_state_destroy(st);
    ct_sampler_destroy(s);
}

/* --- stop ids -------------------------------------------------------------------- */

static void min_tokens_and_ignore_eos(void **state)
{
    const float logits[4] = {3, 2, 1, 0};
    const uint32_t eos = 0, stop = 1;
    ct_sampling how = ct_sampling_neutral();
    ct_sampler *s = make_sampler(4);
    ct_sample_state *st;
    ct_sample out;
    ct_error err;

    (void)state;
    how.eos_ids = &eos;
    how.stop_ids = &stop;
    how.n_eos_ids = how.n_stop_ids = 1;
    how.min_tokens = 2;
    st = state_of(&how, 4);
    for (int i = 0; i < 2; i++) {
        test_ok(ct_sampler_pick(s, logits, st, NULL, &out, &err), &err);
        assert_int_equal(out.id, 2);
        assert_false(out.stop);
        ct_sample_state_accept(st, out.id);
    }
    test_ok(ct_sampler_pick(s, logits, st, NULL, &out, &err), &err);
    assert_int_equal(out.id, 0);
    assert_true(out.stop);
    assert_int_equal(ct_sample_state_n_answer(st), 2);
    ct_sample_state_destroy(st);

    how.ignore_eos = true;
    st = state_of(&how, 4);
    test_ok(ct_sampler_pick(s, logits, st, NULL, &out, &err), &err);
    assert_int_equal(out.id, 0);
    assert_false(out.stop);
    ct_sample_state_destroy(st);
    ct_sampler_destroy(s);
}

/* --- randomness ------------------------------------------------------------------ */

static void randomness_depends_on_seed_and_position_alone(void **state)
{
    double sum = 0;

    (void)state;
    for (uint64_t i = 0; i < 10000; i++) {
        double u = ct_sampler_uniform(42, i);

        assert_true(u >= 0 && u < 1);
        assert_true(u == ct_sampler_uniform(42, i));
        assert_true(u != ct_sampler_uniform(43, i));
        sum += u;
    }
    assert_true(fabs(sum / 10000 - 0.5) < 0.015);
    assert_true(ct_sampling_choice_seed(42, 0) == 42);
    for (uint32_t i = 1; i < 100; i++)
        for (uint32_t j = 0; j < i; j++)
            assert_true(ct_sampling_choice_seed(42, i) != ct_sampling_choice_seed(42, j));
}

/* A seed that a user has kept must go on giving the same answer. */
static void random_numbers_never_change(void **state)
{
    (void)state;
    assert_true(ct_sampler_uniform(0, 0) == 0x1.2086089bfcf34p-2);
    assert_true(ct_sampler_uniform(42, 0) == 0x1.653db2a0f0debp-1);
    assert_true(ct_sampler_uniform(42, 1) == 0x1.5f87eae99441cp-2);
    assert_true(ct_sampler_uniform(UINT64_MAX, 1000000) == 0x1.08f1b8c3455cp-7);
    assert_true(ct_sampling_choice_seed(42, 1) == 0x86e1b141fd17aa12);
    assert_true(ct_sampling_choice_seed(42, 2) == 0xd0cea72257e908ae);
}

/* Requests that take turns on one sampler, in changing order, get what each gets alone. */
static void neighbours_and_order_change_nothing(void **state)
{
    enum { REQUESTS = 6, STEPS = 40 };
    static float rows[REQUESTS][STEPS][V];
    uint32_t alone[REQUESTS][STEPS];
    ct_sampling how[REQUESTS];
    ct_sample_state *st[REQUESTS];
    ct_sampler *shared = make_sampler(V);
    ct_sample out;
    ct_error err;

    (void)state;
    rng_state = 5;
    for (int r = 0; r < REQUESTS; r++) {
        how[r] = ct_sampling_neutral();
        how[r].temperature = 1;
        how[r].seed = (uint64_t)r;
        how[r].frequency_penalty = r % 2;
        how[r].dry_multiplier = r % 3;
        for (int i = 0; i < STEPS * V; i++)
            rows[r][i / V][i % V] = (float)rnd(5);
        st[r] = state_of(&how[r], V);
        for (int t = 0; t < STEPS; t++) {
            ct_sampler *own = make_sampler(V);

            test_ok(ct_sampler_pick(own, rows[r][t], st[r], NULL, &out, &err), &err);
            ct_sampler_destroy(own);
            alone[r][t] = out.id;
            ct_sample_state_accept(st[r], out.id);
        }
        ct_sample_state_destroy(st[r]);
        st[r] = state_of(&how[r], V);
    }
    for (int t = 0; t < STEPS; t++)
        for (int k = 0; k < REQUESTS; k++) {
            int r = (k * (t % 2 ? 1 : 5) + t) % REQUESTS;

            /* A pick that is dropped leaves no trace. */
            test_ok(ct_sampler_pick(shared, rows[r][(t + 1) % STEPS], st[r], NULL, &out, &err),
                    &err);
            test_ok(ct_sampler_pick(shared, rows[r][t], st[r], NULL, &out, &err), &err);
            assert_int_equal(out.id, alone[r][t]);
            ct_sample_state_accept(st[r], out.id);
        }
    for (int r = 0; r < REQUESTS; r++)
        ct_sample_state_destroy(st[r]);
    ct_sampler_destroy(shared);
}

/* --- logprobs -------------------------------------------------------------------- */

/* One rounding to float, and the logarithm of a sum that is 2e-6 off at most. */
static void assert_logprob(float got, double want)
{
    if (want < -FLT_MAX)
        assert_true(got == -INFINITY);
    else if (!(fabs(got - want) <= fabs(want) * 0x1p-24 + 2e-6))
        fail_msg("logprob %.9g, want %.9g", got, want);
}

static void check_logprobs(ct_sampler *s, const float *logits, uint32_t vocab, uint32_t n_top,
                           oracle_id *o)
{
    uint32_t id = rnd(vocab), rank = 1;
    double sum = 0;
    ct_logprobs got;
    size_t n = 0;

    for (uint32_t i = 0; i < vocab; i++)
        if (oracle_usable(logits[i]))
            o[n++] = (oracle_id){.id = i, .logit = fminf(logits[i], FLT_MAX)};
    qsort(o, n, sizeof *o, oracle_by_rank);
    for (size_t i = 0; i < n; i++)
        sum += exp((double)o[i].logit - o[0].logit);
    for (size_t i = 0; i < n; i++)
        o[i].p = (double)o[i].logit - o[0].logit - log(sum);
    while (rank <= n && o[rank - 1].id != id)
        rank++;

    ct_sampler_logprobs(s, logits, id, n_top, &got);
    assert_int_equal(got.rank, rank);
    assert_logprob(got.logprob, rank <= n ? o[rank - 1].p : -INFINITY);
    assert_int_equal(got.n_top, n_top < n ? n_top : n);
    for (size_t i = 0; i < got.n_top; i++) {
        assert_int_equal(got.top[i].id, o[i].id);
        assert_logprob(got.top[i].logprob, o[i].p);
    }
}

static void logprobs_equal_the_oracle(void **state)
{
    static const uint32_t vocabs[] = {1, 2, 15, 33, 1000};
    static oracle_id o[1000];
    static float logits[1000];

    (void)state;
    rng_state = 11;
    for (size_t v = 0; v < CT_LEN(vocabs); v++) {
        ct_sampler *s = make_sampler(vocabs[v]);

        for (int i = 0; i < 300; i++) {
            unsigned kind = rnd(7);

            for (uint32_t id = 0; id < vocabs[v]; id++)
                logits[id] = random_logit(kind, id);
            check_logprobs(s, logits, vocabs[v], rnd(CT_MAX_TOP_LOGPROBS + 1), o);
        }
        ct_sampler_destroy(s);
    }
}

static void logprobs_are_of_the_raw_row(void **state)
{
    const float logits[2] = {0, 0};
    const uint32_t hidden = 0;
    ct_sampling how = ct_sampling_neutral();
    ct_sample out;

    (void)state;
    how.suppress_ids = &hidden;
    how.n_suppress_ids = 1;
    how.temperature = 0.1;
    how.logprobs = true;
    how.top_logprobs = 1;
    out = pick(logits, &how, 2, NULL);
    assert_int_equal(out.id, 1);
    assert_true(fabs(out.logprobs.logprob + log(2)) < 1e-6);
    assert_int_equal(out.logprobs.rank, 2);
    assert_int_equal(out.logprobs.top[0].id, 0);
}

/* --- memory ---------------------------------------------------------------------- */

static void steps_do_not_allocate(void **state)
{
    static float logits[MAX_V];
    const uint32_t list[] = {1, 2, 3};
    const ct_logit_bias bias = {7, 2};
    static uint32_t allowed[CT_MASK_WORDS(MAX_V)];
    ct_sampling how = ct_sampling_neutral();
    ct_sampler *s = make_sampler(MAX_V);
    ct_sample_state *st;
    void *volatile one; /* so that no compiler leaves the call out */
    ct_sample out;
    size_t count;
    ct_error err;

    (void)state;
    rng_state = 1;
    for (uint32_t i = 0; i < MAX_V; i++)
        logits[i] = random_logit(6, i);
    memset(allowed, 0xff, sizeof allowed);
    how = (ct_sampling){1,    0,        0.99, 0.001,   0.99,  1.1, 0.1,  0.1, 1,
                        1.75, 2,        0,    allowed, &bias, 1,   list, 1,   list + 1,
                        1,    list + 2, 1,    false,   9,     4,   true, 20};
    st = state_of(&how, MAX_V);
    alloc_count_start();
    one = malloc(1);
    free(one);
    assert_int_not_equal(alloc_count, 0); /* the counter works */
    alloc_count_start();
    ct_sample_state_prompt(st, list, 3);
    for (int i = 0; i < 50; i++) {
        if (ct_sampler_pick(s, logits, st, allowed, &out, &err))
            break;
        ct_sample_state_accept(st, out.id);
    }
    count = alloc_count;
    assert_int_equal(count, 0);
    assert_int_equal(ct_sample_state_n_answer(st), 50);
    ct_sample_state_destroy(st);
    ct_sampler_destroy(s);
}

static void plans_tell_what_a_state_takes(void **state)
{
    ct_sampling how = ct_sampling_neutral();

    (void)state;
    assert_true(ct_sample_state_bytes(&how, 262144, 262144) < 1024);
    how.dry_multiplier = 1;
    assert_true(ct_sample_state_bytes(&how, 262144, 262144) < 1024 + 8 * 262144);
    how.dry_last_n = 100;
    assert_true(ct_sample_state_bytes(&how, 262144, 262144) < 1024 + 8 * 100);
    how.dry_multiplier = 0;
    how.repetition_penalty = 1.1;
    assert_true(ct_sample_state_bytes(&how, 262144, 100000) < 1024 + 24 * 100000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_cases_equal_the_oracle),
        cmocka_unit_test(large_vocabularies_equal_the_oracle),
        cmocka_unit_test(shares_follow_the_probabilities),
        cmocka_unit_test(top_p_cuts_after_temperature_and_top_k),
        cmocka_unit_test(top_p_is_met_by_equality),
        cmocka_unit_test(greedy_takes_the_lowest_id_of_equals),
        cmocka_unit_test(one_candidate_is_greedy_at_any_temperature),
        cmocka_unit_test(infinite_logits_win_and_tie),
        cmocka_unit_test(no_penalty_takes_the_last_id_away),
        cmocka_unit_test(nothing_to_pick_is_an_error_with_the_figures),
        cmocka_unit_test(min_tokens_and_ignore_eos),
        cmocka_unit_test(randomness_depends_on_seed_and_position_alone),
        cmocka_unit_test(random_numbers_never_change),
        cmocka_unit_test(neighbours_and_order_change_nothing),
        cmocka_unit_test(logprobs_equal_the_oracle),
        cmocka_unit_test(logprobs_are_of_the_raw_row),
        cmocka_unit_test(steps_do_not_allocate),
        cmocka_unit_test(plans_tell_what_a_state_takes),
    };

    return cmocka_run_group_tests_name("sampler", tests, NULL, NULL);
}
