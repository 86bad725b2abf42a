/* Composites that torch has in one call of its own. */
#include "torch_state.h"

#include "core/dtype.h"

static at_dtype dtype_of(at_array x)
{
    PyObject *dtype = pt_get(state_of(x.be), x.p, GET_dtype);
    at_dtype t = dtype == NULL ? AT_OTHER : pt_find_dtype(state_of(x.be), dtype);
    Py_XDECREF(dtype);
    PyErr_Clear();
    return t;
}

/* --- bounds and values that are numbers -----------------------------------------------------------------------
 *
 * torch's derivatives are not ours: its clamp does not share them at a bound, its nan_to_num stops them at infinities.
 * So these are taken only where no derivative will be. */

static bool is_number(at_array a) { return at_is_nil(a) || a.be == &at_weak; }

/* A tensor and numbers, of which no derivative will be taken. */
static bool is_direct(at_context *cx, const at_backend *be, at_array x, at_array a, at_array b)
{
    return x.be == be && is_number(a) && is_number(b) && !(cx->flags & AT_GENERIC) &&
           !pt_tracked(cx, x);
}

static PyObject *number_or_none(pa_frame *f, at_array a, at_dtype t)
{
    return at_is_nil(a) ? Py_None : pa_number_as(f, a, t);
}

at_status pt_clip(at_context *cx, const at_backend *be, at_array x, at_array min, at_array max,
                  at_array *out)
{
    if (at_is_nil(min) && at_is_nil(max)) return AT_DECLINE;
    if (!is_direct(cx, be, x, min, max)) return AT_DECLINE;
    at_dtype t = dtype_of(x);
    if (!ati_is_float(t) && t != AT_INT32 && t != AT_INT64) return AT_DECLINE;
    pa_frame f;
    pa_open(&f);
    PyObject *low = number_or_none(&f, min, t), *high = number_or_none(&f, max, t);
    return pa_finish(&f, cx, be, pa_call(&f, FN(be, clamp), x.p, low, high), out);
}

at_status pt_fill_nan(at_context *cx, const at_backend *be, at_array x, at_array value,
                      at_array *out)
{
    if (!is_direct(cx, be, x, value, AT_NIL)) return AT_DECLINE;
    at_dtype t = dtype_of(x);
    if (!ati_is_float(t)) return AT_DECLINE;
    torch_state *st = state_of(be);
    pa_frame f;
    pa_open(&f);
    PyObject *number = pa_number_as(&f, value, t);
    return pa_finish(
        &f, cx, be,
        pa_call(&f, st->fn[FN_nan_to_num], x.p, number, CONSTANT(st, inf), CONSTANT(st, minus_inf)),
        out);
}

at_status pt_nan_to_num(at_context *cx, const at_backend *be, at_array x, at_array nan,
                        at_array posinf, at_array neginf, at_array *out)
{
    if (!is_direct(cx, be, x, posinf, neginf) || !is_number(nan)) return AT_DECLINE;
    at_dtype t = dtype_of(x);
    if (!ati_is_float(t)) return AT_DECLINE;
    pa_frame f;
    pa_open(&f);
    PyObject *gap = pa_number_as(&f, nan, t), *top = number_or_none(&f, posinf, t);
    PyObject *bottom = number_or_none(&f, neginf, t);
    return pa_finish(&f, cx, be, pa_call(&f, FN(be, nan_to_num), x.p, gap, top, bottom), out);
}

/* --- without a derivative, or with one that is the same --------------------------------------------------------- */

/* Whether torch fills a dtype with this number as we do: it wraps integers that do not fit, where the formula refuses
 * them. */
static bool fills(at_dtype t, at_array value)
{
    if (value.be != &at_weak || t >= AT_OTHER || t == AT_BOOL) return false;
    const at_scalar *s = value.p;
    return !ati_is_integer(t) || (s->kind == AT_WEAK_INT && ati_int_fits(t, s));
}

at_status pt_full_like(at_context *cx, const at_backend *be, at_array x, at_array fill_value,
                       at_dtype dtype, at_array *out)
{
    if (x.be != be) return AT_DECLINE; /* a number beside a tensor that fills it */
    at_dtype t = dtype == AT_NODTYPE ? dtype_of(x) : dtype;
    torch_state *st = state_of(be);
    if (!fills(t, fill_value) || st->dtype[t] == NULL) return AT_DECLINE;
    pa_frame f;
    pa_open(&f);
    PyObject *number = pa_number_as(&f, fill_value, t);
    return pa_finish(&f, cx, be,
                     pa_call_named(&f, st->fn[FN_full_like], CONSTANT(st, named_dtype), x.p, number,
                                   st->dtype[t]),
                     out);
}

at_status pt_stack(at_context *cx, const at_backend *be, at_list arrays, int axis, at_array *out)
{
    pa_frame f;
    pa_open(&f);
    PyObject *list = pa_keep(&f, PyList_New(arrays.count));
    for (int i = 0; list != NULL && i < arrays.count; i++)
        PyList_SET_ITEM(list, i, Py_NewRef(arrays.array[i].p));
    return pa_finish(&f, cx, be, pa_call(&f, FN(be, stack), list, pa_int(&f, axis)), out);
}
