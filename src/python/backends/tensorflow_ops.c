/* Ops of our own inside TensorFlow, through its C API for ops and kernels: the segment kernels of src/kernels over
 * TensorFlow's memory.
 *
 * TensorFlow allocates every result, and calls a kernel in any thread and without the GIL: nothing in this file
 * touches Python. The API is found by name in the library that TensorFlow has loaded; nothing is linked, and
 * where a function is missing no op is registered. Ops and kernels are the process's: registering a name twice
 * aborts, and is done once. */
#include "tensorflow_ops.h"

#include <dlfcn.h>
#include <string.h>

#include "core/dtype.h"
#include "kernels/move.h"
#include "kernels/segment.h"

/* --- the C API ------------------------------------------------------------------------------------------------- */

/* TensorFlow's types, all of them opaque. */
typedef struct TF_Status TF_Status;
typedef struct TF_Tensor TF_Tensor;
typedef struct TF_OpDefinitionBuilder TF_OpDefinitionBuilder;
typedef struct TF_KernelBuilder TF_KernelBuilder;
typedef struct TF_OpKernelConstruction TF_OpKernelConstruction;
typedef struct TF_OpKernelContext TF_OpKernelContext;
typedef struct TF_ShapeInferenceContext TF_ShapeInferenceContext;
typedef struct TF_ShapeHandle TF_ShapeHandle;

typedef void shape_function(TF_ShapeInferenceContext *c, TF_Status *status);
typedef void *create_function(TF_OpKernelConstruction *c);
typedef void compute_function(void *kernel, TF_OpKernelContext *c);
typedef void delete_function(void *kernel);

/* X(result, name without TF_, parameters) */
#define API(X)                                                                                     \
    X(TF_Status *, NewStatus, (void))                                                              \
    X(void, DeleteStatus, (TF_Status *))                                                           \
    X(void, SetStatus, (TF_Status *, int code, const char *message))                               \
    X(int, GetCode, (const TF_Status *))                                                           \
    X(TF_OpDefinitionBuilder *, NewOpDefinitionBuilder, (const char *name))                        \
    X(void, OpDefinitionBuilderAddInput, (TF_OpDefinitionBuilder *, const char *))                 \
    X(void, OpDefinitionBuilderAddOutput, (TF_OpDefinitionBuilder *, const char *))                \
    X(void, OpDefinitionBuilderAddAttr, (TF_OpDefinitionBuilder *, const char *))                  \
    X(void, OpDefinitionBuilderSetShapeInferenceFunction,                                          \
      (TF_OpDefinitionBuilder *, shape_function *))                                                \
    X(void, RegisterOpDefinition, (TF_OpDefinitionBuilder *, TF_Status *))                         \
    X(TF_KernelBuilder *, NewKernelBuilder,                                                        \
      (const char *op, const char *device, create_function *, compute_function *,                  \
       delete_function *))                                                                         \
    X(void, RegisterKernelBuilder, (const char *name, TF_KernelBuilder *, TF_Status *))            \
    X(TF_ShapeHandle *, NewShapeHandle, (void))                                                    \
    X(void, DeleteShapeHandle, (TF_ShapeHandle *))                                                 \
    X(TF_ShapeHandle *, ShapeInferenceContextVectorFromSize, (TF_ShapeInferenceContext *, size_t)) \
    X(void, ShapeInferenceContextGetInput,                                                         \
      (TF_ShapeInferenceContext *, int, TF_ShapeHandle *, TF_Status *))                            \
    X(void, ShapeInferenceContextSetOutput,                                                        \
      (TF_ShapeInferenceContext *, int, TF_ShapeHandle *, TF_Status *))                            \
    X(void, ShapeInferenceContextSubshape,                                                         \
      (TF_ShapeInferenceContext *, TF_ShapeHandle *, int64_t start, int64_t end, TF_ShapeHandle *, \
       TF_Status *))                                                                               \
    X(void, ShapeInferenceContextConcatenateShapes,                                                \
      (TF_ShapeInferenceContext *, TF_ShapeHandle *, TF_ShapeHandle *, TF_ShapeHandle *,           \
       TF_Status *))                                                                               \
    X(void, GetInput, (TF_OpKernelContext *, int, TF_Tensor **, TF_Status *))                      \
    X(TF_Tensor *, AllocateOutput,                                                                 \
      (TF_OpKernelContext *, int, int dtype, const int64_t *dims, int ndim, size_t bytes,          \
       TF_Status *))                                                                               \
    X(void, OpKernelContext_Failure, (TF_OpKernelContext *, TF_Status *))                          \
    X(void, DeleteTensor, (TF_Tensor *))                                                           \
    X(void *, TensorData, (const TF_Tensor *))                                                     \
    X(int, TensorType, (const TF_Tensor *))                                                        \
    X(int, NumDims, (const TF_Tensor *))                                                           \
    X(int64_t, Dim, (const TF_Tensor *, int))

static struct {
#define X(result, name, parameters) result(*name) parameters;
    API(X)
#undef X
} tf;

enum { TF_OK = 0, TF_INVALID_ARGUMENT = 3, TF_RESOURCE_EXHAUSTED = 8 };

/* TensorFlow's numbers of dtypes. */
static const int number_of[AT_OTHER] = {
    [AT_BOOL] = 10,     [AT_INT8] = 6,    [AT_INT16] = 5,   [AT_INT32] = 3,   [AT_INT64] = 9,
    [AT_UINT8] = 4,     [AT_UINT16] = 17, [AT_UINT32] = 22, [AT_UINT64] = 23, [AT_FLOAT16] = 19,
    [AT_BFLOAT16] = 14, [AT_FLOAT32] = 1, [AT_FLOAT64] = 2,
};

at_dtype pf_dtype_numbered(long number)
{
    for (int t = AT_BOOL; t < AT_OTHER; t++)
        if (number_of[t] == number) return (at_dtype)t;
    return AT_OTHER;
}

/* --- one call of a kernel ---------------------------------------------------------------------------------------- */

typedef struct call call;

/* One op. Its operands in order: 'x' data with a row per id and 's' data with a row per segment (all of one dtype T, and
 * alike but for their rows), 'c' a 0-d one, 'i' the vector of ids, 'n' a digit of the number of segments, a 0-d int64. */
typedef struct op {
    const char *name, *operands;
    at_dtype result; /* AT_NODTYPE: T */
    bool
        per_id; /* the result has a row per id, else per segment; further axes are those of the data */
    bool (*run)(call *c); /* false: no memory for temporaries, or what the status says */
} op;

struct call {
    const op *op;
    TF_OpKernelContext *context;
    TF_Status *status;
    TF_Tensor *tensor[PF_MOST_OPERANDS], *result;
    ati_host x[PF_MOST_OPERANDS]; /* the data operands, in their places */
    ati_host ids, y;
    int64_t n;
};

static bool fail(call *c, int code, const char *message)
{
    tf.SetStatus(c->status, code, message);
    return false;
}

static bool open_view(call *c, const TF_Tensor *t, ati_host *v)
{
    int64_t dims[AT_MAX_NDIM];
    int ndim = tf.NumDims(t);
    if (ndim > AT_MAX_NDIM) return fail(c, TF_INVALID_ARGUMENT, "too many axes");
    for (int k = 0; k < ndim; k++) dims[k] = tf.Dim(t, k);
    *v = ati_k_view(tf.TensorData(t), pf_dtype_numbered(tf.TensorType(t)), ndim, dims);
    return true;
}

static bool add_digit(call *c, int64_t digit)
{
    bool fits = digit >= 0 && !__builtin_mul_overflow(c->n, PF_RADIX, &c->n) &&
                !__builtin_add_overflow(c->n, digit, &c->n);
    return fits || fail(c, TF_INVALID_ARGUMENT, "the number of segments is out of range");
}

static bool read_operands(call *c)
{
    for (int i = 0; c->op->operands[i] != '\0'; i++) {
        char role = c->op->operands[i];
        ati_host *v = role == 'i' ? &c->ids : &c->x[i];
        tf.GetInput(c->context, i, &c->tensor[i], c->status);
        if (tf.GetCode(c->status) != TF_OK || !open_view(c, c->tensor[i], v)) return false;
        if (role == 'i' ? v->ndim != 1 : role == 'n' || role == 'c' ? v->ndim != 0 : v->ndim == 0)
            return fail(c, TF_INVALID_ARGUMENT, "an operand has the wrong rank");
        if (role == 's') c->n = v->dim[0];
        if (role == 'n' && !add_digit(c, *(const int64_t *)v->data)) return false;
    }
    return true;
}

/* The adapter's checks stand in the way of bad shapes; TensorFlow can be asked to run an op without them. */
static bool shapes_agree(call *c)
{
    for (int i = 0; c->op->operands[i] != '\0'; i++) {
        const ati_host *v = &c->x[i], *first = &c->x[0];
        char role = c->op->operands[i];
        if (role != 'x' && role != 's') continue;
        bool agree = v->ndim == first->ndim && v->dim[0] == (role == 'x' ? c->ids.dim[0] : c->n);
        for (int k = 1; agree && k < v->ndim; k++) agree = v->dim[k] == first->dim[k];
        if (!agree) return fail(c, TF_INVALID_ARGUMENT, "shapes of operands do not go together");
    }
    return true;
}

/* TensorFlow aborts when the product of sizes overflows, also where a later one is 0. */
static bool allocate(call *c)
{
    c->y = c->op->operands[0] == 'i' ? c->ids : c->x[0];
    c->y.dim[0] = c->op->per_id ? c->ids.dim[0] : c->n;
    if (c->op->result != AT_NODTYPE) c->y.dtype = c->op->result;
    int64_t bytes = ati_k_itemsize(c->y.dtype);
    for (int k = 0; k < c->y.ndim; k++)
        if (__builtin_mul_overflow(bytes, c->y.dim[k], &bytes))
            return fail(c, TF_RESOURCE_EXHAUSTED, "the result is larger than any memory");
    c->result = tf.AllocateOutput(c->context, 0, number_of[c->y.dtype], c->y.dim, c->y.ndim,
                                  (size_t)bytes, c->status);
    if (tf.GetCode(c->status) != TF_OK) return false;
    c->y.data = tf.TensorData(c->result);
    ati_k_row_major(&c->y);
    return true;
}

static void compute(void *kernel, TF_OpKernelContext *context)
{
    call c = {.op = kernel, .context = context, .status = tf.NewStatus()};
    bool ready = read_operands(&c) && shapes_agree(&c) && allocate(&c);
    if (ready && !c.op->run(&c) && tf.GetCode(c.status) == TF_OK)
        fail(&c, TF_RESOURCE_EXHAUSTED, "no memory for temporaries");
    if (tf.GetCode(c.status) != TF_OK) tf.OpKernelContext_Failure(context, c.status);
    for (int i = 0; i < PF_MOST_OPERANDS; i++)
        if (c.tensor[i] != NULL) tf.DeleteTensor(c.tensor[i]);
    if (c.result != NULL) tf.DeleteTensor(c.result);
    tf.DeleteStatus(c.status);
}

/* --- the kernels --------------------------------------------------------------------------------------------------- */

static bool run_segment_sum(call *c)
{
    return ati_k_segment_fold(ATI_FOLD_SUM, &c->x[0], &c->ids, &c->y);
}

static bool run_segment_min(call *c)
{
    return ati_k_segment_fold(ATI_FOLD_MIN, &c->x[0], &c->ids, &c->y);
}

static bool run_segment_max(call *c)
{
    return ati_k_segment_fold(ATI_FOLD_MAX, &c->x[0], &c->ids, &c->y);
}

static bool run_segment_min_or(call *c)
{
    return ati_k_segment_or_constant(ATI_FOLD_MIN, &c->x[0], &c->ids, &c->x[2], &c->y);
}

static bool run_segment_max_or(call *c)
{
    return ati_k_segment_or_constant(ATI_FOLD_MAX, &c->x[0], &c->ids, &c->x[2], &c->y);
}

/* Kernels that know floats only. */
static bool are_floats(call *c)
{
    return ati_is_float(c->y.dtype) || fail(c, TF_INVALID_ARGUMENT, "an operand holds no floats");
}

static bool run_segment_mean(call *c)
{
    return are_floats(c) && ati_k_segment_mean(&c->x[0], &c->ids, &c->y);
}

static bool run_segment_softmax(call *c)
{
    return are_floats(c) && ati_k_segment_softmax(&c->x[0], &c->ids, c->n, &c->y);
}

static bool run_segment_normalize(call *c)
{
    return are_floats(c) && ati_k_segment_normalize(&c->x[0], &c->ids, c->n, &c->y);
}

static bool run_softmax_back(call *c)
{
    return are_floats(c) && ati_k_segment_softmax_back(&c->x[0], &c->x[1], &c->ids, c->n, &c->y);
}

static bool run_extreme_back(call *c)
{
    return are_floats(c) &&
           ati_k_segment_extreme_back(&c->x[0], &c->x[1], &c->x[2], &c->ids, &c->y);
}

/* Counted as integers, and turned into doubles in their places. */
static bool run_segment_count(call *c)
{
    ati_host counts = c->y;
    counts.dtype = AT_INT64;
    if (!ati_k_segment_count(&c->ids, &counts)) return false;
    for (int64_t k = 0; k < c->n; k++) {
        int64_t count;
        char *place = (char *)c->y.data + k * (int64_t)sizeof count;
        memcpy(&count, place, sizeof count);
        double as = (double)count;
        memcpy(place, &as, sizeof as);
    }
    return true;
}

static bool run_spread(call *c)
{
    ati_k_spread(&c->x[0], &c->ids, &c->y);
    return true;
}

static bool run_slot_ids(call *c)
{
    ati_k_slot_ids(&c->ids, c->n, &c->y);
    return true;
}

static bool run_slot_kept(call *c)
{
    ati_k_slot_kept(&c->ids, c->n, &c->y);
    return true;
}

static bool run_slot_count(call *c) { return ati_k_segment_count(&c->ids, &c->y); }

/* Partitions in the place of ids, and their total in that of the number of segments. */
static bool run_partition_ids(call *c)
{
    ati_k_partition_ids(&c->ids, &c->y);
    return true;
}

/* --- registration -------------------------------------------------------------------------------------------------- */

static const op ops[] = {
#define X(name, called, operands, result, per_id)                                                  \
    [PF_OP_##name] = {called, operands, result, per_id, run_##name},
    PF_OPS(X)
#undef X
};

/* A kernel's state is the row of its op. */
#define X(name, ...)                                                                               \
    static void *create_##name(TF_OpKernelConstruction *c)                                         \
    {                                                                                              \
        (void)c;                                                                                   \
        return (void *)&ops[PF_OP_##name];                                                         \
    }
PF_OPS(X)
#undef X

static create_function *const create[] = {
#define X(name, ...) [PF_OP_##name] = create_##name,
    PF_OPS(X)
#undef X
};

/* Some number of rows, and the further axes of the first operand. Asynchronous eager calls ask for the rank. */
static void shape_of_rows(TF_ShapeInferenceContext *c, TF_Status *status)
{
    TF_ShapeHandle *tail = tf.NewShapeHandle();
    TF_ShapeHandle *rows = tf.ShapeInferenceContextVectorFromSize(c, (size_t)-1);
    tf.ShapeInferenceContextGetInput(c, 0, tail, status);
    if (tf.GetCode(status) == TF_OK)
        tf.ShapeInferenceContextSubshape(c, tail, 1, INT64_MAX, tail, status);
    if (tf.GetCode(status) == TF_OK)
        tf.ShapeInferenceContextConcatenateShapes(c, rows, tail, tail, status);
    if (tf.GetCode(status) == TF_OK) tf.ShapeInferenceContextSetOutput(c, 0, tail, status);
    tf.DeleteShapeHandle(rows);
    tf.DeleteShapeHandle(tail);
}

/* "T" has its types where the op has data. */
static void add_operands(TF_OpDefinitionBuilder *b, const op *o)
{
    static const char *const spec[][PF_MOST_OPERANDS] = {
        {"a: T", "b: T", "c: T", "d: T", "e: T"},
        {"a: Tids", "b: Tids", "c: Tids", "d: Tids", "e: Tids"},
        {"a: int64", "b: int64", "c: int64", "d: int64", "e: int64"},
    };
    bool data = false;
    for (int i = 0; o->operands[i] != '\0'; i++) {
        char role = o->operands[i];
        data = data || (role != 'i' && role != 'n');
        tf.OpDefinitionBuilderAddInput(b, spec[role == 'i' ? 1 : role == 'n' ? 2 : 0][i]);
    }
    if (data)
        tf.OpDefinitionBuilderAddAttr(b, "T: {bool, int8, int16, int32, int64, uint8, uint16, "
                                         "uint32, uint64, half, bfloat16, float, double}");
    tf.OpDefinitionBuilderAddAttr(
        b, "Tids: {int8, int16, int32, int64, uint8, uint16, uint32, uint64}");
}

static bool register_op(const op *o, create_function *make, TF_Status *status)
{
    TF_OpDefinitionBuilder *b = tf.NewOpDefinitionBuilder(o->name);
    add_operands(b, o);
    tf.OpDefinitionBuilderAddOutput(b, o->result == AT_BOOL      ? "y: bool"
                                       : o->result == AT_INT64   ? "y: int64"
                                       : o->result == AT_FLOAT64 ? "y: double"
                                                                 : "y: T");
    tf.OpDefinitionBuilderSetShapeInferenceFunction(b, shape_of_rows);
    tf.RegisterOpDefinition(b, status);
    if (tf.GetCode(status) != TF_OK) return false;
    TF_KernelBuilder *k = tf.NewKernelBuilder(o->name, "CPU", make, compute, NULL);
    tf.RegisterKernelBuilder(o->name, k, status);
    return tf.GetCode(status) == TF_OK;
}

/* The functions of the library that TensorFlow has loaded already, by the names it has on each system. */
static bool find_api(void)
{
    static const char *const library[] = {"libtensorflow_framework.so.2",
                                          "libtensorflow_framework.2.dylib"};
    void *handle = NULL;
    for (size_t i = 0; handle == NULL && i < sizeof library / sizeof *library; i++)
        handle = dlopen(library[i], RTLD_LAZY | RTLD_NOLOAD);
    if (handle == NULL) return false;
    bool all = true;
#define X(result, name, parameters)                                                                \
    *(void **)&tf.name = dlsym(handle, "TF_" #name);                                               \
    all = all && tf.name != NULL;
    API(X)
#undef X
    dlclose(handle); /* one of its holders less */
    return all;
}

const char *pf_op_name(pf_op o) { return ops[o].name; }

static bool register_all(void)
{
    if (!find_api()) return false;
    TF_Status *status = tf.NewStatus();
    bool fine = true;
    for (int i = 0; fine && i < PF_OP_COUNT; i++) fine = register_op(&ops[i], create[i], status);
    tf.DeleteStatus(status);
    return fine;
}

bool pf_register_ops(void)
{
    static int state; /* 1: registered; -1: it cannot be done. Callers hold the GIL */
    if (state == 0) state = register_all() ? 1 : -1;
    return state == 1;
}
