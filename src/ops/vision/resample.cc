#include "ops/vision/resample.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace anabranch::vision {
namespace {

// Distance of adjacent outputs in input elements.
float step_of(const Sampling& how, int64_t in, int64_t out) {
  if (out <= 1) return 0;
  return how.align_corners ? static_cast<float>(in - 1) / static_cast<float>(out - 1)
                           : static_cast<float>(in) / static_cast<float>(out);
}

float corner_position(float step, int64_t k) { return step * static_cast<float>(k); }
double middle_position(float step, int64_t k) {
  return static_cast<double>(step) * (static_cast<double>(k) + 0.5) - 0.5;
}

// Keys, Cubic convolution interpolation for digital image processing, 1981, with a = -3/4: weights of the inputs at -1,
// 0, 1 and 2 for the position t in [0, 1).
template <class W> std::array<W, 4> cubic_weights(W t) {
  constexpr W a = W(-0.75);
  const auto near = [](W x) { return ((a + 2) * x - (a + 3)) * x * x + 1; };
  const auto far = [](W x) { return ((a * x - 5 * a) * x + 8 * a) * x - 4 * a; };
  return {far(t + 1), near(t), near(1 - t), far(2 - t)};
}

}  // namespace

template <class W> bool Taps<W>::fits(int taps, int64_t in, int64_t out) {
  if (taps == taps_ && in == in_ && out == out_) return true;
  taps_ = taps;
  in_ = in;
  out_ = out;
  from_.resize(static_cast<size_t>(out * taps));
  weight_.resize(static_cast<size_t>(out * taps));
  return false;
}

template <class W> void Taps<W>::set(int64_t output, int tap, int64_t from, W weight) {
  from_[static_cast<size_t>(output * taps_ + tap)] = std::clamp<int64_t>(from, 0, in_ - 1);
  weight_[static_cast<size_t>(output * taps_ + tap)] = weight;
}

template <class W> void Taps<W>::fit_whole(int64_t extent) {
  if (fits(1, extent, extent)) return;
  for (int64_t k = 0; k < extent; ++k) set(k, 0, k, 1);
}

template <class W> void Taps<W>::fit(const Sampling& how, int64_t in, int64_t out) {
  if (fits(how.taps(), in, out)) return;
  const float step = step_of(how, in, out);
  for (int64_t k = 0; k < out; ++k) {
    const float corner = corner_position(step, k);
    if (how.method == Method::kNearest) {
      set(k, 0, static_cast<int64_t>(how.align_corners ? static_cast<double>(corner) + 0.5 : corner), 1);
    } else if (how.method == Method::kLinear) {
      const bool half = how.half_pixels && !how.align_corners;
      const float at = half ? std::max(static_cast<float>(middle_position(step, k)), 0.0f) : corner;
      const auto low = std::min(static_cast<int64_t>(at), in - 1);
      const float part = at - static_cast<float>(low);
      set(k, 0, low, static_cast<W>(1 - part));
      set(k, 1, low + 1, static_cast<W>(part));
    } else {
      const W at = how.align_corners ? static_cast<W>(corner) : static_cast<W>(middle_position(step, k));
      const W low = std::floor(at);
      const auto weights = cubic_weights<W>(at - low);
      for (int t = 0; t < 4; ++t) set(k, t, static_cast<int64_t>(low) - 1 + t, weights[static_cast<size_t>(t)]);
    }
  }
}

template class Taps<float>;
template class Taps<double>;

}  // namespace anabranch::vision
