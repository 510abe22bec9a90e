/* The same request gives the same answer: one request alone, then in company, in other
 * chunks, on more threads, after prefix hits of each kind, with neighbours that are
 * cancelled; ids, logprobs and the bits of every row of logits must agree. */
#ifndef CT_TESTS_EXACTNESS_H
#define CT_TESTS_EXACTNESS_H

#include "engine_rig.h"

typedef struct exact_case {
    const ct_model *model;
    const char *backend;
    const uint32_t *ids; /* the prompt */
    uint32_t n_ids;
    uint32_t max_new;
    uint32_t page_tokens;
    bool thorough; /* company of 15 and 63 too */
} exact_case;

typedef struct company {
    const char *name;
    uint32_t others, step_rows, chunk;
    unsigned n_threads;
    uint32_t warm; /* tokens of the prompt that were served before */
    bool cancels;  /* the others, one after the other */
} company;

/* Greedy in odd cases, drawn in even ones; logprobs in both. */
static inline ct_request exact_request(const exact_case *k, bool draws)
{
    ct_request r = {
        .prompt = k->ids, .n_prompt = k->n_ids, .max_new = k->max_new, .n_choices = draws ? 2 : 1};

    r.sampling = ct_sampling_neutral();
    r.sampling.temperature = draws ? 1 : 0;
    r.sampling.seed = 1234;
    r.sampling.logprobs = true;
    return r;
}

/* Neighbours: pieces of the same prompt from other places, so that prefixes differ. */
static inline void exact_others(rig *r, const exact_case *k, const company *with)
{
    for (uint32_t i = 0; i < with->others; i++) {
        uint32_t from = 1 + i * 7 % (k->n_ids > 8 ? k->n_ids - 7 : 1);
        ct_request other = exact_request(k, i % 3 == 0);

        if (k->n_ids < 8)
            from = 0;
        other.prompt = k->ids + from;
        other.n_prompt = 1 + i % 5 < k->n_ids - from ? 1 + i % 5 : k->n_ids - from;
        other.n_choices = 1;
        other.max_new = k->max_new + i % 4;
        other.sampling.seed = i;
        rig_submit(r, &other);
    }
}

/* Serves the first `warm` tokens of the prompt, then something else after them. */
static inline void exact_warm(rig *r, const exact_case *k, uint32_t warm)
{
    uint32_t *ids = malloc((warm + 3) * sizeof *ids);
    ct_request first = exact_request(k, false);

    assert_non_null(ids);
    memcpy(ids, k->ids, warm * sizeof *ids);
    for (uint32_t i = 0; i < 3; i++)
        ids[warm + i] = (k->ids[(warm + i) % k->n_ids] + 1) % k->model->config.vocab;
    first.prompt = ids;
    first.n_prompt = warm < k->n_ids ? warm + 3 : warm;
    first.max_new = 1;
    /* Twice: the point where prompts part becomes a boundary when it is seen. */
    rig_submit(r, &first);
    rig_run(r);
    if (warm < k->n_ids) {
        for (uint32_t i = 0; i < 3; i++)
            ids[warm + i] = (ids[warm + i] + 1) % k->model->config.vocab;
        rig_submit(r, &first);
        rig_run(r);
    }
    free(ids);
}

static inline void exact_cancel(rig *r, uint32_t subject, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        if (i != subject && r->told[i].n_done == 0) {
            ct_engine_cancel(r->e, r->told[i].id);
            return;
        }
}

/* One run; the subject's story in *out. */
static inline void exact_run(const exact_case *k, const company *with, bool draws, told *out)
{
    ct_request request = exact_request(k, draws);
    ct_engine_options how = {
        .backend = k->backend,
        .n_threads = with->n_threads,
        .ctx = k->n_ids + k->max_new + 8,
        .slots = with->others + request.n_choices,
        .queue = with->others + 2,
        .step_rows = with->step_rows,
        .chunk = with->chunk,
        .page_tokens = k->page_tokens,
        .no_cache = with->warm == 0,
    };
    static rig r;
    uint32_t subject;

    if (how.step_rows < how.slots)
        how.step_rows = how.slots;
    rig_open(&r, k->model, &how, with->others + 8);
    if (with->warm)
        exact_warm(&r, k, with->warm);
    exact_others(&r, k, with);
    subject = rig_submit(&r, &request);
    for (uint32_t i = 0; rig_step(&r); i++)
        if (with->cancels && i % 2)
            exact_cancel(&r, subject, r.n);
    *out = r.told[subject];
    rig_close(&r);
    assert_int_equal(out->n_done, 1);
    assert_int_equal(out->status, CT_OK);
}

/* Prefix hits of a whole window: longer prompts, hence one variant. */
static inline void exact_check_window(const exact_case *k, const char *name)
{
    const company alone = {"alone", 0, 256, 256, 1, 0, false};
    const company after = {"after a window", 0, 256, 256, 2, k->model->config.window, false};
    static told want, got;

    assert_true(k->n_ids > k->model->config.window);
    exact_run(k, &alone, false, &want);
    exact_run(k, &after, false, &got);
    assert_same_told(&want, &got, name);
    assert_int_equal(got.usage.cached_tokens, k->model->config.window);
}

static inline void exact_check(const exact_case *k, const char *name)
{
    const uint32_t window = k->model->config.window, pt = k->page_tokens;
    const uint32_t part = k->n_ids / 2 / pt * pt;
    const uint32_t edge = window / pt * pt < k->n_ids ? window / pt * pt : part;
    const company with[] = {
        {"chunks of 1", 0, 4, 1, 1, 0, false},
        {"chunks of 16", 0, 16, 16, 2, 0, false},
        {"chunks of 64", 0, 64, 64, 1, 0, false},
        {"chunks of 1000", 0, 1000, 1000, 2, 0, false},
        {"1 other", 1, 64, 16, 1, 0, false},
        {"3 others", 3, 64, 64, 2, 0, false},
        {"3 others, cancelled", 3, 16, 0, 1, 0, true},
        {"after the whole prompt", 1, 64, 0, 1, k->n_ids, false},
        {"after half of the prompt", 1, 64, 16, 2, part, false},
        {"after a window of the prompt", 0, 64, 0, 1, edge, false},
        {"15 others", 15, 64, 0, 2, 0, false},
        {"63 others", 63, 128, 0, 1, 0, false},
        {"63 others, cancelled, warm", 63, 64, 0, 2, part, true},
    };
    const size_t n = k->thorough ? sizeof with / sizeof *with : 10;

    for (unsigned draws = 0; draws < 2; draws++) {
        const company alone = {"alone", 0, 256, 256, 1, 0, false};
        static told want, got;

        exact_run(k, &alone, draws, &want);
        for (size_t i = 0; i < n; i++) {
            char where[160];

            snprintf(where, sizeof where, "%s, %s, %s", name, draws ? "drawn" : "greedy",
                     with[i].name);
            exact_run(k, &with[i], draws, &got);
            assert_same_told(&want, &got, where);
            /* Long enough for a page before the last token: then there must be a hit. */
            if (with[i].warm >= pt && k->n_ids > pt && got.usage.cached_tokens == 0)
                fail_msg("%s: no prefix was reused", where);
        }
    }
}

#endif
