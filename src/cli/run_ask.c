#include "cli/run_ask.h"

#include "base/json.h"

static void put_message(ct_buf *json, const char *role, ct_str content)
{
    ct_buf_addf(json, "{\"role\": \"%s\", \"content\": ", role);
    ct_json_put_str(json, content);
    ct_buf_addc(json, '}');
}

/* `render` reads the same form. */
static void put_request(ct_buf *json, const ct_run_ask *ask)
{
    ct_buf_addz(json, "{\"messages\": [");
    if (ask->system.p) {
        put_message(json, "system", ask->system);
        ct_buf_addz(json, ", ");
    }
    put_message(json, "user", ask->prompt);
    ct_buf_addf(json, "], \"add_generation_prompt\": true, \"enable_thinking\": %s}",
                ask->think ? "true" : "false");
}

ct_status ct_run_ask_render(ct_buf *out, const ct_run_ask *ask, const ct_chat_template *t,
                            ct_arena *a, ct_error *err)
{
    const ct_value *request;
    ct_buf json;
    ct_status st;

    ct_buf_init(&json, 8 * CT_RUN_MAX_PROMPT_BYTES);
    put_request(&json, ask);
    st = ct_value_parse(&request, "request", ct_buf_str(&json), a, err);
    if (!st)
        st = ct_chat_render(t->jinja, ct_buf_str(&t->bos), request, a, out, err);
    ct_buf_deinit(&json);
    return st;
}
