/* From a context's error to a Python exception.
 *
 * Our own errors become the documented type. A framework's exception keeps its type and gains a note that
 * names the function and its arguments with shapes and dtypes. */
#include "edge.h"

static PyObject *type_of(at_status status)
{
    switch (status) {
    case AT_ESHAPE:
    case AT_EVALUE: return PyExc_ValueError;
    case AT_EINDEX: return PyExc_IndexError;
    case AT_EOVERFLOW: return PyExc_OverflowError;
    case AT_EUNSUPPORTED: return PyExc_NotImplementedError;
    case AT_ENOMEM: return PyExc_MemoryError;
    default: return PyExc_TypeError;
    }
}

/* A dtype's text; TensorFlow's "<dtype: 'float32'>" is told by its name. */
static PyObject *dtype_text(PyObject *dtype)
{
    PyObject *text = PyObject_Str(dtype);
    if (text == NULL || !PyUnicode_Check(text) || PyUnicode_GET_LENGTH(text) == 0 ||
        PyUnicode_READ_CHAR(text, 0) != '<')
        return text;
    PyObject *name = PyObject_GetAttrString(dtype, "name");
    if (name == NULL) PyErr_Clear();
    if (name != NULL) Py_SETREF(text, name);
    return text;
}

/* "float32(3, 4)" for arrays, a short repr for the rest; new reference, or NULL without an exception. */
static PyObject *describe(PyObject *obj)
{
    PyObject *dtype = PyObject_GetAttrString(obj, "dtype");
    PyObject *shape = dtype == NULL ? NULL : PyObject_GetAttrString(obj, "shape");
    PyObject *sizes = shape == NULL ? NULL : PySequence_Tuple(shape);
    PyObject *text = NULL;
    PyObject *type = sizes == NULL ? NULL : dtype_text(dtype);
    if (type != NULL) text = PyUnicode_FromFormat("%S%R", type, sizes);
    PyErr_Clear();
    Py_XDECREF(type);
    if (text == NULL) text = PyUnicode_FromFormat("%.60R", obj);
    PyErr_Clear();
    Py_XDECREF(dtype);
    Py_XDECREF(shape);
    Py_XDECREF(sizes);
    return text;
}

static PyObject *describe_call(const pa_edge *e)
{
    PyObject *text = PyUnicode_FromFormat("in anytensor.%s(", e->sig->name);
    const char *sep = "";
    for (int i = 0; i < e->sig->count && text != NULL; i++) {
        if (e->value[i] == NULL) continue;
        PyObject *one = describe(e->value[i]);
        PyObject *more =
            PyUnicode_FromFormat("%U%s%s=%V", text, sep, e->sig->param[i].name, one, "?");
        Py_XDECREF(one);
        Py_SETREF(text, more);
        sep = ", ";
    }
    if (text != NULL) Py_SETREF(text, PyUnicode_FromFormat("%U)", text));
    return text;
}

/* Python 3.10 knows no add_note: the list is kept under the name that 3.11 prints. */
static int add_note(PyObject *error, PyObject *note)
{
#if PY_VERSION_HEX >= 0x030B0000
    PyObject *done = PyObject_CallMethod(error, "add_note", "O", note);
    Py_XDECREF(done);
    return done == NULL ? -1 : 0;
#else
    PyObject *notes = Py_BuildValue("[O]", note);
    int status = notes == NULL ? -1 : PyObject_SetAttrString(error, "__notes__", notes);
    Py_XDECREF(notes);
    return status;
#endif
}

static void note_call(const pa_edge *e)
{
    PyObject *type, *error, *trace;
    PyErr_Fetch(&type, &error, &trace);
    PyErr_NormalizeException(&type, &error, &trace);
    if (trace != NULL) PyException_SetTraceback(error, trace);
    PyObject *note = describe_call(e);
    if (note != NULL) add_note(error, note);
    Py_XDECREF(note);
    PyErr_Clear();
    PyErr_Restore(type, error, trace);
}

void pa_raise(pa_edge *e)
{
    if (PyErr_Occurred()) {
        /* a call within a trace of our own (with flags) is noted by the call that traces */
        if (e->cx.status == AT_EFOREIGN && e->cx.flags == 0) note_call(e);
        return;
    }
    if (e->cx.op == NULL) e->cx.op = e->sig->name;
    PyErr_SetString(type_of(e->cx.status), at_message(&e->cx));
}
