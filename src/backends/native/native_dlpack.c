/* DLPack: native arrays from other libraries' tensors, and tensors over native arrays.
 *
 * An imported tensor is wrapped memory whose end is the tensor's deleter. An exported one is a block of its own that
 * holds a reference of the array, the sizes and the strides. Both structs carry the same inner tensor; what differs is
 * which of them can say "read-only".
 *
 * A stride that is never taken (of an axis of size 1, or in an array without elements) may be any number in DLPack; here it
 * becomes the row-major one, on the way in and out. */
#include <inttypes.h>
#include <stdlib.h>

#include "anytensor/dlpack.h"
#include "backends/native/dlpack_abi.h"
#include "backends/native/native_array.h"
#include "kernels/move.h"

/* --- element types --- */

typedef struct element {
    uint8_t code, bits;
} element;

/* By at_dtype. */
static const element elements[AT_OTHER] = {
#define X(name, NAME, size, kind)                                                                  \
    [AT_##NAME] = {(kind) == 'b'              ? ATI_DL_BOOL                                        \
                   : (kind) == 'i'            ? ATI_DL_INT                                         \
                   : (kind) == 'u'            ? ATI_DL_UINT                                        \
                   : AT_##NAME == AT_BFLOAT16 ? ATI_DL_BFLOAT                                      \
                                              : ATI_DL_FLOAT,                                      \
                   8 * (size)},
    AT_DTYPES(X)
#undef X
};

static at_dtype dtype_of(const ati_dl_tensor *t)
{
    for (int d = AT_BOOL; d < AT_OTHER; d++)
        if (t->lanes == 1 && t->code == elements[d].code && t->bits == elements[d].bits)
            return (at_dtype)d;
    return AT_NODTYPE;
}

/* --- in --- */

static bool has_elements(const ati_host *view)
{
    for (int k = 0; k < view->ndim; k++)
        if (view->dim[k] == 0) return false;
    return true;
}

/* Whether byte distances within the view, and the addresses that they lead to, exist. */
static bool reaches(const ati_host *view, uintptr_t first)
{
    int64_t low = 0, high = ati_k_itemsize(view->dtype), whole;
    uintptr_t place;
    for (int k = 0; k < view->ndim; k++) {
        int64_t *end = view->stride[k] < 0 ? &low : &high;
        if (__builtin_mul_overflow(view->stride[k], view->dim[k], &whole) ||
            __builtin_add_overflow(*end, whole - view->stride[k], end))
            return false;
    }
    return !__builtin_add_overflow(first, low, &place) &&
           !__builtin_add_overflow(first, high, &place);
}

/* Strides in bytes, where they matter. */
static at_status read_strides(at_context *cx, const ati_dl_tensor *t, ati_host *view)
{
    int64_t size = ati_k_itemsize(view->dtype);
    for (int k = 0; t->strides != NULL && k < view->ndim; k++) {
        if (view->dim[k] == 1) continue;
        if (__builtin_mul_overflow(t->strides[k], size, &view->stride[k]))
            return at_error(cx, AT_EVALUE,
                            "a DLPack tensor's stride of %" PRId64
                            " elements has more bytes than an int64 can count",
                            t->strides[k]);
    }
    return AT_OK;
}

/* What stands for the memory of an array without elements, which a producer may leave NULL. */
static char no_elements[1];

/* The first element, and strides that lead somewhere. */
static at_status read_place(at_context *cx, const ati_dl_tensor *t, ati_host *view)
{
    uintptr_t first;
    if (!has_elements(view)) {
        view->data = no_elements;
        return AT_OK;
    }
    if (t->data == NULL)
        return at_error(cx, AT_EVALUE, "a DLPack tensor with elements has no memory");
    if (read_strides(cx, t, view) != AT_OK) return cx->status;
    if (t->byte_offset > INT64_MAX ||
        __builtin_add_overflow((uintptr_t)t->data, t->byte_offset, &first) || !reaches(view, first))
        return at_error(cx, AT_EVALUE,
                        "a DLPack tensor of shape %s (byte offset %" PRIu64
                        ") reaches beyond the end of memory",
                        ati_native_shape_text(view).text, t->byte_offset);
    view->data = (char *)t->data + t->byte_offset;
    return AT_OK;
}

/* A view of a tensor, after checking all that it says. */
static at_status read_tensor(at_context *cx, const ati_dl_tensor *t, ati_host *view)
{
    int64_t bytes;
    at_dtype dtype = dtype_of(t);
    if (t->device_type != ATI_DL_CPU)
        return at_error(cx, AT_EUNSUPPORTED,
                        "expected a DLPack tensor in the CPU's memory (device type %d), found "
                        "device type %" PRId32,
                        ATI_DL_CPU, t->device_type);
    if (dtype == AT_NODTYPE)
        return at_error(cx, AT_EDTYPE,
                        "native arrays have no element type for DLPack's code %d with %d bits and "
                        "%d lanes",
                        t->code, t->bits, t->lanes);
    if (t->ndim > 0 && t->shape == NULL)
        return at_error(cx, AT_EVALUE, "a DLPack tensor of rank %" PRId32 " has no shape", t->ndim);
    if (ati_native_checked_bytes(cx, dtype, t->ndim, t->shape, &bytes) != AT_OK) return cx->status;
    *view = ati_k_view(NULL, dtype, t->ndim, t->shape);
    return read_place(cx, t, view);
}

static at_array import(at_frame *f, const ati_dl_tensor *t, bool read_only, void (*done)(void *),
                       void *managed)
{
    ati_host view;
    if (read_tensor(f->cx, t, &view) != AT_OK) return AT_NIL;
    at_array a =
        at_native_wrap(f, view.dtype, view.ndim, view.dim, view.stride, view.data, done, managed);
    if (read_only && !at_is_nil(a)) at_native_set_read_only(a);
    return a;
}

static void end_plain(void *user)
{
    struct DLManagedTensor *managed = user;
    if (managed->deleter != NULL) managed->deleter(managed);
}

static void end_versioned(void *user)
{
    struct DLManagedTensorVersioned *managed = user;
    if (managed->deleter != NULL) managed->deleter(managed);
}

static bool is_given(at_frame *f, const void *managed)
{
    if (managed == NULL) at_error(f->cx, AT_EARG, "expected a DLPack tensor, found NULL");
    return !at_failed(f);
}

at_array at_from_dlpack(at_frame *f, struct DLManagedTensor *managed)
{
    if (!is_given(f, managed)) return AT_NIL;
    return import(f, &managed->tensor, false, end_plain, managed);
}

at_array at_from_dlpack_versioned(at_frame *f, struct DLManagedTensorVersioned *managed)
{
    if (!is_given(f, managed)) return AT_NIL;
    if (managed->major != 1) {
        at_error(f->cx, AT_EUNSUPPORTED,
                 "expected a DLPack tensor of major version 1, found version %" PRIu32 ".%" PRIu32,
                 managed->major, managed->minor);
        return AT_NIL;
    }
    bool read_only = managed->flags & ATI_DL_READ_ONLY;
    return import(f, &managed->tensor, read_only, end_versioned, managed);
}

/* --- out --- */

typedef struct exported {
    union {
        struct DLManagedTensor plain;
        struct DLManagedTensorVersioned versioned;
    } managed;
    native_array *array; /* a reference; its elements are shown */
    bool copied;
    int64_t axes[]; /* sizes, then strides in elements */
} exported;

static void end_export(exported *e)
{
    ati_native_release(e->array);
    free(e);
}

static void delete_plain(struct DLManagedTensor *self) { end_export(self->manager_ctx); }

static void delete_versioned(struct DLManagedTensorVersioned *self)
{
    end_export(self->manager_ctx);
}

/* Strides that are never taken become row-major. */
static ati_host tidy(const ati_host *view)
{
    ati_host t = ati_k_view(view->data, view->dtype, view->ndim, view->dim);
    bool any = has_elements(view);
    for (int k = 0; k < view->ndim; k++)
        if (any && view->dim[k] != 1) t.stride[k] = view->stride[k];
    return t;
}

/* Whether DLPack can spell a view: it counts strides in elements, and consumers load elements where they are. */
static bool can_be_spelled(const ati_host *view)
{
    int64_t size = ati_k_itemsize(view->dtype);
    bool fits = !has_elements(view) || (uintptr_t)view->data % (uintptr_t)size == 0;
    for (int k = 0; k < view->ndim; k++) fits = fits && view->stride[k] % size == 0;
    return fits;
}

/* DLPack can spell negative strides, but torch ends the process there, and JAX and TensorFlow refuse. */
static bool goes_backwards(const ati_host *view)
{
    for (int k = 0; k < view->ndim; k++)
        if (view->stride[k] < 0) return true;
    return false;
}

static native_array *copy_of(at_context *cx, const ati_host *from)
{
    native_array *a = ati_native_new(cx, from->dtype, from->ndim, from->dim);
    if (a != NULL) ati_k_copy(from, &a->view);
    return a;
}

/* A reference of the array whose elements are shown: a itself, or a copy. NULL with the error recorded. */
static native_array *shown(at_context *cx, native_array *a, at_dlpack_rule rule, bool *copied)
{
    ati_host view = tidy(&a->view);
    bool spelled = can_be_spelled(&view);
    bool needed = !spelled || goes_backwards(&view);
    *copied = rule == AT_DLPACK_COPY || (rule == AT_DLPACK_COPY_IF_NEEDED && needed);
    if (*copied) return copy_of(cx, &a->view);
    if (!spelled) {
        at_error(cx, AT_EUNSUPPORTED,
                 "an array of %s whose address or strides are no multiple of %" PRId64
                 " bytes cannot be shared through DLPack, but as a copy",
                 at_dtype_name(view.dtype), ati_k_itemsize(view.dtype));
        return NULL;
    }
    ati_native_retain(a);
    return a;
}

/* The block of an exported tensor; its managed struct is for the caller to fill. */
static exported *export(at_context *cx, native_array *a, at_dlpack_rule rule)
{
    bool copied;
    native_array *array = shown(cx, a, rule, &copied);
    if (array == NULL) return NULL;
    size_t axes = 2 * (size_t)array->view.ndim * sizeof(int64_t);
    exported *e = calloc(1, sizeof *e + axes);
    if (e == NULL) {
        ati_native_release(array);
        at_error(cx, AT_ENOMEM, "no memory for a DLPack tensor");
        return NULL;
    }
    e->array = array;
    e->copied = copied;
    return e;
}

static void fill_tensor(exported *e, ati_dl_tensor *t)
{
    ati_host view = tidy(&e->array->view);
    int64_t size = ati_k_itemsize(view.dtype);
    t->data = view.data;
    t->device_type = ATI_DL_CPU;
    t->ndim = view.ndim;
    t->code = elements[view.dtype].code;
    t->bits = elements[view.dtype].bits;
    t->lanes = 1;
    t->shape = e->axes;
    t->strides = e->axes + view.ndim;
    for (int k = 0; k < view.ndim; k++) {
        t->shape[k] = view.dim[k];
        t->strides[k] = view.stride[k] / size;
    }
}

static at_status check_array(at_context *cx, at_array a)
{
    if (cx->status != AT_OK) return cx->status;
    if (at_is_nil(a)) return at_error(cx, AT_EARG, "expected an array to export, found nil");
    if (a.be != at_native())
        return at_error(cx, AT_EBACKEND, "expected a native array to export, found one of %s",
                        a.be->name);
    return AT_OK;
}

at_status at_to_dlpack(at_context *cx, at_array a, at_dlpack_rule rule,
                       struct DLManagedTensor **out)
{
    *out = NULL;
    if (check_array(cx, a) != AT_OK) return cx->status;
    if (at_native_is_read_only(a) && rule != AT_DLPACK_COPY)
        return at_error(cx, AT_EUNSUPPORTED,
                        "a read-only array needs DLPack's versioned form (1.0 or later), which can "
                        "say so, or a copy");
    exported *e = export(cx, a.p, rule);
    if (e == NULL) return cx->status;
    fill_tensor(e, &e->managed.plain.tensor);
    e->managed.plain.manager_ctx = e;
    e->managed.plain.deleter = delete_plain;
    *out = &e->managed.plain;
    return AT_OK;
}

at_status at_to_dlpack_versioned(at_context *cx, at_array a, at_dlpack_rule rule,
                                 struct DLManagedTensorVersioned **out)
{
    *out = NULL;
    if (check_array(cx, a) != AT_OK) return cx->status;
    exported *e = export(cx, a.p, rule);
    if (e == NULL) return cx->status;
    struct DLManagedTensorVersioned *managed = &e->managed.versioned;
    fill_tensor(e, &managed->tensor);
    managed->major = 1;
    managed->manager_ctx = e;
    managed->deleter = delete_versioned;
    if (e->array->read_only) managed->flags |= ATI_DL_READ_ONLY;
    if (e->copied) managed->flags |= ATI_DL_IS_COPIED;
    *out = managed;
    return AT_OK;
}
