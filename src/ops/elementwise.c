/* Elementwise composites. */
#include <math.h>

#include "anytensor/native.h"
#include "core/dtype.h"
#include "ops/formula.h"

at_array ati_rsqrt(at_frame *f, at_array x)
{
    at_array root = at_sqrt(f, x);
    return at_div(f, ati_one, root);
}

at_array ati_fill_nan(at_frame *f, at_array x, at_array value)
{
    at_array gaps = at_is_nan(f, x);
    return at_where(f, gaps, value, x);
}

/* The lower bound first: where min > max, max wins everywhere. */
at_array ati_clip(at_frame *f, at_array x, at_array min, at_array max)
{
    if (!at_is_nil(min)) x = at_maximum(f, x, min);
    return at_is_nil(max) ? x : at_minimum(f, x, max);
}

/* --- NaN and infinities ------------------------------------------------------------------------------ */

void ati_fill_nan_mask(at_frame *f, at_array x, at_array value, at_array *out)
{
    out[1] = at_is_nan(f, x);
    out[0] = at_where(f, out[1], value, x);
}

static bool is_nan_scalar(at_array a)
{
    return a.be == &at_weak && isnan(((const at_scalar *)a.p)->d);
}

/* Beside a NaN of x it is y that decides; elsewhere a NaN of y equals nothing. A scalar decides at once. */
at_array ati_equal_nan(at_frame *f, at_array x, at_array y)
{
    at_array array = x.be->traits & AT_WEAK ? y : x, other = x.be->traits & AT_WEAK ? x : y;
    if (is_nan_scalar(other)) return at_is_nan(f, array);
    at_array same = at_equal(f, array, other);
    if (other.be->traits & AT_WEAK) return same;
    at_array gaps = at_is_nan(f, array), others = at_is_nan(f, other);
    return at_where(f, gaps, others, same);
}

/* What takes the place of an element: a scalar as it is, an array in x's dtype. */
static at_array filling(at_frame *f, at_array value, at_dtype t)
{
    return at_failed(f) || value.be->traits & AT_WEAK ? value : at_astype(f, value, t);
}

/* y, whose last use this is, where x is not an infinity of this sign; nil stands for the finite number next to it. */
static at_array without_infinity(at_frame *f, at_array x, at_array y, double infinity,
                                 at_array value, at_dtype t)
{
    at_scalar of, most;
    at_array there = at_equal(f, x, at_scalar_float(&of, infinity));
    if (at_is_nil(value)) value = at_scalar_float(&most, copysign(ati_float_most(t), infinity));
    at_array number = filling(f, value, t);
    at_array z = at_where(f, there, number, y);
    at_drop(f, there);
    return ati_spent(f, z, y);
}

at_array ati_nan_to_num(at_frame *f, at_array x, at_array nan, at_array posinf, at_array neginf)
{
    at_dtype t;
    if (at_dtype_of(f, x, &t) != AT_OK || !ati_is_float(t)) return x;
    at_array number = filling(f, nan, t);
    at_array y = at_fill_nan(f, x, number);
    y = without_infinity(f, x, y, (double)INFINITY, posinf, t);
    return without_infinity(f, x, y, -(double)INFINITY, neginf, t);
}
