#include "model/layout.h"

#include "base/checked.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>

static const char prefix_full[] = "model.language_model.";
static const char prefix_text[] = "model.";

/* Third-party conversions keep the experts under "moe."; longest first, because one path
 * is the beginning of another. */
static const char *const expert_paths[] = {"moe.experts.", "moe.", "experts."};

static bool ends_with(ct_str s, const char *suffix)
{
    size_t n = strlen(suffix);

    return s.n >= n && memcmp(s.p + s.n - n, suffix, n) == 0;
}

static const char *detect_prefix(const ct_checkpoint *ckpt)
{
    for (size_t i = 0; i < ct_checkpoint_count(ckpt); i++)
        if (ct_str_starts(ct_checkpoint_at(ckpt, i)->name, prefix_full))
            return prefix_full;
    return prefix_text;
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* Passes over "layers.N."; false when the name has another form. */
static bool skip_layer(ct_str *s)
{
    size_t at = strlen("layers.");

    if (!ct_str_starts(*s, "layers."))
        return false;
    while (at < s->n && is_digit(s->p[at]))
        at++;
    if (at == s->n || s->p[at] != '.')
        return false;
    *s = (ct_str){s->p + at + 1, s->n - at - 1};
    return true;
}

/* rest: what follows "layers.N.". */
static bool detect_experts(ct_layout *l, ct_str rest)
{
    for (size_t i = 0; i < CT_LEN(expert_paths); i++) {
        size_t n = strlen(expert_paths[i]);
        ct_str tail;

        if (!ct_str_starts(rest, expert_paths[i]))
            continue;
        tail = (ct_str){rest.p + n, rest.n - n};
        l->split_experts = tail.n && is_digit(tail.p[0]);
        if (!l->split_experts && !ct_str_is(tail, "gate_up_proj") && !ct_str_is(tail, "down_proj"))
            continue;
        l->expert_path = expert_paths[i];
        return true;
    }
    return false;
}

static ct_dialect dialect_of(ct_str name)
{
    if (ends_with(name, ".weight_scale_2"))
        return CT_DIALECT_MODELOPT;
    if (ends_with(name, ".weight_packed") || ends_with(name, ".weight_global_scale"))
        return CT_DIALECT_COMPRESSED;
    return CT_DIALECT_BF16;
}

ct_status ct_layout_detect(ct_layout *out, const ct_checkpoint *ckpt, ct_error *err)
{
    ct_layout l = {.prefix = detect_prefix(ckpt), .expert_path = "experts."};
    const size_t n_prefix = strlen(l.prefix);
    const ct_tensor *witness = NULL; /* of the dialect */
    bool scaled = false, experts = false;

    for (size_t i = 0; i < ct_checkpoint_count(ckpt); i++) {
        const ct_tensor *t = ct_checkpoint_at(ckpt, i);
        ct_dialect d = dialect_of(t->name);
        ct_str rest;

        if (!ct_str_starts(t->name, l.prefix))
            continue;
        if (d != CT_DIALECT_BF16 && witness && d != l.dialect)
            return ct_fail(
                err, CT_EFORMAT, "%s: mixes two NVFP4 dialects: tensor %.*s and tensor %.*s",
                ct_checkpoint_path(ckpt), CT_STR_ARG(witness->name), CT_STR_ARG(t->name));
        if (d != CT_DIALECT_BF16) {
            l.dialect = d;
            witness = t;
        }
        scaled = scaled || ends_with(t->name, ".weight_scale");
        rest = (ct_str){t->name.p + n_prefix, t->name.n - n_prefix};
        if (!experts && skip_layer(&rest))
            experts = detect_experts(&l, rest);
    }
    /* FP8 alone: only compressed-tensors writes it with a scale a row. */
    if (scaled && !witness)
        l.dialect = CT_DIALECT_COMPRESSED;
    *out = l;
    return CT_OK;
}

ct_str ct_layout_name(const ct_layout *l, char buf[CT_NAME_BYTES], const char *fmt, ...)
{
    size_t n = strlen(l->prefix);
    va_list ap;
    int more;

    memcpy(buf, l->prefix, n);
    va_start(ap, fmt);
    more = vsnprintf(buf + n, CT_NAME_BYTES - n, fmt, ap);
    va_end(ap);
    /* Formats are ours, and their numbers bounded by the config's limits. */
    assert(more >= 0 && (size_t)more < CT_NAME_BYTES - n);
    return (ct_str){buf, n + (size_t)more};
}

const char *ct_scheme_name(ct_scheme s)
{
    static const char *const name[] = {"nothing", "BF16", "NVFP4", "FP8"};

    return name[s];
}

static const ct_tensor *find_part(const ct_checkpoint *ckpt, ct_str module, const char *suffix)
{
    char buf[CT_NAME_BYTES];
    size_t n = strlen(suffix);

    assert(module.n + n < sizeof buf);
    memcpy(buf, module.p, module.n);
    memcpy(buf + module.n, suffix, n);
    return ct_checkpoint_find(ckpt, (ct_str){buf, module.n + n});
}

ct_scheme ct_linear_find(ct_linear_parts *out, const ct_checkpoint *ckpt, ct_str module)
{
    *out = (ct_linear_parts){
        .weight = find_part(ckpt, module, ".weight"),
        .packed = find_part(ckpt, module, ".weight_packed"),
        .scale = find_part(ckpt, module, ".weight_scale"),
        .multiplier = find_part(ckpt, module, ".weight_scale_2"),
        .divisor = find_part(ckpt, module, ".weight_global_scale"),
    };
    if (out->packed || out->divisor || out->multiplier)
        return CT_SCHEME_NVFP4;
    if (!out->weight)
        return CT_SCHEME_NONE;
    if (out->weight->dtype == CT_DTYPE_U8)
        return CT_SCHEME_NVFP4;
    return out->weight->dtype == CT_DTYPE_F8_E4M3 ? CT_SCHEME_FP8 : CT_SCHEME_BF16;
}
