/* Clients on several threads, the engine on its own, another thread that polls: run under
 * ThreadSanitizer by `make check`. */
#include "engine_rig.h"
#include "tiny_model.h"

#include "engine/mailbox.h"

#include <pthread.h>
#include <stdatomic.h>

#ifdef CT_TEST_SLOW
#define EACH 40
#else
#define EACH 300
#endif
#define CLIENTS 3

static ct_model *model;
static ct_error err;

static int setup(void **state)
{
    if (maker_setup(state))
        return -1;
    tiny_write();
    return ct_model_open(&model, maker_dir, &err);
}

static int teardown(void **state)
{
    ct_model_close(model);
    return maker_teardown(state);
}

typedef struct shared {
    ct_engine *e;
    atomic_uint wakes, taken, full;
    unsigned ends[CLIENTS * EACH]; /* of the polling thread */
} shared;

static void wake(void *ctx)
{
    atomic_fetch_add(&((shared *)ctx)->wakes, 1);
}

static ct_request ask(uint64_t tag)
{
    static const uint32_t prompt[] = {2, 9, 8, 7, 6, 5, 4, 3, 2, 1, 2, 3, 4, 5};
    ct_request q = {.prompt = prompt,
                    .n_prompt = 1 + (uint32_t)tag % 14,
                    .max_new = 6,
                    .n_choices = 1 + tag % 2,
                    .sampling = ct_sampling_neutral(),
                    .tag = tag};

    q.timeout_s = tag % 7 == 0 ? 0.002 : 0;
    return q;
}

typedef struct client {
    shared *s;
    unsigned first;
    pthread_t thread;
} client;

static void *client_main(void *arg)
{
    client *c = arg;
    ct_error why;

    for (unsigned i = 0; i < EACH;) {
        const ct_request q = ask(c->first + i);
        ct_request_id id;

        switch (ct_engine_submit(c->s->e, &q, &id, &why)) {
        case CT_SUBMIT_TAKEN:
            atomic_fetch_add(&c->s->taken, 1);
            if (i++ % 5 == 0)
                ct_engine_cancel(c->s->e, id);
            break;
        case CT_SUBMIT_FULL:
            atomic_fetch_add(&c->s->full, 1);
            usleep(100);
            break;
        default:
            return c; /* refused: a failure */
        }
        (void)ct_engine_stats_get(c->s->e);
    }
    return NULL;
}

static void poll_until_all_are_done(shared *s)
{
    static ct_reply reply[8];

    for (unsigned done = 0; done < CLIENTS * EACH;) {
        size_t n = ct_engine_poll(s->e, reply, 8);

        for (size_t i = 0; i < n; i++)
            if (reply[i].kind == CT_REPLY_DONE) {
                s->ends[reply[i].tag]++;
                done++;
            }
        if (n == 0)
            assert_true(ct_engine_wait(s->e, 60));
    }
}

static void clients_on_many_threads_are_all_answered_once(void **state)
{
    static shared s;
    const ct_engine_options how = {.ctx = 64,
                                   .slots = 4,
                                   .queue = 6,
                                   .step_rows = 16,
                                   .page_tokens = 4,
                                   .n_threads = 2,
                                   .wake = wake,
                                   .wake_ctx = &s};
    client c[CLIENTS];
    ct_engine_stats stats;

    (void)state;
    test_ok(ct_engine_create(&s.e, model, &how, &err), &err);
    test_ok(ct_engine_start(s.e, &err), &err);
    for (unsigned i = 0; i < CLIENTS; i++) {
        c[i] = (client){.s = &s, .first = i * EACH};
        assert_int_equal(pthread_create(&c[i].thread, NULL, client_main, &c[i]), 0);
    }
    poll_until_all_are_done(&s);
    for (unsigned i = 0; i < CLIENTS; i++) {
        void *why;

        assert_int_equal(pthread_join(c[i].thread, &why), 0);
        assert_null(why);
    }
    for (unsigned i = 0; i < CLIENTS * EACH; i++)
        assert_int_equal(s.ends[i], 1);
    stats = ct_engine_stats_get(s.e);
    assert_int_equal(stats.submitted, CLIENTS * EACH);
    assert_int_equal(stats.refused_full, s.full);
    assert_int_equal(stats.waiting + stats.running + stats.unpolled, 0);
    assert_true(s.wakes > 0);
    ct_engine_stop(s.e);
    assert_true(ct_engine_consistent(s.e));
    ct_engine_destroy(s.e);
}

static void the_thread_stops_and_starts_again(void **state)
{
    static ct_reply reply[8];
    const ct_engine_options how = {.ctx = 64, .page_tokens = 4, .n_threads = 1};
    ct_request q = ask(1);
    ct_request_id id;
    ct_engine *e;

    (void)state;
    test_ok(ct_engine_create(&e, model, &how, &err), &err);
    ct_engine_stop(e); /* fine when not started */
    assert_false(ct_engine_wait(e, 0));
    for (unsigned i = 0; i < 20; i++) {
        bool done = false;

        test_ok(ct_engine_start(e, &err), &err);
        assert_int_equal(ct_engine_submit(e, &q, &id, &err), CT_SUBMIT_TAKEN);
        if (i % 2)
            ct_engine_stop(e); /* what is open stays open */
        if (i % 2)
            test_ok(ct_engine_start(e, &err), &err);
        while (!done) {
            size_t n;

            assert_true(ct_engine_wait(e, 60));
            n = ct_engine_poll(e, reply, 8);
            for (size_t k = 0; k < n; k++)
                done |= reply[k].kind == CT_REPLY_DONE;
        }
        ct_engine_stop(e);
    }
    /* Destroyed with the thread running and requests open. */
    test_ok(ct_engine_start(e, &err), &err);
    q.max_new = 40;
    for (unsigned i = 0; i < 10; i++)
        assert_int_equal(ct_engine_submit(e, &q, &id, &err), CT_SUBMIT_TAKEN);
    ct_engine_destroy(e);
}

static void cancel_all_ends_everything(void **state)
{
    static rig r;
    const ct_engine_options how = {.ctx = 64, .slots = 2, .page_tokens = 4, .n_threads = 1};
    const ct_request q = ask(1);

    (void)state;
    rig_open(&r, model, &how, 8);
    for (unsigned i = 0; i < 8; i++)
        rig_submit(&r, &q);
    rig_step(&r);
    ct_engine_cancel_all(r.e);
    rig_step(&r);
    for (unsigned i = 0; i < 8; i++)
        assert_int_equal(r.told[i].finish, CT_FINISH_CANCELLED);
    rig_close(&r);
}

/* Generations tell an old id from the next that has its place. */
static void old_ids_are_void(void **state)
{
    ct_mailbox *m;
    ct_request_id first, second, third;

    (void)state;
    test_ok(ct_mailbox_create(&m, 2, 2, &err), &err);
    assert_int_equal(ct_mailbox_reserve(m, &first, &err), CT_RESERVED);
    assert_int_equal(ct_mailbox_reserve(m, &second, &err), CT_RESERVED);
    assert_int_equal(ct_mailbox_reserve(m, &third, &err), CT_RESERVE_FULL);
    ct_mailbox_unreserve(m, first);
    assert_int_equal(ct_mailbox_reserve(m, &third, &err), CT_RESERVED);
    assert_true(third != first && (uint32_t)third == (uint32_t)first && first && third);
    ct_mailbox_cancel(m, first);
    ct_mailbox_destroy(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(clients_on_many_threads_are_all_answered_once),
        cmocka_unit_test(the_thread_stops_and_starts_again),
        cmocka_unit_test(cancel_all_ends_everything),
        cmocka_unit_test(old_ids_are_void),
    };

    return cmocka_run_group_tests_name("engine threads", tests, setup, teardown);
}
