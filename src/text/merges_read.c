#include "text/merges_read.h"

#include "base/checked.h"
#include "text/tokenizer_impl.h"

#include <inttypes.h>

/* Merges that are looked up together: their cache misses overlap.  One at a time, the
 * three look-ups of a merge were half of the time of a load. */
#define BATCH 64
/* Shortest entry: `"a b",`. */
#define MIN_ENTRY_BYTES 6

enum { LEFT, RIGHT, JOIN, N_PARTS };

typedef struct reader {
    ct_merges *m;
    const ct_vocab *v;
    ct_json *j;
    ct_arena *scratch;
    ct_error *err;
    size_t n; /* merges that wait in the batch */
    ct_vocab_query query[BATCH * N_PARTS];
} reader;

static uint32_t n_read(const reader *r)
{
    return r->m->n + (uint32_t)r->n;
}

/* Two strings in an array, whose opening has been read. */
static ct_status read_pair(reader *r, ct_str half[2])
{
    ct_json_token t;

    for (int i = 0; i < 2; i++) {
        ct_status st = ct_json_expect(r->j, CT_JSON_STRING, "a half of a merge", &t, r->err);

        if (!st)
            st = ct_json_str(r->j, &t, r->scratch, &half[i], r->err);
        if (st)
            return st;
    }
    return ct_json_expect(r->j, CT_JSON_ARRAY_END, "the end of a merge", &t, r->err);
}

/* The older form "left right"; no half holds a space. */
static ct_status split_pair(reader *r, const ct_json_token *t, ct_str half[2])
{
    ct_str both;
    const char *space;
    ct_status st = ct_json_str(r->j, t, r->scratch, &both, r->err);

    if (st)
        return st;
    space = both.n ? memchr(both.p, ' ', both.n) : NULL;
    if (!space || memchr(space + 1, ' ', (size_t)(both.p + both.n - space - 1)))
        return ct_fail(r->err, CT_EFORMAT,
                       "%s: merges[%" PRIu32 "] is \"%.*s\", must be two pieces and one space",
                       r->j->name, n_read(r), CT_STR_ARG(ct_tokenizer_shown(t->raw)));
    half[0] = (ct_str){both.p, (size_t)(space - both.p)};
    half[1] = (ct_str){space + 1, both.n - half[0].n - 1};
    return CT_OK;
}

static ct_status read_merge(reader *r, const ct_json_token *first)
{
    ct_vocab_query *q = r->query + r->n * N_PARTS;
    ct_str half[2], text;
    ct_status st;

    if (first->kind == CT_JSON_ARRAY) {
        st = read_pair(r, half);
    } else if (first->kind == CT_JSON_STRING) {
        st = split_pair(r, first, half);
    } else {
        text = first->kind == CT_JSON_NUMBER ? ct_tokenizer_shown(first->raw)
                                             : ct_str_of(ct_json_kind_name(first->kind));
        st = ct_fail(r->err, CT_EUNSUPPORTED, "%s: a merge is %.*s, must be a pair of strings",
                     r->j->name, CT_STR_ARG(text));
    }
    if (st)
        return st;
    q[LEFT] = (ct_vocab_query){.head = half[0]};
    q[RIGHT] = (ct_vocab_query){.head = half[1]};
    q[JOIN] = (ct_vocab_query){.head = half[0], .tail = half[1]};
    r->n++;
    return CT_OK;
}

static ct_status refuse_merge(reader *r, int part, const char *why)
{
    static const char *const name[N_PARTS] = {"left half", "right half", "join"};

    return ct_fail(r->err, CT_EFORMAT, "%s: merges[%" PRIu32 "]: the %s %s", r->j->name, r->m->n,
                   name[part], why);
}

static ct_status add_merge(reader *r, const ct_vocab_query q[N_PARTS])
{
    ct_status st;

    for (int i = 0; i < N_PARTS; i++) {
        if (q[i].id == CT_TOKEN_NONE)
            return refuse_merge(r, i, "is not in the vocabulary");
        /* Cuts and decoding rely on byte pieces coming from byte fallback alone. */
        if (q[i].head.n + q[i].tail.n == CT_PIECE_BYTE_BYTES &&
            ct_piece_byte(ct_vocab_piece(r->v, q[i].id)) >= 0)
            return refuse_merge(r, i, "is a byte piece");
    }
    st = ct_merges_add(r->m, &q[JOIN], q[LEFT].id, q[RIGHT].id, r->err);
    if (st)
        ct_error_prefix(r->err, "%s: merges: ", r->j->name);
    return st;
}

static ct_status add_batch(reader *r)
{
    size_t n = r->n;
    ct_status st = CT_OK;

    ct_vocab_find_all(r->v, r->query, n * N_PARTS);
    r->n = 0;
    for (size_t i = 0; i < n && !st; i++)
        st = add_merge(r, r->query + i * N_PARTS);
    return st;
}

/* Reads until the batch is full, or *done.  What was read before an error goes into the
 * tables first, so that of two errors the earlier in the file is reported. */
static ct_status read_batch(reader *r, bool *done)
{
    ct_arena_mark mark = ct_arena_save(r->scratch);
    ct_status st = CT_OK, added;

    while (!st && !*done && r->n < BATCH) {
        ct_json_token t;

        st = ct_json_next(r->j, &t, r->err);
        if (!st && t.kind == CT_JSON_ARRAY_END)
            *done = true;
        else if (!st)
            st = read_merge(r, &t);
    }
    added = add_batch(r);
    ct_arena_rewind(r->scratch, mark);
    return added ? added : st;
}

ct_status ct_merges_read(ct_merges *m, const ct_vocab *v, ct_json *j, ct_arena *a,
                         ct_arena *scratch, ct_error *err)
{
    size_t room = ct_min_size(CT_MERGES_MAX, j->text.n / MIN_ENTRY_BYTES + 1);
    reader r = {.m = m, .v = v, .j = j, .scratch = scratch, .err = err};
    bool done = false;
    ct_status st = ct_merges_init(m, a, scratch, (uint32_t)room, err);

    if (st)
        goto prefix;
    while (!done) {
        st = read_batch(&r, &done);
        if (st)
            return st;
    }
    st = ct_merges_seal(m, a, err);
prefix:
    if (st)
        ct_error_prefix(err, "%s: merges: ", j->name);
    return st;
}
