/* One step: take in, let go, admit, plan, compute, sample, publish. */
#include "base/checked.h"
#include "engine/engine_impl.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>

/* --- in and out ------------------------------------------------------------------------- */

/* Marks those that were told to end.  Each job is asked about only when some was. */
static void collect(ct_engine *e)
{
    bool any_cancel;
    uint32_t n = ct_mailbox_collect(e->mailbox, e->arrived, &any_cancel);

    for (uint32_t i = 0; i < n; i++)
        ct_lives_enter(e, e->arrived[i]);
    for (uint32_t i = 0; any_cancel && i < e->n_open; i++)
        e->open[i]->stopped = ct_mailbox_is_cancelled(e->mailbox, e->open[i]);
}

static void end_cancelled_and_late(ct_engine *e)
{
    const double now = ct_engine_now(e);

    /* Backwards: whoever ends is replaced by the last, which has been looked at. */
    for (uint32_t i = e->n_open; i-- > 0;) {
        ct_job *job = e->open[i];

        if (job->stopped)
            ct_lives_end_job(e, job, CT_FINISH_CANCELLED, CT_OK, NULL);
        else if (job->deadline_s > 0 && now >= job->deadline_s)
            ct_lives_end_job(e, job, CT_FINISH_DEADLINE, CT_OK, NULL);
    }
}

static void end_all(ct_engine *e, const ct_error *why)
{
    while (e->n_open > 0)
        ct_lives_end_job(e, e->open[e->n_open - 1], CT_FINISH_ERROR, why->status, why->text);
}

static void device_failed(ct_engine *e)
{
    ct_mailbox_fail(e->mailbox, &e->err);
    end_all(e, &e->err);
}

static void publish(ct_engine *e)
{
    const bool any = e->n_touched > 0;

    e->own_stats.kv = ct_kv_used(e->kv);
    e->own_stats.sequences = e->n_running;
    pthread_mutex_lock(&e->stats_lock);
    e->stats = e->own_stats;
    pthread_mutex_unlock(&e->stats_lock);
    ct_mailbox_publish(e->mailbox, e->touched, e->n_touched, e->n_left_queue);
    e->n_touched = e->n_left_queue = 0;
    if (any && e->how.wake)
        e->how.wake(e->how.wake_ctx);
}

/* --- rows ------------------------------------------------------------------------------- */

/* How far the next chunk of every prompt may go. */
static void find_cuts(ct_engine *e)
{
    for (uint32_t s = 0; s < e->how.slots; s++) {
        ct_sched_seq *p = &e->plan[s];

        if (p->mode != CT_SCHED_PREFILL)
            continue;
        e->boundary[s] = ct_kv_next_boundary(e->kv, s, p->pos);
        p->cut = e->boundary[s] - p->pos;
        if (p->cut == 0 || p->cut > p->left)
            p->cut = p->left;
        if (p->cut > e->how.chunk)
            p->cut = e->how.chunk;
    }
}

static void want(ct_engine *e, uint32_t row, uint32_t s, uint32_t pos, bool samples)
{
    const ct_job *job = e->slot[s].job;

    e->wanted[e->n_wanted++] = (ct_wanted){
        .row = row,
        .seq = s,
        .pos = pos,
        .samples = samples,
        .target = samples ? 0 : job->ask.prompt[pos + 1],
    };
}

/* Whether the row at pos ends its prompt or is past it, and the request wants more. */
static bool row_samples(const ct_job *job, uint32_t pos)
{
    return pos + 1 >= job->ask.n_prompt && job->max_new > 0;
}

static const uint32_t *next_ids(const ct_engine *e, uint32_t s)
{
    const ct_job *job = e->slot[s].job;

    return e->plan[s].mode == CT_SCHED_PREFILL ? job->ask.prompt + e->plan[s].pos
                                               : &job->choice[e->slot[s].choice].last_id;
}

static bool has_rows(const ct_engine *e, uint32_t s)
{
    return e->plan[s].mode != CT_SCHED_IDLE && e->plan[s].n > 0;
}

/* Before any row is written down, since who fails here takes its other choices with it. */
static void extend_sequences(ct_engine *e)
{
    for (uint32_t s = 0; s < e->how.slots; s++)
        if (has_rows(e, s) && ct_kv_extend(e->kv, s, next_ids(e, s), e->plan[s].n, &e->err))
            ct_lives_end_job(e, e->slot[s].job, CT_FINISH_ERROR, e->err.status, e->err.text);
}

static void add_rows(ct_engine *e, uint32_t s, const uint32_t *ids)
{
    const ct_sched_seq *p = &e->plan[s];
    const ct_job *job = e->slot[s].job;

    for (uint32_t i = 0; i < p->n; i++) {
        const uint32_t row = e->rows.n++, pos = p->pos + i;

        e->ids[row] = ids[i];
        e->pos[row] = pos;
        e->seq[row] = s;
        if (row_samples(job, pos))
            want(e, row, s, pos, true);
        else if (p->all_logits && pos + 1 < job->ask.n_prompt)
            want(e, row, s, pos, false);
    }
}

static void build_rows(ct_engine *e)
{
    e->rows = (ct_rows){.ids = e->ids, .pos = e->pos, .seq = e->seq};
    e->n_wanted = 0;
    extend_sequences(e);
    for (uint32_t s = 0; s < e->how.slots; s++)
        if (has_rows(e, s))
            add_rows(e, s, next_ids(e, s));
}

/* The rows are computed: prompts get on, and leave what can be reused. */
static void advance_prompts(ct_engine *e)
{
    for (uint32_t s = 0; s < e->how.slots; s++) {
        ct_sched_seq *p = &e->plan[s];

        if (p->mode != CT_SCHED_PREFILL || p->n == 0)
            continue;
        p->pos += p->n;
        p->left -= p->n;
        if (p->pos == e->boundary[s])
            ct_kv_keep(e->kv, s);
        if (p->left == 0)
            ct_lives_prompt_done(e, s);
    }
}

/* Nothing was to be sampled from these prompts. */
static void end_without_answer(ct_engine *e)
{
    for (uint32_t s = 0; s < e->how.slots; s++) {
        ct_job *job = e->slot[s].job;

        if (job && job->max_new == 0 && e->plan[s].left == 0)
            ct_lives_end_choice(e, s, CT_FINISH_LENGTH);
    }
}

/* --- logits ----------------------------------------------------------------------------- */

/* One batch of wanted rows. */
typedef struct batch {
    ct_engine *e;
    const ct_wanted *wanted;
    uint32_t n;
} batch;

/* The softcap bounds every logit, so anything else is a weight that is not a number. */
static ct_status check_finite(const ct_engine *e, const float *logits, ct_error *err)
{
    const uint32_t vocab = e->model->config.vocab;

    for (uint32_t i = 0; i < vocab; i++)
        if (!isfinite(logits[i]))
            return ct_fail(err, CT_EFORMAT,
                           "%s: logits are not finite (%g for id %" PRIu32
                           "): the weights are damaged",
                           ct_checkpoint_path(e->model->ckpt), (double)logits[i], i);
    return CT_OK;
}

static ct_status pick(const ct_engine *e, ct_sampler *sampler, const ct_wanted *w,
                      const float *logits, ct_sample *out, ct_error *err)
{
    const ct_job *job = e->slot[w->seq].job;
    const uint32_t c = e->slot[w->seq].choice;
    const ct_constraint *g = &job->constraint;

    if (w->samples)
        return ct_sampler_pick(sampler, logits, job->choice[c].sampling,
                               g->allowed ? g->allowed(g->ctx, c) : NULL, out, err);
    ct_sampler_logprobs(sampler, logits, w->target, job->ask.prompt_top_logprobs, &out->logprobs);
    return CT_OK;
}

/* Every n_samplers-th row: the rows are independent of each other and of the sampler. */
static void pick_some(void *ctx, size_t item, unsigned thread)
{
    const batch *b = ctx;
    ct_engine *e = b->e;
    ct_error *err = &e->sample_err[item];

    (void)thread;
    for (uint32_t i = (uint32_t)item; i < b->n; i += e->n_samplers) {
        const float *logits = e->logits + (size_t)i * e->model->config.vocab;
        ct_picked *p = &e->picked[i];

        if (!e->slot[b->wanted[i].seq].job)
            continue;
        p->status = check_finite(e, logits, err);
        if (!p->status)
            p->status = pick(e, e->sampler[item], &b->wanted[i], logits, &p->sample, err);
        if (p->status)
            snprintf(p->error, sizeof p->error, "%.*s", CT_REPLY_ERROR_BYTES - 1, err->text);
    }
}

static ct_status show_logits(ct_engine *e, const batch *b)
{
    ct_status st = CT_OK;

    for (uint32_t i = 0; e->how.on_logits && i < b->n && !st; i++) {
        const ct_wanted *w = &b->wanted[i];
        const ct_slot *s = &e->slot[w->seq];

        if (s->job)
            st = e->how.on_logits(e->how.on_logits_ctx, s->job->ask.tag, s->choice, w->pos,
                                  e->logits + (size_t)i * e->model->config.vocab, &e->err);
    }
    return st;
}

static ct_status compute_logits(ct_engine *e)
{
    for (uint32_t at = 0; at < e->n_wanted;) {
        batch b = {e, e->wanted + at, (uint32_t)ct_min_size(e->n_wanted - at, e->logits_rows)};
        ct_status st;

        for (uint32_t i = 0; i < b.n; i++)
            e->index[i] = b.wanted[i].row;
        st = ct_forward_logits(e->forward, e->index, b.n, e->logits, &e->err);
        if (!st)
            st = show_logits(e, &b);
        if (st)
            return st;
        ct_pool_run(e->pool, ct_min_size(e->n_samplers, b.n), pick_some, &b);
        for (uint32_t i = 0; i < b.n; i++)
            ct_lives_take(e, &b.wanted[i], &e->picked[i]);
        at += b.n;
    }
    return CT_OK;
}

static ct_status compute(ct_engine *e)
{
    ct_status st = ct_forward_step(e->forward, &e->rows, ct_kv_layers(e->kv), NULL, &e->err);

    if (st)
        return st;
    advance_prompts(e);
    st = compute_logits(e);
    if (st)
        return st;
    end_without_answer(e);
    e->own_stats.steps++;
    e->own_stats.rows += e->rows.n;
    e->own_stats.logits_rows += e->n_wanted;
    return CT_OK;
}

/* --- step ------------------------------------------------------------------------------- */

bool ct_engine_step(ct_engine *e)
{
    collect(e);
    if (e->n_open == 0)
        return false;
    end_cancelled_and_late(e);
    if (ct_mailbox_failure(e->mailbox, &e->err))
        end_all(e, &e->err);
    ct_lives_admit(e);
    find_cuts(e);
    ct_sched_plan(&e->sched, e->plan, e->how.slots);
    build_rows(e);
    if (e->rows.n > 0 && compute(e))
        device_failed(e);
    publish(e);
    return true;
}
