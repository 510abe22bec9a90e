/* The table of words: what is found is what was put, whoever writes meanwhile. */
#include "support.h"

#include "text/words.h"

#include <pthread.h>

#define N_WORDS 300000

static ct_error err;

static int setup(void **ctx)
{
    ct_words *w = calloc(1, sizeof *w);

    *ctx = w;
    return w && !ct_words_init(w, false, &err) ? 0 : -1;
}

static int teardown(void **ctx)
{
    ct_words_deinit(*ctx);
    free(*ctx);
    return 0;
}

/* Bytes on the heap that end where the word does: reading behind them is seen by the
 * sanitizers. */
static ct_word word_of(const char *p, size_t n)
{
    char *copy = malloc(n);
    ct_word word;

    memcpy(copy, p, n);
    ct_word_init(&word, copy, n, n);
    free(copy);
    return word;
}

static void finds_what_was_put(void **ctx)
{
    static const char text[] = "0123456789abcdefghijklmnopqrstuv";
    const uint32_t id[CT_WORD_IDS] = {1, 2, 3, 4, 5, (1u << 20) - 1};
    uint32_t got[CT_WORD_IDS];

    for (size_t n = 1; n <= CT_WORD_BYTES; n++) {
        ct_word word = word_of(text, n);
        unsigned n_ids = 1 + (unsigned)n % CT_WORD_IDS;

        assert_int_equal(ct_words_find(*ctx, &word, got), 0);
        ct_words_put(*ctx, &word, id, n_ids);
        assert_int_equal(ct_words_find(*ctx, &word, got), n_ids);
        assert_memory_equal(got, id, n_ids * sizeof *id);
    }
}

/* Zero bytes behind the end are not part of a word, zero bytes in it are. */
static void tells_lengths_apart(void **ctx)
{
    const uint32_t id[CT_WORD_IDS] = {7};
    uint32_t got[CT_WORD_IDS];

    for (size_t n = 1; n < 20; n++) {
        ct_word word = word_of("\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0", n);

        assert_int_equal(ct_words_find(*ctx, &word, got), 0);
        ct_words_put(*ctx, &word, id, 1);
    }
}

/* Both ways of loading a word: with room to read behind it and without. */
static void reads_only_the_word(void **ctx)
{
    static const char text[] = "word and what follows it, long enough";
    ct_word near_end = word_of(text, 4), inside;

    (void)ctx;
    ct_word_init(&inside, text, 4, sizeof text);
    assert_int_equal(near_end.hash, inside.hash);
    assert_memory_equal(near_end.text, inside.text, sizeof inside.text);
}

/* Word i, and ids that follow from it. */
static ct_word numbered(uint32_t i, uint32_t id[CT_WORD_IDS], unsigned *n_ids)
{
    char text[CT_WORD_BYTES] = "word";

    memcpy(text + 4, &i, sizeof i);
    *n_ids = 1 + i % CT_WORD_IDS;
    for (unsigned k = 0; k < CT_WORD_IDS; k++)
        id[k] = i * 31 + k;
    return word_of(text, 8 + i % 20);
}

/* NULL after a wrong answer: assertions belong to the main thread. */
static void *put_and_find(void *ctx)
{
    static char right;

    for (uint32_t i = 0; i < N_WORDS; i++) {
        uint32_t id[CT_WORD_IDS], got[CT_WORD_IDS];
        unsigned n_ids, n_got;
        /* Few words, so that threads meet; now and then many, so that words are displaced. */
        ct_word word = numbered(i % 7 ? i % 61 : i, id, &n_ids);

        n_got = ct_words_find(ctx, &word, got);
        if (n_got && (n_got != n_ids || memcmp(got, id, n_ids * sizeof *id) != 0))
            return NULL;
        if (!n_got || i % 3 == 0)
            ct_words_put(ctx, &word, id, n_ids);
    }
    return &right;
}

static void threads_never_see_half_a_word(void **ctx)
{
    pthread_t thread[4];

    for (int i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&thread[i], NULL, put_and_find, *ctx), 0);
    for (int i = 0; i < 4; i++) {
        void *right;

        assert_int_equal(pthread_join(thread[i], &right), 0);
        assert_non_null(right);
    }
}

static void keeps_the_newest_when_full(void **ctx)
{
    uint32_t id[CT_WORD_IDS], got[CT_WORD_IDS];

    for (uint32_t i = 0; i < N_WORDS; i++) {
        unsigned n_ids;
        ct_word word = numbered(i, id, &n_ids);

        ct_words_put(*ctx, &word, id, n_ids);
        assert_int_equal(ct_words_find(*ctx, &word, got), n_ids);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(finds_what_was_put, setup, teardown),
        cmocka_unit_test_setup_teardown(tells_lengths_apart, setup, teardown),
        cmocka_unit_test_setup_teardown(reads_only_the_word, setup, teardown),
        cmocka_unit_test_setup_teardown(threads_never_see_half_a_word, setup, teardown),
        cmocka_unit_test_setup_teardown(keeps_the_newest_when_full, setup, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
