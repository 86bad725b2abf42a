/* The torch adapter: handles are tensors, ops are torch's own functions.
 *
 * Whatever torch is doing with the tensors it was given (autograd, fake tensors, functorch, tracing), these
 * calls go through its dispatcher, so they are seen. Scatters are scatter_add and scatter_reduce, never
 * index_add. Values are read in one place only, peek(), and only from plain eager tensors on the CPU. */
#include "torch_state.h"

#include "core/dtype.h"

/* --- attributes ------------------------------------------------------------------------------------------ */

static void retain(void *p) { Py_INCREF((PyObject *)p); }

static void release(void *p) { Py_DECREF((PyObject *)p); }

static at_status torch_dtype(at_context *cx, at_array a, at_dtype *out)
{
    const torch_state *st = state_of(a.be);
    PyObject *dtype = pt_get(st, a.p, GET_dtype);
    if (dtype == NULL) return pa_foreign(cx);
    *out = pt_find_dtype(st, dtype);
    Py_DECREF(dtype);
    return AT_OK;
}

static at_status torch_shape(at_context *cx, at_array a, at_shape *out)
{
    const torch_state *st = state_of(a.be);
    PyObject *size = pt_get(st, a.p, GET_shape);
    if (size == NULL) return pa_foreign(cx);
    at_status status = pa_read_shape(cx, &st->home->torch_symbol, size, out);
    Py_DECREF(size);
    return status;
}

static at_dtype torch_default_dtype(const at_backend *be, char kind)
{
    if (kind == 'i') return AT_INT64;
    if (PyErr_Occurred())
        return AT_FLOAT32; /* a formula goes on after a failure; the exception must stay */
    PyObject *dtype = PyObject_CallNoArgs(FN(be, default_dtype));
    at_dtype t = dtype == NULL ? AT_FLOAT32 : pt_find_dtype(state_of(be), dtype);
    Py_XDECREF(dtype);
    PyErr_Clear();
    return t;
}

/* The shape as a tuple; NULL fails the frame. */
static PyObject *shape_tuple(pa_frame *f, const at_backend *be, PyObject *x)
{
    PyObject *size = f->failed ? NULL : pa_keep(f, pt_get(state_of(be), x, GET_shape));
    if (size == NULL || PyTuple_Check(size)) return size;
    PyErr_Format(PyExc_TypeError, "expected a tuple as shape, found %s", Py_TYPE(size)->tp_name);
    return pa_keep(f, NULL);
}

/* Rank of a tensor; -1 fails the frame. */
static int rank(pa_frame *f, const at_backend *be, PyObject *x)
{
    PyObject *ndim = f->failed ? NULL : pa_keep(f, pt_get(state_of(be), x, GET_ndim));
    long n = ndim == NULL ? -1 : PyLong_AsLong(ndim);
    if (n < 0 && !f->failed) {
        if (!PyErr_Occurred()) PyErr_SetString(PyExc_TypeError, "a tensor's ndim is negative");
        pa_keep(f, NULL);
    }
    return (int)n;
}

static PyObject *dtype_object(pa_frame *f, const at_backend *be, at_dtype t)
{
    PyObject *dtype = t < AT_OTHER ? state_of(be)->dtype[t] : NULL;
    if (dtype == NULL && !f->failed) {
        PyErr_Format(PyExc_TypeError, "this torch has no %s", at_dtype_name(t));
        pa_keep(f, NULL);
    }
    return dtype;
}

static at_status torch_peek(at_context *cx, at_array a, bool needed, int64_t *sum, int64_t *least,
                            bool *known)
{
    (void)needed;
    const torch_state *st = state_of(a.be);
    *known = false;
    if (!pt_is_plain(st, a.p)) return AT_OK;
    pa_frame f;
    pa_open(&f);
    /* added as floats: exact up to 2**53, and no sum of lengths wraps to a small one */
    PyObject *wide =
        pa_call_named(&f, st->fn[FN_to], CONSTANT(st, named_dtype), a.p, st->dtype[AT_FLOAT64]);
    PyObject *total = pa_call(&f, st->fn[FN_item], pa_call(&f, st->fn[FN_sum], wide));
    *sum = total == NULL ? 0 : pa_clamped(total);
    *least = 0;
    PyObject *size = shape_tuple(&f, a.be, a.p);
    if (size != NULL &&
        (PyTuple_GET_SIZE(size) == 0 || PyLong_AsLong(PyTuple_GET_ITEM(size, 0)) > 0)) {
        PyObject *low = pa_call(&f, st->fn[FN_item], pa_call(&f, st->fn[FN_min], wide));
        *least = low == NULL ? 0 : pa_clamped(low);
    }
    *known = !f.failed;
    at_array none = AT_NIL;
    at_status status = pa_finish(&f, cx, a.be, wide, &none);
    at_release(none);
    return status;
}

/* --- scalars, NumPy arrays, sizes ---------------------------------------------------------------------------- */

static at_status torch_adopt(at_context *cx, const at_backend *be, at_array a, at_array like,
                             at_array *out)
{
    torch_state *st = state_of(be);
    pa_frame f;
    pa_open(&f);
    at_dtype t = AT_OTHER;
    a.be->dtype(cx, a, &t);
    PyObject *host = pa_keep(&f, pa_numpy_for_sharing(st->home, a.p));
    if (t == AT_BFLOAT16 && host != NULL) /* torch takes NumPy's bits, not ml_dtypes' type */
        host = pa_keep(&f, PyObject_CallMethod(host, "view", "s", "int16"));
    PyObject *x = pa_call(&f, st->fn[FN_from_numpy], host);
    if (t == AT_BFLOAT16) x = pa_call(&f, st->fn[FN_view], x, st->dtype[AT_BFLOAT16]);
    if (x != NULL && !at_is_nil(like) && !pt_flag(st, like.p, GET_is_cpu)) {
        PyObject *device = pa_keep(&f, pt_get(st, like.p, GET_device));
        x = pa_call_named(&f, st->fn[FN_to], CONSTANT(st, named_device), x, device);
    }
    return pa_finish(&f, cx, be, x, out);
}

/* A fill value: torch.jit.trace knows no truths among them. */
static PyObject *fill_number(pa_frame *f, at_array scalar, at_dtype dtype)
{
    if (dtype != AT_BOOL || scalar.be != &at_weak) return pa_number_as(f, scalar, dtype);
    return pa_int(f, ((const at_scalar *)scalar.p)->d != 0);
}

/* A symbol takes a 0-d tensor and adds itself: torch.full would be compiled anew for each value. */
static PyObject *scalar_tensor(pa_frame *f, const at_backend *be, at_array scalar, at_dtype dtype,
                               PyObject *like)
{
    torch_state *st = state_of(be);
    PyObject *dt = dtype_object(f, be, dtype);
    if (scalar.be == &at_weak)
        return pa_call_named(f, st->fn[FN_new_full], CONSTANT(st, named_dtype), like,
                             CONSTANT(st, scalar_shape), fill_number(f, scalar, dtype), dt);
    PyObject *zero = pa_call_named(f, st->fn[FN_new_zeros], CONSTANT(st, named_dtype), like,
                                   CONSTANT(st, scalar_shape), dt);
    PyObject *sum = pa_call(f, st->fn[FN_add], zero, scalar.p);
    return pa_call_named(f, st->fn[FN_to], CONSTANT(st, named_dtype), sum, dt);
}

static at_status torch_from_scalar(at_context *cx, const at_backend *be, at_array scalar,
                                   at_dtype dtype, at_array like, at_array *out)
{
    if (at_is_nil(like)) return at_error(cx, AT_EARG, "a scalar needs an array beside it");
    pa_frame f;
    pa_open(&f);
    return pa_finish(&f, cx, be, scalar_tensor(&f, be, scalar, dtype, like.p), out);
}

/* Under torch.jit.trace a size is a tensor: reading it would make it a constant of the trace. */
static at_status torch_to_size(at_context *cx, at_array a, at_dim *out)
{
    torch_state *st = state_of(a.be);
    if (!pt_answers_nothing(st->fn[FN_tracing_state])) {
        *out = (at_dim){0, {Py_NewRef(a.p), &st->home->torch_symbol}};
        return AT_OK;
    }
    PyObject *args[] = {a.p};
    PyObject *number = PyObject_Vectorcall(st->fn[FN_item], args, 1, NULL);
    if (number == NULL) return pa_foreign(cx);
    if (!PyLong_Check(number)) {
        *out = (at_dim){0, {number, &st->home->torch_symbol}};
        return AT_OK;
    }
    *out = AT_DIM(PyLong_AsLongLong(number));
    Py_DECREF(number);
    return PyErr_Occurred() ? pa_foreign(cx) : AT_OK;
}

static PyObject *cast(pa_frame *f, const at_backend *be, PyObject *x, at_dtype dtype)
{
    torch_state *st = state_of(be);
    return pa_call_named(f, st->fn[FN_to], CONSTANT(st, named_dtype), x,
                         dtype_object(f, be, dtype));
}

/* --- the wide unsigned types ---------------------------------------------------------------------------------
 *
 * torch stores them but has few kernels for them. They travel as int64: exact, since sums wrap modulo 2**64. */

static bool is_wide_unsigned(at_dtype t)
{
    return t == AT_UINT16 || t == AT_UINT32 || t == AT_UINT64;
}

/* Which of them a tensor has; AT_NODTYPE for all other dtypes. */
static at_dtype wide_unsigned(const at_backend *be, at_array x)
{
    const torch_state *st = state_of(be);
    PyObject *dtype = pt_get(st, x.p, GET_dtype);
    at_dtype t = AT_NODTYPE;
    for (at_dtype one = AT_UINT16; dtype != NULL && one <= AT_UINT64; one++)
        if (dtype == st->dtype[one]) t = one;
    if (dtype == NULL) PyErr_Clear();
    Py_XDECREF(dtype);
    return t;
}

/* uint64 in the order of int64: the top bit turned around. */
static PyObject *turn(pa_frame *f, const at_backend *be, PyObject *x)
{
    return pa_call(f, FN(be, bitwise_xor), x, pa_int(f, INT64_MIN));
}

static PyObject *ordered(pa_frame *f, const at_backend *be, PyObject *x, at_dtype t)
{
    PyObject *wide = cast(f, be, x, AT_INT64);
    return t == AT_UINT64 ? turn(f, be, wide) : wide;
}

static PyObject *unordered(pa_frame *f, const at_backend *be, PyObject *y, at_dtype t)
{
    return cast(f, be, t == AT_UINT64 ? turn(f, be, y) : y, t);
}

/* torch gives sums of uint64 as int64: the same bits. */
static at_status keep_uint64(at_context *cx, const at_backend *be, at_array x, at_status status,
                             at_array *out)
{
    if (status != AT_OK || wide_unsigned(be, x) != AT_UINT64) return status;
    pa_frame f;
    pa_open(&f);
    PyObject *sum = pa_keep(&f, out->p);
    return pa_finish(&f, cx, be, cast(&f, be, sum, AT_UINT64), out);
}

/* --- elementwise ----------------------------------------------------------------------------------------------- */

static at_status plain_call(at_context *cx, const at_backend *be, int fn, PyObject *const *args,
                            size_t nargs, at_array *out)
{
    PyObject *y = PyObject_Vectorcall(state_of(be)->fn[fn], args, nargs, NULL);
    if (y == NULL) return pa_foreign(cx);
    *out = (at_array){y, be};
    return AT_OK;
}

#define UNARY_SLOT(name)                                                                           \
    static at_status torch_##name(at_context *cx, const at_backend *be, at_array x, at_array *out) \
    {                                                                                              \
        PyObject *args[] = {x.p};                                                                  \
        return plain_call(cx, be, FN_##name, args, 1, out);                                        \
    }

/* Scalars go to torch as they are: beside a tensor they take its dtype there too. maximum and minimum alone want
 * tensors, and torch.jit.trace knows no truths as scalars. */
static at_status with_scalars(at_context *cx, const at_backend *be, int fn, int count,
                              const at_array *operand, bool as_tensors, at_array *out)
{
    pa_frame f;
    pa_open(&f);
    PyObject *args[4] = {NULL};
    at_dtype t = AT_OTHER;
    at_array beside = AT_NIL;
    for (int i = 0; i < count; i++)
        if (operand[i].be == be) beside = operand[i];
    if (torch_dtype(cx, beside, &t) != AT_OK) return cx->status;
    for (int i = 0; i < count; i++) {
        at_array a = operand[i];
        args[i + 1] = a.be == be                   ? a.p
                      : as_tensors || t == AT_BOOL ? scalar_tensor(&f, be, a, t, beside.p)
                                                   : pa_number_as(&f, a, t);
    }
    return pa_finish(&f, cx, be,
                     pa_vectorcall(&f, state_of(be)->fn[fn], args + 1, (size_t)count, NULL), out);
}

#define BINARY_SLOT(name, as_tensors)                                                              \
    static at_status torch_##name(at_context *cx, const at_backend *be, at_array x, at_array y,    \
                                  at_array *out)                                                   \
    {                                                                                              \
        PyObject *args[] = {x.p, y.p};                                                             \
        if (x.be == be && y.be == be) return plain_call(cx, be, FN_##name, args, 2, out);          \
        return with_scalars(cx, be, FN_##name, 2, (at_array[]){x, y}, as_tensors, out);            \
    }

UNARY_SLOT(exp)
UNARY_SLOT(log)
UNARY_SLOT(sqrt)
UNARY_SLOT(rsqrt)
UNARY_SLOT(is_nan)
UNARY_SLOT(is_inf)
UNARY_SLOT(is_finite)
UNARY_SLOT(stop_gradient)
BINARY_SLOT(add, false)
BINARY_SLOT(sub, false)
BINARY_SLOT(mul, false)
BINARY_SLOT(div, false)
BINARY_SLOT(equal, false)

/* A maximum or minimum of wide unsigned types, compared as int64. */
static at_status wide_extreme(at_context *cx, const at_backend *be, int fn, const at_array *operand,
                              at_array beside, at_dtype t, at_array *out)
{
    pa_frame f;
    pa_open(&f);
    PyObject *as[2];
    for (int i = 0; i < 2; i++) {
        at_array a = operand[i];
        as[i] = ordered(&f, be, a.be == be ? a.p : scalar_tensor(&f, be, a, t, beside.p), t);
    }
    PyObject *y = pa_call(&f, state_of(be)->fn[fn], as[0], as[1]);
    return pa_finish(&f, cx, be, unordered(&f, be, y, t), out);
}

/* Two plain tensors: torch is asked first, and refuses the wide unsigned types itself. Tensors that only stand for
 * others (fake ones) would be refused too late. */
static bool asked_first(at_context *cx, const at_backend *be, int fn, at_array x, at_array y,
                        at_array *out)
{
    const PyTypeObject *plain = (PyTypeObject *)FN(be, Tensor);
    PyObject *args[] = {x.p, y.p};
    if (x.be != be || y.be != be || Py_TYPE((PyObject *)x.p) != plain) return false;
    PyObject *z = PyObject_Vectorcall(state_of(be)->fn[fn], args, 2, NULL);
    if (z != NULL) {
        *out = (at_array){z, be};
        return true;
    }
    PyObject *type, *error, *trace;
    PyErr_Fetch(&type, &error, &trace);
    bool wide = wide_unsigned(be, x) != AT_NODTYPE;
    PyErr_Restore(type, error, trace);
    if (wide)
        PyErr_Clear();
    else
        pa_foreign(cx);
    return !wide;
}

static at_status extreme_of(at_context *cx, const at_backend *be, int fn, at_array x, at_array y,
                            at_array *out)
{
    const at_array operand[] = {x, y}, beside = x.be == be ? x : y;
    if (asked_first(cx, be, fn, x, y, out)) return cx->status;
    at_dtype t = wide_unsigned(be, beside);
    if (t != AT_NODTYPE) return wide_extreme(cx, be, fn, operand, beside, t, out);
    return with_scalars(cx, be, fn, 2, operand, true, out);
}

#define EXTREME_SLOT(name)                                                                         \
    static at_status torch_##name(at_context *cx, const at_backend *be, at_array x, at_array y,    \
                                  at_array *out)                                                   \
    {                                                                                              \
        return extreme_of(cx, be, FN_##name, x, y, out);                                           \
    }

EXTREME_SLOT(maximum)
EXTREME_SLOT(minimum)

static at_status torch_where(at_context *cx, const at_backend *be, at_array condition, at_array x,
                             at_array y, at_array *out)
{
    PyObject *args[] = {condition.p, x.p, y.p};
    if (x.be == be && y.be == be) return plain_call(cx, be, FN_where, args, 3, out);
    return with_scalars(cx, be, FN_where, 3, (at_array[]){condition, x, y}, false, out);
}

/* --- reductions -------------------------------------------------------------------------------------------------- */

/* The axes as a tuple; all of them are spelled out where keepdims needs it. */
static PyObject *axes_tuple(pa_frame *f, const at_backend *be, PyObject *x, const at_axes *axes)
{
    return pa_axes(f, axes, axes->count < 0 ? rank(f, be, x) : -1);
}

static at_status reduce(at_context *cx, const at_backend *be, int fn, at_array x,
                        const at_axes *axes, bool keepdims, at_array *out)
{
    torch_state *st = state_of(be);
    pa_frame f;
    pa_open(&f);
    if (axes->count == 0) /* torch takes an empty tuple for all axes */
        return pa_finish(&f, cx, be, x.p, out);
    if (axes->count < 0 && !keepdims)
        return pa_finish(&f, cx, be, pa_call(&f, st->fn[fn], x.p), out);
    if (axes->count == 1 && !keepdims) /* torch reads a number faster than a tuple and keywords */
        return pa_finish(&f, cx, be, pa_call(&f, st->fn[fn], x.p, pa_int(&f, axes->axis[0])), out);
    PyObject *dim = axes_tuple(&f, be, x.p, axes);
    if (dim != NULL && PyTuple_GET_SIZE(dim) == 0) return pa_finish(&f, cx, be, x.p, out);
    PyObject *y = pa_call_named(&f, st->fn[fn], CONSTANT(st, named_dim_keepdim), x.p, dim,
                                keepdims ? Py_True : Py_False);
    return pa_finish(&f, cx, be, y, out);
}

static at_status reduce_sum(at_context *cx, const at_backend *be, int fn, at_array x,
                            const at_axes *axes, bool keepdims, at_array *out)
{
    return keep_uint64(cx, be, x, reduce(cx, be, fn, x, axes, keepdims, out), out);
}

static at_status reduce_extreme(at_context *cx, const at_backend *be, int fn, at_array x,
                                const at_axes *axes, bool keepdims, at_array *out)
{
    at_dtype t = wide_unsigned(be, x);
    if (t == AT_NODTYPE) return reduce(cx, be, fn, x, axes, keepdims, out);
    pa_frame f;
    pa_open(&f);
    at_array rows = {ordered(&f, be, x.p, t), be}, y = AT_NIL;
    if (f.failed || reduce(cx, be, fn, rows, axes, keepdims, &y) != AT_OK)
        return pa_finish(&f, cx, be, NULL, out);
    return pa_finish(&f, cx, be, unordered(&f, be, pa_keep(&f, y.p), t), out);
}

#define REDUCE_SLOT(name, how)                                                                     \
    static at_status torch_##name(at_context *cx, const at_backend *be, at_array x, at_axes axes,  \
                                  bool keepdims, at_array *out)                                    \
    {                                                                                              \
        return how(cx, be, FN_##name, x, &axes, keepdims, out);                                    \
    }

REDUCE_SLOT(sum, reduce_sum)
REDUCE_SLOT(mean, reduce)
REDUCE_SLOT(min, reduce_extreme)
REDUCE_SLOT(max, reduce_extreme)

/* Whether an axis is given twice, as k and k - rank perhaps. */
static bool is_twice(const at_axes *axes, int ndim, int k)
{
    for (int i = 0; i < k; i++)
        if (axes->axis[i] == axes->axis[k] || axes->axis[i] == axes->axis[k] + ndim ||
            axes->axis[i] + ndim == axes->axis[k])
            return true;
    return false;
}

/* torch.prod takes one axis: several are taken one by one, kept until all are done. */
static at_status torch_prod(at_context *cx, const at_backend *be, at_array x, at_axes axes,
                            bool keepdims, at_array *out)
{
    torch_state *st = state_of(be);
    pa_frame f;
    pa_open(&f);
    if (axes.count <= 1 && axes.count != 0 && !keepdims)
        return reduce_sum(cx, be, FN_prod, x, &axes, false, out);
    PyObject *dims = axes_tuple(&f, be, x.p, &axes);
    PyObject *y = x.p;
    int ndim = rank(&f, be, x.p);
    for (int k = 1; k < axes.count && !f.failed; k++)
        if (is_twice(&axes, ndim, k)) {
            PyErr_Format(PyExc_ValueError, "prod: argument 'axes': axis %d is given twice",
                         axes.axis[k]);
            dims = pa_keep(&f, NULL);
        }
    for (Py_ssize_t k = 0; dims != NULL && k < PyTuple_GET_SIZE(dims); k++) {
        pa_frame g; /* one product at a time: a tensor may have more axes than a frame places */
        pa_open(&g);
        at_array kept = AT_NIL;
        PyObject *next = pa_call_named(&g, st->fn[FN_prod], CONSTANT(st, named_dim_keepdim), y,
                                       PyTuple_GET_ITEM(dims, k), Py_True);
        if (k > 0) Py_DECREF(f.own[--f.count]); /* y, the product before */
        if (pa_finish(&g, cx, be, next, &kept) != AT_OK) f.failed = true;
        y = f.failed ? NULL : pa_keep(&f, kept.p);
        if (y == NULL) break;
    }
    if (!keepdims && y != NULL && dims != NULL && PyTuple_GET_SIZE(dims) > 0)
        y = pa_call(&f, st->fn[FN_squeeze], y, dims);
    return keep_uint64(cx, be, x, pa_finish(&f, cx, be, y, out), out);
}

static at_status torch_cumsum(at_context *cx, const at_backend *be, at_array x, int axis,
                              at_array *out)
{
    pa_frame f;
    pa_open(&f);
    PyObject *dim = pa_int(&f, axis);
    return keep_uint64(cx, be, x, pa_finish(&f, cx, be, pa_call(&f, FN(be, cumsum), x.p, dim), out),
                       out);
}

/* --- shape and layout ---------------------------------------------------------------------------------------------- */

/* Integers as int64. A uint64 beyond it must stay out of range and not turn negative. */
static PyObject *to_index(pa_frame *f, at_array ids)
{
    torch_state *st = state_of(ids.be);
    PyObject *dtype = pa_keep(f, pt_get(st, ids.p, GET_dtype));
    if (dtype == st->dtype[AT_INT64]) return ids.p;
    PyObject *wide = cast(f, ids.be, ids.p, AT_INT64);
    if (dtype != st->dtype[AT_UINT64]) return wide;
    PyObject *top = pa_int(f, INT64_MAX);
    return pa_call(f, st->fn[FN_where], pa_call(f, st->fn[FN_lt], wide, CONSTANT(st, zero)), top,
                   wide);
}

static PyObject *flat(pa_frame *f, const at_backend *be, PyObject *x)
{
    return pa_call(f, FN(be, reshape), x, CONSTANT(state_of(be), flat_shape));
}

/* x[:, ..., :, index], the index standing on the given axis. */
static PyObject *index_axis(pa_frame *f, const at_backend *be, PyObject *x, PyObject *index,
                            int axis)
{
    int ndim = rank(f, be, x);
    if (f->failed) return NULL;
    if (axis < -ndim || axis >= ndim) {
        PyErr_Format(PyExc_IndexError, "axis %d is out of range for a tensor of rank %d", axis,
                     ndim);
        return pa_keep(f, NULL);
    }
    int before = axis < 0 ? axis + ndim : axis;
    if (before == 0 && index != NULL) return pa_keep(f, PyObject_GetItem(x, index));
    PyObject *key = pa_keep(f, PyTuple_New(before + 1));
    for (int k = 0; key != NULL && k < before; k++) {
        PyObject *all = PySlice_New(NULL, NULL, NULL);
        if (all == NULL) return pa_keep(f, NULL);
        PyTuple_SET_ITEM(key, k, all);
    }
    if (key == NULL || index == NULL) return pa_keep(f, NULL);
    PyTuple_SET_ITEM(key, before, Py_NewRef(index));
    return pa_keep(f, PyObject_GetItem(x, key));
}

/* A 0-d index would be read by torch's own indexing: it goes in as a vector of one, which is squeezed. */
static at_status torch_take(at_context *cx, const at_backend *be, at_array x, at_array indices,
                            int axis, at_array *out)
{
    torch_state *st = state_of(be);
    pa_frame f;
    pa_open(&f);
    PyObject *source = axis == AT_NO_AXIS ? flat(&f, be, x.p) : x.p;
    axis = axis == AT_NO_AXIS ? 0 : axis;
    PyObject *index = to_index(&f, indices);
    bool single = rank(&f, be, indices.p) == 0;
    if (single) index = flat(&f, be, index);
    PyObject *y = f.failed ? NULL : index_axis(&f, be, source, index, axis);
    if (single) y = pa_call(&f, st->fn[FN_squeeze], y, pa_int(&f, axis));
    return pa_finish(&f, cx, be, y, out);
}

static at_status torch_repeat_each(at_context *cx, const at_backend *be, at_array x,
                                   at_array repeats, int axis, at_array *out)
{
    torch_state *st = state_of(be);
    at_dtype t = wide_unsigned(be, x);
    pa_frame f;
    pa_open(&f);
    PyObject *counts = repeats.be == be ? to_index(&f, repeats) : pa_number(&f, repeats);
    PyObject *rows = t == AT_NODTYPE ? x.p : cast(&f, be, x.p, AT_INT64), *y;
    if (axis == AT_NO_AXIS) /* torch flattens by itself */
        y = pa_call(&f, st->fn[FN_repeat_interleave], rows, counts);
    else
        y = pa_call(&f, st->fn[FN_repeat_interleave], rows, counts, pa_int(&f, axis));
    return pa_finish(&f, cx, be, t == AT_NODTYPE ? y : cast(&f, be, y, t), out);
}

static at_status torch_reshape(at_context *cx, const at_backend *be, at_array x,
                               const at_shape *shape, at_array *out)
{
    pa_frame f;
    pa_open(&f);
    PyObject *sizes = pa_shape(&f, shape);
    return pa_finish(&f, cx, be, pa_call(&f, FN(be, reshape), x.p, sizes), out);
}

static at_status torch_transpose(at_context *cx, const at_backend *be, at_array x, at_axes axes,
                                 at_array *out)
{
    pa_frame f;
    pa_open(&f);
    return pa_finish(&f, cx, be, pa_call(&f, FN(be, permute), x.p, pa_axes(&f, &axes, -1)), out);
}

static at_status torch_slice(at_context *cx, const at_backend *be, at_array x, at_dim start,
                             at_dim stop, int axis, at_array *out)
{
    pa_frame f;
    pa_open(&f);
    PyObject *key = pa_part(&f, axis, start, stop);
    return pa_finish(&f, cx, be, key == NULL ? NULL : pa_keep(&f, PyObject_GetItem(x.p, key)), out);
}

static at_status torch_concatenate(at_context *cx, const at_backend *be, at_list arrays, int axis,
                                   at_array *out)
{
    pa_frame f;
    pa_open(&f);
    PyObject *list = pa_keep(&f, PyList_New(0));
    for (int i = 0; list != NULL && i < arrays.count; i++) {
        pa_frame g;
        pa_open(&g);
        PyObject *x = arrays.array[i].p;
        PyObject *item = axis == AT_NO_AXIS ? flat(&g, be, x) : x;
        at_array one = AT_NIL;
        if (pa_finish(&g, cx, be, item, &one) != AT_OK || PyList_Append(list, one.p) < 0)
            f.failed = true;
        at_release(one);
        if (f.failed) break;
    }
    PyObject *dim = axis == AT_NO_AXIS ? CONSTANT(state_of(be), zero) : pa_int(&f, axis);
    return pa_finish(&f, cx, be, pa_call(&f, FN(be, cat), list, dim), out);
}

static at_status torch_astype(at_context *cx, const at_backend *be, at_array x, at_dtype dtype,
                              at_array *out)
{
    pa_frame f;
    pa_open(&f);
    at_dtype t = AT_OTHER;
    if (torch_dtype(cx, x, &t) != AT_OK) return cx->status;
    return pa_finish(&f, cx, be, t == dtype ? x.p : cast(&f, be, x.p, dtype), out);
}

static at_status torch_head(at_context *cx, const at_backend *be, at_array x, at_dim n,
                            at_array *out)
{
    pa_frame f;
    pa_open(&f);
    PyObject *zero = CONSTANT(state_of(be), zero);
    return pa_finish(&f, cx, be, pa_call(&f, FN(be, narrow), x.p, zero, zero, pa_size(&f, n)), out);
}

/* --- products of matrices ------------------------------------------------------------------------------------------- */

/* What torch multiplies instead of a dtype that it has no product for: the wide unsigned types wrap alike as int64, and
 * truths are counted. */
static at_dtype multiplied_as(at_dtype t)
{
    return t == AT_BOOL ? AT_INT32 : is_wide_unsigned(t) ? AT_INT64 : t;
}

static at_status torch_matmul(at_context *cx, const at_backend *be, at_array x, at_array y,
                              at_array *out)
{
    at_dtype t = AT_OTHER;
    if (torch_dtype(cx, x, &t) != AT_OK) return cx->status;
    at_dtype as = multiplied_as(t);
    pa_frame f;
    pa_open(&f);
    PyObject *a = as == t ? x.p : cast(&f, be, x.p, as), *b = as == t ? y.p : cast(&f, be, y.p, as);
    PyObject *z = pa_call(&f, FN(be, matmul), a, b);
    return pa_finish(&f, cx, be, as == t ? z : cast(&f, be, z, t), out);
}

/* --- constructors ------------------------------------------------------------------------------------------------------ */

static at_status torch_full(at_context *cx, const at_backend *be, const at_shape *shape,
                            at_array fill_value, at_dtype dtype, at_array like, at_array *out)
{
    torch_state *st = state_of(be);
    pa_frame f;
    pa_open(&f);
    PyObject *sizes = pa_shape(&f, shape), *y;
    PyObject *beside = like.be == be ? like.p : fill_value.p; /* one of them is a tensor */
    if (fill_value.be == &at_weak) {
        y = pa_call_named(&f, st->fn[FN_new_full], CONSTANT(st, named_dtype), beside, sizes,
                          fill_number(&f, fill_value, dtype), dtype_object(&f, be, dtype));
        return pa_finish(&f, cx, be, y, out);
    }
    PyObject *value = fill_value.be == be ? cast(&f, be, fill_value.p, dtype)
                                          : scalar_tensor(&f, be, fill_value, dtype, beside);
    y = pa_call(&f, st->fn[FN_clone], pa_call(&f, st->fn[FN_expand], value, sizes));
    return pa_finish(&f, cx, be, y, out);
}

/* A bound as a number or symbol, or the tensor itself where reading it would end its trace. */
static PyObject *bound(pa_frame *f, const at_backend *be, at_array value)
{
    if (f->failed) return NULL;
    if (value.be == be && !pt_answers_nothing(FN(be, tracing_state))) return value.p;
    return value.be == be ? pa_call(f, FN(be, item), value.p) : pa_number(f, value);
}

/* torch refuses a stop that lies behind start: such a range is empty. */
static PyObject *reachable(PyObject *start, PyObject *stop, PyObject *step)
{
    if (start == NULL || stop == NULL || step == NULL ||
        !PyFloat_Check(step) + !PyLong_Check(step) > 1 ||
        !(PyFloat_Check(start) || PyLong_Check(start)) ||
        !(PyFloat_Check(stop) || PyLong_Check(stop)))
        return stop;
    double span = PyFloat_AsDouble(stop) - PyFloat_AsDouble(start), by = PyFloat_AsDouble(step);
    PyErr_Clear();
    return (span < 0 && by > 0) || (span > 0 && by < 0) ? start : stop;
}

/* The dtype in which torch makes a range: it has none of the wide unsigned types, and cuts fractional bounds of an
 * integer range before it counts the elements. */
static at_dtype made_of(at_dtype dtype, PyObject *start, PyObject *stop, PyObject *step)
{
    if (start == NULL || stop == NULL || step == NULL || !ati_is_integer(dtype)) return dtype;
    if (PyFloat_Check(start) || PyFloat_Check(stop) || PyFloat_Check(step)) return AT_FLOAT64;
    return is_wide_unsigned(dtype) ? AT_INT64 : dtype;
}

static at_status torch_arange(at_context *cx, const at_backend *be, at_array start, at_array stop,
                              at_array step, at_dtype dtype, at_array like, const void *device,
                              at_array *out)
{
    torch_state *st = state_of(be);
    pa_frame f;
    pa_open(&f);
    PyObject *from = bound(&f, be, start), *by = pa_step(&f, bound(&f, be, step));
    PyObject *to = reachable(from, bound(&f, be, stop), by);
    PyObject *where = (PyObject *)device;
    if (where == NULL && like.be == be) where = pa_keep(&f, pt_get(st, like.p, GET_device));
    at_dtype made = made_of(dtype, from, to, by);
    PyObject *y = pa_call_named(&f, st->fn[FN_arange], CONSTANT(st, named_dtype_device), from, to,
                                by, dtype_object(&f, be, made), where == NULL ? Py_None : where);
    return pa_finish(&f, cx, be, made == dtype ? y : cast(&f, be, y, dtype), out);
}

/* --- slots ---------------------------------------------------------------------------------------------------------------- */

static at_status torch_slot_ids(at_context *cx, const at_backend *be, at_array ids, at_dim n,
                                at_array *out)
{
    torch_state *st = state_of(be);
    pa_frame f;
    pa_open(&f);
    PyObject *index = to_index(&f, ids), *count = pa_size(&f, n);
    PyObject *more = f.failed ? NULL : pa_keep(&f, PyNumber_Add(count, CONSTANT(st, one)));
    PyObject *near = pa_call(&f, st->fn[FN_clamp], index, CONSTANT(st, minus_one), count);
    return pa_finish(&f, cx, be, pa_call(&f, st->fn[FN_remainder], near, more), out);
}

static at_status torch_slot_kept(at_context *cx, const at_backend *be, at_array ids, at_dim n,
                                 at_array *out)
{
    pa_frame f;
    pa_open(&f);
    return pa_finish(&f, cx, be, pa_call(&f, FN(be, lt), ids.p, pa_size(&f, n)), out);
}

/* (slots, *x.shape[1:]) */
static PyObject *rows_shape(pa_frame *f, const at_backend *be, PyObject *x, PyObject *slots)
{
    PyObject *size = shape_tuple(f, be, x);
    PyObject *tuple = size == NULL ? NULL : pa_keep(f, PyTuple_New(PyTuple_GET_SIZE(size)));
    for (Py_ssize_t k = 0; tuple != NULL && k < PyTuple_GET_SIZE(size); k++)
        PyTuple_SET_ITEM(tuple, k, Py_NewRef(k == 0 ? slots : PyTuple_GET_ITEM(size, k)));
    return tuple;
}

/* Ids repeated along the trailing axes of rows, without memory: what scatter and gather ask for. */
static PyObject *index_rows(pa_frame *f, const at_backend *be, PyObject *ids, PyObject *shape)
{
    if (shape == NULL || PyTuple_GET_SIZE(shape) == 1) return ids;
    Py_ssize_t ndim = PyTuple_GET_SIZE(shape);
    PyObject *column = pa_keep(f, PyTuple_New(ndim));
    for (Py_ssize_t k = 0; column != NULL && k < ndim; k++)
        PyTuple_SET_ITEM(column, k, PyLong_FromLong(k == 0 ? -1 : 1));
    return pa_call(f, FN(be, expand), pa_call(f, FN(be, reshape), ids, column), shape);
}

static at_status torch_slot_count(at_context *cx, const at_backend *be, at_array ids, at_dim n,
                                  at_array *out)
{
    torch_state *st = state_of(be);
    pa_frame f;
    pa_open(&f);
    PyObject *index = to_index(&f, ids);
    PyObject *sizes = f.failed ? NULL : pa_keep(&f, PyTuple_Pack(1, pa_size(&f, n)));
    PyObject *zeros = pa_call(&f, st->fn[FN_new_zeros], index, sizes);
    PyObject *ones = pa_call(&f, st->fn[FN_ones_like], index);
    return pa_finish(&f, cx, be,
                     pa_call(&f, st->fn[FN_scatter_add], zeros, CONSTANT(st, zero), index, ones),
                     out);
}

static at_status torch_slot_sum(at_context *cx, const at_backend *be, at_array x, at_array slot_ids,
                                at_dim slots, at_array *out)
{
    torch_state *st = state_of(be);
    at_status status = pt_segment(cx, be, KERNEL_segment_sum, x, slot_ids, slots, out);
    if (status != AT_DECLINE) return status;
    pa_frame f;
    pa_open(&f);
    at_dtype t = AT_OTHER;
    if (torch_dtype(cx, x, &t) != AT_OK) return cx->status;
    PyObject *rows = is_wide_unsigned(t) ? cast(&f, be, x.p, AT_INT64) : x.p;
    PyObject *shape = shape_tuple(&f, be, x.p);
    PyObject *index = index_rows(&f, be, slot_ids.p, shape);
    PyObject *zeros =
        pa_call(&f, st->fn[FN_new_zeros], rows, rows_shape(&f, be, x.p, pa_size(&f, slots)));
    PyObject *sum = pa_call(&f, st->fn[FN_scatter_add], zeros, CONSTANT(st, zero), index, rows);
    return pa_finish(&f, cx, be, is_wide_unsigned(t) ? cast(&f, be, sum, t) : sum, out);
}

static at_status torch_slot_prod(at_context *cx, const at_backend *be, at_array x,
                                 at_array slot_ids, at_dim slots, at_array *out)
{
    torch_state *st = state_of(be);
    pa_frame f;
    pa_open(&f);
    at_dtype t = AT_OTHER;
    if (torch_dtype(cx, x, &t) != AT_OK) return cx->status;
    PyObject *rows = is_wide_unsigned(t) ? cast(&f, be, x.p, AT_INT64) : x.p;
    PyObject *index = index_rows(&f, be, slot_ids.p, shape_tuple(&f, be, x.p));
    PyObject *ones = pa_call(&f, st->fn[FN_new_full], rows,
                             rows_shape(&f, be, x.p, pa_size(&f, slots)), CONSTANT(st, one));
    PyObject *y = pa_call(&f, st->fn[FN_scatter_reduce], ones, CONSTANT(st, zero), index, rows,
                          CONSTANT(st, prod));
    return pa_finish(&f, cx, be, is_wide_unsigned(t) ? cast(&f, be, y, t) : y, out);
}

static at_status extreme(at_context *cx, const at_backend *be, at_array x, at_array slot_ids,
                         at_dim slots, bool max, at_array *out)
{
    torch_state *st = state_of(be);
    int kernel = max ? KERNEL_segment_max : KERNEL_segment_min;
    at_status status = pt_segment(cx, be, kernel, x, slot_ids, slots, out);
    if (status != AT_DECLINE) return status;
    pa_frame f;
    pa_open(&f);
    at_dtype t = AT_OTHER;
    if (torch_dtype(cx, x, &t) != AT_OK) return cx->status;
    bool wide = is_wide_unsigned(t);
    PyObject *rows = wide ? ordered(&f, be, x.p, t) : x.p;
    PyObject *shape = shape_tuple(&f, be, x.p);
    PyObject *index = index_rows(&f, be, slot_ids.p, shape);
    at_dtype compared = t == AT_UINT64 ? AT_INT64 : t;
    at_scalar first = pa_identity(compared, max);
    PyObject *start = pa_number_as(&f, (at_array){&first, &at_weak}, compared);
    PyObject *rest =
        pa_call(&f, st->fn[FN_new_full], rows, rows_shape(&f, be, x.p, pa_size(&f, slots)), start);
    PyObject *y = pa_call(&f, st->fn[FN_scatter_reduce], rest, CONSTANT(st, zero), index, rows,
                          max ? CONSTANT(st, amax) : CONSTANT(st, amin));
    return pa_finish(&f, cx, be, wide ? unordered(&f, be, y, t) : y, out);
}

static at_status torch_slot_min(at_context *cx, const at_backend *be, at_array x, at_array slot_ids,
                                at_dim slots, at_array *out)
{
    return extreme(cx, be, x, slot_ids, slots, false, out);
}

static at_status torch_slot_max(at_context *cx, const at_backend *be, at_array x, at_array slot_ids,
                                at_dim slots, at_array *out)
{
    return extreme(cx, be, x, slot_ids, slots, true, out);
}

static at_status torch_spread(at_context *cx, const at_backend *be, at_array x, at_array slot_ids,
                              at_array *out)
{
    torch_state *st = state_of(be);
    at_dtype t = wide_unsigned(be, x);
    pa_frame f;
    pa_open(&f);
    PyObject *size = shape_tuple(&f, be, slot_ids.p);
    PyObject *shape = size == NULL ? NULL : rows_shape(&f, be, x.p, PyTuple_GET_ITEM(size, 0));
    PyObject *index = index_rows(&f, be, slot_ids.p, shape);
    PyObject *rows = t == AT_NODTYPE ? x.p : cast(&f, be, x.p, AT_INT64);
    PyObject *y = pa_call(&f, st->fn[FN_gather], rows, CONSTANT(st, zero), index);
    return pa_finish(&f, cx, be, t == AT_NODTYPE ? y : cast(&f, be, y, t), out);
}

/* --- waking ------------------------------------------------------------------------------------------------------------------ */

static int wake(pa_state *pst, at_backend *be, PyObject *torch)
{
    torch_state *st = pt_state_new(torch, pst);
    if (st == NULL) return -1;
    *be = (at_backend){
        .name = "torch",
        .state = st,
        .traits = AT_TAKES_SCALARS | AT_TAKES_SYMBOLS,
        .retain = retain,
        .release = release,
        .dtype = torch_dtype,
        .shape = torch_shape,
        .default_dtype = torch_default_dtype,
        .adopt = torch_adopt,
        .from_scalar = torch_from_scalar,
        .to_size = torch_to_size,
        .tracked = pt_tracked,
        .peek = torch_peek,
#define ATI_SLOT_PRIMITIVE(name) .name = torch_##name,
#define ATI_SLOT_COMPOSITE(name)
#define OP(kind, name, level, ...) ATI_SLOT_##level(name)
#include "anytensor/ops.def"
        .rsqrt = torch_rsqrt,
        .clip = pt_clip,
        .fill_nan = pt_fill_nan,
        .nan_to_num = pt_nan_to_num,
        .full_like = pt_full_like,
        .stack = pt_stack,
        .segment_sum = pt_segment_sum,
        .segment_min = pt_segment_min,
        .segment_max = pt_segment_max,
        .segment_softmax = pt_segment_softmax,
    };
    return 0;
}

const pa_framework pa_torch = {
    .module = "torch",
    .oldest = "2.1",
    .arrays = offsetof(pa_state, torch),
    .symbols = offsetof(pa_state, torch_symbol),
    .wake = wake,
    .owns = pt_owns,
    .dtype = pt_dtype,
    .holds = pt_holds,
    .trace = pt_trace,
    .watcher = pt_watcher,
    .visit = pt_visit,
    .clear = pt_clear,
};
