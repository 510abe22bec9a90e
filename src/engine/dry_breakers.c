#include "engine/dry_breakers.h"

#include "base/checked.h"

#define MAX_TOKEN_BYTES ((size_t)1 << 16)

const ct_str ct_dry_default_breakers[4] = {{"\n", 1}, {":", 1}, {"\"", 1}, {"*", 1}};

static ct_status check_strings(const ct_str *strings, size_t n, ct_error *err)
{
    if (n > CT_MAX_DRY_BREAKERS)
        return ct_fail(err, CT_ELIMIT, "dry_sequence_breakers: %zu strings, at most %d", n,
                       CT_MAX_DRY_BREAKERS);
    for (size_t i = 0; i < n; i++)
        if (strings[i].n == 0)
            return ct_fail(err, CT_EINVAL,
                           "dry_sequence_breakers[%zu]: an empty string breaks nothing", i);
    return CT_OK;
}

static bool contains_any(ct_str text, const ct_str *strings, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (text.n && memmem(text.p, text.n, strings[i].p, strings[i].n))
            return true;
    return false;
}

ct_status ct_dry_breaker_mask(uint32_t *mask, uint32_t vocab, const ct_tokenizer *t,
                              const ct_str *strings, size_t n, ct_error *err)
{
    size_t n_ids = ct_min_size(vocab, ct_tokenizer_vocab(t));
    ct_status st = check_strings(strings, n, err);
    ct_buf text;

    ct_buf_init(&text, MAX_TOKEN_BYTES);
    for (uint32_t id = 0; id < n_ids && !st; id++) {
        ct_buf_clear(&text);
        if (!ct_tokenizer_piece(t, id).n)
            continue;
        st = ct_tokenizer_decode(t, &id, 1, true, &text, err);
        if (!st && contains_any(ct_buf_str(&text), strings, n))
            ct_mask_add(mask, id);
    }
    ct_buf_deinit(&text);
    return st;
}
