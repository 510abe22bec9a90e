/* Random lives of sequences over shared pages: after every operation the stores agree
 * with themselves, and every sequence reads back what it wrote.
 * Sentences of docs/kv.md: 2, 3, 8, 9, 11, 12, 13, 14, 15, 16, 18, 22, 24, 26, 29, 30, 34.
 *
 * To repeat one world: CARAT_SEED=N build/release/tests/unit/test_kv_sim */
#include "kv_rig.h"

#define WORLDS    120
#define OPS       1000
#define HISTORIES 4

typedef struct world {
    rig *r;
    uint64_t random;
    /* Texts of the past, to begin like. */
    uint32_t past[HISTORIES][RIG_TOKENS], n_past[HISTORIES];
    unsigned n_admitted, n_waited, n_refused, n_hits;
} world;

/* Below n. */
static uint32_t draw(world *w, uint32_t n)
{
    w->random = w->random * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)((w->random >> 33) % n);
}

static uint32_t draw_between(world *w, uint32_t low, uint32_t high)
{
    return low + draw(w, high - low + 1);
}

static ct_kv_shape draw_shape(world *w, uint32_t window)
{
    const uint64_t budgets[] = {0, 1000, 6000, 1u << 20};
    ct_kv_shape s = {
        .n_seqs = draw_between(w, 1, 6),
        .seq_tokens = draw_between(w, 20, 90),
        .step_tokens = draw_between(w, 1, 14),
        .page_tokens = draw_between(w, 1, 9),
        .decode_tokens = draw(w, 5),
        .cache_bytes = budgets[draw(w, 4)],
    };
    uint32_t blocks = s.seq_tokens / s.page_tokens + 1;
    uint32_t slides = (window + s.step_tokens) / s.page_tokens + 3;

    /* Often too little for all at once. */
    if (draw(w, 4)) {
        s.n_global = blocks + draw(w, blocks * 2);
        s.n_sliding = (slides < blocks ? slides : blocks) + draw(w, slides * 2);
    }
    return s;
}

/* A beginning of something seen before, and something new. */
static uint32_t draw_prompt(world *w, uint32_t *ids)
{
    const uint32_t from = draw(w, HISTORIES), longest = w->r->shape.seq_tokens;
    uint32_t n = draw(w, 2) ? w->n_past[from] : draw(w, w->n_past[from] + 1);
    uint32_t end = n + draw(w, 20);

    if (end > longest)
        end = longest;
    if (n > end)
        n = end;
    memcpy(ids, w->past[from], n * sizeof *ids);
    for (; n < end; n++)
        ids[n] = draw(w, 3);
    if (n == 0)
        ids[n++] = draw(w, 3);
    return n;
}

/* Whether all would fit even if nothing were shared: then waiting has no excuse. */
static bool fits_unshared(const world *w, uint32_t n_tokens)
{
    ct_kv_usage u = ct_kv_used(w->r->kv);
    ct_kv_need sum = ct_kv_needs(w->r->kv, n_tokens);

    for (uint32_t i = 0; i < w->r->shape.n_seqs; i++) {
        ct_kv_need need = ct_kv_needs(w->r->kv, w->r->limit[i]);

        sum.n_global += w->r->limit[i] ? need.n_global : 0;
        sum.n_sliding += w->r->limit[i] ? need.n_sliding : 0;
    }
    return sum.n_global <= u.n_global && sum.n_sliding <= u.n_sliding;
}

static void try_admit(world *w, uint32_t seq)
{
    rig *r = w->r;
    uint32_t ids[RIG_TOKENS], n = draw_prompt(w, ids), n_cached = 0;
    ct_kv_claim claim = {.ids = ids,
                         .n_ids = n,
                         .n_tokens = n + draw(w, 30),
                         .hint = draw(w, 3) ? 0 : draw(w, n + 1),
                         .salt = draw(w, 4) == 0,
                         .no_cache = draw(w, 10) == 0};
    ct_kv_need need = ct_kv_needs(r->kv, claim.n_tokens);
    ct_kv_usage before = ct_kv_used(r->kv), after;
    ct_kv_admission a = rig_admit(r, seq, &claim, &n_cached);
    bool never = claim.n_tokens > r->shape.seq_tokens || need.n_global > before.n_global ||
                 need.n_sliding > before.n_sliding;

    assert_int_equal(a == CT_KV_NEVER, never);
    w->n_refused += never;
    if (a == CT_KV_ADMITTED) {
        w->n_admitted++;
        w->n_hits += n_cached > 0;
        assert_true(n_cached < n && n_cached % r->shape.page_tokens == 0);
        assert_true(n_cached == 0 || (r->shape.cache_bytes && !claim.no_cache));
        return;
    }
    after = ct_kv_used(r->kv);
    assert_memory_equal(&after, &before, sizeof after);
    assert_int_equal(ct_kv_length(r->kv, seq), 0);
    if (never)
        return;
    w->n_waited++;
    assert_false(fits_unshared(w, claim.n_tokens));
}

static void grow(world *w, uint32_t seq)
{
    rig *r = w->r;
    const uint32_t at = ct_kv_length(r->kv, seq), left = r->limit[seq] - at;
    uint32_t n = draw(w, 1 + (uint32_t)ct_min_size(left, rig_most(r, seq))), stop;

    stop = ct_kv_next_boundary(r->kv, seq, at);
    assert_true(stop == r->n_prompt[seq] || (stop > at && stop < r->n_prompt[seq]));
    if (stop > at && stop - at < n && draw(w, 2))
        n = stop - at;
    for (uint32_t i = at; i < at + n; i++)
        if (i >= r->n_prompt[seq])
            r->ids[seq][i] = draw(w, 3);
    rig_step(r, seq, n);
    if (at + n == stop && draw(w, 3))
        ct_kv_keep(r->kv, seq);
}

static void finish(world *w, uint32_t seq)
{
    const uint32_t to = draw(w, HISTORIES), n = ct_kv_length(w->r->kv, seq);

    memcpy(w->past[to], w->r->ids[seq], n * sizeof *w->past[to]);
    w->n_past[to] = n;
    if (draw(w, 2))
        ct_kv_keep(w->r->kv, seq);
    rig_release(w->r, seq);
}

static void act(world *w)
{
    const uint32_t seq = draw(w, w->r->shape.n_seqs);

    if (draw(w, 300) == 0)
        ct_kv_forget(w->r->kv);
    else if (w->r->limit[seq] == 0)
        try_admit(w, seq);
    else if (ct_kv_length(w->r->kv, seq) == w->r->limit[seq] || draw(w, 25) == 0)
        finish(w, seq);
    else if (draw(w, 12) == 0)
        ct_kv_keep(w->r->kv, seq);
    else
        grow(w, seq);
}

/* Alone in the world, everything that is not refused for good is admitted. */
static void end(world *w)
{
    const uint32_t ids[1] = {0};
    ct_kv_usage u;
    uint32_t n_cached;

    for (uint32_t i = 0; i < w->r->shape.n_seqs; i++)
        rig_release(w->r, i);
    assert_int_equal(
        rig_admit(w->r, 0, &(ct_kv_claim){ids, 1, w->r->shape.seq_tokens, 0, 0, false}, &n_cached),
        CT_KV_ADMITTED);
    rig_release(w->r, 0);
    ct_kv_forget(w->r->kv);
    assert_true(ct_kv_consistent(w->r->kv));
    u = ct_kv_used(w->r->kv);
    assert_int_equal(u.global_free, u.n_global);
    assert_int_equal(u.sliding_free, u.n_sliding);
    assert_int_equal(u.global_reserved + u.sliding_reserved + u.snapshots, 0);
}

static void run_world(uint64_t seed, unsigned *n_admitted, unsigned *n_waited, unsigned *n_hits)
{
    world *w = calloc(1, sizeof *w);
    uint32_t window;

    w->random = seed * 2654435761u + 1;
    window = draw_between(w, 1, 24);
    w->r = rig_open(draw_shape(w, window), window);
    for (unsigned i = 0; i < OPS; i++) {
        act(w);
        if (!ct_kv_consistent(w->r->kv))
            fail_msg("inconsistent after operation %u; CARAT_SEED=%u repeats it", i,
                     (unsigned)seed);
        for (uint32_t seq = 0; seq < w->r->shape.n_seqs; seq++)
            if (w->r->limit[seq])
                rig_check(w->r, seq);
    }
    end(w);
    *n_admitted += w->n_admitted;
    *n_waited += w->n_waited;
    *n_hits += w->n_hits;
    rig_close(w->r);
    free(w);
}

static void random_lives_keep_every_promise(void **state)
{
    const char *only = getenv("CARAT_SEED");
    unsigned n_admitted = 0, n_waited = 0, n_hits = 0;

    (void)state;
    if (only) {
        run_world(strtoul(only, NULL, 10), &n_admitted, &n_waited, &n_hits);
        return;
    }
    for (uint64_t seed = 1; seed <= WORLDS; seed++)
        run_world(seed, &n_admitted, &n_waited, &n_hits);
    print_message("%u operations: %u admitted, %u of them with a prefix, %u times waiting\n",
                  WORLDS * OPS, n_admitted, n_hits, n_waited);
    /* A world where nothing is shared or nothing waits would prove little. */
    assert_true(n_hits > n_admitted / 10 && n_waited > 100);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(random_lives_keep_every_promise)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
