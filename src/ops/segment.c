/* Segment composites, as formulas over slots.
 *
 * Ids are cleaned once: a dropped id reads exactly n, of n + 1 slots, on every backend, so that rows with a
 * bad id meet only each other, and the last slot is cut off at the end. What a dropped row holds (inf,
 * NaN) cannot reach a value; where a derivative may be taken it is zeroed first, since 0 * inf in a
 * derivative is NaN. */
#include "anytensor/native.h"
#include "core/dtype.h"
#include "core/promote.h"
#include "ops/formula.h"

typedef struct slots {
    at_array ids;  /* cleaned, in [0, n] */
    at_dim n;      /* segments */
    at_dim count;  /* n + 1 */
    int ndim;      /* rank of the data */
    at_dtype type; /* dtype of the data, and so of the result */
    at_dtype sums; /* dtype in which rows are added */
    bool tracked;  /* a derivative may be taken through the data */
} slots;

/* Rows per segment, on average, from which float32 is added in float64 where the backend adds in order. */
#define LONG_SEGMENT 1024

/* Half types are added in float32, and long segments of float32 in float64: one after the other, 10^7 rows would
 * lose three digits. Backends whose own sums are that exact (AT_WIDE_SUMS) keep float32. */
static at_dtype sums_of(at_dtype type, const at_backend *be, at_dim rows, at_dim n)
{
    if (ati_is_half(type)) return AT_FLOAT32;
    if (type != AT_FLOAT32 || (be->traits & AT_WIDE_SUMS)) return type;
    bool known = at_is_nil(rows.sym) && at_is_nil(n.sym);
    return known && rows.n / LONG_SEGMENT > n.n ? AT_FLOAT64 : type;
}

/* A dtype that the library knows. */
static at_dtype dtype_of(at_frame *f, at_array x)
{
    at_dtype t = AT_OTHER;
    if (at_dtype_of(f, x, &t) == AT_OK && t == AT_OTHER)
        ati_fail(f, NULL, AT_EDTYPE,
                 "argument 'x': expected bool, integer or floating data, found a dtype of %s's own",
                 x.be->name);
    return t;
}

static slots slots_of(at_frame *f, at_array x, at_array ids, at_dim n)
{
    slots s = {.n = n};
    at_shape shape;
    if (at_shape_of(f, x, &shape) == AT_OK) s.ndim = shape.ndim;
    s.type = dtype_of(f, x);
    if (at_failed(f)) return s;
    s.sums = sums_of(s.type, x.be, s.ndim > 0 ? shape.dim[0] : AT_DIM(0), n);
    s.tracked = ati_is_float(s.type) && ati_tracked(f, x);
    s.ids = at_slot_ids(f, ids, n);
    s.count = at_dim_plus(f, n, 1);
    return s;
}

static at_array wide(at_frame *f, at_array x, const slots *s)
{
    return s->sums == s->type ? x : at_astype(f, x, s->sums);
}

static at_array zero_dropped(at_frame *f, at_array x, const slots *s)
{
    at_array kept = at_slot_kept(f, s->ids, s->n);
    at_array mask = ati_against(f, kept, s->ndim);
    return at_where(f, mask, x, ati_zero);
}

/* The data as the nonlinear formulas need it: wide, and harmless to a derivative. */
static at_array prepared(at_frame *f, at_array x, const slots *s)
{
    x = wide(f, x, s);
    return s->tracked ? zero_dropped(f, x, s) : x;
}

/* x as something to find extremes of: no derivative flows through them. */
static at_array still(at_frame *f, at_array x, const slots *s)
{
    return s->tracked ? at_stop_gradient(f, x) : x;
}

/* How many rows each slot holds, in the dtype of x, seen against its rows; at least 1. */
static at_array divisor(at_frame *f, const slots *s)
{
    at_array rows = at_slot_count(f, s->ids, s->count);
    at_array least = ati_spent(f, at_maximum(f, rows, ati_one), rows);
    at_array as = ati_spent(f, at_astype(f, least, s->sums), least);
    return ati_against(f, as, s->ndim);
}

static at_array mean_of(at_frame *f, at_array x, at_array rows, const slots *s)
{
    at_array sum = at_slot_sum(f, x, s->ids, s->count);
    return ati_spent(f, at_div(f, sum, rows), sum);
}

/* Slots to segments: the last one goes, the dtype comes back. y is used up. */
static at_array finish(at_frame *f, at_array y, const slots *s)
{
    at_array head = ati_spent(f, at_head(f, y, s->n), y);
    return ati_spent(f, at_astype(f, head, s->type), head);
}

/* --- sum, count, mean, variance, std --------------------------------------------------------------- */

at_array ati_segment_sum(at_frame *f, at_array x, at_array segment_ids, at_dim num_segments,
                         bool sorted)
{
    (void)sorted;
    slots s = slots_of(f, x, segment_ids, num_segments);
    const at_backend *be = x.be;
    if (at_failed(f)) return AT_NIL;
    if (s.type == AT_BOOL) {
        s.type = s.sums = be->default_dtype(be, 'i');
        x = at_astype(f, x, s.type);
    }
    if (!(be->traits & AT_WIDE_SUMS)) x = wide(f, x, &s);
    at_array sum = at_slot_sum(f, x, s.ids, s.count);
    return finish(f, sum, &s);
}

at_array ati_segment_count(at_frame *f, at_array segment_ids, at_dim num_segments, bool sorted)
{
    (void)sorted;
    slots s = slots_of(f, segment_ids, segment_ids, num_segments);
    if (at_failed(f)) return AT_NIL;
    at_array rows = at_slot_count(f, s.ids, s.count);
    s.type = segment_ids.be->default_dtype(segment_ids.be, 'f');
    return finish(f, rows, &s);
}

at_array ati_segment_mean(at_frame *f, at_array x, at_array segment_ids, at_dim num_segments,
                          bool sorted)
{
    (void)sorted;
    slots s = slots_of(f, x, segment_ids, num_segments);
    x = wide(f, x, &s);
    at_array rows = divisor(f, &s);
    at_array mean = ati_spent(f, mean_of(f, x, rows, &s), rows);
    return finish(f, mean, &s);
}

static at_array variance_of(at_frame *f, at_array x, const slots *s)
{
    x = prepared(f, x, s);
    at_array rows = divisor(f, s);
    at_array mean = mean_of(f, x, rows, s);
    at_array own = ati_spent(f, at_spread(f, mean, s->ids), mean);
    at_array off = ati_spent(f, at_sub(f, x, own), own);
    at_array square = ati_spent(f, at_mul(f, off, off), off);
    return ati_spent(f, mean_of(f, square, rows, s), square);
}

at_array ati_segment_variance(at_frame *f, at_array x, at_array segment_ids, at_dim num_segments,
                              bool sorted)
{
    (void)sorted;
    slots s = slots_of(f, x, segment_ids, num_segments);
    at_array variance = variance_of(f, x, &s);
    return finish(f, variance, &s);
}

/* The root has no finite slope at 0: there it is left out, value and derivative. */
at_array ati_segment_std(at_frame *f, at_array x, at_array segment_ids, at_dim num_segments,
                         bool sorted)
{
    (void)sorted;
    slots s = slots_of(f, x, segment_ids, num_segments);
    at_array variance = variance_of(f, x, &s);
    at_array none = at_equal(f, variance, ati_zero);
    at_array safe = ati_spent(f, at_where(f, none, ati_one, variance), variance);
    at_array root = ati_spent(f, at_sqrt(f, safe), safe);
    at_array y = ati_spent(f, at_where(f, none, ati_zero, root), root);
    return finish(f, y, &s);
}

/* --- min and max ----------------------------------------------------------------------------------- */

typedef at_array fold(at_frame *f, at_array x, at_array slot_ids, at_dim slots);

/* The same extremes with a derivative: each segment's is shared equally by the rows that reach it.
 *
 * half is half the mean of those rows, computed so that its derivative is half the share. Its value may be
 * off by a rounding, so where it is finite only its derivative is added, to the exact value; the mean itself
 * could overflow (rows masked with the least finite number). An infinite extreme is its own exact mean.
 * Slots that no row reaches (empty, or NaN) keep their value and pass nothing on. */
static at_array shared(at_frame *f, at_array x, at_array peak, const slots *s)
{
    at_array own = at_spread(f, peak, s->ids);
    at_array tie = ati_spent(f, at_equal(f, at_stop_gradient(f, x), own), own);
    at_array ones = at_astype(f, tie, s->sums);
    at_array ties = ati_spent(f, at_slot_sum(f, ones, s->ids, s->count), ones);
    at_array divide = at_maximum(f, ties, ati_one);
    at_array twice = ati_spent(f, at_add(f, divide, divide), divide);
    at_array spread = ati_spent(f, at_spread(f, twice, s->ids), twice);
    at_array rows = ati_spent(f, at_where(f, tie, x, ati_zero), tie);
    at_array share = ati_spent(f, at_div(f, rows, spread), spread);
    at_array half = ati_spent(f, at_slot_sum(f, share, s->ids, s->count), share);
    at_array step = at_sub(f, half, at_stop_gradient(f, half));
    at_array slope = ati_spent(f, at_add(f, step, step), step);
    at_array exact = ati_spent(f, at_add(f, peak, slope), slope);
    at_array mean = ati_spent(f, at_add(f, half, half), half);
    at_array some = at_where(f, at_is_finite(f, peak), exact, mean);
    return at_where(f, at_equal(f, ties, ati_zero), peak, some);
}

/* Extremes per slot, the cut-off one included, in the dtype that finish() expects to cast from. */
static at_array extreme(at_frame *f, fold *op, at_array x, slots *s)
{
    if (s->type == AT_BOOL) return op(f, at_astype(f, x, AT_UINT8), s->ids, s->count);
    if (!s->tracked) return op(f, x, s->ids, s->count);
    x = wide(f, x, s);
    at_array peak = op(f, still(f, x, s), s->ids, s->count);
    return shared(f, x, peak, s);
}

at_array ati_segment_max(at_frame *f, at_array x, at_array segment_ids, at_dim num_segments,
                         bool sorted)
{
    (void)sorted;
    slots s = slots_of(f, x, segment_ids, num_segments);
    at_array peak = extreme(f, at_slot_max, x, &s);
    return finish(f, peak, &s);
}

at_array ati_segment_min(at_frame *f, at_array x, at_array segment_ids, at_dim num_segments,
                         bool sorted)
{
    (void)sorted;
    slots s = slots_of(f, x, segment_ids, num_segments);
    at_array peak = extreme(f, at_slot_min, x, &s);
    return finish(f, peak, &s);
}

/* Occupancy is counted, never read off the values: an occupied slot may hold the identity. */
static at_array or_constant(at_frame *f, fold *op, at_array x, slots s, at_array constant)
{
    at_array peak = extreme(f, op, x, &s);
    at_array y = finish(f, peak, &s);
    at_array rows = ati_spent(f, at_slot_count(f, s.ids, s.count), s.ids);
    at_array own = ati_spent(f, at_head(f, rows, s.n), rows);
    at_array empty = ati_spent(f, at_equal(f, own, ati_zero), own);
    at_array mask = ati_against(f, empty, s.ndim);
    at_array value = ati_value_as(f, constant, s.type, x);
    return at_where(f, mask, value, y);
}

at_array ati_segment_min_or_constant(at_frame *f, at_array x, at_array segment_ids,
                                     at_dim num_segments, at_array constant, bool sorted)
{
    (void)sorted;
    slots s = slots_of(f, x, segment_ids, num_segments);
    return or_constant(f, at_slot_min, x, s, constant);
}

at_array ati_segment_max_or_constant(at_frame *f, at_array x, at_array segment_ids,
                                     at_dim num_segments, at_array constant, bool sorted)
{
    (void)sorted;
    slots s = slots_of(f, x, segment_ids, num_segments);
    return or_constant(f, at_slot_max, x, s, constant);
}

/* The row that holds the extreme: the least number of those that are equal to it. A NaN is equal to nothing, but
 * where there is one the extreme is NaN. Empty slots hold the greatest integer, which the number of rows cuts. */
static at_array holder(at_frame *f, fold *op, at_array x, slots *s)
{
    at_scalar place;
    at_shape shape;
    at_dtype real = s->type;
    if (at_shape_of(f, x, &shape) != AT_OK) return AT_NIL;
    s->type = x.be->default_dtype(x.be, 'i');
    x = real == AT_BOOL ? at_astype(f, x, AT_UINT8) : still(f, x, s);
    at_array peak = op(f, x, s->ids, s->count);
    at_array own = ati_spent(f, at_spread(f, peak, s->ids), peak);
    at_array holds = ati_spent(f, at_equal(f, x, own), own);
    if (ati_is_float(real)) {
        at_array nan = at_is_nan(f, x);
        holds = ati_spent(f, at_where(f, nan, nan, holds), holds);
        at_drop(f, nan);
    }
    at_array end = ati_size_operand(&place, shape.dim[0]);
    at_array number = at_arange(f, end, AT_NIL, ati_one, s->type, s->ids, NULL);
    at_array column = ati_against(f, number, s->ndim);
    at_array rows = ati_spent(f, at_where(f, holds, column, end), holds);
    at_array first = ati_spent(f, at_slot_min(f, rows, s->ids, s->count), rows);
    return ati_spent(f, at_minimum(f, first, end), first);
}

at_array ati_segment_argmin(at_frame *f, at_array x, at_array segment_ids, at_dim num_segments,
                            bool sorted)
{
    (void)sorted;
    slots s = slots_of(f, x, segment_ids, num_segments);
    at_array row = holder(f, at_slot_min, x, &s);
    return finish(f, row, &s);
}

at_array ati_segment_argmax(at_frame *f, at_array x, at_array segment_ids, at_dim num_segments,
                            bool sorted)
{
    (void)sorted;
    slots s = slots_of(f, x, segment_ids, num_segments);
    at_array row = holder(f, at_slot_max, x, &s);
    return finish(f, row, &s);
}

/* --- any and all ----------------------------------------------------------------------------------- */

static at_array truth_of(at_frame *f, at_array x)
{
    dtype_of(f, x);
    return at_astype(f, x, AT_BOOL);
}

at_array ati_segment_any(at_frame *f, at_array x, at_array segment_ids, at_dim num_segments,
                         bool sorted)
{
    at_array truth = truth_of(f, x);
    return at_segment_max(f, truth, segment_ids, num_segments, sorted);
}

at_array ati_segment_all(at_frame *f, at_array x, at_array segment_ids, at_dim num_segments,
                         bool sorted)
{
    at_array truth = truth_of(f, x);
    return at_segment_min(f, truth, segment_ids, num_segments, sorted);
}

/* --- product --------------------------------------------------------------------------------------- */

/* The product of the rows that are not 0, with a derivative: the value, times e raised to the sum of the logarithms
 * of each row over itself. Those are 0, and their derivatives those of the product, of every order. What is not
 * finite has no logarithm to take a derivative of. */
static at_array product_of_others(at_frame *f, at_array x, at_array zero, const slots *s)
{
    at_array fixed = at_stop_gradient(f, x);
    at_array others = at_where(f, zero, ati_one, fixed);
    at_array value = ati_spent(f, at_slot_prod(f, others, s->ids, s->count), others);
    at_array finite = at_is_finite(f, fixed);
    at_array tame = ati_spent(f, at_where(f, finite, fixed, ati_zero), finite);
    at_array odd = ati_spent(f, at_equal(f, tame, ati_zero), tame);
    at_drop(f, fixed);
    at_array row = ati_spent(f, at_where(f, odd, ati_one, x), odd);
    at_array ratio = ati_spent(f, at_div(f, row, at_stop_gradient(f, row)), row);
    at_array log = ati_spent(f, at_log(f, ratio), ratio);
    at_array sum = ati_spent(f, at_slot_sum(f, log, s->ids, s->count), log);
    at_array swing = ati_spent(f, at_exp(f, sum), sum);
    at_array y = ati_spent(f, at_mul(f, value, swing), swing);
    return ati_spent(f, y, value);
}

/* The product of the rows that are 0, with its derivatives up to the second: nothing but their own values where there
 * is one, and where there are two, x y = ((x + y)^2 - x^2 - y^2) / 2. Those of more zeros are 0. */
static at_array product_of_zeros(at_frame *f, at_array x, at_array zero, const slots *s)
{
    at_scalar half, two;
    at_array flags = at_astype(f, zero, s->sums);
    at_array zeros = ati_spent(f, at_slot_sum(f, flags, s->ids, s->count), flags);
    at_array own = at_where(f, zero, x, ati_zero);
    at_array square = at_mul(f, own, own);
    at_array sum = ati_spent(f, at_slot_sum(f, own, s->ids, s->count), own);
    at_array squares = ati_spent(f, at_slot_sum(f, square, s->ids, s->count), square);
    at_array whole = at_mul(f, sum, sum);
    at_array twice = ati_spent(f, at_sub(f, whole, squares), whole);
    at_drop(f, squares);
    at_array pair = ati_spent(f, at_mul(f, twice, at_scalar_float(&half, 0.5)), twice);
    at_array are_two = at_equal(f, zeros, at_scalar_int(&two, 2));
    at_array many = ati_spent(f, at_where(f, are_two, pair, ati_zero), pair);
    at_array is_one = ati_spent(f, at_equal(f, zeros, ati_one), are_two);
    at_array some = ati_spent(f, at_where(f, is_one, sum, many), many);
    at_array none = ati_spent(f, at_equal(f, zeros, ati_zero), is_one);
    at_array y = ati_spent(f, at_where(f, none, ati_one, some), some);
    return ati_spent(f, y, none);
}

static at_array product(at_frame *f, at_array x, const slots *s)
{
    if (!s->tracked) return at_slot_prod(f, x, s->ids, s->count);
    at_array zero = at_equal(f, at_stop_gradient(f, x), ati_zero);
    at_array others = product_of_others(f, x, zero, s);
    at_array zeros = ati_spent(f, product_of_zeros(f, x, zero, s), zero);
    return ati_spent(f, at_mul(f, zeros, others), zeros);
}

/* No wider than it has to be: rounding errors of factors do not grow as those of terms do. */
at_array ati_segment_prod(at_frame *f, at_array x, at_array segment_ids, at_dim num_segments,
                          bool sorted)
{
    (void)sorted;
    slots s = slots_of(f, x, segment_ids, num_segments);
    if (at_failed(f)) return AT_NIL;
    s.sums = ati_is_half(s.type) ? AT_FLOAT32 : s.type;
    if (s.type == AT_BOOL) s.type = s.sums = x.be->default_dtype(x.be, 'i');
    x = at_astype(f, x, s.sums);
    x = s.tracked ? zero_dropped(f, x, &s) : x;
    at_array y = product(f, x, &s);
    return finish(f, y, &s);
}

/* --- softmax, normalize and their kin -------------------------------------------------------------- */

at_array ati_segment_softmax(at_frame *f, at_array logits, at_array segment_ids,
                             at_dim num_segments, bool sorted)
{
    (void)sorted;
    slots s = slots_of(f, logits, segment_ids, num_segments);
    at_array x = prepared(f, logits, &s);
    at_array top = at_slot_max(f, still(f, x, &s), s.ids, s.count); /* it cancels */
    at_array own = ati_spent(f, at_spread(f, top, s.ids), top);
    at_array off = ati_spent(f, at_sub(f, x, own), own);
    at_array e = ati_spent(f, at_exp(f, off), off);
    at_array sum = at_slot_sum(f, e, s.ids, s.count);
    at_array total = ati_spent(f, at_spread(f, sum, s.ids), sum);
    at_array y = ati_spent(f, at_div(f, e, total), total);
    y = ati_spent(f, zero_dropped(f, y, &s), y);
    return at_astype(f, y, s.type);
}

at_array ati_segment_normalize(at_frame *f, at_array x, at_array segment_ids, at_dim num_segments,
                               bool sorted)
{
    (void)sorted;
    slots s = slots_of(f, x, segment_ids, num_segments);
    x = prepared(f, x, &s);
    at_array sum = at_slot_sum(f, x, s.ids, s.count);
    at_array none = at_equal(f, sum, ati_zero);
    at_array safe = ati_spent(f, at_where(f, none, ati_one, sum), sum);
    at_array total = ati_spent(f, at_spread(f, safe, s.ids), safe);
    at_array y = ati_spent(f, at_div(f, x, total), total);
    at_array own = ati_spent(f, at_spread(f, none, s.ids), none);
    y = ati_spent(f, at_where(f, own, ati_zero, y), own);
    y = ati_spent(f, zero_dropped(f, y, &s), y);
    return at_astype(f, y, s.type);
}

/* Without the peak where that is finite, so that nothing overflows. A sum of 0 has the peak -inf: none of its rows is
 * more, or there is none. */
at_array ati_segment_logsumexp(at_frame *f, at_array logits, at_array segment_ids,
                               at_dim num_segments, bool sorted)
{
    (void)sorted;
    slots s = slots_of(f, logits, segment_ids, num_segments);
    at_array x = prepared(f, logits, &s);
    at_array top = at_slot_max(f, still(f, x, &s), s.ids, s.count);
    at_array finite = at_is_finite(f, top);
    at_array base = ati_spent(f, at_where(f, finite, top, ati_zero), finite);
    at_array own = at_spread(f, base, s.ids);
    at_array off = ati_spent(f, at_sub(f, x, own), own);
    at_array e = ati_spent(f, at_exp(f, off), off);
    at_array sum = ati_spent(f, at_slot_sum(f, e, s.ids, s.count), e);
    at_array none = at_equal(f, sum, ati_zero);
    at_array safe = ati_spent(f, at_where(f, none, ati_one, sum), sum);
    at_array log = ati_spent(f, at_log(f, safe), safe);
    at_array total = ati_spent(f, at_add(f, log, base), log);
    at_array y = ati_spent(f, at_where(f, none, top, total), total);
    return finish(f, y, &s);
}

/* x seen against arrays of a higher rank whose shapes begin with its own: (E, H, 1, ..., 1). */
static at_array before(at_frame *f, at_array x, int ndim)
{
    at_shape shape;
    if (at_shape_of(f, x, &shape) != AT_OK || shape.ndim == ndim) return x;
    for (int k = shape.ndim; k < ndim; k++) shape.dim[k] = AT_DIM(1);
    shape.ndim = ndim;
    return at_reshape(f, x, &shape);
}

at_array ati_segment_attention(at_frame *f, at_array logits, at_array values, at_array segment_ids,
                               at_dim num_segments, bool sorted)
{
    at_dtype type;
    at_shape shape;
    if (at_dtype_of(f, values, &type) != AT_OK || at_shape_of(f, values, &shape) != AT_OK)
        return AT_NIL;
    if (ati_is_half(type)) {
        logits = at_astype(f, logits, AT_FLOAT32);
        values = at_astype(f, values, AT_FLOAT32);
    }
    at_array share = at_segment_softmax(f, logits, segment_ids, num_segments, sorted);
    at_array weights = before(f, share, shape.ndim);
    at_array rows = ati_spent(f, at_mul(f, weights, values), weights);
    at_array y = at_segment_sum(f, rows, segment_ids, num_segments, sorted);
    return ati_spent(f, at_astype(f, y, type), rows);
}
