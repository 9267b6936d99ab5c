// Padded images on devices: "pad2d/...", "pad2d_grad/...".
#include "ops/device/args_tensor.h"
#include "ops/device/kernels.h"

namespace anabranch::device {

enum PadMode { kPadConstant, kPadReflect, kPadEdge };

// One axis of an image: maps elements to positions.
struct PadAxis {
  int64_t extent, before, after;
  int32_t mode;

  AB_HD int64_t padded() const { return before + extent + after; }
  // The element at position p; -1: the constant.
  AB_HD int64_t source(int64_t p) const {
    const int64_t at = p - before;
    if (at >= 0 && at < extent) return at;
    if (mode == kPadConstant) return -1;
    if (mode == kPadEdge) return at < 0 ? 0 : extent - 1;
    return at < 0 ? -at : 2 * (extent - 1) - at;
  }
  // Calls fn(p) for the positions of element i, ascending.
  template <class Fn> AB_HD void each_place(int64_t i, Fn fn) const {
    const int64_t own = before + i, last = extent - 1, end = padded();
    if (mode == kPadEdge && i == 0) {
      for (int64_t p = 0; p < before; ++p) fn(p);
    }
    if (mode == kPadReflect && i > 0 && i <= before) fn(before - i);
    if (own >= 0 && own < end) fn(own);  // paddings below 0 cut the image
    if (mode == kPadReflect && i < last && last - i <= after) fn(before + 2 * last - i);
    if (mode == kPadEdge && i == last) {
      for (int64_t p = own + 1; p < end; ++p) fn(p);
    }
  }
};

struct PadAxes {
  PadAxis rows, cols;
  int64_t channels;
  explicit PadAxes(const Pad2dArgs& a)
      : rows{a.rows, a.top, a.bottom, a.mode}, cols{a.cols, a.left, a.right, a.mode}, channels(a.channels) {}
};

struct Pad2d {
  using Args = Pad2dArgs;
  template <class T> struct Body {
    const T* x;
    T* y;
    PadAxes axes;
    T value;
    AB_HD void operator()(int64_t i) const {
      const int64_t channel = i % axes.channels, place = i / axes.channels;
      const int64_t row = axes.rows.source(place / axes.cols.padded() % axes.rows.padded());
      const int64_t col = axes.cols.source(place % axes.cols.padded());
      const int64_t image = place / axes.cols.padded() / axes.rows.padded();
      y[i] = row < 0 || col < 0
                 ? value
                 : x[((image * axes.rows.extent + row) * axes.cols.extent + col) * axes.channels + channel];
    }
  };
  template <class T> static int run(const Launch& launch, const Args& a) {
    const PadAxes axes(a);
    return each(launch, a.images * axes.rows.padded() * axes.cols.padded() * a.channels,
                Body<T>{a.x.get<T>(), a.y.get<T>(), axes, static_cast<T>(static_cast<Compute<T>>(a.value))});
  }
};

struct Pad2dGrad {
  using Args = Pad2dArgs;
  template <class T> struct Body {
    const T* x;
    T* y;
    PadAxes axes;
    AB_HD void operator()(int64_t i) const {
      const int64_t channel = i % axes.channels, place = i / axes.channels;
      const int64_t row = place / axes.cols.extent % axes.rows.extent, col = place % axes.cols.extent;
      const int64_t image = place / axes.cols.extent / axes.rows.extent;
      Compute<T> sum = 0;
      axes.rows.each_place(row, [&](int64_t r) {
        const int64_t line = (image * axes.rows.padded() + r) * axes.cols.padded();
        axes.cols.each_place(col, [&](int64_t c) { sum += load(x[(line + c) * axes.channels + channel]); });
      });
      store(y + i, sum);
    }
  };
  template <class T> static int run(const Launch& launch, const Args& a) {
    return each(launch, a.images * a.rows * a.cols * a.channels, Body<T>{a.x.get<T>(), a.y.get<T>(), PadAxes(a)});
  }
};

AB_KERNEL("pad2d", Pad2d, float, double, half, bfloat16, int32_t, int64_t);
AB_KERNEL("pad2d_grad", Pad2dGrad, float, double, half, bfloat16);

}  // namespace anabranch::device
