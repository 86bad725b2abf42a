/* Elementwise composites. */
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
