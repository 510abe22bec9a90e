/* generation_config.json: stop ids and sampling defaults. */
#include "format/config_file.h"

/* For fields that must be above 0. */
#define MIN_POSITIVE 1e-9

/* One id or a list of them. */
static size_t read_ids(ct_fields *f, const ct_node *root, const char *key, uint32_t *out,
                       size_t max)
{
    const ct_node *n = ct_node_get(root, key);
    size_t count = 0;

    if (!n)
        return 0;
    if (n->kind != CT_JSON_ARRAY) {
        out[0] = ct_fields_node_u32(f, n, 0, CT_MAX_VOCAB - 1);
        return 1;
    }
    for (const ct_node *c = n->child; c; c = c->next) {
        if (count == max) {
            ct_fields_refuse_node(f, CT_ELIMIT, n, "of more than %zu ids", max);
            break;
        }
        out[count++] = ct_fields_node_u32(f, c, 0, CT_MAX_VOCAB - 1);
    }
    return count;
}

static double read_bounded(ct_fields *f, const ct_node *root, const char *key, double min,
                           double max, double absent)
{
    double v;

    if (!ct_node_get(root, key))
        return absent;
    v = ct_fields_double(f, root, key);
    if (!(v >= min && v <= max))
        ct_fields_refuse(f, CT_EFORMAT, root, key, "must be from %g to %g", min, max);
    return v;
}

static void read_generation(ct_fields *f, const ct_node *root, ct_generation_config *g)
{
    g->n_stop_ids = read_ids(f, root, "eos_token_id", g->stop_ids, CT_MAX_STOP_IDS);
    if (!g->n_stop_ids)
        ct_fields_refuse(f, CT_EFORMAT, root, "eos_token_id", "must hold at least one id");
    g->n_suppress_ids = read_ids(f, root, "suppress_tokens", g->suppress_ids, CT_MAX_SUPPRESS);
    g->bos_id = ct_fields_u32_or(f, root, "bos_token_id", 0, CT_MAX_VOCAB - 1, 2);
    g->pad_id = ct_fields_u32_or(f, root, "pad_token_id", 0, CT_MAX_VOCAB - 1, 0);
    /* Absent sampling fields mean what they mean to transformers. */
    g->do_sample = ct_fields_bool_or(f, root, "do_sample", false);
    g->temperature = read_bounded(f, root, "temperature", 0, 100, 1);
    g->top_p = read_bounded(f, root, "top_p", 0, 1, 1);
    g->min_p = read_bounded(f, root, "min_p", 0, 1, 0);
    g->typical_p = read_bounded(f, root, "typical_p", MIN_POSITIVE, 1, 1);
    g->repetition_penalty = read_bounded(f, root, "repetition_penalty", MIN_POSITIVE, 100, 1);
    g->top_k = ct_fields_u32_or(f, root, "top_k", 0, CT_MAX_VOCAB, 0);
}

ct_status ct_generation_config_parse(ct_generation_config *out, const char *path, ct_str text,
                                     ct_error *err)
{
    ct_fields f = {.path = path, .err = err};
    ct_generation_config g = {0};
    ct_arena scratch;
    const ct_node *root;
    ct_status st = ct_config_doc(&root, path, text, &scratch, err);

    if (st)
        return st;
    read_generation(&f, root, &g);
    ct_arena_deinit(&scratch);
    if (!f.st)
        *out = g;
    return f.st;
}

ct_status ct_generation_config_load(ct_generation_config *out, const char *dir, ct_error *err)
{
    ct_config_file file;
    ct_status st = ct_config_file_open(&file, dir, "generation_config.json", err);

    if (st)
        return st;
    st = ct_generation_config_parse(out, file.path, ct_map_str(&file.map), err);
    ct_map_close(&file.map);
    return st;
}
