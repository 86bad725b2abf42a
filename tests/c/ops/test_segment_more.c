/* Product, truth, deviation, logsumexp, rows of extremes and attention, rule by rule; with the native versions, with
 * the formulas alone, and where a derivative may be taken. */
#include "proxy.h"

#define INF ((double)INFINITY)
#define NAN_ ((double)NAN)

static bool is_float(at_dtype t) { return kind_of(t) == 'f'; }

/* --- product --- */

static void test_products_of_every_dtype(at_frame *f)
{
    for (int d = 0; d < COUNT_OF(every_dtype); d++) {
        at_dtype t = every_dtype[d], want = t == AT_BOOL ? AT_INT64 : t;
        at_array x = given(f, t, SIZES(5, 2), VALUES(1, 1, 0, 1, 1, 0, 1, 1, 0, 0)),
                 ids = VEC(f, AT_INT16, 0, 2, 0, 2, -1);
        check_note = at_dtype_name(t);
        EXPECT(at_segment_prod(f, x, ids, AT_DIM(3), false), want, SIZES(3, 2),
               VALUES(1, 0, 1, 1, 0, 1));
        if (t == AT_BOOL) continue;
        at_array y = VEC(f, t, 2, 3, 4, 5);
        EXPECT(at_segment_prod(f, y, VEC(f, AT_UINT8, 1, 1, 9, 1), AT_DIM(2), false), t, SIZES(2),
               VALUES(1, 30));
    }
}

static void test_integer_products_wrap(at_frame *f)
{
    at_array ids = VEC(f, AT_INT64, 0, 0, 1, 1);
    EXPECT(at_segment_prod(f, VEC(f, AT_INT8, 100, 3, -128, -1), ids, AT_DIM(2), false), AT_INT8,
           SIZES(2), VALUES(44, -128));
    EXPECT(at_segment_prod(f, VEC(f, AT_UINT16, 65535, 65535, 256, 257), ids, AT_DIM(2), false),
           AT_UINT16, SIZES(2), VALUES(1, 256));
}

static void test_half_products_are_rounded_once(at_frame *f)
{
    at_array ids = VEC(f, AT_INT64, 0, 0, 0, 0);
    EXPECT(at_segment_prod(f, VEC(f, AT_FLOAT16, 300, 300, 0.25, 0.5), ids, AT_DIM(1), false),
           AT_FLOAT16, SIZES(1), VALUES(11248)); /* 11250; 300 * 300 is beyond the type */
}

static void test_products_with_zeros_infinities_and_nan(at_frame *f)
{
    at_array x = VEC(f, AT_FLOAT64, 0, 5, 0, 0, 0, 0, 0, INF, NAN_, 2, INF, -2),
             ids = VEC(f, AT_INT64, 0, 0, 1, 1, 2, 2, 2, 7, 3, 3, 4, 4);
    EXPECT(at_segment_prod(f, x, ids, AT_DIM(6), false), AT_FLOAT64, SIZES(6),
           VALUES(0, 0, 0, NAN_, -INF, 1));
}

/* --- any, all --- */

static void test_any_and_all_of_every_dtype(at_frame *f)
{
    at_array ids = VEC(f, AT_INT32, 0, 0, 1, 1, 2, 2, 9);
    for (int d = 0; d < COUNT_OF(every_dtype); d++) {
        at_array x = VEC(f, every_dtype[d], 0, 1, 1, 1, 0, 0, 1);
        check_note = at_dtype_name(every_dtype[d]);
        EXPECT(at_segment_any(f, x, ids, AT_DIM(4), false), AT_BOOL, SIZES(4), VALUES(1, 1, 0, 0));
        EXPECT(at_segment_all(f, x, ids, AT_DIM(4), false), AT_BOOL, SIZES(4), VALUES(0, 1, 0, 1));
    }
}

static void test_nan_is_true_and_minus_zero_is_not(at_frame *f)
{
    at_array ids = VEC(f, AT_INT32, 0, 1, 2);
    for (int d = 0; d < COUNT_OF(every_dtype); d++) {
        if (!is_float(every_dtype[d])) continue;
        at_array x = VEC(f, every_dtype[d], NAN_, -0.0, -INF);
        check_note = at_dtype_name(every_dtype[d]);
        EXPECT(at_segment_any(f, x, ids, AT_DIM(3), false), AT_BOOL, SIZES(3), VALUES(1, 0, 1));
        EXPECT(at_segment_all(f, x, ids, AT_DIM(3), false), AT_BOOL, SIZES(3), VALUES(1, 0, 1));
    }
}

/* --- std --- */

static void test_std_is_the_root_of_the_variance(at_frame *f)
{
    at_array ids = VEC(f, AT_INT32, 0, 0, 3, 1, -1, 1);
    for (int d = 0; d < COUNT_OF(every_dtype); d++) {
        at_dtype t = every_dtype[d];
        if (t == AT_BOOL) continue;
        at_array x = VEC(f, t, 1, 5, 7, 4, 100, 4);
        check_note = at_dtype_name(t);
        EXPECT(at_segment_std(f, x, ids, AT_DIM(4), false), is_float(t) ? t : AT_FLOAT64, SIZES(4),
               VALUES(2, 0, 0, 0));
    }
    at_array x = VEC(f, AT_FLOAT16, 1000, -1000), y = VEC(f, AT_FLOAT32, NAN_, 1, INF);
    EXPECT(at_segment_std(f, x, VEC(f, AT_INT8, 0, 0), AT_DIM(1), false), AT_FLOAT16, SIZES(1),
           VALUES(1000)); /* its variance is beyond the type */
    EXPECT(at_segment_std(f, y, VEC(f, AT_INT8, 0, 1, 2), AT_DIM(3), false), AT_FLOAT32, SIZES(3),
           VALUES(NAN_, 0, NAN_));
}

/* --- logsumexp --- */

static void test_logsumexp_does_not_overflow(at_frame *f)
{
    at_array x = VEC(f, AT_FLOAT64, 1000, 1000, -1000, 3, 1e308),
             ids = VEC(f, AT_INT64, 0, 0, 1, -1, 3);
    EXPECT(at_segment_logsumexp(f, x, ids, AT_DIM(4), false), AT_FLOAT64, SIZES(4),
           VALUES(1000 + log(2), -1000, -INF, 1e308));
    EXPECT(at_segment_logsumexp(f, VEC(f, AT_INT8, 0, 0, 1), VEC(f, AT_INT8, 0, 0, 1), AT_DIM(2),
                                false),
           AT_FLOAT64, SIZES(2), VALUES(log(2), 1));
}

static void test_logsumexp_of_infinities_and_nan(at_frame *f)
{
    at_array x = VEC(f, AT_FLOAT32, -INF, -INF, -INF, 2, INF, 1, NAN_, INF, NAN_),
             ids = VEC(f, AT_INT64, 0, 0, 1, 1, 2, 2, 3, 3, 9);
    EXPECT(at_segment_logsumexp(f, x, ids, AT_DIM(5), false), AT_FLOAT32, SIZES(5),
           VALUES(-INF, 2, INF, NAN_, -INF));
}

/* --- argmin, argmax --- */

static void test_rows_of_extremes_of_every_dtype(at_frame *f)
{
    at_array ids = VEC(f, AT_INT8, 1, -1, 1, 0, 1, 0);
    for (int d = 0; d < COUNT_OF(every_dtype); d++) {
        at_array x =
            given(f, every_dtype[d], SIZES(6, 2), VALUES(0, 1, 1, 0, 1, 0, 1, 1, 1, 0, 0, 1));
        check_note = at_dtype_name(every_dtype[d]);
        EXPECT(at_segment_argmax(f, x, ids, AT_DIM(3), false), AT_INT64, SIZES(3, 2),
               VALUES(3, 3, 2, 0, 6, 6));
        EXPECT(at_segment_argmin(f, x, ids, AT_DIM(3), false), AT_INT64, SIZES(3, 2),
               VALUES(5, 3, 0, 2, 6, 6));
    }
}

static void test_the_first_nan_is_the_extreme(at_frame *f)
{
    at_array ids = VEC(f, AT_INT64, 9, 0, 0, 0, 1, 1);
    for (int d = 0; d < COUNT_OF(every_dtype); d++) {
        if (!is_float(every_dtype[d])) continue;
        at_array x = VEC(f, every_dtype[d], NAN_, INF, NAN_, NAN_, -INF, -INF);
        check_note = at_dtype_name(every_dtype[d]);
        EXPECT(at_segment_argmax(f, x, ids, AT_DIM(2), false), AT_INT64, SIZES(2), VALUES(2, 4));
        EXPECT(at_segment_argmin(f, x, ids, AT_DIM(2), false), AT_INT64, SIZES(2), VALUES(2, 4));
    }
}

static void test_empty_segments_hold_the_number_of_rows(at_frame *f)
{
    at_array none = nothing_of(f, AT_FLOAT32), ids = nothing_of(f, AT_INT64);
    EXPECT(at_segment_argmax(f, none, ids, AT_DIM(2), false), AT_INT64, SIZES(2), VALUES(0, 0));
    EXPECT(at_segment_argmin(f, VEC(f, AT_BOOL, 1, 0), VEC(f, AT_INT8, 5, -5), AT_DIM(1), true),
           AT_INT64, SIZES(1), VALUES(2));
}

/* --- attention --- */

static void test_attention_weighs_rows_and_heads(at_frame *f)
{
    at_array ids = VEC(f, AT_INT32, 1, 1, -1, 2), even = VEC(f, AT_FLOAT64, 3, 3, 900, 0);
    at_array x = given(f, AT_FLOAT64, SIZES(4, 2), VALUES(1, 2, 3, 6, NAN_, INF, 5, 7));
    EXPECT(at_segment_attention(f, even, x, ids, AT_DIM(4), false), AT_FLOAT64, SIZES(4, 2),
           VALUES(0, 0, 2, 4, 5, 7, 0, 0));
    double p = 1 / (1 + exp(1));
    at_array heads = given(f, AT_FLOAT64, SIZES(4, 2), VALUES(0, 1, 1, 0, 2, 2, 3, 3));
    EXPECT(at_segment_attention(f, heads, x, ids, AT_DIM(3), false), AT_FLOAT64, SIZES(3, 2),
           VALUES(0, 0, p + 3 * (1 - p), 2 * (1 - p) + 6 * p, 5, 7));
}

static void test_attention_of_half_types_adds_in_float32(at_frame *f)
{
    at_array x = given(f, AT_FLOAT16, SIZES(2, 1), VALUES(60000, 60000)),
             logits = VEC(f, AT_FLOAT16, 0, 0), ids = VEC(f, AT_INT64, 0, 0);
    EXPECT(at_segment_attention(f, logits, x, ids, AT_DIM(1), false), AT_FLOAT16, SIZES(1, 1),
           VALUES(60000));
}

static void test_attention_of_infinite_and_nan_logits(at_frame *f)
{
    at_array logits = VEC(f, AT_FLOAT32, -INF, -INF, -INF, 0, NAN_, 1, INF, 0),
             x = VEC(f, AT_FLOAT32, 1, 2, 3, 4, 5, 6, 7, 8),
             ids = VEC(f, AT_INT64, 0, 0, 1, 1, 2, 2, 3, 3);
    EXPECT(at_segment_attention(f, logits, x, ids, AT_DIM(5), false), AT_FLOAT32, SIZES(5),
           VALUES(NAN_, 4, NAN_, NAN_, 0));
}

static void test_the_shape_of_logits_begins_that_of_values(at_frame *f)
{
    at_array ids = VEC(f, AT_INT64, 0, 0), row = VEC(f, AT_FLOAT32, 1, 2);
    at_array table = given(f, AT_FLOAT32, SIZES(2, 3), VALUES(1, 2, 3, 4, 5, 6)),
             other = given(f, AT_FLOAT32, SIZES(2, 2), VALUES(1, 2, 3, 4)),
             longer = VEC(f, AT_FLOAT32, 1, 2, 3);
    EXPECT_ERROR(f, at_segment_attention(f, table, row, ids, AT_DIM(1), false), AT_ESHAPE,
                 "segment_attention", "(2, 3)", "(2,)");
    EXPECT_ERROR(f, at_segment_attention(f, other, table, ids, AT_DIM(1), false), AT_ESHAPE,
                 "(2, 2)", "(2, 3)");
    EXPECT_ERROR(f, at_segment_attention(f, row, longer, ids, AT_DIM(1), false), AT_ESHAPE, "(2,)",
                 "(3,)");
    EXPECT_ERROR(f, at_segment_attention(f, longer, longer, ids, AT_DIM(1), false), AT_ESHAPE,
                 "'logits'", "(3,)", "(2,)");
}

/* --- all of them --- */

typedef at_array reduction(at_frame *f, at_array x, at_array ids, at_dim n, bool sorted);

static at_array attended(at_frame *f, at_array x, at_array ids, at_dim n, bool sorted)
{
    return at_segment_attention(f, x, x, ids, n, sorted);
}

static reduction *const reductions[] = {at_segment_prod,      at_segment_any,    at_segment_all,
                                        at_segment_std,       at_segment_argmin, at_segment_argmax,
                                        at_segment_logsumexp, attended};

static void test_a_broken_promise_of_sorted_ids_changes_nothing(at_frame *f)
{
    at_array x = given(f, AT_FLOAT64, SIZES(6, 1), VALUES(1, 2, 3, 4, 5, 6));
    at_array rising = VEC(f, AT_INT64, -1, 0, 0, 2, 2, 5),
             mixed = VEC(f, AT_INT64, 2, 0, 5, 2, 0, -1);
    for (int i = 0; i < COUNT_OF(reductions); i++) {
        at_array ids = i % 2 ? rising : mixed;
        at_array want = reductions[i](f, x, ids, AT_DIM(3), false);
        if (!CHECK(!at_is_nil(want))) continue;
        double *values = values_of(want);
        EXPECT(reductions[i](f, x, ids, AT_DIM(3), true), at_native_dtype(want), SIZES(3, 1),
               values);
        free(values);
    }
}

static void test_what_does_not_fit_is_refused(at_frame *f)
{
    at_array x = VEC(f, AT_FLOAT32, 1, 2), ids = VEC(f, AT_INT64, 0, 1);
    for (int i = 0; i < COUNT_OF(reductions); i++) {
        EXPECT_ERROR(f, reductions[i](f, x, VEC(f, AT_INT64, 0), AT_DIM(1), false), AT_ESHAPE,
                     "segment_", "(2,)", "(1,)");
        EXPECT_ERROR(f, reductions[i](f, x, x, AT_DIM(1), false), AT_EDTYPE, "segment_ids");
        EXPECT_ERROR(f, reductions[i](f, x, ids, AT_DIM(-3), false), AT_EVALUE, "num_segments",
                     "-3");
        EXPECT_ERROR(f, reductions[i](f, x, ids, AT_NO_DIM, false), AT_EARG, "num_segments");
        EXPECT_ERROR(f, reductions[i](f, zero_d(f, AT_FLOAT32, 1), ids, AT_DIM(1), false),
                     AT_ESHAPE, "0-d");
    }
}

int main(int argc, char **argv)
{
    static const test tests[] = {
        TEST(test_products_of_every_dtype),
        TEST(test_integer_products_wrap),
        TEST(test_half_products_are_rounded_once),
        TEST(test_products_with_zeros_infinities_and_nan),
        TEST(test_any_and_all_of_every_dtype),
        TEST(test_nan_is_true_and_minus_zero_is_not),
        TEST(test_std_is_the_root_of_the_variance),
        TEST(test_logsumexp_does_not_overflow),
        TEST(test_logsumexp_of_infinities_and_nan),
        TEST(test_rows_of_extremes_of_every_dtype),
        TEST(test_the_first_nan_is_the_extreme),
        TEST(test_empty_segments_hold_the_number_of_rows),
        TEST(test_attention_weighs_rows_and_heads),
        TEST(test_attention_of_half_types_adds_in_float32),
        TEST(test_attention_of_infinite_and_nan_logits),
        TEST(test_the_shape_of_logits_begins_that_of_values),
        TEST(test_a_broken_promise_of_sorted_ids_changes_nothing),
        TEST(test_what_does_not_fit_is_refused),
    };
    static const mode where_derivatives_are_taken[] = {
        {" [tracked formula]", AT_GENERIC, ROW_MAJOR, proxy_make_tracked}};
    int failed = RUN(tests, both_ways, argc, argv);
    return RUN(tests, where_derivatives_are_taken, argc, argv) || failed;
}
