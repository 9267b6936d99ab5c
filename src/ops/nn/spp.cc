// Pools images of any size to rows of one length: 1, 4, 16 ... cells.
#include <limits>

#include "ops/declare/attr_checks.h"
#include "ops/declare/declare.h"
#include "ops/kernels/outputs.h"
#include "ops/kernels/wide.h"

namespace anabranch::nn::spp_op {
namespace {

constexpr int64_t kGrain = 8192;
constexpr int32_t kMostLevels = 12;  // 4^11 cells on the last level

// One axis of an image divided into windows of one length; those at the ends may extend beyond it, or be outside.
struct Cuts {
  int64_t extent, bins, width, before;
  Cuts(int64_t extent_in, int64_t bins_in)
      : extent(extent_in), bins(bins_in), width((extent + bins - 1) / bins), before((width * bins - extent + 1) / 2) {}
  int64_t begin(int64_t i) const { return std::clamp<int64_t>(i * width - before, 0, extent); }
  int64_t end(int64_t i) const { return std::clamp<int64_t>((i + 1) * width - before, 0, extent); }
};

int64_t cells_of(int32_t levels) {
  int64_t cells = 0;
  for (int32_t level = 0; level < levels; ++level) cells += int64_t{1} << (2 * level);
  return cells;
}

// Calls fn(index in the row of Out, rows of the window, its columns) for all windows of channel `ch` of one level.
struct Level {
  Cuts rows, columns;
  int64_t first;  // index of the level in a row of Out
  int64_t bins() const { return rows.bins; }
  template <class Fn> void each(int64_t ch, Fn&& fn) const {
    int64_t at = first + ch * bins() * bins();
    for (int64_t y = 0; y < bins(); ++y) {
      for (int64_t x = 0; x < bins(); ++x) {
        fn(at++, std::array{rows.begin(y), rows.end(y)}, std::array{columns.begin(x), columns.end(x)});
      }
    }
  }
};

// Calls fn(image, channel, level) for all channels of all images, on idle workers; one worker has a whole channel.
template <class Fn> void each_level(const KernelContext& c, const Shape& x, int32_t levels, const Fn& fn) {
  const int64_t channels = x[1], plane = x[2] * x[3];
  c.parallel_each(x[0] * channels, kGrain / std::max<int64_t>(1, plane) + 1, [&](int64_t i) {
    int64_t first = 0;
    for (int32_t level = 0; level < levels; ++level) {
      const int64_t bins = int64_t{1} << level;
      fn(i / channels, i % channels, Level{Cuts(x[2], bins), Cuts(x[3], bins), first});
      first += channels * bins * bins;
    }
  });
}

using Range = std::array<int64_t, 2>;

int64_t size(const Range& y, const Range& x) { return (y[1] - y[0]) * (x[1] - x[0]); }

constexpr int64_t kParts = 16;  // independent partial sums or maxima

// fn(part, value) for the elements of a window, in rounds over all parts.
template <class T, class Fn> void each_value(const T* image, int64_t width, const Range& y, const Range& x, Fn&& fn) {
  for (int64_t r = y[0]; r < y[1]; ++r) {
    const T* row = image + r * width;
    int64_t k = x[0];
    for (; k + kParts <= x[1]; k += kParts) {
      for (int64_t p = 0; p < kParts; ++p) fn(p, row[k + p]);
    }
    for (int64_t p = 0; k < x[1]; ++p, ++k) fn(p, row[k]);
  }
}

// Calls fn(index) for the elements of a window until it returns true.
template <class Fn> void each_place(int64_t width, const Range& y, const Range& x, Fn&& fn) {
  for (int64_t r = y[0]; r < y[1]; ++r) {
    for (int64_t k = x[0]; k < x[1]; ++k) {
      if (fn(r * width + k)) return;
    }
  }
}

// As in Fluid 1.8.5, the maximum of a window outside of the image is the lowest float32, and it has no average.
template <class T> T pooled(bool max, const T* image, int64_t width, const Range& y, const Range& x) {
  const auto larger = [](T made, T value) { return (value > made) | (value != value) ? value : made; };
  T parts[kParts];
  std::fill(parts, parts + kParts, max ? static_cast<T>(std::numeric_limits<float>::lowest()) : T{0});
  in_wide_vectors([=, &parts] {
    T own[kParts];
    std::copy(parts, parts + kParts, own);
    if (max) {
      each_value(image, width, y, x, [&](int64_t p, T value) { own[p] = larger(own[p], value); });
    } else {
      each_value(image, width, y, x, [&](int64_t p, T value) { own[p] += value; });
    }
    std::copy(own, own + kParts, parts);
  });
  for (int64_t half = kParts / 2; half > 0; half /= 2) {
    for (int64_t p = 0; p < half; ++p) parts[p] = max ? larger(parts[p], parts[p + half]) : parts[p] + parts[p + half];
  }
  return max ? parts[0] : parts[0] / static_cast<T>(size(y, x));
}

// The first element that equals the maximum gets its gradient; an average distributes it.
template <class T>
void spread(bool max, const T* image, T out, T dout, int64_t width, const Range& y, const Range& x, T* dimage) {
  const T share = max ? dout : dout / static_cast<T>(size(y, x));
  each_place(width, y, x, [&](int64_t at) {
    if (max && image[at] != out) return false;
    dimage[at] += share;
    return max;
  });
}

bool is_max(const KernelArgs& op) { return op.attr<std::string>("pooling_type") == "max"; }

AB_OP(spp)
    .doc(
        "Spatial pyramid pooling: level k divides each channel into 2^k times 2^k windows and takes the maximum or the "
        "average of each; Out holds the levels one after another.")
    .source("He et al., ECCV 2014, arXiv:1406.4729")
    .in("X", "[N, C, H, W] float")
    .out("Out", "[N, C (4^pyramid_height - 1) / 3]")
    .required_attr("pyramid_height", AttrType::kInt, "number of levels, from 1 to 12")
    .required_attr("pooling_type", AttrType::kString, "max or avg")
    .infer([](InferContext& c) {
      check_rank(c, "X", 4, 4);
      const int32_t levels = c.attr<int32_t>("pyramid_height");
      within<int32_t>("pyramid_height", 1, kMostLevels)(levels);
      one_of("pooling_type", {"max", "avg"})(c.attr<std::string>("pooling_type"));
      const Shape& x = c.in("X").shape;
      AB_CHECK(x[2] != 0 && x[3] != 0, InvalidArgument, "X must hold images with elements, got {}", x.str());
      c.set_out("Out", Shape{x[0], x[1] == kUnknown ? kUnknown : x[1] * cells_of(levels)}, c.in("X").dtype);
    })
    .grad_reads({"X"}, {"Out"})
    .cpu<float, double>([]<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel {
      return [levels = op.attr<int32_t>("pyramid_height"), max = is_max(op), x = op.in("X"),
              out = op.out("Out")](KernelContext& c) {
        const Shape& s = c[x].shape();
        const T* from = c[x].data<T>();
        T* to = c[out].mutable_data<T>();
        const int64_t wide = c[out].row_elems();
        each_level(c, s, levels, [&](int64_t n, int64_t ch, const Level& level) {
          const T* image = from + (n * s[1] + ch) * s[2] * s[3];
          in_wide_vectors([&] {
            level.each(ch, [&](int64_t at, const Range& rows, const Range& columns) {
              to[n * wide + at] = pooled(max, image, s[3], rows, columns);
            });
          });
        });
      };
    });

AB_GRAD(spp)
    .doc("X@GRAD: a maximum gets the gradient of each of its windows, an average distributes it.")
    .cpu<float, double>([]<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel {
      return [levels = op.attr<int32_t>("pyramid_height"), max = is_max(op), x = op.in("X"), out = op.in("Out"),
              dout = op.in("Out@GRAD"), dx = op.out("X@GRAD")](KernelContext& c) {
        if (!c.needs(dx)) return;
        const Shape& s = c[x].shape();
        const T *from = c[x].data<T>(), *made = c[out].data<T>(), *g = c[dout].data<T>();
        T* to = zeroed<T>(c, dx);
        const int64_t wide = c[out].row_elems();
        each_level(c, s, levels, [&](int64_t n, int64_t ch, const Level& level) {
          const int64_t plane = (n * s[1] + ch) * s[2] * s[3];
          level.each(ch, [&](int64_t at, const Range& rows, const Range& columns) {
            const int64_t place = n * wide + at;
            spread(max, from + plane, made[place], g[place], s[3], rows, columns, to + plane);
          });
        });
      };
    });

}  // namespace
}  // namespace anabranch::nn::spp_op
