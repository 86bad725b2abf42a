/* float16 and bfloat16 as bit patterns: exact to float, back with rounding to nearest, ties to even.
 *
 * Plain integer arithmetic, so that it works on any machine, and choices by masks instead of branches, so that
 * gcc turns loops over it into vector code. A double goes to float by rounding to odd first: the
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

/* yes where the condition holds, else no. */
static inline uint32_t ati_choose(int condition, uint32_t yes, uint32_t no)
{
    uint32_t mask = 0 - (uint32_t)condition;
    return (yes & mask) | (no & ~mask);
}

static inline float ati_float16_decode(uint16_t h)
{
    const uint32_t rebias = UINT32_C(112) << 23; /* from bias 15 to bias 127 */
    uint32_t magnitude = h & UINT32_C(0x7fff), sign = (h & UINT32_C(0x8000)) << 16;
    uint32_t bits = (magnitude << 13) + rebias;
    /* Infinity and NaN; subnormals: with the exponent of 2^-14 put in, subtracting 2^-14 normalises. */
    bits += ati_choose(magnitude >= 0x7c00, rebias, 0);
    float small = ati_float_of(bits + (UINT32_C(1) << 23)) - ati_float_of(UINT32_C(113) << 23);
    return ati_float_of(sign | ati_choose(magnitude < 0x400, ati_bits_of(small), bits));
}

static inline uint16_t ati_float16_encode(float v)
{
    uint32_t bits = ati_bits_of(v), magnitude = bits & UINT32_C(0x7fffffff);
    uint32_t sign = (bits >> 16) & UINT32_C(0x8000), odd = (magnitude >> 13) & 1;
    uint32_t normal = (magnitude - (UINT32_C(112) << 23) + UINT32_C(0xfff) + odd) >> 13;
    /* Below 2^-14: one unit of 0.5 + x is 2^-24, the unit of float16's subnormals. */
    uint32_t small = ati_bits_of(ati_float_of(magnitude) + 0.5f) - ati_bits_of(0.5f);
    uint32_t nan = UINT32_C(0x7e00) | ((magnitude >> 13) & UINT32_C(0x3ff));
    uint32_t h = ati_choose(magnitude < UINT32_C(0x38800000), small, normal);
    h = ati_choose(magnitude >= UINT32_C(0x47800000), UINT32_C(0x7c00), h); /* 2^16 and more */
    h = ati_choose(magnitude > UINT32_C(0x7f800000), nan, h);
    return (uint16_t)(sign | h);
}

static inline float ati_bfloat16_decode(uint16_t h) { return ati_float_of((uint32_t)h << 16); }

static inline uint16_t ati_bfloat16_encode(float v)
{
    uint32_t bits = ati_bits_of(v), odd = (bits >> 16) & 1;
    uint32_t rounded = (bits + UINT32_C(0x7fff) + odd) >> 16;
    uint32_t nan = (bits >> 16) | UINT32_C(0x40); /* quiet, and never cut down to infinity */
    return (uint16_t)ati_choose((bits & UINT32_C(0x7fffffff)) > UINT32_C(0x7f800000), nan, rounded);
}

/* Rounds to odd: towards zero, with the last bit set where anything was lost. */
static inline float ati_float_odd(double v)
{
    float near = (float)v;
    double back = (double)near;
    uint32_t bits = ati_bits_of(near);
    bits -= (back < 0 ? -back : back) > (v < 0 ? -v : v);
    return ati_float_of(bits | (uint32_t)((back != v) & (v == v)));
}

#endif
