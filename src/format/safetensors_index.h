/* model.safetensors.index.json: which shard holds which tensor. */
#ifndef CT_FORMAT_SAFETENSORS_INDEX_H
#define CT_FORMAT_SAFETENSORS_INDEX_H

#include "base/arena.h"
#include "base/status.h"
#include "format/tensor.h"

#define CT_ST_MAX_INDEX_BYTES ((size_t)100000000)
#define CT_ST_MAX_SHARDS      1024

typedef struct ct_st_entry {
    ct_str name;
    unsigned file; /* index into ct_st_index.file */
} ct_st_entry;

typedef struct ct_st_index {
    ct_st_entry *entry; /* in order of name, no name twice */
    size_t n_entries;
    const char **file; /* plain names, no folder in them */
    size_t n_files;
    bool has_total;
    uint64_t total_bytes; /* metadata.total_size, of all tensors */
} ct_st_index;

/* Upper bound of what ct_st_index_parse takes from its arena. */
size_t ct_st_index_bytes(size_t text_len);

/* Everything in the result is borrowed from text or lives in the arena. */
ct_status ct_st_index_parse(ct_st_index *out, const char *path, ct_str text, ct_arena *a,
                            ct_error *err);

/* The tensors, in order of name, must be exactly those of the index, each in its file. */
ct_status ct_st_index_check(const ct_st_index *index, const char *path, const ct_tensor *tensor,
                            size_t n, ct_error *err);

#endif
