/* Speed of the text layer: loading a tokenizer, encoding files, rendering and encoding a
 * conversation.  One JSON line a measurement; times are medians in milliseconds of the
 * clock and of this thread (cpu_), which a busy machine disturbs less. */
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
#define PART_BYTES  ((size_t)4096)

static ct_error err;

static void must(ct_status st)
{
    if (!st)
        return;
    fprintf(stderr, "bench_text: %s\n", err.text);
    exit(1);
}

typedef struct timing {
    double ms[ROUNDS], cpu_ms[ROUNDS];
} timing;

static double cpu_now_s(void)
{
    struct timespec t;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void begin(timing *t, int round)
{
    t->ms[round] = ct_now_s();
    t->cpu_ms[round] = cpu_now_s();
}

static void end(timing *t, int round)
{
    t->cpu_ms[round] = (cpu_now_s() - t->cpu_ms[round]) * 1e3;
    t->ms[round] = (ct_now_s() - t->ms[round]) * 1e3;
}

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static double median(const double ms[ROUNDS])
{
    double sorted[ROUNDS];

    memcpy(sorted, ms, sizeof sorted);
    qsort(sorted, ROUNDS, sizeof *sorted, by_value);
    return sorted[ROUNDS / 2];
}

static void print_timing(const char *name, const timing *t)
{
    printf("\"%sms\": %.3f, \"%scpu_ms\": %.3f, \"%sfirst_cpu_ms\": %.3f", name, median(t->ms),
           name, median(t->cpu_ms), name, t->cpu_ms[0]);
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
    timing load;
    long kb = 0;

    for (int i = 0; i < ROUNDS; i++) {
        ct_tokenizer_destroy(t);
        t = NULL;
        begin(&load, i);
        must(ct_tokenizer_open(&t, path, &err));
        end(&load, i);
        if (i == 0)
            kb = peak_kb();
    }
    printf("{\"what\": \"load\", \"peak_mb\": %.1f, ", (double)kb / 1024);
    print_timing("", &load);
    printf("}\n");
    return t;
}

/* The text in documents of about PART_BYTES, each ending behind a newline. */
static void encode_parts(const ct_tokenizer *t, ct_str text, ct_ids *ids)
{
    while (text.n) {
        size_t n = ct_min_size(PART_BYTES, text.n);
        const char *newline = memchr(text.p + n - 1, '\n', text.n - n + 1);

        n = newline ? (size_t)(newline + 1 - text.p) : text.n;
        ids->n = 0;
        must(ct_tokenizer_encode(t, (ct_str){text.p, n}, CT_SPECIAL_MATCH, ids, &err));
        text = (ct_str){text.p + n, text.n - n};
    }
}

static void bench_encode(const ct_tokenizer *t, const char *path)
{
    timing whole, parts;
    ct_ids ids = {0};
    ct_map map;

    must(ct_map_open(&map, path, &err));
    for (int i = 0; i < ROUNDS; i++) {
        begin(&parts, i);
        encode_parts(t, ct_map_str(&map), &ids);
        end(&parts, i);
        ids.n = 0;
        begin(&whole, i);
        must(ct_tokenizer_encode(t, ct_map_str(&map), CT_SPECIAL_MATCH, &ids, &err));
        end(&whole, i);
    }
    printf("{\"what\": \"encode\", \"file\": \"%s\", \"bytes\": %zu, \"ids\": %zu, \"hash\": "
           "\"%016" PRIx64 "\", ",
           path, map.size, ids.n, hash_of(&ids));
    print_timing("", &whole);
    printf(", ");
    print_timing("parts_", &parts);
    printf("}\n");
    ct_ids_deinit(&ids);
    ct_map_close(&map);
}

static void bench_chat(const ct_tokenizer *t, const char *template, const char *request)
{
    ct_chat_template chat = {0};
    ct_arena a = {0}, scratch = {0};
    const ct_value *value;
    timing render, both;
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
        ct_buf_clear(&out);
        ids.n = 0;
        begin(&both, i);
        begin(&render, i);
        must(ct_chat_render(chat.jinja, ct_buf_str(&chat.bos), value, &scratch, &out, &err));
        end(&render, i);
        must(ct_tokenizer_encode(t, ct_buf_str(&out), CT_SPECIAL_MATCH, &ids, &err));
        end(&both, i);
        ct_arena_rewind(&scratch, 0);
    }
    printf("{\"what\": \"chat\", \"bytes\": %zu, \"ids\": %zu, ", out.n, ids.n);
    print_timing("", &both);
    printf(", ");
    print_timing("render_", &render);
    printf("}\n");
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
