/* How NumPy arrays join another framework: promote_options() and align_arrays().
 *
 * The options are one context variable that holds flags, so that threads and tasks do not meet. They are asked only
 * where a NumPy array joins. */
#include "edge.h"

#include "core/promote.h"

enum { COPY = 1, REFUSE = 2 };

int pa_options_init(pa_state *st)
{
    PyObject *none = PyLong_FromLong(0);
    st->options = none == NULL ? NULL : PyContextVar_New("anytensor.promote_options", none);
    Py_XDECREF(none);
    return st->options == NULL ? -1 : 0;
}

/* Flags, or -1 with an exception. */
static long options_of(const pa_state *st)
{
    PyObject *value = NULL;
    if (PyContextVar_Get(st->options, NULL, &value) < 0) return -1;
    long flags = PyLong_AsLong(value);
    Py_DECREF(value);
    return flags;
}

int pa_join_rule(const pa_state *st, bool *copy, bool *refuse)
{
    long flags = options_of(st);
    *copy = flags & COPY;
    *refuse = flags & REFUSE;
    return flags < 0 ? -1 : 0;
}

/* --- arguments ----------------------------------------------------------------------------------------- */

/* One option into flags; None keeps what is there. */
static bool take_copy(const char *op, PyObject *obj, long *flags)
{
    if (obj == NULL || obj == Py_None) return true;
    if (!PyBool_Check(obj)) {
        PyErr_Format(PyExc_TypeError, "%s: argument 'copy': expected a bool, found %s", op,
                     Py_TYPE(obj)->tp_name);
        return false;
    }
    *flags = (*flags & ~COPY) | (obj == Py_True ? COPY : 0);
    return true;
}

static bool take_fallback(const char *op, PyObject *obj, long *flags)
{
    if (obj == NULL || obj == Py_None) return true;
    bool text = PyUnicode_Check(obj);
    bool refuse = text && PyUnicode_CompareWithASCIIString(obj, "error") == 0;
    if (!refuse && !(text && PyUnicode_CompareWithASCIIString(obj, "copy") == 0)) {
        PyErr_Format(text ? PyExc_ValueError : PyExc_TypeError,
                     "%s: argument 'fallback': expected 'copy' or 'error', found %.80R", op, obj);
        return false;
    }
    *flags = (*flags & ~REFUSE) | (refuse ? REFUSE : 0);
    return true;
}

/* Sets the flags; the token that brings the old ones back. */
static PyObject *set_flags(const pa_state *st, long flags)
{
    PyObject *value = PyLong_FromLong(flags);
    PyObject *token = value == NULL ? NULL : PyContextVar_Set(st->options, value);
    Py_XDECREF(value);
    return token;
}

PyObject *pa_enter_options(PyObject *module, PyObject *const *args, Py_ssize_t nargs)
{
    const char *op = "promote_options";
    long flags = 0;
    if (nargs != 2) {
        PyErr_SetString(PyExc_TypeError, "_enter_options(copy, fallback)");
        return NULL;
    }
    if (!take_copy(op, args[0], &flags) || !take_fallback(op, args[1], &flags)) return NULL;
    return set_flags(pa_state_of(module), flags);
}

PyObject *pa_leave_options(PyObject *module, PyObject *token)
{
    if (PyContextVar_Reset(pa_state_of(module)->options, token) < 0) return NULL;
    Py_RETURN_NONE;
}

PyObject *pa_begin_options(const pa_state *st, const char *op, PyObject *copy, PyObject *fallback,
                           bool *copies)
{
    long flags = options_of(st);
    if (flags < 0 || !take_copy(op, copy, &flags) || !take_fallback(op, fallback, &flags))
        return NULL;
    *copies = flags & COPY;
    return copy == Py_None && fallback == Py_None ? Py_NewRef(Py_None) : set_flags(st, flags);
}

int pa_end_options(const pa_state *st, PyObject *token)
{
    PyObject *type, *error, *trace;
    PyErr_Fetch(&type, &error, &trace);
    int reset = token == Py_None ? 0 : PyContextVar_Reset(st->options, token);
    Py_DECREF(token);
    if (type != NULL) PyErr_Restore(type, error, trace);
    return reset;
}

PyObject *pa_own_copy(const pa_state *st, at_array a, PyObject *given, bool copy)
{
    if (copy && a.p == given && a.be == &st->numpy) return PyObject_CallMethod(given, "copy", NULL);
    return Py_NewRef((PyObject *)a.p);
}

/* --- align_arrays ------------------------------------------------------------------------------------------- */

/* copy= and fallback= of a call; false with an exception. */
static bool take_keywords(PyObject *const *args, PyObject *kwnames, long *flags)
{
    for (Py_ssize_t k = 0; kwnames != NULL && k < PyTuple_GET_SIZE(kwnames); k++) {
        PyObject *name = PyTuple_GET_ITEM(kwnames, k);
        bool fine;
        if (PyUnicode_CompareWithASCIIString(name, "copy") == 0)
            fine = take_copy("align_arrays", args[k], flags);
        else if (PyUnicode_CompareWithASCIIString(name, "fallback") == 0)
            fine = take_fallback("align_arrays", args[k], flags);
        else {
            PyErr_Format(PyExc_TypeError, "align_arrays() got an unexpected keyword argument '%U'",
                         name);
            return false;
        }
        if (!fine) return false;
    }
    return true;
}

/* A result as Python sees it: None where None was given. */
static PyObject *aligned(pa_edge *e, at_array a, PyObject *given, bool copy)
{
    return at_is_nil(a) ? Py_NewRef(Py_None) : pa_own_copy(e->st, a, given, copy);
}

static PyObject *align(pa_edge *e, PyObject *const *args, Py_ssize_t nargs, bool copy)
{
    for (Py_ssize_t i = 0; i < nargs; i++) {
        e->list[i] = AT_NIL;
        if (args[i] != Py_None &&
            !pa_to_array(e, "arrays", args[i], &e->list_scalars[i], &e->list[i]))
            return NULL;
    }
    if (!ati_align(&e->root, (int)nargs, e->list)) return NULL;
    PyObject *tuple = PyTuple_New(nargs);
    for (Py_ssize_t i = 0; tuple != NULL && i < nargs; i++) {
        PyObject *one = aligned(e, e->list[i], args[i], copy);
        if (one == NULL)
            Py_CLEAR(tuple);
        else
            PyTuple_SET_ITEM(tuple, i, one);
    }
    return tuple;
}

PyObject *pa_align_arrays(PyObject *module, PyObject *const *args, Py_ssize_t nargs,
                          PyObject *kwnames)
{
    static const pa_param parameter = {"arrays", PA_LIST, PA_POS, "", 0};
    static const pa_signature signature = {"align_arrays", 0, 1, &parameter};
    pa_edge e = {.st = pa_state_of(module), .sig = &signature};
    long flags = options_of(e.st);
    if (flags < 0 || !take_keywords(args + nargs, kwnames, &flags)) return NULL;
    PyObject *token = set_flags(e.st, flags);
    if (token == NULL) return NULL;
    e.list = PyMem_Calloc((size_t)nargs + 1, sizeof *e.list);
    e.list_scalars = PyMem_Calloc((size_t)nargs + 1, sizeof *e.list_scalars);
    at_open(&e.root, at_context_init(&e.cx, &e.st->numpy));
    PyObject *tuple = NULL;
    if (e.list == NULL || e.list_scalars == NULL)
        PyErr_NoMemory();
    else
        tuple = align(&e, args, nargs, flags & COPY);
    if (tuple == NULL) pa_raise(&e);
    at_close(&e.root);
    PyMem_Free(e.list);
    PyMem_Free(e.list_scalars);
    if (pa_end_options(e.st, token) < 0) Py_CLEAR(tuple);
    return tuple;
}
