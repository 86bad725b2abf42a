/* One ordinary call of every operation, for tests that break or watch what happens below it.
 *
 * The table is stamped from ops.def: an operation without a case here does not compile. */
#ifndef TESTS_CASES_H
#define TESTS_CASES_H

#include "proxy.h"

typedef struct inputs {
    at_array x;          /* (4, 2) */
    at_array y;          /* (2) */
    at_array logits;     /* (4) */
    at_array yes;        /* (4, 2) bool */
    at_array ids;        /* (4), one below and one beyond [0, 3) */
    at_array slots;      /* (4), in [0, 3] */
    at_array partitions; /* (3), sum 4 */
    at_array indices;    /* (3) */
    at_array scalar;     /* weak integer 1 */
    at_array place;      /* 0-d */
    at_dim three, four;
} inputs;

static inline inputs given_inputs(at_frame *f, at_dtype dtype, at_dtype id_dtype, at_scalar *one)
{
    inputs in;
    in.x = given(f, dtype, SIZES(4, 2), VALUES(1, 0, 0, 1, 1, 1, 3, 0));
    in.y = VEC(f, dtype, 1, 0);
    in.logits = VEC(f, dtype, 1, 0, 1, 0);
    in.yes = given(f, AT_BOOL, SIZES(4, 2), VALUES(1, 0, 1, 1, 0, 0, 1, 0));
    in.ids =
        kind_of(id_dtype) == 'i' ? VEC(f, id_dtype, 2, -1, 2, 5) : VEC(f, id_dtype, 2, 7, 2, 5);
    in.slots = VEC(f, id_dtype, 2, 3, 2, 0);
    in.partitions = VEC(f, id_dtype, 1, 0, 3);
    in.indices = VEC(f, id_dtype, 1, 0, 1);
    in.scalar = at_scalar_int(one, 1);
    in.place = zero_d(f, id_dtype, 1);
    in.three = AT_DIM(3);
    in.four = AT_DIM(4);
    return in;
}

#define CASE(name, ...)                                                                            \
    static at_array case_##name(at_frame *f, const inputs *in) { return at_##name(f, __VA_ARGS__); }
#define CASES(name, ...)                                                                           \
    static at_array case_##name(at_frame *f, const inputs *in)                                     \
    {                                                                                              \
        const at_list all = at_##name(f, __VA_ARGS__);                                             \
        return all.count > 0 ? all.array[all.count - 1] : AT_NIL;                                  \
    }
#define ONE_AXIS ((at_axes){.count = 1, .axis = {1}})
#define LIST2 ((at_list){2, (at_array[]){in->x, in->yes}})
#define PARTS AT_CUTS(16, ((at_dim[16]){{.n = 1}, {.n = -1}, {.n = 9}}))
#define EIGHT (&(const at_shape){.ndim = 1, .dim = {{.n = 8}}})
#define FOUR_BY_TWO (&(const at_shape){.ndim = 2, .dim = {in->four, {.n = 2}}})

CASE(exp, in->x)
CASE(log, in->x)
CASE(sqrt, in->x)
CASE(rsqrt, in->x)
CASE(is_nan, in->x)
CASE(is_inf, in->x)
CASE(is_finite, in->x)
CASE(stop_gradient, in->x)
CASE(add, in->x, in->y)
CASE(sub, in->x, in->scalar)
CASE(mul, in->x, in->y)
CASE(div, in->x, in->scalar)
CASE(equal, in->x, in->y)
CASE(maximum, in->x, in->scalar)
CASE(minimum, in->yes, in->x)
CASE(equal_nan, in->scalar, in->x)
CASE(fill_nan, in->x, in->scalar)
CASES(fill_nan_mask, in->x, in->scalar)
CASE(nan_to_num, in->x, in->scalar, in->place, AT_NIL)
CASE(where, in->yes, in->y, in->scalar)
CASE(clip, in->x, in->scalar, in->y)
CASE(sum, in->x, ONE_AXIS, true)
CASE(prod, in->x, AT_ALL_AXES, false)
CASE(mean, in->x, ONE_AXIS, false)
CASE(min, in->x, ONE_AXIS, false)
CASE(max, in->x, AT_ALL_AXES, true)
CASE(cumsum, in->x, 0)
CASE(take, in->x, in->indices, 1)
CASE(repeat, in->partitions, in->partitions, in->four, AT_NO_AXIS)
CASE(repeat_each, in->x, in->slots, 0)
CASE(reshape, in->x, EIGHT)
CASE(transpose, in->x, AT_ALL_AXES)
CASE(slice, in->x, AT_DIM(1), AT_DIM(-1), 0)
CASES(split, in->x, PARTS, 1)
CASE(concatenate, LIST2, 0)
CASE(stack, LIST2, -1)
CASE(astype, in->x, AT_INT16)
CASE(cast, in->x, AT_INT16)
CASE(matmul, in->x, in->y)
CASE(full, FOUR_BY_TWO, in->y, AT_FLOAT32, in->x)
CASE(zeros, FOUR_BY_TWO, AT_NODTYPE, in->x)
CASE(ones, FOUR_BY_TWO, AT_NODTYPE, in->x)
CASE(full_like, in->x, in->scalar, AT_NODTYPE)
CASE(zeros_like, in->x, AT_NODTYPE)
CASE(ones_like, in->x, AT_INT8)
CASE(arange, in->place, in->scalar, AT_NIL, AT_NODTYPE, in->x, NULL)
CASE(segment_sum, in->x, in->ids, in->three, false)
CASE(segment_max, in->x, in->ids, in->three, false)
CASE(segment_min, in->x, in->ids, in->three, false)
CASE(segment_mean, in->x, in->ids, in->three, false)
CASE(segment_variance, in->x, in->ids, in->three, false)
CASE(segment_normalize, in->x, in->ids, in->three, false)
CASE(segment_softmax, in->x, in->ids, in->three, false)
CASE(segment_count, in->ids, in->three, false)
CASE(segment_min_or_constant, in->x, in->ids, in->three, in->scalar, false)
CASE(segment_max_or_constant, in->x, in->ids, in->three, in->y, false)
CASE(segment_prod, in->x, in->ids, in->three, false)
CASE(segment_any, in->x, in->ids, in->three, false)
CASE(segment_all, in->x, in->ids, in->three, false)
CASE(segment_std, in->x, in->ids, in->three, false)
CASE(segment_argmin, in->x, in->ids, in->three, false)
CASE(segment_argmax, in->x, in->ids, in->three, false)
CASE(segment_logsumexp, in->x, in->ids, in->three, false)
CASE(segment_attention, in->logits, in->x, in->ids, in->three, false)
CASE(partition_ids, in->partitions, in->four)
CASE(partition_sum, in->x, in->partitions, in->four)
CASE(partition_min, in->x, in->partitions, in->four)
CASE(partition_max, in->x, in->partitions, in->four)
CASE(partition_softmax, in->x, in->partitions, in->four)
CASE(slot_ids, in->ids, in->three)
CASE(slot_kept, in->slots, in->three)
CASE(slot_count, in->slots, in->four)
CASE(slot_sum, in->x, in->slots, in->four)
CASE(slot_min, in->x, in->slots, in->four)
CASE(slot_max, in->x, in->slots, in->four)
CASE(slot_prod, in->x, in->slots, in->four)
CASE(spread, in->x, in->slots)
CASE(head, in->x, in->three)

typedef struct op_case {
    const char *name;
    at_array (*call)(at_frame *f, const inputs *in);
    bool composite;
} op_case;

#define IS_PRIMITIVE false
#define IS_COMPOSITE true

static const op_case op_cases[] = {
#define OP(kind, name, level, ...) {#name, case_##name, IS_##level},
#define OPS(...) OP(__VA_ARGS__)
#include "anytensor/ops.def"
};

/** Calls a case in a frame of its own and keeps its result in the frame above, or nil. */
static inline at_array call_case(at_frame *up, const op_case *c, at_dtype dtype, at_dtype id_dtype)
{
    at_scalar one;
    at_frame frame, *f = at_enter(&frame, up);
    inputs in = given_inputs(f, dtype, id_dtype, &one);
    return at_leave(f, at_failed(f) ? AT_NIL : c->call(f, &in));
}

/* Dtypes that take different ways through the formulas. */
static const at_dtype telling_dtypes[] = {AT_BOOL, AT_INT8, AT_FLOAT16, AT_FLOAT32};

#endif
