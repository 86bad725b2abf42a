/* Shapes and strides, and the walk over several views at once.
 *
 * A walk first makes the axes few: those of size 1 go, and two neighbours merge where the outer stride is
 * the inner one times the inner size in every view. What is left last is the run. Pointers never move past the
 * first or last element of an axis, so that no pointer outside an array is ever formed. */
#include "kernels/view.h"

int64_t ati_k_itemsize(at_dtype dtype)
{
    static const int8_t size[] = {
        [AT_NODTYPE] = 0,
#define X(name, NAME, bytes, kind) [AT_##NAME] = bytes,
        AT_DTYPES(X)
#undef X
            [AT_OTHER] = 0,
    };
    return size[dtype];
}

int64_t ati_k_count(const ati_host *view)
{
    int64_t count = 1;
    for (int k = 0; k < view->ndim; k++) {
        if (view->dim[k] == 0) return 0;
        count *= view->dim[k];
    }
    return count;
}

bool ati_k_bytes(at_dtype dtype, int ndim, const int64_t *dims, int64_t *bytes)
{
    int64_t total = ati_k_itemsize(dtype);
    bool empty = false;
    for (int k = 0; k < ndim; k++) {
        if (dims[k] == 0)
            empty = true;
        else if (__builtin_mul_overflow(total, dims[k], &total))
            return false;
    }
    *bytes = empty ? 0 : total;
    return true;
}

void ati_k_row_major(ati_host *view)
{
    int64_t stride = ati_k_itemsize(view->dtype);
    for (int k = view->ndim - 1; k >= 0; k--) {
        view->stride[k] = stride;
        stride *= view->dim[k] ? view->dim[k] : 1;
    }
}

ati_host ati_k_view(void *data, at_dtype dtype, int ndim, const int64_t *dims)
{
    ati_host view = {.data = data, .dtype = dtype, .ndim = ndim};
    for (int k = 0; k < ndim; k++) view.dim[k] = dims[k];
    ati_k_row_major(&view);
    return view;
}

bool ati_k_is_row_major(const ati_host *view)
{
    int64_t stride = ati_k_itemsize(view->dtype);
    bool regular = true;
    for (int k = view->ndim - 1; k >= 0; k--) {
        if (view->dim[k] == 0) return true;
        regular = regular && (view->dim[k] == 1 || view->stride[k] == stride);
        stride *= view->dim[k];
    }
    return regular;
}

bool ati_k_rows_are_whole(const ati_host *view)
{
    ati_host row = *view;
    row.dim[0] = 1;
    return ati_k_is_row_major(&row);
}

int64_t ati_k_row_width(const ati_host *view)
{
    int64_t width = 1;
    for (int k = 1; k < view->ndim; k++) width *= view->dim[k];
    return width;
}

bool ati_k_broadcast(ati_host *view, int ndim, const int64_t *dims)
{
    int added = ndim - view->ndim;
    ati_host wide = {.data = view->data, .dtype = view->dtype, .ndim = ndim};
    if (added < 0) return false;
    for (int k = 0; k < ndim; k++) {
        int64_t have = k < added ? 1 : view->dim[k - added];
        if (have != dims[k] && have != 1) return false;
        wide.dim[k] = dims[k];
        wide.stride[k] = have == 1 ? 0 : view->stride[k - added];
    }
    *view = wide;
    return true;
}

bool ati_k_broadcast_dims(const ati_host *view, int *ndim, int64_t *dims)
{
    int added = view->ndim - *ndim;
    if (added > 0) {
        for (int k = *ndim - 1; k >= 0; k--) dims[k + added] = dims[k];
        for (int k = 0; k < added; k++) dims[k] = 1;
        *ndim = view->ndim;
    }
    for (int k = 0; k < view->ndim; k++) {
        int64_t *to = dims + (*ndim - view->ndim) + k;
        if (*to != view->dim[k] && *to != 1 && view->dim[k] != 1) return false;
        *to = *to == 1 ? view->dim[k] : *to;
    }
    return true;
}

/* Whether axis k of the views continues the last axis that the walk has, in all of them. */
static bool continues(const ati_walk *w, const ati_host *const *view, int k)
{
    for (int v = 0; v < w->views; v++)
        if (w->stride[v][w->ndim - 1] != view[v]->stride[k] * view[v]->dim[k]) return false;
    return w->ndim > 0;
}

static void add_axis(ati_walk *w, const ati_host *const *view, int k)
{
    if (w->ndim > 0 && continues(w, view, k)) {
        w->dim[w->ndim - 1] *= view[0]->dim[k];
    } else {
        w->index[w->ndim] = 0;
        w->dim[w->ndim++] = view[0]->dim[k];
    }
    for (int v = 0; v < w->views; v++) w->stride[v][w->ndim - 1] = view[v]->stride[k];
}

bool ati_walk_start(ati_walk *w, int views, const ati_host *const *view)
{
    w->views = views;
    w->ndim = 0;
    for (int k = 0; k < view[0]->ndim; k++) {
        if (view[0]->dim[k] == 0) return false;
        if (view[0]->dim[k] > 1) add_axis(w, view, k);
    }
    w->run = w->ndim > 0 ? w->dim[w->ndim - 1] : 1;
    for (int v = 0; v < views; v++) {
        w->at[v] = view[v]->data;
        w->step[v] = w->ndim > 0 ? w->stride[v][w->ndim - 1] : ati_k_itemsize(view[v]->dtype);
    }
    w->ndim -= w->ndim > 0;
    return true;
}

bool ati_walk_next(ati_walk *w)
{
    for (int k = w->ndim - 1; k >= 0; k--) {
        if (w->index[k] + 1 < w->dim[k]) {
            w->index[k]++;
            for (int v = 0; v < w->views; v++) w->at[v] += w->stride[v][k];
            return true;
        }
        for (int v = 0; v < w->views; v++) w->at[v] -= w->stride[v][k] * w->index[k];
        w->index[k] = 0;
    }
    return false;
}
