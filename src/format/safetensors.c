#include "format/safetensors.h"

#include "base/arena.h"
#include "base/checked.h"
#include "base/map.h"
#include "base/path.h"
#include "format/safetensors_header.h"
#include "format/safetensors_index.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#define SINGLE_FILE "model.safetensors"
#define INDEX_FILE  "model.safetensors.index.json"

typedef struct source {
    char *path; /* owned: arena of the checkpoint */
    ct_map map; /* empty when the bytes are the caller's */
    ct_st_file st;
} source;

struct ct_checkpoint {
    /* Reserved for the most that the headers' lengths allow; resident only as far as
     * they are filled. */
    ct_arena tables; /* tensors, decoded names */
    ct_arena paths;
    char *path;
    source *file;
    size_t n_files;
    ct_tensor *tensor; /* in order of name */
    size_t n_tensors;
};

void ct_checkpoint_close(ct_checkpoint *c)
{
    if (!c)
        return;
    for (size_t i = 0; i < c->n_files; i++)
        ct_map_close(&c->file[i].map);
    ct_arena_deinit(&c->tables);
    ct_arena_deinit(&c->paths);
    free(c);
}

/* A checkpoint of n_files yet unopened files. */
static ct_status checkpoint_create(ct_checkpoint **out, const char *path, size_t n_files,
                                   ct_error *err)
{
    ct_checkpoint *c = calloc(1, sizeof *c);
    ct_status st;

    if (!c)
        return ct_fail(err, CT_ELIMIT, "%s: out of memory", path);
    st = ct_arena_init(&c->paths, n_files * (sizeof *c->file + CT_PATH_BYTES) + 2 * CT_PATH_BYTES,
                       err);
    if (st)
        goto fail;
    c->path = ct_arena_copy(&c->paths, path, strlen(path));
    c->file = ct_arena_zalloc(&c->paths, n_files, sizeof *c->file);
    if (!c->path || !c->file) {
        st = ct_fail(err, CT_ELIMIT, "%s: path of %zu bytes is too long", path, strlen(path));
        goto fail;
    }
    *out = c;
    return CT_OK;
fail:
    ct_checkpoint_close(c);
    return st;
}

/* Maps a file as the next one of c and finds its header. */
static ct_status add_file(ct_checkpoint *c, const char *path, ct_error *err)
{
    source *s = &c->file[c->n_files];
    ct_status st;

    s->path = ct_arena_copy(&c->paths, path, strlen(path));
    if (!s->path)
        return ct_fail(err, CT_ELIMIT, "%s: path is too long", path);
    st = ct_map_open(&s->map, path, err);
    if (st)
        return st;
    c->n_files++; /* from here on, closing c unmaps it */
    return ct_st_file_split(&s->st, s->path, ct_map_str(&s->map), (unsigned)c->n_files - 1, err);
}

static int by_name(const void *a, const void *b)
{
    return ct_str_cmp(((const ct_tensor *)a)->name, ((const ct_tensor *)b)->name);
}

static ct_status sort_by_name(ct_checkpoint *c, ct_error *err)
{
    if (c->n_tensors > 1)
        qsort(c->tensor, c->n_tensors, sizeof *c->tensor, by_name);
    for (size_t i = 1; i < c->n_tensors; i++) {
        const ct_tensor *t = &c->tensor[i];

        if (ct_str_eq(t->name, t[-1].name))
            return ct_fail(err, CT_EFORMAT, "%s: tensor %.*s appears twice, in %s and in %s",
                           c->path, CT_STR_ARG(t->name), c->file[t[-1].file].path,
                           c->file[t->file].path);
    }
    return CT_OK;
}

/* Reads all headers into one table. */
static ct_status read_headers(ct_checkpoint *c, ct_error *err)
{
    size_t n_max = 0, name_bytes = 0;
    ct_status st;

    /* Far from overflow: at most CT_ST_MAX_SHARDS headers of CT_ST_MAX_HEADER_BYTES. */
    for (size_t i = 0; i < c->n_files; i++) {
        n_max += ct_st_max_tensors(&c->file[i].st);
        name_bytes += c->file[i].st.json.n;
    }
    st = ct_arena_init(&c->tables, n_max * sizeof *c->tensor + name_bytes + CT_ALIGN, err);
    if (st)
        return st;
    c->tensor = ct_arena_alloc(&c->tables, n_max * sizeof *c->tensor, CT_ALIGN);
    if (!c->tensor)
        return ct_fail(err, CT_ELIMIT, "%s: no memory for %zu tensors", c->path, n_max);
    for (size_t i = 0; i < c->n_files; i++) {
        size_t n = 0;

        st = ct_st_file_tensors(&c->file[i].st, c->tensor + c->n_tensors, &n, &c->tables, err);
        if (st)
            return st;
        c->n_tensors += n;
    }
    return sort_by_name(c, err);
}

static ct_status open_shards(ct_checkpoint **out, const char *dir, const char *index_path,
                             const ct_st_index *index, ct_error *err)
{
    ct_checkpoint *c;
    char path[CT_PATH_BYTES];
    ct_status st = checkpoint_create(&c, dir, index->n_files, err);

    if (st)
        return st;
    for (size_t i = 0; i < index->n_files; i++) {
        st = ct_path_join(path, dir, index->file[i], err);
        if (!st)
            st = add_file(c, path, err);
        if (st)
            goto fail;
    }
    st = read_headers(c, err);
    if (!st)
        st = ct_st_index_check(index, index_path, c->tensor, c->n_tensors, err);
    if (st)
        goto fail;
    *out = c;
    return CT_OK;
fail:
    ct_checkpoint_close(c);
    return st;
}

static ct_status open_indexed(ct_checkpoint **out, const char *dir, const char *index_path,
                              ct_error *err)
{
    ct_arena scratch = {0};
    ct_st_index index;
    ct_map map = {0};
    ct_status st = ct_map_open(&map, index_path, err);

    if (st)
        return st;
    if (map.size > CT_ST_MAX_INDEX_BYTES)
        st = ct_fail(err, CT_ELIMIT, "%s: %zu bytes, at most %zu are read", index_path, map.size,
                     CT_ST_MAX_INDEX_BYTES);
    if (!st)
        st = ct_arena_init(&scratch, ct_st_index_bytes(map.size), err);
    if (!st)
        st = ct_st_index_parse(&index, index_path, ct_map_str(&map), &scratch, err);
    if (!st)
        st = open_shards(out, dir, index_path, &index, err);
    ct_arena_deinit(&scratch);
    ct_map_close(&map);
    return st;
}

static bool exists(const char *path)
{
    /* Anything but plain absence is reported by the open that follows. */
    return access(path, F_OK) == 0 || (errno != ENOENT && errno != ENOTDIR);
}

ct_status ct_checkpoint_open(ct_checkpoint **out, const char *dir, ct_error *err)
{
    char path[CT_PATH_BYTES];
    ct_status st = ct_path_join(path, dir, SINGLE_FILE, err);

    if (st)
        return st;
    if (exists(path))
        return ct_checkpoint_open_file(out, path, err);
    st = ct_path_join(path, dir, INDEX_FILE, err);
    if (st)
        return st;
    if (exists(path))
        return open_indexed(out, dir, path, err);
    return ct_fail(err, CT_EIO, "%s: holds neither " SINGLE_FILE " nor " INDEX_FILE, dir);
}

ct_status ct_checkpoint_open_file(ct_checkpoint **out, const char *path, ct_error *err)
{
    ct_checkpoint *c;
    ct_status st = checkpoint_create(&c, path, 1, err);

    if (st)
        return st;
    st = add_file(c, path, err);
    if (!st)
        st = read_headers(c, err);
    if (st)
        ct_checkpoint_close(c);
    else
        *out = c;
    return st;
}

ct_status ct_checkpoint_open_memory(ct_checkpoint **out, const char *name, ct_str bytes,
                                    ct_error *err)
{
    ct_checkpoint *c;
    ct_status st = checkpoint_create(&c, name, 1, err);

    if (st)
        return st;
    c->n_files = 1;
    c->file[0].path = c->path;
    st = ct_st_file_split(&c->file[0].st, c->path, bytes, 0, err);
    if (!st)
        st = read_headers(c, err);
    if (st)
        ct_checkpoint_close(c);
    else
        *out = c;
    return st;
}

size_t ct_checkpoint_count(const ct_checkpoint *c)
{
    return c->n_tensors;
}

const ct_tensor *ct_checkpoint_at(const ct_checkpoint *c, size_t i)
{
    return &c->tensor[i];
}

const ct_tensor *ct_checkpoint_find(const ct_checkpoint *c, ct_str name)
{
    ct_tensor key = {.name = name};

    if (!c->n_tensors)
        return NULL;
    return bsearch(&key, c->tensor, c->n_tensors, sizeof *c->tensor, by_name);
}

const char *ct_checkpoint_path(const ct_checkpoint *c)
{
    return c->path;
}

size_t ct_checkpoint_n_files(const ct_checkpoint *c)
{
    return c->n_files;
}

const char *ct_checkpoint_file(const ct_checkpoint *c, unsigned file)
{
    return c->file[file].path;
}
