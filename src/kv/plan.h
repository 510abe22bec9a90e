/* How many pages of which size: the arithmetic of ct_kv_create, by itself. */
#ifndef CT_KV_PLAN_H
#define CT_KV_PLAN_H

#include "kv/kv.h"

typedef struct ct_kv_plan {
    ct_kv_bytes bytes;
    uint32_t page_tokens;
    uint32_t max_blocks;    /* of one sequence */
    uint32_t window_blocks; /* that a row at the start of a page sees before it */
    uint32_t decode_tokens;
    uint32_t most_sliding;  /* sliding pages of one sequence at once */
    uint32_t most_decoding; /* and past its prompt */
} ct_kv_plan;

ct_status ct_kv_plan_make(ct_kv_plan *out, const ct_config *config, const ct_kv_shape *shape,
                          ct_error *err);

static inline uint32_t ct_kv_blocks(uint64_t tokens, uint32_t page_tokens)
{
    return (uint32_t)(tokens / page_tokens + (tokens % page_tokens != 0));
}

#endif
