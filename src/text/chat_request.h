/* A client's chat request as the chat template wants it, whichever API it came by.
 *
 * This is the part that OpenAI's and Anthropic's forms share: the built request, the
 * checks of text and names, and the bounds.  Values borrow from the request and the
 * arena.  Any thread. */
#ifndef CT_TEXT_CHAT_REQUEST_H
#define CT_TEXT_CHAT_REQUEST_H

#include "text/value.h"

#define CT_CHAT_MAX_MESSAGES   16384
#define CT_CHAT_MAX_PARTS      4096 /* of one message */
#define CT_CHAT_MAX_CALLS      256  /* of one message */
#define CT_CHAT_MAX_TOOLS      1024
#define CT_CHAT_MAX_NAME_BYTES 256
#define CT_CHAT_MAX_TEXT_BYTES ((size_t)32 << 20) /* all texts of a request together */

typedef struct ct_chat_request {
    ct_value render;             /* for ct_chat_render */
    const ct_value *tools;       /* OpenAI's list, schemas as sent: for ct_tools_from; or NULL */
    const ct_value *tool_choice; /* OpenAI's form, or NULL */
} ct_chat_request;

/* A request being built. */
typedef struct ct_chat_builder {
    ct_arena *a;
    ct_value *message; /* finished ones, room for all */
    size_t n, room;
    size_t n_turns; /* messages up to the last that is no tool result */
    size_t text_bytes;
} ct_chat_builder;

ct_status ct_chat_begin(ct_chat_builder *b, size_t n_messages, ct_arena *a, ct_error *err);
ct_status ct_chat_add(ct_chat_builder *b, const ct_map_entry *entry, size_t n, ct_error *err);

/* Text that goes to the model: counted, and refused when it holds a control token of
 * images, audio or video, which no text-only engine can serve. */
ct_status ct_chat_check_text(ct_chat_builder *b, ct_str text, ct_error *err);
/* Every string within v, keys too. */
ct_status ct_chat_check_value(ct_chat_builder *b, const ct_value *v, ct_error *err);
/* A function's name: what the call syntax can hold. */
ct_status ct_chat_check_name(const ct_value *v, ct_error *err);

/* OpenAI's list of tools, checked: function tools only, every name once. */
ct_status ct_chat_check_tools(ct_chat_builder *b, const ct_value *tools, ct_error *err);

/* Every tool result must follow a message with calls, and answer one of them by id or
 * carry a name (id and name may be NULL): others would vanish in the template. */
ct_status ct_chat_check_result(const ct_chat_builder *b, const ct_value *id, const ct_value *name,
                               ct_error *err);

/* One of OpenAI's boolean options, NULL when absent. */
typedef struct ct_chat_options {
    const ct_value *add_generation_prompt; /* NULL: true */
    const ct_value *enable_thinking, *preserve_thinking;
} ct_chat_options;

/* Puts everything together; tools (or NULL) are brought into the template's reach. */
ct_status ct_chat_finish(ct_chat_request *out, ct_chat_builder *b, const ct_value *tools,
                         const ct_chat_options *options, ct_error *err);

static inline bool ct_chat_is_null(const ct_value *v)
{
    return !v || v->kind == CT_VALUE_NONE;
}

/* "must be WHAT, not a string", and "is missing" for NULL. */
ct_status ct_chat_must_be(const ct_value *v, const char *what, ct_error *err);
/* Item i of the array `list` must be an object. */
ct_status ct_chat_check_object(const ct_value *v, const char *list, size_t i, ct_error *err);
/* Fails on an entry of an object whose key is not in names. */
ct_status ct_chat_check_keys(const ct_value *object, const char *const *names, size_t n,
                             ct_error *err);

#endif
