/* Speed of the text layer: loading a tokenizer, encoding files, rendering and encoding a
 * conversation.  One JSON line a measurement, times in milliseconds, medians. */
#include "base/checked.h"
#include "base/clock.h"
#include "base/map.h"
#include "text/chat.h"
#include "text/tokenizer.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#define ROUNDS      7
#define ARENA_BYTES ((size_t)64 << 20)

static ct_error err;

static void must(ct_status st)
{
    if (!st)
        return;
    fprintf(stderr, "bench_text: %s\n", err.text);
    exit(1);
}

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static double median(double ms[ROUNDS])
{
    qsort(ms, ROUNDS, sizeof *ms, by_value);
    return ms[ROUNDS / 2];
}

static double ms_since(double begin)
{
    return (ct_now_s() - begin) * 1e3;
}

/* Of this process, since it began. */
static long peak_kb(void)
{
    FILE *f = fopen("/proc/self/status", "r");
    char line[256];
    long kb = -1;

    while (f && fgets(line, sizeof line, f))
        if (sscanf(line, "VmHWM: %ld", &kb) == 1)
            break;
    if (f)
        fclose(f);
    return kb;
}

/* FNV-1a over the ids, so that a peer can tell that it made the same ones. */
static uint64_t hash_of(const ct_ids *ids)
{
    uint64_t h = 0xcbf29ce484222325u;

    for (size_t i = 0; i < ids->n; i++)
        h = (h ^ ids->id[i]) * 0x100000001b3u;
    return h;
}

static ct_tokenizer *bench_load(const char *path)
{
    ct_tokenizer *t = NULL;
    double ms[ROUNDS];
    long kb = 0;

    for (int i = 0; i < ROUNDS; i++) {
        double begin = ct_now_s();

        ct_tokenizer_destroy(t);
        t = NULL;
        begin = ct_now_s();
        must(ct_tokenizer_open(&t, path, &err));
        ms[i] = ms_since(begin);
        if (i == 0)
            kb = peak_kb();
    }
    printf("{\"what\": \"load\", \"ms\": %.3f, \"peak_mb\": %.1f}\n", median(ms),
           (double)kb / 1024);
    return t;
}

static void bench_encode(const ct_tokenizer *t, const char *path)
{
    ct_ids ids = {0};
    double ms[ROUNDS], first = 0;
    ct_map map;

    must(ct_map_open(&map, path, &err));
    for (int i = 0; i < ROUNDS; i++) {
        double begin = ct_now_s();

        ids.n = 0;
        must(ct_tokenizer_encode(t, ct_map_str(&map), CT_SPECIAL_MATCH, &ids, &err));
        ms[i] = ms_since(begin);
        if (i == 0)
            first = ms[i];
    }
    printf("{\"what\": \"encode\", \"file\": \"%s\", \"bytes\": %zu, \"ids\": %zu, \"hash\": "
           "\"%016" PRIx64 "\", \"ms\": %.3f, \"first_ms\": %.3f}\n",
           path, map.size, ids.n, hash_of(&ids), median(ms), first);
    ct_ids_deinit(&ids);
    ct_map_close(&map);
}

static void bench_chat(const ct_tokenizer *t, const char *template, const char *request)
{
    double render[ROUNDS], both[ROUNDS];
    ct_chat_template chat = {0};
    const ct_value *value;
    ct_arena a = {0}, scratch = {0};
    ct_ids ids = {0};
    ct_buf out;
    ct_map map;

    must(ct_chat_template_open(&chat, NULL, template, &err));
    must(ct_arena_init(&a, ARENA_BYTES, &err));
    must(ct_arena_init(&scratch, ARENA_BYTES, &err));
    must(ct_map_open(&map, request, &err));
    must(ct_value_parse(&value, request, ct_map_str(&map), &a, &err));
    ct_buf_init(&out, ARENA_BYTES);
    for (int i = 0; i < ROUNDS; i++) {
        double begin = ct_now_s();

        ct_buf_clear(&out);
        ids.n = 0;
        must(ct_chat_render(chat.jinja, ct_buf_str(&chat.bos), value, &scratch, &out, &err));
        render[i] = ms_since(begin);
        must(ct_tokenizer_encode(t, ct_buf_str(&out), CT_SPECIAL_MATCH, &ids, &err));
        both[i] = ms_since(begin);
        ct_arena_rewind(&scratch, 0);
    }
    printf("{\"what\": \"chat\", \"bytes\": %zu, \"ids\": %zu, \"hash\": \"%016" PRIx64
           "\", \"render_ms\": %.3f, \"ms\": %.3f, \"first_ms\": %.3f}\n",
           out.n, ids.n, hash_of(&ids), median(render), median(both), both[0]);
    ct_chat_template_close(&chat);
    ct_arena_deinit(&a);
    ct_arena_deinit(&scratch);
    ct_buf_deinit(&out);
    ct_ids_deinit(&ids);
    ct_map_close(&map);
}

/* usage: bench_text TOKENIZER.json [-t TEMPLATE -r REQUEST.json] [FILE ...] */
int main(int argc, char **argv)
{
    int at = 2;
    ct_tokenizer *t;

    if (argc < 2) {
        fprintf(stderr, "usage: bench_text TOKENIZER.json [-t TEMPLATE -r REQUEST] [FILE ...]\n");
        return 2;
    }
    t = bench_load(argv[1]);
    if (argc >= 6 && !strcmp(argv[2], "-t") && !strcmp(argv[4], "-r")) {
        bench_chat(t, argv[3], argv[5]);
        at = 6;
    }
    for (; at < argc; at++)
        bench_encode(t, argv[at]);
    ct_tokenizer_destroy(t);
    return 0;
}
