/* Expressions. */
#include "text/jinja_run.h"

#include "base/checked.h"
#include "base/utf8.h"
#include "text/unicode.h"

/* C recursion of one rendering.  The deepest template (a macro per level of nested JSON)
 * needs about ten for a macro call. */
#define MAX_RECURSION 4000
#define BYTES_A_STEP  64 /* copying or searching this many bytes counts as a step */

ct_value *run_values(jinja_run *r, size_t n)
{
    return ct_arena_zalloc(r->a, n, sizeof(ct_value));
}

ct_value run_undefined_hint(const char *text)
{
    return (ct_value){
        .kind = CT_VALUE_UNDEFINED, .sub = CT_UNDEFINED_HINT, .u.text = {text, strlen(text)}};
}

ct_status run_text(jinja_run *r, const jinja_node *n, const ct_value *v, ct_str *out)
{
    ct_op_error e;
    size_t mark;

    if (v->kind == CT_VALUE_STRING || v->kind == CT_VALUE_UNDEFINED) {
        *out = v->kind == CT_VALUE_STRING ? ct_value_text(v) : (ct_str){"", 0};
        return CT_OK;
    }
    mark = run_scratch(r);
    if (!ct_value_put_str(&r->capture, v, &e))
        return run_op_fail(r, n, &e);
    return run_take(r, n, mark, out);
}

static bool extend_tail(jinja_run *r, ct_str a, ct_str b, ct_str *out)
{
    for (size_t i = 0; i < RUN_TAILS; i++) {
        run_tail *t = &r->tail[i];

        if (!t->base || a.p + a.n != t->base + t->used || a.p < t->base || t->room - t->used < b.n)
            continue;
        memcpy(t->base + t->used, b.p, b.n);
        t->used += b.n;
        *out = (ct_str){a.p, a.n + b.n};
        return true;
    }
    return false;
}

ct_status run_concat(jinja_run *r, const jinja_node *n, ct_str a, ct_str b, ct_str *out)
{
    size_t len = a.n + b.n;
    run_tail *t = &r->tail[r->next_tail];
    ct_status st;

    if (!a.n || !b.n) {
        *out = a.n ? a : b;
        return CT_OK;
    }
    if (len > r->limits.output_bytes)
        return jinja_fail(r->j->name, n->line, CT_ELIMIT, r->err,
                          "a string of %zu bytes exceeds the limit of %zu", len,
                          r->limits.output_bytes);
    st = run_steps(r, n, b.n / BYTES_A_STEP);
    if (st || extend_tail(r, a, b, out))
        return st;
    st = run_steps(r, n, a.n / BYTES_A_STEP);
    if (st)
        return st;
    *t = (run_tail){.used = len, .room = 2 * len};
    t->base = ct_arena_alloc(r->a, t->room, 1);
    if (!t->base)
        return run_full(r, n);
    memcpy(t->base, a.p, a.n);
    memcpy(t->base + a.n, b.p, b.n);
    r->next_tail = (r->next_tail + 1) % RUN_TAILS;
    *out = (ct_str){t->base, len};
    return CT_OK;
}

ct_status run_iterate(jinja_run *r, const jinja_node *n, const ct_value *v, run_iter *it)
{
    *it = (run_iter){.over = *v};
    if (v->kind == CT_VALUE_LIST || v->kind == CT_VALUE_MAP || v->kind == CT_VALUE_RANGE ||
        v->kind == CT_VALUE_STRING || v->kind == CT_VALUE_UNDEFINED)
        return CT_OK;
    return run_fail(r, n, "'%s' object is not iterable", ct_value_type_name(v->kind, v->sub));
}

bool run_next(run_iter *it, ct_value *out)
{
    ct_str text = ct_value_text(&it->over);
    unsigned len;

    switch ((ct_value_kind)it->over.kind) {
    case CT_VALUE_LIST:
        if (it->i == it->over.u.list.n)
            return false;
        *out = it->over.u.list.item[it->i++];
        return true;
    case CT_VALUE_MAP:
        if (it->i == it->over.u.map->n)
            return false;
        *out = ct_value_str(it->over.u.map->entry[it->i++].key);
        return true;
    case CT_VALUE_RANGE:
        if (it->i == it->over.u.range.n)
            return false;
        *out = ct_value_int(ct_range_at(&it->over, it->i++));
        return true;
    case CT_VALUE_STRING:
        if (it->at == text.n)
            return false;
        ct_utf8_next(text, it->at, &len);
        *out = ct_value_str((ct_str){text.p + it->at, len});
        it->at += len;
        return true;
    default:
        return false;
    }
}

ct_status run_collect(jinja_run *r, const jinja_node *n, const ct_value *v, ct_value *out)
{
    size_t count = 0, i = 0;
    run_iter it;
    ct_value *items;
    ct_status st = run_iterate(r, n, v, &it);

    if (st)
        return st;
    if (v->kind == CT_VALUE_LIST) {
        *out = ct_value_list(v->u.list.item, v->u.list.n, CT_LIST_LIST);
        return CT_OK;
    }
    ct_value_len(&count, v);
    st = run_steps(r, n, count);
    if (st)
        return st;
    items = run_values(r, count);
    if (!items)
        return run_full(r, n);
    while (i < count && run_next(&it, &items[i]))
        i++;
    *out = ct_value_list(items, i, CT_LIST_LIST);
    return CT_OK;
}

static bool one_of(ct_str name, const char *const *names)
{
    for (; *names; names++)
        if (ct_str_is(name, *names))
            return true;
    return false;
}

/* What Python's types have besides their items, so that d['items'] is never undefined.
 * The sandbox hides what would change the object. */
static bool builtin_attr(const ct_value *object, ct_str name, ct_value *out)
{
    static const char *const map[] = {"copy", "fromkeys", "get", "items", "keys", "values", NULL};
    static const char *const hidden_map[] = {"clear",      "pop",    "popitem",
                                             "setdefault", "update", NULL};
    static const char *const list[] = {"copy", "count", "index", NULL}, *const tuple = "copy";
    static const char *const view[] = {"isdisjoint", "mapping", NULL};
    static const char *const range[] = {"count", "index", "start", "stop", "step", NULL};
    static const char *const integer[] = {
        "as_integer_ratio", "bit_count", "bit_length", "conjugate", "from_bytes", "to_bytes", NULL};
    static const char *const number[] = {"as_integer_ratio", "conjugate", "fromhex", "hex",
                                         "is_integer",       NULL};
    static const char *const string[] = {
        "capitalize",   "casefold",    "center",    "count",      "encode",       "endswith",
        "expandtabs",   "find",        "format",    "format_map", "index",        "isalnum",
        "isalpha",      "isascii",     "isdecimal", "isdigit",    "isidentifier", "islower",
        "isnumeric",    "isprintable", "isspace",   "istitle",    "isupper",      "join",
        "ljust",        "lower",       "lstrip",    "maketrans",  "partition",    "removeprefix",
        "removesuffix", "replace",     "rfind",     "rindex",     "rjust",        "rpartition",
        "rsplit",       "rstrip",      "split",     "splitlines", "startswith",   "strip",
        "swapcase",     "title",       "translate", "upper",      "zfill",        NULL};
    const char *const *names = NULL;

    if (object->kind == CT_VALUE_MAP) {
        names = map;
        if (one_of(name, hidden_map)) {
            *out = run_undefined_hint("access to an attribute that changes a mapping is unsafe");
            return true;
        }
    } else if (object->kind == CT_VALUE_LIST) {
        names = object->sub <= CT_LIST_TUPLE ? list : view;
        if (object->sub == CT_LIST_TUPLE && ct_str_is(name, tuple))
            return false;
    } else if (object->kind == CT_VALUE_STRING) {
        names = string;
    } else if (object->kind == CT_VALUE_RANGE) {
        names = range;
    } else if (object->kind == CT_VALUE_FLOAT) {
        names = number;
    } else if (ct_value_is_number(object)) {
        names = integer;
    }
    if (!names || !one_of(name, names))
        return false;
    *out = (ct_value){.kind = CT_VALUE_METHOD};
    return true;
}

/* real, imag, numerator, denominator of numbers. */
static bool number_attr(const ct_value *v, ct_str name, ct_value *out)
{
    bool is_float = v->kind == CT_VALUE_FLOAT, real = ct_str_is(name, "real");
    int64_t i;

    if (!ct_value_is_number(v))
        return false;
    if (real || (ct_str_is(name, "numerator") && !is_float))
        *out = ct_value_as_int(v, &i) ? ct_value_int(i) : *v;
    else if (ct_str_is(name, "imag"))
        *out = is_float ? ct_value_float(0) : ct_value_int(0);
    else if (ct_str_is(name, "denominator") && !is_float)
        *out = ct_value_int(1);
    else
        return false;
    return true;
}

static ct_value undefined_attr(const ct_value *object, ct_str name)
{
    return (ct_value){.kind = CT_VALUE_UNDEFINED,
                      .sub = CT_UNDEFINED_ATTR,
                      .owner = object->kind,
                      .owner_sub = object->sub,
                      .u.text = {name.p, name.n}};
}

static bool namespace_attr(const ct_value *object, ct_str name, ct_value *out)
{
    const ct_namespace *ns = object->u.ns;

    if (object->kind != CT_VALUE_NAMESPACE || (name.n && name.p[0] == '_'))
        return false;
    for (size_t i = 0; i < ns->n; i++)
        if (ct_str_eq(ns->entry[i].key, name)) {
            *out = ns->entry[i].value;
            return true;
        }
    return false;
}

/* object.name; object is not undefined. */
void run_attr(const ct_value *object, ct_str name, ct_value *out)
{
    const ct_value *found = NULL;

    if (namespace_attr(object, name, out) || builtin_attr(object, name, out) ||
        number_attr(object, name, out))
        return;
    if (object->kind == CT_VALUE_MAP)
        found = ct_map_find(object->u.map, name);
    *out = found ? *found : undefined_attr(object, name);
}

static bool index_of(int64_t i, size_t n, size_t *out)
{
    if (i < 0)
        i += (int64_t)n;
    if (i < 0 || (uint64_t)i >= n)
        return false;
    *out = (size_t)i;
    return true;
}

static bool item_by_index(const ct_value *object, int64_t i, ct_value *out)
{
    ct_str text = ct_value_text(object);
    size_t at, n;

    if (object->kind == CT_VALUE_LIST && object->sub <= CT_LIST_TUPLE &&
        index_of(i, object->u.list.n, &at)) {
        *out = object->u.list.item[at];
        return true;
    }
    if (object->kind == CT_VALUE_RANGE && index_of(i, object->u.range.n, &at)) {
        *out = ct_value_int(ct_range_at(object, at));
        return true;
    }
    if (object->kind == CT_VALUE_STRING && ct_value_len(&n, object) && index_of(i, n, &at)) {
        size_t begin = ct_utf8_offset(text, 0, at), end = ct_utf8_offset(text, begin, 1);

        *out = ct_value_str((ct_str){text.p + begin, end - begin});
        return true;
    }
    return false;
}

/* object[key]: the item, else (for a text) the attribute, else undefined. */
ct_status run_item(jinja_run *r, const jinja_node *n, const ct_value *object, const ct_value *key,
                   ct_value *out)
{
    const ct_value *found;
    int64_t i;
    ct_status st;

    if (object->kind == CT_VALUE_UNDEFINED)
        return run_undefined(r, n, object);
    if (key->kind == CT_VALUE_STRING) {
        ct_str name = ct_value_text(key);

        found = object->kind == CT_VALUE_MAP ? ct_map_find(object->u.map, name) : NULL;
        if (found)
            *out = *found;
        else if (!namespace_attr(object, name, out) && !builtin_attr(object, name, out) &&
                 !number_attr(object, name, out))
            *out = undefined_attr(object, name);
        return CT_OK;
    }
    if (ct_value_as_int(key, &i)) {
        st = object->kind == CT_VALUE_STRING ? run_steps(r, n, object->u.text.n / BYTES_A_STEP)
                                             : CT_OK;
        if (!st && !item_by_index(object, i, out))
            *out = (ct_value){.kind = CT_VALUE_UNDEFINED,
                              .sub = CT_UNDEFINED_ELEMENT,
                              .owner = object->kind,
                              .owner_sub = object->sub,
                              .u.integer = i};
        return st;
    }
    *out = run_undefined_hint("no such element");
    return CT_OK;
}

static ct_status eval_name(jinja_run *r, const jinja_node *n, ct_value *out)
{
    *out = *run_slot(r, n->ref);
    if (run_missing(out))
        out->u.text.p = n->text.p, out->u.text.n = n->text.n;
    return CT_OK;
}

static ct_status eval_list(jinja_run *r, const jinja_node *n, ct_value *out)
{
    size_t count = 0, i = 0;
    ct_value *items;
    ct_status st = CT_OK;

    for (const jinja_node *k = n->list; k; k = k->next)
        count++;
    items = run_values(r, count);
    if (!items)
        return run_full(r, n);
    for (const jinja_node *k = n->list; k && !st; k = k->next)
        st = run_eval(r, k, &items[i++]);
    if (!st)
        *out = ct_value_list(items, count, n->kind == JINJA_TUPLE ? CT_LIST_TUPLE : CT_LIST_LIST);
    return st;
}

static ct_status eval_dict(jinja_run *r, const jinja_node *n, ct_value *out)
{
    size_t count = 0, i = 0;
    ct_map_entry *entry;
    ct_status st = CT_OK;

    for (const jinja_node *k = n->list; k; k = k->next->next)
        count++;
    entry = ct_arena_zalloc(r->a, count, sizeof *entry);
    if (!entry)
        return run_full(r, n);
    for (const jinja_node *k = n->list; k && !st; k = k->next->next, i++) {
        ct_value key;

        st = run_eval(r, k, &key);
        if (!st && key.kind != CT_VALUE_STRING)
            return run_fail(r, n, "a mapping's key must be a string, not %s",
                            ct_value_kind_name(&key));
        if (st)
            break;
        entry[i].key = ct_value_text(&key);
        st = run_eval(r, k->next, &entry[i].value);
    }
    if (!st && !ct_value_build_map(out, entry, count, r->a))
        return run_full(r, n);
    return st;
}

static ct_status eval_item(jinja_run *r, const jinja_node *n, ct_value *out)
{
    ct_value object, key;
    ct_status st = run_eval(r, n->a, &object);

    if (!st)
        st = run_eval(r, n->b, &key);
    return st ? st : run_item(r, n, &object, &key, out);
}

static ct_status eval_attr(jinja_run *r, const jinja_node *n, ct_value *out)
{
    ct_value object;
    ct_status st = run_eval(r, n->a, &object);

    if (st)
        return st;
    if (object.kind == CT_VALUE_UNDEFINED)
        return run_undefined(r, n, &object);
    run_attr(&object, n->text, out);
    return CT_OK;
}

static ct_status eval_slice(jinja_run *r, const jinja_node *n, ct_value *out)
{
    const jinja_node *part[3] = {n->b, n->c, n->d};
    ct_value object, value[3];
    ct_status st = run_eval(r, n->a, &object);

    for (size_t i = 0; i < 3 && !st; i++) {
        value[i] = ct_value_none();
        if (part[i])
            st = run_eval(r, part[i], &value[i]);
    }
    return st ? st : run_slice(r, n, &object, value, out);
}

static ct_status compare_one(jinja_run *r, const jinja_node *n, const ct_value *a,
                             const ct_value *b, bool *out)
{
    static const char *const names[] = {"==", "!=", "<", "<=", ">", ">="};
    ct_op_error e;
    int c = 0;
    bool ok;

    if (n->op == JINJA_EQ || n->op == JINJA_NE) {
        ok = ct_value_equal(out, a, b, &e);
        *out ^= n->op == JINJA_NE;
    } else if (n->op == JINJA_IN || n->op == JINJA_NOT_IN) {
        ct_status st = b->kind == CT_VALUE_STRING ? run_steps(r, n, b->u.text.n / BYTES_A_STEP)
                       : b->kind == CT_VALUE_LIST ? run_steps(r, n, b->u.list.n)
                                                  : CT_OK;

        if (st)
            return st;
        ok = ct_value_in(out, a, b, &e);
        *out ^= n->op == JINJA_NOT_IN;
    } else {
        ok = ct_value_compare(&c, a, b, names[n->op], &e);
        *out = n->op == JINJA_LT   ? c < 0
               : n->op == JINJA_LE ? c <= 0
               : n->op == JINJA_GT ? c > 0
                                   : c >= 0;
    }
    return ok ? CT_OK : run_op_fail(r, n, &e);
}

static ct_status eval_compare(jinja_run *r, const jinja_node *n, ct_value *out)
{
    ct_value left, right;
    bool truth = true;
    ct_status st = run_eval(r, n->a, &left);

    for (const jinja_node *k = n->list; k && !st && truth; k = k->next) {
        st = run_eval(r, k->a, &right);
        if (!st)
            st = compare_one(r, k, &left, &right, &truth);
        left = right;
    }
    if (!st)
        *out = ct_value_bool(truth);
    return st;
}

static ct_status eval_concat(jinja_run *r, const jinja_node *n, ct_value *out)
{
    ct_str all = {"", 0}, text;
    ct_status st = CT_OK;
    ct_value v;

    for (const jinja_node *k = n->list; k && !st; k = k->next) {
        st = run_eval(r, k, &v);
        if (!st)
            st = run_text(r, n, &v, &text);
        if (!st)
            st = run_concat(r, n, all, text, &all);
    }
    if (!st)
        *out = ct_value_str(all);
    return st;
}

static ct_status eval_cond(jinja_run *r, const jinja_node *n, ct_value *out)
{
    ct_value test;
    ct_status st = run_eval(r, n->a, &test);

    if (st)
        return st;
    if (ct_value_truth(&test))
        return run_eval(r, n->b, out);
    if (n->c)
        return run_eval(r, n->c, out);
    *out = run_undefined_hint("the inline if-expression evaluated to false and no else section was "
                              "defined.");
    return CT_OK;
}

static ct_status eval_test(jinja_run *r, const jinja_node *n, ct_value *out)
{
    ct_value v, arg = ct_value_none();
    bool truth = false;
    ct_status st = run_eval(r, n->a, &v);

    if (!st && n->b)
        st = run_eval(r, n->b, &arg);
    if (!st)
        st = run_test(r, n, &v, &arg, &truth);
    if (!st)
        *out = ct_value_bool(truth);
    return st;
}

/* Operators of one operand, and those whose second is not always evaluated. */
static ct_status eval_logic(jinja_run *r, const jinja_node *n, ct_value *out)
{
    ct_value v;
    ct_status st = run_eval(r, n->a, &v);

    if (st)
        return st;
    if (n->kind == JINJA_NOT) {
        *out = ct_value_bool(!ct_value_truth(&v));
        return CT_OK;
    }
    if (n->kind == JINJA_AND || n->kind == JINJA_OR) {
        if (ct_value_truth(&v) == (n->kind == JINJA_AND))
            return run_eval(r, n->b, out);
        *out = v;
        return CT_OK;
    }
    return run_negate(r, n, &v, out);
}

static ct_status eval_two(jinja_run *r, const jinja_node *n, ct_value *out)
{
    ct_value a, b;
    ct_status st = run_eval(r, n->a, &a);

    if (!st)
        st = run_eval(r, n->b, &b);
    return st ? st : run_binary(r, n, &a, &b, out);
}

static ct_status eval_one_argument(jinja_run *r, const jinja_node *n, ct_value *out)
{
    ct_value v;
    ct_status st = run_eval(r, n->a, &v);

    if (st)
        return st;
    return n->kind == JINJA_FILTER ? run_filter(r, n, n->id, &v, out) : run_method(r, n, &v, out);
}

static ct_status eval_kind(jinja_run *r, const jinja_node *n, ct_value *out)
{
    switch ((jinja_kind)n->kind) {
    case JINJA_CONST:
        *out = n->value;
        return CT_OK;
    case JINJA_NAME:
        return eval_name(r, n, out);
    case JINJA_LIST:
    case JINJA_TUPLE:
        return eval_list(r, n, out);
    case JINJA_DICT:
        return eval_dict(r, n, out);
    case JINJA_ATTR:
        return eval_attr(r, n, out);
    case JINJA_LOOPATTR:
        return run_loop_attr(r, n, out);
    case JINJA_ITEM:
        return eval_item(r, n, out);
    case JINJA_SLICE:
        return eval_slice(r, n, out);
    case JINJA_CALL:
        return run_call(r, n, out);
    case JINJA_METHOD:
    case JINJA_FILTER:
        return eval_one_argument(r, n, out);
    case JINJA_TEST:
        return eval_test(r, n, out);
    case JINJA_NOT:
    case JINJA_NEGATE:
    case JINJA_PLUS:
    case JINJA_AND:
    case JINJA_OR:
        return eval_logic(r, n, out);
    case JINJA_COND:
        return eval_cond(r, n, out);
    case JINJA_COMPARE:
        return eval_compare(r, n, out);
    case JINJA_BINARY:
        return eval_two(r, n, out);
    case JINJA_CONCAT:
        return eval_concat(r, n, out);
    default:
        return run_fail(r, n, "not an expression");
    }
}

ct_status run_eval(jinja_run *r, const jinja_node *n, ct_value *out)
{
    ct_status st = run_steps(r, n, 1);

    if (st)
        return st;
    if (r->depth >= MAX_RECURSION)
        return jinja_fail(r->j->name, n->line, CT_ELIMIT, r->err, "nested deeper than %d levels",
                          MAX_RECURSION);
    r->depth++;
    st = eval_kind(r, n, out);
    r->depth--;
    return st;
}
