/* Whether arguments can be held against annotations: not while something traces.
 *
 * Checked functions (python/anytensor/_checked.py) compare sizes. A size that is a symbol has none to compare, or would
 * be fixed by the comparison; so they step aside where one of their arguments has such a size or is one. */
#include "edge.h"

/* Sizes are numbers. A shape that cannot be read (of unknown rank) is none. */
static bool is_plain_shape(PyObject *shape)
{
    PyObject *sizes = shape == NULL ? NULL : PySequence_Tuple(shape);
    bool plain = sizes != NULL;
    for (Py_ssize_t k = 0; plain && k < PyTuple_GET_SIZE(sizes); k++)
        plain = PyLong_CheckExact(PyTuple_GET_ITEM(sizes, k));
    Py_XDECREF(sizes);
    PyErr_Clear();
    return plain;
}

static bool is_checkable(pa_state *st, PyObject *obj)
{
    if (PyTuple_Check(obj) || PyList_Check(obj)) {
        bool fine = true;
        for (Py_ssize_t k = 0; fine && k < PySequence_Fast_GET_SIZE(obj); k++) {
            PyObject *one = Py_NewRef(PySequence_Fast_GET_ITEM(obj, k)); /* lists may change */
            fine = is_checkable(st, one);
            Py_DECREF(one);
        }
        return fine;
    }
    const at_backend *be = pa_backend_of(st, obj);
    PyErr_Clear(); /* the function itself will say what is wrong */
    if (be == NULL || be == &st->numpy) return true;
    if (be->traits & AT_WEAK) return false;
    PyObject *shape = PyObject_GetAttrString(obj, "shape");
    bool plain = is_plain_shape(shape);
    Py_XDECREF(shape);
    return plain;
}

/* torch.jit.trace records what is asked of a shape; tf.function would rewrite the checks as it rewrites Python. */
static bool is_tracing(const pa_state *st)
{
    return (st->torch.state != NULL && pt_is_traced(&st->torch)) ||
           (st->tensorflow.state != NULL && pf_is_tracing(&st->tensorflow));
}

PyObject *pa_checkable(PyObject *module, PyObject *const *args, Py_ssize_t nargs)
{
    pa_state *st = pa_state_of(module);
    if (nargs != 2 || !PyTuple_Check(args[0]) || !PyDict_Check(args[1])) {
        PyErr_SetString(PyExc_TypeError, "_checkable(args, kwargs)");
        return NULL;
    }
    bool fine = is_checkable(st, args[0]);
    PyObject *key, *value;
    for (Py_ssize_t place = 0; fine && PyDict_Next(args[1], &place, &key, &value);)
        fine = is_checkable(st, value);
    return PyBool_FromLong(fine &&
                           !is_tracing(st)); /* last: an argument may have woken a framework */
}
