/* config.json and generation_config.json; what a config that parses expects of a
 * checkpoint, against one without tensors. */
#include "format/config.h"
#include "model/manifest.h"

#include <assert.h>

#define ARENA_BYTES ((size_t)8 << 20)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_config(const ct_config *c)
{
    assert(c->n_layers >= 1 && c->n_layers <= CT_MAX_LAYERS);
    assert(c->is_global[c->n_layers - 1]);
    assert(c->n_heads % c->n_kv_sliding == 0 && c->n_heads % c->n_kv_global == 0);
    assert(c->hd_sliding % 2 == 0 && c->hd_global % 2 == 0);
    assert(c->softcap > 0 && c->eps > 0);
    assert(c->rope_partial_global > 0 && c->rope_partial_global <= 1);
    assert(!c->moe || (c->top_k >= 1 && c->top_k <= c->n_experts && c->moe_intermediate));
    assert((c->quant.method == CT_QUANT_NONE) == (c->quant.n_groups == 0));
}

static void check_manifest(const ct_config *c)
{
    /* Header length 2, header {}: a file without tensors. */
    static const char empty[] = "\2\0\0\0\0\0\0\0{}";
    ct_manifest_report report;
    ct_checkpoint *ckpt;
    ct_error err;

    assert(!ct_checkpoint_open_memory(&ckpt, "empty", (ct_str){empty, 10}, &err));
    assert(ct_manifest_check(c, ckpt, &report, &err));
    ct_checkpoint_close(ckpt);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const ct_str text = {(const char *)data, size};
    ct_generation_config g;
    ct_config c;
    ct_arena a;
    ct_error err;

    if (!ct_generation_config_parse(&g, "fuzz", text, &err))
        assert(g.n_stop_ids >= 1 && g.n_stop_ids <= CT_MAX_STOP_IDS &&
               g.n_suppress_ids <= CT_MAX_SUPPRESS);
    if (ct_arena_init(&a, ARENA_BYTES, &err))
        return 0;
    if (!ct_config_parse(&c, "fuzz", text, &a, &err)) {
        check_config(&c);
        check_manifest(&c);
    }
    ct_arena_deinit(&a);
    return 0;
}
