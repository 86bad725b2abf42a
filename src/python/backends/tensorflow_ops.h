/* The ops that this library adds to TensorFlow (tensorflow_ops.c). No Python here: kernels run without the GIL.
 *
 * pf_ is shared between the files of the TensorFlow adapter. */
#ifndef PF_TENSORFLOW_OPS_H
#define PF_TENSORFLOW_OPS_H

#include "anytensor/types.h"

/* X(name, its name in TensorFlow, operands, dtype of the result, a row per id or per segment).
 * Operands: 'x' data with a row per id, 's' data with a row per segment, 'c' a number of the data's
 * dtype, 'i' ids, 'n' the number of segments in two
 * digits of PF_RADIX (TensorFlow keeps each Python number that it has made a tensor of, for ever: a number per
 * size would be a leak). AT_NODTYPE: the data's. Ids outside [0, n) are dropped, their rows of a result are zero. */
#define PF_OPS(X)                                                                                  \
    X(segment_sum, "AnytensorSegmentSum", "xinn", AT_NODTYPE, false)                               \
    X(segment_mean, "AnytensorSegmentMean", "xinn", AT_NODTYPE, false)                             \
    X(segment_min, "AnytensorSegmentMin", "xinn", AT_NODTYPE, false)                               \
    X(segment_max, "AnytensorSegmentMax", "xinn", AT_NODTYPE, false)                               \
    X(segment_min_or, "AnytensorSegmentMinOr", "xicnn", AT_NODTYPE, false)                         \
    X(segment_max_or, "AnytensorSegmentMaxOr", "xicnn", AT_NODTYPE, false)                         \
    X(segment_count, "AnytensorSegmentCount", "inn", AT_FLOAT64, false)                            \
    X(segment_softmax, "AnytensorSegmentSoftmax", "xinn", AT_NODTYPE, true)                        \
    X(segment_normalize, "AnytensorSegmentNormalize", "xinn", AT_NODTYPE, true)                    \
    X(softmax_back, "AnytensorSegmentSoftmaxBack", "xxinn", AT_NODTYPE, true)                      \
    X(extreme_back, "AnytensorSegmentExtremeBack", "xssi", AT_NODTYPE, true)                       \
    X(spread, "AnytensorSpread", "si", AT_NODTYPE, true)                                           \
    X(slot_ids, "AnytensorSlotIds", "inn", AT_INT64, true)                                         \
    X(slot_kept, "AnytensorSlotKept", "inn", AT_BOOL, true)                                        \
    X(slot_count, "AnytensorSlotCount", "inn", AT_INT64, false)                                    \
    X(partition_ids, "AnytensorPartitionIds", "inn", AT_INT64, false)

#define PF_RADIX 4096
#define PF_MOST_OPERANDS 5

typedef enum pf_op {
#define X(name, ...) PF_OP_##name,
    PF_OPS(X)
#undef X
        PF_OP_COUNT
} pf_op;

const char *pf_op_name(pf_op op);

/* Registers all of them, once in a process; false where this TensorFlow has no such door. The caller holds the GIL, and has
 * seen that no other copy of this library was here before. */
bool pf_register_ops(void);

/* A dtype by TensorFlow's number; AT_OTHER where the library has no name for it. */
at_dtype pf_dtype_numbered(long number);

#endif
