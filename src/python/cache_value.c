/* What the cache may keep, and how.
 *
 * A value with a traced array is kept only under a key that is traced in the same trace: under an array that holds
 * values it would outlive its trace. So the value is looked through: builtin containers in any depth, and the
 * attributes of other objects. Two kinds of arrays are not kept alive by it: the key itself, since the entry could never
 * die, and arrays of a TensorFlow graph, which the graph keeps by itself. Their places hold weak references. */
#include "cache.h"

/* --- places ---------------------------------------------------------------------------------------------- */

typedef struct place {
    PyObject_HEAD
    PyObject *ref;
} place;

static int place_traverse(PyObject *self, visitproc visit, void *arg)
{
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(((place *)self)->ref);
    return 0;
}

static int place_clear(PyObject *self)
{
    Py_CLEAR(((place *)self)->ref);
    return 0;
}

static void place_dealloc(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    PyObject_GC_UnTrack(self);
    place_clear(self);
    type->tp_free(self);
    Py_DECREF(type);
}

int pa_place_init(pa_state *st)
{
    static PyType_Slot slots[] = {{Py_tp_traverse, place_traverse},
                                  {Py_tp_clear, place_clear},
                                  {Py_tp_dealloc, place_dealloc},
                                  {0, NULL}};
    static PyType_Spec spec = {
        "anytensor._core._Place", sizeof(place), 0,
        Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_DISALLOW_INSTANTIATION, slots};
    st->cache.place_type = (PyTypeObject *)PyType_FromModuleAndSpec(st->module, &spec, NULL);
    return st->cache.place_type == NULL ? -1 : 0;
}

static PyObject *new_place(pa_state *st, PyObject *obj)
{
    PyObject *ref = PyWeakref_NewRef(obj, NULL);
    place *p = ref == NULL ? NULL : PyObject_GC_New(place, st->cache.place_type);
    if (p == NULL) {
        Py_XDECREF(ref);
        return NULL;
    }
    p->ref = ref;
    PyObject_GC_Track(p);
    return (PyObject *)p;
}

/* --- looking through a value -------------------------------------------------------------------------------- */

static int look_at(pa_look *look, PyObject *obj, int deep);

enum {
    OPAQUE, /* what cannot be taken apart and put together again: attributes, sets, subclasses of containers */
    OBJECT, /* builtin containers above it only: its attributes may be looked at */
};

static bool is_key(const pa_look *look, PyObject *obj)
{
    for (Py_ssize_t i = 0; i < look->keys; i++)
        if (look->key[i] == obj) return true;
    return false;
}

static bool weakly(PyObject *obj) { return PyType_SUPPORTS_WEAKREFS(Py_TYPE(obj)); }

/* An array (or what cannot be kept alive) in a place; what stands where no place can be refuses the value. */
static void needs_place(pa_look *look, PyObject *obj, int deep)
{
    if (!weakly(obj)) return; /* a key that is kept alive by its entry, anyway */
    look->places = true;
    if (deep == OPAQUE) look->refuse = true;
}

/* Whether the trace is one of a key's; functorch's are numbers. */
static int among_traces(const pa_look *look, PyObject *trace)
{
    for (Py_ssize_t i = 0; i < look->keys; i++) {
        PyObject *one = PyList_GET_ITEM(look->traces, i);
        if (one == trace) return 1;
        if (PyLong_CheckExact(one) && PyLong_CheckExact(trace))
            return PyObject_RichCompareBool(one, trace, Py_EQ);
    }
    return 0;
}

static bool some_key_is_traced(const pa_look *look)
{
    for (Py_ssize_t i = 0; i < look->keys; i++)
        if (PyList_GET_ITEM(look->traces, i) != Py_None) return true;
    return false;
}

/* Whether an array is a view that keeps a key alive: NumPy's and torch's know what they look at. */
static int is_view_of_key(const pa_look *look, const at_backend *be, PyObject *obj)
{
    const char *base = be == &look->st->numpy ? "base" : be == &look->st->torch ? "_base" : NULL;
    PyObject *at = Py_NewRef(obj);
    bool found = false;
    while (base != NULL && !found && at != Py_None && PyObject_HasAttrString(at, base)) {
        Py_SETREF(at, PyObject_GetAttrString(at, base));
        if (at == NULL) return -1;
        found = at != Py_None && is_key(look, at) && weakly(at);
    }
    Py_DECREF(at);
    return found;
}

static int look_at_array(pa_look *look, const at_backend *be, PyObject *obj, int deep)
{
    PyObject *pulse = NULL, *trace = pa_trace_of(look->st, be, obj, &pulse);
    int status = trace == NULL ? -1 : 0;
    if (trace != NULL && trace != Py_None) {
        int ours = among_traces(look, trace);
        if (ours < 0) status = -1;
        if (ours == 0) look->refuse = true;
        if (be == &look->st->tensorflow) needs_place(look, obj, deep);
    }
    if (status == 0 && pulse != NULL) status = PyList_Append(look->pulses, pulse);
    int view = status < 0 ? -1 : is_view_of_key(look, be, obj);
    if (view > 0) look->refuse = true;
    Py_XDECREF(trace);
    Py_XDECREF(pulse);
    return view < 0 ? -1 : 0;
}

/* Whether a container has been seen; then it has been looked through, or is being so further up. What it takes to be
 * whole depends on where it stands. */
static int seen(pa_look *look, PyObject *obj, int deep)
{
    PyObject *address = PyLong_FromVoidPtr((char *)obj + deep);
    int found = address == NULL ? -1 : PySet_Contains(look->seen, address);
    if (found == 0 && PySet_Add(look->seen, address) < 0) found = -1;
    Py_XDECREF(address);
    return found;
}

static int look_at_each(pa_look *look, PyObject *container, int deep)
{
    PyObject *items = PySequence_Tuple(container);
    int status = items == NULL ? -1 : 0;
    for (Py_ssize_t i = 0; status == 0 && i < PyTuple_GET_SIZE(items); i++)
        status = look_at(look, PyTuple_GET_ITEM(items, i), deep);
    Py_XDECREF(items);
    return status;
}

static int look_at_dict(pa_look *look, PyObject *dict, int deep)
{
    PyObject *keys = PyDict_Keys(dict), *values = keys == NULL ? NULL : PyDict_Values(dict);
    int status = values == NULL ? -1 : look_at_each(look, keys, OPAQUE);
    if (status == 0) status = look_at_each(look, values, deep);
    Py_XDECREF(keys);
    Py_XDECREF(values);
    return status;
}

/* Attributes of an object that is neither array nor container; not those of the objects behind it. */
static int look_at_object(pa_look *look, PyObject *obj)
{
    if (PyType_Check(obj) || PyModule_Check(obj) || PyCallable_Check(obj)) return 0;
    PyObject *attributes = PyObject_GetAttrString(obj, "__dict__");
    if (attributes == NULL) {
        bool none = PyErr_ExceptionMatches(PyExc_AttributeError);
        if (none) PyErr_Clear();
        return none ? 0 : -1;
    }
    int status = PyDict_Check(attributes) ? look_at_dict(look, attributes, OPAQUE) : 0;
    Py_DECREF(attributes);
    return status;
}

static bool is_container(PyObject *obj)
{
    return PyTuple_Check(obj) || PyList_Check(obj) || PyDict_Check(obj) || PyAnySet_Check(obj);
}

static int look_into(pa_look *look, PyObject *obj, int deep)
{
    int before = seen(look, obj, deep);
    if (before != 0) return before < 0 ? -1 : 0;
    if (Py_EnterRecursiveCall(" while looking through a value for the cache")) return -1;
    bool whole = PyTuple_Check(obj) || PyList_CheckExact(obj) || PyDict_CheckExact(obj);
    deep = whole ? deep : OPAQUE;
    int status = !is_container(obj)  ? look_at_object(look, obj)
                 : PyDict_Check(obj) ? look_at_dict(look, obj, deep)
                                     : look_at_each(look, obj, deep);
    Py_LeaveRecursiveCall();
    return status;
}

static int look_at(pa_look *look, PyObject *obj, int deep)
{
    if (is_key(look, obj)) {
        needs_place(look, obj, deep);
        return 0;
    }
    if (obj == Py_None || PyLong_CheckExact(obj) || PyFloat_CheckExact(obj) || PyBool_Check(obj) ||
        PyUnicode_Check(obj))
        return 0;
    if (is_container(obj)) return look_into(look, obj, deep);
    const at_backend *be = pa_backend_of(look->st, obj);
    if (be == NULL && PyErr_Occurred()) return -1;
    if (be == NULL) return deep == OPAQUE ? 0 : look_into(look, obj, deep);
    if (!(be->traits & AT_WEAK)) return look_at_array(look, be, obj, deep);
    if (!some_key_is_traced(look)) look->refuse = true; /* a size that is traced */
    return 0;
}

static int trace_keys(pa_look *look)
{
    for (Py_ssize_t i = 0; i < look->keys; i++) {
        PyObject *pulse = NULL, *obj = look->key[i];
        const at_backend *be = pa_backend_of(look->st, obj);
        if (be == NULL && PyErr_Occurred()) return -1;
        PyObject *trace = be == NULL ? Py_NewRef(Py_None) : pa_trace_of(look->st, be, obj, &pulse);
        Py_XDECREF(pulse);
        if (trace == NULL || PyList_Append(look->traces, trace) < 0) {
            Py_XDECREF(trace);
            return -1;
        }
        Py_DECREF(trace);
    }
    return 0;
}

int pa_look_through(pa_look *look, pa_state *st, PyObject *const *key, Py_ssize_t keys,
                    PyObject *value)
{
    *look = (pa_look){.st = st, .key = key, .keys = keys};
    look->traces = PyList_New(0);
    look->pulses = PyList_New(0);
    look->seen = PySet_New(NULL);
    if (look->traces == NULL || look->pulses == NULL || look->seen == NULL) return -1;
    return trace_keys(look) < 0 ? -1 : look_at(look, value, OBJECT);
}

void pa_look_close(pa_look *look)
{
    Py_CLEAR(look->traces);
    Py_CLEAR(look->pulses);
    Py_CLEAR(look->seen);
}

/* --- a value with places ---------------------------------------------------------------------------------------- */

/* What stands for a leaf in the other form; a new reference. */
typedef PyObject *change(const void *with, PyObject *leaf);

static PyObject *changed(const void *with, change *leaf, PyObject *obj);

/* The changed items as a tuple; the sequence itself where none has changed. */
static PyObject *changed_items(const void *with, change *leaf, PyObject *sequence)
{
    PyObject *items = PySequence_Tuple(sequence);
    PyObject *out = items == NULL ? NULL : PyTuple_New(PyTuple_GET_SIZE(items));
    bool same = true;
    for (Py_ssize_t i = 0; out != NULL && i < PyTuple_GET_SIZE(items); i++) {
        PyObject *one = changed(with, leaf, PyTuple_GET_ITEM(items, i));
        same = same && one == PyTuple_GET_ITEM(items, i);
        if (one == NULL)
            Py_CLEAR(out);
        else
            PyTuple_SET_ITEM(out, i, one);
    }
    Py_XDECREF(items);
    if (out != NULL && same) Py_SETREF(out, Py_NewRef(sequence));
    return out;
}

/* Of the tuple's own class, which may be a named tuple. */
static PyObject *changed_tuple(const void *with, change *leaf, PyObject *obj)
{
    PyObject *items = changed_items(with, leaf, obj);
    if (items == NULL || items == obj || PyTuple_CheckExact(obj)) return items;
    PyObject *args = PyTuple_Pack(1, items);
    PyObject *out = args == NULL ? NULL : PyTuple_Type.tp_new(Py_TYPE(obj), args, NULL);
    Py_XDECREF(args);
    Py_DECREF(items);
    return out;
}

static PyObject *changed_list(const void *with, change *leaf, PyObject *obj)
{
    PyObject *items = changed_items(with, leaf, obj);
    if (items == NULL || items == obj) return items;
    PyObject *out = PySequence_List(items);
    Py_DECREF(items);
    return out;
}

static PyObject *changed_dict(const void *with, change *leaf, PyObject *obj)
{
    PyObject *out = PyDict_Copy(obj), *name, *value;
    Py_ssize_t at = 0;
    while (out != NULL && PyDict_Next(out, &at, &name, &value)) {
        PyObject *one =
            changed(with, leaf, value); /* a name that is there: the dict stays as it is */
        if (one == NULL || PyDict_SetItem(out, name, one) < 0) Py_CLEAR(out);
        Py_XDECREF(one);
    }
    return out;
}

static PyObject *changed(const void *with, change *leaf, PyObject *obj)
{
    if (Py_EnterRecursiveCall(" in a value of the cache")) return NULL;
    PyObject *out = PyTuple_Check(obj)       ? changed_tuple(with, leaf, obj)
                    : PyList_CheckExact(obj) ? changed_list(with, leaf, obj)
                    : PyDict_CheckExact(obj) ? changed_dict(with, leaf, obj)
                                             : leaf(with, obj);
    Py_LeaveRecursiveCall();
    return out;
}

static PyObject *leaf_in(const void *with, PyObject *obj)
{
    const pa_look *look = with;
    bool own = is_key(look, obj) && weakly(obj);
    const at_backend *be = own ? NULL : pa_backend_at_hand(look->st, obj);
    if (!own && (be == NULL || be != &look->st->tensorflow)) return Py_NewRef(obj);
    PyObject *pulse = NULL, *trace = own ? NULL : pa_trace_of(look->st, be, obj, &pulse);
    Py_XDECREF(pulse);
    Py_XDECREF(trace);
    if (!own && (trace == NULL || trace == Py_None)) return trace ? Py_NewRef(obj) : NULL;
    return new_place(look->st, obj);
}

PyObject *pa_value_in(const pa_look *look, PyObject *value)
{
    return look->places ? changed(look, leaf_in, value) : Py_NewRef(value);
}

static PyObject *leaf_out(const void *with, PyObject *obj)
{
    const pa_state *st = with;
    if (Py_TYPE(obj) != st->cache.place_type) return Py_NewRef(obj);
    PyObject *live = PyWeakref_GET_OBJECT(((place *)obj)->ref);
    return live == Py_None ? NULL : Py_NewRef(live);
}

PyObject *pa_value_out(pa_state *st, PyObject *kept) { return changed(st, leaf_out, kept); }
