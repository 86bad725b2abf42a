/* Products of matrices, block by block: a block of y is unpacked into contiguous memory, in the type that is added in,
 * and used for a block of rows of x. Strides, the half types and bool are dealt with there, once per element.
 *
 * A sum is cut into blocks of BLOCK terms, each added by itself first, so that long ones keep their digits. */
#include <string.h>

#include "kernels/element.h"
#include "kernels/matmul.h"
#include "kernels/pool.h"
#include "kernels/view.h"

enum {
    BLOCK = 64,
    GRAIN = 1 << 18
}; /* rows, columns and terms of a block; products that are worth a thread */

/* The matrices of one batch. */
typedef struct product {
    const char *x, *y;
    char *out;
    int64_t rows, terms, columns;
    int64_t x_row, x_term, y_term, y_column; /* strides in bytes */
} product;

/* Rows [from, from + BLOCK) of one product. */
typedef void block_rows(const product *p, int64_t from);

static int64_t at_most(int64_t n) { return n < BLOCK ? n : BLOCK; }

/* 1u widens the narrow types to an unsigned one, so that nothing overflows a signed int. */
#define MULTIPLY_ADD(sum, a, b) ((sum) + 1u * (a) * (b))
#define MULTIPLY_ADD_REAL(sum, a, b) ((sum) + (a) * (b))
#define ADD(a, b) (1u * (a) + (b))
#define ADD_REAL(a, b) ((a) + (b))
#define AND_OR(sum, a, b) ((sum) || ((a) && (b)))
#define OR(a, b) ((a) || (b))

#define MATMUL(t, multiply_add, add)                                                               \
    static void unpack_##t(const product *p, int64_t term, int64_t column, int64_t terms,          \
                           int64_t columns, ati_value_##t(*to)[BLOCK])                             \
    {                                                                                              \
        const char *from = p->y + term * p->y_term + column * p->y_column;                         \
        for (int64_t k = 0; k < terms; k++)                                                        \
            for (int64_t j = 0; j < columns; j++)                                                  \
                to[k][j] = ati_load_##t(from + k * p->y_term + j * p->y_column);                   \
        for (int64_t k = 0; k < terms; k++)                                                        \
            for (int64_t j = columns; j < BLOCK; j++) to[k][j] = 0;                                \
    }                                                                                              \
    static void add_row_##t(const char *x, int64_t x_term, int64_t terms,                          \
                            ati_value_##t(*restrict y)[BLOCK], ati_value_##t *restrict sum)        \
    {                                                                                              \
        ati_value_##t part[BLOCK] = {0};                                                           \
        for (int64_t k = 0; k < terms; k++) {                                                      \
            ati_value_##t a = ati_load_##t(x + k * x_term);                                        \
            for (int j = 0; j < BLOCK; j++)                                                        \
                part[j] = (ati_value_##t)multiply_add(part[j], a, y[k][j]);                        \
        }                                                                                          \
        for (int j = 0; j < BLOCK; j++) sum[j] = (ati_value_##t)add(sum[j], part[j]);              \
    }                                                                                              \
    static void store_##t(const product *p, int64_t row, int64_t column, int64_t columns,          \
                          const ati_value_##t *sum)                                                \
    {                                                                                              \
        const int64_t size = sizeof(ati_memory_##t);                                               \
        char *to = p->out + (row * p->columns + column) * size;                                    \
        for (int64_t j = 0; j < columns; j++) ati_store_##t(to + j * size, sum[j]);                \
    }                                                                                              \
    static void rows_##t(const product *p, int64_t from)                                           \
    {                                                                                              \
        ati_value_##t sum[BLOCK][BLOCK], y[BLOCK][BLOCK];                                          \
        const int64_t rows = at_most(p->rows - from);                                              \
        for (int64_t column = 0; column < p->columns; column += BLOCK) {                           \
            const int64_t columns = at_most(p->columns - column);                                  \
            memset(sum, 0, sizeof sum);                                                            \
            for (int64_t term = 0; term < p->terms; term += BLOCK) {                               \
                const int64_t terms = at_most(p->terms - term);                                    \
                unpack_##t(p, term, column, terms, columns, y);                                    \
                for (int64_t i = 0; i < rows; i++)                                                 \
                    add_row_##t(p->x + (from + i) * p->x_row + term * p->x_term, p->x_term, terms, \
                                y, sum[i]);                                                        \
            }                                                                                      \
            for (int64_t i = 0; i < rows; i++) store_##t(p, from + i, column, columns, sum[i]);    \
        }                                                                                          \
    }

#define WHOLE(t) MATMUL(t, MULTIPLY_ADD, ADD)
#define REAL(t) MATMUL(t, MULTIPLY_ADD_REAL, ADD_REAL)
MATMUL(b8, AND_OR, OR)
WHOLE(u8)
WHOLE(u16)
WHOLE(u32)
WHOLE(u64)
REAL(f16)
REAL(bf16)
REAL(f32)
REAL(f64)

/* Signed integers are multiplied as unsigned ones: the bits are the same. */
static block_rows *const by_dtype[] = {
    [AT_BOOL] = rows_b8,     [AT_INT8] = rows_u8,       [AT_INT16] = rows_u16,
    [AT_INT32] = rows_u32,   [AT_INT64] = rows_u64,     [AT_UINT8] = rows_u8,
    [AT_UINT16] = rows_u16,  [AT_UINT32] = rows_u32,    [AT_UINT64] = rows_u64,
    [AT_FLOAT16] = rows_f16, [AT_BFLOAT16] = rows_bf16, [AT_FLOAT32] = rows_f32,
    [AT_FLOAT64] = rows_f64,
};

/* --- batches ------------------------------------------------------------------------------------------- */

typedef struct job {
    const ati_host *x, *y, *out;
    product whole;  /* of the first batch */
    int64_t blocks; /* of rows, in one batch */
    int64_t total;  /* the same, in all batches */
    int parts;
} job;

/* Where a batch begins in one of the arrays. */
static int64_t offset_of(const ati_host *v, int64_t batch)
{
    int64_t offset = 0;
    for (int k = v->ndim - 3; k >= 0; k--) {
        offset += batch % v->dim[k] * v->stride[k];
        batch /= v->dim[k];
    }
    return offset;
}

static void run_part(void *user, int part)
{
    const job *j = user;
    int64_t end = ati_part(j->total, part + 1, j->parts);
    for (int64_t b = ati_part(j->total, part, j->parts); b < end; b++) {
        product p = j->whole;
        int64_t batch = b / j->blocks;
        p.x += offset_of(j->x, batch);
        p.y += offset_of(j->y, batch);
        p.out += offset_of(j->out, batch);
        by_dtype[j->out->dtype](&p, b % j->blocks * BLOCK);
    }
}

void ati_k_matmul(const ati_host *x, const ati_host *y, ati_host *out)
{
    const int m = out->ndim - 2, n = out->ndim - 1;
    int64_t elements = ati_k_count(out);
    if (elements == 0) return;
    product whole = {x->data,     y->data,      out->data,    out->dim[m],  x->dim[n],
                     out->dim[n], x->stride[m], x->stride[n], y->stride[m], y->stride[n]};
    job j = {x, y, out, whole, (whole.rows + BLOCK - 1) / BLOCK, 0, 1};
    j.total = elements / (whole.rows * whole.columns) * j.blocks;
    int threads = ati_pool_threads_for(elements * (whole.terms + 1), GRAIN);
    j.parts = threads < j.total ? threads : (int)j.total;
    ati_pool_run(j.parts, run_part, &j);
}
