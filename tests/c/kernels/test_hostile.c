/* Segment kernels on memory and ids that mean harm: ids at the ends of their dtype, sizes that overflow, elements that
 * are misaligned, run backwards, overlap or may not be written, nothing at all, callers that meet or fork.
 *
 * Inputs lie between pages that cannot be touched, outputs before one, so that a byte too many ends the program with
 * or without a sanitizer. Values are small whole numbers: every dtype adds them exactly, in any order. */
#include <pthread.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fixture.h"
#include "kernels/segment.h"

#define INF ((double)INFINITY)

/* --- memory between fences --------------------------------------------------------------------------- */

typedef struct pen {
    char *map;
    size_t size;
} pen;

static size_t page(void) { return (size_t)sysconf(_SC_PAGESIZE); }

/* size bytes that begin behind a forbidden page, or (at_end) end before one. */
static char *pen_open(pen *p, size_t size, bool at_end)
{
    size_t inner = (size + page() - 1) / page() * page();
    p->size = inner + 2 * page();
    p->map = mmap(NULL, p->size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p->map == MAP_FAILED) abort();
    char *start = p->map + page();
    if (inner > 0 && mprotect(start, inner, PROT_READ | PROT_WRITE) != 0) abort();
    return start + (at_end ? inner - size : 0);
}

static void pen_seal(const pen *p)
{
    if (p->size > 2 * page() && mprotect(p->map + page(), p->size - 2 * page(), PROT_READ) != 0)
        abort();
}

static void pen_close(pen *p) { munmap(p->map, p->size); }

/* Memory for a result: 64-byte aligned, as kernels are promised, the rest up to the fence marked. */
static ati_host result_open(pen *p, at_dtype dtype, int ndim, const int64_t *dims)
{
    ati_host out = {.dtype = dtype, .ndim = ndim};
    int64_t step = (int64_t)at_dtype_size(dtype);
    for (int k = ndim; k-- > 0; step *= dims[k]) {
        out.dim[k] = dims[k];
        out.stride[k] = step;
    }
    size_t room = ((size_t)step + 63) / 64 * 64;
    out.data = pen_open(p, room, true);
    if (room > 0) memset(out.data, 0x5A, room);
    return out;
}

static int64_t elements(const ati_host *v) { return product(v->ndim, v->dim); }

static void result_close(pen *p, const ati_host *out)
{
    const char *end = (const char *)out->data + elements(out) * (int64_t)at_dtype_size(out->dtype);
    for (; (uintptr_t)end % 64 != 0; end++)
        if (!CHECK(*end == 0x5A)) break;
    pen_close(p);
}

/* --- what kernels should give, by plain loops --------------------------------------------------------- */

static const char *element(const ati_host *v, int64_t index)
{
    const char *p = v->data;
    for (int k = v->ndim; k-- > 0; index /= v->dim[k]) p += index % v->dim[k] * v->stride[k];
    return p;
}

/* All elements; to be freed. */
static double *plain(const ati_host *v)
{
    double *values = malloc(((size_t)elements(v) + 1) * sizeof *values);
    if (values == NULL) abort();
    for (int64_t i = 0; i < elements(v); i++) values[i] = decode(v->dtype, element(v, i));
    return values;
}

/* Ids in [0, n), -1 for all others; without a double, which could not tell INT64_MAX from its neighbours. */
static int64_t *plain_ids(const ati_host *v, int64_t n)
{
    int64_t *ids = malloc(((size_t)elements(v) + 1) * sizeof *ids);
    if (ids == NULL) abort();
    for (int64_t e = 0; e < elements(v); e++) {
        uint64_t id = 0; /* little-endian, as everything here */
        size_t size = at_dtype_size(v->dtype);
        memcpy(&id, element(v, e), size);
        bool negative = kind_of(v->dtype) == 'i' && id >> (8 * size - 1);
        ids[e] = !negative && id < (uint64_t)n ? (int64_t)id : -1;
    }
    return ids;
}

typedef struct asked {
    const ati_host *x, *ids;
    int64_t n, rows, width;
    double *value;
    int64_t *id;
} asked;

static double start_of(ati_fold op, at_dtype dtype)
{
    double top = dtype == AT_BOOL ? 1 : ldexp(1, 8 * (int)at_dtype_size(dtype));
    if (op == ATI_FOLD_SUM) return 0;
    if (kind_of(dtype) == 'f') return op == ATI_FOLD_MIN ? INF : -INF;
    if (kind_of(dtype) == 'i') return op == ATI_FOLD_MIN ? top / 2 - 1 : -top / 2;
    return op == ATI_FOLD_MAX ? 0 : dtype == AT_BOOL ? 1 : top - 1;
}

static double *plain_fold(const asked *a, ati_fold op, at_dtype dtype)
{
    int64_t count = a->n * a->width;
    double *want = malloc(((size_t)count + 1) * sizeof *want);
    if (want == NULL) abort();
    for (int64_t i = 0; i < count; i++) want[i] = start_of(op, dtype);
    for (int64_t i = 0; i < a->rows * a->width; i++) {
        int64_t id = a->id[i / a->width];
        if (id < 0) continue;
        double *w = &want[id * a->width + i % a->width], v = a->value[i];
        *w = op == ATI_FOLD_SUM ? *w + v : op == ATI_FOLD_MIN ? fmin(*w, v) : fmax(*w, v);
    }
    return want;
}

/* Rows of each segment, once for each column. */
static double *plain_counts(const asked *a)
{
    double *rows = calloc((size_t)(a->n * a->width) + 1, sizeof *rows);
    if (rows == NULL) abort();
    for (int64_t i = 0; i < a->rows * a->width; i++)
        if (a->id[i / a->width] >= 0) rows[a->id[i / a->width] * a->width + i % a->width]++;
    return rows;
}

static double *plain_mean(const asked *a)
{
    double *mean = plain_fold(a, ATI_FOLD_SUM, AT_FLOAT64), *rows = plain_counts(a);
    for (int64_t i = 0; i < a->n * a->width; i++) mean[i] /= fmax(rows[i], 1);
    free(rows);
    return mean;
}

static double exp_of(double v, double peak) { return exp(v - peak); }
static double exp_share(double v, double peak, double sum) { return exp(v - peak) / sum; }
static double value_of(double v, double peak) { return (void)peak, v; }
static double square_of(double v, double peak) { return (void)peak, v * v; }
static double ties_of(double v, double peak) { return v < peak ? 0 : 1; }
static double share(double v, double peak, double sum) { return (void)peak, sum > 0 ? v / sum : 0; }
static double slope(double v, double peak, double sum) { return (void)peak, v * (v - sum); }
static double share_of_six(double v, double peak, double sum) { return v < peak ? 0 : 6 / sum; }

/* Made of each element, its segment's peak, and a sum over the segment; 0 for dropped rows. */
static double *plain_composite(const asked *a, double (*term)(double, double),
                               double (*made)(double, double, double))
{
    double *peak = plain_fold(a, ATI_FOLD_MAX, AT_FLOAT64);
    double *total = calloc((size_t)(a->n * a->width) + 1, sizeof *total);
    double *want = calloc((size_t)(a->rows * a->width) + 1, sizeof *want);
    if (total == NULL || want == NULL) abort();
    for (int64_t i = 0; i < 2 * a->rows * a->width;
         i++) { /* twice: the sums, what is made of them */
        int64_t k = i % (a->rows * a->width), id = a->id[k / a->width];
        int64_t at = id * a->width + k % a->width;
        if (id < 0) continue;
        if (i == k)
            total[at] += term(a->value[k], peak[at]);
        else
            want[k] = made(a->value[k], peak[at], total[at]);
    }
    free(peak);
    free(total);
    return want;
}

static double *plain_softmax(const asked *a) { return plain_composite(a, exp_of, exp_share); }
static double *plain_normalize(const asked *a) { return plain_composite(a, value_of, share); }
static double *plain_softmax_back(const asked *a) { return plain_composite(a, square_of, slope); }
static double *plain_extreme_back(const asked *a)
{
    return plain_composite(a, ties_of, share_of_six);
}

/* --- kernels against loops --------------------------------------------------------------------------- */

static void agree(const ati_host *out, const double *want)
{
    double *got = plain(out);
    CHECK_EQ(got, want, (size_t)elements(out), tolerance_of(out->dtype));
    free(got);
}

static void fold_agrees(const asked *a, ati_fold op)
{
    pen room;
    int64_t dims[AT_MAX_NDIM];
    for (int k = 0; k < a->x->ndim; k++) dims[k] = k == 0 ? a->n : a->x->dim[k];
    at_dtype dtype = op == ATI_FOLD_SUM && a->x->dtype == AT_BOOL ? AT_INT64 : a->x->dtype;
    ati_host out = result_open(&room, dtype, a->x->ndim, dims);
    double *want = plain_fold(a, op, dtype);
    CHECK(ati_k_segment_fold(op, a->x, a->ids, &out));
    agree(&out, want);
    free(want);
    result_close(&room, &out);
}

/* The dtype of composites: the data's own, or float64. */
static at_dtype float_of(at_dtype dtype) { return kind_of(dtype) == 'f' ? dtype : AT_FLOAT64; }

static void mean_agrees(const asked *a)
{
    pen room;
    int64_t dims[AT_MAX_NDIM];
    for (int k = 0; k < a->x->ndim; k++) dims[k] = k == 0 ? a->n : a->x->dim[k];
    ati_host out = result_open(&room, float_of(a->x->dtype), a->x->ndim, dims);
    double *want = plain_mean(a);
    CHECK(ati_k_segment_mean(a->x, a->ids, &out));
    agree(&out, want);
    free(want);
    result_close(&room, &out);
}

/* The least row, and 9 or True where a segment is empty. */
static void least_or_nine_agrees(const asked *a)
{
    pen room;
    unsigned char nine = 9;
    int64_t dims[AT_MAX_NDIM];
    for (int k = 0; k < a->x->ndim; k++) dims[k] = k == 0 ? a->n : a->x->dim[k];
    ati_host out = result_open(&room, a->x->dtype, a->x->ndim, dims);
    ati_host constant = {.data = &nine, .dtype = AT_UINT8};
    double *want = plain_fold(a, ATI_FOLD_MIN, a->x->dtype), *rows = plain_counts(a);
    for (int64_t i = 0; i < a->n * a->width; i++)
        if (rows[i] < 1) want[i] = stored(a->x->dtype, 9);
    CHECK(ati_k_segment_or_constant(ATI_FOLD_MIN, a->x, a->ids, &constant, &out));
    agree(&out, want);
    free(want);
    free(rows);
    result_close(&room, &out);
}

typedef bool per_row(const asked *a, ati_host *out);

static bool softmax(const asked *a, ati_host *out)
{
    return ati_k_segment_softmax(a->x, a->ids, a->n, out);
}

static bool normalize(const asked *a, ati_host *out)
{
    return ati_k_segment_normalize(a->x, a->ids, a->n, out);
}

/* With x as the softmax and as what comes back. */
static bool softmax_back(const asked *a, ati_host *out)
{
    return ati_k_segment_softmax_back(a->x, a->x, a->ids, a->n, out);
}

/* With 6 as the derivative of every extreme. */
static bool extreme_back(const asked *a, ati_host *out)
{
    pen room[2];
    int64_t dims[AT_MAX_NDIM];
    for (int k = 0; k < a->x->ndim; k++) dims[k] = k == 0 ? a->n : a->x->dim[k];
    ati_host peak = result_open(&room[0], a->x->dtype, a->x->ndim, dims);
    ati_host six = result_open(&room[1], a->x->dtype, a->x->ndim, dims);
    double *want = plain_fold(a, ATI_FOLD_MAX, a->x->dtype);
    for (int64_t i = 0; i < a->n * a->width; i++) {
        encode(peak.dtype, want[i], (char *)(uintptr_t)element(&peak, i));
        encode(six.dtype, 6, (char *)(uintptr_t)element(&six, i));
    }
    pen_seal(&room[0]);
    pen_seal(&room[1]);
    bool fine = ati_k_segment_extreme_back(a->x, &peak, &six, a->ids, out);
    free(want);
    result_close(&room[0], &peak);
    result_close(&room[1], &six);
    return fine;
}

static void rows_agree(const asked *a, per_row *kernel, double *(*plain_rows)(const asked *))
{
    pen room;
    ati_host out = result_open(&room, float_of(a->x->dtype), a->x->ndim, a->x->dim);
    double *want = plain_rows(a);
    CHECK(kernel(a, &out));
    agree(&out, want);
    free(want);
    result_close(&room, &out);
}

static void ids_agree(const asked *a)
{
    pen room[3];
    ati_host slots = result_open(&room[0], AT_INT64, 1, &a->rows),
             kept = result_open(&room[1], AT_BOOL, 1, &a->rows),
             counts = result_open(&room[2], AT_INT64, 1, &a->n);
    int64_t *slot = slots.data, *count = counts.data;
    ati_k_slot_ids(a->ids, a->n, &slots);
    ati_k_slot_kept(a->ids, a->n, &kept);
    CHECK(ati_k_segment_count(a->ids, &counts));
    bool same = true, empty = true;
    for (int64_t e = 0; e < a->rows; e++) {
        same = same && slot[e] == (a->id[e] < 0 ? a->n : a->id[e]);
        same = same && ((unsigned char *)kept.data)[e] == (a->id[e] >= 0);
        if (a->id[e] >= 0) count[a->id[e]]--;
    }
    for (int64_t s = 0; s < a->n; s++) empty = empty && count[s] == 0;
    CHECK(same);
    CHECK(empty);
    result_close(&room[0], &slots);
    result_close(&room[1], &kept);
    result_close(&room[2], &counts);
}

/* Ids taken as lengths of runs, whatever they are. */
static void lengths_agree(const asked *a)
{
    enum { TOTAL = 97 };
    pen room;
    int64_t sum, least, lowest = a->rows > 0 ? INT64_MAX : 0, at = 0, total = TOTAL;
    ati_host out = result_open(&room, AT_INT64, 1, &total);
    const int64_t *got = out.data;
    ati_k_counts(a->ids, &sum, &least);
    ati_k_partition_ids(a->ids, &out);
    bool same = true;
    int64_t *length = plain_ids(a->ids, INT64_MAX); /* -1: negative, or as good as endless */
    for (int64_t e = 0; e < a->rows; e++) {
        bool below = kind_of(a->ids->dtype) == 'i' && decode(a->ids->dtype, element(a->ids, e)) < 0;
        int64_t left = below ? 0 : length[e] < 0 ? TOTAL : length[e];
        if (below) lowest = -1;
        if (!below && length[e] >= 0 && length[e] < lowest) lowest = length[e];
        for (; left > 0 && at < TOTAL; left--) same = same && got[at++] == e;
    }
    while (at < TOTAL) same = same && got[at++] == a->rows;
    CHECK(same);
    CHECK(lowest < 0 ? least < 0 : least == lowest);
    free(length);
    result_close(&room, &out);
}

static void everything_agrees(const ati_host *x, const ati_host *ids, int64_t n)
{
    asked a = {.x = x, .ids = ids, .n = n, .rows = ids->dim[0], .width = 1};
    for (int k = 1; k < x->ndim; k++) a.width *= x->dim[k];
    a.value = plain(x);
    a.id = plain_ids(ids, n);
    for (ati_fold op = ATI_FOLD_SUM; op <= ATI_FOLD_MAX; op++) fold_agrees(&a, op);
    mean_agrees(&a);
    least_or_nine_agrees(&a);
    rows_agree(&a, softmax, plain_softmax);
    rows_agree(&a, normalize, plain_normalize);
    if (kind_of(x->dtype) == 'f') {
        rows_agree(&a, softmax_back, plain_softmax_back);
        rows_agree(&a, extreme_back, plain_extreme_back);
    }
    ids_agree(&a);
    lengths_agree(&a);
    free(a.value);
    free(a.id);
}

/* --- data that lies as it should not ------------------------------------------------------------------ */

static double small(int64_t i) { return (double)((i * 7 + i / 11) % 5); }

/* Bytes from the first to the last element of a view, and how far in the first element stands. */
static int64_t reach_of(const ati_host *v, int64_t *before)
{
    int64_t reach = (int64_t)at_dtype_size(v->dtype);
    *before = 0;
    for (int k = 0; k < v->ndim; k++) {
        int64_t span = v->stride[k] * (v->dim[k] > 0 ? v->dim[k] - 1 : 0);
        if (span < 0) *before -= span;
        reach += span < 0 ? -span : span;
    }
    return elements(v) > 0 ? reach : 0;
}

/* Puts a view of given shape and strides into a pen, fills it and takes the right to write. */
static void view_open(pen *p, ati_host *v, int64_t offset, bool at_end, double (*value)(int64_t))
{
    int64_t before, reach = reach_of(v, &before);
    char *start = pen_open(p, (size_t)(reach > 0 ? reach + offset : 0), at_end);
    v->data = start + (reach > 0 ? before + (at_end ? 0 : offset) : 0);
    for (int64_t i = 0; i < elements(v); i++)
        encode(v->dtype, value(i), (char *)(uintptr_t)element(v, i));
    pen_seal(p);
}

static ati_host dense(at_dtype dtype, int ndim, const int64_t *dims)
{
    ati_host v = {.dtype = dtype, .ndim = ndim};
    int64_t step = (int64_t)at_dtype_size(dtype);
    for (int k = ndim; k-- > 0; step *= dims[k]) {
        v.dim[k] = dims[k];
        v.stride[k] = step;
    }
    return v;
}

static double some_id(int64_t e) { return (double)((e * 5 + e / 3) % 7); }

/* Runs all kernels on x of any dtype and ids of any, by turns, both in pens. */
static void for_dtypes(const ati_host *x_like, const ati_host *ids_like, int64_t offset,
                       void (*strides)(ati_host *x, ati_host *ids))
{
    for (int d = 0; d < COUNT_OF(every_dtype); d++) {
        for (int i = 0; i < COUNT_OF(every_integer); i++) {
            pen x_pen, ids_pen;
            ati_host x = dense(every_dtype[d], x_like->ndim, x_like->dim);
            ati_host ids = dense(every_integer[i], 1, ids_like->dim);
            if (strides != NULL) strides(&x, &ids);
            char note[64];
            snprintf(note, sizeof note, "%s by %s", at_dtype_name(x.dtype),
                     at_dtype_name(ids.dtype));
            check_note = note;
            view_open(&x_pen, &x, offset, i % 2, small);
            view_open(&ids_pen, &ids, offset, (i + d) % 2, some_id);
            everything_agrees(&x, &ids, 5);
            pen_close(&x_pen);
            pen_close(&ids_pen);
            check_note = "";
        }
    }
}

static void test_memory_that_is_read_only_between_fences(at_frame *f)
{
    (void)f;
    static const int64_t widths[] = {1, 2, 3, 4, 7, 8, 15, 16, 17, 33};
    for (int w = 0; w < COUNT_OF(widths); w++) {
        ati_host x = {.ndim = 2, .dim = {13, widths[w]}}, ids = {.dim = {13}};
        for_dtypes(&x, &ids, 0, NULL);
    }
}

static void test_rows_of_every_count_between_fences(at_frame *f)
{
    (void)f;
    for (int64_t rows = 1; rows < 36; rows++) {
        ati_host x = {.ndim = 1, .dim = {rows}}, ids = {.dim = {rows}};
        for_dtypes(&x, &ids, 0, NULL);
    }
}

static void test_elements_one_byte_off(at_frame *f)
{
    (void)f;
    ati_host x = {.ndim = 2, .dim = {21, 9}}, line = {.ndim = 1, .dim = {300}};
    ati_host ids = {.dim = {21}}, many = {.dim = {300}};
    for_dtypes(&x, &ids, 1, NULL);
    for_dtypes(&line, &many, 1, NULL);
}

/* Which axes are turned round, and which stand still: bits of two numbers that loops below set. */
static int turned, still;

static void turn(ati_host *x, ati_host *ids)
{
    for (int k = 0; k < x->ndim; k++) x->stride[k] *= still >> k & 1 ? 0 : turned >> k & 1 ? -1 : 1;
    ids->stride[0] *= still >> 3 & 1 ? 0 : turned >> 3 & 1 ? -1 : 1;
}

static void test_strides_below_zero_and_of_zero_on_each_axis(at_frame *f)
{
    (void)f;
    ati_host x = {.ndim = 3, .dim = {11, 3, 2}}, ids = {.dim = {11}};
    for (turned = 0; turned < 16; turned++) {
        for (still = 0; still < 16; still += turned < 3 ? 1 : 5) for_dtypes(&x, &ids, 0, turn);
    }
}

static void overlap(ati_host *x, ati_host *ids)
{
    x->stride[0] = 1;
    x->stride[1] = x->dtype == AT_FLOAT64 ? 3 : 1;
    ids->stride[0] = 1;
}

/* Bytes of one element that are bytes of the next: whatever is read, all kernels must read the same. */
static void test_elements_that_overlap(at_frame *f)
{
    (void)f;
    static const at_dtype whole[] = {AT_BOOL, AT_INT8, AT_UINT8}; /* of one byte: no rubbish in x */
    for (int d = 0; d < COUNT_OF(whole); d++) {
        for (int i = 0; i < COUNT_OF(every_integer); i++) {
            pen x_pen, ids_pen;
            ati_host x = dense(whole[d], SIZES(40, 5)), ids = dense(every_integer[i], SIZES(40));
            overlap(&x, &ids);
            check_note = at_dtype_name(ids.dtype);
            view_open(&x_pen, &x, 0, true, small);
            view_open(&ids_pen, &ids, 0, true, some_id);
            everything_agrees(&x, &ids, 1000);
            pen_close(&x_pen);
            pen_close(&ids_pen);
        }
    }
    check_note = "";
}

static void test_nothing_on_each_axis(at_frame *f)
{
    (void)f;
    static const int64_t dims[][3] = {{0, 2, 3}, {4, 0, 3}, {4, 2, 0}, {0, 0, 3}, {0, 0, 0}};
    for (int k = 0; k < COUNT_OF(dims); k++) {
        for (int ndim = 1; ndim <= 3; ndim++) {
            ati_host x = {.ndim = ndim, .dim = {dims[k][0], dims[k][1], dims[k][2]}};
            ati_host ids = {.dim = {dims[k][0]}};
            for_dtypes(&x, &ids, 0, NULL);
        }
    }
}

static void test_no_segments(at_frame *f)
{
    (void)f;
    pen x_pen, ids_pen;
    ati_host x = dense(AT_FLOAT32, SIZES(9, 2)), ids = dense(AT_INT64, SIZES(9));
    view_open(&x_pen, &x, 0, true, small);
    view_open(&ids_pen, &ids, 0, true, some_id);
    everything_agrees(&x, &ids, 0);
    pen_close(&x_pen);
    pen_close(&ids_pen);
}

/* --- ids that mean harm ------------------------------------------------------------------------------- */

static const uint64_t harm[] = {0,
                                1,
                                2,
                                UINT64_MAX,
                                UINT64_MAX - 1,
                                UINT64_C(1) << 63,
                                (UINT64_C(1) << 63) + 1,
                                INT64_MAX,
                                INT64_MAX - 1,
                                UINT64_C(1) << 32,
                                (UINT64_C(1) << 32) + 1,
                                UINT32_MAX,
                                INT32_MAX,
                                UINT64_C(1) << 31,
                                UINT64_C(1) << 61,
                                127,
                                128,
                                129,
                                255,
                                256,
                                257,
                                32767,
                                32768,
                                65535,
                                65536,
                                65537};

static void test_ids_at_the_ends_of_every_dtype(at_frame *f)
{
    (void)f;
    static const int64_t sizes[] = {0, 1, 2, 3, 127, 128, 129, 255, 256, 257, 32768, 65536, 65538};
    for (int i = 0; i < COUNT_OF(every_integer) * COUNT_OF(sizes); i++) {
        pen x_pen, ids_pen;
        ati_host x = dense(i % 3 ? AT_FLOAT32 : AT_INT16, SIZES(COUNT_OF(harm), 2));
        ati_host ids = dense(every_integer[i % COUNT_OF(every_integer)], SIZES(COUNT_OF(harm)));
        size_t size = at_dtype_size(ids.dtype);
        view_open(&x_pen, &x, 0, true, small);
        ids.data = pen_open(&ids_pen, size * COUNT_OF(harm), true);
        for (int e = 0; e < COUNT_OF(harm); e++)
            memcpy((char *)ids.data + size * (size_t)e, &harm[e], size);
        pen_seal(&ids_pen);
        check_note = at_dtype_name(ids.dtype);
        everything_agrees(&x, &ids, sizes[i / COUNT_OF(every_integer)]);
        pen_close(&x_pen);
        pen_close(&ids_pen);
    }
    check_note = "";
}

/* --- sizes that overflow ------------------------------------------------------------------------------ */

static at_array call_of(at_frame *f, int op, at_array x, at_array ids, int64_t n, bool sorted)
{
    at_scalar seven;
    at_array constant = at_scalar_int(&seven, 7);
    switch (op) {
    case 0: return at_segment_sum(f, x, ids, AT_DIM(n), sorted);
    case 1: return at_segment_min(f, x, ids, AT_DIM(n), sorted);
    case 2: return at_segment_max(f, x, ids, AT_DIM(n), sorted);
    case 3: return at_segment_mean(f, x, ids, AT_DIM(n), sorted);
    case 4: return at_segment_variance(f, x, ids, AT_DIM(n), sorted);
    case 5: return at_segment_min_or_constant(f, x, ids, AT_DIM(n), constant, sorted);
    case 6: return at_segment_max_or_constant(f, x, ids, AT_DIM(n), constant, sorted);
    case 7: return at_segment_count(f, ids, AT_DIM(n), sorted);
    case 8: return at_segment_softmax(f, x, ids, AT_DIM(n), sorted);
    default: return at_segment_normalize(f, x, ids, AT_DIM(n), sorted);
    }
}

static const int64_t too_many[] = {
    INT64_MAX,        INT64_MAX - 1,         INT64_MAX / 2,    INT64_MAX / 4 + 1,
    INT64_MAX / 8,    INT64_MAX / 8 + 1,     INT64_C(1) << 61, INT64_C(1) << 60,
    INT64_C(1) << 59, (INT64_C(1) << 62) + 1};

/* An answer has no elements or is per row; else the error is one of size. */
static void refused_or_empty(at_frame *f, at_array y, int op)
{
    if (at_is_nil(y)) {
        CHECK(f->cx->status == AT_EVALUE || f->cx->status == AT_ENOMEM);
        at_clear(f->cx);
    } else {
        CHECK(op >= 8 || product(at_native_ndim(y), at_native_sizes(y)) == 0);
    }
}

static void test_more_segments_than_memory_without_rows_or_columns(at_frame *f)
{
    at_array x[] = {
        given(f, AT_FLOAT32, SIZES(0), NO_VALUES), given(f, AT_FLOAT64, SIZES(0, 4), NO_VALUES),
        given(f, AT_FLOAT64, SIZES(3, 0), NO_VALUES), given(f, AT_INT8, SIZES(0, 0), NO_VALUES),
        given(f, AT_FLOAT32, SIZES(3, 2), VALUES(1, 2, 3, 4, 5, 6))};
    at_array none = nothing_of(f, AT_INT64), three = VEC(f, AT_INT64, 0, 2, -1);
    for (int i = 0; i < COUNT_OF(x) * COUNT_OF(too_many) * 10; i++) {
        at_frame frame, *g = at_enter(&frame, f);
        at_array data = x[i % COUNT_OF(x)];
        int op = i / COUNT_OF(x) % 10;
        at_array ids = at_native_sizes(data)[0] ? three : none;
        int64_t n = too_many[i / COUNT_OF(x) / 10];
        refused_or_empty(g, call_of(g, op, data, ids, n, i % 2), op);
        at_leave(g, AT_NIL);
    }
}

static void test_totals_beyond_memory(at_frame *f)
{
    at_array x = given(f, AT_FLOAT32, SIZES(0), NO_VALUES), none = nothing_of(f, AT_INT64);
    for (int i = 0; i < COUNT_OF(too_many); i++) {
        const int64_t length = too_many[i];
        at_array one = at_native_copy(f, AT_INT64, SIZES(1), &length);
        CHECK(at_is_nil(at_partition_ids(f, none, AT_DIM(length))));
        at_clear(f->cx);
        CHECK(at_is_nil(at_partition_ids(f, one, AT_DIM(length))));
        at_clear(f->cx);
        CHECK(at_is_nil(at_partition_sum(f, x, one, AT_DIM(length))));
        at_clear(f->cx);
    }
}

/* Sizes whose product is beyond an int64 although one of them is zero, or each is small. */
static void test_shapes_that_overflow_are_refused(at_frame *f)
{
    static const int64_t dims[][3] = {{INT64_MAX, 2, 1},
                                      {INT64_C(1) << 32, INT64_C(1) << 32, 1},
                                      {INT64_MAX, INT64_MAX, INT64_MAX},
                                      {1, INT64_MAX / 2, 3}};
    char byte = 0;
    for (int i = 0; i < COUNT_OF(dims); i++) {
        at_array a = at_native_wrap(f, AT_FLOAT64, 3, dims[i], NULL, &byte, NULL, NULL);
        CHECK(at_is_nil(a) && f->cx->status == AT_EVALUE);
        at_clear(f->cx);
    }
}

/* --- many rows, several callers ----------------------------------------------------------------------- */

enum { MANY = 150000, FEW_SEGMENTS = 40, MANY_SEGMENTS = 60000 };

static double spread_id(int64_t e) { return (double)((e * 7919) % (MANY_SEGMENTS + 5)) - 2; }
static double near_id(int64_t e) { return (double)((e * 31) % (FEW_SEGMENTS + 3)) - 1; }
static double climbing_id(int64_t e) { return (double)(e / 9) - 3; }
static double lone_id(int64_t e) { return e % 1000 == 999 ? -1 : 3; }

static void many_rows(at_dtype dtype, int64_t width, double (*id)(int64_t), int64_t n)
{
    pen x_pen, ids_pen;
    ati_host x = dense(dtype, SIZES(MANY / width, width));
    ati_host ids = dense(AT_INT32, SIZES(MANY / width));
    view_open(&x_pen, &x, 0, true, small);
    view_open(&ids_pen, &ids, 0, true, id);
    everything_agrees(&x, &ids, n);
    pen_close(&x_pen);
    pen_close(&ids_pen);
}

static void test_many_rows(at_frame *f)
{
    (void)f;
    static const at_dtype some[] = {AT_FLOAT32, AT_FLOAT64, AT_INT32, AT_BOOL, AT_INT64};
    for (int d = 0; d < COUNT_OF(some); d++) {
        check_note = at_dtype_name(some[d]);
        many_rows(some[d], 1, spread_id, MANY_SEGMENTS);
        many_rows(some[d], 1, near_id, FEW_SEGMENTS);
        many_rows(some[d], 4, climbing_id, MANY_SEGMENTS);
        many_rows(some[d], 17, near_id, FEW_SEGMENTS);
        many_rows(some[d], 3, lone_id, FEW_SEGMENTS);
    }
    check_note = "";
}

/* One problem that is asked again and again, its memory shared by all who ask. */
typedef struct shared {
    pen x_pen, ids_pen;
    ati_host x, ids;
    double *want_sum, *want_softmax;
    asked a;
} shared;

static void shared_open(shared *s)
{
    s->x = dense(AT_FLOAT32, SIZES(MANY / 4, 4));
    s->ids = dense(AT_INT64, SIZES(MANY / 4));
    view_open(&s->x_pen, &s->x, 0, true, small);
    view_open(&s->ids_pen, &s->ids, 0, true, near_id);
    s->a = (asked){&s->x, &s->ids, FEW_SEGMENTS, MANY / 4, 4, plain(&s->x), NULL};
    s->a.id = plain_ids(&s->ids, FEW_SEGMENTS);
    s->want_sum = plain_fold(&s->a, ATI_FOLD_SUM, AT_FLOAT32);
    s->want_softmax = plain_softmax(&s->a);
}

static void shared_close(shared *s)
{
    pen_close(&s->x_pen);
    pen_close(&s->ids_pen);
    free(s->a.value);
    free(s->a.id);
    free(s->want_sum);
    free(s->want_softmax);
}

static bool all_near(at_array a, const double *want)
{
    if (at_is_nil(a)) return false;
    const float *got = at_native_data(a);
    int64_t count = product(at_native_ndim(a), at_native_sizes(a));
    for (int64_t i = 0; i < count; i++)
        if (!check_near((double)got[i], want[i], 1e-5)) return false;
    return true;
}

/* Safe in any thread and in a child: nothing of the harness is touched. */
static bool asks_well(const shared *s, int times)
{
    bool well = true;
    for (int i = 0; i < times; i++) {
        at_context cx;
        at_frame root, *f = at_open(&root, at_context_init(&cx, at_native()));
        at_array x = at_native_wrap(f, s->x.dtype, 2, s->x.dim, NULL, s->x.data, NULL, NULL);
        at_array ids =
            at_native_wrap(f, s->ids.dtype, 1, s->ids.dim, NULL, s->ids.data, NULL, NULL);
        at_array sum = at_segment_sum(f, x, ids, AT_DIM(FEW_SEGMENTS), false);
        at_array softmax = at_segment_softmax(f, x, ids, AT_DIM(FEW_SEGMENTS), false);
        well = well && all_near(sum, s->want_sum) && all_near(softmax, s->want_softmax);
        for (int op = 0; op < 8; op++)
            well = well && !at_is_nil(call_of(f, op, x, ids, FEW_SEGMENTS, false));
        at_close(f);
    }
    return well;
}

typedef struct caller {
    pthread_t thread;
    const shared *s;
    bool well;
} caller;

static void *calls(void *p)
{
    caller *c = p;
    c->well = asks_well(c->s, 4);
    return NULL;
}

static void test_threads_that_call_at_once(at_frame *f)
{
    (void)f;
    shared s;
    caller all[3];
    shared_open(&s);
    for (int i = 0; i < COUNT_OF(all); i++) {
        all[i].s = &s;
        if (pthread_create(&all[i].thread, NULL, calls, &all[i]) != 0) abort();
    }
    for (int i = 0; i < COUNT_OF(all); i++) {
        pthread_join(all[i].thread, NULL);
        CHECK(all[i].well);
    }
    shared_close(&s);
}

#if defined(UNDER_EMULATOR) || defined(__SANITIZE_THREAD__)
#define WITHOUT_FORK 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define WITHOUT_FORK 1
#endif
#endif

/* ThreadSanitizer and qemu-user (7.2 asserts in itself) do not follow a child of a program with threads. */
#ifndef WITHOUT_FORK
/* Whether a child that makes the same calls comes back, and finds the same; a lock-up is an alarm. */
static bool child_asks_well(const shared *s, bool and_its_child)
{
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        alarm(120);
        bool well = asks_well(s, 2);
        _exit(well && (!and_its_child || child_asks_well(s, false)) ? 0 : 1);
    }
    int status = 0;
    if (child < 0 || waitpid(child, &status, 0) != child) return false;
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

static void test_a_child_after_the_parent_has_called(at_frame *f)
{
    (void)f;
    shared s;
    shared_open(&s);
    CHECK(asks_well(&s, 1));
    CHECK(child_asks_well(&s, true));
    CHECK(asks_well(&s, 1));
    CHECK(child_asks_well(&s, false));
    shared_close(&s);
}

static void test_a_child_of_a_parent_that_is_at_work(at_frame *f)
{
    (void)f;
    shared s;
    shared_open(&s);
    for (int i = 0; i < 5; i++) {
        caller busy = {.s = &s};
        if (pthread_create(&busy.thread, NULL, calls, &busy) != 0) abort();
        CHECK(child_asks_well(&s, false));
        CHECK(asks_well(&s, 1));
        pthread_join(busy.thread, NULL);
        CHECK(busy.well);
    }
    shared_close(&s);
}
#endif

/* A block of terabytes is refused in every build, not reported. */
__attribute__((visibility("default"))) const char *__asan_default_options(void);
__attribute__((visibility("default"))) const char *__tsan_default_options(void);
const char *__asan_default_options(void) { return "allocator_may_return_null=1"; }
const char *__tsan_default_options(void) { return "allocator_may_return_null=1"; }

int main(int argc, char **argv)
{
    static const mode as_given[] = {{"", 0, ROW_MAJOR, NULL}};
    static const test tests[] = {
        TEST(test_memory_that_is_read_only_between_fences),
        TEST(test_rows_of_every_count_between_fences),
        TEST(test_elements_one_byte_off),
        TEST(test_strides_below_zero_and_of_zero_on_each_axis),
        TEST(test_elements_that_overlap),
        TEST(test_nothing_on_each_axis),
        TEST(test_no_segments),
        TEST(test_ids_at_the_ends_of_every_dtype),
        TEST(test_more_segments_than_memory_without_rows_or_columns),
        TEST(test_totals_beyond_memory),
        TEST(test_shapes_that_overflow_are_refused),
        TEST(test_many_rows),
        TEST(test_threads_that_call_at_once),
#ifndef WITHOUT_FORK
        TEST(test_a_child_after_the_parent_has_called),
        TEST(test_a_child_of_a_parent_that_is_at_work),
#endif
    };
    return RUN(tests, as_given, argc, argv);
}
