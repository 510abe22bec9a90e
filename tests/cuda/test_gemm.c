/* ops/cuda/gemm on a device: values against f64, and the same bits whatever the number of
 * rows, the kernel and the path.
 *
 *     test_gemm          the weights of the 12B and the 31B model, and the edges
 *     test_gemm quick    a few edges and rows only, for compute-sanitizer
 *     test_gemm quick 'every_edge*'    one test of these; racecheck needs a minute for it
 *
 * Skips with a message where there is no GPU. */
#include "support.h"

#include <cuda_runtime_api.h>
#include <math.h>
#include <string.h>

#include "base/checked.h"
#include "base/num.h"
#include "ops/cuda/device.h"
#include "ops/cuda/gemm.h"
#include "ops/cuda/gemm_kernels.h"

enum {
    REF_ROWS = 2048, /* rows of the run whose bits the others must have */
    SHIFT = 5,       /* rows by which a shifted batch starts later */
    SAMPLES = 96,    /* outputs compared with f64, of each run */
    GUARD = 512,     /* bytes behind y that nobody may touch */
};

/* Random numbers repeat with a period that divides no row length: element i of a buffer is
 * block[i % period]. */
typedef struct numbers {
    uint16_t *block; /* bf16 */
    size_t period;
} numbers;

static struct {
    bool present, quick;
    numbers w, x;
    size_t w_count, x_count, y_bytes;
    uint16_t *dev_w, *dev_x;
    uint8_t *dev_y, *got, *want; /* got and want on the host */
    void *workspace;
    ct_gemm *wgmma, *mma;
    cudaStream_t stream;
} t;

typedef struct shape {
    const char *name;
    uint32_t rows, cols;
    ct_gemm_kind kind;
} shape;

static const shape model_weights[] = {
    {"31b qkv sliding", 16384, 5376, CT_GEMM_PLAIN}, {"31b qk global", 18432, 5376, CT_GEMM_PLAIN},
    {"31b o sliding", 5376, 8192, CT_GEMM_PLAIN},    {"31b o global", 5376, 16384, CT_GEMM_PLAIN},
    {"31b gate_up", 43008, 5376, CT_GEMM_GATE_UP},   {"31b down", 5376, 21504, CT_GEMM_PLAIN},
    {"12b qkv sliding", 8192, 3840, CT_GEMM_PLAIN},  {"12b qk global", 8704, 3840, CT_GEMM_PLAIN},
    {"12b o sliding", 3840, 4096, CT_GEMM_PLAIN},    {"12b o global", 3840, 8192, CT_GEMM_PLAIN},
    {"12b gate_up", 30720, 3840, CT_GEMM_GATE_UP},   {"12b down", 3840, 15360, CT_GEMM_PLAIN},
    {"31b head", 262144, 5376, CT_GEMM_PLAIN},       {"12b head", 262144, 3840, CT_GEMM_PLAIN},
};

/* Tails of every kind: rows that fill no tile, K that fills no atom, no k16 step. */
static const shape edges[] = {
    {"one row", 1, 8, CT_GEMM_PLAIN},
    {"seven rows", 7, 72, CT_GEMM_PLAIN},
    {"odd", 65, 200, CT_GEMM_PLAIN},
    {"odd rows", 1001, 1032, CT_GEMM_PLAIN},
    {"small pairs", 16, 64, CT_GEMM_GATE_UP},
    {"odd pairs", 1008, 712, CT_GEMM_GATE_UP},
    {"26b dense gate_up", 4224, 2816, CT_GEMM_GATE_UP},
    {"26b dense down", 2816, 2112, CT_GEMM_PLAIN},
    {"26b expert down", 2816, 704, CT_GEMM_PLAIN},
};

static const uint32_t row_counts[] = {1, 2, 3, 8, 9, 16, 17, 64, 65, 256, 2048};

/* ---- data ----------------------------------------------------------------- */

static uint64_t next_random(uint64_t *state)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15u;

    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

static void cuda_ok(cudaError_t e)
{
    if (e != cudaSuccess)
        fail_msg("CUDA: %s", cudaGetErrorString(e));
}

static void numbers_make(numbers *n, size_t period, uint64_t seed)
{
    n->block = malloc(period * sizeof *n->block);
    n->period = period;
    assert_non_null(n->block);
    for (size_t i = 0; i < period; i++) {
        const double unit = (double)(next_random(&seed) >> 11) * 0x1p-52 - 1;

        n->block[i] = ct_f32_bf16((float)unit);
    }
}

static float number(const numbers *n, size_t i)
{
    return ct_bf16_f32(n->block[i % n->period]);
}

static void upload(uint16_t **dev, const numbers *n, size_t count)
{
    cuda_ok(cudaMalloc((void **)dev, count * sizeof **dev));
    for (size_t at = 0; at < count; at += n->period)
        cuda_ok(cudaMemcpy(*dev + at, n->block, ct_min_size(n->period, count - at) * sizeof **dev,
                           cudaMemcpyHostToDevice));
}

static uint32_t outputs(const shape *s)
{
    return s->kind == CT_GEMM_GATE_UP ? s->rows / 2 : s->rows;
}

/* The reference run of a head would be a gigabyte: the engine never asks for one. */
static uint32_t ref_rows(const shape *s)
{
    return t.quick ? 72 : s->rows > 100000 ? 256 : REF_ROWS;
}

/* ---- running -------------------------------------------------------------- */

static ct_gemm_weight *bind(const ct_gemm *g, const shape *s)
{
    const ct_gemm_matrix m = {
        .name = s->name, .data = t.dev_w, .rows = s->rows, .cols = s->cols, .kind = s->kind};
    ct_gemm_weight *w = NULL;
    ct_error err;

    test_ok(ct_gemm_bind(&w, g, &m, &err), &err);
    return w;
}

static size_t elem_bytes(ct_gemm_elem elem)
{
    return elem == CT_GEMM_F32 ? 4 : 2;
}

/* Rows of y lie this far apart: the unit that the interface asks for, and some more. */
static size_t stride_y(const shape *s)
{
    return ((size_t)outputs(s) + 7) / 8 * 8 + (s->rows < 10000 ? 8 : 0);
}

static ct_gemm_call call_for(const shape *s, uint32_t rows, uint32_t first, ct_gemm_elem elem)
{
    return (ct_gemm_call){.y = t.dev_y,
                          .x = t.dev_x + (size_t)first * s->cols,
                          .ldy = stride_y(s),
                          .ldx = s->cols,
                          .rows = rows,
                          .elem = elem};
}

/* Poisons y, runs, and brings y with its guard to `out`. */
static void fetch(uint8_t *out, const ct_gemm_call *c, ct_status st, const ct_error *err)
{
    const size_t bytes = c->rows * c->ldy * elem_bytes(c->elem) + GUARD;

    test_ok(st, err);
    cuda_ok(cudaMemcpyAsync(out, t.dev_y, bytes, cudaMemcpyDeviceToHost, t.stream));
    cuda_ok(cudaStreamSynchronize(t.stream));
}

static void poison(const ct_gemm_call *c)
{
    const size_t bytes = c->rows * c->ldy * elem_bytes(c->elem) + GUARD;

    assert_true(bytes <= t.y_bytes);
    cuda_ok(cudaMemsetAsync(t.dev_y, 0xff, bytes, t.stream));
}

static void run(uint8_t *out, ct_gemm *g, const ct_gemm_weight *w, const ct_gemm_call *c)
{
    ct_error err;

    poison(c);
    fetch(out, c, ct_gemm_run(g, w, c, t.stream, &err), &err);
}

/* Rows of got must be the rows of want from `first` on, and the gaps between and the bytes
 * behind them untouched. */
static void same_bits(const shape *s, const ct_gemm_call *c, uint32_t first, const char *what)
{
    const size_t elem = elem_bytes(c->elem), row = c->ldy * elem, used = outputs(s) * elem;

    for (uint32_t m = 0; m < c->rows; m++) {
        const uint8_t *got = t.got + m * row, *want = t.want + (first + m) * row;

        if (memcmp(got, want, used) != 0) {
            size_t i = 0;

            while (memcmp(got + i * elem, want + i * elem, elem) == 0)
                i++;
            fail_msg("%s [%u,%u], %u rows from %u, %s: row %u, output %zu has other bits", s->name,
                     s->rows, s->cols, c->rows, first, what, m, i);
        }
        for (size_t i = used; i < row; i++)
            assert_int_equal(got[i], 0xff);
    }
    for (size_t i = 0; i < GUARD; i++)
        assert_int_equal(t.got[c->rows * row + i], 0xff);
}

/* ---- values --------------------------------------------------------------- */

typedef struct exact {
    double value, bound;
} exact;

/* The sum in f64 and how far a chain of k fp32 additions may be from it. */
static exact dot(const shape *s, uint32_t m, uint32_t o)
{
    const size_t wi = (size_t)o * s->cols, xi = (size_t)m * s->cols;
    double sum = 0, size = 0;

    for (uint32_t k = 0; k < s->cols; k++) {
        const double p = (double)number(&t.w, wi + k) * number(&t.x, xi + k);

        sum += p;
        size += fabs(p);
    }
    return (exact){sum, (2 * sqrt(s->cols) + 2) * 0x1p-24 * size};
}

/* gelu(gate) * up of the exact sums.  The bound follows the roundings: half a unit of
 * bf16 (2^-8 of the value) each time, gelu' at most 1.13, and the approximate exponential
 * far below. */
static exact gated(const shape *s, uint32_t m, uint32_t o)
{
    const exact g = dot(s, m, o), u = dot(s, m, s->rows / 2 + o);
    const double z = g.value;
    const double gelu =
        z / 2 * (1 + tanh(sqrt(2 / 3.14159265358979323846) * (z + 0.044715 * z * z * z)));
    const double gate_err = 1.13 * (g.bound + fabs(z) * 0x1p-8) + fabs(gelu) * 0x1p-7;
    const double up_err = u.bound + fabs(u.value) * 0x1p-8;

    return (exact){gelu * u.value, gate_err * fabs(u.value) + up_err * (fabs(gelu) + gate_err) +
                                       fabs(gelu * u.value) * 0x1p-8};
}

static double value_at(const uint8_t *y, size_t i, ct_gemm_elem elem)
{
    float f;
    uint16_t h;

    if (elem == CT_GEMM_F32) {
        memcpy(&f, y + i * 4, 4);
        return f;
    }
    memcpy(&h, y + i * 2, 2);
    return ct_bf16_f32(h);
}

static void check_values(const shape *s, const uint8_t *y, const ct_gemm_call *c)
{
    uint64_t seed = s->rows * 31 + s->cols + c->rows;

    for (int i = 0; i < SAMPLES; i++) {
        const uint32_t m = (uint32_t)(next_random(&seed) % c->rows);
        const uint32_t o = (uint32_t)(next_random(&seed) % outputs(s));
        const exact e = s->kind == CT_GEMM_GATE_UP ? gated(s, m, o) : dot(s, m, o);
        const double got = value_at(y, m * c->ldy + o, c->elem);
        const double rounding = c->elem == CT_GEMM_F32 ? 0 : (fabs(e.value) + e.bound) * 0x1p-8;

        if (!(fabs(got - e.value) <= e.bound + rounding))
            fail_msg("%s [%u,%u], %u rows, output (%u, %u): %.9g, exact %.9g, bound %.3g", s->name,
                     s->rows, s->cols, c->rows, m, o, got, e.value, e.bound + rounding);
    }
}

/* ---- tests ---------------------------------------------------------------- */

static void check_rows(const shape *s, ct_gemm *g, const ct_gemm_weight *w, const char *path)
{
    for (size_t i = 0; i < CT_LEN(row_counts); i++) {
        const uint32_t rows = row_counts[i];
        ct_gemm_call c = call_for(s, rows, 0, CT_GEMM_BF16);

        if (rows > ref_rows(s))
            continue;
        run(t.got, g, w, &c);
        same_bits(s, &c, 0, path);
        check_values(s, t.got, &c);
        if (rows + SHIFT > ref_rows(s))
            continue;
        c = call_for(s, rows, SHIFT, CT_GEMM_BF16);
        c.overlap = true;
        run(t.got, g, w, &c);
        same_bits(s, &c, SHIFT, path);
    }
}

/* Each path at every number of rows has the bits of the wgmma path at the largest. */
static void check_shape(const shape *s)
{
    const ct_gemm_call c = call_for(s, ref_rows(s), 0, CT_GEMM_BF16);
    ct_gemm_weight *w = bind(t.wgmma, s), *v = bind(t.mma, s);

    run(t.want, t.wgmma, w, &c);
    check_values(s, t.want, &c);
    check_rows(s, t.wgmma, w, "wgmma");
    check_rows(s, t.mma, v, "mma.sync");
    ct_gemm_weight_destroy(w);
    ct_gemm_weight_destroy(v);
}

static void need_device(void)
{
    if (!t.present) {
        print_message("skipped: no GPU with wgmma (compute capability 9.0) here\n");
        skip();
    }
}

static void every_weight_gives_a_row_the_same_bits(void **state)
{
    (void)state;
    need_device();
    for (size_t i = 0; i < CT_LEN(model_weights) && !t.quick; i++)
        check_shape(&model_weights[i]);
}

static void every_edge_gives_a_row_the_same_bits(void **state)
{
    (void)state;
    need_device();
    for (size_t i = 0; i < (t.quick ? 5 : CT_LEN(edges)); i++)
        check_shape(&edges[i]);
}

static void check_f32(const shape *s, ct_gemm *g, uint32_t rows, const char *path)
{
    const ct_gemm_call c = call_for(s, rows, 0, CT_GEMM_F32);
    ct_gemm_weight *w = bind(g, s);

    run(t.got, g, w, &c);
    if (g == t.wgmma)
        memcpy(t.want, t.got, rows * c.ldy * 4);
    check_values(s, t.got, &c);
    same_bits(s, &c, 0, path);
    ct_gemm_weight_destroy(w);
}

static void f32_outputs_are_the_accumulators(void **state)
{
    static const uint32_t rows[] = {1, 17, 65, 256, 600};
    static const shape few[] = {{"odd rows", 1001, 1032, CT_GEMM_PLAIN},
                                {"12b o sliding", 3840, 4096, CT_GEMM_PLAIN},
                                {"31b down", 5376, 21504, CT_GEMM_PLAIN}};

    (void)state;
    need_device();
    for (size_t i = 0; i < (t.quick ? 1 : CT_LEN(few)); i++)
        for (size_t j = 0; j < CT_LEN(rows) && !(t.quick && rows[j] > 70); j++) {
            check_f32(&few[i], t.wgmma, rows[j], "wgmma");
            check_f32(&few[i], t.mma, rows[j], "mma.sync");
        }
}

/* Whether a kernel's plan is worth a run: no more than a few times the rows it was made for. */
static bool plan_fits(const ct_gemm_plan *p, uint32_t rows)
{
    const int n = ct_gemm_traits_get(p->kernel)->n;

    return p->tiles_x <= 40 && !(rows < 8 && n > 8);
}

static void check_plans(const shape *s, uint32_t rows)
{
    const ct_gemm_call c = call_for(s, rows, 0, CT_GEMM_BF16);
    ct_gemm_weight *w = bind(t.wgmma, s);
    ct_error err;

    run(t.want, t.mma, w, &c);
    for (int k = 0; k < CT_GEMM_N_KERNELS; k++)
        for (unsigned wish = 0; wish < 3; wish++) {
            ct_gemm_plan p;
            char what[32];

            ct_gemm_plan_make(&p, ct_gemm_device_get(t.wgmma), ct_gemm_shape_get(w),
                              (ct_gemm_kernel)k, (int)rows, wish);
            if (p.chain != (wish == CT_GEMM_CHAIN) || !plan_fits(&p, rows))
                continue;
            poison(&c);
            fetch(t.got, &c, ct_gemm_run_plan(t.wgmma, w, &p, &c, t.stream, &err), &err);
            snprintf(what, sizeof what, "kernel %d, wish %u", k, wish);
            same_bits(s, &c, 0, what);
        }
    ct_gemm_weight_destroy(w);
}

static void every_plan_gives_the_same_bits(void **state)
{
    static const uint32_t rows[] = {1, 33, 65, 130, 300, 777, 2048};
    static const shape some[] = {
        {"odd rows", 1001, 1032, CT_GEMM_PLAIN},       {"odd pairs", 1008, 712, CT_GEMM_GATE_UP},
        {"12b o sliding", 3840, 4096, CT_GEMM_PLAIN},  {"12b qk global", 8704, 3840, CT_GEMM_PLAIN},
        {"12b gate_up", 30720, 3840, CT_GEMM_GATE_UP}, {"31b down", 5376, 21504, CT_GEMM_PLAIN}};

    (void)state;
    need_device();
    for (size_t i = 0; i < (t.quick ? 2 : CT_LEN(some)); i++)
        for (size_t j = 0; j < CT_LEN(rows) && !(t.quick && j > 1); j++)
            check_plans(&some[i], rows[j]);
}

/* Launches of a captured graph overlap and chain; ten rounds must not differ. */
static void a_captured_graph_repeats_its_bits(void **state)
{
    const shape s = {"26b dense down", 2816, 2112, CT_GEMM_PLAIN};
    static const uint32_t rows[] = {7, 200, 1500};
    const size_t n_rows = t.quick ? 1 : CT_LEN(rows);
    const int rounds = t.quick ? 2 : 10;
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    ct_error err;

    (void)state;
    need_device();
    for (size_t i = 0; i < n_rows; i++) {
        ct_gemm_call c = call_for(&s, rows[i], 0, CT_GEMM_BF16);
        ct_gemm_weight *w = bind(t.wgmma, &s);

        run(t.want, t.mma, w, &c);
        c.overlap = true;
        cuda_ok(cudaStreamBeginCapture(t.stream, cudaStreamCaptureModeThreadLocal));
        for (int launch = 0; launch < 8; launch++)
            test_ok(ct_gemm_run(t.wgmma, w, &c, t.stream, &err), &err);
        cuda_ok(cudaStreamEndCapture(t.stream, &graph));
        cuda_ok(cudaGraphInstantiate(&exec, graph, 0));
        for (int round = 0; round < rounds; round++) {
            poison(&c);
            cuda_ok(cudaGraphLaunch(exec, t.stream));
            fetch(t.got, &c, CT_OK, NULL);
            same_bits(&s, &c, 0, "graph");
        }
        cuda_ok(cudaGraphExecDestroy(exec));
        cuda_ok(cudaGraphDestroy(graph));
        ct_gemm_weight_destroy(w);
    }
}

static void wider_rows_of_x_are_skipped_over(void **state)
{
    const shape s = {"odd rows", 1001, 1032, CT_GEMM_PLAIN}, cut = {"cut", 1001, 1024, s.kind};
    ct_gemm *const paths[] = {t.wgmma, t.mma};

    (void)state;
    need_device();
    for (size_t i = 0; i < CT_LEN(paths); i++) {
        ct_gemm_call c = call_for(&cut, 70, 0, CT_GEMM_BF16);
        ct_gemm_weight *w = bind(paths[i], &cut);

        c.ldx = s.cols;
        run(i ? t.got : t.want, paths[i], w, &c);
        if (i)
            same_bits(&cut, &c, 0, "wider x");
        for (uint32_t m = 0; m < 70; m += 23) {
            double sum = 0;

            for (uint32_t k = 0; k < 1024; k++)
                sum += (double)number(&t.w, (size_t)m * 1024 + k) *
                       number(&t.x, (size_t)m * s.cols + k);
            assert_true(fabs(value_at(i ? t.got : t.want, m * c.ldy + m, c.elem) - sum) <=
                        fabs(sum) * 0x1p-8 + 1e-3);
        }
        ct_gemm_weight_destroy(w);
    }
}

static void expect_refused(ct_status st, const ct_error *err, const char *words)
{
    assert_int_equal(st, CT_EINVAL);
    if (!strstr(err->text, words))
        fail_msg("\"%s\" does not say \"%s\"", err->text, words);
}

static void wrong_arguments_are_refused(void **state)
{
    const shape s = {"twelve", 12, 64, CT_GEMM_PLAIN}, pairs = {"pairs", 32, 64, CT_GEMM_GATE_UP};
    const ct_gemm_matrix odd_cols = {"odd", t.dev_w, 12, 63, CT_GEMM_PLAIN},
                         odd_pairs = {"odd", t.dev_w, 24, 64, CT_GEMM_GATE_UP},
                         no_rows = {"none", t.dev_w, 0, 64, CT_GEMM_PLAIN},
                         crooked = {"crooked", t.dev_w + 1, 12, 64, CT_GEMM_PLAIN};
    ct_gemm_weight *w, *p, *none = NULL;
    ct_gemm_call c;
    ct_error err;

    (void)state;
    need_device();
    w = bind(t.wgmma, &s);
    p = bind(t.wgmma, &pairs);
    expect_refused(ct_gemm_bind(&none, t.wgmma, &odd_cols, &err), &err, "odd: 63 columns");
    expect_refused(ct_gemm_bind(&none, t.wgmma, &odd_pairs, &err), &err, "odd: 24 rows");
    expect_refused(ct_gemm_bind(&none, t.wgmma, &no_rows, &err), &err, "none: 0 rows");
    expect_refused(ct_gemm_bind(&none, t.wgmma, &crooked, &err), &err, "multiple of 16");
    assert_null(none);
    c = call_for(&s, 1, 0, CT_GEMM_BF16);
    c.ldx = 60;
    expect_refused(ct_gemm_run(t.wgmma, w, &c, t.stream, &err), &err, "x rows 60 apart");
    c = call_for(&s, 1, 0, CT_GEMM_BF16);
    c.ldy = 8;
    expect_refused(ct_gemm_run(t.wgmma, w, &c, t.stream, &err), &err, "y rows 8 apart");
    c = call_for(&s, CT_GEMM_MAX_ROWS + 1, 0, CT_GEMM_BF16);
    expect_refused(ct_gemm_run(t.wgmma, w, &c, t.stream, &err), &err, "1048577 rows");
    c = call_for(&s, 1, 0, CT_GEMM_BF16);
    c.x = t.dev_x + 1;
    expect_refused(ct_gemm_run(t.wgmma, w, &c, t.stream, &err), &err, "multiples of 16");
    c = call_for(&pairs, 1, 0, CT_GEMM_F32);
    expect_refused(ct_gemm_run(t.wgmma, p, &c, t.stream, &err), &err, "gate and up");
    c = call_for(&s, 0, 0, CT_GEMM_BF16);
    run(t.got, t.wgmma, w, &c);
    same_bits(&s, &c, 0, "no rows");
    ct_gemm_weight_destroy(w);
    ct_gemm_weight_destroy(p);
}

/* ---- start ---------------------------------------------------------------- */

static bool have_wgmma(void)
{
    int major = 0;

    return ct_cuda_n_devices() > 0 &&
           cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, 0) == cudaSuccess &&
           major == 9;
}

static int start(void **state)
{
    const size_t largest_w = (size_t)262144 * 5376, small_w = (size_t)4224 * 2816;
    ct_error err;

    (void)state;
    t.present = have_wgmma();
    if (!t.present)
        return 0;
    numbers_make(&t.w, t.quick ? 1000003 : 16777213, 1);
    numbers_make(&t.x, t.quick ? 500009 : 4194301, 2);
    t.w_count = t.quick ? small_w : largest_w;
    t.x_count = (size_t)REF_ROWS * (t.quick ? 2816 : 21504);
    t.y_bytes = (t.quick ? (size_t)REF_ROWS * 5000 * 4 : (size_t)256 << 20) + GUARD;
    upload(&t.dev_w, &t.w, t.w_count);
    upload(&t.dev_x, &t.x, t.x_count);
    cuda_ok(cudaMalloc((void **)&t.dev_y, t.y_bytes));
    cuda_ok(cudaMallocHost((void **)&t.got, t.y_bytes));
    cuda_ok(cudaMallocHost((void **)&t.want, t.y_bytes));
    cuda_ok(cudaMalloc(&t.workspace, ct_gemm_workspace_bytes(0)));
    cuda_ok(cudaStreamCreate(&t.stream));
    test_ok(ct_gemm_create(&t.wgmma, 0, CT_GEMM_WGMMA, t.workspace, &err), &err);
    test_ok(ct_gemm_create(&t.mma, 0, CT_GEMM_MMA, t.workspace, &err), &err);
    return 0;
}

static int stop(void **state)
{
    (void)state;
    ct_gemm_destroy(t.wgmma);
    ct_gemm_destroy(t.mma);
    free(t.w.block);
    free(t.x.block);
    return t.present && cudaDeviceReset() != cudaSuccess;
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_edge_gives_a_row_the_same_bits),
        cmocka_unit_test(every_plan_gives_the_same_bits),
        cmocka_unit_test(f32_outputs_are_the_accumulators),
        cmocka_unit_test(a_captured_graph_repeats_its_bits),
        cmocka_unit_test(wider_rows_of_x_are_skipped_over),
        cmocka_unit_test(wrong_arguments_are_refused),
        cmocka_unit_test(every_weight_gives_a_row_the_same_bits),
    };

    t.quick = argc > 1 && strcmp(argv[1], "quick") == 0;
    if (argc > 2)
        cmocka_set_test_filter(argv[2]);
    return cmocka_run_group_tests(tests, start, stop);
}
