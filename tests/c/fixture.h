/* What tests of arrays share: a context per test, arrays from plain doubles, expectations, the runner.
 *
 * Each test runs once per mode. A mode is a way to compute (with the backend's own versions of composites, or
 * by their formulas alone) and a way in which given() lays its arrays out in memory (row-major, backwards,
 * misaligned with gaps), so that one list of cases accuses all of them. Memory comes from an allocator that
 * counts, hands out rubbish, and checks what it gets back; after each test no array and no byte is left. */
#ifndef TESTS_FIXTURE_H
#define TESTS_FIXTURE_H

#include <stdlib.h>

#include "anytensor.h"
#include "check.h"

/* --- memory ---------------------------------------------------------------------------------- */

static int64_t memory_bytes;        /* handed out and not back yet */
static int64_t memory_gets;         /* calls so far */
static int64_t memory_fail_at = -1; /* the call (counted from 0) that gets NULL */

static inline void *memory_get(void *user, size_t size)
{
    (void)user;
    if (memory_gets++ == memory_fail_at || size > ((size_t)1 << 36)) return NULL;
    size_t room = (size + 127) / 64 * 64;
    unsigned char *block = aligned_alloc(64, room);
    if (!block) return NULL;
    memset(block, 0xA5, room);
    memory_bytes += (int64_t)size;
    return block;
}

static inline void memory_put(void *user, void *block, size_t size)
{
    (void)user;
    if (block) memory_bytes -= (int64_t)size;
    free(block);
}

static const at_allocator counting_allocator = {memory_get, memory_put, NULL};

/* --- numbers --------------------------------------------------------------------------------- */

/* Every dtype, in a list for loops. */
static const at_dtype every_dtype[] = {
#define X(name, NAME, size, kind) AT_##NAME,
    AT_DTYPES(X)
#undef X
};

static const at_dtype every_integer[] = {AT_INT8,  AT_INT16,  AT_INT32,  AT_INT64,
                                         AT_UINT8, AT_UINT16, AT_UINT32, AT_UINT64};

static const at_dtype every_float[] = {AT_FLOAT16, AT_BFLOAT16, AT_FLOAT32, AT_FLOAT64};

static inline char kind_of(at_dtype dtype)
{
    return dtype == AT_BOOL ? 'b' : dtype >= AT_FLOAT16 ? 'f' : dtype >= AT_UINT8 ? 'u' : 'i';
}

static inline double tolerance_of(at_dtype dtype)
{
    switch (dtype) {
    case AT_FLOAT16: return 2e-3;
    case AT_BFLOAT16: return 2e-2;
    case AT_FLOAT32: return 2e-6;
    case AT_FLOAT64: return 1e-12;
    default: return 0;
    }
}

/* Half types by their definition (sign, exponent of some bits, mantissa of the rest), apart from the
 * library's own code: rounding is to the nearest, ties to even. */
static inline uint16_t half_bits(double value, int mantissa)
{
    int exponent_bits = 15 - mantissa, bias = (1 << (exponent_bits - 1)) - 1;
    uint16_t sign = signbit(value) ? 0x8000 : 0,
             top = (uint16_t)(((1 << exponent_bits) - 1) << mantissa);
    if (isnan(value)) return (uint16_t)(sign | top | (1 << (mantissa - 1)));
    if (isinf(value)) return sign | top;
    double size = fabs(value);
    int exponent = size == 0 ? 1 - bias : ilogb(size);
    if (exponent < 1 - bias) exponent = 1 - bias;
    double steps = nearbyint(ldexp(size, mantissa - exponent));
    double bits = steps + ldexp(exponent + bias - 1, mantissa);
    return (uint16_t)(sign | (bits >= top ? top : (uint16_t)bits));
}

static inline double half_value(uint16_t bits, int mantissa)
{
    int exponent_bits = 15 - mantissa, bias = (1 << (exponent_bits - 1)) - 1;
    int exponent = (bits & 0x7fff) >> mantissa, steps = bits & ((1 << mantissa) - 1);
    double size = exponent == (1 << exponent_bits) - 1 ? (steps ? (double)NAN : (double)INFINITY)
                  : exponent ? ldexp(steps + (1 << mantissa), exponent - bias - mantissa)
                             : ldexp(steps, 1 - bias - mantissa);
    return bits & 0x8000 ? -size : size;
}

static inline void encode(at_dtype dtype, double value, void *place)
{
    switch (dtype) {
    case AT_FLOAT16: memcpy(place, &(uint16_t){half_bits(value, 10)}, 2); break;
    case AT_BFLOAT16: memcpy(place, &(uint16_t){half_bits(value, 7)}, 2); break;
    case AT_BOOL: memcpy(place, &(unsigned char){value != 0}, 1); break;
#define TO(NAME, type)                                                                             \
    case AT_##NAME: memcpy(place, &(type){(type)value}, sizeof(type)); break;
        TO(INT8, int8_t)
        TO(INT16, int16_t)
        TO(INT32, int32_t)
        TO(INT64, int64_t)
        TO(UINT8, uint8_t)
        TO(UINT16, uint16_t)
        TO(UINT32, uint32_t)
        TO(UINT64, uint64_t)
        TO(FLOAT32, float)
        TO(FLOAT64, double)
#undef TO
    default: abort();
    }
}

static inline double decode(at_dtype dtype, const void *place)
{
    uint16_t bits;
    switch (dtype) {
    case AT_FLOAT16: memcpy(&bits, place, 2); return half_value(bits, 10);
    case AT_BFLOAT16: memcpy(&bits, place, 2); return half_value(bits, 7);
#define FROM(NAME, type)                                                                           \
    case AT_##NAME: {                                                                              \
        type value;                                                                                \
        memcpy(&value, place, sizeof value);                                                       \
        return (double)value;                                                                      \
    }
        FROM(BOOL, unsigned char)
        FROM(INT8, int8_t)
        FROM(INT16, int16_t)
        FROM(INT32, int32_t)
        FROM(INT64, int64_t)
        FROM(UINT8, uint8_t)
        FROM(UINT16, uint16_t)
        FROM(UINT32, uint32_t)
        FROM(UINT64, uint64_t)
        FROM(FLOAT32, float)
        FROM(FLOAT64, double)
#undef FROM
    default: abort();
    }
}

/* What a double becomes when a dtype stores it. */
static inline double stored(at_dtype dtype, double value)
{
    unsigned char place[8];
    encode(dtype, value, place);
    return decode(dtype, place);
}

/* --- given arrays ---------------------------------------------------------------------------- */

typedef enum layout { ROW_MAJOR, BACKWARDS, MISALIGNED } layout;

typedef struct mode {
    const char *name;
    unsigned flags;
    layout layout;
    const at_backend *(*make)(void); /* backend of given arrays; NULL: native */
} mode;

static mode now;                   /* the mode in which the test runs */
static const at_backend *given_be; /* its backend, whose handles hold native arrays in any case */

#define SIZES(...)                                                                                 \
    (int)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), (const int64_t[]) { __VA_ARGS__ }
#define VALUES(...) ((const double[]){__VA_ARGS__})
#define NO_VALUES NULL /* of an array without elements */
#define ZERO_D 0, NULL /* sizes of a 0-d array */

static inline int64_t product(int ndim, const int64_t *sizes)
{
    int64_t n = 1;
    for (int k = 0; k < ndim; k++) n *= sizes[k];
    return n;
}

/** An array over memory whose elements lie `step` bytes apart (negative: backwards), `offset` bytes in. */
static inline at_array given_at(at_frame *f, at_dtype dtype, int ndim, const int64_t *sizes,
                                const double *values, int64_t step, int64_t offset)
{
    int64_t count = product(ndim, sizes), reach = step < 0 ? -step : step;
    char *block = malloc((size_t)(offset + (count + 1) * reach));
    if (!block) abort();
    char *first = block + offset + (step < 0 && count ? (count - 1) * reach : 0);
    for (int64_t i = 0; i < count; i++) encode(dtype, values[i], first + i * step);
    int64_t strides[AT_MAX_NDIM] = {0}, stride = step;
    for (int k = ndim; k-- > 0;) {
        strides[k] = stride;
        stride *= sizes[k];
    }
    at_array a = at_native_wrap(f, dtype, ndim, sizes, strides, first, free, block);
    return at_is_nil(a) ? a : (at_array){a.p, given_be};
}

/** An array of the given values, converted to the dtype, laid out as the mode says. */
static inline at_array given(at_frame *f, at_dtype dtype, int ndim, const int64_t *sizes,
                             const double *values)
{
    int64_t size = (int64_t)at_dtype_size(dtype);
    if (now.layout == BACKWARDS) return given_at(f, dtype, ndim, sizes, values, -size, 0);
    if (now.layout == MISALIGNED) return given_at(f, dtype, ndim, sizes, values, 2 * size + 1, 1);
    int64_t count = product(ndim, sizes);
    char *block = malloc((size_t)(count * size + 1));
    if (!block) abort();
    for (int64_t i = 0; i < count; i++) encode(dtype, values[i], block + i * size);
    at_array a = at_native_copy(f, dtype, ndim, sizes, block);
    free(block);
    return at_is_nil(a) ? a : (at_array){a.p, given_be};
}

/** A vector. */
#define VEC(f, dtype, ...)                                                                         \
    given((f), (dtype), 1,                                                                         \
          (const int64_t[]){(int64_t)(sizeof((double[]){__VA_ARGS__}) / sizeof(double))},          \
          VALUES(__VA_ARGS__))

/** A vector without elements, a 0-d array. */
static inline at_array nothing_of(at_frame *f, at_dtype dtype)
{
    return given(f, dtype, SIZES(0), NO_VALUES);
}

static inline at_array zero_d(at_frame *f, at_dtype dtype, double value)
{
    return given(f, dtype, ZERO_D, &value);
}

/* --- expectations ---------------------------------------------------------------------------- */

/** All elements as doubles; to be freed. NULL for nil. */
static inline double *values_of(at_array a)
{
    if (at_is_nil(a)) return NULL;
    at_dtype dtype = at_native_dtype(a);
    size_t size = at_dtype_size(dtype);
    int64_t count = product(at_native_ndim(a), at_native_sizes(a));
    char *bytes = malloc((size_t)count * size + 1);
    double *values = malloc(((size_t)count + 1) * sizeof *values);
    if (!bytes || !values) abort();
    CHECK(at_native_read(a, bytes, (size_t)count * size));
    for (int64_t i = 0; i < count; i++) values[i] = decode(dtype, bytes + (size_t)i * size);
    free(bytes);
    return values;
}

/** Checks dtype, sizes and values of a result. */
#define EXPECT(...) expect(__FILE__, __LINE__, __VA_ARGS__)

static inline bool expect(const char *file, int line, at_array a, at_dtype dtype, int ndim,
                          const int64_t *sizes, const double *values)
{
    char text[128];
    if (at_is_nil(a)) return check_that(false, "a result, not nil", file, line);
    if (at_native_dtype(a) != dtype) {
        snprintf(text, sizeof text, "dtype is %s, not %s", at_dtype_name(at_native_dtype(a)),
                 at_dtype_name(dtype));
        return check_that(false, text, file, line);
    }
    bool same = at_native_ndim(a) == ndim;
    for (int k = 0; same && k < ndim; k++) same = at_native_sizes(a)[k] == sizes[k];
    if (!same) {
        int length = snprintf(text, sizeof text, "shape is (");
        for (int k = 0; k < at_native_ndim(a) && length < 100; k++) {
            length += snprintf(text + length, sizeof text - (size_t)length, "%lld,",
                               (long long)at_native_sizes(a)[k]);
        }
        snprintf(text + length, sizeof text - (size_t)length, ")");
        return check_that(false, text, file, line);
    }
    double *got = values_of(a);
    bool equal =
        check_equal(got, values, (size_t)product(ndim, sizes), tolerance_of(dtype), file, line);
    free(got);
    return equal;
}

/** The same without rounding through double: compares the bytes of all elements. */
#define EXPECT_BYTES(a, type, ...)                                                                 \
    expect_bytes(__FILE__, __LINE__, (a), (const type[]){__VA_ARGS__},                             \
                 sizeof((const type[]){__VA_ARGS__}))

static inline bool expect_bytes(const char *file, int line, at_array a, const void *want,
                                size_t size)
{
    char *got = calloc(1, size + 1);
    if (!got) abort();
    bool same =
        check_that(!at_is_nil(a) && at_native_read(a, got, size), "as many bytes", file, line) &&
        check_that(memcmp(got, want, size) == 0, "the same bytes", file, line);
    free(got);
    return same;
}

/** Checks that a call failed: nil, the status, words of the message; then the context is fit again. */
#define EXPECT_ERROR(f, result, status, ...)                                                       \
    expect_error(__FILE__, __LINE__, (f), (result), (status),                                      \
                 (const char *const[]){__VA_ARGS__, NULL})

static inline void expect_error(const char *file, int line, at_frame *f, at_array result,
                                at_status status, const char *const *words)
{
    char text[128];
    at_status found = f->cx->status;
    check_that(at_is_nil(result), "nil comes back from what failed", file, line);
    snprintf(text, sizeof text, "status is %s, not %s", at_status_name(found),
             at_status_name(status));
    if (check_that(found == status, text, file, line))
        check_words(at_message(f->cx), words, file, line);
    at_clear(f->cx);
}

/* --- the runner ------------------------------------------------------------------------------ */

typedef struct test {
    const char *name;
    void (*run)(at_frame *f);
} test;

#define TEST(function)                                                                             \
    {                                                                                              \
#function, function                                                                        \
    }

static const mode plainly[] = {{"", 0, ROW_MAJOR, NULL}};

static const mode both_ways[] = {
    {"", 0, ROW_MAJOR, NULL},
    {" [backwards]", 0, BACKWARDS, NULL},
    {" [misaligned]", 0, MISALIGNED, NULL},
    {" [formula]", AT_GENERIC, ROW_MAJOR, NULL},
    {" [formula, backwards]", AT_GENERIC, BACKWARDS, NULL},
    {" [formula, misaligned]", AT_GENERIC, MISALIGNED, NULL},
};

static inline bool run_test(const test *t)
{
    given_be = now.make ? now.make() : at_native();
    at_context cx;
    at_frame root, *f = at_open(&root, at_context_init(&cx, given_be));
    cx.flags = now.flags;
    cx.alloc = &counting_allocator;
    check_failures = 0;
    t->run(f);
    if (at_failed(f)) check_that(false, at_message(&cx), t->name, 0);
    at_close(f);
    check_note = "";
    CHECK(at_native_live() == 0);
    CHECK(memory_bytes == 0);
    return check_failures == 0;
}

/** Runs every test in every mode; argv[1] picks those whose name contains it. The exit status of main(). */
#define RUN(tests, modes, argc, argv)                                                              \
    run_tests((tests), COUNT_OF(tests), (modes), COUNT_OF(modes), (argc) > 1 ? (argv)[1] : "")

static inline int run_tests(const test *tests, int count, const mode *modes, int mode_count,
                            const char *pick)
{
    setvbuf(stdout, NULL, _IOLBF, 0); /* a crash must not eat what was printed */
    int ran = 0, failed = 0;
    char names[8192] = "";
    for (int i = 0; i < count; i++) {
        for (int m = 0; strstr(tests[i].name, pick) && m < mode_count; m++, ran++) {
            now = modes[m];
            if (run_test(&tests[i])) continue;
            failed++;
            printf("FAILED %s%s\n", tests[i].name, now.name);
            size_t length = strlen(names);
            snprintf(names + length, sizeof names - length, "\n    %s%s", tests[i].name, now.name);
        }
    }
    printf("%d tests in %d modes: %d runs, %d failed%s\n", count, mode_count, ran, failed, names);
    return failed || (!ran && !*pick);
}

#endif
