/* What the generic adapter holds of one Array API namespace: its functions, dtypes and constants, each looked up once.
 *
 * px_ is shared between the files of this adapter. A function that the namespace lacks is a loud failure of the op
 * that needs it, with the namespace's name and version; the other ops work. */
#ifndef PX_ARRAY_API_STATE_H
#define PX_ARRAY_API_STATE_H

#include "edge.h"

/* The standard's functions: X(name). */
#define FUNCTIONS(X)                                                                               \
    X(exp)                                                                                         \
    X(log)                                                                                         \
    X(sqrt)                                                                                        \
    X(isnan)                                                                                       \
    X(isinf)                                                                                       \
    X(isfinite)                                                                                    \
    X(add)                                                                                         \
    X(subtract)                                                                                    \
    X(multiply)                                                                                    \
    X(divide)                                                                                      \
    X(equal)                                                                                       \
    X(less)                                                                                        \
    X(greater_equal)                                                                               \
    X(maximum)                                                                                     \
    X(minimum)                                                                                     \
    X(logical_and)                                                                                 \
    X(logical_or)                                                                                  \
    X(where)                                                                                       \
    X(sum)                                                                                         \
    X(prod)                                                                                        \
    X(mean)                                                                                        \
    X(min)                                                                                         \
    X(max)                                                                                         \
    X(cumulative_sum)                                                                              \
    X(take)                                                                                        \
    X(repeat)                                                                                      \
    X(reshape)                                                                                     \
    X(concat)                                                                                      \
    X(permute_dims)                                                                                \
    X(matmul)                                                                                      \
    X(broadcast_to)                                                                                \
    X(astype)                                                                                      \
    X(asarray)                                                                                     \
    X(from_dlpack)                                                                                 \
    X(full)                                                                                        \
    X(zeros_like)                                                                                  \
    X(ones_like)                                                                                   \
    X(arange)                                                                                      \
    X(sort)                                                                                        \
    X(argsort)                                                                                     \
    X(searchsorted)

enum {
#define X(name) FN_##name,
    FUNCTIONS(X)
#undef X
        FN_COUNT
};

/* Names and constants of calls: X(name, how it is made). */
#define CONSTANTS(X)                                                                               \
    X(dtype, PyUnicode_InternFromString("dtype"))                                                  \
    X(shape, PyUnicode_InternFromString("shape"))                                                  \
    X(device, PyUnicode_InternFromString("device"))                                                \
    X(to_device, PyUnicode_InternFromString("to_device"))                                          \
    X(right, PyUnicode_InternFromString("right"))                                                  \
    X(named_dtype, Py_BuildValue("(s)", "dtype"))                                                  \
    X(named_device, Py_BuildValue("(s)", "device"))                                                \
    X(named_dtype_device, Py_BuildValue("(ss)", "dtype", "device"))                                \
    X(named_axis, Py_BuildValue("(s)", "axis"))                                                    \
    X(named_axis_dtype, Py_BuildValue("(ss)", "axis", "dtype"))                                    \
    X(named_axis_keepdims, Py_BuildValue("(ss)", "axis", "keepdims"))                              \
    X(named_axis_dtype_keepdims, Py_BuildValue("(sss)", "axis", "dtype", "keepdims"))              \
    X(named_side, Py_BuildValue("(s)", "side"))                                                    \
    X(named_stable, Py_BuildValue("(s)", "stable"))                                                \
    X(scalar_shape, PyTuple_New(0))                                                                \
    X(flat_shape, Py_BuildValue("(i)", -1))                                                        \
    X(zero, PyLong_FromLong(0))                                                                    \
    X(one, PyLong_FromLong(1))

enum {
#define X(name, made) CONSTANT_##name,
    CONSTANTS(X)
#undef X
        CONSTANT_COUNT
};

/* A namespace that arrays were seen of. The backend points back to it. */
typedef struct pa_space {
    at_backend be;
    struct pa_space *next;
    pa_state *home;
    char *name;
    PyObject *xp;
    PyObject *fn[FN_COUNT];    /* NULL where the namespace lacks it */
    PyObject *dtype[AT_OTHER]; /* the same, by at_dtype */
    PyObject *met; /* dtype objects of arrays -> at_dtype: comparing with each in turn is slow */
    PyObject *constant[CONSTANT_COUNT];
    PyObject *indexing;      /* devices -> at_dtype of indices there: not all have int64 */
    at_dtype real, integral; /* the default dtypes */
} pa_space;

static inline pa_space *space_of(const at_backend *be) { return be->state; }

#define CONSTANT(be, name) (space_of(be)->constant[CONSTANT_##name])

/* A function of the namespace, borrowed; one that it lacks fails the frame. FN(f, be, name) */
PyObject *px_function(pa_frame *f, const at_backend *be, int fn);
#define FN(f, be, name) px_function((f), (be), FN_##name)

/* The namespace's dtype, borrowed; one that it lacks fails the frame. */
PyObject *px_dtype_object(pa_frame *f, const at_backend *be, at_dtype t);
/* The dtype of indices on a device. */
at_dtype px_index_dtype(const at_backend *be, PyObject *device);
/* AT_OTHER where the library has no name for it. */
at_dtype px_find_dtype(pa_space *space, PyObject *obj);

/* --- what both files of slots use (array_api.c) ----------------------------------------------------------------- */

/* Sizes as numbers; one that is not known fails the frame. */
bool px_sizes(pa_frame *f, const at_backend *be, PyObject *x, at_shape *out);
at_dtype px_dtype_of(pa_frame *f, const at_backend *be, PyObject *x);
/* The device, or None where the library has no word for it. */
PyObject *px_device_of(pa_frame *f, const at_backend *be, PyObject *x);

/* The dtype of indices where x is. */
at_dtype px_index_of(pa_frame *f, const at_backend *be, PyObject *x);

/* x itself if it has the dtype. */
PyObject *px_cast(pa_frame *f, const at_backend *be, PyObject *x, at_dtype t);
/* 0-d on x's device. */
PyObject *px_scalar(pa_frame *f, const at_backend *be, PyObject *x, PyObject *value, at_dtype t);
PyObject *px_integer(pa_frame *f, const at_backend *be, PyObject *x, int64_t value, at_dtype t);
/* A vector (n) seen against an axis of an array of some rank: (1, n, 1, ...). */
PyObject *px_against(pa_frame *f, const at_backend *be, PyObject *vector, int64_t n, int axis,
                     int ndim);
/* Where integers are in [low, n), found in their own dtype, so that none wraps. */
PyObject *px_within(pa_frame *f, const at_backend *be, PyObject *x, int64_t low, int64_t n);

/* --- slots: px_<op> ------------------------------------------------------------------------------------------------ */

#define PX_SLOT_PRIMITIVE(name, ...) at_status px_##name(__VA_ARGS__);
#define PX_SLOT_COMPOSITE(name, ...)
#define OP(kind, name, level, ...)                                                                 \
    PX_SLOT_##level(name, at_context *cx, const at_backend *be ATI_SIG_##kind(ATI_PARAM),          \
                    at_array *out)
#include "anytensor/ops.def"

/* The adapter's vtable, without name and state. */
extern const at_backend px_slots;

#endif
