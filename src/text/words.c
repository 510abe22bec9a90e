#include "text/words.h"

#include <assert.h>

static_assert(sizeof(ct_word_line) == CT_ALIGN, "one cache line");

ct_status ct_words_init(ct_words *w, bool huge, ct_error *err)
{
    size_t n_bytes = 2 * sizeof *w->line << CT_WORDS_2LINES;
    ct_status st = ct_arena_init(&w->arena, n_bytes, err);

    if (st)
        return st;
    if (huge)
        ct_arena_prefer_huge(&w->arena);
    /* Fresh memory of the system: zero, and resident only where words come. */
    w->line = ct_arena_alloc(&w->arena, n_bytes, CT_ALIGN);
    return CT_OK;
}

void ct_words_deinit(ct_words *w)
{
    ct_arena_deinit(&w->arena);
    *w = (ct_words){0};
}

static void write_line(ct_word_line *line, uint64_t head, const ct_word *word, const uint32_t *id,
                       unsigned n_ids)
{
    uint64_t pair[CT_WORD_IDS / 2] = {0};
    uint64_t count = (head | (CT_WORD_ONCE - 1)) + 1;

    /* Whoever is there already may finish: no one waits. */
    if (head & CT_WORD_BUSY ||
        !atomic_compare_exchange_strong_explicit(&line->head, &head, head | CT_WORD_BUSY,
                                                 memory_order_acquire, memory_order_relaxed))
        return;
    /* Pairs with the fence of the reader. */
    atomic_thread_fence(memory_order_release);
    memcpy(pair, id, n_ids * sizeof *id);
    for (int i = 0; i < CT_WORD_BYTES / 8; i++)
        atomic_store_explicit(&line->text[i], word->text[i], memory_order_relaxed);
    for (int i = 0; i < CT_WORD_IDS / 2; i++)
        atomic_store_explicit(&line->id[i], pair[i], memory_order_relaxed);
    atomic_store_explicit(&line->head, count | n_ids << CT_WORD_ID_SHIFT | word->n_bytes,
                          memory_order_release);
}

void ct_words_put(const ct_words *w, const ct_word *word, const uint32_t *id, unsigned n_ids)
{
    ct_word_line *line = ct_words_line(w, word);
    uint64_t first = atomic_load_explicit(&line[0].head, memory_order_relaxed);
    uint64_t second = atomic_load_explicit(&line[1].head, memory_order_relaxed);
    /* A free line, else the one that changed less often: both get their turn. */
    unsigned at = second / CT_WORD_ONCE < first / CT_WORD_ONCE;

    assert(n_ids > 0 && n_ids <= CT_WORD_IDS);
    write_line(line + at, at ? second : first, word, id, n_ids);
}
