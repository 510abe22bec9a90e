/* The manifest's complaints, gathered by kind and bounded, for one message. */
#ifndef CT_MODEL_MANIFEST_REPORT_H
#define CT_MODEL_MANIFEST_REPORT_H

#include "base/status.h"
#include "base/str.h"

typedef enum ct_complaint {
    CT_COMPLAINT_MISSING,
    CT_COMPLAINT_UNKNOWN,
    CT_COMPLAINT_SHAPE,
    CT_COMPLAINT_TYPE,
    CT_COMPLAINT_CONFIG, /* quantised where the config says not, or the reverse */
    CT_COMPLAINT_VALUE,  /* scale, alignment */
    CT_N_COMPLAINTS,
} ct_complaint;

/* Entries of one kind that are written out; the others are counted. */
#define CT_COMPLAINTS_SHOWN 8

typedef struct ct_complaints {
    struct {
        size_t n;
        ct_buf text;
    } kind[CT_N_COMPLAINTS];
} ct_complaints;

void ct_complaints_init(ct_complaints *c);
void ct_complaints_deinit(ct_complaints *c);
void ct_complain(ct_complaints *c, ct_complaint kind, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* CT_OK when there is nothing to say. */
ct_status ct_complaints_status(const ct_complaints *c, const char *path, ct_error *err);

#endif
