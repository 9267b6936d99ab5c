// The spatial axes of a convolution or a pool over images (two) or volumes (three): checks attributes, resolves
// padding, computes output extents. An unknown extent gives an unknown output extent.
#pragma once
#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "opdef/infer_context.h"

namespace anabranch::nn {

// Depth, height, width; an image is a volume of depth 1.
using Extents = std::array<int64_t, 3>;

inline int64_t volume(const Extents& e) { return e[0] * e[1] * e[2]; }

enum class Rounding { kFloor, kCeil };

struct Window {
  int axes = 2;
  Extents in{1, 1, 1}, out{1, 1, 1}, kernel{1, 1, 1}, stride{1, 1, 1}, dilation{1, 1, 1}, before{}, after{};
  bool operator==(const Window&) const = default;
  bool crops() const { return std::min({before[0], before[1], before[2], after[0], after[1], after[2]}) < 0; }
  size_t first() const { return static_cast<size_t>(3 - axes); }  // the first existing axis
};

// The attributes of an op.
struct WindowAttrs {
  int axes;
  std::vector<int32_t> strides, paddings, dilations;
  std::string padding_algorithm, data_format;
  bool channels_last() const { return data_format == "NHWC" || data_format == "NDHWC"; }
};

// An attribute that must be a number above 0 per axis.
Extents positive_extents(const char* name, const std::vector<int32_t>& v, int axes);

WindowAttrs read_window_attrs(const ir::Op& op, int axes, bool with_dilations);

// Images and volumes as shapes, in either layout.
inline int channel_axis(const Shape& s, bool channels_last) { return channels_last ? s.rank() - 1 : 1; }
inline int first_axis(bool channels_last) { return channels_last ? 1 : 2; }
Extents extents_of(const Shape& s, int first, int axes);  // of `axes` axes of s
Shape image_shape(int64_t batch, int64_t channels, const Extents& e, int axes, bool channels_last);

// Padding with which the number of windows is extent / stride, rounded up; the odd element is trailing.
void pad_same(const Extents& in, Window* w);

Window resolve_window(const WindowAttrs& attrs, const Extents& in, const Extents& kernel, Rounding rounding);

// Dims of one op, recomputed only if the shapes change: a steady step parses nothing.
template <class Dims, class Compute> class DimsOf {
 public:
  DimsOf(const ir::Op& op, Compute compute) : op_(op), compute_(compute) {}
  template <class... Shapes> const Dims& operator()(const Shapes&... shapes) {
    const std::array<Shape, sizeof...(Shapes)> now{shapes...};
    if (!valid_ || !std::equal(now.begin(), now.end(), seen_.begin())) {
      dims_ = compute_(op_, shapes...);
      std::copy(now.begin(), now.end(), seen_.begin());
      valid_ = true;
    }
    return dims_;
  }

 private:
  ir::Op op_;
  Compute compute_;
  Dims dims_;
  std::array<Shape, 2> seen_;
  bool valid_ = false;
};

}  // namespace anabranch::nn
