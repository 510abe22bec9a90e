/* Sections of tokenizer.json with one accepted setting: normalizer, pre_tokenizer,
 * post_processor, decoder.  Compared leaf by leaf, whatever the order of the keys; a leaf
 * that is not in the table is a setting that would change results unseen. */
#include "text/tokenizer_impl.h"

#include "base/checked.h"

#include <stdio.h>

#define MAX_DEPTH  6
#define PATH_BYTES 128

typedef struct leaf {
    const char *path;
    ct_json_kind kind;
    const char *text; /* of strings and numbers */
} leaf;

static const leaf normalizer[] = {
    {"type", CT_JSON_STRING, "Replace"},
    {"pattern.String", CT_JSON_STRING, " "},
    {"content", CT_JSON_STRING, CT_SPACE_MARK_BYTES},
};

/* Runs after the normalizer has replaced every space, so it never splits. */
static const leaf pre_tokenizer[] = {
    {"type", CT_JSON_STRING, "Split"},
    {"pattern.String", CT_JSON_STRING, " "},
    {"behavior", CT_JSON_STRING, "MergedWithPrevious"},
    {"invert", CT_JSON_FALSE, NULL},
};

/* A template without any special token: a BOS here would have to be added to each text. */
static const leaf post_processor[] = {
    {"type", CT_JSON_STRING, "TemplateProcessing"},
    {"single[0].Sequence.id", CT_JSON_STRING, "A"},
    {"single[0].Sequence.type_id", CT_JSON_NUMBER, "0"},
    {"pair[0].Sequence.id", CT_JSON_STRING, "A"},
    {"pair[0].Sequence.type_id", CT_JSON_NUMBER, "0"},
    {"pair[1].Sequence.id", CT_JSON_STRING, "B"},
    {"pair[1].Sequence.type_id", CT_JSON_NUMBER, "1"},
};

static const leaf decoder[] = {
    {"type", CT_JSON_STRING, "Sequence"},
    {"decoders[0].type", CT_JSON_STRING, "Replace"},
    {"decoders[0].pattern.String", CT_JSON_STRING, CT_SPACE_MARK_BYTES},
    {"decoders[0].content", CT_JSON_STRING, " "},
    {"decoders[1].type", CT_JSON_STRING, "ByteFallback"},
    {"decoders[2].type", CT_JSON_STRING, "Fuse"},
};

static const struct {
    const char *name;
    const leaf *leaves;
    size_t n;
    bool may_be_null; /* null does the same */
} sections[] = {
    {"normalizer", normalizer, CT_LEN(normalizer), false},
    {"pre_tokenizer", pre_tokenizer, CT_LEN(pre_tokenizer), true},
    {"post_processor", post_processor, CT_LEN(post_processor), true},
    {"decoder", decoder, CT_LEN(decoder), false},
};

/* Path of the current leaf, built while walking. */
typedef struct walk {
    const char *section;
    char path[PATH_BYTES];
    unsigned depth;
    size_t n_path[MAX_DEPTH]; /* length of the path of each open container */
    int index[MAX_DEPTH];     /* next item of an open array; -1 in an object */
} walk;

static ct_status refuse_leaf(const ct_json *j, const walk *w, const ct_json_token *t,
                             const char *must, ct_error *err)
{
    char is[CT_SHOWN_BYTES + 3];

    if (t->kind == CT_JSON_STRING || t->kind == CT_JSON_NUMBER)
        snprintf(is, sizeof is, "\"%.*s\"", CT_STR_ARG(ct_tokenizer_shown(t->raw)));
    else
        snprintf(is, sizeof is, "%s", ct_json_kind_name(t->kind));
    return ct_fail(err, CT_EUNSUPPORTED, "%s: %s.%s is %s, %s", j->name, w->section, w->path, is,
                   must);
}

static bool leaf_fits(const leaf *want, const ct_json_token *t)
{
    if (t->kind != want->kind)
        return false;
    if (t->kind == CT_JSON_STRING)
        return ct_json_is(t, want->text);
    return t->kind != CT_JSON_NUMBER || ct_str_is(t->raw, want->text);
}

/* found: bit i is set when leaves[i] has been seen. */
static ct_status check_leaf(const ct_json *j, const walk *w, const leaf *leaves, size_t n,
                            const ct_json_token *t, uint32_t *found, ct_error *err)
{
    char must[64];

    for (size_t i = 0; i < n; i++) {
        if (strcmp(leaves[i].path, w->path) != 0)
            continue;
        if (*found >> i & 1)
            return refuse_leaf(j, w, t, "for the second time", err);
        if (!leaf_fits(&leaves[i], t)) {
            snprintf(must, sizeof must, "must be \"%s\"",
                     leaves[i].text ? leaves[i].text : ct_json_kind_name(leaves[i].kind));
            return refuse_leaf(j, w, t, must, err);
        }
        *found |= (uint32_t)1 << i;
        return CT_OK;
    }
    return refuse_leaf(j, w, t, "and not among the supported settings", err);
}

/* Sets the end of the path: ".key" in an object, "[i]" in an array. */
static void name_item(walk *w, const ct_json_token *key)
{
    size_t n = w->n_path[w->depth - 1];
    char *end = w->path + n;

    if (key)
        snprintf(end, PATH_BYTES - n, "%s%.*s", n ? "." : "", CT_STR_ARG(key->raw));
    else
        snprintf(end, PATH_BYTES - n, "[%d]", w->index[w->depth - 1]++);
}

static void open_container(walk *w, ct_json_kind kind)
{
    w->n_path[w->depth] = strlen(w->path);
    w->index[w->depth++] = kind == CT_JSON_ARRAY ? 0 : -1;
}

static ct_status walk_leaves(ct_json *j, walk *w, const leaf *leaves, size_t n, uint32_t *found,
                             ct_error *err)
{
    while (w->depth) {
        ct_json_token t;
        ct_status st = ct_json_next(j, &t, err);

        if (st)
            return st;
        if (t.kind == CT_JSON_OBJECT_END || t.kind == CT_JSON_ARRAY_END) {
            w->depth--;
            continue;
        }
        if (t.kind == CT_JSON_KEY || w->index[w->depth - 1] >= 0)
            name_item(w, t.kind == CT_JSON_KEY ? &t : NULL);
        if (t.kind == CT_JSON_KEY) {
            /* "a.b" as a key is not b inside a. */
            if (memchr(t.raw.p, '.', t.raw.n) || memchr(t.raw.p, '[', t.raw.n))
                return refuse_leaf(j, w, &t, "not a known field", err);
            continue;
        }
        if ((t.kind == CT_JSON_OBJECT || t.kind == CT_JSON_ARRAY) && w->depth < MAX_DEPTH)
            open_container(w, t.kind);
        else
            st = check_leaf(j, w, leaves, n, &t, found, err);
        if (st)
            return st;
    }
    return CT_OK;
}

ct_status ct_tokenizer_check_section(const char *section, ct_json *j, const ct_json_token *first,
                                     ct_error *err)
{
    walk w = {.section = section};
    uint32_t found = 0;
    size_t s = 0;
    ct_status st;

    while (strcmp(sections[s].name, section) != 0)
        s++;
    if (first->kind == CT_JSON_NULL && sections[s].may_be_null)
        return CT_OK;
    if (first->kind != CT_JSON_OBJECT)
        return ct_fail(err, CT_EUNSUPPORTED, "%s: %s is %s, must be an object", j->name, section,
                       ct_json_kind_name(first->kind));
    open_container(&w, CT_JSON_OBJECT);
    st = walk_leaves(j, &w, sections[s].leaves, sections[s].n, &found, err);
    if (st)
        return st;
    for (size_t i = 0; i < sections[s].n; i++)
        if (!(found >> i & 1))
            return ct_fail(err, CT_EUNSUPPORTED, "%s: %s.%s is missing, must be \"%s\"", j->name,
                           section, sections[s].leaves[i].path,
                           sections[s].leaves[i].text
                               ? sections[s].leaves[i].text
                               : ct_json_kind_name(sections[s].leaves[i].kind));
    return CT_OK;
}
