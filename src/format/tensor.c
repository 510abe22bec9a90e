#include "format/tensor.h"

#include <assert.h>

static const struct {
    const char *name;
    unsigned bytes;
} dtypes[CT_N_DTYPES] = {
    [CT_DTYPE_BF16] = {"BF16", 2},       [CT_DTYPE_F16] = {"F16", 2},
    [CT_DTYPE_F32] = {"F32", 4},         [CT_DTYPE_F64] = {"F64", 8},
    [CT_DTYPE_F8_E4M3] = {"F8_E4M3", 1}, [CT_DTYPE_F8_E5M2] = {"F8_E5M2", 1},
    [CT_DTYPE_U8] = {"U8", 1},           [CT_DTYPE_I8] = {"I8", 1},
    [CT_DTYPE_U16] = {"U16", 2},         [CT_DTYPE_I16] = {"I16", 2},
    [CT_DTYPE_U32] = {"U32", 4},         [CT_DTYPE_I32] = {"I32", 4},
    [CT_DTYPE_U64] = {"U64", 8},         [CT_DTYPE_I64] = {"I64", 8},
    [CT_DTYPE_BOOL] = {"BOOL", 1},
};

const char *ct_dtype_name(ct_dtype t)
{
    assert(t < CT_N_DTYPES);
    return dtypes[t].name;
}

size_t ct_dtype_bytes(ct_dtype t)
{
    assert(t < CT_N_DTYPES);
    return dtypes[t].bytes;
}

bool ct_dtype_parse(ct_str name, ct_dtype *out)
{
    for (unsigned i = 0; i < CT_N_DTYPES; i++)
        if (ct_str_is(name, dtypes[i].name)) {
            *out = (ct_dtype)i;
            return true;
        }
    return false;
}

bool ct_tensor_name_ok(ct_str name)
{
    if (name.n == 0 || name.n > CT_TENSOR_MAX_NAME)
        return false;
    for (size_t i = 0; i < name.n; i++)
        if ((unsigned char)name.p[i] < 0x20 || name.p[i] == 0x7f)
            return false;
    return true;
}
