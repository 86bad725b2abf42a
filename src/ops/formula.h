/* What formulas share: the prototypes of all composites, checks, and a few helpers.
 *
 * A formula runs in a frame of its own, which the wrapper in dispatch.c opens and leaves, so it reads like
 * the mathematics: no checks between lines, no clean-up. Two rules (tools/lint.py looks after the second):
 * an operand is dropped at its last use (ati_spent), and at most one op call stands in an argument list. */
#ifndef ATI_FORMULA_H
#define ATI_FORMULA_H

#include "anytensor/backend.h"
#include "anytensor/ops.h"

/* The formula of each composite: ati_<name>(frame, its arguments); of one with several results it puts them into the
 * places of out, nil where it fails. */
#define ATI_FORMULA_PRIMITIVE(name, params)
#define ATI_FORMULA_COMPOSITE(name, params) at_array ati_##name params;
#define OP(kind, name, level, ...)                                                                 \
    ATI_FORMULA_##level(name, (at_frame * f ATI_SIG_##kind(ATI_PARAM)))
#define OPS(kind, name, ...) void ati_##name(at_frame *f ATI_SIG_##kind(ATI_PARAM), at_array *out);
#include "anytensor/ops.def"

/* A result, after whose making one of its operands is not needed any more. */
static inline at_array ati_spent(at_frame *f, at_array result, at_array operand)
{
    at_drop(f, operand);
    return result;
}

/* Handles of constants that outlive every call. */
extern const at_array ati_zero, ati_one, ati_zero_float, ati_one_float;

/* x as a vector (E) seen against rows of rank ndim: (E, 1, ..., 1). */
at_array ati_against(at_frame *f, at_array vector, int ndim);

/* A size as an operand: a scalar kept in place, or the symbol. */
at_array ati_size_operand(at_scalar *place, at_dim size);

/* A value as an array of the given dtype that broadcasts, on the side of like. */
at_array ati_value_as(at_frame *f, at_array value, at_dtype dtype, at_array like);

/* Whether a derivative may be taken through x. */
bool ati_tracked(at_frame *f, at_array x);

/* Checks of arguments by kind, once per call, after promotion; false once the context has failed. */
bool ati_check_segments(at_frame *f, const char *data, at_array x, at_array ids, at_dim n);
/* The shape of logits is the beginning of that of values. */
bool ati_check_attention(at_frame *f, at_array logits, at_array values);
bool ati_check_partitions(at_frame *f, at_array partitions, at_dim total);
bool ati_check_size(at_frame *f, const char *name, at_dim size);
/* A scalar must fit an integer dtype. */
bool ati_check_fits(at_frame *f, const char *name, at_array value, at_dtype dtype);
bool ati_check_reshape(at_frame *f, at_array x, const at_shape *shape);
/* The rows of a partition function are as many as its total says. */
bool ati_check_rows(at_frame *f, const char *data, at_array x, at_dim total);
/* A constant broadcasts to the result, (n, rows of x), and fits its dtype. */
bool ati_check_constant(at_frame *f, at_array x, at_dim n, at_array constant);
bool ati_check_repeats(at_frame *f, at_array x, at_array repeats, at_dim total);
/* Counts that can be read: none negative, and a result whose length is a number (frameworks crash there). */
bool ati_check_counts(at_frame *f, at_array x, at_array repeats, bool needed);
/* A total goes with flattened arrays only, and with counts that are not negative. */
bool ati_check_total(at_frame *f, at_array x, at_array repeats, at_dim total, int axis);
/* What NaN becomes is given, and x is not of a dtype that only its framework knows. */
bool ati_check_replace(at_frame *f, at_array x, at_array nan);
bool ati_settle_scan(at_frame *f, at_array x, int *axis);
/* All axes, counted from the front: a permutation of x's. */
bool ati_settle_transpose(at_frame *f, at_array x, at_axes *axes);
/* Bounds in [0, size of the axis], start not beyond stop, as far as they and the size are numbers. */
bool ati_settle_slice(at_frame *f, at_array x, at_dim *start, at_dim *stop, int *axis);
bool ati_settle_split(at_frame *f, at_array x, at_cuts cuts, int *axis);
/* Into how many parts. */
int ati_split_count(at_cuts cuts);
/* Arrays of one shape, and an axis of the result. */
bool ati_settle_stack(at_frame *f, at_list arrays, int *axis);
bool ati_check_matmul(at_frame *f, at_array x, at_array y);
bool ati_settle_full(at_frame *f, const at_backend *be, const at_shape *shape, at_array fill,
                     at_array like, at_dtype *dtype);
bool ati_settle_arange(at_frame *f, const at_backend *be, at_array *start, at_array *stop,
                       at_array *step, at_dtype *dtype);

#endif
