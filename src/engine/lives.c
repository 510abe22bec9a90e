/* The lives of jobs and their choices: waiting, admitted, token by token, ended. */
#include "engine/engine_impl.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>

static void touch(ct_engine *e, ct_job *job)
{
    if (!job->touched)
        e->touched[e->n_touched++] = job;
    job->touched = true;
}

/* --- waiting ---------------------------------------------------------------------------- */

void ct_lives_enter(ct_engine *e, ct_job *job)
{
    assert(e->n_open < e->capacity);
    e->open[e->n_open++] = job;
    e->waiting[e->n_waiting] = job;
    e->waiter[e->n_waiting++] =
        (ct_sched_waiter){.arrival = job->arrival, .priority = job->ask.priority, .ready = true};
}

static uint32_t waiter_of(const ct_engine *e, const ct_job *job)
{
    for (uint32_t i = 0; i < e->n_waiting; i++)
        if (e->waiting[i] == job)
            return i;
    return CT_SCHED_NONE;
}

static void drop_waiter(ct_engine *e, uint32_t i)
{
    e->n_waiting--;
    e->waiter[i] = e->waiter[e->n_waiting];
    e->waiting[i] = e->waiting[e->n_waiting];
}

/* --- admission -------------------------------------------------------------------------- */

static uint32_t vacant_slot(const ct_engine *e)
{
    uint32_t seq = 0;

    while (e->slot[seq].job)
        seq++;
    assert(seq < e->how.slots);
    return seq;
}

/* The choice that leaves the prompt's pages for the later ones.  Prompt logprobs need every
 * row of the prompt, which the first choice therefore computes by itself. */
static uint32_t sharing_choice(const ct_job *job)
{
    return job->ask.prompt_logprobs ? 1 : 0;
}

static bool may_share(const ct_engine *e, const ct_job *job)
{
    return !e->how.no_cache && !job->ask.no_cache;
}

/* Whether the choices after c wait until its prompt is computed: for its pages, or for the
 * prompt's replies, which come first. */
static bool holds_up(const ct_engine *e, const ct_job *job, uint32_t c)
{
    if (c == 0 && job->ask.prompt_logprobs)
        return true;
    return may_share(e, job) && c <= sharing_choice(job);
}

/* When its prompt is only echoed, nothing has to be computed for that. */
static void log_echo(ct_engine *e, ct_job *job)
{
    const uint32_t n = job->ask.prompt_logprobs ? 1 : job->ask.n_prompt;

    if (!job->ask.echo)
        return;
    for (uint32_t i = 0; i < n; i++) {
        ct_log_entry *entry = ct_job_log(job, CT_REPLY_PROMPT, 0);

        entry->u.token.position = i;
        entry->u.token.id = job->ask.prompt[i];
    }
    touch(e, job);
}

static void job_admitted(ct_engine *e, ct_job *job, uint32_t n_cached)
{
    job->admitted_s = ct_engine_now(e);
    job->usage.queue_s = job->admitted_s - job->submitted_s;
    job->usage.cached_tokens = n_cached;
    e->n_left_queue++;
    e->own_stats.prompt_tokens += job->ask.n_prompt;
    e->own_stats.cached_tokens += n_cached;
    log_echo(e, job);
}

static void occupy(ct_engine *e, uint32_t seq, ct_job *job, uint32_t n_cached)
{
    const uint32_t c = job->next_choice++;

    e->slot[seq] = (ct_slot){job, c};
    e->plan[seq] = (ct_sched_seq){
        .mode = CT_SCHED_PREFILL,
        .pos = n_cached,
        .left = job->ask.n_prompt - n_cached,
        .all_logits = c == 0 && job->ask.prompt_logprobs,
    };
    e->n_running++;
    job->choice[c].seq = seq;
    if (c == 0)
        job_admitted(e, job, n_cached);
}

static ct_kv_admission try_admit(ct_engine *e, ct_job *job)
{
    const uint32_t seq = vacant_slot(e);
    const bool alone = job->next_choice < sharing_choice(job);
    const ct_kv_claim claim = {
        .ids = job->ask.prompt,
        .n_ids = job->ask.n_prompt,
        .n_tokens = job->ask.n_prompt + job->max_new,
        .hint = job->ask.reuse_hint,
        .salt = job->ask.salt,
        .no_cache = alone || !may_share(e, job),
    };
    uint32_t n_cached = 0;
    ct_kv_admission got = ct_kv_admit(e->kv, seq, &claim, &n_cached);

    if (got == CT_KV_ADMITTED)
        occupy(e, seq, job, n_cached);
    return got;
}

/* The choice just admitted may be one that the rest of its job waits for. */
static void advance_waiter(ct_engine *e, uint32_t i)
{
    const ct_job *job = e->waiting[i];

    if (job->next_choice == job->n_choices)
        drop_waiter(e, i);
    else if (holds_up(e, job, job->next_choice - 1))
        e->waiter[i].ready = false;
}

static void never_fits(ct_engine *e, ct_job *job)
{
    const uint32_t n = job->ask.n_prompt + job->max_new;
    const ct_kv_need need = ct_kv_needs(e->kv, n);
    const ct_kv_usage u = ct_kv_used(e->kv);
    char why[CT_REPLY_ERROR_BYTES];

    snprintf(why, sizeof why,
             "%" PRIu32 " tokens need %" PRIu32 " global and %" PRIu32
             " sliding pages; there are %" PRIu32 " and %" PRIu32,
             n, need.n_global, need.n_sliding, u.n_global, u.n_sliding);
    ct_lives_end_job(e, job, CT_FINISH_ERROR, CT_ELIMIT, why);
}

void ct_lives_admit(ct_engine *e)
{
    uint32_t n_tries = 0, i;

    for (i = 0; i < e->n_waiting; i++)
        e->waiter[i].tried = false;
    while (e->n_running < e->how.slots && n_tries < CT_SCHED_TRIES) {
        i = ct_sched_next(e->waiter, e->n_waiting);
        if (i == CT_SCHED_NONE)
            return;
        switch (try_admit(e, e->waiting[i])) {
        case CT_KV_ADMITTED:
            ct_sched_admitted(e->waiter, e->n_waiting, i);
            advance_waiter(e, i);
            break;
        case CT_KV_WAIT:
            n_tries++;
            e->waiter[i].tried = true;
            /* With nobody to wait for, it would wait for ever. */
            if (e->n_running == 0)
                never_fits(e, e->waiting[i]);
            break;
        case CT_KV_NEVER:
            never_fits(e, e->waiting[i]);
            break;
        }
    }
}

/* --- ends --------------------------------------------------------------------------------- */

static void vacate(ct_engine *e, ct_choice *choice, bool keep)
{
    if (choice->seq == CT_SEQ_NONE)
        return;
    if (keep)
        ct_kv_keep(e->kv, choice->seq);
    ct_kv_release(e->kv, choice->seq);
    e->slot[choice->seq] = (ct_slot){0};
    e->plan[choice->seq] = (ct_sched_seq){.mode = CT_SCHED_IDLE};
    e->n_running--;
    choice->seq = CT_SEQ_NONE;
}

static void forget_job(ct_engine *e, ct_job *job)
{
    uint32_t i = waiter_of(e, job);

    if (i != CT_SCHED_NONE)
        drop_waiter(e, i);
    if (job->next_choice == 0)
        e->n_left_queue++;
    for (i = 0; e->open[i] != job; i++)
        assert(i + 1 < e->n_open);
    e->open[i] = e->open[--e->n_open];
}

/* The last choice has ended. */
static void finish_job(ct_engine *e, ct_job *job)
{
    const double now = ct_engine_now(e);
    ct_usage *u = &job->usage;

    if (job->next_choice == 0)
        u->queue_s = now - job->submitted_s;
    else if (u->answer_tokens == 0)
        u->prefill_s = now - job->admitted_s;
    else
        u->decode_s = now - job->first_token_s;
    forget_job(e, job);
    ct_job_log(job, CT_REPLY_DONE, 0);
    e->own_stats.finished[job->finish]++;
}

static void end_choice(ct_engine *e, ct_job *job, uint32_t c, ct_finish finish)
{
    ct_choice *choice = &job->choice[c];
    ct_log_entry *entry = ct_job_log(job, CT_REPLY_CHOICE, c);

    entry->u.end.finish = finish;
    entry->u.end.n_tokens = choice->n_tokens;
    entry->u.end.by_string = choice->progress.found;
    entry->u.end.which = choice->progress.which;
    entry->u.end.text_bytes = choice->progress.safe;
    /* The end of a turn is where the next one goes on. */
    vacate(e, choice, finish == CT_FINISH_STOP || finish == CT_FINISH_LENGTH);
    choice->ended = true;
    if (finish > job->finish)
        job->finish = finish;
    touch(e, job);
    if (++job->n_ended == job->n_choices)
        finish_job(e, job);
}

void ct_lives_end_choice(ct_engine *e, uint32_t seq, ct_finish finish)
{
    end_choice(e, e->slot[seq].job, e->slot[seq].choice, finish);
}

void ct_lives_end_job(ct_engine *e, ct_job *job, ct_finish finish, ct_status status,
                      const char *why)
{
    if (status) {
        job->status = status;
        snprintf(job->error, sizeof job->error, "%.*s", CT_REPLY_ERROR_BYTES - 1, why);
    }
    for (uint32_t c = 0; c < job->n_choices; c++)
        if (!job->choice[c].ended)
            end_choice(e, job, c, finish);
}

/* --- tokens ------------------------------------------------------------------------------- */

void ct_lives_prompt_done(ct_engine *e, uint32_t seq)
{
    ct_job *job = e->slot[seq].job;
    uint32_t c = e->slot[seq].choice;
    uint32_t i = holds_up(e, job, c) ? waiter_of(e, job) : CT_SCHED_NONE;

    if (i != CT_SCHED_NONE)
        e->waiter[i].ready = true;
}

static void take_prompt_logprobs(ct_engine *e, ct_job *job, const ct_wanted *w, const ct_picked *p)
{
    ct_log_entry *entry = ct_job_log(job, CT_REPLY_PROMPT, 0);

    entry->u.token.position = w->pos + 1;
    entry->u.token.id = w->target;
    ct_job_log_logprobs(entry, &p->sample.logprobs);
    touch(e, job);
}

static void feed_stop(ct_choice *choice, const ct_buf *text, uint32_t min_tokens)
{
    if (!choice->progress.found)
        choice->progress =
            ct_stop_feed(choice->stop, ct_buf_str(text), choice->n_tokens > min_tokens);
}

/* The text of a token to the stop strings. */
static ct_status take_text(ct_engine *e, ct_job *job, ct_choice *choice, uint32_t id)
{
    ct_status st;

    ct_buf_clear(&e->text);
    st = ct_detok_add(&choice->detok, id, &e->text, &e->err);
    if (!st)
        feed_stop(choice, &e->text, job->ask.sampling.min_tokens);
    return st;
}

/* All of the text is to be shown now, a character that was cut off included. */
static void finish_text(ct_engine *e, ct_job *job, ct_choice *choice)
{
    ct_buf_clear(&e->text);
    ct_detok_finish(&choice->detok, &e->text);
    feed_stop(choice, &e->text, job->ask.sampling.min_tokens);
}

static void log_token(ct_engine *e, ct_job *job, uint32_t c, const ct_wanted *w,
                      const ct_sample *sample)
{
    ct_log_entry *entry = ct_job_log(job, CT_REPLY_TOKEN, c);

    entry->u.token.position = w->pos + 1;
    entry->u.token.id = sample->id;
    entry->u.token.stop = sample->stop;
    entry->u.token.safe_bytes = job->choice[c].progress.safe;
    if (job->ask.sampling.logprobs)
        ct_job_log_logprobs(entry, &sample->logprobs);
    touch(e, job);
}

static void count_token(ct_engine *e, ct_job *job)
{
    if (job->usage.answer_tokens++ == 0) {
        job->first_token_s = ct_engine_now(e);
        job->usage.prefill_s = job->first_token_s - job->admitted_s;
    }
    e->own_stats.answer_tokens++;
}

static void go_on(ct_engine *e, uint32_t seq, uint32_t pos)
{
    e->plan[seq] = (ct_sched_seq){.mode = CT_SCHED_DECODE, .pos = pos};
}

static void take_token(ct_engine *e, ct_job *job, uint32_t c, const ct_wanted *w,
                       const ct_sample *sample)
{
    ct_choice *choice = &job->choice[c];

    choice->last_id = sample->id;
    choice->n_tokens++;
    ct_sample_state_accept(choice->sampling, sample->id);
    if (job->constraint.accept)
        job->constraint.accept(job->constraint.ctx, c, sample->id);
    if (choice->stop && take_text(e, job, choice, sample->id)) {
        ct_lives_end_job(e, job, CT_FINISH_ERROR, e->err.status, e->err.text);
        return;
    }
    count_token(e, job);
    log_token(e, job, c, w, sample);
    if (!choice->progress.found && choice->stop &&
        (sample->stop || choice->n_tokens == job->max_new))
        finish_text(e, job, choice);
    if (sample->stop || choice->progress.found)
        end_choice(e, job, c, CT_FINISH_STOP);
    else if (choice->n_tokens == job->max_new)
        end_choice(e, job, c, CT_FINISH_LENGTH);
    else
        go_on(e, w->seq, w->pos + 1);
}

void ct_lives_take(ct_engine *e, const ct_wanted *w, const ct_picked *p)
{
    ct_job *job = e->slot[w->seq].job;
    uint32_t c = e->slot[w->seq].choice;

    if (!job) /* ended by an earlier row of the same step */
        return;
    if (p->status)
        ct_lives_end_job(e, job, CT_FINISH_ERROR, p->status, p->error);
    else if (!w->samples)
        take_prompt_logprobs(e, job, w, p);
    else
        take_token(e, job, c, w, &p->sample);
}
