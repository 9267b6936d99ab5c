// Simulates the threads of a GPU on the host, for kernels.h: elements and rows run in an order chosen by a seed, and
// lanes stop at each call that all lanes of a row must make. The simulated device implements HostRun
// (plugins/simdevice/ lanes.h); without it a row has one lane and everything runs in order. A body is compiled once for
// both.
#pragma once
#include <algorithm>
#include <cstdint>
#include <numeric>
#include <source_location>
#include <type_traits>

#include "ops/device/lanes.h"
#include "ops/device/launch_size.h"

namespace anabranch::device {

// Every number of [0, n) once, by a stride that is coprime to n.
class Shuffle {
 public:
  explicit Shuffle(int64_t n) : n_(n) {}  // in order
  Shuffle(int64_t n, uint64_t seed) : n_(n) {
    if (n < 2) return;
    const auto most = static_cast<uint64_t>(n);
    first_ = static_cast<int64_t>((seed >> 32) % most);
    step_ = static_cast<int64_t>(1 + (seed & 0xffffffffu) % (most - 1));
    while (std::gcd(step_, n) != 1) --step_;  // terminates at 1
  }
  int64_t count() const { return n_; }
  int64_t first() const { return first_; }
  int64_t after(int64_t i) const { return i < n_ - step_ ? i + step_ : i + step_ - n_; }

 private:
  int64_t n_, first_ = 0, step_ = 1;
};

// The data of a lane at a barrier: all lanes must have made the same call at the same point.
struct LaneCall {
  const char* what;
  std::source_location at;
  void (*together)(void* const* values, int64_t count);  // combines the values of all lanes, in a GPU's order
  void* value;                                           // input and result of this lane
};

class LaneGroup {  // the lanes of one row
 public:
  virtual void meet(int64_t lane, const LaneCall& call) = 0;  // returns when all have arrived

 protected:
  ~LaneGroup() = default;
};

// WarpLanes::fold: lanes 16 apart, then 8; the result of lane 0 is broadcast.
template <class Op, class T> [[gnu::noinline]] T fold_warp(const T* const* x) {
  T half[16];
  for (int lane = 0; lane < 16; ++lane) half[lane] = Op{}(*x[lane], *x[lane + 16]);
  for (int apart = 8; apart; apart /= 2) {
    for (int lane = 0; lane < apart; ++lane) half[lane] = Op{}(half[lane], half[lane + apart]);
  }
  return half[0];
}

// BlockLanes::fold, which equals WarpLanes::fold for one warp.
template <class Op, class T> void fold_lanes(void* const* values, int64_t count) {
  auto* const* x = reinterpret_cast<T* const*>(values);
  T all = fold_warp<Op, T>(x);
  for (int64_t warp = 32; warp < count; warp += 32) all = Op{}(all, fold_warp<Op, T>(x + warp));
  for (int64_t lane = 0; lane < count; ++lane) *x[lane] = all;
}

template <class T> struct ScanValue { T x, total; };

// WarpLanes::scan: each lane adds the value of the lane 1, 2, 4 ... before it. x becomes the sum before the lane.
template <class T> T scan_warp(ScanValue<T>* const* x) {
  T upto[32], before[32];
  for (int lane = 0; lane < 32; ++lane) upto[lane] = x[lane]->x;
  for (int apart = 1; apart < 32; apart *= 2) {
    std::copy(upto, upto + 32, before);
    for (int lane = apart; lane < 32; ++lane) upto[lane] = before[lane - apart] + before[lane];
  }
  for (int lane = 0; lane < 32; ++lane) x[lane]->x = lane ? upto[lane - 1] : T{};
  return upto[31];
}

// BlockLanes::scan. A row of one warp has no earlier warps, so nothing is added.
template <class T> void scan_lanes(void* const* values, int64_t count) {
  auto* const* x = reinterpret_cast<ScanValue<T>* const*>(values);
  T total{};
  for (int64_t warp = 0; warp < count; warp += 32) {
    const T before = total, own = scan_warp<T>(x + warp);
    for (int64_t lane = warp; count > 32 && lane < warp + 32; ++lane) x[lane]->x = before + x[lane]->x;
    total = count > 32 ? total + own : own;
  }
  for (int64_t lane = 0; lane < count; ++lane) x[lane]->total = total;
}

struct OrOf {
  bool operator()(bool a, bool b) const { return a || b; }
};

class HostLanes {
 public:
  using At = std::source_location;

  HostLanes() = default;  // one
  HostLanes(LaneGroup* group, int64_t index, int64_t count) : group_(group), index_(index), count_(count) {}

  int64_t index() const { return index_; }
  int64_t count() const { return count_; }
  template <class T, class Op> T fold(T x, Op, At at = At::current()) const { return folded<Op>("fold", x, at); }
  template <class T> T sum(T x, At at = At::current()) const { return folded<AddOf>("sum", x, at); }
  template <class T> T max(T x, At at = At::current()) const { return folded<MaxOf>("max", x, at); }
  template <class T> T min(T x, At at = At::current()) const { return folded<MinOf>("min", x, at); }
  bool any(bool x, At at = At::current()) const { return folded<OrOf>("any", x, at); }
  template <class T> T scan(T x, T* total, At at = At::current()) const {
    ScanValue<T> own{x, x};
    if (!group_)
      own.x = T{};
    else
      group_->meet(index_, {"scan", at, scan_lanes<T>, &own});
    *total = own.total;
    return own.x;
  }
  void sync(At at = At::current()) const {
    if (group_) group_->meet(index_, {"sync", at, [](void* const*, int64_t) {}, nullptr});
  }

 private:
  template <class Op, class T> T folded(const char* what, T x, const At& at) const {
    static_assert(std::is_empty_v<Op> && std::is_arithmetic_v<T>,
                  "types that __shfl_sync can move between the lanes of a warp");
    if (group_) group_->meet(index_, {what, at, fold_lanes<Op, T>, &x});
    return x;
  }

  LaneGroup* group_ = nullptr;
  int64_t index_ = 0, count_ = 1;
};

class HostRun {
 public:
  using Row = void (*)(const void* body, const HostLanes& lanes, int64_t row);

  virtual Shuffle order(int64_t n) = 0;
  virtual bool watches(int64_t n) = 0;  // whether to notify it of each of n elements that has run
  virtual void ran(int64_t element) = 0;
  virtual void rows(int64_t n, int64_t lanes, const void* body, Row row) = 0;  // each with `lanes` lanes

 protected:
  ~HostRun() = default;
};

// The order in which each() visits [0, n): blocks of elements, and elements within them. Not inlined, or every body
// would contain it.
struct ElementOrder {
  Shuffle blocks, whole, rest;
  bool watched;
  ElementOrder(HostRun* host, int64_t n)
      : blocks(of(host, (n + kBlock - 1) / kBlock)),
        whole(of(host, kBlock)),
        rest(of(host, n % kBlock)),
        watched(host && host->watches(n)) {}

 private:
  static Shuffle of(HostRun* host, int64_t count) { return host ? host->order(count) : Shuffle(count); }
};

// Not a template: otherwise each body would hold the loop, which takes longer to compile than to run in tests.
[[gnu::noinline]] inline void each_element(HostRun* host, int64_t n, const void* body,
                                           void (*one)(const void* body, int64_t element)) {
  const ElementOrder order(host, n);
  int64_t block = order.blocks.first();
  for (int64_t k = 0; k < order.blocks.count(); ++k, block = order.blocks.after(block)) {
    const int64_t begin = block * kBlock;
    const Shuffle& within = begin + kBlock <= n ? order.whole : order.rest;
    int64_t i = within.first();
    for (int64_t left = within.count(); left; --left, i = within.after(i)) {
      one(body, begin + i);
      if (order.watched) host->ran(begin + i);
    }
  }
}

}  // namespace anabranch::device
