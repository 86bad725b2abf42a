/* The NumPy adapter: handles are ndarrays.
 *
 * Elementwise ops go to NumPy's own ufuncs, layout to its C API. Segment work runs on the library's kernels
 * (numpy_kernels.c). Results are always arrays, never NumPy scalars. */
#include "numpy_state.h"

#include <numpy/arrayscalars.h>

#include "core/dtype.h"

static PyObject *function(const at_backend *be, int fn)
{
    return ((numpy_state *)be->state)->fn[fn];
}

static PyObject *call(const at_backend *be, int fn, PyObject *const *args, size_t nargs)
{
    const numpy_state *st = be->state;
    return st->call[fn](st->fn[fn], args, nargs, NULL);
}

/* --- dtypes ----------------------------------------------------------------------------------------- */

static at_dtype dtype_of_size(bool is_signed, npy_intp size)
{
    static const at_dtype of[2][9] = {
        {[1] = AT_UINT8, [2] = AT_UINT16, [4] = AT_UINT32, [8] = AT_UINT64},
        {[1] = AT_INT8, [2] = AT_INT16, [4] = AT_INT32, [8] = AT_INT64},
    };
    return of[is_signed][size];
}

at_dtype pn_dtype_of(PyArray_Descr *d)
{
    int type = d->type_num;
    if (type == NPY_FLOAT) return AT_FLOAT32;
    if (type == NPY_DOUBLE) return AT_FLOAT64;
    if (PyTypeNum_ISBOOL(type)) return AT_BOOL;
    if (PyTypeNum_ISINTEGER(type))
        return dtype_of_size(PyTypeNum_ISSIGNED(type), PyDataType_ELSIZE(d));
    if (type == NPY_HALF) return AT_FLOAT16;
    if (PyTypeNum_ISUSERDEF(type) && strcmp(d->typeobj->tp_name, "ml_dtypes.bfloat16") == 0)
        return AT_BFLOAT16;
    if (PyTypeNum_ISUSERDEF(type) && strcmp(d->typeobj->tp_name, "bfloat16") == 0)
        return AT_BFLOAT16;
    return AT_OTHER;
}

/* Looks for ml_dtypes' bfloat16 among the loaded modules. */
static PyArray_Descr *find_bfloat16(numpy_state *st)
{
    PyObject *module = st->bfloat16 == NULL ? pa_loaded("ml_dtypes") : NULL;
    PyObject *type = module == NULL ? NULL : PyObject_GetAttrString(module, "bfloat16");
    if (type != NULL) PyArray_DescrConverter(type, &st->bfloat16);
    Py_XDECREF(type);
    PyErr_Clear();
    return st->bfloat16;
}

/* A new reference, or NULL with an exception. */
PyArray_Descr *pn_descr_of(const at_backend *be, at_dtype t)
{
    static const int type_of[] = {
        [AT_BOOL] = NPY_BOOL,       [AT_INT8] = NPY_INT8,       [AT_INT16] = NPY_INT16,
        [AT_INT32] = NPY_INT32,     [AT_INT64] = NPY_INT64,     [AT_UINT8] = NPY_UINT8,
        [AT_UINT16] = NPY_UINT16,   [AT_UINT32] = NPY_UINT32,   [AT_UINT64] = NPY_UINT64,
        [AT_FLOAT16] = NPY_FLOAT16, [AT_FLOAT32] = NPY_FLOAT32, [AT_FLOAT64] = NPY_FLOAT64};
    if (t == AT_NODTYPE || t == AT_OTHER) {
        PyErr_SetString(PyExc_TypeError, "expected a bool, integer or floating dtype");
        return NULL;
    }
    if (t != AT_BFLOAT16) return PyArray_DescrFromType(type_of[t]);
    numpy_state *st = be->state;
    if (find_bfloat16(st) == NULL) {
        PyErr_SetString(PyExc_TypeError,
                        "NumPy has no bfloat16 of its own: import ml_dtypes, which brings one");
        return NULL;
    }
    Py_INCREF(st->bfloat16);
    return st->bfloat16;
}

PyObject *pa_numpy_type(const at_backend *be, at_dtype t)
{
    PyArray_Descr *d = pn_descr_of(be, t);
    PyObject *type = d == NULL ? NULL : Py_NewRef((PyObject *)d->typeobj);
    Py_XDECREF(d);
    return type;
}

at_status pn_dtype(at_context *cx, at_array a, at_dtype *out)
{
    (void)cx;
    PyArray_Descr *d = PyArray_DESCR(array_of(a));
    *out = pn_dtype_of(d);
    numpy_state *st = a.be->state;
    if (*out == AT_BFLOAT16 && st->bfloat16 == NULL) {
        Py_INCREF(d);
        st->bfloat16 = d;
    }
    return AT_OK;
}

static at_dtype numpy_default_dtype(const at_backend *be, char kind)
{
    (void)be;
    return kind == 'f' ? AT_FLOAT64 : AT_INT64;
}

at_dtype pa_numpy_dtype(PyObject *obj)
{
    if (!PyArray_DescrCheck(obj) && !PyType_Check(obj) && !PyUnicode_Check(obj)) return AT_NODTYPE;
    PyArray_Descr *d = NULL;
    if (PyArray_DescrConverter(obj, &d) != NPY_SUCCEED) {
        PyErr_Clear();
        return AT_NODTYPE;
    }
    at_dtype t = pn_dtype_of(d);
    Py_DECREF(d);
    return t;
}

/* --- arrays ------------------------------------------------------------------------------------------ */

PyTypeObject *pa_ndarray_type(void) { return &PyArray_Type; }

bool pa_is_numpy_scalar(PyObject *obj) { return PyArray_IsScalar(obj, Generic); }

bool pa_is_numpy_bool(PyObject *obj) { return PyArray_IsScalar(obj, Bool); }

bool pa_is_numpy_float(PyObject *obj) { return PyArray_IsScalar(obj, Floating); }

PyObject *pa_numpy_scalar_to_array(PyObject *obj) { return PyArray_FromScalar(obj, NULL); }

static bool has_negative_stride(PyArrayObject *array)
{
    for (int k = 0; k < PyArray_NDIM(array); k++)
        if (PyArray_STRIDE(array, k) < 0) return true;
    return false;
}

PyObject *pa_numpy_for_sharing(const pa_state *st, PyObject *obj)
{
    PyArrayObject *array = (PyArrayObject *)obj;
    bool copy, refuse, swapped = PyArray_ISBYTESWAPPED(array);
    bool fits = !swapped && PyArray_ISALIGNED(array) && !has_negative_stride(array);
    if (pa_join_rule(st, &copy, &refuse) < 0) return NULL;
    if (fits && !copy) return Py_NewRef(obj);
    if (!fits && !copy && refuse) {
        PyErr_SetString(
            PyExc_ValueError,
            "a NumPy array cannot join the other framework zero-copy (negative strides, "
            "foreign byte order or misaligned memory), and fallback='error' forbids a copy");
        return NULL;
    }
    if (!copy &&
        PyErr_WarnEx(
            PyExc_UserWarning,
            "a NumPy array cannot be shared with the other framework (negative strides, foreign "
            "byte order or misaligned memory): fell back to a copy",
            1) < 0)
        return NULL;
    PyArray_Descr *d = PyArray_DescrNewByteorder(PyArray_DESCR(array), NPY_NATIVE);
    return d == NULL ? NULL
                     : PyArray_FromArray(array, d,
                                         NPY_ARRAY_C_CONTIGUOUS | NPY_ARRAY_ALIGNED |
                                             NPY_ARRAY_WRITEABLE | NPY_ARRAY_ENSURECOPY);
}

static void retain(void *p) { Py_INCREF((PyObject *)p); }

static void release(void *p) { Py_DECREF((PyObject *)p); }

static at_status numpy_shape(at_context *cx, at_array a, at_shape *out)
{
    out->ndim = PyArray_NDIM(array_of(a));
    if (out->ndim > AT_MAX_NDIM)
        return at_error(cx, AT_ESHAPE, "expected rank <= %d, found %d", AT_MAX_NDIM, out->ndim);
    for (int k = 0; k < out->ndim; k++) out->dim[k] = AT_DIM(PyArray_DIM(array_of(a), k));
    return AT_OK;
}

/* The result of a NumPy call: a scalar becomes a 0-d array, failure AT_EFOREIGN. */
at_status pn_result(at_context *cx, const at_backend *be, PyObject *owned, at_array *out)
{
    if (owned != NULL && !PyArray_Check(owned)) {
        PyObject *array = PyArray_FROM_O(owned);
        Py_DECREF(owned);
        owned = array;
    }
    if (owned == NULL) return pa_foreign(cx);
    *out = (at_array){owned, be};
    return AT_OK;
}

static at_status same(at_array a, at_array *out)
{
    Py_INCREF((PyObject *)a.p);
    *out = a;
    return AT_OK;
}

static at_status numpy_adopt(at_context *cx, const at_backend *be, at_array a, at_array like,
                             at_array *out)
{
    (void)be;
    (void)like;
    (void)out;
    return at_error(cx, AT_EUNSUPPORTED, "arrays of %s cannot become NumPy arrays", a.be->name);
}

static bool store_scalar(PyArrayObject *array, const at_scalar *s)
{
    void *data = PyArray_DATA(array);
    switch (PyArray_TYPE(array)) {
    case NPY_FLOAT: *(float *)data = (float)s->d; return true;
    case NPY_DOUBLE: *(double *)data = s->d; return true;
    case NPY_INT64: *(int64_t *)data = s->i; return true;
    case NPY_BOOL: *(npy_bool *)data = s->d != 0; return true;
    default: break;
    }
    pa_frame f;
    pa_open(&f);
    const at_array scalar = {(void *)s, &at_weak};
    PyObject *number = pa_number(&f, scalar);
    int status = number == NULL ? -1 : PyArray_SETITEM(array, data, number);
    pa_close(&f);
    return status == 0;
}

static at_status numpy_from_scalar(at_context *cx, const at_backend *be, at_array scalar,
                                   at_dtype dtype, at_array like, at_array *out)
{
    (void)like;
    if (scalar.be != &at_weak)
        return at_error(cx, AT_EARG, "a symbolic number needs an array of its framework beside it");
    PyArray_Descr *d = pn_descr_of(be, dtype);
    PyObject *array =
        d == NULL ? NULL : PyArray_NewFromDescr(&PyArray_Type, d, 0, NULL, NULL, NULL, 0, NULL);
    if (array != NULL && !store_scalar((PyArrayObject *)array, scalar.p)) Py_CLEAR(array);
    return pn_result(cx, be, array, out);
}

static at_status numpy_to_size(at_context *cx, at_array a, at_dim *out)
{
    PyObject *number = PyArray_GETITEM(array_of(a), PyArray_DATA(array_of(a)));
    if (number == NULL) return pa_foreign(cx);
    *out = AT_DIM(PyLong_AsLongLong(number));
    Py_DECREF(number);
    return PyErr_Occurred() ? pa_foreign(cx) : AT_OK;
}

/* --- elementwise --------------------------------------------------------------------------------------- */

#define UNARY_SLOT(name)                                                                           \
    static at_status numpy_##name(at_context *cx, const at_backend *be, at_array x, at_array *out) \
    {                                                                                              \
        PyObject *args[] = {x.p};                                                                  \
        return pn_result(cx, be, call(be, FN_##name, args, 1), out);                               \
    }

static known_scalar *place_of(numpy_state *st, const at_scalar *s, at_dtype dtype)
{
    uint64_t bits;
    memcpy(&bits, &s->d, sizeof bits);
    return &st->known[((bits >> 48) ^ (bits >> 32) ^ (bits >> 51) ^ dtype) % KNOWN_SCALARS];
}

/* A new reference to a 0-d array of the scalar; NULL with an exception. */
static PyObject *scalar_array(at_context *cx, const at_backend *be, at_array scalar, at_dtype dtype)
{
    const at_scalar *s = scalar.p;
    known_scalar *known = place_of(be->state, s, dtype);
    bool same_value = memcmp(&known->value, &s->d, sizeof s->d) == 0 && known->integer == s->i;
    if (known->array != NULL && known->dtype == dtype && same_value) return Py_NewRef(known->array);
    at_array made = AT_NIL;
    if (numpy_from_scalar(cx, be, scalar, dtype, AT_NIL, &made) != AT_OK) return NULL;
    PyArray_CLEARFLAGS((PyArrayObject *)made.p,
                       NPY_ARRAY_WRITEABLE); /* foreign ufuncs may see it */
    Py_XSETREF(known->array, Py_NewRef((PyObject *)made.p));
    known->value = s->d;
    known->integer = s->i;
    known->dtype = dtype;
    return made.p;
}

/* New references to up to three operands; scalars become arrays of the dtype of the array among the data. */
static bool operands(at_context *cx, const at_backend *be, int count, const at_array *operand,
                     PyObject **out)
{
    at_dtype t = AT_FLOAT64;
    for (int i = 0; i < count; i++)
        if (operand[i].be == be) pn_dtype(cx, operand[i], &t);
    for (int i = 0; i < count; i++) {
        out[i] = operand[i].be == be ? Py_NewRef((PyObject *)operand[i].p)
                                     : scalar_array(cx, be, operand[i], t);
        if (out[i] != NULL) continue;
        while (i > 0) Py_DECREF(out[--i]);
        return false;
    }
    return true;
}

static at_status with_scalar(at_context *cx, const at_backend *be, int fn, at_array x, at_array y,
                             at_array *out)
{
    PyObject *args[2];
    if (fn == FN_maximum || fn == FN_minimum) {
        at_status status =
            pn_few_extremes(cx, be, fn, x.be == be ? x : y, x.be == be ? y.p : x.p, out);
        if (status != AT_DECLINE) return status;
    }
    if (!operands(cx, be, 2, (at_array[]){x, y}, args)) return pa_foreign(cx);
    PyObject *z = call(be, fn, args, 2);
    Py_DECREF(args[0]);
    Py_DECREF(args[1]);
    return pn_result(cx, be, z, out);
}

#define BINARY_SLOT(name)                                                                          \
    static at_status numpy_##name(at_context *cx, const at_backend *be, at_array x, at_array y,    \
                                  at_array *out)                                                   \
    {                                                                                              \
        PyObject *args[] = {x.p, y.p};                                                             \
        if (x.be != be || y.be != be) return with_scalar(cx, be, FN_##name, x, y, out);            \
        return pn_result(cx, be, call(be, FN_##name, args, 2), out);                               \
    }

UNARY_SLOT(exp)
UNARY_SLOT(log)
UNARY_SLOT(sqrt)
UNARY_SLOT(is_nan)
UNARY_SLOT(is_inf)
UNARY_SLOT(is_finite)
BINARY_SLOT(add)
BINARY_SLOT(sub)
BINARY_SLOT(mul)
BINARY_SLOT(div)
BINARY_SLOT(equal)
BINARY_SLOT(maximum)
BINARY_SLOT(minimum)

static at_status numpy_stop_gradient(at_context *cx, const at_backend *be, at_array x,
                                     at_array *out)
{
    (void)cx;
    (void)be;
    return same(x, out);
}

static at_status numpy_where(at_context *cx, const at_backend *be, at_array condition, at_array x,
                             at_array y, at_array *out)
{
    PyObject *args[2];
    if (!operands(cx, be, 2, (at_array[]){x, y}, args)) return pa_foreign(cx);
    PyObject *z = PyArray_Where(condition.p, args[0], args[1]);
    Py_DECREF(args[0]);
    Py_DECREF(args[1]);
    return pn_result(cx, be, z, out);
}

/* --- reductions ---------------------------------------------------------------------------------------- */

/* ufunc.reduce(x, axes or None, dtype or None, None, keepdims) */
static at_status reduce(at_context *cx, const at_backend *be, int fn, at_array x,
                        const at_axes *axes, bool keepdims, PyArray_Descr *dtype, at_array *out)
{
    pa_frame f;
    pa_open(&f);
    PyObject *axis = pa_axes(&f, axes, -1);
    PyObject *y =
        pa_call(&f, function(be, fn), x.p, axis, dtype == NULL ? Py_None : (PyObject *)dtype,
                Py_None, keepdims ? Py_True : Py_False);
    at_array raw = AT_NIL;
    if (pa_finish(&f, cx, be, y, &raw) != AT_OK) return cx->status;
    return pn_result(cx, be, raw.p, out);
}

/* Half types add in float32, whatever NumPy's own loops do along this axis. */
static PyArray_Descr *sum_dtype(at_array x)
{
    return ati_is_half(pn_dtype_of(PyArray_DESCR(array_of(x)))) ? PyArray_DescrFromType(NPY_FLOAT32)
                                                                : NULL;
}

static at_status recast(at_context *cx, const at_backend *be, at_array owned, at_array like,
                        at_array *out)
{
    PyArray_Descr *d = PyArray_DescrNewByteorder(PyArray_DESCR(array_of(like)), NPY_NATIVE);
    PyObject *y = d == NULL ? NULL : PyArray_CastToType(array_of(owned), d, 0);
    Py_DECREF((PyObject *)owned.p);
    return pn_result(cx, be, y, out);
}

static at_status fold_wide(at_context *cx, const at_backend *be, int fn, at_array x,
                           const at_axes *axes, bool keepdims, at_array *out)
{
    PyArray_Descr *wide = sum_dtype(x);
    at_status status = reduce(cx, be, fn, x, axes, keepdims, wide, out);
    if (status == AT_OK && wide != NULL) status = recast(cx, be, *out, x, out);
    Py_XDECREF(wide);
    return status;
}

#define REDUCE_SLOT(name, how, ...)                                                                \
    static at_status numpy_##name(at_context *cx, const at_backend *be, at_array x, at_axes axes,  \
                                  bool keepdims, at_array *out)                                    \
    {                                                                                              \
        return how(cx, be, FN_##name, x, &axes, keepdims, __VA_ARGS__);                            \
    }

REDUCE_SLOT(sum, fold_wide, out)
REDUCE_SLOT(prod, fold_wide, out)
REDUCE_SLOT(min, reduce, NULL, out)
REDUCE_SLOT(max, reduce, NULL, out)

/* The sum over how many elements went into each of its own: 0 / 0 is NaN, without a warning. */
static at_status numpy_mean(at_context *cx, const at_backend *be, at_array x, at_axes axes,
                            bool keepdims, at_array *out)
{
    PyArray_Descr *wide = sum_dtype(x);
    at_array sum = AT_NIL;
    at_status status = reduce(cx, be, FN_sum, x, &axes, keepdims, wide, &sum);
    Py_XDECREF(wide);
    if (status != AT_OK) return status;
    npy_intp sums = PyArray_SIZE(array_of(sum)), all = PyArray_SIZE(array_of(x));
    double count = sums == 0 ? 1 : (double)all / (double)sums;
    PyObject *divisor = PyFloat_FromDouble(count > 0 ? count : Py_NAN);
    PyObject *args[] = {sum.p, divisor};
    PyObject *mean = divisor == NULL ? NULL : call(be, FN_div, args, 2);
    Py_XDECREF(divisor);
    Py_DECREF((PyObject *)sum.p);
    status = pn_result(cx, be, mean, out);
    return status == AT_OK && PyArray_TYPE(array_of(*out)) != PyArray_TYPE(array_of(x))
               ? recast(cx, be, *out, x, out)
               : status;
}

static at_status numpy_cumsum(at_context *cx, const at_backend *be, at_array x, int axis,
                              at_array *out)
{
    bool half = ati_is_half(pn_dtype_of(PyArray_DESCR(array_of(x))));
    PyObject *y = PyArray_CumSum(array_of(x), axis, half ? NPY_FLOAT32 : NPY_NOTYPE, NULL);
    at_status status = pn_result(cx, be, y, out);
    return status == AT_OK && half ? recast(cx, be, *out, x, out) : status;
}

/* --- shape and layout ----------------------------------------------------------------------------------- */

static int numpy_axis(int axis) { return axis == AT_NO_AXIS ? NPY_RAVEL_AXIS : axis; }

/* Indices as intp. Of uint64, what is beyond intp must stay out of range and not turn negative. */
static PyObject *to_intp(PyArrayObject *indices)
{
    if (PyArray_TYPE(indices) != NPY_UINT64)
        return PyArray_FROMANY((PyObject *)indices, NPY_INTP, 0, 0, NPY_ARRAY_FORCECAST);
    PyObject *top = PyLong_FromLongLong(INT64_MAX);
    PyObject *clipped = top == NULL ? NULL : PyArray_Clip(indices, NULL, top, NULL);
    Py_XDECREF(top);
    if (clipped == NULL) return NULL;
    PyObject *out = PyArray_FROMANY(clipped, NPY_INTP, 0, 0, NPY_ARRAY_FORCECAST);
    Py_DECREF(clipped);
    return out;
}

static at_status numpy_take(at_context *cx, const at_backend *be, at_array x, at_array indices,
                            int axis, at_array *out)
{
    PyObject *index = to_intp(array_of(indices));
    if (index == NULL) return pa_foreign(cx);
    PyObject *y = PyArray_TakeFrom(array_of(x), index, numpy_axis(axis), NULL, NPY_RAISE);
    Py_DECREF(index);
    return pn_result(cx, be, y, out);
}

static at_status numpy_repeat_each(at_context *cx, const at_backend *be, at_array x,
                                   at_array repeats, int axis, at_array *out)
{
    pa_frame f;
    pa_open(&f);
    PyObject *counts =
        repeats.be == be ? pa_keep(&f, to_intp(array_of(repeats))) : pa_number(&f, repeats);
    PyObject *y =
        counts == NULL ? NULL : pa_keep(&f, PyArray_Repeat(array_of(x), counts, numpy_axis(axis)));
    return pa_finish(&f, cx, be, y, out);
}

static at_status numpy_reshape(at_context *cx, const at_backend *be, at_array x,
                               const at_shape *shape, at_array *out)
{
    npy_intp sizes[AT_MAX_NDIM];
    for (int k = 0; k < shape->ndim; k++) sizes[k] = shape->dim[k].n;
    PyArray_Dims dims = {sizes, shape->ndim};
    return pn_result(cx, be, PyArray_Newshape(array_of(x), &dims, NPY_CORDER), out);
}

static at_status numpy_concatenate(at_context *cx, const at_backend *be, at_list arrays, int axis,
                                   at_array *out)
{
    PyObject *tuple = PyTuple_New(arrays.count);
    if (tuple == NULL) return pa_foreign(cx);
    for (int i = 0; i < arrays.count; i++)
        PyTuple_SET_ITEM(tuple, i, Py_NewRef((PyObject *)arrays.array[i].p));
    PyObject *y = PyArray_Concatenate(tuple, numpy_axis(axis));
    Py_DECREF(tuple);
    return pn_result(cx, be, y, out);
}

static at_status numpy_astype(at_context *cx, const at_backend *be, at_array x, at_dtype dtype,
                              at_array *out)
{
    at_dtype t = AT_OTHER;
    pn_dtype(cx, x, &t);
    if (t == dtype && !PyArray_ISBYTESWAPPED(array_of(x))) return same(x, out);
    PyArray_Descr *d = pn_descr_of(be, dtype);
    return pn_result(cx, be, d == NULL ? NULL : PyArray_CastToType(array_of(x), d, 0), out);
}

static at_status numpy_transpose(at_context *cx, const at_backend *be, at_array x, at_axes axes,
                                 at_array *out)
{
    npy_intp order[AT_MAX_NDIM];
    for (int k = 0; k < axes.count; k++) order[k] = axes.axis[k];
    PyArray_Dims permutation = {order, axes.count};
    return pn_result(cx, be, PyArray_Transpose(array_of(x), &permutation), out);
}

static at_status numpy_slice(at_context *cx, const at_backend *be, at_array x, at_dim start,
                             at_dim stop, int axis, at_array *out)
{
    npy_intp dims[AT_MAX_NDIM];
    PyArrayObject *xa = array_of(x);
    memcpy(dims, PyArray_DIMS(xa), (size_t)PyArray_NDIM(xa) * sizeof *dims);
    dims[axis] = stop.n - start.n;
    char *first = PyArray_BYTES(xa);
    if (dims[axis] > 0) first += start.n * PyArray_STRIDE(xa, axis); /* never beyond the end */
    PyArray_Descr *d = PyArray_DESCR(xa);
    Py_INCREF(d);
    PyObject *y =
        PyArray_NewFromDescr(&PyArray_Type, d, PyArray_NDIM(xa), dims, PyArray_STRIDES(xa), first,
                             PyArray_FLAGS(xa) & NPY_ARRAY_WRITEABLE, NULL);
    if (y != NULL && PyArray_SetBaseObject((PyArrayObject *)y, Py_NewRef((PyObject *)xa)) < 0)
        Py_CLEAR(y);
    return pn_result(cx, be, y, out);
}

static at_status numpy_head(at_context *cx, const at_backend *be, at_array x, at_dim n,
                            at_array *out)
{
    if (PyArray_DIM(array_of(x), 0) == n.n) return same(x, out);
    return numpy_slice(cx, be, x, AT_DIM(0), n, 0, out);
}

/* --- products of matrices -------------------------------------------------------------------------------- */

/* x in float32, as a new reference. */
static PyObject *in_float32(at_array x)
{
    return PyArray_CastToType(array_of(x), PyArray_DescrFromType(NPY_FLOAT), 0);
}

/* Half types are multiplied in float32: NumPy's own loops would take ten times as long. */
static at_status numpy_matmul(at_context *cx, const at_backend *be, at_array x, at_array y,
                              at_array *out)
{
    PyObject *args[] = {x.p, y.p};
    if (!ati_is_half(pn_dtype_of(PyArray_DESCR(array_of(x)))))
        return pn_result(cx, be, call(be, FN_matmul, args, 2), out);
    args[0] = in_float32(x);
    args[1] = args[0] == NULL ? NULL : in_float32(y);
    PyObject *z = args[1] == NULL ? NULL : call(be, FN_matmul, args, 2);
    Py_XDECREF(args[0]);
    Py_XDECREF(args[1]);
    at_status status = pn_result(cx, be, z, out);
    return status == AT_OK ? recast(cx, be, *out, x, out) : status;
}

/* --- constructors ---------------------------------------------------------------------------------------- */

static bool is_zero(at_array value)
{
    return value.be == &at_weak && ((const at_scalar *)value.p)->d == 0 &&
           !signbit(((const at_scalar *)value.p)->d);
}

static int fill(PyArrayObject *array, at_array value)
{
    if (value.be != &at_weak) return PyArray_CopyInto(array, array_of(value));
    pa_frame f;
    pa_open(&f);
    PyObject *number = pa_number(&f, value);
    int status = number == NULL ? -1 : PyArray_FillWithScalar(array, number);
    pa_close(&f);
    return status;
}

static at_status numpy_full(at_context *cx, const at_backend *be, const at_shape *shape,
                            at_array fill_value, at_dtype dtype, at_array like, at_array *out)
{
    (void)like;
    npy_intp dims[AT_MAX_NDIM];
    if (fill_value.be != be && fill_value.be != &at_weak)
        return at_error(cx, AT_EARG, "a symbolic value needs like= with an array of its framework");
    for (int k = 0; k < shape->ndim; k++) {
        if (!at_is_nil(shape->dim[k].sym))
            return at_error(cx, AT_EARG,
                            "a symbolic size needs like= with an array of its framework");
        dims[k] = shape->dim[k].n;
    }
    PyArray_Descr *d = pn_descr_of(be, dtype);
    if (d == NULL) return pa_foreign(cx);
    bool zeros = is_zero(fill_value);
    PyObject *array =
        zeros ? PyArray_Zeros(shape->ndim, dims, d, 0) : PyArray_Empty(shape->ndim, dims, d, 0);
    if (array != NULL && !zeros && fill((PyArrayObject *)array, fill_value) < 0) Py_CLEAR(array);
    return pn_result(cx, be, array, out);
}

/* A bound as a Python number: NumPy's arange computes with Python's own. */
static PyObject *bound(pa_frame *f, const at_backend *be, at_array value)
{
    if (value.be != be) return pa_number(f, value);
    PyArrayObject *a = array_of(value);
    if (PyArray_NDIM(a) != 0) {
        PyErr_SetString(PyExc_TypeError, "expected 0-d bounds");
        return pa_keep(f, NULL);
    }
    return pa_keep(f, PyArray_GETITEM(a, PyArray_DATA(a)));
}

static at_status numpy_arange(at_context *cx, const at_backend *be, at_array start, at_array stop,
                              at_array step, at_dtype dtype, at_array like, const void *device,
                              at_array *out)
{
    (void)like;
    (void)device;
    pa_frame f;
    pa_open(&f);
    PyObject *from = bound(&f, be, start);
    PyObject *to = f.failed ? NULL : bound(&f, be, stop);
    PyObject *by = f.failed ? NULL : pa_step(&f, bound(&f, be, step));
    PyArray_Descr *d = f.failed ? NULL : pn_descr_of(be, dtype);
    PyObject *y = d == NULL ? NULL : pa_keep(&f, PyArray_ArangeObj(from, to, by, d));
    Py_XDECREF(d);
    return pa_finish(&f, cx, be, y, out);
}

/* --- the adapter ----------------------------------------------------------------------------------------- */

static int resolve(numpy_state *st)
{
    static const char *const path[] = {
#define X(name, where) where,
        FUNCTIONS(X)
#undef X
    };
    PyObject *numpy = PyImport_ImportModule("numpy");
    for (int i = 0; numpy != NULL && i < FN_COUNT; i++) {
        const char *dot = strchr(path[i], '.');
        PyObject *name = PyUnicode_FromStringAndSize(
            path[i], dot == NULL ? (Py_ssize_t)strlen(path[i]) : dot - path[i]);
        PyObject *found = name == NULL ? NULL : PyObject_GetAttr(numpy, name);
        Py_XDECREF(name);
        if (found != NULL && dot != NULL) Py_SETREF(found, PyObject_GetAttrString(found, dot + 1));
        st->fn[i] = found;
        if (found == NULL) break;
        st->call[i] = PyVectorcall_Function(found);
        if (st->call[i] == NULL) st->call[i] = PyObject_Vectorcall;
    }
    Py_XDECREF(numpy);
    return PyErr_Occurred() ? -1 : 0;
}

int pa_numpy_make(at_backend *be)
{
    import_array1(-1);
    numpy_state *st = PyMem_Calloc(1, sizeof *st);
    if (st == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    *be = (at_backend){
        .name = "numpy",
        .traits = AT_JOINS | AT_WIDE_SUMS | AT_TAKES_SCALARS,
        .state = st,
        .retain = retain,
        .release = release,
        .dtype = pn_dtype,
        .shape = numpy_shape,
        .default_dtype = numpy_default_dtype,
        .adopt = numpy_adopt,
        .from_scalar = numpy_from_scalar,
        .to_size = numpy_to_size,
        .peek = pn_peek,
#define ATI_SLOT_PRIMITIVE(name) .name = numpy_##name,
#define ATI_SLOT_COMPOSITE(name)
#define OP(kind, name, level, ...) ATI_SLOT_##level(name)
#include "anytensor/ops.def"
        .segment_sum = numpy_segment_sum,
        .segment_min = numpy_segment_min,
        .segment_max = numpy_segment_max,
        .segment_mean = numpy_segment_mean,
        .segment_softmax = numpy_segment_softmax,
        .segment_prod = numpy_segment_prod,
        .segment_argmin = numpy_segment_argmin,
        .segment_argmax = numpy_segment_argmax,
        .segment_normalize = numpy_segment_normalize,
        .segment_min_or_constant = numpy_segment_min_or_constant,
        .segment_max_or_constant = numpy_segment_max_or_constant,
        .partition_ids = numpy_partition_ids,
    };
    return resolve(st);
}

void pa_numpy_clear(at_backend *be)
{
    numpy_state *st = be->state;
    if (st == NULL) return;
    for (int i = 0; i < FN_COUNT; i++) Py_CLEAR(st->fn[i]);
    for (int i = 0; i < KNOWN_SCALARS; i++) Py_CLEAR(st->known[i].array);
    Py_CLEAR(st->bfloat16);
    PyMem_Free(st);
    be->state = NULL;
}

int pa_numpy_visit(at_backend *be, visitproc visit, void *arg)
{
    numpy_state *st = be->state;
    for (int i = 0; st != NULL && i < FN_COUNT; i++) Py_VISIT(st->fn[i]);
    return 0;
}
