// Sorts lines of float32 by keys: integers that ascend in the requested order, each followed by its position, so that
// no numbers are compared and equal numbers keep their order.
#pragma once
#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <utility>
#include <vector>

namespace anabranch {

// Ascends like `before` of ops/tensor/ranked.h: -0 and 0 are equal, and NaN sorts after all numbers in both directions.
inline uint32_t sort_key(float v, bool descending) {
  if (v != v) return ~uint32_t{0};
  const auto bits = std::bit_cast<uint32_t>(v + 0.0f);  // -0 becomes 0
  const uint32_t rising = bits & 0x80000000u ? ~bits : bits | 0x80000000u;
  return descending ? ~rising : rising;
}

// Radix sort by the upper halves, byte by byte; equal ones keep their order.
inline void sort_by_bytes(std::vector<uint64_t>* numbers, std::vector<uint64_t>* scratch) {
  constexpr int kBytes = 4, kValues = 256, kLow = 32;
  std::array<std::array<size_t, kValues>, kBytes> starts{};
  const auto byte = [](uint64_t v, int b) { return static_cast<size_t>(v >> (kLow + 8 * b) & 0xff); };
  for (const uint64_t v : *numbers) {
    for (int b = 0; b < kBytes; ++b) ++starts[static_cast<size_t>(b)][byte(v, b)];
  }
  scratch->resize(numbers->size());
  for (int b = 0; b < kBytes; ++b) {
    auto& start = starts[static_cast<size_t>(b)];
    if (start[byte(numbers->front(), b)] == numbers->size()) continue;  // all share one byte
    size_t sum = 0;
    for (size_t& s : start) sum += std::exchange(s, sum);
    for (const uint64_t v : *numbers) (*scratch)[start[byte(v, b)]++] = v;
    numbers->swap(*scratch);
  }
}

// The positions (the lower halves) of n < 2^32 numbers that are `step` apart, in the requested order: in a buffer of
// the calling thread that only grows.
inline const std::vector<uint64_t>& sorted_places(const float* line, int64_t step, int64_t n, bool descending) {
  constexpr size_t kWorthBytes = 128;
  thread_local std::vector<uint64_t> numbers, scratch;
  numbers.resize(static_cast<size_t>(n));
  for (int64_t i = 0; i < n; ++i) {
    numbers[static_cast<size_t>(i)] = uint64_t{sort_key(line[i * step], descending)} << 32 | static_cast<uint64_t>(i);
  }
  if (numbers.size() < kWorthBytes) {
    std::sort(numbers.begin(), numbers.end());
  } else {
    sort_by_bytes(&numbers, &scratch);
  }
  return numbers;
}

}  // namespace anabranch
