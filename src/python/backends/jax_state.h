/* What the JAX adapter holds: JAX's own functions and constants, each found once, and one jitted function per op.
 *
 * pj_ is shared between the files of this adapter. */
#ifndef PJ_JAX_STATE_H
#define PJ_JAX_STATE_H

#include "edge.h"

#include "ops/table.h"

/* JAX's functions, each resolved once when the adapter wakes: X(name, where it lives under jax). */
#define FUNCTIONS(X)                                                                               \
    X(jit, "jit")                                                                                  \
    X(device_put, "device_put")                                                                    \
    X(canonicalize, "dtypes.canonicalize_dtype")                                                   \
    X(NamedSharding, "sharding.NamedSharding")                                                     \
    X(PartitionSpec, "sharding.PartitionSpec")                                                     \
    X(exp, "lax.exp")                                                                              \
    X(log, "lax.log")                                                                              \
    X(sqrt, "lax.sqrt")                                                                            \
    X(ne, "lax.ne")                                                                                \
    X(is_finite, "lax.is_finite")                                                                  \
    X(stop_gradient, "lax.stop_gradient")                                                          \
    X(add, "lax.add")                                                                              \
    X(sub, "lax.sub")                                                                              \
    X(mul, "lax.mul")                                                                              \
    X(div, "lax.div")                                                                              \
    X(equal, "lax.eq")                                                                             \
    X(maximum, "lax.max")                                                                          \
    X(minimum, "lax.min")                                                                          \
    X(lt, "lax.lt")                                                                                \
    X(ge, "lax.ge")                                                                                \
    X(abs, "lax.abs")                                                                              \
    X(bitwise_and, "lax.bitwise_and")                                                              \
    X(select, "lax.select")                                                                        \
    X(clamp, "lax.clamp")                                                                          \
    X(cast, "lax.convert_element_type")                                                            \
    X(broadcast_in_dim, "lax.broadcast_in_dim")                                                    \
    X(full, "lax.full")                                                                            \
    X(iota, "lax.iota")                                                                            \
    X(expand_dims, "lax.expand_dims")                                                              \
    X(slice_in_dim, "lax.slice_in_dim")                                                            \
    X(transpose, "lax.transpose")                                                                  \
    X(gather, "lax.gather")                                                                        \
    X(scatter_add, "lax.scatter_add")                                                              \
    X(scatter_mul, "lax.scatter_mul")                                                              \
    X(scatter_min, "lax.scatter_min")                                                              \
    X(scatter_max, "lax.scatter_max")                                                              \
    X(GatherDimensionNumbers, "lax.GatherDimensionNumbers")                                        \
    X(ScatterDimensionNumbers, "lax.ScatterDimensionNumbers")                                      \
    X(in_bounds, "lax.GatherScatterMode.PROMISE_IN_BOUNDS")                                        \
    X(broadcast_shapes, "numpy.broadcast_shapes")                                                  \
    X(asarray, "numpy.asarray")                                                                    \
    X(broadcast_to, "numpy.broadcast_to")                                                          \
    X(sum, "numpy.sum")                                                                            \
    X(prod, "numpy.prod")                                                                          \
    X(mean, "numpy.mean")                                                                          \
    X(min, "numpy.min")                                                                            \
    X(max, "numpy.max")                                                                            \
    X(cumsum, "numpy.cumsum")                                                                      \
    X(take, "numpy.take")                                                                          \
    X(matmul, "numpy.matmul")                                                                      \
    X(repeat, "numpy.repeat")                                                                      \
    X(reshape, "numpy.reshape")                                                                    \
    X(concatenate, "numpy.concatenate")                                                            \
    X(arange, "numpy.arange")                                                                      \
    X(Tracer, "core.Tracer")

enum {
#define X(name, path) FN_##name,
    FUNCTIONS(X)
#undef X
        FN_COUNT
};

/* Names of attributes and of keywords: X(name, how it is made). */
#define CONSTANTS(X)                                                                               \
    X(dtype, PyUnicode_InternFromString("dtype"))                                                  \
    X(shape, PyUnicode_InternFromString("shape"))                                                  \
    X(committed, name_of_committed(jax))                                                           \
    X(sharding, PyUnicode_InternFromString("sharding"))                                            \
    X(mesh, PyUnicode_InternFromString("mesh"))                                                    \
    X(named_mode, Py_BuildValue("(s)", "mode"))                                                    \
    X(named_sharding, Py_BuildValue("(s)", "sharding"))                                            \
    X(named_axis, Py_BuildValue("(s)", "axis"))                                                    \
    X(named_axis_keepdims, Py_BuildValue("(ss)", "axis", "keepdims"))                              \
    X(named_axis_mode_fill, Py_BuildValue("(sss)", "axis", "mode", "fill_value"))                  \
    X(named_dtype_device, Py_BuildValue("(ss)", "dtype", "device"))                                \
    X(fill, PyUnicode_InternFromString("fill"))                                                    \
    X(flat_shape, Py_BuildValue("(i)", -1))                                                        \
    X(empty, PyTuple_New(0))                                                                       \
    X(zeroth, Py_BuildValue("(i)", 0))                                                             \
    X(first, Py_BuildValue("(i)", 1))                                                              \
    X(zero, PyLong_FromLong(0))

enum {
#define X(name, made) CONSTANT_##name,
    CONSTANTS(X)
#undef X
        CONSTANT_COUNT
};

typedef struct jax_state {
    PyObject *fn[FN_COUNT];
    PyObject *constant[CONSTANT_COUNT];
    PyObject *dtype[AT_OTHER]; /* NumPy's dtype objects, as JAX hands them out */
    PyObject *jitted[ATI_OP_COUNT]
                    [2]; /* by op, and whether a derivative may be taken; made at first use */
    PyObject *partial;   /* functools.partial */
    pa_state *home;
} jax_state;

static inline jax_state *state_of(const at_backend *be) { return be->state; }

#define FN(be, name) (state_of(be)->fn[FN_##name])
#define CONSTANT(st, name) ((st)->constant[CONSTANT_##name])

/* Whether an object is a traced stand-in for an array. */
bool pj_traced(const jax_state *st, PyObject *x);

/* For pa_framework. */
PyObject *pj_trace(const at_backend *be, PyObject *x, PyObject **pulse);

/* The dtype object, borrowed; NULL fails the frame. */
PyObject *pj_dtype(pa_frame *f, const jax_state *st, at_dtype t);
/* A size or a number as a 0-d array of a dtype that lax takes beside arrays; a symbol is traced. */
PyObject *pj_scalar(pa_frame *f, const at_backend *be, at_array scalar, at_dtype t);

/* The slots that every backend has (jax_array.c). */
at_status pj_read_dtype(at_context *cx, at_array a, at_dtype *out);
at_status pj_read_shape(at_context *cx, at_array a, at_shape *out);
at_dtype pj_default_dtype(const at_backend *be, char kind);
at_status pj_adopt(at_context *cx, const at_backend *be, at_array a, at_array like, at_array *out);
at_status pj_from_scalar(at_context *cx, const at_backend *be, at_array scalar, at_dtype dtype,
                         at_array like, at_array *out);
at_status pj_to_size(at_context *cx, at_array a, at_dim *out);
bool pj_tracked(at_context *cx, at_array a);
at_status pj_peek(at_context *cx, at_array a, bool needed, int64_t *sum, int64_t *least,
                  bool *known);
at_status pj_full(at_context *cx, const at_backend *be, const at_shape *shape, at_array fill_value,
                  at_dtype dtype, at_array like, at_array *out);
at_status pj_arange(at_context *cx, const at_backend *be, at_array start, at_array stop,
                    at_array step, at_dtype dtype, at_array like, const void *device,
                    at_array *out);
at_status pj_repeat_each(at_context *cx, const at_backend *be, at_array x, at_array repeats,
                         int axis, at_array *out);

/* The primitives in lax, as a trace records them (jax_lax.c): pj_lax_<op>. */
#define PJ_LAX_PRIMITIVE(kind, name)                                                               \
    at_status pj_lax_##name(at_context *cx, const at_backend *be ATI_SIG_##kind(ATI_PARAM),        \
                            at_array *out);
#define PJ_LAX_COMPOSITE(kind, name)
#define FULL(...)
#define ARANGE(...)
#define REPEAT_EACH(...)
#define OP(kind, name, level, ...) PJ_LAX_##level(kind, name)
#include "anytensor/ops.def"

#endif
