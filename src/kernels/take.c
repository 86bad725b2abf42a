/* Gathers: elements of x at indices along one axis.
 *
 * An axis cuts a shape in three: the axes before it are walked, the indices are read in blocks, and what
 * lies behind (one piece per index) is copied whole; one memcpy where its memory is in one piece. The output
 * is written from front to back. Every index is compared with the bounds, always. */
#include <string.h>

#include "kernels/block.h"
#include "kernels/element.h"
#include "kernels/move.h"
#include "kernels/pool.h"

typedef struct gather {
    const char *from; /* x at the current position of the axes before */
    int64_t rows, row_step;
    ati_host piece; /* what lies behind the axis; data is set per row where it is strided */
    int64_t size;   /* bytes of a piece */
    bool whole;     /* a piece is one stretch of memory */
    bool wrap;      /* negative indices count from the end, others are refused; else: zeros */
    char *to;
} gather;

static void strided_piece(gather *g, int64_t row)
{
    ati_host dst = ati_k_view(g->to, g->piece.dtype, g->piece.ndim, g->piece.dim);
    memcpy(&g->piece.data, &(const char *){g->from + row * g->row_step}, sizeof g->piece.data);
    ati_k_copy(&g->piece, &dst);
}

/* Copies of a size that the compiler knows are single moves. */
ATI_INLINE bool block_of_size(gather *g, const int64_t *ids, int64_t count, int64_t size)
{
    for (int64_t k = 0; k < count; k++, g->to += size) {
        int64_t row = ids[k] < 0 && g->wrap ? ids[k] + g->rows : ids[k];
        bool inside = row >= 0 && row < g->rows;
        if (!inside && g->wrap) return false;
        if (!inside)
            memset(g->to, 0, (size_t)size);
        else if (g->whole)
            memcpy(g->to, g->from + row * g->row_step, (size_t)size);
        else
            strided_piece(g, row);
    }
    return true;
}

static bool gather_block(gather *g, const int64_t *ids, int64_t count)
{
    switch (g->size) {
    case 1: return block_of_size(g, ids, count, 1);
    case 2: return block_of_size(g, ids, count, 2);
    case 4: return block_of_size(g, ids, count, 4);
    case 8: return block_of_size(g, ids, count, 8);
    default: return block_of_size(g, ids, count, g->size);
    }
}

/* All indices once, for one position of the axes before. */
static bool gather_all(gather *g, const ati_host *indices)
{
    ati_walk w;
    int64_t ids[ATI_BLOCK];
    for (bool more = ati_walk_start(&w, 1, &indices); more; more = ati_walk_next(&w))
        for (int64_t k = 0; k < w.run; k += ATI_BLOCK) {
            int64_t count = ati_block_of(w.run - k);
            ati_ids_load(ids, indices->dtype, w.at[0] + k * w.step[0], w.step[0], count);
            if (!gather_block(g, ids, count)) return false;
        }
    return true;
}

/* Axes [first, first + count) of a view. */
static ati_host part(const ati_host *x, int first, int count)
{
    ati_host view = {.data = x->data, .dtype = x->dtype, .ndim = count};
    for (int k = 0; k < count; k++) {
        view.dim[k] = x->dim[first + k];
        view.stride[k] = x->stride[first + k];
    }
    return view;
}

static bool take(const ati_host *x, const ati_host *indices, int axis, bool wrap, ati_host *out)
{
    ati_walk w;
    ati_host before = part(x, 0, axis);
    const ati_host *outer = &before;
    gather g = {.rows = x->dim[axis], .row_step = x->stride[axis], .wrap = wrap, .to = out->data};
    g.piece = part(x, axis + 1, x->ndim - axis - 1);
    g.whole = ati_k_is_row_major(&g.piece);
    g.size = ati_k_count(&g.piece) * ati_k_itemsize(x->dtype);
    /* A run of the walk is stepped through one by one: each position is a gather of its own. */
    for (bool more = ati_walk_start(&w, 1, &outer); more; more = ati_walk_next(&w))
        for (int64_t k = 0; k < w.run; k++) {
            g.from = w.at[0] + k * w.step[0];
            if (!gather_all(&g, indices)) return false;
        }
    return true;
}

bool ati_k_take(const ati_host *x, const ati_host *indices, int axis, ati_host *out)
{
    return take(x, indices, axis, true, out);
}

/* --- rows by ids, on several threads ---------------------------------------------------------------------- */

typedef struct spreading {
    const ati_host *x, *ids;
    ati_host *out;
    int threads;
} spreading;

static void spread_part(void *arg, int index)
{
    const spreading *s = arg;
    ati_host ids = *s->ids, out = *s->out;
    int64_t low = ati_part(ids.dim[0], index, s->threads);
    ids.data = (char *)ids.data + low * ids.stride[0];
    out.data = (char *)out.data + low * out.stride[0];
    ids.dim[0] = out.dim[0] = ati_part(s->ids->dim[0], index + 1, s->threads) - low;
    take(s->x, &ids, 0, false, &out);
}

void ati_k_spread(const ati_host *x, const ati_host *ids, ati_host *out)
{
    enum { GRAIN = 1 << 15 };
    spreading s = {x, ids, out, ati_pool_threads_for(ati_k_count(out), GRAIN)};
    ati_pool_run(s.threads, spread_part, &s);
}
