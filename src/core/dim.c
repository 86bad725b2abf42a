/* Sizes: plain numbers with checked arithmetic, or symbols that the framework is asked about, and only
 * what an op needs: size + k, and whether two sizes are equal. */
#include "anytensor/backend.h"
#include "anytensor/ops.h"
#include "core/dim.h"

at_dim at_dim_plus(at_frame *f, at_dim size, int64_t k)
{
    if (at_failed(f)) return AT_DIM(0);
    if (at_is_nil(size.sym)) {
        if (__builtin_add_overflow(size.n, k, &size.n))
            at_error(f->cx, AT_EVALUE, "a size is too large");
        return size;
    }
    at_array sum = AT_NIL;
    at_status status = size.sym.be->dim_plus(f->cx, size.sym, k, &sum);
    if (status != AT_OK) {
        at_error(f->cx, status, "size arithmetic failed in %s", size.sym.be->name);
        return AT_DIM(0);
    }
    return (at_dim){0, at_keep(f, sum)};
}

bool ati_dim_equal(at_frame *f, at_dim a, at_dim b)
{
    if (at_is_nil(a.sym) && at_is_nil(b.sym)) return a.n == b.n;
    if (at_failed(f)) return false;
    const at_backend *be = at_is_nil(a.sym) ? b.sym.be : a.sym.be;
    bool equal = false;
    at_status status = be->dim_equal(f->cx, be, a, b, &equal);
    if (status != AT_OK) at_error(f->cx, status, "sizes cannot be compared in %s", be->name);
    return equal;
}

at_status at_shape_of(at_frame *f, at_array x, at_shape *out)
{
    out->ndim = 0;
    if (at_failed(f)) return f->cx->status;
    if (at_is_nil(x)) return at_error(f->cx, AT_EARG, "expected an array, found nil");
    if (x.be->traits & AT_WEAK) return AT_OK; /* a scalar is 0-d */
    at_status status = x.be->shape(f->cx, x, out);
    if (status != AT_OK)
        return at_error(f->cx, status, "the shape cannot be read in %s", x.be->name);
    for (int k = 0; k < out->ndim; k++)
        if (!at_is_nil(out->dim[k].sym)) at_keep(f, out->dim[k].sym);
    return f->cx->status;
}

at_status at_dtype_of(at_frame *f, at_array x, at_dtype *out)
{
    *out = AT_NODTYPE;
    if (at_failed(f)) return f->cx->status;
    if (at_is_nil(x)) return at_error(f->cx, AT_EARG, "expected an array, found nil");
    at_status status = x.be->dtype(f->cx, x, out);
    if (status != AT_OK)
        return at_error(f->cx, status, "the dtype cannot be read in %s", x.be->name);
    return AT_OK;
}
