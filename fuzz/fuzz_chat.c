/* Template inputs: any JSON request through a template that touches everything the
 * interpreter can do with a value. */
#include <stdint.h>

#include "text/chat.h"

static const char source[] =
    "{%- macro show(v, deep=true) -%}"
    "{%- if v is none -%}null{%- elif v is string -%}<{{ v | trim }}>{{ v | upper }}{{ v[1:] }}"
    "{%- elif v is boolean -%}{{ 'yes' if v else 'no' }}"
    "{%- elif v is mapping -%}{ {%- for k, x in v | dictsort -%}{{ k }}:{{ show(x) }},"
    "{%- endfor -%} }{{ v | tojson }}{{ v }}"
    "{%- elif v is sequence -%}[{%- for x in v -%}{{ show(x, deep=false) }}"
    "{%- if not loop.last %},{% endif -%}{%- endfor -%}]{{ v[::-1] | length }}"
    "{%- else -%}{{ v }}{{ -v }}{{ v == 1 }}{{ v < 3.5 }}{%- endif -%}"
    "{%- endmacro -%}"
    "{%- set ns = namespace(text='', last=-1) -%}"
    "{{- bos_token -}}"
    "{%- for m in messages -%}"
    "{%- if m.role == 'user' %}{% set ns.last = loop.index0 %}{% endif -%}"
    "{%- set body %}{{ show(m.get('content')) }}{% endset -%}"
    "{%- if m.content is string -%}{%- for part in m.content.split('<|') -%}"
    "{%- set ns.text = ns.text + part.split('|>')[0] + m.role -%}{%- endfor -%}{%- endif -%}"
    "{{- m.role | upper ~ body | trim ~ m['items'] is defined -}}"
    "{%- for k in m.keys() -%}{{ k in m }}{{ m[k] == m.get(k) }}{%- endfor -%}"
    "{%- for c in m.tool_calls -%}{{ show(c) }}{{ c.function.name }}"
    "{{ c.function.arguments | default({}, true) | tojson(indent=1) }}{%- endfor -%}"
    "{%- endfor -%}"
    "{%- for t in tools | default([]) -%}{{ show(t) }}{{ t.type | upper }}"
    "{{ [t.type, t.name] | map('upper') | list }}{%- endfor -%}"
    "{{- ns.text | replace('a', 'bb') | length -}}{{ ns.last }}"
    "{%- if add_generation_prompt %}{{ enable_thinking | default(false) }}{% endif -%}";

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    static ct_jinja *j;
    const ct_value *request;
    ct_arena a = {0};
    ct_buf out;

    if (!j && ct_jinja_compile(&j, "fuzz", CT_STR(source), NULL))
        __builtin_trap();
    ct_buf_init(&out, 1 << 20);
    if (!ct_arena_init(&a, 64 << 20, NULL) &&
        !ct_value_parse(&request, "request", (ct_str){(const char *)data, n}, &a, NULL))
        (void)ct_chat_render(j, CT_STR("<bos>"), request, &a, &out, NULL);
    ct_buf_deinit(&out);
    ct_arena_deinit(&a);
    return 0;
}
