/* The module anytensor._core: multi-phase, with all state in the module object.
 *
 * NumPy's C API keeps a table per process and no subinterpreters, so the module claims none either. */
#include "edge.h"

pa_state *pa_state_of(PyObject *module) { return PyModule_GetState(module); }

static int add_ops(PyObject *module)
{
    PyObject *names = PyList_New(0);
    for (const PyMethodDef *m = pa_methods; names != NULL && m->ml_name != NULL; m++) {
        if (m->ml_name[0] == '_') continue; /* for the package, not for its users */
        PyObject *name = PyUnicode_FromString(m->ml_name);
        if (name == NULL || PyList_Append(names, name) < 0) Py_CLEAR(names);
        Py_XDECREF(name);
    }
    PyObject *ops = names == NULL ? NULL : PyList_AsTuple(names);
    Py_XDECREF(names);
    int status = ops == NULL ? -1 : PyModule_AddObjectRef(module, "ops", ops);
    Py_XDECREF(ops);
    return status;
}

/* The other names of functions, and `aliases`, which tells them: {"isnan": "is_nan", ...}. */
static int add_aliases(PyObject *module)
{
    static const char *const pair[][2] = {
#define ALIAS(name, of) {#name, #of},
#include "anytensor/ops.def"
    };
    PyObject *aliases = PyDict_New();
    int status = aliases == NULL ? -1 : PyModule_AddObjectRef(module, "aliases", aliases);
    for (size_t i = 0; status == 0 && i < sizeof pair / sizeof *pair; i++) {
        PyObject *of = PyUnicode_FromString(pair[i][1]);
        PyObject *function = of == NULL ? NULL : PyObject_GetAttr(module, of);
        bool fine = function != NULL && PyObject_SetAttrString(module, pair[i][0], function) == 0 &&
                    PyDict_SetItemString(aliases, pair[i][0], of) == 0;
        status = fine ? 0 : -1;
        Py_XDECREF(function);
        Py_XDECREF(of);
    }
    Py_XDECREF(aliases);
    return status;
}

static int check(const at_backend *be)
{
    at_context cx;
    at_context_init(&cx, be);
    if (at_backend_check(&cx, be) == AT_OK) return 0;
    PyErr_SetString(PyExc_SystemError, at_message(&cx));
    return -1;
}

static int execute(PyObject *module)
{
    pa_state *st = pa_state_of(module);
    st->module = module;
    if (pa_numpy_make(&st->numpy) < 0 || check(&st->numpy) < 0 || pa_args_init(st) < 0 ||
        pa_options_init(st) < 0 || pa_cache_init(st) < 0 || pa_trees_init(&st->trees, module) < 0 ||
        pa_native_make(st) < 0 || check(&st->native) < 0)
        return -1;
    st->ndarray = pa_ndarray_type();
    if (pa_info_init(module, st) < 0) return -1;
    if (PyModule_AddStringConstant(module, "__version__", ANYTENSOR_VERSION) < 0) return -1;
    return add_ops(module) < 0 ? -1 : add_aliases(module);
}

static int traverse(PyObject *module, visitproc visit, void *arg)
{
    pa_state *st = pa_state_of(module);
    Py_VISIT(st->options);
    Py_VISIT(st->unknown_array);
    Py_VISIT(st->native_type);
    int stop = pa_cache_visit(st, visit, arg);
    if (stop) return stop;
    stop = pa_trees_visit(&st->trees, visit, arg);
    if (stop) return stop;
    stop = pa_numpy_visit(&st->numpy, visit, arg);
    return stop ? stop : pa_registry_visit(st, visit, arg);
}

static int clear(PyObject *module)
{
    pa_state *st = pa_state_of(module);
    pa_registry_clear(st);
    pa_trees_clear(&st->trees);
    Py_CLEAR(st->options);
    Py_CLEAR(st->unknown_array);
    pa_cache_clear(st);
    Py_CLEAR(st->native_type);
    pa_numpy_clear(&st->numpy);
    pa_args_clear(st);
    return 0;
}

static void free_module(void *module) { clear(module); }

static PyModuleDef_Slot slots[] = {{Py_mod_exec, execute}, {0, NULL}};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT,
    .m_name = "anytensor._core",
    .m_doc = "AnyTensor's operations as builtins; see the package anytensor.",
    .m_size = sizeof(pa_state),
    .m_methods = pa_methods,
    .m_slots = slots,
    .m_traverse = traverse,
    .m_clear = clear,
    .m_free = free_module,
};

PyMODINIT_FUNC PyInit__core(void) { return PyModuleDef_Init(&definition); }
