/* The CPU backend: f32 activations, weights read as they lie in the checkpoint, vector
 * instructions chosen at run time.
 *
 * Every sum has one order, written down in kernels.h, so a row has the same bits for any
 * number of rows and threads and on any instruction set. */
#ifndef CT_OPS_CPU_CPU_H
#define CT_OPS_CPU_CPU_H

#include "base/pool.h"
#include "ops/ops.h"

/* Instruction sets, each containing the ones before it. */
typedef enum ct_cpu_level {
    CT_CPU_PORTABLE,
    CT_CPU_AVX2, /* with FMA */
    CT_CPU_AVX512,
    CT_N_CPU_LEVELS,
} ct_cpu_level;

const char *ct_cpu_level_name(ct_cpu_level l);
/* The highest that this machine and build have. */
ct_cpu_level ct_cpu_level_best(void);

/* pool is borrowed.  Refuses a level that the machine lacks. */
ct_status ct_cpu_create(ct_backend **out, ct_cpu_level level, ct_pool *pool, ct_error *err);

#endif
