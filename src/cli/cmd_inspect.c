/* carat inspect: what a model directory holds and whether it is what its config says. */
#include "cli/cli.h"

#include "base/checked.h"
#include "base/json.h"
#include "cli/options.h"
#include "model/model.h"

#include <inttypes.h>

#define MAX_OUTPUT_BYTES ((size_t)1 << 30)

typedef struct options {
    const char *model;
    bool json, tensors;
} options;

static const char help[] =
    "usage: carat inspect -m MODEL [--json | --tensors]\n"
    "\n"
    "Opens the model's configs and the headers of its files, checks that exactly the right\n"
    "tensors are there, and prints what it found.  No weight is read.  A model that does not\n"
    "fit is refused with the list of everything wrong.\n"
    "\n"
    "  -m MODEL   directory with config.json, generation_config.json and safetensors\n"
    "  --json     one JSON object, with every tensor\n"
    "  --tensors  also a line for every tensor\n";

/* -1 to go on, else an exit status. */
static int parse_options(options *o, int argc, char **argv)
{
    const ct_option table[] = {
        {"-m", "--model", CT_OPTION_TEXT, .out = &o->model, .required = true},
        {"--json", NULL, CT_OPTION_FLAG, .out = &o->json},
        {"--tensors", NULL, CT_OPTION_FLAG, .out = &o->tensors},
    };
    int status = ct_cli_options(table, CT_LEN(table), NULL, help, argc, argv);

    if (status < 0 && o->json && o->tensors)
        return ct_cli_usage("inspect: --json already has the tensors of --tensors");
    return status;
}

static const char *arch_name(const ct_config *c)
{
    return c->arch == CT_ARCH_GEMMA4_UNIFIED ? "gemma4_unified" : "gemma4";
}

static const char *quant_name(const ct_config *c)
{
    switch (c->quant.method) {
    case CT_QUANT_NONE:
        return "none";
    case CT_QUANT_MODELOPT:
        return "modelopt";
    case CT_QUANT_COMPRESSED_TENSORS:
        return "compressed-tensors";
    }
    return "?";
}

static uint32_t count_global(const ct_config *c)
{
    uint32_t n = 0;

    for (uint32_t l = 0; l < c->n_layers; l++)
        n += c->is_global[l];
    return n;
}

/* Tensors and bytes by type, of text and other modalities together. */
typedef struct by_type {
    size_t n[CT_N_DTYPES];
    uint64_t bytes[CT_N_DTYPES];
} by_type;

static by_type count_types(const ct_checkpoint *ckpt)
{
    by_type sum = {0};

    for (size_t i = 0; i < ct_checkpoint_count(ckpt); i++) {
        const ct_tensor *t = ct_checkpoint_at(ckpt, i);

        sum.n[t->dtype]++;
        sum.bytes[t->dtype] += t->n_bytes;
    }
    return sum;
}

static void put_shape(ct_buf *b, const ct_tensor *t)
{
    ct_buf_addc(b, '[');
    for (unsigned i = 0; i < t->n_dims; i++)
        ct_buf_addf(b, "%s%" PRIu64, i ? ", " : "", t->dim[i]);
    ct_buf_addc(b, ']');
}

static void json_config(ct_buf *b, const ct_config *c)
{
    ct_buf_addf(b,
                "{\"model_type\": \"%s\", \"vocab_size\": %u, \"hidden_size\": %u, "
                "\"intermediate_size\": %u, \"layers\": %u, \"global_layers\": %u, "
                "\"heads\": %u, \"kv_heads\": {\"sliding\": %u, \"global\": %u}, "
                "\"head_dim\": {\"sliding\": %u, \"global\": %u}, \"sliding_window\": %u, "
                "\"max_positions\": %u, \"rms_norm_eps\": %.9g, \"softcap\": %.9g, "
                "\"rope\": {\"theta_sliding\": %.17g, \"theta_global\": %.17g, "
                "\"partial_global\": %.17g}, ",
                arch_name(c), c->vocab, c->hidden, c->intermediate, c->n_layers, count_global(c),
                c->n_heads, c->n_kv_sliding, c->n_kv_global, c->hd_sliding, c->hd_global, c->window,
                c->max_positions, (double)c->eps, (double)c->softcap, c->rope_theta_sliding,
                c->rope_theta_global, c->rope_partial_global);
    if (c->moe)
        ct_buf_addf(b, "\"moe\": {\"experts\": %u, \"top_k\": %u, \"intermediate_size\": %u}, ",
                    c->n_experts, c->top_k, c->moe_intermediate);
    else
        ct_buf_addz(b, "\"moe\": null, ");
    ct_buf_addf(b, "\"quantization\": \"%s\"}", quant_name(c));
}

static void json_ids(ct_buf *b, const uint32_t *id, size_t n)
{
    ct_buf_addc(b, '[');
    for (size_t i = 0; i < n; i++)
        ct_buf_addf(b, "%s%u", i ? ", " : "", id[i]);
    ct_buf_addc(b, ']');
}

static void json_generation(ct_buf *b, const ct_generation_config *g)
{
    ct_buf_addz(b, "{\"stop_ids\": ");
    json_ids(b, g->stop_ids, g->n_stop_ids);
    ct_buf_addz(b, ", \"suppress_ids\": ");
    json_ids(b, g->suppress_ids, g->n_suppress_ids);
    ct_buf_addf(b,
                ", \"bos_id\": %u, \"pad_id\": %u, \"do_sample\": %s, \"temperature\": %.17g, "
                "\"top_k\": %u, \"top_p\": %.17g}",
                g->bos_id, g->pad_id, g->do_sample ? "true" : "false", g->temperature, g->top_k,
                g->top_p);
}

static void json_types(ct_buf *b, const ct_checkpoint *ckpt)
{
    by_type sum = count_types(ckpt);
    bool first = true;

    ct_buf_addc(b, '{');
    for (unsigned t = 0; t < CT_N_DTYPES; t++) {
        if (!sum.n[t])
            continue;
        ct_buf_addf(b, "%s\"%s\": {\"tensors\": %zu, \"bytes\": %" PRIu64 "}", first ? "" : ", ",
                    ct_dtype_name((ct_dtype)t), sum.n[t], sum.bytes[t]);
        first = false;
    }
    ct_buf_addc(b, '}');
}

static void json_tensors(ct_buf *b, const ct_checkpoint *ckpt)
{
    ct_buf_addc(b, '[');
    for (size_t i = 0; i < ct_checkpoint_count(ckpt); i++) {
        const ct_tensor *t = ct_checkpoint_at(ckpt, i);

        ct_buf_addz(b, i ? ",\n{\"name\": " : "\n{\"name\": ");
        ct_json_put_str(b, t->name);
        ct_buf_addf(b, ", \"dtype\": \"%s\", \"shape\": ", ct_dtype_name(t->dtype));
        put_shape(b, t);
        ct_buf_addf(b, ", \"bytes\": %zu, \"file\": %u}", t->n_bytes, t->file);
    }
    ct_buf_addz(b, "\n]");
}

static void write_json(ct_buf *b, const ct_model *m, const options *o)
{
    const ct_manifest_report *r = &m->report;

    ct_buf_addz(b, "{\"model\": ");
    ct_json_put_str(b, ct_str_of(o->model));
    ct_buf_addz(b, ", \"config\": ");
    json_config(b, &m->config);
    ct_buf_addz(b, ", \"generation\": ");
    json_generation(b, &m->generation);
    ct_buf_addf(b,
                ", \"manifest\": {\"ok\": true, \"dialect\": \"%s\", \"prefix\": \"%s\", "
                "\"text\": {\"tensors\": %zu, \"bytes\": %" PRIu64
                "}, \"skipped\": {\"tensors\": %zu, \"bytes\": %" PRIu64 "}}, \"files\": [",
                r->dialect, r->prefix, r->n_text, r->text_bytes, r->n_skipped, r->skipped_bytes);
    for (unsigned i = 0; i < ct_checkpoint_n_files(m->ckpt); i++) {
        ct_buf_addz(b, i ? ", " : "");
        ct_json_put_str(b, ct_str_of(ct_checkpoint_file(m->ckpt, i)));
    }
    ct_buf_addz(b, "], \"types\": ");
    json_types(b, m->ckpt);
    ct_buf_addz(b, ", \"tensors\": ");
    json_tensors(b, m->ckpt);
    ct_buf_addz(b, "}\n");
}

static void text_config(ct_buf *b, const ct_config *c, const ct_generation_config *g)
{
    ct_buf_addf(b, "model type   %s, quantization %s\n", arch_name(c), quant_name(c));
    ct_buf_addf(b, "layers       %u: %u sliding (window %u), %u global\n", c->n_layers,
                c->n_layers - count_global(c), c->window, count_global(c));
    ct_buf_addf(b, "sizes        hidden %u, intermediate %u, vocabulary %u, positions %u\n",
                c->hidden, c->intermediate, c->vocab, c->max_positions);
    ct_buf_addf(b, "heads        %u; key/value %u of %u (sliding), %u of %u (global)\n", c->n_heads,
                c->n_kv_sliding, c->hd_sliding, c->n_kv_global, c->hd_global);
    if (c->moe)
        ct_buf_addf(b, "experts      %u, %u a token, intermediate %u\n", c->n_experts, c->top_k,
                    c->moe_intermediate);
    ct_buf_addz(b, "stop ids     ");
    for (size_t i = 0; i < g->n_stop_ids; i++)
        ct_buf_addf(b, "%s%u", i ? ", " : "", g->stop_ids[i]);
    ct_buf_addc(b, '\n');
}

static void text_report(ct_buf *b, const ct_model *m)
{
    const ct_manifest_report *r = &m->report;
    by_type sum = count_types(m->ckpt);

    ct_buf_addf(b, "tensors      %zu of the text model, %" PRIu64 " bytes, %s, prefix %s\n",
                r->n_text, r->text_bytes, r->dialect, r->prefix);
    if (r->n_skipped)
        ct_buf_addf(b, "skipped      %zu of other modalities, %" PRIu64 " bytes\n", r->n_skipped,
                    r->skipped_bytes);
    for (unsigned t = 0; t < CT_N_DTYPES; t++)
        if (sum.n[t])
            ct_buf_addf(b, "  %-10s %zu tensors, %" PRIu64 " bytes\n", ct_dtype_name((ct_dtype)t),
                        sum.n[t], sum.bytes[t]);
    for (unsigned i = 0; i < ct_checkpoint_n_files(m->ckpt); i++)
        ct_buf_addf(b, "file         %s\n", ct_checkpoint_file(m->ckpt, i));
    ct_buf_addz(b, "manifest     ok: exactly the expected tensors\n");
}

static void text_tensors(ct_buf *b, const ct_checkpoint *ckpt)
{
    for (size_t i = 0; i < ct_checkpoint_count(ckpt); i++) {
        const ct_tensor *t = ct_checkpoint_at(ckpt, i);

        ct_buf_addf(b, "%-8s ", ct_dtype_name(t->dtype));
        ct_buf_add(b, t->name.p, t->name.n);
        ct_buf_addc(b, ' ');
        put_shape(b, t);
        ct_buf_addc(b, '\n');
    }
}

int ct_cmd_inspect(int argc, char **argv)
{
    options o = {0};
    ct_model *m;
    ct_error err;
    ct_buf out;
    int status = parse_options(&o, argc, argv);

    if (status >= 0)
        return status;
    if (ct_model_open(&m, o.model, &err))
        return ct_cli_fail(&err);
    ct_buf_init(&out, MAX_OUTPUT_BYTES);
    if (o.json) {
        write_json(&out, m, &o);
    } else {
        text_config(&out, &m->config, &m->generation);
        text_report(&out, m);
        if (o.tensors)
            text_tensors(&out, m->ckpt);
    }
    ct_model_close(m);
    if (out.failed) {
        ct_fail(&err, CT_ELIMIT, "inspect: the output exceeds %zu bytes or the memory",
                MAX_OUTPUT_BYTES);
        ct_buf_deinit(&out);
        return ct_cli_fail(&err);
    }
    fwrite(out.p, 1, out.n, stdout);
    ct_buf_deinit(&out);
    return ct_cli_end();
}
