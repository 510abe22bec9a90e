/* Keys and values of a number of sequences, in two families of pages.
 *
 * Sliding layers need a window of positions, global layers all of them; so each kind
 * has its own pool and its own page table, shared by the layers of the kind.  Sliding
 * pages that fall behind the window go back to the pool.  Everything is allocated at
 * creation.  A position is absolute; it is found through the block it lies in
 * (position / page_tokens).  Engine thread only. */
#ifndef CT_KV_KV_H
#define CT_KV_KV_H

#include "base/status.h"
#include "format/config.h"
#include "ops/ops.h"

typedef struct ct_kv ct_kv;

#define CT_KV_PAGE_TOKENS 64

typedef struct ct_kv_shape {
    uint32_t n_seqs;
    uint32_t seq_tokens;  /* longest sequence */
    uint32_t step_tokens; /* most rows of one sequence in one step */
    uint32_t page_tokens; /* 0: CT_KV_PAGE_TOKENS */
} ct_kv_shape;

/* Room for n_seqs sequences at their longest.  backend is borrowed, and owns the
 * stores. */
ct_status ct_kv_create(ct_kv **out, const ct_config *config, const ct_kv_shape *shape,
                       ct_backend *backend, ct_error *err);
void ct_kv_destroy(ct_kv *kv);

/* [n_layers], as attention sees them; valid until ct_kv_destroy. */
const ct_kv_layer *ct_kv_layers(const ct_kv *kv);

/* Makes positions [length, length + n) of a sequence resident, which the next step
 * then writes, and lets go of what their windows no longer reach.  Fails with nothing
 * changed when the sequence would grow too long or the step is too large. */
ct_status ct_kv_extend(ct_kv *kv, uint32_t seq, uint32_t n, ct_error *err);
uint32_t ct_kv_length(const ct_kv *kv, uint32_t seq);
/* Empties a sequence. */
void ct_kv_reset(ct_kv *kv, uint32_t seq);

typedef struct ct_kv_usage {
    uint32_t n_sliding, n_global;       /* pages in all */
    uint32_t sliding_free, global_free; /* of them in no table */
} ct_kv_usage;

ct_kv_usage ct_kv_used(const ct_kv *kv);
/* Whether every table entry names a page in range that no other entry names, and the
 * counts agree: for tests and for asserts. */
bool ct_kv_consistent(const ct_kv *kv);

#endif
