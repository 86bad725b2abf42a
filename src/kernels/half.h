/* float16 and bfloat16 as bit patterns: exact to float, back with rounding to nearest, ties to even.
 *
 * Plain integer arithmetic, so that it works on any machine; no branch depends on more than a comparison,
 * which lets gcc turn loops over it into vector code. A double goes to float by rounding to odd first: the
 * second rounding then gives what one rounding would have given. */
#ifndef ATI_HALF_H
#define ATI_HALF_H

#include <stdint.h>
#include <string.h>

static inline uint32_t ati_bits_of(float v)
{
    uint32_t bits;
    memcpy(&bits, &v, sizeof bits);
    return bits;
}

static inline float ati_float_of(uint32_t bits)
{
    float v;
    memcpy(&v, &bits, sizeof v);
    return v;
}

static inline float ati_float16_decode(uint16_t h)
{
    const uint32_t top = UINT32_C(0x7c00) << 13;
    uint32_t bits = (h & UINT32_C(0x7fff)) << 13;
    uint32_t sign = (h & UINT32_C(0x8000)) << 16;
    uint32_t exponent = bits & top;
    bits += UINT32_C(112) << 23; /* from bias 15 to bias 127 */
    bits += exponent == top ? UINT32_C(112) << 23 : 0; /* infinity, NaN */
    /* Subnormal: with the exponent of 2^-14 put in, subtracting 2^-14 normalises it. */
    float small = ati_float_of(bits + (UINT32_C(1) << 23)) - ati_float_of(UINT32_C(113) << 23);
    return ati_float_of(sign | (exponent == 0 ? ati_bits_of(small) : bits));
}

static inline uint16_t ati_float16_encode(float v)
{
    uint32_t bits = ati_bits_of(v), magnitude = bits & UINT32_C(0x7fffffff);
    uint32_t sign = (bits >> 16) & UINT32_C(0x8000);
    uint32_t odd = (magnitude >> 13) & 1;
    uint32_t normal = (magnitude - (UINT32_C(112) << 23) + UINT32_C(0xfff) + odd) >> 13;
    /* Below 2^-14: one unit of 0.5 + x is 2^-24, the unit of float16's subnormals. */
    uint32_t small = ati_bits_of(ati_float_of(magnitude) + 0.5f) - ati_bits_of(0.5f);
    uint32_t nan = UINT32_C(0x7e00) | ((magnitude >> 13) & UINT32_C(0x3ff));
    uint32_t h = magnitude < UINT32_C(0x38800000) ? small : normal;
    h = magnitude >= UINT32_C(0x47800000) ? UINT32_C(0x7c00) : h; /* 2^16 and more */
    h = magnitude > UINT32_C(0x7f800000) ? nan : h;
    return (uint16_t)(sign | h);
}

static inline float ati_bfloat16_decode(uint16_t h) { return ati_float_of((uint32_t)h << 16); }

static inline uint16_t ati_bfloat16_encode(float v)
{
    uint32_t bits = ati_bits_of(v), odd = (bits >> 16) & 1;
    uint32_t rounded = (bits + UINT32_C(0x7fff) + odd) >> 16;
    uint32_t nan = (bits >> 16) | UINT32_C(0x40); /* quiet, and never cut down to infinity */
    return (uint16_t)((bits & UINT32_C(0x7fffffff)) > UINT32_C(0x7f800000) ? nan : rounded);
}

/* Rounds to odd: towards zero, with the last bit set where anything was lost. */
static inline float ati_float_odd(double v)
{
    float near = (float)v;
    double back = (double)near;
    uint32_t bits = ati_bits_of(near);
    if (back == v || v != v)
        return near;
    bits -= (back < 0 ? -back : back) > (v < 0 ? -v : v);
    return ati_float_of(bits | 1);
}

#endif
