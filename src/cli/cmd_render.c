/* carat render: conversations to prompts. */
#include "base/checked.h"
#include "cli/cli.h"
#include "cli/lines.h"
#include "cli/options.h"
#include "text/anthropic_messages.h"
#include "text/chat.h"
#include "text/openai_messages.h"

#define ARENA_BYTES ((size_t)1 << 30) /* address space for one request's values */

static const char help[] =
    "usage: carat render -m MODEL --jsonl [--template FILE] [--openai | --anthropic]\n"
    "\n"
    "Reads one JSON object a line, {messages, tools, add_generation_prompt,\n"
    "enable_thinking, preserve_thinking}, and writes the rendered prompt as a JSON\n"
    "string, or {\"error\": \"...\"}, a line each.\n"
    "\n"
    "  -m MODEL         directory with chat_template.jinja and tokenizer_config.json\n"
    "  --template FILE  this template instead; -m may then be left out\n"
    "  --openai         lines are chat completion requests of OpenAI's API, mapped and\n"
    "                   checked as the server does it (docs/requests.md); a generation\n"
    "                   prompt is added unless the line says add_generation_prompt: false\n"
    "  --anthropic      the same for Anthropic's messages API\n"
    "  --jsonl          lines in, lines out (the only mode)\n";

typedef struct args {
    const char *model, *template;
    bool jsonl, openai, anthropic;
} args;

/* -1 to go on, else an exit status. */
static int parse_args(args *a, int argc, char **argv)
{
    const ct_option options[] = {
        {.name = "-m", .kind = CT_OPTION_TEXT, .out = &a->model},
        {.name = "--template", .kind = CT_OPTION_TEXT, .out = &a->template},
        {.name = "--openai", .kind = CT_OPTION_FLAG, .out = &a->openai},
        {.name = "--anthropic", .kind = CT_OPTION_FLAG, .out = &a->anthropic},
        {.name = "--jsonl", .kind = CT_OPTION_FLAG, .out = &a->jsonl, .required = true},
    };
    int status = ct_cli_options(options, CT_LEN(options), NULL, help, argc, argv);

    if (status < 0 && !a->model && !a->template)
        return ct_cli_usage("render: -m MODEL or --template FILE is required");
    if (status < 0 && a->openai && a->anthropic)
        return ct_cli_usage("render: --openai and --anthropic exclude each other");
    return status;
}

/* The template's request that a line stands for. */
static ct_status read_request(ct_value *out, const args *how, ct_str line, ct_arena *a,
                              ct_error *err)
{
    const ct_value *body;
    ct_chat_request r;
    ct_status st = ct_value_parse(&body, "request", line, a, err);

    if (!st && how->openai)
        st = ct_openai_request(&r, body, a, err);
    else if (!st && how->anthropic)
        st = ct_anthropic_request(&r, body, a, err);
    if (!st)
        *out = how->openai || how->anthropic ? r.render : *body;
    return st;
}

/* The answer to one line, as JSON. */
static void render_line(const ct_chat_template *t, const args *how, ct_str line, ct_arena *a,
                        ct_buf *text, ct_buf *json)
{
    ct_value request;
    ct_error err;
    ct_status st = read_request(&request, how, line, a, &err);

    ct_buf_clear(text);
    ct_buf_clear(json);
    if (!st)
        st = ct_chat_render(t->jinja, ct_buf_str(&t->bos), &request, a, text, &err);
    if (st) {
        ct_buf_addz(json, "{\"error\": ");
        ct_json_put_str(json, ct_str_of(err.text));
        ct_buf_addc(json, '}');
    } else {
        ct_json_put_str(json, ct_buf_str(text));
    }
    ct_buf_addc(json, '\n');
}

static ct_status render_all(const ct_chat_template *t, const args *how, ct_error *err)
{
    ct_buf line = {0}, text, json;
    ct_arena a = {0};
    bool got = true;
    ct_status st = ct_arena_init(&a, ARENA_BYTES, err);

    ct_buf_init(&text, CT_JINJA_MAX_OUTPUT_BYTES);
    /* A control character grows to six bytes. */
    ct_buf_init(&json, (size_t)7 * CT_JINJA_MAX_OUTPUT_BYTES);
    while (!st && got) {
        st = ct_cli_line(&line, &got, err);
        if (st || !got)
            break;
        render_line(t, how, ct_buf_str(&line), &a, &text, &json);
        fwrite(json.p, 1, json.n, stdout);
        st = ct_cli_flush(err); /* a program may wait for each answer before it asks on */
        ct_arena_rewind(&a, 0);
    }
    ct_buf_deinit(&line);
    ct_buf_deinit(&text);
    ct_buf_deinit(&json);
    ct_arena_deinit(&a);
    return st;
}

int ct_cmd_render(int argc, char **argv)
{
    ct_chat_template t;
    args a = {0};
    ct_error err;
    int status = parse_args(&a, argc, argv);
    ct_status st;

    if (status >= 0)
        return status;
    if (ct_chat_template_open(&t, a.model, a.template, &err))
        return ct_cli_fail(&err);
    st = render_all(&t, &a, &err);
    ct_chat_template_close(&t);
    return st ? ct_cli_fail(&err) : CT_EXIT_OK;
}
