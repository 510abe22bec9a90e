/* safetensors reader: one file, or shards with their index.
 *
 * File: u64 little-endian header length, that many bytes of JSON
 * {name: {dtype, shape, data_offsets: [begin, end)}}, then the data; offsets count
 * from the end of the header (huggingface/safetensors README).  Everything in the
 * header is checked before a byte of data is trusted: lengths, overflow, shape
 * against offsets, overlap, gaps, duplicates.
 * Open by one thread; read by all. */
#ifndef CT_FORMAT_SAFETENSORS_H
#define CT_FORMAT_SAFETENSORS_H

#include "base/status.h"
#include "format/tensor.h"

typedef struct ct_checkpoint ct_checkpoint;

/* dir: a directory holding model.safetensors, or model.safetensors.index.json and
 * the shards that it names (plain file names inside dir only). */
ct_status ct_checkpoint_open(ct_checkpoint **out, const char *dir, ct_error *err);
/* One .safetensors file by its path: fixtures, references, saved logits. */
ct_status ct_checkpoint_open_file(ct_checkpoint **out, const char *path, ct_error *err);
void ct_checkpoint_close(ct_checkpoint *c);

size_t ct_checkpoint_count(const ct_checkpoint *c);
const ct_tensor *ct_checkpoint_at(const ct_checkpoint *c, size_t i); /* in order of name */
/* NULL when there is none of this name. */
const ct_tensor *ct_checkpoint_find(const ct_checkpoint *c, ct_str name);
const char *ct_checkpoint_path(const ct_checkpoint *c); /* for messages */

#endif
