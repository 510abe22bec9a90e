#include "ops/ref/internal.h"

#include <assert.h>
#include <math.h>

void ct_ref_norm(const ct_ref *r, float *y, const float *x, const void *w, size_t n, float eps,
                 double *wide)
{
    double scale;

    for (size_t i = 0; i < n; i++)
        wide[i] = x[i];
    scale = 1.0 / sqrt(ct_ref_dot(wide, x, n) / (double)n + (double)eps);
    for (size_t i = 0; i < n; i++)
        y[i] = ct_ref_round(r, w ? wide[i] * scale * ct_ref_bf16(w, i) : wide[i] * scale);
}

typedef struct norm_args {
    ct_ref *r;
    float *y;
    const float *x;
    const void *w;
    size_t width;
    float eps;
} norm_args;

static void norm_item(void *ctx, size_t t, unsigned thread)
{
    const norm_args *a = ctx;

    ct_ref_norm(a->r, a->y + t * a->width, a->x + t * a->width, a->w, a->width, a->eps,
                a->r->scratch[thread].rows);
}

void ct_ref_rms_norm(ct_backend *b, void *y, const void *x, const void *w, uint32_t T,
                     uint32_t width, float eps)
{
    norm_args a = {.r = ct_ref_of(b), .y = y, .x = x, .w = w, .width = width, .eps = eps};

    assert(width <= a.r->limits.cols);
    ct_ref_run(a.r, T, 2.0 * T * width, norm_item, &a);
}

typedef struct add_norm {
    ct_ref *r;
    const ct_add_norm_args *a;
} add_norm;

static void add_norm_item(void *ctx, size_t t, unsigned thread)
{
    const add_norm *n = ctx;
    const ct_add_norm_args *a = n->a;
    const ct_ref *r = n->r;
    double *wide = r->scratch[thread].rows;
    float *x = (float *)a->x + t * a->width;
    float *out = (float *)a->out + t * a->width;

    ct_ref_norm(r, out, (const float *)a->y + t * a->width, a->post, a->width, a->eps, wide);
    for (size_t i = 0; i < a->width; i++)
        x[i] = ct_ref_round(r, (double)x[i] + out[i]);
    /* The scalar multiplies the whole stream, residual included. */
    for (size_t i = 0; a->scalar && i < a->width; i++)
        x[i] = ct_ref_round(r, (double)x[i] * ct_ref_bf16(a->scalar, 0));
    ct_ref_norm(r, out, x, a->next, a->width, a->eps, wide);
}

void ct_ref_add_norm(ct_backend *b, const ct_add_norm_args *a, uint32_t T)
{
    add_norm n = {.r = ct_ref_of(b), .a = a};

    assert(a->width <= n.r->limits.cols);
    ct_ref_run(n.r, T, 5.0 * T * a->width, add_norm_item, &n);
}

void ct_ref_add(ct_backend *b, void *y, const void *x, const void *z, uint32_t T, uint32_t width)
{
    const ct_ref *r = ct_ref_of(b);
    const float *p = x, *q = z;
    float *out = y;

    for (size_t i = 0; i < (size_t)T * width; i++)
        out[i] = ct_ref_round(r, (double)p[i] + q[i]);
}
