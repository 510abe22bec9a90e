/* Lists of token ids, beyond what tokenizer.h shows.  One thread at a time. */
#ifndef CT_TEXT_IDS_H
#define CT_TEXT_IDS_H

#include "text/tokenizer.h"

/* Room for n more. */
ct_status ct_ids_reserve(ct_ids *ids, size_t n, ct_error *err);
/* All n or none.  id must not point into the list. */
ct_status ct_ids_append(ct_ids *ids, const uint32_t *id, size_t n, ct_error *err);

#endif
