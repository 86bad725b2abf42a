/* From the bytes of a fuzzer to a call of a segment op: dtype, shape, strides, ids, sizes, all of them possibly hostile.
 *
 * Choices come from the input, and are 0 behind its end; elements then come from a generator that the input
 * seeds, so that a file of forty bytes can stand for 200,000 elements. Memory is a block of exactly the bytes that the strides reach:
 * a sanitizer sees the first byte too many on either side. What the elements are is read back from memory
 * after all were written, since elements may overlap.
 *
 * Nothing here shares code with the library but its public headers. */
#ifndef FUZZ_INPUT_H
#define FUZZ_INPUT_H

#include "anytensor.h"

enum { FUZZ_AXES = 3, FUZZ_MOST = 1 << 17 };

typedef struct cursor {
    const uint8_t *at;
    size_t left;
    uint64_t state; /* of the generator */
} cursor;

cursor fuzz_cursor(const uint8_t *bytes, size_t size);
uint64_t fuzz_bits(cursor *c); /* 64 bits: two bytes of input, the rest made of them */
int64_t fuzz_below(cursor *c, int64_t limit); /* in [0, limit); 0 where limit is not positive */
int64_t fuzz_choice(cursor *c,
                    int64_t limit); /* from one byte, for shapes and habits; 0 at the end */

/* One element, exactly: a float as d; an integer or bool as u, its 64 bits after sign extension. */
typedef union cell {
    double d;
    uint64_t u;
} cell;

bool fuzz_is_float(at_dtype dtype);
bool fuzz_is_signed(at_dtype dtype);
cell fuzz_load(at_dtype dtype, const void *place);
double fuzz_real(at_dtype dtype, cell value); /* nearest double */

/* Elements in memory of their own. */
typedef struct strided {
    at_dtype dtype;
    int ndim;
    int64_t dim[FUZZ_AXES], stride[FUZZ_AXES]; /* stride in bytes */
    char *block, *first;                       /* of malloc; where element 0 lies */
} strided;

int64_t fuzz_count(const strided *s);
at_array fuzz_array(at_frame *f, const strided *s); /* over its memory */

typedef struct problem {
    strided x, ids;
    int64_t rows, width, n;
    cell *value;  /* rows x width */
    int64_t *id;  /* of each row; -1 where it is out of [0, n) */
    cell *raw_id; /* as it stands in memory */
    unsigned flags;
    at_dim total; /* of partitions: what is asked for */
} problem;

/* Data, ids and a number of segments; or data and lengths of runs, in ids, with n of them. */
void fuzz_segments(problem *p, const uint8_t *bytes, size_t size, cursor *rest);
void fuzz_partitions(problem *p, const uint8_t *bytes, size_t size);
void fuzz_free(problem *p);

/* Whether n is so large that no array of n elements can be. */
static inline bool fuzz_is_huge(int64_t n) { return n > INT64_C(1) << 40; }

/* Some rows of a problem, in some order, in row-major memory of their own. */
typedef struct selection {
    strided x, ids;
    int64_t rows;
    int64_t *row; /* of the problem */
} selection;

/* Takes over row (of malloc). */
selection fuzz_select(const problem *p, int64_t rows, int64_t *row);
void fuzz_unselect(selection *s);

/* Orders in which a problem is asked again; each of malloc. */
int64_t *fuzz_shuffled(const problem *p, cursor *c);
int64_t *fuzz_by_id(const problem *p); /* ascending as numbers, those out of range included */
int64_t *fuzz_kept(const problem *p, int64_t *rows);
bool fuzz_ids_ascend(const problem *p);

/* A context in which big allocations fail, and its outermost frame. */
typedef struct session {
    at_context cx;
    at_frame root;
} session;

at_frame *fuzz_open(session *s, unsigned flags);
void fuzz_close(session *s);

/* malloc or the end of the program. */
void *fuzz_get(int64_t count, size_t size);

/* Prints what does not hold, and aborts. */
void fuzz_fail(const problem *p, const char *format, ...)
    __attribute__((noreturn, format(printf, 2, 3)));

#endif
