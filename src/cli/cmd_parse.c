/* carat parse: what the model wrote to OpenAI's message, a JSON object a line.  Needs no
 * weights. */
#include "base/checked.h"
#include "base/json.h"
#include "cli/cli.h"
#include "cli/lines.h"
#include "cli/options.h"
#include "text/message.h"
#include "text/value.h"

#include <stdlib.h>

#define ARENA_BYTES      ((size_t)4 << 30) /* address space for one line's values */
#define MAX_ANSWER_BYTES ((size_t)1 << 30)

typedef struct options {
    const char *model;
    bool jsonl;
} options;

typedef struct job {
    ct_tokenizer *t;
    ct_arena arena;
    ct_ids ids, prompt;
    ct_message *message;
    ct_buf json;
} job;

static const char help[] =
    "usage: carat parse -m MODEL --jsonl\n"
    "\n"
    "Reads one JSON object a line, {text, prompt, tools}, and writes {content,\n"
    "reasoning_content, tool_calls, finish_reason}, or {\"error\": \"...\"}, a line each.\n"
    "text is what the model wrote, control tokens included; prompt is what stood before it\n"
    "(only its end matters), tools are those of the request.  text and prompt may also be\n"
    "arrays of token ids; finish_reason \"length\" says that the answer was cut there.\n"
    "\n"
    "  -m MODEL  directory with a tokenizer.json, or that file\n"
    "  --jsonl   lines in, lines out (the only mode)\n";

/* -1 to go on, else an exit status. */
static int parse_options(options *o, int argc, char **argv)
{
    const ct_option table[] = {
        {.name = "-m",
         .alias = "--model",
         .kind = CT_OPTION_TEXT,
         .out = &o->model,
         .required = true},
        {.name = "--jsonl", .kind = CT_OPTION_FLAG, .out = &o->jsonl, .required = true},
    };

    return ct_cli_options(table, CT_LEN(table), NULL, help, argc, argv);
}

static ct_status ids_from_list(const job *w, const char *what, const ct_value *list, ct_ids *out,
                               ct_error *err)
{
    ct_status st = CT_OK;

    for (size_t i = 0; !st && i < list->u.list.n; i++) {
        const ct_value *v = &list->u.list.item[i];

        if (v->kind != CT_VALUE_INT)
            return ct_fail(err, CT_EINVAL, "%s[%zu]: must be a token id, not %s", what, i,
                           ct_value_kind_name(v));
        if (v->u.integer < 0 || v->u.integer >= ct_tokenizer_vocab(w->t))
            return ct_fail(err, CT_EINVAL, "%s[%zu]: token id %lld is not in the vocabulary of %lu",
                           what, i, (long long)v->u.integer,
                           (unsigned long)ct_tokenizer_vocab(w->t));
        st = ct_ids_add(out, (uint32_t)v->u.integer, err);
    }
    return st;
}

static ct_status read_ids(const job *w, const char *what, const ct_value *v, ct_ids *out,
                          ct_error *err)
{
    ct_status st;

    if (v->kind == CT_VALUE_LIST)
        return ids_from_list(w, what, v, out, err);
    if (v->kind != CT_VALUE_STRING)
        return ct_fail(err, CT_EINVAL, "%s: must be a string or an array of token ids, not %s",
                       what, ct_value_kind_name(v));
    st = ct_tokenizer_encode(w->t, ct_value_text(v), CT_SPECIAL_MATCH, out, err);
    if (st)
        ct_error_prefix(err, "%s: ", what);
    return st;
}

static ct_status check_keys(const ct_value *line, ct_error *err)
{
    static const char *const keys[] = {"text", "ids", "prompt", "tools", "finish_reason"};
    const ct_map_body *map = line->u.map;

    for (size_t i = 0; i < map->n; i++) {
        bool known = false;

        for (size_t k = 0; k < CT_LEN(keys); k++)
            known |= ct_str_is(map->entry[i].key, keys[k]);
        if (!known)
            return ct_fail(err, CT_EINVAL, "unknown key '%.*s'", CT_STR_ARG(map->entry[i].key));
    }
    return CT_OK;
}

static ct_status read_end(const ct_value *v, ct_output_end *end, ct_error *err)
{
    ct_str s = v && v->kind == CT_VALUE_STRING ? ct_value_text(v) : (ct_str){0};

    *end = ct_str_is(s, "length") ? CT_OUTPUT_LENGTH : CT_OUTPUT_STOP;
    if (!v || *end == CT_OUTPUT_LENGTH || ct_str_is(s, "stop"))
        return CT_OK;
    if (v->kind != CT_VALUE_STRING)
        return ct_fail(err, CT_EINVAL, "finish_reason: must be a string, not %s",
                       ct_value_kind_name(v));
    return ct_fail(err, CT_EINVAL, "finish_reason: must be \"stop\" or \"length\", not \"%.*s\"",
                   CT_STR_ARG(s));
}

static ct_status read_line(job *w, const ct_value *line, ct_tools *tools, ct_output_end *end,
                           ct_error *err)
{
    const ct_value *text, *ids, *prompt;
    ct_status st;

    if (line->kind != CT_VALUE_MAP)
        return ct_fail(err, CT_EINVAL, "line: must be an object, not %s", ct_value_kind_name(line));
    st = check_keys(line, err);
    if (st)
        return st;
    text = ct_value_get(line, "text");
    ids = ct_value_get(line, "ids");
    prompt = ct_value_get(line, "prompt");
    if (!text == !ids)
        return ct_fail(err, CT_EINVAL, "text: is %s", text ? "given beside ids" : "missing");
    st = read_ids(w, text ? "text" : "ids", text ? text : ids, &w->ids, err);
    if (!st && prompt && prompt->kind != CT_VALUE_NONE)
        st = read_ids(w, "prompt", prompt, &w->prompt, err);
    if (!st)
        st = read_end(ct_value_get(line, "finish_reason"), end, err);
    return st ? st : ct_tools_from(tools, ct_value_get(line, "tools"), &w->arena, err);
}

static ct_status parse_line(job *w, ct_str text, ct_error *err)
{
    const ct_value *line;
    ct_output *o = NULL;
    ct_output_end end = CT_OUTPUT_STOP;
    ct_tools tools;
    ct_status st = ct_value_parse(&line, "line", text, &w->arena, err);

    w->ids.n = w->prompt.n = 0;
    ct_message_clear(w->message);
    if (!st)
        st = read_line(w, line, &tools, &end, err);
    if (!st)
        st = ct_output_create(&o, w->t, &tools, w->prompt.id, w->prompt.n, err);
    if (!st)
        st = ct_output_add(o, w->ids.id, w->ids.n, ct_message_add, w->message, err);
    if (!st)
        st = ct_output_finish(o, end, ct_message_add, w->message, err);
    if (!st) {
        ct_buf_addc(&w->json, '{');
        ct_message_put_members(w->message, CT_STR("call_"), &w->json);
        ct_buf_addf(&w->json, ", \"finish_reason\": \"%s\"}\n", ct_output_finish_reason(o));
    }
    ct_output_destroy(o);
    return st;
}

static void put_error(ct_buf *json, const ct_error *err)
{
    ct_buf_clear(json);
    ct_buf_addz(json, "{\"error\": ");
    ct_json_put_str(json, ct_str_of(err->text));
    ct_buf_addz(json, "}\n");
}

static ct_status parse_all(job *w, ct_error *err)
{
    static ct_error line_err;
    ct_buf line = {0};
    bool got = true;
    ct_status st = CT_OK;

    while (!st && got) {
        st = ct_cli_line(&line, &got, err);
        if (st || !got)
            break;
        ct_buf_clear(&w->json);
        if (parse_line(w, ct_buf_str(&line), &line_err))
            put_error(&w->json, &line_err);
        if (w->json.failed) {
            ct_fail(&line_err, CT_ELIMIT, "the answer exceeds %zu bytes or the memory",
                    w->json.cap_bytes);
            put_error(&w->json, &line_err);
        }
        fwrite(w->json.p, 1, w->json.n, stdout);
        st = ct_cli_flush(err); /* a program may wait for each answer before it asks on */
        ct_arena_rewind(&w->arena, 0);
    }
    ct_buf_deinit(&line);
    return st;
}

int ct_cmd_parse(int argc, char **argv)
{
    static ct_error err;
    options o = {0};
    job w = {0};
    int status = parse_options(&o, argc, argv);
    ct_status st;

    if (status >= 0)
        return status;
    ct_buf_init(&w.json, 8 * MAX_ANSWER_BYTES);
    st = ct_arena_init(&w.arena, ARENA_BYTES, &err);
    if (!st)
        st = ct_message_create(&w.message, MAX_ANSWER_BYTES, &err);
    if (!st)
        st = ct_tokenizer_open(&w.t, o.model, &err);
    if (!st)
        st = parse_all(&w, &err);
    ct_tokenizer_destroy(w.t);
    ct_message_destroy(w.message);
    ct_arena_deinit(&w.arena);
    ct_ids_deinit(&w.ids);
    ct_ids_deinit(&w.prompt);
    ct_buf_deinit(&w.json);
    return st ? ct_cli_fail(&err) : CT_EXIT_OK;
}
