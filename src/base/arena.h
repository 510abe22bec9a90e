/* Arena with a fixed cap: memory of one lifetime, freed all at once.
 *
 * The cap is reserved as address space at creation and becomes resident only as
 * it is touched, so a generous cap costs nothing.  A full arena returns NULL: the
 * caller reports CT_ELIMIT with what did not fit.  One thread at a time. */
#ifndef CT_BASE_ARENA_H
#define CT_BASE_ARENA_H

#include "base/status.h"

#include <stddef.h>

typedef struct ct_arena {
    unsigned char *base;
    size_t cap_bytes;
    size_t used_bytes;
} ct_arena;

typedef size_t ct_arena_mark;

#define CT_ALIGN 64 /* cache line, and the widest vector load */

ct_status ct_arena_init(ct_arena *a, size_t cap_bytes, ct_error *err);
void ct_arena_deinit(ct_arena *a); /* fine on an all-zero arena */

/* Asks for large pages behind an arena of tables that are read at random: fewer faults
 * while they fill, fewer misses of the page tables after.  Advice only. */
void ct_arena_prefer_huge(ct_arena *a);

/* Uninitialised bytes aligned to `align` (a power of two), or NULL when full.
 * A size of 0 gives a valid pointer that must not be read. */
void *ct_arena_alloc(ct_arena *a, size_t n_bytes, size_t align);
/* n zeroed elements; NULL when full or when n * elem_bytes overflows. */
void *ct_arena_zalloc(ct_arena *a, size_t n, size_t elem_bytes);
/* Copy of n bytes with a NUL added after them. */
char *ct_arena_copy(ct_arena *a, const void *bytes, size_t n);

/* Scratch use: everything allocated after the mark is given back. */
ct_arena_mark ct_arena_save(const ct_arena *a);
void ct_arena_rewind(ct_arena *a, ct_arena_mark mark);

#endif
