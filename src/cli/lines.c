#include "cli/lines.h"

#include "cli/cli.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#define MAX_LINE_BYTES ((size_t)1 << 30)
#define BLOCK_BYTES    ((size_t)1 << 16)

/* What has been read and not given out. */
static struct {
    ct_buf bytes;
    size_t at;      /* given out before here */
    size_t scanned; /* no newline from `at` to here */
    bool end;
    int error; /* of the read that ended it */
} input;

/* Reads a block if there is one; whether it is worth trying again. */
static bool fill(bool wait)
{
    struct pollfd in = {.fd = STDIN_FILENO, .events = POLLIN};
    char block[BLOCK_BYTES];
    ssize_t n;

    if (!wait && poll(&in, 1, 0) <= 0)
        return false;
    n = read(STDIN_FILENO, block, sizeof block);
    if (n < 0 && (errno == EINTR || errno == EAGAIN))
        return false;
    input.end = n <= 0;
    input.error = n < 0 ? errno : 0;
    if (n > 0)
        ct_buf_add(&input.bytes, block, (size_t)n);
    return n > 0;
}

/* Where the next line's newline is, or NULL. */
static const char *newline(void)
{
    const char *found = NULL;

    if (input.scanned < input.bytes.n)
        found = memchr(input.bytes.p + input.scanned, '\n', input.bytes.n - input.scanned);
    input.scanned = found ? (size_t)(found - input.bytes.p) : input.bytes.n;
    return found;
}

/* Drops what has been given out, once that is worth a move. */
static void compact(void)
{
    if (input.at < input.bytes.n && input.at < BLOCK_BYTES)
        return;
    memmove(input.bytes.p, input.bytes.p + input.at, input.bytes.n - input.at);
    input.bytes.n -= input.at;
    input.scanned -= input.at;
    input.at = 0;
}

static void give_out(ct_buf *line, size_t n, size_t skip)
{
    ct_buf_add(line, input.bytes.p + input.at, n);
    input.at += n + skip;
    input.scanned = input.at;
    compact();
}

static void open_input(void)
{
    if (!input.bytes.cap_bytes)
        ct_buf_init(&input.bytes, MAX_LINE_BYTES + 2 * BLOCK_BYTES);
}

bool ct_cli_line_ready(void)
{
    open_input();
    while (!ct_cli_stop && !input.end && !input.bytes.failed && !newline())
        if (!fill(false))
            return false;
    return true;
}

ct_status ct_cli_line(ct_buf *line, bool *got, ct_error *err)
{
    const char *end = NULL;

    if (!line->cap_bytes)
        ct_buf_init(line, MAX_LINE_BYTES);
    open_input();
    ct_buf_clear(line);
    *got = false;
    while (!ct_cli_stop && !input.bytes.failed && !(end = newline()) && !input.end &&
           input.bytes.n - input.at <= line->cap_bytes)
        fill(true);
    if (ct_cli_stop)
        return ct_fail(err, CT_ECANCELLED, "interrupted");
    if (input.error)
        return ct_fail(err, CT_EIO, "standard input: %s", strerror(input.error));
    *got = end || input.at < input.bytes.n;
    if (*got)
        give_out(line, end ? (size_t)(end - input.bytes.p) - input.at : input.bytes.n - input.at,
                 end ? 1 : 0);
    if (line->failed || input.bytes.failed)
        return ct_fail(err, CT_ELIMIT, "a line exceeds %zu bytes or the memory", line->cap_bytes);
    return CT_OK;
}
