/* Composites that move elements: parts of an array, new axes, casts by another name. */
#include "core/places.h"
#include "ops/formula.h"

at_array ati_cast(at_frame *f, at_array x, at_dtype dtype) { return at_astype(f, x, dtype); }

/* --- stack --------------------------------------------------------------------------------------------- */

/* x with an axis of size 1 more. */
static at_array with_axis(at_frame *f, at_array x, int axis)
{
    at_shape shape, wide;
    if (at_shape_of(f, x, &shape) != AT_OK) return AT_NIL;
    wide.ndim = shape.ndim + 1;
    for (int k = 0; k < wide.ndim; k++)
        wide.dim[k] = k == axis ? AT_DIM(1) : shape.dim[k - (k > axis)];
    return at_reshape(f, x, &wide);
}

at_array ati_stack(at_frame *f, at_list arrays, int axis)
{
    at_array *wide = ati_memory(f, (size_t)arrays.count * sizeof *wide);
    for (int i = 0; wide != NULL && i < arrays.count; i++)
        wide[i] = with_axis(f, arrays.array[i], axis);
    return at_concatenate(f, (at_list){wide == NULL ? 0 : arrays.count, wide}, axis);
}

/* --- split --------------------------------------------------------------------------------------------- */

/* The shape in which an axis of unknown length is two: sections, and what one of them holds. */
static at_shape by_sections(const at_shape *shape, int axis, int64_t sections)
{
    at_shape s = {.ndim = shape->ndim + 1};
    for (int k = 0; k < s.ndim; k++)
        s.dim[k] = k == axis       ? AT_DIM(sections)
                   : k == axis + 1 ? AT_DIM(-1)
                                   : shape->dim[k - (k > axis)];
    return s;
}

/* Sections of an axis whose length only run time knows: the framework sees whether it can be cut so. */
static void cut_unknown(at_frame *f, at_array x, const at_shape *shape, int sections, int axis,
                        at_array *out)
{
    at_shape apart = by_sections(shape, axis, sections), part = *shape;
    part.dim[axis] = AT_DIM(-1);
    at_array rows = at_reshape(f, x, &apart);
    for (int i = 0; i < sections; i++) {
        at_array one = at_slice(f, rows, AT_DIM(i), AT_DIM(i + 1), axis);
        out[i] = ati_spent(f, at_reshape(f, one, &part), one);
    }
}

static void cut_evenly(at_frame *f, at_array x, int64_t length, int sections, int axis,
                       at_array *out)
{
    for (int i = 0; i < sections; i++)
        out[i] = at_slice(f, x, AT_DIM(i * length), AT_DIM((i + 1) * length), axis);
}

void ati_split(at_frame *f, at_array x, at_cuts indices_or_sections, int axis, at_array *out)
{
    const at_cuts cuts = indices_or_sections;
    int count = ati_split_count(cuts);
    at_shape shape;
    if (at_shape_of(f, x, &shape) != AT_OK) return;
    at_dim start = AT_DIM(0), n = shape.dim[axis];
    if (cuts.sections != INT64_MIN && at_is_nil(n.sym)) {
        cut_evenly(f, x, n.n / count, count, axis, out);
    } else if (cuts.sections != INT64_MIN) {
        cut_unknown(f, x, &shape, count, axis, out);
    } else {
        for (int i = 0; i < cuts.count; i++) {
            out[i] = at_slice(f, x, start, cuts.index[i], axis);
            start = cuts.index[i];
        }
        out[cuts.count] = at_slice(f, x, start, AT_NO_DIM, axis);
    }
}
