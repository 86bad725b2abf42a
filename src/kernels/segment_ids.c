/* What can be said of segment ids and partition lengths without looking at data.
 *
 * All of them read ids in blocks of int64 (block.h), so that no loop is stamped per dtype. */
#include <string.h>

#include "kernels/block.h"
#include "kernels/segment.h"

/* Reads the block of a vector that starts at k; returns its length. */
static int64_t read_block(const ati_host *ids, int64_t k, int64_t *block)
{
    int64_t count = ati_block_of(ids->dim[0] - k);
    ati_ids_read(ids, k, count, block);
    return count;
}

/* One comparison for both bounds: a negative id is a huge unsigned one. */
static bool inside(int64_t id, int64_t n) { return (uint64_t)id < (uint64_t)n; }

void ati_k_slot_ids(const ati_host *ids, int64_t n, ati_host *out)
{
    int64_t *to = out->data;
    for (int64_t k = 0; k < ids->dim[0];) {
        int64_t length = read_block(ids, k, to + k);
        for (int64_t e = k; e < k + length; e++) to[e] = inside(to[e], n) ? to[e] : n;
        k += length;
    }
}

void ati_k_slot_kept(const ati_host *ids, int64_t n, ati_host *out)
{
    int64_t block[ATI_BLOCK];
    bool *to = out->data;
    for (int64_t k = 0; k < ids->dim[0];) {
        int64_t length = read_block(ids, k, block);
        for (int64_t e = 0; e < length; e++) to[k + e] = inside(block[e], n);
        k += length;
    }
}

static int64_t add_clamped(int64_t a, int64_t b)
{
    int64_t sum;
    if (__builtin_add_overflow(a, b, &sum)) return b < 0 ? INT64_MIN : INT64_MAX;
    return sum;
}

void ati_k_counts(const ati_host *counts, int64_t *sum, int64_t *least)
{
    int64_t block[ATI_BLOCK];
    *sum = 0;
    *least = counts->dim[0] > 0 ? INT64_MAX : 0;
    for (int64_t k = 0; k < counts->dim[0];) {
        int64_t length = read_block(counts, k, block);
        for (int64_t e = 0; e < length; e++) {
            *sum = add_clamped(*sum, block[e]);
            *least = block[e] < *least ? block[e] : *least;
        }
        k += length;
    }
}

/* Writes value count times, or up to the end; returns the place behind. */
static int64_t *put(int64_t *to, const int64_t *end, int64_t value, int64_t count)
{
    for (count = count < end - to ? count : end - to; count > 0; count--) *to++ = value;
    return to;
}

void ati_k_partition_ids(const ati_host *partitions, ati_host *out)
{
    int64_t block[ATI_BLOCK], n = partitions->dim[0];
    int64_t *to = out->data, *end = to + out->dim[0];
    for (int64_t k = 0; k < n && to < end;) {
        int64_t length = read_block(partitions, k, block);
        for (int64_t e = 0; e < length; e++) to = put(to, end, k + e, block[e]);
        k += length;
    }
    put(to, end, n, INT64_MAX);
}
