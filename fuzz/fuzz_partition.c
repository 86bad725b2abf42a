/* Partitions: ids by plain loops, the ops on runs against segment ops on those ids, and the kernels on counts. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz_ask.h"
#include "kernels/segment.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

/* A length as a number; UINT64 ones above INT64_MAX count as INT64_MAX. */
static int64_t length_of(const problem *p, int64_t k)
{
    uint64_t u = p->raw_id[k].u;
    return !fuzz_is_signed(p->ids.dtype) && u > INT64_MAX ? INT64_MAX : (int64_t)u;
}

/* The run of each of `total` places, n behind the last; negative lengths are none. */
static int64_t *plain_ids(const problem *p, int64_t total)
{
    int64_t *id = fuzz_get(total, sizeof *id), k = 0, left = p->n > 0 ? length_of(p, 0) : 0;
    for (int64_t i = 0; i < total; i++) {
        while (k < p->n && left <= 0) left = ++k < p->n ? length_of(p, k) : 0;
        id[i] = k;
        left--;
    }
    return id;
}

/* Whether the lengths add up to p->total places, of which an array can be made. */
static bool is_fine(const problem *p)
{
    uint64_t sum = 0;
    for (int64_t k = 0; k < p->n; k++) {
        if (length_of(p, k) < 0 || length_of(p, k) > FUZZ_MOST) return false;
        sum += (uint64_t)length_of(p, k);
    }
    return p->total.n >= 0 && sum == (uint64_t)p->total.n;
}

/* --- the ops ----------------------------------------------------------------------------------------- */

static void check_ids(const problem *p, at_frame *f, at_array lengths)
{
    at_array got = at_partition_ids(f, lengths, p->total);
    if (!is_fine(p)) {
        at_status status = f->cx->status; /* no memory where the lengths are as huge as the total */
        if (!at_is_nil(got) || (status != AT_EVALUE && status != AT_ENOMEM))
            fuzz_fail(p, "a total of %" PRId64 " is not refused", p->total.n);
        at_clear(f->cx);
        return;
    }
    if (at_is_nil(got)) fuzz_fail(p, "partition_ids: %s", at_message(f->cx));
    int64_t *want = plain_ids(p, p->total.n);
    cell *cells = fuzz_cells(p, got);
    for (int64_t i = 0; i < p->total.n; i++)
        if ((int64_t)cells[i].u != want[i]) fuzz_fail(p, "partition_ids at %" PRId64, i);
    free(cells);
    free(want);
}

/* The same question over segments, whose oracle answers for runs too. */
static problem as_segments(const problem *p)
{
    problem s = *p;
    s.id = plain_ids(p, p->rows);
    s.raw_id = fuzz_get(p->rows, sizeof *s.raw_id);
    for (int64_t e = 0; e < p->rows; e++) {
        s.raw_id[e].u = (uint64_t)s.id[e];
        if (s.id[e] >= p->n) s.id[e] = -1;
    }
    return s;
}

static void check_runs(const problem *p, at_frame *f, at_array x, at_array lengths)
{
    problem s = as_segments(p);
    oracle o = fuzz_ask(&s);
    fuzz_check(&o, ASK_SUM, f, at_partition_sum(f, x, lengths, p->total), p->rows, NULL, "runs");
    fuzz_check(&o, ASK_MIN, f, at_partition_min(f, x, lengths, p->total), p->rows, NULL, "runs");
    fuzz_check(&o, ASK_MAX, f, at_partition_max(f, x, lengths, p->total), p->rows, NULL, "runs");
    at_array softmax = at_partition_softmax(f, x, lengths, p->total);
    fuzz_check(&o, ASK_SOFTMAX, f, softmax, p->rows, NULL, "runs");
    fuzz_forget(&o);
    free(s.id);
    free(s.raw_id);
}

/* --- the kernels ------------------------------------------------------------------------------------- */

static ati_host view_of(const strided *s)
{
    ati_host v = {.data = s->first, .dtype = s->dtype, .ndim = 1};
    v.dim[0] = s->dim[0];
    v.stride[0] = s->stride[0];
    return v;
}

/* A vector for a kernel to write, of exactly its bytes. */
static ati_host vector(at_dtype dtype, int64_t count)
{
    ati_host v = {.dtype = dtype, .ndim = 1};
    v.dim[0] = count;
    v.stride[0] = (int64_t)at_dtype_size(dtype);
    v.data = aligned_alloc(64, (size_t)(count * v.stride[0] + 63) / 64 * 64 + 64);
    if (v.data == NULL) abort();
    return v;
}

static void check_partition_kernel(const problem *p, int64_t total)
{
    ati_host lengths = view_of(&p->ids), out = vector(AT_INT64, total);
    int64_t *want = plain_ids(p, total);
    ati_k_partition_ids(&lengths, &out);
    if (total > 0 && memcmp(out.data, want, (size_t)total * sizeof *want) != 0)
        fuzz_fail(p, "ati_k_partition_ids for %" PRId64, total);
    free(want);
    free(out.data);
}

static void check_counts_kernel(const problem *p)
{
    ati_host lengths = view_of(&p->ids);
    int64_t sum, least, want = 0, low = p->n > 0 ? INT64_MAX : 0;
    bool clamps = false;
    for (int64_t k = 0; k < p->n; k++) {
        clamps = clamps || __builtin_add_overflow(want, length_of(p, k), &want);
        low = length_of(p, k) < low ? length_of(p, k) : low;
    }
    ati_k_counts(&lengths, &sum, &least);
    if (least != low) fuzz_fail(p, "ati_k_counts: least is %" PRId64, least);
    if (!clamps && sum != want) fuzz_fail(p, "ati_k_counts: sum is %" PRId64, sum);
}

/* Lengths taken for ids of n slots. */
static void check_slot_kernels(const problem *p, int64_t n)
{
    ati_host ids = view_of(&p->ids), slots = vector(AT_INT64, p->n), kept = vector(AT_BOOL, p->n);
    ati_host counts = vector(AT_INT64, n);
    ati_k_slot_ids(&ids, n, &slots);
    ati_k_slot_kept(&ids, n, &kept);
    if (!ati_k_segment_count(&ids, &counts)) fuzz_fail(p, "ati_k_segment_count: no memory");
    int64_t *slot = slots.data, *count = counts.data;
    for (int64_t k = 0; k < p->n; k++) {
        bool inside = p->raw_id[k].u < (uint64_t)n;
        if (slot[k] != (inside ? (int64_t)p->raw_id[k].u : n)) fuzz_fail(p, "ati_k_slot_ids");
        if (((unsigned char *)kept.data)[k] != inside) fuzz_fail(p, "ati_k_slot_kept");
        if (inside) count[slot[k]]--;
    }
    for (int64_t s = 0; s < n; s++)
        if (count[s] != 0) fuzz_fail(p, "ati_k_segment_count");
    free(slots.data);
    free(kept.data);
    free(counts.data);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    problem p;
    session at;
    fuzz_partitions(&p, bytes, size);
    at_frame *f = fuzz_open(&at, p.flags);
    at_array x = fuzz_array(f, &p.x), lengths = fuzz_array(f, &p.ids);
    check_ids(&p, f, lengths);
    if (is_fine(&p) && p.total.n == p.rows) check_runs(&p, f, x, lengths);
    fuzz_close(&at);
    int64_t places = p.total.n > 0 && p.total.n < FUZZ_MOST ? p.total.n : p.rows / 2;
    check_partition_kernel(&p, places);
    check_counts_kernel(&p);
    check_slot_kernels(&p, p.rows / 3);
    fuzz_free(&p);
    return 0;
}
