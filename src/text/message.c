#include "text/message.h"

#include "base/checked.h"
#include "base/json.h"

#include <assert.h>
#include <stdlib.h>

/* Offsets into ct_message.calls. */
typedef struct call {
    size_t name, arguments, end;
} call;

struct ct_message {
    ct_buf content, reasoning;
    ct_buf calls; /* name and arguments of each call, one behind the other */
    call *call;
    size_t n_calls, room;
    bool open; /* call[n_calls] has begun */
};

ct_status ct_message_create(ct_message **out, size_t cap_bytes, ct_error *err)
{
    ct_message *m = calloc(1, sizeof *m);

    if (!m)
        return ct_fail(err, CT_ELIMIT, "no memory for %zu bytes", sizeof *m);
    ct_buf_init(&m->content, cap_bytes);
    ct_buf_init(&m->reasoning, cap_bytes);
    ct_buf_init(&m->calls, cap_bytes);
    *out = m;
    return CT_OK;
}

void ct_message_destroy(ct_message *m)
{
    if (!m)
        return;
    ct_buf_deinit(&m->content);
    ct_buf_deinit(&m->reasoning);
    ct_buf_deinit(&m->calls);
    free(m->call);
    free(m);
}

void ct_message_clear(ct_message *m)
{
    ct_buf_clear(&m->content);
    ct_buf_clear(&m->reasoning);
    ct_buf_clear(&m->calls);
    m->n_calls = 0;
    m->open = false;
}

static ct_status grow(ct_message *m, ct_error *err)
{
    size_t room = m->room ? 2 * m->room : 8, n_bytes;
    call *c;

    if (m->n_calls < m->room)
        return CT_OK;
    c = ct_mul_size(&n_bytes, room, sizeof *c) ? realloc(m->call, n_bytes) : NULL;
    if (!c)
        return ct_fail(err, CT_ELIMIT, "no memory for %zu tool calls", room);
    m->call = c;
    m->room = room;
    return CT_OK;
}

static ct_status begin_call(ct_message *m, ct_str name, ct_error *err)
{
    ct_status st = grow(m, err);

    if (st)
        return st;
    assert(!m->open);
    m->call[m->n_calls].name = m->calls.n;
    ct_buf_add(&m->calls, name.p, name.n);
    m->call[m->n_calls].arguments = m->calls.n;
    m->open = true;
    return CT_OK;
}

static void end_call(ct_message *m)
{
    assert(m->open);
    m->call[m->n_calls++].end = m->calls.n;
    m->open = false;
}

static void drop_call(ct_message *m)
{
    assert(m->open);
    m->calls.n = m->call[m->n_calls].name;
    m->open = false;
}

static ct_status check(const ct_buf *b, const char *what, ct_error *err)
{
    if (b->failed)
        return ct_fail(err, CT_ELIMIT, "the answer's %s exceeds %zu bytes or the memory", what,
                       b->cap_bytes);
    return CT_OK;
}

ct_status ct_message_add(void *message, const ct_event *event, ct_error *err)
{
    ct_message *m = message;
    ct_str s = event->text;
    ct_status st = CT_OK;

    switch (event->kind) {
    case CT_EVENT_REASONING:
        ct_buf_add(&m->reasoning, s.p, s.n);
        return check(&m->reasoning, "reasoning", err);
    case CT_EVENT_CONTENT:
        ct_buf_add(&m->content, s.p, s.n);
        return check(&m->content, "content", err);
    case CT_EVENT_CALL:
        st = begin_call(m, s, err);
        break;
    case CT_EVENT_ARGUMENTS:
        ct_buf_add(&m->calls, s.p, s.n);
        break;
    case CT_EVENT_CALL_END:
        end_call(m);
        break;
    case CT_EVENT_CALL_VOID:
        drop_call(m);
        break;
    }
    return st ? st : check(&m->calls, "tool calls", err);
}

void ct_message_cut_content(ct_message *m, size_t n)
{
    m->content.n = ct_min_size(m->content.n, n);
}

ct_str ct_message_content(const ct_message *m)
{
    return ct_buf_str(&m->content);
}

ct_str ct_message_reasoning(const ct_message *m)
{
    return ct_buf_str(&m->reasoning);
}

size_t ct_message_n_calls(const ct_message *m)
{
    return m->n_calls;
}

ct_str ct_message_call_name(const ct_message *m, size_t i)
{
    const call *c = &m->call[i];

    return (ct_str){m->calls.p + c->name, c->arguments - c->name};
}

ct_str ct_message_call_arguments(const ct_message *m, size_t i)
{
    const call *c = &m->call[i];

    return (ct_str){m->calls.p + c->arguments, c->end - c->arguments};
}

static void put_call(const ct_message *m, size_t i, ct_str id_prefix, ct_buf *json)
{
    ct_buf_addz(json, "{\"id\": \"");
    ct_json_put_chars(json, id_prefix);
    ct_buf_addf(json, "%zu\", \"type\": \"function\", \"function\": {\"name\": ", i);
    ct_json_put_str(json, ct_message_call_name(m, i));
    ct_buf_addz(json, ", \"arguments\": ");
    ct_json_put_str(json, ct_message_call_arguments(m, i));
    ct_buf_addz(json, "}}");
}

static void put_text(ct_buf *json, ct_str s, bool null_when_empty)
{
    if (s.n == 0 && null_when_empty)
        ct_buf_addz(json, "null");
    else
        ct_json_put_str(json, s);
}

void ct_message_put_members(const ct_message *m, ct_str id_prefix, ct_buf *json)
{
    ct_buf_addz(json, "\"content\": ");
    put_text(json, ct_message_content(m), m->n_calls > 0);
    ct_buf_addz(json, ", \"reasoning_content\": ");
    put_text(json, ct_message_reasoning(m), true);
    ct_buf_addz(json, ", \"tool_calls\": [");
    for (size_t i = 0; i < m->n_calls; i++) {
        ct_buf_addz(json, i ? ", " : "");
        put_call(m, i, id_prefix, json);
    }
    ct_buf_addc(json, ']');
}
