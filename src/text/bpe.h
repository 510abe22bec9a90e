/* Merging of one segment: the pair of lowest rank first, the leftmost among equals. */
#ifndef CT_TEXT_BPE_H
#define CT_TEXT_BPE_H

#include "base/arena.h"
#include "text/merges.h"

/* Scratch bytes that a segment of n ids can take. */
#define CT_BPE_SCRATCH_BYTES(n) ((n)*32 + 2 * CT_ALIGN)
/* Up to here the scan of a few ranks beats a heap, and no scratch is used. */
#define CT_BPE_SHORT 48

/* Merges seg[0 … n) in place and returns how many ids are left.  Time n log n.  n must be
 * under 2^31, and scratch (untouched up to CT_BPE_SHORT) must have the bytes above. */
size_t ct_bpe_merge(const ct_merges *m, uint32_t *seg, size_t n, ct_arena *scratch);

#endif
