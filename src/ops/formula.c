/* Helpers that several formulas share. */
#include "anytensor/native.h"
#include "ops/formula.h"

static const at_scalar zero = {.kind = AT_WEAK_INT, .i = 0, .d = 0};
static const at_scalar one = {.kind = AT_WEAK_INT, .i = 1, .d = 1};
static const at_scalar zero_float = {.kind = AT_WEAK_FLOAT, .d = 0};
static const at_scalar one_float = {.kind = AT_WEAK_FLOAT, .d = 1};

const at_array ati_zero = {(void *)&zero, &at_weak};
const at_array ati_one = {(void *)&one, &at_weak};
const at_array ati_zero_float = {(void *)&zero_float, &at_weak};
const at_array ati_one_float = {(void *)&one_float, &at_weak};

at_array ati_against(at_frame *f, at_array vector, int ndim)
{
    if (ndim <= 1 || at_failed(f)) return vector;
    at_shape shape = {.ndim = ndim};
    shape.dim[0] = AT_DIM(-1);
    for (int k = 1; k < ndim; k++) shape.dim[k] = AT_DIM(1);
    return at_reshape(f, vector, &shape);
}

at_array ati_size_operand(at_scalar *place, at_dim size)
{
    return at_is_nil(size.sym) ? at_scalar_int(place, size.n) : size.sym;
}

at_array ati_value_as(at_frame *f, at_array value, at_dtype dtype, at_array like)
{
    if (at_failed(f)) return AT_NIL;
    if (!(value.be->traits & AT_WEAK)) return at_astype(f, value, dtype);
    const at_shape scalar = {.ndim = 0};
    return at_full(f, &scalar, value, dtype, like);
}

bool ati_tracked(at_frame *f, at_array x)
{
    if (at_failed(f) || (f->cx->flags & AT_UNTRACKED)) return false;
    return x.be->tracked != NULL && x.be->tracked(f->cx, x);
}
