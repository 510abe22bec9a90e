/* Exact replay: the next turn's prompt begins with the very ids of this turn.
 *
 * A template trims the model's answers, drops its thoughts and prints content behind the
 * calls, so a rendered conversation seldom begins with the ids that were generated, and
 * nothing cached for them can be used.  This store keeps finished turns (what came
 * before, the message as the client saw it, the ids); when a request holds such a
 * message unchanged, its prompt is
 *
 *     stored prompt + generated ids + what the template prints behind that message
 *
 * and otherwise, or when that place cannot be found for certain, the plain rendering.
 * Bounded in bytes, least recently used turns go first.  Any thread: one lock, held
 * while a turn is copied, never while rendering. */
#ifndef CT_TEXT_REPLAY_H
#define CT_TEXT_REPLAY_H

#include "text/chat.h"
#include "text/tokenizer.h"

typedef struct ct_replay ct_replay;

ct_status ct_replay_create(ct_replay **out, size_t cap_bytes, ct_error *err);
void ct_replay_destroy(ct_replay *r);

typedef struct ct_replay_turn {
    const ct_value *request; /* `render` of the request that was answered */
    const ct_value *message; /* the answer, from ct_openai_assistant or ct_anthropic_assistant */
    const uint32_t *prompt;
    size_t n_prompt;
    const uint32_t *generated; /* with the stop id, if one ended it */
    size_t n_generated;
} ct_replay_turn;

/* Keeps a finished turn.  salt: the client's key or anything that must not share turns
 * with others.  Not for answers cut by a stop string, of which the client saw less than
 * was generated.  A turn larger than the store, or without a generation prompt, is not
 * kept; that is no error. */
ct_status ct_replay_put(ct_replay *r, ct_str salt, const ct_replay_turn *turn, ct_error *err);

/* Appends the prompt of a request.  r may be NULL (the plain rendering).  *n_kept gets
 * how many of its ids are those of a stored turn, 0 for the plain rendering. */
ct_status ct_replay_prompt(ct_replay *r, ct_str salt, const ct_chat_template *t,
                           const ct_tokenizer *tokenizer, const ct_value *request, ct_arena *a,
                           ct_ids *out, size_t *n_kept, ct_error *err);

typedef struct ct_replay_stats {
    size_t n_turns, used_bytes, cap_bytes;
    uint64_t n_hits, n_misses, n_evicted;
} ct_replay_stats;

ct_replay_stats ct_replay_get_stats(ct_replay *r);

/* How many ids of a prompt equal old prompt + generated, from the start: what a cache
 * of exact prefixes can use of it. */
size_t ct_replay_common(const ct_ids *prompt, const uint32_t *old_prompt, size_t n_prompt,
                        const uint32_t *generated, size_t n_generated);

#endif
