/* Contexts and frames: where errors go, and who owns what.
 *
 * A context holds the first error of a call chain; it lives on the caller's stack. A frame owns arrays.
 * Every operation takes the frame that shall own its result, borrows its operands, and does nothing but
 * return nil once the context has failed, so that a formula can be written without a check per line:
 *
 *     at_context cx;
 *     at_frame root, *f = at_open(&root, at_context_init(&cx, at_native()));
 *     at_array y = at_exp(f, at_neg(f, x));
 *     if (at_failed(f)) puts(at_message(&cx));
 *     at_close(f);
 *
 * Nothing is global or thread-local: two threads with a context each never meet. */
#ifndef ANYTENSOR_FRAME_H
#define ANYTENSOR_FRAME_H

#include "anytensor/types.h"

#ifdef __cplusplus
extern "C" {
#endif

#define AT_MESSAGE_SIZE 480
#define AT_FRAME_PLACES 12

/** Memory for native arrays. get returns size bytes aligned to 64, or NULL; put releases them. */
typedef struct at_allocator {
    void *(*get)(void *user, size_t size);
    void (*put)(void *user, void *block, size_t size);
    void *user;
} at_allocator;

/** Flags of a context. */
enum {
    AT_GENERIC = 1u,  /* use the formula of every composite, never a backend's own version */
    AT_UNTRACKED = 2u /* no derivative will be taken, whatever the arrays say */
};

typedef struct at_context at_context;

/** Keeps the ids of partitions for later calls on the very same array. find leaves out nil where it has none of this
 *  length; what it gives is a new reference. */
typedef struct at_memo {
    at_status (*find)(at_context *cx, at_array partitions, at_dim total_length, at_array *out);
    at_status (*keep)(at_context *cx, at_array partitions, at_array ids);
} at_memo;

struct at_context {
    at_status status; /* the first error, or AT_OK */
    unsigned flags;
    const at_backend *home;    /* backend of calls that hold nothing but scalars */
    const at_allocator *alloc; /* NULL: the C library's */
    const at_memo *memo;       /* NULL: nothing is kept */
    const char *op; /* the outermost operation in which the first error happened, or NULL */
    char text[AT_MESSAGE_SIZE];
};

typedef struct at_frame {
    at_context *cx;
    struct at_frame *up;
    const char *op; /* named operation that runs in this frame, or NULL */
    int count;      /* places in use */
    int room;       /* places in more */
    at_array *more; /* NULL until own is full; then all places live there */
    at_array own[AT_FRAME_PLACES];
} at_frame;

/** Prepares a context: no error, no flags, default memory. home serves calls with scalars only. */
AT_API at_context *at_context_init(at_context *cx, const at_backend *home);

/** First error so far. */
static inline bool at_failed(const at_frame *f) { return f->cx->status != AT_OK; }

/** Text of the first error, with the name of the operation in front; "" without an error. The text is
 *  composed in place on the first call. */
AT_API const char *at_message(at_context *cx);

/** Forgets the error, so that the context can be used again. */
AT_API void at_clear(at_context *cx);

/** Name of a status code, such as "AT_ESHAPE". */
AT_API const char *at_status_name(at_status status);

/** Records an error unless one is recorded, and returns the recorded one. The only place where a
 *  context fails: set a breakpoint here. */
AT_API at_status at_error(at_context *cx, at_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/** Opens the outermost frame of a context. */
AT_API at_frame *at_open(at_frame *root, at_context *cx);

/** Releases all that a frame owns. */
AT_API void at_close(at_frame *f);

/** Opens a frame inside another; pairs with at_leave(). */
AT_API at_frame *at_enter(at_frame *frame, at_frame *up);

/** Hands result to the frame above (retaining it there if this frame does not own it), releases
 *  everything else, returns the result, or nil once the context has failed. */
AT_API at_array at_leave(at_frame *f, at_array result);

/** Gives a frame one reference of an array. On failure (no memory for a place) the reference is
 *  released, the context fails and nil comes back. */
AT_API at_array at_keep(at_frame *f, at_array owned);

/** Releases an array at its last use, if the frame owns it; otherwise nothing happens. */
AT_API void at_drop(at_frame *f, at_array a);

/** Takes one reference out of a frame: the caller owns it afterwards and releases it with at_release(). */
AT_API at_array at_detach(at_frame *f, at_array a);

/** One reference more, one less. nil is allowed. */
AT_API void at_retain(at_array a);
AT_API void at_release(at_array a);

/** True for nil. */
static inline bool at_is_nil(at_array a) { return a.be == NULL; }

#ifdef __cplusplus
}
#endif
#endif
