/* Arithmetic on one element at a time, or on two. Views have out's shape (stretch them with
 * ati_k_broadcast()); out is row-major. All return false, and write nothing, where the op has no meaning for
 * the dtype. */
#ifndef ATI_ELEMENTWISE_H
#define ATI_ELEMENTWISE_H

#include "kernels/host.h"

/* exp, log, sqrt of floats, into their dtype; tests of any dtype, into bool. */
typedef enum ati_unary {
    ATI_EXP,
    ATI_LOG,
    ATI_SQRT,
    ATI_IS_NAN,
    ATI_IS_INF,
    ATI_IS_FINITE
} ati_unary;

bool ati_k_unary(ati_unary op, const ati_host *x, ati_host *out);

/* x and y have one dtype. Integers wrap; bool adds as "or", multiplies as "and", and is not subtracted; only
 * floats are divided; a NaN on either side is the maximum and the minimum; ATI_EQUAL gives bool, the others x's
 * dtype. */
typedef enum ati_binary {
    ATI_ADD,
    ATI_SUB,
    ATI_MUL,
    ATI_DIV,
    ATI_MAXIMUM,
    ATI_MINIMUM,
    ATI_EQUAL
} ati_binary;

bool ati_k_binary(ati_binary op, const ati_host *x, const ati_host *y, ati_host *out);

#endif
