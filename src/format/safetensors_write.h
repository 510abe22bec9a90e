/* safetensors writer: one file, laid out as the official library does (data in order of
 * element size, largest first, then of name; header padded to 8 bytes).
 *
 * Shapes are declared first, then data is put in any order and in pieces, so a result
 * larger than memory can be written.  The file appears under its name only when it is
 * complete: until then it has a temporary name beside it.  One thread at a time. */
#ifndef CT_FORMAT_SAFETENSORS_WRITE_H
#define CT_FORMAT_SAFETENSORS_WRITE_H

#include "base/status.h"
#include "format/tensor.h"

typedef struct ct_tensor_writer ct_tensor_writer;

/* Name, dtype and shape of each tensor are read; names must differ.  path and tensors
 * are borrowed for the call. */
ct_status ct_tensor_writer_create(ct_tensor_writer **out, const char *path,
                                  const ct_tensor *tensors, size_t n, ct_error *err);
/* Bytes [first, first + n) of the tensor with that index in `tensors`. */
ct_status ct_tensor_writer_put(ct_tensor_writer *w, size_t tensor, uint64_t first, const void *data,
                               size_t n, ct_error *err);
/* Gives the file its name.  Bytes never put are zero. */
ct_status ct_tensor_writer_finish(ct_tensor_writer *w, ct_error *err);
/* Removes the temporary file unless it was finished.  NULL is fine. */
void ct_tensor_writer_destroy(ct_tensor_writer *w);

#endif
