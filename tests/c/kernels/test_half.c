/* The two half types: every bit pattern, and rounding, against their definition (fixture.h). */
#include "fixture.h"
#include "kernels/half.h"

enum { PATTERNS = 65536, FLOAT16_MANTISSA = 10, BFLOAT16_MANTISSA = 7 };

static bool same_float(float a, double b)
{
    return isnan(b) ? isnan(a) : (double)a == b && !signbit(a) == !signbit(b);
}

static void test_every_pattern_decodes_to_its_value(at_frame *f)
{
    (void)f;
    for (int i = 0; i < PATTERNS; i++) {
        uint16_t bits = (uint16_t)i;
        if (!CHECK(same_float(ati_float16_decode(bits), half_value(bits, FLOAT16_MANTISSA))) ||
            !CHECK(same_float(ati_bfloat16_decode(bits), half_value(bits, BFLOAT16_MANTISSA)))) {
            printf("  pattern %04x\n", i);
            return;
        }
    }
}

static void test_every_number_encodes_to_its_own_pattern(at_frame *f)
{
    (void)f;
    for (int i = 0; i < PATTERNS; i++) {
        uint16_t bits = (uint16_t)i;
        float h = ati_float16_decode(bits), b = ati_bfloat16_decode(bits);
        if ((!isnan(h) && !CHECK(ati_float16_encode(h) == bits)) ||
            (!isnan(b) && !CHECK(ati_bfloat16_encode(b) == bits))) {
            printf("  pattern %04x\n", i);
            return;
        }
    }
}

static void test_nan_stays_nan_whatever_its_payload(at_frame *f)
{
    (void)f;
    static const uint32_t payloads[] = {0x7fc00000, 0x7f800001, 0x7f801000,
                                        0xff800001, 0xffffffff, 0x7fa00000};
    for (int i = 0; i < COUNT_OF(payloads); i++) {
        float nan = ati_float_of(payloads[i]);
        CHECK(isnan(ati_float16_decode(ati_float16_encode(nan))));
        CHECK(isnan(ati_bfloat16_decode(ati_bfloat16_encode(nan))));
    }
}

/* The numbers that decide a rounding: at, just below and just above the middle between two neighbours. */
static void check_rounding(double low, double high)
{
    double middle = low / 2 + high / 2;
    float tries[] = {(float)middle, nextafterf((float)middle, (float)low),
                     nextafterf((float)middle, (float)high)};
    for (int i = 0; i < COUNT_OF(tries); i++) {
        CHECK(ati_float16_encode(tries[i]) == half_bits((double)tries[i], FLOAT16_MANTISSA));
        CHECK(ati_bfloat16_encode(tries[i]) == half_bits((double)tries[i], BFLOAT16_MANTISSA));
    }
}

static void test_rounding_is_to_nearest_ties_to_even(at_frame *f)
{
    (void)f;
    for (int i = 0; i < 0x7bff; i++) {
        double a = half_value((uint16_t)i, FLOAT16_MANTISSA),
               b = half_value((uint16_t)(i + 1), FLOAT16_MANTISSA);
        check_rounding(a, b);
        check_rounding(-a, -b);
    }
    for (int i = 0; i < 0x7f7f; i++) {
        check_rounding(half_value((uint16_t)i, BFLOAT16_MANTISSA),
                       half_value((uint16_t)(i + 1), BFLOAT16_MANTISSA));
    }
    CHECK(ati_float16_encode(65519.996F) == 0x7bff && ati_float16_encode(65520.0F) == 0x7c00);
    CHECK(ati_bfloat16_encode(3.4e38F) == 0x7f80);
}

/* One rounding from double, through the public cast: going through float would round twice. */
static void test_doubles_are_rounded_once(at_frame *f)
{
    enum { TRIES = 20000 };
    static double x[TRIES], half[TRIES], bhalf[TRIES];
    uint64_t state = 42;
    for (int i = 0; i < TRIES; i++) {
        state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        uint16_t bits = (uint16_t)(state >> 33);
        double low = half_value(bits & 0xfbff, FLOAT16_MANTISSA);
        double high = half_value((uint16_t)((bits & 0xfbff) + 1), FLOAT16_MANTISSA);
        double middle = isfinite(low) && isfinite(high) ? (low + high) / 2 : 1 + 0x1p-11;
        x[i] = i % 3 ? middle * (1 + (i % 3 == 1 ? 0x1p-45 : -0x1p-45)) : middle;
        half[i] = half_value(half_bits(x[i], FLOAT16_MANTISSA), FLOAT16_MANTISSA);
        bhalf[i] = half_value(half_bits(x[i], BFLOAT16_MANTISSA), BFLOAT16_MANTISSA);
    }
    at_array a = at_native_copy(f, AT_FLOAT64, SIZES(TRIES), x);
    double *h = values_of(at_astype(f, a, AT_FLOAT16)),
           *b = values_of(at_astype(f, a, AT_BFLOAT16));
    if (CHECK(h && b)) {
        CHECK_EQ(h, half, TRIES, 0);
        CHECK_EQ(b, bhalf, TRIES, 0);
    }
    free(h);
    free(b);
}

int main(int argc, char **argv)
{
    static const test tests[] = {
        TEST(test_every_pattern_decodes_to_its_value),
        TEST(test_every_number_encodes_to_its_own_pattern),
        TEST(test_nan_stays_nan_whatever_its_payload),
        TEST(test_rounding_is_to_nearest_ties_to_even),
        TEST(test_doubles_are_rounded_once),
    };
    return RUN(tests, plainly, argc, argv);
}
