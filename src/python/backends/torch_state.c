/* Finding what the torch adapter needs, and asking torch what it is doing.
 *
 * A name that this torch lacks is a loud failure at the first tensor, with torch's version, not a NULL call later. */
#include "torch_state.h"

bool pt_flag(const torch_state *st, PyObject *x, int which)
{
    PyObject *flag = pt_get(st, x, which);
    bool truth = flag == Py_True;
    Py_XDECREF(flag);
    PyErr_Clear();
    return truth;
}

at_dtype pt_find_dtype(const torch_state *st, PyObject *obj)
{
    if (obj == st->dtype[AT_FLOAT32]) return AT_FLOAT32;
    if (obj == st->dtype[AT_INT64]) return AT_INT64;
    for (int t = AT_BOOL; t < AT_OTHER; t++)
        if (obj == st->dtype[t]) return (at_dtype)t;
    return AT_OTHER;
}

at_dtype pt_dtype(const at_backend *be, PyObject *obj)
{
    const torch_state *st = state_of(be);
    if (st == NULL) {
        /* a dtype of a torch that no tensor has woken yet: its text names it */
        if (strcmp(Py_TYPE(obj)->tp_name, "torch.dtype") != 0) return AT_NODTYPE;
        PyObject *text = PyObject_Str(obj);
        const char *name = text == NULL ? NULL : PyUnicode_AsUTF8(text);
        const char *dot = name == NULL ? NULL : strchr(name, '.');
        at_dtype t = dot == NULL ? AT_NODTYPE : at_dtype_named(dot + 1);
        Py_XDECREF(text);
        return t;
    }
    at_dtype t = pt_find_dtype(st, obj);
    return t == AT_OTHER ? AT_NODTYPE : t;
}

/* --- modes --- */

bool pt_answers_nothing(PyObject *question)
{
    PyObject *answer = PyObject_CallNoArgs(question);
    bool nothing =
        answer == Py_None || (answer != NULL && PyLong_Check(answer) && PyLong_AsLong(answer) == 0);
    Py_XDECREF(answer);
    PyErr_Clear();
    return nothing;
}

/* The innermost of torch's dispatch modes, its own (fake, functional, proxy) among them. */
PyObject *pt_watcher(const at_backend *be)
{
    const torch_state *st = state_of(be);
    if (!pt_answers_nothing(st->fn[FN_tracing_state])) return Py_NewRef(Py_NotImplemented);
    PyObject *depth = PyObject_CallNoArgs(st->fn[FN_dispatch_modes]);
    long modes = depth == NULL ? -1 : PyLong_AsLong(depth);
    Py_XDECREF(depth);
    if (modes < 0) return NULL;
    return modes == 0 ? Py_NewRef(Py_None)
                      : PyObject_CallFunction(st->fn[FN_dispatch_mode], "l", modes - 1);
}

/* Fake and functional tensors are of classes of these names, wherever a torch keeps them. */
static bool stands_for_values(PyObject *x)
{
    PyObject *order = Py_TYPE(x)->tp_mro;
    for (Py_ssize_t i = 0; order != NULL && i < PyTuple_GET_SIZE(order); i++) {
        const char *name = ((PyTypeObject *)PyTuple_GET_ITEM(order, i))->tp_name;
        if (strcmp(name, "FakeTensor") == 0 || strcmp(name, "FunctionalTensor") == 0) return true;
    }
    return false;
}

/* functorch wraps tensors of torch's own class, by level; a wrapper has one also when its transform is over. */
static PyObject *level_of(const torch_state *st, PyObject *x)
{
    PyObject *level = PyObject_CallOneArg(st->fn[FN_wrapper_level], x);
    long number = level == NULL ? 0 : PyLong_AsLong(level);
    if (number != -1) return level;
    Py_DECREF(level);
    return Py_NewRef(Py_None);
}

/* Fake tensors are told apart by what watches (pa_watcher() is part of the key), or else by their mode. */
PyObject *pt_trace(const at_backend *be, PyObject *x, PyObject **pulse)
{
    const torch_state *st = state_of(be);
    (void)pulse;
    if (!stands_for_values(x)) return level_of(st, x);
    PyObject *watcher = pt_watcher(be);
    if (watcher != Py_None) return watcher;
    Py_DECREF(watcher);
    PyObject *mode = PyObject_GetAttrString(x, "fake_mode");
    if (mode == NULL && PyErr_ExceptionMatches(PyExc_AttributeError)) {
        PyErr_Clear();
        return Py_NewRef(x);
    }
    return mode;
}

bool pt_is_host(const torch_state *st, PyObject *x)
{
    return (Py_TYPE(x) == (PyTypeObject *)st->fn[FN_Tensor] ||
            Py_TYPE(x) == (PyTypeObject *)st->fn[FN_Parameter]) &&
           pt_flag(st, x, GET_is_cpu);
}

bool pt_is_traced(const at_backend *be) { return !pt_answers_nothing(FN(be, tracing_state)); }

bool pt_is_unwatched(const torch_state *st)
{
    return pt_answers_nothing(st->fn[FN_dispatch_modes]) &&
           pt_answers_nothing(st->fn[FN_function_modes]) &&
           pt_answers_nothing(st->fn[FN_tracing_state]) && pt_answers_nothing(st->fn[FN_functorch]);
}

bool pt_is_plain(const torch_state *st, PyObject *x)
{
    return pt_is_host(st, x) && pt_is_unwatched(st);
}

bool pt_forward_ad(const torch_state *st)
{
    PyObject *level = PyObject_GetAttr(st->fn[FN_forward_ad], CONSTANT(st, current_level));
    bool active = level == NULL || PyLong_AsLong(level) >= 0;
    Py_XDECREF(level);
    PyErr_Clear();
    return active;
}

bool pt_wants_gradient(const torch_state *st, PyObject *x)
{
    if (!pt_flag(st, x, GET_requires_grad)) return false;
    PyObject *enabled = PyObject_CallNoArgs(st->fn[FN_grad_enabled]);
    bool on = enabled == Py_True;
    Py_XDECREF(enabled);
    PyErr_Clear();
    return on;
}

bool pt_tracked(at_context *cx, at_array a)
{
    (void)cx;
    const torch_state *st = state_of(a.be);
    return pt_wants_gradient(st, a.p) || pt_forward_ad(st) ||
           !pt_answers_nothing(st->fn[FN_functorch]);
}

/* --- waking --- */

static int resolve_functions(torch_state *st, PyObject *torch)
{
    static const char *const path[] = {
#define X(name, where) where,
        FUNCTIONS(X)
#undef X
    };
    return pa_resolve_all(torch, path, FN_COUNT, st->fn);
}

static int resolve_getters(torch_state *st)
{
    static const char *const name[] = {
#define X(name) #name,
        GETTERS(X)
#undef X
    };
    for (int i = 0; i < GET_COUNT; i++) {
        st->attribute[i] = PyUnicode_InternFromString(name[i]);
        st->getter[i] = PyObject_GetAttrString(st->fn[FN_Tensor], name[i]);
        if (st->attribute[i] == NULL || st->getter[i] == NULL) return -1;
        if (Py_TYPE(st->getter[i]) != &PyGetSetDescr_Type) {
            PyErr_Format(PyExc_RuntimeError, "torch.Tensor.%s is not what it was", name[i]);
            return -1;
        }
    }
    return 0;
}

static void resolve_dtypes(torch_state *st, PyObject *torch)
{
    for (int t = AT_BOOL; t < AT_OTHER; t++) {
        st->dtype[t] = PyObject_GetAttrString(torch, at_dtype_name((at_dtype)t));
        PyErr_Clear(); /* older ones lack the wide unsigned types */
    }
}

static int make_constants(torch_state *st)
{
#define X(name, made) st->constant[CONSTANT_##name] = made;
    CONSTANTS(X)
#undef X
    return PyErr_Occurred() ? -1 : 0;
}

void pt_state_free(torch_state *st)
{
    for (int i = 0; i < FN_COUNT; i++) Py_CLEAR(st->fn[i]);
    for (int i = 0; i < GET_COUNT; i++) {
        Py_CLEAR(st->getter[i]);
        Py_CLEAR(st->attribute[i]);
    }
    for (int i = 0; i < AT_OTHER; i++) Py_CLEAR(st->dtype[i]);
    for (int i = 0; i < CONSTANT_COUNT; i++) Py_CLEAR(st->constant[i]);
    for (int i = 0; i < KERNEL_COUNT; i++) {
        Py_CLEAR(st->bare[i]);
        Py_CLEAR(st->derived[i]);
    }
    PyMem_Free(st);
}

void pt_clear(at_backend *be)
{
    torch_state *st = be->state;
    be->state = NULL;
    if (st != NULL) pt_state_free(st);
}

int pt_visit(at_backend *be, visitproc visit, void *arg)
{
    torch_state *st = be->state;
    for (int i = 0; st != NULL && i < FN_COUNT; i++) Py_VISIT(st->fn[i]);
    for (int i = 0; st != NULL && i < GET_COUNT; i++) Py_VISIT(st->getter[i]);
    for (int i = 0; st != NULL && i < KERNEL_COUNT; i++) Py_VISIT(st->bare[i]);
    for (int i = 0; st != NULL && i < KERNEL_COUNT; i++) Py_VISIT(st->derived[i]);
    return 0;
}

torch_state *pt_state_new(PyObject *torch, pa_state *home)
{
    torch_state *st = PyMem_Calloc(1, sizeof *st);
    if (st == NULL) {
        PyErr_NoMemory();
        return NULL;
    }
    st->home = home;
    resolve_dtypes(st, torch);
    if (resolve_functions(st, torch) == 0 && resolve_getters(st) == 0 && make_constants(st) == 0 &&
        pt_kernels_find(st, torch) == 0)
        return st;
    pt_state_free(st);
    pa_complain(torch);
    return NULL;
}

/* Whether a SymBool may be taken as true: torch is asked not to insist on a value. Under torch.jit.trace sizes
 * are tensors with values; is_nonzero reads one without a warning. */
int pt_holds(PyObject *torch, PyObject *condition)
{
    bool symbol = strcmp(Py_TYPE(condition)->tp_name, "SymBool") == 0;
    PyObject *module = symbol ? pa_loaded("torch.fx.experimental.symbolic_shapes") : torch;
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

int pt_owns(PyObject *module, PyTypeObject *type)
{
    if (pa_derives(module, "Tensor", type)) return 1;
    bool symbol = pa_derives(module, "SymInt", type) || pa_derives(module, "SymFloat", type) ||
                  pa_derives(module, "SymBool", type);
    return symbol ? 2 : 0;
}
