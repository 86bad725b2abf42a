/* What the plans of a segment fold share: the job, and the way from ids to addresses.
 *
 * Every plan folds rows of x onto rows of out that already hold something: the identity, or the fold of rows that
 * came before. Sums of floats narrower than double go through rows of doubles (wide) where a segment may
 * be long, and straight into out (narrow) where none is. */
#ifndef ATI_FOLD_H
#define ATI_FOLD_H

#include <stdatomic.h>

#include "kernels/block.h"
#include "kernels/pool.h"
#include "kernels/rows.h"

/* Rows that a segment may have and still be added in float32. */
enum { ATI_LONG_SEGMENT = 1024 };

typedef struct ati_fold_job {
    ati_fold op;
    const ati_host *x, *ids; /* x: rows in one piece, of the dtype that narrow or wide reads */
    ati_host *out;
    int64_t rows, n, width;
    int64_t row_size;         /* bytes of a row of out */
    bool onto;                /* out holds a fold already; otherwise nothing */
    const ati_folder *narrow; /* into rows of out, or NULL: sums of half types */
    const ati_folder *wide;   /* into rows of doubles, or NULL: narrow is exact */
    int threads;
} ati_fold_job;

/* Rows that wait to be folded: where each is, and where it goes. */
typedef struct ati_queue {
    const char *from[ATI_BLOCK + ATI_AHEAD];
    char *to[ATI_BLOCK + ATI_AHEAD];
    int64_t count;
} ati_queue;

/* Rows of a table that stand for segments [low, high). */
typedef struct ati_table {
    char *base;
    int64_t row_size;
    int64_t low, high;
} ati_table;

/* Reads count <= ATI_BLOCK ids: those of rows start, start + 1, ..., or, with a list, of rows list[start], .... */
void ati_fold_ids(const ati_fold_job *job, const uint32_t *list, int64_t start, int64_t count,
                  int64_t *ids);

/* Folds such rows into a table; those that do not belong there are left out. */
void ati_fold_into(const ati_fold_job *job, const ati_folder *folder, const uint32_t *list,
                   int64_t start, int64_t count, const ati_table *table);

/* Rows [low, high) of out as a table, filled unless the job goes onto something. */
ati_table ati_fold_open(const ati_fold_job *job, int64_t low, int64_t high);

/* Writes the identity of an op into elements of a dtype. */
void ati_fold_fill(ati_fold op, at_dtype dtype, char *p, int64_t count);

/* Adds elements of doubles to elements of out, the first of which is given. */
void ati_fold_emit(const ati_fold_job *job, const double *sums, int64_t first, int64_t count);

/* Whether private outputs in out's own dtype fit the cache, and are no more than the data. */
bool ati_fold_apart_pays(const ati_fold_job *job);

/* The plans. False only for no memory. wide: private outputs are of doubles. */
bool ati_fold_apart(ati_fold_job *job, bool wide);
bool ati_fold_ranges(ati_fold_job *job);
bool ati_fold_sorted(ati_fold_job *job);

/* Whether ids never decrease. */
bool ati_fold_is_sorted(const ati_fold_job *job);

#endif
