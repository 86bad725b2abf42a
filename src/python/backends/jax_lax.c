/* The primitives in lax, as the traces of the jitted functions record them.
 *
 * lax is strict: equal shapes, equal dtypes. Operands come with equal dtypes; shapes are brought together here, since the
 * broadcasting of jax.numpy takes several times as long to trace. Slot ids lie in [0, slots), so gathers and
 * scatters promise that. */
#include "jax_state.h"

#include "core/dtype.h"

/* --- shapes ---------------------------------------------------------------------------------------------------- */

static PyObject *shape_of(pa_frame *f, const at_backend *be, PyObject *x)
{
    return f->failed || x == NULL ? NULL
                                  : pa_keep(f, PyObject_GetAttr(x, CONSTANT(state_of(be), shape)));
}

/* (from, from + 1, ..., to - 1) */
static PyObject *axes_between(pa_frame *f, Py_ssize_t from, Py_ssize_t to)
{
    PyObject *axes = pa_keep(f, PyTuple_New(to > from ? to - from : 0));
    for (Py_ssize_t k = from; axes != NULL && k < to; k++)
        PyTuple_SET_ITEM(axes, k - from, PyLong_FromSsize_t(k));
    return axes;
}

/* x stretched to a shape. */
static PyObject *stretch(pa_frame *f, const at_backend *be, PyObject *x, PyObject *shape)
{
    PyObject *own = shape_of(f, be, x);
    if (own == NULL || shape == NULL) return NULL;
    int same = PyObject_RichCompareBool(own, shape, Py_EQ);
    if (same != 0) return same > 0 ? x : pa_keep(f, NULL);
    Py_ssize_t ndim = PyTuple_GET_SIZE(shape);
    return pa_call(f, FN(be, broadcast_in_dim), x, shape,
                   axes_between(f, ndim - PyTuple_GET_SIZE(own), ndim));
}

/* The shape that operands have together. */
static PyObject *common_shape(pa_frame *f, const at_backend *be, int count, PyObject *const *x)
{
    PyObject *shape = shape_of(f, be, x[0]);
    for (int i = 1; i < count && shape != NULL; i++) {
        PyObject *other = shape_of(f, be, x[i]);
        int same = other == NULL ? -1 : PyObject_RichCompareBool(shape, other, Py_EQ);
        if (same < 0) return pa_keep(f, NULL);
        if (!same) shape = pa_call(f, FN(be, broadcast_shapes), shape, other);
    }
    return shape;
}

static PyObject *dtype_object(pa_frame *f, const at_backend *be, at_dtype t)
{
    return pj_dtype(f, state_of(be), t);
}

static PyObject *cast(pa_frame *f, const at_backend *be, PyObject *x, at_dtype t)
{
    return pa_call(f, FN(be, cast), x, dtype_object(f, be, t));
}

/* A number as a 0-d array. */
static PyObject *number(pa_frame *f, const at_backend *be, double value, at_dtype t)
{
    at_scalar place = {.kind = AT_WEAK_FLOAT, .d = value};
    return pj_scalar(f, be, (at_array){&place, &at_weak}, t);
}

static PyObject *integer(pa_frame *f, const at_backend *be, int64_t value, at_dtype t)
{
    at_scalar place = {.kind = AT_WEAK_INT, .i = value, .d = (double)value};
    return pj_scalar(f, be, (at_array){&place, &at_weak}, t);
}

/* --- elementwise ------------------------------------------------------------------------------------------------ */

#define UNARY_SLOT(name)                                                                           \
    at_status pj_lax_##name(at_context *cx, const at_backend *be, at_array x, at_array *out)       \
    {                                                                                              \
        pa_frame f;                                                                                \
        pa_open(&f);                                                                               \
        return pa_finish(&f, cx, be, pa_call(&f, FN(be, name), x.p), out);                         \
    }

#define BINARY_SLOT(name)                                                                          \
    at_status pj_lax_##name(at_context *cx, const at_backend *be, at_array x, at_array y,          \
                            at_array *out)                                                         \
    {                                                                                              \
        pa_frame f;                                                                                \
        pa_open(&f);                                                                               \
        PyObject *shape = common_shape(&f, be, 2, (PyObject *[]){x.p, y.p});                       \
        PyObject *left = stretch(&f, be, x.p, shape), *right = stretch(&f, be, y.p, shape);        \
        return pa_finish(&f, cx, be, pa_call(&f, FN(be, name), left, right), out);                 \
    }

UNARY_SLOT(exp)
UNARY_SLOT(log)
UNARY_SLOT(sqrt)
UNARY_SLOT(stop_gradient)
BINARY_SLOT(add)
BINARY_SLOT(sub)
BINARY_SLOT(mul)
BINARY_SLOT(div)
BINARY_SLOT(equal)
BINARY_SLOT(maximum)
BINARY_SLOT(minimum)

/* Integers are equal to themselves, so what they answer is made of them, and lies where they lie. */
at_status pj_lax_is_nan(at_context *cx, const at_backend *be, at_array x, at_array *out)
{
    pa_frame f;
    pa_open(&f);
    return pa_finish(&f, cx, be, pa_call(&f, FN(be, ne), x.p, x.p), out);
}

at_status pj_lax_is_inf(at_context *cx, const at_backend *be, at_array x, at_array *out)
{
    at_dtype t = AT_OTHER;
    if (pj_read_dtype(cx, x, &t) != AT_OK) return cx->status;
    if (!ati_is_float(t) && t != AT_OTHER) return pj_lax_is_nan(cx, be, x, out);
    pa_frame f;
    pa_open(&f);
    PyObject *size = pa_call(&f, FN(be, abs), x.p); /* of complex numbers a real one */
    if (t == AT_OTHER && size != NULL && pj_read_dtype(cx, (at_array){size, be}, &t) != AT_OK)
        size = pa_keep(&f, NULL);
    PyObject *infinity = t == AT_OTHER ? NULL : number(&f, be, Py_HUGE_VAL, t);
    infinity = stretch(&f, be, infinity, shape_of(&f, be, x.p));
    return pa_finish(&f, cx, be, pa_call(&f, FN(be, equal), size, infinity), out);
}

at_status pj_lax_is_finite(at_context *cx, const at_backend *be, at_array x, at_array *out)
{
    at_dtype t = AT_OTHER;
    if (pj_read_dtype(cx, x, &t) != AT_OK) return cx->status;
    pa_frame f;
    pa_open(&f);
    PyObject *y = ati_is_float(t) || t == AT_OTHER ? pa_call(&f, FN(be, is_finite), x.p)
                                                   : pa_call(&f, FN(be, equal), x.p, x.p);
    return pa_finish(&f, cx, be, y, out);
}

at_status pj_lax_where(at_context *cx, const at_backend *be, at_array condition, at_array x,
                       at_array y, at_array *out)
{
    pa_frame f;
    pa_open(&f);
    PyObject *shape = common_shape(&f, be, 3, (PyObject *[]){condition.p, x.p, y.p});
    PyObject *mask = stretch(&f, be, condition.p, shape);
    PyObject *left = stretch(&f, be, x.p, shape), *right = stretch(&f, be, y.p, shape);
    return pa_finish(&f, cx, be, pa_call(&f, FN(be, select), mask, left, right), out);
}

/* --- reductions -------------------------------------------------------------------------------------------------- */

#define REDUCE_SLOT(name)                                                                          \
    at_status pj_lax_##name(at_context *cx, const at_backend *be, at_array x, at_axes axes,        \
                            bool keepdims, at_array *out)                                          \
    {                                                                                              \
        pa_frame f;                                                                                \
        pa_open(&f);                                                                               \
        PyObject *y = pa_call_named(&f, FN(be, name), CONSTANT(state_of(be), named_axis_keepdims), \
                                    x.p, pa_axes(&f, &axes, -1), keepdims ? Py_True : Py_False);   \
        return pa_finish(&f, cx, be, y, out);                                                      \
    }

REDUCE_SLOT(sum)
REDUCE_SLOT(prod)
REDUCE_SLOT(mean)
REDUCE_SLOT(min)
REDUCE_SLOT(max)

at_status pj_lax_cumsum(at_context *cx, const at_backend *be, at_array x, int axis, at_array *out)
{
    pa_frame f;
    pa_open(&f);
    return pa_finish(&f, cx, be, pa_call(&f, FN(be, cumsum), x.p, pa_int(&f, axis)), out);
}

/* --- shape and layout ----------------------------------------------------------------------------------------------- */

at_status pj_lax_reshape(at_context *cx, const at_backend *be, at_array x, const at_shape *shape,
                         at_array *out)
{
    pa_frame f;
    pa_open(&f);
    return pa_finish(&f, cx, be, pa_call(&f, FN(be, reshape), x.p, pa_shape(&f, shape)), out);
}

at_status pj_lax_transpose(at_context *cx, const at_backend *be, at_array x, at_axes axes,
                           at_array *out)
{
    pa_frame f;
    pa_open(&f);
    return pa_finish(&f, cx, be, pa_call(&f, FN(be, transpose), x.p, pa_axes(&f, &axes, -1)), out);
}

/* Bounds that are numbers within the axis are lax's own; what is symbolic is left to JAX's indexing, which clamps. */
at_status pj_lax_slice(at_context *cx, const at_backend *be, at_array x, at_dim start, at_dim stop,
                       int axis, at_array *out)
{
    at_shape shape;
    if (pj_read_shape(cx, x, &shape) != AT_OK) return cx->status;
    bool plain = at_is_nil(shape.dim[axis].sym) && at_is_nil(start.sym) && at_is_nil(stop.sym);
    for (int k = 0; k < shape.ndim; k++) at_release(shape.dim[k].sym);
    pa_frame f;
    pa_open(&f);
    PyObject *y = NULL;
    if (plain) {
        y = pa_call(&f, FN(be, slice_in_dim), x.p, pa_size(&f, start), pa_size(&f, stop),
                    pa_int(&f, 1), pa_int(&f, axis));
    } else {
        PyObject *key = pa_part(&f, axis, start, stop);
        y = key == NULL ? NULL : pa_keep(&f, PyObject_GetItem(x.p, key));
    }
    return pa_finish(&f, cx, be, y, out);
}

at_status pj_lax_matmul(at_context *cx, const at_backend *be, at_array x, at_array y, at_array *out)
{
    pa_frame f;
    pa_open(&f);
    return pa_finish(&f, cx, be, pa_call(&f, FN(be, matmul), x.p, y.p), out);
}

at_status pj_lax_concatenate(at_context *cx, const at_backend *be, at_list arrays, int axis,
                             at_array *out)
{
    pa_frame f;
    pa_open(&f);
    PyObject *list = pa_keep(&f, PyList_New(arrays.count));
    for (int i = 0; list != NULL && i < arrays.count; i++)
        PyList_SET_ITEM(list, i, Py_NewRef((PyObject *)arrays.array[i].p));
    PyObject *on = axis == AT_NO_AXIS ? Py_None : pa_int(&f, axis);
    return pa_finish(&f, cx, be, pa_call(&f, FN(be, concatenate), list, on), out);
}

at_status pj_lax_astype(at_context *cx, const at_backend *be, at_array x, at_dtype dtype,
                        at_array *out)
{
    at_dtype t = AT_OTHER;
    if (pj_read_dtype(cx, x, &t) != AT_OK) return cx->status;
    pa_frame f;
    pa_open(&f);
    return pa_finish(&f, cx, be, t == dtype ? x.p : cast(&f, be, x.p, dtype), out);
}

/* Ids or indices of any width as integers that gathers take, without wrapping: what lies outside [low, n] comes to lie
 * at one of its ends. n is below 2**31, and 64-bit indices stay 64-bit. */
static PyObject *to_index(pa_frame *f, const at_backend *be, at_array ids, at_dim n, int low)
{
    at_dtype t = AT_OTHER;
    at_context cx;
    at_context_init(&cx, be);
    if (f->failed || pj_read_dtype(&cx, ids, &t) != AT_OK) return pa_keep(f, NULL);
    if (at_dtype_size(t) < 4) return cast(f, be, ids.p, AT_INT32);
    if (t == AT_INT32) return ids.p;
    if (t == AT_UINT32 || t == AT_UINT64) {
        PyObject *top = integer(f, be, INT32_MAX, t);
        PyObject *near =
            pa_call(f, FN(be, minimum), ids.p, stretch(f, be, top, shape_of(f, be, ids.p)));
        return cast(f, be, near, AT_INT32);
    }
    at_array size = at_is_nil(n.sym) ? AT_NIL : n.sym;
    PyObject *high = at_is_nil(size) ? integer(f, be, n.n, t) : pj_scalar(f, be, size, t);
    return cast(f, be, pa_call(f, FN(be, clamp), integer(f, be, low, t), ids.p, high), AT_INT32);
}

/* A size as a 0-d int32. */
static PyObject *size_value(pa_frame *f, const at_backend *be, at_dim n)
{
    return at_is_nil(n.sym) ? integer(f, be, n.n, AT_INT32) : pj_scalar(f, be, n.sym, AT_INT32);
}

/* Out of range is NaN, or 0; negative indices count from the end. */
at_status pj_lax_take(at_context *cx, const at_backend *be, at_array x, at_array indices, int axis,
                      at_array *out)
{
    const jax_state *st = state_of(be);
    at_shape shape;
    at_dtype t = AT_OTHER;
    if (pj_read_dtype(cx, x, &t) != AT_OK || pj_read_shape(cx, x, &shape) != AT_OK)
        return cx->status;
    pa_frame f;
    pa_open(&f);
    PyObject *on = axis == AT_NO_AXIS ? Py_None : pa_int(&f, axis);
    at_dim n = AT_DIM(INT32_MAX);
    int k = axis < 0 ? axis + shape.ndim : axis;
    if (axis != AT_NO_AXIS && k >= 0 && k < shape.ndim && at_is_nil(shape.dim[k].sym))
        n = shape.dim[k];
    PyObject *index = to_index(&f, be, indices, n, n.n < INT32_MAX ? (int)-n.n - 1 : INT32_MIN);
    /* None stands for NaN; a NaN of our own, a static argument there, would equal no key of JAX's caches */
    PyObject *gap = ati_is_float(t) ? Py_None : CONSTANT(st, zero);
    PyObject *y = pa_call_named(&f, st->fn[FN_take], CONSTANT(st, named_axis_mode_fill), x.p, index,
                                on, CONSTANT(st, fill), gap);
    for (int i = 0; i < shape.ndim; i++) at_release(shape.dim[i].sym);
    return pa_finish(&f, cx, be, y, out);
}

at_status pj_lax_head(at_context *cx, const at_backend *be, at_array x, at_dim n, at_array *out)
{
    pa_frame f;
    pa_open(&f);
    PyObject *zero = CONSTANT(state_of(be), zero);
    return pa_finish(&f, cx, be, pa_call(&f, FN(be, slice_in_dim), x.p, zero, pa_size(&f, n)), out);
}

/* --- slots ------------------------------------------------------------------------------------------------------------ */

at_status pj_lax_slot_ids(at_context *cx, const at_backend *be, at_array ids, at_dim n,
                          at_array *out)
{
    pa_frame f;
    pa_open(&f);
    PyObject *index = to_index(&f, be, ids, n, -1), *shape = shape_of(&f, be, index);
    PyObject *zero = integer(&f, be, 0, AT_INT32);
    PyObject *after = stretch(&f, be, size_value(&f, be, n), shape);
    PyObject *positive = pa_call(&f, FN(be, ge), index, stretch(&f, be, zero, shape));
    PyObject *below = pa_call(&f, FN(be, lt), index, after);
    PyObject *valid = pa_call(&f, FN(be, bitwise_and), positive, below);
    return pa_finish(&f, cx, be, pa_call(&f, FN(be, select), valid, index, after), out);
}

at_status pj_lax_slot_kept(at_context *cx, const at_backend *be, at_array ids, at_dim n,
                           at_array *out)
{
    pa_frame f;
    pa_open(&f);
    PyObject *after = stretch(&f, be, size_value(&f, be, n), shape_of(&f, be, ids.p));
    return pa_finish(&f, cx, be, pa_call(&f, FN(be, lt), ids.p, after), out);
}

/* (slots, *x.shape[1:]) */
static PyObject *rows_shape(pa_frame *f, const at_backend *be, PyObject *x, PyObject *slots)
{
    PyObject *own = shape_of(f, be, x);
    PyObject *shape =
        own == NULL || slots == NULL ? NULL : pa_keep(f, PyTuple_New(PyTuple_GET_SIZE(own)));
    for (Py_ssize_t k = 0; shape != NULL && k < PyTuple_GET_SIZE(own); k++)
        PyTuple_SET_ITEM(shape, k, Py_NewRef(k == 0 ? slots : PyTuple_GET_ITEM(own, k)));
    return shape;
}

/* Ids as lax wants them: one index vector of length 1 per row. */
static PyObject *column(pa_frame *f, const at_backend *be, PyObject *ids)
{
    return pa_call(f, FN(be, expand_dims), ids, CONSTANT(state_of(be), first));
}

static PyObject *scatter(pa_frame *f, const at_backend *be, int fn, PyObject *start, PyObject *ids,
                         PyObject *rows)
{
    const jax_state *st = state_of(be);
    PyObject *shape = shape_of(f, be, rows);
    if (shape == NULL) return NULL;
    PyObject *numbers =
        pa_call(f, st->fn[FN_ScatterDimensionNumbers], axes_between(f, 1, PyTuple_GET_SIZE(shape)),
                CONSTANT(st, zeroth), CONSTANT(st, zeroth));
    return pa_call_named(f, st->fn[fn], CONSTANT(st, named_mode), start, column(f, be, ids), rows,
                         numbers, st->fn[FN_in_bounds]);
}

static PyObject *filled(pa_frame *f, const at_backend *be, PyObject *shape, PyObject *value,
                        at_dtype t)
{
    return pa_call(f, FN(be, full), shape, value, dtype_object(f, be, t));
}

at_status pj_lax_slot_count(at_context *cx, const at_backend *be, at_array ids, at_dim n,
                            at_array *out)
{
    pa_frame f;
    pa_open(&f);
    at_dtype t = be->default_dtype(be, 'i');
    PyObject *shape = shape_of(&f, be, ids.p);
    PyObject *ones = filled(&f, be, shape, integer(&f, be, 1, t), t);
    PyObject *zeros =
        filled(&f, be, rows_shape(&f, be, ids.p, pa_size(&f, n)), integer(&f, be, 0, t), t);
    return pa_finish(&f, cx, be, scatter(&f, be, FN_scatter_add, zeros, ids.p, ones), out);
}

/* --- sums ---------------------------------------------------------------------------------------------------------------- */

/* Rows per segment, on average, from which float32 is added in blocks; and how many rows of a block are then added one
 * after the other: adding 1,024 equal numbers already loses two digits, always in the same direction. */
#define LONG_SEGMENT 1024
#define BLOCK 64

/* Into how many blocks rows are cut before they are added: more than one where segments are long on average. The
 * partial sums take no more memory than the rows. */
static int64_t blocks_for(at_dtype t, at_dim rows, at_dim slots)
{
    if (t != AT_FLOAT32 || !at_is_nil(rows.sym) || !at_is_nil(slots.sym)) return 1;
    if (rows.n / LONG_SEGMENT <= slots.n) return 1;
    int64_t length = slots.n > BLOCK ? slots.n : BLOCK;
    return rows.n / length;
}

static PyObject *sum_into(pa_frame *f, const at_backend *be, PyObject *rows, PyObject *ids,
                          PyObject *slots, at_dtype t)
{
    PyObject *zeros = filled(f, be, rows_shape(f, be, rows, slots), number(f, be, 0, t), t);
    return scatter(f, be, FN_scatter_add, zeros, ids, rows);
}

/* Row r goes to slot id + slots * (r mod blocks): every block sees each blocks-th row. */
static PyObject *ids_by_block(pa_frame *up, const at_backend *be, PyObject *ids, int64_t rows,
                              int64_t slots, int64_t blocks)
{
    pa_frame frame, *f = &frame; /* its own: the sum of a slot needs nearly all places of one */
    pa_open_in(f, up);
    PyObject *shape = shape_of(f, be, ids);
    PyObject *length = pa_int(f, rows / blocks + 1), *width = pa_int(f, blocks);
    PyObject *grid =
        length == NULL || width == NULL ? NULL : pa_keep(f, PyTuple_Pack(2, length, width));
    PyObject *line = width == NULL ? NULL : pa_keep(f, PyTuple_Pack(1, width));
    PyObject *block = pa_call(f, FN(be, iota), dtype_object(f, be, AT_INT32), width);
    PyObject *step = stretch(f, be, integer(f, be, slots, AT_INT32), line);
    PyObject *offset = pa_call(f, FN(be, mul), block, step);
    PyObject *all =
        pa_call(f, FN(be, broadcast_in_dim), offset, grid, CONSTANT(state_of(be), first));
    PyObject *flat = pa_call(f, FN(be, reshape), all, CONSTANT(state_of(be), flat_shape));
    PyObject *own = shape == NULL
                        ? NULL
                        : pa_call(f, FN(be, slice_in_dim), flat, CONSTANT(state_of(be), zero),
                                  PyTuple_GET_ITEM(shape, 0));
    return pa_give(up, f, pa_call(f, FN(be, add), ids, own));
}

/* One round of it: the first half of the blocks and the second half are added; an odd one comes along. */
static PyObject *halved(const at_backend *be, PyObject *sums, int64_t slots, int64_t blocks)
{
    pa_frame f;
    pa_open(&f);
    int64_t half = blocks / 2;
    PyObject *zero = CONSTANT(state_of(be), zero), *slice = FN(be, slice_in_dim);
    PyObject *middle = pa_int(&f, half * slots), *end = pa_int(&f, 2 * half * slots);
    PyObject *low = pa_call(&f, slice, sums, zero, middle);
    PyObject *y = pa_call(&f, FN(be, add), low, pa_call(&f, slice, sums, middle, end));
    if (blocks % 2 != 0) {
        PyObject *rest = pa_call(&f, slice, sums, end, pa_int(&f, blocks * slots));
        PyObject *both = y == NULL || rest == NULL ? NULL : pa_keep(&f, PyList_New(2));
        if (both != NULL) {
            PyList_SET_ITEM(both, 0, Py_NewRef(y));
            PyList_SET_ITEM(both, 1, Py_NewRef(rest));
        }
        y = pa_call(&f, FN(be, concatenate), both);
    }
    return pa_take(&f, y);
}

/* Sums of the blocks, two and two: (blocks * slots, ...) to (slots, ...). A frame has no places for all rounds. */
static PyObject *add_blocks(pa_frame *f, const at_backend *be, PyObject *sums, int64_t slots,
                            int64_t blocks)
{
    Py_XINCREF(sums);
    for (; blocks > 1 && sums != NULL; blocks = (blocks + 1) / 2)
        Py_SETREF(sums, halved(be, sums, slots, blocks));
    return pa_keep(f, sums);
}

/* Half types are added in float32; long segments of float32 in blocks, since XLA adds one row after the other. */
at_status pj_lax_slot_sum(at_context *cx, const at_backend *be, at_array x, at_array slot_ids,
                          at_dim slots, at_array *out)
{
    at_shape shape;
    at_dtype t = AT_OTHER;
    if (pj_read_dtype(cx, x, &t) != AT_OK || pj_read_shape(cx, x, &shape) != AT_OK)
        return cx->status;
    at_dtype sums = ati_is_half(t) ? AT_FLOAT32 : t;
    pa_frame f;
    pa_open(&f);
    int64_t blocks = blocks_for(sums, shape.dim[0], slots);
    PyObject *rows = sums == t ? x.p : cast(&f, be, x.p, sums), *y;
    if (blocks == 1) {
        y = sum_into(&f, be, rows, slot_ids.p, pa_size(&f, slots), sums);
    } else {
        PyObject *ids = ids_by_block(&f, be, slot_ids.p, shape.dim[0].n, slots.n, blocks);
        y = sum_into(&f, be, rows, ids, pa_int(&f, slots.n * blocks), sums);
        y = add_blocks(&f, be, y, slots.n, blocks);
    }
    for (int i = 0; i < shape.ndim; i++) at_release(shape.dim[i].sym);
    return pa_finish(&f, cx, be, sums == t ? y : cast(&f, be, y, t), out);
}

/* --- extremes -------------------------------------------------------------------------------------------------------------- */

static at_status extreme(at_context *cx, const at_backend *be, at_array x, at_array slot_ids,
                         at_dim slots, bool max, at_array *out)
{
    at_dtype t = AT_OTHER;
    if (pj_read_dtype(cx, x, &t) != AT_OK) return cx->status;
    pa_frame f;
    pa_open(&f);
    at_scalar first = pa_identity(t, max);
    PyObject *start = filled(&f, be, rows_shape(&f, be, x.p, pa_size(&f, slots)),
                             pj_scalar(&f, be, (at_array){&first, &at_weak}, t), t);
    int fn = max ? FN_scatter_max : FN_scatter_min;
    return pa_finish(&f, cx, be, scatter(&f, be, fn, start, slot_ids.p, x.p), out);
}

at_status pj_lax_slot_min(at_context *cx, const at_backend *be, at_array x, at_array slot_ids,
                          at_dim slots, at_array *out)
{
    return extreme(cx, be, x, slot_ids, slots, false, out);
}

at_status pj_lax_slot_max(at_context *cx, const at_backend *be, at_array x, at_array slot_ids,
                          at_dim slots, at_array *out)
{
    return extreme(cx, be, x, slot_ids, slots, true, out);
}

at_status pj_lax_slot_prod(at_context *cx, const at_backend *be, at_array x, at_array slot_ids,
                           at_dim slots, at_array *out)
{
    at_dtype t = AT_OTHER;
    if (pj_read_dtype(cx, x, &t) != AT_OK) return cx->status;
    pa_frame f;
    pa_open(&f);
    PyObject *ones =
        filled(&f, be, rows_shape(&f, be, x.p, pa_size(&f, slots)), number(&f, be, 1, t), t);
    return pa_finish(&f, cx, be, scatter(&f, be, FN_scatter_mul, ones, slot_ids.p, x.p), out);
}

/* By how much the slots are repeated at once. The derivative adds as many numbers one after the other. */
#define FAN 32

static int64_t fan(int64_t blocks) { return blocks < FAN ? blocks : FAN; }

/* x below itself, k times: (slots, ...) to (k * slots, ...). */
static PyObject *repeated(const at_backend *be, PyObject *x, int64_t k)
{
    pa_frame f;
    pa_open(&f);
    PyObject *shape = shape_of(&f, be, x), *many = pa_int(&f, k), *y = NULL;
    Py_ssize_t ndim = shape == NULL ? 0 : PyTuple_GET_SIZE(shape);
    PyObject *grid = many == NULL ? NULL : pa_keep(&f, PyTuple_New(ndim + 1));
    for (Py_ssize_t i = 0; grid != NULL && i <= ndim; i++)
        PyTuple_SET_ITEM(grid, i, Py_NewRef(i == 0 ? many : PyTuple_GET_ITEM(shape, i - 1)));
    if (ndim > 0) {
        int64_t slots = PyLong_AsLongLong(PyTuple_GET_ITEM(shape, 0));
        y = pa_call(&f, FN(be, broadcast_in_dim), x, grid, axes_between(&f, 1, ndim + 1));
        y = pa_call(&f, FN(be, reshape), y, rows_shape(&f, be, x, pa_int(&f, k * slots)));
    }
    return pa_take(&f, y);
}

/* Rows are read off repeated slots where a derivative may be taken: the derivative of reading is a sum over the rows of
 * each slot, which is cut into blocks that way, and the derivative of repeating adds the blocks. In several steps:
 * each adds few numbers. (Not by concatenation: XLA takes minutes for a dozen of them in a row.) */
static int64_t repeat_slots(at_context *cx, const at_backend *be, at_array slot_ids, at_array x,
                            PyObject **source, at_dim *slots, at_dim *rows)
{
    at_dtype t = AT_OTHER;
    at_shape own = {0}, ids = {0};
    if ((cx->flags & AT_UNTRACKED) || pj_read_dtype(cx, x, &t) != AT_OK || t != AT_FLOAT32)
        return 1;
    if (pj_read_shape(cx, x, &own) != AT_OK || pj_read_shape(cx, slot_ids, &ids) != AT_OK) return 1;
    *slots = own.dim[0];
    *rows = ids.dim[0];
    int64_t copies = 1;
    for (int64_t left = blocks_for(t, *rows, *slots); left > 1; left /= fan(left)) {
        copies *= fan(left);
        if (*source != NULL) Py_SETREF(*source, repeated(be, *source, fan(left)));
    }
    for (int i = 0; i < own.ndim; i++) at_release(own.dim[i].sym);
    for (int i = 0; i < ids.ndim; i++) at_release(ids.dim[i].sym);
    return copies;
}

at_status pj_lax_spread(at_context *cx, const at_backend *be, at_array x, at_array slot_ids,
                        at_array *out)
{
    const jax_state *st = state_of(be);
    at_dim slots = AT_DIM(0), rows = AT_DIM(0);
    PyObject *source = Py_NewRef((PyObject *)x.p), *ids = slot_ids.p;
    int64_t copies = repeat_slots(cx, be, slot_ids, x, &source, &slots, &rows);
    if (cx->status != AT_OK) {
        Py_XDECREF(source);
        return cx->status;
    }
    pa_frame f;
    pa_open(&f);
    source = pa_keep(&f, source);
    if (copies > 1) ids = ids_by_block(&f, be, ids, rows.n, slots.n, copies);
    PyObject *one = pa_int(&f, 1), *sizes = rows_shape(&f, be, x.p, one), *numbers = NULL;
    if (sizes != NULL)
        numbers = pa_call(&f, st->fn[FN_GatherDimensionNumbers],
                          axes_between(&f, 1, PyTuple_GET_SIZE(sizes)), CONSTANT(st, zeroth),
                          CONSTANT(st, zeroth));
    PyObject *y = pa_call_named(&f, st->fn[FN_gather], CONSTANT(st, named_mode), source,
                                column(&f, be, ids), numbers, sizes, st->fn[FN_in_bounds]);
    return pa_finish(&f, cx, be, y, out);
}
