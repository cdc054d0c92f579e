/* tests/gpu/emulate/cuda_bf16.h - bfloat16 for the emulation. */
#ifndef EMULATE_CUDA_BF16_H
#define EMULATE_CUDA_BF16_H

#include <stdint.h>
#include <string.h>

struct __nv_bfloat16 {
    uint16_t bits;
};
struct __nv_bfloat162 {
    __nv_bfloat16 x, y;
};

static inline float __bfloat162float(__nv_bfloat16 value)
{
    const uint32_t bits = (uint32_t)value.bits << 16;
    float result;
    memcpy(&result, &bits, sizeof result);
    return result;
}

static inline __nv_bfloat16 __float2bfloat16(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    if ((bits & 0x7fffffffu) > 0x7f800000u)
        return __nv_bfloat16{0x7fff};
    return __nv_bfloat16{(uint16_t)((bits + 0x7fffu + (bits >> 16 & 1)) >> 16)};
}

static inline __nv_bfloat162 __floats2bfloat162_rn(float x, float y)
{
    return __nv_bfloat162{__float2bfloat16(x), __float2bfloat16(y)};
}

#endif
