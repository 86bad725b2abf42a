/* The segment kernels as operators of torch's dispatcher, through its stable C shim: found by dlsym, nothing is linked.
 *
 * An operator is a thin function: the tensors of a call become host views, a kernel of src/kernels works on them, torch owns
 * the result. It runs without the GIL and touches no Python. Arguments are checked here too, since torch.ops.anytensor is
 * open to everybody. What is wrong is thrown by torch itself (aoti_torch_check), through these frames, when nothing of the
 * call is left to release. */
#include "torch_state.h"

#include <dlfcn.h>
#include <stdatomic.h>
#include <stdio.h>

#include "core/dtype.h"
#include "kernels/move.h"
#include "kernels/pool.h"
#include "kernels/segment.h"
#include "kernels/view.h"

typedef void *tensor;    /* AtenTensorHandle */
typedef uint64_t svalue; /* StableIValue: a handle, or an integer */
typedef void boxed(svalue *stack, uint64_t inputs, uint64_t outputs);

/* What is used of the shim: X(result, name, parameters). Results of type int32_t are 0 for success. */
#define SHIM(X)                                                                                    \
    X(int32_t, aoti_torch_library_init_fragment, (const char *, const char *, uint32_t, void **))  \
    X(int32_t, aoti_torch_library_init_impl,                                                       \
      (const char *, const char *, const char *, uint32_t, void **))                               \
    X(int32_t, aoti_torch_library_def, (void *, const char *))                                     \
    X(int32_t, aoti_torch_library_impl, (void *, const char *, boxed *))                           \
    X(int32_t, aoti_torch_get_dim, (tensor, int64_t *))                                            \
    X(int32_t, aoti_torch_get_sizes, (tensor, int64_t **))                                         \
    X(int32_t, aoti_torch_get_strides, (tensor, int64_t **))                                       \
    X(int32_t, aoti_torch_get_dtype, (tensor, int32_t *))                                          \
    X(int32_t, aoti_torch_get_storage_size, (tensor, int64_t *))                                   \
    X(int32_t, torch_get_const_data_ptr, (tensor, const void **))                                  \
    X(int32_t, torch_get_mutable_data_ptr, (tensor, void **))                                      \
    X(int32_t, aoti_torch_empty_strided,                                                           \
      (int64_t, const int64_t *, const int64_t *, int32_t, int32_t, int32_t, tensor *))            \
    X(int32_t, aoti_torch_delete_tensor_object, (tensor))                                          \
    X(int32_t, torch_get_num_threads, (uint32_t *))                                                \
    X(int32_t, torch_parallel_for,                                                                 \
      (int64_t, int64_t, int64_t, void (*)(int64_t, int64_t, void *), void *))                     \
    X(int32_t, aoti_torch_device_type_cpu, (void))                                                 \
    X(void, aoti_torch_check, (bool, const char *, const char *, uint32_t, const char *))

/* Of the process, as the operators are: written once, before there is one. */
static struct {
#define X(result, name, parameters) result(*name) parameters;
    SHIM(X)
#undef X
    int32_t dtype[AT_OTHER]; /* torch's number of each */
    int32_t cpu;
} shim;

static atomic_llong runs;

long long pt_ops_runs(void) { return atomic_load(&runs); }

/* --- threads ------------------------------------------------------------------------------------------------ */

static int lent_threads(void)
{
    uint32_t threads;
    return shim.torch_get_num_threads(&threads) == 0 ? (int)threads : 1;
}

typedef struct lent_job {
    ati_task *task;
    void *job;
    atomic_int met; /* tasks that have run */
} lent_job;

static void run_some(int64_t begin, int64_t end, void *arg)
{
    lent_job *l = arg;
    for (int64_t k = begin; k < end; k++) l->task(l->job, (int)k);
    atomic_fetch_add_explicit(&l->met, (int)(end - begin), memory_order_relaxed);
}

/* Should torch refuse, which it does before it begins, the tasks are run here. */
static void run_lent(int count, ati_task *task, void *job)
{
    lent_job l = {.task = task, .job = job};
    shim.torch_parallel_for(0, count, 1, run_some, &l);
    for (int k = atomic_load(&l.met); k < count; k++) task(job, k);
}

/* torch's own threads: they spin for a while after each of its operators, and ours would wait for them. */
static const ati_lender torch_threads = {lent_threads, run_lent};

/* --- one call ---------------------------------------------------------------------------------------------- */

#define MOST_OPERANDS 4

typedef struct call {
    const char *op;
    const char *wrong; /* the first thing that is, or NULL */
    int count;
    tensor operand[MOST_OPERANDS];
    ati_host view[MOST_OPERANDS];
    tensor result;
    const ati_lender *lent_before;
} call;

static at_dtype dtype_numbered(int32_t number)
{
    for (int t = AT_BOOL; t < AT_OTHER; t++)
        if (shim.dtype[t] == number) return (at_dtype)t;
    return AT_OTHER;
}

/* Where the data of an empty tensor stands: torch has NULL there, which for a kernel is no array. */
static double nothing;

/* A tensor of a freed storage has sizes, and no memory. */
static const char *read_view(tensor t, ati_host *v)
{
    int64_t ndim, bytes, *sizes, *strides;
    int32_t type;
    const void *data;
    if (shim.aoti_torch_get_dim(t, &ndim) || shim.aoti_torch_get_sizes(t, &sizes) ||
        shim.aoti_torch_get_strides(t, &strides) || shim.aoti_torch_get_dtype(t, &type) ||
        shim.aoti_torch_get_storage_size(t, &bytes) || shim.torch_get_const_data_ptr(t, &data))
        return "expected tensors that have memory";
    if (ndim > AT_MAX_NDIM) return "expected tensors of fewer axes";
    *v = (ati_host){.data = (void *)data, .dtype = dtype_numbered(type), .ndim = (int)ndim};
    if (v->dtype == AT_OTHER) return "expected bool, integers or floats";
    int64_t size = ati_k_itemsize(v->dtype);
    for (int k = 0; k < v->ndim; k++) {
        v->dim[k] = sizes[k];
        v->stride[k] = strides[k] * size;
    }
    if (ati_k_count(v) == 0) v->data = &nothing;
    return bytes == 0 && v->data != &nothing ? "the memory of a tensor is freed" : NULL;
}

static void open_call(call *c, const char *op, const svalue *stack, int count)
{
    atomic_fetch_add_explicit(&runs, 1, memory_order_relaxed);
    c->op = op;
    c->wrong = NULL;
    c->count = count;
    c->result = NULL;
    c->lent_before = ati_pool_borrow(&torch_threads);
    for (int i = 0; i < count; i++) {
        c->operand[i] = (tensor)(uintptr_t)stack[i];
        if (c->wrong == NULL) c->wrong = read_view(c->operand[i], &c->view[i]);
    }
}

static void expect(call *c, bool fact, const char *what)
{
    if (c->wrong == NULL && !fact) c->wrong = what;
}

/* A view is there to be looked at while nothing is wrong. */
static void expect_floats(call *c)
{
    if (c->wrong == NULL) expect(c, ati_is_float(c->view[0].dtype), "expected floats");
}

static bool is_ids(const ati_host *ids) { return ids->ndim == 1 && ati_is_integer(ids->dtype); }

/* Ids are the operand behind the rows that they belong to. */
static void expect_rows(call *c, int rows, int ids)
{
    if (c->wrong != NULL) return;
    const ati_host *x = &c->view[rows], *i = &c->view[ids];
    expect(c, is_ids(i), "expected a vector of integers as ids");
    expect(c, x->ndim > 0, "expected rows, found a number");
    expect(c, x->ndim == 0 || x->dim[0] == i->dim[0], "rows and ids differ in length");
}

/* Of one dtype and, from an axis on, one shape. */
static bool is_alike(const ati_host *a, const ati_host *b, int from)
{
    if (a->ndim != b->ndim || a->dtype != b->dtype) return false;
    for (int k = from; k < a->ndim; k++)
        if (a->dim[k] != b->dim[k]) return false;
    return true;
}

/* The result: (rows, rest of like's shape), row-major. */
static void new_result(call *c, at_dtype dtype, int64_t rows, const ati_host *like, ati_host *out)
{
    expect(c, rows >= 0, "expected a number of segments that is not negative");
    if (c->wrong != NULL) return;
    int64_t stride[AT_MAX_NDIM], step = 1;
    *out = (ati_host){.dtype = dtype, .ndim = like->ndim};
    memcpy(out->dim, like->dim, sizeof out->dim);
    out->dim[0] = rows;
    for (int k = like->ndim - 1; k >= 0; k--) {
        stride[k] = step;
        out->stride[k] = step * ati_k_itemsize(dtype);
        step *= out->dim[k] > 1 ? out->dim[k] : 1;
    }
    bool made = shim.aoti_torch_empty_strided(like->ndim, out->dim, stride, shim.dtype[dtype],
                                              shim.cpu, 0, &c->result) == 0;
    expect(c, made && shim.torch_get_mutable_data_ptr(c->result, &out->data) == 0,
           "no memory for the result");
}

/* Operands were handed over with the call, so they are released here; the result goes back, or what is wrong. */
static void close_call(call *c, svalue *stack)
{
    ati_pool_borrow(c->lent_before);
    for (int i = 0; i < c->count; i++) shim.aoti_torch_delete_tensor_object(c->operand[i]);
    stack[0] = (svalue)(uintptr_t)c->result;
    if (c->wrong == NULL) return;
    if (c->result != NULL) shim.aoti_torch_delete_tensor_object(c->result);
    char text[128];
    snprintf(text, sizeof text, "anytensor::%s: %s", c->op, c->wrong);
    shim.aoti_torch_check(false, c->op, "torch_ops.c", 0, text); /* throws */
}

/* --- the operators ------------------------------------------------------------------------------------------ */

static void fold(const char *name, ati_fold op, svalue *stack)
{
    call c;
    ati_host out;
    int64_t n = (int64_t)stack[2];
    open_call(&c, name, stack, 2);
    expect_rows(&c, 0, 1);
    if (c.wrong == NULL && op == ATI_FOLD_SUM)
        expect(&c, c.view[0].dtype != AT_BOOL, "expected numbers, found bool");
    new_result(&c, c.view[0].dtype, n, &c.view[0], &out);
    if (c.wrong == NULL)
        expect(&c, ati_k_segment_fold(op, &c.view[0], &c.view[1], &out),
               "no memory for partial sums");
    close_call(&c, stack);
}

static void segment_sum(svalue *stack, uint64_t inputs, uint64_t outputs)
{
    (void)inputs, (void)outputs;
    fold("segment_sum", ATI_FOLD_SUM, stack);
}

static void segment_min(svalue *stack, uint64_t inputs, uint64_t outputs)
{
    (void)inputs, (void)outputs;
    fold("segment_min", ATI_FOLD_MIN, stack);
}

static void segment_max(svalue *stack, uint64_t inputs, uint64_t outputs)
{
    (void)inputs, (void)outputs;
    fold("segment_max", ATI_FOLD_MAX, stack);
}

static void segment_softmax(svalue *stack, uint64_t inputs, uint64_t outputs)
{
    (void)inputs, (void)outputs;
    call c;
    ati_host out;
    int64_t n = (int64_t)stack[2];
    open_call(&c, "segment_softmax", stack, 2);
    expect_rows(&c, 0, 1);
    const ati_host *x = &c.view[0];
    expect_floats(&c);
    expect(&c, n >= 0, "expected a number of segments that is not negative");
    if (c.wrong == NULL) new_result(&c, x->dtype, x->dim[0], x, &out);
    if (c.wrong == NULL)
        expect(&c, ati_k_segment_softmax(x, &c.view[1], n, &out), "no memory for peaks and sums");
    close_call(&c, stack);
}

static void segment_spread(svalue *stack, uint64_t inputs, uint64_t outputs)
{
    (void)inputs, (void)outputs;
    call c;
    ati_host out;
    open_call(&c, "segment_spread", stack, 2);
    if (c.wrong == NULL) {
        expect(&c, is_ids(&c.view[1]), "expected a vector of integers as ids");
        expect(&c, c.view[0].ndim > 0, "expected rows, found a number");
        new_result(&c, c.view[0].dtype, c.view[1].dim[0], &c.view[0], &out);
    }
    if (c.wrong == NULL) ati_k_spread(&c.view[0], &c.view[1], &out);
    close_call(&c, stack);
}

/* The derivative of a softmax that gave y, from that of its result: both (E, ...), of one dtype. */
static void segment_softmax_backward(svalue *stack, uint64_t inputs, uint64_t outputs)
{
    (void)inputs, (void)outputs;
    call c;
    ati_host out;
    const ati_host *y = &c.view[0], *dy = &c.view[1], *ids = &c.view[2];
    int64_t n = (int64_t)stack[3];
    open_call(&c, "segment_softmax_backward", stack, 3);
    expect_rows(&c, 0, 2);
    expect_floats(&c);
    expect(&c, n >= 0, "expected a number of segments that is not negative");
    if (c.wrong == NULL) expect(&c, is_alike(y, dy, 0), "result and derivative differ in shape");
    if (c.wrong == NULL) new_result(&c, y->dtype, y->dim[0], y, &out);
    if (c.wrong == NULL)
        expect(&c, ati_k_segment_softmax_back(y, dy, ids, n, &out), "no memory for sums");
    close_call(&c, stack);
}

/* The derivative of a minimum or maximum: rows x (E, ...) share that of the peak (n, ...) which they reach. */
static void segment_extreme_backward(svalue *stack, uint64_t inputs, uint64_t outputs)
{
    (void)inputs, (void)outputs;
    call c;
    ati_host out;
    const ati_host *x = &c.view[0], *peak = &c.view[1], *dpeak = &c.view[2], *ids = &c.view[3];
    open_call(&c, "segment_extreme_backward", stack, 4);
    expect_rows(&c, 0, 3);
    expect_floats(&c);
    if (c.wrong == NULL) expect(&c, is_alike(x, peak, 1), "rows and extremes differ in shape");
    if (c.wrong == NULL)
        expect(&c, is_alike(peak, dpeak, 0), "extremes and derivative differ in shape");
    if (c.wrong == NULL) new_result(&c, x->dtype, x->dim[0], x, &out);
    if (c.wrong == NULL)
        expect(&c, ati_k_segment_extreme_back(x, peak, dpeak, ids, &out), "no memory for ties");
    close_call(&c, stack);
}

/* --- registration ------------------------------------------------------------------------------------------- */

#define ROWS "(Tensor x, Tensor segment_ids, SymInt num_segments) -> Tensor"

static const struct {
    const char *name, *schema;
    boxed *kernel;
} operators[] = {
    {"segment_sum", "segment_sum" ROWS, segment_sum},
    {"segment_min", "segment_min" ROWS, segment_min},
    {"segment_max", "segment_max" ROWS, segment_max},
    {"segment_softmax", "segment_softmax" ROWS, segment_softmax},
    {"segment_spread", "segment_spread(Tensor x, Tensor segment_ids) -> Tensor", segment_spread},
    {"segment_softmax_backward",
     "segment_softmax_backward(Tensor y, Tensor dy, Tensor segment_ids, SymInt num_segments) -> "
     "Tensor",
     segment_softmax_backward},
    {"segment_extreme_backward",
     "segment_extreme_backward(Tensor x, Tensor peak, Tensor dpeak, Tensor segment_ids) -> Tensor",
     segment_extreme_backward},
};

#define OPERATORS (sizeof operators / sizeof *operators)

static bool find_dtypes(void *torch)
{
    for (int t = AT_BOOL; t < AT_OTHER; t++) {
        char name[48];
        int32_t (*number)(void);
        snprintf(name, sizeof name, "aoti_torch_dtype_%s", at_dtype_name((at_dtype)t));
        *(void **)&number = dlsym(torch, name);
        if (number == NULL) return false;
        shim.dtype[t] = number();
    }
    return true;
}

/* False where this torch is older than the shim, or is no library of its own. */
static bool find_shim(void)
{
    void *torch = dlopen("libtorch_cpu.so", RTLD_NOLOAD | RTLD_LAZY);
    if (torch == NULL) torch = dlopen("@rpath/libtorch_cpu.dylib", RTLD_NOLOAD | RTLD_LAZY);
    if (torch == NULL) return false;
    bool found = find_dtypes(torch);
#define X(result, name, parameters)                                                                \
    *(void **)&shim.name = dlsym(torch, #name);                                                    \
    found = found && shim.name != NULL;
    SHIM(X)
#undef X
    if (found) shim.cpu = shim.aoti_torch_device_type_cpu();
    dlclose(torch); /* torch holds itself */
    return found;
}

/* The libraries live as long as the process: without them the operators would be gone. */
static bool register_all(void)
{
    void *schemas, *kernels;
    if (shim.aoti_torch_library_init_fragment("anytensor", __FILE__, __LINE__, &schemas) ||
        shim.aoti_torch_library_init_impl("anytensor", "CPU", __FILE__, __LINE__, &kernels))
        return false;
    for (size_t i = 0; i < OPERATORS; i++)
        if (shim.aoti_torch_library_def(schemas, operators[i].schema) ||
            shim.aoti_torch_library_impl(kernels, operators[i].name, operators[i].kernel))
            return false;
    return true;
}

bool pt_ops_register(void)
{
    static enum { NOT_TRIED, THERE, MISSING } state; /* under the GIL */
    if (state == NOT_TRIED) state = find_shim() && register_all() ? THERE : MISSING;
    return state == THERE;
}
