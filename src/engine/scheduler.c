#include "engine/scheduler.h"

#include <assert.h>

/* --- admission ---------------------------------------------------------------------- */

static bool is_due(const ct_sched_waiter *w)
{
    return w->overtaken >= CT_SCHED_OVERTAKES;
}

/* Whether a stands before b. */
static bool stands_before(const ct_sched_waiter *a, const ct_sched_waiter *b)
{
    if (is_due(a) != is_due(b))
        return is_due(a);
    if (!is_due(a) && a->priority != b->priority)
        return a->priority > b->priority;
    return a->arrival < b->arrival;
}

uint32_t ct_sched_next(const ct_sched_waiter *w, uint32_t n)
{
    uint32_t best = CT_SCHED_NONE;

    for (uint32_t i = 0; i < n; i++) {
        if (!w[i].ready)
            continue;
        if (w[i].tried && is_due(&w[i]))
            return CT_SCHED_NONE;
        if (!w[i].tried && (best == CT_SCHED_NONE || stands_before(&w[i], &w[best])))
            best = i;
    }
    return best;
}

void ct_sched_admitted(ct_sched_waiter *w, uint32_t n, uint32_t which)
{
    const ct_sched_waiter first = w[which];

    for (uint32_t i = 0; i < n; i++)
        if (i != which && w[i].ready &&
            (w[i].arrival < first.arrival || stands_before(&w[i], &first)))
            w[i].overtaken++;
}

/* --- cost ----------------------------------------------------------------------------- */

static double ffn_cost(const ct_config *c)
{
    double cost = 3.0 * c->hidden * c->intermediate;

    if (c->moe)
        cost += 3.0 * c->hidden * c->moe_intermediate * c->top_k + (double)c->hidden * c->n_experts;
    return cost;
}

ct_sched_cost ct_sched_cost_of(const ct_config *c)
{
    ct_sched_cost cost = {.head = (double)c->vocab * c->hidden, .window = c->window};

    for (uint32_t l = 0; l < c->n_layers; l++) {
        const double q = (double)c->n_heads * ct_config_head_dim(c, l);
        const double kv = (double)ct_config_kv_heads(c, l) * ct_config_head_dim(c, l);

        /* A global layer has no v_proj. */
        cost.row += c->hidden * (2 * q + (c->is_global[l] ? 1 : 2) * kv) + ffn_cost(c);
        /* A folded key is made again from its value, which takes about as long. */
        if (c->is_global[l])
            cost.global_key += 4 * q;
        else
            cost.sliding_key += 2 * q;
    }
    return cost;
}

double ct_sched_row_cost(const ct_sched_cost *cost, uint32_t pos, bool logits)
{
    const double keys = pos + 1.0;

    return cost->row + (logits ? cost->head : 0) + cost->global_key * keys +
           cost->sliding_key * (keys < cost->window ? keys : cost->window);
}

/* --- a step's rows -------------------------------------------------------------------- */

typedef struct budget {
    uint32_t rows;
    double cost;
    bool by_cost; /* only while something decodes */
    bool spent;   /* something has been planned */
} budget;

static budget plan_decode(const ct_sched_limits *limits, ct_sched_seq *seq, uint32_t n_seqs)
{
    budget b = {.rows = limits->step_rows};
    double decode = 0;

    for (uint32_t i = 0; i < n_seqs; i++) {
        seq[i].n = 0;
        if (seq[i].mode != CT_SCHED_DECODE)
            continue;
        assert(b.rows > 0);
        seq[i].n = 1;
        b.rows--;
        b.by_cost = true;
        decode += ct_sched_row_cost(&limits->cost, seq[i].pos, true);
    }
    if (decode < limits->free_rows * limits->cost.row)
        decode = limits->free_rows * limits->cost.row;
    b.cost = CT_SCHED_SHARE * decode;
    return b;
}

/* Whether prompt a is served before prompt b. */
static bool goes_before(const ct_sched_seq *a, const ct_sched_seq *b)
{
    const bool a_late = a->unserved >= CT_SCHED_PATIENCE, b_late = b->unserved >= CT_SCHED_PATIENCE;

    if (a_late || b_late)
        return a->unserved > b->unserved;
    return a->left < b->left;
}

static ct_sched_seq *next_prompt(ct_sched_seq *seq, uint32_t n_seqs)
{
    ct_sched_seq *best = NULL;

    for (uint32_t i = 0; i < n_seqs; i++)
        if (seq[i].mode == CT_SCHED_PREFILL && seq[i].n == 0 &&
            (!best || goes_before(&seq[i], best)))
            best = &seq[i];
    return best;
}

/* As many rows of one prompt as the budget has; the first row of a step's prompts always. */
static void plan_chunk(const ct_sched_limits *limits, budget *b, ct_sched_seq *s)
{
    assert(s->cut > 0 && s->cut <= s->left);
    while (b->rows > 0 && s->n < s->cut) {
        double cost =
            ct_sched_row_cost(&limits->cost, s->pos + s->n, s->all_logits || s->n + 1 == s->left);

        if (b->by_cost && b->spent && cost > b->cost)
            return;
        s->n++;
        b->rows--;
        b->cost -= cost;
        b->spent = true;
    }
}

void ct_sched_plan(const ct_sched_limits *limits, ct_sched_seq *seq, uint32_t n_seqs)
{
    budget b = plan_decode(limits, seq, n_seqs);

    for (;;) {
        ct_sched_seq *s = b.rows ? next_prompt(seq, n_seqs) : NULL;

        if (!s)
            break;
        plan_chunk(limits, &b, s);
        if (s->n == 0)
            break;
    }
    for (uint32_t i = 0; i < n_seqs; i++)
        if (seq[i].mode == CT_SCHED_PREFILL)
            seq[i].unserved = seq[i].n ? 0 : seq[i].unserved + 1;
}
