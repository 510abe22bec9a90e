/* libcarat: Gemma 4 text models in your program.
 *
 * Open a model, create an engine over it, submit requests, poll their events.  Answers
 * are the same bits whatever else the engine is serving.  examples/hello.c is the whole of
 * it in 60 lines.
 *
 * Threads: carat_submit, carat_cancel and carat_health may be called from any thread;
 * carat_poll by one thread at a time; open, create, destroy and close by whoever owns the
 * object, with nobody else inside.  The engine computes on threads of its own.
 * Ownership: the library copies whatever a call is given; what an event points at lasts
 * until the next carat_poll of that engine.  Text is UTF-8.
 * Errors: functions that can fail return a carat_status and, when err is not NULL, say in
 * one line what is wrong.  On failure outputs are left as they were. */
#ifndef CARAT_H
#define CARAT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define CARAT_API __attribute__((visibility("default")))
#else
#define CARAT_API
#endif

CARAT_API const char *carat_version(void); /* "0.1.0" */

typedef enum carat_status {
    CARAT_OK = 0,
    CARAT_EIO,          /* the system refused: open, read, map, write */
    CARAT_EFORMAT,      /* a file is malformed or contradicts itself */
    CARAT_EUNSUPPORTED, /* well-formed, but not something carat serves */
    CARAT_EINVAL,       /* an argument is wrong */
    CARAT_ELIMIT,       /* a named bound or the memory is exceeded; can never fit */
    CARAT_ECANCELLED,   /* the caller asked to stop */
    CARAT_EBUSY,        /* the queue is full: later */
    CARAT_EDOWN,        /* the engine has failed and takes nothing more */
} carat_status;

#define CARAT_ERROR_BYTES 1024

typedef struct carat_error {
    carat_status status;
    char text[CARAT_ERROR_BYTES]; /* one line, NUL-terminated */
} carat_error;

/* --- model ------------------------------------------------------------------------- */

typedef struct carat_model carat_model;

/* dir: config.json, generation_config.json, tokenizer.json, chat template and
 * safetensors.  Weights are mapped, not read. */
CARAT_API carat_status carat_model_open(carat_model **out, const char *dir, carat_error *err);
/* After every engine over it.  NULL is fine. */
CARAT_API void carat_model_close(carat_model *model);

/* --- engine ------------------------------------------------------------------------ */

/* Start from carat_engine_options_init; 0 and NULL take defaults.  A NULL for the whole
 * takes all of them. */
typedef struct carat_engine_options {
    size_t size;          /* of this struct, as the caller knows it; init sets it */
    const char *backend;  /* "ref", "cpu"; NULL: the best present */
    uint32_t threads;     /* that compute; 0: one for each CPU */
    uint32_t ctx;         /* longest sequence in tokens, prompt and answer; 0: 8192 or the
                           * model's limit */
    uint32_t slots;       /* sequences computed at once; 0: 8 */
    uint32_t queue;       /* requests that may wait; 0: 256 */
    uint32_t step_rows;   /* tokens of one step; 0: 256 */
    const char *kv;       /* keys and values as "bf16", "fp8" or "f32"; NULL: bf16 */
    uint64_t cache_bytes; /* of prefixes kept for reuse; 0: as many as the pools have */
    bool no_cache;        /* no prefix is ever reused */
} carat_engine_options;

CARAT_API void carat_engine_options_init(carat_engine_options *o);

/* What an engine would take, in bytes. */
typedef struct carat_plan {
    size_t size;         /* of this struct, set by the caller */
    uint32_t ctx, slots; /* with defaults filled in */
    uint64_t weights;    /* mapped from the files */
    uint64_t kv_global, kv_sliding;
    uint64_t workspace, sampling;
    uint64_t total;
} carat_plan;

CARAT_API carat_status carat_plan_make(const carat_model *model, const carat_engine_options *o,
                                       carat_plan *plan, carat_error *err);

typedef struct carat_engine carat_engine;

/* Takes all its memory and starts its threads.  The model must outlive it. */
CARAT_API carat_status carat_engine_create(carat_engine **out, const carat_model *model,
                                           const carat_engine_options *o, carat_error *err);
/* Ends whatever is open, without events.  NULL is fine. */
CARAT_API void carat_engine_destroy(carat_engine *engine);
/* CARAT_OK, or CARAT_EDOWN with the failure after which nothing more is taken. */
CARAT_API carat_status carat_health(carat_engine *engine, carat_error *err);

/* --- requests ---------------------------------------------------------------------- */

typedef uint64_t carat_request; /* 0 is none */

/* Start from carat_ask_init, which sets what the model's generation_config.json asks for. */
typedef struct carat_ask {
    size_t size; /* of this struct, as the caller knows it; init sets it */

    /* The prompt: exactly one of these. */
    const char *chat;    /* JSON: OpenAI's list of messages, or an object {messages, tools,
                          * chat_template_kwargs} */
    const char *text;    /* as it is, without the chat template; control tokens match */
    const uint32_t *ids; /* [n_ids] */
    size_t n_ids;

    bool think;          /* chat: the model thinks first */
    uint32_t max_tokens; /* of each answer; 0: as many as the context leaves */
    uint32_t n;          /* answers; 0: 1 */

    /* docs/sampling.md says what these do; ranges are checked. */
    double temperature; /* 0: greedy */
    uint32_t top_k;     /* 0: off */
    double top_p, min_p, typical_p;
    double repetition_penalty, presence_penalty, frequency_penalty;
    uint64_t seed; /* same seed, same answer; init sets 0 */
    uint32_t min_tokens;
    bool ignore_eos;
    bool logprobs;           /* of each token chosen */
    uint32_t top_logprobs;   /* and of the best ones, 0 to 20; above 0 needs logprobs */
    const char *const *stop; /* [n_stop] texts that end the answer; chat: in its content */
    size_t n_stop;           /* at most 16 */
    bool stop_include;       /* the text that ended it is part of the answer */

    int32_t priority; /* higher first */
    double timeout_s; /* from submit to the last token; 0: none */
    uint64_t salt;    /* prefixes are shared among requests of one salt only */
    void *user;       /* comes back in every event */
} carat_ask;

CARAT_API void carat_ask_init(carat_ask *ask, const carat_model *model);

/* CARAT_OK: *request is set, and exactly one CARAT_DONE will come.  CARAT_EBUSY when the
 * queue is full; CARAT_ELIMIT, with the figures, for what can never fit. */
CARAT_API carat_status carat_submit(carat_engine *engine, const carat_ask *ask,
                                    carat_request *request, carat_error *err);
/* Ends it within a step, wherever it stands; its CARAT_DONE comes.  An old one is fine. */
CARAT_API void carat_cancel(carat_engine *engine, carat_request request);

/* --- events ------------------------------------------------------------------------ */

/* Of one answer: tokens and what they amount to, then CARAT_END; last of the request,
 * CARAT_DONE. */
typedef enum carat_event_kind {
    CARAT_TOKEN,     /* id, logprob */
    CARAT_REASONING, /* text of the thought */
    CARAT_CONTENT,   /* text */
    CARAT_CALL,      /* a tool call begins; text: the tool's name */
    CARAT_ARGUMENTS, /* more of its arguments; text: JSON, joined one object */
    CARAT_CALL_END,  /* the call is complete */
    CARAT_CALL_VOID, /* the call just begun came to nothing; its text follows as content */
    CARAT_END,       /* this answer has ended: finish */
    CARAT_DONE,      /* the request has ended: finish, usage, error */
} carat_event_kind;

typedef struct carat_usage {
    uint32_t prompt_tokens, cached_tokens;
    uint64_t answer_tokens;    /* CARAT_TOKENs of all answers */
    uint64_t reasoning_tokens; /* of them, of thoughts */
    double queue_s, prefill_s, decode_s;
} carat_usage;

typedef struct carat_logprob {
    uint32_t id;
    float logprob;
} carat_logprob;

typedef struct carat_event {
    carat_event_kind kind;
    carat_request request;
    void *user;
    uint32_t choice;  /* which of n answers */
    uint32_t call;    /* calls: counts from 0 */
    const char *text; /* NUL-terminated as well; "" where there is none */
    size_t text_bytes;
    uint32_t id;              /* TOKEN */
    float logprob;            /* TOKEN: NAN unless asked for */
    const carat_logprob *top; /* TOKEN: [n_top], best first */
    uint32_t n_top;
    /* END, DONE: "stop", "length", "tool_calls", "cancelled", "deadline", "error"; else NULL. */
    const char *finish;
    carat_usage usage;   /* DONE */
    carat_status status; /* DONE: CARAT_OK when all is well, */
    const char *error;   /* else one line; NULL when all is well */
} carat_event;

/* The next event, or NULL when none came within timeout_s (0: does not wait).  It and what
 * it points at last until the next call. */
CARAT_API const carat_event *carat_poll(carat_engine *engine, double timeout_s);

#ifdef __cplusplus
}
#endif
#endif
