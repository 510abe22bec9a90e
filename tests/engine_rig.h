/* An engine under test, and everything it told about every request: tokens, ends, and a
 * hash of the bits of each row of logits. */
#ifndef CT_TESTS_ENGINE_RIG_H
#define CT_TESTS_ENGINE_RIG_H

#include "support.h"

#include "engine/engine.h"

#include <string.h>

#define RIG_CHOICES 4
#define RIG_TOKENS  96

typedef struct told_choice {
    uint32_t n_rows; /* of logits that tokens were drawn from */
    uint64_t bits[RIG_TOKENS];
    uint32_t n;
    uint32_t id[RIG_TOKENS];
    float logprob[RIG_TOKENS];
    uint64_t safe_bytes; /* of the last token */
    uint32_t n_ends;
    ct_finish finish;
    bool by_string;
    uint64_t text_bytes;
} told_choice;

typedef struct told {
    ct_request_id id;
    uint32_t n_prompt, n_choices;
    told_choice choice[RIG_CHOICES];
    uint32_t n_prompt_replies, n_prompt_rows;
    float prompt_logprob[512];
    uint64_t prompt_bits; /* of the rows before the last of the prompt */
    uint32_t n_done;
    ct_finish finish;
    ct_status status;
    ct_usage usage;
    char error[CT_REPLY_ERROR_BYTES];
} told;

typedef struct rig {
    ct_engine *e;
    told *told; /* [room], by tag */
    uint32_t n, room;
    double clock_s;     /* what the engine sees */
    uint64_t spoil_tag; /* this request's rows become NaN; UINT64_MAX: nobody's */
    bool fail_device;
    ct_error err;
} rig;

static inline uint64_t rig_hash(uint64_t h, const void *bytes, size_t n)
{
    const unsigned char *p = bytes;

    for (size_t i = 0; i < n; i++)
        h = (h ^ p[i]) * 1099511628211u; /* FNV-1a */
    return h;
}

static inline ct_status rig_on_logits(void *ctx, uint64_t tag, uint32_t choice, uint32_t position,
                                      float *logits, ct_error *err)
{
    rig *r = ctx;
    told *t = &r->told[tag];
    told_choice *c = &t->choice[choice];
    const size_t vocab = ct_engine_model(r->e)->config.vocab;
    uint64_t h = rig_hash(14695981039346656037u, logits, vocab * sizeof *logits);

    if (r->fail_device)
        return ct_fail(err, CT_EIO, "the device fell off the bus");
    if (tag == r->spoil_tag)
        logits[vocab / 2] = (float)strtod("nan", NULL);
    if (position + 1 < t->n_prompt) {
        t->prompt_bits = rig_hash(t->prompt_bits, &h, sizeof h);
        t->n_prompt_rows++;
        return CT_OK;
    }
    assert_int_equal(position, t->n_prompt - 1 + c->n_rows);
    assert_true(c->n_rows < RIG_TOKENS);
    c->bits[c->n_rows++] = h;
    return CT_OK;
}

static inline double rig_now(void *ctx)
{
    return ((rig *)ctx)->clock_s;
}

/* A rig may not move while it is open. */
static inline void rig_open(rig *r, const ct_model *model, const ct_engine_options *how,
                            uint32_t room)
{
    ct_engine_options o = *how;

    *r = (rig){.room = room, .spoil_tag = UINT64_MAX};
    r->told = calloc(room, sizeof *r->told);
    assert_non_null(r->told);
    o.now = rig_now;
    o.now_ctx = r;
    o.on_logits = rig_on_logits;
    o.on_logits_ctx = r;
    test_ok(ct_engine_create(&r->e, model, &o, &r->err), &r->err);
}

static inline void rig_close(rig *r)
{
    ct_engine_destroy(r->e);
    free(r->told);
    *r = (rig){0};
}

static inline ct_submitted rig_try(rig *r, const ct_request *request, uint32_t *tag)
{
    ct_request ask = *request;
    ct_submitted got;

    assert_true(r->n < r->room);
    *tag = r->n;
    ask.tag = r->n;
    r->told[r->n] =
        (told){.n_prompt = ask.n_prompt, .n_choices = ask.n_choices ? ask.n_choices : 1};
    got = ct_engine_submit(r->e, &ask, &r->told[r->n].id, &r->err);
    r->n += got == CT_SUBMIT_TAKEN;
    return got;
}

static inline uint32_t rig_submit(rig *r, const ct_request *request)
{
    uint32_t tag;

    if (rig_try(r, request, &tag) != CT_SUBMIT_TAKEN)
        fail_msg("%s", r->err.text);
    return tag;
}

static inline void rig_take(rig *r, const ct_reply *reply)
{
    told *t = &r->told[reply->tag];
    told_choice *c = &t->choice[reply->choice];

    assert_true(reply->tag < r->n && reply->id == t->id && t->n_done == 0);
    switch (reply->kind) {
    case CT_REPLY_PROMPT:
        assert_int_equal(reply->u.token.position, t->n_prompt_replies);
        t->prompt_logprob[t->n_prompt_replies++ % 512] =
            reply->u.token.has_logprobs ? reply->u.token.logprobs.logprob : 0;
        break;
    case CT_REPLY_TOKEN:
        assert_true(c->n_ends == 0 && c->n < RIG_TOKENS);
        assert_int_equal(reply->u.token.position, t->n_prompt + c->n);
        assert_true(reply->u.token.safe_bytes >= c->safe_bytes);
        c->safe_bytes = reply->u.token.safe_bytes;
        c->logprob[c->n] = reply->u.token.has_logprobs ? reply->u.token.logprobs.logprob : 0;
        c->id[c->n++] = reply->u.token.id;
        break;
    case CT_REPLY_CHOICE:
        assert_int_equal(reply->u.end.n_tokens, c->n);
        c->n_ends++;
        c->finish = reply->u.end.finish;
        c->by_string = reply->u.end.by_string;
        c->text_bytes = reply->u.end.text_bytes;
        break;
    case CT_REPLY_DONE:
        for (uint32_t i = 0; i < t->n_choices; i++)
            assert_int_equal(t->choice[i].n_ends, 1);
        t->n_done++;
        t->finish = reply->u.done.finish;
        t->status = reply->u.done.status;
        t->usage = reply->u.done.usage;
        memcpy(t->error, reply->u.done.error, sizeof t->error);
        break;
    }
}

static inline void rig_poll(rig *r)
{
    static ct_reply reply[32];

    for (size_t n; (n = ct_engine_poll(r->e, reply, 32)) > 0;)
        for (size_t i = 0; i < n; i++)
            rig_take(r, &reply[i]);
}

static inline bool rig_step(rig *r)
{
    bool more = ct_engine_step(r->e);

    rig_poll(r);
    return more;
}

/* Until nothing is open. */
static inline void rig_run(rig *r)
{
    while (rig_step(r))
        ;
    for (uint32_t i = 0; i < r->n; i++)
        assert_int_equal(r->told[i].n_done, 1);
}

/* Same ids, same logprobs, same bits of all logits. */
static inline void assert_same_told(const told *a, const told *b, const char *where)
{
    assert_int_equal(a->n_choices, b->n_choices);
    for (uint32_t c = 0; c < a->n_choices; c++) {
        const told_choice *x = &a->choice[c], *y = &b->choice[c];

        if (x->n != y->n || x->finish != y->finish || x->n_rows != y->n_rows)
            fail_msg("%s: choice %u has %u tokens, alone it has %u", where, c, y->n, x->n);
        for (uint32_t i = 0; i < x->n_rows; i++)
            if (x->bits[i] != y->bits[i])
                fail_msg("%s: choice %u, logits %u differ", where, c, i);
        assert_memory_equal(x->id, y->id, x->n * sizeof *x->id);
        assert_memory_equal(x->logprob, y->logprob, x->n * sizeof *x->logprob);
    }
}

#endif
