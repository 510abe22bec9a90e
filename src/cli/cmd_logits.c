/* carat logits: token ids to logits and hidden states, as a safetensors file. */
#include "cli/cli.h"

#include "base/checked.h"
#include "base/json.h"
#include "base/map.h"
#include "cli/options.h"
#include "engine/session.h"
#include "format/safetensors_write.h"
#include "text/tokenizer.h"

#include <inttypes.h>
#include <stdlib.h>
#include <unistd.h>

typedef struct options {
    const char *model, *ids, *out;
    ct_session_options session;
    bool hidden;
} options;

typedef struct job {
    const options *o;
    const ct_model *model;
    const ct_ids *ids;
    ct_session *session;
    ct_tensor_writer *writer;
    float *rows;      /* [chunk, hidden] or [rows of one ct_session_logits, vocab] */
    uint32_t at, n;   /* tokens of the step under way */
    bool on_terminal; /* progress is shown */
} job;

static const char help[] =
    "usage: carat logits -m MODEL --ids FILE.json --out FILE.safetensors [options]\n"
    "\n"
    "Runs the ids (one JSON array) as one sequence and writes `logits` [T, vocabulary], f32.\n"
    "\n"
    "  -m MODEL         directory of the checkpoint\n"
    "  --ids FILE       the ids\n"
    "  --out FILE       the result; it appears when it is complete\n"
    "  --chunk N        tokens a step (default 256); the result does not depend on it\n"
    "  --hidden         also `hidden.i` [T, hidden size]: 0 the embedding, i the input of\n"
    "                   layer i, the last one the output after the final norm\n"
    "  --mode f32|bf16  activations: full (default), or rounded where the bf16 reference does\n"
    "  --threads N      default: every CPU that this process may use\n"
    "  --backend NAME   what computes: ref, cpu (default: cpu; ref in bf16 mode)\n";

/* -1 to go on, else an exit status. */
static int parse_options(options *o, int argc, char **argv)
{
    const ct_option table[] = {
        {"-m", "--model", CT_OPTION_TEXT, .out = &o->model, .required = true},
        {"--ids", NULL, CT_OPTION_TEXT, .out = &o->ids, .required = true},
        {"--out", NULL, CT_OPTION_TEXT, .out = &o->out, .required = true},
        {"--chunk", NULL, CT_OPTION_U32, .out = &o->session.chunk, .min = 1, .max = INT32_MAX},
        {"--hidden", NULL, CT_OPTION_FLAG, .out = &o->hidden},
        CT_SESSION_OPTIONS(o->session),
    };

    return ct_cli_options(table, CT_LEN(table), NULL, help, argc, argv);
}

/* --- ids --------------------------------------------------------------------- */

static ct_status read_array(ct_ids *ids, ct_json *j, uint32_t vocab, ct_error *err)
{
    ct_json_token t;
    ct_status st = ct_json_expect(j, CT_JSON_ARRAY, "the list of ids", &t, err);

    while (!st) {
        uint64_t id;

        st = ct_json_next(j, &t, err);
        if (st || t.kind == CT_JSON_ARRAY_END)
            break;
        st = ct_json_u64(j, &t, "an id", UINT64_MAX, &id, err);
        if (!st && id >= vocab)
            st = ct_fail(err, CT_EINVAL,
                         "%s: id %" PRIu64 " at index %zu, the vocabulary has %" PRIu32, j->name,
                         id, ids->n, vocab);
        if (!st)
            st = ct_ids_add(ids, (uint32_t)id, err);
    }
    return st ? st : ct_json_expect(j, CT_JSON_END, "what follows", &t, err);
}

static ct_status load_ids(ct_ids *ids, const char *path, const ct_config *c, ct_error *err)
{
    ct_map map;
    ct_json j;
    ct_status st = ct_map_open(&map, path, err);

    if (st)
        return st;
    ct_json_init(&j, path, ct_map_str(&map));
    st = read_array(ids, &j, c->vocab, err);
    ct_map_close(&map);
    if (!st && ids->n == 0)
        st = ct_fail(err, CT_EINVAL, "%s: the list of ids is empty", path);
    if (!st && ids->n > c->max_positions)
        st = ct_fail(err, CT_EINVAL, "%s: %zu ids, the model has positions for %" PRIu32, path,
                     ids->n, c->max_positions);
    return st;
}

/* --- result ------------------------------------------------------------------ */

static ct_tensor matrix(ct_str name, uint64_t rows, uint64_t cols)
{
    return (ct_tensor){.name = name, .dtype = CT_DTYPE_F32, .n_dims = 2, .dim = {rows, cols}};
}

/* Tensor 0 is `logits`, tensor 1 + i is `hidden.i`. */
static ct_status open_writer(job *w, ct_error *err)
{
    char name[CT_MAX_LAYERS + 1][16];
    ct_tensor tensor[CT_MAX_LAYERS + 2];
    const ct_config *c = &w->model->config;
    size_t n = 0;

    tensor[n++] = matrix(CT_STR("logits"), w->ids->n, c->vocab);
    for (uint32_t i = 0; w->o->hidden && i <= c->n_layers; i++) {
        snprintf(name[i], sizeof name[i], "hidden.%" PRIu32, i);
        tensor[n++] = matrix(ct_str_of(name[i]), w->ids->n, c->hidden);
    }
    return ct_tensor_writer_create(&w->writer, w->o->out, tensor, n, err);
}

/* Rows [row, row + n) of a tensor of that width, from w->rows. */
static ct_status put_rows(job *w, size_t tensor, uint64_t row, uint32_t n, uint32_t width,
                          ct_error *err)
{
    const uint64_t row_bytes = width * sizeof *w->rows;

    return ct_tensor_writer_put(w->writer, tensor, row * row_bytes, w->rows, n * row_bytes, err);
}

static ct_status put_hidden(void *ctx, uint32_t index, const void *x, ct_error *err)
{
    job *w = ctx;
    const uint32_t width = w->model->config.hidden;
    ct_backend *b = ct_session_backend(w->session);
    ct_status st = b->ops->read(b, w->rows, x, CT_ELEM_ACT, 0, (size_t)w->n * width, err);

    return st ? st : put_rows(w, 1 + (size_t)index, w->at, w->n, width, err);
}

static ct_status put_logits(job *w, ct_error *err)
{
    ct_status st = CT_OK;

    for (uint32_t first = 0, n; first < w->n && !st; first += n) {
        n = (uint32_t)ct_min_size(ct_session_logits_rows(w->session), w->n - first);
        st = ct_session_logits(w->session, first, n, w->rows, err);
        if (!st)
            st = put_rows(w, 0, (uint64_t)w->at + first, n, w->model->config.vocab, err);
    }
    return st;
}

/* --- work -------------------------------------------------------------------- */

static void show_progress(const job *w, bool done)
{
    if (w->on_terminal)
        fprintf(stderr, "\rlogits: %" PRIu32 " of %zu tokens%s", w->at, w->ids->n,
                done ? "\n" : "");
}

static ct_status do_chunks(job *w, ct_error *err)
{
    const ct_hidden_sink sink = {put_hidden, w};
    ct_status st = CT_OK;

    for (w->at = 0; w->at < w->ids->n && !st; w->at += w->n) {
        show_progress(w, false);
        if (ct_cli_stop) {
            st = ct_fail(err, CT_ECANCELLED,
                         "stopped after %" PRIu32 " of %zu tokens; nothing was written", w->at,
                         w->ids->n);
            break;
        }
        w->n = (uint32_t)ct_min_size(ct_session_chunk(w->session), w->ids->n - w->at);
        st =
            ct_session_step(w->session, w->ids->id + w->at, w->n, w->o->hidden ? &sink : NULL, err);
        if (!st)
            st = put_logits(w, err);
    }
    show_progress(w, true);
    return st;
}

static ct_status open_session(job *w, ct_error *err)
{
    const ct_config *c = &w->model->config;
    ct_session_options how = w->o->session;
    size_t n, n_logits;
    ct_status st;

    how.max_tokens = (uint32_t)w->ids->n;
    st = ct_session_open(&w->session, w->model, &how, err);
    if (st)
        return st;
    if (!ct_mul_size(&n, ct_session_chunk(w->session), c->hidden) ||
        !ct_mul_size(&n_logits, ct_session_logits_rows(w->session), c->vocab))
        return ct_fail(err, CT_ELIMIT, "chunks of %" PRIu32 " tokens are too large",
                       ct_session_chunk(w->session));
    w->rows = calloc(ct_max_size(n, n_logits), sizeof *w->rows);
    return w->rows ? CT_OK : ct_fail(err, CT_ELIMIT, "out of memory for the rows of one step");
}

static ct_status run(job *w, ct_error *err)
{
    ct_status st = open_session(w, err);

    if (!st)
        st = open_writer(w, err);
    if (!st)
        st = do_chunks(w, err);
    if (!st)
        st = ct_tensor_writer_finish(w->writer, err);
    ct_tensor_writer_destroy(w->writer);
    ct_session_close(w->session);
    free(w->rows);
    return st;
}

int ct_cmd_logits(int argc, char **argv)
{
    static ct_error err;
    options o = {0};
    ct_ids ids = {0};
    ct_model *model;
    ct_status st;
    int status = parse_options(&o, argc, argv);

    if (status >= 0)
        return status;
    st = ct_model_open(&model, o.model, &err);
    if (st)
        return ct_cli_fail(&err);
    st = load_ids(&ids, o.ids, &model->config, &err);
    if (!st)
        st = run(
            &(job){.o = &o, .model = model, .ids = &ids, .on_terminal = isatty(STDERR_FILENO) == 1},
            &err);
    ct_ids_deinit(&ids);
    ct_model_close(model);
    return st ? ct_cli_fail(&err) : CT_EXIT_OK;
}
