/* Which calls go to the library's own kernels inside torch, and which to the formula.
 *
 * Three ways, chosen in one function (way_of). The bare operator (torch_ops.c) has no derivative and no rule for any transform:
 * it takes plain tensors in host memory while nothing watches torch. Where backward() would go through the rows, the same
 * call is an autograd.Function (python/anytensor/_torch_kernels.py). Everything else is the formula, of torch's own
 * functions: what traces, exports or transforms must see those. */
#include "torch_state.h"

#include "core/dtype.h"

typedef enum way { BY_FORMULA, BY_OPERATOR, BY_DERIVATIVE } way;

/* A tensor whose memory a kernel can read where it stands. */
static bool is_readable(const torch_state *st, PyObject *x)
{
    if (!pt_is_host(st, x)) return false;
    PyObject *layout = pt_get(st, x, GET_layout);
    bool strided = layout == st->fn[FN_strided];
    Py_XDECREF(layout);
    PyErr_Clear();
    return strided;
}

static way way_of(const torch_state *st, PyObject *x, PyObject *ids)
{
    if (st->bare[0] == NULL || !is_readable(st, x) || !is_readable(st, ids) ||
        !pt_is_unwatched(st) || pt_forward_ad(st))
        return BY_FORMULA;
    return pt_wants_gradient(st, x) ? BY_DERIVATIVE : BY_OPERATOR;
}

at_status pt_segment(at_context *cx, const at_backend *be, int kernel, at_array x, at_array ids,
                     at_dim n, at_array *out)
{
    const torch_state *st = state_of(be);
    if ((cx->flags & AT_GENERIC) || !at_is_nil(n.sym)) return AT_DECLINE;
    way chosen = way_of(st, x.p, ids.p);
    if (chosen == BY_FORMULA) return AT_DECLINE;
    PyObject *call = chosen == BY_OPERATOR ? st->bare[kernel] : st->derived[kernel];
    PyObject *count = PyLong_FromLongLong(n.n), *args[] = {x.p, ids.p, count};
    PyObject *y = count == NULL ? NULL : PyObject_Vectorcall(call, args, 3, NULL);
    Py_XDECREF(count);
    if (y == NULL) return pa_foreign(cx);
    *out = (at_array){y, be};
    return AT_OK;
}

static at_dtype dtype_of(at_array x)
{
    PyObject *dtype = pt_get(state_of(x.be), x.p, GET_dtype);
    at_dtype t = dtype == NULL ? AT_OTHER : pt_find_dtype(state_of(x.be), dtype);
    Py_XDECREF(dtype);
    PyErr_Clear();
    return t;
}

/* bool is counted: the formula casts it. A dtype that is not ours is refused there. */
at_status pt_segment_sum(at_context *cx, const at_backend *be, at_array x, at_array segment_ids,
                         at_dim num_segments, bool sorted, at_array *out)
{
    (void)sorted;
    at_dtype t = dtype_of(x);
    if (t == AT_BOOL || t == AT_OTHER) return AT_DECLINE;
    return pt_segment(cx, be, KERNEL_segment_sum, x, segment_ids, num_segments, out);
}

at_status pt_segment_min(at_context *cx, const at_backend *be, at_array x, at_array segment_ids,
                         at_dim num_segments, bool sorted, at_array *out)
{
    (void)sorted;
    if (dtype_of(x) == AT_OTHER) return AT_DECLINE;
    return pt_segment(cx, be, KERNEL_segment_min, x, segment_ids, num_segments, out);
}

at_status pt_segment_max(at_context *cx, const at_backend *be, at_array x, at_array segment_ids,
                         at_dim num_segments, bool sorted, at_array *out)
{
    (void)sorted;
    if (dtype_of(x) == AT_OTHER) return AT_DECLINE;
    return pt_segment(cx, be, KERNEL_segment_max, x, segment_ids, num_segments, out);
}

static PyObject *cast(pa_frame *f, const torch_state *st, PyObject *x, at_dtype t)
{
    return pa_call_named(f, st->fn[FN_to], CONSTANT(st, named_dtype), x, st->dtype[t]);
}

/* Half types with a derivative go through float32, as in the formula: the derivative is made of what the softmax gave. */
static at_status half_softmax(at_context *cx, const at_backend *be, at_array x, at_dtype t,
                              at_array ids, at_dim n, at_array *out)
{
    const torch_state *st = state_of(be);
    pa_frame f;
    pa_open(&f);
    at_array wide = {cast(&f, st, x.p, AT_FLOAT32), be}, y = AT_NIL;
    at_status status =
        f.failed ? pa_foreign(cx) : pt_segment(cx, be, KERNEL_segment_softmax, wide, ids, n, &y);
    if (status != AT_OK) {
        pa_close(&f);
        return status;
    }
    return pa_finish(&f, cx, be, cast(&f, st, pa_keep(&f, y.p), t), out);
}

at_status pt_segment_softmax(at_context *cx, const at_backend *be, at_array logits,
                             at_array segment_ids, at_dim num_segments, bool sorted, at_array *out)
{
    (void)sorted;
    at_dtype t = dtype_of(logits);
    if (!ati_is_float(t)) return AT_DECLINE;
    if (ati_is_half(t) && way_of(state_of(be), logits.p, segment_ids.p) == BY_DERIVATIVE)
        return half_softmax(cx, be, logits, t, segment_ids, num_segments, out);
    return pt_segment(cx, be, KERNEL_segment_softmax, logits, segment_ids, num_segments, out);
}

/* --- finding them --------------------------------------------------------------------------------------------- */

/* Whether another build of this extension has registered the same names in this process: then the formula serves. */
static bool is_taken(PyObject *torch)
{
    PyObject *ask = pa_resolve(torch, "_C._dispatch_has_kernel");
    PyObject *answer =
        ask == NULL ? NULL : PyObject_CallFunction(ask, "s", "anytensor::segment_sum");
    bool taken = answer == Py_True;
    Py_XDECREF(ask);
    Py_XDECREF(answer);
    PyErr_Clear();
    return taken;
}

int pt_kernels_find(torch_state *st, PyObject *torch)
{
    static const char *const bare[] = {
#define X(name) "bare." #name,
        KERNELS(X)
#undef X
    };
    static const char *const derived[] = {
#define X(name) "derived." #name,
        KERNELS(X)
#undef X
    };
    static bool ours;
    if (!ours && is_taken(torch)) return 0;
    ours = pt_ops_register();
    if (!ours) return 0;
    PyObject *module = PyImport_ImportModule("anytensor._torch_kernels");
    if (module == NULL) return -1;
    int status = pa_resolve_all(module, bare, KERNEL_COUNT, st->bare);
    if (status == 0) status = pa_resolve_all(module, derived, KERNEL_COUNT, st->derived);
    Py_DECREF(module);
    return status;
}

/* --- for the package ---------------------------------------------------------------------------------------------- */

PyObject *pt_py_kernels(PyObject *module, PyObject *none)
{
    (void)none;
    const torch_state *st = pa_state_of(module)->torch.state;
    if (st == NULL || st->bare[0] == NULL) Py_RETURN_NONE;
    return PyLong_FromLongLong(pt_ops_runs());
}

PyObject *pt_py_way(PyObject *module, PyObject *const *args, Py_ssize_t nargs)
{
    const torch_state *st = pa_state_of(module)->torch.state;
    if (nargs == 2 && st != NULL) return PyLong_FromLong(way_of(st, args[0], args[1]));
    PyErr_SetString(PyExc_TypeError, "_torch_way(x, ids): two tensors of a torch that is awake");
    return NULL;
}
