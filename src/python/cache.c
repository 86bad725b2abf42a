/* The cache: what has been computed from arrays, kept for as long as they live.
 *
 * A context variable holds the root: namespaces, dictionaries of entries. An entry (key, value) stands under the addresses
 * of its key's objects and what the caller adds; it holds them weakly and counts only for these very objects, since an
 * address may be another's by now. The callback of a weak reference knows the namespace weakly, too, so that nothing of
 * the cache lives on when it has been turned off. */
#include "cache.h"

#include <structmember.h>

#include "core/promote.h"

/* --- keys ------------------------------------------------------------------------------------------------- */

static int key_traverse(PyObject *self, visitproc visit, void *arg)
{
    pa_key *key = (pa_key *)self;
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(key->refs);
    Py_VISIT(key->versions);
    Py_VISIT(key->mode);
    Py_VISIT(key->pulses);
    return 0;
}

static int key_clear(PyObject *self)
{
    pa_key *key = (pa_key *)self;
    Py_CLEAR(key->refs);
    Py_CLEAR(key->versions);
    Py_CLEAR(key->mode);
    Py_CLEAR(key->pulses);
    return 0;
}

static void key_dealloc(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    PyObject_GC_UnTrack(self);
    key_clear(self);
    type->tp_free(self);
    Py_DECREF(type);
}

/* The object of one place, borrowed; None once it is gone. */
static PyObject *object_at(const pa_key *key, Py_ssize_t i)
{
    PyObject *ref = PyTuple_GET_ITEM(key->refs, i);
    return PyTuple_CheckExact(ref) ? PyTuple_GET_ITEM(ref, 0) : PyWeakref_GET_OBJECT(ref);
}

static bool is_pinned(const pa_key *key, Py_ssize_t i)
{
    return PyTuple_CheckExact(PyTuple_GET_ITEM(key->refs, i));
}

static PyObject *key_call(PyObject *self, PyObject *args, PyObject *kwargs)
{
    pa_key *key = (pa_key *)self;
    if (PyTuple_GET_SIZE(args) > 0 || kwargs != NULL) {
        PyErr_SetString(PyExc_TypeError, "a key of the cache takes no arguments");
        return NULL;
    }
    if (key->refs == NULL) Py_RETURN_NONE;
    Py_ssize_t n = PyTuple_GET_SIZE(key->refs);
    if (key->single) return Py_NewRef(object_at(key, 0));
    PyObject *out = PyTuple_New(n);
    for (Py_ssize_t i = 0; out != NULL && i < n; i++) {
        PyObject *obj = object_at(key, i);
        if (obj == Py_None && !is_pinned(key, i))
            Py_SETREF(out, NULL);
        else
            PyTuple_SET_ITEM(out, i, Py_NewRef(obj));
        if (out == NULL) Py_RETURN_NONE;
    }
    return out;
}

/* A key type's own function tells its objects, whichever copy of the module has made it. */
static bool is_entry(PyObject *entry)
{
    return PyTuple_CheckExact(entry) && PyTuple_GET_SIZE(entry) == 2 &&
           Py_TYPE(PyTuple_GET_ITEM(entry, 0))->tp_call == key_call;
}

static bool has_ref(const pa_key *key, PyObject *ref)
{
    for (Py_ssize_t i = 0; key->refs != NULL && i < PyTuple_GET_SIZE(key->refs); i++)
        if (PyTuple_GET_ITEM(key->refs, i) == ref) return true;
    for (Py_ssize_t i = 0; key->pulses != NULL && i < PyList_GET_SIZE(key->pulses); i++)
        if (PyList_GET_ITEM(key->pulses, i) == ref) return true;
    return false;
}

/* Something that an entry depends on has died. where: the namespace (weakly) and the entry's place in it; another entry
 * may be there by now. */
static PyObject *gone(PyObject *where, PyObject *ref)
{
    PyObject *space = Py_NewRef(PyWeakref_GET_OBJECT(PyTuple_GET_ITEM(where, 0)));
    PyObject *at = PyTuple_GET_ITEM(where, 1);
    PyObject *entry = PyDict_Check(space) ? PyDict_GetItemWithError(space, at) : NULL;
    Py_XINCREF(entry);
    if (entry != NULL && is_entry(entry) && has_ref((pa_key *)PyTuple_GET_ITEM(entry, 0), ref))
        PyDict_DelItem(space, at);
    PyErr_Clear(); /* of a user's own __eq__ */
    Py_XDECREF(entry);
    Py_DECREF(space);
    Py_RETURN_NONE;
}

static PyMethodDef gone_method = {"gone", gone, METH_O, NULL};

static PyObject *callback_for(PyObject *space, PyObject *at)
{
    PyObject *weakly = PyWeakref_NewRef(space, NULL);
    PyObject *where = weakly == NULL ? NULL : PyTuple_Pack(2, weakly, at);
    PyObject *callback = where == NULL ? NULL : PyCFunction_New(&gone_method, where);
    Py_XDECREF(weakly);
    Py_XDECREF(where);
    return callback;
}

static PyObject *new_ref(PyObject *obj, PyObject *callback)
{
    if (PyType_SUPPORTS_WEAKREFS(Py_TYPE(obj))) return PyWeakref_NewRef(obj, callback);
    return PyTuple_Pack(1, obj);
}

/* torch counts the writes to a tensor, but not to one of inference mode. None for all others. */
static PyObject *version_of(pa_state *st, PyObject *obj)
{
    if (pa_backend_at_hand(st, obj) != &st->torch) Py_RETURN_NONE;
    PyObject *version = PyObject_GetAttrString(obj, "_version");
    if (version != NULL) return version;
    PyErr_Clear();
    Py_RETURN_NONE;
}

static PyObject *each(pa_state *st, PyObject *const *obj, Py_ssize_t n, PyObject *callback)
{
    PyObject *out = PyTuple_New(n);
    for (Py_ssize_t i = 0; out != NULL && i < n; i++) {
        PyObject *one = callback ? new_ref(obj[i], callback) : version_of(st, obj[i]);
        if (one == NULL)
            Py_CLEAR(out);
        else
            PyTuple_SET_ITEM(out, i, one);
    }
    return out;
}

static PyObject *refs_to(PyObject *list, PyObject *callback)
{
    PyObject *out = PyList_New(0);
    for (Py_ssize_t i = 0; out != NULL && i < PyList_GET_SIZE(list); i++) {
        PyObject *ref = new_ref(PyList_GET_ITEM(list, i), callback);
        if (ref == NULL || PyList_Append(out, ref) < 0) Py_CLEAR(out);
        Py_XDECREF(ref);
    }
    return out;
}

/* --- what a call asks for ------------------------------------------------------------------------------------ */

/* An object or a tuple of them, the place of its entry, and what watches torch now. */
typedef struct request {
    pa_state *st;
    PyObject *const *obj; /* borrowed */
    Py_ssize_t count;
    bool single;
    PyObject *one;  /* the single object's place for obj */
    PyObject *mode; /* owned: None without */
    bool off;       /* torch.jit.trace: nothing is found or kept */
} request;

static void take_objects(request *r, PyObject *obj)
{
    r->single = !PyTuple_Check(obj);
    r->one = obj;
    r->obj = r->single ? &r->one : &PyTuple_GET_ITEM(obj, 0);
    r->count = r->single ? 1 : PyTuple_GET_SIZE(obj);
}

/* id(obj), or the tuple of them. */
static PyObject *address(const request *r)
{
    if (r->single) return PyLong_FromVoidPtr(r->one);
    PyObject *out = PyTuple_New(r->count);
    for (Py_ssize_t i = 0; out != NULL && i < r->count; i++) {
        PyObject *one = PyLong_FromVoidPtr(r->obj[i]);
        if (one == NULL)
            Py_CLEAR(out);
        else
            PyTuple_SET_ITEM(out, i, one);
    }
    return out;
}

/* (address, *extra) */
static PyObject *place_of(const request *r, PyObject *extra)
{
    PyObject *rest = extra == NULL ? PyTuple_New(0) : PySequence_Tuple(extra);
    PyObject *first = rest == NULL ? NULL : address(r);
    PyObject *out = first == NULL ? NULL : PyTuple_New(1 + PyTuple_GET_SIZE(rest));
    if (out != NULL) {
        PyTuple_SET_ITEM(out, 0, Py_NewRef(first));
        for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(rest); i++)
            PyTuple_SET_ITEM(out, i + 1, Py_NewRef(PyTuple_GET_ITEM(rest, i)));
    }
    Py_XDECREF(first);
    Py_XDECREF(rest);
    return out;
}

static int take_request(request *r, pa_state *st, PyObject *obj)
{
    *r = (request){.st = st};
    take_objects(r, obj);
    /* whatever the key is: the value may be torch's */
    if (st->torch.state != NULL && (r->mode = pa_watcher(st, &st->torch)) == NULL) return -1;
    if (r->mode == NULL) r->mode = Py_NewRef(Py_None);
    r->off = r->mode == Py_NotImplemented;
    return 0;
}

static PyObject *new_key(const request *r, const pa_look *look, PyObject *callback)
{
    pa_key *key = PyObject_GC_New(pa_key, r->st->cache.key_type);
    if (key == NULL) return NULL;
    key->single = r->single;
    key->places = look->places;
    key->refs = each(r->st, r->obj, r->count, callback);
    key->versions = each(r->st, r->obj, r->count, NULL);
    key->pulses = refs_to(look->pulses, callback);
    key->mode = r->mode == Py_None ? Py_NewRef(Py_None) : PyWeakref_NewRef(r->mode, NULL);
    PyObject_GC_Track(key);
    if (key->refs == NULL || key->versions == NULL || key->pulses == NULL || key->mode == NULL)
        Py_CLEAR(key);
    return (PyObject *)key;
}

/* Whether an entry was made of these very objects, as they are now. */
static int fits(const pa_key *key, const request *r)
{
    if (key->refs == NULL || key->single != r->single || PyTuple_GET_SIZE(key->refs) != r->count)
        return 0;
    for (Py_ssize_t i = 0; i < r->count; i++)
        if (object_at(key, i) != r->obj[i]) return 0;
    PyObject *now = each(r->st, r->obj, r->count, NULL);
    int same = now == NULL ? -1 : PyObject_RichCompareBool(now, key->versions, Py_EQ);
    Py_XDECREF(now);
    return same;
}

static bool same_watcher(const pa_key *key, const request *r)
{
    PyObject *mode = key->mode == Py_None ? Py_None : PyWeakref_GET_OBJECT(key->mode);
    return key->mode == Py_None ? r->mode == Py_None : mode != Py_None && mode == r->mode;
}

/* --- the root ------------------------------------------------------------------------------------------------- */

typedef struct root {
    PyObject_HEAD
    PyObject *spaces; /* dict: name -> namespace */
    PyObject *token;  /* of the context variable, from the activation */
    Py_ssize_t depth; /* of `with` */
    bool sticky, on;
    PyObject *weakrefs;
} root;

static int root_traverse(PyObject *self, visitproc visit, void *arg)
{
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(((root *)self)->spaces);
    Py_VISIT(((root *)self)->token);
    return 0;
}

static int root_clear(PyObject *self)
{
    Py_CLEAR(((root *)self)->spaces);
    Py_CLEAR(((root *)self)->token);
    return 0;
}

/* From here on the root is off, in every context that has it. */
static void retire(root *r)
{
    pa_state *st = PyType_GetModuleState(Py_TYPE(r));
    if (r->on && st != NULL) st->cache.roots--;
    r->on = false;
}

static void root_dealloc(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    PyObject_GC_UnTrack(self);
    retire((root *)self);
    if (((root *)self)->weakrefs != NULL) PyObject_ClearWeakRefs(self);
    root_clear(self);
    type->tp_free(self);
    Py_DECREF(type);
}

/* The root in force, new reference; NULL without an exception while the cache is off. */
static root *current(const pa_state *st)
{
    PyObject *value = NULL;
    if (st->cache.roots == 0 || PyContextVar_Get(st->cache.variable, NULL, &value) < 0) return NULL;
    if (value != NULL && ((root *)value)->on) return (root *)value;
    Py_XDECREF(value);
    return NULL;
}

static PyObject *new_space(pa_state *st, root *r, PyObject *name)
{
    PyObject *space = PyObject_CallNoArgs(st->cache.space_type);
    if (space != NULL && PyDict_SetItem(r->spaces, name, space) < 0) Py_CLEAR(space);
    return space;
}

/* A namespace, new reference; made where it is asked for, else NULL without an exception. */
static PyObject *space_of(pa_state *st, root *r, PyObject *name, bool make)
{
    if (r->spaces == NULL) return NULL;
    PyObject *space = PyDict_GetItemWithError(r->spaces, name);
    if (space != NULL) return Py_NewRef(space);
    return PyErr_Occurred() || !make ? NULL : new_space(st, r, name);
}

static root *activate(pa_state *st)
{
    root *r = PyObject_GC_New(root, st->cache.root_type);
    if (r == NULL) return NULL;
    r->spaces = PyDict_New();
    r->token = r->weakrefs = NULL;
    r->depth = 0;
    r->sticky = r->on = false;
    PyObject_GC_Track(r);
    PyObject *first = r->spaces == NULL ? NULL : new_space(st, r, st->cache.partition);
    if (first != NULL) r->token = PyContextVar_Set(st->cache.variable, (PyObject *)r);
    Py_XDECREF(first);
    if (r->token == NULL) {
        Py_DECREF(r);
        return NULL;
    }
    r->on = true;
    st->cache.roots++;
    return r;
}

static root *current_or_new(pa_state *st)
{
    root *r = current(st);
    return r != NULL || PyErr_Occurred() ? r : activate(st);
}

/* Empties all namespaces, which somebody may hold, and forgets the root. Another context than that of the activation
 * cannot reset its variable: ValueError, with everything off nonetheless. */
static int turn_off(const pa_state *st, root *r)
{
    if (!r->on) return 0;
    retire(r);
    PyObject *spaces = PyDict_Values(r->spaces);
    for (Py_ssize_t i = 0; spaces != NULL && i < PyList_GET_SIZE(spaces); i++)
        PyDict_Clear(PyList_GET_ITEM(spaces, i));
    Py_XDECREF(spaces);
    PyDict_Clear(r->spaces);
    PyObject *token = r->token;
    r->token = NULL;
    int status = token == NULL ? 0 : PyContextVar_Reset(st->cache.variable, token);
    Py_XDECREF(token);
    return spaces == NULL ? -1 : status;
}

/* --- lookup, store, purge ---------------------------------------------------------------------------------------- */

/* What stands at a place, new reference; NULL with or without an exception. A root, a place and a request come from
 * begin_in(). */
typedef struct scope {
    root *root;
    PyObject *space, *place;
    request r;
} scope;

static void leave_scope(scope *s)
{
    Py_CLEAR(s->root);
    Py_CLEAR(s->space);
    Py_CLEAR(s->place);
    Py_CLEAR(s->r.mode);
}

/* False where there is nothing to do, or with an exception; then there is nothing to leave. */
static bool enter_scope(scope *s, pa_state *st, PyObject *name, PyObject *obj, PyObject *extra,
                        bool make)
{
    *s = (scope){.root = current(st)};
    if (s->root != NULL) s->space = space_of(st, s->root, name, make);
    if (s->space != NULL && take_request(&s->r, st, obj) == 0 && !s->r.off)
        s->place = place_of(&s->r, extra);
    if (s->place != NULL) return true;
    leave_scope(s);
    return false;
}

static int forget(const scope *s)
{
    int found = PyDict_Contains(s->space, s->place);
    return found > 0 ? PyDict_DelItem(s->space, s->place) : found;
}

static PyObject *value_of(const scope *s, PyObject *entry)
{
    const pa_key *key = (pa_key *)PyTuple_GET_ITEM(entry, 0);
    PyObject *value = PyTuple_GET_ITEM(entry, 1);
    int same = fits(key, &s->r);
    if (same < 0 || (same && !same_watcher(key, &s->r))) return NULL;
    value = !same ? NULL : key->places ? pa_value_out(s->r.st, value) : Py_NewRef(value);
    if (value == NULL && !PyErr_Occurred()) forget(s);
    return value;
}

PyObject *pa_cache_lookup(pa_state *st, PyObject *name, PyObject *obj, PyObject *extra)
{
    scope s;
    if (!enter_scope(&s, st, name, obj, extra, false)) return NULL;
    PyObject *entry = PyDict_GetItemWithError(s.space, s.place), *value = NULL;
    Py_XINCREF(entry);
    if (entry != NULL && is_entry(entry)) value = value_of(&s, entry);
    Py_XDECREF(entry);
    leave_scope(&s);
    return value;
}

static int put(const scope *s, const pa_look *look, PyObject *value)
{
    PyObject *callback = callback_for(s->space, s->place);
    PyObject *key = callback == NULL ? NULL : new_key(&s->r, look, callback);
    PyObject *kept = key == NULL ? NULL : pa_value_in(look, value);
    PyObject *entry = kept == NULL ? NULL : PyTuple_Pack(2, key, kept);
    int status = entry == NULL ? -1 : PyDict_SetItem(s->space, s->place, entry);
    Py_XDECREF(callback);
    Py_XDECREF(key);
    Py_XDECREF(kept);
    Py_XDECREF(entry);
    return status;
}

int pa_cache_store(pa_state *st, PyObject *name, PyObject *obj, PyObject *value, PyObject *extra)
{
    scope s;
    pa_look look;
    if (!enter_scope(&s, st, name, obj, extra, true)) return PyErr_Occurred() ? -1 : 0;
    int status = pa_look_through(&look, st, s.r.obj, s.r.count, value);
    if (status == 0) status = look.refuse ? forget(&s) : put(&s, &look, value);
    pa_look_close(&look);
    leave_scope(&s);
    return status;
}

/* Whether an entry's place begins with an address: the object's, alone or in a tuple, or just this tuple. */
static int begins_with(PyObject *place, PyObject *address)
{
    if (!PyTuple_Check(place) || PyTuple_GET_SIZE(place) == 0) return 0;
    PyObject *first = PyTuple_GET_ITEM(place, 0);
    int same = PyObject_RichCompareBool(first, address, Py_EQ);
    if (same != 0 || !PyTuple_CheckExact(first) || !PyLong_CheckExact(address)) return same;
    return PySequence_Contains(first, address);
}

static int purge_space(PyObject *space, PyObject *address)
{
    PyObject *places = PyDict_Keys(space);
    int status = places == NULL ? -1 : 0;
    for (Py_ssize_t i = 0; status == 0 && i < PyList_GET_SIZE(places); i++) {
        int ours = begins_with(PyList_GET_ITEM(places, i), address);
        if (ours > 0) ours = PyDict_Contains(space, PyList_GET_ITEM(places, i));
        status = ours > 0 ? PyDict_DelItem(space, PyList_GET_ITEM(places, i)) : ours;
    }
    Py_XDECREF(places);
    return status;
}

int pa_cache_purge(pa_state *st, PyObject *name, PyObject *obj)
{
    request r = {.st = st};
    root *now = current(st);
    PyObject *space = now == NULL ? NULL : space_of(st, now, name, false);
    take_objects(&r, obj);
    PyObject *first = space == NULL ? NULL : address(&r);
    if (first != NULL) purge_space(space, first);
    Py_XDECREF(first);
    Py_XDECREF(space);
    Py_XDECREF(now);
    return PyErr_Occurred() ? -1 : 0;
}

/* --- the library's own: ids of partitions --------------------------------------------------------------------------- */

/* The edge whose context this is, if it was called with this very array: what a NumPy array became on its way into the
 * call is another one each time. */
static pa_edge *edge_with(at_context *cx, at_array a)
{
    pa_edge *e = (pa_edge *)((char *)cx - offsetof(pa_edge, cx));
    for (int i = 0; i < e->sig->count; i++)
        if (e->value[i] == a.p) return e;
    return NULL;
}

/* Within torch's modes nothing is kept by the library itself: Dynamo calls the function once per node, and would meet one
 * result in two of them. */
static int watched(pa_state *st, at_array a)
{
    if (a.be != &st->torch) return 0;
    PyObject *watcher = pa_watcher(st, a.be);
    int yes = watcher == NULL ? -1 : watcher != Py_None;
    Py_XDECREF(watcher);
    return yes;
}

static int warn_of_length(pa_state *st, PyObject *partitions, int64_t found, int64_t total)
{
    if (pa_cache_purge(st, st->cache.partition, partitions) < 0) return -1;
    return PyErr_WarnFormat(
        PyExc_UserWarning, 1,
        "cached partition ids length %lld != total_length %lld: the partitions were "
        "changed in place, or asked for with another total; computed anew",
        (long long)found, (long long)total);
}

/* Whether ids are as many as asked for, where both are numbers, and of the default integer that is so now. */
static bool still_right(at_context *cx, pa_state *st, at_array key, at_array ids, at_dim total)
{
    at_shape shape;
    at_dtype t;
    if (ids.be->shape(cx, ids, &shape) != AT_OK || ids.be->dtype(cx, ids, &t) != AT_OK)
        return false;
    at_dim n = shape.dim[0];
    bool symbolic = !at_is_nil(n.sym) || !at_is_nil(total.sym);
    at_release(n.sym);
    if (t != ids.be->default_dtype(ids.be, 'i')) return false;
    if (symbolic || n.n == total.n) return true;
    if (warn_of_length(st, key.p, n.n, total.n) < 0) pa_foreign(cx);
    return false;
}

static at_status find_ids(at_context *cx, at_array partitions, at_dim total, at_array *out)
{
    pa_edge *e = edge_with(cx, partitions);
    int skip = e == NULL ? 1 : watched(e->st, partitions);
    if (skip != 0) return skip < 0 ? pa_foreign(cx) : AT_OK;
    PyObject *ids = pa_cache_lookup(e->st, e->st->cache.partition, partitions.p, NULL);
    if (ids == NULL) return PyErr_Occurred() ? pa_foreign(cx) : AT_OK;
    at_array found = {ids, pa_backend_at_hand(e->st, ids)};
    if (found.be == partitions.be && still_right(cx, e->st, partitions, found, total))
        *out = found;
    else
        Py_DECREF(ids);
    return cx->status;
}

static at_status keep_ids(at_context *cx, at_array partitions, at_array ids)
{
    pa_edge *e = edge_with(cx, partitions);
    int skip = e == NULL ? 1 : watched(e->st, partitions);
    if (skip == 0) skip = pa_cache_store(e->st, e->st->cache.partition, partitions.p, ids.p, NULL);
    return skip < 0 ? pa_foreign(cx) : AT_OK;
}

const at_memo pa_memo = {find_ids, keep_ids};

/* --- as Python functions --------------------------------------------------------------------------------------------- */

static PyObject *none_or_error(int status)
{
    if (status < 0) return NULL;
    Py_RETURN_NONE;
}

static int name_of(PyObject *keyword, const char *const *names, int count)
{
    for (int i = 0; i < count; i++)
        if (PyUnicode_CompareWithASCIIString(keyword, names[i]) == 0) return i;
    return -1;
}

/* Arguments by their names; all but the last, where it is optional, are required. */
static bool bind(const char *op, const char *const *names, int required, int count,
                 PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames, PyObject **out)
{
    for (int i = 0; i < count; i++) out[i] = i < nargs ? args[i] : NULL;
    bool fine = nargs <= count;
    for (Py_ssize_t k = 0; fine && kwnames != NULL && k < PyTuple_GET_SIZE(kwnames); k++) {
        int i = name_of(PyTuple_GET_ITEM(kwnames, k), names, count);
        fine = i >= 0 && out[i] == NULL;
        if (fine) out[i] = args[nargs + k];
    }
    for (int i = 0; i < required; i++) fine = fine && out[i] != NULL;
    if (!fine)
        PyErr_Format(PyExc_TypeError, "cache.%s(): missing, unexpected or repeated arguments", op);
    return fine;
}

static const char *const names[] = {"namespace", "obj", "extra"};
static const char *const names_to_store[] = {"namespace", "obj", "value", "extra"};

PyObject *pa_py_cache_lookup(PyObject *module, PyObject *const *args, Py_ssize_t nargs,
                             PyObject *kwnames)
{
    PyObject *a[3];
    if (!bind("lookup", names, 2, 3, args, nargs, kwnames, a)) return NULL;
    PyObject *value = pa_cache_lookup(pa_state_of(module), a[0], a[1], a[2]);
    return value != NULL || PyErr_Occurred() ? value : Py_NewRef(Py_None);
}

PyObject *pa_py_cache_store(PyObject *module, PyObject *const *args, Py_ssize_t nargs,
                            PyObject *kwnames)
{
    PyObject *a[4];
    if (!bind("store", names_to_store, 3, 4, args, nargs, kwnames, a)) return NULL;
    return none_or_error(pa_cache_store(pa_state_of(module), a[0], a[1], a[2], a[3]));
}

PyObject *pa_py_cache_purge(PyObject *module, PyObject *const *args, Py_ssize_t nargs,
                            PyObject *kwnames)
{
    PyObject *a[2];
    if (!bind("purge", names, 2, 2, args, nargs, kwnames, a)) return NULL;
    return none_or_error(pa_cache_purge(pa_state_of(module), a[0], a[1]));
}

PyObject *pa_py_cache_enable(PyObject *module, PyObject *unused)
{
    (void)unused;
    root *r = current_or_new(pa_state_of(module));
    if (r == NULL) return NULL;
    r->sticky = true;
    Py_DECREF(r);
    Py_RETURN_NONE;
}

PyObject *pa_py_cache_disable(PyObject *module, PyObject *unused)
{
    (void)unused;
    pa_state *st = pa_state_of(module);
    root *r = current(st);
    int status = r == NULL ? 0 : turn_off(st, r);
    Py_XDECREF(r);
    return PyErr_Occurred() ? NULL : none_or_error(status);
}

/* One `with` deeper: the root, for _cache_leave(). */
PyObject *pa_py_cache_enter(PyObject *module, PyObject *unused)
{
    (void)unused;
    root *r = current_or_new(pa_state_of(module));
    if (r != NULL) r->depth++;
    return (PyObject *)r;
}

PyObject *pa_py_cache_leave(PyObject *module, PyObject *entered)
{
    pa_state *st = pa_state_of(module);
    if (!Py_IS_TYPE(entered, st->cache.root_type)) {
        PyErr_SetString(PyExc_TypeError, "_cache_leave(what _cache_enter() gave)");
        return NULL;
    }
    root *r = (root *)entered;
    r->depth--;
    return none_or_error(r->depth == 0 && !r->sticky ? turn_off(st, r) : 0);
}

PyObject *pa_py_cache_space(PyObject *module, PyObject *name)
{
    pa_state *st = pa_state_of(module);
    root *r = current(st);
    PyObject *space = r == NULL ? NULL : space_of(st, r, name, true);
    Py_XDECREF(r);
    if (space == NULL && !PyErr_Occurred()) PyErr_SetObject(PyExc_KeyError, name);
    return space;
}

PyObject *pa_py_cache_has(PyObject *module, PyObject *name)
{
    pa_state *st = pa_state_of(module);
    root *r = current(st);
    PyObject *space = r == NULL ? NULL : space_of(st, r, name, false);
    Py_XDECREF(r);
    if (PyErr_Occurred()) return NULL;
    PyObject *has = PyBool_FromLong(space != NULL);
    Py_XDECREF(space);
    return has;
}

/* --- types and state --------------------------------------------------------------------------------------------------- */

static int make_types(pa_state *st)
{
    static PyType_Slot key_slots[] = {{Py_tp_traverse, key_traverse},
                                      {Py_tp_clear, key_clear},
                                      {Py_tp_dealloc, key_dealloc},
                                      {Py_tp_call, key_call},
                                      {0, NULL}};
    static PyMemberDef members[] = {
        {"__weaklistoffset__", T_PYSSIZET, offsetof(root, weakrefs), READONLY, NULL},
        {NULL, 0, 0, 0, NULL}};
    static PyType_Slot root_slots[] = {{Py_tp_traverse, root_traverse},
                                       {Py_tp_clear, root_clear},
                                       {Py_tp_dealloc, root_dealloc},
                                       {Py_tp_members, members},
                                       {0, NULL}};
    unsigned flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_DISALLOW_INSTANTIATION;
    PyType_Spec key_spec = {"anytensor._core._CacheKey", sizeof(pa_key), 0, flags, key_slots};
    PyType_Spec root_spec = {"anytensor._core._CacheRoot", sizeof(root), 0, flags, root_slots};
    st->cache.key_type = (PyTypeObject *)PyType_FromModuleAndSpec(st->module, &key_spec, NULL);
    st->cache.root_type = (PyTypeObject *)PyType_FromModuleAndSpec(st->module, &root_spec, NULL);
    st->cache.space_type = PyObject_CallFunction((PyObject *)&PyType_Type, "s(O){s(s)ss}",
                                                 "Namespace", (PyObject *)&PyDict_Type, "__slots__",
                                                 "__weakref__", "__module__", "anytensor");
    bool fine =
        st->cache.key_type != NULL && st->cache.root_type != NULL && st->cache.space_type != NULL;
    return fine ? 0 : -1;
}

int pa_cache_init(pa_state *st)
{
    st->cache.partition = PyUnicode_InternFromString("partition");
    st->cache.variable = PyContextVar_New("anytensor.cache", NULL);
    if (st->cache.partition == NULL || st->cache.variable == NULL || pa_place_init(st) < 0)
        return -1;
    return make_types(st);
}

int pa_cache_visit(pa_state *st, visitproc visit, void *arg)
{
    Py_VISIT(st->cache.variable);
    Py_VISIT(st->cache.key_type);
    Py_VISIT(st->cache.root_type);
    Py_VISIT(st->cache.place_type);
    Py_VISIT(st->cache.space_type);
    return 0;
}

void pa_cache_clear(pa_state *st)
{
    Py_CLEAR(st->cache.variable);
    Py_CLEAR(st->cache.key_type);
    Py_CLEAR(st->cache.root_type);
    Py_CLEAR(st->cache.place_type);
    Py_CLEAR(st->cache.space_type);
    Py_CLEAR(st->cache.partition);
}
