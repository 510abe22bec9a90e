/* Every operation of the CPU backend, at every level that this machine has, against the
 * reference; and the same bits for any level, batch and number of threads. */
#include "support.h"

#include "base/checked.h"
#include "base/num.h"
#include "base/pool.h"
#include "ops/cpu/cpu.h"
#include "ops/ref/ref.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define U 5.9604645e-8 /* 2^-24 */

static ct_error err;
static uint64_t seed = 1;

/* Uniform in [-1, 1). */
static float draw(void)
{
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (float)(seed >> 40) / 8388608.0f - 1.0f;
}

static uint32_t draw_below(uint32_t n)
{
    return (uint32_t)((draw() + 1.0f) / 2.0f * (float)n) % n;
}

/* Floats that end at the end of their heap block, where sanitizers watch. */
static float *floats(size_t n)
{
    float *x = malloc(n * sizeof *x);

    assert_non_null(x);
    for (size_t i = 0; i < n; i++)
        x[i] = draw();
    return x;
}

static uint16_t *bf16s(size_t n)
{
    uint16_t *x = malloc(n * sizeof *x);

    assert_non_null(x);
    for (size_t i = 0; i < n; i++)
        x[i] = ct_f32_bf16(draw());
    return x;
}

/* --- backends under test ------------------------------------------------------ */

#define MAX_COLS 21504

typedef struct bench {
    ct_pool *pool[2]; /* 1 and 3 threads */
    ct_backend *ref;
    ct_backend *cpu[CT_N_CPU_LEVELS][2]; /* by threads; NULL where the machine has none */
} bench;

static const ct_limits limits = {
    .rows = 70,
    .keys = 3100,
    .cols = MAX_COLS,
    .group = 16,
    .head_dim = 512,
    .pairs = 64,
    .n_experts = 128,
    .top_k = 8,
    .expert_width = 704,
    .hidden = 2816,
};

static void open_all(bench *b)
{
    static const unsigned threads[2] = {1, 3};

    *b = (bench){0};
    for (int i = 0; i < 2; i++)
        test_ok(ct_pool_create(&b->pool[i], threads[i], &err), &err);
    test_ok(ct_ref_create(&b->ref, CT_REF_F32, b->pool[1], &err), &err);
    test_ok(b->ref->ops->reserve(b->ref, &limits, &err), &err);
    for (int l = 0; l <= (int)ct_cpu_level_best(); l++)
        for (int i = 0; i < 2; i++) {
            if (ct_cpu_create(&b->cpu[l][i], (ct_cpu_level)l, b->pool[i], &err))
                continue; /* an old machine */
            test_ok(b->cpu[l][i]->ops->reserve(b->cpu[l][i], &limits, &err), &err);
        }
}

static void close_all(bench *b)
{
    for (int l = 0; l < CT_N_CPU_LEVELS; l++)
        for (int i = 0; i < 2; i++)
            if (b->cpu[l][i])
                b->cpu[l][i]->ops->destroy(b->cpu[l][i]);
    b->ref->ops->destroy(b->ref);
    for (int i = 0; i < 2; i++)
        ct_pool_destroy(b->pool[i]);
}

/* Runs an operation into its output on one backend. */
typedef void run_fn(void *ctx, ct_backend *b, float *out);

/* The first portable result must lie within bound[i] of the reference, all others must
 * equal it bit for bit. */
static void compare(bench *b, const char *what, run_fn *run, void *ctx, size_t n,
                    const double *bound, double flat_bound)
{
    float *want = floats(n), *first = floats(n), *got = floats(n);

    run(ctx, b->ref, want);
    run(ctx, b->cpu[0][0], first);
    for (size_t i = 0; i < n; i++) {
        double limit = bound ? bound[i] : flat_bound;

        if (!(fabs((double)first[i] - want[i]) <= limit))
            fail_msg("%s: element %zu is %.9g, reference %.9g, bound %g", what, i, (double)first[i],
                     (double)want[i], limit);
    }
    for (int l = 0; l < CT_N_CPU_LEVELS; l++)
        for (int i = 0; i < 2; i++) {
            if (!b->cpu[l][i])
                continue;
            memset(got, 0xff, n * sizeof *got);
            run(ctx, b->cpu[l][i], got);
            if (memcmp(got, first, n * sizeof *got) != 0)
                fail_msg("%s: %s with %d threads differs from portable with 1", what,
                         ct_cpu_level_name((ct_cpu_level)l), i ? 3 : 1);
        }
    free(want);
    free(first);
    free(got);
}

/* --- products ------------------------------------------------------------------ */

typedef struct linear_case {
    ct_weight w;
    const float *x;
    uint32_t T;
} linear_case;

static void run_linear(void *ctx, ct_backend *b, float *out)
{
    const linear_case *c = ctx;

    b->ops->linear(b, out, c->x, &c->w, c->T);
}

/* (2 sqrt k + 2) u sum |a b| for a sum of length k in f32, and a rounding. */
static double *linear_bounds(const linear_case *c)
{
    double *bound = malloc((size_t)c->T * c->w.rows * sizeof *bound);
    /* |w| is taken at its largest: 1 for bf16, 8 for blocks of GGUF, 6 * scale else. */
    const double most = c->w.type == CT_WEIGHT_BF16 ? 1.0 : c->w.type >= CT_WEIGHT_Q4_0 ? 8.0 : 6.0;

    assert_non_null(bound);
    for (uint32_t t = 0; t < c->T; t++) {
        double sum = 0;

        for (uint32_t i = 0; i < c->w.cols; i++)
            sum += fabs((double)c->x[(size_t)t * c->w.cols + i]) * most;
        for (uint32_t r = 0; r < c->w.rows; r++)
            bound[(size_t)t * c->w.rows + r] = (2 * sqrt(c->w.cols) + 3) * U * sum;
    }
    return bound;
}

/* Scales of at most 1 for Q4_0 and 1/16 for Q8_0: no element exceeds 8. */
static void fill_blocks(uint8_t *data, ct_weight_type type, size_t n_blocks)
{
    const size_t n_bytes = type == CT_WEIGHT_Q4_0 ? CT_Q4_0_BYTES : CT_Q8_0_BYTES;
    const uint16_t most = type == CT_WEIGHT_Q4_0 ? 0x3c00 : 0x2c00;

    for (size_t i = 0; i < n_blocks; i++, data += n_bytes) {
        const uint16_t scale = (uint16_t)draw_below(most + 1u);

        memcpy(data, &scale, 2);
        for (size_t j = 2; j < n_bytes; j++)
            data[j] = (uint8_t)draw_below(256);
    }
}

static void linear_agrees(bench *b, ct_weight_type type, uint32_t rows, uint32_t cols, uint32_t T)
{
    char what[96];
    float *x = floats((size_t)T * cols);
    uint8_t *data = malloc((size_t)rows * cols * 2), *scale = malloc((size_t)rows * cols);
    linear_case c = {{type, rows, cols, data, scale, 0.5f}, x, T};
    double *bound;

    snprintf(what, sizeof what, "linear type %d [%u, %u], %u rows", type, rows, cols, T);
    for (size_t i = 0; i < (size_t)rows * cols; i++) {
        uint16_t h = ct_f32_bf16(draw());

        if (type == CT_WEIGHT_BF16)
            memcpy(data + 2 * i, &h, 2);
        else if (type == CT_WEIGHT_FP8)
            data[i] = (uint8_t)(draw_below(2) << 7 | draw_below(0x48)); /* up to 4.5 */
        else
            data[i] = (uint8_t)draw_below(256);
        if (type == CT_WEIGHT_NVFP4)
            scale[i] = (uint8_t)draw_below(0x39); /* up to 1 */
    }
    for (size_t i = 0; type == CT_WEIGHT_FP8 && i < rows; i++) {
        uint16_t h = ct_f32_bf16(draw());

        memcpy(scale + 2 * i, &h, 2);
    }
    if (type >= CT_WEIGHT_Q4_0)
        fill_blocks(data, type, (size_t)rows * cols / CT_Q_BLOCK);
    bound = linear_bounds(&c);
    compare(b, what, run_linear, &c, (size_t)T * rows, bound, 0);
    free(bound);
    free(data);
    free(scale);
    free(x);
}

static void products_agree_at_every_shape(void **state)
{
    static const uint32_t T[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 13, 16, 17, 64, 65};
    bench *b = *state;

    for (size_t i = 0; i < CT_LEN(T); i++) {
        linear_agrees(b, CT_WEIGHT_BF16, 35, 176, T[i]);
        linear_agrees(b, CT_WEIGHT_NVFP4, 17, 96, T[i]);
        linear_agrees(b, CT_WEIGHT_FP8, 33, 100, T[i]);
        linear_agrees(b, CT_WEIGHT_Q4_0, 35, 160, T[i]);
        linear_agrees(b, CT_WEIGHT_Q8_0, 17, 96, T[i]);
    }
    for (uint32_t cols = 1; cols <= 34; cols++)
        linear_agrees(b, CT_WEIGHT_BF16, 5, cols, 7);
    /* Columns of the real models. */
    linear_agrees(b, CT_WEIGHT_BF16, 18, 3840, 3);
    linear_agrees(b, CT_WEIGHT_BF16, 9, 21504, 2);
    linear_agrees(b, CT_WEIGHT_NVFP4, 18, 2816, 3);
    linear_agrees(b, CT_WEIGHT_Q4_0, 18, 15360, 3);
    linear_agrees(b, CT_WEIGHT_Q8_0, 9, 21504, 2);
}

static void a_row_does_not_depend_on_the_others(void **state)
{
    bench *b = *state;
    enum { ROWS = 37, COLS = 208, T = 33 };
    float *x = floats((size_t)T * COLS), *all = floats((size_t)T * ROWS), one[ROWS];
    uint16_t *w = bf16s((size_t)ROWS * COLS);

    for (int l = 0; l < CT_N_CPU_LEVELS; l++) {
        ct_backend *cpu = b->cpu[l][0];
        linear_case c = {{CT_WEIGHT_BF16, ROWS, COLS, w, NULL, 1.0f}, x, T};

        if (!cpu)
            continue;
        run_linear(&c, cpu, all);
        for (uint32_t t = 0; t < T; t++) {
            cpu->ops->linear(cpu, one, x + (size_t)t * COLS, &c.w, 1);
            assert_memory_equal(one, all + (size_t)t * ROWS, sizeof one);
        }
    }
    free(x);
    free(all);
    free(w);
}

/* --- elementwise and norms ------------------------------------------------------- */

typedef struct vector_case {
    const float *x, *z;
    const uint16_t *w, *w2, *scalar;
    uint32_t T, width;
    ct_weight table;
    const ct_rows *rows;
} vector_case;

static void run_norm(void *ctx, ct_backend *b, float *out)
{
    const vector_case *c = ctx;

    b->ops->rms_norm(b, out, c->x, c->w, c->T, c->width, 1e-6f);
}

/* Both outputs, the stream behind the normed one. */
static void run_add_norm(void *ctx, ct_backend *b, float *out)
{
    const vector_case *c = ctx;
    const size_t n = (size_t)c->T * c->width;

    memcpy(out + n, c->x, n * sizeof *out);
    b->ops->add_norm(b,
                     &(ct_add_norm_args){.x = out + n,
                                         .y = c->z,
                                         .post = c->w,
                                         .scalar = c->scalar,
                                         .next = c->w2,
                                         .out = out,
                                         .width = c->width,
                                         .eps = 1e-6f},
                     c->T);
}

static void run_add(void *ctx, ct_backend *b, float *out)
{
    const vector_case *c = ctx;

    b->ops->add(b, out, c->x, c->z, c->T, c->width);
}

static void run_geglu(void *ctx, ct_backend *b, float *out)
{
    const vector_case *c = ctx;

    b->ops->geglu(b, out, c->x, c->z, c->T, c->width);
}

static void run_embed(void *ctx, ct_backend *b, float *out)
{
    const vector_case *c = ctx;

    b->ops->embed(b, out, c->rows, &c->table, 62.0f);
}

static void run_head(void *ctx, ct_backend *b, float *out)
{
    const vector_case *c = ctx;

    b->ops->head(b, out, c->x, &c->table, c->T, 30.0f);
}

static void elementwise_operations_agree(void **state)
{
    static const uint32_t widths[] = {1, 7, 8, 9, 64, 255, 3840};
    bench *b = *state;

    for (size_t i = 0; i < CT_LEN(widths); i++) {
        const size_t n = 5 * (size_t)widths[i];
        float *x = floats(n), *z = floats(n);
        uint16_t *w = bf16s(widths[i]), *w2 = bf16s(widths[i]), scalar = ct_f32_bf16(0.3f);
        vector_case c = {
            .x = x, .z = z, .w = w, .w2 = w2, .scalar = &scalar, .T = 5, .width = widths[i]};

        for (size_t j = 0; j < n; j++)
            x[j] *= 9.0f; /* gelu bends between -4 and 4 */
        /* A normed row is at most sqrt(width); each step rounds once. */
        compare(b, "rms_norm", run_norm, &c, n, NULL, 4 * U * sqrt(widths[i]));
        compare(b, "add_norm", run_add_norm, &c, 2 * n, NULL, 64 * U * sqrt(widths[i]));
        c.scalar = NULL;
        compare(b, "add_norm without scalar", run_add_norm, &c, 2 * n, NULL,
                64 * U * sqrt(widths[i]));
        compare(b, "add", run_add, &c, n, NULL, 0);
        compare(b, "geglu", run_geglu, &c, n, NULL, 1e-6);
        free(x);
        free(z);
        free(w);
        free(w2);
    }
}

static void embed_and_head_agree(void **state)
{
    enum { V = 300, H = 112, T = 6 };
    static const uint32_t ids[T] = {0, 299, 7, 7, 128, 1};
    const ct_rows rows = {.n = T, .ids = ids};
    uint16_t *table = bf16s((size_t)V * H);
    float *x = floats((size_t)T * H);
    vector_case c = {
        .x = x, .T = T, .table = {CT_WEIGHT_BF16, V, H, table, NULL, 1.0f}, .rows = &rows};

    compare(*state, "embed", run_embed, &c, (size_t)T * H, NULL, 0);
    for (size_t i = 0; i < (size_t)T * H; i++)
        x[i] *= i % 3 ? 1.0f : 40.0f; /* into the bend of the softcap, and past it */
    compare(*state, "head", run_head, &c, (size_t)T * V, NULL,
            (2 * sqrt(H) + 3) * U * 40 * H + 2e-5);
    free(table);
    free(x);
}

/* --- attention ------------------------------------------------------------------- */

typedef struct attend_case {
    uint32_t heads, kv_heads, D, window, page, n_pairs;
    ct_kv_type type;
    bool folded;
    uint32_t n_keys; /* of each sequence */
    const float *k, *v, *q;
    const uint16_t *q_norm, *k_norm;
} attend_case;

#define SEQS 2

static ct_kv_layer make_layer(const attend_case *c, ct_backend *b, uint32_t *table)
{
    const uint32_t blocks = (c->n_keys + c->page - 1) / c->page, n_pages = SEQS * blocks + 1;
    ct_kv_layer kv = {.type = c->type,
                      .page_tokens = c->page,
                      .n_pages = n_pages,
                      .kv_heads = c->kv_heads,
                      .head_dim = c->D,
                      .pages = table,
                      .max_blocks = blocks,
                      .window = c->window};
    const size_t n = (size_t)n_pages * c->page * c->kv_heads * c->D;

    /* Out of order, and interleaved between the sequences. */
    for (uint32_t i = 0; i < SEQS * blocks; i++)
        table[i] = (i * 7 + 3) % (SEQS * blocks);
    if (blocks * SEQS % 7 == 0)
        for (uint32_t i = 0; i < SEQS * blocks; i++)
            table[i] = SEQS * blocks - i;
    if (!c->folded)
        test_ok(b->ops->alloc(b, &kv.k, ct_kv_elem(c->type), n, &err), &err);
    test_ok(b->ops->alloc(b, &kv.v, ct_kv_elem(c->type), n, &err), &err);
    return kv;
}

/* Writes all keys of both sequences in steps, then attends from the last rows. */
static void run_attend(void *ctx, ct_backend *b, float *out)
{
    enum { STEP = 61 };
    const attend_case *c = ctx;
    const size_t row = (size_t)c->kv_heads * c->D, q_row = (size_t)c->heads * c->D;
    uint32_t *table = calloc(SEQS * (size_t)c->n_keys + 8, sizeof *table);
    ct_kv_layer kv = make_layer(c, b, table);
    const ct_rope rope = {c->window ? 1e4 : 1e6, c->n_pairs};
    float *q = malloc(STEP * q_row * sizeof *q);

    assert_non_null(q);
    for (uint32_t s = 0; s < SEQS; s++)
        for (uint32_t first = 0; first < c->n_keys; first += STEP) {
            uint32_t pos[STEP], seq[STEP], n = c->n_keys - first < STEP ? c->n_keys - first : STEP;
            const ct_rows rows = {.n = n, .pos = pos, .seq = seq};

            for (uint32_t i = 0; i < n; i++) {
                pos[i] = first + i;
                seq[i] = s;
                memcpy(q + i * q_row, c->q, q_row * sizeof *q);
            }
            b->ops->qkv_finish(b, &rows,
                               &(ct_qkv_args){.q = q,
                                              .k = c->k + (s * c->n_keys + first) * row,
                                              .v = c->v + (s * c->n_keys + first) * row,
                                              .q_norm = c->q_norm,
                                              .k_norm = c->k_norm,
                                              .n_heads = c->heads,
                                              .eps = 1e-6f,
                                              .rope = rope,
                                              .kv = &kv});
            if (first + n < c->n_keys)
                continue;
            /* The last row of the sequence. */
            b->ops->attend(b, &(ct_rows){.n = 1, .pos = pos + n - 1, .seq = seq},
                           &(ct_attend_args){.out = out + s * q_row,
                                             .q = q + (n - 1) * q_row,
                                             .n_heads = c->heads,
                                             .kv = &kv,
                                             .k_norm = c->k_norm,
                                             .rope = rope});
        }
    free(q);
    free(table);
}

static void attend_agrees(bench *b, attend_case c)
{
    char what[128];
    const size_t n = SEQS * (size_t)c.n_keys * c.kv_heads * c.D;
    float *k = floats(n), *v = c.folded ? k : floats(n), *q = floats((size_t)c.heads * c.D);
    uint16_t *q_norm = bf16s(c.D), *k_norm = bf16s(c.D);
    /* A score is off by (2 sqrt D + 2) u |q| |k|, and |q|, |k| are at most sqrt(D); the
     * softmax moves by twice that, relatively, and values stay below 2.  A store of 8 or 16
     * bits may round a number to the other side in one of the two backends. */
    const double scores = (2 * sqrt(c.D) + 2) * U * c.D;
    const double step = c.type == CT_KV_F32 ? 0 : c.type == CT_KV_BF16 ? 0x1p-8 : 0x1p-4;

    snprintf(what, sizeof what, "attend %u/%u heads of %u, window %u, page %u, type %d%s, %u keys",
             c.heads, c.kv_heads, c.D, c.window, c.page, c.type, c.folded ? " folded" : "",
             c.n_keys);
    c.k = k;
    c.v = v;
    c.q = q;
    c.q_norm = q_norm;
    c.k_norm = k_norm;
    compare(b, what, run_attend, &c, SEQS * (size_t)c.heads * c.D, NULL,
            4 * scores + 4e-6 + step / 8);
    free(k);
    if (!c.folded)
        free(v);
    free(q);
    free(q_norm);
    free(k_norm);
}

static void attention_agrees_on_both_kinds_and_all_stores(void **state)
{
    static const uint32_t lengths[] = {1, 2, 31, 32, 33, 64, 65, 200};
    bench *b = *state;

    for (int type = CT_KV_F32; type <= CT_KV_FP8; type++)
        for (size_t i = 0; i < CT_LEN(lengths); i++) {
            attend_agrees(b, (attend_case){.heads = 4,
                                           .kv_heads = 2,
                                           .D = 64,
                                           .window = 48,
                                           .page = 16,
                                           .n_pairs = 32,
                                           .type = (ct_kv_type)type,
                                           .n_keys = lengths[i]});
            attend_agrees(b, (attend_case){.heads = 8,
                                           .kv_heads = 1,
                                           .D = 128,
                                           .page = 64,
                                           .n_pairs = 16,
                                           .type = (ct_kv_type)type,
                                           .folded = true,
                                           .n_keys = lengths[i]});
        }
    /* The heads of the real models, at the edges of the window. */
    for (uint32_t n = 1023; n <= 1025; n++)
        attend_agrees(b, (attend_case){.heads = 4,
                                       .kv_heads = 2,
                                       .D = 256,
                                       .window = 1024,
                                       .page = 64,
                                       .n_pairs = 128,
                                       .type = CT_KV_BF16,
                                       .n_keys = n});
    attend_agrees(b, (attend_case){.heads = 16,
                                   .kv_heads = 1,
                                   .D = 512,
                                   .page = 64,
                                   .n_pairs = 64,
                                   .type = CT_KV_BF16,
                                   .folded = true,
                                   .n_keys = 300});
}

/* --- mixture ---------------------------------------------------------------------- */

typedef struct moe_case {
    const float *x;
    uint32_t T, H, M, E, top_k;
    ct_router router;
    ct_expert_weights experts;
    const uint32_t *picks;
    const float *weights;
} moe_case;

static void run_experts(void *ctx, ct_backend *b, float *out)
{
    const moe_case *c = ctx;

    b->ops->experts(b, out, c->x, c->picks, c->weights, &c->experts, c->T);
}

/* Picks as floats, then the weights. */
static void run_route(void *ctx, ct_backend *b, float *out)
{
    const moe_case *c = ctx;
    const size_t n = (size_t)c->T * c->top_k;
    uint32_t *picks = malloc(n * sizeof *picks);

    assert_non_null(picks);
    b->ops->route(b, picks, out + n, c->x, &c->router, c->T, 1e-6f);
    for (size_t i = 0; i < n; i++)
        out[i] = (float)picks[i];
    free(picks);
}

/* Picks of a row: distinct and ascending.  skew: everybody picks the same. */
static void draw_picks(moe_case *c, uint32_t *picks, float *weights, bool skew)
{
    for (uint32_t t = 0; t < c->T; t++) {
        uint32_t next = 0;

        for (uint32_t i = 0; i < c->top_k; i++) {
            uint32_t spare = c->E - next - (c->top_k - i);

            next += skew ? 0 : draw_below(spare + 1);
            picks[t * c->top_k + i] = next++;
            weights[t * c->top_k + i] = draw();
        }
    }
}

static void mixtures_agree(void **state)
{
    enum { H = 64, M = 40, E = 16, TOP = 4, MAX_T = 33 };
    static const uint32_t T[] = {1, 2, 7, MAX_T};
    bench *b = *state;
    uint16_t *w = bf16s((size_t)3 * E * M * H), *proj = bf16s((size_t)E * H), *scale = bf16s(H),
             *per_expert = bf16s(E);
    ct_weight gate[E], up[E], down[E];
    uint32_t picks[MAX_T * TOP];
    float weights[MAX_T * TOP];

    for (uint32_t e = 0; e < E; e++) {
        gate[e] = (ct_weight){CT_WEIGHT_BF16, M, H, w + (size_t)e * M * H, NULL, 1};
        up[e] = (ct_weight){CT_WEIGHT_BF16, M, H, w + (size_t)(E + e) * M * H, NULL, 1};
        down[e] = (ct_weight){CT_WEIGHT_BF16, H, M, w + (size_t)(2 * E + e) * M * H, NULL, 1};
    }
    for (size_t i = 0; i < CT_LEN(T); i++)
        for (int skew = 0; skew < 2; skew++) {
            float *x = floats((size_t)T[i] * H);
            moe_case c = {
                .x = x,
                .T = T[i],
                .H = H,
                .M = M,
                .E = E,
                .top_k = TOP,
                .router = {{CT_WEIGHT_BF16, E, H, proj, NULL, 1}, scale, per_expert, E, TOP},
                .experts = {gate, up, down, E, TOP},
                .picks = picks,
                .weights = weights};

            draw_picks(&c, picks, weights, skew);
            compare(b, "experts", run_experts, &c, (size_t)T[i] * H, NULL, 1e-3);
            compare(b, "route", run_route, &c, 2 * (size_t)T[i] * TOP, NULL, 1e-5);
            free(x);
        }
    free(w);
    free(proj);
    free(scale);
    free(per_expert);
}

static void a_level_the_machine_lacks_is_refused(void **state)
{
    bench *b = *state;
    ct_backend *cpu;

    if (ct_cpu_level_best() == CT_CPU_AVX512)
        skip();
    assert_int_equal(ct_cpu_create(&cpu, CT_CPU_AVX512, b->pool[0], &err), CT_EUNSUPPORTED);
    assert_non_null(strstr(err.text, "avx512"));
}

static int setup(void **state)
{
    static bench b;

    open_all(&b);
    *state = &b;
    return 0;
}

static int teardown(void **state)
{
    close_all(*state);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(products_agree_at_every_shape),
        cmocka_unit_test(a_row_does_not_depend_on_the_others),
        cmocka_unit_test(elementwise_operations_agree),
        cmocka_unit_test(embed_and_head_agree),
        cmocka_unit_test(attention_agrees_on_both_kinds_and_all_stores),
        cmocka_unit_test(mixtures_agree),
        cmocka_unit_test(a_level_the_machine_lacks_is_refused),
    };

    return cmocka_run_group_tests(tests, setup, teardown);
}
