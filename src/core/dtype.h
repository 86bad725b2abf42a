/* What the library itself asks of dtypes; see dtype.c for the promotion rule. */
#ifndef ATI_DTYPE_H
#define ATI_DTYPE_H

#include "anytensor/types.h"

/* 'b'ool, 'i'nt, 'u'nsigned, 'f'loat, or 0 for AT_NODTYPE and AT_OTHER. */
char ati_dtype_kind(at_dtype dtype);

static inline bool ati_is_float(at_dtype t) { return t >= AT_FLOAT16 && t <= AT_FLOAT64; }
static inline bool ati_is_half(at_dtype t) { return t == AT_FLOAT16 || t == AT_BFLOAT16; }
static inline bool ati_is_integer(at_dtype t) { return t >= AT_INT8 && t <= AT_UINT64; }

/* The greatest finite number of a float dtype. */
double ati_float_most(at_dtype t);

/* Common dtype of two arrays; neither is AT_NODTYPE or AT_OTHER. */
at_dtype ati_dtype_promote(at_dtype a, at_dtype b, at_dtype default_float);

/* Whether an integer scalar has a value of this integer dtype. */
bool ati_int_fits(at_dtype dtype, const at_scalar *s);

/* The least or the greatest value of an integer dtype. */
at_scalar ati_int_end(at_dtype dtype, bool least);

#endif
