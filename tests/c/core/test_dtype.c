/* Element types: names, and the promotion rule, asked through the operations that follow it. */
#include "fixture.h"

/* Dtype of x + y. */
static at_dtype sum_of(at_frame *f, at_array x, at_array y)
{
    at_dtype dtype = AT_NODTYPE;
    at_array sum = at_add(f, x, y);
    at_dtype_of(f, sum, &dtype);
    at_drop(f, sum);
    return dtype;
}

static void test_every_dtype_has_a_name_a_size_and_the_way_back(at_frame *f)
{
    (void)f;
#define X(name, NAME, size, kind)                                                                  \
    CHECK(strcmp(at_dtype_name(AT_##NAME), #name) == 0 && at_dtype_size(AT_##NAME) == (size));     \
    CHECK(at_dtype_named(#name) == AT_##NAME);
    AT_DTYPES(X)
#undef X
    CHECK(at_dtype_named("complex64") == AT_NODTYPE && at_dtype_named("") == AT_NODTYPE);
    CHECK(at_dtype_named("int") == AT_NODTYPE && at_dtype_named("float32 ") == AT_NODTYPE);
    CHECK(at_dtype_name(AT_OTHER) != NULL && at_dtype_name(AT_NODTYPE) != NULL);
}

/* The common dtype of two arrays, written out: rows and columns in the order of every_dtype. */
enum {
    B = AT_BOOL,
    I1 = AT_INT8,
    I2 = AT_INT16,
    I4 = AT_INT32,
    I8 = AT_INT64,
    U1 = AT_UINT8,
    U2 = AT_UINT16,
    U4 = AT_UINT32,
    U8 = AT_UINT64,
    H = AT_FLOAT16,
    BF = AT_BFLOAT16,
    F4 = AT_FLOAT32,
    F8 = AT_FLOAT64
};

/* clang-format off */
static const unsigned char common[13][13] = {
    /*        b   i1  i2  i4  i8  u1  u2  u4  u8  f16 bf  f4  f8 */
    /* b   */ {B,  I1, I2, I4, I8, U1, U2, U4, U8, H,  BF, F4, F8},
    /* i1  */ {I1, I1, I2, I4, I8, I2, I4, I8, F8, H,  BF, F4, F8},
    /* i2  */ {I2, I2, I2, I4, I8, I2, I4, I8, F8, H,  BF, F4, F8},
    /* i4  */ {I4, I4, I4, I4, I8, I4, I4, I8, F8, H,  BF, F4, F8},
    /* i8  */ {I8, I8, I8, I8, I8, I8, I8, I8, F8, H,  BF, F4, F8},
    /* u1  */ {U1, I2, I2, I4, I8, U1, U2, U4, U8, H,  BF, F4, F8},
    /* u2  */ {U2, I4, I4, I4, I8, U2, U2, U4, U8, H,  BF, F4, F8},
    /* u4  */ {U4, I8, I8, I8, I8, U4, U4, U4, U8, H,  BF, F4, F8},
    /* u8  */ {U8, F8, F8, F8, F8, U8, U8, U8, U8, H,  BF, F4, F8},
    /* f16 */ {H,  H,  H,  H,  H,  H,  H,  H,  H,  H,  F4, F4, F8},
    /* bf  */ {BF, BF, BF, BF, BF, BF, BF, BF, BF, F4, BF, F4, F8},
    /* f4  */ {F4, F4, F4, F4, F4, F4, F4, F4, F4, F4, F4, F4, F8},
    /* f8  */ {F8, F8, F8, F8, F8, F8, F8, F8, F8, F8, F8, F8, F8},
};
/* clang-format on */

static void test_arrays_of_two_dtypes_meet_in_the_common_one(at_frame *f)
{
    for (int i = 0; i < 13; i++) {
        for (int j = 0; j < 13; j++) {
            at_array x = VEC(f, every_dtype[i], 1, 0), y = VEC(f, every_dtype[j], 0, 1);
            at_array max = at_maximum(f, x, y);
            char note[64];
            snprintf(note, sizeof note, "%s beside %s", at_dtype_name(every_dtype[i]),
                     at_dtype_name(every_dtype[j]));
            check_note = note;
            EXPECT(max, (at_dtype)common[i][j], SIZES(2), VALUES(1, 1));
            check_note = "";
        }
    }
}

static void test_a_zero_d_array_carries_its_dtype(at_frame *f)
{
    CHECK(sum_of(f, VEC(f, AT_FLOAT32, 1), zero_d(f, AT_FLOAT64, 2)) == AT_FLOAT64);
    CHECK(sum_of(f, VEC(f, AT_INT8, 1), zero_d(f, AT_INT32, 2)) == AT_INT32);
}

static void test_a_float_scalar_is_weak(at_frame *f)
{
    at_scalar two;
    at_array s = at_scalar_float(&two, 2.5);
    for (int i = 0; i < COUNT_OF(every_dtype); i++) {
        at_dtype dtype = every_dtype[i];
        at_dtype want = kind_of(dtype) == 'f' ? dtype : AT_FLOAT64;
        EXPECT(at_add(f, VEC(f, dtype, 1, 0), s), want, SIZES(2), VALUES(3.5, 2.5));
        EXPECT(at_sub(f, s, VEC(f, dtype, 1, 0)), want, SIZES(2), VALUES(1.5, 2.5));
    }
}

static void test_an_integer_scalar_is_weak(at_frame *f)
{
    at_scalar two;
    at_array s = at_scalar_int(&two, 2);
    for (int i = 0; i < COUNT_OF(every_dtype); i++) {
        at_dtype dtype = every_dtype[i], want = dtype == AT_BOOL ? AT_INT64 : dtype;
        EXPECT(at_add(f, VEC(f, dtype, 1, 0), s), want, SIZES(2), VALUES(3, 2));
    }
}

static void test_a_bool_scalar_is_weak(at_frame *f)
{
    at_scalar yes;
    at_array s = at_scalar_bool(&yes, true);
    for (int i = 0; i < COUNT_OF(every_dtype); i++) {
        at_dtype dtype = every_dtype[i];
        EXPECT(at_maximum(f, VEC(f, dtype, 1, 0), s), dtype, SIZES(2), VALUES(1, 1));
    }
}

static void test_scalars_alone_take_the_default_dtypes(at_frame *f)
{
    at_scalar a, b;
    EXPECT(at_add(f, at_scalar_int(&a, 1), at_scalar_int(&b, 2)), AT_INT64, ZERO_D, VALUES(3));
    EXPECT(at_add(f, at_scalar_int(&a, 1), at_scalar_float(&b, 2)), AT_FLOAT64, ZERO_D, VALUES(3));
    EXPECT(at_maximum(f, at_scalar_bool(&a, 0), at_scalar_bool(&b, 1)), AT_BOOL, ZERO_D, VALUES(1));
    EXPECT(at_exp(f, at_scalar_int(&a, 0)), AT_FLOAT64, ZERO_D, VALUES(1));
}

static void test_an_integer_scalar_at_the_ends_of_a_dtype_fits(at_frame *f)
{
    static const struct {
        at_dtype dtype;
        int64_t least, most;
    } ends[] = {{AT_INT8, INT8_MIN, INT8_MAX},    {AT_INT16, INT16_MIN, INT16_MAX},
                {AT_INT32, INT32_MIN, INT32_MAX}, {AT_INT64, INT64_MIN, INT64_MAX},
                {AT_UINT8, 0, UINT8_MAX},         {AT_UINT16, 0, UINT16_MAX},
                {AT_UINT32, 0, UINT32_MAX},       {AT_UINT64, 0, INT64_MAX}};
    at_scalar s;
    for (int i = 0; i < COUNT_OF(ends); i++) {
        at_array x = VEC(f, ends[i].dtype, 1);
        check_note = at_dtype_name(ends[i].dtype);
        CHECK(!at_is_nil(at_minimum(f, x, at_scalar_int(&s, ends[i].least))));
        CHECK(!at_is_nil(at_maximum(f, at_scalar_int(&s, ends[i].most), x)));
        if (ends[i].least > INT64_MIN) {
            EXPECT_ERROR(f, at_maximum(f, x, at_scalar_int(&s, ends[i].least - 1)), AT_EOVERFLOW,
                         "maximum", "'y'", at_dtype_name(ends[i].dtype));
        }
        if (ends[i].most < INT64_MAX) {
            EXPECT_ERROR(f, at_maximum(f, at_scalar_int(&s, ends[i].most + 1), x), AT_EOVERFLOW,
                         "maximum", "'x'", at_dtype_name(ends[i].dtype));
        }
    }
}

/* An integer of the caller's language that int64 does not hold. */
static at_array big(at_scalar *s, double d)
{
    bool unsigned_too = d > 0 && d < 0x1p64;
    *s = (at_scalar){
        .kind = AT_WEAK_INT, .range = unsigned_too ? AT_FITS_UINT64 : AT_FITS_NONE, .d = d};
    s->i = unsigned_too ? (int64_t)(uint64_t)d : d < 0 ? INT64_MIN : INT64_MAX;
    return (at_array){s, &at_weak};
}

static void test_an_integer_scalar_above_int64_fits_uint64_alone(at_frame *f)
{
    at_scalar s;
    at_array top = big(&s, 0x1p63);
    EXPECT_BYTES(at_maximum(f, VEC(f, AT_UINT64, 1), top), uint64_t, UINT64_C(1) << 63);
    EXPECT_ERROR(f, at_maximum(f, VEC(f, AT_INT64, 1), top), AT_EOVERFLOW, "int64");
    EXPECT_ERROR(f, at_maximum(f, VEC(f, AT_UINT32, 1), top), AT_EOVERFLOW, "uint32");
    EXPECT(at_maximum(f, VEC(f, AT_FLOAT64, 1), top), AT_FLOAT64, SIZES(1), VALUES(0x1p63));
}

static void test_an_integer_scalar_that_fits_no_integer_dtype_still_meets_floats(at_frame *f)
{
    at_scalar s;
    EXPECT(at_maximum(f, VEC(f, AT_FLOAT32, 1), big(&s, 0x1p70)), AT_FLOAT32, SIZES(1),
           VALUES(0x1p70));
    EXPECT_ERROR(f, at_maximum(f, VEC(f, AT_UINT64, 1), big(&s, 0x1p70)), AT_EOVERFLOW, "uint64");
    EXPECT_ERROR(f, at_minimum(f, VEC(f, AT_INT64, 1), big(&s, -0x1p70)), AT_EOVERFLOW, "int64");
}

static void test_a_float_scalar_that_does_not_fit_becomes_infinite(at_frame *f)
{
    at_scalar s;
    EXPECT(at_add(f, VEC(f, AT_FLOAT16, 1), at_scalar_float(&s, 1e6)), AT_FLOAT16, SIZES(1),
           VALUES((double)INFINITY));
    EXPECT(at_add(f, VEC(f, AT_FLOAT32, 1), at_scalar_float(&s, -1e300)), AT_FLOAT32, SIZES(1),
           VALUES((double)-INFINITY));
}

static void test_an_overflowing_integer_is_refused_wherever_the_scalar_stands(at_frame *f)
{
    at_scalar s;
    at_array x = VEC(f, AT_INT8, 1, 2), yes = VEC(f, AT_BOOL, 1, 0);
    EXPECT_ERROR(f, at_where(f, yes, at_scalar_int(&s, 300), x), AT_EOVERFLOW, "where", "300");
    EXPECT_ERROR(f, at_clip(f, x, at_scalar_int(&s, -129), AT_NIL), AT_EOVERFLOW, "clip");
    EXPECT_ERROR(f, at_fill_nan(f, x, at_scalar_int(&s, 128)), AT_EOVERFLOW, "fill_nan");
}

/* Rules other than "common dtype": FLOAT and WIDEN of the table. */
static void test_float_operations_keep_floats_and_turn_the_rest_into_the_default(at_frame *f)
{
    for (int i = 0; i < COUNT_OF(every_dtype); i++) {
        at_dtype dtype = every_dtype[i], want = kind_of(dtype) == 'f' ? dtype : AT_FLOAT64;
        at_array x = VEC(f, dtype, 1, 1);
        EXPECT(at_log(f, x), want, SIZES(2), VALUES(0, 0));
        EXPECT(at_div(f, x, x), want, SIZES(2), VALUES(1, 1));
        EXPECT(at_mean(f, x, AT_ALL_AXES, false), want, ZERO_D, VALUES(1));
    }
}

static void test_plain_sums_widen_small_integers(at_frame *f)
{
    for (int i = 0; i < COUNT_OF(every_dtype); i++) {
        at_dtype dtype = every_dtype[i];
        at_dtype want = dtype == AT_UINT64 || kind_of(dtype) == 'f' ? dtype : AT_INT64;
        at_array x = VEC(f, dtype, 1, 1);
        EXPECT(at_sum(f, x, AT_ALL_AXES, false), want, ZERO_D, VALUES(2));
        EXPECT(at_prod(f, x, AT_ALL_AXES, false), want, ZERO_D, VALUES(1));
        EXPECT(at_cumsum(f, x, 0), want, SIZES(2), VALUES(1, 2));
    }
}

static void test_the_common_dtype_of_many_does_not_depend_on_their_order(at_frame *f)
{
    at_array x[3] = {VEC(f, AT_FLOAT32, 1), VEC(f, AT_INT64, 2), VEC(f, AT_UINT64, 3)};
    for (int first = 0; first < 3; first++) {
        at_array turned[3] = {x[first], x[(first + 1) % 3], x[(first + 2) % 3]};
        at_array all = at_concatenate(f, (at_list){3, turned}, 0);
        if (CHECK(!at_is_nil(all))) CHECK(at_native_dtype(all) == AT_FLOAT32);
    }
}

int main(int argc, char **argv)
{
    static const test tests[] = {
        TEST(test_every_dtype_has_a_name_a_size_and_the_way_back),
        TEST(test_arrays_of_two_dtypes_meet_in_the_common_one),
        TEST(test_a_zero_d_array_carries_its_dtype),
        TEST(test_a_float_scalar_is_weak),
        TEST(test_an_integer_scalar_is_weak),
        TEST(test_a_bool_scalar_is_weak),
        TEST(test_scalars_alone_take_the_default_dtypes),
        TEST(test_an_integer_scalar_at_the_ends_of_a_dtype_fits),
        TEST(test_an_integer_scalar_above_int64_fits_uint64_alone),
        TEST(test_an_integer_scalar_that_fits_no_integer_dtype_still_meets_floats),
        TEST(test_a_float_scalar_that_does_not_fit_becomes_infinite),
        TEST(test_an_overflowing_integer_is_refused_wherever_the_scalar_stands),
        TEST(test_float_operations_keep_floats_and_turn_the_rest_into_the_default),
        TEST(test_plain_sums_widen_small_integers),
        TEST(test_the_common_dtype_of_many_does_not_depend_on_their_order),
    };
    return RUN(tests, plainly, argc, argv);
}
