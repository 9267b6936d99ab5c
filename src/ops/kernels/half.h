// Storage-only float16: conversion from float32, truncating like 1.8.5, and back.
#pragma once
#include <bit>
#include <cstdint>

#include "core/dtype.h"

namespace anabranch {

inline float from_half(float16 half) {
  const uint32_t sign = uint32_t{half.bits & 0x8000u} << 16, exponent = (half.bits >> 10) & 0x1f,
                 fraction = half.bits & 0x3ff;
  if (exponent == 0x1f) return std::bit_cast<float>(sign | 0x7f800000u | fraction << 13);  // infinity or NaN
  if (exponent != 0) return std::bit_cast<float>(sign | (exponent + 112) << 23 | fraction << 13);
  const float small = static_cast<float>(fraction) * 0x1p-24f;
  return sign != 0 ? -small : small;
}

inline float16 to_half(float x) {
  const uint32_t bits = std::bit_cast<uint32_t>(x), sign = bits >> 16 & 0x8000u, magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u) return {static_cast<uint16_t>(sign | 0x7e00u | (magnitude >> 13 & 0x3ffu))};
  if (magnitude > 0x477fe000u) return {static_cast<uint16_t>(sign | 0x7c00u)};  // above 65504: infinity
  if (magnitude < 0x38800000u) {  // below 2^-14 halves are multiples of 2^-24
    return {static_cast<uint16_t>(sign | static_cast<uint32_t>(std::bit_cast<float>(magnitude) * 0x1p24f))};
  }
  return {static_cast<uint16_t>(sign | (magnitude - 0x38000000u) >> 13)};
}

}  // namespace anabranch
