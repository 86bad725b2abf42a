/* The public functions: one wrapper per row of the table.
 *
 * A wrapper opens a frame with the op's name, promotes the operands, checks what its kind can check, and
 * calls the backend's slot, or the formula where a composite's slot is missing, declines, or is switched
 * off by AT_GENERIC. Arguments are changed in place by promotion: they are the wrapper's own copies. */
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

/* Whether an op asks a context's memo for ids: then it is carried out by its formula, which does so. */
static inline bool asks_memo(int op)
{
    return op >= ATI_OP_partition_ids && op <= ATI_OP_partition_softmax;
}

#define ADDRESS_DATA(name) &name,
#define ADDRESS_MAYBE(name) &name,
#define ADDRESS_INDEX(name) &name,
#define ADDRESS_MASK(name) &name,
#define ADDRESS_VALUE(name) &name,
#define ADDRESS_BOUND(name) &name,
#define ADDRESS_LIKE(name) &name,
#define ADDRESS_SIZE(name)
#define ADDRESS_MAYBE_SIZE(name)
#define ADDRESS_SHAPE(name)
#define ADDRESS_CUTS(name)
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
#define CHECK_FILL_MASK true
#define CHECK_REPLACE ati_check_replace(f, x, nan)
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
#define CHECK_TRANSPOSE ati_settle_transpose(f, x, &axes)
#define CHECK_SLICE ati_settle_slice(f, x, &start, &stop, &axis)
#define CHECK_SPLIT ati_settle_split(f, x, indices_or_sections, &axis)
#define CHECK_JOIN true
#define CHECK_STACK ati_settle_stack(f, arrays, &axis)
#define CHECK_MATMUL ati_check_matmul(f, x, y)
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
#define SLOT_COMPOSITE(be, name)                                                                   \
    ((be)->name != NULL && !(f->cx->flags & AT_GENERIC) &&                                         \
     (f->cx->memo == NULL || !asks_memo(ATI_OP_##name)))
#define DECLINED_PRIMITIVE(name, args) ati_result(f, #name, AT_EUNSUPPORTED, AT_NIL)
#define DECLINED_COMPOSITE(name, args) ati_##name args

#define JOIN(...) /* below: their operands are a list */
#define STACK(...)
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

/* --- a list of operands ------------------------------------------------------------------------------ */

typedef at_array joining(at_frame *f, const at_backend *be, at_list arrays, int axis);

/* Promotes a copy of the list and joins it. */
static at_array join(at_frame *up, const ati_op *op, at_list arrays, int axis, joining *carry)
{
    if (at_failed(up)) return AT_NIL;
    at_frame frame, *f = begin(&frame, up, op);
    at_array out = AT_NIL, *copy = NULL;
    const at_backend *be = NULL;
    if (arrays.count < 1)
        ati_fail(f, op->name, AT_EVALUE,
                 "argument 'arrays': expected at least one array, found none");
    else
        copy = ati_memory(f, (size_t)arrays.count * sizeof *copy);
    if (copy != NULL) {
        memcpy(copy, arrays.array, (size_t)arrays.count * sizeof *copy);
        be = ati_promote_list(f, op, arrays.count, copy);
    }
    if (be != NULL) out = carry(f, be, (at_list){arrays.count, copy}, axis);
    ati_blame(f, op->name);
    return at_leave(f, out);
}

#define JOIN(name, level, ...) JOINING(JOIN, name, level)
#define STACK(name, level, ...) JOINING(STACK, name, level)
#define JOINING(kind, name, level)                                                                 \
    static at_array join_by_##name(at_frame *f, const at_backend *be, at_list arrays, int axis)    \
    {                                                                                              \
        at_array out = AT_NIL;                                                                     \
        at_status status = AT_DECLINE;                                                             \
        if (!(CHECK_##kind)) return AT_NIL;                                                        \
        if (SLOT_##level(be, name)) status = be->name(f->cx, be, arrays, axis, &out);              \
        if (status == AT_DECLINE) return DECLINED_##level(name, (f, arrays, axis));                \
        return ati_result(f, f->op, status, out);                                                  \
    }                                                                                              \
    at_array at_##name(at_frame *up, at_list arrays, int axis)                                     \
    {                                                                                              \
        return join(up, &ati_ops[ATI_OP_##name], arrays, axis, join_by_##name);                    \
    }
#include "anytensor/ops.def"

/* --- several results ----------------------------------------------------------------------------------- */

#define COUNT_SPLIT ati_split_count(indices_or_sections)
#define COUNT_FILL_MASK 2

/* As leave(), with each of the results that stand in places of the frame above. From the last one on: that is the one
 * that a frame finds first. */
static at_list leave_all(at_frame *f, at_status status, at_array *out, int count)
{
    at_frame *up = f->up;
    if (status == AT_OK)
        for (int i = 0; i < count; i++) out[i] = ati_keep(f, out[i]);
    else if (status != AT_DECLINE)
        ati_result(f, f->op, status, AT_NIL);
    ati_blame(f, f->op);
    if (at_failed(f)) count = 0;
    for (int i = count - 1; i >= 0; i--) at_detach(f, out[i]);
    at_close(f);
    for (int i = 0; i < count; i++) out[i] = at_keep(up, out[i]);
    if (!at_failed(up)) return (at_list){count, out};
    ati_blame(f, f->op); /* no memory for their places: those that have one go, too */
    for (int i = count - 1; i >= 0; i--) at_drop(up, out[i]);
    return (at_list){0, NULL};
}

#define OPS(kind, name, level, ...)                                                                \
    at_list at_##name(at_frame *up ATI_SIG_##kind(ATI_PARAM))                                      \
    {                                                                                              \
        if (at_failed(up)) return (at_list){0, NULL};                                              \
        const ati_op *op = &ati_ops[ATI_OP_##name];                                                \
        at_frame frame, *f = begin(&frame, up, op);                                                \
        at_array *const operand[] = {ATI_SIG_##kind(ADDRESS)};                                     \
        at_array *out = NULL;                                                                      \
        at_status status = AT_DECLINE;                                                             \
        const at_backend *be = ati_promote(f, op, operand);                                        \
        if (be != NULL && (CHECK_##kind))                                                          \
            out = ati_memory(up, (size_t)COUNT_##kind * sizeof *out);                              \
        if (out != NULL) {                                                                         \
            if (SLOT_##level(be, name)) status = be->name(f->cx, be ATI_SIG_##kind(ATI_ARG), out); \
            if (status == AT_DECLINE) ati_##name(f ATI_SIG_##kind(ATI_ARG), out);                  \
        }                                                                                          \
        return leave_all(f, status, out, out == NULL ? 0 : COUNT_##kind);                          \
    }
#include "anytensor/ops.def"
