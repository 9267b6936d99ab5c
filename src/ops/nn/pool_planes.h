// Maxima and averages of windows, plane by plane, with their gradients.
#pragma once
#include <limits>
#include <type_traits>

#include "opdef/kernel_context.h"
#include "ops/nn/pool_ring.h"
#include "ops/nn/pool_rows.h"

namespace anabranch::nn {

inline constexpr int64_t kPoolGrain = 8192;

// Planes of images: [N, C] of them, whose elements are `step` apart. With channels last, a plane is one channel of a
// sample, interleaved with the others.
struct Planes {
  int64_t count, channels, in_elems, out_elems, step;
  bool channels_last;
  explicit Planes(const PoolDims& d)
      : count(d.batch * d.channels),
        channels(d.channels),
        in_elems(volume(d.window.in)),
        out_elems(volume(d.window.out)),
        step(d.channels_last ? d.channels : 1),
        channels_last(d.channels_last) {}
  int64_t begin(int64_t plane, int64_t elems) const {
    return channels_last ? plane / channels * channels * elems + plane % channels : plane * elems;
  }
  int64_t grain() const { return kPoolGrain / std::max<int64_t>(1, in_elems) + 1; }
};

// The inputs of an output.
struct Seen {
  PoolDims::Range depth, rows, columns;
};

// Calls fn(output, its inputs) for the outputs of a plane, by index.
template <class Fn> void each_output(const PoolDims& d, Fn&& fn) {
  int64_t output = 0;
  for (int64_t z = 0; z < d.window.out[0]; ++z) {
    const auto depth = d.range(0, z);
    for (int64_t y = 0; y < d.window.out[1]; ++y) {
      const auto rows = d.range(1, y);
      for (int64_t x = 0; x < d.window.out[2]; ++x) fn(output++, Seen{depth, rows, d.range(2, x)});
    }
  }
}

// Calls fn(input) for the inputs of a window, row by row, until it returns true.
template <int kAxes, class Fn> void each_input_until(const PoolDims& d, const Seen& seen, Fn&& fn) {
  const int64_t depth_begin = kAxes == 2 ? 0 : seen.depth.begin, depth_end = kAxes == 2 ? 1 : seen.depth.end;
  for (int64_t z = depth_begin; z < depth_end; ++z) {
    for (int64_t y = seen.rows.begin; y < seen.rows.end; ++y) {
      const int64_t row = (z * d.window.in[1] + y) * d.window.in[2];
      for (int64_t x = seen.columns.begin; x < seen.columns.end; ++x) {
        if (fn(row + x)) return;
      }
    }
  }
}

template <int kAxes, class Fn> void each_input(const PoolDims& d, const Seen& seen, Fn&& fn) {
  each_input_until<kAxes>(d, seen, [&](int64_t i) {
    fn(i);
    return false;
  });
}

inline int64_t divisor(const PoolDims& d, const Seen& seen) { return d.divisor(seen.depth, seen.rows, seen.columns); }

template <int kAxes, class T> struct MaxPool {
  static void forward(const PoolDims& d, int64_t step, const T* x, T* out) {
    if constexpr (std::is_same_v<T, float>) {
      if (const MaxRows rows(d); rows.pays()) return by_rows(d, rows, x, out);
    }
    each_output(d, [&](int64_t o, const Seen& seen) { out[o * step] = largest(d, seen, step, x); });
  }
  static T largest(const PoolDims& d, const Seen& seen, int64_t step, const T* x) {
    T top = static_cast<T>(std::numeric_limits<float>::lowest());  // result of a window without inputs, also in float64
    each_input<kAxes>(d, seen, [&](int64_t i) {
      const T value = x[i * step];
      top = value > top || value != value ? value : top;  // NaN propagates
    });
    return top;
  }
  static void by_rows(const PoolDims& d, const MaxRows& rows, const T* x, T* out) {
    for (int64_t row = 0; row < d.window.out[0] * d.window.out[1]; ++row, out += d.window.out[2])
      rows.run(x, row / d.window.out[1], row % d.window.out[1], out);
  }
  // The first input that equals the output gets the whole gradient.
  static constexpr float kPadding = std::numeric_limits<float>::quiet_NaN();
  static constexpr int64_t kLeastWidth = 2;
  static void backward(PoolRing& ring, const T* x, const T* out, const T* dout, T* dx) {
    ring.max_gradient(x, out, dout, dx);
  }
  static void backward(const PoolDims& d, int64_t step, const T* x, const T* out, const T* dout, T* dx) {
    each_output(d, [&](int64_t o, const Seen& seen) {
      each_input_until<kAxes>(d, seen, [&](int64_t i) {
        if (x[i * step] != out[o * step]) return false;
        dx[i * step] += dout[o * step];
        return true;
      });
    });
  }
};

template <int kAxes, class T> struct AvgPool {
  static constexpr float kPadding = 0.0f;
  static constexpr int64_t kLeastWidth = 12;
  static void forward(PoolRing& ring, const T* x, T* out) { ring.mean(x, out); }
  static void backward(PoolRing& ring, const T*, const T*, const T* dout, T* dx) { ring.mean_gradient(dout, dx); }
  static void forward(const PoolDims& d, int64_t step, const T* x, T* out) {
    each_output(d, [&](int64_t o, const Seen& seen) {
      T sum = 0;
      each_input<kAxes>(d, seen, [&](int64_t i) { sum += x[i * step]; });
      out[o * step] = sum / static_cast<T>(divisor(d, seen));
    });
  }
  static void backward(const PoolDims& d, int64_t step, const T*, const T*, const T* dout, T* dx) {
    each_output(d, [&](int64_t o, const Seen& seen) {
      const T share = dout[o * step] / static_cast<T>(divisor(d, seen));
      each_input<kAxes>(d, seen, [&](int64_t i) { dx[i * step] += share; });
    });
  }
};

// Pool: MaxPool or AvgPool.
template <class T, class Pool>
void pool_forward(const KernelContext& c, const PoolDims& d, Pool, const T* from, T* to) {
  const Planes p(d);
  const auto by = [&](int64_t begin, int64_t end, const auto& run) {
    for (int64_t i = begin; i < end; ++i) run(from + p.begin(i, p.in_elems), to + p.begin(i, p.out_elems));
  };
  c.parallel_for(p.count, p.grain(), [&](int64_t begin, int64_t end) {
    if constexpr (std::is_same_v<T, float> && requires(PoolRing & r) { Pool::forward(r, from, to); }) {
      if (PoolRing::pays(d, Pool::kLeastWidth)) {
        PoolRing ring(d, Pool::kPadding);
        return by(begin, end, [&](const T* x, T* out) { Pool::forward(ring, x, out); });
      }
    }
    by(begin, end, [&](const T* x, T* out) { Pool::forward(d, p.step, x, out); });
  });
}

template <class T, class Pool>
void pool_backward(const KernelContext& c, const PoolDims& d, Pool, const T* from, const T* value, const T* grad,
                   T* to) {
  const Planes p(d);
  const auto by = [&](int64_t begin, int64_t end, const auto& run) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t in = p.begin(i, p.in_elems), at = p.begin(i, p.out_elems);
      if (p.step == 1) std::fill(to + in, to + in + p.in_elems, T{0});
      for (int64_t k = 0; p.step > 1 && k < p.in_elems; ++k) to[in + k * p.step] = T{0};
      run(from + in, value + at, grad + at, to + in);
    }
  };
  c.parallel_for(p.count, p.grain(), [&](int64_t begin, int64_t end) {
    if constexpr (std::is_same_v<T, float>) {
      if (PoolRing::pays(d, Pool::kLeastWidth)) {
        PoolRing ring(d, Pool::kPadding);
        return by(begin, end, [&](auto... args) { Pool::backward(ring, args...); });
      }
    }
    by(begin, end, [&](auto... args) { Pool::backward(d, p.step, args...); });
  });
}

}  // namespace anabranch::nn
