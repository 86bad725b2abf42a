/* Reductions: everything is folded into accumulators of the widest type of its class.
 *
 * The accumulators are seen as an array of x's shape with stride 0 along the reduced axes, so that one walk serves
 * all sets of axes: along a run the accumulator either stands still (fold a block into one) or moves along
 * (fold a block into a row). Exact for min and max; sums of floats gain the precision of double. */
#include <stdlib.h>

#include "kernels/block.h"
#include "kernels/element.h"
#include "kernels/reduce.h"
#include "kernels/view.h"

typedef void folder(const void *values, int64_t n, void *acc);

#define SUM(a, v) ((a) + (v))
#define PROD(a, v) ((a) * (v))
#define LESS(a, v) ((v) < (a) ? (v) : (a))
#define MORE(a, v) ((v) > (a) ? (v) : (a))

/* Eight partial results, so that additions overlap and fewer of them follow each other. */
#define FOLD(name, wide, start, keep)                                                              \
    static void name##_one(const void *values, int64_t n, void *acc)                               \
    {                                                                                              \
        const wide *v = values;                                                                    \
        wide part[8] = {start, start, start, start, start, start, start, start}, all;              \
        int64_t k = 0;                                                                             \
        for (; k + 8 <= n; k += 8)                                                                 \
            for (int j = 0; j < 8; j++) part[j] = keep(part[j], v[k + j]);                         \
        for (int j = 0; k < n; k++, j++) part[j] = keep(part[j], v[k]);                            \
        all = *(wide *)acc;                                                                        \
        for (int j = 0; j < 8; j++) all = keep(all, part[j]);                                      \
        *(wide *)acc = all;                                                                        \
    }                                                                                              \
    static void name##_each(const void *values, int64_t n, void *acc)                              \
    {                                                                                              \
        const wide *restrict v = values;                                                           \
        wide *restrict a = acc;                                                                    \
        for (int64_t k = 0; k < n; k++) a[k] = keep(a[k], v[k]);                                   \
    }

/* Integers of both signs add and multiply as unsigned ones, where wrapping is defined. */
FOLD(sum_whole, uint64_t, 0, SUM)
FOLD(sum_real, double, 0, SUM)
FOLD(prod_whole, uint64_t, 1, PROD)
FOLD(prod_real, double, 1, PROD)
FOLD(min_signed, int64_t, INT64_MAX, LESS)
FOLD(min_unsigned, uint64_t, UINT64_MAX, LESS)
FOLD(min_real, double, (double)INFINITY, ati_less_f64)
FOLD(max_signed, int64_t, INT64_MIN, MORE)
FOLD(max_unsigned, uint64_t, 0, MORE)
FOLD(max_real, double, -(double)INFINITY, ati_more_f64)

/* By op and class: fold into one, fold into each. */
#define BOTH(name)                                                                                 \
    {                                                                                              \
        name##_one, name##_each                                                                    \
    }
static folder *const folders[][3][2] = {
    [ATI_REDUCE_SUM] = {BOTH(sum_whole), BOTH(sum_whole), BOTH(sum_real)},
    [ATI_REDUCE_PROD] = {BOTH(prod_whole), BOTH(prod_whole), BOTH(prod_real)},
    [ATI_REDUCE_MIN] = {BOTH(min_signed), BOTH(min_unsigned), BOTH(min_real)},
    [ATI_REDUCE_MAX] = {BOTH(max_signed), BOTH(max_unsigned), BOTH(max_real)},
    [ATI_REDUCE_MEAN] = {BOTH(sum_whole), BOTH(sum_whole), BOTH(sum_real)},
};

/* The value that an accumulator starts from, as the bits of its class. */
static uint64_t start_of(ati_reduction op, ati_class c)
{
    union {
        int64_t i;
        uint64_t u;
        double d;
    } v = {.u = 0};
    if (op == ATI_REDUCE_SUM || op == ATI_REDUCE_MEAN) return 0; /* of 0.0 too */
    if (c == ATI_REAL)
        v.d = op == ATI_REDUCE_PROD  ? 1
              : op == ATI_REDUCE_MIN ? (double)INFINITY
                                     : -(double)INFINITY;
    else if (op == ATI_REDUCE_PROD)
        v.u = 1;
    else if (c == ATI_SIGNED)
        v.i = op == ATI_REDUCE_MIN ? INT64_MAX : INT64_MIN;
    else
        v.u = op == ATI_REDUCE_MIN ? UINT64_MAX : 0;
    return v.u;
}

/* The accumulators in x's shape: row-major over the kept axes, standing still along the others. */
static ati_host accumulators(const ati_host *x, uint32_t axes, void *memory)
{
    ati_host view = {
        .data = memory, .dtype = ati_class_dtype(ati_class_of(x->dtype)), .ndim = x->ndim};
    int64_t stride = 8;
    for (int k = x->ndim - 1; k >= 0; k--) {
        bool reduced = axes >> k & 1;
        view.dim[k] = x->dim[k];
        view.stride[k] = reduced ? 0 : stride;
        stride *= reduced || x->dim[k] == 0 ? 1 : x->dim[k];
    }
    return view;
}

static void fold_run(const ati_walk *w, at_dtype dtype, folder *const *fold)
{
    ati_block block;
    bool moves = w->step[1] != 0 && w->run > 1;
    for (int64_t k = 0; k < w->run; k += ATI_BLOCK) {
        int64_t count = ati_block_of(w->run - k);
        ati_block_load(&block, dtype, w->at[0] + k * w->step[0], w->step[0], count);
        fold[moves](&block, count, w->at[1] + (moves ? k * w->step[1] : 0));
    }
}

static void divide(double *sum, int64_t n, double by)
{
    for (int64_t k = 0; k < n; k++) sum[k] /= by;
}

static void reduce_into(ati_reduction op, const ati_host *x, uint32_t axes, void *memory, int64_t n)
{
    ati_walk w;
    ati_class c = ati_class_of(x->dtype);
    ati_host acc = accumulators(x, axes, memory);
    const ati_host *views[] = {x, &acc};
    uint64_t start = start_of(op, c);
    double folded = 1;
    for (int64_t k = 0; k < n; k++) ((uint64_t *)memory)[k] = start;
    for (bool more = ati_walk_start(&w, 2, views); more; more = ati_walk_next(&w))
        fold_run(&w, x->dtype, folders[op][c]);
    for (int k = 0; k < x->ndim; k++) folded *= axes >> k & 1 ? (double)x->dim[k] : 1;
    if (op == ATI_REDUCE_MEAN && c == ATI_REAL) divide(memory, n, folded);
}

bool ati_k_reduce(ati_reduction op, const ati_host *x, uint32_t axes, ati_host *out)
{
    int64_t n = ati_k_count(out), size = ati_k_itemsize(out->dtype);
    ati_class c = ati_class_of(x->dtype);
    bool direct = out->dtype == ati_class_dtype(c);
    void *memory = direct || n == 0 ? out->data : malloc((size_t)n * 8);
    if (n == 0) return true;
    if (memory == NULL) return false;
    reduce_into(op, x, axes, memory, n);
    if (!direct) {
        ati_block_store(memory, c, out->dtype, out->data, size, n);
        free(memory);
    }
    return true;
}
