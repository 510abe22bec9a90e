#include "engine/mailbox.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <time.h>

typedef struct place {
    ct_job *job;         /* NULL: free, reserved, or its job not posted yet */
    uint32_t generation; /* of the last id given out here; never 0 then */
    bool taken;
} place;

/* First in, first out; never more than one entry a place, so that it cannot overflow. */
typedef struct ring {
    uint32_t *index; /* [capacity]; owned */
    uint32_t first, n;
} ring;

struct ct_mailbox {
    uint32_t capacity, max_waiting;
    pthread_mutex_t lock;
    pthread_cond_t news; /* for those who poll */
    pthread_cond_t work; /* for the engine's thread */
    /* Guarded by lock. */
    place *place; /* [capacity] */
    ring vacant;  /* places free */
    ring posted;  /* not collected yet */
    ring ready;   /* with something to poll */
    ct_mailbox_counts count;
    bool any_cancel, quit, is_down;
    ct_error why; /* of is_down */
};

/* --- rings ---------------------------------------------------------------------------- */

static void ring_push(ct_mailbox *m, ring *r, uint32_t index)
{
    assert(r->n < m->capacity);
    r->index[(r->first + r->n) % m->capacity] = index;
    r->n++;
}

static uint32_t ring_pop(ct_mailbox *m, ring *r)
{
    uint32_t index = r->index[r->first];

    assert(r->n > 0);
    r->first = (r->first + 1) % m->capacity;
    r->n--;
    return index;
}

/* --- creation ------------------------------------------------------------------------- */

static ct_status init_locks(ct_mailbox *m, ct_error *err)
{
    pthread_condattr_t monotonic;
    bool failed;

    if (pthread_condattr_init(&monotonic))
        return ct_fail(err, CT_ELIMIT, "out of memory for a condition");
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    failed = pthread_mutex_init(&m->lock, NULL) || pthread_cond_init(&m->news, &monotonic) ||
             pthread_cond_init(&m->work, &monotonic);
    pthread_condattr_destroy(&monotonic);
    return failed ? ct_fail(err, CT_ELIMIT, "out of memory for a lock") : CT_OK;
}

static void free_tables(ct_mailbox *m)
{
    free(m->place);
    free(m->vacant.index);
    free(m->posted.index);
    free(m->ready.index);
    free(m);
}

ct_status ct_mailbox_create(ct_mailbox **out, uint32_t capacity, uint32_t max_waiting,
                            ct_error *err)
{
    ct_mailbox *m = calloc(1, sizeof *m);
    ct_status st;

    if (!m)
        return ct_fail(err, CT_ELIMIT, "out of memory for the mailbox");
    m->capacity = capacity;
    m->max_waiting = max_waiting;
    m->place = calloc(capacity, sizeof *m->place);
    m->vacant.index = calloc(capacity, sizeof *m->vacant.index);
    m->posted.index = calloc(capacity, sizeof *m->posted.index);
    m->ready.index = calloc(capacity, sizeof *m->ready.index);
    if (m->place && m->vacant.index && m->posted.index && m->ready.index)
        st = init_locks(m, err);
    else
        st = ct_fail(err, CT_ELIMIT, "out of memory for a queue of %" PRIu32, capacity);
    if (st) {
        free_tables(m);
        return st;
    }
    for (uint32_t i = 0; i < capacity; i++)
        ring_push(m, &m->vacant, i);
    *out = m;
    return CT_OK;
}

void ct_mailbox_destroy(ct_mailbox *m)
{
    if (!m)
        return;
    for (uint32_t i = 0; i < m->capacity; i++)
        ct_job_destroy(m->place[i].job);
    pthread_cond_destroy(&m->news);
    pthread_cond_destroy(&m->work);
    pthread_mutex_destroy(&m->lock);
    free_tables(m);
}

/* --- ids ------------------------------------------------------------------------------ */

static ct_request_id id_of(const ct_mailbox *m, uint32_t index)
{
    return (uint64_t)m->place[index].generation << 32 | index;
}

/* The place of an id that is not void, or NULL. */
static place *place_of(ct_mailbox *m, ct_request_id id)
{
    uint32_t index = (uint32_t)id;

    if (index >= m->capacity || !m->place[index].taken || id_of(m, index) != id)
        return NULL;
    return &m->place[index];
}

static void vacate(ct_mailbox *m, uint32_t index)
{
    m->place[index].taken = false;
    m->place[index].job = NULL;
    ring_push(m, &m->vacant, index);
}

/* --- clients: in ---------------------------------------------------------------------- */

/* Takes a vacant place.  With the lock. */
static ct_request_id occupy(ct_mailbox *m)
{
    uint32_t index = ring_pop(m, &m->vacant);
    place *p = &m->place[index];

    p->taken = true;
    if (++p->generation == 0) /* 0 names none */
        p->generation = 1;
    m->count.waiting++;
    return id_of(m, index);
}

ct_reserved ct_mailbox_reserve(ct_mailbox *m, ct_request_id *id, ct_error *err)
{
    ct_reserved got = CT_RESERVED;
    ct_mailbox_counts count;

    pthread_mutex_lock(&m->lock);
    if (m->is_down) {
        got = CT_RESERVE_DOWN;
    } else if (m->count.waiting >= m->max_waiting || m->vacant.n == 0) {
        got = CT_RESERVE_FULL;
        m->count.refused++;
    } else {
        *id = occupy(m);
    }
    count = m->count;
    pthread_mutex_unlock(&m->lock);
    /* The reason of a failure is written once, before is_down. */
    if (got == CT_RESERVE_DOWN)
        ct_fail(err, m->why.status, "the engine has failed: %s", m->why.text);
    else if (got == CT_RESERVE_FULL)
        ct_fail(err, CT_ELIMIT,
                "the queue is full: %" PRIu32 " requests wait of at most %" PRIu32 ", %" PRIu32
                " are open, the end of %" PRIu32 " was not fetched",
                count.waiting, m->max_waiting, count.open, count.unpolled);
    return got;
}

void ct_mailbox_unreserve(ct_mailbox *m, ct_request_id id)
{
    pthread_mutex_lock(&m->lock);
    m->count.waiting--;
    vacate(m, (uint32_t)id);
    pthread_mutex_unlock(&m->lock);
}

void ct_mailbox_post(ct_mailbox *m, ct_request_id id, ct_job *job)
{
    pthread_mutex_lock(&m->lock);
    job->id = id;
    job->arrival = m->count.submitted++;
    m->place[(uint32_t)id].job = job;
    ring_push(m, &m->posted, (uint32_t)id);
    m->count.open++;
    pthread_cond_signal(&m->work);
    pthread_mutex_unlock(&m->lock);
}

void ct_mailbox_cancel(ct_mailbox *m, ct_request_id id)
{
    place *p;

    pthread_mutex_lock(&m->lock);
    p = place_of(m, id);
    if (p && p->job) {
        p->job->cancel = true;
        m->any_cancel = true;
    }
    pthread_mutex_unlock(&m->lock);
}

void ct_mailbox_cancel_all(ct_mailbox *m)
{
    pthread_mutex_lock(&m->lock);
    for (uint32_t i = 0; i < m->capacity; i++)
        if (m->place[i].job)
            m->place[i].job->cancel = true;
    m->any_cancel = true;
    pthread_mutex_unlock(&m->lock);
}

/* --- clients: out --------------------------------------------------------------------- */

/* Copies what one job has for the clients; whether that was its end.  With the lock. */
static bool drain(ct_job *job, ct_reply *out, size_t room, size_t *n)
{
    size_t left = job->n_published - job->n_polled;

    *n = left < room ? left : room;
    for (size_t i = 0; i < *n; i++)
        ct_job_reply(job, job->n_polled++, &out[i]);
    return job->is_done && job->n_polled == job->n_published;
}

/* One job's turn; *over is set to it when it has ended.  With the lock. */
static size_t poll_job(ct_mailbox *m, ct_reply *out, size_t room, ct_job **over)
{
    uint32_t index = ring_pop(m, &m->ready);
    ct_job *job = m->place[index].job;
    size_t n;

    *over = NULL;
    if (drain(job, out, room, &n)) {
        *over = job;
        m->count.unpolled--;
        vacate(m, index);
    } else if (job->n_polled < job->n_published) {
        ring_push(m, &m->ready, index);
    } else {
        job->listed = false;
    }
    return n;
}

size_t ct_mailbox_poll(ct_mailbox *m, ct_reply *out, size_t n)
{
    size_t got = 0;
    bool more = true;

    while (more && got < n) {
        ct_job *over = NULL;

        pthread_mutex_lock(&m->lock);
        more = m->ready.n > 0;
        if (more)
            got += poll_job(m, out + got, n - got, &over);
        pthread_mutex_unlock(&m->lock);
        ct_job_destroy(over);
    }
    return got;
}

static struct timespec in_seconds(double s)
{
    struct timespec t;
    double whole;

    clock_gettime(CLOCK_MONOTONIC, &t);
    t.tv_nsec += (long)(modf(fmin(fmax(s, 0), 1e9), &whole) * 1e9);
    t.tv_sec += (time_t)whole + t.tv_nsec / 1000000000;
    t.tv_nsec %= 1000000000;
    return t;
}

bool ct_mailbox_wait(ct_mailbox *m, double timeout_s)
{
    const struct timespec until = in_seconds(timeout_s);
    bool ready;

    pthread_mutex_lock(&m->lock);
    while (m->ready.n == 0)
        if (pthread_cond_timedwait(&m->news, &m->lock, &until) == ETIMEDOUT)
            break;
    ready = m->ready.n > 0;
    pthread_mutex_unlock(&m->lock);
    return ready;
}

/* --- engine --------------------------------------------------------------------------- */

uint32_t ct_mailbox_collect(ct_mailbox *m, ct_job **out, bool *any_cancel)
{
    uint32_t n = 0;

    pthread_mutex_lock(&m->lock);
    while (m->posted.n > 0)
        out[n++] = m->place[ring_pop(m, &m->posted)].job;
    *any_cancel = m->any_cancel;
    m->any_cancel = false;
    pthread_mutex_unlock(&m->lock);
    return n;
}

bool ct_mailbox_is_cancelled(ct_mailbox *m, const ct_job *job)
{
    bool cancelled;

    pthread_mutex_lock(&m->lock);
    cancelled = job->cancel;
    pthread_mutex_unlock(&m->lock);
    return cancelled;
}

/* With the lock. */
static void publish_job(ct_mailbox *m, ct_job *job)
{
    job->n_published = job->n_logged;
    job->touched = false;
    if (job->n_ended == job->n_choices) {
        job->is_done = true;
        m->count.open--;
        m->count.unpolled++;
    }
    if (!job->listed) {
        job->listed = true;
        ring_push(m, &m->ready, (uint32_t)job->id);
    }
}

void ct_mailbox_publish(ct_mailbox *m, ct_job *const *jobs, uint32_t n, uint32_t n_left_queue)
{
    pthread_mutex_lock(&m->lock);
    m->count.waiting -= n_left_queue;
    for (uint32_t i = 0; i < n; i++)
        publish_job(m, jobs[i]);
    if (n)
        pthread_cond_broadcast(&m->news);
    pthread_mutex_unlock(&m->lock);
}

void ct_mailbox_fail(ct_mailbox *m, const ct_error *why)
{
    pthread_mutex_lock(&m->lock);
    if (!m->is_down)
        m->why = *why;
    m->is_down = true;
    pthread_mutex_unlock(&m->lock);
}

ct_status ct_mailbox_failure(ct_mailbox *m, ct_error *why)
{
    bool is_down;

    pthread_mutex_lock(&m->lock);
    is_down = m->is_down;
    pthread_mutex_unlock(&m->lock);
    return is_down ? ct_fail(why, m->why.status, "%s", m->why.text) : CT_OK;
}

bool ct_mailbox_work(ct_mailbox *m)
{
    bool go_on;

    pthread_mutex_lock(&m->lock);
    while (!m->quit && m->count.open == 0)
        pthread_cond_wait(&m->work, &m->lock);
    go_on = !m->quit;
    pthread_mutex_unlock(&m->lock);
    return go_on;
}

void ct_mailbox_quit(ct_mailbox *m, bool quit)
{
    pthread_mutex_lock(&m->lock);
    m->quit = quit;
    pthread_cond_signal(&m->work);
    pthread_mutex_unlock(&m->lock);
}

ct_mailbox_counts ct_mailbox_count(ct_mailbox *m)
{
    ct_mailbox_counts count;

    pthread_mutex_lock(&m->lock);
    count = m->count;
    pthread_mutex_unlock(&m->lock);
    return count;
}
