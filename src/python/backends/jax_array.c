/* JAX arrays as the library sees them, and the constructors, which no jitted function can hold: they decide where
 * an array lies. */
#include "jax_state.h"

#include "core/dtype.h"

/* --- attributes ---------------------------------------------------------------------------------------------- */

bool pj_traced(const jax_state *st, PyObject *x)
{
    return PyType_IsSubtype(Py_TYPE(x), (PyTypeObject *)st->fn[FN_Tracer]);
}

/* A tracer of jax.jit reaches the operands that it was made of, its key too; what a frame keeps beside its equations is
 * replaced when the trace ends. Where this JAX has no such thing no other array is of the same trace. */
PyObject *pj_trace(const at_backend *be, PyObject *x, PyObject **pulse)
{
    if (!pj_traced(state_of(be), x)) return Py_NewRef(Py_None);
    PyObject *trace = PyObject_GetAttrString(x, "_trace");
    PyObject *frame = trace == NULL ? NULL : PyObject_GetAttrString(trace, "frame");
    if (frame != NULL) *pulse = PyObject_GetAttrString(frame, "constid_to_tracer");
    bool alone = trace == NULL || (frame != NULL && !pa_supports_weakrefs(*pulse));
    PyErr_Clear();
    Py_XDECREF(frame);
    if (!alone) return trace;
    Py_CLEAR(*pulse);
    Py_XDECREF(trace);
    return PyObject_CallNoArgs((PyObject *)&PyBaseObject_Type);
}

bool pj_tracked(at_context *cx, at_array a)
{
    (void)cx;
    return pj_traced(state_of(a.be), a.p);
}

at_status pj_read_dtype(at_context *cx, at_array a, at_dtype *out)
{
    const jax_state *st = state_of(a.be);
    PyObject *dtype = PyObject_GetAttr(a.p, CONSTANT(st, dtype));
    if (dtype == NULL) return pa_foreign(cx);
    *out = AT_OTHER;
    for (int t = AT_FLOAT64; t >= AT_BOOL && *out == AT_OTHER; t--)
        if (dtype == st->dtype[t]) *out = (at_dtype)t;
    if (*out == AT_OTHER) *out = pa_numpy_dtype(dtype); /* an equal dtype of another making */
    if (*out == AT_NODTYPE) *out = AT_OTHER;            /* random keys and the like */
    Py_DECREF(dtype);
    return AT_OK;
}

at_status pj_read_shape(at_context *cx, at_array a, at_shape *out)
{
    const jax_state *st = state_of(a.be);
    PyObject *shape = PyObject_GetAttr(a.p, CONSTANT(st, shape));
    if (shape == NULL) return pa_foreign(cx);
    at_status status = pa_read_shape(cx, &st->home->jax_symbol, shape, out);
    Py_DECREF(shape);
    return status;
}

/* Whether JAX has 64-bit types here and now. */
static bool is_wide(const jax_state *st)
{
    PyObject *as = PyObject_CallOneArg(st->fn[FN_canonicalize], st->dtype[AT_FLOAT64]);
    bool wide = as == st->dtype[AT_FLOAT64];
    Py_XDECREF(as);
    PyErr_Clear();
    return wide;
}

at_dtype pj_default_dtype(const at_backend *be, char kind)
{
    /* a formula goes on after a failure; the exception must stay */
    bool wide = !PyErr_Occurred() && is_wide(state_of(be));
    if (kind == 'f') return wide ? AT_FLOAT64 : AT_FLOAT32;
    return wide ? AT_INT64 : AT_INT32;
}

PyObject *pj_dtype(pa_frame *f, const jax_state *st, at_dtype t)
{
    if (t != AT_NODTYPE && t < AT_OTHER) return st->dtype[t];
    if (!f->failed) PyErr_SetString(PyExc_TypeError, "expected a bool, integer or floating dtype");
    return pa_keep(f, NULL);
}

/* --- scalars, NumPy arrays, sizes -------------------------------------------------------------------------------- */

/* Without 64-bit types JAX would cut an integer's upper half off: it stops at the ends of 32 bits instead, where an
 * id is out of range as before. */
static PyObject *narrowed(pa_frame *f, const jax_state *st, PyObject *host, at_dtype t)
{
    if ((t != AT_INT64 && t != AT_UINT64) || host == NULL || is_wide(st)) return host;
    PyObject *low = t == AT_INT64 ? pa_int(f, INT32_MIN) : CONSTANT(st, zero);
    PyObject *high = pa_int(f, t == AT_INT64 ? INT32_MAX : UINT32_MAX);
    PyObject *clip = pa_keep(f, PyObject_GetAttrString(host, "clip"));
    return pa_call(f, clip, low, high);
}

at_status pj_adopt(at_context *cx, const at_backend *be, at_array a, at_array like, at_array *out)
{
    (void)like; /* an uncommitted array follows the arrays beside it */
    const jax_state *st = state_of(be);
    pa_frame f;
    pa_open(&f);
    at_dtype t = AT_OTHER;
    a.be->dtype(cx, a, &t);
    PyObject *host = narrowed(&f, st, pa_keep(&f, pa_numpy_for_sharing(st->home, a.p)), t);
    return pa_finish(&f, cx, be, pa_call(&f, st->fn[FN_asarray], host), out);
}

/* A float for an integer dtype, cut; the caller has seen that it fits. */
static void cut(at_scalar *s)
{
    bool high = s->d >= 0x1p63;
    s->kind = AT_WEAK_INT;
    s->range = high ? AT_FITS_UINT64 : AT_FITS_INT64;
    s->i = high ? (int64_t)(uint64_t)s->d : (int64_t)s->d;
}

PyObject *pj_scalar(pa_frame *f, const at_backend *be, at_array scalar, at_dtype t)
{
    const jax_state *st = state_of(be);
    if (f->failed) return NULL;
    if (scalar.be != &at_weak) return pa_call(f, st->fn[FN_asarray], scalar.p, pj_dtype(f, st, t));
    const at_backend *numpy = &st->home->numpy;
    at_scalar s = *(const at_scalar *)scalar.p;
    at_context cx;
    at_array out = AT_NIL;
    at_context_init(&cx, numpy);
    if (s.kind == AT_WEAK_FLOAT && ati_is_integer(t)) cut(&s);
    scalar.p = &s;
    if (numpy->from_scalar(&cx, numpy, scalar, t, AT_NIL, &out) == AT_OK) return pa_keep(f, out.p);
    if (!PyErr_Occurred()) PyErr_SetString(PyExc_TypeError, at_message(&cx));
    return pa_keep(f, NULL);
}

at_status pj_from_scalar(at_context *cx, const at_backend *be, at_array scalar, at_dtype dtype,
                         at_array like, at_array *out)
{
    (void)like;
    pa_frame f;
    pa_open(&f);
    return pa_finish(&f, cx, be, pj_scalar(&f, be, scalar, dtype), out);
}

/* A concrete array is read; of a traced one JAX says why it cannot be a size. */
at_status pj_to_size(at_context *cx, at_array a, at_dim *out)
{
    PyObject *number = PyNumber_Index(a.p);
    if (number == NULL) return pa_foreign(cx);
    *out = AT_DIM(PyLong_AsLongLong(number));
    Py_DECREF(number);
    return PyErr_Occurred() ? pa_foreign(cx) : AT_OK;
}

/* A 0-d array is read, as it is where it is a size; a vector where its length cannot be told without. */
at_status pj_peek(at_context *cx, at_array a, bool needed, int64_t *sum, int64_t *least,
                  bool *known)
{
    const at_backend *numpy = &state_of(a.be)->home->numpy;
    at_shape shape;
    *known = false;
    if (pj_traced(state_of(a.be), a.p)) return AT_OK;
    if (pj_read_shape(cx, a, &shape) != AT_OK) return cx->status;
    if (shape.ndim > 0 && !needed) return AT_OK;
    PyObject *host = PyObject_CallMethod(a.p, "__array__", NULL);
    if (host == NULL) return pa_foreign(cx);
    at_status status = numpy->peek(cx, (at_array){host, numpy}, needed, sum, least, known);
    Py_DECREF(host);
    return status;
}

/* --- where an array lies ---------------------------------------------------------------------------------------------- */

/* Whether a sharding can hold a shape. */
static bool holds_shape(PyObject *sharding, PyObject *shape)
{
    PyObject *part = PyObject_CallMethod(sharding, "shard_shape", "(O)", shape);
    if (part == NULL) PyErr_Clear();
    Py_XDECREF(part);
    return part != NULL;
}

/* The sharding of an array like this one: its own where it holds the shape, else replicated on its mesh. None where the
 * array is traced, or may go anywhere. */
static PyObject *sharding_like(pa_frame *f, const jax_state *st, at_array like, PyObject *shape)
{
    if (f->failed || at_is_nil(like) || like.be->state != st || pj_traced(st, like.p))
        return Py_None;
    PyObject *committed = pa_keep(f, PyObject_GetAttr(like.p, CONSTANT(st, committed)));
    if (committed != Py_True) return Py_None;
    PyObject *sharding = pa_keep(f, PyObject_GetAttr(like.p, CONSTANT(st, sharding)));
    if (sharding == NULL || holds_shape(sharding, shape)) return sharding;
    PyObject *mesh = PyObject_GetAttr(sharding, CONSTANT(st, mesh));
    if (mesh == NULL && PyErr_ExceptionMatches(PyExc_AttributeError)) { /* of pmap, in older JAX */
        PyErr_Clear();
        return Py_None;
    }
    pa_keep(f, mesh);
    return pa_call(f, st->fn[FN_NamedSharding], mesh,
                   pa_call(f, st->fn[FN_PartitionSpec], CONSTANT(st, empty)));
}

at_status pj_full(at_context *cx, const at_backend *be, const at_shape *shape, at_array fill_value,
                  at_dtype dtype, at_array like, at_array *out)
{
    const jax_state *st = state_of(be);
    pa_frame f;
    pa_open(&f);
    PyObject *sizes = pa_shape(&f, shape), *y;
    PyObject *sharding = sharding_like(&f, st, like, sizes);
    if (fill_value.be != be) {
        y = pa_call_named(&f, st->fn[FN_full], CONSTANT(st, named_sharding), sizes,
                          pj_scalar(&f, be, fill_value, dtype), pj_dtype(&f, st, dtype), sharding);
        return pa_finish(&f, cx, be, y, out);
    }
    PyObject *value = pa_call(&f, st->fn[FN_cast], fill_value.p, pj_dtype(&f, st, dtype));
    y = pa_call(&f, st->fn[FN_broadcast_to], value, sizes);
    if (sharding != Py_None) y = pa_call(&f, st->fn[FN_device_put], y, sharding);
    return pa_finish(&f, cx, be, y, out);
}

/* A bound of a range as JAX takes it: an array that holds a value is read, as JAX would. */
static PyObject *bound(pa_frame *f, const at_backend *be, at_array value)
{
    if (value.be != be) return pa_number(f, value);
    if (f->failed || pj_traced(state_of(be), value.p)) return value.p;
    return pa_keep(f, PyObject_CallMethod(value.p, "item", NULL));
}

at_status pj_arange(at_context *cx, const at_backend *be, at_array start, at_array stop,
                    at_array step, at_dtype dtype, at_array like, const void *device, at_array *out)
{
    const jax_state *st = state_of(be);
    pa_frame f;
    pa_open(&f);
    PyObject *where = device == NULL ? Py_None : (PyObject *)device;
    PyObject *from = bound(&f, be, start), *to = bound(&f, be, stop);
    PyObject *by = pa_step(&f, bound(&f, be, step));
    PyObject *y = pa_call_named(&f, st->fn[FN_arange], CONSTANT(st, named_dtype_device), from, to,
                                by, pj_dtype(&f, st, dtype), where);
    if (device == NULL && y != NULL) { /* the length decides whether like's sharding holds it */
        PyObject *length = pa_keep(&f, PyObject_GetAttr(y, CONSTANT(st, shape)));
        where = length == NULL ? NULL : sharding_like(&f, st, like, length);
        if (where != Py_None) y = pa_call(&f, st->fn[FN_device_put], y, where);
    }
    return pa_finish(&f, cx, be, y, out);
}

/* The length depends on the counts: JAX reads them, or says that it cannot. */
at_status pj_repeat_each(at_context *cx, const at_backend *be, at_array x, at_array repeats,
                         int axis, at_array *out)
{
    const jax_state *st = state_of(be);
    pa_frame f;
    pa_open(&f);
    PyObject *counts = repeats.be == be ? repeats.p : pa_number(&f, repeats);
    PyObject *on = axis == AT_NO_AXIS ? Py_None : pa_int(&f, axis);
    PyObject *y = pa_call_named(&f, st->fn[FN_repeat], CONSTANT(st, named_axis), x.p, counts, on);
    return pa_finish(&f, cx, be, y, out);
}
