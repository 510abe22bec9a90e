/* AVX2 with FMA.  The 16 chains of a dot are two registers.  Tiles of 2 weight rows and 3
 * rows of x hold 12 accumulators of the 16 registers; one row of x alone takes 4 weight
 * rows, so that eight accumulators cover the latency. */
#if defined(__x86_64__)
#include "ops/cpu/kernels.h"
#include "ops/cpu/vecmath.h"

#include <immintrin.h>

#define WIDTH 8 /* floats a register */

typedef __m256 vec;

static inline vec vec_load(const float *p)
{
    return _mm256_loadu_ps(p);
}

static inline vec vec_load_bf16(const uint16_t *p)
{
    __m128i h = _mm_loadu_si128((const __m128i *)(const void *)p);

    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(h), 16));
}

static inline void vec_store(float *p, vec v)
{
    _mm256_storeu_ps(p, v);
}

static inline vec vec_set(float f)
{
    return _mm256_set1_ps(f);
}

static inline vec vec_fma(vec a, vec b, vec c)
{
    return _mm256_fmadd_ps(a, b, c);
}

/* The tree over chains 0-7 and 8-15. */
static inline float vec_join(const vec *chains)
{
    __m256 s = _mm256_add_ps(chains[0], chains[1]);
    __m128 q = _mm_add_ps(_mm256_castps256_ps128(s), _mm256_extractf128_ps(s, 1));

    q = _mm_add_ps(q, _mm_movehl_ps(q, q));
    return _mm_cvtss_f32(_mm_add_ss(q, _mm_shuffle_ps(q, q, 1)));
}

#define TILE_X 3
#define TILE_W 2
#define TALL_W 4 /* weight rows beside a single row of x */
#define MAX_W  4

#include "ops/cpu/vector_kernels.h"

const ct_cpu_kernels ct_cpu_kernels_avx2 = CT_VECTOR_KERNELS;
#else
typedef int ct_not_x86; /* a file must not be empty */
#endif
