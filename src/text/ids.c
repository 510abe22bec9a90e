#include "text/tokenizer.h"

#include "base/checked.h"
#include "text/ids.h"

#include <stdlib.h>

#define FIRST_ROOM 64

void ct_ids_deinit(ct_ids *ids)
{
    free(ids->id);
    *ids = (ct_ids){0};
}

ct_status ct_ids_reserve(ct_ids *ids, size_t n, ct_error *err)
{
    size_t need, room, n_bytes;
    uint32_t *id;

    if (!ct_add_size(&need, ids->n, n))
        return ct_fail(err, CT_ELIMIT, "a list of more than SIZE_MAX token ids");
    if (need <= ids->room)
        return CT_OK;
    room = ct_max_size(need, ct_max_size(FIRST_ROOM, ids->room + ids->room / 2));
    id = ct_mul_size(&n_bytes, room, sizeof *id) ? realloc(ids->id, n_bytes) : NULL;
    if (!id)
        return ct_fail(err, CT_ELIMIT, "no memory for a list of %zu token ids", room);
    ids->id = id;
    ids->room = room;
    return CT_OK;
}

ct_status ct_ids_add(ct_ids *ids, uint32_t id, ct_error *err)
{
    return ct_ids_append(ids, &id, 1, err);
}

ct_status ct_ids_append(ct_ids *ids, const uint32_t *id, size_t n, ct_error *err)
{
    ct_status st = ct_ids_reserve(ids, n, err);

    if (st)
        return st;
    if (n)
        memcpy(ids->id + ids->n, id, n * sizeof *id);
    ids->n += n;
    return CT_OK;
}
