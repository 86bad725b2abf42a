/* Native arrays from values: scalars, constants, ranges; and values from native arrays: sizes. */
#include <inttypes.h>
#include <math.h>

#include "backends/native/native_array.h"
#include "kernels/move.h"

/* --- scalars --- */

/* A 0-d view of a scalar's value, exact where the scalar is. */
static ati_host scalar_view(at_scalar *s)
{
    if (s->kind != AT_WEAK_INT || s->range == AT_FITS_NONE)
        return ati_k_view(&s->d, AT_FLOAT64, 0, NULL);
    return ati_k_view(&s->i, s->range == AT_FITS_INT64 ? AT_INT64 : AT_UINT64, 0, NULL);
}

ati_host ati_native_value(at_array a, at_scalar *place)
{
    if (a.be != &at_weak) return *view_of(a);
    *place = *(const at_scalar *)a.p;
    return scalar_view(place);
}

at_status ati_native_from_scalar(at_context *cx, const at_backend *be, at_array scalar,
                                 at_dtype dtype, at_array like, at_array *out)
{
    (void)be;
    (void)like;
    at_scalar s;
    ati_host from = ati_native_value(scalar, &s);
    native_array *a = ati_native_new(cx, dtype, 0, NULL);
    if (a != NULL) ati_k_copy(&from, &a->view);
    return ati_native_give(cx, a, out);
}

/* Reads a 0-d array of integers; false where the value is no int64. */
static bool read_int(const ati_host *view, int64_t *out)
{
    ati_host to = ati_k_view(out, AT_INT64, 0, NULL);
    ati_k_copy(view, &to);
    return view->dtype != AT_UINT64 || *out >= 0;
}

at_status ati_native_to_size(at_context *cx, at_array a, at_dim *out)
{
    const ati_host *view = view_of(a);
    int64_t n = 0;
    if (view->ndim != 0 || view->dtype < AT_INT8 || view->dtype > AT_UINT64)
        return at_error(cx, AT_EARG, "expected a 0-d integer array as a size, found shape %s of %s",
                        ati_native_shape_text(view).text, at_dtype_name(view->dtype));
    if (!read_int(view, &n))
        return at_error(cx, AT_EVALUE, "a size of %" PRIu64 " is too large", (uint64_t)n);
    *out = AT_DIM(n);
    return AT_OK;
}

/* --- constants --- */

static at_status numbers(at_context *cx, const at_shape *shape, int64_t *dims)
{
    for (int k = 0; k < shape->ndim; k++)
        if (ati_native_size(cx, shape->dim[k], &dims[k]) != AT_OK) return cx->status;
    return AT_OK;
}

static at_dtype fill_dtype(at_dtype asked, at_array like, at_array fill)
{
    if (asked != AT_NODTYPE) return asked;
    if (!at_is_nil(like)) return view_of(like)->dtype;
    at_scalar s;
    if (fill.be != &at_weak) return view_of(fill)->dtype;
    s = *(const at_scalar *)fill.p;
    return s.kind == AT_WEAK_BOOL ? AT_BOOL : s.kind == AT_WEAK_INT ? AT_INT64 : AT_FLOAT64;
}

at_status ati_native_full(at_context *cx, const at_backend *be, const at_shape *shape,
                          at_array fill_value, at_dtype dtype, at_array like, at_array *out)
{
    (void)be;
    at_scalar s;
    int64_t dims[AT_MAX_NDIM];
    if (numbers(cx, shape, dims) != AT_OK) return cx->status;
    ati_host fill = ati_native_value(fill_value, &s), asked = fill;
    native_array *a = ati_native_new(cx, fill_dtype(dtype, like, fill_value), shape->ndim, dims);
    if (a == NULL) return cx->status;
    if (!ati_k_broadcast(&fill, shape->ndim, dims)) {
        at_error(cx, AT_ESHAPE, "a fill_value of shape %s does not broadcast to shape %s",
                 ati_native_shape_text(&asked).text, ati_native_shape_text(&a->view).text);
        ati_native_release(a);
        return cx->status;
    }
    ati_k_copy(&fill, &a->view);
    return ati_native_give(cx, a, out);
}

/* --- ranges --- */

/* A bound or a step: an int64, or (real) a double. */
typedef struct number {
    bool real;
    int64_t i;
    double d;
} number;

static at_status read_number(at_context *cx, const char *name, at_array a, int64_t missing,
                             number *out)
{
    at_scalar s;
    *out = (number){.i = missing, .d = (double)missing};
    if (at_is_nil(a)) return AT_OK;
    ati_host view = ati_native_value(a, &s), d = ati_k_view(&out->d, AT_FLOAT64, 0, NULL);
    if (view.ndim != 0)
        return at_error(cx, AT_ESHAPE, "argument '%s': expected a scalar, found shape %s", name,
                        ati_native_shape_text(&view).text);
    ati_k_copy(&view, &d);
    /* A bool scalar is read as a double by ati_native_value(), and counts as an integer here. */
    bool is_bool = a.be == &at_weak && s.kind == AT_WEAK_BOOL;
    bool huge = a.be == &at_weak && s.kind == AT_WEAK_INT && s.range != AT_FITS_INT64;
    out->real = view.dtype >= AT_FLOAT16 && !is_bool && !huge;
    if (!out->real && (huge || !read_int(&view, &out->i)))
        return at_error(cx, AT_EOVERFLOW, "argument '%s': %.17g does not fit in an int64", name,
                        out->d);
    return AT_OK;
}

/* ceil((stop - start) / step) without overflow: distances between two int64 fit in a uint64. */
static uint64_t count_int(int64_t start, int64_t stop, int64_t step)
{
    uint64_t up = (uint64_t)stop - (uint64_t)start;
    if (step > 0) return stop > start ? (up - 1) / (uint64_t)step + 1 : 0;
    return stop < start ? (0 - up - 1) / (0 - (uint64_t)step) + 1 : 0;
}

static at_status count_of(at_context *cx, const number v[3], bool real, int64_t *count)
{
    if (v[2].d == 0)
        return at_error(cx, AT_EVALUE, "argument 'step': expected a step that is not 0, found 0");
    if (!real) {
        uint64_t n = count_int(v[0].i, v[1].i, v[2].i);
        if (n > INT64_MAX) return at_error(cx, AT_EVALUE, "%" PRIu64 " values are too many", n);
        *count = (int64_t)n;
        return AT_OK;
    }
    double n = ceil((v[1].d - v[0].d) / v[2].d);
    if (!(n < 0x1p62))
        return at_error(cx, AT_EVALUE, "there are %g values from %g to %g by %g", n, v[0].d, v[1].d,
                        v[2].d);
    *count = n > 0 ? (int64_t)n : 0;
    return AT_OK;
}

at_status ati_native_arange(at_context *cx, const at_backend *be, at_array start, at_array stop,
                            at_array step, at_dtype dtype, at_array like, const void *device,
                            at_array *out)
{
    (void)be;
    (void)like;
    (void)device;
    number v[3];
    int64_t count = 0;
    bool one_bound = at_is_nil(stop);
    if (read_number(cx, "start", one_bound ? AT_NIL : start, 0, &v[0]) != AT_OK ||
        read_number(cx, one_bound ? "start" : "stop", one_bound ? start : stop, 0, &v[1]) !=
            AT_OK ||
        read_number(cx, "step", step, 1, &v[2]) != AT_OK)
        return cx->status;
    bool real = v[0].real || v[1].real || v[2].real;
    if (count_of(cx, v, real, &count) != AT_OK) return cx->status;
    if (dtype == AT_NODTYPE) dtype = real ? AT_FLOAT64 : AT_INT64;
    native_array *a = ati_native_new(cx, dtype, 1, &count);
    if (a != NULL && real)
        ati_k_ramp_float(v[0].d, v[2].d, &a->view);
    else if (a != NULL)
        ati_k_ramp_int(v[0].i, v[2].i, &a->view);
    return ati_native_give(cx, a, out);
}
