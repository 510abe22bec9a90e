/* A request inside the engine: what was asked, how far each choice is, and the log of its
 * replies, in memory taken at submit that lasts until its end has been polled.
 *
 * Made by the submitting thread, then the engine thread's, but for the fields that belong
 * to the mailbox's lock.  The log only grows: what is below n_published is never written
 * again and may be read by the polling thread. */
#ifndef CT_ENGINE_JOB_H
#define CT_ENGINE_JOB_H

#include "engine/request.h"
#include "engine/stop.h"
#include "text/tokenizer.h"

#define CT_SEQ_NONE UINT32_MAX

/* One reply as the log holds it; entries are as far apart as the job's most top logprobs
 * ask for. */
typedef struct ct_log_entry {
    ct_reply_kind kind;
    uint32_t choice;
    union {
        struct {
            uint32_t position, id;
            bool stop, has_logprobs;
            uint64_t safe_bytes;
            float logprob;
            uint32_t rank, n_top;
        } token;
        struct {
            ct_finish finish;
            uint32_t n_tokens;
            bool by_string;
            uint32_t which;
            uint64_t text_bytes;
        } end;
    } u;
    ct_logprob top[];
} ct_log_entry;

typedef struct ct_choice {
    uint32_t seq;      /* its sequence, or CT_SEQ_NONE before admission and after the end */
    uint32_t n_tokens; /* of the answer */
    uint32_t last_id;
    bool ended;
    ct_sample_state *sampling; /* owned */
    ct_stop *stop;             /* owned; NULL without stop strings */
    ct_stop_progress progress;
    ct_detok detok;
} ct_choice;

typedef struct ct_job {
    /* Settled at submit. */
    ct_request_id id;
    ct_request ask; /* prompt: own copy, after the struct; stop and the lists of sampling: gone */
    ct_constraint constraint;
    uint32_t n_choices, max_new;
    double submitted_s, deadline_s; /* deadline 0: none */
    uint64_t arrival;
    size_t bytes; /* of this allocation */

    /* The engine's thread. */
    ct_choice *choice;     /* [n_choices], in this allocation */
    uint32_t next_choice;  /* to be admitted */
    uint32_t n_ended;      /* choices */
    bool touched, stopped; /* has news for the clients in this step; was told to end */
    double admitted_s, first_token_s;
    ct_finish finish;
    ct_status status;
    ct_usage usage;
    char error[CT_REPLY_ERROR_BYTES];
    uint32_t n_logged, log_room;
    size_t log_stride;
    unsigned char *log; /* [log_room * log_stride], in this allocation */

    /* The mailbox's lock. */
    uint32_t n_published, n_polled;
    bool listed;  /* among those with something to poll */
    bool cancel;  /* asked for */
    bool is_done; /* its CT_REPLY_DONE is published */
} ct_job;

/* What a request must respect. */
typedef struct ct_job_limits {
    uint32_t ctx, vocab;
    const ct_tokenizer *tokenizer; /* borrowed; may be NULL */
} ct_job_limits;

/* Whether the request can be served at all: CT_EINVAL for a field that is wrong, CT_ELIMIT
 * for what cannot fit.  Names the field and both values. */
ct_status ct_job_check(const ct_request *r, const ct_job_limits *limits, ct_error *err);
/* r has passed the check.  CT_EINVAL for the little that is found out on the way (stop
 * strings that are empty or not UTF-8, min_tokens beyond the sequence); CT_ELIMIT: no memory. */
ct_status ct_job_create(ct_job **out, const ct_request *r, const ct_job_limits *limits,
                        ct_error *err);
void ct_job_destroy(ct_job *job); /* NULL is fine */

/* Appends a reply; there is room for all that can come. */
ct_log_entry *ct_job_log(ct_job *job, ct_reply_kind kind, uint32_t choice);
void ct_job_log_logprobs(ct_log_entry *entry, const ct_logprobs *p);
/* Reply number i of the log. */
void ct_job_reply(const ct_job *job, uint32_t i, ct_reply *out);

#endif
