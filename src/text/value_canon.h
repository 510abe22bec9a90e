/* One byte string for each value: equal for equal values whatever the order of keys,
 * different for different ones. */
#ifndef CT_TEXT_VALUE_CANON_H
#define CT_TEXT_VALUE_CANON_H

#include "text/value.h"

/* JSON values only; depth as the JSON reader bounds it. */
void ct_value_put_canon(ct_buf *out, const ct_value *v);

#endif
