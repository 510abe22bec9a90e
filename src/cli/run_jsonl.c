/* carat run --jsonl: a prompt a line, batched by the engine, answers in the order of the
 * lines.  docs/run-jsonl.md is the contract. */
#include "base/checked.h"
#include "base/clock.h"
#include "base/json.h"
#include "cli/cli.h"
#include "cli/lines.h"
#include "cli/run.h"
#include "cli/run_answer.h"
#include "cli/run_line.h"
#include "cli/run_resume.h"
#include "text/chat.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define MAX_JSON_BYTES ((size_t)8 << 30)
#define WAITING        8 /* lines beyond those being answered: one is there when a slot falls free */

/* A line whose answer is not written yet. */
typedef struct job {
    bool answered; /* json is whole */
    bool open;     /* the engine has not said its last word about it */
    uint64_t index;
    uint64_t digest;
    ct_run_line line;
    ct_request_id request;
    ct_run_answer answer;
    ct_buf json;
} job;

typedef struct batch {
    ct_run_options *opt;
    ct_model *model;
    ct_tokenizer *tokenizer;
    ct_chat_template chat;
    ct_engine *engine;
    ct_run_resume resume;
    uint64_t options; /* digest of what shapes every answer */
    FILE *out;
    job *jobs;                    /* [window], a ring */
    uint64_t window, first, next; /* lines written, lines read */
    bool at_end;
    ct_buf input;
} batch;

static job *job_at(batch *b, uint64_t index)
{
    return &b->jobs[index % b->window];
}

/* --- output ------------------------------------------------------------------- */

static void begin_json(job *j)
{
    ct_buf_addf(&j->json, "{\"index\": %" PRIu64 ", \"id\": ", j->index);
    if (j->line.id.p)
        ct_json_put_str(&j->json, j->line.id);
    else
        ct_buf_addz(&j->json, "null");
    ct_buf_addf(&j->json, ", \"input\": \"%016" PRIx64 "\", ", j->digest);
}

static void finish_error(job *j, const ct_error *err)
{
    begin_json(j);
    ct_buf_addz(&j->json, "\"error\": ");
    ct_json_put_str(&j->json, ct_str_of(err->text));
    ct_buf_addz(&j->json, "}\n");
    j->answered = true;
}

static void finish_answer(job *j)
{
    begin_json(j);
    ct_run_answer_put(&j->answer, &j->json);
    ct_buf_addz(&j->json, "}}\n");
    j->answered = true;
}

static void job_clear(job *j)
{
    ct_run_answer_deinit(&j->answer);
    ct_run_line_deinit(&j->line);
    ct_buf_deinit(&j->json);
    *j = (job){0};
}

/* A line's place is free when its answer is there and the engine holds nothing of it. */
static bool is_over(const job *j)
{
    return j->answered && !j->open;
}

/* Writes what is over, as far as nothing before it is not. */
static ct_status write_done(batch *b, ct_error *err)
{
    for (; b->first < b->next && is_over(job_at(b, b->first)); b->first++) {
        job *j = job_at(b, b->first);

        if (j->json.failed)
            return ct_fail(err, CT_ELIMIT, "line %" PRIu64 ": out of memory for its answer",
                           j->index + 1);
        if (fwrite(j->json.p, 1, j->json.n, b->out) != j->json.n || fflush(b->out))
            return ct_fail(err, CT_EIO, "%s: cannot be written",
                           b->opt->output ? b->opt->output : "standard output");
        job_clear(j);
    }
    return CT_OK;
}

/* --- input -------------------------------------------------------------------- */

static ct_status submit(batch *b, job *j, ct_error *err)
{
    const ct_run_line *l = &j->line;
    const ct_answer_options how = {
        .tokenizer = b->tokenizer,
        .chat = l->chat,
        .tools = &l->tools,
        .prompt = l->prompt.id,
        .n_prompt = l->prompt.n,
        .stop = l->stop,
        .n_stop = l->n_stop,
        .stop_include = b->opt->sampling.include_stop,
        .min_tokens = l->sampling.min_tokens,
    };
    const ct_request request = {
        .prompt = l->prompt.id,
        .n_prompt = (uint32_t)l->prompt.n,
        .max_new = l->max_new,
        .sampling = l->sampling,
        .stop = l->stop,
        .n_stop = ct_answer_owns_stop(&how) ? 0 : l->n_stop,
        .stop_include = how.stop_include,
        .tag = j->index,
    };
    ct_status st = ct_run_answer_init(&j->answer, &how, l->sampling.seed, err);

    if (st)
        return st;
    if (ct_engine_submit(b->engine, &request, &j->request, err) != CT_SUBMIT_TAKEN)
        return err->status;
    j->open = true;
    return CT_OK;
}

/* Whatever is wrong with a line is its answer. */
static void start_job(batch *b, uint64_t digest)
{
    const ct_run_line_context context = {b->opt, b->tokenizer, &b->chat, b->next};
    job *j = job_at(b, b->next);
    ct_error err;

    *j = (job){.index = b->next, .digest = digest};
    ct_buf_init(&j->json, MAX_JSON_BYTES);
    if (ct_run_line_read(&j->line, &context, ct_buf_str(&b->input), &err) || submit(b, j, &err))
        finish_error(j, &err);
    b->next++;
}

static uint64_t line_digest(const batch *b)
{
    return ct_run_digest(b->options, ct_buf_str(&b->input));
}

/* Reads lines while there is room for them; waits for one only when nothing else is to be
 * done, because a program may want each answer before it asks on. */
static ct_status read_lines(batch *b, ct_error *err)
{
    while (!b->at_end && b->next < b->first + b->window) {
        bool got;
        ct_status st;

        if (b->first < b->next && !ct_cli_line_ready())
            break;
        st = ct_cli_line(&b->input, &got, err);
        if (st)
            return st;
        b->at_end = !got;
        if (got)
            start_job(b, line_digest(b));
    }
    return CT_OK;
}

/* Lines that an earlier run has answered must be the same ones. */
static ct_status skip_finished(batch *b, ct_error *err)
{
    for (; b->next < b->resume.n; b->next++) {
        bool got;
        ct_status st = ct_cli_line(&b->input, &got, err);

        if (st)
            return st;
        if (!got)
            return ct_fail(err, CT_EINVAL,
                           "%s answers %" PRIu64 " lines, standard input has %" PRIu64,
                           b->opt->output, b->resume.n, b->next);
        st = ct_run_resume_check(&b->resume, b->next, line_digest(b), err);
        if (st)
            return st;
    }
    b->first = b->next;
    return CT_OK;
}

/* --- work --------------------------------------------------------------------- */

static void take_reply(batch *b, const ct_reply *reply)
{
    job *j = job_at(b, reply->tag);
    ct_error err;

    j->open = reply->kind != CT_REPLY_DONE;
    if (j->answered) /* by an error, and cancelled */
        return;
    if (ct_run_answer_take(&j->answer, reply, NULL, NULL, &err)) {
        ct_engine_cancel(b->engine, j->request);
        finish_error(j, &err);
    } else if (j->answer.done) {
        finish_answer(j);
    } else if (ct_answer_stopped(j->answer.reader)) {
        ct_engine_cancel(b->engine, j->request);
    }
}

static ct_status work(batch *b, ct_error *err)
{
    ct_status st = CT_OK;
    ct_reply reply;

    while (!st && !ct_cli_stop && !(b->at_end && b->first == b->next)) {
        st = read_lines(b, err);
        if (st)
            break;
        ct_engine_step(b->engine);
        while (ct_engine_poll(b->engine, &reply, 1))
            take_reply(b, &reply);
        st = write_done(b, err);
    }
    if (ct_cli_stop)
        st = ct_fail(err, CT_ECANCELLED, "stopped after %" PRIu64 " lines", b->first);
    return st;
}

static ct_status open_model(batch *b, ct_error *err)
{
    ct_run_options *o = b->opt;
    ct_status st = ct_model_open(&b->model, o->model, err);

    if (!st)
        st = ct_cli_tokenizer(&b->tokenizer, o->model, b->model, err);
    if (!st)
        st = ct_chat_template_open(&b->chat, o->model, o->template_file, err);
    if (!st)
        st = ct_sampling_args_complete(&o->sampling, &b->model->generation, b->tokenizer,
                                       b->model->config.vocab, err);
    if (!o->sampling.seed)
        o->sampling.p.seed = 0; /* the same answers when it goes on */
    return st;
}

/* Whatever changes the answers of all lines; the model is not looked at. */
static uint64_t options_digest(const ct_run_options *o)
{
    const ct_sampling *p = &o->sampling.p;
    char text[512];
    uint64_t digest = CT_RUN_DIGEST;
    int n = snprintf(text, sizeof text,
                     "%d %" PRIu32 " %.17g %" PRIu32 " %.17g %.17g %.17g %.17g %.17g %.17g %.17g "
                     "%.17g %" PRIu32 " %" PRIu32 " %d %" PRIu32 " %" PRIu64 " %d\n",
                     o->engine.round_bf16, o->max_new, p->temperature, p->top_k, p->top_p, p->min_p,
                     p->typical_p, p->repetition_penalty, p->presence_penalty, p->frequency_penalty,
                     p->dry_multiplier, p->dry_base, p->dry_allowed_length, p->dry_last_n,
                     p->ignore_eos, p->min_tokens, p->seed, o->sampling.include_stop);

    digest = ct_run_digest(digest, (ct_str){text, (size_t)n});
    for (size_t i = 0; i < o->sampling.stop.n; i++) {
        digest = ct_run_digest(digest, ct_str_of(o->sampling.stop.item[i]));
        digest = ct_run_digest(digest, CT_STR("\n"));
    }
    return ct_run_digest(digest, ct_str_of(o->template_file ? o->template_file : ""));
}

static ct_status open_batch(batch *b, ct_error *err)
{
    ct_run_options *o = b->opt;
    ct_status st = open_model(b, err);

    if (st)
        return st;
    b->options = options_digest(o);
    o->engine.tokenizer = b->tokenizer;
    o->engine.slots = o->engine.slots ? o->engine.slots : CT_ENGINE_SLOTS;
    o->engine.queue = o->engine.slots + WAITING; /* nothing is admitted before a step */
    st = ct_engine_create(&b->engine, b->model, &o->engine, err);
    if (st)
        return st;
    b->window = o->engine.queue;
    b->jobs = calloc(b->window, sizeof *b->jobs);
    if (!b->jobs)
        return ct_fail(err, CT_ELIMIT, "out of memory for %" PRIu64 " lines", b->window);
    b->out = stdout;
    return o->output ? ct_run_resume_open(&b->resume, &b->out, o->output, err) : CT_OK;
}

static ct_status close_batch(batch *b, ct_status st, ct_error *err)
{
    ct_engine_destroy(b->engine);
    for (uint64_t i = 0; b->jobs && i < b->window; i++)
        job_clear(&b->jobs[i]);
    free(b->jobs);
    if (b->out && b->out != stdout && fclose(b->out) && !st)
        st = ct_fail(err, CT_EIO, "%s: cannot be written", b->opt->output);
    ct_run_resume_deinit(&b->resume);
    ct_sampling_args_deinit(&b->opt->sampling);
    ct_chat_template_close(&b->chat);
    ct_tokenizer_destroy(b->tokenizer);
    ct_model_close(b->model);
    ct_buf_deinit(&b->input);
    return st ? st : ct_cli_flush(err);
}

int ct_run_jsonl(ct_run_options *o)
{
    static batch b;
    static ct_error err;
    ct_status st;

    b.opt = o;
    st = open_batch(&b, &err);
    if (!st)
        st = skip_finished(&b, &err);
    if (!st)
        st = work(&b, &err);
    st = close_batch(&b, st, &err);
    return st ? ct_cli_fail(&err) : CT_EXIT_OK;
}
