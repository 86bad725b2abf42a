/* The native array object, and what the files of this folder share. */
#ifndef ATI_NATIVE_ARRAY_H
#define ATI_NATIVE_ARRAY_H

#include <stdatomic.h>

#include "anytensor/backend.h"
#include "anytensor/native.h"
#include "anytensor/ops.h"
#include "kernels/view.h"

/* An array of its own holds its elements behind this header, in one block; a view or a wrapped array is a
 * header only. Nothing but refs changes once an array is made. */
typedef struct native_array {
    ati_host view;
    atomic_size_t refs;
    struct native_array *base; /* owns the elements of a view; never a view itself */
    at_allocator alloc;        /* made this block; a copy, since contexts come and go */
    size_t size;               /* of the block */
    void (*done)(void *user);  /* of a wrapped array */
    void *user;
    bool read_only; /* others may not write the elements either; the library itself never does */
} native_array;

static inline const ati_host *view_of(at_array a) { return &((const native_array *)a.p)->view; }

/* Bytes of an array, after checking all that may come from outside. */
at_status ati_native_checked_bytes(at_context *cx, at_dtype dtype, int ndim, const int64_t *dims,
                                   int64_t *bytes);

/* A new row-major array with elements not yet written; NULL with the error recorded. */
native_array *ati_native_new(at_context *cx, at_dtype dtype, int ndim, const int64_t *dims);

/* An array over the elements of another one. */
native_array *ati_native_view(at_context *cx, at_array of, const ati_host *view);

/* A row-major array with the same elements in x's order: x itself, retained, where it is one. */
native_array *ati_native_row_major(at_context *cx, at_array x);

/* The last step of a slot: hands an array out, or reports why there is none. */
at_status ati_native_give(at_context *cx, native_array *made, at_array *out);

void ati_native_retain(void *p);
void ati_native_release(void *p);

/* "(2, 3)", for messages. */
typedef struct shape_text {
    char text[112];
} shape_text;
shape_text ati_native_shape_text(const ati_host *view);

/* Makes an axis non-negative; AT_EVALUE where it is out of range. */
at_status ati_native_axis(at_context *cx, int ndim, int *axis);

/* A size as a number; AT_EUNSUPPORTED for a symbol, AT_EARG for AT_NO_DIM, AT_EVALUE for a negative one. */
at_status ati_native_size(at_context *cx, at_dim size, int64_t *out);

/* A view of a VALUE operand: the array's own, or one of a scalar, whose value is put into place. */
ati_host ati_native_value(at_array a, at_scalar *place);

/* Queries of the vtable that have to do with making arrays. */
at_status ati_native_from_scalar(at_context *cx, const at_backend *be, at_array scalar,
                                 at_dtype dtype, at_array like, at_array *out);
at_status ati_native_to_size(at_context *cx, at_array a, at_dim *out);

/* The slots. Those of all ops are declared; a primitive that is nowhere defined does not link. */
#define OP(kind, name, ...)                                                                        \
    at_status ati_native_##name(at_context *cx, const at_backend *be ATI_SIG_##kind(ATI_PARAM),    \
                                at_array *out);
#include "anytensor/ops.def"

#endif
