/* From an object to its Array API namespace, and from a namespace to a backend.
 *
 * An array says itself which namespace it has. That of dask and of CuPy is not the standard's, or not all of it: theirs
 * come from array_api_compat, which is imported when the first such array is seen. */
#include "array_api_state.h"

/* --- asking a namespace ----------------------------------------------------------------------------------- */

/* The version of a module or of the package that it stands in; new reference, or NULL without an exception. */
static PyObject *version_of(PyObject *xp, const char *name)
{
    PyObject *version = PyObject_GetAttrString(xp, "__version__");
    const char *dot = strchr(name, '.');
    PyErr_Clear();
    if (version != NULL || dot == NULL) return version;
    PyObject *top = PyUnicode_FromStringAndSize(name, dot - name);
    PyObject *module = top == NULL ? NULL : PyDict_GetItemWithError(PyImport_GetModuleDict(), top);
    if (module != NULL) version = PyObject_GetAttrString(module, "__version__");
    Py_XDECREF(top);
    PyErr_Clear();
    return version;
}

PyObject *px_function(pa_frame *f, const at_backend *be, int fn)
{
    static const char *const name[] = {
#define X(name) #name,
        FUNCTIONS(X)
#undef X
    };
    pa_space *space = space_of(be);
    if (f->failed || space->fn[fn] != NULL) return space->fn[fn];
    PyObject *version = version_of(space->xp, be->name);
    PyErr_Format(PyExc_NotImplementedError,
                 "anytensor cannot do this with %s %V: the namespace has no function '%s'",
                 be->name, version, "(of unknown version)", name[fn]);
    Py_XDECREF(version);
    return pa_keep(f, NULL);
}

PyObject *px_dtype_object(pa_frame *f, const at_backend *be, at_dtype t)
{
    PyObject *dtype = t < AT_OTHER ? space_of(be)->dtype[t] : NULL;
    if (dtype == NULL && !f->failed) {
        PyErr_Format(PyExc_TypeError, "this %s has no %s", be->name, at_dtype_name(t));
        pa_keep(f, NULL);
    }
    return dtype;
}

/* Compares with the namespace's dtypes one by one; objects that cannot be compared are none of them. */
static at_dtype compare_dtypes(const pa_space *space, PyObject *obj)
{
    for (int t = AT_BOOL; t < AT_OTHER; t++) {
        int same =
            space->dtype[t] == NULL ? 0 : PyObject_RichCompareBool(obj, space->dtype[t], Py_EQ);
        if (same < 0) PyErr_Clear();
        if (same > 0) return (at_dtype)t;
    }
    return AT_OTHER;
}

at_dtype px_find_dtype(pa_space *space, PyObject *obj)
{
    PyObject *number = PyDict_GetItemWithError(space->met, obj);
    if (number != NULL) return (at_dtype)PyLong_AsLong(number);
    PyErr_Clear(); /* it has no hash, perhaps */
    at_dtype t = compare_dtypes(space, obj);
    number = t == AT_OTHER ? NULL : PyLong_FromLong(t);
    if (number != NULL) PyDict_SetItem(space->met, obj, number);
    Py_XDECREF(number);
    PyErr_Clear();
    return t;
}

PyObject *pa_space_namespace(const at_backend *be) { return space_of(be)->xp; }

/* --- making a backend ---------------------------------------------------------------------------------------- */

static void resolve_functions(pa_space *space)
{
    static const char *const name[] = {
#define X(name) #name,
        FUNCTIONS(X)
#undef X
    };
    for (int i = 0; i < FN_COUNT; i++) {
        space->fn[i] = PyObject_GetAttrString(space->xp, name[i]);
        PyErr_Clear();
    }
}

static void resolve_dtypes(pa_space *space)
{
    for (int t = AT_BOOL; t < AT_OTHER; t++) {
        space->dtype[t] = PyObject_GetAttrString(space->xp, at_dtype_name((at_dtype)t));
        PyErr_Clear();
    }
}

/* What the namespace says of a device (None: the default one); a dictionary, or NULL without an exception. */
static PyObject *default_dtypes(PyObject *xp, PyObject *device)
{
    PyObject *info = PyObject_CallMethod(xp, "__array_namespace_info__", NULL);
    PyObject *ask = info == NULL ? NULL : PyObject_GetAttrString(info, "default_dtypes");
    PyObject *name = ask == NULL ? NULL : Py_BuildValue("(s)", "device");
    PyObject *table = name == NULL ? NULL : PyObject_Vectorcall(ask, &device, 0, name);
    Py_XDECREF(name);
    Py_XDECREF(ask);
    Py_XDECREF(info);
    PyErr_Clear();
    if (table != NULL && !PyDict_Check(table)) Py_CLEAR(table);
    return table;
}

static at_dtype default_of(pa_space *space, PyObject *table, const char *kind, at_dtype fallback)
{
    PyObject *dtype = table == NULL ? NULL : PyDict_GetItemString(table, kind);
    at_dtype t = dtype == NULL ? AT_OTHER : px_find_dtype(space, dtype);
    return t == AT_OTHER ? fallback : t;
}

at_dtype px_index_dtype(const at_backend *be, PyObject *device)
{
    pa_space *space = space_of(be);
    PyObject *number = device == Py_None ? NULL : PyDict_GetItemWithError(space->indexing, device);
    if (number != NULL) return (at_dtype)PyLong_AsLong(number);
    PyErr_Clear();
    if (device == Py_None) return space->integral;
    PyObject *table = default_dtypes(space->xp, device);
    at_dtype t = default_of(space, table, "indexing", space->integral);
    Py_XDECREF(table);
    number = PyLong_FromLong(t);
    if (number != NULL) PyDict_SetItem(space->indexing, device, number);
    Py_XDECREF(number);
    PyErr_Clear();
    return t;
}

static int make_constants(pa_space *space)
{
#define X(name, made) space->constant[CONSTANT_##name] = made;
    CONSTANTS(X)
#undef X
    space->met = PyErr_Occurred() ? NULL : PyDict_New();
    space->indexing = space->met == NULL ? NULL : PyDict_New();
    return space->indexing == NULL ? -1 : 0;
}

/* The name that users know: without the package that only wraps the library. New memory, or NULL with an exception. */
static char *name_of(PyObject *xp)
{
    static const char wrapper[] = "array_api_compat.";
    PyObject *given = PyObject_GetAttrString(xp, "__name__");
    const char *text = given != NULL && PyUnicode_Check(given) ? PyUnicode_AsUTF8(given) : NULL;
    if (text == NULL) text = Py_TYPE(xp)->tp_name;
    PyErr_Clear();
    if (strncmp(text, wrapper, sizeof wrapper - 1) == 0) text += sizeof wrapper - 1;
    char *name = PyMem_Malloc(strlen(text) + 1);
    if (name != NULL)
        strcpy(name, text);
    else
        PyErr_NoMemory();
    Py_XDECREF(given);
    return name;
}

static void free_space(pa_space *space)
{
    for (int i = 0; i < FN_COUNT; i++) Py_CLEAR(space->fn[i]);
    for (int i = 0; i < AT_OTHER; i++) Py_CLEAR(space->dtype[i]);
    for (int i = 0; i < CONSTANT_COUNT; i++) Py_CLEAR(space->constant[i]);
    Py_CLEAR(space->met);
    Py_CLEAR(space->indexing);
    Py_CLEAR(space->xp);
    PyMem_Free(space->name);
    PyMem_Free(space);
}

static pa_space *make_space(pa_state *st, PyObject *xp)
{
    pa_space *space = PyMem_Calloc(1, sizeof *space);
    if (space == NULL) {
        PyErr_NoMemory();
        return NULL;
    }
    space->xp = Py_NewRef(xp);
    space->home = st;
    if (make_constants(space) < 0 || (space->name = name_of(xp)) == NULL) {
        free_space(space);
        return NULL;
    }
    resolve_functions(space);
    resolve_dtypes(space);
    PyObject *table = default_dtypes(xp, Py_None);
    at_dtype real = space->dtype[AT_FLOAT64] != NULL ? AT_FLOAT64 : AT_FLOAT32;
    space->real = default_of(space, table, "real floating", real);
    space->integral = default_of(space, table, "integral", AT_INT64);
    Py_XDECREF(table);
    space->be = px_slots;
    space->be.name = space->name;
    space->be.state = space;
    return space;
}

static const at_backend *find_space(const pa_state *st, const PyObject *xp)
{
    for (const pa_space *space = st->spaces; space != NULL; space = space->next)
        if (space->xp == xp) return &space->be;
    return NULL;
}

/* The backend of a namespace, made where there is none yet. */
static const at_backend *backend_of_space(pa_state *st, PyObject *xp)
{
    const at_backend *be = find_space(st, xp);
    if (be != NULL) return be;
    pa_space *space = make_space(st, xp);
    if (space == NULL) return NULL;
    be = find_space(
        st, xp); /* another thread may have been faster: looking attributes up runs Python */
    if (be != NULL) {
        free_space(space);
        return be;
    }
    space->next = st->spaces;
    st->spaces = space;
    return &space->be;
}

/* --- from an object to its namespace ------------------------------------------------------------------------ */

/* Whether the type is one whose namespace array_api_compat wraps; its own is missing or not the standard's. */
static bool is_wrapped(PyTypeObject *type)
{
    static const struct {
        const char *module, *path;
    } known[] = {{"dask.array", "Array"}, {"cupy", "ndarray"}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        PyObject *module = pa_loaded(known[i].module);
        if (module != NULL && pa_derives(module, known[i].path, type)) return true;
    }
    return false;
}

static PyObject *wrapped_namespace(PyObject *obj)
{
    PyObject *compat = PyImport_ImportModule("array_api_compat");
    PyObject *xp =
        compat == NULL ? NULL : PyObject_CallMethod(compat, "array_namespace", "(O)", obj);
    Py_XDECREF(compat);
    return xp;
}

/* The others are asked themselves: array_api_compat would ask them too, and keep their types alive in a cache. New
 * reference; NULL without an exception where the object has no namespace after all. */
static PyObject *own_namespace(PyObject *obj)
{
    PyObject *xp = PyObject_CallMethod(obj, "__array_namespace__", NULL);
    if (xp == NULL && PyErr_ExceptionMatches(PyExc_Exception) &&
        !PyErr_ExceptionMatches(PyExc_MemoryError))
        PyErr_Clear();
    if (xp == Py_None) Py_CLEAR(xp);
    return xp;
}

static PyObject *namespace_of(PyObject *obj)
{
    PyTypeObject *type = Py_TYPE(obj);
    if (pa_is_numpy_scalar(obj)) return NULL; /* NumPy's own */
    if (is_wrapped(type)) return wrapped_namespace(obj);
    return PyObject_HasAttrString((PyObject *)type, "__array_namespace__") ? own_namespace(obj)
                                                                           : NULL;
}

const at_backend *pa_space_backend_of(pa_state *st, PyObject *obj)
{
    PyObject *xp = namespace_of(obj);
    const at_backend *be = xp == NULL ? NULL : backend_of_space(st, xp);
    Py_XDECREF(xp);
    return be;
}

/* --- dtypes ---------------------------------------------------------------------------------------------------- */

static at_dtype dtype_of_spaces(pa_state *st, PyObject *obj)
{
    for (pa_space *space = st->spaces; space != NULL; space = space->next) {
        PyObject *one = space->dtype[AT_INT32];
        if (one == NULL || pa_numpy_dtype(one) != AT_NODTYPE) continue; /* NumPy's own are known */
        at_dtype t = px_find_dtype(space, obj);
        if (t != AT_OTHER) return t;
    }
    return AT_NODTYPE;
}

/* Wakes the namespace that a dtype object comes from: the module of its class, or the package around it, where that
 * is loaded and says that it is a namespace. Whether something was woken; -1: exception. */
static int wake_for_dtype(pa_state *st, PyObject *obj)
{
    PyObject *where = PyObject_GetAttrString((PyObject *)Py_TYPE(obj), "__module__");
    const char *name = where != NULL && PyUnicode_Check(where) ? PyUnicode_AsUTF8(where) : NULL;
    PyObject *top =
        name == NULL ? NULL : PyUnicode_FromStringAndSize(name, (Py_ssize_t)strcspn(name, "."));
    PyObject *const tried[] = {where, top};
    int woken = 0;
    PyErr_Clear();
    if (top != NULL && PyUnicode_CompareWithASCIIString(top, "numpy") == 0) Py_CLEAR(top);
    for (int i = 0; top != NULL && i < 2 && woken == 0; i++) {
        PyObject *xp = PyDict_GetItemWithError(PyImport_GetModuleDict(), tried[i]);
        PyErr_Clear();
        if (xp == NULL || !PyObject_HasAttrString(xp, "__array_api_version__") ||
            find_space(st, xp) != NULL)
            continue;
        Py_INCREF(xp);
        woken = backend_of_space(st, xp) == NULL ? -1 : 1;
        Py_DECREF(xp);
    }
    Py_XDECREF(where);
    Py_XDECREF(top);
    return woken;
}

at_dtype pa_space_dtype(pa_state *st, PyObject *obj)
{
    if (PyUnicode_Check(obj)) return AT_NODTYPE; /* names are known already */
    at_dtype t = dtype_of_spaces(st, obj);
    if (t != AT_NODTYPE || wake_for_dtype(st, obj) <= 0) return t;
    return dtype_of_spaces(st, obj);
}

/* --- the module's end --------------------------------------------------------------------------------------- */

void pa_spaces_clear(pa_state *st)
{
    while (st->spaces != NULL) {
        pa_space *space = st->spaces;
        st->spaces = space->next;
        free_space(space);
    }
}

int pa_spaces_visit(pa_state *st, visitproc visit, void *arg)
{
    for (pa_space *space = st->spaces; space != NULL; space = space->next) {
        Py_VISIT(space->xp);
        Py_VISIT(space->met);
        Py_VISIT(space->indexing);
        for (int i = 0; i < FN_COUNT; i++) Py_VISIT(space->fn[i]);
        for (int i = 0; i < AT_OTHER; i++) Py_VISIT(space->dtype[i]);
    }
    return 0;
}
