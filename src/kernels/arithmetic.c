/* Binary arithmetic, stamped per op and dtype.
 *
 * Each loop is inlined three times: both operands contiguous, one of them a single value, and any steps.
 * The half types compute in float. */
#include "kernels/element.h"
#include "kernels/elementwise.h"
#include "kernels/view.h"

typedef void binary(const ati_walk *w);

/* 1u widens uint8 and uint16 to an unsigned type, so that nothing overflows a signed int. */
#define ADD(x, y) (1u * (x) + (y))
#define SUB(x, y) (1u * (x) - (y))
#define MUL(x, y) (1u * (x) * (y))
#define ADD_REAL(x, y) ((x) + (y))
#define SUB_REAL(x, y) ((x) - (y))
#define MUL_REAL(x, y) ((x) * (y))
#define DIV_REAL(x, y) ((x) / (y))
#define OR(x, y) ((x) || (y))
#define AND(x, y) ((x) && (y))
#define MORE(x, y) ((y) > (x) ? (y) : (x))
#define LESS(x, y) ((y) < (x) ? (y) : (x))
#define EQUAL(x, y) ((x) == (y))

#define BINARY(name, t, to, formula)                                                               \
    ATI_INLINE void loop_##name(const char *x, int64_t x_step, const char *y, int64_t y_step,      \
                                char *restrict out, int64_t n)                                     \
    {                                                                                              \
        for (int64_t k = 0; k < n; k++) {                                                          \
            ati_value_##t a = ati_load_##t(x + k * x_step), b = ati_load_##t(y + k * y_step);      \
            ati_store_##to(out + k * (int64_t)sizeof(ati_memory_##to),                             \
                           (ati_value_##to)formula(a, b));                                         \
        }                                                                                          \
    }                                                                                              \
    static void name(const ati_walk *w)                                                            \
    {                                                                                              \
        enum { SIZE = sizeof(ati_memory_##t) };                                                    \
        const char *x = w->at[0], *y = w->at[1];                                                   \
        if (w->step[0] == SIZE && w->step[1] == SIZE)                                              \
            loop_##name(x, SIZE, y, SIZE, w->at[2], w->run);                                       \
        else if (w->step[0] == SIZE && w->step[1] == 0)                                            \
            loop_##name(x, SIZE, y, 0, w->at[2], w->run);                                          \
        else                                                                                       \
            loop_##name(x, w->step[0], y, w->step[1], w->at[2], w->run);                           \
    }

#define MODULAR(t) BINARY(add_##t, t, t, ADD) BINARY(sub_##t, t, t, SUB) BINARY(mul_##t, t, t, MUL)
#define ORDERED(t)                                                                                 \
    BINARY(max_##t, t, t, MORE) BINARY(min_##t, t, t, LESS) BINARY(equal_##t, t, b8, EQUAL)
#define REAL(t)                                                                                    \
    BINARY(add_##t, t, t, ADD_REAL)                                                                \
    BINARY(sub_##t, t, t, SUB_REAL)                                                                \
    BINARY(mul_##t, t, t, MUL_REAL)                                                                \
    BINARY(div_##t, t, t, DIV_REAL)                                                                \
    BINARY(max_##t, t, t, ati_more_##t)                                                            \
    BINARY(min_##t, t, t, ati_less_##t)                                                            \
    BINARY(equal_##t, t, b8, EQUAL)

#define UNSIGNED(X) X(u8) X(u16) X(u32) X(u64)
#define WHOLE(X) X(b8) X(i8) X(i16) X(i32) X(i64) UNSIGNED(X)
#define FLOATS(X) X(f16) X(bf16) X(f32) X(f64)

UNSIGNED(MODULAR)
WHOLE(ORDERED)
FLOATS(REAL)
BINARY(add_b8, b8, b8, OR)
BINARY(mul_b8, b8, b8, AND)

/* In the order of ati_binary. Signed integers add, subtract and multiply as unsigned ones: the bits are the same. */
#define OF_WHOLE(t, u)                                                                             \
    {                                                                                              \
        add_##u, sub_##u, mul_##u, NULL, max_##t, min_##t, equal_##t                               \
    }
#define OF_REAL(t)                                                                                 \
    {                                                                                              \
        add_##t, sub_##t, mul_##t, div_##t, max_##t, min_##t, equal_##t                            \
    }

static binary *const binaries[][7] = {
    [AT_BOOL] = {add_b8, NULL, mul_b8, NULL, max_b8, min_b8, equal_b8},
    [AT_INT8] = OF_WHOLE(i8, u8),
    [AT_INT16] = OF_WHOLE(i16, u16),
    [AT_INT32] = OF_WHOLE(i32, u32),
    [AT_INT64] = OF_WHOLE(i64, u64),
    [AT_UINT8] = OF_WHOLE(u8, u8),
    [AT_UINT16] = OF_WHOLE(u16, u16),
    [AT_UINT32] = OF_WHOLE(u32, u32),
    [AT_UINT64] = OF_WHOLE(u64, u64),
    [AT_FLOAT16] = OF_REAL(f16),
    [AT_BFLOAT16] = OF_REAL(bf16),
    [AT_FLOAT32] = OF_REAL(f32),
    [AT_FLOAT64] = OF_REAL(f64),
};

bool ati_k_binary(ati_binary op, const ati_host *x, const ati_host *y, ati_host *out)
{
    ati_walk w;
    binary *run = binaries[x->dtype][op];
    const ati_host *views[] = {x, y, out};
    if (run == NULL) return false;
    for (bool more = ati_walk_start(&w, 3, views); more; more = ati_walk_next(&w)) run(&w);
    return true;
}
