/* Shapes and strides of host views, and the walk that every strided kernel is built on. */
#ifndef ATI_VIEW_H
#define ATI_VIEW_H

#include "kernels/host.h"

/* Bytes of one element; 0 for AT_NODTYPE and AT_OTHER. */
int64_t ati_k_itemsize(at_dtype dtype);

/* Elements of a view. */
int64_t ati_k_count(const ati_host *view);

/* Bytes of a row-major array; false where they, or a stride, would not fit in an int64_t. No size may be
 * negative. */
bool ati_k_bytes(at_dtype dtype, int ndim, const int64_t *dims, int64_t *bytes);

/* A row-major view of memory. */
ati_host ati_k_view(void *data, at_dtype dtype, int ndim, const int64_t *dims);

/* Sets row-major strides. */
void ati_k_row_major(ati_host *view);

/* Whether the elements lie in row-major order without gaps; sizes 1 and empty views never disturb it. */
bool ati_k_is_row_major(const ati_host *view);

/* The same of each row, wherever the rows stand. */
bool ati_k_rows_are_whole(const ati_host *view);

/* Elements of a row. */
int64_t ati_k_row_width(const ati_host *view);

/* Stretches a view to a shape by strides of 0. False, and nothing done, where it does not fit. */
bool ati_k_broadcast(ati_host *view, int ndim, const int64_t *dims);

/* Widens a shape so that the view broadcasts to it too. False where they do not fit together. */
bool ati_k_broadcast_dims(const ati_host *view, int *ndim, int64_t *dims);

/* A walk over up to four views of one shape, together, in row-major order, run by run:
 *
 *     for (bool more = ati_walk_start(&w, 2, views); more; more = ati_walk_next(&w))
 *         work(w.at[0], w.step[0], w.at[1], w.step[1], w.run);
 *
 * Axes of size 1 are left out and axes that continue each other in all views become one, so that the run is
 * as long as it can be. A view that is row-major always has its element size as step. */
#define ATI_WALK_VIEWS 4

typedef struct ati_walk {
    char *at[ATI_WALK_VIEWS];     /* first element of this run */
    int64_t step[ATI_WALK_VIEWS]; /* bytes from one element of a run to the next */
    int64_t run;                  /* elements of a run */
    int views;
    int ndim; /* axes outside the run */
    int64_t dim[AT_MAX_NDIM];
    int64_t index[AT_MAX_NDIM];
    int64_t stride[ATI_WALK_VIEWS][AT_MAX_NDIM];
} ati_walk;

/* False where there is no element. */
bool ati_walk_start(ati_walk *w, int views, const ati_host *const *view);
bool ati_walk_next(ati_walk *w);

#endif
