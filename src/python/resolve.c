/* Finding the functions and classes of a framework that an adapter needs, once.
 *
 * A name that a framework lacks is a loud failure at its first array, with the framework's version, not a NULL call
 * later. */
#include "edge.h"

PyObject *pa_resolve(PyObject *module, const char *path)
{
    PyObject *found = Py_NewRef(module);
    while (found != NULL && *path != '\0') {
        size_t length = strcspn(path, ".");
        PyObject *name = PyUnicode_FromStringAndSize(path, (Py_ssize_t)length);
        PyObject *next = name == NULL ? NULL : PyObject_GetAttr(found, name);
        Py_XDECREF(name);
        Py_SETREF(found, next);
        path += length + (path[length] == '.');
    }
    return found;
}

void pa_complain(PyObject *module)
{
    PyObject *type, *error, *trace;
    PyErr_Fetch(&type, &error, &trace);
    PyErr_NormalizeException(&type, &error, &trace);
    PyObject *version = PyObject_GetAttrString(module, "__version__");
    PyErr_Clear();
    PyErr_Format(PyExc_RuntimeError, "anytensor cannot work with %s %V: %S",
                 PyModule_Check(module) ? PyModule_GetName(module) : "?", version, "?", error);
    Py_XDECREF(version);
    Py_XDECREF(type);
    Py_XDECREF(error);
    Py_XDECREF(trace);
}

/* Of the first three numbers of two versions: "2.13.0rc1+cpu" has 2, 13 and 0; what is not there is 0. */
static bool is_older(const char *version, const char *other)
{
    for (int i = 0; i < 3; i++) {
        char *end, *other_end;
        long number = strtol(version, &end, 10), limit = strtol(other, &other_end, 10);
        if (number != limit) return number < limit;
        version = *end == '.' ? end + 1 : "";
        other = *other_end == '.' ? other_end + 1 : "";
    }
    return false;
}

int pa_check_version(PyObject *module, const char *oldest)
{
    PyObject *version = PyObject_GetAttrString(module, "__version__");
    const char *text = version == NULL ? NULL : PyUnicode_AsUTF8(version);
    PyErr_Clear();
    bool old = text != NULL && is_older(text, oldest);
    if (old)
        PyErr_Format(PyExc_RuntimeError, "anytensor works with %s from version %s on, found %s",
                     PyModule_Check(module) ? PyModule_GetName(module) : "?", oldest, text);
    Py_XDECREF(version);
    return old ? -1 : 0;
}

int pa_resolve_all(PyObject *module, const char *const *path, size_t count, PyObject **found)
{
    for (size_t i = 0; i < count; i++)
        if ((found[i] = pa_resolve(module, path[i])) == NULL) return -1;
    return 0;
}

bool pa_derives(PyObject *module, const char *path, PyTypeObject *type)
{
    PyObject *base = pa_resolve(module, path);
    if (base == NULL) {
        PyErr_Clear();
        return false;
    }
    bool yes = PyType_Check(base) && PyType_IsSubtype(type, (PyTypeObject *)base);
    Py_DECREF(base);
    return yes;
}
