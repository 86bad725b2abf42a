/* Operations that move elements: take, repeat, reshape, transpose, split, concatenate, stack, astype. */
#include "fixture.h"

#define INF ((double)INFINITY)
#define NAN_ ((double)NAN)

#define SHAPE(...)                                                                                 \
    shape_of((int)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)),                            \
             (const int64_t[]){__VA_ARGS__})

/* Shapes for calls; a handful alive at a time. */
static const at_shape *shape_of(int ndim, const int64_t *sizes)
{
    static at_shape ring[4];
    static int next;
    at_shape *s = &ring[next++ % COUNT_OF(ring)];
    s->ndim = ndim;
    for (int k = 0; k < ndim; k++) s->dim[k] = AT_DIM(sizes[k]);
    return s;
}

static const at_shape no_axes = {.ndim = 0};

/* --- take ------------------------------------------------------------------------------------ */

static void test_take_for_every_dtype_and_index_dtype(at_frame *f)
{
    for (int d = 0; d < COUNT_OF(every_dtype); d++) {
        at_array x = given(f, every_dtype[d], SIZES(3, 2), VALUES(1, 0, 0, 1, 1, 1));
        check_note = at_dtype_name(every_dtype[d]);
        EXPECT(at_take(f, x, VEC(f, AT_INT64, 2, 0, 1, 1), 0), every_dtype[d], SIZES(4, 2),
               VALUES(1, 1, 1, 0, 0, 1, 0, 1));
    }
    at_array x = VEC(f, AT_FLOAT32, 10, 20, 30);
    for (int d = 0; d < COUNT_OF(every_integer); d++) {
        check_note = at_dtype_name(every_integer[d]);
        EXPECT(at_take(f, x, VEC(f, every_integer[d], 2, 0), 0), AT_FLOAT32, SIZES(2),
               VALUES(30, 10));
    }
}

static void test_negative_indices_count_from_the_end(at_frame *f)
{
    at_array x = VEC(f, AT_INT16, 10, 20, 30);
    EXPECT(at_take(f, x, VEC(f, AT_INT8, -1, -3, 0), 0), AT_INT16, SIZES(3), VALUES(30, 10, 10));
}

static void test_take_along_every_axis_with_indices_of_every_rank(at_frame *f)
{
    at_array x = given(f, AT_INT64, SIZES(2, 3), VALUES(1, 2, 3, 4, 5, 6));
    at_array table = given(f, AT_INT32, SIZES(2, 2), VALUES(0, 1, 1, 0));
    EXPECT(at_take(f, x, zero_d(f, AT_INT64, -1), 0), AT_INT64, SIZES(3), VALUES(4, 5, 6));
    EXPECT(at_take(f, x, zero_d(f, AT_INT64, 1), 1), AT_INT64, SIZES(2), VALUES(2, 5));
    EXPECT(at_take(f, x, VEC(f, AT_INT64, 2, 0), 1), AT_INT64, SIZES(2, 2), VALUES(3, 1, 6, 4));
    EXPECT(at_take(f, x, VEC(f, AT_INT64, 2, 0), -1), AT_INT64, SIZES(2, 2), VALUES(3, 1, 6, 4));
    EXPECT(at_take(f, x, table, 0), AT_INT64, SIZES(2, 2, 3),
           VALUES(1, 2, 3, 4, 5, 6, 4, 5, 6, 1, 2, 3));
    EXPECT(at_take(f, x, table, 1), AT_INT64, SIZES(2, 2, 2), VALUES(1, 2, 2, 1, 4, 5, 5, 4));
    EXPECT(at_take(f, x, VEC(f, AT_INT64, 5, 0, -1), AT_NO_AXIS), AT_INT64, SIZES(3),
           VALUES(6, 1, 6));
    at_scalar s;
    EXPECT(at_take(f, x, at_scalar_int(&s, 1), 0), AT_INT64, SIZES(3), VALUES(4, 5, 6));
}

static void test_take_of_nothing(at_frame *f)
{
    at_array x = given(f, AT_FLOAT32, SIZES(2, 0), NO_VALUES), none = nothing_of(f, AT_INT64);
    EXPECT(at_take(f, x, VEC(f, AT_INT64, 1, 1, 0), 0), AT_FLOAT32, SIZES(3, 0), NO_VALUES);
    EXPECT(at_take(f, VEC(f, AT_INT8, 1, 2), none, 0), AT_INT8, SIZES(0), NO_VALUES);
    EXPECT(at_take(f, nothing_of(f, AT_INT8), none, 0), AT_INT8, SIZES(0), NO_VALUES);
    EXPECT_ERROR(f, at_take(f, nothing_of(f, AT_INT8), VEC(f, AT_INT64, 0), 0), AT_EINDEX, "take");
}

static void test_indices_out_of_range_are_refused(at_frame *f)
{
    const uint64_t huge[] = {UINT64_MAX};
    at_array x = VEC(f, AT_FLOAT32, 1, 2, 3);
    EXPECT_ERROR(f, at_take(f, x, VEC(f, AT_INT64, 0, 3), 0), AT_EINDEX, "take", "3");
    EXPECT_ERROR(f, at_take(f, x, VEC(f, AT_INT8, -4), 0), AT_EINDEX, "take", "3");
    EXPECT_ERROR(f, at_take(f, x, VEC(f, AT_UINT8, 255), 0), AT_EINDEX, "take");
    EXPECT_ERROR(f, at_take(f, x, at_native_copy(f, AT_UINT64, SIZES(1), huge), 0), AT_EINDEX,
                 "take");
    at_array thin = given(f, AT_INT8, SIZES(2, 0), NO_VALUES);
    EXPECT_ERROR(f, at_take(f, thin, VEC(f, AT_INT64, 2), 0), AT_EINDEX, "take");
}

static void test_take_refuses_what_is_no_index_and_no_axis(at_frame *f)
{
    at_scalar s;
    at_array x = VEC(f, AT_FLOAT32, 1, 2, 3), i = VEC(f, AT_INT64, 0);
    EXPECT_ERROR(f, at_take(f, x, VEC(f, AT_FLOAT64, 0), 0), AT_EDTYPE, "take", "'indices'",
                 "float64");
    EXPECT_ERROR(f, at_take(f, x, VEC(f, AT_BOOL, 0), 0), AT_EDTYPE, "take", "'indices'", "bool");
    EXPECT_ERROR(f, at_take(f, x, at_scalar_float(&s, 1), 0), AT_EDTYPE, "take", "'indices'");
    EXPECT_ERROR(f, at_take(f, x, i, 1), AT_EVALUE, "take", "axis", "1");
    EXPECT_ERROR(f, at_take(f, x, i, -2), AT_EVALUE, "take", "axis", "-2");
    EXPECT_ERROR(f, at_take(f, zero_d(f, AT_INT8, 1), i, 0), AT_EVALUE, "take", "axis");
    EXPECT_ERROR(f, at_take(f, AT_NIL, i, 0), AT_EARG, "take", "'x'", "missing");
    EXPECT_ERROR(f, at_take(f, x, AT_NIL, 0), AT_EARG, "take", "'indices'", "missing");
}

static void test_take_refuses_a_result_of_too_many_axes(at_frame *f)
{
    int64_t ones[AT_MAX_NDIM];
    for (int k = 0; k < AT_MAX_NDIM; k++) ones[k] = 1;
    at_array x = given(f, AT_INT8, SIZES(1, 1), VALUES(5));
    at_array i = given(f, AT_INT64, AT_MAX_NDIM, ones, VALUES(0));
    EXPECT_ERROR(f, at_take(f, x, i, 0), AT_ESHAPE, "take");
    at_array most = given(f, AT_INT64, AT_MAX_NDIM - 1, ones, VALUES(0));
    EXPECT(at_take(f, x, most, 0), AT_INT8, AT_MAX_NDIM, ones, VALUES(5));
}

/* --- repeat ---------------------------------------------------------------------------------- */

static void test_repeat_reads_its_length_from_the_repeats(at_frame *f)
{
    at_scalar s;
    at_array x = VEC(f, AT_FLOAT16, 1, 2, 3);
    for (int d = 0; d < COUNT_OF(every_integer); d++) {
        check_note = at_dtype_name(every_integer[d]);
        EXPECT(at_repeat(f, x, VEC(f, every_integer[d], 2, 0, 1), AT_NO_DIM, AT_NO_AXIS),
               AT_FLOAT16, SIZES(3), VALUES(1, 1, 3));
    }
    EXPECT(at_repeat(f, x, at_scalar_int(&s, 2), AT_NO_DIM, AT_NO_AXIS), AT_FLOAT16, SIZES(6),
           VALUES(1, 1, 2, 2, 3, 3));
    EXPECT(at_repeat(f, x, zero_d(f, AT_INT32, 2), AT_NO_DIM, 0), AT_FLOAT16, SIZES(6),
           VALUES(1, 1, 2, 2, 3, 3));
    EXPECT(at_repeat(f, x, at_scalar_int(&s, 0), AT_NO_DIM, 0), AT_FLOAT16, SIZES(0), NO_VALUES);
}

static void test_repeat_along_an_axis_and_flattened(at_frame *f)
{
    at_scalar s;
    at_array x = given(f, AT_INT32, SIZES(2, 2), VALUES(1, 2, 3, 4));
    EXPECT(at_repeat(f, x, VEC(f, AT_INT64, 1, 2), AT_NO_DIM, 0), AT_INT32, SIZES(3, 2),
           VALUES(1, 2, 3, 4, 3, 4));
    EXPECT(at_repeat(f, x, VEC(f, AT_INT64, 1, 2), AT_NO_DIM, -1), AT_INT32, SIZES(2, 3),
           VALUES(1, 2, 2, 3, 4, 4));
    EXPECT(at_repeat(f, x, at_scalar_int(&s, 2), AT_NO_DIM, AT_NO_AXIS), AT_INT32, SIZES(8),
           VALUES(1, 1, 2, 2, 3, 3, 4, 4));
    EXPECT(at_repeat(f, x, VEC(f, AT_INT64, 1, 0, 0, 2), AT_NO_DIM, AT_NO_AXIS), AT_INT32, SIZES(3),
           VALUES(1, 4, 4));
    EXPECT(at_repeat_each(f, x, VEC(f, AT_INT64, 0, 1), 0), AT_INT32, SIZES(1, 2), VALUES(3, 4));
}

static void test_repeat_with_a_total_cuts_and_fills_with_the_last(at_frame *f)
{
    at_scalar s;
    at_array x = VEC(f, AT_INT8, 1, 2, 3), r = VEC(f, AT_UINT8, 2, 1, 1);
    EXPECT(at_repeat(f, x, r, AT_DIM(4), AT_NO_AXIS), AT_INT8, SIZES(4), VALUES(1, 1, 2, 3));
    EXPECT(at_repeat(f, x, r, AT_DIM(2), AT_NO_AXIS), AT_INT8, SIZES(2), VALUES(1, 1));
    EXPECT(at_repeat(f, x, r, AT_DIM(7), AT_NO_AXIS), AT_INT8, SIZES(7),
           VALUES(1, 1, 2, 3, 3, 3, 3));
    EXPECT(at_repeat(f, x, r, AT_DIM(0), AT_NO_AXIS), AT_INT8, SIZES(0), NO_VALUES);
    EXPECT(at_repeat(f, x, at_scalar_int(&s, 2), AT_DIM(5), AT_NO_AXIS), AT_INT8, SIZES(5),
           VALUES(1, 1, 2, 2, 3));
    EXPECT(at_repeat(f, x, zero_d(f, AT_INT16, 2), AT_DIM(6), AT_NO_AXIS), AT_INT8, SIZES(6),
           VALUES(1, 1, 2, 2, 3, 3));
    for (int total = 0; total < 2; total++) {
        EXPECT(at_repeat(f, x, VEC(f, AT_INT8, 2), total ? AT_DIM(6) : AT_NO_DIM, AT_NO_AXIS),
               AT_INT8, SIZES(6), VALUES(1, 1, 2, 2, 3, 3));
    }
    at_array table = given(f, AT_FLOAT32, SIZES(2, 2), VALUES(1, 2, 3, 4));
    EXPECT(at_repeat(f, table, at_scalar_int(&s, 2), AT_DIM(8), AT_NO_AXIS), AT_FLOAT32, SIZES(8),
           VALUES(1, 1, 2, 2, 3, 3, 4, 4));
    at_array none = nothing_of(f, AT_INT8);
    EXPECT(at_repeat(f, none, at_scalar_int(&s, 2), AT_DIM(0), AT_NO_AXIS), AT_INT8, SIZES(0),
           NO_VALUES);
}

static void test_repeat_refuses_what_does_not_fit(at_frame *f)
{
    at_scalar s;
    at_array x = VEC(f, AT_INT8, 1, 2, 3), two = VEC(f, AT_INT64, 1, 2);
    at_array table = given(f, AT_INT64, SIZES(3, 1), VALUES(1, 1, 1));
    for (int total = 0; total < 2; total++) {
        at_dim length = total ? AT_DIM(3) : AT_NO_DIM;
        EXPECT_ERROR(f, at_repeat(f, x, two, length, AT_NO_AXIS), AT_ESHAPE, "repeat", "repeats");
        EXPECT_ERROR(f, at_repeat(f, x, table, length, AT_NO_AXIS), AT_ESHAPE, "repeat", "repeats");
        EXPECT_ERROR(f, at_repeat(f, x, VEC(f, AT_FLOAT32, 1, 1, 1), length, AT_NO_AXIS), AT_EDTYPE,
                     "repeat", "'repeats'", "float32");
        EXPECT_ERROR(f, at_repeat(f, x, AT_NIL, length, AT_NO_AXIS), AT_EARG, "repeat",
                     "'repeats'");
    }
    EXPECT_ERROR(f, at_repeat(f, x, VEC(f, AT_INT64, 1, -1, 1), AT_NO_DIM, 0), AT_EVALUE, "repeat",
                 "-1");
    EXPECT_ERROR(f, at_repeat(f, x, at_scalar_int(&s, -2), AT_NO_DIM, 0), AT_EVALUE, "repeat",
                 "-2");
    EXPECT_ERROR(f, at_repeat(f, x, two, AT_DIM(3), 0), AT_EUNSUPPORTED, "repeat", "axis");
    EXPECT_ERROR(f, at_repeat(f, x, two, AT_DIM(-3), AT_NO_AXIS), AT_EVALUE, "repeat", "-3");
    EXPECT_ERROR(f, at_repeat(f, x, at_scalar_int(&s, 1), AT_NO_DIM, 1), AT_EVALUE, "repeat",
                 "axis");
}

/* --- reshape --------------------------------------------------------------------------------- */

static void test_reshape_keeps_row_major_order(at_frame *f)
{
    at_array x = given(f, AT_INT8, SIZES(2, 3), VALUES(1, 2, 3, 4, 5, 6));
    EXPECT(at_reshape(f, x, SHAPE(3, 2)), AT_INT8, SIZES(3, 2), VALUES(1, 2, 3, 4, 5, 6));
    EXPECT(at_reshape(f, x, SHAPE(-1)), AT_INT8, SIZES(6), VALUES(1, 2, 3, 4, 5, 6));
    EXPECT(at_reshape(f, x, SHAPE(1, -1, 2, 1)), AT_INT8, SIZES(1, 3, 2, 1),
           VALUES(1, 2, 3, 4, 5, 6));
    EXPECT(at_reshape(f, VEC(f, AT_BOOL, 1), &no_axes), AT_BOOL, ZERO_D, VALUES(1));
    EXPECT(at_reshape(f, zero_d(f, AT_UINT64, 7), SHAPE(1, 1)), AT_UINT64, SIZES(1, 1), VALUES(7));
    EXPECT(at_reshape(f, zero_d(f, AT_UINT64, 7), SHAPE(-1)), AT_UINT64, SIZES(1), VALUES(7));
}

static void test_reshape_of_a_transposed_view(at_frame *f)
{
    double m[] = {1, 2, 3, 10, 20, 30};
    at_array x =
        at_native_wrap(f, AT_FLOAT64, SIZES(3, 2), (const int64_t[]){8, 24}, m, NULL, NULL);
    EXPECT(at_reshape(f, x, SHAPE(6)), AT_FLOAT64, SIZES(6), VALUES(1, 10, 2, 20, 3, 30));
    EXPECT(at_reshape(f, x, SHAPE(1, 3, 2)), AT_FLOAT64, SIZES(1, 3, 2),
           VALUES(1, 10, 2, 20, 3, 30));
}

static void test_reshape_of_nothing(at_frame *f)
{
    at_array x = given(f, AT_FLOAT32, SIZES(0, 3), NO_VALUES);
    EXPECT(at_reshape(f, x, SHAPE(3, 0)), AT_FLOAT32, SIZES(3, 0), NO_VALUES);
    EXPECT(at_reshape(f, x, SHAPE(-1, 3)), AT_FLOAT32, SIZES(0, 3), NO_VALUES);
    EXPECT(at_reshape(f, x, SHAPE(-1)), AT_FLOAT32, SIZES(0), NO_VALUES);
    EXPECT_ERROR(f, at_reshape(f, x, SHAPE(-1, 0)), AT_ESHAPE, "reshape");
    EXPECT_ERROR(f, at_reshape(f, x, &no_axes), AT_ESHAPE, "reshape");
}

static void test_a_reshape_result_outlives_its_operand(at_frame *up)
{
    at_frame frame, *f = at_enter(&frame, up);
    at_array x = VEC(f, AT_INT32, 1, 2, 3, 4);
    at_array y = at_leave(f, at_reshape(f, x, SHAPE(2, 2)));
    EXPECT(y, AT_INT32, SIZES(2, 2), VALUES(1, 2, 3, 4));
}

static void test_reshape_refuses_other_numbers_of_elements(at_frame *f)
{
    at_array x = VEC(f, AT_INT8, 1, 2, 3, 4, 5, 6);
    EXPECT_ERROR(f, at_reshape(f, x, SHAPE(4)), AT_ESHAPE, "reshape", "(6,)", "(4,)");
    EXPECT_ERROR(f, at_reshape(f, x, SHAPE(4, -1)), AT_ESHAPE, "reshape", "(6,)");
    EXPECT_ERROR(f, at_reshape(f, x, SHAPE(-1, -1)), AT_EVALUE, "reshape", "-1");
    EXPECT_ERROR(f, at_reshape(f, x, SHAPE(-2, 3)), AT_EVALUE, "reshape", "-2");
    EXPECT_ERROR(f, at_reshape(f, x, SHAPE(INT64_MAX, INT64_MAX, 6)), AT_ESHAPE, "reshape");
    EXPECT_ERROR(f, at_reshape(f, AT_NIL, SHAPE(4)), AT_EARG, "reshape", "'x'", "missing");
}

/* --- concatenate ----------------------------------------------------------------------------- */

static void test_concatenate_along_every_axis_for_every_dtype(at_frame *f)
{
    for (int d = 0; d < COUNT_OF(every_dtype); d++) {
        at_dtype t = every_dtype[d];
        check_note = at_dtype_name(t);
        at_array a[] = {given(f, t, SIZES(1, 2), VALUES(1, 0)),
                        given(f, t, SIZES(2, 2), VALUES(0, 1, 1, 1))};
        EXPECT(at_concatenate(f, (at_list){2, a}, 0), t, SIZES(3, 2), VALUES(1, 0, 0, 1, 1, 1));
        at_array b[] = {given(f, t, SIZES(2, 1), VALUES(1, 0)), a[1], a[1]};
        EXPECT(at_concatenate(f, (at_list){3, b}, 1), t, SIZES(2, 5),
               VALUES(1, 0, 1, 0, 1, 0, 1, 1, 1, 1));
        EXPECT(at_concatenate(f, (at_list){2, b}, -2 + 1), t, SIZES(2, 3),
               VALUES(1, 0, 1, 0, 1, 1));
        EXPECT(at_concatenate(f, (at_list){2, a}, AT_NO_AXIS), t, SIZES(6),
               VALUES(1, 0, 0, 1, 1, 1));
    }
}

static void test_concatenate_finds_the_common_dtype(at_frame *f)
{
    at_array a[] = {VEC(f, AT_INT8, 1), VEC(f, AT_BOOL, 1), VEC(f, AT_UINT8, 255),
                    nothing_of(f, AT_INT8)};
    EXPECT(at_concatenate(f, (at_list){4, a}, 0), AT_INT16, SIZES(3), VALUES(1, 1, 255));
    a[1] = VEC(f, AT_FLOAT16, 0.5);
    EXPECT(at_concatenate(f, (at_list){4, a}, 0), AT_FLOAT16, SIZES(3), VALUES(1, .5, 255));
}

static void test_concatenate_of_one_and_of_many(at_frame *f)
{
    at_array many[40];
    double want[40];
    for (int i = 0; i < 40; i++) {
        want[i] = i;
        many[i] = VEC(f, AT_INT32, i);
    }
    EXPECT(at_concatenate(f, (at_list){40, many}, 0), AT_INT32, SIZES(40), want);
    EXPECT(at_concatenate(f, (at_list){1, many}, 0), AT_INT32, SIZES(1), VALUES(0));
    at_array mixed[] = {zero_d(f, AT_INT32, 1), given(f, AT_INT32, SIZES(1, 2), VALUES(2, 3))};
    EXPECT(at_concatenate(f, (at_list){2, mixed}, AT_NO_AXIS), AT_INT32, SIZES(3), VALUES(1, 2, 3));
}

static void test_concatenate_refuses_what_does_not_fit(at_frame *f)
{
    at_array a[] = {given(f, AT_INT8, SIZES(1, 2), VALUES(1, 2)),
                    given(f, AT_INT8, SIZES(1, 3), VALUES(1, 2, 3))};
    at_array b[] = {a[0], VEC(f, AT_INT8, 1, 2)}, c[] = {a[0], AT_NIL},
             d[] = {zero_d(f, AT_INT8, 1)};
    EXPECT_ERROR(f, at_concatenate(f, (at_list){0, NULL}, 0), AT_EVALUE, "concatenate", "arrays");
    EXPECT_ERROR(f, at_concatenate(f, (at_list){2, a}, 0), AT_ESHAPE, "concatenate", "(1, 2)",
                 "(1, 3)");
    EXPECT_ERROR(f, at_concatenate(f, (at_list){2, b}, 0), AT_ESHAPE, "concatenate");
    EXPECT_ERROR(f, at_concatenate(f, (at_list){2, c}, 0), AT_EARG, "concatenate", "missing");
    EXPECT_ERROR(f, at_concatenate(f, (at_list){2, a}, 2), AT_EVALUE, "concatenate", "axis", "2");
    EXPECT_ERROR(f, at_concatenate(f, (at_list){2, a}, -3), AT_EVALUE, "concatenate", "axis", "-3");
    EXPECT_ERROR(f, at_concatenate(f, (at_list){1, d}, 0), AT_EVALUE, "concatenate");
}

static void test_joining_more_than_an_int64_counts_is_refused(at_frame *f)
{
    static char memory[1]; /* of zero strides: one element seen many times */
    at_array huge =
        at_native_wrap(f, AT_INT8, SIZES(INT64_MAX / 2), (const int64_t[]){0}, memory, NULL, NULL);
    at_array three[] = {(at_array){huge.p, given_be}, (at_array){huge.p, given_be},
                        (at_array){huge.p, given_be}};
    EXPECT_ERROR(f, at_concatenate(f, (at_list){3, three}, 0), AT_EVALUE, "concatenate",
                 "too large");
    EXPECT_ERROR(f, at_concatenate(f, (at_list){3, three}, AT_NO_AXIS), AT_EVALUE, "concatenate",
                 "too large");
}

/* --- astype ---------------------------------------------------------------------------------- */

static void test_astype_between_all_dtypes(at_frame *f)
{
    for (int a = 0; a < COUNT_OF(every_dtype); a++) {
        for (int b = 0; b < COUNT_OF(every_dtype); b++) {
            bool truth = every_dtype[a] == AT_BOOL || every_dtype[b] == AT_BOOL;
            char note[64];
            snprintf(note, sizeof note, "%s to %s", at_dtype_name(every_dtype[a]),
                     at_dtype_name(every_dtype[b]));
            check_note = note;
            at_array x = given(f, every_dtype[a], SIZES(2, 2), VALUES(0, 1, 2, 100));
            EXPECT(at_astype(f, x, every_dtype[b]), every_dtype[b], SIZES(2, 2),
                   truth ? VALUES(0, 1, 1, 1) : VALUES(0, 1, 2, 100));
            EXPECT(at_astype(f, nothing_of(f, every_dtype[a]), every_dtype[b]), every_dtype[b],
                   SIZES(0), NO_VALUES);
            check_note = "";
        }
    }
}

static void test_arrays_longer_than_a_block_move_whole(at_frame *f)
{
    enum { COUNT = 600 };
    static double x[COUNT], index[COUNT], back[COUNT];
    for (int i = 0; i < COUNT; i++) {
        x[i] = i % 90;
        index[i] = COUNT - 1 - i;
        back[i] = (COUNT - 1 - i) % 90;
    }
    at_array turn = given(f, AT_INT16, SIZES(COUNT), index);
    for (int a = 0; a < COUNT_OF(every_dtype); a++) {
        at_dtype t = every_dtype[a];
        if (t == AT_BOOL) continue;
        at_array v = given(f, t, SIZES(COUNT), x), column = given(f, t, SIZES(COUNT, 1), x);
        check_note = at_dtype_name(t);
        EXPECT(at_take(f, v, turn, 0), t, SIZES(COUNT), back);
        EXPECT(at_spread(f, column, turn), t, SIZES(COUNT, 1), back);
        EXPECT(at_take(f, at_reshape(f, v, SHAPE(1, COUNT)), turn, 1), t, SIZES(1, COUNT), back);
        for (int b = 0; b < COUNT_OF(every_dtype); b++)
            if (every_dtype[b] != AT_BOOL)
                EXPECT(at_astype(f, v, every_dtype[b]), every_dtype[b], SIZES(COUNT), x);
    }
}

static void test_astype_cuts_towards_zero_and_wraps_integers(at_frame *f)
{
    EXPECT(at_astype(f, VEC(f, AT_FLOAT64, 3.7, -3.7, 0.5), AT_INT8), AT_INT8, SIZES(3),
           VALUES(3, -3, 0));
    EXPECT(at_astype(f, VEC(f, AT_INT32, 300, -1, -129), AT_INT8), AT_INT8, SIZES(3),
           VALUES(44, -1, 127));
    EXPECT(at_astype(f, VEC(f, AT_INT32, 300, -1), AT_UINT8), AT_UINT8, SIZES(2), VALUES(44, 255));
    EXPECT(at_astype(f, VEC(f, AT_FLOAT32, NAN_, 0.1, -0.0), AT_BOOL), AT_BOOL, SIZES(3),
           VALUES(1, 1, 0));
}

static void test_astype_to_floats_rounds_and_overflows_to_infinity(at_frame *f)
{
    EXPECT(at_astype(f, VEC(f, AT_FLOAT64, 1e300, -1e300, NAN_), AT_FLOAT32), AT_FLOAT32, SIZES(3),
           VALUES(INF, -INF, NAN_));
    EXPECT(at_astype(f, VEC(f, AT_FLOAT32, 65519, 65520, -1e6), AT_FLOAT16), AT_FLOAT16, SIZES(3),
           VALUES(65504, INF, -INF));
    EXPECT(at_astype(f, VEC(f, AT_INT64, 2049, 2051), AT_FLOAT16), AT_FLOAT16, SIZES(2),
           VALUES(2048, 2052));
    const uint64_t top[] = {UINT64_MAX, UINT64_C(1) << 63};
    EXPECT(at_astype(f, at_native_copy(f, AT_UINT64, SIZES(2), top), AT_FLOAT64), AT_FLOAT64,
           SIZES(2), VALUES(0x1p64, 0x1p63));
    EXPECT_BYTES(at_astype(f, VEC(f, AT_FLOAT64, 0x1p63), AT_UINT64), uint64_t, UINT64_C(1) << 63);
}

static void test_wide_integers_move_between_each_other_without_loss(at_frame *f)
{
    const int64_t raw[] = {INT64_MAX, INT64_MIN, -1};
    at_array x = at_native_copy(f, AT_INT64, SIZES(3), raw);
    at_array y = at_astype(f, x, AT_UINT64);
    EXPECT_BYTES(y, uint64_t, INT64_MAX, UINT64_C(1) << 63, UINT64_MAX);
    EXPECT_BYTES(at_astype(f, y, AT_INT64), int64_t, INT64_MAX, INT64_MIN, -1);
}

static void test_astype_to_the_same_dtype_is_the_array_itself(at_frame *f)
{
    at_array x = VEC(f, AT_FLOAT32, 1, 2);
    CHECK(at_astype(f, x, AT_FLOAT32).p == x.p);
}

static void test_astype_refuses_what_is_no_dtype(at_frame *f)
{
    at_array x = VEC(f, AT_FLOAT32, 1, 2);
    at_array y = at_astype(f, x, AT_OTHER);
    CHECK(at_is_nil(y) && at_failed(f));
    at_clear(f->cx);
    y = at_astype(f, x, AT_NODTYPE);
    CHECK(at_is_nil(y) && at_failed(f));
    at_clear(f->cx);
    EXPECT_ERROR(f, at_astype(f, AT_NIL, AT_INT8), AT_EARG, "astype", "'x'", "missing");
}

/* --- transpose ------------------------------------------------------------------------------- */

static void test_transpose_reorders_axes_for_every_dtype(at_frame *f)
{
    for (int d = 0; d < COUNT_OF(every_dtype); d++) {
        check_note = at_dtype_name(every_dtype[d]);
        at_array x = given(f, every_dtype[d], SIZES(2, 1, 2), VALUES(0, 1, 1, 1));
        EXPECT(at_transpose(f, x, AT_ALL_AXES), every_dtype[d], SIZES(2, 1, 2), VALUES(0, 1, 1, 1));
        const at_axes turned = {.count = 3, .axis = {-1, 0, 1}};
        EXPECT(at_transpose(f, x, turned), every_dtype[d], SIZES(2, 2, 1), VALUES(0, 1, 1, 1));
    }
    at_array x = given(f, AT_INT16, SIZES(2, 3), VALUES(1, 2, 3, 4, 5, 6));
    EXPECT(at_transpose(f, x, AT_ALL_AXES), AT_INT16, SIZES(3, 2), VALUES(1, 4, 2, 5, 3, 6));
    EXPECT(at_transpose(f, zero_d(f, AT_INT8, 3), AT_ALL_AXES), AT_INT8, ZERO_D, VALUES(3));
    at_array none = given(f, AT_INT8, SIZES(2, 0), NO_VALUES);
    EXPECT(at_transpose(f, none, AT_ALL_AXES), AT_INT8, SIZES(0, 2), NO_VALUES);
}

static void test_transpose_refuses_what_is_no_permutation(at_frame *f)
{
    at_array x = given(f, AT_INT16, SIZES(2, 1), VALUES(1, 2));
    static const at_axes bad[] = {{.count = 1, .axis = {0}},
                                  {.count = 3, .axis = {0, 1, 2}},
                                  {.count = 2, .axis = {0, 0}},
                                  {.count = 2, .axis = {1, -1}},
                                  {.count = 2, .axis = {0, 2}},
                                  {.count = 2, .axis = {-3, 0}},
                                  {.count = 0}};
    for (int i = 0; i < COUNT_OF(bad); i++)
        EXPECT_ERROR(f, at_transpose(f, x, bad[i]), AT_EVALUE, "transpose", "'axes'", "2 axes");
}

/* --- slice and split ------------------------------------------------------------------------- */

static void test_slice_follows_pythons_rule(at_frame *f)
{
    at_array x = VEC(f, AT_FLOAT32, 0, 1, 2, 3);
    EXPECT(at_slice(f, x, AT_DIM(1), AT_DIM(3), 0), AT_FLOAT32, SIZES(2), VALUES(1, 2));
    EXPECT(at_slice(f, x, AT_DIM(-2), AT_DIM(99), -1), AT_FLOAT32, SIZES(2), VALUES(2, 3));
    EXPECT(at_slice(f, x, AT_DIM(-99), AT_DIM(-3), 0), AT_FLOAT32, SIZES(1), VALUES(0));
    EXPECT(at_slice(f, x, AT_DIM(3), AT_DIM(1), 0), AT_FLOAT32, SIZES(0), NO_VALUES);
    EXPECT(at_slice(f, x, AT_DIM(2), AT_NO_DIM, 0), AT_FLOAT32, SIZES(2), VALUES(2, 3));
    at_array rows = given(f, AT_INT8, SIZES(2, 3), VALUES(1, 2, 3, 4, 5, 6));
    EXPECT(at_slice(f, rows, AT_DIM(1), AT_DIM(3), 1), AT_INT8, SIZES(2, 2), VALUES(2, 3, 5, 6));
    EXPECT_ERROR(f, at_slice(f, x, AT_DIM(0), AT_DIM(1), 1), AT_EVALUE, "slice", "'axis'", "1");
    EXPECT_ERROR(f, at_slice(f, x, AT_DIM(0), AT_DIM(1), AT_NO_AXIS), AT_EARG, "slice", "'axis'");
}

/* All parts of a split in one vector, 99 behind each. */
static at_array joined(at_frame *f, at_list parts)
{
    at_array piece[64];
    for (int i = 0; i < parts.count && 2 * i + 1 < COUNT_OF(piece); i++) {
        piece[2 * i] = parts.array[i];
        piece[2 * i + 1] = VEC(f, at_native_dtype(parts.array[i]), 99);
    }
    return at_concatenate(f, (at_list){2 * parts.count, piece}, AT_NO_AXIS);
}

static void test_split_into_equal_sections_for_every_dtype(at_frame *f)
{
    for (int d = 0; d < COUNT_OF(every_dtype); d++) {
        check_note = at_dtype_name(every_dtype[d]);
        at_list parts = at_split(f, VEC(f, every_dtype[d], 1, 0, 0, 1), AT_SECTIONS(2), 0);
        CHECK(parts.count == 2);
        EXPECT(parts.array[0], every_dtype[d], SIZES(2), VALUES(1, 0));
        EXPECT(parts.array[1], every_dtype[d], SIZES(2), VALUES(0, 1));
    }
    at_array x = given(f, AT_INT32, SIZES(2, 2), VALUES(1, 2, 3, 4));
    at_list columns = at_split(f, x, AT_SECTIONS(2), -1);
    EXPECT(columns.array[1], AT_INT32, SIZES(2, 1), VALUES(2, 4));
    CHECK(at_split(f, nothing_of(f, AT_INT8), AT_SECTIONS(3), 0).count == 3);
}

static void test_split_before_indices_follows_pythons_slice_rule(at_frame *f)
{
    at_array x = VEC(f, AT_INT32, 1, 2, 3, 4);
    const at_dim cuts[] = {AT_DIM(1), AT_DIM(-1), AT_DIM(2), AT_DIM(77)};
    at_list parts = at_split(f, x, AT_CUTS(4, cuts), 0);
    CHECK(parts.count == 5);
    EXPECT(joined(f, parts), AT_INT32, SIZES(10), VALUES(1, 99, 2, 3, 99, 99, 3, 4, 99, 99));
    parts = at_split(f, x, AT_CUTS(0, NULL), 0);
    CHECK(parts.count == 1);
    EXPECT(parts.array[0], AT_INT32, SIZES(4), VALUES(1, 2, 3, 4));
}

static void test_parts_outlive_what_they_were_cut_from(at_frame *up)
{
    at_frame frame, *f = at_enter(&frame, up);
    at_list parts = at_split(f, VEC(f, AT_INT8, 1, 2), AT_SECTIONS(2), 0);
    at_array last = at_leave(f, parts.array[1]);
    EXPECT(last, AT_INT8, SIZES(1), VALUES(2));
}

static void test_split_refuses_what_does_not_fit(at_frame *f)
{
    at_array x = VEC(f, AT_INT8, 1, 2, 3);
    static const int64_t bad[] = {0, -1, 2, 4, INT64_MAX};
    for (int i = 0; i < COUNT_OF(bad); i++) {
        at_list parts = at_split(f, x, AT_SECTIONS(bad[i]), 0);
        CHECK(parts.count == 0 && parts.array == NULL);
        EXPECT_ERROR(f, AT_NIL, AT_EVALUE, "split", "'indices_or_sections'", "section");
    }
    CHECK(at_split(f, x, AT_SECTIONS(1), 1).count == 0);
    EXPECT_ERROR(f, AT_NIL, AT_EVALUE, "split", "'axis'", "1");
    CHECK(at_split(f, AT_NIL, AT_SECTIONS(1), 0).count == 0);
    EXPECT_ERROR(f, AT_NIL, AT_EARG, "split", "'x'", "missing");
}

/* --- stack ----------------------------------------------------------------------------------- */

static void test_stack_along_every_axis(at_frame *f)
{
    at_array x = VEC(f, AT_INT8, 1, 2), y = VEC(f, AT_INT16, 3, 4);
    const at_list both = {2, (at_array[]){x, y}};
    EXPECT(at_stack(f, both, 0), AT_INT16, SIZES(2, 2), VALUES(1, 2, 3, 4));
    EXPECT(at_stack(f, both, 1), AT_INT16, SIZES(2, 2), VALUES(1, 3, 2, 4));
    EXPECT(at_stack(f, both, -1), AT_INT16, SIZES(2, 2), VALUES(1, 3, 2, 4));
    const at_list single = {1, (at_array[]){zero_d(f, AT_FLOAT32, 5)}};
    EXPECT(at_stack(f, single, 0), AT_FLOAT32, SIZES(1), VALUES(5));
}

static void test_stack_refuses_what_does_not_fit(at_frame *f)
{
    at_array x = VEC(f, AT_INT8, 1, 2), y = VEC(f, AT_INT8, 3);
    const at_list both = {2, (at_array[]){x, y}}, single = {1, &x};
    EXPECT_ERROR(f, at_stack(f, both, 0), AT_ESHAPE, "stack", "'arrays'", "(2,)", "(1,)");
    EXPECT_ERROR(f, at_stack(f, single, 2), AT_EVALUE, "stack", "'axis'", "2");
    EXPECT_ERROR(f, at_stack(f, single, AT_NO_AXIS), AT_EARG, "stack", "'axis'");
    EXPECT_ERROR(f, at_stack(f, (at_list){0, NULL}, 0), AT_EVALUE, "stack", "at least one");
}

int main(int argc, char **argv)
{
    static const test tests[] = {
        TEST(test_take_for_every_dtype_and_index_dtype),
        TEST(test_negative_indices_count_from_the_end),
        TEST(test_take_along_every_axis_with_indices_of_every_rank),
        TEST(test_take_of_nothing),
        TEST(test_indices_out_of_range_are_refused),
        TEST(test_take_refuses_what_is_no_index_and_no_axis),
        TEST(test_take_refuses_a_result_of_too_many_axes),
        TEST(test_repeat_reads_its_length_from_the_repeats),
        TEST(test_repeat_along_an_axis_and_flattened),
        TEST(test_repeat_with_a_total_cuts_and_fills_with_the_last),
        TEST(test_repeat_refuses_what_does_not_fit),
        TEST(test_reshape_keeps_row_major_order),
        TEST(test_reshape_of_a_transposed_view),
        TEST(test_reshape_of_nothing),
        TEST(test_a_reshape_result_outlives_its_operand),
        TEST(test_reshape_refuses_other_numbers_of_elements),
        TEST(test_transpose_reorders_axes_for_every_dtype),
        TEST(test_transpose_refuses_what_is_no_permutation),
        TEST(test_slice_follows_pythons_rule),
        TEST(test_split_into_equal_sections_for_every_dtype),
        TEST(test_split_before_indices_follows_pythons_slice_rule),
        TEST(test_parts_outlive_what_they_were_cut_from),
        TEST(test_split_refuses_what_does_not_fit),
        TEST(test_stack_along_every_axis),
        TEST(test_stack_refuses_what_does_not_fit),
        TEST(test_concatenate_along_every_axis_for_every_dtype),
        TEST(test_concatenate_finds_the_common_dtype),
        TEST(test_concatenate_of_one_and_of_many),
        TEST(test_concatenate_refuses_what_does_not_fit),
        TEST(test_joining_more_than_an_int64_counts_is_refused),
        TEST(test_astype_between_all_dtypes),
        TEST(test_arrays_longer_than_a_block_move_whole),
        TEST(test_astype_cuts_towards_zero_and_wraps_integers),
        TEST(test_astype_to_floats_rounds_and_overflows_to_infinity),
        TEST(test_wide_integers_move_between_each_other_without_loss),
        TEST(test_astype_to_the_same_dtype_is_the_array_itself),
        TEST(test_astype_refuses_what_is_no_dtype),
    };
    return RUN(tests, both_ways, argc, argv);
}
