/* Between the threads: requests and cancellations go in, replies come out.
 *
 * A table of slots names the jobs by index and generation.  A job belongs to the submitting
 * thread until it is posted, to the engine's until the end of its log is published, and to
 * the polling one from then on.  One lock, held for a few copies at a time; nothing
 * allocates after creation. */
#ifndef CT_ENGINE_MAILBOX_H
#define CT_ENGINE_MAILBOX_H

#include "engine/job.h"

typedef struct ct_mailbox ct_mailbox;

/* capacity: requests open or not yet polled to their end; max_waiting: of them, not yet
 * admitted. */
ct_status ct_mailbox_create(ct_mailbox **out, uint32_t capacity, uint32_t max_waiting,
                            ct_error *err);
/* Destroys the jobs in it. */
void ct_mailbox_destroy(ct_mailbox *m);

/* --- clients -------------------------------------------------------------------------- */

typedef enum ct_reserved { CT_RESERVED, CT_RESERVE_FULL, CT_RESERVE_DOWN } ct_reserved;

/* A place for a job to come, before it is made.  err says why there is none. */
ct_reserved ct_mailbox_reserve(ct_mailbox *m, ct_request_id *id, ct_error *err);
void ct_mailbox_unreserve(ct_mailbox *m, ct_request_id id);
/* Hands the job over. */
void ct_mailbox_post(ct_mailbox *m, ct_request_id id, ct_job *job);

void ct_mailbox_cancel(ct_mailbox *m, ct_request_id id);
void ct_mailbox_cancel_all(ct_mailbox *m);

size_t ct_mailbox_poll(ct_mailbox *m, ct_reply *out, size_t n);
bool ct_mailbox_wait(ct_mailbox *m, double timeout_s);

/* --- engine ----------------------------------------------------------------------------- */

/* Takes what was posted, in order; room for the capacity in `out`.  *any_cancel: some job's
 * `cancel` was set since the last call. */
uint32_t ct_mailbox_collect(ct_mailbox *m, ct_job **out, bool *any_cancel);
/* Whether cancellation of a job that the engine holds was asked for. */
bool ct_mailbox_is_cancelled(ct_mailbox *m, const ct_job *job);
/* Lets the clients see what the jobs have logged; those whose end is among it are given
 * away.  n_left_queue: jobs that wait no longer. */
void ct_mailbox_publish(ct_mailbox *m, ct_job *const *jobs, uint32_t n, uint32_t n_left_queue);
/* Nothing more is taken, for this reason. */
void ct_mailbox_fail(ct_mailbox *m, const ct_error *why);
ct_status ct_mailbox_failure(ct_mailbox *m, ct_error *why);

/* Sleeps while nothing is open.  false: asked to quit. */
bool ct_mailbox_work(ct_mailbox *m);
void ct_mailbox_quit(ct_mailbox *m, bool quit);

typedef struct ct_mailbox_counts {
    uint32_t open;     /* posted, and their end not published */
    uint32_t waiting;  /* of them (or about to be posted) not admitted */
    uint32_t unpolled; /* end published, not polled */
    uint64_t submitted, refused;
} ct_mailbox_counts;

ct_mailbox_counts ct_mailbox_count(ct_mailbox *m);

#endif
