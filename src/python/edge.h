/* What the parts of the extension share: the module's state, the adapters' frame, conversions.
 *
 * Names: pa_ is shared inside src/python. Everything lives in the module's state; the vtables of the adapters
 * are copies in it, so that a slot reaches its adapter through be->state. */
#ifndef PA_EDGE_H
#define PA_EDGE_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "anytensor/backend.h"
#include "anytensor/ops.h"
#include "pytree.h"

#define PA_MAX_PARAMS 6

typedef struct pa_state pa_state;

/* --- types and backends (registry.c) -------------------------------------------------------------- */

/* One remembered type. A weak reference tells a live type from a new one at the same address. */
typedef struct pa_known_type {
    PyTypeObject *type;
    PyObject *weakref;
    const at_backend *be;
} pa_known_type;

#define PA_KNOWN_TYPES 128

/* --- module state ----------------------------------------------------------------------------------- */

/* What the cache (cache.c) holds: its context variable, its types, and how many roots are on. */
typedef struct pa_cache {
    PyObject *variable, *space_type, *partition;
    PyTypeObject *key_type, *root_type, *place_type;
    Py_ssize_t roots;
} pa_cache;

struct pa_state {
    PyObject *module;      /* the module itself, borrowed: it owns this state */
    PyTypeObject *ndarray; /* numpy.ndarray, borrowed: NumPy is never unloaded */
    at_backend numpy;      /* always awake */
    at_backend native;     /* likewise: arrays of the library's own, see native_array_type.c */
    PyTypeObject *native_type;
    /* Frameworks; state is NULL until the first array is seen. A framework's symbols are the sizes and scalars that
     * it traces: SymInt, dimension expressions, 0-d graph tensors. */
    at_backend torch, torch_symbol;
    at_backend jax, jax_symbol;
    at_backend tensorflow, tensorflow_symbol;
    struct pa_space *spaces; /* one backend per Array API namespace seen (backends/array_api.c) */
    PyObject *options;       /* context variable: how NumPy arrays join, see pa_options */
    PyObject *unknown_array; /* exception: an object that is no array, see info.c */
    pa_cache cache;
    pa_known_type known[PA_KNOWN_TYPES];
    pa_trees trees;      /* classes, words and types of anytensor.tree */
    PyObject **names;    /* interned argument names, PA_MAX_PARAMS per op; owned */
    PyObject **defaults; /* default values in the same order; owned, NULL without one */
};

pa_state *pa_state_of(PyObject *module);

/* The backend of an object's type, or NULL without an exception where no awake or loaded framework has it, or with
 * one. Never imports anything. */
const at_backend *pa_backend_of(pa_state *st, PyObject *obj);
/* The same without a search: NULL where the type is not at hand. */
static inline const at_backend *pa_backend_at_hand(pa_state *st, PyObject *obj)
{
    PyTypeObject *type = Py_TYPE(obj);
    if (type == st->ndarray) return &st->numpy;
    const pa_known_type *known = &st->known[((uintptr_t)type >> 5) % PA_KNOWN_TYPES];
    if (known->type == type && PyWeakref_GET_OBJECT(known->weakref) == (PyObject *)type)
        return known->be;
    return NULL;
}

void pa_registry_clear(pa_state *st);
int pa_registry_visit(pa_state *st, visitproc visit, void *arg);

/* sys.modules[name], borrowed, or NULL without an exception. */
PyObject *pa_loaded(const char *name);

/* --- adapters (backends/) --------------------------------------------------------------------------- */

/* Fill be with the NumPy adapter. 0 or -1. */
int pa_numpy_make(at_backend *be);
void pa_numpy_clear(at_backend *be);
int pa_numpy_visit(at_backend *be, visitproc visit, void *arg);

/* Makes the type of native arrays and fills st->native (backends/native_adapter.c). 0 or -1. */
int pa_native_make(pa_state *st);
PyObject *pa_native_from_dlpack(PyObject *module, PyObject *const *args, Py_ssize_t nargs);
PyObject *pa_native_live(PyObject *module, PyObject *unused);

/* What the registry has to know of a framework that may be loaded one day. */
typedef struct pa_framework {
    const char *module;
    const char *oldest;     /* an older version is refused; pyproject.toml says the same */
    size_t arrays, symbols; /* offsets of its backends in pa_state */
    /* Resolves everything once and fills be; -1 with an exception that names the framework's version. It may run
     * Python, and so in two threads at once: the registry keeps the first one's and clears the other's. */
    int (*wake)(pa_state *st, at_backend *be, PyObject *module);
    /* 1: arrays of this type are the framework's; 2: its symbols; 0: neither; -1: exception. */
    int (*owns)(PyObject *module, PyTypeObject *type);
    /* The framework's own dtype object; AT_NODTYPE if it is none. be may sleep. NULL: its dtypes are NumPy's. */
    at_dtype (*dtype)(const at_backend *be, PyObject *obj);
    /* Whether the comparison of two sizes (any object but a bool) may be taken as true; -1: exception. NULL: as
     * Python takes it. */
    int (*holds)(PyObject *module, PyObject *condition);
    /* See pa_trace_of() and pa_watcher(). NULL: arrays hold values; nothing watches. */
    PyObject *(*trace)(const at_backend *be, PyObject *x, PyObject **pulse);
    PyObject *(*watcher)(const at_backend *be);
    int (*visit)(at_backend *be, visitproc visit, void *arg);
    void (*clear)(at_backend *be);
} pa_framework;

extern const pa_framework pa_torch, pa_jax, pa_tensorflow;

/* The frameworks' rows, and their backends in the module's state. */
extern const pa_framework *const pa_frameworks[];
extern const size_t pa_framework_count;
static inline at_backend *pa_arrays_of(pa_state *st, const pa_framework *fw)
{
    return (at_backend *)((char *)st + fw->arrays);
}

/* Any other array that has an Array API namespace (backends/array_api_state.c): the backend of that namespace. NULL
 * with an exception, or without one where the object has none. */
const at_backend *pa_space_backend_of(pa_state *st, PyObject *obj);
/* A dtype object of such a namespace; AT_NODTYPE if it is none, or with an exception. */
at_dtype pa_space_dtype(pa_state *st, PyObject *obj);
void pa_spaces_clear(pa_state *st);
int pa_spaces_visit(pa_state *st, visitproc visit, void *arg);

/* The trace that an array stands in, an object that is equal to that of other arrays of this trace alone; None for an
 * array that holds values. pulse, where it is not left alone, dies with the trace though arrays of it live on. New
 * references; NULL with an exception. */
PyObject *pa_trace_of(pa_state *st, const at_backend *be, PyObject *x, PyObject **pulse);
/* What watches the framework's calls now, also those on arrays that hold values (torch's modes): None without,
 * NotImplemented where it cannot be told from others. New reference. */
PyObject *pa_watcher(pa_state *st, const at_backend *be);

static inline bool pa_supports_weakrefs(PyObject *obj)
{
    return obj != NULL && PyType_SUPPORTS_WEAKREFS(Py_TYPE(obj));
}

/* Fills the backend of a framework's symbols; its state is the framework's row. */
void pa_symbol_make(at_backend *be, const pa_framework *fw);

/* Finding what an adapter needs (resolve.c): module.a.b.c for each path, new references in found; -1 with an exception,
 * which pa_complain() says with the framework's version. */
int pa_resolve_all(PyObject *module, const char *const *path, size_t count, PyObject **found);
/* module.a.b.c; new reference, or NULL with the attribute's own exception. */
PyObject *pa_resolve(PyObject *module, const char *path);
/* 0, or -1 with a RuntimeError if the framework's version is older than the oldest one supported. One that does not tell
 * its version passes. */
int pa_check_version(PyObject *module, const char *oldest);
/* The exception that is set, said with the name and version of the framework. */
void pa_complain(PyObject *module);
/* Whether a type derives from a class of the module at a path; a half imported module has no such class yet. */
bool pa_derives(PyObject *module, const char *path, PyTypeObject *type);

/* --- frame of an adapter (calls.c) ------------------------------------------------------------------ */

/* Owns what an adapter's slot makes on the way; sticky like the library's frames: a failed call gives NULL,
 * and NULL as an argument is passed on as failure. */
#define PA_PLACES 24

typedef struct pa_frame {
    int count;
    bool failed;
    PyObject *own[PA_PLACES];
} pa_frame;

static inline void pa_open(pa_frame *f)
{
    f->count = 0;
    f->failed = false;
}

/* Releases all that the frame owns; pa_finish() does so for a slot. */
void pa_close(pa_frame *f);

/* A helper's frame inside the one that its result goes to: it starts failed if that one has failed, and leaves nothing there
 * but the result, so that what is made on the way does not fill the places. */
static inline void pa_open_in(pa_frame *f, const pa_frame *up)
{
    f->count = 0;
    f->failed = up->failed;
}
PyObject *pa_give(pa_frame *up, pa_frame *f, PyObject *result);
/* Ends a frame that is nobody's: the result as a new reference, or NULL. */
PyObject *pa_take(pa_frame *f, PyObject *result);

/* Gives the frame a new reference (NULL fails it); returns it borrowed. */
PyObject *pa_keep(pa_frame *f, PyObject *owned);

/* Calls a callable; positional arguments only, or the last `keywords` of them named by kwnames. */
PyObject *pa_vectorcall(pa_frame *f, PyObject *callable, PyObject *const *args, size_t nargs,
                        PyObject *kwnames);

#define pa_call(f, callable, ...)                                                                  \
    pa_vectorcall((f), (callable), (PyObject *[]){NULL, __VA_ARGS__} + 1,                          \
                  sizeof((PyObject *[]){__VA_ARGS__}) / sizeof(PyObject *), NULL)
/* The last keywords of the arguments are named. */
#define pa_call_named(f, callable, kwnames, ...)                                                   \
    pa_vectorcall((f), (callable), (PyObject *[]){NULL, __VA_ARGS__} + 1,                          \
                  sizeof((PyObject *[]){__VA_ARGS__}) / sizeof(PyObject *) -                       \
                      (size_t)PyTuple_GET_SIZE(kwnames),                                           \
                  (kwnames))

PyObject *pa_int(pa_frame *f, int64_t value);
PyObject *pa_size(pa_frame *f, at_dim size);
/* The step of a range: 0 fails the frame; symbols pass. */
PyObject *pa_step(pa_frame *f, PyObject *step);
/* A scalar handle as a Python number or the symbol itself. */
PyObject *pa_number(pa_frame *f, at_array scalar);
/* The same as a number of the kind of a dtype, which frameworks may insist on: a float for an integer is cut, and what is
 * beyond a narrow float becomes an infinity. */
PyObject *pa_number_as(pa_frame *f, at_array scalar, at_dtype dtype);
/* A whole float or integer as an int64; what is beyond is its end. */
int64_t pa_clamped(PyObject *number);
/* Axes as a tuple. All of them are spelled out where the rank is given, and None where it is -1. */
PyObject *pa_axes(pa_frame *f, const at_axes *axes, int ndim);
/* What every other number of a dtype beats: the start of a maximum (least) or of a minimum. */
at_scalar pa_identity(at_dtype dtype, bool least);
/* A tuple of sizes. */
PyObject *pa_shape(pa_frame *f, const at_shape *shape);
PyObject *pa_sizes(pa_frame *f, int count, const at_dim *size);
/* The key of a part along one axis: (:, ..., start:stop, ...); without a stop it goes to the end. */
PyObject *pa_part(pa_frame *f, int axis, at_dim start, at_dim stop);

/* Ends a slot: out becomes result with a reference of its own, everything else is released. */
at_status pa_finish(pa_frame *f, at_context *cx, const at_backend *be, PyObject *result,
                    at_array *out);

/* A status from a C error indicator that is set. */
at_status pa_foreign(at_context *cx);

/* Sizes from a Python tuple; symbols come as new references of the symbol backend. */
at_status pa_read_shape(at_context *cx, const at_backend *symbol, PyObject *tuple, at_shape *out);

/* --- arguments and results (args.c, errors.c) ------------------------------------------------------- */

typedef enum pa_role {
    PA_DATA,
    PA_MAYBE,
    PA_INDEX,
    PA_MASK,
    PA_VALUE,
    PA_BOUND,
    PA_LIKE,
    PA_LIST,
    PA_SIZE,
    PA_MAYBE_SIZE,
    PA_SHAPE,
    PA_CUTS,
    PA_AXES,
    PA_AXIS,
    PA_FLAG,
    PA_DTYPE,
    PA_DEVICE
} pa_role;

typedef enum pa_how { PA_POS, PA_KW, PA_FIRST } pa_how;

typedef struct pa_param {
    const char *name;
    pa_role role;
    pa_how how;
    const char *text; /* default as Python writes it; "" without one */
    size_t offset;    /* of the value in the op's argument struct */
} pa_param;

typedef struct pa_signature {
    const char *name;
    int op; /* row of the table: its place among names and defaults */
    int count;
    const pa_param *param;
} pa_signature;

/* One call from Python: the context, the frame of its results, and room for converted arguments. */
typedef struct pa_edge {
    pa_state *st;
    const pa_signature *sig;
    at_context cx;
    at_frame root;
    PyObject *value[PA_MAX_PARAMS]; /* the arguments, borrowed; NULL where the default holds */
    at_scalar scalar[PA_MAX_PARAMS];
    at_shape shape;
    at_dim *cuts;   /* heap, or NULL */
    at_array *list; /* heap, or NULL */
    at_scalar *list_scalars;
    const at_backend *sizes; /* the framework that a size is an array or a symbol of, or NULL */
    const char *sized;       /* the argument that is this size */
} pa_edge;

/* Binds and converts arguments into the op's struct; false with an exception and nothing to release. flags are the
 * context's. */
bool pa_begin(pa_edge *e, PyObject *module, const pa_signature *sig, unsigned flags,
              PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames, void *into);
/* Releases everything and returns the result as a Python object, or NULL with an exception. */
PyObject *pa_end(pa_edge *e, at_array result);
/* The same of several results: a list or a tuple of them. */
PyObject *pa_end_all(pa_edge *e, at_list results, bool as_tuple);

/* A handle for an object that is an array or a scalar; what has to be made belongs to e->root. */
bool pa_to_array(pa_edge *e, const char *name, PyObject *obj, at_scalar *place, at_array *out);
/* A size that is kept as it is, for code that is not an op: a number becomes an int, a symbol or an integral 0-d array
 * stays; such an array of a framework is told by out. New reference. */
PyObject *pa_to_size(pa_edge *e, const char *name, PyObject *obj, at_array *out);
bool pa_to_dtype(pa_state *st, const char *name, PyObject *obj, at_dtype *out);

/* Raises the context's error as the Python exception of its kind, with a note on a framework's own. */
void pa_raise(pa_edge *e);

/* Interned names and default values of all ops; 0 or -1. */
int pa_args_init(pa_state *st);
void pa_args_clear(pa_state *st);
/* By row of the table; NULL for rows that do not reach Python. */
const pa_signature *pa_signature_at(int op);
extern const int pa_signature_count;

/* --- how NumPy arrays join (options.c) -------------------------------------------------------------- */

int pa_options_init(pa_state *st);
/* What the options in force say: copy always; refuse instead of falling back to a copy. -1: exception. */
int pa_join_rule(const pa_state *st, bool *copy, bool *refuse);
PyObject *pa_enter_options(PyObject *module, PyObject *const *args, Py_ssize_t nargs);
PyObject *pa_leave_options(PyObject *module, PyObject *token);
/* The options of one call, over those in force (None: these); NULL with an exception, or what pa_end_options() takes,
 * which keeps an exception that is set. copies says whether NumPy arrays are to be copied. */
PyObject *pa_begin_options(const pa_state *st, const char *op, PyObject *copy, PyObject *fallback,
                           bool *copies);
int pa_end_options(const pa_state *st, PyObject *token);
/* An array for Python; a copy where one is wanted and NumPy has kept the array that was given. */
PyObject *pa_own_copy(const pa_state *st, at_array a, PyObject *given, bool copy);
/* What promote() calls (promoted.c). */
PyObject *pa_promote(PyObject *module, PyObject *const *args, Py_ssize_t nargs);
PyObject *pa_align_arrays(PyObject *module, PyObject *const *args, Py_ssize_t nargs,
                          PyObject *kwnames);

/* --- the cache (cache.c) ---------------------------------------------------------------------------- */

int pa_cache_init(pa_state *st);
int pa_cache_visit(pa_state *st, visitproc visit, void *arg);
void pa_cache_clear(pa_state *st);

/* at.cache.lookup(), store() and purge(). obj: an object or a tuple of them, held weakly and compared by identity; extra
 * may be NULL. A value is NULL without an exception where there is none, or the cache is off. */
PyObject *pa_cache_lookup(pa_state *st, PyObject *name, PyObject *obj, PyObject *extra);
int pa_cache_store(pa_state *st, PyObject *name, PyObject *obj, PyObject *value, PyObject *extra);
int pa_cache_purge(pa_state *st, PyObject *name, PyObject *obj);

/* The ids of partitions, for contexts that are the edge of a call. */
extern const at_memo pa_memo;

PyObject *pa_py_cache_lookup(PyObject *module, PyObject *const *args, Py_ssize_t nargs,
                             PyObject *kwnames);
PyObject *pa_py_cache_store(PyObject *module, PyObject *const *args, Py_ssize_t nargs,
                            PyObject *kwnames);
PyObject *pa_py_cache_purge(PyObject *module, PyObject *const *args, Py_ssize_t nargs,
                            PyObject *kwnames);
PyObject *pa_py_cache_enable(PyObject *module, PyObject *unused);
PyObject *pa_py_cache_disable(PyObject *module, PyObject *unused);
PyObject *pa_py_cache_enter(PyObject *module, PyObject *unused);
PyObject *pa_py_cache_leave(PyObject *module, PyObject *entered);
PyObject *pa_py_cache_space(PyObject *module, PyObject *name);
PyObject *pa_py_cache_has(PyObject *module, PyObject *name);

/* Kernels inside torch (backends/torch_segment.c), for the package and its tests. How many operators have been called so
 * far, or None where this torch has no door for them; which way rows and ids go: 0 formula, 1 operator, 2 derivative. */
PyObject *pt_py_kernels(PyObject *module, PyObject *none);
PyObject *pt_py_way(PyObject *module, PyObject *const *args, Py_ssize_t nargs);

/* --- facts about arrays (info.c), and whether arguments have sizes to check (checkable.c) ------------- */

/* Adds the functions and their exception to the module; 0 or -1. */
int pa_info_init(PyObject *module, pa_state *st);
PyObject *pa_checkable(PyObject *module, PyObject *const *args, Py_ssize_t nargs);
/* NumPy's scalar type of a dtype; new reference. */
PyObject *pa_numpy_type(const at_backend *be, at_dtype t);
/* The namespace behind a backend of backends/array_api.c, borrowed. */
PyObject *pa_space_namespace(const at_backend *be);
/* Whether torch.jit.trace is going on; whether a graph of TensorFlow's is being made. */
bool pt_is_traced(const at_backend *be);
bool pf_is_tracing(const at_backend *be);

/* The method table of the ops (methods.c), ends with an empty row. */
extern PyMethodDef pa_methods[];

/* NumPy's part of argument conversion (backends/numpy.c). */
bool pa_is_numpy_scalar(PyObject *obj);
bool pa_is_numpy_bool(PyObject *obj);
bool pa_is_numpy_float(PyObject *obj);
PyObject *pa_numpy_scalar_to_array(PyObject *obj); /* 0-d ndarray, new reference */
at_dtype pa_numpy_dtype(PyObject *obj);            /* AT_NODTYPE if obj is no NumPy dtype */
PyTypeObject *pa_ndarray_type(void);
/* The array itself, or a copy that another framework can share, as the options say; new reference. */
PyObject *pa_numpy_for_sharing(const pa_state *st, PyObject *array);

#endif
