// Interpolation along one axis of a resized image: a few input indices and weights per output. Positions are rounded
// like those of 1.8.5 (the step between outputs is a float32 for every dtype), because a position decides which inputs
// are read. The tables of an axis are recomputed only when its extents change.
#pragma once
#include <cstdint>
#include <vector>

namespace anabranch::vision {

enum class Method { kNearest, kLinear, kCubic };

struct Sampling {
  Method method = Method::kLinear;
  bool align_corners = true;  // the outermost outputs are at the outermost inputs
  bool half_pixels = false;   // else: linear positions count from the centres of pixels
  int taps() const { return method == Method::kNearest ? 1 : method == Method::kLinear ? 2 : 4; }
};

// Output k of an axis is the sum over t < taps of weight[k * taps + t] times input from[k * taps + t].
template <class W> class Taps {
 public:
  void fit(const Sampling& how, int64_t in, int64_t out);
  void fit_whole(int64_t extent);  // for an axis that keeps its extent: one tap each

  int count() const { return taps_; }
  const int64_t* from(int64_t output) const { return from_.data() + output * taps_; }
  const W* weight(int64_t output) const { return weight_.data() + output * taps_; }

 private:
  bool fits(int taps, int64_t in, int64_t out);  // whether the tables already match these extents
  void set(int64_t output, int tap, int64_t from, W weight);

  int taps_ = 0;
  int64_t in_ = -1, out_ = -1;
  std::vector<int64_t> from_;
  std::vector<W> weight_;
};

}  // namespace anabranch::vision
