/* Reading of the list of merges in tokenizer.json.  Part of loading; one thread. */
#ifndef CT_TEXT_MERGES_READ_H
#define CT_TEXT_MERGES_READ_H

#include "base/json.h"
#include "text/merges.h"

/* Everything behind the opening bracket.  v is sealed and its index still there; the
 * tables come from a.  Messages begin with the reader's name. */
ct_status ct_merges_read(ct_merges *m, const ct_vocab *v, ct_json *j, ct_arena *a,
                         ct_arena *scratch, ct_error *err);

#endif
