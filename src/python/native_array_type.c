/* anytensor.native.Array: a native array as a Python object, with DLPack and the buffer protocol as its doors.
 *
 * The object holds one reference of a native array and nothing else. What leaves through a door keeps the native
 * array alive by itself: a DLPack tensor by a reference of its own, a buffer through the object. A capsule has the
 * name of its form until a consumer takes the tensor and renames it; only an unconsumed one ends its tensor. */
#include "native_array_type.h"

#include "anytensor/dlpack.h"
#include "backends/native/dlpack_abi.h"
#include "kernels/move.h"
#include "kernels/view.h"

_Static_assert(sizeof(Py_ssize_t) == sizeof(int64_t),
               "buffers show the sizes and strides in place");

PyObject *pa_native_new(const pa_state *st, at_array owned)
{
    pa_native_object *self = PyObject_New(pa_native_object, st->native_type);
    if (self == NULL) {
        at_release(owned);
        return NULL;
    }
    self->array = owned;
    self->weakrefs = NULL;
    return (PyObject *)self;
}

static void dealloc(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    PyObject *error_type, *error, *trace;
    if (((pa_native_object *)self)->weakrefs != NULL) PyObject_ClearWeakRefs(self);
    PyErr_Fetch(&error_type, &error, &trace); /* another library's deleter may run Python */
    at_release(pa_native_of(self));
    PyErr_Restore(error_type, error, trace);
    PyObject_Free(self);
    Py_DECREF(type);
}

/* --- attributes --------------------------------------------------------------------------------------- */

static PyObject *get_shape(PyObject *self, void *closure)
{
    (void)closure;
    at_array a = pa_native_of(self);
    PyObject *tuple = PyTuple_New(at_native_ndim(a));
    for (int k = 0; tuple != NULL && k < at_native_ndim(a); k++) {
        PyObject *size = PyLong_FromLongLong(at_native_sizes(a)[k]);
        if (size == NULL)
            Py_CLEAR(tuple);
        else
            PyTuple_SET_ITEM(tuple, k, size);
    }
    return tuple;
}

static PyObject *get_dtype(PyObject *self, void *closure)
{
    (void)closure;
    return PyUnicode_InternFromString(at_dtype_name(at_native_dtype(pa_native_of(self))));
}

static PyObject *get_ndim(PyObject *self, void *closure)
{
    (void)closure;
    return PyLong_FromLong(at_native_ndim(pa_native_of(self)));
}

static PyObject *repr(PyObject *self)
{
    PyObject *shape = get_shape(self, NULL);
    if (shape == NULL) return NULL;
    PyObject *text =
        PyUnicode_FromFormat("<anytensor.native.Array %s %R>",
                             at_dtype_name(at_native_dtype(pa_native_of(self))), shape);
    Py_DECREF(shape);
    return text;
}

/* --- the number in an array of one ------------------------------------------------------------------------ */

static bool read_number(PyObject *self, double *number)
{
    const ati_host *from = view_of(pa_native_of(self));
    if (ati_k_count(from) != 1) {
        PyErr_Format(PyExc_TypeError,
                     "expected an array of one element as a number, found %lld elements",
                     (long long)ati_k_count(from));
        return false;
    }
    ati_host first = {.data = from->data, .dtype = from->dtype};
    ati_host to = ati_k_view(number, AT_FLOAT64, 0, NULL);
    ati_k_copy(&first, &to);
    return true;
}

static PyObject *to_float(PyObject *self)
{
    double number;
    return read_number(self, &number) ? PyFloat_FromDouble(number) : NULL;
}

/* Without it every array would be true. */
static int to_bool(PyObject *self)
{
    double number;
    return read_number(self, &number) ? number != 0 : -1;
}

/* --- the buffer protocol ------------------------------------------------------------------------------- */

/* As the struct module writes them; NULL where it has no letter. */
static const char *format_of(at_dtype dtype)
{
    static const char *const format[AT_OTHER] = {
        [AT_BOOL] = "?",   [AT_INT8] = "b",    [AT_INT16] = "h",   [AT_INT32] = "i",
        [AT_INT64] = "q",  [AT_UINT8] = "B",   [AT_UINT16] = "H",  [AT_UINT32] = "I",
        [AT_UINT64] = "Q", [AT_FLOAT16] = "e", [AT_FLOAT32] = "f", [AT_FLOAT64] = "d",
    };
    return format[dtype];
}

/* Why a buffer cannot be had as it is asked for, or NULL. view is filled. */
static const char *refusal(const Py_buffer *view, int flags)
{
    char order = 0;
    if ((flags & PyBUF_STRIDES) != PyBUF_STRIDES ||
        (flags & PyBUF_C_CONTIGUOUS) == PyBUF_C_CONTIGUOUS)
        order = 'C';
    else if ((flags & PyBUF_F_CONTIGUOUS) == PyBUF_F_CONTIGUOUS)
        order = 'F';
    else if ((flags & PyBUF_ANY_CONTIGUOUS) == PyBUF_ANY_CONTIGUOUS)
        order = 'A';
    if (view->format == NULL) return "bfloat16 has no buffer format: use DLPack, or astype() first";
    if (view->readonly && (flags & PyBUF_WRITABLE)) return "this native array is read-only";
    if (order != 0 && !PyBuffer_IsContiguous(view, order))
        return "this native array is not contiguous in the way asked for";
    return NULL;
}

static int get_buffer(PyObject *self, Py_buffer *view, int flags)
{
    at_array a = pa_native_of(self);
    const ati_host *host = view_of(a);
    *view = (Py_buffer){
        .buf = host->data,
        .len = (Py_ssize_t)(ati_k_count(host) * ati_k_itemsize(host->dtype)),
        .itemsize = (Py_ssize_t)ati_k_itemsize(host->dtype),
        .readonly = at_native_is_read_only(a),
        .ndim = host->ndim,
        .format = (char *)format_of(host->dtype),
        .shape = host->ndim > 0 ? (Py_ssize_t *)host->dim : NULL,
        .strides = host->ndim > 0 ? (Py_ssize_t *)host->stride : NULL,
    };
    const char *why = refusal(view, flags);
    if (why != NULL) {
        PyErr_SetString(PyExc_BufferError, why);
        return -1;
    }
    if (!(flags & PyBUF_FORMAT)) view->format = NULL;
    if ((flags & PyBUF_STRIDES) != PyBUF_STRIDES) view->strides = NULL;
    if (!(flags & PyBUF_ND)) {
        view->shape = NULL;
        view->ndim = 1;
    }
    view->obj = Py_NewRef(self);
    return 0;
}

/* np.asarray(x): through the buffer protocol, which NumPy tries by itself first. Here too, so that bfloat16 is an error
 * and not an array of one object. */
static PyObject *to_numpy(PyObject *self, PyObject *args, PyObject *kwargs)
{
    PyObject *memory = PyMemoryView_FromObject(self);
    PyObject *numpy = memory == NULL ? NULL : PyImport_ImportModule("numpy");
    PyObject *asarray = numpy == NULL ? NULL : PyObject_GetAttrString(numpy, "asarray");
    PyObject *first = asarray == NULL ? NULL : PyTuple_Pack(1, memory);
    PyObject *all = first == NULL ? NULL : PySequence_Concat(first, args);
    PyObject *array = all == NULL ? NULL : PyObject_Call(asarray, all, kwargs);
    Py_XDECREF(memory);
    Py_XDECREF(numpy);
    Py_XDECREF(asarray);
    Py_XDECREF(first);
    Py_XDECREF(all);
    return array;
}

/* --- DLPack, out --------------------------------------------------------------------------------------- */

static const char plain_name[] = "dltensor", versioned_name[] = "dltensor_versioned";
static const char used_plain_name[] = "used_dltensor",
                  used_versioned_name[] = "used_dltensor_versioned";

static void end_plain_capsule(PyObject *capsule)
{
    if (!PyCapsule_IsValid(capsule, plain_name)) return; /* a consumer has it */
    struct DLManagedTensor *managed = PyCapsule_GetPointer(capsule, plain_name);
    managed->deleter(managed);
}

static void end_versioned_capsule(PyObject *capsule)
{
    if (!PyCapsule_IsValid(capsule, versioned_name)) return;
    struct DLManagedTensorVersioned *managed = PyCapsule_GetPointer(capsule, versioned_name);
    managed->deleter(managed);
}

/* Everything that stands in the way of sharing memory is a BufferError. */
static PyObject *raise_status(at_context *cx)
{
    PyErr_SetString(cx->status == AT_ENOMEM ? PyExc_MemoryError : PyExc_BufferError,
                    at_message(cx));
    return NULL;
}

static PyObject *plain_capsule(at_array a, at_dlpack_rule rule)
{
    at_context cx;
    struct DLManagedTensor *managed;
    if (at_to_dlpack(at_context_init(&cx, NULL), a, rule, &managed) != AT_OK)
        return raise_status(&cx);
    PyObject *capsule = PyCapsule_New(managed, plain_name, end_plain_capsule);
    if (capsule == NULL) managed->deleter(managed);
    return capsule;
}

static PyObject *versioned_capsule(at_array a, at_dlpack_rule rule)
{
    at_context cx;
    struct DLManagedTensorVersioned *managed;
    if (at_to_dlpack_versioned(at_context_init(&cx, NULL), a, rule, &managed) != AT_OK)
        return raise_status(&cx);
    PyObject *capsule = PyCapsule_New(managed, versioned_name, end_versioned_capsule);
    if (capsule == NULL) managed->deleter(managed);
    return capsule;
}

/* Two integers; false with an exception. */
static bool read_pair(PyObject *obj, const char *name, long pair[2])
{
    if (!PyTuple_Check(obj) || PyTuple_GET_SIZE(obj) != 2) {
        PyErr_Format(PyExc_TypeError, "%s: expected a tuple of two integers, found %.80R", name,
                     obj);
        return false;
    }
    for (int i = 0; i < 2; i++) pair[i] = PyLong_AsLong(PyTuple_GET_ITEM(obj, i));
    return !PyErr_Occurred();
}

static bool read_copy(PyObject *obj, at_dlpack_rule *rule)
{
    if (obj != Py_None && !PyBool_Check(obj)) {
        PyErr_Format(PyExc_TypeError, "copy: expected True, False or None, found %.80R", obj);
        return false;
    }
    *rule = obj == Py_None   ? AT_DLPACK_COPY_IF_NEEDED
            : obj == Py_True ? AT_DLPACK_COPY
                             : AT_DLPACK_SHARE;
    return true;
}

static bool check_device(PyObject *obj)
{
    long device[2] = {ATI_DL_CPU, 0};
    if (obj != Py_None && !read_pair(obj, "dl_device", device)) return false;
    if (device[0] == ATI_DL_CPU && device[1] == 0) return true;
    PyErr_Format(PyExc_BufferError,
                 "dl_device: a native array is on the CPU, (1, 0), and goes to no other device, "
                 "found (%ld, %ld)",
                 device[0], device[1]);
    return false;
}

PyDoc_STRVAR(
    dlpack_doc,
    "__dlpack__($self, /, *, stream=None, max_version=None, dl_device=None, copy=None)\n--\n\n"
    "A DLPack capsule that keeps the elements alive, also when the array is gone.\n\n"
    "max_version  (major, minor) that the consumer knows; from (1, 0) on the capsule is a\n"
    "             \"dltensor_versioned\", otherwise a \"dltensor\", which a read-only array "
    "refuses\n"
    "copy         True: always; False: never; None: where strides or alignment cannot be shared\n"
    "Errors       BufferError for what cannot be shared, a stream or another device.");

static PyObject *dlpack(PyObject *self, PyObject *args, PyObject *kwargs)
{
    static char *words[] = {"stream", "max_version", "dl_device", "copy", NULL};
    PyObject *stream = Py_None, *version = Py_None, *device = Py_None, *copy = Py_None;
    long known[2] = {0, 0};
    at_dlpack_rule rule;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|$OOOO:__dlpack__", words, &stream, &version,
                                     &device, &copy))
        return NULL;
    if (version != Py_None && !read_pair(version, "max_version", known)) return NULL;
    if (!check_device(device) || !read_copy(copy, &rule)) return NULL;
    if (stream != Py_None) {
        PyErr_SetString(PyExc_BufferError, "stream: the CPU has none, expected None");
        return NULL;
    }
    at_array a = pa_native_of(self);
    return known[0] >= 1 ? versioned_capsule(a, rule) : plain_capsule(a, rule);
}

static PyObject *dlpack_device(PyObject *self, PyObject *unused)
{
    (void)self;
    (void)unused;
    return Py_BuildValue("(ii)", ATI_DL_CPU, 0);
}

/* --- DLPack, in ---------------------------------------------------------------------------------------- */

static PyObject *not_a_tensor(PyObject *capsule)
{
    const char *name = PyCapsule_GetName(capsule);
    if (PyErr_Occurred()) return NULL;
    bool used = name != NULL && strncmp(name, "used_", 5) == 0;
    PyErr_Format(PyExc_ValueError, "from_dlpack: %s, found one named '%s'",
                 used ? "a DLPack capsule can be consumed once" : "expected a DLPack capsule",
                 name == NULL ? "" : name);
    return NULL;
}

/* A copy goes through the library's own door, out and in. */
static at_array copied(at_frame *f, at_array a)
{
    struct DLManagedTensorVersioned *managed = NULL;
    at_to_dlpack_versioned(f->cx, a, AT_DLPACK_COPY, &managed);
    at_array copy = managed == NULL ? AT_NIL : at_from_dlpack_versioned(f, managed);
    if (managed != NULL && at_is_nil(copy)) managed->deleter(managed);
    return copy;
}

/* The tensor's ownership passes where the capsule is renamed, and only there. */
static at_array take_tensor(at_frame *f, PyObject *capsule, bool is_versioned)
{
    const char *name = is_versioned ? versioned_name : plain_name;
    void *managed = PyCapsule_GetPointer(capsule, name);
    at_array a = is_versioned ? at_from_dlpack_versioned(f, managed) : at_from_dlpack(f, managed);
    if (!at_is_nil(a))
        PyCapsule_SetName(capsule, is_versioned ? used_versioned_name : used_plain_name);
    return a;
}

static PyObject *take_capsule(const pa_state *st, PyObject *capsule, at_dlpack_rule rule)
{
    bool is_versioned = PyCapsule_IsValid(capsule, versioned_name);
    if (!is_versioned && !PyCapsule_IsValid(capsule, plain_name)) return not_a_tensor(capsule);
    at_context cx;
    at_frame root, *f = at_open(&root, at_context_init(&cx, NULL));
    at_array a = take_tensor(f, capsule, is_versioned);
    if (!at_is_nil(a) && rule == AT_DLPACK_COPY) a = copied(f, a);
    PyObject *result = at_failed(f) ? raise_status(&cx) : pa_native_new(st, at_detach(f, a));
    at_close(f);
    return result;
}

/* x.__dlpack__() in the newest form that x knows. A producer from before 2023.12 of the standard has no keywords, or
 * says that it does not implement them; one that
 * is asked never to copy has to know what that means. */
static PyObject *ask_for_capsule(PyObject *x, at_dlpack_rule rule)
{
    PyObject *method = PyObject_GetAttrString(x, "__dlpack__"), *none = PyTuple_New(0);
    PyObject *keywords = rule == AT_DLPACK_SHARE
                             ? Py_BuildValue("{s(ii)sO}", "max_version", 1, 0, "copy", Py_False)
                             : Py_BuildValue("{s(ii)}", "max_version", 1, 0);
    PyObject *capsule = NULL;
    if (method != NULL && none != NULL && keywords != NULL)
        capsule = PyObject_Call(method, none, keywords);
    if (capsule == NULL && method != NULL && rule != AT_DLPACK_SHARE &&
        (PyErr_ExceptionMatches(PyExc_TypeError) ||
         PyErr_ExceptionMatches(PyExc_NotImplementedError))) {
        PyErr_Clear();
        capsule = PyObject_CallNoArgs(method);
    }
    Py_XDECREF(method);
    Py_XDECREF(none);
    Py_XDECREF(keywords);
    return capsule;
}

/* Asked first, since a producer on another device may have to copy or to wait before it says so. */
static bool is_on_cpu(PyObject *x)
{
    long device[2];
    PyObject *pair = PyObject_CallMethod(x, "__dlpack_device__", NULL);
    if (pair == NULL && PyErr_ExceptionMatches(PyExc_AttributeError)) {
        PyErr_Format(PyExc_TypeError,
                     "from_dlpack: expected an array with __dlpack__ and __dlpack_device__, found "
                     "%s",
                     Py_TYPE(x)->tp_name);
        return false;
    }
    bool fine = pair != NULL && read_pair(pair, "__dlpack_device__", device);
    Py_XDECREF(pair);
    if (!fine || device[0] == ATI_DL_CPU) return fine;
    PyErr_Format(
        PyExc_BufferError,
        "from_dlpack: expected an array in the CPU's memory (device type %d), found device "
        "type %ld",
        ATI_DL_CPU, device[0]);
    return false;
}

PyObject *pa_native_from_dlpack(PyObject *module, PyObject *const *args, Py_ssize_t nargs)
{
    at_dlpack_rule rule;
    if (nargs != 2) {
        PyErr_SetString(PyExc_TypeError, "_native_from_dlpack(x, copy)");
        return NULL;
    }
    if (!read_copy(args[1], &rule)) return NULL;
    bool is_capsule = PyCapsule_CheckExact(args[0]);
    if (!is_capsule && !is_on_cpu(args[0])) return NULL;
    PyObject *capsule = is_capsule ? Py_NewRef(args[0]) : ask_for_capsule(args[0], rule);
    if (capsule == NULL) return NULL;
    PyObject *result = NULL;
    if (PyCapsule_CheckExact(capsule))
        result = take_capsule(pa_state_of(module), capsule, rule);
    else
        PyErr_Format(PyExc_TypeError, "from_dlpack: __dlpack__ gave no capsule, but %s",
                     Py_TYPE(capsule)->tp_name);
    Py_DECREF(capsule);
    return result;
}

PyObject *pa_native_live(PyObject *module, PyObject *unused)
{
    (void)module;
    (void)unused;
    return PyLong_FromLongLong(at_native_live());
}

/* --- the type ------------------------------------------------------------------------------------------ */

static PyGetSetDef attributes[] = {
    {"shape", get_shape, NULL, "Sizes of the axes, a tuple.", NULL},
    {"dtype", get_dtype, NULL, "Name of the element type, such as 'float32' or 'bfloat16'.", NULL},
    {"ndim", get_ndim, NULL, "Number of axes.", NULL},
    {NULL, NULL, NULL, NULL, NULL}};

static PyMethodDef methods[] = {
    {"__dlpack__", (PyCFunction)(void (*)(void))dlpack, METH_VARARGS | METH_KEYWORDS, dlpack_doc},
    {"__array__", (PyCFunction)(void (*)(void))to_numpy, METH_VARARGS | METH_KEYWORDS,
     "__array__($self, dtype=None, copy=None)\n--\n\nThe elements as a NumPy array, shared where "
     "they can be."},
    {"__dlpack_device__", dlpack_device, METH_NOARGS,
     "__dlpack_device__($self, /)\n--\n\n(1, 0): the CPU."},
    {NULL, NULL, 0, NULL}};

static PyMemberDef members[] = {
    {"__weaklistoffset__", T_PYSSIZET, offsetof(pa_native_object, weakrefs), READONLY, NULL},
    {NULL, 0, 0, 0, NULL}};

PyDoc_STRVAR(doc,
             "An array of the library's own, in the CPU's memory; made by from_dlpack(), and by "
             "every\nfunction of anytensor that is given one. Immutable here; what shares its "
             "memory may not be.");

static PyType_Slot slots[] = {{Py_tp_dealloc, dealloc},      {Py_nb_float, to_float},
                              {Py_nb_bool, to_bool},         {Py_tp_repr, repr},
                              {Py_tp_getset, attributes},    {Py_tp_methods, methods},
                              {Py_tp_members, members},      {Py_tp_doc, (void *)doc},
                              {Py_bf_getbuffer, get_buffer}, {0, NULL}};

static PyType_Spec spec = {.name = "anytensor.native.Array",
                           .basicsize = sizeof(pa_native_object),
                           .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION |
                                    Py_TPFLAGS_IMMUTABLETYPE,
                           .slots = slots};

PyTypeObject *pa_native_type(PyObject *module)
{
    return (PyTypeObject *)PyType_FromModuleAndSpec(module, &spec, NULL);
}
