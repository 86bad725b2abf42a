/* DLPack in and out: layouts, element types, refusals, and whose the memory is when. */
#include <pthread.h>

#include "backends/native/dlpack_abi.h"
#include "fixture.h"

typedef struct DLManagedTensor plain;
typedef struct DLManagedTensorVersioned versioned;

/* --- a producer ------------------------------------------------------------------------------ */

static int deleted; /* runs of the deleters below */

static void delete_plain(plain *self)
{
    deleted++;
    self->tensor.data = NULL;
}

static void delete_versioned(versioned *self)
{
    deleted++;
    self->tensor.data = NULL;
}

static ati_dl_tensor tensor_of(at_dtype dtype, int ndim, const int64_t *sizes,
                               const int64_t *strides, void *data)
{
    static int64_t axes[2 * AT_MAX_NDIM]; /* the sizes, then the strides, of the last tensor */
    uint8_t code = dtype == AT_BFLOAT16 ? ATI_DL_BFLOAT : ATI_DL_INT;
    if (dtype == AT_BOOL) code = ATI_DL_BOOL;
    if (dtype != AT_BFLOAT16 && kind_of(dtype) == 'f') code = ATI_DL_FLOAT;
    if (kind_of(dtype) == 'u') code = ATI_DL_UINT;
    for (int k = 0; k < ndim && k < AT_MAX_NDIM; k++) {
        axes[k] = sizes[k];
        if (strides != NULL) axes[AT_MAX_NDIM + k] = strides[k];
    }
    return (ati_dl_tensor){.data = data,
                           .device_type = ATI_DL_CPU,
                           .ndim = ndim,
                           .code = code,
                           .bits = (uint8_t)(8 * at_dtype_size(dtype)),
                           .lanes = 1,
                           .shape = axes,
                           .strides = strides == NULL ? NULL : axes + AT_MAX_NDIM};
}

static plain plain_of(ati_dl_tensor tensor) { return (plain){tensor, NULL, delete_plain}; }

static versioned versioned_of(ati_dl_tensor tensor, uint64_t flags)
{
    return (versioned){1, 0, NULL, delete_versioned, flags, tensor};
}

/* Six int32 numbers, 0 to 5, as a tensor. */
static int32_t six[6];

static ati_dl_tensor six_as(int ndim, const int64_t *sizes, const int64_t *strides, int first)
{
    for (int i = 0; i < 6; i++) six[i] = i;
    ati_dl_tensor t = tensor_of(AT_INT32, ndim, sizes, strides, six);
    t.byte_offset = (uint64_t)first * sizeof *six;
    return t;
}

/* --- in -------------------------------------------------------------------------------------- */

static void test_every_dtype_comes_in_in_both_forms(at_frame *up)
{
    for (int d = 0; d < COUNT_OF(every_dtype); d++) {
        at_frame frame, *f = at_enter(&frame, up);
        char memory[4 * 8];
        size_t size = at_dtype_size(every_dtype[d]);
        for (size_t i = 0; i < 4; i++) encode(every_dtype[d], (double)(i % 2), memory + i * size);
        plain p = plain_of(tensor_of(every_dtype[d], SIZES(2, 2), NULL, memory));
        versioned v = versioned_of(p.tensor, 0);
        check_note = at_dtype_name(every_dtype[d]);
        at_array x = at_from_dlpack(f, &p), y = at_from_dlpack_versioned(f, &v);
        CHECK(at_native_data(x) == memory && at_native_data(y) == memory);
        EXPECT(x, every_dtype[d], SIZES(2, 2), VALUES(0, 1, 0, 1));
        EXPECT(y, every_dtype[d], SIZES(2, 2), VALUES(0, 1, 0, 1));
        deleted = 0;
        at_leave(f, AT_NIL);
        CHECK(deleted == 2);
    }
}

static void test_strides_count_elements_and_the_offset_bytes(at_frame *f)
{
    static const int64_t strides[][2] = {{3, 1}, {1, 3}, {-3, -1}, {3, 2}, {0, 1}, {3, -1}};
    static const int64_t sizes[][2] = {{2, 3}, {3, 2}, {2, 3}, {2, 2}, {2, 3}, {2, 3}};
    static const int first[] = {0, 0, 5, 0, 3, 2};
    static const double values[][6] = {{0, 1, 2, 3, 4, 5}, {0, 3, 1, 4, 2, 5}, {5, 4, 3, 2, 1, 0},
                                       {0, 2, 3, 5},       {3, 4, 5, 3, 4, 5}, {2, 1, 0, 5, 4, 3}};
    for (int i = 0; i < COUNT_OF(sizes); i++) {
        plain p = plain_of(six_as(2, sizes[i], strides[i], first[i]));
        at_array x = at_from_dlpack(f, &p);
        EXPECT(x, AT_INT32, 2, sizes[i], values[i]);
        at_drop(f, x);
    }
}

static void test_strides_that_are_never_taken_may_be_anything(at_frame *up)
{
    at_frame frame, *f = at_enter(&frame, up);
    const int64_t wild[] = {INT64_MAX, 1, INT64_MIN};
    plain p = plain_of(six_as(SIZES(1, 6, 1), wild, 0));
    EXPECT(at_from_dlpack(f, &p), AT_INT32, SIZES(1, 6, 1), VALUES(0, 1, 2, 3, 4, 5));
    plain q = plain_of(six_as(SIZES(0, 6, 2), wild, 0));
    at_array x = at_from_dlpack(f, &q);
    EXPECT(x, AT_INT32, SIZES(0, 6, 2), NO_VALUES);
    EXPECT(at_sum(f, x, (at_axes){1, {0}}, false), AT_INT64, SIZES(6, 2),
           VALUES(0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0));
    at_leave(f, AT_NIL);
}

static void test_rank_0_and_size_0_need_no_lists_and_no_memory(at_frame *up)
{
    at_frame frame, *f = at_enter(&frame, up);
    plain p = plain_of(six_as(ZERO_D, NULL, 4));
    p.tensor.shape = NULL;
    EXPECT(at_from_dlpack(f, &p), AT_INT32, ZERO_D, VALUES(4));
    plain q = plain_of(tensor_of(AT_INT32, SIZES(3, 0), NULL, NULL));
    q.tensor.byte_offset = UINT64_MAX;
    at_array x = at_from_dlpack(f, &q), ids = VEC(f, AT_INT64, 0, 1, 1);
    EXPECT(x, AT_INT32, SIZES(3, 0), NO_VALUES);
    EXPECT(at_segment_sum(f, x, ids, AT_DIM(2), false), AT_INT32, SIZES(2, 0), NO_VALUES);
    EXPECT(at_take(f, x, ids, 0), AT_INT32, SIZES(3, 0), NO_VALUES);
    EXPECT(at_concatenate(f, (at_list){2, (at_array[]){x, x}}, 0), AT_INT32, SIZES(6, 0),
           NO_VALUES);
    at_leave(f, AT_NIL);
}

static void test_the_deleter_runs_once_when_the_last_reference_goes(at_frame *up)
{
    at_frame root, *r = at_open(&root, up->cx), frame, *f = at_enter(&frame, r);
    plain p = plain_of(six_as(SIZES(6), NULL, 0));
    deleted = 0;
    at_array x = at_from_dlpack(f, &p);
    at_retain(x);
    at_array view = at_leave(f, at_head(f, x, AT_DIM(2)));
    CHECK(deleted == 0);
    at_release(x);
    CHECK(deleted == 0);
    EXPECT(view, AT_INT32, SIZES(2), VALUES(0, 1));
    at_close(r);
    CHECK(deleted == 1);
}

static void test_a_tensor_without_a_deleter_comes_in(at_frame *up)
{
    at_frame frame, *f = at_enter(&frame, up);
    plain p = {six_as(SIZES(2), NULL, 0), NULL, NULL};
    versioned v = {1, 7, NULL, NULL, 0, p.tensor};
    EXPECT(at_from_dlpack(f, &p), AT_INT32, SIZES(2), VALUES(0, 1));
    EXPECT(at_from_dlpack_versioned(f, &v), AT_INT32, SIZES(2), VALUES(0, 1));
    at_leave(f, AT_NIL);
}

/* --- what is refused -------------------------------------------------------------------------- */

/* Both forms refuse a tensor; whoever made it still owns it. */
static void refused(at_frame *f, ati_dl_tensor tensor, at_status status, const char *word)
{
    plain p = plain_of(tensor);
    versioned v = versioned_of(tensor, 0);
    int live = (int)at_native_live();
    deleted = 0;
    check_note = word;
    EXPECT_ERROR(f, at_from_dlpack(f, &p), status, word);
    EXPECT_ERROR(f, at_from_dlpack_versioned(f, &v), status, word);
    CHECK(deleted == 0 && at_native_live() == live);
}

static void test_other_element_types_are_refused(at_frame *f)
{
    static const struct {
        uint8_t code, bits;
        uint16_t lanes;
    } bad[] = {{ATI_DL_FLOAT, 32, 2},
               {ATI_DL_FLOAT, 32, 0},
               {ATI_DL_FLOAT, 8, 1},
               {ATI_DL_FLOAT, 128, 1},
               {ATI_DL_INT, 4, 1},
               {ATI_DL_INT, 0, 1},
               {ATI_DL_BOOL, 1, 1},
               {3, 64, 1},
               {5, 64, 1},
               {7, 8, 1},
               {255, 32, 1},
               {ATI_DL_BFLOAT, 32, 1}};
    for (int i = 0; i < COUNT_OF(bad); i++) {
        ati_dl_tensor t = six_as(SIZES(1), NULL, 0);
        t.code = bad[i].code;
        t.bits = bad[i].bits;
        t.lanes = bad[i].lanes;
        refused(f, t, AT_EDTYPE, "element type");
    }
}

static void test_other_devices_are_refused(at_frame *f)
{
    static const int32_t devices[] = {2, 3, 0, -1, 13};
    for (int i = 0; i < COUNT_OF(devices); i++) {
        ati_dl_tensor t = six_as(SIZES(1), NULL, 0);
        t.device_type = devices[i];
        refused(f, t, AT_EUNSUPPORTED, "device type");
    }
}

static void test_impossible_shapes_are_refused(at_frame *f)
{
    int64_t many[AT_MAX_NDIM + 1] = {0};
    ati_dl_tensor t = six_as(SIZES(2), NULL, 0);
    t.shape = NULL;
    refused(f, t, AT_EVALUE, "no shape");
    refused(f, six_as(SIZES(-1), NULL, 0), AT_EVALUE, "-1");
    refused(f, six_as(SIZES(0, -1), NULL, 0), AT_EVALUE, "-1");
    t = six_as(SIZES(2), NULL, 0);
    t.shape = many;
    t.ndim = AT_MAX_NDIM + 1;
    refused(f, t, AT_EVALUE, "33");
    t.ndim = -1;
    refused(f, t, AT_EVALUE, "-1");
    t.ndim = INT32_MIN;
    refused(f, t, AT_EVALUE, "rank");
    refused(f, six_as(SIZES(INT64_MAX), NULL, 0), AT_EVALUE, "int64");
    refused(f, six_as(SIZES(INT64_MAX / 8, 3), NULL, 0), AT_EVALUE, "int64");
    refused(f, six_as(SIZES(0, INT64_MAX), NULL, 0), AT_EVALUE, "int64");
}

static void test_memory_that_cannot_be_there_is_refused(at_frame *f)
{
    ati_dl_tensor t = tensor_of(AT_INT32, SIZES(2), NULL, NULL);
    refused(f, t, AT_EVALUE, "no memory");
    t = six_as(SIZES(2), NULL, 0);
    t.byte_offset = UINT64_MAX;
    refused(f, t, AT_EVALUE, "beyond");
    t.byte_offset = INT64_MAX;
    t.data = (void *)(UINTPTR_MAX - 64);
    refused(f, t, AT_EVALUE, "beyond");
    t.byte_offset = 60;
    refused(f, t, AT_EVALUE, "beyond");
    refused(f, six_as(SIZES(2), (int64_t[]){INT64_MAX}, 0), AT_EVALUE, "stride");
    refused(f, six_as(SIZES(2), (int64_t[]){INT64_MIN / 4 - 1}, 0), AT_EVALUE, "stride");
    refused(f, six_as(SIZES(2), (int64_t[]){INT64_MIN / 4}, 0), AT_EVALUE, "beyond");
    refused(f, six_as(SIZES(2), (int64_t[]){INT64_MIN / 16}, 0), AT_EVALUE, "beyond");
    refused(f, six_as(SIZES(3), (int64_t[]){INT64_MAX / 8}, 0), AT_EVALUE, "beyond");
    const int64_t far[] = {INT64_MAX / 8, INT64_MAX / 8, INT64_MAX / 8};
    refused(f, six_as(SIZES(2, 2, 2), far, 0), AT_EVALUE, "beyond");
}

static void test_other_major_versions_are_refused_unread(at_frame *f)
{
    static const uint32_t majors[] = {0, 2, UINT32_MAX};
    for (int i = 0; i < COUNT_OF(majors); i++) {
        versioned *v = malloc(2 * sizeof(uint32_t)); /* nothing else is there to be read */
        if (v == NULL) abort();
        memcpy(v, (uint32_t[]){majors[i], 3}, 2 * sizeof(uint32_t));
        EXPECT_ERROR(f, at_from_dlpack_versioned(f, v), AT_EUNSUPPORTED, "version");
        free(v);
    }
}

static void test_nothing_is_taken_from_null_or_by_a_context_that_failed(at_frame *f)
{
    plain p = plain_of(six_as(SIZES(2), NULL, 0)), *out = &p;
    versioned v = versioned_of(p.tensor, 0), *vout = &v;
    deleted = 0;
    EXPECT_ERROR(f, at_from_dlpack(f, NULL), AT_EARG, "NULL");
    EXPECT_ERROR(f, at_from_dlpack_versioned(f, NULL), AT_EARG, "NULL");
    at_array x = VEC(f, AT_INT8, 1);
    at_error(f->cx, AT_ESHAPE, "an earlier error");
    CHECK(at_is_nil(at_from_dlpack(f, &p)) && at_is_nil(at_from_dlpack_versioned(f, &v)));
    CHECK(at_to_dlpack(f->cx, x, AT_DLPACK_SHARE, &out) == AT_ESHAPE && out == NULL);
    CHECK(at_to_dlpack_versioned(f->cx, x, AT_DLPACK_COPY, &vout) == AT_ESHAPE && vout == NULL);
    at_clear(f->cx);
    CHECK(deleted == 0);
}

static void test_an_import_without_memory_leaves_the_tensor_its_owner(at_frame *up)
{
    at_frame frame, *f = at_enter(&frame, up);
    while (f->count < AT_FRAME_PLACES) zero_d(f, AT_INT8, 1);
    plain p = plain_of(six_as(SIZES(6), NULL, 0));
    versioned v = versioned_of(p.tensor, 0);
    deleted = 0;
    memory_gets = 0;
    memory_fail_at = 0;
    EXPECT_ERROR(f, at_from_dlpack(f, &p), AT_ENOMEM, "memory");
    memory_gets = 0;
    EXPECT_ERROR(f, at_from_dlpack_versioned(f, &v), AT_ENOMEM, "memory");
    memory_fail_at = -1;
    CHECK(deleted == 0);
    at_leave(f, AT_NIL);
}

/* --- out ------------------------------------------------------------------------------------- */

static plain *out_plain(at_frame *f, at_array a, at_dlpack_rule rule)
{
    plain *out;
    CHECK(at_to_dlpack(f->cx, a, rule, &out) == AT_OK && out != NULL);
    return out;
}

static versioned *out_versioned(at_frame *f, at_array a, at_dlpack_rule rule)
{
    versioned *out;
    CHECK(at_to_dlpack_versioned(f->cx, a, rule, &out) == AT_OK && out != NULL);
    return out;
}

/* The element of a tensor of two axes, as any consumer would find it. */
static double element(const ati_dl_tensor *t, at_dtype dtype, int64_t i, int64_t j)
{
    int64_t at = i * t->strides[0] + j * t->strides[1];
    const char *first = (const char *)t->data + t->byte_offset;
    return decode(dtype, first + at * (t->bits / 8));
}

static void test_every_dtype_goes_out_in_both_forms(at_frame *f)
{
    for (int d = 0; d < COUNT_OF(every_dtype); d++) {
        at_dtype dtype = every_dtype[d];
        at_array x = given(f, dtype, SIZES(2, 3), VALUES(1, 0, 1, 0, 0, 1));
        ati_dl_tensor like = tensor_of(dtype, 0, NULL, NULL, NULL);
        plain *p = out_plain(f, x, AT_DLPACK_SHARE);
        versioned *v = out_versioned(f, x, AT_DLPACK_SHARE);
        const ati_dl_tensor *both[] = {&p->tensor, &v->tensor};
        for (int i = 0; i < 2; i++) {
            const ati_dl_tensor *t = both[i];
            CHECK(t->data == at_native_data(x) && t->byte_offset == 0);
            CHECK(t->device_type == ATI_DL_CPU && t->device_id == 0 && t->ndim == 2);
            CHECK(t->code == like.code && t->bits == like.bits && t->lanes == 1);
            CHECK(t->shape[0] == 2 && t->shape[1] == 3 && t->strides[0] == 3 && t->strides[1] == 1);
            CHECK(element(t, dtype, 0, 0) == 1 && element(t, dtype, 1, 2) == 1 &&
                  element(t, dtype, 1, 1) == 0);
        }
        CHECK(v->major == 1 && v->flags == 0);
        p->deleter(p);
        v->deleter(v);
    }
}

static void test_views_and_wraps_go_out_as_they_are(at_frame *f)
{
    int32_t m[] = {0, 1, 2, 3, 4, 5};
    at_array x = at_native_wrap(f, AT_INT32, SIZES(2, 3), (int64_t[]){-12, -4}, m + 5, NULL, NULL);
    plain *p = out_plain(f, x, AT_DLPACK_SHARE);
    CHECK(p->tensor.data == m + 5 && p->tensor.strides[0] == -3 && p->tensor.strides[1] == -1);
    CHECK(element(&p->tensor, AT_INT32, 1, 2) == 0);
    p->deleter(p);
    at_array head = at_head(f, x, AT_DIM(1));
    versioned *v = out_versioned(f, head, AT_DLPACK_SHARE);
    CHECK(v->tensor.data == m + 5 && v->tensor.shape[0] == 1 && v->flags == 0);
    v->deleter(v);
    v = out_versioned(f, x,
                      AT_DLPACK_COPY_IF_NEEDED); /* some consumers crash on negative strides */
    CHECK(v->flags == ATI_DL_IS_COPIED && v->tensor.strides[0] == 3);
    CHECK(element(&v->tensor, AT_INT32, 1, 2) == 0);
    v->deleter(v);
}

static void test_a_copy_is_apart_row_major_and_says_so(at_frame *f)
{
    int32_t m[] = {0, 1, 2, 3, 4, 5};
    at_array x = at_native_wrap(f, AT_INT32, SIZES(2, 3), (int64_t[]){-12, -4}, m + 5, NULL, NULL);
    at_native_set_read_only(x);
    versioned *v = out_versioned(f, x, AT_DLPACK_COPY);
    plain *p = out_plain(f, x, AT_DLPACK_COPY);
    m[5] = 99;
    CHECK(v->flags == ATI_DL_IS_COPIED && v->tensor.strides[0] == 3 && p->tensor.strides[1] == 1);
    CHECK(element(&v->tensor, AT_INT32, 0, 0) == 5 && element(&p->tensor, AT_INT32, 1, 2) == 0);
    v->deleter(v);
    p->deleter(p);
}

static void test_rank_0_and_size_0_go_out(at_frame *f)
{
    plain *p = out_plain(f, zero_d(f, AT_FLOAT64, 2.5), AT_DLPACK_SHARE);
    CHECK(p->tensor.ndim == 0 && decode(AT_FLOAT64, p->tensor.data) == 2.5);
    p->deleter(p);
    const int64_t odd[] = {7, 3};
    char memory[8] = {0};
    at_array x = at_native_wrap(f, AT_INT32, SIZES(0, 2), odd, memory + 1, NULL, NULL);
    versioned *v = out_versioned(f, x, AT_DLPACK_SHARE);
    CHECK(v->tensor.shape[0] == 0 && v->tensor.strides[0] == 2 && v->tensor.strides[1] == 1);
    v->deleter(v);
}

static void test_what_dlpack_cannot_spell_is_refused_or_copied(at_frame *f)
{
    char memory[64];
    plain *p;
    versioned *v;
    for (int i = 0; i < 3; i++) encode(AT_INT32, i + 1, memory + 1 + 9 * i);
    at_array odd[] = {at_native_wrap(f, AT_INT32, SIZES(3), (int64_t[]){9}, memory + 1, NULL, NULL),
                      given_at(f, AT_INT32, SIZES(3), VALUES(1, 2, 3), 4, 1),
                      given_at(f, AT_INT32, SIZES(3), VALUES(1, 2, 3), -6, 0)};
    for (int i = 0; i < COUNT_OF(odd); i++) {
        CHECK(at_to_dlpack(f->cx, odd[i], AT_DLPACK_SHARE, &p) == AT_EUNSUPPORTED && p == NULL);
        EXPECT_ERROR(f, AT_NIL, AT_EUNSUPPORTED, "multiple of 4 bytes", "int32", "copy");
        CHECK(at_to_dlpack_versioned(f->cx, odd[i], AT_DLPACK_SHARE, &v) == AT_EUNSUPPORTED);
        CHECK(v == NULL);
        at_clear(f->cx);
        v = out_versioned(f, odd[i], AT_DLPACK_COPY_IF_NEEDED);
        CHECK(v->flags == ATI_DL_IS_COPIED && v->tensor.strides[0] == 1);
        CHECK(decode(AT_INT32, (char *)v->tensor.data + 8) == 3);
        v->deleter(v);
    }
}

static void test_what_is_no_native_array_does_not_go_out(at_frame *f)
{
    plain *p;
    at_scalar s;
    CHECK(at_to_dlpack(f->cx, AT_NIL, AT_DLPACK_SHARE, &p) == AT_EARG && p == NULL);
    at_clear(f->cx);
    CHECK(at_to_dlpack(f->cx, at_scalar_int(&s, 1), AT_DLPACK_SHARE, &p) == AT_EBACKEND);
    CHECK(p == NULL);
    at_clear(f->cx);
}

static void test_read_only_memory_stays_so(at_frame *up)
{
    at_frame frame, *f = at_enter(&frame, up);
    plain *p;
    versioned v = versioned_of(six_as(SIZES(6), NULL, 0), ATI_DL_READ_ONLY | 1u << 7);
    at_array x = at_from_dlpack_versioned(f, &v), view = at_head(f, x, AT_DIM(3));
    at_array fresh = at_add(f, x, x);
    CHECK(at_native_is_read_only(x) && at_native_is_read_only(view));
    CHECK(!at_native_is_read_only(fresh));
    at_array marked[] = {x, view};
    for (int i = 0; i < 2; i++) {
        versioned *out = out_versioned(f, marked[i], AT_DLPACK_COPY_IF_NEEDED);
        CHECK(out->flags == ATI_DL_READ_ONLY && out->tensor.data == six);
        out->deleter(out);
        for (at_dlpack_rule rule = AT_DLPACK_SHARE; rule < AT_DLPACK_COPY; rule++) {
            CHECK(at_to_dlpack(f->cx, marked[i], rule, &p) == AT_EUNSUPPORTED && p == NULL);
            EXPECT_ERROR(f, AT_NIL, AT_EUNSUPPORTED, "read-only", "1.0");
        }
    }
    p = out_plain(f, fresh, AT_DLPACK_SHARE);
    p->deleter(p);
    at_leave(f, AT_NIL);
}

/* --- a consumer that outlives the producer ---------------------------------------------------- */

static void *consume(void *tensor)
{
    versioned *v = tensor;
    double sum = 0;
    for (int64_t i = 0; i < v->tensor.shape[0]; i++) sum += element(&v->tensor, AT_INT32, i, 0);
    v->deleter(v);
    static double result;
    result = sum;
    return &result;
}

/* A tensor over arrays that are all gone when it comes back. */
static versioned *orphan(at_frame *up, plain *producer)
{
    at_frame root, *f = at_open(&root, up->cx);
    at_shape tall = {.ndim = 2, .dim = {{.n = 6}, {.n = 1}}};
    at_array x =
        producer != NULL ? at_from_dlpack(f, producer) : VEC(f, AT_INT32, 0, 1, 2, 3, 4, 5);
    at_array view = at_reshape(f, x, &tall);
    versioned *v = out_versioned(f, view, AT_DLPACK_SHARE);
    at_close(f);
    return v;
}

static void test_a_consumer_outlives_every_array(at_frame *f)
{
    versioned *v = orphan(f, NULL);
    CHECK(at_native_live() > 0 && element(&v->tensor, AT_INT32, 5, 0) == 5);
    v->deleter(v);
    CHECK(at_native_live() == 0);
}

static void test_a_consumer_may_end_on_another_thread(at_frame *f)
{
    pthread_t thread;
    void *sum;
    plain p = plain_of(six_as(SIZES(6), NULL, 0));
    deleted = 0;
    versioned *own = orphan(f, NULL), *passed = orphan(f, &p);
    CHECK(deleted == 0);
    versioned *both[] = {own, passed};
    for (int i = 0; i < 2; i++) {
        CHECK(pthread_create(&thread, NULL, consume, both[i]) == 0);
        pthread_join(thread, &sum);
        CHECK(*(double *)sum == 15 && deleted == i);
    }
}

static void test_a_round_trip_shares_memory_and_ends_in_order(at_frame *up)
{
    at_frame root, *f = at_open(&root, up->cx);
    at_array x = VEC(f, AT_FLOAT32, 1, 2, 4);
    at_array y = at_from_dlpack(f, out_plain(f, x, AT_DLPACK_SHARE));
    CHECK(at_native_data(x) == at_native_data(y));
    at_array z = at_from_dlpack_versioned(f, out_versioned(f, y, AT_DLPACK_SHARE));
    at_drop(f, x);
    at_drop(f, y);
    EXPECT(z, AT_FLOAT32, SIZES(3), VALUES(1, 2, 4));
    CHECK(at_native_live() == 3);
    at_close(f);
    CHECK(at_native_live() == 0);
}

int main(int argc, char **argv)
{
    static const test tests[] = {
        TEST(test_every_dtype_comes_in_in_both_forms),
        TEST(test_strides_count_elements_and_the_offset_bytes),
        TEST(test_strides_that_are_never_taken_may_be_anything),
        TEST(test_rank_0_and_size_0_need_no_lists_and_no_memory),
        TEST(test_the_deleter_runs_once_when_the_last_reference_goes),
        TEST(test_a_tensor_without_a_deleter_comes_in),
        TEST(test_other_element_types_are_refused),
        TEST(test_other_devices_are_refused),
        TEST(test_impossible_shapes_are_refused),
        TEST(test_memory_that_cannot_be_there_is_refused),
        TEST(test_other_major_versions_are_refused_unread),
        TEST(test_nothing_is_taken_from_null_or_by_a_context_that_failed),
        TEST(test_an_import_without_memory_leaves_the_tensor_its_owner),
        TEST(test_every_dtype_goes_out_in_both_forms),
        TEST(test_views_and_wraps_go_out_as_they_are),
        TEST(test_a_copy_is_apart_row_major_and_says_so),
        TEST(test_rank_0_and_size_0_go_out),
        TEST(test_what_dlpack_cannot_spell_is_refused_or_copied),
        TEST(test_what_is_no_native_array_does_not_go_out),
        TEST(test_read_only_memory_stays_so),
        TEST(test_a_consumer_outlives_every_array),
        TEST(test_a_consumer_may_end_on_another_thread),
        TEST(test_a_round_trip_shares_memory_and_ends_in_order),
    };
    return RUN(tests, plainly, argc, argv);
}
