/* The demo model end to end: each question of eval.jsonl is rendered, tokenised and
 * answered greedily; ids must be those of Hugging Face transformers in float32. */
#include "support.h"

#include <string.h>

#include "base/checked.h"
#include "base/map.h"
#include "engine/generate.h"
#include "text/chat.h"
#include "text/tokenizer.h"

#define DEMO        "models/demo"
#define ARENA_BYTES ((size_t)256 << 20)
#define MAX_TOKENS  2048

/* Sanitised builds are slow: they answer one question in thirty. */
#ifdef __SANITIZE_ADDRESS__
#define STRIDE 30
#else
#define STRIDE 1
#endif

typedef struct fixture {
    ct_model *model;
    ct_tokenizer *tokenizer;
    ct_chat_template chat;
    ct_session *session;
    ct_arena arena;
    ct_ids answer;
    ct_error err;
    unsigned asked, same, right;
} fixture;

static bool keep_id(void *ctx, uint32_t id)
{
    fixture *f = ctx;

    return ct_ids_add(&f->answer, id, &f->err) == CT_OK;
}

/* The keys of a line that make up the request. */
static ct_value request_of(const ct_value *line, ct_arena *a)
{
    static const char *const keys[] = {"messages", "tools", "enable_thinking"};
    ct_map_entry *e = ct_arena_zalloc(a, CT_LEN(keys) + 1, sizeof *e);
    const ct_value *yes;
    ct_error err;
    ct_value out;
    size_t n = 0;

    test_ok(ct_value_parse(&yes, "test", CT_STR("true"), a, &err), &err);
    e[n++] = (ct_map_entry){CT_STR("add_generation_prompt"), *yes};
    for (size_t i = 0; i < CT_LEN(keys); i++) {
        const ct_value *v = ct_value_get(line, keys[i]);

        if (v)
            e[n++] = (ct_map_entry){ct_str_of(keys[i]), *v};
    }
    assert_true(ct_value_build_map(&out, e, n, a));
    return out;
}

static void answer(fixture *f, const ct_value *line, uint32_t max_new)
{
    ct_value request = request_of(line, &f->arena);
    ct_ids prompt = {0};
    ct_generate_result result;
    ct_generate_args args = {.max_new = max_new,
                             .sampling = ct_sampling_defaults(&f->model->generation),
                             .on_token = keep_id,
                             .ctx = f};
    ct_buf text;

    ct_buf_init(&text, 1 << 20);
    test_ok(ct_chat_render(f->chat.jinja, ct_buf_str(&f->chat.bos), &request, &f->arena, &text,
                           &f->err),
            &f->err);
    test_ok(
        ct_tokenizer_encode(f->tokenizer, ct_buf_str(&text), CT_SPECIAL_MATCH, &prompt, &f->err),
        &f->err);
    args.sampling.temperature = 0;
    args.prompt = prompt.id;
    args.n_prompt = (uint32_t)prompt.n;
    f->answer.n = 0;
    ct_session_reset(f->session);
    test_ok(ct_generate(f->session, f->model, &args, &result, &f->err), &f->err);
    ct_ids_deinit(&prompt);
    ct_buf_deinit(&text);
}

static void check_line(fixture *f, ct_str json)
{
    ct_arena_mark mark = ct_arena_save(&f->arena);
    const ct_value *line, *ids, *right;
    bool same;

    test_ok(ct_value_parse(&line, "eval.jsonl", json, &f->arena, &f->err), &f->err);
    ids = ct_value_get(line, "ids");
    right = ct_value_get(line, "right");
    assert_non_null(ids);
    assert_non_null(right);
    answer(f, line, (uint32_t)ids->u.list.n);
    same = f->answer.n == ids->u.list.n;
    for (size_t i = 0; same && i < f->answer.n; i++)
        same = ids->u.list.item[i].u.integer == (int64_t)f->answer.id[i];
    if (!same)
        print_message("%.*s: ids differ\n", CT_STR_ARG(ct_value_text(ct_value_get(line, "name"))));
    f->asked++;
    f->same += same;
    f->right += right->u.boolean;
    ct_arena_rewind(&f->arena, mark);
}

static void open_demo(fixture *f)
{
    const ct_session_options how = {.max_tokens = MAX_TOKENS};

    test_ok(ct_arena_init(&f->arena, ARENA_BYTES, &f->err), &f->err);
    test_ok(ct_model_open(&f->model, DEMO, &f->err), &f->err);
    test_ok(ct_tokenizer_open(&f->tokenizer, DEMO, &f->err), &f->err);
    test_ok(ct_chat_template_open(&f->chat, DEMO, NULL, &f->err), &f->err);
    test_ok(ct_session_open(&f->session, f->model, &how, &f->err), &f->err);
}

static void close_demo(fixture *f)
{
    ct_session_close(f->session);
    ct_chat_template_close(&f->chat);
    ct_tokenizer_destroy(f->tokenizer);
    ct_model_close(f->model);
    ct_ids_deinit(&f->answer);
    ct_arena_deinit(&f->arena);
}

static void greedy_ids_equal_the_reference_on_99_percent(void **state)
{
    static fixture f;
    size_t index = 0;
    ct_str rest;
    ct_map map;

    (void)state;
    open_demo(&f);
    test_ok(ct_map_open(&map, DEMO "/eval.jsonl", &f.err), &f.err);
    for (rest = ct_map_str(&map); rest.n; index++) {
        const char *end = memchr(rest.p, '\n', rest.n);
        size_t n = end ? (size_t)(end - rest.p) : rest.n;

        if (index % STRIDE == 0)
            check_line(&f, (ct_str){rest.p, n});
        n += end != NULL;
        rest = (ct_str){rest.p + n, rest.n - n};
    }
    ct_map_close(&map);
    print_message("demo: %u asked, %u with the reference's ids, reference right on %u\n", f.asked,
                  f.same, f.right);
    assert_int_equal(index, 300);
    assert_true(f.same * 100 >= f.asked * 99);
    assert_true(f.right * 100 >= f.asked * 90);
    close_demo(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(greedy_ids_equal_the_reference_on_99_percent),
    };

    return cmocka_run_group_tests_name("demo", tests, NULL, NULL);
}
