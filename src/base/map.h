/* Read-only mapping of a whole file.  Shared by all threads once open. */
#ifndef CT_BASE_MAP_H
#define CT_BASE_MAP_H

#include "base/status.h"
#include "base/str.h"

typedef struct ct_map {
    const unsigned char *base; /* NULL for an empty file */
    size_t size;               /* bytes */
} ct_map;

/* Refuses anything but a regular file: a FIFO or a device would block or lie
 * about its size. */
ct_status ct_map_open(ct_map *out, const char *path, ct_error *err);
void ct_map_close(ct_map *m); /* fine on an all-zero map */

static inline ct_str ct_map_str(const ct_map *m)
{
    return (ct_str){(const char *)m->base, m->size};
}

#endif
