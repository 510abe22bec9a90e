#include "ops/cpu/cpu.h"

#include "base/checked.h"
#include "ops/cpu/internal.h"

#include <stdlib.h>

/* Waking the threads costs about as much as this many multiply-adds. */
#define MIN_SHARED_WORK 200000.0

/* --- levels ------------------------------------------------------------------- */

const char *ct_cpu_level_name(ct_cpu_level l)
{
    static const char *const name[CT_N_CPU_LEVELS] = {"portable", "avx2", "avx512"};

    return name[l];
}

const ct_cpu_kernels *ct_cpu_kernels_of(ct_cpu_level l)
{
#if defined(__x86_64__)
    if (l == CT_CPU_AVX2 && __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
        return &ct_cpu_kernels_avx2;
    if (l == CT_CPU_AVX512 && __builtin_cpu_supports("avx512f"))
        return &ct_cpu_kernels_avx512;
#endif
    return l == CT_CPU_PORTABLE ? &ct_cpu_kernels_portable : NULL;
}

ct_cpu_level ct_cpu_level_best(void)
{
    ct_cpu_level best = CT_CPU_PORTABLE;

    for (int l = 0; l < CT_N_CPU_LEVELS; l++)
        if (ct_cpu_kernels_of((ct_cpu_level)l))
            best = (ct_cpu_level)l;
    return best;
}

/* --- memory ------------------------------------------------------------------- */

static void cpu_meter(ct_backend *b)
{
    ct_cpu_of(b)->memory.metered = true;
}

static uint64_t cpu_bytes(const ct_backend *b)
{
    return ((const ct_cpu *)b)->memory.bytes;
}

static ct_status cpu_alloc(ct_backend *b, void **out, ct_elem elem, size_t n, ct_error *err)
{
    return ct_host_take(&ct_cpu_of(b)->memory, out, n, ct_host_elem_bytes(elem), err);
}

static ct_status cpu_read(ct_backend *b, float *out, const void *x, ct_elem elem, size_t first,
                          size_t n, ct_error *err)
{
    const ct_cpu *c = ct_cpu_of(b);

    switch (elem) {
    case CT_ELEM_ACT:
    case CT_ELEM_F32:
        memcpy(out, (const float *)x + first, n * sizeof *out);
        return CT_OK;
    case CT_ELEM_BF16:
        c->kernels->widen(out, (const uint16_t *)x + first, n);
        return CT_OK;
    case CT_ELEM_FP8:
        for (size_t i = 0; i < n; i++)
            out[i] = c->e4m3[((const uint8_t *)x)[first + i]];
        return CT_OK;
    case CT_ELEM_U32:
        break;
    }
    return ct_fail(err, CT_EINVAL, "whole numbers cannot be read as floats");
}

typedef struct wanted {
    void *field;
    size_t n, width;
} wanted;

static ct_status take_all(ct_cpu *c, const wanted *w, size_t n_wanted, ct_error *err)
{
    ct_status st = CT_OK;

    for (size_t i = 0; i < n_wanted && !st; i++) {
        size_t n;

        if (!ct_mul_size(&n, w[i].n, w[i].width))
            return ct_fail(err, CT_ELIMIT, "%zu rows of %zu are too many", w[i].n, w[i].width);
        /* Floats and 32-bit ids have one size. */
        st = ct_host_take(&c->memory, w[i].field, n, sizeof(float), err);
    }
    return st;
}

static ct_status reserve_threads(ct_cpu *c, const ct_limits *l, ct_error *err)
{
    const size_t n = ct_pool_threads(c->pool);
    ct_status st = CT_OK;

    for (size_t i = 0; i < n && !st; i++) {
        cpu_scratch *s = &c->scratch[i];
        const wanted w[] = {
            {&s->tile, ct_max_size(CT_CPU_TILE, CT_CPU_KEYS), l->cols},
            {&s->values, CT_CPU_KEYS, l->cols},
            {&s->scores, l->group, l->keys},
        };

        st = take_all(c, w, CT_LEN(w), err);
    }
    return st;
}

static ct_status reserve_experts(ct_cpu *c, const ct_limits *l, ct_error *err)
{
    const size_t rows = l->rows, pairs = rows * l->top_k;
    const wanted w[] = {
        {&c->route_in, rows, l->hidden},
        {&c->route_logits, rows, l->n_experts},
        {&c->pair_in, pairs, l->hidden},
        {&c->pair_out, pairs, l->hidden},
        {&c->pair_gate, pairs, l->expert_width},
        {&c->pair_up, pairs, l->expert_width},
        {&c->pair_row, pairs, 1},
        {&c->pair_place, pairs, 1},
        {&c->expert_start, (size_t)l->n_experts + 1, 1},
    };

    return take_all(c, w, CT_LEN(w), err);
}

static ct_status cpu_reserve(ct_backend *b, const ct_limits *limits, ct_error *err)
{
    ct_cpu *c = ct_cpu_of(b);
    const size_t half = limits->head_dim / 2;
    const wanted turns[] = {
        {&c->inv, half, 1},
        {&c->k_weight, limits->head_dim, 1},
        {&c->key_turns.at, limits->keys, 2 * (size_t)limits->pairs},
        {&c->row_turns[0].at, limits->rows, 2 * half},
        {&c->row_turns[1].at, limits->rows, 2 * half},
        {&c->row_pos[0], limits->rows, 1},
        {&c->row_pos[1], limits->rows, 1},
    };
    ct_status st = reserve_threads(c, limits, err);

    if (!st)
        st = take_all(c, turns, CT_LEN(turns), err);
    if (!st && limits->n_experts)
        st = reserve_experts(c, limits, err);
    if (!st)
        c->limits = *limits;
    return st;
}

static void cpu_destroy(ct_backend *b)
{
    ct_cpu *c = ct_cpu_of(b);

    ct_host_free_all(&c->memory);
    free(c->scratch);
    free(c);
}

/* --- the backend --------------------------------------------------------------- */

void ct_cpu_run(ct_cpu *c, size_t n_items, double work, ct_pool_fn *fn, void *ctx)
{
    if (work >= MIN_SHARED_WORK) {
        ct_pool_run(c->pool, n_items, fn, ctx);
        return;
    }
    for (size_t i = 0; i < n_items; i++)
        fn(ctx, i, 0);
}

static const ct_ops cpu_ops = {
    .name = "cpu",
    .meter = cpu_meter,
    .bytes = cpu_bytes,
    .reserve = cpu_reserve,
    .alloc = cpu_alloc,
    .read = cpu_read,
    .embed = ct_cpu_embed,
    .rms_norm = ct_cpu_rms_norm,
    .linear = ct_cpu_linear,
    .qkv_finish = ct_cpu_qkv_finish,
    .attend = ct_cpu_attend,
    .add_norm = ct_cpu_add_norm,
    .geglu = ct_cpu_geglu,
    .add = ct_cpu_add,
    .route = ct_cpu_route,
    .experts = ct_cpu_experts,
    .gather = ct_cpu_gather,
    .head = ct_cpu_head,
    .destroy = cpu_destroy,
};

ct_status ct_cpu_create(ct_backend **out, ct_cpu_level level, ct_pool *pool, ct_error *err)
{
    const ct_cpu_kernels *kernels = ct_cpu_kernels_of(level);
    ct_cpu *c;

    if (!kernels)
        return ct_fail(err, CT_EUNSUPPORTED, "this machine or build has no %s kernels; it has %s",
                       ct_cpu_level_name(level), ct_cpu_level_name(ct_cpu_level_best()));
    c = calloc(1, sizeof *c);
    if (c)
        c->scratch = calloc(ct_pool_threads(pool), sizeof *c->scratch);
    if (!c || !c->scratch) {
        free(c);
        return ct_fail(err, CT_ELIMIT, "out of memory for the CPU backend");
    }
    c->base.ops = &cpu_ops;
    c->kernels = kernels;
    c->pool = pool;
    for (unsigned i = 0; i < CT_LEN(c->e4m3); i++)
        c->e4m3[i] = ct_e4m3_f32((uint8_t)i);
    *out = &c->base;
    return CT_OK;
}
