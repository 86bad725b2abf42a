/* Operands of a user's function, promoted by their kinds: what the decorators promote() and promote_scalars() call. */
#include "edge.h"

#include "core/promote.h"

/* One call. Its operands lie in arrays, one per field, as promotion wants them. */
enum { FEW = 8 };

typedef struct operands {
    pa_edge e;
    Py_ssize_t count;
    PyObject *names, *values; /* tuples */
    const char *kinds;        /* a letter each: d(ata), i(ndex), m(ask), s(hape) */
    at_array *array;
    at_scalar *scalar;
    ati_role *role;
    const char **name;
    PyObject **size; /* sizes as they will be given back; NULL for the rest */
    at_array few_arrays[FEW];
    at_scalar few_scalars[FEW];
    ati_role few_roles[FEW];
    const char *few_names[FEW];
    PyObject *few_sizes[FEW];
} operands;

static bool make_room(operands *o)
{
    bool few = o->count <= FEW;
    size_t n = (size_t)o->count;
    o->array = few ? o->few_arrays : PyMem_Calloc(n, sizeof *o->array);
    o->scalar = few ? o->few_scalars : PyMem_Calloc(n, sizeof *o->scalar);
    o->role = few ? o->few_roles : PyMem_Calloc(n, sizeof *o->role);
    o->name = few ? o->few_names : PyMem_Calloc(n, sizeof *o->name);
    o->size = few ? o->few_sizes : PyMem_Calloc(n, sizeof *o->size);
    if (!o->array || !o->scalar || !o->role || !o->name || !o->size) {
        PyErr_NoMemory();
        return false;
    }
    for (Py_ssize_t i = 0; i < o->count; i++) o->size[i] = NULL;
    return true;
}

static void release(operands *o)
{
    for (Py_ssize_t i = 0; o->size != NULL && i < o->count; i++) Py_XDECREF(o->size[i]);
    at_close(&o->e.root);
    if (o->count <= FEW) return;
    PyMem_Free(o->array);
    PyMem_Free(o->scalar);
    PyMem_Free(o->role);
    PyMem_Free(o->name);
    PyMem_Free(o->size);
}

/* An operand into its place. None stays None whatever its kind; a size decides on the framework, no more. */
static bool take(operands *o, Py_ssize_t i)
{
    PyObject *obj = PyTuple_GET_ITEM(o->values, i);
    at_array *place = &o->array[i];
    *place = AT_NIL;
    o->name[i] = PyUnicode_AsUTF8(PyTuple_GET_ITEM(o->names, i));
    if (o->name[i] == NULL) return false;
    o->role[i] = ATI_LIKE;
    if (obj == Py_None) return true;
    if (o->kinds[i] == 's') {
        o->size[i] = pa_to_size(&o->e, o->name[i], obj, place);
        return o->size[i] != NULL;
    }
    o->role[i] = o->kinds[i] == 'i' ? ATI_INDEX : o->kinds[i] == 'm' ? ATI_MASK : ATI_DATA;
    return pa_to_array(&o->e, o->name[i], obj, &o->scalar[i], place);
}

static PyObject *result(const operands *o, Py_ssize_t i, bool copy)
{
    if (o->size[i] != NULL) return Py_NewRef(o->size[i]);
    if (at_is_nil(o->array[i])) return Py_NewRef(Py_None);
    return pa_own_copy(o->e.st, o->array[i], PyTuple_GET_ITEM(o->values, i), copy);
}

static PyObject *results(const operands *o, bool copy)
{
    PyObject *out = PyTuple_New(o->count);
    for (Py_ssize_t i = 0; out != NULL && i < o->count; i++) {
        PyObject *one = result(o, i, copy);
        if (one == NULL)
            Py_CLEAR(out);
        else
            PyTuple_SET_ITEM(out, i, one);
    }
    return out;
}

static PyObject *promote(operands *o, bool copy)
{
    if (!make_room(o)) return NULL;
    for (Py_ssize_t i = 0; i < o->count; i++)
        if (!take(o, i)) return NULL;
    pa_edge *e = &o->e;
    if (ati_promote_by_role(&e->root, e->sig->name, (int)o->count, o->array, o->role, o->name))
        return results(o, copy);
    return NULL;
}

/* _promote(function's name, names, kinds, values, copy, fallback): the values in their order. */
PyObject *pa_promote(PyObject *module, PyObject *const *args, Py_ssize_t nargs)
{
    bool fine = nargs == 6 && PyUnicode_Check(args[0]) && PyTuple_Check(args[1]) &&
                PyUnicode_Check(args[2]) && PyTuple_Check(args[3]) &&
                PyTuple_GET_SIZE(args[1]) == PyTuple_GET_SIZE(args[3]) &&
                PyUnicode_GET_LENGTH(args[2]) == PyTuple_GET_SIZE(args[3]);
    const char *name = fine ? PyUnicode_AsUTF8(args[0]) : NULL;
    const char *kinds = name != NULL ? PyUnicode_AsUTF8(args[2]) : NULL;
    if (kinds == NULL) {
        if (!PyErr_Occurred())
            PyErr_SetString(PyExc_TypeError,
                            "_promote(name, names, kinds, values, copy, fallback)");
        return NULL;
    }
    pa_state *st = pa_state_of(module);
    const pa_signature signature = {name, 0, 0, NULL};
    operands o; /* most of it stays as it is: a call is short */
    o.e.st = st;
    o.e.sig = &signature;
    o.count = PyTuple_GET_SIZE(args[3]);
    o.names = args[1];
    o.values = args[3];
    o.kinds = kinds;
    o.e.sizes = NULL;
    o.size = NULL;
    bool copy = false;
    PyObject *token = pa_begin_options(st, name, args[4], args[5], &copy);
    if (token == NULL) return NULL;
    at_open(&o.e.root, at_context_init(&o.e.cx, &st->numpy));
    PyObject *out = promote(&o, copy);
    if (out == NULL) pa_raise(&o.e);
    release(&o);
    if (pa_end_options(st, token) < 0) Py_CLEAR(out);
    return out;
}
