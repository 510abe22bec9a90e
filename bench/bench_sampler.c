/* Time of one choice over a vocabulary of Gemma's size, by what the request asks for.
 * usage: bench_sampler [REPEATS] */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/clock.h"
#include "engine/sampler.h"

#define V       262144
#define N_ROWS  8 /* more than the caches of a core hold */
#define CONTEXT 8192

static float rows[2][N_ROWS][V]; /* peaked, nearly flat */
static uint32_t history[CONTEXT], mask[CT_MASK_WORDS(V)];

static double rnd(void)
{
    static uint64_t state = 1;

    state = state * 6364136223846793005u + 1442695040888963407u;
    return (double)(state >> 11) * 0x1p-53;
}

static double normal(void)
{
    return sqrt(-2 * log(rnd() + 1e-300)) * cos(6.283185307179586 * rnd());
}

/* A bulk around -6 and a few hundred likely ids, as after the softcap. */
static void fill(void)
{
    for (int r = 0; r < N_ROWS; r++)
        for (uint32_t i = 0; i < V; i++) {
            double likely = rnd() < 0.001 ? 12 * rnd() : 0;

            rows[0][r][i] = (float)(30 * tanh((-6 + 3 * normal() + likely) / 30));
            rows[1][r][i] = (float)(0.1 * normal());
        }
    for (size_t i = 0; i < CONTEXT; i++)
        history[i] = (uint32_t)(2000 * rnd() * rnd());
    for (size_t i = 0; i < CT_LEN(mask); i++)
        mask[i] = (uint32_t)(rnd() * 0x1p32);
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static void measure(const char *name, const ct_sampling *how, int row_kind, const uint32_t *allowed,
                    int repeats)
{
    double *us = calloc((size_t)repeats, sizeof *us);
    ct_sample_state *st = NULL;
    ct_sampler *s = NULL;
    ct_sampling p = *how;
    ct_sample out;
    ct_error err;

    if (!us || ct_sampler_create(&s, V, &err))
        exit(1);
    for (int i = 0; i < repeats; i++) {
        double start;

        p.seed = (uint64_t)i;
        if (ct_sample_state_create(&st, &p, V, 2 * CONTEXT, &err))
            exit(1);
        ct_sample_state_prompt(st, history, CONTEXT);
        start = ct_now_s();
        if (ct_sampler_pick(s, rows[row_kind][i % N_ROWS], st, allowed, &out, &err))
            exit(1);
        us[i] = 1e6 * (ct_now_s() - start);
        ct_sample_state_destroy(st);
    }
    qsort(us, (size_t)repeats, sizeof *us, by_value);
    printf("%-34s %8.0f us median, %8.0f us 95th percentile\n", name, us[repeats / 2],
           us[repeats * 95 / 100]);
    ct_sampler_destroy(s);
    free(us);
}

int main(int argc, char **argv)
{
    const uint32_t hidden[] = {258883, 258882};
    int n = argc > 1 ? (int)strtol(argv[1], NULL, 10) : 101;
    ct_sampling greedy = ct_sampling_neutral(), warm = greedy, p;

    if (n < 1)
        return 2;
    fill();
    warm.temperature = 1;
    measure("greedy", &greedy, 0, NULL, n);
    p = greedy;
    p.suppress_ids = hidden;
    p.n_suppress_ids = 2;
    measure("greedy, 2 suppressed ids", &p, 0, NULL, n);
    measure("greedy, grammar of half the ids", &greedy, 0, mask, n);
    p = greedy;
    p.logprobs = true;
    p.top_logprobs = 20;
    measure("greedy, 20 logprobs", &p, 0, NULL, n);
    p = warm;
    p.top_k = 64;
    p.top_p = 0.95;
    measure("top_k 64, top_p 0.95", &p, 0, NULL, n);
    measure("top_k 64, top_p 0.95, flat", &p, 1, NULL, n);
    p.repetition_penalty = 1.1;
    measure("the same, repetition of 8192", &p, 0, NULL, n);
    p.repetition_penalty = 1;
    p.dry_multiplier = 0.8;
    p.dry_base = 1.75;
    measure("the same, DRY over 8192", &p, 0, NULL, n);
    p = warm;
    measure("temperature alone", &p, 0, NULL, n);
    measure("temperature alone, flat", &p, 1, NULL, n);
    p.top_p = 0.95;
    measure("top_p 0.95", &p, 0, NULL, n);
    measure("top_p 0.95, flat", &p, 1, NULL, n);
    p.top_p = 1;
    p.min_p = 0.05;
    measure("min_p 0.05", &p, 0, NULL, n);
    p.min_p = 0;
    p.typical_p = 0.9;
    measure("typical_p 0.9", &p, 0, NULL, n);
    p = warm;
    p.top_k = 5000;
    measure("top_k 5000", &p, 0, NULL, n);
    return 0;
}
