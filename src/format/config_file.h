/* Shared by the readers of a model directory's JSON files: bounded opening and
 * parsing, and the part of config.json that has a file of its own. */
#ifndef CT_FORMAT_CONFIG_FILE_H
#define CT_FORMAT_CONFIG_FILE_H

#include "base/map.h"
#include "base/path.h"
#include "format/config.h"
#include "format/doc.h"

typedef struct ct_config_file {
    char path[CT_PATH_BYTES];
    ct_map map;
} ct_config_file;

/* The caller closes the map. */
ct_status ct_config_file_open(ct_config_file *out, const char *dir, const char *name,
                              ct_error *err);

/* Parses a text of at most CT_MAX_CONFIG_BYTES whose top is an object, into a scratch
 * arena that this makes and the caller deinits after success. */
ct_status ct_config_doc(const ct_node **root, const char *path, ct_str text, ct_arena *scratch,
                        ct_error *err);

/* quantization_config of the document; its strings are copied to the arena. */
ct_status ct_quant_config_read(ct_quant_config *out, const char *path, const ct_node *root,
                               ct_arena *a, ct_error *err);

#endif
