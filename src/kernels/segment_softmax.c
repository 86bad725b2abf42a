/* Segment softmax in four passes over rows that stay in out: copy, subtract the peak of the segment and take exp,
 * and divide by the segment's sum. Peaks and sums are the folds of segment_fold.c, so that NaN, infinities
 * and long segments are treated as there. Rows with a dropped id become zero. */
#include <math.h>
#include <stdlib.h>

#include "kernels/move.h"
#include "kernels/segment.h"

/* Rows of out, and the row of a table of segments that belongs to each. */
typedef struct rows {
    void *out;
    const void *table;
    const int64_t *slot; /* n for dropped ones */
    int64_t count, width, n;
} rows;

#define PASSES(type, name, exp_of)                                                                 \
    static void shift_##name(const rows *r)                                                        \
    {                                                                                              \
        for (int64_t e = 0; e < r->count; e++) {                                                   \
            type *out = (type *)r->out + e * r->width;                                             \
            const type *peak = (const type *)r->table + r->slot[e] * r->width;                     \
            if (r->slot[e] == r->n) continue;                                                      \
            for (int64_t k = 0; k < r->width; k++) out[k] = exp_of(out[k] - peak[k]);              \
        }                                                                                          \
    }                                                                                              \
    static void divide_##name(const rows *r)                                                       \
    {                                                                                              \
        for (int64_t e = 0; e < r->count; e++) {                                                   \
            type *out = (type *)r->out + e * r->width;                                             \
            const type *total = (const type *)r->table + r->slot[e] * r->width;                    \
            bool kept = r->slot[e] != r->n;                                                        \
            for (int64_t k = 0; k < r->width; k++) out[k] = kept ? out[k] / total[k] : 0;          \
        }                                                                                          \
    }

PASSES(float, float32, expf)
PASSES(double, float64, exp)

static int64_t width_of(const ati_host *out)
{
    int64_t width = 1;
    for (int k = 1; k < out->ndim; k++) width *= out->dim[k];
    return width;
}

bool ati_k_segment_softmax(const ati_host *x, const ati_host *ids, int64_t n, ati_host *out)
{
    bool is_float = out->dtype == AT_FLOAT32;
    rows r = {.out = out->data, .count = out->dim[0], .width = width_of(out), .n = n};
    ati_host table = *out, slots = {.dtype = AT_INT64, .ndim = 1, .dim = {r.count}, .stride = {8}};
    table.dim[0] = n;
    int64_t bytes;
    if (!ati_k_bytes(out->dtype, table.ndim, table.dim, &bytes)) return false;
    table.data = malloc((size_t)bytes + 1);
    slots.data = malloc((size_t)r.count * sizeof(int64_t) + 1);
    bool fine = table.data != NULL && slots.data != NULL;
    if (fine) {
        ati_k_row_major(&table);
        ati_k_copy(x, out);
        ati_k_slot_ids(ids, n, &slots);
        r.table = table.data;
        r.slot = slots.data;
        fine = ati_k_segment_fold(ATI_FOLD_MAX, out, &slots, &table);
    }
    if (fine) {
        (is_float ? shift_float32 : shift_float64)(&r);
        fine = ati_k_segment_fold(ATI_FOLD_SUM, out, &slots, &table);
    }
    if (fine) (is_float ? divide_float32 : divide_float64)(&r);
    free(table.data);
    free(slots.data);
    return fine;
}
