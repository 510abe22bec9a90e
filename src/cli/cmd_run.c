/* carat run: one prompt in, one answer out, streamed as it comes. */
#include "cli/cli.h"

#include "base/checked.h"
#include "base/clock.h"
#include "base/json.h"
#include "cli/options.h"
#include "cli/sampling_options.h"
#include "engine/answer.h"
#include "engine/engine.h"
#include "text/chat.h"
#include "text/message.h"
#include "text/tokenizer.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define DEFAULT_MAX_NEW  512
#define MAX_PROMPT_BYTES ((size_t)64 << 20)
#define MAX_TEXT_BYTES   ((size_t)1 << 30)
#define ARENA_BYTES      ((size_t)4 << 30) /* address space for the request's values */

typedef struct run_options {
    const char *model, *prompt, *system, *ids, *template_file;
    bool raw, think, json;
    uint32_t max_new;
    ct_sampling_args sampling;
    ct_engine_options engine;
} run_options;

typedef struct run {
    run_options opt;
    ct_model *model;
    ct_tokenizer *tokenizer;
    ct_engine *engine;
    ct_request_id request;
    ct_ids prompt, answer;
    ct_detok detok;
    ct_buf text; /* the answer so far, control tokens left out */
    ct_answer *reader;
    ct_message *message; /* with the chat template: what the answer is made of */
    int part;            /* kind of the event printed last, or -1 */
    bool dim;            /* standard output is a terminal */
    ct_finish finish;
    ct_usage usage;
    bool done;
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
    "  --mode f32|bf16  activations: full (default), or rounded where the bf16 reference does\n"
    "  --threads N      default: every CPU that this process may use\n"
    "  --backend NAME   what computes: ref, cpu (default: cpu; ref in bf16 mode)\n";

/* --- command line ------------------------------------------------------------ */

/* -1 to go on, else an exit status. */
static int parse_options(run_options *o, int argc, char **argv)
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
        CT_SAMPLING_OPTIONS(o->sampling),
        CT_SESSION_OPTIONS(o->engine),
    };
    int status;

    o->max_new = DEFAULT_MAX_NEW;
    ct_sampling_args_init(&o->sampling);
    status = ct_cli_options(options, CT_LEN(options), NULL, help, argc, argv);
    if (status >= 0)
        return status;
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
        return ct_fail(err, CT_ELIMIT, "the prompt is longer than %zu bytes", MAX_PROMPT_BYTES);
    return CT_OK;
}

static void put_message(ct_buf *json, const char *role, ct_str content)
{
    ct_buf_addf(json, "{\"role\": \"%s\", \"content\": ", role);
    ct_json_put_str(json, content);
    ct_buf_addc(json, '}');
}

/* The request as the template gets it; `render` reads the same form. */
static void put_request(ct_buf *json, const run_options *o, ct_str prompt)
{
    ct_buf_addz(json, "{\"messages\": [");
    if (o->system) {
        put_message(json, "system", ct_str_of(o->system));
        ct_buf_addz(json, ", ");
    }
    put_message(json, "user", prompt);
    ct_buf_addf(json, "], \"add_generation_prompt\": true, \"enable_thinking\": %s}",
                o->think ? "true" : "false");
}

static ct_status render_prompt(ct_buf *out, const run_options *o, ct_str prompt, ct_error *err)
{
    ct_chat_template t = {0};
    ct_arena arena = {0};
    const ct_value *request;
    ct_buf json;
    ct_status st;

    ct_buf_init(&json, 8 * MAX_PROMPT_BYTES);
    put_request(&json, o, prompt);
    st = ct_arena_init(&arena, ARENA_BYTES, err);
    if (!st)
        st = ct_chat_template_open(&t, o->model, o->template_file, err);
    if (!st)
        st = ct_value_parse(&request, "request", ct_buf_str(&json), &arena, err);
    if (!st)
        st = ct_chat_render(t.jinja, ct_buf_str(&t.bos), request, &arena, out, err);
    ct_chat_template_close(&t);
    ct_arena_deinit(&arena);
    ct_buf_deinit(&json);
    return st;
}

static ct_status encode_prompt(run *r, ct_error *err)
{
    ct_buf prompt, rendered;
    ct_status st;

    ct_buf_init(&prompt, MAX_PROMPT_BYTES);
    ct_buf_init(&rendered, 2 * MAX_PROMPT_BYTES);
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
    if (r->message && (e->kind == CT_EVENT_REASONING || e->kind == CT_EVENT_CONTENT))
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
    run *r = ctx;
    ct_status st = r->message ? ct_message_add(r->message, e, err) : CT_OK;

    if (!st)
        show_event(r, e);
    return st;
}

static ct_status take_token(run *r, const ct_reply *reply, ct_error *err)
{
    ct_status st;

    if (ct_answer_stopped(r->reader))
        return CT_OK; /* computed before the engine heard of it */
    st = ct_ids_add(&r->answer, reply->u.token.id, err);
    if (!st)
        st = ct_detok_add(&r->detok, reply->u.token.id, &r->text, err);
    if (!st)
        st = ct_answer_token(r->reader, reply, on_event, r, err);
    r->text.n -= ct_min_size(ct_answer_cut_bytes(r->reader), r->text.n);
    return st;
}

/* What was held back until here; or the text cut off before a stop string. */
static ct_status take_end(run *r, const ct_reply *reply, ct_error *err)
{
    if (reply->u.end.by_string)
        r->text.n = (size_t)reply->u.end.text_bytes;
    else if (!ct_answer_stopped(r->reader))
        ct_detok_finish(&r->detok, &r->text);
    return ct_answer_end(r->reader, reply, on_event, r, err);
}

static ct_status take_reply(run *r, const ct_reply *reply, ct_error *err)
{
    switch (reply->kind) {
    case CT_REPLY_PROMPT:
        break;
    case CT_REPLY_TOKEN:
        return take_token(r, reply, err);
    case CT_REPLY_CHOICE:
        return take_end(r, reply, err);
    case CT_REPLY_DONE:
        r->done = true;
        r->finish = ct_answer_stopped(r->reader) ? CT_FINISH_STOP : reply->u.done.finish;
        r->usage = reply->u.done.usage;
        if (reply->u.done.status)
            return ct_fail(err, reply->u.done.status, "%s", reply->u.done.error);
    }
    return CT_OK;
}

/* Steps until the request is over; a reader who has gone or who says stop ends it. */
static ct_status generate(run *r, ct_error *err)
{
    ct_status st = CT_OK;
    ct_reply reply;

    while (!r->done && !st) {
        ct_engine_step(r->engine);
        while (!st && ct_engine_poll(r->engine, &reply, 1))
            st = take_reply(r, &reply, err);
        if (ct_cli_stop || ferror(stdout) || ct_answer_stopped(r->reader))
            ct_engine_cancel(r->engine, r->request);
    }
    return st;
}

static void print_json(const run *r)
{
    ct_buf b;

    ct_buf_init(&b, 8 * MAX_TEXT_BYTES);
    ct_buf_addz(&b, "{\"text\": ");
    ct_json_put_str(&b, ct_buf_str(&r->text));
    ct_buf_addz(&b, ", \"ids\": [");
    for (size_t i = 0; i < r->answer.n; i++)
        ct_buf_addf(&b, "%s%" PRIu32, i ? ", " : "", r->answer.id[i]);
    ct_buf_addz(&b, "], ");
    if (r->message) {
        ct_message_put_members(r->message, CT_STR("call_"), &b);
        ct_buf_addz(&b, ", ");
    }
    ct_buf_addf(&b,
                "\"finish_reason\": \"%s\", \"usage\": {\"prompt_tokens\": %zu, "
                "\"completion_tokens\": %zu, \"total_tokens\": %zu}, \"seed\": %" PRIu64
                ", \"timings\": {\"load_s\": %.6f, \"prefill_s\": %.6f, \"decode_s\": %.6f}}\n",
                ct_answer_finish_reason(r->reader), r->prompt.n, r->answer.n,
                r->prompt.n + r->answer.n, r->opt.sampling.p.seed, r->load_s, r->usage.prefill_s,
                r->usage.decode_s);
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
    if (!st && r->finish == CT_FINISH_CANCELLED && !r->opt.json)
        st = ct_fail(err, CT_ECANCELLED, "stopped after %zu tokens", r->answer.n);
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
    ct_status st = chat ? ct_message_create(&r->message, MAX_TEXT_BYTES, err) : CT_OK;

    for (size_t i = 0; i < a->stop.n; i++)
        stop[i] = ct_str_of(a->stop.item[i]);
    if (!st)
        st = ct_answer_create(&r->reader, &how, err);
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
    ct_answer_destroy(r->reader);
    ct_message_destroy(r->message);
    ct_sampling_args_deinit(&r->opt.sampling);
    ct_tokenizer_destroy(r->tokenizer);
    ct_model_close(r->model);
    ct_ids_deinit(&r->prompt);
    ct_ids_deinit(&r->answer);
    ct_buf_deinit(&r->text);
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
    ct_buf_init(&r.text, MAX_TEXT_BYTES);
    r.part = -1;
    r.dim = isatty(STDOUT_FILENO);
    st = load(&r, &err);
    r.load_s = ct_now_s() - start;
    if (!st) {
        ct_detok_init(&r.detok, r.tokenizer, true);
        st = answer(&r, &err);
    }
    run_close(&r);
    return st ? ct_cli_fail(&err) : CT_EXIT_OK;
}
