#include "engine/stop.h"

#include "base/checked.h"
#include "base/utf8.h"

#include <stdlib.h>

/* One string, matched by Knuth, Morris and Pratt's automaton. */
typedef struct pattern {
    const unsigned char *text; /* owned with the ct_stop */
    const uint16_t *border;    /* [len + 1]: of the prefix of that length, the longest proper
                                  prefix that is also its end */
    uint32_t len;
    uint32_t matched; /* bytes of the string that the text so far ends with */
} pattern;

struct ct_stop {
    bool include;
    uint64_t n_bytes; /* fed so far */
    ct_stop_progress progress;
    size_t n;
    pattern p[CT_MAX_STOP_STRINGS];
};

static ct_status check_strings(const ct_str *strings, size_t n, ct_error *err)
{
    if (n > CT_MAX_STOP_STRINGS)
        return ct_fail(err, CT_ELIMIT, "stop: %zu strings, at most %d", n, CT_MAX_STOP_STRINGS);
    for (size_t i = 0; i < n; i++) {
        size_t valid;

        if (strings[i].n == 0)
            return ct_fail(err, CT_EINVAL, "stop[%zu]: an empty string stops nothing", i);
        if (strings[i].n > CT_MAX_STOP_BYTES)
            return ct_fail(err, CT_ELIMIT, "stop[%zu]: %zu bytes, at most %d", i, strings[i].n,
                           CT_MAX_STOP_BYTES);
        valid = ct_utf8_valid_prefix(strings[i]);
        if (valid < strings[i].n)
            return ct_fail(err, CT_EINVAL, "stop[%zu]: byte %zu of %zu is not UTF-8", i, valid,
                           strings[i].n);
    }
    return CT_OK;
}

static void find_borders(uint16_t *border, const unsigned char *text, uint32_t len)
{
    uint32_t k = 0;

    border[0] = border[1] = 0;
    for (uint32_t i = 1; i < len; i++) {
        while (k && text[k] != text[i])
            k = border[k];
        k += text[k] == text[i];
        border[i + 1] = (uint16_t)k;
    }
}

/* The tail of the allocation holds the borders of all strings, then their bytes. */
static void set_patterns(ct_stop *s, const ct_str *strings)
{
    uint16_t *border = (uint16_t *)(s + 1);
    unsigned char *text;
    size_t n_borders = 0;

    for (size_t i = 0; i < s->n; i++)
        n_borders += strings[i].n + 1;
    text = (unsigned char *)(border + n_borders);
    for (size_t i = 0; i < s->n; i++) {
        memcpy(text, strings[i].p, strings[i].n);
        find_borders(border, text, (uint32_t)strings[i].n);
        s->p[i] = (pattern){.text = text, .border = border, .len = (uint32_t)strings[i].n};
        border += strings[i].n + 1;
        text += strings[i].n;
    }
}

ct_status ct_stop_create(ct_stop **out, const ct_str *strings, size_t n, bool include,
                         ct_error *err)
{
    ct_status st = check_strings(strings, n, err);
    size_t bytes = sizeof(ct_stop);
    ct_stop *s;

    if (st)
        return st;
    for (size_t i = 0; i < n; i++)
        bytes += strings[i].n + (strings[i].n + 1) * sizeof(uint16_t);
    s = calloc(1, bytes);
    if (!s)
        return ct_fail(err, CT_ELIMIT, "out of memory: %zu bytes for the stop strings", bytes);
    s->include = include;
    s->n = n;
    set_patterns(s, strings);
    *out = s;
    return CT_OK;
}

void ct_stop_destroy(ct_stop *s)
{
    free(s);
}

static void advance(pattern *p, unsigned char c)
{
    if (p->matched == p->len) /* passed over while not armed */
        p->matched = p->border[p->len];
    while (p->matched && p->text[p->matched] != c)
        p->matched = p->border[p->matched];
    p->matched += p->text[p->matched] == c;
}

/* Index of the longest string that is complete now, or n. */
static size_t longest_complete(const ct_stop *s)
{
    size_t best = s->n;

    for (size_t i = 0; i < s->n; i++)
        if (s->p[i].matched == s->p[i].len && (best == s->n || s->p[i].len > s->p[best].len))
            best = i;
    return best;
}

/* Bytes at the end of the text that may become a stop string.  A string that was passed
 * over is past: only what of it can begin another still counts. */
static uint32_t n_held(const ct_stop *s)
{
    uint32_t held = 0;

    for (size_t i = 0; i < s->n && !s->include; i++) {
        const pattern *p = &s->p[i];
        uint32_t k = p->matched == p->len ? p->border[p->len] : p->matched;

        held = k > held ? k : held;
    }
    return held;
}

ct_stop_progress ct_stop_feed(ct_stop *s, ct_str piece, bool armed)
{
    for (size_t i = 0; i < piece.n && !s->progress.found; i++) {
        size_t which;

        for (size_t j = 0; j < s->n; j++)
            advance(&s->p[j], (unsigned char)piece.p[i]);
        s->n_bytes++;
        which = armed ? longest_complete(s) : s->n;
        if (which == s->n)
            continue;
        s->progress.found = true;
        s->progress.which = (uint32_t)which;
        s->progress.safe = s->n_bytes - (s->include ? 0 : s->p[which].len);
    }
    if (!s->progress.found)
        s->progress.safe = s->n_bytes - n_held(s);
    return s->progress;
}
