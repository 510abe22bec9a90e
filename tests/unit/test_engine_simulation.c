/* Twenty thousand random requests on a tiny model and pools that are too small for all:
 * after every step the pools balance, nobody is passed or left out beyond the scheduler's
 * bounds, everything submitted ends exactly once, and memory is what it was. */
#include "heap.h"

#include "engine_rig.h"
#include "tiny_model.h"

#include "engine/engine_impl.h"

#ifdef CT_TEST_SLOW
#define REQUESTS 1500
#else
#define REQUESTS 20000
#endif

#define CTX     96
#define SLOTS   6
#define QUEUE   24
#define OPEN    (2 * (SLOTS + QUEUE))
#define MAX_NEW 24
/* A choice has a row at least every CT_SCHED_PATIENCE + SLOTS steps while its prompt is
 * computed, then every step. */
#define LIFE_STEPS (CTX * (CT_SCHED_PATIENCE + SLOTS) + MAX_NEW)
/* Before a request stand at most the queue, those that may pass it, and those running,
 * with as many choices as they have; each leaves after a life, and so does it. */
#define WAIT_STEPS ((QUEUE + CT_SCHED_OVERTAKES + SLOTS + 1) * RIG_CHOICES * LIFE_STEPS)

typedef struct sim {
    rig r;
    uint64_t seed;
    uint32_t vacant[OPEN], n_vacant; /* tags */
    uint64_t born[OPEN];             /* step */
    uint32_t base[3][CTX];           /* prompts begin like one of these */
    uint64_t steps, longest;
    uint32_t n_submitted, n_full, n_never, n_refused;
    uint32_t n_finished[CT_FINISH_ERROR + 1];
} sim;

static ct_model *model;
static ct_tokenizer *tokenizer;
static ct_error err;

static int setup(void **state)
{
    if (maker_setup(state))
        return -1;
    tiny_write();
    return ct_model_open(&model, maker_dir, &err) ||
           ct_tokenizer_open(&tokenizer, "models/demo", &err);
}

static int teardown(void **state)
{
    ct_tokenizer_destroy(tokenizer);
    ct_model_close(model);
    return maker_teardown(state);
}

static uint32_t below(sim *s, uint32_t n)
{
    return tiny_random(&s->seed) % n;
}

static bool one_in(sim *s, uint32_t n)
{
    return below(s, n) == 0;
}

/* --- requests ------------------------------------------------------------------- */

static uint32_t make_prompt(sim *s, uint32_t *out)
{
    const uint32_t *base = s->base[below(s, 3)];
    uint32_t shared = one_in(s, 3) ? 0 : 8 * below(s, 7);
    uint32_t n = shared + below(s, one_in(s, 8) ? CTX : 10) + 1;

    memcpy(out, base, shared * sizeof *out);
    for (uint32_t i = shared; i < n; i++)
        out[i] = below(s, TINY_VOCAB);
    return n;
}

static ct_request make_request(sim *s, uint32_t *prompt)
{
    static const ct_str stop[] = {CT_STR("1"), CT_STR("23"), CT_STR("<=>")};
    static const uint32_t eos[] = {1};
    ct_request q = {.prompt = prompt, .n_prompt = make_prompt(s, prompt)};

    q.max_new = one_in(s, 20) ? 0 : below(s, MAX_NEW);
    q.n_choices = one_in(s, 10) ? 1 + below(s, RIG_CHOICES) : 1;
    q.sampling = ct_sampling_neutral();
    q.sampling.eos_ids = eos;
    q.sampling.n_eos_ids = 1;
    q.sampling.temperature = one_in(s, 2) ? 1 : 0;
    q.sampling.seed = below(s, 1000);
    q.sampling.logprobs = one_in(s, 5);
    q.sampling.frequency_penalty = one_in(s, 5) ? 0.5 : 0;
    q.stop = stop;
    q.n_stop = one_in(s, 2) ? below(s, 4) : 0;
    q.echo = one_in(s, 10);
    q.prompt_logprobs = one_in(s, 10);
    q.priority = (int32_t)below(s, 5) - 2;
    q.timeout_s = one_in(s, 8) ? 0.001 * (1 + below(s, 60)) : 0;
    q.salt = below(s, 3) / 2;
    q.no_cache = one_in(s, 10);
    return q;
}

static void submit_one(sim *s)
{
    uint32_t prompt[2 * CTX];
    ct_request q = make_request(s, prompt);
    ct_submitted got;
    told *t;

    if (s->n_vacant == 0)
        return;
    q.tag = s->vacant[s->n_vacant - 1];
    t = &s->r.told[q.tag];
    if (one_in(s, 50))
        q.max_new = 2 * CTX; /* clipped */
    *t = (told){.n_prompt = q.n_prompt, .n_choices = q.n_choices};
    got = ct_engine_submit(s->r.e, &q, &t->id, &s->r.err);
    s->n_full += got == CT_SUBMIT_FULL;
    s->n_never += got == CT_SUBMIT_NEVER;
    assert_true(got == CT_SUBMIT_TAKEN || got == CT_SUBMIT_FULL || got == CT_SUBMIT_NEVER);
    assert_int_equal(got == CT_SUBMIT_NEVER, q.n_prompt + (q.max_new > 0) > CTX);
    if (got != CT_SUBMIT_TAKEN)
        return;
    s->n_vacant--;
    s->n_submitted++;
    s->born[q.tag] = s->steps;
}

static void cancel_one(sim *s)
{
    const told *t = &s->r.told[below(s, OPEN)];

    ct_engine_cancel(s->r.e, t->id); /* some are done, and some never were */
}

/* --- after every step --------------------------------------------------------------- */

static void check_bounds(const sim *s)
{
    const ct_engine *e = s->r.e;

    for (uint32_t i = 0; i < e->n_waiting; i++)
        assert_true(e->waiter[i].overtaken <= CT_SCHED_OVERTAKES);
    for (uint32_t i = 0; i < SLOTS; i++)
        assert_true(e->plan[i].mode != CT_SCHED_PREFILL ||
                    e->plan[i].unserved <= CT_SCHED_PATIENCE + SLOTS);
}

static void take_finished(sim *s)
{
    for (uint32_t tag = 0; tag < OPEN; tag++) {
        told *t = &s->r.told[tag];

        if (t->n_done == 0)
            continue;
        assert_int_equal(t->n_done, 1);
        assert_int_equal(t->status, CT_OK);
        s->n_finished[t->finish]++;
        s->longest = s->steps - s->born[tag] > s->longest ? s->steps - s->born[tag] : s->longest;
        s->vacant[s->n_vacant++] = tag;
        t->n_done = 0;
    }
}

static bool sim_step(sim *s)
{
    const bool more = rig_step(&s->r);

    s->steps++;
    s->r.clock_s += 0.001;
    if (!ct_engine_consistent(s->r.e))
        fail_msg("step %llu: counts and tables disagree", (unsigned long long)s->steps);
    check_bounds(s);
    take_finished(s);
    return more;
}

/* --- the whole ---------------------------------------------------------------------- */

static void sim_open(sim *s)
{
    const ct_engine_options how = {.ctx = CTX,
                                   .slots = SLOTS,
                                   .queue = QUEUE,
                                   .step_rows = 24,
                                   .chunk = 13,
                                   .page_tokens = 4,
                                   .n_global = 80,
                                   .n_sliding = 40,
                                   .n_threads = 1,
                                   .tokenizer = tokenizer};

    *s = (sim){.seed = 2026};
    for (uint32_t i = 0; i < 3; i++)
        for (uint32_t k = 0; k < CTX; k++)
            s->base[i][k] = below(s, TINY_VOCAB);
    rig_open(&s->r, model, &how, OPEN);
    s->r.n = OPEN;
    for (uint32_t i = 0; i < OPEN; i++)
        s->vacant[s->n_vacant++] = i;
}

static void report(const sim *s)
{
    const ct_engine_stats stats = ct_engine_stats_get(s->r.e);

    print_message("simulation: %u requests (%u refused as full, %u as too long), %llu steps, "
                  "%llu rows; %u stop, %u length, %u cancelled, %u deadline; %llu of %llu prompt "
                  "tokens cached; the longest was open for %llu steps\n",
                  s->n_submitted, s->n_full, s->n_never, (unsigned long long)s->steps,
                  (unsigned long long)stats.rows, s->n_finished[CT_FINISH_STOP],
                  s->n_finished[CT_FINISH_LENGTH], s->n_finished[CT_FINISH_CANCELLED],
                  s->n_finished[CT_FINISH_DEADLINE], (unsigned long long)stats.cached_tokens,
                  (unsigned long long)stats.prompt_tokens, (unsigned long long)s->longest);
}

static void random_requests_all_end_and_pools_balance(void **state)
{
    static sim s;
    long live;

    (void)state;
    sim_open(&s);
    live = heap_live;
    while (s.n_submitted < REQUESTS) {
        if (one_in(&s, 200)) /* a burst, more than the queue holds */
            for (uint32_t i = 0; i < QUEUE + 10; i++)
                submit_one(&s);
        if (one_in(&s, 4))
            submit_one(&s);
        if (one_in(&s, 5))
            cancel_one(&s);
        if (one_in(&s, 2000)) { /* the device rests */
            while (sim_step(&s))
                ;
            assert_int_equal(heap_live, live);
        }
        sim_step(&s);
    }
    while (sim_step(&s))
        ;
    report(&s);
    assert_int_equal(heap_live, live);
    assert_int_equal(s.n_vacant, OPEN);
    assert_int_equal(s.n_finished[0] + s.n_finished[1] + s.n_finished[2] + s.n_finished[3],
                     s.n_submitted);
    assert_int_equal(s.n_finished[CT_FINISH_ERROR], 0);
    assert_true(s.n_full > 0 && s.n_never > 0 && s.n_finished[CT_FINISH_DEADLINE] > 0);
    assert_true(s.longest <= WAIT_STEPS);
    rig_close(&s.r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_requests_all_end_and_pools_balance),
    };

    return cmocka_run_group_tests_name("engine simulation", tests, setup, teardown);
}
