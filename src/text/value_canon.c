#include "text/value_canon.h"

#include "base/checked.h"

#define FEW 16 /* keys that are put in order by insertion */

/* Every string carries its length, so that no two values print alike. */
static void put_text(ct_buf *out, char mark, ct_str s)
{
    uint64_t n = s.n;

    ct_buf_addc(out, mark);
    ct_buf_add(out, &n, sizeof n);
    ct_buf_add(out, s.p, s.n);
}

static void put_entry(ct_buf *out, const ct_map_entry *e)
{
    put_text(out, 'k', e->key);
    ct_value_put_canon(out, &e->value);
}

/* Larger mappings come with their order by key. */
static void put_map(ct_buf *out, const ct_map_body *m)
{
    uint32_t order[FEW];
    const uint32_t *by_key = m->by_key;
    uint64_t n = m->n;

    ct_buf_addc(out, '{');
    ct_buf_add(out, &n, sizeof n);
    if (!by_key && m->n <= FEW) {
        for (size_t i = 0; i < m->n; i++) {
            size_t k = i;

            for (; k && ct_str_cmp(m->entry[i].key, m->entry[order[k - 1]].key) < 0; k--)
                order[k] = order[k - 1];
            order[k] = (uint32_t)i;
        }
        by_key = order;
    }
    for (size_t i = 0; i < m->n; i++)
        put_entry(out, &m->entry[by_key ? by_key[i] : i]);
}

void ct_value_put_canon(ct_buf *out, const ct_value *v)
{
    uint64_t n;

    switch ((ct_value_kind)v->kind) {
    case CT_VALUE_STRING:
        put_text(out, 's', ct_value_text(v));
        break;
    case CT_VALUE_BIGINT:
        put_text(out, 'n', ct_value_text(v));
        break;
    case CT_VALUE_BOOL:
        ct_buf_addc(out, v->u.boolean ? 't' : 'f');
        break;
    case CT_VALUE_INT:
        ct_buf_addc(out, 'i');
        ct_buf_add(out, &v->u.integer, sizeof v->u.integer);
        break;
    case CT_VALUE_FLOAT:
        ct_buf_addc(out, 'd');
        ct_buf_add(out, &v->u.number, sizeof v->u.number);
        break;
    case CT_VALUE_LIST:
        n = v->u.list.n;
        ct_buf_addc(out, '[');
        ct_buf_add(out, &n, sizeof n);
        for (size_t i = 0; i < v->u.list.n; i++)
            ct_value_put_canon(out, &v->u.list.item[i]);
        break;
    case CT_VALUE_MAP:
        put_map(out, v->u.map);
        break;
    case CT_VALUE_NONE:
    case CT_VALUE_UNDEFINED:
    case CT_VALUE_RANGE:
    case CT_VALUE_NAMESPACE:
    case CT_VALUE_CALLABLE:
    case CT_VALUE_METHOD:
    case CT_VALUE_LOOP:
        ct_buf_addc(out, '0');
        break;
    }
}
