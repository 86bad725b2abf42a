/* The backend of Python-style scalars: a static table with a dtype slot that tells the kind, and no ops.
 * Scalars never reach an op's slot; promotion makes 0-d arrays of them first. */
#include "anytensor/backend.h"
#include "anytensor/native.h"

static void nothing(void *p) { (void)p; }

static at_status kind_of(at_context *cx, at_array a, at_dtype *out)
{
    (void)cx;
    static const at_dtype of[] = {
        [AT_WEAK_BOOL] = AT_BOOL, [AT_WEAK_INT] = AT_INT64, [AT_WEAK_FLOAT] = AT_FLOAT64};
    *out = of[((const at_scalar *)a.p)->kind];
    return AT_OK;
}

const at_backend at_weak = {
    .name = "scalar", .traits = AT_WEAK, .retain = nothing, .release = nothing, .dtype = kind_of};

at_array at_scalar_float(at_scalar *place, double value)
{
    *place = (at_scalar){.kind = AT_WEAK_FLOAT, .d = value};
    return (at_array){place, &at_weak};
}

at_array at_scalar_int(at_scalar *place, int64_t value)
{
    *place = (at_scalar){.kind = AT_WEAK_INT, .i = value, .d = (double)value};
    return (at_array){place, &at_weak};
}

at_array at_scalar_bool(at_scalar *place, bool value)
{
    *place = (at_scalar){.kind = AT_WEAK_BOOL, .i = value, .d = value};
    return (at_array){place, &at_weak};
}
