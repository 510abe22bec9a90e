#include "engine/engine.h"

#include "base/checked.h"
#include "base/clock.h"
#include "engine/backend.h"
#include "engine/engine_impl.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define MAX_QUEUE     65536
#define MAX_STEP_ROWS 65536
#define MAX_SAMPLERS  16                 /* each takes 32 bytes for every id of the vocabulary */
#define LOGITS_BYTES  ((size_t)64 << 20) /* held at once */

/* --- options ---------------------------------------------------------------------------- */

static double monotonic_s(void *ctx)
{
    (void)ctx;
    return ct_now_s();
}

static uint32_t u32_or(uint32_t value, uint32_t otherwise)
{
    return value ? value : otherwise;
}

static uint32_t min_u32(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

static uint32_t max_u32(uint32_t a, uint32_t b)
{
    return a > b ? a : b;
}

static ct_engine_options complete(const ct_engine_options *how, const ct_config *c)
{
    ct_engine_options o = *how;

    o.ctx = u32_or(o.ctx, min_u32(c->max_positions, CT_ENGINE_CTX));
    o.slots = u32_or(o.slots, CT_ENGINE_SLOTS);
    o.queue = u32_or(o.queue, CT_ENGINE_QUEUE);
    o.step_rows = u32_or(o.step_rows, max_u32(CT_ENGINE_STEP_ROWS, o.slots));
    o.chunk = min_u32(u32_or(o.chunk, o.step_rows), o.ctx);
    o.free_rows = u32_or(o.free_rows, 1);
    if (o.no_cache)
        o.cache_bytes = 0;
    else if (o.cache_bytes == 0)
        o.cache_bytes = UINT64_MAX;
    if (!o.now)
        o.now = monotonic_s;
    return o;
}

static ct_status check_bound(const char *name, uint32_t value, uint32_t least, uint32_t most,
                             ct_error *err)
{
    if (value < least || value > most)
        return ct_fail(err, CT_EINVAL, "%s: %" PRIu32 " is not from %" PRIu32 " to %" PRIu32, name,
                       value, least, most);
    return CT_OK;
}

static ct_status check_options(const ct_engine_options *o, const ct_config *c, ct_error *err)
{
    ct_status st = check_bound("ctx", o->ctx, 1, c->max_positions, err);

    if (!st)
        st = check_bound("slots", o->slots, 1, CT_ENGINE_MAX_SLOTS, err);
    if (!st)
        st = check_bound("queue", o->queue, 1, MAX_QUEUE, err);
    if (!st)
        st = check_bound("step_rows", o->step_rows, o->slots, MAX_STEP_ROWS, err);
    if (!st)
        st = check_bound("chunk", o->chunk, 1, o->step_rows, err);
    return st ? st : check_bound("free_rows", o->free_rows, 1, MAX_STEP_ROWS, err);
}

/* --- creation --------------------------------------------------------------------------- */

static ct_kv_shape kv_shape(const ct_engine_options *o)
{
    return (ct_kv_shape){
        .n_seqs = o->slots,
        .seq_tokens = o->ctx,
        .step_tokens = o->chunk,
        .decode_tokens = 1,
        .page_tokens = o->page_tokens,
        .n_global = o->n_global,
        .n_sliding = o->n_sliding,
        .global_type = o->global_type,
        .sliding_type = o->sliding_type,
        .cache_bytes = o->cache_bytes,
    };
}

/* metered: nothing is taken, only counted. */
static ct_status create_model_side(ct_engine *e, bool metered, ct_error *err)
{
    const ct_engine_options *o = &e->how;
    const ct_backend_options backend = {o->backend, o->round_bf16};
    const ct_kv_shape shape = kv_shape(o);
    const ct_forward_limits limits = {
        .rows = o->step_rows, .keys = o->ctx, .logits_rows = e->logits_rows};
    ct_status st = ct_pool_create(&e->pool, o->n_threads, err);

    if (!st)
        st = ct_backend_open(&e->backend, &backend, e->pool, err);
    if (!st && metered)
        e->backend->ops->meter(e->backend);
    if (!st)
        st = ct_kv_create(&e->kv, &e->model->config, &shape, e->backend, err);
    if (!st)
        st = ct_forward_create(&e->forward, &e->model->config, metered ? NULL : &e->model->weights,
                               e->backend, &limits, err);
    return st;
}

static ct_status create_arrays(ct_engine *e, ct_error *err)
{
    const struct {
        void **array;
        size_t n, elem_bytes;
    } wanted[] = {
        {(void **)&e->arrived, e->capacity, sizeof *e->arrived},
        {(void **)&e->open, e->capacity, sizeof *e->open},
        {(void **)&e->waiter, e->capacity, sizeof *e->waiter},
        {(void **)&e->waiting, e->capacity, sizeof *e->waiting},
        {(void **)&e->touched, e->capacity, sizeof *e->touched},
        {(void **)&e->slot, e->how.slots, sizeof *e->slot},
        {(void **)&e->plan, e->how.slots, sizeof *e->plan},
        {(void **)&e->boundary, e->how.slots, sizeof *e->boundary},
        {(void **)&e->ids, e->how.step_rows, sizeof *e->ids},
        {(void **)&e->pos, e->how.step_rows, sizeof *e->pos},
        {(void **)&e->seq, e->how.step_rows, sizeof *e->seq},
        {(void **)&e->wanted, e->how.step_rows, sizeof *e->wanted},
        {(void **)&e->index, e->logits_rows, sizeof *e->index},
        {(void **)&e->logits, (size_t)e->logits_rows * e->model->config.vocab, sizeof *e->logits},
        {(void **)&e->picked, e->logits_rows, sizeof *e->picked},
        {(void **)&e->sampler, e->n_samplers, sizeof(ct_sampler *)},
        {(void **)&e->sample_err, e->n_samplers, sizeof *e->sample_err},
    };

    for (size_t i = 0; i < CT_LEN(wanted); i++) {
        *wanted[i].array = calloc(wanted[i].n, wanted[i].elem_bytes);
        if (!*wanted[i].array)
            return ct_fail(err, CT_ELIMIT, "out of memory for an engine of %" PRIu32 " slots",
                           e->how.slots);
    }
    return CT_OK;
}

static void free_arrays(ct_engine *e)
{
    free(e->arrived);
    free(e->open);
    free(e->waiter);
    free(e->waiting);
    free(e->touched);
    free(e->slot);
    free(e->plan);
    free(e->boundary);
    free(e->ids);
    free(e->pos);
    free(e->seq);
    free(e->wanted);
    free(e->index);
    free(e->logits);
    free(e->picked);
    free(e->sampler);
    free(e->sample_err);
}

static ct_status create_samplers(ct_engine *e, ct_error *err)
{
    ct_status st = CT_OK;

    for (uint32_t i = 0; i < e->n_samplers && !st; i++)
        st = ct_sampler_create(&e->sampler[i], e->model->config.vocab, err);
    return st;
}

/* Room for the text of any token, so that the step need not ask for it. */
static ct_status reserve_text(ct_engine *e, ct_error *err)
{
    const ct_tokenizer *t = e->how.tokenizer;
    /* A character cut off before it comes out as up to three of U+FFFD. */
    size_t longest = 16;

    ct_buf_init(&e->text, (size_t)1 << 30);
    if (!t)
        return CT_OK;
    for (uint32_t id = 0; id < ct_tokenizer_vocab(t); id++)
        longest = ct_max_size(longest, 16 + ct_tokenizer_piece(t, id).n);
    while (e->text.n < longest && !e->text.failed)
        ct_buf_addc(&e->text, ' ');
    if (e->text.failed)
        return ct_fail(err, CT_ELIMIT, "out of memory for the text of a token");
    return CT_OK;
}

static uint32_t n_samplers(const ct_engine *e)
{
    return min_u32(ct_pool_threads(e->pool), MAX_SAMPLERS);
}

static ct_status create_parts(ct_engine *e, ct_error *err)
{
    ct_status st = create_model_side(e, false, err);

    if (st)
        return st;
    e->n_samplers = n_samplers(e);
    st = create_arrays(e, err);
    if (!st)
        st = create_samplers(e, err);
    if (!st)
        st = reserve_text(e, err);
    if (!st)
        st = ct_mailbox_create(&e->mailbox, e->capacity, e->how.queue, err);
    return st;
}

/* An engine with its limits settled and nothing taken yet. */
static ct_status create_blank(ct_engine **out, const ct_model *model, const ct_engine_options *how,
                              ct_error *err)
{
    const ct_config *c = &model->config;
    const size_t logits_fit = ct_max_size(1, LOGITS_BYTES / sizeof(float) / c->vocab);
    const ct_engine_options o = complete(how, c);
    ct_status st = check_options(&o, c, err);
    ct_engine *e;

    if (st)
        return st;
    e = calloc(1, sizeof *e);
    if (!e)
        return ct_fail(err, CT_ELIMIT, "out of memory for an engine");
    e->model = model;
    e->how = o;
    /* As many may be over and not fetched as may be open. */
    e->capacity = 2 * (o.queue + o.slots);
    e->logits_rows = (uint32_t)ct_min_size(logits_fit, o.step_rows);
    e->limits = (ct_job_limits){.ctx = o.ctx, .vocab = c->vocab, .tokenizer = o.tokenizer};
    e->sched = (ct_sched_limits){
        .step_rows = o.step_rows, .free_rows = o.free_rows, .cost = ct_sched_cost_of(c)};
    e->own_stats = (ct_engine_stats){.slots = o.slots, .queue = o.queue};
    pthread_mutex_init(&e->stats_lock, NULL);
    *out = e;
    return CT_OK;
}

ct_status ct_engine_create(ct_engine **out, const ct_model *model, const ct_engine_options *how,
                           ct_error *err)
{
    ct_engine *e;
    ct_status st = create_blank(&e, model, how, err);

    if (st)
        return st;
    st = create_parts(e, err);
    if (st) {
        ct_engine_destroy(e);
        return st;
    }
    e->own_stats.kv = ct_kv_used(e->kv);
    e->stats = e->own_stats;
    *out = e;
    return CT_OK;
}

static ct_status measure(ct_engine_bytes *out, const ct_model *model, const ct_engine_options *how,
                         ct_error *err)
{
    const uint32_t vocab = model->config.vocab;
    ct_kv_shape shape;
    ct_kv_bytes kv;
    ct_engine *e;
    ct_status st = create_blank(&e, model, how, err);

    if (st)
        return st;
    shape = kv_shape(&e->how);
    st = ct_kv_measure(&kv, &model->config, &shape, err);
    if (!st)
        st = create_model_side(e, true, err);
    if (!st)
        *out = (ct_engine_bytes){
            .ctx = e->how.ctx,
            .slots = e->how.slots,
            .step_rows = e->how.step_rows,
            .backend = e->backend->ops->bytes(e->backend),
            .kv = kv,
            .sampling = (uint64_t)e->logits_rows * vocab * sizeof(float) +
                        n_samplers(e) * ct_sampler_bytes(vocab),
        };
    ct_engine_destroy(e);
    return st;
}

ct_status ct_engine_measure(ct_engine_bytes *out, const ct_config *config,
                            const ct_engine_options *how, ct_error *err)
{
    ct_model *model = calloc(1, sizeof *model); /* a config and no weights */
    ct_status st;

    if (!model)
        return ct_fail(err, CT_ELIMIT, "out of memory for a plan");
    model->config = *config;
    st = measure(out, model, how, err);
    free(model);
    return st;
}

void ct_engine_destroy(ct_engine *e)
{
    if (!e)
        return;
    ct_engine_stop(e);
    ct_mailbox_destroy(e->mailbox);
    ct_buf_deinit(&e->text);
    for (uint32_t i = 0; e->sampler && i < e->n_samplers; i++)
        ct_sampler_destroy(e->sampler[i]);
    free_arrays(e);
    ct_forward_destroy(e->forward);
    ct_kv_destroy(e->kv);
    if (e->backend)
        e->backend->ops->destroy(e->backend);
    ct_pool_destroy(e->pool);
    pthread_mutex_destroy(&e->stats_lock);
    free(e);
}

/* --- any thread ------------------------------------------------------------------------- */

static ct_submitted refusal(ct_status st)
{
    return st == CT_ELIMIT ? CT_SUBMIT_NEVER : CT_SUBMIT_WRONG;
}

static ct_submitted not_reserved(ct_reserved got)
{
    return got == CT_RESERVE_DOWN ? CT_SUBMIT_DOWN : CT_SUBMIT_FULL;
}

ct_submitted ct_engine_submit(ct_engine *e, const ct_request *r, ct_request_id *id, ct_error *err)
{
    ct_status st = ct_job_check(r, &e->limits, err);
    ct_request_id got_id = 0;
    ct_reserved got;
    ct_job *job;

    if (st)
        return refusal(st);
    got = ct_mailbox_reserve(e->mailbox, &got_id, err);
    if (got != CT_RESERVED)
        return not_reserved(got);
    st = ct_job_create(&job, r, &e->limits, err);
    if (st) {
        ct_mailbox_unreserve(e->mailbox, got_id);
        return st == CT_ELIMIT ? CT_SUBMIT_MEMORY : CT_SUBMIT_WRONG;
    }
    job->submitted_s = ct_engine_now(e);
    job->deadline_s = r->timeout_s > 0 ? job->submitted_s + r->timeout_s : 0;
    *id = got_id;
    ct_mailbox_post(e->mailbox, got_id, job);
    return CT_SUBMIT_TAKEN;
}

void ct_engine_cancel(ct_engine *e, ct_request_id id)
{
    ct_mailbox_cancel(e->mailbox, id);
}

void ct_engine_cancel_all(ct_engine *e)
{
    ct_mailbox_cancel_all(e->mailbox);
}

ct_status ct_engine_health(ct_engine *e, ct_error *err)
{
    return ct_mailbox_failure(e->mailbox, err);
}

ct_engine_stats ct_engine_stats_get(ct_engine *e)
{
    const ct_mailbox_counts count = ct_mailbox_count(e->mailbox);
    ct_engine_stats s;

    pthread_mutex_lock(&e->stats_lock);
    s = e->stats;
    pthread_mutex_unlock(&e->stats_lock);
    s.waiting = count.waiting;
    /* One about to be posted waits already, and is not open yet. */
    s.running = count.open > count.waiting ? count.open - count.waiting : 0;
    s.unpolled = count.unpolled;
    s.submitted = count.submitted;
    s.refused_full = count.refused;
    return s;
}

size_t ct_engine_poll(ct_engine *e, ct_reply *out, size_t n)
{
    return ct_mailbox_poll(e->mailbox, out, n);
}

bool ct_engine_wait(ct_engine *e, double timeout_s)
{
    return ct_mailbox_wait(e->mailbox, timeout_s);
}

uint32_t ct_engine_ctx(const ct_engine *e)
{
    return e->how.ctx;
}

const ct_model *ct_engine_model(const ct_engine *e)
{
    return e->model;
}

const char *ct_engine_backend_name(const ct_engine *e)
{
    return e->backend->ops->name;
}

/* --- the engine's thread ---------------------------------------------------------------- */

static void *thread_main(void *arg)
{
    ct_engine *e = arg;

    while (ct_mailbox_work(e->mailbox))
        ct_engine_step(e);
    return NULL;
}

ct_status ct_engine_start(ct_engine *e, ct_error *err)
{
    int rc;

    assert(!e->is_running);
    ct_mailbox_quit(e->mailbox, false);
    rc = pthread_create(&e->thread, NULL, thread_main, e);
    if (rc)
        return ct_fail(err, CT_ELIMIT, "the engine's thread: %s", strerror(rc));
    e->is_running = true;
    return CT_OK;
}

void ct_engine_stop(ct_engine *e)
{
    if (!e->is_running)
        return;
    ct_mailbox_quit(e->mailbox, true);
    pthread_join(e->thread, NULL);
    e->is_running = false;
}

/* --- for tests -------------------------------------------------------------------------- */

/* Every held sequence belongs to a choice of an open job that says so. */
static bool slots_agree(const ct_engine *e)
{
    uint32_t n = 0;

    for (uint32_t s = 0; s < e->how.slots; s++) {
        const ct_slot *slot = &e->slot[s];

        if (!slot->job) {
            if (e->plan[s].mode != CT_SCHED_IDLE || ct_kv_length(e->kv, s) != 0)
                return false;
            continue;
        }
        n++;
        if (slot->job->choice[slot->choice].seq != s || slot->job->choice[slot->choice].ended ||
            ct_kv_length(e->kv, s) != e->plan[s].pos)
            return false;
    }
    return n == e->n_running;
}

bool ct_engine_consistent(const ct_engine *e)
{
    for (uint32_t i = 0; i < e->n_waiting; i++)
        if (e->waiting[i]->next_choice == e->waiting[i]->n_choices)
            return false;
    return e->n_touched == 0 && e->n_waiting <= e->n_open && slots_agree(e) &&
           ct_kv_consistent(e->kv);
}
