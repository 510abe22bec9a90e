/* From a conversation to a prompt: the checkpoint's own chat template, compiled at
 * load, and its tokenizer. */
#ifndef CT_TEXT_CHAT_H
#define CT_TEXT_CHAT_H

#include "text/jinja.h"
#include "text/tokenizer.h"
#include "text/value.h"

/* Renders one request {messages, tools, add_generation_prompt, enable_thinking,
 * preserve_thinking}; absent or null options are not passed to the template.  bos_text
 * is what the template prints for bos_token.  add_generation_prompt defaults to false. */
ct_status ct_chat_render(const ct_jinja *template, ct_str bos_text, const ct_value *request,
                         ct_arena *a, ct_buf *out, ct_error *err);

#endif
