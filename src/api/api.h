/* Inside of the library's interface: what its files share. */
#ifndef CT_API_API_H
#define CT_API_API_H

#include "carat.h"

#include "engine/answer.h"
#include "engine/engine.h"
#include "text/chat.h"

#include <pthread.h>

struct carat_model {
    ct_model *model;
    ct_tokenizer *tokenizer;
    ct_chat_template chat;
    ct_status chat_status; /* of opening the template: only chat requests need it */
    ct_error chat_err;
};

/* An open request.  Made by the submitting thread, then the polling thread's. */
typedef struct ct_api_request {
    bool used; /* guarded by the engine's lock */
    void *user;
    uint32_t n_choices, n_ended;
    ct_answer **answer; /* [n_choices]; owned */
    bool *ended;        /* [n_choices]; owned */
    ct_arena arena;     /* of the chat request, which the tools borrow from */
    ct_tools tools;
    uint64_t answer_tokens, reasoning_tokens;
    const char *finish;  /* of the answer that ended last */
    bool cancelled;      /* every answer has met its stop string */
    carat_status failed; /* here, not in the engine: */
    char error[CT_REPLY_ERROR_BYTES];
} ct_api_request;

/* An event whose text lies in the engine's buffer. */
typedef struct ct_api_event {
    carat_event event;
    size_t text_at;
} ct_api_event;

struct carat_engine {
    const carat_model *model; /* borrowed */
    ct_engine *engine;
    pthread_mutex_t lock;    /* of `used` */
    ct_api_request *request; /* [n_requests]: as many as the engine can hold */
    uint32_t n_requests;

    /* Of the polling thread: events of the reply taken last, and how many were given. */
    ct_api_event *event;
    size_t n_events, n_given, room;
    ct_buf text;
    carat_logprob top[CT_MAX_TOP_LOGPROBS]; /* of its token */
    /* The end of a request must come whatever the memory: it has a place of its own. */
    carat_event done;
    bool has_done;
    char done_error[CT_REPLY_ERROR_BYTES];
};

/* Passes an error on; returns its status. */
carat_status ct_api_fail(carat_error *out, const ct_error *err);
/* The same with a status of its own. */
carat_status ct_api_fail_as(carat_error *out, carat_status status, const ct_error *err);

/* Passes an error's status on. */
carat_status ct_api_status(ct_status status);

/* Copies a struct that begins with its size into one that may be shorter than the caller's:
 * what this library does not know must be zero.  First versions are the shortest. */
ct_status ct_api_adopt(void *to, size_t to_bytes, const void *from, const char *what,
                       ct_error *err);

void ct_api_request_deinit(ct_api_request *r);

#endif
