/* Kernels that move elements without arithmetic: copies and casts, gathers, selection, ramps. */
#ifndef ATI_MOVE_H
#define ATI_MOVE_H

#include "kernels/view.h"

/* Copies src to dst, of the same shape, casting as C does but without its undefined cases: a float beyond an
 * integer type gives the nearest value, NaN gives 0; anything but 0 is true. Strided on both sides; they must
 * not overlap. */
void ati_k_copy(const ati_host *src, ati_host *dst);

/* Elements of x at indices (any rank, any integer dtype) along an axis in [0, rank). Negative indices count from
 * the end. False, and out is half written, where an index is out of range.
 * x (B..., N, A...), indices (I...) -> out (B..., I..., A...), row-major, of x's dtype. */
bool ati_k_take(const ati_host *x, const ati_host *indices, int axis, ati_host *out);

/* Rows of x (S, ...) by ids (E) -> out (E, ...). Ids are promised to lie in [0, S); the row of one that does
 * not is zero. */
void ati_k_spread(const ati_host *x, const ati_host *ids, ati_host *out);

/* condition ? x : y. All of out's shape (see ati_k_broadcast()); condition bool, x and y of out's dtype; out
 * row-major. */
void ati_k_where(const ati_host *condition, const ati_host *x, const ati_host *y, ati_host *out);

/* start, start + step, ... into a row-major vector of any dtype; integers wrap. */
void ati_k_ramp_int(int64_t start, int64_t step, ati_host *out);
void ati_k_ramp_float(double start, double step, ati_host *out);

#endif
