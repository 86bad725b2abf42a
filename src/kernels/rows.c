/* Which loops this processor can run. */
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/rows.h"

#if defined(__x86_64__)
static bool has_avx2(void)
{
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
}

static bool has_avx512(void)
{
    return has_avx2() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
}

static const ati_rows *choose(void)
{
    const char *wish = getenv("AT_SIMD");
    bool base = wish != NULL && strcmp(wish, "base") == 0;
    bool avx2 = wish != NULL && strcmp(wish, "avx2") == 0;
    __builtin_cpu_init();
    if (!base && !avx2 && has_avx512()) return &ati_rows_avx512;
    return !base && has_avx2() ? &ati_rows_avx2 : &ati_rows_base;
}
#else
static const ati_rows *choose(void) { return &ati_rows_base; }
#endif

const ati_rows *ati_rows_here(void)
{
    static _Atomic(const ati_rows *) chosen; /* two threads may both choose; they choose the same */
    const ati_rows *rows = atomic_load_explicit(&chosen, memory_order_acquire);
    if (rows == NULL) {
        rows = choose();
        atomic_store_explicit(&chosen, rows, memory_order_release);
    }
    return rows;
}
