/* Host side of the bf16 product: descriptors, checks, launches. */
#include "ops/cuda/gemm.h"

#include "ops/cuda/gemm_kernel.cuh"
#include "ops/cuda/gemm_kernels.h"

#include <assert.h>
#include <cuda.h>
#include <cuda_runtime.h>
#include <stdlib.h>
#include <string.h>

typedef CUresult encode_fn(CUtensorMap *, CUtensorMapDataType, cuuint32_t, void *,
                           const cuuint64_t *, const cuuint64_t *, const cuuint32_t *,
                           const cuuint32_t *, CUtensorMapInterleave, CUtensorMapSwizzle,
                           CUtensorMapL2promotion, CUtensorMapFloatOOBfill);

struct ct_gemm {
    ct_gemm_path path; /* never AUTO */
    ct_gemm_device dev;
    encode_fn *encode;
    float *carry; /* both borrowed: workspace */
    uint32_t *flags;
    const void *kernels[CT_GEMM_N_KERNELS];
};

struct ct_gemm_weight {
    /* The tiles' height differs with the kernel, hence a map for each. */
    CUtensorMap maps[CT_GEMM_N_KERNELS];
    ct_gemm_matrix matrix;
    ct_gemm_shape shape;
};

static ct_status cuda_fail(ct_error *err, const char *what, cudaError_t e)
{
    return ct_fail(err, CT_EIO, "%s: CUDA: %s", what, cudaGetErrorString(e));
}

/* ---- tensor maps ---------------------------------------------------------- */

/* Row-major bf16 as the copy engine sees it: up to four dimensions, innermost first. */
typedef struct tensor {
    const void *base;
    int n_dims;
    cuuint64_t dims[4];
    cuuint64_t strides[3]; /* bytes, of dimensions 1 and up */
    cuuint32_t box[4];
    CUtensorMapSwizzle swizzle;
} tensor;

static ct_status encode(const ct_gemm *g, CUtensorMap *map, const tensor *t, const char *what,
                        ct_error *err)
{
    static const cuuint32_t step[4] = {1, 1, 1, 1};
    /* No promotion to 256-byte L2 lines: weights read once lose 2 to 8 % by it. */
    const CUresult r =
        g->encode(map, CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, (cuuint32_t)t->n_dims, (void *)t->base,
                  t->dims, t->strides, t->box, step, CU_TENSOR_MAP_INTERLEAVE_NONE, t->swizzle,
                  CU_TENSOR_MAP_L2_PROMOTION_NONE, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);

    if (r != CUDA_SUCCESS)
        return ct_fail(err, CT_EIO, "%s: tensor map of %llu x %llu: CUDA driver error %d", what,
                       (unsigned long long)t->dims[1], (unsigned long long)t->dims[0], (int)r);
    return CT_OK;
}

/* Rows of K elements in boxes of 64 columns: 128 bytes, the most the swizzle allows. */
static tensor tensor_rows(const void *base, uint32_t rows, uint32_t cols, size_t ld, int box_rows)
{
    tensor t = {};

    t.base = base;
    t.n_dims = 2;
    t.dims[0] = cols;
    t.dims[1] = rows;
    t.strides[0] = ld * 2;
    t.box[0] = CT_GEMM_ATOM_K;
    t.box[1] = (cuuint32_t)box_rows;
    t.swizzle = CU_TENSOR_MAP_SWIZZLE_128B;
    return t;
}

/* Gate above up, I rows each, seen as [I/8][gate, up][8][K]: one box then brings eight
 * rows of gate, the eight of up with the same numbers, and so on. */
static tensor tensor_gate_up(const void *base, uint32_t rows, uint32_t cols, int tile_rows)
{
    const cuuint64_t row = (cuuint64_t)cols * 2;
    tensor t = tensor_rows(base, 8, cols, cols, 8);

    t.n_dims = 4;
    t.dims[2] = 2;
    t.dims[3] = rows / 16;
    t.strides[1] = row * (rows / 2);
    t.strides[2] = row * 8;
    t.box[2] = 2;
    t.box[3] = (cuuint32_t)tile_rows / 16;
    return t;
}

/* The driver call comes from the runtime: nothing links against libcuda. */
static ct_status find_encode(encode_fn **out, ct_error *err)
{
    void *fn = NULL;
    enum cudaDriverEntryPointQueryResult found;
    const cudaError_t e = cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &fn, 12000,
                                                           cudaEnableDefault, &found);

    if (e != cudaSuccess)
        return cuda_fail(err, "cuTensorMapEncodeTiled", e);
    if (found != cudaDriverEntryPointSuccess || !fn)
        return ct_fail(err, CT_EUNSUPPORTED, "cuTensorMapEncodeTiled: not in this driver");
    *out = (encode_fn *)fn;
    return CT_OK;
}

/* ---- create --------------------------------------------------------------- */

static cudaError_t device_facts(ct_gemm_device *dev, int device)
{
    cudaError_t e = cudaDeviceGetAttribute(&dev->n_sms, cudaDevAttrMultiProcessorCount, device);

    if (e == cudaSuccess)
        e = cudaDeviceGetAttribute(&dev->smem_bytes, cudaDevAttrMaxSharedMemoryPerBlockOptin,
                                   device);
    if (e == cudaSuccess)
        e = cudaDeviceGetAttribute(&dev->smem_sm_bytes, cudaDevAttrMaxSharedMemoryPerMultiprocessor,
                                   device);
    return e;
}

static ct_status choose_path(ct_gemm *g, int device, ct_gemm_path path, ct_error *err)
{
    int major = 0, minor = 0;
    cudaError_t e = cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device);

    if (e == cudaSuccess)
        e = cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, device);
    if (e != cudaSuccess)
        return cuda_fail(err, "compute capability", e);
    if (path == CT_GEMM_AUTO)
        path = major == 9 && minor == 0 ? CT_GEMM_WGMMA : CT_GEMM_MMA;
    if (path == CT_GEMM_WGMMA && !(major == 9 && minor == 0))
        return ct_fail(err, CT_EUNSUPPORTED,
                       "device %d: compute capability %d.%d, the wgmma path needs 9.0", device,
                       major, minor);
    if (major < 8)
        return ct_fail(err, CT_EUNSUPPORTED,
                       "device %d: compute capability %d.%d, bf16 products need 8.0", device, major,
                       minor);
    g->path = path;
    return CT_OK;
}

/* Clusters live inside a group of multiprocessors, so fewer may fit than one would divide. */
static cudaError_t count_clusters(const ct_gemm *g, ct_gemm_kernel kernel, int *out)
{
    const ct_gemm_traits *t = ct_gemm_traits_get(kernel);
    cudaLaunchAttribute at[1];
    cudaLaunchConfig_t c = {};

    at[0].id = cudaLaunchAttributeClusterDimension;
    at[0].val.clusterDim.x = (unsigned)(t->cluster_w * t->cluster_x);
    at[0].val.clusterDim.y = at[0].val.clusterDim.z = 1;
    c.gridDim = dim3(at[0].val.clusterDim.x);
    c.blockDim = dim3((unsigned)(t->groups + 1) * 128);
    c.dynamicSmemBytes = (size_t)g->dev.smem_bytes;
    c.attrs = at;
    c.numAttrs = 1;
    return cudaOccupancyMaxActiveClusters(out, g->kernels[kernel], &c);
}

static ct_status prepare_wgmma(ct_gemm *g, ct_error *err)
{
    cudaError_t e = cudaSuccess;

    for (int i = 0; i < CT_GEMM_N_KERNELS && e == cudaSuccess; i++) {
        const ct_gemm_kernel k = (ct_gemm_kernel)i;

        g->kernels[i] = ct_gemm_kernel_few(k) ? ct_gemm_kernel_few(k) : ct_gemm_kernel_many(k);
        e = cudaFuncSetAttribute(g->kernels[i], cudaFuncAttributeMaxDynamicSharedMemorySize,
                                 g->dev.smem_bytes);
    }
    if (e == cudaSuccess)
        e = count_clusters(g, CT_GEMM_PAIR256, &g->dev.n_pairs);
    if (e == cudaSuccess)
        e = count_clusters(g, CT_GEMM_QUAD128, &g->dev.n_quads);
    if (e != cudaSuccess)
        return cuda_fail(err, "wgmma kernels", e);
    return find_encode(&g->encode, err);
}

size_t ct_gemm_workspace_bytes(int device)
{
    ct_gemm_device dev;

    if (device_facts(&dev, device) != cudaSuccess)
        return 0;
    return ct_gemm_plan_carry_bytes(&dev) + ct_gemm_plan_flag_bytes(&dev);
}

static ct_status prepare(ct_gemm *g, int device, ct_gemm_path path, void *workspace, ct_error *err)
{
    cudaError_t e = cudaSetDevice(device);
    ct_status st;

    if (e == cudaSuccess)
        e = device_facts(&g->dev, device);
    if (e != cudaSuccess)
        return cuda_fail(err, "device", e);
    st = choose_path(g, device, path, err);
    if (!st)
        st = g->path == CT_GEMM_WGMMA ? prepare_wgmma(g, err) : ct_gemm_mma_prepare(err);
    if (st)
        return st;
    g->carry = (float *)workspace;
    g->flags = (uint32_t *)((char *)workspace + ct_gemm_plan_carry_bytes(&g->dev));
    e = cudaMemset(g->flags, 0, ct_gemm_plan_flag_bytes(&g->dev));
    if (e == cudaSuccess)
        e = cudaDeviceSynchronize();
    return e == cudaSuccess ? CT_OK : cuda_fail(err, "workspace", e);
}

ct_status ct_gemm_create(ct_gemm **out, int device, ct_gemm_path path, void *workspace,
                         ct_error *err)
{
    ct_gemm *g = (ct_gemm *)calloc(1, sizeof *g);
    ct_status st;

    if (!g)
        return ct_fail(err, CT_ELIMIT, "gemm: out of memory (%zu bytes)", sizeof *g);
    st = prepare(g, device, path, workspace, err);
    if (st) {
        free(g);
        return st;
    }
    *out = g;
    return CT_OK;
}

void ct_gemm_destroy(ct_gemm *g)
{
    free(g);
}

/* ---- bind ----------------------------------------------------------------- */

static ct_status check_matrix(const ct_gemm_matrix *w, ct_error *err)
{
    const uint32_t unit = w->kind == CT_GEMM_GATE_UP ? 16 : 1;

    if (w->rows == 0 || w->rows > CT_GEMM_MAX_WEIGHT || w->rows % unit != 0)
        return ct_fail(err, CT_EINVAL, "%s: %u rows, need 1 to %d and a multiple of %u", w->name,
                       w->rows, CT_GEMM_MAX_WEIGHT, unit);
    if (w->cols == 0 || w->cols > CT_GEMM_MAX_COLS || w->cols % 8 != 0)
        return ct_fail(err, CT_EINVAL, "%s: %u columns, need 1 to %d and a multiple of 8", w->name,
                       w->cols, CT_GEMM_MAX_COLS);
    if ((uintptr_t)w->data % 16 != 0)
        return ct_fail(err, CT_EINVAL, "%s: at %p, need a multiple of 16", w->name, w->data);
    return CT_OK;
}

static ct_status bind_maps(ct_gemm_weight *w, const ct_gemm *g, ct_error *err)
{
    const ct_gemm_matrix *m = &w->matrix;

    for (int i = 0; i < CT_GEMM_N_KERNELS; i++) {
        const ct_gemm_traits *k = ct_gemm_traits_get((ct_gemm_kernel)i);
        /* Blocks that share W divide a stage by atoms, or one atom by rows. */
        const int parts = k->atoms < k->cluster_x ? k->cluster_x : 1;
        const int r = ct_gemm_tile_rows(&g->dev, &w->shape, (ct_gemm_kernel)i) / parts;
        const tensor t = w->shape.gate_up ? tensor_gate_up(m->data, m->rows, m->cols, r)
                                          : tensor_rows(m->data, m->rows, m->cols, m->cols, r);
        const ct_status st = encode(g, &w->maps[i], &t, m->name, err);

        if (st)
            return st;
    }
    return CT_OK;
}

ct_status ct_gemm_bind(ct_gemm_weight **out, const ct_gemm *g, const ct_gemm_matrix *m,
                       ct_error *err)
{
    ct_status st = check_matrix(m, err);
    ct_gemm_weight *w;

    if (st)
        return st;
    w = (ct_gemm_weight *)aligned_alloc(alignof(ct_gemm_weight), sizeof *w);
    if (!w)
        return ct_fail(err, CT_ELIMIT, "%s: out of memory (%zu bytes)", m->name, sizeof *w);
    memset(w, 0, sizeof *w);
    w->matrix = *m;
    w->shape.rows = (int)m->rows;
    w->shape.cols = (int)m->cols;
    w->shape.gate_up = m->kind == CT_GEMM_GATE_UP;
    if (g->path == CT_GEMM_WGMMA)
        st = bind_maps(w, g, err);
    if (st) {
        ct_gemm_weight_destroy(w);
        return st;
    }
    *out = w;
    return CT_OK;
}

void ct_gemm_weight_destroy(ct_gemm_weight *w)
{
    free(w);
}

/* ---- run ------------------------------------------------------------------ */

static int n_outputs(const ct_gemm_weight *w)
{
    return w->shape.gate_up ? w->shape.rows / 2 : w->shape.rows;
}

static ct_status check_call(const ct_gemm_weight *w, const ct_gemm_call *c, ct_error *err)
{
    const char *name = w->matrix.name;
    const size_t unit = c->elem == CT_GEMM_F32 ? 4 : 8;

    if (c->rows > CT_GEMM_MAX_ROWS)
        return ct_fail(err, CT_EINVAL, "%s: %u rows of x, at most %d", name, c->rows,
                       CT_GEMM_MAX_ROWS);
    if (w->shape.gate_up && c->elem != CT_GEMM_BF16)
        return ct_fail(err, CT_EINVAL, "%s: gate and up give bf16, f32 was asked for", name);
    if (c->ldx < w->matrix.cols || c->ldx % 8 != 0)
        return ct_fail(err, CT_EINVAL, "%s: x rows %zu apart, need %u or more, a multiple of 8",
                       name, c->ldx, w->matrix.cols);
    if (c->ldy < (size_t)n_outputs(w) || c->ldy % unit != 0)
        return ct_fail(err, CT_EINVAL, "%s: y rows %zu apart, need %d or more, a multiple of %zu",
                       name, c->ldy, n_outputs(w), unit);
    if (((uintptr_t)c->x | (uintptr_t)c->y) % 16 != 0)
        return ct_fail(err, CT_EINVAL, "%s: x at %p and y at %p, need multiples of 16", name, c->x,
                       c->y);
    return CT_OK;
}

/* Whether the copy engine stores Y: in units of 16 bytes, so not where a row ends inside
 * one, and gate and up in whole buffers. */
static bool use_bulk(const ct_gemm_weight *w, const ct_gemm_traits *t, const ct_gemm_call *c)
{
    return t->bulk && c->elem == CT_GEMM_BF16 && n_outputs(w) % 8 == 0 &&
           !(w->shape.gate_up && t->n % 64 != 0);
}

static ct_gemm_args make_args(const ct_gemm *g, const ct_gemm_weight *w, const ct_gemm_plan *p,
                              const ct_gemm_call *c)
{
    ct_gemm_args a = {};

    a.out.y = c->y;
    a.out.ldy = c->ldy;
    a.out.n_out = n_outputs(w);
    a.out.m = (int)c->rows;
    a.out.epilogue = w->shape.gate_up         ? CT_GEMM_STORE_GATE_UP
                     : c->elem == CT_GEMM_F32 ? CT_GEMM_STORE_F32
                                              : CT_GEMM_STORE_BF16;
    a.carry = g->carry;
    a.flags = g->flags;
    a.r = p->r;
    a.slot = p->slot;
    a.n_kb = p->n_kb;
    a.stages = p->stages;
    a.tiles_w = p->tiles_w;
    a.tiles_x = p->tiles_x;
    a.group_x = p->group_x;
    a.chain = p->chain;
    a.gate_up = w->shape.gate_up;
    a.bulk = use_bulk(w, ct_gemm_traits_get(p->kernel), c);
    a.hints = c->rows <= 256;
    return a;
}

/* Y in boxes that the bulk store of this kernel uses; zero for the others. */
static ct_status make_map_y(CUtensorMap *map, const ct_gemm *g, const ct_gemm_weight *w,
                            const ct_gemm_traits *t, const ct_gemm_call *c, ct_error *err)
{
    const int box = t->n % 64 == 0 ? 64 : t->n % 16 == 0 ? 16 : 8;
    tensor y = tensor_rows(c->y, c->rows, (uint32_t)n_outputs(w), c->ldy, box);

    memset(map, 0, sizeof *map);
    if (!use_bulk(w, t, c))
        return CT_OK;
    if (w->shape.gate_up) {
        y.box[0] = 32;
        y.swizzle = CU_TENSOR_MAP_SWIZZLE_64B;
    }
    return encode(g, map, &y, w->matrix.name, err);
}

static ct_status launch(const ct_gemm *g, const ct_gemm_plan *p, const char *name, void **args,
                        bool overlap, cudaStream_t stream, ct_error *err)
{
    const ct_gemm_traits *t = ct_gemm_traits_get(p->kernel);
    cudaLaunchAttribute at[2];
    cudaLaunchConfig_t c = {};
    cudaError_t e;

    c.gridDim = dim3((unsigned)p->grid);
    c.blockDim = dim3((unsigned)(t->groups + 1) * 128);
    c.dynamicSmemBytes = (size_t)p->smem_bytes;
    c.stream = stream;
    c.attrs = at;
    if (t->cluster_w * t->cluster_x > 1) {
        at[c.numAttrs].id = cudaLaunchAttributeClusterDimension;
        at[c.numAttrs].val.clusterDim.x = (unsigned)(t->cluster_w * t->cluster_x);
        at[c.numAttrs].val.clusterDim.y = at[c.numAttrs].val.clusterDim.z = 1;
        c.numAttrs++;
    }
    if (overlap) {
        at[c.numAttrs].id = cudaLaunchAttributeProgrammaticStreamSerialization;
        at[c.numAttrs].val.programmaticStreamSerializationAllowed = 1;
        c.numAttrs++;
    }
    e = cudaLaunchKernelExC(&c, g->kernels[p->kernel], args);
    return e == cudaSuccess ? CT_OK : cuda_fail(err, name, e);
}

ct_status ct_gemm_run_plan(ct_gemm *g, const ct_gemm_weight *w, const ct_gemm_plan *plan,
                           const ct_gemm_call *call, struct CUstream_st *stream, ct_error *err)
{
    const ct_gemm_traits *t = ct_gemm_traits_get(plan->kernel);
    const tensor x =
        tensor_rows(call->x, call->rows, w->matrix.cols, call->ldx, t->n / t->cluster_w);
    CUtensorMap map_w = w->maps[plan->kernel], map_x, map_y;
    ct_gemm_args a = make_args(g, w, plan, call);
    void *args[] = {&map_w, &map_x, &map_y, &a};
    ct_status st = encode(g, &map_x, &x, w->matrix.name, err);

    if (!st)
        st = make_map_y(&map_y, g, w, t, call, err);
    /* A chained grid must not meet the flags of the grid before it. */
    return st ? st
              : launch(g, plan, w->matrix.name, args, call->overlap && !plan->chain, stream, err);
}

ct_status ct_gemm_run(ct_gemm *g, const ct_gemm_weight *w, const ct_gemm_call *call,
                      struct CUstream_st *stream, ct_error *err)
{
    const ct_status st = check_call(w, call, err);
    ct_gemm_call c = *call;
    ct_gemm_plan plan;

    if (st || call->rows == 0)
        return st;
    if (g->path == CT_GEMM_MMA)
        return ct_gemm_mma_run(&w->matrix, call, stream, err);
    ct_gemm_plan_pick(&plan, &g->dev, &w->shape, (int)call->rows);
    c.overlap = call->overlap && plan.overlap;
    return ct_gemm_run_plan(g, w, &plan, &c, stream, err);
}

const ct_gemm_device *ct_gemm_device_get(const ct_gemm *g)
{
    return &g->dev;
}

const ct_gemm_shape *ct_gemm_shape_get(const ct_gemm_weight *w)
{
    return &w->shape;
}
