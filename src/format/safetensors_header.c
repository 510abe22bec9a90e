#include "format/safetensors_header.h"

#include "base/checked.h"
#include "base/json.h"

#include <inttypes.h>
#include <stdlib.h>

#define LENGTH_BYTES 8
/* Shortest entry: "":{"dtype":"U8","shape":[],"data_offsets":[0,0]} */
#define MIN_ENTRY_BYTES 48

typedef struct reader {
    const ct_st_file *file;
    ct_json json;
    ct_arena *names;
    ct_error *err;
} reader;

static uint64_t get_u64_le(const char *p)
{
    uint64_t v = 0;

    for (int i = LENGTH_BYTES - 1; i >= 0; i--)
        v = v << 8 | (unsigned char)p[i];
    return v;
}

ct_status ct_st_file_split(ct_st_file *out, const char *path, ct_str bytes, unsigned index,
                           ct_error *err)
{
    uint64_t len;

    if (bytes.n < LENGTH_BYTES)
        return ct_fail(err, CT_EFORMAT, "%s: %zu bytes, a safetensors file has at least %d", path,
                       bytes.n, LENGTH_BYTES);
    len = get_u64_le(bytes.p);
    if (len > CT_ST_MAX_HEADER_BYTES)
        return ct_fail(err, CT_EFORMAT, "%s: header length %" PRIu64 " exceeds the bound of %zu",
                       path, len, CT_ST_MAX_HEADER_BYTES);
    if (len > bytes.n - LENGTH_BYTES)
        return ct_fail(err, CT_EFORMAT,
                       "%s: header length %" PRIu64 " exceeds the %zu bytes behind it", path, len,
                       bytes.n - LENGTH_BYTES);
    if (len < 2 || bytes.p[LENGTH_BYTES] != '{')
        return ct_fail(err, CT_EFORMAT, "%s: header of length %" PRIu64 " does not begin with '{'",
                       path, len);
    *out = (ct_st_file){
        .path = path,
        .json = {bytes.p + LENGTH_BYTES, (size_t)len},
        .data = {bytes.p + LENGTH_BYTES + len, bytes.n - LENGTH_BYTES - (size_t)len},
        .index = index,
    };
    return CT_OK;
}

size_t ct_st_max_tensors(const ct_st_file *f)
{
    return f->json.n / MIN_ENTRY_BYTES + 1;
}

static ct_status read_name(reader *r, const ct_json_token *key, ct_str *out)
{
    ct_status st = ct_json_str(&r->json, key, r->names, out, r->err);

    if (st)
        return st;
    if (!ct_tensor_name_ok(*out))
        return ct_fail(
            r->err, CT_EFORMAT,
            "%s: tensor name of %zu bytes before byte %zu: must be 1 to %d bytes without "
            "control characters",
            r->file->path, out->n, r->json.at, CT_TENSOR_MAX_NAME);
    return CT_OK;
}

static ct_status tensor_fail(reader *r, const ct_tensor *t, const char *what)
{
    return ct_fail(r->err, CT_EFORMAT, "%s: tensor %.*s: %s", r->file->path, CT_STR_ARG(t->name),
                   what);
}

/* For errors of the JSON reader, which does not know whose entry it reads. */
static ct_status name_tensor(reader *r, const ct_tensor *t, ct_status st)
{
    if (st)
        ct_error_prefix(r->err, "tensor %.*s: ", CT_STR_ARG(t->name));
    return st;
}

static ct_status read_dtype(reader *r, ct_tensor *t)
{
    ct_json_token token;
    ct_status st = ct_json_expect(&r->json, CT_JSON_STRING, "dtype", &token, r->err);

    if (st)
        return name_tensor(r, t, st);
    if (token.raw.n > 32)
        token.raw.n = 32;
    if (!ct_dtype_parse(token.raw, &t->dtype))
        return ct_fail(r->err, CT_EUNSUPPORTED, "%s: tensor %.*s: unknown dtype %.*s",
                       r->file->path, CT_STR_ARG(t->name), CT_STR_ARG(token.raw));
    return CT_OK;
}

static ct_status read_shape(reader *r, ct_tensor *t)
{
    ct_json_token token;
    ct_status st = ct_json_expect(&r->json, CT_JSON_ARRAY, "shape", &token, r->err);

    if (st)
        return name_tensor(r, t, st);
    for (;;) {
        st = ct_json_next(&r->json, &token, r->err);
        if (st)
            return name_tensor(r, t, st);
        if (token.kind == CT_JSON_ARRAY_END)
            return CT_OK;
        if (t->n_dims == CT_TENSOR_MAX_DIMS)
            return ct_fail(r->err, CT_ELIMIT, "%s: tensor %.*s: more than %d dimensions",
                           r->file->path, CT_STR_ARG(t->name), CT_TENSOR_MAX_DIMS);
        st = ct_json_u64(&r->json, &token, "a dimension", UINT64_MAX, &t->dim[t->n_dims], r->err);
        if (st)
            return name_tensor(r, t, st);
        t->n_dims++;
    }
}

static ct_status read_offsets(reader *r, const ct_tensor *t, uint64_t offset[2])
{
    ct_json_token token;
    ct_status st = ct_json_expect(&r->json, CT_JSON_ARRAY, "data_offsets", &token, r->err);

    for (int i = 0; i < 2; i++) {
        if (!st)
            st = ct_json_next(&r->json, &token, r->err);
        if (!st)
            st = ct_json_u64(&r->json, &token, "a data offset", UINT64_MAX, &offset[i], r->err);
        if (st)
            return name_tensor(r, t, st);
    }
    st = ct_json_next(&r->json, &token, r->err);
    if (st)
        return name_tensor(r, t, st);
    if (token.kind != CT_JSON_ARRAY_END)
        return tensor_fail(r, t, "data_offsets hold more than two numbers");
    return CT_OK;
}

/* What the shape says against what the offsets say, and both against the file. */
static ct_status place(reader *r, ct_tensor *t, const uint64_t offset[2])
{
    size_t need = ct_dtype_bytes(t->dtype);

    for (unsigned i = 0; i < t->n_dims; i++)
        if (!ct_mul_size(&need, need, t->dim[i]))
            return tensor_fail(r, t, "the product of its dimensions overflows");
    if (offset[0] > offset[1])
        return ct_fail(r->err, CT_EFORMAT,
                       "%s: tensor %.*s: begins at %" PRIu64 ", behind its end at %" PRIu64,
                       r->file->path, CT_STR_ARG(t->name), offset[0], offset[1]);
    if (offset[1] > r->file->data.n)
        return ct_fail(r->err, CT_EFORMAT,
                       "%s: tensor %.*s: ends at byte %" PRIu64 " of %zu bytes of data",
                       r->file->path, CT_STR_ARG(t->name), offset[1], r->file->data.n);
    if (offset[1] - offset[0] != need)
        return ct_fail(r->err, CT_EFORMAT,
                       "%s: tensor %.*s: offsets span %" PRIu64 " bytes, shape and dtype need %zu",
                       r->file->path, CT_STR_ARG(t->name), offset[1] - offset[0], need);
    t->n_bytes = need;
    t->data = r->file->data.p + offset[0];
    t->file = r->file->index;
    return CT_OK;
}

/* The entry's object, behind its key; t->name is set. */
static ct_status read_entry(reader *r, ct_tensor *t)
{
    enum { DTYPE = 1, SHAPE = 2, OFFSETS = 4, ALL = 7 };
    uint64_t offset[2] = {0};
    unsigned seen = 0;
    ct_json_token key;
    ct_status st = ct_json_expect(&r->json, CT_JSON_OBJECT, "the entry", &key, r->err);

    while (!st) {
        unsigned field;

        st = ct_json_next(&r->json, &key, r->err);
        if (st)
            return st;
        if (key.kind == CT_JSON_OBJECT_END)
            break;
        field = ct_json_is(&key, "dtype")          ? DTYPE
                : ct_json_is(&key, "shape")        ? SHAPE
                : ct_json_is(&key, "data_offsets") ? OFFSETS
                                                   : 0;
        if (!field || seen & field)
            return ct_fail(r->err, CT_EFORMAT, "%s: tensor %.*s: %s field %.*s", r->file->path,
                           CT_STR_ARG(t->name), field ? "repeated" : "unknown",
                           CT_STR_ARG(((ct_str){key.raw.p, ct_min_size(key.raw.n, 64)})));
        seen |= field;
        st = field == DTYPE   ? read_dtype(r, t)
             : field == SHAPE ? read_shape(r, t)
                              : read_offsets(r, t, offset);
    }
    if (st)
        return st;
    if (seen != ALL)
        return tensor_fail(r, t,
                           !(seen & DTYPE)   ? "dtype is missing"
                           : !(seen & SHAPE) ? "shape is missing"
                                             : "data_offsets are missing");
    return place(r, t, offset);
}

/* __metadata__ is a map of strings to strings; nothing in it matters here. */
static ct_status read_metadata(reader *r)
{
    ct_json_token token;
    ct_status st = ct_json_expect(&r->json, CT_JSON_OBJECT, "__metadata__", &token, r->err);

    while (!st) {
        st = ct_json_next(&r->json, &token, r->err);
        if (st || token.kind == CT_JSON_OBJECT_END)
            return st;
        st = ct_json_expect(&r->json, CT_JSON_STRING, "a value of __metadata__", &token, r->err);
    }
    return st;
}

static int by_place(const void *a, const void *b)
{
    const ct_tensor *x = a, *y = b;
    const char *p = x->data, *q = y->data;

    if (p != q)
        return p < q ? -1 : 1;
    return (x->n_bytes > y->n_bytes) - (x->n_bytes < y->n_bytes);
}

/* Tensors in order of place must tile the data: no overlap, no gap, no rest. */
static ct_status check_tiling(const ct_st_file *f, const ct_tensor *t, size_t n, ct_error *err)
{
    size_t end = 0;

    for (size_t i = 0; i < n; i++) {
        size_t begin = (size_t)((const char *)t[i].data - f->data.p);

        if (begin < end)
            return ct_fail(err, CT_EFORMAT,
                           "%s: tensor %.*s begins at byte %zu, inside tensor %.*s, which ends at "
                           "%zu",
                           f->path, CT_STR_ARG(t[i].name), begin, CT_STR_ARG(t[i - 1].name), end);
        if (begin > end)
            return ct_fail(err, CT_EFORMAT,
                           "%s: bytes %zu to %zu of the data, before tensor %.*s, belong to no "
                           "tensor",
                           f->path, end, begin, CT_STR_ARG(t[i].name));
        end = begin + t[i].n_bytes;
    }
    if (end != f->data.n)
        return ct_fail(err, CT_EFORMAT,
                       "%s: the tensors end at byte %zu of %zu bytes of data; the rest belongs to "
                       "no tensor",
                       f->path, end, f->data.n);
    return CT_OK;
}

static ct_status read_header(reader *r, ct_tensor *out, size_t *n_out)
{
    bool metadata = false;
    ct_json_token key;
    size_t n = 0;
    ct_status st = ct_json_expect(&r->json, CT_JSON_OBJECT, "the header", &key, r->err);

    while (!st) {
        st = ct_json_next(&r->json, &key, r->err);
        if (st)
            return st;
        if (key.kind == CT_JSON_OBJECT_END)
            break;
        if (ct_json_is(&key, "__metadata__")) {
            if (metadata)
                return ct_fail(r->err, CT_EFORMAT, "%s: __metadata__ appears twice", r->file->path);
            metadata = true;
            st = read_metadata(r);
            continue;
        }
        out[n] = (ct_tensor){0};
        st = read_name(r, &key, &out[n].name);
        if (!st)
            st = read_entry(r, &out[n]);
        n++;
    }
    if (!st)
        st = ct_json_expect(&r->json, CT_JSON_END, "the header's end", &key, r->err);
    *n_out = n;
    return st;
}

ct_status ct_st_file_tensors(const ct_st_file *f, ct_tensor *out, size_t *n_out, ct_arena *names,
                             ct_error *err)
{
    reader r = {.file = f, .names = names, .err = err};
    size_t n = 0;
    ct_status st;

    ct_json_init(&r.json, f->path, f->json);
    st = read_header(&r, out, &n);
    if (st)
        return st;
    if (n > 1)
        qsort(out, n, sizeof *out, by_place);
    st = check_tiling(f, out, n, err);
    if (!st)
        *n_out = n;
    return st;
}
