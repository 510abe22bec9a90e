#include "model/manifest_report.h"

#include <stdarg.h>
#include <stdio.h>

#define ENTRY_BYTES 1024

void ct_complaints_init(ct_complaints *c)
{
    *c = (ct_complaints){0};
    for (int i = 0; i < CT_N_COMPLAINTS; i++)
        ct_buf_init(&c->kind[i].text, CT_COMPLAINTS_SHOWN * (ENTRY_BYTES + 2));
}

void ct_complaints_deinit(ct_complaints *c)
{
    for (int i = 0; i < CT_N_COMPLAINTS; i++)
        ct_buf_deinit(&c->kind[i].text);
}

void ct_complain(ct_complaints *c, ct_complaint kind, const char *fmt, ...)
{
    ct_buf *b = &c->kind[kind].text;
    char entry[ENTRY_BYTES];
    va_list ap;

    if (c->kind[kind].n++ >= CT_COMPLAINTS_SHOWN)
        return;
    va_start(ap, fmt);
    vsnprintf(entry, sizeof entry, fmt, ap);
    va_end(ap);
    if (b->n)
        ct_buf_addz(b, ", ");
    ct_buf_addz(b, entry);
}

ct_status ct_complaints_status(const ct_complaints *c, const char *path, ct_error *err)
{
    static const char *const title[CT_N_COMPLAINTS] = {
        [CT_COMPLAINT_MISSING] = "missing",       [CT_COMPLAINT_UNKNOWN] = "unknown",
        [CT_COMPLAINT_SHAPE] = "mis-shaped",      [CT_COMPLAINT_TYPE] = "mis-typed",
        [CT_COMPLAINT_CONFIG] = "against config", [CT_COMPLAINT_VALUE] = "unusable",
    };
    ct_buf all;
    ct_status st;

    ct_buf_init(&all, CT_ERROR_BYTES * 4);
    for (int i = 0; i < CT_N_COMPLAINTS; i++) {
        if (!c->kind[i].n)
            continue;
        ct_buf_addf(&all, "%s%zu %s: %s", all.n ? "; " : "", c->kind[i].n, title[i],
                    c->kind[i].text.p ? c->kind[i].text.p : "");
        if (c->kind[i].n > CT_COMPLAINTS_SHOWN)
            ct_buf_addf(&all, " and %zu more", c->kind[i].n - CT_COMPLAINTS_SHOWN);
    }
    st = all.n || all.failed ? ct_fail(err, CT_EFORMAT, "%s: tensors do not fit the config: %s",
                                       path, all.n ? all.p : "out of memory")
                             : CT_OK;
    ct_buf_deinit(&all);
    return st;
}
