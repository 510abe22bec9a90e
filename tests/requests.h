/* Shared by the tests of requests: JSON in, the template's request as JSON out. */
#ifndef CT_TESTS_REQUESTS_H
#define CT_TESTS_REQUESTS_H

#include "support.h"

#include <string.h>

#include "text/chat_request.h"
#include "text/value_ops.h"

typedef ct_status test_map_fn(ct_chat_request *out, const ct_value *body, ct_arena *a,
                              ct_error *err);

/* Maps a request; *json gets `render`, or err the reason. */
static inline ct_status test_map(test_map_fn *map, ct_str request, ct_buf *json, ct_error *err)
{
    const ct_value *body;
    ct_chat_request r;
    ct_op_error e;
    ct_arena a = {0};
    ct_status st;

    test_ok(ct_arena_init(&a, (size_t)256 << 20, err), err);
    test_ok(ct_value_parse(&body, "request", request, &a, err), err);
    st = map(&r, body, &a, err);
    if (!st)
        assert_true(ct_value_put_json(json, &r.render, -1, &e));
    ct_arena_deinit(&a);
    return st;
}

/* The result must hold `part`. */
static inline void test_maps(test_map_fn *map, const char *request, const char *part)
{
    ct_error err = {0};
    ct_buf json;
    ct_status st;

    ct_buf_init(&json, 1 << 20);
    st = test_map(map, ct_str_of(request), &json, &err);
    if (st || !strstr(json.p, part))
        fail_msg("%s\n  gave %s\n  want %s", request, st ? err.text : json.p, part);
    ct_buf_deinit(&json);
}

static inline void test_refuses(test_map_fn *map, const char *request, const char *error)
{
    ct_error err = {0};
    ct_buf json;
    ct_status st;

    ct_buf_init(&json, 1 << 20);
    st = test_map(map, ct_str_of(request), &json, &err);
    if (!st || strcmp(err.text, error) != 0)
        fail_msg("%s\n  gave %s\n  want %s", request, st ? err.text : json.p, error);
    ct_buf_deinit(&json);
}

#endif
