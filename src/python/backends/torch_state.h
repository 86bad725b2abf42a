/* What the torch adapter holds: torch's own functions, getters, dtypes and constants, each found once.
 *
 * pt_ is shared between the files of this adapter. */
#ifndef PT_TORCH_STATE_H
#define PT_TORCH_STATE_H

#include "edge.h"

/* torch's functions, each resolved once when the adapter wakes: X(name, where it lives under torch). */
#define FUNCTIONS(X)                                                                               \
    X(exp, "exp")                                                                                  \
    X(log, "log")                                                                                  \
    X(sqrt, "sqrt")                                                                                \
    X(rsqrt, "rsqrt")                                                                              \
    X(is_nan, "isnan")                                                                             \
    X(is_inf, "isinf")                                                                             \
    X(is_finite, "isfinite")                                                                       \
    X(stop_gradient, "Tensor.detach")                                                              \
    X(add, "add")                                                                                  \
    X(sub, "sub")                                                                                  \
    X(mul, "mul")                                                                                  \
    X(div, "true_divide")                                                                          \
    X(equal, "eq")                                                                                 \
    X(maximum, "maximum")                                                                          \
    X(minimum, "minimum")                                                                          \
    X(where, "where")                                                                              \
    X(sum, "sum")                                                                                  \
    X(prod, "prod")                                                                                \
    X(mean, "mean")                                                                                \
    X(min, "amin")                                                                                 \
    X(max, "amax")                                                                                 \
    X(cumsum, "cumsum")                                                                            \
    X(reshape, "reshape")                                                                          \
    X(permute, "permute")                                                                          \
    X(matmul, "matmul")                                                                            \
    X(stack, "stack")                                                                              \
    X(full_like, "full_like")                                                                      \
    X(cat, "cat")                                                                                  \
    X(arange, "arange")                                                                            \
    X(nan_to_num, "nan_to_num")                                                                    \
    X(clamp, "clamp")                                                                              \
    X(remainder, "remainder")                                                                      \
    X(lt, "lt")                                                                                    \
    X(gather, "gather")                                                                            \
    X(narrow, "narrow")                                                                            \
    X(scatter_add, "scatter_add")                                                                  \
    X(scatter_reduce, "scatter_reduce")                                                            \
    X(bitwise_xor, "bitwise_xor")                                                                  \
    X(ones_like, "ones_like")                                                                      \
    X(repeat_interleave, "repeat_interleave")                                                      \
    X(from_numpy, "from_numpy")                                                                    \
    X(to, "Tensor.to")                                                                             \
    X(view, "Tensor.view")                                                                         \
    X(expand, "Tensor.expand")                                                                     \
    X(clone, "Tensor.clone")                                                                       \
    X(squeeze, "Tensor.squeeze")                                                                   \
    X(new_full, "Tensor.new_full")                                                                 \
    X(new_zeros, "Tensor.new_zeros")                                                               \
    X(item, "Tensor.item")                                                                         \
    X(default_dtype, "get_default_dtype")                                                          \
    X(grad_enabled, "is_grad_enabled")                                                             \
    X(tracing_state, "_C._get_tracing_state")                                                      \
    X(dispatch_modes, "_C._len_torch_dispatch_stack")                                              \
    X(function_modes, "_C._len_torch_function_stack")                                              \
    X(functorch, "_C._functorch.peek_interpreter_stack")                                           \
    X(wrapper_level, "_C._functorch.maybe_get_level")                                              \
    X(dispatch_mode, "_C._get_dispatch_stack_at")                                                  \
    X(forward_ad, "autograd.forward_ad")                                                           \
    X(strided, "strided")                                                                          \
    X(Tensor, "Tensor")                                                                            \
    X(Parameter, "nn.Parameter")

/* Attributes that are read through their C getters: X(name). */
#define GETTERS(X) X(dtype) X(shape) X(requires_grad) X(is_cpu) X(device) X(ndim) X(layout)

/* Segment ops that the library's own kernels carry out inside torch (torch_ops.c): X(name). */
#define KERNELS(X) X(segment_sum) X(segment_min) X(segment_max) X(segment_softmax)

enum {
#define X(name, path) FN_##name,
    FUNCTIONS(X)
#undef X
        FN_COUNT
};

enum {
#define X(name) GET_##name,
    GETTERS(X)
#undef X
        GET_COUNT
};

enum {
#define X(name) KERNEL_##name,
    KERNELS(X)
#undef X
        KERNEL_COUNT
};

/* Constants of calls: X(name, how it is made). */
#define CONSTANTS(X)                                                                               \
    X(named_dtype, Py_BuildValue("(s)", "dtype"))                                                  \
    X(named_dtype_device, Py_BuildValue("(ss)", "dtype", "device"))                                \
    X(named_dim_keepdim, Py_BuildValue("(ss)", "dim", "keepdim"))                                  \
    X(named_device, Py_BuildValue("(s)", "device"))                                                \
    X(scalar_shape, PyTuple_New(0))                                                                \
    X(flat_shape, Py_BuildValue("(i)", -1))                                                        \
    X(zero, PyLong_FromLong(0))                                                                    \
    X(one, PyLong_FromLong(1))                                                                     \
    X(inf, PyFloat_FromDouble(Py_HUGE_VAL))                                                        \
    X(minus_inf, PyFloat_FromDouble(-Py_HUGE_VAL))                                                 \
    X(minus_one, PyLong_FromLong(-1))                                                              \
    X(amin, PyUnicode_InternFromString("amin"))                                                    \
    X(amax, PyUnicode_InternFromString("amax"))                                                    \
    X(prod, PyUnicode_InternFromString("prod"))                                                    \
    X(current_level, PyUnicode_InternFromString("_current_level"))

enum {
#define X(name, made) CONSTANT_##name,
    CONSTANTS(X)
#undef X
        CONSTANT_COUNT
};

typedef struct torch_state {
    PyObject *fn[FN_COUNT];
    PyObject *getter[GET_COUNT]; /* getset descriptors of the base class */
    PyObject *attribute[GET_COUNT];
    PyObject *dtype[AT_OTHER]; /* by at_dtype; NULL where this torch has none */
    PyObject *constant[CONSTANT_COUNT];
    /* The dispatcher's operator, and the same with a derivative; NULL where this torch has no door for kernels. */
    PyObject *bare[KERNEL_COUNT], *derived[KERNEL_COUNT];
    pa_state *home;
} torch_state;

static inline torch_state *state_of(const at_backend *be) { return be->state; }

#define FN(be, name) (state_of(be)->fn[FN_##name])
#define CONSTANT(st, name) ((st)->constant[CONSTANT_##name])

/* New reference. The base class's getter is called directly for the two classes that do not override it. */
static inline PyObject *pt_get(const torch_state *st, PyObject *x, int which)
{
    if (Py_TYPE(x) == (PyTypeObject *)st->fn[FN_Tensor] ||
        Py_TYPE(x) == (PyTypeObject *)st->fn[FN_Parameter]) {
        PyGetSetDef *def = ((PyGetSetDescrObject *)st->getter[which])->d_getset;
        return def->get(x, def->closure);
    }
    return PyObject_GetAttr(x, st->attribute[which]);
}

/* Truth of an attribute; false where it cannot be read. */
bool pt_flag(const torch_state *st, PyObject *x, int which);

/* AT_OTHER where the library has no name for it. */
at_dtype pt_find_dtype(const torch_state *st, PyObject *obj);

/* Whether a question to torch (a function without arguments) is answered by None or 0. */
bool pt_answers_nothing(PyObject *question);

/* A plain tensor on the CPU while nothing looks over torch's shoulder: no trace, no mode, no functorch. */
bool pt_is_plain(const torch_state *st, PyObject *x);

/* What pt_is_plain() asks of torch and not of a tensor. */
bool pt_is_unwatched(const torch_state *st);

/* Of exactly torch's own class, on the CPU. */
bool pt_is_host(const torch_state *st, PyObject *x);

/* Whether backward() would go through this tensor, and whether forward-mode differentiation is going on. */
bool pt_wants_gradient(const torch_state *st, PyObject *x);
bool pt_forward_ad(const torch_state *st);

/* The tracked slot. */
bool pt_tracked(at_context *cx, at_array a);

/* Everything that the adapter needs of a torch; NULL with an exception that names its version. */
torch_state *pt_state_new(PyObject *torch, pa_state *home);
void pt_state_free(torch_state *st);

/* --- composites that torch has itself (torch_direct.c) ------------------------------------------------------ */

at_status pt_clip(at_context *cx, const at_backend *be, at_array x, at_array min, at_array max,
                  at_array *out);
at_status pt_fill_nan(at_context *cx, const at_backend *be, at_array x, at_array value,
                      at_array *out);
at_status pt_nan_to_num(at_context *cx, const at_backend *be, at_array x, at_array nan,
                        at_array posinf, at_array neginf, at_array *out);
at_status pt_full_like(at_context *cx, const at_backend *be, at_array x, at_array fill_value,
                       at_dtype dtype, at_array *out);
at_status pt_stack(at_context *cx, const at_backend *be, at_list arrays, int axis, at_array *out);

/* --- kernels inside torch ---------------------------------------------------------------------------------- */

/* Registers the operators, once in a process; false where this torch has no door for them (torch_ops.c). */
bool pt_ops_register(void);
/* How many operators have been called. */
long long pt_ops_runs(void);

/* Finds the operators and their derivatives; 0, also where there are none, or -1 with an exception. */
int pt_kernels_find(torch_state *st, PyObject *torch);

/* One of KERNELS on whatever it was given; AT_DECLINE where that is not for a kernel. */
at_status pt_segment(at_context *cx, const at_backend *be, int kernel, at_array x, at_array ids,
                     at_dim n, at_array *out);

at_status pt_segment_sum(at_context *cx, const at_backend *be, at_array x, at_array segment_ids,
                         at_dim num_segments, bool sorted, at_array *out);
at_status pt_segment_min(at_context *cx, const at_backend *be, at_array x, at_array segment_ids,
                         at_dim num_segments, bool sorted, at_array *out);
at_status pt_segment_max(at_context *cx, const at_backend *be, at_array x, at_array segment_ids,
                         at_dim num_segments, bool sorted, at_array *out);
at_status pt_segment_softmax(at_context *cx, const at_backend *be, at_array logits,
                             at_array segment_ids, at_dim num_segments, bool sorted, at_array *out);

/* For pa_framework. */
int pt_owns(PyObject *module, PyTypeObject *type);
at_dtype pt_dtype(const at_backend *be, PyObject *obj);
int pt_holds(PyObject *torch, PyObject *condition);
PyObject *pt_trace(const at_backend *be, PyObject *x, PyObject **pulse);
PyObject *pt_watcher(const at_backend *be);
int pt_visit(at_backend *be, visitproc visit, void *arg);
void pt_clear(at_backend *be);

#endif
