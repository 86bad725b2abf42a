/* The native backend's table, and its slots that compute: elementwise ops, reductions, segments.
 *
 * A slot looks at shapes, makes the result, and calls one kernel. Slots that differ in a kernel's name alone are
 * stamped. Primitives enter the table from the op table itself: one without a function does not link. */
#include <inttypes.h>

#include "backends/native/native_array.h"
#include "kernels/elementwise.h"
#include "kernels/matmul.h"
#include "kernels/move.h"
#include "kernels/reduce.h"
#include "kernels/segment.h"

/* --- elementwise --- */

/* Stretches views to their common shape and makes an array of it. */
static native_array *broadcast(at_context *cx, at_dtype dtype, ati_host *view, int count)
{
    ati_host common = view[0];
    for (int i = 1; i < count; i++) {
        ati_host before = common;
        if (!ati_k_broadcast_dims(&view[i], &common.ndim, common.dim)) {
            at_error(cx, AT_ESHAPE, "shapes %s and %s do not broadcast together",
                     ati_native_shape_text(&before).text, ati_native_shape_text(&view[i]).text);
            return NULL;
        }
    }
    for (int i = 0; i < count; i++) ati_k_broadcast(&view[i], common.ndim, common.dim);
    return ati_native_new(cx, dtype, common.ndim, common.dim);
}

/* Hands a result out, unless its kernel had no such function for the dtype. */
static at_status give_if(at_context *cx, bool served, at_dtype dtype, native_array *a,
                         at_array *out)
{
    if (a != NULL && !served) {
        ati_native_release(a);
        return at_error(cx, AT_EDTYPE, "not defined for %s", at_dtype_name(dtype));
    }
    return ati_native_give(cx, a, out);
}

static at_status unary(at_context *cx, ati_unary op, at_array x, at_array *out)
{
    const ati_host *from = view_of(x);
    at_dtype dtype = op >= ATI_IS_NAN ? AT_BOOL : from->dtype;
    native_array *a = ati_native_new(cx, dtype, from->ndim, from->dim);
    return give_if(cx, a != NULL && ati_k_unary(op, from, &a->view), from->dtype, a, out);
}

static at_status binary(at_context *cx, ati_binary op, at_array x, at_array y, at_array *out)
{
    ati_host v[] = {*view_of(x), *view_of(y)};
    native_array *a = broadcast(cx, op == ATI_EQUAL ? AT_BOOL : v[0].dtype, v, 2);
    return give_if(cx, a != NULL && ati_k_binary(op, &v[0], &v[1], &a->view), v[0].dtype, a, out);
}

#define UNARIES(X)                                                                                 \
    X(exp, ATI_EXP)                                                                                \
    X(log, ATI_LOG)                                                                                \
    X(sqrt, ATI_SQRT) X(is_nan, ATI_IS_NAN) X(is_inf, ATI_IS_INF) X(is_finite, ATI_IS_FINITE)
#define BINARIES(X)                                                                                \
    X(add, ATI_ADD)                                                                                \
    X(sub, ATI_SUB)                                                                                \
    X(mul, ATI_MUL)                                                                                \
    X(div, ATI_DIV) X(maximum, ATI_MAXIMUM) X(minimum, ATI_MINIMUM) X(equal, ATI_EQUAL)

#define DEFINE(name, op)                                                                           \
    at_status ati_native_##name(at_context *cx, const at_backend *be, at_array x, at_array *out)   \
    {                                                                                              \
        (void)be;                                                                                  \
        return unary(cx, op, x, out);                                                              \
    }
UNARIES(DEFINE)
#undef DEFINE
#define DEFINE(name, op)                                                                           \
    at_status ati_native_##name(at_context *cx, const at_backend *be, at_array x, at_array y,      \
                                at_array *out)                                                     \
    {                                                                                              \
        (void)be;                                                                                  \
        return binary(cx, op, x, y, out);                                                          \
    }
BINARIES(DEFINE)
#undef DEFINE

at_status ati_native_where(at_context *cx, const at_backend *be, at_array condition, at_array x,
                           at_array y, at_array *out)
{
    (void)be;
    ati_host v[] = {*view_of(condition), *view_of(x), *view_of(y)};
    native_array *a = broadcast(cx, v[1].dtype, v, 3);
    if (a != NULL) ati_k_where(&v[0], &v[1], &v[2], &a->view);
    return ati_native_give(cx, a, out);
}

/* --- products of matrices --- */

/* A matrix of a vector: one row of x, one column of y. */
static ati_host as_matrix(const ati_host *v, bool column)
{
    ati_host m = *v;
    if (v->ndim > 1) return m;
    m.ndim = 2;
    m.dim[column] = 1;
    m.stride[column] = 0;
    m.dim[!column] = v->dim[0];
    m.stride[!column] = v->stride[0];
    return m;
}

/* Stretches the axes before the last two to a shape. */
static void stretch_batch(ati_host *v, int ndim, const int64_t *dims)
{
    ati_host batch = *v;
    int64_t dim[] = {v->dim[v->ndim - 2], v->dim[v->ndim - 1]};
    int64_t stride[] = {v->stride[v->ndim - 2], v->stride[v->ndim - 1]};
    batch.ndim -= 2;
    ati_k_broadcast(&batch, ndim, dims);
    for (int k = 0; k < 2; k++) {
        batch.dim[ndim + k] = dim[k];
        batch.stride[ndim + k] = stride[k];
    }
    batch.ndim = ndim + 2;
    *v = batch;
}

/* The wrapper has seen that the shapes go together. */
at_status ati_native_matmul(at_context *cx, const at_backend *be, at_array x, at_array y,
                            at_array *out)
{
    (void)be;
    ati_host a = as_matrix(view_of(x), false), b = as_matrix(view_of(y), true), to = a;
    ati_host batch = b;
    to.ndim -= 2;
    batch.ndim -= 2;
    ati_k_broadcast_dims(&batch, &to.ndim, to.dim);
    stretch_batch(&a, to.ndim, to.dim);
    stretch_batch(&b, to.ndim, to.dim);
    int ndim = to.ndim; /* of the result, where vectors leave no axis */
    if (view_of(x)->ndim > 1) to.dim[ndim++] = a.dim[to.ndim];
    if (view_of(y)->ndim > 1) to.dim[ndim++] = b.dim[to.ndim + 1];
    native_array *made = ati_native_new(cx, a.dtype, ndim, to.dim);
    if (made == NULL) return cx->status;
    to.dim[to.ndim] = a.dim[to.ndim];
    to.dim[to.ndim + 1] = b.dim[to.ndim + 1];
    ati_host view = ati_k_view(made->view.data, a.dtype, to.ndim + 2, to.dim);
    ati_k_matmul(&a, &b, &view);
    return ati_native_give(cx, made, out);
}

/* --- reductions --- */

static at_status axes_mask(at_context *cx, int ndim, at_axes axes, uint32_t *mask)
{
    *mask = axes.count < 0 ? (uint32_t)((UINT64_C(1) << ndim) - 1) : 0;
    for (int i = 0; i < axes.count; i++) {
        int axis = axes.axis[i];
        if (ati_native_axis(cx, ndim, &axis) != AT_OK) return cx->status;
        if (*mask >> axis & 1) return at_error(cx, AT_EVALUE, "axis %d is given twice", axis);
        *mask |= UINT32_C(1) << axis;
    }
    return AT_OK;
}

/* The shape that is left; false where an axis of size 0 goes. */
static bool reduced_shape(const ati_host *x, uint32_t mask, bool keepdims, ati_host *out)
{
    bool some = true;
    out->ndim = 0;
    for (int k = 0; k < x->ndim; k++) {
        bool reduced = mask >> k & 1;
        some = some && !(reduced && x->dim[k] == 0);
        if (!reduced || keepdims) out->dim[out->ndim++] = reduced ? 1 : x->dim[k];
    }
    return some;
}

static at_status reduce(at_context *cx, ati_reduction op, at_array x, at_axes axes, bool keepdims,
                        at_array *out)
{
    const ati_host *from = view_of(x);
    ati_host to;
    uint32_t mask = 0;
    if (axes_mask(cx, from->ndim, axes, &mask) != AT_OK) return cx->status;
    bool some = reduced_shape(from, mask, keepdims, &to);
    if (!some && (op == ATI_REDUCE_MIN || op == ATI_REDUCE_MAX))
        return at_error(cx, AT_EVALUE,
                        "an axis of size 0 has no least or greatest element (shape %s)",
                        ati_native_shape_text(from).text);
    native_array *a = ati_native_new(cx, from->dtype, to.ndim, to.dim);
    if (a != NULL && !ati_k_reduce(op, from, mask, &a->view)) {
        ati_native_release(a);
        return at_error(cx, AT_ENOMEM, "no memory for sums");
    }
    return ati_native_give(cx, a, out);
}

#define REDUCTIONS(X)                                                                              \
    X(sum, ATI_REDUCE_SUM)                                                                         \
    X(prod, ATI_REDUCE_PROD) X(mean, ATI_REDUCE_MEAN) X(min, ATI_REDUCE_MIN) X(max, ATI_REDUCE_MAX)

#define DEFINE(name, op)                                                                           \
    at_status ati_native_##name(at_context *cx, const at_backend *be, at_array x, at_axes axes,    \
                                bool keepdims, at_array *out)                                      \
    {                                                                                              \
        (void)be;                                                                                  \
        return reduce(cx, op, x, axes, keepdims, out);                                             \
    }
REDUCTIONS(DEFINE)
#undef DEFINE

at_status ati_native_cumsum(at_context *cx, const at_backend *be, at_array x, int axis,
                            at_array *out)
{
    (void)be;
    const ati_host *from = view_of(x);
    if (ati_native_axis(cx, from->ndim, &axis) != AT_OK) return cx->status;
    native_array *a = ati_native_new(cx, from->dtype, from->ndim, from->dim);
    if (a != NULL) ati_k_cumsum(from, axis, &a->view);
    return ati_native_give(cx, a, out);
}

/* --- segments --- */

static at_status vector_length(at_context *cx, at_array ids, int64_t *length)
{
    const ati_host *v = view_of(ids);
    if (v->ndim != 1)
        return at_error(cx, AT_ESHAPE, "expected a vector of integers, found shape %s",
                        ati_native_shape_text(v).text);
    *length = v->dim[0];
    return AT_OK;
}

/* The kernels trust lengths, so they are compared here once more, whoever has called. */
static at_status check_rows(at_context *cx, at_array x, at_array ids, int64_t *length)
{
    const ati_host *rows = view_of(x);
    if (vector_length(cx, ids, length) != AT_OK) return cx->status;
    if (rows->ndim == 0 || rows->dim[0] != *length)
        return at_error(cx, AT_ESHAPE, "expected one id per row, found shapes %s and %s",
                        ati_native_shape_text(rows).text, ati_native_shape_text(view_of(ids)).text);
    return AT_OK;
}

static at_status fold(at_context *cx, ati_fold op, at_array x, at_array ids, at_dim segments,
                      at_array *out)
{
    const ati_host *from = view_of(x);
    ati_host to = *from;
    int64_t length = 0;
    if (check_rows(cx, x, ids, &length) != AT_OK) return cx->status;
    if (ati_native_size(cx, segments, &to.dim[0]) != AT_OK) return cx->status;
    if (op == ATI_FOLD_SUM && to.dtype == AT_BOOL) to.dtype = AT_INT64;
    native_array *a = ati_native_new(cx, to.dtype, to.ndim, to.dim);
    if (a != NULL && !ati_k_segment_fold(op, from, view_of(ids), &a->view)) {
        ati_native_release(a);
        return at_error(cx, AT_ENOMEM, "no memory for sums");
    }
    return ati_native_give(cx, a, out);
}

#define SLOTS(X)                                                                                   \
    X(slot_sum, ATI_FOLD_SUM)                                                                      \
    X(slot_min, ATI_FOLD_MIN) X(slot_max, ATI_FOLD_MAX) X(slot_prod, ATI_FOLD_PROD)
#define SEGMENTS(X)                                                                                \
    X(segment_sum, ATI_FOLD_SUM) X(segment_min, ATI_FOLD_MIN) X(segment_max, ATI_FOLD_MAX)

#define DEFINE(name, op)                                                                           \
    at_status ati_native_##name(at_context *cx, const at_backend *be, at_array x,                  \
                                at_array slot_ids, at_dim slots, at_array *out)                    \
    {                                                                                              \
        (void)be;                                                                                  \
        return fold(cx, op, x, slot_ids, slots, out);                                              \
    }
SLOTS(DEFINE)
#undef DEFINE
#define DEFINE(name, op)                                                                           \
    at_status ati_native_##name(at_context *cx, const at_backend *be, at_array x,                  \
                                at_array segment_ids, at_dim num_segments, bool sorted,            \
                                at_array *out)                                                     \
    {                                                                                              \
        (void)be;                                                                                  \
        (void)sorted; /* the kernels look */                                                       \
        return fold(cx, op, x, segment_ids, num_segments, out);                                    \
    }
SEGMENTS(DEFINE)
#undef DEFINE

static at_status arg(at_context *cx, ati_fold op, at_array x, at_array ids, at_dim segments,
                     at_array *out)
{
    ati_host to = *view_of(x);
    int64_t length = 0;
    if (!ati_k_rows_are_whole(view_of(x))) return AT_DECLINE;
    if (check_rows(cx, x, ids, &length) != AT_OK ||
        ati_native_size(cx, segments, &to.dim[0]) != AT_OK)
        return cx->status;
    native_array *a = ati_native_new(cx, AT_INT64, to.ndim, to.dim);
    if (a != NULL && !ati_k_segment_arg(op, view_of(x), view_of(ids), &a->view)) {
        ati_native_release(a);
        return at_error(cx, AT_ENOMEM, "no memory for extremes");
    }
    return ati_native_give(cx, a, out);
}

#define ARGS(X) X(segment_argmin, ATI_FOLD_MIN) X(segment_argmax, ATI_FOLD_MAX)
#define DEFINE(name, op)                                                                           \
    at_status ati_native_##name(at_context *cx, const at_backend *be, at_array x,                  \
                                at_array segment_ids, at_dim num_segments, bool sorted,            \
                                at_array *out)                                                     \
    {                                                                                              \
        (void)be;                                                                                  \
        (void)sorted;                                                                              \
        return arg(cx, op, x, segment_ids, num_segments, out);                                     \
    }
ARGS(DEFINE)
#undef DEFINE

/* Half types multiply in float32, bool in integers: the formula casts. */
at_status ati_native_segment_prod(at_context *cx, const at_backend *be, at_array x,
                                  at_array segment_ids, at_dim num_segments, bool sorted,
                                  at_array *out)
{
    (void)be;
    (void)sorted;
    at_dtype t = view_of(x)->dtype;
    if (t == AT_BOOL || t == AT_FLOAT16 || t == AT_BFLOAT16) return AT_DECLINE;
    return fold(cx, ATI_FOLD_PROD, x, segment_ids, num_segments, out);
}

/* Kernels that give a float row per row, or per segment; the formula has what they do not take. */
typedef bool row_kernel(const ati_host *x, const ati_host *ids, int64_t n, ati_host *out);

static bool mean_kernel(const ati_host *x, const ati_host *ids, int64_t n, ati_host *out)
{
    (void)n;
    return ati_k_segment_mean(x, ids, out);
}

static at_status rows_kernel(at_context *cx, row_kernel *kernel, at_array x, at_array ids,
                             at_dim segments, bool reduces, at_array *out)
{
    ati_host to = *view_of(x);
    int64_t length = 0, n = 0;
    if (to.dtype < AT_FLOAT16) return AT_DECLINE;
    if (check_rows(cx, x, ids, &length) != AT_OK || ati_native_size(cx, segments, &n) != AT_OK)
        return cx->status;
    if (reduces) to.dim[0] = n;
    native_array *a = ati_native_new(cx, to.dtype, to.ndim, to.dim);
    if (a != NULL && !kernel(view_of(x), view_of(ids), n, &a->view)) {
        ati_native_release(a);
        return at_error(cx, AT_ENOMEM, "no memory for sums");
    }
    return ati_native_give(cx, a, out);
}

#define ROWS(X)                                                                                    \
    X(segment_mean, mean_kernel, true)                                                             \
    X(segment_softmax, ati_k_segment_softmax, false)                                               \
    X(segment_normalize, ati_k_segment_normalize, false)

#define DEFINE(name, kernel, reduces)                                                              \
    at_status ati_native_##name(at_context *cx, const at_backend *be, at_array x,                  \
                                at_array segment_ids, at_dim num_segments, bool sorted,            \
                                at_array *out)                                                     \
    {                                                                                              \
        (void)be;                                                                                  \
        (void)sorted; /* the kernels look */                                                       \
        return rows_kernel(cx, kernel, x, segment_ids, num_segments, reduces, out);                \
    }
ROWS(DEFINE)
#undef DEFINE

static at_status or_constant(at_context *cx, ati_fold op, at_array x, at_array ids, at_dim segments,
                             at_array constant, at_array *out)
{
    at_scalar place;
    ati_host to = *view_of(x), value = ati_native_value(constant, &place);
    int64_t length = 0;
    if (check_rows(cx, x, ids, &length) != AT_OK ||
        ati_native_size(cx, segments, &to.dim[0]) != AT_OK)
        return cx->status;
    if (value.ndim > 0) return AT_DECLINE;
    native_array *a = ati_native_new(cx, to.dtype, to.ndim, to.dim);
    if (a != NULL && !ati_k_segment_or_constant(op, view_of(x), view_of(ids), &value, &a->view)) {
        ati_native_release(a);
        return at_error(cx, AT_ENOMEM, "no memory for counts");
    }
    return ati_native_give(cx, a, out);
}

#define OR_CONSTANT(X)                                                                             \
    X(segment_min_or_constant, ATI_FOLD_MIN) X(segment_max_or_constant, ATI_FOLD_MAX)

#define DEFINE(name, op)                                                                           \
    at_status ati_native_##name(at_context *cx, const at_backend *be, at_array x,                  \
                                at_array segment_ids, at_dim num_segments, at_array constant,      \
                                bool sorted, at_array *out)                                        \
    {                                                                                              \
        (void)be;                                                                                  \
        (void)sorted;                                                                              \
        return or_constant(cx, op, x, segment_ids, num_segments, constant, out);                   \
    }
OR_CONSTANT(DEFINE)
#undef DEFINE

at_status ati_native_slot_count(at_context *cx, const at_backend *be, at_array ids, at_dim n,
                                at_array *out)
{
    (void)be;
    int64_t length = 0, slots = 0;
    if (vector_length(cx, ids, &length) != AT_OK || ati_native_size(cx, n, &slots) != AT_OK)
        return cx->status;
    native_array *a = ati_native_new(cx, AT_INT64, 1, &slots);
    if (a != NULL && !ati_k_segment_count(view_of(ids), &a->view)) {
        ati_native_release(a);
        return at_error(cx, AT_ENOMEM, "no memory for counts");
    }
    return ati_native_give(cx, a, out);
}

at_status ati_native_segment_count(at_context *cx, const at_backend *be, at_array segment_ids,
                                   at_dim num_segments, bool sorted, at_array *out)
{
    (void)sorted;
    at_array counts = AT_NIL;
    at_status status = ati_native_slot_count(cx, be, segment_ids, num_segments, &counts);
    if (status != AT_OK) return status;
    status = ati_native_astype(cx, be, counts, AT_FLOAT64, out);
    ati_native_release(counts.p);
    return status;
}

at_status ati_native_slot_ids(at_context *cx, const at_backend *be, at_array ids, at_dim n,
                              at_array *out)
{
    (void)be;
    int64_t length = 0, slots = 0;
    if (vector_length(cx, ids, &length) != AT_OK || ati_native_size(cx, n, &slots) != AT_OK)
        return cx->status;
    native_array *a = ati_native_new(cx, AT_INT64, 1, &length);
    if (a != NULL) ati_k_slot_ids(view_of(ids), slots, &a->view);
    return ati_native_give(cx, a, out);
}

at_status ati_native_slot_kept(at_context *cx, const at_backend *be, at_array ids, at_dim n,
                               at_array *out)
{
    (void)be;
    int64_t length = 0, slots = 0;
    if (vector_length(cx, ids, &length) != AT_OK || ati_native_size(cx, n, &slots) != AT_OK)
        return cx->status;
    native_array *a = ati_native_new(cx, AT_BOOL, 1, &length);
    if (a != NULL) ati_k_slot_kept(view_of(ids), slots, &a->view);
    return ati_native_give(cx, a, out);
}

at_status ati_native_partition_ids(at_context *cx, const at_backend *be, at_array partitions,
                                   at_dim total_length, at_array *out)
{
    (void)be;
    int64_t parts = 0, total = 0;
    if (vector_length(cx, partitions, &parts) != AT_OK ||
        ati_native_size(cx, total_length, &total) != AT_OK)
        return cx->status;
    native_array *a = ati_native_new(cx, AT_INT64, 1, &total);
    if (a != NULL) ati_k_partition_ids(view_of(partitions), &a->view);
    return ati_native_give(cx, a, out);
}

/* --- the table --- */

static at_status native_dtype(at_context *cx, at_array a, at_dtype *out)
{
    (void)cx;
    *out = view_of(a)->dtype;
    return AT_OK;
}

static at_status native_shape(at_context *cx, at_array a, at_shape *out)
{
    (void)cx;
    const ati_host *v = view_of(a);
    out->ndim = v->ndim;
    for (int k = 0; k < v->ndim; k++) out->dim[k] = AT_DIM(v->dim[k]);
    return AT_OK;
}

static at_dtype default_dtype(const at_backend *be, char kind)
{
    (void)be;
    return kind == 'i' ? AT_INT64 : AT_FLOAT64;
}

static at_status adopt(at_context *cx, const at_backend *be, at_array a, at_array like,
                       at_array *out)
{
    (void)like;
    if (a.be != be)
        return at_error(cx, AT_EUNSUPPORTED, "native arrays cannot be made from arrays of %s",
                        a.be->name);
    ati_native_retain(a.p);
    return ati_native_give(cx, a.p, out);
}

static at_status peek(at_context *cx, at_array a, bool needed, int64_t *sum, int64_t *least,
                      bool *known)
{
    (void)needed;
    (void)cx;
    ati_host v = *view_of(a);
    if (v.ndim == 0) { /* a vector of one */
        v.dim[0] = 1;
        v.stride[0] = 0;
    }
    *known = v.ndim <= 1 && v.dtype >= AT_INT8 && v.dtype <= AT_UINT64;
    if (*known) ati_k_counts(&v, sum, least);
    return AT_OK;
}

#define SLOT_PRIMITIVE(name) .name = ati_native_##name,
#define SLOT_COMPOSITE(name)
#define OVERRIDE(name, op) .name = ati_native_##name,
#define OVERRIDE_ROWS(name, kernel, reduces) .name = ati_native_##name,

static const at_backend native_backend = {
    .name = "native",
    .traits = AT_JOINS | AT_WIDE_SUMS,
    .retain = ati_native_retain,
    .release = ati_native_release,
    .dtype = native_dtype,
    .shape = native_shape,
    .default_dtype = default_dtype,
    .adopt = adopt,
    .from_scalar = ati_native_from_scalar,
    .to_size = ati_native_to_size,
    .peek = peek,
#define OP(kind, name, level, ...) SLOT_##level(name)
#include "anytensor/ops.def"
    SEGMENTS(OVERRIDE) OR_CONSTANT(OVERRIDE) ROWS(OVERRIDE_ROWS).segment_count =
        ati_native_segment_count,
    .segment_prod = ati_native_segment_prod,
    ARGS(OVERRIDE).partition_ids = ati_native_partition_ids,
};

const at_backend *at_native(void) { return &native_backend; }
