/* The public functions: one wrapper per row of the table.
 *
 * A wrapper opens a frame with the op's name, promotes the operands, checks what its kind can check, and
 * calls the backend's slot, or the formula where a composite's slot is missing, declines, or is switched
 * off by AT_GENERIC. Arguments are changed in place by promotion: they are the wrapper's own copies. */
#include <stdlib.h>
#include <string.h>

#include "core/places.h"
#include "ops/formula.h"
#include "ops/table.h"

static at_frame *begin(at_frame *frame, at_frame *up, const ati_op *op)
{
    at_enter(frame, up);
    frame->op = op->name;
    return frame;
}

/* Leaves with what the slot has given (AT_OK: a reference that is in no place yet), or, where it declined,
 * with what the formula has. */
static at_array leave(at_frame *f, at_status status, at_array out)
{
    if (status == AT_OK) return ati_leave_with(f, out);
    if (status != AT_DECLINE) out = ati_result(f, f->op, status, AT_NIL);
    ati_blame(f, f->op);
    return at_leave(f, out);
}

#define ADDRESS_DATA(name) &name,
#define ADDRESS_MAYBE(name) &name,
#define ADDRESS_INDEX(name) &name,
#define ADDRESS_MASK(name) &name,
#define ADDRESS_VALUE(name) &name,
#define ADDRESS_LIKE(name) &name,
#define ADDRESS_SIZE(name)
#define ADDRESS_MAYBE_SIZE(name)
#define ADDRESS_SHAPE(name)
#define ADDRESS_AXES(name)
#define ADDRESS_AXIS(name)
#define ADDRESS_FLAG(name)
#define ADDRESS_DTYPE(name)
#define ADDRESS_DEVICE(name)
#define ADDRESS(name, role, text, how) ADDRESS_##role(name)

/* What a kind checks or settles before its slot is called; names are those of its signature. */
#define CHECK_UNARY true
#define CHECK_BINARY true
#define CHECK_FILL true
#define CHECK_SELECT true
#define CHECK_CLAMP true
#define CHECK_REDUCE true
#define CHECK_SCAN ati_settle_scan(f, x, &axis)
#define CHECK_GATHER true
#define CHECK_REPEAT                                                                               \
    (ati_check_repeats(f, x, repeats, total_repeat_length) &&                                      \
     ati_check_total(f, x, repeats, total_repeat_length, axis))
#define CHECK_REPEAT_EACH                                                                          \
    (ati_check_repeats(f, x, repeats, AT_NO_DIM) && ati_check_counts(f, x, repeats, true))
#define CHECK_CAST true
#define CHECK_RESHAPE ati_check_reshape(f, x, shape)
#define CHECK_FULL ati_settle_full(f, be, shape, fill_value, like, &dtype)
#define CHECK_ZEROS true
#define CHECK_FULL_LIKE true
#define CHECK_ZEROS_LIKE true
#define CHECK_ARANGE ati_settle_arange(f, be, &start, &stop, &step, &dtype)
#define CHECK_SEGMENT ati_check_segments(f, "x", x, segment_ids, num_segments)
#define CHECK_SEGMENT_LOGITS ati_check_segments(f, "logits", logits, segment_ids, num_segments)
#define CHECK_SEGMENT_COUNT ati_check_segments(f, NULL, AT_NIL, segment_ids, num_segments)
#define CHECK_SEGMENT_CONSTANT (CHECK_SEGMENT && ati_check_constant(f, x, num_segments, constant))
#define CHECK_SEGMENT_ATTENTION                                                                    \
    (ati_check_segments(f, "logits", logits, segment_ids, num_segments) &&                         \
     ati_check_attention(f, logits, values))
#define CHECK_PARTITION                                                                            \
    (ati_check_partitions(f, partitions, total_length) && ati_check_rows(f, "x", x, total_length))
#define CHECK_PARTITION_LOGITS                                                                     \
    (ati_check_partitions(f, partitions, total_length) &&                                          \
     ati_check_rows(f, "logits", logits, total_length))
#define CHECK_PARTITION_IDS ati_check_partitions(f, partitions, total_length)
#define CHECK_SLOT true
#define CHECK_SLOT_IDS true
#define CHECK_SPREAD true
#define CHECK_HEAD true

/* How a level is carried out: the status of its slot, and what follows AT_DECLINE. */
#define SLOT_PRIMITIVE(be, name) true
#define SLOT_COMPOSITE(be, name) ((be)->name != NULL && !(f->cx->flags & AT_GENERIC))
#define DECLINED_PRIMITIVE(name, args) ati_result(f, #name, AT_EUNSUPPORTED, AT_NIL)
#define DECLINED_COMPOSITE(name, args) ati_##name args

#define JOIN(...) /* below, by hand */
#define OP(kind, name, level, ...)                                                                 \
    at_array at_##name(at_frame *up ATI_SIG_##kind(ATI_PARAM))                                     \
    {                                                                                              \
        if (at_failed(up)) /* and the error keeps the name of the op that failed */                \
            return AT_NIL;                                                                         \
        const ati_op *op = &ati_ops[ATI_OP_##name];                                                \
        at_frame frame, *f = begin(&frame, up, op);                                                \
        at_array *const operand[] = {ATI_SIG_##kind(ADDRESS)};                                     \
        at_array out = AT_NIL;                                                                     \
        at_status status = AT_DECLINE;                                                             \
        const at_backend *be = ati_promote(f, op, operand);                                        \
        if (be != NULL && (CHECK_##kind)) {                                                        \
            if (SLOT_##level(be, name))                                                            \
                status = be->name(f->cx, be ATI_SIG_##kind(ATI_ARG), &out);                        \
            if (status == AT_DECLINE) out = DECLINED_##level(name, (f ATI_SIG_##kind(ATI_ARG)));   \
        }                                                                                          \
        return leave(f, status, out);                                                              \
    }
#include "anytensor/ops.def"

/* Promotes a copy of the list and joins it. */
static at_array join(at_frame *f, const ati_op *op, at_list arrays, at_array *copy, int axis)
{
    memcpy(copy, arrays.array, (size_t)arrays.count * sizeof *copy);
    const at_backend *be = ati_promote_list(f, op, arrays.count, copy);
    if (be == NULL) return AT_NIL;
    at_array out = AT_NIL;
    at_status status = be->concatenate(f->cx, be, (at_list){arrays.count, copy}, axis, &out);
    return ati_result(f, op->name, status, out);
}

at_array at_concatenate(at_frame *up, at_list arrays, int axis)
{
    enum { FEW = 16 };
    const ati_op *op = &ati_ops[ATI_OP_concatenate];
    at_frame frame, *f = begin(&frame, up, op);
    at_array few[FEW], out = AT_NIL;
    at_array *copy = few;
    if (arrays.count > FEW) copy = malloc((size_t)arrays.count * sizeof *copy);
    if (arrays.count == 0)
        ati_fail(f, op->name, AT_EVALUE,
                 "argument 'arrays': expected at least one array, found none");
    else if (copy == NULL)
        ati_fail(f, op->name, AT_ENOMEM, "no memory for the list of arrays");
    else
        out = join(f, op, arrays, copy, axis);
    if (copy != few) free(copy);
    return at_leave(f, out);
}
