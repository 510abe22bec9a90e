#include "engine/job.h"

#include "base/checked.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- checks ------------------------------------------------------------------------- */

static bool has_echo(const ct_request *r)
{
    return r->echo || r->prompt_logprobs;
}

static uint32_t choices_of(const ct_request *r)
{
    return r->n_choices ? r->n_choices : 1;
}

static ct_status check_prompt(const ct_request *r, const ct_job_limits *limits, ct_error *err)
{
    if (r->n_prompt == 0)
        return ct_fail(err, CT_EINVAL, "the prompt is empty");
    for (uint32_t i = 0; i < r->n_prompt; i++)
        if (r->prompt[i] >= limits->vocab)
            return ct_fail(err, CT_EINVAL,
                           "token id %" PRIu32 " at position %" PRIu32
                           ", the vocabulary has %" PRIu32,
                           r->prompt[i], i, limits->vocab);
    return CT_OK;
}

static ct_status check_counts(const ct_request *r, ct_error *err)
{
    if (r->n_choices > CT_MAX_CHOICES)
        return ct_fail(err, CT_EINVAL, "n: %" PRIu32 " choices, at most %d are served",
                       r->n_choices, CT_MAX_CHOICES);
    if (r->prompt_top_logprobs > CT_MAX_TOP_LOGPROBS)
        return ct_fail(err, CT_EINVAL, "prompt_top_logprobs: %" PRIu32 " is not from 0 to %d",
                       r->prompt_top_logprobs, CT_MAX_TOP_LOGPROBS);
    if (r->prompt_top_logprobs && !r->prompt_logprobs)
        return ct_fail(err, CT_EINVAL, "prompt_top_logprobs: %" PRIu32 " without prompt_logprobs",
                       r->prompt_top_logprobs);
    if (!(r->timeout_s >= 0) || isinf(r->timeout_s))
        return ct_fail(err, CT_EINVAL, "timeout: %g s is not a time", r->timeout_s);
    return CT_OK;
}

static ct_status check_fits(const ct_request *r, const ct_job_limits *limits, ct_error *err)
{
    /* One of the answer must fit as well, if any is asked for. */
    uint64_t need = (uint64_t)r->n_prompt + (r->max_new > 0);

    if (need > limits->ctx)
        return ct_fail(err, CT_ELIMIT,
                       "the prompt has %" PRIu32 " tokens, %" PRIu64
                       " with the first of the answer; the context holds %" PRIu32,
                       r->n_prompt, need, limits->ctx);
    return CT_OK;
}

static ct_status check_stop(const ct_request *r, const ct_job_limits *limits, ct_error *err)
{
    if (r->n_stop && !limits->tokenizer)
        return ct_fail(err, CT_EINVAL, "stop: %zu strings, but the engine has no tokenizer",
                       r->n_stop);
    if (r->n_stop > CT_MAX_STOP_STRINGS)
        return ct_fail(err, CT_EINVAL, "stop: %zu strings, at most %d are served", r->n_stop,
                       CT_MAX_STOP_STRINGS);
    for (size_t i = 0; i < r->n_stop; i++)
        if (r->stop[i].n > CT_MAX_STOP_BYTES)
            return ct_fail(err, CT_EINVAL, "stop[%zu]: %zu bytes, at most %d are served", i,
                           r->stop[i].n, CT_MAX_STOP_BYTES);
    return CT_OK;
}

/* --- creation ------------------------------------------------------------------------- */

static uint32_t clipped(const ct_request *r, const ct_job_limits *limits)
{
    return (uint32_t)ct_min_size(r->max_new, limits->ctx - r->n_prompt);
}

/* Where the parts of the one allocation are. */
typedef struct layout {
    size_t choices, prompt, log, bytes;
    uint32_t log_room;
    size_t log_stride;
} layout;

static bool add_part(size_t *at, size_t *part, size_t n, size_t elem_bytes)
{
    size_t bytes;

    *part = *at;
    /* The next part begins where any type may. */
    return ct_mul_size(&bytes, n, elem_bytes) && ct_add_size(&bytes, bytes, 15) &&
           ct_add_size(at, *at, bytes / 16 * 16);
}

static bool lay_out(layout *l, const ct_request *r, uint32_t max_new)
{
    const uint32_t n = choices_of(r);
    const size_t n_top = ct_max_size(r->sampling.top_logprobs, r->prompt_top_logprobs);
    size_t at = (sizeof(ct_job) + 15) / 16 * 16;
    /* Each token and the end of each choice; the prompt's; the end of all. */
    size_t room = (size_t)n * ((size_t)max_new + 1) + (has_echo(r) ? r->n_prompt : 0) + 1;

    if (room > UINT32_MAX)
        return false;
    l->log_room = (uint32_t)room;
    l->log_stride = (sizeof(ct_log_entry) + n_top * sizeof(ct_logprob) + 7) / 8 * 8;
    if (!add_part(&at, &l->choices, n, sizeof(ct_choice)) ||
        !add_part(&at, &l->prompt, r->n_prompt, sizeof *r->prompt) ||
        !add_part(&at, &l->log, room, l->log_stride))
        return false;
    l->bytes = at;
    return at <= CT_REQUEST_MAX_BYTES;
}

static ct_status create_choice(ct_job *job, uint32_t c, const ct_request *r,
                               const ct_job_limits *limits, ct_error *err)
{
    ct_choice *choice = &job->choice[c];
    ct_sampling how = r->sampling;
    ct_status st;

    choice->seq = CT_SEQ_NONE;
    how.seed = ct_sampling_choice_seed(how.seed, c);
    st = ct_sample_state_create(&choice->sampling, &how, limits->vocab, r->n_prompt + job->max_new,
                                err);
    if (st)
        return st;
    ct_sample_state_prompt(choice->sampling, r->prompt, r->n_prompt);
    if (r->n_stop == 0)
        return CT_OK;
    ct_detok_init(&choice->detok, limits->tokenizer, !r->stop_specials);
    return ct_stop_create(&choice->stop, r->stop, r->n_stop, r->stop_include, err);
}

/* The copy of what was asked, without what was borrowed. */
static void keep_ask(ct_job *job, const ct_request *r, const layout *l)
{
    unsigned char *base = (unsigned char *)job;
    uint32_t *prompt = (uint32_t *)(base + l->prompt);

    memcpy(prompt, r->prompt, r->n_prompt * sizeof *prompt);
    job->ask = *r;
    job->ask.prompt = prompt;
    job->ask.stop = NULL;
    job->ask.constraint = NULL;
    job->ask.sampling =
        (ct_sampling){.logprobs = r->sampling.logprobs, .min_tokens = r->sampling.min_tokens};
    job->ask.echo = has_echo(r);
    if (r->constraint)
        job->constraint = *r->constraint;
}

ct_status ct_job_check(const ct_request *r, const ct_job_limits *limits, ct_error *err)
{
    ct_status st = check_counts(r, err);
    layout l;

    if (!st)
        st = check_fits(r, limits, err);
    if (!st)
        st = check_prompt(r, limits, err);
    if (!st)
        st = check_stop(r, limits, err);
    if (!st)
        st = ct_sampling_check(&r->sampling, limits->vocab, err);
    if (!st && !lay_out(&l, r, clipped(r, limits)))
        st = ct_fail(err, CT_ELIMIT,
                     "%" PRIu32 " choices of %" PRIu32 " tokens with %" PRIu32
                     " logprobs each, after a prompt of %" PRIu32 ", take more than %zu bytes",
                     choices_of(r), clipped(r, limits), r->sampling.top_logprobs, r->n_prompt,
                     CT_REQUEST_MAX_BYTES);
    return st;
}

ct_status ct_job_create(ct_job **out, const ct_request *r, const ct_job_limits *limits,
                        ct_error *err)
{
    ct_status st = CT_OK;
    layout l;
    ct_job *job;

    if (!lay_out(&l, r, clipped(r, limits)))
        return ct_fail(err, CT_ELIMIT, "a request takes more than %zu bytes", CT_REQUEST_MAX_BYTES);
    job = calloc(1, l.bytes);
    if (!job)
        return ct_fail(err, CT_ELIMIT, "out of memory: %zu bytes for a request", l.bytes);
    job->bytes = l.bytes;
    job->n_choices = choices_of(r);
    job->max_new = clipped(r, limits);
    job->choice = (ct_choice *)((unsigned char *)job + l.choices);
    job->log = (unsigned char *)job + l.log;
    job->log_room = l.log_room;
    job->log_stride = l.log_stride;
    job->usage.prompt_tokens = r->n_prompt;
    keep_ask(job, r, &l);
    for (uint32_t c = 0; c < job->n_choices && !st; c++)
        st = create_choice(job, c, r, limits, err);
    if (st) {
        ct_job_destroy(job);
        return st;
    }
    *out = job;
    return CT_OK;
}

void ct_job_destroy(ct_job *job)
{
    if (!job)
        return;
    for (uint32_t c = 0; c < job->n_choices; c++) {
        ct_sample_state_destroy(job->choice[c].sampling);
        ct_stop_destroy(job->choice[c].stop);
    }
    free(job);
}

/* --- log ------------------------------------------------------------------------------ */

ct_log_entry *ct_job_log(ct_job *job, ct_reply_kind kind, uint32_t choice)
{
    ct_log_entry *entry;

    assert(job->n_logged < job->log_room);
    entry = (ct_log_entry *)(job->log + job->log_stride * job->n_logged++);
    entry->kind = kind;
    entry->choice = choice;
    return entry;
}

void ct_job_log_logprobs(ct_log_entry *entry, const ct_logprobs *p)
{
    entry->u.token.has_logprobs = true;
    entry->u.token.logprob = p->logprob;
    entry->u.token.rank = p->rank;
    entry->u.token.n_top = p->n_top;
    memcpy(entry->top, p->top, p->n_top * sizeof *p->top);
}

static void reply_token(const ct_log_entry *entry, ct_reply *out)
{
    out->u.token.position = entry->u.token.position;
    out->u.token.id = entry->u.token.id;
    out->u.token.stop = entry->u.token.stop;
    out->u.token.has_logprobs = entry->u.token.has_logprobs;
    out->u.token.safe_bytes = entry->u.token.safe_bytes;
    out->u.token.logprobs.logprob = entry->u.token.logprob;
    out->u.token.logprobs.rank = entry->u.token.rank;
    out->u.token.logprobs.n_top = entry->u.token.n_top;
    memcpy(out->u.token.logprobs.top, entry->top, entry->u.token.n_top * sizeof *entry->top);
}

void ct_job_reply(const ct_job *job, uint32_t i, ct_reply *out)
{
    const ct_log_entry *entry = (const ct_log_entry *)(job->log + job->log_stride * i);

    *out = (ct_reply){
        .id = job->id, .tag = job->ask.tag, .kind = entry->kind, .choice = entry->choice};
    switch (entry->kind) {
    case CT_REPLY_PROMPT:
    case CT_REPLY_TOKEN:
        reply_token(entry, out);
        break;
    case CT_REPLY_CHOICE:
        out->u.end.finish = entry->u.end.finish;
        out->u.end.n_tokens = entry->u.end.n_tokens;
        out->u.end.by_string = entry->u.end.by_string;
        out->u.end.which = entry->u.end.which;
        out->u.end.text_bytes = entry->u.end.text_bytes;
        break;
    case CT_REPLY_DONE:
        out->u.done.finish = job->finish;
        out->u.done.status = job->status;
        out->u.done.usage = job->usage;
        memcpy(out->u.done.error, job->error, sizeof job->error);
        break;
    }
}
