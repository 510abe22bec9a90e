/* bf16 products of every weight of the 12B and the 31B model against cuBLASLt.
 *
 *     bench_gemm [-j FILE] [-w WEIGHT] [-m ROWS] [-t]
 *
 * -j writes the results as JSON, -w and -m keep one weight (by number) or row count, -t
 * times every kernel instead of the one that the plan picks.
 *
 * A time is the median of replays of a CUDA graph whose launches walk over enough copies
 * of the weight (random numbers) that none finds its data in the L2, per launch; the
 * board rests before each; three rounds, ours and theirs in turn, and the median of them.
 * cuBLASLt is the best of its first five heuristics in the same kind of graph.  "gate_up"
 * applies gelu(gate) * up, which cuBLASLt does not; "gate, up" is the bare product.  The
 * read roof is measured in the same run. */
#include "cublaslt.h"

#include "ops/cuda/gemm_kernels.h"

#include <cuda_runtime.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CHECK(e)                                                                                   \
    do {                                                                                           \
        const cudaError_t check_ = (e);                                                            \
        if (check_ != cudaSuccess)                                                                 \
            die(__LINE__, cudaGetErrorString(check_));                                             \
    } while (0)

enum {
    REPLAYS = 7,
    ROUNDS = 3,
    MAX_COPIES = 64,
    MAX_M = 8192,
    MAX_K = 21504,
};

static const size_t pool_bytes = (size_t)6 << 30, walk_bytes = (size_t)2200 << 20;

typedef struct weight {
    const char *model, *name;
    uint32_t rows, cols;
    ct_gemm_kind kind;
} weight;

static const weight weights[] = {
    {"31b", "qkv sliding", 16384, 5376, CT_GEMM_PLAIN},
    {"31b", "qk global", 18432, 5376, CT_GEMM_PLAIN},
    {"31b", "o sliding", 5376, 8192, CT_GEMM_PLAIN},
    {"31b", "o global", 5376, 16384, CT_GEMM_PLAIN},
    {"31b", "gate_up", 43008, 5376, CT_GEMM_GATE_UP},
    {"31b", "gate, up", 43008, 5376, CT_GEMM_PLAIN},
    {"31b", "down", 5376, 21504, CT_GEMM_PLAIN},
    {"31b", "head", 262144, 5376, CT_GEMM_PLAIN},
    {"12b", "qkv sliding", 8192, 3840, CT_GEMM_PLAIN},
    {"12b", "qk global", 8704, 3840, CT_GEMM_PLAIN},
    {"12b", "o sliding", 3840, 4096, CT_GEMM_PLAIN},
    {"12b", "o global", 3840, 8192, CT_GEMM_PLAIN},
    {"12b", "gate_up", 30720, 3840, CT_GEMM_GATE_UP},
    {"12b", "gate, up", 30720, 3840, CT_GEMM_PLAIN},
    {"12b", "down", 3840, 15360, CT_GEMM_PLAIN},
    {"12b", "head", 262144, 3840, CT_GEMM_PLAIN},
};
static const int row_counts[] = {1, 8, 16, 32, 64, 128, 256, 512, 2048, 8192};
enum { N_WEIGHTS = sizeof weights / sizeof *weights, N_ROWS = sizeof row_counts / sizeof(int) };

typedef struct bench {
    cudaStream_t stream;
    void *pool, *x, *y, *workspace;
    ct_gemm *gemm;
    yardstick *yard;
    double roof; /* bytes a second */
} bench;

static void die(int line, const char *what)
{
    fprintf(stderr, "bench_gemm.cu:%d: %s\n", line, what);
    exit(1);
}

/* ---- data and roof -------------------------------------------------------- */

static __device__ uint64_t mix(uint64_t z)
{
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
    return z ^ (z >> 31);
}

/* Uniform bf16 in (-1, 1). */
static __global__ void fill(uint16_t *p, size_t n, uint64_t seed)
{
    for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < n;
         i += (size_t)gridDim.x * blockDim.x) {
        const uint64_t z = mix(i * 0x9e3779b97f4a7c15ull + seed);
        const float f = (float)(int32_t)z * 4.656613e-10f;

        p[i] = (uint16_t)(__float_as_uint(f) >> 16);
    }
}

static __global__ void read_all(const uint4 *p, size_t n, uint32_t *out)
{
    uint32_t sum = 0;

    for (size_t i = blockIdx.x * (size_t)blockDim.x * 4 + threadIdx.x; i < n;
         i += (size_t)gridDim.x * blockDim.x * 4)
#pragma unroll
        for (int j = 0; j < 4; j++) {
            const size_t at = i + (size_t)j * blockDim.x;
            const uint4 v = at < n ? __ldcs(p + at) : make_uint4(0, 0, 0, 0);

            sum += v.x ^ v.y ^ v.z ^ v.w;
        }
    if (sum == 0x12345678) /* never known to the compiler: keeps the loads */
        *out = sum;
}

/* ---- timing --------------------------------------------------------------- */

static int by_size(const void *a, const void *b)
{
    const float x = *(const float *)a, y = *(const float *)b;

    return (x > y) - (x < y);
}

/* Ends a capture and times it: microseconds a launch. */
static float time_capture(bench *b, int launches, int rest_ms)
{
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    cudaEvent_t from, to;
    float ms[REPLAYS];

    CHECK(cudaStreamEndCapture(b->stream, &graph));
    CHECK(cudaGraphInstantiate(&exec, graph, 0));
    CHECK(cudaEventCreate(&from));
    CHECK(cudaEventCreate(&to));
    usleep((unsigned)rest_ms * 1000);
    CHECK(cudaGraphLaunch(exec, b->stream));
    for (int i = 0; i < REPLAYS; i++) {
        CHECK(cudaEventRecord(from, b->stream));
        CHECK(cudaGraphLaunch(exec, b->stream));
        CHECK(cudaEventRecord(to, b->stream));
        CHECK(cudaEventSynchronize(to));
        CHECK(cudaEventElapsedTime(&ms[i], from, to));
    }
    CHECK(cudaEventDestroy(from));
    CHECK(cudaEventDestroy(to));
    CHECK(cudaGraphExecDestroy(exec));
    CHECK(cudaGraphDestroy(graph));
    qsort(ms, REPLAYS, sizeof *ms, by_size);
    return ms[REPLAYS / 2] * 1e3f / (float)launches;
}

static void capture(bench *b)
{
    CHECK(cudaStreamBeginCapture(b->stream, cudaStreamCaptureModeThreadLocal));
}

/* The launches before a measurement heat the board: large products rest longer. */
static int rest_for(int m)
{
    return m >= 128 ? 60 : 15;
}

static int copies_for(const weight *w, int m)
{
    const size_t bytes = (size_t)w->rows * w->cols * 2;
    int n = (int)(walk_bytes / bytes);

    if (m >= 2048 && n > 8)
        n = 8; /* milliseconds of arithmetic already */
    return n < 2 ? 2 : n > MAX_COPIES ? MAX_COPIES : n;
}

static double measure_roof(bench *b)
{
    const size_t bytes = (size_t)3 << 30;

    capture(b);
    read_all<<<132 * 8, 512, 0, b->stream>>>((const uint4 *)b->pool, bytes / 16, (uint32_t *)b->y);
    return (double)bytes / (1e-6 * time_capture(b, 1, 50));
}

/* ---- ours and theirs ------------------------------------------------------ */

static void bind_copies(bench *b, const weight *w, ct_gemm_weight **out, int n)
{
    ct_error err;

    for (int i = 0; i < n; i++) {
        ct_gemm_matrix m = {};

        m.name = w->name;
        m.data = (char *)b->pool + (size_t)i * w->rows * w->cols * 2;
        m.rows = w->rows;
        m.cols = w->cols;
        m.kind = w->kind;
        if (ct_gemm_bind(&out[i], b->gemm, &m, &err))
            die(__LINE__, err.text);
    }
}

static ct_gemm_call make_call(const bench *b, const weight *w, int m, bool overlap)
{
    ct_gemm_call c = {};

    c.x = b->x;
    c.ldx = w->cols;
    c.y = b->y;
    c.ldy = w->kind == CT_GEMM_GATE_UP ? w->rows / 2 : w->rows;
    c.rows = (uint32_t)m;
    c.elem = CT_GEMM_BF16;
    c.overlap = overlap;
    return c;
}

/* plan NULL: what ct_gemm_run picks. */
static float time_ours(bench *b, const weight *w, ct_gemm_weight **bound, int copies, int m,
                       const ct_gemm_plan *plan, bool overlap)
{
    const ct_gemm_call c = make_call(b, w, m, overlap);
    ct_error err;

    capture(b);
    for (int i = 0; i < copies; i++)
        if (plan ? ct_gemm_run_plan(b->gemm, bound[i], plan, &c, b->stream, &err)
                 : ct_gemm_run(b->gemm, bound[i], &c, b->stream, &err))
            die(__LINE__, err.text);
    return time_capture(b, copies, rest_for(m));
}

static float time_algorithm(bench *b, const weight *w, int algorithm, int copies, int m)
{
    const size_t bytes = (size_t)w->rows * w->cols * 2;
    int refused = 0;
    float us;

    capture(b);
    for (int c = 0; c < copies; c++)
        refused |= yardstick_run(b->yard, algorithm, b->y, (char *)b->pool + (size_t)c * bytes,
                                 b->x, b->stream);
    us = time_capture(b, copies, rest_for(m));
    return refused ? 0 : us;
}

/* The fastest of the algorithms offered, or -1; its time in *us. */
static int best_algorithm(bench *b, const weight *w, int copies, int m, float *us)
{
    const int n = b->yard ? yardstick_shape(b->yard, (int)w->rows, (int)w->cols, m) : 0;
    int best = -1;

    *us = 0;
    for (int i = 0; i < n; i++) {
        const float t = time_algorithm(b, w, i, copies, m);

        if (t > 0 && (best < 0 || t < *us)) {
            best = i;
            *us = t;
        }
    }
    return best;
}

typedef struct result {
    float plain, overlap, theirs; /* microseconds; theirs 0 without a yardstick */
} result;

/* ---- output --------------------------------------------------------------- */

static void tune(bench *b, const weight *w, ct_gemm_weight **bound, int copies, int m)
{
    float theirs;

    for (int k = 0; k < CT_GEMM_N_KERNELS; k++)
        for (unsigned wish = 0; wish < 3; wish++) {
            const ct_gemm_kernel kernel = (ct_gemm_kernel)k;
            const ct_gemm_traits *t = ct_gemm_traits_get(kernel);
            const int n = t->n * t->cluster_x;
            ct_gemm_plan p;
            float plain, overlap;

            if ((m <= 64 && n != (m < 8 ? 8 : m)) || (m > 64 && t->n < 128) ||
                (m > 256 && k == CT_GEMM_MID128) || (wish == CT_GEMM_SHARE && m > 64))
                continue;
            ct_gemm_plan_make(&p, ct_gemm_device_get(b->gemm), ct_gemm_shape_get(bound[0]), kernel,
                              m, wish);
            if (p.chain != (wish == CT_GEMM_CHAIN))
                continue;
            plain = time_ours(b, w, bound, copies, m, &p, false);
            overlap = !p.chain ? time_ours(b, w, bound, copies, m, &p, true) : plain;
            printf("tune %s,%s,%u,%u,%d,k%d,n%d,wish%u,r%d,st%d,grid%d,%.2f,%.2f\n", w->model,
                   w->name, w->rows, w->cols, m, k, n, wish, p.r, p.stages, p.grid, plain, overlap);
        }
    best_algorithm(b, w, copies, m, &theirs);
    printf("tune %s,%s,%u,%u,%d,cublas,,,,,,%.2f,\n", w->model, w->name, w->rows, w->cols, m,
           theirs);
    fflush(stdout);
}

/* Three rounds of each in turn, since the board's clock drifts with its heat. */
static void measure(bench *b, const weight *w, ct_gemm_weight **bound, int copies, int m, result *r)
{
    float plain[ROUNDS], overlap[ROUNDS], theirs[ROUNDS], first;
    const int algorithm = best_algorithm(b, w, copies, m, &first);

    for (int i = 0; i < ROUNDS; i++) {
        theirs[i] = algorithm < 0 ? 0 : time_algorithm(b, w, algorithm, copies, m);
        plain[i] = time_ours(b, w, bound, copies, m, NULL, false);
        overlap[i] = time_ours(b, w, bound, copies, m, NULL, true);
    }
    qsort(plain, ROUNDS, sizeof *plain, by_size);
    qsort(overlap, ROUNDS, sizeof *overlap, by_size);
    qsort(theirs, ROUNDS, sizeof *theirs, by_size);
    *r = (result){plain[ROUNDS / 2], overlap[ROUNDS / 2], theirs[ROUNDS / 2]};
}

static void one(bench *b, const weight *w, ct_gemm_weight **bound, int copies, int m, FILE *json)
{
    static bool first = true;
    const double bytes = (double)w->rows * w->cols * 2, flop = bytes * m;
    result r;
    float best;

    measure(b, w, bound, copies, m, &r);
    best = r.overlap < r.plain ? r.overlap : r.plain;
    printf("%s %-12s [%u,%u] M=%-4d %8.2f %8.2f us, cuBLASLt %8.2f, x%.3f, %4.0f GB/s (%2.0f %%) "
           "%5.1f TFLOP/s\n",
           w->model, w->name, w->rows, w->cols, m, r.plain, r.overlap, r.theirs, r.theirs / best,
           bytes / best * 1e-3, 100 * bytes / best * 1e6 / b->roof, flop / best * 1e-6);
    fflush(stdout);
    if (!json)
        return;
    fprintf(json,
            "%s\n  {\"model\": \"%s\", \"weight\": \"%s\", \"shape\": [%u, %u], \"rows\": %d, "
            "\"plain_us\": %.2f, \"overlap_us\": %.2f, \"cublaslt_us\": %.2f}",
            first ? "" : ",", w->model, w->name, w->rows, w->cols, m, r.plain, r.overlap, r.theirs);
    first = false;
}

static void run_weight(bench *b, const weight *w, int only_m, bool tuning, FILE *json)
{
    static ct_gemm_weight *bound[MAX_COPIES];
    const int n = copies_for(w, 1);

    bind_copies(b, w, bound, n);
    usleep(300000); /* the weight before ended with the hottest runs */
    for (int i = 0; i < N_ROWS; i++) {
        const int m = row_counts[i], copies = copies_for(w, m);

        if ((only_m && m != only_m) || (w->rows > 100000 && m > 512))
            continue;
        if (tuning)
            tune(b, w, bound, copies, m);
        else
            one(b, w, bound, copies, m, json);
    }
    for (int i = 0; i < n; i++)
        ct_gemm_weight_destroy(bound[i]);
}

static void start(bench *b, FILE *json)
{
    struct cudaDeviceProp prop;
    int driver = 0;
    ct_error err;

    CHECK(cudaGetDeviceProperties(&prop, 0));
    CHECK(cudaDriverGetVersion(&driver));
    CHECK(cudaStreamCreate(&b->stream));
    CHECK(cudaMalloc(&b->pool, pool_bytes));
    CHECK(cudaMalloc(&b->x, (size_t)MAX_M * MAX_K * 2));
    CHECK(cudaMalloc(&b->y, (size_t)MAX_M * 43008 * 2));
    CHECK(cudaMalloc(&b->workspace, ct_gemm_workspace_bytes(0)));
    fill<<<1024, 256, 0, b->stream>>>((uint16_t *)b->pool, pool_bytes / 2, 1);
    fill<<<1024, 256, 0, b->stream>>>((uint16_t *)b->x, (size_t)MAX_M * MAX_K, 2);
    CHECK(cudaStreamSynchronize(b->stream));
    if (ct_gemm_create(&b->gemm, 0, CT_GEMM_AUTO, b->workspace, &err))
        die(__LINE__, err.text);
    b->yard = yardstick_open();
    b->roof = measure_roof(b);
    printf("%s, %d SMs, CUDA driver %d, runtime %d, read roof %.0f GB/s\n", prop.name,
           prop.multiProcessorCount, driver, CUDART_VERSION, b->roof * 1e-9);
    if (json)
        fprintf(json,
                "{\"bench\": \"gemm\", \"gpu\": \"%s\", \"sms\": %d, \"cuda_driver\": %d, "
                "\"cuda_runtime\": %d, \"read_roof_gb_s\": %.0f, \"replays\": %d,\n \"cells\": [",
                prop.name, prop.multiProcessorCount, driver, CUDART_VERSION, b->roof * 1e-9,
                REPLAYS);
}

int main(int argc, char **argv)
{
    static bench b;
    int only_w = -1, only_m = 0, option;
    bool tuning = false;
    FILE *json = NULL;

    while ((option = getopt(argc, argv, "j:w:m:t")) != -1) {
        if (option == 'j')
            json = fopen(optarg, "w");
        else if (option == 'w')
            only_w = (int)strtol(optarg, NULL, 10);
        else if (option == 'm')
            only_m = (int)strtol(optarg, NULL, 10);
        else if (option == 't')
            tuning = true;
        else
            return 2;
    }
    start(&b, json);
    for (int i = 0; i < N_WEIGHTS; i++)
        if (only_w < 0 || only_w == i)
            run_weight(&b, &weights[i], only_m, tuning, json);
    if (json)
        fprintf(json, "\n ]}\n");
    return json && fclose(json) != 0;
}
