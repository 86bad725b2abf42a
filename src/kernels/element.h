/* How one element of each dtype is read from memory and written back, for kernels stamped per dtype.
 *
 * ati_load_f32() and its like give an ati_value_f32: the C type itself, float for the two half types. Memory may
 * be misaligned (memcpy compiles to plain moves). Bytes of bool memory count as true unless 0. */
#ifndef ATI_ELEMENT_H
#define ATI_ELEMENT_H

#include <math.h>
#include <string.h>

#include "anytensor/types.h"
#include "kernels/half.h"

/* X(short name, memory type, value type, from memory, to memory); no short name is a macro, as bool is */
#define ATI_ELEMENTS(X)                                                                            \
    X(b8, uint8_t, bool, ATI_TRUTH, (uint8_t))                                                     \
    X(i8, int8_t, int8_t, , )                                                                      \
    X(i16, int16_t, int16_t, , )                                                                   \
    X(i32, int32_t, int32_t, , )                                                                   \
    X(i64, int64_t, int64_t, , )                                                                   \
    X(u8, uint8_t, uint8_t, , )                                                                    \
    X(u16, uint16_t, uint16_t, , )                                                                 \
    X(u32, uint32_t, uint32_t, , )                                                                 \
    X(u64, uint64_t, uint64_t, , )                                                                 \
    X(f16, uint16_t, float, ati_float16_decode, ati_float16_encode)                                \
    X(bf16, uint16_t, float, ati_bfloat16_decode, ati_bfloat16_encode)                             \
    X(f32, float, float, , )                                                                       \
    X(f64, double, double, , )

#define ATI_TRUTH(byte) ((byte) != 0)

#define ATI_ELEMENT(name, memory, value, decode, encode)                                           \
    typedef memory ati_memory_##name;                                                              \
    typedef value ati_value_##name;                                                                \
    static inline value ati_load_##name(const char *p)                                             \
    {                                                                                              \
        memory m;                                                                                  \
        memcpy(&m, p, sizeof m);                                                                   \
        return decode(m);                                                                          \
    }                                                                                              \
    static inline void ati_store_##name(char *p, value v)                                          \
    {                                                                                              \
        memory m = encode(v);                                                                      \
        memcpy(p, &m, sizeof m);                                                                   \
    }
ATI_ELEMENTS(ATI_ELEMENT)
#undef ATI_ELEMENT

/* The lesser and the greater of two, where a NaN on either side wins: v is taken where it beats a or is NaN, which no
 * comparison with a NaN that is there already does. By masks: gcc would make jumps of choices between floats, which are
 * guessed wrong where rows come in any order. */
#define ATI_EXTREMES(name, value, bits)                                                            \
    static inline value ati_take_##name(int condition, value v, value a)                           \
    {                                                                                              \
        bits x, y, mask = 0 - (bits)condition;                                                     \
        memcpy(&x, &v, sizeof x);                                                                  \
        memcpy(&y, &a, sizeof y);                                                                  \
        x = (x & mask) | (y & ~mask);                                                              \
        memcpy(&v, &x, sizeof v);                                                                  \
        return v;                                                                                  \
    }                                                                                              \
    static inline value ati_less_##name(value a, value v)                                          \
    {                                                                                              \
        return ati_take_##name((v < a) | (v != v), v, a);                                          \
    }                                                                                              \
    static inline value ati_more_##name(value a, value v)                                          \
    {                                                                                              \
        return ati_take_##name((v > a) | (v != v), v, a);                                          \
    }
ATI_EXTREMES(f16, float, uint32_t)
ATI_EXTREMES(bf16, float, uint32_t)
ATI_EXTREMES(f32, float, uint32_t)
ATI_EXTREMES(f64, double, uint64_t)
#undef ATI_EXTREMES

/* A stamped loop is written once with the steps as parameters; inlining it with constant steps gives gcc a
 * contiguous version to vectorise. */
#define ATI_INLINE static inline __attribute__((always_inline))

#endif
