/* Generated ids: any, in any order, behind any prompt.  What is given out must not depend
 * on how the ids were cut; every call must be one JSON object, every text UTF-8. */
#include "base/utf8.h"
#include "text/message.h"
#include "text/value.h"

#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static const char *const special[] = {
    "<eos>",      "<|tool_call>",     "<tool_call|>", "<|\"|>",  "<|channel>",
    "<channel|>", "<|tool_response>", "<turn|>",      "<|turn>", "<pad>",
};
#define N_SPECIAL 10
/* Words that inputs seldom hit by single bytes. */
static const char *const words[] = {"thought", "thought\n", "call:", "call:f{", "call:tool",
                                    "tool",    "true",      "null",  "1.5",     "\n\n",
                                    "}}",      "\",",       ",a:",   "[{",      "\xe6\x9c\xac"};
#define N_WORDS 15
/* Ids: specials, words, bytes as characters, byte pieces. */
#define FIRST_CHAR (N_SPECIAL + N_WORDS)
#define FIRST_BYTE (FIRST_CHAR + 94)

static void put_entry(ct_buf *b, const char *piece, unsigned id)
{
    ct_buf_addz(b, id ? "," : "");
    ct_json_put_str(b, ct_str_of(piece));
    ct_buf_addf(b, ":%u", id);
}

static void put_vocab(ct_buf *b)
{
    char piece[8];

    for (unsigned i = 0; i < N_SPECIAL; i++)
        put_entry(b, special[i], i);
    for (unsigned i = 0; i < N_WORDS; i++)
        put_entry(b, words[i], N_SPECIAL + i);
    for (unsigned i = 0; i < 94; i++)
        put_entry(b, (char[]){(char)('!' + i), 0}, FIRST_CHAR + i);
    for (unsigned i = 0; i < 256; i++) {
        snprintf(piece, sizeof piece, "<0x%02X>", i);
        put_entry(b, piece, FIRST_BYTE + i);
    }
    put_entry(b, "\xe2\x96\x81", FIRST_BYTE + 256);
}

static void put_file(ct_buf *b)
{
    ct_buf_addz(b, "{\"added_tokens\":[");
    for (unsigned i = 0; i < N_SPECIAL; i++) {
        ct_buf_addf(b, "%s{\"id\":%u,\"content\":", i ? "," : "", i);
        ct_json_put_str(b, ct_str_of(special[i]));
        ct_buf_addz(b, ",\"single_word\":false,\"lstrip\":false,\"rstrip\":false,"
                       "\"normalized\":false,\"special\":true}");
    }
    ct_buf_addz(b, "],\"normalizer\":{\"type\":\"Replace\",\"pattern\":{\"String\":\" \"},"
                   "\"content\":\"\\u2581\"},\"decoder\":{\"type\":\"Sequence\",\"decoders\":"
                   "[{\"type\":\"Replace\",\"pattern\":{\"String\":\"\\u2581\"},\"content\":\" \"},"
                   "{\"type\":\"ByteFallback\"},{\"type\":\"Fuse\"}]},\"model\":{\"type\":\"BPE\","
                   "\"byte_fallback\":true,\"vocab\":{");
    put_vocab(b);
    ct_buf_addz(b, "},\"merges\":[]}}");
}

static ct_tokenizer *tokenizer;
static ct_tools tools;
static ct_arena arena;
static ct_error err;

static void check(bool right)
{
    if (!right)
        abort();
}

static void open_once(void)
{
    static const char list[] =
        "[{\"type\":\"function\",\"function\":{\"name\":\"f\",\"parameters\":{\"type\":\"object\","
        "\"properties\":{\"a\":{\"type\":\"string\"},\"b\":{\"type\":\"array\",\"items\":"
        "{\"type\":\"integer\"}}}}}},{\"type\":\"function\",\"function\":{\"name\":\"tool-2.x\"}}]";
    const ct_value *v;
    ct_buf b;

    if (tokenizer)
        return;
    ct_buf_init(&b, 1 << 20);
    put_file(&b);
    check(!ct_tokenizer_parse(&tokenizer, "fuzz", ct_buf_str(&b), &err));
    check(!ct_arena_init(&arena, 64 << 20, &err));
    check(!ct_value_parse(&v, "tools", CT_STR(list), &arena, &err));
    check(!ct_tools_from(&tools, v, &arena, &err));
    ct_buf_deinit(&b);
}

/* A byte is a special, a word or a character; 0xff makes the next one a byte piece. */
static void read_ids(const uint8_t *data, size_t n, ct_ids *out)
{
    for (size_t i = 0; i < n; i++) {
        uint32_t id = data[i];

        if (id == 0xff && i + 1 < n)
            id = FIRST_BYTE + data[++i];
        else if (id >= '!' && id <= '~')
            id = FIRST_CHAR + id - '!';
        else if (id >= 0x80)
            id = id % FIRST_CHAR;
        else
            id = id < FIRST_CHAR ? id : FIRST_BYTE + 256;
        check(!ct_ids_add(out, id, &err));
    }
}

static bool is_text(ct_str s)
{
    return ct_utf8_valid_prefix(s) == s.n;
}

static ct_status on_event(void *ctx, const ct_event *e, ct_error *error)
{
    check(is_text(e->text));
    return ct_message_add(ctx, e, error);
}

static void read_answer(ct_message *m, const ct_ids *prompt, const ct_ids *ids, size_t step,
                        bool cut, ct_buf *json)
{
    ct_output *o;
    size_t k;

    check(!ct_output_create(&o, tokenizer, &tools, prompt->id, prompt->n, &err));
    for (size_t i = 0; i < ids->n; i += k) {
        k = step < ids->n - i ? step : ids->n - i;
        check(!ct_output_add(o, ids->id + i, k, on_event, m, &err));
    }
    check(!ct_output_finish(o, cut ? CT_OUTPUT_LENGTH : CT_OUTPUT_STOP, on_event, m, &err));
    ct_message_put_members(m, CT_STR(""), json);
    ct_buf_addz(json, ct_output_finish_reason(o));
    ct_buf_addf(json, "%u", (unsigned)ct_output_reasoning_tokens(o));
    check(!json->failed);
    ct_output_destroy(o);
}

static void check_calls(const ct_message *m)
{
    ct_arena_mark mark = ct_arena_save(&arena);
    const ct_value *v;

    for (size_t i = 0; i < ct_message_n_calls(m); i++) {
        check(ct_message_call_name(m, i).n > 0);
        check(!ct_value_parse(&v, "arguments", ct_message_call_arguments(m, i), &arena, &err));
        check(v->kind == CT_VALUE_MAP);
        ct_arena_rewind(&arena, mark);
    }
}

/* The first byte: where the prompt ends, how the answer does, and the size of a step. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    ct_ids prompt = {0}, ids = {0};
    ct_message *whole, *cut;
    ct_buf a, b;
    size_t n_prompt;

    if (n == 0)
        return 0;
    open_once();
    n_prompt = data[0] % 8 < n - 1 ? data[0] % 8 : n - 1;
    read_ids(data + 1, n_prompt, &prompt);
    read_ids(data + 1 + n_prompt, n - 1 - n_prompt, &ids);
    ct_buf_init(&a, 1 << 26);
    ct_buf_init(&b, 1 << 26);
    check(!ct_message_create(&whole, 1 << 24, &err));
    check(!ct_message_create(&cut, 1 << 24, &err));
    read_answer(whole, &prompt, &ids, SIZE_MAX, data[0] & 0x80, &a);
    read_answer(cut, &prompt, &ids, 1 + data[0] / 8 % 8, data[0] & 0x80, &b);
    check(ct_str_eq(ct_buf_str(&a), ct_buf_str(&b)));
    check_calls(whole);
    ct_message_destroy(whole);
    ct_message_destroy(cut);
    ct_buf_deinit(&a);
    ct_buf_deinit(&b);
    ct_ids_deinit(&prompt);
    ct_ids_deinit(&ids);
    return 0;
}
