#include "model/quant_rules.h"

#include "format/pattern.h"

#include <assert.h>

/* A compiled pattern with its steps, at the most. */
#define PATTERN_ROOM ((size_t)16 << 10)

typedef struct rule {
    ct_str text;
    const ct_pattern *pattern;
    unsigned char tries; /* aliases worth trying, from the first */
    bool plain;          /* neither an expression nor a wildcard */
} rule;

typedef struct group {
    ct_scheme scheme;
    rule *target;
    size_t n_targets;
} group;

struct ct_quant_rules {
    rule *ignore;
    size_t n_ignore;
    group group[CT_MAX_QUANT_GROUPS];
    size_t n_groups;
};

/* Configs name modules as the producer's model did, which may differ from the file's
 * own prefix: "model.language_model.X", "language_model.X", "language_model.model.X",
 * "model.X", "X".  The five are tails of two strings. */
typedef struct names {
    char full[2][CT_NAME_BYTES];
    ct_str alias[5];
} names;

size_t ct_quant_rules_bytes(const ct_quant_config *q)
{
    size_t n = q->n_ignore;

    for (size_t i = 0; i < q->n_groups; i++)
        n += q->group[i].n_targets;
    return sizeof(ct_quant_rules) + n * (sizeof(rule) + PATTERN_ROOM) + 4096;
}

/* The aliases are tails of the first two, so these are enough where the pattern begins
 * with anything at all.  (With 47,478 tensors this is most of the manifest's time.) */
static unsigned char n_tries(ct_str pattern)
{
    if (!ct_str_starts(pattern, "re:.*") && !ct_str_starts(pattern, "*"))
        return 5;
    return memchr(pattern.p, '|', pattern.n) ? 5 : 2;
}

static bool is_plain(ct_str pattern)
{
    return !ct_str_starts(pattern, "re:") && !memchr(pattern.p, '*', pattern.n) &&
           !memchr(pattern.p, '?', pattern.n);
}

static rule *compile(const ct_str *text, size_t n, ct_arena *a)
{
    rule *r = ct_arena_zalloc(a, n, sizeof *r);

    for (size_t i = 0; r && i < n; i++) {
        r[i] = (rule){text[i], ct_pattern_compile(text[i], a), n_tries(text[i]), is_plain(text[i])};
        if (!r[i].pattern)
            return NULL;
    }
    return r;
}

const ct_quant_rules *ct_quant_rules_make(const ct_quant_config *q, ct_arena *a)
{
    ct_quant_rules *r = ct_arena_zalloc(a, 1, sizeof *r);

    if (!r)
        return NULL;
    r->ignore = compile(q->ignore, q->n_ignore, a);
    r->n_ignore = q->n_ignore;
    if (!r->ignore)
        return NULL;
    for (; r->n_groups < q->n_groups; r->n_groups++) {
        const ct_quant_group *from = &q->group[r->n_groups];
        group *to = &r->group[r->n_groups];

        to->scheme = from->scheme == CT_QUANT_FP8 ? CT_SCHEME_FP8 : CT_SCHEME_NVFP4;
        to->target = compile(from->target, from->n_targets, a);
        to->n_targets = from->n_targets;
        if (!to->target)
            return NULL;
    }
    return r;
}

static void fill_names(names *n, ct_str module)
{
    static const char *const root[2] = {"model.language_model.", "language_model.model."};
    static const struct {
        unsigned char root, skip;
    } tail[5] = {{0, 0}, {1, 0}, {0, 6}, {0, 21}, {1, 15}};

    for (int i = 0; i < 2; i++) {
        assert(strlen(root[i]) + module.n <= CT_NAME_BYTES);
        memcpy(n->full[i], root[i], strlen(root[i]));
        memcpy(n->full[i] + strlen(root[i]), module.p, module.n);
    }
    for (int i = 0; i < 5; i++)
        n->alias[i] = (ct_str){n->full[tail[i].root] + tail[i].skip,
                               strlen(root[tail[i].root]) + module.n - tail[i].skip};
}

static bool matches(const rule *r, const names *n)
{
    for (size_t i = 0; i < r->tries; i++)
        if (ct_pattern_match(r->pattern, n->alias[i]))
            return true;
    return false;
}

/* Whether the pattern names a module that contains this one: what is left alone is left
 * alone with everything in it. */
static bool contains(const rule *r, const names *n)
{
    for (size_t i = 0; r->plain && i < 5; i++)
        if (n->alias[i].n > r->text.n && n->alias[i].p[r->text.n] == '.' &&
            memcmp(n->alias[i].p, r->text.p, r->text.n) == 0)
            return true;
    return false;
}

ct_scheme ct_quant_rules_scheme(const ct_quant_rules *r, ct_str module)
{
    names n;

    if (!r->n_groups)
        return CT_SCHEME_BF16;
    fill_names(&n, module);
    for (size_t i = 0; i < r->n_ignore; i++)
        if (matches(&r->ignore[i], &n) || contains(&r->ignore[i], &n))
            return CT_SCHEME_BF16;
    /* A name goes before the class that every projection belongs to. */
    for (size_t g = 0; g < r->n_groups; g++)
        for (size_t i = 0; i < r->group[g].n_targets; i++)
            if (matches(&r->group[g].target[i], &n))
                return r->group[g].scheme;
    for (size_t g = 0; g < r->n_groups; g++)
        for (size_t i = 0; i < r->group[g].n_targets; i++)
            if (ct_str_is(r->group[g].target[i].text, "Linear"))
                return r->group[g].scheme;
    return CT_SCHEME_BF16;
}
