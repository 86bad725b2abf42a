/* Products of matrices: every dtype, vectors, batches, sizes around the kernel's blocks. */
#include "fixture.h"

static void test_matmul_for_every_dtype(at_frame *f)
{
    for (int d = 0; d < COUNT_OF(every_dtype); d++) {
        at_dtype t = every_dtype[d];
        check_note = at_dtype_name(t);
        at_array x = given(f, t, SIZES(2, 3), VALUES(1, 0, 1, 0, 0, 0));
        at_array y = given(f, t, SIZES(3, 2), VALUES(0, 1, 1, 1, 0, 0));
        EXPECT(at_matmul(f, x, y), t, SIZES(2, 2), VALUES(0, 1, 0, 0));
    }
    at_array x = given(f, AT_FLOAT32, SIZES(2, 2), VALUES(1, 2, 3, 4));
    at_array y = given(f, AT_INT8, SIZES(2, 1), VALUES(5, -6));
    EXPECT(at_matmul(f, x, y), AT_FLOAT32, SIZES(2, 1), VALUES(-7, -9));
}

static void test_integers_wrap_and_truths_do_not(at_frame *f)
{
    at_array x = VEC(f, AT_INT8, 100, 100), y = VEC(f, AT_INT8, 1, 1);
    EXPECT(at_matmul(f, x, y), AT_INT8, ZERO_D, VALUES(-56));
    x = VEC(f, AT_UINT16, 65535, 2);
    EXPECT(at_matmul(f, x, x), AT_UINT16, ZERO_D, VALUES(5));
    x = VEC(f, AT_BOOL, 1, 1);
    EXPECT(at_matmul(f, x, x), AT_BOOL, ZERO_D, VALUES(1));
}

static void test_vectors_leave_no_axis(at_frame *f)
{
    at_array v = VEC(f, AT_FLOAT64, 1, 2),
             m = given(f, AT_FLOAT64, SIZES(2, 2), VALUES(3, 4, 5, 6));
    EXPECT(at_matmul(f, v, v), AT_FLOAT64, ZERO_D, VALUES(5));
    EXPECT(at_matmul(f, v, m), AT_FLOAT64, SIZES(2), VALUES(13, 16));
    EXPECT(at_matmul(f, m, v), AT_FLOAT64, SIZES(2), VALUES(11, 17));
    EXPECT(at_matmul(f, m, at_transpose(f, m, AT_ALL_AXES)), AT_FLOAT64, SIZES(2, 2),
           VALUES(25, 39, 39, 61));
}

static void test_batches_broadcast(at_frame *f)
{
    at_array x = given(f, AT_INT32, SIZES(2, 1, 1, 2), VALUES(1, 2, 3, 4));
    at_array y = given(f, AT_INT32, SIZES(2, 2, 1), VALUES(1, 1, 10, 20));
    EXPECT(at_matmul(f, x, y), AT_INT32, SIZES(2, 2, 1, 1), VALUES(3, 50, 7, 110));
    EXPECT(at_matmul(f, VEC(f, AT_INT32, 1, 2), y), AT_INT32, SIZES(2, 1), VALUES(3, 50));
    EXPECT(at_matmul(f, x, VEC(f, AT_INT32, 1, 2)), AT_INT32, SIZES(2, 1, 1), VALUES(5, 11));
}

static void test_no_terms_give_zeros(at_frame *f)
{
    at_array x = given(f, AT_FLOAT16, SIZES(2, 0), NO_VALUES);
    at_array y = given(f, AT_FLOAT16, SIZES(0, 3), NO_VALUES), v = nothing_of(f, AT_BOOL);
    EXPECT(at_matmul(f, x, y), AT_FLOAT16, SIZES(2, 3), VALUES(0, 0, 0, 0, 0, 0));
    at_array flat = given(f, AT_FLOAT16, SIZES(0, 2), NO_VALUES);
    EXPECT(at_matmul(f, flat, x), AT_FLOAT16, SIZES(0, 0), NO_VALUES);
    EXPECT(at_matmul(f, v, v), AT_BOOL, ZERO_D, VALUES(0));
}

/* Element (i, j) of the product of counted(m, k) and counted(k, n). */
static double counted(int64_t place) { return (double)(place * 7 % 11 - 5); }

static void test_products_of_every_size_around_a_block(at_frame *up)
{
    static const int64_t sizes[] = {1, 63, 64, 65, 130};
    static double a[130 * 130], want[130 * 130];
    for (int64_t i = 0; i < COUNT_OF(a); i++) a[i] = counted(i);
    for (int c = 0; c < 125; c++) {
        int64_t m = sizes[c % 5], k = sizes[c / 5 % 5], n = sizes[c / 25];
        at_frame frame, *f = at_enter(&frame, up);
        for (int64_t i = 0; i < m * n; i++) {
            want[i] = 0;
            for (int64_t t = 0; t < k; t++)
                want[i] += counted(i / n * k + t) * counted(t * n + i % n);
        }
        at_array x = given(f, AT_FLOAT32, SIZES(m, k), a), y = given(f, AT_FLOAT32, SIZES(k, n), a);
        EXPECT(at_matmul(f, x, y), AT_FLOAT32, SIZES(m, n), want);
        at_leave(f, AT_NIL);
    }
}

static void test_long_sums_of_half_types_add_in_float(at_frame *f)
{
    static double ones[5000];
    for (int i = 0; i < COUNT_OF(ones); i++) ones[i] = 1;
    at_array x = given(f, AT_FLOAT16, SIZES(5000), ones);
    EXPECT(at_matmul(f, x, x), AT_FLOAT16, ZERO_D, VALUES(5000));
}

static void test_nan_and_infinity_stay_in_their_row_and_column(at_frame *f)
{
    const double nan = (double)NAN, inf = (double)INFINITY;
    at_array x = given(f, AT_FLOAT32, SIZES(2, 2), VALUES(nan, 1, 1, 1));
    at_array y = given(f, AT_FLOAT32, SIZES(2, 2), VALUES(1, inf, 1, 1));
    EXPECT(at_matmul(f, x, y), AT_FLOAT32, SIZES(2, 2), VALUES(nan, nan, 2, inf));
}

static void test_matmul_refuses_what_does_not_fit(at_frame *f)
{
    at_scalar s;
    at_array m = given(f, AT_INT8, SIZES(1, 2), VALUES(1, 2)), v = VEC(f, AT_INT8, 1, 2, 3);
    EXPECT_ERROR(f, at_matmul(f, m, m), AT_ESHAPE, "matmul", "'y'", "(1, 2)");
    EXPECT_ERROR(f, at_matmul(f, m, v), AT_ESHAPE, "matmul", "'y'", "(3,)", "(1, 2)");
    EXPECT_ERROR(f, at_matmul(f, v, m), AT_ESHAPE, "matmul", "'y'", "(3,)", "(1, 2)");
    EXPECT_ERROR(f, at_matmul(f, at_scalar_int(&s, 2), v), AT_ESHAPE, "matmul", "'x'", "0-d");
    EXPECT_ERROR(f, at_matmul(f, v, zero_d(f, AT_INT8, 1)), AT_ESHAPE, "matmul", "'y'", "0-d");
    at_array two = given(f, AT_INT8, SIZES(2, 1, 1), VALUES(1, 2));
    at_array three = given(f, AT_INT8, SIZES(3, 1, 1), VALUES(1, 2, 3));
    EXPECT_ERROR(f, at_matmul(f, two, three), AT_ESHAPE, "matmul", "(2, 1, 1)", "(3, 1, 1)");
    EXPECT_ERROR(f, at_matmul(f, AT_NIL, v), AT_EARG, "matmul", "'x'", "missing");
}

int main(int argc, char **argv)
{
    static const test tests[] = {
        TEST(test_matmul_for_every_dtype),
        TEST(test_integers_wrap_and_truths_do_not),
        TEST(test_vectors_leave_no_axis),
        TEST(test_batches_broadcast),
        TEST(test_no_terms_give_zeros),
        TEST(test_products_of_every_size_around_a_block),
        TEST(test_long_sums_of_half_types_add_in_float),
        TEST(test_nan_and_infinity_stay_in_their_row_and_column),
        TEST(test_matmul_refuses_what_does_not_fit),
    };
    return RUN(tests, both_ways, argc, argv);
}
