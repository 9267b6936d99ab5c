// Resizes images and volumes row by row, from tables of input indices and weights.
#pragma once
#include <algorithm>
#include <limits>
#include <string>
#include <type_traits>

#include "ir/op.h"
#include "ops/kernels/flat_loop.h"
#include "ops/nn/blocked.h"
#include "ops/nn/window.h"
#include "ops/vision/resample.h"

namespace anabranch::vision {

using nn::Extents;

inline bool channels_last(const ir::Op& op) { return op.attr<std::string>("data_layout") != "NCHW"; }

inline Method method_of(const ir::Op& op, int rank) {
  const auto& name = op.attr<std::string>("interp_method");
  AB_CHECK(rank == 5 ? name == "trilinear" : name == "bilinear" || name == "nearest" || name == "bicubic",
           InvalidArgument, "interp_method must be {} for X of {} axes, got {}",
           rank == 5 ? "trilinear" : "bilinear, nearest or bicubic", rank, name);
  return name == "nearest" ? Method::kNearest : name == "bicubic" ? Method::kCubic : Method::kLinear;
}

// Images as [outer, depth, height, width, inner]. block: channels that lie side by side, more than one in blocked
// layout (ops/nn/blocked.h).
struct Images {
  int64_t outer, inner;
  Extents in, out;
  Images(const Shape& x, const Shape& y, bool last, int64_t block)
      : outer(last ? x[0] : x[0] * x[1] / block),
        inner(last ? x[x.rank() - 1] : block),
        in(nn::extents_of(x, nn::first_axis(last), x.rank() - 2)),
        out(nn::extents_of(y, nn::first_axis(last), x.rank() - 2)) {}
  int64_t in_elems() const { return nn::volume(in) * inner; }
  int64_t out_row() const { return out[2] * inner; }
};

// The type of fractions: float64 has float64 weights, all others are summed in float32.
template <class T> using Sum = std::conditional_t<std::is_same_v<T, double>, double, float>;

template <class T> T rounded(Sum<T> v) {
  if constexpr (std::is_integral_v<T>) {
    return static_cast<T>(
        std::clamp(v, Sum<T>(std::numeric_limits<T>::lowest()), Sum<T>(std::numeric_limits<T>::max())));
  } else {
    return v;
  }
}

template <class W> class Resizer {
 public:
  explicit Resizer(const ir::Op& op)
      : op_(op), last_(channels_last(op)), block_(nn::is_blocked(op, nn::kBlocked) ? nn::channel_block() : 1) {}

  Images fit(const Shape& x, const Shape& y) {
    const Images g(x, y, last_, block_);
    const Sampling how{.method = method_of(op_, x.rank()),
                       .align_corners = op_.attr<bool>("align_corners"),
                       .half_pixels = op_.attr<int32_t>("align_mode") == 0};
    if (x.rank() == 4) taps_[0].fit_whole(1);
    for (auto d = static_cast<size_t>(5 - x.rank()); d < 3; ++d) taps_[d].fit(how, g.in[d], g.out[d]);
    return g;
  }

  // The starts of the input rows for row (z, y) of an output image, and their weights.
  struct Rows {
    std::array<int64_t, 4> begin;
    std::array<W, 4> weight;
  };
  Rows rows(const Images& g, int64_t z, int64_t y) const {
    Rows r;
    size_t at = 0;
    for (int i = 0; i < taps_[0].count(); ++i) {
      for (int j = 0; j < taps_[1].count(); ++j, ++at) {
        r.begin[at] = (taps_[0].from(z)[i] * g.in[1] + taps_[1].from(y)[j]) * g.in[2] * g.inner;
        r.weight[at] = taps_[0].weight(z)[i] * taps_[1].weight(y)[j];
      }
    }
    return r;
  }
  const Taps<W>& columns() const { return taps_[2]; }
  const Taps<W>& axis(size_t d) const { return taps_[d]; }

 private:
  ir::Op op_;
  bool last_;
  int64_t block_;
  std::array<Taps<W>, 3> taps_;
};

template <class T, class W, int kTaps, int kRows>
void make_row(const Images& g, const Resizer<W>& r, int64_t z, int64_t y, const T* x, T* out) {
  const auto rows = r.rows(g, z, y);
  for (int64_t k = 0; k < g.out[2]; ++k) {
    const int64_t* from = r.columns().from(k);
    const W* weight = r.columns().weight(k);
    for (int64_t i = 0; i < g.inner; ++i) {
      W sum = 0;
      for (int t = 0; t < kTaps; ++t) {
        for (size_t at = 0; at < kRows; ++at) {
          sum += static_cast<W>(x[rows.begin[at] + from[t] * g.inner + i]) * rows.weight[at] * weight[t];
        }
      }
      out[k * g.inner + i] = rounded<T>(sum);
    }
  }
}

template <class T, int kTaps, int kRows>
void spread_row(const Images& g, const Resizer<T>& r, int64_t z, int64_t y, const T* dout, T* dx) {
  const auto rows = r.rows(g, z, y);
  for (int64_t k = 0; k < g.out[2]; ++k) {
    const int64_t* from = r.columns().from(k);
    const T* weight = r.columns().weight(k);
    for (int64_t i = 0; i < g.inner; ++i) {
      for (int t = 0; t < kTaps; ++t) {
        for (size_t at = 0; at < kRows; ++at) {
          dx[rows.begin[at] + from[t] * g.inner + i] += dout[k * g.inner + i] * rows.weight[at] * weight[t];
        }
      }
    }
  }
}

// Calls fn(taps, rows) with the numbers of columns and rows per output as constants. Linear volumes read two rows in
// each of two planes.
template <class Fn> void with_taps(int taps, bool volumes, Fn&& fn) {
  using std::integral_constant;
  if (taps == 1) return fn(integral_constant<int, 1>{}, integral_constant<int, 1>{});
  if (taps == 2 && volumes) return fn(integral_constant<int, 2>{}, integral_constant<int, 4>{});
  if (taps == 2) return fn(integral_constant<int, 2>{}, integral_constant<int, 2>{});
  fn(integral_constant<int, 4>{}, integral_constant<int, 4>{});
}

inline int64_t row_grain(const Images& g, int taps) { return kCheapGrain / (g.out_row() * taps * taps + 1) + 1; }

}  // namespace anabranch::vision
