#include "model/manifest.h"

#include "base/checked.h"
#include "model/layout.h"
#include "model/manifest_report.h"
#include "model/quant_rules.h"
#include "model/tensor_table.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#define SHAPE_BYTES 128

typedef struct checker {
    const ct_config *config;
    const ct_checkpoint *ckpt;
    ct_layout layout;
    const ct_quant_rules *rules;
    unsigned char *seen; /* by index in the checkpoint */
    ct_complaints complaints;
    bool nvfp4, fp8; /* met among the linear modules */
} checker;

/* What one tensor must be.  Scales of one number are written with shape [] or [1]. */
typedef struct expected {
    ct_dtype dtype;
    unsigned n_dims;
    uint32_t dim[3];
} expected;

static const expected scalar_f32 = {.dtype = CT_DTYPE_F32};

static const char *write_shape(char out[SHAPE_BYTES], const ct_tensor *t)
{
    size_t at = 1;

    memcpy(out, "[", 2);
    for (unsigned i = 0; i < t->n_dims && at < SHAPE_BYTES - 24; i++)
        at += (size_t)snprintf(out + at, SHAPE_BYTES - at, "%s%" PRIu64, i ? ", " : "", t->dim[i]);
    snprintf(out + at, SHAPE_BYTES - at, "]");
    return out;
}

static const char *write_expected(char out[SHAPE_BYTES], const expected *x)
{
    ct_tensor t = {.n_dims = x->n_dims};

    for (unsigned i = 0; i < x->n_dims; i++)
        t.dim[i] = x->dim[i];
    return write_shape(out, &t);
}

static bool has_shape(const ct_tensor *t, const expected *x)
{
    if (x->n_dims == 0)
        return t->n_dims == 0 || (t->n_dims == 1 && t->dim[0] == 1);
    if (t->n_dims != x->n_dims)
        return false;
    for (unsigned i = 0; i < x->n_dims; i++)
        if (t->dim[i] != x->dim[i])
            return false;
    return true;
}

static void mark_seen(checker *c, const ct_tensor *t)
{
    if (t)
        c->seen[t - ct_checkpoint_at(c->ckpt, 0)] = 1;
}

/* Type and shape of a tensor that is there; true when both are right. */
static bool check_found(checker *c, const ct_tensor *t, const expected *x)
{
    char got[SHAPE_BYTES], want[SHAPE_BYTES];

    mark_seen(c, t);
    if (t->dtype != x->dtype)
        ct_complain(&c->complaints, CT_COMPLAINT_TYPE, "%.*s is %s, must be %s",
                    CT_STR_ARG(t->name), ct_dtype_name(t->dtype), ct_dtype_name(x->dtype));
    if (!has_shape(t, x))
        ct_complain(&c->complaints, CT_COMPLAINT_SHAPE, "%.*s is %s, must be %s",
                    CT_STR_ARG(t->name), write_shape(got, t), write_expected(want, x));
    if (t->dtype != x->dtype || !has_shape(t, x))
        return false;
    /* Kernels read bf16 in place; writers align the data, but the format does not. */
    if (t->dtype == CT_DTYPE_BF16 && (uintptr_t)t->data % 2) {
        ct_complain(&c->complaints, CT_COMPLAINT_VALUE, "%.*s lies at an odd address of its file",
                    CT_STR_ARG(t->name));
        return false;
    }
    return true;
}

/* t: the tensor of this name, or NULL when there is none. */
static bool check_tensor(checker *c, const ct_tensor *t, ct_str name, const expected *x)
{
    if (t)
        return check_found(c, t, x);
    ct_complain(&c->complaints, CT_COMPLAINT_MISSING, "%.*s", CT_STR_ARG(name));
    return false;
}

static bool check_part(checker *c, const ct_tensor *t, ct_str module, const char *suffix,
                       const expected *x)
{
    char name[2 * CT_NAME_BYTES];
    int n = snprintf(name, sizeof name, "%.*s%s", CT_STR_ARG(module), suffix);

    return check_tensor(c, t, (ct_str){name, (size_t)n}, x);
}

static void check_optional(checker *c, ct_str module, const char *suffix, const expected *x)
{
    char name[2 * CT_NAME_BYTES];
    int n = snprintf(name, sizeof name, "%.*s%s", CT_STR_ARG(module), suffix);
    const ct_tensor *t = ct_checkpoint_find(c->ckpt, (ct_str){name, (size_t)n});

    if (t)
        check_found(c, t, x);
}

/* A matrix's own scale multiplies or divides every weight: zero, negative or NaN is a
 * broken export. */
static void check_scale(checker *c, const ct_tensor *t, bool divisor)
{
    float v;

    if (!t->data)
        return;
    memcpy(&v, t->data, sizeof v);
    if (!(v > 0 && isfinite(v)) || (divisor && !isfinite(1 / v)))
        ct_complain(&c->complaints, CT_COMPLAINT_VALUE, "%.*s is %g, must be finite and above 0",
                    CT_STR_ARG(t->name), (double)v);
}

static void check_nvfp4(checker *c, ct_str module, const ct_linear_parts *p, uint32_t rows,
                        uint32_t cols)
{
    const expected packed = {CT_DTYPE_U8, 2, {rows, cols / 2}};
    const expected scale = {CT_DTYPE_F8_E4M3, 2, {rows, cols / 16}};
    bool divisor = c->layout.dialect == CT_DIALECT_COMPRESSED;
    const ct_tensor *global = divisor ? p->divisor : p->multiplier;

    c->nvfp4 = true;
    if (cols % 16)
        ct_complain(&c->complaints, CT_COMPLAINT_SHAPE,
                    "%.*s has %u columns, NVFP4 needs a multiple of 16", CT_STR_ARG(module), cols);
    check_part(c, divisor ? p->packed : p->weight, module, divisor ? ".weight_packed" : ".weight",
               &packed);
    check_part(c, p->scale, module, ".weight_scale", &scale);
    if (check_part(c, global, module, divisor ? ".weight_global_scale" : ".weight_scale_2",
                   &scalar_f32))
        check_scale(c, global, divisor);
    /* The activations' scale, for kernels that quantise them too; not used. */
    check_optional(c, module, divisor ? ".input_global_scale" : ".input_scale", &scalar_f32);
}

static void check_fp8(checker *c, ct_str module, const ct_linear_parts *p, uint32_t rows,
                      uint32_t cols)
{
    const expected weight = {CT_DTYPE_F8_E4M3, 2, {rows, cols}};
    expected scale = {CT_DTYPE_BF16, 2, {rows, 1}};

    c->fp8 = true;
    if (p->scale && p->scale->n_dims == 1)
        scale.n_dims = 1;
    check_part(c, p->weight, module, ".weight", &weight);
    check_part(c, p->scale, module, ".weight_scale", &scale);
}

/* A linear module in whatever form it is there; the form must be the config's. */
static void check_linear(checker *c, ct_str module, uint32_t rows, uint32_t cols)
{
    const expected plain = {CT_DTYPE_BF16, 2, {rows, cols}};
    const size_t n_prefix = strlen(c->layout.prefix);
    ct_linear_parts parts;
    ct_scheme found = ct_linear_find(&parts, c->ckpt, module);
    ct_scheme want;

    /* Past the list's end only the count matters: a config of a million modules and no
     * file for them must not cost a million pattern matches. */
    if (found == CT_SCHEME_NONE &&
        c->complaints.kind[CT_COMPLAINT_MISSING].n >= CT_COMPLAINTS_SHOWN) {
        c->complaints.kind[CT_COMPLAINT_MISSING].n++;
        return;
    }
    want = ct_quant_rules_scheme(c->rules, (ct_str){module.p + n_prefix, module.n - n_prefix});
    if (found == CT_SCHEME_NONE)
        found = want;
    if (found != want)
        ct_complain(&c->complaints, CT_COMPLAINT_CONFIG, "%.*s is %s, quantization_config %s %s",
                    CT_STR_ARG(module), ct_scheme_name(found),
                    c->config->quant.method == CT_QUANT_NONE ? "is absent, so it must be"
                                                             : "makes it",
                    ct_scheme_name(want));
    if (found == CT_SCHEME_NVFP4)
        check_nvfp4(c, module, &parts, rows, cols);
    else if (found == CT_SCHEME_FP8)
        check_fp8(c, module, &parts, rows, cols);
    else
        check_part(c, parts.weight, module, ".weight", &plain);
}

static void check_row(checker *c, const ct_tensor_row *row, ct_str name, uint32_t layer)
{
    expected x = {.dtype = CT_DTYPE_BF16};

    for (; x.n_dims < CT_LEN(row->dim) && row->dim[x.n_dims] != CT_DIM_NONE; x.n_dims++)
        x.dim[x.n_dims] = ct_dim_length(row->dim[x.n_dims], c->config, layer);
    if (row->linear)
        check_linear(c, name, x.dim[0], x.dim[1]);
    else
        check_tensor(c, ct_checkpoint_find(c->ckpt, name), name, &x);
}

static void check_experts(checker *c, const ct_tensor_row *row, uint32_t layer)
{
    const char *path = c->layout.expert_path;
    char name[CT_NAME_BYTES];

    for (uint32_t e = 0; e < c->config->n_experts; e++)
        check_row(c, row,
                  ct_layout_name(&c->layout, name, "layers.%u.%s%u.%s", layer, path, e, row->name),
                  layer);
}

static void check_layer_row(checker *c, const ct_tensor_row *row, uint32_t layer)
{
    const char *path = "";
    char name[CT_NAME_BYTES];

    switch (row->where) {
    case CT_WHERE_TOP:
        return;
    case CT_WHERE_EVERY:
        break;
    case CT_WHERE_SLIDING:
        if (c->config->is_global[layer])
            return;
        break;
    case CT_WHERE_MOE:
        if (!c->config->moe)
            return;
        break;
    case CT_WHERE_FUSED:
        if (!c->config->moe || c->layout.split_experts)
            return;
        path = c->layout.expert_path;
        break;
    case CT_WHERE_SPLIT:
        if (c->config->moe && c->layout.split_experts)
            check_experts(c, row, layer);
        return;
    }
    check_row(c, row, ct_layout_name(&c->layout, name, "layers.%u.%s%s", layer, path, row->name),
              layer);
}

/* Scales of an FP8 KV cache: known and not used, since the cache here is not quantised.
 * compressed-tensors hangs them on the attention, ModelOpt on the projections. */
static void check_kv_scales(checker *c, uint32_t layer)
{
    static const char *const where[] = {"k_scale", "v_scale", "k_proj.k_scale", "v_proj.v_scale"};
    char buf[CT_NAME_BYTES];

    for (size_t i = 0; i < CT_LEN(where); i++) {
        ct_str name = ct_layout_name(&c->layout, buf, "layers.%u.self_attn.%s", layer, where[i]);
        const ct_tensor *t = ct_checkpoint_find(c->ckpt, name);
        expected x = scalar_f32;

        if (!t)
            continue;
        if (t->dtype == CT_DTYPE_BF16)
            x.dtype = CT_DTYPE_BF16;
        check_found(c, t, &x);
    }
}

/* Encoders of other modalities, and their projections into the text model. */
static bool is_other_modality(ct_str name)
{
    static const char *const prefix[] = {"model.vision_tower.", "model.embed_vision.",
                                         "model.audio_tower.", "model.embed_audio.",
                                         "model.vision_embedder."};

    for (size_t i = 0; i < CT_LEN(prefix); i++)
        if (ct_str_starts(name, prefix[i]))
            return true;
    return false;
}

static void sweep(checker *c, ct_manifest_report *r)
{
    for (size_t i = 0; i < ct_checkpoint_count(c->ckpt); i++) {
        const ct_tensor *t = ct_checkpoint_at(c->ckpt, i);

        if (c->seen[i]) {
            r->n_text++;
            r->text_bytes += t->n_bytes;
        } else if (is_other_modality(t->name)) {
            r->n_skipped++;
            r->skipped_bytes += t->n_bytes;
        } else {
            ct_complain(&c->complaints, CT_COMPLAINT_UNKNOWN, "%.*s", CT_STR_ARG(t->name));
        }
    }
}

static void check_all(checker *c)
{
    char name[CT_NAME_BYTES];

    for (size_t i = 0; i < ct_n_tensor_rows; i++)
        if (ct_tensor_table[i].where == CT_WHERE_TOP)
            check_row(c, &ct_tensor_table[i],
                      ct_layout_name(&c->layout, name, "%s", ct_tensor_table[i].name), 0);
    for (uint32_t l = 0; l < c->config->n_layers; l++) {
        for (size_t i = 0; i < ct_n_tensor_rows; i++)
            check_layer_row(c, &ct_tensor_table[i], l);
        if (c->layout.dialect != CT_DIALECT_BF16)
            check_kv_scales(c, l);
    }
}

static const char *dialect_name(const checker *c)
{
    bool modelopt = c->layout.dialect == CT_DIALECT_MODELOPT;

    if (c->nvfp4 && c->fp8)
        return "nvfp4 + fp8 (compressed-tensors)";
    if (c->nvfp4)
        return modelopt ? "nvfp4 (modelopt)" : "nvfp4 (compressed-tensors)";
    return c->fp8 ? "fp8 (compressed-tensors)" : "bf16";
}

ct_status ct_manifest_check(const ct_config *config, const ct_checkpoint *ckpt,
                            ct_manifest_report *report, ct_error *err)
{
    checker c = {.config = config, .ckpt = ckpt};
    size_t n = ct_checkpoint_count(ckpt);
    ct_manifest_report r = {0};
    ct_arena scratch;
    ct_status st = ct_layout_detect(&c.layout, ckpt, err);

    if (st)
        return st;
    st = ct_arena_init(&scratch, n + ct_quant_rules_bytes(&config->quant) + CT_ALIGN, err);
    if (st)
        return st;
    c.seen = ct_arena_zalloc(&scratch, n, 1);
    c.rules = ct_quant_rules_make(&config->quant, &scratch);
    ct_complaints_init(&c.complaints);
    if (!c.seen || !c.rules) {
        st = ct_fail(err, CT_ELIMIT, "%s: no memory to check %zu tensors", ct_checkpoint_path(ckpt),
                     n);
        goto done;
    }
    check_all(&c);
    sweep(&c, &r);
    r.prefix = c.layout.prefix;
    r.dialect = dialect_name(&c);
    st = ct_complaints_status(&c.complaints, ct_checkpoint_path(ckpt), err);
    if (!st)
        *report = r;
done:
    ct_complaints_deinit(&c.complaints);
    ct_arena_deinit(&scratch);
    return st;
}
