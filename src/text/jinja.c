#include "text/jinja_ast.h"

#include <stdio.h>
#include <stdlib.h>

/* Address space: about 250 bytes a token; resident only as far as it is used. */
#define COMPILED_BYTES ((size_t)1 << 30)
#define SCRATCH_BYTES  ((size_t)256 << 20)

ct_status jinja_fail(ct_str name, uint32_t line, ct_status st, ct_error *err, const char *fmt, ...)
{
    char text[400];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    return ct_fail(err, st, "%.*s:%u: %s", CT_STR_ARG(name), (unsigned)line, text);
}

static ct_status compile(ct_jinja *j, ct_str source, ct_error *err)
{
    ct_arena scratch = {0};
    uint32_t n_names;
    ct_status st = ct_arena_init(&scratch, SCRATCH_BYTES, err);

    if (st)
        return st;
    st = jinja_parse(j, source, &scratch, &n_names, err);
    if (!st)
        st = jinja_resolve(j, n_names, &scratch, err);
    ct_arena_deinit(&scratch);
    return st;
}

ct_status ct_jinja_compile(ct_jinja **out, const char *name, ct_str source, ct_error *err)
{
    ct_jinja *j;
    ct_status st;

    if (source.n > CT_JINJA_MAX_SOURCE_BYTES)
        return ct_fail(err, CT_ELIMIT, "%s: a template of %zu bytes, at most %u are read", name,
                       source.n, CT_JINJA_MAX_SOURCE_BYTES);
    j = calloc(1, sizeof *j);
    if (!j)
        return ct_fail(err, CT_ELIMIT, "%s: out of memory", name);
    st = ct_arena_init(&j->arena, COMPILED_BYTES, err);
    if (st)
        goto fail;
    j->name = (ct_str){ct_arena_copy(&j->arena, name, strlen(name)), strlen(name)};
    if (!j->name.p) {
        st = ct_fail(err, CT_ELIMIT, "%s: the name is too long", name);
        goto fail;
    }
    st = compile(j, source, err);
    if (st)
        goto fail;
    *out = j;
    return CT_OK;
fail:
    ct_jinja_destroy(j);
    return st;
}

void ct_jinja_destroy(ct_jinja *j)
{
    if (!j)
        return;
    ct_arena_deinit(&j->arena);
    free(j);
}
