/* Inside of the engine: what its files share. */
#ifndef CT_ENGINE_ENGINE_IMPL_H
#define CT_ENGINE_ENGINE_IMPL_H

#include "base/pool.h"
#include "base/str.h"
#include "engine/engine.h"
#include "engine/job.h"
#include "engine/mailbox.h"
#include "engine/scheduler.h"
#include "model/forward.h"

#include <pthread.h>

/* A row of the step whose logits are wanted. */
typedef struct ct_wanted {
    uint32_t row; /* of the step */
    uint32_t seq;
    uint32_t pos;
    bool samples;    /* the next token comes from it; otherwise only the prompt's logprobs */
    uint32_t target; /* !samples: the id whose logprob it gives */
} ct_wanted;

/* What came of such a row, by itself. */
typedef struct ct_picked {
    ct_status status;
    ct_sample sample; /* its logprobs alone when !samples */
    char error[CT_REPLY_ERROR_BYTES];
} ct_picked;

/* A sequence and the choice that holds it. */
typedef struct ct_slot {
    ct_job *job; /* NULL: vacant */
    uint32_t choice;
} ct_slot;

struct ct_engine {
    const ct_model *model; /* borrowed */
    ct_engine_options how; /* with its defaults filled in */
    uint32_t capacity;     /* jobs */
    uint32_t logits_rows;  /* of one call of the backend */
    uint32_t n_samplers;

    ct_pool *pool;
    ct_backend *backend;
    ct_kv *kv;
    ct_forward *forward;
    ct_mailbox *mailbox;
    ct_job_limits limits;
    ct_sched_limits sched;

    /* Jobs that the engine holds, in no order, and those of them that wait. */
    ct_job **arrived; /* [capacity]: in this step */
    ct_job **open;    /* [capacity] */
    uint32_t n_open;
    ct_sched_waiter *waiter; /* [capacity] */
    ct_job **waiting;        /* [capacity]: of the same index */
    uint32_t n_waiting;
    ct_job **touched; /* [capacity]: have news for the clients */
    uint32_t n_touched;
    uint32_t n_left_queue; /* since the last publish */

    /* Sequences; the three arrays have the same index. */
    ct_slot *slot;      /* [slots] */
    ct_sched_seq *plan; /* [slots] */
    uint32_t *boundary; /* [slots]: position at which the present chunk may become reusable */
    uint32_t n_running; /* slots held */

    /* The step. */
    uint32_t *ids, *pos, *seq; /* [step_rows] */
    ct_rows rows;
    ct_wanted *wanted; /* [step_rows] */
    uint32_t n_wanted;
    uint32_t *index;      /* [logits_rows] */
    float *logits;        /* [logits_rows, vocab] */
    ct_picked *picked;    /* [logits_rows] */
    ct_sampler **sampler; /* [n_samplers] */
    ct_error *sample_err; /* [n_samplers] */
    ct_error err;
    ct_buf text; /* of one token; has room for the longest */

    pthread_t thread;
    bool is_running; /* the thread; of whoever starts and stops it */

    pthread_mutex_t stats_lock;
    ct_engine_stats stats;     /* guarded by it; the counts of the mailbox are left out */
    ct_engine_stats own_stats; /* the engine thread's */
};

static inline double ct_engine_now(const ct_engine *e)
{
    return e->how.now(e->how.now_ctx);
}

/* --- life of jobs (lives.c) ------------------------------------------------------------- */

/* Takes in a job, as waiting. */
void ct_lives_enter(ct_engine *e, ct_job *job);
/* Gives sequences to as many waiting choices as fit. */
void ct_lives_admit(ct_engine *e);
/* Ends every choice of a job that has not ended, and so the job. */
void ct_lives_end_job(ct_engine *e, ct_job *job, ct_finish finish, ct_status status,
                      const char *why);
/* Ends the choice that holds a sequence. */
void ct_lives_end_choice(ct_engine *e, uint32_t seq, ct_finish finish);
/* The prompt of a sequence has been computed. */
void ct_lives_prompt_done(ct_engine *e, uint32_t seq);
/* What a wanted row came to. */
void ct_lives_take(ct_engine *e, const ct_wanted *w, const ct_picked *p);

#endif
