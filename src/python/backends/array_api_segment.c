/* Segment ops of the generic adapter: the standard has no scatter, so rows are sorted by id and scanned.
 *
 * After a stable sort the rows of a segment stand together. A scan by doubling (d = 1, 2, 4, ...) combines row i with
 * row i - d where both have one id; after it the last row of each segment holds the segment's result. Rows of other
 * segments never meet, so NaN and infinities stay where they are, and a sum is a tree of pairs: a segment of 10^6
 * rows of float32 has rounded twenty times, not a million. O(E log E) rows are touched, in vectors. */
#include "array_api_state.h"
#include "core/dtype.h"

/* x[from:to], all other axes whole. */
static PyObject *rows_between(pa_frame *up, PyObject *x, int64_t from, int64_t to)
{
    pa_frame frame, *f = &frame;
    pa_open_in(f, up);
    PyObject *start = pa_int(f, from), *stop = pa_int(f, to);
    PyObject *slice = f->failed || x == NULL ? NULL : pa_keep(f, PySlice_New(start, stop, NULL));
    PyObject *key = slice == NULL ? NULL : pa_keep(f, PyTuple_Pack(2, slice, Py_Ellipsis));
    return pa_give(up, f, key == NULL ? NULL : pa_keep(f, PyObject_GetItem(x, key)));
}

static PyObject *along_rows(pa_frame *f, const at_backend *be, int fn, PyObject *x, PyObject *index)
{
    return pa_call_named(f, px_function(f, be, fn), CONSTANT(be, named_axis), x, index,
                         CONSTANT(be, zero));
}

/* --- ids ------------------------------------------------------------------------------------------------------------ */

at_status px_slot_ids(at_context *cx, const at_backend *be, at_array ids, at_dim n, at_array *out)
{
    pa_frame f;
    pa_open(&f);
    at_dtype wide = px_index_of(&f, be, ids.p);
    PyObject *inside = px_within(&f, be, ids.p, 0, n.n);
    PyObject *place = px_cast(&f, be, ids.p, wide), *last = px_integer(&f, be, ids.p, n.n, wide);
    return pa_finish(&f, cx, be, pa_call(&f, FN(&f, be, where), inside, place, last), out);
}

at_status px_slot_kept(at_context *cx, const at_backend *be, at_array ids, at_dim n, at_array *out)
{
    pa_frame f;
    pa_open(&f);
    PyObject *end = px_integer(&f, be, ids.p, n.n, px_dtype_of(&f, be, ids.p));
    return pa_finish(&f, cx, be, pa_call(&f, FN(&f, be, less), ids.p, end), out);
}

/* Where each slot's rows begin and end among sorted ids. */
static void edges(pa_frame *f, const at_backend *be, PyObject *sorted, int64_t slots,
                  PyObject **begin, PyObject **end)
{
    at_dtype wide = px_index_of(f, be, sorted);
    PyObject *slot =
        pa_call_named(f, FN(f, be, arange), CONSTANT(be, named_dtype_device), pa_int(f, slots),
                      px_dtype_object(f, be, wide), px_device_of(f, be, sorted));
    PyObject *left = pa_call(f, FN(f, be, searchsorted), sorted, slot);
    PyObject *right = pa_call_named(f, FN(f, be, searchsorted), CONSTANT(be, named_side), sorted,
                                    slot, CONSTANT(be, right));
    *begin = px_cast(f, be, left, wide);
    *end = px_cast(f, be, right, wide);
}

at_status px_slot_count(at_context *cx, const at_backend *be, at_array ids, at_dim n, at_array *out)
{
    pa_frame f;
    pa_open(&f);
    PyObject *begin, *end;
    edges(&f, be, pa_call(&f, FN(&f, be, sort), ids.p), n.n, &begin, &end);
    return pa_finish(&f, cx, be, pa_call(&f, FN(&f, be, subtract), end, begin), out);
}

/* --- scan ----------------------------------------------------------------------------------------------------------- */

/* Rows in the order of their ids. */
typedef struct sorted_rows {
    const at_backend *be;
    int fn;        /* combines two rows */
    PyObject *ids; /* sorted */
    int64_t count;
    int ndim;           /* of the rows */
    PyObject *identity; /* 0-d */
} sorted_rows;

/* One step; the result replaces what `hold` owns. A row of another segment gives way to the identity before it is
 * combined: inf - inf of two segments would make a library warn. */
static PyObject *step(pa_frame *hold, const sorted_rows *s, PyObject *rows, int64_t d)
{
    pa_frame frame, *f = &frame;
    pa_open_in(f, hold);
    const at_backend *be = s->be;
    int64_t rest = s->count - d;
    PyObject *ids = rows_between(f, s->ids, d, s->count);
    PyObject *same = pa_call(f, FN(f, be, equal), ids, rows_between(f, s->ids, 0, rest));
    PyObject *mask = px_against(f, be, same, rest, 0, s->ndim);
    PyObject *before = rows_between(f, rows, 0, rest);
    PyObject *other = pa_call(f, FN(f, be, where), mask, before, s->identity);
    PyObject *tail =
        pa_call(f, px_function(f, be, s->fn), rows_between(f, rows, d, s->count), other);
    PyObject *head = rows_between(f, rows, 0, d);
    PyObject *parts = f->failed ? NULL : pa_keep(f, PyTuple_Pack(2, head, tail));
    PyObject *next =
        pa_call_named(f, FN(f, be, concat), CONSTANT(be, named_axis), parts, CONSTANT(be, zero));
    next = pa_take(f, next);
    pa_close(hold);
    return pa_keep(hold, next);
}

static PyObject *scan(pa_frame *up, const sorted_rows *s, PyObject *rows)
{
    pa_frame hold;
    pa_open_in(&hold, up);
    for (int64_t d = 1; d < s->count && !hold.failed; d *= 2) rows = step(&hold, s, rows, d);
    return pa_give(up, &hold, rows);
}

/* The last row of each slot; the identity where a slot has none. */
static PyObject *last_rows(pa_frame *up, const sorted_rows *s, PyObject *rows, int64_t slots)
{
    pa_frame frame, *f = &frame;
    pa_open_in(f, up);
    const at_backend *be = s->be;
    at_dtype wide = px_index_of(f, be, s->ids);
    PyObject *begin, *end;
    edges(f, be, s->ids, slots, &begin, &end);
    PyObject *occupied = pa_call(f, FN(f, be, less), begin, end);
    PyObject *last = pa_call(f, FN(f, be, subtract), end, px_integer(f, be, s->ids, 1, wide));
    PyObject *zero = px_integer(f, be, s->ids, 0, wide);
    PyObject *place = pa_call(f, FN(f, be, where), occupied, last, zero);
    PyObject *y = along_rows(f, be, FN_take, rows, place);
    PyObject *mask = px_against(f, be, occupied, slots, 0, s->ndim);
    return pa_give(up, f, pa_call(f, FN(f, be, where), mask, y, s->identity));
}

/* The value that leaves every other one as it is, as a Python number. */
static PyObject *identity_of(pa_frame *f, int fn, at_dtype t)
{
    at_scalar first = {.kind = AT_WEAK_INT, .i = fn == FN_multiply, .d = fn == FN_multiply};
    if (fn == FN_minimum || fn == FN_maximum) first = pa_identity(t, fn == FN_maximum);
    return pa_number_as(f, (at_array){&first, &at_weak}, t);
}

/* x (E, ...) folded by slot, E > 0. */
static PyObject *fold_rows(pa_frame *f, sorted_rows *s, PyObject *x, PyObject *ids, int64_t slots)
{
    const at_backend *be = s->be;
    PyObject *order =
        pa_call_named(f, FN(f, be, argsort), CONSTANT(be, named_stable), ids, Py_True);
    PyObject *rows = along_rows(f, be, FN_take, x, order);
    s->ids = along_rows(f, be, FN_take, ids, order);
    rows = scan(f, s, rows);
    return last_rows(f, s, rows, slots);
}

/* Half types are added in float32. */
static at_status fold(at_context *cx, const at_backend *be, int fn, at_array x, at_array ids,
                      int64_t slots, at_array *out)
{
    pa_frame f;
    pa_open(&f);
    at_shape shape;
    at_dtype t = px_dtype_of(&f, be, x.p), own = t;
    if (fn == FN_add && ati_is_half(t)) t = AT_FLOAT32;
    if (!px_sizes(&f, be, x.p, &shape)) return pa_finish(&f, cx, be, NULL, out);
    PyObject *least = identity_of(&f, fn, t), *y;
    sorted_rows s = {be, fn, NULL, shape.dim[0].n, shape.ndim, px_scalar(&f, be, x.p, least, t)};
    if (s.count == 0) {
        shape.dim[0] = AT_DIM(slots);
        y = pa_call_named(&f, FN(&f, be, full), CONSTANT(be, named_dtype_device),
                          pa_shape(&f, &shape), least, px_dtype_object(&f, be, t),
                          px_device_of(&f, be, x.p));
    } else {
        y = fold_rows(&f, &s, px_cast(&f, be, x.p, t), ids.p, slots);
    }
    return pa_finish(&f, cx, be, px_cast(&f, be, y, own), out);
}

#define SLOT_FOLD(op, fn)                                                                          \
    at_status px_##op(at_context *cx, const at_backend *be, at_array x, at_array slot_ids,         \
                      at_dim slots, at_array *out)                                                 \
    {                                                                                              \
        return fold(cx, be, FN_##fn, x, slot_ids, slots.n, out);                                   \
    }

SLOT_FOLD(slot_sum, add)
SLOT_FOLD(slot_min, minimum)
SLOT_FOLD(slot_max, maximum)
SLOT_FOLD(slot_prod, multiply)

at_status px_spread(at_context *cx, const at_backend *be, at_array x, at_array slot_ids,
                    at_array *out)
{
    pa_frame f;
    pa_open(&f);
    return pa_finish(&f, cx, be, along_rows(&f, be, FN_take, x.p, slot_ids.p), out);
}

at_status px_head(at_context *cx, const at_backend *be, at_array x, at_dim n, at_array *out)
{
    pa_frame f;
    pa_open(&f);
    return pa_finish(&f, cx, be, rows_between(&f, x.p, 0, n.n), out);
}
