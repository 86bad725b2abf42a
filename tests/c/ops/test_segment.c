/* Segment operations against plain loops, and the edge rules of SEMANTICS one by one; each with the native
 * versions and with the formulas alone, on arrays of every memory layout. */
#include "proxy.h"

#define INF ((double)INFINITY)
#define NAN_ ((double)NAN)

/* --- all ten under one roof ------------------------------------------------------------------ */

typedef enum op {
    SUM,
    MAX,
    MIN,
    MEAN,
    VARIANCE,
    NORMALIZE,
    SOFTMAX,
    COUNT,
    MIN_OR,
    MAX_OR,
    OPS
} op;

static const char *const op_name[OPS] = {"segment_sum",
                                         "segment_max",
                                         "segment_min",
                                         "segment_mean",
                                         "segment_variance",
                                         "segment_normalize",
                                         "segment_softmax",
                                         "segment_count",
                                         "segment_min_or_constant",
                                         "segment_max_or_constant"};

static at_scalar seven_place;
#define SEVEN at_scalar_float(&seven_place, 7)

static at_array call_sized(at_frame *f, op which, at_array x, at_array ids, at_dim n, bool sorted)
{
    switch (which) {
    case SUM: return at_segment_sum(f, x, ids, n, sorted);
    case MAX: return at_segment_max(f, x, ids, n, sorted);
    case MIN: return at_segment_min(f, x, ids, n, sorted);
    case MEAN: return at_segment_mean(f, x, ids, n, sorted);
    case VARIANCE: return at_segment_variance(f, x, ids, n, sorted);
    case NORMALIZE: return at_segment_normalize(f, x, ids, n, sorted);
    case SOFTMAX: return at_segment_softmax(f, x, ids, n, sorted);
    case COUNT: return at_segment_count(f, ids, n, sorted);
    case MIN_OR: return at_segment_min_or_constant(f, x, ids, n, SEVEN, sorted);
    case MAX_OR: return at_segment_max_or_constant(f, x, ids, n, SEVEN, sorted);
    default: return AT_NIL;
    }
}

static at_array call(at_frame *f, op which, at_array x, at_array ids, int64_t n)
{
    return call_sized(f, which, x, ids, AT_DIM(n), false);
}

static at_dtype result_dtype(op which, at_dtype dtype)
{
    bool floating = kind_of(dtype) == 'f';
    switch (which) {
    case SUM: return dtype == AT_BOOL ? AT_INT64 : dtype;
    case MEAN:
    case VARIANCE:
    case NORMALIZE:
    case SOFTMAX: return floating ? dtype : AT_FLOAT64;
    case COUNT: return AT_FLOAT64;
    default: return dtype;
    }
}

/* What an empty segment holds: the identity of min (sign +1) or max (-1) as a double. */
static double identity(at_dtype dtype, int sign)
{
    int bits = 8 * (int)at_dtype_size(dtype);
    switch (kind_of(dtype)) {
    case 'f': return sign * INF;
    case 'b': return sign > 0;
    case 'u': return sign > 0 ? ldexp(1, bits) - 1 : 0;
    default: return sign > 0 ? ldexp(1, bits - 1) - 1 : -ldexp(1, bits - 1);
    }
}

/* --- the oracle: one column of one segment at a time ----------------------------------------- */

typedef struct problem {
    int64_t rows, width, n;
    const double *x; /* rows x width */
    const int64_t *ids;
    at_dtype dtype;
} problem;

/* What an integer dtype keeps of a sum. */
static double wrapped(at_dtype dtype, double sum)
{
    double range = ldexp(1, 8 * (int)at_dtype_size(dtype)), least = identity(dtype, -1);
    bool wraps = kind_of(dtype) == 'i' || kind_of(dtype) == 'u';
    return wraps ? sum - range * floor((sum - least) / range) : sum;
}

static double fold(const problem *p, op which, int64_t segment, int64_t column)
{
    double count = 0, sum = 0, squares = 0, least = INF, most = -INF, exps = 0;
    for (int64_t e = 0; e < p->rows; e++) {
        double v = p->x[e * p->width + column];
        if (p->ids[e] != segment) continue;
        count++;
        sum += v;
        least = fmin(least, v);
        most = fmax(most, v);
    }
    for (int64_t e = 0; e < p->rows; e++) {
        double v = p->x[e * p->width + column];
        if (p->ids[e] != segment) continue;
        squares += (v - sum / count) * (v - sum / count);
        if (which == SOFTMAX) exps += exp(v - most);
    }
    switch (which) {
    case SUM: return wrapped(p->dtype, sum);
    case MEAN: return count > 0 ? sum / count : 0;
    case VARIANCE: return count > 0 ? squares / count : 0;
    case MIN: return count > 0 ? least : identity(p->dtype, 1);
    case MAX: return count > 0 ? most : identity(p->dtype, -1);
    case MIN_OR: return count > 0 ? least : stored(p->dtype, 7);
    case MAX_OR: return count > 0 ? most : stored(p->dtype, 7);
    case NORMALIZE: return sum;
    case SOFTMAX: return most + log(exps);
    default: return count;
    }
}

/* Shape and values that the operation should give; returns the rank. */
static int oracle(const problem *p, op which, bool matrix, int64_t sizes[3], double *want)
{
    bool per_row = which == NORMALIZE || which == SOFTMAX;
    sizes[0] = per_row ? p->rows : p->n;
    sizes[1] = p->width;
    if (which == COUNT) {
        for (int64_t s = 0; s < p->n; s++) {
            want[s] = 0;
            for (int64_t e = 0; e < p->rows; e++) want[s] += p->ids[e] == s;
        }
        return 1;
    }
    for (int64_t i = 0; i < sizes[0] * p->width; i++) {
        int64_t row = i / p->width, column = i % p->width;
        double v = per_row ? p->x[i] : 0;
        int64_t segment = per_row ? p->ids[row] : row;
        bool dropped = segment < 0 || segment >= p->n;
        double folded = dropped ? 0 : fold(p, which, segment, column);
        want[i] = !per_row                       ? folded
                  : dropped                      ? 0
                  : which == SOFTMAX             ? exp(v - folded)
                  : check_near(folded, 0, 1e-12) ? 0
                                                 : v / folded;
    }
    return matrix ? 2 : 1;
}

/* Values that every dtype of the kind holds exactly, sums included. */
static double sample(at_dtype dtype, int64_t i)
{
    static const int step[] = {3, -1, 4, 1, -5, 2, 0, 6, -2, 5, 3, -4, 1, 7};
    int v = step[i % COUNT_OF(step)];
    switch (kind_of(dtype)) {
    case 'b': return v > 1;
    case 'u': return abs(v);
    case 'f': return v * 0.25;
    default: return v;
    }
}

/* Ids of which some lie outside [0, n); unsigned ones only above. */
static void sample_ids(int64_t *ids, int64_t rows, int64_t n, bool is_signed)
{
    static const int pattern[] = {2, 0, -1, 2, 5, 0, 4, 7, 2, 100, 0, -100, 4, 2};
    for (int64_t e = 0; e < rows; e++) {
        int id = pattern[e % COUNT_OF(pattern)];
        ids[e] = id < 0 && !is_signed ? n - id : id;
    }
}

static void agree(at_frame *up, op which, at_dtype dtype, at_dtype id_dtype, int64_t rows,
                  int64_t width, int64_t n, bool matrix)
{
    enum { ROOM = 8192 };
    static double x[ROOM], want[ROOM], id_values[ROOM];
    static int64_t ids[ROOM];
    int64_t sizes[3];
    for (int64_t i = 0; i < rows * width; i++) x[i] = sample(dtype, i);
    sample_ids(ids, rows, n, kind_of(id_dtype) == 'i');
    for (int64_t e = 0; e < rows; e++) id_values[e] = (double)ids[e];
    problem p = {rows, width, n, x, ids, dtype};
    int ndim = oracle(&p, which, matrix, sizes, want);

    char note[160];
    snprintf(note, sizeof note, "%s %s (%d, %d), ids %s, n = %d", op_name[which],
             at_dtype_name(dtype), (int)rows, (int)width, at_dtype_name(id_dtype), (int)n);
    check_note = note;
    at_frame frame, *f = at_enter(&frame, up);
    at_array data = given(f, dtype, matrix ? 2 : 1, (const int64_t[]){rows, width}, x);
    at_array id_array = given(f, id_dtype, SIZES(rows), id_values);
    EXPECT(call(f, which, data, id_array, n), result_dtype(which, dtype), ndim, sizes, want);
    at_leave(f, AT_NIL);
    check_note = "";
}

static void test_every_operation_agrees_with_plain_loops_for_every_dtype(at_frame *f)
{
    for (op which = 0; which < OPS; which++) {
        for (int d = 0; d < COUNT_OF(every_dtype); d++) {
            agree(f, which, every_dtype[d], AT_INT64, 14, 1, 6, false);
            agree(f, which, every_dtype[d], AT_INT32, 14, 3, 6, true);
        }
    }
}

static void test_every_operation_takes_ids_of_every_integer_dtype(at_frame *f)
{
    for (op which = 0; which < OPS; which++) {
        for (int d = 0; d < COUNT_OF(every_integer); d++) {
            agree(f, which, AT_FLOAT32, every_integer[d], 14, 2, 6, true);
            agree(f, which, AT_INT16, every_integer[d], 14, 1, 3, false);
        }
    }
}

static void test_every_operation_works_without_rows_columns_or_segments(at_frame *f)
{
    for (op which = 0; which < OPS; which++) {
        for (int d = 0; d < COUNT_OF(every_dtype); d++) {
            agree(f, which, every_dtype[d], AT_INT64, 0, 1, 3, false);
            agree(f, which, every_dtype[d], AT_INT64, 0, 2, 3, true);
            agree(f, which, every_dtype[d], AT_UINT8, 5, 0, 3, true);
            agree(f, which, every_dtype[d], AT_INT64, 5, 2, 0, true);
            agree(f, which, every_dtype[d], AT_INT64, 0, 1, 0, false);
            agree(f, which, every_dtype[d], AT_INT64, 0, 0, 0, true);
        }
    }
}

/* Kernels work in blocks of 256 elements, and add segments of more than 1,024 rows in their own way. */
static void test_every_operation_agrees_beyond_the_blocks_of_the_kernels(at_frame *f)
{
    static const at_dtype some[] = {AT_BOOL, AT_INT8, AT_FLOAT16, AT_FLOAT32, AT_FLOAT64};
    for (op which = 0; which < OPS; which++) {
        for (int d = 0; d < COUNT_OF(some); d++) {
            agree(f, which, some[d], AT_INT16, 270, 1, 6, false);
            agree(f, which, some[d], AT_UINT8, 7, 300, 6, true);
        }
    }
    for (int d = 0; d < COUNT_OF(some); d++) {
        agree(f, SUM, some[d], AT_INT64, 4000, 2, 6, true);
        agree(f, MEAN, some[d], AT_INT64, 4000, 2, 6, true);
    }
}

static void test_every_operation_takes_data_of_rank_three(at_frame *f)
{
    at_array x = given(f, AT_FLOAT32, SIZES(2, 2, 2), VALUES(1, 2, 3, 4, 5, 6, 7, 8));
    at_array ids = VEC(f, AT_INT64, 1, 1);
    EXPECT(at_segment_sum(f, x, ids, AT_DIM(2), false), AT_FLOAT32, SIZES(2, 2, 2),
           VALUES(0, 0, 0, 0, 6, 8, 10, 12));
    EXPECT(at_segment_mean(f, x, ids, AT_DIM(2), false), AT_FLOAT32, SIZES(2, 2, 2),
           VALUES(0, 0, 0, 0, 3, 4, 5, 6));
    EXPECT(at_segment_variance(f, x, ids, AT_DIM(2), false), AT_FLOAT32, SIZES(2, 2, 2),
           VALUES(0, 0, 0, 0, 4, 4, 4, 4));
    EXPECT(at_segment_max_or_constant(f, x, ids, AT_DIM(2), SEVEN, false), AT_FLOAT32,
           SIZES(2, 2, 2), VALUES(7, 7, 7, 7, 5, 6, 7, 8));
    EXPECT(at_segment_normalize(f, x, ids, AT_DIM(2), false), AT_FLOAT32, SIZES(2, 2, 2),
           VALUES(1. / 6, 2. / 8, .3, 4. / 12, 5. / 6, 6. / 8, .7, 8. / 12));
}

static void test_sorted_promises_change_nothing_for_sorted_ids(at_frame *f)
{
    at_array x = given(f, AT_FLOAT64, SIZES(6, 2), VALUES(1, 2, 3, -4, 5, 6, -7, 8, 9, 10, 2, 2));
    at_array ids = VEC(f, AT_INT64, -1, 0, 0, 2, 2, 9);
    for (op which = 0; which < OPS; which++) {
        check_note = op_name[which];
        at_array plain = call(f, which, x, ids, 4);
        at_array fast = call_sized(f, which, x, ids, AT_DIM(4), true);
        double *want = values_of(plain);
        EXPECT(fast, at_native_dtype(plain), at_native_ndim(plain), at_native_sizes(plain), want);
        free(want);
    }
}

static void test_permuting_rows_together_with_ids_changes_no_segment(at_frame *f)
{
    at_array x = VEC(f, AT_FLOAT64, 1, 2, 3, 4, 5), ids = VEC(f, AT_INT64, 0, 2, 0, 2, 2);
    at_array y = VEC(f, AT_FLOAT64, 5, 3, 4, 1, 2), turned = VEC(f, AT_INT64, 2, 0, 2, 0, 2);
    for (op which = 0; which < OPS; which++) {
        if (which == NORMALIZE || which == SOFTMAX) continue;
        check_note = op_name[which];
        double *want = values_of(call(f, which, x, ids, 3));
        EXPECT(call(f, which, y, turned, 3), AT_FLOAT64, SIZES(3), want);
        free(want);
    }
}

static void test_softmax_sums_to_one_over_each_occupied_segment(at_frame *f)
{
    at_array x = VEC(f, AT_FLOAT64, 3, -700, 2, 0, 1000, 999, 5),
             ids = VEC(f, AT_INT8, 0, 0, 2, 2, 3, 3, -1);
    at_array y = at_segment_softmax(f, x, ids, AT_DIM(5), false);
    EXPECT(at_segment_sum(f, y, ids, AT_DIM(5), false), AT_FLOAT64, SIZES(5),
           VALUES(1, 0, 1, 1, 0));
}

/* --- 1. dropped ids -------------------------------------------------------------------------- */

static void test_ids_outside_are_dropped_never_wrapped(at_frame *f)
{
    at_array x = VEC(f, AT_FLOAT32, 1, 2, 4, 8, 16), ids = VEC(f, AT_INT64, 0, -1, 3, 2, 1e15);
    EXPECT(at_segment_sum(f, x, ids, AT_DIM(3), false), AT_FLOAT32, SIZES(3), VALUES(1, 0, 8));
    EXPECT(at_segment_count(f, ids, AT_DIM(3), false), AT_FLOAT64, SIZES(3), VALUES(1, 0, 1));
}

static void test_the_lowest_and_highest_id_of_each_dtype_are_dropped(at_frame *f)
{
    for (int d = 0; d < COUNT_OF(every_integer); d++) {
        at_dtype t = every_integer[d];
        uint64_t top = UINT64_MAX >> (64 - 8 * at_dtype_size(t) + (kind_of(t) == 'i'));
        uint64_t low = kind_of(t) == 'i' ? ~top : 0;
        unsigned char raw[24];
        for (int i = 0; i < 3; i++) {
            uint64_t id = i == 0 ? top : i == 1 ? low : 1; /* little-endian, as everything here */
            memcpy(raw + (size_t)i * at_dtype_size(t), &id, at_dtype_size(t));
        }
        check_note = at_dtype_name(t);
        at_array ids = at_native_copy(f, t, SIZES(3), raw), x = VEC(f, AT_FLOAT64, 10, 20, 1);
        EXPECT(at_segment_sum(f, x, ids, AT_DIM(2), false), AT_FLOAT64, SIZES(2),
               VALUES(low ? 0 : 20, 1));
        EXPECT(at_segment_max(f, x, ids, AT_DIM(2), false), AT_FLOAT64, SIZES(2),
               VALUES(low ? -INF : 20, 1));
    }
}

static void test_unsigned_64_bit_ids_above_int64_are_dropped(at_frame *f)
{
    const uint64_t raw[] = {UINT64_MAX, UINT64_C(1) << 63, 1, UINT64_MAX - 1};
    at_array ids = at_native_copy(f, AT_UINT64, SIZES(4), raw), x = VEC(f, AT_FLOAT32, 1, 2, 4, 8);
    EXPECT(at_segment_sum(f, x, ids, AT_DIM(2), false), AT_FLOAT32, SIZES(2), VALUES(0, 4));
    EXPECT(at_segment_softmax(f, x, ids, AT_DIM(2), false), AT_FLOAT32, SIZES(4),
           VALUES(0, 0, 1, 0));
}

static void test_a_number_of_segments_beyond_the_id_dtype_is_fine(at_frame *f)
{
    static const struct {
        at_dtype dtype;
        int64_t n;
    } cases[] = {{AT_INT8, 127},   {AT_INT8, 128},    {AT_INT8, 129},    {AT_UINT8, 255},
                 {AT_UINT8, 256},  {AT_UINT8, 300},   {AT_INT16, 32768}, {AT_UINT16, 65536},
                 {AT_INT8, 40000}, {AT_UINT16, 70000}};
    for (int c = 0; c < COUNT_OF(cases); c++) {
        double want[70001] = {[0] = 4, [127] = 2};
        at_frame frame, *g = at_enter(&frame, f);
        at_array ids = VEC(g, cases[c].dtype, 127, 0);
        if (cases[c].n == 127) want[127] = 0;
        at_array x = VEC(g, AT_FLOAT32, 2, 4);
        check_note = at_dtype_name(cases[c].dtype);
        EXPECT(at_segment_sum(g, x, ids, AT_DIM(cases[c].n), false), AT_FLOAT32, SIZES(cases[c].n),
               want);
        at_leave(g, AT_NIL);
    }
}

static void test_what_a_dropped_row_holds_reaches_nothing(at_frame *f)
{
    at_array x =
        given(f, AT_FLOAT32, SIZES(5, 2), VALUES(NAN_, INF, 1, 2, -INF, NAN_, 3, 4, NAN_, INF));
    at_array ids = VEC(f, AT_INT64, -1, 0, 2, 0, 7);
    static const double want[OPS][4] = {[SUM] = {4, 6, 0, 0},
                                        [MAX] = {3, 4, -HUGE_VAL, -HUGE_VAL},
                                        [MIN] = {1, 2, HUGE_VAL, HUGE_VAL},
                                        [MEAN] = {2, 3, 0, 0},
                                        [VARIANCE] = {1, 1, 0, 0},
                                        [MIN_OR] = {1, 2, 7, 7},
                                        [MAX_OR] = {3, 4, 7, 7}};
    for (op which = 0; which < OPS; which++) {
        if (which == NORMALIZE || which == SOFTMAX || which == COUNT) continue;
        check_note = op_name[which];
        EXPECT(call(f, which, x, ids, 2), AT_FLOAT32, SIZES(2, 2), want[which]);
    }
}

static void test_softmax_and_normalize_give_zero_where_a_row_is_dropped(at_frame *f)
{
    at_array x = VEC(f, AT_FLOAT32, NAN_, 3, INF, 1, -INF, 0),
             ids = VEC(f, AT_INT32, -1, 0, 5, 0, 2, 2);
    EXPECT(at_segment_normalize(f, x, ids, AT_DIM(2), false), AT_FLOAT32, SIZES(6),
           VALUES(0, 0.75, 0, 0.25, 0, 0));
    double e = exp(-2);
    EXPECT(at_segment_softmax(f, x, ids, AT_DIM(2), false), AT_FLOAT32, SIZES(6),
           VALUES(0, 1 / (1 + e), 0, e / (1 + e), 0, 0));
}

/* --- 2. empty segments ----------------------------------------------------------------------- */

static void test_min_and_max_of_empty_segments_are_the_ends_of_the_dtype(at_frame *f)
{
#define ENDS(NAME, type, least, most)                                                              \
    {                                                                                              \
        at_array x = nothing_of(f, AT_##NAME), ids = nothing_of(f, AT_INT64);                      \
        check_note = #NAME;                                                                        \
        EXPECT_BYTES(at_segment_max(f, x, ids, AT_DIM(2), false), type, least, least);             \
        EXPECT_BYTES(at_segment_min(f, x, ids, AT_DIM(2), false), type, most, most);               \
    }
    ENDS(BOOL, unsigned char, 0, 1)
    ENDS(INT8, int8_t, INT8_MIN, INT8_MAX)
    ENDS(INT16, int16_t, INT16_MIN, INT16_MAX)
    ENDS(INT32, int32_t, INT32_MIN, INT32_MAX)
    ENDS(INT64, int64_t, INT64_MIN, INT64_MAX)
    ENDS(UINT8, uint8_t, 0, UINT8_MAX)
    ENDS(UINT16, uint16_t, 0, UINT16_MAX)
    ENDS(UINT32, uint32_t, 0, UINT32_MAX)
    ENDS(UINT64, uint64_t, 0, UINT64_MAX)
    ENDS(FLOAT16, uint16_t, 0xfc00, 0x7c00)
    ENDS(BFLOAT16, uint16_t, 0xff80, 0x7f80)
    ENDS(FLOAT32, float, -INFINITY, INFINITY)
    ENDS(FLOAT64, double, -HUGE_VAL, HUGE_VAL)
#undef ENDS
}

static void test_an_occupied_segment_keeps_its_infinity(at_frame *f)
{
    at_array x = VEC(f, AT_FLOAT32, -INF, -INF, INF, 3), ids = VEC(f, AT_INT64, 0, 0, 2, 2);
    EXPECT(at_segment_max(f, x, ids, AT_DIM(3), false), AT_FLOAT32, SIZES(3),
           VALUES(-INF, -INF, INF));
    EXPECT(at_segment_max_or_constant(f, x, ids, AT_DIM(3), SEVEN, false), AT_FLOAT32, SIZES(3),
           VALUES(-INF, 7, INF));
    EXPECT(at_segment_min_or_constant(f, x, ids, AT_DIM(3), SEVEN, false), AT_FLOAT32, SIZES(3),
           VALUES(-INF, 7, 3));
    at_array up = VEC(f, AT_FLOAT64, INF, INF);
    EXPECT(at_segment_min_or_constant(f, up, VEC(f, AT_INT64, 1, 1), AT_DIM(2), SEVEN, false),
           AT_FLOAT64, SIZES(2), VALUES(7, INF));
}

static void test_an_occupied_segment_keeps_the_ends_of_an_integer_dtype(at_frame *f)
{
    at_array x = VEC(f, AT_INT8, -128, -128, 127), ids = VEC(f, AT_INT64, 0, 0, 2);
    EXPECT(at_segment_max_or_constant(f, x, ids, AT_DIM(3), SEVEN, false), AT_INT8, SIZES(3),
           VALUES(-128, 7, 127));
    EXPECT(at_segment_min_or_constant(f, x, ids, AT_DIM(3), SEVEN, false), AT_INT8, SIZES(3),
           VALUES(-128, 7, 127));
    at_array u = VEC(f, AT_UINT16, 0, 65535);
    EXPECT(at_segment_max_or_constant(f, u, VEC(f, AT_INT64, 0, 1), AT_DIM(3), SEVEN, false),
           AT_UINT16, SIZES(3), VALUES(0, 65535, 7));
}

static void test_the_constant_is_cast_to_the_dtype_of_the_data(at_frame *f)
{
    at_scalar s;
    at_array x = VEC(f, AT_INT16, 5), ids = VEC(f, AT_INT64, 1);
    EXPECT(at_segment_max_or_constant(f, x, ids, AT_DIM(2), at_scalar_float(&s, 3.7), false),
           AT_INT16, SIZES(2), VALUES(3, 5));
    EXPECT(at_segment_min_or_constant(f, x, ids, AT_DIM(2), at_scalar_bool(&s, true), false),
           AT_INT16, SIZES(2), VALUES(1, 5));
    at_array h = VEC(f, AT_FLOAT16, 5);
    EXPECT(at_segment_max_or_constant(f, h, ids, AT_DIM(2), zero_d(f, AT_FLOAT64, -2.5), false),
           AT_FLOAT16, SIZES(2), VALUES(-2.5, 5));
    at_array b = VEC(f, AT_BOOL, 0);
    EXPECT(at_segment_max_or_constant(f, b, ids, AT_DIM(2), at_scalar_int(&s, 1), false), AT_BOOL,
           SIZES(2), VALUES(1, 0));
}

static void test_the_constant_broadcasts(at_frame *f)
{
    at_array x = given(f, AT_FLOAT32, SIZES(1, 2), VALUES(5, 6)), ids = VEC(f, AT_INT64, 1);
    EXPECT(at_segment_max_or_constant(f, x, ids, AT_DIM(3), VEC(f, AT_FLOAT32, 1, 2), false),
           AT_FLOAT32, SIZES(3, 2), VALUES(1, 2, 5, 6, 1, 2));
    at_array column = given(f, AT_INT64, SIZES(3, 1), VALUES(7, 8, 9));
    EXPECT(at_segment_min_or_constant(f, x, ids, AT_DIM(3), column, false), AT_FLOAT32, SIZES(3, 2),
           VALUES(7, 7, 5, 6, 9, 9));
}

/* --- 3. NaN and long segments ---------------------------------------------------------------- */

static void test_nan_anywhere_in_a_segment_spoils_its_column_alone(at_frame *f)
{
    for (int d = 0; d < COUNT_OF(every_float); d++) {
        for (int spoilt = 0; spoilt < 3; spoilt++) {
            double x[10] = {1, 2, 5, 6, 3, 4, 7, 8, 2, 0};
            x[4 * spoilt] = NAN_; /* rows 0, 2, 4: first, middle, last of segment 0 */
            at_array data = given(f, every_float[d], SIZES(5, 2), x);
            at_array ids = VEC(f, AT_INT64, 0, 1, 0, 1, 0);
            check_note = at_dtype_name(every_float[d]);
            EXPECT(call(f, SUM, data, ids, 2), every_float[d], SIZES(2, 2),
                   VALUES(NAN_, 6, 12, 14));
            EXPECT(call(f, MAX, data, ids, 2), every_float[d], SIZES(2, 2), VALUES(NAN_, 4, 7, 8));
            EXPECT(call(f, MIN, data, ids, 2), every_float[d], SIZES(2, 2), VALUES(NAN_, 0, 5, 6));
            EXPECT(call(f, MEAN, data, ids, 2), every_float[d], SIZES(2, 2), VALUES(NAN_, 2, 6, 7));
            EXPECT(call(f, VARIANCE, data, ids, 2), every_float[d], SIZES(2, 2),
                   VALUES(NAN_, 8. / 3, 1, 1));
            EXPECT(call(f, MIN_OR, data, ids, 3), every_float[d], SIZES(3, 2),
                   VALUES(NAN_, 0, 5, 6, 7, 7));
            EXPECT(call(f, NORMALIZE, data, ids, 2), every_float[d], SIZES(5, 2),
                   VALUES(NAN_, 1. / 3, 5. / 12, 6. / 14, NAN_, 2. / 3, 7. / 12, 8. / 14, NAN_, 0));
        }
    }
}

static void test_opposite_infinities_sum_to_nan(at_frame *f)
{
    at_array x = VEC(f, AT_FLOAT64, INF, -INF, INF, 1), ids = VEC(f, AT_INT64, 0, 0, 1, 1);
    EXPECT(call(f, SUM, x, ids, 2), AT_FLOAT64, SIZES(2), VALUES(NAN_, INF));
    EXPECT(call(f, MEAN, x, ids, 2), AT_FLOAT64, SIZES(2), VALUES(NAN_, INF));
}

static void test_a_long_float32_segment_stays_within_a_millionth(at_frame *f)
{
    if (now.layout != ROW_MAJOR) return;
    enum { ROWS = 400000 }; /* one float32 sum would be off by 5e-4 */
    float *x = malloc(ROWS * sizeof *x);
    for (int i = 0; i < ROWS; i++) x[i] = 0.1F;
    at_array data = at_native_wrap(f, AT_FLOAT32, SIZES(ROWS), NULL, x, free, x);
    int8_t *ids = calloc(ROWS, 1);
    at_array id_array = at_native_wrap(f, AT_INT8, SIZES(ROWS), NULL, ids, free, ids);
    double *sum = values_of(call(f, SUM, data, id_array, 1));
    double *mean = values_of(call(f, MEAN, data, id_array, 1));
    if (CHECK(sum && mean)) {
        CHECK(fabs(sum[0] / (ROWS * (double)0.1F) - 1) < 1e-6);
        CHECK(fabs(mean[0] / (double)0.1F - 1) < 1e-6);
    }
    free(sum);
    free(mean);
}

/* --- 4. bool, integers, half types ----------------------------------------------------------- */

static void test_bool_data_counts_any_and_all(at_frame *f)
{
    at_array x = VEC(f, AT_BOOL, 1, 0, 1, 0, 0), ids = VEC(f, AT_INT64, 0, 0, 1, 2, 2);
    EXPECT(call(f, SUM, x, ids, 4), AT_INT64, SIZES(4), VALUES(1, 1, 0, 0));
    EXPECT(call(f, MAX, x, ids, 4), AT_BOOL, SIZES(4), VALUES(1, 1, 0, 0));
    EXPECT(call(f, MIN, x, ids, 4), AT_BOOL, SIZES(4), VALUES(0, 1, 0, 1));
    EXPECT(call(f, MEAN, x, ids, 4), AT_FLOAT64, SIZES(4), VALUES(0.5, 1, 0, 0));
}

static void test_integer_sums_wrap(at_frame *f)
{
    at_array ids = VEC(f, AT_INT64, 0, 0, 0);
#define WRAPS(NAME, type, value, want)                                                             \
    {                                                                                              \
        const type raw[] = {value, value, value};                                                  \
        check_note = #NAME;                                                                        \
        at_array x = at_native_copy(f, AT_##NAME, SIZES(3), raw);                                  \
        EXPECT_BYTES(call(f, SUM, x, ids, 1), type, want);                                         \
    }
    WRAPS(INT8, int8_t, 100, 44)
    WRAPS(INT16, int16_t, 30000, 24464)
    WRAPS(INT32, int32_t, INT32_MAX, INT32_MAX - 2)
    WRAPS(INT64, int64_t, INT64_MAX, INT64_MAX - 2)
    WRAPS(UINT8, uint8_t, 200, 88)
    WRAPS(UINT16, uint16_t, 65535, 65533)
    WRAPS(UINT32, uint32_t, UINT32_MAX, UINT32_MAX - 2)
    WRAPS(UINT64, uint64_t, UINT64_MAX, UINT64_MAX - 2)
#undef WRAPS
}

static void test_integer_extremes_beyond_double_precision_are_exact(at_frame *f)
{
    const int64_t raw[] = {INT64_MAX - 1, INT64_MAX - 2, INT64_MIN + 1, INT64_MIN + 2};
    const uint64_t wide[] = {UINT64_MAX - 1, UINT64_MAX - 2, 5, (UINT64_C(1) << 63) + 1};
    at_array ids = VEC(f, AT_INT64, 0, 0, 1, 1);
    at_array x = at_native_copy(f, AT_INT64, SIZES(4), raw),
             u = at_native_copy(f, AT_UINT64, SIZES(4), wide);
    EXPECT_BYTES(call(f, MAX, x, ids, 2), int64_t, INT64_MAX - 1, INT64_MIN + 2);
    EXPECT_BYTES(call(f, MIN, x, ids, 2), int64_t, INT64_MAX - 2, INT64_MIN + 1);
    EXPECT_BYTES(call(f, MAX, u, ids, 2), uint64_t, UINT64_MAX - 1, (UINT64_C(1) << 63) + 1);
    EXPECT_BYTES(call(f, MIN_OR, u, ids, 3), uint64_t, UINT64_MAX - 2, 5, 7);
    EXPECT_BYTES(call(f, SUM, x, VEC(f, AT_INT64, 0, 1, 2, 3), 4), int64_t, INT64_MAX - 1,
                 INT64_MAX - 2, INT64_MIN + 1, INT64_MIN + 2);
}

static void test_half_types_are_added_in_float32(at_frame *f)
{
    if (now.layout != ROW_MAJOR) return;
    enum { ROWS = 5000 };
    static double ones[ROWS], zeros[ROWS];
    for (int i = 0; i < ROWS; i++) ones[i] = 1;
    at_array ids = given(f, AT_INT64, SIZES(ROWS), zeros);
    at_array h = given(f, AT_FLOAT16, SIZES(ROWS), ones),
             b = given(f, AT_BFLOAT16, SIZES(ROWS), ones);
    EXPECT(call(f, SUM, h, ids, 1), AT_FLOAT16, SIZES(1), VALUES(5000));
    EXPECT(call(f, MEAN, h, ids, 1), AT_FLOAT16, SIZES(1), VALUES(1));
    EXPECT(call(f, SUM, b, ids, 1), AT_BFLOAT16, SIZES(1), VALUES(4992)); /* 5000 in bfloat16 */
    EXPECT(call(f, MEAN, b, ids, 1), AT_BFLOAT16, SIZES(1), VALUES(1));
    EXPECT(call(f, VARIANCE, h, ids, 1), AT_FLOAT16, SIZES(1), VALUES(0));
    double *y = values_of(call(f, SOFTMAX, h, ids, 1));
    CHECK(y && check_near(y[0], 1. / ROWS, 1e-6) && check_near(y[ROWS - 1], 1. / ROWS, 1e-6));
    free(y);
}

static void test_a_half_sum_beyond_its_range_on_the_way_comes_back(at_frame *f)
{
    at_array x = VEC(f, AT_FLOAT16, 60000, 60000, -60000), ids = VEC(f, AT_INT64, 0, 0, 0);
    EXPECT(call(f, SUM, x, ids, 1), AT_FLOAT16, SIZES(1), VALUES(60000));
    EXPECT(call(f, MEAN, x, ids, 1), AT_FLOAT16, SIZES(1), VALUES(20000));
}

static void test_mean_of_integers_does_not_wrap(at_frame *f)
{
    at_array x = VEC(f, AT_INT8, 100, 100, 101), ids = VEC(f, AT_INT64, 0, 0, 0);
    EXPECT(call(f, MEAN, x, ids, 1), AT_FLOAT64, SIZES(1), VALUES(301. / 3));
    EXPECT(call(f, VARIANCE, x, ids, 1), AT_FLOAT64, SIZES(1), VALUES(2. / 9));
}

static void test_variance_of_shifted_data_keeps_its_digits(at_frame *f)
{
    at_array x = VEC(f, AT_FLOAT32, 1e6 + 1, 1e6 + 2, 1e6 + 3), ids = VEC(f, AT_INT64, 0, 0, 0);
    double *got = values_of(call(f, VARIANCE, x, ids, 1));
    CHECK(got && check_near(got[0], 2. / 3, 1e-5));
    free(got);
}

static void test_normalize_gives_zero_where_the_sum_is_zero(at_frame *f)
{
    at_array x = VEC(f, AT_FLOAT32, 0, 0, 1, -1, 2, 6), ids = VEC(f, AT_INT64, 0, 0, 1, 1, 2, 2);
    EXPECT(call(f, NORMALIZE, x, ids, 3), AT_FLOAT32, SIZES(6), VALUES(0, 0, 0, 0, 0.25, 0.75));
}

/* --- 5. softmax ------------------------------------------------------------------------------ */

static void test_softmax_of_a_segment_of_minus_inf_is_nan(at_frame *f)
{
    at_array x = VEC(f, AT_FLOAT32, -INF, -INF, 1, 1), ids = VEC(f, AT_INT64, 0, 0, 1, 1);
    EXPECT(call(f, SOFTMAX, x, ids, 2), AT_FLOAT32, SIZES(4), VALUES(NAN_, NAN_, 0.5, 0.5));
}

static void test_minus_inf_beside_finite_logits_gives_zero(at_frame *f)
{
    at_array x = VEC(f, AT_FLOAT64, -INF, 2, 2), ids = VEC(f, AT_INT64, 0, 0, 0);
    EXPECT(call(f, SOFTMAX, x, ids, 1), AT_FLOAT64, SIZES(3), VALUES(0, 0.5, 0.5));
}

static void test_plus_inf_or_nan_spoil_only_their_own_segment_and_column(at_frame *f)
{
    at_array x = given(f, AT_FLOAT32, SIZES(4, 2), VALUES(INF, 1, 2, 1, 0, NAN_, 0, 3));
    at_array ids = VEC(f, AT_INT64, 0, 0, 1, 1);
    double *y = values_of(call(f, SOFTMAX, x, ids, 2));
    if (CHECK(y != NULL)) {
        CHECK(isnan(y[0]) && y[1] == 0.5 && y[3] == 0.5 && y[4] == 0.5 && y[6] == 0.5);
        CHECK(isnan(y[5]) && isnan(y[7]));
    }
    free(y);
}

static void test_softmax_of_large_logits_does_not_overflow(at_frame *f)
{
    at_array x = VEC(f, AT_FLOAT16, 60000, 60000, -60000), ids = VEC(f, AT_INT64, 0, 0, 0);
    EXPECT(call(f, SOFTMAX, x, ids, 1), AT_FLOAT16, SIZES(3), VALUES(0.5, 0.5, 0));
}

/* --- memory ---------------------------------------------------------------------------------- */

static void test_data_may_repeat_one_row_through_a_zero_stride(at_frame *f)
{
    float row[] = {1, 2};
    at_array x =
        at_native_wrap(f, AT_FLOAT32, SIZES(3, 2), (const int64_t[]){0, 4}, row, NULL, NULL);
    at_array ids = VEC(f, AT_INT64, 0, 1, 0);
    EXPECT(call(f, SUM, x, ids, 2), AT_FLOAT32, SIZES(2, 2), VALUES(2, 4, 1, 2));
    EXPECT(call(f, SOFTMAX, x, ids, 2), AT_FLOAT32, SIZES(3, 2), VALUES(.5, .5, 1, 1, .5, .5));
    int64_t id = 1;
    at_array same = at_native_wrap(f, AT_INT64, SIZES(3), (const int64_t[]){0}, &id, NULL, NULL);
    EXPECT(call(f, SUM, x, same, 2), AT_FLOAT32, SIZES(2, 2), VALUES(0, 0, 3, 6));
}

static void test_data_may_be_a_transposed_view(at_frame *f)
{
    double m[] = {1, 2, 3, 10, 20, 30}; /* (2, 3), seen as (3, 2) */
    at_array x =
        at_native_wrap(f, AT_FLOAT64, SIZES(3, 2), (const int64_t[]){8, 24}, m, NULL, NULL);
    at_array ids = VEC(f, AT_INT64, 1, 1, 0);
    EXPECT(call(f, SUM, x, ids, 2), AT_FLOAT64, SIZES(2, 2), VALUES(3, 30, 3, 30));
    EXPECT(call(f, MAX, x, ids, 2), AT_FLOAT64, SIZES(2, 2), VALUES(3, 30, 2, 20));
}

static void test_results_are_row_major_and_aligned(at_frame *f)
{
    at_array x = given(f, AT_FLOAT32, SIZES(3, 2), VALUES(1, 2, 3, 4, 5, 6)),
             ids = VEC(f, AT_INT64, 1, 1, 0);
    for (op which = 0; which < OPS; which++) {
        at_array y = call(f, which, x, ids, 2);
        if (!CHECK(!at_is_nil(y))) continue;
        int64_t size = (int64_t)at_dtype_size(at_native_dtype(y));
        CHECK((uintptr_t)at_native_data(y) % 64 == 0);
        CHECK(at_native_strides(y)[at_native_ndim(y) - 1] == size);
        CHECK(at_native_ndim(y) == 1 || at_native_strides(y)[0] == 2 * size);
    }
}

/* --- errors ---------------------------------------------------------------------------------- */

/* Makes every operation fail in the same way. */
static void all_fail(at_frame *f, at_array x, at_array ids, at_dim n, at_status status,
                     const char *word, const char *found)
{
    for (op which = 0; which < OPS; which++) {
        check_note = op_name[which];
        EXPECT_ERROR(f, call_sized(f, which, x, ids, n, false), status, op_name[which], word,
                     found);
    }
    check_note = "";
}

static void test_ids_must_be_integral(at_frame *f)
{
    at_scalar s;
    at_array x = VEC(f, AT_FLOAT32, 1, 2);
    all_fail(f, x, VEC(f, AT_FLOAT32, 0, 1), AT_DIM(2), AT_EDTYPE, "segment_ids", "float32");
    all_fail(f, x, VEC(f, AT_BOOL, 0, 1), AT_DIM(2), AT_EDTYPE, "segment_ids", "bool");
    all_fail(f, x, at_scalar_float(&s, 1), AT_DIM(2), AT_EDTYPE, "segment_ids", "float64");
}

static void test_ids_must_be_a_vector(at_frame *f)
{
    at_scalar s;
    at_array x = VEC(f, AT_FLOAT32, 1, 2);
    at_array table = given(f, AT_INT64, SIZES(2, 1), VALUES(0, 1));
    all_fail(f, x, table, AT_DIM(2), AT_ESHAPE, "segment_ids", "(2, 1)");
    all_fail(f, x, zero_d(f, AT_INT64, 0), AT_DIM(2), AT_ESHAPE, "segment_ids", "()");
    all_fail(f, x, at_scalar_int(&s, 0), AT_DIM(2), AT_ESHAPE, "segment_ids", "()");
}

static void test_ids_must_be_as_many_as_rows(at_frame *f)
{
    at_array x = given(f, AT_FLOAT32, SIZES(3, 2), VALUES(1, 2, 3, 4, 5, 6)),
             ids = VEC(f, AT_INT64, 0, 1);
    for (op which = 0; which < OPS; which++) {
        if (which == COUNT) continue;
        check_note = op_name[which];
        EXPECT_ERROR(f, call(f, which, x, ids, 2), AT_ESHAPE, op_name[which], "(3, 2)", "(2,)");
    }
}

static void test_one_row_is_not_spread_over_many_ids(at_frame *f)
{
    at_array x = VEC(f, AT_FLOAT32, 1), ids = VEC(f, AT_INT64, 0, 1, 1);
    EXPECT_ERROR(f, call(f, SUM, x, ids, 2), AT_ESHAPE, "segment_sum", "(1,)", "(3,)");
}

static void test_data_must_have_rows(at_frame *f)
{
    at_scalar s;
    at_array ids = VEC(f, AT_INT64, 0);
    for (op which = 0; which < OPS; which++) {
        if (which == COUNT) continue;
        check_note = op_name[which];
        EXPECT_ERROR(f, call(f, which, zero_d(f, AT_FLOAT32, 1), ids, 2), AT_ESHAPE,
                     op_name[which]);
        EXPECT_ERROR(f, call(f, which, at_scalar_int(&s, 1), ids, 2), AT_ESHAPE, op_name[which]);
    }
}

static void test_the_number_of_segments_must_not_be_negative(at_frame *f)
{
    at_array x = VEC(f, AT_FLOAT32, 1), ids = VEC(f, AT_INT64, 0);
    all_fail(f, x, ids, AT_DIM(-1), AT_EVALUE, "num_segments", "-1");
}

static void test_the_number_of_segments_must_be_there(at_frame *f)
{
    at_array x = VEC(f, AT_FLOAT32, 1), ids = VEC(f, AT_INT64, 0);
    all_fail(f, x, ids, AT_NO_DIM, AT_EARG, "num_segments", "missing");
}

static void test_a_number_of_segments_beyond_all_memory_is_refused(at_frame *f)
{
    static const int64_t sizes[] = {INT64_MAX, INT64_MAX - 1, INT64_MAX / 2, INT64_C(1) << 61};
    at_array x = given(f, AT_FLOAT64, SIZES(1, 2), VALUES(1, 2)), ids = VEC(f, AT_INT64, 0);
    for (int i = 0; i < COUNT_OF(sizes); i++) {
        for (op which = 0; which < OPS; which++) {
            at_array y = call(f, which, x, ids, sizes[i]);
            check_note = op_name[which];
            if (at_is_nil(
                    y)) { /* per row a number of segments needs no memory in the native versions */
                CHECK(f->cx->status == AT_EVALUE || f->cx->status == AT_ENOMEM);
                at_clear(f->cx);
            } else {
                CHECK(which == NORMALIZE || which == SOFTMAX);
            }
        }
    }
}

static void test_missing_operands_are_named(at_frame *f)
{
    at_array x = VEC(f, AT_FLOAT32, 1);
    all_fail(f, x, AT_NIL, AT_DIM(1), AT_EARG, "segment_ids", "missing");
    EXPECT_ERROR(f, call(f, SUM, AT_NIL, VEC(f, AT_INT64, 0), 1), AT_EARG, "'x'", "missing");
    EXPECT_ERROR(f, call(f, SOFTMAX, AT_NIL, VEC(f, AT_INT64, 0), 1), AT_EARG, "'logits'");
    EXPECT_ERROR(f, at_segment_max_or_constant(f, x, VEC(f, AT_INT64, 0), AT_DIM(1), AT_NIL, false),
                 AT_EARG, "'constant'", "missing");
}

static void test_a_constant_that_does_not_broadcast_is_refused(at_frame *f)
{
    at_array x = given(f, AT_FLOAT32, SIZES(1, 2), VALUES(1, 2)), ids = VEC(f, AT_INT64, 0);
    at_array three = VEC(f, AT_FLOAT32, 1, 2, 3);
    EXPECT_ERROR(f, at_segment_max_or_constant(f, x, ids, AT_DIM(2), three, false), AT_ESHAPE,
                 "segment_max_or_constant");
}

int main(int argc, char **argv)
{
    static const test tests[] = {
        TEST(test_every_operation_agrees_with_plain_loops_for_every_dtype),
        TEST(test_every_operation_takes_ids_of_every_integer_dtype),
        TEST(test_every_operation_works_without_rows_columns_or_segments),
        TEST(test_every_operation_agrees_beyond_the_blocks_of_the_kernels),
        TEST(test_every_operation_takes_data_of_rank_three),
        TEST(test_sorted_promises_change_nothing_for_sorted_ids),
        TEST(test_permuting_rows_together_with_ids_changes_no_segment),
        TEST(test_softmax_sums_to_one_over_each_occupied_segment),
        TEST(test_ids_outside_are_dropped_never_wrapped),
        TEST(test_the_lowest_and_highest_id_of_each_dtype_are_dropped),
        TEST(test_unsigned_64_bit_ids_above_int64_are_dropped),
        TEST(test_a_number_of_segments_beyond_the_id_dtype_is_fine),
        TEST(test_what_a_dropped_row_holds_reaches_nothing),
        TEST(test_softmax_and_normalize_give_zero_where_a_row_is_dropped),
        TEST(test_min_and_max_of_empty_segments_are_the_ends_of_the_dtype),
        TEST(test_an_occupied_segment_keeps_its_infinity),
        TEST(test_an_occupied_segment_keeps_the_ends_of_an_integer_dtype),
        TEST(test_the_constant_is_cast_to_the_dtype_of_the_data),
        TEST(test_the_constant_broadcasts),
        TEST(test_nan_anywhere_in_a_segment_spoils_its_column_alone),
        TEST(test_opposite_infinities_sum_to_nan),
        TEST(test_a_long_float32_segment_stays_within_a_millionth),
        TEST(test_bool_data_counts_any_and_all),
        TEST(test_integer_sums_wrap),
        TEST(test_integer_extremes_beyond_double_precision_are_exact),
        TEST(test_half_types_are_added_in_float32),
        TEST(test_a_half_sum_beyond_its_range_on_the_way_comes_back),
        TEST(test_mean_of_integers_does_not_wrap),
        TEST(test_variance_of_shifted_data_keeps_its_digits),
        TEST(test_normalize_gives_zero_where_the_sum_is_zero),
        TEST(test_softmax_of_a_segment_of_minus_inf_is_nan),
        TEST(test_minus_inf_beside_finite_logits_gives_zero),
        TEST(test_plus_inf_or_nan_spoil_only_their_own_segment_and_column),
        TEST(test_softmax_of_large_logits_does_not_overflow),
        TEST(test_data_may_repeat_one_row_through_a_zero_stride),
        TEST(test_data_may_be_a_transposed_view),
        TEST(test_results_are_row_major_and_aligned),
        TEST(test_ids_must_be_integral),
        TEST(test_ids_must_be_a_vector),
        TEST(test_ids_must_be_as_many_as_rows),
        TEST(test_one_row_is_not_spread_over_many_ids),
        TEST(test_data_must_have_rows),
        TEST(test_the_number_of_segments_must_not_be_negative),
        TEST(test_the_number_of_segments_must_be_there),
        TEST(test_a_number_of_segments_beyond_all_memory_is_refused),
        TEST(test_missing_operands_are_named),
        TEST(test_a_constant_that_does_not_broadcast_is_refused),
    };
    static const mode where_derivatives_are_taken[] = {
        {" [tracked formula]", AT_GENERIC, ROW_MAJOR, proxy_make_tracked}};
    int failed = RUN(tests, both_ways, argc, argv);
    return RUN(tests, where_derivatives_are_taken, argc, argv) || failed;
}
