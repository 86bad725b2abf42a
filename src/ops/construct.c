/* Constructors: all are at_full() with something known. */
#include "ops/formula.h"

at_array ati_zeros(at_frame *f, const at_shape *shape, at_dtype dtype, at_array like)
{
    return at_full(f, shape, ati_zero_float, dtype, like);
}

at_array ati_ones(at_frame *f, const at_shape *shape, at_dtype dtype, at_array like)
{
    return at_full(f, shape, ati_one_float, dtype, like);
}

at_array ati_full_like(at_frame *f, at_array x, at_array fill_value, at_dtype dtype)
{
    at_shape shape;
    if (at_shape_of(f, x, &shape) != AT_OK) return AT_NIL;
    return at_full(f, &shape, fill_value, dtype, x);
}

at_array ati_zeros_like(at_frame *f, at_array x, at_dtype dtype)
{
    return at_full_like(f, x, ati_zero, dtype);
}

at_array ati_ones_like(at_frame *f, at_array x, at_dtype dtype)
{
    return at_full_like(f, x, ati_one, dtype);
}
