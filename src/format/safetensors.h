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
 * the shards that it names (plain file names inside dir only).  With both, the single
 * file is taken and the index is not read, as transformers does. */
ct_status ct_checkpoint_open(ct_checkpoint **out, const char *dir, ct_error *err);
/* One .safetensors file by its path: fixtures, references, saved logits. */
ct_status ct_checkpoint_open_file(ct_checkpoint **out, const char *path, ct_error *err);
/* The bytes of one .safetensors file in memory, borrowed until the close. */
ct_status ct_checkpoint_open_memory(ct_checkpoint **out, const char *name, ct_str bytes,
                                    ct_error *err);
void ct_checkpoint_close(ct_checkpoint *c); /* NULL is fine */

size_t ct_checkpoint_count(const ct_checkpoint *c);
/* In order of name; tensors are elements of one array, so that the difference of two
 * pointers is the difference of their indices. */
const ct_tensor *ct_checkpoint_at(const ct_checkpoint *c, size_t i);
/* NULL when there is none of this name. */
const ct_tensor *ct_checkpoint_find(const ct_checkpoint *c, ct_str name);
const char *ct_checkpoint_path(const ct_checkpoint *c); /* for messages */
size_t ct_checkpoint_n_files(const ct_checkpoint *c);
const char *ct_checkpoint_file(const ct_checkpoint *c, unsigned file); /* path of one file */

#endif
