#include "base/map.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

ct_status ct_map_open(ct_map *out, const char *path, ct_error *err)
{
    ct_status st = CT_OK;
    void *base = NULL;
    struct stat sb;
    /* O_NONBLOCK: opening a FIFO must not wait for a writer. */
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);

    if (fd < 0)
        return ct_fail(err, CT_EIO, "%s: %s", path, strerror(errno));
    if (fstat(fd, &sb) != 0) {
        st = ct_fail(err, CT_EIO, "%s: %s", path, strerror(errno));
        goto done;
    }
    if (!S_ISREG(sb.st_mode)) {
        st = ct_fail(err, CT_EIO, "%s: not a regular file", path);
        goto done;
    }
    if (sb.st_size > 0) {
        base = mmap(NULL, (size_t)sb.st_size, PROT_READ, MAP_SHARED, fd, 0);
        if (base == MAP_FAILED) {
            st = ct_fail(err, CT_EIO, "%s: mmap of %jd bytes: %s", path, (intmax_t)sb.st_size,
                         strerror(errno));
            goto done;
        }
    }
    *out = (ct_map){.base = base, .size = (size_t)sb.st_size};
done:
    close(fd);
    return st;
}

void ct_map_close(ct_map *m)
{
    if (m->base)
        munmap((void *)(uintptr_t)m->base, m->size);
    *m = (ct_map){0};
}
