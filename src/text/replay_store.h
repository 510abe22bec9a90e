/* The turns that replay.c keeps: found by what came before them.  Every key is compared
 * in full, so that no collision of hashes can join two conversations. */
#ifndef CT_TEXT_REPLAY_STORE_H
#define CT_TEXT_REPLAY_STORE_H

#include "text/replay.h"

typedef struct ct_replay_store ct_replay_store;

ct_status ct_replay_store_create(ct_replay_store **out, size_t cap_bytes, ct_error *err);
void ct_replay_store_destroy(ct_replay_store *s);

/* Running hash of a key's bytes; start with ct_replay_hash_start. */
uint64_t ct_replay_hash_start(void);
uint64_t ct_replay_hash(uint64_t h, const void *bytes, size_t n);

typedef struct ct_replay_key {
    uint64_t hash;
    ct_str before;  /* salt, options, tools and the messages before, in one form */
    ct_str message; /* the answer without its reasoning */
    ct_str thought; /* the reasoning; in a search, empty matches any */
} ct_replay_key;

void ct_replay_store_put(ct_replay_store *s, const ct_replay_key *key, const ct_replay_turn *turn);

/* Appends prompt + generated of the turn; *n_prompt gets the length of the prompt.
 * *found says whether there was one. */
ct_status ct_replay_store_find(ct_replay_store *s, const ct_replay_key *key, ct_ids *out,
                               size_t *n_prompt, bool *found, ct_error *err);
void ct_replay_store_count(ct_replay_store *s, bool hit);
ct_replay_stats ct_replay_store_stats(ct_replay_store *s);

#endif
