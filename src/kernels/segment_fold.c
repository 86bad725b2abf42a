/* Segment sum, min and max: one pass over the rows, each folded into the row of its segment.
 *
 * Rows come in blocks: ids as int64 with -1 for dropped ones, rows as contiguous memory (copied to a small
 * buffer where x is strided or has another dtype than out). Inner loops run over the features of a row, which
 * gcc vectorises.
 *
 * Floats narrower than double cannot add up many rows. Segments are counted first, and those of more rows than
 * their dtype bears (1,024 of float32, none of the half types) add in a row of doubles of their own: at
 * most one per 1,024 rows, so that short segments cost nothing more. */
#include <stdlib.h>
#include <string.h>

#include "kernels/block.h"
#include "kernels/element.h"
#include "kernels/move.h"
#include "kernels/segment.h"

enum { LONG_SEGMENT = 1024, BUFFER = 1 << 16, AHEAD = 8, LINE = 64 };

/* A block of rows on their way to the rows of out. */
typedef struct batch {
    const char *rows;
    int64_t row_step;        /* bytes */
    int64_t count, width;    /* rows; elements of each */
    int64_t slot[ATI_BLOCK]; /* row of out, or -1: dropped */
} batch;

typedef void folder(const batch *b, const int64_t *slot, char *out);

#define KEEP_SUM(a, v) ((a) + (v))
#define KEEP_LESS(a, v) ((v) < (a) ? (v) : (a))
#define KEEP_MORE(a, v) ((v) > (a) ? (v) : (a))

/* Asks for a row of out some rows before it is needed: ids are random, and its cache lines are mostly far away. */
ATI_INLINE void fetch(const char *out, int64_t slot, int64_t size)
{
    if (slot >= 0 && size >= LINE)
        for (int64_t k = 0; k < size && k < AHEAD * LINE; k += LINE)
            __builtin_prefetch(out + slot * size + k, 1);
}

/* Folds rows of dtype in into rows of dtype to. Rows of one element get a loop of their own. */
#define FOLD(name, in, to, keep)                                                                   \
    ATI_INLINE void row_##name(const char *restrict from, char *restrict acc, int64_t width)       \
    {                                                                                              \
        enum { IN = sizeof(ati_memory_##in), TO = sizeof(ati_memory_##to) };                       \
        for (int64_t k = 0; k < width; k++) {                                                      \
            ati_value_##to a = ati_load_##to(acc + k * TO);                                        \
            ati_value_##to v = (ati_value_##to)ati_load_##in(from + k * IN);                       \
            ati_store_##to(acc + k * TO, (ati_value_##to)keep(a, v));                              \
        }                                                                                          \
    }                                                                                              \
    ATI_INLINE void rows_##name(const batch *b, const int64_t *slot, char *out, int64_t width)     \
    {                                                                                              \
        const int64_t size = width * (int64_t)sizeof(ati_memory_##to);                             \
        for (int64_t e = 0; e < b->count; e++) {                                                   \
            if (e + AHEAD < b->count) fetch(out, slot[e + AHEAD], size);                           \
            if (slot[e] >= 0) row_##name(b->rows + e * b->row_step, out + slot[e] * size, width);  \
        }                                                                                          \
    }                                                                                              \
    static void name(const batch *b, const int64_t *slot, char *out)                               \
    {                                                                                              \
        if (b->width == 1)                                                                         \
            rows_##name(b, slot, out, 1);                                                          \
        else                                                                                       \
            rows_##name(b, slot, out, b->width);                                                   \
    }

/* Sums of signed integers are those of unsigned ones, where wrapping is defined. */
#define SUMS(X) X(u8) X(u16) X(u32) X(u64) X(f32) X(f64)
#define WIDE_SUMS(X) X(f16) X(bf16) X(f32)
#define WHOLE(X) X(b8) X(i8) X(i16) X(i32) X(i64) X(u8) X(u16) X(u32) X(u64)
#define REAL(X) X(f16) X(bf16) X(f32) X(f64)

#define SUM(t) FOLD(sum_##t, t, t, KEEP_SUM)
#define WIDE_SUM(t) FOLD(wide_sum_##t, t, f64, KEEP_SUM)
#define LEAST(t) FOLD(min_##t, t, t, KEEP_LESS)
#define MOST(t) FOLD(max_##t, t, t, KEEP_MORE)
#define LEAST_OR_NAN(t) FOLD(min_##t, t, t, ati_less_##t)
#define MOST_OR_NAN(t) FOLD(max_##t, t, t, ati_more_##t)

SUMS(SUM)
WIDE_SUMS(WIDE_SUM)
WHOLE(LEAST)
WHOLE(MOST)
REAL(LEAST_OR_NAN)
REAL(MOST_OR_NAN)

/* sum, min, max, and the sum in double, of each dtype */
static const struct {
    folder *fold[3], *wide;
} folders[] = {
    [AT_BOOL] = {{NULL, min_b8, max_b8}, NULL},
    [AT_INT8] = {{sum_u8, min_i8, max_i8}, NULL},
    [AT_INT16] = {{sum_u16, min_i16, max_i16}, NULL},
    [AT_INT32] = {{sum_u32, min_i32, max_i32}, NULL},
    [AT_INT64] = {{sum_u64, min_i64, max_i64}, NULL},
    [AT_UINT8] = {{sum_u8, min_u8, max_u8}, NULL},
    [AT_UINT16] = {{sum_u16, min_u16, max_u16}, NULL},
    [AT_UINT32] = {{sum_u32, min_u32, max_u32}, NULL},
    [AT_UINT64] = {{sum_u64, min_u64, max_u64}, NULL},
    [AT_FLOAT16] = {{NULL, min_f16, max_f16}, wide_sum_f16},
    [AT_BFLOAT16] = {{NULL, min_bf16, max_bf16}, wide_sum_bf16},
    [AT_FLOAT32] = {{sum_f32, min_f32, max_f32}, wide_sum_f32},
    [AT_FLOAT64] = {{sum_f64, min_f64, max_f64}, NULL},
};

/* One call of ati_k_segment_fold(). */
typedef struct work {
    ati_fold op;
    const ati_host *x, *ids;
    ati_host *out;
    int64_t width;
    char *buffer;      /* rows of strided x, or NULL */
    int64_t per_batch; /* rows of a batch */
    int64_t *place;    /* row in side of each segment, or -1; NULL: there is no side */
    double *side;      /* sums of long segments */
} work;

/* What an empty segment holds. Infinity casts to the extreme of every integer type; False is the least bool. */
static void fill_identity(ati_fold op, ati_host *out)
{
    double value[] = {0, (double)INFINITY, out->dtype == AT_BOOL ? 0 : -(double)INFINITY};
    ati_host all = {.data = &value[op], .dtype = AT_FLOAT64};
    ati_k_broadcast(&all, out->ndim, out->dim);
    ati_k_copy(&all, out);
}

/* --- long segments --- */

/* Rows that a segment may have without a row of doubles. */
static int64_t bearable(const work *w)
{
    if (w->op != ATI_FOLD_SUM || folders[w->out->dtype].wide == NULL) return INT64_MAX;
    return w->out->dtype == AT_FLOAT32 ? LONG_SEGMENT : 0;
}

/* Turns counts into places: 0, 1, ... for long segments, -1 for others. Returns how many are long. */
static int64_t number_long(int64_t *count, int64_t n, int64_t limit)
{
    int64_t found = 0;
    for (int64_t s = 0; s < n; s++) count[s] = count[s] > limit ? found++ : -1;
    return found;
}

static bool open_side(work *w)
{
    int64_t n = w->out->dim[0], limit = bearable(w);
    if (w->x->dim[0] <= limit || n == 0 || w->width == 0) return true;
    w->place = malloc((size_t)n * sizeof *w->place);
    if (w->place == NULL) return false;
    ati_host counts = ati_k_view(w->place, AT_INT64, 1, &n);
    ati_k_segment_count(w->ids, &counts);
    int64_t found = number_long(w->place, n, limit);
    if (found == 0) {
        free(w->place);
        w->place = NULL;
        return true;
    }
    w->side = calloc((size_t)(found * w->width), sizeof *w->side);
    return w->side != NULL;
}

static void close_side(work *w)
{
    int64_t size = w->width * ati_k_itemsize(w->out->dtype);
    for (int64_t s = 0; s < w->out->dim[0]; s++)
        if (w->place[s] >= 0)
            ati_block_store(w->side + w->place[s] * w->width, ATI_REAL, w->out->dtype,
                            (char *)w->out->data + s * size, ati_k_itemsize(w->out->dtype),
                            w->width);
}

/* --- batches --- */

static bool rows_are_ready(const work *w)
{
    ati_host row = *w->x;
    row.dim[0] = 1;
    return w->x->dtype == w->out->dtype && ati_k_is_row_major(&row);
}

static bool open_buffer(work *w)
{
    w->per_batch = ATI_BLOCK;
    if (rows_are_ready(w)) return true;
    int64_t size = w->width * ati_k_itemsize(w->out->dtype);
    if (size > BUFFER / ATI_BLOCK) w->per_batch = size < BUFFER ? BUFFER / size : 1;
    w->buffer = malloc((size_t)(size > 0 ? size * w->per_batch : 1));
    return w->buffer != NULL;
}

/* Rows [start, start + count) of x. */
static void read_rows(const work *w, int64_t start, batch *b)
{
    b->row_step = w->x->stride[0];
    b->rows = (const char *)w->x->data + start * b->row_step;
    if (w->buffer == NULL) return;
    ati_host src = *w->x;
    src.dim[0] = b->count;
    src.data = (char *)w->x->data + start * w->x->stride[0];
    ati_host dst = ati_k_view(w->buffer, w->out->dtype, src.ndim, src.dim);
    ati_k_copy(&src, &dst);
    b->rows = w->buffer;
    b->row_step = w->width * ati_k_itemsize(w->out->dtype);
}

static void read_slots(const work *w, int64_t start, batch *b)
{
    int64_t step = w->ids->stride[0];
    uint64_t n = (uint64_t)w->out->dim[0];
    ati_ids_load(b->slot, w->ids->dtype, (const char *)w->ids->data + start * step, step, b->count);
    for (int64_t e = 0; e < b->count; e++) b->slot[e] = (uint64_t)b->slot[e] < n ? b->slot[e] : -1;
}

/* Rows of long segments go to the side, the others to out. */
static void fold_apart(const work *w, batch *b)
{
    int64_t far[ATI_BLOCK];
    for (int64_t e = 0; e < b->count; e++) {
        far[e] = b->slot[e] < 0 ? -1 : w->place[b->slot[e]];
        b->slot[e] = far[e] < 0 ? b->slot[e] : -1;
    }
    folders[w->out->dtype].wide(b, far, (char *)w->side);
    if (w->out->dtype == AT_FLOAT32) sum_f32(b, b->slot, w->out->data);
}

static void fold_batches(const work *w)
{
    batch b = {.width = w->width};
    for (int64_t start = 0; start < w->x->dim[0]; start += b.count) {
        int64_t left = w->x->dim[0] - start;
        b.count = left < w->per_batch ? left : w->per_batch;
        read_slots(w, start, &b);
        read_rows(w, start, &b);
        if (w->place != NULL)
            fold_apart(w, &b);
        else
            folders[w->out->dtype].fold[w->op](&b, b.slot, w->out->data);
    }
}

bool ati_k_segment_fold(ati_fold op, const ati_host *x, const ati_host *ids, ati_host *out)
{
    work w = {.op = op, .x = x, .ids = ids, .out = out, .width = 1};
    for (int k = 1; k < out->ndim; k++) w.width *= out->dim[k];
    if (ati_k_count(out) == 0) return true;
    bool ready = open_buffer(&w) && open_side(&w);
    if (ready) {
        fill_identity(op, out);
        if (x->dim[0] > 0 && (w.place != NULL || folders[out->dtype].fold[op] != NULL))
            fold_batches(&w);
        if (w.place != NULL) close_side(&w);
    }
    free(w.side);
    free(w.place);
    free(w.buffer);
    return ready;
}
