/* Types that jax, torch or optree know how to take apart. The registries are looked up in sys.modules each time, never
 * imported; a node remembers which one opened it, and that one rebuilds it.
 *
 * jax and optree open one level by tree_flatten with an is_leaf that holds for all but the first object; the
 * structure that they give for it is what is compared. torch's registry is a dict of classes. */
#include "edge.h"
#include "pytree.h"

static const char *const registries[] = {"jax.tree_util", "torch.utils._pytree", "optree"};
enum { JAX, TORCH, OPTREE, REGISTRIES };

/* --- jax and optree --------------------------------------------------------------------------------------------- */

/* is_leaf: asked is a list, empty until the object itself was asked about. An object may hold itself. */
static PyObject *below_first(PyObject *asked, PyObject *obj)
{
    (void)obj;
    if (PyList_GET_SIZE(asked) > 0) Py_RETURN_TRUE;
    if (PyList_Append(asked, Py_None) < 0) return NULL;
    Py_RETURN_FALSE;
}

static PyMethodDef below_first_def = {"is_leaf", below_first, METH_O, NULL};

/* tree_flatten of one level; NULL with an exception. */
static PyObject *flatten_level(const pa_trees *trees, PyObject *flatten, PyObject *obj)
{
    PyObject *asked = PyList_New(0);
    PyObject *is_leaf = asked == NULL ? NULL : PyCFunction_New(&below_first_def, asked);
    PyObject *names = PyTuple_Pack(1, PA_WORD(trees, is_leaf)), *answer = NULL;
    if (is_leaf != NULL && names != NULL) {
        PyObject *args[] = {obj, is_leaf};
        answer = PyObject_Vectorcall(flatten, args, 1, names);
    }
    Py_XDECREF(asked);
    Py_XDECREF(is_leaf);
    Py_XDECREF(names);
    return answer;
}

/* A registry that fails over an object does not know it, as far as can be told; what is no fault of a registry is
 * passed on. */
static int swallow(void)
{
    if (!PyErr_ExceptionMatches(PyExc_Exception) || PyErr_ExceptionMatches(PyExc_RecursionError) ||
        PyErr_ExceptionMatches(PyExc_MemoryError))
        return -1;
    PyErr_Clear();
    return 0;
}

static int take(PyTypeObject *class, int registry, PyObject *children, PyObject *spec, pa_opened *o)
{
    PyObject *name = PyUnicode_FromString(registries[registry]);
    o->items = PySequence_Tuple(children);
    o->meta = name == NULL ? NULL : PyTuple_Pack(3, (PyObject *)class, name, spec);
    Py_XDECREF(name);
    if (o->items == NULL || o->meta == NULL) return -1;
    o->kind = PA_NODE_REGISTERED;
    o->count = PyTuple_GET_SIZE(o->items);
    return 1;
}

static int open_by_flatten(const pa_trees *trees, PyObject *module, int registry, PyObject *obj,
                           pa_opened *o)
{
    PyObject *flatten;
    int found = pa_tree_attribute(module, PA_WORD(trees, tree_flatten), &flatten);
    if (found <= 0) return found < 0 ? swallow() : 0;
    PyObject *answer = flatten_level(trees, flatten, obj);
    Py_DECREF(flatten);
    if (answer == NULL) return swallow();
    int known = 0;
    if (PyTuple_Check(answer) && PyTuple_GET_SIZE(answer) == 2) {
        PyObject *children = PyTuple_GET_ITEM(answer, 0);
        bool itself = PyList_Check(children) && PyList_GET_SIZE(children) == 1 &&
                      PyList_GET_ITEM(children, 0) == obj;
        if (!itself) known = take(Py_TYPE(obj), registry, children, PyTuple_GET_ITEM(answer, 1), o);
    }
    Py_DECREF(answer);
    return known;
}

/* The structure rebuilds by itself; a stand-in without that method is called as release 1.1.0 calls it. */
static PyObject *rebuild_by_spec(const pa_trees *trees, PyObject *module, int registry,
                                 PyObject *spec, PyObject *children)
{
    PyObject *unflatten;
    int found = pa_tree_attribute(spec, PA_WORD(trees, unflatten), &unflatten);
    if (found < 0) return NULL;
    PyObject *made;
    if (found > 0)
        made = PyObject_CallOneArg(unflatten, children);
    else if ((unflatten = PyObject_GetAttr(module, PA_WORD(trees, tree_unflatten))) == NULL)
        made = NULL;
    else if (registry == JAX)
        made = PyObject_CallFunctionObjArgs(unflatten, spec, children, NULL);
    else
        made = PyObject_CallFunctionObjArgs(unflatten, children, spec, NULL);
    Py_XDECREF(unflatten);
    return made;
}

/* --- torch -------------------------------------------------------------------------------------------------------- */

/* The function of that name of a class's entry, new reference: 1, 0 where torch knows no such class, -1. */
static int torch_function(const pa_trees *trees, PyObject *module, PyObject *class, PyObject *name,
                          PyObject **out)
{
    PyObject *nodes, *entry = NULL;
    int found = pa_tree_attribute(module, PA_WORD(trees, SUPPORTED_NODES), &nodes);
    if (found <= 0) return found;
    if (PyDict_Check(nodes)) entry = Py_XNewRef(PyDict_GetItemWithError(nodes, class));
    Py_DECREF(nodes);
    if (entry == NULL) return PyErr_Occurred() ? -1 : 0;
    found = pa_tree_attribute(entry, name, out);
    Py_DECREF(entry);
    if (found > 0 && !PyCallable_Check(*out)) {
        Py_CLEAR(*out);
        return 0;
    }
    return found;
}

static int open_by_torch(const pa_trees *trees, PyObject *module, PyObject *obj, pa_opened *o)
{
    PyObject *flatten, *unflatten, *class = (PyObject *)Py_TYPE(obj);
    int found = torch_function(trees, module, class, PA_WORD(trees, unflatten_fn), &unflatten);
    if (found <= 0) return found;
    Py_DECREF(unflatten);
    found = torch_function(trees, module, class, PA_WORD(trees, flatten_fn), &flatten);
    if (found <= 0) return found;
    PyObject *answer = PyObject_CallOneArg(flatten, obj);
    Py_DECREF(flatten);
    if (answer == NULL) return -1;
    if (PyTuple_Check(answer) && PyTuple_GET_SIZE(answer) == 2)
        found =
            take(Py_TYPE(obj), TORCH, PyTuple_GET_ITEM(answer, 0), PyTuple_GET_ITEM(answer, 1), o);
    else {
        PyErr_Format(PyExc_TypeError,
                     "tree: torch's flatten_fn of %.100s gave no (children, context)",
                     Py_TYPE(obj)->tp_name);
        found = -1;
    }
    Py_DECREF(answer);
    return found;
}

static PyObject *rebuild_by_torch(const pa_trees *trees, PyObject *module, PyObject *class,
                                  PyObject *context, PyObject *children)
{
    PyObject *unflatten;
    int found = torch_function(trees, module, class, PA_WORD(trees, unflatten_fn), &unflatten);
    if (found == 0)
        PyErr_Format(PyExc_ValueError, "tree: torch does not know %R, which it took apart", class);
    if (found <= 0) return NULL;
    PyObject *made = PyObject_CallFunctionObjArgs(unflatten, children, context, NULL);
    Py_DECREF(unflatten);
    return made;
}

/* --- all three ------------------------------------------------------------------------------------------------------ */

int pa_tree_open_registered(pa_trees *trees, PyObject *obj, pa_opened *o)
{
    int known = 0;
    for (int registry = 0; known == 0 && registry < REGISTRIES; registry++) {
        PyObject *module = Py_XNewRef(pa_loaded(registries[registry]));
        if (module == NULL) continue;
        known = registry == TORCH ? open_by_torch(trees, module, obj, o)
                                  : open_by_flatten(trees, module, registry, obj, o);
        Py_DECREF(module);
    }
    return known;
}

/* Which registry a node's metadata names; -1 for what is not ours. */
static int registry_of(PyObject *meta)
{
    if (meta != NULL && PyTuple_Check(meta) && PyTuple_GET_SIZE(meta) == 3 &&
        PyUnicode_Check(PyTuple_GET_ITEM(meta, 1)))
        for (int registry = 0; registry < REGISTRIES; registry++)
            if (PyUnicode_CompareWithASCIIString(PyTuple_GET_ITEM(meta, 1), registries[registry]) ==
                0)
                return registry;
    return -1;
}

PyObject *pa_tree_rebuild_registered(pa_trees *trees, const pa_node *node, PyObject *children)
{
    int registry = registry_of(node->meta);
    if (registry < 0) {
        PyErr_SetString(PyExc_ValueError,
                        "tree: a registered PyTreeDef without restore= names no registry");
        return NULL;
    }
    PyObject *class = PyTuple_GET_ITEM(node->meta, 0), *spec = PyTuple_GET_ITEM(node->meta, 2);
    PyObject *module = Py_XNewRef(pa_loaded(registries[registry]));
    if (module == NULL) {
        PyErr_Format(PyExc_ValueError, "tree: %s, which took %R apart, is not loaded",
                     registries[registry], class);
        return NULL;
    }
    PyObject *made = registry == TORCH ? rebuild_by_torch(trees, module, class, spec, children)
                                       : rebuild_by_spec(trees, module, registry, spec, children);
    Py_DECREF(module);
    return made;
}
