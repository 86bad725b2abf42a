/* Native arrays: copies, wraps, strides, lifetimes, threads. */
#include <pthread.h>

#include "fixture.h"

static void test_a_copy_is_row_major_aligned_and_apart(at_frame *f)
{
    for (int d = 0; d < COUNT_OF(every_dtype); d++) {
        at_array x = given(f, every_dtype[d], SIZES(2, 3), VALUES(1, 0, 1, 0, 0, 1));
        int64_t size = (int64_t)at_dtype_size(every_dtype[d]);
        if (!CHECK(!at_is_nil(x))) continue;
        CHECK((uintptr_t)at_native_data(x) % 64 == 0);
        CHECK(at_native_dtype(x) == every_dtype[d] && at_native_ndim(x) == 2);
        CHECK(at_native_sizes(x)[0] == 2 && at_native_sizes(x)[1] == 3);
        CHECK(at_native_strides(x)[0] == 3 * size && at_native_strides(x)[1] == size);
    }
    float memory[] = {1, 2};
    at_array x = at_native_copy(f, AT_FLOAT32, SIZES(2), memory);
    memory[0] = 9;
    EXPECT(x, AT_FLOAT32, SIZES(2), VALUES(1, 2));
}

static void test_read_wants_the_exact_number_of_bytes(at_frame *f)
{
    int32_t out[3] = {0};
    at_array x = VEC(f, AT_INT32, 1, 2, 3);
    CHECK(!at_native_read(x, out, 8) && !at_native_read(x, out, 16) && out[0] == 0);
    CHECK(at_native_read(x, out, 12) && out[2] == 3);
    CHECK(at_native_read(nothing_of(f, AT_INT32), NULL, 0));
}

static int ended;
static void on_end(void *user) { ended += *(int *)user; }

static void test_a_wrap_shares_memory_and_ends_once(at_frame *up)
{
    static int one = 1;
    int16_t memory[] = {1, 2, 3, 4};
    at_frame frame, *f = at_enter(&frame, up);
    ended = 0;
    at_array x = at_native_wrap(f, AT_INT16, SIZES(4), NULL, memory, on_end, &one);
    CHECK(at_native_data(x) == memory);
    at_retain(x);
    at_leave(f, AT_NIL);
    CHECK(ended == 0);
    at_release(x);
    CHECK(ended == 1);
}

static void test_a_view_keeps_wrapped_memory_alive(at_frame *up)
{
    static int one = 1;
    int16_t memory[] = {1, 2, 3, 4};
    at_shape shape = {.ndim = 2, .dim = {{.n = 2}, {.n = 2}}};
    at_frame root, *r = at_open(&root, up->cx), frame, *f = at_enter(&frame, r);
    ended = 0;
    at_array x = at_native_wrap(f, AT_INT16, SIZES(4), NULL, memory, on_end, &one);
    at_array y = at_leave(f, at_reshape(f, x, &shape));
    EXPECT(y, AT_INT16, SIZES(2, 2), VALUES(1, 2, 3, 4));
    at_close(r);
    CHECK(ended == 1);
}

static void test_wraps_may_be_strided_in_every_way(at_frame *f)
{
    int32_t m[] = {1, 2, 3, 4, 5, 6};
#define WRAP(sizes, strides, first)                                                                \
    at_native_wrap(f, AT_INT32, 2, (const int64_t[2])sizes, (const int64_t[2])strides,             \
                   m + (first), NULL, NULL)
#define PAIR(a, b) {a, b}
    EXPECT(WRAP(PAIR(2, 3), PAIR(12, 4), 0), AT_INT32, SIZES(2, 3), VALUES(1, 2, 3, 4, 5, 6));
    EXPECT(WRAP(PAIR(3, 2), PAIR(4, 12), 0), AT_INT32, SIZES(3, 2), VALUES(1, 4, 2, 5, 3, 6));
    EXPECT(WRAP(PAIR(2, 3), PAIR(-12, -4), 5), AT_INT32, SIZES(2, 3), VALUES(6, 5, 4, 3, 2, 1));
    EXPECT(WRAP(PAIR(2, 2), PAIR(12, 8), 0), AT_INT32, SIZES(2, 2), VALUES(1, 3, 4, 6));
    EXPECT(WRAP(PAIR(2, 2), PAIR(0, 4), 1), AT_INT32, SIZES(2, 2), VALUES(2, 3, 2, 3));
    EXPECT(WRAP(PAIR(0, 2), PAIR(8, 4), 0), AT_INT32, SIZES(0, 2), NO_VALUES);
}

static void test_bool_memory_counts_as_true_unless_zero(at_frame *f)
{
    unsigned char m[] = {0, 1, 2, 255};
    at_array x = at_native_wrap(f, AT_BOOL, SIZES(4), NULL, m, NULL, NULL),
             ids = VEC(f, AT_INT64, 0, 0, 0, 0);
    EXPECT(at_astype(f, x, AT_INT32), AT_INT32, SIZES(4), VALUES(0, 1, 1, 1));
    EXPECT(at_segment_sum(f, x, ids, AT_DIM(1), false), AT_INT64, SIZES(1), VALUES(3));
    EXPECT(at_sum(f, x, AT_ALL_AXES, false), AT_INT64, ZERO_D, VALUES(3));
    EXPECT_BYTES(at_segment_max(f, x, ids, AT_DIM(1), false), unsigned char, 1);
    EXPECT(at_where(f, x, VEC(f, AT_INT8, 1, 1, 1, 1), VEC(f, AT_INT8, 0, 0, 0, 0)), AT_INT8,
           SIZES(4), VALUES(0, 1, 1, 1));
    EXPECT(at_equal(f, x, VEC(f, AT_BOOL, 1, 1, 1, 1)), AT_BOOL, SIZES(4), VALUES(0, 1, 1, 1));
}

static void test_impossible_shapes_are_refused_and_end_nothing(at_frame *f)
{
    static int one = 1;
    int64_t many[AT_MAX_NDIM + 1] = {0};
    char memory[8] = {0};
    ended = 0;
    EXPECT_ERROR(f, at_native_copy(f, AT_INT8, SIZES(-1), memory), AT_EVALUE, "-1");
    EXPECT_ERROR(f, at_native_copy(f, AT_INT8, AT_MAX_NDIM + 1, many, memory), AT_EVALUE, "33");
    EXPECT_ERROR(f, at_native_copy(f, AT_INT8, -1, many, memory), AT_EVALUE, "-1");
    EXPECT_ERROR(f, at_native_copy(f, AT_FLOAT64, SIZES(INT64_MAX / 4), memory), AT_EVALUE, "");
    EXPECT_ERROR(f, at_native_copy(f, AT_INT8, SIZES(INT64_MAX, 3), memory), AT_EVALUE, "");
    EXPECT_ERROR(f, at_native_wrap(f, AT_INT8, SIZES(-1), NULL, memory, on_end, &one), AT_EVALUE,
                 "-1");
    EXPECT_ERROR(f, at_native_wrap(f, AT_INT8, AT_MAX_NDIM + 1, many, NULL, memory, on_end, &one),
                 AT_EVALUE, "33");
    CHECK(ended == 0);
}

static void test_impossible_dtypes_are_refused(at_frame *f)
{
    char memory[8] = {0};
    at_array x = at_native_copy(f, AT_OTHER, SIZES(1), memory);
    CHECK(at_is_nil(x) && at_failed(f));
    at_clear(f->cx);
    x = at_native_copy(f, AT_NODTYPE, SIZES(1), memory);
    CHECK(at_is_nil(x) && at_failed(f));
    at_clear(f->cx);
    x = at_native_wrap(f, AT_OTHER, SIZES(1), NULL, memory, NULL, NULL);
    CHECK(at_is_nil(x) && at_failed(f));
    at_clear(f->cx);
}

static void test_arrays_may_have_32_axes(at_frame *f)
{
    int64_t sizes[AT_MAX_NDIM];
    for (int k = 0; k < AT_MAX_NDIM; k++) sizes[k] = k < 4 ? 2 : 1;
    double values[16];
    for (int i = 0; i < 16; i++) values[i] = i;
    at_array x = given(f, AT_INT16, AT_MAX_NDIM, sizes, values);
    EXPECT(x, AT_INT16, AT_MAX_NDIM, sizes, values);
    EXPECT(at_add(f, x, x), AT_INT16, AT_MAX_NDIM, sizes,
           VALUES(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30));
    EXPECT(at_sum(f, x, AT_ALL_AXES, false), AT_INT64, ZERO_D, VALUES(120));
}

static void test_shape_and_dtype_are_queried(at_frame *f)
{
    at_scalar s;
    at_shape shape;
    at_dtype dtype;
    at_array x = given(f, AT_BFLOAT16, SIZES(2, 0, 3), NO_VALUES);
    CHECK(at_shape_of(f, x, &shape) == AT_OK && shape.ndim == 3);
    CHECK(shape.dim[0].n == 2 && shape.dim[1].n == 0 && shape.dim[2].n == 3);
    CHECK(at_is_nil(shape.dim[0].sym) && at_dtype_of(f, x, &dtype) == AT_OK &&
          dtype == AT_BFLOAT16);
    CHECK(at_shape_of(f, at_scalar_int(&s, 1), &shape) == AT_OK && shape.ndim == 0);
    CHECK(at_dtype_of(f, at_scalar_int(&s, 1), &dtype) == AT_OK && dtype == AT_INT64);
    CHECK(at_dtype_of(f, at_scalar_bool(&s, 1), &dtype) == AT_OK && dtype == AT_BOOL);
    CHECK(at_dtype_of(f, at_scalar_float(&s, 1), &dtype) == AT_OK && dtype == AT_FLOAT64);
    CHECK(at_shape_of(f, AT_NIL, &shape) == AT_EARG);
    at_clear(f->cx);
    CHECK(at_dtype_of(f, AT_NIL, &dtype) == AT_EARG);
    at_clear(f->cx);
}

static void test_a_zero_d_integer_is_a_size(at_frame *f)
{
    at_dim size;
    for (int d = 0; d < COUNT_OF(every_integer); d++)
        CHECK(at_native()->to_size(f->cx, zero_d(f, every_integer[d], 7), &size) == AT_OK &&
              size.n == 7 && at_is_nil(size.sym));
    const uint64_t high[] = {UINT64_MAX};
    at_array bad[] = {zero_d(f, AT_FLOAT32, 7), zero_d(f, AT_BOOL, 1), VEC(f, AT_INT64, 7),
                      at_native_copy(f, AT_UINT64, ZERO_D, high)};
    for (int i = 0; i < COUNT_OF(bad); i++) {
        CHECK(at_native()->to_size(f->cx, bad[i], &size) == (i < 3 ? AT_EARG : AT_EVALUE));
        at_clear(f->cx);
    }
}

static void test_counts_are_peeked_at_in_0_d_arrays_and_vectors(at_frame *f)
{
    int64_t sum, least;
    bool known;
    CHECK(at_native()->peek(f->cx, zero_d(f, AT_INT16, 7), false, &sum, &least, &known) == AT_OK);
    CHECK(known && sum == 7 && least == 7);
    CHECK(at_native()->peek(f->cx, VEC(f, AT_INT32, 3, -1), false, &sum, &least, &known) == AT_OK);
    CHECK(known && sum == 2 && least == -1);
    CHECK(at_native()->peek(f->cx, zero_d(f, AT_BOOL, 1), false, &sum, &least, &known) == AT_OK);
    CHECK(!known);
}

static void test_native_adopts_its_own_arrays_alone(at_frame *f)
{
    at_scalar s;
    at_array x = VEC(f, AT_INT8, 1), y = AT_NIL;
    CHECK(at_native()->adopt(f->cx, at_native(), x, AT_NIL, &y) == AT_OK && y.p == x.p);
    at_release(y);
    CHECK(at_native()->adopt(f->cx, at_native(), at_scalar_int(&s, 1), AT_NIL, &y) ==
          AT_EUNSUPPORTED);
    at_clear(f->cx);
}

static void test_symbols_of_another_backend_are_refused(at_frame *f)
{
    at_array x = VEC(f, AT_FLOAT32, 1), ids = VEC(f, AT_INT64, 0);
    at_dim symbol = {1, zero_d(f, AT_INT64, 1)};
    at_shape shape = {.ndim = 1, .dim = {symbol}};
    EXPECT_ERROR(f, at_slot_sum(f, x, ids, symbol), AT_EUNSUPPORTED, "slot_sum", "symbol");
    EXPECT_ERROR(f, at_zeros(f, &shape, AT_INT8, AT_NIL), AT_EUNSUPPORTED, "zeros", "symbol");
    EXPECT_ERROR(f, at_reshape(f, x, &shape), AT_EARG, "reshape", "symbol");
}

static void test_a_long_shape_is_shortened_in_messages(at_frame *f)
{
    int64_t sizes[AT_MAX_NDIM];
    for (int k = 0; k < AT_MAX_NDIM; k++) sizes[k] = 1;
    char memory[1] = {0};
    int64_t strides[AT_MAX_NDIM] = {0};
    for (int k = 0; k < 8; k++) sizes[k] = 100000;
    sizes[AT_MAX_NDIM - 1] = 0;
    at_array x = at_native_wrap(f, AT_INT8, AT_MAX_NDIM, sizes, strides, memory, NULL, NULL);
    if (at_is_nil(
            x)) { /* sizes that cannot be multiplied may be refused, even where nothing is stored */
        CHECK(f->cx->status == AT_EVALUE);
        at_clear(f->cx);
        for (int k = 0; k < 8; k++) sizes[k] = k ? 1 : 100000;
        x = at_native_wrap(f, AT_INT8, AT_MAX_NDIM, sizes, strides, memory, NULL, NULL);
    }
    EXPECT_ERROR(f, at_reshape(f, x, &(at_shape){.ndim = 1, .dim = {{.n = 5}}}), AT_ESHAPE,
                 "reshape", "(100000, 1", "(5,)");
}

/* --- threads --------------------------------------------------------------------------------- */

static at_array shared_x, shared_ids;

static void *work(void *wrong)
{
    for (int i = 0; i < 200; i++) {
        at_context cx;
        at_frame root, *f = at_open(&root, at_context_init(&cx, at_native()));
        at_retain(shared_x);
        at_array x = at_keep(f, shared_x);
        float out[2];
        at_array sum = at_segment_sum(f, x, shared_ids, AT_DIM(2), false);
        bool right = at_native_read(sum, out, sizeof out) && out[0] == 5 && out[1] == 2;
        *(int *)wrong += !right;
        at_close(f);
    }
    return NULL;
}

static void test_two_threads_with_a_context_each_never_meet(at_frame *f)
{
    pthread_t thread[2];
    int wrong[2] = {0, 0};
    shared_x = VEC(f, AT_FLOAT32, 1, 2, 4);
    shared_ids = VEC(f, AT_INT64, 0, 1, 0);
    for (int i = 0; i < 2; i++) CHECK(pthread_create(&thread[i], NULL, work, &wrong[i]) == 0);
    for (int i = 0; i < 2; i++) pthread_join(thread[i], NULL);
    CHECK(wrong[0] == 0 && wrong[1] == 0);
}

int main(int argc, char **argv)
{
    static const test tests[] = {
        TEST(test_a_copy_is_row_major_aligned_and_apart),
        TEST(test_read_wants_the_exact_number_of_bytes),
        TEST(test_a_wrap_shares_memory_and_ends_once),
        TEST(test_a_view_keeps_wrapped_memory_alive),
        TEST(test_wraps_may_be_strided_in_every_way),
        TEST(test_bool_memory_counts_as_true_unless_zero),
        TEST(test_impossible_shapes_are_refused_and_end_nothing),
        TEST(test_impossible_dtypes_are_refused),
        TEST(test_arrays_may_have_32_axes),
        TEST(test_shape_and_dtype_are_queried),
        TEST(test_a_zero_d_integer_is_a_size),
        TEST(test_counts_are_peeked_at_in_0_d_arrays_and_vectors),
        TEST(test_native_adopts_its_own_arrays_alone),
        TEST(test_symbols_of_another_backend_are_refused),
        TEST(test_a_long_shape_is_shortened_in_messages),
        TEST(test_two_threads_with_a_context_each_never_meet),
    };
    return RUN(tests, plainly, argc, argv);
}
