/* The NumPy adapter's slots that run on the library's kernels, over views of the arrays' memory: segments, slots, and
 * what is too small for NumPy's own machinery. Kernels over many elements release the GIL. */
#define PN_USES_NUMPY_API
#include "numpy_state.h"

#include "kernels/elementwise.h"
#include "kernels/move.h"
#include "kernels/segment.h"

/* --- views for kernels -------------------------------------------------------------------------------- */

/* A view of an array's memory; temp owns a copy in native byte order where one was needed. */
typedef struct view {
    ati_host host;
    PyArrayObject *temp;
} view;

static bool open_view(view *v, at_array a)
{
    PyArrayObject *array = array_of(a);
    v->temp = NULL;
    if (PyArray_NDIM(array) > AT_MAX_NDIM) {
        PyErr_Format(PyExc_ValueError, "expected rank <= %d, found %d", AT_MAX_NDIM,
                     PyArray_NDIM(array));
        return false;
    }
    if (PyArray_ISBYTESWAPPED(array)) {
        PyArray_Descr *d = PyArray_DescrNewByteorder(PyArray_DESCR(array), NPY_NATIVE);
        if (d == NULL) return false;
        array = v->temp = (PyArrayObject *)PyArray_FromArray(array, d, NPY_ARRAY_FORCECAST);
        if (array == NULL) return false;
    }
    v->host.data = PyArray_DATA(array);
    v->host.dtype = pn_dtype_of(PyArray_DESCR(array));
    v->host.ndim = PyArray_NDIM(array);
    for (int k = 0; k < v->host.ndim; k++) {
        v->host.dim[k] = PyArray_DIM(array, k);
        v->host.stride[k] = PyArray_STRIDE(array, k);
    }
    return true;
}

static void close_view(view *v) { Py_CLEAR(v->temp); }

/* Rows and their ids; both or none. */
static bool open_rows(view *xv, at_array x, view *iv, at_array ids)
{
    if (!open_view(xv, x)) return false;
    if (open_view(iv, ids)) return true;
    close_view(xv);
    return false;
}

/* A kernel's output: a new array of the first dimension and the rest of like's. NULL with an exception. */
static PyObject *new_rows(const at_backend *be, at_dtype dtype, int64_t rows, int ndim,
                          const npy_intp *tail, view *v)
{
    npy_intp dims[AT_MAX_NDIM];
    dims[0] = rows;
    for (int k = 1; k < ndim; k++) dims[k] = tail[k];
    PyArray_Descr *d = pn_descr_of(be, dtype);
    if (d == NULL) return NULL;
    PyObject *array = PyArray_NewFromDescr(&PyArray_Type, d, ndim, dims, NULL, NULL, 0, NULL);
    if (array != NULL) open_view(v, (at_array){array, be});
    return array;
}

/* Kernels over this many elements let other threads run. */
#define MANY 20000

#define WITHOUT_GIL(elements, ...)                                                                 \
    do {                                                                                           \
        if ((elements) < MANY) {                                                                   \
            __VA_ARGS__;                                                                           \
        } else {                                                                                   \
            Py_BEGIN_ALLOW_THREADS __VA_ARGS__;                                                    \
            Py_END_ALLOW_THREADS                                                                   \
        }                                                                                          \
    } while (0)

/* What every kernel with rows ends with. */
static at_status finish_kernel(at_context *cx, const at_backend *be, view *xv, view *iv, bool fine,
                               PyObject *array, at_array *out)
{
    close_view(xv);
    close_view(iv);
    if (!fine) {
        Py_DECREF(array);
        return at_error(cx, AT_ENOMEM, "no memory for partial sums");
    }
    return pn_result(cx, be, array, out);
}

/* The segment kernels check their ids, so they serve slots (ids clean) and segments alike. */
static at_status fold(at_context *cx, const at_backend *be, ati_fold op, at_array x, at_array ids,
                      at_dim n, at_array *out)
{
    view xv, iv, ov;
    at_dtype t = AT_OTHER;
    pn_dtype(cx, x, &t);
    if (t == AT_OTHER)
        return at_error(cx, AT_EDTYPE, "expected bool, integer or floating data, found %s",
                        PyArray_DESCR(array_of(x))->typeobj->tp_name);
    if (!open_rows(&xv, x, &iv, ids)) return pa_foreign(cx);
    PyArrayObject *xa = array_of(x);
    PyObject *array = new_rows(be, t, n.n, PyArray_NDIM(xa), PyArray_DIMS(xa), &ov);
    bool fine = true;
    if (array != NULL)
        WITHOUT_GIL(PyArray_SIZE(xa), fine = ati_k_segment_fold(op, &xv.host, &iv.host, &ov.host));
    return finish_kernel(cx, be, &xv, &iv, fine, array, out);
}

at_status numpy_slot_sum(at_context *cx, const at_backend *be, at_array x, at_array slot_ids,
                         at_dim slots, at_array *out)
{
    return fold(cx, be, ATI_FOLD_SUM, x, slot_ids, slots, out);
}

at_status numpy_slot_min(at_context *cx, const at_backend *be, at_array x, at_array slot_ids,
                         at_dim slots, at_array *out)
{
    return fold(cx, be, ATI_FOLD_MIN, x, slot_ids, slots, out);
}

at_status numpy_slot_max(at_context *cx, const at_backend *be, at_array x, at_array slot_ids,
                         at_dim slots, at_array *out)
{
    return fold(cx, be, ATI_FOLD_MAX, x, slot_ids, slots, out);
}

at_status numpy_slot_prod(at_context *cx, const at_backend *be, at_array x, at_array slot_ids,
                          at_dim slots, at_array *out)
{
    return fold(cx, be, ATI_FOLD_PROD, x, slot_ids, slots, out);
}

at_status numpy_segment_sum(at_context *cx, const at_backend *be, at_array x, at_array segment_ids,
                            at_dim num_segments, bool sorted, at_array *out)
{
    (void)sorted;
    if (PyArray_ISBOOL(array_of(x))) return AT_DECLINE; /* it counts: the formula casts */
    return fold(cx, be, ATI_FOLD_SUM, x, segment_ids, num_segments, out);
}

at_status numpy_segment_min(at_context *cx, const at_backend *be, at_array x, at_array segment_ids,
                            at_dim num_segments, bool sorted, at_array *out)
{
    (void)sorted;
    return fold(cx, be, ATI_FOLD_MIN, x, segment_ids, num_segments, out);
}

at_status numpy_segment_max(at_context *cx, const at_backend *be, at_array x, at_array segment_ids,
                            at_dim num_segments, bool sorted, at_array *out)
{
    (void)sorted;
    return fold(cx, be, ATI_FOLD_MAX, x, segment_ids, num_segments, out);
}

/* Half types multiply in float32, bool in integers: the formula casts. */
at_status numpy_segment_prod(at_context *cx, const at_backend *be, at_array x, at_array segment_ids,
                             at_dim num_segments, bool sorted, at_array *out)
{
    (void)sorted;
    at_dtype t = AT_OTHER;
    pn_dtype(cx, x, &t);
    if (t == AT_BOOL || t == AT_FLOAT16 || t == AT_BFLOAT16) return AT_DECLINE;
    return fold(cx, be, ATI_FOLD_PROD, x, segment_ids, num_segments, out);
}

static at_status arg(at_context *cx, const at_backend *be, ati_fold op, at_array x, at_array ids,
                     at_dim n, at_array *out)
{
    view xv, iv, ov;
    at_dtype t = AT_OTHER;
    pn_dtype(cx, x, &t);
    if (t == AT_OTHER) return AT_DECLINE;
    if (!open_rows(&xv, x, &iv, ids)) return pa_foreign(cx);
    if (!ati_k_rows_are_whole(&xv.host)) {
        close_view(&xv);
        close_view(&iv);
        return AT_DECLINE;
    }
    PyArrayObject *xa = array_of(x);
    PyObject *array = new_rows(be, AT_INT64, n.n, PyArray_NDIM(xa), PyArray_DIMS(xa), &ov);
    bool fine = true;
    if (array != NULL)
        WITHOUT_GIL(PyArray_SIZE(xa), fine = ati_k_segment_arg(op, &xv.host, &iv.host, &ov.host));
    return finish_kernel(cx, be, &xv, &iv, fine, array, out);
}

at_status numpy_segment_argmin(at_context *cx, const at_backend *be, at_array x,
                               at_array segment_ids, at_dim num_segments, bool sorted,
                               at_array *out)
{
    (void)sorted;
    return arg(cx, be, ATI_FOLD_MIN, x, segment_ids, num_segments, out);
}

at_status numpy_segment_argmax(at_context *cx, const at_backend *be, at_array x,
                               at_array segment_ids, at_dim num_segments, bool sorted,
                               at_array *out)
{
    (void)sorted;
    return arg(cx, be, ATI_FOLD_MAX, x, segment_ids, num_segments, out);
}

/* Kernels that give a float row per row, or per segment; the formula has what they do not take. */
typedef bool row_kernel(const ati_host *x, const ati_host *ids, int64_t n, ati_host *out);

static bool mean_kernel(const ati_host *x, const ati_host *ids, int64_t n, ati_host *out)
{
    (void)n;
    return ati_k_segment_mean(x, ids, out);
}

static at_status rows_kernel(at_context *cx, const at_backend *be, row_kernel *kernel, at_array x,
                             at_array ids, int64_t n, bool reduces, at_array *out)
{
    view xv, iv, ov;
    at_dtype t = AT_OTHER;
    pn_dtype(cx, x, &t);
    if (t < AT_FLOAT16 || t == AT_OTHER) return AT_DECLINE;
    if (!open_rows(&xv, x, &iv, ids)) return pa_foreign(cx);
    PyArrayObject *xa = array_of(x);
    int64_t rows = reduces ? n : xv.host.dim[0];
    PyObject *array = new_rows(be, t, rows, xv.host.ndim, PyArray_DIMS(xa), &ov);
    bool fine = true;
    if (array != NULL)
        WITHOUT_GIL(PyArray_SIZE(xa), fine = kernel(&xv.host, &iv.host, n, &ov.host));
    return finish_kernel(cx, be, &xv, &iv, fine, array, out);
}

#define ROWS(X)                                                                                    \
    X(segment_mean, mean_kernel, true)                                                             \
    X(segment_softmax, ati_k_segment_softmax, false)                                               \
    X(segment_normalize, ati_k_segment_normalize, false)

#define DEFINE(name, kernel, reduces)                                                              \
    at_status numpy_##name(at_context *cx, const at_backend *be, at_array x, at_array segment_ids, \
                           at_dim num_segments, bool sorted, at_array *out)                        \
    {                                                                                              \
        (void)sorted; /* the kernels look */                                                       \
        return rows_kernel(cx, be, kernel, x, segment_ids, num_segments.n, reduces, out);          \
    }
ROWS(DEFINE)
#undef DEFINE

static at_status or_constant(at_context *cx, const at_backend *be, ati_fold op, at_array x,
                             at_array ids, at_dim n, at_array constant, at_array *out)
{
    view xv, iv, ov;
    at_dtype t = AT_OTHER;
    pn_dtype(cx, x, &t);
    const at_scalar *scalar = constant.be == &at_weak ? constant.p : NULL;
    if (scalar == NULL || scalar->range == AT_FITS_NONE || t == AT_OTHER) return AT_DECLINE;
    ati_host value = scalar->kind != AT_WEAK_FLOAT
                         ? ati_k_view(&(int64_t){scalar->i}, AT_INT64, 0, NULL)
                         : ati_k_view(&(double){scalar->d}, AT_FLOAT64, 0, NULL);
    if (scalar->range == AT_FITS_UINT64) value.dtype = AT_UINT64;
    if (!open_rows(&xv, x, &iv, ids)) return pa_foreign(cx);
    PyArrayObject *xa = array_of(x);
    PyObject *array = new_rows(be, t, n.n, PyArray_NDIM(xa), PyArray_DIMS(xa), &ov);
    bool fine = true;
    if (array != NULL)
        WITHOUT_GIL(PyArray_SIZE(xa),
                    fine = ati_k_segment_or_constant(op, &xv.host, &iv.host, &value, &ov.host));
    return finish_kernel(cx, be, &xv, &iv, fine, array, out);
}

#define OR_CONSTANT(X)                                                                             \
    X(segment_min_or_constant, ATI_FOLD_MIN) X(segment_max_or_constant, ATI_FOLD_MAX)

#define DEFINE(name, op)                                                                           \
    at_status numpy_##name(at_context *cx, const at_backend *be, at_array x, at_array segment_ids, \
                           at_dim num_segments, at_array constant, bool sorted, at_array *out)     \
    {                                                                                              \
        (void)sorted;                                                                              \
        return or_constant(cx, be, op, x, segment_ids, num_segments, constant, out);               \
    }
OR_CONSTANT(DEFINE)
#undef DEFINE

/* Ids in, a vector out: what the id kernels share. */
typedef bool id_kernel(const ati_host *ids, int64_t n, ati_host *out);

static bool count_kernel(const ati_host *ids, int64_t n, ati_host *out)
{
    (void)n;
    return ati_k_segment_count(ids, out);
}

static bool slot_ids_kernel(const ati_host *ids, int64_t n, ati_host *out)
{
    ati_k_slot_ids(ids, n, out);
    return true;
}

static bool slot_kept_kernel(const ati_host *ids, int64_t n, ati_host *out)
{
    ati_k_slot_kept(ids, n, out);
    return true;
}

static bool partition_kernel(const ati_host *partitions, int64_t n, ati_host *out)
{
    (void)n;
    ati_k_partition_ids(partitions, out);
    return true;
}

static at_status from_ids(at_context *cx, const at_backend *be, id_kernel *kernel, at_array ids,
                          int64_t n, at_dtype dtype, int64_t length, at_array *out)
{
    view iv, ov;
    if (!open_view(&iv, ids)) return pa_foreign(cx);
    PyObject *array = new_rows(be, dtype, length, 1, NULL, &ov);
    bool fine = true;
    if (array != NULL) WITHOUT_GIL(iv.host.dim[0], fine = kernel(&iv.host, n, &ov.host));
    close_view(&iv);
    if (!fine) {
        Py_DECREF(array);
        return at_error(cx, AT_ENOMEM, "no memory for counts");
    }
    return pn_result(cx, be, array, out);
}

at_status numpy_slot_ids(at_context *cx, const at_backend *be, at_array ids, at_dim n,
                         at_array *out)
{
    return from_ids(cx, be, slot_ids_kernel, ids, n.n, AT_INT64, PyArray_DIM(array_of(ids), 0),
                    out);
}

at_status numpy_slot_kept(at_context *cx, const at_backend *be, at_array ids, at_dim n,
                          at_array *out)
{
    return from_ids(cx, be, slot_kept_kernel, ids, n.n, AT_BOOL, PyArray_DIM(array_of(ids), 0),
                    out);
}

at_status numpy_slot_count(at_context *cx, const at_backend *be, at_array ids, at_dim n,
                           at_array *out)
{
    return from_ids(cx, be, count_kernel, ids, n.n, AT_INT64, n.n, out);
}

at_status numpy_partition_ids(at_context *cx, const at_backend *be, at_array partitions,
                              at_dim total_length, at_array *out)
{
    return from_ids(cx, be, partition_kernel, partitions, 0, AT_INT64, total_length.n, out);
}

at_status numpy_spread(at_context *cx, const at_backend *be, at_array x, at_array slot_ids,
                       at_array *out)
{
    view xv, iv, ov;
    at_dtype t = AT_OTHER;
    pn_dtype(cx, x, &t);
    if (t == AT_OTHER) return at_error(cx, AT_EDTYPE, "expected bool, integer or floating data");
    if (!open_rows(&xv, x, &iv, slot_ids)) return pa_foreign(cx);
    PyArrayObject *xa = array_of(x);
    PyObject *array = new_rows(be, t, iv.host.dim[0], xv.host.ndim, PyArray_DIMS(xa), &ov);
    if (array != NULL)
        WITHOUT_GIL(PyArray_SIZE((PyArrayObject *)array),
                    ati_k_spread(&xv.host, &iv.host, &ov.host));
    close_view(&xv);
    close_view(&iv);
    return pn_result(cx, be, array, out);
}

at_status pn_peek(at_context *cx, at_array a, bool needed, int64_t *sum, int64_t *least,
                  bool *known)
{
    (void)needed;
    view v;
    if (!open_view(&v, a)) return pa_foreign(cx);
    if (v.host.ndim == 0) { /* a vector of one */
        v.host.dim[0] = 1;
        v.host.stride[0] = 0;
    }
    ati_k_counts(&v.host, sum, least);
    close_view(&v);
    *known = true;
    return AT_OK;
}

/* --- elementwise, of few elements --- */

/* Up to this many elements the set-up of NumPy's calls costs more than the work. */
#define FEW 2048

/* The larger or smaller of a small array and a scalar; AT_DECLINE for what is left to the ufunc. No floating-point
 * warning is lost: these two never warn. */
at_status pn_few_extremes(at_context *cx, const at_backend *be, int fn, at_array array,
                          const at_scalar *s, at_array *out)
{
    PyArrayObject *a = array_of(array);
    union {
        float f;
        double d;
    } element;
    int type = PyArray_TYPE(a);
    if (!PyArray_CheckExact(a) || PyArray_NDIM(a) > AT_MAX_NDIM || PyArray_SIZE(a) > FEW ||
        PyArray_ISBYTESWAPPED(a))
        return AT_DECLINE;
    if (type == NPY_FLOAT)
        element.f = (float)s->d;
    else if (type == NPY_DOUBLE)
        element.d = s->d;
    else
        return AT_DECLINE;
    view av, ov;
    open_view(&av, array);
    ati_host scalar = av.host;
    scalar.data = &element;
    memset(scalar.stride, 0, (size_t)scalar.ndim * sizeof *scalar.stride);
    PyArray_Descr *d = PyArray_DESCR(a);
    Py_INCREF(d);
    PyObject *y = PyArray_NewFromDescr(&PyArray_Type, d, PyArray_NDIM(a), PyArray_DIMS(a), NULL,
                                       NULL, 0, NULL);
    if (y == NULL) return pa_foreign(cx);
    *out = (at_array){y, be};
    open_view(&ov, *out);
    ati_k_binary(fn == FN_maximum ? ATI_MAXIMUM : ATI_MINIMUM, &av.host, &scalar, &ov.host);
    return AT_OK;
}
