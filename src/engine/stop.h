/* Stop strings: found in the text of an answer as it grows, wherever tokens cut it.
 *
 * The text is fed piece by piece; offsets count bytes from its start.  The first match to
 * be complete ends the answer, the longest of those that end at the same byte; so the cut
 * does not depend on the pieces.  Time is linear in the text for each string.
 * One for each answer; one thread at a time.  Feeding does not allocate. */
#ifndef CT_ENGINE_STOP_H
#define CT_ENGINE_STOP_H

#include "base/status.h"
#include "base/str.h"

#define CT_MAX_STOP_STRINGS 16
#define CT_MAX_STOP_BYTES   1024 /* of each */

typedef struct ct_stop ct_stop;

typedef struct ct_stop_progress {
    /* Bytes of the answer that may be shown: all but the longest end that can still become
     * a stop string.  Never decreases; always between characters when the text is fed in
     * whole characters.  Once found: where the answer ends. */
    uint64_t safe;
    bool found;
    uint32_t which; /* index of the string that was found */
} ct_stop_progress;

/* Copies the strings.  Refuses, as CT_EINVAL or CT_ELIMIT with the index and the figures,
 * more or longer strings than the limits, an empty one, and one that is not UTF-8.
 * include: the stop string is part of the answer instead of being cut off, and nothing is
 * held back.  n may be 0: everything is safe at once. */
ct_status ct_stop_create(ct_stop **out, const ct_str *strings, size_t n, bool include,
                         ct_error *err);
void ct_stop_destroy(ct_stop *s); /* NULL is fine */

/* Takes the next piece, which may be empty.  A match that becomes complete while not armed
 * (before min_tokens) is passed over.  After a match further text is ignored.
 * When the answer ends otherwise, all of it is to be shown, held or not. */
ct_stop_progress ct_stop_feed(ct_stop *s, ct_str piece, bool armed);

#endif
