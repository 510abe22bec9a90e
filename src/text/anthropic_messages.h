/* Anthropic's messages request: content blocks, system text and tools, checked and
 * brought to the form of the chat template.
 *
 * Blocks of text, tool_use, tool_result, thinking and redacted_thinking are read;
 * others are refused by name and path.  docs/requests.md says what becomes of each.
 * Any thread. */
#ifndef CT_TEXT_ANTHROPIC_MESSAGES_H
#define CT_TEXT_ANTHROPIC_MESSAGES_H

#include "text/chat_request.h"

/* body: the request; of it are read system, messages, tools, tool_choice, thinking and
 * chat_template_kwargs' counterparts enable_thinking, preserve_thinking and
 * add_generation_prompt.  Its other keys are the caller's. */
ct_status ct_anthropic_request(ct_chat_request *out, const ct_value *body, ct_arena *a,
                               ct_error *err);

/* One assistant message {role, content}, as a server sends it, in its form in `render`. */
ct_status ct_anthropic_assistant(ct_value *out, const ct_value *message, ct_arena *a,
                                 ct_error *err);

#endif
