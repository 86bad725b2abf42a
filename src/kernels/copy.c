/* Copies, casts, selection, ramps.
 *
 * Elements of one dtype move by their size alone; casts go through blocks of the widest type (block.h), so
 * that there are no 169 pairs. */
#include <string.h>

#include "kernels/block.h"
#include "kernels/element.h"
#include "kernels/move.h"

/* --- one dtype --- */

ATI_INLINE void items(const char *from, int64_t from_step, char *to, int64_t to_step, int64_t n,
                      size_t size)
{
    for (int64_t k = 0; k < n; k++) memcpy(to + k * to_step, from + k * from_step, size);
}

static void move(const char *from, int64_t from_step, char *to, int64_t to_step, int64_t n,
                 int64_t size)
{
    if (from_step == size && to_step == size) {
        memcpy(to, from, (size_t)(n * size));
        return;
    }
    switch (size) {
    case 1: items(from, from_step, to, to_step, n, 1); break;
    case 2: items(from, from_step, to, to_step, n, 2); break;
    case 4: items(from, from_step, to, to_step, n, 4); break;
    default: items(from, from_step, to, to_step, n, 8); break;
    }
}

/* --- two dtypes --- */

static void cast(const char *from, int64_t from_step, at_dtype from_dtype, char *to,
                 int64_t to_step, at_dtype to_dtype, int64_t n)
{
    ati_block block;
    ati_class c = ati_class_of(from_dtype);
    for (int64_t k = 0; k < n; k += ATI_BLOCK) {
        int64_t count = ati_block_of(n - k);
        ati_block_load(&block, from_dtype, from + k * from_step, from_step, count);
        ati_block_store(&block, c, to_dtype, to + k * to_step, to_step, count);
    }
}

void ati_k_copy(const ati_host *src, ati_host *dst)
{
    ati_walk w;
    int64_t size = ati_k_itemsize(src->dtype);
    const ati_host *views[] = {src, dst};
    for (bool more = ati_walk_start(&w, 2, views); more; more = ati_walk_next(&w)) {
        if (src->dtype == dst->dtype)
            move(w.at[0], w.step[0], w.at[1], w.step[1], w.run, size);
        else
            cast(w.at[0], w.step[0], src->dtype, w.at[1], w.step[1], dst->dtype, w.run);
    }
}

/* --- selection --- */

/* Both sides are loaded and one is kept by a mask: a jump per element would often be guessed wrong. */
#define SELECT(t)                                                                                  \
    ATI_INLINE void loop_##t(const ati_walk *w, int64_t step, int64_t x_step, int64_t y_step)      \
    {                                                                                              \
        const char *condition = w->at[0], *x = w->at[1], *y = w->at[2];                            \
        char *restrict out = w->at[3];                                                             \
        for (int64_t k = 0; k < w->run; k++) {                                                     \
            ati_value_##t a = ati_load_##t(x + k * x_step), b = ati_load_##t(y + k * y_step);      \
            ati_value_##t mask = (ati_value_##t)(0 - (ati_value_##t)(condition[k * step] != 0));   \
            ati_store_##t(out + k * (int64_t)sizeof a, (ati_value_##t)((a & mask) | (b & ~mask))); \
        }                                                                                          \
    }                                                                                              \
    static void select_##t(const ati_walk *w)                                                      \
    {                                                                                              \
        enum { SIZE = sizeof(ati_value_##t) };                                                     \
        if (w->step[0] == 1 && w->step[1] == SIZE && w->step[2] == SIZE)                           \
            loop_##t(w, 1, SIZE, SIZE);                                                            \
        else                                                                                       \
            loop_##t(w, w->step[0], w->step[1], w->step[2]);                                       \
    }
SELECT(u8)
SELECT(u16)
SELECT(u32)
SELECT(u64)

void ati_k_where(const ati_host *condition, const ati_host *x, const ati_host *y, ati_host *out)
{
    ati_walk w;
    const ati_host *views[] = {condition, x, y, out};
    for (bool more = ati_walk_start(&w, 4, views); more; more = ati_walk_next(&w)) {
        switch (ati_k_itemsize(out->dtype)) {
        case 1: select_u8(&w); break;
        case 2: select_u16(&w); break;
        case 4: select_u32(&w); break;
        default: select_u64(&w); break;
        }
    }
}

/* --- ramps --- */

void ati_k_ramp_int(int64_t start, int64_t step, ati_host *out)
{
    ati_block block;
    int64_t size = ati_k_itemsize(out->dtype), n = ati_k_count(out);
    for (int64_t done = 0; done < n; done += ATI_BLOCK) {
        int64_t count = ati_block_of(n - done);
        for (int64_t k = 0; k < count; k++)
            block.u[k] = (uint64_t)start + (uint64_t)(done + k) * (uint64_t)step;
        ati_block_store(&block, ATI_SIGNED, out->dtype, (char *)out->data + done * size, size,
                        count);
    }
}

void ati_k_ramp_float(double start, double step, ati_host *out)
{
    ati_block block;
    int64_t size = ati_k_itemsize(out->dtype), n = ati_k_count(out);
    for (int64_t done = 0; done < n; done += ATI_BLOCK) {
        int64_t count = ati_block_of(n - done);
        for (int64_t k = 0; k < count; k++) block.d[k] = start + (double)(done + k) * step;
        ati_block_store(&block, ATI_REAL, out->dtype, (char *)out->data + done * size, size, count);
    }
}
