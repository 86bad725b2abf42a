/* Every operation, one prototype and one doc block each; Python docstrings are made from the same blocks.
 *
 * Common to all: the result belongs to f; operands are borrowed; nil comes back, and the context holds the
 * error, when something is wrong. Scalars (at_scalar) are weak: they take the dtype of the array beside
 * them, and an integer that does not fit is AT_EOVERFLOW. An integer array beside a floating one takes
 * its dtype. Arrays of two frameworks in one call are AT_EBACKEND; host arrays (NumPy, native) join the
 * other framework. */
#ifndef ANYTENSOR_OPS_H
#define ANYTENSOR_OPS_H

#include "anytensor/frame.h"
#include "anytensor/types.h"

#ifdef __cplusplus
extern "C" {
#endif

/* --- queries ------------------------------------------------------------------------------------- */

/** Sizes of all axes: numbers, or the framework's symbols while it traces. Symbols belong to f. */
AT_API at_status at_shape_of(at_frame *f, at_array x, at_shape *out);

/** Element type of an array. */
AT_API at_status at_dtype_of(at_frame *f, at_array x, at_dtype *out);

/** size + k; a symbol stays one. Errors: AT_EVALUE on overflow. */
AT_API at_dim at_dim_plus(at_frame *f, at_dim size, int64_t k);

/** Name of a dtype ("float32"), bytes of one element, and the dtype of a name (AT_NODTYPE: unknown). */
AT_API const char *at_dtype_name(at_dtype dtype);
AT_API size_t at_dtype_size(at_dtype dtype);
AT_API at_dtype at_dtype_named(const char *name);

/* --- elementwise ----------------------------------------------------------------------------------- */

/** e raised to each element.
 *  Shapes   x (...) -> (...)
 *  Dtypes   floating dtypes are kept; bool and integers give the default float. */
AT_API at_array at_exp(at_frame *f, at_array x);

/** Natural logarithm of each element; -inf at 0, NaN below.
 *  Shapes   x (...) -> (...)
 *  Dtypes   floating dtypes are kept; bool and integers give the default float. */
AT_API at_array at_log(at_frame *f, at_array x);

/** Square root of each element; NaN below 0.
 *  Shapes   x (...) -> (...)
 *  Dtypes   floating dtypes are kept; bool and integers give the default float. */
AT_API at_array at_sqrt(at_frame *f, at_array x);

/** One over the square root of each element; +inf at 0.
 *  Shapes   x (...) -> (...)
 *  Dtypes   floating dtypes are kept; bool and integers give the default float. */
AT_API at_array at_rsqrt(at_frame *f, at_array x);

/** True where an element is NaN.
 *  Shapes   x (...) -> (...), bool
 *  Dtypes   any; bool and integers give False everywhere. */
AT_API at_array at_is_nan(at_frame *f, at_array x);

/** True where an element is infinite, of either sign.
 *  Shapes   x (...) -> (...), bool
 *  Dtypes   any; bool and integers give False everywhere. */
AT_API at_array at_is_inf(at_frame *f, at_array x);

/** True where an element is neither NaN nor infinite.
 *  Shapes   x (...) -> (...), bool
 *  Dtypes   any; bool and integers give True everywhere. */
AT_API at_array at_is_finite(at_frame *f, at_array x);

/** The same values, through which no derivative flows. */
AT_API at_array at_stop_gradient(at_frame *f, at_array x);

/** Sum, difference, product of two arrays, elementwise with broadcasting; integers wrap. */
AT_API at_array at_add(at_frame *f, at_array x, at_array y);
AT_API at_array at_sub(at_frame *f, at_array x, at_array y);
AT_API at_array at_mul(at_frame *f, at_array x, at_array y);

/** Quotient of two arrays, elementwise with broadcasting; integers give the default float. */
AT_API at_array at_div(at_frame *f, at_array x, at_array y);

/** True where two arrays are equal; NaN equals nothing. */
AT_API at_array at_equal(at_frame *f, at_array x, at_array y);

/** Larger of two arrays, elementwise with broadcasting.
 *  Shapes   x (...), y (...) -> broadcast of both
 *  Dtypes   the common dtype of x and y; Python scalars are weak.
 *  NaN      in either operand gives NaN.
 *  Errors   OverflowError an integer scalar does not fit the other's dtype. */
AT_API at_array at_maximum(at_frame *f, at_array x, at_array y);

/** Smaller of two arrays, elementwise with broadcasting.
 *  Shapes   x (...), y (...) -> broadcast of both
 *  Dtypes   the common dtype of x and y; Python scalars are weak.
 *  NaN      in either operand gives NaN.
 *  Errors   OverflowError an integer scalar does not fit the other's dtype. */
AT_API at_array at_minimum(at_frame *f, at_array x, at_array y);

/** True where two arrays are equal, or both NaN; elementwise with broadcasting.
 *  Shapes   x (...), y (...) -> broadcast of both, bool
 *  Dtypes   x and y are compared in their common dtype.
 *  Errors   OverflowError an integer scalar does not fit the other's dtype. */
AT_API at_array at_equal_nan(at_frame *f, at_array x, at_array y);

/** Replaces NaN by a value; infinities stay. No derivative flows through a replaced element.
 *  Shapes   x (...), value broadcasts against x
 *  Dtypes   the common dtype of x and value. */
AT_API at_array at_fill_nan(at_frame *f, at_array x, at_array value);

/** Replaces NaN by a value, and says where: the filled array, and a mask that is True where x was NaN.
 *  Shapes   x (...), value broadcasts against x -> (...) and (...), bool
 *  Dtypes   the common dtype of x and value; bool. */
AT_API at_list at_fill_nan_mask(at_frame *f, at_array x, at_array value);

/** Replaces NaN and infinities by finite numbers. No derivative flows through a replaced element.
 *  Shapes   x (...), nan, posinf and neginf broadcast against x -> (...)
 *  Dtypes   x's; the values are cast to it. bool and integers are left as they are.
 *  NaN      becomes nan, +inf posinf, -inf neginf; None stands for the greatest and the least finite number of the
 *           dtype. */
AT_API at_array at_nan_to_num(at_frame *f, at_array x, at_array nan, at_array posinf,
                              at_array neginf);

/** x where the condition holds, y elsewhere, with broadcasting.
 *  Shapes   condition (...), x (...), y (...) -> broadcast of all three
 *  Dtypes   the common dtype of x and y; a condition that is not bool is true where it is not zero. */
AT_API at_array at_where(at_frame *f, at_array condition, at_array x, at_array y);

/** Bounds each element from below, then from above; a bound that is not given does nothing.
 *  Shapes   x (...), min and max broadcast against x
 *  Dtypes   x's dtype beside bounds of its own kind; float bounds widen integers.
 *  NaN      stays NaN.                       Differs  min > max gives max. */
AT_API at_array at_clip(at_frame *f, at_array x, at_array min, at_array max);

/* --- reductions over axes ------------------------------------------------------------------------ */

/** Sum over axes.
 *  Shapes   x (...) -> x without the axes (keepdims: of size 1 there); no axes given: 0-d
 *  Dtypes   bool and integers narrower than the default integer widen to it.
 *  Empty    0. */
AT_API at_array at_sum(at_frame *f, at_array x, at_axes axes, bool keepdims);

/** Product over axes.
 *  Shapes   x (...) -> x without the axes (keepdims: of size 1 there); no axes given: 0-d
 *  Dtypes   bool and integers narrower than the default integer widen to it.
 *  Empty    1. */
AT_API at_array at_prod(at_frame *f, at_array x, at_axes axes, bool keepdims);

/** Arithmetic mean over axes.
 *  Shapes   x (...) -> x without the axes (keepdims: of size 1 there); no axes given: 0-d
 *  Dtypes   floating dtypes are kept (half types add in float32); others give the default float.
 *  Empty    NaN. */
AT_API at_array at_mean(at_frame *f, at_array x, at_axes axes, bool keepdims);

/** Smallest element over axes.
 *  Shapes   x (...) -> x without the axes (keepdims: of size 1 there); no axes given: 0-d
 *  NaN      gives NaN.                       Errors   an axis of size 0 is reduced. */
AT_API at_array at_min(at_frame *f, at_array x, at_axes axes, bool keepdims);

/** Largest element over axes.
 *  Shapes   x (...) -> x without the axes (keepdims: of size 1 there); no axes given: 0-d
 *  NaN      gives NaN.                       Errors   an axis of size 0 is reduced. */
AT_API at_array at_max(at_frame *f, at_array x, at_axes axes, bool keepdims);

/** Running sum along one axis.
 *  Shapes   x (...) of rank >= 1 -> (...)
 *  Dtypes   bool and integers narrower than the default integer widen to it.
 *  Errors   ValueError axis is None and the rank is not 1, or the rank is 0. */
AT_API at_array at_cumsum(at_frame *f, at_array x, int axis);

/* --- shape and layout ---------------------------------------------------------------------------- */

/** Elements of x at indices along one axis; axis None takes from the flattened array.
 *  Shapes   x (..., N, ...), indices (I...) -> (..., I..., ...)
 *  Dtypes   x's; indices of any integer dtype.
 *  Ids      negative ones count from the end.
 *  Errors   IndexError out of range where the host can see it; TypeError indices not integral. */
AT_API at_array at_take(at_frame *f, at_array x, at_array indices, int axis);

/** Repeats each element along an axis; axis None flattens x first.
 *  Shapes   x (N), repeats () or (N) -> (sum of repeats), or (total_repeat_length)
 *  Sizes    total_repeat_length makes the shape known: what is too much is cut, what is missing is filled
 *           with the last element. Without it the repeats are read.
 *  Errors   TypeError repeats not integral; NotImplementedError total_repeat_length with an axis. */
AT_API at_array at_repeat(at_frame *f, at_array x, at_array repeats, at_dim total_repeat_length,
                          int axis);

/** at_repeat() without a total: the length of the result is read from the values. */
AT_API at_array at_repeat_each(at_frame *f, at_array x, at_array repeats, int axis);

/** The same elements in another shape, in row-major order; one size may be -1.
 *  Shapes   x (...) -> shape */
AT_API at_array at_reshape(at_frame *f, at_array x, const at_shape *shape);

/** The same elements with the axes in another order; None reverses them.
 *  Shapes   x (N0, N1, ...) -> (N_axes[0], N_axes[1], ...)
 *  Errors   ValueError axes is not a permutation of x's axes (negative ones count from the end). */
AT_API at_array at_transpose(at_frame *f, at_array x, at_axes axes);

/** Elements start, start + 1, ..., stop - 1 along one axis, by Python's slice rule: negative bounds count from the
 *  end, what lies beyond an end is that end, and a stop of AT_NO_DIM is the end. A view where the framework has views.
 *  Shapes   x (..., N, ...) -> (..., stop - start, ...) */
AT_API at_array at_slice(at_frame *f, at_array x, at_dim start, at_dim stop, int axis);

/** Cuts an array along one axis, into equal sections or before given indices, as a list.
 *  Shapes   x (..., N, ...) -> sections of (..., N / sections, ...), or one more than indices
 *  Sizes    an int is a number of sections; a list, tuple or vector of integers holds indices, by Python's slice
 *           rule: negative ones count from the end, a cut beyond an end is at that end, one before its
 *           predecessor gives an empty part. No index at all gives the whole.
 *  Errors   ValueError no or a negative number of sections, sections that are not equal, an axis out of range;
 *           TypeError indices not integral. */
AT_API at_list at_split(at_frame *f, at_array x, at_cuts indices_or_sections, int axis);

/** Joins arrays along an existing axis; axis None flattens them first.
 *  Shapes   arrays of (..., Ni, ...) -> (..., sum of Ni, ...)
 *  Dtypes   the common dtype of all.
 *  Errors   ValueError no arrays. */
AT_API at_array at_concatenate(at_frame *f, at_list arrays, int axis);

/** Joins arrays of one shape along a new axis.
 *  Shapes   arrays, M of (N0, N1, ...) -> (N0, ..., M, ...), M standing at axis
 *  Dtypes   the common dtype of all.
 *  Errors   ValueError no arrays, unequal shapes, an axis out of range. */
AT_API at_array at_stack(at_frame *f, at_list arrays, int axis);

/** x with another dtype; x itself where it has that dtype already.
 *  Shapes   x (...) -> (...)
 *  Dtypes   a name, a NumPy dtype or the framework's own. NaN to an integer is the framework's choice. */
AT_API at_array at_astype(at_frame *f, at_array x, at_dtype dtype);

/** x with another dtype, as by at_astype().
 *  Shapes   x (...) -> (...)
 *  Dtypes   a name, a NumPy dtype or the framework's own. */
AT_API at_array at_cast(at_frame *f, at_array x, at_dtype dtype);

/** Matrix product; axes before the last two are batches and broadcast.
 *  Shapes   x (..., M, K), y (..., K, N) -> (..., M, N); a vector x (K) or y (K) has no M or N, two give 0-d
 *  Dtypes   the common dtype; integers wrap, half types add in float32, bool is "or" of "and".
 *  Empty    K of 0 gives zeros.
 *  Errors   ValueError a 0-d operand, unequal K, batches that do not broadcast.
 *  Differs  under torch.autocast torch chooses the dtype of a product. */
AT_API at_array at_matmul(at_frame *f, at_array x, at_array y);

/* --- constructors -------------------------------------------------------------------------------- */

/** An array of one value.
 *  Shapes   -> shape; fill_value a scalar or something that broadcasts to it
 *  Dtypes   dtype, else like's, else that of fill_value. The value is cast: 3.7 gives 3 in an integer array.
 *  Device   like's. Without like the result is a NumPy array (in C: of the context's home backend). */
AT_API at_array at_full(at_frame *f, const at_shape *shape, at_array fill_value, at_dtype dtype,
                        at_array like);

/** An array of zeros.
 *  Shapes   -> shape
 *  Dtypes   dtype, else like's, else the default float.
 *  Device   like's. Without like the result is a NumPy array (in C: of the context's home backend). */
AT_API at_array at_zeros(at_frame *f, const at_shape *shape, at_dtype dtype, at_array like);

/** An array of ones.
 *  Shapes   -> shape
 *  Dtypes   dtype, else like's, else the default float.
 *  Device   like's. Without like the result is a NumPy array (in C: of the context's home backend). */
AT_API at_array at_ones(at_frame *f, const at_shape *shape, at_dtype dtype, at_array like);

/** An array of one value with the shape, device and (unless given) dtype of x.
 *  Shapes   x (...) -> (...)
 *  Dtypes   dtype, else x's; the value is cast. */
AT_API at_array at_full_like(at_frame *f, at_array x, at_array fill_value, at_dtype dtype);

/** Zeros with the shape, device and (unless given) dtype of x.
 *  Shapes   x (...) -> (...) */
AT_API at_array at_zeros_like(at_frame *f, at_array x, at_dtype dtype);

/** Ones with the shape, device and (unless given) dtype of x.
 *  Shapes   x (...) -> (...) */
AT_API at_array at_ones_like(at_frame *f, at_array x, at_dtype dtype);

/** Evenly spaced values from start (0 if only one bound is given) up to and without stop.
 *  Shapes   -> (ceil((stop - start) / step)), or (0) where that is negative
 *  Dtypes   dtype, else the default integer for integers, the default float for floats; like's dtype is not
 *           looked at.
 *  Device   device, else like's.             Errors   ValueError step is 0. */
AT_API at_array at_arange(at_frame *f, at_array start, at_array stop, at_array step, at_dtype dtype,
                          at_array like, const void *device);

/* --- segments ------------------------------------------------------------------------------------ */

/** Sum of the rows of x per segment.
 *  Shapes   x (E, ...), segment_ids (E) -> (num_segments, ...)
 *  Dtypes   x's (integers wrap; half types add in float32); bool counts in the default integer.
 *  Empty    0.                               NaN      a NaN in a segment gives NaN there.
 *  Ids      outside [0, num_segments): dropped, never wrapped; their derivative is 0.
 *  Errors   ValueError ids not of rank 1, lengths differ, a negative size; TypeError ids not integral,
 *           no size.
 *  Cost     one pass over x. */
AT_API at_array at_segment_sum(at_frame *f, at_array x, at_array segment_ids, at_dim num_segments,
                               bool sorted);

/** Largest row of x per segment, elementwise.
 *  Shapes   x (E, ...), segment_ids (E) -> (num_segments, ...)
 *  Dtypes   x's; bool gives any.
 *  Empty    -inf, the smallest integer, or False.   NaN      a NaN in a segment gives NaN there.
 *  Ids      outside [0, num_segments): dropped, never wrapped; their derivative is 0.
 *  Errors   ValueError ids not of rank 1, lengths differ, a negative size; TypeError ids not integral,
 *           no size.
 *  Differs  ties share the derivative equally on every framework. */
AT_API at_array at_segment_max(at_frame *f, at_array x, at_array segment_ids, at_dim num_segments,
                               bool sorted);

/** Smallest row of x per segment, elementwise.
 *  Shapes   x (E, ...), segment_ids (E) -> (num_segments, ...)
 *  Dtypes   x's; bool gives all.
 *  Empty    +inf, the largest integer, or True.   NaN      a NaN in a segment gives NaN there.
 *  Ids      outside [0, num_segments): dropped, never wrapped; their derivative is 0.
 *  Errors   ValueError ids not of rank 1, lengths differ, a negative size; TypeError ids not integral,
 *           no size.
 *  Differs  ties share the derivative equally on every framework. */
AT_API at_array at_segment_min(at_frame *f, at_array x, at_array segment_ids, at_dim num_segments,
                               bool sorted);

/** Mean of the rows of x per segment.
 *  Shapes   x (E, ...), segment_ids (E) -> (num_segments, ...)
 *  Dtypes   floating dtypes are kept (half types add in float32); others give the default float.
 *  Empty    0.                               NaN      a NaN in a segment gives NaN there.
 *  Ids      outside [0, num_segments): dropped, never wrapped; their derivative is 0.
 *  Errors   as segment_sum. */
AT_API at_array at_segment_mean(at_frame *f, at_array x, at_array segment_ids, at_dim num_segments,
                                bool sorted);

/** Population variance (divided by the count) of the rows of x per segment.
 *  Shapes   x (E, ...), segment_ids (E) -> (num_segments, ...)
 *  Dtypes   floating dtypes are kept (half types add in float32); others give the default float.
 *  Empty    0.                               NaN      a NaN in a segment gives NaN there.
 *  Ids      outside [0, num_segments): dropped, never wrapped; their derivative is 0.
 *  Errors   as segment_sum.                  Cost     two passes: the mean is taken off first. */
AT_API at_array at_segment_variance(at_frame *f, at_array x, at_array segment_ids,
                                    at_dim num_segments, bool sorted);

/** Each row of x over the sum of its segment; 0 where that sum is 0.
 *  Shapes   x (E, ...), segment_ids (E) -> (E, ...)
 *  Dtypes   floating dtypes are kept; others give the default float.
 *  Ids      outside [0, num_segments): 0 at their position.
 *  Errors   as segment_sum. */
AT_API at_array at_segment_normalize(at_frame *f, at_array x, at_array segment_ids,
                                     at_dim num_segments, bool sorted);

/** Softmax over the rows of each segment, elementwise: positive, and summing to 1 per segment.
 *  Shapes   logits (E, ...), segment_ids (E) -> (E, ...)
 *  Dtypes   floating dtypes are kept (half types add in float32); others give the default float.
 *  NaN      or +inf spoil their own segment only; so does a segment of nothing but -inf. -inf beside finite
 *           logits gives 0.
 *  Ids      outside [0, num_segments): 0 at their position; their derivative is 0.
 *  Errors   as segment_sum. */
AT_API at_array at_segment_softmax(at_frame *f, at_array logits, at_array segment_ids,
                                   at_dim num_segments, bool sorted);

/** Number of rows per segment.
 *  Shapes   segment_ids (E) -> (num_segments)
 *  Dtypes   the default float (counted in integers).
 *  Ids      outside [0, num_segments): dropped, never wrapped.
 *  Errors   as segment_sum. */
AT_API at_array at_segment_count(at_frame *f, at_array segment_ids, at_dim num_segments,
                                 bool sorted);

/** Smallest row of x per segment, and a constant in empty segments.
 *  Shapes   x (E, ...), segment_ids (E), constant broadcasts -> (num_segments, ...)
 *  Dtypes   x's; the constant is cast to it.
 *  Empty    constant; an occupied segment keeps its infinities.
 *  Ids      outside [0, num_segments): dropped, never wrapped.
 *  Errors   as segment_sum. */
AT_API at_array at_segment_min_or_constant(at_frame *f, at_array x, at_array segment_ids,
                                           at_dim num_segments, at_array constant, bool sorted);

/** Largest row of x per segment, and a constant in empty segments.
 *  Shapes   x (E, ...), segment_ids (E), constant broadcasts -> (num_segments, ...)
 *  Dtypes   x's; the constant is cast to it.
 *  Empty    constant; an occupied segment keeps its infinities.
 *  Ids      outside [0, num_segments): dropped, never wrapped.
 *  Errors   as segment_sum. */
AT_API at_array at_segment_max_or_constant(at_frame *f, at_array x, at_array segment_ids,
                                           at_dim num_segments, at_array constant, bool sorted);

/* --- partitions ---------------------------------------------------------------------------------- */

/** Segment ids of consecutive runs: 0 partitions[0] times, then 1 partitions[1] times, and so on.
 *  Shapes   partitions (N) -> (total_length)
 *  Dtypes   partitions any integer; the result is of the default integer.
 *  Sizes    a total longer than the partitions fills the tail with N, which every segment function drops;
 *           a shorter one cuts. Where partitions can be read on the host (eager NumPy, eager torch on
 *           the CPU) a total that is not their sum is an error.
 *  Errors   ValueError total is not the sum, a negative length, partitions not of rank 1; TypeError
 *           partitions not integral, no total. */
AT_API at_array at_partition_ids(at_frame *f, at_array partitions, at_dim total_length);

/** Sum of each run of rows; runs are given by their lengths.
 *  Shapes   x (total_length, ...), partitions (N) -> (N, ...)
 *  Errors   as partition_ids and segment_sum. */
AT_API at_array at_partition_sum(at_frame *f, at_array x, at_array partitions, at_dim total_length);

/** Smallest row of each run, elementwise; runs are given by their lengths.
 *  Shapes   x (total_length, ...), partitions (N) -> (N, ...)
 *  Empty    +inf, the largest integer, or True.
 *  Errors   as partition_ids and segment_sum. */
AT_API at_array at_partition_min(at_frame *f, at_array x, at_array partitions, at_dim total_length);

/** Largest row of each run, elementwise; runs are given by their lengths.
 *  Shapes   x (total_length, ...), partitions (N) -> (N, ...)
 *  Empty    -inf, the smallest integer, or False.
 *  Errors   as partition_ids and segment_sum. */
AT_API at_array at_partition_max(at_frame *f, at_array x, at_array partitions, at_dim total_length);

/** Softmax over each run of rows; runs are given by their lengths.
 *  Shapes   logits (total_length, ...), partitions (N) -> (total_length, ...)
 *  Errors   as partition_ids and segment_sum. */
AT_API at_array at_partition_softmax(at_frame *f, at_array logits, at_array partitions,
                                     at_dim total_length);

/* --- more segment functions, ours -------------------------------------------------------------------- */

/** Product of the rows of x per segment.
 *  Shapes   x (E, ...), segment_ids (E) -> (num_segments, ...)
 *  Dtypes   x's (integers wrap; half types multiply in float32); bool multiplies in the default integer.
 *  Empty    1.                               NaN      a NaN in a segment gives NaN there.
 *  Ids      outside [0, num_segments): dropped, never wrapped; their derivative is 0.
 *  Errors   as segment_sum.
 *  Differs  the first and second derivative are right beside zeros on every framework: of one zero in a
 *           segment the other rows' product, of two 0. An infinite or NaN row takes none itself. */
AT_API at_array at_segment_prod(at_frame *f, at_array x, at_array segment_ids, at_dim num_segments,
                                bool sorted);

/** Whether some row of x is true per segment, elementwise.
 *  Shapes   x (E, ...), segment_ids (E) -> (num_segments, ...)
 *  Dtypes   any, as truth: what is not 0 is true, NaN too. The result is bool.
 *  Empty    False.
 *  Ids      outside [0, num_segments): dropped, never wrapped.
 *  Errors   as segment_sum. */
AT_API at_array at_segment_any(at_frame *f, at_array x, at_array segment_ids, at_dim num_segments,
                               bool sorted);

/** Whether all rows of x are true per segment, elementwise.
 *  Shapes   x (E, ...), segment_ids (E) -> (num_segments, ...)
 *  Dtypes   any, as truth: what is not 0 is true, NaN too. The result is bool.
 *  Empty    True.
 *  Ids      outside [0, num_segments): dropped, never wrapped.
 *  Errors   as segment_sum. */
AT_API at_array at_segment_all(at_frame *f, at_array x, at_array segment_ids, at_dim num_segments,
                               bool sorted);

/** Standard deviation of the rows of x per segment: the root of the population variance.
 *  Shapes   x (E, ...), segment_ids (E) -> (num_segments, ...)
 *  Dtypes   floating dtypes are kept (half types compute in float32); others give the default float.
 *  Empty    0.                               NaN      a NaN in a segment gives NaN there.
 *  Ids      outside [0, num_segments): dropped, never wrapped; their derivative is 0.
 *  Errors   as segment_sum.                  Cost     two passes: the mean is taken off first.
 *  Differs  where the variance is 0 (one row, or equal ones) the derivative is 0, never NaN. */
AT_API at_array at_segment_std(at_frame *f, at_array x, at_array segment_ids, at_dim num_segments,
                               bool sorted);

/** The row of x, by its number, that holds the smallest element of its segment, elementwise.
 *  Shapes   x (E, ...), segment_ids (E) -> (num_segments, ...)
 *  Dtypes   the default integer, of any x. It has no derivative.
 *  Empty    E, the number of rows: out of range, never a wrong row.
 *  NaN      the first NaN of a segment is its smallest element. Of equal elements it is the first.
 *  Ids      outside [0, num_segments): dropped, never wrapped.
 *  Errors   as segment_sum. */
AT_API at_array at_segment_argmin(at_frame *f, at_array x, at_array segment_ids,
                                  at_dim num_segments, bool sorted);

/** The row of x, by its number, that holds the largest element of its segment, elementwise.
 *  Shapes   x (E, ...), segment_ids (E) -> (num_segments, ...)
 *  Dtypes   the default integer, of any x. It has no derivative.
 *  Empty    E, the number of rows: out of range, never a wrong row.
 *  NaN      the first NaN of a segment is its largest element. Of equal elements it is the first.
 *  Ids      outside [0, num_segments): dropped, never wrapped.
 *  Errors   as segment_sum. */
AT_API at_array at_segment_argmax(at_frame *f, at_array x, at_array segment_ids,
                                  at_dim num_segments, bool sorted);

/** Logarithm of the sum of e raised to the rows of each segment, elementwise; nothing overflows on the way.
 *  Shapes   logits (E, ...), segment_ids (E) -> (num_segments, ...)
 *  Dtypes   floating dtypes are kept (half types add in float32); others give the default float.
 *  Empty    -inf, as a segment of nothing but -inf; the derivative there is 0.
 *  NaN      in a segment gives NaN there, else +inf gives +inf.
 *  Ids      outside [0, num_segments): dropped, never wrapped; their derivative is 0.
 *  Errors   as segment_sum.
 *  Source   its derivative is segment_softmax. */
AT_API at_array at_segment_logsumexp(at_frame *f, at_array logits, at_array segment_ids,
                                     at_dim num_segments, bool sorted);

/** Mean of the values of each segment, weighted by the softmax of its logits.
 *  Shapes   logits (E, H...), values (E, H..., D...), segment_ids (E) -> (num_segments, H..., D...). The shape
 *           of logits is the beginning of that of values: a weight is for a row, or for a head of it.
 *  Dtypes   the common dtype of logits and values (half types compute in float32); of others the default
 *           float.
 *  Empty    0.
 *  NaN      or +inf in logits spoil their own segment only, as in segment_softmax; so does a segment of
 *           nothing but -inf.
 *  Ids      outside [0, num_segments): dropped, never wrapped; their derivative is 0.
 *  Errors   ValueError the shape of logits does not begin that of values; as segment_sum. */
AT_API at_array at_segment_attention(at_frame *f, at_array logits, at_array values,
                                     at_array segment_ids, at_dim num_segments, bool sorted);

/* --- slots: what the formulas above are made of -------------------------------------------------- */

/** Ids cleaned once: those in [0, n) as they are, all others n. A signed dtype wide enough to hold n.
 *  Shapes   ids (E) -> (E) */
AT_API at_array at_slot_ids(at_frame *f, at_array ids, at_dim n);

/** True where a slot id is below n, that is, kept.   Shapes   ids (E) -> (E), bool */
AT_API at_array at_slot_kept(at_frame *f, at_array ids, at_dim n);

/** How often each id in [0, n) occurs, in the default integer; all ids must lie there.
 *  Shapes   ids (E) -> (n) */
AT_API at_array at_slot_count(at_frame *f, at_array ids, at_dim n);

/** Sum, smallest, largest, product of rows per slot; every slot id must lie in [0, slots). Never bool data. Empty
 *  slots hold 0, the greatest, the least value of the dtype (infinities for floats), 1. NaN gives NaN. A
 *  derivative flows through the sum; through the others none may be relied on.
 *  Shapes   x (E, ...), slot_ids (E) -> (slots, ...) */
AT_API at_array at_slot_sum(at_frame *f, at_array x, at_array slot_ids, at_dim slots);
AT_API at_array at_slot_min(at_frame *f, at_array x, at_array slot_ids, at_dim slots);
AT_API at_array at_slot_max(at_frame *f, at_array x, at_array slot_ids, at_dim slots);
AT_API at_array at_slot_prod(at_frame *f, at_array x, at_array slot_ids, at_dim slots);

/** Row slot_ids[e] of x for each e; every slot id must lie within x.
 *  Shapes   x (S, ...), slot_ids (E) -> (E, ...) */
AT_API at_array at_spread(at_frame *f, at_array x, at_array slot_ids);

/** First n rows; n is at most their number.   Shapes   x (S, ...) -> (n, ...) */
AT_API at_array at_head(at_frame *f, at_array x, at_dim n);

#ifdef __cplusplus
}
#endif
#endif
