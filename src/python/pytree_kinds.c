/* What is a node: the kinds of nodes in the order in which they are asked for, how each is taken apart and rebuilt.
 *
 * A class is asked once what it is and remembered by its version, which changes with it and is never given again.
 * What only instances know, and the registries of frameworks, which grow, are asked each time. User code runs in
 * many places here: nothing is borrowed across a call of it. */
#include "edge.h"
#include "pytree.h"

int pa_tree_attribute(PyObject *obj, PyObject *name, PyObject **out)
{
    *out = PyObject_GetAttr(obj, name);
    if (*out != NULL) return 1;
    if (!PyErr_ExceptionMatches(PyExc_AttributeError)) return -1;
    PyErr_Clear();
    return 0;
}

static int has(PyObject *obj, PyObject *name)
{
    PyObject *value;
    int found = pa_tree_attribute(obj, name, &value);
    if (found > 0) Py_DECREF(value);
    return found;
}

static int has_both(PyObject *obj, PyObject *first, PyObject *second)
{
    int found = has(obj, first);
    return found > 0 ? has(obj, second) : found;
}

/* --- classes ------------------------------------------------------------------------------------------------ */

static int is_namedtuple(const pa_trees *trees, PyObject *class)
{
    if (!PyType_IsSubtype((PyTypeObject *)class, &PyTuple_Type)) return 0;
    PyObject *fields;
    int found = pa_tree_attribute(class, PA_WORD(trees, _fields), &fields);
    if (found <= 0) return found;
    bool names = PyTuple_Check(fields);
    for (Py_ssize_t i = 0; names && i < PyTuple_GET_SIZE(fields); i++)
        names = PyUnicode_Check(PyTuple_GET_ITEM(fields, i));
    Py_DECREF(fields);
    return names;
}

/* A subclass inherits the list of fields and may have more: it has to be registered by itself. */
static int is_dataclass(const pa_trees *trees, PyObject *class)
{
    PyObject *spec;
    int found = pa_tree_attribute(class, PA_WORD(trees, __tree_fields__), &spec);
    if (found <= 0) return found;
    bool own =
        PyTuple_Check(spec) && PyTuple_GET_SIZE(spec) == 4 && PyTuple_GET_ITEM(spec, 0) == class;
    Py_DECREF(spec);
    return own;
}

/* A container that also has a shape is no array. */
static int may_be_array(const pa_trees *trees, PyObject *class)
{
    int container = PyObject_IsSubclass(class, trees->mapping);
    if (container == 0) container = PyObject_IsSubclass(class, trees->sequence);
    return container < 0 ? -1 : !container;
}

static int is_array(const pa_trees *trees, PyObject *class)
{
    int found = has_both(class, PA_WORD(trees, shape), PA_WORD(trees, dtype));
    return found > 0 ? may_be_array(trees, class) : found;
}

static bool is_scalar(PyObject *class)
{
    PyTypeObject *const scalars[] = {&PyLong_Type, &PyFloat_Type, &PyComplex_Type, &PyUnicode_Type,
                                     &PyBytes_Type};
    for (size_t i = 0; i < sizeof scalars / sizeof *scalars; i++)
        if (PyType_IsSubtype((PyTypeObject *)class, scalars[i])) return true;
    return false;
}

/* The kind of a class; PA_NODE_KINDS where its instances have to be asked; -1: exception. */
static int kind_of_class(const pa_trees *trees, PyObject *class)
{
    int found =
        has_both(class, PA_WORD(trees, __tree_flatten__), PA_WORD(trees, __tree_unflatten__));
    if (found != 0) return found < 0 ? -1 : PA_NODE_MAGIC;
    if (class == (PyObject *)&PyODict_Type) return PA_NODE_ORDEREDDICT;
    if (class == trees->defaultdict) return PA_NODE_DEFAULTDICT;
    if ((found = is_namedtuple(trees, class)) != 0) return found < 0 ? -1 : PA_NODE_NAMEDTUPLE;
    if ((found = has(class, PA_WORD(trees, __attrs_attrs__))) != 0)
        return found < 0 ? -1 : PA_NODE_ATTRS;
    if ((found = is_dataclass(trees, class)) != 0) return found < 0 ? -1 : PA_NODE_DATACLASS;
    if ((found = is_array(trees, class)) != 0) return found < 0 ? -1 : PA_NODE_LEAF;
    return is_scalar(class) ? PA_NODE_LEAF : PA_NODE_KINDS;
}

static int hooks_of_class(const pa_trees *trees, PyObject *class)
{
    int batch = has(class, PA_WORD(trees, __tree_batch__));
    int unbatch = batch < 0 ? -1 : has(class, PA_WORD(trees, __tree_unbatch__));
    if (unbatch < 0) return -1;
    return (batch ? (int)PA_TREE_BATCH : 0) | (unbatch ? (int)PA_TREE_UNBATCH : 0);
}

static bool class_of(pa_trees *trees, PyTypeObject *class, pa_tree_class *out)
{
    unsigned version = class->tp_version_tag; /* 0: it has none, or none any more */
    const pa_tree_class *known = &trees->classes[version % PA_TREE_CLASSES];
    if (version != 0 && known->version == version && known->class == class) {
        *out = *known;
        return true;
    }
    int kind = kind_of_class(trees, (PyObject *)class);
    int hooks = kind < 0 ? -1 : hooks_of_class(trees, (PyObject *)class);
    if (hooks < 0) return false;
    *out = (pa_tree_class){class, version, (uint8_t)kind, (uint8_t)hooks};
    /* The first attribute looked up gives a class its version; a change while asking would have taken it away. */
    if (version != 0 && version == class->tp_version_tag)
        trees->classes[version % PA_TREE_CLASSES] = *out;
    return true;
}

int pa_tree_hooked(pa_trees *trees, PyObject *obj, unsigned hooks)
{
    pa_tree_class class;
    if (!class_of(trees, Py_TYPE(obj), &class)) return -1;
    return (class.hooks & hooks) != 0;
}

/* --- taking apart --------------------------------------------------------------------------------------------- */

void pa_tree_shut(pa_opened *o)
{
    Py_XDECREF(o->items);
    Py_XDECREF(o->names);
    Py_XDECREF(o->meta);
}

static bool open_sequence(PyObject *obj, pa_opened *o)
{
    o->items = Py_NewRef(obj);
    o->count = Py_SIZE(obj);
    return true;
}

/* The TypeError of a comparison, said of the keys. */
static void complain_of_keys(PyObject *keys)
{
    if (!PyErr_ExceptionMatches(PyExc_TypeError)) return;
    PyObject *type, *cause, *trace;
    PyErr_Fetch(&type, &cause, &trace);
    PyErr_NormalizeException(&type, &cause, &trace);
    if (trace != NULL) PyException_SetTraceback(cause, trace);
    PyErr_Format(PyExc_TypeError,
                 "tree only supports dicts with sortable keys. These cannot be ordered: %.400R",
                 keys);
    PyObject *type2, *error, *trace2;
    PyErr_Fetch(&type2, &error, &trace2);
    PyErr_NormalizeException(&type2, &error, &trace2);
    PyException_SetCause(error, Py_NewRef(cause));
    PyErr_Restore(type2, error, trace2);
    Py_XDECREF(type);
    Py_XDECREF(cause);
    Py_XDECREF(trace);
}

/* Keys of a dict, in ascending order if they are strings that already are. */
static PyObject *keys_as_they_come(PyObject *dict, bool *sorted)
{
    Py_ssize_t count = PyDict_GET_SIZE(dict), place = 0;
    PyObject *keys = PyTuple_New(count), *key, *value, *last = NULL;
    *sorted = true;
    for (Py_ssize_t i = 0; keys != NULL && i < count && PyDict_Next(dict, &place, &key, &value);
         i++) {
        PyTuple_SET_ITEM(keys, i, Py_NewRef(key));
        *sorted = *sorted && PyUnicode_CheckExact(key) &&
                  (last == NULL || PyUnicode_Compare(last, key) < 0);
        last = key;
    }
    return keys;
}

static PyObject *sorted_keys(PyObject *dict)
{
    bool sorted;
    PyObject *keys = keys_as_they_come(dict, &sorted);
    if (keys == NULL || sorted) return keys;
    PyObject *list = PySequence_List(keys);
    Py_DECREF(keys);
    if (list == NULL) return NULL;
    PyObject *tuple = PyList_Sort(list) == 0 ? PyList_AsTuple(list) : NULL;
    if (tuple == NULL) complain_of_keys(list);
    Py_DECREF(list);
    return tuple;
}

static PyObject *keys_in_order(PyObject *ordered)
{
    return PySequence_Tuple(ordered); /* which asks the OrderedDict, not the dict below it */
}

static bool open_dict(PyObject *obj, pa_kind kind, pa_opened *o)
{
    PyObject *keys = kind == PA_NODE_ORDEREDDICT ? keys_in_order(obj) : sorted_keys(obj);
    if (keys == NULL) return false;
    o->keyed = true;
    o->items = Py_NewRef(obj);
    o->names = keys;
    o->count = PyTuple_GET_SIZE(keys);
    if (kind != PA_NODE_DEFAULTDICT) {
        o->meta = Py_NewRef(keys);
        return true;
    }
    PyObject *factory = PyObject_GetAttrString(obj, "default_factory");
    o->meta = factory == NULL ? NULL : PyTuple_Pack(2, factory, keys);
    Py_XDECREF(factory);
    return o->meta != NULL;
}

static bool open_namedtuple(const pa_trees *trees, PyObject *obj, pa_opened *o)
{
    o->items = Py_NewRef(obj);
    o->count = PyTuple_GET_SIZE(obj);
    o->meta = Py_NewRef((PyObject *)Py_TYPE(obj));
    o->names = PyObject_GetAttr(o->meta, PA_WORD(trees, _fields));
    if (o->names != NULL && PyTuple_Check(o->names) && PyTuple_GET_SIZE(o->names) == o->count)
        return true;
    if (o->names != NULL)
        PyErr_Format(PyExc_ValueError, "tree: a %.100s has %zd items, its _fields say otherwise",
                     Py_TYPE(obj)->tp_name, o->count);
    return false;
}

/* (children, aux) of a function's answer, children as a tuple; false with an exception. optree's classes have the same
 * hooks and may add a third item, which is left alone. */
static bool open_answer(PyObject *answer, PyTypeObject *class, const char *function,
                        PyObject **children, PyObject **aux)
{
    *children = *aux = NULL;
    if (answer == NULL) return false;
    Py_ssize_t size = PyTuple_Check(answer) || PyList_Check(answer) ? Py_SIZE(answer) : 0;
    if (size != 2 && size != 3) {
        PyErr_Format(PyExc_TypeError, "tree: %s of %.100s must return (children, aux), not %.200R",
                     function, class->tp_name, answer);
        return false;
    }
    PyObject *given = PySequence_Fast_GET_ITEM(answer, 0);
    if (Py_TYPE(given)->tp_iter == NULL && !PySequence_Check(given)) {
        PyErr_Format(PyExc_TypeError,
                     "tree: %s of %.100s must return iterable children, not %.200R", function,
                     class->tp_name, given);
        return false;
    }
    *aux = Py_NewRef(PySequence_Fast_GET_ITEM(answer, 1)); /* a list may change while it is read */
    Py_INCREF(given);
    *children = PySequence_Tuple(given);
    Py_DECREF(given);
    if (*children == NULL) Py_CLEAR(*aux);
    return *children != NULL;
}

static bool open_magic(const pa_trees *trees, PyObject *obj, pa_opened *o)
{
    PyObject *aux, *answer = PyObject_CallMethodNoArgs(obj, PA_WORD(trees, __tree_flatten__));
    bool fine = open_answer(answer, Py_TYPE(obj), "__tree_flatten__", &o->items, &aux);
    Py_XDECREF(answer);
    if (!fine) return false;
    o->count = PyTuple_GET_SIZE(o->items);
    o->meta = PyTuple_Pack(2, (PyObject *)Py_TYPE(obj), aux);
    Py_DECREF(aux);
    return o->meta != NULL;
}

/* --- classes with fields: attrs, and dataclasses that were registered ------------------------------------------- */

/* What __tree_fields__ of a dataclass says, made up for attrs: names of the fields, the keyword of each in the class's
 * call or None for those that it does not take; the first `children` of them are children. */
typedef struct fields {
    PyObject *names, *keywords;
    Py_ssize_t children;
} fields;

static void close_fields(fields *f)
{
    Py_XDECREF(f->names);
    Py_XDECREF(f->keywords);
}

/* The keyword of one attrs field; new reference. */
static PyObject *attrs_keyword(const pa_trees *trees, PyObject *field, PyObject *name)
{
    PyObject *value;
    int found = pa_tree_attribute(field, PA_WORD(trees, init), &value);
    if (found > 0) {
        int taken = PyObject_IsTrue(value);
        Py_DECREF(value);
        if (taken <= 0) return taken < 0 ? NULL : Py_NewRef(Py_None);
    }
    if (found < 0 || pa_tree_attribute(field, PA_WORD(trees, alias), &value) < 0) return NULL;
    if (value != NULL && PyUnicode_Check(value)) return value;
    Py_XDECREF(value);
    return Py_NewRef(name);
}

static bool read_attrs(const pa_trees *trees, PyObject *class, fields *f)
{
    PyObject *found = PyObject_GetAttr(class, PA_WORD(trees, __attrs_attrs__));
    PyObject *all = found == NULL ? NULL : PySequence_Tuple(found);
    Py_XDECREF(found);
    if (all == NULL) return false;
    f->children = PyTuple_GET_SIZE(all);
    f->names = PyTuple_New(f->children);
    f->keywords = PyTuple_New(f->children);
    bool fine = f->names != NULL && f->keywords != NULL;
    for (Py_ssize_t i = 0; fine && i < f->children; i++) {
        PyObject *field = PyTuple_GET_ITEM(all, i);
        PyObject *name = PyObject_GetAttr(field, PA_WORD(trees, name));
        PyObject *keyword = name == NULL ? NULL : attrs_keyword(trees, field, name);
        if (name != NULL) PyTuple_SET_ITEM(f->names, i, name);
        if (keyword != NULL) PyTuple_SET_ITEM(f->keywords, i, keyword);
        fine = keyword != NULL;
    }
    Py_DECREF(all);
    return fine;
}

PyObject *pa_tree_attrs_names(pa_trees *trees, PyObject *class)
{
    fields f = {0};
    PyObject *names = read_attrs(trees, class, &f) ? Py_NewRef(f.names) : NULL;
    close_fields(&f);
    return names;
}

static bool read_dataclass(const pa_trees *trees, PyObject *class, fields *f)
{
    PyObject *spec = PyObject_GetAttr(class, PA_WORD(trees, __tree_fields__));
    if (spec == NULL) return false;
    bool fine = PyTuple_Check(spec) && PyTuple_GET_SIZE(spec) == 4;
    f->names = fine ? Py_NewRef(PyTuple_GET_ITEM(spec, 1)) : NULL;
    f->keywords = fine ? Py_NewRef(PyTuple_GET_ITEM(spec, 2)) : NULL;
    f->children = fine ? PyLong_AsSsize_t(PyTuple_GET_ITEM(spec, 3)) : -1;
    fine = fine && PyTuple_Check(f->names) && PyTuple_Check(f->keywords) &&
           PyTuple_GET_SIZE(f->names) == PyTuple_GET_SIZE(f->keywords) && f->children >= 0 &&
           f->children <= PyTuple_GET_SIZE(f->names);
    Py_DECREF(spec);
    if (!fine && !PyErr_Occurred())
        PyErr_Format(PyExc_TypeError, "tree: %.100s.__tree_fields__ is not register_dataclass's",
                     ((PyTypeObject *)class)->tp_name);
    return fine;
}

static bool read_fields(const pa_trees *trees, PyObject *class, int kind, fields *f)
{
    *f = (fields){0};
    bool fine =
        kind == PA_NODE_ATTRS ? read_attrs(trees, class, f) : read_dataclass(trees, class, f);
    if (!fine) close_fields(f);
    return fine;
}

/* The values of fields [from, to) as a tuple. */
static PyObject *values_of(PyObject *obj, PyObject *names, Py_ssize_t from, Py_ssize_t to)
{
    PyObject *values = PyTuple_New(to - from);
    for (Py_ssize_t i = from; values != NULL && i < to; i++) {
        PyObject *value = PyObject_GetAttr(obj, PyTuple_GET_ITEM(names, i));
        if (value == NULL)
            Py_CLEAR(values);
        else
            PyTuple_SET_ITEM(values, i - from, value);
    }
    return values;
}

static bool open_fields(const pa_trees *trees, PyObject *obj, pa_kind kind, pa_opened *o)
{
    fields f;
    PyObject *class = (PyObject *)Py_TYPE(obj);
    if (!read_fields(trees, class, kind, &f)) return false;
    Py_ssize_t all = PyTuple_GET_SIZE(f.names);
    o->count = f.children;
    o->names = PyTuple_GetSlice(f.names, 0, f.children);
    o->items = values_of(obj, f.names, 0, f.children);
    PyObject *rest = o->items == NULL ? NULL : values_of(obj, f.names, f.children, all);
    if (rest != NULL)
        o->meta = kind == PA_NODE_ATTRS ? Py_NewRef(class) : PyTuple_Pack(2, class, rest);
    Py_XDECREF(rest);
    close_fields(&f);
    return o->names != NULL && o->meta != NULL;
}

/* --- opening, one object -------------------------------------------------------------------------------------- */

/* An instance of a class that does not say what it is: an array by attributes of its own, or a registered type. */
static bool open_stranger(pa_trees *trees, PyObject *obj, pa_opened *o)
{
    if (pa_loaded("jax.tree_util") == NULL && pa_loaded("torch.utils._pytree") == NULL &&
        pa_loaded("optree") == NULL)
        return true;
    int array = has_both(obj, PA_WORD(trees, shape), PA_WORD(trees, dtype));
    if (array > 0) array = may_be_array(trees, (PyObject *)Py_TYPE(obj));
    if (array != 0) return array > 0;
    return pa_tree_open_registered(trees, obj, o) >= 0;
}

static bool open_kind(pa_trees *trees, PyObject *obj, int kind, pa_opened *o)
{
    o->kind = (pa_kind)kind;
    switch (kind) {
    case PA_NODE_LEAF:
    case PA_NODE_NONE: return true;
    case PA_NODE_LIST:
    case PA_NODE_TUPLE: return open_sequence(obj, o);
    case PA_NODE_DICT:
    case PA_NODE_ORDEREDDICT:
    case PA_NODE_DEFAULTDICT: return open_dict(obj, (pa_kind)kind, o);
    case PA_NODE_NAMEDTUPLE: return open_namedtuple(trees, obj, o);
    case PA_NODE_MAGIC: return open_magic(trees, obj, o);
    case PA_NODE_ATTRS:
    case PA_NODE_DATACLASS: return open_fields(trees, obj, (pa_kind)kind, o);
    default: o->kind = PA_NODE_LEAF; return open_stranger(trees, obj, o);
    }
}

bool pa_tree_open(pa_trees *trees, PyObject *obj, unsigned hooks, pa_opened *o)
{
    const PyTypeObject *type = Py_TYPE(obj);
    int kind;
    *o = (pa_opened){.kind = PA_NODE_LEAF};
    if (obj == Py_None)
        kind = PA_NODE_NONE;
    else if (type == &PyDict_Type)
        kind = PA_NODE_DICT;
    else if (type == &PyList_Type)
        kind = PA_NODE_LIST;
    else if (type == &PyTuple_Type)
        kind = PA_NODE_TUPLE;
    else if (type == &PyLong_Type || type == &PyFloat_Type || type == &PyUnicode_Type)
        return true;
    else {
        pa_tree_class class;
        if (!class_of(trees, Py_TYPE(obj), &class)) return false;
        if (class.hooks & hooks) return true;
        kind = class.kind;
    }
    if (open_kind(trees, obj, kind, o)) return true;
    pa_tree_shut(o);
    return false;
}

static PyObject *changed(const pa_opened *o)
{
    if (!PyErr_Occurred())
        PyErr_Format(PyExc_RuntimeError, "tree: a %.100s changed while it was walked",
                     Py_TYPE(o->items)->tp_name);
    return NULL;
}

PyObject *pa_tree_child(const pa_opened *o, Py_ssize_t i)
{
    if (o->keyed) {
        if (PyDict_GET_SIZE(o->items) != o->count) return changed(o);
        PyObject *value = PyDict_GetItemWithError(o->items, PyTuple_GET_ITEM(o->names, i));
        return value == NULL ? changed(o) : Py_NewRef(value);
    }
    if (Py_SIZE(o->items) != o->count) return changed(o);
    return Py_NewRef(PyList_CheckExact(o->items) ? PyList_GET_ITEM(o->items, i)
                                                 : PyTuple_GET_ITEM(o->items, i));
}

/* --- rebuilding ------------------------------------------------------------------------------------------------- */

static PyObject *list_of(Py_ssize_t count, PyObject *const *children)
{
    PyObject *list = PyList_New(count);
    for (Py_ssize_t i = 0; list != NULL && i < count; i++)
        PyList_SET_ITEM(list, i, Py_NewRef(children[i]));
    return list;
}

static PyObject *tuple_of(Py_ssize_t count, PyObject *const *children)
{
    PyObject *tuple = PyTuple_New(count);
    for (Py_ssize_t i = 0; tuple != NULL && i < count; i++)
        PyTuple_SET_ITEM(tuple, i, Py_NewRef(children[i]));
    return tuple;
}

/* Fills a new dict of any kind; takes it over. */
static PyObject *fill(PyObject *dict, PyObject *keys, PyObject *const *children)
{
    bool ordered = dict != NULL && PyODict_Check(dict);
    for (Py_ssize_t i = 0; dict != NULL && i < PyTuple_GET_SIZE(keys); i++) {
        PyObject *key = PyTuple_GET_ITEM(keys, i);
        if ((ordered ? PyODict_SetItem : PyDict_SetItem)(dict, key, children[i]) < 0)
            Py_CLEAR(dict);
    }
    return dict;
}

static PyObject *rebuild_magic(const pa_trees *trees, const pa_node *node,
                               PyObject *const *children)
{
    PyObject *tuple = tuple_of(node->arity, children);
    if (tuple == NULL) return NULL;
    PyObject *made = PyObject_CallMethodObjArgs(PyTuple_GET_ITEM(node->meta, 0),
                                                PA_WORD(trees, __tree_unflatten__),
                                                PyTuple_GET_ITEM(node->meta, 1), tuple, NULL);
    Py_DECREF(tuple);
    return made;
}

/* Fields that the class's call does not take are set past it, as a frozen class needs. */
static bool set_late(PyObject *obj, const fields *f, PyObject *const *values)
{
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(f->names); i++)
        if (PyTuple_GET_ITEM(f->keywords, i) == Py_None &&
            PyObject_GenericSetAttr(obj, PyTuple_GET_ITEM(f->names, i), values[i]) < 0)
            return false;
    return true;
}

static PyObject *call_with_fields(PyObject *class, const fields *f, PyObject *const *values)
{
    PyObject *empty = PyTuple_New(0), *keywords = PyDict_New(), *made = NULL;
    bool fine = empty != NULL && keywords != NULL;
    for (Py_ssize_t i = 0; fine && i < PyTuple_GET_SIZE(f->names); i++) {
        PyObject *keyword = PyTuple_GET_ITEM(f->keywords, i);
        fine = keyword == Py_None || PyDict_SetItem(keywords, keyword, values[i]) == 0;
    }
    if (fine) made = PyObject_Call(class, empty, keywords);
    Py_XDECREF(empty);
    Py_XDECREF(keywords);
    if (made != NULL && !set_late(made, f, values)) Py_CLEAR(made);
    return made;
}

static PyObject *rebuild_fields(const pa_trees *trees, const pa_node *node,
                                PyObject *const *children)
{
    bool attrs = node->kind == PA_NODE_ATTRS;
    PyObject *class = attrs ? node->meta : PyTuple_GET_ITEM(node->meta, 0);
    PyObject *rest = attrs ? NULL : PyTuple_GET_ITEM(node->meta, 1), *made = NULL;
    Py_ssize_t others = rest == NULL ? 0 : PyTuple_GET_SIZE(rest), all = node->arity + others;
    fields f;
    if (!read_fields(trees, class, node->kind, &f)) return NULL;
    PyObject **values = PyMem_New(PyObject *, (size_t)all + 1);
    if (values == NULL)
        PyErr_NoMemory();
    else if (f.children != node->arity || PyTuple_GET_SIZE(f.names) != all)
        PyErr_Format(PyExc_ValueError, "tree: the fields of %.100s have changed",
                     ((PyTypeObject *)class)->tp_name);
    else {
        for (Py_ssize_t i = 0; i < all; i++)
            values[i] = i < node->arity ? children[i] : PyTuple_GET_ITEM(rest, i - node->arity);
        made = call_with_fields(class, &f, values);
    }
    PyMem_Free(values);
    close_fields(&f);
    return made;
}

static PyObject *rebuild_registered(pa_trees *trees, const pa_node *node, PyObject *const *children)
{
    PyObject *list = list_of(node->arity, children);
    if (list == NULL) return NULL;
    PyObject *made = node->restore != NULL ? PyObject_CallOneArg(node->restore, list)
                                           : pa_tree_rebuild_registered(trees, node, list);
    Py_DECREF(list);
    return made;
}

PyObject *pa_tree_rebuild(pa_trees *trees, const pa_node *node, PyObject *const *children)
{
    switch (node->kind) {
    case PA_NODE_NONE: return Py_NewRef(Py_None);
    case PA_NODE_LIST: return list_of(node->arity, children);
    case PA_NODE_TUPLE: return tuple_of(node->arity, children);
    case PA_NODE_DICT: return fill(PyDict_New(), node->meta, children);
    case PA_NODE_ORDEREDDICT: return fill(PyODict_New(), node->meta, children);
    case PA_NODE_DEFAULTDICT:
        return fill(PyObject_CallOneArg(trees->defaultdict, PyTuple_GET_ITEM(node->meta, 0)),
                    PyTuple_GET_ITEM(node->meta, 1), children);
    case PA_NODE_NAMEDTUPLE:
        return PyObject_Vectorcall(node->meta, children, (size_t)node->arity, NULL);
    case PA_NODE_MAGIC: return rebuild_magic(trees, node, children);
    case PA_NODE_ATTRS:
    case PA_NODE_DATACLASS: return rebuild_fields(trees, node, children);
    default: return rebuild_registered(trees, node, children);
    }
}
