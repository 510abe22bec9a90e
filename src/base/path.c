#include "base/path.h"

#include <stdio.h>

ct_status ct_path_join(char out[CT_PATH_BYTES], const char *dir, const char *name, ct_error *err)
{
    int n = snprintf(out, CT_PATH_BYTES, "%s/%s", dir, name);

    if (n < 0 || n >= CT_PATH_BYTES)
        return ct_fail(err, CT_ELIMIT, "%s/%s: a path of %d bytes, at most %d are served", dir,
                       name, n, CT_PATH_BYTES - 1);
    return CT_OK;
}
