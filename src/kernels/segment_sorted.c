/* The fold of rows whose ids never decrease: each row of x is read once, in order, each row of out written once.
 *
 * Threads take equal parts of the rows, moved to where a segment begins; a thread writes the segments from its
 * first row's to the one before the next thread's first. A segment that lies within a block of ids is folded
 * straight into out; one that goes on adds in a row of doubles where its dtype asks for it. */
#include <stdlib.h>

#include "kernels/fold.h"

/* --- are they? -------------------------------------------------------------------------------------------- */

typedef struct order {
    const ati_fold_job *job;
    atomic_bool broken;
} order;

/* Looks through a part, and at the id in front of it. */
static void look(void *arg, int index)
{
    order *o = arg;
    const ati_fold_job *job = o->job;
    int64_t ids[ATI_BLOCK], last = INT64_MIN;
    int64_t low = ati_part(job->rows, index, job->threads);
    int64_t high = ati_part(job->rows, index + 1, job->threads);
    if (low > 0) ati_fold_ids(job, NULL, low - 1, 1, &last);
    for (int64_t start = low; start < high; start += ATI_BLOCK) {
        int64_t count = ati_block_of(high - start);
        ati_fold_ids(job, NULL, start, count, ids);
        bool broken = ids[0] < last;
        for (int64_t e = 1; e < count; e++) broken |= ids[e] < ids[e - 1];
        if (broken) atomic_store_explicit(&o->broken, true, memory_order_relaxed);
        if (atomic_load_explicit(&o->broken, memory_order_relaxed)) return;
        last = ids[count - 1];
    }
}

bool ati_fold_is_sorted(const ati_fold_job *job)
{
    order o = {.job = job};
    int threads = job->threads;
    ati_fold_job front = *job; /* most ids that are not sorted say so at once */
    front.threads = 1;
    front.rows = ati_block_of(job->rows);
    o.job = &front;
    look(&o, 0);
    o.job = job;
    if (!atomic_load(&o.broken)) ati_pool_run(threads, look, &o);
    return !atomic_load(&o.broken);
}

/* --- the stream ------------------------------------------------------------------------------------------- */

typedef struct parts {
    ati_fold_job *job;
    int64_t *first;     /* row of each part, and one behind the last */
    atomic_bool failed; /* no memory */
} parts;

static int64_t id_at(const ati_fold_job *job, int64_t row)
{
    int64_t id;
    ati_fold_ids(job, NULL, row, 1, &id);
    return id;
}

/* The first row from which on ids are at least this. */
static int64_t first_row_of(const ati_fold_job *job, int64_t id)
{
    int64_t low = 0, high = job->rows;
    while (low < high) {
        int64_t middle = low + (high - low) / 2;
        if (id_at(job, middle) < id)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* The part's segments: an empty part has none, the first and the last have those without rows at the ends. */
static int64_t first_segment(const parts *p, int index)
{
    int64_t row = p->first[index];
    if (index == 0) return 0;
    return row == p->first[p->job->threads] ? p->job->n : id_at(p->job, row);
}

/* Rows [start, start + count) of x into one row. */
static void fold_run(const ati_fold_job *job, ati_fold_run *loop, int64_t start, int64_t count,
                     char *to)
{
    int64_t step = job->x->stride[0];
    for (int64_t done = 0; done < count; done += ATI_RUN) {
        int64_t part = count - done < ATI_RUN ? count - done : ATI_RUN;
        loop((const char *)job->x->data + (start + done) * step, step, part, job->width, to);
    }
}

/* A segment that is not at its end yet, and its sum so far. */
typedef struct open_segment {
    int64_t id; /* -1: none */
    double *sum;
} open_segment;

static void close_segment(const ati_fold_job *job, open_segment *open)
{
    if (open->id >= 0) ati_fold_emit(job, open->sum, open->id * job->width, job->width);
    open->id = -1;
}

/* A run of rows of one segment. With ends, no more of its rows follow. */
static void take_run(const ati_fold_job *job, open_segment *open, int64_t id, int64_t start,
                     int64_t count, bool ends)
{
    if (open->id != id) close_segment(job, open);
    if (job->wide == NULL || (ends && open->id != id && job->narrow != NULL)) {
        fold_run(job, job->narrow->run, start, count, (char *)job->out->data + id * job->row_size);
        return;
    }
    if (open->id != id) ati_fold_fill(ATI_FOLD_SUM, AT_FLOAT64, (char *)open->sum, job->width);
    open->id = id;
    fold_run(job, job->wide->run, start, count, (char *)open->sum);
}

/* Rows [first, last) into segments [low, high). Ids are compared with these once more: memory is safe whatever
 * another thread does to them meanwhile. */
static void stream(const ati_fold_job *job, int64_t first, int64_t last, int64_t low, int64_t high,
                   double *sum)
{
    int64_t ids[ATI_BLOCK];
    open_segment open = {-1, sum};
    for (int64_t start = first; start < last; start += ATI_BLOCK) {
        int64_t count = ati_block_of(last - start);
        ati_fold_ids(job, NULL, start, count, ids);
        for (int64_t e = 0, end; e < count; e = end) {
            for (end = e + 1; end < count && ids[end] == ids[e];) end++;
            if (ids[e] >= low && ids[e] < high)
                take_run(job, &open, ids[e], start + e, end - e, end < count);
        }
    }
    close_segment(job, &open);
}

static void stream_part(void *arg, int index)
{
    parts *p = arg;
    const ati_fold_job *job = p->job;
    int64_t low = first_segment(p, index);
    int64_t high = index + 1 == job->threads ? job->n : first_segment(p, index + 1);
    if (low >= high) return;
    ati_fold_open(job, low, high);
    double *sum = job->wide == NULL ? NULL : malloc((size_t)job->width * sizeof *sum);
    if (sum == NULL && job->wide != NULL)
        atomic_store(&p->failed, true);
    else
        stream(job, p->first[index], p->first[index + 1], low, high, sum);
    free(sum);
}

bool ati_fold_sorted(ati_fold_job *job)
{
    int64_t first[ATI_MOST_THREADS + 1];
    parts p = {.job = job, .first = first};
    int64_t low = first_row_of(job, 0), high = first_row_of(job, job->n);
    for (int k = 0; k <= job->threads; k++) {
        int64_t row = low + ati_part(high - low, k, job->threads);
        first[k] = k == 0 ? low : row == high ? high : first_row_of(job, id_at(job, row));
    }
    ati_pool_run(job->threads, stream_part, &p);
    return !atomic_load(&p.failed);
}
