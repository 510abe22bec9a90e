/* Requests of the library: prompts to ids, and the readers of their answers. */
#include "api/api.h"

#include "base/checked.h"
#include "text/openai_messages.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define ARENA_BYTES     ((size_t)1 << 30) /* address space of one chat request */
#define MAX_PROMPT_TEXT ((size_t)64 << 20)

void carat_ask_init(carat_ask *ask, const carat_model *model)
{
    const ct_sampling p = ct_sampling_defaults(&model->model->generation);

    *ask = (carat_ask){
        .size = sizeof *ask,
        .temperature = p.temperature,
        .top_k = p.top_k,
        .top_p = p.top_p,
        .min_p = p.min_p,
        .typical_p = p.typical_p,
        .repetition_penalty = p.repetition_penalty,
    };
}

/* --- prompt --------------------------------------------------------------------------- */

/* The request as OpenAI's, whether `chat` is one or only its messages. */
static ct_status chat_body(ct_value *body, const carat_ask *ask, ct_arena *a, ct_error *err)
{
    const ct_value *given, yes = ct_value_bool(true);
    ct_map_entry *entry;
    ct_status st = ct_value_parse(&given, "chat", ct_str_of(ask->chat), a, err);

    if (st)
        return st;
    *body = *given;
    if (given->kind == CT_VALUE_LIST) {
        entry = ct_arena_zalloc(a, 1, sizeof *entry);
        if (!entry)
            return ct_fail(err, CT_ELIMIT, "chat: out of memory");
        *entry = (ct_map_entry){CT_STR("messages"), *given};
        if (!ct_value_build_map(body, entry, 1, a))
            return ct_fail(err, CT_ELIMIT, "chat: out of memory");
    } else if (given->kind != CT_VALUE_MAP) {
        return ct_fail(err, CT_EINVAL, "chat: must be a list of messages or an object, not %s",
                       ct_value_kind_name(given));
    }
    if (ask->think && !ct_value_with(body, body, CT_STR("enable_thinking"), &yes, a))
        return ct_fail(err, CT_ELIMIT, "chat: out of memory");
    return CT_OK;
}

static ct_status chat_prompt(ct_ids *ids, ct_api_request *r, const carat_model *m,
                             const carat_ask *ask, ct_error *err)
{
    ct_chat_request request;
    ct_value body;
    ct_buf text;
    ct_status st;

    if (m->chat_status)
        return ct_fail(err, m->chat_status, "%s", m->chat_err.text);
    st = ct_arena_init(&r->arena, ARENA_BYTES, err);
    if (!st)
        st = chat_body(&body, ask, &r->arena, err);
    if (!st)
        st = ct_openai_request(&request, &body, &r->arena, err);
    if (!st)
        st = ct_tools_from(&r->tools, request.tools, &r->arena, err);
    if (st)
        return st;
    ct_buf_init(&text, MAX_PROMPT_TEXT);
    st = ct_chat_render(m->chat.jinja, ct_buf_str(&m->chat.bos), &request.render, &r->arena, &text,
                        err);
    if (!st)
        st = ct_tokenizer_encode(m->tokenizer, ct_buf_str(&text), CT_SPECIAL_MATCH, ids, err);
    ct_buf_deinit(&text);
    return st;
}

static ct_status make_prompt(ct_ids *ids, ct_api_request *r, const carat_model *m,
                             const carat_ask *ask, ct_error *err)
{
    const int n_given = !!ask->chat + !!ask->text + !!ask->ids;
    ct_status st = CT_OK;

    if (n_given != 1)
        return ct_fail(err, CT_EINVAL, "%d of chat, text and ids are set; give exactly one",
                       n_given);
    if (ask->think && !ask->chat)
        return ct_fail(err, CT_EINVAL, "think goes with chat only");
    if (ask->chat)
        return chat_prompt(ids, r, m, ask, err);
    if (ask->text)
        return ct_tokenizer_encode(m->tokenizer, ct_str_of(ask->text), CT_SPECIAL_MATCH, ids, err);
    for (size_t i = 0; i < ask->n_ids && !st; i++)
        st = ct_ids_add(ids, ask->ids[i], err);
    return st;
}

/* --- request -------------------------------------------------------------------------- */

void ct_api_request_deinit(ct_api_request *r)
{
    for (uint32_t i = 0; r->answer && i < r->n_choices; i++)
        ct_answer_destroy(r->answer[i]);
    free(r->answer);
    free(r->ended);
    ct_arena_deinit(&r->arena);
    *r = (ct_api_request){0};
}

static ct_status make_answers(ct_api_request *r, const ct_answer_options *how, ct_error *err)
{
    ct_status st = CT_OK;

    r->answer = calloc(r->n_choices, sizeof(ct_answer *));
    r->ended = calloc(r->n_choices, sizeof *r->ended);
    if (!r->answer || !r->ended)
        return ct_fail(err, CT_ELIMIT, "out of memory for %u answers", r->n_choices);
    for (uint32_t i = 0; i < r->n_choices && !st; i++)
        st = ct_answer_create(&r->answer[i], how, err);
    return st;
}

/* NULL when all are in use: more than the engine itself would take. */
static ct_api_request *take_entry(carat_engine *e)
{
    ct_api_request *r = NULL;

    pthread_mutex_lock(&e->lock);
    for (uint32_t i = 0; i < e->n_requests && !r; i++)
        if (!e->request[i].used)
            r = &e->request[i];
    if (r)
        *r = (ct_api_request){.used = true};
    pthread_mutex_unlock(&e->lock);
    return r;
}

static void put_entry(carat_engine *e, ct_api_request *r)
{
    pthread_mutex_lock(&e->lock);
    ct_api_request_deinit(r);
    pthread_mutex_unlock(&e->lock);
}

static ct_sampling sampling_of(const carat_ask *ask, const carat_model *m)
{
    ct_sampling p = ct_sampling_defaults(&m->model->generation);

    p.temperature = ask->temperature;
    p.top_k = ask->top_k;
    p.top_p = ask->top_p;
    p.min_p = ask->min_p;
    p.typical_p = ask->typical_p;
    p.repetition_penalty = ask->repetition_penalty;
    p.presence_penalty = ask->presence_penalty;
    p.frequency_penalty = ask->frequency_penalty;
    p.seed = ask->seed;
    p.min_tokens = ask->min_tokens;
    p.ignore_eos = ask->ignore_eos;
    p.logprobs = ask->logprobs;
    p.top_logprobs = ask->top_logprobs;
    return p;
}

static const carat_status submitted_status[] = {
    [CT_SUBMIT_TAKEN] = CARAT_OK,     [CT_SUBMIT_WRONG] = CARAT_EINVAL,
    [CT_SUBMIT_NEVER] = CARAT_ELIMIT, [CT_SUBMIT_FULL] = CARAT_EBUSY,
    [CT_SUBMIT_DOWN] = CARAT_EDOWN,   [CT_SUBMIT_MEMORY] = CARAT_ELIMIT,
};

static ct_status check_counts(const carat_ask *ask, const ct_ids *ids, ct_error *err)
{
    if (ask->n > CT_MAX_CHOICES)
        return ct_fail(err, CT_EINVAL, "n is %u, at most %d answers", ask->n, CT_MAX_CHOICES);
    if (ids->n > UINT32_MAX)
        return ct_fail(err, CT_EINVAL, "a prompt of %zu ids", ids->n);
    if (ask->n_stop > CT_MAX_STOP_STRINGS)
        return ct_fail(err, CT_EINVAL, "%zu stop texts, at most %d", ask->n_stop,
                       CT_MAX_STOP_STRINGS);
    for (size_t i = 0; i < ask->n_stop; i++)
        if (!ask->stop || !ask->stop[i])
            return ct_fail(err, CT_EINVAL, "stop[%zu] is NULL", i);
    return CT_OK;
}

static carat_status submit(carat_engine *e, ct_api_request *r, const carat_ask *ask,
                           const ct_ids *ids, carat_request *out, ct_error *err)
{
    ct_str stop[CT_MAX_STOP_STRINGS];
    const ct_answer_options how = {
        .tokenizer = e->model->tokenizer,
        .chat = ask->chat != NULL,
        .tools = &r->tools,
        .prompt = ids->id,
        .n_prompt = ids->n,
        .stop = stop,
        .n_stop = ask->n_stop,
        .stop_include = ask->stop_include,
        .min_tokens = ask->min_tokens,
    };
    const ct_request request = {
        .prompt = ids->id,
        .n_prompt = (uint32_t)ids->n,
        .max_new = ask->max_tokens ? ask->max_tokens : CT_MAX_NEW_ANY,
        .n_choices = r->n_choices,
        .sampling = sampling_of(ask, e->model),
        .stop = stop,
        .n_stop = ct_answer_owns_stop(&how) ? 0 : ask->n_stop,
        .stop_include = ask->stop_include,
        .priority = ask->priority,
        .timeout_s = ask->timeout_s,
        .salt = ask->salt,
        .tag = (uint64_t)(r - e->request),
    };

    if (check_counts(ask, ids, err))
        return CARAT_EINVAL;
    for (size_t i = 0; i < ask->n_stop; i++)
        stop[i] = ct_str_of(ask->stop[i]);
    if (make_answers(r, &how, err))
        return err->status == CT_ELIMIT ? CARAT_ELIMIT : CARAT_EINVAL;
    return submitted_status[ct_engine_submit(e->engine, &request, out, err)];
}

carat_status carat_submit(carat_engine *engine, const carat_ask *ask, carat_request *request,
                          carat_error *err)
{
    carat_status status;
    ct_api_request *r;
    ct_ids ids = {0};
    carat_ask own;
    ct_error why;

    if (!engine)
        ct_fail(&why, CT_EINVAL, "the engine is NULL");
    if (!engine || ct_api_adopt(&own, sizeof own, ask, "carat_ask", &why))
        return ct_api_fail(err, &why);
    r = take_entry(engine);
    if (!r) {
        ct_fail(&why, CT_ELIMIT, "%u requests are open or not polled to their end",
                engine->n_requests);
        return ct_api_fail_as(err, CARAT_EBUSY, &why);
    }
    r->user = own.user;
    r->n_choices = own.n ? own.n : 1;
    if (make_prompt(&ids, r, engine->model, &own, &why))
        status = ct_api_fail(NULL, &why);
    else
        status = submit(engine, r, &own, &ids, request, &why);
    ct_ids_deinit(&ids);
    if (status) {
        put_entry(engine, r);
        ct_api_fail_as(err, status, &why);
    }
    return status;
}
