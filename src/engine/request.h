/* What a client asks of the engine, and what it gets back.
 *
 * A request is a prompt and how to answer it, n times over if asked.  Everything it points
 * at is borrowed for the call of ct_engine_submit only, unless a comment says otherwise. */
#ifndef CT_ENGINE_REQUEST_H
#define CT_ENGINE_REQUEST_H

#include "base/status.h"
#include "base/str.h"
#include "engine/sampler.h"

#define CT_MAX_CHOICES       128
#define CT_REQUEST_MAX_BYTES ((size_t)1 << 30) /* memory of one request, replies included */
#define CT_MAX_NEW_ANY       UINT32_MAX        /* as long as the context allows */

/* A grammar's hold on the choices.  Called from inside ct_engine_step, for each choice one
 * call at a time but for different choices at once; must not block.  Lives, with ctx, until
 * the request's CT_REPLY_DONE has been polled. */
typedef struct ct_constraint {
    /* Mask of the ids that may come next (CT_MASK_WORDS of the vocabulary), valid until the
     * choice's next call; NULL: all. */
    const uint32_t *(*allowed)(void *ctx, uint32_t choice);
    void (*accept)(void *ctx, uint32_t choice, uint32_t id);
    void *ctx;
} ct_constraint;

/* All-zero but for prompt, n_prompt and sampling is a request for no answer at all
 * (max_new 0), which is good for the logprobs of a prompt. */
typedef struct ct_request {
    const uint32_t *prompt; /* [n_prompt], at least one id */
    uint32_t n_prompt;
    uint32_t max_new;     /* tokens of each choice; clipped to what the context leaves */
    uint32_t n_choices;   /* 0 means 1; choice c draws with ct_sampling_choice_seed */
    ct_sampling sampling; /* what it says about borrowing holds: dry_breakers stays borrowed */

    const ct_str *stop; /* stop strings; need the engine's tokenizer */
    size_t n_stop;
    bool stop_include;  /* the stop string is part of the answer */
    bool stop_specials; /* stop strings see the text of control tokens too */

    bool echo;                    /* the prompt's tokens come back first, once */
    bool prompt_logprobs;         /* and have logprobs; implies echo, and no prefix is reused */
    uint32_t prompt_top_logprobs; /* best ids at each position of it, 0 to 20 */

    const ct_constraint *constraint; /* copied; NULL: none */

    int32_t priority;    /* higher first; 0 is ordinary */
    double timeout_s;    /* from submit to the last token; 0: none */
    uint64_t salt;       /* prefixes are shared among requests of one salt only */
    uint32_t reuse_hint; /* where other prompts are likely to part from this one, such as the
                          * end of the system message; 0: unknown */
    bool no_cache;       /* neither uses nor leaves prefixes */

    uint64_t tag; /* the client's; comes back in every reply */
} ct_request;

/* Names a request: index and generation, never a pointer.  0 names none; an old id is
 * recognised as such for 2^32 uses of its slot. */
typedef uint64_t ct_request_id;

typedef enum ct_finish {
    CT_FINISH_STOP,      /* an eos id, a stop id or a stop string */
    CT_FINISH_LENGTH,    /* max_new, or the end of the context */
    CT_FINISH_CANCELLED, /* ct_engine_cancel */
    CT_FINISH_DEADLINE,  /* timeout_s passed */
    CT_FINISH_ERROR,     /* see the reply's status and error */
} ct_finish;

const char *ct_finish_name(ct_finish f); /* "stop", "length", "cancelled", "deadline", "error" */

/* In this order for each request: all CT_REPLY_PROMPT by position; then, interleaved among
 * choices, CT_REPLY_TOKEN in order and one CT_REPLY_CHOICE for every choice; last, exactly
 * one CT_REPLY_DONE. */
typedef enum ct_reply_kind {
    CT_REPLY_PROMPT, /* one token of the prompt */
    CT_REPLY_TOKEN,  /* one token of a choice, that of an eos or stop id included */
    CT_REPLY_CHOICE, /* a choice has ended */
    CT_REPLY_DONE,   /* the request has ended; its id is void from here */
} ct_reply_kind;

typedef struct ct_usage {
    uint32_t prompt_tokens;
    uint32_t cached_tokens; /* of the prompt, not computed again (for the first choice) */
    uint64_t answer_tokens; /* of all choices, eos and stop ids included */
    double queue_s;         /* submitted to admitted */
    double prefill_s;       /* admitted to the first token */
    double decode_s;        /* first token to the end */
} ct_usage;

#define CT_REPLY_ERROR_BYTES 256

typedef struct ct_reply {
    ct_request_id id;
    uint64_t tag;
    ct_reply_kind kind;
    uint32_t choice; /* TOKEN, CHOICE */
    union {
        struct {               /* PROMPT, TOKEN */
            uint32_t position; /* in the sequence, prompt included */
            uint32_t id;
            bool stop;         /* an eos or stop id that ended the choice */
            bool has_logprobs; /* when asked for; never for the prompt's first token */
            /* With stop strings: bytes of the choice's text (control tokens left out unless
             * stop_specials) that can be shown for certain, as ct_stop_progress says. */
            uint64_t safe_bytes;
            ct_logprobs logprobs;
        } token;
        struct { /* CHOICE */
            ct_finish finish;
            uint32_t n_tokens;
            bool by_string;      /* a stop string ended it: */
            uint32_t which;      /* that one, */
            uint64_t text_bytes; /* and the answer's text ends after these bytes */
        } end;
        struct {              /* DONE */
            ct_finish finish; /* of the choice that ended worst: highest in ct_finish */
            ct_status status; /* CT_OK unless the finish is CT_FINISH_ERROR */
            ct_usage usage;
            char error[CT_REPLY_ERROR_BYTES]; /* one line */
        } done;
    } u;
} ct_reply;

#endif
