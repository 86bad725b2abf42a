/* Which row of a segment holds its extreme, column by column.
 *
 * One pass in order, on one thread: the first of equal rows is asked for. A table holds the extremes so far; the result
 * tells by itself whether there is one yet. */
#include <stdlib.h>

#include "kernels/block.h"
#include "kernels/element.h"
#include "kernels/scratch.h"
#include "kernels/segment.h"
#include "kernels/view.h"

/* A row beside the extremes of its segment: it wins where there was none, where it beats the one there is, and where it
 * is the first NaN. none is what stands in `at` until then. */
typedef void arg_row(const char *x, int64_t width, int64_t row, int64_t none, void *best,
                     int64_t *at);

#define ARG_ROW(order, beats, name)                                                                \
    static void order##_##name(const char *x, int64_t width, int64_t row, int64_t none,            \
                               void *best, int64_t *at)                                            \
    {                                                                                              \
        ati_value_##name *b = best;                                                                \
        for (int64_t k = 0; k < width; k++) {                                                      \
            ati_value_##name v = ati_load_##name(x + k * (int64_t)sizeof(ati_memory_##name));      \
            bool wins = at[k] == none || v beats b[k] || (v != v && b[k] == b[k]);                 \
            if (!wins) continue;                                                                   \
            b[k] = v;                                                                              \
            at[k] = row;                                                                           \
        }                                                                                          \
    }
#define ARG_ROWS(name, ...) ARG_ROW(least, <, name) ARG_ROW(greatest, >, name)
ATI_ELEMENTS(ARG_ROWS)

/* In the order of at_dtype, as ATI_ELEMENTS is. */
static arg_row *const least[] = {
#define ROW(name, ...) least_##name,
    ATI_ELEMENTS(ROW)
#undef ROW
};
static arg_row *const greatest[] = {
#define ROW(name, ...) greatest_##name,
    ATI_ELEMENTS(ROW)
#undef ROW
};

enum { WIDEST = 8 }; /* bytes of a value */

bool ati_k_segment_arg(ati_fold op, const ati_host *x, const ati_host *ids, ati_host *out)
{
    int64_t rows = x->dim[0], n = out->dim[0], width = ati_k_row_width(out), bytes;
    int64_t *at = out->data, ids_here[ATI_BLOCK], table[] = {n, width};
    if (!ati_k_bytes(AT_FLOAT64, 2, table, &bytes)) return false;
    char *best = ati_scratch(bytes);
    if (best == NULL) return false;
    arg_row *beside = (op == ATI_FOLD_MIN ? least : greatest)[x->dtype - AT_BOOL];
    for (int64_t k = 0; k < n * width; k++) at[k] = rows;
    for (int64_t start = 0; start < rows; start += ATI_BLOCK) {
        int64_t count = ati_block_of(rows - start);
        ati_ids_read(ids, start, count, ids_here);
        for (int64_t e = 0; e < count; e++) {
            if ((uint64_t)ids_here[e] >= (uint64_t)n) continue;
            int64_t first = ids_here[e] * width;
            beside((const char *)x->data + (start + e) * x->stride[0], width, start + e, rows,
                   best + first * WIDEST, at + first);
        }
    }
    ati_scratch_free(best, bytes);
    return true;
}
