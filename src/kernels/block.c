/* Loads and stores of blocks: 13 loads into three classes, 3 x 13 stores out of them, all stamped.
 *
 * Two steps through a block of 256 elements in place of 169 direct casts. */
#include "kernels/block.h"
#include "kernels/element.h"
#include "kernels/view.h"

ati_class ati_class_of(at_dtype dtype)
{
    if (dtype >= AT_FLOAT16) return ATI_REAL;
    return dtype >= AT_INT8 && dtype <= AT_INT64 ? ATI_SIGNED : ATI_UNSIGNED;
}

at_dtype ati_class_dtype(ati_class c)
{
    return c == ATI_REAL ? AT_FLOAT64 : c == ATI_SIGNED ? AT_INT64 : AT_UINT64;
}

/* --- loads: X(name, enum, wide type, field) --- */
#define LOADS(X)                                                                                   \
    X(b8, BOOL, uint64_t, u)                                                                       \
    X(i8, INT8, int64_t, i)                                                                        \
    X(i16, INT16, int64_t, i)                                                                      \
    X(i32, INT32, int64_t, i)                                                                      \
    X(i64, INT64, int64_t, i)                                                                      \
    X(u8, UINT8, uint64_t, u)                                                                      \
    X(u16, UINT16, uint64_t, u)                                                                    \
    X(u32, UINT32, uint64_t, u)                                                                    \
    X(u64, UINT64, uint64_t, u)                                                                    \
    X(f16, FLOAT16, double, d)                                                                     \
    X(bf16, BFLOAT16, double, d)                                                                   \
    X(f32, FLOAT32, double, d)                                                                     \
    X(f64, FLOAT64, double, d)

#define LOAD(name, NAME, wide, field)                                                              \
    static void load_##name(ati_block *block, const char *p, int64_t step, int64_t n)              \
    {                                                                                              \
        if (step == (int64_t)sizeof(ati_memory_##name))                                            \
            for (int64_t k = 0; k < n; k++)                                                        \
                block->field[k] =                                                                  \
                    (wide)ati_load_##name(p + k * (int64_t)sizeof(ati_memory_##name));             \
        else                                                                                       \
            for (int64_t k = 0; k < n; k++) block->field[k] = (wide)ati_load_##name(p + k * step); \
    }
LOADS(LOAD)
#undef LOAD

typedef void load(ati_block *block, const char *p, int64_t step, int64_t n);

static load *const loads[] = {
#define ENTRY(name, NAME, wide, field) [AT_##NAME] = load_##name,
    LOADS(ENTRY)
#undef ENTRY
};

void ati_block_load(ati_block *block, at_dtype from, const char *p, int64_t step, int64_t n)
{
    loads[from](block, p, step, n);
}

/* Signed integers are read to where they belong, the others by way of a block. */
void ati_ids_load(int64_t *ids, at_dtype from, const char *p, int64_t step, int64_t n)
{
    ati_block block;
    ati_class c = ati_class_of(from);
    if (from == AT_INT64 && step == (int64_t)sizeof *ids)
        memcpy(ids, p, (size_t)n * sizeof *ids);
    else if (c == ATI_SIGNED)
        loads[from]((ati_block *)(void *)ids, p, step, n);
    else {
        ati_block_load(&block, from, p, step, n);
        for (int64_t k = 0; k < n; k++)
            ids[k] = c == ATI_UNSIGNED && block.u[k] < INT64_MAX ? (int64_t)block.u[k] : INT64_MAX;
    }
}

#define PICK(name)                                                                                 \
    static void pick_##name(ati_value_##name *to, const char *p, int64_t step,                     \
                            const uint32_t *list, int64_t n)                                       \
    {                                                                                              \
        for (int64_t k = 0; k < n; k++) to[k] = ati_load_##name(p + (int64_t)list[k] * step);      \
    }
PICK(u8)
PICK(u16)
PICK(u32)
PICK(u64)

/* Picked by their width, then read as any other block. */
void ati_ids_pick(int64_t *ids, at_dtype from, const char *p, int64_t step, const uint32_t *list,
                  int64_t n)
{
    union {
        uint8_t u8[ATI_BLOCK];
        uint16_t u16[ATI_BLOCK];
        uint32_t u32[ATI_BLOCK];
        uint64_t u64[ATI_BLOCK];
    } picked;
    int64_t size = ati_k_itemsize(from);
    switch (size) {
    case 1: pick_u8(picked.u8, p, step, list, n); break;
    case 2: pick_u16(picked.u16, p, step, list, n); break;
    case 4: pick_u32(picked.u32, p, step, list, n); break;
    default: pick_u64(picked.u64, p, step, list, n); break;
    }
    ati_ids_load(ids, from, (const char *)&picked, size, n);
}

/* --- stores --- */

/* A double as an integer type: the nearest value it has, 0 for NaN. */
#define CLAMP(type, least, most, v)                                                                \
    ((v) >= (double)(most)    ? (most)                                                             \
     : (v) <= (double)(least) ? (least)                                                            \
     : (v) == (v)             ? (type)(v)                                                          \
                              : (type)0)

#define CAST_i8(v) CLAMP(int8_t, INT8_MIN, INT8_MAX, v)
#define CAST_i16(v) CLAMP(int16_t, INT16_MIN, INT16_MAX, v)
#define CAST_i32(v) CLAMP(int32_t, INT32_MIN, INT32_MAX, v)
#define CAST_i64(v) CLAMP(int64_t, INT64_MIN, INT64_MAX, v)
#define CAST_u8(v) CLAMP(uint8_t, 0, UINT8_MAX, v)
#define CAST_u16(v) CLAMP(uint16_t, 0, UINT16_MAX, v)
#define CAST_u32(v) CLAMP(uint32_t, 0, UINT32_MAX, v)
#define CAST_u64(v) CLAMP(uint64_t, 0, UINT64_MAX, v)
#define TRUTH(v) ((v) != 0)
#define SAME(v) (v)

/* X(name, enum, from an integer, from a double); the half types come below */
#define STORES(X)                                                                                  \
    X(b8, BOOL, TRUTH, TRUTH)                                                                      \
    X(i8, INT8, (int8_t), CAST_i8)                                                                 \
    X(i16, INT16, (int16_t), CAST_i16)                                                             \
    X(i32, INT32, (int32_t), CAST_i32)                                                             \
    X(i64, INT64, (int64_t), CAST_i64)                                                             \
    X(u8, UINT8, (uint8_t), CAST_u8)                                                               \
    X(u16, UINT16, (uint16_t), CAST_u16)                                                           \
    X(u32, UINT32, (uint32_t), CAST_u32)                                                           \
    X(u64, UINT64, (uint64_t), CAST_u64)                                                           \
    X(f32, FLOAT32, (float), (float))                                                              \
    X(f64, FLOAT64, (double), (double))

#define STORE(name, wide, cast)                                                                    \
    static void store_##name##_##wide(const void *values, char *p, int64_t step, int64_t n)        \
    {                                                                                              \
        const wide *v = values;                                                                    \
        if (step == (int64_t)sizeof(ati_memory_##name))                                            \
            for (int64_t k = 0; k < n; k++)                                                        \
                ati_store_##name(p + k * (int64_t)sizeof(ati_memory_##name), cast(v[k]));          \
        else                                                                                       \
            for (int64_t k = 0; k < n; k++) ati_store_##name(p + k * step, cast(v[k]));            \
    }
#define STORE_ALL(name, NAME, whole, real)                                                         \
    STORE(name, int64_t, whole) STORE(name, uint64_t, whole) STORE(name, double, real)
STORES(STORE_ALL)
STORE(f16, float, SAME)
STORE(bf16, float, SAME)
#undef STORE_ALL
#undef STORE

typedef void store(const void *values, char *p, int64_t step, int64_t n);

static store *const stores[][3] = {
#define ENTRY(name, NAME, whole, real)                                                             \
    [AT_##NAME] = {store_##name##_int64_t, store_##name##_uint64_t, store_##name##_double},
    STORES(ENTRY)
#undef ENTRY
};

/* Doubles to floats. Most are floats already: rounding to odd is left to blocks in which one is not. */
static void narrow(const double *v, float *to, int64_t n)
{
    bool lost = false;
    for (int64_t k = 0; k < n; k++) to[k] = (float)v[k];
    for (int64_t k = 0; k < n; k++) lost |= (double)to[k] != v[k];
    for (int64_t k = 0; lost && k < n; k++) to[k] = ati_float_odd(v[k]);
}

/* The half types: through double and float. */
static void store_half(const char *values, ati_class from, at_dtype to, char *p, int64_t step,
                       int64_t n)
{
    ati_block wide;
    float block[ATI_BLOCK];
    for (int64_t done = 0, count; done < n; done += count) {
        count = ati_block_of(n - done);
        stores[AT_FLOAT64][from](values + done * 8, (char *)wide.d, 8, count);
        narrow(wide.d, block, count);
        if (to == AT_FLOAT16)
            store_f16_float(block, p + done * step, step, count);
        else
            store_bf16_float(block, p + done * step, step, count);
    }
}

void ati_block_store(const void *values, ati_class from, at_dtype to, char *p, int64_t step,
                     int64_t n)
{
    if (to == AT_FLOAT16 || to == AT_BFLOAT16)
        store_half(values, from, to, p, step, n);
    else
        stores[to][from](values, p, step, n);
}
