/* Sequence breakers of DRY, from text to ids. */
#ifndef CT_ENGINE_DRY_BREAKERS_H
#define CT_ENGINE_DRY_BREAKERS_H

#include "engine/sampling.h"
#include "text/tokenizer.h"

#define CT_MAX_DRY_BREAKERS 32

/* What text-generation-webui and llama.cpp break at when a request does not say. */
extern const ct_str ct_dry_default_breakers[4];

/* Adds to mask[CT_MASK_WORDS(vocab)] every id of the tokenizer whose text contains one of
 * the strings.  It reads the whole vocabulary, so keep the result.  Refuses, as CT_EINVAL or
 * CT_ELIMIT, an empty string and more than the limit. */
ct_status ct_dry_breaker_mask(uint32_t *mask, uint32_t vocab, const ct_tokenizer *t,
                              const ct_str *strings, size_t n, ct_error *err);

#endif
