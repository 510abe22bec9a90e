/* From a conversation to a prompt: the checkpoint's own chat template, compiled at
 * load. */
#ifndef CT_TEXT_CHAT_H
#define CT_TEXT_CHAT_H

#include "text/jinja.h"
#include "text/value.h"

/* A checkpoint's template and the text of its BOS token.  Immutable once open. */
typedef struct ct_chat_template {
    ct_jinja *jinja;
    ct_buf bos;
} ct_chat_template;

/* dir: a checkpoint's directory, of which chat_template.jinja (else the string
 * `chat_template` of tokenizer_config.json) and `bos_token` of tokenizer_config.json
 * (default "<bos>") are read; path, when not NULL, names another template file.  Either
 * may be NULL, not both. */
ct_status ct_chat_template_open(ct_chat_template *out, const char *dir, const char *path,
                                ct_error *err);
void ct_chat_template_close(ct_chat_template *t); /* fine on an all-zero one */

/* Renders one request {messages, tools, add_generation_prompt, enable_thinking,
 * preserve_thinking}; absent or null options are not passed to the template.  bos_text
 * is what the template prints for bos_token.  add_generation_prompt defaults to false.
 * Other keys and wrong types are refused by name. */
ct_status ct_chat_render(const ct_jinja *template, ct_str bos_text, const ct_value *request,
                         ct_arena *a, ct_buf *out, ct_error *err);

#endif
