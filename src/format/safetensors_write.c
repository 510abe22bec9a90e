#include "format/safetensors_write.h"

#include "base/json.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAX_HEADER_BYTES ((size_t)100 << 20) /* of the official library */

typedef struct extent {
    uint64_t begin, n; /* bytes, from the end of the header */
} extent;

struct ct_tensor_writer {
    char *path, *part_path; /* owned */
    int fd;                 /* -1 once closed */
    bool has_part, finished;
    uint64_t data_begin; /* in the file */
    extent *extent;      /* [n_tensors]; owned */
    size_t n_tensors;
};

static ct_status extent_of(extent *e, const ct_tensor *t, ct_error *err)
{
    uint64_t n = ct_dtype_bytes(t->dtype);

    for (unsigned i = 0; i < t->n_dims; i++)
        if (__builtin_mul_overflow(n, t->dim[i], &n) || n > INT64_MAX)
            return ct_fail(err, CT_ELIMIT, "tensor '%.*s' is too large to write",
                           CT_STR_ARG(t->name));
    e->n = n;
    return CT_OK;
}

/* --- header ------------------------------------------------------------------ */

typedef struct ordered {
    const ct_tensor *t;
    extent *e;
} ordered;

static int by_size_then_name(const void *a, const void *b)
{
    const ordered *p = a, *q = b;
    size_t p_bytes = ct_dtype_bytes(p->t->dtype), q_bytes = ct_dtype_bytes(q->t->dtype);

    if (p_bytes != q_bytes)
        return p_bytes > q_bytes ? -1 : 1;
    return ct_str_cmp(p->t->name, q->t->name);
}

static void put_entry(ct_buf *header, const ordered *o)
{
    ct_json_put_str(header, o->t->name);
    ct_buf_addf(header, ":{\"dtype\":\"%s\",\"shape\":[", ct_dtype_name(o->t->dtype));
    for (unsigned i = 0; i < o->t->n_dims; i++)
        ct_buf_addf(header, "%s%" PRIu64, i ? "," : "", o->t->dim[i]);
    ct_buf_addf(header, "],\"data_offsets\":[%" PRIu64 ",%" PRIu64 "]}", o->e->begin,
                o->e->begin + o->e->n);
}

/* Settles every extent's begin and writes the JSON. */
static ct_status make_header(ct_buf *header, ordered *order, size_t n, ct_error *err)
{
    uint64_t at = 0;

    qsort(order, n, sizeof *order, by_size_then_name);
    ct_buf_addc(header, '{');
    for (size_t i = 0; i < n; i++) {
        if (i && ct_str_eq(order[i].t->name, order[i - 1].t->name))
            return ct_fail(err, CT_EINVAL, "two tensors named '%.*s'",
                           CT_STR_ARG(order[i].t->name));
        order[i].e->begin = at;
        if (__builtin_add_overflow(at, order[i].e->n, &at) || at > INT64_MAX)
            return ct_fail(err, CT_ELIMIT, "%zu tensors are too large for one file", n);
        if (i)
            ct_buf_addc(header, ',');
        put_entry(header, &order[i]);
    }
    ct_buf_addc(header, '}');
    while (header->n % 8 && !header->failed)
        ct_buf_addc(header, ' ');
    if (header->failed)
        return ct_fail(err, CT_ELIMIT, "the header of %zu tensors is larger than %zu bytes", n,
                       MAX_HEADER_BYTES);
    return CT_OK;
}

/* --- file -------------------------------------------------------------------- */

static ct_status write_at(const ct_tensor_writer *w, const void *data, size_t n, uint64_t at,
                          ct_error *err)
{
    const char *p = data;

    while (n) {
        ssize_t done = pwrite(w->fd, p, n, (off_t)at);

        if (done < 0 && errno == EINTR)
            continue;
        if (done <= 0)
            return ct_fail(err, CT_EIO, "%s: %s", w->part_path,
                           done ? strerror(errno) : "nothing was written");
        p += done;
        at += (uint64_t)done;
        n -= (size_t)done;
    }
    return CT_OK;
}

static ct_status open_part(ct_tensor_writer *w, const ct_buf *header, uint64_t data_bytes,
                           ct_error *err)
{
    unsigned char length[8];
    ct_status st;

    w->fd = open(w->part_path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (w->fd < 0)
        return ct_fail(err, CT_EIO, "%s: %s", w->part_path, strerror(errno));
    w->has_part = true;
    for (unsigned i = 0; i < sizeof length; i++)
        length[i] = (unsigned char)((uint64_t)header->n >> 8 * i);
    w->data_begin = sizeof length + header->n;
    st = write_at(w, length, sizeof length, 0, err);
    if (!st)
        st = write_at(w, header->p, header->n, sizeof length, err);
    if (!st && ftruncate(w->fd, (off_t)(w->data_begin + data_bytes)) != 0)
        st = ct_fail(err, CT_EIO, "%s: %s", w->part_path, strerror(errno));
    return st;
}

static ct_status lay_out(ct_tensor_writer *w, const ct_tensor *tensors, ct_error *err)
{
    ordered *order = calloc(w->n_tensors + 1, sizeof *order);
    ct_buf header;
    uint64_t data_bytes = 0;
    ct_status st = CT_OK;

    if (!order)
        return ct_fail(err, CT_ELIMIT, "out of memory for %zu tensors", w->n_tensors);
    ct_buf_init(&header, MAX_HEADER_BYTES);
    for (size_t i = 0; i < w->n_tensors && !st; i++) {
        order[i] = (ordered){&tensors[i], &w->extent[i]};
        st = extent_of(&w->extent[i], &tensors[i], err);
    }
    if (!st)
        st = make_header(&header, order, w->n_tensors, err);
    for (size_t i = 0; i < w->n_tensors; i++)
        data_bytes += w->extent[i].n;
    if (!st)
        st = open_part(w, &header, data_bytes, err);
    ct_buf_deinit(&header);
    free(order);
    return st;
}

static char *part_name(const char *path)
{
    char *name;

    return asprintf(&name, "%s.part-%ld", path, (long)getpid()) < 0 ? NULL : name;
}

ct_status ct_tensor_writer_create(ct_tensor_writer **out, const char *path,
                                  const ct_tensor *tensors, size_t n, ct_error *err)
{
    ct_tensor_writer *w;
    struct stat sb;
    ct_status st;

    /* The new file replaces what has its name: not a device, not a directory. */
    if (stat(path, &sb) == 0 && !S_ISREG(sb.st_mode))
        return ct_fail(err, CT_EINVAL, "%s: exists and is not a regular file", path);
    w = calloc(1, sizeof *w);
    if (!w)
        return ct_fail(err, CT_ELIMIT, "%s: out of memory", path);
    w->fd = -1;
    w->n_tensors = n;
    w->path = strdup(path);
    w->part_path = part_name(path);
    w->extent = calloc(n + 1, sizeof *w->extent);
    if (!w->path || !w->part_path || !w->extent)
        st = ct_fail(err, CT_ELIMIT, "%s: out of memory", path);
    else
        st = lay_out(w, tensors, err);
    if (st) {
        ct_tensor_writer_destroy(w);
        return st;
    }
    *out = w;
    return CT_OK;
}

ct_status ct_tensor_writer_put(ct_tensor_writer *w, size_t tensor, uint64_t first, const void *data,
                               size_t n, ct_error *err)
{
    const extent *e = &w->extent[tensor];

    assert(tensor < w->n_tensors && !w->finished);
    assert(first <= e->n && n <= e->n - first);
    return write_at(w, data, n, w->data_begin + e->begin + first, err);
}

ct_status ct_tensor_writer_finish(ct_tensor_writer *w, ct_error *err)
{
    int fd = w->fd;

    if (fsync(fd) != 0)
        return ct_fail(err, CT_EIO, "%s: %s", w->part_path, strerror(errno));
    w->fd = -1;
    /* close() reports what a network file system could not store. */
    if (close(fd) != 0)
        return ct_fail(err, CT_EIO, "%s: %s", w->part_path, strerror(errno));
    if (rename(w->part_path, w->path) != 0)
        return ct_fail(err, CT_EIO, "%s: %s", w->path, strerror(errno));
    w->finished = true;
    return CT_OK;
}

void ct_tensor_writer_destroy(ct_tensor_writer *w)
{
    if (!w)
        return;
    if (w->fd >= 0)
        close(w->fd);
    if (w->has_part && !w->finished)
        unlink(w->part_path);
    free(w->path);
    free(w->part_path);
    free(w->extent);
    free(w);
}
