/* Partitions: segments given by their lengths. */
#include <string.h>

#include "fixture.h"

#define INF ((double)INFINITY)
#define NAN_ ((double)NAN)

static void test_partition_ids_repeat_each_index_by_its_length(at_frame *f)
{
    for (int d = 0; d < COUNT_OF(every_integer); d++) {
        check_note = at_dtype_name(every_integer[d]);
        at_array lengths = VEC(f, every_integer[d], 2, 0, 3, 1);
        EXPECT(at_partition_ids(f, lengths, AT_DIM(6)), AT_INT64, SIZES(6),
               VALUES(0, 0, 2, 2, 2, 3));
    }
}

static void test_partition_ids_start_and_end_with_empty_partitions(at_frame *f)
{
    at_array lengths = VEC(f, AT_INT32, 0, 0, 2, 0, 1, 0, 0);
    EXPECT(at_partition_ids(f, lengths, AT_DIM(3)), AT_INT64, SIZES(3), VALUES(2, 2, 4));
}

static void test_partition_ids_of_nothing_are_empty(at_frame *f)
{
    EXPECT(at_partition_ids(f, nothing_of(f, AT_INT64), AT_DIM(0)), AT_INT64, SIZES(0), NO_VALUES);
    EXPECT(at_partition_ids(f, VEC(f, AT_INT8, 0, 0), AT_DIM(0)), AT_INT64, SIZES(0), NO_VALUES);
}

static void test_partition_ids_of_small_dtypes_do_not_wrap(at_frame *f)
{
    double want[400];
    for (int i = 0; i < 400; i++) want[i] = i / 100;
    at_array lengths = VEC(f, AT_INT8, 100, 100, 100, 100);
    EXPECT(at_partition_ids(f, lengths, AT_DIM(400)), AT_INT64, SIZES(400), want);
    for (int i = 0; i < 256; i++) want[i] = i >= 200;
    at_array wide = VEC(f, AT_UINT8, 200, 56);
    EXPECT(at_partition_ids(f, wide, AT_DIM(256)), AT_INT64, SIZES(256), want);
}

static void test_partition_reductions_agree_with_plain_loops_for_every_dtype(at_frame *f)
{
    for (int d = 0; d < COUNT_OF(every_dtype); d++) {
        at_dtype t = every_dtype[d];
        bool b = t == AT_BOOL;
        check_note = at_dtype_name(t);
        at_array x = given(f, t, SIZES(4, 2), VALUES(1, 2, 3, 0, 0, 5, 1, 1));
        at_array lengths = VEC(f, AT_INT64, 2, 1, 1);
        EXPECT(at_partition_sum(f, x, lengths, AT_DIM(4)), b ? AT_INT64 : t, SIZES(3, 2),
               b ? VALUES(2, 1, 0, 1, 1, 1) : VALUES(4, 2, 0, 5, 1, 1));
        EXPECT(at_partition_max(f, x, lengths, AT_DIM(4)), t, SIZES(3, 2),
               b ? VALUES(1, 1, 0, 1, 1, 1) : VALUES(3, 2, 0, 5, 1, 1));
        EXPECT(at_partition_min(f, x, lengths, AT_DIM(4)), t, SIZES(3, 2),
               b ? VALUES(1, 0, 0, 1, 1, 1) : VALUES(1, 0, 0, 5, 1, 1));
        double e = exp(2), g = exp(-2), h = exp(1), i = exp(-1);
        EXPECT(at_partition_softmax(f, x, lengths, AT_DIM(4)), kind_of(t) == 'f' ? t : AT_FLOAT64,
               SIZES(4, 2),
               b ? VALUES(.5, h / (1 + h), .5, i / (1 + i), 1, 1, 1, 1)
                 : VALUES(g / (1 + g), e / (1 + e), 1 / (1 + g), 1 / (1 + e), 1, 1, 1, 1));
    }
}

static void test_empty_partitions_hold_the_identities(at_frame *f)
{
    at_array x = VEC(f, AT_FLOAT32, 5), lengths = VEC(f, AT_INT64, 0, 1, 0);
    EXPECT(at_partition_sum(f, x, lengths, AT_DIM(1)), AT_FLOAT32, SIZES(3), VALUES(0, 5, 0));
    EXPECT(at_partition_max(f, x, lengths, AT_DIM(1)), AT_FLOAT32, SIZES(3), VALUES(-INF, 5, -INF));
    EXPECT(at_partition_min(f, x, lengths, AT_DIM(1)), AT_FLOAT32, SIZES(3), VALUES(INF, 5, INF));
}

static void test_partition_reductions_work_without_rows_columns_or_partitions(at_frame *f)
{
    at_array none = nothing_of(f, AT_INT64), x = nothing_of(f, AT_FLOAT32);
    at_array two = VEC(f, AT_INT64, 0, 0), thin = given(f, AT_INT8, SIZES(3, 0), NO_VALUES);
    EXPECT(at_partition_sum(f, x, none, AT_DIM(0)), AT_FLOAT32, SIZES(0), NO_VALUES);
    EXPECT(at_partition_sum(f, x, two, AT_DIM(0)), AT_FLOAT32, SIZES(2), VALUES(0, 0));
    EXPECT(at_partition_max(f, x, two, AT_DIM(0)), AT_FLOAT32, SIZES(2), VALUES(-INF, -INF));
    EXPECT(at_partition_softmax(f, x, two, AT_DIM(0)), AT_FLOAT32, SIZES(0), NO_VALUES);
    EXPECT(at_partition_min(f, thin, VEC(f, AT_INT64, 1, 2), AT_DIM(3)), AT_INT8, SIZES(2, 0),
           NO_VALUES);
}

static void test_nan_spoils_its_own_partition(at_frame *f)
{
    at_array x = VEC(f, AT_FLOAT64, 1, NAN_, 2, 2), lengths = VEC(f, AT_UINT32, 2, 2);
    EXPECT(at_partition_sum(f, x, lengths, AT_DIM(4)), AT_FLOAT64, SIZES(2), VALUES(NAN_, 4));
    EXPECT(at_partition_max(f, x, lengths, AT_DIM(4)), AT_FLOAT64, SIZES(2), VALUES(NAN_, 2));
    EXPECT(at_partition_softmax(f, x, lengths, AT_DIM(4)), AT_FLOAT64, SIZES(4),
           VALUES(NAN_, NAN_, .5, .5));
}

/* --- errors ---------------------------------------------------------------------------------- */

typedef at_array reduction(at_frame *f, at_array x, at_array partitions, at_dim total_length);

static const struct {
    const char *name;
    reduction *call;
} reductions[] = {{"partition_sum", at_partition_sum},
                  {"partition_min", at_partition_min},
                  {"partition_max", at_partition_max},
                  {"partition_softmax", at_partition_softmax}};

/* Makes all five fail in the same way. */
static void all_fail(at_frame *f, at_array partitions, at_dim total, at_status status,
                     const char *argument, const char *found)
{
    at_array x = VEC(f, AT_FLOAT32, 1, 2, 3);
    EXPECT_ERROR(f, at_partition_ids(f, partitions, total), status, "partition_ids", argument,
                 found);
    for (int i = 0; i < COUNT_OF(reductions); i++) {
        check_note = reductions[i].name;
        EXPECT_ERROR(f, reductions[i].call(f, x, partitions, total), status, reductions[i].name,
                     argument, found);
    }
    check_note = "";
}

static void test_a_total_other_than_the_sum_is_refused(at_frame *f)
{
    at_array lengths = VEC(f, AT_INT64, 1, 2);
    all_fail(f, lengths, AT_DIM(4), AT_EVALUE, "total_length", "4");
    all_fail(f, lengths, AT_DIM(2), AT_EVALUE, "total_length", "3");
    all_fail(f, nothing_of(f, AT_INT64), AT_DIM(1), AT_EVALUE, "total_length", "1");
}

static void test_a_negative_length_is_refused(at_frame *f)
{
    all_fail(f, VEC(f, AT_INT64, 4, -1), AT_DIM(3), AT_EVALUE, "partitions", "-1");
    all_fail(f, VEC(f, AT_INT8, -128, 127, 4), AT_DIM(3), AT_EVALUE, "partitions", "-128");
}

static void test_a_negative_or_missing_total_is_refused(at_frame *f)
{
    at_array lengths = VEC(f, AT_INT64, 1, 2);
    all_fail(f, lengths, AT_DIM(-2), AT_EVALUE, "total_length", "-2");
    all_fail(f, lengths, AT_NO_DIM, AT_EARG, "total_length", "missing");
}

static void test_partitions_must_be_integral(at_frame *f)
{
    all_fail(f, VEC(f, AT_FLOAT32, 1, 2), AT_DIM(3), AT_EDTYPE, "partitions", "float32");
    all_fail(f, VEC(f, AT_BOOL, 1, 1), AT_DIM(2), AT_EDTYPE, "partitions", "bool");
}

static void test_partitions_must_be_a_vector(at_frame *f)
{
    at_scalar s;
    all_fail(f, given(f, AT_INT64, SIZES(1, 2), VALUES(1, 2)), AT_DIM(3), AT_ESHAPE, "partitions",
             "(1, 2)");
    all_fail(f, zero_d(f, AT_INT64, 3), AT_DIM(3), AT_ESHAPE, "partitions", "()");
    all_fail(f, at_scalar_int(&s, 3), AT_DIM(3), AT_ESHAPE, "partitions", "()");
}

static void test_missing_partitions_are_named(at_frame *f)
{
    all_fail(f, AT_NIL, AT_DIM(3), AT_EARG, "partitions", "missing");
}

static void test_rows_must_be_as_many_as_the_total(at_frame *f)
{
    at_array x = given(f, AT_FLOAT32, SIZES(2, 1), VALUES(1, 2)), lengths = VEC(f, AT_INT64, 1, 2);
    for (int i = 0; i < COUNT_OF(reductions); i++) {
        check_note = reductions[i].name;
        EXPECT_ERROR(f, reductions[i].call(f, x, lengths, AT_DIM(3)), AT_ESHAPE, reductions[i].name,
                     "(2, 1)", "3");
        EXPECT_ERROR(f, reductions[i].call(f, zero_d(f, AT_INT8, 1), lengths, AT_DIM(3)), AT_ESHAPE,
                     reductions[i].name);
    }
}

static void test_lengths_whose_sum_overflows_are_refused(at_frame *f)
{
    const uint64_t raw[] = {UINT64_MAX, 4};
    at_array lengths = at_native_copy(f, AT_UINT64, SIZES(2), raw);
    at_array ids = at_partition_ids(f, lengths, AT_DIM(3));
    CHECK(at_is_nil(ids) && f->cx->status == AT_EVALUE);
    at_clear(f->cx);
    const int64_t big[] = {INT64_MAX, INT64_MAX, 5};
    lengths = at_native_copy(f, AT_INT64, SIZES(3), big);
    CHECK(at_is_nil(at_partition_ids(f, lengths, AT_DIM(3))) && f->cx->status == AT_EVALUE);
    at_clear(f->cx);
}

/* --- a framework whose values cannot be read ------------------------------------------------- */

static at_backend blind; /* native arrays whose values nobody peeks at */

static at_array blinded(at_array a) { return (at_array){a.p, &blind}; }

/* Results keep the native backend: only the operand that is peeked at matters. */
static at_array blind_ids(at_frame *f, at_array lengths, int64_t total)
{
    blind = *at_native();
    blind.peek = NULL;
    at_array ids = at_partition_ids(f, blinded(lengths), AT_DIM(total));
    return at_is_nil(ids) ? ids : (at_array){ids.p, at_native()};
}

static void test_an_unread_total_beyond_the_sum_is_filled_with_an_id_that_is_dropped(at_frame *f)
{
    at_array lengths = VEC(f, AT_INT64, 1, 0, 2);
    EXPECT(blind_ids(f, lengths, 6), AT_INT64, SIZES(6), VALUES(0, 2, 2, 3, 3, 3));
}

static void test_an_unread_total_below_the_sum_cuts(at_frame *f)
{
    at_array lengths = VEC(f, AT_INT64, 1, 3, 2);
    EXPECT(blind_ids(f, lengths, 3), AT_INT64, SIZES(3), VALUES(0, 1, 1));
    EXPECT(blind_ids(f, lengths, 0), AT_INT64, SIZES(0), NO_VALUES);
}

/* --- the memo of a context ----------------------------------------------------------------------------- */

static struct {
    at_array ids; /* what find gives; nil: nothing */
    at_status fails_to_find, fails_to_keep;
    int found, kept;
} memory;

static at_status recall(at_context *cx, at_array partitions, at_dim total, at_array *out)
{
    (void)partitions;
    (void)total;
    memory.found++;
    if (memory.fails_to_find != AT_OK) return at_error(cx, memory.fails_to_find, "no finding");
    at_retain(memory.ids);
    *out = memory.ids;
    return AT_OK;
}

static at_status remember(at_context *cx, at_array partitions, at_array ids)
{
    (void)partitions;
    memory.kept += !at_is_nil(ids);
    return memory.fails_to_keep == AT_OK ? AT_OK : at_error(cx, memory.fails_to_keep, "no keeping");
}

static const at_memo memo = {recall, remember};

static void all_five(at_frame *f, at_array lengths, bool fail)
{
    at_array x = VEC(f, AT_FLOAT32, 1, 2, 4);
    CHECK(at_is_nil(at_partition_ids(f, lengths, AT_DIM(3))) == fail);
    for (int i = 0; i < COUNT_OF(reductions); i++) {
        if (fail) at_clear(f->cx);
        CHECK(at_is_nil(reductions[i].call(f, x, lengths, AT_DIM(3))) == fail);
    }
}

static void test_a_memo_is_asked_once_per_call_and_given_what_it_lacks(at_frame *f)
{
    at_array lengths = VEC(f, AT_INT64, 1, 2);
    memset(&memory, 0, sizeof memory);
    f->cx->memo = &memo;
    all_five(f, lengths, false);
    CHECK(memory.found == 1 + COUNT_OF(reductions) && memory.kept == memory.found);
    memory.ids = VEC(f, AT_INT64, 0, 0, 1);
    EXPECT(at_partition_sum(f, VEC(f, AT_FLOAT32, 1, 2, 4), lengths, AT_DIM(3)), AT_FLOAT32,
           SIZES(2), VALUES(3, 4));
    CHECK(at_partition_ids(f, lengths, AT_DIM(3)).p == memory.ids.p);
    CHECK(memory.kept == 1 + COUNT_OF(reductions));
    at_repeat(f, VEC(f, AT_INT64, 7, 8), lengths, AT_DIM(3),
              AT_NO_AXIS); /* has a rule of its own */
    CHECK(memory.found == 3 + COUNT_OF(reductions));
    f->cx->memo = NULL;
}

static void test_a_memo_that_fails_fails_the_call(at_frame *f)
{
    at_array lengths = VEC(f, AT_INT64, 1, 2);
    memset(&memory, 0, sizeof memory);
    f->cx->memo = &memo;
    memory.fails_to_find = AT_EVALUE;
    all_five(f, lengths, true);
    CHECK(f->cx->status == AT_EVALUE && memory.kept == 0);
    at_clear(f->cx);
    memory.fails_to_find = AT_OK;
    memory.fails_to_keep = AT_ENOMEM;
    all_five(f, lengths, true);
    CHECK(f->cx->status == AT_ENOMEM);
    at_clear(f->cx);
    f->cx->memo = NULL;
}

int main(int argc, char **argv)
{
    static const test tests[] = {
        TEST(test_partition_ids_repeat_each_index_by_its_length),
        TEST(test_partition_ids_start_and_end_with_empty_partitions),
        TEST(test_partition_ids_of_nothing_are_empty),
        TEST(test_partition_ids_of_small_dtypes_do_not_wrap),
        TEST(test_partition_reductions_agree_with_plain_loops_for_every_dtype),
        TEST(test_empty_partitions_hold_the_identities),
        TEST(test_partition_reductions_work_without_rows_columns_or_partitions),
        TEST(test_nan_spoils_its_own_partition),
        TEST(test_a_total_other_than_the_sum_is_refused),
        TEST(test_a_negative_length_is_refused),
        TEST(test_a_negative_or_missing_total_is_refused),
        TEST(test_partitions_must_be_integral),
        TEST(test_partitions_must_be_a_vector),
        TEST(test_missing_partitions_are_named),
        TEST(test_rows_must_be_as_many_as_the_total),
        TEST(test_lengths_whose_sum_overflows_are_refused),
        TEST(test_an_unread_total_beyond_the_sum_is_filled_with_an_id_that_is_dropped),
        TEST(test_an_unread_total_below_the_sum_cuts),
        TEST(test_a_memo_is_asked_once_per_call_and_given_what_it_lacks),
        TEST(test_a_memo_that_fails_fails_the_call),
    };
    return RUN(tests, both_ways, argc, argv);
}
