/* Slots that move elements about: gathers, shapes, joins, casts. Views where a view can do it. */
#include <inttypes.h>

#include "backends/native/native_array.h"
#include "kernels/move.h"
#include "kernels/segment.h"

at_status ati_native_stop_gradient(at_context *cx, const at_backend *be, at_array x, at_array *out)
{
    (void)be;
    ati_native_retain(x.p);
    return ati_native_give(cx, x.p, out);
}

at_status ati_native_astype(at_context *cx, const at_backend *be, at_array x, at_dtype dtype,
                            at_array *out)
{
    const ati_host *from = view_of(x);
    if (from->dtype == dtype) return ati_native_stop_gradient(cx, be, x, out);
    native_array *a = ati_native_new(cx, dtype, from->ndim, from->dim);
    if (a != NULL) ati_k_copy(from, &a->view);
    return ati_native_give(cx, a, out);
}

/* --- shapes --- */

/* x in another shape of as many elements: a view of it, or of a copy where it is strided. */
static native_array *shaped(at_context *cx, at_array x, int ndim, const int64_t *dims)
{
    native_array *whole = ati_native_row_major(cx, x);
    if (whole == NULL) return NULL;
    ati_host view = ati_k_view(whole->view.data, whole->view.dtype, ndim, dims);
    native_array *a = ati_native_view(cx, (at_array){whole, at_native()}, &view);
    ati_native_release(whole);
    return a;
}

static at_status cannot_reshape(at_context *cx, const ati_host *from, const ati_host *to)
{
    return at_error(cx, AT_ESHAPE, "cannot reshape an array of shape %s into shape %s",
                    ati_native_shape_text(from).text, ati_native_shape_text(to).text);
}

/* Replaces the one size of -1. */
static at_status infer_size(at_context *cx, const ati_host *from, ati_host *to)
{
    int64_t known = 1, count = ati_k_count(from);
    int missing = -1;
    for (int k = 0; k < to->ndim; k++) {
        bool here = to->dim[k] == -1;
        if ((here && missing >= 0) || to->dim[k] < -1)
            return at_error(cx, AT_EVALUE, "expected sizes >= 0 and at most one -1, found shape %s",
                            ati_native_shape_text(to).text);
        if (here)
            missing = k;
        else if (__builtin_mul_overflow(known, to->dim[k], &known))
            return cannot_reshape(cx, from, to);
    }
    if (missing >= 0 && (known == 0 || count % known != 0)) return cannot_reshape(cx, from, to);
    if (missing >= 0)
        to->dim[missing] = count / known;
    else if (known != count)
        return cannot_reshape(cx, from, to);
    return AT_OK;
}

at_status ati_native_reshape(at_context *cx, const at_backend *be, at_array x,
                             const at_shape *shape, at_array *out)
{
    (void)be;
    ati_host to = {.ndim = shape->ndim};
    for (int k = 0; k < shape->ndim; k++) {
        if (!at_is_nil(shape->dim[k].sym))
            return at_error(cx, AT_EUNSUPPORTED, "native arrays have no symbolic sizes");
        to.dim[k] = shape->dim[k].n;
    }
    if (infer_size(cx, view_of(x), &to) != AT_OK) return cx->status;
    return ati_native_give(cx, shaped(cx, x, to.ndim, to.dim), out);
}

at_status ati_native_head(at_context *cx, const at_backend *be, at_array x, at_dim n, at_array *out)
{
    (void)be;
    ati_host view = *view_of(x);
    int64_t rows = 0;
    if (ati_native_size(cx, n, &rows) != AT_OK) return cx->status;
    if (view.ndim == 0 || rows > view.dim[0])
        return at_error(cx, AT_ESHAPE, "expected %" PRId64 " rows or more, found shape %s", rows,
                        ati_native_shape_text(&view).text);
    view.dim[0] = rows;
    return ati_native_give(cx, ati_native_view(cx, x, &view), out);
}

at_status ati_native_transpose(at_context *cx, const at_backend *be, at_array x, at_axes axes,
                               at_array *out)
{
    (void)be;
    const ati_host *from = view_of(x);
    ati_host view = *from;
    for (int k = 0; k < axes.count; k++) {
        view.dim[k] = from->dim[axes.axis[k]];
        view.stride[k] = from->stride[axes.axis[k]];
    }
    return ati_native_give(cx, ati_native_view(cx, x, &view), out);
}

/* The wrapper has settled the bounds. */
at_status ati_native_slice(at_context *cx, const at_backend *be, at_array x, at_dim start,
                           at_dim stop, int axis, at_array *out)
{
    (void)be;
    ati_host view = *view_of(x);
    view.dim[axis] = stop.n - start.n;
    if (view.dim[axis] > 0) view.data = (char *)view.data + start.n * view.stride[axis];
    return ati_native_give(cx, ati_native_view(cx, x, &view), out);
}

/* --- gathers --- */

/* Takes along an axis that is in range. */
static at_status take_along(at_context *cx, const ati_host *x, const ati_host *indices, int axis,
                            at_array *out)
{
    int64_t dims[2 * AT_MAX_NDIM];
    int ndim = 0;
    if (x->ndim + indices->ndim - 1 > AT_MAX_NDIM)
        return at_error(cx, AT_ESHAPE, "shape %s taken at shape %s would have more than %d axes",
                        ati_native_shape_text(x).text, ati_native_shape_text(indices).text,
                        AT_MAX_NDIM);
    for (int k = 0; k < axis; k++) dims[ndim++] = x->dim[k];
    for (int k = 0; k < indices->ndim; k++) dims[ndim++] = indices->dim[k];
    for (int k = axis + 1; k < x->ndim; k++) dims[ndim++] = x->dim[k];
    native_array *a = ati_native_new(cx, x->dtype, ndim, dims);
    if (a == NULL) return cx->status;
    if (!ati_k_take(x, indices, axis, &a->view)) {
        ati_native_release(a);
        return at_error(cx, AT_EINDEX, "an index is out of range for axis %d of size %" PRId64,
                        axis, x->dim[axis]);
    }
    return ati_native_give(cx, a, out);
}

/* Settles an axis that may be none: then x is flattened first. The array returned is to be released. */
static native_array *along(at_context *cx, at_array x, int *axis)
{
    const ati_host *view = view_of(x);
    int64_t count = ati_k_count(view);
    if (*axis == AT_NO_AXIS) {
        *axis = 0;
        return shaped(cx, x, 1, &count);
    }
    if (ati_native_axis(cx, view->ndim, axis) != AT_OK) return NULL;
    ati_native_retain(x.p);
    return x.p;
}

at_status ati_native_take(at_context *cx, const at_backend *be, at_array x, at_array indices,
                          int axis, at_array *out)
{
    (void)be;
    native_array *from = along(cx, x, &axis);
    if (from == NULL) return cx->status;
    at_status status = take_along(cx, &from->view, view_of(indices), axis, out);
    ati_native_release(from);
    return status;
}

/* Ids 0 to N - 1, each as often as repeats say. */
static native_array *repeat_ids(at_context *cx, const ati_host *repeats, int64_t n)
{
    ati_host counts = *repeats;
    int64_t total, least;
    if (repeats->ndim > 1 || !ati_k_broadcast(&counts, 1, &n)) {
        at_error(cx, AT_ESHAPE, "argument 'repeats': expected shape () or (%" PRId64 ",), found %s",
                 n, ati_native_shape_text(repeats).text);
        return NULL;
    }
    ati_k_counts(&counts, &total, &least);
    if (least < 0) {
        at_error(cx, AT_EVALUE, "argument 'repeats': expected counts >= 0, found %" PRId64, least);
        return NULL;
    }
    native_array *ids = ati_native_new(cx, AT_INT64, 1, &total);
    if (ids != NULL) ati_k_partition_ids(&counts, &ids->view);
    return ids;
}

at_status ati_native_repeat_each(at_context *cx, const at_backend *be, at_array x, at_array repeats,
                                 int axis, at_array *out)
{
    (void)be;
    at_scalar place;
    native_array *from = along(cx, x, &axis);
    if (from == NULL) return cx->status;
    ati_host counts = ati_native_value(repeats, &place);
    native_array *ids = repeat_ids(cx, &counts, from->view.dim[axis]);
    at_status status = cx->status;
    if (ids != NULL) {
        status = take_along(cx, &from->view, &ids->view, axis, out);
        ati_native_release(ids);
    }
    ati_native_release(from);
    return status;
}

at_status ati_native_spread(at_context *cx, const at_backend *be, at_array x, at_array slot_ids,
                            at_array *out)
{
    (void)be;
    const ati_host *from = view_of(x), *ids = view_of(slot_ids);
    ati_host to = *from;
    if (from->ndim == 0 || ids->ndim != 1)
        return at_error(cx, AT_ESHAPE, "expected rows and a vector of ids, found shapes %s and %s",
                        ati_native_shape_text(from).text, ati_native_shape_text(ids).text);
    to.dim[0] = ids->dim[0];
    native_array *a = ati_native_new(cx, to.dtype, to.ndim, to.dim);
    if (a != NULL) ati_k_spread(from, ids, &a->view);
    return ati_native_give(cx, a, out);
}

/* --- joins --- */

/* The shape of the joined arrays: that of the first, with the sizes along the axis added up. */
static at_status joined_shape(at_context *cx, at_list arrays, int axis, ati_host *to)
{
    *to = *view_of(arrays.array[0]);
    for (int i = 1; i < arrays.count; i++) {
        const ati_host *v = view_of(arrays.array[i]);
        bool fits = v->ndim == to->ndim;
        for (int k = 0; k < to->ndim && fits; k++) fits = k == axis || v->dim[k] == to->dim[k];
        if (!fits)
            return at_error(cx, AT_ESHAPE,
                            "arrays of shapes %s and %s cannot be joined along axis %d",
                            ati_native_shape_text(view_of(arrays.array[0])).text,
                            ati_native_shape_text(v).text, axis);
        if (__builtin_add_overflow(to->dim[axis], v->dim[axis], &to->dim[axis]))
            return at_error(cx, AT_EVALUE, "the joined arrays are too large");
    }
    return AT_OK;
}

static at_status join_along(at_context *cx, at_list arrays, int axis, at_array *out)
{
    ati_host to;
    if (ati_native_axis(cx, view_of(arrays.array[0])->ndim, &axis) != AT_OK ||
        joined_shape(cx, arrays, axis, &to) != AT_OK)
        return cx->status;
    native_array *a = ati_native_new(cx, to.dtype, to.ndim, to.dim);
    if (a == NULL) return cx->status;
    ati_host place = a->view;
    for (int i = 0; i < arrays.count; i++) {
        const ati_host *from = view_of(arrays.array[i]);
        place.dim[axis] = from->dim[axis];
        ati_k_copy(from, &place);
        place.data = (char *)place.data + from->dim[axis] * place.stride[axis];
    }
    return ati_native_give(cx, a, out);
}

static at_status join_flat(at_context *cx, at_list arrays, at_array *out)
{
    int64_t total = 0;
    for (int i = 0; i < arrays.count; i++)
        if (__builtin_add_overflow(total, ati_k_count(view_of(arrays.array[i])), &total))
            return at_error(cx, AT_EVALUE, "the joined arrays are too large");
    native_array *a = ati_native_new(cx, view_of(arrays.array[0])->dtype, 1, &total);
    char *place = a != NULL ? a->view.data : NULL;
    for (int i = 0; i < arrays.count && a != NULL; i++) {
        const ati_host *from = view_of(arrays.array[i]);
        ati_host to = ati_k_view(place, from->dtype, from->ndim, from->dim);
        ati_k_copy(from, &to);
        place += ati_k_count(from) * ati_k_itemsize(from->dtype);
    }
    return ati_native_give(cx, a, out);
}

at_status ati_native_concatenate(at_context *cx, const at_backend *be, at_list arrays, int axis,
                                 at_array *out)
{
    (void)be;
    if (arrays.count < 1) return at_error(cx, AT_EVALUE, "expected at least one array, found none");
    return axis == AT_NO_AXIS ? join_flat(cx, arrays, out) : join_along(cx, arrays, axis, out);
}
