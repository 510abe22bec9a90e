/* Asks a model one question and prints the answer as it comes.
 *   cc -o hello hello.c $(pkg-config --cflags --libs carat)
 *   ./hello models/demo "What is the capital of France?" */
#include <carat.h>

#include <stdio.h>

static int complain(const carat_error *err)
{
    fprintf(stderr, "hello: %s\n", err->text);
    return 1;
}

static int listen(carat_engine *engine)
{
    const carat_event *e;

    while ((e = carat_poll(engine, 60.0))) {
        if (e->kind == CARAT_CONTENT)
            fwrite(e->text, 1, e->text_bytes, stdout);
        fflush(stdout);
        if (e->kind != CARAT_DONE)
            continue;
        printf("\n(%s; %u tokens in, %u out)\n", e->error ? e->error : e->finish,
               (unsigned)e->usage.prompt_tokens, (unsigned)e->usage.answer_tokens);
        return e->error != NULL;
    }
    return 1; /* nothing came for a minute */
}

int main(int argc, char **argv)
{
    char chat[4096];
    carat_engine_options options;
    carat_engine *engine = NULL;
    carat_model *model = NULL;
    carat_request request;
    carat_error err;
    carat_ask ask;
    int status = 1;

    if (argc != 3)
        return 2;
    if (carat_model_open(&model, argv[1], &err))
        return complain(&err);
    carat_engine_options_init(&options);
    options.slots = 1;
    carat_ask_init(&ask, model);
    snprintf(chat, sizeof chat, "[{\"role\": \"user\", \"content\": \"%s\"}]", argv[2]);
    ask.chat = chat;
    ask.temperature = 0;
    if (carat_engine_create(&engine, model, &options, &err) ||
        carat_submit(engine, &ask, &request, &err))
        status = complain(&err);
    else
        status = listen(engine);
    carat_engine_destroy(engine);
    carat_model_close(model);
    return status;
}
