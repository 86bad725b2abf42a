/* PyTreeDef: the structure of a tree as a value, which compares, hashes, prints and pickles.
 *
 * The nodes lie in the object. A child is a view of its owner's nodes. A treedef never changes, and exists only after its
 * metadata: a cycle through it has another member that can be cleared, as with tuples. */
#include <stddef.h>

#include "edge.h"
#include "pytree.h"

#include <structmember.h>

static const char *const kind_names[] = {
#define X(kind, name) #name,
    PA_TREE_KINDS(X)
#undef X
};

const char *pa_tree_kind_name(int kind) { return kind_names[kind]; }

static const pa_node *nodes_of(PyObject *self) { return ((pa_treedef *)self)->nodes; }

static pa_trees *trees_of(PyTypeObject *type)
{
    return &pa_state_of(PyType_GetModule(type))->trees;
}

/* --- making ------------------------------------------------------------------------------------------------------- */

PyObject *pa_treedef_new(PyTypeObject *type, const pa_node *nodes, Py_ssize_t count)
{
    pa_treedef *self = (pa_treedef *)type->tp_alloc(type, count);
    if (self == NULL) {
        for (Py_ssize_t i = 0; i < count; i++) pa_node_release(&nodes[i]);
        return NULL;
    }
    memcpy(self->own, nodes, (size_t)count * sizeof *nodes);
    self->nodes = self->own;
    return (PyObject *)self;
}

static PyObject *view(PyObject *self, const pa_node *node)
{
    pa_treedef *whole = (pa_treedef *)self;
    pa_treedef *child = (pa_treedef *)Py_TYPE(self)->tp_alloc(Py_TYPE(self), 0);
    if (child == NULL) return NULL;
    child->owner = (pa_treedef *)Py_NewRef((PyObject *)(whole->owner ? whole->owner : whole));
    child->nodes = node;
    return (PyObject *)child;
}

static bool is_pair(PyObject *meta, Py_ssize_t size)
{
    return meta != NULL && PyTuple_Check(meta) && PyTuple_GET_SIZE(meta) == size;
}

static bool is_keys(PyObject *keys, Py_ssize_t arity)
{
    return keys != NULL && PyTuple_Check(keys) && PyTuple_GET_SIZE(keys) == arity;
}

/* Whether the metadata is what rebuilding relies on. */
static bool fits(int kind, PyObject *meta, Py_ssize_t arity)
{
    switch (kind) {
    case PA_NODE_LEAF:
    case PA_NODE_NONE: return meta == NULL && arity == 0;
    case PA_NODE_LIST:
    case PA_NODE_TUPLE: return meta == NULL;
    case PA_NODE_DICT:
    case PA_NODE_ORDEREDDICT: return is_keys(meta, arity);
    case PA_NODE_DEFAULTDICT: return is_pair(meta, 2) && is_keys(PyTuple_GET_ITEM(meta, 1), arity);
    case PA_NODE_NAMEDTUPLE:
        return meta != NULL && PyType_Check(meta) &&
               PyType_IsSubtype((PyTypeObject *)meta, &PyTuple_Type);
    case PA_NODE_MAGIC: return is_pair(meta, 2) && PyType_Check(PyTuple_GET_ITEM(meta, 0));
    case PA_NODE_ATTRS: return meta != NULL && PyType_Check(meta);
    case PA_NODE_DATACLASS:
        return is_pair(meta, 2) && PyType_Check(PyTuple_GET_ITEM(meta, 0)) &&
               PyTuple_Check(PyTuple_GET_ITEM(meta, 1));
    default: return true;
    }
}

/* A node from what a caller says of it, without its children; false with an exception. */
static bool make_node(PyObject *kind, PyObject *meta, Py_ssize_t arity, PyObject *restore,
                      pa_node *out)
{
    int k = 0;
    while (k < PA_NODE_KINDS && PyUnicode_CompareWithASCIIString(kind, kind_names[k]) != 0) k++;
    if (k == PA_NODE_KINDS) {
        PyErr_Format(PyExc_ValueError, "Unknown PyTreeDef kind %R", kind);
        return false;
    }
    if (meta == Py_None) meta = NULL;
    if (!fits(k, meta, arity)) {
        PyErr_Format(PyExc_ValueError,
                     "PyTreeDef: metadata %.200R and %zd children make no node of kind %R",
                     meta == NULL ? Py_None : meta, arity, kind);
        return false;
    }
    bool restores = k == PA_NODE_REGISTERED && restore != NULL && restore != Py_None;
    *out = (pa_node){.kind = (int16_t)k, .arity = arity, .size = 1, .leaves = k == PA_NODE_LEAF};
    out->meta = Py_XNewRef(meta);
    out->restore = restores ? Py_NewRef(restore) : NULL;
    return true;
}

/* Adds a child's counts to its parent; false with a RecursionError. */
static bool adopt(pa_node *node, const pa_node *child)
{
    node->size += child->size;
    node->leaves += child->leaves;
    if (child->height + 1 > PA_TREE_HEIGHT) {
        PyErr_Format(PyExc_RecursionError, "anytensor.tree: a PyTreeDef has more than %d levels",
                     PA_TREE_HEIGHT);
        return false;
    }
    if (child->height + 1 > node->height) node->height = (int16_t)(child->height + 1);
    return true;
}

static bool adopt_all(pa_node *node, PyTypeObject *type, PyObject *children)
{
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(children); i++) {
        PyObject *child = PyTuple_GET_ITEM(children, i);
        if (Py_TYPE(child) != type) {
            PyErr_Format(PyExc_TypeError, "PyTreeDef: children must be PyTreeDefs, not %.100s",
                         Py_TYPE(child)->tp_name);
            return false;
        }
        if (!adopt(node, nodes_of(child))) return false;
    }
    return true;
}

/* The node followed by copies of its children's; takes over the node's references. */
static PyObject *assemble(PyTypeObject *type, pa_node root, PyObject *children)
{
    pa_node *all = adopt_all(&root, type, children) ? PyMem_New(pa_node, (size_t)root.size) : NULL;
    if (all == NULL) {
        if (!PyErr_Occurred()) PyErr_NoMemory();
        pa_node_release(&root);
        return NULL;
    }
    Py_ssize_t count = 0;
    all[count++] = root;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(children); i++) {
        const pa_node *child = nodes_of(PyTuple_GET_ITEM(children, i));
        for (Py_ssize_t j = 0; j < child->size; j++) {
            Py_XINCREF(child[j].meta);
            Py_XINCREF(child[j].restore);
            all[count++] = child[j];
        }
    }
    PyObject *made = pa_treedef_new(type, all, count);
    PyMem_Free(all);
    return made;
}

static PyObject *new (PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"kind", "metadata", "children", "restore", NULL};
    PyObject *kind, *meta, *given, *restore = Py_None;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "UOO|O:PyTreeDef", names, &kind, &meta, &given,
                                     &restore))
        return NULL;
    PyObject *children = PySequence_Tuple(given);
    if (children == NULL) return NULL;
    pa_node root;
    PyObject *made = make_node(kind, meta, PyTuple_GET_SIZE(children), restore, &root)
                         ? assemble(type, root, children)
                         : NULL;
    Py_DECREF(children);
    return made;
}

static int traverse(PyObject *self, visitproc visit, void *arg)
{
    const pa_treedef *t = (pa_treedef *)self;
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(t->owner);
    for (Py_ssize_t i = 0; i < Py_SIZE(self); i++) {
        Py_VISIT(t->own[i].meta);
        Py_VISIT(t->own[i].restore);
    }
    return 0;
}

static void dealloc(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    pa_treedef *t = (pa_treedef *)self;
    PyObject_GC_UnTrack(self);
    Py_TRASHCAN_BEGIN(self, dealloc) /* treedefs may be metadata of treedefs, one in another */
        if (t->weakrefs != NULL) PyObject_ClearWeakRefs(self);
    Py_XDECREF(t->owner);
    for (Py_ssize_t i = 0; i < Py_SIZE(self); i++) pa_node_release(&t->own[i]);
    type->tp_free(self);
    Py_DECREF(type);
    Py_TRASHCAN_END
}

/* --- attributes ------------------------------------------------------------------------------------------------------ */

static PyObject *get_kind(PyObject *self, void *unused)
{
    (void)unused;
    return PyUnicode_InternFromString(kind_names[nodes_of(self)->kind]);
}

static PyObject *get_metadata(PyObject *self, void *unused)
{
    (void)unused;
    PyObject *meta = nodes_of(self)->meta;
    return Py_NewRef(meta == NULL ? Py_None : meta);
}

static PyObject *get_children(PyObject *self, void *unused)
{
    (void)unused;
    const pa_node *node = nodes_of(self), *child = node + 1;
    PyObject *children = PyTuple_New(node->arity);
    for (Py_ssize_t i = 0; children != NULL && i < node->arity; i++, child += child->size) {
        PyObject *one = view(self, child);
        if (one == NULL)
            Py_CLEAR(children);
        else
            PyTuple_SET_ITEM(children, i, one);
    }
    return children;
}

static PyObject *get_num_leaves(PyObject *self, void *unused)
{
    (void)unused;
    return PyLong_FromSsize_t(nodes_of(self)->leaves);
}

static PyObject *unflatten(PyObject *self, PyObject *leaves)
{
    return pa_tree_unflatten(trees_of(Py_TYPE(self)), nodes_of(self), leaves);
}

/* --- comparing and hashing --------------------------------------------------------------------------------------------- */

int pa_tree_same(const pa_node *a, const pa_node *b)
{
    if (a->kind != b->kind || a->arity != b->arity) return 0;
    if (a->meta == b->meta) return 1;
    if (a->meta == NULL || b->meta == NULL) return 0;
    return PyObject_RichCompareBool(a->meta, b->meta, Py_EQ);
}

static int equal(const pa_node *a, const pa_node *b)
{
    if (a == b) return 1;
    if (a->size != b->size || a->leaves != b->leaves || a->height != b->height) return 0;
    int same = 1;
    for (Py_ssize_t i = 0; same > 0 && i < a->size; i++) same = pa_tree_same(&a[i], &b[i]);
    return same;
}

static PyObject *compare(PyObject *self, PyObject *other, int op)
{
    if ((op != Py_EQ && op != Py_NE) || Py_TYPE(self) != Py_TYPE(other)) Py_RETURN_NOTIMPLEMENTED;
    if (Py_EnterRecursiveCall(" in anytensor.tree: comparing PyTreeDefs")) return NULL;
    int same = equal(nodes_of(self), nodes_of(other));
    Py_LeaveRecursiveCall();
    return same < 0 ? NULL : PyBool_FromLong(same == (op == Py_EQ));
}

static Py_hash_t hash(PyObject *self)
{
    const pa_node *node = nodes_of(self);
    Py_uhash_t mixed = 0x345678;
    if (Py_EnterRecursiveCall(" in anytensor.tree: hashing a PyTreeDef")) return -1;
    Py_hash_t one = 0;
    for (Py_ssize_t i = 0; one != -1 && i < node->size; i++) {
        one = node[i].meta == NULL ? 1 : PyObject_Hash(node[i].meta);
        mixed = (mixed ^ (Py_uhash_t)one) * 1000003u;
        mixed = (mixed ^ ((Py_uhash_t)node[i].arity * PA_NODE_KINDS + (Py_uhash_t)node[i].kind)) *
                1000003u;
    }
    Py_LeaveRecursiveCall();
    if (one == -1) return -1;
    return mixed == (Py_uhash_t)-1 ? -2 : (Py_hash_t)mixed;
}

/* --- printing ------------------------------------------------------------------------------------------------------------ */

/* Appends a string to the list of parts; takes it over. */
static bool put(PyObject *parts, PyObject *text)
{
    int status = text == NULL ? -1 : PyList_Append(parts, text);
    Py_XDECREF(text);
    return status == 0;
}

static bool put_text(PyObject *parts, const char *text)
{
    return put(parts, PyUnicode_FromString(text));
}

static PyObject *name_of(PyObject *class)
{
    PyObject *name = PyType_Check(class) ? PyObject_GetAttrString(class, "__name__") : NULL;
    if (name != NULL && PyUnicode_Check(name)) return name;
    Py_XDECREF(name);
    PyErr_Clear();
    return PyObject_Repr(class);
}

/* What stands before the children: class, and aux where it says something. */
static bool put_head(PyObject *parts, const pa_node *node)
{
    PyObject *meta = node->meta, *class = meta;
    if (node->kind == PA_NODE_REGISTERED && !is_pair(meta, 3))
        return put(parts, PyUnicode_FromFormat("registered[%R](", meta == NULL ? Py_None : meta));
    if (node->kind != PA_NODE_NAMEDTUPLE && node->kind != PA_NODE_ATTRS)
        class = PyTuple_GET_ITEM(meta, 0);
    if (!put(parts, name_of(class))) return false;
    bool says = node->kind == PA_NODE_MAGIC ? PyTuple_GET_ITEM(meta, 1) != Py_None
                                            : node->kind == PA_NODE_DATACLASS &&
                                                  PyTuple_Size(PyTuple_GET_ITEM(meta, 1)) > 0;
    if (says && !put(parts, PyUnicode_FromFormat("[%R]", PyTuple_GET_ITEM(meta, 1)))) return false;
    return put_text(parts, "(");
}

/* Names of the fields of a class as a tuple of as many strings, or NULL without an exception. */
static PyObject *field_names(pa_trees *trees, const pa_node *node)
{
    PyObject *names = NULL;
    if (node->kind == PA_NODE_NAMEDTUPLE)
        names = PyObject_GetAttr(node->meta, PA_WORD(trees, _fields));
    else if (node->kind == PA_NODE_DATACLASS) {
        PyObject *spec =
            PyObject_GetAttr(PyTuple_GET_ITEM(node->meta, 0), PA_WORD(trees, __tree_fields__));
        if (spec != NULL && is_pair(spec, 4)) names = Py_NewRef(PyTuple_GET_ITEM(spec, 1));
        Py_XDECREF(spec);
    } else if (node->kind == PA_NODE_ATTRS)
        names = pa_tree_attrs_names(trees, node->meta);
    if (names != NULL && (!PyTuple_Check(names) || PyTuple_GET_SIZE(names) < node->arity))
        Py_CLEAR(names);
    PyErr_Clear();
    return names;
}

static bool put_node(pa_trees *trees, PyObject *parts, const pa_node *node);

static bool put_children(pa_trees *trees, PyObject *parts, const pa_node *node, PyObject *names,
                         const char *format)
{
    const pa_node *child = node + 1;
    for (Py_ssize_t i = 0; i < node->arity; i++, child += child->size) {
        if (i > 0 && !put_text(parts, ", ")) return false;
        if (names != NULL && !put(parts, PyUnicode_FromFormat(format, PyTuple_GET_ITEM(names, i))))
            return false;
        if (!put_node(trees, parts, child)) return false;
    }
    return true;
}

static bool put_fields(pa_trees *trees, PyObject *parts, const pa_node *node)
{
    PyObject *names = field_names(trees, node);
    bool fine = put_head(parts, node) && put_children(trees, parts, node, names, "%S=") &&
                put_text(parts, ")");
    Py_XDECREF(names);
    return fine;
}

static bool put_dict(pa_trees *trees, PyObject *parts, const pa_node *node, PyObject *keys,
                     const char *close)
{
    return put_text(parts, "{") && put_children(trees, parts, node, keys, "%R: ") &&
           put_text(parts, close);
}

static bool put_node(pa_trees *trees, PyObject *parts, const pa_node *node)
{
    switch (node->kind) {
    case PA_NODE_LEAF: return put_text(parts, "*");
    case PA_NODE_NONE: return put_text(parts, "None");
    case PA_NODE_LIST:
        return put_text(parts, "[") && put_children(trees, parts, node, NULL, NULL) &&
               put_text(parts, "]");
    case PA_NODE_TUPLE:
        return put_text(parts, "(") && put_children(trees, parts, node, NULL, NULL) &&
               put_text(parts, node->arity == 1 ? ",)" : ")");
    case PA_NODE_DICT: return put_dict(trees, parts, node, node->meta, "}");
    case PA_NODE_ORDEREDDICT:
        return put_text(parts, "OrderedDict(") && put_dict(trees, parts, node, node->meta, "})");
    case PA_NODE_DEFAULTDICT: {
        PyObject *factory = name_of(PyTuple_GET_ITEM(node->meta, 0));
        return put_text(parts, "defaultdict(") && put(parts, factory) && put_text(parts, ", ") &&
               put_dict(trees, parts, node, PyTuple_GET_ITEM(node->meta, 1), "})");
    }
    default: return put_fields(trees, parts, node);
    }
}

static PyObject *repr(PyObject *self)
{
    if (Py_EnterRecursiveCall(" in anytensor.tree: printing a PyTreeDef")) return NULL;
    PyObject *parts = PyList_New(0), *text = NULL, *empty = PyUnicode_FromString("");
    if (parts != NULL && empty != NULL && put_text(parts, "PyTreeDef(") &&
        put_node(trees_of(Py_TYPE(self)), parts, nodes_of(self)) && put_text(parts, ")"))
        text = PyUnicode_Join(empty, parts);
    Py_XDECREF(parts);
    Py_XDECREF(empty);
    Py_LeaveRecursiveCall();
    return text;
}

/* --- pickling: rows of (kind, arity, metadata, restore) in pre-order ---------------------------------------------------- */

static PyObject *rows_of(const pa_node *node)
{
    PyObject *rows = PyTuple_New(node->size);
    for (Py_ssize_t i = 0; rows != NULL && i < node->size; i++) {
        const pa_node *n = &node[i];
        PyObject *row =
            Py_BuildValue("(snOO)", kind_names[n->kind], n->arity, n->meta ? n->meta : Py_None,
                          n->restore ? n->restore : Py_None);
        if (row == NULL)
            Py_CLEAR(rows);
        else
            PyTuple_SET_ITEM(rows, i, row);
    }
    return rows;
}

static PyObject *reduce(PyObject *self, PyObject *unused)
{
    (void)unused;
    PyObject *all = PyObject_GetAttrString(PyType_GetModule(Py_TYPE(self)), "_tree");
    PyObject *make = all == NULL ? NULL : PyDict_GetItemString(all, "_from_nodes");
    PyObject *rows = make == NULL ? NULL : rows_of(nodes_of(self));
    PyObject *recipe = rows == NULL ? NULL : Py_BuildValue("(O(N))", make, rows);
    Py_XDECREF(all);
    return recipe;
}

static bool read_row(PyObject *row, pa_node *out)
{
    PyObject *kind, *meta, *restore;
    Py_ssize_t arity;
    if (!PyTuple_Check(row)) {
        PyErr_SetString(PyExc_TypeError, "_from_nodes(rows): a row is no tuple");
        return false;
    }
    if (!PyArg_ParseTuple(row, "UnOO", &kind, &arity, &meta, &restore)) return false;
    return make_node(kind, meta, arity, restore, out);
}

/* Adds the counts of the children to each node, from the last node on; false with an exception. `heads` has room for as
 * many places as there are nodes: those of subtrees without a parent yet, the leftmost one on top. */
static bool count_up(pa_node *nodes, Py_ssize_t count, Py_ssize_t *heads)
{
    Py_ssize_t top = 0;
    for (Py_ssize_t i = count - 1; i >= 0; i--) {
        if (nodes[i].arity < 0 || nodes[i].arity > top) break;
        for (Py_ssize_t k = 0; k < nodes[i].arity; k++)
            if (!adopt(&nodes[i], &nodes[heads[--top]])) return false;
        heads[top++] = i;
    }
    if (top == 1 && heads[0] == 0) return true;
    PyErr_SetString(PyExc_ValueError, "_from_nodes(rows): rows make no tree");
    return false;
}

PyObject *pa_treedef_from_nodes(PyObject *module, PyObject *rows)
{
    if (!PyTuple_Check(rows)) {
        PyErr_SetString(PyExc_TypeError, "_from_nodes(rows): a tuple of rows");
        return NULL;
    }
    Py_ssize_t count = PyTuple_GET_SIZE(rows), read = 0;
    pa_node *nodes = PyMem_New(pa_node, (size_t)count + 1);
    Py_ssize_t *heads = PyMem_New(Py_ssize_t, (size_t)count + 1);
    PyObject *made = NULL;
    if (nodes == NULL || heads == NULL)
        PyErr_NoMemory();
    else
        while (read < count && read_row(PyTuple_GET_ITEM(rows, read), &nodes[read])) read++;
    if (read == count && heads != NULL && count_up(nodes, count, heads))
        made = pa_treedef_new(pa_state_of(module)->trees.treedef, nodes, count);
    else
        while (read > 0) pa_node_release(&nodes[--read]);
    PyMem_Free(nodes);
    PyMem_Free(heads);
    return made;
}

/* --- the type --------------------------------------------------------------------------------------------------------------- */

static PyMethodDef methods[] = {{"unflatten", unflatten, METH_O,
                                 "unflatten($self, leaves, /)\n--\n\nA tree of this structure with "
                                 "the leaves, any iterable of them."},
                                {"__reduce__", reduce, METH_NOARGS, NULL},
                                {NULL, NULL, 0, NULL}};

static PyGetSetDef attributes[] = {
    {"kind", get_kind, NULL, "What the root is: 'leaf', 'none', 'list', 'dict', ...", NULL},
    {"metadata", get_metadata, NULL, "What the root compares beside its kind: keys, class, aux",
     NULL},
    {"children", get_children, NULL, "A tuple of PyTreeDefs", NULL},
    {"num_leaves", get_num_leaves, NULL, "How many leaves unflatten() takes", NULL},
    {NULL, NULL, NULL, NULL, NULL}};

static PyMemberDef members[] = {
    {"__weaklistoffset__", T_PYSSIZET, offsetof(pa_treedef, weakrefs), READONLY, NULL},
    {NULL, 0, 0, 0, NULL}};

static PyType_Slot slots[] = {
    {Py_tp_doc, "PyTreeDef(kind, metadata, children, restore=None)\n--\n\n"
                "The structure of a tree. It compares, hashes if its metadata does, and pickles."},
    {Py_tp_new, new},
    {Py_tp_dealloc, dealloc},
    {Py_tp_traverse, traverse},
    {Py_tp_richcompare, compare},
    {Py_tp_hash, hash},
    {Py_tp_repr, repr},
    {Py_tp_methods, methods},
    {Py_tp_getset, attributes},
    {Py_tp_members, members},
    {0, NULL}};

static PyType_Spec spec = {
    .name = "anytensor.tree.PyTreeDef",
    .basicsize = sizeof(pa_treedef),
    .itemsize = sizeof(pa_node),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
    .slots = slots,
};

PyTypeObject *pa_treedef_type(PyObject *module)
{
    return (PyTypeObject *)PyType_FromModuleAndSpec(module, &spec, NULL);
}
