/* Every plan of a fold, beside plain loops: sizes are chosen so that each is taken (segment_fold.c). Run with several
 * numbers of threads and with the loops of each processor (AT_NUM_THREADS, AT_SIMD). */
#include <stdlib.h>

#include "fixture.h"
#include "kernels/move.h"
#include "kernels/pool.h"
#include "kernels/segment.h"
#include "kernels/view.h"

/* ThreadSanitizer takes long, and digits are not what it looks at. */
#if defined(__SANITIZE_THREAD__)
enum { MANY = 300000 };
#else
enum { MANY = 10000000 };
#endif

/* --- data --- */

typedef struct data {
    int64_t rows, n, width;
    float *x;
    int64_t *ids;
    double *want;
} data;

static uint64_t next_random(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    return *state ^= *state << 17;
}

typedef int64_t order(int64_t row, int64_t rows, int64_t n, uint64_t random);

static int64_t any(int64_t row, int64_t rows, int64_t n, uint64_t random)
{
    (void)row, (void)rows;
    return (int64_t)(random % (uint64_t)(n + 2)) - 1; /* some are dropped */
}

static int64_t rising(int64_t row, int64_t rows, int64_t n, uint64_t random)
{
    (void)random;
    return row * (n + 20) / rows - 10; /* dropped ones at both ends */
}

/* Nine of ten rows in one segment, in between the others. */
static int64_t lopsided(int64_t row, int64_t rows, int64_t n, uint64_t random)
{
    return random % 10 ? n / 3 : any(row, rows, n, random >> 8);
}

static int64_t single(int64_t row, int64_t rows, int64_t n, uint64_t random)
{
    (void)row, (void)rows, (void)random;
    return n / 2;
}

static data data_new(int64_t rows, int64_t n, int64_t width, order *id)
{
    data d = {rows,
              n,
              width,
              malloc((size_t)(rows * width) * 4),
              malloc((size_t)rows * 8),
              malloc((size_t)(n * width) * 8)};
    uint64_t state = 88172645463325252u;
    if (d.x == NULL || d.ids == NULL || d.want == NULL) abort();
    for (int64_t k = 0; k < rows * width; k++)
        d.x[k] = 0.1f + (float)(next_random(&state) % 1000) / 1000;
    for (int64_t e = 0; e < rows; e++) d.ids[e] = id(e, rows, n, next_random(&state));
    return d;
}

static void data_free(data *d)
{
    free(d->x);
    free(d->ids);
    free(d->want);
}

/* The loop that the kernels are held against. */
static void fold_plainly(data *d, ati_fold op)
{
    for (int64_t k = 0; k < d->n * d->width; k++)
        d->want[k] = op == ATI_FOLD_SUM    ? 0
                     : op == ATI_FOLD_PROD ? 1
                     : op == ATI_FOLD_MIN  ? (double)INFINITY
                                           : -(double)INFINITY;
    for (int64_t e = 0; e < d->rows; e++)
        for (int64_t k = 0; d->ids[e] >= 0 && d->ids[e] < d->n && k < d->width; k++) {
            double *to = &d->want[d->ids[e] * d->width + k], v = d->x[e * d->width + k];
            *to = op == ATI_FOLD_SUM    ? *to + v
                  : op == ATI_FOLD_PROD ? *to * v
                  : op == ATI_FOLD_MIN  ? fmin(*to, v)
                                        : fmax(*to, v);
        }
}

/* Rows, ids and room for a result in a dtype; x is strided where asked for. */
static void check_fold(data *d, ati_fold op, at_dtype dtype, bool strided, double tolerance)
{
    int64_t in[] = {d->rows, strided ? 2 * d->width : d->width}, out[] = {d->n, d->width};
    int64_t size = ati_k_itemsize(dtype);
    ati_host plain = ati_k_view(d->x, AT_FLOAT32, 2, (int64_t[]){d->rows, d->width});
    ati_host x = ati_k_view(malloc((size_t)(in[0] * in[1] * size)), dtype, 2, in);
    ati_host y = ati_k_view(malloc((size_t)(out[0] * out[1] * size)), dtype, 2, out);
    ati_host ids = ati_k_view(d->ids, AT_INT64, 1, &d->rows);
    double *got = malloc((size_t)(out[0] * out[1]) * 8);
    ati_host wide = ati_k_view(got, AT_FLOAT64, 2, out);
    if (x.data == NULL || y.data == NULL || got == NULL) abort();
    x.dim[1] = d->width;
    x.stride[1] = strided ? 2 * size : size;
    ati_k_copy(&plain, &x);
    CHECK(ati_k_segment_fold(op, &x, &ids, &y));
    ati_k_copy(&y, &wide);
    fold_plainly(d, op);
    CHECK_EQ(got, d->want, (size_t)(out[0] * out[1]), tolerance);
    free(x.data);
    free(y.data);
    free(got);
}

/* Their products are exact: few are not 1 or -1, and these go up as often as down. */
static float factor(uint64_t random)
{
    float sign = random & 1 ? -1 : 1;
    uint64_t turn = (random >> 1) % 1000;
    return sign * (turn == 7 ? 2.0f : turn == 8 ? 0.5f : 1.0f);
}

static void check_all(int64_t rows, int64_t n, int64_t width, order *id)
{
    data d = data_new(rows, n, width, id);
    for (int strided = 0; strided < 2; strided++) {
        check_fold(&d, ATI_FOLD_SUM, AT_FLOAT32, strided, 1e-6);
        check_fold(&d, ATI_FOLD_SUM, AT_FLOAT64, strided, 1e-6); /* x itself is float32 */
        check_fold(&d, ATI_FOLD_SUM, AT_BFLOAT16, strided, 8e-3);
        check_fold(&d, ATI_FOLD_MIN, AT_FLOAT32, strided, 0);
        check_fold(&d, ATI_FOLD_MAX, AT_FLOAT64, strided, 0);
    }
    uint64_t state = 7;
    for (int64_t k = 0; k < rows * width; k++) d.x[k] = factor(next_random(&state));
    check_fold(&d, ATI_FOLD_PROD, AT_FLOAT32, true, 0);
    check_fold(&d, ATI_FOLD_PROD, AT_FLOAT64, false, 0);
    data_free(&d);
}

/* --- tests --- */

static void test_few_rows_go_one_after_the_other(at_frame *f)
{
    (void)f;
    check_all(100, 7, 3, any);
    check_all(1, 1, 1, single);
    check_all(5, 10000, 2, any);
}

static void test_small_outputs_are_private(at_frame *f)
{
    (void)f;
    check_all(200000, 50, 1, any);
    check_all(50000, 300, 9, lopsided);
    check_all(100000, 1, 4, single);
}

static void test_larger_outputs_are_private_while_segments_are_short(at_frame *f)
{
    (void)f;
    check_all(120000, 11000, 32, any);
}

static void test_large_outputs_are_cut_in_ranges(at_frame *f)
{
    (void)f;
    check_all(100000, 90000, 16, any);
    check_all(70000, 400000, 1, any);
}

static void test_ranges_with_a_long_segment_add_wide(at_frame *f)
{
    (void)f;
    check_all(300000, 80000, 4, lopsided);
    check_all(100000, 120000, 8, single);
}

static void test_sorted_rows_are_streamed(at_frame *f)
{
    (void)f;
    check_all(100000, 30000, 8, rising);
    check_all(100000, 90000, 2, rising);
    check_all(300000, 200000, 1, rising);
}

static void test_equal_rows_of_one_long_segment_keep_their_digits(at_frame *f)
{
    (void)f;
    data d = data_new(MANY, 200000, 1, single);
    for (int64_t e = 0; e < d.rows; e++) {
        d.x[e] = 0.1f;
        if (e % 100 == 0) d.ids[e] = e / 100; /* a giant among many small ones, not sorted */
    }
    check_fold(&d, ATI_FOLD_SUM, AT_FLOAT32, false, 1e-6);
    data_free(&d);
}

static void test_the_number_of_threads_is_at_least_one(at_frame *f)
{
    (void)f;
    CHECK(ati_pool_threads() >= 1 && ati_pool_threads() <= ATI_MOST_THREADS);
    CHECK(ati_pool_threads_for(1, 1000) == 1);
    const char *wish = getenv("AT_NUM_THREADS");
    if (wish != NULL) CHECK(ati_pool_threads() == atoi(wish));
}

static void count_task(void *job, int index) { ((int *)job)[index]++; }

static void test_every_task_runs_once(at_frame *f)
{
    (void)f;
    for (int round = 0; round < 200; round++) {
        int seen[37] = {0};
        bool once = true;
        ati_pool_run(37, count_task, seen);
        for (int k = 0; k < 37; k++) once = once && seen[k] == 1;
        CHECK(once);
    }
}

int main(int argc, char **argv)
{
    static const test tests[] = {
        TEST(test_few_rows_go_one_after_the_other),
        TEST(test_small_outputs_are_private),
        TEST(test_larger_outputs_are_private_while_segments_are_short),
        TEST(test_large_outputs_are_cut_in_ranges),
        TEST(test_ranges_with_a_long_segment_add_wide),
        TEST(test_sorted_rows_are_streamed),
        TEST(test_equal_rows_of_one_long_segment_keep_their_digits),
        TEST(test_the_number_of_threads_is_at_least_one),
        TEST(test_every_task_runs_once),
    };
    return RUN(tests, plainly, argc, argv);
}
