/* The backend of what a framework traces in place of numbers: torch's SymInt, SymFloat, SymBool, and the 0-d
 * tensors that stand for sizes under torch.jit.trace.
 *
 * They are scalars (weak) and sizes, never arrays: no ops. Arithmetic goes through Python's own operators. A
 * comparison that only run time can decide counts as true: the framework checks it there. */
#include "edge.h"

static void retain(void *p) { Py_INCREF((PyObject *)p); }

static void release(void *p) { Py_DECREF((PyObject *)p); }

static at_status kind_of(at_context *cx, at_array a, at_dtype *out)
{
    (void)cx;
    const char *name = Py_TYPE((PyObject *)a.p)->tp_name;
    *out = strcmp(name, "SymFloat") == 0  ? AT_FLOAT64
           : strcmp(name, "SymBool") == 0 ? AT_BOOL
                                          : AT_INT64;
    return AT_OK;
}

static at_status plus(at_context *cx, at_array sym, int64_t k, at_array *out)
{
    pa_frame f;
    pa_open(&f);
    PyObject *other = pa_int(&f, k);
    PyObject *sum = other == NULL ? NULL : pa_keep(&f, PyNumber_Add(sym.p, other));
    return pa_finish(&f, cx, sym.be, sum, out);
}

/* Whether a SymBool may be taken as true: torch is asked not to insist on a value. Under torch.jit.trace sizes
 * are tensors with values; is_nonzero reads one without a warning. */
static int holds(PyObject *condition)
{
    bool symbol = strcmp(Py_TYPE(condition)->tp_name, "SymBool") == 0;
    PyObject *module = pa_loaded(symbol ? "torch.fx.experimental.symbolic_shapes" : "torch");
    PyObject *ask = module == NULL
                        ? NULL
                        : PyObject_GetAttrString(module, symbol ? "guard_or_true" : "is_nonzero");
    if (ask == NULL) {
        PyErr_Clear();
        return PyObject_IsTrue(condition);
    }
    PyObject *answer = PyObject_CallOneArg(ask, condition);
    Py_DECREF(ask);
    int truth = answer == NULL ? -1 : PyObject_IsTrue(answer);
    Py_XDECREF(answer);
    return truth;
}

static at_status equal(at_context *cx, const at_backend *be, at_dim a, at_dim b, bool *out)
{
    (void)be;
    pa_frame f;
    pa_open(&f);
    PyObject *x = pa_size(&f, a), *y = pa_size(&f, b);
    PyObject *same = f.failed ? NULL : pa_keep(&f, PyObject_RichCompare(x, y, Py_EQ));
    int truth = same == NULL ? -1 : PyBool_Check(same) ? same == Py_True : holds(same);
    *out = truth == 1;
    if (truth < 0) f.failed = true;
    at_array none = AT_NIL;
    at_status status = pa_finish(&f, cx, be, same, &none);
    at_release(none);
    return status;
}

void pa_symbol_make(at_backend *be)
{
    *be = (at_backend){.name = "symbol",
                       .traits = AT_WEAK,
                       .retain = retain,
                       .release = release,
                       .dtype = kind_of,
                       .dim_plus = plus,
                       .dim_equal = equal};
}
