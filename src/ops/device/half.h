// The two 16-bit floats, identical on both sides: bits, with conversions from and to float that round to nearest, ties
// to even. Arithmetic uses float.
#pragma once
#include <cstdint>
#include <cstring>

#if defined(__CUDACC__)
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#define AB_HD __host__ __device__
#else
#define AB_HD
#endif

// Before a loop that waits for memory, so that several loads are in flight.
#if defined(__CUDA_ARCH__)
#define AB_UNROLL _Pragma("unroll 4")
#else
#define AB_UNROLL
#endif

namespace anabranch::device {

AB_HD inline uint32_t bits_of(float x) {
  uint32_t bits;
  memcpy(&bits, &x, sizeof bits);
  return bits;
}

AB_HD inline float float_of(uint32_t bits) {
  float x;
  memcpy(&x, &bits, sizeof x);
  return x;
}

AB_HD inline float half_to_float(uint16_t h) {
#if defined(__CUDA_ARCH__)
  return __half2float(__ushort_as_half(h));
#else
  const uint32_t sign = uint32_t{h & 0x8000u} << 16, exponent = (h >> 10) & 0x1fu, mantissa = h & 0x3ffu;
  if (exponent == 0x1f) return float_of(sign | 0x7f800000u | (mantissa << 13));
  if (exponent) return float_of(sign | ((exponent + 112) << 23) | (mantissa << 13));
  const float tiny = static_cast<float>(mantissa) * 0x1p-24f;  // exact: a subnormal half
  return sign ? -tiny : tiny;
#endif
}

AB_HD inline uint16_t float_to_half(float x) {
#if defined(__CUDA_ARCH__)
  return __half_as_ushort(__float2half_rn(x));
#else
  const uint32_t bits = bits_of(x), sign = (bits >> 16) & 0x8000u, size = bits & 0x7fffffffu;
  if (size > 0x7f800000u) return static_cast<uint16_t>(sign | 0x7fffu);   // NaN
  if (size >= 0x477ff000u) return static_cast<uint16_t>(sign | 0x7c00u);  // 65520 and above round to infinity
  if (size < 0x38800000u) {  // subnormal halves: the last bit of the sum is worth 2^-24, so the addition rounds
    const float shifted = float_of(size) + 0.5f;
    return static_cast<uint16_t>(sign | (bits_of(shifted) - 0x3f000000u));
  }
  const uint32_t odd = (size >> 13) & 1u;
  return static_cast<uint16_t>(sign | ((size - 0x38000000u + 0xfffu + odd) >> 13));
#endif
}

AB_HD inline uint16_t float_to_bfloat16(float x) {
#if defined(__CUDA_ARCH__)
  return __bfloat16_as_ushort(__float2bfloat16_rn(x));  // one instruction; a NaN loses its bits
#else
  const uint32_t bits = bits_of(x);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return static_cast<uint16_t>((bits >> 16) | 0x40u);  // stays a NaN
  return static_cast<uint16_t>((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
#endif
}

struct half {
  uint16_t bits;
  half() = default;
  AB_HD explicit half(float x) : bits(float_to_half(x)) {}
  AB_HD explicit operator float() const { return half_to_float(bits); }
};

struct bfloat16 {
  uint16_t bits;
  bfloat16() = default;
  AB_HD explicit bfloat16(float x) : bits(float_to_bfloat16(x)) {}
  AB_HD explicit operator float() const { return float_of(uint32_t{bits} << 16); }
};

static_assert(sizeof(half) == 2 && sizeof(bfloat16) == 2);

}  // namespace anabranch::device
