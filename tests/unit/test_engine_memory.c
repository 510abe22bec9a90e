/* Every allocation fails in turn, at start-up, at submit and in the step; and the step has
 * none to fail. */
#include "heap.h"

#include "engine_rig.h"
#include "tiny_model.h"

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

static ct_engine_options options(void)
{
    return (ct_engine_options){.ctx = 96,
                               .slots = 3,
                               .queue = 8,
                               .step_rows = 16,
                               .page_tokens = 4,
                               .n_threads = 2,
                               .tokenizer = tokenizer};
}

/* A request that needs everything: choices, stop strings, penalties, DRY, logprobs, echo. */
static ct_request rich(void)
{
    static const uint32_t prompt[] = {2, 50, 51, 52, 53, 50, 51, 52, 53, 54, 55, 3, 4};
    static const ct_str stop[] = {CT_STR("12"), CT_STR("3<4")};
    static const ct_logit_bias bias[] = {{50, 3}, {51, 3}, {52, 3}};
    ct_request q = {.prompt = prompt,
                    .n_prompt = sizeof prompt / sizeof *prompt,
                    .max_new = 20,
                    .n_choices = 3,
                    .sampling = ct_sampling_neutral(),
                    .stop = stop,
                    .n_stop = 2,
                    .prompt_logprobs = true,
                    .prompt_top_logprobs = 3};

    q.sampling.temperature = 0.9;
    q.sampling.top_k = 20;
    q.sampling.top_p = 0.95;
    q.sampling.repetition_penalty = 1.1;
    q.sampling.frequency_penalty = 0.1;
    q.sampling.dry_multiplier = 0.5;
    q.sampling.dry_base = 1.5;
    q.sampling.dry_allowed_length = 2;
    q.sampling.logit_bias = bias;
    q.sampling.n_logit_bias = 3;
    q.sampling.logprobs = true;
    q.sampling.top_logprobs = 5;
    q.sampling.min_tokens = 4;
    return q;
}

static void creation_fails_cleanly_at_every_allocation(void **state)
{
    const ct_engine_options how = options();
    const long before = heap_live;
    ct_engine *e = NULL;
    long k = 0;

    (void)state;
    for (;; k++) {
        ct_status st;

        err.text[0] = '\0';
        heap_fail_after(k);
        st = ct_engine_create(&e, model, &how, &err);
        heap_never_fails();
        if (!st)
            break;
        assert_int_equal(st, CT_ELIMIT);
        assert_true(err.text[0] && !strchr(err.text, '\n'));
        assert_null(e);
        assert_int_equal(heap_live, before);
    }
    print_message("creation: %ld allocations\n", k);
    assert_true(k > 30);
    ct_engine_destroy(e);
    assert_int_equal(heap_live, before);
}

static void submit_fails_cleanly_at_every_allocation(void **state)
{
    const ct_engine_options how = options();
    const ct_request q = rich();
    ct_engine *e;
    ct_request_id id;
    ct_reply reply;
    long before, k = 0;

    (void)state;
    test_ok(ct_engine_create(&e, model, &how, &err), &err);
    before = heap_live;
    for (;; k++) {
        ct_submitted got;

        heap_fail_after(k);
        got = ct_engine_submit(e, &q, &id, &err);
        heap_never_fails();
        if (got == CT_SUBMIT_TAKEN)
            break;
        assert_int_equal(got, CT_SUBMIT_MEMORY);
        assert_message(&err, "out of memory");
        assert_int_equal(heap_live, before);
        assert_false(ct_engine_step(e));
    }
    print_message("submit: %ld allocations\n", k);
    assert_true(k >= 7);
    while (ct_engine_step(e))
        ;
    do
        assert_int_equal(ct_engine_poll(e, &reply, 1), 1);
    while (reply.kind != CT_REPLY_DONE);
    assert_int_equal(reply.u.done.status, CT_OK);
    assert_int_equal(heap_live, before);
    ct_engine_destroy(e);
}

static void a_step_allocates_nothing(void **state)
{
    ct_engine_options how = options();
    static rig r;
    ct_request q = rich();
    uint32_t n_tokens = 0;

    (void)state;
    rig_open(&r, model, &how, 64);
    for (uint32_t round = 0; round < 3; round++) {
        for (uint32_t i = 0; i < 6; i++) {
            q.sampling.seed = i;
            q.n_stop = i % 3;
            q.prompt_logprobs = i % 2;
            q.prompt_top_logprobs = q.prompt_logprobs ? 3 : 0;
            q.timeout_s = i == 3 ? 5 : 0;
            rig_submit(&r, &q);
        }
        heap_calls = 0;
        heap_fail_after(0); /* any would be refused, and noticed */
        for (uint32_t i = 0; rig_step(&r); i++) {
            if (i == 5)
                ct_engine_cancel(r.e, r.told[r.n - 2].id);
            r.clock_s += 0.5;
        }
        heap_never_fails();
        assert_int_equal(heap_calls, 0);
    }
    for (uint32_t i = 0; i < r.n; i++) {
        assert_int_equal(r.told[i].n_done, 1);
        assert_int_equal(r.told[i].status, CT_OK);
        n_tokens += (uint32_t)r.told[i].usage.answer_tokens;
    }
    assert_true(n_tokens > 300);
    rig_close(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(creation_fails_cleanly_at_every_allocation),
        cmocka_unit_test(submit_fails_cleanly_at_every_allocation),
        cmocka_unit_test(a_step_allocates_nothing),
    };

    return cmocka_run_group_tests_name("engine memory", tests, setup, teardown);
}
