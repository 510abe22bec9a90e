#include "text/replay_store.h"

#include "base/checked.h"
#include "text/ids.h"

#include <pthread.h>
#include <stdlib.h>

#define BUCKETS 4096

typedef struct turn turn;
struct turn {
    turn *next;          /* in the bucket */
    turn *newer, *older; /* by use */
    uint64_t hash;
    size_t n_bytes;
    size_t n_before, n_message, n_thought; /* bytes at the end, in this order */
    size_t n_prompt, n_ids;
    uint32_t id[];
};

struct ct_replay_store {
    pthread_mutex_t lock;
    turn *bucket[BUCKETS];
    turn *newest, *oldest;
    ct_replay_stats stats;
};

ct_status ct_replay_store_create(ct_replay_store **out, size_t cap_bytes, ct_error *err)
{
    ct_replay_store *s = calloc(1, sizeof *s);

    if (!s)
        return ct_fail(err, CT_ELIMIT, "no memory for the store of turns");
    if (pthread_mutex_init(&s->lock, NULL)) {
        free(s);
        return ct_fail(err, CT_EIO, "no lock for the store of turns");
    }
    s->stats.cap_bytes = cap_bytes;
    *out = s;
    return CT_OK;
}

void ct_replay_store_destroy(ct_replay_store *s)
{
    if (!s)
        return;
    for (turn *t = s->newest; t;) {
        turn *older = t->older;

        free(t);
        t = older;
    }
    pthread_mutex_destroy(&s->lock);
    free(s);
}

uint64_t ct_replay_hash_start(void)
{
    return UINT64_C(0xcbf29ce484222325);
}

/* FNV-1a over words: only has to spread, every hit is compared in full. */
uint64_t ct_replay_hash(uint64_t h, const void *bytes, size_t n)
{
    const unsigned char *p = bytes;
    uint64_t word = 0;

    for (; n >= sizeof word; n -= sizeof word, p += sizeof word) {
        memcpy(&word, p, sizeof word);
        h = (h ^ word) * UINT64_C(0x9e3779b97f4a7c15);
        h ^= h >> 32;
    }
    for (; n; n--)
        h = (h ^ *p++) * UINT64_C(0x100000001b3);
    return h ^ h >> 29;
}

static const char *texts_of(const turn *t)
{
    return (const char *)(t->id + t->n_ids);
}

static bool same_bytes(const char *p, size_t n, ct_str s)
{
    return ct_str_eq((ct_str){p, n}, s);
}

static bool matches(const turn *t, const ct_replay_key *key)
{
    const char *p = texts_of(t);

    return t->hash == key->hash && same_bytes(p, t->n_before, key->before) &&
           same_bytes(p + t->n_before, t->n_message, key->message) &&
           (!key->thought.n ||
            same_bytes(p + t->n_before + t->n_message, t->n_thought, key->thought));
}

static void unlink_use(ct_replay_store *s, turn *t)
{
    *(t->newer ? &t->newer->older : &s->newest) = t->older;
    *(t->older ? &t->older->newer : &s->oldest) = t->newer;
}

static void link_use(ct_replay_store *s, turn *t)
{
    t->newer = NULL;
    t->older = s->newest;
    *(s->newest ? &s->newest->newer : &s->oldest) = t;
    s->newest = t;
}

static void discard(ct_replay_store *s, turn *t)
{
    turn **at = &s->bucket[t->hash % BUCKETS];

    while (*at != t)
        at = &(*at)->next;
    *at = t->next;
    unlink_use(s, t);
    s->stats.used_bytes -= t->n_bytes;
    s->stats.n_turns--;
    free(t);
}

static turn *lookup(ct_replay_store *s, const ct_replay_key *key)
{
    turn *t = s->bucket[key->hash % BUCKETS];

    while (t && !matches(t, key))
        t = t->next;
    return t;
}

static bool turn_bytes(const ct_replay_key *key, const ct_replay_turn *v, size_t *out)
{
    size_t n = sizeof(turn), ids;

    return ct_add_size(&ids, v->n_prompt, v->n_generated) &&
           ct_mul_size(&ids, ids, sizeof(uint32_t)) && ct_add_size(&n, n, ids) &&
           ct_add_size(&n, n, key->before.n) && ct_add_size(&n, n, key->message.n) &&
           ct_add_size(out, n, key->thought.n);
}

static char *append(char *p, ct_str s)
{
    if (s.n)
        memcpy(p, s.p, s.n);
    return p + s.n;
}

static turn *turn_create(const ct_replay_key *key, const ct_replay_turn *v, size_t n_bytes)
{
    turn *t = malloc(n_bytes);
    char *p;

    if (!t)
        return NULL;
    *t = (turn){.hash = key->hash,
                .n_bytes = n_bytes,
                .n_before = key->before.n,
                .n_message = key->message.n,
                .n_thought = key->thought.n,
                .n_prompt = v->n_prompt,
                .n_ids = v->n_prompt + v->n_generated};
    if (v->n_prompt)
        memcpy(t->id, v->prompt, v->n_prompt * sizeof *t->id);
    if (v->n_generated)
        memcpy(t->id + v->n_prompt, v->generated, v->n_generated * sizeof *t->id);
    p = append((char *)(t->id + t->n_ids), key->before);
    p = append(p, key->message);
    append(p, key->thought);
    return t;
}

/* A store without room or memory keeps less: its turns only save work. */
void ct_replay_store_put(ct_replay_store *s, const ct_replay_key *key, const ct_replay_turn *v)
{
    size_t n_bytes;
    turn *t, *old;

    if (!turn_bytes(key, v, &n_bytes) || n_bytes > s->stats.cap_bytes)
        return;
    t = turn_create(key, v, n_bytes);
    if (!t)
        return;
    pthread_mutex_lock(&s->lock);
    old = lookup(s, key);
    if (old)
        discard(s, old);
    while (s->oldest && s->stats.used_bytes > s->stats.cap_bytes - n_bytes) {
        discard(s, s->oldest);
        s->stats.n_evicted++;
    }
    t->next = s->bucket[t->hash % BUCKETS];
    s->bucket[t->hash % BUCKETS] = t;
    link_use(s, t);
    s->stats.used_bytes += n_bytes;
    s->stats.n_turns++;
    pthread_mutex_unlock(&s->lock);
}

ct_status ct_replay_store_find(ct_replay_store *s, const ct_replay_key *key, ct_ids *out,
                               size_t *n_prompt, bool *found, ct_error *err)
{
    ct_status st = CT_OK;
    turn *t;

    pthread_mutex_lock(&s->lock);
    t = lookup(s, key);
    *found = t != NULL;
    if (t) {
        unlink_use(s, t);
        link_use(s, t);
        *n_prompt = t->n_prompt;
        st = ct_ids_append(out, t->id, t->n_ids, err);
    }
    pthread_mutex_unlock(&s->lock);
    return st;
}

void ct_replay_store_count(ct_replay_store *s, bool hit)
{
    pthread_mutex_lock(&s->lock);
    *(hit ? &s->stats.n_hits : &s->stats.n_misses) += 1;
    pthread_mutex_unlock(&s->lock);
}

ct_replay_stats ct_replay_store_stats(ct_replay_store *s)
{
    ct_replay_stats stats;

    pthread_mutex_lock(&s->lock);
    stats = s->stats;
    pthread_mutex_unlock(&s->lock);
    return stats;
}
