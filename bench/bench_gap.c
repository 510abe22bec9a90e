/* What a long prompt does to the streams that are running: gaps between their tokens
 * before and while it is admitted.
 * usage: bench_gap MODEL [PROMPT_TOKENS [STREAMS [THREADS [BACKEND]]]]
 *
 * For the demo model, whose config ends at 4096 positions, copy its directory and raise
 * max_position_embeddings: only time is measured here, not sense.
 * With one thread it is the processor's time, which a busy machine leaves alone. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/checked.h"
#include "engine/engine.h"

#define MAX_STREAMS 64
#define MAX_GAPS    65536
#define LEAD_TOKENS 64 /* of each stream before the long prompt comes */
#define PROMPT      32 /* tokens of a stream's own prompt */
#define LONG_TAG    MAX_STREAMS

typedef struct stream {
    double last_s;
    double gap[MAX_GAPS];
    uint32_t n, n_before; /* gaps in all, and before the long prompt */
} stream;

static stream streams[MAX_STREAMS];
static uint32_t n_streams = 8, long_tokens = 8192;

static clockid_t watch = CLOCK_MONOTONIC;

static double now_s(void)
{
    struct timespec t;

    clock_gettime(watch, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void die(const ct_error *err)
{
    fprintf(stderr, "bench_gap: %s\n", err->text);
    exit(1);
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static double median(const double *x, uint32_t n)
{
    double *copy = malloc(n * sizeof *copy), m;

    memcpy(copy, x, n * sizeof *copy);
    qsort(copy, n, sizeof *copy, by_value);
    m = n ? copy[n / 2] : 0;
    free(copy);
    return m;
}

static double largest(const double *x, uint32_t n)
{
    double most = 0;

    for (uint32_t i = 0; i < n; i++)
        most = x[i] > most ? x[i] : most;
    return most;
}

static uint32_t *prompt_of(uint32_t n, uint32_t vocab, uint64_t seed)
{
    uint32_t *ids = malloc(n * sizeof *ids);

    for (uint32_t i = 0; i < n; i++) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        ids[i] = (uint32_t)(seed >> 33) % vocab;
    }
    return ids;
}

static void submit(ct_engine *e, uint32_t n_prompt, uint32_t max_new, uint64_t tag)
{
    uint32_t *ids = prompt_of(n_prompt, ct_engine_model(e)->config.vocab, tag + 1);
    ct_request r = {.prompt = ids,
                    .n_prompt = n_prompt,
                    .max_new = max_new,
                    .sampling = ct_sampling_neutral(),
                    .tag = tag};
    ct_request_id id;
    ct_error err;

    r.sampling.ignore_eos = true;
    if (ct_engine_submit(e, &r, &id, &err) != CT_SUBMIT_TAKEN)
        die(&err);
    free(ids);
}

/* Notes the tokens of one step; true when the long prompt's first token came. */
static bool collect(ct_engine *e, bool long_is_in)
{
    const double now = now_s();
    bool arrived = false;
    ct_reply r;

    while (ct_engine_poll(e, &r, 1)) {
        stream *s = &streams[r.tag];

        if (r.kind != CT_REPLY_TOKEN)
            continue;
        if (r.tag == LONG_TAG) {
            arrived = true;
            continue;
        }
        if (s->last_s > 0 && s->n < MAX_GAPS)
            s->gap[s->n++] = now - s->last_s;
        s->last_s = now;
        if (!long_is_in)
            s->n_before = s->n;
    }
    return arrived;
}

static void report(double prefill_s, uint64_t steps)
{
    double worst = 0;

    printf(
        "{\"streams\": %u, \"prompt\": %u, \"prefill_s\": %.3f, \"steps\": %llu, \"by_stream\": [",
        n_streams, long_tokens, prefill_s, (unsigned long long)steps);
    for (uint32_t i = 0; i < n_streams; i++) {
        const stream *s = &streams[i];
        const double quiet = median(s->gap, s->n_before), all = median(s->gap, s->n);
        const double most = largest(s->gap + s->n_before, s->n - s->n_before);
        const double ratio = most / quiet;

        worst = ratio > worst ? ratio : worst;
        printf("%s{\"median_before_ms\": %.3f, \"median_ms\": %.3f, \"largest_while_ms\": %.3f, "
               "\"ratio\": %.2f}",
               i ? ", " : "", 1e3 * quiet, 1e3 * all, 1e3 * most, ratio);
    }
    printf("], \"worst_ratio\": %.2f}\n", worst);
}

int main(int argc, char **argv)
{
    ct_engine_options how = {.step_rows = 256, .no_cache = true};
    uint64_t steps = 0;
    double start_s;
    ct_model *model;
    ct_engine *e;
    ct_error err;

    if (argc < 2)
        return 2;
    if (argc > 2)
        long_tokens = (uint32_t)atoi(argv[2]);
    if (argc > 3)
        n_streams = (uint32_t)atoi(argv[3]);
    if (argc > 4)
        how.n_threads = (unsigned)atoi(argv[4]);
    if (argc > 5)
        how.backend = argv[5];
    if (n_streams == 0 || n_streams > MAX_STREAMS)
        return 2;
    if (how.n_threads == 1)
        watch = CLOCK_THREAD_CPUTIME_ID;
    how.slots = n_streams + 1;
    how.ctx = long_tokens + 64;
    if (ct_model_open(&model, argv[1], &err) || ct_engine_create(&e, model, &how, &err))
        die(&err);
    for (uint32_t i = 0; i < n_streams; i++)
        submit(e, PROMPT, CT_MAX_NEW_ANY, i);
    while (streams[n_streams - 1].n < LEAD_TOKENS && ct_engine_step(e))
        collect(e, false);
    submit(e, long_tokens, 1, LONG_TAG);
    start_s = now_s();
    for (bool arrived = false; !arrived && ct_engine_step(e); steps++)
        arrived = collect(e, true);
    report(now_s() - start_s, steps);
    ct_engine_destroy(e);
    ct_model_close(model);
    return 0;
}
