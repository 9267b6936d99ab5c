// The lanes that share a row: 32 or 256 threads of a GPU, one on the host. A row's loop is
//   for (int64_t i = lanes.index(); i < width; i += lanes.count())
// and sum, max, min, any or scan combine the results. All lanes of the row must call these the same number of times,
// and all get the result. The order of a sum depends only on the number of lanes.
#pragma once
#include <cstdint>

#include "ops/device/half.h"

namespace anabranch::device {

struct AddOf {
  template <class T> AB_HD T operator()(T a, T b) const { return a + b; }
};
struct MaxOf {  // propagates NaN from both sides
  template <class T> AB_HD T operator()(T a, T b) const { return a != a || a > b ? a : b; }
};
struct MinOf {
  template <class T> AB_HD T operator()(T a, T b) const { return a != a || a < b ? a : b; }
};

struct OneLane {
  AB_HD int64_t index() const { return 0; }
  AB_HD int64_t count() const { return 1; }
  template <class T, class Op> AB_HD T fold(T x, Op) const { return x; }
  template <class T> AB_HD T sum(T x) const { return x; }
  template <class T> AB_HD T max(T x) const { return x; }
  template <class T> AB_HD T min(T x) const { return x; }
  AB_HD bool any(bool x) const { return x; }
  // The sum of x of the lanes before this one; *total: of all.
  template <class T> AB_HD T scan(T x, T* total) const {
    *total = x;
    return T{};
  }
  AB_HD void sync() const {}  // memory written by lanes before the call is visible to all after it
};

#if defined(__CUDACC__)

inline constexpr unsigned kAllLanes = 0xffffffffu;

struct WarpLanes {
  __device__ int64_t index() const { return threadIdx.x % 32; }
  __device__ int64_t count() const { return 32; }
  template <class T, class Op> __device__ T fold(T x, Op op) const {
    for (int apart = 16; apart; apart /= 2) x = op(x, __shfl_xor_sync(kAllLanes, x, apart));
    return __shfl_sync(kAllLanes, x, 0);  // lanes may have combined NaNs and zeros in different orders
  }
  template <class T> __device__ T sum(T x) const { return fold(x, AddOf{}); }
  template <class T> __device__ T max(T x) const { return fold(x, MaxOf{}); }
  template <class T> __device__ T min(T x) const { return fold(x, MinOf{}); }
  __device__ bool any(bool x) const { return __any_sync(kAllLanes, x); }
  template <class T> __device__ T scan(T x, T* total) const {
    T upto = x;
    for (int apart = 1; apart < 32; apart *= 2) {
      const T before = __shfl_up_sync(kAllLanes, upto, apart);
      if (index() >= apart) upto = before + upto;
    }
    *total = __shfl_sync(kAllLanes, upto, 31);
    const T before = __shfl_up_sync(kAllLanes, upto, 1);
    return index() ? before : T{};
  }
  __device__ void sync() const { __syncwarp(); }
};

struct BlockLanes {  // of the whole block; its number of threads is a multiple of 32
  __device__ int64_t index() const { return threadIdx.x; }
  __device__ int64_t count() const { return blockDim.x; }
  template <class T, class Op> __device__ T fold(T x, Op op) const {
    __shared__ T parts[32];
    x = WarpLanes{}.fold(x, op);
    __syncthreads();  // the parts of the previous call have been read
    if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = x;
    __syncthreads();
    x = parts[0];
    for (unsigned warp = 1; warp < blockDim.x / 32; ++warp) x = op(x, parts[warp]);
    return x;
  }
  template <class T> __device__ T sum(T x) const { return fold(x, AddOf{}); }
  template <class T> __device__ T max(T x) const { return fold(x, MaxOf{}); }
  template <class T> __device__ T min(T x) const { return fold(x, MinOf{}); }
  __device__ bool any(bool x) const { return __syncthreads_or(x); }
  template <class T> __device__ T scan(T x, T* total) const {
    __shared__ T parts[32];
    T of_warp;
    const T before = WarpLanes{}.scan(x, &of_warp);
    __syncthreads();
    if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = of_warp;
    __syncthreads();
    T sum{}, warps_before{};
    for (unsigned warp = 0; warp < blockDim.x / 32; ++warp) {
      if (warp == threadIdx.x / 32) warps_before = sum;
      sum = sum + parts[warp];
    }
    *total = sum;
    return warps_before + before;
  }
  __device__ void sync() const { __syncthreads(); }
};

#endif

}  // namespace anabranch::device
