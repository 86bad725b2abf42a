/* Constructors. */
#include "fixture.h"

#define INF ((double)INFINITY)
#define NAN_ ((double)NAN)

static const at_shape two_three = {.ndim = 2, .dim = {{.n = 2}, {.n = 3}}};
static const at_shape three = {.ndim = 1, .dim = {{.n = 3}}};
static const at_shape none_two = {.ndim = 2, .dim = {{.n = 0}, {.n = 2}}};
static const at_shape no_axes = {.ndim = 0};

static at_scalar s1, s2, s3;
#define INT(place, value) at_scalar_int(&(place), (value))
#define FLOAT(place, value) at_scalar_float(&(place), (value))

static void test_zeros_and_ones_of_every_dtype(at_frame *f)
{
    for (int d = 0; d < COUNT_OF(every_dtype); d++) {
        at_dtype t = every_dtype[d];
        check_note = at_dtype_name(t);
        EXPECT(at_zeros(f, &two_three, t, AT_NIL), t, SIZES(2, 3), VALUES(0, 0, 0, 0, 0, 0));
        EXPECT(at_ones(f, &three, t, AT_NIL), t, SIZES(3), VALUES(1, 1, 1));
        EXPECT(at_ones(f, &no_axes, t, AT_NIL), t, ZERO_D, VALUES(1));
        EXPECT(at_zeros(f, &none_two, t, AT_NIL), t, SIZES(0, 2), NO_VALUES);
        EXPECT(at_full(f, &three, INT(s1, 1), t, AT_NIL), t, SIZES(3), VALUES(1, 1, 1));
    }
}

static void test_constructors_without_a_dtype_take_the_default(at_frame *f)
{
    EXPECT(at_zeros(f, &three, AT_NODTYPE, AT_NIL), AT_FLOAT64, SIZES(3), VALUES(0, 0, 0));
    EXPECT(at_ones(f, &three, AT_NODTYPE, AT_NIL), AT_FLOAT64, SIZES(3), VALUES(1, 1, 1));
    EXPECT(at_full(f, &three, INT(s1, 4), AT_NODTYPE, AT_NIL), AT_INT64, SIZES(3), VALUES(4, 4, 4));
    EXPECT(at_full(f, &three, FLOAT(s1, 4), AT_NODTYPE, AT_NIL), AT_FLOAT64, SIZES(3),
           VALUES(4, 4, 4));
    EXPECT(at_full(f, &no_axes, at_scalar_bool(&s1, true), AT_NODTYPE, AT_NIL), AT_BOOL, ZERO_D,
           VALUES(1));
    EXPECT(at_full(f, &three, zero_d(f, AT_INT16, 4), AT_NODTYPE, AT_NIL), AT_INT16, SIZES(3),
           VALUES(4, 4, 4));
}

static void test_like_gives_its_dtype_unless_one_is_asked_for(at_frame *f)
{
    at_array like = VEC(f, AT_FLOAT16, 1, 2);
    EXPECT(at_zeros(f, &three, AT_NODTYPE, like), AT_FLOAT16, SIZES(3), VALUES(0, 0, 0));
    EXPECT(at_ones(f, &three, AT_INT8, like), AT_INT8, SIZES(3), VALUES(1, 1, 1));
    EXPECT(at_full(f, &three, FLOAT(s1, 2.5), AT_NODTYPE, like), AT_FLOAT16, SIZES(3),
           VALUES(2.5, 2.5, 2.5));
    EXPECT(at_full(f, &three, zero_d(f, AT_INT64, 2), AT_NODTYPE, like), AT_FLOAT16, SIZES(3),
           VALUES(2, 2, 2));
}

static void test_the_fill_value_is_cast(at_frame *f)
{
    EXPECT(at_full(f, &three, FLOAT(s1, 3.7), AT_INT8, AT_NIL), AT_INT8, SIZES(3), VALUES(3, 3, 3));
    EXPECT(at_full(f, &three, FLOAT(s1, 1e9), AT_FLOAT16, AT_NIL), AT_FLOAT16, SIZES(3),
           VALUES(INF, INF, INF));
    EXPECT(at_full(f, &three, FLOAT(s1, NAN_), AT_FLOAT32, AT_NIL), AT_FLOAT32, SIZES(3),
           VALUES(NAN_, NAN_, NAN_));
    EXPECT(at_full(f, &three, FLOAT(s1, 0.5), AT_BOOL, AT_NIL), AT_BOOL, SIZES(3), VALUES(1, 1, 1));
    EXPECT(at_full(f, &three, zero_d(f, AT_FLOAT32, -3.7), AT_INT16, AT_NIL), AT_INT16, SIZES(3),
           VALUES(-3, -3, -3));
}

static void test_an_integer_fill_value_that_does_not_fit_is_refused(at_frame *f)
{
    EXPECT_ERROR(f, at_full(f, &three, INT(s1, 300), AT_INT8, AT_NIL), AT_EOVERFLOW, "full", "300",
                 "int8");
    EXPECT_ERROR(f, at_full(f, &three, INT(s1, -1), AT_UINT64, AT_NIL), AT_EOVERFLOW, "full",
                 "uint64");
    at_array x = VEC(f, AT_UINT8, 1, 2);
    EXPECT_ERROR(f, at_full_like(f, x, INT(s1, 256), AT_NODTYPE), AT_EOVERFLOW, "full_like", "256",
                 "uint8");
    EXPECT(at_full(f, &three, INT(s1, 300), AT_BOOL, AT_NIL), AT_BOOL, SIZES(3), VALUES(1, 1, 1));
}

static void test_the_fill_value_broadcasts(at_frame *f)
{
    EXPECT(at_full(f, &two_three, VEC(f, AT_INT32, 1, 2, 3), AT_FLOAT32, AT_NIL), AT_FLOAT32,
           SIZES(2, 3), VALUES(1, 2, 3, 1, 2, 3));
    at_array column = given(f, AT_INT8, SIZES(2, 1), VALUES(7, 8));
    EXPECT(at_full(f, &two_three, column, AT_NODTYPE, AT_NIL), AT_INT8, SIZES(2, 3),
           VALUES(7, 7, 7, 8, 8, 8));
    EXPECT_ERROR(f, at_full(f, &three, VEC(f, AT_INT8, 1, 2), AT_NODTYPE, AT_NIL), AT_ESHAPE,
                 "full", "(2,)", "(3,)");
}

static void test_like_functions_take_the_shape_of_their_operand(at_frame *f)
{
    for (int d = 0; d < COUNT_OF(every_dtype); d++) {
        at_dtype t = every_dtype[d];
        at_array x = given(f, t, SIZES(2, 1), VALUES(1, 0));
        check_note = at_dtype_name(t);
        EXPECT(at_zeros_like(f, x, AT_NODTYPE), t, SIZES(2, 1), VALUES(0, 0));
        EXPECT(at_ones_like(f, x, AT_NODTYPE), t, SIZES(2, 1), VALUES(1, 1));
        EXPECT(at_full_like(f, x, FLOAT(s1, 1), AT_NODTYPE), t, SIZES(2, 1), VALUES(1, 1));
        EXPECT(at_full_like(f, x, FLOAT(s1, 1), AT_FLOAT32), AT_FLOAT32, SIZES(2, 1), VALUES(1, 1));
    }
    at_array x = given(f, AT_INT8, SIZES(2, 0), NO_VALUES);
    EXPECT(at_ones_like(f, x, AT_NODTYPE), AT_INT8, SIZES(2, 0), NO_VALUES);
    EXPECT(at_full_like(f, zero_d(f, AT_INT8, 1), INT(s1, 9), AT_NODTYPE), AT_INT8, ZERO_D,
           VALUES(9));
    EXPECT_ERROR(f, at_zeros_like(f, AT_NIL, AT_NODTYPE), AT_EARG, "zeros_like");
    EXPECT_ERROR(f, at_ones_like(f, AT_NIL, AT_FLOAT32), AT_EARG, "ones_like");
    EXPECT_ERROR(f, at_full_like(f, AT_NIL, INT(s1, 1), AT_NODTYPE), AT_EARG, "full_like");
    EXPECT_ERROR(f, at_full_like(f, x, AT_NIL, AT_NODTYPE), AT_EARG, "full_like", "fill_value");
}

static void test_sizes_that_are_negative_or_too_large_are_refused(at_frame *f)
{
    at_shape shape = {.ndim = 2, .dim = {{.n = -1}, {.n = 3}}};
    EXPECT_ERROR(f, at_zeros(f, &shape, AT_INT8, AT_NIL), AT_EVALUE, "zeros", "-1");
    EXPECT_ERROR(f, at_full(f, &shape, INT(s1, 1), AT_INT8, AT_NIL), AT_EVALUE, "full", "-1");
    shape.dim[0].n = INT64_MAX / 2;
    EXPECT_ERROR(f, at_ones(f, &shape, AT_INT8, AT_NIL), AT_EVALUE, "ones");
    shape.dim[0].n = INT64_MAX / 3;
    EXPECT_ERROR(f, at_ones(f, &shape, AT_FLOAT64, AT_NIL), AT_EVALUE, "ones");
    EXPECT_ERROR(f, at_full(f, &three, AT_NIL, AT_INT8, AT_NIL), AT_EARG, "full", "fill_value",
                 "missing");
}

static void test_a_dtype_of_another_library_is_refused(at_frame *f)
{
    EXPECT_ERROR(f, at_zeros(f, &three, AT_OTHER, AT_NIL), AT_EDTYPE, "zeros", "dtype");
    EXPECT_ERROR(f, at_full(f, &three, INT(s1, 1), AT_OTHER, AT_NIL), AT_EDTYPE, "full", "dtype");
    at_array out = at_arange(f, INT(s1, 3), AT_NIL, AT_NIL, AT_OTHER, AT_NIL, NULL);
    CHECK(at_is_nil(out) && f->cx->status == AT_EDTYPE);
    at_clear(f->cx);
}

/* --- arange ---------------------------------------------------------------------------------- */

#define RANGE(start, stop, step, dtype) at_arange(f, (start), (stop), (step), (dtype), AT_NIL, NULL)

static void test_arange_with_one_bound_starts_at_zero(at_frame *f)
{
    EXPECT(RANGE(INT(s1, 4), AT_NIL, AT_NIL, AT_NODTYPE), AT_INT64, SIZES(4), VALUES(0, 1, 2, 3));
    EXPECT(RANGE(FLOAT(s1, 2.5), AT_NIL, AT_NIL, AT_NODTYPE), AT_FLOAT64, SIZES(3),
           VALUES(0, 1, 2));
    EXPECT(RANGE(INT(s1, 0), AT_NIL, AT_NIL, AT_NODTYPE), AT_INT64, SIZES(0), NO_VALUES);
    EXPECT(RANGE(INT(s1, -3), AT_NIL, AT_NIL, AT_NODTYPE), AT_INT64, SIZES(0), NO_VALUES);
}

static void test_arange_counts_up_and_down(at_frame *f)
{
    EXPECT(RANGE(INT(s1, 2), INT(s2, 9), INT(s3, 3), AT_NODTYPE), AT_INT64, SIZES(3),
           VALUES(2, 5, 8));
    EXPECT(RANGE(INT(s1, 2), INT(s2, 8), INT(s3, 3), AT_NODTYPE), AT_INT64, SIZES(2), VALUES(2, 5));
    EXPECT(RANGE(INT(s1, 5), INT(s2, 0), INT(s3, -2), AT_NODTYPE), AT_INT64, SIZES(3),
           VALUES(5, 3, 1));
    EXPECT(RANGE(INT(s1, 5), INT(s2, 0), INT(s3, 2), AT_NODTYPE), AT_INT64, SIZES(0), NO_VALUES);
    EXPECT(RANGE(INT(s1, 0), FLOAT(s2, 1), FLOAT(s3, 0.25), AT_NODTYPE), AT_FLOAT64, SIZES(4),
           VALUES(0, .25, .5, .75));
    EXPECT(RANGE(FLOAT(s1, 1), FLOAT(s2, -1), FLOAT(s3, -1), AT_NODTYPE), AT_FLOAT64, SIZES(2),
           VALUES(1, 0));
}

static void test_arange_of_every_dtype(at_frame *f)
{
    for (int d = 0; d < COUNT_OF(every_dtype); d++) {
        at_dtype t = every_dtype[d];
        check_note = at_dtype_name(t);
        EXPECT(RANGE(INT(s1, 1), INT(s2, 4), INT(s3, 1), t), t, SIZES(3),
               t == AT_BOOL ? VALUES(1, 1, 1) : VALUES(1, 2, 3));
    }
}

static void test_arange_takes_zero_d_arrays(at_frame *f)
{
    EXPECT(RANGE(zero_d(f, AT_INT32, 1), zero_d(f, AT_INT8, 4), AT_NIL, AT_NODTYPE), AT_INT64,
           SIZES(3), VALUES(1, 2, 3));
    EXPECT(RANGE(zero_d(f, AT_FLOAT32, 1.5), zero_d(f, AT_INT8, 4), AT_NIL, AT_NODTYPE), AT_FLOAT64,
           SIZES(3), VALUES(1.5, 2.5, 3.5));
}

static void test_arange_does_not_look_at_the_dtype_of_like(at_frame *f)
{
    at_array like = VEC(f, AT_FLOAT16, 1, 2);
    EXPECT(at_arange(f, INT(s1, 2), AT_NIL, AT_NIL, AT_NODTYPE, like, NULL), AT_INT64, SIZES(2),
           VALUES(0, 1));
}

static void test_arange_is_exact_far_out(at_frame *f)
{
    at_array x = RANGE(INT(s1, INT64_MAX - 3), INT(s2, INT64_MAX), INT(s3, 2), AT_NODTYPE);
    EXPECT_BYTES(x, int64_t, INT64_MAX - 3, INT64_MAX - 1);
    x = RANGE(INT(s1, INT64_MIN), INT(s2, INT64_MAX), INT(s3, INT64_MAX), AT_NODTYPE);
    EXPECT_BYTES(x, int64_t, INT64_MIN, -1, INT64_MAX - 1);
}

static void test_arange_refuses_a_step_of_zero_and_missing_or_absurd_bounds(at_frame *f)
{
    EXPECT_ERROR(f, RANGE(INT(s1, 1), INT(s2, 4), INT(s3, 0), AT_NODTYPE), AT_EVALUE, "arange",
                 "step", "0");
    EXPECT_ERROR(f, RANGE(INT(s1, 1), INT(s2, 4), FLOAT(s3, 0), AT_NODTYPE), AT_EVALUE, "arange",
                 "step", "0");
    EXPECT_ERROR(f, RANGE(INT(s1, 1), INT(s2, 4), zero_d(f, AT_INT64, 0), AT_NODTYPE), AT_EVALUE,
                 "arange", "0");
    EXPECT_ERROR(f, RANGE(AT_NIL, AT_NIL, AT_NIL, AT_NODTYPE), AT_EARG, "arange", "start",
                 "missing");
    EXPECT_ERROR(f, RANGE(VEC(f, AT_INT64, 1, 2), AT_NIL, AT_NIL, AT_NODTYPE), AT_ESHAPE, "arange",
                 "(2,)");
    s1 = (at_scalar){.kind = AT_WEAK_INT, .range = AT_FITS_UINT64, .i = INT64_MIN, .d = 0x1p63};
    EXPECT_ERROR(f, RANGE(((at_array){&s1, &at_weak}), AT_NIL, AT_NIL, AT_NODTYPE), AT_EOVERFLOW,
                 "arange");
    const uint64_t high[] = {UINT64_MAX};
    at_array wide = at_native_copy(f, AT_UINT64, ZERO_D, high);
    EXPECT_ERROR(f, RANGE(wide, AT_NIL, AT_NIL, AT_NODTYPE), AT_EOVERFLOW, "arange");
    at_array out = RANGE(INT(s1, INT64_MIN), INT(s2, INT64_MAX), AT_NIL, AT_NODTYPE);
    CHECK(at_is_nil(out) && (f->cx->status == AT_EVALUE || f->cx->status == AT_ENOMEM));
    at_clear(f->cx);
    static const double absurd[] = {(double)INFINITY, (double)NAN, 1e300};
    for (int i = 0; i < COUNT_OF(absurd); i++) {
        out = RANGE(FLOAT(s1, absurd[i]), AT_NIL, AT_NIL, AT_NODTYPE);
        CHECK(at_is_nil(out) && (f->cx->status == AT_EVALUE || f->cx->status == AT_ENOMEM));
        at_clear(f->cx);
        out = RANGE(INT(s1, 0), INT(s2, 1), FLOAT(s3, 1 / absurd[i]), AT_NODTYPE);
        CHECK(at_is_nil(out) && (f->cx->status == AT_EVALUE || f->cx->status == AT_ENOMEM));
        at_clear(f->cx);
    }
}

int main(int argc, char **argv)
{
    static const test tests[] = {
        TEST(test_zeros_and_ones_of_every_dtype),
        TEST(test_constructors_without_a_dtype_take_the_default),
        TEST(test_like_gives_its_dtype_unless_one_is_asked_for),
        TEST(test_the_fill_value_is_cast),
        TEST(test_an_integer_fill_value_that_does_not_fit_is_refused),
        TEST(test_the_fill_value_broadcasts),
        TEST(test_like_functions_take_the_shape_of_their_operand),
        TEST(test_sizes_that_are_negative_or_too_large_are_refused),
        TEST(test_a_dtype_of_another_library_is_refused),
        TEST(test_arange_with_one_bound_starts_at_zero),
        TEST(test_arange_counts_up_and_down),
        TEST(test_arange_of_every_dtype),
        TEST(test_arange_takes_zero_d_arrays),
        TEST(test_arange_does_not_look_at_the_dtype_of_like),
        TEST(test_arange_is_exact_far_out),
        TEST(test_arange_refuses_a_step_of_zero_and_missing_or_absurd_bounds),
    };
    return RUN(tests, both_ways, argc, argv);
}
