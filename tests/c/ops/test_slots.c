/* The blocks that segment formulas are made of. */
#include "fixture.h"

#define INF ((double)INFINITY)
#define NAN_ ((double)NAN)

static void test_slot_ids_cleans_ids_of_every_dtype(at_frame *f)
{
    for (int d = 0; d < COUNT_OF(every_integer); d++) {
        at_dtype t = every_integer[d];
        at_array ids = kind_of(t) == 'i' ? VEC(f, t, 0, 2, 3, -1, 100, -128)
                                         : VEC(f, t, 0, 2, 3, 255, 100, 128);
        check_note = at_dtype_name(t);
        at_array clean = at_slot_ids(f, ids, AT_DIM(3));
        if (!CHECK(!at_is_nil(clean) && kind_of(at_native_dtype(clean)) == 'i')) continue;
        EXPECT(clean, at_native_dtype(clean), SIZES(6), VALUES(0, 2, 3, 3, 3, 3));
        EXPECT(at_slot_kept(f, clean, AT_DIM(3)), AT_BOOL, SIZES(6), VALUES(1, 1, 0, 0, 0, 0));
    }
}

static void test_slot_ids_are_wide_enough_for_the_number_of_segments(at_frame *f)
{
    at_array ids = VEC(f, AT_INT8, 127, -1);
    at_array clean = at_slot_ids(f, ids, AT_DIM(100000));
    EXPECT(clean, at_native_dtype(clean), SIZES(2), VALUES(127, 100000));
    clean = at_slot_ids(f, VEC(f, AT_UINT8, 200, 255), AT_DIM(128));
    EXPECT(clean, at_native_dtype(clean), SIZES(2), VALUES(128, 128));
}

static void test_slot_count_counts(at_frame *f)
{
    EXPECT(at_slot_count(f, VEC(f, AT_INT64, 2, 0, 2, 2), AT_DIM(4)), AT_INT64, SIZES(4),
           VALUES(1, 0, 3, 0));
    EXPECT(at_slot_count(f, nothing_of(f, AT_INT64), AT_DIM(2)), AT_INT64, SIZES(2), VALUES(0, 0));
}

static void test_slot_sum_min_max_prod(at_frame *f)
{
    at_array x = given(f, AT_FLOAT32, SIZES(3, 2), VALUES(1, -2, 3, NAN_, 5, 6)),
             ids = VEC(f, AT_INT64, 0, 2, 0);
    EXPECT(at_slot_sum(f, x, ids, AT_DIM(3)), AT_FLOAT32, SIZES(3, 2), VALUES(6, 4, 0, 0, 3, NAN_));
    EXPECT(at_slot_min(f, x, ids, AT_DIM(3)), AT_FLOAT32, SIZES(3, 2),
           VALUES(1, -2, INF, INF, 3, NAN_));
    EXPECT(at_slot_max(f, x, ids, AT_DIM(3)), AT_FLOAT32, SIZES(3, 2),
           VALUES(5, 6, -INF, -INF, 3, NAN_));
    EXPECT(at_slot_prod(f, x, ids, AT_DIM(3)), AT_FLOAT32, SIZES(3, 2),
           VALUES(5, -12, 1, 1, 3, NAN_));
}

static void test_spread_takes_rows_by_slot(at_frame *f)
{
    for (int d = 0; d < COUNT_OF(every_dtype); d++) {
        at_array x = given(f, every_dtype[d], SIZES(2, 2), VALUES(1, 0, 0, 1));
        EXPECT(at_spread(f, x, VEC(f, AT_INT32, 1, 1, 0)), every_dtype[d], SIZES(3, 2),
               VALUES(0, 1, 0, 1, 1, 0));
    }
}

static void test_head_is_the_first_rows(at_frame *f)
{
    for (int d = 0; d < COUNT_OF(every_dtype); d++) {
        at_array x = given(f, every_dtype[d], SIZES(3, 2), VALUES(1, 0, 0, 1, 1, 1));
        EXPECT(at_head(f, x, AT_DIM(2)), every_dtype[d], SIZES(2, 2), VALUES(1, 0, 0, 1));
        EXPECT(at_head(f, x, AT_DIM(0)), every_dtype[d], SIZES(0, 2), NO_VALUES);
        EXPECT(at_head(f, x, AT_DIM(3)), every_dtype[d], SIZES(3, 2), VALUES(1, 0, 0, 1, 1, 1));
    }
}

/* Nobody outside the library should call these with arguments that do not fit; if so, they say it. */
static void test_slots_refuse_what_does_not_fit(at_frame *f)
{
    at_array x = given(f, AT_FLOAT32, SIZES(2, 1), VALUES(1, 2)), ids = VEC(f, AT_INT64, 0, 1, 1);
    at_array table = given(f, AT_INT64, SIZES(2, 1), VALUES(0, 1)),
             point = zero_d(f, AT_FLOAT32, 1);
    typedef at_array slot(at_frame * f, at_array x, at_array slot_ids, at_dim slots);
    static slot *const folds[] = {at_slot_sum, at_slot_min, at_slot_max, at_slot_prod};
    for (int i = 0; i < COUNT_OF(folds); i++) {
        EXPECT_ERROR(f, folds[i](f, x, ids, AT_DIM(2)), AT_ESHAPE, "slot_", "(2, 1)", "(3,)");
        EXPECT_ERROR(f, folds[i](f, x, table, AT_DIM(2)), AT_ESHAPE, "slot_", "(2, 1)");
        EXPECT_ERROR(f, folds[i](f, point, ids, AT_DIM(2)), AT_ESHAPE, "slot_", "()");
        EXPECT_ERROR(f, folds[i](f, x, VEC(f, AT_INT64, 0, 1), AT_DIM(-1)), AT_EVALUE, "slot_",
                     "-1");
        EXPECT_ERROR(f, folds[i](f, x, VEC(f, AT_INT64, 0, 1), AT_NO_DIM), AT_EARG, "slot_");
        EXPECT_ERROR(f, folds[i](f, x, VEC(f, AT_FLOAT32, 0, 1), AT_DIM(2)), AT_EDTYPE, "slot_");
    }
    EXPECT_ERROR(f, at_slot_ids(f, table, AT_DIM(2)), AT_ESHAPE, "slot_ids", "(2, 1)");
    EXPECT_ERROR(f, at_slot_ids(f, ids, AT_DIM(-2)), AT_EVALUE, "slot_ids", "-2");
    EXPECT_ERROR(f, at_slot_kept(f, table, AT_DIM(2)), AT_ESHAPE, "slot_kept", "(2, 1)");
    EXPECT_ERROR(f, at_slot_count(f, table, AT_DIM(2)), AT_ESHAPE, "slot_count", "(2, 1)");
    EXPECT_ERROR(f, at_slot_count(f, ids, AT_DIM(-2)), AT_EVALUE, "slot_count", "-2");
    EXPECT_ERROR(f, at_spread(f, point, ids), AT_ESHAPE, "spread", "()");
    EXPECT_ERROR(f, at_spread(f, x, table), AT_ESHAPE, "spread", "(2, 1)");
    EXPECT_ERROR(f, at_head(f, x, AT_DIM(3)), AT_ESHAPE, "head", "(2, 1)", "3");
    EXPECT_ERROR(f, at_head(f, point, AT_DIM(0)), AT_ESHAPE, "head", "()");
    EXPECT_ERROR(f, at_head(f, x, AT_DIM(-1)), AT_EVALUE, "head", "-1");
}

static void test_a_slot_id_out_of_range_reads_and_writes_nothing(at_frame *f)
{
    at_array x = given(f, AT_FLOAT32, SIZES(2, 1), VALUES(1, 2)), ids = VEC(f, AT_INT64, 1, 5, -1);
    EXPECT(at_spread(f, x, ids), AT_FLOAT32, SIZES(3, 1), VALUES(2, 0, 0));
    EXPECT(at_slot_sum(f, VEC(f, AT_INT8, 1, 2, 3), ids, AT_DIM(2)), AT_INT8, SIZES(2),
           VALUES(0, 1));
    EXPECT(at_slot_count(f, ids, AT_DIM(2)), AT_INT64, SIZES(2), VALUES(0, 1));
}

int main(int argc, char **argv)
{
    static const test tests[] = {
        TEST(test_slot_ids_cleans_ids_of_every_dtype),
        TEST(test_slot_ids_are_wide_enough_for_the_number_of_segments),
        TEST(test_slot_count_counts),
        TEST(test_slot_sum_min_max_prod),
        TEST(test_spread_takes_rows_by_slot),
        TEST(test_head_is_the_first_rows),
        TEST(test_slots_refuse_what_does_not_fit),
        TEST(test_a_slot_id_out_of_range_reads_and_writes_nothing),
    };
    return RUN(tests, both_ways, argc, argv);
}
