/* The frame of an adapter: calls that own their results and fail once. */
#include "edge.h"

#include <math.h>

#include "core/dtype.h"

PyObject *pa_keep(pa_frame *f, PyObject *owned)
{
    if (owned == NULL) {
        f->failed = true;
        return NULL;
    }
    if (f->failed || f->count == PA_PLACES) {
        Py_DECREF(owned);
        if (!f->failed) PyErr_SetString(PyExc_SystemError, "a slot keeps too many objects");
        f->failed = true;
        return NULL;
    }
    f->own[f->count++] = owned;
    return owned;
}

void pa_close(pa_frame *f)
{
    while (f->count > 0) Py_DECREF(f->own[--f->count]);
}

PyObject *pa_take(pa_frame *f, PyObject *result)
{
    PyObject *owned = f->failed ? NULL : Py_XNewRef(result);
    pa_close(f);
    return owned;
}

PyObject *pa_give(pa_frame *up, pa_frame *f, PyObject *result)
{
    return pa_keep(up, pa_take(f, result));
}

PyObject *pa_vectorcall(pa_frame *f, PyObject *callable, PyObject *const *args, size_t nargs,
                        PyObject *kwnames)
{
    if (f->failed) return NULL;
    size_t all = nargs + (kwnames == NULL ? 0 : (size_t)PyTuple_GET_SIZE(kwnames));
    for (size_t i = 0; i < all; i++)
        if (args[i] == NULL) return pa_keep(f, NULL);
    return pa_keep(
        f, PyObject_Vectorcall(callable, args, nargs | PY_VECTORCALL_ARGUMENTS_OFFSET, kwnames));
}

PyObject *pa_int(pa_frame *f, int64_t value)
{
    return f->failed ? NULL : pa_keep(f, PyLong_FromLongLong(value));
}

PyObject *pa_size(pa_frame *f, at_dim size)
{
    return at_is_nil(size.sym) ? pa_int(f, size.n) : (PyObject *)size.sym.p;
}

static PyObject *integer_of(const at_scalar *s)
{
    if (s->range == AT_FITS_INT64) return PyLong_FromLongLong(s->i);
    if (s->range == AT_FITS_UINT64) return PyLong_FromUnsignedLongLong((uint64_t)s->i);
    return PyFloat_FromDouble(s->d); /* beyond every integer dtype: only floats take it */
}

PyObject *pa_number(pa_frame *f, at_array scalar)
{
    if (f->failed) return NULL;
    if (scalar.be != &at_weak) return scalar.p;
    const at_scalar *s = scalar.p;
    switch (s->kind) {
    case AT_WEAK_BOOL: return s->i ? Py_True : Py_False;
    case AT_WEAK_INT: return pa_keep(f, integer_of(s));
    case AT_WEAK_FLOAT: return pa_keep(f, PyFloat_FromDouble(s->d));
    }
    return NULL;
}

PyObject *pa_number_as(pa_frame *f, at_array scalar, at_dtype dtype)
{
    if (f->failed) return NULL;
    if (scalar.be != &at_weak) return scalar.p;
    const at_scalar *s = scalar.p;
    if (dtype == AT_BOOL) return s->d != 0 ? Py_True : Py_False;
    if (ati_is_float(dtype)) {
        double d = fabs(s->d) > ati_float_most(dtype) ? copysign(Py_HUGE_VAL, s->d) : s->d;
        return pa_keep(f, PyFloat_FromDouble(d));
    }
    if (!ati_is_integer(dtype)) return pa_number(f, scalar);
    return pa_keep(f, s->kind == AT_WEAK_FLOAT ? PyLong_FromDouble(s->d) : integer_of(s));
}

PyObject *pa_axes(pa_frame *f, const at_axes *axes, int ndim)
{
    if (f->failed) return NULL;
    if (axes->count < 0 && ndim < 0) return Py_None;
    int count = axes->count < 0 ? ndim : axes->count;
    PyObject *tuple = pa_keep(f, PyTuple_New(count));
    for (int k = 0; tuple != NULL && k < count; k++) {
        PyObject *axis = PyLong_FromLong(axes->count < 0 ? k : axes->axis[k]);
        if (axis == NULL) return pa_keep(f, NULL);
        PyTuple_SET_ITEM(tuple, k, axis);
    }
    return tuple;
}

at_scalar pa_identity(at_dtype dtype, bool least)
{
    if (ati_is_float(dtype))
        return (at_scalar){.kind = AT_WEAK_FLOAT, .d = least ? -Py_HUGE_VAL : Py_HUGE_VAL};
    return ati_int_end(dtype, least);
}

int64_t pa_clamped(PyObject *number)
{
    double d = PyFloat_AsDouble(number);
    return d >= 9.2e18 ? INT64_MAX : d <= -9.2e18 ? INT64_MIN : (int64_t)d;
}

PyObject *pa_step(pa_frame *f, PyObject *step)
{
    bool number = step != NULL && (PyLong_Check(step) || PyFloat_Check(step));
    if (!number || PyObject_IsTrue(step)) return step;
    PyErr_SetString(PyExc_ValueError,
                    "arange: argument 'step': expected a step that is not 0, found 0");
    return pa_keep(f, NULL);
}

/* A size as a new reference. */
static PyObject *size_of(at_dim d)
{
    return at_is_nil(d.sym) ? PyLong_FromLongLong(d.n) : Py_NewRef((PyObject *)d.sym.p);
}

PyObject *pa_sizes(pa_frame *f, int count, const at_dim *size)
{
    if (f->failed) return NULL;
    PyObject *tuple = pa_keep(f, PyTuple_New(count));
    for (int k = 0; tuple != NULL && k < count; k++) {
        PyObject *one = size_of(size[k]);
        if (one == NULL) return pa_keep(f, NULL);
        PyTuple_SET_ITEM(tuple, k, one);
    }
    return tuple;
}

PyObject *pa_shape(pa_frame *f, const at_shape *shape)
{
    return pa_sizes(f, shape->ndim, shape->dim);
}

PyObject *pa_part(pa_frame *f, int axis, at_dim start, at_dim stop)
{
    if (f->failed) return NULL;
    bool to_end = at_is_nil(stop.sym) && stop.n == INT64_MIN;
    PyObject *from = size_of(start), *to = to_end ? Py_NewRef(Py_None) : size_of(stop);
    PyObject *part = from == NULL || to == NULL ? NULL : PySlice_New(from, to, NULL);
    PyObject *key = part == NULL ? NULL : pa_keep(f, PyTuple_New(axis + 2));
    for (int k = 0; key != NULL && k < axis; k++) {
        PyObject *all = PySlice_New(NULL, NULL, NULL);
        if (all == NULL)
            key = NULL;
        else
            PyTuple_SET_ITEM(key, k, all);
    }
    if (key != NULL) {
        PyTuple_SET_ITEM(key, axis, Py_NewRef(part));
        PyTuple_SET_ITEM(key, axis + 1, Py_NewRef(Py_Ellipsis));
    }
    Py_XDECREF(part);
    Py_XDECREF(from);
    Py_XDECREF(to);
    return key == NULL ? pa_keep(f, NULL) : key;
}

at_status pa_foreign(at_context *cx) { return at_error(cx, AT_EFOREIGN, "the framework raised"); }

at_status pa_finish(pa_frame *f, at_context *cx, const at_backend *be, PyObject *result,
                    at_array *out)
{
    bool fine = !f->failed && result != NULL;
    if (fine) {
        Py_INCREF(result);
        *out = (at_array){result, be};
    }
    pa_close(f);
    return fine ? AT_OK : pa_foreign(cx);
}

at_status pa_read_shape(at_context *cx, const at_backend *symbol, PyObject *tuple, at_shape *out)
{
    out->ndim = 0;
    if (!PyTuple_Check(tuple)) {
        PyErr_Format(PyExc_TypeError, "expected a tuple as shape, found %s",
                     Py_TYPE(tuple)->tp_name);
        return pa_foreign(cx);
    }
    Py_ssize_t ndim = PyTuple_GET_SIZE(tuple);
    if (ndim > AT_MAX_NDIM)
        return at_error(cx, AT_ESHAPE, "expected rank <= %d, found %zd", AT_MAX_NDIM, ndim);
    for (Py_ssize_t k = 0; k < ndim; k++) {
        PyObject *size = PyTuple_GET_ITEM(tuple, k);
        if (PyLong_CheckExact(size))
            out->dim[k] = AT_DIM(PyLong_AsLongLong(size));
        else
            out->dim[k] = (at_dim){0, {Py_NewRef(size), symbol}};
    }
    out->ndim = (int)ndim;
    return AT_OK;
}
