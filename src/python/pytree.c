/* anytensor.tree: walks Python objects, in C where that is all of the work.
 *
 * A walk takes objects apart into two arrays, nodes in pre-order and leaves. Further trees of a call are walked along the
 * nodes of the first, and the first object that differs is named. Building runs over the nodes again, left to right.
 * User code (is_leaf, hooks, comparisons of keys, mapped functions) may run at any step and sees none of the arrays. */
#include "edge.h"
#include "pytree.h"

bool pa_tree_descend(int level)
{
    if (level <= PA_TREE_HEIGHT)
        return Py_EnterRecursiveCall(" in anytensor.tree: too many levels") == 0;
    PyErr_Format(PyExc_RecursionError, "anytensor.tree: a tree has more than %d levels",
                 PA_TREE_HEIGHT);
    return false;
}

/* --- growing arrays ------------------------------------------------------------------------------------------ */

#define FEW 32

typedef struct nodes {
    pa_node *at;
    Py_ssize_t count, room;
    pa_node few[FEW];
} nodes;

/* Owned objects. */
typedef struct objects {
    PyObject **at;
    Py_ssize_t count, room;
    PyObject *few[FEW];
} objects;

/* Doubles an array that starts in `few`; NULL with an exception. */
static void *doubled(void *at, const void *few, Py_ssize_t *room, size_t size)
{
    if (*room > PY_SSIZE_T_MAX / 2 / (Py_ssize_t)size) return PyErr_NoMemory();
    size_t bytes = (size_t)*room * size;
    void *more = PyMem_Realloc(at == few ? NULL : at, 2 * bytes);
    if (more == NULL) return PyErr_NoMemory();
    if (at == few) memcpy(more, few, bytes);
    *room *= 2;
    return more;
}

static void nodes_init(nodes *n)
{
    n->at = n->few;
    n->count = 0;
    n->room = FEW;
}

static void objects_init(objects *o)
{
    o->at = o->few;
    o->count = 0;
    o->room = FEW;
}

/* Takes over the reference of meta, also on failure. */
static bool push_node(nodes *n, int kind, Py_ssize_t arity, PyObject *meta)
{
    void *at = n->count < n->room ? n->at : doubled(n->at, n->few, &n->room, sizeof *n->at);
    if (at == NULL) {
        Py_XDECREF(meta);
        return false;
    }
    n->at = at;
    n->at[n->count++] = (pa_node){.kind = (int16_t)kind, .arity = arity, .meta = meta, .size = 1};
    return true;
}

/* Takes over the reference. */
static bool push_object(objects *o, PyObject *owned)
{
    void *at = owned == NULL        ? NULL
               : o->count < o->room ? o->at
                                    : doubled(o->at, o->few, &o->room, sizeof *o->at);
    if (at == NULL) {
        Py_XDECREF(owned);
        return false;
    }
    o->at = at;
    o->at[o->count++] = owned;
    return true;
}

static void nodes_clear(nodes *n)
{
    for (Py_ssize_t i = 0; i < n->count; i++) pa_node_release(&n->at[i]);
    if (n->at != n->few) PyMem_Free(n->at);
}

static void objects_clear(objects *o)
{
    for (Py_ssize_t i = 0; i < o->count; i++) Py_DECREF(o->at[i]);
    if (o->at != o->few) PyMem_Free(o->at);
}

/* The objects as a list, which takes them over. */
static PyObject *objects_as_list(objects *o)
{
    PyObject *list = PyList_New(o->count);
    for (Py_ssize_t i = 0; list != NULL && i < o->count; i++) PyList_SET_ITEM(list, i, o->at[i]);
    if (list != NULL) o->count = 0;
    return list;
}

/* --- one tree --------------------------------------------------------------------------------------------------- */

typedef struct walk {
    pa_trees *trees;
    PyObject *is_leaf; /* borrowed; NULL: none */
    unsigned hooks;    /* classes with these are leaves */
    int level;
    nodes nodes;
    objects leaves, paths;
    bool wants_paths;
    objects path; /* keys from the root to here */
} walk;

static void walk_init(walk *w, pa_trees *trees, PyObject *is_leaf)
{
    w->trees = trees;
    w->is_leaf = is_leaf == Py_None ? NULL : is_leaf;
    w->hooks = 0;
    w->level = 0;
    w->wants_paths = false;
    nodes_init(&w->nodes);
    objects_init(&w->leaves);
    objects_init(&w->paths);
    objects_init(&w->path);
}

static void walk_clear(walk *w)
{
    nodes_clear(&w->nodes);
    objects_clear(&w->leaves);
    objects_clear(&w->paths);
    objects_clear(&w->path);
}

/* A path key of a child. The classes are namedtuples of one field, whose own call is Python code. */
static PyObject *key_of_child(const walk *w, const pa_opened *o, Py_ssize_t i)
{
    enum { SEQUENCE, DICT, FIELD };
    int which = o->names == NULL ? SEQUENCE : o->keyed ? DICT : FIELD;
    PyTypeObject *class = w->trees->keys[which];
    PyObject *field =
        o->names == NULL ? PyLong_FromSsize_t(i) : Py_NewRef(PyTuple_GET_ITEM(o->names, i));
    PyObject *key = field == NULL ? NULL : class->tp_alloc(class, 1);
    if (key == NULL)
        Py_XDECREF(field);
    else
        PyTuple_SET_ITEM(key, 0, field);
    return key;
}

static bool keep_path(walk *w)
{
    PyObject *path = PyTuple_New(w->path.count);
    for (Py_ssize_t i = 0; path != NULL && i < w->path.count; i++)
        PyTuple_SET_ITEM(path, i, Py_NewRef(w->path.at[i]));
    return push_object(&w->paths, path);
}

static bool walk_leaf(walk *w, PyObject *obj)
{
    if (!push_node(&w->nodes, PA_NODE_LEAF, 0, NULL)) return false;
    w->nodes.at[w->nodes.count - 1].leaves = 1;
    return push_object(&w->leaves, Py_NewRef(obj)) && (!w->wants_paths || keep_path(w));
}

static bool walk_object(walk *w, PyObject *obj);

static bool walk_child(walk *w, const pa_opened *o, Py_ssize_t i)
{
    if (w->wants_paths && !push_object(&w->path, key_of_child(w, o, i))) return false;
    PyObject *child = pa_tree_child(o, i);
    bool fine = child != NULL && walk_object(w, child);
    Py_XDECREF(child);
    if (w->wants_paths) Py_DECREF(w->path.at[--w->path.count]);
    return fine;
}

/* Walks the children of a node and fills in what it learns from them. */
static bool walk_node(walk *w, pa_opened *o)
{
    Py_ssize_t place = w->nodes.count, leaves = w->leaves.count;
    if (!push_node(&w->nodes, o->kind, o->count, Py_XNewRef(o->meta))) return false;
    if (o->count == 0) return true;
    if (!pa_tree_descend(++w->level)) return false;
    int height = 0;
    bool fine = true;
    for (Py_ssize_t i = 0; fine && i < o->count; i++) {
        Py_ssize_t child = w->nodes.count;
        fine = walk_child(w, o, i);
        if (fine && w->nodes.at[child].height >= height) height = w->nodes.at[child].height + 1;
    }
    Py_LeaveRecursiveCall();
    w->level--;
    pa_node *node = &w->nodes.at[place];
    node->height = (int16_t)height;
    node->leaves = w->leaves.count - leaves;
    node->size = w->nodes.count - place;
    return fine;
}

/* Whether is_leaf says that an object is one; -1: exception. */
static int said_leaf(PyObject *is_leaf, PyObject *obj)
{
    if (is_leaf == NULL) return 0;
    PyObject *answer = PyObject_CallOneArg(is_leaf, obj);
    int leaf = answer == NULL ? -1 : PyObject_IsTrue(answer);
    Py_XDECREF(answer);
    return leaf;
}

static bool walk_object(walk *w, PyObject *obj)
{
    pa_opened o;
    int leaf = said_leaf(w->is_leaf, obj);
    if (leaf < 0) return false;
    if (leaf) return walk_leaf(w, obj);
    if (!pa_tree_open(w->trees, obj, w->hooks, &o)) return false;
    if (o.kind == PA_NODE_LEAF) return walk_leaf(w, obj);
    bool fine = walk_node(w, &o);
    pa_tree_shut(&o);
    return fine;
}

/* --- a second tree along the first ---------------------------------------------------------------------------------- */

typedef struct along {
    const walk *first;
    Py_ssize_t place, leaf; /* among the nodes and leaves of the first */
    objects leaves;
    PyObject *
        where; /* the way to what differs, set by the innermost call and made longer by the others */
} along;

/* How an object looks to somebody who compares structures; new reference. */
static PyObject *look_of(int kind, PyObject *meta, Py_ssize_t count)
{
    switch (kind) {
    case PA_NODE_LEAF: return PyUnicode_FromString("a leaf");
    case PA_NODE_NONE: return PyUnicode_FromString("None");
    case PA_NODE_LIST:
    case PA_NODE_TUPLE: return PyUnicode_FromFormat("a %s of %zd", pa_tree_kind_name(kind), count);
    default: return PyUnicode_FromFormat("%s %.200R", pa_tree_kind_name(kind), meta);
    }
}

/* The exception for two objects that differ; its place is added on the way out. */
static bool differ(along *a, const pa_node *node, const pa_opened *o)
{
    PyObject *expected = look_of(node->kind, node->meta, node->arity);
    PyObject *found = look_of(o->kind, o->meta, o->count);
    if (expected != NULL && found != NULL)
        PyErr_Format(PyExc_ValueError, "%U beside %U", expected, found);
    Py_XDECREF(expected);
    Py_XDECREF(found);
    if (PyErr_ExceptionMatches(PyExc_ValueError)) a->where = PyUnicode_FromString("");
    return false;
}

/* One step more at the head of the way. */
static void prolong(along *a, const pa_opened *o, Py_ssize_t i)
{
    if (a->where == NULL) return;
    PyObject *type, *error, *trace;
    PyErr_Fetch(&type, &error, &trace);
    PyObject *longer =
        o->names == NULL ? PyUnicode_FromFormat("[%zd]%U", i, a->where)
        : o->keyed ? PyUnicode_FromFormat("[%.100R]%U", PyTuple_GET_ITEM(o->names, i), a->where)
                   : PyUnicode_FromFormat(".%U%U", PyTuple_GET_ITEM(o->names, i), a->where);
    PyErr_Clear(); /* a key that cannot be shown leaves the way as it is */
    PyErr_Restore(type, error, trace);
    if (longer != NULL) Py_SETREF(a->where, longer);
}

static bool along_object(along *a, PyObject *obj);

static bool along_children(along *a, const pa_opened *o)
{
    if (!pa_tree_descend(0)) return false;
    bool fine = true;
    for (Py_ssize_t i = 0; fine && i < o->count; i++) {
        PyObject *child = pa_tree_child(o, i);
        fine = child != NULL && along_object(a, child);
        Py_XDECREF(child);
        if (!fine) prolong(a, o, i);
    }
    Py_LeaveRecursiveCall();
    return fine;
}

/* 1: the node holds for the object as it was opened. */
static int agrees(const pa_node *node, const pa_opened *o)
{
    pa_node other = {.kind = (int16_t)o->kind, .arity = o->count, .meta = o->meta};
    return pa_tree_same(node, &other);
}

static bool along_object(along *a, PyObject *obj)
{
    const walk *w = a->first;
    const pa_node *node = &w->nodes.at[a->place++];
    pa_opened o = {.kind = PA_NODE_LEAF};
    int leaf = said_leaf(w->is_leaf, obj);
    if (leaf == 0 && w->hooks && node->kind == PA_NODE_LEAF) /* its hook takes whatever comes */
        leaf = pa_tree_hooked(w->trees, w->leaves.at[a->leaf], w->hooks);
    if (leaf < 0 || (leaf == 0 && !pa_tree_open(w->trees, obj, w->hooks, &o))) return false;
    int same = agrees(node, &o);
    bool fine = same > 0;
    if (same == 0)
        fine = differ(a, node, &o);
    else if (fine && o.kind == PA_NODE_LEAF)
        fine = ++a->leaf > 0 && push_object(&a->leaves, Py_NewRef(obj));
    else if (fine)
        fine = along_children(a, &o);
    pa_tree_shut(&o);
    return fine;
}

/* Says where two trees differ; keeps any other exception. */
static void complain(along *a, Py_ssize_t number)
{
    if (a->where == NULL) return;
    PyObject *type, *error, *trace;
    PyErr_Fetch(&type, &error, &trace);
    PyErr_Format(
        PyExc_ValueError,
        "pytree structure error: trees must have the same structure. Tree 0 and tree %zd differ at "
        "tree%U: %S",
        number, a->where, error);
    Py_XDECREF(type);
    Py_XDECREF(error);
    Py_XDECREF(trace);
}

/* Walks the number-th tree along the first one; its leaves are in a, to be cleared also on failure. */
static bool walk_along(along *a, const walk *first, PyObject *obj, Py_ssize_t number)
{
    *a = (along){.first = first};
    objects_init(&a->leaves);
    bool fine = along_object(a, obj);
    if (!fine) complain(a, number);
    Py_CLEAR(a->where);
    return fine;
}

/* --- building --------------------------------------------------------------------------------------------------------- */

typedef struct builder {
    pa_trees *trees;
    const pa_node *node; /* the next one */
    PyObject *const *leaf;
    PyObject *
        *free; /* room for children that wait for their parent: one place per node is enough */
} builder;

static PyObject *build(builder *b)
{
    const pa_node *node = b->node++;
    if (node->kind == PA_NODE_LEAF) return Py_NewRef(*b->leaf++);
    PyObject **children = b->free, *made = NULL;
    Py_ssize_t count = 0;
    b->free += node->arity;
    while (count < node->arity && (children[count] = build(b)) != NULL) count++;
    if (count == node->arity) made = pa_tree_rebuild(b->trees, node, children);
    while (count > 0) Py_DECREF(children[--count]);
    b->free = children;
    return made;
}

/* An object from nodes and as many leaves as they have. */
static PyObject *build_all(pa_trees *trees, const pa_node *root, PyObject *const *leaves)
{
    PyObject **room = PyMem_New(PyObject *, (size_t)root->size);
    if (room == NULL) return PyErr_NoMemory();
    builder b = {trees, root, leaves, room};
    PyObject *made = build(&b);
    PyMem_Free(room);
    return made;
}

/* Takes leaves until there are enough, and one more to see that there is none. */
static bool collect(objects *into, PyObject *leaves, Py_ssize_t count)
{
    PyObject *next, *iterator = PyObject_GetIter(leaves);
    if (iterator == NULL) return false;
    while (into->count <= count && (next = PyIter_Next(iterator)) != NULL)
        if (!push_object(into, next)) break;
    Py_DECREF(iterator);
    if (PyErr_Occurred()) return false;
    if (into->count == count) return true;
    bool few = into->count < count;
    PyErr_Format(PyExc_ValueError, "Too %s leaves for PyTreeDef; expected %zd, got %zd%s",
                 few ? "few" : "many", count, into->count, few ? "" : " or more");
    return false;
}

PyObject *pa_tree_unflatten(pa_trees *trees, const pa_node *root, PyObject *leaves)
{
    objects taken;
    objects_init(&taken);
    PyObject *made =
        collect(&taken, leaves, root->leaves) ? build_all(trees, root, taken.at) : NULL;
    objects_clear(&taken);
    return made;
}

/* The treedef of a walk, which gives its nodes away. */
static PyObject *treedef_of(walk *w)
{
    Py_ssize_t count = w->nodes.count;
    w->nodes.count = 0;
    return pa_treedef_new(w->trees->treedef, w->nodes.at, count);
}

/* --- arguments ---------------------------------------------------------------------------------------------------------- */

typedef struct signature {
    const char *function;
    int required, positional, count; /* of the names; those behind `positional` are keywords only */
    bool rest;                       /* more positional arguments are taken */
    const char *names[4];
} signature;

static int place_of(const signature *s, PyObject *keyword)
{
    for (int i = 0; i < s->count; i++)
        if (PyUnicode_CompareWithASCIIString(keyword, s->names[i]) == 0) return i;
    PyErr_Format(PyExc_TypeError, "%s() got an unexpected keyword argument '%U'", s->function,
                 keyword);
    return -1;
}

/* Arguments by name, borrowed, NULL where none was given; false with an exception. */
static bool bind(const signature *s, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames,
                 PyObject **out)
{
    for (int i = 0; i < s->count; i++) out[i] = i < nargs && i < s->positional ? args[i] : NULL;
    if (nargs > s->positional && !s->rest) {
        PyErr_Format(PyExc_TypeError, "%s() takes at most %d positional arguments, %zd were given",
                     s->function, s->positional, nargs);
        return false;
    }
    for (Py_ssize_t k = 0; kwnames != NULL && k < PyTuple_GET_SIZE(kwnames); k++) {
        int place = place_of(s, PyTuple_GET_ITEM(kwnames, k));
        if (place >= 0 && out[place] != NULL)
            PyErr_Format(PyExc_TypeError, "%s() got two values for '%s'", s->function,
                         s->names[place]);
        if (place < 0 || out[place] != NULL) return false;
        out[place] = args[nargs + k];
    }
    for (int i = 0; i < s->required; i++)
        if (out[i] == NULL) {
            PyErr_Format(PyExc_TypeError, "%s() needs '%s'", s->function, s->names[i]);
            return false;
        }
    return true;
}

static pa_trees *trees_of(PyObject *module) { return &pa_state_of(module)->trees; }

/* The arguments of (tree, is_leaf=None) and a walk through the tree; to be cleared if this is true. */
static bool walk_tree(walk *w, PyObject *module, const char *function, PyObject *const *args,
                      Py_ssize_t nargs, PyObject *kwnames, bool paths)
{
    const signature s = {function, 1, 2, 2, false, {"tree", "is_leaf"}};
    PyObject *given[2];
    if (!bind(&s, args, nargs, kwnames, given)) return false;
    walk_init(w, trees_of(module), given[1]);
    w->wants_paths = paths;
    if (walk_object(w, given[0])) return true;
    walk_clear(w);
    return false;
}

/* --- functions of one tree --------------------------------------------------------------------------------------------- */

#define ARGUMENTS PyObject *module, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames

static PyObject *pair(PyObject *first, PyObject *second)
{
    PyObject *both = first == NULL || second == NULL ? NULL : PyTuple_Pack(2, first, second);
    Py_XDECREF(first);
    Py_XDECREF(second);
    return both;
}

static PyObject *tree_flatten(ARGUMENTS)
{
    walk w;
    if (!walk_tree(&w, module, "flatten", args, nargs, kwnames, false)) return NULL;
    PyObject *leaves = objects_as_list(&w.leaves);
    PyObject *both = pair(leaves, leaves == NULL ? NULL : treedef_of(&w));
    walk_clear(&w);
    return both;
}

static PyObject *tree_leaves(ARGUMENTS)
{
    walk w;
    if (!walk_tree(&w, module, "leaves", args, nargs, kwnames, false)) return NULL;
    PyObject *leaves = objects_as_list(&w.leaves);
    walk_clear(&w);
    return leaves;
}

static PyObject *tree_structure(ARGUMENTS)
{
    walk w;
    if (!walk_tree(&w, module, "structure", args, nargs, kwnames, false)) return NULL;
    PyObject *treedef = treedef_of(&w);
    walk_clear(&w);
    return treedef;
}

/* [(path, leaf), ...] of a walk. */
static PyObject *pairs_of(const walk *w)
{
    PyObject *list = PyList_New(w->leaves.count);
    for (Py_ssize_t i = 0; list != NULL && i < w->leaves.count; i++) {
        PyObject *both = PyTuple_Pack(2, w->paths.at[i], w->leaves.at[i]);
        if (both == NULL)
            Py_CLEAR(list);
        else
            PyList_SET_ITEM(list, i, both);
    }
    return list;
}

static PyObject *tree_leaves_with_path(ARGUMENTS)
{
    walk w;
    if (!walk_tree(&w, module, "leaves_with_path", args, nargs, kwnames, true)) return NULL;
    PyObject *pairs = pairs_of(&w);
    walk_clear(&w);
    return pairs;
}

static PyObject *tree_flatten_with_path(ARGUMENTS)
{
    walk w;
    if (!walk_tree(&w, module, "flatten_with_path", args, nargs, kwnames, true)) return NULL;
    PyObject *pairs = pairs_of(&w);
    PyObject *both = pair(pairs, pairs == NULL ? NULL : treedef_of(&w));
    walk_clear(&w);
    return both;
}

static PyObject *tree_unflatten(ARGUMENTS)
{
    static const signature s = {"unflatten", 2, 2, 2, false, {"treedef", "leaves"}};
    PyObject *given[2];
    if (!bind(&s, args, nargs, kwnames, given)) return NULL;
    pa_trees *trees = trees_of(module);
    if (Py_TYPE(given[0]) == trees->treedef)
        return pa_tree_unflatten(trees, ((pa_treedef *)given[0])->nodes, given[1]);
    PyErr_Format(PyExc_TypeError, "unflatten(): treedef must be a PyTreeDef, not %.100s",
                 Py_TYPE(given[0])->tp_name);
    return NULL;
}

static PyObject *tree_all(ARGUMENTS)
{
    static const signature s = {"all", 1, 1, 2, false, {"tree", "is_leaf"}};
    PyObject *given[2];
    if (!bind(&s, args, nargs, kwnames, given)) return NULL;
    walk w;
    walk_init(&w, trees_of(module), given[1]);
    int holds = walk_object(&w, given[0]) ? 1 : -1;
    for (Py_ssize_t i = 0; holds > 0 && i < w.leaves.count; i++)
        holds = PyObject_IsTrue(w.leaves.at[i]);
    walk_clear(&w);
    return holds < 0 ? NULL : PyBool_FromLong(holds);
}

/* Folds leaves from the left; takes over the reference of start, which may be NULL. */
static PyObject *fold(PyObject *function, PyObject *start, const objects *leaves)
{
    Py_ssize_t i = 0;
    if (start == NULL && leaves->count == 0) {
        PyErr_SetString(PyExc_TypeError, "reduce() of an empty tree with no initial value");
        return NULL;
    }
    if (start == NULL) start = Py_NewRef(leaves->at[i++]);
    for (; start != NULL && i < leaves->count; i++) {
        PyObject *both[] = {start, leaves->at[i]};
        PyObject *next = PyObject_Vectorcall(function, both, 2, NULL);
        Py_SETREF(start, next);
    }
    return start;
}

static PyObject *tree_reduce(ARGUMENTS)
{
    static const signature s = {"reduce", 2,     4,
                                4,        false, {"function", "tree", "initializer", "is_leaf"}};
    PyObject *given[4], *folded = NULL;
    if (!bind(&s, args, nargs, kwnames, given)) return NULL;
    walk w;
    walk_init(&w, trees_of(module), given[3]);
    if (walk_object(&w, given[1])) folded = fold(given[0], Py_XNewRef(given[2]), &w.leaves);
    walk_clear(&w);
    return folded;
}

/* --- functions of several trees ------------------------------------------------------------------------------------------ */

/* Leaves of further trees, one array per tree; NULL with an exception. */
static along *walk_rest(const walk *first, PyObject *const *rest, Py_ssize_t count)
{
    along *all = PyMem_New(along, (size_t)count + 1);
    if (all == NULL) return (along *)PyErr_NoMemory();
    for (Py_ssize_t k = 0; k < count; k++)
        if (!walk_along(&all[k], first, rest[k], k + 1)) {
            for (; k >= 0; k--) objects_clear(&all[k].leaves);
            PyMem_Free(all);
            return NULL;
        }
    return all;
}

static void clear_rest(along *all, Py_ssize_t count)
{
    for (Py_ssize_t k = 0; all != NULL && k < count; k++) objects_clear(&all[k].leaves);
    PyMem_Free(all);
}

/* Puts f(path, leaf, *others) in place of each leaf of the walk; paths only where they were asked for. */
static bool apply(walk *w, PyObject *f, const along *rest, Py_ssize_t count)
{
    PyObject *few[8], **args = few;
    if (count + 3 > 8 && (args = PyMem_New(PyObject *, (size_t)count + 3)) == NULL)
        return PyErr_NoMemory() != NULL;
    bool fine = true;
    for (Py_ssize_t i = 0; fine && i < w->leaves.count; i++) {
        size_t n = 1; /* the place before the arguments is the callee's to use */
        if (w->wants_paths) args[n++] = w->paths.at[i];
        args[n++] = w->leaves.at[i];
        for (Py_ssize_t k = 0; k < count; k++) args[n++] = rest[k].leaves.at[i];
        PyObject *got =
            PyObject_Vectorcall(f, args + 1, (n - 1) | PY_VECTORCALL_ARGUMENTS_OFFSET, NULL);
        fine = got != NULL;
        if (fine) Py_SETREF(w->leaves.at[i], got);
    }
    if (args != few) PyMem_Free(args);
    return fine;
}

static PyObject *map_trees(ARGUMENTS, const char *function, bool paths)
{
    const signature s = {function, 2, 2, 3, true, {"f", "tree", "is_leaf"}};
    PyObject *given[3], *made = NULL;
    if (!bind(&s, args, nargs, kwnames, given)) return NULL;
    walk w;
    walk_init(&w, trees_of(module), given[2]);
    w.wants_paths = paths;
    Py_ssize_t others = nargs > 2 ? nargs - 2 : 0;
    along *rest = NULL;
    if (walk_object(&w, given[1]) && (rest = walk_rest(&w, args + 2, others)) != NULL &&
        apply(&w, given[0], rest, others))
        made = build_all(w.trees, w.nodes.at, w.leaves.at);
    clear_rest(rest, others);
    walk_clear(&w);
    return made;
}

static PyObject *tree_map(ARGUMENTS)
{
    return map_trees(module, args, nargs, kwnames, "map", false);
}

static PyObject *tree_map_with_path(ARGUMENTS)
{
    return map_trees(module, args, nargs, kwnames, "map_with_path", true);
}

/* The i-th leaves of all trees, for each i. */
static PyObject *columns_of(const walk *w, const along *rest, Py_ssize_t count)
{
    PyObject *columns = PyList_New(w->leaves.count);
    for (Py_ssize_t i = 0; columns != NULL && i < w->leaves.count; i++) {
        PyObject *column = PyList_New(count + 1);
        if (column == NULL) {
            Py_CLEAR(columns);
            break;
        }
        PyList_SET_ITEM(column, 0, Py_NewRef(w->leaves.at[i]));
        for (Py_ssize_t k = 0; k < count; k++)
            PyList_SET_ITEM(column, k + 1, Py_NewRef(rest[k].leaves.at[i]));
        PyList_SET_ITEM(columns, i, column);
    }
    return columns;
}

/* _columns(trees): (columns, treedef) of a tuple of trees, where a class with __tree_batch__ in the first is a leaf. */
static PyObject *tree_columns(PyObject *module, PyObject *all)
{
    if (!PyTuple_Check(all) || PyTuple_GET_SIZE(all) == 0) {
        PyErr_SetString(PyExc_TypeError, "_columns(trees): a tuple of trees");
        return NULL;
    }
    walk w;
    walk_init(&w, trees_of(module), Py_None);
    w.hooks = PA_TREE_BATCH;
    Py_ssize_t others = PyTuple_GET_SIZE(all) - 1;
    PyObject *both = NULL;
    along *rest = NULL;
    if (walk_object(&w, PyTuple_GET_ITEM(all, 0)) &&
        (rest = walk_rest(&w, &PyTuple_GET_ITEM(all, 1), others)) != NULL) {
        PyObject *columns = columns_of(&w, rest, others);
        both = pair(columns, columns == NULL ? NULL : treedef_of(&w));
    }
    clear_rest(rest, others);
    walk_clear(&w);
    return both;
}

/* _whole(tree): (leaves, treedef), where a class with __tree_unbatch__ is a leaf. */
static PyObject *tree_whole(PyObject *module, PyObject *tree)
{
    walk w;
    walk_init(&w, trees_of(module), Py_None);
    w.hooks = PA_TREE_UNBATCH;
    PyObject *both = NULL;
    if (walk_object(&w, tree)) {
        PyObject *leaves = objects_as_list(&w.leaves);
        both = pair(leaves, leaves == NULL ? NULL : treedef_of(&w));
    }
    walk_clear(&w);
    return both;
}

/* --- the module's part ------------------------------------------------------------------------------------------------------ */

/* _set_keys((SequenceKey, DictKey, GetAttrKey)): the classes of path keys are written in Python. */
static PyObject *set_keys(PyObject *module, PyObject *classes)
{
    pa_trees *trees = trees_of(module);
    bool fine = PyTuple_Check(classes) && PyTuple_GET_SIZE(classes) == 3;
    for (int i = 0; fine && i < 3; i++) {
        PyObject *class = PyTuple_GET_ITEM(classes, i);
        fine = PyType_Check(class) && PyType_IsSubtype((PyTypeObject *)class, &PyTuple_Type);
    }
    if (!fine) {
        PyErr_SetString(PyExc_TypeError, "_set_keys(classes): three namedtuples");
        return NULL;
    }
    for (int i = 0; i < 3; i++)
        Py_XSETREF(trees->keys[i], (PyTypeObject *)Py_NewRef(PyTuple_GET_ITEM(classes, i)));
    Py_RETURN_NONE;
}

#define FASTCALL(function) (PyCFunction)(void (*)(void))(function), METH_FASTCALL | METH_KEYWORDS
#define IS_LEAF "is_leaf  called with each object on the way down; what it holds for is a leaf"
#define PATHS "A path is a tuple of SequenceKey, DictKey and GetAttrKey."

PyMethodDef pa_tree_methods[] = {
    {"flatten", FASTCALL(tree_flatten),
     "flatten($module, /, tree, is_leaf=None)\n--\n\n"
     "(leaves, treedef): the leaves of a tree as a list, and its structure.\n\n" IS_LEAF "\n"
     "Errors   TypeError for dict keys that cannot be sorted; RecursionError for a tree that is "
     "too deep."},
    {"unflatten", FASTCALL(tree_unflatten),
     "unflatten($module, /, treedef, leaves)\n--\n\n"
     "A tree of that structure with the leaves, any iterable of them.\n\n"
     "Errors   ValueError for too few or too many."},
    {"leaves", FASTCALL(tree_leaves),
     "leaves($module, /, tree, is_leaf=None)\n--\n\n"
     "The leaves of a tree as a list.\n\n" IS_LEAF},
    {"structure", FASTCALL(tree_structure),
     "structure($module, /, tree, is_leaf=None)\n--\n\n"
     "The structure of a tree, a PyTreeDef.\n\n" IS_LEAF},
    {"map", FASTCALL(tree_map),
     "map($module, /, f, tree, *rest, is_leaf=None)\n--\n\n"
     "A tree of f(leaf, *leaves of the other trees at the same place).\n\n" IS_LEAF "\n"
     "Errors   ValueError for trees of different structures, before f is called."},
    {"flatten_with_path", FASTCALL(tree_flatten_with_path),
     "flatten_with_path($module, /, tree, is_leaf=None)\n--\n\n"
     "([(path, leaf), ...], treedef). " PATHS "\n\n" IS_LEAF},
    {"leaves_with_path", FASTCALL(tree_leaves_with_path),
     "leaves_with_path($module, /, tree, is_leaf=None)\n--\n\n"
     "[(path, leaf), ...]. " PATHS "\n\n" IS_LEAF},
    {"map_with_path", FASTCALL(tree_map_with_path),
     "map_with_path($module, /, f, tree, *rest, is_leaf=None)\n--\n\n"
     "A tree of f(path, leaf, *leaves of the other trees at the same place). " PATHS "\n\n" IS_LEAF
     "\n"
     "Errors   ValueError for trees of different structures, before f is called."},
    {"all", FASTCALL(tree_all),
     "all($module, /, tree, *, is_leaf=None)\n--\n\n"
     "Whether all leaves are true; a tree without leaves is.\n\n" IS_LEAF},
    {"reduce", FASTCALL(tree_reduce),
     "reduce($module, /, function, tree, initializer=..., is_leaf=None)\n--\n\n"
     "function(function(leaf, leaf), leaf)... from the left, after the initializer where one is "
     "given.\n\n" IS_LEAF "\nErrors   TypeError for no leaves and no initializer."},
    {"_columns", tree_columns, METH_O, NULL},
    {"_whole", tree_whole, METH_O, NULL},
    {"_set_keys", set_keys, METH_O, NULL},
    {"_from_nodes", pa_treedef_from_nodes, METH_O, NULL},
    {NULL, NULL, 0, NULL}};

static PyObject *class_in(const char *module, const char *name)
{
    PyObject *found = PyImport_ImportModule(module); /* of the standard library */
    PyObject *class = found == NULL ? NULL : PyObject_GetAttrString(found, name);
    Py_XDECREF(found);
    return class;
}

/* module._tree: the functions by name, as ones of anytensor.tree. */
static int add_functions(PyObject *module, const pa_trees *trees)
{
    PyObject *all = PyDict_New(), *name = PyUnicode_FromString("anytensor.tree");
    int status = all == NULL || name == NULL ? -1 : 0;
    for (PyMethodDef *m = pa_tree_methods; status == 0 && m->ml_name != NULL; m++) {
        PyObject *function = PyCFunction_NewEx(m, module, name);
        status = function == NULL ? -1 : PyDict_SetItemString(all, m->ml_name, function);
        Py_XDECREF(function);
    }
    if (status == 0) status = PyDict_SetItemString(all, "PyTreeDef", (PyObject *)trees->treedef);
    if (status == 0) status = PyModule_AddObjectRef(module, "_tree", all);
    Py_XDECREF(all);
    Py_XDECREF(name);
    return status;
}

int pa_trees_init(pa_trees *trees, PyObject *module)
{
    static const char *const words[] = {
#define X(word) #word,
        PA_TREE_WORDS(X)
#undef X
    };
    for (int i = 0; i < PA_WORDS; i++)
        if ((trees->words[i] = PyUnicode_InternFromString(words[i])) == NULL) return -1;
    trees->defaultdict = class_in("collections", "defaultdict");
    trees->mapping = class_in("collections.abc", "Mapping");
    trees->sequence = class_in("collections.abc", "Sequence");
    trees->treedef = pa_treedef_type(module);
    if (!trees->defaultdict || !trees->mapping || !trees->sequence || !trees->treedef) return -1;
    return add_functions(module, trees);
}

int pa_trees_visit(pa_trees *trees, visitproc visit, void *arg)
{
    Py_VISIT(trees->treedef);
    Py_VISIT(trees->defaultdict);
    Py_VISIT(trees->mapping);
    Py_VISIT(trees->sequence);
    for (int i = 0; i < 3; i++) Py_VISIT(trees->keys[i]);
    return 0;
}

void pa_trees_clear(pa_trees *trees)
{
    Py_CLEAR(trees->treedef);
    Py_CLEAR(trees->defaultdict);
    Py_CLEAR(trees->mapping);
    Py_CLEAR(trees->sequence);
    for (int i = 0; i < 3; i++) Py_CLEAR(trees->keys[i]);
    for (int i = 0; i < PA_WORDS; i++) Py_CLEAR(trees->words[i]);
}
