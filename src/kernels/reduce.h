/* Reductions over a set of axes, and running sums. */
#ifndef ATI_REDUCE_H
#define ATI_REDUCE_H

#include "kernels/host.h"

typedef enum ati_reduction {
    ATI_REDUCE_SUM,  /* empty 0; integers wrap; floats add in double */
    ATI_REDUCE_PROD, /* empty 1; the same */
    ATI_REDUCE_MIN,  /* a NaN gives NaN; empty (better refused before) the greatest value */
    ATI_REDUCE_MAX,  /* the same, the least value */
    ATI_REDUCE_MEAN  /* of floats; empty NaN */
} ati_reduction;

/* Reduces the axes whose bit is set. out: the other axes of x, row-major, in x's dtype or a wider one; axes of
 * size 1 in place of the reduced ones make no difference. False only for no memory. */
bool ati_k_reduce(ati_reduction op, const ati_host *x, uint32_t axes, ati_host *out);

/* Running sum along an axis in [0, rank): out has x's shape, row-major, x's dtype or a wider one. Integers
 * wrap; floats add in double. */
void ati_k_cumsum(const ati_host *x, int axis, ati_host *out);

#endif
