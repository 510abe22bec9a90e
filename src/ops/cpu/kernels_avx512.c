/* AVX-512.  The 16 chains of a dot are one register.  Tiles of 4 weight rows and 6 rows of
 * x hold 24 accumulators of the 32 registers; one row of x alone takes 8 weight rows. */
#if defined(__x86_64__)
#include "ops/cpu/kernels.h"
#include "ops/cpu/vecmath.h"

#include <immintrin.h>

#define WIDTH 16 /* floats a register */

typedef __m512 vec;

static inline vec vec_load(const float *p)
{
    return _mm512_loadu_ps(p);
}

static inline vec vec_load_bf16(const uint16_t *p)
{
    __m256i h = _mm256_loadu_si256((const __m256i *)(const void *)p);

    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(h), 16));
}

static inline void vec_store(float *p, vec v)
{
    _mm512_storeu_ps(p, v);
}

static inline vec vec_set(float f)
{
    return _mm512_set1_ps(f);
}

static inline vec vec_fma(vec a, vec b, vec c)
{
    return _mm512_fmadd_ps(a, b, c);
}

/* The tree over the 16 chains. */
static inline float vec_join(const vec *chains)
{
    __m256 high = _mm256_castpd_ps(_mm512_extractf64x4_pd(_mm512_castps_pd(chains[0]), 1));
    __m256 s = _mm256_add_ps(_mm512_castps512_ps256(chains[0]), high);
    __m128 q = _mm_add_ps(_mm256_castps256_ps128(s), _mm256_extractf128_ps(s, 1));

    q = _mm_add_ps(q, _mm_movehl_ps(q, q));
    return _mm_cvtss_f32(_mm_add_ss(q, _mm_shuffle_ps(q, q, 1)));
}

#define TILE_X 6
#define TILE_W 4
#define TALL_W 8 /* weight rows beside a single row of x */
#define MAX_W  8

#include "ops/cpu/vector_kernels.h"

const ct_cpu_kernels ct_cpu_kernels_avx512 = CT_VECTOR_KERNELS;
#else
typedef int ct_not_x86; /* a file must not be empty */
#endif
