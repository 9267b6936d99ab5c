// Stable sorting of keys with their positions, and running sums: CUB on a GPU, the standard library on the host. The
// room functions return the bytes of scratch memory that a call needs.
#pragma once
#include "ops/device/kernels.h"

#if defined(__CUDACC__)
#include <cub/device/device_radix_sort.cuh>
#include <cub/device/device_scan.cuh>
#elif defined(AB_HOST_KERNELS)
#include <algorithm>
#include <numeric>
#endif

namespace anabranch::device {

#if defined(__CUDACC__)

inline size_t sort_room(int64_t n, int bits) {
  size_t room = 0;
  cub::DeviceRadixSort::SortPairs<uint64_t, int32_t>(nullptr, room, nullptr, nullptr, nullptr, nullptr, n, 0, bits);
  return room;
}
// Sorts keys below 2^bits; `places` holds 0 to n - 1 and is sorted along.
inline int sort_keys(const Launch& launch, void* scratch, size_t room, const uint64_t* keys, uint64_t* sorted,
                     const int32_t* places, int32_t* order, int64_t n, int bits) {
  return static_cast<int>(
      cub::DeviceRadixSort::SortPairs(scratch, room, keys, sorted, places, order, n, 0, bits, launch.stream));
}

inline size_t running_sum_room(int64_t n) {
  size_t room = 0;
  cub::DeviceScan::InclusiveSum<int64_t*, int64_t*>(nullptr, room, nullptr, nullptr, n);
  return room;
}
inline int running_sum(const Launch& launch, void* scratch, size_t room, const int64_t* x, int64_t* y, int64_t n) {
  return static_cast<int>(cub::DeviceScan::InclusiveSum(scratch, room, x, y, n, launch.stream));
}

#elif defined(AB_HOST_KERNELS)

inline size_t sort_room(int64_t, int) { return 0; }
inline int sort_keys(const Launch&, void*, size_t, const uint64_t* keys, uint64_t* sorted, const int32_t* places,
                     int32_t* order, int64_t n, int) {
  std::copy(places, places + n, order);
  std::stable_sort(order, order + n, [keys](int32_t a, int32_t b) { return keys[a] < keys[b]; });
  for (int64_t i = 0; i < n; ++i) sorted[i] = keys[order[i]];
  return 0;
}

inline size_t running_sum_room(int64_t) { return 0; }
inline int running_sum(const Launch&, void*, size_t, const int64_t* x, int64_t* y, int64_t n) {
  std::partial_sum(x, x + n, y);
  return 0;
}

#endif

}  // namespace anabranch::device
