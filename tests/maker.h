/* Makes safetensors for tests: a list of tensors, changed at will, then written as bytes
 * in memory or as a sparse file whose data is all holes, so that a 62 GB checkpoint costs
 * the disk its header. */
#ifndef CT_TESTS_MAKER_H
#define CT_TESTS_MAKER_H

#include "support.h"

#include "base/checked.h"
#include "base/str.h"
#include "format/tensor.h"

#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sys/stat.h>

#define MAKER_NAME 160

typedef struct made_tensor {
    char name[MAKER_NAME];
    ct_dtype dtype;
    unsigned n_dims;
    uint64_t dim[4];
    float value; /* of F32 scalars */
} made_tensor;

typedef struct maker {
    made_tensor *t;
    size_t n, room;
} maker;

static inline void maker_deinit(maker *m)
{
    free(m->t);
    *m = (maker){0};
}

/* Dimensions end at the first 0; none at all is a scalar. */
static inline made_tensor *maker_add(maker *m, ct_dtype dtype, uint64_t d0, uint64_t d1,
                                     uint64_t d2, const char *fmt, ...)
    __attribute__((format(printf, 6, 7)));
static inline made_tensor *maker_add(maker *m, ct_dtype dtype, uint64_t d0, uint64_t d1,
                                     uint64_t d2, const char *fmt, ...)
{
    const uint64_t dim[3] = {d0, d1, d2};
    made_tensor *t;
    va_list ap;

    if (m->n == m->room) {
        m->room = m->room ? 2 * m->room : 256;
        m->t = realloc(m->t, m->room * sizeof *m->t);
        assert_non_null(m->t);
    }
    t = &m->t[m->n++];
    *t = (made_tensor){.dtype = dtype, .value = 1};
    for (; t->n_dims < 3 && dim[t->n_dims]; t->n_dims++)
        t->dim[t->n_dims] = dim[t->n_dims];
    va_start(ap, fmt);
    vsnprintf(t->name, sizeof t->name, fmt, ap);
    va_end(ap);
    return t;
}

static inline made_tensor *maker_find(maker *m, const char *name)
{
    for (size_t i = 0; i < m->n; i++)
        if (!strcmp(m->t[i].name, name))
            return &m->t[i];
    fail_msg("the test has no tensor %s", name);
    return NULL;
}

static inline void maker_drop(maker *m, const char *name)
{
    made_tensor *t = maker_find(m, name);

    memmove(t, t + 1, (size_t)(m->t + m->n - t - 1) * sizeof *t);
    m->n--;
}

static inline uint64_t made_bytes(const made_tensor *t)
{
    uint64_t n = ct_dtype_bytes(t->dtype);

    for (unsigned i = 0; i < t->n_dims; i++)
        n *= t->dim[i];
    return n;
}

/* Header with its length, and data offsets in which the F32 tensors come first: their
 * values are the only bytes that get written.  Returns the bytes of data. */
static inline uint64_t maker_header(const maker *m, ct_buf *out, uint64_t *n_f32)
{
    uint64_t at = 0, len;
    char length[8];

    ct_buf_init(out, (size_t)1 << 28);
    ct_buf_addz(out, "........{\"__metadata__\":{\"format\":\"pt\"}");
    for (int f32 = 1; f32 >= 0; f32--)
        for (size_t i = 0; i < m->n; i++) {
            const made_tensor *t = &m->t[i];

            if ((t->dtype == CT_DTYPE_F32) != f32)
                continue;
            ct_buf_addf(out, ",\"%s\":{\"dtype\":\"%s\",\"shape\":[", t->name,
                        ct_dtype_name(t->dtype));
            for (unsigned d = 0; d < t->n_dims; d++)
                ct_buf_addf(out, "%s%" PRIu64, d ? "," : "", t->dim[d]);
            ct_buf_addf(out, "],\"data_offsets\":[%" PRIu64 ",%" PRIu64 "]}", at,
                        at + made_bytes(t));
            at += made_bytes(t);
            if (f32)
                *n_f32 = at;
        }
    ct_buf_addc(out, '}');
    while (out->n % 8)
        ct_buf_addc(out, ' ');
    assert_false(out->failed);
    len = out->n - 8;
    for (int i = 0; i < 8; i++)
        length[i] = (char)(len >> 8 * i);
    memcpy(out->p, length, 8);
    return at;
}

/* All bytes of the file, in out (which the caller deinits). */
static inline void maker_bytes(const maker *m, ct_buf *out)
{
    uint64_t n_f32 = 0, n = maker_header(m, out, &n_f32);

    for (size_t i = 0; i < m->n; i++)
        for (uint64_t k = 0; m->t[i].dtype == CT_DTYPE_F32 && k < made_bytes(&m->t[i]) / 4; k++)
            ct_buf_add(out, &m->t[i].value, sizeof(float));
    for (uint64_t i = n_f32; i < n; i++)
        ct_buf_addc(out, '\0');
    assert_false(out->failed);
}

/* Returns the bytes of data. */
static inline uint64_t maker_file(const maker *m, const char *path)
{
    ct_buf out;
    uint64_t n_f32 = 0, n = maker_header(m, &out, &n_f32);
    size_t header = out.n;
    int fd = open(path, O_CREAT | O_TRUNC | O_WRONLY, 0600);

    assert_true(fd >= 0);
    for (size_t i = 0; i < m->n; i++)
        for (uint64_t k = 0; m->t[i].dtype == CT_DTYPE_F32 && k < made_bytes(&m->t[i]) / 4; k++)
            ct_buf_add(&out, &m->t[i].value, sizeof(float));
    assert_int_equal(write(fd, out.p, out.n), (ssize_t)out.n);
    assert_int_equal(ftruncate(fd, (off_t)(header + n)), 0);
    assert_int_equal(close(fd), 0);
    ct_buf_deinit(&out);
    return n;
}

/* One folder for the files of a test group, made and removed by its fixtures. */
static char maker_dir[64];

static inline int maker_setup(void **state)
{
    (void)state;
    snprintf(maker_dir, sizeof maker_dir, "/tmp/carat-test-XXXXXX");
    return mkdtemp(maker_dir) ? 0 : -1;
}

static inline int maker_teardown(void **state)
{
    DIR *d = opendir(maker_dir);
    char path[512];

    (void)state;
    if (!d)
        return -1;
    for (struct dirent *e = readdir(d); e; e = readdir(d)) {
        snprintf(path, sizeof path, "%s/%s", maker_dir, e->d_name);
        unlink(path);
    }
    closedir(d);
    return rmdir(maker_dir);
}

/* Path of a file in it, valid for the next three calls. */
static inline const char *maker_path(const char *name)
{
    static char path[4][512];
    static unsigned turn;
    char *p = path[turn++ % 4];

    snprintf(p, sizeof path[0], "%s/%s", maker_dir, name);
    return p;
}

static inline void maker_write_text(const char *path, const char *text)
{
    FILE *f = fopen(path, "w");

    assert_non_null(f);
    assert_true(fputs(text, f) >= 0);
    assert_int_equal(fclose(f), 0);
}

/* The message must have every word of the list, "a|b|c". */
static inline void assert_message(const ct_error *err, const char *words)
{
    char copy[1024], *rest = copy;

    snprintf(copy, sizeof copy, "%s", words);
    for (char *w = strsep(&rest, "|"); w; w = strsep(&rest, "|"))
        if (!strstr(err->text, w))
            fail_msg("message lacks \"%s\": %s", w, err->text);
    if (strchr(err->text, '\n'))
        fail_msg("message of several lines: %s", err->text);
}

#endif
