/* The native array object: a header with a view, a reference count and the elements behind it.
 *
 * Header and elements are one block, so that an array is one allocation; the header's size is a multiple of 64,
 * which aligns the elements. A view keeps the array that owns its elements alive, never another view, so that no
 * chain of releases can grow. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/native/native_array.h"
#include "kernels/move.h"

enum { ALIGNMENT = 64 };

static const size_t header_size = (sizeof(native_array) + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;

static atomic_int_fast64_t live;

/* --- memory --- */

static void *default_get(void *user, size_t size)
{
    (void)user;
    if (size > SIZE_MAX - ALIGNMENT) return NULL;
    return aligned_alloc(ALIGNMENT, (size + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT);
}

static void default_put(void *user, void *block, size_t size)
{
    (void)user;
    (void)size;
    free(block);
}

static const at_allocator default_allocator = {default_get, default_put, NULL};

/* A header with room for the elements of an array behind it; its view is for the caller to set. */
static native_array *allocate(at_context *cx, size_t bytes)
{
    const at_allocator *alloc = cx->alloc ? cx->alloc : &default_allocator;
    size_t size;
    native_array *a = NULL;
    if (!__builtin_add_overflow(header_size, bytes, &size)) a = alloc->get(alloc->user, size);
    if (a == NULL) {
        at_error(cx, AT_ENOMEM, "no memory for an array of %zu bytes", bytes);
        return NULL;
    }
    a->base = NULL;
    a->read_only = false;
    a->alloc = *alloc;
    a->size = size;
    a->done = NULL;
    a->user = NULL;
    atomic_init(&a->refs, 1);
    atomic_fetch_add_explicit(&live, 1, memory_order_relaxed);
    return a;
}

void ati_native_retain(void *p)
{
    atomic_fetch_add_explicit(&((native_array *)p)->refs, 1, memory_order_relaxed);
}

void ati_native_release(void *p)
{
    native_array *a = p;
    if (atomic_fetch_sub_explicit(&a->refs, 1, memory_order_acq_rel) != 1) return;
    native_array *base = a->base;
    if (a->done != NULL) a->done(a->user);
    at_allocator alloc = a->alloc;
    alloc.put(alloc.user, a, a->size);
    atomic_fetch_sub_explicit(&live, 1, memory_order_relaxed);
    if (base != NULL) ati_native_release(base);
}

int64_t at_native_live(void) { return atomic_load(&live); }

/* --- making arrays --- */

at_status ati_native_checked_bytes(at_context *cx, at_dtype dtype, int ndim, const int64_t *dims,
                                   int64_t *bytes)
{
    if (dtype <= AT_NODTYPE || dtype >= AT_OTHER)
        return at_error(cx, AT_EDTYPE, "native arrays have no element type %d", (int)dtype);
    if (ndim < 0 || ndim > AT_MAX_NDIM)
        return at_error(cx, AT_EVALUE, "expected a rank from 0 to %d, found %d", AT_MAX_NDIM, ndim);
    for (int k = 0; k < ndim; k++)
        if (dims[k] < 0)
            return at_error(cx, AT_EVALUE, "expected sizes >= 0, found %" PRId64, dims[k]);
    if (!ati_k_bytes(dtype, ndim, dims, bytes))
        return at_error(cx, AT_EVALUE, "an array of %d axes has more bytes than an int64 can count",
                        ndim);
    return AT_OK;
}

native_array *ati_native_new(at_context *cx, at_dtype dtype, int ndim, const int64_t *dims)
{
    int64_t bytes = 0;
    if (ati_native_checked_bytes(cx, dtype, ndim, dims, &bytes) != AT_OK) return NULL;
    native_array *a = allocate(cx, (size_t)bytes);
    if (a != NULL) a->view = ati_k_view((char *)a + header_size, dtype, ndim, dims);
    return a;
}

native_array *ati_native_view(at_context *cx, at_array of, const ati_host *view)
{
    native_array *source = of.p, *a = allocate(cx, 0);
    if (a == NULL) return NULL;
    a->view = *view;
    a->base = source->base ? source->base : source;
    a->read_only = source->read_only;
    ati_native_retain(a->base);
    return a;
}

native_array *ati_native_row_major(at_context *cx, at_array x)
{
    const ati_host *from = view_of(x);
    if (ati_k_is_row_major(from)) {
        ati_native_retain(x.p);
        return x.p;
    }
    native_array *a = ati_native_new(cx, from->dtype, from->ndim, from->dim);
    if (a != NULL) ati_k_copy(from, &a->view);
    return a;
}

at_status ati_native_give(at_context *cx, native_array *made, at_array *out)
{
    if (made == NULL) return cx->status;
    *out = (at_array){made, at_native()};
    return AT_OK;
}

/* --- what the slots share --- */

shape_text ati_native_shape_text(const ati_host *view)
{
    shape_text s;
    size_t at = 1;
    strcpy(s.text, "(");
    for (int k = 0; k < view->ndim && at < sizeof s.text - 1; k++) {
        const char *sep = k + 1 < view->ndim ? ", " : view->ndim == 1 ? "," : "";
        at += (size_t)snprintf(s.text + at, sizeof s.text - at, "%" PRId64 "%s", view->dim[k], sep);
    }
    if (at < sizeof s.text - 1)
        strcpy(s.text + at, ")");
    else
        strcpy(s.text + sizeof s.text - 5, "...)");
    return s;
}

at_status ati_native_axis(at_context *cx, int ndim, int *axis)
{
    if (*axis < -ndim || *axis >= ndim)
        return at_error(cx, AT_EVALUE, "axis %d is out of range for an array of rank %d", *axis,
                        ndim);
    *axis += *axis < 0 ? ndim : 0;
    return AT_OK;
}

at_status ati_native_size(at_context *cx, at_dim size, int64_t *out)
{
    if (!at_is_nil(size.sym))
        return at_error(cx, AT_EUNSUPPORTED, "native arrays have no symbolic sizes");
    if (size.n == INT64_MIN) return at_error(cx, AT_EARG, "expected a size, found none");
    if (size.n < 0) return at_error(cx, AT_EVALUE, "expected a size >= 0, found %" PRId64, size.n);
    *out = size.n;
    return AT_OK;
}

/* --- for programs in C --- */

static at_array keep(at_frame *f, native_array *a)
{
    return a != NULL ? at_keep(f, (at_array){a, at_native()}) : AT_NIL;
}

at_array at_native_copy(at_frame *f, at_dtype dtype, int ndim, const int64_t *sizes,
                        const void *data)
{
    native_array *a = at_failed(f) ? NULL : ati_native_new(f->cx, dtype, ndim, sizes);
    size_t bytes = a != NULL ? a->size - header_size : 0;
    if (bytes > 0) memcpy(a->view.data, data, bytes);
    return keep(f, a);
}

at_array at_native_wrap(at_frame *f, at_dtype dtype, int ndim, const int64_t *sizes,
                        const int64_t *strides, void *data, void (*done)(void *user), void *user)
{
    int64_t bytes = 0;
    if (at_failed(f) || ati_native_checked_bytes(f->cx, dtype, ndim, sizes, &bytes) != AT_OK)
        return AT_NIL;
    native_array *a = allocate(f->cx, 0);
    if (a == NULL) return AT_NIL;
    a->view = ati_k_view(data, dtype, ndim, sizes);
    for (int k = 0; strides != NULL && k < ndim; k++) a->view.stride[k] = strides[k];
    at_array kept = keep(f, a);
    if (!at_is_nil(kept)) { /* else the array is gone, and the memory stays the caller's */
        a->done = done;
        a->user = user;
    }
    return kept;
}

void at_native_set_read_only(at_array a) { ((native_array *)a.p)->read_only = true; }
bool at_native_is_read_only(at_array a) { return ((const native_array *)a.p)->read_only; }

const void *at_native_data(at_array a) { return view_of(a)->data; }
at_dtype at_native_dtype(at_array a) { return view_of(a)->dtype; }
int at_native_ndim(at_array a) { return view_of(a)->ndim; }
const int64_t *at_native_sizes(at_array a) { return view_of(a)->dim; }
const int64_t *at_native_strides(at_array a) { return view_of(a)->stride; }

bool at_native_read(at_array a, void *data, size_t size)
{
    const ati_host *from = view_of(a);
    ati_host to = ati_k_view(data, from->dtype, from->ndim, from->dim);
    if (size != (size_t)(ati_k_count(from) * ati_k_itemsize(from->dtype))) return false;
    ati_k_copy(from, &to);
    return true;
}
