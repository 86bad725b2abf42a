/* Element types: names, sizes, and the one promotion table of the library.
 *
 * Between arrays: NumPy's rule for bool and integers; an integer beside a float takes the float's type;
 * float16 beside bfloat16 gives float32; uint64 beside a signed integer has no common integer and gives
 * the default float. */
#include <float.h>
#include <string.h>

#include "anytensor/ops.h"
#include "core/dtype.h"

static const struct {
    const char *name;
    uint8_t size;
    char kind;
} info[] = {
    [AT_NODTYPE] = {"none", 0, 0},
#define X(name, NAME, size, kind) [AT_##NAME] = {#name, size, kind},
    AT_DTYPES(X)
#undef X
        [AT_OTHER] = {"a type of the framework's own", 0, 0},
};

const char *at_dtype_name(at_dtype dtype) { return info[dtype].name; }

size_t at_dtype_size(at_dtype dtype) { return info[dtype].size; }

char ati_dtype_kind(at_dtype dtype) { return info[dtype].kind; }

at_dtype at_dtype_named(const char *name)
{
    for (int t = AT_BOOL; t < AT_OTHER; t++)
        if (strcmp(info[t].name, name) == 0) return (at_dtype)t;
    return AT_NODTYPE;
}

double ati_float_most(at_dtype t)
{
    return t == AT_FLOAT16    ? 65504.0
           : t == AT_BFLOAT16 ? 3.3895313892515355e38
           : t == AT_FLOAT32  ? (double)FLT_MAX
                              : DBL_MAX;
}

/* The signed type of at least the given number of bytes. */
static at_dtype signed_of(int bytes)
{
    return bytes <= 1 ? AT_INT8 : bytes == 2 ? AT_INT16 : bytes == 4 ? AT_INT32 : AT_INT64;
}

static at_dtype wider(at_dtype a, at_dtype b) { return info[a].size >= info[b].size ? a : b; }

/* A signed and an unsigned integer: the signed type that holds both, if there is one. */
static at_dtype mixed_sign(at_dtype is, at_dtype us, at_dtype default_float)
{
    if (info[us].size == 8) return default_float;
    return wider(is, signed_of(2 * info[us].size));
}

at_dtype ati_dtype_promote(at_dtype a, at_dtype b, at_dtype default_float)
{
    char ka = info[a].kind, kb = info[b].kind;
    if (a == b || kb == 'b') return a;
    if (ka == 'b') return b;
    if (ka == kb) return ka == 'f' && info[a].size == info[b].size ? AT_FLOAT32 : wider(a, b);
    if (ka == 'f' || kb == 'f') return ka == 'f' ? a : b;
    return ka == 'i' ? mixed_sign(a, b, default_float) : mixed_sign(b, a, default_float);
}

bool ati_int_fits(at_dtype dtype, const at_scalar *s)
{
    int bits = 8 * info[dtype].size;
    if (s->range == AT_FITS_NONE) return false;
    if (info[dtype].kind == 'i') {
        int64_t top = (int64_t)((UINT64_C(1) << (bits - 1)) - 1);
        return s->range == AT_FITS_INT64 && s->i >= -top - 1 && s->i <= top;
    }
    if (s->range == AT_FITS_UINT64) return bits == 64;
    return s->i >= 0 && (bits == 64 || s->i < (INT64_C(1) << bits));
}

at_scalar ati_int_end(at_dtype dtype, bool least)
{
    bool is_signed = info[dtype].kind == 'i';
    uint64_t top = UINT64_MAX >> (64 - 8 * info[dtype].size + (is_signed ? 1 : 0));
    at_scalar s = {.kind = AT_WEAK_INT, .i = least ? 0 : (int64_t)top};
    if (least && is_signed) s.i = -(int64_t)top - 1;
    if (!least && top > INT64_MAX) s.range = AT_FITS_UINT64;
    s.d = s.range == AT_FITS_UINT64 ? (double)top : (double)s.i;
    return s;
}
