/* From a Python type to a backend, without ever importing a framework.
 *
 * A type seen before is found in a small cache keyed by its address; a weak reference guards against a new
 * type at an old address. An unknown type is tested against the base classes of each framework that is
 * already in sys.modules; what none of them owns may have an Array API namespace of its own. What is found is
 * remembered; that nothing was found is not, since a framework may be half imported at that moment. */
#include "edge.h"

PyObject *pa_loaded(const char *name)
{
    PyObject *modules = PyImport_GetModuleDict();
    PyObject *module = PyDict_GetItemString(modules, name);
    return module == Py_None ? NULL : module;
}

const pa_framework *const pa_frameworks[] = {&pa_torch, &pa_jax, &pa_tensorflow};
const size_t pa_framework_count = sizeof pa_frameworks / sizeof *pa_frameworks;

static at_backend *symbols_of(pa_state *st, const pa_framework *fw)
{
    return (at_backend *)((char *)st + fw->symbols);
}

static pa_known_type *place_of(pa_state *st, PyTypeObject *type)
{
    return &st->known[((uintptr_t)type >> 5) % PA_KNOWN_TYPES];
}

static void forget(pa_known_type *known)
{
    known->type = NULL;
    known->be = NULL;
    Py_CLEAR(known->weakref);
}

static void remember(pa_state *st, PyTypeObject *type, const at_backend *be)
{
    PyObject *weakref = PyWeakref_NewRef((PyObject *)type, NULL);
    if (weakref == NULL) { /* it is found the long way next time */
        PyErr_Clear();
        return;
    }
    pa_known_type *known = place_of(st, type);
    forget(known);
    *known = (pa_known_type){type, weakref, be};
}

/* Fills a backend; another thread may have been faster while the adapter looked its functions up. */
static int wake(pa_state *st, const pa_framework *fw, at_backend *be, PyObject *module)
{
    at_backend made = {0};
    if (pa_check_version(module, fw->oldest) < 0) return -1;
    if (fw->wake(st, &made, module) < 0) return -1;
    if (be->state == NULL)
        *be = made;
    else
        fw->clear(&made);
    return 0;
}

/* One framework's answer for a type; wakes its adapter at the first hit. NULL with or without an exception. */
static const at_backend *ask(pa_state *st, const pa_framework *fw, PyTypeObject *type)
{
    PyObject *module = pa_loaded(fw->module);
    if (module == NULL) return NULL;
    Py_INCREF(module);
    int owns = fw->owns(module, type);
    at_backend *be = pa_arrays_of(st, fw), *symbols = symbols_of(st, fw);
    if (owns > 0 && be->state == NULL && wake(st, fw, be, module) < 0) owns = -1;
    if (owns > 0 && symbols->name == NULL) pa_symbol_make(symbols, fw);
    Py_DECREF(module);
    return owns == 1 ? be : owns == 2 ? symbols : NULL;
}

static const at_backend *search(pa_state *st, PyObject *obj)
{
    PyTypeObject *type = Py_TYPE(obj);
    if (PyType_IsSubtype(type, pa_ndarray_type())) return &st->numpy;
    if (type == st->native_type) return &st->native;
    for (size_t i = 0; i < pa_framework_count; i++) {
        const at_backend *be = ask(st, pa_frameworks[i], type);
        if (be != NULL || PyErr_Occurred()) return be;
    }
    return pa_space_backend_of(st, obj);
}

/* The row of a framework's arrays; NULL for what is not in the table. */
static const pa_framework *framework_of(pa_state *st, const at_backend *be)
{
    for (size_t i = 0; i < pa_framework_count; i++)
        if (pa_arrays_of(st, pa_frameworks[i]) == be) return pa_frameworks[i];
    return NULL;
}

PyObject *pa_trace_of(pa_state *st, const at_backend *be, PyObject *x, PyObject **pulse)
{
    const pa_framework *fw = framework_of(st, be);
    return fw == NULL || fw->trace == NULL ? Py_NewRef(Py_None) : fw->trace(be, x, pulse);
}

PyObject *pa_watcher(pa_state *st, const at_backend *be)
{
    const pa_framework *fw = framework_of(st, be);
    return fw == NULL || fw->watcher == NULL ? Py_NewRef(Py_None) : fw->watcher(be);
}

const at_backend *pa_backend_of(pa_state *st, PyObject *obj)
{
    PyTypeObject *type = Py_TYPE(obj);
    const at_backend *at_hand = pa_backend_at_hand(st, obj);
    if (at_hand != NULL) return at_hand;
    const at_backend *be = search(st, obj);
    if (be != NULL) remember(st, type, be);
    return be;
}

void pa_registry_clear(pa_state *st)
{
    for (int i = 0; i < PA_KNOWN_TYPES; i++) forget(&st->known[i]);
    for (size_t i = 0; i < pa_framework_count; i++)
        pa_frameworks[i]->clear(pa_arrays_of(st, pa_frameworks[i]));
    pa_spaces_clear(st);
}

int pa_registry_visit(pa_state *st, visitproc visit, void *arg)
{
    for (int i = 0; i < PA_KNOWN_TYPES; i++) Py_VISIT(st->known[i].weakref);
    for (size_t i = 0; i < pa_framework_count; i++) {
        int stop = pa_frameworks[i]->visit(pa_arrays_of(st, pa_frameworks[i]), visit, arg);
        if (stop) return stop;
    }
    return pa_spaces_visit(st, visit, arg);
}
