/* Header of one safetensors file, read into tensors whose views lie in the file's
 * bytes.  Nothing of the data is touched. */
#ifndef CT_FORMAT_SAFETENSORS_HEADER_H
#define CT_FORMAT_SAFETENSORS_HEADER_H

#include "base/arena.h"
#include "base/status.h"
#include "format/tensor.h"

/* The cap of the reference implementation (huggingface/safetensors, tensor.rs). */
#define CT_ST_MAX_HEADER_BYTES ((size_t)100000000)

typedef struct ct_st_file {
    const char *path; /* borrowed; begins every message */
    ct_str json;      /* header, without its length field */
    ct_str data;      /* everything behind the header */
    unsigned index;   /* number of the file in its checkpoint */
} ct_st_file;

/* Finds header and data in the bytes of a whole file. */
ct_status ct_st_file_split(ct_st_file *out, const char *path, ct_str bytes, unsigned index,
                           ct_error *err);

/* More tensors than this cannot be written in the header's bytes. */
size_t ct_st_max_tensors(const ct_st_file *f);

/* Reads every entry into out, which has room for ct_st_max_tensors, in order of their
 * place in the data.  Escaped names are decoded into `names`, the others borrowed from
 * the header. */
ct_status ct_st_file_tensors(const ct_st_file *f, ct_tensor *out, size_t *n_out, ct_arena *names,
                             ct_error *err);

#endif
