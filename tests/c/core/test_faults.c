/* Failure injection: the k-th allocation or slot call of every operation fails, for every k until success.
 *
 * Each time the error is clean (nil, the right status, the operation's name in front) and nothing is left
 * alive. The watched calls count the peak of live arrays, too. */
#include "backends/native/dlpack_abi.h"
#include "cases.h"

/* --- malloc and its family, through the linker's --wrap -------------------------------------- */

static bool malloc_armed;
static int64_t malloc_calls, malloc_fail_at;

static bool malloc_fails(void) { return malloc_armed && malloc_calls++ == malloc_fail_at; }

void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *block, size_t size);
void *__real_aligned_alloc(size_t alignment, size_t size);
int __real_posix_memalign(void **out, size_t alignment, size_t size);

void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *block, size_t size);
void *__wrap_aligned_alloc(size_t alignment, size_t size);
int __wrap_posix_memalign(void **out, size_t alignment, size_t size);

void *__wrap_malloc(size_t size) { return malloc_fails() ? NULL : __real_malloc(size); }

void *__wrap_calloc(size_t count, size_t size)
{
    return malloc_fails() ? NULL : __real_calloc(count, size);
}

void *__wrap_realloc(void *block, size_t size)
{
    return malloc_fails() ? NULL : __real_realloc(block, size);
}

void *__wrap_aligned_alloc(size_t alignment, size_t size)
{
    return malloc_fails() ? NULL : __real_aligned_alloc(alignment, size);
}

int __wrap_posix_memalign(void **out, size_t alignment, size_t size)
{
    return malloc_fails() ? 12 : __real_posix_memalign(out, alignment, size);
}

/* --- the walk over k ------------------------------------------------------------------------- */

enum { TOO_MANY = 500 }; /* more than any operation needs */

static at_status injected; /* the status that the armed failure should give */
static int failures;       /* attempts that failed */

static char where[160];

static void at_point(const op_case *c, at_dtype dtype, int64_t k)
{
    snprintf(where, sizeof where, "%s of %s, failure %d", c->name, at_dtype_name(dtype), (int)k);
    check_note = where;
}

/* One attempt: true when the call succeeded. A failure must be clean. */
static bool attempt(at_frame *up, const op_case *c, const inputs *in)
{
    int64_t live = at_native_live(), bytes = memory_bytes;
    at_frame frame, *f = at_enter(&frame, up);
    at_array result = c->call(f, in);
    at_status status = f->cx->status;
    malloc_armed = false;
    bool done = !at_is_nil(result);
    failures += !done;
    CHECK(done == (status == AT_OK));
    if (!done) {
        char front[64];
        int length = snprintf(front, sizeof front, "%s: ", c->name);
        CHECK(status == injected);
        CHECK(strncmp(at_message(f->cx), front, (size_t)length) == 0);
        CHECK(at_native_live() == live && memory_bytes == bytes);
    }
    at_clear(f->cx);
    at_leave(f, AT_NIL);
    CHECK(at_native_live() == live && memory_bytes == bytes);
    return done;
}

/* For every operation, dtype and way to compute: arm(k) then attempt, until nothing fails. */
static void for_every_k(at_frame *up, void (*arm)(int64_t k))
{
    static const unsigned ways[] = {0, AT_GENERIC};
    failures = 0;
    for (int i = 0; i < COUNT_OF(op_cases) * COUNT_OF(telling_dtypes) * COUNT_OF(ways); i++) {
        const op_case *c = &op_cases[i / COUNT_OF(ways) / COUNT_OF(telling_dtypes)];
        at_dtype dtype = telling_dtypes[i / COUNT_OF(ways) % COUNT_OF(telling_dtypes)];
        at_scalar one;
        at_frame frame, *f = at_enter(&frame, up);
        if (dtype == AT_BOOL && strcmp(c->name, "sub") == 0) dtype = AT_INT16;
        if (dtype == AT_BOOL && strncmp(c->name, "slot_", 5) == 0) dtype = AT_INT16;
        inputs in = given_inputs(f, dtype, AT_INT32, &one);
        f->cx->flags = ways[i % COUNT_OF(ways)];
        int64_t k = 0;
        for (bool done = false; !done && k < TOO_MANY; k++) {
            at_point(c, dtype, k);
            arm(k);
            done = attempt(f, c, &in);
        }
        CHECK(k < TOO_MANY);
        memory_fail_at = -1;
        at_leave(f, AT_NIL);
    }
    check_note = "";
    CHECK(failures > 1000); /* or else nothing was injected */
}

/* --- (a) allocations ------------------------------------------------------------------------- */

static void arm_allocator(int64_t k)
{
    injected = AT_ENOMEM;
    memory_gets = 0;
    memory_fail_at = k;
}

static void test_every_allocation_of_an_array_may_fail(at_frame *f)
{
    for_every_k(f, arm_allocator);
}

static void arm_malloc(int64_t k)
{
    injected = AT_ENOMEM;
    malloc_calls = 0;
    malloc_fail_at = k;
    malloc_armed = true;
}

static void test_every_malloc_may_fail(at_frame *f)
{
    f->cx->alloc = NULL;
    for_every_k(f, arm_malloc);
    f->cx->alloc = &counting_allocator;
}

static void test_a_frame_without_memory_for_its_places_releases_what_it_was_given(at_frame *up)
{
    for (int64_t k = 0; k < 4; k++) {
        at_frame frame, *f = at_enter(&frame, up);
        at_array x = VEC(f, AT_INT8, 1, 2);
        arm_malloc(k);
        int kept = 0;
        while (!at_failed(f) && kept < 400) {
            at_retain(x);
            kept += !at_is_nil(at_keep(f, x));
        }
        malloc_armed = false;
        CHECK(f->cx->status == AT_ENOMEM && kept >= AT_FRAME_PLACES - 1);
        at_clear(f->cx);
        at_leave(f, AT_NIL);
        CHECK(at_native_live() == 0);
    }
}

static int ended;
static void on_end(void *user) { ended += user != NULL; }

static void test_a_wrap_that_fails_does_not_end_its_memory(at_frame *up)
{
    static char memory[4];
    for (int64_t k = 0; k < 2; k++) {
        at_frame frame, *f = at_enter(&frame, up);
        while (f->count < AT_FRAME_PLACES) zero_d(f, AT_INT8, 1);
        ended = 0;
        f->cx->alloc = NULL;
        arm_malloc(k);
        at_array x = at_native_wrap(f, AT_INT8, SIZES(4), NULL, memory, on_end, memory);
        malloc_armed = false;
        f->cx->alloc = &counting_allocator;
        CHECK(at_is_nil(x) && f->cx->status == AT_ENOMEM && ended == 0);
        at_clear(f->cx);
        at_leave(f, AT_NIL);
        CHECK(ended == 0);
    }
}

static void test_a_copy_that_fails_leaves_nothing(at_frame *up)
{
    for (int64_t k = 0; k < 2; k++) {
        at_frame frame, *f = at_enter(&frame, up);
        while (f->count < AT_FRAME_PLACES) zero_d(f, AT_INT8, 1);
        int64_t live = at_native_live();
        f->cx->alloc = NULL;
        arm_malloc(k);
        at_array x = at_native_copy(f, AT_INT8, SIZES(4), "abc");
        malloc_armed = false;
        f->cx->alloc = &counting_allocator;
        CHECK(at_is_nil(x) && f->cx->status == AT_ENOMEM && at_native_live() == live);
        at_clear(f->cx);
        at_leave(f, AT_NIL);
    }
}

/* --- DLPack: who owns what when memory runs out --- */

static void on_delete(struct DLManagedTensor *self)
{
    ended++;
    self->deleter = NULL;
}

static void test_an_import_that_fails_does_not_run_the_deleter(at_frame *up)
{
    static char memory[4];
    int64_t sizes[] = {4};
    for (int64_t k = 0; k < 2; k++) {
        struct DLManagedTensor tensor = {
            {memory, ATI_DL_CPU, 0, 1, ATI_DL_INT, 8, 1, sizes, NULL, 0}, NULL, on_delete};
        at_frame frame, *f = at_enter(&frame, up);
        while (f->count < AT_FRAME_PLACES) zero_d(f, AT_INT8, 1);
        ended = 0;
        f->cx->alloc = NULL;
        arm_malloc(k);
        at_array x = at_from_dlpack(f, &tensor);
        malloc_armed = false;
        f->cx->alloc = &counting_allocator;
        CHECK(at_is_nil(x) && f->cx->status == AT_ENOMEM && tensor.deleter == on_delete);
        at_clear(f->cx);
        at_leave(f, AT_NIL);
        CHECK(ended == 0);
    }
}

static void test_an_export_that_fails_leaves_nothing(at_frame *up)
{
    for (at_dlpack_rule rule = AT_DLPACK_SHARE; rule <= AT_DLPACK_COPY; rule++) {
        at_frame frame, *f = at_enter(&frame, up);
        at_array x = VEC(f, AT_INT8, 1, 2);
        struct DLManagedTensor *out = NULL;
        int64_t live = at_native_live(), k = 0;
        f->cx->alloc = NULL;
        for (bool done = false; !done; k++) {
            arm_malloc(k);
            done = at_to_dlpack(f->cx, x, rule, &out) == AT_OK;
            malloc_armed = false;
            CHECK(done || (f->cx->status == AT_ENOMEM && out == NULL));
            CHECK(done || at_native_live() == live);
            at_clear(f->cx);
        }
        f->cx->alloc = &counting_allocator;
        CHECK(k == (rule == AT_DLPACK_COPY ? 3 : 2)); /* a block, and a copy of the array */
        out->deleter(out);
        CHECK(at_native_live() == live);
        at_leave(f, AT_NIL);
    }
}

static void test_a_long_list_of_arrays_survives_a_lack_of_memory(at_frame *up)
{
    at_frame frame, *f = at_enter(&frame, up);
    at_array many[40];
    for (int i = 0; i < 40; i++) many[i] = VEC(f, AT_INT32, i);
    int64_t live = at_native_live();
    bool done = false;
    for (int64_t k = 0; !done && k < TOO_MANY; k++) {
        at_frame inner, *g = at_enter(&inner, f);
        f->cx->alloc = NULL;
        arm_malloc(k);
        done = !at_is_nil(at_concatenate(g, (at_list){40, many}, 0));
        malloc_armed = false;
        f->cx->alloc = &counting_allocator;
        CHECK(done || f->cx->status == AT_ENOMEM);
        at_clear(f->cx);
        at_leave(g, AT_NIL);
        CHECK(at_native_live() == live);
    }
    CHECK(done);
    at_leave(f, AT_NIL);
}

/* --- (b) slots ------------------------------------------------------------------------------- */

static int64_t slot_calls, slot_fail_at;

/* A framework that raised keeps its own error; others call at_error() before they return. */
static at_status fail_kth(at_context *cx, const char *slot)
{
    if (slot_calls++ != slot_fail_at) return AT_OK;
    return injected == AT_EFOREIGN ? injected : at_error(cx, injected, "injected into %s", slot);
}

static void arm_slot(int64_t k)
{
    injected = k % 2 ? AT_EFOREIGN : AT_EUNSUPPORTED;
    proxy_before = fail_kth;
    slot_calls = 0;
    slot_fail_at = k;
}

static void test_every_slot_call_may_fail(at_frame *f)
{
    for_every_k(f, arm_slot);
    proxy_before = NULL;
}

static void test_every_slot_call_may_fail_while_sizes_are_symbols(at_frame *f)
{
    proxy_symbolic = true;
    for_every_k(f, arm_slot);
    proxy_symbolic = false;
    proxy_before = NULL;
}

static at_status refuse_composites(at_context *cx, const char *slot)
{
    (void)cx;
    for (int i = 0; i < COUNT_OF(op_cases); i++)
        if (op_cases[i].composite && strcmp(op_cases[i].name, slot) == 0) return AT_DECLINE;
    return AT_OK;
}

static void test_a_declined_composite_falls_back_to_its_formula(at_frame *f)
{
    for (int i = 0; i < COUNT_OF(op_cases); i++) {
        if (!op_cases[i].composite) continue;
        check_note = op_cases[i].name;
        proxy_before = NULL;
        at_array plain = call_case(f, &op_cases[i], AT_FLOAT32, AT_INT64);
        proxy_before = refuse_composites;
        at_array declined = call_case(f, &op_cases[i], AT_FLOAT32, AT_INT64);
        if (!CHECK(!at_is_nil(plain) && !at_is_nil(declined))) continue;
        double *want = values_of(plain);
        EXPECT(declined, at_native_dtype(plain), at_native_ndim(plain), at_native_sizes(plain),
               want);
        free(want);
    }
    proxy_before = NULL;
}

static at_status decline_everything(at_context *cx, const char *slot)
{
    (void)cx;
    return strcmp(slot, "dtype") == 0 || strcmp(slot, "shape") == 0 ? AT_OK : AT_DECLINE;
}

static void test_a_declined_primitive_is_an_error(at_frame *f)
{
    at_array x = VEC(f, AT_FLOAT32, 1, 2);
    proxy_before = decline_everything;
    EXPECT_ERROR(f, at_exp(f, x), AT_EUNSUPPORTED, "exp");
    EXPECT_ERROR(f, at_add(f, x, x), AT_EUNSUPPORTED, "add");
    EXPECT_ERROR(f, at_concatenate(f, (at_list){1, &x}, 0), AT_EUNSUPPORTED, "concatenate");
    proxy_before = NULL;
}

/* --- (c) peak of live arrays ----------------------------------------------------------------- */

static int64_t live_before, peak;

static void watch(void)
{
    int64_t extra = at_native_live() - live_before;
    peak = extra > peak ? extra : peak;
}

/* Arrays alive at once beside the operands, the result included, by formula: of float32, of float16, and of
 * float32 where a derivative is taken. As measured; more is memory that somebody pays for, less should be
 * written down here. */
typedef struct peak_row {
    const char *name;
    int of[3];
} peak_row;

static const peak_row peaks[] = {
    {"rsqrt", {3, 3, 3}},
    {"fill_nan", {3, 3, 3}},
    {"equal_nan", {5, 5, 5}},
    {"fill_nan_mask", {3, 3, 3}},
    {"nan_to_num", {5, 5, 5}},
    {"clip", {3, 3, 3}},
    {"split", {17, 17, 17}},
    {"stack", {4, 4, 4}},
    {"cast", {1, 1, 1}},
    {"repeat", {5, 5, 5}},
    {"zeros", {1, 1, 1}},
    {"ones", {1, 1, 1}},
    {"full_like", {1, 1, 1}},
    {"zeros_like", {1, 1, 1}},
    {"ones_like", {1, 1, 1}},
    {"segment_sum", {3, 3, 3}},
    {"segment_max", {3, 3, 12}},
    {"segment_min", {3, 3, 12}},
    {"segment_mean", {5, 6, 5}},
    {"segment_variance", {6, 7, 9}},
    {"segment_normalize", {7, 8, 10}},
    {"segment_softmax", {7, 8, 10}},
    {"segment_count", {4, 4, 4}},
    {"segment_min_or_constant", {6, 6, 15}},
    {"segment_max_or_constant", {6, 6, 15}},
    {"segment_prod", {3, 5, 13}},
    {"segment_any", {6, 6, 6}},
    {"segment_all", {6, 6, 6}},
    {"segment_std", {7, 8, 10}},
    {"segment_argmin", {6, 6, 6}},
    {"segment_argmax", {6, 6, 6}},
    {"segment_logsumexp", {7, 8, 10}},
    {"segment_attention", {6, 8, 8}},
    {"partition_ids", {3, 3, 3}},
    {"partition_sum", {5, 5, 5}},
    {"partition_min", {5, 5, 14}},
    {"partition_max", {5, 5, 14}},
    {"partition_softmax", {9, 10, 12}},
};

static int measure(const op_case *c, int way)
{
    at_scalar one;
    at_context cx;
    given_be = way == 2 ? proxy_make_tracked() : proxy_make();
    at_frame root, *f = at_open(&root, at_context_init(&cx, given_be));
    cx.flags = AT_GENERIC;
    inputs in = given_inputs(f, way == 1 ? AT_FLOAT16 : AT_FLOAT32, AT_INT32, &one);
    live_before = at_native_live();
    peak = 0;
    proxy_after = watch;
    CHECK(!at_is_nil(c->call(f, &in)));
    at_close(f);
    proxy_make();
    given_be = at_native();
    return (int)peak;
}

static const peak_row *peaks_of(const char *name)
{
    for (int i = 0; i < COUNT_OF(peaks); i++)
        if (strcmp(peaks[i].name, name) == 0) return &peaks[i];
    return NULL;
}

static void test_the_peak_of_live_arrays_is_as_written_down(at_frame *f)
{
    (void)f;
    for (int i = 0; i < COUNT_OF(op_cases); i++) {
        const op_case *c = &op_cases[i];
        const peak_row *row = peaks_of(c->name);
        check_note = c->name;
        if (!c->composite || !CHECK(row != NULL)) continue;
        int got[3];
        for (int way = 0; way < 3; way++) got[way] = measure(c, way);
        if (!CHECK(memcmp(got, row->of, sizeof got) == 0))
            printf("  measured    {\"%s\", {%d, %d, %d}},\n", c->name, got[0], got[1], got[2]);
    }
}

int main(int argc, char **argv)
{
    static const test memory[] = {
        TEST(test_every_allocation_of_an_array_may_fail),
        TEST(test_every_malloc_may_fail),
        TEST(test_a_frame_without_memory_for_its_places_releases_what_it_was_given),
        TEST(test_a_wrap_that_fails_does_not_end_its_memory),
        TEST(test_a_copy_that_fails_leaves_nothing),
        TEST(test_an_import_that_fails_does_not_run_the_deleter),
        TEST(test_an_export_that_fails_leaves_nothing),
        TEST(test_a_long_list_of_arrays_survives_a_lack_of_memory),
        TEST(test_the_peak_of_live_arrays_is_as_written_down),
    };
    static const test slots[] = {
        TEST(test_every_slot_call_may_fail),
        TEST(test_every_slot_call_may_fail_while_sizes_are_symbols),
        TEST(test_a_declined_composite_falls_back_to_its_formula),
        TEST(test_a_declined_primitive_is_an_error),
    };
    static const mode proxies[] = {{" [proxy]", 0, ROW_MAJOR, proxy_make},
                                   {" [tracked proxy]", 0, ROW_MAJOR, proxy_make_tracked}};
    int failed = RUN(memory, plainly, argc, argv);
    return RUN(slots, proxies, argc, argv) || failed;
}
