/* Kernels over segments: rows of x that share an id are folded into one.
 *
 * Ids are vectors of any integer dtype. One outside [0, n) drops its row; every id is compared with the
 * bounds, always. */
#ifndef ATI_SEGMENT_H
#define ATI_SEGMENT_H

#include "kernels/host.h"

typedef enum ati_fold { ATI_FOLD_SUM, ATI_FOLD_MIN, ATI_FOLD_MAX } ati_fold;

/* x (E, ...), ids (E) -> out (n, ...), row-major, fully written. out has x's dtype, or one that x is cast to
 * first. False only for no memory for temporaries.
 *   sum   empty 0; integers wrap; half types add in double; a float32 segment of more than 1,024 rows
 *         adds in double; never bool
 *   min   empty +inf, the greatest integer, True; a NaN gives NaN wherever it stands
 *   max   empty -inf, the least integer, False; the same */
bool ati_k_segment_fold(ati_fold op, const ati_host *x, const ati_host *ids, ati_host *out);

/* Softmax of the rows of each segment, elementwise: x (E, ...), ids (E) -> out (E, ...), row-major, float32 or
 * float64, to which x is cast first. Rows of dropped ids are zero. False only for no memory for temporaries. */
bool ati_k_segment_softmax(const ati_host *x, const ati_host *ids, int64_t n, ati_host *out);

/* How often each id in [0, n) occurs: ids (E) -> out (n), int64. */
void ati_k_segment_count(const ati_host *ids, ati_host *out);

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
