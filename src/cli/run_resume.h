/* What an earlier `carat run --jsonl -o FILE` has answered already. */
#ifndef CT_CLI_RUN_RESUME_H
#define CT_CLI_RUN_RESUME_H

#include "base/status.h"
#include "base/str.h"

#include <stdint.h>
#include <stdio.h>

/* FNV-1a, 64 bits, going on from an earlier one (CT_RUN_DIGEST at first).  It finds a
 * wrong file, not an attacker. */
#define CT_RUN_DIGEST UINT64_C(0xcbf29ce484222325)
uint64_t ct_run_digest(uint64_t digest, ct_str text);

typedef struct ct_run_resume {
    const char *path; /* borrowed */
    uint64_t n;       /* lines answered */
    uint64_t *digest; /* [n], owned: of the inputs they answer */
    uint64_t room;
} ct_run_resume;

/* Opens the file for appending, made if there is none.  Its lines must be answers 0 to
 * n - 1; a last one that is cut, as by a kill, is removed. */
ct_status ct_run_resume_open(ct_run_resume *out, FILE **file, const char *path, ct_error *err);
void ct_run_resume_deinit(ct_run_resume *r); /* fine on an all-zero one */

/* Refuses an input that is not the one answered by line `index`, which is below n. */
ct_status ct_run_resume_check(const ct_run_resume *r, uint64_t index, uint64_t digest,
                              ct_error *err);

#endif
