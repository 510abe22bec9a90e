/* Arguments of a tool call: the JSON does not depend on cuts, is JSON unless the reading
 * failed, and every byte is either of the call or given back.  The first byte chooses a
 * schema, the beginning of the text and the way of ending, the second the cuts; '~' stands
 * for the quote token. */
#include <stdint.h>

#include "base/utf8.h"
#include "text/call_args.h"

#define CAP_BYTES ((size_t)16 << 20)

static const char schema_text[] =
    "[null,"
    "{\"type\":\"object\",\"properties\":{\"a\":{\"type\":\"string\"},\"b\":{\"type\":\"integer\"},"
    "\"a:b\":{\"type\":\"array\",\"items\":{\"type\":\"string\"}},\"c\":{\"$ref\":\"#\"}}},"
    "{\"properties\":{\"a\":{\"type\":\"object\",\"properties\":{\"b\":{\"type\":\"string\"}}},"
    "\"b\":{\"anyOf\":[{\"type\":\"string\"},{\"type\":\"null\"}]}}},"
    "{\"additionalProperties\":{\"type\":\"string\"}}]";

typedef struct reading {
    ct_buf json, rest;
    ct_call_args_state where;
} reading;

static void check(bool ok)
{
    if (!ok)
        __builtin_trap();
}

/* Bytes of the next piece: up to a quote, and as many characters as the cuts say. */
static size_t piece(ct_str s, unsigned cuts, unsigned *random)
{
    size_t n = 0, limit = s.n;

    if (cuts == 1)
        limit = 1;
    else if (cuts > 1)
        limit = 1 + ((*random = *random * 1103515245u + 12345u) >> 16) % cuts;
    for (size_t i = 0; i < limit && n < s.n && s.p[n] != '~'; i++) {
        unsigned len = 1;

        (void)ct_utf8_next(s, n, &len);
        n += len;
    }
    return n;
}

static void read_text(reading *r, ct_call_args *c, const ct_value *schema, ct_str s, bool stopped,
                      unsigned cuts)
{
    unsigned random = cuts;
    ct_str rest;

    ct_buf_clear(&r->json);
    ct_buf_clear(&r->rest);
    ct_call_args_start(c, schema);
    while (s.n && ct_call_args_where(c) == CT_CALL_ARGS_OPEN) {
        size_t n = piece(s, cuts, &random), used = 1;

        if (n)
            check(!ct_call_args_text(c, (ct_str){s.p, n}, &used, &r->json, NULL));
        else
            check(!ct_call_args_quote(c, &r->json, NULL));
        check(used <= (n ? n : 1));
        check(used == (n ? n : 1) || ct_call_args_where(c) == CT_CALL_ARGS_CLOSED);
        s = (ct_str){s.p + used, s.n - used};
    }
    check(!ct_call_args_end(c, stopped, &r->json, NULL));
    r->where = ct_call_args_where(c);
    check(r->where != CT_CALL_ARGS_OPEN);
    rest = ct_call_args_rest(c);
    ct_buf_add(&r->rest, rest.p, rest.n);
    ct_buf_add(&r->rest, s.p, s.n);
}

static void check_json(ct_str s)
{
    ct_json j;
    ct_json_token t;

    ct_json_init(&j, "arguments", s);
    check(!ct_json_next(&j, &t, NULL) && t.kind == CT_JSON_OBJECT);
    check(!ct_json_skip(&j, &t, NULL));
    check(!ct_json_next(&j, &t, NULL) && t.kind == CT_JSON_END);
}

/* A stray quote token behind the call is not given back: compared without. */
static bool same_rest(ct_str a, ct_str b)
{
    size_t i = 0, j = 0;

    for (;;) {
        while (i < a.n && a.p[i] == '~')
            i++;
        while (j < b.n && b.p[j] == '~')
            j++;
        if (i == a.n || j == b.n)
            return i == a.n && j == b.n;
        if (a.p[i++] != b.p[j++])
            return false;
    }
}

static void compare(const reading *a, const reading *b)
{
    check(a->where == b->where);
    if (a->where == CT_CALL_ARGS_FAILED)
        return;
    check(ct_str_eq(ct_buf_str(&a->json), ct_buf_str(&b->json)));
    check(same_rest(ct_buf_str(&a->rest), ct_buf_str(&b->rest)));
    check_json(ct_buf_str(&a->json));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    static ct_arena arena;
    static const ct_value *schemas;
    static ct_call_args *c;
    static reading a, b;
    static ct_buf text;
    static const char *const heads[] = {"", "{a:~", "{a:[~", "{"};
    const ct_value *schema;
    ct_str s;

    if (!c) {
        ct_buf_init(&text, CAP_BYTES);
        check(!ct_arena_init(&arena, CAP_BYTES, NULL));
        check(!ct_value_parse(&schemas, "schemas", ct_str_of(schema_text), &arena, NULL));
        check(!ct_call_args_create(&c, NULL));
        ct_buf_init(&a.json, CAP_BYTES);
        ct_buf_init(&a.rest, CAP_BYTES);
        ct_buf_init(&b.json, CAP_BYTES);
        ct_buf_init(&b.rest, CAP_BYTES);
    }
    if (n < 2)
        return 0;
    ct_buf_clear(&text);
    ct_buf_addz(&text, heads[data[0] >> 4 & 3]);
    ct_buf_add(&text, data + 2, n - 2);
    s = ct_buf_str(&text);
    if (ct_utf8_valid_prefix(s) < s.n)
        return 0;
    schema = &schemas->u.list.item[data[0] % schemas->u.list.n];
    read_text(&a, c, schema, s, data[0] & 128, 0);
    read_text(&b, c, schema, s, data[0] & 128, 1);
    compare(&a, &b);
    read_text(&b, c, schema, s, data[0] & 128, 2 + data[1] % 14);
    compare(&a, &b);
    return 0;
}
