/* A file's bytes, a header that is given its right length, or an index: the first byte
 * says which. */
#include "format/safetensors.h"
#include "format/safetensors_index.h"

#include <assert.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Whatever was accepted must be consistent. */
static void use(const ct_checkpoint *c, ct_str bytes)
{
    size_t total = 0;

    for (size_t i = 0; i < ct_checkpoint_count(c); i++) {
        const ct_tensor *t = ct_checkpoint_at(c, i);
        const char *p = t->data;

        assert(p >= bytes.p && p + t->n_bytes <= bytes.p + bytes.n);
        assert(ct_checkpoint_find(c, t->name) == t);
        assert(i == 0 || ct_str_cmp(t[-1].name, t->name) < 0);
        total += t->n_bytes;
    }
    assert(total <= bytes.n);
}

static void run_file(ct_str bytes)
{
    ct_checkpoint *c;
    ct_error err;

    if (ct_checkpoint_open_memory(&c, "fuzz", bytes, &err))
        return;
    use(c, bytes);
    ct_checkpoint_close(c);
}

/* Two bytes: the length of the data; the rest is the header. */
static void run_header(const uint8_t *data, size_t size)
{
    size_t n_data, n = size - 2;
    char *file;

    if (size < 2)
        return;
    n_data = (size_t)data[0] << 8 | data[1];
    file = calloc(1, 8 + n + n_data);
    if (!file)
        return;
    for (int i = 0; i < 8; i++)
        file[i] = (char)((uint64_t)n >> 8 * i);
    memcpy(file + 8, data + 2, n);
    run_file((ct_str){file, 8 + n + n_data});
    free(file);
}

static void run_index(ct_str text)
{
    ct_st_index index;
    ct_arena a;
    ct_error err;

    if (ct_arena_init(&a, ct_st_index_bytes(text.n), &err))
        return;
    if (!ct_st_index_parse(&index, "fuzz", text, &a, &err)) {
        assert(index.n_entries && index.n_files && index.n_files <= CT_ST_MAX_SHARDS);
        for (size_t i = 0; i < index.n_files; i++)
            assert(!strchr(index.file[i], '/') && index.file[i][0] != '.');
        ct_st_index_check(&index, "fuzz", NULL, 0, &err);
    }
    ct_arena_deinit(&a);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *rest = (const char *)data + 1;

    if (!size)
        return 0;
    if (data[0] == 'F')
        run_file((ct_str){rest, size - 1});
    else if (data[0] == 'I')
        run_index((ct_str){rest, size - 1});
    else
        run_header(data + 1, size - 1);
    return 0;
}
