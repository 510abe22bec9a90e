/* The template of a checkpoint's directory. */
#include "base/map.h"
#include "base/path.h"
#include "text/chat.h"

#include <unistd.h>

#define CONFIG_ARENA_BYTES ((size_t)64 << 20)
#define MAX_BOS_BYTES      4096

/* bos_token: a string or an added token {"content": …}. */
static ct_status read_bos(ct_buf *bos, const char *path, const ct_value *config, ct_error *err)
{
    const ct_value *v = ct_value_get(config, "bos_token");

    if (v && v->kind == CT_VALUE_MAP)
        v = ct_value_get(v, "content");
    if (!v || v->kind == CT_VALUE_NONE)
        return CT_OK;
    if (v->kind != CT_VALUE_STRING)
        return ct_fail(err, CT_EFORMAT, "%s: bos_token must be a string, not %s", path,
                       ct_value_kind_name(v));
    ct_buf_clear(bos);
    ct_buf_add(bos, v->u.text.p, v->u.text.n);
    if (bos->failed)
        return ct_fail(err, CT_ELIMIT, "%s: bos_token has %zu bytes, at most %d are read", path,
                       v->u.text.n, MAX_BOS_BYTES);
    return CT_OK;
}

static ct_status compile_config(ct_chat_template *t, const char *path, const ct_value *config,
                                ct_error *err)
{
    const ct_value *v = ct_value_get(config, "chat_template");

    if (!v || v->kind != CT_VALUE_STRING)
        return ct_fail(err, CT_EFORMAT,
                       "%s: no chat_template.jinja beside it and no string 'chat_template' in it",
                       path);
    return ct_jinja_compile(&t->jinja, "chat_template", ct_value_text(v), err);
}

/* Reads what tokenizer_config.json has; it may be absent when a template is known. */
static ct_status read_config(ct_chat_template *t, const char *dir, bool want_template,
                             ct_error *err)
{
    const ct_value *config;
    char path[CT_PATH_BYTES];
    ct_arena a = {0};
    ct_map map = {0};
    ct_status st = ct_path_join(path, dir, "tokenizer_config.json", err);

    if (st || (!want_template && access(path, F_OK) != 0))
        return st;
    st = ct_map_open(&map, path, err);
    if (!st)
        st = ct_arena_init(&a, CONFIG_ARENA_BYTES, err);
    if (!st)
        st = ct_value_parse(&config, path, ct_map_str(&map), &a, err);
    if (!st)
        st = read_bos(&t->bos, path, config, err);
    if (!st && want_template)
        st = compile_config(t, path, config, err);
    ct_arena_deinit(&a);
    ct_map_close(&map);
    return st;
}

static ct_status compile_file(ct_chat_template *t, const char *path, const char *name,
                              ct_error *err)
{
    ct_map map;
    ct_status st = ct_map_open(&map, path, err);

    if (st)
        return st;
    st = ct_jinja_compile(&t->jinja, name, ct_map_str(&map), err);
    ct_map_close(&map);
    return st;
}

ct_status ct_chat_template_open(ct_chat_template *out, const char *dir, const char *path,
                                ct_error *err)
{
    ct_chat_template t = {0};
    char own[CT_PATH_BYTES];
    ct_status st = CT_OK;

    ct_buf_init(&t.bos, MAX_BOS_BYTES);
    ct_buf_addz(&t.bos, "<bos>");
    if (!path && dir) {
        st = ct_path_join(own, dir, "chat_template.jinja", err);
        if (!st && access(own, F_OK) == 0)
            path = own;
    }
    if (!st && path)
        st = compile_file(&t, path, path == own ? "chat_template.jinja" : path, err);
    if (!st && dir)
        st = read_config(&t, dir, !path, err);
    if (st) {
        ct_chat_template_close(&t);
        return st;
    }
    *out = t;
    return CT_OK;
}

void ct_chat_template_close(ct_chat_template *t)
{
    ct_jinja_destroy(t->jinja);
    ct_buf_deinit(&t->bos);
    *t = (ct_chat_template){0};
}
