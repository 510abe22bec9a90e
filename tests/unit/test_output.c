/* The output reader: a table of odd and malformed outputs with their right reading, each
 * under every way of cutting it and behind every kind of prompt.  The vocabulary is one
 * of single characters, so that every label, name and number is cut everywhere. */
#include "output_run.h"

#include "text/value.h"

#define MARK    "\xe2\x96\x81" /* U+2581 */
#define Q       "<|\"|>"
#define THINK   "<|channel>thought\n"
#define END     "\n<channel|>"
#define CALL    "<|tool_call>call:"
#define ENDCALL "<tool_call|>"
#define BAD     "\xef\xbf\xbd"

static const char *const specials[] = {
    "<pad>",
    "<eos>",
    "<bos>",
    "<unk>",
    "<mask>",
    "<|tool>",
    "<tool|>",
    "<|tool_call>",
    "<tool_call|>",
    "<|\"|>",
    "<|think|>",
    "<|channel>",
    "<channel|>",
    "<|tool_response>",
    "<tool_response|>",
    "<|turn>",
    "<turn|>",
    "<|image>",
    "<|audio>",
    "<|image|>",
    "<|audio|>",
    "<image|>",
    "<audio|>",
    "<|video|>",
};
#define N_SPECIAL CT_LEN(specials)

/* Behind the 256 bytes and the characters. */
static const char *const merges[][2] = {
    {"\n", "\n"}, {"}", "}"}, {"l", "l"}, {"c", "a"},  {"ca", "ll"}, {MARK, "a"},
    {"t", "h"},   {"0", "0"}, {":", "{"}, {"x", "\n"}, {"\n", "a"},
};

static void put_piece(ct_buf *b, const char *one, const char *two, uint32_t *id)
{
    char piece[32];

    snprintf(piece, sizeof piece, "%s%s", one, two);
    ct_buf_addz(b, *id ? ", " : "");
    ct_json_put_str(b, ct_str_of(piece));
    ct_buf_addf(b, ": %u", (*id)++);
}

static void put_vocab(ct_buf *b)
{
    uint32_t id = 0;

    for (size_t i = 0; i < N_SPECIAL; i++)
        put_piece(b, specials[i], "", &id);
    for (unsigned i = 0; i < 256; i++) {
        char byte[8];

        snprintf(byte, sizeof byte, "<0x%02X>", i);
        put_piece(b, byte, "", &id);
    }
    for (char c = '!'; c <= '~'; c++)
        put_piece(b, (char[]){c, 0}, "", &id);
    put_piece(b, MARK, "", &id);
    put_piece(b, "\n", "", &id);
    for (size_t i = 0; i < CT_LEN(merges); i++)
        put_piece(b, merges[i][0], merges[i][1], &id);
}

static void put_file(ct_buf *b)
{
    ct_buf_addz(b, "{\"added_tokens\": [");
    for (unsigned i = 0; i < N_SPECIAL; i++) {
        ct_buf_addf(b, "%s{\"id\": %u, \"content\": ", i ? ", " : "", i);
        ct_json_put_str(b, ct_str_of(specials[i]));
        ct_buf_addz(b, ", \"single_word\": false, \"lstrip\": false, \"rstrip\": false, "
                       "\"normalized\": false, \"special\": true}");
    }
    ct_buf_addz(b, "], \"normalizer\": {\"type\": \"Replace\", \"pattern\": {\"String\": \" \"}, "
                   "\"content\": \"" MARK "\"}, \"decoder\": {\"type\": \"Sequence\", "
                   "\"decoders\": [{\"type\": \"Replace\", \"pattern\": {\"String\": \"" MARK
                   "\"}, \"content\": \" \"}, {\"type\": \"ByteFallback\"}, {\"type\": "
                   "\"Fuse\"}]}, \"model\": {\"type\": \"BPE\", \"byte_fallback\": true, "
                   "\"vocab\": {");
    put_vocab(b);
    ct_buf_addz(b, "}, \"merges\": [");
    for (size_t i = 0; i < CT_LEN(merges); i++) {
        ct_buf_addz(b, i ? ", [" : "[");
        ct_json_put_str(b, ct_str_of(merges[i][0]));
        ct_buf_addc(b, ',');
        ct_json_put_str(b, ct_str_of(merges[i][1]));
        ct_buf_addc(b, ']');
    }
    ct_buf_addz(b, "]}}");
}

#define TOOL(name, properties)                                                                     \
    "{\"type\": \"function\", \"function\": {\"name\": \"" name "\", \"parameters\": {\"type\": "  \
    "\"object\", \"properties\": {" properties "}}}}"
static const char declared[] =
    "[" TOOL("f", "") ", " TOOL("get_weather", "\"city\": {\"type\": \"string\"}") ", " TOOL(
        "web-search", "") ", " TOOL("ns.tool", "") ", " TOOL("google:mcp:x:create-pdf-file",
                                                             "") ", " TOOL("fetch", "") "]";

typedef struct state {
    ct_tokenizer *t;
    ct_arena arena;
    ct_tools tools;
    output_run run, other;
    ct_ids prompt, ids;
    ct_error err;
} state;

static int setup(void **ctx)
{
    state *s = calloc(1, sizeof *s);
    const ct_value *list;
    ct_buf b;

    *ctx = s;
    if (!s)
        return -1;
    ct_buf_init(&b, 1 << 20);
    put_file(&b);
    if (ct_tokenizer_parse(&s->t, "test", ct_buf_str(&b), &s->err) ||
        ct_arena_init(&s->arena, 1 << 20, &s->err) ||
        ct_value_parse(&list, "tools", CT_STR(declared), &s->arena, &s->err) ||
        ct_tools_from(&s->tools, list, &s->arena, &s->err)) {
        print_error("%s\n", s->err.text);
        return -1;
    }
    ct_buf_deinit(&b);
    run_init(&s->run, s->t, &s->tools);
    run_init(&s->other, s->t, &s->tools);
    return 0;
}

static int teardown(void **ctx)
{
    state *s = *ctx;

    run_deinit(&s->run);
    run_deinit(&s->other);
    ct_tokenizer_destroy(s->t);
    ct_arena_deinit(&s->arena);
    ct_ids_deinit(&s->prompt);
    ct_ids_deinit(&s->ids);
    free(s);
    return 0;
}

static void encode(state *s, ct_ids *out, const char *text)
{
    test_ok(ct_tokenizer_encode(s->t, ct_str_of(text), CT_SPECIAL_MATCH, out, &s->err), &s->err);
}

/* --- the table ----------------------------------------------------------------- */

/* calls: "NAME ARGUMENTS", more of them behind "; ".  report: where the output was seen. */
typedef struct row {
    const char *text, *content, *reasoning, *calls;
    bool start;
    const char *report;
} row;

/* ROW: an output and its reading; SEEN: with the report of it; START: the reading holds at
 * the start of an answer only. */
#define ROW(text, content, reasoning, calls)                                                       \
    {                                                                                              \
        text, content, reasoning, calls, false, NULL                                               \
    }
#define SEEN(text, content, reasoning, calls, report)                                              \
    {                                                                                              \
        text, content, reasoning, calls, false, report                                             \
    }
#define START(text, content, reasoning, calls, report)                                             \
    {                                                                                              \
        text, content, reasoning, calls, true, report                                              \
    }

static const row rows[] = {
    /* plain text */
    ROW("Hello", "Hello", "", ""),
    ROW("", "", "", ""),
    ROW("Hello<turn|>", "Hello", "", ""),
    ROW("Hello<eos>", "Hello", "", ""),
    SEEN("write <end_of_turn> and stop", "write <end_of_turn> and stop", "", "", "vmlx-swift#93"),
    ROW("<|chan"
        "nel>",
        "", "", ""), /* one token, a thought without anything */
    SEEN("a < |channel> b", "a < |channel> b", "", "", "llama.cpp#22371"),
    ROW("call:f {a:1} is how", "call:f {a:1} is how", "", ""),
    SEEN("we call:f{a:1}", "we call:f{a:1}", "", "", "vLLM#54256"),
    SEEN("call:unknown{a:1}", "call:unknown{a:1}", "", "", "vLLM#54256"),
    ROW("call:fe", "call:fe", "", ""),
    ROW("call:", "call:", "", ""),
    ROW("caramel", "caramel", "", ""),
    ROW("thoughtful", "thoughtful", "", ""),
    ROW("tho", "tho", "", ""),
    ROW("thought", "thought", "", ""),
    ROW("Thought\nx", "Thought\nx", "", ""),
    ROW("a\n\nb\n", "a\n\nb\n", "", ""),
    ROW("say " Q "hi" Q, "say \"hi\"", "", ""),

    /* thoughts */
    SEEN(THINK "plan" END "Hi", "Hi", "plan", "", "vLLM#38855"),
    SEEN(THINK "plan<channel|>Hi", "Hi", "plan", "", "Rapid-MLX#219"),
    ROW(THINK "plan\n\n<channel|>Hi", "Hi", "plan\n", ""),
    ROW(THINK "\nplan" END "\nHi", "\nHi", "\nplan", ""),
    ROW(THINK "<channel|>Hi", "Hi", "", ""),
    ROW(THINK END "Hi", "Hi", "", ""),
    ROW("<|channel>thought<channel|>Hi", "Hi", "", ""),
    ROW("<|channel><channel|>Hi", "Hi", "", ""),
    ROW("<|channel>thou<channel|>Hi", "Hi", "thou", ""),
    ROW("<|channel>analysis\nplan" END "Hi", "Hi", "analysis\nplan", ""),
    ROW("<|channel>thoughts\nplan" END "Hi", "Hi", "thoughts\nplan", ""),
    ROW("<|channel>thought plan" END "Hi", "Hi", "thought plan", ""),
    ROW("<|channel>\nplan" END "Hi", "Hi", "\nplan", ""),
    ROW("Hi " THINK "late" END "there", "Hi there", "late", ""),
    SEEN(THINK "a" END THINK "b" END "Hi", "Hi", "a\nb", "", "llama.cpp#21882"),
    ROW(THINK "a" THINK "b" END "Hi", "Hi", "ab", ""),
    SEEN(THINK "a" END "x" THINK "b" END "y", "xy", "a\nb", "", "llama.cpp#21882"),
    SEEN(THINK "never closed", "", "never closed", "", "ollama#16456"),
    ROW(THINK "never closed\n", "", "never closed\n", ""),
    ROW(THINK "stopped\n<turn|>", "", "stopped", ""),
    SEEN("Hi<channel|>", "Hi", "", "", "OpenTranscribe#439"),
    SEEN("<channel|>Hi", "Hi", "", "", "OpenTranscribe#439"),
    SEEN("I think<channel|>Hi", "I thinkHi", "", "", "OpenTranscribe#439"),
    SEEN("<channel|><channel|>Hi<channel|>", "Hi", "", "", "vLLM#45834"),
    START("thought\nplan" END "Hi", "Hi", "plan", "", "vLLM#39885"),
    START("thought<channel|>Hi", "Hi", "", "", "vLLM#39885"),
    ROW(THINK "the literal call:f{} here" END "x", "x", "the literal call:f{} here", ""),
    ROW(THINK "a" Q "b" Q END "x", "x", "a\"b\"", ""),
    ROW(THINK "a<turn|>b", "b", "a", ""),

    /* calls */
    SEEN(CALL "f{}" ENDCALL "<|tool_response>", "", "", "f {}", "llama.cpp#21760"),
    SEEN(CALL "f{a:" Q "x" Q "}" ENDCALL, "", "", "f {\"a\":\"x\"}", "vLLM#38946"),
    SEEN(CALL "f{a:1}" ENDCALL CALL "fetch{b:2}" ENDCALL, "", "", "f {\"a\":1}; fetch {\"b\":2}",
         "llama.cpp#21882"),
    SEEN(CALL "f{a:{b:1},c:2}" ENDCALL, "", "", "f {\"a\":{\"b\":1},\"c\":2}", "Rapid-MLX#1102"),
    SEEN(CALL "google:mcp:x:create-pdf-file{a:1}" ENDCALL, "", "",
         "google:mcp:x:create-pdf-file {\"a\":1}", "omlx#1830"),
    SEEN(CALL "web-search{}" ENDCALL, "", "", "web-search {}", "omlx#1854"),
    SEEN(CALL "'ns.tool'{}" ENDCALL, "", "", "ns.tool {}", "omlx#1854"),
    ROW(CALL "other_tool{a:1}" ENDCALL, "", "", "other_tool {\"a\":1}"),
    ROW(CALL " f {a:1}" ENDCALL, "", "", "f {\"a\":1}"),
    ROW(CALL Q "f" Q "{a:1}" ENDCALL, "", "", "f {\"a\":1}"),
    ROW(CALL "f:{a:1}" ENDCALL, "", "", "f {\"a\":1}"),
    ROW(CALL "f(a:1)" ENDCALL, "", "", "f {\"a\":1}"),
    SEEN(CALL "f" ENDCALL, "", "", "f {}", "llama.cpp#21760"),
    ROW("<|tool_call>f{a:1}" ENDCALL, "", "", "f {\"a\":1}"),
    ROW("<|tool_call>other{a:1}" ENDCALL, "other{a:1}", "", ""),
    SEEN(CALL "f{t:" Q "say \"hi\"" Q "}" ENDCALL, "", "", "f {\"t\":\"say \\\"hi\\\"\"}",
         "ollama#15241"),
    SEEN(CALL "f{t:" Q "say \"hi\"}" ENDCALL, "", "", "f {\"t\":\"say \\\"hi\\\"\"}",
         "ollama#15255"),
    SEEN(CALL "f{a:" Q "{\"b\":1}" Q "}" ENDCALL, "", "", "f {\"a\":\"{\\\"b\\\":1}\"}",
         "LiteRT-LM#2418"),
    SEEN(CALL "f{filter:{age:{$gt:30}}}" ENDCALL, "", "", "f {\"filter\":{\"age\":{\"$gt\":30}}}",
         "llama.cpp#21680"),
    SEEN(CALL "f{m: \"The user's name is John.\"}" ENDCALL, "", "",
         "f {\"m\":\"The user's name is John.\"}", "llama.cpp#22786"),
    ROW(CALL "get_weather{city:42}" ENDCALL, "", "", "get_weather {\"city\":\"42\"}"),
    ROW(CALL "f{a:1}}" ENDCALL, "", "", "f {\"a\":1}"),
    ROW(CALL "f{a:1}\n" ENDCALL "\n", "\n", "", "f {\"a\":1}"),
    ROW(CALL "f{a:1} and more" ENDCALL "x", " and morex", "", "f {\"a\":1}"),
    SEEN(CALL "f{a:" Q "x" Q ENDCALL, "", "", "f {\"a\":\"x\"}", "ollama#15374"),
    ROW(CALL "f{a:1}", "", "", "f {\"a\":1}"),
    ROW(CALL "f{a:1}" CALL "fetch{}" ENDCALL, "", "", "f {\"a\":1}; fetch {}"),
    SEEN("Let me look." CALL "f{}" ENDCALL, "Let me look.", "", "f {}", "vLLM#42776"),
    ROW(CALL "f{}" ENDCALL "done", "done", "", "f {}"),
    ROW(CALL "f{}" ENDCALL " and " CALL "fetch{}" ENDCALL ".", " and .", "", "f {}; fetch {}"),
    SEEN("x" ENDCALL "y", "xy", "", "", "omlx#534"),
    ROW(CALL "f{}" ENDCALL ENDCALL "y", "y", "", "f {}"),

    /* calls and thoughts */
    ROW(THINK "plan" END CALL "f{}" ENDCALL, "", "plan", "f {}"),
    ROW(THINK "plan\n" CALL "f{}" ENDCALL, "", "plan", "f {}"),
    ROW(THINK "plan" CALL "f{}" ENDCALL "<channel|>Hi", "Hi", "plan", "f {}"),
    ROW("<|channel>" CALL "f{}" ENDCALL "Hi", "Hi", "", "f {}"),
    SEEN(THINK "a" END CALL "f{}" ENDCALL THINK "b" END CALL "fetch{}" ENDCALL, "", "a\nb",
         "f {}; fetch {}", "llama.cpp#21882"),
    SEEN(THINK "a" END "call:f{a:1}", "", "a", "f {\"a\":1}", "vLLM#54256"),
    SEEN(THINK "a" END "call:f{a:1}" ENDCALL "<|tool_response>", "", "a", "f {\"a\":1}",
         "vLLM#54256"),
    SEEN(THINK "a" END "call:g{a:1}", "call:g{a:1}", "a", "", "vLLM#54256"),
    SEEN(THINK "a" END "so call:f{a:1}", "so call:f{a:1}", "a", "", "vLLM#54256"),
    SEEN("call:f{a:1}" ENDCALL, "", "", "f {\"a\":1}", "vLLM#54256"),
    ROW(CALL "f{}" ENDCALL "call:fetch{}" ENDCALL, "", "", "f {}; fetch {}"),
    ROW(CALL "f{a:1" THINK "b" END "c", "call:f{a:1c", "b", ""),
    ROW(CALL "f{a:[" Q "x" Q THINK "b" END "c", "c", "b", "f {\"a\":[\"x\"]}"),
    ROW(CALL "f{a:<channel|>1}" ENDCALL "x", "x", "", "f {\"a\":1}"),

    /* what is no call is text */
    SEEN("<|tool_call>BEGIN_ARG a END_ARG" ENDCALL, "BEGIN_ARG a END_ARG", "", "", "ollama#18275"),
    ROW("<|tool_call>" ENDCALL "x", "x", "", ""),
    ROW(CALL "{a:1}" ENDCALL, "call:{a:1}", "", ""),
    ROW(CALL "two words{a:1}" ENDCALL, "call:two words{a:1}", "", ""),
    SEEN(CALL "f{a:" Q "never closed", "call:f{a:\"never closed", "", "", "llama.cpp#25072"),
    ROW(CALL "f", "call:f", "", ""),
    ROW("<|tool_call>", "", "", ""),
    ROW("<|tool_call>Sorry, I cannot do that.<turn|>", "Sorry, I cannot do that.", "", ""),
    ROW(CALL "f{}" ENDCALL CALL "f{a:" Q "x", "call:f{a:\"x", "", "f {}"),

    /* other control tokens, bytes */
    ROW("a<|turn>b<|image|>c<pad>d<|think|>e<|tool>f<tool|>g", "abcdefg", "", ""),
    ROW("<|image><|audio><image|><audio|><|video|><unk><mask><bos>", "", "", ""),
    ROW(CALL "f{a:" Q "x<|image|>y" Q "}" ENDCALL, "", "", "f {\"a\":\"xy\"}"),
    ROW(THINK "pl<|turn>an" END "x", "x", "plan", ""),
    ROW(CALL "f{}" ENDCALL "<|tool_response>response:f{value:1}<tool_response|>x",
        "response:f{value:1}x", "", "f {}"),
    ROW("\xe6\x9c\xac \xf0\x9f\x99\x82", "\xe6\x9c\xac \xf0\x9f\x99\x82", "", ""),
    ROW(CALL "f{k:" Q "\xf0\x9f\x99\x82" Q "}" ENDCALL, "", "", "f {\"k\":\"\xf0\x9f\x99\x82\"}"),
    ROW(THINK "\xc3\xa9" END "\xc3\xa9", "\xc3\xa9", "\xc3\xa9", ""),
};

static void put_reading(ct_buf *b, ct_str content, ct_str reasoning, ct_str calls)
{
    ct_buf_addf(b, "content \"%.*s\", reasoning \"%.*s\", calls \"%.*s\"", CT_STR_ARG(content),
                CT_STR_ARG(reasoning), CT_STR_ARG(calls));
}

static void put_calls(ct_buf *b, const ct_message *m)
{
    for (size_t i = 0; i < ct_message_n_calls(m); i++)
        ct_buf_addf(b, "%s%.*s %.*s", i ? "; " : "", CT_STR_ARG(ct_message_call_name(m, i)),
                    CT_STR_ARG(ct_message_call_arguments(m, i)));
}

/* The reading of s->ids behind s->prompt, under all ways of cutting. */
static int check_reading(state *s, const row *r, const char *how)
{
    const ct_message *m = s->run.message;
    ct_buf calls, got, want;
    bool same = run_all_steps(&s->run, &s->other, &s->prompt, &s->ids, CT_OUTPUT_STOP);

    ct_buf_init(&calls, 1 << 20);
    ct_buf_init(&got, 1 << 20);
    ct_buf_init(&want, 1 << 20);
    put_calls(&calls, m);
    put_reading(&got, ct_message_content(m), ct_message_reasoning(m), ct_buf_str(&calls));
    put_reading(&want, ct_str_of(r->content), ct_str_of(r->reasoning), ct_str_of(r->calls));
    same &= ct_str_eq(ct_buf_str(&got), ct_buf_str(&want));
    same &= !strcmp(s->run.finish, *r->calls ? "tool_calls" : "stop");
    if (!same)
        print_error("%s, %s:\n  got  %s, %s\n  want %s\n", r->text, how, got.p, s->run.finish,
                    want.p);
    ct_buf_deinit(&calls);
    ct_buf_deinit(&got);
    ct_buf_deinit(&want);
    return !same;
}

static int check_behind(state *s, const row *r, const char *prompt, const char *first)
{
    const char *text = r->text;

    s->prompt.n = s->ids.n = 0;
    encode(s, &s->prompt, prompt);
    encode(s, &s->ids, first);
    encode(s, &s->ids, text);
    return check_reading(s, r, prompt);
}

/* Behind an open thought an answer either goes on with it, or closes it and then reads as
 * from the start. */
static int check_open(state *s, const row *r)
{
    static const char open[] = "<|turn>model\n" THINK;
    const size_t n = sizeof THINK - 1;
    row rest = *r;
    int wrong = 0;

    if (!strncmp(r->text, THINK, n)) {
        rest.text += n;
        wrong = check_behind(s, &rest, open, "");
    }
    if (!r->start)
        wrong += check_behind(s, r, open, END);
    return wrong;
}

static void malformed_outputs(void **ctx)
{
    state *s = *ctx;
    int wrong = 0;

    for (size_t i = 0; i < CT_LEN(rows); i++) {
        wrong += check_behind(s, &rows[i], "", "");
        wrong += check_behind(s, &rows[i], "<|turn>model\n", "");
        wrong += check_behind(s, &rows[i], "<|turn>model\n" THINK "<channel|>", "");
        wrong += check_behind(s, &rows[i], "<|tool_response>response:f{}<tool_response|>", "");
        wrong += check_open(s, &rows[i]);
    }
    assert_true(CT_LEN(rows) >= 60);
    assert_int_equal(wrong, 0);
}

/* --- prompts, limits ------------------------------------------------------------ */

static void want(state *s, const char *prompt, const char *text, ct_output_end end,
                 const char *members, const char *finish)
{
    s->prompt.n = s->ids.n = 0;
    encode(s, &s->prompt, prompt);
    encode(s, &s->ids, text);
    assert_true(run_all_steps(&s->run, &s->other, &s->prompt, &s->ids, end));
    assert_string_equal(s->run.whole.p, members);
    assert_string_equal(s->run.finish, finish);
}

#define MEMBERS(content, reasoning, calls)                                                         \
    "\"content\": " content ", \"reasoning_content\": " reasoning ", \"tool_calls\": [" calls "]"
#define CALL_0(name, arguments)                                                                    \
    "{\"id\": \"call_0\", \"type\": \"function\", \"function\": {\"name\": \"" name                \
    "\", \"arguments\": \"" arguments "\"}}"

static void prompt_says_where_it_starts(void **ctx)
{
    const char *plan = MEMBERS("\"Hi\"", "\"plan\"", "");

    want(*ctx, THINK, "plan" END "Hi", CT_OUTPUT_STOP, plan, "stop");
    want(*ctx, "<|channel>thought", "\nplan" END "Hi", CT_OUTPUT_STOP, plan, "stop");
    want(*ctx, "<|channel>thou", "ght\nplan" END "Hi", CT_OUTPUT_STOP, plan, "stop");
    want(*ctx, "<|channel>", "thought\nplan" END "Hi", CT_OUTPUT_STOP, plan, "stop");
    want(*ctx, "<|channel>thought\nfirst, ", "plan" END "Hi", CT_OUTPUT_STOP, plan, "stop");
    want(*ctx, "<|channel>other\n", "plan" END "Hi", CT_OUTPUT_STOP, plan, "stop");
    want(*ctx, "<|channel>thou", "plan" END "Hi", CT_OUTPUT_STOP, plan, "stop");
    want(*ctx, THINK "x<turn|>\n<|turn>model\n", "Hi", CT_OUTPUT_STOP,
         MEMBERS("\"Hi\"", "null", ""), "stop");
}

static void length_makes_no_half_call(void **ctx)
{
    want(*ctx, "", CALL "f{a:1,b:2", CT_OUTPUT_LENGTH, MEMBERS("\"call:f{a:1,b:2\"", "null", ""),
         "length");
    want(*ctx, "", CALL "f{a:" Q "x" Q, CT_OUTPUT_LENGTH,
         MEMBERS("\"call:f{a:\\\"x\\\"\"", "null", ""), "length");
    want(*ctx, "", CALL "f{a:1}", CT_OUTPUT_LENGTH,
         MEMBERS("null", "null", CALL_0("f", "{\\\"a\\\":1}")), "length");
    want(*ctx, "", CALL "f{}" ENDCALL CALL "f", CT_OUTPUT_LENGTH,
         MEMBERS("\"call:f\"", "null", CALL_0("f", "{}")), "length");
    want(*ctx, THINK, "still thinking", CT_OUTPUT_LENGTH, MEMBERS("\"\"", "\"still thinking\"", ""),
         "length");
}

static void reasoning_tokens(void **ctx)
{
    state *s = *ctx;

    want(s, "", "<|channel>a\n<channel|>bb", CT_OUTPUT_STOP, MEMBERS("\"bb\"", "\"a\"", ""),
         "stop");
    assert_int_equal(s->run.n_reasoning, 4);
    want(s, THINK, "ab<channel|>c", CT_OUTPUT_STOP, MEMBERS("\"c\"", "\"ab\"", ""), "stop");
    assert_int_equal(s->run.n_reasoning, 3);
    want(s, "", "bb<channel|>c", CT_OUTPUT_STOP, MEMBERS("\"bbc\"", "null", ""), "stop");
    assert_int_equal(s->run.n_reasoning, 0);
    want(s, THINK, "a" CALL "f{}" ENDCALL, CT_OUTPUT_STOP,
         MEMBERS("null", "\"a\"", CALL_0("f", "{}")), "tool_calls");
    assert_int_equal(s->run.n_reasoning, 1);
}

static uint32_t byte_id(unsigned char byte)
{
    return (uint32_t)N_SPECIAL + byte;
}

static void bytes_that_are_no_text(void **ctx)
{
    state *s = *ctx;
    const uint32_t ids[] = {
        byte_id(0xff), byte_id(0xc3), ct_tokenizer_special(s->t, CT_STR("<|image|>")),
        byte_id(0xa9), byte_id(0xe6), ct_tokenizer_special(s->t, CT_STR("<|channel>")),
        byte_id(0x9c), byte_id(0xf0),
    };

    s->prompt.n = s->ids.n = 0;
    for (size_t i = 0; i < CT_LEN(ids); i++)
        test_ok(ct_ids_add(&s->ids, ids[i], &s->err), &s->err);
    assert_true(run_all_steps(&s->run, &s->other, &s->prompt, &s->ids, CT_OUTPUT_STOP));
    assert_string_equal(s->run.whole.p,
                        MEMBERS("\"" BAD "\xc3\xa9" BAD "\"", "\"" BAD BAD "\"", ""));
}

static void ids_outside_the_vocabulary(void **ctx)
{
    state *s = *ctx;
    uint32_t id = ct_tokenizer_vocab(s->t);
    ct_output *o;

    test_ok(ct_output_create(&o, s->t, NULL, NULL, 0, &s->err), &s->err);
    assert_int_equal(ct_output_add(o, &id, 1, run_event, &s->run, &s->err), CT_EINVAL);
    assert_non_null(strstr(s->err.text, "is not in the vocabulary of"));
    ct_output_destroy(o);
}

static void the_callers_error_comes_back(void **ctx)
{
    state *s = *ctx;
    ct_message *m;
    ct_output *o;

    s->ids.n = 0;
    encode(s, &s->ids, "four and more");
    test_ok(ct_message_create(&m, 4, &s->err), &s->err);
    test_ok(ct_output_create(&o, s->t, NULL, NULL, 0, &s->err), &s->err);
    assert_int_equal(ct_output_add(o, s->ids.id, s->ids.n, ct_message_add, m, &s->err), CT_ELIMIT);
    assert_string_equal(s->err.text, "the answer's content exceeds 4 bytes or the memory");
    ct_output_destroy(o);
    ct_message_destroy(m);
}

/* A call beyond the bound becomes text, none of it lost. */
static void call_beyond_the_bound(void **ctx)
{
    state *s = *ctx;
    const size_t n = ((size_t)16 << 20) + 1000;
    ct_str content;

    s->prompt.n = s->ids.n = 0;
    encode(s, &s->ids, CALL "f{a:" Q);
    for (size_t i = 0; i < n / 4; i++)
        encode(s, &s->ids, "call");
    encode(s, &s->ids, Q "}" ENDCALL "end");
    run_ids(&s->run, &s->prompt, &s->ids, SIZE_MAX, CT_OUTPUT_STOP);
    content = ct_message_content(s->run.message);
    assert_int_equal(ct_message_n_calls(s->run.message), 0);
    assert_int_equal(content.n, n / 4 * 4 + strlen("call:f{a:\"\"}end"));
    assert_memory_equal(content.p + content.n - 9, "call\"}end", 9);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(malformed_outputs),
        cmocka_unit_test(prompt_says_where_it_starts),
        cmocka_unit_test(length_makes_no_half_call),
        cmocka_unit_test(reasoning_tokens),
        cmocka_unit_test(bytes_that_are_no_text),
        cmocka_unit_test(ids_outside_the_vocabulary),
        cmocka_unit_test(the_callers_error_comes_back),
        cmocka_unit_test(call_beyond_the_bound),
    };

    return cmocka_run_group_tests_name("output", tests, setup, teardown);
}
