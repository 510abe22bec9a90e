#include "format/config_file.h"

ct_status ct_config_file_open(ct_config_file *out, const char *dir, const char *name, ct_error *err)
{
    ct_status st = ct_path_join(out->path, dir, name, err);

    return st ? st : ct_map_open(&out->map, out->path, err);
}

ct_status ct_config_doc(const ct_node **root, const char *path, ct_str text, ct_arena *scratch,
                        ct_error *err)
{
    ct_status st;

    if (text.n > CT_MAX_CONFIG_BYTES)
        return ct_fail(err, CT_ELIMIT, "%s: %zu bytes, at most %zu are read", path, text.n,
                       CT_MAX_CONFIG_BYTES);
    st = ct_arena_init(scratch, ct_doc_bytes(text.n), err);
    if (st)
        return st;
    st = ct_doc_parse(root, path, text, scratch, err);
    if (!st && (*root)->kind != CT_JSON_OBJECT)
        st = ct_fail(err, CT_EFORMAT, "%s: must hold an object, not %s", path,
                     ct_json_kind_name((*root)->kind));
    if (st)
        ct_arena_deinit(scratch);
    return st;
}
