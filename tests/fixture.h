/* The tiny checkpoints of data/fixtures and what transformers computed with them. */
#ifndef CT_TESTS_FIXTURE_H
#define CT_TESTS_FIXTURE_H

#include "support.h"

#include "format/safetensors.h"
#include "model/model.h"

#include <string.h>

typedef struct fixture {
    const char *name;
    ct_model *model;
    ct_checkpoint *ref;
} fixture;

/* One prompt; pointers go into the reference file. */
typedef struct fixture_case {
    char name[64];
    uint32_t T, n_greedy, n_kept;
    const uint32_t *ids, *greedy;   /* NULL without */
    const uint32_t *kept;           /* positions whose logits are recorded */
    const float *logits, *logits16; /* [n_kept, V] of the f32 and of the bf16 model, or NULL */
} fixture_case;

static inline fixture fixture_open(const char *name)
{
    fixture f = {.name = name};
    char path[256];
    ct_error err;

    snprintf(path, sizeof path, "data/fixtures/%s/reference.safetensors", name);
    test_ok(ct_checkpoint_open_file(&f.ref, test_shared(path), &err), &err);
    snprintf(path, sizeof path, "data/fixtures/%s", name);
    test_ok(ct_model_open(&f.model, test_shared(path), &err), &err);
    return f;
}

static inline void fixture_close(fixture *f)
{
    ct_model_close(f->model);
    ct_checkpoint_close(f->ref);
}

/* Data of "<case>.<field>" and its first dimension; NULL when there is none. */
static inline const void *fixture_field(const fixture *f, const char *of, const char *what,
                                        uint32_t *n)
{
    char name[128];
    const ct_tensor *t;

    snprintf(name, sizeof name, "%s.%s", of, what);
    t = ct_checkpoint_find(f->ref, ct_str_of(name));
    if (n)
        *n = t && t->n_dims ? (uint32_t)t->dim[0] : 0;
    return t ? t->data : NULL;
}

/* The i-th tensor, if it is a case's ids. */
static inline bool fixture_case_at(const fixture *f, size_t i, fixture_case *k)
{
    ct_str name = ct_checkpoint_at(f->ref, i)->name;

    if (name.n < 5 || name.n >= sizeof k->name || memcmp(name.p + name.n - 4, ".ids", 4))
        return false;
    *k = (fixture_case){0};
    memcpy(k->name, name.p, name.n - 4);
    k->ids = fixture_field(f, k->name, "ids", &k->T);
    k->greedy = fixture_field(f, k->name, "greedy", &k->n_greedy);
    k->kept = fixture_field(f, k->name, "positions", &k->n_kept);
    k->logits = fixture_field(f, k->name, "logits_f32", NULL);
    k->logits16 = fixture_field(f, k->name, "logits_bf16", NULL);
    return true;
}

#endif
