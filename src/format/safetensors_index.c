#include "format/safetensors_index.h"

#include "base/json.h"

#include <inttypes.h>
#include <stdlib.h>

#define SUFFIX         ".safetensors"
#define MAX_FILE_NAME  255
#define MIN_PAIR_BYTES 6 /* "":"", */

typedef struct pair {
    ct_str name, file;
    unsigned file_index;
} pair;

typedef struct reader {
    const char *path;
    ct_json json;
    ct_arena *a;
    ct_error *err;
    ct_st_index *out;
    pair *pair;
    size_t n_pairs;
} reader;

static size_t max_pairs(size_t text_len)
{
    return text_len / MIN_PAIR_BYTES + 1;
}

size_t ct_st_index_bytes(size_t text_len)
{
    size_t per_pair = sizeof(pair) + sizeof(ct_st_entry);
    size_t per_file = sizeof(char *) + MAX_FILE_NAME + 1;

    /* Decoded strings are no longer than their text; the last term is for alignment. */
    return max_pairs(text_len) * per_pair + CT_ST_MAX_SHARDS * per_file + text_len + 4096;
}

/* A name that could leave the directory is an attack or a mistake, never a shard. */
static bool plain_file_name(ct_str s)
{
    const size_t n_suffix = sizeof SUFFIX - 1;

    if (s.n <= n_suffix || s.n > MAX_FILE_NAME || s.p[0] == '.')
        return false;
    for (size_t i = 0; i < s.n; i++)
        if (s.p[i] == '/' || s.p[i] == '\\' || (unsigned char)s.p[i] < 0x20)
            return false;
    return memcmp(s.p + s.n - n_suffix, SUFFIX, n_suffix) == 0;
}

static ct_status read_pair(reader *r, const ct_json_token *key)
{
    pair *p = &r->pair[r->n_pairs++];
    ct_json_token value;
    ct_status st = ct_json_str(&r->json, key, r->a, &p->name, r->err);

    if (!st)
        st = ct_json_expect(&r->json, CT_JSON_STRING, "a value of weight_map", &value, r->err);
    if (!st)
        st = ct_json_str(&r->json, &value, r->a, &p->file, r->err);
    if (st)
        return st;
    if (!ct_tensor_name_ok(p->name))
        return ct_fail(
            r->err, CT_EFORMAT,
            "%s: tensor name of %zu bytes before byte %zu: must be 1 to %d bytes without "
            "control characters",
            r->path, p->name.n, r->json.at, CT_TENSOR_MAX_NAME);
    if (!plain_file_name(p->file)) {
        /* Cut and still escaped: the message stays short and printable. */
        if (value.raw.n > MAX_FILE_NAME)
            value.raw.n = MAX_FILE_NAME;
        return ct_fail(r->err, CT_EFORMAT,
                       "%s: tensor %.*s: '%.*s' is not a plain name of a " SUFFIX " file", r->path,
                       CT_STR_ARG(p->name), CT_STR_ARG(value.raw));
    }
    return CT_OK;
}

static ct_status read_weight_map(reader *r)
{
    ct_json_token key;
    ct_status st = ct_json_expect(&r->json, CT_JSON_OBJECT, "weight_map", &key, r->err);

    while (!st) {
        st = ct_json_next(&r->json, &key, r->err);
        if (st || key.kind == CT_JSON_OBJECT_END)
            return st;
        st = read_pair(r, &key);
    }
    return st;
}

static ct_status read_metadata(reader *r)
{
    ct_json_token key, value;
    ct_status st = ct_json_expect(&r->json, CT_JSON_OBJECT, "metadata", &key, r->err);

    while (!st) {
        st = ct_json_next(&r->json, &key, r->err);
        if (st || key.kind == CT_JSON_OBJECT_END)
            return st;
        st = ct_json_next(&r->json, &value, r->err);
        if (st)
            return st;
        if (!ct_json_is(&key, "total_size")) {
            st = ct_json_skip(&r->json, &value, r->err);
            continue;
        }
        if (r->out->has_total)
            return ct_fail(r->err, CT_EFORMAT, "%s: metadata.total_size appears twice", r->path);
        r->out->has_total = true;
        st = ct_json_u64(&r->json, &value, "metadata.total_size", UINT64_MAX, &r->out->total_bytes,
                         r->err);
    }
    return st;
}

static ct_status read_top(reader *r)
{
    bool has_map = false, has_metadata = false;
    ct_json_token key;
    ct_status st = ct_json_expect(&r->json, CT_JSON_OBJECT, "the index", &key, r->err);

    while (!st) {
        bool *seen;

        st = ct_json_next(&r->json, &key, r->err);
        if (st)
            return st;
        if (key.kind == CT_JSON_OBJECT_END)
            break;
        seen = ct_json_is(&key, "weight_map") ? &has_map
               : ct_json_is(&key, "metadata") ? &has_metadata
                                              : NULL;
        if (!seen || *seen)
            return ct_fail(r->err, CT_EFORMAT, "%s: %s field %.*s", r->path,
                           seen ? "repeated" : "unknown",
                           CT_STR_ARG(((ct_str){key.raw.p, key.raw.n < 64 ? key.raw.n : 64})));
        *seen = true;
        st = seen == &has_map ? read_weight_map(r) : read_metadata(r);
    }
    if (!st)
        st = ct_json_expect(&r->json, CT_JSON_END, "the index's end", &key, r->err);
    if (!st && !has_map)
        st = ct_fail(r->err, CT_EFORMAT, "%s: weight_map is missing", r->path);
    return st;
}

static int by_file(const void *a, const void *b)
{
    return ct_str_cmp(((const pair *)a)->file, ((const pair *)b)->file);
}

static int by_name(const void *a, const void *b)
{
    return ct_str_cmp(((const ct_st_entry *)a)->name, ((const ct_st_entry *)b)->name);
}

static ct_status full(reader *r)
{
    return ct_fail(r->err, CT_ELIMIT, "%s: index exceeds its memory bound", r->path);
}

/* Numbers the distinct files in order of name. */
static ct_status collect_files(reader *r)
{
    ct_st_index *x = r->out;

    qsort(r->pair, r->n_pairs, sizeof *r->pair, by_file);
    x->file = ct_arena_zalloc(r->a, CT_ST_MAX_SHARDS, sizeof *x->file);
    if (!x->file)
        return full(r);
    for (size_t i = 0; i < r->n_pairs; i++) {
        if (i == 0 || !ct_str_eq(r->pair[i].file, r->pair[i - 1].file)) {
            if (x->n_files == CT_ST_MAX_SHARDS)
                return ct_fail(r->err, CT_ELIMIT, "%s: more than %d shards", r->path,
                               CT_ST_MAX_SHARDS);
            x->file[x->n_files] = ct_arena_copy(r->a, r->pair[i].file.p, r->pair[i].file.n);
            if (!x->file[x->n_files++])
                return full(r);
        }
        r->pair[i].file_index = (unsigned)x->n_files - 1;
    }
    return CT_OK;
}

static ct_status collect_entries(reader *r)
{
    ct_st_index *x = r->out;

    x->entry = ct_arena_alloc(r->a, r->n_pairs * sizeof *x->entry, _Alignof(ct_st_entry));
    if (!x->entry)
        return full(r);
    for (size_t i = 0; i < r->n_pairs; i++)
        x->entry[i] = (ct_st_entry){r->pair[i].name, r->pair[i].file_index};
    x->n_entries = r->n_pairs;
    qsort(x->entry, x->n_entries, sizeof *x->entry, by_name);
    for (size_t i = 1; i < x->n_entries; i++)
        if (ct_str_eq(x->entry[i].name, x->entry[i - 1].name))
            return ct_fail(r->err, CT_EFORMAT, "%s: tensor %.*s appears twice in weight_map",
                           r->path, CT_STR_ARG(x->entry[i].name));
    return CT_OK;
}

ct_status ct_st_index_parse(ct_st_index *out, const char *path, ct_str text, ct_arena *a,
                            ct_error *err)
{
    ct_st_index x = {0};
    reader r = {.path = path, .a = a, .err = err, .out = &x};
    ct_status st;

    if (text.n > CT_ST_MAX_INDEX_BYTES)
        return ct_fail(err, CT_ELIMIT, "%s: %zu bytes, at most %zu are read", path, text.n,
                       CT_ST_MAX_INDEX_BYTES);
    r.pair = ct_arena_alloc(a, max_pairs(text.n) * sizeof *r.pair, _Alignof(pair));
    if (!r.pair)
        return full(&r);
    ct_json_init(&r.json, path, text);
    st = read_top(&r);
    if (!st && r.n_pairs == 0)
        st = ct_fail(err, CT_EFORMAT, "%s: weight_map is empty", path);
    if (!st)
        st = collect_files(&r);
    if (!st)
        st = collect_entries(&r);
    if (!st)
        *out = x;
    return st;
}

static ct_status check_total(const ct_st_index *x, const char *path, const ct_tensor *t, size_t n,
                             ct_error *err)
{
    uint64_t total = 0;

    /* Cannot overflow: every tensor lies in a mapped file, and shards are few. */
    for (size_t i = 0; i < n; i++)
        total += t[i].n_bytes;
    if (x->has_total && x->total_bytes != total)
        return ct_fail(err, CT_EFORMAT,
                       "%s: metadata.total_size is %" PRIu64 ", the tensors hold %" PRIu64 " bytes",
                       path, x->total_bytes, total);
    return CT_OK;
}

ct_status ct_st_index_check(const ct_st_index *x, const char *path, const ct_tensor *t, size_t n,
                            ct_error *err)
{
    size_t i = 0;

    for (; i < n || i < x->n_entries; i++) {
        int c = i == n ? 1 : i == x->n_entries ? -1 : ct_str_cmp(t[i].name, x->entry[i].name);

        if (c > 0)
            return ct_fail(err, CT_EFORMAT, "%s: tensor %.*s of the index is not in its shard %s",
                           path, CT_STR_ARG(x->entry[i].name), x->file[x->entry[i].file]);
        if (c < 0)
            return ct_fail(err, CT_EFORMAT, "%s: tensor %.*s of shard %s is not in the index", path,
                           CT_STR_ARG(t[i].name), x->file[t[i].file]);
        if (t[i].file != x->entry[i].file)
            return ct_fail(err, CT_EFORMAT,
                           "%s: tensor %.*s is in shard %s, the index places it in %s", path,
                           CT_STR_ARG(t[i].name), x->file[t[i].file], x->file[x->entry[i].file]);
    }
    return check_total(x, path, t, n, err);
}
