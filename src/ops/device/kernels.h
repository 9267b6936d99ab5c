// How to write a device kernel, once for both builds: a struct with
//   using Args = MapArgs;                                                 one of args.h
//   template <class T> static int run(const Launch& launch, const Args& a);     makes a body and passes it to each() or
//                                                                        rows(), any number of times, in order
//   template <class T> static size_t room(const Args& a);                 bytes of workspace; optional
// and, in the same .cu, AB_KERNEL("map/sigmoid", Map<Sigmoid>, float, double, half): "map/sigmoid/f32" and so on. For
// kernels of two types: Types<float, int64_t> in the list, "cast/f32/i64", and run<A, B>.
// A body is a named struct of plain pointers and numbers (run() calls DevicePtr::get()) with
//   AB_HD void operator()(int64_t i) const                                 for each()
//   template <class L> AB_HD void operator()(const L& lanes, int64_t row) const   for rows()
// run() is called when the kernel is launched on a GPU, and when the queue reaches it on the simulated device: it reads
// args, never the contents of operands.
#pragma once
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <list>
#include <string>

#include "device/plugin_api.h"
#include "ops/device/args.h"
#include "ops/device/lanes.h"
#include "ops/device/launch_size.h"

#if defined(AB_HOST_KERNELS)
#include "ops/device/host_lanes.h"
#endif

namespace anabranch::device {

struct Launch {
#if defined(__CUDACC__)
  cudaStream_t stream;
#endif
  DeviceOut workspace;
#if defined(AB_HOST_KERNELS)
  HostRun* host = nullptr;  // null: one lane per row, all in order
#endif
};

template <class... T> struct Types {};

}  // namespace anabranch::device

// The target of an ab_kernel. run returns 0 or the cudaError_t; host kernels throw.
struct ab_kernel_entry {
  std::string key;
  size_t args_size = 0;
  int (*run)(const anabranch::device::Launch& launch, const void* args) = nullptr;
  size_t (*room)(const void* args) = nullptr;  // null: none
  const ab_kernel_entry* next = nullptr;
};

namespace anabranch::device {

inline const ab_kernel_entry* first_kernel = nullptr;  // of all kernels that this plug-in was linked with

inline ab_kernel find_kernel(const char* key) {
  for (ab_kernel k = first_kernel; k; k = k->next) {
    if (k->key == key) return k;
  }
  return nullptr;
}

template <class K, class... T> void add_kernel(const char* stem, Types<T...>) {
  using Args = typename K::Args;
  static_assert(is_plain_args<Args>);
  static auto& entries = *new std::list<ab_kernel_entry>();  // never destroyed: lookups last as long as the process
  ab_kernel_entry& entry = entries.emplace_back();
  entry.key = stem;
  ((entry.key += '/', entry.key += type_name<T>), ...);
  entry.args_size = sizeof(Args);
  entry.run = [](const Launch& launch, const void* args) {
    Args copy;  // the bytes from the C interface may be unaligned
    memcpy(&copy, args, sizeof copy);
    return K::template run<T...>(launch, copy);
  };
  if constexpr (requires(const Args& a) { K::template room<T...>(a); }) {
    entry.room = [](const void* args) -> size_t {
      Args copy;
      memcpy(&copy, args, sizeof copy);
      return K::template room<T...>(copy);
    };
  }
  entry.next = first_kernel;
  first_kernel = &entry;
}

template <class T> struct AsTypes { using type = Types<T>; };
template <class... T> struct AsTypes<Types<T...>> { using type = Types<T...>; };

template <class K, class... Each> bool add_kernels(const char* stem) {
  (add_kernel<K>(stem, typename AsTypes<Each>::type{}), ...);
  return true;
}

// AB_KERNEL(stem, kernel, types...). A kernel whose name contains a comma needs an alias.
#define AB_KERNEL_NAME_(a, b) a##b
#define AB_KERNEL_NAME(a, b) AB_KERNEL_NAME_(a, b)
#define AB_KERNEL(stem, ...)                                                         \
  [[maybe_unused]] static const bool AB_KERNEL_NAME(ab_kernel_added_, __COUNTER__) = \
      ::anabranch::device::add_kernels<__VA_ARGS__>(stem)

// Whether few lanes suffice for a row: for short rows, and for longer ones if there are enough rows for all lanes.
inline bool by_warps(int64_t n, int64_t width) { return width <= 512 || (width <= 1024 && n >= 4096); }

#if defined(__CUDACC__)

template <class Body> __global__ void each_kernel(int64_t n, Body body) {
  const int64_t step = int64_t{gridDim.x} * blockDim.x;
  for (int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < n; i += step) body(i);
}

template <class Body> __global__ void warp_rows_kernel(int64_t n, Body body) {
  const int64_t step = int64_t{gridDim.x} * (blockDim.x / 32);
  const WarpLanes lanes;
  for (int64_t row = (int64_t{blockIdx.x} * blockDim.x + threadIdx.x) / 32; row < n; row += step) body(lanes, row);
}

template <class Body> __global__ void block_rows_kernel(int64_t n, Body body) {
  const BlockLanes lanes;
  for (int64_t row = blockIdx.x; row < n; row += gridDim.x) body(lanes, row);
}

// body(i) for each i of [0, n), in any order and concurrently.
template <class Body> int each(const Launch& launch, int64_t n, const Body& body) {
  if (n <= 0) return 0;
  each_kernel<<<blocks_of(n), kBlock, 0, launch.stream>>>(n, body);
  return static_cast<int>(cudaGetLastError());
}

// body(lanes, row) for each row of [0, n), in any order and concurrently. `width`: the elements of a row, which decides
// whether it has 32 or 256 lanes.
template <class Body> int rows(const Launch& launch, int64_t n, int64_t width, const Body& body) {
  if (n <= 0) return 0;
  if (by_warps(n, width)) {
    warp_rows_kernel<<<blocks_for((n + kBlock / 32 - 1) / (kBlock / 32)), kBlock, 0, launch.stream>>>(n, body);
  } else {
    block_rows_kernel<<<blocks_for(n), kBlock, 0, launch.stream>>>(n, body);
  }
  return static_cast<int>(cudaGetLastError());
}

#elif defined(AB_HOST_KERNELS)

template <class Body> int each(const Launch& launch, int64_t n, const Body& body) {
  if (n > 0) each_element(launch.host, n, &body, [](const void* of, int64_t i) { (*static_cast<const Body*>(of))(i); });
  return 0;
}

template <class Body> int rows(const Launch& launch, int64_t n, int64_t width, const Body& body) {
  const HostRun::Row one = [](const void* of, const HostLanes& lanes, int64_t row) {
    (*static_cast<const Body*>(of))(lanes, row);
  };
  if (launch.host) {
    launch.host->rows(n, by_warps(n, width) ? 32 : 256, &body, one);
  } else {
    for (int64_t row = 0; row < n; ++row) one(&body, HostLanes(), row);
  }
  return 0;
}

#endif

}  // namespace anabranch::device
