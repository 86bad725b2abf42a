/* See fuzz_oracle.h. */
#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz_oracle.h"

static const char *const names[QUESTIONS] = {"sum",   "min",    "max",    "mean",      "variance",
                                             "count", "min_or", "max_or", "normalize", "softmax"};

/* --- columns ----------------------------------------------------------------------------------------- */

static void number_segments(oracle *o)
{
    const problem *p = o->p;
    int64_t *order = fuzz_by_id(p);
    o->segment = fuzz_get(p->rows, sizeof *o->segment);
    o->id = fuzz_get(p->rows, sizeof *o->id);
    for (int64_t i = 0; i < p->rows; i++) {
        int64_t e = order[i], id = p->id[e];
        o->segment[e] = -1;
        if (id < 0) continue;
        if (o->occupied == 0 || o->id[o->occupied - 1] != id) o->id[o->occupied++] = id;
        o->segment[e] = o->occupied - 1;
    }
    free(order);
}

static bool below(at_dtype dtype, uint64_t a, uint64_t b)
{
    return fuzz_is_signed(dtype) ? (int64_t)a < (int64_t)b : a < b;
}

static void add_whole(column *c, at_dtype dtype, uint64_t v)
{
    if (c->rows == 1 || below(dtype, v, c->least_whole)) c->least_whole = v;
    if (c->rows == 1 || below(dtype, c->most_whole, v)) c->most_whole = v;
    c->whole += v;
}

static void add_real(column *c, double v)
{
    if (isnan(v)) c->nan = true;
    if (isinf(v) && v > 0) c->up = true;
    if (isinf(v) && v < 0) c->down = true;
    if (v < c->least) c->least = v;
    if (v > c->most) c->most = v;
    if (!isfinite(v)) return;
    c->sum += v;
    c->size += fabs(v);
}

static column *column_of(const oracle *o, int64_t row, int64_t k)
{
    return &o->columns[o->segment[row] * o->p->width + k];
}

static void add_row(oracle *o, int64_t e)
{
    const problem *p = o->p;
    for (int64_t k = 0; k < p->width; k++) {
        column *c = column_of(o, e, k);
        cell v = p->value[e * p->width + k];
        if (c->rows++ == 0) {
            c->least = (double)INFINITY;
            c->most = -(double)INFINITY;
        }
        if (!fuzz_is_float(p->x.dtype)) add_whole(c, p->x.dtype, v.u);
        add_real(c, fuzz_real(p->x.dtype, v));
    }
}

static void add_row_again(oracle *o, int64_t e)
{
    const problem *p = o->p;
    for (int64_t k = 0; k < p->width; k++) {
        column *c = column_of(o, e, k);
        double v = fuzz_real(p->x.dtype, p->value[e * p->width + k]);
        double off = v - c->sum / (double)c->rows;
        c->squares += off * off;
        c->exps += exp(v - c->most);
    }
}

oracle fuzz_ask(const problem *p)
{
    oracle o = {.p = p};
    number_segments(&o);
    o.columns = fuzz_get(o.occupied * p->width, sizeof *o.columns);
    if (o.occupied * p->width > 0)
        memset(o.columns, 0, (size_t)(o.occupied * p->width) * sizeof *o.columns);
    for (int64_t e = 0; e < p->rows; e++)
        if (o.segment[e] >= 0) add_row(&o, e);
    for (int64_t e = 0; e < p->rows; e++)
        if (o.segment[e] >= 0) add_row_again(&o, e);
    return o;
}

void fuzz_forget(oracle *o)
{
    free(o->segment);
    free(o->id);
    free(o->columns);
}

/* --- how far off ------------------------------------------------------------------------------------- */

/* Distance from 1 to the next number, greatest number, least number, of a type of floats. */
typedef struct precision {
    double step, most, tiny;
} precision;

static precision precision_of(at_dtype dtype)
{
    switch (dtype) {
    case AT_FLOAT16: return (precision){0x1p-10, 65504, 0x1p-24};
    case AT_BFLOAT16: return (precision){0x1p-7, 0x1.FEp127, 0x1p-126};
    case AT_FLOAT32: return (precision){0x1p-23, 0x1.FFFFFEp127, 0x1p-126};
    default: return (precision){0x1p-52, DBL_MAX, 0x1p-1022};
    }
}

static bool is_half(at_dtype dtype) { return dtype == AT_FLOAT16 || dtype == AT_BFLOAT16; }

/* The dtype of floats in which an answer is given. */
static at_dtype float_of(at_dtype dtype) { return fuzz_is_float(dtype) ? dtype : AT_FLOAT64; }

/* Of the type in which rows are added. */
static precision adding(at_dtype dtype)
{
    return precision_of(is_half(dtype) ? AT_FLOAT32 : float_of(dtype));
}

/* Additions that may each round. */
static double additions(const column *c, at_dtype dtype)
{
    double rows = (double)c->rows;
    return float_of(dtype) == AT_FLOAT64 || rows < 2048 ? rows : 2048 + rows / 1024;
}

static double sum_error(const column *c, at_dtype dtype)
{
    precision a = adding(dtype);
    return a.step * (additions(c, dtype) + 2) * c->size + a.tiny;
}

static bool leaves_range(const column *c, at_dtype dtype)
{
    return !(c->size < adding(dtype).most / 4);
}

/* --- one element ------------------------------------------------------------------------------------- */

/* got is a number of dtype: want up to error, and to rounding. */
static bool near(at_dtype dtype, double got, double want, double error)
{
    precision a = precision_of(dtype);
    if (isnan(want) || isinf(want)) return isnan(want) ? isnan(got) : got == want;
    if (isinf(got)) return fabs(want) + error >= a.most && (got > 0) == (want > 0);
    return fabs(got - want) <= error + a.step * fabs(want) + a.tiny;
}

/* A sum in which there is something not finite. */
static double endless(const column *c)
{
    if (c->nan || (c->up && c->down)) return (double)NAN;
    return c->up ? (double)INFINITY : -(double)INFINITY;
}

static bool is_endless(const column *c) { return c->nan || c->up || c->down; }

static bool sum_holds(const column *c, at_dtype dtype, cell got)
{
    int size = 8 * (int)at_dtype_size(dtype);
    uint64_t mask = dtype == AT_BOOL ? UINT64_MAX : UINT64_MAX >> (64 - size);
    if (!fuzz_is_float(dtype)) return ((got.u ^ c->whole) & mask) == 0;
    if (leaves_range(c, dtype)) return true;
    if (is_endless(c)) return near(dtype, got.d, endless(c), 0);
    return near(dtype, got.d, c->sum, sum_error(c, dtype));
}

static bool mean_holds(const column *c, at_dtype dtype, double got)
{
    if (leaves_range(c, dtype)) return true;
    if (is_endless(c)) return near(float_of(dtype), got, endless(c), 0);
    double rows = (double)c->rows, error = sum_error(c, dtype) / rows;
    return near(float_of(dtype), got, c->sum / rows, error);
}

static bool variance_holds(const column *c, at_dtype dtype, double got)
{
    if (is_endless(c)) return leaves_range(c, dtype) || isnan(got);
    precision a = adding(dtype);
    double rows = (double)c->rows, most = fmax(fabs(c->least), fabs(c->most));
    if (leaves_range(c, dtype) || !(4 * most * most * rows < a.most / 4)) return true;
    double mean_off = sum_error(c, dtype) / rows + a.step * most, want = c->squares / rows;
    double error = a.step * (additions(c, dtype) + 8) * want + 4 * mean_off * mean_off + 8 * a.tiny;
    return got >= 0 && near(float_of(dtype), got, want, error);
}

static bool extreme_holds(const column *c, at_dtype dtype, bool most, cell got)
{
    if (!fuzz_is_float(dtype)) return got.u == (most ? c->most_whole : c->least_whole);
    if (c->nan) return isnan(got.d);
    return got.d == (most ? c->most : c->least);
}

static bool normalized_holds(const column *c, at_dtype dtype, double v, double got)
{
    precision a = adding(dtype);
    if (leaves_range(c, dtype)) return true;
    if (is_endless(c)) {
        double want = isnan(endless(c)) || !isfinite(v) ? (double)NAN : 0;
        return near(float_of(dtype), got, want, 0);
    }
    if (c->size <= 0) return got == 0; /* NOLINT: all zero */
    double error = sum_error(c, dtype), want = v / c->sum;
    if (4 * error > fabs(c->sum) || fabs(want) > precision_of(float_of(dtype)).most / 2)
        return true;
    return near(float_of(dtype), got, want, fabs(want) * (2 * error / fabs(c->sum) + 4 * a.step));
}

static bool softmax_holds(const column *c, at_dtype dtype, double v, double got)
{
    if (c->nan || c->up || isinf(c->most)) return isnan(got);
    double want = exp(v - c->most) / c->exps;
    double error = adding(dtype).step * (additions(c, dtype) + 800);
    return got >= 0 && near(float_of(dtype), got, want, error * want);
}

static bool folded_holds(const column *c, question q, at_dtype dtype, cell got)
{
    switch (q) {
    case ASK_SUM: return sum_holds(c, dtype, got);
    case ASK_MIN:
    case ASK_MIN_OR: return extreme_holds(c, dtype, false, got);
    case ASK_MAX:
    case ASK_MAX_OR: return extreme_holds(c, dtype, true, got);
    case ASK_MEAN: return mean_holds(c, dtype, got.d);
    default: return variance_holds(c, dtype, got.d);
    }
}

/* The end of a dtype, upper or lower. */
static cell end_of(at_dtype dtype, bool upper)
{
    int size = 8 * (int)at_dtype_size(dtype), is_signed = fuzz_is_signed(dtype);
    if (fuzz_is_float(dtype)) return (cell){.d = upper ? (double)INFINITY : -(double)INFINITY};
    if (dtype == AT_BOOL) return (cell){.u = upper};
    uint64_t most = UINT64_MAX >> (64 - size + is_signed);
    return (cell){.u = upper ? most : is_signed ? ~most : 0};
}

static cell constant_of(at_dtype dtype)
{
    if (fuzz_is_float(dtype)) return (cell){.d = 7};
    return (cell){.u = dtype == AT_BOOL ? 1 : 7};
}

static cell empty_of(question q, at_dtype dtype)
{
    if (q == ASK_MIN || q == ASK_MAX) return end_of(dtype, q == ASK_MIN);
    if (q == ASK_MIN_OR || q == ASK_MAX_OR) return constant_of(dtype);
    return (cell){.u = 0}; /* 0.0 has the same bits */
}

bool fuzz_same(at_dtype dtype, cell a, cell b)
{
    if (!fuzz_is_float(dtype)) return a.u == b.u;
    return (isnan(a.d) && isnan(b.d)) || a.d == b.d;
}

/* --- whole answers ----------------------------------------------------------------------------------- */

cell *fuzz_cells(const problem *p, at_array a)
{
    int64_t count = 1, size = (int64_t)at_dtype_size(at_native_dtype(a));
    for (int k = 0; k < at_native_ndim(a); k++) count *= at_native_sizes(a)[k];
    char *bytes = fuzz_get(count, (size_t)size);
    cell *cells = fuzz_get(count, sizeof *cells);
    if (!at_native_read(a, bytes, (size_t)(count * size))) fuzz_fail(p, "cannot be read");
    for (int64_t i = 0; i < count; i++) cells[i] = fuzz_load(at_native_dtype(a), bytes + i * size);
    free(bytes);
    return cells;
}

static at_dtype answer_dtype(question q, at_dtype dtype)
{
    if (q == ASK_COUNT) return AT_FLOAT64;
    if (q == ASK_SUM) return dtype == AT_BOOL ? AT_INT64 : dtype;
    return q == ASK_MIN || q == ASK_MAX || q == ASK_MIN_OR || q == ASK_MAX_OR ? dtype
                                                                              : float_of(dtype);
}

static bool per_row(question q) { return q == ASK_NORMALIZE || q == ASK_SOFTMAX; }

static void check_shape(const problem *p, question q, at_array a, int64_t rows, const char *how)
{
    at_dtype dtype = answer_dtype(q, p->x.dtype);
    int ndim = q == ASK_COUNT ? 1 : p->x.ndim;
    if (at_native_dtype(a) != dtype)
        fuzz_fail(p, "%s (%s): dtype is %s, not %s", names[q], how,
                  at_dtype_name(at_native_dtype(a)), at_dtype_name(dtype));
    if (at_native_ndim(a) != ndim) fuzz_fail(p, "%s (%s): rank", names[q], how);
    for (int k = 0; k < ndim; k++)
        if (at_native_sizes(a)[k] != (k > 0 ? p->x.dim[k] : per_row(q) ? rows : p->n))
            fuzz_fail(p, "%s (%s): size of axis %d", names[q], how, k);
}

static void wrong(const oracle *o, question q, const char *how, int64_t row, int64_t k, cell got)
{
    fuzz_fail(o->p, "%s (%s): row %" PRId64 ", column %" PRId64 " is %.17g or %" PRIx64, names[q],
              how, row, k, got.d, got.u);
}

static void check_folded(const oracle *o, question q, const cell *got, const char *how)
{
    const problem *p = o->p;
    cell empty = empty_of(q, p->x.dtype);
    at_dtype dtype = answer_dtype(q, p->x.dtype);
    for (int64_t s = 0, next = 0; s < p->n && p->width > 0; s++) {
        bool occupied = next < o->occupied && o->id[next] == s;
        for (int64_t k = 0; k < p->width; k++) {
            cell v = got[s * p->width + k];
            const column *c = &o->columns[(occupied ? next : 0) * p->width + k];
            bool holds = occupied ? folded_holds(c, q, p->x.dtype, v) : fuzz_same(dtype, v, empty);
            if (!holds) wrong(o, q, how, s, k, v);
        }
        if (occupied) next++;
    }
}

static void check_count(const oracle *o, const cell *got, const char *how)
{
    const problem *p = o->p;
    double *rows = fuzz_get(p->n, sizeof *rows);
    for (int64_t s = 0; s < p->n; s++) rows[s] = 0;
    for (int64_t e = 0; e < p->rows; e++)
        if (p->id[e] >= 0) rows[p->id[e]]++;
    for (int64_t s = 0; s < p->n; s++)
        if (got[s].d != rows[s]) wrong(o, ASK_COUNT, how, s, 0, got[s]);
    free(rows);
}

static void check_rows(const oracle *o, question q, const cell *got, int64_t rows,
                       const int64_t *row, const char *how)
{
    const problem *p = o->p;
    at_dtype dtype = p->x.dtype;
    for (int64_t i = 0; i < rows * p->width; i++) {
        int64_t e = row != NULL ? row[i / p->width] : i / p->width, k = i % p->width;
        double v = fuzz_real(dtype, p->value[e * p->width + k]);
        bool holds = o->segment[e] < 0  ? got[i].d == 0
                     : q == ASK_SOFTMAX ? softmax_holds(column_of(o, e, k), dtype, v, got[i].d)
                                        : normalized_holds(column_of(o, e, k), dtype, v, got[i].d);
        if (!holds) wrong(o, q, how, e, k, got[i]);
    }
}

/* Whether an answer may be refused: no array of so many segments can be made, or the formula cannot count them. */
static void check_refusal(const problem *p, question q, at_frame *f, const char *how)
{
    at_status status = f->cx->status;
    if (!fuzz_is_huge(p->n) || (status != AT_EVALUE && status != AT_ENOMEM))
        fuzz_fail(p, "%s (%s): %s", names[q], how, at_message(f->cx));
    at_clear(f->cx);
}

void fuzz_check(const oracle *o, question q, at_frame *f, at_array answer, int64_t rows,
                const int64_t *row, const char *how)
{
    const problem *p = o->p;
    if (at_is_nil(answer)) {
        check_refusal(p, q, f, how);
        return;
    }
    check_shape(p, q, answer, rows, how);
    if (fuzz_is_huge(p->n) && !per_row(q)) return; /* there are no columns then */
    cell *got = fuzz_cells(p, answer);
    if (q == ASK_COUNT)
        check_count(o, got, how);
    else if (per_row(q))
        check_rows(o, q, got, rows, row, how);
    else
        check_folded(o, q, got, how);
    free(got);
}

at_array fuzz_call(at_frame *f, question q, at_array x, at_array ids, int64_t n, bool sorted)
{
    at_scalar seven;
    at_array constant = at_scalar_int(&seven, 7);
    at_dim size = AT_DIM(n);
    switch (q) {
    case ASK_SUM: return at_segment_sum(f, x, ids, size, sorted);
    case ASK_MIN: return at_segment_min(f, x, ids, size, sorted);
    case ASK_MAX: return at_segment_max(f, x, ids, size, sorted);
    case ASK_MEAN: return at_segment_mean(f, x, ids, size, sorted);
    case ASK_VARIANCE: return at_segment_variance(f, x, ids, size, sorted);
    case ASK_COUNT: return at_segment_count(f, ids, size, sorted);
    case ASK_MIN_OR: return at_segment_min_or_constant(f, x, ids, size, constant, sorted);
    case ASK_MAX_OR: return at_segment_max_or_constant(f, x, ids, size, constant, sorted);
    case ASK_NORMALIZE: return at_segment_normalize(f, x, ids, size, sorted);
    default: return at_segment_softmax(f, x, ids, size, sorted);
    }
}
