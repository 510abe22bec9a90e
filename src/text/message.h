/* One whole answer, collected from the events of an output reader.
 *
 * ct_message_add is a ct_event_fn; its ctx is the message.  Void calls are left out.
 * One thread. */
#ifndef CT_TEXT_MESSAGE_H
#define CT_TEXT_MESSAGE_H

#include "text/output.h"

typedef struct ct_message ct_message;

/* cap_bytes: of content, of reasoning, and of all calls together. */
ct_status ct_message_create(ct_message **out, size_t cap_bytes, ct_error *err);
void ct_message_destroy(ct_message *m);
void ct_message_clear(ct_message *m); /* for the next answer; keeps the memory */

ct_status ct_message_add(void *message, const ct_event *event, ct_error *err);

/* Drops the content from byte n on, as when a stop string was found there. */
void ct_message_cut_content(ct_message *m, size_t n);

/* Borrowed until the next event. */
ct_str ct_message_content(const ct_message *m);
ct_str ct_message_reasoning(const ct_message *m);
size_t ct_message_n_calls(const ct_message *m); /* complete ones */
ct_str ct_message_call_name(const ct_message *m, size_t i);
ct_str ct_message_call_arguments(const ct_message *m, size_t i); /* JSON, one object */

/* Appends `"content": …, "reasoning_content": …, "tool_calls": […]`, the members of
 * OpenAI's message.  content is null when it is empty beside calls, reasoning_content
 * when there is none.  Ids of calls: id_prefix and the number. */
void ct_message_put_members(const ct_message *m, ct_str id_prefix, ct_buf *json);

#endif
