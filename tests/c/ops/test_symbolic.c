/* Sizes that only run time knows: every operation on a backend whose shapes are symbols (with rubbish in n), by
 * formula and by slot, gives what it gives with numbers. */
#include "cases.h"

/* The operation with numbers, then with symbols for all sizes of shapes, and for its size arguments if asked. */
static void agree(at_frame *f, const op_case *c, at_dtype dtype, bool symbolic_arguments)
{
    at_scalar one;
    char note[96];
    snprintf(note, sizeof note, "%s of %s%s", c->name, at_dtype_name(dtype),
             symbolic_arguments ? ", sizes given as symbols" : "");
    check_note = note;
    inputs in = given_inputs(f, dtype, AT_INT32, &one);
    proxy_symbolic = false;
    at_array plain = c->call(f, &in);
    proxy_symbolic = true;
    if (symbolic_arguments) {
        at_array three = AT_NIL, four = AT_NIL;
        CHECK(proxy_symbol(f->cx, 3, &three) == AT_OK && proxy_symbol(f->cx, 4, &four) == AT_OK);
        in.three = (at_dim){-77, at_keep(f, three)};
        in.four = (at_dim){-77, at_keep(f, four)};
    }
    at_array symbolic = c->call(f, &in);
    proxy_symbolic = false;
    if (CHECK(!at_is_nil(plain) && !at_is_nil(symbolic))) {
        double *want = values_of(plain);
        EXPECT(symbolic, at_native_dtype(plain), at_native_ndim(plain), at_native_sizes(plain),
               want);
        free(want);
    } else {
        CHECK(strcmp(at_message(f->cx), "") == 0);
        at_clear(f->cx);
    }
    check_note = "";
}

static void test_every_operation_gives_the_same_when_shapes_are_symbols(at_frame *f)
{
    for (int i = 0; i < COUNT_OF(op_cases); i++) {
        agree(f, &op_cases[i], AT_FLOAT32, false);
        agree(f, &op_cases[i], AT_FLOAT16, false);
    }
}

static void test_every_operation_gives_the_same_when_sizes_are_symbols_too(at_frame *f)
{
    for (int i = 0; i < COUNT_OF(op_cases); i++) {
        agree(f, &op_cases[i], AT_FLOAT32, true);
        agree(f, &op_cases[i], AT_INT8, true);
    }
}

static void test_a_symbol_plus_a_number_is_a_symbol(at_frame *f)
{
    at_array three = AT_NIL;
    CHECK(proxy_symbol(f->cx, 3, &three) == AT_OK);
    at_dim sum = at_dim_plus(f, (at_dim){-77, at_keep(f, three)}, 2);
    CHECK(sum.sym.be == &proxy && proxy_number(sum).n == 5);
}

static void test_symbols_that_differ_are_refused(at_frame *f)
{
    at_array x = VEC(f, AT_FLOAT32, 1, 2, 3), ids = VEC(f, AT_INT64, 0, 1);
    proxy_symbolic = true;
    EXPECT_ERROR(f, at_segment_sum(f, x, ids, AT_DIM(2), false), AT_ESHAPE, "segment_sum",
                 "segment_ids");
    proxy_symbolic = false;
}

static void test_symbols_are_released_with_the_frame_that_asked(at_frame *up)
{
    at_frame frame, *f = at_enter(&frame, up);
    at_shape shape;
    at_array x = given(f, AT_FLOAT32, SIZES(2, 3), VALUES(1, 2, 3, 4, 5, 6));
    int64_t live = at_native_live();
    proxy_symbolic = true;
    CHECK(at_shape_of(f, x, &shape) == AT_OK && proxy_number(shape.dim[1]).n == 3);
    proxy_symbolic = false;
    CHECK(at_native_live() == live + 2);
    at_leave(f, AT_NIL);
    CHECK(at_native_live() == 0);
}

int main(int argc, char **argv)
{
    static const test tests[] = {
        TEST(test_every_operation_gives_the_same_when_shapes_are_symbols),
        TEST(test_every_operation_gives_the_same_when_sizes_are_symbols_too),
        TEST(test_a_symbol_plus_a_number_is_a_symbol),
        TEST(test_symbols_that_differ_are_refused),
        TEST(test_symbols_are_released_with_the_frame_that_asked),
    };
    static const mode modes[] = {{"", 0, ROW_MAJOR, proxy_make},
                                 {" [formula]", AT_GENERIC, ROW_MAJOR, proxy_make},
                                 {" [tracked formula]", AT_GENERIC, ROW_MAJOR, proxy_make_tracked}};
    return RUN(tests, modes, argc, argv);
}
