/* Segment softmax and normalize, against plain loops; and softmax sums to 1. */
#include <math.h>
#include <stdlib.h>

#include "fuzz_ask.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

/* How far from 1 the sum of a column may be: each row is rounded to its own type. */
static double slack(const column *c, at_dtype dtype)
{
    double step = dtype == AT_FLOAT16 ? 0x1p-10 : dtype == AT_BFLOAT16 ? 0x1p-7 : 0x1p-23;
    double least = dtype == AT_FLOAT16 ? 0x1p-24 : 0; /* 1 / rows may be below what it resolves */
    if (dtype == AT_FLOAT64 || !fuzz_is_float(dtype)) step = 0x1p-50;
    double rows = (double)c->rows;
    return step * (8 + (rows < 4096 ? rows : 4096)) + least * rows;
}

static void check_totals(const oracle *o, const cell *y)
{
    const problem *p = o->p;
    int64_t count = o->occupied * p->width;
    double *total = fuzz_get(count, sizeof *total);
    for (int64_t i = 0; i < count; i++) total[i] = 0;
    for (int64_t i = 0; i < p->rows * p->width; i++) {
        int64_t segment = o->segment[i / p->width];
        if (segment >= 0) total[segment * p->width + i % p->width] += y[i].d;
    }
    for (int64_t i = 0; i < count; i++) {
        const column *c = &o->columns[i];
        bool spoiled = c->nan || c->up || isinf(c->most);
        if (spoiled ? !isnan(total[i]) : !(fabs(total[i] - 1) <= slack(c, p->x.dtype)))
            fuzz_fail(p, "softmax sums to %.17g in column %d", total[i], (int)i);
    }
    free(total);
}

static void check_that_softmax_sums_to_one(const oracle *o)
{
    const problem *p = o->p;
    session at;
    at_frame *f = fuzz_open(&at, p->flags);
    at_array x = fuzz_array(f, &p->x), ids = fuzz_array(f, &p->ids);
    at_array y = at_segment_softmax(f, x, ids, AT_DIM(p->n), false);
    if (!at_is_nil(y)) { /* else n is huge: fuzz_check() has seen to that */
        cell *values = fuzz_cells(p, y);
        check_totals(o, values);
        free(values);
    }
    fuzz_close(&at);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    problem p;
    cursor c;
    if (size < 1) return 0;
    fuzz_segments(&p, bytes + 1, size - 1, &c);
    oracle o = fuzz_ask(&p);
    question q = bytes[0] % 3 ? ASK_SOFTMAX : ASK_NORMALIZE;
    fuzz_ask_all_ways(&o, q, &c);
    if (q == ASK_SOFTMAX) check_that_softmax_sums_to_one(&o);
    fuzz_forget(&o);
    fuzz_free(&p);
    return 0;
}
