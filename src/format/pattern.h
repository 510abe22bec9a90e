/* Patterns of module names in quantisation configs, as their two writers mean them:
 *   re:EXPR   compressed-tensors: Python's re.match, so bound at the start only
 *   a.b*      ModelOpt: `*` and `?` as in a shell, the whole name
 *   a.b       the whole name
 * Of regular expressions: literals, `.`, classes, groups, `|`, `*`, `+`, `?`, `^`, `$`,
 * \d \w \s.  Matching takes time proportional to pattern times name, whatever either
 * holds. */
#ifndef CT_FORMAT_PATTERN_H
#define CT_FORMAT_PATTERN_H

#include "base/arena.h"
#include "base/str.h"

#define CT_PATTERN_MAX_BYTES 512

typedef struct ct_pattern ct_pattern;

/* NULL when the pattern can be used, otherwise what it holds that cannot. */
const char *ct_pattern_check(ct_str text);

/* text must have passed the check; it is borrowed.  NULL when the arena is full. */
const ct_pattern *ct_pattern_compile(ct_str text, ct_arena *a);
bool ct_pattern_match(const ct_pattern *p, ct_str name);

#endif
