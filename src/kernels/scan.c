/* Running sums, in the widest type of the dtype's class.
 *
 * The axis is taken out of the shape and the rest is walked. Along a run many sums go on side by side, a
 * block of them at a time; where there is nothing beside the axis, one sum runs along it. */
#include <string.h>

#include "kernels/block.h"
#include "kernels/reduce.h"
#include "kernels/view.h"

/* One axis of x and of out. */
typedef struct lane {
    int64_t length;
    at_dtype x_dtype, out_dtype;
    int64_t x_step, out_step;
    ati_class c;
} lane;

static void add_each(ati_block *acc, const ati_block *v, int64_t n, ati_class c)
{
    if (c == ATI_REAL)
        for (int64_t k = 0; k < n; k++) acc->d[k] += v->d[k];
    else
        for (int64_t k = 0; k < n; k++) acc->u[k] += v->u[k];
}

/* count sums side by side. */
static void scan_beside(const lane *l, const char *x, int64_t x_beside, char *out,
                        int64_t out_beside, int64_t count)
{
    ati_block acc, v;
    memset(&acc, 0, sizeof acc);
    for (int64_t k = 0; k < l->length; k++) {
        ati_block_load(&v, l->x_dtype, x + k * l->x_step, x_beside, count);
        add_each(&acc, &v, count, l->c);
        ati_block_store(&acc, l->c, l->out_dtype, out + k * l->out_step, out_beside, count);
    }
}

static void run_through(ati_block *v, const ati_block *carry, int64_t n, ati_class c)
{
    if (c == ATI_REAL) {
        double sum = carry->d[0];
        for (int64_t k = 0; k < n; k++) v->d[k] = sum += v->d[k];
    } else {
        uint64_t sum = carry->u[0];
        for (int64_t k = 0; k < n; k++) v->u[k] = sum += v->u[k];
    }
}

static void scan_along(const lane *l, const char *x, char *out)
{
    ati_block v, carry;
    carry.u[0] = 0;
    for (int64_t k = 0; k < l->length; k += ATI_BLOCK) {
        int64_t n = ati_block_of(l->length - k);
        ati_block_load(&v, l->x_dtype, x + k * l->x_step, l->x_step, n);
        run_through(&v, &carry, n, l->c);
        ati_block_store(&v, l->c, l->out_dtype, out + k * l->out_step, l->out_step, n);
        carry.u[0] = v.u[n - 1];
    }
}

static ati_host without(const ati_host *x, int axis)
{
    ati_host view = *x;
    view.ndim--;
    for (int k = axis; k < view.ndim; k++) {
        view.dim[k] = x->dim[k + 1];
        view.stride[k] = x->stride[k + 1];
    }
    return view;
}

void ati_k_cumsum(const ati_host *x, int axis, ati_host *out)
{
    ati_walk w;
    lane l = {.length = x->dim[axis],
              .x_dtype = x->dtype,
              .out_dtype = out->dtype,
              .x_step = x->stride[axis],
              .out_step = out->stride[axis],
              .c = ati_class_of(x->dtype)};
    ati_host from = without(x, axis), to = without(out, axis);
    const ati_host *views[] = {&from, &to};
    for (bool more = ati_walk_start(&w, 2, views); more; more = ati_walk_next(&w)) {
        if (w.run == 1) scan_along(&l, w.at[0], w.at[1]);
        for (int64_t k = 0; w.run > 1 && k < w.run; k += ATI_BLOCK)
            scan_beside(&l, w.at[0] + k * w.step[0], w.step[0], w.at[1] + k * w.step[1], w.step[1],
                        ati_block_of(w.run - k));
    }
}
