/* text/replay: the next prompt begins with this prompt and what was generated. */
#include "support.h"

#include <string.h>

#include "text/openai_messages.h"
#include "text/replay.h"

#define ARENA_BYTES ((size_t)64 << 20)
#define MAX_TURNS   5

static const char *const files[] = {
    "data/templates/chat_template.large.r1-2026-04-02.jinja",
    "data/templates/chat_template.large.r2-2026-04-10.jinja",
    "data/templates/chat_template.large.r3-2026-04-28.jinja",
    "data/templates/chat_template.large.r4-2026-05-18.jinja",
    "data/templates/chat_template.large.r5-2026-07-09.jinja",
};

typedef struct turn {
    const char *generated; /* as text with control tokens */
    const char *answer;    /* the message as the client sends it back */
    const char *next;      /* the messages it adds, "" for none */
} turn;

typedef struct talk {
    const char *name, *options, *first;
    turn turn[MAX_TURNS];
    /* Text beside calls is printed behind their results by the template alone. */
    bool text_and_calls;
} talk;

#define TOOLS                                                                                      \
    "\"tools\":[{\"type\":\"function\",\"function\":{\"name\":\"get\",\"description\":\"Gets.\","  \
    "\"parameters\":{\"type\":\"object\",\"properties\":{\"a\":{\"type\":\"integer\"}}}}}],"
#define CALL(a) "<|tool_call>call:get{a:" a "}<tool_call|>"
#define CALLED(i, a)                                                                               \
    "{\"id\":\"" i "\",\"type\":\"function\",\"function\":{\"name\":\"get\",\"arguments\":"        \
    "\"{\\\"a\\\": " a "}\"}}"
#define RESULT(i, text) "{\"role\":\"tool\",\"tool_call_id\":\"" i "\",\"content\":\"" text "\"}"
#define USER(text)      "{\"role\":\"user\",\"content\":\"" text "\"}"
#define SAID(text)      "{\"role\":\"assistant\",\"content\":\"" text "\"}"

static const talk talks[] = {
    {.name = "chat",
     .options = "",
     .first = USER("Hi"),
     .turn = {{"  Hello there. <turn|>", SAID("  Hello there. "), USER("More")},
              {"Two\nlines\n\n<turn|>", SAID("Two\\nlines\\n\\n"), USER("And?")},
              {"<turn|>", SAID(""), USER("Say")},
              {"cut sho", SAID("cut sho"), USER("Go on")},
              {"end<eos>", SAID("end"), USER("x")}}},
    {.name = "thinking, thoughts echoed",
     .options = "\"enable_thinking\":true,",
     .first = USER("Hi"),
     .turn = {{"<|channel>thought\nhm  \n<channel|>Hello.<turn|>",
               "{\"role\":\"assistant\",\"content\":\"Hello.\",\"reasoning_content\":\"hm  \"}",
               USER("More")},
              {"No thought.<turn|>", SAID("No thought."), USER("x")}}},
    {.name = "thinking, thoughts dropped by the client",
     .options = "\"enable_thinking\":true,",
     .first = USER("Hi"),
     .turn = {{"<|channel>thought\nhm\n<channel|> Hello.<turn|>", SAID(" Hello."), USER("More")},
              {"<|channel>thought\n\n<channel|>Yes<turn|>", SAID("Yes"), USER("x")}}},
    {.name = "call, result, answer",
     .options = TOOLS,
     .first = USER("Get 1"),
     .turn = {{CALL("1") "<|tool_response>",
               "{\"role\":\"assistant\",\"content\":null,\"tool_calls\":[" CALLED("i", "1") "]}",
               RESULT("i", "one")},
              {"It is one. <turn|>", SAID("It is one. "), USER("Thanks")},
              {"Welcome<turn|>", SAID("Welcome"), USER("x")}}},
    {.name = "parallel calls",
     .options = TOOLS,
     .first = USER("Get 1, 2"),
     .turn = {{CALL("1") CALL("2") "<|tool_response>",
               "{\"role\":\"assistant\",\"tool_calls\":[" CALLED("i", "1") "," CALLED("j",
                                                                                      "2") "]}",
               RESULT("i", "one") "," RESULT("j", "two")},
              {"Both.<turn|>", SAID("Both."), USER("x")}}},
    {.name = "thinking, two calls in turn",
     .options = TOOLS "\"enable_thinking\":true,",
     .first = USER("Get 1, then 2"),
     .turn = {{"<|channel>thought\nfirst\n<channel|>" CALL("1") "<|tool_response>",
               "{\"role\":\"assistant\",\"reasoning_content\":\"first\",\"tool_calls\":[" CALLED(
                   "i", "1") "]}",
               RESULT("i", "one")},
              {"second\n<channel|>" CALL("2") "<|tool_response>",
               "{\"role\":\"assistant\",\"reasoning_content\":\"second\",\"tool_calls\":[" CALLED(
                   "j", "2") "]}",
               RESULT("j", "two")},
              {"done\n<channel|>Both.<turn|>", SAID("Both."), USER("x")}}},
    {.name = "text before a call",
     .options = TOOLS,
     .text_and_calls = true,
     .first = USER("Get 1"),
     .turn = {{"Let me see. " CALL("1") "<|tool_response>",
               "{\"role\":\"assistant\",\"content\":\"Let me see. \",\"tool_calls\":[" CALLED(
                   "i", "1") "]}",
               RESULT("i", "one")},
              {"One.<turn|>", SAID("One."), USER("x")}}},
    {.name = "answer is the last message",
     .options = "",
     .first = USER("Hi"),
     .turn = {{"Hello<turn|>", SAID("Hello"), ""}}},
};

static ct_tokenizer *tokenizer;

static int open_tokenizer(void **state)
{
    ct_error err;

    (void)state;
    return ct_tokenizer_open(&tokenizer, "models/demo", &err) != CT_OK;
}

static int close_tokenizer(void **state)
{
    (void)state;
    ct_tokenizer_destroy(tokenizer);
    return 0;
}

static void encode(ct_ids *out, const char *text)
{
    ct_error err;

    test_ok(ct_tokenizer_encode(tokenizer, ct_str_of(text), CT_SPECIAL_MATCH, out, &err), &err);
}

static ct_value parse_request(const char *options, const char *messages, ct_arena *a)
{
    const ct_value *body;
    ct_chat_request r;
    ct_error err;
    ct_buf b;

    ct_buf_init(&b, 1 << 20);
    ct_buf_addf(&b, "{%s\"messages\":[%s]}", options, messages);
    test_ok(ct_value_parse(&body, "request", ct_buf_str(&b), a, &err), &err);
    ct_buf_deinit(&b);
    test_ok(ct_openai_request(&r, body, a, &err), &err);
    return r.render;
}

static ct_value parse_answer(const char *json, ct_arena *a)
{
    const ct_value *m;
    ct_value out;
    ct_error err;

    test_ok(ct_value_parse(&m, "answer", ct_str_of(json), a, &err), &err);
    test_ok(ct_openai_assistant(&out, m, a, &err), &err);
    return out;
}

static void prompt(ct_replay *r, const char *salt, const ct_chat_template *t,
                   const ct_value *request, ct_arena *a, ct_ids *out, size_t *n_kept)
{
    ct_error err;

    test_ok(ct_replay_prompt(r, ct_str_of(salt), t, tokenizer, request, a, out, n_kept, &err),
            &err);
}

static void keep(ct_replay *r, const char *salt, const ct_value *request, const ct_value *answer,
                 const ct_ids *p, const ct_ids *g)
{
    ct_error err;
    ct_replay_turn t = {request, answer, p->id, p->n, g->id, g->n};

    test_ok(ct_replay_put(r, ct_str_of(salt), &t, &err), &err);
}

/* The ids from `at` on are the last ones of the plain prompt. */
static bool is_tail(const ct_ids *ids, size_t at, const ct_ids *plain)
{
    size_t n = ids->n - at;

    return n <= plain->n &&
           memcmp(ids->id + at, plain->id + plain->n - n, n * sizeof *ids->id) == 0;
}

typedef struct step {
    ct_ids prompt, generated;
} step;

static void step_deinit(step *s)
{
    ct_ids_deinit(&s->prompt);
    ct_ids_deinit(&s->generated);
}

/* What must hold of the prompt that follows a turn. */
static void check_next(const char *what, const talk *c, const ct_chat_template *t,
                       const ct_value *request, const step *old, const ct_ids *next, size_t n_kept,
                       ct_arena *a, bool stop_stays)
{
    uint32_t last = old->generated.n ? old->generated.id[old->generated.n - 1] : 0;
    bool stopped = old->generated.n && ct_tokenizer_is_special(tokenizer, last);
    bool eos = last == ct_tokenizer_special(tokenizer, CT_STR("<eos>"));
    size_t all = old->prompt.n + old->generated.n, want = all - (stopped && (!stop_stays || eos));
    size_t common = ct_replay_common(next, old->prompt.id, old->prompt.n, old->generated.id,
                                     old->generated.n),
           ignored;
    ct_ids plain = {0};

    if (n_kept != all - stopped || common < want)
        fail_msg("%s, %s: %zu of %zu ids kept, %zu in common", what, c->name, n_kept, all, common);
    prompt(NULL, "", t, request, a, &plain, &ignored);
    if (!c->text_and_calls && !is_tail(next, n_kept, &plain))
        fail_msg("%s, %s: the remainder is not the template's", what, c->name);
    ct_ids_deinit(&plain);
}

static void run_talk(const char *what, const ct_chat_template *t, const talk *c, bool stop_stays)
{
    ct_arena a = {0};
    ct_buf messages;
    ct_replay *r;
    ct_error err;
    step old = {0};

    test_ok(ct_arena_init(&a, ARENA_BYTES, &err), &err);
    test_ok(ct_replay_create(&r, 1 << 20, &err), &err);
    ct_buf_init(&messages, 1 << 20);
    ct_buf_addz(&messages, c->first);
    for (size_t i = 0; i < MAX_TURNS && c->turn[i].generated; i++) {
        const turn *u = &c->turn[i];
        ct_value request = parse_request(c->options, messages.p, &a);
        ct_value answer = parse_answer(u->answer, &a);
        step now = {0};
        size_t n_kept;

        prompt(r, "key", t, &request, &a, &now.prompt, &n_kept);
        if (i)
            check_next(what, c, t, &request, &old, &now.prompt, n_kept, &a, stop_stays);
        else
            assert_int_equal(n_kept, 0);
        encode(&now.generated, u->generated);
        keep(r, "key", &request, &answer, &now.prompt, &now.generated);
        ct_buf_addf(&messages, ",%s%s%s", u->answer, *u->next ? "," : "", u->next);
        step_deinit(&old);
        old = now;
    }
    ct_value request = parse_request(c->options, messages.p, &a);
    ct_ids last = {0};
    size_t n_kept;

    prompt(r, "key", t, &request, &a, &last, &n_kept);
    check_next(what, c, t, &request, &old, &last, n_kept, &a, stop_stays);
    ct_ids_deinit(&last);
    step_deinit(&old);
    ct_buf_deinit(&messages);
    ct_replay_destroy(r);
    ct_arena_deinit(&a);
}

static void open_template(ct_chat_template *t, const char *dir, const char *file)
{
    ct_error err;

    test_ok(ct_chat_template_open(t, dir, file, &err), &err);
}

static void run_talks(const char *what, const char *dir, const char *file, bool stop_stays)
{
    ct_chat_template t;

    open_template(&t, dir, file);
    for (size_t i = 0; i < sizeof talks / sizeof talks[0]; i++)
        run_talk(what, &t, &talks[i], stop_stays);
    ct_chat_template_close(&t);
}

static void demo_template(void **state)
{
    (void)state;
    run_talks("demo", "models/demo", NULL, true);
}

static void published_templates(void **state)
{
    (void)state;
    /* The first revision closes the turn with the calls, where the model had stopped for
     * their results: its stop id is not in the next prompt. */
    for (size_t i = 0; i < 5; i++)
        run_talks(files[i], NULL, test_shared(files[i]), i > 0);
}

/* ---- when the plain rendering is right ---- */

typedef struct refusal {
    const char *name, *generated, *answer, *salt, *messages;
} refusal;

static const refusal refusals[] = {
    {"other text", "Hello<turn|>", SAID("Hello"), "key",
     USER("Hi") "," SAID("Hello.") "," USER("x")},
    {"other key", "Hello<turn|>", SAID("Hello"), "other",
     USER("Hi") "," SAID("Hello") "," USER("x")},
    {"other question", "Hello<turn|>", SAID("Hello"), "key",
     USER("Ho") "," SAID("Hello") "," USER("x")},
    {"other thought", "<|channel>thought\nA\n<channel|>Hello<turn|>",
     "{\"role\":\"assistant\",\"content\":\"Hello\",\"reasoning\":\"A\"}", "key",
     USER("Hi") ",{\"role\":\"assistant\",\"content\":\"Hello\",\"reasoning\":\"B\"}," USER("x")},
    {"thought left open", "<|channel>thought\nHel", SAID(""), "key",
     USER("Hi") "," SAID("") "," USER("x")},
    {"call left open", "<|tool_call>call:f{a", SAID("call:f{a"), "key",
     USER("Hi") "," SAID("call:f{a") "," USER("x")},
    {"text behind a call", CALL("1") " and<turn|>",
     "{\"role\":\"assistant\",\"content\":\" and\",\"tool_calls\":[" CALLED("i", "1") "]}", "key",
     USER("Hi") ",{\"role\":\"assistant\",\"content\":\" and\",\"tool_calls\":[" CALLED(
         "i", "1") "]}," RESULT("i", "x")},
    {"another answer behind it", "Hello<turn|>", SAID("Hello"), "key",
     USER("Hi") "," SAID("Hello") "," SAID("World")},
    {"the mark in a message", "Hello<turn|>", SAID("Hello"), "key",
     USER("Hi") "," SAID("Hello") "," USER("\\ue000carat-replay\\ue001")},
};

static void check_refusal(const ct_chat_template *t, const refusal *c)
{
    ct_ids p = {0}, g = {0}, next = {0}, plain = {0};
    ct_arena a = {0};
    ct_replay *r;
    ct_error err;
    ct_value before, answer, request;
    size_t n_kept;

    test_ok(ct_arena_init(&a, ARENA_BYTES, &err), &err);
    test_ok(ct_replay_create(&r, 1 << 20, &err), &err);
    before = parse_request("", USER("Hi"), &a);
    answer = parse_answer(c->answer, &a);
    request = parse_request("", c->messages, &a);
    prompt(r, "key", t, &before, &a, &p, &n_kept);
    encode(&g, c->generated);
    keep(r, "key", &before, &answer, &p, &g);
    assert_int_equal(ct_replay_get_stats(r).n_turns, 1);
    prompt(r, c->salt, t, &request, &a, &next, &n_kept);
    prompt(NULL, "", t, &request, &a, &plain, &n_kept);
    if (n_kept || next.n != plain.n || !is_tail(&next, 0, &plain))
        fail_msg("%s: not the plain rendering", c->name);
    ct_ids_deinit(&p);
    ct_ids_deinit(&g);
    ct_ids_deinit(&next);
    ct_ids_deinit(&plain);
    ct_replay_destroy(r);
    ct_arena_deinit(&a);
}

static void changed_conversations_are_rendered_plainly(void **state)
{
    ct_chat_template t;

    (void)state;
    open_template(&t, "models/demo", NULL);
    for (size_t i = 0; i < sizeof refusals / sizeof refusals[0]; i++)
        check_refusal(&t, &refusals[i]);
    ct_chat_template_close(&t);
}

/* ---- without the option ---- */

/* How many ids of the old prompt and answer the template alone gives back. */
static size_t plain_common(const ct_chat_template *t, const talk *c, size_t *n_prompt,
                           size_t *n_all)
{
    ct_ids p = {0}, g = {0}, next = {0};
    ct_arena a = {0};
    ct_value request;
    ct_error err;
    ct_buf messages;
    size_t n, ignored;

    test_ok(ct_arena_init(&a, ARENA_BYTES, &err), &err);
    ct_buf_init(&messages, 1 << 20);
    request = parse_request(c->options, c->first, &a);
    prompt(NULL, "", t, &request, &a, &p, &ignored);
    encode(&g, c->turn[0].generated);
    ct_buf_addf(&messages, "%s,%s,%s", c->first, c->turn[0].answer, c->turn[0].next);
    request = parse_request(c->options, messages.p, &a);
    prompt(NULL, "", t, &request, &a, &next, &ignored);
    n = ct_replay_common(&next, p.id, p.n, g.id, g.n);
    *n_prompt = p.n;
    *n_all = p.n + g.n;
    ct_buf_deinit(&messages);
    ct_ids_deinit(&p);
    ct_ids_deinit(&g);
    ct_ids_deinit(&next);
    ct_arena_deinit(&a);
    return n;
}

/* The current template gives the ids back when a thought precedes a call; it drops the
 * empty thought of prompts without thinking, and thoughts before a new question. */
static void template_alone_allows_a_prefix(void **state)
{
    const char *file = test_shared(files[4]);
    static const size_t whole[] = {5};
    ct_ids thought = {0};
    ct_chat_template t;
    size_t n, n_prompt, n_all;

    (void)state;
    open_template(&t, NULL, file);
    encode(&thought, "<|channel>thought\n<channel|>");
    for (size_t i = 0; i < sizeof talks / sizeof talks[0] - 1; i++) {
        bool thinks = strstr(talks[i].options, "enable_thinking") != NULL;

        n = plain_common(&t, &talks[i], &n_prompt, &n_all);
        if (i == whole[0])
            assert_int_equal(n, n_all);
        else if (thinks)
            assert_int_equal(n, n_prompt);
        else
            assert_int_equal(n, n_prompt - thought.n);
    }
    ct_ids_deinit(&thought);
    ct_chat_template_close(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(demo_template),
        cmocka_unit_test(published_templates),
        cmocka_unit_test(changed_conversations_are_rendered_plainly),
        cmocka_unit_test(template_alone_allows_a_prefix),
    };

    return cmocka_run_group_tests_name("replay", tests, open_tokenizer, close_tokenizer);
}
