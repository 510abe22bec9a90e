/* quantization_config of config.json: what ModelOpt and compressed-tensors say about
 * which modules are quantised and how. */
#include "format/config_file.h"

#include "format/pattern.h"

typedef struct reader {
    ct_fields f;
    ct_arena *a;
    ct_quant_config *out;
} reader;

static ct_str copy_pattern(reader *r, const ct_node *n)
{
    ct_str s = ct_fields_node_str(&r->f, n);
    const char *p;

    if (r->f.st)
        return s;
    if (!s.n || s.n > CT_PATTERN_MAX_BYTES) {
        ct_fields_refuse_node(&r->f, CT_ELIMIT, n, "must be 1 to %d bytes", CT_PATTERN_MAX_BYTES);
        return s;
    }
    p = ct_arena_copy(r->a, s.p, s.n);
    if (!p)
        ct_fields_refuse_node(&r->f, CT_ELIMIT, n, "which exceeds the arena");
    return (ct_str){p, s.n};
}

/* A list of patterns; absent is empty. */
static size_t read_patterns(reader *r, const ct_node *object, const char *key, ct_str **out)
{
    const ct_node *list;
    size_t n = 0, i = 0;

    if (!ct_node_get(object, key))
        return 0;
    list = ct_fields_container(&r->f, object, key, CT_JSON_ARRAY);
    for (const ct_node *c = list ? list->child : NULL; c; c = c->next)
        n++;
    if (n > CT_MAX_QUANT_PATTERNS)
        ct_fields_refuse(&r->f, CT_ELIMIT, object, key, "of %zu patterns, at most %d are read", n,
                         CT_MAX_QUANT_PATTERNS);
    if (r->f.st || !n)
        return 0;
    *out = ct_arena_zalloc(r->a, n, sizeof **out);
    if (!*out) {
        ct_fields_refuse(&r->f, CT_ELIMIT, object, key, "which exceeds the arena");
        return 0;
    }
    for (const ct_node *c = list->child; c && !r->f.st; c = c->next) {
        const char *why;

        (*out)[i] = copy_pattern(r, c);
        why = r->f.st ? NULL : ct_pattern_check((*out)[i]);
        if (why)
            ct_fields_refuse_node(&r->f, CT_EUNSUPPORTED, c, "a pattern with %s", why);
        i++;
    }
    return i;
}

static ct_quant_scheme read_fp8(reader *r, const ct_node *weights)
{
    if (r->out->method != CT_QUANT_COMPRESSED_TENSORS)
        ct_fields_refuse(&r->f, CT_EUNSUPPORTED, weights, "num_bits",
                         "must be 4 under quant_method 'modelopt'");
    if (!ct_str_is(ct_fields_str(&r->f, weights, "strategy"), "channel"))
        ct_fields_refuse(&r->f, CT_EUNSUPPORTED, weights, "strategy",
                         "must be 'channel' with 8 bits");
    return CT_QUANT_FP8;
}

static ct_quant_scheme read_scheme(reader *r, const ct_node *group)
{
    const ct_node *w = ct_fields_container(&r->f, group, "weights", CT_JSON_OBJECT);
    uint32_t bits;

    if (!ct_str_is(ct_fields_str(&r->f, w, "type"), "float"))
        ct_fields_refuse(&r->f, CT_EUNSUPPORTED, w, "type", "must be 'float'");
    if (!ct_fields_bool_or(&r->f, w, "symmetric", true))
        ct_fields_refuse(&r->f, CT_EUNSUPPORTED, w, "symmetric", "must be true");
    bits = ct_fields_u32(&r->f, w, "num_bits", 1, 64);
    if (bits == 8)
        return read_fp8(r, w);
    if (bits != 4)
        ct_fields_refuse(&r->f, CT_EUNSUPPORTED, w, "num_bits", "must be 4 or 8");
    if (ct_fields_u32(&r->f, w, "group_size", 0, UINT32_MAX) != 16)
        ct_fields_refuse(&r->f, CT_EUNSUPPORTED, w, "group_size", "must be 16 with 4 bits");
    return CT_QUANT_NVFP4;
}

static void read_group(reader *r, const ct_node *node)
{
    ct_quant_group *g;

    if (r->out->n_groups == CT_MAX_QUANT_GROUPS) {
        ct_fields_refuse_node(&r->f, CT_ELIMIT, node, "more than %d groups", CT_MAX_QUANT_GROUPS);
        return;
    }
    if (node->kind != CT_JSON_OBJECT)
        ct_fields_refuse_node(&r->f, CT_EFORMAT, node, "must be an object");
    g = &r->out->group[r->out->n_groups++];
    g->scheme = read_scheme(r, node);
    g->n_targets = read_patterns(r, node, "targets", &g->target);
    if (!g->n_targets)
        ct_fields_refuse(&r->f, CT_EFORMAT, node, "targets", "must name what is quantised");
}

/* ModelOpt writes the algorithm's name, with or without groups. */
static void read_modelopt_algorithm(reader *r, const ct_node *q)
{
    static const char *const served[] = {"NVFP4", "W4A16_NVFP4"};
    ct_str algo;
    bool ok = false;

    if (!ct_node_get(q, "quant_algo") && ct_node_get(q, "config_groups"))
        return;
    algo = ct_fields_str(&r->f, q, "quant_algo");
    for (size_t i = 0; i < sizeof served / sizeof *served; i++)
        ok = ok || ct_str_is(algo, served[i]);
    if (!ok)
        ct_fields_refuse(&r->f, CT_EUNSUPPORTED, q, "quant_algo", "must be 'NVFP4'");
}

static void read_groups(reader *r, const ct_node *q)
{
    static ct_str every_linear[] = {{"Linear", 6}};
    const ct_node *groups = ct_node_get(q, "config_groups");

    r->out->group = ct_arena_zalloc(r->a, CT_MAX_QUANT_GROUPS, sizeof *r->out->group);
    if (!r->out->group) {
        ct_fields_refuse(&r->f, CT_ELIMIT, q, "config_groups", "which exceeds the arena");
        return;
    }
    if (!groups && r->out->method == CT_QUANT_MODELOPT) {
        r->out->group[0] = (ct_quant_group){CT_QUANT_NVFP4, every_linear, 1};
        r->out->n_groups = 1;
        return;
    }
    groups = ct_fields_container(&r->f, q, "config_groups", CT_JSON_OBJECT);
    for (const ct_node *n = groups ? groups->child : NULL; n; n = n->next)
        read_group(r, n);
    if (!r->out->n_groups)
        ct_fields_refuse(&r->f, CT_EFORMAT, q, "config_groups", "must hold a group");
}

static void read_method(reader *r, const ct_node *q)
{
    ct_str method = ct_fields_str(&r->f, q, "quant_method");
    const ct_node *transform = ct_node_get(q, "transform_config");

    if (ct_str_is(method, "modelopt")) {
        r->out->method = CT_QUANT_MODELOPT;
        read_modelopt_algorithm(r, q);
    } else if (ct_str_is(method, "compressed-tensors")) {
        r->out->method = CT_QUANT_COMPRESSED_TENSORS;
    } else {
        ct_fields_refuse(&r->f, CT_EUNSUPPORTED, q, "quant_method",
                         "must be 'modelopt' or 'compressed-tensors'");
    }
    /* Rotations of activations (compressed-tensors) would have to be applied. */
    if (transform && (transform->kind != CT_JSON_OBJECT || transform->child))
        ct_fields_refuse(&r->f, CT_EUNSUPPORTED, q, "transform_config", "must be empty");
}

ct_status ct_quant_config_read(ct_quant_config *out, const char *path, const ct_node *root,
                               ct_arena *a, ct_error *err)
{
    ct_quant_config x = {0};
    reader r = {.f = {.path = path, .err = err}, .a = a, .out = &x};
    const ct_node *q;

    if (ct_node_get(root, "quantization_config")) {
        q = ct_fields_container(&r.f, root, "quantization_config", CT_JSON_OBJECT);
        read_method(&r, q);
        if (!r.f.st)
            read_groups(&r, q);
        /* hf_quant_config.json's name for the same list. */
        if (!r.f.st)
            x.n_ignore = read_patterns(
                &r, q, ct_node_get(q, "ignore") ? "ignore" : "exclude_modules", &x.ignore);
    }
    if (!r.f.st)
        *out = x;
    return r.f.st;
}
