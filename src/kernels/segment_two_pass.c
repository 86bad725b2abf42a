/* Composites that make a row per row in two passes: the first collects a sum per segment, the second makes each row
 * from it. Softmax, normalize, and the derivatives of softmax and of extremes (ati_pass in rows.h).
 *
 * Threads take parts of the rows. In the first pass each has a table of sums of its own; as many threads take part
 * as tables are no more than the data. Data is read in order, once per pass. */
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/fold.h"
#include "kernels/move.h"
#include "kernels/scratch.h"

enum { GRAIN = 1 << 14 };

typedef struct two_pass {
    ati_two_pass loops;
    const ati_host *x, *y; /* rows in one piece, of out's dtype; y may be NULL */
    const ati_host *ids;
    const char *p, *q; /* tables, or NULL */
    ati_host *out;
    double *sums; /* one table per adder, one behind the other */
    char *totals; /* the table of their sums, as float or double; NULL while it is not ready */
    int64_t rows, n, width;
    int64_t size;       /* bytes of an element */
    int64_t total_size; /* of a total */
    bool flat;          /* rows of one element, all in one piece */
    int adders, threads;
} two_pass;

/* A stretch of rows with the addresses that a tile points to. */
typedef struct tile_rows {
    const char *x[ATI_BLOCK], *y[ATI_BLOCK], *p[ATI_BLOCK], *q[ATI_BLOCK], *total[ATI_BLOCK];
    double *sum[ATI_BLOCK];
    char *to[ATI_BLOCK];
} tile_rows;

/* --- tiles ------------------------------------------------------------------------------------------------ */

/* Address of a row's element; NULL of nothing. */
static const char *row_of(const ati_host *view, int64_t row, int64_t offset)
{
    return view == NULL ? NULL : (const char *)view->data + row * view->stride[0] + offset;
}

static const char *entry(const char *table, int64_t offset)
{
    return table == NULL ? NULL : table + offset;
}

/* Asks for a row of a table some time before it is needed: ids are random, and tables larger than the cache. */
static void fetch(const void *table, int64_t row, int64_t row_size)
{
    enum { LINE = 64, LINES = 8 };
    if (table == NULL) return;
    const char *at = (const char *)table + row * row_size;
    for (int64_t k = 0; k < row_size && k < LINES * LINE; k += LINE) __builtin_prefetch(at + k);
}

static void fetch_tables(const two_pass *w, int64_t id, const double *sums)
{
    if ((uint64_t)id >= (uint64_t)w->n) return;
    fetch(sums, id, w->width * 8);
    fetch(w->totals, id, w->width * w->total_size);
    fetch(w->p, id, w->width * w->size);
    fetch(w->q, id, w->width * w->size);
}

/* Columns [col, col + cols) of some rows; returns how many of them are in a segment. */
static int64_t gather(const two_pass *w, const int64_t *ids, int64_t start, int64_t count,
                      int64_t col, double *sums, tile_rows *r)
{
    int64_t found = 0;
    for (int64_t e = 0; e < count; e++) {
        if ((uint64_t)ids[e] >= (uint64_t)w->n) continue;
        int64_t at = ids[e] * w->width + col;
        r->x[found] = row_of(w->x, start + e, col * w->size);
        r->y[found] = row_of(w->y, start + e, col * w->size);
        r->p[found] = entry(w->p, at * w->size);
        r->q[found] = entry(w->q, at * w->size);
        r->to[found] = (char *)w->out->data + ((start + e) * w->width + col) * w->size;
        r->total[found] = entry(w->totals, at * w->total_size);
        r->sum[found++] = sums == NULL ? NULL : sums + at;
    }
    return found;
}

/* Rows whose ids lie in a block, tile by tile. */
static void pass_block(const two_pass *w, ati_tile_loop *loop, const int64_t *ids, int64_t start,
                       int64_t count, double *sums)
{
    tile_rows r;
    int64_t most = w->width < ATI_TILE ? w->width : ATI_TILE, rows = ATI_TILE / most;
    ati_tile tile = {
        .x = r.x, .y = r.y, .p = r.p, .q = r.q, .sum = r.sum, .total = r.total, .to = r.to};
    for (int64_t e = 0, next; e < count; e = next) {
        next = rows < count - e ? e + rows : count;
        for (int64_t k = next; k < count && k < next + rows; k++) fetch_tables(w, ids[k], sums);
        for (int64_t col = 0; col < w->width; col += most) {
            tile.cols = most < w->width - col ? most : w->width - col;
            tile.rows = gather(w, ids + e, start + e, next - e, col, sums, &r);
            loop(&tile);
        }
    }
}

/* The same of rows of one element, without an address for each. */
static void pass_flat(const two_pass *w, ati_flat_loop *loop, const int64_t *ids, int64_t start,
                      int64_t count, double *sums)
{
    int64_t at[ATI_BLOCK];
    int32_t kept[ATI_BLOCK];
    const int64_t step = w->ids->stride[0];
    ati_rows_here()->find_entries(ids, w->n, count, at, kept);
    ati_flat flat = {.count = count,
                     .at = at,
                     .kept = kept,
                     .p = w->p,
                     .q = w->q,
                     .sum = sums,
                     .total = w->totals,
                     .to = (char *)w->out->data + start * w->size,
                     .ids_ahead = (const char *)w->ids->data + (start + ATI_BLOCK) * step,
                     .ids_step = step};
    flat.x = row_of(w->x, start, 0);
    flat.y = row_of(w->y, start, 0);
    loop(flat);
}

/* Rows of dropped ids are zero. */
static void clear_dropped(const two_pass *w, const int64_t *ids, int64_t start, int64_t count)
{
    int64_t row = w->width * w->size;
    for (int64_t e = 0; e < count; e++)
        if ((uint64_t)ids[e] >= (uint64_t)w->n)
            memset((char *)w->out->data + (start + e) * row, 0, (size_t)row);
}

/* The first or the second pass over rows [low, high). */
static void pass_rows(const two_pass *w, bool second, int64_t low, int64_t high, double *sums)
{
    int64_t ids[ATI_BLOCK];
    for (int64_t start = low; start < high; start += ATI_BLOCK) {
        int64_t count = ati_block_of(high - start);
        ati_ids_read(w->ids, start, count, ids);
        if (w->flat)
            pass_flat(w, second ? w->loops.map_flat : w->loops.add_flat, ids, start, count, sums);
        else
            pass_block(w, second ? w->loops.map : w->loops.add, ids, start, count, sums);
        if (second && !w->flat) clear_dropped(w, ids, start, count);
    }
}

/* --- the passes ------------------------------------------------------------------------------------------- */

static void add_part(void *arg, int index)
{
    const two_pass *w = arg;
    double *sums = w->sums + index * w->n * w->width;
    memset(sums, 0, (size_t)(w->n * w->width) * sizeof *sums);
    pass_rows(w, false, ati_part(w->rows, index, w->adders),
              ati_part(w->rows, index + 1, w->adders), sums);
}

/* A part of all tables, added to the first and then to its totals. */
static void merge_part(void *arg, int index)
{
    const two_pass *w = arg;
    int64_t all = w->n * w->width, low = ati_part(all, index, w->adders);
    int64_t count = ati_part(all, index + 1, w->adders) - low;
    char *first = (char *)(w->sums + low);
    for (int t = 1; t < w->adders; t++) {
        const char *other = (const char *)(w->sums + t * all + low);
        ati_rows_here()->fold[ATI_FOLD_SUM][AT_FLOAT64].rows(&other, &first, 1, 1, count);
    }
    ati_block_store(first, ATI_REAL, w->total_size == 4 ? AT_FLOAT32 : AT_FLOAT64,
                    w->totals + low * w->total_size, w->total_size, count);
}

static void map_part(void *arg, int index)
{
    const two_pass *w = arg;
    int64_t low = ati_part(w->rows, index, w->threads);
    int64_t high = ati_part(w->rows, index + 1, w->threads);
    pass_rows(w, true, low, high, NULL);
}

static bool is_flat(const two_pass *w)
{
    return w->width == 1 && w->n > 0 && w->x->stride[0] == w->size &&
           (w->y == NULL || w->y->stride[0] == w->size);
}

/* How many threads may have a table: together no more than the data. */
static int adders_of(const two_pass *w)
{
    int64_t most = w->n == 0 ? 1 : w->rows / w->n;
    return most < 1 ? 1 : most < w->threads ? (int)most : w->threads;
}

/* The sums and their totals in one block, so that scratch.c can keep it for the next kernel. */
static bool open_tables(two_pass *w, int64_t *bytes)
{
    int64_t all, dims[] = {w->adders, w->n, w->width};
    if (!ati_k_bytes(AT_FLOAT64, 3, dims, bytes) || !ati_k_bytes(AT_FLOAT64, 2, dims + 1, &all) ||
        __builtin_add_overflow(*bytes, all, bytes))
        return false;
    w->sums = ati_scratch(*bytes);
    return w->sums != NULL;
}

static bool run_passes(two_pass *w)
{
    int64_t bytes;
    w->flat = is_flat(w);
    w->threads = ati_pool_threads_for(w->rows * w->width, GRAIN);
    w->adders = adders_of(w);
    w->total_size = w->out->dtype == AT_FLOAT64 ? 8 : 4;
    if (!open_tables(w, &bytes)) return false;
    ati_pool_run(w->adders, add_part, w);
    w->totals = (char *)(w->sums + w->adders * w->n * w->width);
    ati_pool_run(w->adders, merge_part, w);
    ati_pool_run(w->threads, map_part, w);
    ati_scratch_free(w->sums, bytes);
    return true;
}

/* --- operands --------------------------------------------------------------------------------------------- */

/* A view with rows in one piece, of out's dtype: x's own, or a copy in memory of out's size. */
static bool is_ready(const ati_host *x, const ati_host *out)
{
    return x->dtype == out->dtype && ati_k_rows_are_whole(x);
}

static ati_host copied(const ati_host *x, const ati_host *out, void *memory)
{
    ati_host copy = ati_k_view(memory, out->dtype, out->ndim, out->dim);
    ati_k_copy(x, &copy);
    return copy;
}

/* x that is not ready is copied to out, where each element is read before its result is written. */
static const ati_host *ready(const ati_host *x, ati_host *out, ati_host *own)
{
    if (is_ready(x, out)) return x;
    *own = copied(x, out, out->data);
    return own;
}

/* y that is not ready is copied to memory of its own. */
static bool run(ati_pass pass, const ati_host *x, const ati_host *y, const char *p, const char *q,
                const ati_host *ids, int64_t n, ati_host *out)
{
    int64_t bytes = ati_k_count(out) * ati_k_itemsize(out->dtype);
    ati_host own_x, own_y;
    void *memory = NULL;
    if (bytes == 0) return true;
    if (y != NULL && !is_ready(y, out)) {
        memory = malloc((size_t)bytes);
        if (memory == NULL) return false;
        own_y = copied(y, out, memory);
        y = &own_y;
    }
    two_pass w = {.loops = ati_rows_here()->pass[pass][out->dtype],
                  .x = ready(x, out, &own_x),
                  .y = y,
                  .ids = ids,
                  .p = p,
                  .q = q,
                  .out = out,
                  .rows = out->dim[0],
                  .n = n,
                  .width = ati_k_row_width(out),
                  .size = ati_k_itemsize(out->dtype)};
    bool fine = run_passes(&w);
    free(memory);
    return fine;
}

/* --- the kernels ------------------------------------------------------------------------------------------ */

typedef struct look {
    const ati_host *x, *ids;
    int64_t n;
    ati_mild *mild;
    int threads;
    atomic_bool wild;
} look;

/* Whether those of some rows are mild that are not dropped: what dropped ones hold changes no bit of the others. */
static bool kept_are_mild(const look *l, int64_t row, int64_t count)
{
    int64_t ids[ATI_BLOCK], step = l->x->stride[0], width = ati_k_row_width(l->x);
    for (int64_t start = row, end = row + count; start < end; start += ATI_BLOCK) {
        int64_t some = ati_block_of(end - start);
        const char *x = row_of(l->x, start, 0);
        ati_ids_read(l->ids, start, some, ids);
        for (int64_t e = 0; e < some; e++)
            if ((uint64_t)ids[e] < (uint64_t)l->n && !l->mild(x + e * step, step, 1, width))
                return false;
    }
    return true;
}

static void look_at_part(void *arg, int index)
{
    look *l = arg;
    const ati_host *x = l->x;
    int64_t width = ati_k_row_width(x), step = x->stride[0], per = GRAIN / width + 1;
    int64_t high = ati_part(x->dim[0], index + 1, l->threads);
    for (int64_t row = ati_part(x->dim[0], index, l->threads); row < high; row += per) {
        int64_t count = per < high - row ? per : high - row;
        if (atomic_load_explicit(&l->wild, memory_order_relaxed)) return;
        if (!l->mild(row_of(x, row, 0), step, count, width) && !kept_are_mild(l, row, count))
            atomic_store_explicit(&l->wild, true, memory_order_relaxed);
    }
}

/* Logits that are mild need no peaks: exp of each is in range, and so is a sum of them. */
static bool are_mild(const ati_host *x, const ati_host *ids, int64_t n)
{
    look l = {.x = x, .ids = ids, .n = n, .mild = ati_rows_here()->mild[x->dtype]};
    l.threads = ati_pool_threads_for(ati_k_count(x), GRAIN);
    ati_pool_run(l.threads, look_at_part, &l);
    return !atomic_load(&l.wild);
}

static bool softmax_below_peaks(const ati_host *x, const ati_host *ids, int64_t n, ati_host *out)
{
    ati_host peak = *out;
    int64_t bytes;
    peak.dim[0] = n;
    if (!ati_k_bytes(out->dtype, peak.ndim, peak.dim, &bytes)) return false;
    peak.data = ati_scratch(bytes);
    if (peak.data == NULL) return false;
    ati_k_row_major(&peak);
    bool fine = ati_k_segment_fold(ATI_FOLD_MAX, x, ids, &peak) &&
                run(ATI_SOFTMAX, x, NULL, peak.data, NULL, ids, n, out);
    ati_scratch_free(peak.data, bytes);
    return fine;
}

bool ati_k_segment_softmax(const ati_host *x, const ati_host *ids, int64_t n, ati_host *out)
{
    ati_host own;
    if (ati_k_count(out) == 0) return true;
    x = ready(x, out, &own);
    return are_mild(x, ids, n) ? run(ATI_MILD_SOFTMAX, x, NULL, NULL, NULL, ids, n, out)
                               : softmax_below_peaks(x, ids, n, out);
}

bool ati_k_segment_normalize(const ati_host *x, const ati_host *ids, int64_t n, ati_host *out)
{
    return run(ATI_NORMALIZE, x, NULL, NULL, NULL, ids, n, out);
}

bool ati_k_segment_softmax_back(const ati_host *y, const ati_host *dy, const ati_host *ids,
                                int64_t n, ati_host *dx)
{
    return run(ATI_SOFTMAX_BACK, y, dy, NULL, NULL, ids, n, dx);
}

/* A table in one piece, of a dtype: its own memory, or a copy; false for no memory. An empty one may have none. */
static bool open_table(const ati_host *table, at_dtype dtype, const char **data, void **copy)
{
    *data = table->data;
    if (table->dtype == dtype && ati_k_is_row_major(table)) return true;
    ati_host to = ati_k_view(NULL, dtype, table->ndim, table->dim);
    *data = *copy = to.data = malloc((size_t)(ati_k_count(table) * ati_k_itemsize(dtype)) + 1);
    if (to.data != NULL) ati_k_copy(table, &to);
    return to.data != NULL;
}

bool ati_k_segment_extreme_back(const ati_host *x, const ati_host *peak, const ati_host *dpeak,
                                const ati_host *ids, ati_host *dx)
{
    void *own_p = NULL, *own_q = NULL;
    const char *p, *q;
    bool fine = open_table(peak, dx->dtype, &p, &own_p) &&
                open_table(dpeak, dx->dtype, &q, &own_q) &&
                run(ATI_EXTREME_BACK, x, NULL, p, q, ids, peak->dim[0], dx);
    free(own_p);
    free(own_q);
    return fine;
}
