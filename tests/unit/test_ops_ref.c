/* The reference operations against values worked out by hand or by another formula. */
#include "support.h"

#include "base/checked.h"
#include "base/pool.h"
#include "ops/ref/internal.h"
#include "ops/ref/ref.h"

#include <math.h>
#include <string.h>

static ct_error err;

/* A backend with its pool, and a seeded source of numbers. */
typedef struct fixture {
    ct_pool *pool;
    ct_backend *b;
    const ct_ops *ops;
    uint64_t seed;
} fixture;

static fixture make(ct_ref_rounding rounding, unsigned threads)
{
    static const ct_limits limits = {.rows = 64,
                                     .keys = 4096,
                                     .cols = 512,
                                     .group = 2,
                                     .pairs = 16,
                                     .n_experts = 16,
                                     .top_k = 4,
                                     .expert_width = 48,
                                     .hidden = 64};
    fixture f = {.seed = 1};

    test_ok(ct_pool_create(&f.pool, threads, &err), &err);
    test_ok(ct_ref_create(&f.b, rounding, f.pool, &err), &err);
    f.ops = f.b->ops;
    test_ok(f.ops->reserve(f.b, &limits, &err), &err);
    return f;
}

static void drop(fixture *f)
{
    f->ops->destroy(f->b);
    ct_pool_destroy(f->pool);
}

/* Uniform in [-1, 1). */
static float draw(fixture *f)
{
    f->seed = f->seed * 6364136223846793005u + 1442695040888963407u;
    return (float)(f->seed >> 40) / 8388608.0f - 1.0f;
}

static void fill(fixture *f, float *x, size_t n)
{
    for (size_t i = 0; i < n; i++)
        x[i] = draw(f);
}

static void fill_bf16(fixture *f, uint16_t *x, size_t n)
{
    for (size_t i = 0; i < n; i++)
        x[i] = ct_f32_bf16(draw(f));
}

static void near(double got, double want, double tolerance, const char *what)
{
    if (!(fabs(got - want) <= tolerance))
        fail_msg("%s: got %.9g, want %.9g within %g", what, got, want, tolerance);
}

/* --- arithmetic --------------------------------------------------------------- */

static void dot_agrees_with_a_plain_sum_at_every_length(void **state)
{
    fixture f = make(CT_REF_F32, 1);
    double a[100];
    float b[100];

    (void)state;
    for (size_t n = 0; n <= 100; n++) {
        long double sum = 0;

        for (size_t i = 0; i < n; i++) {
            a[i] = draw(&f);
            b[i] = draw(&f);
            sum += (long double)a[i] * b[i];
        }
        near(ct_ref_dot(a, b, n), (double)sum, 1e-14, "dot");
    }
    drop(&f);
}

static void gelu_has_the_tanh_form(void **state)
{
    (void)state;
    assert_true(ct_ref_gelu(0.0) == 0.0);
    near(ct_ref_gelu(1.0), 0.8411919906, 1e-9, "gelu(1)");
    near(ct_ref_gelu(-1.0), -0.1588080094, 1e-9, "gelu(-1)");
    for (double z = -8; z <= 8; z += 0.37) {
        /* 1 + tanh(u) = 2 / (1 + exp(-2u)) */
        double u = sqrt(2 / acos(-1.0)) * (z + 0.044715 * pow(z, 3));

        near(ct_ref_gelu(z), z / (1 + exp(-2 * u)), 1e-14, "gelu");
    }
}

/* --- weights ------------------------------------------------------------------- */

static void nvfp4_rows_decode_by_nibble_and_block(void **state)
{
    fixture f = make(CT_REF_F32, 1);
    uint8_t data[2 * 16] = {0}, scale[4] = {0x38, 0x3c, 0x7e, 0x01};
    ct_weight w = {CT_WEIGHT_NVFP4, 2, 32, data, scale, 0.5f};
    double row[32];

    (void)state;
    data[0] = 0x21;      /* columns 0, 1: 0.5, 1 */
    data[8] = 0xf7;      /* columns 16, 17 of the second block: 6, -6 */
    data[16] = 0x9a;     /* row 1, columns 0, 1: -1, -0.5 */
    data[16 + 8] = 0x53; /* row 1, columns 16, 17: 1.5, 3 */
    ct_ref_decode_row(ct_ref_of(f.b), row, &w, 0);
    assert_true(row[0] == 0.5 * 0.5 && row[1] == 1.0 * 0.5 && row[2] == 0);
    assert_true(row[16] == 6 * 1.5 * 0.5 && row[17] == -6 * 1.5 * 0.5);
    ct_ref_decode_row(ct_ref_of(f.b), row, &w, 1);
    assert_true(row[0] == -1.0 * 448 * 0.5 && row[1] == -0.5 * 448 * 0.5);
    assert_true(row[16] == 1.5 * ldexp(1, -9) * 0.5 && row[17] == 3 * ldexp(1, -9) * 0.5);
    drop(&f);
}

static void fp8_rows_decode_with_the_scale_of_their_row(void **state)
{
    fixture f = make(CT_REF_F32, 1);
    const uint8_t data[4] = {0x38, 0xbc, 0x40, 0x08};
    const uint16_t scale[2] = {ct_f32_bf16(2.0f), ct_f32_bf16(0.25f)};
    ct_weight w = {CT_WEIGHT_FP8, 2, 2, data, scale, 0};
    double row[2];

    (void)state;
    ct_ref_decode_row(ct_ref_of(f.b), row, &w, 0);
    assert_true(row[0] == 2.0 && row[1] == -3.0);
    ct_ref_decode_row(ct_ref_of(f.b), row, &w, 1);
    assert_true(row[0] == 0.5 && row[1] == ldexp(1, -8));
    drop(&f);
}

static void gguf_rows_decode_by_block(void **state)
{
    fixture f = make(CT_REF_F32, 1);
    uint8_t four[2 * 2 * CT_Q4_0_BYTES] = {0}, eight[2 * CT_Q8_0_BYTES] = {0};
    ct_weight w4 = {CT_WEIGHT_Q4_0, 2, 2 * CT_Q_BLOCK, four, NULL, 0};
    ct_weight w8 = {CT_WEIGHT_Q8_0, 2, CT_Q_BLOCK, eight, NULL, 0};
    uint8_t *last = four + 3 * CT_Q4_0_BYTES;
    double row[2 * CT_Q_BLOCK];

    (void)state;
    last[1] = 0x3e; /* 1.5 */
    last[2] = 0x1f; /* columns 0 and 16: 15 - 8, 1 - 8 */
    ct_ref_decode_row(ct_ref_of(f.b), row, &w4, 1);
    assert_true(row[0] == 0 && row[31] == 0); /* a block whose scale is 0 */
    assert_true(row[32] == 1.5 * 7 && row[48] == 1.5 * -7 && row[63] == 1.5 * -8);
    eight[CT_Q8_0_BYTES] = 1; /* 2^-24: the least */
    eight[CT_Q8_0_BYTES + 2 + 31] = 0x80;
    ct_ref_decode_row(ct_ref_of(f.b), row, &w8, 1);
    assert_true(row[0] == 0 && row[31] == -128 * 0x1p-24);
    drop(&f);
}

static void linear_is_the_same_for_every_batch_and_thread_count(void **state)
{
    enum { MAX_T = 9, ROWS = 37, COLS = 501 };
    static uint16_t data[ROWS * COLS];
    static float x[MAX_T * COLS], y[MAX_T * ROWS], one[ROWS], y3[MAX_T * ROWS];
    fixture f = make(CT_REF_F32, 1), f3 = make(CT_REF_F32, 3);
    ct_weight w = {CT_WEIGHT_BF16, ROWS, COLS, data, NULL, 0};

    (void)state;
    fill_bf16(&f, data, ROWS * COLS);
    fill(&f, x, MAX_T * COLS);
    f.ops->linear(f.b, y, x, &w, MAX_T);
    f3.ops->linear(f3.b, y3, x, &w, MAX_T);
    assert_memory_equal(y, y3, sizeof y);
    for (size_t t = 0; t < MAX_T; t++) {
        f.ops->linear(f.b, one, x + t * COLS, &w, 1);
        assert_memory_equal(one, y + t * ROWS, sizeof one);
        for (size_t i = 0; i < ROWS; i++) {
            long double sum = 0;

            for (size_t j = 0; j < COLS; j++)
                sum += (long double)ct_bf16_f32(data[i * COLS + j]) * x[t * COLS + j];
            near(one[i], (double)sum, 1e-6 * (1 + fabs((double)sum)), "linear");
        }
    }
    drop(&f);
    drop(&f3);
}

/* --- norms --------------------------------------------------------------------- */

static void rms_norm_uses_the_weight_as_stored(void **state)
{
    fixture f = make(CT_REF_F32, 1);
    const float x[2] = {3, 4};
    const uint16_t w[2] = {ct_f32_bf16(1.0f), ct_f32_bf16(-0.5f)};
    float y[2];

    (void)state;
    f.ops->rms_norm(f.b, y, x, w, 1, 2, 0.0f);
    near(y[0], 3 / sqrt(12.5), 1e-7, "norm");
    near(y[1], -2 / sqrt(12.5), 1e-7, "norm");
    f.ops->rms_norm(f.b, y, x, w, 1, 2, 12.5f);
    near(y[0], 3 / sqrt(25.0), 1e-7, "norm with eps");
    drop(&f);
}

static void add_norm_scales_the_whole_stream_last(void **state)
{
    fixture f = make(CT_REF_F32, 1);
    float x[2] = {10, 20}, out[2];
    const float y[2] = {3, 4};
    const uint16_t one[2] = {0x3f80, 0x3f80}, half = 0x3f00;
    const double r = 1 / sqrt(12.5);
    ct_add_norm_args a = {.x = x, .y = y, .post = one, .next = one, .out = out, .width = 2};
    double x0 = (10 + 3 * r) / 2, x1 = (20 + 4 * r) / 2;

    (void)state;
    a.scalar = &half;
    f.ops->add_norm(f.b, &a, 1);
    near(x[0], x0, 1e-5, "stream");
    near(x[1], x1, 1e-5, "stream");
    near(out[1], x1 / sqrt((x0 * x0 + x1 * x1) / 2), 1e-6, "next norm");
    drop(&f);
}

static void bf16_mode_rounds_each_step_of_add_norm(void **state)
{
    fixture f = make(CT_REF_BF16, 1);
    float x[2] = {1, 256}, out[2];
    /* rms(y) = (0.6 * sqrt 2, 0.8 * sqrt 2) = (0.84853, 1.13137), in bf16 0.84765625, 1.1328125. */
    const float y[2] = {3, 4};
    const uint16_t one[2] = {0x3f80, 0x3f80}, third = ct_f32_bf16(0.3333f);
    ct_add_norm_args a = {
        .x = x, .y = y, .post = one, .scalar = &third, .next = one, .out = out, .width = 2};

    (void)state;
    f.ops->add_norm(f.b, &a, 1);
    /* 1.84765625 is a bf16 number no more: 1.8515625 or 1.84375, a tie to even. */
    assert_true(x[0] == ct_round_bf16(1.84375f * ct_bf16_f32(third)));
    /* 257.13 → 258 or 256: the step at 256 is 2. */
    assert_true(x[1] == ct_round_bf16(258.0f * ct_bf16_f32(third)));
    drop(&f);
}

/* --- RoPE ---------------------------------------------------------------------- */

static void rope_frequencies_have_the_published_values(void **state)
{
    static const struct {
        unsigned i;
        float inv;
    } sliding[] = {{0, 1.0f},          {1, 0.93057203f}, {2, 0.86596435f},
                   {63, 0.010746079f}, {64, 0.01f},      {127, 0.000107460786f}},
      global[] = {{0, 1.0f},         {1, 0.94746351f},  {2, 0.89768714f},
                  {31, 0.18768843f}, {32, 0.17782794f}, {63, 0.033376247f}};
    float inv[256];

    (void)state;
    ct_ref_rope_inv(inv, &(ct_rope){1e4, 128}, 256);
    for (size_t i = 0; i < CT_LEN(sliding); i++)
        near(inv[sliding[i].i], sliding[i].inv, 1e-7 * sliding[i].inv, "sliding inv");
    ct_ref_rope_inv(inv, &(ct_rope){1e6, 64}, 512);
    for (size_t i = 0; i < CT_LEN(global); i++)
        near(inv[global[i].i], global[i].inv, 1e-7 * global[i].inv, "global inv");
    for (size_t i = 64; i < 256; i++)
        assert_true(inv[i] == 0.0f);
}

static void rope_turns_split_halves_and_leaves_the_rest(void **state)
{
    fixture f = make(CT_REF_F32, 1);
    const float inv[2] = {1.0f, 0.5f};
    float turn[8], x[8] = {1, 2, 3, 4, 5, 6, 7, 8};

    (void)state;
    ct_ref_rope_turn(ct_ref_of(f.b), turn, inv, 3, 2);
    ct_ref_rope(ct_ref_of(f.b), x, turn, 2, 8);
    near(x[0], cos(3.0) - 5 * sin(3.0), 1e-6, "pair 0");
    near(x[4], 5 * cos(3.0) + sin(3.0), 1e-6, "pair 0");
    near(x[1], 2 * cos(1.5) - 6 * sin(1.5), 1e-6, "pair 1");
    near(x[5], 6 * cos(1.5) + 2 * sin(1.5), 1e-6, "pair 1");
    assert_true(x[2] == 3 && x[3] == 4 && x[6] == 7 && x[7] == 8);
    drop(&f);
}

static void rope_angles_are_f32_products_reduced_exactly(void **state)
{
    fixture f = make(CT_REF_F32, 1);
    float inv[128], turn[256];

    (void)state;
    ct_ref_rope_inv(inv, &(ct_rope){1e4, 128}, 256);
    ct_ref_rope_turn(ct_ref_of(f.b), turn, inv, 262143, 128);
    for (size_t i = 0; i < 128; i++) {
        float angle = 262143.0f * inv[i];

        near(turn[i], (double)cosl(angle), 6e-8, "cos");
        near(turn[128 + i], (double)sinl(angle), 6e-8, "sin");
    }
    drop(&f);
}

/* --- attention ----------------------------------------------------------------- */

/* With q = 0 every visible key weighs the same, so the output is the mean of the visible
 * values; the value at position s is s. */
static void check_window(fixture *f, uint32_t window, uint32_t page_tokens)
{
    enum { N = 1100 };
    const uint32_t max_blocks = N / page_tokens + 1;
    uint32_t *pages = calloc(max_blocks, sizeof *pages);
    float *k = calloc((size_t)max_blocks * page_tokens * 2, sizeof *k);
    float *v = calloc((size_t)max_blocks * page_tokens * 2, sizeof *v);
    ct_kv_layer kv = {.k = k,
                      .v = v,
                      .page_tokens = page_tokens,
                      .n_pages = max_blocks,
                      .kv_heads = 1,
                      .head_dim = 2,
                      .pages = pages,
                      .max_blocks = max_blocks,
                      .window = window};
    const uint32_t pos[] = {0, 1, 1022, 1023, 1024, 1025, N - 1}, seq[CT_LEN(pos)] = {0};
    const float q[CT_LEN(pos) * 2] = {0};
    float out[CT_LEN(pos) * 2];

    for (uint32_t i = 0; i < max_blocks; i++)
        pages[i] = max_blocks - 1 - i; /* any order */
    for (uint32_t s = 0; s < N; s++) {
        size_t slot = (size_t)pages[s / page_tokens] * page_tokens + s % page_tokens;

        v[slot * 2] = (float)s;
        v[slot * 2 + 1] = -(float)s;
        k[slot * 2] = 1.0f;
    }
    f->ops->attend(f->b, &(ct_rows){CT_LEN(pos), NULL, pos, seq},
                   &(ct_attend_args){.out = out, .q = q, .n_heads = 1, .kv = &kv});
    for (size_t i = 0; i < CT_LEN(pos); i++) {
        uint32_t first = window && pos[i] + 1 > window ? pos[i] + 1 - window : 0;
        double mean = (first + (double)pos[i]) / 2;

        near(out[2 * i], mean, 1e-6 * (mean + 1), "mean of the visible positions");
        near(out[2 * i + 1], -mean, 1e-6 * (mean + 1), "mean of the visible positions");
    }
    free(pages);
    free(k);
    free(v);
}

static void sliding_rows_see_exactly_the_window(void **state)
{
    fixture f = make(CT_REF_F32, 2);

    (void)state;
    for (uint32_t page_tokens = 1; page_tokens <= 100; page_tokens += 33) {
        check_window(&f, 1024, page_tokens);
        check_window(&f, 1, page_tokens);
        check_window(&f, 0, page_tokens);
    }
    drop(&f);
}

static void query_heads_share_key_heads_in_order(void **state)
{
    enum { H = 4, KVH = 2, D = 2 };
    fixture f = make(CT_REF_F32, 1);
    float k[2 * KVH * D] = {0}, v[2 * KVH * D], q[H * D], out[H * D];
    const uint32_t page = 0, pos = 1, seq = 0;
    ct_kv_layer kv = {.k = k,
                      .v = v,
                      .page_tokens = 2,
                      .n_pages = 1,
                      .kv_heads = KVH,
                      .head_dim = D,
                      .pages = &page,
                      .max_blocks = 1};

    (void)state;
    for (size_t i = 0; i < CT_LEN(v); i++)
        v[i] = (float)i;
    for (size_t i = 0; i < CT_LEN(q); i++)
        q[i] = 1;
    k[1 * KVH * D] = 2.0f; /* position 1, head 0: score 2 against 0 */
    f.ops->attend(f.b, &(ct_rows){1, NULL, &pos, &seq},
                  &(ct_attend_args){.out = out, .q = q, .n_heads = H, .kv = &kv});
    for (size_t h = 0; h < H; h++) {
        size_t kv_head = h / 2;
        double p = kv_head == 0 ? 1 / (1 + exp(-2.0)) : 0.5; /* of position 1 */

        near(out[h * D], (1 - p) * v[kv_head * D] + p * v[(KVH + kv_head) * D], 1e-6, "head");
    }
    drop(&f);
}

static void qkv_finish_writes_normed_keys_and_weightless_values(void **state)
{
    enum { D = 4 };
    fixture f = make(CT_REF_F32, 1);
    float q[D] = {1, 2, 3, 4}, k[2 * D] = {0}, v[2 * D] = {0};
    const float k_raw[D] = {2, 2, 2, 2};
    const uint16_t two[D] = {0x4000, 0x4000, 0x4000, 0x4000};
    const uint32_t page = 0, pos = 1, seq = 0;
    ct_kv_layer kv = {.k = k,
                      .v = v,
                      .page_tokens = 2,
                      .n_pages = 1,
                      .kv_heads = 1,
                      .head_dim = D,
                      .pages = &page,
                      .max_blocks = 1};

    (void)state;
    f.ops->qkv_finish(f.b, &(ct_rows){1, NULL, &pos, &seq},
                      &(ct_qkv_args){.q = q,
                                     .k = k_raw,
                                     .v = k_raw,
                                     .q_norm = two,
                                     .k_norm = two,
                                     .n_heads = 1,
                                     .rope = {1e4, 1},
                                     .kv = &kv});
    for (size_t i = 0; i < D; i++) {
        assert_true(k[i] == 0 && v[i] == 0); /* the slot of position 0 */
        near(v[D + i], 1, 1e-6, "value");
    }
    near(k[D], 2 * cos(1.0) - 2 * sin(1.0), 1e-6, "turned key");
    near(k[D + 2], 2 * cos(1.0) + 2 * sin(1.0), 1e-6, "turned key");
    near(k[D + 1], 2, 1e-6, "key that does not turn");
    near(q[3], 8 / sqrt(7.5), 1e-6, "query that does not turn");
    drop(&f);
}

enum { FD = 32, FT = 21, FH = 4, FKVH = 2, FPAGE = 4, FPAGES = 7 };

static size_t bytes_of(ct_kv_type type)
{
    return type == CT_KV_F32 ? 4 : type == CT_KV_BF16 ? 2 : 1;
}

/* As a store of this type gives it back. */
static float stored(ct_kv_type type, float x)
{
    if (type == CT_KV_FP8)
        return ct_e4m3_f32(ct_f32_e4m3(x));
    return type == CT_KV_BF16 ? ct_round_bf16(x) : x;
}

typedef struct folded_case {
    fixture *f;
    ct_kv_type type;
    float raw[FT * FKVH * FD], q[FT * FH * FD], out[FT * FH * FD];
    uint16_t norm[FD];
    ct_rope rope;
} folded_case;

/* FT rows of one sequence into a folded store, written and then read in one go. */
static void run_folded(folded_case *c)
{
    static const uint32_t pages[FPAGES] = {3, 0, 5, 1, 6, 2, 4};
    uint32_t pos[FT], seq[FT] = {0};
    ct_rows rows = {FT, NULL, pos, seq};
    ct_kv_layer kv = {.v = calloc(FPAGES * FPAGE * FKVH * FD, bytes_of(c->type)),
                      .type = c->type,
                      .page_tokens = FPAGE,
                      .n_pages = FPAGES,
                      .kv_heads = FKVH,
                      .head_dim = FD,
                      .pages = pages,
                      .max_blocks = FPAGES};

    for (uint32_t i = 0; i < FT; i++)
        pos[i] = i;
    c->f->ops->qkv_finish(c->f->b, &rows,
                          &(ct_qkv_args){.q = c->q,
                                         .k = c->raw,
                                         .v = c->raw,
                                         .q_norm = c->norm,
                                         .k_norm = c->norm,
                                         .n_heads = FH,
                                         .rope = c->rope,
                                         .kv = &kv});
    c->f->ops->attend(c->f->b, &rows,
                      &(ct_attend_args){.out = c->out,
                                        .q = c->q,
                                        .n_heads = FH,
                                        .kv = &kv,
                                        .k_norm = c->norm,
                                        .rope = c->rope});
    free(kv.v);
}

/* Of the head of one token: the value as stored, and the key that follows from it. */
static void fold_by_hand(const folded_case *c, double *value, double *key, uint32_t pos,
                         uint32_t head)
{
    const float *x = c->raw + (pos * FKVH + head) * FD;
    double square = 0;

    for (unsigned i = 0; i < FD; i++)
        square += (double)x[i] * x[i] / FD;
    for (unsigned i = 0; i < FD; i++) {
        value[i] = stored(c->type, (float)(x[i] / sqrt(square)));
        key[i] = value[i] * ct_bf16_f32(c->norm[i]);
    }
    for (unsigned i = 0; i < c->rope.n_pairs; i++) {
        double angle = pos * pow(c->rope.theta, -2.0 * i / FD), a = key[i], b = key[i + FD / 2];

        key[i] = a * cos(angle) - b * sin(angle);
        key[i + FD / 2] = b * cos(angle) + a * sin(angle);
    }
}

/* Row t, query head h, from the definition. */
static void attend_by_hand(const folded_case *c, double *out, uint32_t t, uint32_t h)
{
    double p[FT], value[FT][FD], key[FD], sum = 0;

    for (uint32_t s = 0; s <= t; s++) {
        double score = 0;

        fold_by_hand(c, value[s], key, s, h * FKVH / FH);
        for (unsigned i = 0; i < FD; i++)
            score += c->q[(t * FH + h) * FD + i] * key[i];
        p[s] = exp(score);
        sum += p[s];
    }
    for (unsigned i = 0; i < FD; i++) {
        out[i] = 0;
        for (uint32_t s = 0; s <= t; s++)
            out[i] += p[s] / sum * value[s][i];
    }
}

static void folded_stores_give_keys_from_the_values_as_stored(void **state)
{
    (void)state;
    for (unsigned type = CT_KV_F32; type <= CT_KV_FP8; type++) {
        fixture f = make(CT_REF_F32, 2);
        folded_case c = {.f = &f, .type = (ct_kv_type)type, .rope = {1e6, 5}};

        fill(&f, c.raw, CT_LEN(c.raw));
        fill(&f, c.q, CT_LEN(c.q));
        fill_bf16(&f, c.norm, FD);
        run_folded(&c);
        for (uint32_t t = 0; t < FT; t++)
            for (uint32_t h = 0; h < FH; h++) {
                double want[FD];

                attend_by_hand(&c, want, t, h);
                for (unsigned i = 0; i < FD; i++)
                    near(c.out[(t * FH + h) * FD + i], want[i], 2e-5, "folded attention");
            }
        drop(&f);
    }
}

/* Two models' shapes in turn on one backend: the turns kept for one must not serve the
 * other. */
static void turns_are_those_of_the_layer_s_rope(void **state)
{
    fixture f = make(CT_REF_F32, 1);
    folded_case a = {.f = &f, .rope = {1e6, 5}}, b;
    float first[CT_LEN(a.out)];

    (void)state;
    fill(&f, a.raw, CT_LEN(a.raw));
    fill(&f, a.q, CT_LEN(a.q));
    fill_bf16(&f, a.norm, FD);
    b = a;
    run_folded(&a);
    memcpy(first, a.out, sizeof first);
    a = b;
    a.rope = (ct_rope){1e4, 16};
    run_folded(&a);
    assert_memory_not_equal(a.out, first, sizeof first);
    a = b;
    run_folded(&a);
    assert_memory_equal(a.out, first, sizeof first);
    drop(&f);
}

static void typed_stores_round_keys_and_values(void **state)
{
    (void)state;
    for (unsigned type = CT_KV_F32; type <= CT_KV_FP8; type++) {
        fixture f = make(CT_REF_F32, 1);
        float q[FD] = {0}, k[FD], v[FD], got[FD];
        const uint16_t one[FD] = {0};
        const uint32_t page = 0, pos = 0, seq = 0;
        ct_kv_layer kv = {.type = (ct_kv_type)type,
                          .page_tokens = 1,
                          .n_pages = 1,
                          .kv_heads = 1,
                          .head_dim = FD,
                          .pages = &page,
                          .max_blocks = 1};
        double square = 0;

        fill(&f, k, FD);
        fill(&f, v, FD);
        for (unsigned i = 0; i < FD; i++)
            square += (double)v[i] * v[i] / FD;
        test_ok(f.ops->alloc(f.b, &kv.k, ct_kv_elem(kv.type), FD, &err), &err);
        test_ok(f.ops->alloc(f.b, &kv.v, ct_kv_elem(kv.type), FD, &err), &err);
        f.ops->qkv_finish(f.b, &(ct_rows){1, NULL, &pos, &seq},
                          &(ct_qkv_args){.q = q,
                                         .k = k,
                                         .v = v,
                                         .q_norm = one,
                                         .k_norm = one,
                                         .n_heads = 1,
                                         .eps = 1e-6f,
                                         .rope = {1e4, FD / 2},
                                         .kv = &kv});
        test_ok(f.ops->read(f.b, got, kv.v, ct_kv_elem(kv.type), 0, FD, &err), &err);
        for (unsigned i = 0; i < FD; i++) {
            double exact = v[i] / sqrt(square + 1e-6);

            assert_true(got[i] == stored(kv.type, (float)exact));
        }
        drop(&f);
    }
}

/* --- feed forward ---------------------------------------------------------------- */

static void head_caps_logits_softly(void **state)
{
    fixture f = make(CT_REF_F32, 1);
    const uint16_t table[3] = {ct_f32_bf16(0.0f), ct_f32_bf16(15.0f), ct_f32_bf16(-1000.0f)};
    ct_weight w = {CT_WEIGHT_BF16, 3, 1, table, NULL, 0};
    const float x[2] = {1, 2};
    float logits[6];

    (void)state;
    f.ops->head(f.b, logits, x, &w, 2, 30.0f);
    assert_true(logits[0] == 0);
    near(logits[1], 30 * tanh(0.5), 1e-5, "softcap");
    near(logits[2], -30, 1e-5, "softcap");
    near(logits[4], 30 * tanh(1.0), 1e-5, "softcap");
    drop(&f);
}

/* A router whose logit of expert e is column e of the normed row. */
static void route_one(fixture *f, uint32_t *picks, float *weights, const float *x, uint32_t E,
                      uint32_t top_k)
{
    uint16_t proj[64 * 64] = {0}, scale[64], per_expert[64];

    for (uint32_t i = 0; i < E; i++) {
        proj[i * E + i] = ct_f32_bf16(1.0f);
        scale[i] = ct_f32_bf16(sqrtf((float)E)); /* undoes 1/sqrt(H) for square E */
        per_expert[i] = ct_f32_bf16(1.0f + (float)i);
    }
    f->ops->route(f->b, picks, weights, x,
                  &(ct_router){{CT_WEIGHT_BF16, E, E, proj, NULL, 0}, scale, per_expert, E, top_k},
                  1, 0.0f);
}

static void router_ties_go_to_the_lower_expert(void **state)
{
    fixture f = make(CT_REF_F32, 1);
    float x[16], w[4];
    uint32_t picks[4];

    (void)state;
    for (size_t i = 0; i < 16; i++)
        x[i] = 1;
    route_one(&f, picks, w, x, 16, 4);
    for (uint32_t i = 0; i < 4; i++) {
        assert_int_equal(picks[i], i);
        near(w[i], 0.25 * (1 + i), 1e-6, "weight, renormalised and then scaled");
    }
    x[9] = x[3] = 1.5f; /* these two first, then 0 and 1 of the equal rest */
    route_one(&f, picks, w, x, 16, 4);
    assert_int_equal(picks[0], 0);
    assert_int_equal(picks[1], 1);
    assert_int_equal(picks[2], 3);
    assert_int_equal(picks[3], 9);
    near(w[3] / 10, w[2] / 4, 1e-6, "equal probabilities");
    drop(&f);
}

static void router_stays_in_range_on_nan(void **state)
{
    fixture f = make(CT_REF_F32, 1);
    float x[16], w[4];
    uint32_t picks[4];

    (void)state;
    for (size_t i = 0; i < 16; i++)
        x[i] = NAN;
    route_one(&f, picks, w, x, 16, 4);
    for (uint32_t i = 0; i < 4; i++)
        assert_true(picks[i] < 16);
    drop(&f);
}

enum { EXPERTS = 16, TOP_K = 2, HIDDEN = 24, INNER = 10, ROWS = 7 };

typedef struct expert_set {
    uint16_t gate[EXPERTS][INNER * HIDDEN], up[EXPERTS][INNER * HIDDEN];
    uint16_t down[EXPERTS][HIDDEN * INNER];
    ct_weight w[3][EXPERTS];
} expert_set;

static double entry(const ct_weight *w, size_t row, size_t col)
{
    return ct_bf16_f32(((const uint16_t *)w->data)[row * w->cols + col]);
}

static void naive_experts(double *y, const float *x, const uint32_t *picks, const float *weights,
                          const expert_set *s)
{
    for (size_t i = 0; i < ROWS * HIDDEN; i++)
        y[i] = 0;
    for (size_t p = 0; p < ROWS * TOP_K; p++) {
        const float *in = x + p / TOP_K * HIDDEN;

        for (size_t m = 0; m < INNER; m++) {
            double g = 0, u = 0;

            for (size_t i = 0; i < HIDDEN; i++) {
                g += entry(&s->w[0][picks[p]], m, i) * in[i];
                u += entry(&s->w[1][picks[p]], m, i) * in[i];
            }
            for (size_t i = 0; i < HIDDEN; i++)
                y[p / TOP_K * HIDDEN + i] +=
                    weights[p] * entry(&s->w[2][picks[p]], i, m) * ct_ref_gelu(g) * u;
        }
    }
}

static void experts_agree_with_a_plain_sum_when_skewed_or_empty(void **state)
{
    static expert_set s;
    static const uint32_t picks[3][ROWS * TOP_K] = {
        {0, 15, 0, 15, 0, 15, 0, 15, 0, 15, 0, 15, 0, 15}, /* all on the two ends */
        {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13},    /* one row each, two empty */
        {7, 8, 3, 7, 0, 7, 7, 15, 1, 2, 2, 7, 6, 7},
    };
    fixture f = make(CT_REF_F32, 2);
    float x[ROWS * HIDDEN], weights[ROWS * TOP_K], y[ROWS * HIDDEN], one[HIDDEN];
    double want[ROWS * HIDDEN];

    (void)state;
    for (size_t e = 0; e < EXPERTS; e++) {
        fill_bf16(&f, s.gate[e], INNER * HIDDEN);
        fill_bf16(&f, s.up[e], INNER * HIDDEN);
        fill_bf16(&f, s.down[e], HIDDEN * INNER);
        s.w[0][e] = (ct_weight){CT_WEIGHT_BF16, INNER, HIDDEN, s.gate[e], NULL, 0};
        s.w[1][e] = (ct_weight){CT_WEIGHT_BF16, INNER, HIDDEN, s.up[e], NULL, 0};
        s.w[2][e] = (ct_weight){CT_WEIGHT_BF16, HIDDEN, INNER, s.down[e], NULL, 0};
    }
    fill(&f, x, CT_LEN(x));
    fill(&f, weights, CT_LEN(weights));
    ct_expert_weights e = {s.w[0], s.w[1], s.w[2], EXPERTS, TOP_K};
    for (size_t c = 0; c < CT_LEN(picks); c++) {
        f.ops->experts(f.b, y, x, picks[c], weights, &e, ROWS);
        naive_experts(want, x, picks[c], weights, &s);
        for (size_t i = 0; i < CT_LEN(y); i++)
            near(y[i], want[i], 1e-5, "experts");
        for (size_t t = 0; t < ROWS; t++) {
            f.ops->experts(f.b, one, x + t * HIDDEN, picks[c] + t * TOP_K, weights + t * TOP_K, &e,
                           1);
            assert_memory_equal(one, y + t * HIDDEN, sizeof one);
        }
    }
    drop(&f);
}

static void embed_scales_and_gather_picks_rows(void **state)
{
    fixture f = make(CT_REF_F32, 1);
    const uint16_t table[4] = {ct_f32_bf16(1.0f), ct_f32_bf16(2.0f), ct_f32_bf16(3.0f),
                               ct_f32_bf16(-4.0f)};
    ct_weight w = {CT_WEIGHT_BF16, 2, 2, table, NULL, 0};
    const uint32_t ids[3] = {1, 0, 1}, index[2] = {2, 1};
    float x[6], y[4];

    (void)state;
    f.ops->embed(f.b, x, &(ct_rows){3, ids, NULL, NULL}, &w, 73.5f);
    assert_true(x[0] == 3 * 73.5f && x[1] == -4 * 73.5f && x[2] == 73.5f && x[5] == x[1]);
    f.ops->gather(f.b, y, x, index, 2, 2);
    assert_true(y[0] == x[4] && y[1] == x[5] && y[2] == x[2] && y[3] == x[3]);
    drop(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(dot_agrees_with_a_plain_sum_at_every_length),
        cmocka_unit_test(gelu_has_the_tanh_form),
        cmocka_unit_test(nvfp4_rows_decode_by_nibble_and_block),
        cmocka_unit_test(fp8_rows_decode_with_the_scale_of_their_row),
        cmocka_unit_test(gguf_rows_decode_by_block),
        cmocka_unit_test(linear_is_the_same_for_every_batch_and_thread_count),
        cmocka_unit_test(rms_norm_uses_the_weight_as_stored),
        cmocka_unit_test(add_norm_scales_the_whole_stream_last),
        cmocka_unit_test(bf16_mode_rounds_each_step_of_add_norm),
        cmocka_unit_test(rope_frequencies_have_the_published_values),
        cmocka_unit_test(rope_turns_split_halves_and_leaves_the_rest),
        cmocka_unit_test(rope_angles_are_f32_products_reduced_exactly),
        cmocka_unit_test(sliding_rows_see_exactly_the_window),
        cmocka_unit_test(query_heads_share_key_heads_in_order),
        cmocka_unit_test(qkv_finish_writes_normed_keys_and_weightless_values),
        cmocka_unit_test(folded_stores_give_keys_from_the_values_as_stored),
        cmocka_unit_test(turns_are_those_of_the_layer_s_rope),
        cmocka_unit_test(typed_stores_round_keys_and_values),
        cmocka_unit_test(head_caps_logits_softly),
        cmocka_unit_test(router_ties_go_to_the_lower_expert),
        cmocka_unit_test(router_stays_in_range_on_nan),
        cmocka_unit_test(experts_agree_with_a_plain_sum_when_skewed_or_empty),
        cmocka_unit_test(embed_scales_and_gather_picks_rows),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
