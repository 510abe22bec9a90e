/* OpenAI's chat completion request: messages, tools and template options, checked and
 * brought to the form of the chat template.
 *
 * Whatever is wrong is named by its path ("messages[3].tool_calls[0].function.arguments:
 * not a JSON object: …").  What the template would lose is refused, not lost: media
 * parts, tool results without a call, unknown fields.  docs/requests.md has the rules.
 * Any thread. */
#ifndef CT_TEXT_OPENAI_MESSAGES_H
#define CT_TEXT_OPENAI_MESSAGES_H

#include "text/chat_request.h"

/* body: the request; of it are read messages, tools, tool_choice, chat_template_kwargs,
 * and add_generation_prompt, enable_thinking, preserve_thinking beside them.  Its other
 * keys are the caller's.  `functions` and `function_call` are refused. */
ct_status ct_openai_request(ct_chat_request *out, const ct_value *body, ct_arena *a, ct_error *err);

/* One assistant message, as a server sends it, in the form it has within `render`. */
ct_status ct_openai_assistant(ct_value *out, const ct_value *message, ct_arena *a, ct_error *err);

#endif
