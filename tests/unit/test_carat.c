/* The library's interface, over the demo model. */
#include "support.h"

#include "carat.h"

#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define PARIS     "The capital of France is Paris."
#define ASK_PARIS "[{\"role\": \"user\", \"content\": \"What is the capital of France?\"}]"
#define ASK_STORY "[{\"role\": \"user\", \"content\": \"Tell me a story.\"}]"

typedef struct fixture {
    carat_model *model;
    carat_engine *engine;
} fixture;

static carat_error err;

static void ok(carat_status status)
{
    if (status)
        fail_msg("status %d: %s", status, err.text);
}

static void refused(carat_status want, carat_status got, const char *part)
{
    assert_int_equal(got, want);
    assert_int_equal(err.status, want);
    if (!strstr(err.text, part))
        fail_msg("'%s' does not say '%s'", err.text, part);
}

static int setup(void **state)
{
    static fixture f;
    carat_engine_options o;

    ok(carat_model_open(&f.model, "models/demo", &err));
    carat_engine_options_init(&o);
    o.ctx = 512;
    o.slots = 4;
    o.queue = 4;
    o.threads = 2;
    ok(carat_engine_create(&f.engine, f.model, &o, &err));
    *state = &f;
    return 0;
}

static int teardown(void **state)
{
    fixture *f = *state;

    carat_engine_destroy(f->engine);
    carat_model_close(f->model);
    return 0;
}

static carat_ask ask_of(const fixture *f, const char *chat)
{
    carat_ask ask;

    carat_ask_init(&ask, f->model);
    ask.chat = chat;
    ask.temperature = 0;
    return ask;
}

static carat_event next(const fixture *f)
{
    const carat_event *e = carat_poll(f->engine, 30);

    assert_non_null(e);
    return *e;
}

/* What one request came to. */
typedef struct outcome {
    char content[4][8192];
    uint32_t ids[4][600];
    uint32_t n_ids[4], n_ends;
    char finish[4][16], done[16], error[256];
    carat_usage usage;
    bool over;
} outcome;

static void take(outcome *o, const carat_event *e)
{
    assert_false(o->over);
    assert_int_equal(strlen(e->text), e->text_bytes);
    switch (e->kind) {
    case CARAT_TOKEN:
        o->ids[e->choice][o->n_ids[e->choice]++] = e->id;
        break;
    case CARAT_CONTENT:
        strncat(o->content[e->choice], e->text, sizeof o->content[0] - 1);
        break;
    case CARAT_END:
        snprintf(o->finish[e->choice], sizeof o->finish[0], "%s", e->finish);
        o->n_ends++;
        break;
    case CARAT_DONE:
        snprintf(o->done, sizeof o->done, "%s", e->finish);
        snprintf(o->error, sizeof o->error, "%s", e->error ? e->error : "");
        o->usage = e->usage;
        o->over = true;
        break;
    default:
        break;
    }
}

static outcome *answer_of(const fixture *f, const carat_ask *ask)
{
    static outcome o;
    carat_request request;
    carat_event e;

    o = (outcome){0};
    ok(carat_submit(f->engine, ask, &request, &err));
    while (!o.over) {
        e = next(f);
        assert_true(e.request == request);
        assert_ptr_equal(e.user, ask->user);
        take(&o, &e);
    }
    return &o;
}

static void a_chat_is_answered(void **state)
{
    fixture *f = *state;
    carat_ask ask = ask_of(f, ASK_PARIS);
    outcome *o;

    ask.user = f;
    o = answer_of(f, &ask);
    assert_string_equal(o->content[0], PARIS);
    assert_string_equal(o->finish[0], "stop");
    assert_string_equal(o->done, "stop");
    assert_string_equal(o->error, "");
    assert_int_equal(o->usage.answer_tokens, o->n_ids[0]);
    assert_true(o->usage.prompt_tokens > 10);
}

static void a_request_object_with_tools_is_taken_as_well(void **state)
{
    carat_ask ask =
        ask_of(*state, "{\"messages\": " ASK_PARIS
                       ", \"tools\": [{\"type\": \"function\", \"function\": {\"name\": \"f\"}}]}");

    ask.max_tokens = 3;
    assert_int_equal(answer_of(*state, &ask)->n_ids[0], 3);
    assert_string_equal(answer_of(*state, &ask)->done, "length");
}

static void text_and_ids_go_without_the_template(void **state)
{
    static const uint32_t ids[] = {239, 5, 6, 7};
    carat_ask ask = ask_of(*state, NULL);
    outcome first;

    ask.text = "The capital of France";
    ask.max_tokens = 8;
    first = *answer_of(*state, &ask);
    assert_int_equal(first.n_ids[0], 8);
    ask.text = NULL;
    ask.ids = ids;
    ask.n_ids = 4;
    assert_int_equal(answer_of(*state, &ask)->usage.prompt_tokens, 4);
}

static void a_stop_text_cuts_the_content(void **state)
{
    static const char *const stop[] = {"nowhere", " of Fr"};
    carat_ask ask = ask_of(*state, ASK_PARIS);
    outcome *o;

    ask.stop = stop;
    ask.n_stop = 2;
    o = answer_of(*state, &ask);
    assert_string_equal(o->content[0], "The capital");
    assert_int_equal(o->usage.answer_tokens, o->n_ids[0]);
    assert_string_equal(o->finish[0], "stop");
    assert_string_equal(o->done, "stop");
    ask.n = 3; /* the others go on until they have met it too */
    o = answer_of(*state, &ask);
    for (int i = 0; i < 3; i++)
        assert_string_equal(o->content[i], "The capital");
    assert_string_equal(o->done, "stop");
}

static void answers_of_one_request_differ_and_repeat(void **state)
{
    carat_ask ask = ask_of(*state, ASK_STORY);
    outcome first, *o;

    ask.temperature = 1;
    ask.n = 3;
    ask.seed = 7;
    ask.max_tokens = 20;
    first = *answer_of(*state, &ask);
    assert_int_equal(first.n_ends, 3);
    assert_memory_not_equal(first.ids[0], first.ids[1], sizeof first.ids[0]);
    o = answer_of(*state, &ask);
    assert_memory_equal(first.ids, o->ids, sizeof first.ids);
}

static void logprobs_come_when_asked_for(void **state)
{
    fixture *f = *state;
    carat_ask ask = ask_of(f, ASK_PARIS);
    carat_request request;
    carat_event e;
    bool seen = false;

    for (int asked = 0; asked < 2; asked++) {
        ask.logprobs = asked;
        ask.top_logprobs = asked ? 5 : 0;
        ok(carat_submit(f->engine, &ask, &request, &err));
        do {
            e = next(f);
            if (e.kind == CARAT_TOKEN) {
                assert_true(asked ? e.logprob <= 0 : isnan(e.logprob));
                assert_int_equal(e.n_top, asked ? 5 : 0);
                if (asked) { /* greedy: the best is the one chosen */
                    assert_int_equal(e.top[0].id, e.id);
                    assert_true(e.top[0].logprob == e.logprob);
                }
                seen = true;
            }
        } while (e.kind != CARAT_DONE);
    }
    assert_true(seen);
}

static void wrong_requests_are_refused_by_name(void **state)
{
    static const uint32_t bad_id[] = {99999};
    fixture *f = *state;
    carat_ask ask = ask_of(f, NULL);
    carat_request request = 0;

    refused(CARAT_EINVAL, carat_submit(f->engine, &ask, &request, &err), "exactly one");
    ask.chat = "[{\"role\": \"user\"";
    refused(CARAT_EFORMAT, carat_submit(f->engine, &ask, &request, &err), "chat");
    ask.chat = "7";
    refused(CARAT_EINVAL, carat_submit(f->engine, &ask, &request, &err), "a number");
    ask.chat = "[{\"role\": \"user\", \"content\": 5}]";
    refused(CARAT_EINVAL, carat_submit(f->engine, &ask, &request, &err), "messages[0].content");
    ask.chat = ASK_PARIS;
    ask.text = "x";
    refused(CARAT_EINVAL, carat_submit(f->engine, &ask, &request, &err), "2 of chat");
    ask.chat = NULL;
    ask.think = true;
    refused(CARAT_EINVAL, carat_submit(f->engine, &ask, &request, &err), "think");
    ask.think = false;
    ask.text = NULL;
    ask.ids = bad_id;
    ask.n_ids = 1;
    refused(CARAT_EINVAL, carat_submit(f->engine, &ask, &request, &err), "99999");
    ask = ask_of(f, ASK_PARIS);
    ask.top_p = 1.5;
    refused(CARAT_EINVAL, carat_submit(f->engine, &ask, &request, &err), "top_p");
    ask = ask_of(f, ASK_PARIS);
    ask.n = 1000;
    refused(CARAT_EINVAL, carat_submit(f->engine, &ask, &request, &err), "1000");
    ask.n = 1;
    ask.n_stop = 17;
    refused(CARAT_EINVAL, carat_submit(f->engine, &ask, &request, &err), "17");
    ask = ask_of(f, ASK_PARIS);
    ask.size = 3;
    refused(CARAT_EINVAL, carat_submit(f->engine, &ask, &request, &err), "carat_ask");
    refused(CARAT_EINVAL, carat_submit(f->engine, NULL, &request, &err), "carat_ask is NULL");
    refused(CARAT_EINVAL, carat_submit(NULL, &ask, &request, &err), "engine is NULL");
    ask = ask_of(f, ASK_PARIS);
    ask.n_stop = 1;
    refused(CARAT_EINVAL, carat_submit(f->engine, &ask, &request, &err), "stop[0] is NULL");
    assert_true(request == 0);
    /* None of them holds a place. */
    ask = ask_of(f, ASK_PARIS);
    for (int i = 0; i < 40; i++)
        assert_string_equal(answer_of(f, &ask)->done, "stop");
}

static void what_can_never_fit_and_what_cannot_wait_are_told_apart(void **state)
{
    fixture *f = *state;
    static uint32_t ids[600];
    carat_ask ask = ask_of(f, NULL);
    carat_request request;
    carat_event e;
    int taken = 0, done = 0;

    ask.ids = ids;
    ask.n_ids = 600;
    refused(CARAT_ELIMIT, carat_submit(f->engine, &ask, &request, &err), "512");
    ask.n_ids = 100;
    ask.ignore_eos = true;
    while (taken < 100 && carat_submit(f->engine, &ask, &request, &err) == CARAT_OK)
        taken++;
    assert_in_range(taken, 4, 99);
    refused(CARAT_EBUSY, carat_submit(f->engine, &ask, &request, &err), "");
    while (done < taken) {
        e = next(f);
        if (e.kind == CARAT_DONE)
            done++;
        else
            carat_cancel(f->engine, e.request);
    }
    assert_null(carat_poll(f->engine, 0));
}

static void a_cancelled_request_ends_as_such(void **state)
{
    fixture *f = *state;
    carat_ask ask = ask_of(f, ASK_STORY);
    carat_request request;
    carat_event e;

    ask.ignore_eos = true;
    ok(carat_submit(f->engine, &ask, &request, &err));
    do {
        e = next(f);
        if (e.kind == CARAT_TOKEN)
            carat_cancel(f->engine, request);
    } while (e.kind != CARAT_DONE);
    assert_string_equal(e.finish, "cancelled");
    carat_cancel(f->engine, request); /* an old one */
    carat_cancel(f->engine, 0);
}

/* Submits a few requests from a thread of its own. */
static void *submitter(void *ctx)
{
    fixture *f = ctx;
    carat_ask ask = ask_of(f, ASK_PARIS);
    carat_request request;
    carat_error own;

    for (int i = 0; i < 20;) {
        carat_status status = carat_submit(f->engine, &ask, &request, &own);

        if (status == CARAT_OK)
            i++;
        else if (status != CARAT_EBUSY)
            return ctx;
    }
    return NULL;
}

static void threads_may_submit_together(void **state)
{
    fixture *f = *state;
    pthread_t thread[2];
    void *failed[2];
    carat_event e;
    int done = 0;

    for (int i = 0; i < 2; i++)
        assert_int_equal(pthread_create(&thread[i], NULL, submitter, f), 0);
    while (done < 40) {
        e = next(f);
        done += e.kind == CARAT_DONE;
        if (e.kind == CARAT_DONE)
            assert_string_equal(e.finish, "stop");
    }
    for (int i = 0; i < 2; i++) {
        pthread_join(thread[i], &failed[i]);
        assert_null(failed[i]);
    }
}

static void an_engine_with_open_requests_can_be_destroyed(void **state)
{
    fixture *f = *state;
    carat_engine_options o;
    carat_engine *engine;
    carat_request request;
    carat_ask ask = ask_of(f, ASK_STORY);

    carat_engine_options_init(&o);
    o.ctx = 256;
    o.slots = 2;
    ok(carat_engine_create(&engine, f->model, &o, &err));
    ask.ignore_eos = true;
    for (int i = 0; i < 3; i++)
        ok(carat_submit(engine, &ask, &request, &err));
    ok(carat_health(engine, &err));
    carat_engine_destroy(engine);
    carat_engine_destroy(NULL);
    carat_model_close(NULL);
}

static void plans_and_options_are_checked(void **state)
{
    fixture *f = *state;
    carat_engine_options o;
    carat_plan plan = {.size = sizeof plan};
    carat_engine *engine = NULL;

    carat_engine_options_init(&o);
    o.slots = 2;
    o.ctx = 1024;
    ok(carat_plan_make(f->model, &o, &plan, &err));
    assert_int_equal(plan.slots, 2);
    assert_int_equal(plan.ctx, 1024);
    assert_true(plan.weights > 10000000);
    assert_true(plan.total ==
                plan.weights + plan.kv_global + plan.kv_sliding + plan.workspace + plan.sampling);
    plan.size = 12;
    refused(CARAT_EINVAL, carat_plan_make(f->model, &o, &plan, &err), "12");
    o.kv = "int4";
    refused(CARAT_EINVAL, carat_engine_create(&engine, f->model, &o, &err), "int4");
    o.kv = NULL;
    o.ctx = 4097;
    refused(CARAT_EINVAL, carat_engine_create(&engine, f->model, &o, &err), "4097");
    o.ctx = 0;
    o.backend = "abacus";
    refused(CARAT_EUNSUPPORTED, carat_engine_create(&engine, f->model, &o, &err), "abacus");
    assert_null(engine);
}

/* A program built against a newer header: what it sets and we do not know is refused. */
static void structs_may_grow(void **state)
{
    fixture *f = *state;
    struct {
        carat_ask ask;
        uint64_t later;
    } grown = {.ask = ask_of(f, ASK_PARIS)};
    carat_request request;
    carat_event e;

    grown.ask.size = sizeof grown;
    ok(carat_submit(f->engine, &grown.ask, &request, &err));
    do
        e = next(f);
    while (e.kind != CARAT_DONE);
    grown.later = 1;
    refused(CARAT_EUNSUPPORTED, carat_submit(f->engine, &grown.ask, &request, &err), "carat_ask");
}

static void a_missing_model_is_named(void **state)
{
    carat_model *model = NULL;

    (void)state;
    refused(CARAT_EIO, carat_model_open(&model, "/nowhere", &err), "/nowhere");
    assert_null(model);
    refused(CARAT_EINVAL, carat_model_open(&model, NULL, &err), "NULL");
    assert_int_equal(carat_model_open(&model, "/nowhere", NULL), CARAT_EIO);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_chat_is_answered),
        cmocka_unit_test(a_request_object_with_tools_is_taken_as_well),
        cmocka_unit_test(text_and_ids_go_without_the_template),
        cmocka_unit_test(a_stop_text_cuts_the_content),
        cmocka_unit_test(answers_of_one_request_differ_and_repeat),
        cmocka_unit_test(logprobs_come_when_asked_for),
        cmocka_unit_test(wrong_requests_are_refused_by_name),
        cmocka_unit_test(what_can_never_fit_and_what_cannot_wait_are_told_apart),
        cmocka_unit_test(a_cancelled_request_ends_as_such),
        cmocka_unit_test(threads_may_submit_together),
        cmocka_unit_test(an_engine_with_open_requests_can_be_destroyed),
        cmocka_unit_test(plans_and_options_are_checked),
        cmocka_unit_test(structs_may_grow),
        cmocka_unit_test(a_missing_model_is_named),
    };

    return cmocka_run_group_tests(tests, setup, teardown);
}
