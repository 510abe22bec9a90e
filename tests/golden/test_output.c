/* The output reader with Google's vocabulary: recorded tool calls, generated ones, and
 * thousands of damaged outputs, whose every letter must come out somewhere. */
#include "output_run.h"

#include <inttypes.h>
#include <string.h>

#include "base/map.h"
#include "text/value.h"

#define ARENA_BYTES ((size_t)256 << 20)
#define MAX_LINES   200
#define MAX_OUTPUTS 400
#define N_MUTATIONS 10000
#define N_CALLS     500

/* Without schemas: values are what the text says. */
static const ct_tool tool[] = {
    {{"f", 1}, NULL}, {{"get_weather", 11}, NULL}, {{"ns.tool", 7}, NULL}, {{"get_time", 8}, NULL}};
static const ct_tools tools = {tool, CT_LEN(tool)};

typedef struct state {
    ct_tokenizer *t;
    ct_arena arena;
    ct_ids output[MAX_OUTPUTS];
    size_t n_outputs;
    uint64_t rng;
    output_run run, other;
    ct_error err;
} state;

static int setup(void **ctx)
{
    state *s = calloc(1, sizeof *s);

    *ctx = s;
    return s && !ct_arena_init(&s->arena, ARENA_BYTES, &s->err) ? 0 : -1;
}

static int teardown(void **ctx)
{
    state *s = *ctx;

    run_deinit(&s->run);
    run_deinit(&s->other);
    for (size_t i = 0; i < s->n_outputs; i++)
        ct_ids_deinit(&s->output[i]);
    ct_tokenizer_destroy(s->t);
    ct_arena_deinit(&s->arena);
    free(s);
    return 0;
}

static const ct_tokenizer *real(state *s)
{
    const char *path = test_real_tokenizer();

    if (!s->t) {
        test_ok(ct_tokenizer_open(&s->t, path, &s->err), &s->err);
        run_init(&s->run, s->t, &tools);
        run_init(&s->other, s->t, &tools);
    }
    return s->t;
}

static size_t read_lines(state *s, const char *path, const ct_value **line)
{
    size_t n_lines = 0;
    ct_str rest;
    ct_map map;

    test_ok(ct_map_open(&map, path, &s->err), &s->err);
    for (rest = ct_map_str(&map); rest.n && n_lines < MAX_LINES;) {
        const char *end = memchr(rest.p, '\n', rest.n);
        size_t n = end ? (size_t)(end - rest.p) : rest.n;

        test_ok(ct_value_parse(&line[n_lines++], path, (ct_str){rest.p, n}, &s->arena, &s->err),
                &s->err);
        n += end != NULL;
        rest = (ct_str){rest.p + n, rest.n - n};
    }
    ct_map_close(&map);
    return n_lines;
}

static void ids_of(state *s, const ct_value *list, ct_ids *out)
{
    assert_true(list && list->kind == CT_VALUE_LIST);
    for (size_t i = 0; i < list->u.list.n; i++)
        test_ok(ct_ids_add(out, (uint32_t)list->u.list.item[i].u.integer, &s->err), &s->err);
}

/* --- recorded calls ------------------------------------------------------------ */

static bool same_value(const ct_value *a, const ct_value *b);

static bool same_map(const ct_map_body *a, const ct_map_body *b)
{
    bool same = a->n == b->n;

    for (size_t i = 0; same && i < a->n; i++) {
        const ct_value *v = ct_map_find(b, a->entry[i].key);

        same = v && same_value(&a->entry[i].value, v);
    }
    return same;
}

static bool same_list(const ct_value *a, const ct_value *b)
{
    bool same = a->u.list.n == b->u.list.n;

    for (size_t i = 0; same && i < a->u.list.n; i++)
        same = same_value(&a->u.list.item[i], &b->u.list.item[i]);
    return same;
}

static bool same_value(const ct_value *a, const ct_value *b)
{
    if (a->kind != b->kind)
        return false;
    switch ((ct_value_kind)a->kind) {
    case CT_VALUE_BOOL:
        return a->u.boolean == b->u.boolean;
    case CT_VALUE_INT:
        return a->u.integer == b->u.integer;
    case CT_VALUE_FLOAT:
        return memcmp(&a->u.number, &b->u.number, sizeof a->u.number) == 0;
    case CT_VALUE_STRING:
    case CT_VALUE_BIGINT:
        return ct_str_eq(ct_value_text(a), ct_value_text(b));
    case CT_VALUE_LIST:
        return same_list(a, b);
    case CT_VALUE_MAP:
        return same_map(a->u.map, b->u.map);
    default:
        return a->kind == CT_VALUE_NONE;
    }
}

static int check_calls(state *s, const ct_value *line, const char *how)
{
    const ct_message *m = s->run.message;
    const ct_value *want = ct_value_get(line, "tool_calls");
    bool same = ct_message_n_calls(m) == want->u.list.n && !ct_message_content(m).n &&
                !ct_message_reasoning(m).n && !strcmp(s->run.finish, "tool_calls");

    for (size_t i = 0; same && i < want->u.list.n; i++) {
        const ct_value *call = &want->u.list.item[i], *got;

        test_ok(
            ct_value_parse(&got, "arguments", ct_message_call_arguments(m, i), &s->arena, &s->err),
            &s->err);
        same = ct_str_eq(ct_message_call_name(m, i), ct_value_text(ct_value_get(call, "name"))) &&
               same_value(got, ct_value_get(call, "arguments"));
    }
    if (!same)
        print_error("%.*s, from %s: %s\n", CT_STR_ARG(ct_value_text(ct_value_get(line, "name"))),
                    how, s->run.whole.p);
    return !same;
}

static void recorded_calls(void **ctx)
{
    static const ct_value *line[MAX_LINES];
    state *s = *ctx;
    const char *path = test_shared("data/toolcall-roundtrip-golden.jsonl");
    const ct_tokenizer *t = real(s);
    ct_ids none = {0};
    size_t n = read_lines(s, path, line);
    int wrong = 0;

    assert_true(n >= 40);
    for (size_t i = 0; i < n; i++) {
        ct_ids ids = {0}, text = {0};

        ids_of(s, ct_value_get(line[i], "ids"), &ids);
        test_ok(ct_tokenizer_encode(t, ct_value_text(ct_value_get(line[i], "text")),
                                    CT_SPECIAL_MATCH, &text, &s->err),
                &s->err);
        wrong += !run_all_steps(&s->run, &s->other, &none, &ids, CT_OUTPUT_STOP);
        wrong += check_calls(s, line[i], "ids");
        wrong += !run_all_steps(&s->run, &s->other, &none, &text, CT_OUTPUT_STOP);
        wrong += check_calls(s, line[i], "text");
        ct_ids_deinit(&ids);
        ct_ids_deinit(&text);
    }
    assert_int_equal(wrong, 0);
}

/* --- random --------------------------------------------------------------------- */

/* xorshift64*, so that a seed gives the same run everywhere. */
static uint64_t draw(state *s, uint64_t n)
{
    s->rng ^= s->rng >> 12;
    s->rng ^= s->rng << 25;
    s->rng ^= s->rng >> 27;
    return (s->rng * UINT64_C(2685821657736338717) >> 33) % n;
}

/* --- generated calls: printed as the template prints them ------------------------- */

static const char *const words[] = {
    "a",
    "it's",
    "say \"hi\"",
    "{k:v}",
    "}",
    "]",
    "[1]",
    ", b:1",
    " ",
    "\n",
    "\t",
    "back\\",
    ":",
    "<|turn",
    "|>",
    "call:f{",
    "null",
    "-1.5e3",
    "\xf0\x9f\x99\x82",
    "\xe6\x9c\xac\xe8\xaa\x9e",
    "true",
    "\xc3\xa9t\xc3\xa9",
    "\r",
    "\x01",
    "</p>",
    "\"",
    "'",
    "`",
    "\xe2\x80\x8b",
};
static const char *const keys[] = {"a",   "b_x", "Query",     "maxTokens", "$gt",
                                   "_id", "n1",  "file-path", "x.y",       "\xc3\xa9"};
static const char *const bare[] = {"0",
                                   "-7",
                                   "42",
                                   "3.5",
                                   "1e-07",
                                   "1.0",
                                   "true",
                                   "false",
                                   "null",
                                   "6.02e+23",
                                   "123456789012345678901234567890"};

/* The same value twice: in the template's syntax and as the JSON to come. */
typedef struct printed {
    ct_buf native, json;
} printed;

static void put_both(printed *p, const char *text)
{
    ct_buf_addz(&p->native, text);
    ct_buf_addz(&p->json, text);
}

static void put_string(state *s, printed *p, size_t n_words)
{
    ct_buf text;

    ct_buf_init(&text, 1 << 24);
    for (size_t i = 0; i < n_words; i++)
        ct_buf_addz(&text, words[draw(s, CT_LEN(words))]);
    ct_buf_addz(&p->native, "<|\"|>");
    ct_buf_add(&p->native, text.p, text.n);
    ct_buf_addz(&p->native, "<|\"|>");
    ct_json_put_str(&p->json, ct_buf_str(&text));
    ct_buf_deinit(&text);
}

static void put_value(state *s, printed *p, unsigned depth);

/* Keys differ by their numbers: duplicates are another test's. */
static void put_object(state *s, printed *p, unsigned depth)
{
    size_t n = draw(s, 4);

    put_both(p, "{");
    for (size_t i = 0; i < n; i++) {
        char key[32];

        snprintf(key, sizeof key, "%s%zu", keys[draw(s, CT_LEN(keys))], i);
        ct_buf_addf(&p->native, "%s%s:", i ? "," : "", key);
        ct_buf_addf(&p->json, "%s\"%s\":", i ? "," : "", key);
        put_value(s, p, depth - 1);
    }
    put_both(p, "}");
}

static void put_array(state *s, printed *p, unsigned depth)
{
    size_t n = draw(s, 4);

    put_both(p, "[");
    for (size_t i = 0; i < n; i++) {
        put_both(p, i ? "," : "");
        put_value(s, p, depth - 1);
    }
    put_both(p, "]");
}

static void put_value(state *s, printed *p, unsigned depth)
{
    uint64_t kind = draw(s, depth ? 4 : 2);

    if (kind == 0)
        put_string(s, p, draw(s, 4));
    else if (kind == 1)
        put_both(p, bare[draw(s, CT_LEN(bare))]);
    else if (kind == 2)
        put_object(s, p, depth);
    else
        put_array(s, p, depth);
}

/* Every 50th call is 64 deep, every 100th holds 100 KB. */
static void put_call(state *s, printed *p, size_t i)
{
    const unsigned deep = 63;

    if (i % 50 == 1) {
        for (unsigned k = 0; k < deep; k++) {
            ct_buf_addz(&p->native, k % 2 ? "[" : "{a:");
            ct_buf_addz(&p->json, k % 2 ? "[" : "{\"a\":");
        }
        put_value(s, p, 1);
        for (unsigned k = deep; k-- > 0;)
            put_both(p, k % 2 ? "]" : "}");
    } else if (i % 100 == 2) {
        ct_buf_addz(&p->native, "{text:");
        ct_buf_addz(&p->json, "{\"text\":");
        put_string(s, p, 40000);
        put_both(p, "}");
    } else {
        put_object(s, p, 1 + (unsigned)draw(s, 4));
    }
}

static int check_generated(state *s, const printed *p, size_t i)
{
    const ct_message *m = s->run.message;
    ct_ids ids = {0}, none = {0};
    bool same;

    test_ok(ct_tokenizer_encode(s->t, ct_buf_str(&p->native), CT_SPECIAL_MATCH, &ids, &s->err),
            &s->err);
    same = run_all_steps(&s->run, &s->other, &none, &ids, CT_OUTPUT_STOP) &&
           ct_message_n_calls(m) == 1 && ct_message_content(m).n == 0 &&
           ct_str_eq(ct_message_call_arguments(m, 0), ct_buf_str(&p->json));
    if (!same && p->native.n < 10000)
        print_error("generated call %zu:\n  text %s\n  got  %s\n  want %s\n", i, p->native.p,
                    s->run.whole.p, p->json.p);
    ct_ids_deinit(&ids);
    return !same;
}

static void generated_calls(void **ctx)
{
    state *s = *ctx;
    int wrong = 0;

    real(s);
    s->rng = UINT64_C(0x9e3779b97f4a7c15);
    for (size_t i = 0; i < N_CALLS; i++) {
        printed p;

        ct_buf_init(&p.native, 1 << 24);
        ct_buf_init(&p.json, 1 << 24);
        ct_buf_addz(&p.native, "<|tool_call>call:f");
        put_call(s, &p, i);
        ct_buf_addz(&p.native, "<tool_call|><|tool_response>");
        wrong += check_generated(s, &p, i);
        ct_buf_deinit(&p.native);
        ct_buf_deinit(&p.json);
    }
    assert_int_equal(wrong, 0);
}

/* --- damaged outputs -------------------------------------------------------------- */

static void keep_output(state *s, const uint32_t *id, size_t n)
{
    assert_true(s->n_outputs < MAX_OUTPUTS);
    for (size_t i = 0; i < n; i++)
        test_ok(ct_ids_add(&s->output[s->n_outputs], id[i], &s->err), &s->err);
    s->n_outputs++;
}

/* What the model wrote in a rendered conversation: from "<|turn>model\n" to a stop. */
static void keep_turns(state *s, const ct_ids *ids)
{
    static const uint32_t begin[] = {105, 4368, 107};

    for (size_t i = 0; i + 3 < ids->n; i++) {
        size_t end = i + 3;

        if (memcmp(ids->id + i, begin, sizeof begin) != 0)
            continue;
        while (end < ids->n && ids->id[end] != 106)
            end++;
        keep_output(s, ids->id + i + 3, end - i - 3 + (end < ids->n));
    }
}

static void read_outputs(state *s)
{
    static const ct_value *line[MAX_LINES];
    const char *calls = test_shared("data/toolcall-roundtrip-golden.jsonl");
    const char *chats = test_shared("data/chat-golden.jsonl");
    size_t n = read_lines(s, calls, line);

    for (size_t i = 0; i < n; i++) {
        ids_of(s, ct_value_get(line[i], "ids"), &s->output[s->n_outputs]);
        s->n_outputs++;
    }
    n = read_lines(s, chats, line);
    for (size_t i = 0; i < n; i++) {
        ct_ids ids = {0};

        if (ct_value_get(line[i], "expected_ids"))
            ids_of(s, ct_value_get(line[i], "expected_ids"), &ids);
        keep_turns(s, &ids);
        ct_ids_deinit(&ids);
    }
    assert_true(s->n_outputs > 100);
}

/* An id to damage with: a delimiter, a piece of some output, or anything. */
static uint32_t draw_id(state *s)
{
    static const uint32_t control[] = {48, 49, 50, 52, 52, 100, 101, 105, 106, 1, 258880, 107};
    const ct_ids *o = &s->output[draw(s, s->n_outputs)];

    switch (draw(s, 4)) {
    case 0:
        return (uint32_t)draw(s, ct_tokenizer_vocab(s->t));
    case 1:
        return o->n ? o->id[draw(s, o->n)] : 107;
    default:
        return control[draw(s, CT_LEN(control))];
    }
}

static void insert_id(state *s, ct_ids *ids, size_t at, uint32_t id)
{
    test_ok(ct_ids_add(ids, id, &s->err), &s->err);
    memmove(ids->id + at + 1, ids->id + at, (ids->n - 1 - at) * sizeof *ids->id);
    ids->id[at] = id;
}

static void splice(state *s, ct_ids *ids)
{
    const ct_ids *o = &s->output[draw(s, s->n_outputs)];
    size_t at = draw(s, ids->n + 1), from = o->n ? draw(s, o->n) : 0;

    for (size_t i = from; i < o->n && i < from + 12; i++)
        insert_id(s, ids, at + i - from, o->id[i]);
}

static void mutate(state *s, ct_ids *ids)
{
    size_t at = ids->n ? draw(s, ids->n) : 0;
    uint32_t id;

    switch (ids->n ? draw(s, 6) : 0) {
    case 0:
        insert_id(s, ids, at, draw_id(s));
        break;
    case 1:
        memmove(ids->id + at, ids->id + at + 1, (ids->n - at - 1) * sizeof *ids->id);
        ids->n--;
        break;
    case 2:
        ids->id[at] = draw_id(s);
        break;
    case 3:
        id = ids->id[at];
        ids->id[at] = ids->id[ids->n - 1 - at];
        ids->id[ids->n - 1 - at] = id;
        break;
    case 4:
        splice(s, ids);
        break;
    case 5:
        ids->n = at;
        break;
    }
}

/* Letters and digits of a text, counted.  Everything beyond ASCII counts as well where no
 * byte pieces can have been cut. */
typedef struct tally {
    long n[256];
    bool ascii_only;
} tally;

static void count(tally *c, ct_str s, int sign)
{
    for (size_t i = 0; i < s.n; i++) {
        unsigned char b = (unsigned char)s.p[i];

        if ((b >= '0' && b <= '9') || (b >= 'a' && b <= 'z') || (b >= 'A' && b <= 'Z') ||
            (b >= 0x80 && !c->ascii_only))
            c->n[b] += sign;
    }
}

/* JSON's own words count as text: the model wrote them.  But for null, which also stands
 * for a value that the model left out: their number is returned. */
static long count_json(state *s, tally *c, ct_str text)
{
    long n_null = 0;

    ct_json_token t;
    ct_str word;
    ct_json j;

    ct_json_init(&j, "arguments", text);
    for (;;) {
        test_ok(ct_json_next(&j, &t, &s->err), &s->err);
        word = t.raw;
        if (t.kind == CT_JSON_END)
            return n_null;
        if (t.kind == CT_JSON_KEY || t.kind == CT_JSON_STRING)
            test_ok(ct_json_str(&j, &t, &s->arena, &word, &s->err), &s->err);
        else if (t.kind == CT_JSON_TRUE)
            word = CT_STR("true");
        else if (t.kind == CT_JSON_FALSE)
            word = CT_STR("false");
        else if (t.kind != CT_JSON_NUMBER)
            word = (ct_str){0};
        n_null += t.kind == CT_JSON_NULL;
        count(c, word, -1);
    }
}

static void count_source(state *s, tally *c, const ct_ids *ids, size_t *n_channels)
{
    ct_buf text;

    *n_channels = 0;
    ct_buf_init(&text, 1 << 24);
    test_ok(ct_tokenizer_decode(s->t, ids->id, ids->n, true, &text, &s->err), &s->err);
    for (size_t i = 0; i < ids->n; i++) {
        c->ascii_only |= ids->id[i] >= 238 && ids->id[i] < 494;
        *n_channels += ids->id[i] == 100;
    }
    count(c, ct_buf_str(&text), 1);
    ct_buf_deinit(&text);
}

/* Takes `word` out n times, where n is what is left of a letter that only this word of the
 * three can have left: false when that is more than there can be. */
static bool take_word(tally *c, const char *word, char letter, long most)
{
    long n = c->n[(unsigned char)letter];

    for (long i = 0; i < n && i < most; i++)
        count(c, ct_str_of(word), -1);
    return n >= 0 && n <= most;
}

/* Whether all text of ids is in the message: but for "call:" before names, the labels of
 * thoughts, and null, of each no more than there can be. */
static bool nothing_lost(state *s, const ct_ids *ids)
{
    const ct_message *m = s->run.message;
    ct_arena_mark mark = ct_arena_save(&s->arena);
    tally c = {0};
    size_t n_channels;
    long n_null = 0;

    count_source(s, &c, ids, &n_channels);
    count(&c, ct_message_content(m), -1);
    count(&c, ct_message_reasoning(m), -1);
    for (size_t i = 0; i < ct_message_n_calls(m); i++) {
        count(&c, ct_message_call_name(m, i), -1);
        n_null += count_json(s, &c, ct_message_call_arguments(m, i));
    }
    ct_arena_rewind(&s->arena, mark);
    if (!take_word(&c, "thought", 'g', (long)n_channels + 1) ||
        !take_word(&c, "call", 'c', (long)ct_message_n_calls(m)) ||
        !take_word(&c, "null", 'n', n_null))
        return false;
    for (size_t b = 0; b < 256; b++)
        if (c.n[b] != 0)
            return false;
    return true;
}

static void show(state *s, const ct_ids *ids, const char *what, size_t i)
{
    ct_buf text;

    ct_buf_init(&text, 1 << 24);
    test_ok(ct_tokenizer_decode(s->t, ids->id, ids->n, false, &text, &s->err), &s->err);
    print_error("%s %zu:\n  %s\n  %s\n  ids", what, i, text.p, s->run.whole.p);
    for (size_t k = 0; k < ids->n; k++)
        print_error(" %" PRIu32, ids->id[k]);
    print_error("\n");
    ct_buf_deinit(&text);
}

static int check_output(state *s, const ct_ids *ids, const char *what, size_t i)
{
    static uint32_t open[] = {105, 4368, 107, 100, 45518, 107};
    const ct_ids prompt = {open, i % 5 ? 3 : CT_LEN(open), CT_LEN(open)};
    ct_output_end end = i % 3 ? CT_OUTPUT_STOP : CT_OUTPUT_LENGTH;
    bool ok = run_all_steps(&s->run, &s->other, &prompt, ids, end) && nothing_lost(s, ids);

    if (!ok)
        show(s, ids, what, i);
    return !ok;
}

static void damaged_outputs(void **ctx)
{
    state *s = *ctx;
    int wrong = 0;

    real(s);
    read_outputs(s);
    s->rng = UINT64_C(0x2545f4914f6cdd1d);
    for (size_t i = 0; i < s->n_outputs; i++)
        wrong += check_output(s, &s->output[i], "output", i);
    for (size_t i = 0; i < N_MUTATIONS && wrong < 10; i++) {
        const ct_ids *from = &s->output[draw(s, s->n_outputs)];
        size_t n = 1 + draw(s, 3);
        ct_ids ids = {0};

        for (size_t k = 0; k < from->n; k++)
            test_ok(ct_ids_add(&ids, from->id[k], &s->err), &s->err);
        while (n--)
            mutate(s, &ids);
        wrong += check_output(s, &ids, "mutation", i);
        ct_ids_deinit(&ids);
    }
    assert_int_equal(wrong, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(recorded_calls),
        cmocka_unit_test(generated_calls),
        cmocka_unit_test(damaged_outputs),
    };

    return cmocka_run_group_tests_name("output golden", tests, setup, teardown);
}
