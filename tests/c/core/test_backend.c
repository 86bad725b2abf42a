/* Backends: completeness, which one a call belongs to, and host arrays that join another framework. */
#include "cases.h"

#include "core/promote.h"

/* --- completeness ---------------------------------------------------------------------------- */

static void test_the_native_backend_and_the_proxy_are_complete(at_frame *f)
{
    CHECK(at_backend_check(f->cx, at_native()) == AT_OK);
    CHECK(at_backend_check(f->cx, proxy_make()) == AT_OK);
}

static void check_lacks(at_frame *f, const at_backend *be, const char *slot)
{
    CHECK(at_backend_check(f->cx, be) == AT_EUNSUPPORTED);
    check_words(at_message(f->cx), (const char *const[]){"native", slot, NULL}, __FILE__, __LINE__);
    at_clear(f->cx);
}

static void test_a_missing_primitive_is_named(at_frame *f)
{
#define OP(kind, name, level, ...)                                                                 \
    if (!IS_##level) {                                                                             \
        at_backend be = *at_native();                                                              \
        be.name = NULL;                                                                            \
        check_lacks(f, &be, #name);                                                                \
    }
#include "anytensor/ops.def"
}

static void test_a_missing_composite_is_no_fault(at_frame *f)
{
    at_backend be = *at_native();
#define NO_PRIMITIVE(name)
#define NO_COMPOSITE(name) be.name = NULL;
#define OP(kind, name, level, ...) NO_##level(name)
#include "anytensor/ops.def"
    CHECK(at_backend_check(f->cx, &be) == AT_OK);
}

static void test_a_missing_query_is_named(at_frame *f)
{
#define LACKS(slot)                                                                                \
    {                                                                                              \
        at_backend be = *at_native();                                                              \
        be.slot = NULL;                                                                            \
        check_lacks(f, &be, #slot);                                                                \
    }
    LACKS(retain)
    LACKS(release)
    LACKS(dtype)
    LACKS(shape)
    LACKS(default_dtype)
    LACKS(adopt)
    LACKS(from_scalar)
    LACKS(to_size)
#undef LACKS
}

/* --- which backend --------------------------------------------------------------------------- */

static void test_native_data_joins_a_framework_in_either_place(at_frame *f)
{
    proxy_make();
    for (int i = 0; i < COUNT_OF(op_cases); i++) {
        at_scalar one;
        inputs in = given_inputs(f, AT_FLOAT32, AT_INT32, &one);
        check_note = op_cases[i].name;
        at_array plain = op_cases[i].call(f, &in);
        double *want = values_of(plain);
        inputs data = in, rest = in;
        data.x = proxied(in.x);
        rest.y = proxied(in.y);
        rest.yes = proxied(in.yes);
        rest.ids = proxied(in.ids);
        rest.slots = proxied(in.slots);
        rest.partitions = proxied(in.partitions);
        rest.indices = proxied(in.indices);
        rest.place = proxied(in.place);
        at_array mixed[] = {op_cases[i].call(f, &data), op_cases[i].call(f, &rest)};
        for (int m = 0; m < 2; m++) {
            if (!CHECK(!at_is_nil(mixed[m]))) break;
            EXPECT(mixed[m], at_native_dtype(plain), at_native_ndim(plain), at_native_sizes(plain),
                   want);
        }
        free(want);
    }
}

static void test_the_result_belongs_to_the_framework(at_frame *f)
{
    proxy_make();
    at_array x = VEC(f, AT_FLOAT32, 1, 2), ids = VEC(f, AT_INT64, 0, 0);
    CHECK(at_add(f, x, proxied(x)).be == &proxy && at_add(f, proxied(x), x).be == &proxy);
    CHECK(at_segment_sum(f, x, proxied(ids), AT_DIM(1), false).be == &proxy);
    CHECK(at_segment_softmax(f, proxied(x), ids, AT_DIM(1), false).be == &proxy);
    CHECK(at_concatenate(f, (at_list){3, (at_array[]){x, x, proxied(x)}}, 0).be == &proxy);
    CHECK(at_zeros_like(f, proxied(x), AT_INT8).be == &proxy);
    CHECK(at_add(f, x, x).be == at_native());
}

static void test_scalars_alone_belong_to_the_home_backend(at_frame *f)
{
    at_scalar a, b;
    at_shape two = {.ndim = 1, .dim = {{.n = 2}}};
    f->cx->home = proxy_make();
    CHECK(at_add(f, at_scalar_int(&a, 1), at_scalar_float(&b, 2)).be == &proxy);
    CHECK(at_zeros(f, &two, AT_NODTYPE, AT_NIL).be == &proxy);
    CHECK(at_arange(f, at_scalar_int(&a, 3), AT_NIL, AT_NIL, AT_NODTYPE, AT_NIL, NULL).be ==
          &proxy);
    f->cx->home = at_native();
    CHECK(at_exp(f, at_scalar_int(&a, 1)).be == at_native());
}

static void test_arrays_of_two_frameworks_are_refused(at_frame *f)
{
    at_backend other;
    proxy_make();
    other = proxy;
    other.name = "another";
    at_array x = VEC(f, AT_FLOAT32, 1, 2), ids = VEC(f, AT_INT64, 0, 0);
    at_array far = {ids.p, &other}, far_x = {x.p, &other}, near = proxied(x);
    EXPECT_ERROR(f, at_add(f, near, far_x), AT_EBACKEND, "add", "'y'", "another", "proxy");
    EXPECT_ERROR(f, at_segment_sum(f, near, far, AT_DIM(1), false), AT_EBACKEND, "segment_sum",
                 "'segment_ids'", "another", "proxy");
    EXPECT_ERROR(f, at_where(f, x, near, far_x), AT_EBACKEND, "where", "'y'", "another", "proxy");
    EXPECT_ERROR(f, at_concatenate(f, (at_list){2, (at_array[]){near, far_x}}, 0), AT_EBACKEND,
                 "concatenate", "'arrays'", "another", "proxy");
}

/* A framework with a dtype that the library has no name for. */
static at_status other_dtype(at_context *cx, at_array a, at_dtype *out)
{
    (void)cx;
    (void)a;
    *out = AT_OTHER;
    return AT_OK;
}

static void test_a_dtype_of_the_frameworks_own_passes_where_no_arithmetic_is_needed(at_frame *f)
{
    at_scalar s;
    proxy_make();
    proxy.dtype = other_dtype;
    at_array x = proxied(VEC(f, AT_FLOAT32, 1, 2));
    EXPECT(at_exp(f, x), AT_FLOAT32, SIZES(2), VALUES(exp(1), exp(2)));
    EXPECT(at_add(f, x, x), AT_FLOAT32, SIZES(2), VALUES(2, 4));
    EXPECT_ERROR(f, at_add(f, x, at_scalar_int(&s, 1)), AT_EDTYPE, "add", "proxy");
    EXPECT_ERROR(f, at_segment_count(f, x, AT_DIM(2), false), AT_EDTYPE, "segment_count",
                 "'segment_ids'");
}

/* --- aligning without promotion --------------------------------------------------------------- */

static void test_aligned_arrays_join_one_framework_and_keep_their_dtypes(at_frame *f)
{
    at_scalar a, b;
    proxy_make();
    at_array list[] = {VEC(f, AT_INT8, 1, 2), proxied(VEC(f, AT_FLOAT32, 3)), AT_NIL,
                       at_scalar_int(&a, 4), at_scalar_bool(&b, true)};
    CHECK(ati_align(f, 5, list));
    EXPECT(list[0], AT_INT8, SIZES(2), VALUES(1, 2));
    EXPECT(list[1], AT_FLOAT32, SIZES(1), VALUES(3));
    EXPECT(list[3], AT_INT64, ZERO_D, VALUES(4));
    EXPECT(list[4], AT_BOOL, ZERO_D, VALUES(1));
    CHECK(at_is_nil(list[2]));
    for (int i = 0; i < 5; i++) CHECK(i == 2 || list[i].be == &proxy);
}

static void test_arrays_of_two_frameworks_do_not_align(at_frame *f)
{
    at_backend other;
    proxy_make();
    other = proxy;
    other.name = "another";
    at_array x = VEC(f, AT_FLOAT32, 1), list[] = {proxied(x), {x.p, &other}};
    CHECK(!ati_align(f, 2, list));
    CHECK(f->cx->status == AT_EBACKEND);
    check_words(at_message(f->cx), (const char *const[]){"align_arrays", "another", "proxy", NULL},
                __FILE__, __LINE__);
    at_clear(f->cx);
}

/* --- derivatives that nobody will take -------------------------------------------------------- */

static int slot_calls;

static at_status count_call(at_context *cx, const char *slot)
{
    (void)cx;
    (void)slot;
    slot_calls++;
    return AT_OK;
}

static int calls_of_max(at_frame *f, unsigned flags)
{
    at_array x = proxied(VEC(f, AT_FLOAT32, 1, 5, 2)), ids = proxied(VEC(f, AT_INT64, 0, 0, 1));
    f->cx->flags = AT_GENERIC | flags;
    slot_calls = 0;
    EXPECT(at_segment_max(f, x, ids, AT_DIM(2), false), AT_FLOAT32, SIZES(2), VALUES(5, 2));
    f->cx->flags = 0;
    return slot_calls;
}

static void test_untracked_contexts_leave_out_what_a_derivative_needs(at_frame *f)
{
    proxy_make();
    proxy_before = count_call;
    int plain = calls_of_max(f, 0);
    proxy_make_tracked();
    proxy_before = count_call;
    CHECK(calls_of_max(f, 0) > plain);
    CHECK(calls_of_max(f, AT_UNTRACKED) == plain);
    proxy_before = NULL;
}

int main(int argc, char **argv)
{
    static const test tests[] = {
        TEST(test_the_native_backend_and_the_proxy_are_complete),
        TEST(test_a_missing_primitive_is_named),
        TEST(test_a_missing_composite_is_no_fault),
        TEST(test_a_missing_query_is_named),
        TEST(test_native_data_joins_a_framework_in_either_place),
        TEST(test_the_result_belongs_to_the_framework),
        TEST(test_scalars_alone_belong_to_the_home_backend),
        TEST(test_arrays_of_two_frameworks_are_refused),
        TEST(test_a_dtype_of_the_frameworks_own_passes_where_no_arithmetic_is_needed),
        TEST(test_aligned_arrays_join_one_framework_and_keep_their_dtypes),
        TEST(test_arrays_of_two_frameworks_do_not_align),
        TEST(test_untracked_contexts_leave_out_what_a_derivative_needs),
    };
    return RUN(tests, plainly, argc, argv);
}
