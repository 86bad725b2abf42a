/* A backend that is not native: each slot, stamped from the table, asks a hook and then forwards to the native one.
 *
 * The hook sees every call below the formulas: it counts, fails the k-th, or declines. Handles of the proxy hold
 * native arrays, so results can be read; to the library it is a framework of its own, which native arrays join.
 * With proxy_symbolic its sizes are symbols whose n is rubbish, as while a framework traces. */
#ifndef TESTS_PROXY_H
#define TESTS_PROXY_H

#include "fixture.h"

static at_backend proxy; /* filled by proxy_make() */

/** Asked before each slot call: AT_OK forwards, AT_DECLINE or an error is returned in its place. */
static at_status (*proxy_before)(at_context *cx, const char *slot);
static void (*proxy_after)(void);
static bool proxy_symbolic;

static inline at_array proxied(at_array a) { return at_is_nil(a) ? a : (at_array){a.p, &proxy}; }

static inline at_array unproxied(at_array a)
{
    return a.be == &proxy ? (at_array){a.p, at_native()} : a;
}

/* --- sizes that only run time knows: 0-d native arrays --------------------------------------- */

static inline at_dim proxy_number(at_dim d)
{
    int64_t n = d.n;
    if (!at_is_nil(d.sym)) memcpy(&n, at_native_data(unproxied(d.sym)), sizeof n);
    return AT_DIM(n);
}

static inline at_status proxy_symbol(at_context *cx, int64_t n, at_array *out)
{
    at_scalar s;
    at_array number = at_scalar_int(&s, n);
    at_status status = at_native()->from_scalar(cx, at_native(), number, AT_INT64, AT_NIL, out);
    if (status == AT_OK) *out = proxied(*out);
    return status;
}

static inline const at_shape *proxy_numbers(const at_shape *shape)
{
    static at_shape numbers;
    numbers = *shape;
    for (int k = 0; k < shape->ndim; k++) numbers.dim[k] = proxy_number(shape->dim[k]);
    return &numbers;
}

/* --- slots of the table ---------------------------------------------------------------------- */

static inline at_list proxy_list(at_list list)
{
    static at_array arrays[64];
    for (int i = 0; i < list.count; i++) arrays[i] = unproxied(list.array[i]);
    return (at_list){list.count, arrays};
}

#define PROXY_DATA(a) unproxied(a)
#define PROXY_MAYBE(a) unproxied(a)
#define PROXY_INDEX(a) unproxied(a)
#define PROXY_MASK(a) unproxied(a)
#define PROXY_VALUE(a) unproxied(a)
#define PROXY_BOUND(a) unproxied(a)
#define PROXY_LIKE(a) unproxied(a)
#define PROXY_LIST(a) proxy_list(a)
#define PROXY_SIZE(d) proxy_number(d)
#define PROXY_MAYBE_SIZE(d) proxy_number(d)
#define PROXY_SHAPE(s) proxy_numbers(s)
#define PROXY_CUTS(v) v
#define PROXY_AXES(v) v
#define PROXY_AXIS(v) v
#define PROXY_FLAG(v) v
#define PROXY_DTYPE(v) v
#define PROXY_DEVICE(v) v
#define PROXY_ARG(name, role, text, how) , PROXY_##role(name)

static inline at_status proxy_begin(at_context *cx, const char *slot)
{
    return proxy_before ? proxy_before(cx, slot) : AT_OK;
}

static inline at_status proxy_end(at_status status, at_array *out)
{
    if (status == AT_OK) *out = proxied(*out);
    if (proxy_after) proxy_after();
    return status;
}

/* A bound that the wrapper has left to the framework, since the size was a symbol. */
static inline at_dim proxy_bound(at_dim bound, int64_t n)
{
    int64_t k = proxy_number(bound).n;
    k = k == INT64_MIN ? n : k < 0 ? k + n : k;
    return AT_DIM(k < 0 ? 0 : k > n ? n : k);
}

static at_status proxy_slice(at_context *cx, const at_backend *be, at_array x, at_dim start,
                             at_dim stop, int axis, at_array *out)
{
    (void)be;
    at_status status = proxy_begin(cx, "slice");
    if (status != AT_OK) return status;
    int64_t n = at_native_sizes(unproxied(x))[axis];
    at_dim from = proxy_bound(start, n), to = proxy_bound(stop, n);
    if (to.n < from.n) to = from;
    status = at_native()->slice(cx, at_native(), unproxied(x), from, to, axis, out);
    return proxy_end(status, out);
}

#define SLICE(...) /* above */
#define OP(kind, name, ...)                                                                        \
    static at_status proxy_##name(at_context *cx, const at_backend *be ATI_SIG_##kind(ATI_PARAM),  \
                                  at_array *out)                                                   \
    {                                                                                              \
        (void)be;                                                                                  \
        at_status status = proxy_begin(cx, #name);                                                 \
        if (status != AT_OK) return status;                                                        \
        if (!at_native()->name) return AT_DECLINE;                                                 \
        status = at_native()->name(cx, at_native() ATI_SIG_##kind(PROXY_ARG), out);                \
        return proxy_end(status, out);                                                             \
    }
#include "anytensor/ops.def"

/* --- the others ------------------------------------------------------------------------------ */

static at_status proxy_dtype(at_context *cx, at_array a, at_dtype *out)
{
    at_status status = proxy_begin(cx, "dtype");
    return status != AT_OK ? status : at_native()->dtype(cx, unproxied(a), out);
}

static at_status proxy_shape(at_context *cx, at_array a, at_shape *out)
{
    at_status status = proxy_begin(cx, "shape");
    if (status == AT_OK) status = at_native()->shape(cx, unproxied(a), out);
    for (int k = 0; status == AT_OK && proxy_symbolic && k < out->ndim; k++) {
        at_array symbol = AT_NIL;
        status = proxy_symbol(cx, out->dim[k].n, &symbol);
        out->dim[k] = (at_dim){-77, symbol};
        for (int done = 0; status != AT_OK && done < k; done++) at_release(out->dim[done].sym);
    }
    return status;
}

static at_dtype proxy_default_dtype(const at_backend *be, char kind)
{
    (void)be;
    return at_native()->default_dtype(at_native(), kind);
}

static at_status proxy_adopt(at_context *cx, const at_backend *be, at_array a, at_array like,
                             at_array *out)
{
    (void)be;
    (void)like;
    at_status status = proxy_begin(cx, "adopt");
    if (status != AT_OK) return status;
    at_retain(a);
    *out = a;
    return proxy_end(AT_OK, out);
}

static at_status proxy_from_scalar(at_context *cx, const at_backend *be, at_array scalar,
                                   at_dtype dtype, at_array like, at_array *out)
{
    (void)be;
    at_status status = proxy_begin(cx, "from_scalar");
    if (status != AT_OK) return status;
    status = at_native()->from_scalar(cx, at_native(), scalar, dtype, unproxied(like), out);
    return proxy_end(status, out);
}

static at_status proxy_to_size(at_context *cx, at_array a, at_dim *out)
{
    at_status status = proxy_begin(cx, "to_size");
    return status != AT_OK ? status : at_native()->to_size(cx, unproxied(a), out);
}

static at_status proxy_dim_plus(at_context *cx, at_array sym, int64_t k, at_array *out)
{
    at_status status = proxy_begin(cx, "dim_plus");
    return status != AT_OK ? status : proxy_symbol(cx, proxy_number((at_dim){0, sym}).n + k, out);
}

static at_status proxy_dim_equal(at_context *cx, const at_backend *be, at_dim a, at_dim b,
                                 bool *out)
{
    (void)be;
    *out = proxy_number(a).n == proxy_number(b).n;
    return proxy_begin(cx, "dim_equal");
}

static at_status proxy_peek(at_context *cx, at_array a, bool needed, int64_t *sum, int64_t *least,
                            bool *known)
{
    at_status status = proxy_begin(cx, "peek");
    return status != AT_OK ? status
                           : at_native()->peek(cx, unproxied(a), needed, sum, least, known);
}

static bool proxy_tracked(at_context *cx, at_array a)
{
    (void)cx;
    (void)a;
    return true;
}

/** The proxy as a framework: no derivative, sizes known, sums of half types as the native backend does them. */
static inline const at_backend *proxy_make(void)
{
    proxy_before = NULL;
    proxy_after = NULL;
    proxy_symbolic = false;
    proxy = (at_backend){
        .name = "proxy",
        .traits = (at_native()->traits & AT_WIDE_SUMS) | AT_TAKES_SYMBOLS,
        .retain = at_native()->retain,
        .release = at_native()->release,
        .dtype = proxy_dtype,
        .shape = proxy_shape,
        .default_dtype = proxy_default_dtype,
        .adopt = proxy_adopt,
        .from_scalar = proxy_from_scalar,
        .to_size = proxy_to_size,
        .dim_plus = proxy_dim_plus,
        .dim_equal = proxy_dim_equal,
        .peek = at_native()->peek ? proxy_peek : NULL,
#define OP(kind, name, ...) .name = proxy_##name,
#include "anytensor/ops.def"
    };
    return &proxy;
}

/** The same where derivatives are taken everywhere and half types are added in half. */
static inline const at_backend *proxy_make_tracked(void)
{
    proxy_make();
    proxy.tracked = proxy_tracked;
    proxy.traits &= ~(unsigned)AT_WIDE_SUMS;
    return &proxy;
}

#endif
