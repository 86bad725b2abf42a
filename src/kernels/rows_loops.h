/* The text of the row loops; a file that includes it says for which processor (ATI_ROWS_NAME).
 *
 * Written so that gcc turns every inner loop into vector code: one stretch of memory in, one out, no branch per
 * element. Rows of one element have loops of their own, in which the compiler knows that. */
#include "kernels/block.h"
#include "kernels/element.h"
#include "kernels/rows.h"

enum { LINE = 64, LINES = 8 };

/* Asks for rows some time before they are needed: ids are random, and their cache lines mostly far away. */
ATI_INLINE void fetch(const char *from, int64_t from_size, const char *to, int64_t to_size)
{
    for (int64_t k = 0; k < from_size && k < LINES * LINE; k += LINE) __builtin_prefetch(from + k);
    for (int64_t k = 0; k < to_size && k < LINES * LINE; k += LINE) __builtin_prefetch(to + k, 1);
}

/* --- folds ---------------------------------------------------------------------------------------------- */

#define KEEP_SUM(a, v) ((a) + (v))
#define KEEP_TIMES(a, v) (1u * (a) * (v)) /* 1u: else uint16 is multiplied as int, and overflows */
#define KEEP_LESS(a, v) ((v) < (a) ? (v) : (a))
#define KEEP_MORE(a, v) ((v) > (a) ? (v) : (a))

/* Folds rows of dtype in into rows of dtype to. Four rows that go to one place are folded into each other first, in
 * the type mid: a chain of additions a quarter as long. */
#define FOLD(name, in, to, mid, keep)                                                              \
    ATI_INLINE void row_##name(const char *restrict from, char *restrict acc, int64_t width)       \
    {                                                                                              \
        enum { IN = sizeof(ati_memory_##in), TO = sizeof(ati_memory_##to) };                       \
        for (int64_t k = 0; k < width; k++) {                                                      \
            ati_value_##to a = ati_load_##to(acc + k * TO);                                        \
            ati_value_##to v = (ati_value_##to)ati_load_##in(from + k * IN);                       \
            ati_store_##to(acc + k * TO, (ati_value_##to)keep(a, v));                              \
        }                                                                                          \
    }                                                                                              \
    ATI_INLINE void four_##name(const char *restrict from, int64_t step, char *restrict acc,       \
                                int64_t width)                                                     \
    {                                                                                              \
        enum { IN = sizeof(ati_memory_##in), TO = sizeof(ati_memory_##to) };                       \
        const char *second = from + step, *third = second + step, *fourth = third + step;          \
        for (int64_t k = 0; k < width; k++) {                                                      \
            mid u = ati_load_##in(from + k * IN), v = ati_load_##in(second + k * IN);              \
            mid x = ati_load_##in(third + k * IN), y = ati_load_##in(fourth + k * IN);             \
            ati_value_##to a = ati_load_##to(acc + k * TO);                                        \
            u = (mid)keep(u, v);                                                                   \
            x = (mid)keep(x, y);                                                                   \
            u = (mid)keep(u, x);                                                                   \
            ati_store_##to(acc + k * TO, (ati_value_##to)keep(a, (ati_value_##to)u));              \
        }                                                                                          \
    }                                                                                              \
    ATI_INLINE void each_##name(const char *const *from, char *const *to_, int64_t count,          \
                                int64_t known, int64_t width)                                      \
    {                                                                                              \
        const int64_t in_size = width * (int64_t)sizeof(ati_memory_##in);                          \
        const int64_t to_size = width * (int64_t)sizeof(ati_memory_##to);                          \
        for (int64_t e = 0; e < count; e++) {                                                      \
            if (e + ATI_AHEAD < known)                                                             \
                fetch(from[e + ATI_AHEAD], in_size, to_[e + ATI_AHEAD], to_size);                  \
            row_##name(from[e], to_[e], width);                                                    \
        }                                                                                          \
    }                                                                                              \
    static void rows_##name(const char *const *from, char *const *to_, int64_t count,              \
                            int64_t known, int64_t width)                                          \
    {                                                                                              \
        if (width == 1)                                                                            \
            each_##name(from, to_, count, known, 1);                                               \
        else                                                                                       \
            each_##name(from, to_, count, known, width);                                           \
    }                                                                                              \
    ATI_INLINE void all_##name(const char *from, int64_t step, int64_t count, int64_t width,       \
                               char *acc)                                                          \
    {                                                                                              \
        int64_t e = 0;                                                                             \
        for (; e + 4 <= count; e += 4) four_##name(from + e * step, step, acc, width);             \
        for (; e < count; e++) row_##name(from + e * step, acc, width);                            \
    }                                                                                              \
    static void flat_##name(const ati_fold_list *list, int64_t low, int64_t high,                  \
                            char *restrict table)                                                  \
    {                                                                                              \
        enum { TO = sizeof(ati_memory_##to) };                                                     \
        const ati_fold_list r = *list;                                                             \
        const uint64_t entries = (uint64_t)(high - low);                                           \
        for (int64_t e = 0; e < r.count; e++) {                                                    \
            uint64_t at = (uint64_t)r.ids[e] - (uint64_t)low;                                      \
            __builtin_prefetch(r.ids_ahead + e * r.ids_step);                                      \
            __builtin_prefetch(r.from + (ATI_BLOCK + e) * r.step);                                 \
            if (at >= entries) continue;                                                           \
            ati_value_##to a = ati_load_##to(table + at * TO);                                     \
            ati_value_##to v = (ati_value_##to)ati_load_##in(r.from + e * r.step);                 \
            ati_store_##to(table + at * TO, (ati_value_##to)keep(a, v));                           \
        }                                                                                          \
    }                                                                                              \
    static void run_##name(const char *from, int64_t step, int64_t count, int64_t width,           \
                           char *acc)                                                              \
    {                                                                                              \
        if (width == 1)                                                                            \
            all_##name(from, step, count, 1, acc);                                                 \
        else                                                                                       \
            all_##name(from, step, count, width, acc);                                             \
    }

/* Sums and products of signed integers are those of unsigned ones, where wrapping is defined. */
#define SUMS(X) X(u8) X(u16) X(u32) X(u64) X(f32) X(f64)
#define WIDE_SUMS(X) X(f16) X(bf16) X(f32)
#define WHOLE(X) X(b8) X(i8) X(i16) X(i32) X(i64) X(u8) X(u16) X(u32) X(u64)
#define REAL(X) X(f16) X(bf16) X(f32) X(f64)

#define SUM(t) FOLD(sum_##t, t, t, ati_value_##t, KEEP_SUM)
#define TIMES_ALL(t) FOLD(prod_##t, t, t, ati_value_##t, KEEP_TIMES)
#define WIDE_SUM(t) FOLD(wide_##t, t, f64, float, KEEP_SUM)
#define LEAST(t) FOLD(min_##t, t, t, ati_value_##t, KEEP_LESS)
#define MOST(t) FOLD(max_##t, t, t, ati_value_##t, KEEP_MORE)
#define LEAST_OR_NAN(t) FOLD(min_##t, t, t, ati_value_##t, ati_less_##t)
#define MOST_OR_NAN(t) FOLD(max_##t, t, t, ati_value_##t, ati_more_##t)

SUMS(SUM)
WIDE_SUMS(WIDE_SUM)
SUMS(TIMES_ALL)
TIMES_ALL(f16)
TIMES_ALL(bf16)
WHOLE(LEAST)
WHOLE(MOST)
REAL(LEAST_OR_NAN)
REAL(MOST_OR_NAN)

/* --- exp ------------------------------------------------------------------------------------------------ */

/* exp(x) = 2^k exp(r) with |r| <= log(2) / 2, where the series of exp needs few terms: it ends where the next one is
 * below a quarter of the last bit. 2^k in two factors, so that subnormal results are rounded once. x is at most 0, as
 * it is below a peak; where the result is 0 anyway it is cut; NaN passes all steps. */
#define EXP(t, type, bits, DIGITS, BIAS, LEAST, LOG2_HIGH, LOG2_LOW, series)                       \
    ATI_INLINE type power_##t(bits k)                                                              \
    {                                                                                              \
        type v;                                                                                    \
        k = (k + BIAS) << DIGITS;                                                                  \
        memcpy(&v, &k, sizeof v);                                                                  \
        return v;                                                                                  \
    }                                                                                              \
    /* x, at least that: by masks, since gcc makes a jump of a choice between floats. */           \
    ATI_INLINE type cut_##t(type x, type least)                                                    \
    {                                                                                              \
        bits u, v, below = 0 - (bits)(x < least);                                                  \
        memcpy(&u, &x, sizeof u);                                                                  \
        memcpy(&v, &least, sizeof v);                                                              \
        u = (v & below) | (u & ~below);                                                            \
        memcpy(&x, &u, sizeof x);                                                                  \
        return x;                                                                                  \
    }                                                                                              \
    ATI_INLINE type exp_##t(type x)                                                                \
    {                                                                                              \
        const type middle = (type)3 * ((bits)1 << (DIGITS - 1)); /* its unit is 1 */               \
        x = cut_##t(x, LEAST);                                                                     \
        type whole = x * (type)1.4426950408889634 + middle, r = whole - middle;                    \
        bits k, zero;                                                                              \
        memcpy(&k, &whole, sizeof k);                                                              \
        memcpy(&zero, &middle, sizeof zero);                                                       \
        k -= zero;                                                                                 \
        r = x - r * LOG2_HIGH - r * LOG2_LOW;                                                      \
        bits half = (k + 2 * BIAS) / 2 - BIAS; /* unsigned: k may be below 0 */                    \
        return series(r) * power_##t(half) * power_##t(k - half);                                  \
    }

#define SERIES_F32(r)                                                                              \
    (1 +                                                                                           \
     r * (1 + r * (1.f / 2 + r * (1.f / 6 + r * (1.f / 24 +                                        \
                                                 r * (1.f / 120 + r * (1.f / 720 + r / 5040)))))))
#define SERIES_TAIL(r)                                                                             \
    (1. / 5040 +                                                                                   \
     r * (1. / 40320 +                                                                             \
          r * (1. / 362880 +                                                                       \
               r * (1. / 3628800 +                                                                 \
                    r * (1. / 39916800 + r * (1. / 479001600 + r * (1. / 6227020800)))))))
#define SERIES_F64(r)                                                                              \
    (1 + r * (1 + r * (1. / 2 +                                                                    \
                       r * (1. / 6 + r * (1. / 24 + r * (1. / 120 +                                \
                                                         r * (1. / 720 + r * SERIES_TAIL(r))))))))

EXP(f32, float, uint32_t, 23, 127, -104.f, 0.693359375f, -2.12194440e-4f, SERIES_F32)
EXP(f64, double, uint64_t, 52, 1023, -746., 6.93147180369123816490e-1, 1.90821492927058770002e-10,
    SERIES_F64)
#define exp_f16 exp_f32
#define exp_bf16 exp_f32

/* --- composites in two passes --------------------------------------------------------------------------- */

/* v where the condition holds, else 0, without a jump. */
#define KEEP_IF(type, bits)                                                                        \
    ATI_INLINE type keep_if_##type(int condition, type v)                                          \
    {                                                                                              \
        bits u, mask = 0 - (bits)condition;                                                        \
        memcpy(&u, &v, sizeof u);                                                                  \
        u &= mask;                                                                                 \
        memcpy(&v, &u, sizeof v);                                                                  \
        return v;                                                                                  \
    }
KEEP_IF(float, uint32_t)
KEEP_IF(double, uint64_t)

/* What is computed of the elements (of value type: float for half types) a of x, b of y, p, q and s (of total). No
 * division is by 0, where it is not used either. */
#define TIMES(type, a, b, p) ((a) * (b))
#define ITSELF(type, a, b, p) (a)
#define IS_PEAK(type, a, b, p) ((a) == (p))
#define OVER(type, a, s) ((a) / ((s) + (type)((s) == 0)))
#define SHARE(type, a, b, p, q, s) keep_if_##type((s) != 0, OVER(type, a, s))
#define SLOPE(type, a, b, p, q, s) ((a) * ((b) - (s)))
#define SHARE_OF_PEAK(type, a, b, p, q, s) keep_if_##type((a) == (p), OVER(type, q, s))

#define NO 0
#define YES 1
#define ELEMENT(t, use, rows, k)                                                                   \
    (use ? ati_load_##t(w->rows[e] + (k) * (int64_t)sizeof(ati_memory_##t)) : (ati_value_##t)0)

#define FLAT(t, use, rows, k)                                                                      \
    (use ? ati_load_##t(w->rows + (k) * (int64_t)sizeof(ati_memory_##t)) : (ati_value_##t)0)

/* Rows of one element in a segment: where in the tables, and whether they are in any. */
static void find_entries(const int64_t *ids, int64_t n, int64_t count, int64_t *restrict at,
                         int32_t *restrict kept)
{
    for (int64_t e = 0; e < count; e++) {
        bool inside = (uint64_t)ids[e] < (uint64_t)n;
        at[e] = ids[e] & -(int64_t)inside;
        kept[e] = inside;
    }
}

/* Asks for the next block, bit by bit while this one waits for its entries: memory that is read in bursts of a block is
 * not foreseen by the processor, and to ask for all of it at once is as slow as not to ask. */
ATI_INLINE void ask_ahead(const ati_flat *w, int64_t e, int64_t size)
{
    __builtin_prefetch(w->ids_ahead + e * w->ids_step);
    __builtin_prefetch(w->x + (ATI_BLOCK + e) * size);
    __builtin_prefetch(w->to + (ATI_BLOCK + e) * size, 1);
}

/* Rows of one element on their way between tables and what is computed. Totals are floats or doubles, aligned. */
#define ENTRIES(t)                                                                                 \
    ATI_INLINE void collect_##t(const ati_flat *w, const ati_value_##t *terms)                     \
    {                                                                                              \
        double *restrict sum = w->sum;                                                             \
        for (int64_t e = 0; e < w->count; e++) {                                                   \
            ask_ahead(w, e, sizeof(ati_memory_##t));                                               \
            sum[w->at[e]] += (double)terms[e];                                                     \
        }                                                                                          \
    }                                                                                              \
    ATI_INLINE void spread_##t(const ati_flat *w, ati_value_##t *restrict totals)                  \
    {                                                                                              \
        const ati_value_##t *total = (const void *)w->total;                                       \
        for (int64_t e = 0; e < w->count; e++) {                                                   \
            ask_ahead(w, e, sizeof(ati_memory_##t));                                               \
            totals[e] = total[w->at[e]];                                                           \
        }                                                                                          \
    }
ENTRIES(f16)
ENTRIES(bf16)
ENTRIES(f32)
ENTRIES(f64)

/* One name per pass and dtype, each inlined for rows of one element and for others. */
#define BOTH_WIDTHS(name)                                                                          \
    static void name(const ati_tile *w)                                                            \
    {                                                                                              \
        if (w->cols == 1)                                                                          \
            name##_cols(w, 1);                                                                     \
        else                                                                                       \
            name##_cols(w, w->cols);                                                               \
    }

#define ADD(name, t, type, use_y, use_p, term)                                                     \
    ATI_INLINE void name##_##t##_cols(const ati_tile *w, int64_t cols)                             \
    {                                                                                              \
        for (int64_t e = 0; e < w->rows; e++) {                                                    \
            double *restrict sum = w->sum[e];                                                      \
            for (int64_t k = 0; k < cols; k++) {                                                   \
                ati_value_##t a = ELEMENT(t, YES, x, k), b = ELEMENT(t, use_y, y, k);              \
                ati_value_##t p = ELEMENT(t, use_p, p, k);                                         \
                (void)b, (void)p;                                                                  \
                sum[k] += (double)term(type, a, b, p);                                             \
            }                                                                                      \
        }                                                                                          \
    }                                                                                              \
    static void name##_##t##_flat(ati_flat own)                                                    \
    {                                                                                              \
        const ati_flat *w = &own;                                                                  \
        ati_value_##t terms[ATI_BLOCK];                                                            \
        for (int64_t e = 0; e < w->count; e++) {                                                   \
            ati_value_##t a = FLAT(t, YES, x, e), b = FLAT(t, use_y, y, e);                        \
            ati_value_##t p = FLAT(t, use_p, p, w->at[e]);                                         \
            (void)b, (void)p;                                                                      \
            terms[e] = keep_if_##type(w->kept[e], (type)term(type, a, b, p));                      \
        }                                                                                          \
        collect_##t(w, terms);                                                                     \
    }                                                                                              \
    BOTH_WIDTHS(name##_##t)

#define MAP(name, t, type, use_y, use_p, formula)                                                  \
    ATI_INLINE void name##_##t##_cols(const ati_tile *w, int64_t cols)                             \
    {                                                                                              \
        for (int64_t e = 0; e < w->rows; e++) {                                                    \
            const char *total = w->total[e];                                                       \
            char *restrict to = w->to[e];                                                          \
            for (int64_t k = 0; k < cols; k++) {                                                   \
                ati_value_##t a = ELEMENT(t, YES, x, k), b = ELEMENT(t, use_y, y, k);              \
                ati_value_##t p = ELEMENT(t, use_p, p, k), q = ELEMENT(t, use_p, q, k);            \
                ati_value_##t s;                                                                   \
                memcpy(&s, total + k * (int64_t)sizeof s, sizeof s);                               \
                (void)b, (void)p, (void)q;                                                         \
                ati_store_##t(to + k * (int64_t)sizeof(ati_memory_##t),                            \
                              formula(type, a, b, p, q, s));                                       \
            }                                                                                      \
        }                                                                                          \
    }                                                                                              \
    static void name##_##t##_flat(ati_flat own)                                                    \
    {                                                                                              \
        const ati_flat *w = &own;                                                                  \
        ati_value_##t totals[ATI_BLOCK];                                                           \
        char *restrict to = w->to;                                                                 \
        spread_##t(w, totals);                                                                     \
        for (int64_t e = 0; e < w->count; e++) {                                                   \
            ati_value_##t a = FLAT(t, YES, x, e), b = FLAT(t, use_y, y, e);                        \
            ati_value_##t p = FLAT(t, use_p, p, w->at[e]), q = FLAT(t, use_p, q, w->at[e]);        \
            ati_value_##t s = totals[e];                                                           \
            (void)b, (void)p, (void)q;                                                             \
            type v = formula(type, a, b, p, q, s);                                                 \
            ati_store_##t(to + e * (int64_t)sizeof(ati_memory_##t),                                \
                          keep_if_##type(w->kept[e], v));                                          \
        }                                                                                          \
    }                                                                                              \
    BOTH_WIDTHS(name##_##t)

/* exp of x - p for a whole tile at once: the vector loop that pays is over its elements, not over a row's. The first
 * pass leaves it in the result, unless that is of a half type and would round it: there both passes compute it. */
#define SOFTMAX(name, t, type, use_p, keeps)                                                       \
    ATI_INLINE void name##_##t##_exps(const ati_tile *w, int64_t cols, ati_value_##t *restrict y)  \
    {                                                                                              \
        for (int64_t e = 0; e < w->rows; e++)                                                      \
            for (int64_t k = 0; k < cols; k++)                                                     \
                y[e * cols + k] = ELEMENT(t, YES, x, k) - ELEMENT(t, use_p, p, k);                 \
        for (int64_t k = 0; k < w->rows * cols; k++) y[k] = exp_##t(y[k]);                         \
    }                                                                                              \
    ATI_INLINE void name##_add_##t##_cols(const ati_tile *w, int64_t cols)                         \
    {                                                                                              \
        ati_value_##t y[ATI_TILE];                                                                 \
        name##_##t##_exps(w, cols, y);                                                             \
        for (int64_t e = 0; e < w->rows; e++) {                                                    \
            double *restrict sum = w->sum[e];                                                      \
            if (keeps) memcpy(w->to[e], y + e * cols, (size_t)cols * sizeof *y);                   \
            for (int64_t k = 0; k < cols; k++) sum[k] += (double)y[e * cols + k];                  \
        }                                                                                          \
    }                                                                                              \
    ATI_INLINE void name##_map_##t##_cols(const ati_tile *w, int64_t cols)                         \
    {                                                                                              \
        ati_value_##t y[ATI_TILE];                                                                 \
        if (!keeps) name##_##t##_exps(w, cols, y);                                                 \
        for (int64_t e = 0; e < w->rows; e++) {                                                    \
            const char *total = w->total[e];                                                       \
            char *restrict to = w->to[e];                                                          \
            for (int64_t k = 0; k < cols; k++) {                                                   \
                char *at = to + k * (int64_t)sizeof(ati_memory_##t);                               \
                ati_value_##t s, v = keeps ? ati_load_##t(at) : y[e * cols + k];                   \
                memcpy(&s, total + k * (int64_t)sizeof s, sizeof s);                               \
                ati_store_##t(at, v / s);                                                          \
            }                                                                                      \
        }                                                                                          \
    }                                                                                              \
    ATI_INLINE void name##_##t##_flat_exps(const ati_flat *w, ati_value_##t *restrict y)           \
    {                                                                                              \
        for (int64_t e = 0; e < w->count; e++)                                                     \
            y[e] = FLAT(t, YES, x, e) - FLAT(t, use_p, p, w->at[e]);                               \
        for (int64_t e = 0; e < w->count; e++) y[e] = keep_if_##type(w->kept[e], exp_##t(y[e]));   \
    }                                                                                              \
    static void name##_add_##t##_flat(ati_flat own)                                                \
    {                                                                                              \
        const ati_flat *w = &own;                                                                  \
        ati_value_##t y[ATI_BLOCK];                                                                \
        name##_##t##_flat_exps(w, y);                                                              \
        if (keeps) memcpy(w->to, y, (size_t)w->count * sizeof *y);                                 \
        collect_##t(w, y);                                                                         \
    }                                                                                              \
    static void name##_map_##t##_flat(ati_flat own)                                                \
    {                                                                                              \
        const ati_flat *w = &own;                                                                  \
        ati_value_##t y[ATI_BLOCK], totals[ATI_BLOCK];                                             \
        spread_##t(w, totals);                                                                     \
        if (keeps)                                                                                 \
            memcpy(y, w->to, (size_t)w->count * sizeof *y);                                        \
        else                                                                                       \
            name##_##t##_flat_exps(w, y);                                                          \
        for (int64_t e = 0; e < w->count; e++)                                                     \
            ati_store_##t(w->to + e * (int64_t)sizeof(ati_memory_##t),                             \
                          keep_if_##type(w->kept[e], y[e] / totals[e]));                           \
    }                                                                                              \
    BOTH_WIDTHS(name##_add_##t)                                                                    \
    BOTH_WIDTHS(name##_map_##t)

#define TWO_PASSES(t, type, keeps)                                                                 \
    SOFTMAX(softmax, t, type, YES, keeps)                                                          \
    SOFTMAX(mild_softmax, t, type, NO, keeps)                                                      \
    ADD(normalize_add, t, type, NO, NO, ITSELF)                                                    \
    MAP(normalize_map, t, type, NO, NO, SHARE)                                                     \
    ADD(softmax_back_add, t, type, YES, NO, TIMES)                                                 \
    MAP(softmax_back_map, t, type, YES, NO, SLOPE)                                                 \
    ADD(extreme_back_add, t, type, NO, YES, IS_PEAK)                                               \
    MAP(extreme_back_map, t, type, NO, YES, SHARE_OF_PEAK)

TWO_PASSES(f16, float, NO)
TWO_PASSES(bf16, float, NO)
TWO_PASSES(f32, float, YES)
TWO_PASSES(f64, double, YES)

/* Whether all elements of count rows, step bytes apart, are mild. NaN is not. */
#define MILD(t, limit)                                                                             \
    ATI_INLINE int some_wild_##t(const char *x, int64_t count)                                     \
    {                                                                                              \
        int wild = 0;                                                                              \
        for (int64_t k = 0; k < count; k++) {                                                      \
            ati_value_##t v = ati_load_##t(x + k * (int64_t)sizeof(ati_memory_##t));               \
            wild |= !((v <= (limit)) & (v >= -(limit)));                                           \
        }                                                                                          \
        return wild;                                                                               \
    }                                                                                              \
    static bool mild_##t(const char *x, int64_t step, int64_t count, int64_t width)                \
    {                                                                                              \
        int wild = 0;                                                                              \
        if (step == width * (int64_t)sizeof(ati_memory_##t)) {                                     \
            width *= count;                                                                        \
            count = 1;                                                                             \
        }                                                                                          \
        for (int64_t e = 0; e < count; e++) wild |= some_wild_##t(x + e * step, width);            \
        return !wild;                                                                              \
    }

MILD(f16, 60.f)
MILD(bf16, 60.f)
MILD(f32, 60.f)
MILD(f64, 300.)

/* --- the table ------------------------------------------------------------------------------------------ */

#define FOLDER(name)                                                                               \
    {                                                                                              \
        rows_##name, run_##name, flat_##name                                                       \
    }
#define PASSES(name, t)                                                                            \
    {                                                                                              \
        name##_add_##t, name##_map_##t, name##_add_##t##_flat, name##_map_##t##_flat               \
    }
#define OF_FLOATS(name)                                                                            \
    {                                                                                              \
        [AT_FLOAT16] = PASSES(name, f16), [AT_BFLOAT16] = PASSES(name, bf16),                      \
        [AT_FLOAT32] = PASSES(name, f32), [AT_FLOAT64] = PASSES(name, f64)                         \
    }
#define OF_ALL(name)                                                                               \
    {                                                                                              \
        [AT_BOOL] = FOLDER(name##_b8), [AT_INT8] = FOLDER(name##_i8),                              \
        [AT_INT16] = FOLDER(name##_i16), [AT_INT32] = FOLDER(name##_i32),                          \
        [AT_INT64] = FOLDER(name##_i64), [AT_UINT8] = FOLDER(name##_u8),                           \
        [AT_UINT16] = FOLDER(name##_u16), [AT_UINT32] = FOLDER(name##_u32),                        \
        [AT_UINT64] = FOLDER(name##_u64), [AT_FLOAT16] = FOLDER(name##_f16),                       \
        [AT_BFLOAT16] = FOLDER(name##_bf16), [AT_FLOAT32] = FOLDER(name##_f32),                    \
        [AT_FLOAT64] = FOLDER(name##_f64)                                                          \
    }

#define JOIN_NAMES(a, b) a##b
#define TABLE(name) JOIN_NAMES(ati_rows_, name)
#define TEXT_OF(name) #name
#define TEXT(name) TEXT_OF(name)

const ati_rows TABLE(ATI_ROWS_NAME) = {
    .name = TEXT(ATI_ROWS_NAME),
    .find_entries = find_entries,
    .fold[ATI_FOLD_SUM] = {[AT_INT8] = FOLDER(sum_u8),
                           [AT_INT16] = FOLDER(sum_u16),
                           [AT_INT32] = FOLDER(sum_u32),
                           [AT_INT64] = FOLDER(sum_u64),
                           [AT_UINT8] = FOLDER(sum_u8),
                           [AT_UINT16] = FOLDER(sum_u16),
                           [AT_UINT32] = FOLDER(sum_u32),
                           [AT_UINT64] = FOLDER(sum_u64),
                           [AT_FLOAT32] = FOLDER(sum_f32),
                           [AT_FLOAT64] = FOLDER(sum_f64)},
    .fold[ATI_FOLD_MIN] = OF_ALL(min),
    .fold[ATI_FOLD_MAX] = OF_ALL(max),
    .fold[ATI_FOLD_PROD] = {[AT_INT8] = FOLDER(prod_u8),
                            [AT_INT16] = FOLDER(prod_u16),
                            [AT_INT32] = FOLDER(prod_u32),
                            [AT_INT64] = FOLDER(prod_u64),
                            [AT_UINT8] = FOLDER(prod_u8),
                            [AT_UINT16] = FOLDER(prod_u16),
                            [AT_UINT32] = FOLDER(prod_u32),
                            [AT_UINT64] = FOLDER(prod_u64),
                            [AT_FLOAT16] = FOLDER(prod_f16),
                            [AT_BFLOAT16] = FOLDER(prod_bf16),
                            [AT_FLOAT32] = FOLDER(prod_f32),
                            [AT_FLOAT64] = FOLDER(prod_f64)},
    .wide = {[AT_FLOAT16] = FOLDER(wide_f16),
             [AT_BFLOAT16] = FOLDER(wide_bf16),
             [AT_FLOAT32] = FOLDER(wide_f32)},
    .pass = {[ATI_SOFTMAX] = OF_FLOATS(softmax),
             [ATI_MILD_SOFTMAX] = OF_FLOATS(mild_softmax),
             [ATI_NORMALIZE] = OF_FLOATS(normalize),
             [ATI_SOFTMAX_BACK] = OF_FLOATS(softmax_back),
             [ATI_EXTREME_BACK] = OF_FLOATS(extreme_back)},
    .mild = {[AT_FLOAT16] = mild_f16,
             [AT_BFLOAT16] = mild_bf16,
             [AT_FLOAT32] = mild_f32,
             [AT_FLOAT64] = mild_f64},
};
