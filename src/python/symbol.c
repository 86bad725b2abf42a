/* The backends of what frameworks trace in place of numbers: torch's SymInt, SymFloat and SymBool, JAX's dimension
 * expressions, and the 0-d tensors that stand for sizes under torch.jit.trace and in TensorFlow's graphs.
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

static int holds(const at_backend *be, PyObject *condition)
{
    const pa_framework *fw = be->state;
    PyObject *module = pa_loaded(fw->module);
    bool asks = module != NULL && fw->holds != NULL;
    return asks ? fw->holds(module, condition) : PyObject_IsTrue(condition);
}

static at_status equal(at_context *cx, const at_backend *be, at_dim a, at_dim b, bool *out)
{
    pa_frame f;
    pa_open(&f);
    PyObject *x = pa_size(&f, a), *y = pa_size(&f, b);
    PyObject *same = f.failed ? NULL : pa_keep(&f, PyObject_RichCompare(x, y, Py_EQ));
    int truth = same == NULL ? -1 : PyBool_Check(same) ? same == Py_True : holds(be, same);
    *out = truth == 1;
    if (truth < 0) f.failed = true;
    at_array none = AT_NIL;
    at_status status = pa_finish(&f, cx, be, same, &none);
    at_release(none);
    return status;
}

void pa_symbol_make(at_backend *be, const pa_framework *fw)
{
    *be = (at_backend){.name = fw->module,
                       .traits = AT_WEAK,
                       .state = (void *)fw,
                       .retain = retain,
                       .release = release,
                       .dtype = kind_of,
                       .dim_plus = plus,
                       .dim_equal = equal};
}
