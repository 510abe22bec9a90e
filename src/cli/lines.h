/* Standard input by lines, for the commands that answer a line each. */
#ifndef CT_CLI_LINES_H
#define CT_CLI_LINES_H

#include "base/status.h"
#include "base/str.h"

#include <stdbool.h>

/* Next line of standard input, without its newline; *got is false at the end.  Fails on
 * a read error, on a line beyond the buffer's bound (1 GiB unless it has one), and when ^C
 * came.  Nothing else may read standard input. */
ct_status ct_cli_line(ct_buf *line, bool *got, ct_error *err);

/* Whether ct_cli_line would return at once: for who has other work meanwhile. */
bool ct_cli_line_ready(void);

#endif
