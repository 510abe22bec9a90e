/* carat tokenize: text to ids and back, a JSON value a line.  Needs no weights. */
#include "cli/cli.h"
#include "cli/lines.h"

#include "base/checked.h"
#include "base/json.h"
#include "cli/options.h"
#include "text/tokenizer.h"

#include <inttypes.h>
#include <stdlib.h>

#define MAX_OUTPUT_BYTES ((size_t)1 << 32)
#define MAX_SCRATCH      ((size_t)1 << 32) /* unescaped text of one line */

typedef struct options {
    const char *model, *text;
    bool jsonl, decode, skip_special;
} options;

typedef struct job {
    const options *o;
    ct_tokenizer *t;
    ct_arena scratch;
    ct_ids ids;
    ct_buf text, out;
} job;

static const char help[] =
    "usage: carat tokenize -m MODEL --jsonl [--decode [--skip-special]]\n"
    "       carat tokenize -m MODEL TEXT\n"
    "\n"
    "Reads lines from standard input: each a JSON string, answered by the JSON array of its\n"
    "ids.  Adds no <bos>.\n"
    "\n"
    "  -m MODEL        directory with a tokenizer.json, or that file\n"
    "  --jsonl         lines in, lines out\n"
    "  --decode        the other way: each line a JSON array of ids, answered by a string\n"
    "  --skip-special  leave control tokens out of the decoded text\n"
    "  TEXT            tokenize this text instead of lines\n";

/* -1 to go on, else an exit status. */
static int parse_options(options *o, int argc, char **argv)
{
    const ct_option table[] = {
        {"-m", "--model", CT_OPTION_TEXT, .out = &o->model, .required = true},
        {"--jsonl", NULL, CT_OPTION_FLAG, .out = &o->jsonl},
        {"--decode", NULL, CT_OPTION_FLAG, .out = &o->decode},
        {"--skip-special", NULL, CT_OPTION_FLAG, .out = &o->skip_special},
    };
    int status = ct_cli_options(table, CT_LEN(table), &o->text, help, argc, argv);

    if (status >= 0)
        return status;
    if (o->jsonl == (o->text != NULL))
        return ct_cli_usage("tokenize: needs either --jsonl or one TEXT");
    if ((o->decode && !o->jsonl) || (o->skip_special && !o->decode))
        return ct_cli_usage("tokenize: --decode goes with --jsonl, --skip-special with --decode");
    return -1;
}

static ct_status encode(job *w, ct_str text, ct_error *err)
{
    ct_status st;

    w->ids.n = 0;
    st = ct_tokenizer_encode(w->t, text, CT_SPECIAL_MATCH, &w->ids, err);
    if (st)
        return st;
    for (size_t i = 0; i < w->ids.n; i++)
        ct_buf_addf(&w->out, "%s%" PRIu32, i ? ", " : "[", w->ids.id[i]);
    ct_buf_addz(&w->out, w->ids.n ? "]" : "[]");
    return CT_OK;
}

static ct_status encode_line(job *w, ct_json *j, ct_error *err)
{
    ct_json_token t;
    ct_str text;
    ct_status st = ct_json_expect(j, CT_JSON_STRING, "the text", &t, err);

    if (!st)
        st = ct_json_str(j, &t, &w->scratch, &text, err);
    if (!st)
        st = ct_json_expect(j, CT_JSON_END, "what follows", &t, err);
    return st ? st : encode(w, text, err);
}

static ct_status read_ids(job *w, ct_json *j, ct_error *err)
{
    ct_json_token t;
    ct_status st = ct_json_expect(j, CT_JSON_ARRAY, "the list of ids", &t, err);

    w->ids.n = 0;
    while (!st) {
        uint64_t id;

        st = ct_json_next(j, &t, err);
        if (st || t.kind == CT_JSON_ARRAY_END)
            break;
        st = ct_json_u64(j, &t, "an id", ct_tokenizer_vocab(w->t) - 1, &id, err);
        if (!st)
            st = ct_ids_add(&w->ids, (uint32_t)id, err);
    }
    return st ? st : ct_json_expect(j, CT_JSON_END, "what follows", &t, err);
}

static ct_status decode_line(job *w, ct_json *j, ct_error *err)
{
    ct_status st = read_ids(w, j, err);

    ct_buf_clear(&w->text);
    if (!st)
        st = ct_tokenizer_decode(w->t, w->ids.id, w->ids.n, w->o->skip_special, &w->text, err);
    if (!st)
        ct_json_put_str(&w->out, ct_buf_str(&w->text));
    return st;
}

static ct_status put_line(job *w, ct_error *err)
{
    ct_buf_addc(&w->out, '\n');
    if (w->out.failed)
        return ct_fail(err, CT_ELIMIT, "the answer exceeds %zu bytes or the memory",
                       w->out.cap_bytes);
    /* Flushed, so that a program can wait for each answer before it asks on. */
    fwrite(w->out.p, 1, w->out.n, stdout);
    ct_buf_clear(&w->out);
    return ct_cli_flush(err);
}

static ct_status do_line(job *w, ct_str line, uint64_t number, ct_error *err)
{
    char name[32];
    ct_json j;
    ct_status st;

    snprintf(name, sizeof name, "line %" PRIu64, number);
    ct_json_init(&j, name, line);
    st = w->o->decode ? decode_line(w, &j, err) : encode_line(w, &j, err);
    ct_arena_rewind(&w->scratch, 0);
    return st ? st : put_line(w, err);
}

static ct_status do_lines(job *w, ct_error *err)
{
    ct_buf line = {0};
    uint64_t number = 0;
    bool got = true;
    ct_status st = CT_OK;

    while (!st && got) {
        st = ct_cli_line(&line, &got, err);
        if (!st && got)
            st = do_line(w, ct_buf_str(&line), ++number, err);
    }
    ct_buf_deinit(&line);
    return st;
}

static ct_status do_text(job *w, ct_error *err)
{
    ct_status st = encode(w, ct_str_of(w->o->text), err);

    return st ? st : put_line(w, err);
}

int ct_cmd_tokenize(int argc, char **argv)
{
    static ct_error err;
    options o = {0};
    job w = {.o = &o};
    int status = parse_options(&o, argc, argv);
    ct_status st;

    if (status >= 0)
        return status;
    ct_buf_init(&w.text, MAX_OUTPUT_BYTES);
    ct_buf_init(&w.out, MAX_OUTPUT_BYTES);
    st = ct_arena_init(&w.scratch, MAX_SCRATCH, &err);
    if (!st)
        st = ct_tokenizer_open(&w.t, o.model, &err);
    if (!st)
        st = o.text ? do_text(&w, &err) : do_lines(&w, &err);
    ct_tokenizer_destroy(w.t);
    ct_arena_deinit(&w.scratch);
    ct_ids_deinit(&w.ids);
    ct_buf_deinit(&w.text);
    ct_buf_deinit(&w.out);
    return st ? ct_cli_fail(&err) : CT_EXIT_OK;
}
