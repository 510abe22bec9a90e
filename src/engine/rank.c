#include "engine/rank.h"

#include <stdbool.h>
#include <string.h>

/* Rows are scanned in blocks: the loop over one has no branch, so that it becomes vector
 * instructions.  Every comparison with NaN is false, which skips it. */
#define BLOCK 16

static float row_max(const float *row, uint32_t vocab)
{
    float lane[BLOCK], best = -INFINITY;
    uint32_t i = 0;

    for (int j = 0; j < BLOCK; j++)
        lane[j] = -INFINITY;
    for (; i + BLOCK <= vocab; i += BLOCK)
        for (int j = 0; j < BLOCK; j++)
            lane[j] = row[i + (uint32_t)j] > lane[j] ? row[i + (uint32_t)j] : lane[j];
    for (; i < vocab; i++)
        best = row[i] > best ? row[i] : best;
    for (int j = 0; j < BLOCK; j++)
        best = lane[j] > best ? lane[j] : best;
    return best;
}

uint64_t ct_rank_best(const float *row, uint32_t vocab)
{
    float best = row_max(row, vocab);

    if (best > -INFINITY)
        for (uint32_t id = 0; id < vocab; id++)
            /* +inf and FLT_MAX are one value. */
            if (row[id] == best || (best > FLT_MAX && row[id] == FLT_MAX))
                return ct_rank_key(row[id], id);
    return CT_RANK_NONE;
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

static bool any_above(const float *block, float limit)
{
    int any = 0;

    for (int j = 0; j < BLOCK; j++)
        any |= block[j] > limit;
    return any;
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

size_t ct_rank_all(uint64_t *out, uint64_t *spare, const float *row, uint32_t vocab)
{
    size_t n = 0;

    for (uint32_t id = 0; id < vocab; id++) {
        spare[n] = ct_rank_key(row[id], id);
        n += row[id] > -INFINITY;
    }
    /* Ids are ascending already, so the 32 bits of the logit are all there is to sort. */
    sort_pass(out, spare, n, 32);
    sort_pass(spare, out, n, 32 + DIGIT_BITS);
    sort_pass(out, spare, n, 32 + 2 * DIGIT_BITS);
    return n;
}
