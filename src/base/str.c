#include "base/str.h"

#include "base/checked.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#define BUF_FIRST_BYTES 256

int ct_str_cmp(ct_str a, ct_str b)
{
    size_t n = ct_min_size(a.n, b.n);
    int c = n ? memcmp(a.p, b.p, n) : 0;

    return c ? c : (a.n > b.n) - (a.n < b.n);
}

void ct_buf_init(ct_buf *b, size_t cap_bytes)
{
    *b = (ct_buf){.cap_bytes = cap_bytes};
}

void ct_buf_deinit(ct_buf *b)
{
    free(b->p);
    *b = (ct_buf){0};
}

void ct_buf_clear(ct_buf *b)
{
    b->n = 0;
    b->failed = false;
    if (b->p)
        b->p[0] = '\0';
}

/* Makes room for n more bytes and the NUL. */
static bool buf_reserve(ct_buf *b, size_t n)
{
    size_t need, room;
    char *p;

    if (b->failed || !ct_add_size(&need, b->n, n) || need > b->cap_bytes)
        goto fail;
    if (need < b->room)
        return true;
    room = ct_max_size(need + 1, ct_max_size(BUF_FIRST_BYTES, b->room + b->room / 2));
    p = realloc(b->p, room);
    if (!p)
        goto fail;
    b->p = p;
    b->room = room;
    return true;
fail:
    b->failed = true;
    return false;
}

void ct_buf_add(ct_buf *b, const void *bytes, size_t n)
{
    if (!buf_reserve(b, n))
        return;
    if (n)
        memcpy(b->p + b->n, bytes, n);
    b->n += n;
    b->p[b->n] = '\0';
}

void ct_buf_addz(ct_buf *b, const char *z)
{
    ct_buf_add(b, z, strlen(z));
}

void ct_buf_addc(ct_buf *b, char c)
{
    ct_buf_add(b, &c, 1);
}

void ct_buf_addf(ct_buf *b, const char *fmt, ...)
{
    va_list ap;
    int n;

    va_start(ap, fmt);
    n = vsnprintf(NULL, 0, fmt, ap);
    va_end(ap);
    if (n < 0 || !buf_reserve(b, (size_t)n))
        return;
    va_start(ap, fmt);
    vsnprintf(b->p + b->n, (size_t)n + 1, fmt, ap);
    va_end(ap);
    b->n += (size_t)n;
}
