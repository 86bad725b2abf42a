/* The ops that this library adds to TensorFlow (tensorflow_ops.c). No Python here: kernels run without the GIL.
 *
 * pf_ is shared between the files of the TensorFlow adapter. */
#ifndef PF_TENSORFLOW_OPS_H
#define PF_TENSORFLOW_OPS_H

#include "anytensor/types.h"

/* X(name, its name in TensorFlow, operands, dtype of the result, a row per id or per segment).
 * Operands: 'x' data with a row per id, 's' data with a row per segment, 'i' ids, 'n' the number of segments.
 * AT_NODTYPE: the data's. Ids outside [0, n) are dropped, their rows of a result are zero. */
#define PF_OPS(X)                                                                                  \
    X(segment_sum, "AnytensorSegmentSum", "xin", AT_NODTYPE, false)                                \
    X(segment_min, "AnytensorSegmentMin", "xin", AT_NODTYPE, false)                                \
    X(segment_max, "AnytensorSegmentMax", "xin", AT_NODTYPE, false)                                \
    X(segment_softmax, "AnytensorSegmentSoftmax", "xin", AT_NODTYPE, true)                         \
    X(spread, "AnytensorSpread", "si", AT_NODTYPE, true)                                           \
    X(slot_ids, "AnytensorSlotIds", "in", AT_INT64, true)                                          \
    X(slot_kept, "AnytensorSlotKept", "in", AT_BOOL, true)                                         \
    X(slot_count, "AnytensorSlotCount", "in", AT_INT64, false)

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
