/* Segments on TensorFlow: the slots that the formulas in src/ops/segment.c are made of.
 *
 * Sums are UnsortedSegmentSum, in float32 for half types and in blocks of rows where segments are long. TensorFlow's
 * own extremes start at the lowest finite number and pass over NaN, so floats are compared as integers: their
 * bits, turned so that integer order is the order of the floats. NaN becomes the greatest (or least) of them, and
 * what no row has reached is told by an integer that no float has. No arithmetic meets a NaN, and the compiler,
 * which may assume that there is none, sees integers. */

#include "core/dtype.h"
#include "tensorflow_state.h"

/* --- our own ops, where they may be called ----------------------------------------------------------------------- */

/* Data, ids and a size, of which an op may lack the first or the last. */
static bool own(pa_frame *f, at_context *cx, const at_backend *be, pf_op op, at_array x,
                at_array ids, const at_dim *n, PyObject **y)
{
    PyObject *const operands[] = {x.p, ids.p};
    int skip = at_is_nil(x);
    return pf_own(f, cx, be, op, operands + skip, 2 - skip, n, y);
}

static at_status composite(at_context *cx, const at_backend *be, pf_op op, at_array x, at_array ids,
                           at_dim n, at_array *out)
{
    pa_frame f;
    PyObject *y;
    pa_open(&f);
    if (own(&f, cx, be, op, x, ids, &n, &y) || f.failed) return pa_finish(&f, cx, be, y, out);
    pa_close(&f);
    return AT_DECLINE;
}

PF_SEGMENT_SLOT(segment_sum)
{
    (void)sorted;
    at_dtype t;
    if (pf_dtype_of(cx, x, &t) != AT_OK) return AT_EFOREIGN;
    if (t == AT_BOOL) return AT_DECLINE; /* it counts: the formula casts */
    return composite(cx, be, PF_OP_segment_sum, x, segment_ids, num_segments, out);
}

#define COMPOSITE(name)                                                                            \
    PF_SEGMENT_SLOT(name)                                                                          \
    {                                                                                              \
        (void)sorted;                                                                              \
        return composite(cx, be, PF_OP_##name, x, segment_ids, num_segments, out);                 \
    }

COMPOSITE(segment_mean)
COMPOSITE(segment_min)
COMPOSITE(segment_max)
COMPOSITE(segment_softmax)
COMPOSITE(segment_normalize)

at_status pf_segment_count(at_context *cx, const at_backend *be, at_array segment_ids,
                           at_dim num_segments, bool sorted, at_array *out)
{
    (void)sorted;
    return composite(cx, be, PF_OP_segment_count, AT_NIL, segment_ids, num_segments, out);
}

/* A number as constant; an array may have a derivative. */
static at_status or_constant(at_context *cx, const at_backend *be, pf_op op, at_array x,
                             at_array ids, at_dim n, at_array constant, at_array *out)
{
    if (constant.be != &at_weak) return AT_DECLINE;
    pa_frame f;
    PyObject *y;
    pa_open(&f);
    at_dtype t = pf_type(&f, x);
    PyObject *const operands[] = {x.p, ids.p, pa_number_as(&f, constant, t)};
    if (pf_own(&f, cx, be, op, operands, 3, &n, &y) || f.failed)
        return pa_finish(&f, cx, be, y, out);
    pa_close(&f);
    return AT_DECLINE;
}

PF_CONSTANT_SLOT(segment_min_or_constant)
{
    (void)sorted;
    return or_constant(cx, be, PF_OP_segment_min_or, x, segment_ids, num_segments, constant, out);
}

PF_CONSTANT_SLOT(segment_max_or_constant)
{
    (void)sorted;
    return or_constant(cx, be, PF_OP_segment_max_or, x, segment_ids, num_segments, constant, out);
}

/* Mean of the squares of what is left without the mean. Where a derivative may be taken the formula prepares the data. */
PF_SEGMENT_SLOT(segment_variance)
{
    (void)sorted;
    if (pf_tracked(cx, x)) return AT_DECLINE;
    pa_frame f;
    pa_open(&f);
    at_dtype t = pf_type(&f, x);
    PyObject *rows = pf_tensor(&f, be, x.p), *mean, *own_mean, *y;
    if (ati_is_half(t)) rows = pf_cast(&f, be, rows, AT_FLOAT32);
    x.p = rows;
    if (!own(&f, cx, be, PF_OP_segment_mean, x, segment_ids, &num_segments, &mean) ||
        !own(&f, cx, be, PF_OP_spread, (at_array){mean, be}, segment_ids, NULL, &own_mean)) {
        bool failed = f.failed;
        if (failed) return pa_finish(&f, cx, be, NULL, out);
        pa_close(&f);
        return AT_DECLINE;
    }
    PyObject *off = pf_call(&f, be, sub, rows, own_mean);
    x.p = pf_call(&f, be, mul, off, off);
    if (f.failed || !own(&f, cx, be, PF_OP_segment_mean, x, segment_ids, &num_segments, &y))
        y = NULL;
    return pa_finish(&f, cx, be, ati_is_half(t) ? pf_cast(&f, be, y, t) : y, out);
}

at_status pf_partition_ids(at_context *cx, const at_backend *be, at_array partitions,
                           at_dim total_length, at_array *out)
{
    return composite(cx, be, PF_OP_partition_ids, AT_NIL, partitions, total_length, out);
}

/* --- ids ---------------------------------------------------------------------------------------------------- */

at_status pf_slot_ids(at_context *cx, const at_backend *be, at_array ids, at_dim n, at_array *out)
{
    pa_frame f;
    pa_open(&f);
    PyObject *y;
    if (own(&f, cx, be, PF_OP_slot_ids, AT_NIL, ids, &n, &y)) return pa_finish(&f, cx, be, y, out);
    at_dtype t;
    PyObject *index = pf_index(&f, ids, n, &t);
    PyObject *last = pf_size(&f, be, n, t);
    PyObject *negative = pf_call(&f, be, less, index, pf_integer(&f, be, 0, t));
    PyObject *above = pf_call(&f, be, where, negative, last, index);
    return pa_finish(&f, cx, be, pf_call(&f, be, minimum, above, last), out);
}

at_status pf_slot_kept(at_context *cx, const at_backend *be, at_array ids, at_dim n, at_array *out)
{
    pa_frame f;
    pa_open(&f);
    PyObject *y;
    if (own(&f, cx, be, PF_OP_slot_kept, AT_NIL, ids, &n, &y)) return pa_finish(&f, cx, be, y, out);
    PyObject *last = pf_size(&f, be, n, pf_type(&f, ids));
    return pa_finish(&f, cx, be, pf_call(&f, be, less, ids.p, last), out);
}

at_status pf_slot_count(at_context *cx, const at_backend *be, at_array ids, at_dim n, at_array *out)
{
    pa_frame f;
    pa_open(&f);
    PyObject *y;
    if (own(&f, cx, be, PF_OP_slot_count, AT_NIL, ids, &n, &y))
        return pa_finish(&f, cx, be, y, out);
    PyObject *ones = pf_call(&f, be, ones_like, pf_cast(&f, be, ids.p, AT_INT64));
    PyObject *size = pf_size(&f, be, n, AT_INT64);
    return pa_finish(&f, cx, be, pf_call(&f, be, segment_sum, ones, ids.p, size), out);
}

at_status pf_spread(at_context *cx, const at_backend *be, at_array x, at_array slot_ids,
                    at_array *out)
{
    pa_frame f;
    pa_open(&f);
    PyObject *y;
    if (own(&f, cx, be, PF_OP_spread, x, slot_ids, NULL, &y)) return pa_finish(&f, cx, be, y, out);
    at_dtype t;
    PyObject *rows = pf_tensor(&f, be, x.p), *index = pf_index(&f, slot_ids, AT_DIM(0), &t);
    return pa_finish(&f, cx, be, pf_call(&f, be, gather, rows, index, pa_int(&f, 0)), out);
}

at_status pf_head(at_context *cx, const at_backend *be, at_array x, at_dim n, at_array *out)
{
    pa_frame f;
    pa_open(&f);
    at_shape row = {.ndim = 1};
    row.dim[0] = n;
    PyObject *end = pf_vector(&f, be, pa_shape(&f, &row));
    row.dim[0] = AT_DIM(1);
    PyObject *step = pf_call(&f, be, constant, pa_shape(&f, &row),
                             pf_dtype_object(&f, be, n.n > INT32_MAX ? AT_INT64 : AT_INT32));
    PyObject *rows = pf_tensor(&f, be, x.p); /* the mask says that it begins at the beginning */
    PyObject *y = pf_call(&f, be, slice, rows, end, end, step, pa_int(&f, 1), pa_int(&f, 0));
    return pa_finish(&f, cx, be, y, out);
}

/* --- sums --------------------------------------------------------------------------------------------------- */

/* Rows per segment, on average, from which float32 is added in blocks; and how many rows of a block are then added one
 * after the other: adding 1,024 equal numbers already loses two digits, always in the same direction. */
#define LONG_SEGMENT 1024
#define BLOCK 64

/* How float32 rows are cut into blocks: each adds into slots of its own, and the blocks' sums, far fewer than the
 * rows, are added in float64. Numbers, or 0-d int32 tensors where only run time knows. */
typedef struct blocks {
    PyObject *rows;  /* of the data */
    PyObject *each;  /* rows per block */
    PyObject *count; /* of blocks */
    PyObject *slots;
} blocks;

static PyObject *arith(pa_frame *f, binaryfunc op, PyObject *x, PyObject *y)
{
    return f->failed || x == NULL || y == NULL ? pa_keep(f, NULL) : pa_keep(f, op(x, y));
}

static blocks known_blocks(pa_frame *f, int64_t rows, int64_t slots)
{
    int64_t each = 2 * slots > BLOCK ? 2 * slots : BLOCK;
    int64_t count = rows / each + (rows % each != 0);
    return (blocks){pa_int(f, rows), pa_int(f, each), pa_int(f, count), pa_int(f, slots)};
}

/* The same in the graph. */
static blocks traced_blocks(pa_frame *f, const at_backend *be, at_dim rows, at_dim slots)
{
    blocks b = {.rows = pf_size(f, be, rows, AT_INT32), .slots = pf_size(f, be, slots, AT_INT32)};
    PyObject *twice = arith(f, PyNumber_Add, b.slots, b.slots), *one = pa_int(f, 1);
    b.each = pf_call(f, be, maximum, twice, pf_integer(f, be, BLOCK, AT_INT32));
    PyObject *most = arith(f, PyNumber_Subtract, arith(f, PyNumber_Add, b.rows, b.each), one);
    b.count = arith(f, PyNumber_FloorDivide, most, b.each);
    return b;
}

/* A number or a 0-d int32 tensor as a tensor of a dtype. */
static PyObject *as_tensor(pa_frame *f, const at_backend *be, PyObject *size, at_dtype t)
{
    if (f->failed || size == NULL) return NULL;
    if (PyLong_Check(size)) return pf_integer(f, be, PyLong_AsLongLong(size), t);
    return t == AT_INT32 ? size : pf_cast(f, be, size, t);
}

/* Where each row is added: its slot among those of its block. Numbers of all rows live as briefly as can be. */
static PyObject *block_ids(pa_frame *f, const at_backend *be, PyObject *ids, const blocks *b,
                           at_dtype t)
{
    pa_frame g, h;
    pa_open_in(&g, f);
    pa_open_in(&h, f);
    PyObject *zero = pf_integer(&h, be, 0, t), *one = pf_integer(&h, be, 1, t);
    PyObject *row = pf_call(&h, be, range, zero, as_tensor(&h, be, b->rows, t), one);
    PyObject *block = pf_call(&h, be, floor_div, row, as_tensor(&h, be, b->each, t));
    block = pa_give(&g, &h, block);
    PyObject *first = pf_call(&g, be, mul, block, as_tensor(&g, be, b->slots, t));
    return pa_give(f, &g, pf_call(&g, be, add, first, ids));
}

/* The sizes of x with others in place of the first. */
static PyObject *with_rows(pa_frame *f, const at_backend *be, PyObject *x, PyObject *const *first,
                           Py_ssize_t count)
{
    PyObject *sizes = pf_sizes(f, be, x);
    PyObject *list = sizes == NULL ? NULL : pa_keep(f, PyList_New(0));
    for (Py_ssize_t k = 0; list != NULL && k < count; k++)
        if (first[k] == NULL || PyList_Append(list, first[k]) < 0) return pa_keep(f, NULL);
    for (Py_ssize_t k = 1; list != NULL && k < PyList_GET_SIZE(sizes); k++)
        if (PyList_Append(list, PyList_GET_ITEM(sizes, k)) < 0) return pa_keep(f, NULL);
    return pf_vector(f, be, list);
}

static PyObject *sum_in_blocks(pa_frame *f, const at_backend *be, PyObject *x, at_array ids,
                               const blocks *b)
{
    at_dtype t = pf_type(f, ids);
    if (PyLong_Check(b->rows) && PyLong_AsLongLong(b->rows) > INT32_MAX / 2) {
        t = AT_INT64; /* and there are at most as many places again */
        ids.p = pf_cast(f, be, ids.p, t);
    }
    PyObject *place = block_ids(f, be, ids.p, b, t);
    PyObject *places = as_tensor(f, be, arith(f, PyNumber_Multiply, b->count, b->slots), t);
    PyObject *part = pf_call(f, be, segment_sum, x, place, places);
    PyObject *const first[] = {b->count, b->slots};
    PyObject *grid = pf_call(f, be, reshape, part, with_rows(f, be, x, first, 2));
    PyObject *wide = pf_cast(f, be, grid, AT_FLOAT64);
    return pf_cast(f, be, pf_call(f, be, sum, wide, pa_int(f, 0), Py_False), AT_FLOAT32);
}

/* Float32 rows; short segments are added as they come. */
static PyObject *sum_of_floats(pa_frame *f, const at_backend *be, PyObject *x, at_array ids,
                               at_dim slots)
{
    PyObject *sizes = pf_sizes(f, be, x);
    if (sizes == NULL) return NULL;
    at_dim rows = pf_dim(state_of(be), sizes, 0);
    bool known = at_is_nil(rows.sym) && at_is_nil(slots.sym);
    if (known && rows.n / LONG_SEGMENT < slots.n)
        return pf_call(f, be, segment_sum, x, ids.p, pf_size(f, be, slots, AT_INT64));
    pa_frame g;
    pa_open_in(&g, f);
    blocks b = known ? known_blocks(&g, rows.n, slots.n) : traced_blocks(&g, be, rows, slots);
    PyObject *y = g.failed ? pa_keep(f, NULL) : sum_in_blocks(f, be, x, ids, &b);
    pa_close(&g);
    return y;
}

at_status pf_slot_sum(at_context *cx, const at_backend *be, at_array x, at_array slot_ids,
                      at_dim slots, at_array *out)
{
    pa_frame f;
    pa_open(&f);
    at_dtype t = pf_type(&f, x);
    PyObject *y;
    if (own(&f, cx, be, PF_OP_segment_sum, x, slot_ids, &slots, &y))
        return pa_finish(&f, cx, be, y, out);
    PyObject *rows = pf_tensor(&f, be, x.p);
    if (ati_is_half(t)) rows = pf_cast(&f, be, rows, AT_FLOAT32);
    if (ati_is_half(t) || t == AT_FLOAT32)
        y = sum_of_floats(&f, be, rows, slot_ids, slots);
    else
        y = pf_call(&f, be, segment_sum, rows, slot_ids.p, pf_size(&f, be, slots, AT_INT64));
    return pa_finish(&f, cx, be, ati_is_half(t) ? pf_cast(&f, be, y, t) : y, out);
}

/* --- extremes ----------------------------------------------------------------------------------------------- */

/* Floats of a width as integers in the same order: their bits k, and k ^ most where they are negative. */
typedef struct key {
    at_dtype bits;
    int64_t most; /* of the integers */
    int64_t inf, nan;
} key;

static const key key32 = {AT_INT32, INT32_MAX, 0x7f800000, 0x7fc00000};
static const key key64 = {AT_INT64, INT64_MAX, 0x7ff0000000000000, 0x7ff8000000000000};

/* Turns the negative ones around; it is its own inverse. */
static PyObject *turned(pa_frame *f, const at_backend *be, PyObject *bits, const key *k)
{
    PyObject *most = pf_integer(f, be, k->most, k->bits);
    PyObject *negative = pf_call(f, be, less, bits, pf_integer(f, be, 0, k->bits));
    return pf_call(f, be, where, negative, pf_call(f, be, bitwise_xor, bits, most), bits);
}

/* The result of make(), which has places of its own. */
typedef PyObject *making(pa_frame *f, const at_backend *be, PyObject *x, const key *k, bool max);

static PyObject *apart(pa_frame *f, making *make, const at_backend *be, PyObject *x, const key *k,
                       bool max)
{
    if (x == NULL) return pa_keep(f, NULL);
    pa_frame g;
    pa_open_in(&g, f);
    return pa_give(f, &g, make(&g, be, x, k, max));
}

/* NaN of either sign beats all: greatest for a maximum, least for a minimum. */
static PyObject *to_keys(pa_frame *f, const at_backend *be, PyObject *x, const key *k, bool max)
{
    PyObject *bits = pf_bits(f, be, x, k->bits);
    PyObject *size = pf_call(f, be, bitwise_and, bits, pf_integer(f, be, k->most, k->bits));
    PyObject *is_nan = pf_call(f, be, less, pf_integer(f, be, k->inf, k->bits), size);
    PyObject *winner = pf_integer(f, be, max ? k->nan : ~k->nan, k->bits);
    return pf_call(f, be, where, is_nan, winner, turned(f, be, bits, k));
}

/* An untouched slot holds the integers' own least (or most), the key of a NaN that to_keys() never gives. */
static PyObject *from_keys(pa_frame *f, const at_backend *be, PyObject *y, const key *k, bool max)
{
    PyObject *start = pf_integer(f, be, max ? ~k->most : k->most, k->bits);
    PyObject *untouched = pf_call(f, be, equal, y, start);
    PyObject *empty = pf_integer(f, be, max ? ~k->inf : k->inf, k->bits);
    PyObject *some = pf_call(f, be, where, untouched, empty, y);
    at_dtype t = k->bits == AT_INT32 ? AT_FLOAT32 : AT_FLOAT64;
    return pf_bits(f, be, turned(f, be, some, k), t);
}

static at_status extreme(at_context *cx, const at_backend *be, at_array x, at_array slot_ids,
                         at_dim slots, bool max, at_array *out)
{
    pa_frame f;
    pa_open(&f);
    at_dtype t = pf_type(&f, x);
    PyObject *y;
    pf_op op = max ? PF_OP_segment_max : PF_OP_segment_min;
    if (own(&f, cx, be, op, x, slot_ids, &slots, &y)) return pa_finish(&f, cx, be, y, out);
    const key *k = t == AT_FLOAT64 ? &key64 : ati_is_float(t) ? &key32 : NULL;
    PyObject *rows = pf_tensor(&f, be, x.p), *size = pf_size(&f, be, slots, AT_INT64);
    if (ati_is_half(t)) rows = pf_cast(&f, be, rows, AT_FLOAT32);
    if (k != NULL) rows = apart(&f, to_keys, be, rows, k, max);
    y = max ? pf_call(&f, be, segment_max, rows, slot_ids.p, size)
            : pf_call(&f, be, segment_min, rows, slot_ids.p, size);
    if (k != NULL) y = apart(&f, from_keys, be, y, k, max);
    return pa_finish(&f, cx, be, ati_is_half(t) ? pf_cast(&f, be, y, t) : y, out);
}

at_status pf_slot_min(at_context *cx, const at_backend *be, at_array x, at_array slot_ids,
                      at_dim slots, at_array *out)
{
    return extreme(cx, be, x, slot_ids, slots, false, out);
}

at_status pf_slot_max(at_context *cx, const at_backend *be, at_array x, at_array slot_ids,
                      at_dim slots, at_array *out)
{
    return extreme(cx, be, x, slot_ids, slots, true, out);
}

/* --- products ----------------------------------------------------------------------------------------------- */

at_status pf_slot_prod(at_context *cx, const at_backend *be, at_array x, at_array slot_ids,
                       at_dim slots, at_array *out)
{
    pa_frame f;
    pa_open(&f);
    PyObject *rows = pf_tensor(&f, be, x.p), *size = pf_size(&f, be, slots, AT_INT64);
    return pa_finish(&f, cx, be, pf_call(&f, be, segment_prod, rows, slot_ids.p, size), out);
}
