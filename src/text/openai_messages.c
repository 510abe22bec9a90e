#include "text/openai_messages.h"

#include "base/checked.h"

#define MAX_FIELDS 8 /* of a message that is built */
#define MAX_SHOWN  100

/* A message on its way. */
typedef struct work {
    ct_chat_builder *b;
    const ct_value *message;
    ct_map_entry field[MAX_FIELDS];
    size_t n;
} work;

static ct_status no_memory(ct_error *err)
{
    return ct_fail(err, CT_ELIMIT, "the request exceeds the memory bound");
}

/* Passes st on, with the name of what it is about. */
static ct_status in(ct_status st, const char *field, ct_error *err)
{
    if (st)
        ct_error_prefix(err, "%s: ", field);
    return st;
}

static void put(work *w, const char *key, const ct_value *v)
{
    w->field[w->n++] = (ct_map_entry){ct_str_of(key), *v};
}

static ct_str shown(const ct_value *v)
{
    if (v->kind != CT_VALUE_STRING)
        return ct_str_of(ct_value_kind_name(v));
    return (ct_str){v->u.text.p, ct_min_size(v->u.text.n, MAX_SHOWN)};
}

static bool is_word(const ct_value *v, const char *word)
{
    return v && v->kind == CT_VALUE_STRING && ct_str_is(ct_value_text(v), word);
}

/* ---- content ---- */

/* The text of a part, or NULL with an error. */
static ct_status part_text(work *w, const ct_value *part, bool assistant, const ct_value **out,
                           ct_error *err)
{
    const ct_value *type = ct_value_get(part, "type"), *text;
    const char *key = "text";
    ct_status st;

    if (part->kind != CT_VALUE_MAP) {
        st = ct_chat_must_be(part, "an object", err);
        ct_error_prefix(err, ": ");
        return st;
    }
    if (!type || type->kind != CT_VALUE_STRING)
        return in(ct_chat_must_be(type, "a string", err), ".type", err);
    if (assistant && is_word(type, "refusal"))
        key = "refusal";
    else if (!is_word(type, "text"))
        return ct_fail(err, CT_EUNSUPPORTED, ".type: '%.*s' is not supported, only text",
                       CT_STR_ARG(shown(type)));
    text = ct_value_get(part, key);
    st = text && text->kind == CT_VALUE_STRING ? ct_chat_check_text(w->b, ct_value_text(text), err)
                                               : ct_chat_must_be(text, "a string", err);
    if (st)
        ct_error_prefix(err, ".%s: ", key);
    *out = text;
    return st;
}

static ct_status text_part(work *w, const ct_value *text, ct_value *out, ct_error *err)
{
    ct_map_entry *e = ct_arena_zalloc(w->b->a, 2, sizeof *e);

    if (!e)
        return no_memory(err);
    e[0] = (ct_map_entry){CT_STR("type"), ct_value_str(CT_STR("text"))};
    e[1] = (ct_map_entry){CT_STR("text"), *text};
    return ct_value_build_map(out, e, 2, w->b->a) ? CT_OK : no_memory(err);
}

/* A list of text parts; one part is that string, as clients mean it. */
static ct_status put_parts(work *w, const ct_value *list, bool assistant, ct_error *err)
{
    ct_value empty = ct_value_str(CT_STR("")), parts, *item;
    const ct_value *text = &empty;
    size_t n = list->u.list.n;
    ct_status st = CT_OK;

    if (n > CT_CHAT_MAX_PARTS)
        return ct_fail(err, CT_ELIMIT, "content: %zu parts, at most %d", n, CT_CHAT_MAX_PARTS);
    item = ct_arena_zalloc(w->b->a, n, sizeof *item);
    if (!item)
        return no_memory(err);
    for (size_t i = 0; i < n && !st; i++) {
        st = part_text(w, &list->u.list.item[i], assistant, &text, err);
        if (!st)
            st = text_part(w, text, &item[i], err);
        if (st)
            ct_error_prefix(err, "content[%zu]", i);
    }
    if (st)
        return st;
    parts = ct_value_list(item, n, CT_LIST_LIST);
    put(w, "content", n < 2 ? text : &parts);
    return CT_OK;
}

static ct_status put_content(work *w, bool assistant, ct_error *err)
{
    const ct_value *content = ct_value_get(w->message, "content");
    ct_status st;

    if (content && content->kind == CT_VALUE_LIST)
        return put_parts(w, content, assistant, err);
    if (!content || content->kind != CT_VALUE_STRING)
        return in(ct_chat_must_be(content, "a string or an array of text parts", err), "content",
                  err);
    st = in(ct_chat_check_text(w->b, ct_value_text(content), err), "content", err);
    put(w, "content", content);
    return st;
}

/* ---- the model's calls ---- */

static ct_status parse_arguments(work *w, ct_str text, ct_value *out, ct_error *err)
{
    const ct_value *v;
    ct_error why;
    ct_status st;

    while (text.n && memchr(" \t\r\n", text.p[0], 4))
        text = (ct_str){text.p + 1, text.n - 1};
    if (!text.n) {
        *out = ct_value_none();
        return CT_OK;
    }
    st = ct_value_parse(&v, "arguments", text, w->b->a, &why);
    if (st)
        return ct_fail(err, st == CT_EFORMAT ? CT_EINVAL : st, "not a JSON object: %s", why.text);
    *out = *v;
    return CT_OK;
}

/* A JSON string with an object, or the object; null and the empty string are {}. */
static ct_status read_arguments(work *w, const ct_value *v, ct_value *out, ct_error *err)
{
    ct_value args = v ? *v : ct_value_none();
    ct_status st = CT_OK;

    if (args.kind == CT_VALUE_STRING)
        st = parse_arguments(w, ct_value_text(&args), &args, err);
    if (st)
        return st;
    if (args.kind == CT_VALUE_NONE && !ct_value_build_map(&args, NULL, 0, w->b->a))
        return no_memory(err);
    if (args.kind != CT_VALUE_MAP)
        return ct_fail(err, CT_EINVAL, "not a JSON object: %s", ct_value_kind_name(&args));
    *out = args;
    return ct_chat_check_value(w->b, &args, err);
}

static ct_status read_function(work *w, const ct_value *f, ct_value *out, ct_error *err)
{
    const ct_value *name = ct_value_get(f, "name");
    ct_map_entry *e = ct_arena_zalloc(w->b->a, 2, sizeof *e);
    ct_status st;

    if (!e)
        return no_memory(err);
    if (!f || f->kind != CT_VALUE_MAP)
        return in(ct_chat_must_be(f, "an object", err), "function", err);
    st = in(ct_chat_check_name(name, err), "function.name", err);
    if (st)
        return st;
    e[0] = (ct_map_entry){CT_STR("name"), *name};
    e[1].key = CT_STR("arguments");
    st = in(read_arguments(w, ct_value_get(f, "arguments"), &e[1].value, err), "function.arguments",
            err);
    if (st)
        return st;
    return ct_value_build_map(out, e, 2, w->b->a) ? CT_OK : no_memory(err);
}

static ct_status read_call(work *w, const ct_value *call, ct_value *out, ct_error *err)
{
    const ct_value *type = ct_value_get(call, "type"), *id = ct_value_get(call, "id");
    ct_map_entry *e = ct_arena_zalloc(w->b->a, 3, sizeof *e);
    size_t n = 2;
    ct_status st;

    if (!e)
        return no_memory(err);
    if (!ct_chat_is_null(type) && !is_word(type, "function"))
        return ct_fail(err, CT_EUNSUPPORTED, "type: '%.*s' is not supported, only 'function'",
                       CT_STR_ARG(shown(type)));
    e[0] = (ct_map_entry){CT_STR("type"), ct_value_str(CT_STR("function"))};
    e[1].key = CT_STR("function");
    st = read_function(w, ct_value_get(call, "function"), &e[1].value, err);
    if (st)
        return st;
    if (!ct_chat_is_null(id)) {
        if (id->kind != CT_VALUE_STRING)
            return in(ct_chat_must_be(id, "a string", err), "id", err);
        e[n++] = (ct_map_entry){CT_STR("id"), *id};
    }
    return ct_value_build_map(out, e, n, w->b->a) ? CT_OK : no_memory(err);
}

/* Two calls of one id: the template would give both results the second one's name. */
static ct_status check_ids(const ct_value *calls, size_t n, ct_error *err)
{
    for (size_t i = 1; i < n; i++) {
        const ct_value *id = ct_value_get(&calls[i], "id");

        for (size_t k = 0; id && k < i; k++) {
            const ct_value *other = ct_value_get(&calls[k], "id");

            if (other && ct_str_eq(ct_value_text(other), ct_value_text(id)))
                return ct_fail(err, CT_EINVAL,
                               "tool_calls[%zu].id: '%.*s' is tool_calls[%zu]'s too", i,
                               CT_STR_ARG(shown(id)), k);
        }
    }
    return CT_OK;
}

static ct_status put_calls(work *w, ct_error *err)
{
    const ct_value *calls = ct_value_get(w->message, "tool_calls");
    ct_value list, *item;
    ct_status st = CT_OK;

    if (ct_chat_is_null(calls))
        return CT_OK;
    if (calls->kind != CT_VALUE_LIST)
        return in(ct_chat_must_be(calls, "an array", err), "tool_calls", err);
    if (calls->u.list.n > CT_CHAT_MAX_CALLS)
        return ct_fail(err, CT_ELIMIT, "tool_calls: %zu calls, at most %d", calls->u.list.n,
                       CT_CHAT_MAX_CALLS);
    if (!calls->u.list.n)
        return CT_OK;
    item = ct_arena_zalloc(w->b->a, calls->u.list.n, sizeof *item);
    if (!item)
        return no_memory(err);
    for (size_t i = 0; i < calls->u.list.n && !st; i++) {
        st = ct_chat_check_object(&calls->u.list.item[i], "tool_calls", i, err);
        if (st)
            return st;
        st = read_call(w, &calls->u.list.item[i], &item[i], err);
        if (st)
            ct_error_prefix(err, "tool_calls[%zu].", i);
    }
    if (!st)
        st = check_ids(item, calls->u.list.n, err);
    list = ct_value_list(item, calls->u.list.n, CT_LIST_LIST);
    put(w, "tool_calls", &list);
    return st;
}

/* Google's own form of results, on the message with the calls. */
static ct_status put_responses(work *w, ct_error *err)
{
    const ct_value *list = ct_value_get(w->message, "tool_responses");
    ct_status st = CT_OK;

    if (ct_chat_is_null(list) || (list->kind == CT_VALUE_LIST && !list->u.list.n))
        return CT_OK;
    if (list->kind != CT_VALUE_LIST)
        return in(ct_chat_must_be(list, "an array", err), "tool_responses", err);
    for (size_t i = 0; i < list->u.list.n && !st; i++) {
        const ct_value *r = &list->u.list.item[i], *name = ct_value_get(r, "name");

        if (r->kind != CT_VALUE_MAP || !ct_value_get(r, "response"))
            st = ct_fail(err, CT_EINVAL, "must be an object with name and response");
        else if (!ct_chat_is_null(name))
            st = ct_chat_check_name(name, err);
        if (!st)
            st = ct_chat_check_value(w->b, r, err);
        if (st)
            ct_error_prefix(err, "tool_responses[%zu]: ", i);
    }
    put(w, "tool_responses", list);
    return st;
}

/* ---- roles ---- */

/* `reasoning` or `reasoning_content`; a client that sends both must mean one text. */
static ct_status put_reasoning(work *w, ct_error *err)
{
    static const char *const keys[] = {"reasoning", "reasoning_content"};
    const ct_value *text = NULL;
    ct_status st;

    for (size_t i = 0; i < 2; i++) {
        const ct_value *v = ct_value_get(w->message, keys[i]);

        if (ct_chat_is_null(v))
            continue;
        if (v->kind != CT_VALUE_STRING)
            return in(ct_chat_must_be(v, "a string", err), keys[i], err);
        if (!v->u.text.n)
            continue;
        if (text && !ct_str_eq(ct_value_text(text), ct_value_text(v)))
            return ct_fail(err, CT_EINVAL, "reasoning_content: differs from reasoning");
        st = in(ct_chat_check_text(w->b, ct_value_text(v), err), keys[i], err);
        if (st)
            return st;
        text = v;
    }
    if (text)
        put(w, "reasoning_content", text);
    return CT_OK;
}

static bool has_content(const ct_value *content)
{
    if (ct_chat_is_null(content))
        return false;
    return content->kind != CT_VALUE_STRING || content->u.text.n;
}

/* A refusal is what the model said instead of content. */
static ct_status put_answer(work *w, ct_error *err)
{
    const ct_value *content = ct_value_get(w->message, "content");
    const ct_value *refusal = ct_value_get(w->message, "refusal");
    ct_status st;

    if (has_content(refusal)) {
        if (refusal->kind != CT_VALUE_STRING)
            return in(ct_chat_must_be(refusal, "a string", err), "refusal", err);
        if (has_content(content))
            return ct_fail(err, CT_EINVAL, "refusal: beside content, only one of them can be sent");
        st = in(ct_chat_check_text(w->b, ct_value_text(refusal), err), "refusal", err);
        put(w, "content", refusal);
        return st;
    }
    if (!ct_chat_is_null(content))
        return put_content(w, true, err);
    return CT_OK;
}

/* Fields that clients echo and that say nothing to the model. */
#define ECHOES                                                                                     \
    "id", "object", "created", "status", "annotations", "provider_specific_fields",                \
        "cache_control", "metadata", "reasoning_details", "index"

static ct_status read_assistant(work *w, ct_error *err)
{
    static const char *const known[] = {"role",       "content",        "name",
                                        "tool_calls", "refusal",        "reasoning_content",
                                        "reasoning",  "tool_responses", ECHOES};
    ct_value role = ct_value_str(CT_STR("assistant"));
    ct_status st = CT_OK;

    if (!ct_chat_is_null(ct_value_get(w->message, "function_call")))
        return ct_fail(err, CT_EUNSUPPORTED, "function_call: not supported, send tool_calls");
    if (!ct_chat_is_null(ct_value_get(w->message, "audio")))
        return ct_fail(err, CT_EUNSUPPORTED, "audio: only text is supported");
    st = ct_chat_check_keys(w->message, known, CT_LEN(known), err);
    put(w, "role", &role);
    if (!st)
        st = put_answer(w, err);
    if (!st)
        st = put_reasoning(w, err);
    if (!st)
        st = put_calls(w, err);
    return st ? st : put_responses(w, err);
}

static ct_status read_user(work *w, const char *role, ct_error *err)
{
    static const char *const known[] = {"role", "content", "name", ECHOES};
    ct_value r = ct_value_str(ct_str_of(role));
    ct_status st = ct_chat_check_keys(w->message, known, CT_LEN(known), err);

    put(w, "role", &r);
    return st ? st : put_content(w, false, err);
}

static ct_status put_result_name(work *w, const ct_value *name, ct_error *err)
{
    ct_status st;

    if (ct_chat_is_null(name))
        return CT_OK;
    st = in(ct_chat_check_name(name, err), "name", err);
    put(w, "name", name);
    return st;
}

static ct_status read_tool(work *w, ct_error *err)
{
    static const char *const known[] = {"role", "content", "name", "tool_call_id", ECHOES};
    const ct_value *id = ct_value_get(w->message, "tool_call_id");
    const ct_value *name = ct_value_get(w->message, "name");
    const ct_value *content = ct_value_get(w->message, "content");
    ct_value role = ct_value_str(CT_STR("tool"));
    ct_status st = ct_chat_check_keys(w->message, known, CT_LEN(known), err);

    if (st)
        return st;
    if (!ct_chat_is_null(id) && id->kind != CT_VALUE_STRING)
        return in(ct_chat_must_be(id, "a string", err), "tool_call_id", err);
    id = ct_chat_is_null(id) ? NULL : id;
    put(w, "role", &role);
    st = put_result_name(w, name, err);
    if (!st)
        st = in(ct_chat_check_result(w->b, id, ct_chat_is_null(name) ? NULL : name, err),
                "tool_call_id", err);
    if (st)
        return st;
    if (id)
        put(w, "tool_call_id", id);
    if (content && (content->kind == CT_VALUE_STRING || content->kind == CT_VALUE_LIST))
        return put_content(w, false, err);
    /* Null, numbers and booleans have a form in the template. */
    if (content && content->kind == CT_VALUE_MAP)
        return in(ct_chat_must_be(content, "a string (of JSON, if so wanted) or text parts", err),
                  "content", err);
    if (!content)
        return in(ct_chat_must_be(content, "", err), "content", err);
    put(w, "content", content);
    return CT_OK;
}

static ct_status read_message(work *w, ct_error *err)
{
    const ct_value *role = ct_value_get(w->message, "role");

    if (!role || role->kind != CT_VALUE_STRING)
        return in(ct_chat_must_be(role, "a string", err), "role", err);
    if (is_word(role, "user"))
        return read_user(w, "user", err);
    /* Models know no developer turns. */
    if (is_word(role, "system") || is_word(role, "developer"))
        return read_user(w, "system", err);
    if (is_word(role, "assistant"))
        return read_assistant(w, err);
    if (is_word(role, "tool"))
        return read_tool(w, err);
    return ct_fail(err, CT_EINVAL, "role: '%.*s' is not system, developer, user, assistant or tool",
                   CT_STR_ARG(shown(role)));
}

static ct_status read_messages(ct_chat_builder *b, const ct_value *messages, ct_error *err)
{
    for (size_t i = 0; i < messages->u.list.n; i++) {
        work w = {.b = b, .message = &messages->u.list.item[i]};
        ct_status st;

        st = ct_chat_check_object(w.message, "messages", i, err);
        if (st)
            return st;
        st = read_message(&w, err);
        if (!st)
            st = ct_chat_add(b, w.field, w.n, err);
        if (st) {
            ct_error_prefix(err, "messages[%zu].", i);
            return st;
        }
    }
    return CT_OK;
}

/* ---- the request ---- */

static ct_status read_option(const ct_value *from, const char *key, const ct_value **out,
                             ct_error *err)
{
    const ct_value *v = ct_value_get(from, key);

    if (ct_chat_is_null(v))
        return CT_OK;
    if (v->kind != CT_VALUE_BOOL)
        return in(ct_chat_must_be(v, "a boolean", err), key, err);
    *out = v;
    return CT_OK;
}

static ct_status read_options(ct_chat_options *o, const ct_value *from, ct_error *err)
{
    ct_status st = read_option(from, "add_generation_prompt", &o->add_generation_prompt, err);

    if (!st)
        st = read_option(from, "enable_thinking", &o->enable_thinking, err);
    return st ? st : read_option(from, "preserve_thinking", &o->preserve_thinking, err);
}

/* The only ways to steer the template: others would be code for clients to run. */
static ct_status read_kwargs(ct_chat_options *o, const ct_value *kwargs, ct_error *err)
{
    static const char *const known[] = {"enable_thinking", "preserve_thinking",
                                        "add_generation_prompt"};
    ct_status st;

    if (ct_chat_is_null(kwargs))
        return CT_OK;
    if (kwargs->kind != CT_VALUE_MAP)
        return in(ct_chat_must_be(kwargs, "an object", err), "chat_template_kwargs", err);
    st = ct_chat_check_keys(kwargs, known, CT_LEN(known), err);
    if (!st)
        st = read_options(o, kwargs, err);
    if (st)
        ct_error_prefix(err, "chat_template_kwargs.");
    return st;
}

static bool is_declared(const ct_value *tools, const ct_value *name)
{
    for (size_t i = 0; tools && i < tools->u.list.n; i++) {
        const ct_value *n = ct_value_get(ct_value_get(&tools->u.list.item[i], "function"), "name");

        if (ct_str_eq(ct_value_text(n), ct_value_text(name)))
            return true;
    }
    return false;
}

static ct_status check_choice(const ct_value *choice, const ct_value *tools, ct_error *err)
{
    const ct_value *name = ct_value_get(ct_value_get(choice, "function"), "name");

    if (choice->kind == CT_VALUE_STRING) {
        if (is_word(choice, "none") || is_word(choice, "auto") || is_word(choice, "required"))
            return CT_OK;
        return ct_fail(err, CT_EINVAL, "tool_choice: '%.*s' is not none, auto or required",
                       CT_STR_ARG(shown(choice)));
    }
    if (choice->kind != CT_VALUE_MAP)
        return in(ct_chat_must_be(choice, "a string or an object", err), "tool_choice", err);
    if (!is_word(ct_value_get(choice, "type"), "function"))
        return ct_fail(err, CT_EUNSUPPORTED, "tool_choice.type: only 'function' is supported");
    if (!name || name->kind != CT_VALUE_STRING)
        return in(ct_chat_must_be(name, "a string", err), "tool_choice.function.name", err);
    if (!is_declared(tools, name))
        return ct_fail(err, CT_EINVAL, "tool_choice.function.name: no tool '%.*s' is declared",
                       CT_STR_ARG(shown(name)));
    return CT_OK;
}

static ct_status read_tools(ct_chat_request *out, ct_chat_builder *b, const ct_value *body,
                            const ct_value **tools, ct_error *err)
{
    const ct_value *list = ct_value_get(body, "tools");
    const ct_value *choice = ct_value_get(body, "tool_choice");
    ct_status st = CT_OK;

    if (!ct_chat_is_null(ct_value_get(body, "functions")))
        return ct_fail(err, CT_EUNSUPPORTED, "functions: not supported, send tools");
    if (!ct_chat_is_null(ct_value_get(body, "function_call")))
        return ct_fail(err, CT_EUNSUPPORTED, "function_call: not supported, send tool_choice");
    if (!ct_chat_is_null(list)) {
        st = ct_chat_check_tools(b, list, err);
        *tools = list;
    }
    if (!st && !ct_chat_is_null(choice)) {
        st = check_choice(choice, *tools, err);
        out->tool_choice = choice;
    }
    return st;
}

ct_status ct_openai_request(ct_chat_request *out, const ct_value *body, ct_arena *a, ct_error *err)
{
    const ct_value *messages = ct_value_get(body, "messages"), *tools = NULL;
    ct_chat_request r = {0};
    ct_chat_options options = {0};
    ct_chat_builder b;
    ct_status st;

    if (body->kind != CT_VALUE_MAP)
        return in(ct_chat_must_be(body, "an object", err), "request", err);
    if (!messages || messages->kind != CT_VALUE_LIST)
        return in(ct_chat_must_be(messages, "an array", err), "messages", err);
    if (messages->u.list.n > CT_CHAT_MAX_MESSAGES)
        return ct_fail(err, CT_ELIMIT, "messages: %zu messages, at most %d", messages->u.list.n,
                       CT_CHAT_MAX_MESSAGES);
    st = ct_chat_begin(&b, messages->u.list.n, a, err);
    if (!st)
        st = read_options(&options, body, err);
    if (!st)
        st = read_kwargs(&options, ct_value_get(body, "chat_template_kwargs"), err);
    if (!st)
        st = read_messages(&b, messages, err);
    if (!st)
        st = read_tools(&r, &b, body, &tools, err);
    if (!st)
        st = ct_chat_finish(&r, &b, tools, &options, err);
    if (!st)
        *out = r;
    return st;
}

ct_status ct_openai_assistant(ct_value *out, const ct_value *message, ct_arena *a, ct_error *err)
{
    ct_chat_builder b;
    work w = {.b = &b, .message = message};
    ct_status st = ct_chat_begin(&b, 1, a, err);

    if (!st && message->kind != CT_VALUE_MAP)
        st = in(ct_chat_must_be(message, "an object", err), "message", err);
    if (!st)
        st = read_assistant(&w, err);
    if (!st)
        st = ct_chat_add(&b, w.field, w.n, err);
    if (!st)
        *out = b.message[0];
    return st;
}
