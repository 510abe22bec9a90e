/* Values that a template computes with: JSON's, plus undefined and what an evaluation
 * needs.  Integers keep their text when they do not fit 64 bits, and 1.0 stays a float.
 * Contents live in an arena; immutable once built, except namespace objects inside one
 * rendering.  Strings are UTF-8. */
#ifndef CT_TEXT_VALUE_H
#define CT_TEXT_VALUE_H

#include "base/arena.h"
#include "base/json.h"
#include "base/status.h"
#include "base/str.h"

typedef struct ct_value ct_value;
typedef struct ct_map_body ct_map_body;
typedef struct ct_namespace ct_namespace;

typedef enum ct_value_kind {
    CT_VALUE_UNDEFINED,
    CT_VALUE_NONE,
    CT_VALUE_BOOL,
    CT_VALUE_INT,
    CT_VALUE_BIGINT, /* decimal text that does not fit int64_t, no leading zeros */
    CT_VALUE_FLOAT,
    CT_VALUE_STRING,
    CT_VALUE_LIST, /* also Python's tuple and the views of a mapping: see ct_list_kind */
    CT_VALUE_MAP,
    CT_VALUE_RANGE,
    CT_VALUE_NAMESPACE,
    CT_VALUE_CALLABLE, /* a macro or a function */
    CT_VALUE_METHOD,   /* what Python gives for d['items'] when there is no such key */
    CT_VALUE_LOOP,
} ct_value_kind;

typedef enum ct_list_kind {
    CT_LIST_LIST,
    CT_LIST_TUPLE,
    CT_LIST_KEYS,
    CT_LIST_VALUES,
    CT_LIST_ITEMS,
    CT_LIST_GENERATOR, /* result of map and select: only iterated, and once */
} ct_list_kind;

/* Why a value is undefined, for the message of whoever uses it. */
typedef enum ct_undefined_kind {
    CT_UNDEFINED_NAME,    /* text: a variable's name */
    CT_UNDEFINED_ATTR,    /* text: a name that `owner` does not have */
    CT_UNDEFINED_ELEMENT, /* integer: an index that `owner` does not have */
    CT_UNDEFINED_HINT,    /* text: the whole message */
} ct_undefined_kind;

struct ct_value {
    unsigned char kind;             /* ct_value_kind */
    unsigned char sub;              /* LIST: ct_list_kind; UNDEFINED: ct_undefined_kind */
    unsigned char owner, owner_sub; /* UNDEFINED: kind and sub of the object asked */
    uint32_t step;                  /* RANGE: int32_t; CALLABLE: which */
    union {
        bool boolean;
        int64_t integer;
        double number;
        struct {
            const char *p; /* STRING, BIGINT, UNDEFINED: arena or template */
            size_t n;
        } text;
        struct {
            const ct_value *item;
            size_t n;
        } list;
        struct {
            int64_t start;
            size_t n;
        } range;
        const ct_map_body *map;
        ct_namespace *ns;
        const void *object; /* CALLABLE: a macro; LOOP: its state */
    } u;
};

typedef struct ct_map_entry {
    ct_str key;
    ct_value value;
} ct_map_entry;

/* Entries in order of insertion, and their order by key for lookup: worst cases stay
 * logarithmic, whatever keys a client sends. */
struct ct_map_body {
    const ct_map_entry *entry;
    const uint32_t *by_key; /* NULL in small mappings, which are searched in order */
    size_t n;
};

/* The one mutable value; attributes are few, because only a template's source names them. */
struct ct_namespace {
    ct_map_entry *entry;
    size_t n, room;
};

static inline ct_value ct_value_none(void)
{
    return (ct_value){.kind = CT_VALUE_NONE};
}

static inline ct_value ct_value_bool(bool b)
{
    return (ct_value){.kind = CT_VALUE_BOOL, .u.boolean = b};
}

static inline ct_value ct_value_int(int64_t i)
{
    return (ct_value){.kind = CT_VALUE_INT, .u.integer = i};
}

static inline ct_value ct_value_float(double f)
{
    return (ct_value){.kind = CT_VALUE_FLOAT, .u.number = f};
}

static inline ct_value ct_value_str(ct_str s)
{
    return (ct_value){.kind = CT_VALUE_STRING, .u.text = {s.p, s.n}};
}

static inline ct_value ct_value_list(const ct_value *item, size_t n, ct_list_kind kind)
{
    return (ct_value){.kind = CT_VALUE_LIST, .sub = (unsigned char)kind, .u.list = {item, n}};
}

static inline ct_value ct_value_map(const ct_map_body *map)
{
    return (ct_value){.kind = CT_VALUE_MAP, .u.map = map};
}

static inline ct_str ct_value_text(const ct_value *v)
{
    return (ct_str){v->u.text.p, v->u.text.n};
}

/* From an integer's text: sign and digits.  BIGINT when it does not fit. */
ct_value ct_value_int_text(ct_str text);

/* A mapping of n entries (borrowed for as long as the value lives; may be reordered):
 * of equal keys the first keeps its place and the last gives the value, as in Python.
 * False when the arena is full. */
bool ct_value_build_map(ct_value *out, ct_map_entry *entry, size_t n, ct_arena *a);
/* A mapping with one more entry, or another value of an old one. */
bool ct_value_with(ct_value *out, const ct_value *mapping, ct_str key, const ct_value *value,
                   ct_arena *a);

/* Builds the value whose first token t has just been read from j.  Strings are copied
 * into the arena.  Duplicate keys: the last wins, as in Python. */
ct_status ct_value_from_json(const ct_value **out, ct_json *j, const ct_json_token *t, ct_arena *a,
                             ct_error *err);
/* The whole text must be one JSON value. */
ct_status ct_value_parse(const ct_value **out, const char *name, ct_str text, ct_arena *a,
                         ct_error *err);

const ct_value *ct_value_get(const ct_value *mapping,
                             const char *key); /* NULL: absent or no mapping */
const ct_value *ct_map_find(const ct_map_body *m, ct_str key);

/* "a string", "an integer", … for messages about a request. */
const char *ct_value_kind_name(const ct_value *v);
/* Python's type name: "str", "NoneType", …; kind and sub as in ct_value. */
const char *ct_value_type_name(unsigned kind, unsigned sub);

/* Sorts order[0 … n) stably, in n log n comparisons whatever the order; tmp has room
 * for n.  less(ctx, i, j): whether item i goes before item j. */
typedef bool ct_less_fn(void *ctx, uint32_t i, uint32_t j);
void ct_stable_sort(uint32_t *order, uint32_t *tmp, size_t n, ct_less_fn *less, void *ctx);

#endif
