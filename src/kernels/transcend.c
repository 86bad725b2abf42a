/* Unary functions of floats by the C library (the half types in float), and tests for NaN and infinity. */
#include <string.h>

#include "kernels/element.h"
#include "kernels/elementwise.h"
#include "kernels/view.h"

typedef void unary(const ati_walk *w);

#define UNARY(name, t, to, function)                                                               \
    ATI_INLINE void loop_##name(const char *x, int64_t step, char *restrict out, int64_t n)        \
    {                                                                                              \
        for (int64_t k = 0; k < n; k++)                                                            \
            ati_store_##to(out + k * (int64_t)sizeof(ati_memory_##to),                             \
                           function(ati_load_##t(x + k * step)));                                  \
    }                                                                                              \
    static void name(const ati_walk *w)                                                            \
    {                                                                                              \
        if (w->step[0] == (int64_t)sizeof(ati_memory_##t))                                         \
            loop_##name(w->at[0], (int64_t)sizeof(ati_memory_##t), w->at[1], w->run);              \
        else                                                                                       \
            loop_##name(w->at[0], w->step[0], w->at[1], w->run);                                   \
    }

#define NOT_A_NUMBER(v) ((v) != (v))
#define FINITE(v) ((v) - (v) == 0)
#define INFINITE(v) (!FINITE(v) && !NOT_A_NUMBER(v))

#define SINGLE(t)                                                                                  \
    UNARY(exp_##t, t, t, expf)                                                                     \
    UNARY(log_##t, t, t, logf)                                                                     \
    UNARY(sqrt_##t, t, t, sqrtf)                                                                   \
    UNARY(is_nan_##t, t, b8, NOT_A_NUMBER)                                                         \
    UNARY(is_inf_##t, t, b8, INFINITE)                                                             \
    UNARY(is_finite_##t, t, b8, FINITE)

SINGLE(f16)
SINGLE(bf16)
SINGLE(f32)
UNARY(exp_f64, f64, f64, exp)
UNARY(log_f64, f64, f64, log)
UNARY(sqrt_f64, f64, f64, sqrt)
UNARY(is_nan_f64, f64, b8, NOT_A_NUMBER)
UNARY(is_inf_f64, f64, b8, INFINITE)
UNARY(is_finite_f64, f64, b8, FINITE)

/* In the order of ati_unary. */
#define OF(t)                                                                                      \
    {                                                                                              \
        exp_##t, log_##t, sqrt_##t, is_nan_##t, is_inf_##t, is_finite_##t                          \
    }

static unary *const unaries[][6] = {[AT_FLOAT16] = OF(f16),
                                    [AT_BFLOAT16] = OF(bf16),
                                    [AT_FLOAT32] = OF(f32),
                                    [AT_FLOAT64] = OF(f64)};

/* No bool and no integer is NaN or infinite. */
static bool test_whole(ati_unary op, ati_host *out)
{
    if (op < ATI_IS_NAN) return false;
    int64_t n = ati_k_count(out);
    if (n > 0) memset(out->data, op == ATI_IS_FINITE, (size_t)n);
    return true;
}

bool ati_k_unary(ati_unary op, const ati_host *x, ati_host *out)
{
    ati_walk w;
    const ati_host *views[] = {x, out};
    if (x->dtype < AT_FLOAT16) return test_whole(op, out);
    for (bool more = ati_walk_start(&w, 2, views); more; more = ati_walk_next(&w))
        unaries[x->dtype][op](&w);
    return true;
}
