/* Frames and the sticky error, on a backend that only counts references. */
#include "fixture.h"

static int alive[64]; /* references per object; p points in here */

static void count_up(void *p) { ++*(int *)p; }
static void count_down(void *p) { --*(int *)p; }

static const at_backend counted = {.name = "counted", .retain = count_up, .release = count_down};

/* A new object with one reference. */
static at_array object(int i)
{
    alive[i] = 1;
    return (at_array){&alive[i], &counted};
}

static int all_alive(void)
{
    int sum = 0;
    for (int i = 0; i < COUNT_OF(alive); i++) sum += alive[i];
    return sum;
}

static void test_close_releases_what_a_frame_keeps(at_frame *up)
{
    at_frame frame, *f = at_open(&frame, up->cx);
    at_array a = at_keep(f, object(0)), b = at_keep(f, object(1));
    CHECK(a.p == &alive[0] && b.p == &alive[1] && all_alive() == 2);
    at_close(f);
    CHECK(all_alive() == 0);
}

static void test_close_can_be_called_twice_and_the_frame_used_again(at_frame *up)
{
    at_frame frame, *f = at_open(&frame, up->cx);
    for (int i = 0; i < 30; i++) at_keep(f, object(i));
    at_close(f);
    at_close(f);
    CHECK(all_alive() == 0);
    at_keep(f, object(0));
    CHECK(all_alive() == 1);
    at_close(f);
    CHECK(all_alive() == 0);
}

static void test_a_frame_holds_more_than_its_inline_places(at_frame *up)
{
    for (int count = AT_FRAME_PLACES - 1; count <= COUNT_OF(alive); count++) {
        at_frame frame, *f = at_open(&frame, up->cx);
        for (int i = 0; i < count; i++) at_keep(f, object(i));
        CHECK(all_alive() == count);
        at_drop(f, (at_array){&alive[0], &counted});
        at_drop(f, (at_array){&alive[count - 1], &counted});
        CHECK(alive[0] == 0 && alive[count - 1] == 0 && all_alive() == count - 2);
        at_close(f);
        CHECK(all_alive() == 0);
    }
}

static void test_drop_releases_once_and_only_what_the_frame_owns(at_frame *up)
{
    at_frame frame, *f = at_open(&frame, up->cx);
    at_array a = at_keep(f, object(0)), stranger = object(1);
    at_drop(f, stranger);
    at_drop(f, AT_NIL);
    CHECK(alive[0] == 1 && alive[1] == 1);
    at_drop(f, a);
    at_drop(f, a);
    CHECK(alive[0] == 0 && alive[1] == 1);
    at_release(stranger);
    at_close(f);
    CHECK(all_alive() == 0);
}

static void test_a_handle_kept_twice_is_dropped_one_reference_at_a_time(at_frame *up)
{
    at_frame frame, *f = at_open(&frame, up->cx);
    at_array a = at_keep(f, object(0));
    at_retain(a);
    at_keep(f, a);
    at_drop(f, a);
    CHECK(alive[0] == 1);
    at_drop(f, a);
    CHECK(alive[0] == 0);
    at_close(f);
    CHECK(all_alive() == 0);
}

static void test_leave_hands_an_owned_result_up_and_releases_the_rest(at_frame *up)
{
    at_frame root, *r = at_open(&root, up->cx), frame, *f = at_enter(&frame, r);
    at_array result = at_keep(f, object(0));
    at_keep(f, object(1));
    at_array back = at_leave(f, result);
    CHECK(back.p == result.p && alive[0] == 1 && alive[1] == 0);
    at_close(r);
    CHECK(all_alive() == 0);
}

static void test_leave_retains_a_result_that_the_frame_does_not_own(at_frame *up)
{
    at_frame root, *r = at_open(&root, up->cx), frame, *f = at_enter(&frame, r);
    at_array operand = object(0);
    at_array back = at_leave(f, operand);
    CHECK(back.p == operand.p && alive[0] == 2);
    at_close(r);
    CHECK(alive[0] == 1);
    at_release(operand);
}

static void test_leave_of_nil_is_nil(at_frame *up)
{
    at_frame root, *r = at_open(&root, up->cx), frame, *f = at_enter(&frame, r);
    at_keep(f, object(0));
    CHECK(at_is_nil(at_leave(f, AT_NIL)));
    CHECK(all_alive() == 0 && !at_failed(r));
    at_close(r);
}

static void test_leave_after_a_failure_gives_nil_and_releases_everything(at_frame *up)
{
    at_context cx;
    at_frame root, *r = at_open(&root, at_context_init(&cx, up->cx->home));
    at_frame frame, *f = at_enter(&frame, r);
    at_array result = at_keep(f, object(0));
    at_error(&cx, AT_EVALUE, "no");
    CHECK(at_is_nil(at_leave(f, result)));
    CHECK(all_alive() == 0);
    at_close(r);
}

static void test_results_pass_through_many_frames_beyond_their_inline_places(at_frame *up)
{
    at_frame root, *r = at_open(&root, up->cx);
    for (int i = 0; i < 40; i++) {
        at_frame outer, *o = at_enter(&outer, r);
        at_frame inner, *f = at_enter(&inner, o);
        at_array result = at_leave(f, at_keep(f, object(i)));
        CHECK(at_leave(o, result).p == &alive[i]);
    }
    CHECK(all_alive() == 40);
    at_close(r);
    CHECK(all_alive() == 0);
}

static void test_detach_takes_the_reference_out_of_the_frame(at_frame *up)
{
    at_frame frame, *f = at_open(&frame, up->cx);
    at_array a = at_detach(f, at_keep(f, object(0)));
    at_close(f);
    CHECK(alive[0] == 1);
    at_release(a);
    CHECK(all_alive() == 0);
}

static void test_detach_of_what_the_frame_does_not_own_is_a_reference_more(at_frame *up)
{
    at_frame frame, *f = at_open(&frame, up->cx);
    at_array a = object(0), b = at_detach(f, a);
    CHECK(alive[0] == 2 && at_is_nil(at_detach(f, AT_NIL)));
    at_release(a);
    at_release(b);
    at_close(f);
    CHECK(all_alive() == 0);
}

static void test_nil_may_be_kept_retained_and_released(at_frame *f)
{
    CHECK(at_is_nil(at_keep(f, AT_NIL)));
    at_retain(AT_NIL);
    at_release(AT_NIL);
    CHECK(!at_failed(f));
}

static void test_the_first_error_wins(at_frame *f)
{
    CHECK(at_error(f->cx, AT_ESHAPE, "first %d", 1) == AT_ESHAPE);
    CHECK(at_error(f->cx, AT_EVALUE, "second") == AT_ESHAPE);
    CHECK(f->cx->status == AT_ESHAPE && strcmp(at_message(f->cx), "first 1") == 0);
    at_clear(f->cx);
}

static void test_an_error_without_an_operation_has_a_bare_text(at_frame *f)
{
    CHECK(strcmp(at_message(f->cx), "") == 0);
    at_error(f->cx, AT_EFOREIGN, "raised");
    CHECK(strcmp(at_message(f->cx), "raised") == 0);
    at_clear(f->cx);
    CHECK(!at_failed(f) && strcmp(at_message(f->cx), "") == 0);
}

static void test_a_long_message_is_cut(at_frame *f)
{
    char text[3 * AT_MESSAGE_SIZE];
    memset(text, 'x', sizeof text);
    text[sizeof text - 1] = '\0';
    at_error(f->cx, AT_EVALUE, "%s", text);
    CHECK(strlen(at_message(f->cx)) == AT_MESSAGE_SIZE - 1);
    at_clear(f->cx);
}

static void test_a_failed_context_makes_every_operation_return_nil(at_frame *f)
{
    at_array x = VEC(f, AT_FLOAT32, 1, 2), ids = VEC(f, AT_INT32, 0, 1);
    at_shape shape = {.ndim = 1, .dim = {AT_DIM(2)}};
    at_dtype dtype;
    at_scalar two;
    int64_t live = at_native_live();
    at_error(f->cx, AT_EVALUE, "before");
    CHECK(at_is_nil(at_exp(f, x)) && at_is_nil(at_add(f, x, x)));
    CHECK(at_is_nil(at_segment_sum(f, x, ids, AT_DIM(2), false)));
    CHECK(at_is_nil(at_segment_softmax(f, AT_NIL, AT_NIL, AT_NO_DIM, false)));
    CHECK(at_is_nil(at_partition_ids(f, ids, AT_DIM(1))));
    CHECK(at_is_nil(at_concatenate(f, (at_list){1, &x}, 0)));
    CHECK(at_is_nil(at_concatenate(f, (at_list){0, NULL}, 0)));
    CHECK(at_is_nil(at_zeros(f, &shape, AT_FLOAT32, AT_NIL)));
    CHECK(at_is_nil(at_full(f, &shape, at_scalar_int(&two, 2), AT_FLOAT32, AT_NIL)));
    CHECK(at_is_nil(at_native_copy(f, AT_INT8, SIZES(1), "a")));
    CHECK(at_shape_of(f, x, &shape) == AT_EVALUE && at_dtype_of(f, x, &dtype) == AT_EVALUE);
    CHECK(at_dim_plus(f, AT_DIM(2), 1).n >= 0);
    CHECK(strcmp(at_message(f->cx), "before") == 0 && at_native_live() == live);
    at_clear(f->cx);
}

static void test_the_message_begins_with_the_operation(at_frame *f)
{
    at_exp(f, AT_NIL);
    CHECK(f->cx->status == AT_EARG && strncmp(at_message(f->cx), "exp: ", 5) == 0);
    at_clear(f->cx);
}

static void test_the_outermost_operation_speaks(at_frame *f)
{
    at_array x = VEC(f, AT_FLOAT32, 1, 2, 3), partitions = VEC(f, AT_INT64, 1, 1);
    at_partition_softmax(f, x, partitions, AT_DIM(2));
    CHECK(strncmp(at_message(f->cx), "partition_softmax: ", 19) == 0);
    at_clear(f->cx);
}

static void test_the_message_stays_the_same_when_asked_again(at_frame *f)
{
    char text[AT_MESSAGE_SIZE];
    at_array x = VEC(f, AT_FLOAT32, 1, 2), y = VEC(f, AT_FLOAT32, 1, 2, 3);
    at_add(f, x, y);
    strcpy(text, at_message(f->cx));
    at_maximum(f, x, y);
    at_segment_sum(f, x, y, AT_DIM(2), false);
    CHECK(strcmp(at_message(f->cx), text) == 0);
    at_clear(f->cx);
}

static void test_a_context_works_again_after_clear(at_frame *f)
{
    at_array x = VEC(f, AT_FLOAT64, 0, 0);
    at_exp(f, AT_NIL);
    at_clear(f->cx);
    EXPECT(at_exp(f, x), AT_FLOAT64, SIZES(2), VALUES(1, 1));
}

static void test_every_status_has_its_own_name(at_frame *f)
{
    (void)f;
    CHECK(strcmp(at_status_name(AT_OK), "AT_OK") == 0);
    CHECK(strcmp(at_status_name(AT_EFOREIGN), "AT_EFOREIGN") == 0);
    for (int a = AT_OK; a <= AT_EFOREIGN; a++) {
        CHECK(strncmp(at_status_name((at_status)a), "AT_", 3) == 0);
        for (int b = AT_OK; b < a; b++)
            CHECK(strcmp(at_status_name((at_status)a), at_status_name((at_status)b)) != 0);
    }
    CHECK(at_status_name((at_status)99) != NULL);
}

static void test_size_arithmetic_is_checked(at_frame *f)
{
    CHECK(at_dim_plus(f, AT_DIM(40), 2).n == 42 && at_dim_plus(f, AT_DIM(2), -2).n == 0);
    at_dim_plus(f, AT_DIM(INT64_MAX), 1);
    CHECK(f->cx->status == AT_EVALUE);
    at_clear(f->cx);
}

int main(int argc, char **argv)
{
    static const test tests[] = {
        TEST(test_close_releases_what_a_frame_keeps),
        TEST(test_close_can_be_called_twice_and_the_frame_used_again),
        TEST(test_a_frame_holds_more_than_its_inline_places),
        TEST(test_drop_releases_once_and_only_what_the_frame_owns),
        TEST(test_a_handle_kept_twice_is_dropped_one_reference_at_a_time),
        TEST(test_leave_hands_an_owned_result_up_and_releases_the_rest),
        TEST(test_leave_retains_a_result_that_the_frame_does_not_own),
        TEST(test_leave_of_nil_is_nil),
        TEST(test_leave_after_a_failure_gives_nil_and_releases_everything),
        TEST(test_results_pass_through_many_frames_beyond_their_inline_places),
        TEST(test_detach_takes_the_reference_out_of_the_frame),
        TEST(test_detach_of_what_the_frame_does_not_own_is_a_reference_more),
        TEST(test_nil_may_be_kept_retained_and_released),
        TEST(test_the_first_error_wins),
        TEST(test_an_error_without_an_operation_has_a_bare_text),
        TEST(test_a_long_message_is_cut),
        TEST(test_a_failed_context_makes_every_operation_return_nil),
        TEST(test_the_message_begins_with_the_operation),
        TEST(test_the_outermost_operation_speaks),
        TEST(test_the_message_stays_the_same_when_asked_again),
        TEST(test_a_context_works_again_after_clear),
        TEST(test_every_status_has_its_own_name),
        TEST(test_size_arithmetic_is_checked),
    };
    return RUN(tests, plainly, argc, argv);
}
