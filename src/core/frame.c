/* Frames own arrays: a handful of places inline, more from the heap, released together.
 *
 * The places hold handles with one reference each; the same handle may stand in two places with two
 * references. Search runs from the end, since what is dropped was mostly made last. */
#include <stdlib.h>
#include <string.h>

#include "anytensor/backend.h"
#include "anytensor/frame.h"
#include "core/places.h"

void at_retain(at_array a)
{
    if (a.be != NULL) a.be->retain(a.p);
}

void at_release(at_array a)
{
    if (a.be != NULL) a.be->release(a.p);
}

static at_frame *start(at_frame *f, at_context *cx, at_frame *up)
{
    f->cx = cx;
    f->up = up;
    f->op = NULL;
    f->count = 0;
    f->room = AT_FRAME_PLACES;
    f->more = NULL;
    return f;
}

at_frame *at_open(at_frame *root, at_context *cx) { return start(root, cx, NULL); }

at_frame *at_enter(at_frame *frame, at_frame *up) { return start(frame, up->cx, up); }

void at_close(at_frame *f)
{
    at_array *own = ati_places(f);
    while (f->count > 0) at_release(own[--f->count]);
    free(f->more);
    f->more = NULL;
    f->room = AT_FRAME_PLACES;
}

/* Doubles the places; the inline ones move to the heap the first time. */
static bool grow(at_frame *f)
{
    size_t room = 2 * (size_t)f->room;
    at_array *more = realloc(f->more, room * sizeof *more);
    if (more == NULL) return false;
    if (f->more == NULL) memcpy(more, f->own, sizeof f->own);
    f->more = more;
    f->room = (int)room;
    return true;
}

at_array at_keep(at_frame *f, at_array owned)
{
    if (owned.be == NULL) return AT_NIL;
    if (f->count == f->room && !grow(f)) {
        at_release(owned);
        at_error(f->cx, AT_ENOMEM, "no memory for another place in a frame");
        return AT_NIL;
    }
    ati_places(f)[f->count++] = owned;
    return owned;
}

/* A block of memory stands in a place like an array, of a backend that can only release it. */
static const at_backend memory = {.name = "memory", .release = free};

void *ati_memory(at_frame *f, size_t size)
{
    void *block = at_failed(f) ? NULL : malloc(size);
    if (block == NULL) at_error(f->cx, AT_ENOMEM, "no memory for %zu bytes", size);
    return block == NULL ? NULL : at_keep(f, (at_array){block, &memory}).p;
}

/* Takes the latest place of a handle out of the frame, without releasing; false if there is none. */
static bool forget(at_frame *f, at_array a)
{
    at_array *own = ati_places(f);
    for (int i = f->count - 1; i >= 0; i--) {
        if (own[i].p == a.p && own[i].be == a.be) {
            own[i] = own[--f->count];
            return true;
        }
    }
    return false;
}

void at_drop(at_frame *f, at_array a)
{
    if (a.be != NULL && forget(f, a)) at_release(a);
}

at_array at_detach(at_frame *f, at_array a)
{
    if (a.be != NULL && !forget(f, a)) at_retain(a);
    return a;
}

at_array at_leave(at_frame *f, at_array result)
{
    if (at_failed(f)) result = AT_NIL;
    result = at_detach(f, result);
    at_close(f);
    return at_keep(f->up, result);
}
