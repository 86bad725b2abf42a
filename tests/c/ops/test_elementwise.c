/* Elementwise operations, selection, and reductions over axes. */
#include <float.h>

#include "fixture.h"

#define INF ((double)INFINITY)
#define NAN_ ((double)NAN)

static at_dtype floating(at_dtype t) { return kind_of(t) == 'f' ? t : AT_FLOAT64; }

/* --- one operand ----------------------------------------------------------------------------- */

typedef at_array unary(at_frame *f, at_array x);
static double rsqrt(double v) { return 1 / sqrt(v); }

static const struct {
    const char *name;
    unary *call;
    double (*oracle)(double);
} unaries[] = {{"exp", at_exp, exp},
               {"log", at_log, log},
               {"sqrt", at_sqrt, sqrt},
               {"rsqrt", at_rsqrt, rsqrt}};

static void test_functions_agree_with_libm_for_every_dtype(at_frame *f)
{
    for (int u = 0; u < COUNT_OF(unaries); u++) {
        for (int d = 0; d < COUNT_OF(every_dtype); d++) {
            at_dtype t = every_dtype[d];
            double x[6] = {0, 1, 2, 3, 4, 5}, want[6];
            for (int i = 0; i < 6; i++) want[i] = unaries[u].oracle(stored(t, x[i]));
            char note[64];
            snprintf(note, sizeof note, "%s of %s", unaries[u].name, at_dtype_name(t));
            check_note = note;
            EXPECT(unaries[u].call(f, given(f, t, SIZES(2, 3), x)), floating(t), SIZES(2, 3), want);
            check_note = "";
        }
    }
}

static void test_functions_agree_with_libm_at_the_edges(at_frame *f)
{
    double x[] = {-0.0, -1, INF, -INF, NAN_, 1e300, 1e-300, 0.25}, want[8];
    for (int u = 0; u < COUNT_OF(unaries); u++) {
        for (int i = 0; i < 8; i++) want[i] = unaries[u].oracle(x[i]);
        check_note = unaries[u].name;
        EXPECT(unaries[u].call(f, given(f, AT_FLOAT64, SIZES(8), x)), AT_FLOAT64, SIZES(8), want);
    }
}

static void test_functions_of_nothing_and_of_one(at_frame *f)
{
    for (int u = 0; u < COUNT_OF(unaries); u++) {
        check_note = unaries[u].name;
        EXPECT(unaries[u].call(f, nothing_of(f, AT_FLOAT16)), AT_FLOAT16, SIZES(0), NO_VALUES);
        EXPECT(unaries[u].call(f, given(f, AT_INT8, SIZES(2, 0), NO_VALUES)), AT_FLOAT64,
               SIZES(2, 0), NO_VALUES);
        double one = unaries[u].oracle(1);
        EXPECT(unaries[u].call(f, zero_d(f, AT_FLOAT32, 1)), AT_FLOAT32, ZERO_D, &one);
        EXPECT_ERROR(f, unaries[u].call(f, AT_NIL), AT_EARG, unaries[u].name, "'x'", "missing");
    }
}

static void test_is_nan_is_inf_and_is_finite(at_frame *f)
{
    for (int d = 0; d < COUNT_OF(every_float); d++) {
        at_array x = VEC(f, every_float[d], 1, NAN_, INF, -INF, -NAN_, 0);
        EXPECT(at_is_nan(f, x), AT_BOOL, SIZES(6), VALUES(0, 1, 0, 0, 1, 0));
        EXPECT(at_is_inf(f, x), AT_BOOL, SIZES(6), VALUES(0, 0, 1, 1, 0, 0));
        EXPECT(at_is_finite(f, x), AT_BOOL, SIZES(6), VALUES(1, 0, 0, 0, 0, 1));
    }
    for (int d = 0; d < COUNT_OF(every_integer); d++) {
        at_array x = VEC(f, every_integer[d], 0, 127);
        EXPECT(at_is_nan(f, x), AT_BOOL, SIZES(2), VALUES(0, 0));
        EXPECT(at_is_inf(f, x), AT_BOOL, SIZES(2), VALUES(0, 0));
        EXPECT(at_is_finite(f, x), AT_BOOL, SIZES(2), VALUES(1, 1));
    }
    EXPECT(at_is_nan(f, VEC(f, AT_BOOL, 0, 1)), AT_BOOL, SIZES(2), VALUES(0, 0));
}

static void test_equal_nan_takes_two_nans_as_equal(at_frame *f)
{
    at_scalar s;
    for (int d = 0; d < COUNT_OF(every_float); d++) {
        at_array x = VEC(f, every_float[d], NAN_, NAN_, 1, INF, -INF, 0);
        at_array y = VEC(f, every_float[d], NAN_, 1, NAN_, INF, INF, 0);
        EXPECT(at_equal_nan(f, x, y), AT_BOOL, SIZES(6), VALUES(1, 0, 0, 1, 0, 1));
        at_array nan = at_scalar_float(&s, NAN_);
        EXPECT(at_equal_nan(f, x, nan), AT_BOOL, SIZES(6), VALUES(1, 1, 0, 0, 0, 0));
        EXPECT(at_equal_nan(f, nan, x), AT_BOOL, SIZES(6), VALUES(1, 1, 0, 0, 0, 0));
        EXPECT(at_equal_nan(f, x, at_scalar_int(&s, 1)), AT_BOOL, SIZES(6),
               VALUES(0, 0, 1, 0, 0, 0));
    }
    at_array column = given(f, AT_INT8, SIZES(2, 1), VALUES(1, 2));
    EXPECT(at_equal_nan(f, column, VEC(f, AT_INT64, 1, 2)), AT_BOOL, SIZES(2, 2),
           VALUES(1, 0, 0, 1));
    EXPECT_ERROR(f, at_equal_nan(f, VEC(f, AT_INT8, 1), at_scalar_int(&s, 300)), AT_EOVERFLOW,
                 "equal_nan", "'y'", "300");
}

static void test_fill_nan_mask_says_where_it_filled(at_frame *f)
{
    at_scalar s;
    at_array x = VEC(f, AT_FLOAT16, 1, NAN_, INF, NAN_);
    at_list both = at_fill_nan_mask(f, x, at_scalar_int(&s, 7));
    CHECK(both.count == 2);
    EXPECT(both.array[0], AT_FLOAT16, SIZES(4), VALUES(1, 7, INF, 7));
    EXPECT(both.array[1], AT_BOOL, SIZES(4), VALUES(0, 1, 0, 1));
    both = at_fill_nan_mask(f, VEC(f, AT_INT16, 3, 4), at_scalar_int(&s, 7));
    EXPECT(both.array[0], AT_INT16, SIZES(2), VALUES(3, 4));
    EXPECT(both.array[1], AT_BOOL, SIZES(2), VALUES(0, 0));
    both = at_fill_nan_mask(f, x, AT_NIL);
    CHECK(both.count == 0 && both.array == NULL);
    EXPECT_ERROR(f, AT_NIL, AT_EARG, "fill_nan_mask", "'value'", "missing");
}

static void test_nan_to_num_gives_finite_numbers_of_the_dtype(at_frame *f)
{
    static const double most[] = {65504, 3.3895313892515355e38, (double)FLT_MAX, DBL_MAX};
    at_scalar s;
    at_array zero = at_scalar_float(&s, 0);
    for (int d = 0; d < COUNT_OF(every_float); d++) {
        at_array x = VEC(f, every_float[d], 1, NAN_, INF, -INF, -2);
        EXPECT(at_nan_to_num(f, x, zero, AT_NIL, AT_NIL), every_float[d], SIZES(5),
               VALUES(1, 0, most[d], -most[d], -2));
    }
}

static void test_nan_to_num_takes_values_of_any_kind(at_frame *f)
{
    at_scalar s, t;
    at_array x = VEC(f, AT_FLOAT32, NAN_, INF, -INF, NAN_);
    EXPECT(at_nan_to_num(f, x, at_scalar_float(&s, INF), at_scalar_int(&t, 5),
                         zero_d(f, AT_FLOAT64, -0.5)),
           AT_FLOAT32, SIZES(4), VALUES(INF, 5, -0.5, INF));
    EXPECT(at_nan_to_num(f, x, VEC(f, AT_INT64, 1, 2, 3, 4), AT_NIL, at_scalar_bool(&s, true)),
           AT_FLOAT32, SIZES(4), VALUES(1, (double)FLT_MAX, 1, 4));
    EXPECT_ERROR(f, at_nan_to_num(f, x, AT_NIL, AT_NIL, AT_NIL), AT_EARG, "nan_to_num", "'nan'");
}

static void test_nan_to_num_leaves_what_is_no_float(at_frame *f)
{
    at_scalar s;
    at_array x = VEC(f, AT_INT8, 1, -2), value = at_scalar_float(&s, 0.5);
    EXPECT(at_nan_to_num(f, x, value, AT_NIL, AT_NIL), AT_INT8, SIZES(2), VALUES(1, -2));
    x = VEC(f, AT_BOOL, 1, 0);
    EXPECT(at_nan_to_num(f, x, value, AT_NIL, AT_NIL), AT_BOOL, SIZES(2), VALUES(1, 0));
}

static void test_stop_gradient_is_the_same_values(at_frame *f)
{
    at_array x = VEC(f, AT_BFLOAT16, 1, NAN_, -2);
    EXPECT(at_stop_gradient(f, x), AT_BFLOAT16, SIZES(3), VALUES(1, NAN_, -2));
}

/* --- two operands ---------------------------------------------------------------------------- */

static void test_arithmetic_for_every_dtype(at_frame *f)
{
    for (int d = 0; d < COUNT_OF(every_dtype); d++) {
        at_dtype t = every_dtype[d];
        if (t == AT_BOOL) continue;
        check_note = at_dtype_name(t);
        at_array x = VEC(f, t, 7, 8, 9), y = VEC(f, t, 2, 4, 3);
        EXPECT(at_add(f, x, y), t, SIZES(3), VALUES(9, 12, 12));
        EXPECT(at_sub(f, x, y), t, SIZES(3), VALUES(5, 4, 6));
        EXPECT(at_mul(f, x, y), t, SIZES(3), VALUES(14, 32, 27));
        EXPECT(at_div(f, x, y), floating(t), SIZES(3), VALUES(3.5, 2, 3));
        EXPECT(at_equal(f, x, VEC(f, t, 7, 1, 9)), AT_BOOL, SIZES(3), VALUES(1, 0, 1));
        EXPECT(at_maximum(f, x, VEC(f, t, 8, 8, 1)), t, SIZES(3), VALUES(8, 8, 9));
        EXPECT(at_minimum(f, x, VEC(f, t, 8, 8, 1)), t, SIZES(3), VALUES(7, 8, 1));
    }
}

static void test_bool_arithmetic_is_logic(at_frame *f)
{
    at_array x = VEC(f, AT_BOOL, 0, 0, 1, 1), y = VEC(f, AT_BOOL, 0, 1, 0, 1);
    EXPECT(at_add(f, x, y), AT_BOOL, SIZES(4), VALUES(0, 1, 1, 1));
    EXPECT(at_mul(f, x, y), AT_BOOL, SIZES(4), VALUES(0, 0, 0, 1));
    EXPECT(at_maximum(f, x, y), AT_BOOL, SIZES(4), VALUES(0, 1, 1, 1));
    EXPECT(at_minimum(f, x, y), AT_BOOL, SIZES(4), VALUES(0, 0, 0, 1));
    EXPECT(at_equal(f, x, y), AT_BOOL, SIZES(4), VALUES(1, 0, 0, 1));
    EXPECT_ERROR(f, at_sub(f, x, y), AT_EDTYPE, "sub", "bool");
}

static void test_integer_arithmetic_wraps(at_frame *f)
{
    at_array a = VEC(f, AT_INT8, 127, -128, 100), b = VEC(f, AT_INT8, 1, 1, 3);
    EXPECT(at_add(f, a, b), AT_INT8, SIZES(3), VALUES(-128, -127, 103));
    EXPECT(at_sub(f, a, b), AT_INT8, SIZES(3), VALUES(126, 127, 97));
    EXPECT(at_mul(f, a, b), AT_INT8, SIZES(3), VALUES(127, -128, 44));
    at_array u = VEC(f, AT_UINT8, 255, 0);
    EXPECT(at_add(f, u, VEC(f, AT_UINT8, 1, 1)), AT_UINT8, SIZES(2), VALUES(0, 1));
    EXPECT(at_sub(f, u, VEC(f, AT_UINT8, 1, 1)), AT_UINT8, SIZES(2), VALUES(254, 255));
    const int64_t most[] = {INT64_MAX, INT64_MIN};
    at_array w = at_native_copy(f, AT_INT64, SIZES(2), most);
    EXPECT_BYTES(at_add(f, w, w), int64_t, -2, 0);
    EXPECT_BYTES(at_mul(f, w, w), int64_t, 1, 0);
    EXPECT_BYTES(at_mul(f, VEC(f, AT_UINT16, 65535), VEC(f, AT_UINT16, 65535)), uint16_t, 1);
    EXPECT_BYTES(at_mul(f, VEC(f, AT_INT32, -2147483648.), VEC(f, AT_INT32, -1)), int32_t,
                 INT32_MIN);
}

static void test_division_by_zero_gives_infinity_and_nan(at_frame *f)
{
    at_array x = VEC(f, AT_INT32, 1, -1, 0), zero = VEC(f, AT_INT32, 0);
    EXPECT(at_div(f, x, zero), AT_FLOAT64, SIZES(3), VALUES(INF, -INF, NAN_));
}

static void test_nan_equals_nothing(at_frame *f)
{
    at_array x = VEC(f, AT_FLOAT16, NAN_, 0, INF);
    EXPECT(at_equal(f, x, x), AT_BOOL, SIZES(3), VALUES(0, 1, 1));
    EXPECT(at_equal(f, x, VEC(f, AT_FLOAT16, -0.0)), AT_BOOL, SIZES(3), VALUES(0, 1, 0));
}

static void test_nan_on_either_side_is_the_maximum_and_the_minimum(at_frame *f)
{
    for (int d = 0; d < COUNT_OF(every_float); d++) {
        at_array x = VEC(f, every_float[d], NAN_, 1, NAN_, 2),
                 y = VEC(f, every_float[d], 1, NAN_, INF, -INF);
        EXPECT(at_maximum(f, x, y), every_float[d], SIZES(4), VALUES(NAN_, NAN_, NAN_, 2));
        EXPECT(at_minimum(f, x, y), every_float[d], SIZES(4), VALUES(NAN_, NAN_, NAN_, -INF));
    }
}

static void test_wide_integers_keep_all_their_bits(at_frame *f)
{
    const uint64_t a[] = {UINT64_MAX, 1}, b[] = {UINT64_MAX - 1, UINT64_C(1) << 63};
    at_array x = at_native_copy(f, AT_UINT64, SIZES(2), a),
             y = at_native_copy(f, AT_UINT64, SIZES(2), b);
    EXPECT_BYTES(at_maximum(f, x, y), uint64_t, UINT64_MAX, UINT64_C(1) << 63);
    EXPECT_BYTES(at_minimum(f, x, y), uint64_t, UINT64_MAX - 1, 1);
    EXPECT(at_equal(f, x, y), AT_BOOL, SIZES(2), VALUES(0, 0));
}

static void test_shapes_broadcast(at_frame *f)
{
    at_array row = VEC(f, AT_INT32, 1, 2, 3),
             column = given(f, AT_INT32, SIZES(2, 1), VALUES(10, 20));
    EXPECT(at_add(f, row, column), AT_INT32, SIZES(2, 3), VALUES(11, 12, 13, 21, 22, 23));
    EXPECT(at_sub(f, column, row), AT_INT32, SIZES(2, 3), VALUES(9, 8, 7, 19, 18, 17));
    EXPECT(at_mul(f, zero_d(f, AT_INT32, 2), column), AT_INT32, SIZES(2, 1), VALUES(20, 40));
    at_array cube = given(f, AT_INT32, SIZES(2, 1, 3), VALUES(1, 2, 3, 4, 5, 6));
    EXPECT(at_add(f, cube, column), AT_INT32, SIZES(2, 2, 3),
           VALUES(11, 12, 13, 21, 22, 23, 14, 15, 16, 24, 25, 26));
    at_array none = given(f, AT_INT32, SIZES(0, 1), NO_VALUES);
    EXPECT(at_add(f, none, row), AT_INT32, SIZES(0, 3), NO_VALUES);
    EXPECT(at_maximum(f, nothing_of(f, AT_INT8), zero_d(f, AT_INT8, 1)), AT_INT8, SIZES(0),
           NO_VALUES);
}

static void test_shapes_that_do_not_broadcast_are_refused(at_frame *f)
{
    static const struct {
        const char *name;
        at_array (*call)(at_frame *f, at_array x, at_array y);
    } binaries[] = {{"add", at_add},    {"sub", at_sub},         {"mul", at_mul},
                    {"div", at_div},    {"maximum", at_maximum}, {"minimum", at_minimum},
                    {"equal", at_equal}};
    at_array x = given(f, AT_FLOAT32, SIZES(2, 3), VALUES(1, 2, 3, 4, 5, 6)),
             y = VEC(f, AT_FLOAT32, 1, 2);
    at_array none = nothing_of(f, AT_FLOAT32);
    for (int i = 0; i < COUNT_OF(binaries); i++) {
        check_note = binaries[i].name;
        EXPECT_ERROR(f, binaries[i].call(f, x, y), AT_ESHAPE, binaries[i].name, "(2, 3)", "(2,)");
        EXPECT_ERROR(f, binaries[i].call(f, none, x), AT_ESHAPE, binaries[i].name, "(0,)",
                     "(2, 3)");
        EXPECT_ERROR(f, binaries[i].call(f, x, AT_NIL), AT_EARG, binaries[i].name, "'y'",
                     "missing");
    }
}

/* Kernels work in blocks of 256 elements. */
static void test_arrays_longer_than_a_block(at_frame *f)
{
    enum { ROWS = 3, COLUMNS = 700, COUNT = ROWS * COLUMNS };
    static double x[COUNT], y[COUNT], sum[COUNT], pick[COUNT], run[COUNT], total[COLUMNS],
        odd[COUNT];
    double all = 0;
    memset(total, 0, sizeof total);
    for (int i = 0; i < COUNT; i++) {
        x[i] = i % 5;
        y[i] = i % 7;
        odd[i] = i % 2;
        sum[i] = x[i] + y[i];
        pick[i] = odd[i] != 0 ? x[i] : y[i];
        all += x[i];
        total[i % COLUMNS] += x[i];
        run[i] = total[i % COLUMNS];
    }
    for (int d = 0; d < COUNT_OF(every_dtype); d++) {
        at_dtype t = every_dtype[d], wide = kind_of(t) == 'f' || t == AT_UINT64 ? t : AT_INT64;
        if (t == AT_BOOL) continue;
        at_array a = given(f, t, SIZES(ROWS, COLUMNS), x), b = given(f, t, SIZES(ROWS, COLUMNS), y);
        check_note = at_dtype_name(t);
        EXPECT(at_add(f, a, b), t, SIZES(ROWS, COLUMNS), sum);
        EXPECT(at_where(f, given(f, AT_BOOL, SIZES(ROWS, COLUMNS), odd), a, b), t,
               SIZES(ROWS, COLUMNS), pick);
        EXPECT(at_sum(f, a, AT_ALL_AXES, false), wide, ZERO_D, &all);
        EXPECT(at_sum(f, a, (at_axes){.count = 1, .axis = {0}}, false), wide, SIZES(COLUMNS),
               total);
        EXPECT(at_cumsum(f, a, 0), wide, SIZES(ROWS, COLUMNS), run);
        EXPECT(at_max(f, a, AT_ALL_AXES, false), t, ZERO_D, VALUES(4));
    }
}

/* --- selection ------------------------------------------------------------------------------- */

static void test_where_selects_for_every_dtype(at_frame *f)
{
    at_array yes = VEC(f, AT_BOOL, 1, 0, 1);
    for (int d = 0; d < COUNT_OF(every_dtype); d++) {
        at_dtype t = every_dtype[d];
        EXPECT(at_where(f, yes, VEC(f, t, 1, 1, 0), VEC(f, t, 0, 0, 1)), t, SIZES(3),
               VALUES(1, 0, 0));
    }
}

static void test_a_condition_that_is_not_bool_is_true_where_it_is_not_zero(at_frame *f)
{
    at_array x = VEC(f, AT_INT8, 1, 2, 3), y = VEC(f, AT_INT8, -1, -2, -3);
    for (int d = 0; d < COUNT_OF(every_dtype); d++) {
        EXPECT(at_where(f, VEC(f, every_dtype[d], 0, 2, 1), x, y), AT_INT8, SIZES(3),
               VALUES(-1, 2, 3));
    }
    EXPECT(at_where(f, VEC(f, AT_FLOAT32, 0.25, NAN_, -0.0), x, y), AT_INT8, SIZES(3),
           VALUES(1, 2, -3));
    EXPECT(at_where(f, VEC(f, AT_INT32, 256, 65536, 0), x, y), AT_INT8, SIZES(3), VALUES(1, 2, -3));
}

static void test_where_broadcasts_all_three(at_frame *f)
{
    at_scalar s;
    at_array c = given(f, AT_BOOL, SIZES(2, 1), VALUES(1, 0)), x = VEC(f, AT_FLOAT32, 1, 2, 3);
    EXPECT(at_where(f, c, x, at_scalar_int(&s, 0)), AT_FLOAT32, SIZES(2, 3),
           VALUES(1, 2, 3, 0, 0, 0));
    EXPECT(at_where(f, at_scalar_bool(&s, true), x, zero_d(f, AT_INT8, 9)), AT_FLOAT32, SIZES(3),
           VALUES(1, 2, 3));
    EXPECT_ERROR(f, at_where(f, VEC(f, AT_BOOL, 1, 0), x, x), AT_ESHAPE, "where", "(2,)", "(3,)");
    EXPECT_ERROR(f, at_where(f, AT_NIL, x, x), AT_EARG, "where", "'condition'", "missing");
    EXPECT_ERROR(f, at_where(f, c, x, AT_NIL), AT_EARG, "where", "'y'", "missing");
}

static void test_where_keeps_the_unselected_nan_out(at_frame *f)
{
    at_array c = VEC(f, AT_BOOL, 1, 0), x = VEC(f, AT_FLOAT64, 1, NAN_),
             y = VEC(f, AT_FLOAT64, NAN_, 2);
    EXPECT(at_where(f, c, x, y), AT_FLOAT64, SIZES(2), VALUES(1, 2));
}

static void test_fill_nan_replaces_nan_alone(at_frame *f)
{
    at_scalar s;
    for (int d = 0; d < COUNT_OF(every_float); d++) {
        at_array x = VEC(f, every_float[d], NAN_, INF, -INF, 2);
        EXPECT(at_fill_nan(f, x, at_scalar_float(&s, 0.5)), every_float[d], SIZES(4),
               VALUES(.5, INF, -INF, 2));
    }
    EXPECT(at_fill_nan(f, VEC(f, AT_INT16, 1, 2), at_scalar_int(&s, 0)), AT_INT16, SIZES(2),
           VALUES(1, 2));
    at_array table = given(f, AT_FLOAT32, SIZES(2, 2), VALUES(NAN_, 1, 2, NAN_));
    EXPECT(at_fill_nan(f, table, VEC(f, AT_FLOAT32, 7, 8)), AT_FLOAT32, SIZES(2, 2),
           VALUES(7, 1, 2, 8));
    EXPECT_ERROR(f, at_fill_nan(f, table, VEC(f, AT_FLOAT32, 1, 2, 3)), AT_ESHAPE, "fill_nan");
    EXPECT_ERROR(f, at_fill_nan(f, table, AT_NIL), AT_EARG, "fill_nan", "'value'");
}

static void test_clip_bounds_from_below_then_from_above(at_frame *f)
{
    at_scalar a, b;
    for (int d = 0; d < COUNT_OF(every_dtype); d++) {
        at_dtype t = every_dtype[d];
        if (t == AT_BOOL) continue;
        at_array x = VEC(f, t, 0, 3, 9);
        check_note = at_dtype_name(t);
        EXPECT(at_clip(f, x, at_scalar_int(&a, 1), at_scalar_int(&b, 5)), t, SIZES(3),
               VALUES(1, 3, 5));
        EXPECT(at_clip(f, x, at_scalar_int(&a, 1), AT_NIL), t, SIZES(3), VALUES(1, 3, 9));
        EXPECT(at_clip(f, x, AT_NIL, at_scalar_int(&b, 5)), t, SIZES(3), VALUES(0, 3, 5));
        EXPECT(at_clip(f, x, AT_NIL, AT_NIL), t, SIZES(3), VALUES(0, 3, 9));
        EXPECT(at_clip(f, x, at_scalar_float(&a, 0.5), AT_NIL), floating(t), SIZES(3),
               VALUES(0.5, 3, 9));
        EXPECT(at_clip(f, x, at_scalar_int(&a, 5), at_scalar_int(&b, 1)), t, SIZES(3),
               VALUES(1, 1, 1));
    }
}

static void test_clip_keeps_nan_and_takes_array_bounds(at_frame *f)
{
    at_scalar a;
    at_array x = VEC(f, AT_FLOAT32, NAN_, -INF, INF);
    EXPECT(at_clip(f, x, VEC(f, AT_FLOAT32, 0, 1, 2), at_scalar_int(&a, 5)), AT_FLOAT32, SIZES(3),
           VALUES(NAN_, 1, 5));
    EXPECT_ERROR(f, at_clip(f, AT_NIL, at_scalar_int(&a, 5), AT_NIL), AT_EARG, "clip", "'x'");
    EXPECT_ERROR(f, at_clip(f, x, VEC(f, AT_FLOAT32, 1, 2), AT_NIL), AT_ESHAPE, "clip", "(3,)",
                 "(2,)");
}

/* --- reductions ------------------------------------------------------------------------------ */

#define AXES(...)                                                                                  \
    ((at_axes){.count = (int)(sizeof((int[]){__VA_ARGS__}) / sizeof(int)), .axis = {__VA_ARGS__}})

typedef at_array reduction(at_frame *f, at_array x, at_axes axes, bool keepdims);

static const struct {
    const char *name;
    reduction *call;
} reductions[] = {
    {"sum", at_sum}, {"prod", at_prod}, {"mean", at_mean}, {"min", at_min}, {"max", at_max}};

static void test_reductions_for_every_dtype(at_frame *f)
{
    for (int d = 0; d < COUNT_OF(every_dtype); d++) {
        at_dtype t = every_dtype[d];
        bool b = t == AT_BOOL;
        at_dtype wide = kind_of(t) == 'f' || t == AT_UINT64 ? t : AT_INT64;
        at_array x = given(f, t, SIZES(2, 3), VALUES(1, 2, 3, 4, 0, 6));
        check_note = at_dtype_name(t);
        EXPECT(at_sum(f, x, AXES(0), false), wide, SIZES(3), b ? VALUES(2, 1, 2) : VALUES(5, 2, 9));
        EXPECT(at_sum(f, x, AXES(1), true), wide, SIZES(2, 1), b ? VALUES(3, 2) : VALUES(6, 10));
        EXPECT(at_prod(f, x, AXES(0), false), wide, SIZES(3),
               b ? VALUES(1, 0, 1) : VALUES(4, 0, 18));
        EXPECT(at_mean(f, x, AXES(-1), false), floating(t), SIZES(2),
               b ? VALUES(1, 2. / 3) : VALUES(2, 10. / 3));
        EXPECT(at_min(f, x, AXES(1), false), t, SIZES(2), VALUES(1, 0));
        EXPECT(at_max(f, x, AXES(-2), false), t, SIZES(3), b ? VALUES(1, 1, 1) : VALUES(4, 2, 6));
        EXPECT(at_sum(f, x, AT_ALL_AXES, false), wide, ZERO_D, b ? VALUES(5) : VALUES(16));
        EXPECT(at_max(f, x, AT_ALL_AXES, true), t, SIZES(1, 1), b ? VALUES(1) : VALUES(6));
    }
}

static void test_reductions_over_several_axes_and_over_none(at_frame *f)
{
    at_array x = given(f, AT_INT64, SIZES(2, 2, 2), VALUES(1, 2, 3, 4, 5, 6, 7, 8));
    EXPECT(at_sum(f, x, AXES(0, 2), false), AT_INT64, SIZES(2), VALUES(14, 22));
    EXPECT(at_sum(f, x, AXES(-1, 0), true), AT_INT64, SIZES(1, 2, 1), VALUES(14, 22));
    EXPECT(at_max(f, x, AXES(1, 2), false), AT_INT64, SIZES(2), VALUES(4, 8));
    EXPECT(at_sum(f, x, (at_axes){.count = 0}, false), AT_INT64, SIZES(2, 2, 2),
           VALUES(1, 2, 3, 4, 5, 6, 7, 8));
    at_array one = zero_d(f, AT_INT8, 5);
    for (int i = 0; i < COUNT_OF(reductions); i++) {
        double *y = values_of(reductions[i].call(f, one, AT_ALL_AXES, false));
        CHECK(y && y[0] == 5);
        free(y);
    }
}

static void test_reductions_of_nothing(at_frame *f)
{
    at_array x = given(f, AT_FLOAT32, SIZES(0, 2), NO_VALUES);
    EXPECT(at_sum(f, x, AXES(0), false), AT_FLOAT32, SIZES(2), VALUES(0, 0));
    EXPECT(at_prod(f, x, AXES(0), false), AT_FLOAT32, SIZES(2), VALUES(1, 1));
    EXPECT(at_mean(f, x, AXES(0), false), AT_FLOAT32, SIZES(2), VALUES(NAN_, NAN_));
    EXPECT(at_max(f, x, AXES(1), false), AT_FLOAT32, SIZES(0), NO_VALUES);
    EXPECT_ERROR(f, at_min(f, x, AXES(0), false), AT_EVALUE, "min");
    EXPECT_ERROR(f, at_max(f, x, AT_ALL_AXES, false), AT_EVALUE, "max");
}

static void test_nan_is_the_smallest_and_the_largest(at_frame *f)
{
    for (int d = 0; d < COUNT_OF(every_float); d++) {
        for (int place = 0; place < 3; place++) {
            double x[3] = {1, 2, 3};
            x[place] = NAN_;
            at_array a = given(f, every_float[d], SIZES(3), x);
            for (int i = 0; i < COUNT_OF(reductions); i++) {
                EXPECT(reductions[i].call(f, a, AT_ALL_AXES, false), every_float[d], ZERO_D,
                       VALUES(NAN_));
            }
        }
    }
}

static void test_half_sums_are_added_in_float32(at_frame *f)
{
    static double ones[5000];
    for (int i = 0; i < 5000; i++) ones[i] = 1;
    at_array h = given(f, AT_FLOAT16, SIZES(5000), ones),
             b = given(f, AT_BFLOAT16, SIZES(5000), ones);
    EXPECT(at_sum(f, h, AT_ALL_AXES, false), AT_FLOAT16, ZERO_D, VALUES(5000));
    EXPECT(at_mean(f, h, AT_ALL_AXES, false), AT_FLOAT16, ZERO_D, VALUES(1));
    EXPECT(at_sum(f, b, AT_ALL_AXES, false), AT_BFLOAT16, ZERO_D, VALUES(4992));
    EXPECT(at_mean(f, b, AT_ALL_AXES, false), AT_BFLOAT16, ZERO_D, VALUES(1));
}

static void test_axes_out_of_range_or_twice_are_refused(at_frame *f)
{
    at_array x = given(f, AT_FLOAT32, SIZES(2, 1), VALUES(1, 2));
    for (int i = 0; i < COUNT_OF(reductions); i++) {
        check_note = reductions[i].name;
        EXPECT_ERROR(f, reductions[i].call(f, x, AXES(2), false), AT_EVALUE, reductions[i].name,
                     "2");
        EXPECT_ERROR(f, reductions[i].call(f, x, AXES(-3), false), AT_EVALUE, reductions[i].name,
                     "-3");
        EXPECT_ERROR(f, reductions[i].call(f, x, AXES(0, 0), false), AT_EVALUE, reductions[i].name);
        EXPECT_ERROR(f, reductions[i].call(f, x, AXES(1, -1), false), AT_EVALUE,
                     reductions[i].name);
        EXPECT_ERROR(f, reductions[i].call(f, zero_d(f, AT_INT8, 1), AXES(0), false), AT_EVALUE,
                     reductions[i].name);
        EXPECT_ERROR(f, reductions[i].call(f, AT_NIL, AXES(0), false), AT_EARG, reductions[i].name,
                     "'x'");
    }
}

static void test_cumsum_along_each_axis(at_frame *f)
{
    at_array x = given(f, AT_INT8, SIZES(2, 3), VALUES(100, 100, 3, 100, 5, 6));
    EXPECT(at_cumsum(f, x, 0), AT_INT64, SIZES(2, 3), VALUES(100, 100, 3, 200, 105, 9));
    EXPECT(at_cumsum(f, x, 1), AT_INT64, SIZES(2, 3), VALUES(100, 200, 203, 100, 105, 111));
    EXPECT(at_cumsum(f, x, -1), AT_INT64, SIZES(2, 3), VALUES(100, 200, 203, 100, 105, 111));
    EXPECT(at_cumsum(f, VEC(f, AT_FLOAT16, 1, NAN_, 2), 0), AT_FLOAT16, SIZES(3),
           VALUES(1, NAN_, NAN_));
    EXPECT(at_cumsum(f, VEC(f, AT_BOOL, 1, 0, 1), AT_NO_AXIS), AT_INT64, SIZES(3), VALUES(1, 1, 2));
    EXPECT(at_cumsum(f, nothing_of(f, AT_FLOAT32), 0), AT_FLOAT32, SIZES(0), NO_VALUES);
}

static void test_cumsum_needs_an_axis_unless_there_is_one(at_frame *f)
{
    at_array x = given(f, AT_INT8, SIZES(1, 2), VALUES(1, 2));
    EXPECT_ERROR(f, at_cumsum(f, x, AT_NO_AXIS), AT_EVALUE, "cumsum", "axis");
    EXPECT_ERROR(f, at_cumsum(f, zero_d(f, AT_INT8, 1), 0), AT_EVALUE, "cumsum");
    EXPECT_ERROR(f, at_cumsum(f, zero_d(f, AT_INT8, 1), AT_NO_AXIS), AT_EVALUE, "cumsum");
    EXPECT_ERROR(f, at_cumsum(f, x, 2), AT_EVALUE, "cumsum", "2");
    EXPECT_ERROR(f, at_cumsum(f, x, -3), AT_EVALUE, "cumsum", "-3");
}

int main(int argc, char **argv)
{
    static const test tests[] = {
        TEST(test_functions_agree_with_libm_for_every_dtype),
        TEST(test_functions_agree_with_libm_at_the_edges),
        TEST(test_functions_of_nothing_and_of_one),
        TEST(test_is_nan_is_inf_and_is_finite),
        TEST(test_equal_nan_takes_two_nans_as_equal),
        TEST(test_fill_nan_mask_says_where_it_filled),
        TEST(test_nan_to_num_gives_finite_numbers_of_the_dtype),
        TEST(test_nan_to_num_takes_values_of_any_kind),
        TEST(test_nan_to_num_leaves_what_is_no_float),
        TEST(test_stop_gradient_is_the_same_values),
        TEST(test_arithmetic_for_every_dtype),
        TEST(test_bool_arithmetic_is_logic),
        TEST(test_integer_arithmetic_wraps),
        TEST(test_division_by_zero_gives_infinity_and_nan),
        TEST(test_nan_equals_nothing),
        TEST(test_nan_on_either_side_is_the_maximum_and_the_minimum),
        TEST(test_wide_integers_keep_all_their_bits),
        TEST(test_shapes_broadcast),
        TEST(test_shapes_that_do_not_broadcast_are_refused),
        TEST(test_arrays_longer_than_a_block),
        TEST(test_where_selects_for_every_dtype),
        TEST(test_a_condition_that_is_not_bool_is_true_where_it_is_not_zero),
        TEST(test_where_broadcasts_all_three),
        TEST(test_where_keeps_the_unselected_nan_out),
        TEST(test_fill_nan_replaces_nan_alone),
        TEST(test_clip_bounds_from_below_then_from_above),
        TEST(test_clip_keeps_nan_and_takes_array_bounds),
        TEST(test_reductions_for_every_dtype),
        TEST(test_reductions_over_several_axes_and_over_none),
        TEST(test_reductions_of_nothing),
        TEST(test_nan_is_the_smallest_and_the_largest),
        TEST(test_half_sums_are_added_in_float32),
        TEST(test_axes_out_of_range_or_twice_are_refused),
        TEST(test_cumsum_along_each_axis),
        TEST(test_cumsum_needs_an_axis_unless_there_is_one),
    };
    return RUN(tests, both_ways, argc, argv);
}
