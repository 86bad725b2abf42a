/* Short blocks of elements as the widest type of their class, for kernels that need not be stamped per dtype.
 *
 * Signed integers widen to int64_t, bool and unsigned ones to uint64_t, floats to double, all exactly.
 * A block is small enough to stay in the first cache. */
#ifndef ATI_BLOCK_H
#define ATI_BLOCK_H

#include "kernels/host.h"

enum { ATI_BLOCK = 256 };

typedef enum ati_class { ATI_SIGNED, ATI_UNSIGNED, ATI_REAL } ati_class;

typedef union ati_block {
    int64_t i[ATI_BLOCK];
    uint64_t u[ATI_BLOCK];
    double d[ATI_BLOCK];
} ati_block;

/* Class of a dtype, and the widest dtype of a class. */
ati_class ati_class_of(at_dtype dtype);
at_dtype ati_class_dtype(ati_class c);

/* Reads n <= ATI_BLOCK elements, step bytes apart. */
void ati_block_load(ati_block *block, at_dtype from, const char *p, int64_t step, int64_t n);

/* Writes n values of a class (any number of them), cast as C does, without its undefined cases: a float
 * beyond an integer type gives its nearest value, NaN gives 0. */
void ati_block_store(const void *values, ati_class from, at_dtype to, char *p, int64_t step,
                     int64_t n);

/* Reads n <= ATI_BLOCK integers as int64_t; what does not fit, or is no integer, becomes INT64_MAX, which is
 * in range of nothing. */
void ati_ids_load(int64_t *ids, at_dtype from, const char *p, int64_t step, int64_t n);

/* Reads ids [start, start + count) of a vector; count <= ATI_BLOCK. */
static inline void ati_ids_read(const ati_host *vector, int64_t start, int64_t count, int64_t *ids)
{
    int64_t step = vector->stride[0];
    ati_ids_load(ids, vector->dtype, (const char *)vector->data + start * step, step, count);
}

/* Asks for the memory of an id that is soon read, or of none behind the last: a block is read at once, which the
 * processor does not foresee, and asking for all of it at once is as slow as not to ask. */
static inline void ati_ids_ask(const ati_host *vector, int64_t k)
{
    __builtin_prefetch((const char *)vector->data + k * vector->stride[0]);
}

/* Reads n elements by their numbers: p + list[k] * step. */
void ati_ids_pick(int64_t *ids, at_dtype from, const char *p, int64_t step, const uint32_t *list,
                  int64_t n);

static inline int64_t ati_block_of(int64_t left) { return left < ATI_BLOCK ? left : ATI_BLOCK; }

#endif
