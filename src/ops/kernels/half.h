// Storage-only float16: conversion from float32, which truncates like 1.8.5 where device::half rounds, and back.
#pragma once
#include <bit>
#include <cstdint>

#include "core/dtype.h"
#include "ops/device/half.h"

namespace anabranch {

inline float from_half(float16 half) { return device::half_to_float(half.bits); }

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
