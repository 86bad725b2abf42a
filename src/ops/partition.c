/* Partitions: segments given by the lengths of consecutive runs.
 *
 * The ids of the runs come from two running sums: the first gives where each run ends; counting the ends
 * at each position and summing again gives how many runs are over, which is the id. Nothing depends on the
 * values but values, so it passes every compiler, and what lies behind the last end gets id N by itself. */
#include "core/dim.h"
#include "core/promote.h"
#include "ops/formula.h"

static at_array ids_by_sums(at_frame *f, at_array partitions, at_dim total_length)
{
    at_array ends = at_cumsum(f, partitions, 0);
    at_array slots = ati_spent(f, at_slot_ids(f, ends, total_length), ends);
    at_array ended = at_slot_count(f, slots, at_dim_plus(f, total_length, 1));
    at_array over = ati_spent(f, at_cumsum(f, ended, 0), ended);
    at_drop(f, slots);
    return at_head(f, over, total_length);
}

static at_dim length(at_frame *f, at_array x)
{
    at_shape shape;
    return at_shape_of(f, x, &shape) == AT_OK && shape.ndim > 0 ? shape.dim[0] : AT_DIM(0);
}

/* The ids by the backend's own way where it has one; what a public call checks has been checked, or is not asked for. */
static at_array made_ids(at_frame *f, at_array partitions, at_dim total_length)
{
    if (at_failed(f)) return AT_NIL;
    const at_backend *be = partitions.be;
    at_array out = AT_NIL;
    at_status status = AT_DECLINE;
    if (be->partition_ids != NULL && !(f->cx->flags & AT_GENERIC))
        status = be->partition_ids(f->cx, be, partitions, total_length, &out);
    if (status == AT_DECLINE) return ids_by_sums(f, partitions, total_length);
    return ati_result(f, "partition_ids", status, out);
}

static at_array found_ids(at_frame *f, const at_memo *memo, at_array partitions, at_dim total)
{
    at_array out = AT_NIL;
    at_status status = memo->find(f->cx, partitions, total, &out);
    return ati_result(f, "partition_ids", status, out);
}

/* The ids from the memo of the context, or made and left there. */
static at_array ids_of(at_frame *f, at_array partitions, at_dim total_length)
{
    const at_memo *memo = f->cx->memo;
    if (memo == NULL || at_failed(f)) return made_ids(f, partitions, total_length);
    at_array ids = found_ids(f, memo, partitions, total_length);
    if (at_failed(f) || !at_is_nil(ids)) return ids;
    ids = made_ids(f, partitions, total_length);
    if (!at_failed(f)) ati_result(f, "partition_ids", memo->keep(f->cx, partitions, ids), AT_NIL);
    return ids;
}

at_array ati_partition_ids(at_frame *f, at_array partitions, at_dim total_length)
{
    if (f->cx->memo == NULL)
        return ids_by_sums(f, partitions, total_length); /* no slot, or it declined */
    return ids_of(f, partitions, total_length);
}

at_array ati_partition_sum(at_frame *f, at_array x, at_array partitions, at_dim total_length)
{
    at_array ids = ids_of(f, partitions, total_length);
    return at_segment_sum(f, x, ids, length(f, partitions), true);
}

at_array ati_partition_min(at_frame *f, at_array x, at_array partitions, at_dim total_length)
{
    at_array ids = ids_of(f, partitions, total_length);
    return at_segment_min(f, x, ids, length(f, partitions), true);
}

at_array ati_partition_max(at_frame *f, at_array x, at_array partitions, at_dim total_length)
{
    at_array ids = ids_of(f, partitions, total_length);
    return at_segment_max(f, x, ids, length(f, partitions), true);
}

at_array ati_partition_softmax(at_frame *f, at_array logits, at_array partitions,
                               at_dim total_length)
{
    at_array ids = ids_of(f, partitions, total_length);
    return at_segment_softmax(f, logits, ids, length(f, partitions), true);
}

/* --- repeat: the same ids, used as indices ---------------------------------------------------------- */

/* One count per element: scalars are spread out, vectors must fit. */
static at_array counts_of(at_frame *f, at_array repeats, at_dim n, at_array like)
{
    at_shape shape;
    if (at_shape_of(f, repeats, &shape) != AT_OK) return AT_NIL;
    if (shape.ndim == 1 && ati_dim_equal(f, shape.dim[0], n)) return repeats;
    if (shape.ndim > 1) {
        ati_fail(f, NULL, AT_ESHAPE, "argument 'repeats': expected rank 0 or 1, found rank %d",
                 shape.ndim);
        return AT_NIL;
    }
    if (shape.ndim == 1 && !ati_dim_equal(f, shape.dim[0], AT_DIM(1))) {
        ati_fail(
            f, NULL, AT_ESHAPE,
            "argument 'repeats': expected one count, or one per element, found another length");
        return AT_NIL;
    }
    at_shape row = {.ndim = 1};
    row.dim[0] = n;
    return at_full(f, &row, repeats, like.be->default_dtype(like.be, 'i'), like);
}

at_array ati_repeat(at_frame *f, at_array x, at_array repeats, at_dim total_repeat_length, int axis)
{
    if (at_is_nil(total_repeat_length.sym) && total_repeat_length.n == INT64_MIN)
        return at_repeat_each(f, x, repeats, axis);
    at_shape flat = {.ndim = 1};
    flat.dim[0] = AT_DIM(-1);
    at_array row = at_reshape(f, x, &flat);
    at_dim n = length(f, row);
    if (at_is_nil(n.sym) && n.n == 0) return row; /* there is no last element to repeat */
    at_array counts = counts_of(f, repeats, n, x);
    at_array ids = made_ids(f, counts, total_repeat_length);
    at_scalar place;
    at_array last = ati_size_operand(&place, at_dim_plus(f, n, -1));
    at_array index = at_minimum(f, ids, last);
    return at_spread(f, row, index);
}
