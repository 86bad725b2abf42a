/* Segment sum, min and max: which plan a fold takes, and the two simplest plans.
 *
 *   one after the other   few rows: each row straight into its row of out
 *   private               an output that fits the cache: each thread has one of its own; they are merged
 *   sorted                ids that never decrease: each thread streams through its rows (segment_sorted.c)
 *   ranges                everything else: each thread owns a range of segments (segment_ranges.c)
 *
 * Whether ids are sorted is looked up, not believed: a promise that does not hold would be a race. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/fold.h"
#include "kernels/move.h"
#include "kernels/scratch.h"

enum {
    GRAIN = 1 << 15,   /* elements that are worth a thread */
    PRIVATE = 1 << 20, /* bytes of a thread's own output that stays in its second cache */
    LARGEST = 1 << 24, /* the same, in its part of the last one */
    CHUNK = 1 << 22    /* bytes of x that are copied at once where it is strided */
};

/* --- ids and addresses ----------------------------------------------------------------------------------- */

void ati_fold_ids(const ati_fold_job *job, const uint32_t *list, int64_t start, int64_t count,
                  int64_t *ids)
{
    const ati_host *all = job->ids;
    if (list == NULL)
        ati_ids_read(all, start, count, ids);
    else
        ati_ids_pick(ids, all->dtype, all->data, all->stride[0], list + start, count);
}

/* Adds some rows to a queue. */
static void line_up(const ati_fold_job *job, const uint32_t *list, int64_t start, int64_t count,
                    const ati_table *table, ati_queue *queue)
{
    int64_t ids[ATI_BLOCK], step = job->x->stride[0], found = queue->count;
    const char *x = job->x->data;
    const uint64_t low = (uint64_t)table->low, segments = (uint64_t)table->high - low;
    ati_fold_ids(job, list, start, count, ids);
    for (int64_t e = 0; e < count; e++) {
        uint64_t segment = (uint64_t)ids[e] - low;
        bool inside = segment < segments;
        queue->from[found] = x + (list == NULL ? start + e : (int64_t)list[start + e]) * step;
        queue->to[found] = table->base + (inside ? (int64_t)segment : 0) * table->row_size;
        found += inside;
    }
    queue->count = found;
}

/* Rows of one element, in order. */
static void fold_flat(const ati_fold_job *job, const ati_folder *folder, int64_t start,
                      int64_t count, const ati_table *table)
{
    int64_t ids[ATI_BLOCK];
    ati_fold_list list = {.step = job->x->stride[0], .ids = ids, .ids_step = job->ids->stride[0]};
    for (int64_t end = start + count; start < end; start += ATI_BLOCK) {
        list.count = ati_block_of(end - start);
        list.from = (const char *)job->x->data + start * list.step;
        list.ids_ahead = (const char *)job->ids->data + (start + ATI_BLOCK) * list.ids_step;
        ati_fold_ids(job, NULL, start, list.count, ids);
        folder->flat(&list, table->low, table->high, table->base);
    }
}

/* The last rows of a block wait for the next one: loops look ahead, and are never without something to see. */
void ati_fold_into(const ati_fold_job *job, const ati_folder *folder, const uint32_t *list,
                   int64_t start, int64_t count, const ati_table *table)
{
    if (job->width == 1 && list == NULL) {
        fold_flat(job, folder, start, count, table);
        return;
    }
    ati_queue queue;
    queue.count = 0;
    for (int64_t done = 0; done < count; done += ATI_BLOCK) {
        line_up(job, list, start + done, ati_block_of(count - done), table, &queue);
        int64_t now = queue.count - ATI_AHEAD;
        if (now <= 0) continue;
        folder->rows(queue.from, queue.to, now, queue.count, job->width);
        memmove(queue.from, queue.from + now, ATI_AHEAD * sizeof *queue.from);
        memmove(queue.to, queue.to + now, ATI_AHEAD * sizeof *queue.to);
        queue.count = ATI_AHEAD;
    }
    folder->rows(queue.from, queue.to, queue.count, queue.count, job->width);
}

/* --- identities and sums ---------------------------------------------------------------------------------- */

/* Infinity casts to the extreme of every integer type; False is the least bool. */
void ati_fold_fill(ati_fold op, at_dtype dtype, char *p, int64_t count)
{
    double value = op == ATI_FOLD_MIN ? (double)INFINITY : -(double)INFINITY;
    if (op == ATI_FOLD_SUM) {
        memset(p, 0, (size_t)(count * ati_k_itemsize(dtype)));
        return;
    }
    if (dtype == AT_BOOL && op == ATI_FOLD_MAX) value = 0;
    if (op == ATI_FOLD_PROD) value = 1;
    ati_host one = {.data = &value, .dtype = AT_FLOAT64};
    ati_host all = ati_k_view(p, dtype, 1, &count);
    ati_k_broadcast(&one, 1, &count);
    ati_k_copy(&one, &all);
}

ati_table ati_fold_open(const ati_fold_job *job, int64_t low, int64_t high)
{
    char *base = (char *)job->out->data + low * job->row_size;
    if (!job->onto) ati_fold_fill(job->op, job->out->dtype, base, (high - low) * job->width);
    return (ati_table){base, job->row_size, low, high};
}

void ati_fold_emit(const ati_fold_job *job, const double *sums, int64_t first, int64_t count)
{
    ati_block block;
    int64_t size = ati_k_itemsize(job->out->dtype);
    char *out = (char *)job->out->data + first * size;
    for (int64_t done = 0; done < count; done += ATI_BLOCK) {
        int64_t part = ati_block_of(count - done);
        ati_block_load(&block, job->out->dtype, out + done * size, size, part);
        for (int64_t k = 0; k < part; k++) block.d[k] += sums[done + k];
        ati_block_store(block.d, ATI_REAL, job->out->dtype, out + done * size, size, part);
    }
}

/* --- one after the other ---------------------------------------------------------------------------------- */

static bool fold_in_order(ati_fold_job *job)
{
    ati_table all = ati_fold_open(job, 0, job->n);
    ati_fold_into(job, job->narrow, NULL, 0, job->rows, &all);
    return true;
}

/* --- private outputs -------------------------------------------------------------------------------------- */

typedef struct private_outputs {
    ati_fold_job *job;
    char *tables;       /* one behind the other; without wide, the first thread's is out */
    int64_t table_size; /* bytes */
    bool wide;
} private_outputs;

static char *table_of(const private_outputs *p, int index)
{
    return p->tables + (p->wide ? index : index - 1) * p->table_size;
}

static void fold_privately(void *arg, int index)
{
    const private_outputs *p = arg;
    ati_fold_job *job = p->job;
    int64_t low = ati_part(job->rows, index, job->threads);
    int64_t high = ati_part(job->rows, index + 1, job->threads);
    const ati_folder *folder = p->wide ? job->wide : job->narrow;
    at_dtype dtype = p->wide ? AT_FLOAT64 : job->out->dtype;
    ati_table own = {NULL, job->width * ati_k_itemsize(dtype), 0, job->n};
    if (index == 0 && !p->wide) {
        own = ati_fold_open(job, 0, job->n);
    } else {
        own.base = table_of(p, index);
        ati_fold_fill(job->op, dtype, own.base, job->n * job->width);
    }
    ati_fold_into(job, folder, NULL, low, high - low, &own);
}

/* A part of the elements of all tables, folded into the first thread's. */
static void merge(void *arg, int index)
{
    const private_outputs *p = arg;
    ati_fold_job *job = p->job;
    int64_t all = job->n * job->width, low = ati_part(all, index, job->threads);
    int64_t count = ati_part(all, index + 1, job->threads) - low,
            size = ati_k_itemsize(job->out->dtype);
    char *out = (char *)job->out->data + low * size, *first = out;
    const ati_folder *same = job->narrow;
    if (p->wide) {
        same = &ati_rows_here()->fold[ATI_FOLD_SUM][AT_FLOAT64];
        size = 8;
        first = table_of(p, 0) + low * size;
    }
    for (int t = 1; t < job->threads; t++) {
        const char *other = table_of(p, t) + low * size;
        same->rows(&other, &first, 1, 1, count);
    }
    if (!p->wide) return;
    if (!job->onto) ati_fold_fill(job->op, job->out->dtype, out, count);
    ati_fold_emit(job, (const double *)first, low, count);
}

bool ati_fold_apart(ati_fold_job *job, bool wide)
{
    private_outputs p = {.job = job, .wide = wide};
    int64_t size = wide ? 8 : ati_k_itemsize(job->out->dtype);
    p.table_size = (job->n * job->width * size + 63) / 64 * 64;
    int64_t bytes = p.table_size * (wide ? job->threads : job->threads - 1);
    p.tables = ati_scratch(bytes);
    if (p.tables == NULL) return false;
    ati_pool_run(job->threads, fold_privately, &p);
    ati_pool_run(job->threads, merge, &p);
    ati_scratch_free(p.tables, bytes);
    return true;
}

bool ati_fold_apart_pays(const ati_fold_job *job)
{
    return job->n * job->width * ati_k_itemsize(job->out->dtype) <= LARGEST &&
           job->n <= job->rows / job->threads;
}

/* --- the choice ------------------------------------------------------------------------------------------- */

static bool fold_ready(ati_fold_job *job)
{
    bool wide = job->wide != NULL && (job->narrow == NULL || job->rows > ATI_LONG_SEGMENT);
    int64_t bytes, dims[] = {job->n, job->width};
    at_dtype sums = wide ? AT_FLOAT64 : job->out->dtype;
    bool small = ati_k_bytes(sums, 2, dims, &bytes) && bytes <= PRIVATE;
    job->threads = ati_pool_threads_for(job->rows * job->width, GRAIN);
    if (!wide && job->threads == 1) return fold_in_order(job);
    if (small) return ati_fold_apart(job, wide);
    if (ati_fold_is_sorted(job)) return ati_fold_sorted(job);
    if (!wide && ati_fold_apart_pays(job)) return ati_fold_apart(job, false);
    return ati_fold_ranges(job);
}

/* --- rows that are not ready ------------------------------------------------------------------------------ */

/* x with rows in one piece, and as many as a list can number. */
static bool is_ready(const ati_fold_job *job, at_dtype dtype)
{
    return job->x->dtype == dtype && ati_k_rows_are_whole(job->x) && job->rows <= UINT32_MAX;
}

/* Copies rows chunk by chunk, and folds each chunk onto what is there. */
static bool fold_chunks(const ati_fold_job *whole, at_dtype dtype)
{
    int64_t row = whole->width * ati_k_itemsize(dtype), per = CHUNK / (row > 0 ? row : 1);
    per = per < 1 ? 1 : per;
    per = per < whole->rows ? per : whole->rows;
    char *buffer = malloc((size_t)(per * row) + 1);
    bool fine = buffer != NULL;
    for (int64_t start = 0; fine && start < whole->rows; start += per) {
        ati_host x = *whole->x, ids = *whole->ids;
        x.dim[0] = ids.dim[0] = per < whole->rows - start ? per : whole->rows - start;
        x.data = (char *)x.data + start * x.stride[0];
        ids.data = (char *)ids.data + start * ids.stride[0];
        ati_host copy = ati_k_view(buffer, dtype, x.ndim, x.dim);
        ati_k_copy(&x, &copy);
        ati_fold_job part = *whole;
        part.x = &copy;
        part.ids = &ids;
        part.rows = x.dim[0];
        part.onto = start > 0;
        fine = fold_ready(&part);
    }
    free(buffer);
    return fine;
}

static bool is_half(at_dtype dtype) { return dtype == AT_FLOAT16 || dtype == AT_BFLOAT16; }

/* Sums of half types onto sums of float32, so that chunks do not round. */
static bool fold_half_chunks(const ati_fold_job *whole)
{
    ati_fold_job job = *whole;
    ati_host wide = *whole->out;
    int64_t bytes;
    wide.dtype = AT_FLOAT32;
    ati_k_row_major(&wide);
    if (!ati_k_bytes(AT_FLOAT32, wide.ndim, wide.dim, &bytes)) return false;
    wide.data = malloc((size_t)bytes + 1);
    if (wide.data == NULL) return false;
    job.out = &wide;
    job.row_size = job.width * 4;
    bool fine = fold_chunks(&job, whole->x->dtype);
    if (fine) ati_k_copy(&wide, whole->out);
    free(wide.data);
    return fine;
}

bool ati_k_segment_fold(ati_fold op, const ati_host *x, const ati_host *ids, ati_host *out)
{
    const ati_rows *loops = ati_rows_here();
    bool half = op == ATI_FOLD_SUM && is_half(x->dtype) && out->dtype >= AT_FLOAT16;
    at_dtype read = half ? x->dtype : out->dtype; /* the dtype that rows are folded from */
    ati_fold_job job = {.op = op,
                        .x = x,
                        .ids = ids,
                        .out = out,
                        .rows = x->dim[0],
                        .n = out->dim[0],
                        .width = ati_k_row_width(out)};
    job.row_size = job.width * ati_k_itemsize(out->dtype);
    if (ati_k_count(out) == 0) return true;
    if (loops->fold[op][read].rows != NULL && read == out->dtype)
        job.narrow = &loops->fold[op][read];
    if (op == ATI_FOLD_SUM && loops->wide[read].rows != NULL) job.wide = &loops->wide[read];
    if (job.rows == 0 || (job.narrow == NULL && job.wide == NULL)) {
        ati_fold_fill(op, out->dtype, out->data, job.n * job.width);
        return true;
    }
    if (is_ready(&job, read)) return fold_ready(&job);
    return half && is_half(out->dtype) ? fold_half_chunks(&job) : fold_chunks(&job, read);
}
