/* Template source: anything is compiled or refused; what compiles is rendered with one
 * rich input under small limits. */
#include <stdint.h>

#include "text/jinja.h"
#include "text/value.h"

static const char input[] =
    "{\"bos_token\":\"<b>\",\"s\":\"H\\u00e9llo <|x|> \",\"n\":3,\"f\":1.5,\"t\":true,\"z\":null,"
    "\"big\":123456789012345678901234567890,\"l\":[1,\"two\",[3],{\"k\":\"v\"}],"
    "\"m\":{\"b\":1,\"A\":[1,2],\"a\":{\"x\":\"y\"}},\"messages\":[{\"role\":\"user\","
    "\"content\":\" q \"},{\"role\":\"assistant\",\"content\":[{\"type\":\"text\",\"text\":\"a\"}],"
    "\"tool_calls\":[{\"function\":{\"name\":\"f\",\"arguments\":{\"k\":1e-7}}}]}]}";

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    const ct_jinja_limits limits = {.steps = 20000, .output_bytes = 1 << 16, .depth = 50};
    const ct_value *vars;
    ct_jinja *j;
    ct_arena a = {0};
    ct_buf out;

    if (ct_jinja_compile(&j, "fuzz", (ct_str){(const char *)data, n}, NULL))
        return 0;
    ct_buf_init(&out, 1 << 17);
    if (!ct_arena_init(&a, 16 << 20, NULL) && !ct_value_parse(&vars, "v", CT_STR(input), &a, NULL))
        (void)ct_jinja_render_limited(j, vars, limits, &a, &out, NULL);
    ct_buf_deinit(&out);
    ct_arena_deinit(&a);
    ct_jinja_destroy(j);
    return 0;
}
