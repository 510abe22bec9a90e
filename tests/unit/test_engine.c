/* The engine on a tiny model of random weights: what each kind of request gets, and that
 * it depends on nothing else. */
#include "exactness.h"
#include "tiny_model.h"

#include "base/checked.h"
#include "engine/job.h"
#include "engine/scheduler.h"

static ct_model *model;
static ct_tokenizer *tokenizer;
static ct_error err;
static uint32_t ids[TINY_MAX]; /* prompts are pieces of it */

static int setup(void **state)
{
    uint64_t seed = 11;

    if (maker_setup(state))
        return -1;
    tiny_write();
    /* Its first 64 ids are the bytes 0x00 to 0x3e and <pad>. */
    if (ct_model_open(&model, maker_dir, &err) ||
        ct_tokenizer_open(&tokenizer, "models/demo", &err))
        return -1;
    for (uint32_t i = 0; i < TINY_MAX; i++)
        ids[i] = tiny_random(&seed) % TINY_VOCAB;
    return 0;
}

static int teardown(void **state)
{
    ct_tokenizer_destroy(tokenizer);
    ct_model_close(model);
    return maker_teardown(state);
}

static const ct_engine_options small = {
    .ctx = 128, .slots = 4, .queue = 8, .step_rows = 32, .page_tokens = 4, .n_threads = 1};

static ct_request ask(uint32_t n_prompt, uint32_t max_new)
{
    return (ct_request){
        .prompt = ids, .n_prompt = n_prompt, .max_new = max_new, .sampling = ct_sampling_neutral()};
}

static void open_small(rig *r)
{
    ct_engine_options how = small;

    how.tokenizer = tokenizer;
    rig_open(r, model, &how, 64);
}

static void assert_idle(rig *r)
{
    const ct_engine_stats s = ct_engine_stats_get(r->e);

    assert_true(ct_engine_consistent(r->e));
    assert_int_equal(s.waiting + s.running + s.sequences + s.unpolled, 0);
    assert_int_equal(s.kv.global_free + s.kv.global_kept, s.kv.n_global);
    assert_int_equal(s.kv.sliding_free + s.kv.sliding_kept, s.kv.n_sliding);
    assert_int_equal(s.kv.global_reserved + s.kv.sliding_reserved, 0);
}

/* --- exactness ------------------------------------------------------------------ */

static void answers_do_not_depend_on_company_chunks_threads_or_cache(void **state)
{
    static const uint32_t lengths[] = {1, 4, 5, 9, 40, 100};

    (void)state;
    for (size_t i = 0; i < CT_LEN(lengths); i++) {
        const exact_case k = {.model = model,
                              .ids = ids + i,
                              .n_ids = lengths[i],
                              .max_new = 12,
                              .page_tokens = 4,
                              .thorough = i % 2 == 1};
        char name[32];

        snprintf(name, sizeof name, "%u tokens", lengths[i]);
        exact_check(&k, name);
    }
}

static void choices_share_the_prompt_and_are_those_of_single_requests(void **state)
{
    rig r;
    ct_request together = ask(21, 8), single;

    (void)state;
    open_small(&r);
    together.n_choices = 4;
    together.sampling.temperature = 1;
    together.sampling.seed = 5;
    rig_submit(&r, &together);
    rig_run(&r);
    /* The last whole page before the last token: 20 of 21 tokens, three times. */
    assert_int_equal(ct_engine_stats_get(r.e).kv.hit_tokens, 3 * 20);
    for (uint32_t c = 0; c < 4; c++) {
        const told_choice *want = &r.told[0].choice[c];
        uint32_t tag;

        single = together;
        single.n_choices = 1;
        single.no_cache = true;
        single.sampling.seed = ct_sampling_choice_seed(5, c);
        tag = rig_submit(&r, &single);
        rig_run(&r);
        assert_memory_equal(want->id, r.told[tag].choice[0].id, sizeof want->id);
        assert_memory_equal(want->bits, r.told[tag].choice[0].bits, sizeof want->bits);
    }
    assert_idle(&r);
    rig_close(&r);
}

static void more_choices_than_slots_are_served_in_turn(void **state)
{
    ct_engine_options how = small;
    ct_request four = ask(9, 5);
    static rig r;

    (void)state;
    how.slots = 2;
    rig_open(&r, model, &how, 4);
    four.n_choices = 4;
    four.sampling.temperature = 1;
    rig_submit(&r, &four);
    rig_run(&r);
    assert_int_equal(r.told[0].finish, CT_FINISH_LENGTH);
    assert_int_equal(r.told[0].usage.answer_tokens, 20);
    assert_idle(&r);
    rig_close(&r);
}

static void cached_tokens_are_counted_and_kept_apart_by_salt(void **state)
{
    ct_request q = ask(41, 4);
    rig r;

    (void)state;
    open_small(&r);
    for (uint32_t i = 0; i < 4; i++) {
        q.salt = i == 2;
        q.no_cache = i == 3;
        rig_submit(&r, &q);
        rig_run(&r);
    }
    assert_int_equal(r.told[0].usage.prompt_tokens, 41);
    assert_int_equal(r.told[0].usage.cached_tokens, 0);
    assert_int_equal(r.told[1].usage.cached_tokens, 40);
    assert_int_equal(r.told[2].usage.cached_tokens, 0);
    assert_int_equal(r.told[3].usage.cached_tokens, 0);
    assert_idle(&r);
    rig_close(&r);
}

/* The next turn begins with the last one's answer. */
static void the_end_of_a_turn_is_reused(void **state)
{
    uint32_t next[64];
    ct_request q = ask(30, 11);
    rig r;

    (void)state;
    open_small(&r);
    q.sampling.temperature = 1;
    rig_submit(&r, &q);
    rig_run(&r);
    memcpy(next, ids, 30 * sizeof *ids);
    memcpy(next + 30, r.told[0].choice[0].id, 11 * sizeof *ids);
    memcpy(next + 41, ids + 50, 5 * sizeof *ids);
    q.prompt = next;
    q.n_prompt = 46;
    rig_submit(&r, &q);
    rig_run(&r);
    assert_int_equal(r.told[1].usage.cached_tokens, 40); /* 41 tokens, of which the last is new */
    assert_idle(&r);
    rig_close(&r);
}

/* --- ends ----------------------------------------------------------------------- */

static void length_is_clipped_to_the_context(void **state)
{
    ct_engine_options how = small;
    ct_request q;
    static rig r;

    (void)state;
    how.ctx = 40;
    rig_open(&r, model, &how, 4);
    q = ask(30, CT_MAX_NEW_ANY);
    rig_submit(&r, &q);
    q = ask(39, 5);
    rig_submit(&r, &q);
    rig_run(&r);
    assert_int_equal(r.told[0].choice[0].n, 10);
    assert_int_equal(r.told[0].finish, CT_FINISH_LENGTH);
    assert_int_equal(r.told[1].choice[0].n, 1);
    assert_idle(&r);
    rig_close(&r);
}

static void eos_and_stop_ids_end_the_answer(void **state)
{
    ct_request q = ask(20, 30);
    uint32_t second;
    rig r;

    (void)state;
    open_small(&r);
    q.sampling.temperature = 1; /* the same seed draws the same again */
    rig_submit(&r, &q);
    rig_run(&r);
    second = r.told[0].choice[0].id[1];
    assert_true(second != r.told[0].choice[0].id[0]);
    q.sampling.eos_ids = &second;
    q.sampling.n_eos_ids = 1;
    rig_submit(&r, &q); /* ends at it */
    q.sampling.ignore_eos = true;
    rig_submit(&r, &q); /* does not */
    q.sampling.stop_ids = &second;
    q.sampling.n_stop_ids = 1;
    rig_submit(&r, &q); /* ends again */
    q.sampling.min_tokens = 5;
    rig_submit(&r, &q); /* not so early */
    rig_run(&r);
    assert_int_equal(r.told[1].choice[0].n, 2);
    assert_int_equal(r.told[1].finish, CT_FINISH_STOP);
    assert_int_equal(r.told[2].choice[0].n, 30);
    assert_int_equal(r.told[3].choice[0].n, 2);
    assert_true(r.told[4].choice[0].n > 5);
    rig_close(&r);
}

/* Digits are ids 49 to 58; a bias makes the model say them. */
static ct_request ask_for_digits(const ct_logit_bias *bias, size_t n)
{
    ct_request q = ask(10, 30);

    q.sampling.temperature = 1;
    q.sampling.seed = 3;
    q.sampling.logit_bias = bias;
    q.sampling.n_logit_bias = n;
    return q;
}

static void stop_strings_end_the_answer_across_tokens(void **state)
{
    ct_logit_bias bias[10] = {{0}};
    char text[31] = {0}, wanted[3] = {0};
    ct_str stop[2] = {CT_STR("zz"), {wanted, 2}};
    ct_request q = ask_for_digits(bias, 10);
    const told_choice *c;
    rig r;

    (void)state;
    for (uint32_t i = 0; i < 10; i++)
        bias[i] = (ct_logit_bias){49 + i, 100};
    open_small(&r);
    rig_submit(&r, &q);
    rig_run(&r);
    for (uint32_t i = 0; i < 30; i++)
        text[i] = (char)(r.told[0].choice[0].id[i] - 1); /* <pad> stands before '%' */
    memcpy(wanted, text + 6, 2);
    q.stop = stop;
    q.n_stop = 2;
    rig_submit(&r, &q);
    q.stop_include = true;
    rig_submit(&r, &q);
    q.stop_include = false;
    q.n_stop = 1;
    rig_submit(&r, &q);
    rig_run(&r);
    c = &r.told[1].choice[0];
    assert_int_equal(c->finish, CT_FINISH_STOP);
    assert_true(c->by_string);
    assert_int_equal(c->text_bytes, (uint64_t)(strstr(text, wanted) - text));
    assert_int_equal(c->n, c->text_bytes + 2);
    assert_int_equal(r.told[2].choice[0].text_bytes, c->text_bytes + 2);
    assert_int_equal(r.told[3].finish, CT_FINISH_LENGTH);
    assert_false(r.told[3].choice[0].by_string);
    rig_close(&r);
}

static void min_tokens_holds_for_stop_strings(void **state)
{
    ct_logit_bias bias = {49, 100};
    ct_str stop = CT_STR("0");
    ct_request q = ask_for_digits(&bias, 1);
    rig r;

    (void)state;
    open_small(&r);
    q.stop = &stop;
    q.n_stop = 1;
    q.sampling.min_tokens = 7;
    rig_submit(&r, &q);
    rig_run(&r);
    assert_int_equal(r.told[0].choice[0].n, 8);
    rig_close(&r);
}

static void deadlines_end_requests_wherever_they_stand(void **state)
{
    ct_request q = ask(100, 20);
    rig r;

    (void)state;
    open_small(&r);
    q.timeout_s = 5;
    for (uint32_t i = 0; i < 6; i++) /* four run, two wait */
        rig_submit(&r, &q);
    r.clock_s = 4.9;
    rig_step(&r);
    assert_int_equal(r.told[5].n_done, 0);
    r.clock_s = 5;
    rig_step(&r);
    for (uint32_t i = 0; i < 6; i++) {
        assert_int_equal(r.told[i].n_done, 1);
        assert_int_equal(r.told[i].finish, CT_FINISH_DEADLINE);
    }
    assert_idle(&r);
    rig_close(&r);
}

static void cancelling_frees_everything_within_one_step(void **state)
{
    ct_request q = ask(100, 20);
    rig r;

    (void)state;
    open_small(&r);
    q.n_choices = 3;
    q.no_cache = true;
    for (uint32_t stage = 0; stage < 20; stage++) {
        uint32_t first = rig_submit(&r, &q), second = rig_submit(&r, &q);

        for (uint32_t i = 0; i < stage; i++)
            rig_step(&r);
        ct_engine_cancel(r.e, r.told[first].id);
        ct_engine_cancel(r.e, r.told[second].id);
        rig_step(&r);
        assert_int_equal(r.told[first].finish, CT_FINISH_CANCELLED);
        assert_int_equal(r.told[second].n_done, 1);
        assert_int_equal(ct_engine_stats_get(r.e).kv.global_free,
                         ct_engine_stats_get(r.e).kv.n_global);
        assert_idle(&r);
        /* An old id names nobody, and not the next request either. */
        ct_engine_cancel(r.e, r.told[first].id);
        r.n = 0;
    }
    rig_submit(&r, &q);
    ct_engine_cancel(r.e, 0);
    ct_engine_cancel(r.e, UINT64_MAX);
    rig_run(&r);
    assert_int_equal(r.told[0].finish, CT_FINISH_LENGTH);
    rig_close(&r);
}

/* --- failures ------------------------------------------------------------------- */

static void a_row_that_is_not_finite_ends_its_request_alone(void **state)
{
    ct_request q = ask(20, 10);
    rig r;

    (void)state;
    open_small(&r);
    for (uint32_t i = 0; i < 3; i++)
        rig_submit(&r, &q);
    rig_step(&r);
    rig_step(&r);
    r.spoil_tag = 1;
    rig_run(&r);
    assert_int_equal(r.told[1].finish, CT_FINISH_ERROR);
    assert_int_equal(r.told[1].status, CT_EFORMAT);
    assert_non_null(strstr(r.told[1].error, "not finite"));
    assert_int_equal(r.told[0].choice[0].n, 10);
    assert_int_equal(r.told[2].choice[0].n, 10);
    assert_int_equal(ct_engine_health(r.e, &err), CT_OK);
    assert_idle(&r);
    rig_close(&r);
}

typedef struct grammar {
    uint32_t mask[CT_MASK_WORDS(TINY_VOCAB)];
    uint32_t n_accepted, n_before_nothing;
} grammar;

static const uint32_t *only_even(void *ctx, uint32_t choice)
{
    grammar *g = ctx;

    (void)choice;
    for (uint32_t i = 0; i < CT_LEN(g->mask); i++)
        g->mask[i] = g->n_accepted < g->n_before_nothing ? 0x55555555 : 0;
    return g->mask;
}

static void count_accepted(void *ctx, uint32_t choice, uint32_t id)
{
    (void)choice;
    assert_int_equal(id % 2, 0);
    ((grammar *)ctx)->n_accepted++;
}

static void a_constraint_masks_and_may_leave_nothing(void **state)
{
    grammar g = {.n_before_nothing = 100};
    const ct_constraint hold = {only_even, count_accepted, &g};
    ct_request q = ask(20, 10);
    rig r;

    (void)state;
    open_small(&r);
    q.sampling.temperature = 1;
    q.constraint = &hold;
    rig_submit(&r, &q);
    rig_run(&r);
    assert_int_equal(g.n_accepted, 10);
    g = (grammar){.n_before_nothing = 4};
    rig_submit(&r, &q);
    q.constraint = NULL;
    rig_submit(&r, &q);
    rig_run(&r);
    assert_int_equal(r.told[1].finish, CT_FINISH_ERROR);
    assert_int_equal(r.told[1].choice[0].n, 4);
    assert_non_null(strstr(r.told[1].error, "no id can be picked"));
    assert_int_equal(r.told[2].finish, CT_FINISH_LENGTH);
    assert_idle(&r);
    rig_close(&r);
}

static void a_device_failure_ends_all_and_nothing_more_is_taken(void **state)
{
    ct_request q = ask(20, 10);
    uint32_t tag;
    rig r;

    (void)state;
    open_small(&r);
    for (uint32_t i = 0; i < 6; i++)
        rig_submit(&r, &q);
    rig_step(&r);
    r.fail_device = true;
    while (r.told[5].n_done == 0)
        assert_true(rig_step(&r));
    for (uint32_t i = 0; i < 6; i++) {
        assert_int_equal(r.told[i].finish, CT_FINISH_ERROR);
        assert_int_equal(r.told[i].status, CT_EIO);
        assert_string_equal(r.told[i].error, "the device fell off the bus");
    }
    assert_int_equal(rig_try(&r, &q, &tag), CT_SUBMIT_DOWN);
    assert_message(&r.err, "engine has failed|fell off the bus");
    assert_int_equal(ct_engine_health(r.e, &err), CT_EIO);
    assert_message(&err, "fell off the bus");
    assert_false(rig_step(&r));
    assert_idle(&r);
    rig_close(&r);
}

/* --- refusals ------------------------------------------------------------------- */

static void wrong_requests_are_refused_with_both_figures(void **state)
{
    static const uint32_t outside[] = {3, TINY_VOCAB};
    static const ct_str empty = CT_STR("");
    static const char many[1025];
    static const ct_str big = {many, sizeof many};
    static const ct_logit_bias far = {1, 101};
    struct {
        ct_request q;
        ct_submitted want;
        const char *words;
    } row[] = {
        {ask(0, 1), CT_SUBMIT_WRONG, "the prompt is empty"},
        {ask(128, 1), CT_SUBMIT_NEVER, "128|129|128"},
        {ask(500, 0), CT_SUBMIT_NEVER, "500|128"},
        {ask(2, 1), CT_SUBMIT_WRONG, "token id 64 at position 1|64"},
        {ask(2, 1), CT_SUBMIT_WRONG, "n: 129|128"},
        {ask(2, 1), CT_SUBMIT_WRONG, "timeout: -1"},
        {ask(2, 1), CT_SUBMIT_WRONG, "timeout: nan"},
        {ask(2, 1), CT_SUBMIT_WRONG, "prompt_top_logprobs: 21|20"},
        {ask(2, 1), CT_SUBMIT_WRONG, "prompt_top_logprobs: 2 without"},
        {ask(2, 1), CT_SUBMIT_WRONG, "top_p"},
        {ask(2, 1), CT_SUBMIT_WRONG, "101"},
        {ask(2, 1), CT_SUBMIT_WRONG, "stop"},
        {ask(2, 9), CT_SUBMIT_WRONG, "min_tokens"},
        {ask(2, 9), CT_SUBMIT_WRONG, "stop: 17|16"},
        {ask(2, 9), CT_SUBMIT_WRONG, "stop[0]: 1025|1024"},
    };
    rig r;
    size_t n = 3;

    (void)state;
    row[n++].q.prompt = outside;
    row[n++].q.n_choices = 129;
    row[n++].q.timeout_s = -1;
    row[n++].q.timeout_s = strtod("nan", NULL);
    row[n].q.prompt_logprobs = true;
    row[n++].q.prompt_top_logprobs = 21;
    row[n++].q.prompt_top_logprobs = 2;
    row[n++].q.sampling.top_p = 1.5;
    row[n].q.sampling.logit_bias = &far;
    row[n++].q.sampling.n_logit_bias = 1;
    row[n].q.stop = &empty;
    row[n++].q.n_stop = 1;
    row[n++].q.sampling.min_tokens = 500;
    row[n].q.stop = &empty;
    row[n++].q.n_stop = 17;
    row[n].q.stop = &big;
    row[n++].q.n_stop = 1;
    assert_int_equal(n, CT_LEN(row));
    open_small(&r);
    for (size_t i = 0; i < CT_LEN(row); i++) {
        uint32_t tag;
        ct_submitted got = rig_try(&r, &row[i].q, &tag);

        if (got != row[i].want)
            fail_msg("%s: %d instead of %d: %s", row[i].words, got, row[i].want, r.err.text);
        assert_message(&r.err, row[i].words);
        assert_idle(&r);
    }
    rig_close(&r);
    rig_open(&r, model, &small, 1);
    row[11].q.stop = &(ct_str){"0", 1};
    assert_int_equal(rig_try(&r, &row[11].q, &(uint32_t){0}), CT_SUBMIT_WRONG);
    assert_message(&r.err, "stop|no tokenizer");
    rig_close(&r);
}

/* Replies of 128 choices of 262,144 tokens with 20 logprobs each: 6 GB. */
static void a_request_that_would_take_too_much_memory_is_refused(void **state)
{
    const ct_job_limits limits = {.ctx = 262144, .vocab = TINY_VOCAB};
    ct_request q = ask(2, CT_MAX_NEW_ANY);

    (void)state;
    q.n_choices = 128;
    q.sampling.logprobs = true;
    q.sampling.top_logprobs = 20;
    assert_int_equal(ct_job_check(&q, &limits, &err), CT_ELIMIT);
    assert_message(&err, "128 choices|262142|20|1073741824");
    q.n_choices = 1;
    test_ok(ct_job_check(&q, &limits, &err), &err);
}

static void a_full_queue_refuses_and_then_takes_again(void **state)
{
    ct_request q = ask(20, 4);
    uint32_t tag;
    rig r;

    (void)state;
    open_small(&r);
    for (uint32_t i = 0; i < small.queue; i++)
        rig_submit(&r, &q);
    assert_int_equal(rig_try(&r, &q, &tag), CT_SUBMIT_FULL);
    assert_message(&r.err, "queue is full: 8|at most 8");
    assert_int_equal(ct_engine_stats_get(r.e).refused_full, 1);
    rig_step(&r); /* four are admitted */
    assert_int_equal(ct_engine_stats_get(r.e).waiting, 4);
    assert_int_equal(ct_engine_stats_get(r.e).running, 4);
    for (uint32_t i = 0; i < 4; i++)
        rig_submit(&r, &q);
    assert_int_equal(rig_try(&r, &q, &tag), CT_SUBMIT_FULL);
    rig_run(&r);
    assert_int_equal(ct_engine_stats_get(r.e).finished[CT_FINISH_LENGTH], 12);
    assert_idle(&r);
    rig_close(&r);
}

/* Nobody polls: what is over holds its place, and the engine goes on. */
static void replies_wait_for_a_client_that_does_not_poll(void **state)
{
    ct_request q = ask(20, 4);
    uint32_t n = 0, tag;
    rig r;

    (void)state;
    open_small(&r);
    while (rig_try(&r, &q, &tag) == CT_SUBMIT_TAKEN || ct_engine_step(r.e))
        n = r.n;
    assert_int_equal(n, 2 * (small.queue + small.slots));
    assert_int_equal(ct_engine_stats_get(r.e).unpolled, n);
    assert_int_equal(rig_try(&r, &q, &tag), CT_SUBMIT_FULL);
    assert_message(&r.err, "the end of 24 was not fetched");
    rig_poll(&r);
    for (uint32_t i = 0; i < n; i++)
        assert_int_equal(r.told[i].choice[0].n, 4);
    rig_submit(&r, &q);
    rig_run(&r);
    assert_idle(&r);
    rig_close(&r);
}

static void wrong_options_are_refused_by_name(void **state)
{
    static const struct {
        ct_engine_options how;
        const char *words;
    } row[] = {
        {{.ctx = 513}, "ctx: 513|512"},
        {{.slots = 5000}, "slots: 5000|4096"},
        {{.queue = 70000}, "queue: 70000|65536"},
        {{.slots = 9, .step_rows = 8}, "step_rows: 8|9"},
        {{.step_rows = 16, .chunk = 17}, "chunk: 17|16"},
        {{.free_rows = 70000}, "free_rows: 70000"},
        {{.backend = "abacus"}, "abacus"},
        {{.ctx = 100, .page_tokens = 4, .n_global = 10}, "10"},
    };

    (void)state;
    for (size_t i = 0; i < CT_LEN(row); i++) {
        ct_engine *e = NULL;

        assert_int_not_equal(ct_engine_create(&e, model, &row[i].how, &err), CT_OK);
        assert_message(&err, row[i].words);
        assert_null(e);
    }
    ct_engine_destroy(NULL);
}

/* --- logprobs and echo ------------------------------------------------------------ */

static void prompt_logprobs_cover_every_position_once(void **state)
{
    ct_request q = ask(40, 3);
    float first[40];
    rig r;

    (void)state;
    open_small(&r);
    rig_submit(&r, &q); /* leaves its prefix, which must not be used */
    rig_run(&r);
    q.prompt_logprobs = true;
    q.prompt_top_logprobs = 5;
    q.n_choices = 3;
    rig_submit(&r, &q);
    rig_run(&r);
    assert_int_equal(r.told[1].n_prompt_replies, 40);
    assert_int_equal(r.told[1].n_prompt_rows, 39);
    assert_int_equal(r.told[1].usage.cached_tokens, 0);
    memcpy(first, r.told[1].prompt_logprob, sizeof first);
    assert_true(first[0] == 0 && first[1] < 0 && first[39] < 0);
    assert_int_equal(r.told[1].choice[2].n, 3);
    q.max_new = 0; /* scores alone */
    q.n_choices = 1;
    rig_submit(&r, &q);
    rig_run(&r);
    assert_memory_equal(first, r.told[2].prompt_logprob, sizeof first);
    assert_true(r.told[1].prompt_bits == r.told[2].prompt_bits);
    assert_int_equal(r.told[2].finish, CT_FINISH_LENGTH);
    assert_int_equal(r.told[2].choice[0].n, 0);
    assert_idle(&r);
    rig_close(&r);
}

static void echo_gives_the_prompt_back_before_the_answer(void **state)
{
    ct_request q = ask(40, 3);
    rig r;

    (void)state;
    open_small(&r);
    q.echo = true;
    rig_submit(&r, &q);
    rig_run(&r);
    assert_int_equal(r.told[0].n_prompt_replies, 40);
    assert_int_equal(r.told[0].n_prompt_rows, 0);
    rig_close(&r);
}

static void logprobs_come_with_tokens(void **state)
{
    ct_request q = ask(10, 3);
    static ct_reply reply[16];
    size_t n;
    rig r;

    (void)state;
    open_small(&r);
    q.sampling.logprobs = true;
    q.sampling.top_logprobs = 20;
    rig_submit(&r, &q);
    while (ct_engine_step(r.e))
        ;
    n = ct_engine_poll(r.e, reply, 16);
    assert_int_equal(n, 5);
    for (size_t i = 0; i < 3; i++) {
        assert_true(reply[i].u.token.has_logprobs);
        assert_int_equal(reply[i].u.token.logprobs.n_top, 20);
        assert_int_equal(reply[i].u.token.logprobs.top[0].id, reply[i].u.token.id);
        assert_true(reply[i].u.token.logprobs.top[0].logprob == reply[i].u.token.logprobs.logprob);
    }
    rig_close(&r);
}

/* --- order of service -------------------------------------------------------------- */

static void a_short_prompt_is_not_stuck_behind_a_long_one(void **state)
{
    ct_request longer = ask(400, 2), shorter = ask(5, 2), stream = ask(3, 60);
    ct_engine_options how = small;
    static rig r;
    uint32_t n = 0;

    (void)state;
    how.ctx = 512;
    rig_open(&r, model, &how, 8);
    rig_submit(&r, &stream);
    rig_step(&r);
    rig_submit(&r, &longer);
    rig_step(&r);
    rig_submit(&r, &shorter);
    for (; r.told[2].n_done == 0; n++)
        rig_step(&r);
    assert_true(n <= 8);
    assert_int_equal(r.told[1].choice[0].n, 0);
    /* And the stream had its token in every step. */
    assert_int_equal(r.told[0].choice[0].n, 2 + n);
    ct_engine_cancel(r.e, r.told[0].id);
    rig_run(&r);
    rig_close(&r);
}

static void priority_and_age_decide_who_is_admitted(void **state)
{
    ct_engine_options how = small;
    ct_request q = ask(5, 2);
    uint32_t low;
    static rig r;

    (void)state;
    how.slots = 1;
    how.queue = 64;
    rig_open(&r, model, &how, 64);
    low = rig_submit(&r, &q);
    q.priority = 1;
    for (uint32_t i = 0; i < 40; i++)
        rig_submit(&r, &q);
    for (uint32_t done = 0; r.told[low].n_done == 0;) {
        rig_step(&r);
        done = 0;
        for (uint32_t i = 1; i < r.n; i++)
            done += r.told[i].n_done;
        assert_true(done <= CT_SCHED_OVERTAKES);
    }
    rig_run(&r);
    rig_close(&r);
}

static void a_big_request_is_not_overtaken_for_ever(void **state)
{
    ct_engine_options how = small;
    ct_request big = ask(100, 20), little = ask(5, 6);
    uint32_t tag, passed = 0;
    static rig r;

    (void)state;
    how.ctx = 120;
    how.n_global = 32; /* 128 tokens: the big one needs nearly all */
    how.queue = 64;
    rig_open(&r, model, &how, 512);
    for (uint32_t i = 0; i < 3; i++)
        rig_submit(&r, &little);
    rig_step(&r);
    tag = rig_submit(&r, &big);
    while (r.told[tag].choice[0].n_rows == 0) {
        while (ct_engine_stats_get(r.e).waiting < 4)
            rig_submit(&r, &little);
        rig_step(&r);
        assert_true(r.n < 200);
    }
    for (uint32_t i = tag + 1; i < r.n; i++)
        passed += r.told[i].choice[0].n_rows > 0;
    assert_true(passed > 0 && passed <= CT_SCHED_OVERTAKES);
    rig_run(&r);
    assert_idle(&r);
    rig_close(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(answers_do_not_depend_on_company_chunks_threads_or_cache),
        cmocka_unit_test(choices_share_the_prompt_and_are_those_of_single_requests),
        cmocka_unit_test(more_choices_than_slots_are_served_in_turn),
        cmocka_unit_test(cached_tokens_are_counted_and_kept_apart_by_salt),
        cmocka_unit_test(the_end_of_a_turn_is_reused),
        cmocka_unit_test(length_is_clipped_to_the_context),
        cmocka_unit_test(eos_and_stop_ids_end_the_answer),
        cmocka_unit_test(stop_strings_end_the_answer_across_tokens),
        cmocka_unit_test(min_tokens_holds_for_stop_strings),
        cmocka_unit_test(deadlines_end_requests_wherever_they_stand),
        cmocka_unit_test(cancelling_frees_everything_within_one_step),
        cmocka_unit_test(a_row_that_is_not_finite_ends_its_request_alone),
        cmocka_unit_test(a_constraint_masks_and_may_leave_nothing),
        cmocka_unit_test(a_device_failure_ends_all_and_nothing_more_is_taken),
        cmocka_unit_test(wrong_requests_are_refused_with_both_figures),
        cmocka_unit_test(a_request_that_would_take_too_much_memory_is_refused),
        cmocka_unit_test(a_full_queue_refuses_and_then_takes_again),
        cmocka_unit_test(replies_wait_for_a_client_that_does_not_poll),
        cmocka_unit_test(wrong_options_are_refused_by_name),
        cmocka_unit_test(prompt_logprobs_cover_every_position_once),
        cmocka_unit_test(echo_gives_the_prompt_back_before_the_answer),
        cmocka_unit_test(logprobs_come_with_tokens),
        cmocka_unit_test(a_short_prompt_is_not_stuck_behind_a_long_one),
        cmocka_unit_test(priority_and_age_decide_who_is_admitted),
        cmocka_unit_test(a_big_request_is_not_overtaken_for_ever),
    };

    return cmocka_run_group_tests_name("engine", tests, setup, teardown);
}
