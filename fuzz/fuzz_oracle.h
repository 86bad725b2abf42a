/* What segment ops should give, by plain loops over one row at a time, and how far off they may be.
 *
 * Integers, min and max are exact. Sums of floats have the error that adding one after the other bears in the
 * type in which rows are added (float32 for half types), with segments of float32 cut at about 1,024 rows.
 * Where a sum leaves the range of that type on the way, nothing is said. */
#ifndef FUZZ_ORACLE_H
#define FUZZ_ORACLE_H

#include "fuzz_input.h"

typedef enum question {
    ASK_SUM,
    ASK_MIN,
    ASK_MAX,
    ASK_MEAN,
    ASK_VARIANCE,
    ASK_COUNT,
    ASK_MIN_OR,
    ASK_MAX_OR,
    ASK_NORMALIZE,
    ASK_SOFTMAX,
    QUESTIONS
} question;

/* One column of one occupied segment. */
typedef struct column {
    int64_t rows;
    uint64_t whole; /* sum of integers, wrapped */
    uint64_t least_whole, most_whole;
    double sum, size,
        squares;        /* of finite values; of their magnitudes; of what they are off the mean */
    double least, most; /* of all but NaN */
    double exps;        /* of what they are below most */
    bool nan, up, down; /* there is a NaN, +inf, -inf */
} column;

typedef struct oracle {
    const problem *p;
    int64_t *segment; /* of each row: which occupied segment, or -1 */
    int64_t *id;      /* of each occupied segment, ascending */
    int64_t occupied;
    column *columns; /* occupied x width */
} oracle;

oracle fuzz_ask(const problem *p);
void fuzz_forget(oracle *o);

at_array fuzz_call(at_frame *f, question q, at_array x, at_array ids, int64_t n, bool sorted);

/* Checks the answer to a question: rows of the problem as in row (NULL: all, in order). */
void fuzz_check(const oracle *o, question q, at_frame *f, at_array answer, int64_t rows,
                const int64_t *row, const char *how);

/* Elements of an array, row-major, exactly; of malloc. */
cell *fuzz_cells(const problem *p, at_array a);

/* Whether two elements are equal; NaN is NaN, -0 is 0. */
bool fuzz_same(at_dtype dtype, cell a, cell b);

#endif
