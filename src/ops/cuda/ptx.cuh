/* Inline PTX of the CUDA kernels, one instruction a wrapper (a few carry the mov or
 * selp that gives the instruction its operands).  Instructions of sm_90a exist only
 * in a compilation for that target; so do their wrappers.  Names and operands:
 * PTX ISA 9.0. */
#ifndef CT_OPS_CUDA_PTX_CUH
#define CT_OPS_CUDA_PTX_CUH

#include <cuda.h>
#include <stdint.h>

#define CT_PTX static __device__ __forceinline__

/* Whether this compilation pass may use wgmma and setmaxnreg. */
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
#define CT_PTX_SM90A 1
#else
#define CT_PTX_SM90A 0
#endif

CT_PTX uint32_t ptx_shared(const void *p)
{
    return (uint32_t)__cvta_generic_to_shared(p);
}

/* ---- any GPU from sm_80 on ------------------------------------------------ */

/* Copies 16 bytes to shared memory; `bytes` of them (0 or 16) are read, the rest is zero. */
CT_PTX void ptx_cp_async16(uint32_t dst, const void *src, uint32_t bytes)
{
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(dst), "l"(src), "r"(bytes)
                 : "memory");
}

CT_PTX void ptx_cp_async_commit(void)
{
    asm volatile("cp.async.commit_group;" ::: "memory");
}

template <int LEFT> CT_PTX void ptx_cp_async_wait(void)
{
    asm volatile("cp.async.wait_group %0;" ::"n"(LEFT) : "memory");
}

/* Four 8 x 8 matrices of 16-bit elements; lane l gives the address of row l % 8 of
 * matrix l / 8. */
CT_PTX void ptx_ldmatrix_x4(uint32_t r[4], uint32_t at)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(at)
                 : "memory");
}

/* d += A B, 16 x 8 x 16.  d[2h + e]: row lane / 4 + 8h, column 2 (lane % 4) + e. */
CT_PTX void ptx_mma(float *d, const uint32_t a[4], uint32_t b0, uint32_t b1)
{
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, "
                 "{%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

/* Barrier `id` of the block (1 to 15) among n_threads of it. */
CT_PTX void ptx_bar_sync(int id, int n_threads)
{
    asm volatile("bar.sync %0, %1;" ::"r"(id), "r"(n_threads) : "memory");
}

CT_PTX uint32_t ptx_load_acquire(const uint32_t *p)
{
    uint32_t v;

    asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(v) : "l"(p) : "memory");
    return v;
}

CT_PTX void ptx_store_release(uint32_t *p, uint32_t v)
{
    asm volatile("st.release.gpu.global.u32 [%0], %1;" ::"l"(p), "r"(v) : "memory");
}

CT_PTX float ptx_ex2(float x)
{
    float y;

    asm("ex2.approx.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

CT_PTX float ptx_rcp(float x)
{
    float y;

    asm("rcp.approx.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

#if CT_PTX_SM90A
/* ---- mbarriers ------------------------------------------------------------ */

CT_PTX void ptx_mbar_init(uint32_t bar, uint32_t n_arrivals)
{
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(bar), "r"(n_arrivals) : "memory");
}

CT_PTX void ptx_mbar_init_fence(void)
{
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}

/* Arrives and adds `bytes` to what the copy engine still owes this phase. */
CT_PTX void ptx_mbar_expect(uint32_t bar, uint32_t bytes)
{
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(bar), "r"(bytes)
                 : "memory");
}

CT_PTX void ptx_mbar_arrive(uint32_t bar)
{
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(bar) : "memory");
}

/* Arrives on the barrier at the same offset in block `rank` of the cluster.  No
 * ".release.cluster": that becomes MEMBAR.ALL.GPU, a microsecond a stage, and nothing
 * has to be published: the only readers were wgmma, already waited for. */
CT_PTX void ptx_mbar_arrive_at(uint32_t bar, uint32_t rank)
{
    asm volatile("{\n.reg .b32 a;\nmapa.shared::cluster.u32 a, %0, %1;\n"
                 "mbarrier.arrive.shared::cluster.b64 _, [a];\n}" ::"r"(bar),
                 "r"(rank)
                 : "memory");
}

/* Whether the phase with this parity has completed, after a bounded wait. */
CT_PTX uint32_t ptx_mbar_try(uint32_t bar, uint32_t parity)
{
    uint32_t done;

    asm volatile("{\n.reg .pred p;\nmbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\n"
                 "selp.u32 %0, 1, 0, p;\n}"
                 : "=r"(done)
                 : "r"(bar), "r"(parity)
                 : "memory");
    return done;
}

/* Waits; the whole warp calls it.  The vote makes the loop's exit uniform: without it
 * the compiler must assume a diverged warp behind the loop, keeps wgmma descriptors in
 * vector registers and pays four R2UR for every instruction. */
CT_PTX void ptx_mbar_wait_warp(uint32_t bar, uint32_t parity)
{
    uint32_t done;

    do
        done = ptx_mbar_try(bar, parity);
    while (!__all_sync(~0u, done));
}

/* Waits; for one thread of a warp. */
CT_PTX void ptx_mbar_wait_thread(uint32_t bar, uint32_t parity)
{
    while (!ptx_mbar_try(bar, parity))
        ;
}

/* ---- the copy engine ------------------------------------------------------ */

CT_PTX uint64_t ptx_policy_evict_first(void)
{
    uint64_t p;

    asm volatile("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(p));
    return p;
}

CT_PTX uint64_t ptx_policy_evict_last(void)
{
    uint64_t p;

    asm volatile("createpolicy.fractional.L2::evict_last.b64 %0, 1.0;" : "=l"(p));
    return p;
}

CT_PTX uint64_t ptx_policy_normal(void)
{
    uint64_t p;

    asm volatile("createpolicy.fractional.L2::evict_normal.b64 %0, 1.0;" : "=l"(p));
    return p;
}

CT_PTX void ptx_tma_load_2d(uint32_t dst, const CUtensorMap *map, int x, int y, uint32_t bar,
                            uint64_t policy)
{
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
                 ".L2::cache_hint [%0], [%1, {%2, %3}], [%4], %5;" ::"r"(dst),
                 "l"(map), "r"(x), "r"(y), "r"(bar), "l"(policy)
                 : "memory");
}

CT_PTX void ptx_tma_load_4d(uint32_t dst, const CUtensorMap *map, int x, int y, int z, int w,
                            uint32_t bar, uint64_t policy)
{
    asm volatile("cp.async.bulk.tensor.4d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
                 ".L2::cache_hint [%0], [%1, {%2, %3, %4, %5}], [%6], %7;" ::"r"(dst),
                 "l"(map), "r"(x), "r"(y), "r"(z), "r"(w), "r"(bar), "l"(policy)
                 : "memory");
}

/* To the same offset in every block of `mask`; each one's barrier gets the bytes. */
CT_PTX void ptx_tma_multicast_2d(uint32_t dst, const CUtensorMap *map, int x, int y, uint32_t bar,
                                 uint16_t mask, uint64_t policy)
{
    asm volatile(
        "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
        ".multicast::cluster.L2::cache_hint [%0], [%1, {%2, %3}], [%4], %5, %6;" ::"r"(dst),
        "l"(map), "r"(x), "r"(y), "r"(bar), "h"(mask), "l"(policy)
        : "memory");
}

CT_PTX void ptx_tma_multicast_4d(uint32_t dst, const CUtensorMap *map, int x, int y, int z, int w,
                                 uint32_t bar, uint16_t mask, uint64_t policy)
{
    asm volatile(
        "cp.async.bulk.tensor.4d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
        ".multicast::cluster.L2::cache_hint [%0], [%1, {%2, %3, %4, %5}], [%6], %7, %8;" ::"r"(dst),
        "l"(map), "r"(x), "r"(y), "r"(z), "r"(w), "r"(bar), "h"(mask), "l"(policy)
        : "memory");
}

/* Fetches a descriptor ahead of its first use. */
CT_PTX void ptx_tma_prefetch(const CUtensorMap *map)
{
    asm volatile("prefetch.tensormap [%0];" ::"l"(map) : "memory");
}

CT_PTX void ptx_tma_store_2d(const CUtensorMap *map, int x, int y, uint32_t src)
{
    asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group"
                 " [%0, {%1, %2}], [%3];" ::"l"(map),
                 "r"(x), "r"(y), "r"(src)
                 : "memory");
}

CT_PTX void ptx_tma_store_commit(void)
{
    asm volatile("cp.async.bulk.commit_group;" ::: "memory");
}

/* Waits until all but LEFT groups of this thread have read their shared memory. */
template <int LEFT> CT_PTX void ptx_tma_store_wait_read(void)
{
    asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(LEFT) : "memory");
}

CT_PTX void ptx_tma_store_wait(void)
{
    asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
}

/* Makes this thread's stores to shared memory visible to the copy engine. */
CT_PTX void ptx_fence_async_proxy(void)
{
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

CT_PTX void ptx_stmatrix_x4_trans(uint32_t at, const uint32_t r[4])
{
    asm volatile("stmatrix.sync.aligned.m8n8.x4.trans.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(at),
                 "r"(r[0]), "r"(r[1]), "r"(r[2]), "r"(r[3])
                 : "memory");
}

CT_PTX void ptx_stmatrix_x2_trans(uint32_t at, const uint32_t r[2])
{
    asm volatile("stmatrix.sync.aligned.m8n8.x2.trans.shared.b16 [%0], {%1, %2};" ::"r"(at),
                 "r"(r[0]), "r"(r[1])
                 : "memory");
}

/* ---- clusters and dependent grids ----------------------------------------- */

CT_PTX void ptx_cluster_arrive(void)
{
    asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory");
}

CT_PTX void ptx_cluster_wait(void)
{
    asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
}

CT_PTX uint32_t ptx_cluster_rank(void)
{
    uint32_t r;

    asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(r));
    return r;
}

/* Waits for the end of the grids that this one was allowed to overlap. */
CT_PTX void ptx_grid_wait(void)
{
    asm volatile("griddepcontrol.wait;" ::: "memory");
}

CT_PTX void ptx_grid_launch_dependents(void)
{
    asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
}

/* ---- wgmma ---------------------------------------------------------------- */

template <int REGS> CT_PTX void ptx_regs_grow(void)
{
    asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(REGS));
}

template <int REGS> CT_PTX void ptx_regs_shrink(void)
{
    asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(REGS));
}

CT_PTX void ptx_wgmma_fence(void)
{
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}

CT_PTX void ptx_wgmma_commit(void)
{
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}

template <int LEFT> CT_PTX void ptx_wgmma_wait(void)
{
    asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(LEFT) : "memory");
}

/* Shared memory descriptor of a K-major operand in the 128-byte swizzle: address >> 4;
 * leading offset unused in this mode; stride 1,024 bytes from one group of 8 rows to the
 * next; swizzle mode 1.  A step of 16 k adds 2. */
CT_PTX uint64_t ptx_wgmma_desc(uint32_t addr)
{
    return (uint64_t)((addr & 0x3ffff) >> 4) | (uint64_t)1 << 16 | (uint64_t)64 << 32 |
           (uint64_t)1 << 62;
}

/* d += A B, 64 x N x 16, both K-major in shared memory.  d[4j + 2h + e]: row
 * 16 warp + lane / 4 + 8h, column 8j + 2 (lane % 4) + e.  Always accumulates: a
 * predicate that may be false makes the compiler serialise the instructions. */
template <int N> CT_PTX void ptx_wgmma(float *d, uint64_t a, uint64_t b);

// clang-format off
/* Operand lists of the N / 2 accumulators, each the shorter one and what it adds. */
#define CT_REGS_4 "%0, %1, %2, %3"
#define CT_ACCS_4 \
    "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
#define CT_REGS_8 CT_REGS_4 \
    ", %4, %5, %6, %7"
#define CT_ACCS_8 CT_ACCS_4, \
    "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7])
#define CT_REGS_16 CT_REGS_8 \
    ", %8, %9, %10, %11, %12, %13, %14, %15"
#define CT_ACCS_16 CT_ACCS_8, \
    "+f"(d[8]), "+f"(d[9]), "+f"(d[10]), "+f"(d[11]), "+f"(d[12]), "+f"(d[13]), \
    "+f"(d[14]), "+f"(d[15])
#define CT_REGS_32 CT_REGS_16 \
    ", %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27" \
    ", %28, %29, %30, %31"
#define CT_ACCS_32 CT_ACCS_16, \
    "+f"(d[16]), "+f"(d[17]), "+f"(d[18]), "+f"(d[19]), "+f"(d[20]), "+f"(d[21]), \
    "+f"(d[22]), "+f"(d[23]), "+f"(d[24]), "+f"(d[25]), "+f"(d[26]), "+f"(d[27]), \
    "+f"(d[28]), "+f"(d[29]), "+f"(d[30]), "+f"(d[31])
#define CT_REGS_64 CT_REGS_32 \
    ", %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43" \
    ", %44, %45, %46, %47, %48, %49, %50, %51, %52, %53, %54, %55" \
    ", %56, %57, %58, %59, %60, %61, %62, %63"
#define CT_ACCS_64 CT_ACCS_32, \
    "+f"(d[32]), "+f"(d[33]), "+f"(d[34]), "+f"(d[35]), "+f"(d[36]), "+f"(d[37]), \
    "+f"(d[38]), "+f"(d[39]), "+f"(d[40]), "+f"(d[41]), "+f"(d[42]), "+f"(d[43]), \
    "+f"(d[44]), "+f"(d[45]), "+f"(d[46]), "+f"(d[47]), "+f"(d[48]), "+f"(d[49]), \
    "+f"(d[50]), "+f"(d[51]), "+f"(d[52]), "+f"(d[53]), "+f"(d[54]), "+f"(d[55]), \
    "+f"(d[56]), "+f"(d[57]), "+f"(d[58]), "+f"(d[59]), "+f"(d[60]), "+f"(d[61]), \
    "+f"(d[62]), "+f"(d[63])
#define CT_REGS_88 CT_REGS_64 \
    ", %64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75" \
    ", %76, %77, %78, %79, %80, %81, %82, %83, %84, %85, %86, %87"
#define CT_ACCS_88 CT_ACCS_64, \
    "+f"(d[64]), "+f"(d[65]), "+f"(d[66]), "+f"(d[67]), "+f"(d[68]), "+f"(d[69]), \
    "+f"(d[70]), "+f"(d[71]), "+f"(d[72]), "+f"(d[73]), "+f"(d[74]), "+f"(d[75]), \
    "+f"(d[76]), "+f"(d[77]), "+f"(d[78]), "+f"(d[79]), "+f"(d[80]), "+f"(d[81]), \
    "+f"(d[82]), "+f"(d[83]), "+f"(d[84]), "+f"(d[85]), "+f"(d[86]), "+f"(d[87])
#define CT_REGS_116 CT_REGS_88 \
    ", %88, %89, %90, %91, %92, %93, %94, %95, %96, %97, %98, %99" \
    ", %100, %101, %102, %103, %104, %105, %106, %107, %108, %109, %110, %111" \
    ", %112, %113, %114, %115"
#define CT_ACCS_116 CT_ACCS_88, \
    "+f"(d[88]), "+f"(d[89]), "+f"(d[90]), "+f"(d[91]), "+f"(d[92]), "+f"(d[93]), \
    "+f"(d[94]), "+f"(d[95]), "+f"(d[96]), "+f"(d[97]), "+f"(d[98]), "+f"(d[99]), \
    "+f"(d[100]), "+f"(d[101]), "+f"(d[102]), "+f"(d[103]), "+f"(d[104]), "+f"(d[105]), \
    "+f"(d[106]), "+f"(d[107]), "+f"(d[108]), "+f"(d[109]), "+f"(d[110]), "+f"(d[111]), \
    "+f"(d[112]), "+f"(d[113]), "+f"(d[114]), "+f"(d[115])
#define CT_REGS_120 CT_REGS_116 \
    ", %116, %117, %118, %119"
#define CT_ACCS_120 CT_ACCS_116, \
    "+f"(d[116]), "+f"(d[117]), "+f"(d[118]), "+f"(d[119])
#define CT_REGS_128 CT_REGS_120 \
    ", %120, %121, %122, %123, %124, %125, %126, %127"
#define CT_ACCS_128 CT_ACCS_120, \
    "+f"(d[120]), "+f"(d[121]), "+f"(d[122]), "+f"(d[123]), "+f"(d[124]), "+f"(d[125]), \
    "+f"(d[126]), "+f"(d[127])
#define CT_WGMMA(N, ACCS, A, B) \
    template <> __device__ __forceinline__ void ptx_wgmma<N>(float *d, uint64_t a, uint64_t b) \
    { \
        asm volatile("{\n.reg .pred p;\nsetp.eq.u32 p, 0, 0;\nwgmma.mma_async.sync.aligned." \
                     "m64n" #N "k16.f32.bf16.bf16 {" CT_REGS_##ACCS "}, %" #A ", %" #B \
                     ", p, 1, 1, 0, 0;\n}" \
                     : CT_ACCS_##ACCS \
                     : "l"(a), "l"(b)); \
    }
CT_WGMMA(8, 4, 4, 5)
CT_WGMMA(16, 8, 8, 9)
CT_WGMMA(32, 16, 16, 17)
CT_WGMMA(64, 32, 32, 33)
CT_WGMMA(128, 64, 64, 65)
CT_WGMMA(176, 88, 88, 89)
CT_WGMMA(232, 116, 116, 117)
CT_WGMMA(240, 120, 120, 121)
CT_WGMMA(256, 128, 128, 129)
// clang-format on
#endif /* CT_PTX_SM90A */

#endif
