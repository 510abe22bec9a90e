/* Reading of tokenizer.json, the file of the `tokenizers` library, in one pass.  Only
 * what Gemma 4's tokenizer is made of is taken; everything else that would change a
 * result is refused by name. */
#include "text/tokenizer_impl.h"

#include "base/checked.h"
#include "base/map.h"
#include "base/path.h"
#include "text/merges_read.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#define MAX_FILE_BYTES ((size_t)128 << 20)
/* Shortest entry of the vocabulary: `"a":0,`. */
#define MIN_ENTRY_BYTES 6
/* Most that an arena can take for each byte of the file (the tries of added tokens: half
 * the file at 16 bytes; the table of merges: up to 32 bytes for 6), and its fixed tables. */
#define ARENA_BYTES_PER_BYTE 16
/* Smaller files make tables that fit ordinary pages and caches. */
#define HUGE_FROM_BYTES   ((size_t)4 << 20)
#define ARENA_FIXED_BYTES ((size_t)16 << 20)

typedef struct added_token {
    struct added_token *next;
    ct_str content;
    uint64_t id;
} added_token;

typedef struct loader {
    ct_tokenizer *t;
    ct_json j;
    ct_arena scratch; /* until the load is done */
    ct_error *err;
    added_token *added; /* in scratch, the last one first */
    ct_str unk;         /* {NULL, 0}: null */
    bool has_vocab;
    ct_json late_merges; /* behind the bracket of merges that stand before the vocabulary */
} loader;

typedef ct_status field_fn(loader *l, const char *key, const ct_json_token *first);

typedef struct field {
    const char *key;
    field_fn *read;
    bool required;
} field;

static ct_status refuse(loader *l, const char *key, const ct_json_token *is, const char *must)
{
    ct_str text = is->kind == CT_JSON_STRING || is->kind == CT_JSON_NUMBER
                      ? ct_tokenizer_shown(is->raw)
                      : ct_str_of(ct_json_kind_name(is->kind));

    return ct_fail(l->err, CT_EUNSUPPORTED, "%s: %s is %.*s, must be %s", l->j.name, key,
                   CT_STR_ARG(text), must);
}

/* For errors of the parts that know neither the file nor the place in it. */
static ct_status at_place(loader *l, ct_status st, const char *place)
{
    if (st)
        ct_error_prefix(l->err, "%s: %s: ", l->j.name, place);
    return st;
}

static ct_status read_field(loader *l, const char *of, const field *fields, size_t n,
                            const ct_json_token *key, uint32_t *found)
{
    ct_json_token first;
    size_t i = 0;
    ct_status st;

    while (i < n && !ct_json_is(key, fields[i].key))
        i++;
    if (i == n)
        return ct_fail(l->err, CT_EUNSUPPORTED, "%s: unknown field \"%.*s\" in %s", l->j.name,
                       CT_STR_ARG(ct_tokenizer_shown(key->raw)), of);
    if (*found >> i & 1)
        return ct_fail(l->err, CT_EFORMAT, "%s: field \"%s\" stands twice in %s", l->j.name,
                       fields[i].key, of);
    *found |= (uint32_t)1 << i;
    st = ct_json_next(&l->j, &first, l->err);
    return st ? st : fields[i].read(l, fields[i].key, &first);
}

/* Reads an object that has just been opened. */
static ct_status read_fields(loader *l, const char *of, const field *fields, size_t n)
{
    uint32_t found = 0;

    for (;;) {
        ct_json_token key;
        ct_status st = ct_json_next(&l->j, &key, l->err);

        if (st)
            return st;
        if (key.kind == CT_JSON_OBJECT_END)
            break;
        st = read_field(l, of, fields, n, &key, &found);
        if (st)
            return st;
    }
    for (size_t i = 0; i < n; i++)
        if (fields[i].required && !(found >> i & 1))
            return ct_fail(l->err, CT_EFORMAT, "%s: field \"%s\" is missing in %s", l->j.name,
                           fields[i].key, of);
    return CT_OK;
}

static ct_status read_true(loader *l, const char *key, const ct_json_token *first)
{
    return first->kind == CT_JSON_TRUE ? CT_OK : refuse(l, key, first, "true");
}

static ct_status read_false(loader *l, const char *key, const ct_json_token *first)
{
    return first->kind == CT_JSON_FALSE ? CT_OK : refuse(l, key, first, "false");
}

static ct_status read_bool(loader *l, const char *key, const ct_json_token *first)
{
    return first->kind == CT_JSON_TRUE ? CT_OK : read_false(l, key, first);
}

static ct_status read_null(loader *l, const char *key, const ct_json_token *first)
{
    return first->kind == CT_JSON_NULL ? CT_OK : refuse(l, key, first, "null");
}

static ct_status read_null_or_empty(loader *l, const char *key, const ct_json_token *first)
{
    return first->kind == CT_JSON_STRING && !first->raw.n ? CT_OK : read_null(l, key, first);
}

/* truncation and padding are settings of somebody's last training batch, kept in the
 * file by `tokenizers`; transformers resets them at each call, and so they mean nothing. */
static ct_status read_ignored(loader *l, const char *key, const ct_json_token *first)
{
    if (first->kind != CT_JSON_NULL && first->kind != CT_JSON_OBJECT)
        return refuse(l, key, first, "null or an object");
    return ct_json_skip(&l->j, first, l->err);
}

static ct_status read_version(loader *l, const char *key, const ct_json_token *first)
{
    if (first->kind != CT_JSON_STRING || !ct_json_is(first, "1.0"))
        return refuse(l, key, first, "\"1.0\"");
    return CT_OK;
}

static ct_status read_section(loader *l, const char *key, const ct_json_token *first)
{
    return ct_tokenizer_check_section(key, &l->j, first, l->err);
}

/* --- added tokens ----------------------------------------------------------- */

static ct_status read_added_id(loader *l, const char *key, const ct_json_token *first)
{
    (void)key;
    return ct_json_u64(&l->j, first, "id of an added token", CT_VOCAB_MAX_PIECES - 1, &l->added->id,
                       l->err);
}

static ct_status read_added_content(loader *l, const char *key, const ct_json_token *first)
{
    if (first->kind != CT_JSON_STRING)
        return refuse(l, key, first, "a string");
    return ct_json_str(&l->j, first, &l->scratch, &l->added->content, l->err);
}

static ct_status read_added_token(loader *l)
{
    static const field fields[] = {
        {"id", read_added_id, true},       {"content", read_added_content, true},
        {"special", read_true, true},      {"normalized", read_false, true},
        {"single_word", read_false, true}, {"lstrip", read_false, true},
        {"rstrip", read_false, true},
    };
    added_token *a = ct_arena_zalloc(&l->scratch, 1, sizeof *a);

    if (!a)
        return ct_fail(l->err, CT_ELIMIT, "%s: no memory for added tokens", l->j.name);
    a->next = l->added;
    l->added = a;
    return read_fields(l, "an added token", fields, CT_LEN(fields));
}

static ct_status read_added_tokens(loader *l, const char *key, const ct_json_token *first)
{
    if (first->kind != CT_JSON_ARRAY)
        return refuse(l, key, first, "an array");
    for (;;) {
        ct_json_token t;
        ct_status st = ct_json_next(&l->j, &t, l->err);

        if (st || t.kind == CT_JSON_ARRAY_END)
            return st;
        if (t.kind != CT_JSON_OBJECT)
            return refuse(l, "an added token", &t, "an object");
        st = read_added_token(l);
        if (st)
            return st;
    }
}

static ct_status check_added(loader *l, const added_token *a)
{
    ct_str shown = ct_tokenizer_shown(a->content);
    uint32_t id = ct_vocab_find(&l->t->vocab, a->content, CT_STR(""));

    if (id == CT_TOKEN_NONE)
        return ct_fail(l->err, CT_EUNSUPPORTED,
                       "%s: added token \"%.*s\" (id %" PRIu64 ") is not in the vocabulary",
                       l->j.name, CT_STR_ARG(shown), a->id);
    if (id != a->id)
        return ct_fail(l->err, CT_EFORMAT,
                       "%s: added token \"%.*s\" has id %" PRIu64 ", in the vocabulary %" PRIu32,
                       l->j.name, CT_STR_ARG(shown), a->id, id);
    if (ct_piece_byte(a->content) >= 0)
        return ct_fail(l->err, CT_EUNSUPPORTED, "%s: added token \"%.*s\" is a byte piece",
                       l->j.name, CT_STR_ARG(shown));
    return CT_OK;
}

static ct_status add_specials(loader *l)
{
    ct_tokenizer *t = l->t;
    size_t n_bytes = 0;
    ct_status st;

    for (const added_token *a = l->added; a; a = a->next) {
        st = check_added(l, a);
        if (st)
            return st;
        n_bytes += a->content.n;
    }
    t->is_special = ct_arena_zalloc(&t->arena, t->vocab.n / 64 + 1, sizeof *t->is_special);
    if (!t->is_special)
        return ct_fail(l->err, CT_ELIMIT, "%s: no memory for added tokens", l->j.name);
    st = ct_specials_init(&t->specials, &t->arena, n_bytes, l->err);
    if (st)
        return at_place(l, st, "added_tokens");
    for (const added_token *a = l->added; a; a = a->next) {
        if (!ct_specials_add(&t->specials, a->content, (uint32_t)a->id))
            return ct_fail(l->err, CT_EFORMAT, "%s: added token \"%.*s\" stands twice", l->j.name,
                           CT_STR_ARG(ct_tokenizer_shown(a->content)));
        t->is_special[a->id / 64] |= (uint64_t)1 << (a->id % 64);
    }
    return CT_OK;
}

/* --- the model -------------------------------------------------------------- */

static ct_status read_type(loader *l, const char *key, const ct_json_token *first)
{
    if (first->kind != CT_JSON_STRING || !ct_json_is(first, "BPE"))
        return refuse(l, key, first, "\"BPE\"");
    return CT_OK;
}

/* Never produced, since every byte has a piece. */
static ct_status read_unk(loader *l, const char *key, const ct_json_token *first)
{
    if (first->kind != CT_JSON_STRING)
        return read_null(l, key, first);
    return ct_json_str(&l->j, first, &l->scratch, &l->unk, l->err);
}

static ct_status add_piece(loader *l, const ct_json_token *key)
{
    ct_json_token value;
    char place[CT_SHOWN_BYTES + 16];
    uint64_t id;
    ct_str piece;
    ct_status st = ct_json_str(&l->j, key, &l->t->arena, &piece, l->err);

    if (!st && !key->escaped) {
        piece.p = ct_arena_copy(&l->t->arena, piece.p, piece.n);
        if (!piece.p)
            st = ct_fail(l->err, CT_ELIMIT, "%s: no memory for the vocabulary", l->j.name);
    }
    if (!st)
        st = ct_json_next(&l->j, &value, l->err);
    if (!st)
        st = ct_json_u64(&l->j, &value, "an id of the vocabulary", CT_VOCAB_MAX_PIECES - 1, &id,
                         l->err);
    if (st)
        return st;
    st = ct_vocab_add(&l->t->vocab, piece, (uint32_t)id, l->err);
    if (!st)
        return CT_OK;
    snprintf(place, sizeof place, "vocab \"%.*s\"", CT_STR_ARG(ct_tokenizer_shown(key->raw)));
    return at_place(l, st, place);
}

static ct_status read_vocab(loader *l, const char *key, const ct_json_token *first)
{
    if (first->kind != CT_JSON_OBJECT)
        return refuse(l, key, first, "an object");
    for (;;) {
        ct_json_token t;
        ct_status st = ct_json_next(&l->j, &t, l->err);

        if (st)
            return st;
        if (t.kind == CT_JSON_OBJECT_END)
            break;
        st = add_piece(l, &t);
        if (st)
            return st;
    }
    l->has_vocab = true;
    return at_place(l, ct_vocab_seal(&l->t->vocab, &l->t->arena, &l->scratch, l->err), "vocab");
}

static ct_status read_merge_list(loader *l)
{
    return ct_merges_read(&l->t->merges, &l->t->vocab, &l->j, &l->t->arena, &l->scratch, l->err);
}

static ct_status read_merges(loader *l, const char *key, const ct_json_token *first)
{
    if (first->kind != CT_JSON_ARRAY)
        return refuse(l, key, first, "an array");
    if (l->has_vocab)
        return read_merge_list(l);
    l->late_merges = l->j;
    return ct_json_skip(&l->j, first, l->err);
}

static ct_status read_late_merges(loader *l)
{
    ct_json behind = l->j;
    ct_status st;

    l->j = l->late_merges;
    st = read_merge_list(l);
    l->j = behind;
    return st;
}

static ct_status read_model(loader *l, const char *key, const ct_json_token *first)
{
    static const field fields[] = {
        {"type", read_type, true},
        {"dropout", read_null, false},
        {"unk_token", read_unk, false},
        {"continuing_subword_prefix", read_null_or_empty, false},
        {"end_of_word_suffix", read_null_or_empty, false},
        {"fuse_unk", read_bool, false},
        {"byte_fallback", read_true, true},
        {"ignore_merges", read_false, false},
        {"vocab", read_vocab, true},
        {"merges", read_merges, true},
    };
    ct_status st;

    if (first->kind != CT_JSON_OBJECT)
        return refuse(l, key, first, "an object");
    st = read_fields(l, "model", fields, CT_LEN(fields));
    if (!st && l->late_merges.name)
        st = read_late_merges(l);
    if (!st && l->unk.p && ct_vocab_find(&l->t->vocab, l->unk, CT_STR("")) == CT_TOKEN_NONE)
        st = ct_fail(l->err, CT_EFORMAT, "%s: unk_token \"%.*s\" is not in the vocabulary",
                     l->j.name, CT_STR_ARG(ct_tokenizer_shown(l->unk)));
    return st;
}

/* --- the file --------------------------------------------------------------- */

static ct_status read_file(loader *l)
{
    static const field fields[] = {
        {"version", read_version, false},
        {"truncation", read_ignored, false},
        {"padding", read_ignored, false},
        {"added_tokens", read_added_tokens, true},
        {"normalizer", read_section, true},
        {"pre_tokenizer", read_section, false},
        {"post_processor", read_section, false},
        {"decoder", read_section, true},
        {"model", read_model, true},
    };
    ct_json_token t;
    ct_status st = ct_json_expect(&l->j, CT_JSON_OBJECT, "the whole file", &t, l->err);

    if (!st)
        st = read_fields(l, "the file", fields, CT_LEN(fields));
    if (!st)
        st = ct_json_expect(&l->j, CT_JSON_END, "what follows", &t, l->err);
    if (!st)
        st = add_specials(l);
    return st;
}

static ct_status load_into(loader *l, const char *name, ct_str text)
{
    size_t arena_bytes = text.n * ARENA_BYTES_PER_BYTE + ARENA_FIXED_BYTES;
    size_t room = ct_min_size(CT_VOCAB_MAX_PIECES, text.n / MIN_ENTRY_BYTES + 1);
    ct_status st;

    ct_json_init(&l->j, name, text);
    st = ct_arena_init(&l->t->arena, arena_bytes, l->err);
    if (!st)
        st = ct_arena_init(&l->scratch, arena_bytes, l->err);
    if (!st && text.n >= HUGE_FROM_BYTES) {
        ct_arena_prefer_huge(&l->t->arena);
        ct_arena_prefer_huge(&l->scratch);
    }
    if (!st)
        st = ct_words_init(&l->t->words, text.n >= HUGE_FROM_BYTES, l->err);
    if (!st)
        st = ct_vocab_init(&l->t->vocab, &l->t->arena, (uint32_t)room, l->err);
    if (st)
        return at_place(l, st, "memory");
    return read_file(l);
}

ct_status ct_tokenizer_parse(ct_tokenizer **out, const char *name, ct_str text, ct_error *err)
{
    loader l = {.err = err};
    ct_status st;

    if (text.n > MAX_FILE_BYTES)
        return ct_fail(err, CT_ELIMIT, "%s: %zu bytes, at most %zu are read", name, text.n,
                       MAX_FILE_BYTES);
    l.t = calloc(1, sizeof *l.t);
    if (!l.t)
        return ct_fail(err, CT_ELIMIT, "%s: no memory for a tokenizer", name);
    st = load_into(&l, name, text);
    ct_arena_deinit(&l.scratch);
    l.t->vocab.slot = NULL; /* was in scratch */
    if (st) {
        ct_tokenizer_destroy(l.t);
        return st;
    }
    *out = l.t;
    return CT_OK;
}

ct_status ct_tokenizer_open(ct_tokenizer **out, const char *path, ct_error *err)
{
    char inside[CT_PATH_BYTES];
    struct stat sb;
    ct_map map;
    ct_status st = CT_OK;

    if (stat(path, &sb) == 0 && S_ISDIR(sb.st_mode)) {
        st = ct_path_join(inside, path, "tokenizer.json", err);
        path = inside;
    }
    if (!st)
        st = ct_map_open(&map, path, err);
    if (st)
        return st;
    st = ct_tokenizer_parse(out, path, ct_map_str(&map), err);
    ct_map_close(&map);
    return st;
}
