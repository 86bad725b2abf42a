/* From Python arguments to an op's arguments: one table-driven binder for all ops.
 *
 * Binding puts each object into the place of its parameter; conversion writes each by its role into the op's
 * argument struct. Objects are borrowed from the caller; what has to be made (0-d arrays of NumPy scalars,
 * symbolic sizes) belongs to the frame of the call. */
#include "edge.h"

#include "ops/table.h"

/* --- errors of arguments ---------------------------------------------------------------------------- */

static bool refuse(const pa_edge *e, const char *name, const char *expected, PyObject *found)
{
    if (found == Py_None)
        PyErr_Format(PyExc_TypeError, "%s: argument '%s': expected %s, found None", e->sig->name,
                     name, expected);
    else
        PyErr_Format(PyExc_TypeError, "%s: argument '%s': expected %s, found %s", e->sig->name,
                     name, expected, Py_TYPE(found)->tp_name);
    return false;
}

static bool refuse_value(const pa_edge *e, const char *name, const char *expected, PyObject *found)
{
    PyErr_Format(PyExc_TypeError, "%s: argument '%s': expected %s, found %.80R", e->sig->name, name,
                 expected, found);
    return false;
}

/* --- arrays and scalars ------------------------------------------------------------------------------ */

static void weak_int(PyObject *obj, at_scalar *s)
{
    int overflow;
    s->kind = AT_WEAK_INT;
    s->range = AT_FITS_INT64;
    s->i = PyLong_AsLongLongAndOverflow(obj, &overflow);
    s->d = (double)s->i;
    if (overflow == 0) return;
    uint64_t bits = overflow > 0 ? PyLong_AsUnsignedLongLong(obj) : 0;
    bool fits = overflow > 0 && !PyErr_Occurred();
    PyErr_Clear();
    s->range = fits ? AT_FITS_UINT64 : AT_FITS_NONE;
    s->i = fits ? (int64_t)bits : overflow > 0 ? INT64_MAX : INT64_MIN;
    s->d = PyLong_AsDouble(obj);
    if (PyErr_Occurred()) { /* beyond the doubles, too */
        PyErr_Clear();
        s->d = overflow > 0 ? Py_HUGE_VAL : -Py_HUGE_VAL;
    }
}

/* Python's own numbers; false without an exception when it is none. */
static bool weak_number(PyObject *obj, at_scalar *s)
{
    if (PyFloat_Check(obj)) {
        *s = (at_scalar){.kind = AT_WEAK_FLOAT, .d = PyFloat_AS_DOUBLE(obj)};
        return true;
    }
    if (PyBool_Check(obj)) {
        bool truth = obj == Py_True;
        *s = (at_scalar){.kind = AT_WEAK_BOOL, .i = truth, .d = truth};
        return true;
    }
    if (!PyLong_Check(obj)) return false;
    weak_int(obj, s);
    return true;
}

static bool own(pa_edge *e, PyObject *owned, const at_backend *be, at_array *out)
{
    if (owned == NULL) return false;
    *out = at_keep(&e->root, (at_array){owned, be});
    return !at_failed(&e->root);
}

bool pa_to_array(pa_edge *e, const char *name, PyObject *obj, at_scalar *place, at_array *out)
{
    const at_backend *be = pa_backend_at_hand(e->st, obj);
    if (be != NULL) {
        *out = (at_array){obj, be};
        return true;
    }
    if (PyFloat_CheckExact(obj) || PyLong_CheckExact(obj) || PyBool_Check(obj)) {
        weak_number(obj, place);
        be = &at_weak;
        *out = (at_array){place, be};
        return true;
    }
    if (pa_is_numpy_scalar(obj)) return own(e, pa_numpy_scalar_to_array(obj), &e->st->numpy, out);
    be = pa_backend_of(e->st, obj);
    if (be != NULL) {
        *out = (at_array){obj, be};
        return true;
    }
    if (PyErr_Occurred()) return false;
    if (weak_number(obj, place)) { /* subclasses of the numbers */
        *out = (at_array){place, &at_weak};
        return true;
    }
    if (PyList_Check(obj) || PyTuple_Check(obj)) {
        PyErr_Format(
            PyExc_TypeError,
            "%s: argument '%s': expected an array or a scalar; %s is not a supported array "
            "type",
            e->sig->name, name, Py_TYPE(obj)->tp_name);
        return false;
    }
    return refuse(e, name, "an array or a scalar", obj);
}

/* A list as a tuple that the frame owns: code that runs during the call may change the list. */
static PyObject *frozen(pa_edge *e, PyObject *obj)
{
    at_array tuple;
    if (PyTuple_Check(obj)) return obj;
    return own(e, PyList_AsTuple(obj), &e->st->numpy, &tuple) ? tuple.p : NULL;
}

static bool to_list(pa_edge *e, const char *name, PyObject *obj, at_list *out)
{
    if (!PyList_Check(obj) && !PyTuple_Check(obj))
        return refuse(e, name, "a list or tuple of arrays", obj);
    obj = frozen(e, obj);
    if (obj == NULL) return false;
    Py_ssize_t n = PySequence_Fast_GET_SIZE(obj);
    e->list = PyMem_Calloc((size_t)n + 1, sizeof *e->list);
    e->list_scalars = PyMem_Calloc((size_t)n + 1, sizeof *e->list_scalars);
    if (e->list == NULL || e->list_scalars == NULL) {
        PyErr_NoMemory();
        return false;
    }
    for (Py_ssize_t i = 0; i < n; i++)
        if (!pa_to_array(e, name, PySequence_Fast_GET_ITEM(obj, i), &e->list_scalars[i],
                         &e->list[i]))
            return false;
    *out = (at_list){(int)n, e->list};
    return true;
}

/* --- sizes, axes ------------------------------------------------------------------------------------- */

/* An exception of the argument's own __index__ or __bool__, with a note that says where. */
static bool foreign_argument(pa_edge *e)
{
    pa_foreign(&e->cx);
    pa_raise(e);
    return false;
}

static bool to_int64(pa_edge *e, const char *name, PyObject *obj, int64_t *out)
{
    PyObject *number = PyNumber_Index(obj);
    if (number == NULL && PyErr_ExceptionMatches(PyExc_AttributeError)) {
        PyErr_Clear(); /* TensorFlow's tensors of floats have an __index__ that fails so */
        return refuse(e, name, "an integer", obj);
    }
    if (number == NULL) return foreign_argument(e);
    int overflow;
    *out = PyLong_AsLongLongAndOverflow(number, &overflow);
    if (overflow != 0 || *out == INT64_MIN)
        PyErr_Format(PyExc_ValueError,
                     "%s: argument '%s': expected an integer below 2**63, found %R", e->sig->name,
                     name, number);
    Py_DECREF(number);
    return !PyErr_Occurred();
}

/* A float (NumPy's, too) that is a whole number. */
static bool whole_to_size(pa_edge *e, const char *name, PyObject *obj, at_dim *out)
{
    double d = PyFloat_AsDouble(obj);
    if (PyErr_Occurred()) return false;
    if (!(d > -9.2e18 && d < 9.2e18) || d != (double)(int64_t)d)
        return refuse_value(e, name, "an integral size", obj);
    *out = AT_DIM((int64_t)d);
    return true;
}

/* Whether an array may stand for a size, by its rank and dtype; its value is left alone. */
static bool is_size(pa_edge *e, const char *name, at_array a)
{
    at_shape shape;
    at_dtype t;
    if (at_shape_of(&e->root, a, &shape) != AT_OK || at_dtype_of(&e->root, a, &t) != AT_OK) {
        pa_raise(e);
        return false;
    }
    if (shape.ndim == 0 && t >= AT_INT8 && t <= AT_UINT64) return true;
    PyErr_Format(PyExc_TypeError,
                 "%s: argument '%s': expected a scalar size (an int or a 0-d integral array), "
                 "found an array of %s with ndim=%d",
                 e->sig->name, name, at_dtype_name(t), shape.ndim);
    return false;
}

/* A 0-d integral array, read or kept as a symbol by its backend. */
static bool array_to_size(pa_edge *e, const char *name, PyObject *obj, const at_backend *be,
                          at_dim *out)
{
    if (be != &e->st->numpy) {
        e->sizes = be->traits & AT_WEAK ? pa_arrays_of(e->st, be->state) : be;
        e->sized = name;
    }
    if (be->traits & AT_WEAK) {
        at_dtype kind;
        be->dtype(&e->cx, (at_array){obj, be}, &kind);
        *out = (at_dim){0, {obj, be}};
        return kind == AT_INT64 || refuse(e, name, "an integral size", obj);
    }
    at_array a = {obj, be};
    if (!is_size(e, name, a)) return false;
    if (be->to_size(&e->cx, a, out) != AT_OK) {
        pa_raise(e);
        return false;
    }
    if (!at_is_nil(out->sym)) {
        at_keep(&e->root, out->sym);
    } else if (out->n == INT64_MIN) { /* which stands for "not given" */
        PyErr_Format(PyExc_ValueError, "%s: argument '%s': expected a size >= 0, found %lld",
                     e->sig->name, name, (long long)out->n);
        return false;
    }
    return true;
}

static bool numpy_scalar_to_size(pa_edge *e, const char *name, PyObject *obj, at_dim *out)
{
    if (PyIndex_Check(obj) && !pa_is_numpy_bool(obj)) {
        out->sym = AT_NIL;
        return to_int64(e, name, obj, &out->n);
    }
    if (!pa_is_numpy_float(obj)) return refuse(e, name, "a size (an int)", obj);
    return whole_to_size(e, name, obj, out);
}

static bool to_size(pa_edge *e, const char *name, PyObject *obj, at_dim *out)
{
    if (PyLong_CheckExact(obj)) {
        out->sym = AT_NIL;
        return to_int64(e, name, obj, &out->n);
    }
    if (obj == Py_None || PyBool_Check(obj)) return refuse(e, name, "a size (an int)", obj);
    if (pa_is_numpy_scalar(obj)) return numpy_scalar_to_size(e, name, obj, out);
    if (PyFloat_Check(obj)) return whole_to_size(e, name, obj, out);
    const at_backend *be = pa_backend_of(e->st, obj);
    if (be != NULL) return array_to_size(e, name, obj, be, out);
    if (PyErr_Occurred()) return false;
    if (PyIndex_Check(obj)) {
        out->sym = AT_NIL;
        return to_int64(e, name, obj, &out->n);
    }
    return refuse(e, name, "a size (an int)", obj);
}

PyObject *pa_to_size(pa_edge *e, const char *name, PyObject *obj, at_array *out)
{
    at_dim size;
    bool number = PyLong_CheckExact(obj) || pa_is_numpy_scalar(obj);
    const at_backend *be = number ? NULL : pa_backend_of(e->st, obj);
    if (be == NULL && PyErr_Occurred()) return NULL;
    if (be == NULL || (be->traits & AT_WEAK)) {
        if (!to_size(e, name, obj, &size)) return NULL;
        return at_is_nil(size.sym) ? PyLong_FromLongLong(size.n) : Py_NewRef(obj);
    }
    if (!is_size(e, name, (at_array){obj, be})) return NULL;
    if (!(be->traits & AT_JOINS)) *out = (at_array){obj, be};
    return Py_NewRef(obj);
}

static bool to_shape(pa_edge *e, const char *name, PyObject *obj)
{
    at_shape *s = &e->shape;
    if (!PyTuple_Check(obj) && !PyList_Check(obj)) {
        s->ndim = 1;
        return to_size(e, name, obj, &s->dim[0]);
    }
    obj = frozen(e, obj);
    if (obj == NULL) return false;
    Py_ssize_t n = PySequence_Fast_GET_SIZE(obj);
    if (n > AT_MAX_NDIM) {
        PyErr_Format(PyExc_ValueError, "%s: argument '%s': expected rank <= %d, found %zd",
                     e->sig->name, name, AT_MAX_NDIM, n);
        return false;
    }
    s->ndim = (int)n;
    for (Py_ssize_t k = 0; k < n; k++)
        if (!to_size(e, name, PySequence_Fast_GET_ITEM(obj, k), &s->dim[k])) return false;
    return true;
}

static bool room_for_cuts(pa_edge *e, int64_t n)
{
    e->cuts = PyMem_Calloc((size_t)n + 1, sizeof *e->cuts);
    if (e->cuts == NULL) PyErr_NoMemory();
    return e->cuts != NULL;
}

/* A vector of integers, read one by one; what cannot be read stays a symbol. */
static bool vector_to_cuts(pa_edge *e, const char *name, at_array vector, at_dim length,
                           at_cuts *out)
{
    at_frame *f = &e->root;
    const at_shape single = {.ndim = 0};
    if (!at_is_nil(length.sym) || length.n > INT32_MAX / 2)
        return refuse_value(e, name, "a vector of known length", vector.p);
    if (!room_for_cuts(e, length.n)) return false;
    for (int64_t i = 0; i < length.n; i++) {
        at_array part = at_slice(f, vector, AT_DIM(i), AT_DIM(i + 1), 0);
        at_array one = at_reshape(f, part, &single);
        bool fine = !at_failed(f) && array_to_size(e, name, one.p, one.be, &e->cuts[i]);
        at_drop(f, one);
        at_drop(f, part);
        if (!fine) return false;
    }
    *out = AT_CUTS((int)length.n, e->cuts);
    return true;
}

static bool list_to_cuts(pa_edge *e, const char *name, PyObject *obj, at_cuts *out)
{
    obj = frozen(e, obj);
    if (obj == NULL) return false;
    Py_ssize_t n = PyTuple_GET_SIZE(obj);
    if (!room_for_cuts(e, n)) return false;
    for (Py_ssize_t i = 0; i < n; i++)
        if (!to_size(e, name, PyTuple_GET_ITEM(obj, i), &e->cuts[i])) return false;
    *out = AT_CUTS((int)n, e->cuts);
    return true;
}

static bool to_cuts(pa_edge *e, const char *name, PyObject *obj, at_cuts *out)
{
    at_dim sections;
    at_shape shape = {.ndim = 0};
    if (PyList_Check(obj) || PyTuple_Check(obj)) return list_to_cuts(e, name, obj, out);
    const at_backend *be = PyLong_CheckExact(obj) ? NULL : pa_backend_of(e->st, obj);
    if (be == NULL && PyErr_Occurred()) return false;
    if (be != NULL && at_shape_of(&e->root, (at_array){obj, be}, &shape) != AT_OK) return false;
    if (shape.ndim == 1) return vector_to_cuts(e, name, (at_array){obj, be}, shape.dim[0], out);
    if (!to_size(e, name, obj, &sections)) return false;
    if (!at_is_nil(sections.sym))
        return refuse(e, name, "a number of sections that is known while tracing", obj);
    *out = AT_SECTIONS(sections.n);
    return true;
}

static bool to_axis(pa_edge *e, const char *name, PyObject *obj, int *out)
{
    int64_t axis;
    if (PyBool_Check(obj) || !PyIndex_Check(obj)) return refuse(e, name, "an int", obj);
    if (!to_int64(e, name, obj, &axis)) return false;
    if (axis < -AT_MAX_NDIM || axis >= AT_MAX_NDIM) {
        PyErr_Format(PyExc_ValueError, "%s: argument '%s': axis %lld is out of range", e->sig->name,
                     name, (long long)axis);
        return false;
    }
    *out = (int)axis;
    return true;
}

static bool to_axes(pa_edge *e, const char *name, PyObject *obj, at_axes *out)
{
    out->count = -1;
    if (obj == Py_None) return true;
    out->count = 1;
    if (!PyTuple_Check(obj) && !PyList_Check(obj)) return to_axis(e, name, obj, &out->axis[0]);
    obj = frozen(e, obj);
    if (obj == NULL) return false;
    Py_ssize_t n = PySequence_Fast_GET_SIZE(obj);
    if (n > AT_MAX_NDIM) {
        PyErr_Format(PyExc_ValueError, "%s: argument '%s': expected at most %d axes, found %zd",
                     e->sig->name, name, AT_MAX_NDIM, n);
        return false;
    }
    out->count = (int)n;
    for (Py_ssize_t k = 0; k < n; k++)
        if (!to_axis(e, name, PySequence_Fast_GET_ITEM(obj, k), &out->axis[k])) return false;
    return true;
}

/* --- dtypes ------------------------------------------------------------------------------------------ */

static at_dtype dtype_of_text(PyObject *obj)
{
    Py_ssize_t length;
    const char *text = PyUnicode_AsUTF8AndSize(obj, &length);
    if (text == NULL) PyErr_Clear();
    return text == NULL || strlen(text) != (size_t)length ? AT_NODTYPE : at_dtype_named(text);
}

bool pa_to_dtype(pa_state *st, const char *op, PyObject *obj, at_dtype *out)
{
    *out = AT_NODTYPE;
    if (obj == Py_None) return true;
    if (PyUnicode_Check(obj)) *out = dtype_of_text(obj);
    for (size_t i = 0; i < pa_framework_count && *out == AT_NODTYPE && !PyErr_Occurred(); i++)
        if (pa_frameworks[i]->dtype != NULL)
            *out = pa_frameworks[i]->dtype(pa_arrays_of(st, pa_frameworks[i]), obj);
    if (*out == AT_NODTYPE && !PyErr_Occurred()) *out = pa_numpy_dtype(obj);
    if (*out == AT_NODTYPE && !PyErr_Occurred()) *out = pa_space_dtype(st, obj);
    if (PyErr_Occurred()) return false;
    if (*out != AT_NODTYPE && *out != AT_OTHER) return true;
    PyErr_Format(
        PyExc_TypeError,
        "%s: argument 'dtype': expected a bool, integer or floating dtype (a name, NumPy's, "
        "or the framework's own), found %.80R",
        op, obj);
    return false;
}

/* --- conversion by role ------------------------------------------------------------------------------ */

static bool convert_array(pa_edge *e, int i, const pa_param *p, PyObject *obj, at_array *out)
{
    if (obj != Py_None) return pa_to_array(e, p->name, obj, &e->scalar[i], out);
    *out = AT_NIL;
    return strcmp(p->text, "None") == 0 || refuse(e, p->name, "an array or a scalar", obj);
}

/* A bound has no dtype that counts, so a number of NumPy is one of Python: it must not enter a trace, or move to a
 * device, to be read there. */
static bool convert_bound(pa_edge *e, int i, const pa_param *p, PyObject *obj, at_array *out)
{
    at_array number;
    if (!pa_is_numpy_scalar(obj)) return convert_array(e, i, p, obj, out);
    if (!own(e, PyObject_CallMethod(obj, "item", NULL), &e->st->numpy, &number)) return false;
    return convert_array(e, i, p, number.p, out);
}

static bool convert(pa_edge *e, int i, PyObject *obj, void *place)
{
    const pa_param *p = &e->sig->param[i];
    switch (p->role) {
    case PA_DATA:
    case PA_MAYBE:
    case PA_INDEX:
    case PA_MASK:
    case PA_VALUE:
    case PA_LIKE: return convert_array(e, i, p, obj, place);
    case PA_BOUND: return convert_bound(e, i, p, obj, place);
    case PA_LIST: return to_list(e, p->name, obj, place);
    case PA_SIZE: return to_size(e, p->name, obj, place);
    case PA_MAYBE_SIZE:
        *(at_dim *)place = AT_NO_DIM;
        return obj == Py_None || to_size(e, p->name, obj, place);
    case PA_SHAPE: *(const at_shape **)place = &e->shape; return to_shape(e, p->name, obj);
    case PA_CUTS: return to_cuts(e, p->name, obj, place);
    case PA_AXES: return to_axes(e, p->name, obj, place);
    case PA_AXIS:
        *(int *)place = AT_NO_AXIS;
        return obj == Py_None || to_axis(e, p->name, obj, place);
    case PA_FLAG: {
        int truth = PyObject_IsTrue(obj);
        *(bool *)place = truth > 0;
        return truth >= 0 || foreign_argument(e);
    }
    case PA_DTYPE:
        if (obj == Py_None && p->text[0] == '\0') return refuse(e, p->name, "a dtype", obj);
        return pa_to_dtype(e->st, e->sig->name, obj, place);
    case PA_DEVICE: *(const void **)place = obj == Py_None ? NULL : obj; return true;
    }
    return false;
}

/* --- binding ------------------------------------------------------------------------------------------ */

static PyObject *const *names_of(const pa_edge *e)
{
    return e->st->names + (size_t)e->sig->op * PA_MAX_PARAMS;
}

static int find(const pa_edge *e, PyObject *name)
{
    PyObject *const *names = names_of(e);
    for (int i = 0; i < e->sig->count; i++)
        if (names[i] == name) return i;
    for (int i = 0; i < e->sig->count; i++)
        if (PyUnicode_Compare(names[i], name) == 0) return i;
    return -1;
}

/* The place of a name that release 1.1.0 of the reference had for a parameter; -1 if it is none. */
static int find_former(const pa_edge *e, PyObject *name)
{
    if (e->sig->op != ATI_OP_partition_softmax ||
        PyUnicode_CompareWithASCIIString(name, "sum_partitions") != 0)
        return -1;
    return e->sig->count - 1; /* total_length */
}

static bool bind_keywords(pa_edge *e, PyObject *const *args, PyObject *kwnames)
{
    for (Py_ssize_t k = 0; k < PyTuple_GET_SIZE(kwnames); k++) {
        PyObject *name = PyTuple_GET_ITEM(kwnames, k);
        int i = find(e, name);
        if (i < 0) i = find_former(e, name);
        if (i < 0 || e->sig->param[i].how == PA_FIRST) {
            PyErr_Format(PyExc_TypeError, "%s() got an unexpected keyword argument '%U'",
                         e->sig->name, name);
            return false;
        }
        if (e->value[i] != NULL) {
            PyErr_Format(PyExc_TypeError, "%s() got multiple values for argument '%U'",
                         e->sig->name, name);
            return false;
        }
        e->value[i] = args[k];
    }
    return true;
}

/* Without flags, arguments that are keywords only are; with flags the call comes from _formula(), by position. */
static bool bind_positional(pa_edge *e, PyObject *const *args, Py_ssize_t nargs)
{
    int room = e->cx.flags ? e->sig->count : 0;
    while (room < e->sig->count && e->sig->param[room].how != PA_KW) room++;
    if (nargs > room) {
        PyErr_Format(PyExc_TypeError,
                     "%s() takes at most %d positional arguments (%zd given): too many positional "
                     "arguments",
                     e->sig->name, room, nargs);
        return false;
    }
    for (int i = 0; i < e->sig->count; i++) e->value[i] = i < nargs ? args[i] : NULL;
    return true;
}

/* A size of one framework beside arrays of another is refused as two arrays would be. */
static bool one_framework(const pa_edge *e, const void *into)
{
    for (int i = 0; i < e->sig->count && e->sizes != NULL; i++) {
        const pa_param *p = &e->sig->param[i];
        if (p->role > PA_LIKE) continue;
        const at_backend *be = ((const at_array *)((const char *)into + p->offset))->be;
        if (be == NULL || be == e->sizes || (be->traits & (AT_WEAK | AT_JOINS))) continue;
        PyErr_Format(PyExc_TypeError,
                     "%s: argument '%s' is a size of %s beside arrays of %s; one call takes one "
                     "framework (and NumPy)",
                     e->sig->name, e->sized, e->sizes->name, be->name);
        return false;
    }
    return true;
}

static bool convert_one(pa_edge *e, int i, void *into)
{
    PyObject *const *defaults = e->st->defaults + (size_t)e->sig->op * PA_MAX_PARAMS;
    PyObject *obj = e->value[i] != NULL ? e->value[i] : defaults[i];
    if (obj == NULL) {
        PyErr_Format(PyExc_TypeError, "%s() missing required argument '%s' (pos %d)", e->sig->name,
                     e->sig->param[i].name, i + 1);
        return false;
    }
    bool fine = convert(e, i, obj, (char *)into + e->sig->param[i].offset);
    if (!fine && !PyErr_Occurred()) pa_raise(e);
    return fine;
}

/* The dtype, of which an op has one at most, comes last: an array beside it may have to wake the framework that knows
 * it. */
static bool convert_all(pa_edge *e, void *into)
{
    int dtype = -1;
    for (int i = 0; i < e->sig->count; i++) {
        if (e->sig->param[i].role == PA_DTYPE)
            dtype = i;
        else if (!convert_one(e, i, into))
            return false;
    }
    return dtype < 0 || convert_one(e, dtype, into);
}

static void release(pa_edge *e)
{
    at_close(&e->root);
    PyMem_Free(e->cuts);
    PyMem_Free(e->list);
    PyMem_Free(e->list_scalars);
}

bool pa_begin(pa_edge *e, PyObject *module, const pa_signature *sig, unsigned flags,
              PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames, void *into)
{
    e->st = pa_state_of(module);
    e->sig = sig;
    e->cuts = NULL;
    e->list = NULL;
    e->list_scalars = NULL;
    e->sizes = NULL;
    at_open(&e->root, at_context_init(&e->cx, &e->st->numpy));
    e->cx.flags = flags;
    if (flags == 0 && e->st->cache.roots > 0) e->cx.memo = &pa_memo;
    if (bind_positional(e, args, nargs) &&
        (kwnames == NULL || bind_keywords(e, args + nargs, kwnames)) && convert_all(e, into) &&
        one_framework(e, into))
        return true;
    release(e);
    return false;
}

PyObject *pa_end(pa_edge *e, at_array result)
{
    PyObject *out = NULL;
    if (at_failed(&e->root))
        pa_raise(e);
    else
        out = at_detach(&e->root, result).p;
    release(e);
    return out;
}

/* From the last one on: that is the one that a frame finds first. */
PyObject *pa_end_all(pa_edge *e, at_list results, bool as_tuple)
{
    PyObject *all = NULL;
    if (at_failed(&e->root))
        pa_raise(e);
    else
        all = as_tuple ? PyTuple_New(results.count) : PyList_New(results.count);
    for (int i = results.count - 1; all != NULL && i >= 0; i--) {
        PyObject *one = at_detach(&e->root, results.array[i]).p;
        if (as_tuple)
            PyTuple_SET_ITEM(all, i, one);
        else
            PyList_SET_ITEM(all, i, one);
    }
    release(e);
    return all;
}

/* --- names and defaults, once per module --------------------------------------------------------------- */

static PyObject *default_of(const char *text)
{
    if (strcmp(text, "None") == 0) return Py_NewRef(Py_None);
    if (strcmp(text, "False") == 0) return Py_NewRef(Py_False);
    if (strchr(text, '.') != NULL) return PyFloat_FromDouble(atof(text));
    return PyLong_FromLong(atol(text));
}

static int init_param(pa_state *st, size_t at, const pa_param *p)
{
    st->names[at] = PyUnicode_InternFromString(p->name);
    if (st->names[at] == NULL) return -1;
    if (p->text[0] == '\0') return 0;
    st->defaults[at] = default_of(p->text);
    return st->defaults[at] == NULL ? -1 : 0;
}

int pa_args_init(pa_state *st)
{
    size_t places = (size_t)pa_signature_count * PA_MAX_PARAMS;
    st->names = PyMem_Calloc(places, sizeof(PyObject *));
    st->defaults = PyMem_Calloc(places, sizeof(PyObject *));
    if (st->names == NULL || st->defaults == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    for (int op = 0; op < pa_signature_count; op++) {
        const pa_signature *sig = pa_signature_at(op);
        for (int i = 0; sig != NULL && i < sig->count; i++)
            if (init_param(st, (size_t)op * PA_MAX_PARAMS + (size_t)i, &sig->param[i]) < 0)
                return -1;
    }
    return 0;
}

void pa_args_clear(pa_state *st)
{
    size_t places = (size_t)pa_signature_count * PA_MAX_PARAMS;
    for (size_t i = 0; st->names != NULL && i < places; i++) Py_CLEAR(st->names[i]);
    for (size_t i = 0; st->defaults != NULL && i < places; i++) Py_CLEAR(st->defaults[i]);
    PyMem_Free(st->names);
    PyMem_Free(st->defaults);
    st->names = st->defaults = NULL;
}
