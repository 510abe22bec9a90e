/* The decoder: Gemma 4's text stack over a backend's operations.
 *
 * One step takes a ragged batch of rows (tokens of any sequences, each sequence's rows
 * ascending by position), writes their keys and values, and leaves the final hidden
 * state of every row in the workspace.  Logits are then asked for by row.  The KV
 * pages of every row must be resident and its earlier positions written.  Owned and
 * called by one thread; allocates only in ct_forward_create. */
#ifndef CT_MODEL_FORWARD_H
#define CT_MODEL_FORWARD_H

#include "format/config.h"
#include "model/weights.h"
#include "ops/ops.h"

typedef struct ct_forward ct_forward;

typedef struct ct_forward_limits {
    uint32_t rows;        /* of one step */
    uint32_t keys;        /* of the longest sequence */
    uint32_t logits_rows; /* of one ct_forward_logits */
} ct_forward_limits;

/* config, weights and backend are borrowed; the workspace belongs to the backend, which
 * serves one forward in its life.  weights NULL: workspace only, for plans. */
ct_status ct_forward_create(ct_forward **out, const ct_config *config, const ct_weights *weights,
                            ct_backend *backend, const ct_forward_limits *limits, ct_error *err);
void ct_forward_destroy(ct_forward *f);

/* Sees the hidden states on the way, as Hugging Face numbers them: index 0 is the scaled
 * embedding, index l the input of layer l, index n_layers the final-normed output.
 * x is a buffer of the backend, [T,H], valid during the call. */
typedef ct_status ct_hidden_fn(void *ctx, uint32_t index, const void *x, ct_error *err);

typedef struct ct_hidden_sink {
    ct_hidden_fn *fn;
    void *ctx;
} ct_hidden_sink;

/* kv: [n_layers].  sink may be NULL; its error ends the step. */
ct_status ct_forward_step(ct_forward *f, const ct_rows *rows, const ct_kv_layer *kv,
                          const ct_hidden_sink *sink, ct_error *err);

/* Logits [n, vocab] of n rows of the last step, by their index in it. */
ct_status ct_forward_logits(ct_forward *f, const uint32_t *index, uint32_t n, float *out,
                            ct_error *err);

#endif
