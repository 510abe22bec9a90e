/* carat eval: perplexity of a text, and distance to a reference's logits. */
#include "cli/cli.h"

#include "base/checked.h"
#include "base/map.h"
#include "cli/options.h"
#include "engine/session.h"
#include "text/tokenizer.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <unistd.h>

#define DEFAULT_CTX 512

typedef struct options {
    const char *model, *text, *ref;
    ct_session_options session;
    uint32_t ctx;
    bool json;
} options;

typedef struct totals {
    uint64_t windows, scored, compared, agreed;
    double nll, kl, kl_max;
} totals;

typedef struct job {
    const options *o;
    const ct_model *model;
    ct_tokenizer *tokenizer;
    ct_checkpoint *ref;  /* NULL without --ref */
    const float *ref_at; /* next row of the reference */
    ct_ids text;
    ct_session *session;
    float *logits;    /* [rows of one ct_session_logits, vocab] */
    uint32_t *window; /* [ctx] */
    totals sum;
} job;

static const char help[] =
    "usage: carat eval -m MODEL --text FILE [options]\n"
    "\n"
    "Perplexity of a text, cut into windows that each begin with <bos>; every token after it\n"
    "is scored.\n"
    "\n"
    "  -m MODEL         directory of the checkpoint\n"
    "  --text FILE      UTF-8 text\n"
    "  --ctx N          tokens of a window, <bos> included (default 512)\n"
    "  --ref FILE       safetensors with `logits` [T, vocabulary], f32, for every position of\n"
    "                   the windows in order: adds the mean and largest KL divergence from it,\n"
    "                   and how often the most likely token is the same\n"
    "  --json           one JSON object\n"
    "  --mode f32|bf16  activations: full (default), or rounded where the bf16 reference does\n"
    "  --threads N      default: every CPU that this process may use\n"
    "  --backend NAME   what computes: ref, cpu (default: cpu; ref in bf16 mode)\n";

/* -1 to go on, else an exit status. */
static int parse_options(options *o, int argc, char **argv)
{
    const ct_option table[] = {
        {"-m", "--model", CT_OPTION_TEXT, .out = &o->model, .required = true},
        {"--text", NULL, CT_OPTION_TEXT, .out = &o->text, .required = true},
        {"--ref", NULL, CT_OPTION_TEXT, .out = &o->ref},
        {"--ctx", NULL, CT_OPTION_U32, .out = &o->ctx, .min = 2, .max = INT32_MAX},
        {"--json", NULL, CT_OPTION_FLAG, .out = &o->json},
        CT_SESSION_OPTIONS(o->session),
    };

    o->ctx = DEFAULT_CTX;
    return ct_cli_options(table, CT_LEN(table), NULL, help, argc, argv);
}

/* --- inputs ------------------------------------------------------------------ */

static ct_status load_text(job *w, ct_error *err)
{
    ct_map map;
    ct_status st = ct_cli_tokenizer(&w->tokenizer, w->o->model, w->model, err);

    if (!st)
        st = ct_map_open(&map, w->o->text, err);
    if (st)
        return st;
    /* A text that is measured holds no control tokens. */
    st = ct_tokenizer_encode(w->tokenizer, ct_map_str(&map), CT_SPECIAL_PLAIN, &w->text, err);
    ct_map_close(&map);
    if (st)
        ct_error_prefix(err, "%s: ", w->o->text);
    else if (w->text.n == 0)
        st = ct_fail(err, CT_EINVAL, "%s: holds no text", w->o->text);
    return st;
}

static uint64_t n_windows(const job *w)
{
    return (w->text.n + w->o->ctx - 2) / (w->o->ctx - 1);
}

static ct_status load_reference(job *w, ct_error *err)
{
    const uint64_t rows = w->text.n + n_windows(w), vocab = w->model->config.vocab;
    const ct_tensor *t;
    ct_status st;

    if (!w->o->ref)
        return CT_OK;
    st = ct_checkpoint_open_file(&w->ref, w->o->ref, err);
    if (st)
        return st;
    t = ct_checkpoint_find(w->ref, CT_STR("logits"));
    if (!t || t->dtype != CT_DTYPE_F32 || t->n_dims != 2)
        return ct_fail(err, CT_EFORMAT, "%s: has no matrix `logits` of F32", w->o->ref);
    if (t->dim[0] != rows || t->dim[1] != vocab)
        return ct_fail(err, CT_EINVAL,
                       "%s: logits [%" PRIu64 ", %" PRIu64
                       "], the windows of the text need [%" PRIu64 ", %" PRIu64 "]",
                       w->o->ref, t->dim[0], t->dim[1], rows, vocab);
    if ((uintptr_t)t->data % sizeof(float))
        return ct_fail(err, CT_EUNSUPPORTED, "%s: data is not aligned to its elements", w->o->ref);
    w->ref_at = t->data;
    return CT_OK;
}

static ct_status open_session(job *w, ct_error *err)
{
    const ct_config *c = &w->model->config;
    ct_session_options how = w->o->session;
    ct_status st;

    if (w->o->ctx > c->max_positions)
        return ct_fail(err, CT_EINVAL, "--ctx %" PRIu32 ", the model has positions for %" PRIu32,
                       w->o->ctx, c->max_positions);
    how.max_tokens = w->o->ctx;
    st = ct_session_open(&w->session, w->model, &how, err);
    if (st)
        return st;
    w->logits = calloc((size_t)ct_session_logits_rows(w->session) * c->vocab, sizeof *w->logits);
    w->window = calloc(w->o->ctx, sizeof *w->window);
    if (!w->logits || !w->window)
        return ct_fail(err, CT_ELIMIT, "out of memory for a window of %" PRIu32 " tokens",
                       w->o->ctx);
    return CT_OK;
}

/* --- measures ---------------------------------------------------------------- */

static uint32_t argmax(const float *z, uint32_t n)
{
    uint32_t best = 0;

    for (uint32_t i = 1; i < n; i++)
        if (z[i] > z[best])
            best = i;
    return best;
}

/* log of the sum of exp(z). */
static double log_sum(const float *z, uint32_t n)
{
    const double max = z[argmax(z, n)];
    double sum = 0;

    for (uint32_t i = 0; i < n; i++)
        sum += exp(z[i] - max);
    return max + log(sum);
}

/* Adds one position: the divergence of z from the reference's row. */
static ct_status compare_row(job *w, const float *z, ct_error *err)
{
    const uint32_t n = w->model->config.vocab;
    const float *ref = w->ref_at;
    const double ref_sum = log_sum(ref, n), sum = log_sum(z, n);
    totals *s = &w->sum;
    double kl = 0;

    /* A reference may rule tokens out by -inf; NaN and +inf mean nothing. */
    if (!isfinite(ref_sum))
        return ct_fail(err, CT_EFORMAT, "%s: row %" PRIu64 " of `logits` is not finite", w->o->ref,
                       s->compared);
    for (uint32_t i = 0; i < n; i++) {
        double p = exp(ref[i] - ref_sum);

        if (p > 0)
            kl += p * ((ref[i] - ref_sum) - (z[i] - sum));
    }
    s->kl += kl;
    s->kl_max = fmax(s->kl_max, kl);
    s->agreed += argmax(ref, n) == argmax(z, n);
    s->compared++;
    w->ref_at += n;
    return CT_OK;
}

/* Rows [first, first + n) of the window's n_tokens are in w->logits. */
static ct_status score_rows(job *w, uint32_t first, uint32_t n, uint32_t n_tokens, ct_error *err)
{
    const uint32_t vocab = w->model->config.vocab;
    ct_status st = CT_OK;

    for (uint32_t i = 0; i < n && !st; i++) {
        const float *z = w->logits + (size_t)i * vocab;

        if (w->ref)
            st = compare_row(w, z, err);
        if (first + i + 1 < n_tokens) {
            w->sum.nll += log_sum(z, vocab) - z[w->window[first + i + 1]];
            w->sum.scored++;
        }
    }
    return st;
}

/* --- work -------------------------------------------------------------------- */

static ct_status do_window(job *w, uint32_t n_tokens, ct_error *err)
{
    ct_status st = CT_OK;

    ct_session_reset(w->session);
    for (uint32_t at = 0, n; at < n_tokens && !st; at += n) {
        if (ct_cli_stop)
            return ct_fail(err, CT_ECANCELLED, "stopped after %" PRIu64 " of %" PRIu64 " windows",
                           w->sum.windows, n_windows(w));
        n = (uint32_t)ct_min_size(ct_session_chunk(w->session), n_tokens - at);
        st = ct_session_step(w->session, w->window + at, n, NULL, err);
        for (uint32_t first = 0, rows; first < n && !st; first += rows) {
            rows = (uint32_t)ct_min_size(ct_session_logits_rows(w->session), n - first);
            st = ct_session_logits(w->session, first, rows, w->logits, err);
            if (!st)
                st = score_rows(w, at + first, rows, n_tokens, err);
        }
    }
    return st;
}

static ct_status do_windows(job *w, ct_error *err)
{
    const uint64_t total = n_windows(w);
    const bool on_terminal = isatty(STDERR_FILENO) == 1;
    size_t at = 0;
    ct_status st = CT_OK;

    while (w->sum.windows < total && !st) {
        size_t n = ct_min_size(w->o->ctx - 1, w->text.n - at);

        if (on_terminal)
            fprintf(stderr, "\reval: window %" PRIu64 " of %" PRIu64, w->sum.windows + 1, total);
        w->window[0] = w->model->generation.bos_id;
        memcpy(w->window + 1, w->text.id + at, n * sizeof *w->window);
        st = do_window(w, (uint32_t)n + 1, err);
        w->sum.windows += !st;
        at += n;
    }
    if (on_terminal)
        fputc('\n', stderr);
    return st;
}

static void print_result(const job *w)
{
    const totals *s = &w->sum;
    const double nll = s->nll / (double)s->scored, compared = (double)s->compared;

    if (w->o->json) {
        printf("{\"tokens\": %" PRIu64 ", \"windows\": %" PRIu64 ", \"ctx\": %" PRIu32
               ", \"nll\": %.9g, \"perplexity\": %.9g",
               s->scored, s->windows, w->o->ctx, nll, exp(nll));
        if (s->compared)
            printf(", \"kl_mean\": %.9g, \"kl_max\": %.9g, \"top1_agreement\": %.9g",
                   s->kl / compared, s->kl_max, (double)s->agreed / compared);
        puts("}");
        return;
    }
    printf("tokens       %" PRIu64 " in %" PRIu64 " windows of %" PRIu32 "\n", s->scored,
           s->windows, w->o->ctx);
    printf("perplexity   %.6g (%.6g nats a token)\n", exp(nll), nll);
    if (s->compared)
        printf("KL           mean %.4g, largest %.4g nats\ntop-1        %.4f %% agree\n",
               s->kl / compared, s->kl_max, 100 * (double)s->agreed / compared);
}

static ct_status run(job *w, ct_error *err)
{
    ct_status st = load_text(w, err);

    if (!st)
        st = load_reference(w, err);
    if (!st)
        st = open_session(w, err);
    if (!st)
        st = do_windows(w, err);
    if (!st) {
        print_result(w);
        st = ct_cli_flush(err);
    }
    ct_session_close(w->session);
    ct_checkpoint_close(w->ref);
    ct_tokenizer_destroy(w->tokenizer);
    ct_ids_deinit(&w->text);
    free(w->logits);
    free(w->window);
    return st;
}

int ct_cmd_eval(int argc, char **argv)
{
    static ct_error err;
    options o = {0};
    ct_model *model;
    ct_status st;
    int status = parse_options(&o, argc, argv);

    if (status >= 0)
        return status;
    st = ct_model_open(&model, o.model, &err);
    if (st)
        return ct_cli_fail(&err);
    st = run(&(job){.o = &o, .model = model}, &err);
    ct_model_close(model);
    return st ? ct_cli_fail(&err) : CT_EXIT_OK;
}
