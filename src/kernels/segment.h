/* Kernels over segments: rows of x that share an id are folded into one.
 *
 * Ids are vectors of any integer dtype. One outside [0, n) drops its row; every id is compared with the
 * bounds, always. */
#ifndef ATI_SEGMENT_H
#define ATI_SEGMENT_H

#include "kernels/host.h"

typedef enum ati_fold {
    ATI_FOLD_SUM,
    ATI_FOLD_MIN,
    ATI_FOLD_MAX,
    ATI_FOLD_PROD,
    ATI_FOLDS
} ati_fold;

/* x (E, ...), ids (E) -> out (n, ...), row-major, fully written. out has x's dtype, or one that x is cast to
 * first. False only for no memory for temporaries: at most a table of the size of out per thread, and 4 bytes per row.
 *   sum   empty 0; integers wrap; half types add in double; a float32 segment of more than 1,024 rows
 *         adds in double; never bool
 *   min   empty +inf, the greatest integer, True; a NaN gives NaN wherever it stands
 *   max   empty -inf, the least integer, False; the same
 *   prod  empty 1; integers wrap; half types round at each step; never bool */
bool ati_k_segment_fold(ati_fold op, const ati_host *x, const ati_host *ids, ati_host *out);

/* The mean of each segment, 0 where it is empty: x (E, ...), ids (E) -> out (n, ...), row-major, floats, to which x
 * is cast first (half types are added and divided wide). */
bool ati_k_segment_mean(const ati_host *x, const ati_host *ids, ati_host *out);

/* Least or greatest rows as ati_k_segment_fold(), and a constant where a segment is empty (0-d, of any dtype). */
bool ati_k_segment_or_constant(ati_fold op, const ati_host *x, const ati_host *ids,
                               const ati_host *constant, ati_host *out);

/* Softmax of the rows of each segment, elementwise: x (E, ...), ids (E) -> out (E, ...), row-major, floats, to which
 * x is cast first. Half types compute in float32. Rows of dropped ids are zero. */
bool ati_k_segment_softmax(const ati_host *x, const ati_host *ids, int64_t n, ati_host *out);

/* Rows over the sum of their segment, the same otherwise; 0 where the sum is 0. */
bool ati_k_segment_normalize(const ati_host *x, const ati_host *ids, int64_t n, ati_host *out);

/* The derivative of a softmax y, at dy: y (dy - sum of y dy over the segment). y, dy (E, ...), ids (E) -> dx
 * (E, ...), row-major, of y's dtype, a float; rows of dropped ids are zero. */
bool ati_k_segment_softmax_back(const ati_host *y, const ati_host *dy, const ati_host *ids,
                                int64_t n, ati_host *dx);

/* The derivative of a segment's extreme: dpeak of it, shared equally by the elements that reach it. x (E, ...), peak
 * and dpeak (n, ...), ids (E) -> dx (E, ...), row-major, all of one float dtype; elsewhere zero. */
bool ati_k_segment_extreme_back(const ati_host *x, const ati_host *peak, const ati_host *dpeak,
                                const ati_host *ids, ati_host *dx);

/* The number of the first row of each segment that holds its least or greatest element (the first NaN wins), column by
 * column; that of all rows where there is none: x (E, ...) of whole rows, ids (E) -> out (n, ...), int64, row-major. */
bool ati_k_segment_arg(ati_fold op, const ati_host *x, const ati_host *ids, ati_host *out);

/* How often each id in [0, n) occurs: ids (E) -> out (n), int64. False only for no memory. */
bool ati_k_segment_count(const ati_host *ids, ati_host *out);

/* Ids in [0, n) as they are, all others n: ids (E) -> out (E), int64. */
void ati_k_slot_ids(const ati_host *ids, int64_t n, ati_host *out);

/* Whether an id lies in [0, n): ids (E) -> out (E), bool. */
void ati_k_slot_kept(const ati_host *ids, int64_t n, ati_host *out);

/* Sum (clamped to int64) and least element of a vector of integers; 0 and 0 where it is empty. */
void ati_k_counts(const ati_host *counts, int64_t *sum, int64_t *least);

/* k repeated partitions[k] times for each k (negative counts are 0), cut or filled with N to out's length:
 * partitions (N) -> out (total), int64. */
void ati_k_partition_ids(const ati_host *partitions, ati_host *out);

#endif
