/* File names. */
#ifndef CT_BASE_PATH_H
#define CT_BASE_PATH_H

#include "base/status.h"

#define CT_PATH_BYTES 4096 /* PATH_MAX of Linux, NUL included */

/* out = dir/name.  Fails, with out undefined, when that is longer than any path. */
ct_status ct_path_join(char out[CT_PATH_BYTES], const char *dir, const char *name, ct_error *err);

#endif
