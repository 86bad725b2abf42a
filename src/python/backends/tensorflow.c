/* The TensorFlow adapter: handles are tensors, ops are TensorFlow's own kernels, called through raw_ops.
 *
 * The same calls run eagerly, build graphs under tf.function, and are compiled by XLA. XLA's extremes pass over NaN and
 * its gathers clamp; whether a graph will be compiled cannot be asked, so in every graph both are mended. A size
 * that only run time knows is a 0-d int32 tensor. Values are read in two places: peek(), and sizes and bounds that
 * are eager tensors. */
#include "tensorflow_state.h"

#include "core/dtype.h"

/* --- attributes ------------------------------------------------------------------------------------------------ */

static void retain(void *p) { Py_INCREF((PyObject *)p); }

static void release(void *p) { Py_DECREF((PyObject *)p); }

static at_status tensorflow_shape(at_context *cx, at_array a, at_shape *out)
{
    const tensorflow_state *st = state_of(a.be);
    pa_frame f;
    pa_open(&f);
    out->ndim = 0;
    PyObject *tuple;
    if (st->eager.sizes != NULL && pf_is_eager(st, a.p)) {
        tuple = pa_keep(&f, pf_eager_sizes(st, a.p));
    } else {
        PyObject *list = pf_sizes(&f, a.be, a.p);
        tuple = list == NULL ? NULL : pa_keep(&f, PyList_AsTuple(list));
    }
    at_status status = tuple == NULL ? pa_foreign(cx)
                                     : pa_read_shape(cx, &st->home->tensorflow_symbol, tuple, out);
    pa_close(&f);
    return status;
}

static at_dtype tensorflow_default_dtype(const at_backend *be, char kind)
{
    (void)be;
    return kind == 'i' ? AT_INT64 : AT_FLOAT64;
}

/* NumPy's own way to look at the numbers of an eager tensor on the CPU: the memory is shared. */
static at_status tensorflow_peek(at_context *cx, at_array a, bool needed, int64_t *sum,
                                 int64_t *least, bool *known)
{
    const tensorflow_state *st = state_of(a.be);
    const at_backend *numpy = &st->home->numpy;
    *known = false;
    if (!pf_is_eager(st, a.p) || !pf_runs_now(a.be) || numpy->peek == NULL) return AT_OK;
    PyObject *device = PyObject_GetAttr(a.p, st->attribute[GET_device]);
    const char *name = device == NULL ? NULL : PyUnicode_AsUTF8(device);
    bool host = name != NULL && strstr(name, "CPU") != NULL;
    Py_XDECREF(device);
    PyErr_Clear();
    if (!host) return AT_OK;
    PyObject *array = PyObject_CallMethod(a.p, "numpy", NULL);
    if (array != NULL && pa_is_numpy_scalar(array))
        Py_SETREF(array, pa_numpy_scalar_to_array(array));
    if (array == NULL) return pa_foreign(cx);
    at_status status = AT_OK;
    if (PyObject_TypeCheck(array, pa_ndarray_type()))
        status = numpy->peek(cx, (at_array){array, numpy}, needed, sum, least, known);
    Py_DECREF(array);
    return status;
}

/* --- scalars, NumPy arrays, sizes -------------------------------------------------------------------------------- */

static at_status tensorflow_adopt(at_context *cx, const at_backend *be, at_array a, at_array like,
                                  at_array *out)
{
    pa_frame f;
    pa_open(&f);
    PyObject *host = pa_keep(&f, pa_numpy_for_sharing(state_of(be)->home, a.p));
    PyObject *context = pf_enter_device(&f, be, pf_device_of(&f, be, like));
    PyObject *x = pf_call(&f, be, convert, host);
    pf_leave_device(&f, be, context);
    return pa_finish(&f, cx, be, x, out);
}

static PyObject *scalar_tensor(pa_frame *f, const at_backend *be, at_array scalar, at_dtype dtype)
{
    if (scalar.be != &at_weak) return pf_cast(f, be, pf_tensor(f, be, scalar.p), dtype);
    PyObject *number = pa_number_as(f, scalar, dtype);
    return pf_call(f, be, constant, number, pf_dtype_object(f, be, dtype));
}

static at_status tensorflow_from_scalar(at_context *cx, const at_backend *be, at_array scalar,
                                        at_dtype dtype, at_array like, at_array *out)
{
    pa_frame f;
    pa_open(&f);
    PyObject *context = pf_enter_device(&f, be, pf_device_of(&f, be, like));
    PyObject *x = scalar_tensor(&f, be, scalar, dtype);
    pf_leave_device(&f, be, context);
    return pa_finish(&f, cx, be, x, out);
}

/* The number that a 0-d tensor holds, if it may be read or the graph knows it; else NULL, with or without failure. */
static PyObject *known_number(pa_frame *f, const at_backend *be, PyObject *x)
{
    const tensorflow_state *st = state_of(be);
    if (f->failed || x == NULL) return NULL;
    PyObject *value = pf_is_eager(st, x) ? x : pf_call(f, be, static_value, x);
    if (value == NULL || value == Py_None) return NULL;
    at_array a = {x, be};
    return pa_keep(f, ati_is_float(pf_type(f, a)) ? PyNumber_Float(value) : PyNumber_Index(value));
}

static at_status tensorflow_to_size(at_context *cx, at_array a, at_dim *out)
{
    pa_frame f;
    pa_open(&f);
    PyObject *x = pf_tensor(&f, a.be, a.p), *number = known_number(&f, a.be, x);
    at_dtype t = pf_type(&f, a);
    *out = AT_DIM(0);
    if (number != NULL)
        *out = AT_DIM(PyLong_AsLongLong(number));
    else if (!f.failed)
        out->sym = (at_array){t == AT_INT32 ? x : pf_cast(&f, a.be, x, AT_INT32),
                              &state_of(a.be)->home->tensorflow_symbol};
    bool fine = !f.failed && !PyErr_Occurred();
    if (fine && out->sym.p != NULL) Py_INCREF((PyObject *)out->sym.p);
    if (!fine) *out = AT_DIM(0);
    pa_close(&f);
    return fine ? AT_OK : pa_foreign(cx);
}

/* --- elementwise --------------------------------------------------------------------------------------------------- */

#define UNARY_SLOT(name)                                                                           \
    static at_status tensorflow_##name(at_context *cx, const at_backend *be, at_array x,           \
                                       at_array *out)                                              \
    {                                                                                              \
        pa_frame f;                                                                                \
        pa_open(&f);                                                                               \
        return pa_finish(&f, cx, be, pf_call(&f, be, name, pf_tensor(&f, be, x.p)), out);          \
    }

#define BINARY_SLOT(name)                                                                          \
    static at_status tensorflow_##name(at_context *cx, const at_backend *be, at_array x,           \
                                       at_array y, at_array *out)                                  \
    {                                                                                              \
        pa_frame f;                                                                                \
        pa_open(&f);                                                                               \
        PyObject *a = pf_tensor(&f, be, x.p), *b = pf_tensor(&f, be, y.p);                         \
        return pa_finish(&f, cx, be, pf_call(&f, be, name, a, b), out);                            \
    }

UNARY_SLOT(exp)
UNARY_SLOT(log)
UNARY_SLOT(sqrt)
UNARY_SLOT(rsqrt)
UNARY_SLOT(stop_gradient)
BINARY_SLOT(add)
BINARY_SLOT(sub)
BINARY_SLOT(mul)
BINARY_SLOT(div)
BINARY_SLOT(equal)

/* A question that TensorFlow asks floats only; what all others answer is made by a ..._like() function. */
static at_status ask_floats(at_context *cx, const at_backend *be, int fn, int others, at_array x,
                            at_array *out)
{
    pa_frame f;
    pa_open(&f);
    bool floats = ati_is_float(pf_type(&f, x));
    PyObject *a = pf_tensor(&f, be, x.p);
    PyObject *args[] = {NULL, floats ? a : pf_cast(&f, be, a, AT_BOOL)};
    return pa_finish(&f, cx, be, pf_vectorcall(&f, be, floats ? fn : others, args + 1, 1), out);
}

static at_status tensorflow_is_nan(at_context *cx, const at_backend *be, at_array x, at_array *out)
{
    return ask_floats(cx, be, FN_is_nan, FN_zeros_like, x, out);
}

static at_status tensorflow_is_inf(at_context *cx, const at_backend *be, at_array x, at_array *out)
{
    return ask_floats(cx, be, FN_is_inf, FN_zeros_like, x, out);
}

static at_status tensorflow_is_finite(at_context *cx, const at_backend *be, at_array x,
                                      at_array *out)
{
    return ask_floats(cx, be, FN_is_finite, FN_ones_like, x, out);
}

/* x where it wins or is NaN, else y: XLA's own maximum passes over NaN. */
static PyObject *graph_extreme(pa_frame *f, const at_backend *be, PyObject *x, PyObject *y,
                               bool max)
{
    PyObject *wins =
        max ? pf_call(f, be, greater_equal, x, y) : pf_call(f, be, greater_equal, y, x);
    PyObject *mine = pf_call(f, be, logical_or, wins, pf_call(f, be, is_nan, x));
    return pf_call(f, be, where, mine, x, y);
}

static at_status extreme_of(at_context *cx, const at_backend *be, at_array x, at_array y, bool max,
                            at_array *out)
{
    pa_frame f;
    pa_open(&f);
    at_dtype t = pf_type(&f, x);
    PyObject *a = pf_tensor(&f, be, x.p), *b = pf_tensor(&f, be, y.p), *z;
    if (t == AT_BOOL)
        z = max ? pf_call(&f, be, logical_or, a, b) : pf_call(&f, be, logical_and, a, b);
    else if (ati_is_float(t) && !pf_runs_now(be))
        z = graph_extreme(&f, be, a, b, max);
    else
        z = max ? pf_call(&f, be, maximum, a, b) : pf_call(&f, be, minimum, a, b);
    return pa_finish(&f, cx, be, z, out);
}

static at_status tensorflow_maximum(at_context *cx, const at_backend *be, at_array x, at_array y,
                                    at_array *out)
{
    return extreme_of(cx, be, x, y, true, out);
}

static at_status tensorflow_minimum(at_context *cx, const at_backend *be, at_array x, at_array y,
                                    at_array *out)
{
    return extreme_of(cx, be, x, y, false, out);
}

static at_status tensorflow_where(at_context *cx, const at_backend *be, at_array condition,
                                  at_array x, at_array y, at_array *out)
{
    pa_frame f;
    pa_open(&f);
    PyObject *c = pf_tensor(&f, be, condition.p);
    PyObject *a = pf_tensor(&f, be, x.p), *b = pf_tensor(&f, be, y.p);
    return pa_finish(&f, cx, be, pf_call(&f, be, where, c, a, b), out);
}

static at_status tensorflow_astype(at_context *cx, const at_backend *be, at_array x, at_dtype dtype,
                                   at_array *out)
{
    pa_frame f;
    pa_open(&f);
    PyObject *a = pf_tensor(&f, be, x.p);
    return pa_finish(&f, cx, be, pf_type(&f, x) == dtype ? a : pf_cast(&f, be, a, dtype), out);
}

/* No bound at all: of a variable, its value. */
static at_status tensorflow_clip(at_context *cx, const at_backend *be, at_array x, at_array min,
                                 at_array max, at_array *out)
{
    if (!at_is_nil(min) || !at_is_nil(max)) return AT_DECLINE;
    pa_frame f;
    pa_open(&f);
    return pa_finish(&f, cx, be, pf_tensor(&f, be, x.p), out);
}

/* --- reductions ------------------------------------------------------------------------------------------------------ */

/* An axis counted from the front; -1 fails the frame. */
static int front_axis(pa_frame *f, int axis, int ndim)
{
    if (f->failed) return -1;
    if (axis >= -ndim && axis < ndim) return axis < 0 ? axis + ndim : axis;
    PyErr_Format(PyExc_ValueError, "axis %d is out of range for a tensor of rank %d", axis, ndim);
    pa_keep(f, NULL);
    return -1;
}

/* The axes as a vector (one alone as a number), counted from the front; all of them are spelled out. */
static PyObject *axes_vector(pa_frame *f, const at_backend *be, PyObject *x, const at_axes *axes)
{
    int ndim = pf_rank(f, be, x), count = axes->count < 0 ? ndim : axes->count;
    if (axes->count == 1) return pa_int(f, front_axis(f, axes->axis[0], ndim));
    PyObject *tuple = f->failed ? NULL : pa_keep(f, PyTuple_New(count));
    for (int k = 0; tuple != NULL && k < count; k++) {
        int front = axes->count < 0 ? k : front_axis(f, axes->axis[k], ndim);
        PyObject *axis = front < 0 ? NULL : PyLong_FromLong(front);
        if (axis == NULL) return pa_keep(f, NULL);
        PyTuple_SET_ITEM(tuple, k, axis);
    }
    return pf_vector(f, be, tuple);
}

/* Half types are added and multiplied in float32. */
static at_status reduce(at_context *cx, const at_backend *be, int fn, at_array x,
                        const at_axes *axes, bool keepdims, at_array *out)
{
    pa_frame f;
    pa_open(&f);
    at_dtype t = pf_type(&f, x);
    PyObject *a = pf_tensor(&f, be, x.p), *axis = axes_vector(&f, be, a, axes);
    if (ati_is_half(t)) a = pf_cast(&f, be, a, AT_FLOAT32);
    PyObject *args[] = {NULL, a, axis, keepdims ? Py_True : Py_False};
    PyObject *y = pf_vectorcall(&f, be, fn, args + 1, 3);
    return pa_finish(&f, cx, be, ati_is_half(t) ? pf_cast(&f, be, y, t) : y, out);
}

/* Nothing has no extreme; TensorFlow would give an infinity. */
static void refuse_empty(pa_frame *f, const at_backend *be, PyObject *x, const at_axes *axes)
{
    PyObject *sizes = pf_sizes(f, be, x);
    int ndim = sizes == NULL ? 0 : (int)PyList_GET_SIZE(sizes);
    for (int k = 0; k < (axes->count < 0 ? ndim : axes->count); k++) {
        int axis = axes->count < 0 ? k : axes->axis[k];
        if (axis < -ndim || axis >= ndim) continue; /* TensorFlow says so */
        at_dim size = pf_dim(state_of(be), sizes, axis < 0 ? axis + ndim : axis);
        if (!at_is_nil(size.sym) || size.n != 0 || f->failed) continue;
        PyErr_Format(PyExc_ValueError, "expected at least one element along axis %d, found none",
                     axis);
        pa_keep(f, NULL);
    }
}

static at_status reduce_extreme(at_context *cx, const at_backend *be, at_array x,
                                const at_axes *axes, bool keepdims, bool max, at_array *out)
{
    pa_frame f;
    pa_open(&f);
    at_dtype t = pf_type(&f, x);
    PyObject *a = pf_tensor(&f, be, x.p), *keep = keepdims ? Py_True : Py_False, *y;
    refuse_empty(&f, be, a, axes);
    PyObject *axis = axes_vector(&f, be, a, axes);
    if (t == AT_BOOL)
        y = max ? pf_call(&f, be, any, a, axis, keep) : pf_call(&f, be, all, a, axis, keep);
    else
        y = max ? pf_call(&f, be, max, a, axis, keep) : pf_call(&f, be, min, a, axis, keep);
    if (ati_is_float(t) && !pf_runs_now(be)) {
        PyObject *spoilt = pf_call(&f, be, any, pf_call(&f, be, is_nan, a), axis, keep);
        y = pf_call(&f, be, where, spoilt, pf_float(&f, be, Py_NAN, t), y);
    }
    return pa_finish(&f, cx, be, y, out);
}

#define REDUCE_SLOT(name)                                                                          \
    static at_status tensorflow_##name(at_context *cx, const at_backend *be, at_array x,           \
                                       at_axes axes, bool keepdims, at_array *out)                 \
    {                                                                                              \
        return reduce(cx, be, FN_##name, x, &axes, keepdims, out);                                 \
    }

#define EXTREME_SLOT(name, is_max)                                                                 \
    static at_status tensorflow_##name(at_context *cx, const at_backend *be, at_array x,           \
                                       at_axes axes, bool keepdims, at_array *out)                 \
    {                                                                                              \
        return reduce_extreme(cx, be, x, &axes, keepdims, is_max, out);                            \
    }

REDUCE_SLOT(sum)
REDUCE_SLOT(prod)
REDUCE_SLOT(mean)
EXTREME_SLOT(min, false)
EXTREME_SLOT(max, true)

/* XLA has no running sum of uint64: that of int64 has the same bits. */
static at_status tensorflow_cumsum(at_context *cx, const at_backend *be, at_array x, int axis,
                                   at_array *out)
{
    pa_frame f;
    pa_open(&f);
    at_dtype t = pf_type(&f, x);
    PyObject *a = pf_tensor(&f, be, x.p);
    if (ati_is_half(t)) a = pf_cast(&f, be, a, AT_FLOAT32);
    if (t == AT_UINT64) a = pf_bits(&f, be, a, AT_INT64);
    int front = front_axis(&f, axis, pf_rank(&f, be, a));
    PyObject *y = pf_call(&f, be, cumsum, a, pa_int(&f, front));
    if (ati_is_half(t)) y = pf_cast(&f, be, y, t);
    if (t == AT_UINT64) y = pf_bits(&f, be, y, t);
    return pa_finish(&f, cx, be, y, out);
}

/* --- layout ------------------------------------------------------------------------------------------------------------ */

static PyObject *flat(pa_frame *f, const at_backend *be, PyObject *x)
{
    const at_shape all = {.ndim = 1, .dim = {AT_DIM(-1)}};
    PyObject *a = pf_tensor(f, be, x);
    return pf_call(f, be, reshape, a, pf_vector(f, be, pa_shape(f, &all)));
}

/* What a gather works on. */
typedef struct gathered {
    PyObject *x;
    int ndim, axis;
    at_dim size; /* of the axis */
} gathered;

/* The source of a gather: flattened where no axis is given. */
static gathered source_of(pa_frame *f, const at_backend *be, at_array x, int axis)
{
    gathered g = {.size = AT_DIM(0)};
    g.x = axis == AT_NO_AXIS ? flat(f, be, x.p) : pf_tensor(f, be, x.p);
    PyObject *sizes = pf_sizes(f, be, g.x);
    if (sizes == NULL) return g;
    g.ndim = (int)PyList_GET_SIZE(sizes);
    g.axis = front_axis(f, axis == AT_NO_AXIS ? 0 : axis, g.ndim);
    if (!f->failed) g.size = pf_dim(state_of(be), sizes, g.axis);
    return g;
}

/* Indices counted from the front. A uint64 beyond int64 has turned negative, and must stay out of range. */
static PyObject *from_the_front(pa_frame *f, at_array indices, at_dim size, at_dtype *t)
{
    const at_backend *be = indices.be;
    at_dtype own = pf_type(f, indices);
    PyObject *index = pf_index(f, indices, size, t);
    if (ati_dtype_kind(own) == 'u' && own != AT_UINT64) return index;
    PyObject *negative = pf_call(f, be, less, index, pf_integer(f, be, 0, *t));
    PyObject *front = own == AT_UINT64 ? pf_integer(f, be, INT64_MAX, *t)
                                       : pf_call(f, be, add, index, pf_size(f, be, size, *t));
    return pf_call(f, be, where, negative, front, index);
}

/* The sizes of an index with ones behind: as a mask against the result of a gather. */
static PyObject *against(pa_frame *f, const at_backend *be, PyObject *index, int ones)
{
    PyObject *sizes = pf_sizes(f, be, index);
    for (int k = 0; sizes != NULL && k < ones; k++) {
        PyObject *one = PyLong_FromLong(1);
        if (one == NULL || PyList_Append(sizes, one) < 0) sizes = pa_keep(f, NULL);
        Py_XDECREF(one);
    }
    return pf_vector(f, be, sizes);
}

/* XLA clamps an index that is out of range: NaN or 0 takes the place of what it finds. */
static PyObject *masked(pa_frame *f, const at_backend *be, PyObject *y, PyObject *index,
                        const gathered *from, at_dtype t)
{
    pa_frame g;
    pa_open_in(&g, f);
    at_array places = {index, be};
    at_dtype own = pf_type(&g, places);
    PyObject *low = pf_call(&g, be, greater_equal, index, pf_integer(&g, be, 0, own));
    PyObject *high = pf_call(&g, be, less, index, pf_size(&g, be, from->size, own));
    PyObject *shape = against(&g, be, index, from->ndim - from->axis - 1);
    PyObject *mask = pf_call(&g, be, reshape, pf_call(&g, be, logical_and, low, high), shape);
    PyObject *none = ati_is_float(t) ? pf_float(&g, be, Py_NAN, t) : pf_call(&g, be, zeros_like, y);
    return pa_give(f, &g, pf_call(&g, be, where, mask, y, none));
}

/* An index out of range is TensorFlow's InvalidArgumentError. It stays one, and becomes an IndexError, too. */
static void say_index_error(const at_backend *be)
{
    if (!PyErr_ExceptionMatches(FN(be, InvalidArgument))) return;
    PyObject *type, *error, *trace;
    PyErr_Fetch(&type, &error, &trace);
    PyErr_NormalizeException(&type, &error, &trace);
    PyObject *both = state_of(be)->index_error;
    if (PyObject_SetAttrString(error, "__class__", both) < 0)
        PyErr_Clear(); /* it is the one, then */
    else
        Py_SETREF(type, Py_NewRef(both));
    PyErr_Restore(type, error, trace);
}

/* On a CPU TensorFlow itself looks whether an index lies in range: most do, and need no counting from the front. NULL:
 * one does not, or this is not the place to ask. */
static PyObject *gathered_at_once(const at_backend *be, at_array indices, const gathered *from)
{
    const tensorflow_state *st = state_of(be);
    pa_frame f;
    pa_open(&f);
    at_dtype own = pf_type(&f, indices);
    PyObject *index = pf_tensor(&f, be, indices.p), *y = NULL;
    if (!f.failed && (own == AT_INT32 || own == AT_INT64) && pf_runs_now(be) &&
        pf_is_on_cpu(st, from->x) && pf_is_on_cpu(st, index))
        y = pf_call(&f, be, gather, from->x, index, pa_int(&f, from->axis));
    y = pa_take(&f, y);
    if (y == NULL) PyErr_Clear();
    return y;
}

static at_status tensorflow_take(at_context *cx, const at_backend *be, at_array x, at_array indices,
                                 int axis, at_array *out)
{
    pa_frame f;
    pa_open(&f);
    at_dtype t = pf_type(&f, x), own;
    gathered g = source_of(&f, be, x, axis);
    PyObject *at_once = f.failed ? NULL : gathered_at_once(be, indices, &g);
    if (at_once != NULL) return pa_finish(&f, cx, be, pa_keep(&f, at_once), out);
    PyObject *index = from_the_front(&f, indices, g.size, &own);
    bool fine = !f.failed;
    PyObject *y = pf_call(&f, be, gather, g.x, index, pa_int(&f, g.axis));
    if (fine && y == NULL) say_index_error(be);
    if (!pf_runs_now(be)) y = masked(&f, be, y, index, &g, t);
    return pa_finish(&f, cx, be, y, out);
}

static at_status tensorflow_reshape(at_context *cx, const at_backend *be, at_array x,
                                    const at_shape *shape, at_array *out)
{
    pa_frame f;
    pa_open(&f);
    PyObject *sizes = pf_vector(&f, be, pa_shape(&f, shape));
    return pa_finish(&f, cx, be, pf_call(&f, be, reshape, pf_tensor(&f, be, x.p), sizes), out);
}

static at_status tensorflow_transpose(at_context *cx, const at_backend *be, at_array x,
                                      at_axes axes, at_array *out)
{
    pa_frame f;
    pa_open(&f);
    PyObject *order = pf_vector(&f, be, pa_axes(&f, &axes, -1));
    return pa_finish(&f, cx, be, pf_call(&f, be, transpose, pf_tensor(&f, be, x.p), order), out);
}

/* (before, ..., before, last): a bound for each axis up to the one that is cut. */
static PyObject *bounds_vector(pa_frame *f, const at_backend *be, int axis, int64_t before,
                               at_dim last)
{
    at_shape bounds = {.ndim = axis + 1};
    for (int k = 0; k < axis; k++) bounds.dim[k] = AT_DIM(before);
    bounds.dim[axis] = last;
    return pf_vector(f, be, pa_shape(f, &bounds));
}

/* The axes before the one that is cut are whole: that is what the masks say. All three vectors are of one dtype. */
static at_status tensorflow_slice(at_context *cx, const at_backend *be, at_array x, at_dim start,
                                  at_dim stop, int axis, at_array *out)
{
    pa_frame f;
    pa_open(&f);
    bool to_end = at_is_nil(stop.sym) && stop.n == INT64_MIN;
    PyObject *begin = bounds_vector(&f, be, axis, 0, start);
    PyObject *end = bounds_vector(&f, be, axis, 0, to_end ? AT_DIM(0) : stop);
    PyObject *step = bounds_vector(&f, be, axis, 1, AT_DIM(1));
    if (start.n > INT32_MAX || stop.n > INT32_MAX) {
        begin = pf_cast(&f, be, begin, AT_INT64);
        end = pf_cast(&f, be, end, AT_INT64);
        step = pf_cast(&f, be, step, AT_INT64);
    }
    int64_t before = (INT64_C(1) << axis) - 1;
    PyObject *whole = pa_int(&f, before), *open = to_end ? pa_int(&f, 2 * before + 1) : whole;
    PyObject *y = pf_call(&f, be, slice, pf_tensor(&f, be, x.p), begin, end, step, whole, open);
    return pa_finish(&f, cx, be, y, out);
}

/* One array of a list, flattened where no axis is given. */
static bool append(at_context *cx, const at_backend *be, PyObject *list, PyObject *x, int axis)
{
    pa_frame f;
    pa_open(&f);
    at_array one = AT_NIL;
    PyObject *item = axis == AT_NO_AXIS ? flat(&f, be, x) : pf_tensor(&f, be, x);
    bool fine =
        pa_finish(&f, cx, be, item, &one) == AT_OK && PyList_Append(list, (PyObject *)one.p) == 0;
    at_release(one);
    return fine;
}

static at_status tensorflow_concatenate(at_context *cx, const at_backend *be, at_list arrays,
                                        int axis, at_array *out)
{
    pa_frame f;
    pa_open(&f);
    PyObject *list = pa_keep(&f, PyList_New(0)), *y = NULL;
    for (int i = 0; list != NULL && i < arrays.count; i++)
        if (!append(cx, be, list, arrays.array[i].p, axis)) list = pa_keep(&f, NULL);
    PyObject *first = list == NULL ? NULL : PyList_GET_ITEM(list, 0);
    int front = front_axis(&f, axis == AT_NO_AXIS ? 0 : axis, pf_rank(&f, be, first));
    if (arrays.count == 1) /* TensorFlow wants two */
        y = first;
    else
        y = pf_call(&f, be, concat, list, pa_int(&f, front));
    return pa_finish(&f, cx, be, y, out);
}

static at_status tensorflow_stack(at_context *cx, const at_backend *be, at_list arrays, int axis,
                                  at_array *out)
{
    pa_frame f;
    pa_open(&f);
    PyObject *list = pa_keep(&f, PyList_New(0));
    for (int i = 0; list != NULL && i < arrays.count; i++)
        if (!append(cx, be, list, arrays.array[i].p, 0)) list = pa_keep(&f, NULL);
    return pa_finish(&f, cx, be, pf_call(&f, be, pack, list, pa_int(&f, axis)), out);
}

/* --- products of matrices --------------------------------------------------------------------------------------------------- */

/* What TensorFlow multiplies instead of a dtype that it has no product for: integers wrap alike in a wider one, truths are
 * counted. */
static at_dtype multiplied_as(at_dtype t)
{
    if (t == AT_UINT32 || t == AT_UINT64) return AT_INT64;
    return t == AT_BOOL || (ati_is_integer(t) && at_dtype_size(t) < 4) ? AT_INT32 : t;
}

/* A vector as a row or a column, in the dtype that is multiplied. */
static PyObject *as_matrix(pa_frame *f, const at_backend *be, at_array x, int ndim, bool column,
                           at_dtype t)
{
    at_shape shape = {.ndim = 2, .dim = {AT_DIM(column ? -1 : 1), AT_DIM(column ? 1 : -1)}};
    PyObject *a = pf_tensor(f, be, x.p);
    at_dtype own = pf_type(f, x);
    if (own == AT_UINT64)
        a = pf_bits(f, be, a, t);
    else if (own != t)
        a = pf_cast(f, be, a, t);
    if (ndim > 1) return a;
    PyObject *sizes = pf_sizes(f, be, a);
    if (sizes != NULL) shape.dim[column ? 0 : 1] = pf_dim(state_of(be), sizes, 0);
    return pf_call(f, be, reshape, a, pf_vector(f, be, pa_shape(f, &shape)));
}

/* The product without the axes of size 1 that vectors were given. */
static PyObject *without_axes(pa_frame *f, const at_backend *be, PyObject *z, bool row, bool column)
{
    PyObject *sizes = !row && !column ? NULL : pf_sizes(f, be, z);
    if (sizes == NULL) return z;
    Py_ssize_t n = PyList_GET_SIZE(sizes);
    if ((column && PyList_SetSlice(sizes, n - 1, n, NULL) < 0) ||
        (row && PyList_SetSlice(sizes, n - 2, n - 1, NULL) < 0))
        return pa_keep(f, NULL);
    return pf_call(f, be, reshape, z, pf_vector(f, be, sizes));
}

static at_status tensorflow_matmul(at_context *cx, const at_backend *be, at_array x, at_array y,
                                   at_array *out)
{
    pa_frame f;
    pa_open(&f);
    at_dtype t = pf_type(&f, x), as = multiplied_as(t);
    int rows = pf_rank(&f, be, x.p), columns = pf_rank(&f, be, y.p);
    PyObject *a = as_matrix(&f, be, x, rows, false, as),
             *b = as_matrix(&f, be, y, columns, true, as);
    PyObject *z = pf_call(&f, be, matmul, a, b);
    z = without_axes(&f, be, z, rows == 1, columns == 1);
    if (t == AT_UINT64)
        z = pf_bits(&f, be, z, t);
    else if (as != t)
        z = pf_cast(&f, be, z, t);
    return pa_finish(&f, cx, be, z, out);
}

/* --- repeat -------------------------------------------------------------------------------------------------------------- */

/* Which element stands at each place when all are repeated alike. */
static PyObject *each_alike(pa_frame *f, const at_backend *be, PyObject *count, at_dim size)
{
    PyObject *zero = pf_integer(f, be, 0, AT_INT64), *one = pf_integer(f, be, 1, AT_INT64);
    PyObject *total = pf_call(f, be, mul, count, pf_size(f, be, size, AT_INT64));
    PyObject *place = pf_call(f, be, range, zero, total, one);
    return pf_call(f, be, floor_div, place, pf_call(f, be, maximum, count, one));
}

/* The same for a count of each element: as many runs are over as end at or before a place. tf.repeat would make a mask
 * of elements times the greatest count. */
static PyObject *each_its_own(pa_frame *f, const at_backend *be, PyObject *counts, at_dim size)
{
    const at_shape row = {.ndim = 2, .dim = {AT_DIM(1), AT_DIM(-1)}};
    at_shape n = {.ndim = 1};
    n.dim[0] = size;
    PyObject *zero = pf_integer(f, be, 0, AT_INT64), *one = pf_integer(f, be, 1, AT_INT64);
    PyObject *all = pf_call(f, be, broadcast_to, counts, pf_vector(f, be, pa_shape(f, &n)));
    PyObject *ends = pf_call(f, be, cumsum, all, pa_int(f, 0));
    PyObject *total = pf_call(f, be, sum, all, pa_int(f, 0), Py_False);
    PyObject *place = pf_call(f, be, range, zero, total, one);
    PyObject *as_row = pf_vector(f, be, pa_shape(f, &row));
    PyObject *over =
        pf_call(f, be, upper_bound, pf_call(f, be, reshape, ends, as_row),
                pf_call(f, be, reshape, place, as_row), pf_dtype_object(f, be, AT_INT64));
    return flat(f, be, over);
}

/* The counts as int64, and whether there is one for all elements. */
static PyObject *counts_of(pa_frame *f, const at_backend *be, at_array repeats, bool *single)
{
    PyObject *counts = repeats.be == be ? pf_cast(f, be, pf_tensor(f, be, repeats.p), AT_INT64)
                                        : scalar_tensor(f, be, repeats, AT_INT64);
    PyObject *sizes = pf_sizes(f, be, counts);
    int ndim = sizes == NULL ? 0 : (int)PyList_GET_SIZE(sizes);
    if (ndim > 1) {
        PyErr_Format(PyExc_ValueError, "argument 'repeats': expected rank 0 or 1, found rank %d",
                     ndim);
        return pa_keep(f, NULL);
    }
    at_dim length = ndim == 1 ? pf_dim(state_of(be), sizes, 0) : AT_DIM(1);
    *single = at_is_nil(length.sym) && length.n == 1;
    const at_shape none = {.ndim = 0};
    return *single && ndim == 1
               ? pf_call(f, be, reshape, counts, pf_vector(f, be, pa_shape(f, &none)))
               : counts;
}

static at_status tensorflow_repeat_each(at_context *cx, const at_backend *be, at_array x,
                                        at_array repeats, int axis, at_array *out)
{
    pa_frame f, g;
    pa_open(&f);
    pa_open(&g);
    bool single = false;
    gathered from = source_of(&f, be, x, axis);
    PyObject *counts = counts_of(&f, be, repeats, &single);
    PyObject *index = f.failed ? NULL
                      : single ? each_alike(&g, be, counts, from.size)
                               : each_its_own(&g, be, counts, from.size);
    PyObject *y = pf_call(&f, be, gather, from.x, index, pa_int(&f, from.axis));
    at_status status = pa_finish(&f, cx, be, y, out);
    pa_close(&g);
    return status;
}

/* --- constructors ---------------------------------------------------------------------------------------------------------- */

static at_status tensorflow_full(at_context *cx, const at_backend *be, const at_shape *shape,
                                 at_array fill_value, at_dtype dtype, at_array like, at_array *out)
{
    pa_frame f;
    pa_open(&f);
    PyObject *device = pf_device_of(&f, be, at_is_nil(like) ? fill_value : like);
    PyObject *context = pf_enter_device(&f, be, device);
    PyObject *sizes = pf_vector(&f, be, pa_shape(&f, shape)), *y;
    if (fill_value.be == be) {
        PyObject *value = pf_cast(&f, be, pf_tensor(&f, be, fill_value.p), dtype);
        y = pf_call(&f, be, broadcast_to, value, sizes);
    } else {
        y = pf_call(&f, be, fill, sizes, scalar_tensor(&f, be, fill_value, dtype));
    }
    pf_leave_device(&f, be, context);
    return pa_finish(&f, cx, be, y, out);
}

/* Zeros and ones, which TensorFlow makes without being told a shape. */
static at_status tensorflow_full_like(at_context *cx, const at_backend *be, at_array x,
                                      at_array fill_value, at_dtype dtype, at_array *out)
{
    if (x.be != be) return AT_DECLINE; /* a number beside a tensor that fills it */
    pa_frame f;
    pa_open(&f);
    at_dtype t = pf_type(&f, x);
    double value = fill_value.be == &at_weak ? ((const at_scalar *)fill_value.p)->d : Py_NAN;
    if ((value != 0 && value != 1) || signbit(value) || (dtype != AT_NODTYPE && dtype != t))
        return AT_DECLINE;
    PyObject *a = pf_tensor(&f, be, x.p);
    PyObject *context = pf_enter_device(&f, be, pf_device_of(&f, be, x));
    PyObject *y = value == 0 ? pf_call(&f, be, zeros_like, a) : pf_call(&f, be, ones_like, a);
    pf_leave_device(&f, be, context);
    return pa_finish(&f, cx, be, y, out);
}

/* The bounds of a range: numbers where they are known, and tensors of int64 or float64. */
typedef struct bounds {
    PyObject *start, *stop, *step; /* Python numbers, or NULL where one of them is not known */
    at_dtype type;
    PyObject *first, *by; /* tensors */
    PyObject *end;
} bounds;

/* A bound as a Python number; NULL, perhaps without a failure, where only run time knows it. */
static PyObject *bound(pa_frame *f, const at_backend *be, at_array value)
{
    if (value.be == be) return known_number(f, be, pf_tensor(f, be, value.p));
    if (value.be == &at_weak) return pa_number(f, value);
    return known_number(f, be, value.p);
}

static bool is_float_bound(pa_frame *f, const at_backend *be, at_array value)
{
    if (value.be == be) return ati_is_float(pf_type(f, value));
    return value.be == &at_weak && ((const at_scalar *)value.p)->kind == AT_WEAK_FLOAT;
}

static PyObject *bound_tensor(pa_frame *f, const at_backend *be, at_array value, at_dtype t)
{
    if (value.be == &at_weak) return scalar_tensor(f, be, value, t);
    return pf_cast(f, be, pf_tensor(f, be, value.p), t);
}

/* How many steps lead from start to before stop: rounded up, never below 0. Integers are counted exactly, floats as
 * NumPy counts them. */
static PyObject *known_count(pa_frame *f, PyObject *start, PyObject *stop, PyObject *step)
{
    if (f->failed || pa_step(f, step) == NULL) return NULL;
    if (PyFloat_Check(start) || PyFloat_Check(stop) || PyFloat_Check(step)) {
        double way = PyFloat_AsDouble(stop) - PyFloat_AsDouble(start);
        double steps = ceil(way / PyFloat_AsDouble(step));
        return PyErr_Occurred() ? pa_keep(f, NULL)
                                : pa_keep(f, PyLong_FromDouble(steps > 0 ? steps : 0));
    }
    PyObject *way = pa_keep(f, PyNumber_Subtract(start, stop)); /* -((start - stop) // step) */
    PyObject *steps = way == NULL ? NULL : pa_keep(f, PyNumber_FloorDivide(way, step));
    PyObject *count = steps == NULL ? NULL : pa_keep(f, PyNumber_Negative(steps));
    PyObject *zero = pa_int(f, 0);
    if (f->failed) return NULL;
    int below = PyObject_RichCompareBool(count, zero, Py_LT);
    return below < 0 ? pa_keep(f, NULL) : below ? zero : count;
}

static PyObject *traced_count(pa_frame *f, const at_backend *be, const bounds *b)
{
    PyObject *way = pf_call(f, be, sub, b->first, b->end);
    PyObject *steps = pf_call(f, be, floor_div, way, b->by);
    PyObject *up = pf_call(f, be, sub, pf_call(f, be, zeros_like, steps), steps);
    return pf_call(f, be, maximum, pf_cast(f, be, up, AT_INT64), pf_integer(f, be, 0, AT_INT64));
}

/* start + 0, 1, 2, ... times step, in float64 or int64: TensorFlow's own range adds the step again and again, and has
 * no kernel for most dtypes. */
static PyObject *range_of(pa_frame *f, const at_backend *be, at_array start, at_array stop,
                          at_array step)
{
    bounds b = {
        .start = bound(f, be, start), .stop = bound(f, be, stop), .step = bound(f, be, step)};
    bool floating =
        is_float_bound(f, be, start) || is_float_bound(f, be, stop) || is_float_bound(f, be, step);
    at_dtype t = floating ? AT_FLOAT64 : AT_INT64;
    PyObject *count;
    b.first = bound_tensor(f, be, start, t);
    b.by = bound_tensor(f, be, step, t);
    if (b.start != NULL && b.stop != NULL && b.step != NULL) {
        count = known_count(f, b.start, b.stop, b.step);
        int64_t n = count == NULL ? 0 : PyLong_AsLongLong(count);
        if (n < 0) return pa_keep(f, NULL); /* beyond int64 */
        count = pf_integer(f, be, n, AT_INT64);
    } else {
        b.end = bound_tensor(f, be, stop, t);
        count = traced_count(f, be, &b);
    }
    PyObject *place = pf_call(f, be, range, pf_integer(f, be, 0, AT_INT64), count,
                              pf_integer(f, be, 1, AT_INT64));
    if (floating) place = pf_cast(f, be, place, t);
    return pf_call(f, be, add, pf_call(f, be, mul, place, b.by), b.first);
}

static at_status tensorflow_arange(at_context *cx, const at_backend *be, at_array start,
                                   at_array stop, at_array step, at_dtype dtype, at_array like,
                                   const void *device, at_array *out)
{
    pa_frame f, g;
    pa_open(&f);
    pa_open(&g);
    PyObject *where = device != NULL ? (PyObject *)device : pf_device_of(&f, be, like);
    PyObject *context = pf_enter_device(&f, be, where);
    PyObject *numbers = f.failed ? NULL : range_of(&g, be, start, stop, step);
    PyObject *y = pf_cast(&f, be, numbers, dtype);
    pf_leave_device(&f, be, context);
    at_status status = pa_finish(&f, cx, be, y, out);
    pa_close(&g);
    return status;
}

/* --- waking ------------------------------------------------------------------------------------------------------------------ */

static int wake(pa_state *pst, at_backend *be, PyObject *tensorflow)
{
    tensorflow_state *st = pf_state_new(tensorflow, pst);
    if (st == NULL) return -1;
    *be = (at_backend){
        .name = "tensorflow",
        .state = st,
        .traits = AT_WIDE_SUMS | AT_TAKES_SYMBOLS,
        .retain = retain,
        .release = release,
        .dtype = pf_dtype_of,
        .shape = tensorflow_shape,
        .default_dtype = tensorflow_default_dtype,
        .adopt = tensorflow_adopt,
        .from_scalar = tensorflow_from_scalar,
        .to_size = tensorflow_to_size,
        .tracked = pf_tracked,
        .peek = tensorflow_peek,
#define ATI_SLOT_PRIMITIVE(name) .name = tensorflow_##name,
#define ATI_SLOT_COMPOSITE(name)
#define SLOT(name, ...) .name = pf_##name,
#define SLOT_IDS(name, ...) .name = pf_##name,
#define SPREAD(name, ...) .name = pf_##name,
#define HEAD(name, ...) .name = pf_##name,
#define OP(kind, name, level, ...) ATI_SLOT_##level(name)
#include "anytensor/ops.def"
        .rsqrt = tensorflow_rsqrt,
        .clip = tensorflow_clip,
        .full_like = tensorflow_full_like,
        .stack = tensorflow_stack,
        .segment_sum = pf_segment_sum,
        .segment_mean = pf_segment_mean,
        .segment_variance = pf_segment_variance,
        .segment_min = pf_segment_min,
        .segment_max = pf_segment_max,
        .segment_min_or_constant = pf_segment_min_or_constant,
        .segment_max_or_constant = pf_segment_max_or_constant,
        .segment_count = pf_segment_count,
        .segment_softmax = pf_segment_softmax,
        .segment_normalize = pf_segment_normalize,
        .partition_ids = pf_partition_ids,
    };
    return 0;
}

const pa_framework pa_tensorflow = {
    .module = "tensorflow",
    .oldest = "2.13",
    .arrays = offsetof(pa_state, tensorflow),
    .symbols = offsetof(pa_state, tensorflow_symbol),
    .wake = wake,
    .owns = pf_owns,
    .dtype = pf_dtype,
    .holds = pf_holds,
    .trace = pf_trace,
    .visit = pf_visit,
    .clear = pf_clear,
};
