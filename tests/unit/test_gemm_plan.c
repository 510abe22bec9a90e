/* ops/cuda/gemm_plan: every plan covers its product and fits the device.  No GPU needed. */
#include "support.h"

#include "base/checked.h"
#include "ops/cuda/gemm_plan.h"

/* One H200, as the driver describes it. */
static const ct_gemm_device h200 = {
    .n_sms = 132, .smem_bytes = 232448, .smem_sm_bytes = 233472, .n_pairs = 66, .n_quads = 30};

static const ct_gemm_shape shapes[] = {
    {1, 8, false},        {65, 200, false},     {16, 64, true},        {4224, 2816, true},
    {2816, 704, false},   {16384, 5376, false}, {18432, 5376, false},  {5376, 8192, false},
    {5376, 21504, false}, {43008, 5376, true},  {262144, 5376, false}, {8192, 3840, false},
    {8704, 3840, false},  {3840, 4096, false},  {3840, 15360, false},  {30720, 3840, true},
};
static const int row_counts[] = {1,  8,   9,   16,  17,   32,   33,     64,
                                 65, 128, 300, 512, 2048, 8192, 1 << 20};

static void check_plan(const ct_gemm_plan *p, const ct_gemm_shape *w, int m)
{
    const ct_gemm_traits *t = ct_gemm_traits_get(p->kernel);
    const int cluster = t->cluster_w * t->cluster_x;
    const int64_t tiles = (int64_t)p->tiles_w * p->tiles_x;

    /* The tiles cover W and X, and no cluster is all beyond the edge. */
    assert_true((int64_t)p->tiles_w * t->cluster_w * p->r >= w->rows);
    assert_true((int64_t)(p->tiles_w - 1) * t->cluster_w * p->r < w->rows);
    assert_true((int64_t)p->tiles_x * t->cluster_x * t->n >= m);
    assert_true((int64_t)(p->tiles_x - 1) * t->cluster_x * t->n < m);
    assert_true((int64_t)p->n_kb * t->atoms * CT_GEMM_ATOM_K >= w->cols);
    assert_in_range(p->r, 1, t->groups * 64);
    assert_true(p->slot >= p->r * 128 && p->slot % 1024 == 0);
    if (w->gate_up)
        assert_int_equal(p->r % 16, 0);
    assert_in_range(p->stages, 2, CT_GEMM_MAX_STAGES);
    assert_in_range(p->smem_bytes, 1, h200.smem_bytes);
    assert_in_range(p->grid, 1, h200.n_sms);
    assert_int_equal(p->grid % cluster, 0);
    assert_true(p->grid / cluster <= tiles);
    /* A share below a whole tile would have two owners' accumulators in it. */
    if (p->chain)
        assert_true(t->bulk && tiles > p->grid / cluster);
    assert_false(p->chain && p->overlap);
}

static void every_pick_covers_its_product(void **state)
{
    (void)state;
    for (size_t i = 0; i < CT_LEN(shapes); i++)
        for (size_t j = 0; j < CT_LEN(row_counts); j++) {
            ct_gemm_plan p;

            ct_gemm_plan_pick(&p, &h200, &shapes[i], row_counts[j]);
            check_plan(&p, &shapes[i], row_counts[j]);
        }
}

static void every_kernel_can_run_every_shape(void **state)
{
    (void)state;
    for (size_t i = 0; i < CT_LEN(shapes); i++)
        for (int k = 0; k < CT_GEMM_N_KERNELS; k++)
            for (unsigned wishes = 0; wishes < 4; wishes++) {
                ct_gemm_plan p;

                ct_gemm_plan_make(&p, &h200, &shapes[i], (ct_gemm_kernel)k, 300, wishes);
                check_plan(&p, &shapes[i], 300);
            }
}

/* The descriptors of a weight are made before anybody knows how many rows will come. */
static void tiles_of_w_do_not_depend_on_the_rows_of_x(void **state)
{
    (void)state;
    for (size_t i = 0; i < CT_LEN(shapes); i++)
        for (int k = 0; k < CT_GEMM_N_KERNELS; k++)
            for (size_t j = 0; j < CT_LEN(row_counts); j++) {
                ct_gemm_plan p;

                ct_gemm_plan_make(&p, &h200, &shapes[i], (ct_gemm_kernel)k, row_counts[j], 0);
                assert_int_equal(p.r, ct_gemm_tile_rows(&h200, &shapes[i], (ct_gemm_kernel)k));
            }
}

static void two_blocks_that_share_fit_one_multiprocessor(void **state)
{
    (void)state;
    for (size_t i = 0; i < CT_LEN(shapes); i++)
        for (int k = 0; k < CT_GEMM_N_KERNELS; k++) {
            ct_gemm_plan p;

            ct_gemm_plan_make(&p, &h200, &shapes[i], (ct_gemm_kernel)k, 8, CT_GEMM_SHARE);
            if (ct_gemm_traits_get(p.kernel)->n <= 64)
                assert_true(2 * (p.smem_bytes + 1024) <= h200.smem_sm_bytes);
        }
}

static void a_smaller_device_is_planned_for_too(void **state)
{
    const ct_gemm_device small = {
        .n_sms = 78, .smem_bytes = 232448, .smem_sm_bytes = 233472, .n_pairs = 39, .n_quads = 18};

    (void)state;
    for (size_t i = 0; i < CT_LEN(shapes); i++)
        for (size_t j = 0; j < CT_LEN(row_counts); j++) {
            ct_gemm_plan p;

            ct_gemm_plan_pick(&p, &small, &shapes[i], row_counts[j]);
            assert_in_range(p.grid, 1, small.n_sms);
            assert_true(p.stages >= 2 && p.smem_bytes <= small.smem_bytes);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_pick_covers_its_product),
        cmocka_unit_test(every_kernel_can_run_every_shape),
        cmocka_unit_test(tiles_of_w_do_not_depend_on_the_rows_of_x),
        cmocka_unit_test(two_blocks_that_share_fit_one_multiprocessor),
        cmocka_unit_test(a_smaller_device_is_planned_for_too),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
