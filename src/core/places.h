/* The places of a frame, inline: every op keeps one result, so the common case must cost next to nothing. */
#ifndef ATI_PLACES_H
#define ATI_PLACES_H

#include "anytensor/frame.h"

/* Memory that a frame owns as it owns arrays; NULL, with the error recorded, where there is none. */
void *ati_memory(at_frame *f, size_t size);

static inline at_array *ati_places(at_frame *f) { return f->more != NULL ? f->more : f->own; }

static inline at_array ati_keep(at_frame *f, at_array owned)
{
    if (owned.be == NULL || f->count == f->room)
        return at_keep(f, owned); /* nothing to keep, or no place for it */
    ati_places(f)[f->count++] = owned;
    return owned;
}

/* Ends the frame of an op whose result is not in a place yet: the frame above gets it. */
static inline at_array ati_leave_with(at_frame *f, at_array owned)
{
    if (f->count > 0) at_close(f);
    return ati_keep(f->up, owned);
}

#endif
