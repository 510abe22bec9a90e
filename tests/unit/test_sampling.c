/* engine/sampling and engine/dry_breakers: what a request may say. */
#include "support.h"

#include <math.h>
#include <string.h>

#include "base/checked.h"
#include "engine/dry_breakers.h"
#include "engine/sampler.h"

#define V 100

/* --- check ----------------------------------------------------------------------- */

static void refuse(const ct_sampling *p, ct_status want, const char *text)
{
    ct_error err = {0};

    assert_int_equal(ct_sampling_check(p, V, &err), want);
    assert_string_equal(err.text, text);
}

static void neutral_values_pass(void **state)
{
    const ct_sampling p = ct_sampling_neutral();
    ct_error err;

    (void)state;
    test_ok(ct_sampling_check(&p, V, &err), &err);
    test_ok(ct_sampling_check(&p, 1, &err), &err);
}

/* Both ends of each range, just beyond, and NaN. */
static void numbers_have_ranges(void **state)
{
    ct_sampling p = ct_sampling_neutral();
    const struct {
        const char *name;
        double *field, min, max;
        bool above_min;
    } row[] = {
        {"temperature", &p.temperature, 0, 100, false},
        {"top_p", &p.top_p, 0, 1, false},
        {"min_p", &p.min_p, 0, 1, false},
        {"typical_p", &p.typical_p, 0, 1, true},
        {"repetition_penalty", &p.repetition_penalty, 0, 100, true},
        {"presence_penalty", &p.presence_penalty, -2, 2, false},
        {"frequency_penalty", &p.frequency_penalty, -2, 2, false},
        {"dry_multiplier", &p.dry_multiplier, 0, 100, false},
        {"dry_base", &p.dry_base, 1, 100, false},
    };
    ct_error err;

    (void)state;
    for (size_t i = 0; i < CT_LEN(row); i++) {
        const double bad[] = {row[i].above_min ? row[i].min : row[i].min - 0.5, row[i].max + 0.5,
                              NAN, INFINITY, -INFINITY};
        double neutral = *row[i].field;

        for (size_t j = 0; j < CT_LEN(bad); j++) {
            char text[200];

            *row[i].field = bad[j];
            snprintf(text, sizeof text,
                     row[i].above_min ? "%s: %g is not above %g and at most %g"
                                      : "%s: %g is not from %g to %g",
                     row[i].name, bad[j], row[i].min, row[i].max);
            refuse(&p, CT_EINVAL, text);
        }
        *row[i].field = row[i].max;
        test_ok(ct_sampling_check(&p, V, &err), &err);
        *row[i].field = row[i].above_min ? 1e-9 : row[i].min;
        test_ok(ct_sampling_check(&p, V, &err), &err);
        *row[i].field = neutral;
    }
}

static void integers_have_ranges(void **state)
{
    ct_sampling p = ct_sampling_neutral();

    (void)state;
    p.dry_allowed_length = 0;
    refuse(&p, CT_EINVAL, "dry_allowed_length: 0 is not from 1 to 65536");
    p = ct_sampling_neutral();
    p.logprobs = true;
    p.top_logprobs = 21;
    refuse(&p, CT_EINVAL, "top_logprobs: 21 is not from 0 to 20");
    p.logprobs = false;
    p.top_logprobs = 5;
    refuse(&p, CT_EINVAL, "top_logprobs: 5, but logprobs is off");
}

static void lists_are_bounded_and_inside_the_vocabulary(void **state)
{
    static const uint32_t ids[CT_MAX_REQUEST_IDS + 1] = {3, V};
    static const ct_logit_bias bias[CT_MAX_LOGIT_BIAS + 1] = {{3, 1}, {V, 1}};
    const ct_logit_bias heavy = {3, 100.5f}, nan = {3, NAN};
    ct_sampling p = ct_sampling_neutral();

    (void)state;
    p.suppress_ids = p.eos_ids = p.stop_ids = ids;
    p.logit_bias = bias;
    p.n_suppress_ids = 2;
    refuse(&p, CT_EINVAL, "suppress_tokens[1]: id 100 is outside the vocabulary of 100");
    p.n_suppress_ids = CT_LEN(ids);
    refuse(&p, CT_ELIMIT, "suppress_tokens: 1025 ids, at most 1024");
    p.n_suppress_ids = 1;
    p.n_eos_ids = 2;
    refuse(&p, CT_EINVAL, "eos_token_id[1]: id 100 is outside the vocabulary of 100");
    p.n_eos_ids = 1;
    p.n_stop_ids = 2;
    refuse(&p, CT_EINVAL, "stop_token_ids[1]: id 100 is outside the vocabulary of 100");
    p.n_stop_ids = 1;
    p.n_logit_bias = 2;
    refuse(&p, CT_EINVAL, "logit_bias[1]: id 100 is outside the vocabulary of 100");
    p.n_logit_bias = CT_LEN(bias);
    refuse(&p, CT_ELIMIT, "logit_bias: 1025 ids, at most 1024");
    p.n_logit_bias = 1;
    p.logit_bias = &heavy;
    refuse(&p, CT_EINVAL, "logit_bias: 100.5 of id 3 is not from -100 to 100");
    p.logit_bias = &nan;
    refuse(&p, CT_EINVAL, "logit_bias: nan of id 3 is not from -100 to 100");
}

static void a_state_needs_room_for_min_tokens(void **state)
{
    ct_sampling p = ct_sampling_neutral();
    ct_sample_state *st;
    ct_error err;

    (void)state;
    p.min_tokens = 11;
    assert_int_equal(ct_sample_state_create(&st, &p, V, 10, &err), CT_EINVAL);
    assert_string_equal(err.text, "min_tokens: 11, the sequence has at most 10 tokens");
    p.top_p = 2;
    assert_int_equal(ct_sample_state_create(&st, &p, V, 10, &err), CT_EINVAL);
    assert_string_equal(err.text, "top_p: 2 is not from 0 to 1");
    ct_sample_state_destroy(NULL);
    ct_sampler_destroy(NULL);
}

/* The state keeps what it was given, whatever becomes of the caller's lists. */
static void a_state_copies_its_lists(void **state)
{
    ct_sampling p = ct_sampling_neutral();
    uint32_t ids[3] = {1, 2, 3};
    ct_logit_bias bias = {4, 5};
    const ct_sampling *kept;
    ct_sample_state *st;
    ct_error err;

    (void)state;
    p.suppress_ids = ids;
    p.eos_ids = ids + 1;
    p.stop_ids = ids + 2;
    p.n_suppress_ids = p.n_eos_ids = p.n_stop_ids = p.n_logit_bias = 1;
    p.logit_bias = &bias;
    test_ok(ct_sample_state_create(&st, &p, V, 10, &err), &err);
    memset(ids, 0xff, sizeof ids);
    memset(&bias, 0xff, sizeof bias);
    kept = ct_sample_state_params(st);
    assert_int_equal(kept->suppress_ids[0], 1);
    assert_int_equal(kept->eos_ids[0], 2);
    assert_int_equal(kept->stop_ids[0], 3);
    assert_int_equal(kept->logit_bias[0].id, 4);
    ct_sample_state_destroy(st);
}

/* --- defaults -------------------------------------------------------------------- */

static ct_sampling defaults_of(const char *text, ct_generation_config *g)
{
    ct_error err;

    test_ok(ct_generation_config_parse(g, "g", ct_str_of(text), &err), &err);
    return ct_sampling_defaults(g);
}

static void defaults_come_from_the_checkpoint(void **state)
{
    ct_generation_config g;
    ct_sampling p = defaults_of("{\"do_sample\":true,\"eos_token_id\":[1,50],\"temperature\":0.7,"
                                "\"top_k\":64,\"top_p\":0.95,\"min_p\":0.05,\"typical_p\":0.8,"
                                "\"repetition_penalty\":1.1,\"suppress_tokens\":[9]}",
                                &g);

    (void)state;
    assert_true(p.temperature == 0.7 && p.top_k == 64 && p.top_p == 0.95 && p.min_p == 0.05);
    assert_true(p.typical_p == 0.8 && p.repetition_penalty == 1.1);
    assert_int_equal(p.n_eos_ids, 2);
    assert_int_equal(p.eos_ids[1], 50);
    assert_int_equal(p.n_suppress_ids, 1);
    assert_int_equal(p.suppress_ids[0], 9);
}

static void absent_fields_are_neutral(void **state)
{
    const ct_sampling n = ct_sampling_neutral();
    ct_generation_config g;
    ct_sampling p = defaults_of("{\"eos_token_id\":1,\"temperature\":0.7}", &g);

    (void)state;
    assert_true(p.temperature == 0); /* do_sample is absent */
    assert_true(p.top_k == n.top_k && p.top_p == n.top_p && p.min_p == n.min_p);
    assert_true(p.typical_p == n.typical_p && p.repetition_penalty == n.repetition_penalty);
    p = defaults_of("{\"eos_token_id\":1,\"do_sample\":true}", &g);
    assert_true(p.temperature == 1);
}

/* --- breakers -------------------------------------------------------------------- */

static void breakers_are_ids_whose_text_holds_one(void **state)
{
    const ct_str colon = CT_STR(":"), empty = {0};
    static const ct_str many[CT_MAX_DRY_BREAKERS + 1];
    uint32_t *mask, vocab, n_default = 0, n_colon = 0;
    ct_tokenizer *t;
    ct_error err;

    (void)state;
    test_ok(ct_tokenizer_open(&t, "models/demo", &err), &err);
    vocab = ct_tokenizer_vocab(t);
    mask = calloc(2 * CT_MASK_WORDS(vocab), sizeof *mask);
    assert_non_null(mask);
    test_ok(ct_dry_breaker_mask(mask, vocab, t, ct_dry_default_breakers,
                                CT_LEN(ct_dry_default_breakers), &err),
            &err);
    test_ok(ct_dry_breaker_mask(mask + CT_MASK_WORDS(vocab), vocab, t, &colon, 1, &err), &err);
    for (uint32_t id = 0; id < vocab; id++) {
        ct_str piece = ct_tokenizer_piece(t, id);
        bool want = memchr(piece.p, ':', piece.n) && !ct_tokenizer_is_special(t, id);

        if (strncmp(piece.p, "<0x", 3) != 0) /* byte pieces are text by their value */
            assert_int_equal(ct_mask_has(mask + CT_MASK_WORDS(vocab), id), want);
        n_default += ct_mask_has(mask, id);
        n_colon += ct_mask_has(mask + CT_MASK_WORDS(vocab), id);
    }
    assert_true(n_colon > 0 && n_default > n_colon && n_default < vocab / 2);

    assert_int_equal(ct_dry_breaker_mask(mask, vocab, t, &empty, 1, &err), CT_EINVAL);
    assert_string_equal(err.text, "dry_sequence_breakers[0]: an empty string breaks nothing");
    assert_int_equal(ct_dry_breaker_mask(mask, vocab, t, many, CT_LEN(many), &err), CT_ELIMIT);
    assert_string_equal(err.text, "dry_sequence_breakers: 33 strings, at most 32");
    free(mask);
    ct_tokenizer_destroy(t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(neutral_values_pass),
        cmocka_unit_test(numbers_have_ranges),
        cmocka_unit_test(integers_have_ranges),
        cmocka_unit_test(lists_are_bounded_and_inside_the_vocabulary),
        cmocka_unit_test(a_state_needs_room_for_min_tokens),
        cmocka_unit_test(a_state_copies_its_lists),
        cmocka_unit_test(defaults_come_from_the_checkpoint),
        cmocka_unit_test(absent_fields_are_neutral),
        cmocka_unit_test(breakers_are_ids_whose_text_holds_one),
    };

    return cmocka_run_group_tests_name("sampling", tests, NULL, NULL);
}
