/* The adapter of native arrays: handles are anytensor.native.Array objects.
 *
 * Each slot is the native backend's own, called on the arrays inside; stamped from the op table, so that a new op needs
 * nothing here. Towards other frameworks native arrays are one more of them: NumPy arrays join, sharing their memory, and
 * results are native. (The native backend itself calls its arrays joining ones; in Python that would hand other adapters
 * objects that are no ndarrays.) */
#define PN_USES_NUMPY_API
#include "numpy_state.h"

#include "native_array_type.h"

/* Calls on this many elements let other threads run. */
enum { MANY = 20000 };

/* --- handles in and out ------------------------------------------------------------------------------- */

/* The Arrays among the operands of a call. */
typedef struct taken {
    int64_t work; /* their elements */
    int count;
    PyObject *array[3]; /* the first ones; no slot that may hand an operand back has more */
} taken;

/* The native array of an operand; scalars and nil stay. */
static at_array inner(const at_backend *be, at_array a, taken *t)
{
    if (a.be != be) return a;
    t->work += ati_k_count(view_of(pa_native_of(a.p)));
    if (t->count < 3) t->array[t->count++] = a.p;
    return pa_native_of(a.p);
}

/* The end of a slot: what the native one has made becomes an Array; where it is an operand's own, that operand. */
static at_status give(at_context *cx, const at_backend *be, const taken *t, at_status status,
                      at_array made, at_array *out)
{
    PyObject *array = NULL;
    if (status != AT_OK) return status;
    for (int i = 0; i < t->count && array == NULL; i++)
        if (pa_native_of(t->array[i]).p == made.p) array = Py_NewRef(t->array[i]);
    if (array != NULL)
        at_release(made);
    else
        array = pa_native_new(be->state, made);
    if (array == NULL) return pa_foreign(cx);
    *out = (at_array){array, be};
    return AT_OK;
}

static const taken nothing;

#define WITHOUT_GIL(work, ...)                                                                     \
    do {                                                                                           \
        PyThreadState *others = (work) < MANY ? NULL : PyEval_SaveThread();                        \
        __VA_ARGS__;                                                                               \
        if (others != NULL) PyEval_RestoreThread(others);                                          \
    } while (0)

/* --- the ops ------------------------------------------------------------------------------------------ */

#define TAKE_DATA(name) name = inner(be, name, &t);
#define TAKE_MAYBE(name) TAKE_DATA(name)
#define TAKE_INDEX(name) TAKE_DATA(name)
#define TAKE_MASK(name) TAKE_DATA(name)
#define TAKE_VALUE(name) TAKE_DATA(name)
#define TAKE_BOUND(name) TAKE_DATA(name)
#define TAKE_LIKE(name) TAKE_DATA(name)
#define TAKE_SIZE(name)
#define TAKE_MAYBE_SIZE(name)
#define TAKE_SHAPE(name)
#define TAKE_CUTS(name)
#define TAKE_AXES(name)
#define TAKE_AXIS(name)
#define TAKE_FLAG(name)
#define TAKE_DTYPE(name)
#define TAKE_DEVICE(name)
#define TAKE(name, role, text, how) TAKE_##role(name)

#define JOIN(...) /* below: their operands are a list */
#define STACK(...)
#define OP(kind, op, ...)                                                                          \
    static at_status native_##op(at_context *cx, const at_backend *be ATI_SIG_##kind(ATI_PARAM),   \
                                 at_array *out)                                                    \
    {                                                                                              \
        const at_backend *native = at_native();                                                    \
        at_array made = AT_NIL;                                                                    \
        taken t = {0};                                                                             \
        at_status status = AT_DECLINE; /* of a composite that native leaves to its formula */      \
        ATI_SIG_##kind(TAKE);                                                                      \
        if (native->op != NULL)                                                                    \
            WITHOUT_GIL(t.work, status = native->op(cx, native ATI_SIG_##kind(ATI_ARG), &made));   \
        return give(cx, be, &t, status, made, out);                                                \
    }
#include "anytensor/ops.def"

typedef at_status joining(at_context *cx, const at_backend *be, at_list arrays, int axis,
                          at_array *out);

static at_status join(at_context *cx, const at_backend *be, joining *by, at_list arrays, int axis,
                      at_array *out)
{
    if (by == NULL) return AT_DECLINE;
    const at_backend *native = at_native();
    at_array made = AT_NIL;
    taken t = {0};
    at_status status;
    at_array *copy = PyMem_Calloc((size_t)arrays.count + 1, sizeof *copy);
    if (copy == NULL) return at_error(cx, AT_ENOMEM, "no memory for a list of arrays");
    for (int i = 0; i < arrays.count; i++) copy[i] = inner(be, arrays.array[i], &t);
    at_list inners = {arrays.count, copy};
    WITHOUT_GIL(t.work, status = by(cx, native, inners, axis, &made));
    PyMem_Free(copy);
    return give(cx, be, &t, status, made, out);
}

#define STACK(name, ...) JOIN(name)
#define JOIN(name, ...)                                                                            \
    static at_status native_##name(at_context *cx, const at_backend *be, at_list arrays, int axis, \
                                   at_array *out)                                                  \
    {                                                                                              \
        return join(cx, be, at_native()->name, arrays, axis, out);                                 \
    }
#include "anytensor/ops.def"

/* --- queries and conversions ---------------------------------------------------------------------------- */

static void retain(void *p) { Py_INCREF((PyObject *)p); }

static void release(void *p) { Py_DECREF((PyObject *)p); }

static at_status dtype_of(at_context *cx, at_array a, at_dtype *out)
{
    return at_native()->dtype(cx, pa_native_of(a.p), out);
}

static at_status shape_of(at_context *cx, at_array a, at_shape *out)
{
    return at_native()->shape(cx, pa_native_of(a.p), out);
}

static at_status to_size(at_context *cx, at_array a, at_dim *out)
{
    return at_native()->to_size(cx, pa_native_of(a.p), out);
}

static at_status peek(at_context *cx, at_array a, bool needed, int64_t *sum, int64_t *least,
                      bool *known)
{
    return at_native()->peek(cx, pa_native_of(a.p), needed, sum, least, known);
}

static at_status from_scalar(at_context *cx, const at_backend *be, at_array scalar, at_dtype dtype,
                             at_array like, at_array *out)
{
    (void)like;
    if (scalar.be != &at_weak)
        return at_error(cx, AT_EUNSUPPORTED, "native arrays cannot be made from symbols of %s",
                        scalar.be->name);
    at_array made = AT_NIL;
    at_status status = at_native()->from_scalar(cx, at_native(), scalar, dtype, AT_NIL, &made);
    return give(cx, be, &nothing, status, made, out);
}

/* --- NumPy arrays join ---------------------------------------------------------------------------------- */

/* The end of memory that an ndarray owns, on any thread. */
static void let_go(void *array)
{
    if (!Py_IsInitialized()) return; /* nobody is left who could use it */
    PyGILState_STATE gil = PyGILState_Ensure();
    Py_DECREF((PyObject *)array);
    PyGILState_Release(gil);
}

/* A native array over the memory of an ndarray in the machine's byte order, which it keeps alive; nil with the error recorded. */
static at_array over(at_context *cx, PyArrayObject *array)
{
    int64_t sizes[AT_MAX_NDIM], strides[AT_MAX_NDIM];
    int ndim = PyArray_NDIM(array);
    at_dtype dtype = pn_dtype_of(PyArray_DESCR(array));
    if (ndim > AT_MAX_NDIM)
        at_error(cx, AT_ESHAPE, "expected rank <= %d, found %d", AT_MAX_NDIM, ndim);
    else if (dtype == AT_OTHER)
        at_error(cx, AT_EDTYPE, "native arrays have no element type for NumPy's %s",
                 PyArray_DESCR(array)->typeobj->tp_name);
    if (cx->status != AT_OK) return AT_NIL;
    for (int k = 0; k < ndim; k++) {
        sizes[k] = PyArray_DIM(array, k);
        strides[k] = PyArray_STRIDE(array, k);
    }
    at_frame root, *f = at_open(&root, cx);
    at_array a = at_native_wrap(f, dtype, ndim, sizes, strides, PyArray_DATA(array), let_go, array);
    if (!at_is_nil(a)) {
        Py_INCREF(array);
        if (!PyArray_ISWRITEABLE(array)) at_native_set_read_only(a);
        a = at_detach(f, a);
    }
    at_close(f);
    return a;
}

static at_status adopt(at_context *cx, const at_backend *be, at_array a, at_array like,
                       at_array *out)
{
    (void)like;
    const pa_state *st = be->state;
    if (a.be != &st->numpy)
        return at_error(cx, AT_EUNSUPPORTED, "native arrays cannot be made from arrays of %s",
                        a.be->name);
    PyObject *array = pa_numpy_for_sharing(st, a.p);
    if (array == NULL) return pa_foreign(cx);
    at_array made = over(cx, (PyArrayObject *)array);
    Py_DECREF(array);
    return give(cx, be, &nothing, cx->status, made, out);
}

/* --- the table ------------------------------------------------------------------------------------------ */

int pa_native_make(pa_state *st)
{
    st->native_type = pa_native_type(st->module);
    if (st->native_type == NULL) return -1;
    st->native = (at_backend){
        .name = "native",
        .traits = at_native()->traits & ~(unsigned)AT_JOINS,
        .state = st,
        .retain = retain,
        .release = release,
        .dtype = dtype_of,
        .shape = shape_of,
        .default_dtype = at_native()->default_dtype,
        .adopt = adopt,
        .from_scalar = from_scalar,
        .to_size = to_size,
        .peek = peek,
#define OP(kind, op, ...) .op = native_##op,
#include "anytensor/ops.def"
    };
    return PyModule_AddObjectRef(st->module, "_NativeArray", (PyObject *)st->native_type);
}
