/* What a backend on the host has taken, freed together.  One thread. */
#ifndef CT_OPS_HOST_MEMORY_H
#define CT_OPS_HOST_MEMORY_H

#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct ct_host_block ct_host_block;

typedef struct ct_host_memory {
    ct_host_block *blocks; /* owned */
    uint64_t bytes;        /* taken so far */
    bool metered;          /* count only: takes give NULL */
} ct_host_memory;

/* Stores a pointer to n zeroed elements of elem_bytes in *(void **)out, aligned to 64. */
ct_status ct_host_take(ct_host_memory *m, void *out, size_t n, size_t elem_bytes, ct_error *err);
void ct_host_free_all(ct_host_memory *m);

#endif
