/* The demo model end to end: each question of eval.jsonl is rendered, tokenised and
 * answered greedily; ids must be those of Hugging Face transformers in float32. */
#include "support.h"

#include <string.h>

#include "base/checked.h"
#include "base/map.h"
#include "engine/engine.h"
#include "text/chat.h"
#include "text/tokenizer.h"

#define DEMO        "models/demo"
#define ARENA_BYTES ((size_t)256 << 20)
#define MAX_TOKENS  2048
#define QUESTIONS   300

/* Sanitised builds are slow: they answer one question in thirty. */
#ifdef __SANITIZE_ADDRESS__
#define STRIDE 30
#else
#define STRIDE 1
#endif

typedef struct question {
    ct_ids want, got;
    char name[64];
} question;

typedef struct fixture {
    ct_model *model;
    ct_tokenizer *tokenizer;
    ct_chat_template chat;
    ct_engine *engine;
    ct_arena arena;
    ct_error err;
    question question[QUESTIONS];
    unsigned asked, same, right;
} fixture;

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

static void ask(fixture *f, const ct_value *line, uint32_t max_new, uint64_t tag)
{
    ct_value conversation = request_of(line, &f->arena);
    ct_ids prompt = {0};
    ct_request r = {
        .max_new = max_new, .sampling = ct_sampling_defaults(&f->model->generation), .tag = tag};
    ct_request_id id;
    ct_buf text;

    ct_buf_init(&text, 1 << 20);
    test_ok(ct_chat_render(f->chat.jinja, ct_buf_str(&f->chat.bos), &conversation, &f->arena, &text,
                           &f->err),
            &f->err);
    test_ok(
        ct_tokenizer_encode(f->tokenizer, ct_buf_str(&text), CT_SPECIAL_MATCH, &prompt, &f->err),
        &f->err);
    r.sampling.temperature = 0;
    r.prompt = prompt.id;
    r.n_prompt = (uint32_t)prompt.n;
    assert_int_equal(ct_engine_submit(f->engine, &r, &id, &f->err), CT_SUBMIT_TAKEN);
    ct_ids_deinit(&prompt);
    ct_buf_deinit(&text);
}

static void ask_line(fixture *f, ct_str json, size_t index)
{
    ct_arena_mark mark = ct_arena_save(&f->arena);
    question *q = &f->question[index];
    const ct_value *line, *ids, *right;

    test_ok(ct_value_parse(&line, "eval.jsonl", json, &f->arena, &f->err), &f->err);
    ids = ct_value_get(line, "ids");
    right = ct_value_get(line, "right");
    assert_non_null(ids);
    assert_non_null(right);
    for (size_t i = 0; i < ids->u.list.n; i++)
        test_ok(ct_ids_add(&q->want, (uint32_t)ids->u.list.item[i].u.integer, &f->err), &f->err);
    snprintf(q->name, sizeof q->name, "%.*s",
             CT_STR_ARG(ct_value_text(ct_value_get(line, "name"))));
    f->asked++;
    f->right += right->u.boolean;
    ask(f, line, (uint32_t)ids->u.list.n, index);
    ct_arena_rewind(&f->arena, mark);
}

/* All questions at once, in batches as the engine makes them. */
static void answer_all(fixture *f)
{
    static ct_reply reply[64];

    while (ct_engine_step(f->engine))
        for (size_t n; (n = ct_engine_poll(f->engine, reply, CT_LEN(reply))) > 0;)
            for (size_t i = 0; i < n; i++)
                if (reply[i].kind == CT_REPLY_TOKEN)
                    test_ok(
                        ct_ids_add(&f->question[reply[i].tag].got, reply[i].u.token.id, &f->err),
                        &f->err);
}

static void compare(fixture *f, question *q)
{
    bool same =
        q->want.n == q->got.n && !memcmp(q->want.id, q->got.id, q->want.n * sizeof *q->want.id);

    if (!same)
        print_message("%s: ids differ\n", q->name);
    f->same += same;
    ct_ids_deinit(&q->want);
    ct_ids_deinit(&q->got);
}

static void open_demo(fixture *f)
{
    const ct_engine_options how = {.ctx = MAX_TOKENS, .slots = 16, .queue = QUESTIONS};

    test_ok(ct_arena_init(&f->arena, ARENA_BYTES, &f->err), &f->err);
    test_ok(ct_model_open(&f->model, DEMO, &f->err), &f->err);
    test_ok(ct_tokenizer_open(&f->tokenizer, DEMO, &f->err), &f->err);
    test_ok(ct_chat_template_open(&f->chat, DEMO, NULL, &f->err), &f->err);
    test_ok(ct_engine_create(&f->engine, f->model, &how, &f->err), &f->err);
}

static void close_demo(fixture *f)
{
    ct_engine_destroy(f->engine);
    ct_chat_template_close(&f->chat);
    ct_tokenizer_destroy(f->tokenizer);
    ct_model_close(f->model);
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

        assert_true(index < QUESTIONS);
        if (index % STRIDE == 0)
            ask_line(&f, (ct_str){rest.p, n}, index);
        n += end != NULL;
        rest = (ct_str){rest.p + n, rest.n - n};
    }
    ct_map_close(&map);
    answer_all(&f);
    for (size_t i = 0; i < index; i += STRIDE)
        compare(&f, &f.question[i]);
    print_message("demo: %u asked, %u with the reference's ids, reference right on %u\n", f.asked,
                  f.same, f.right);
    assert_int_equal(index, QUESTIONS);
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
