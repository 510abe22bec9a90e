/* carat run: one prompt in, one answer out, streamed as it comes. */
#include "cli/cli.h"

#include "base/checked.h"
#include "base/clock.h"
#include "base/json.h"
#include "cli/options.h"
#include "cli/run.h"
#include "cli/run_answer.h"
#include "cli/run_ask.h"
#include "text/tokenizer.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define DEFAULT_MAX_NEW 512
#define MAX_JSON_BYTES  ((size_t)8 << 30)
#define ARENA_BYTES     ((size_t)4 << 30) /* address space for the request's values */

typedef struct run {
    ct_run_options opt;
    ct_model *model;
    ct_tokenizer *tokenizer;
    ct_engine *engine;
    ct_request_id request;
    ct_ids prompt;
    ct_run_answer answer;
    int part; /* kind of the event printed last, or -1 */
    bool dim; /* standard output is a terminal */
    double load_s;
} run;

static const char help[] =
    "usage: carat run -m MODEL -p TEXT [options]\n"
    "\n"
    "  -m MODEL         directory of the checkpoint\n"
    "  -p TEXT          the user's message; - reads it from standard input\n"
    "  --system TEXT    system message before it\n"
    "  --think          let the model think first, and show the thought\n"
    "  --raw            the prompt as it is, without the chat template\n"
    "  --ids 2,5,...    the prompt as token ids\n"
    "  -n N             longest answer in tokens (default 512)\n" CT_SAMPLING_HELP
    "  --template FILE  this chat template instead of the checkpoint's\n"
    "  --json           {text, ids, content, reasoning_content, tool_calls, finish_reason,\n"
    "                   usage, timings} on one line\n"
    "\n"
    "  --jsonl          many prompts: a JSON object a line on standard input, answers in the\n"
    "                   same order; docs/run-jsonl.md says what a line can hold\n"
    "  -o FILE          of --jsonl: appends to FILE; run again, it goes on where it ended\n"
    "  --slots N        of --jsonl: answers computed at once (default 8)\n"
    "  --ctx N          of --jsonl: longest sequence, answer included (default 8192)\n"
    "\n"
    "  --mode f32|bf16  activations: full (default), or rounded where the bf16 reference does\n"
    "  --threads N      default: every CPU that this process may use\n"
    "  --backend NAME   what computes: ref, cpu (default: cpu; ref in bf16 mode)\n";

/* --- command line ------------------------------------------------------------ */

/* -1 to go on, else an exit status. */
static int parse_options(ct_run_options *o, int argc, char **argv)
{
    const ct_option options[] = {
        {"-m", "--model", CT_OPTION_TEXT, .out = &o->model, .required = true},
        {"-p", "--prompt", CT_OPTION_TEXT, .out = &o->prompt},
        {"--system", NULL, CT_OPTION_TEXT, .out = &o->system},
        {"--think", NULL, CT_OPTION_FLAG, .out = &o->think},
        {"--raw", NULL, CT_OPTION_FLAG, .out = &o->raw},
        {"--ids", NULL, CT_OPTION_TEXT, .out = &o->ids},
        {"-n", "--max-tokens", CT_OPTION_U32, .out = &o->max_new, .min = 1, .max = INT32_MAX},
        {"--template", NULL, CT_OPTION_TEXT, .out = &o->template_file},
        {"--json", NULL, CT_OPTION_FLAG, .out = &o->json},
        {"--jsonl", NULL, CT_OPTION_FLAG, .out = &o->jsonl},
        {"-o", "--output", CT_OPTION_TEXT, .out = &o->output},
        {"--ctx", NULL, CT_OPTION_U32, .out = &o->engine.ctx, .min = 1, .max = CT_MAX_POSITIONS},
        {"--slots", NULL, CT_OPTION_U32, .out = &o->engine.slots, .min = 1, .max = 4096},
        CT_SAMPLING_OPTIONS(o->sampling),
        CT_SESSION_OPTIONS(o->engine),
    };
    int status;

    o->max_new = DEFAULT_MAX_NEW;
    ct_sampling_args_init(&o->sampling);
    status = ct_cli_options(options, CT_LEN(options), NULL, help, argc, argv);
    if (status >= 0)
        return status;
    if (o->jsonl && (o->prompt || o->ids || o->json || o->raw || o->system || o->think))
        return ct_cli_usage("run: with --jsonl, prompts and how they are asked stand in the lines");
    if (o->jsonl)
        return -1;
    if (o->output || o->engine.ctx || o->engine.slots)
        return ct_cli_usage("run: -o, --ctx and --slots go with --jsonl");
    if (!o->prompt == !o->ids)
        return ct_cli_usage("run: give the prompt by -p or by --ids, one of the two");
    if ((o->raw || o->ids) && (o->system || o->think || o->template_file))
        return ct_cli_usage("run: --system, --think and --template need the chat template, which "
                            "%s leaves out",
                            o->raw ? "--raw" : "--ids");
    return -1;
}

/* --- prompt ------------------------------------------------------------------ */

static ct_status read_prompt(ct_buf *out, const char *prompt, ct_error *err)
{
    char block[1 << 16];
    size_t n;

    if (strcmp(prompt, "-") != 0) {
        ct_buf_addz(out, prompt);
    } else {
        while ((n = fread(block, 1, sizeof block, stdin)) > 0)
            ct_buf_add(out, block, n);
        if (ferror(stdin))
            return ct_fail(err, CT_EIO, "the prompt cannot be read from standard input");
    }
    if (out->failed)
        return ct_fail(err, CT_ELIMIT, "the prompt is longer than %zu bytes",
                       CT_RUN_MAX_PROMPT_BYTES);
    return CT_OK;
}

static ct_status render_prompt(ct_buf *out, const ct_run_options *o, ct_str prompt, ct_error *err)
{
    const ct_run_ask ask = {prompt, o->system ? ct_str_of(o->system) : (ct_str){0}, o->think};
    ct_chat_template t = {0};
    ct_arena arena = {0};
    ct_status st = ct_arena_init(&arena, ARENA_BYTES, err);

    if (!st)
        st = ct_chat_template_open(&t, o->model, o->template_file, err);
    if (!st)
        st = ct_run_ask_render(out, &ask, &t, &arena, err);
    ct_chat_template_close(&t);
    ct_arena_deinit(&arena);
    return st;
}

static ct_status encode_prompt(run *r, ct_error *err)
{
    ct_buf prompt, rendered;
    ct_status st;

    ct_buf_init(&prompt, CT_RUN_MAX_PROMPT_BYTES);
    ct_buf_init(&rendered, 2 * CT_RUN_MAX_PROMPT_BYTES);
    st = read_prompt(&prompt, r->opt.prompt, err);
    if (!st && !r->opt.raw)
        st = render_prompt(&rendered, &r->opt, ct_buf_str(&prompt), err);
    if (!st)
        st = ct_tokenizer_encode(r->tokenizer, ct_buf_str(r->opt.raw ? &prompt : &rendered),
                                 CT_SPECIAL_MATCH, &r->prompt, err);
    ct_buf_deinit(&prompt);
    ct_buf_deinit(&rendered);
    return st;
}

/* "2,5,105": ids separated by commas, blanks allowed around them. */
static ct_status parse_ids(ct_ids *out, const char *text, ct_error *err)
{
    const char *p = text;
    ct_status st = CT_OK;

    while (!st) {
        uint64_t id = 0;
        size_t n_digits = 0;

        p += strspn(p, " ");
        for (; *p >= '0' && *p <= '9' && id <= UINT32_MAX; p++, n_digits++)
            id = id * 10 + (uint64_t)(*p - '0');
        p += strspn(p, " ");
        if (n_digits == 0 || id >= CT_TOKEN_NONE || (*p && *p != ','))
            return ct_fail(err, CT_EINVAL, "--ids: character %td of '%.60s': expected an id",
                           p - text + 1, text);
        st = ct_ids_add(out, (uint32_t)id, err);
        if (!*p++)
            break;
    }
    return st;
}

/* --- answer ------------------------------------------------------------------ */

/* Parts of an answer stand on lines of their own; a thought is dim, or labelled where
 * nothing can be dim. */
static void begin_part(run *r, ct_event_kind kind)
{
    bool was_thought = r->part == CT_EVENT_REASONING;

    if (r->part == (int)kind)
        return;
    if (was_thought && r->dim)
        fputs("\033[0m", stdout);
    if (r->part >= 0)
        putchar('\n');
    if (kind == CT_EVENT_REASONING)
        fputs(r->dim ? "\033[2m" : "thought: ", stdout);
    else if (kind == CT_EVENT_CONTENT && was_thought && !r->dim)
        fputs("answer: ", stdout);
    r->part = (int)kind;
}

static void end_parts(run *r)
{
    if (r->part == CT_EVENT_REASONING && r->dim)
        fputs("\033[0m", stdout);
    putchar('\n');
}

static void show_event(run *r, const ct_event *e)
{
    if (r->opt.json || (e->kind == CT_EVENT_REASONING && !r->opt.think))
        return;
    if (r->answer.message && (e->kind == CT_EVENT_REASONING || e->kind == CT_EVENT_CONTENT))
        begin_part(r, e->kind);
    if (e->kind == CT_EVENT_CALL) {
        r->part = r->part < 0 ? -1 : CT_EVENT_CALL_END; /* each on a line of its own */
        begin_part(r, e->kind);
        fputs("call: ", stdout);
    } else if (e->kind == CT_EVENT_ARGUMENTS && r->part == CT_EVENT_CALL) {
        putchar(' ');
        r->part = CT_EVENT_ARGUMENTS;
    } else if (e->kind == CT_EVENT_CALL_VOID) {
        fputs(" (not a call)", stdout);
    }
    fwrite(e->text.p, 1, e->text.n, stdout);
    fflush(stdout);
}

static ct_status on_event(void *ctx, const ct_event *e, ct_error *err)
{
    (void)err;
    show_event(ctx, e);
    return CT_OK;
}

/* Steps until the request is over; a reader who has gone or who says stop ends it. */
static ct_status generate(run *r, ct_error *err)
{
    ct_status st = CT_OK;
    ct_reply reply;

    while (!r->answer.done && !st) {
        ct_engine_step(r->engine);
        while (!st && ct_engine_poll(r->engine, &reply, 1))
            st = ct_run_answer_take(&r->answer, &reply, on_event, r, err);
        if (ct_cli_stop || ferror(stdout) || ct_answer_stopped(r->answer.reader))
            ct_engine_cancel(r->engine, r->request);
    }
    return st;
}

static void print_json(const run *r)
{
    ct_buf b;

    ct_buf_init(&b, MAX_JSON_BYTES);
    ct_buf_addc(&b, '{');
    ct_run_answer_put(&r->answer, &b);
    ct_buf_addf(&b, ", \"load_s\": %.6f}}\n", r->load_s);
    fwrite(b.p, 1, b.n, stdout);
    ct_buf_deinit(&b);
}

static ct_status answer(run *r, ct_error *err)
{
    ct_status st = generate(r, err);

    if (st)
        return st;
    if (r->opt.json)
        print_json(r);
    else
        end_parts(r);
    st = ct_cli_flush(err);
    /* The machine's form has finish_reason; a reader must be told that this is not all. */
    if (!st && r->answer.finish == CT_FINISH_CANCELLED && !r->opt.json)
        st = ct_fail(err, CT_ECANCELLED, "stopped after %zu tokens", r->answer.ids.n);
    return st;
}

/* --- work -------------------------------------------------------------------- */

/* An engine for the longest sequence that this request can need, within what the model
 * serves. */
static ct_status open_engine(run *r, ct_error *err)
{
    const uint32_t limit = r->model->config.max_positions;
    ct_engine_options *how = &r->opt.engine;

    if (r->prompt.n >= limit)
        return ct_fail(err, CT_EINVAL,
                       "the prompt has %zu tokens; the model serves %" PRIu32
                       " positions, answer included",
                       r->prompt.n, limit);
    how->ctx = (uint32_t)ct_min_size(r->prompt.n + r->opt.max_new, limit);
    how->slots = how->queue = 1;
    how->no_cache = true;
    how->tokenizer = r->tokenizer;
    return ct_engine_create(&r->engine, r->model, how, err);
}

/* The reader of the answer, and the request for it. */
static ct_status submit(run *r, ct_error *err)
{
    const ct_sampling_args *a = &r->opt.sampling;
    const bool chat = !r->opt.ids && !r->opt.raw;
    ct_str stop[CT_OPTION_LIST_MAX];
    const ct_answer_options how = {
        .tokenizer = r->tokenizer,
        .chat = chat,
        .prompt = r->prompt.id,
        .n_prompt = r->prompt.n,
        .stop = stop,
        .n_stop = a->stop.n,
        .stop_include = a->include_stop,
        .min_tokens = a->p.min_tokens,
    };
    const ct_request request = {
        .prompt = r->prompt.id,
        .n_prompt = (uint32_t)r->prompt.n,
        .max_new = r->opt.max_new,
        .sampling = a->p,
        .stop = stop,
        .n_stop = ct_answer_owns_stop(&how) ? 0 : a->stop.n,
        .stop_include = a->include_stop,
    };
    ct_status st;

    for (size_t i = 0; i < a->stop.n; i++)
        stop[i] = ct_str_of(a->stop.item[i]);
    st = ct_run_answer_init(&r->answer, &how, a->p.seed, err);
    if (st)
        return st;
    if (ct_engine_submit(r->engine, &request, &r->request, err) != CT_SUBMIT_TAKEN)
        return err->status;
    return CT_OK;
}

static ct_status load(run *r, ct_error *err)
{
    ct_status st = ct_model_open(&r->model, r->opt.model, err);

    if (!st)
        st = ct_cli_tokenizer(&r->tokenizer, r->opt.model, r->model, err);
    if (!st)
        st = ct_sampling_args_complete(&r->opt.sampling, &r->model->generation, r->tokenizer,
                                       r->model->config.vocab, err);
    if (!st && !r->opt.ids)
        st = encode_prompt(r, err);
    if (!st)
        st = open_engine(r, err);
    return st ? st : submit(r, err);
}

static void run_close(run *r)
{
    ct_engine_destroy(r->engine);
    ct_run_answer_deinit(&r->answer);
    ct_sampling_args_deinit(&r->opt.sampling);
    ct_tokenizer_destroy(r->tokenizer);
    ct_model_close(r->model);
    ct_ids_deinit(&r->prompt);
}

int ct_cmd_run(int argc, char **argv)
{
    static run r;
    static ct_error err;
    double start = ct_now_s();
    int status = parse_options(&r.opt, argc, argv);
    ct_status st;

    if (status >= 0)
        return status;
    if (r.opt.ids && parse_ids(&r.prompt, r.opt.ids, &err))
        return ct_cli_usage("%s", err.text);
    if (r.opt.jsonl)
        return ct_run_jsonl(&r.opt);
    r.part = -1;
    r.dim = isatty(STDOUT_FILENO);
    st = load(&r, &err);
    r.load_s = ct_now_s() - start;
    if (!st)
        st = answer(&r, &err);
    run_close(&r);
    return st ? ct_cli_fail(&err) : CT_EXIT_OK;
}
