/* What can be said of an array without making one: constants, dtypes and their limits, its framework's name.
 *
 * Dtypes and limits are the framework's own objects, found by name where the framework keeps them. Nothing here reads
 * elements, so that all of it holds for traced arrays too. */
#include "edge.h"

#include <math.h>

#include "core/dtype.h"

/* --- the array that is asked about --------------------------------------------------------------------- */

/* The backend of an array; NULL with an exception for all else, scalars and symbols included. */
static const at_backend *backend_of_array(pa_state *st, const char *op, const char *argument,
                                          PyObject *obj)
{
    const at_backend *be = pa_backend_of(st, obj);
    if (be != NULL && !(be->traits & AT_WEAK)) return be;
    if (!PyErr_Occurred())
        PyErr_Format(st->unknown_array,
                     "%s: argument '%s': expected an array, found %s: Tensor type unknown to "
                     "anytensor: %R",
                     op, argument, Py_TYPE(obj)->tp_name, Py_TYPE(obj));
    return NULL;
}

/* Where a framework keeps its dtypes, or its limits of dtypes; borrowed, NULL with an exception. */
static PyObject *module_of(pa_state *st, const at_backend *be)
{
    const char *name = be == &st->torch ? "torch" : be == &st->jax ? "jax.numpy" : NULL;
    if (be == &st->tensorflow) name = "tensorflow";
    PyObject *module = name != NULL ? pa_loaded(name) : pa_space_namespace(be);
    if (module == NULL) PyErr_Format(PyExc_SystemError, "%s is not loaded", be->name);
    return module;
}

/* A framework's own dtype; new reference, or NULL with whatever exception. */
static PyObject *own_dtype(pa_state *st, const at_backend *be, at_dtype t)
{
    if (be == &st->numpy) return pa_numpy_type(be, t);
    if (be == &st->native) return PyUnicode_InternFromString(at_dtype_name(t));
    PyObject *module = module_of(st, be);
    /* jax.numpy.bool is younger than bool_ */
    const char *name = be == &st->jax && t == AT_BOOL ? "bool_" : at_dtype_name(t);
    return module == NULL ? NULL : PyObject_GetAttrString(module, name);
}

/* --- constants ------------------------------------------------------------------------------------------ */

static PyObject *constant(PyObject *module, PyObject *args, PyObject *kwargs, const char *name,
                          const char *format, double value)
{
    static char *names[] = {"like", NULL};
    PyObject *like;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, format, names, &like)) return NULL;
    if (backend_of_array(pa_state_of(module), name, "like", like) == NULL) return NULL;
    return PyFloat_FromDouble(value);
}

/* X(name, value) */
#define CONSTANTS(X)                                                                               \
    X(inf, Py_HUGE_VAL)                                                                            \
    X(ninf, -Py_HUGE_VAL)                                                                          \
    X(nan, Py_NAN)                                                                                 \
    X(pi, 3.14159265358979323846)                                                                  \
    X(e, 2.7182818284590452354)

#define X(name, value)                                                                             \
    static PyObject *py_##name(PyObject *module, PyObject *args, PyObject *kwargs)                 \
    {                                                                                              \
        return constant(module, args, kwargs, #name, "O:" #name, value);                           \
    }
CONSTANTS(X)
#undef X

/* --- dtypes ----------------------------------------------------------------------------------------------- */

static PyObject *py_dtype(PyObject *module, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"name", "like", NULL};
    pa_state *st = pa_state_of(module);
    PyObject *like;
    const char *name;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "sO:dtype", names, &name, &like)) return NULL;
    const at_backend *be = backend_of_array(st, "dtype", "like", like);
    if (be == NULL) return NULL;
    at_dtype t = at_dtype_named(name);
    PyObject *found = t == AT_NODTYPE ? NULL : own_dtype(st, be, t);
    if (found == NULL) {
        PyErr_Clear();
        PyErr_Format(PyExc_AttributeError, "dtype: argument 'name': %s has no dtype '%s'", be->name,
                     name);
    }
    return found;
}

/* --- limits of dtypes --------------------------------------------------------------------------------------- */

/* What the Array API standard asks of finfo: of the library's own arrays, which have no other. */
static PyObject *native_floats(at_dtype t)
{
    static const struct {
        int digits, top; /* binary digits with the first, and the largest exponent */
    } form[] = {[AT_FLOAT16] = {11, 15},
                [AT_BFLOAT16] = {8, 127},
                [AT_FLOAT32] = {24, 127},
                [AT_FLOAT64] = {53, 1023}};
    double eps = ldexp(1, 1 - form[t].digits), tiny = ldexp(1, 1 - form[t].top);
    double max = ldexp(2 - eps, form[t].top);
    return Py_BuildValue("{s:s,s:i,s:d,s:d,s:d,s:d,s:d}", "dtype", at_dtype_name(t), "bits",
                         8 * (int)at_dtype_size(t), "eps", eps, "max", max, "min", -max,
                         "smallest_normal", tiny, "tiny", tiny);
}

static PyObject *native_integers(at_dtype t)
{
    at_scalar top = pa_identity(t, false), least = pa_identity(t, true);
    return Py_BuildValue("{s:s,s:i,s:K,s:L}", "dtype", at_dtype_name(t), "bits",
                         8 * (int)at_dtype_size(t), "max", (unsigned long long)top.i, "min",
                         (long long)least.i);
}

static PyObject *native_limits(at_dtype t)
{
    PyObject *fields = ati_is_float(t) ? native_floats(t) : native_integers(t);
    PyObject *types = fields == NULL ? NULL : PyImport_ImportModule("types");
    PyObject *made = types == NULL ? NULL : PyObject_GetAttrString(types, "SimpleNamespace");
    PyObject *nothing = made == NULL ? NULL : PyTuple_New(0);
    PyObject *limits = nothing == NULL ? NULL : PyObject_Call(made, nothing, fields);
    Py_XDECREF(nothing);
    Py_XDECREF(made);
    Py_XDECREF(types);
    Py_XDECREF(fields);
    return limits;
}

/* The dtype that a framework's function of limits is asked with; new reference. TensorFlow has NumPy's limits. */
static PyObject *dtype_asked(pa_state *st, const at_backend *be, PyObject *x, at_dtype t)
{
    bool known = t != AT_OTHER;
    if (known) return own_dtype(st, be == &st->tensorflow ? &st->numpy : be, t);
    PyObject *dtype = PyObject_GetAttrString(x, "dtype");
    if (dtype != NULL && be == &st->tensorflow)
        Py_SETREF(dtype, PyObject_GetAttrString(dtype, "as_numpy_dtype"));
    return dtype;
}

static PyObject *limits_of(pa_state *st, const at_backend *be, const char *op, PyObject *x,
                           at_dtype t)
{
    if (be == &st->native) return native_limits(t);
    bool numpy = be == &st->numpy || be == &st->tensorflow;
    /* NumPy's own function knows no bfloat16: the library does that brought it */
    const char *name = t == AT_BFLOAT16 ? "ml_dtypes" : "numpy";
    PyObject *module = numpy ? pa_loaded(name) : module_of(st, be);
    PyObject *dtype = module == NULL ? NULL : dtype_asked(st, be, x, t);
    PyObject *limits = dtype == NULL ? NULL : PyObject_CallMethod(module, op, "(O)", dtype);
    Py_XDECREF(dtype);
    return limits;
}

static PyObject *limits(PyObject *module, PyObject *args, PyObject *kwargs, bool floats)
{
    static char *names[] = {"x", NULL};
    const char *op = floats ? "finfo" : "iinfo";
    pa_state *st = pa_state_of(module);
    PyObject *x;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, floats ? "O:finfo" : "O:iinfo", names, &x))
        return NULL;
    const at_backend *be = backend_of_array(st, op, "x", x);
    if (be == NULL) return NULL;
    at_context cx;
    at_context_init(&cx, be);
    at_dtype t = AT_OTHER;
    be->dtype(&cx, (at_array){x, be}, &t);
    bool fits = t == AT_OTHER || (floats ? ati_is_float(t) : ati_is_integer(t));
    if (fits && !PyErr_Occurred()) {
        PyObject *found = limits_of(st, be, op, x, t);
        if (found != NULL || !PyErr_ExceptionMatches(PyExc_TypeError)) return found;
        PyErr_Clear(); /* torch's way to say that the dtype is of another family */
    }
    if (!PyErr_Occurred())
        PyErr_Format(PyExc_ValueError, "%s: argument 'x': expected %s, found %s", op,
                     floats ? "floats" : "integers", at_dtype_name(t));
    return NULL;
}

static PyObject *py_finfo(PyObject *module, PyObject *args, PyObject *kwargs)
{
    return limits(module, args, kwargs, true);
}

static PyObject *py_iinfo(PyObject *module, PyObject *args, PyObject *kwargs)
{
    return limits(module, args, kwargs, false);
}

/* --- for the package ------------------------------------------------------------------------------------------ */

/* _backend_of(x, function, argument): the name of its framework; the other two are for the error. */
static PyObject *py_backend_of(PyObject *module, PyObject *args)
{
    PyObject *x;
    const char *op, *argument;
    if (!PyArg_ParseTuple(args, "Oss:_backend_of", &x, &op, &argument)) return NULL;
    const at_backend *be = backend_of_array(pa_state_of(module), op, argument, x);
    return be == NULL ? NULL : PyUnicode_FromString(be->name);
}

/* _dtype_name(dtype): ours for it, or None. */
static PyObject *py_dtype_name(PyObject *module, PyObject *dtype)
{
    at_dtype t = AT_NODTYPE;
    if (dtype == Py_None ||
        !pa_to_dtype(pa_state_of(module), "empty_segment_identity", dtype, &t)) {
        PyErr_Clear();
        Py_RETURN_NONE;
    }
    return PyUnicode_FromString(at_dtype_name(t));
}

/* --- the table --------------------------------------------------------------------------------------------------- */

#define PA_DOC_inf                                                                                 \
    "inf($module, /, like)\n--\n\n"                                                                \
    "Infinity as a Python float, for use beside an array.\n\n"                                     \
    "Errors   TypeError and RuntimeError: like is no array"
#define PA_DOC_ninf                                                                                \
    "ninf($module, /, like)\n--\n\n"                                                               \
    "Minus infinity as a Python float, for use beside an array.\n\n"                               \
    "Errors   TypeError and RuntimeError: like is no array"
#define PA_DOC_nan                                                                                 \
    "nan($module, /, like)\n--\n\n"                                                                \
    "NaN as a Python float, for use beside an array.\n\n"                                          \
    "Errors   TypeError and RuntimeError: like is no array"
#define PA_DOC_pi                                                                                  \
    "pi($module, /, like)\n--\n\n"                                                                 \
    "The number pi as a Python float, for use beside an array.\n\n"                                \
    "Errors   TypeError and RuntimeError: like is no array"
#define PA_DOC_e                                                                                   \
    "e($module, /, like)\n--\n\n"                                                                  \
    "The number e as a Python float, for use beside an array.\n\n"                                 \
    "Errors   TypeError and RuntimeError: like is no array"
#define PA_DOC_dtype                                                                               \
    "dtype($module, /, name, like)\n--\n\n"                                                        \
    "The dtype of that name, as the framework of an array has it.\n\n"                             \
    "Errors   AttributeError: no such name, or not in this framework;\n"                           \
    "         TypeError and RuntimeError: like is no array"
#define PA_DOC_finfo                                                                               \
    "finfo($module, /, x)\n--\n\n"                                                                 \
    "Limits of the floating dtype of an array, as its framework says them.\n\n"                    \
    "Errors   ValueError: another dtype;\n"                                                        \
    "         TypeError and RuntimeError: x is no array"
#define PA_DOC_iinfo                                                                               \
    "iinfo($module, /, x)\n--\n\n"                                                                 \
    "Limits of the integer dtype of an array, as its framework says them.\n\n"                     \
    "Errors   ValueError: another dtype;\n"                                                        \
    "         TypeError and RuntimeError: x is no array"

#define NAMED(function) (PyCFunction)(void (*)(void))(function), METH_VARARGS | METH_KEYWORDS

static PyMethodDef methods[] = {
#define X(name, value) {#name, NAMED(py_##name), PA_DOC_##name},
    CONSTANTS(X)
#undef X
        {"dtype", NAMED(py_dtype), PA_DOC_dtype},
    {"finfo", NAMED(py_finfo), PA_DOC_finfo},
    {"iinfo", NAMED(py_iinfo), PA_DOC_iinfo},
    {"_backend_of", py_backend_of, METH_VARARGS, NULL},
    {"_dtype_name", py_dtype_name, METH_O, NULL},
    {NULL, NULL, 0, NULL}};

#define ERROR_DOC                                                                                  \
    "An object that is no array of any framework that is loaded: a TypeError, and a RuntimeError." \
    "\nAn array was asked for."

static int add_error(PyObject *module, pa_state *st)
{
    PyObject *bases = PyTuple_Pack(2, PyExc_TypeError, PyExc_RuntimeError);
    if (bases == NULL) return -1;
    st->unknown_array =
        PyErr_NewExceptionWithDoc("anytensor._core.UnknownArrayError", ERROR_DOC, bases, NULL);
    Py_DECREF(bases);
    return PyModule_AddObjectRef(module, "UnknownArrayError", st->unknown_array);
}

int pa_info_init(PyObject *module, pa_state *st)
{
    PyObject *names = PyList_New(0);
    for (const PyMethodDef *m = methods; names != NULL && m->ml_name != NULL; m++) {
        PyObject *name = m->ml_name[0] == '_' ? NULL : PyUnicode_FromString(m->ml_name);
        if (name != NULL && PyList_Append(names, name) < 0) Py_CLEAR(names);
        Py_XDECREF(name);
    }
    PyObject *facts = names == NULL || PyErr_Occurred() ? NULL : PyList_AsTuple(names);
    Py_XDECREF(names);
    int status = facts == NULL ? -1 : PyModule_AddObjectRef(module, "facts", facts);
    Py_XDECREF(facts);
    if (status < 0 || add_error(module, st) < 0) return -1;
    return PyModule_AddFunctions(module, methods);
}
