/* Checks that a kind of op makes once per call, before any work: ranks, lengths, sizes, default dtypes.
 * Messages name the argument, what was expected and what was found. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "core/dim.h"
#include "core/dtype.h"
#include "core/promote.h"
#include "ops/formula.h"

/* "(3, n, 2)" for messages; symbols are shown as n. */
static const char *show(char *place, size_t room, const at_shape *s)
{
    size_t at = 0;
    at += (size_t)snprintf(place, room, "(");
    for (int k = 0; k < s->ndim && at < room; k++) {
        const char *sep = k + 1 < s->ndim ? ", " : s->ndim == 1 ? "," : "";
        if (at_is_nil(s->dim[k].sym))
            at += (size_t)snprintf(place + at, room - at, "%" PRId64 "%s", s->dim[k].n, sep);
        else
            at += (size_t)snprintf(place + at, room - at, "n%s", sep);
    }
    if (at < room) snprintf(place + at, room - at, ")");
    return place;
}

bool ati_check_size(at_frame *f, const char *name, at_dim size)
{
    if (at_is_nil(size.sym) && size.n < 0 && size.n != INT64_MIN)
        ati_fail(f, NULL, AT_EVALUE, "argument '%s': expected a size >= 0, found %" PRId64, name,
                 size.n);
    return !at_failed(f);
}

/* Whether an axis of a value stretches to one of the result; symbols are left to the framework. */
static bool stretches(at_dim from, at_dim to)
{
    return !at_is_nil(from.sym) || from.n == 1 || !at_is_nil(to.sym) || from.n == to.n;
}

bool ati_check_constant(at_frame *f, at_array x, at_dim n, at_array constant)
{
    char cs[120], rs[120];
    at_shape shape, result;
    at_dtype type;
    if (at_is_nil(constant)) ati_fail(f, NULL, AT_EARG, "argument 'constant' is missing");
    if (at_shape_of(f, constant, &shape) != AT_OK || at_shape_of(f, x, &result) != AT_OK ||
        at_dtype_of(f, x, &type) != AT_OK)
        return false;
    result.dim[0] = n;
    bool fine = shape.ndim <= result.ndim;
    for (int k = 1; fine && k <= shape.ndim; k++)
        fine = stretches(shape.dim[shape.ndim - k], result.dim[result.ndim - k]);
    if (!fine)
        ati_fail(f, NULL, AT_ESHAPE,
                 "argument 'constant': expected a shape that broadcasts to %s, found %s",
                 show(rs, sizeof rs, &result), show(cs, sizeof cs, &shape));
    return ati_check_fits(f, "constant", constant, type);
}

/* A symbol is for arrays of a framework that traces; beside others it would be read as a number. */
static bool check_symbol(at_frame *f, const at_backend *be, const char *name, at_dim size)
{
    if (!at_is_nil(size.sym) && !(be->traits & AT_TAKES_SYMBOLS))
        ati_fail(f, NULL, AT_EARG,
                 "argument '%s': expected a number beside arrays of %s, found a symbolic size",
                 name, be->name);
    return !at_failed(f);
}

/* A size that must be given. */
static bool check_given(at_frame *f, const at_backend *be, const char *name, at_dim size)
{
    if (at_is_nil(size.sym) && size.n == INT64_MIN)
        ati_fail(f, NULL, AT_EARG, "argument '%s' is missing", name);
    return ati_check_size(f, name, size) && check_symbol(f, be, name, size);
}

/* A vector of ids or lengths. */
static bool check_vector(at_frame *f, const char *name, at_array v, at_shape *shape)
{
    char text[120];
    if (at_shape_of(f, v, shape) == AT_OK && shape->ndim != 1)
        ati_fail(f, NULL, AT_ESHAPE, "argument '%s': expected shape (length,), found %s", name,
                 show(text, sizeof text, shape));
    return !at_failed(f);
}

bool ati_check_segments(at_frame *f, const char *data, at_array x, at_array ids, at_dim n)
{
    char xs[120], is[120];
    at_shape x_shape, ids_shape;
    if (!check_given(f, ids.be, "num_segments", n) ||
        !check_vector(f, "segment_ids", ids, &ids_shape))
        return false;
    if (data == NULL) return true;
    if (at_shape_of(f, x, &x_shape) != AT_OK) return false;
    if (x_shape.ndim == 0)
        ati_fail(f, NULL, AT_ESHAPE,
                 "argument '%s': expected one row per segment id, shape %s, found a 0-d array",
                 data, show(is, sizeof is, &ids_shape));
    else if (!ati_dim_equal(f, x_shape.dim[0], ids_shape.dim[0]))
        ati_fail(
            f, NULL, AT_ESHAPE,
            "argument 'segment_ids': expected one id per row of '%s' of shape %s, found shape %s",
            data, show(xs, sizeof xs, &x_shape), show(is, sizeof is, &ids_shape));
    return !at_failed(f);
}

bool ati_check_attention(at_frame *f, at_array logits, at_array values)
{
    char ls[120], vs[120];
    at_shape l, v;
    if (at_shape_of(f, logits, &l) != AT_OK || at_shape_of(f, values, &v) != AT_OK) return false;
    bool fine = l.ndim <= v.ndim;
    for (int k = 0; fine && k < l.ndim; k++) fine = ati_dim_equal(f, l.dim[k], v.dim[k]);
    if (!fine)
        ati_fail(f, NULL, AT_ESHAPE,
                 "argument 'values': expected a shape that begins with that of 'logits', %s, found "
                 "shape %s",
                 show(ls, sizeof ls, &l), show(vs, sizeof vs, &v));
    return !at_failed(f);
}

bool ati_check_partitions(at_frame *f, at_array partitions, at_dim total)
{
    at_shape shape;
    if (!check_given(f, partitions.be, "total_length", total) ||
        !check_vector(f, "partitions", partitions, &shape))
        return false;
    const at_backend *be = partitions.be;
    if (be->peek == NULL || !at_is_nil(total.sym)) return true;
    int64_t sum = 0, least = 0;
    bool known = false;
    at_status status = be->peek(f->cx, partitions, false, &sum, &least, &known);
    if (status != AT_OK)
        at_error(f->cx, status, "the partitions cannot be read");
    else if (known && least < 0)
        ati_fail(f, NULL, AT_EVALUE, "argument 'partitions': expected lengths >= 0, found %" PRId64,
                 least);
    else if (known && sum != total.n)
        ati_fail(f, NULL, AT_EVALUE,
                 "argument 'total_length': expected %" PRId64
                 ", the sum of the partitions, found %" PRId64,
                 sum, total.n);
    return !at_failed(f);
}

bool ati_check_rows(at_frame *f, const char *data, at_array x, at_dim total)
{
    char text[120];
    at_shape shape;
    if (at_shape_of(f, x, &shape) != AT_OK) return false;
    if (shape.ndim == 0 || !ati_dim_equal(f, shape.dim[0], total))
        ati_fail(f, NULL, AT_ESHAPE,
                 "argument 'total_length': expected the number of rows of '%s' of shape %s, found "
                 "%" PRId64,
                 data, show(text, sizeof text, &shape), at_is_nil(total.sym) ? total.n : -1);
    return !at_failed(f);
}

bool ati_check_reshape(at_frame *f, at_array x, const at_shape *shape)
{
    char text[120];
    int unknown = 0;
    bool fine = true;
    for (int k = 0; k < shape->ndim; k++) {
        int64_t size = at_is_nil(shape->dim[k].sym) ? shape->dim[k].n : 0;
        unknown += size == -1;
        fine = fine && size >= -1;
        if (!check_symbol(f, x.be, "shape", shape->dim[k])) return false;
    }
    if (!fine || unknown > 1)
        ati_fail(f, NULL, AT_EVALUE,
                 "argument 'shape': expected sizes >= 0 and at most one -1, found %s",
                 show(text, sizeof text, shape));
    return !at_failed(f);
}

/* The dtype of a value that has none asked for: a scalar takes the default of its kind. */
static at_dtype dtype_of_value(at_frame *f, const at_backend *be, at_array a)
{
    at_dtype t;
    if (at_dtype_of(f, a, &t) != AT_OK || !(a.be->traits & AT_WEAK) || t == AT_BOOL) return t;
    return be->default_dtype(be, t == AT_INT64 ? 'i' : 'f');
}

/* Whether a float, cut to its integral part, has a value of an integer dtype. */
static bool float_fits(at_dtype dtype, double d)
{
    int bits = 8 * (int)at_dtype_size(dtype);
    bool is_signed = ati_dtype_kind(dtype) == 'i';
    double top = ldexp(1, is_signed ? bits - 1 : bits);
    return d < top && (is_signed ? d > -top - 1 || d == -top : d > -1);
}

bool ati_check_fits(at_frame *f, const char *name, at_array value, at_dtype dtype)
{
    const at_scalar *s = value.be == &at_weak ? value.p : NULL;
    if (s == NULL || !ati_is_integer(dtype)) return true;
    if (s->kind == AT_WEAK_INT && !ati_int_fits(dtype, s))
        ati_fail(f, NULL, AT_EOVERFLOW,
                 "argument '%s': the Python integer %.17g is out of bounds for %s", name, s->d,
                 at_dtype_name(dtype));
    else if (s->kind == AT_WEAK_FLOAT && isnan(s->d))
        ati_fail(f, NULL, AT_EVALUE, "argument '%s': expected a value of %s, found NaN", name,
                 at_dtype_name(dtype));
    else if (s->kind == AT_WEAK_FLOAT && !float_fits(dtype, s->d))
        ati_fail(f, NULL, AT_EOVERFLOW, "argument '%s': the float %.17g is out of bounds for %s",
                 name, s->d, at_dtype_name(dtype));
    return !at_failed(f);
}

bool ati_check_repeats(at_frame *f, at_array x, at_array repeats, at_dim total)
{
    at_dtype t;
    if (at_is_nil(repeats))
        ati_fail(f, NULL, AT_EARG, "argument 'repeats' is missing");
    else if (at_dtype_of(f, repeats, &t) == AT_OK && !ati_is_integer(t))
        ati_fail(f, NULL, AT_EDTYPE, "argument 'repeats': expected integers, found %s",
                 at_dtype_name(t));
    if (!at_failed(f) && !ati_check_fits(f, "repeats", repeats, AT_INT64)) return false;
    return !at_failed(f) && ati_check_size(f, "total_repeat_length", total) &&
           check_symbol(f, x.be, "total_repeat_length", total);
}

/* How often one count for all elements counts: as often as there are elements, as far as they are known. */
static int64_t elements(at_frame *f, at_array x)
{
    int64_t n = 1;
    at_shape shape;
    if (at_shape_of(f, x, &shape) != AT_OK) return 0;
    for (int k = 0; k < shape.ndim; k++) {
        at_dim d = shape.dim[k];
        if (at_is_nil(d.sym) && __builtin_mul_overflow(n, d.n, &n)) return INT64_MAX;
    }
    return n;
}

bool ati_check_counts(at_frame *f, at_array x, at_array repeats, bool needed)
{
    int64_t sum = 0, least = 0;
    bool known = repeats.be == &at_weak;
    at_shape shape = {.ndim = 0};
    if (known)
        sum = least = ((const at_scalar *)repeats.p)->i;
    else if (at_shape_of(f, repeats, &shape) == AT_OK && shape.ndim < 2 &&
             repeats.be->peek != NULL) {
        at_status status = repeats.be->peek(f->cx, repeats, needed, &sum, &least, &known);
        if (status != AT_OK) at_error(f->cx, status, "the repeats cannot be read");
    }
    if (at_failed(f) || !known) return !at_failed(f);
    bool single = shape.ndim == 0 || (at_is_nil(shape.dim[0].sym) && shape.dim[0].n == 1);
    if (least < 0)
        ati_fail(f, NULL, AT_EVALUE, "argument 'repeats': expected counts >= 0, found %" PRId64,
                 least);
    else if (__builtin_mul_overflow(sum, single ? elements(f, x) : 1, &sum) || sum > INT64_MAX / 2)
        ati_fail(
            f, NULL, AT_EVALUE,
            "argument 'repeats': expected a result that fits an array, found too many elements");
    return !at_failed(f);
}

bool ati_check_total(at_frame *f, at_array x, at_array repeats, at_dim total, int axis)
{
    if (at_is_nil(total.sym) && total.n == INT64_MIN) return true; /* none given */
    if (axis != AT_NO_AXIS)
        ati_fail(f, NULL, AT_EUNSUPPORTED, "total_repeat_length needs axis=None");
    return !at_failed(f) && ati_check_counts(f, x, repeats, false);
}

bool ati_settle_scan(at_frame *f, at_array x, int *axis)
{
    at_shape shape;
    if (at_shape_of(f, x, &shape) != AT_OK) return false;
    if (shape.ndim == 0)
        ati_fail(f, NULL, AT_EVALUE, "argument 'x': expected rank >= 1, found a 0-d array");
    else if (*axis == AT_NO_AXIS && shape.ndim > 1)
        ati_fail(f, NULL, AT_EVALUE, "argument 'axis': expected an axis for rank %d, found None",
                 shape.ndim);
    else if (*axis == AT_NO_AXIS)
        *axis = 0;
    return !at_failed(f);
}

bool ati_check_replace(at_frame *f, at_array x, at_array nan)
{
    at_dtype t;
    if (at_is_nil(nan))
        ati_fail(f, NULL, AT_EARG, "argument 'nan' is missing");
    else if (at_dtype_of(f, x, &t) == AT_OK && t == AT_OTHER)
        ati_fail(f, NULL, AT_EDTYPE,
                 "argument 'x': expected a bool, integer or floating dtype, found %s's own",
                 x.be->name);
    return !at_failed(f);
}

/* "(1, 0)", for messages. */
static const char *show_axes(char *place, size_t room, const at_axes *axes)
{
    at_shape numbers = {.ndim = axes->count};
    for (int k = 0; k < axes->count; k++) numbers.dim[k] = AT_DIM(axes->axis[k]);
    return show(place, room, &numbers);
}

bool ati_settle_transpose(at_frame *f, at_array x, at_axes *axes)
{
    char text[120];
    at_shape shape;
    uint32_t seen = 0;
    if (at_shape_of(f, x, &shape) != AT_OK) return false;
    int ndim = shape.ndim;
    const at_axes given = *axes;
    bool fine = given.count < 0 || given.count == ndim;
    axes->count = ndim;
    for (int k = 0; fine && k < ndim; k++) {
        int axis = given.count < 0 ? ndim - 1 - k : given.axis[k];
        axis += axis < 0 ? ndim : 0;
        fine = axis >= 0 && axis < ndim && !(seen >> axis & 1);
        if (fine) seen |= UINT32_C(1) << axis;
        axes->axis[k] = axis;
    }
    if (!fine)
        ati_fail(f, NULL, AT_EVALUE,
                 "argument 'axes': expected a permutation of the %d axes of 'x', found %s", ndim,
                 show_axes(text, sizeof text, &given));
    return fine;
}

/* An axis counted from the front, of an array of a rank. */
static bool settle_axis(at_frame *f, int ndim, int *axis)
{
    if (*axis == AT_NO_AXIS)
        ati_fail(f, NULL, AT_EARG, "argument 'axis': expected an int, found None");
    else if (*axis < -ndim || *axis >= ndim)
        ati_fail(f, NULL, AT_EVALUE, "argument 'axis': axis %d is out of range for rank %d", *axis,
                 ndim);
    else
        *axis += *axis < 0 ? ndim : 0;
    return !at_failed(f);
}

static int64_t within(int64_t bound, int64_t n)
{
    bound += bound < 0 ? n : 0;
    return bound < 0 ? 0 : bound > n ? n : bound;
}

bool ati_settle_slice(at_frame *f, at_array x, at_dim *start, at_dim *stop, int *axis)
{
    at_shape shape;
    if (at_shape_of(f, x, &shape) != AT_OK || !settle_axis(f, shape.ndim, axis)) return false;
    at_dim n = shape.dim[*axis];
    if (!at_is_nil(n.sym)) return true;
    if (at_is_nil(start->sym)) start->n = within(start->n, n.n);
    if (at_is_nil(stop->sym)) stop->n = stop->n == INT64_MIN ? n.n : within(stop->n, n.n);
    if (at_is_nil(start->sym) && at_is_nil(stop->sym) && stop->n < start->n) stop->n = start->n;
    return true;
}

int ati_split_count(at_cuts cuts)
{
    return cuts.sections == INT64_MIN ? cuts.count + 1 : (int)cuts.sections;
}

bool ati_settle_split(at_frame *f, at_array x, at_cuts cuts, int *axis)
{
    static const char *const name = "indices_or_sections";
    at_shape shape;
    if (at_shape_of(f, x, &shape) != AT_OK || !settle_axis(f, shape.ndim, axis)) return false;
    at_dim n = shape.dim[*axis];
    for (int i = 0; i < cuts.count; i++)
        if (!check_symbol(f, x.be, name, cuts.index[i])) return false;
    if (cuts.sections == INT64_MIN) return true;
    if (cuts.sections < 1 || cuts.sections > INT32_MAX / 2)
        ati_fail(f, NULL, AT_EVALUE, "argument '%s': expected 1 section or more, found %" PRId64,
                 name, cuts.sections);
    else if (at_is_nil(n.sym) && n.n % cuts.sections != 0)
        ati_fail(f, NULL, AT_EVALUE,
                 "argument '%s': expected a number of sections that divides the %" PRId64
                 " elements of axis %d, found %" PRId64,
                 name, n.n, *axis, cuts.sections);
    return !at_failed(f);
}

bool ati_settle_stack(at_frame *f, at_list arrays, int *axis)
{
    char first_text[120], other_text[120];
    at_shape first, other;
    if (at_shape_of(f, arrays.array[0], &first) != AT_OK) return false;
    if (first.ndim == AT_MAX_NDIM)
        ati_fail(f, NULL, AT_ESHAPE, "argument 'arrays': expected rank < %d", AT_MAX_NDIM);
    for (int i = 1; i < arrays.count && !at_failed(f); i++) {
        if (at_shape_of(f, arrays.array[i], &other) != AT_OK) return false;
        bool same = other.ndim == first.ndim;
        for (int k = 0; same && k < first.ndim; k++)
            same = ati_dim_equal(f, first.dim[k], other.dim[k]);
        if (!same)
            ati_fail(f, NULL, AT_ESHAPE,
                     "argument 'arrays': expected arrays of one shape, found %s and %s",
                     show(first_text, sizeof first_text, &first),
                     show(other_text, sizeof other_text, &other));
    }
    return !at_failed(f) && settle_axis(f, first.ndim + 1, axis);
}

/* Whether two sizes of a batch axis go together. */
static bool go_together(at_frame *f, at_dim a, at_dim b)
{
    bool stretched = (at_is_nil(a.sym) && a.n == 1) || (at_is_nil(b.sym) && b.n == 1);
    return stretched || ati_dim_equal(f, a, b);
}

bool ati_check_matmul(at_frame *f, at_array x, at_array y)
{
    char xs[120], ys[120];
    at_shape a, b;
    if (at_shape_of(f, x, &a) != AT_OK || at_shape_of(f, y, &b) != AT_OK) return false;
    if (a.ndim == 0 || b.ndim == 0) {
        const char *name = a.ndim == 0 ? "x" : "y";
        ati_fail(f, NULL, AT_ESHAPE, "argument '%s': expected rank >= 1, found a 0-d array", name);
        return false;
    }
    bool fine = ati_dim_equal(f, a.dim[a.ndim - 1], b.dim[b.ndim > 1 ? b.ndim - 2 : 0]);
    for (int k = 3; fine && k <= a.ndim && k <= b.ndim; k++)
        fine = go_together(f, a.dim[a.ndim - k], b.dim[b.ndim - k]);
    if (!fine)
        ati_fail(f, NULL, AT_ESHAPE,
                 "argument 'y': expected a shape (..., K, N) that goes with (..., M, K) of 'x', "
                 "found %s beside %s",
                 show(ys, sizeof ys, &b), show(xs, sizeof xs, &a));
    return !at_failed(f);
}

bool ati_settle_full(at_frame *f, const at_backend *be, const at_shape *shape, at_array fill,
                     at_array like, at_dtype *dtype)
{
    for (int k = 0; k < shape->ndim; k++)
        if (!ati_check_size(f, "shape", shape->dim[k])) return false;
    if (at_is_nil(fill))
        ati_fail(f, NULL, AT_EARG, "argument 'fill_value' is missing");
    else if (*dtype == AT_NODTYPE)
        *dtype = dtype_of_value(f, be, at_is_nil(like) ? fill : like);
    if (*dtype == AT_OTHER)
        ati_fail(f, NULL, AT_EDTYPE,
                 "argument 'dtype': expected a bool, integer or floating dtype, found %s's own",
                 be->name);
    return !at_failed(f) && ati_check_fits(f, "fill_value", fill, *dtype);
}

/* A stop need not fit the dtype, but some integer: beyond 64 bits it would be rounded. */
static bool check_bound(at_frame *f, const char *name, at_array bound, at_dtype dtype)
{
    const at_scalar *s = bound.be == &at_weak ? bound.p : NULL;
    return s == NULL || s->kind != AT_WEAK_INT || s->range != AT_FITS_NONE ||
           ati_check_fits(f, name, bound, dtype);
}

static bool check_bound_rank(at_frame *f, const char *name, at_array bound)
{
    char text[120];
    at_shape shape;
    if (at_shape_of(f, bound, &shape) == AT_OK && shape.ndim != 0)
        ati_fail(f, NULL, AT_ESHAPE,
                 "argument '%s': expected a number or a 0-d array, found shape %s", name,
                 show(text, sizeof text, &shape));
    return !at_failed(f);
}

bool ati_settle_arange(at_frame *f, const at_backend *be, at_array *start, at_array *stop,
                       at_array *step, at_dtype *dtype)
{
    if (at_is_nil(*step)) *step = ati_one;
    if (at_is_nil(*stop)) {
        *stop = *start;
        *start = ati_zero;
    }
    const at_array bounds[] = {*start, *stop, *step};
    for (int i = 0; i < 3; i++)
        if (at_is_nil(bounds[i])) ati_fail(f, NULL, AT_EARG, "argument 'start' is missing");
    if (at_failed(f)) return false;
    if (step->be == &at_weak && ((const at_scalar *)step->p)->d == 0)
        ati_fail(f, NULL, AT_EVALUE, "argument 'step': expected a step that is not 0, found 0");
    bool floating = false;
    for (int i = 0; i < 3; i++)
        if (!check_bound_rank(f, i == 0 ? "start" : i == 1 ? "stop" : "step", bounds[i]))
            return false;
    for (int i = 0; i < 3; i++)
        floating = ati_is_float(dtype_of_value(f, be, bounds[i])) || floating;
    if (*dtype == AT_NODTYPE) *dtype = be->default_dtype(be, floating ? 'f' : 'i');
    return !at_failed(f) && check_bound(f, "start", *start, *dtype) &&
           check_bound(f, "stop", *stop, *dtype) && check_bound(f, "step", *step, *dtype);
}
