/* Finding what the TensorFlow adapter needs, asking TensorFlow what it is doing, and the small things that all its slots
 * use.
 *
 * A name that this TensorFlow lacks is a loud failure at the first tensor, with its version, not a NULL call later. */
#include "tensorflow_state.h"

#include "core/dtype.h"

PyObject *pf_vectorcall(pa_frame *f, const at_backend *be, int fn, PyObject *const *args,
                        size_t count)
{
    const tensorflow_state *st = state_of(be);
    if (count != (size_t)PyTuple_GET_SIZE(st->names[fn]) && !f->failed) {
        PyErr_Format(PyExc_SystemError, "%R takes the arguments %R", st->fn[fn], st->names[fn]);
        return pa_keep(f, NULL);
    }
    return pa_vectorcall(f, st->fn[fn], args, 0, st->names[fn]);
}

/* --- dtypes ------------------------------------------------------------------------------------------------ */

at_dtype pf_find_dtype(const tensorflow_state *st, PyObject *dtype)
{
    if (dtype == st->dtype[AT_FLOAT32]) return AT_FLOAT32;
    if (dtype == st->dtype[AT_INT64]) return AT_INT64;
    for (int t = AT_BOOL; t < AT_OTHER; t++)
        if (dtype == st->dtype[t]) return (at_dtype)t;
    return AT_OTHER;
}

/* A dtype by its name. */
static at_dtype named(PyObject *text)
{
    const char *name = text != NULL && PyUnicode_Check(text) ? PyUnicode_AsUTF8(text) : NULL;
    at_dtype t = name == NULL ? AT_NODTYPE : at_dtype_named(name);
    PyErr_Clear();
    return t;
}

/* A dtype of a TensorFlow that no tensor has woken yet: its name names it. */
static at_dtype dtype_while_asleep(PyObject *obj)
{
    if (strcmp(Py_TYPE(obj)->tp_name, "DType") != 0) return AT_NODTYPE;
    PyObject *module = PyObject_GetAttrString((PyObject *)Py_TYPE(obj), "__module__");
    PyObject *name = PyObject_GetAttrString(obj, "name");
    const char *home = module != NULL && PyUnicode_Check(module) ? PyUnicode_AsUTF8(module) : NULL;
    bool ours = home != NULL && strncmp(home, "tensorflow.", 11) == 0;
    at_dtype t = ours ? named(name) : AT_NODTYPE;
    Py_XDECREF(module);
    Py_XDECREF(name);
    PyErr_Clear();
    return t;
}

at_dtype pf_dtype(const at_backend *be, PyObject *obj)
{
    if (state_of(be) == NULL) return dtype_while_asleep(obj);
    at_dtype t = pf_find_dtype(state_of(be), obj);
    return t == AT_OTHER ? AT_NODTYPE : t;
}

PyObject *pf_dtype_object(pa_frame *f, const at_backend *be, at_dtype t)
{
    if (t > AT_NODTYPE && t < AT_OTHER) return state_of(be)->dtype[t];
    if (!f->failed) PyErr_Format(PyExc_TypeError, "TensorFlow has no %s", at_dtype_name(t));
    return pa_keep(f, NULL);
}

/* AT_NODTYPE with an exception. Keras's variables say their dtype as a string. */
static at_dtype read_dtype(at_array a)
{
    const tensorflow_state *st = state_of(a.be);
    if (st->eager.dtype_number != NULL && pf_is_eager(st, a.p)) return pf_eager_dtype(st, a.p);
    PyObject *dtype = PyObject_GetAttr(a.p, st->attribute[GET_dtype]);
    if (dtype == NULL) return AT_NODTYPE;
    at_dtype t = PyUnicode_Check(dtype) ? named(dtype) : pf_find_dtype(st, dtype);
    Py_DECREF(dtype);
    return t == AT_NODTYPE ? AT_OTHER : t;
}

at_status pf_dtype_of(at_context *cx, at_array a, at_dtype *out)
{
    *out = read_dtype(a);
    return *out == AT_NODTYPE ? pa_foreign(cx) : AT_OK;
}

at_dtype pf_type(pa_frame *f, at_array a)
{
    at_dtype t = f->failed ? AT_OTHER : read_dtype(a);
    if (t != AT_NODTYPE) return t;
    pa_keep(f, NULL);
    return AT_OTHER;
}

PyObject *pf_cast(pa_frame *f, const at_backend *be, PyObject *x, at_dtype t)
{
    return pf_call(f, be, cast, x, pf_dtype_object(f, be, t));
}

PyObject *pf_bits(pa_frame *f, const at_backend *be, PyObject *x, at_dtype t)
{
    return pf_call(f, be, bitcast, x, pf_dtype_object(f, be, t));
}

/* --- tensors and numbers ------------------------------------------------------------------------------------- */

PyObject *pf_tensor(pa_frame *f, const at_backend *be, PyObject *x)
{
    if (f->failed || x == NULL) return NULL;
    PyTypeObject *tensor = (PyTypeObject *)state_of(be)->fn[FN_Tensor];
    return PyType_IsSubtype(Py_TYPE(x), tensor) ? x : pf_call(f, be, convert, x);
}

bool pf_is_eager(const tensorflow_state *st, PyObject *x)
{
    return PyType_IsSubtype(Py_TYPE(x), (PyTypeObject *)st->fn[FN_EagerTensor]);
}

bool pf_runs_now(const at_backend *be)
{
    if (PyErr_Occurred()) return true; /* nothing will run: the frame has failed */
    PyObject *answer = PyObject_CallNoArgs(state_of(be)->fn[FN_executing_eagerly]);
    bool yes = answer == Py_True;
    Py_XDECREF(answer);
    PyErr_Clear();
    return yes;
}

bool pf_is_tracing(const at_backend *be) { return !pf_runs_now(be); }

PyObject *pf_integer(pa_frame *f, const at_backend *be, int64_t value, at_dtype t)
{
    PyObject *number = t == AT_UINT64 && !f->failed
                           ? pa_keep(f, PyLong_FromUnsignedLongLong((uint64_t)value))
                           : pa_int(f, value);
    return pf_call(f, be, constant, number, pf_dtype_object(f, be, t));
}

PyObject *pf_float(pa_frame *f, const at_backend *be, double value, at_dtype t)
{
    PyObject *number = f->failed ? NULL : pa_keep(f, PyFloat_FromDouble(value));
    return pf_call(f, be, constant, number, pf_dtype_object(f, be, t));
}

PyObject *pf_vector(pa_frame *f, const at_backend *be, PyObject *sizes)
{
    if (f->failed || sizes == NULL) return pa_keep(f, NULL);
    at_dtype t = AT_INT32;
    bool known = true;
    PyObject **item = PySequence_Fast_ITEMS(sizes);
    for (Py_ssize_t k = 0; k < PySequence_Fast_GET_SIZE(sizes); k++) {
        known = known && PyLong_Check(item[k]);
        if (PyLong_Check(item[k]) && PyLong_AsLongLong(item[k]) > INT32_MAX) t = AT_INT64;
    }
    /* An eager op makes an int32 tensor of numbers by itself, and in a third of the time. */
    if (known && t == AT_INT32 && PySequence_Fast_GET_SIZE(sizes) > 0 && pf_runs_now(be))
        return sizes;
    if (known) return pf_call(f, be, constant, sizes, pf_dtype_object(f, be, t));
    if (t == AT_INT32) return pf_call(f, be, pack, sizes, pa_int(f, 0));
    pa_frame g; /* a size beyond int32 beside one of run time: all become int64 */
    pa_open(&g);
    PyObject *list = pa_keep(&g, PySequence_List(sizes));
    for (Py_ssize_t k = 0; list != NULL && k < PyList_GET_SIZE(list); k++) {
        PyObject *one = PyList_GET_ITEM(list, k);
        if (PyLong_Check(one)) continue;
        PyObject *wide = pf_cast(&g, be, one, t);
        if (wide == NULL || PyList_SetItem(list, k, Py_NewRef(wide)) < 0) break;
    }
    return pa_give(f, &g, pf_call(&g, be, pack, list, pa_int(&g, 0)));
}

PyObject *pf_size(pa_frame *f, const at_backend *be, at_dim size, at_dtype t)
{
    if (at_is_nil(size.sym)) return pf_integer(f, be, size.n, t);
    return t == AT_INT32 ? size.sym.p : pf_cast(f, be, size.sym.p, t);
}

PyObject *pf_index(pa_frame *f, at_array ids, at_dim size, at_dtype *out)
{
    at_dtype t = pf_type(f, ids);
    bool narrow = t == AT_INT32 || (t < AT_OTHER && at_dtype_size(t) < 4);
    *out = narrow && size.n <= INT32_MAX ? AT_INT32 : AT_INT64;
    PyObject *x = pf_tensor(f, ids.be, ids.p);
    if (t == *out) return x;
    return t == AT_UINT64 ? pf_bits(f, ids.be, x, AT_INT64) : pf_cast(f, ids.be, x, *out);
}

/* --- sizes ----------------------------------------------------------------------------------------------------- */

/* The list of sizes with None where only run time knows. */
static PyObject *static_sizes(pa_frame *f, const tensorflow_state *st, PyObject *x)
{
    PyObject *shape = f->failed ? NULL
                      : st->eager.sizes != NULL && pf_is_eager(st, x)
                          ? pf_eager_sizes(st, x)
                          : PyObject_GetAttr(x, st->attribute[GET_shape]);
    PyObject *list = NULL;
    if (shape != NULL && (PyTuple_Check(shape) || PyList_Check(shape)))
        list = PySequence_List(shape); /* of eager tensors, and of Keras's variables */
    else if (shape != NULL)
        list = PyObject_CallMethodNoArgs(shape, st->attribute[GET_as_list]);
    Py_XDECREF(shape);
    if (list == NULL && PyErr_ExceptionMatches(PyExc_ValueError)) {
        PyErr_Clear();
        PyErr_SetString(
            PyExc_ValueError,
            "expected a tensor whose rank is known, found one of unknown rank: give it a shape "
            "(tf.ensure_shape, or an input_signature with a rank)");
    }
    if (list != NULL && !PyList_Check(list)) {
        PyErr_Format(PyExc_TypeError, "expected a list as shape, found %s", Py_TYPE(list)->tp_name);
        Py_CLEAR(list);
    }
    return pa_keep(f, list);
}

PyObject *pf_sizes(pa_frame *f, const at_backend *be, PyObject *x)
{
    const tensorflow_state *st = state_of(be);
    if (f->failed || x == NULL) return NULL;
    PyObject *list = static_sizes(f, st, x), *all = NULL;
    pa_frame g; /* a tensor may have more axes than a frame places */
    pa_open(&g);
    for (Py_ssize_t k = 0; list != NULL && k < PyList_GET_SIZE(list); k++) {
        if (PyList_GET_ITEM(list, k) != Py_None) continue;
        if (all == NULL) all = pf_call(&g, be, shape, pf_tensor(&g, be, x), st->dtype[AT_INT32]);
        PyObject *index = PyLong_FromSsize_t(k);
        PyObject *size = all == NULL || index == NULL ? NULL : PyObject_GetItem(all, index);
        Py_XDECREF(index);
        if (size == NULL || PyList_SetItem(list, k, size) < 0) {
            list = pa_keep(f, NULL);
            break;
        }
    }
    pa_close(&g);
    return list;
}

int pf_rank(pa_frame *f, const at_backend *be, PyObject *x)
{
    if (f->failed || x == NULL) return -1;
    PyObject *list = static_sizes(f, state_of(be), x);
    return list == NULL ? -1 : (int)PyList_GET_SIZE(list);
}

at_dim pf_dim(const tensorflow_state *st, PyObject *sizes, int k)
{
    PyObject *size = PyList_GET_ITEM(sizes, k);
    if (PyLong_Check(size)) return AT_DIM(PyLong_AsLongLong(size));
    return (at_dim){0, {size, &st->home->tensorflow_symbol}};
}

/* --- devices ----------------------------------------------------------------------------------------------------- */

bool pf_several_devices(tensorflow_state *st)
{
    if (st->devices == 0) {
        PyObject *list = PyObject_CallNoArgs(st->fn[FN_devices]);
        st->devices = list != NULL && PyList_Check(list) ? (int)PyList_GET_SIZE(list) : 2;
        Py_XDECREF(list);
        PyErr_Clear();
    }
    return st->devices > 1;
}

/* The device of an eager tensor while ops run as they are called; a graph is placed by TensorFlow. */
PyObject *pf_device_of(pa_frame *f, const at_backend *be, at_array like)
{
    tensorflow_state *st = state_of(be);
    if (f->failed || like.be != be || !pf_several_devices(st) || !pf_runs_now(be)) return NULL;
    return pa_keep(f, PyObject_GetAttr(like.p, st->attribute[GET_device]));
}

PyObject *pf_enter_device(pa_frame *f, const at_backend *be, PyObject *device)
{
    const tensorflow_state *st = state_of(be);
    if (device == NULL) return NULL;
    PyObject *context = pf_call(f, be, device, device);
    if (context == NULL) return NULL;
    PyObject *entered = PyObject_CallMethodNoArgs(context, st->attribute[GET___enter__]);
    Py_XDECREF(entered);
    return entered == NULL ? pa_keep(f, NULL) : context;
}

void pf_leave_device(pa_frame *f, const at_backend *be, PyObject *context)
{
    if (context == NULL) return;
    PyObject *type, *error, *trace;
    PyErr_Fetch(&type, &error, &trace);
    PyObject *left = PyObject_CallMethodObjArgs(context, state_of(be)->attribute[GET___exit__],
                                                Py_None, Py_None, Py_None, NULL);
    if (left == NULL && type != NULL) PyErr_Clear();
    if (left == NULL) f->failed = true;
    if (type != NULL) PyErr_Restore(type, error, trace);
    Py_XDECREF(left);
}

/* --- tapes --------------------------------------------------------------------------------------------------------- */

/* Graphs may be differentiated later. An eager tensor counts where a tape or accumulator watches it; a variable counts
 * wherever one might. */
bool pf_tracked(at_context *cx, at_array a)
{
    (void)cx;
    const tensorflow_state *st = state_of(a.be);
    if (PyErr_Occurred()) return false;
    if (st->watched == NULL || !pf_is_eager(st, a.p) || !pf_runs_now(a.be)) return true;
    PyObject *list = PyList_New(1);
    if (list != NULL) PyList_SET_ITEM(list, 0, Py_NewRef((PyObject *)a.p));
    PyObject *answer = list == NULL ? NULL : PyObject_CallOneArg(st->watched, list);
    bool no = answer != NULL && PyLong_Check(answer) && PyLong_AsLong(answer) == 0;
    Py_XDECREF(list);
    Py_XDECREF(answer);
    PyErr_Clear();
    return !no;
}

/* --- waking -------------------------------------------------------------------------------------------------------- */

static int resolve_functions(tensorflow_state *st, PyObject *tensorflow)
{
    static const char *const path[] = {
#define X(name, where, names) where,
        FUNCTIONS(X)
#undef X
    };
    return pa_resolve_all(tensorflow, path, FN_COUNT, st->fn);
}

/* "x y" as a tuple of interned strings. */
static PyObject *names_tuple(const char *names)
{
    Py_ssize_t count = *names != '\0';
    for (const char *c = names; *c != '\0'; c++) count += *c == ' ';
    PyObject *tuple = PyTuple_New(count);
    for (Py_ssize_t k = 0; tuple != NULL && k < count; k++) {
        size_t length = strcspn(names, " ");
        PyObject *one = PyUnicode_FromStringAndSize(names, (Py_ssize_t)length);
        if (one == NULL) {
            Py_CLEAR(tuple);
            break;
        }
        PyUnicode_InternInPlace(&one);
        PyTuple_SET_ITEM(tuple, k, one);
        names += length + (names[length] == ' ');
    }
    return tuple;
}

static int make_names(tensorflow_state *st)
{
    static const char *const argument[] = {
#define X(name, where, names) names,
        FUNCTIONS(X)
#undef X
    };
    static const char *const attribute[] = {
#define X(name) #name,
        ATTRIBUTES(X)
#undef X
    };
    for (int i = 0; i < FN_COUNT; i++)
        if ((st->names[i] = names_tuple(argument[i])) == NULL) return -1;
    for (int i = 0; i < GET_COUNT; i++)
        if ((st->attribute[i] = PyUnicode_InternFromString(attribute[i])) == NULL) return -1;
    return 0;
}

static int resolve_dtypes(tensorflow_state *st, PyObject *tensorflow)
{
    for (int t = AT_BOOL; t < AT_OTHER; t++) {
        st->dtype[t] = PyObject_GetAttrString(tensorflow, at_dtype_name((at_dtype)t));
        if (st->dtype[t] == NULL) return -1;
    }
    return 0;
}

/* No public name answers this; without it every tensor counts as watched. */
static void resolve_tape(tensorflow_state *st)
{
    PyObject *module = pa_loaded("tensorflow.python.pywrap_tfe");
    if (module != NULL)
        st->watched = PyObject_GetAttrString(module, "TFE_Py_TapeSetPossibleGradientTypes");
    PyErr_Clear();
}

/* class InvalidArgumentError(tf.errors.InvalidArgumentError, IndexError) */
static int make_index_error(tensorflow_state *st)
{
    st->index_error = PyObject_CallFunction((PyObject *)&PyType_Type, "s(OO){ss}",
                                            "InvalidArgumentError", st->fn[FN_InvalidArgument],
                                            PyExc_IndexError, "__module__", "anytensor");
    return st->index_error == NULL ? -1 : 0;
}

void pf_state_free(tensorflow_state *st)
{
    for (int i = 0; i < FN_COUNT; i++) {
        Py_CLEAR(st->fn[i]);
        Py_CLEAR(st->names[i]);
    }
    for (int i = 0; i < GET_COUNT; i++) Py_CLEAR(st->attribute[i]);
    for (int i = 0; i < AT_OTHER; i++) Py_CLEAR(st->dtype[i]);
    Py_CLEAR(st->watched);
    Py_CLEAR(st->index_error);
    pf_eager_clear(&st->eager);
    PyMem_Free(st);
}

void pf_clear(at_backend *be)
{
    tensorflow_state *st = be->state;
    be->state = NULL;
    if (st != NULL) pf_state_free(st);
}

int pf_visit(at_backend *be, visitproc visit, void *arg)
{
    tensorflow_state *st = be->state;
    for (int i = 0; st != NULL && i < FN_COUNT; i++) Py_VISIT(st->fn[i]);
    for (int i = 0; st != NULL && i < AT_OTHER; i++) Py_VISIT(st->dtype[i]);
    if (st != NULL) Py_VISIT(st->watched);
    if (st != NULL) Py_VISIT(st->index_error);
    return 0;
}

tensorflow_state *pf_state_new(PyObject *tensorflow, pa_state *home)
{
    tensorflow_state *st = PyMem_Calloc(1, sizeof *st);
    if (st == NULL) {
        PyErr_NoMemory();
        return NULL;
    }
    st->home = home;
    resolve_tape(st);
    if (resolve_dtypes(st, tensorflow) == 0 && resolve_functions(st, tensorflow) == 0 &&
        make_names(st) == 0 && make_index_error(st) == 0) {
        pf_eager_wake(st, tensorflow);
        return st;
    }
    pf_state_free(st);
    pa_complain(tensorflow);
    return NULL;
}

/* The last class is what Keras's variables derive from; ragged and sparse tensors do not. */
int pf_owns(PyObject *module, PyTypeObject *type)
{
    return pa_derives(module, "Tensor", type) || pa_derives(module, "Variable", type) ||
           pa_derives(module, "__internal__.types.Tensor", type);
}

/* The graph of a tensor; variables hold values, and symbols have no graph of their own. */
PyObject *pf_trace(const at_backend *be, PyObject *x, PyObject **pulse)
{
    const tensorflow_state *st = state_of(be);
    (void)pulse;
    PyTypeObject *tensor = (PyTypeObject *)st->fn[FN_Tensor];
    if (pf_is_eager(st, x) || !PyType_IsSubtype(Py_TYPE(x), tensor)) return Py_NewRef(Py_None);
    return PyObject_GetAttrString(x, "graph");
}

/* A condition that the graph knows already, or else true: then the graph checks it as it runs. */
int pf_holds(PyObject *tensorflow, PyObject *condition)
{
    PyObject *value = PyObject_CallMethod(tensorflow, "get_static_value", "O", condition);
    int truth = value == NULL ? -1 : value == Py_None ? 1 : PyObject_IsTrue(value);
    Py_XDECREF(value);
    return truth;
}
