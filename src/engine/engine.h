/* The engine: many requests over one model, one ragged batch a step.
 *
 * Submit from any thread; the engine's thread runs steps; one other thread polls replies.
 * Nothing the engine does waits for a client: each request brings the room for all of its
 * replies with it, and what cannot be taken is refused at submit.  What a request gets
 * depends on the request alone, never on the others: same ids and same logprobs, bit for
 * bit.  All other memory is taken at creation; a step allocates nothing.
 *
 * The order of service and its bounds: engine/scheduler.h and docs/engine.md. */
#ifndef CT_ENGINE_ENGINE_H
#define CT_ENGINE_ENGINE_H

#include "engine/request.h"
#include "kv/kv.h"
#include "model/model.h"
#include "text/tokenizer.h"

typedef struct ct_engine ct_engine;

/* Sees every row of logits before it is used, from ct_engine_step; may change it.  An
 * error counts as a failure of the device.  position: of the row, whose logits are about
 * position + 1.  For tests. */
typedef ct_status ct_logits_fn(void *ctx, uint64_t tag, uint32_t choice, uint32_t position,
                               float *logits, ct_error *err);

/* All-zero takes every default. */
typedef struct ct_engine_options {
    const char *backend; /* NULL: the best present */
    bool round_bf16;     /* the reference backend rounds where the bf16 path does */
    unsigned n_threads;  /* 0: one for each CPU */

    uint32_t ctx;       /* longest sequence, answer included; 0: the model's, at most
                         * CT_ENGINE_CTX */
    uint32_t slots;     /* sequences (choices) computed at once; 0: CT_ENGINE_SLOTS */
    uint32_t queue;     /* requests that may wait beside them; 0: CT_ENGINE_QUEUE */
    uint32_t step_rows; /* rows of one step, at least slots; 0: CT_ENGINE_STEP_ROWS */
    uint32_t chunk;     /* most of them that are of one prompt; 0: no such limit */
    uint32_t free_rows; /* rows that cost a step next to nothing because reading the weights
                         * decides; 0: what is right for the backend */

    uint32_t page_tokens;         /* 0: CT_KV_PAGE_TOKENS */
    uint32_t n_global, n_sliding; /* pages; 0: for every slot at its longest */
    ct_kv_type global_type, sliding_type;
    uint64_t cache_bytes; /* of pages kept for reuse; 0: as many as the pools have */
    bool no_cache;        /* no prefix is ever reused */

    const ct_tokenizer *tokenizer; /* borrowed; NULL: stop strings are refused */

    /* Called after a step that published replies, without any lock held; must not block.
     * A net thread lets itself be woken by it. */
    void (*wake)(void *ctx);
    void *wake_ctx;
    double (*now)(void *ctx); /* seconds; NULL: the monotonic clock */
    void *now_ctx;
    ct_logits_fn *on_logits; /* NULL: none */
    void *on_logits_ctx;
} ct_engine_options;

#define CT_ENGINE_CTX       8192
#define CT_ENGINE_SLOTS     8
#define CT_ENGINE_QUEUE     256
#define CT_ENGINE_STEP_ROWS 256
#define CT_ENGINE_MAX_SLOTS 4096

/* What an engine would take. */
typedef struct ct_engine_bytes {
    uint32_t ctx, slots, step_rows; /* with defaults filled in */
    uint64_t backend;               /* from the backend, KV included */
    ct_kv_bytes kv;
    uint64_t sampling; /* on the host: logits at hand, samplers */
} ct_engine_bytes;

ct_status ct_engine_measure(ct_engine_bytes *out, const ct_config *config,
                            const ct_engine_options *how, ct_error *err);

/* model is borrowed. */
ct_status ct_engine_create(ct_engine **out, const ct_model *model, const ct_engine_options *how,
                           ct_error *err);
/* Stops the thread and drops what is open, without replies.  NULL is fine. */
void ct_engine_destroy(ct_engine *e);

/* --- any thread -------------------------------------------------------------------- */

typedef enum ct_submitted {
    CT_SUBMIT_TAKEN,
    CT_SUBMIT_WRONG,  /* a field is wrong, or is not served */
    CT_SUBMIT_NEVER,  /* exceeds a limit for good, with the figures */
    CT_SUBMIT_FULL,   /* the queue is full for now */
    CT_SUBMIT_DOWN,   /* the engine is unhealthy */
    CT_SUBMIT_MEMORY, /* the host has no memory for it */
} ct_submitted;

/* Taken: *id is set, and exactly one CT_REPLY_DONE will come.  Otherwise nothing has
 * changed, and err says why in one line. */
ct_submitted ct_engine_submit(ct_engine *e, const ct_request *r, ct_request_id *id, ct_error *err);

/* Ends a request within one step, wherever it stands.  An id that is void or done is fine. */
void ct_engine_cancel(ct_engine *e, ct_request_id id);
void ct_engine_cancel_all(ct_engine *e);

/* CT_OK, or the failure after which nothing more is taken. */
ct_status ct_engine_health(ct_engine *e, ct_error *err);

typedef struct ct_engine_stats {
    /* Now. */
    uint32_t waiting, running; /* requests not yet admitted, and admitted */
    uint32_t sequences;        /* choices that hold a slot */
    uint32_t slots, queue;     /* and what fits */
    uint32_t unpolled;         /* requests done whose CT_REPLY_DONE was not polled */
    ct_kv_usage kv;            /* as of the last step */
    /* Since creation. */
    uint64_t steps, rows, logits_rows;
    uint64_t prompt_tokens, cached_tokens, answer_tokens;
    uint64_t submitted, refused_full;
    uint64_t finished[CT_FINISH_ERROR + 1]; /* requests, by how */
} ct_engine_stats;

ct_engine_stats ct_engine_stats_get(ct_engine *e);

/* --- one thread at a time: the client's --------------------------------------------- */

/* Takes up to n replies; returns how many there were.  Those of one request are in order. */
size_t ct_engine_poll(ct_engine *e, ct_reply *out, size_t n);
/* Waits until there is something to poll; false when timeout_s passed first.  Needs a
 * running thread, or somebody else who steps. */
bool ct_engine_wait(ct_engine *e, double timeout_s);

/* --- the engine's thread ------------------------------------------------------------ */

/* One step on the calling thread.  false: there was nothing to do.  Not while the
 * engine's own thread runs. */
bool ct_engine_step(ct_engine *e);

/* Runs steps on a thread of the engine's, which sleeps when nothing is open. */
ct_status ct_engine_start(ct_engine *e, ct_error *err);
/* Returns when the step under way is over; what is open stays open.  Fine when not started. */
void ct_engine_stop(ct_engine *e);

/* --- figures, any thread -------------------------------------------------------------- */

uint32_t ct_engine_ctx(const ct_engine *e);
const ct_model *ct_engine_model(const ct_engine *e);
const char *ct_engine_backend_name(const ct_engine *e);

/* For tests: whether pools, tables and counts agree (ct_kv_consistent and the engine's
 * own).  Between steps only. */
bool ct_engine_consistent(const ct_engine *e);

#endif
