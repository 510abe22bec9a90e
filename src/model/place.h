/* Weights as a backend holds them: every view of a checkpoint given to its `place`. */
#ifndef CT_MODEL_PLACE_H
#define CT_MODEL_PLACE_H

#include "format/config.h"
#include "model/weights.h"

/* out's tables are a copy, in one heap block that the caller frees through *block.  Each
 * view is placed once; a backend that reads checkpoints as they are keeps them all. */
ct_status ct_weights_place(ct_weights *out, void **block, const ct_weights *weights,
                           const ct_config *config, ct_backend *backend, ct_error *err);

#endif
