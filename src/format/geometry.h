/* The published geometries by name, so that speed and memory can be told with no file. */
#ifndef CT_FORMAT_GEOMETRY_H
#define CT_FORMAT_GEOMETRY_H

#include "format/config.h"

/* name: "12b", "26b-a4b" or "31b"; anything else is refused with the list.  The config is
 * what the published config.json reads as, without quantisation. */
ct_status ct_geometry_config(ct_config *out, ct_str name, ct_error *err);

#endif
