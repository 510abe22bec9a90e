/* A small, bounded Jinja interpreter: the subset that the published Gemma 4 chat
 * templates use and a little more, with Jinja2's results (trim_blocks, lstrip_blocks and
 * the loop controls on, sandboxed, as transformers sets it up).  What it does not know is
 * refused when the template is compiled.
 *
 * A template is compiled once, so a bad one fails at start.  A rendering sees nothing
 * but its inputs and stops at fixed limits of steps, depth and output.  A compiled
 * template is immutable and may be rendered by many threads at once, each with its
 * own arena. */
#ifndef CT_TEXT_JINJA_H
#define CT_TEXT_JINJA_H

#include "base/arena.h"
#include "base/status.h"
#include "base/str.h"

typedef struct ct_jinja ct_jinja;
typedef struct ct_value ct_value; /* text/value.h */

#define CT_JINJA_MAX_SOURCE_BYTES (1u << 20)
#define CT_JINJA_MAX_STEPS        (50u * 1000 * 1000)
#define CT_JINJA_MAX_DEPTH        200 /* macro calls within macro calls */
#define CT_JINJA_MAX_OUTPUT_BYTES (64u << 20)

/* name begins messages, which give the line: "chat_template.jinja:12: …". */
ct_status ct_jinja_compile(ct_jinja **out, const char *name, ct_str source, ct_error *err);
void ct_jinja_destroy(ct_jinja *j);

/* vars: a mapping of the top-level names.  Values made while rendering live in the
 * arena.  The text is appended to out, and only when the rendering succeeds.  A
 * template's raise_exception(m) fails with m as the whole message. */
ct_status ct_jinja_render(const ct_jinja *j, const ct_value *vars, ct_arena *a, ct_buf *out,
                          ct_error *err);

/* The same with other limits, all at most the ones above: for tests. */
typedef struct ct_jinja_limits {
    size_t steps, output_bytes;
    unsigned depth;
} ct_jinja_limits;

ct_status ct_jinja_render_limited(const ct_jinja *j, const ct_value *vars, ct_jinja_limits limits,
                                  ct_arena *a, ct_buf *out, ct_error *err);

#endif
