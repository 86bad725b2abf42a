/* The loops of rows_loops.h for processors with AVX-512. Only ati_rows_here() may lead here. */
#if defined(__x86_64__)
#include "kernels/block.h"
#include "kernels/element.h"
#include "kernels/rows.h"

/* What is included above stays as it is; what follows is compiled for more. */
#if defined(__clang__)
#pragma clang attribute push(                                                                      \
    __attribute__((target("avx2,fma,avx512f,avx512bw,avx512dq,avx512vl"))), apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx2,fma,avx512f,avx512bw,avx512dq,avx512vl")
#endif
#define ATI_ROWS_NAME avx512
#include "kernels/rows_loops.h"
#if defined(__clang__)
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif
#else
typedef int ati_no_avx512; /* ISO C wants something in a file */
#endif
