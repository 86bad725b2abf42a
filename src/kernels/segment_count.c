/* How many rows each segment has, and what is made of it: means, and constants for empty segments. */
#include <stdlib.h>
#include <string.h>

#include "kernels/fold.h"
#include "kernels/move.h"

enum { GRAIN = 1 << 15 };

/* --- counts ----------------------------------------------------------------------------------------------- */

typedef struct counting {
    const ati_host *ids;
    int64_t n, rows;
    int64_t *first, *others; /* tables: of part 0, and of all other parts, one behind the other */
    int threads;
} counting;

static void count_part(void *arg, int index)
{
    const counting *c = arg;
    int64_t ids[ATI_BLOCK];
    int64_t *counts = index == 0 ? c->first : c->others + (index - 1) * c->n;
    int64_t low = ati_part(c->rows, index, c->threads);
    int64_t high = ati_part(c->rows, index + 1, c->threads);
    memset(counts, 0, (size_t)c->n * sizeof *counts);
    for (int64_t start = low; start < high; start += ATI_BLOCK) {
        int64_t count = ati_block_of(high - start);
        ati_ids_read(c->ids, start, count, ids);
        for (int64_t e = 0; e < count; e++)
            if ((uint64_t)ids[e] < (uint64_t)c->n) counts[ids[e]]++;
    }
}

/* As many threads as their tables are together no more than the ids. */
bool ati_k_segment_count(const ati_host *ids, ati_host *out)
{
    counting c = {.ids = ids, .n = out->dim[0], .rows = ids->dim[0], .first = out->data};
    if (c.n == 0) return true;
    int64_t most = c.rows / c.n;
    c.threads = ati_pool_threads_for(c.rows, GRAIN);
    if (most < c.threads) c.threads = most < 1 ? 1 : (int)most;
    if (c.threads > 1) {
        c.others = malloc((size_t)((c.threads - 1) * c.n) * sizeof *c.others);
        if (c.others == NULL) return false;
    }
    ati_pool_run(c.threads, count_part, &c);
    for (int t = 0; t < c.threads - 1; t++)
        for (int64_t s = 0; s < c.n; s++) c.first[s] += c.others[t * c.n + s];
    free(c.others);
    return true;
}

/* New counts of n segments; NULL for no memory. */
static int64_t *counts_of(const ati_host *ids, int64_t n)
{
    int64_t *counts = n < (int64_t)1 << 59 ? malloc((size_t)n * sizeof *counts + 1) : NULL;
    if (counts == NULL) return NULL; /* n may be too large even for a stride */
    ati_host view = ati_k_view(counts, AT_INT64, 1, &n);
    if (!ati_k_segment_count(ids, &view)) {
        free(counts);
        counts = NULL;
    }
    return counts;
}

/* --- means ------------------------------------------------------------------------------------------------ */

typedef struct division {
    const int64_t *counts;
    ati_host *sums, *out; /* the same, but for half types */
    int64_t width;
    int threads;
} division;

static void divide_float(float *row, int64_t width, float by)
{
    for (int64_t k = 0; k < width; k++) row[k] /= by;
}

static void divide_double(double *row, int64_t width, double by)
{
    for (int64_t k = 0; k < width; k++) row[k] /= by;
}

static void divide_part(void *arg, int index)
{
    const division *d = arg;
    int64_t low = ati_part(d->sums->dim[0], index, d->threads);
    int64_t high = ati_part(d->sums->dim[0], index + 1, d->threads);
    for (int64_t s = low; s < high; s++)
        if (d->counts[s] < 2)
            continue;
        else if (d->sums->dtype == AT_FLOAT32)
            divide_float((float *)d->sums->data + s * d->width, d->width, (float)d->counts[s]);
        else
            divide_double((double *)d->sums->data + s * d->width, d->width, (double)d->counts[s]);
    if (d->out == d->sums) return;
    ati_host from = *d->sums, to = *d->out;
    from.dim[0] = to.dim[0] = high - low;
    from.data = (char *)from.data + low * from.stride[0];
    to.data = (char *)to.data + low * to.stride[0];
    ati_k_copy(&from, &to);
}

/* Sums in float32 for half types: a mean may be finite where the sum is not. */
static bool open_sums(ati_host *sums, const ati_host *out)
{
    int64_t bytes;
    *sums = *out;
    if (out->dtype == AT_FLOAT32 || out->dtype == AT_FLOAT64) return true;
    sums->dtype = AT_FLOAT32;
    ati_k_row_major(sums);
    if (!ati_k_bytes(AT_FLOAT32, sums->ndim, sums->dim, &bytes)) return false;
    sums->data = malloc((size_t)bytes + 1);
    return sums->data != NULL;
}

bool ati_k_segment_mean(const ati_host *x, const ati_host *ids, ati_host *out)
{
    ati_host sums;
    int64_t *counts = counts_of(ids, out->dim[0]);
    if (counts == NULL || !open_sums(&sums, out)) {
        free(counts);
        return false;
    }
    bool fine = ati_k_segment_fold(ATI_FOLD_SUM, x, ids, &sums);
    division d = {.counts = counts, .sums = &sums, .out = out};
    if (sums.data == out->data) d.out = &sums;
    d.width = ati_k_row_width(out);
    d.threads = ati_pool_threads_for(out->dim[0] * d.width, GRAIN);
    if (fine && d.width > 0) ati_pool_run(d.threads, divide_part, &d);
    if (sums.data != out->data) free(sums.data);
    free(counts);
    return fine;
}

/* --- constants -------------------------------------------------------------------------------------------- */

bool ati_k_segment_or_constant(ati_fold op, const ati_host *x, const ati_host *ids,
                               const ati_host *constant, ati_host *out)
{
    ati_host value = *constant, row = *out;
    int64_t *counts = counts_of(ids, out->dim[0]);
    row.dim[0] = 1;
    bool fine = counts != NULL && ati_k_broadcast(&value, row.ndim, row.dim) &&
                ati_k_segment_fold(op, x, ids, out);
    for (int64_t s = 0; fine && s < out->dim[0]; s++) {
        if (counts[s] > 0) continue;
        row.data = (char *)out->data + s * out->stride[0];
        ati_k_copy(&value, &row);
    }
    free(counts);
    return fine;
}
