/* Eager calls of the ops that this library has added to TensorFlow (tensorflow_ops.c), and the choice when to make them.
 *
 * They are called as TensorFlow calls its own ops eagerly, so that tapes and forward accumulators see them; the
 * derivatives are rules in anytensor/_tensorflow.py. Graphs (tf.function, XLA, exports, vectorized_map) hold
 * none of them: there the formulas and TensorFlow's own ops serve, as they do where anything is missing that
 * stands below under a private name. */
#include "core/dtype.h"
#include "tensorflow_state.h"

/* --- what eager tensors say of themselves --- */

static PyObject *ask(PyObject *method, PyObject *x)
{
    PyObject *args[] = {NULL, x};
    return PyObject_Vectorcall(method, args + 1, 1 | PY_VECTORCALL_ARGUMENTS_OFFSET, NULL);
}

at_dtype pf_eager_dtype(const tensorflow_state *st, PyObject *x)
{
    PyObject *number = ask(st->eager.dtype_number, x);
    if (number == NULL) return AT_NODTYPE;
    at_dtype t = pf_dtype_numbered(PyLong_AsLong(number));
    Py_DECREF(number);
    return PyErr_Occurred() ? AT_NODTYPE : t;
}

PyObject *pf_eager_sizes(const tensorflow_state *st, PyObject *x)
{
    return ask(st->eager.sizes, x);
}

/* --- the choice --- */

/* Whether a device, as TensorFlow writes it, is a CPU; "" is none in particular. */
static bool names_cpu(PyObject *device)
{
    const char *name = device != NULL && PyUnicode_Check(device) ? PyUnicode_AsUTF8(device) : NULL;
    bool yes = device == Py_None ||
               (name != NULL && (strstr(name, "CPU:") != NULL || strchr(name, ':') == NULL));
    Py_XDECREF(device);
    PyErr_Clear();
    return yes;
}

bool pf_is_on_cpu(const tensorflow_state *st, PyObject *x)
{
    return pf_is_eager(st, x) && names_cpu(PyObject_GetAttr(x, st->attribute[GET_device]));
}

/* TensorFlow makes tensors of numbers by itself, of the dtype that the op asks for. */
static bool is_number(PyObject *x) { return PyLong_Check(x) || PyFloat_Check(x); }

/* Memory that a kernel of ours may read: an eager tensor of a known dtype on a CPU. */
static bool is_ours(const tensorflow_state *st, PyObject *x)
{
    if (is_number(x)) return true;
    if (!pf_is_eager(st, x)) return false;
    at_dtype t = pf_eager_dtype(st, x);
    if (t == AT_NODTYPE) PyErr_Clear();
    return t != AT_NODTYPE && t != AT_OTHER &&
           names_cpu(PyObject_GetAttr(x, st->attribute[GET_device]));
}

/* The context, borrowed, if what runs now runs on a CPU. */
static PyObject *context_of(pa_frame *f, tensorflow_state *st)
{
    PyObject *context = PyObject_GetAttr(st->eager.context, st->eager.current);
    if (context == NULL) PyErr_Clear();
    if (context == NULL || context == Py_None) {
        Py_XDECREF(context);
        return NULL;
    }
    pa_keep(f, context);
    bool cpu = !pf_several_devices(st) ||
               names_cpu(PyObject_GetAttr(context, st->attribute[GET_device_name]));
    return cpu ? context : NULL;
}

/* A call that has failed: whether the failure is to be told. */
static bool is_failure(const pf_eager *e)
{
    if (PyErr_ExceptionMatches(e->fallback)) {
        PyErr_Clear();
        return false;
    }
    if (!PyErr_ExceptionMatches(e->not_ok)) return true;
    PyObject *type, *error, *trace;
    PyErr_Fetch(&type, &error, &trace);
    PyErr_NormalizeException(&type, &error, &trace);
    Py_XDECREF(PyObject_CallFunctionObjArgs(e->raise, error, Py_None, NULL));
    Py_XDECREF(type);
    Py_XDECREF(error);
    Py_XDECREF(trace);
    if (!PyErr_Occurred()) PyErr_SetString(PyExc_RuntimeError, "TensorFlow has failed");
    return true;
}

enum { HEAD = 3 }; /* context, name of the op, name of the call; then the operands */

bool pf_own(pa_frame *f, at_context *cx, const at_backend *be, pf_op op, PyObject *const *operands,
            int count, const at_dim *n, PyObject **result)
{
    tensorflow_state *st = state_of(be);
    PyObject *args[1 + HEAD + PF_MOST_OPERANDS];
    *result = NULL;
    if (f->failed || st->eager.execute == NULL || !pf_runs_now(be)) return false;
    if ((cx != NULL && (cx->flags & AT_GENERIC)) || (n != NULL && !at_is_nil(n->sym))) return false;
    for (int i = 0; i < count; i++) {
        PyObject *x = args[1 + HEAD + i] =
            is_number(operands[i]) ? operands[i] : pf_tensor(f, be, operands[i]);
        if (x == NULL || !is_ours(st, x)) return false;
    }
    if (n != NULL) {
        args[1 + HEAD + count++] = pa_int(f, n->n / PF_RADIX);
        args[1 + HEAD + count++] = pa_int(f, n->n % PF_RADIX);
    }
    if (f->failed) return false;
    if ((args[1] = context_of(f, st)) == NULL) return false;
    args[2] = st->eager.op[op];
    args[3] = Py_None;
    size_t nargs = (size_t)(HEAD + count) | PY_VECTORCALL_ARGUMENTS_OFFSET;
    PyObject *y = PyObject_Vectorcall(st->eager.execute, args + 1, nargs, NULL);
    if (y == NULL && !is_failure(&st->eager)) return false;
    *result = pa_keep(f, y);
    return true;
}

/* --- for the rules of derivatives --- */

/* run(op, *operands): the result of one of our ops, or None where they are not to be used. */
static PyObject *run(PyObject *module, PyObject *const *args, Py_ssize_t nargs)
{
    const at_backend *be = &pa_state_of(module)->tensorflow;
    const char *name = nargs < 2 || nargs > 1 + PF_MOST_OPERANDS ? NULL : PyUnicode_AsUTF8(args[0]);
    if (name == NULL || be->state == NULL) Py_RETURN_NONE;
    int op = 0;
    while (op < PF_OP_COUNT && strcmp(name, pf_op_name((pf_op)op)) != 0) op++;
    if (op == PF_OP_COUNT) return PyErr_Format(PyExc_ValueError, "no op is called %s", name);
    pa_frame f;
    PyObject *y;
    pa_open(&f);
    if (pf_own(&f, NULL, be, (pf_op)op, args + 1, (int)nargs - 1, NULL, &y) || f.failed)
        return pa_take(&f, y);
    pa_close(&f);
    Py_RETURN_NONE;
}

static PyMethodDef run_method = {"run", (PyCFunction)(void (*)(void))run, METH_FASTCALL, NULL};

/* --- waking --- */

static PyObject *found_in(const char *module, const char *name)
{
    PyObject *home = pa_loaded(module);
    return home == NULL ? NULL : PyObject_GetAttrString(home, name);
}

static bool find_names(pf_eager *e, PyObject *tensor)
{
    e->dtype_number = PyObject_GetAttrString(tensor, "_datatype_enum");
    e->sizes = PyObject_GetAttrString(tensor, "_shape_tuple");
    e->context = Py_XNewRef(pa_loaded("tensorflow.python.eager.context"));
    e->current = PyUnicode_InternFromString("_context");
    e->fallback = found_in("tensorflow.python.eager.core", "_FallbackException");
    e->not_ok = found_in("tensorflow.python.eager.core", "_NotOkStatusException");
    e->raise = found_in("tensorflow.python.framework.ops", "raise_from_not_ok_status");
    bool fine = e->dtype_number != NULL && e->sizes != NULL && e->context != NULL &&
                e->current != NULL && e->fallback != NULL && e->not_ok != NULL && e->raise != NULL;
    for (int i = 0; fine && i < PF_OP_COUNT; i++)
        fine = (e->op[i] = PyUnicode_InternFromString(pf_op_name((pf_op)i))) != NULL;
    return fine;
}

/* The names are TensorFlow's, and the process's: another copy of this library may have taken them. */
static PyObject *register_rules(const tensorflow_state *st, PyObject *tensorflow)
{
    PyObject *module = st->home->module;
    PyObject *package = PyObject_GetAttrString(module, "__package__");
    PyObject *name = package == NULL ? NULL : PyUnicode_FromFormat("%U._tensorflow", package);
    PyObject *rules = name == NULL ? NULL : PyImport_Import(name);
    PyObject *function = PyCFunction_New(&run_method, module);
    PyObject *answer = rules == NULL || function == NULL
                           ? NULL
                           : PyObject_CallMethod(rules, "register", "OO", tensorflow, function);
    Py_XDECREF(package);
    Py_XDECREF(name);
    Py_XDECREF(rules);
    Py_XDECREF(function);
    return answer;
}

void pf_eager_wake(tensorflow_state *st, PyObject *tensorflow)
{
    PyObject *free = NULL;
    if (find_names(&st->eager, st->fn[FN_EagerTensor])) free = register_rules(st, tensorflow);
    if (free == Py_True && pf_register_ops())
        st->eager.execute = found_in("tensorflow.python.pywrap_tfe", "TFE_Py_FastPathExecute");
    Py_XDECREF(free);
    PyErr_Clear();
}

/* Every object of a pf_eager is one of these. */
#define OBJECTS(X)                                                                                 \
    X(dtype_number) X(sizes) X(execute) X(context) X(current) X(fallback) X(not_ok) X(raise)

void pf_eager_clear(pf_eager *e)
{
#define X(name) Py_CLEAR(e->name);
    OBJECTS(X)
#undef X
    for (int i = 0; i < PF_OP_COUNT; i++) Py_CLEAR(e->op[i]);
}
