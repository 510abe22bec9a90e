#include "ops/cpu/internal.h"

#include <assert.h>
#include <math.h>

#define LANES 8 /* partial sums, joined in a fixed order */

/* In double: a norm is a hundredth of a layer's work, and its sum the place where f32
 * would lose most. */
static double sum_squares(const float *x, size_t n)
{
    double s[LANES] = {0};
    size_t i = 0;

    for (; i + LANES <= n; i += LANES)
        for (unsigned j = 0; j < LANES; j++)
            s[j] += (double)x[i + j] * (double)x[i + j];
    for (unsigned j = 0; i + j < n; j++)
        s[j] += (double)x[i + j] * (double)x[i + j];
    return ((s[0] + s[4]) + (s[2] + s[6])) + ((s[1] + s[5]) + (s[3] + s[7]));
}

void ct_cpu_norm(float *y, const float *x, const void *w, size_t n, float eps)
{
    const double scale = 1.0 / sqrt(sum_squares(x, n) / (double)n + (double)eps);

    if (!w) {
        for (size_t i = 0; i < n; i++)
            y[i] = (float)(x[i] * scale);
        return;
    }
    for (size_t i = 0; i < n; i++)
        y[i] = (float)(x[i] * scale * ct_cpu_bf16(w, i));
}

typedef struct norm_args {
    float *y;
    const float *x;
    const void *w;
    size_t width;
    float eps;
} norm_args;

static void norm_item(void *ctx, size_t t, unsigned thread)
{
    const norm_args *a = ctx;

    (void)thread;
    ct_cpu_norm(a->y + t * a->width, a->x + t * a->width, a->w, a->width, a->eps);
}

void ct_cpu_rms_norm(ct_backend *b, void *y, const void *x, const void *w, uint32_t T,
                     uint32_t width, float eps)
{
    norm_args a = {.y = y, .x = x, .w = w, .width = width, .eps = eps};

    ct_cpu_run(ct_cpu_of(b), T, 4.0 * T * width, norm_item, &a);
}

static void add_norm_item(void *ctx, size_t t, unsigned thread)
{
    const ct_add_norm_args *a = ctx;
    const float scalar = a->scalar ? ct_cpu_bf16(a->scalar, 0) : 1.0f;
    float *x = (float *)a->x + t * a->width;
    float *out = (float *)a->out + t * a->width;

    (void)thread;
    ct_cpu_norm(out, (const float *)a->y + t * a->width, a->post, a->width, a->eps);
    /* The scalar multiplies the whole stream, residual included. */
    for (size_t i = 0; i < a->width; i++)
        x[i] = (x[i] + out[i]) * scalar;
    ct_cpu_norm(out, x, a->next, a->width, a->eps);
}

void ct_cpu_add_norm(ct_backend *b, const ct_add_norm_args *a, uint32_t T)
{
    ct_add_norm_args args = *a;

    ct_cpu_run(ct_cpu_of(b), T, 10.0 * T * a->width, add_norm_item, &args);
}

void ct_cpu_add(ct_backend *b, void *y, const void *x, const void *z, uint32_t T, uint32_t width)
{
    const float *p = x, *q = z;
    float *out = y;

    (void)b;
    for (size_t i = 0; i < (size_t)T * width; i++)
        out[i] = p[i] + q[i];
}
