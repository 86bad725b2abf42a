/* Loops over rows: what segment kernels do to the elements, once it is known which row meets which.
 *
 * Compiled several times from one text (rows_loops.h), each for more of the processor; ati_rows() gives the best
 * that it has. All take addresses: no loop knows of ids, bounds or threads. Rows are contiguous, and may be
 * misaligned. Widths are in elements. */
#ifndef ATI_ROWS_H
#define ATI_ROWS_H

#include "kernels/segment.h"

/* Elements of a tile, at most: what its loops keep at hand. */
enum { ATI_TILE = 512 };

/* Folds row from[e] into row to[e], for each e < count in order. Of known rows the addresses are there, so that rows
 * can be asked for ATI_AHEAD rows before their turn. */
enum { ATI_AHEAD = 16 };
typedef void ati_fold_rows(const char *const *from, char *const *to, int64_t count, int64_t known,
                           int64_t width);

/* Folds count rows, step bytes apart, into one. At most ATI_RUN rows: sums are not carried further in the
 * narrow type. */
enum { ATI_RUN = 64 };
typedef void ati_fold_run(const char *from, int64_t step, int64_t count, int64_t width, char *to);

/* Rows of one element, step bytes apart, with their ids: a block of them. */
typedef struct ati_fold_list {
    const char *from;
    int64_t step, count;
    const int64_t *ids;
    const char *ids_ahead; /* ids of the next block, which is asked for meanwhile */
    int64_t ids_step;
} ati_fold_list;

/* Folds such rows into a table: row e into entry ids[e] - low of high - low entries, unless it is not one of them. The
 * same as rows of one element, without an address for each. */
typedef void ati_fold_flat(const ati_fold_list *list, int64_t low, int64_t high, char *table);

typedef struct ati_folder {
    ati_fold_rows *rows;
    ati_fold_run *run;
    ati_fold_flat *flat;
} ati_folder;

/* Rows of floats on their way through a composite: rows x cols <= ATI_TILE elements, or one row. */
typedef struct ati_tile {
    int64_t rows, cols;
    const char *const *x, *const *y; /* rows of the data; y: of a second operand */
    const char *const *p, *const *q; /* rows of tables in the data's dtype */
    double *const *sum;              /* rows of the table of sums, while they are collected */
    const char *const *total;        /* rows of the sums as float or double, for the result */
    char *const *to;                 /* rows of the result */
} ati_tile;

typedef void ati_tile_loop(const ati_tile *t);

/* Rows of one element, in one piece: a block of them, with tables that entries at[e] belong to. */
typedef struct ati_flat {
    int64_t count;
    const int64_t *at;   /* entries, all within the tables */
    const int32_t *kept; /* 1, or 0 for a dropped row: it adds nothing, its result is 0 */
    const char *x, *y, *p, *q;
    double *sum;
    const char *total;
    char *to;
    const char *ids_ahead; /* ids of the next block, which is asked for meanwhile */
    int64_t ids_step;      /* bytes from one of their ids to the next */
} ati_flat;

/* By value: a compiler that sees bytes stored would otherwise read the addresses again for every element. */
typedef void ati_flat_loop(ati_flat w);

/* Entries and whether they are kept, of count rows with ids into tables of n. */
typedef void ati_find_entries(const int64_t *ids, int64_t n, int64_t count, int64_t *at,
                              int32_t *kept);

/* A composite in two passes: add collects into sum, map makes the result from total. */
typedef struct ati_two_pass {
    ati_tile_loop *add, *map;
    ati_flat_loop *add_flat, *map_flat;
} ati_two_pass;

typedef enum ati_pass {
    ATI_SOFTMAX,      /* sum += exp(x - p); to = exp(x - p) / total; x is at most p */
    ATI_MILD_SOFTMAX, /* sum += exp(x); to = exp(x) / total; x is mild (ati_mild) */
    ATI_NORMALIZE,    /* sum += x; to = x / total, 0 where that is 0 */
    ATI_SOFTMAX_BACK, /* sum += x y; to = x (y - total) */
    ATI_EXTREME_BACK, /* sum += [x = p]; to = [x = p] q / total */
    ATI_PASSES
} ati_pass;

/* Whether all elements of count rows, step bytes apart, are mild: neither NaN nor so large (60, of doubles 300) that
 * sums of their exponentials, or quotients of these, would leave the range of the dtype. */
typedef bool ati_mild(const char *x, int64_t step, int64_t count, int64_t width);

typedef struct ati_rows {
    const char *name;
    ati_find_entries *find_entries;
    ati_folder fold[ATI_FOLDS][AT_OTHER]; /* by ati_fold and dtype; {0} where there is none */
    ati_folder wide[AT_OTHER]; /* sums of float16, bfloat16, float32 into rows of doubles */
    ati_two_pass pass[ATI_PASSES][AT_OTHER];
    ati_mild *mild[AT_OTHER]; /* of floats */
} ati_rows;

/* The loops for this processor; AT_SIMD=base, avx2 or avx512 asks for less. */
const ati_rows *ati_rows_here(void);

extern const ati_rows ati_rows_base;
#if defined(__x86_64__)
extern const ati_rows ati_rows_avx2, ati_rows_avx512;
#endif

#endif
