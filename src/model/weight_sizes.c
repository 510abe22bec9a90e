#include "model/weight_sizes.h"

#include "base/checked.h"
#include "model/quant_rules.h"
#include "model/tensor_table.h"

#include <stdio.h>

static const struct {
    const char *name;
    ct_storage storage;
} names[] = {
    {"bf16", CT_STORAGE_BF16},
    {"nvfp4", CT_STORAGE_NVFP4},
    {"q4_0", CT_STORAGE_Q4_0},
    {"q8_0", CT_STORAGE_Q8_0},
};

bool ct_storage_of(ct_storage *out, ct_str name)
{
    for (size_t i = 0; i < CT_LEN(names); i++)
        if (ct_str_is(name, names[i].name)) {
            *out = names[i].storage;
            return true;
        }
    return false;
}

const char *ct_storage_name(ct_storage s)
{
    for (size_t i = 0; i < CT_LEN(names); i++)
        if (names[i].storage == s)
            return names[i].name;
    return "config";
}

const char *ct_weight_part_name(ct_weight_part p)
{
    static const char *const name[CT_N_PARTS] = {"embedding", "attention", "mlp", "experts",
                                                 "other"};

    return name[p];
}

typedef struct sizer {
    const ct_config *config;
    ct_storage storage;
    const ct_quant_rules *rules;
    ct_weight_sizes sum;
} sizer;

/* Shape of one tensor, experts as rows. */
typedef struct shape {
    uint64_t rows, cols;
    bool vector; /* of one dimension */
} shape;

static shape shape_of(const ct_tensor_row *row, const ct_config *c, uint32_t layer)
{
    uint64_t n[3] = {1, 1, 1};
    unsigned dims = 0;

    for (; dims < 3 && row->dim[dims] != CT_DIM_NONE; dims++)
        n[dims] = ct_dim_length(row->dim[dims], c, layer);
    if (dims == 1)
        return (shape){1, n[0], true};
    return dims == 2 ? (shape){n[0], n[1], false} : (shape){n[0] * n[1], n[2], false};
}

static ct_weight_part part_of(const ct_tensor_row *row)
{
    ct_str name = ct_str_of(row->name);

    if (ct_str_starts(name, "embed_tokens"))
        return CT_PART_EMBEDDING;
    if (row->where == CT_WHERE_FUSED || row->where == CT_WHERE_SPLIT)
        return CT_PART_EXPERTS;
    if (!row->linear)
        return CT_PART_OTHER;
    return ct_str_starts(name, "self_attn.") ? CT_PART_ATTENTION : CT_PART_MLP;
}

/* Which scheme the config gives a linear module. */
static ct_scheme config_scheme(const sizer *s, const ct_tensor_row *row, uint32_t layer)
{
    static const char *const in_expert[] = {"gate_proj", "down_proj"};
    char module[CT_NAME_BYTES];
    int n;

    if (row->where == CT_WHERE_FUSED) /* gate_up_proj goes as its gate does */
        n = snprintf(module, sizeof module, "layers.%u.experts.0.%s", layer,
                     in_expert[row->name[0] == 'd']);
    else
        n = snprintf(module, sizeof module, "layers.%u.%s", layer, row->name);
    return ct_quant_rules_scheme(s->rules, (ct_str){module, (size_t)n});
}

static ct_scheme scheme_of(const sizer *s, const ct_tensor_row *row, uint32_t layer)
{
    ct_weight_part part = part_of(row);

    if (s->storage == CT_STORAGE_CONFIG && (row->linear || part == CT_PART_EXPERTS))
        return config_scheme(s, row, layer);
    if (s->storage == CT_STORAGE_NVFP4 && part == (s->config->moe ? CT_PART_EXPERTS : CT_PART_MLP))
        return CT_SCHEME_NVFP4;
    return CT_SCHEME_BF16;
}

/* Bytes of a matrix whose rows are blocks of `cols` columns in `bytes` bytes. */
static ct_status blocks(uint64_t *out, const char *name, const shape *x, uint32_t cols,
                        uint32_t bytes, ct_error *err)
{
    if (x->cols % cols)
        return ct_fail(err, CT_EUNSUPPORTED, "%s: %llu columns, not a multiple of the block of %u",
                       name, (unsigned long long)x->cols, cols);
    *out = x->rows * (x->cols / cols) * bytes;
    return CT_OK;
}

static ct_status bytes_of(uint64_t *out, const sizer *s, const ct_tensor_row *row, uint32_t layer,
                          const shape *x, ct_error *err)
{
    const bool gguf = s->storage == CT_STORAGE_Q4_0 || s->storage == CT_STORAGE_Q8_0;
    /* Experts have a multiplier each, a fused gate and up two. */
    const uint64_t matrices =
        row->where == CT_WHERE_FUSED ? s->config->n_experts * (row->name[0] == 'g' ? 2ull : 1) : 1;
    ct_status st;

    if (gguf && part_of(row) == CT_PART_OTHER)
        *out = x->rows * x->cols * sizeof(float);
    else if (gguf)
        return blocks(out, row->name, x, 32, s->storage == CT_STORAGE_Q4_0 ? 18 : 34, err);
    else if (scheme_of(s, row, layer) == CT_SCHEME_NVFP4) {
        st = blocks(out, row->name, x, 16, 8 + 1, err);
        if (st)
            return st;
        *out += matrices * sizeof(float);
    } else if (scheme_of(s, row, layer) == CT_SCHEME_FP8)
        *out = x->rows * x->cols + x->rows * 2;
    else
        *out = x->rows * x->cols * 2;
    return CT_OK;
}

static bool in_layer(const ct_tensor_row *row, const ct_config *c, uint32_t layer)
{
    switch (row->where) {
    case CT_WHERE_TOP:
        return layer == 0;
    case CT_WHERE_EVERY:
        return true;
    case CT_WHERE_SLIDING:
        return !c->is_global[layer];
    case CT_WHERE_MOE:
    case CT_WHERE_FUSED:
        return c->moe;
    case CT_WHERE_SPLIT:
        return false; /* the same numbers as FUSED */
    }
    return false;
}

static ct_status add_layer(sizer *s, uint32_t layer, ct_error *err)
{
    for (size_t i = 0; i < ct_n_tensor_rows; i++) {
        const ct_tensor_row *row = &ct_tensor_table[i];
        shape x;
        uint64_t bytes = 0;
        ct_status st;

        if (!in_layer(row, s->config, layer))
            continue;
        x = shape_of(row, s->config, layer);
        st = bytes_of(&bytes, s, row, layer, &x, err);
        if (st)
            return st;
        s->sum.params[part_of(row)] += x.rows * x.cols;
        s->sum.bytes[part_of(row)] += bytes;
    }
    return CT_OK;
}

ct_status ct_weight_sizes_of(ct_weight_sizes *out, const ct_config *config, ct_storage storage,
                             ct_error *err)
{
    sizer s = {.config = config, .storage = storage};
    ct_arena scratch;
    ct_status st = ct_arena_init(&scratch, ct_quant_rules_bytes(&config->quant), err);

    if (st)
        return st;
    s.rules = ct_quant_rules_make(&config->quant, &scratch);
    if (!s.rules)
        st = ct_fail(err, CT_ELIMIT, "the quantisation rules exceed their arena");
    for (uint32_t l = 0; l < config->n_layers && !st; l++)
        st = add_layer(&s, l, err);
    if (!st)
        *out = s.sum;
    ct_arena_deinit(&scratch);
    return st;
}

static uint64_t total(const uint64_t *part)
{
    uint64_t sum = 0;

    for (int i = 0; i < CT_N_PARTS; i++)
        sum += part[i];
    return sum;
}

uint64_t ct_weight_sizes_params(const ct_weight_sizes *s)
{
    return total(s->params);
}

uint64_t ct_weight_sizes_bytes(const ct_weight_sizes *s)
{
    return total(s->bytes);
}
