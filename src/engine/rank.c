#include "engine/rank.h"

#include "engine/lanes.h"

#include <string.h>

/* Rows are scanned in blocks, a whole one at a time where nothing in it matters. */
#define BLOCK 16

static float row_max(const float *row, uint32_t vocab)
{
    ct_f4 lane[4];
    float best = -INFINITY;
    uint32_t i = 0;

    for (int j = 0; j < 4; j++)
        lane[j] = ct_f4_all(-INFINITY);
    for (; i + BLOCK <= vocab; i += BLOCK)
        for (int j = 0; j < 4; j++) {
            ct_f4 l = ct_f4_load(row + i + 4 * j);

            lane[j] = ct_f4_select(l > lane[j], l, lane[j]);
        }
    for (; i < vocab; i++)
        best = row[i] > best ? row[i] : best;
    for (int j = 0; j < 16; j++)
        best = lane[j / 4][j % 4] > best ? lane[j / 4][j % 4] : best;
    return best;
}

static bool any_at_least(const float *block, float limit)
{
    ct_i4 any = {0};

    for (int j = 0; j < BLOCK; j += 4)
        any |= ct_f4_load(block + j) >= limit;
    return ct_i4_any(any);
}

static bool any_above(const float *block, float limit)
{
    ct_i4 any = {0};

    for (int j = 0; j < BLOCK; j += 4)
        any |= ct_f4_load(block + j) > limit;
    return ct_i4_any(any);
}

uint64_t ct_rank_best(const float *row, uint32_t vocab)
{
    float best = row_max(row, vocab);
    uint32_t id = 0;

    if (!(best > -INFINITY))
        return CT_RANK_NONE;
    best = best < FLT_MAX ? best : FLT_MAX; /* +inf and FLT_MAX are one value */
    while (id + BLOCK <= vocab && !any_at_least(row + id, best))
        id += BLOCK;
    while (!(row[id] >= best))
        id++;
    return ct_rank_key(best, id);
}

/* Restores the heap, whose root is its worst key, after a change at i. */
static void sift_down(uint64_t *heap, size_t n, size_t i)
{
    uint64_t moved = heap[i];

    for (;;) {
        size_t c = 2 * i + 1;

        if (c >= n)
            break;
        c += c + 1 < n && heap[c + 1] > heap[c];
        if (heap[c] <= moved)
            break;
        heap[i] = heap[c];
        i = c;
    }
    heap[i] = moved;
}

static void make_heap(uint64_t *heap, size_t n)
{
    for (size_t i = n / 2; i-- > 0;)
        sift_down(heap, n, i);
}

static void sort_heap(uint64_t *heap, size_t n)
{
    while (n > 1) {
        uint64_t worst = heap[0];

        heap[0] = heap[--n];
        heap[n] = worst;
        sift_down(heap, n, 0);
    }
}

/* The heap is full: an id gets in when its logit is above the worst one's, because an
 * equal one has a higher id. */
static void scan_rest(uint64_t *heap, size_t k, const float *row, uint32_t id, uint32_t vocab)
{
    float limit = ct_rank_logit(heap[0]);

    while (id < vocab) {
        uint32_t end = vocab - id < BLOCK ? vocab : id + BLOCK;

        if (end - id == BLOCK && !any_above(row + id, limit)) {
            id = end;
            continue;
        }
        for (; id < end; id++) {
            if (!(row[id] > limit))
                continue;
            if (ct_rank_key(row[id], id) < heap[0]) {
                heap[0] = ct_rank_key(row[id], id);
                sift_down(heap, k, 0);
                limit = ct_rank_logit(heap[0]);
            }
        }
    }
}

size_t ct_rank_top(uint64_t *out, size_t k, const float *row, uint32_t vocab)
{
    size_t n = 0;
    uint32_t id = 0;

    for (; id < vocab && n < k; id++)
        if (row[id] > -INFINITY)
            out[n++] = ct_rank_key(row[id], id);
    make_heap(out, n);
    if (n)
        scan_rest(out, n, row, id, vocab);
    sort_heap(out, n);
    return n;
}

#define DIGIT_BITS 11
#define N_DIGITS   (1 << DIGIT_BITS)
#define TOP_DIGIT  (64 - DIGIT_BITS)

/* One pass of a radix sort: stable, by the digit at `shift`. */
static void sort_pass(uint64_t *to, const uint64_t *from, size_t n, unsigned shift)
{
    uint32_t at[N_DIGITS] = {0}, sum = 0;

    for (size_t i = 0; i < n; i++)
        at[from[i] >> shift & (N_DIGITS - 1)]++;
    for (size_t d = 0; d < N_DIGITS; d++) {
        uint32_t count = at[d];

        at[d] = sum;
        sum += count;
    }
    for (size_t i = 0; i < n; i++)
        to[at[from[i] >> shift & (N_DIGITS - 1)]++] = from[i];
}

/* A key that about k keys do not exceed, k of them at least if there are so many: by
 * counting the leading digit. */
static uint64_t find_limit(const float *row, uint32_t vocab, size_t k)
{
    uint32_t count[N_DIGITS] = {0};
    size_t sum = 0, d = 0;

    for (uint32_t id = 0; id < vocab; id++)
        count[ct_rank_key(row[id], id) >> TOP_DIGIT] += row[id] > -INFINITY;
    while (d < N_DIGITS - 1 && sum + count[d] < k)
        sum += count[d++];
    return ((uint64_t)(d + 1) << TOP_DIGIT) - 1;
}

size_t ct_rank_many(uint64_t *out, uint64_t *spare, size_t k, const float *row, uint32_t vocab)
{
    uint64_t limit = k < vocab ? find_limit(row, vocab, k) : UINT64_MAX;
    size_t n = 0;

    for (uint32_t id = 0; id < vocab; id++) {
        uint64_t key = ct_rank_key(row[id], id);

        spare[n] = key;
        n += row[id] > -INFINITY && key <= limit;
    }
    /* Ids are ascending already, so the 32 bits of the logit are all there is to sort. */
    sort_pass(out, spare, n, 32);
    sort_pass(spare, out, n, 32 + DIGIT_BITS);
    sort_pass(out, spare, n, 32 + 2 * DIGIT_BITS);
    return n;
}
