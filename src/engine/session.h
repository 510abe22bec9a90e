/* One sequence on one backend: everything between an opened model and its logits, for
 * the commands that serve a single text.  All memory is taken at open.
 * One thread at a time. */
#ifndef CT_ENGINE_SESSION_H
#define CT_ENGINE_SESSION_H

#include "model/forward.h"
#include "model/model.h"

typedef struct ct_session ct_session;

typedef struct ct_session_options {
    const char *backend;  /* see engine/backend.h; NULL: the best present */
    bool round_bf16;      /* round activations where the bf16 reference does */
    unsigned n_threads;   /* 0: one for each CPU */
    uint32_t max_tokens;  /* longest sequence */
    uint32_t chunk;       /* most tokens of one step; 0: CT_SESSION_CHUNK */
    uint32_t logits_rows; /* most rows of one ct_session_logits; 0: what
                             CT_SESSION_LOGITS_BYTES hold.  Never more than a chunk. */
} ct_session_options;

#define CT_SESSION_CHUNK        256
#define CT_SESSION_LOGITS_BYTES ((size_t)64 << 20)

/* model is borrowed.  Refuses a length beyond the model's max_position_embeddings. */
ct_status ct_session_open(ct_session **out, const ct_model *model, const ct_session_options *how,
                          ct_error *err);
void ct_session_close(ct_session *s); /* NULL is fine */

/* Appends n tokens (at most the chunk) and computes their hidden states.  Ids outside
 * the vocabulary and a sequence that would grow too long are refused with nothing
 * changed.  sink may be NULL. */
ct_status ct_session_step(ct_session *s, const uint32_t *ids, uint32_t n,
                          const ct_hidden_sink *sink, ct_error *err);
/* Logits [n, vocab] of n consecutive rows of the last step, from row `first` of it.
 * Fails when one is not finite. */
ct_status ct_session_logits(ct_session *s, uint32_t first, uint32_t n, float *out, ct_error *err);

uint32_t ct_session_length(const ct_session *s); /* tokens so far */
uint32_t ct_session_chunk(const ct_session *s);
uint32_t ct_session_logits_rows(const ct_session *s);
ct_backend *ct_session_backend(ct_session *s); /* for hidden-state sinks; borrowed */
void ct_session_reset(ct_session *s);          /* starts an empty sequence */

#endif
