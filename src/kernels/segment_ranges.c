/* The fold of rows in any order: threads own ranges of segments, so that none writes where another does.
 *
 * Rows are counted in bins of neighbouring segments. Bins are joined into ranges of about equally many rows, and
 * the rows of each range are listed, in order: 4 bytes per row. A bin of few rows has no long segment,
 * so that it adds straight into out; other ranges add into a table of doubles that fits the cache.
 *
 * A segment's rows are always added in their order by one thread: the number of threads changes no bit. */
#include <stdlib.h>
#include <string.h>

#include "kernels/fold.h"

enum {
    MOST_BINS = 1 << 14,
    ROWS_PER_BIN = 256,   /* about; a quarter of what makes a segment long */
    WIDE_TABLE = 1 << 20, /* bytes of a range's table of doubles */
    PER_THREAD = 1        /* ranges, so that a thread that is done early finds another */
};

typedef struct range {
    int64_t low, high;   /* segments */
    int64_t start, rows; /* in the list */
    bool wide;
} range;

typedef struct ranges {
    ati_fold_job *job;
    int shift;    /* the bin of a segment is its id >> shift */
    int64_t bins; /* one more collects dropped rows */
    uint32_t
        *count; /* [threads][bins + 1]: rows of each part in each bin; then the places in list */
    uint32_t *list; /* rows, range by range; NULL: one range of all rows */
    range *range;
    int used;
    bool with_wide;
    atomic_bool failed;
} ranges;

static int64_t bin_of(const ranges *r, int64_t id)
{
    return (uint64_t)id < (uint64_t)r->job->n ? id >> r->shift : r->bins;
}

/* --- counting --------------------------------------------------------------------------------------------- */

static void count_part(void *arg, int index)
{
    ranges *r = arg;
    const ati_fold_job *job = r->job;
    int64_t ids[ATI_BLOCK];
    uint32_t *count = r->count + index * (r->bins + 1);
    int64_t low = ati_part(job->rows, index, job->threads);
    int64_t high = ati_part(job->rows, index + 1, job->threads);
    for (int64_t start = low; start < high; start += ATI_BLOCK) {
        int64_t some = ati_block_of(high - start);
        ati_fold_ids(job, NULL, start, some, ids);
        for (int64_t e = 0; e < some; e++) {
            ati_ids_ask(job->ids, start + ATI_BLOCK + e);
            count[bin_of(r, ids[e])]++;
        }
    }
}

static int64_t rows_in(const ranges *r, int64_t bin)
{
    int64_t rows = 0;
    for (int t = 0; t < r->job->threads; t++) rows += r->count[t * (r->bins + 1) + bin];
    return rows;
}

/* --- ranges ----------------------------------------------------------------------------------------------- */

/* Whether a bin's rows, all in one segment, would be too many for out's own dtype. */
static bool is_heavy(const ati_fold_job *job, int64_t rows)
{
    return job->wide != NULL && (job->narrow == NULL || rows > ATI_LONG_SEGMENT);
}

/* Joins bins to ranges. A range is closed when it has its share of rows, when its table of doubles would grow too
 * large, or when a heavy bin follows many light ones. */
static void join_bins(ranges *r)
{
    const ati_fold_job *job = r->job;
    int64_t share = job->rows / (job->threads == 1 ? 1 : job->threads * PER_THREAD) + 1;
    int64_t most = WIDE_TABLE / (8 * job->width);
    range *now = NULL;
    for (int64_t bin = 0; bin < r->bins; bin++) {
        int64_t rows = rows_in(r, bin), low = bin << r->shift, high = (bin + 1) << r->shift;
        bool heavy = is_heavy(job, rows);
        bool close = now == NULL || now->rows >= share ||
                     ((heavy || now->wide) && high - now->low > most) ||
                     (heavy && !now->wide && now->rows >= share / 8);
        if (close) {
            now = &r->range[r->used++];
            *now = (range){.low = low, .start = bin == 0 ? 0 : now[-1].start + now[-1].rows};
        }
        now->high = high < job->n ? high : job->n;
        now->rows += rows;
        now->wide |= heavy;
        r->with_wide |= now->wide;
    }
}

/* --- lists ------------------------------------------------------------------------------------------------ */

/* Turns the counts of a part's bins into the places of their first rows: a range's rows stand part by part, so that
 * they stay in order. All bins of a range share one place per part, kept with its first bin. */
static void place_rows(ranges *r, int32_t *range_of)
{
    const ati_fold_job *job = r->job;
    for (int k = 0; k < r->used; k++) {
        int64_t first = r->range[k].low >> r->shift, place = r->range[k].start;
        int64_t end = k + 1 < r->used ? r->range[k + 1].low >> r->shift : r->bins;
        for (int64_t bin = first; bin < end; bin++) range_of[bin] = (int32_t)first;
        for (int t = 0; t < job->threads; t++) {
            uint32_t *count = r->count + t * (r->bins + 1);
            int64_t rows = 0;
            for (int64_t bin = first; bin < end; bin++) rows += count[bin];
            count[first] = (uint32_t)place;
            place += rows;
        }
    }
}

typedef struct listing {
    ranges *r;
    int32_t *range_of; /* first bin of each bin's range */
} listing;

/* The list stays within its bounds, and holds numbers of rows, even if another thread changes the ids meanwhile. */
static void list_part(void *arg, int index)
{
    const listing *l = arg;
    ranges *r = l->r;
    const ati_fold_job *job = r->job;
    int64_t ids[ATI_BLOCK];
    uint32_t *place = r->count + index * (r->bins + 1);
    int64_t low = ati_part(job->rows, index, job->threads);
    int64_t high = ati_part(job->rows, index + 1, job->threads);
    for (int64_t start = low; start < high; start += ATI_BLOCK) {
        int64_t some = ati_block_of(high - start);
        ati_fold_ids(job, NULL, start, some, ids);
        for (int64_t e = 0; e < some; e++) {
            int64_t bin = bin_of(r, ids[e]);
            if (bin == r->bins) continue;
            uint32_t at = place[l->range_of[bin]]++;
            if (at < job->rows) r->list[at] = (uint32_t)(start + e);
        }
    }
}

static bool list_rows(ranges *r)
{
    if (r->used == 1)
        return true; /* all rows in order: whatever is dropped is met and passed over */
    listing l = {r, malloc((size_t)r->bins * sizeof *l.range_of)};
    r->list = calloc((size_t)r->job->rows, sizeof *r->list);
    bool fine = l.range_of != NULL && r->list != NULL;
    if (fine) place_rows(r, l.range_of);
    if (fine) ati_pool_run(r->job->threads, list_part, &l);
    free(l.range_of);
    return fine;
}

/* --- folding ---------------------------------------------------------------------------------------------- */

static void fold_wide(ranges *r, const range *own, int64_t rows)
{
    const ati_fold_job *job = r->job;
    int64_t count = (own->high - own->low) * job->width;
    ati_table table = {calloc((size_t)count, 8), 8 * job->width, own->low, own->high};
    if (table.base == NULL) {
        atomic_store(&r->failed, true);
        return;
    }
    ati_fold_into(job, job->wide, r->list, own->start, rows, &table);
    ati_fold_open(job, own->low, own->high);
    ati_fold_emit(job, (const double *)table.base, own->low * job->width, count);
    free(table.base);
}

static void fold_range(void *arg, int index)
{
    ranges *r = arg;
    const ati_fold_job *job = r->job;
    const range *own = &r->range[index];
    int64_t rows = r->list == NULL ? job->rows : own->rows;
    if (own->wide) {
        fold_wide(r, own, rows);
        return;
    }
    ati_table table = ati_fold_open(job, own->low, own->high);
    ati_fold_into(job, job->narrow, r->list, own->start, rows, &table);
}

static void choose_bins(ranges *r)
{
    int64_t most = r->job->rows / ROWS_PER_BIN;
    if (most > MOST_BINS) most = MOST_BINS;
    while ((r->job->n - 1) >> r->shift >= (most > 0 ? most : 1)) r->shift++;
    r->bins = ((r->job->n - 1) >> r->shift) + 1;
}

bool ati_fold_ranges(ati_fold_job *job)
{
    ranges r = {.job = job};
    choose_bins(&r);
    r.count = calloc((size_t)((r.bins + 1) * job->threads), sizeof *r.count);
    r.range = malloc((size_t)r.bins * sizeof *r.range);
    bool apart = false, fine = r.count != NULL && r.range != NULL;
    if (fine) {
        ati_pool_run(job->threads, count_part, &r);
        join_bins(&r);
        apart = job->threads > 1 && !r.with_wide && ati_fold_apart_pays(job);
        fine = apart || list_rows(&r);
    }
    if (fine && !apart) ati_pool_run(r.used, fold_range, &r);
    free(r.list);
    free(r.range);
    free(r.count);
    if (apart)
        return ati_fold_apart(job, false); /* no segment is long: out's own dtype is exact enough */
    return fine && !atomic_load(&r.failed);
}
