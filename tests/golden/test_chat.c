/* text/chat against the golden renderings of the five published templates. */
#include "support.h"

#include <string.h>

#include "base/map.h"
#include "text/chat.h"
#include "text/tokenizer.h"

#define ARENA_BYTES ((size_t)256 << 20)
#define MAX_LINES   4000

static const char *const files[] = {
    "data/templates/chat_template.large.r1-2026-04-02.jinja",
    "data/templates/chat_template.large.r2-2026-04-10.jinja",
    "data/templates/chat_template.large.r3-2026-04-28.jinja",
    "data/templates/chat_template.large.r4-2026-05-18.jinja",
    "data/templates/chat_template.large.r5-2026-07-09.jinja",
};

typedef struct lines {
    const ct_value *v[MAX_LINES];
    size_t n;
} lines;

/* The values of every line of a file, in the arena. */
static void read_lines(const char *path, ct_arena *a, lines *out)
{
    ct_error err;
    ct_str rest;
    ct_map map;

    out->n = 0;
    test_ok(ct_map_open(&map, path, &err), &err);
    for (rest = ct_map_str(&map); rest.n && out->n < MAX_LINES;) {
        const char *end = memchr(rest.p, '\n', rest.n);
        size_t n = end ? (size_t)(end - rest.p) : rest.n;

        test_ok(ct_value_parse(&out->v[out->n++], path, (ct_str){rest.p, n}, a, &err), &err);
        n += end != NULL;
        rest = (ct_str){rest.p + n, rest.n - n};
    }
    ct_map_close(&map);
}

/* Only what a request may have: the golden lines hold the expectations too. */
static ct_value request_of(const ct_value *line, ct_arena *a)
{
    static const char *const keys[] = {"messages", "tools", "add_generation_prompt",
                                       "enable_thinking", "preserve_thinking"};
    ct_map_entry *e = ct_arena_zalloc(a, 5, sizeof *e);
    ct_value out;
    size_t n = 0;

    for (size_t i = 0; i < 5; i++) {
        const ct_value *v = ct_value_get(line, keys[i]);

        if (v)
            e[n++] = (ct_map_entry){ct_str_of(keys[i]), *v};
    }
    assert_true(ct_value_build_map(&out, e, n, a));
    return out;
}

static int check_ids(const ct_tokenizer *t, ct_str text, const ct_value *want)
{
    ct_ids ids = {0};
    ct_error err;
    bool same;

    test_ok(ct_tokenizer_encode(t, text, CT_SPECIAL_MATCH, &ids, &err), &err);
    same = ids.n == want->u.list.n;
    for (size_t i = 0; same && i < ids.n; i++)
        same = want->u.list.item[i].u.integer == (int64_t)ids.id[i];
    ct_ids_deinit(&ids);
    return !same;
}

/* The rendering of line against want, which has expected_text (or rendered), or
 * expected_error; with a tokenizer also its ids. */
static int check(const ct_jinja *j, const char *what, const ct_value *line, const ct_value *want,
                 const ct_tokenizer *t, ct_arena *a)
{
    const ct_value *text = ct_value_get(want, "expected_text");
    const ct_value *error = ct_value_get(want, "expected_error");
    const ct_value *ids = ct_value_get(want, "expected_ids");
    ct_arena_mark mark = ct_arena_save(a);
    ct_value request = request_of(line, a);
    ct_error err = {0};
    ct_buf out;
    ct_status st;
    int wrong;

    text = text ? text : ct_value_get(want, "rendered");
    ct_buf_init(&out, 1 << 24);
    st = ct_chat_render(j, CT_STR("<bos>"), &request, a, &out, &err);
    if (error)
        wrong = !st || !memmem(err.text, strlen(err.text), error->u.text.p, error->u.text.n);
    else
        wrong = st || !ct_str_eq(ct_buf_str(&out), ct_value_text(text));
    if (t && ids && !wrong)
        wrong = check_ids(t, ct_buf_str(&out), ids);
    if (wrong)
        print_error("%s, case %.*s:\n  gave %s\n  want %.*s%s\n", what,
                    CT_STR_ARG(ct_value_text(ct_value_get(line, "name"))), st ? err.text : out.p,
                    CT_STR_ARG(ct_value_text(error ? error : text)), t ? " and its ids" : "");
    ct_buf_deinit(&out);
    ct_arena_rewind(a, mark);
    return wrong;
}

static ct_jinja *open_template(const char *path)
{
    ct_chat_template t;
    ct_error err;

    test_ok(ct_chat_template_open(&t, NULL, path, &err), &err);
    ct_buf_deinit(&t.bos);
    return t.jinja;
}

static void check_current(const char *golden, const char *template, const ct_tokenizer *t)
{
    static lines line;
    ct_jinja *j = open_template(template);
    ct_arena a = {0};
    ct_error err;
    int wrong = 0;

    test_ok(ct_arena_init(&a, ARENA_BYTES, &err), &err);
    read_lines(golden, &a, &line);
    for (size_t i = 0; i < line.n; i++)
        wrong += check(j, "r5", line.v[i], line.v[i], t, &a);
    ct_arena_deinit(&a);
    ct_jinja_destroy(j);
    assert_true(line.n >= 85);
    assert_int_equal(wrong, 0);
}

static void current_template(void **state)
{
    (void)state;
    check_current(test_shared("data/chat-golden.jsonl"), test_shared(files[4]), NULL);
}

static void current_template_ids(void **state)
{
    const char *golden = test_shared("data/chat-golden.jsonl"), *file = test_shared(files[4]);
    const char *path = test_real_tokenizer();
    ct_tokenizer *t;
    ct_error err;

    (void)state;
    test_ok(ct_tokenizer_open(&t, path, &err), &err);
    check_current(golden, file, t);
    ct_tokenizer_destroy(t);
}

static const ct_value *line_named(const lines *line, const ct_value *name)
{
    for (size_t i = 0; i < line->n; i++)
        if (ct_str_eq(ct_value_text(ct_value_get(line->v[i], "name")), ct_value_text(name)))
            return line->v[i];
    fail_msg("no case %.*s in chat-golden.jsonl", CT_STR_ARG(ct_value_text(name)));
    return NULL;
}

static void older_templates(void **state)
{
    static lines line, old;
    const char *golden = test_shared("data/chat-golden.jsonl");
    const char *older = test_shared("data/chat-golden-older-templates.jsonl");
    ct_jinja *j[4];
    ct_arena a = {0};
    ct_error err;
    int wrong = 0;

    (void)state;
    for (size_t i = 0; i < 4; i++)
        j[i] = open_template(test_shared(files[i]));
    test_ok(ct_arena_init(&a, ARENA_BYTES, &err), &err);
    read_lines(golden, &a, &line);
    read_lines(older, &a, &old);
    for (size_t i = 0; i < old.n; i++) {
        ct_str which = ct_value_text(ct_value_get(old.v[i], "template"));
        size_t k = (size_t)(which.p[1] - '1');

        assert_true(which.n == 2 && k < 4);
        wrong += check(j[k], files[k], line_named(&line, ct_value_get(old.v[i], "name")), old.v[i],
                       NULL, &a);
    }
    ct_arena_deinit(&a);
    for (size_t i = 0; i < 4; i++)
        ct_jinja_destroy(j[i]);
    assert_true(old.n >= 340);
    assert_int_equal(wrong, 0);
}

static void renderings_by_transformers(void **state)
{
    const char *path = test_shared("data/third-party/pegainfer.gemma4-tokenizer-golden.json");
    ct_jinja *j = open_template(test_shared(files[4]));
    const ct_value *all, *cases;
    ct_arena a = {0};
    ct_error err;
    ct_map map;
    int wrong = 0;

    (void)state;
    test_ok(ct_arena_init(&a, ARENA_BYTES, &err), &err);
    test_ok(ct_map_open(&map, path, &err), &err);
    test_ok(ct_value_parse(&all, path, ct_map_str(&map), &a, &err), &err);
    cases = ct_value_get(all, "chat_templates");
    assert_true(cases && cases->kind == CT_VALUE_LIST && cases->u.list.n == 5);
    for (size_t i = 0; i < cases->u.list.n; i++) {
        const ct_value *c = &cases->u.list.item[i];

        wrong += check(j, "pegainfer", c, c, NULL, &a);
    }
    ct_map_close(&map);
    ct_arena_deinit(&a);
    ct_jinja_destroy(j);
    assert_int_equal(wrong, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(current_template),
        cmocka_unit_test(current_template_ids),
        cmocka_unit_test(older_templates),
        cmocka_unit_test(renderings_by_transformers),
    };

    return cmocka_run_group_tests_name("chat golden", tests, NULL, NULL);
}
