/* Every matrix and vector of a model is placed once, and the checkpoint's tables stay. */
#include "model/place.h"

#include "support.h"

#include <stdlib.h>

enum { N_LAYERS = 2, N_EXPERTS = 3 };

typedef struct counter {
    ct_backend base;
    unsigned matrices, vectors, fail_at; /* 0: never */
} counter;

static const float moved; /* what a placed view points to */

static ct_status count(counter *c, ct_error *err)
{
    return c->fail_at && c->matrices + c->vectors == c->fail_at
               ? ct_fail(err, CT_ELIMIT, "no room for number %u", c->fail_at)
               : CT_OK;
}

static ct_status place(ct_backend *b, ct_weight *w, ct_error *err)
{
    counter *c = (counter *)b;

    assert_ptr_not_equal(w->data, &moved); /* once only */
    c->matrices++;
    w->data = &moved;
    return count(c, err);
}

static ct_status place_vector(ct_backend *b, const void **v, size_t n, ct_error *err)
{
    counter *c = (counter *)b;

    assert_true(n > 0);
    assert_ptr_not_equal(*v, &moved);
    c->vectors++;
    *v = &moved;
    return count(c, err);
}

typedef struct model {
    ct_config config;
    ct_layer_weights layer[N_LAYERS];
    ct_weight experts[N_LAYERS][3][N_EXPERTS];
    ct_weights weights;
} model;

static const uint16_t stored[8];

static void fill_layer(model *m, unsigned l)
{
    const ct_weight w = {CT_WEIGHT_BF16, 1, 1, stored, NULL, 1};
    ct_layer_weights *out = &m->layer[l];

    *out = (ct_layer_weights){
        stored, stored, stored, stored, stored, stored,
        stored, w,      w,      w,      w,      w,
        w,      w,      stored, stored, stored, {w, stored, stored, N_EXPERTS, 1},
        {0}};
    if (m->config.is_global[l])
        out->v.type = CT_WEIGHT_NONE;
    for (unsigned i = 0; i < 3; i++)
        for (unsigned e = 0; e < N_EXPERTS; e++)
            m->experts[l][i][e] = w;
    out->experts =
        (ct_expert_weights){m->experts[l][0], m->experts[l][1], m->experts[l][2], N_EXPERTS, 1};
}

static void make(model *m)
{
    *m = (model){.config = {.n_layers = N_LAYERS,
                            .hidden = 4,
                            .hd_sliding = 2,
                            .hd_global = 4,
                            .moe = true,
                            .n_experts = N_EXPERTS}};
    m->config.is_global[1] = true;
    for (unsigned l = 0; l < N_LAYERS; l++)
        fill_layer(m, l);
    m->weights = (ct_weights){{CT_WEIGHT_BF16, 1, 1, stored, NULL, 1}, stored, m->layer};
}

/* A layer: eleven vectors and the router's projection, three matrices of attention and
 * the values', three of the dense branch, three an expert. */
enum { VECTORS = 1 + N_LAYERS * 12, MATRICES = 1 + N_LAYERS * (8 + 3 * N_EXPERTS) - 1 };

static void everything_is_placed_once(void **state)
{
    const ct_ops ops = {.place = place, .place_vector = place_vector};
    counter c = {.base = {&ops}};
    ct_weights out;
    void *block = NULL;
    ct_error err;
    model m;

    (void)state;
    make(&m);
    assert_int_equal(ct_weights_place(&out, &block, &m.weights, &m.config, &c.base, &err), CT_OK);
    assert_int_equal(c.matrices, MATRICES);
    assert_int_equal(c.vectors, VECTORS);
    for (unsigned l = 0; l < N_LAYERS; l++) {
        assert_ptr_equal(out.layer[l].experts.down[N_EXPERTS - 1].data, &moved);
        assert_ptr_equal(m.layer[l].q_norm, stored);
        assert_ptr_equal(m.experts[l][2][0].data, stored);
    }
    free(block);
}

static void a_backend_without_it_reads_the_checkpoint(void **state)
{
    const ct_ops ops = {0};
    ct_backend b = {&ops};
    ct_weights out;
    void *block = NULL;
    ct_error err;
    model m;

    (void)state;
    make(&m);
    assert_int_equal(ct_weights_place(&out, &block, &m.weights, &m.config, &b, &err), CT_OK);
    assert_ptr_equal(out.layer[1].experts.up[1].data, stored);
    assert_ptr_equal(out.embed.data, stored);
    free(block);
}

static void the_first_failure_ends_it(void **state)
{
    const ct_ops ops = {.place = place, .place_vector = place_vector};

    (void)state;
    for (unsigned at = 1; at <= VECTORS + MATRICES; at++) {
        counter c = {.base = {&ops}, .fail_at = at};
        ct_weights out;
        void *block = NULL;
        ct_error err;
        model m;

        make(&m);
        assert_int_equal(ct_weights_place(&out, &block, &m.weights, &m.config, &c.base, &err),
                         CT_ELIMIT);
        assert_int_equal(c.matrices + c.vectors, at);
        free(block);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(everything_is_placed_once),
        cmocka_unit_test(a_backend_without_it_reads_the_checkpoint),
        cmocka_unit_test(the_first_failure_ends_it),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
