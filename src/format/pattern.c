#include "format/pattern.h"

#include <assert.h>

/* A compiled expression is a list of steps run on all alternatives at once (Thompson's
 * construction), hence never backtracking. */
#define MAX_STEPS 1024
#define MAX_SETS  32
#define MAX_DEPTH 16

typedef enum op { OP_CHAR, OP_ANY, OP_SET, OP_SPLIT, OP_JUMP, OP_START, OP_END, OP_MATCH } op;

typedef struct step {
    op op;
    int16_t x, y; /* SPLIT, JUMP: distances, so that code can be moved; SET: its number */
    unsigned char c;
} step;

typedef struct byte_set {
    uint64_t bits[4];
} byte_set;

struct ct_pattern {
    ct_str text;      /* borrowed: caller */
    size_t n_literal; /* bytes before the first wildcard of a shell pattern */
    const step *step;
    const byte_set *set;
    unsigned n_steps; /* 0: a literal or shell pattern */
};

typedef struct compiler {
    ct_str text;
    size_t at;
    unsigned depth;
    const char *bad; /* first thing that cannot be compiled */
    int n_steps, n_sets;
    step step[MAX_STEPS];
    byte_set set[MAX_SETS];
} compiler;

static bool is_expression(ct_str text)
{
    return ct_str_starts(text, "re:");
}

static int peek(const compiler *c)
{
    return c->at < c->text.n ? (unsigned char)c->text.p[c->at] : -1;
}

static void refuse(compiler *c, const char *what)
{
    if (!c->bad)
        c->bad = what;
}

static void emit(compiler *c, step s)
{
    if (c->n_steps == MAX_STEPS)
        refuse(c, "too many steps");
    else
        c->step[c->n_steps++] = s;
}

/* Puts s before the code that begins at `at`. */
static void insert(compiler *c, int at, step s)
{
    emit(c, s);
    if (c->bad)
        return;
    memmove(c->step + at + 1, c->step + at, (size_t)(c->n_steps - 1 - at) * sizeof *c->step);
    c->step[at] = s;
}

static void set_add(byte_set *s, unsigned first, unsigned last)
{
    for (unsigned b = first; b <= last && b < 256; b++)
        s->bits[b / 64] |= (uint64_t)1 << b % 64;
}

static bool set_has(const byte_set *s, unsigned char b)
{
    return s->bits[b / 64] >> b % 64 & 1;
}

/* The byte after a backslash: a class letter fills the set and gives -1, punctuation
 * stands for itself. */
static int read_escape(compiler *c, byte_set *s)
{
    int b = peek(c);

    c->at++;
    switch (b) {
    case 'w':
        set_add(s, 'a', 'z');
        set_add(s, 'A', 'Z');
        set_add(s, '_', '_');
        set_add(s, '0', '9');
        return -1;
    case 'd':
        set_add(s, '0', '9');
        return -1;
    case 's':
        set_add(s, '\t', '\r');
        set_add(s, ' ', ' ');
        return -1;
    default:
        if (b < '!' || b > '~' || (b >= '0' && b <= '9') ||
            ((b | 0x20) >= 'a' && (b | 0x20) <= 'z'))
            refuse(c, "an unknown escape");
        return b;
    }
}

/* One member of a class, or the end of a range: a byte, or -1 after \d and the like. */
static int read_member(compiler *c, byte_set *s)
{
    int b = peek(c);

    if (b < 0) {
        refuse(c, "an unclosed class");
        return -1;
    }
    c->at++;
    return b == '\\' ? read_escape(c, s) : b;
}

/* Behind the '['. */
static void read_class(compiler *c, byte_set *s)
{
    bool negated = peek(c) == '^', first = true;

    c->at += negated;
    while (!c->bad && (first || peek(c) != ']')) {
        int low = read_member(c, s), high = low;

        first = false;
        if (low < 0)
            continue;
        if (peek(c) == '-' && c->at + 1 < c->text.n && c->text.p[c->at + 1] != ']') {
            c->at++;
            high = read_member(c, s);
            if (high < low)
                refuse(c, "a reversed range");
        }
        if (!c->bad)
            set_add(s, (unsigned)low, (unsigned)high);
    }
    c->at++;
    for (int i = 0; negated && i < 4; i++)
        s->bits[i] = ~s->bits[i];
}

static void emit_set(compiler *c, const byte_set *s)
{
    if (c->n_sets == MAX_SETS) {
        refuse(c, "too many classes");
        return;
    }
    c->set[c->n_sets] = *s;
    emit(c, (step){.op = OP_SET, .x = (int16_t)c->n_sets++});
}

static void compile_choice(compiler *c);

/* Behind the '('. */
static void compile_group(compiler *c)
{
    if (peek(c) == '?') {
        if (c->at + 1 >= c->text.n || c->text.p[c->at + 1] != ':') {
            refuse(c, "a group of an unknown kind");
            return;
        }
        c->at += 2;
    }
    if (c->depth == MAX_DEPTH) {
        refuse(c, "groups nested too deep");
        return;
    }
    c->depth++;
    compile_choice(c); /* depth-bounded recursion */
    c->depth--;
    if (peek(c) != ')')
        refuse(c, "an unclosed group");
    c->at++;
}

static void compile_atom(compiler *c)
{
    byte_set s = {0};
    int b = peek(c);

    c->at++;
    switch (b) {
    case '(':
        compile_group(c);
        return;
    case '[':
        read_class(c, &s);
        emit_set(c, &s);
        return;
    case '\\':
        b = read_escape(c, &s);
        if (b < 0) {
            emit_set(c, &s);
            return;
        }
        break;
    case '.':
        emit(c, (step){.op = OP_ANY});
        return;
    case '^':
        emit(c, (step){.op = OP_START});
        return;
    case '$':
        emit(c, (step){.op = OP_END});
        return;
    case '*':
    case '+':
    case '?':
        refuse(c, "nothing to repeat");
        return;
    case '{':
        refuse(c, "a counted repetition");
        return;
    default:
        break;
    }
    emit(c, (step){.op = OP_CHAR, .c = (unsigned char)b});
}

/* Repeats the code from `begin` on, if a quantifier follows. */
static void compile_repeat(compiler *c, int begin)
{
    int b = peek(c), len = c->n_steps - begin;

    if (b == '{')
        refuse(c, "a counted repetition");
    if (b != '*' && b != '+' && b != '?')
        return;
    c->at++;
    if (b == '+') {
        emit(c, (step){.op = OP_SPLIT, .x = (int16_t)-len, .y = 1});
    } else {
        int past = b == '*' ? len + 2 : len + 1;

        insert(c, begin, (step){.op = OP_SPLIT, .x = 1, .y = (int16_t)past});
        if (b == '*')
            emit(c, (step){.op = OP_JUMP, .x = (int16_t) - (len + 1)});
    }
    /* Lazy or greedy makes no difference to whether there is a match. */
    if (peek(c) == '?')
        c->at++;
    if (peek(c) == '*' || peek(c) == '+' || peek(c) == '{')
        refuse(c, "a repeated repetition");
}

static void compile_sequence(compiler *c)
{
    while (!c->bad && peek(c) >= 0 && peek(c) != '|' && peek(c) != ')') {
        int begin = c->n_steps;

        compile_atom(c);
        if (!c->bad)
            compile_repeat(c, begin);
    }
}

static void compile_choice(compiler *c)
{
    int pending = -1; /* jumps behind finished branches, chained through x */

    for (;;) {
        int begin = c->n_steps;

        compile_sequence(c);
        if (c->bad || peek(c) != '|')
            break;
        c->at++;
        insert(c, begin, (step){.op = OP_SPLIT, .x = 1, .y = (int16_t)(c->n_steps - begin + 2)});
        emit(c, (step){.op = OP_JUMP, .x = (int16_t)pending});
        pending = c->n_steps - 1;
    }
    while (!c->bad && pending >= 0) {
        int before = c->step[pending].x;

        c->step[pending].x = (int16_t)(c->n_steps - pending);
        pending = before;
    }
}

static void compile(compiler *c, ct_str text)
{
    c->text = text;
    c->at = strlen("re:");
    c->depth = 0;
    c->bad = NULL;
    c->n_steps = c->n_sets = 0;
    compile_choice(c);
    if (!c->bad && peek(c) == ')')
        refuse(c, "an unopened group");
    emit(c, (step){.op = OP_MATCH});
}

const char *ct_pattern_check(ct_str text)
{
    compiler c;

    if (!text.n || text.n > CT_PATTERN_MAX_BYTES)
        return "a length out of bounds";
    if (!is_expression(text))
        return NULL;
    compile(&c, text);
    return c.bad;
}

const ct_pattern *ct_pattern_compile(ct_str text, ct_arena *a)
{
    ct_pattern *p = ct_arena_zalloc(a, 1, sizeof *p);
    compiler c;
    step *steps;
    byte_set *sets;

    if (!p)
        return NULL;
    p->text = text;
    while (p->n_literal < text.n && text.p[p->n_literal] != '*' && text.p[p->n_literal] != '?')
        p->n_literal++;
    if (!is_expression(text))
        return p;
    compile(&c, text);
    assert(!c.bad);
    steps = ct_arena_zalloc(a, (size_t)c.n_steps, sizeof *steps);
    sets = ct_arena_zalloc(a, (size_t)c.n_sets, sizeof *sets);
    if (!steps || !sets)
        return NULL;
    memcpy(steps, c.step, (size_t)c.n_steps * sizeof *steps);
    memcpy(sets, c.set, (size_t)c.n_sets * sizeof *sets);
    p->step = steps;
    p->set = sets;
    p->n_steps = (unsigned)c.n_steps;
    return p;
}

/* Steps that wait for the next byte. */
typedef struct threads {
    uint16_t at[MAX_STEPS];
    unsigned n;
} threads;

typedef struct run {
    const ct_pattern *p;
    ct_str name;
    size_t i; /* next byte of name */
    bool matched;
    uint32_t turn;
    uint32_t seen[MAX_STEPS]; /* turn in which the step was last added */
} run;

/* Adds a step and whatever it reaches without a byte. */
static void follow(run *r, threads *out, unsigned first)
{
    uint16_t stack[2 * MAX_STEPS];
    unsigned n = 0;

    stack[n++] = (uint16_t)first;
    while (n) {
        unsigned at = stack[--n];
        const step *s = &r->p->step[at];

        if (r->seen[at] == r->turn)
            continue;
        r->seen[at] = r->turn;
        switch (s->op) {
        case OP_SPLIT:
            stack[n++] = (uint16_t)((int)at + s->y);
            stack[n++] = (uint16_t)((int)at + s->x);
            break;
        case OP_JUMP:
            stack[n++] = (uint16_t)((int)at + s->x);
            break;
        case OP_START:
            if (r->i == 0)
                stack[n++] = (uint16_t)(at + 1);
            break;
        case OP_END:
            if (r->i == r->name.n)
                stack[n++] = (uint16_t)(at + 1);
            break;
        case OP_MATCH:
            r->matched = true;
            break;
        case OP_CHAR:
        case OP_ANY:
        case OP_SET:
            out->at[out->n++] = (uint16_t)at;
            break;
        }
    }
}

static bool takes(const ct_pattern *p, const step *s, unsigned char b)
{
    return s->op == OP_ANY || (s->op == OP_CHAR && s->c == b) ||
           (s->op == OP_SET && set_has(&p->set[s->x], b));
}

static bool match_expression(const ct_pattern *p, ct_str name)
{
    threads list[2], *now = &list[0], *next = &list[1], *swap;
    run r = {.p = p, .name = name, .turn = 1};

    now->n = 0;
    follow(&r, now, 0);
    while (!r.matched && r.i < name.n && now->n) {
        unsigned char b = (unsigned char)name.p[r.i++];

        r.turn++;
        next->n = 0;
        for (unsigned t = 0; t < now->n; t++)
            if (takes(p, &p->step[now->at[t]], b))
                follow(&r, next, now->at[t] + 1u);
        swap = now;
        now = next;
        next = swap;
    }
    return r.matched;
}

/* Shell pattern of the whole name: on a mismatch, let the latest star take one more. */
static bool match_shell(ct_str pattern, ct_str name)
{
    size_t p = 0, n = 0, star = SIZE_MAX, star_n = 0;

    while (n < name.n) {
        if (p < pattern.n && pattern.p[p] == '*') {
            star = p++;
            star_n = n;
        } else if (p < pattern.n && (pattern.p[p] == '?' || pattern.p[p] == name.p[n])) {
            p++;
            n++;
        } else if (star != SIZE_MAX) {
            p = star + 1;
            n = ++star_n;
        } else {
            return false;
        }
    }
    while (p < pattern.n && pattern.p[p] == '*')
        p++;
    return p == pattern.n;
}

bool ct_pattern_match(const ct_pattern *p, ct_str name)
{
    if (p->n_steps)
        return match_expression(p, name);
    /* Most names of a large checkpoint meet most patterns only to fail here. */
    return name.n >= p->n_literal && memcmp(name.p, p->text.p, p->n_literal) == 0 &&
           match_shell(p->text, name);
}
