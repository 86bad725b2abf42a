/* The Python functions, one builtin per row of the table that reaches Python.
 *
 * Each row stamps a struct of the op's C arguments, a signature that tells the binder (args.c) how to fill it,
 * and a function of two calls. shape() alone is by hand: it returns a tuple, not an array. */
#include "edge.h"
#include "op_docs.h"

#include "anytensor/native.h"
#include "ops/table.h"

#define VISIBLE_PYTHON(...) __VA_ARGS__
#define VISIBLE_LIBRARY(...)

#define AS_LIST false
#define AS_TUPLE true

#define FIELD(name, role, text, how) ATI_CTYPE_##role name;
#define PARAMETER(name, role, text, how)                                                           \
    {#name, PA_##role, PA_##how, #text, offsetof(arguments, name)},
#define PASS(name, role, text, how) , a.name

/* --- the short way ---------------------------------------------------------------------------------------
 *
 * Elementwise primitives on operands that promotion would leave as they are go from here to the slot: the frames
 * would cost more than NumPy's own call. What promotion has to look at takes the long way from the start. */

#define SHORT_PRIMITIVE 1
#define SHORT_COMPOSITE 0

static inline bool short_operand(pa_state *st, PyObject *obj, at_scalar *place, at_array *out)
{
    const at_backend *be = pa_backend_at_hand(st, obj);
    *out = (at_array){obj, be};
    if (be != NULL) return true;
    if (!PyFloat_CheckExact(obj)) return false;
    *out = at_scalar_float(place, PyFloat_AS_DOUBLE(obj));
    return true;
}

/* The result of a short call, or NULL with its error raised as the long way would. */
static PyObject *short_end(pa_edge *e, PyObject *module, const pa_signature *sig,
                           PyObject *const *args, at_status status, at_array out)
{
    if (status == AT_OK) return out.p;
    e->st = pa_state_of(module);
    e->sig = sig;
    for (int i = 0; i < sig->count; i++) e->value[i] = args[i];
    pa_raise(e);
    return NULL;
}

#define FAST_UNARY(op, level, rule)                                                                \
    if (SHORT_##level && kwnames == NULL && nargs == 1) {                                          \
        at_array x, out = AT_NIL, *const operand[] = {&x};                                         \
        at_context_init(&e.cx, NULL);                                                              \
        if (short_operand(pa_state_of(module), args[0], &e.scalar[0], &x)) {                       \
            const at_backend *be = ati_settled(&e.cx, ATI_##rule, 1, operand);                     \
            at_status status = be != NULL ? be->op(&e.cx, be, x, &out) : e.cx.status;              \
            if (be != NULL || status != AT_OK)                                                     \
                return short_end(&e, module, signature_##op(), args, status, out);                 \
        }                                                                                          \
    }
#define FAST_BINARY(op, level, rule)                                                               \
    if (SHORT_##level && kwnames == NULL && nargs == 2) {                                          \
        at_array x, y, out = AT_NIL, *const operand[] = {&x, &y};                                  \
        pa_state *st = pa_state_of(module);                                                        \
        at_context_init(&e.cx, NULL);                                                              \
        if (short_operand(st, args[0], &e.scalar[0], &x) &&                                        \
            short_operand(st, args[1], &e.scalar[1], &y)) {                                        \
            const at_backend *be = ati_settled(&e.cx, ATI_##rule, 2, operand);                     \
            at_status status = be != NULL ? be->op(&e.cx, be, x, y, &out) : e.cx.status;           \
            if (be != NULL || status != AT_OK)                                                     \
                return short_end(&e, module, signature_##op(), args, status, out);                 \
        }                                                                                          \
    }
#define FAST_FILL(op, level, rule)
#define FAST_REPLACE(op, level, rule)
#define FAST_SELECT(op, level, rule)
#define FAST_CLAMP(op, level, rule)
#define FAST_REDUCE(op, level, rule)
#define FAST_SCAN(op, level, rule)
#define FAST_GATHER(op, level, rule)
#define FAST_REPEAT(op, level, rule)
#define FAST_REPEAT_EACH(op, level, rule)
#define FAST_CAST(op, level, rule)
#define FAST_RESHAPE(op, level, rule)
#define FAST_TRANSPOSE(op, level, rule)
#define FAST_SLICE(op, level, rule)
#define FAST_MATMUL(op, level, rule)
#define FAST_STACK(op, level, rule)
#define FAST_JOIN(op, level, rule)
#define FAST_FULL(op, level, rule)
#define FAST_ZEROS(op, level, rule)
#define FAST_FULL_LIKE(op, level, rule)
#define FAST_ZEROS_LIKE(op, level, rule)
#define FAST_ARANGE(op, level, rule)
#define FAST_SEGMENT(op, level, rule)
#define FAST_SEGMENT_LOGITS(op, level, rule)
#define FAST_SEGMENT_COUNT(op, level, rule)
#define FAST_SEGMENT_CONSTANT(op, level, rule)
#define FAST_SEGMENT_ATTENTION(op, level, rule)
#define FAST_PARTITION(op, level, rule)
#define FAST_PARTITION_LOGITS(op, level, rule)
#define FAST_PARTITION_IDS(op, level, rule)
#define FAST_SLOT(op, level, rule)
#define FAST_SLOT_IDS(op, level, rule)
#define FAST_SPREAD(op, level, rule)
#define FAST_HEAD(op, level, rule)

/* A row's function comes in two steps: call_<op> with the flags of its context, py_<op> without any. */
#define ROW(kind, op, reach, fast, result)                                                         \
    VISIBLE_##reach(                                                                               \
        typedef struct arguments_##op{ATI_SIG_##kind(FIELD)} arguments_##op;                       \
        static const pa_signature *signature_##op(void) {                                          \
            typedef arguments_##op arguments;                                                      \
            static const pa_param table[] = {ATI_SIG_##kind(PARAMETER)};                           \
            static const pa_signature signature = {#op, ATI_OP_##op,                               \
                                                   (int)(sizeof table / sizeof *table), table};    \
            return &signature;                                                                     \
        } static PyObject *call_##op(PyObject *module, unsigned flags, PyObject *const *args,      \
                                     Py_ssize_t nargs, PyObject *kwnames) {                        \
            arguments_##op a;                                                                      \
            pa_edge e;                                                                             \
            if (!pa_begin(&e, module, signature_##op(), flags, args, nargs, kwnames, &a))          \
                return NULL;                                                                       \
            return result;                                                                         \
        } static PyObject *py_##op(PyObject *module, PyObject *const *args, Py_ssize_t nargs,      \
                                   PyObject *kwnames) {                                            \
            pa_edge e;                                                                             \
            fast;                                                                                  \
            (void)e;                                                                               \
            return call_##op(module, 0, args, nargs, kwnames);                                     \
        })
#define OP(kind, op, level, rule, reach, ...)                                                      \
    ROW(kind, op, reach, FAST_##kind(op, level, rule),                                             \
        pa_end(&e, at_##op(&e.root ATI_SIG_##kind(PASS))))
#define OPS(kind, op, level, rule, reach, onnx, opset, since, container)                           \
    ROW(kind, op, reach, , pa_end_all(&e, at_##op(&e.root ATI_SIG_##kind(PASS)), AS_##container))
#include "anytensor/ops.def"

typedef const pa_signature *get_signature(void);

static get_signature *const signatures[ATI_OP_COUNT] = {
#define OP(kind, op, level, rule, reach, ...) VISIBLE_##reach([ATI_OP_##op] = signature_##op, )
#define OPS(...) OP(__VA_ARGS__)
#include "anytensor/ops.def"
};

const int pa_signature_count = ATI_OP_COUNT;

const pa_signature *pa_signature_at(int op)
{
    return signatures[op] == NULL ? NULL : signatures[op]();
}

typedef PyObject *entry(PyObject *module, unsigned flags, PyObject *const *args, Py_ssize_t nargs,
                        PyObject *kwnames);

static entry *const entries[ATI_OP_COUNT] = {
#define OP(kind, op, level, rule, reach, ...) VISIBLE_##reach([ATI_OP_##op] = call_##op, )
#define OPS(...) OP(__VA_ARGS__)
#include "anytensor/ops.def"
};

/* _formula(flags, op, *arguments): an op in a context with flags. What a compiler traces that is asked to keep the
 * result; see backends/jax.c. */
static PyObject *py_formula(PyObject *module, PyObject *const *args, Py_ssize_t nargs)
{
    long flags = nargs < 2 ? -1 : PyLong_AsLong(args[0]);
    long op = nargs < 2 ? -1 : PyLong_AsLong(args[1]);
    if (!PyErr_Occurred() && flags >= 0 && op >= 0 && op < ATI_OP_COUNT && entries[op] != NULL)
        return entries[op](module, (unsigned)flags, args + 2, nargs - 2, NULL);
    if (!PyErr_Occurred())
        PyErr_SetString(PyExc_TypeError, "_formula(flags, op, *arguments): not an op of Python");
    return NULL;
}

static PyObject *py_shape(PyObject *module, PyObject *const *args, Py_ssize_t nargs,
                          PyObject *kwnames)
{
    static const pa_param parameter = {"x", PA_DATA, PA_POS, "", 0};
    /* its one argument is called like exp's, so that it may share the names of that row */
    static const pa_signature signature = {"shape", ATI_OP_exp, 1, &parameter};
    at_array x;
    pa_edge e;
    if (!pa_begin(&e, module, &signature, 0, args, nargs, kwnames, &x)) return NULL;
    PyObject *tuple = NULL;
    pa_frame f;
    pa_open(&f);
    if (at_shape_of(&e.root, x, &e.shape) == AT_OK) tuple = pa_shape(&f, &e.shape);
    Py_XINCREF(tuple);
    pa_close(&f);
    pa_end(&e, AT_NIL);
    return tuple;
}

#define PA_DOC_align_arrays                                                                        \
    "align_arrays($module, /, *arrays, copy=None, fallback=None)\n--\n\n"                          \
    "The arrays on one framework, as a tuple: NumPy arrays join the other framework in the "       \
    "call,\n"                                                                                      \
    "scalars become 0-d arrays of their kind's default dtype, None stays None. Dtypes are "        \
    "kept.\n\n"                                                                                    \
    "copy      True: a NumPy array is always copied; False: shared where it can be; None: as\n"    \
    "          promote_options() says\n"                                                           \
    "fallback  what to do with an array that cannot be shared: 'copy' (with a warning) or\n"       \
    "          'error'; None: as promote_options() says\n"                                         \
    "Errors    TypeError for arrays of two frameworks, lists; ValueError under fallback='error'."

#define CACHE_DOC_lookup                                                                           \
    "_cache_lookup($module, /, namespace, obj, extra=())\n--\n\n"                                  \
    "What is kept in a namespace for an object (or a tuple of them) and extra; None without, or "  \
    "while the\n"                                                                                  \
    "cache is off. It counts for the very same objects only, and torch's tensors must not have "   \
    "been written to."
#define CACHE_DOC_store                                                                            \
    "_cache_store($module, /, namespace, obj, value, extra=())\n--\n\n"                            \
    "Keeps a value for an object, or a tuple of them, for as long as they live and the cache is "  \
    "on.\n\n"                                                                                      \
    "A value that holds a traced array is kept only if an array of the key is traced in the same " \
    "trace. Arrays of\n"                                                                           \
    "the key in the value are not kept alive by it; a view of them is not kept at all."
#define CACHE_DOC_purge                                                                            \
    "_cache_purge($module, /, namespace, obj)\n--\n\n"                                             \
    "Forgets all that is kept in a namespace for an object, whatever its extra, alone or in a "    \
    "tuple."
#define CACHE_DOC_enable                                                                           \
    "_cache_enable($module, /)\n--\n\n"                                                            \
    "Turns the cache on until disable(), also if a surrounding `with` ends."
#define CACHE_DOC_disable                                                                          \
    "_cache_disable($module, /)\n--\n\nForgets everything and turns the cache off, also within a " \
    "`with`."

#define FASTCALL(function) (PyCFunction)(void (*)(void))(function), METH_FASTCALL | METH_KEYWORDS

PyMethodDef pa_methods[] = {
#define OP(kind, op, level, rule, reach, ...)                                                      \
    VISIBLE_##reach({#op, FASTCALL(py_##op), ATI_DOC_##op}, )
#define OPS(...) OP(__VA_ARGS__)
#include "anytensor/ops.def"
    {"shape", FASTCALL(py_shape), ATI_DOC_shape},
    {"align_arrays", FASTCALL(pa_align_arrays), PA_DOC_align_arrays},
    {"_formula", (PyCFunction)(void (*)(void))py_formula, METH_FASTCALL, NULL},
    {"_promote", (PyCFunction)(void (*)(void))pa_promote, METH_FASTCALL, NULL},
    {"_enter_options", (PyCFunction)(void (*)(void))pa_enter_options, METH_FASTCALL, NULL},
    {"_leave_options", pa_leave_options, METH_O, NULL},
    {"_checkable", (PyCFunction)(void (*)(void))pa_checkable, METH_FASTCALL, NULL},
    {"_cache_lookup", FASTCALL(pa_py_cache_lookup), CACHE_DOC_lookup},
    {"_cache_store", FASTCALL(pa_py_cache_store), CACHE_DOC_store},
    {"_cache_purge", FASTCALL(pa_py_cache_purge), CACHE_DOC_purge},
    {"_cache_enable", pa_py_cache_enable, METH_NOARGS, CACHE_DOC_enable},
    {"_cache_disable", pa_py_cache_disable, METH_NOARGS, CACHE_DOC_disable},
    {"_cache_enter", pa_py_cache_enter, METH_NOARGS, NULL},
    {"_cache_leave", pa_py_cache_leave, METH_O, NULL},
    {"_cache_space", pa_py_cache_space, METH_O, NULL},
    {"_cache_has", pa_py_cache_has, METH_O, NULL},
    {"_torch_kernels", pt_py_kernels, METH_NOARGS, NULL},
    {"_torch_way", (PyCFunction)(void (*)(void))pt_py_way, METH_FASTCALL, NULL},
    {"_native_from_dlpack", (PyCFunction)(void (*)(void))pa_native_from_dlpack, METH_FASTCALL,
     NULL},
    {"_native_live", pa_native_live, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL}};
