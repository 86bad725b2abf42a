/* Trees of Python objects: what the walker, the kinds of nodes, the treedef and the registries share.
 *
 * A structure is an array of nodes in pre-order, so that comparing, hashing and pickling one are loops. Its height
 * is bounded (PA_TREE_HEIGHT) wherever nodes are made: what recurses over nodes needs no check of its own. */
#ifndef PA_PYTREE_H
#define PA_PYTREE_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdbool.h>
#include <stdint.h>

/* Levels below the root. A level takes less than 1 KB of C stack, threads may have little of it. */
#define PA_TREE_HEIGHT 1000

/* Kind, and its name in PyTreeDef.kind. */
#define PA_TREE_KINDS(X)                                                                           \
    X(LEAF, leaf)                                                                                  \
    X(NONE, none)                                                                                  \
    X(LIST, list)                                                                                  \
    X(TUPLE, tuple)                                                                                \
    X(DICT, dict)                                                                                  \
    X(ORDEREDDICT, ordereddict)                                                                    \
    X(DEFAULTDICT, defaultdict)                                                                    \
    X(NAMEDTUPLE, namedtuple)                                                                      \
    X(MAGIC, magic)                                                                                \
    X(ATTRS, attrs)                                                                                \
    X(DATACLASS, dataclass)                                                                        \
    X(REGISTERED, registered)

typedef enum pa_kind {
#define X(kind, name) PA_NODE_##kind,
    PA_TREE_KINDS(X)
#undef X
        PA_NODE_KINDS, /* how many; and of a class that only its instances can tell about */
} pa_kind;

typedef struct pa_node {
    int16_t kind;
    int16_t height; /* levels below */
    Py_ssize_t arity;
    Py_ssize_t leaves;
    Py_ssize_t size; /* nodes of the subtree, this one included */
    /* Owned; what == compares beside the kind; NULL: nothing. By kind: dict, ordereddict: the tuple of keys;
     * defaultdict: (factory, keys); namedtuple, attrs: the class; magic: (class, aux); dataclass: (class, values
     * that are not children); registered: (class, registry, what the registry says). */
    PyObject *meta;
    PyObject
        *restore; /* owned; NULL but in a registered node that a caller made: children -> object */
} pa_node;

/* A class seen before, by the version that CPython gives it: anew for each class and each change of one. The pointer is
 * never followed; CPython 3.10 starts anew with versions when its cache is cleared. */
typedef struct pa_tree_class {
    const PyTypeObject *class;
    unsigned version;
    uint8_t kind, hooks;
} pa_tree_class;

/* Classes with these attributes may be taken as leaves (hooks of pa_tree_class). */
#define PA_TREE_BATCH 1u
#define PA_TREE_UNBATCH 2u

#define PA_TREE_WORDS(X)                                                                           \
    X(__tree_flatten__)                                                                            \
    X(__tree_unflatten__)                                                                          \
    X(__tree_batch__)                                                                              \
    X(__tree_unbatch__)                                                                            \
    X(__tree_fields__)                                                                             \
    X(__attrs_attrs__)                                                                             \
    X(_fields)                                                                                     \
    X(shape)                                                                                       \
    X(dtype)                                                                                       \
    X(name)                                                                                        \
    X(alias)                                                                                       \
    X(init)                                                                                        \
    X(tree_flatten)                                                                                \
    X(tree_unflatten)                                                                              \
    X(unflatten)                                                                                   \
    X(is_leaf)                                                                                     \
    X(SUPPORTED_NODES)                                                                             \
    X(flatten_fn)                                                                                  \
    X(unflatten_fn)

enum {
#define X(word) PA_WORD_##word,
    PA_TREE_WORDS(X)
#undef X
        PA_WORDS
};

#define PA_TREE_CLASSES 256

/* Part of the module's state. */
typedef struct pa_trees {
    PyTypeObject *treedef;
    PyObject *defaultdict, *mapping, *sequence; /* classes of collections and collections.abc */
    PyTypeObject *keys[3];                      /* SequenceKey, DictKey, GetAttrKey */
    PyObject *words[PA_WORDS];                  /* interned */
    pa_tree_class classes[PA_TREE_CLASSES];
} pa_trees;

#define PA_WORD(trees, word) ((trees)->words[PA_WORD_##word])

int pa_trees_init(pa_trees *trees, PyObject *module);
int pa_trees_visit(pa_trees *trees, visitproc visit, void *arg);
void pa_trees_clear(pa_trees *trees);

/* --- kinds of nodes (pytree_kinds.c) ------------------------------------------------------------------ */

/* An object taken apart. Everything is owned; pa_tree_shut() releases it. */
typedef struct pa_opened {
    pa_kind kind;
    bool keyed;      /* items is a dict, names its keys */
    PyObject *items; /* list, tuple or dict; NULL without children */
    PyObject *names; /* tuple: keys or names of fields; NULL where children are counted */
    PyObject *meta;
    Py_ssize_t count;
} pa_opened;

/* Takes an object apart; a leaf is PA_NODE_LEAF and has nothing to release. Classes with one of the hooks are leaves.
 * false with an exception. */
bool pa_tree_open(pa_trees *trees, PyObject *obj, unsigned hooks, pa_opened *o);
void pa_tree_shut(pa_opened *o);
/* The i-th child, new reference; RuntimeError if the container has changed since it was opened. */
PyObject *pa_tree_child(const pa_opened *o, Py_ssize_t i);
/* Whether the class of an object has one of the hooks; -1: exception. */
int pa_tree_hooked(pa_trees *trees, PyObject *obj, unsigned hooks);
/* An object of a node's kind from its children; new reference. */
PyObject *pa_tree_rebuild(pa_trees *trees, const pa_node *node, PyObject *const *children);
/* The names of an attrs class's fields, a new tuple. */
PyObject *pa_tree_attrs_names(pa_trees *trees, PyObject *class);
/* obj.name in *out: 1, or 0 without one, or -1 with any other exception. */
int pa_tree_attribute(PyObject *obj, PyObject *name, PyObject **out);

/* Types that jax, torch or optree know, when loaded (pytree_registries.c). 1: opened, 0: none of theirs, -1. */
int pa_tree_open_registered(pa_trees *trees, PyObject *obj, pa_opened *o);
PyObject *pa_tree_rebuild_registered(pa_trees *trees, const pa_node *node, PyObject *children);

/* --- the walker (pytree.c) ---------------------------------------------------------------------------- */

/* The functions of anytensor.tree. */
extern PyMethodDef pa_tree_methods[];
/* An object from a structure and any iterable of leaves. */
PyObject *pa_tree_unflatten(pa_trees *trees, const pa_node *nodes, PyObject *leaves);
/* A C call for each level; false with a RecursionError that names the tree. */
bool pa_tree_descend(int level);

/* --- PyTreeDef (treedef.c) ---------------------------------------------------------------------------- */

/* Its nodes are its own, or lie in those of the treedef that it is a child of. */
typedef struct pa_treedef {
    PyObject_VAR_HEAD struct pa_treedef *owner;
    PyObject *weakrefs;
    const pa_node *nodes;
    pa_node own[];
} pa_treedef;

/* Creates the type. */
PyTypeObject *pa_treedef_type(PyObject *module);
/* A treedef of nodes, whose references it takes over, also on failure. */
PyObject *pa_treedef_new(PyTypeObject *type, const pa_node *nodes, Py_ssize_t count);
/* From what __reduce__ gives. */
PyObject *pa_treedef_from_nodes(PyObject *module, PyObject *rows);
/* Whether two nodes agree, their children apart; -1: exception. */
int pa_tree_same(const pa_node *a, const pa_node *b);
const char *pa_tree_kind_name(int kind);

static inline void pa_node_release(const pa_node *node)
{
    Py_XDECREF(node->meta);
    Py_XDECREF(node->restore);
}

#endif
