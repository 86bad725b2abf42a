/* What the TensorFlow adapter holds and what its files share: TensorFlow's own functions, dtypes, and small
 * helpers around them.
 *
 * pf_ is shared between the files of this adapter. */
#ifndef PF_TENSORFLOW_STATE_H
#define PF_TENSORFLOW_STATE_H

#include "edge.h"
#include "tensorflow_ops.h"

/* TensorFlow's functions, each resolved once when the adapter wakes: X(name, where it lives under tensorflow, its
 * argument names). All arguments go by keyword: raw_ops takes nothing else, and it is the shortest way to a kernel. */
#define FUNCTIONS(X)                                                                               \
    X(exp, "raw_ops.Exp", "x")                                                                     \
    X(log, "raw_ops.Log", "x")                                                                     \
    X(sqrt, "raw_ops.Sqrt", "x")                                                                   \
    X(rsqrt, "raw_ops.Rsqrt", "x")                                                                 \
    X(is_nan, "raw_ops.IsNan", "x")                                                                \
    X(is_inf, "raw_ops.IsInf", "x")                                                                \
    X(is_finite, "raw_ops.IsFinite", "x")                                                          \
    X(zeros_like, "raw_ops.ZerosLike", "x")                                                        \
    X(ones_like, "raw_ops.OnesLike", "x")                                                          \
    X(stop_gradient, "raw_ops.StopGradient", "input")                                              \
    X(add, "raw_ops.AddV2", "x y")                                                                 \
    X(sub, "raw_ops.Sub", "x y")                                                                   \
    X(mul, "raw_ops.Mul", "x y")                                                                   \
    X(div, "raw_ops.RealDiv", "x y")                                                               \
    X(floor_div, "raw_ops.FloorDiv", "x y")                                                        \
    X(maximum, "raw_ops.Maximum", "x y")                                                           \
    X(minimum, "raw_ops.Minimum", "x y")                                                           \
    X(equal, "raw_ops.Equal", "x y")                                                               \
    X(less, "raw_ops.Less", "x y")                                                                 \
    X(greater_equal, "raw_ops.GreaterEqual", "x y")                                                \
    X(logical_or, "raw_ops.LogicalOr", "x y")                                                      \
    X(logical_and, "raw_ops.LogicalAnd", "x y")                                                    \
    X(bitwise_and, "raw_ops.BitwiseAnd", "x y")                                                    \
    X(bitwise_xor, "raw_ops.BitwiseXor", "x y")                                                    \
    X(where, "raw_ops.SelectV2", "condition t e")                                                  \
    X(sum, "raw_ops.Sum", "input axis keep_dims")                                                  \
    X(prod, "raw_ops.Prod", "input axis keep_dims")                                                \
    X(mean, "raw_ops.Mean", "input axis keep_dims")                                                \
    X(min, "raw_ops.Min", "input axis keep_dims")                                                  \
    X(max, "raw_ops.Max", "input axis keep_dims")                                                  \
    X(all, "raw_ops.All", "input axis keep_dims")                                                  \
    X(any, "raw_ops.Any", "input axis keep_dims")                                                  \
    X(cumsum, "raw_ops.Cumsum", "x axis")                                                          \
    X(reshape, "raw_ops.Reshape", "tensor shape")                                                  \
    X(broadcast_to, "raw_ops.BroadcastTo", "input shape")                                          \
    X(fill, "raw_ops.Fill", "dims value")                                                          \
    X(pack, "raw_ops.Pack", "values axis")                                                         \
    X(concat, "raw_ops.ConcatV2", "values axis")                                                   \
    X(gather, "raw_ops.GatherV2", "params indices axis")                                           \
    X(slice, "raw_ops.StridedSlice", "input begin end strides begin_mask end_mask")                \
    X(transpose, "raw_ops.Transpose", "x perm")                                                    \
    X(matmul, "raw_ops.BatchMatMulV2", "x y")                                                      \
    X(upper_bound, "raw_ops.UpperBound", "sorted_inputs values out_type")                          \
    X(range, "raw_ops.Range", "start limit delta")                                                 \
    X(cast, "raw_ops.Cast", "x DstT")                                                              \
    X(bitcast, "raw_ops.Bitcast", "input type")                                                    \
    X(shape, "raw_ops.Shape", "input out_type")                                                    \
    X(segment_sum, "raw_ops.UnsortedSegmentSum", "data segment_ids num_segments")                  \
    X(segment_min, "raw_ops.UnsortedSegmentMin", "data segment_ids num_segments")                  \
    X(segment_max, "raw_ops.UnsortedSegmentMax", "data segment_ids num_segments")                  \
    X(segment_prod, "raw_ops.UnsortedSegmentProd", "data segment_ids num_segments")                \
    X(constant, "constant", "value dtype")                                                         \
    X(convert, "convert_to_tensor", "value")                                                       \
    X(static_value, "get_static_value", "tensor")                                                  \
    X(executing_eagerly, "executing_eagerly", "")                                                  \
    X(device, "device", "device_name")                                                             \
    X(devices, "config.list_logical_devices", "")                                                  \
    X(InvalidArgument, "errors.InvalidArgumentError", "")                                          \
    X(EagerTensor, "__internal__.EagerTensor", "")                                                 \
    X(Tensor, "Tensor", "")

enum {
#define X(name, path, names) FN_##name,
    FUNCTIONS(X)
#undef X
        FN_COUNT
};

/* Attributes that are read: X(name). */
#define ATTRIBUTES(X)                                                                              \
    X(dtype) X(shape) X(device) X(device_name) X(as_list) X(name) X(__enter__) X(__exit__)

enum {
#define X(name) GET_##name,
    ATTRIBUTES(X)
#undef X
        GET_COUNT
};

/* What eager calls take beside the public names (tensorflow_eager.c); NULL where this TensorFlow lacks it, and then all
 * goes the public way. */
typedef struct pf_eager {
    PyObject *dtype_number,
        *sizes;        /* methods of EagerTensor: its dtype as a number, its shape as a tuple */
    PyObject *execute; /* runs an op by name, and tells the tapes; NULL: our ops are not used */
    PyObject *context; /* the module that holds the context, in this attribute: */
    PyObject *current;
    PyObject *fallback, *not_ok; /* exceptions of execute */
    PyObject *raise;             /* the second one as the public exception */
    PyObject *op[PF_OP_COUNT];   /* names */
} pf_eager;

typedef struct tensorflow_state {
    PyObject *fn[FN_COUNT];
    PyObject *names[FN_COUNT]; /* tuples of argument names */
    PyObject *attribute[GET_COUNT];
    PyObject *dtype[AT_OTHER]; /* by at_dtype */
    PyObject
        *watched; /* what a tape may record, or NULL where this TensorFlow has no such question */
    PyObject *index_error; /* a class: InvalidArgumentError and IndexError */
    int devices;           /* how many there are; 0 until asked */
    pf_eager eager;
    pa_state *home;
} tensorflow_state;

static inline tensorflow_state *state_of(const at_backend *be) { return be->state; }

#define FN(be, name) (state_of(be)->fn[FN_##name])

/* One call of a function in FUNCTIONS: fn(name=argument, ...). Sticky like every call of a frame. */
PyObject *pf_vectorcall(pa_frame *f, const at_backend *be, int fn, PyObject *const *args,
                        size_t count);
#define pf_call(f, be, name, ...)                                                                  \
    pf_vectorcall((f), (be), FN_##name, (PyObject *[]){NULL, __VA_ARGS__} + 1,                     \
                  sizeof((PyObject *[]){__VA_ARGS__}) / sizeof(PyObject *))

/* AT_OTHER where the library has no name for it. */
at_dtype pf_find_dtype(const tensorflow_state *st, PyObject *dtype);
PyObject *pf_dtype_object(pa_frame *f, const at_backend *be, at_dtype t);
at_status pf_dtype_of(at_context *cx, at_array a, at_dtype *out);
/* The dtype of an array that has one; AT_OTHER fails the frame where it cannot be read. */
at_dtype pf_type(pa_frame *f, at_array a);

/* An array as a tensor: variables are read. */
PyObject *pf_tensor(pa_frame *f, const at_backend *be, PyObject *x);
bool pf_is_eager(const tensorflow_state *st, PyObject *x);
/* Whether ops run as they are called. Within tf.function they do not, also where their operands are eager. */
bool pf_runs_now(const at_backend *be);

/* A 0-d tensor of a number. */
PyObject *pf_integer(pa_frame *f, const at_backend *be, int64_t value, at_dtype t);
PyObject *pf_float(pa_frame *f, const at_backend *be, double value, at_dtype t);
/* A vector of int32, or of int64 where a size asks for it, from a list or tuple of integers and 0-d int32 tensors. */
PyObject *pf_vector(pa_frame *f, const at_backend *be, PyObject *sizes);
/* A size as a 0-d tensor of an integer dtype. */
PyObject *pf_size(pa_frame *f, const at_backend *be, at_dim size, at_dtype t);

PyObject *pf_cast(pa_frame *f, const at_backend *be, PyObject *x, at_dtype t);
/* The same bits as another dtype. */
PyObject *pf_bits(pa_frame *f, const at_backend *be, PyObject *x, at_dtype t);

/* Sizes as a list: integers, and a 0-d int32 tensor where only run time knows. */
PyObject *pf_sizes(pa_frame *f, const at_backend *be, PyObject *x);
/* Rank of a tensor; -1 fails the frame, as a tensor of unknown rank does. */
int pf_rank(pa_frame *f, const at_backend *be, PyObject *x);
/* One size of a list of them. */
at_dim pf_dim(const tensorflow_state *st, PyObject *sizes, int k);

/* Ids as tensors of int32 or int64, whichever holds them and the size; what is beyond int64 turns negative. */
PyObject *pf_index(pa_frame *f, at_array ids, at_dim size, at_dtype *out);

/* Whether there is more than one; asked once. */
bool pf_several_devices(tensorflow_state *st);
/* Runs what follows on a device; the context is to be given back to pf_leave_device(), NULL where there is no choice. */
PyObject *pf_enter_device(pa_frame *f, const at_backend *be, PyObject *device);
void pf_leave_device(pa_frame *f, const at_backend *be, PyObject *context);
PyObject *pf_device_of(pa_frame *f, const at_backend *be, at_array like);

/* --- our own ops, eagerly (tensorflow_eager.c) --- */

/* Finds what is needed, registers the ops and their derivatives. Never fails: without it the formulas serve. */
void pf_eager_wake(tensorflow_state *st, PyObject *tensorflow);
void pf_eager_clear(pf_eager *e);
/* Dtype and sizes of an eager tensor by its C methods; AT_NODTYPE and NULL with an exception, and pf_is_eager() first. */
at_dtype pf_eager_dtype(const tensorflow_state *st, PyObject *x);
PyObject *pf_eager_sizes(const tensorflow_state *st, PyObject *x);

/* Whether an eager tensor lies on a CPU. */
bool pf_is_on_cpu(const tensorflow_state *st, PyObject *x);

/* The choice of path: whether one of our ops has been run on these operands, data and ids first and the number of
 * segments last. False, without a result or an exception, where TensorFlow's own ops are to be used. */
bool pf_own(pa_frame *f, at_context *cx, const at_backend *be, pf_op op, PyObject *const *operands,
            int count, const at_dim *n, PyObject **result);

/* The tracked slot. */
bool pf_tracked(at_context *cx, at_array a);

/* Everything that the adapter needs of a TensorFlow; NULL with an exception that names its version. */
tensorflow_state *pf_state_new(PyObject *tensorflow, pa_state *home);
void pf_state_free(tensorflow_state *st);

/* For pa_framework. */
int pf_owns(PyObject *module, PyTypeObject *type);
at_dtype pf_dtype(const at_backend *be, PyObject *obj);
PyObject *pf_trace(const at_backend *be, PyObject *x, PyObject **pulse);
int pf_holds(PyObject *tensorflow, PyObject *condition);
int pf_visit(at_backend *be, visitproc visit, void *arg);
void pf_clear(at_backend *be);

/* Composites as one op (tensorflow_slots.c). */
#define PF_SEGMENT_SLOT(name)                                                                      \
    at_status pf_##name(at_context *cx, const at_backend *be, at_array x, at_array segment_ids,    \
                        at_dim num_segments, bool sorted, at_array *out)
#define PF_CONSTANT_SLOT(name)                                                                     \
    at_status pf_##name(at_context *cx, const at_backend *be, at_array x, at_array segment_ids,    \
                        at_dim num_segments, at_array constant, bool sorted, at_array *out)
PF_SEGMENT_SLOT(segment_sum);
PF_SEGMENT_SLOT(segment_mean);
PF_SEGMENT_SLOT(segment_variance);
PF_SEGMENT_SLOT(segment_min);
PF_SEGMENT_SLOT(segment_max);
PF_SEGMENT_SLOT(segment_softmax);
PF_SEGMENT_SLOT(segment_normalize);
PF_CONSTANT_SLOT(segment_min_or_constant);
PF_CONSTANT_SLOT(segment_max_or_constant);
at_status pf_segment_count(at_context *cx, const at_backend *be, at_array segment_ids,
                           at_dim num_segments, bool sorted, at_array *out);
at_status pf_partition_ids(at_context *cx, const at_backend *be, at_array partitions,
                           at_dim total_length, at_array *out);

/* The slots that segment formulas are made of (tensorflow_slots.c). */
at_status pf_slot_ids(at_context *cx, const at_backend *be, at_array ids, at_dim n, at_array *out);
at_status pf_slot_kept(at_context *cx, const at_backend *be, at_array ids, at_dim n, at_array *out);
at_status pf_slot_count(at_context *cx, const at_backend *be, at_array ids, at_dim n,
                        at_array *out);
at_status pf_slot_sum(at_context *cx, const at_backend *be, at_array x, at_array slot_ids,
                      at_dim slots, at_array *out);
at_status pf_slot_min(at_context *cx, const at_backend *be, at_array x, at_array slot_ids,
                      at_dim slots, at_array *out);
at_status pf_slot_max(at_context *cx, const at_backend *be, at_array x, at_array slot_ids,
                      at_dim slots, at_array *out);
at_status pf_slot_prod(at_context *cx, const at_backend *be, at_array x, at_array slot_ids,
                       at_dim slots, at_array *out);
at_status pf_spread(at_context *cx, const at_backend *be, at_array x, at_array slot_ids,
                    at_array *out);
at_status pf_head(at_context *cx, const at_backend *be, at_array x, at_dim n, at_array *out);

#endif
