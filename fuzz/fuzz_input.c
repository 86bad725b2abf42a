/* See fuzz_input.h. The order in which bytes are used is the format of the corpus: what comes later may be
 * added to, what comes earlier better stays. */
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz_input.h"

/* --- bytes ------------------------------------------------------------------------------------------- */

cursor fuzz_cursor(const uint8_t *bytes, size_t size)
{
    cursor c = {bytes, size, UINT64_C(0x243F6A8885A308D3)};
    for (size_t i = 0; i < size; i++) c.state = (c.state ^ bytes[i]) * UINT64_C(0x100000001B3);
    return c;
}

static uint64_t generated(cursor *c)
{
    c->state = c->state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    uint64_t mixed = (c->state ^ (c->state >> 29)) * UINT64_C(0xBF58476D1CE4E5B9);
    return mixed ^ (mixed >> 32);
}

static uint8_t next_byte(cursor *c)
{
    if (c->left == 0) return 0;
    c->left--;
    return *c->at++;
}

uint64_t fuzz_bits(cursor *c)
{
    if (c->left == 0) return generated(c);
    uint64_t few = next_byte(c);
    few = few << 8 | next_byte(c);
    uint64_t many = (few + 1) * UINT64_C(0x9E3779B97F4A7C15);
    return (many ^ (many >> 31)) << 16 | few;
}

int64_t fuzz_below(cursor *c, int64_t limit)
{
    return limit > 0 ? (int64_t)(fuzz_bits(c) % (uint64_t)limit) : 0;
}

int64_t fuzz_choice(cursor *c, int64_t limit) { return next_byte(c) % limit; }

void *fuzz_get(int64_t count, size_t size)
{
    void *block = malloc((size_t)count * size);
    if (block == NULL) block = malloc(1); /* malloc(0) may give NULL */
    if (block == NULL) abort();
    return block;
}

void fuzz_fail(const problem *p, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    fprintf(stderr, "FUZZ: ");
    vfprintf(stderr, format, list);
    va_end(list);
    fprintf(stderr, "\n  x %s (%" PRId64 " x %" PRId64 "), rank %d, strides",
            at_dtype_name(p->x.dtype), p->rows, p->width, p->x.ndim);
    for (int k = 0; k < p->x.ndim; k++) fprintf(stderr, " %" PRId64, p->x.stride[k]);
    fprintf(stderr, "; ids %s, stride %" PRId64 "; n %" PRId64 "; flags %u\n",
            at_dtype_name(p->ids.dtype), p->ids.stride[0], p->n, p->flags);
    abort();
}

/* --- elements ---------------------------------------------------------------------------------------- */

bool fuzz_is_float(at_dtype dtype) { return dtype >= AT_FLOAT16; }

bool fuzz_is_signed(at_dtype dtype) { return dtype >= AT_INT8 && dtype <= AT_INT64; }

/* A half type by its definition: sign, exponent, `mantissa` bits. */
static double half(uint16_t bits, int mantissa)
{
    int top = (1 << (15 - mantissa)) - 1, exponent = (bits & 0x7FFF) >> mantissa;
    int steps = bits & ((1 << mantissa) - 1), bias = top >> 1;
    double size = ldexp(exponent ? steps + (1 << mantissa) : steps,
                        (exponent ? exponent : 1) - bias - mantissa);
    if (exponent == top) size = steps ? (double)NAN : (double)INFINITY;
    return bits & 0x8000 ? -size : size;
}

cell fuzz_load(at_dtype dtype, const void *place)
{
    uint64_t bits = 0;
    float single;
    cell c = {.u = 0};
    int size = (int)at_dtype_size(dtype);
    memcpy(&bits, place, (size_t)size); /* little-endian, as all that is tested here */
    switch (dtype) {
    case AT_FLOAT16: c.d = half((uint16_t)bits, 10); break;
    case AT_BFLOAT16: c.d = half((uint16_t)bits, 7); break;
    case AT_FLOAT32:
        memcpy(&single, place, sizeof single);
        c.d = (double)single;
        break;
    case AT_FLOAT64: memcpy(&c.d, place, sizeof c.d); break;
    default:
        c.u = bits;
        if (fuzz_is_signed(dtype) && size < 8 && bits >> (8 * size - 1))
            c.u |= UINT64_MAX << (8 * size);
    }
    return c;
}

double fuzz_real(at_dtype dtype, cell value)
{
    if (fuzz_is_float(dtype)) return value.d;
    return fuzz_is_signed(dtype) ? (double)(int64_t)value.u : (double)value.u;
}

/* Bits of quarters / 4 in a float type, exactly: from those of a float by moving fields. */
static uint64_t float_bits(at_dtype dtype, int quarters)
{
    uint32_t f;
    uint64_t d;
    memcpy(&f, &(float){(float)quarters / 4}, 4);
    memcpy(&d, &(double){(double)quarters / 4}, 8);
    uint32_t sign = f >> 16 & 0x8000, exponent = f >> 23 & 0xFF;
    switch (dtype) {
    case AT_FLOAT16: return quarters ? sign | (exponent - 112) << 10 | (f >> 13 & 0x3FF) : 0;
    case AT_BFLOAT16: return f >> 16;
    case AT_FLOAT32: return f;
    default: return d;
    }
}

/* NaN, infinities, greatest, least denormal, -0, and a number of all mantissa bits. */
static uint64_t special_float(at_dtype dtype, int64_t which)
{
    int size = 8 * (int)at_dtype_size(dtype);
    int mantissa = dtype == AT_FLOAT16 ? 10 : dtype == AT_BFLOAT16 ? 7 : size == 32 ? 23 : 52;
    uint64_t sign = UINT64_C(1) << (size - 1), infinite = sign - (UINT64_C(1) << mantissa);
    uint64_t quiet = infinite | UINT64_C(1) << (mantissa - 1);
    const uint64_t table[] = {quiet, infinite, sign | infinite, infinite - 1, sign | (infinite - 1),
                              1,     sign,     sign | quiet,    infinite | 1, infinite / 2 - 1};
    return table[which % (int64_t)(sizeof table / sizeof *table)];
}

/* Ends of an integer dtype, and their neighbours. */
static uint64_t special_integer(at_dtype dtype, int64_t which)
{
    int size = 8 * (int)at_dtype_size(dtype);
    uint64_t most = UINT64_MAX >> (64 - size + (fuzz_is_signed(dtype) ? 1 : 0));
    uint64_t least = fuzz_is_signed(dtype) ? ~most : 0;
    const uint64_t table[] = {most, least, most - 1, least + 1, UINT64_MAX, 0};
    return table[which % (int64_t)(sizeof table / sizeof *table)];
}

typedef enum taste { SMALL, SPICED, RARELY_SPICED, RAW, BROAD, OFFSET, TASTES } taste;

static uint64_t special(at_dtype dtype, cursor *c)
{
    int64_t which = fuzz_below(c, 60);
    return fuzz_is_float(dtype) ? special_float(dtype, which) : special_integer(dtype, which);
}

static uint64_t number(at_dtype dtype, int quarters)
{
    return fuzz_is_float(dtype) ? float_bits(dtype, quarters) : (uint64_t)(int64_t)quarters;
}

/* Bits of one element. */
static uint64_t element(at_dtype dtype, taste t, cursor *c)
{
    uint64_t bits = fuzz_bits(c);
    int small = (int)(bits % 64) - (fuzz_is_float(dtype) || fuzz_is_signed(dtype) ? 32 : 0);
    if (dtype == AT_BOOL) return bits >> 3 & 1;
    if (t == SPICED && bits >> 8 & 1 && bits >> 9 & 1) return special(dtype, c);
    if (t == RARELY_SPICED && (bits >> 20) % 4096 == 0) return special(dtype, c);
    if (t == RAW) return bits ^ bits << 24;
    if (t == BROAD && !fuzz_is_float(dtype)) return bits >> (bits % 61);
    if (t == BROAD) return number(dtype, (int)(bits >> 7 & 0x3F) << (bits % 7));
    return number(dtype, t == OFFSET ? 100 + small / 2 : small);
}

/* --- memory ------------------------------------------------------------------------------------------ */

int64_t fuzz_count(const strided *s)
{
    int64_t count = 1;
    for (int k = 0; k < s->ndim; k++) count *= s->dim[k];
    return count;
}

static char *place_of(const strided *s, int64_t index)
{
    char *p = s->first;
    for (int k = s->ndim; k-- > 0; index /= s->dim[k]) p += index % s->dim[k] * s->stride[k];
    return p;
}

/* The stride of one axis, given the bytes of what lies within it. */
static int64_t stride_of(cursor *c, int64_t step)
{
    switch (fuzz_choice(c, 8)) {
    case 0: return 0;
    case 1: return -step;
    case 2: return step + 1 + fuzz_choice(c, 9); /* gaps, and misaligned elements */
    case 3: return -step - 3;
    case 4: return 1; /* elements overlap byte by byte */
    default: return step;
    }
}

/* Sets strides and gets memory for a shape. */
static void lay_out(cursor *c, strided *s)
{
    int64_t size = (int64_t)at_dtype_size(s->dtype), low = 0, high = size, step = size;
    int64_t style = fuzz_choice(c, 4), offset = fuzz_choice(c, 3) == 0 ? 1 : 0;
    for (int i = s->ndim; i-- > 0;) {
        int k = style == 1 ? s->ndim - 1 - i : i; /* 1: column-major */
        s->stride[k] = style >= 2 ? stride_of(c, step) : step;
        int64_t reach = s->stride[k] * (s->dim[k] > 0 ? s->dim[k] - 1 : 0);
        if (reach < 0) low += reach;
        if (reach > 0) high += reach;
        step *= s->dim[k];
        if (step == 0) step = size;
    }
    s->block = fuzz_get(fuzz_count(s) > 0 ? high - low + offset : 0, 1);
    s->first = s->block + (fuzz_count(s) > 0 ? offset - low : 0);
    if (fuzz_count(s) > 0) memset(s->block, 0, (size_t)(high - low + offset));
}

at_array fuzz_array(at_frame *f, const strided *s)
{
    return at_native_wrap(f, s->dtype, s->ndim, s->dim, s->stride, s->first, NULL, NULL);
}

static void fill_data(cursor *c, strided *s)
{
    taste t = (taste)fuzz_choice(c, TASTES);
    for (int64_t i = 0, count = fuzz_count(s); i < count; i++) {
        uint64_t bits = element(s->dtype, t, c);
        memcpy(place_of(s, i), &bits, at_dtype_size(s->dtype));
    }
}

static cell *read_back(const strided *s)
{
    int64_t count = fuzz_count(s);
    cell *values = fuzz_get(count, sizeof *values);
    for (int64_t i = 0; i < count; i++) values[i] = fuzz_load(s->dtype, place_of(s, i));
    return values;
}

/* --- ids --------------------------------------------------------------------------------------------- */

/* Ids near the borders of what is allowed. */
static uint64_t border(const problem *p, cursor *c)
{
    const uint64_t table[] = {0,
                              (uint64_t)p->n - 1,
                              (uint64_t)p->n,
                              UINT64_MAX,
                              (uint64_t)INT64_MIN,
                              INT64_MAX,
                              (uint64_t)p->n + 1,
                              UINT64_MAX - 1,
                              UINT64_C(1) << 32,
                              UINT64_C(1) << 8,
                              UINT64_C(1) << 16};
    return table[fuzz_below(c, sizeof table / sizeof *table)];
}

typedef enum habit { ANY, WITHIN, ASCENDING, ALONE, BORDERS, SKEWED, HABITS } habit;

static uint64_t one_id(const problem *p, habit h, int64_t row, cursor *c)
{
    int64_t segments = p->n < FUZZ_MOST ? p->n : FUZZ_MOST, any = fuzz_below(c, segments + 3) - 1;
    switch (h) {
    case ANY: return fuzz_bits(c) % 16 ? (uint64_t)any : border(p, c);
    case WITHIN: return (uint64_t)fuzz_below(c, segments);
    case ASCENDING: return (uint64_t)((double)row / (double)p->rows * (double)(segments + 2)) - 1;
    case ALONE: return (uint64_t)(fuzz_bits(c) % 97 ? segments / 2 : any);
    case SKEWED: return (uint64_t)(any >> fuzz_bits(c) % 19);
    default: return border(p, c);
    }
}

static void fill_ids(problem *p, cursor *c)
{
    habit h = (habit)fuzz_choice(c, HABITS);
    for (int64_t e = 0; e < p->rows; e++) {
        uint64_t bits = one_id(p, h, e, c);
        memcpy(place_of(&p->ids, e), &bits, at_dtype_size(p->ids.dtype));
    }
    p->raw_id = read_back(&p->ids);
    p->id = fuzz_get(p->rows, sizeof *p->id);
    /* Sign-extended: a negative id is above every n as unsigned. */
    for (int64_t e = 0; e < p->rows; e++)
        p->id[e] = p->raw_id[e].u < (uint64_t)p->n ? (int64_t)p->raw_id[e].u : -1;
}

/* --- problems ---------------------------------------------------------------------------------------- */

/* Mostly a few rows, so that a fuzzer is fast; over 1,024, where long segments begin; and many, for which two bytes
 * must agree, since fuzzers are fond of 255. */
static int64_t pick_rows(cursor *c, int64_t *most)
{
    int64_t size = fuzz_choice(c, 256);
    bool many = size >= 252 && (fuzz_choice(c, 256) ^ 0x5A) * 37 % 256 == 85;
    *most = size < 248 ? 512 : many ? FUZZ_MOST : 2048;
    if (many) return (FUZZ_MOST >> (256 - size)) + fuzz_choice(c, 17) - 8;
    if (size >= 248) return size * 6;
    return size < 220 ? size % 20 : size;
}

static void pick_shape(problem *p, cursor *c)
{
    static const int64_t widths[] = {1, 1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 33, 64, 0};
    int64_t most;
    p->rows = p->x.dim[0] = pick_rows(c, &most);
    p->x.ndim = 1 + (int)fuzz_choice(c, FUZZ_AXES);
    p->width = 1;
    for (int k = 1; k < p->x.ndim; k++) {
        int64_t room = most / ((p->rows + 1) * p->width + 1), width = widths[fuzz_choice(c, 16)];
        if (width == 64 && room >= 300) width = 300;
        p->x.dim[k] = width < room ? width : room > 0 ? 1 : 0;
        p->width *= p->x.dim[k];
    }
}

static int64_t pick_n(const problem *p, cursor *c)
{
    static const int64_t huge[] = {INT64_MAX, INT64_MAX - 1, INT64_MAX / 8, INT64_C(1) << 60,
                                   INT64_C(1) << 61};
    int64_t most = FUZZ_MOST / (p->width + 1);
    switch (fuzz_choice(c, 16)) {
    case 0: return 0;
    case 1: return 1;
    case 2: return huge[fuzz_choice(c, 5)];
    case 3: return p->rows < most ? p->rows : most;
    case 4: return most < 70000 ? most : 70000;
    case 5: return most < 130 ? most : 127 + fuzz_choice(c, 3);
    case 6: return most < 258 ? most : 255 + fuzz_choice(c, 3);
    default: return most < 1 ? 0 : 1 + fuzz_below(c, most < p->rows / 2 ? most : p->rows / 2);
    }
}

static void pick_data(problem *p, cursor *c)
{
    p->x.dtype = (at_dtype)(AT_BOOL + fuzz_choice(c, AT_OTHER - AT_BOOL));
    pick_shape(p, c);
}

static void make_data(problem *p, cursor *c)
{
    lay_out(c, &p->x);
    fill_data(c, &p->x);
    p->value = read_back(&p->x);
}

void fuzz_segments(problem *p, const uint8_t *bytes, size_t size, cursor *rest)
{
    cursor *c = rest;
    *p = (problem){.rows = 0};
    *c = fuzz_cursor(bytes, size);
    p->flags = fuzz_choice(c, 4) == 0 ? AT_GENERIC : 0;
    pick_data(p, c);
    p->ids.dtype = (at_dtype)(AT_INT8 + fuzz_choice(c, 8));
    p->ids.ndim = 1;
    p->ids.dim[0] = p->rows;
    p->n = pick_n(p, c);
    lay_out(c, &p->ids);
    fill_ids(p, c);
    make_data(p, c);
}

/* Lengths of runs that make up the rows, more or less. */
static void fill_lengths(problem *p, cursor *c)
{
    int64_t left = p->rows, even = p->n > 0 ? p->rows / p->n : 0;
    habit h = (habit)fuzz_choice(c, HABITS);
    for (int64_t k = 0; k < p->n; k++) {
        int64_t length = fuzz_below(c, 2 * even + 2);
        if (length > left || (k == p->n - 1 && h != ANY)) length = left;
        uint64_t bits = h == BORDERS ? border(p, c) : (uint64_t)length;
        left -= length;
        memcpy(place_of(&p->ids, k), &bits, at_dtype_size(p->ids.dtype));
    }
}

void fuzz_partitions(problem *p, const uint8_t *bytes, size_t size)
{
    cursor c = fuzz_cursor(bytes, size);
    *p = (problem){.rows = 0};
    p->flags = fuzz_choice(&c, 4) == 0 ? AT_GENERIC : 0;
    pick_data(p, &c);
    p->ids.dtype = (at_dtype)(AT_INT8 + fuzz_choice(&c, 8));
    p->ids.ndim = 1;
    p->n = p->ids.dim[0] = fuzz_choice(&c, 3) ? fuzz_choice(&c, 24) : fuzz_below(&c, p->rows + 1);
    lay_out(&c, &p->ids);
    fill_lengths(p, &c);
    p->raw_id = read_back(&p->ids);
    make_data(p, &c);
    const int64_t wrong[] = {p->rows + 1, p->rows - 1, p->rows + 1000, INT64_MAX, INT64_MIN + 1};
    int64_t by = fuzz_choice(&c, 10);
    p->total = AT_DIM(by >= 1 && by < 6 ? wrong[by - 1] : p->rows);
}

void fuzz_free(problem *p)
{
    free(p->x.block);
    free(p->ids.block);
    free(p->value);
    free(p->raw_id);
    free(p->id);
}

/* --- the same again, in another order ------------------------------------------------------------------- */

static int64_t *in_order(const problem *p)
{
    int64_t *row = fuzz_get(p->rows, sizeof *row);
    for (int64_t e = 0; e < p->rows; e++) row[e] = e;
    return row;
}

int64_t *fuzz_shuffled(const problem *p, cursor *c)
{
    int64_t *row = in_order(p);
    for (int64_t e = p->rows; e > 1; e--) {
        int64_t other = fuzz_below(c, e), kept = row[e - 1];
        row[e - 1] = row[other];
        row[other] = kept;
    }
    return row;
}

int64_t *fuzz_kept(const problem *p, int64_t *rows)
{
    int64_t *row = fuzz_get(p->rows, sizeof *row), count = 0;
    for (int64_t e = 0; e < p->rows; e++)
        if (p->id[e] >= 0) row[count++] = e;
    *rows = count;
    return row;
}

typedef struct keyed {
    uint64_t key; /* orders like the id itself */
    int64_t row;
} keyed;

static int by_key(const void *a, const void *b)
{
    const keyed *x = a, *y = b;
    if (x->key != y->key) return x->key < y->key ? -1 : 1;
    return x->row < y->row ? -1 : 1;
}

static uint64_t key_of(const problem *p, int64_t row)
{
    return p->raw_id[row].u ^ (fuzz_is_signed(p->ids.dtype) ? UINT64_C(1) << 63 : 0);
}

int64_t *fuzz_by_id(const problem *p)
{
    int64_t *row = in_order(p);
    keyed *all = fuzz_get(p->rows, sizeof *all);
    for (int64_t e = 0; e < p->rows; e++) all[e] = (keyed){key_of(p, e), e};
    qsort(all, (size_t)p->rows, sizeof *all, by_key);
    for (int64_t e = 0; e < p->rows; e++) row[e] = all[e].row;
    free(all);
    return row;
}

bool fuzz_ids_ascend(const problem *p)
{
    for (int64_t e = 1; e < p->rows; e++)
        if (key_of(p, e) < key_of(p, e - 1)) return false;
    return true;
}

/* Row-major memory of the shape of another, but for the first axis. */
static strided compact(const strided *like, int64_t rows)
{
    strided s = {.dtype = like->dtype, .ndim = like->ndim};
    int64_t step = (int64_t)at_dtype_size(s.dtype);
    for (int k = s.ndim; k-- > 0; step *= s.dim[k]) {
        s.dim[k] = k == 0 ? rows : like->dim[k];
        s.stride[k] = step;
    }
    s.block = s.first = fuzz_get(step, 1);
    return s;
}

selection fuzz_select(const problem *p, int64_t rows, int64_t *row)
{
    selection s = {compact(&p->x, rows), compact(&p->ids, rows), rows, row};
    size_t size = at_dtype_size(p->x.dtype), id_size = at_dtype_size(p->ids.dtype);
    for (int64_t e = 0; e < rows; e++) {
        memcpy(s.ids.first + e * (int64_t)id_size, place_of(&p->ids, row[e]), id_size);
        for (int64_t k = 0; k < p->width; k++)
            memcpy(s.x.first + (e * p->width + k) * (int64_t)size,
                   place_of(&p->x, row[e] * p->width + k), size);
    }
    return s;
}

void fuzz_unselect(selection *s)
{
    free(s->x.block);
    free(s->ids.block);
    free(s->row);
}

/* --- calls ------------------------------------------------------------------------------------------- */

static void *bounded_get(void *user, size_t size)
{
    (void)user;
    return size > (size_t)1 << 28 ? NULL : aligned_alloc(64, (size + 63) / 64 * 64);
}

static void bounded_put(void *user, void *block, size_t size)
{
    (void)user;
    (void)size;
    free(block);
}

at_frame *fuzz_open(session *s, unsigned flags)
{
    static const at_allocator bounded = {bounded_get, bounded_put, NULL};
    at_context_init(&s->cx, at_native());
    s->cx.flags = flags;
    s->cx.alloc = &bounded;
    return at_open(&s->root, &s->cx);
}

void fuzz_close(session *s) { at_close(&s->root); }

/* A block of terabytes is refused in every build, not reported. */
__attribute__((visibility("default"))) const char *__asan_default_options(void);
__attribute__((visibility("default"))) const char *__tsan_default_options(void);
const char *__asan_default_options(void) { return "allocator_may_return_null=1"; }
const char *__tsan_default_options(void) { return "allocator_may_return_null=1"; }
