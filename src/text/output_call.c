/* The output reader inside a tool call: name, arguments, and what follows them. */
#include "text/output_impl.h"

#include "base/checked.h"

#define MAX_NAME_BYTES 256
/* Where a name must have ended: "call:", the name, and blanks. */
#define MAX_HEAD_BYTES (MAX_NAME_BYTES + 64)
/* Blanks and surplus closers behind a call; more of them are text. */
#define MAX_TAIL_BYTES 256

/* --- names --------------------------------------------------------------------- */

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

static ct_str trim(ct_str s)
{
    for (; s.n && is_blank(s.p[0]); s.p++)
        s.n--;
    while (s.n && is_blank(s.p[s.n - 1]))
        s.n--;
    return s;
}

/* Without one pair of quotes of any kind. */
static ct_str unquote(ct_str s)
{
    if (s.n >= 2 && s.p[0] == s.p[s.n - 1] && (s.p[0] == '"' || s.p[0] == '\'' || s.p[0] == '`'))
        return (ct_str){s.p + 1, s.n - 2};
    return s;
}

static bool is_name(ct_str s)
{
    if (s.n == 0 || s.n > MAX_NAME_BYTES)
        return false;
    for (size_t i = 0; i < s.n; i++)
        if ((unsigned char)s.p[i] <= ' ' || memchr("\"'`<>(){}[],=\x7f", s.p[i], 14))
            return false;
    return true;
}

/* The name in "call:NAME", the text before the brace.  Without "call:" only a declared
 * name is one. */
static bool read_name(const ct_output *o, ct_str head, ct_str *name)
{
    ct_str s = unquote(trim(head));
    bool called = ct_str_starts(s, "call:");

    if (called)
        s = unquote(trim((ct_str){s.p + 5, s.n - 5}));
    *name = s;
    if (ct_tools_find(o->tools, s))
        return true;
    while (s.n && (s.p[s.n - 1] == ':' || s.p[s.n - 1] == '='))
        s = trim((ct_str){s.p, s.n - 1});
    *name = s;
    return ct_tools_find(o->tools, s) || (called && is_name(s));
}

int ct_output_opens_call(const ct_tools *tools, ct_str text)
{
    static const char begin[] = "call:";
    size_t n = ct_min_size(text.n, 5);
    int best = -1;

    if (!tools || tools->n == 0 || memcmp(text.p, begin, n) != 0)
        return -1;
    if (text.n <= 5)
        return 0;
    text = (ct_str){text.p + 5, text.n - 5};
    for (size_t i = 0; i < tools->n && best < 1; i++) {
        ct_str name = tools->tool[i].name;

        n = ct_min_size(name.n, text.n);
        if (memcmp(name.p, text.p, n) != 0)
            continue;
        if (text.n <= name.n)
            best = 0;
        else if (text.p[name.n] == '{')
            best = 1;
    }
    return best;
}

/* --- arguments ----------------------------------------------------------------- */

/* What was read as a call is text. */
static ct_status give_up(ct_output *o)
{
    ct_status st;

    o->state = CT_IN_CONTENT;
    st = ct_output_content(o, ct_buf_str(&o->raw));
    ct_buf_clear(&o->raw);
    return st;
}

static ct_status void_call(ct_output *o)
{
    ct_status st = ct_output_event(o, CT_EVENT_CALL_VOID, (ct_str){0});

    return st ? st : give_up(o);
}

static ct_status end_call(ct_output *o)
{
    ct_status st = ct_output_event(o, CT_EVENT_CALL_END, (ct_str){0});

    o->n_calls++;
    o->state = CT_IN_TAIL;
    ct_buf_clear(&o->raw);
    ct_buf_clear(&o->held);
    return st;
}

/* Gives out what the arguments' reader wrote, unless it gave up. */
static ct_status put_json(ct_output *o)
{
    ct_status st = CT_OK;

    if (o->json.failed)
        return ct_fail(o->err, CT_ELIMIT, "tool call: arguments exceed %zu bytes or the memory",
                       o->json.cap_bytes);
    if (ct_call_args_where(o->args) == CT_CALL_ARGS_FAILED)
        st = void_call(o);
    else if (o->json.n)
        st = ct_output_text(o, CT_EVENT_ARGUMENTS, ct_buf_str(&o->json));
    ct_buf_clear(&o->json);
    return st;
}

/* text is in raw already. */
static ct_status feed(ct_output *o, ct_str text)
{
    size_t used = 0;
    ct_status st = ct_call_args_text(o->args, text, &used, &o->json, o->err);

    if (!st)
        st = put_json(o);
    if (st || ct_call_args_where(o->args) != CT_CALL_ARGS_CLOSED)
        return st;
    st = end_call(o);
    if (!st)
        st = ct_output_tail_text(o, ct_call_args_rest(o->args));
    if (st)
        return st;
    text = (ct_str){text.p + used, text.n - used};
    return o->state == CT_IN_TAIL ? ct_output_tail_text(o, text) : ct_output_content(o, text);
}

/* Keeps the text of the call.  False when it is too long for one: then it was given out. */
static bool keep(ct_output *o, ct_str text, ct_status *st)
{
    *st = CT_OK;
    ct_buf_add(&o->raw, text.p, text.n);
    if (!o->raw.failed)
        return true;
    o->raw.failed = false; /* nothing of text was added */
    *st = void_call(o);
    if (!*st)
        *st = ct_output_content(o, text);
    return false;
}

ct_status ct_output_args_text(ct_output *o, ct_str text)
{
    ct_status st;

    return keep(o, text, &st) ? feed(o, text) : st;
}

ct_status ct_output_args_quote(ct_output *o)
{
    ct_status st;

    if (!keep(o, CT_STR("\""), &st))
        return st;
    st = ct_call_args_quote(o->args, &o->json, o->err);
    if (!st)
        st = put_json(o);
    if (st || ct_call_args_where(o->args) != CT_CALL_ARGS_CLOSED)
        return st;
    st = end_call(o);
    return st ? st : ct_output_tail_text(o, ct_call_args_rest(o->args));
}

/* --- the call ------------------------------------------------------------------ */

void ct_output_call_open(ct_output *o)
{
    ct_buf_clear(&o->raw);
    o->state = CT_IN_NAME;
}

static ct_status begin_args(ct_output *o, ct_str name, ct_str text)
{
    const ct_tool *tool = ct_tools_find(o->tools, name);
    ct_status st = ct_output_event(o, CT_EVENT_CALL, name);

    o->state = CT_IN_ARGS;
    ct_call_args_start(o->args, tool ? tool->parameters : NULL);
    return st ? st : feed(o, text);
}

ct_status ct_output_name_text(ct_output *o, ct_str text)
{
    size_t at = 0;
    ct_str name;

    ct_buf_add(&o->raw, text.p, text.n);
    if (o->raw.failed)
        return ct_fail(o->err, CT_ELIMIT, "tool call: no memory for %zu bytes", o->raw.n + text.n);
    while (at < o->raw.n && o->raw.p[at] != '{' && o->raw.p[at] != '(')
        at++;
    if (at == o->raw.n && at <= MAX_HEAD_BYTES)
        return CT_OK;
    if (at == o->raw.n || !read_name(o, (ct_str){o->raw.p, at}, &name))
        return give_up(o);
    return begin_args(o, name, (ct_str){o->raw.p + at, o->raw.n - at});
}

static ct_status close_name(ct_output *o, bool cut)
{
    ct_str name;

    if (cut || !read_name(o, ct_buf_str(&o->raw), &name))
        return give_up(o);
    return begin_args(o, name, CT_STR("{}")); /* a call without arguments */
}

static ct_status close_args(ct_output *o, bool cut)
{
    ct_status st = ct_call_args_end(o->args, cut, &o->json, o->err);

    if (!st)
        st = put_json(o);
    if (st || o->state != CT_IN_ARGS)
        return st;
    st = end_call(o);
    return st ? st : ct_output_tail_text(o, ct_call_args_rest(o->args));
}

ct_status ct_output_call_close(ct_output *o, bool cut)
{
    ct_status st = CT_OK;

    if (o->state == CT_IN_NAME)
        st = close_name(o, cut);
    else if (o->state == CT_IN_ARGS)
        st = close_args(o, cut);
    if (o->state == CT_IN_TAIL)
        ct_buf_clear(&o->held);
    o->state = CT_IN_CONTENT;
    return st;
}

ct_status ct_output_call_drop(ct_output *o)
{
    ct_status st = CT_OK;

    if (o->state == CT_IN_NAME)
        st = give_up(o);
    else if (o->state == CT_IN_ARGS)
        st = void_call(o);
    return st;
}

/* Blanks and surplus closers belong to the call; anything else makes all of it text. */
ct_status ct_output_tail_text(ct_output *o, ct_str text)
{
    size_t i = 0;
    ct_status st;

    while (i < text.n && (is_blank(text.p[i]) || memchr("}])\"", text.p[i], 4)))
        i++;
    ct_buf_add(&o->held, text.p, text.n);
    if (i == text.n && o->held.n <= MAX_TAIL_BYTES)
        return CT_OK;
    o->state = CT_IN_CONTENT;
    st = ct_output_content(o, ct_buf_str(&o->held));
    ct_buf_clear(&o->held);
    return st;
}
