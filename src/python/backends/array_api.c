/* The generic adapter: any library with a namespace of the Python Array API standard.
 *
 * Every op is made of the standard's functions, used as strictly as it asks: dtypes and devices are spelled out,
 * kinds are not mixed, indices are vectors. Values are read where the length of a result depends on them: of an array
 * that is given as a size, as a bound of arange(), as the counts of repeat(). Segment ops stand in
 * array_api_segment.c. */

#include "array_api_state.h"
#include "core/dtype.h"

/* --- helpers --------------------------------------------------------------------------------------------------- */

static PyObject *attribute(pa_frame *f, PyObject *x, PyObject *name)
{
    return f->failed || x == NULL ? pa_keep(f, NULL) : pa_keep(f, PyObject_GetAttr(x, name));
}

/* One size; false with an exception. */
static bool read_size(const at_backend *be, PyObject *size, at_dim *out)
{
    PyObject *number = PyIndex_Check(size) ? PyNumber_Index(size) : NULL;
    if (number == NULL && !PyErr_Occurred())
        PyErr_Format(PyExc_ValueError,
                     "expected an array of known shape, found an array of %s with a size of %R",
                     be->name, size);
    *out = AT_DIM(number == NULL ? 0 : PyLong_AsLongLong(number));
    Py_XDECREF(number);
    return !PyErr_Occurred();
}

static bool read_sizes(const at_backend *be, PyObject *sizes, at_shape *out)
{
    Py_ssize_t ndim = PyTuple_GET_SIZE(sizes);
    if (ndim > AT_MAX_NDIM) {
        PyErr_Format(PyExc_ValueError, "expected rank <= %d, found %zd", AT_MAX_NDIM, ndim);
        return false;
    }
    out->ndim = (int)ndim;
    for (Py_ssize_t k = 0; k < ndim; k++)
        if (!read_size(be, PyTuple_GET_ITEM(sizes, k), &out->dim[k])) return false;
    return true;
}

bool px_sizes(pa_frame *f, const at_backend *be, PyObject *x, at_shape *out)
{
    out->ndim = 0;
    PyObject *shape = attribute(f, x, CONSTANT(be, shape));
    PyObject *sizes = shape == NULL ? NULL : pa_keep(f, PySequence_Tuple(shape));
    if (sizes != NULL && !read_sizes(be, sizes, out)) pa_keep(f, NULL);
    return !f->failed;
}

at_dtype px_dtype_of(pa_frame *f, const at_backend *be, PyObject *x)
{
    bool fails = f->failed || x == NULL;
    PyObject *dtype = fails ? NULL : PyObject_GetAttr(x, CONSTANT(be, dtype));
    if (dtype == NULL) {
        pa_keep(f, NULL);
        return AT_OTHER;
    }
    at_dtype t = px_find_dtype(space_of(be), dtype);
    Py_DECREF(dtype); /* its name lives in the namespace */
    return t;
}

PyObject *px_device_of(pa_frame *f, const at_backend *be, PyObject *x)
{
    if (f->failed || x == NULL) return pa_keep(f, NULL);
    PyObject *device = PyObject_GetAttr(x, CONSTANT(be, device));
    if (device != NULL) return pa_keep(f, device);
    PyErr_Clear();
    return Py_None;
}

at_dtype px_index_of(pa_frame *up, const at_backend *be, PyObject *x)
{
    pa_frame frame, *f = &frame;
    pa_open_in(f, up);
    PyObject *device = px_device_of(f, be, x);
    at_dtype t = device == NULL ? space_of(be)->integral : px_index_dtype(be, device);
    pa_close(f);
    return t;
}

PyObject *px_cast(pa_frame *f, const at_backend *be, PyObject *x, at_dtype t)
{
    if (px_dtype_of(f, be, x) == t) return x;
    return pa_call(f, FN(f, be, astype), x, px_dtype_object(f, be, t));
}

/* The helpers leave one object in the frame: what they make on the way would soon fill its places. */
PyObject *px_scalar(pa_frame *up, const at_backend *be, PyObject *x, PyObject *value, at_dtype t)
{
    pa_frame frame, *f = &frame;
    pa_open_in(f, up);
    PyObject *y = pa_call_named(f, FN(f, be, full), CONSTANT(be, named_dtype_device),
                                CONSTANT(be, scalar_shape), value, px_dtype_object(f, be, t),
                                px_device_of(f, be, x));
    return pa_give(up, f, y);
}

PyObject *px_integer(pa_frame *up, const at_backend *be, PyObject *x, int64_t value, at_dtype t)
{
    pa_frame frame, *f = &frame;
    pa_open_in(f, up);
    return pa_give(up, f, px_scalar(f, be, x, pa_int(f, value), t));
}

PyObject *px_against(pa_frame *up, const at_backend *be, PyObject *vector, int64_t n, int axis,
                     int ndim)
{
    if (ndim == 1) return vector;
    pa_frame frame, *f = &frame;
    pa_open_in(f, up);
    at_shape shape = {.ndim = ndim};
    for (int k = 0; k < ndim; k++) shape.dim[k] = AT_DIM(k == axis ? n : 1);
    return pa_give(up, f, pa_call(f, FN(f, be, reshape), vector, pa_shape(f, &shape)));
}

/* Greatest value of an integer dtype, as far as an int64 goes. */
static int64_t greatest(at_dtype t)
{
    int bits = 8 * (int)at_dtype_size(t) - (ati_dtype_kind(t) == 'i');
    return bits >= 63 ? INT64_MAX : (INT64_C(1) << bits) - 1;
}

PyObject *px_within(pa_frame *up, const at_backend *be, PyObject *x, int64_t low, int64_t n)
{
    pa_frame frame, *f = &frame;
    pa_open_in(f, up);
    at_dtype t = px_dtype_of(f, be, x);
    PyObject *above = NULL, *below = NULL, *inside;
    if (ati_dtype_kind(t) == 'i' && low >= -greatest(t) - 1)
        above = pa_call(f, FN(f, be, greater_equal), x, px_integer(f, be, x, low, t));
    if (n <= greatest(t)) below = pa_call(f, FN(f, be, less), x, px_integer(f, be, x, n, t));
    if (above != NULL && below != NULL)
        inside = pa_call(f, FN(f, be, logical_and), above, below);
    else if (above != NULL || below != NULL)
        inside = above != NULL ? above : below;
    else
        inside = pa_call_named(f, FN(f, be, ones_like), CONSTANT(be, named_dtype), x,
                               px_dtype_object(f, be, AT_BOOL));
    return pa_give(up, f, inside);
}

/* --- attributes ------------------------------------------------------------------------------------------------- */

static void retain(void *p) { Py_INCREF((PyObject *)p); }

static void release(void *p) { Py_DECREF((PyObject *)p); }

static at_status dtype_of(at_context *cx, at_array a, at_dtype *out)
{
    PyObject *dtype = PyObject_GetAttr(a.p, CONSTANT(a.be, dtype));
    if (dtype == NULL) return pa_foreign(cx);
    *out = px_find_dtype(space_of(a.be), dtype);
    Py_DECREF(dtype);
    return AT_OK;
}

static at_status shape_of(at_context *cx, at_array a, at_shape *out)
{
    pa_frame f;
    pa_open(&f);
    bool fine = px_sizes(&f, a.be, a.p, out);
    pa_close(&f);
    return fine ? AT_OK : pa_foreign(cx);
}

static at_dtype default_dtype(const at_backend *be, char kind)
{
    return kind == 'i' ? space_of(be)->integral : space_of(be)->real;
}

/* --- scalars, NumPy arrays, sizes ------------------------------------------------------------------------------- */

static PyObject *from_dlpack(pa_frame *up, const at_backend *be, PyObject *host, PyObject *device)
{
    pa_frame frame, *f = &frame;
    pa_open_in(f, up);
    PyObject *take = FN(f, be, from_dlpack);
    PyObject *x = device == Py_None
                      ? pa_call(f, take, host)
                      : pa_call_named(f, take, CONSTANT(be, named_device), host, device);
    PyObject *owned = Py_XNewRef(x);
    pa_close(f);
    return owned;
}

/* asarray() of most libraries takes NumPy's; the others take what DLPack says. If none does, asarray() speaks. */
static PyObject *take_over(pa_frame *f, const at_backend *be, PyObject *host, PyObject *device)
{
    PyObject *asarray = FN(f, be, asarray), *args[] = {host, device};
    if (f->failed) return NULL;
    PyObject *x = PyObject_Vectorcall(asarray, args, 1, CONSTANT(be, named_device));
    if (x != NULL || !PyErr_ExceptionMatches(PyExc_TypeError)) return pa_keep(f, x);
    PyObject *type, *error, *trace;
    PyErr_Fetch(&type, &error, &trace);
    x = from_dlpack(f, be, host, device);
    if (x == NULL) {
        PyErr_Restore(type, error, trace);
        return pa_keep(f, NULL);
    }
    Py_XDECREF(type);
    Py_XDECREF(error);
    Py_XDECREF(trace);
    return pa_keep(f, x);
}

static at_status adopt(at_context *cx, const at_backend *be, at_array a, at_array like,
                       at_array *out)
{
    pa_frame f;
    pa_open(&f);
    at_dtype t = AT_OTHER;
    a.be->dtype(cx, a, &t);
    if (t != AT_OTHER) px_dtype_object(&f, be, t); /* fails where there is none */
    PyObject *device = at_is_nil(like) ? Py_None : px_device_of(&f, be, like.p);
    PyObject *host = f.failed ? NULL : pa_keep(&f, pa_numpy_for_sharing(space_of(be)->home, a.p));
    return pa_finish(&f, cx, be, take_over(&f, be, host, device), out);
}

static at_status from_scalar(at_context *cx, const at_backend *be, at_array scalar, at_dtype dtype,
                             at_array like, at_array *out)
{
    if (at_is_nil(like)) return at_error(cx, AT_EARG, "a scalar needs an array beside it");
    pa_frame f;
    pa_open(&f);
    PyObject *y = px_scalar(&f, be, like.p, pa_number_as(&f, scalar, dtype), dtype);
    return pa_finish(&f, cx, be, y, out);
}

static at_status to_size(at_context *cx, at_array a, at_dim *out)
{
    PyObject *number = PyNumber_Index(a.p);
    if (number == NULL) return pa_foreign(cx);
    *out = AT_DIM(PyLong_AsLongLong(number));
    Py_DECREF(number);
    return PyErr_Occurred() ? pa_foreign(cx) : AT_OK;
}

/* A 0-d array is read, as it is where it is a size; a vector where its length cannot be told without. (Libraries read
 * such counts anyway, and may die of those whose sum no array can hold.) What cannot be read now is not known. */
static at_status peek(at_context *cx, at_array a, bool needed, int64_t *sum, int64_t *least,
                      bool *known)
{
    (void)cx;
    const at_backend *be = a.be;
    pa_frame frame, *f = &frame;
    pa_open(f);
    at_shape shape;
    *sum = *least = 0;
    *known = false;
    if (px_sizes(f, be, a.p, &shape) && (shape.ndim == 0 || (needed && shape.dim[0].n > 0))) {
        PyObject *wide = px_cast(f, be, a.p, space_of(be)->real);
        PyObject *all = pa_call(f, FN(f, be, sum), wide), *low = pa_call(f, FN(f, be, min), wide);
        all = f->failed ? NULL : pa_keep(f, PyNumber_Float(all));
        low = f->failed ? NULL : pa_keep(f, PyNumber_Float(low));
        *known = !f->failed;
        if (*known) *sum = pa_clamped(all);
        if (*known) *least = pa_clamped(low);
    }
    pa_close(f);
    PyErr_Clear();
    return AT_OK;
}

/* --- elementwise -------------------------------------------------------------------------------------------------- */

#define UNARY_SLOT(op, fn)                                                                         \
    at_status px_##op(at_context *cx, const at_backend *be, at_array x, at_array *out)             \
    {                                                                                              \
        pa_frame f;                                                                                \
        pa_open(&f);                                                                               \
        return pa_finish(&f, cx, be, pa_call(&f, FN(&f, be, fn), x.p), out);                       \
    }

UNARY_SLOT(exp, exp)
UNARY_SLOT(log, log)
UNARY_SLOT(sqrt, sqrt)

/* A question that only floats are asked; what all others answer is made by a ..._like() function. */
static at_status ask_floats(at_context *cx, const at_backend *be, int fn, int others, at_array x,
                            at_array *out)
{
    pa_frame f;
    pa_open(&f);
    at_dtype t = px_dtype_of(&f, be, x.p);
    if (ati_is_float(t) || t == AT_OTHER)
        return pa_finish(&f, cx, be, pa_call(&f, px_function(&f, be, fn), x.p), out);
    PyObject *y = pa_call_named(&f, px_function(&f, be, others), CONSTANT(be, named_dtype), x.p,
                                px_dtype_object(&f, be, AT_BOOL));
    return pa_finish(&f, cx, be, y, out);
}

at_status px_is_nan(at_context *cx, const at_backend *be, at_array x, at_array *out)
{
    return ask_floats(cx, be, FN_isnan, FN_zeros_like, x, out);
}

at_status px_is_inf(at_context *cx, const at_backend *be, at_array x, at_array *out)
{
    return ask_floats(cx, be, FN_isinf, FN_zeros_like, x, out);
}

at_status px_is_finite(at_context *cx, const at_backend *be, at_array x, at_array *out)
{
    return ask_floats(cx, be, FN_isfinite, FN_ones_like, x, out);
}

at_status px_stop_gradient(at_context *cx, const at_backend *be, at_array x, at_array *out)
{
    (void)cx;
    Py_INCREF((PyObject *)x.p);
    *out = (at_array){x.p, be};
    return AT_OK;
}

#define BINARY_SLOT(op, fn)                                                                        \
    at_status px_##op(at_context *cx, const at_backend *be, at_array x, at_array y, at_array *out) \
    {                                                                                              \
        pa_frame f;                                                                                \
        pa_open(&f);                                                                               \
        return pa_finish(&f, cx, be, pa_call(&f, FN(&f, be, fn), x.p, y.p), out);                  \
    }

BINARY_SLOT(add, add)
BINARY_SLOT(sub, subtract)
BINARY_SLOT(mul, multiply)
BINARY_SLOT(div, divide)
BINARY_SLOT(equal, equal)

/* Of truths the greater one is or, the lesser one and. */
#define EXTREME_SLOT(op, logical)                                                                  \
    at_status px_##op(at_context *cx, const at_backend *be, at_array x, at_array y, at_array *out) \
    {                                                                                              \
        pa_frame f;                                                                                \
        pa_open(&f);                                                                               \
        int fn = px_dtype_of(&f, be, x.p) == AT_BOOL ? FN_##logical : FN_##op;                     \
        return pa_finish(&f, cx, be, pa_call(&f, px_function(&f, be, fn), x.p, y.p), out);         \
    }

EXTREME_SLOT(maximum, logical_or)
EXTREME_SLOT(minimum, logical_and)

at_status px_where(at_context *cx, const at_backend *be, at_array condition, at_array x, at_array y,
                   at_array *out)
{
    pa_frame f;
    pa_open(&f);
    PyObject *z = pa_call(&f, FN(&f, be, where), condition.p, x.p, y.p);
    return pa_finish(&f, cx, be, z, out);
}

/* --- reductions --------------------------------------------------------------------------------------------------- */

/* Sums and products keep the dtype; no axes (not all of them) leave the array as it is. */
static at_status fold(at_context *cx, const at_backend *be, int fn, at_array x, const at_axes *axes,
                      bool keepdims, at_array *out)
{
    pa_frame f;
    pa_open(&f);
    if (axes->count == 0) return pa_finish(&f, cx, be, x.p, out);
    PyObject *dtype = attribute(&f, x.p, CONSTANT(be, dtype));
    PyObject *y =
        pa_call_named(&f, px_function(&f, be, fn), CONSTANT(be, named_axis_dtype_keepdims), x.p,
                      pa_axes(&f, axes, -1), dtype, keepdims ? Py_True : Py_False);
    return pa_finish(&f, cx, be, y, out);
}

/* The others have no dtype=; least and greatest truths are found as integers. */
static at_status reduce(at_context *cx, const at_backend *be, int fn, at_array x,
                        const at_axes *axes, bool keepdims, at_array *out)
{
    pa_frame f;
    pa_open(&f);
    if (axes->count == 0) return pa_finish(&f, cx, be, x.p, out);
    bool truths = px_dtype_of(&f, be, x.p) == AT_BOOL;
    PyObject *rows = truths ? px_cast(&f, be, x.p, AT_UINT8) : x.p;
    PyObject *y = pa_call_named(&f, px_function(&f, be, fn), CONSTANT(be, named_axis_keepdims),
                                rows, pa_axes(&f, axes, -1), keepdims ? Py_True : Py_False);
    return pa_finish(&f, cx, be, truths ? px_cast(&f, be, y, AT_BOOL) : y, out);
}

#define REDUCE_SLOT(op, how)                                                                       \
    at_status px_##op(at_context *cx, const at_backend *be, at_array x, at_axes axes,              \
                      bool keepdims, at_array *out)                                                \
    {                                                                                              \
        return how(cx, be, FN_##op, x, &axes, keepdims, out);                                      \
    }

REDUCE_SLOT(sum, fold)
REDUCE_SLOT(prod, fold)
REDUCE_SLOT(mean, reduce)
REDUCE_SLOT(min, reduce)
REDUCE_SLOT(max, reduce)

at_status px_cumsum(at_context *cx, const at_backend *be, at_array x, int axis, at_array *out)
{
    pa_frame f;
    pa_open(&f);
    PyObject *dtype = attribute(&f, x.p, CONSTANT(be, dtype));
    PyObject *y = pa_call_named(&f, FN(&f, be, cumulative_sum), CONSTANT(be, named_axis_dtype), x.p,
                                pa_int(&f, axis), dtype);
    return pa_finish(&f, cx, be, y, out);
}

/* --- shape and layout ---------------------------------------------------------------------------------------------- */

static PyObject *flat(pa_frame *f, const at_backend *be, PyObject *x)
{
    return pa_call(f, FN(f, be, reshape), x, CONSTANT(be, flat_shape));
}

/* Indices of any integer dtype, as positions in [0, n); 0 where they are not inside. */
static PyObject *positions(pa_frame *up, const at_backend *be, PyObject *index, PyObject *inside,
                           int64_t n)
{
    pa_frame frame, *f = &frame;
    pa_open_in(f, up);
    at_dtype wide = px_index_of(f, be, index);
    bool is_signed = ati_dtype_kind(px_dtype_of(f, be, index)) == 'i';
    PyObject *place = px_cast(f, be, index, wide), *zero = px_integer(f, be, index, 0, wide);
    if (is_signed) {
        PyObject *more = pa_call(f, FN(f, be, add), place, px_integer(f, be, index, n, wide));
        PyObject *negative = pa_call(f, FN(f, be, less), place, zero);
        place = pa_call(f, FN(f, be, where), negative, more, place);
    }
    return pa_give(up, f, pa_call(f, FN(f, be, where), inside, place, zero));
}

/* What stands where an index is out of range, 0-d. */
static PyObject *nothing(pa_frame *f, const at_backend *be, PyObject *x)
{
    at_dtype t = px_dtype_of(f, be, x);
    PyObject *dtype = attribute(f, x, CONSTANT(be, dtype));
    bool exact = t == AT_BOOL || ati_is_integer(t);
    PyObject *value = t == AT_BOOL ? Py_False
                      : exact      ? CONSTANT(be, zero)
                                   : pa_keep(f, PyFloat_FromDouble(Py_NAN));
    return pa_call_named(f, FN(f, be, full), CONSTANT(be, named_dtype_device),
                         CONSTANT(be, scalar_shape), value, dtype, px_device_of(f, be, x));
}

/* x along an axis of n elements, at the places of a vector. */
static PyObject *taken(pa_frame *f, const at_backend *be, PyObject *x, PyObject *index, int axis,
                       const at_shape *shape)
{
    int64_t n = shape->dim[axis].n;
    at_shape of_index;
    PyObject *inside = px_within(f, be, index, -n, n);
    PyObject *place = positions(f, be, index, inside, n);
    PyObject *y =
        pa_call_named(f, FN(f, be, take), CONSTANT(be, named_axis), x, place, pa_int(f, axis));
    if (!px_sizes(f, be, index, &of_index)) return NULL;
    PyObject *mask = px_against(f, be, inside, of_index.dim[0].n, axis, shape->ndim);
    return pa_call(f, FN(f, be, where), mask, y, nothing(f, be, x));
}

/* The shape of a take: the axis gives way to the axes of the indices. */
static void splice(at_shape *result, const at_shape *x, const at_shape *index, int axis)
{
    result->ndim = x->ndim - 1 + index->ndim;
    for (int k = 0; k < result->ndim && k < AT_MAX_NDIM; k++)
        result->dim[k] = k < axis                 ? x->dim[k]
                         : k < axis + index->ndim ? index->dim[k - axis]
                                                  : x->dim[k - index->ndim + 1];
}

/* The axis as a number from 0; false with an exception. */
static bool settle_axis(pa_frame *f, const at_shape *shape, int *axis)
{
    if (*axis >= -shape->ndim && *axis < shape->ndim) {
        *axis += *axis < 0 ? shape->ndim : 0;
        return true;
    }
    PyErr_Format(PyExc_IndexError, "axis %d is out of range for an array of rank %d", *axis,
                 shape->ndim);
    pa_keep(f, NULL);
    return false;
}

/* An index out of range gives NaN or 0: whether its value could be read, the standard does not say. */
at_status px_take(at_context *cx, const at_backend *be, at_array x, at_array indices, int axis,
                  at_array *out)
{
    pa_frame f;
    pa_open(&f);
    at_shape shape, of_index, result;
    PyObject *source = axis == AT_NO_AXIS ? flat(&f, be, x.p) : x.p, *y = NULL;
    axis = axis == AT_NO_AXIS ? 0 : axis;
    if (!px_sizes(&f, be, source, &shape) || !px_sizes(&f, be, indices.p, &of_index) ||
        !settle_axis(&f, &shape, &axis))
        return pa_finish(&f, cx, be, NULL, out);
    splice(&result, &shape, &of_index, axis);
    if (result.ndim > AT_MAX_NDIM) {
        pa_close(&f);
        return at_error(cx, AT_ESHAPE, "expected rank <= %d, found %d", AT_MAX_NDIM, result.ndim);
    }
    PyObject *index = of_index.ndim == 1 ? indices.p : flat(&f, be, indices.p);
    if (shape.dim[axis].n == 0)
        y = pa_call(&f, FN(&f, be, broadcast_to), nothing(&f, be, source), pa_shape(&f, &result));
    else
        y = taken(&f, be, source, index, axis, &shape);
    if (of_index.ndim != 1 && shape.dim[axis].n != 0)
        y = pa_call(&f, FN(&f, be, reshape), y, pa_shape(&f, &result));
    return pa_finish(&f, cx, be, y, out);
}

at_status px_repeat_each(at_context *cx, const at_backend *be, at_array x, at_array repeats,
                         int axis, at_array *out)
{
    pa_frame f;
    pa_open(&f);
    bool vector = repeats.be == be;
    PyObject *counts = vector ? px_cast(&f, be, repeats.p, px_index_of(&f, be, repeats.p))
                              : pa_number(&f, repeats);
    PyObject *source = axis == AT_NO_AXIS ? flat(&f, be, x.p) : x.p;
    PyObject *along = axis == AT_NO_AXIS ? CONSTANT(be, zero) : pa_int(&f, axis);
    PyObject *y =
        pa_call_named(&f, FN(&f, be, repeat), CONSTANT(be, named_axis), source, counts, along);
    return pa_finish(&f, cx, be, y, out);
}

at_status px_reshape(at_context *cx, const at_backend *be, at_array x, const at_shape *shape,
                     at_array *out)
{
    pa_frame f;
    pa_open(&f);
    PyObject *y = pa_call(&f, FN(&f, be, reshape), x.p, pa_shape(&f, shape));
    return pa_finish(&f, cx, be, y, out);
}

at_status px_transpose(at_context *cx, const at_backend *be, at_array x, at_axes axes,
                       at_array *out)
{
    pa_frame f;
    pa_open(&f);
    PyObject *y = pa_call(&f, FN(&f, be, permute_dims), x.p, pa_axes(&f, &axes, -1));
    return pa_finish(&f, cx, be, y, out);
}

at_status px_slice(at_context *cx, const at_backend *be, at_array x, at_dim start, at_dim stop,
                   int axis, at_array *out)
{
    pa_frame f;
    pa_open(&f);
    PyObject *key = pa_part(&f, axis, start, stop);
    return pa_finish(&f, cx, be, key == NULL ? NULL : pa_keep(&f, PyObject_GetItem(x.p, key)), out);
}

/* Truths are counted: the standard multiplies numbers only. dask.array widens the products of small integers. */
at_status px_matmul(at_context *cx, const at_backend *be, at_array x, at_array y, at_array *out)
{
    pa_frame f;
    pa_open(&f);
    at_dtype t = px_dtype_of(&f, be, x.p), as = t == AT_BOOL ? space_of(be)->integral : t;
    PyObject *a = t == as ? x.p : px_cast(&f, be, x.p, as);
    PyObject *b = t == as ? y.p : px_cast(&f, be, y.p, as);
    PyObject *z = pa_call(&f, FN(&f, be, matmul), a, b);
    return pa_finish(&f, cx, be, px_cast(&f, be, z, t), out);
}

/* A list of the arrays, flat ones without an axis. */
static PyObject *listed(pa_frame *f, const at_backend *be, at_list arrays, bool as_vectors)
{
    PyObject *list = pa_keep(f, PyList_New(0));
    for (int i = 0; list != NULL && i < arrays.count; i++) {
        pa_frame g; /* a list may be longer than a frame has places */
        pa_open_in(&g, f);
        PyObject *one = as_vectors ? flat(&g, be, arrays.array[i].p) : arrays.array[i].p;
        if (one == NULL || PyList_Append(list, one) < 0) list = pa_keep(f, NULL);
        pa_close(&g);
    }
    return list;
}

at_status px_concatenate(at_context *cx, const at_backend *be, at_list arrays, int axis,
                         at_array *out)
{
    pa_frame f;
    pa_open(&f);
    PyObject *list = listed(&f, be, arrays, axis == AT_NO_AXIS);
    PyObject *along = axis == AT_NO_AXIS ? CONSTANT(be, zero) : pa_int(&f, axis);
    PyObject *y = pa_call_named(&f, FN(&f, be, concat), CONSTANT(be, named_axis), list, along);
    return pa_finish(&f, cx, be, y, out);
}

at_status px_astype(at_context *cx, const at_backend *be, at_array x, at_dtype dtype, at_array *out)
{
    pa_frame f;
    pa_open(&f);
    return pa_finish(&f, cx, be, px_cast(&f, be, x.p, dtype), out);
}

/* --- constructors --------------------------------------------------------------------------------------------------- */

/* x on the device of another array. */
static PyObject *moved(pa_frame *f, const at_backend *be, PyObject *x, at_array beside)
{
    if (f->failed || beside.be != be) return x;
    PyObject *from = px_device_of(f, be, x), *to = px_device_of(f, be, beside.p);
    int same = f->failed ? 1 : PyObject_RichCompareBool(from, to, Py_EQ);
    if (same != 0) return same < 0 ? pa_keep(f, NULL) : x;
    return pa_keep(f, PyObject_CallMethodObjArgs(x, CONSTANT(be, to_device), to, NULL));
}

at_status px_full(at_context *cx, const at_backend *be, const at_shape *shape, at_array fill_value,
                  at_dtype dtype, at_array like, at_array *out)
{
    pa_frame f;
    pa_open(&f);
    PyObject *sizes = pa_shape(&f, shape), *type = px_dtype_object(&f, be, dtype), *y;
    if (fill_value.be == be) {
        PyObject *value = moved(&f, be, fill_value.p, like);
        PyObject *view = pa_call(&f, FN(&f, be, broadcast_to), value, sizes);
        y = pa_call(&f, FN(&f, be, astype), view, type); /* always a copy */
    } else {
        y = pa_call_named(&f, FN(&f, be, full), CONSTANT(be, named_dtype_device), sizes,
                          pa_number_as(&f, fill_value, dtype), type, px_device_of(&f, be, like.p));
    }
    return pa_finish(&f, cx, be, y, out);
}

/* A bound of a range as a Python number; an array's is read. */
static PyObject *bound(pa_frame *f, const at_backend *be, at_array value)
{
    if (f->failed || value.be != be) return pa_number(f, value);
    bool floating = ati_is_float(px_dtype_of(f, be, value.p));
    if (f->failed) return NULL;
    return pa_keep(f, floating ? PyNumber_Float(value.p) : PyNumber_Index(value.p));
}

at_status px_arange(at_context *cx, const at_backend *be, at_array start, at_array stop,
                    at_array step, at_dtype dtype, at_array like, const void *device, at_array *out)
{
    pa_frame f;
    pa_open(&f);
    const at_array given[] = {like, start, stop, step};
    PyObject *where = (PyObject *)device;
    for (int i = 0; i < 4 && where == NULL; i++)
        if (given[i].be == be) where = px_device_of(&f, be, given[i].p);
    PyObject *from = bound(&f, be, start), *to = bound(&f, be, stop);
    PyObject *by = pa_step(&f, bound(&f, be, step));
    PyObject *y =
        pa_call_named(&f, FN(&f, be, arange), CONSTANT(be, named_dtype_device), from, to, by,
                      px_dtype_object(&f, be, dtype), where == NULL ? Py_None : where);
    return pa_finish(&f, cx, be, y, out);
}

/* --- the vtable ------------------------------------------------------------------------------------------------------ */

const at_backend px_slots = {
    .traits = AT_WIDE_SUMS,
    .retain = retain,
    .release = release,
    .dtype = dtype_of,
    .shape = shape_of,
    .default_dtype = default_dtype,
    .adopt = adopt,
    .from_scalar = from_scalar,
    .to_size = to_size,
    .peek = peek,
#define ATI_SLOT_PRIMITIVE(name) .name = px_##name,
#define ATI_SLOT_COMPOSITE(name)
#define OP(kind, name, level, ...) ATI_SLOT_##level(name)
#include "anytensor/ops.def"
};
