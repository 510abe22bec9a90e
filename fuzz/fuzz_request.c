/* Chat requests of both APIs: any JSON is mapped and rendered, or refused with a text.
 * The template walks like Google's: calls, results, declarations with every keyword. */
#include <stdint.h>

#include "text/anthropic_messages.h"
#include "text/chat.h"
#include "text/openai_messages.h"
#include "text/value_canon.h"

static const char source[] =
    "{%- macro props(p) -%}{%- for k, v in p | dictsort -%}{{ k }}:{{ v['description'] }}"
    "{{ v['type'] | upper }}{%- if v['enum'] -%}{{ v['enum'] | tojson }}{%- endif -%}"
    "{%- if v['items'] is mapping -%}{{ props(v['items']['properties'] | default({})) }}"
    "{{ v['items'] | tojson }}{%- endif -%}"
    "{%- for r in v['required'] | default([]) -%}{{ r + ',' }}{%- endfor -%}"
    "{%- if v['properties'] is mapping -%}{{ props(v['properties']) }}{%- endif -%}"
    "{%- endfor -%}{%- endmacro -%}"
    "{{- bos_token -}}"
    "{%- for t in tools | default([]) -%}{%- set f = t['function'] -%}{{ f['name'] + ' ' }}"
    "{{ f['description'] }}{%- if f['parameters'] -%}"
    "{{ props(f['parameters']['properties'] | default({})) }}"
    "{{ f['parameters']['type'] | upper }}{%- endif -%}"
    "{%- if 'response' in f %}{{ f['response']['type'] | upper }}{% endif -%}{%- endfor -%}"
    "{%- for m in messages -%}{{ m['role'] + '>' }}"
    "{%- if m.get('reasoning_content') %}{{ m['reasoning_content'] + '|' }}{% endif -%}"
    "{%- for c in m.get('tool_calls') or [] -%}{{ c['function']['name'] + '{' }}"
    "{%- for k, v in c['function']['arguments'] | dictsort -%}{{ k + ':' }}{{ v | tojson }}"
    "{%- endfor -%}{%- endfor -%}"
    "{%- if m.get('content') is string -%}{{ m['content'] | trim }}"
    "{%- elif m.get('content') is sequence -%}"
    "{%- for p in m['content'] -%}{{ p['text'] | trim + ' ' }}{%- endfor -%}{%- endif -%}"
    "{%- endfor -%}";

/* Whatever was accepted must render: a failure then would be an error without a path. */
static void render(const ct_jinja *j, ct_status st, const ct_chat_request *r, ct_arena *a,
                   const ct_error *err)
{
    ct_error e = {0};
    ct_buf out;

    if (st) {
        if (!err->text[0] || err->status != st)
            __builtin_trap();
        return;
    }
    ct_buf_init(&out, 1 << 20);
    st = ct_chat_render(j, CT_STR("<bos>"), &r->render, a, &out, &e);
    if (st && st != CT_ELIMIT)
        __builtin_trap();
    ct_buf_clear(&out);
    ct_value_put_canon(&out, &r->render);
    ct_buf_deinit(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    static ct_jinja *j;
    const ct_value *body;
    ct_chat_request r;
    ct_error err = {0};
    ct_arena a = {0};

    if (!j && ct_jinja_compile(&j, "fuzz", CT_STR(source), NULL))
        __builtin_trap();
    if (!ct_arena_init(&a, 64 << 20, NULL) &&
        !ct_value_parse(&body, "request", (ct_str){(const char *)data, n}, &a, NULL)) {
        render(j, ct_openai_request(&r, body, &a, &err), &r, &a, &err);
        render(j, ct_anthropic_request(&r, body, &a, &err), &r, &a, &err);
    }
    ct_arena_deinit(&a);
    return 0;
}
