/* Softmax of logits that need peaks and of mild ones that do not (segment_two_pass.c), beside a loop in doubles: single
 * elements and rows, more rows than a block, every float dtype, one giant segment, and what must not spread. Run with
 * several numbers of threads and with the loops of each processor (AT_NUM_THREADS, AT_SIMD). */
#include <math.h>
#include <stdlib.h>

#include "fixture.h"
#include "kernels/move.h"
#include "kernels/segment.h"
#include "kernels/view.h"

typedef struct logits {
    int64_t rows, n, width;
    double *x, *want, *got;
    int64_t *ids;
} logits;

static uint64_t next_random(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    return *state ^= *state << 17;
}

/* Eighths within the limit, which all dtypes but bfloat16 hold; some ids are dropped. */
static logits logits_new(int64_t rows, int64_t n, int64_t width, double limit)
{
    size_t size = (size_t)(rows * width) * 8;
    logits l = {rows, n, width, malloc(size), malloc(size), malloc(size), malloc((size_t)rows * 8)};
    uint64_t state = 88172645463325252u;
    if (l.x == NULL || l.want == NULL || l.got == NULL || l.ids == NULL) abort();
    for (int64_t k = 0; k < rows * width; k++)
        l.x[k] = limit * ((double)(next_random(&state) % 2001) / 1000 - 1);
    for (int64_t k = 0; k < rows * width; k++) l.x[k] = floor(l.x[k] * 8) / 8;
    for (int64_t e = 0; e < rows; e++)
        l.ids[e] = (int64_t)(next_random(&state) % (uint64_t)(n + 2)) - 1;
    return l;
}

static void logits_free(logits *l)
{
    free(l->x);
    free(l->want);
    free(l->got);
    free(l->ids);
}

static double greater(double a, double b) { return isnan(a) || a > b ? a : b; }

/* Column k of what softmax is, from what x became in its dtype. */
static void softmax_plainly(logits *l, const double *x, int64_t k)
{
    double *peak = malloc((size_t)l->n * 8), *sum = calloc((size_t)l->n, 8);
    if (peak == NULL || sum == NULL) abort();
    for (int64_t s = 0; s < l->n; s++) peak[s] = -(double)INFINITY;
    for (int pass = 0; pass < 3; pass++)
        for (int64_t e = 0; e < l->rows; e++) {
            int64_t s = l->ids[e], at = e * l->width + k;
            bool inside = s >= 0 && s < l->n;
            if (!inside) l->want[at] = 0;
            if (!inside) continue;
            if (pass == 0) peak[s] = greater(x[at], peak[s]);
            if (pass == 1) sum[s] += exp(x[at] - peak[s]);
            if (pass == 2) l->want[at] = exp(x[at] - peak[s]) / sum[s];
        }
    free(peak);
    free(sum);
}

/* Into memory of its own, or in place; rows may be cut from wider ones. */
static void check_softmax(logits *l, at_dtype dtype, bool in_place, int64_t gap, double tolerance)
{
    int64_t size = ati_k_itemsize(dtype), dim[] = {l->rows, l->width};
    int64_t wide[] = {l->rows, l->width + gap};
    ati_host plain = ati_k_view(l->x, AT_FLOAT64, 2, dim);
    ati_host x = ati_k_view(calloc((size_t)(wide[0] * wide[1]), (size_t)size), dtype, 2, wide);
    ati_host y = ati_k_view(malloc((size_t)(l->rows * l->width * size)), dtype, 2, dim);
    ati_host got = ati_k_view(l->got, AT_FLOAT64, 2, dim);
    ati_host ids = ati_k_view(l->ids, AT_INT64, 1, &l->rows);
    if (x.data == NULL || y.data == NULL) abort();
    x.dim[1] = l->width;
    ati_k_copy(&plain, &x);
    ati_k_copy(&x, &got);
    for (int64_t k = 0; k < l->width; k++) softmax_plainly(l, l->got, k);
    ati_host *to = in_place ? &x : &y;
    CHECK(ati_k_segment_softmax(&x, &ids, l->n, to));
    ati_k_copy(to, &got);
    CHECK_EQ(l->got, l->want, (size_t)(l->rows * l->width), tolerance);
    free(x.data);
    free(y.data);
}

/* Tolerances: the last digits of a sum and two roundings. */
static void check_dtypes(logits *l)
{
    static const struct {
        at_dtype dtype;
        double tolerance;
    } kinds[] = {{AT_FLOAT16, 1e-3}, {AT_BFLOAT16, 8e-3}, {AT_FLOAT32, 4e-7}, {AT_FLOAT64, 2e-15}};
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
        check_softmax(l, kinds[k].dtype, false, 0, kinds[k].tolerance);
        check_softmax(l, kinds[k].dtype, false, 1, kinds[k].tolerance);
        check_softmax(l, kinds[k].dtype, true, 0, kinds[k].tolerance);
    }
}

static void check_limit(double limit)
{
    static const int64_t sizes[][3] = {{5, 3, 1}, {3000, 40, 1}, {90000, 5000, 1}, {40000, 900, 3}};
    for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++) {
        logits l = logits_new(sizes[k][0], sizes[k][1], sizes[k][2], limit);
        check_dtypes(&l);
        logits_free(&l);
    }
}

/* --- tests --- */

static void test_mild_logits_and_logits_near_the_limit_agree_with_a_loop(at_frame *f)
{
    (void)f;
    check_limit(3);
    check_limit(60);
    check_limit(300);
}

static void test_one_logit_beyond_the_limit_spoils_nothing(at_frame *f)
{
    (void)f;
    static const double beyond[] = {60.125, -60.125, 301, -301, 1e4, -1e4};
    for (size_t k = 0; k < sizeof beyond / sizeof *beyond; k++) {
        logits l = logits_new(70000, 3000, 1, 60);
        l.x[69000] = beyond[k];
        l.ids[69000] = 7;
        check_dtypes(&l);
        logits_free(&l);
    }
}

static void test_nan_and_infinities_spoil_their_own_segment_alone(at_frame *f)
{
    (void)f;
    for (int64_t width = 1; width <= 2; width++) {
        logits l = logits_new(50000, 2000, width, 5);
        static const double odd[] = {NAN, INFINITY, -INFINITY};
        for (int64_t k = 0; k < 3; k++) {
            l.x[(400 + 20000 * k) * width] = odd[k];
            l.ids[400 + 20000 * k] = 10 + k;
        }
        l.ids[9] = 1999;
        check_dtypes(&l);
        for (int64_t e = 0; e < l.rows; e++) /* a segment of -inf alone */
            if (l.ids[e] == 12) l.x[e * width] = -(double)INFINITY;
        check_dtypes(&l);
        logits_free(&l);
    }
}

static void test_rows_that_are_dropped_are_zero_whatever_they_hold(at_frame *f)
{
    (void)f;
    for (int64_t width = 1; width <= 2; width++)
        for (int odd = 0; odd < 2; odd++) {
            logits l = logits_new(40000, 50, width, 5);
            if (odd) l.x[0] = NAN;
            for (int64_t e = 0; e < l.rows; e++) l.ids[e] = e % 2 ? -1 : 50;
            check_dtypes(&l);
            logits_free(&l);
        }
}

static void test_what_dropped_rows_hold_changes_no_bit_of_the_others(at_frame *f)
{
    (void)f;
    logits l = logits_new(40000, 700, 1, 5);
    l.ids[100] = -1;
    l.ids[39999] = 700;
    check_softmax(&l, AT_FLOAT32, false, 0, 4e-7);
    double *clean = l.got;
    l.got = malloc((size_t)l.rows * 8);
    if (l.got == NULL) abort();
    l.x[100] = NAN;
    l.x[39999] = INFINITY;
    check_softmax(&l, AT_FLOAT32, false, 0, 4e-7);
    CHECK(memcmp(l.got, clean, (size_t)l.rows * 8) == 0);
    free(clean);
    logits_free(&l);
}

/* Each quotient is tiny: sums of floats would be off by far more. */
static void test_a_giant_segment_sums_to_one(at_frame *f)
{
    (void)f;
    logits l = logits_new(400000, 3, 1, 2);
    for (int64_t e = 0; e < l.rows; e++) l.ids[e] = e == 77 ? 2 : 1;
    check_softmax(&l, AT_FLOAT32, false, 0, 4e-7);
    double sum = 0;
    for (int64_t e = 0; e < l.rows; e++) sum += e == 77 ? 0 : l.got[e];
    CHECK(fabs(sum - 1) < 1e-6);
    CHECK(l.got[77] == 1); /* alone: exactly */
    logits_free(&l);
}

int main(int argc, char **argv)
{
    static const test tests[] = {
        TEST(test_mild_logits_and_logits_near_the_limit_agree_with_a_loop),
        TEST(test_one_logit_beyond_the_limit_spoils_nothing),
        TEST(test_nan_and_infinities_spoil_their_own_segment_alone),
        TEST(test_rows_that_are_dropped_are_zero_whatever_they_hold),
        TEST(test_what_dropped_rows_hold_changes_no_bit_of_the_others),
        TEST(test_a_giant_segment_sums_to_one),
    };
    return RUN(tests, plainly, argc, argv);
}
