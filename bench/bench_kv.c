/* What the page size costs: bytes, work on the tables, attention over pages.
 * make build/release/bench/bench_kv && build/release/bench/bench_kv */
#include "base/checked.h"
#include "base/clock.h"
#include "base/pool.h"
#include "kv/kv.h"
#include "model/forward.h"
#include "model/model.h"
#include "ops/ref/ref.h"

#include <stdio.h>
#include <stdlib.h>

#define PROMPT 8192
#define RUNS   5

static ct_error err;

static void must(ct_status st)
{
    if (!st)
        return;
    fprintf(stderr, "bench_kv: %s\n", err.text);
    exit(1);
}

/* 12B's stores, of which only the tables are real. */
static ct_status no_store(ct_backend *b, void **out, ct_elem elem, size_t n, ct_error *e)
{
    (void)b, (void)elem, (void)n, (void)e;
    *out = NULL;
    return CT_OK;
}

static ct_config config_12b(void)
{
    ct_config c = {.n_layers = 48,
                   .n_heads = 16,
                   .n_kv_sliding = 8,
                   .n_kv_global = 1,
                   .hd_sliding = 256,
                   .hd_global = 512,
                   .window = 1024};

    for (uint32_t l = 5; l < c.n_layers; l += 6)
        c.is_global[l] = true;
    return c;
}

static ct_kv_shape shape_of(uint32_t page_tokens, uint32_t step_tokens)
{
    return (ct_kv_shape){.n_seqs = 2,
                         .seq_tokens = 2 * PROMPT,
                         .step_tokens = step_tokens,
                         .page_tokens = page_tokens,
                         .global_type = CT_KV_BF16,
                         .sliding_type = CT_KV_BF16,
                         .cache_bytes = 1ull << 50};
}

static void bench_bytes(uint32_t page_tokens)
{
    const ct_config c = config_12b();

    for (uint32_t step = 1; step <= 256; step *= 256) {
        ct_kv_shape s = shape_of(page_tokens, step);
        ct_kv_bytes b;
        double window, half;

        s.n_seqs = 1;
        must(ct_kv_measure(&b, &c, &s, &err));
        window = 1024.0 * (double)b.sliding_page / page_tokens;
        half = 0.5 * (double)b.global_page;
        printf("pages of %3u, steps of %3u: window %.0f MiB, reserved %.0f MiB (+%.1f %%); last "
               "global page half empty %.2f MiB\n",
               page_tokens, step, window / (1 << 20), (double)b.sliding / (1 << 20),
               100.0 * ((double)b.sliding / window - 1.0), half / (1 << 20));
    }
}

/* Seconds a token of prompt, cold and found again, and a decode step. */
static void bench_tables(uint32_t page_tokens)
{
    static uint32_t ids[2 * PROMPT];
    static const ct_ops ops = {.alloc = no_store};
    ct_backend b = {&ops};
    const ct_config c = config_12b();
    const ct_kv_shape shape = shape_of(page_tokens, 256);
    double cold = 1e9, warm = 1e9, decode = 1e9, t;
    uint32_t n_cached;
    ct_kv *kv;

    must(ct_kv_create(&kv, &c, &shape, &b, &err));
    for (unsigned run = 0; run < RUNS; run++) {
        for (uint32_t i = 0; i < PROMPT; i++)
            ids[i] = run * PROMPT + i;
        for (unsigned again = 0; again < 2; again++) {
            t = ct_now_s();
            ct_kv_admit(kv, 0, &(ct_kv_claim){ids, PROMPT, 2 * PROMPT, 0, 0, false}, &n_cached);
            for (uint32_t at = n_cached; at < PROMPT; at += 256)
                must(ct_kv_extend(kv, 0, ids + at, (uint32_t)ct_min_size(256, PROMPT - at), &err));
            ct_kv_keep(kv, 0);
            t = ct_now_s() - t;
            *(again ? &warm : &cold) = t < (again ? warm : cold) ? t : (again ? warm : cold);
            if (again == 0)
                ct_kv_release(kv, 0);
        }
        t = ct_now_s();
        for (uint32_t i = 0; i < 4096; i++)
            must(ct_kv_extend(kv, 0, ids + i, 1, &err));
        t = (ct_now_s() - t) / 4096;
        decode = t < decode ? t : decode;
        ct_kv_release(kv, 0);
    }
    printf("pages of %3u: %u tokens cold %.0f us, found %.0f us; a decode step %.0f ns\n",
           page_tokens, PROMPT, 1e6 * cold, 1e6 * warm, 1e9 * decode);
    ct_kv_destroy(kv);
}

static void step(ct_kv *kv, ct_forward *f, const uint32_t *ids, uint32_t n)
{
    uint32_t pos[64], seq[64] = {0}, at = ct_kv_length(kv, 0);

    for (uint32_t i = 0; i < n; i++)
        pos[i] = at + i;
    must(ct_kv_extend(kv, 0, ids, n, &err));
    must(ct_forward_step(f, &(ct_rows){n, ids, pos, seq}, ct_kv_layers(kv), NULL, &err));
}

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

/* Milliseconds a token of the demo model on the reference backend: 512 of prompt, 64 more. */
static void bench_demo(uint32_t page_tokens)
{
    double prefill[RUNS], decode[RUNS];
    ct_kv_shape shape = shape_of(page_tokens, 64);
    const uint32_t ids[64] = {2};
    uint32_t n_cached;
    ct_model *m;

    must(ct_model_open(&m, "models/demo", &err));
    for (unsigned run = 0; run < RUNS; run++) {
        ct_pool *pool;
        ct_backend *b;
        ct_kv *kv;
        ct_forward *f;
        double t;

        must(ct_pool_create(&pool, 1, &err));
        must(ct_ref_create(&b, CT_REF_F32, pool, &err));
        must(ct_kv_create(&kv, &m->config, &shape, b, &err));
        must(ct_forward_create(&f, &m->config, &m->weights, b,
                               &(ct_forward_limits){64, shape.seq_tokens, 1}, &err));
        ct_kv_admit(kv, 0, &(ct_kv_claim){.n_tokens = 1024, .no_cache = true}, &n_cached);
        t = ct_now_s();
        for (unsigned i = 0; i < 8; i++)
            step(kv, f, ids, 64);
        prefill[run] = (ct_now_s() - t) / 512;
        t = ct_now_s();
        for (unsigned i = 0; i < 64; i++)
            step(kv, f, ids, 1);
        decode[run] = (ct_now_s() - t) / 64;
        ct_forward_destroy(f);
        ct_kv_destroy(kv);
        b->ops->destroy(b);
        ct_pool_destroy(pool);
    }
    ct_model_close(m);
    qsort(prefill, RUNS, sizeof *prefill, by_size);
    qsort(decode, RUNS, sizeof *decode, by_size);
    printf("pages of %3u: demo model %.3f ms a prompt token, %.3f ms a decode step\n", page_tokens,
           1e3 * prefill[RUNS / 2], 1e3 * decode[RUNS / 2]);
}

int main(void)
{
    static const uint32_t sizes[] = {16, 32, 64, 128};

    for (size_t i = 0; i < CT_LEN(sizes); i++)
        bench_bytes(sizes[i]);
    for (size_t i = 0; i < CT_LEN(sizes); i++)
        bench_tables(sizes[i]);
    for (size_t i = 0; i < CT_LEN(sizes); i++)
        bench_demo(sizes[i]);
    return 0;
}
