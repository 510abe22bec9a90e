/* The order of service: who is admitted next, and which rows a step computes.
 *
 * Pure policy over small records: no model, no clock, no memory of its own.  Its promises:
 *
 * - Of those that wait, the highest priority is first, and of one priority the oldest.  One
 *   that does not fit yet lets others pass, and a higher priority passes as well; but when
 *   CT_SCHED_OVERTAKES choices have passed it, nothing is admitted before it any more.
 * - Every sequence that decodes has a row in every step.
 * - While any decodes, the prompt rows of a step cost at most CT_SCHED_SHARE times what the
 *   decode rows do, by arithmetic counted, not by time measured: a step beside prompts
 *   takes about 1 + CT_SCHED_SHARE times as long as one without.  Otherwise the step's rows
 *   are the limit.
 * - Of the prompts being computed, the one with the fewest rows left is first, so that a
 *   short one is not stuck behind a long one; but one that had no row for
 *   CT_SCHED_PATIENCE steps goes before.  So of k such prompts each has a row at least
 *   every CT_SCHED_PATIENCE + k steps. */
#ifndef CT_ENGINE_SCHEDULER_H
#define CT_ENGINE_SCHEDULER_H

#include "format/config.h"

#include <stdbool.h>
#include <stdint.h>

#define CT_SCHED_OVERTAKES 16
#define CT_SCHED_TRIES     8 /* that do not fit, in one round of admission */
#define CT_SCHED_PATIENCE  8
#define CT_SCHED_SHARE     1.0
#define CT_SCHED_NONE      UINT32_MAX

/* --- admission ---------------------------------------------------------------------- */

typedef struct ct_sched_waiter {
    uint64_t arrival; /* unique, growing */
    int32_t priority;
    uint32_t overtaken; /* choices of others admitted that came later or stood behind it */
    bool ready;         /* false: waits for its own first choice, is passed without count */
    bool tried;         /* does not fit, in this round */
} ct_sched_waiter;

/* Index of the next to try in this round, or CT_SCHED_NONE: all were tried, or one of these
 * must not be passed any more. */
uint32_t ct_sched_next(const ct_sched_waiter *w, uint32_t n);
/* It was admitted: counts those it passed. */
void ct_sched_admitted(ct_sched_waiter *w, uint32_t n, uint32_t which);

/* --- a step's rows -------------------------------------------------------------------- */

/* Multiplications of one row, from the config. */
typedef struct ct_sched_cost {
    double row;  /* in all layers, attention's products with keys and values apart */
    double head; /* logits */
    double global_key, sliding_key; /* a visible key, in all layers of the family */
    uint32_t window;
} ct_sched_cost;

ct_sched_cost ct_sched_cost_of(const ct_config *c);
double ct_sched_row_cost(const ct_sched_cost *cost, uint32_t pos, bool logits);

typedef enum ct_sched_mode { CT_SCHED_IDLE, CT_SCHED_PREFILL, CT_SCHED_DECODE } ct_sched_mode;

typedef struct ct_sched_seq {
    ct_sched_mode mode;
    uint32_t pos;      /* of its next row */
    uint32_t left;     /* prefill: rows to go */
    uint32_t cut;      /* prefill: rows until the chunk must end, 1 to left */
    bool all_logits;   /* prefill: every row pays for logits */
    uint32_t unserved; /* prefill: steps in a row without a row; kept by the plan */
    uint32_t n;        /* out: rows in this step, from pos on */
} ct_sched_seq;

typedef struct ct_sched_limits {
    uint32_t step_rows; /* at least the number of sequences */
    uint32_t free_rows; /* rows whose cost a step does not feel, at least 1 */
    ct_sched_cost cost;
} ct_sched_limits;

/* Sets n of every sequence.  Some row is planned whenever some sequence is not idle. */
void ct_sched_plan(const ct_sched_limits *limits, ct_sched_seq *seq, uint32_t n_seqs);

#endif
