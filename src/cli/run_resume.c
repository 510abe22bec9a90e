#include "cli/run_resume.h"

#include "base/json.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MAX_LINE_BYTES ((size_t)8 << 30)

uint64_t ct_run_digest(uint64_t digest, ct_str text)
{
    for (size_t i = 0; i < text.n; i++)
        digest = (digest ^ (unsigned char)text.p[i]) * UINT64_C(0x100000001b3);
    return digest;
}

/* --- one line ------------------------------------------------------------------ */

typedef struct answered {
    bool has_index, has_input;
    uint64_t index, input;
} answered;

static bool read_hex(ct_str s, uint64_t *out)
{
    *out = 0;
    for (size_t i = 0; i < s.n; i++) {
        if (ct_hex_digit(s.p[i]) < 0)
            return false;
        *out = *out << 4 | (uint64_t)ct_hex_digit(s.p[i]);
    }
    return s.n == 16;
}

static ct_status read_member(answered *out, ct_json *j, const ct_json_token *key, ct_error *err)
{
    ct_json_token t;
    ct_status st = ct_json_next(j, &t, err);

    if (!st && ct_json_is(key, "index") && t.kind == CT_JSON_NUMBER) {
        out->has_index = true;
        return ct_json_u64(j, &t, "index", UINT64_MAX, &out->index, err);
    }
    if (!st && ct_json_is(key, "input") && t.kind == CT_JSON_STRING)
        out->has_input = read_hex(t.raw, &out->input);
    return st ? st : ct_json_skip(j, &t, err);
}

static ct_status read_answered(answered *out, const char *path, ct_str line, ct_error *err)
{
    ct_json_token t;
    ct_json j;
    ct_status st;

    *out = (answered){0};
    ct_json_init(&j, path, line);
    st = ct_json_expect(&j, CT_JSON_OBJECT, "an answer", &t, err);
    while (!st) {
        st = ct_json_next(&j, &t, err);
        if (st || t.kind == CT_JSON_OBJECT_END)
            break;
        st = read_member(out, &j, &t, err);
    }
    return st ? st : ct_json_expect(&j, CT_JSON_END, "the end of the line", &t, err);
}

static ct_status add_line(ct_run_resume *r, ct_str line, ct_error *err)
{
    answered a;
    ct_status st = read_answered(&a, r->path, line, err);

    if (st) {
        ct_error_prefix(err, "line %" PRIu64 ": ", r->n + 1);
        return st;
    }
    if (!a.has_index || !a.has_input)
        return ct_fail(err, CT_EFORMAT,
                       "%s: line %" PRIu64 " is no answer of run --jsonl: it has no %s", r->path,
                       r->n + 1, a.has_index ? "input" : "index");
    if (a.index != r->n)
        return ct_fail(err, CT_EFORMAT, "%s: line %" PRIu64 " has index %" PRIu64 ", not %" PRIu64,
                       r->path, r->n + 1, a.index, r->n);
    if (r->n == r->room) {
        const uint64_t room = r->room ? 2 * r->room : 256;
        uint64_t *more =
            room < SIZE_MAX / sizeof *more ? realloc(r->digest, room * sizeof *more) : NULL;

        if (!more)
            return ct_fail(err, CT_ELIMIT, "out of memory for %" PRIu64 " lines", room);
        r->digest = more;
        r->room = room;
    }
    r->digest[r->n++] = a.input;
    return CT_OK;
}

/* --- the file ------------------------------------------------------------------ */

/* The next line with its newline; without one it is the cut end of the file. */
static ct_status next_line(ct_buf *line, FILE *file, const char *path, ct_error *err)
{
    int c;

    ct_buf_clear(line);
    while (!line->failed && (c = getc_unlocked(file)) != EOF) {
        ct_buf_addc(line, (char)c);
        if (c == '\n')
            break;
    }
    if (line->failed)
        return ct_fail(err, CT_ELIMIT, "%s: a line exceeds the memory", path);
    return ferror(file) ? ct_fail(err, CT_EIO, "%s: %s", path, strerror(errno)) : CT_OK;
}

static ct_status read_lines(ct_run_resume *r, FILE *file, ct_error *err)
{
    off_t whole = 0; /* bytes of whole lines */
    ct_buf line;
    ct_status st;

    ct_buf_init(&line, MAX_LINE_BYTES);
    for (st = CT_OK; !st;) {
        st = next_line(&line, file, r->path, err);
        if (st || !line.n || line.p[line.n - 1] != '\n')
            break;
        whole += (off_t)line.n;
        st = add_line(r, (ct_str){line.p, line.n - 1}, err);
    }
    if (!st && line.n && ftruncate(fileno(file), whole))
        st = ct_fail(err, CT_EIO, "%s: %s", r->path, strerror(errno));
    ct_buf_deinit(&line);
    return st;
}

ct_status ct_run_resume_open(ct_run_resume *out, FILE **file, const char *path, ct_error *err)
{
    ct_run_resume r = {.path = path};
    FILE *f = fopen(path, "a+");
    ct_status st;

    if (!f)
        return ct_fail(err, CT_EIO, "%s: %s", path, strerror(errno));
    st = read_lines(&r, f, err);
    if (!st && fseek(f, 0, SEEK_END))
        st = ct_fail(err, CT_EIO, "%s: %s", path, strerror(errno));
    if (st) {
        fclose(f);
        ct_run_resume_deinit(&r);
        return st;
    }
    *out = r;
    *file = f;
    return CT_OK;
}

void ct_run_resume_deinit(ct_run_resume *r)
{
    free(r->digest);
    *r = (ct_run_resume){0};
}

ct_status ct_run_resume_check(const ct_run_resume *r, uint64_t index, uint64_t digest,
                              ct_error *err)
{
    if (r->digest[index] == digest)
        return CT_OK;
    return ct_fail(err, CT_EINVAL,
                   "%s: line %" PRIu64 " answers input %016" PRIx64
                   ", but this line and these options are %016" PRIx64
                   ": another question, or other options",
                   r->path, index + 1, r->digest[index], digest);
}
