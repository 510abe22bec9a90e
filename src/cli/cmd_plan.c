/* carat plan: what a configuration takes, and what fits. */
#include "cli/cli.h"

#include "base/checked.h"
#include "base/json.h"
#include "cli/options.h"
#include "engine/plan.h"
#include "format/geometry.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define ARENA_BYTES ((size_t)64 << 20) /* address space for the config's strings */

typedef struct options {
    const char *model, *weights, *kv, *memory;
    bool json;
    ct_engine_options engine;
} options;

/* A plan and what it is of. */
typedef struct subject {
    const options *o;
    ct_config config;
    ct_storage storage;
    ct_plan plan;
    uint64_t memory; /* 0: not given */
} subject;

static const char help[] =
    "usage: carat plan -m MODEL [--ctx N] [--slots N] [--kv T] [--memory BYTES] [--json]\n"
    "\n"
    "Prints what the weights, the KV cache and the workspace of a configuration take, from\n"
    "the model's config alone: nothing is loaded.  With --memory, what fits into it; a\n"
    "configuration asked for that does not fit is refused with the figures.\n"
    "\n"
    "  -m MODEL         directory with config.json; or synth:12b, synth:26b-a4b, synth:31b,\n"
    "                   with a weight type behind it as in synth:31b:q4_0\n"
    "  --weights T      bf16, nvfp4, q4_0 or q8_0 instead of the model's own\n"
    "  --ctx N          longest sequence, answer included (default 8192)\n"
    "  --slots N        sequences at once (default 8)\n"
    "  --kv T           bf16, fp8 or f32 keys and values (default bf16)\n"
    "  --step-rows N    tokens of one step (default 256)\n"
    "  --memory BYTES   what there is: 24GiB, 512M, 80e9 … (K, M, G: 1024s)\n"
    "  --threads N      compute threads (default: one for each CPU)\n"
    "  --backend NAME   ref, cpu (default: cpu)\n"
    "  --json           one JSON object\n";

static int parse_options(options *o, int argc, char **argv)
{
    const ct_option table[] = {
        {"-m", "--model", CT_OPTION_TEXT, .out = &o->model, .required = true},
        {"--weights", NULL, CT_OPTION_TEXT, .out = &o->weights},
        {"--ctx", NULL, CT_OPTION_U32, .out = &o->engine.ctx, .min = 1, .max = CT_MAX_POSITIONS},
        {"--slots", NULL, CT_OPTION_U32, .out = &o->engine.slots, .min = 1,
         .max = CT_ENGINE_MAX_SLOTS},
        {"--step-rows", NULL, CT_OPTION_U32, .out = &o->engine.step_rows, .min = 1, .max = 65536},
        {"--kv", NULL, CT_OPTION_TEXT, .out = &o->kv},
        {"--memory", NULL, CT_OPTION_TEXT, .out = &o->memory},
        {"--threads", NULL, CT_OPTION_U32, .out = &o->engine.n_threads, .min = 1, .max = 256},
        {"--backend", NULL, CT_OPTION_TEXT, .out = &o->engine.backend},
        {"--json", NULL, CT_OPTION_FLAG, .out = &o->json},
    };

    return ct_cli_options(table, CT_LEN(table), NULL, help, argc, argv);
}

/* --- arguments ------------------------------------------------------------------ */

static bool read_kv(ct_kv_type *out, const char *name)
{
    static const char *const names[] = {
        [CT_KV_F32] = "f32", [CT_KV_BF16] = "bf16", [CT_KV_FP8] = "fp8"};

    for (int t = 0; t <= CT_KV_FP8; t++)
        if (!strcmp(name, names[t])) {
            *out = (ct_kv_type)t;
            return true;
        }
    return false;
}

/* "24GiB", "24G", "24GB", "25769803776", "80e9". */
static bool read_bytes(uint64_t *out, const char *text)
{
    static const char letters[] = "KMGT";
    char *end;
    double n = strtod(text, &end);
    const char *letter = *end ? strchr(letters, *end) : NULL;

    if (end == text || !(n > 0))
        return false;
    if (letter) {
        for (const char *l = letters; l <= letter; l++)
            n *= 1024;
        end++;
        if (end[0] == 'i' && end[1] == 'B')
            end += 2;
        else if (end[0] == 'B')
            end++;
    }
    if (*end || n >= 1e18)
        return false;
    *out = (uint64_t)n;
    return true;
}

static ct_status load_config(subject *s, ct_arena *a, ct_error *err)
{
    ct_str name = ct_str_of(s->o->model), type = {0};
    const char *colon;
    ct_status st;

    if (!ct_str_starts(name, "synth:"))
        return ct_config_load(&s->config, s->o->model, a, err);
    name = ct_str_of(s->o->model + strlen("synth:"));
    colon = memchr(name.p, ':', name.n);
    if (colon) {
        type = ct_str_of(colon + 1);
        name.n = (size_t)(colon - name.p);
    }
    st = ct_geometry_config(&s->config, name, err);
    if (!st && colon && !ct_storage_of(&s->storage, type))
        return ct_fail(err, CT_EINVAL,
                       "%s: no weight type '%.*s'; there are bf16, nvfp4, q4_0, q8_0", s->o->model,
                       CT_STR_ARG(type));
    return st;
}

/* --- output --------------------------------------------------------------------- */

static const uint32_t fit_ctx[] = {4096, 8192, 32768, 131072, 262144};

/* Slots that fit at each length, as far as the model goes. */
static ct_status fits(const subject *s, uint32_t slots[CT_LEN(fit_ctx)], size_t *n, ct_error *err)
{
    ct_status st = CT_OK;

    for (*n = 0; *n < CT_LEN(fit_ctx) && !st; (*n)++) {
        if (fit_ctx[*n] > s->config.max_positions)
            break;
        st = ct_plan_fit(&slots[*n], &s->config, s->storage, &s->o->engine, fit_ctx[*n], s->memory,
                         err);
    }
    return st;
}

static void json_weights(const subject *s)
{
    const ct_weight_sizes *w = &s->plan.weights;

    printf("\"weights\": {\"type\": \"%s\", \"parameters\": %" PRIu64 ", \"bytes\": %" PRIu64
           ", \"parts\": {",
           ct_storage_name(s->storage), ct_weight_sizes_params(w), ct_weight_sizes_bytes(w));
    for (int i = 0; i < CT_N_PARTS; i++)
        printf("%s\"%s\": {\"parameters\": %" PRIu64 ", \"bytes\": %" PRIu64 "}", i ? ", " : "",
               ct_weight_part_name((ct_weight_part)i), w->params[i], w->bytes[i]);
    printf("}}, ");
}

static void print_json(const subject *s, const uint32_t *slots, size_t n_fits)
{
    const ct_plan *p = &s->plan;

    printf("{\"ctx\": %u, \"slots\": %u, \"step_rows\": %u, ", p->ctx, p->slots, p->step_rows);
    json_weights(s);
    printf("\"kv\": {\"type\": \"%s\", \"global_token\": %" PRIu64
           ", \"global_token_unfolded\": %" PRIu64 ", \"sliding_token\": %" PRIu64
           ", \"sliding_window\": %" PRIu64 ", \"global_sequence\": %" PRIu64
           ", \"global_pages\": %u, \"global_page\": %" PRIu64 ", \"global\": %" PRIu64
           ", \"sliding_pages\": %u, \"sliding_page\": %" PRIu64 ", \"sliding\": %" PRIu64 "}, ",
           s->o->kv, p->global_token, p->global_token_unfolded, p->sliding_token, p->sliding_window,
           p->global_token * p->ctx, p->kv.n_global, p->kv.global_page, p->kv.global,
           p->kv.n_sliding, p->kv.sliding_page, p->kv.sliding);
    printf("\"workspace\": %" PRIu64 ", \"sampling\": %" PRIu64 ", \"total\": %" PRIu64,
           p->workspace, p->sampling, p->total);
    if (s->memory) {
        printf(", \"memory\": %" PRIu64 ", \"fits\": [", s->memory);
        for (size_t i = 0; i < n_fits; i++)
            printf("%s{\"ctx\": %u, \"slots\": %u}", i ? ", " : "", fit_ctx[i], slots[i]);
        printf("]");
    }
    printf("}\n");
}

static void line(const char *what, uint64_t bytes, const char *note)
{
    printf("%-22s %17" PRIu64 "  %9.3f GiB%s%s\n", what, bytes, (double)bytes / 0x1p30,
           *note ? "  " : "", note);
}

static void print_text(const subject *s, const uint32_t *slots, size_t n_fits)
{
    const ct_plan *p = &s->plan;
    char note[128];

    printf("%u sequences of %u tokens, steps of %u rows, %s keys and values\n\n", p->slots, p->ctx,
           p->step_rows, s->o->kv);
    for (int i = 0; i < CT_N_PARTS; i++) {
        char what[64];

        if (!p->weights.params[i])
            continue;
        snprintf(what, sizeof what, "weights: %s", ct_weight_part_name((ct_weight_part)i));
        snprintf(note, sizeof note, "%" PRIu64 " numbers", p->weights.params[i]);
        line(what, p->weights.bytes[i], note);
    }
    snprintf(note, sizeof note, "%u pages; %" PRIu64 " a token", p->kv.n_global, p->global_token);
    line("KV: global layers", p->kv.global, note);
    snprintf(note, sizeof note, "%u pages; %" PRIu64 " a window", p->kv.n_sliding,
             p->sliding_window);
    line("KV: sliding layers", p->kv.sliding, note);
    line("workspace", p->workspace, "");
    line("sampling", p->sampling, "");
    line("total", p->total, "");
    if (!s->memory)
        return;
    printf("\nsequences that fit into %" PRIu64 " bytes\n", s->memory);
    for (size_t i = 0; i < n_fits; i++)
        printf("%10u tokens  %u\n", fit_ctx[i], slots[i]);
}

/* --- the command ------------------------------------------------------------------ */

static ct_status make(subject *s, ct_error *err)
{
    ct_status st = ct_plan_make(&s->plan, &s->config, s->storage, &s->o->engine, err);

    /* The defaults are no demand: they may not fit where less would. */
    if (!st && s->memory && (s->o->engine.ctx || s->o->engine.slots))
        st = ct_plan_check(&s->plan, s->memory, err);
    return st;
}

static int run(subject *s)
{
    uint32_t slots[CT_LEN(fit_ctx)];
    size_t n_fits = 0;
    ct_error err;
    ct_status st = make(s, &err);

    if (!st && s->memory)
        st = fits(s, slots, &n_fits, &err);
    if (st)
        return ct_cli_fail(&err);
    if (s->o->json)
        print_json(s, slots, n_fits);
    else
        print_text(s, slots, n_fits);
    return ct_cli_end();
}

int ct_cmd_plan(int argc, char **argv)
{
    options o = {.kv = "bf16"};
    subject s = {.o = &o};
    ct_arena arena;
    ct_error err;
    int status = parse_options(&o, argc, argv);

    if (status >= 0)
        return status;
    if (!read_kv(&o.engine.global_type, o.kv))
        return ct_cli_usage("plan: --kv '%s' is none of bf16, fp8, f32", o.kv);
    o.engine.sliding_type = o.engine.global_type;
    if (o.memory && !read_bytes(&s.memory, o.memory))
        return ct_cli_usage("plan: --memory '%s' is no number of bytes such as 24GiB", o.memory);
    if (ct_arena_init(&arena, ARENA_BYTES, &err))
        return ct_cli_fail(&err);
    status = load_config(&s, &arena, &err) ? ct_cli_fail(&err) : -1;
    if (status < 0 && o.weights && !ct_storage_of(&s.storage, ct_str_of(o.weights)))
        status = ct_cli_usage("plan: --weights '%s' is none of bf16, nvfp4, q4_0, q8_0", o.weights);
    if (status < 0)
        status = run(&s);
    ct_arena_deinit(&arena);
    return status;
}
